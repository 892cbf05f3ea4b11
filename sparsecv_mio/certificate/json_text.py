"""Dataclasses as strict JSON: writing, reading, and validation with messages that name the field.

The package msgspec writes, reads and validates the JSON; frozen dataclasses define the schema. JSON has no infinity: an
unknown bound (+inf) in a field of type `Bound` is written as null and read back as +inf.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.units import GAMMA_RANGE, LARGEST

T = TypeVar("T")
AT = " - at `$"  # text before the path in messages of msgspec
Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Gamma = Annotated[float, msgspec.Meta(ge=0.0, le=GAMMA_RANGE[1])]
PositiveGamma = Annotated[float, msgspec.Meta(ge=GAMMA_RANGE[0], le=GAMMA_RANGE[1])]  # a bound of an interval
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**18)]

if TYPE_CHECKING:
    Bound = float
    Coefficients = Mapping[str, float]
else:  # separate classes, since msgspec calls `_custom` for those only

    class Bound(float):
        """A bound that may be unknown."""

    class Coefficients(dict):
        """Numbers by name; with a plain dict, errors of msgspec would not name the key."""


def plain(value: Any, hint: Any, field: str) -> Any:
    """Return a value as JSON material: dict, list, str, int, float, bool, None.

    Parameters
    ----------
    value : object
        Value of the field; numpy numbers count as numbers.
    hint : type
        Annotated type of the field.
    field : str
        Name of the field in messages.

    Returns
    -------
    object
        JSON material, or an iterator of `Encoded` lines if the value has the method `json_items`.

    Raises
    ------
    ValueError
        If a number has no JSON form (NaN, or an infinity outside a `Bound`), or a value could not be read back: a bug
        of the caller, which is never written.
    """
    if hasattr(value, "json_items"):
        return value.json_items()
    try:
        builtins = msgspec.convert(msgspec.to_builtins(value, enc_hook=_builtin), hint, dec_hook=_check)
    except msgspec.ValidationError as error:
        raise ValueError(f"record {_sentence(error, field)}") from None
    # msgspec writes +inf as null; only unknown bounds are infinite here
    return msgspec.json.decode(msgspec.json.encode(builtins, enc_hook=_builtin))


def _builtin(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    return value.item() if hasattr(value, "item") else float(value)


def convert_json(value: Any, hint: Any, place: str = "") -> Any:
    """Return JSON material converted to a type, for use in `from_json_items`; errors are reported to msgspec.

    Parameters
    ----------
    place : str
        Path from the field to the value (`[3].error`).

    Raises
    ------
    ValueError
        If the value does not have this type.
    """
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}{AT}{place}`") from None


def _custom(kind: Any, value: Any, unknown: float | None) -> Any:
    """Return an object of a type unknown to msgspec; `unknown` is the value of an unknown bound."""
    if kind is Bound:
        return Bound(math.inf if value == unknown else convert_json(value, Number))
    if hasattr(kind, "from_json_items"):
        return kind.from_json_items(value)
    return kind({name: convert_json(inner, Number, f".{name}") for name, inner in convert_json(value, dict).items()})


_check, _read = partial(_custom, unknown=math.inf), partial(_custom, unknown=None)


def read_json_value(value: Any, kind: type[T], field: str) -> T:
    """Return JSON material converted to a type.

    Parameters
    ----------
    value : object
        Material as returned by `plain`.
    field : str
        Name of the field in messages.

    Raises
    ------
    CorruptStore
        As for `decode`.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise CorruptStore(f"record: {_sentence(error, field)}") from None


def decode(text: str, kind: type[T]) -> T:
    """Return strict JSON (no NaN, no Infinity) converted to a type.

    Unknown fields are ignored, so that records with later additions can be read.

    Raises
    ------
    CorruptStore
        If a field is missing or has the wrong type or size; the message names its path (`table[3].gamma`). If the text
        is not JSON, the message gives the position of the error.
    """
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise CorruptStore(f"record: {_sentence(error)}") from None
    except msgspec.DecodeError as error:
        raise CorruptStore(f"record: not a JSON file ({_locate_json_error(error, text)})") from None
    except UnicodeEncodeError:
        raise CorruptStore("record: not a JSON file (half of a surrogate pair)") from None
    except RecursionError:
        raise CorruptStore("record: not a record (nested too deeply)") from None


_WORDS = {
    "array": "a list", "object": "an object", "str": "a text", "int": "an integer", "float": "a number",
    "bool": "true or false",
}  # fmt: skip


def _sentence(error: msgspec.ValidationError, field: str = "") -> str:
    """Return an error of msgspec as a sentence with the path of the field.

    An error inside `_custom` has several paths, the innermost first.
    """
    message, *places = str(error).split(AT)
    path = (field + "".join(place.rstrip("`") for place in reversed(places))).lstrip(".")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", message):
        return f"field {path}.{missing[1]} is missing".replace(" .", " ")
    words = re.sub(r"`(.*?)`", lambda kind: " or ".join(_WORDS.get(k, k) for k in kind[1].split(" | ")), message)
    if words.startswith("Expected "):
        words = words.replace("Expected", "must be", 1).replace(", got", ", not", 1)
    elif not words.startswith("must be"):
        words = f"is not valid ({words[0].lower()}{words[1:]})"
    return f"field {path} {words}" if path else f"it {words}"


def _locate_json_error(error: msgspec.DecodeError, text: str) -> str:
    """Return the position at which a text is no longer JSON, and the text before it."""
    match = re.fullmatch(r"JSON is malformed: (.*) \(byte (\d+)\)", str(error))
    if match is None:
        return str(error).lower()
    before = text.encode()[: int(match[2])].decode()
    line = before.count("\n") + 1
    return f"{match[1]}, line {line}, after {before[-40:].lstrip()!r}"


class Encoded(str):
    """A text that is already JSON."""


def json_pieces(material: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON text of an object in pieces: one line for each field and each item of a list of objects.

    An iterator of `Encoded` items is written item by item, so a record of millions of folds is never one string in
    memory.
    """
    separator = "{\n"
    for key, value in material.items():
        yield f"{separator}  {json.dumps(key)}: "
        separator = ",\n"
        if isinstance(value, Iterator) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            inner = "[\n"
            for item in value:
                yield f"{inner}    {item if isinstance(item, Encoded) else _line(item)}"
                inner = ",\n"
            yield "\n  ]" if inner == ",\n" else "[]"
        else:
            yield _line(value)
    yield "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)

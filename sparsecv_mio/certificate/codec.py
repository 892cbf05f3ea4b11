"""Frozen dataclasses to strict JSON and back.

JSON has no infinity: a field of type `Bound` writes an unknown bound (+inf) as null and reads null back as +inf.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar

from sparsecv_mio.errors import CorruptStore

T = TypeVar("T")

UNKNOWN_IS_NULL = "unknown (+inf) is null"
LONGEST_INTEGER = 18  # digits; what has more is no count, and beyond 4,300 Python refuses to convert it


@dataclass(frozen=True)
class Within:
    """The range of a number that is read back."""

    low: float
    high: float


Bound = Annotated[float, UNKNOWN_IS_NULL]
Gamma = Annotated[float, Within(1e-300, 1e300)]
Count = Annotated[int, Within(0, 10**LONGEST_INTEGER)]
Seconds = Annotated[float, Within(0.0, math.inf)]


def plain(value: Any, hint: Any, field: str) -> Any:
    """`value` of the annotated type `hint` as JSON material (dict, list, str, int, float, bool, None).

    Raises
    ------
    ValueError
        A number that JSON cannot carry (NaN, or an infinity outside a `Bound`): a bug of the caller, never written.
    """
    origin = typing.get_origin(hint)
    if origin is Annotated:
        kind, *notes = typing.get_args(hint)
        return None if UNKNOWN_IS_NULL in notes and float(value) == math.inf else plain(value, kind, field)
    if origin in (typing.Union, types.UnionType):
        inner = next(a for a in typing.get_args(hint) if a is not type(None))
        return None if value is None else plain(value, inner, field)
    if origin is tuple:
        inner = typing.get_args(hint)[0]
        return [plain(item, inner, f"{field}[{i}]") for i, item in enumerate(value)]
    if origin is Mapping:
        inner = typing.get_args(hint)[1]
        return {str(key): plain(item, inner, f"{field}.{key}") for key, item in value.items()}
    if hasattr(value, "json_items"):
        return value.json_items()
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return {f.name: plain(getattr(value, f.name), hints[f.name], f"{field}.{f.name}") for f in fields(hint)}
    if hint is float and not math.isfinite(value):
        raise ValueError(f"record field {field.lstrip('.')} is {value}")
    return hint(value)


def read(value: Any, hint: Any, field: str) -> Any:
    """The inverse of `plain`: JSON material as the annotated type `hint`.

    Raises
    ------
    CorruptStore
        A missing field or a value of the wrong type, named by its path (`table[3].gamma`). Unknown fields are
        ignored, so that a record with later additions still reads.
    """
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return _read_annotated(value, hint, field)
    if origin in (typing.Union, types.UnionType):
        inner = next(a for a in typing.get_args(hint) if a is not type(None))
        return None if value is None else read(value, inner, field)
    if origin is tuple:
        inner = typing.get_args(hint)[0]
        return tuple(read(item, inner, f"{field}[{i}]") for i, item in enumerate(_typed(value, list, field)))
    if origin is Mapping:
        inner = typing.get_args(hint)[1]
        entries = _typed(value, dict, field).items()
        return {_typed(key, str, field): read(item, inner, f"{field}.{key}") for key, item in entries}
    if hasattr(hint, "from_json_items"):
        return hint.from_json_items(_typed(value, list, field), field)
    if is_dataclass(hint):
        return _read_dataclass(value, typing.cast(type[Any], hint), field)
    return _typed(value, hint, field)


def _read_annotated(value: Any, hint: Any, field: str) -> Any:
    kind, *notes = typing.get_args(hint)
    if value is None and UNKNOWN_IS_NULL in notes:
        return math.inf
    found = read(value, kind, field)
    for note in notes:
        if isinstance(note, Within) and not note.low <= found <= note.high:
            raise CorruptStore(f"record: field {field} must be within {note.low:g} and {note.high:g}, not {found:g}")
    return found


def _read_dataclass(value: Any, cls: type[T], field: str) -> T:
    entries = _typed(value, dict, field or "record")
    hints = typing.get_type_hints(cls, include_extras=True)
    given: dict[str, Any] = {}
    for f in fields(typing.cast(Any, cls)):
        path = f"{field}.{f.name}".lstrip(".")
        if f.name in entries:
            given[f.name] = read(entries[f.name], hints[f.name], path)
        elif f.default is MISSING and f.default_factory is MISSING:
            raise CorruptStore(f"record: field {path} is missing")
    return cls(**given)


_WORDS = {list: "a list", dict: "an object", str: "a text", int: "an integer", float: "a number", bool: "true or false"}


def _typed(value: Any, kind: type, field: str) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise CorruptStore(f"record: field {field} must be {_WORDS[kind]}, not {shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise CorruptStore(f"record: field {field} must be a finite number, not one beyond the floats")
    if isinstance(value, str) and not _is_unicode(value):
        raise CorruptStore(f"record: field {field} must be a text, not half of a surrogate pair")
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def shown(value: Any) -> str:
    """A value in a message: short, and without walking what may be nested deeply."""
    return _WORDS[type(value)] if type(value) in (list, dict) else json.dumps(value)[:40]


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


def parse_object(text: str) -> dict[str, Any]:
    """Strict JSON (no NaN, no Infinity) whose top level is an object.

    Raises
    ------
    CorruptStore
        Anything else, with the line where reading stopped.
    """

    def refuse(token: str) -> Any:
        raise CorruptStore(f"record: {token} is not JSON (an unknown bound is null)")

    try:
        value = json.loads(text, parse_constant=refuse, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise CorruptStore(f"record: not a JSON file ({error.msg}, line {error.lineno})") from None
    except RecursionError:
        raise CorruptStore("record: not a record (nested too deeply)") from None
    return typing.cast(dict[str, Any], _typed(value, dict, "record"))


class Encoded(str):
    """Text that is JSON already."""


def json_pieces(material: Mapping[str, Any]) -> Iterator[str]:
    """JSON text of one object in pieces: one line per field, and one per item of a list of objects.

    An iterator of `Encoded` items is written as it comes: a record of millions of folds is never one string in memory.
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

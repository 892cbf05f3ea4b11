"""What records are made of: numbers as strict JSON, and the parts that the records of several commands share.

msgspec writes, reads and checks; frozen dataclasses are the schema. JSON has no infinity: a field of type `Bound`
writes an unknown bound (+inf) as null and reads null back as +inf.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, get_type_hints

import msgspec
import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.reading_options import Applied, Reading
from sparsecv_mio.errors import CorruptStore, SparseCVError, naming_extras
from sparsecv_mio.files import write_text
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.units import GAMMA_RANGE
from sparsecv_mio.version import __version__
from sparsecv_mio.words import Loss

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance


T = TypeVar("T")

AT = " - at `$"  # before the path in msgspec's messages

LARGEST = sys.float_info.max
COMPILING = "went into compiling"  # of the warning that says how much of a limit did
NOT_AVERAGED = "no time was left to average the near-best pairs: the model is that of the pair"
Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Gamma = Annotated[float, msgspec.Meta(ge=0.0, le=GAMMA_RANGE[1])]
PositiveGamma = Annotated[float, msgspec.Meta(ge=GAMMA_RANGE[0], le=GAMMA_RANGE[1])]  # an end of an interval
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**18)]

if TYPE_CHECKING:
    Bound = float
    Coefficients = Mapping[str, float]
else:  # classes of their own, since msgspec asks `_custom` about those only

    class Bound(float):
        """A bound that may be unknown."""

    class Coefficients(dict):
        """Numbers by name: msgspec itself would not name the one that is wrong."""


def plain(value: Any, hint: Any, field: str) -> Any:
    """Turn a value into JSON material: dict, list, str, int, float, bool, None.

    Parameters
    ----------
    value : object
        What the field holds; numpy numbers count as numbers.
    hint : type
        The annotated type of the field.
    field : str
        Its name in messages.

    Returns
    -------
    object
        An iterator of `Encoded` lines where the value has the method `json_items`.

    Raises
    ------
    ValueError
        A number that JSON cannot carry (NaN, or an infinity outside a `Bound`), or any other value that would not be
        read back: a bug of the caller, never written.
    """
    if hasattr(value, "json_items"):
        return value.json_items()
    try:
        builtins = msgspec.convert(msgspec.to_builtins(value, enc_hook=_builtin), hint, dec_hook=_check)
    except msgspec.ValidationError as error:
        raise ValueError(f"record {_sentence(error, field)}") from None
    # msgspec writes +inf as null: by now these are the unknown bounds
    return msgspec.json.decode(msgspec.json.encode(builtins, enc_hook=_builtin))


def _builtin(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    return value.item() if hasattr(value, "item") else float(value)


def checked(value: Any, hint: Any, place: str = "") -> Any:
    """Return JSON material as a type, inside of a `from_json_items`; a `ValueError` tells msgspec what is wrong.

    Parameters
    ----------
    place : str
        Path from the field to the value (`[3].error`).

    Raises
    ------
    ValueError
        The value is not of this type.
    """
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}{AT}{place}`") from None


def _custom(kind: Any, value: Any, unknown: float | None) -> Any:
    """Build what msgspec does not know; `unknown` stands for an unknown bound."""
    if kind is Bound:
        return Bound(math.inf if value == unknown else checked(value, Number))
    if hasattr(kind, "from_json_items"):
        return kind.from_json_items(value)
    return kind({name: checked(inner, Number, f".{name}") for name, inner in checked(value, dict).items()})


_check, _read = partial(_custom, unknown=math.inf), partial(_custom, unknown=None)


def read_as(value: Any, kind: type[T], field: str) -> T:
    """Turn JSON material into a type.

    Parameters
    ----------
    value : object
        Material as `plain` makes it.
    field : str
        Its name in messages.

    Raises
    ------
    CorruptStore
        As `decode`.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise CorruptStore(f"record: {_sentence(error, field)}") from None


def decode(text: str, kind: type[T]) -> T:
    """Read strict JSON (no NaN, no Infinity) as a type.

    Unknown fields are ignored, so that a record with later additions still reads.

    Raises
    ------
    CorruptStore
        A missing field or a value of the wrong type or size, named by its path (`table[3].gamma`), or text that is not
        JSON, with the place where reading stopped.
    """
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise CorruptStore(f"record: {_sentence(error)}") from None
    except msgspec.DecodeError as error:
        raise CorruptStore(f"record: not a JSON file ({_stopped(error, text)})") from None
    except UnicodeEncodeError:
        raise CorruptStore("record: not a JSON file (half of a surrogate pair)") from None
    except RecursionError:
        raise CorruptStore("record: not a record (nested too deeply)") from None


_WORDS = {
    "array": "a list", "object": "an object", "str": "a text", "int": "an integer", "float": "a number",
    "bool": "true or false",
}  # fmt: skip


def _sentence(error: msgspec.ValidationError, field: str = "") -> str:
    """Say what msgspec found, in words, the field named by its path.

    An error inside of `_custom` bears several paths, the innermost first.
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


def _stopped(error: msgspec.DecodeError, text: str) -> str:
    """Say where the text stops to be JSON, and what stands before that place."""
    match = re.fullmatch(r"JSON is malformed: (.*) \(byte (\d+)\)", str(error))
    if match is None:
        return str(error).lower()
    before = text.encode()[: int(match[2])].decode()
    line = before.count("\n") + 1
    return f"{match[1]}, line {line}, after {before[-40:].lstrip()!r}"


class Encoded(str):
    """Text that is JSON already."""


def json_pieces(material: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON text of one object in pieces: one line per field, and one per item of a list of objects.

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


Status = Literal["proved", "limit", "interrupted", "doubtful"]
PairStatus = Literal["decided", "excluded", "open"]
STATUSES: tuple[Status, ...] = ("proved", "limit", "interrupted", "doubtful")


def relative_gap(lower: float, upper: float) -> float:
    """`(upper - lower) / upper`: 0 when both are 0, +inf while `upper` is unknown.

    Examples
    --------
    >>> relative_gap(0.9, 1.0)
    0.09999999999999998
    """
    if not math.isfinite(upper):
        return math.inf
    return (upper - lower) / upper if upper > 0.0 else 0.0


@dataclass(frozen=True)
class OracleWork:
    """What an oracle did for a search. Counts are facts of the run; `nodes` is an estimate, as those trees never grew.

    `asked` questions put to it and the `seconds` it took; what was spared: `mios` cells decided without branching (nor
    relaxed later), `relaxations` never run besides, `columns` fixed before a search over supports began, `rows` not
    read; `hits` cells whose final support it was the first to name; `nodes` the trees spared, at the mean of those
    grown.
    """

    oracle: str
    asked: Count = 0
    mios: Count = 0
    relaxations: Count = 0
    columns: Count = 0
    hits: Count = 0
    rows: Count = 0
    nodes: Count = 0
    seconds: Seconds = 0.0


@dataclass(frozen=True)
class SourceWork:
    """What one source of bounds cost and brought: trees of single folds, trees on all rows, ridge balls and so on.

    `slices` times that it was asked; its work in `problems` (ridge problems set up: the rows of a fold, or all, at one
    gamma) and `nodes` of trees, which a run without a limit repeats on one thread; `seconds` by the wall clock and by
    that of the processor. `decided` cells, and cells `ruled_out`: open ones of a pair whose lower bound came to exclude
    it. `gap_closed`: by how much the relative gap of the grid fell meanwhile, which is 1 at first; a gap that is not
    the same pair's before and after, as of a descent, adds up to more.
    """

    source: str
    slices: Count = 0
    problems: Count = 0
    nodes: Count = 0
    seconds: Seconds = 0.0
    cpu_seconds: Seconds = 0.0
    decided: Count = 0
    ruled_out: Count = 0
    gap_closed: float = 0.0


@dataclass(frozen=True)
class GapStep:
    """The relative gap of the grid after so many `seconds`, and the source that worked since the step before."""

    source: str
    seconds: Seconds
    gap: float


@dataclass(frozen=True)
class Work:
    """The cost: `mios` cells (gamma, tau, fold) decided by branching, `nodes` of all trees, wall-clock `seconds`.

    `sources`: what each source of bounds cost and brought; `course`: how the gap fell. Both are empty in records of
    before, and where no grid was searched.
    """

    mios: Count
    nodes: Count
    seconds: Seconds
    engine: str
    oracles: tuple[OracleWork, ...] = ()
    sources: tuple[SourceWork, ...] = ()
    course: tuple[GapStep, ...] = ()


@dataclass(frozen=True)
class ReadingInfo:
    """How a file was read that is no plain table of numbers: what was asked for, and what was learnt of its columns.

    `columns`: the features as the file names them; a column of words became those of `DataInfo.names` that begin with
    its name. `means` (medians with na median) fill the empty cells of new rows, `levels` are the words of a column in
    the order of their codes. `left_out`: number of rows left out for their empty cells. `marked`: columns beside which
    another one says which cells were empty.
    """

    sep: str | None
    decimal: str
    comment: str | None
    encoding: str
    header: bool
    index_col: str | None
    na: str
    encode: str
    columns: tuple[str, ...]
    means: Coefficients
    levels: Mapping[str, tuple[str, ...]]
    left_out: Count
    thousands: str | None = None
    na_values: tuple[str, ...] = ()
    keep_default_na: bool = True
    na_indicator: bool = False
    marked: tuple[str, ...] = ()


def reading_info(applied: Applied | None) -> ReadingInfo | None:
    """Describe how a file was read, for the record; None for a plain table of numbers."""
    if applied is None or not applied.is_told:
        return None
    words: dict[str, Any] = {
        declared_field.name: getattr(applied.how, declared_field.name) for declared_field in fields(Reading)
    }
    return ReadingInfo(
        **words | {"na": str(applied.how.na), "encode": str(applied.how.encode)}, columns=applied.columns,
        means=dict(applied.means), levels=dict(applied.levels), left_out=applied.left_out,
        marked=applied.marked,
    )  # fmt: skip


def applied_reading(info: ReadingInfo | None) -> Applied | None:
    """Return how the file of a record was read.

    Raises
    ------
    CorruptStore
        The record holds what is no option of a reading.
    """
    if info is None:
        return None
    try:
        how = Reading.of(
            **{declared_field.name: getattr(info, declared_field.name) for declared_field in fields(Reading)}
        )
    except SparseCVError as error:
        raise CorruptStore(f"record: field data.reading is not valid ({error})") from None
    return Applied(how, info.columns, dict(info.means), dict(info.levels), info.left_out, marked=info.marked)


@dataclass(frozen=True)
class DataInfo:
    """Which data: `names` are the features in their order, so that a reader can select the same columns again.

    `weights`: the column that says how much each row counts; `class_weight`, `balanced`, lets both classes weigh the
    same besides. `n` and `fingerprint` are of the rows that do,
    `total_weight` is theirs; null beside a column in records from before it, of rows repeated as often as they count.
    `reading`: how the file was read, null where it is a plain table of numbers. `exposure`: the column of exposures of
    counts.
    """

    n: Count
    p: Count
    target: str
    fingerprint: str
    scale: str
    intercept: str
    names: tuple[str, ...]
    weights: str | None = None
    total_weight: Number | None = None
    reading: ReadingInfo | None = None
    class_weight: Literal["balanced"] | None = None
    exposure: str | None = None


@dataclass(frozen=True)
class FoldInfo:
    """Which folds: rebuilt from `spec` and `seed`, compared by `digest`; `k` counts those of all `repeats`."""

    spec: str
    seed: Count | None
    k: Count
    digest: str
    repeats: Count = 1


@dataclass(frozen=True)
class Request:
    """What was asked for: the grid, the relative gap, the limits, restrictions where there are any."""

    gammas: tuple[Gamma, ...]
    taus: tuple[Count, ...]
    gap: Number
    one_se: bool = False
    time_limit: Seconds | None = None
    threads: Count | None = None
    restrictions: Restrictions | None = None


@dataclass(frozen=True)
class SearchRequest(Request):
    """What was asked of a search besides, word for word; None in records from before these fields, too.

    `method_used` is the method that `auto` stands for, `oracles` None where the choice was left to the search,
    `stability` the weights of the instability, None where none was asked for. `scale_within` and `na_within` are
    `folds` where the training rows of each fold say how columns are measured and empty cells filled, else None. Only
    records from before 0.2.0 have `engine` and `tau_step`.
    """

    method: str | None = None
    method_used: str | None = None
    backend: str | None = None
    formulation: str | None = None
    engine: str | None = None
    mio_budget: Count | None = None
    refine: bool | None = None
    tau_step: str | None = None
    oracles: tuple[str, ...] | None = None
    stability: tuple[Number, ...] | None = None
    model: str | None = None
    own_error: bool | None = None
    solver_option: tuple[str, ...] | None = None
    loss: str | None = None
    positive: str | None = None
    scale_within: Literal["folds"] | None = None
    na_within: Literal["folds"] | None = None


@dataclass(frozen=True)
class CoefficientBox:
    """Ends of the coefficient of a feature where it is chosen, in units of the file; null for an open one."""

    feature: str
    low: Number | None
    high: Number | None

    def __str__(self) -> str:
        low, high = ("" if end is None else f"{end:g}" for end in (self.low, self.high))
        return f"{self.feature} in [{low or '-inf'}, {high or 'inf'}]"


@dataclass(frozen=True)
class Side:
    """The side constraints of one fit, each null where there is none: `together` are chosen all or none."""

    restrictions: Restrictions | None = None
    together: tuple[tuple[str, ...], ...] | None = None
    box: tuple[CoefficientBox, ...] | None = None

    def words(self) -> str:
        """Return the side constraints as one text; empty where there is none.

        Examples
        --------
        >>> Side(Restrictions(nonnegative="a"), (("b", "c"),), (CoefficientBox("c", 0.0, 1.0),)).words()
        'a not below 0; b, c all or none; c in [0, 1]'
        """
        said = [self.restrictions.words()] if self.restrictions else []
        said += [f"{', '.join(group)} all or none" for group in self.together or ()]
        return "; ".join([*said, *map(str, self.box or ())])


@dataclass(frozen=True)
class Head:
    """The field that says which record a text is."""

    schema: str


def schema_of(text: str) -> str:
    """Return which record a text is."""
    return decode(text, Head).schema


def frame_of(rows: Sequence[DataclassInstance]) -> pd.DataFrame:
    """Return dataclasses of one kind as a pandas frame, a column for every field."""
    with naming_extras():
        import pandas as pd

    return pd.DataFrame({f.name: [getattr(row, f.name) for row in rows] for f in fields(rows[0])})


class JsonRecord:
    """A record as JSON text and as a file; `schema_name` is what its field `schema` must hold."""

    schema_name: ClassVar[str]

    @property
    def loss(self) -> Loss:
        """The loss that is fitted: of two classes, of counts, or of squares."""
        if getattr(self, "classes", None) is not None:
            return Loss.LOGISTIC
        return Loss.SQUARED if getattr(self, "counts", None) is None else Loss.POISSON

    def pieces(self) -> Iterator[str]:
        """Yield the text of `to_json` in pieces: a record of millions of folds is never one string in memory."""
        hints = get_type_hints(type(self), include_extras=True)
        return json_pieces({f.name: plain(getattr(self, f.name), hints[f.name], f.name) for f in fields(self)})  # type: ignore[arg-type]

    def to_json(self) -> str:
        """Return the record as strict JSON text; unknown bounds (+inf) are null."""
        return "".join(self.pieces())

    def write_record(self, path: str | os.PathLike[str]) -> None:
        """Write the record so that the file is never half-written; a pipe or device is written through.

        Raises
        ------
        BadInput
            The file cannot be written.
        """
        write_text(path, self.pieces(), "record", through=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a record back.

        Raises
        ------
        CorruptStore
            A record of another schema, or a field is missing or malformed; the message names it.
        """
        schema = schema_of(text)
        if schema != cls.schema_name:
            raise CorruptStore(
                f"record: field schema must be {cls.schema_name!r}, not {schema[:40]!r}; if another version of "
                "sparsecv-mio wrote it, read it with that one or run its command again"
            )
        return cls.decoded(text)

    @classmethod
    def decoded(cls, text: str) -> Self:
        """Read a record whatever its field `schema` says; `CorruptStore` as `from_json`."""
        record: Any = decode(text, cls)
        if record.status not in STATUSES:
            raise CorruptStore(f"record: field status must be one of {', '.join(STATUSES)}, not {record.status[:40]!r}")
        _check_data(record.data)
        request = getattr(record, "request", None)
        for field, values in () if request is None else (("gammas", request.gammas), ("taus", request.taus)):
            if not values:
                raise CorruptStore(f"record: field request.{field} is empty")
        limits = getattr(request or getattr(record, "side", None), "restrictions", None)
        _check_parts(record, frozenset(record.data.names), "", frozenset(limits.adjust if limits else ()))
        return record


# Fields of any part of a record: names of features, and numbers that are squares, sums or means of absolute values.
NAMES = ("support", "supports", "coefficients", "always", "never", "feature", "other")
SQUARES = (
    "cv_error", "objective", "upper", "error", "value", "best", "threshold", "standard_error", "mae", "instability",
    "instability_upper", "at_low", "at_high", "curve_errors", "allowed", "missed", "fewer",
)  # fmt: skip


def _check_data(data: DataInfo) -> None:
    """Refuse a record whose data have no rows, or not so many features of different names as it says."""
    if not data.n:
        raise CorruptStore("record: field data.n is 0: there are no rows")
    if len(data.names) != data.p:
        raise CorruptStore(f"record: field data.names holds {len(data.names)} names, data.p says {data.p}")
    seen: set[str] = set()
    for name in data.names:
        if name in seen:
            raise CorruptStore(f"record: field data.names holds {name!r} twice")
        seen.add(name)


def _check_parts(part: Any, known: frozenset[str], path: str, adjusted: frozenset[str]) -> None:
    """Refuse features that the data have not, a model without a coefficient of its own, and squares below 0."""
    if isinstance(part, tuple):
        for i, item in enumerate(part):
            _check_parts(item, known, f"{path}[{i}]", adjusted)
    if hasattr(part, "json_items"):  # folds, by column: nothing of them is a part
        inside = {"supports": part.supports, "error": part.error.tolist()}
    elif is_dataclass(part):
        inside = {field.name: getattr(part, field.name) for field in fields(part)}
    else:
        return
    for name, value in inside.items():
        place = f"{path}.{name}".lstrip(".")
        if name in NAMES:
            _check_features(value, known, place)
        elif name in SQUARES:
            if any(number is not None and number < 0.0 for number in _flat(value)):
                raise CorruptStore(f"record: field {place} holds a number below 0")
        else:
            _check_parts(value, known, place, adjusted)
    _check_together(inside, path, adjusted)


def _check_features(value: Any, known: frozenset[str], place: str) -> None:
    """Refuse a text that is no feature of the data."""
    for name in _flat(value):
        if isinstance(name, str) and name not in known:
            raise CorruptStore(f"record: field {place} names {name!r}, which data.names has not")


def _check_together(inside: Mapping[str, Any], path: str, adjusted: frozenset[str]) -> None:
    """Refuse fields of one part that do not go together."""
    if "curve_gammas" in inside and len(inside["curve_gammas"]) != len(inside["curve_errors"]):
        raise CorruptStore(f"record: field {path}.curve_errors are not one for each of curve_gammas")
    if "low" in inside and "high" in inside and "pieces" in inside and not inside["low"] < inside["high"]:
        raise CorruptStore(f"record: field {path}.low is not below high")
    if "coefficients" in inside and set(inside["coefficients"]) != {*inside["support"], *adjusted}:
        raise CorruptStore(f"record: field {path}.coefficients is not of the features of support".replace(" .", " "))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list | dict):
        for item in value:
            yield from _flat(item)
    else:
        yield value


@cache
def _package_version(package: str) -> str:
    if loaded := getattr(sys.modules.get(package), "__version__", None):
        return str(loaded)  # at once: it takes longer to look up what is installed
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def versions() -> dict[str, str]:
    """Versions of the package, of Python and of the numerical libraries, for the record; looked up once."""
    numbers = {"sparsecv_mio": __version__, "python": platform.python_version()}
    return numbers | {name: _package_version(name) for name in ("numpy", "scipy", "numba")}


@dataclass(frozen=True, slots=True)
class ChosenFold:
    """One fold of the reported pair: the support fitted without it and the held-out sum of squares of that fit.

    `decided`: the support is optimal; else it is the one with the least training objective known.
    """

    fold: Count
    support: tuple[str, ...]
    error: Number
    decided: bool = True


class ChosenFolds(Sequence[ChosenFold]):
    """Every fold of the reported pair: few distinct supports, and which one each fold uses.

    Parameters
    ----------
    supports : tuple of tuple of str
        The distinct supports.
    which : (k,) integers
        Fold j uses `supports[which[j]]`.
    error : (k,) floats
        Held-out sum of squares of fold j; NaN never occurs.
    decided : (k,) bools
        Whether the support of fold j is optimal.
    """

    # no dataclass: msgspec would take its fields for those of the JSON, instead of asking `from_json_items`
    def __init__(
        self,
        supports: tuple[tuple[str, ...], ...],
        which: IntArray,
        error: FloatArray,
        decided: BoolArray,
    ) -> None:
        self.supports, self.which, self.error, self.decided = supports, which, error, decided

    @classmethod
    def of(
        cls,
        supports: Sequence[Sequence[str]],
        errors: Sequence[float] | FloatArray,
        decided: Sequence[bool] | None = None,
    ) -> ChosenFolds:
        """Build from one support and one error per fold.

        Parameters
        ----------
        supports : sequence of sequences of str
            The features of each fold's model.
        errors : (k,) floats
        decided : (k,) bools, optional
            Every fold by default.

        Examples
        --------
        >>> folds = ChosenFolds.of([["a"], ["b"], ["a"]], [1.0, 2.0, 0.5])
        >>> folds.supports, folds[2].support
        ((('a',), ('b',)), ('a',))
        """
        index: dict[tuple[str, ...], int] = {}
        which = [index.setdefault(tuple(support), len(index)) for support in supports]
        sure = np.ones(len(which), dtype=np.bool_) if decided is None else np.asarray(decided, dtype=np.bool_)
        return cls(tuple(index), np.asarray(which, dtype=np.int64), np.asarray(errors, dtype=np.float64), sure)

    def __repr__(self) -> str:
        return f"ChosenFolds({len(self)} folds, {len(self.supports)} supports)"

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, fold: Any) -> Any:
        if isinstance(fold, slice):
            return [self[i] for i in range(*fold.indices(len(self)))]
        position = range(len(self))[fold]
        support = self.supports[self.which[position]]
        return ChosenFold(position, support, float(self.error[position]), bool(self.decided[position]))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ChosenFolds)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def json_items(self) -> Iterator[Encoded]:
        """Yield one line of JSON per fold."""
        if not np.isfinite(self.error).all():
            raise ValueError("record field chosen_folds holds an error that is not finite")
        encoded = [json.dumps(list(support), ensure_ascii=False) for support in self.supports]
        words = ("false", "true")
        columns = zip(self.which.tolist(), self.error.tolist(), self.decided.tolist(), strict=True)
        for fold, (which, error, decided) in enumerate(columns):
            line = f'{{"fold": {fold}, "support": {encoded[which]}, "error": {error!r}, "decided": {words[decided]}}}'
            yield Encoded(line)

    @classmethod
    def from_json_items(cls, items: list[Any]) -> ChosenFolds:
        """Build from what `json_items` wrote; folds must come in order 0, 1, ..."""
        folds = checked(items, list[ChosenFold])
        for i, fold in enumerate(folds):
            if fold.fold != i:
                raise ValueError(f"must be {i}, not {fold.fold}{AT}[{i}].fold`")
        return cls.of(
            [fold.support for fold in folds], [fold.error for fold in folds], [fold.decided for fold in folds]
        )


@dataclass(frozen=True)
class InstabilityRow:
    """The certified interval of the instability of one pair of the table, `0 ..` unknown where it cannot matter."""

    lower: Number
    upper: Bound


@dataclass(frozen=True)
class OuterModel:
    """The model that a weight chose without an outer fold, and its mean squared `error` there."""

    fold: Count
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    error: Number


@dataclass(frozen=True)
class TriedWeight:
    """A weight that was tried by nested cross-validation: its mean squared `error` over the rows of the outer folds.

    With logistic loss their mean log loss.
    """

    weight: Number
    error: Number
    folds: tuple[OuterModel, ...]


@dataclass(frozen=True)
class WeighedModel:
    """The model of all rows at the pair that a weight chooses; `proved` as in `StableChoice`."""

    weight: Number
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    proved: bool


@dataclass(frozen=True)
class StableChoice:
    """What is proved of the pair with the least `h + weight * instability`.

    `lower` bounds the criterion over the whole grid from below, `upper` that of the pair from above. `proved`:
    `upper - lower <= gap * upper + allowance`, where `allowance` is the width of the interval of the pair with the
    least lower end where its best models are all known (ties and rounding), else 0. `intervals`: of the instability,
    by row of the table. `models`: of every weight, where several were given. With a weight from nested
    cross-validation, `outer` says which outer folds and `tried` which weights, each with its error; null and empty for
    a weight that was given.
    """

    weight: Number
    lower: Number
    upper: Bound
    allowance: Number
    proved: bool
    intervals: tuple[InstabilityRow, ...]
    models: tuple[WeighedModel, ...] = ()
    outer: FoldInfo | None = None
    tried: tuple[TriedWeight, ...] = ()


@dataclass(frozen=True)
class Stability:
    """How much the model changes where a fold is left out of its training.

    Of the reported pair, `instability` is the largest change that leaving out one fold makes to the squared errors of
    all rows, per row,

        max over folds j of  (1/n) sum_i |(y_i - x_i' b^(-N_j))^2 - (y_i - x_i' b)^2|,

    at the supports of the record, `fold` the fold that makes it; `instability_lower` and `instability_upper` hold it
    for every optimum, ties and open folds included. With logistic loss log losses stand in place of squares.
    `estimate`: some best model, of a fold or of all rows, is not known; `instability` is then moved to the nearer end
    of its interval where it lies outside. `chosen`: what is proved of the choice where a weight was asked for, else
    null.
    """

    instability: Number
    instability_lower: Number
    instability_upper: Bound
    fold: Count
    estimate: bool
    chosen: StableChoice | None = None

"""What the records of all commands have in common: the cost, the data, the request, JSON text and files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

from sparsecv_mio.certificate.codec import Coefficients, Count, Gamma, Number, Seconds, decode, json_pieces, plain
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.files import write_text
from sparsecv_mio.restrictions import Restrictions
from sparsecv_mio.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

Status = Literal["proved", "limit", "interrupted"]
PairStatus = Literal["decided", "excluded", "open"]
STATUSES: tuple[Status, ...] = ("proved", "limit", "interrupted")


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
class Work:
    """The cost: `mios` cells (gamma, tau, fold) decided by branching, `nodes` of all trees, wall-clock `seconds`."""

    mios: Count
    nodes: Count
    seconds: Seconds
    engine: str
    oracles: tuple[OracleWork, ...] = ()


@dataclass(frozen=True)
class ReadingInfo:
    """How a file was read that is no plain table of numbers: what was asked for, and what was learnt of its columns.

    `columns`: the features as the file names them; a column of words became those of `DataInfo.names` that begin with
    its name. `means` fill the empty cells of new rows, `levels` are the words of a column in the order of their codes.
    `left_out`: number of rows left out for their empty cells.
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


@dataclass(frozen=True)
class DataInfo:
    """Which data: `names` are the features in their order, so that a reader can select the same columns again.

    `weights`: the column that says how much each row counts. `n` and `fingerprint` are of the rows that do,
    `total_weight` is theirs; null beside a column in records from before it, of rows repeated as often as they count.
    `reading`: how the file was read, null where it is a plain table of numbers.
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
    `stability` the weights of the instability, None where none was asked for.
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


@dataclass(frozen=True)
class Box:
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
    box: tuple[Box, ...] | None = None

    def words(self) -> str:
        """Return the side constraints as one text; empty where there is none.

        Examples
        --------
        >>> Side(Restrictions(force_in="a"), (("b", "c"),), (Box("a", 0.0, None),)).words()
        'with a; b, c all or none; a in [0, inf]'
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
    import pandas as pd

    return pd.DataFrame({f.name: [getattr(row, f.name) for row in rows] for f in fields(rows[0])})


class Stored:
    """A record as JSON text and as a file; `schema_name` is what its field `schema` must hold."""

    schema_name: ClassVar[str]

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
            raise CorruptStore(f"record: field schema must be {cls.schema_name!r}, not {schema[:40]!r}")
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
        _check_parts(record, frozenset(record.data.names), "")
        return record


# Fields of any part of a record: names of features, and numbers that are squares, sums or means of absolute values.
NAMES = ("support", "supports", "coefficients", "always", "never", "feature", "other")
SQUARES = (
    "cv_error", "objective", "upper", "error", "value", "best", "threshold", "standard_error", "mae", "instability",
    "instability_upper", "at_low", "at_high", "curve_errors",
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


def _check_parts(part: Any, known: frozenset[str], path: str) -> None:
    """Refuse features that the data have not, a model without a coefficient of its own, and squares below 0."""
    if isinstance(part, tuple):
        for i, item in enumerate(part):
            _check_parts(item, known, f"{path}[{i}]")
    if hasattr(part, "json_items"):  # folds, by column: nothing of them is a part
        inside = {"supports": part.supports, "error": part.error.tolist()}
    elif is_dataclass(part):
        inside = {field.name: getattr(part, field.name) for field in fields(part)}
    else:
        return
    for name, value in inside.items():
        place = f"{path}.{name}".lstrip(".")
        if name in NAMES:
            strange = next((one for one in _flat(value) if isinstance(one, str) and one not in known), None)
            if strange is not None:
                raise CorruptStore(f"record: field {place} names {strange!r}, which data.names has not")
        elif name in SQUARES:
            if any(one is not None and one < 0.0 for one in _flat(value)):
                raise CorruptStore(f"record: field {place} holds a number below 0")
        else:
            _check_parts(value, known, place)
    if "curve_gammas" in inside and len(inside["curve_gammas"]) != len(inside["curve_errors"]):
        raise CorruptStore(f"record: field {path}.curve_errors are not one for each of curve_gammas")
    if "low" in inside and "high" in inside and "pieces" in inside and not inside["low"] < inside["high"]:
        raise CorruptStore(f"record: field {path}.low is not below high")
    if "coefficients" in inside and set(inside["coefficients"]) != set(inside["support"]):
        raise CorruptStore(f"record: field {path}.coefficients is not of the features of support".replace(" .", " "))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list | dict):
        for one in value:
            yield from _flat(one)
    else:
        yield value


@cache
def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"sparsecv_mio": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def versions() -> dict[str, str]:
    """Versions of the package, of Python and of the numerical libraries, for the record; looked up once."""
    return dict(_versions())

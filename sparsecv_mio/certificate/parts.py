"""The parts that the records of several commands share, and records as files."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.json_text import (
    AT,
    Bound,
    Coefficients,
    Count,
    Encoded,
    Gamma,
    Number,
    Seconds,
    checked,
    decode,
    json_pieces,
    plain,
)
from sparsecv_mio.data.reading_options import Applied, Reading
from sparsecv_mio.errors import CorruptStore, SparseCVError, naming_extras
from sparsecv_mio.files import write_text
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.version import __version__
from sparsecv_mio.words import Encode, Loss

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance


NOT_AVERAGED = "no time was left to average the near-best pairs: the model is that of the pair"


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
    read; `hits` (of `iacv`, in records of 0.2) cells whose final support it was the first to name; `nodes` the trees
    spared, at the mean of those grown.
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
    """What one source of bounds cost and brought: subproblem trees, full-data trees, enclosures and so on.

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
class PlanSetting:
    """A number, switch or list of names that decided what a search ran.

    `setting` is its value, null for a limit that is infinite, in a `unit`; `reason` is the condition that turns it on,
    or says why it has this value. `is_default`: neither the data nor the options have changed it.
    """

    name: str
    setting: bool | int | float | str | tuple[int | str, ...] | None
    unit: str
    reason: str
    is_default: bool = True


@dataclass(frozen=True)
class Work:
    """The cost: `mios` cells (gamma, tau, fold) decided by branching, `nodes` of all trees, wall-clock `seconds`.

    `sources`: what each source of bounds cost and brought; `course`: how the gap fell; `plan`: every setting that
    decided what the search ran, as docs/how_it_decides.md lists them. All are empty in records of before, and where no
    grid was searched.
    """

    mios: Count
    nodes: Count
    seconds: Seconds
    engine: str
    oracles: tuple[OracleWork, ...] = ()
    sources: tuple[SourceWork, ...] = ()
    course: tuple[GapStep, ...] = ()
    plan: tuple[PlanSetting, ...] = ()


@dataclass(frozen=True)
class ReadingInfo:
    """How a file was read that is no plain table of numbers: what was asked for, and what was learnt of its columns.

    `columns`: the features as the file names them; a column of words became those of `DataInfo.names` that begin with
    its name. `means` (medians with na median) fill the empty cells of new rows, `levels` are the words of a column in
    the order of their codes. `order`: columns coded by rank, each with its declared words.
    `skip_lines`: numbers of the lines of the file that were left out. `filled`: the columns that had empty cells
    which were filled; null in records from before it. `left_out`: number of rows left out for their empty cells.
    `marked`: columns beside which another one says which cells were empty. `dates`: the numbers that dates became;
    `date_forms`: the form of the dates of each column that held dates.
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
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skip_lines: str | None = None
    filled: tuple[str, ...] | None = None
    dates: tuple[str, ...] = ()
    date_forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranked(self) -> dict[str, tuple[str, ...]]:
        """The words of each column that is coded by rank, in the order of their codes 0, 1, ..."""
        by_rank = self.columns if self.encode == Encode.ORDINAL else self.order
        return {column: self.levels[column] for column in by_rank if column in self.levels}

    @property
    def code_texts(self) -> dict[str, str]:
        """The codes of each of these columns: `poor = 0, fair = 1, good = 2`."""
        return {
            column: ", ".join(f"{word} = {code}" for code, word in enumerate(words))
            for column, words in self.ranked.items()
        }

    @property
    def code_lines(self) -> list[str]:
        """A line for each of these columns."""
        return [f"codes of {column}: {codes}" for column, codes in self.code_texts.items()]


def reading_info(applied: Applied | None) -> ReadingInfo | None:
    """Describe how a file was read, for the record; None for a plain table of numbers."""
    if applied is None or not applied.is_told:
        return None
    words: dict[str, Any] = {
        declared_field.name: getattr(applied.how, declared_field.name) for declared_field in fields(Reading)
    }
    return ReadingInfo(
        **words | {"na": str(applied.how.na), "encode": str(applied.how.encode), "order": applied.how.orders},
        columns=applied.columns,
        means=dict(applied.means), levels=dict(applied.levels), left_out=applied.left_out,
        marked=applied.marked, filled=applied.filled, date_forms=dict(applied.date_forms),
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
            | {"order": info.order or info.ranked}  # before `order` existed, all ranks were alphabetical
        )
    except SparseCVError as error:
        raise CorruptStore(f"record: field data.reading is not valid ({error})") from None
    return Applied(
        how, info.columns, dict(info.means), dict(info.levels), info.left_out, marked=info.marked, filled=info.filled,
        date_forms=dict(info.date_forms),
    )  # fmt: skip


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
    reference: tuple[str, ...] | None = None  # levels against which tables and figures show coefficients of factors


@dataclass(frozen=True)
class SearchRequest(Request):
    """What was asked of a search besides, word for word; None in records from before these fields, too.

    `method_used` is the method that `auto` stands for, `oracles` None where the choice was left to the search,
    `stability` the weights of the instability, None where none was asked for. `scale_within` and `na_within` are
    `folds` where the training rows of each fold say how columns are measured and empty cells filled, else None.
    `sources` has the sources of bounds that were switched off, each with a minus; None where all were on. Only records
    from before 0.2.0 have `engine` and `tau_step`.
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
    sources: tuple[str, ...] | None = None


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
    """The side constraints of one fit, each null where there is none: `together` are chosen all or none.

    `reference` are the levels against which tables and figures show coefficients of factors.
    """

    restrictions: Restrictions | None = None
    together: tuple[tuple[str, ...], ...] | None = None
    box: tuple[CoefficientBox, ...] | None = None
    reference: tuple[str, ...] | None = None

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
        for grid, values in () if request is None else (("gammas", request.gammas), ("taus", request.taus)):
            if not values:
                raise CorruptStore(f"record: field request.{grid} is empty")
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
        self, supports: tuple[tuple[str, ...], ...], which: IntArray, error: FloatArray, decided: BoolArray
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

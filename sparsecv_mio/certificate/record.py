"""The record of a run: the answer with everything needed to check it again.

Two schemas: `sparsecv/1` (`Record`, cross-validation) and `sparsecv-path/1` (`PathRecord`, best subsets on all rows).
Objectives and errors are in squared units of the target, coefficients in units of the file.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.certificate.codec import (
    Bound,
    Count,
    Encoded,
    Gamma,
    Seconds,
    json_pieces,
    parse_object,
    plain,
    read,
    shown,
)
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.files import check_readable, write_text

if TYPE_CHECKING:
    from sparsecv_mio.certificate.fit_record import FitRecord

SCHEMA = "sparsecv/1"
PATH_SCHEMA = "sparsecv-path/1"
MOST_BYTES = 1 << 30  # some ten million folds
Status = Literal["proved", "limit", "interrupted"]
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
class OneSe:
    """The pair of the one-standard-error rule: smallest tau, then largest gamma, within one SE of the minimiser.

    `estimate`: a limit came before the minimiser and every simpler pair were known well enough for the rule.
    """

    gamma: Gamma
    tau: Count
    cv_error: Bound
    lower: float
    upper: Bound
    standard_error: float
    estimate: bool = False


@dataclass(frozen=True)
class Refit:
    """The all-rows fit behind `support`: `lower <= min f <= objective`, `objective = f(support)`."""

    gamma: Gamma
    tau: Count
    objective: float
    lower: float
    upper: Bound
    proved: bool


@dataclass(frozen=True)
class Refined:
    """Gamma improved at the reported tau: `lower <= h(gamma, tau) <= upper`; no part of the certificate.

    `estimate` as in `TableRow`.
    """

    gamma: Gamma
    tau: Count
    cv_error: Bound
    lower: float
    upper: Bound
    estimate: bool = False


@dataclass(frozen=True)
class DescentStep:
    """A move of a coordinate descent: the best pair it met and its CV error, and whether the descent went there.

    `move` is `start`, `gamma` (a gamma step, every tau and fold solved anew) or `line` (other gammas at the same tau).
    `upper` is the certified upper bound, unknown where the tau step only estimates.
    """

    move: str
    gamma: Gamma
    tau: Count
    upper: Bound
    cv_error: Bound = float("inf")
    accepted: bool = True


@dataclass(frozen=True)
class TableRow:
    """The certified interval of one (gamma, tau); `folds_decided` of its `folds` have a completely known optimum.

    `estimate`: some are not. `cv_error` is then taken at the supports with the least training objective known in these
    folds, and moved to the nearer end of the interval where it lies outside.
    """

    gamma: Gamma
    tau: Count
    cv_error: Bound
    lower: float
    upper: Bound
    folds_decided: Count
    folds: Count
    estimate: bool = False


@dataclass(frozen=True)
class ChosenFold:
    """One fold of the reported pair: the support fitted without it and the held-out sum of squares of that fit.

    `decided`: the support is optimal; else it is the one with the least training objective known.
    """

    fold: Count
    support: tuple[str, ...]
    error: float
    decided: bool = True


@dataclass(frozen=True, eq=False)
class ChosenFolds(Sequence[ChosenFold]):
    """Every fold of the reported pair, kept by column: folds share few supports, and there may be millions of folds.

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

    supports: tuple[tuple[str, ...], ...]
    which: NDArray[np.int64]
    error: NDArray[np.float64]
    decided: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        supports: Sequence[Sequence[str]],
        errors: Sequence[float] | NDArray[np.float64],
        decided: Sequence[bool] | None = None,
    ) -> ChosenFolds:
        """From one support and one error per fold; every fold is decided unless it is said which are.

        Examples
        --------
        >>> folds = ChosenFolds.of([["a"], ["b"], ["a"]], [1.0, 2.0, 0.5])
        >>> folds.supports, folds[2].support
        ((('a',), ('b',)), ('a',))
        """
        index: dict[tuple[str, ...], int] = {}
        which = [index.setdefault(tuple(support), len(index)) for support in supports]
        known = np.ones(len(which), dtype=np.bool_) if decided is None else np.asarray(decided, dtype=np.bool_)
        return cls(tuple(index), np.asarray(which, dtype=np.int64), np.asarray(errors, dtype=np.float64), known)

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
        """One line of JSON per fold."""
        if not np.isfinite(self.error).all():
            raise ValueError("record field chosen_folds holds an error that is not finite")
        encoded = [json.dumps(list(support), ensure_ascii=False) for support in self.supports]
        words = ("false", "true")
        columns = zip(self.which.tolist(), self.error.tolist(), self.decided.tolist(), strict=True)
        for fold, (which, error, decided) in enumerate(columns):
            line = f'{{"fold": {fold}, "support": {encoded[which]}, "error": {error!r}, "decided": {words[decided]}}}'
            yield Encoded(line)

    @classmethod
    def from_json_items(cls, items: list[Any], field: str) -> ChosenFolds:
        """Inverse of `json_items`; folds must come in order 0, 1, ..."""
        folds = [read(item, ChosenFold, f"{field}[{i}]") for i, item in enumerate(items)]
        for i, fold in enumerate(folds):
            if fold.fold != i:
                raise CorruptStore(f"record: field {field}[{i}].fold must be {i}, not {fold.fold}")
        return cls.of(
            [fold.support for fold in folds], [fold.error for fold in folds], [fold.decided for fold in folds]
        )


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
class DataInfo:
    """Which data: `names` are the features in their order, so that a reader can select the same columns again."""

    n: Count
    p: Count
    target: str
    fingerprint: str
    scale: str
    intercept: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class FoldInfo:
    """Which folds: rebuilt from `spec` and `seed`, compared by `digest`."""

    spec: str
    seed: Count | None
    k: Count
    digest: str


@dataclass(frozen=True)
class Request:
    """What was asked for: the grid, the relative gap, the limits."""

    gammas: tuple[Gamma, ...]
    taus: tuple[Count, ...]
    gap: float
    one_se: bool = False
    time_limit: Seconds | None = None
    threads: Count | None = None


class _Stored:
    """JSON text and files for both schemas."""

    def pieces(self) -> Iterator[str]:
        """The text of `to_json` in pieces: a record of millions of folds is never one string in memory."""
        hints = get_type_hints(type(self), include_extras=True)
        return json_pieces({f.name: plain(getattr(self, f.name), hints[f.name], f.name) for f in fields(self)})  # type: ignore[arg-type]

    def to_json(self) -> str:
        """The record as strict JSON text; unknown bounds (+inf) are null."""
        return "".join(self.pieces())

    def write_record(self, path: str | os.PathLike[str]) -> None:
        """Write the record so that the file is never half-written; a pipe or device is written through.

        Raises
        ------
        BadInput
            The file cannot be written.
        """
        write_text(path, self.pieces(), "record", through=True)


@dataclass(frozen=True)
class Record(_Stored):
    """Answer and certificate of a cross-validation, schema `sparsecv/1`.

    `cv_error` is h(gamma, tau) of the reported pair per row, in squared units of the target, at the supports of
    `chosen_folds`; `lower` bounds the minimum of h over the whole requested grid, `upper` the reported pair
    (pessimistic over ties). `proved` means `upper - lower <= gap * upper + tie_width + allowance` for the requested
    gap; the field `gap` is the relative gap reached. A pair that is proved is the one with the least upper bound; when
    a limit comes first, it is the one with the least `cv_error` found. `estimate`: some fold of the reported pair is
    not decided. Its `cv_error` is then the mean of the errors in `chosen_folds`, moved to the nearer end of the pair's
    interval where it lies outside. With `one_se`, `support`, `coefficients` and `intercept` are fitted at that pair;
    `refit` says at which.

    Examples
    --------
    >>> from sparsecv_mio import Dataset, cross_validate, make_folds
    >>> data = Dataset.from_arrays(np.eye(6)[:, :2] * 3.0, [3.0, 1.0, 0.5, 0.0, -0.5, 0.0])
    >>> record = cross_validate(data, make_folds("loo", data), gammas=[0.1], taus=[1, 2])
    >>> record.status, record.tau, record.gamma
    ('proved', 2, 0.1)
    >>> record.lower <= record.cv_error <= record.upper
    True
    >>> Record.from_json(record.to_json()) == record
    True
    """

    schema: str
    status: str
    gamma: Gamma
    tau: Count
    cv_error: Bound
    lower: float
    upper: Bound
    gap: Bound
    tie_width: float
    allowance: float
    r_squared: float | None
    support: tuple[str, ...]
    coefficients: Mapping[str, float]
    intercept: float
    one_se: OneSe | None
    refit: Refit
    table: tuple[TableRow, ...]
    chosen_folds: ChosenFolds
    work: Work
    data: DataInfo
    folds: FoldInfo
    request: Request
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
    refined: Refined | None = None
    descent: tuple[DescentStep, ...] = ()
    estimate: bool = False

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read a record back.

        Raises
        ------
        CorruptStore
            Not a `sparsecv/1` record, or a field is missing or malformed; the message names it.
        """
        return _from_json(cls, text, SCHEMA)


@dataclass(frozen=True)
class PathRow:
    """Best subset of one (gamma, tau) on all rows: `lower <= min f <= upper`, `objective = f(support)`."""

    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    coefficients: Mapping[str, float]
    intercept: float
    objective: float
    lower: float
    upper: Bound
    proved: bool


@dataclass(frozen=True)
class PathRecord(_Stored):
    """Best subsets on all rows for every (gamma, tau), schema `sparsecv-path/1`."""

    schema: str
    status: str
    path: tuple[PathRow, ...]
    work: Work
    data: DataInfo
    request: Request
    warnings: tuple[str, ...]
    versions: Mapping[str, str]

    @classmethod
    def from_json(cls, text: str) -> PathRecord:
        """Read a path record back; raises `CorruptStore` like `Record.from_json`."""
        return _from_json(cls, text, PATH_SCHEMA)


def _from_json(cls: Any, text: str, schema: str) -> Any:
    entries = parse_object(text)
    if entries.get("schema") != schema:
        raise CorruptStore(f"record: field schema must be {schema!r}, not {shown(entries.get('schema'))}")
    record = read(entries, cls, "")
    if record.status not in STATUSES:
        raise CorruptStore(f"record: field status must be one of {', '.join(STATUSES)}, not {record.status[:40]!r}")
    return record


def read_record(path: str | os.PathLike[str]) -> Record | PathRecord | FitRecord:
    """The record stored at `path`, of any of the three schemas.

    Raises
    ------
    CorruptStore
        The file cannot be read, is no regular file, is larger than 1 GiB, or is not a record.
    """
    from sparsecv_mio.certificate.fit_record import FIT_SCHEMA, FitRecord

    check_readable(path, "record", CorruptStore, MOST_BYTES)
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except OSError as error:
        raise CorruptStore(f"cannot read record {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CorruptStore(f"record {path}: not a text file") from None
    schema = parse_object(text).get("schema")
    if schema == PATH_SCHEMA:
        return PathRecord.from_json(text)
    if schema == FIT_SCHEMA:
        return FitRecord.from_json(text)
    return Record.from_json(text)


@cache
def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"sparsecv_mio": _own_version(), "python": platform.python_version()}
    for package in ("numpy", "scipy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def versions() -> dict[str, str]:
    """Versions of the package, of Python and of the numerical libraries, for the record; looked up once."""
    return dict(_versions())


def _own_version() -> str:
    from sparsecv_mio import __version__

    return __version__

"""Records of `path`, `fit`, `near` and of the best subset that all folds share.

Objectives and errors are in squared units of the target; coefficients are in units of the target per unit of the
column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from sparsecv_mio.certificate import parts
from sparsecv_mio.certificate.predicting import DrawnModel
from sparsecv_mio.digits import format_interval, format_number, several

if TYPE_CHECKING:
    import pandas as pd


from sparsecv_mio.certificate.predicting import LinearModel
from sparsecv_mio.certificate.records import Classes, Counts, PathRow
from sparsecv_mio.implementations import find_implementation

PATH_SCHEMA = "sparsecv-path/1"
FIT_SCHEMA = "sparsecv-fit/1"


@dataclass(frozen=True)
class SurfacePiece:
    """An interval of gamma on which the best subset of tau features is known: one of `supports`.

    `supports` are positions in the surface. Several of them are tied or cross on the interval: their objectives agree
    to 1e-9. If not `proved`, a limit came first and none is known.
    """

    tau: parts.Count
    low: parts.PositiveGamma
    high: parts.PositiveGamma
    supports: tuple[parts.Count, ...]
    proved: bool


@parts.with_short_repr
@dataclass(frozen=True)
class Surface:
    """The best subset of every size as a function of gamma: pieces that cover the interval for every tau."""

    low: parts.PositiveGamma
    high: parts.PositiveGamma
    supports: tuple[tuple[str, ...], ...]
    pieces: tuple[SurfacePiece, ...]


@dataclass(frozen=True)
class PathRecord(parts.JsonRecord, DrawnModel):
    """Full-data best subsets for every (gamma, tau), schema `sparsecv-path/1`.

    If an interval of gamma was requested, `surface` has the best subset of every tau as a function of gamma. The rows
    of the path then belong to the two ends of the interval. With logistic loss `classes` is set, and objectives are
    sums of log losses.
    """

    schema_name: ClassVar[str] = PATH_SCHEMA

    schema: str
    status: str
    path: tuple[PathRow, ...]
    work: parts.Work
    data: parts.DataInfo
    request: parts.GridRequest
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
    surface: Surface | None = None
    classes: Classes | None = None
    counts: Counts | None = None

    def __repr__(self) -> str:
        taus, gammas = self.request.taus, self.request.gammas
        return f"PathRecord({self.status}: tau {taus[0]} to {taus[-1]}, {several(len(gammas), 'gamma')})"

    def to_frame(self, data: Any = None) -> pd.DataFrame:
        """Return the fits as a pandas frame with a column for every field of `PathRow`.

        Parameters
        ----------
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            Data of the record, as they were fitted. The frame then also has the columns R^2, adjusted R^2, Cp and BIC,
            as defined in R's leaps; with another loss than squared error, deviance, the share of the deviance that is
            explained, AIC, BIC and, for counts and trials, Pearson's chi-square / degrees of freedom with its standard
            error.
        """
        frame = parts.make_frame(self.path)
        if data is not None:
            fits = find_implementation("criteria")(
                self.path, find_implementation("data_of")(self, data), self.data.intercept != "none", self
            )
            for name in fits[0]._fields:
                values = [getattr(fit, name) for fit in fits]
                if name != "scatter":
                    frame[name] = values
                elif None not in values:
                    frame["pearson"] = [scatter.ratio for scatter in values]
                    frame["pearson_standard_error"] = [scatter.standard_error for scatter in values]
        return frame


@dataclass(frozen=True)
class FitRecord(parts.JsonRecord, LinearModel, DrawnModel):
    """Full-data best subset of one (tau, gamma), by one backend.

    `objective` is `||y - Xb||^2 + (gamma / 2) ||b||^2` of the support in the scaled columns. With logistic loss,
    `classes` is set, and the sum of the log losses of all rows replaces the squares in `objective`.
    `lower <= optimum <= upper`. `proved` means `upper - lower <= gap * upper + allowance` for the requested gap:
    `allowance`, in the same units, is subtracted from the dual bound of the solver for its numerical error
    (docs/backends.md). The field `gap` is the relative gap reached. `seconds` is the time inside the solver, and
    `setup_seconds` the remaining time except reading the data. With an `assumed_box` M the certificate is conditional:
    `lower`, and therefore `proved`, hold for models with coefficients in [-M, M]. `side` has the side constraints on
    the models; null in older records, for which they are not known.
    """

    schema_name: ClassVar[str] = FIT_SCHEMA

    schema: str
    backend: str
    formulation: str
    status: str
    tau: parts.Count
    gamma: parts.Gamma
    support: tuple[str, ...]
    coefficients: parts.Coefficients
    intercept: parts.Number
    objective: parts.Number
    lower: parts.Number
    upper: parts.Bound
    gap: parts.Bound
    requested_gap: parts.Number
    allowance: parts.Number
    nodes: parts.Count
    cuts: parts.Count
    seconds: parts.Seconds
    setup_seconds: parts.Seconds
    stop: str
    raw_status: str
    data: parts.DataInfo
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
    assumed_box: parts.Bound | None = None
    side: parts.Side | None = None
    solver_option: tuple[str, ...] | None = None
    classes: Classes | None = None
    counts: Counts | None = None

    def __repr__(self) -> str:
        pair, ends = f"tau={self.tau}, gamma={format_number(self.gamma)}", format_interval(self.lower, self.upper)
        condition = "" if self.assumed_box is None else f" if coefficients are within {self.assumed_box:g}"
        return f"FitRecord({self.status}: {pair}, objective {format_number(self.objective)} in {ends}{condition})"


NEAR_SCHEMA = "sparsecv-near/1"
COMMON_SCHEMA = "sparsecv-common/1"


@dataclass(frozen=True)
class NearModel:
    """A support of `tau` features and its `value`: training objective or CV error, as `NearRecord.by` states."""

    tau: parts.Count
    support: tuple[str, ...]
    value: parts.Number


@dataclass(frozen=True)
class Replacement:
    """The number of `pairs` of listed supports that differ by exchanging one feature for another."""

    feature: str
    other: str
    pairs: parts.Count


@parts.with_short_repr
@dataclass(frozen=True)
class NearSize:
    """The certified statements about the supports of `tau` features.

    `lower <= minimum value <= best`, where `best` is the value of a listed model, rounded up. A support belongs to the
    list if its value is at most `threshold = (1 + within) best`. Every support with a value below `complete_to` is
    listed; `complete_to` is `threshold` unless the maximum number of models or a limit cuts the list. `always` and
    `never` are the features in every, or in no, support with a value below `complete_to`; both are empty if no such
    support is known. `models` is the number of listed models.
    """

    tau: parts.Count
    best: parts.Bound
    lower: parts.Number
    threshold: parts.Bound
    complete_to: parts.Number
    models: parts.Count
    always: tuple[str, ...]
    never: tuple[str, ...]
    replacements: tuple[Replacement, ...]

    @property
    def complete(self) -> bool:
        """True if no model that belongs to the list is missing."""
        return self.complete_to >= self.threshold


@dataclass(frozen=True)
class NearRecord(parts.JsonRecord):
    """Every support that is near-optimal for its size at one gamma, schema `sparsecv-near/1`.

    `by` is `objective`, `||y - Xb||^2 + (gamma / 2) ||b||^2` on all rows, or `cv`, the CV error of one support in every
    fold. If `classes` is set, log losses replace the squares, and if `counts` is set, half deviances. `models` are
    sorted by size, then by value. `most` is the requested maximum number of models of each size. Status `proved` means
    that no limit cut a list. `chosen` is the status of the cross-validation that chose gamma and, if it was not
    requested, tau; null if both were given.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio import Dataset, near_optimal
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3] * 3.0, [3.0, 2.9, 0.5, 0.0, -0.5, 0.0])
    >>> record = near_optimal(data, gamma=0.1, taus=1, within=0.2, by="objective")
    >>> [model.support for model in record.models]
    [('x0',), ('x1',)]
    >>> record.sizes[0].never
    ('x2',)
    >>> NearRecord.from_json(record.to_json()) == record
    True
    """

    schema_name: ClassVar[str] = NEAR_SCHEMA

    schema: str
    status: str
    by: str
    within: parts.Number
    most: parts.Count | None
    gamma: parts.Gamma
    chosen: str | None
    sizes: tuple[NearSize, ...]
    models: tuple[NearModel, ...]
    work: parts.Work
    data: parts.DataInfo
    folds: parts.FoldInfo | None
    request: parts.GridRequest
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
    classes: Classes | None = None
    counts: Counts | None = None

    def __repr__(self) -> str:
        taus = [size.tau for size in self.sizes]
        sizes = f"tau={taus[0]}" if len(taus) == 1 else f"tau {taus[0]} to {taus[-1]}"
        return (
            f"NearRecord({self.status}: {several(len(self.models), 'model')} within a relative excess "
            f"of {self.within:.3g}, {sizes})"
        )

    def summary(self) -> str:
        """Return the answer in a few lines: each size with its bounds, and the features of its best model."""
        lines = [repr(self).removeprefix("NearRecord(").removesuffix(")")]
        for size in self.sizes:
            best = min((model for model in self.models if model.tau == size.tau), key=attrgetter("value"), default=None)
            found = f"best model: {', '.join(best.support)}" if best else "no model found"
            interval = format_interval(size.lower, size.best)
            listed = "all listed" if size.complete else "list not complete"
            lines.append(f"tau={size.tau}: minimum in {interval}, {several(size.models, 'model')}, {listed}; {found}")
        return "\n".join([*lines, f"{self.data.n} rows, gamma={format_number(self.gamma)}"])

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame with a column for every field of `NearModel`."""
        return parts.make_frame(self.models)


@dataclass(frozen=True)
class CommonRow:
    """The best known support shared by all folds for one (gamma, tau), with bounds on the minimum CV error.

    The minimum is over all supports shared by the folds: `lower <= minimum CV error <= cv_error`, up to rounding. The
    search only continues until the pair is excluded: `lower` is then that of the whole record, whatever the distance to
    `cv_error`.
    """

    gamma: parts.Gamma
    tau: parts.Count
    support: tuple[str, ...]
    cv_error: parts.Bound
    lower: parts.Number


@dataclass(frozen=True)
class CommonRecord(parts.JsonRecord, LinearModel, DrawnModel):
    """The subset with the minimum CV error if all folds share it, schema `sparsecv-common/1`.

    `cv_error` is that of `support` at `gamma`: the mean of squared held-out residuals, of held-out log losses if
    `classes` is set, or of half deviances if `counts` is set. `lower` bounds its minimum over all gammas of the grid
    and all supports of the sizes `taus`; `upper` is `cv_error` rounded up. `coefficients` and `intercept` belong to the
    full-data fit. `proved` means `upper - lower <= gap * upper` for the requested gap, up to rounding; the field `gap`
    is the relative gap reached.
    """

    schema_name: ClassVar[str] = COMMON_SCHEMA

    schema: str
    status: str
    gamma: parts.Gamma
    tau: parts.Count
    cv_error: parts.Bound
    lower: parts.Number
    upper: parts.Bound
    gap: parts.Bound
    support: tuple[str, ...]
    coefficients: parts.Coefficients
    intercept: parts.Number
    table: tuple[CommonRow, ...]
    work: parts.Work
    data: parts.DataInfo
    folds: parts.FoldInfo
    request: parts.GridRequest
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
    classes: Classes | None = None
    counts: Counts | None = None

    def __repr__(self) -> str:
        ends = format_interval(self.lower, self.upper)
        return (
            f"CommonRecord({self.status}: tau={self.tau}, gamma={format_number(self.gamma)}, "
            f"CV error {format_number(self.cv_error)} in {ends})"
        )

    @property
    def rmse(self) -> float:
        """Root mean squared error of held-out rows, in units of the target."""
        return math.sqrt(self.cv_error)

    @property
    def beside_error(self) -> str:
        """Text next to the CV error: its root, or the loss of the class frequencies or of the mean rate."""
        if self.loss.is_quadratic:
            return f"RMSE {format_number(self.rmse)}"
        null = "" if self.null_error is None else f" ({self.null_name} {format_number(self.null_error)})"
        return f"{self.wording.cv_error}{null}"

    def to_frame(self) -> pd.DataFrame:
        """Return the table of all pairs (gamma, tau) as a pandas frame with a column for every field of `CommonRow`."""
        return parts.make_frame(self.table)

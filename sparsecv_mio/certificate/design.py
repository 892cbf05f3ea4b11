"""The class `Design`, which supplies the data, the folds and the fits to the verification of a record.

The checks of a record are written once, for any `Design`. To verify that a support is optimal, `RidgeDesign`
(squared-error loss) tries all supports, and `GlmDesign` (logistic and Poisson loss) and its subclass `CoxDesign` (Cox
loss) use branch and bound. All three classes describe a support by the sorted positions of its features in `columns`,
the list of selectable features. None of the classes uses code of the search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.restrictions import AllowedSupports, positions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.problem.glm_objective import GlmModel
from sparsecv_mio.problem.objective import RidgeFit, ridge_weights, varying_columns
from sparsecv_mio.targets import DEFAULT_LOSS, Loss

Support = tuple[int, ...]  # sorted positions in the columns of a design
Pair = tuple[float, int]  # gamma and tau
Model = RidgeFit | GlmModel
Tell = Callable[[int, int], None]  # called with the numbers of finished and of all steps


class HeldOut(NamedTuple):
    """Held-out losses of the folds of a pair at given supports, and the values that a search may report for them.

    Attributes
    ----------
    losses, lower, upper : (k,) arrays
        Losses of the folds, and bounds on reported losses.
    mean_room : float
        Tolerance for the CV error.
    mae : float or None
        Mean absolute error, if it is known.
    mae_room : float
        Tolerance for the mean absolute error.
    predictors : (m,) array or None
        Linear predictors of the held-out rows, if the loss needs them.
    how : str
        Method.
    """

    losses: FloatArray
    lower: FloatArray
    upper: FloatArray
    mean_room: float
    mae: float | None = None
    mae_room: float = 0.0
    predictors: FloatArray | None = None
    how: str = ""


class RowLosses(NamedTuple):
    """Held-out losses (n,) of rows, and a bound on the rounding error of their mean.

    If several folds score a row, its loss is the mean over these folds.
    """

    losses: FloatArray
    noise: float


@dataclass(frozen=True, eq=False)
class FoldOptima:
    """Held-out losses over the optimal supports of each fold, and these supports.

    A valid lower bound of a fold is at most `low`, a valid upper bound at least `high`. All supports that may count as
    tied have losses from `loose_low` to `loose_high`, and a correct interval need not be wider.
    """

    low: FloatArray
    high: FloatArray
    loose_low: FloatArray
    loose_high: FloatArray
    supports: list[list[Support]]


@dataclass(frozen=True, eq=False)
class Design(ABC):
    """Columns of a data set that may be in a support, with the folds of a record and fits of its loss.

    Attributes
    ----------
    dataset : Dataset
        Data set in the form of the loss.
    scale, intercept : str
        Unit of the penalty, and type of the intercept.
    columns : (q,) int array
        Positions in the data set.
    free : tuple of int
        Positions in the data set of unpenalised columns.
    forced : tuple of int
        Positions in `columns` of the columns in every support.
    allowed : AllowedSupports, optional
        Restrictions other than forced columns, if there are any.
    plan : FoldPlan, optional
        Folds.
    loss : Loss
        Loss of the fits.
    """

    dataset: Dataset
    scale: str
    intercept: str
    columns: IntArray
    free: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    allowed: AllowedSupports | None = None
    plan: FoldPlan | None = None
    loss: Loss = DEFAULT_LOSS

    how: ClassVar[str]  # method of comparing with all supports
    proved_rtol: ClassVar[float]  # minimum relative width at which a full-data fit is proved
    tie_rtol: ClassVar[float]  # relative difference of objectives that a search may have treated as tied
    bounds_ties: ClassVar[bool]  # True if the interval of a solved pair is exact up to ties and rounding

    @classmethod
    def from_restrictions(
        cls, dataset: Dataset, scale: str, intercept: str, restrictions: Restrictions | None, **more: Any
    ) -> Self:
        """Return the varying columns that are not forced out, with the forced columns marked.

        Parameters
        ----------
        scale : {"length", "variance", "none"}
            Unit in which the penalty measures columns.
        intercept : {"fold", "global", "none"}
            Type of the intercept.
        restrictions : Restrictions or None
            Restrictions by names of the data.
        **more
            Further attributes.
        """
        wanted, varying, names = restrictions or NONE, varying_columns(dataset.X), np.array(dataset.names)
        columns = varying[~np.isin(names[varying], wanted.force_out)]
        chosen = tuple(names[columns].tolist())
        free = tuple(j for j, penalty in enumerate(wanted.penalties(dataset.names)) if not penalty)
        forced = tuple(i for i, name in enumerate(chosen) if name in wanted.forced_columns)
        allowed = AllowedSupports(chosen, wanted) if wanted.side_constraints else None
        return cls(dataset, scale, intercept, columns, free, forced, allowed, **more)

    @property
    def error_name(self) -> str:
        """Name of a held-out loss."""
        return "error"

    @property
    def n_fits(self) -> int:
        """Number of fits that branching has made."""
        return 0

    @property
    def limit_words(self) -> str:
        """Reason that branching takes too many fits."""
        return ""

    # -- columns and supports ---------------------------------------------------------------------------------------

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.columns.shape[0])

    @property
    def terms(self) -> int:
        """Number of features that may be chosen, a factor as one, without adjustment columns."""
        return self.q - len(self.adjusted_columns) if self.allowed is None else len(self.allowed.selectable)

    @cached_property
    def adjusted_columns(self) -> frozenset[int]:
        """Positions in `columns` of the adjustment columns."""
        return frozenset(np.flatnonzero(np.isin(self.columns, list(self.free))).tolist())

    @cached_property
    def adjusted_names(self) -> list[str]:
        """Names of the adjustment columns."""
        return [self.dataset.names[j] for j in self.free]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.dataset.names[j] for j in self.columns.tolist())

    @cached_property
    def index(self) -> dict[str, int]:
        """Position in `columns` by name."""
        return {name: i for i, name in enumerate(self.names)}

    def join_names(self, support: Iterable[int]) -> str:
        """Return the names of a support as a list."""
        return ", ".join(self.names[j] for j in support)

    def most_columns(self, tau: int) -> int:
        """Return the maximum number of columns of a model of tau features, with the adjustment columns."""
        return min(tau + len(self.adjusted_columns), self.q) if self.allowed is None else self.allowed.columns(tau)

    def positions(self, features: Iterable[str]) -> Support | None:
        """Return the sorted positions of a support that a record states; None if it is not a set of features.

        Parameters
        ----------
        features : iterable of str
            Names of its features, without adjustment columns.
        """
        return positions(features, self.index, self.adjusted_names)

    def places(self, model: Model) -> Support:
        """Return the positions in `columns` of the columns of a fit."""
        return tuple(np.searchsorted(self.columns, model.support).tolist())

    def count(self, support: Sequence[int]) -> int:
        """Return the number of features that a support counts as."""
        return len(set(support) - self.adjusted_columns) if self.allowed is None else self.allowed.count(support)

    def supports(self, tau: int) -> IntArray:
        """Return (C, s) all supports of one tau within the restrictions, as sorted positions in `columns`."""
        size = max(self.most_columns(tau), len(self.forced))
        others = [j for j in range(self.q) if j not in self.forced]
        sets = [sorted((*self.forced, *free)) for free in combinations(others, size - len(self.forced))]
        return np.array(sets, dtype=np.int64).reshape(len(sets), size)

    def sets(self, tau: int) -> list[IntArray]:
        """Return the column sets of models of up to tau features, as sorted positions in `columns`, by size."""
        return [self.supports(tau)] if self.allowed is None else list(self.allowed.support_tables(tau).values())

    def exactly(self, tau: int) -> list[IntArray]:
        """Return the column sets of models of exactly tau features, as sorted positions, by number of columns."""
        return [self.supports(tau)] if self.allowed is None else self.allowed.exactly(tau)

    # -- rows and folds ---------------------------------------------------------------------------------------------

    @property
    def folds(self) -> FoldPlan:
        """Folds, in a record that has some."""
        assert self.plan is not None
        return self.plan

    @cached_property
    def scored(self) -> Scored:
        """Weights of the rows that the folds score."""
        return Scored.of(self.dataset, self.folds)

    @cached_property
    def total_weight(self) -> float:
        """Total weight of all rows."""
        return self.dataset.weight_of(slice(0, self.dataset.n))

    @cached_property
    def times(self) -> IntArray:
        """(n,) numbers of times that folds score each row."""
        return np.bincount(self.folds.all_scored, minlength=self.dataset.n)

    def average_scored(self, losses: FloatArray) -> float:
        """Return the CV error of the given (n,) losses of rows."""
        weights = self.dataset.row_weights
        counts = self.times.astype(np.float64) if weights is None else self.times * weights
        return float(losses @ counts) / float(counts.sum())

    def ridge_weights(self, columns: Sequence[int], gamma: float, rows: IntArray | None) -> float | FloatArray:
        """Return gamma, or an array with a ridge weight for each column of a fit to some rows if they differ.

        They differ if some columns are unpenalised, or if scales differ between folds (`Dataset.scales`).
        """
        weights, scales = ridge_weights(columns, self.free, gamma), self.dataset.scales
        return weights if scales is None else weights * scales.of_rows(rows)[list(columns)] ** 2

    # -- computations of a loss -------------------------------------------------------------------------------------

    @abstractmethod
    def refit(self, support: Sequence[int] | IntArray, gamma: float, rows: IntArray | None) -> Any:
        """Return the fit of a support by the definition of the loss.

        Parameters
        ----------
        support : (s,) int array or tuple
            Positions in `columns`.
        rows : int array or None
            Training rows; None: all rows.
        """

    @property
    def has_bounds(self) -> bool:
        """True if fits are within bounds on coefficients; signs alone restrict supports, except with a smooth loss."""
        return self.allowed is not None and self.allowed.asked.has_bounds

    def has_required_signs(self, support: Sequence[int] | IntArray, model: Any) -> bool:
        """Return True if the coefficients of a fit satisfy the sign constraints."""
        return True

    @abstractmethod
    def rounding(self, model: Any) -> float:
        """Return a bound on the difference between the objective of a full-data fit and that of a search."""

    @abstractmethod
    def objective_slack(self, objective: float) -> float:
        """Return the same bound for the objective of a listed support."""

    @abstractmethod
    def refit_rounding(self, objective: float, train: IntArray | None = None) -> float:
        """Return a bound on the rounding error of the objective of a refit to some rows."""

    @abstractmethod
    def slack(self, h: float, gamma: float, tau: int, relative: float) -> float:
        """Return a bound on the rounding error of a mean held-out loss of a search.

        Parameters
        ----------
        h : float
            Weighted mean.
        relative : float
            Relative rounding error.
        """

    @abstractmethod
    def refit_slack(self, h: float) -> float:
        """Return a bound on the rounding error of a mean held-out loss of refits."""

    @abstractmethod
    def coefficient_rooms(self, support: Support, gamma: float, model: Any) -> FloatArray:
        """Return (s,) tolerances for the coefficients of a full-data fit."""

    @abstractmethod
    def expected_intercept(self, model: Any, beta: FloatArray, rooms: FloatArray) -> tuple[float, float]:
        """Return the intercept of a full-data fit with given coefficients, and its tolerance.

        Parameters
        ----------
        beta : (s,) array
            Coefficients of the record where they agree with the refit, and coefficients of the refit elsewhere.
        rooms : (s,) array
            Tolerances for the coefficients of the refit in `beta`; 0 for those of the record.
        """

    @abstractmethod
    def held_out(self, model: Any, rows: IntArray, dataset: Dataset | None = None) -> tuple[float, float]:
        """Return the loss of some rows, and a bound on its rounding error.

        Parameters
        ----------
        dataset : Dataset, optional
            Data set with these rows, if the design has the training rows only.
        """

    @abstractmethod
    def held_out_losses(self, supports: Sequence[Support], gamma: float, tau: int, tell: Tell) -> HeldOut:
        """Return the held-out losses of every fold at its given support.

        Parameters
        ----------
        supports : sequence of tuple of int
            Supports by fold.
        tell : callable
            Function that is called with the progress.
        """

    @abstractmethod
    def held_out_rows(self, supports: Sequence[Support], gamma: float, tau: int) -> RowLosses:
        """Return the held-out losses of rows, at one support for each fold."""

    @abstractmethod
    def optima_obstacle(
        self, pairs: Sequence[Pair], reported: Mapping[Pair, list[Support]], start: Support, tell: Tell,
        of_grid: bool = False,
    ) -> str:  # fmt: skip
        """Return the reason why `fold_optima` is too expensive for some pairs; empty if it is not.

        Parameters
        ----------
        pairs : sequence of (gamma, tau)
            Pairs.
        reported : mapping of pair to list of tuple of int
            Supports of all folds that the record states for some pairs.
        start : tuple of int
            A good support of other pairs.
        tell : callable
            Function that is called with the progress.
        of_grid : bool
            True for all pairs of a grid.
        """

    @abstractmethod
    def fold_optima(self, gamma: float, tau: int) -> FoldOptima:
        """Return the optima of every fold of one pair."""

    @abstractmethod
    def full_data_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why `best_fit` is too expensive for a grid; empty if no reason is known in advance."""

    @abstractmethod
    def best_fit(self, gamma: float, tau: int, start: Support = (), most: int | None = None) -> Any:
        """Return the full-data fit with the minimum objective; None if this takes too many fits.

        Parameters
        ----------
        tau : int
            Maximum number of features.
        start : tuple of int
            A good support.
        most : int, optional
            Maximum number of fits.
        """

    # -- losses of all rows, for the instability --------------------------------------------------------------------

    @abstractmethod
    def row_losses(self, support: Support, gamma: float, train: IntArray | None) -> FloatArray:
        """Return (n,) weighted losses of the fit of a support to some rows, or to all rows for None."""

    @abstractmethod
    def change_noise(self, losses: FloatArray, level: float) -> float:
        """Return a bound on the rounding of a mean change of losses."""

    @abstractmethod
    def change_room(self, pair: Pair, largest: float) -> float:
        """Return a bound on the rounding allowed in an interval for nearly singular fits, by the largest loss of a row.

        Each of two models may have this error.
        """

    @abstractmethod
    def optimal_losses(
        self, fold: int | None, pair: Pair, start: Support
    ) -> tuple[list[FloatArray], list[FloatArray]] | None:
        """Return the row losses of the tied optima without a fold, and of all possible ties; None if unknown.

        Parameters
        ----------
        fold : int or None
            Fold that is held out; None for the full-data optima.
        pair : gamma, tau
            Pair of the models.
        start : tuple of int
            A good support.
        """

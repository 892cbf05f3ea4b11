"""Problems with logistic or Poisson loss.

Newton's method fits the models. Trees use quadratic lower bounds of the objective. Newton steps from the full-data fit
give the fits without each fold. Columns are in the units of the file; each tree centres and scales them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, FloatArray, IntArray
from sparsecv_mio.bounds.cv_error import bound_weighted_by_all_columns
from sparsecv_mio.bounds.more_weight import HeldOutWeightedBounds
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.parallel import Hands, Moment
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.row_losses import row_loss
from sparsecv_mio.search.problems.protocol import Capability, Enclosed, Fits, FoldProblem, IsExpired, Problems
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.thresholds import FEW_FOLDS
from sparsecv_mio.trees.glm_left_out import LeftOut
from sparsecv_mio.trees.glm_subsets import GlmSubsets, SubsetFits, make_held_out_folds, make_subsets, rows_in_units
from sparsecv_mio.trees.near_best_held_out import NearBestHeldOut
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.units import FROM_ROWS, SUM_RTOL, WORST_ROUNDING

Rows = Callable[[], Any]  # of what scores held-out rows: columns, targets and weights of some rows, or their risk sets
MAX_STORED_NUMBERS = STORE_BYTES // 32  # numbers in the rows of stored fold problems, each with about four copies


def rounding_of_sums(data: StandardData) -> float:
    """Return the bound on the rounding error of sums of losses over a fold and its training rows."""
    return SUM_RTOL * data.dataset.weight_of(slice(0, data.n))


@dataclass(frozen=True, eq=False)
class SmoothProblem(FoldProblem):
    """The training rows of a fold, or the full data, at one gamma.

    Attributes
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    fold : int
        Index of the fold, `ALL_ROWS` for the full data.
    grid : Grid
        Grid of the search.
    gamma : float
        Value of gamma.
    subsets : GlmSubsets
        Best subsets of the training rows.
    do : callable
        Function that runs a work unit here or on a worker of a cluster, as :meth:`sparsecv_mio.parallel.Hands.do`.
    find_left_out : callable
        Function that returns the rows of every fold, with fits of the full data.
    find_held_out_rows : callable
        Function that returns the held-out rows of the fold as :func:`rows_in_units`; all gammas share the rows.
    """

    values_are_upper_bounds: ClassVar[bool] = True  # the values of fits by Newton steps

    data: StandardData
    folds: FoldPlan
    fold: int
    grid: Grid
    gamma: float
    subsets: GlmSubsets
    do: Callable[..., BestSubsets]
    find_left_out: Callable[[SmoothProblem], LeftOut]
    find_held_out_rows: Rows

    @property
    def capabilities(self) -> Capability:
        """Capabilities of the problem beyond `solve`, `fit` and `enclose`; fewer with terms of several columns.

        With bounds on coefficients, no capability takes steps from the full-data fit, because steps ignore the bounds.
        """
        capabilities = Capability.WEIGHTED_RELAXATIONS
        if self.subsets.terms:
            return capabilities
        capabilities |= Capability.FULL_DATA_RELAXATIONS
        if not (self.data.dataset.has_scales_of_folds or self.data.coefficient_bounds):
            capabilities |= Capability.HELD_OUT_LISTS | Capability.HOLD_OUT
        return capabilities

    def _with_supports(self, supports: Sequence[IntArray] = ()) -> GlmSubsets:
        """Return the subsets with some warm starts only, without the supports and fits of earlier calls."""
        fresh = copy(self.subsets)
        fresh.fits, fresh._good = self.subsets.fits.copy_without_fits(), {}
        for support in supports:
            fresh._good.setdefault(len(support), []).append(frozenset(support.tolist()))
        return fresh

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve sizes one by one by trees of minorants."""
        return self.do(
            GlmSubsets.solve, self._with_supports(), list(sizes), list(warm_starts), node_limit, cutoffs,
            threads=n_threads, exchanges=exchanges, until=Moment(is_expired),
        )  # fmt: skip

    def relax(self, sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """Bound the optima of some sizes by the roots of their trees."""
        return self.do(GlmSubsets.relax, self._with_supports(), list(sizes), list(supports), until=Moment(is_expired))

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports by Newton steps, or from the rows if normal equations lose digits.

        The supports of the fits lack the columns that bounds of 0 hold at 0.
        """
        fits, low, high, losses = self._score(supports)
        scored = Fits(
            fits.supports, fits.lower, fits.upper, low, high, losses, fits.upper.copy(),
            np.zeros(len(losses), dtype=bool),
        )  # fmt: skip
        room = self._negligible(fits.upper)
        for i in np.flatnonzero(~(np.isfinite(high) & (high - low <= FROM_ROWS * losses + room))).tolist():
            self._refit_from_rows(scored, i, supports[i])
        low, high, losses = scored.held_out_lower, scored.held_out_upper, scored.held_out
        scored.is_accurate[...] = np.isfinite(high) & (high - low <= WORST_ROUNDING * losses + room)
        scored.objective[...] = scored.objective_upper
        return scored

    def include_columns_at_zero(self, subsets: Sequence[BestSubset]) -> tuple[Sequence[BestSubset], FloatArray | None]:
        """Return the subsets, and an infinite change for candidates whose fit here has more columns than a support.

        Such a candidate differs by rounding from the fit of the tree, which proved that its optimal supports agree.
        """
        listed = [(columns, self.subsets.n_columns(subset.tau)) for subset in subsets
                  for columns in (subset.candidates if subset.complete else (subset.support,))]  # fmt: skip
        if all(len(columns) <= most for columns, most in listed):
            return subsets, None
        active = self.subsets.refit([columns for columns, _ in listed]).supports
        is_larger = [len(support) > most for support, (_, most) in zip(active, listed, strict=True)]
        return subsets, np.where(is_larger, np.inf, 0.0) if any(is_larger) else None

    def _negligible(self, objective: FloatArray) -> FloatArray | float:
        """Return the widths of bounds on held-out losses that are negligible however small the losses are."""
        return 0.0

    def _score(self, supports: Sequence[IntArray]) -> tuple[SubsetFits, FloatArray, FloatArray, FloatArray]:
        """Return fits of supports, bounds on their held-out losses, and these losses."""
        rows = self.find_held_out_rows()
        fits, low, high = self.subsets.score_supports(list(supports), *rows)
        return fits, low, high, np.clip(fits.losses(row_loss(self.data.loss), *rows).sum(axis=1), low, high)

    def _refit_from_rows(self, fits: Fits, i: int, support: IntArray) -> None:
        """Narrow the bounds of a support by a fit from orthogonal factors of its rows."""
        refit = refit_rows(self.data, self.folds.train_rows(self.fold), support, self.gamma)
        if np.count_nonzero(refit.beta) > len(fits.supports[i]):  # other columns at 0 than those of the support
            return
        loss, slip = refit.held_out(self.data, self.folds.scored_rows(self.fold))
        fits.objective_lower[i] = max(fits.objective_lower[i], refit.objective - refit.objective_error)
        fits.objective_upper[i] = min(fits.objective_upper[i], refit.objective + refit.objective_error)
        if not np.isfinite(loss + slip):  # a risk set underflows
            return
        fits.held_out_lower[i] = max(fits.held_out_lower[i], loss - slip)
        fits.held_out_upper[i] = min(fits.held_out_upper[i], loss + slip)
        fits.held_out[i] = np.clip(loss, fits.held_out_lower[i], fits.held_out_upper[i])

    def row_losses(self, supports: Sequence[IntArray]) -> tuple[FloatArray, FloatArray]:
        """Return (L,) upper bounds on training objectives of supports, and (L, m) losses of the held-out rows."""
        fits = self.subsets.refit(list(supports))
        return fits.upper, fits.losses(row_loss(self.data.loss), *self.find_held_out_rows())

    def score(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports without bounds on their held-out losses."""
        fits = self.subsets.refit(list(supports))
        objectives, losses = fits.upper, fits.losses(row_loss(self.data.loss), *self.find_held_out_rows())
        nothing, held_out = np.zeros(len(objectives)), losses.sum(axis=1)
        unbounded, is_accurate = np.full(len(objectives), np.inf), np.zeros(len(objectives), dtype=bool)
        return Fits(fits.supports, nothing, objectives, nothing, unbounded, held_out, objectives, is_accurate)

    def enclose(
        self, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], is_expired: IsExpired,
        relaxes: bool = True,
    ) -> Enclosed:  # fmt: skip
        """Bound the held-out loss of every fit of some sizes by ellipsoids of the level sets."""
        subsets = self._with_supports(supports)
        ends = [
            self._bound_open_fold(subsets, size, float(upper), is_expired)
            for size, upper in zip(sizes, objective_upper, strict=True)
        ]
        lower, upper = np.array(ends).T
        return Enclosed(lower, upper, np.zeros(len(sizes)))

    def _bound_open_fold(
        self, subsets: GlmSubsets, size: int, upper: float, is_expired: IsExpired
    ) -> tuple[float, float]:
        """Bound the held-out loss of every fit of a size with objective at most `upper`."""
        X, y, weights = self.find_held_out_rows()
        return subsets.open_fold_interval(size, upper, X, y, weights, is_expired)

    def hold_out(self, support: IntArray, is_expired: IsExpired) -> tuple[FloatArray, FloatArray]:
        """Return (K,) upper bounds on objectives and (K,) held-out losses, of fits near the full-data fit."""
        fits = self.subsets.fits
        masks = fits.masks([support])
        point = fits.refit(masks, is_expired=is_expired).points[0]
        return self.find_left_out(self).values(masks[0], point, is_expired)

    def make_near_optimal_list(self, size: int, supports: Sequence[IntArray], is_expired: IsExpired) -> NearBestHeldOut:
        """Return bounds on all folds by near-optimal supports of the full data."""
        subsets, slip = self._with_supports(supports), rounding_of_sums(self.data)
        return NearBestHeldOut(subsets, self.find_left_out(self), size, supports, slip, is_expired)

    def bound_weighted(self, is_expired: IsExpired) -> FloatArray:
        """(W, G, T) over the whole grid: lower bounds on objective + weight * held-out loss, by fits of all columns."""
        bounds = HeldOutWeightedBounds(self.grid.gammas, self.grid.taus)
        bound_weighted_by_all_columns(self.data, self.folds, self.fold, bounds, is_expired)
        return bounds.implied_bounds()

    def has_one_support(self, size: int) -> bool:
        """Return True if a size has one possible support, also in every fold: all columns, or the forced ones."""
        fits, n_columns = self.subsets.fits, self.subsets.n_columns(size)
        if self.subsets.terms:
            return size == 0 or (size >= len(self.subsets.terms) and not fits.excludes_zero.any())
        if fits.excludes_zero.any():
            return fits.choice.size(size) == 0
        return fits.choice.size(size) == 0 or n_columns >= int(np.count_nonzero(fits.varies))


class SmoothProblems(Problems):
    """The problems by fold and gamma, built once and stored within a memory limit. Safe to use from several threads.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    grid : Grid
        Grid of the search.
    n_threads : int
        Number of folds that are processed at once.
    hands : Hands, optional
        Executor of work units; the calling thread by default.
    """

    problem_class: ClassVar[type[SmoothProblem]] = SmoothProblem

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, n_threads: int = 1, hands: Hands | None = None
    ) -> None:
        self._hands = hands or Hands()
        self.data, self.folds, self.grid, self.n_threads, self.name = data, folds, grid, n_threads, str(data.loss)
        loss = data.loss.target.row_loss
        self.engine, self.slip = f"trees bounded by tangents of the {loss}", rounding_of_sums(data)
        self._stored: dict[int, tuple[GlmSubsets, Rows, dict[int, SmoothProblem]]] = {}  # by fold: last by gamma
        self._left_out: LeftOut | None = None
        self._lock = threading.RLock()

    def full(self, gamma: int) -> SmoothProblem:
        """Return the problem of the full data at the gamma with an index."""
        return self.fold(ALL_ROWS, gamma)

    def fold(self, fold: int, gamma: int) -> SmoothProblem:
        """Return the problem of a fold at the gamma with an index."""
        with self._lock:
            stored = self._stored.get(fold)
        if stored is None:
            rows = np.arange(self.data.n) if fold == ALL_ROWS else self.folds.train_rows(fold)
            subsets = self._hold_fold_out(fold) or self._make_subsets(rows)
            with self._lock:
                self._forget_folds()
                find_rows = cache(lambda: self._find_held_out(fold))
                stored = self._stored.setdefault(fold, (subsets, find_rows, {}))
        subsets, held_out, by_gamma = stored
        if gamma not in by_gamma:
            value = float(self.grid.gammas[gamma])
            made = self.problem_class(
                self.data, self.folds, fold, self.grid, value, subsets.with_gamma(value), self._hands.do,
                self._rows_of_folds, held_out,
            )  # fmt: skip
            by_gamma.setdefault(gamma, made)
        return by_gamma[gamma]

    def _make_subsets(self, rows: IntArray) -> GlmSubsets:
        """Return the best subsets of some training rows at gamma 1."""
        return make_subsets(self.data, rows)

    def _find_held_out(self, fold: int) -> Any:
        """Return what scores the held-out rows of a fold."""
        return rows_in_units(self.data, self.folds.scored_rows(fold))

    def clear(self) -> None:
        """Remove all stored problems."""
        with self._lock:
            self._stored.clear()
            self._left_out = None

    def _rows_of_folds(self, full: SmoothProblem) -> LeftOut:
        """Return the rows of every fold, with the fits of the full data at a gamma."""
        with self._lock:
            if self._left_out is None:
                self._left_out = make_held_out_folds(self.data, self.folds, full.subsets.fits)
            return self._left_out.with_fits(full.subsets.fits)

    def _hold_fold_out(self, fold: int) -> GlmSubsets | None:
        """Return one of many folds in full-data columns; None for few folds, or if it needs separate columns."""
        if fold == ALL_ROWS or self.folds.k <= FEW_FOLDS or self.data.dataset.has_scales_of_folds:
            return None
        full = self.full(0)
        rows = self._rows_of_folds(full)
        return full.subsets.hold_rows_out(rows.rows[rows.ends[fold] : rows.ends[fold + 1]])

    def _forget_folds(self) -> None:
        """Remove the oldest folds beyond the memory limit; the full data stays."""
        few, n_numbers = self.folds.k <= FEW_FOLDS, self.data.n * (self.data.q + 1)
        most = max(MAX_STORED_NUMBERS // n_numbers if few else 0, self.n_threads)  # many folds are not stored for later
        folds = [fold for fold in self._stored if fold != ALL_ROWS]
        for fold in folds[: max(len(folds) - most + 1, 0)]:
            del self._stored[fold]

"""Bounds of every fold of a plan at every gamma, without branching: the work behind `compute_bounds`.

`printed_ends` are Theorem 2.4 and Corollary 2.7 as the paper prints them. They are false (docs/theory/bounds.md 6):
estimates only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.fold import TIE, UNKNOWN, FoldBounds, Origin, Which, masks_of
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.bounds.reused import Points, points_of, reuse
from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.bounds.training_loss import training_loss_bound
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows, is_wide
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments, row_moments, training_moments

PRINTED = "as-printed"
FULL_SWAPS, FOLD_SWAPS = 6, 2  # rounds of swaps on all rows, and in each fold of a plan with few folds
FEW_FOLDS = 50

Support = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known before the bounds, and which of them are asked for.

    Attributes
    ----------
    supports : iterable of int arrays
        Supports worth trying as incumbents in every fold (columns in standard coordinates).
    wanted : (G, T, K) bool array, optional
        Cells to bound; the others keep the interval [0, inf). All by default.
    moments : iterable, optional
        `(fold, training moments)` of every fold, where somebody else makes them.
    reusing : bool
        Test the relaxation of all rows in a fold before relaxing there (`safe`; :mod:`sparsecv_mio.bounds.reused`): the
        test pays where a relaxation costs more than some 20 us, that is for more than a few dozen columns.
    """

    supports: Iterable[Support] = ()
    wanted: BoolArray | None = None
    moments: Iterable[tuple[int, Moments]] | None = None
    reusing: bool = False


@dataclass(frozen=True, eq=False)
class BoundsHooks:
    """Who is told of the course, and what ends it early.

    Attributes
    ----------
    progress : callable, optional
        Called with (folds done, folds in all).
    expired : callable, optional
        Once it returns True, the remaining folds keep the interval [0, inf).
    found : callable, optional
        Called with `(index of gamma, fold, best support of every tau)`, from any thread.
    reused : callable, optional
        Called, fold by fold and gamma by gamma, with (cells tested by reuse, relaxations it spared, seconds it took).
    """

    progress: Callable[[int, int], None] | None = None
    expired: Callable[[], bool] = lambda: False
    found: Callable[[int, int, list[IntArray | None]], None] | None = None
    reused: Callable[[int, int, float], None] | None = None


class AllFolds:
    """Bounds of every fold at every gamma: what the folds share, then one after the other.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : pair of tuples
        Gammas and taus.
    which : str
        A word of `Which`, or `as-printed`.
    known : Known
    hooks : BoundsHooks
    """

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        grid: tuple[tuple[float, ...], tuple[int, ...]],
        which: str,
        known: Known,
        hooks: BoundsHooks,
    ) -> None:
        self.data, self.folds, self.which, self.known, self.hooks = data, folds, which, known, hooks
        self.gammas, self.taus = grid
        self.given = [np.asarray(support) for support in known.supports]
        self.reusing = known.reusing and which == Which.SAFE
        self.table = BoundsTable.empty(data, folds, self.gammas, self.taus, which)
        self.wide = is_wide(data)
        self.shared: list[list[Support]] = []
        self.masks: list[BoolArray] = []
        self.near: list[FloatArray | None] = []
        self.lower_on_all_rows: list[FloatArray] = []
        self.points: list[Points | None] = []

    @property
    def mode(self) -> Which:
        """The family of certified bounds; as-printed needs the incumbents only."""
        return Which.SAFE if self.which == PRINTED else Which(self.which)

    def run(self, threads: int) -> BoundsTable | PrintedTable:
        """All rows first, then every fold."""
        self._all_rows()
        sources: Iterable[tuple[int, Moments | None]] = (
            ((j, None) for j in range(self.folds.k))
            if self.wide
            else self.known.moments or training_moments(self.data, self.folds)
        )
        for done, _ in enumerate(run_folds(sources, self._fold, threads), start=1):
            if self.hooks.progress is not None:
                self.hooks.progress(done, self.folds.k)
            if self.hooks.expired():
                break
        if self.which == PRINTED:
            return PrintedTable(**{x.name: getattr(self.table, x.name) for x in fields(PrintedTable)})
        if self.mode is Which.SAFE:
            self._training_loss()
        return self.table

    def _make(
        self, rows: IntArray, fold: int | None, moments: Moments | None, gamma: float, g: int
    ) -> FoldBounds | WideFold:
        """Return the fold (or all rows, fold None) at a gamma."""
        test = self.folds.scored_rows(fold) if fold is not None else rows[:0]
        if self.wide:
            return WideFold(WideRows.of(self.data, rows, test, gamma), self.hooks.expired)
        assert moments is not None
        near = self.near[g] if fold is not None else None
        return FoldBounds(moments.problem(self.data, gamma), *self.data.rows(test), near, self.data.root_of(test))

    def _all_rows(self) -> None:
        """Incumbents, the diagonal and lower bounds on all rows, gamma by gamma."""
        rows = np.arange(self.data.n)
        moments = None if self.wide else row_moments(self.data, slice(0, self.data.n))
        known: list[Support] = list(self.given)
        for g, gamma in enumerate(self.gammas):
            if self.hooks.expired():
                break
            begin = time.perf_counter()
            full = self._make(rows, None, moments, gamma, g)
            full.try_supports(known)
            full.search(self.taus, swap_rounds=FULL_SWAPS)
            cells = full.cells(self.taus, Which.SAFE)
            self.lower_on_all_rows.append(np.array([cell.objective_lower for cell in cells]))
            self.shared.append([*self.given, *full.incumbents()])
            near, points = None, None
            if isinstance(full, FoldBounds) and full.form is not None:
                near = full.form.diagonal
                points = points_of(full.form, full.choice.sizes(self.taus)) if self.reusing else None
            self.points.append(points)
            self.near.append(near)
            known = self.shared[-1]
            self.masks.append(masks_of(known, self.data.q) if not self.wide else np.zeros((0, 0), dtype=np.bool_))
            self.table.seconds[g] += time.perf_counter() - begin

    def _fold(self, fold: int, moments: Moments | None) -> None:
        rows = self.folds.train_rows(fold) if self.wide else np.zeros(0, dtype=np.int64)
        for g, gamma in enumerate(self.gammas[: len(self.shared)]):
            if self.hooks.expired():
                break
            begin = time.perf_counter()
            here = self._make(rows, fold, moments, gamma, g)
            if isinstance(here, FoldBounds):
                here.try_masks(self.masks[g])
            else:
                here.try_supports(self.shared[g])
            here.search(self.taus, swap_rounds=FOLD_SWAPS if self.folds.k <= FEW_FOLDS else 0)
            if self.which == PRINTED:
                ends = printed_ends(here, self.taus)
                for place, column in enumerate((self.table.lower, self.table.upper, self.table.estimate)):
                    column[g, :, fold] = ends[:, place]
            else:
                self._put(g, fold, here)
            self.table.seconds[g] += time.perf_counter() - begin

    def _put(self, g: int, fold: int, here: FoldBounds | WideFold) -> None:
        """Bound the wanted taus of a fold; those that the points on all rows decide need no relaxation."""
        wanted = np.ones(len(self.taus), dtype=np.bool_) if self.known.wanted is None else self.known.wanted[g, :, fold]
        numbers = np.tile(UNKNOWN, (len(self.taus), 1))
        numbers[:, -1] = self.data.q
        left = np.flatnonzero(wanted & ~self._reused(g, here, wanted, numbers))
        if len(left):
            numbers[left] = here.numbers([self.taus[t] for t in left], self.mode)
        self.table.put(g, fold, numbers)
        if self.hooks.found is not None:
            self.hooks.found(g, fold, [here.incumbent(tau) for tau in self.taus])

    def _reused(self, g: int, here: FoldBounds | WideFold, wanted: BoolArray, numbers: FloatArray) -> BoolArray:
        """Fill the rows of taus whose incumbent is the only support that the points on all rows leave; which."""
        known = np.zeros(len(self.taus), dtype=np.bool_)
        if not self.reusing or not isinstance(here, FoldBounds):
            return known
        begin = time.perf_counter()
        sizes = np.array(here.choice.sizes(self.taus))
        tested = reuse(here, self.points[g], sizes[wanted], TIE, exact=True)
        if tested is None:
            return known
        at = np.minimum(np.searchsorted(tested.sizes, sizes), len(tested.sizes) - 1)
        known = wanted & (tested.sizes[at] == sizes) & tested.decided[at]
        numbers[known] = tested.numbers[at[known]]
        if self.hooks.reused is not None:
            self.hooks.reused(len(tested.sizes), int(known.sum()), time.perf_counter() - begin)
        return known

    def _training_loss(self) -> None:
        """Raise lower ends by the training-loss bound, from the bounds on all rows and the folds' incumbents."""
        every = self.folds.scores_all_left_out
        for g in range(len(self.lower_on_all_rows)):
            upper = self.table.objective_upper[g]
            floor = training_loss_bound(self.lower_on_all_rows[g][:, None], upper)
            self.table.raise_lower(g, np.where(every, floor, -np.inf), Origin.TRAINING)


def printed_ends(fold: FoldBounds | WideFold, taus: Sequence[int]) -> FloatArray:
    """`x'b_P -+ sqrt((ubar - zeta) x'(X'X + lam I)^{-1} x)` for every held-out row, then Corollary 2.7.

    Parameters
    ----------
    fold : FoldBounds or WideFold
        With its incumbents: ubar is the best of them.
    taus : sequence of int

    Returns
    -------
    (taus, 3) array
        Printed lower and upper end of h_j and its estimate, in squared standard units; h_j need not lie between them.

    Notes
    -----
    The relaxation is the paper's, with the penalty alone inside the perspective.
    """
    if isinstance(fold, WideFold):
        return np.array([_ends(fold.u, *fold.printed(tau)) for tau in taus])
    form, taus = fold.form, fold.choice.sizes(taus)
    if form is None:
        return np.array([(0.0, np.inf, np.nan)] * len(taus))
    X, u = fold.rows
    reach = np.maximum(np.einsum("ij,ji->i", X, np.linalg.solve(form.M, X.T)), 0.0)
    relaxed = {x.tau: x for x in relax_problem(fold.problem, sorted(set(taus)), diagonal=Diagonal.PENALTY)}
    levels = [float(fold.best[min(tau, fold.m)]) if tau else fold.problem.yy for tau in taus]
    points = [relaxed[tau] for tau in taus]
    return np.array(
        [_ends(u, ubar, x.dual, X @ (x.beta / form.scale), reach) for x, ubar in zip(points, levels, strict=True)]
    )


def _ends(u: FloatArray, ubar: float, zeta: float, centre: FloatArray, reach: FloatArray) -> tuple[float, float, float]:
    wide = np.sqrt(max(ubar - zeta, 0.0) * reach)
    lo, hi = centre - wide, centre + wide
    near = np.maximum(np.maximum(lo - u, u - hi), 0.0)
    far = np.maximum(np.abs(u - lo), np.abs(u - hi))
    middle = u - centre
    return float(near @ near), float(far @ far), float(middle @ middle)

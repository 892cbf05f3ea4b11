"""Bounds on the held-out error of every subproblem (tau, gamma, fold), computed without branch and bound.

The class `BoundsTable` has certified bounds, and only these bounds may exclude pairs (tau, gamma). The class
`PrintedTable` has the bounds as printed in the paper of Cory-Wright and Gomez. Theorem 2.4 and Corollary 2.7 of the
paper are false as printed (docs/theory/bounds.md, section 6). The numbers of a `PrintedTable` are therefore estimates,
and no method of this class returns an `Interval`.

**Logistic and Poisson loss.** Local search finds a support of each size in every fold. The training objective u of this
support is an upper bound on the minimum of the fold. All fits whose objective is at most u lie in an ellipsoid, which
gives bounds on the held-out loss h of these fits (docs/theory/glm.md, section 8). In addition, the held-out loss of the
optimum of the fold is at least F* - u. Here F* is a lower bound on the minimum objective of the full data, computed at
the root of a branch-and-bound tree.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import LEFT_OUT_WEIGHTS, training_loss_bound
from sparsecv_mio.bounds.fold import UNKNOWN, FoldBounds, Origin
from sparsecv_mio.bounds.more_weight import HeldOutWeightedBounds
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows, is_wide
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import BadInput, Contradiction
from sparsecv_mio.model_space import check_grid
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.training_moments import TrainingMoments, row_moments, training_moments
from sparsecv_mio.thresholds import FEW_FOLDS, SMOOTH_COLUMNS
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.glm_subsets import make_glm_problem, make_subsets, rows_in_units
from sparsecv_mio.trees.subsets import SWAP_ROUNDS, is_never_expired
from sparsecv_mio.trees.without_ridge import check_independent, most_columns
from sparsecv_mio.units import CROSSING_RTOL, OUTWARD, SUM_RTOL, Interval

SCHEMA = "sparsecv-bounds/1"
SAFE, PRINTED = "safe", "as-printed"


@dataclass(frozen=True, eq=False)
class _Grid:
    """Axes and common fields of both tables; arrays are (gammas, taus, folds) in squared standard units."""

    gammas: tuple[float, ...]
    taus: tuple[int, ...]
    folds: int
    rows: float  # total weight of the rows that some fold holds out
    unit: float  # factor from squared standard units to squared units of the file
    seconds: FloatArray  # (gammas,) wall time, summed over threads
    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray
    which: ClassVar[str]

    @property
    def cv_error_factor(self) -> float:
        """Factor from a sum over folds to h in squared units of the file."""
        return self.unit / self.rows

    def _pair(self, g: int, t: int) -> dict[str, Any]:
        """Return the record fields of h at a pair."""
        raise NotImplementedError

    def _bound(self, where: tuple[int, int, int]) -> str:
        """Return the name of the bound on one h_j."""
        return self.which

    def to_dict(self) -> dict[str, Any]:
        """Return the record: h and h_j in squared units of the file, with null for an unknown bound."""
        table, folds = [], []
        for g, t in np.ndindex(len(self.gammas), len(self.taus)):
            pair = {"gamma": self.gammas[g], "tau": self.taus[t]}
            table.append(pair | self._pair(g, t))
            for j in range(self.folds):
                where = (g, t, j)
                ends = _scaled_ends(self.lower[where], self.upper[where], self.estimate[where], self.unit)
                folds.append(pair | {"fold": j} | ends | {"bound": self._bound(where)})
        seconds = [{"gamma": gamma, "seconds": float(s)} for gamma, s in zip(self.gammas, self.seconds, strict=True)]
        return {
            "schema": SCHEMA,
            "bounds": self.which,
            "certified": self.which == SAFE,
            "seconds": seconds,
            "table": table,
            "folds": folds,
        }


@dataclass(frozen=True, eq=False)
class BoundsTable(_Grid):
    """Certified intervals of every h_j.

    Attributes
    ----------
    lower, upper : (G, T, K) arrays
        Bounds `lower <= h_j <= upper`, ties included; inf if unknown.
    estimate : (G, T, K) array
        h_j at the solution of the relaxation; not a bound.
    objective_lower, objective_upper : (G, T, K) arrays
        Bounds on the optimum of the inner problem.
    low_origin, high_origin : (G, T, K) int8 arrays
        Methods that gave the two bounds, see `Origin`.
    left : (G, T, K) int32 array
        Number of columns that may or may not be in the support; 0 if the support is known.
    """

    which: ClassVar[str] = SAFE

    objective_lower: FloatArray
    objective_upper: FloatArray
    low_origin: NDArray[np.int8]
    high_origin: NDArray[np.int8]
    left: NDArray[np.int32]

    @classmethod
    def empty(
        cls, data: StandardData, folds: FoldPlan, gammas: tuple[float, ...], taus: tuple[int, ...]
    ) -> BoundsTable:
        """Return a table of trivial bounds.

        Parameters
        ----------
        data : StandardData
            Data set.
        folds : FoldPlan
            Folds.
        gammas, taus : tuples
            Grid.
        """
        shape = (len(gammas), len(taus), folds.k)
        return cls(
            gammas=gammas,
            taus=taus,
            folds=folds.k,
            rows=Scored.of(data.dataset, folds).total,
            unit=data.loss_unit,
            seconds=np.zeros(len(gammas)),
            lower=np.zeros(shape),
            upper=np.full(shape, np.inf),
            estimate=np.full(shape, np.nan),
            objective_lower=np.zeros(shape),
            objective_upper=np.full(shape, np.inf),
            low_origin=np.full(shape, Origin.TRIVIAL, dtype=np.int8),
            high_origin=np.full(shape, Origin.TRIVIAL, dtype=np.int8),
            left=np.full(shape, data.q, dtype=np.int32),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record, with the interval of the minimum CV error over the grid."""
        least = self.minimum()
        ends = {"lower": least.lower, "upper": least.upper if math.isfinite(least.upper) else None}
        table = super().to_dict()
        return {"schema": table.pop("schema")} | ends | table

    def as_it_stands(self) -> BoundsTable:
        """Return a copy of the present table, while other threads may go on writing; every copied bound is proved."""
        return replace(self, **{x.name: copy(getattr(self, x.name)) for x in fields(self)})

    def ends_alone(self) -> PrintedTable:
        """Return the numbers as a table of printed bounds, for a table that was filled with printed bounds."""
        return PrintedTable(**{x.name: getattr(self, x.name) for x in fields(PrintedTable)})

    def put(self, g: int, fold: int, numbers: FloatArray) -> None:
        """Write the bounds of one fold and gamma.

        Parameters
        ----------
        g, fold : int
            Index of gamma, and the fold.
        numbers : (T, 8) array
            Row of `FoldBounds.numbers` for every tau.
        """
        columns: tuple[NDArray[Any], ...] = (
            self.objective_lower, self.objective_upper, self.lower, self.upper, self.low_origin, self.high_origin,
            self.estimate, self.left,
        )  # fmt: skip
        for place, column in enumerate(columns):
            column[g, :, fold] = numbers[:, place]

    def raise_lower(self, g: int, floor: FloatArray, origin: Origin) -> None:
        """Raise the lower bounds of a gamma to given values where these are larger.

        Parameters
        ----------
        g : int
            Index of gamma.
        floor : (T, K) array
            Lower bounds.
        origin : Origin
            Method that gave these bounds.

        Raises
        ------
        Contradiction
            If a value exceeds an upper bound by more than rounding.
        """
        upper = self.upper[g]
        if np.any(floor > upper * (1.0 + CROSSING_RTOL)):
            t, fold = (int(i) for i in np.argwhere(floor > upper * (1.0 + CROSSING_RTOL))[0])
            raise Contradiction(
                f"gamma {self.gammas[g]:g}, tau {self.taus[t]}, fold {fold + 1}: "
                f"lower bound {floor[t, fold]!r} exceeds upper bound {upper[t, fold]!r}; please report this"
            )
        higher = floor > self.lower[g]
        self.lower[g] = np.where(higher, np.minimum(floor, upper), self.lower[g])
        self.low_origin[g][higher] = origin

    def interval(self, g: int, t: int, fold: int) -> Interval:
        """Return the certified interval of one h_j, in squared standard units.

        Parameters
        ----------
        g, t, fold : int
            Indices of gamma and tau, and the fold.
        """
        return Interval(float(self.lower[g, t, fold]), float(self.upper[g, t, fold]))

    def cv_interval(self, g: int, t: int) -> Interval:
        """Return the certified interval of h(tau, gamma), in squared units of the file."""
        low, high = (float(ends[g, t].sum()) * self.cv_error_factor for ends in (self.lower, self.upper))
        return Interval(low * (1.0 - OUTWARD), high * (1.0 + OUTWARD))

    def cv_estimate(self, g: int, t: int) -> float:
        """Return h at the relaxed solutions, cut to the bounds of each fold, in squared units of the file."""
        cut = np.clip(self.estimate[g, t], self.lower[g, t], self.upper[g, t])
        return float(cut.sum()) * self.cv_error_factor

    def won(self, g: int, t: int) -> str:
        """Return the most frequent origins of the bounds of a pair: `exact`, or `lower/upper` if they differ."""
        return bound_name(*(int(np.bincount(x[g, t]).argmax()) for x in (self.low_origin, self.high_origin)))

    def decided(self, g: int, t: int) -> int:
        """Return the number of folds whose support is known."""
        return int((self.left[g, t] == 0).sum())

    def best(self) -> tuple[int, int]:
        """Return the pair (g, t) with the smallest upper bound on h."""
        g, t = np.unravel_index(np.argmin(self.upper.sum(axis=2)), self.upper.shape[:2])
        return int(g), int(t)

    def minimum(self) -> Interval:
        """Return the certified interval of the minimum h over the grid, in squared units of the file."""
        ends = [self.cv_interval(g, t) for g, t in np.ndindex(len(self.gammas), len(self.taus))]
        return Interval(min(end.lower for end in ends), min(end.upper for end in ends))

    def _pair(self, g: int, t: int) -> dict[str, Any]:
        ends = self.cv_interval(g, t)
        return _scaled_ends(ends.lower, ends.upper, self.cv_estimate(g, t)) | {"bound": self.won(g, t)}

    def _bound(self, where: tuple[int, int, int]) -> str:
        return bound_name(int(self.low_origin[where]), int(self.high_origin[where]))


@dataclass(frozen=True, eq=False)
class PrintedTable(_Grid):
    """Bounds of Corollary 2.7 as printed in the paper: estimates, sometimes wrong (docs/theory/bounds.md, section 6).

    Attributes
    ----------
    lower, upper, estimate : (G, T, K) arrays
        Printed bounds on h_j and the estimate of the relaxation, in squared standard units.
    """

    which: ClassVar[str] = PRINTED

    def cv_estimates(self, g: int, t: int) -> tuple[float, float, float]:
        """Return the printed bounds on h and the estimate of the relaxation, in squared units of the file."""
        low, high, middle = (
            float(x[g, t].sum()) * self.cv_error_factor for x in (self.lower, self.upper, self.estimate)
        )
        return low, high, middle

    def _pair(self, g: int, t: int) -> dict[str, Any]:
        return _scaled_ends(*self.cv_estimates(g, t)) | {"bound": self.which}


def bound_name(low: int, high: int) -> str:
    """Return the name of the methods behind the two bounds.

    Examples
    --------
    >>> bound_name(Origin.EXACT, Origin.EXACT), bound_name(Origin.TRAINING, Origin.CONIC)
    ('exact', 'training/conic')
    """
    names = Origin(low).name.lower(), Origin(high).name.lower()
    return names[0] if names[0] == names[1] else "/".join(names)


def _scaled_ends(lower: float, upper: float, estimate: float, unit: float = 1.0) -> dict[str, float | None]:
    values = {"lower": lower, "upper": upper, "estimate": estimate}
    return {name: float(x) * unit if math.isfinite(x) else None for name, x in values.items()}


Put = Callable[[int, int, FoldBounds | WideFold], None]  # writes the bounds of a fold at a gamma into the table


@dataclass(frozen=True, eq=False)
class BoundsHooks:
    """Functions that follow the progress of the bounds and can end the work early.

    Attributes
    ----------
    progress : callable, optional
        Function called with (folds done, folds in all).
    is_expired : callable, optional
        Function that returns True when time is over; the remaining folds then keep the interval [0, inf).
    begun : callable, optional
        Function called with the table before it is filled.
    """

    progress: Callable[[int, int], None] | None = None
    is_expired: Callable[[], bool] = lambda: False
    begun: Callable[[BoundsTable], None] | None = None


class AllFolds:
    """Bounds of every fold at every gamma: first the results that folds share, then one fold after another.

    Parameters
    ----------
    data : StandardData
        Data set.
    folds : FoldPlan
        Folds.
    gammas, taus : sequences
        Grid, which is checked here.
    hooks : BoundsHooks
        Functions that follow the progress.
    """

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        gammas: Sequence[float],
        taus: Sequence[int],
        hooks: BoundsHooks,
    ) -> None:
        check_grid(gammas, taus, data.dataset.p)
        check_independent(data, gammas, most_columns(data, max(taus)), folds)
        self.data, self.folds, self.hooks = data, folds, hooks
        self.gammas, self.taus = tuple(map(float, gammas)), tuple(map(int, taus))
        self.table = BoundsTable.empty(data, folds, self.gammas, self.taus)
        if hooks.begun is not None:
            hooks.begun(self.table)
        self.wide = is_wide(data)
        self.shared: list[list[IntArray]] = []
        self.near: list[FloatArray | None] = []
        self.lower_on_all_rows: list[FloatArray] = []

    def process_folds(self, put: Put, threads: int | None) -> None:
        """Process all rows together, then every fold."""
        self._all_rows()
        sources: Iterable[tuple[int, TrainingMoments | None]] = (
            ((j, None) for j in range(self.folds.k)) if self.wide else training_moments(self.data, self.folds)
        )

        def work(fold: int, moments: TrainingMoments | None) -> None:
            self._fold(fold, moments, put)

        threads = os.cpu_count() or 1 if threads is None else threads
        for done, _ in enumerate(run_folds(sources, work, threads), start=1):
            if self.hooks.progress is not None:
                self.hooks.progress(done, self.folds.k)
            if self.hooks.is_expired():
                break

    def _make(
        self, rows: IntArray, fold: int | None, moments: TrainingMoments | None, gamma: float, g: int
    ) -> FoldBounds | WideFold:
        """Return the bounds of a fold at a gamma; those of all rows if `fold` is None."""
        test = self.folds.scored_rows(fold) if fold is not None else rows[:0]
        if self.wide:
            return WideFold(WideRows.from_data(self.data, rows, test, gamma), self.hooks.is_expired)
        assert moments is not None
        near = self.near[g] if fold is not None else None
        held_out = (moments.own or self.data).rows(test)
        return FoldBounds(moments.problem(self.data, gamma), *held_out, near, self.data.root_of(test))

    def _all_rows(self) -> None:
        """Compute incumbents, a diagonal and lower bounds on all rows for each gamma."""
        rows = np.arange(self.data.n)
        moments = None if self.wide else row_moments(self.data, slice(0, self.data.n))
        supports: list[IntArray] = []
        for g, gamma in enumerate(self.gammas):
            if self.hooks.is_expired():
                break
            begin = time.perf_counter()
            full = self._make(rows, None, moments, gamma, g)
            full.try_supports(supports)
            full.search(self.taus, swap_rounds=SWAP_ROUNDS)
            cells = full.cells(self.taus)
            self.lower_on_all_rows.append(np.array([cell.objective_lower for cell in cells]))
            self.shared.append(supports := full.incumbents())
            form = full.form if isinstance(full, FoldBounds) else None
            self.near.append(None if form is None else form.diagonal)
            self.table.seconds[g] += time.perf_counter() - begin

    def _fold(self, fold: int, moments: TrainingMoments | None, put: Put) -> None:
        rows = self.folds.train_rows(fold) if self.wide else np.zeros(0, dtype=np.int64)
        for g, gamma in enumerate(self.gammas[: len(self.shared)]):
            if self.hooks.is_expired():
                break
            begin = time.perf_counter()
            here = self._make(rows, fold, moments, gamma, g)
            here.try_supports(self.shared[g])
            here.search(self.taus, swap_rounds=SWAP_ROUNDS if self.folds.k <= FEW_FOLDS else 0)
            put(g, fold, here)
            self.table.seconds[g] += time.perf_counter() - begin

    def apply_printed_formula(self, g: int, fold: int, here: FoldBounds | WideFold) -> None:
        """Write the bounds of the paper on a fold at a gamma."""
        ends = printed_ends(here, self.taus)
        for place, column in enumerate((self.table.lower, self.table.upper, self.table.estimate)):
            column[g, :, fold] = ends[:, place]

    def bound_fold(self, g: int, fold: int, here: FoldBounds | WideFold) -> None:
        """Write the certified bounds on a fold at a gamma."""
        self.table.put(g, fold, here.numbers(self.taus))

    def use_training_loss(self) -> None:
        """Raise lower bounds by the training-loss bound, from bounds on all rows and the incumbents of the folds."""
        every = self.folds.scores_all_left_out
        for g in range(len(self.lower_on_all_rows)):
            upper = self.table.objective_upper[g]
            floor = training_loss_bound(self.lower_on_all_rows[g][:, None], upper)
            self.table.raise_lower(g, np.where(every, floor, -np.inf), Origin.TRAINING)


def printed_ends(fold: FoldBounds | WideFold, taus: Sequence[int]) -> FloatArray:
    """Return `x'b_P -+ sqrt((ubar - zeta) x'(X'X + lam I)^{-1} x)` for every held-out row, summed by Corollary 2.7.

    Parameters
    ----------
    fold : FoldBounds or WideFold
        Bounds of a fold with its incumbents; ubar is the objective of the best one.
    taus : sequence of int
        Sizes.

    Returns
    -------
    (taus, 3) array
        Printed lower and upper bound on h_j and its estimate, in squared standard units; h_j need not lie between them.

    Notes
    -----
    The relaxation is that of the paper, with the penalty alone inside the perspective.
    """
    if isinstance(fold, WideFold):
        return np.array([_printed_interval(fold.u, *fold.printed_formula_terms(tau)) for tau in taus])
    form, taus = fold.form, fold.choice.sizes(taus)
    if form is None:
        return np.array([(0.0, np.inf, np.nan)] * len(taus))
    X, u = fold.rows
    reach = np.maximum(np.einsum("ij,ji->i", X, np.linalg.solve(form.M, X.T)), 0.0)
    relaxed = {x.tau: x for x in relax_problem(fold.problem, sorted(set(taus)), diagonal=Diagonal.PENALTY)}
    levels = [float(fold.best[min(tau, fold.m)]) if tau else fold.problem.yy for tau in taus]
    points = [relaxed[tau] for tau in taus]
    return np.array(
        [
            _printed_interval(u, ubar, x.dual, X @ (x.beta / form.scale), reach)
            for x, ubar in zip(points, levels, strict=True)
        ]
    )


def _printed_interval(
    u: FloatArray, ubar: float, zeta: float, centre: FloatArray, reach: FloatArray
) -> tuple[float, float, float]:
    wide = np.sqrt(max(ubar - zeta, 0.0) * reach)
    lo, hi = centre - wide, centre + wide
    near = np.maximum(np.maximum(lo - u, u - hi), 0.0)
    far = np.maximum(np.abs(u - lo), np.abs(u - hi))
    middle = u - centre
    return float(near @ near), float(far @ far), float(middle @ middle)


NO_HOOKS = BoundsHooks()


def compute_bounds(
    data: StandardData,
    folds: FoldPlan,
    gammas: Sequence[float],
    taus: Sequence[int],
    *,
    threads: int | None = 1,
    hooks: BoundsHooks = NO_HOOKS,
) -> BoundsTable:
    """Return certified intervals of every h_j(tau, gamma) by convex relaxations.

    Parameters
    ----------
    data : StandardData
        Data set.
    folds : FoldPlan
        Folds.
    gammas, taus : sequences
        Grid.
    threads : int or None
        Number of threads over which folds are distributed; None takes all cores.
    hooks : BoundsHooks, optional
        Functions that follow the progress and can end the work early.

    Returns
    -------
    BoundsTable
        Intervals of every subproblem.

    Raises
    ------
    BadInput
        If the grid is empty, a gamma is negative or not finite, gamma is 0 and columns of a model are dependent, or a
        tau is outside 0..p.

    Notes
    -----
    Incumbents come from backward elimination, forward selection and swaps on all rows, from backward elimination in
    every fold, and from rounding every relaxation. In a fold, each relaxation starts from that of the previous tau, and
    the diagonal from that of all rows. See docs/theory/bounds.md.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> from sparsecv_mio.data.standard import standardize
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((30, 4))
    >>> dataset = Dataset.from_arrays(X, X @ [3.0, 0, 0, 1] + rng.standard_normal(30))
    >>> table = compute_bounds(standardize(dataset), make_folds("5", dataset), [1.0], [1, 2])
    >>> table.cv_interval(0, 1).lower <= table.cv_estimate(0, 1) * 1.5
    True
    """
    every = AllFolds(data, folds, gammas, taus, hooks)
    every.process_folds(every.bound_fold, threads)
    every.use_training_loss()
    return every.table


def printed_bounds(
    data: StandardData,
    folds: FoldPlan,
    gammas: Sequence[float],
    taus: Sequence[int],
    *,
    threads: int | None = 1,
    hooks: BoundsHooks = NO_HOOKS,
) -> PrintedTable:
    """Return the bounds of Corollary 2.7 as printed in the paper, which are not valid: estimates only.

    Parameters
    ----------
    data : StandardData
        Data set.
    folds : FoldPlan
        Folds.
    gammas, taus : sequences
        Grid.
    threads : int or None
        Number of threads over which folds are distributed; None takes all cores.
    hooks : BoundsHooks, optional
        Functions that follow the progress and can end the work early.
    """
    if 0.0 in gammas:
        raise BadInput("gamma 0: the formula as printed divides by gamma; give gammas above 0, or --bounds safe")
    every = AllFolds(data, folds, gammas, taus, hooks)
    every.process_folds(every.apply_printed_formula, threads)
    return every.table.ends_alone()


def bound_smooth_cv_errors(
    data: StandardData, folds: FoldPlan, gammas: Sequence[float], taus: Sequence[int], hooks: BoundsHooks = NO_HOOKS
) -> BoundsTable:
    """Return bounds on the held-out losses of every (tau, gamma, fold).

    Parameters
    ----------
    data : StandardData
        Data set with two classes or counts as target.
    folds : FoldPlan
        Folds.
    gammas, taus : sequences
        Grid.
    hooks : BoundsHooks, optional
        Functions that follow the progress and can end the work early.

    Returns
    -------
    BoundsTable
        Intervals; the estimate is the held-out loss of the supports of the local search.
    """
    table = BoundsTable.empty(data, folds, tuple(gammas), tuple(taus))
    if hooks.begun is not None:
        hooks.begun(table)
    whole, slip = make_subsets(data, np.arange(data.n)), SUM_RTOL * data.dataset.weight_of(slice(0, data.n))
    rising, weighed, least = np.argsort(table.gammas), np.zeros(table.lower.shape), np.zeros(table.lower.shape[:2])
    for g, gamma in enumerate(table.gammas):
        at, begin = whole.with_gamma(gamma), time.perf_counter()
        least[g] = [at.solve([tau], node_limit=1, is_expired=hooks.is_expired).by_size[tau].lower for tau in taus]
        table.seconds[g] += time.perf_counter() - begin
    for fold in range(folds.k):
        if hooks.is_expired():
            break
        training, rows = make_subsets(data, folds.train_rows(fold)), rows_in_units(data, folds.scored_rows(fold))
        for g, gamma in enumerate(table.gammas):
            begin, at = time.perf_counter(), training.with_gamma(gamma)
            solution = at.solve(taus, node_limit=0, is_expired=hooks.is_expired)
            supports = [solution.by_size[tau].support for tau in taus]
            _, low, high = at.score_supports(supports, *rows)
            numbers = np.tile(UNKNOWN, (len(taus), 1))
            for t, tau in enumerate(taus):
                upper = solution.by_size[tau].upper
                ends = at.open_fold_interval(tau, upper, *rows, is_expired=hooks.is_expired)
                numbers[t, 1:6] = upper, *ends, Origin.CONIC, Origin.CONIC
            numbers[:, 6], numbers[:, 7] = 0.5 * (low + high), data.q
            table.put(g, fold, numbers)
            table.seconds[g] += time.perf_counter() - begin
        if hooks.progress is not None:
            hooks.progress(fold + 1, folds.k)
    begin = time.perf_counter()
    for fold in range(folds.k if folds.k <= FEW_FOLDS else 0):
        bounds = HeldOutWeightedBounds(np.array(table.gammas)[rising], np.array(taus))
        bound_weighted_by_all_columns(data, folds, fold, bounds, hooks.is_expired)
        weighed[rising, :, fold] = bounds.held_out_errors(table.objective_upper[rising, :, fold] + slip)
    table.seconds[:] += (time.perf_counter() - begin) / len(table.gammas)
    for g in range(len(table.gammas)):
        floor = (least[g] * (1.0 - OUTWARD) - slip)[:, None] - table.objective_upper[g]
        lower = np.maximum(weighed[g], np.where(folds.scores_all_left_out, np.maximum(floor, 0.0), 0.0))
        table.raise_lower(g, lower, Origin.TRAINING)
    return table


def bound_weighted_by_all_columns(
    data: StandardData,
    folds: FoldPlan,
    fold: int,
    bounds: HeldOutWeightedBounds,
    is_expired: Callable[[], bool] = is_never_expired,
) -> None:
    """Bound the held-out-weighted objectives of a fold, at every weight, by fits of all columns.

    These bounds hold for every size (docs/theory/glm.md, section 14). Six steps of O(n q^2) for each weight and gamma;
    with more than 200 columns nothing is proved.

    Parameters
    ----------
    data : StandardData
        Data set with two classes or counts as target.
    folds : FoldPlan
        Folds.
    fold : int
        Index of the fold.
    bounds : HeldOutWeightedBounds
        Bounds of the fold, to which the new ones are written.
    is_expired : callable
        Function that returns True when time is over.
    """
    training, scored = folds.train_rows(fold), folds.scored_rows(fold)
    together = make_glm_problem(data, np.concatenate([training, scored]))
    for place, t in enumerate(LEFT_OUT_WEIGHTS):
        v = np.concatenate([together.v[: len(training)], t * together.v[len(training) :]])
        fits = GlmFits.from_problem(replace(together, v=v), None)
        point = fits.start()
        for g, gamma in enumerate(bounds.gammas.tolist()):
            if is_expired() or np.count_nonzero(fits.varies) > SMOOTH_COLUMNS:
                return
            at = fits.with_gamma(gamma)
            point, lower = at.fit_of_all(fits.varies, point, is_expired)
            bounds.lower[place, g] = np.maximum(bounds.lower[place, g], lower)

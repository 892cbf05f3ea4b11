"""Leaving a fold out of a ridge fit in closed form: what the fit on all rows says of every fold's own fit.

Notation of docs/theory.md, section 5. `f` is the training objective on all rows, `f^(-N)` that without the rows of the
fold N. For a support S, with `e_N` the residuals of the held-out rows in the fit of S on all rows and `H_NN` their
block of the hat matrix (plus `1/n` in every entry where an intercept is profiled out, or, of weighted rows, which are
times the roots of their weights, the product of these over the weight of all rows),

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residuals = (I - H_NN)^{-1} e_N.

`LeftOutFolds` evaluates these for listed supports (:mod:`sparsecv_mio.kernels.leave_out`). What needs no support uses
the fit on *all* columns only (`FullFit`), `residual = ||e_N||` and `leverage`, the largest eigenvalue of `H_NN`, both
rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from sparsecv_mio.arrays import CACHED_ROWS, STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ball_of_left_out, training_loss_bound
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.forced_columns import ForcedColumns
from sparsecv_mio.kernels import leave_out
from sparsecv_mio.kernels.leave_out import BestByFold, HeldOutRows, ListedSupports
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.context import BestOnAllRows
from sparsecv_mio.search.problems.fold_fits import fit_from_moments
from sparsecv_mio.search.steps import FoldBounds
from sparsecv_mio.trees.normal_form import NormalForm
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, KEEP_RTOL, TIE_RTOL, WORST_ROUNDING
from sparsecv_mio.words import Intercept

Made = TypeVar("Made")


def listed_supports(problem: SparseProblem, supports: Sequence[IntArray], tau_index: Sequence[int]) -> ListedSupports:
    """Fit supports on the moments of all rows.

    Parameters
    ----------
    problem : SparseProblem
        All rows.
    supports : sequence of int arrays
    tau_index : sequence of int
        Index of the tau that each is for.

    Notes
    -----
    O(s^3) a support.
    """
    fits = fit_from_moments(problem, supports)
    table, sizes = fits.table, fits.sizes
    k, top = table.shape
    # rows are centred on rounded means
    lengths = np.sqrt(np.maximum(np.diag(problem.Q), 0.0) / problem.total)
    load = np.sqrt(problem.yy / problem.total) + (lengths[table] * np.abs(fits.beta)).sum(axis=1)
    half, blur = np.zeros((k, top, top)), np.zeros(k)
    leave_out.half_inverses(problem.Q, problem.penalty, table, sizes, half, blur)
    return ListedSupports(
        table, sizes, np.array(tau_index, dtype=np.int64), fits.value, fits.value_error, fits.beta, fits.spread,
        4.0 * np.finfo(float).eps * load, half, blur,
    )  # fmt: skip


def clear_of_ties(best: FloatArray, second: FloatArray, form: NormalForm) -> BoolArray:
    """Where the second best value of a tree is so far above the best that no refit could swap them.

    Parameters
    ----------
    best, second : arrays of one shape
        The two least objectives that the tree found.
    form : NormalForm
        The problem that the tree solved, which says how the tree rounds.
    """
    return np.asarray(second > form.raised(best))


def clear_of_ties_refitted(best: FloatArray, second: FloatArray, value_error: FloatArray | float) -> BoolArray:
    """Where the second best of refitted supports cannot be tied with the best.

    Parameters
    ----------
    best, second : arrays of one shape
        The two least objectives.
    value_error : array or float
        Bound on the rounding error of each.
    """
    return np.asarray(second - 2.0 * value_error > best * (1.0 + 1.01 * TIE_RTOL) + 2.0 * value_error)


WIDEST_LEVERAGE = 0.45  # of a fold, beyond which `objective_threshold` says nothing: it diverges at one half
LARGEST_LEVERAGE = 0.99  # of a fold, beyond which dividing by `1 - leverage` loses too many digits
WIDEST_KEEP = 1e-6  # rounding of a fit on all rows up to which it serves the folds: thresholds are raised by it


def largest_decrease(residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Most by which leaving the fold out lowers the objective of the fit on all columns.

    `f(A) - f^(-N)(A) = e_N' (I - H_NN)^{-1} e_N <= ||e_N||^2 / (1 - leverage)`, A all columns.

    Parameters
    ----------
    residual, leverage : arrays of one shape

    Returns
    -------
    array
        inf where the leverage is 1 or more.

    Examples
    --------
    >>> largest_decrease(np.array([3.0, 1.0]), np.array([0.1, 1.0])).tolist()
    [10.0, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        decrease = residual**2 / (1.0 - leverage)
    return np.where(leverage < 1.0, decrease, np.inf)


def objective_threshold(excess: FloatArray, residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Largest `f(S) - f(A)`, on all rows, of a support that may still win a fold; A all columns.

    A support wins the fold only if `f^(-N)(S) <= cutoff`, and (joint bound of section 5) `f(S) - f^(-N)(S) <=
    (||e_N|| + sqrt(leverage (f(S) - f(A))))^2 / (1 - leverage)`. With `u^2 = f(S) - f(A)` and `excess = cutoff - f(A)`

        u^2 - (residual + sqrt(leverage) u)^2 / (1 - leverage) <= excess,

    a quadratic in u whose larger root bounds u where the leverage is below one half.

    Parameters
    ----------
    excess : array
        `cutoff - f(A)`, at least; broadcast against the other two.
    residual, leverage : arrays of one shape

    Returns
    -------
    array
        `u^2`, raised by `WIDEST_KEEP`; inf where the leverage is `WIDEST_LEVERAGE` or more; where the
        quadratic has no root (no support can win) it is evaluated at discriminant 0.

    Examples
    --------
    >>> objective_threshold(np.array([3.0]), np.array([1.0]), np.array([0.0])).round(5).tolist()
    [4.0]
    """
    safe = np.where(leverage < WIDEST_LEVERAGE, leverage, 0.0)
    a = (1.0 - 2.0 * safe) / (1.0 - safe)
    b = residual * np.sqrt(safe) / (1.0 - safe)
    c = residual**2 / (1.0 - safe) + excess
    with np.errstate(invalid="ignore"):
        u = (b + np.sqrt(np.maximum(b * b + a * c, 0.0))) / a
    return np.where(leverage < WIDEST_LEVERAGE, u * u * (1.0 + WIDEST_KEEP), np.inf)


def held_out_ceiling(cutoff: FloatArray, lower: float, residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Upper bound of the held-out error of every b with `f^(-N)(b) <= cutoff`: the fold's ridge ball, from all rows.

    See :func:`sparsecv_mio.bounds.closed_form.ball_of_left_out`; with b0 the fold's ridge fit on all columns,
    `f^(-N)(b0) >= f(A) - largest_decrease`.

    Parameters
    ----------
    cutoff : array
        Broadcast against `residual` and `leverage`.
    lower : float
        At most `f(A)`, the objective of all columns on all rows.
    residual, leverage : arrays of one shape

    Returns
    -------
    array
        Rounded up by `KEEP_RTOL`; inf where the leverage is `LARGEST_LEVERAGE` or more.

    Examples
    --------
    >>> held_out_ceiling(np.array([5.0]), 1.0, np.array([1.0]), np.array([0.0])).round(6).tolist()
    [1.0]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        room = cutoff - (lower - largest_decrease(residual, leverage))
        most = ball_of_left_out(room, residual, leverage) * (1.0 + KEEP_RTOL)
    return np.where(leverage < LARGEST_LEVERAGE, most, np.inf)


CLIPPED_LEVERAGE = 0.9999  # what a larger leverage counts as where rounding errors are divided by `1 - leverage`


class LeftOutFolds:
    """Scores supports in every fold from their fit on the full data.

    Parameters
    ----------
    full : BestOnAllRows
        Moments and normal forms of the full data.
    folds : FoldPlan
    threads : int

    Attributes
    ----------
    taus : (T,) int array
        Of the grid.
    intercept_leverage : float
        `1/n` where every fold has its own intercept, n the weight of all rows: what that adds to each entry of a hat
        matrix, times the roots of the weights of its two rows.
    one_chunk : bool
        Whether the rows of all folds are worked on at once.
    """

    def __init__(self, full: BestOnAllRows, folds: FoldPlan, threads: int) -> None:
        self.full, self.folds, self.threads = full, folds, threads
        self.data, self.taus = full.data, full.grid.taus
        self.intercept_leverage = 1.0 / full.moments.total if self.data.intercept is Intercept.FOLD else 0.0
        self.one_chunk = next(self.chunks())[1] == self.folds.k
        self._in_order = bool(np.all(np.diff(self.folds.order) == 1))
        self._keep_rows = 8 * self.data.n * self.data.q <= STORE_BYTES
        self._kept: dict[int, HeldOutRows] = {}
        self._leverages: dict[int, tuple[FloatArray, FloatArray]] = {}

    # -- the rows of the folds --------------------------------------------------------------------------------------

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of folds of `CACHED_ROWS` rows together, or of one fold."""
        starts = self.folds.starts
        lo = 0
        while lo < self.folds.k:
            hi = int(np.searchsorted(starts, starts[lo] + CACHED_ROWS, side="right")) - 1
            hi = min(max(hi, lo + 1), self.folds.k)
            yield lo, hi
            lo = hi

    def over_chunks(self, work: Callable[[int, int], Made]) -> Iterator[Made]:
        """Yield what `work(lo, hi)` makes of every chunk of folds, on threads where there are several."""
        return run_folds(self.chunks(), work, 1 if self.one_chunk else self.threads)

    def rows(self, lo: int, hi: int) -> HeldOutRows:
        """Rows of the folds lo..hi of a chunk; kept where all of them are not much."""
        if lo in self._kept:
            return self._kept[lo]
        starts = self.folds.starts[lo : hi + 1]
        index = (
            slice(int(self.folds.order[starts[0]]), int(self.folds.order[starts[0]] + starts[-1] - starts[0]))
            if self._in_order
            else self.folds.order[starts[0] : starts[-1]]
        )
        base, root = self.full.base, self.data.root_of(index)
        V, r = self.data.about(index, base.v_mean, base.r_mean)
        root = np.ones(len(r)) if root is None else np.ascontiguousarray(root)
        held_out_rows = HeldOutRows(np.asfortranarray(V), r, np.ascontiguousarray(starts - starts[0]), root)
        if self._keep_rows:
            self._kept[lo] = held_out_rows
        return held_out_rows

    def leverages(self, g: int) -> tuple[FloatArray, FloatArray]:
        """Leverage and residual length of every fold in the fit on all columns; stored where folds are not too many.

        Parameters
        ----------
        g : int
            Index of gamma.

        Returns
        -------
        leverage, residual : (K,) arrays
            At least the largest eigenvalue of `H_NN`, and `||e_N||`.

        Notes
        -----
        O(n q^2).
        """
        if g not in self._leverages:
            found = self._measure_leverages(g)
            if 16 * self.folds.k * len(self.full.grid.gammas) > STORE_BYTES:
                return found
            self._leverages[g] = found
        return self._leverages[g]

    def _measure_leverages(self, g: int) -> tuple[FloatArray, FloatArray]:
        problem, rounding = self.full.problem(g), ACCURATE_RTOL + self.full.normal_form(g).keep
        factor = np.linalg.inv(np.linalg.cholesky(problem.M)).T
        beta = factor @ (factor.T @ problem.c)
        leverage, norm = np.empty(self.folds.k), np.empty(self.folds.k)

        def measure(lo: int, hi: int) -> None:
            V, r, starts, root = self.rows(lo, hi)
            Z = V @ factor
            e = r - V @ beta
            norm[lo:hi] = np.sqrt(np.add.reduceat(e * e, starts[:-1]))
            Z = np.column_stack([Z, np.sqrt(self.intercept_leverage) * root])
            sizes, largest = np.diff(starts), np.empty(hi - lo)
            for size in np.unique(sizes).tolist():
                which = np.flatnonzero(sizes == size)
                blocks = Z[starts[which, None] + np.arange(size)]
                largest[which] = np.linalg.eigvalsh(blocks @ blocks.transpose(0, 2, 1))[:, -1]
            leverage[lo:hi] = largest * (1.0 + rounding) + rounding

        for _ in self.over_chunks(measure):
            pass
        return leverage, norm

    # -- supports ---------------------------------------------------------------------------------------------------

    def score(
        self,
        listing: ListedSupports,
        rows: HeldOutRows,
        limit: FloatArray | None = None,
        leverage: FloatArray | None = None,
        first: int = 0,
        scores: BestByFold | None = None,
    ) -> BestByFold:
        """Score every listed support in every fold of a chunk, and keep the best of each (tau, fold).

        Parameters
        ----------
        listing : ListedSupports
        rows : HeldOutRows
            Of the K folds of the chunk.
        limit : (T, K) array, optional
            A support with an objective on all rows above it cannot win; no limit by default.
        leverage : (K,) array, optional
            At least the largest eigenvalue of every fold's `H_NN`, for any support.
        first : int
            Number of the first listed support.
        scores : BestByFold, optional
            Of other supports: changed in place and returned.

        Notes
        -----
        O(n s^2) a support.
        """
        folds = len(rows.starts) - 1
        if scores is None:
            scores = BestByFold.empty(len(self.taus), folds)
        most = np.full(folds, CLIPPED_LEVERAGE) if leverage is None else np.minimum(leverage, CLIPPED_LEVERAGE)
        if limit is None:
            limit = np.full((len(self.taus), folds), np.inf)
        limits = leave_out.WinLimits(np.ascontiguousarray(limit, dtype=float), most)
        leave_out.score_supports(rows, self.intercept_leverage, listing, limits, first, scores)
        return scores


class FullFit:
    """The fit of all columns on the full data, what it leaves in every fold, and the folds' incumbents.

    Parameters
    ----------
    left_out : LeftOutFolds
    g : int
        Index of gamma.
    supports : sequence of int arrays
        Incumbents of every fold.
    tau_index : sequence of int
        Index of the tau that each is for.

    Attributes
    ----------
    problem, form : SparseProblem, NormalForm
        The full data at the gamma.
    choice : ForcedColumns
        Columns that are forced in, which `form` is without, and its own.
    V, beta, value : (m, m), (m,) arrays, float
        `M^{-1}`, coefficients and objective of the fit on all columns, in the coordinates of `form`.
    lower : float
        That objective less what rounding may have added to it.
    leverage, residual : (K,) arrays
        At least the largest eigenvalue of `H_NN`, and the length of the held-out residuals, by fold.
    incumbents : ListedSupports
    """

    def __init__(self, left_out: LeftOutFolds, g: int, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
        full = left_out.full
        self.left_out, self.g, self.supports, self.tau_index = left_out, g, list(supports), list(tau_index)
        self.problem, self.form = full.problem(g), full.normal_form(g)
        self.choice: ForcedColumns = full.eliminated(g).choice
        self.V, self.beta, self.value = full.solved(g)
        self.lower = self.value - self.form.slack
        self.leverage, self.residual = left_out.leverages(g)
        self.incumbents = listed_supports(self.problem, self.supports, self.tau_index)
        bytes_each = sum(array.itemsize for array in BestByFold.empty(0, 0))
        self._keep = bytes_each * len(left_out.taus) * left_out.folds.k <= STORE_BYTES
        self._kept: dict[int, BestByFold] = {}

    @property
    def inner(self) -> BoolArray:
        """(T,): whether a tau leaves something to choose."""
        sizes = np.array(self.choice.sizes(self.left_out.taus.tolist()))
        return np.asarray((sizes > 0) & (sizes < self.form.m))

    def whole(self, mask: BoolArray) -> IntArray:
        """Return columns of `form` as a support, with the columns that are forced in."""
        return self.choice.whole(self.form.columns[mask])

    def scores(self, lo: int, hi: int) -> BestByFold:
        """Scores of the incumbents in folds lo..hi of a chunk; kept where they are not much, to be read only."""
        if lo in self._kept:
            return self._kept[lo]
        scores = self.left_out.score(self.incumbents, self.left_out.rows(lo, hi))
        if self._keep:
            self._kept[lo] = scores
        return scores

    def cutoffs(self, lo: int, hi: int) -> FloatArray:
        """(T, hi - lo): the incumbents' objectives in folds lo..hi, raised by what the trees' rounding may hide."""
        return self.raised(self.scores(lo, hi))

    def raised(self, incumbents: BestByFold) -> FloatArray:
        """(T, K): cutoffs from the scores of the incumbents in K folds."""
        return self.form.raised(incumbents.value)


class ScoredTogether:
    """The incumbents of a full fit and more supports, to be scored in every fold together.

    Parameters
    ----------
    root : FullFit
    supports : sequence of int arrays
        The further ones.
    tau_index : sequence of int
        Index of the tau that each is for.

    Attributes
    ----------
    listing : ListedSupports
        The incumbents first.
    supports : list of int arrays
    """

    def __init__(self, root: FullFit, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
        self.root, self.first = root, len(root.supports)
        self.supports = [*root.supports, *supports]
        self.listing = listed_supports(root.problem, self.supports, [*root.tau_index, *tau_index])

    def scores(
        self, lo: int, hi: int, limit: FloatArray | None = None, leverage: FloatArray | None = None,
        incumbents: BestByFold | None = None,
    ) -> BestByFold:  # fmt: skip
        """Scores of all of them in folds lo..hi of a chunk.

        Parameters
        ----------
        lo, hi : int
        limit : (T, hi - lo) array, optional
            A further support with an objective on all rows above it cannot win; no limit by default.
        leverage : (hi - lo,) array, optional
            At least the largest eigenvalue of every fold's `H_NN`, for any support.
        incumbents : BestByFold, optional
            What `root.scores(lo, hi)` returns, where it is at hand.
        """
        left_out, mine = self.root.left_out, (incumbents or self.root.scores(lo, hi)).copy()
        return left_out.score(self.listing.after(self.first), left_out.rows(lo, hi), limit, leverage, self.first, mine)


def bound_folds(root: FullFit, full_lower: FloatArray) -> Iterator[FoldBounds]:
    """Bound every fold by its incumbents, in closed form.

    Their held-out losses are the estimates that order a search. Their objectives u are feasible in the fold: the
    training-loss bound, with lower bounds on the full data, bounds the held-out loss from below
    (:func:`sparsecv_mio.bounds.closed_form.training_loss_bound`), the fold's ridge ball from above
    (:func:`held_out_ceiling`).

    Parameters
    ----------
    root : FullFit
    full_lower : (T,) array
        Lower bounds on the optima of the full data.
    """
    form, lower = root.form, full_lower - root.form.slack

    def bound(lo: int, hi: int) -> FoldBounds:
        scores, cutoffs = root.scores(lo, hi), root.cutoffs(lo, hi)
        well = is_well_known(root, scores)
        bounds = show_scores(root, scores, root.supports, (lo, hi), ("objective_upper",))
        leverage = np.minimum(root.leverage[lo:hi], 1.0)
        residual = root.residual[lo:hi] * (1.0 + KEEP_RTOL) + form.slack
        bounds.objective_upper[...] = np.where(well, cutoffs, np.inf)
        bounds.lower[...] = np.where(well, np.maximum(training_loss_bound(lower[:, None], cutoffs), 0.0), 0.0)
        bounds.upper[...] = np.where(well, held_out_ceiling(cutoffs, root.lower, residual, leverage), np.inf)
        return bounds

    return root.left_out.over_chunks(bound)


SHOWN = "best", "held_out", "objective", "lower", "upper", "is_solved", "is_branched"


def show_scores(
    root: FullFit, scores: BestByFold, supports: Sequence[IntArray], part: tuple[int, int], also: tuple[str, ...] = ()
) -> FoldBounds:
    """Return the best support of every size and fold of a chunk, of which nothing is proved.

    Parameters
    ----------
    root : FullFit
    scores : BestByFold
        Of the folds of the chunk.
    supports : sequence of int arrays
        Those that `scores.which` counts.
    part : int, int
        First fold of the chunk, and the one after its last.
    also : tuple of str
        Further arrays that will be filled.
    """
    well, n_sizes = is_well_known(root, scores), len(root.left_out.taus)
    bounds = FoldBounds.unknown(
        root.g, tuple(range(n_sizes)), slice(*part), part[1] - part[0], supports, (*SHOWN, *also)
    )
    bounds.best[...] = np.where(well, scores.which, -1)
    bounds.held_out[...] = np.where(well, scores.held_out, np.nan)
    bounds.objective[...] = np.where(well, scores.value, np.inf)
    return bounds


def solve_scored(bounds: FoldBounds, scores: BestByFold, is_sure: BoolArray, is_branched: BoolArray) -> None:
    """Solve the subproblems whose best support is sure to be optimal.

    One whose held-out loss is not accurate enough stays open.

    Parameters
    ----------
    bounds : FoldBounds
        Their arrays are changed.
    scores : BestByFold
    is_sure : (T, K') bool array
    is_branched : (T,) bool array
        Sizes of which a tree was needed.
    """
    has_support = scores.which >= 0
    with np.errstate(invalid="ignore"):  # what is not known of a subproblem may be no number
        total = np.where(has_support, scores.held_out, 0.0).sum(axis=1, keepdims=True)
        mean = total / np.maximum(has_support.sum(axis=1, keepdims=True), 1)
        sure = is_sure & has_support & (scores.error <= 2.0 * KEEP_RTOL * scores.held_out + CROSSING_RTOL * mean)
    bounds.best[sure], bounds.held_out[sure] = scores.which[sure], scores.held_out[sure]
    bounds.objective[sure] = scores.value[sure]
    bounds.lower[sure] = np.maximum(scores.held_out - scores.error, 0.0)[sure]
    bounds.upper[sure] = (scores.held_out + scores.error)[sure]
    bounds.is_solved[...], bounds.is_branched[...] = sure, sure & is_branched[:, None]


def is_well_known(root: FullFit, scores: BestByFold) -> BoolArray:
    """Where the held-out loss of the best support is known well enough to be shown, in the shape of the scores."""
    return np.asarray((scores.which >= 0) & (scores.error <= WORST_ROUNDING * scores.held_out + root.form.slack))

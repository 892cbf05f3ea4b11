"""Held-out folds of a ridge fit in closed form: the full-data fit determines the fit without each fold.

The notation is that of docs/theory.md, section 5. `f` is the training objective on all rows, and `f^(-N)` is the
training objective without the rows N of a fold. For a support S, `e_N` are the residuals of the rows N in the full-data
fit of S, and `H_NN` is the block of the hat matrix for these rows. If there is an intercept, `1/n` is added to every
entry of `H_NN`. With row weights `w_i`, each row i is multiplied by `sqrt(w_i)`, and `sqrt(w_i w_j) / (sum of all w)`
replaces `1/n` in the entry (i, j).

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residuals = (I - H_NN)^{-1} e_N.

`LeftOutFolds` evaluates these formulas for listed supports (:mod:`sparsecv_mio.kernels.leave_out`). Bounds that hold
for all supports use only the fit on *all* columns (`FullFit`). From this fit, the bounds need only the length `||e_N||`
of the residuals (`residual`) and the largest eigenvalue of `H_NN` (`leverage`), both rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from sparsecv_mio.arrays import CACHED_ROWS, STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ball_of_left_out, training_loss_bound
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import ForcedColumns
from sparsecv_mio.kernels import leave_out
from sparsecv_mio.kernels.leave_out import BestByFold, HeldOutRows, ListedSupports
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.context import BestOnAllRows
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.normal_form import NormalForm
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, KEEP_RTOL, TIE_RTOL, WORST_ROUNDING
from sparsecv_mio.words import Intercept

Made = TypeVar("Made")


def listed_supports(problem: SparseProblem, supports: Sequence[IntArray], tau_index: Sequence[int]) -> ListedSupports:
    """Fit supports on the moments of all rows.

    Parameters
    ----------
    problem : SparseProblem
        Problem of all rows.
    supports : sequence of int arrays
        Supports to fit.
    tau_index : sequence of int
        Index of the tau of each support.

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
    """Return True where the second smallest value of a tree is too far above the smallest for a refit to swap them.

    Parameters
    ----------
    best, second : arrays of one shape
        Two smallest objectives that the tree found.
    form : NormalForm
        Problem that the tree solved, which determines the rounding of the tree.
    """
    return np.asarray(second > form.raise_cutoff(best))


def is_best_untied(best: FloatArray, second: FloatArray, value_error: FloatArray | float) -> BoolArray:
    """Return True where the second smallest objective of refitted supports cannot be tied with the smallest.

    Parameters
    ----------
    best, second : arrays of one shape
        Two smallest objectives.
    value_error : array or float
        Bound on the rounding error of each objective.
    """
    return np.asarray(second - 2.0 * value_error > best * (1.0 + 1.01 * TIE_RTOL) + 2.0 * value_error)


WIDEST_LEVERAGE = 0.45  # leverage of a fold from which `objective_threshold` gives no bound; it diverges at one half
LARGEST_LEVERAGE = 0.99  # leverage of a fold from which dividing by `1 - leverage` loses too many digits
WIDEST_KEEP = 1e-6  # rounding of a full-data fit up to which it serves the folds; it is added to thresholds


def largest_decrease(residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Return the largest decrease of the objective of the fit on all columns when the fold is held out.

    `f(A) - f^(-N)(A) = e_N' (I - H_NN)^{-1} e_N <= ||e_N||^2 / (1 - leverage)`, A all columns.

    Parameters
    ----------
    residual, leverage : arrays of one shape
        Length of the held-out residuals, and leverage, of each fold.

    Returns
    -------
    array
        Bound of each fold; inf where the leverage is 1 or more.

    Examples
    --------
    >>> largest_decrease(np.array([3.0, 1.0]), np.array([0.1, 1.0])).tolist()
    [10.0, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        decrease = residual**2 / (1.0 - leverage)
    return np.where(leverage < 1.0, decrease, np.inf)


def objective_threshold(excess: FloatArray, residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Return the largest `f(S) - f(A)`, on all rows, of a support S that may be optimal in a fold; A all columns.

    A support is optimal in the fold only if `f^(-N)(S) <= cutoff`. By the joint bound of section 5, `f(S) - f^(-N)(S)
    <= (||e_N|| + sqrt(leverage (f(S) - f(A))))^2 / (1 - leverage)`. With `u^2 = f(S) - f(A)` and `excess = cutoff -
    f(A)`

        u^2 - (residual + sqrt(leverage) u)^2 / (1 - leverage) <= excess,

    a quadratic in u whose larger root bounds u if the leverage is below one half.

    Parameters
    ----------
    excess : array
        Upper bound on `cutoff - f(A)`; broadcast against the other two arrays.
    residual, leverage : arrays of one shape
        Length of the held-out residuals, and leverage, of each fold.

    Returns
    -------
    array
        Bound `u^2`, raised by `WIDEST_KEEP`; inf where the leverage is `WIDEST_LEVERAGE` or more. If the quadratic has
        no root, no support can be optimal, and the bound is evaluated at discriminant 0.

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


def enclose_held_out_errors(
    cutoff: FloatArray, lower: float, residual: tuple[FloatArray, FloatArray], leverage: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the held-out error of every b with `f^(-N)(b) <= cutoff`, from the full-data fit.

    The bounds come from the ridge ball of the fold, see :func:`sparsecv_mio.bounds.closed_form.ball_of_left_out`. With
    b0 the ridge fit of the fold on all columns, `f^(-N)(b0) >= f(A) - largest_decrease`.

    Parameters
    ----------
    cutoff : array
        Upper bounds on the objective; broadcast against `residual` and `leverage`.
    lower : float
        Lower bound on `f(A)`, the objective of all columns on all rows.
    residual : two arrays
        Lower and upper bounds on the length of the held-out residuals of each fold.
    leverage : array
        Leverage of each fold.

    Returns
    -------
    lower, upper : arrays
        Bounds, rounded outward by `KEEP_RTOL`; 0 and inf where the leverage is `LARGEST_LEVERAGE` or more.

    Examples
    --------
    >>> one = np.ones(1)
    >>> [bound.round(6).tolist() for bound in enclose_held_out_errors(5.0 * one, 1.0, (one, one), 0.0 * one)]
    [[1.0], [1.0]]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        room = cutoff - (lower - largest_decrease(residual[1], leverage))
        least, most = ball_of_left_out(room, residual, leverage)
    is_bounded = leverage < LARGEST_LEVERAGE
    return np.where(is_bounded, least * (1.0 - KEEP_RTOL), 0.0), np.where(is_bounded, most * (1.0 + KEEP_RTOL), np.inf)


CLIPPED_LEVERAGE = 0.9999  # upper limit of the leverage where rounding errors are divided by `1 - leverage`


class LeftOutFolds:
    """Scores of supports in every fold from their fits on the full data.

    Parameters
    ----------
    full : BestOnAllRows
        Moments and normal forms of the full data.
    folds : FoldPlan
        Folds of the data.
    threads : int
        Number of threads.

    Attributes
    ----------
    taus : (T,) int array
        Sizes of the grid.
    intercept_leverage : float
        Quantity `1/n` if every fold has its own intercept, n the weight of all rows. It is added to each entry of a hat
        matrix, times the roots of the weights of its two rows.
    one_chunk : bool
        True if the rows of all folds are processed at once.
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
        """Yield ranges of folds with `CACHED_ROWS` rows together, or with one fold."""
        starts = self.folds.starts
        lo = 0
        while lo < self.folds.k:
            hi = int(np.searchsorted(starts, starts[lo] + CACHED_ROWS, side="right")) - 1
            hi = min(max(hi, lo + 1), self.folds.k)
            yield lo, hi
            lo = hi

    def map_chunks(self, work: Callable[[int, int], Made]) -> Iterator[Made]:
        """Yield the result of `work(lo, hi)` for every chunk of folds, on threads if there are several chunks."""
        return run_folds(self.chunks(), work, 1 if self.one_chunk else self.threads)

    def rows(self, lo: int, hi: int) -> HeldOutRows:
        """Return the rows of the folds lo..hi of a chunk; they are stored if all rows fit into the memory limit."""
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
        """Return the leverage and residual length of every fold in the fit on all columns; stored if not too many.

        Parameters
        ----------
        g : int
            Index of gamma.

        Returns
        -------
        leverage, residual : (K,) arrays
            Upper bounds on the largest eigenvalue of `H_NN`, and `||e_N||`.

        Notes
        -----
        O(n q^2).
        """
        if g not in self._leverages:
            leverages = self._measure_leverages(g)
            if 16 * self.folds.k * len(self.full.grid.gammas) > STORE_BYTES:
                return leverages
            self._leverages[g] = leverages
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

        for _ in self.map_chunks(measure):
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
        """Score every listed support in every fold of a chunk, and return the best of each (tau, fold).

        Parameters
        ----------
        listing : ListedSupports
            Supports with their full-data fits.
        rows : HeldOutRows
            Rows of the K folds of the chunk.
        limit : (T, K) array, optional
            Full-data objectives above which a support cannot be optimal in a fold; no limit by default.
        leverage : (K,) array, optional
            Upper bounds on the largest eigenvalue of `H_NN` of every fold, for any support.
        first : int
            Number of the first listed support.
        scores : BestByFold, optional
            Scores of other supports; changed in place and returned.

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
    """The fit of all columns on the full data, its residuals and leverages in every fold, and the folds' incumbents.

    Parameters
    ----------
    left_out : LeftOutFolds
        Scores of supports in every fold.
    g : int
        Index of gamma.
    supports : sequence of int arrays
        Incumbents of every fold.
    tau_index : sequence of int
        Index of the tau of each support.

    Attributes
    ----------
    problem, form : SparseProblem, NormalForm
        Full data at the gamma.
    choice : ForcedColumns
        Forced columns, which `form` does not contain, and the columns of `form`.
    V, beta, value : (m, m), (m,) arrays, float
        `M^{-1}`, coefficients and objective of the fit on all columns, in the coordinates of `form`.
    lower : float
        Lower bound on that objective: the objective less its rounding error.
    leverage, residual : (K,) arrays
        Upper bound on the largest eigenvalue of `H_NN`, and length of the held-out residuals, by fold.
    incumbents : ListedSupports
        Incumbents with their full-data fits.
    """

    def __init__(self, left_out: LeftOutFolds, g: int, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
        full = left_out.full
        self.left_out, self.g, self.supports, self.tau_index = left_out, g, list(supports), list(tau_index)
        self.problem, self.form = full.problem(g), full.normal_form(g)
        self.choice: ForcedColumns = full.reduced_problem(g).choice
        self.V, self.beta, self.value = full.ridge_solution(g)
        self.lower = self.value - self.form.slack
        self.leverage, self.residual = left_out.leverages(g)
        self.incumbents = listed_supports(self.problem, self.supports, self.tau_index)
        bytes_each = sum(array.itemsize for array in BestByFold.empty(0, 0))
        self._keep = bytes_each * len(left_out.taus) * left_out.folds.k <= STORE_BYTES
        self._kept: dict[int, BestByFold] = {}

    @property
    def inner(self) -> BoolArray:
        """(T,): True for each tau that leaves columns to choose."""
        sizes = np.array(self.choice.sizes(self.left_out.taus.tolist()))
        return np.asarray((sizes > 0) & (sizes < self.form.m))

    def make_support(self, mask: BoolArray) -> IntArray:
        """Return columns of `form` as a support, together with the forced columns."""
        return self.choice.make_support(self.form.columns[mask])

    def scores(self, lo: int, hi: int) -> BestByFold:
        """Return the scores of the incumbents in folds lo..hi of a chunk, read-only; stored if they are few."""
        if lo in self._kept:
            return self._kept[lo]
        scores = self.left_out.score(self.incumbents, self.left_out.rows(lo, hi))
        if self._keep:
            self._kept[lo] = scores
        return scores

    def cutoffs(self, lo: int, hi: int) -> FloatArray:
        """(T, hi - lo): objectives of the incumbents in folds lo..hi, raised by the bound on the rounding of trees."""
        return self.incumbent_cutoffs(self.scores(lo, hi))

    def incumbent_cutoffs(self, incumbents: BestByFold) -> FloatArray:
        """(T, K): cutoffs from the scores of the incumbents in K folds."""
        return self.form.raise_cutoff(incumbents.value)


class ScoredTogether:
    """The incumbents of a full fit and further supports, which are scored in every fold together.

    Parameters
    ----------
    root : FullFit
        Fit of the full data, with the incumbents.
    supports : sequence of int arrays
        Further supports.
    tau_index : sequence of int
        Index of the tau of each further support.

    Attributes
    ----------
    listing : ListedSupports
        All supports with their full-data fits, the incumbents first.
    supports : list of int arrays
        All supports in the same order.
    """

    def __init__(self, root: FullFit, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
        self.root, self.first = root, len(root.supports)
        self.supports = [*root.supports, *supports]
        self.listing = listed_supports(root.problem, self.supports, [*root.tau_index, *tau_index])

    def scores(
        self, lo: int, hi: int, limit: FloatArray | None = None, leverage: FloatArray | None = None,
        incumbents: BestByFold | None = None,
    ) -> BestByFold:  # fmt: skip
        """Return the scores of all supports in folds lo..hi of a chunk.

        Parameters
        ----------
        lo, hi : int
            Range of folds.
        limit : (T, hi - lo) array, optional
            Full-data objectives above which a further support cannot be optimal in a fold; no limit by default.
        leverage : (hi - lo,) array, optional
            Upper bounds on the largest eigenvalue of `H_NN` of every fold, for any support.
        incumbents : BestByFold, optional
            Result of `root.scores(lo, hi)`, if it is already computed.
        """
        left_out, mine = self.root.left_out, (incumbents or self.root.scores(lo, hi)).copy()
        return left_out.score(self.listing.after(self.first), left_out.rows(lo, hi), limit, leverage, self.first, mine)


def bound_folds(root: FullFit, full_lower: FloatArray) -> Iterator[SubproblemBounds]:
    """Bound every fold by its incumbents, in closed form.

    The held-out losses of the incumbents are the estimates that order a search. Their objectives u are feasible in the
    fold. The training-loss bound, with lower bounds on the full data, bounds the held-out loss from below
    (:func:`sparsecv_mio.bounds.closed_form.training_loss_bound`). The ridge ball of the fold bounds it from below and
    above (:func:`enclose_held_out_errors`).

    Parameters
    ----------
    root : FullFit
        Fit of the full data, with the incumbents.
    full_lower : (T,) array
        Lower bounds on the optima of the full data.
    """
    form, lower = root.form, full_lower - root.form.slack

    def bound(lo: int, hi: int) -> SubproblemBounds:
        scores, leverage = root.scores(lo, hi), np.minimum(root.leverage[lo:hi], 1.0)
        cutoffs = root.incumbent_cutoffs(scores) + scores.error  # the error of e' (I - H_NN)^{-1} e is no larger
        well = is_well_known(root, scores, (lo, hi))
        bounds = show_scores(root, scores, root.supports, (lo, hi), ("objective_upper",))
        length = root.residual[lo:hi]
        doubt = form.keep * (length + np.sqrt(root.problem.yy)) + form.slack  # rounding of the fit on all columns
        ends = np.maximum(length - doubt, 0.0), length * (1.0 + KEEP_RTOL) + form.slack
        least, most = enclose_held_out_errors(cutoffs, root.lower, ends, leverage)
        bounds.objective_upper[...] = np.where(well, cutoffs, np.inf)
        bounds.lower[...] = np.where(well, np.maximum(training_loss_bound(lower[:, None], cutoffs), least), 0.0)
        bounds.upper[...] = np.where(well, most, np.inf)
        return bounds

    return root.left_out.map_chunks(bound)


SHOWN = "best", "held_out", "objective", "lower", "upper", "is_solved", "is_branched"


def show_scores(
    root: FullFit, scores: BestByFold, supports: Sequence[IntArray], part: tuple[int, int], also: tuple[str, ...] = ()
) -> SubproblemBounds:
    """Return the best support of every size and fold of a chunk, without any proof of optimality.

    Parameters
    ----------
    root : FullFit
        Fit of the full data.
    scores : BestByFold
        Scores in the folds of the chunk.
    supports : sequence of int arrays
        Supports that the indices in `scores.which` refer to.
    part : int, int
        First fold of the chunk, and the fold after its last.
    also : tuple of str
        Names of further arrays that will be filled.
    """
    well, n_sizes = is_well_known(root, scores, part), len(root.left_out.taus)
    bounds = SubproblemBounds.unknown(
        root.g, tuple(range(n_sizes)), slice(*part), part[1] - part[0], supports, (*SHOWN, *also)
    )
    bounds.best[...] = np.where(well, scores.which, -1)
    bounds.held_out[...] = np.where(well, scores.held_out, np.nan)
    bounds.objective[...] = np.where(well, scores.value, np.inf)
    return bounds


def solve_sure_subproblems(
    bounds: SubproblemBounds, scores: BestByFold, is_sure: BoolArray, is_branched: BoolArray
) -> None:
    """Solve the subproblems whose best support is certainly optimal.

    A subproblem whose held-out loss is not accurate enough stays open.

    Parameters
    ----------
    bounds : SubproblemBounds
        Bounds whose arrays are changed.
    scores : BestByFold
        Best supports with their scores.
    is_sure : (T, K') bool array
        Subproblems whose best support is certainly optimal.
    is_branched : (T,) bool array
        Sizes that needed a tree.
    """
    has_support = scores.which >= 0
    with np.errstate(invalid="ignore"):  # unknown values of a subproblem may be nan
        total = np.where(has_support, scores.held_out, 0.0).sum(axis=1, keepdims=True)
        mean = total / np.maximum(has_support.sum(axis=1, keepdims=True), 1)
        sure = is_sure & has_support & (scores.error <= 2.0 * KEEP_RTOL * scores.held_out + CROSSING_RTOL * mean)
    bounds.best[sure], bounds.held_out[sure] = scores.which[sure], scores.held_out[sure]
    bounds.objective[sure] = scores.value[sure]
    bounds.lower[sure] = np.maximum(scores.held_out - scores.error, 0.0)[sure]
    bounds.upper[sure] = (scores.held_out + scores.error)[sure]
    bounds.is_solved[...], bounds.is_branched[...] = sure, sure & is_branched[:, None]


def is_well_known(root: FullFit, scores: BestByFold, part: tuple[int, int]) -> BoolArray:
    """Return True, in the shape of the scores, where the held-out loss of the best support may be shown.

    The error of a fold of several rows is valid for leverages up to `CLIPPED_LEVERAGE`.
    """
    has_error = (root.leverage[slice(*part)] <= CLIPPED_LEVERAGE) | (root.left_out.folds.sizes[slice(*part)] == 1)
    is_known = has_error & (scores.which >= 0) & np.isfinite(scores.error)
    return np.asarray(is_known & (scores.error <= WORST_ROUNDING * scores.held_out + root.form.slack))

"""Leaving a fold out of a ridge fit in closed form: what the fit on all rows says of every fold's own fit.

Notation of docs/theory.md, section 5. `f` is the training objective on all rows, `f^(-N)` that without the rows of the
fold N. For a support S, with `e_N` the residuals of the held-out rows in the fit of S on all rows and `H_NN` their
block of the hat matrix (plus `1/n` in every entry where an intercept is profiled out, or, of weighted rows, which are
times the roots of their weights, the product of these over the weight of all rows),

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residuals = (I - H_NN)^{-1} e_N.

`LeaveOut` evaluates these for listed supports (:mod:`sparsecv_mio.kernels.leave_out`). What needs no support uses the
fit on *all* columns only (`RootNode`), `residual = ||e_N||` and `leverage`, the largest eigenvalue of `H_NN`, both
rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import CACHED_ROWS, STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ball_of_left_out, training_loss_bound
from sparsecv_mio.kernels import leave_out
from sparsecv_mio.kernels.leave_out import BestByFold, HeldOutRows, ListedSupports
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.problem.elimination import ForcedColumns
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.context import SearchState
from sparsecv_mio.thresholds import SUPPORTS_TRIED
from sparsecv_mio.trees.normal_form import NormalForm
from sparsecv_mio.trees.support_fits import fit_from_moments
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, KEEP_RTOL, TIE_RTOL, WORST_ROUNDING
from sparsecv_mio.words import Intercept


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


class LeaveOut:
    """Scores supports in every fold from their fit on all rows, and writes the cells that this decides.

    Parameters
    ----------
    state : SearchState
        With the best supports found on all rows, where trees for all folds are to be grown; decided cells are written.

    Attributes
    ----------
    intercept_leverage : float
        `1/n` where every fold has its own intercept, n the weight of all rows: what that adds to each entry of a hat
        matrix, times the roots of the weights of its two rows.
    one_chunk : bool
        Whether the rows of all folds are worked on at once.
    """

    def __init__(self, state: SearchState) -> None:
        context, all_rows = state.context, state.all_rows
        self.context, self.all_rows, self.cells = context, all_rows, state.cells
        self.data, self.folds, self.taus = context.data, context.folds, context.grid.taus
        self.intercept_leverage = 1.0 / all_rows.moments.total if self.data.intercept is Intercept.FOLD else 0.0
        self.one_chunk = next(self.chunks())[1] == self.folds.k
        self._in_order = bool(np.all(np.diff(self.folds.order) == 1))
        self._keep_rows = 8 * self.data.n * self.data.q <= STORE_BYTES
        self._kept: dict[int, HeldOutRows] = {}

    def expired(self) -> bool:
        """Whether the search should end with what it holds."""
        return self.context.deadline.expired()

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

    def over_chunks(self, work: Callable[[int, int], None]) -> None:
        """Do `work(lo, hi)` on every chunk of folds, on threads where there are several."""
        on_threads(lambda piece: work(*piece), list(self.chunks()), self.context.threads)

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
        base, root = self.all_rows.base, self.data.root_of(index)
        V, r = self.data.about(index, base.v_mean, base.r_mean)
        root = np.ones(len(r)) if root is None else np.ascontiguousarray(root)
        held_out_rows = HeldOutRows(np.asfortranarray(V), r, np.ascontiguousarray(starts - starts[0]), root)
        if self._keep_rows:
            self._kept[lo] = held_out_rows
        return held_out_rows

    def leverages(self, problem: SparseProblem, rounding: float) -> tuple[FloatArray, FloatArray]:
        """Leverage and residual length of every fold in the fit on all columns.

        Parameters
        ----------
        problem : SparseProblem
            All rows at one gamma.
        rounding : float
            Relative and absolute rounding error of the leverages, added to them.

        Returns
        -------
        leverage, residual : (K,) arrays
            Largest eigenvalue of `H_NN`, and `||e_N||`.

        Notes
        -----
        O(n q^2).
        """
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

        self.over_chunks(measure)
        return leverage, norm

    # -- supports ---------------------------------------------------------------------------------------------------

    def supports_on_all_rows(self, g: int, wanted: Sequence[int]) -> tuple[list[IntArray], list[int]]:
        """Return the best supports found on all rows, for some tau, and the index of tau of each."""
        pairs = []
        for t in wanted:
            cell = self.all_rows.best[g].by_size[int(self.taus[t])]
            pairs += [(support, t) for support in (cell.candidates or (cell.support,))[:SUPPORTS_TRIED]]
        return [support for support, _ in pairs], [t for _, t in pairs]

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

    def pool_numbers(self, listing: ListedSupports) -> NDArray[np.int32]:
        """Numbers of the listed supports in the pool of the cells."""
        pool = self.cells.pool
        return np.array(
            [pool.number(listing.supports[a, : listing.sizes[a]]) for a in range(len(listing.sizes))], dtype=np.int32
        )

    def decide(
        self,
        part: tuple[int, slice],
        scores: BestByFold,
        numbers: NDArray[np.int32],
        sure: BoolArray,
        branched: BoolArray | bool,
    ) -> int:
        """Write the cells of which the optimal support is sure to be the one scored best.

        Parameters
        ----------
        part : int, slice
            Index of gamma and consecutive folds.
        scores : BestByFold
            Of these folds.
        numbers : int array
            Numbers in the pool of the supports that `scores.which` counts.
        sure : (T, K) bool array
            Where the support is known to be the only optimal one. A cell whose held-out error is not known well enough
            stays open all the same.
        branched : bool array or bool
            Whether branch-and-bound was needed, broadcast against `sure`.

        Returns
        -------
        int
            Cells decided.
        """
        g, folds = part
        has_support = scores.which >= 0
        with np.errstate(invalid="ignore"):  # what is not known of a cell may be no number
            total = np.where(has_support, scores.held_out, 0.0).sum(axis=1, keepdims=True)
            mean = total / np.maximum(has_support.sum(axis=1, keepdims=True), 1)
            sure = sure & has_support & (scores.error <= 2.0 * KEEP_RTOL * scores.held_out + CROSSING_RTOL * mean)
        sure &= ~self.cells.final[g, :, folds]
        return self.cells.decide_part(
            (g, slice(None), folds), sure, numbers[scores.which], scores.held_out, scores.held_out - scores.error,
            scores.held_out + scores.error, scores.value, branched,
        )  # fmt: skip


class RootNode:
    """The fit of all columns on all rows, what it leaves in every fold, and the folds' incumbents.

    Parameters
    ----------
    leave_out : LeaveOut
    g : int
        Index of gamma.
    wanted : sequence of int
        Indices of the taus of which incumbents are wanted.

    Attributes
    ----------
    problem, form : SparseProblem, NormalForm
        All rows at the gamma.
    choice : ForcedColumns
        Columns that are forced in, which `form` is without, and its own.
    V, beta, value : (m, m), (m,) arrays, float
        `M^{-1}`, coefficients and objective of the fit on all columns, in the coordinates of `form`.
    lower : float
        That objective less what rounding may have added to it.
    leverage, residual : (K,) arrays
        At least the largest eigenvalue of `H_NN`, and the length of the held-out residuals, by fold.
    supports, tau_index : lists
        Supports scored in every fold as incumbents, and the index of the tau that each is for.
    incumbents : ListedSupports
        The same, fitted.
    """

    def __init__(self, leave_out: LeaveOut, g: int, wanted: Sequence[int]) -> None:
        all_rows = leave_out.all_rows
        self.leave_out, self.g = leave_out, g
        self.problem, self.form = all_rows.problem(g), all_rows.normal_form(g)
        self.choice: ForcedColumns = all_rows.eliminated(g).choice
        self.V, self.beta, self.value = all_rows.solved(g)
        self.lower = self.value - self.form.slack
        self.leverage, self.residual = leave_out.leverages(self.problem, ACCURATE_RTOL + self.form.keep)
        self.supports, self.tau_index = leave_out.supports_on_all_rows(g, wanted)
        self.incumbents = listed_supports(self.problem, self.supports, self.tau_index)
        bytes_each = sum(array.itemsize for array in BestByFold.empty(0, 0))
        self._keep = bytes_each * len(leave_out.taus) * leave_out.folds.k <= STORE_BYTES
        self._kept: dict[int, BestByFold] = {}

    @property
    def inner(self) -> BoolArray:
        """(T,): whether a tau leaves something to choose."""
        taus = self.leave_out.taus
        return np.asarray((taus > len(self.choice.forced)) & (taus < self.form.m + len(self.choice.forced)))

    def whole(self, mask: BoolArray) -> IntArray:
        """Return columns of `form` as a support, with the columns that are forced in."""
        return self.choice.whole(self.form.columns[mask])

    def scores(self, lo: int, hi: int) -> BestByFold:
        """Scores of the incumbents in folds lo..hi of a chunk; kept where they are not much, to be read only."""
        if lo in self._kept:
            return self._kept[lo]
        scores = self.leave_out.score(self.incumbents, self.leave_out.rows(lo, hi))
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
    """The incumbents of a root node and more supports, to be scored in every fold together.

    Parameters
    ----------
    root : RootNode
    supports : sequence of int arrays
        The further ones.
    tau_index : sequence of int
        Index of the tau that each is for.

    Attributes
    ----------
    listing : ListedSupports
        The incumbents first.
    numbers : (L,) int array
        Their numbers in the pool of the cells.
    """

    def __init__(self, root: RootNode, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
        leave_out = root.leave_out
        self.root, self.first = root, len(root.supports)
        self.listing = listed_supports(root.problem, [*root.supports, *supports], [*root.tau_index, *tau_index])
        self.numbers: NDArray[np.int32] = leave_out.pool_numbers(self.listing)

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
        leave_out, mine = self.root.leave_out, (incumbents or self.root.scores(lo, hi)).copy()
        return leave_out.score(
            self.listing.after(self.first), leave_out.rows(lo, hi), limit, leverage, self.first, mine
        )


def first_intervals(root: RootNode) -> None:
    """Show the best supports of all rows in every open cell of a gamma, and bound its held-out error.

    Their held-out errors are the estimates that order the search. Their objectives u are feasible in the fold: the
    training-loss bound, with the lower bounds found on all rows, bounds the held-out error from below
    (:func:`sparsecv_mio.bounds.closed_form.training_loss_bound`), the fold's ridge ball from above
    (:func:`held_out_ceiling`).

    Parameters
    ----------
    root : RootNode
        Whose wanted taus are all that have open cells.

    Raises
    ------
    Contradiction
        If an interval misses what is known of a cell.
    """
    leave_out, g, form = root.leave_out, root.g, root.form
    numbers = leave_out.pool_numbers(root.incumbents)
    best = leave_out.all_rows.best[g]
    lower = np.array([best.by_size[int(tau)].lower for tau in leave_out.taus]) - form.slack
    cells = leave_out.cells

    def write(lo: int, hi: int) -> None:
        scores, cutoffs = root.scores(lo, hi), root.cutoffs(lo, hi)
        well = well_known(root, scores) & ~cells.final[g, :, lo:hi]
        place = (g, slice(None), slice(lo, hi))
        cells.offer(place, numbers[scores.which], scores.held_out, np.where(well, scores.value, np.nan))
        leverage = np.minimum(root.leverage[lo:hi], 1.0)
        residual = root.residual[lo:hi] * (1.0 + KEEP_RTOL) + form.slack
        least = np.where(well, training_loss_bound(lower[:, None], cutoffs), 0.0)
        most = np.where(well, held_out_ceiling(cutoffs, root.lower, residual, leverage), np.inf)
        cells.narrow(place, least, most)

    leave_out.over_chunks(write)


def offer_supports(root: RootNode, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
    """Show more supports in every open cell of a gamma where they have the least objective so far.

    Parameters
    ----------
    root : RootNode
    supports : sequence of int arrays
    tau_index : sequence of int
        Index of the tau that each is for.

    Notes
    -----
    O(n s^2) a support.
    """
    leave_out = root.leave_out
    candidates = ScoredTogether(root, supports, tau_index)

    def write(lo: int, hi: int) -> None:
        scores = candidates.scores(lo, hi)
        place = (root.g, slice(None), slice(lo, hi))
        value = np.where(well_known(root, scores), scores.value, np.nan)
        leave_out.cells.offer(place, candidates.numbers[scores.which], scores.held_out, value)

    leave_out.over_chunks(write)


def well_known(root: RootNode, scores: BestByFold) -> BoolArray:
    """Where the held-out error of the best support is known well enough to be shown, in the shape of the scores."""
    return np.asarray((scores.which >= 0) & (scores.error <= WORST_ROUNDING * scores.held_out + root.form.slack))

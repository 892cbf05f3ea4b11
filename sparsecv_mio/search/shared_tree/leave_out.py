"""Supports fitted on all rows, scored in every fold by closed form: no branch-and-bound and no refit per fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.standard import Intercept
from sparsecv_mio.kernels import leave_out
from sparsecv_mio.kernels.leave_out import HeldOutRows
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.shared_tree.listed_supports import ListedSupports, Scores
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import AllRows

Proposed = Callable[[int, int], list[IntArray]]

CHUNK_ROWS = 1 << 14  # of the folds that are worked on at once
MOST_TIED = 8  # tied supports of all rows that are scored in every fold
KEPT_NUMBERS = 1 << 23  # of rows that are kept from one pass to the next
CLIPPED_LEVERAGE = 0.9999  # what a larger leverage counts as where rounding errors are divided by `1 - leverage`
NEGLIGIBLE_ERROR = 2e-8, 1e-7  # of a held-out error, and of the mean of such errors: cells known less well stay open
EIGENVALUE_TRACE = 1e-3  # up to here the trace of a fold's leverages stands for their largest eigenvalue


class LeaveOut:
    """Scores supports in every fold from their fit on all rows, and writes the cells that this decides.

    Parameters
    ----------
    all_rows : AllRows
        With the best supports found on them, where trees for all folds are to be grown.
    cells : CellTable
        Decided cells are written there.
    proposed : callable, optional
        `proposed(g, tau)` returns more supports worth scoring in every fold of a pair, of which nothing is proved.

    Attributes
    ----------
    intercept_leverage : float
        `1/n` where every fold has its own intercept, n the weight of all rows: what that adds to each entry of a hat
        matrix, times the roots of the weights of its two rows.
    one_chunk : bool
        Whether the rows of all folds are worked on at once.
    """

    def __init__(self, all_rows: AllRows, cells: CellTable, proposed: Proposed = lambda g, tau: []) -> None:
        context = all_rows.context
        self.context, self.all_rows, self.cells, self.proposed = context, all_rows, cells, proposed
        self.data, self.folds, self.taus = context.data, context.folds, context.grid.taus
        self.intercept_leverage = 1.0 / all_rows.moments.total if self.data.intercept is Intercept.FOLD else 0.0
        self.one_chunk = next(self.chunks())[1] == self.folds.k
        self._in_order = bool(np.all(np.diff(self.folds.order) == 1))
        self._keep_rows = self.data.n * self.data.q <= KEPT_NUMBERS
        self._kept: dict[int, HeldOutRows] = {}

    def expired(self) -> bool:
        """Whether the search should end with what it holds."""
        return self.context.deadline.expired()

    # -- the rows of the folds --------------------------------------------------------------------------------------

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of folds whose rows fit a chunk."""
        starts = self.folds.starts
        lo = 0
        while lo < self.folds.k:
            hi = int(np.searchsorted(starts, starts[lo] + CHUNK_ROWS, side="right")) - 1
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
        found = HeldOutRows(V, r, np.ascontiguousarray(starts - starts[0]), root)
        if self._keep_rows:
            self._kept[lo] = found
        return found

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
            trace = np.add.reduceat(np.einsum("ij,ij->i", Z, Z) + self.intercept_leverage * root * root, starts[:-1])
            for k in np.flatnonzero((np.diff(starts) > 1) & (trace > EIGENVALUE_TRACE)):
                block, ones = Z[starts[k] : starts[k + 1]], root[starts[k] : starts[k + 1]]
                trace[k] = np.linalg.eigvalsh(block @ block.T + self.intercept_leverage * np.outer(ones, ones))[-1]
            leverage[lo:hi] = trace * (1.0 + rounding) + rounding

        self.over_chunks(measure)
        return leverage, norm

    # -- supports ---------------------------------------------------------------------------------------------------

    def supports_on_all_rows(self, g: int, wanted: Sequence[int]) -> tuple[list[IntArray], list[int]]:
        """Return the best supports found on all rows and those proposed, for some tau, and the index of tau of each."""
        pairs = []
        for t in wanted:
            cell = self.all_rows.best[g].cells[int(self.taus[t])]
            pairs += [(support, t) for support in (cell.candidates or (cell.support,))[:MOST_TIED]]
        seen = {np.sort(support).tobytes() for support, _ in pairs}
        more = [(support, t) for t in wanted for support in self.proposed(g, int(self.taus[t]))]
        pairs += [(support, t) for support, t in more if support.tobytes() not in seen]
        return [support for support, _ in pairs], [t for _, t in pairs]

    def score(
        self,
        listing: ListedSupports,
        rows: HeldOutRows,
        limit: FloatArray | None = None,
        leverage: FloatArray | None = None,
        first: int = 0,
        scores: Scores | None = None,
    ) -> Scores:
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
        scores : Scores, optional
            Of other supports: changed in place and returned.

        Notes
        -----
        O(n s^2) a support.
        """
        folds = len(rows.starts) - 1
        if scores is None:
            scores = Scores.empty(len(self.taus), folds)
        most = np.full(folds, CLIPPED_LEVERAGE) if leverage is None else np.minimum(leverage, CLIPPED_LEVERAGE)
        if limit is None:
            limit = np.full((len(self.taus), folds), np.inf)
        listed = leave_out.Listed(
            listing.supports, listing.sizes, listing.tau_index, listing.value, listing.beta, listing.beta_error,
            listing.residual_error, listing.half_inverse, listing.leverage_error,
        )  # fmt: skip
        limits = leave_out.Limits(np.ascontiguousarray(limit, dtype=float), most)
        best = leave_out.Best(scores.value, scores.second, scores.held_out, scores.error, scores.which)
        if folds == len(rows.r):
            leave_out.score_supports_by_row(rows, self.intercept_leverage, listed, limits, first, best)
        else:
            leave_out.score_supports(rows, self.intercept_leverage, listed, limits, first, best)
        return scores

    def pool_numbers(self, listing: ListedSupports) -> NDArray[np.int32]:
        """Numbers of the listed supports in the pool of the cells."""
        pool = self.cells.pool
        return np.array(
            [pool.number(listing.supports[a, : listing.sizes[a]]) for a in range(len(listing))], dtype=np.int32
        )

    def decide(
        self,
        part: tuple[int, slice],
        scores: Scores,
        numbers: NDArray[np.int32],
        sure: BoolArray,
        branched: BoolArray | bool,
    ) -> int:
        """Write the cells of which the optimal support is sure to be the one scored best.

        Parameters
        ----------
        part : int, slice
            Index of gamma and consecutive folds.
        scores : Scores
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
        known, (of_cell, of_mean) = scores.which >= 0, NEGLIGIBLE_ERROR
        with np.errstate(invalid="ignore"):  # what is not known of a cell may be no number
            total = np.where(known, scores.held_out, 0.0).sum(axis=1, keepdims=True)
            mean = total / np.maximum(known.sum(axis=1, keepdims=True), 1)
            sure = sure & known & (scores.error <= of_cell * scores.held_out + of_mean * mean)
        sure &= ~self.cells.final[g, :, folds]
        return self.cells.decide_part(
            (g, slice(None), folds), sure, numbers[scores.which], scores.held_out, scores.held_out - scores.error,
            scores.held_out + scores.error, scores.value, branched,
        )  # fmt: skip

"""What every all-folds engine shares: full-data fits of listed supports, left out of exactly, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.formulation.backends.native.path import PathResult
from sparsecv_mio.kernels import leave_out
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.subproblem.moment_fits import fit_from_moments
from sparsecv_mio.units import TIE_RTOL

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Rows = tuple[FloatArray, FloatArray, IntArray]

CHUNK_ROWS = 1 << 15
KEPT_NUMBERS = 1 << 23  # of rows or scores that are kept from one pass to the next
WIDEST_ETA = 0.45  # leverage of a fold beyond which thresholds say nothing
SAFE_ETA = 0.99  # leverage beyond which the leave-out identity loses too many digits


@dataclass(frozen=True, eq=False)
class ListedSupports:
    """Supports worth leaving every fold out of, refitted on all rows; `place` is the row of tau."""

    supports: IntArray
    sizes: IntArray
    place: IntArray
    value: FloatArray
    value_error: FloatArray
    beta: FloatArray
    spread: FloatArray
    level: FloatArray
    half: FloatArray
    blur: FloatArray

    def __len__(self) -> int:
        return len(self.sizes)

    def blur_of(self, taus: int) -> FloatArray:
        """(taus,) rounding of a value left out of a fold, by row of tau: of its own supports alone.

        Leaving rows out divides by 1 - eta, eta < 1/2 where this is asked for.
        """
        worst = np.zeros(taus)
        np.maximum.at(worst, self.place, self.value_error)
        return 4.0 * worst

    def after(self, first: int) -> ListedSupports:
        """The supports from number `first` on; views, not copies."""
        return ListedSupports(*(getattr(self, f.name)[first:] for f in fields(self)))

    @classmethod
    def of(
        cls, problem: SparseProblem, supports: Sequence[IntArray], place: Sequence[int]
    ) -> ListedSupports:
        """Refit the supports on the full-data moments. O(s^3) each."""
        fits = fit_from_moments(problem, supports)
        table, sizes = fits.table, fits.sizes
        k, top = table.shape
        made = cls(
            supports=table,
            sizes=sizes,
            place=np.array(place, dtype=np.int64),
            value=fits.value,
            value_error=fits.value_error,
            beta=fits.beta,
            spread=fits.spread,
            level=np.zeros(k),
            half=np.zeros((k, top, top)),
            blur=np.zeros(k),
        )
        # rows are centred on rounded means
        lengths = np.sqrt(np.maximum(np.diag(problem.Q), 0.0) / problem.n)
        load = np.sqrt(problem.yy / problem.n) + (lengths[table] * np.abs(made.beta)).sum(axis=1)
        made.level[:] = 4.0 * np.finfo(float).eps * load
        leave_out.half_inverses(problem.Q, problem.penalty, table, sizes, made.half, made.blur)
        return made


@dataclass(frozen=True, eq=False)
class Scores:
    """Best two values by (tau, fold) of some consecutive folds, and what the best one predicts."""

    best: FloatArray
    second: FloatArray
    held: FloatArray
    error: FloatArray
    which: NDArray[np.int32]

    def copy(self) -> Scores:
        """Return a copy that may be written to."""
        return Scores(*(getattr(self, f.name).copy() for f in fields(self)))

    @classmethod
    def empty(cls, taus: int, folds: int) -> Scores:
        """Nothing known."""
        shape = (taus, folds)
        return cls(
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            np.zeros(shape),
            np.full(shape, -1, dtype=np.int32),
        )


class LeaveOut:
    """The full-data fit and the rows of every fold.

    Parameters
    ----------
    data, folds : StandardData, FoldPlan
    moments : Moments
        Of all rows.
    taus : (T,) int array
    cells : CellTable
        Decided cells are written here.
    threads : int
        Chunks of rows worked on at once.
    """

    def __init__(
        self, data: StandardData, folds: FoldPlan, moments: Moments, taus: IntArray, cells: CellTable, threads: int
    ) -> None:
        self.data, self.folds, self.taus, self.cells, self.threads = data, folds, taus, cells, threads
        self.base = moments.problem(data, 1.0)
        self.named: Callable[[int, int], list[IntArray]] = nothing_named
        self.lift = 1.0 / moments.n if data.intercept is Intercept.FOLD else 0.0
        self.sorted_rows = bool(np.all(np.diff(folds.order) == 1))
        self.single = next(self.chunks())[1] == folds.k
        self._keep_rows = data.n * data.q <= KEPT_NUMBERS
        self._kept: dict[int, Rows] = {}

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of folds whose rows fit a chunk."""
        starts = self.folds.starts
        lo = 0
        while lo < self.folds.k:
            hi = int(np.searchsorted(starts, starts[lo] + CHUNK_ROWS, side="right")) - 1
            hi = min(max(hi, lo + 1), self.folds.k)
            yield lo, hi
            lo = hi

    def rows(self, lo: int, hi: int) -> Rows:
        """Centred rows of folds lo..hi and where each fold starts; kept where all of them are not much."""
        if lo in self._kept:
            return self._kept[lo]
        starts = self.folds.starts[lo : hi + 1]
        index = (
            slice(int(self.folds.order[starts[0]]), int(self.folds.order[starts[0]] + starts[-1] - starts[0]))
            if self.sorted_rows
            else self.folds.order[starts[0] : starts[-1]]
        )
        V, r = self.data.rows(index)
        found = V - self.base.v_mean, r - self.base.r_mean, np.ascontiguousarray(starts - starts[0])
        if self._keep_rows:
            self._kept[lo] = found
        return found

    def over_chunks(self, work: Callable[[int, int], None]) -> None:
        """Do `work` on every chunk, on threads where there are several."""
        pieces = list(self.chunks())
        if len(pieces) == 1 or self.threads == 1:
            for lo, hi in pieces:
                work(lo, hi)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(lambda piece: work(*piece), pieces))

    def incumbents(
        self, full: PathResult, wanted: list[int]
    ) -> tuple[list[IntArray], list[int]]:
        """Best supports on all rows, the incumbents of every fold, and the row of tau of each."""
        supports, place = [], []
        for t in wanted:
            cell = full.cells[int(self.taus[t])]
            for support in (cell.candidates or (cell.support,))[:8]:
                supports.append(support)
                place.append(t)
        return supports, place

    def proposed(self, g: int, wanted: list[int], known: list[IntArray]) -> tuple[list[IntArray], list[int]]:
        """More supports worth trying in every fold, not among those known, and the row of tau of each."""
        seen = {np.sort(support).tobytes() for support in known}
        found = [(s, t) for t in wanted for s in self.named(g, int(self.taus[t])) if s.tobytes() not in seen]
        return [support for support, _ in found], [t for _, t in found]

    def leverages(self, problem: SparseProblem, blur: float) -> tuple[FloatArray, FloatArray]:
        """Largest eigenvalue of H_NN and norm of e_N at all columns, by fold, rounded up by `blur`. O(n q^2)."""
        factor = np.linalg.inv(np.linalg.cholesky(problem.M)).T
        beta = factor @ (factor.T @ problem.c)
        eta, norm = np.empty(self.folds.k), np.empty(self.folds.k)

        def measure(lo: int, hi: int) -> None:
            V, r, starts = self.rows(lo, hi)
            Z = V @ factor
            e = r - V @ beta
            norm[lo:hi] = np.sqrt(np.add.reduceat(e * e, starts[:-1]))
            trace = np.add.reduceat(np.einsum("ij,ij->i", Z, Z) + self.lift, starts[:-1])
            for k in np.flatnonzero((np.diff(starts) > 1) & (trace > 1e-3)):
                block = Z[starts[k] : starts[k + 1]]
                trace[k] = np.linalg.eigvalsh(block @ block.T + self.lift)[-1]
            eta[lo:hi] = trace * (1.0 + blur) + blur

        self.over_chunks(measure)
        return eta, norm

    def score(
        self,
        listing: ListedSupports,
        rows: Rows,
        limit: FloatArray,
        eta: FloatArray,
        first: int = 0,
        scores: Scores | None = None,
    ) -> Scores:
        """Leave every fold of a chunk out of every listed support, on top of `scores` where given."""
        V, r, starts = rows
        if scores is None:
            scores = Scores.empty(len(self.taus), len(starts) - 1)
        limit = np.ascontiguousarray(limit, dtype=float)
        listed = (
            listing.supports, listing.sizes, listing.place, listing.value, listing.beta, listing.spread, listing.level,
            listing.half, listing.blur, limit, eta, first, scores.best, scores.second, scores.held,
            scores.error, scores.which,
        )  # fmt: skip
        if len(starts) == len(r) + 1:
            leave_out.score_supports_by_row(V, r, self.lift, *listed)
        else:
            leave_out.score_supports(V, r, starts, self.lift, *listed)
        return scores

    def settle(
        self,
        g: int,
        lo: int,
        hi: int,
        scores: Scores,
        numbers: NDArray[np.int32],
        form: NormalForm,
        sure: BoolArray,
        branched: bool = True,
    ) -> int:
        """Write the cells of folds lo..hi that are `sure` (T, hi - lo) and not yet final; how many."""
        negligible = 2e-8 * scores.held + 1e-12 * self.base.yy / self.base.n
        sure = sure & (scores.which >= 0) & (scores.error <= negligible)
        sure &= ~self.cells.final[g, :, lo:hi]
        part = (g, slice(None), slice(lo, hi))
        inner = (self.taus > 0) & (self.taus < form.m)
        return self.cells.settle_part(
            part, sure, numbers[scores.which], scores.held, scores.held - scores.error, scores.held + scores.error,
            scores.best, inner[:, None] & branched,
        )  # fmt: skip

    def numbers(self, listing: ListedSupports) -> NDArray[np.int32]:
        """Numbers of the listed supports in the pool of the cells."""
        pool = self.cells.pool
        return np.array(
            [pool.number(listing.supports[a, : listing.sizes[a]]) for a in range(len(listing))], dtype=np.int32
        )


def nothing_named(g: int, tau: int) -> list[IntArray]:
    """Nobody names supports."""
    return []


def clear_of_ties(best: FloatArray, second: FloatArray, form: NormalForm) -> BoolArray:
    """Where the second best value of a tree is so far above the best that no refit could swap them."""
    return np.asarray(second > best * (1.0 + form.keep) + form.slack)


def clear_of_ties_refitted(best: FloatArray, second: FloatArray, value_error: FloatArray | float) -> BoolArray:
    """Where two refitted values, each within `value_error`, cannot be tied."""
    return np.asarray(second - 2.0 * value_error > best * (1.0 + 1.01 * TIE_RTOL) + 2.0 * value_error)

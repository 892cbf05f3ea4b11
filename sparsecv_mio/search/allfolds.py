"""One tree for all folds, by thresholds: every support that can win any fold, listed once (theory section 5).

Leaving a fold N out of a ridge fit is exact: `f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N`. With A all columns, `e`
and `eta = lambda_max(H_NN)` taken at A,

    f(S) - f^(-N)(S) <= ( ||e_N|| + sqrt(eta (f(S) - f(A))) )^2 / (1 - eta),

so a support that beats the fold's incumbent has `f(S)` below a threshold, the larger root of a scalar quadratic. One
pass of the path tree lists every support below the largest threshold of each tau; those few are then left out of
exactly, for all folds at once, in chunks of rows. A fold whose own threshold would list too many supports (a large
residual, a leverage of one half or more) is left to a tree of its own, and so is a cell with a near tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm, normal_form
from sparsecv_mio.formulation.backends.native.path import PathResult
from sparsecv_mio.kernels import held_out as refit_kernel
from sparsecv_mio.kernels import leave_out, path_tree
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.cells import CellTable

IntArray = NDArray[np.int64]

LARGEST_FOLD = 16  # rows; larger folds lose little Gram work and have leverages near one
SMALLEST_PLAN = 24  # folds; fewer are cheaper one by one
PATH_COLUMNS = 128
WIDEST_ETA = 0.45
CHUNK_ROWS = 1 << 15
LEVELS = (1.0, 0.99, 0.95, 0.85, 0.7)  # share of the folds the thresholds cover, tried in turn
FOLD_OVERHEAD = 200  # nodes' worth of work that a tree of its own costs beside its nodes
LISTED = 4096  # supports a chunked pass can afford to list


@dataclass(frozen=True, eq=False)
class Listing:
    """Supports worth leaving every fold out of, refitted on all rows; `place` is the row of tau."""

    supports: IntArray
    sizes: IntArray
    place: IntArray
    value: FloatArray
    beta: FloatArray
    spread: FloatArray
    half: FloatArray
    blur: FloatArray

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, problem: SparseProblem, supports: Sequence[IntArray], place: Sequence[int], unit: float) -> Listing:
        """Refit the supports on the full-data moments. O(s^3) each."""
        k = len(supports)
        sizes = np.array([len(s) for s in supports], dtype=np.int64)
        top = max(int(sizes.max(initial=0)), 1)
        table = np.zeros((k, top), dtype=np.int64)
        for a, support in enumerate(supports):
            table[a, : len(support)] = support
        made = cls(
            supports=table,
            sizes=sizes,
            place=np.array(place, dtype=np.int64),
            value=np.empty(k),
            beta=np.zeros((k, top)),
            spread=np.zeros((k, top)),
            half=np.zeros((k, top, top)),
            blur=np.zeros(k),
        )
        refit_kernel.refit_supports(
            problem.Q, problem.c, problem.yy, problem.penalty, table, sizes, unit, made.beta, made.spread, made.value,
            np.empty(k),
        )  # fmt: skip
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


class ThresholdEnumeration:
    """All folds of one gamma at once.

    Parameters
    ----------
    data, folds : StandardData, FoldPlan
    moments : Moments
        Of all rows.
    taus : (T,) int array
    cells : CellTable
        Decided cells are written here.
    threads : int
        Chunks of rows scored at once.
    """

    def __init__(
        self, data: StandardData, folds: FoldPlan, moments: Moments, taus: IntArray, cells: CellTable, threads: int
    ) -> None:
        self.data, self.folds, self.taus, self.cells, self.threads = data, folds, taus, cells, threads
        self.base = moments.problem(data, 1.0)
        self.unit = (24.0 + 0.1 * np.sqrt(moments.n)) * np.finfo(float).eps
        self.lift = 1.0 / moments.n if data.intercept is Intercept.FOLD else 0.0
        self.sorted_rows = bool(np.all(np.diff(folds.order) == 1))
        widest = int(folds.sizes.max())
        self.usable = widest <= LARGEST_FOLD and folds.k >= SMALLEST_PLAN and data.q <= PATH_COLUMNS

    # -- rows -------------------------------------------------------------------------------------------------------

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of folds whose rows fit a chunk."""
        starts = self.folds.starts
        lo = 0
        while lo < self.folds.k:
            hi = int(np.searchsorted(starts, starts[lo] + CHUNK_ROWS, side="right")) - 1
            hi = min(max(hi, lo + 1), self.folds.k)
            yield lo, hi
            lo = hi

    def rows(self, lo: int, hi: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """Centred rows of folds lo..hi and where each fold starts."""
        starts = self.folds.starts[lo : hi + 1]
        index = (
            slice(int(self.folds.order[starts[0]]), int(self.folds.order[starts[0]] + starts[-1] - starts[0]))
            if self.sorted_rows
            else self.folds.order[starts[0] : starts[-1]]
        )
        V, r = self.data.rows(index)
        return V - self.base.v_mean, r - self.base.r_mean, np.ascontiguousarray(starts - starts[0])

    def over_chunks(self, work: Callable[[int, int], None]) -> None:
        """Do `work` on every chunk, on threads where there are several."""
        pieces = list(self.chunks())
        if len(pieces) == 1 or self.threads == 1:
            for lo, hi in pieces:
                work(lo, hi)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(lambda piece: work(*piece), pieces))

    # -- one gamma --------------------------------------------------------------------------------------------------

    def run(self, g: int, gamma: float, full: PathResult, expired: Callable[[], bool]) -> int:
        """Decide what thresholds can decide of one gamma; returns the nodes spent."""
        problem = self.base.with_gamma(gamma)
        form = normal_form(problem)
        wanted = [t for t, tau in enumerate(self.taus.tolist()) if not self.cells.final[g, t].all()]
        if form.m > PATH_COLUMNS or not form.trusted or form.m == 0 or expired():
            return 0
        first = self._incumbents(problem, full, wanted)
        eta, residual = self._leverages(problem)
        limit = np.full((len(self.taus), self.folds.k), -np.inf, dtype=np.float32 if self.folds.k > 200_000 else float)
        floor = float(problem.yy - problem.c @ np.linalg.solve(problem.M, problem.c)) - form.slack
        single = next(self.chunks())[1] == self.folds.k
        kept: list[tuple[FloatArray, FloatArray, IntArray, Scores]] = []

        def thresholds(lo: int, hi: int) -> None:
            V, r, starts = self.rows(lo, hi)
            scores = self._score(first, V, r, starts, np.full((len(self.taus), hi - lo), np.inf), np.full(hi - lo, 0.999), 0)
            bar = scores.best * (1.0 + form.keep) + form.slack
            limit[:, lo:hi] = _larger_root(bar - floor, residual[lo:hi], eta[lo:hi]) * (1.0 + 1e-6) + floor + form.slack
            if single:
                kept.append((V, r, starts, scores))

        self.over_chunks(thresholds)
        nodes, listing, cover = self._list(problem, form, full, limit, wanted, expired)
        if listing is None:
            return nodes
        numbers = np.array(
            [self.cells.pool.number(listing.supports[a, : listing.sizes[a]]) for a in range(len(listing))], dtype=np.int32
        )

        def decide(lo: int, hi: int) -> None:
            V, r, starts = kept[0][:3] if single else self.rows(lo, hi)
            scores = self._score(listing, V, r, starts, limit[:, lo:hi], np.minimum(eta[lo:hi], 0.999), 0)
            self._settle(g, lo, hi, scores, numbers, form, eta[lo:hi], limit[:, lo:hi], cover)

        self.over_chunks(decide)
        return nodes

    def _incumbents(self, problem: SparseProblem, full: PathResult, wanted: list[int]) -> Listing:
        """Best supports on all rows: incumbents of every fold."""
        supports, place = [], []
        for t in wanted:
            cell = full.cells[int(self.taus[t])]
            for support in (cell.candidates or (cell.support,))[:8]:
                supports.append(support)
                place.append(t)
        return Listing.of(problem, supports, place, self.unit)

    def _leverages(self, problem: SparseProblem) -> tuple[FloatArray, FloatArray]:
        """Largest eigenvalue of H_NN and norm of e_N at all columns, by fold. O(n q^2) in BLAS."""
        factor = np.linalg.cholesky(np.linalg.inv(problem.M))
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
            eta[lo:hi] = trace * (1.0 + 1e-9) + 1e-12

        self.over_chunks(measure)
        return eta, norm

    def _score(
        self, listing: Listing, V: FloatArray, r: FloatArray, starts: IntArray, limit: FloatArray, eta: FloatArray, first: int
    ) -> Scores:
        scores = Scores.empty(len(self.taus), len(starts) - 1)
        leave_out.score_supports(
            V, r, starts, self.lift, listing.supports, listing.sizes, listing.place, listing.value, listing.beta,
            listing.spread, listing.half, listing.blur, np.ascontiguousarray(limit, dtype=float), eta, first, scores.best,
            scores.second, scores.held, scores.error, scores.which,
        )  # fmt: skip
        return scores

    def _list(
        self,
        problem: SparseProblem,
        form: NormalForm,
        full: PathResult,
        limit: FloatArray,
        wanted: list[int],
        expired: Callable[[], bool],
    ) -> tuple[int, Listing | None, FloatArray]:
        """List every support below the thresholds of as many folds as is worth it: (nodes, listing, bar by tau)."""
        M = form.matrix()
        V = np.linalg.inv(M)
        beta = V @ form.c
        value = float(form.yy - form.c @ beta)
        sizes = {t: min(int(self.taus[t]), form.m) for t in wanted}
        budget = self.folds.k * (full.nodes // max(len(full.cells), 1) + full.nodes + FOLD_OVERHEAD) // 8
        nodes = 0
        for level in LEVELS:
            cover = np.full(len(self.taus), -np.inf)
            for t in wanted:
                finite = limit[t][np.isfinite(limit[t])]
                if len(finite) == 0:
                    continue
                cut = len(finite) - max(int(level * self.folds.k), 1)
                cover[t] = finite.max() if cut <= 0 else np.partition(finite, -cut - 1)[-cut - 1]
            bars = np.full(form.m + 1, -np.inf)
            for t in wanted:
                bars[sizes[t]] = max(bars[sizes[t]], cover[t])
            found, spent = _supports_below(form, V, beta, value, bars, budget, expired)
            nodes += spent
            if found is not None:
                supports, place = [], []
                for t in wanted:
                    for mask in found.get(sizes[t], []):
                        supports.append(form.columns[mask])
                        place.append(t)
                order = np.argsort(np.array(place, dtype=np.int64), kind="stable")
                return (
                    nodes,
                    Listing.of(problem, [supports[i] for i in order], [place[i] for i in order], self.unit),
                    cover,
                )
            if expired():
                break
        return nodes, None, np.zeros(0)

    def _settle(
        self,
        g: int,
        lo: int,
        hi: int,
        scores: Scores,
        numbers: NDArray[np.int32],
        form: NormalForm,
        eta: FloatArray,
        limit: FloatArray,
        cover: FloatArray,
    ) -> None:
        """Write the cells that are decided: covered by the listing, without a near tie, safely conditioned."""
        clear = scores.second > scores.best * (1.0 + form.keep) + form.slack
        sure = clear & (limit <= cover[:, None]) & (eta < WIDEST_ETA) & (scores.which >= 0)
        sure &= scores.error <= 1e-9 * scores.held + 1e-300
        sure &= ~self.cells.final[g, :, lo:hi]
        part = (g, slice(None), slice(lo, hi))
        cells = self.cells
        cells.nominal[part][sure] = scores.held[sure]
        cells.lower[part][sure] = np.maximum(scores.held - scores.error, 0.0)[sure]
        cells.upper[part][sure] = (scores.held + scores.error)[sure]
        cells.support[part][sure] = numbers[scores.which[sure]]
        inner = (self.taus > 0) & (self.taus < form.m)
        cells.branched[part][sure & inner[:, None]] = True
        cells.decided[part][sure] = True
        cells.final[part][sure] = True
        with cells.pool.lock:
            cells.rounding[g] += np.where(sure, 2.0 * scores.error, 0.0).sum(axis=1)


def _larger_root(room: FloatArray, residual: FloatArray, eta: FloatArray) -> FloatArray:
    """Largest `u^2` with `u^2 - (residual + sqrt(eta) u)^2 / (1 - eta) <= room`, inf where eta >= WIDEST_ETA.

    Nothing is left below a negative discriminant; 0 is returned there.
    """
    safe = np.where(eta < WIDEST_ETA, eta, 0.0)
    a = (1.0 - 2.0 * safe) / (1.0 - safe)
    b = residual * np.sqrt(safe) / (1.0 - safe)
    c = residual**2 / (1.0 - safe) + room
    with np.errstate(invalid="ignore"):
        u = (b + np.sqrt(np.maximum(b * b + a * c, 0.0))) / a
    return np.where(eta < WIDEST_ETA, u * u, np.inf)


def _supports_below(
    form: NormalForm,
    V: FloatArray,
    beta: FloatArray,
    value: float,
    bars: FloatArray,
    budget: int,
    expired: Callable[[], bool],
) -> tuple[dict[int, list[NDArray[np.bool_]]] | None, int]:
    """Every support with f at most `bars[size]`, by size; None when the budget or the list is too small for them."""
    sizes = np.flatnonzero(bars > -np.inf)
    m = form.m
    found: dict[int, list[NDArray[np.bool_]]] = {}
    if 0 in sizes:
        found[0] = [np.zeros(m, dtype=bool)]
    if m in sizes:
        found[m] = [np.ones(m, dtype=bool)]
    sizes = sizes[(sizes > 0) & (sizes < m)]
    if len(sizes) == 0:
        return found, 0
    inner = np.full(m + 1, -np.inf)
    state = path_tree.new_state(V, beta, value, inner, int(sizes[0]), int(sizes[-1]), 0.0, 0.0, LISTED)
    state.bar[sizes] = bars[sizes]
    state.bar_max[:] = np.maximum.accumulate(state.bar[::-1])[::-1]
    done = False
    while not done and budget > state.ctrl[path_tree.NODES] and not expired():
        step = min(20_000, budget - int(state.ctrl[path_tree.NODES]))
        done = path_tree.run(state, form.copy_prev, form.copy_next, form.w, 0.0, 0.0, step)
        if state.ctrl[path_tree.OVERFLOW]:
            done = False
            break
    spent = int(state.ctrl[path_tree.NODES])
    if not done:
        return None, spent
    for a in range(int(state.ctrl[path_tree.KEPT])):
        found.setdefault(int(state.kept_size[a]), []).append(state.kept_mask[a])
    return found, spent

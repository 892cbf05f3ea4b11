"""One fold with many more columns than training rows: everything from the rows, no q x q matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsecv_mio.bounds.fold import OUTWARD, ROUNDS, TIE, FoldCell, Origin, Which
from sparsecv_mio.bounds.unit_diagonal import CONSTANT_COLUMN, IntArray, centring_loss
from sparsecv_mio.data.dataset import FloatArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.kernels import fold_bounds, starts
from sparsecv_mio.kernels.forms import Candidates, Effort, Fold, Form, Incumbents, Node, Rounding, Stop
from sparsecv_mio.kernels.held_out_interval import blurred, distances, one_support
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.perspective_newton import new_factor
from sparsecv_mio.kernels.relaxation_rows import Wide, WorkingSet, farthest_rows, relax_rows
from sparsecv_mio.kernels.screening import screen
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE
from sparsecv_mio.problem.accumulate import CONSTANT
from sparsecv_mio.problem.centred_rows import CentredRows
from sparsecv_mio.problem.diagonal import DIAGONAL_MARGIN
from sparsecv_mio.units import TINY

WIDE_COLUMNS = 600  # fewer columns than this go by moments in any case
CAPACITY = 1000  # columns of the working set
DENSE_COLUMNS = 300  # survivors of screening that are worth a matrix of their own
CANDIDATES = 150  # columns that swaps may use
MAX_STEPS = 300
SPLIT_GAP, SPLIT_COLUMNS, SPLIT_TRIES = 0.1, 600, 4  # a wider relative gap is split, when so few columns survive
ACCURACY = 1e-4  # relative, of the first relaxation
TOGETHER_ROUNDS = 6


def is_wide(data: StandardData) -> bool:
    """Whether folds of these data go by rows."""
    return data.q > WIDE_COLUMNS and data.q > 3 * data.n


@dataclass(frozen=True, eq=False)
class Look:
    """Bounds of the objective of one tau, and the columns that screening leaves."""

    lower: float
    upper: float
    left: IntArray


def never() -> bool:
    """Return False: the clock that never stops anything."""
    return False


class WideFold:
    """Bounds of one fold at one gamma, from rows.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Training rows about their means, columns divided by the root of their penalty.
    X_test, u : (N, q), (N,) arrays
        Held-out rows about the same means, in the same units.
    loss : float
        Of digits, by centring: see `centring_loss`.
    largest : float, optional
        At least the largest eigenvalue of `X'X`, where it is known: computing it is O(n^2 q).

    `expired` may be set to a callable: once it is True predictions that are left keep their trivial bounds.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        X_test: FloatArray,
        u: FloatArray,
        loss: float = 1.0,
        largest: float | None = None,
    ) -> None:
        self.expired: Callable[[], bool] = never
        self.Xt, self.y = np.ascontiguousarray(X.T), y
        self.X_test, self.u = np.ascontiguousarray(X_test), u
        self.q, self.n = self.Xt.shape
        self.yy = float(y @ y)
        self.c = self.Xt @ y
        self.square = 1.0 + np.einsum("ij,ij->i", self.Xt, self.Xt)  # M_jj
        if largest is None:
            largest = float(np.linalg.eigvalsh(X @ X.T)[-1]) * (1.0 + 1e-9)
        self.largest = max(largest, 1e-12)
        self.rows = Wide(self.Xt, self.y, self.largest)
        self.rounding = float(np.finfo(float).eps) * (3 * self.n + 4 * CAPACITY + 64) * loss
        self.best: dict[int, float] = {}
        self.support: dict[int, IntArray] = {}
        self.near = _WorkingSet(self.q)
        self.b, self.g = np.zeros(self.q), np.zeros(self.q)

    @classmethod
    def of_rows(
        cls,
        data: StandardData,
        rows: IntArray,
        V_test: FloatArray,
        r_test: FloatArray,
        gamma: float,
        largest: float | None = None,
    ) -> WideFold:
        """Return the fold whose training rows are `rows`; two copies of these at most are held."""
        train = CentredRows.of(data, rows)
        V, y, v_mean, r_mean = train.V, train.r, train.v_mean, train.r_mean
        squares = np.einsum("ij,ij->j", V, V)
        dead = squares <= CONSTANT_COLUMN * len(rows) * v_mean**2
        root = 1.0 / np.sqrt(gamma / 2.0 * data.weight)
        scale = np.where(dead, 0.0, root)
        yy = float(y @ y)
        if yy <= CONSTANT * data.n:  # the rounding of a constant target's mean
            y, yy = np.zeros_like(y), 0.0
        longest = float(np.abs(v_mean * root / np.sqrt(1.0 + squares * root**2)).max(initial=0.0))
        loss = centring_loss(len(rows), longest, r_mean, yy)
        V *= scale
        return cls(V, y, (V_test - v_mean) * scale, r_test - r_mean, loss, largest)

    # -- incumbents -------------------------------------------------------------------------------------------------

    def try_supports(self, supports: Iterable[NDArray[np.integer]]) -> None:
        """Try given supports (standard columns) as incumbents. O(n s^2) each."""
        for support in supports:
            self._try(np.sort(np.asarray(support, dtype=np.int64)))

    def _try(self, support: IntArray) -> None:
        size = len(support)
        if size == 0:
            return
        A = self.Xt[support]
        M = A @ A.T
        M.flat[:: size + 1] += 1.0
        try:
            half = solve_triangular(np.linalg.cholesky(M), self.c[support], lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # singular to rounding: no incumbent
            return
        value = self.yy - float(half @ half)
        if value < self.best.get(size, np.inf):
            self.best[size], self.support[size] = value, np.sort(support)

    def search(self, sizes: Sequence[int], swap_rounds: int = 0) -> None:
        """Forward selection over all columns; swaps among the promising ones. Ends early once `expired`."""
        top = min(max([size for size in sizes if size < self.q], default=0), self.n)
        rows = np.zeros((top, self.q))
        left, diag = self.c.copy(), self.square.copy()
        chosen: list[int] = []
        for step in range(top):
            if self.expired():
                break
            gain = np.where(diag > 1e-12 * self.square, left**2 / np.maximum(diag, TINY), 0.0)
            gain[chosen] = -1.0
            pick = int(np.argmax(gain))
            chosen.append(pick)
            row = self.Xt @ self.Xt[pick]
            row[pick] += 1.0
            row -= rows[:step, pick] @ rows[:step]
            rows[step] = row / np.sqrt(diag[pick])
            left -= rows[step] * (left[pick] / np.sqrt(diag[pick]))
            diag -= rows[step] ** 2
            self._try(np.array(chosen))
        if swap_rounds:
            order = np.argsort(-np.abs(self.c))[:CANDIDATES]
            self._swap(sizes, order, swap_rounds)

    def _swap(self, sizes: Iterable[int], extra: IntArray, rounds: int) -> None:
        """Try swaps among `extra` and the columns of all incumbents."""
        known = [support for size, support in self.support.items()]
        among = np.unique(np.concatenate([extra, *known])).astype(np.int64)
        A = self.Xt[among]
        M = A @ A.T
        M.flat[:: len(among) + 1] += 1.0
        best = np.full(len(among) + 1, np.inf)
        masks = np.zeros((len(among) + 1, len(among)), dtype=np.bool_)
        for size, support in self.support.items():
            best[size] = self.best[size]
            masks[size] = np.isin(among, support)
        c = self.c[among]
        starts.forward_selection(M, c, self.yy, min(max(self.best, default=1), len(among)), best, masks)
        for size in sizes:
            starts.improve_by_swaps(M, c, self.yy, size, best, masks, rounds)
            if size < len(best) and best[size] < self.best.get(size, np.inf):
                self._try(among[masks[size]])

    def incumbents(self) -> list[IntArray]:
        """Supports held, in standard columns."""
        return list(self.support.values())

    # -- bounds -----------------------------------------------------------------------------------------------------

    def incumbent(self, tau: int) -> IntArray | None:
        """As `FoldBounds.incumbent`."""
        return np.zeros(0, dtype=np.int64) if tau == 0 else self.support.get(tau)

    def cells(self, taus: Sequence[int], which: Which = Which.SAFE) -> list[FoldCell]:
        """Bound every tau; see `FoldBounds.cells`."""
        found: dict[int, FoldCell] = {}
        for tau in sorted(set(taus)):
            unknown = self.expired()
            found[tau] = self._finish(tau, 0.0, np.inf, _Ends(), self.q) if unknown else self._cell(tau, which)
        return [found[tau] for tau in taus]

    def numbers(self, taus: Sequence[int], which: Which = Which.SAFE) -> FloatArray:
        """As `FoldBounds.numbers`."""
        return np.array([_row(cell) for cell in self.cells(taus, which)])

    def look(self, tau: int) -> Look:
        """Bound the objective by one relaxation, and screen: no bound of the held-out error.

        Every support of tau columns that is optimal, or tied with one that is, lies in the columns left.
        """
        if tau == 0 or not self.yy > 0.0:  # any columns will do: none of them gets a coefficient
            return Look(self.yy, self.yy, np.arange(min(max(tau, 1), self.q)))
        everything = np.arange(self.q)
        if tau >= self.q:
            return Look(0.0, np.inf, everything)
        accuracy = ACCURACY * self.best.get(tau, self.yy)
        dual, _ = self._relax(self.rows, tau, accuracy, self.near)
        self._round(tau)
        slip, _ = self._allowance(tau, self.b)
        if tau not in self.best:
            return Look(max(dual - slip, 0.0), np.inf, everything)
        level = self.best[tau] * (1.0 + TIE) + slip
        if dual - slip > level:
            raise Contradiction("a certified lower bound exceeds the value of a known support")
        status = np.zeros(self.q, dtype=np.int8)
        screen(self.g**2, self.q, everything, tau, level + slip - dual, status)
        return Look(max(dual - slip, 0.0), level, np.flatnonzero(status != DROPPED))

    def _cell(self, tau: int, which: Which) -> FoldCell:
        if tau == 0 or not self.yy > 0.0:
            return self._finish(tau, self.yy, self.yy, _Ends.exact(float(self.u @ self.u)), 0)
        if tau >= self.q:
            return self._finish(tau, 0.0, np.inf, _Ends(), self.q)
        accuracy = ACCURACY * self.best.get(tau, self.yy)
        dual, primal = self._relax(self.rows, tau, accuracy, self.near)
        self._round(tau)
        slip, prior = self._allowance(tau, self.b)
        if tau not in self.best:
            return self._finish(tau, dual - slip, np.inf, _Ends(), self.q)
        level = self.best[tau] * (1.0 + TIE) + slip
        if dual - slip > level:
            raise Contradiction("a certified lower bound exceeds the value of a known support")
        lower = dual - slip
        goal = level + slip
        status = np.zeros(self.q, dtype=np.int8)
        if which is Which.SAFE:
            screen(self.g**2, self.q, np.arange(self.q), tau, goal - dual, status)
        survivors = np.flatnonzero(status != DROPPED)
        if self.best[tau] - lower > SPLIT_GAP * self.best[tau] and 1 < tau < len(survivors) <= SPLIT_COLUMNS:
            lower = max(lower, self._split(tau, survivors) - slip)
        estimate = float(np.sum((self.u - self.X_test @ self.b) ** 2))
        if len(self.u) == 0:
            ends = _Ends()
        elif len(survivors) <= DENSE_COLUMNS:
            ends, better = self._dense(tau, survivors, which)
            lower = max(lower, better)
        else:
            ends = self._from_rows(tau, goal, dual, primal, prior, which)
        if np.isnan(ends.estimate):
            ends.estimate = estimate
        level = min(level, self.best[tau] * (1.0 + TIE) + slip)
        return self._finish(tau, min(lower, self.best[tau]), level, ends, int((status == FREE).sum()))

    def _relax(
        self,
        rows: Wide,
        k: int,
        accuracy: float,
        near: _WorkingSet,
    ) -> tuple[float, float]:
        near.make_room(k)
        dual, primal = relax_rows(rows, np.zeros(self.q), k, accuracy, MAX_STEPS, near.arrays, self.b, self.g)
        return float(dual), float(primal)

    def _round(self, tau: int) -> None:
        """Try the largest entries of the relaxation's point, then swaps among what it found promising."""
        order = np.argsort(-np.abs(self.b))[:tau]
        self._try(order)
        extra = np.argsort(-np.abs(self.g))[:CANDIDATES]
        self._swap([tau], np.union1d(extra, np.flatnonzero(self.b)), 2)

    def _allowance(self, tau: int, b: FloatArray) -> tuple[float, float]:
        """Return the rounding allowance at b, and its part that does not depend on b (docs/theory/bounds.md 7)."""
        widest = float(np.partition(self.square, self.q - tau)[self.q - tau :].sum())
        prior = float(np.sqrt(self.yy) * (1.0 + 2.0 * np.sqrt(widest)))
        size = float(np.sqrt(self.square[: len(b)]) @ np.abs(b))
        return self.rounding * (prior + size) ** 2, prior

    def _split(self, tau: int, survivors: IntArray) -> float:
        """One disjunction: the lesser of the relaxations with and without a column, for the column that gives most."""
        A, b = self.Xt[survivors], self.b[survivors]
        m = len(survivors)
        form, work = Form(A @ A.T, self.c[survivors], self.yy, self.largest), np.empty((3, m))
        z = np.divide(b, self.g[survivors], out=np.zeros(m), where=self.g[survivors] != 0.0)
        z[z > 0.999] = 0.0
        found = -np.inf
        for pick in np.argsort(-z)[:SPLIT_TRIES]:
            rest = np.delete(np.arange(m), pick)
            values = []
            for inside in (np.zeros(0, dtype=np.int64), np.array([pick])):
                start = b.copy()
                start[pick] *= len(inside)
                node = Node(inside, len(inside), rest, m - 1, tau - len(inside))
                dual, _, _ = relax(form, node, Stop(2.0 * self.yy, ACCURACY, MAX_STEPS), start, *work)
                values.append(float(dual))
            found = max(found, min(values))
        return found

    def printed(self, tau: int) -> tuple[float, float, FloatArray, FloatArray]:
        """Level, relaxation value, its predictions and `x'M^{-1}x` of the held-out rows: what `as_printed` needs."""
        ubar = self.best.get(tau, self.yy)
        dual, _ = self._relax(self.rows, tau, ACCURACY * ubar, self.near)
        self._round(tau)
        half = self.X_test @ self.Xt
        K = self.Xt.T @ self.Xt
        K.flat[:: self.n + 1] += 1.0
        reach = np.einsum("ij,ij->i", self.X_test, self.X_test) - np.einsum(
            "ij,ji->i", half, np.linalg.solve(K, half.T)
        )
        return self.best[tau], dual, self.X_test @ self.b, np.maximum(reach, 0.0)

    def _dense(self, tau: int, survivors: IntArray, which: Which) -> tuple[_Ends, float]:
        """Return what screening leaves, as a problem with a matrix."""
        A = self.Xt[survivors]
        m = len(survivors)
        M = A @ A.T
        M.flat[:: m + 1] += 1.0
        scale = 1.0 / np.sqrt(np.diag(M))
        M *= scale[:, None]
        M *= scale
        np.fill_diagonal(M, 1.0)
        X = np.ascontiguousarray(self.X_test[:, survivors] * scale)
        if m <= tau:
            return self._one(M, self.c[survivors] * scale, X), -np.inf
        w = scale**2 * (1.0 - DIAGONAL_MARGIN)
        best, masks = np.full(m + 1, np.inf), np.zeros((m + 1, m), dtype=np.bool_)
        best[tau] = self.best[tau]
        out, rows = np.zeros((1, 8)), np.empty((1, len(self.u), 2))
        mode = fold_bounds.DO_REDUCE | fold_bounds.DO_ROWS | (fold_bounds.DO_TOGETHER if len(self.u) > 1 else 0)
        broken = fold_bounds.run(
            Fold(M, self.c[survivors] * scale, self.yy, w, X, self.u), np.array([tau]),
            fold_bounds.Asked(mode, ROUNDS, self.n, TIE, self.rounding), Incumbents(best, masks), out, rows,
        )  # fmt: skip
        if broken:
            raise Contradiction("a certified lower bound exceeds the value of a known support")
        if best[tau] < self.best[tau]:
            self._try(survivors[masks[tau]])
        ends = _Ends(out[0, 2], out[0, 3], Origin(int(out[0, 4])), Origin(int(out[0, 5])), float(out[0, 6]))
        return ends, float(out[0, 0])

    def _one(self, M: FloatArray, c: FloatArray, X: FloatArray) -> _Ends:
        """Return the held-out error of the only support left."""
        m, N = len(c), len(self.u)
        status = np.full(m, INSIDE, dtype=np.int8)
        lo, hi = np.empty(N), np.empty(N)
        prior = float(np.sqrt(self.yy) * (1.0 + 2.0 * np.sqrt(np.sort(self.square)[::-1][:m].sum())))
        fold, rounding = Fold(M, c, self.yy, np.ones(m), X, self.u), Rounding(self.rounding, prior, 0.0, np.ones(m))
        if not one_support(fold, status, m, rounding, lo, hi, new_factor(m, m)):
            return _Ends()
        low, high = distances(self.u, lo, hi)
        return _Ends(low, high, Origin.EXACT, Origin.EXACT, 0.5 * (low + high))

    def _from_rows(self, tau: int, goal: float, dual: float, primal: float, prior: float, which: Which) -> _Ends:
        """Prediction by prediction over all columns, and the sum from below."""
        centre, near = self.b.copy(), self.near
        norm = float(np.sqrt(self.yy))
        gap = max(goal - dual, 1e-14 * self.yy)
        candidates, effort = Candidates(tau, goal, primal), Effort(ROUNDS, MAX_STEPS)
        rounding = Rounding(self.rounding, prior, norm, np.sqrt(self.square))
        lo, hi = np.full(len(self.u), -np.inf), np.full(len(self.u), np.inf)
        if which is not Which.AGGREGATED:
            for i, x in enumerate(self.X_test):
                ridge = float(x @ x) - float(np.sum((self.Xt.T @ x) ** 2)) / (1.0 + self.largest)
                t = 2.0 * np.sqrt(gap / max(ridge, TINY))
                if self.expired():
                    break
                for sign, side in ((1.0, hi), (-1.0, lo)):
                    bound, t = farthest_rows(
                        self.rows, sign * x, candidates, centre, t, effort, rounding, near.arrays
                    )
                    side[i] = sign * bound
        low, high = distances(self.u, lo, hi)
        ends = _Ends(low, high, Origin.CONIC, Origin.CONIC if np.isfinite(high) else Origin.TRIVIAL)
        if which is not Which.CONIC and len(self.u) > 1:
            together = self._least_squares(tau, goal, primal, centre, prior)
            if together > low:
                ends.lower, ends.low_origin = together, Origin.AGGREGATED
        self.b[:] = centre
        return ends

    def _least_squares(self, tau: int, goal: float, zeta: float, centre: FloatArray, prior: float) -> float:
        """Lower bound of the held-out sum of squares: the relaxation with the held-out rows weighing t."""
        gap = max(goal - zeta, 1e-14 * self.yy)
        longest = float(np.linalg.eigvalsh(self.X_test @ self.X_test.T)[-1]) * (1.0 + 1e-9)
        bound, low, high, t = 0.0, 0.0, np.inf, 1.0
        self.b[:] = centre
        for _ in range(TOGETHER_ROUNDS):
            if self.expired():
                break
            root = np.sqrt(t)
            Xt, y = np.hstack([self.Xt, root * self.X_test.T]), np.concatenate([self.y, root * self.u])
            near = _WorkingSet(self.q)
            near.take(np.flatnonzero(self.b), Xt)
            dual, primal = self._relax(Wide(Xt, y, self.largest + t * longest), tau, 0.01 * gap, near)
            size = float(np.sqrt(self.square + t * np.einsum("ij,ij->j", self.X_test, self.X_test)) @ np.abs(self.b))
            slip = self.rounding * (prior * (1.0 + root * np.sqrt(longest)) + float(np.linalg.norm(y)) + size) ** 2
            bound = max(bound, (dual - goal - slip) / t)
            excess = primal - t * float(np.sum((self.u - self.X_test @ self.b) ** 2)) - zeta
            ratio = gap / max(excess, 1e-8 * gap)
            if abs(ratio - 1.0) < 0.2:
                break
            low, high = (t, high) if excess < gap else (low, t)
            t *= float(np.sqrt(min(max(ratio, 1e-4), 1e4)))
            if not low < t < high:
                t = (
                    float(np.sqrt(low * high))
                    if low > 0.0 and high < np.inf
                    else (0.3 * high if low == 0.0 else 3.0 * low)
                )
        return bound

    def _finish(self, tau: int, lower: float, level: float, ends: _Ends, left: int) -> FoldCell:
        exact = ends.low_origin is Origin.EXACT
        prior = self._allowance(tau, self.b[:0])[1] if 0 < tau < self.q else float(np.linalg.norm(self.u))
        rounding = Rounding(self.rounding, prior, 0.0, self.square)
        low, high = blurred(max(ends.lower, 0.0), ends.upper, len(self.u), rounding)
        return FoldCell(
            tau=tau,
            objective_lower=float(max(lower, 0.0)),
            objective_upper=float(level),
            lower=float(low) * (1.0 - OUTWARD),
            upper=float(high) * (1.0 + OUTWARD),
            low_origin=ends.low_origin,
            high_origin=ends.high_origin,
            estimate=ends.estimate,
            left=0 if exact else left,
        )


def _row(cell: FoldCell) -> list[float]:
    f, h = (cell.objective_lower, cell.objective_upper), (cell.lower, cell.upper)
    return [*f, *h, cell.low_origin, cell.high_origin, cell.estimate, cell.left]


class _WorkingSet:
    """Columns that the row kernel solves for, and their Gram matrix."""

    def __init__(self, q: int) -> None:
        capacity = min(q, CAPACITY)
        self.chosen = np.zeros(capacity, dtype=np.int64)
        self.inside = np.zeros(q, dtype=np.bool_)
        self.count = np.zeros(1, dtype=np.int64)
        self.gram = np.empty((capacity, capacity))

    @property
    def arrays(self) -> WorkingSet:
        """As the kernels take it."""
        return WorkingSet(self.chosen, self.inside, self.count, self.gram)

    def make_room(self, k: int) -> None:
        """Hold at least what a relaxation of size k may take in two of its rounds."""
        held, most = len(self.chosen), min(len(self.inside), 4 * k + 80)
        if most <= held:
            return
        chosen, gram = np.zeros(most, dtype=np.int64), np.empty((most, most))
        chosen[:held], gram[:held, :held] = self.chosen, self.gram
        self.chosen, self.gram = chosen, gram

    def take(self, columns: IntArray, Xt: FloatArray) -> None:
        """Start with these columns."""
        columns = columns[: len(self.chosen)]
        size = len(columns)
        self.chosen[:size], self.inside[columns], self.count[0] = columns, True, size
        self.gram[:size, :size] = Xt[columns] @ Xt[columns].T


class _Ends:
    """An interval in the making."""

    def __init__(
        self,
        lower: float = 0.0,
        upper: float = np.inf,
        low_origin: Origin = Origin.TRIVIAL,
        high_origin: Origin = Origin.TRIVIAL,
        estimate: float = np.nan,
    ) -> None:
        self.lower, self.upper, self.estimate = lower, upper, estimate
        self.low_origin, self.high_origin = low_origin, high_origin

    @classmethod
    def exact(cls, value: float) -> _Ends:
        """Return the ends of a number that involves no choice."""
        return cls(value * (1.0 - 1e-13), value * (1.0 + 1e-13), Origin.EXACT, Origin.EXACT, value)

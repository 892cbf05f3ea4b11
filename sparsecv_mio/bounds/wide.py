"""Bounds and a branch-and-bound tree for one fold with many more columns than training rows, computed from the rows.

The matrix G = X'X of all columns would be too large to store. A node of the tree includes the columns I, drops other
columns, and may choose k of the remaining columns. Let yy be the sum of squares of the target. The relaxation of the
node is solved on a small working set of columns. The bound of the node is the dual value over *all* remaining columns.
For every b and every support S of the node (:mod:`sparsecv_mio.kernels.node_relaxation`),

    f(S)  >=  yy - b'G b - sum_I g_j^2 - (k largest g_j^2 of the remaining columns),     g = X'(y - X b).

Only the rows of G for the working set are computed. With q columns in all, a node therefore takes O(q) operations for
each nonzero coefficient of b, and needs no product with X. Columns with a large `|g_j|` join the working set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.fold import RELAXED_AT_MOST, TIE, FoldCell, Origin
from sparsecv_mio.bounds.wide_rows import (
    CAPACITY,
    Wide,
    WideRelaxation,
    WideRows,
    WideSupports,
    WorkingColumns,
)
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.kernels import fold_bounds
from sparsecv_mio.kernels.dense import gershgorin
from sparsecv_mio.kernels.held_out_sums import distances, off_by_means, one_support, widen_interval
from sparsecv_mio.kernels.level_sets import LEAST_EXCESS, TARGET, next_weight
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import (
    DROPPED,
    FREE,
    INSIDE,
    Accuracy,
    Fold,
    Form,
    Incumbents,
    LevelSet,
    Node,
    Rounding,
    allowance,
    positive_gap,
    screen,
)
from sparsecv_mio.kernels.perspective_newton import new_factor
from sparsecv_mio.problem.problem import strip_forced_columns
from sparsecv_mio.thresholds import RELAXED_COLUMNS
from sparsecv_mio.trees.normal_form import NEAR_OF_MANY, ROOT_ACCURACY, ROOT_STEPS
from sparsecv_mio.trees.subsets import MOST_REFITTED, OpenNodes, is_never_expired
from sparsecv_mio.units import OUTWARD, SHAVED, TINY

TOGETHER_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Ends:
    """Interval of the held-out sum of squares, the methods that gave its bounds, and the estimate of the relaxation."""

    lower: float = 0.0
    upper: float = np.inf
    low_origin: Origin = Origin.TRIVIAL
    high_origin: Origin = Origin.TRIVIAL
    estimate: float = np.nan


def bound_few_columns(rows: WideRows, supports: WideSupports, tau: int, survivors: IntArray) -> tuple[Ends, float]:
    """Return bounds from the columns that screening leaves, as a problem with a matrix.

    Parameters
    ----------
    rows : WideRows
        Rows of the fold.
    supports : WideSupports
        Incumbents, with one of the size; improved if a better support is found.
    tau : int
        Size.
    survivors : int array
        Columns that contain every candidate.

    Returns
    -------
    ends : Ends
        Interval of the held-out sum of squares.
    lower : float
        Lower bound of f minus rounding; -inf if there was nothing to relax.

    Raises
    ------
    Contradiction
        If the lower bound exceeds the value of the incumbent.
    """
    m, M = len(survivors), rows.matrix(survivors)
    scale = 1.0 / np.sqrt(np.diag(M))
    M *= scale[:, None]
    M *= scale
    np.fill_diagonal(M, 1.0)
    w = scale**2 * (1.0 - SHAVED)
    X = np.ascontiguousarray(rows.X_test[:, survivors] * scale)
    fold = Fold(M, rows.c[survivors] * scale, rows.yy, w, X, rows.u)
    if m <= tau:
        return _bound_one_support(rows, fold), -np.inf
    best, masks = np.full(m + 1, np.inf), np.zeros((m + 1, m), dtype=np.bool_)
    best[tau] = supports.best[tau]
    out, each = np.zeros((1, 8)), np.empty((1, len(rows.u), 2))
    mode = fold_bounds.DO_REDUCE | fold_bounds.DO_ROWS | (fold_bounds.DO_TOGETHER if len(rows.u) > 1 else 0)
    task = fold_bounds.BoundTask(mode, RELAXED_AT_MOST, rows.n, TIE, rows.rounding_unit(tau))
    if fold_bounds.bound_fold(fold, np.array([tau]), task, Incumbents(best, masks), out, each):
        raise Contradiction(f"tau {tau}: a lower bound exceeds the objective of a known support; please report this")
    if best[tau] < supports.best[tau]:
        supports.take([survivors[masks[tau]]])
    ends = Ends(out[0, 2], out[0, 3], Origin(int(out[0, 4])), Origin(int(out[0, 5])), float(out[0, 6]))
    return ends, float(out[0, 0])


def _bound_one_support(rows: WideRows, fold: Fold) -> Ends:
    """Return the held-out error of the only support left."""
    m, N = len(fold.c), len(rows.u)
    lo, hi = np.empty(N), np.empty(N)
    rounding = rows.rounding_allowance(m)
    if not one_support(fold, np.full(m, INSIDE, dtype=np.int8), m, rounding, lo, hi, new_factor(m, m)):
        return Ends()
    low, high = distances(rows.u, lo, hi)
    return Ends(low, high, Origin.EXACT, Origin.EXACT, 0.5 * (low + high))


def bound_all_columns(
    relaxation: WideRelaxation, candidates: LevelSet, dual: float, is_expired: Callable[[], bool]
) -> Ends:
    """Return bounds over all columns: prediction by prediction, and for the sum from below.

    Parameters
    ----------
    relaxation : WideRelaxation
        Relaxation solved for the size; its point is restored at the end.
    candidates : LevelSet
        Level set that contains every candidate.
    dual : float
        Dual value of the relaxation's point.
    is_expired : callable
        Function that returns True when time is over; the remaining predictions keep trivial bounds.
    """
    rows, centre = relaxation.rows, relaxation.b.copy()
    gap = positive_gap(candidates._replace(zeta=dual), rows.yy)
    rounding = rows.rounding_allowance(candidates.k)
    lo, hi = np.full(len(rows.u), -np.inf), np.full(len(rows.u), np.inf)
    for i, x in enumerate(rows.X_test):
        ridge = float(x @ x) - float(np.sum((rows.Xt.T @ x) ** 2)) / (1.0 + rows.largest)
        t = 2.0 * np.sqrt(gap / max(ridge, TINY))
        if is_expired():
            break
        for sign, side in ((1.0, hi), (-1.0, lo)):
            relaxation.b = centre.copy()
            bound, t = farthest(relaxation, sign * x, candidates, t, rounding)
            side[i] = sign * bound
    low, high = distances(rows.u, lo, hi)
    ends = Ends(low, high, Origin.CONIC, Origin.CONIC if np.isfinite(high) else Origin.TRIVIAL)
    if len(rows.u) > 1:
        together = _least_squares_bound(relaxation, candidates, rounding, is_expired)
        if together > low:
            ends = replace(ends, lower=together, low_origin=Origin.AGGREGATED)
    relaxation.b = centre
    return ends


def farthest(
    relaxation: WideRelaxation, x: FloatArray, candidates: LevelSet, t: float, rounding: Rounding
) -> tuple[float, float]:
    """Return an upper bound of `x'b*` and its t: the conic spread of :mod:`sparsecv_mio.kernels.level_sets`, by rows.

    Parameters
    ----------
    relaxation : WideRelaxation
        Relaxation from whose point the search starts; the point is moved.
    x : (q,) array
        Row.
    candidates : LevelSet
        Level set that contains every candidate.
    t : float
        Initial value; it changes by the root of `(ubar - zeta) / (F(b_t) - zeta)`.
    rounding : Rounding
        Rounding allowance with `length_j = sqrt(M_jj)`.
    """
    rows, gap = relaxation.rows, positive_gap(candidates, candidates.ubar)
    bound, best_t, most = np.inf, t, float(np.linalg.norm(x)) * rounding.norm
    for _ in range(RELAXED_AT_MOST):
        dual, primal = relaxation.solve_for_rows(
            rows.training, relaxation.columns, candidates.k, 0.01 * gap, 0.5 * t * x
        )
        b = relaxation.b
        error = rounding.unit * (most + float(np.abs(x * b).sum()))
        value = (candidates.ubar - dual + float(allowance(rounding, b))) / t + error
        if value < bound:
            bound, best_t = value, t
        ratio = gap / max(primal + t * float(x @ b) - candidates.zeta, 1e-4 * gap)
        if abs(ratio - 1.0) < TARGET:
            break
        t *= float(np.sqrt(min(ratio, 100.0)))
    return bound, best_t


def _least_squares_bound(
    relaxation: WideRelaxation, candidates: LevelSet, rounding: Rounding, is_expired: Callable[[], bool]
) -> float:
    """Return a lower bound of the held-out sum of squares by the relaxation with held-out rows of weight t."""
    rows, gap = relaxation.rows, positive_gap(candidates, relaxation.rows.yy)
    longest = float(np.linalg.eigvalsh(rows.X_test @ rows.X_test.T)[-1]) * (1.0 + 1e-9)
    bound, low, high, t = 0.0, 0.0, np.inf, 1.0
    for _ in range(TOGETHER_ROUNDS):
        if is_expired():
            break
        root = np.sqrt(t)
        Xt, y = np.hstack([rows.Xt, root * rows.X_test.T]), np.concatenate([rows.y, root * rows.u])
        columns = WorkingColumns(rows.q)
        weighted = Wide(Xt, y, rows.largest + t * longest)
        dual, primal = relaxation.solve_for_rows(weighted, columns, candidates.k, 0.01 * gap)
        b = relaxation.b
        size = float(np.sqrt(rows.square + t * np.einsum("ij,ij->j", rows.X_test, rows.X_test)) @ np.abs(b))
        reach = rounding.prior * (1.0 + root * np.sqrt(longest))
        slip = rounding.unit * (reach + float(np.linalg.norm(y)) + size) ** 2
        bound = max(bound, (dual - candidates.ubar - slip) / t)
        excess = primal - t * point_error(rows, b) - candidates.zeta
        ratio = gap / max(excess, LEAST_EXCESS * gap)
        if abs(ratio - 1.0) < TARGET:
            break
        low, high = (t, high) if excess < gap else (low, t)
        t = next_weight(t, ratio, low, high)
    return bound


def point_error(rows: WideRows, b: FloatArray) -> float:
    """Return the held-out sum of squares of a point."""
    return float(np.sum((rows.u - rows.X_test @ b) ** 2))


TREE_PRODUCT_BYTES = STORE_BYTES // 2  # maximum size of the rows of G of a tree
AT_FIRST = 20  # number of first columns, in addition to two for each column of a support
TREE_ROUNDS = 8  # maximum number of rounds that add columns at a node
INTEGRAL = 1e-6


@dataclass(frozen=True, eq=False)
class ProvedSize:
    """Result of a tree: `lower` is a lower bound of f of every support of the size.

    `supports`, if not None, contains every support that can be optimal or tied with an optimal one.
    """

    lower: float
    supports: list[IntArray] | None
    nodes: int


@dataclass(frozen=True, eq=False)
class _Open:
    """A node: its bound, its columns in and out as positions among the few, and a point to start from."""

    lower: float
    inside: tuple[int, ...]
    outside: frozenset[int]
    used: IntArray  # positions where the point is not zero
    point: FloatArray


class WideTree:
    """The tree of one size on the columns that screening left.

    Parameters
    ----------
    rows : WideRows
        Rows of the fold.
    known : WideSupports
        Incumbents, with one of the size; improved by the tree.
    tau : int
        Size, smaller than the number of columns.
    left : int array
        Columns, ascending, that contain every support of interest.
    start : (q,) array
        Point to start from, such as that of the relaxation.
    """

    def __init__(self, rows: WideRows, known: WideSupports, tau: int, left: IntArray, start: FloatArray) -> None:
        self.rows, self.known, self.tau, self.left = rows, known, tau, left
        self.c = rows.c[left]
        first = max(min(len(left), 2 * tau + AT_FIRST), 1)
        most = max(min(len(left), CAPACITY, TREE_PRODUCT_BYTES // (8 * len(left))), first)
        self.products = np.empty((first, len(left)))  # grows with the few columns, up to `most` rows
        self.few = np.zeros(most, dtype=np.int64)  # positions in `left`
        self.count = 0
        self.among = np.zeros(len(left), dtype=np.bool_)
        self.rounding = rows.rounding_allowance(tau)
        self.error = self.bound_rounding_error(rows, tau)
        self.listed: list[tuple[float, IntArray]] = []
        self.open = OpenNodes[_Open]()
        self.stuck = np.inf  # bound of nodes that cannot be branched on or have columns dependent up to rounding
        self.start = start[left]
        used = np.flatnonzero(self.start)
        by_size = np.argsort(-np.abs(self.c), kind="stable")[: 2 * tau + AT_FIRST]
        known_here = np.flatnonzero(np.isin(left, known.support[tau]))
        self._add(np.concatenate([used[np.argsort(-np.abs(self.start[used]))], known_here, by_size]))

    @staticmethod
    def bound_rounding_error(rows: WideRows, tau: int) -> float:
        """Return a bound on the rounding error of f for supports of the size that may be optimal."""
        rounding = rows.rounding_allowance(tau)
        size = 2.0 * float(rounding.prior)
        return float(rounding.unit * size * size)

    def _add(self, columns: IntArray) -> int:
        """Add columns to the few, up to the limit; return the number added. O(n q) for each column."""
        columns = columns[~self.among[columns]]
        columns = columns[np.sort(np.unique(columns, return_index=True)[1])][: len(self.few) - self.count]
        if self.count + len(columns) > len(self.products):
            n_rows = min(max(self.count + len(columns), 3 * len(self.products) // 2), len(self.few))
            grown = np.empty((n_rows, len(self.left)))
            grown[: self.count] = self.products[: self.count]
            self.products = grown
        for at, column in enumerate(columns.tolist(), start=self.count):
            self.products[at] = self.rows.gram_row(int(self.left[column]))[self.left]
        self.few[self.count : self.count + len(columns)], self.among[columns] = columns, True
        self.count += len(columns)
        return len(columns)

    # -- one node ----------------------------------------------------------------------------------------------------

    def _slip(self, b: FloatArray) -> float:
        """Return the rounding allowance of the bound by a point on the few columns."""
        length = self.rounding.length[self.left[self.few[: len(b)]]]
        size = float(self.rounding.prior + length @ np.abs(b))
        return float(self.rounding.unit * size * size)

    def _value(self, b: FloatArray, inside: IntArray, out: BoolArray, k: int) -> tuple[float, IntArray]:
        """Return the bound of a node at a point, minus rounding, and columns outside of the few that would raise it."""
        few, used = self.few[: len(b)], np.flatnonzero(b)
        g = self.c - b[used] @ self.products[used]
        quad = float(b @ (self.c[few] - g[few]))
        square = g * g
        fixed = float(square[few[inside]].sum())
        square[few[inside]] = -1.0
        square[few[out]] = -1.0
        mine = np.sort(square[few])[::-1][:k]
        better = np.flatnonzero(~self.among & (square > max(float(mine[-1]), 0.0)))
        if len(better) > k:
            better = better[np.argpartition(-square[better], k)]
        top = np.sort(np.concatenate([mine, square[better[:k]]]))[::-1][:k]
        value = self.rows.yy - quad - fixed - float(top.sum()) - self._slip(b)
        return value, better[np.argsort(-square[better], kind="stable")]

    def _relax(self, node: _Open, bar: float) -> tuple[_Open, int]:
        """Bound a node up to the cutoff; return it with bound and point, and the column to branch on (-1 if none)."""
        k, lower, pick = self.tau - len(node.inside), node.lower, -1
        inside, start = np.array(node.inside, dtype=np.int64), np.zeros(self.count)
        start[node.used] = node.point
        for _ in range(TREE_ROUNDS):
            count, out = self.count, self._mask(node.outside)
            taken = out.copy()
            taken[inside] = True
            free = np.flatnonzero(~taken)
            if len(free) <= k:
                if self._add(np.argsort(-np.where(self.among, 0.0, np.abs(self.c)), kind="stable")[: 10 + k]):
                    continue
                break
            few, b, work = self.few[:count], np.zeros(count), np.zeros((3, count))
            b[: len(start)] = start
            gram = np.ascontiguousarray(self.products[:count, few])
            steepest = min(gershgorin(gram), self.rows.largest)
            form = Form(gram, np.ascontiguousarray(self.c[few]), self.rows.yy, steepest)
            stop = Accuracy(bar + self._slip(b), ROOT_ACCURACY, ROOT_STEPS)
            _, primal, _ = relax(form, Node(inside, len(inside), free, len(free), k), stop, b, *work)
            start, pick = work[1], _branching_column(work[1], work[2], taken)
            self._round(start, inside)
            value, better = self._value(start, inside, out, k)
            lower = max(lower, value)
            if lower >= bar or not self._add(better[: 10 + k]) or primal < bar:
                break
        used = np.flatnonzero(start)
        return replace(node, lower=lower, used=used, point=start[used]), pick

    def _mask(self, places: frozenset[int]) -> BoolArray:
        mask = np.zeros(self.count, dtype=np.bool_)
        mask[list(places)] = True
        return mask

    def _round(self, b: FloatArray, inside: IntArray) -> None:
        """Try the included columns of a node and the largest others as an incumbent."""
        size = np.abs(b)
        size[inside] = np.inf
        self.known.take([self.left[self.few[np.argsort(-size, kind="stable")[: self.tau]]]])

    # -- the last level ----------------------------------------------------------------------------------------------

    def _scan(self, node: _Open) -> None:
        """Evaluate every support of a node with one column left to choose. O(q tau^2)."""
        inside, outside = node.inside, node.outside
        members = np.array(inside, dtype=np.int64)
        e, d, base = self.c.copy(), self.rows.square[self.left].copy(), self.rows.yy
        columns = self.few[members]
        if len(members):
            M = self.products[np.ix_(members, columns)] + np.eye(len(members))
            try:
                half = np.linalg.cholesky(M)
            except np.linalg.LinAlgError:
                self.stuck = min(self.stuck, node.lower)
                return
            V = solve_triangular(half, self.products[members], lower=True, check_finite=False)
            v = solve_triangular(half, self.c[columns], lower=True, check_finite=False)
            e -= v @ V
            d -= np.einsum("ij,ij->j", V, V)
            base -= float(v @ v)
        value = base - e * e / np.maximum(d, 1.0)  # the residual square of a column is at least its penalty
        value[columns] = value[self.few[list(outside)]] = np.inf
        self.known.take([self.left[np.append(columns, np.argmin(value))]])
        near = np.flatnonzero(value <= self.level + self.error)
        for j in near[np.argsort(value[near])][: MOST_REFITTED + 1].tolist():
            self.listed.append((float(value[j]), self.left[np.append(columns, j)]))

    @property
    def level(self) -> float:
        """Value up to which supports can be optimal or tied, rounding included."""
        return self.known.best[self.tau] * (1.0 + TIE) + self.error

    # -- the tree ----------------------------------------------------------------------------------------------------

    def grow(self, cutoff: float, most: int, is_expired: Callable[[], bool]) -> ProvedSize:
        """Branch until the bound reaches `cutoff` or the optima are known; return the result.

        Parameters
        ----------
        cutoff : float
            Target of the lower bound; inf requests the optima.
        most : int
            Maximum number of nodes.
        is_expired : callable
            Function that returns True to end with the present result.
        """
        start = self.start[self.few[: self.count]]
        for bound, root in self._children([_Open(0.0, (), frozenset(), np.arange(self.count), start)]):
            self.open.push(bound, root)
        closed = self.open.search(
            lambda _, node: self._expand(node, min(cutoff, self.level)),
            lambda: min(cutoff, self.level),
            lambda: self.open.n_expanded < most and len(self.listed) <= MOST_REFITTED and not is_expired(),
        )
        lower = min(self.stuck, cutoff, self.known.best[self.tau] - self.error, self.open.smallest_bound)
        level, values = self.level + self.error, np.array([value for value, _ in self.listed])
        ended = closed and self.stuck == np.inf and cutoff >= self.level and len(self.listed) <= MOST_REFITTED
        ended &= bool(np.isfinite(values).all())  # inf for a support that is singular to rounding
        supports = [np.sort(support) for value, support in self.listed if value <= level] if ended else None
        return ProvedSize(max(lower, 0.0), supports, self.open.n_expanded)

    def _expand(self, node: _Open, bar: float) -> list[tuple[float, _Open]]:
        """Bound a node; return its children, none if its bound reaches the cutoff."""
        node, pick = self._relax(node, bar)
        if node.lower >= bar:
            return []
        if pick < 0:
            self.stuck = min(self.stuck, node.lower)
            return []
        inside, outside = (*node.inside, pick), node.outside | {pick}
        return self._children([replace(node, inside=inside), replace(node, outside=outside)])

    def _children(self, nodes: Iterable[_Open]) -> list[tuple[float, _Open]]:
        """Return the nodes to queue, after evaluating the supports of nodes that have few."""
        children = []
        for node in nodes:
            k, free = self.tau - len(node.inside), len(self.left) - len(node.inside) - len(node.outside)
            if free == k:  # counts all free columns, not only the few
                out = np.zeros(len(self.left), dtype=np.bool_)
                out[self.few[list(node.outside)]] = True
                support = self.left[~out]
                self.listed.append((self.known.take([support])[0], support))
            elif free > k == 1:
                self._scan(node)
            elif free > k:
                usable = ~np.isin(node.used, list(node.outside))
                children.append((node.lower, replace(node, used=node.used[usable], point=node.point[usable])))
        return children


def _branching_column(b: FloatArray, g: FloatArray, taken: BoolArray) -> int:
    """Return the free column whose z is nearest to one half; if all z are integral, that with the largest slope."""
    z = np.divide(b, g, out=np.zeros(len(b)), where=g != 0.0)
    split = np.where(taken, -1.0, np.minimum(z, 1.0 - z))
    if split.max() <= INTEGRAL:
        split = np.where(taken, -1.0, np.abs(g))
    return int(np.argmax(split))


LARGEST_PRODUCT = 1e200  # largest eigenvalue of X'X, in units of the penalty, whose square floats can hold


@dataclass(frozen=True, eq=False)
class Survivors:
    """Bounds on the optimum of one tau, and the columns that screening leaves.

    Every support of tau columns that is optimal, or tied with an optimal one, lies in these columns.
    """

    lower: float
    upper: float
    columns: IntArray


@dataclass(frozen=True)
class RelaxedSize:
    """Solved relaxation of a size: dual, primal, rounding allowance, a level above every optimum (inf if unknown)."""

    dual: float
    primal: float
    slip: float
    level: float

    @property
    def lower(self) -> float:
        """Certified lower bound of f."""
        return self.dual - self.slip


class WideFold:
    """Bounds of one fold at one gamma, computed from rows.

    Forced columns are eliminated in `rows` (:class:`~sparsecv_mio.bounds.wide_rows.WideRows`): attributes refer to the
    other columns, while methods take tau without adjustment columns, and take and return whole supports.

    Parameters
    ----------
    rows : WideRows
        Rows of the fold.
    is_expired : callable, optional
        Function that returns True when time is over: searches then end with their present result, and the remaining
        predictions keep trivial bounds.
    """

    def __init__(self, rows: WideRows, is_expired: Callable[[], bool] = is_never_expired) -> None:
        self.rows, self.is_expired = rows, is_expired
        self.known = WideSupports(rows, is_expired)
        self.relaxation = WideRelaxation(rows)

    @property
    def u(self) -> FloatArray:
        """Held-out targets about the training mean."""
        return self.rows.u

    # -- incumbents -------------------------------------------------------------------------------------------------

    def try_supports(self, supports: Iterable[NDArray[np.integer]]) -> None:
        """Try given supports (standard columns) as incumbents. O(n s^2) for each support of s columns."""
        self.known.take(strip_forced_columns(self.rows.choice, list(supports)))

    def search(self, taus: Sequence[int], swap_rounds: int = 0) -> None:
        """Search for incumbents by forward selection over all columns and swaps among the promising ones."""
        self.known.search(self.rows.choice.sizes(taus), swap_rounds)

    def incumbents(self) -> list[IntArray]:
        """Return the incumbents of all sizes, in standard columns."""
        return [self.rows.choice.make_support(support) for support in self.known.support.values()]

    def incumbent(self, tau: int) -> IntArray | None:
        """Return the incumbent of a size, see `FoldBounds.incumbent`."""
        size = self.rows.choice.size(tau)
        columns = np.zeros(0, dtype=np.int64) if size == 0 else self.known.support.get(size)
        return None if columns is None else self.rows.choice.make_support(columns)

    def upper(self, tau: int) -> float:
        """Return f of the incumbent of a size; inf if there is none."""
        size = self.rows.choice.size(tau)
        return self.rows.yy if size == 0 else self.known.best.get(size, np.inf)

    # -- bounds -----------------------------------------------------------------------------------------------------

    def cells(self, taus: Sequence[int]) -> list[FoldCell]:
        """Return the bounds for every tau, see `FoldBounds.cells`."""
        return [FoldCell.from_array(tau, row) for tau, row in zip(taus, self.numbers(taus), strict=True)]

    def numbers(self, taus: Sequence[int]) -> FloatArray:
        """Return the bounds for every tau as an array, see `FoldBounds.numbers`."""
        by_size: dict[int, FloatArray] = {}
        sizes = self.rows.choice.sizes(taus)
        for size in sorted(set(sizes)):
            unknown = self.is_expired()
            trivial = (0.0, np.inf), Ends(), self.rows.q
            by_size[size] = self._finish(size, *trivial) if unknown else self._bound(size)
        return np.array([by_size[size] for size in sizes])

    def survivors(self, tau: int) -> Survivors:
        """Return bounds on the optimum by one relaxation, and the screened columns."""
        survivors = self._survivors(self.rows.choice.size(tau))
        return replace(survivors, columns=self.rows.choice.make_support(survivors.columns))

    def _survivors(self, tau: int) -> Survivors:
        rows = self.rows
        if tau == 0 or not rows.yy > 0.0:  # every coefficient is zero, so any columns can be returned
            return Survivors(*self._bound_empty_support(), np.arange(min(max(tau, 1), rows.q)))
        everything = np.arange(rows.q)
        if tau >= rows.q:
            return Survivors(0.0, np.inf, everything)
        at = self._relax(tau)
        if not np.isfinite(at.level):
            return Survivors(max(at.lower, 0.0), np.inf, everything)
        return Survivors(max(at.lower, 0.0), at.level, np.flatnonzero(self._screen(tau, at) != DROPPED))

    def branch(self, tau: int, cutoff: float = np.inf, most: int = sys.maxsize) -> tuple[Survivors, int]:
        """Return bounds on the optimum by a tree on the rows, and, if the tree finishes, the columns of its supports.

        Parameters
        ----------
        tau : int
            Size.
        cutoff : float
            Target of the lower bound.
        most : int
            Maximum number of nodes.

        Returns
        -------
        survivors : Survivors
            Bounds and columns.
        nodes : int
            Number of nodes.
        """
        rows, incumbents, size = self.rows, self.known, self.rows.choice.size(tau)
        if size == 0 or not rows.yy > 0.0 or size >= rows.q:
            return self.survivors(tau), 0
        at = self._relax(size)
        if not np.isfinite(at.level) or at.lower >= cutoff:
            return self.survivors(tau), 0
        columns_left = np.flatnonzero(self._screen(size, replace(at, level=min(at.level, cutoff))) != DROPPED)
        if len(columns_left) <= size or not np.isfinite(
            WideTree.bound_rounding_error(rows, size)
        ):  # or no digit is accurate
            return self.survivors(tau), 0
        tree = WideTree(rows, incumbents, size, columns_left, self.relaxation.b).grow(cutoff, most, self.is_expired)
        lower = max(at.lower, tree.lower)
        columns = np.arange(rows.q)
        if tree.supports is not None:
            columns = np.unique(np.concatenate(tree.supports))
        elif at.level <= cutoff:
            columns = columns_left
        return Survivors(
            lower, self.known.best[size] * (1.0 + TIE) + at.slip, rows.choice.make_support(columns)
        ), tree.nodes

    def _relax(self, tau: int) -> RelaxedSize:
        """Solve the relaxation of a size, try its rounded point as a support, and return the bounds on the optimum."""
        incumbents = self.known
        if not self.rows.largest < LARGEST_PRODUCT:
            return RelaxedSize(-np.inf, np.inf, 0.0, np.inf)
        dual, primal = self.relaxation.solve(tau, NEAR_OF_MANY * incumbents.best.get(tau, self.rows.yy))
        incumbents.round(tau, self.relaxation.b, self.relaxation.g)
        slip = float(allowance(self.rows.rounding_allowance(tau), self.relaxation.b))
        level = incumbents.best[tau] * (1.0 + TIE) + slip if tau in incumbents.best else np.inf
        if dual - slip > level:
            raise Contradiction(
                f"tau {tau}: the lower bound {dual - slip!r} exceeds {level!r}, the objective of a known support; "
                "please report this"
            )
        return RelaxedSize(dual, primal, slip, level)

    def _screen(self, tau: int, at: RelaxedSize) -> NDArray[np.int8]:
        """Return the status of columns by the last point."""
        q = self.rows.q
        status = np.zeros(q, dtype=np.int8)
        screen(self.relaxation.g**2, q, np.arange(q), tau, at.level + at.slip - at.dual, status)
        return status

    def _bound_empty_support(self) -> tuple[float, float]:
        """Return bounds on f of the forced columns alone, or of no column if none are forced."""
        yy, slip = self.rows.yy, float(allowance(self.rows.rounding_allowance(0), np.zeros(self.rows.q)))
        return max(yy - slip, 0.0), yy + slip

    def _bound(self, tau: int) -> FloatArray:
        rows, incumbents = self.rows, self.known
        if tau == 0 or not rows.yy > 0.0:
            error = float(rows.u @ rows.u)
            ends = Ends(error, error, Origin.EXACT, Origin.EXACT, error)
            return self._finish(tau, self._bound_empty_support(), ends, 0)
        if tau >= rows.q:
            return self._finish(tau, (0.0, np.inf), Ends(), rows.q)
        at = self._relax(tau)
        if not np.isfinite(at.level):
            return self._finish(tau, (at.lower, np.inf), Ends(), rows.q)
        lower = at.lower
        status = self._screen(tau, at)
        columns_left = np.flatnonzero(status != DROPPED)
        estimate = point_error(rows, self.relaxation.b)
        if len(rows.u) == 0:
            ends = Ends()
        elif len(columns_left) <= RELAXED_COLUMNS:
            ends, better = bound_few_columns(rows, incumbents, tau, columns_left)
            lower = max(lower, better)
        else:
            candidates = LevelSet(tau, at.level + at.slip, at.primal)
            ends = bound_all_columns(self.relaxation, candidates, at.dual, self.is_expired)
        if np.isnan(ends.estimate):
            ends = replace(ends, estimate=estimate)
        level = min(at.level, incumbents.best[tau] * (1.0 + TIE) + at.slip)
        return self._finish(tau, (min(lower, incumbents.best[tau]), level), ends, int((status == FREE).sum()))

    def _finish(self, tau: int, objective: tuple[float, float], ends: Ends, left: int) -> FloatArray:
        rows, rounding = self.rows, self.rows.rounding_allowance(tau)
        reduced = rounding.unit * rounding.prior * rows.lever
        rounding = rounding._replace(prior=rounding.prior + rows.flat_length)
        low, high = widen_interval(max(ends.lower, 0.0), ends.upper, off_by_means(len(rows.u), rounding) + reduced)
        interval = low * (1.0 - OUTWARD), high * (1.0 + OUTWARD)
        origins, open_columns = (ends.low_origin, ends.high_origin), 0 if ends.low_origin is Origin.EXACT else left
        return np.array([max(objective[0], 0.0), objective[1], *interval, *origins, ends.estimate, open_columns])

    def printed_formula_terms(self, tau: int) -> tuple[float, float, FloatArray, FloatArray]:
        """Return level, relaxation value, its predictions, and `x'M^{-1}x` of the held-out rows, for `printed_ends`."""
        rows, X, tau = self.rows, self.rows.X_test, self.rows.choice.size(tau)
        dual, _ = self.relaxation.solve(tau, NEAR_OF_MANY * self.known.best.get(tau, rows.yy))
        self.known.round(tau, self.relaxation.b, self.relaxation.g)
        half = X @ rows.Xt
        K = rows.Xt.T @ rows.Xt
        K.flat[:: rows.n + 1] += 1.0
        reach = np.einsum("ij,ij->i", X, X) - np.einsum("ij,ji->i", half, np.linalg.solve(K, half.T))
        return self.known.best[tau], dual, X @ self.relaxation.b, np.maximum(reach, 0.0)

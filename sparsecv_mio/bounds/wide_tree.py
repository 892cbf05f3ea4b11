"""Branch-and-bound of one size by rows, for many more columns than a matrix of their products has room for.

A node holds some columns, leaves out others and chooses k of the rest. Its relaxation is solved on a few columns; its
bound is the dual value over *all* columns that are left,

    f(S)  >=  yy - b'G b - sum_I g_j^2 - (k largest g_j^2 of the rest),     g = X'(y - X b),

valid for every b (:mod:`sparsecv_mio.kernels.perspective`). Of the matrix G only the rows of those few columns are
formed, so that a node costs O(q) for each coefficient and no product with X. Columns with large `|g_j|` join the few.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.fold import TIE
from sparsecv_mio.bounds.wide_relaxation import MAX_STEPS
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.bounds.wide_supports import WideSupports
from sparsecv_mio.kernels.dense import gershgorin
from sparsecv_mio.kernels.forms import Form, Node, Stop
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.wide_node import slope_from_products

PRODUCT_BYTES = 1 << 27  # of the rows of G of a tree
MOST_FEW = 1000  # columns that relaxations are solved on
AT_FIRST = 20  # of these, beside two for each of a support's
NEAR = 0.1  # accuracy of a node that will not close, of what it lacks
ROUNDS = 8  # of adding columns at a node
INTEGRAL = 1e-6
MOST_LISTED = 500  # supports


@dataclass(frozen=True, eq=False)
class Tree:
    """What a tree proved: `lower` is at most f of every support of the size.

    `supports` holds, where it is not None, every support that can be optimal or tied with one that is.
    """

    lower: float
    supports: list[IntArray] | None
    nodes: int


@dataclass(order=True)
class _Open:
    """A node: its bound, the columns in and out by their places among the few, and the point to start from."""

    lower: float
    order: int
    inside: tuple[int, ...] = field(compare=False)
    outside: frozenset[int] = field(compare=False)
    used: IntArray = field(compare=False)  # places where the point is not zero
    point: FloatArray = field(compare=False)


class WideTree:
    """The tree of one size on the columns that screening left.

    Parameters
    ----------
    rows : WideRows
    known : WideSupports
        With an incumbent of the size; improved where a better support is found.
    tau : int
        Fewer than there are columns.
    left : int array
        Columns that hold every support of interest, ascending.
    start : (q,) array
        A point to start from, such as that of the relaxation.
    """

    def __init__(self, rows: WideRows, known: WideSupports, tau: int, left: IntArray, start: FloatArray) -> None:
        self.rows, self.known, self.tau, self.left = rows, known, tau, left
        self.c = rows.c[left]
        most = max(min(len(left), MOST_FEW, PRODUCT_BYTES // (8 * len(left))), min(len(left), 2 * tau + AT_FIRST))
        self.products = np.empty((most, len(left)))
        self.few = np.zeros(most, dtype=np.int64)  # places in `left`
        self.count = 0
        self.among = np.zeros(len(left), dtype=np.bool_)
        self.g = np.empty(len(left))
        self.rounding = rows.allowance_of(tau)
        self.error = self.error_of(rows, tau)
        self.listed: list[tuple[float, IntArray]] = []
        self.nodes = self.made = 0
        self.start = start[left]
        used = np.flatnonzero(self.start)
        by_size = np.argsort(-np.abs(self.c), kind="stable")[: 2 * tau + AT_FIRST]
        known_here = np.flatnonzero(np.isin(left, known.support[tau]))
        self._add(np.concatenate([used[np.argsort(-np.abs(self.start[used]))], known_here, by_size]))

    @staticmethod
    def error_of(rows: WideRows, tau: int) -> float:
        """Return the rounding error of f of a support of the size, as far as it may be the best one."""
        rounding = rows.allowance_of(tau)
        size = 2.0 * float(rounding.prior)
        return float(rounding.unit * size * size)

    def _add(self, columns: IntArray) -> int:
        """Let columns join the few, as far as there is room; how many did. O(n q) each."""
        columns = columns[~self.among[columns]]
        columns = columns[np.sort(np.unique(columns, return_index=True)[1])][: len(self.few) - self.count]
        for at, column in enumerate(columns.tolist(), start=self.count):
            self.products[at] = self.rows.products_with(int(self.left[column]))[self.left]
        self.few[self.count : self.count + len(columns)], self.among[columns] = columns, True
        self.count += len(columns)
        return len(columns)

    # -- one node ----------------------------------------------------------------------------------------------------

    def _slip(self, b: FloatArray) -> float:
        """Return the rounding allowance of the bound of a point on the few."""
        length = self.rounding.length[self.left[self.few[: len(b)]]]
        size = float(self.rounding.prior + length @ np.abs(b))
        return float(self.rounding.unit * size * size)

    def _value(self, b: FloatArray, inside: IntArray, out: BoolArray, k: int) -> tuple[float, IntArray]:
        """Bound of a node at a point, rounding taken off, and columns beside the few that would raise it."""
        g, few = self.g, self.few[: len(b)]
        slope_from_products(self.products, self.c, b, len(b), g)
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
        found = self.rows.yy - quad - fixed - float(top.sum()) - self._slip(b)
        return found, better[np.argsort(-square[better], kind="stable")]

    def _relax(self, node: _Open, bar: float) -> tuple[_Open, int]:
        """Bound a node as far as `bar`; the node with its bound and point, and the column to branch on (-1: none)."""
        k, lower, pick = self.tau - len(node.inside), node.lower, -1
        inside, start = np.array(node.inside, dtype=np.int64), np.zeros(self.count)
        start[node.used] = node.point
        for _ in range(ROUNDS):
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
            stop = Stop(bar + self._slip(b), NEAR, MAX_STEPS)
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
        """Try the columns that a node holds and the largest others as an incumbent."""
        size = np.abs(b)
        size[inside] = np.inf
        self.known.take([self.left[self.few[np.argsort(-size, kind="stable")[: self.tau]]]])

    # -- the last level ----------------------------------------------------------------------------------------------

    def _scan(self, inside: tuple[int, ...], outside: frozenset[int]) -> None:
        """Evaluate every support of a node that has one column left to choose. O(q tau^2)."""
        held = np.array(inside, dtype=np.int64)
        e, d, base = self.c.copy(), self.rows.square[self.left].copy(), self.rows.yy
        columns = self.few[held]
        if len(held):
            M = self.products[np.ix_(held, columns)] + np.eye(len(held))
            half = np.linalg.cholesky(M)
            V = solve_triangular(half, self.products[held], lower=True, check_finite=False)
            v = solve_triangular(half, self.c[columns], lower=True, check_finite=False)
            e -= v @ V
            d -= np.einsum("ij,ij->j", V, V)
            base -= float(v @ v)
        value = base - e * e / np.maximum(d, 1.0)  # what others leave of a column is at least its penalty
        value[columns] = value[self.few[list(outside)]] = np.inf
        self.known.take([self.left[np.append(columns, np.argmin(value))]])
        near = np.flatnonzero(value <= self.level + self.error)
        for j in near[np.argsort(value[near])][: MOST_LISTED + 1].tolist():
            self.listed.append((float(value[j]), self.left[np.append(columns, j)]))

    @property
    def level(self) -> float:
        """What every optimal or tied support is below, rounding included."""
        return self.known.best[self.tau] * (1.0 + TIE) + self.error

    # -- the tree ----------------------------------------------------------------------------------------------------

    def grow(self, enough: float, most: int, expired: Callable[[], bool]) -> Tree:
        """Branch until the bound reaches `enough` or the optima are known.

        Parameters
        ----------
        enough : float
            A lower bound from which on nothing more is asked for; inf asks for the optima.
        most : int
            Nodes.
        expired : callable
            True ends it with what it holds.
        """
        waiting: list[_Open] = []
        stuck = np.inf  # bound of nodes that cannot be branched on
        start = self.start[self.few[: self.count]]
        self._child(waiting, _Open(0.0, 0, (), frozenset(), np.arange(self.count), start))
        while waiting and self.nodes < most and len(self.listed) <= MOST_LISTED and not expired():
            bar = min(enough, self.level)
            node = heapq.heappop(waiting)
            if node.lower >= bar:
                waiting = []  # none of the others is less
                break
            self.nodes += 1
            node, pick = self._relax(node, bar)
            if node.lower >= bar:
                continue
            if pick < 0:
                stuck = min(stuck, node.lower)
                continue
            self._child(waiting, replace(node, inside=(*node.inside, pick)))
            self._child(waiting, replace(node, outside=node.outside | {pick}))
        lower = min([stuck, enough, self.known.best[self.tau] - self.error, *(node.lower for node in waiting)])
        level, values = self.level + self.error, np.array([value for value, _ in self.listed])
        ended = not waiting and stuck == np.inf and enough >= self.level and len(self.listed) <= MOST_LISTED
        ended &= bool(np.isfinite(values).all())  # inf: singular to rounding
        supports = [np.sort(support) for value, support in self.listed if value <= level] if ended else None
        return Tree(max(lower, 0.0), supports, self.nodes)

    def _child(self, waiting: list[_Open], node: _Open) -> None:
        """Let a node wait for its turn, or evaluate its supports where these are few."""
        k, free = self.tau - len(node.inside), len(self.left) - len(node.inside) - len(node.outside)
        if free < k:
            return
        if free == k:  # columns that are free, whether among the few or not
            out = np.zeros(len(self.left), dtype=np.bool_)
            out[self.few[list(node.outside)]] = True
            support = self.left[~out]
            self.listed.append((self.known.take([support])[0], support))
        elif k == 1:
            self._scan(node.inside, node.outside)
        else:
            self.made += 1
            kept = ~np.isin(node.used, list(node.outside))
            heapq.heappush(waiting, replace(node, order=self.made, used=node.used[kept], point=node.point[kept]))


def _branching_column(b: FloatArray, g: FloatArray, taken: BoolArray) -> int:
    """Return the free column whose share z of a relaxation is nearest to a half, else that with the largest slope."""
    z = np.divide(b, g, out=np.zeros(len(b)), where=g != 0.0)
    split = np.where(taken, -1.0, np.minimum(z, 1.0 - z))
    if split.max() <= INTEGRAL:
        split = np.where(taken, -1.0, np.abs(g))
    return int(np.argmax(split))

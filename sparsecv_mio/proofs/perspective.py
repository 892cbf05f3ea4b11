"""Trees of one size whose leaves are closed by points of the perspective relaxation, rounded to few bits.

For many columns the ridge fits of the path tree close too little. Here a node (I, F) is closed by the dual value of a
point (theory sections 1 and 12), its parent's if that suffices. Columns are scaled so that the penalty is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.kernels.forms import Form, Node, Stop
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.problem.problem import SparseProblem

BITS = (6, 9, 12, 16, 22, 30, 50)  # of the largest entry of a point, tried in turn
STEPS = 200
NEAR = 0.1  # accuracy of a relaxation that will not close its node, of what is left to the bar
BEYOND = 1e-4  # of y'y less the bar, that a relaxation goes beyond it, so that few bits suffice
RIDGE = -1

Support = tuple[int, ...]


@dataclass(eq=False)
class _Point:
    """A vector b as integers times a power of two, its slopes squared, and `yy - b'G b`."""

    exponent: int
    whole: FloatArray
    squares: FloatArray
    base: float
    number: int = -1


@dataclass(eq=False)
class PerspectiveProof:
    """The tree of one size.

    Parameters
    ----------
    problem : SparseProblem
    size : int
        0 < size < q.
    bar : float
        What leaves must reach, in the problem's units.
    unit_of : (q,) array
        Points are integers times `2^e unit_of` in the problem's coordinates.
    most : (int, int)
        Supports that may be listed, and nodes.
    """

    problem: SparseProblem
    size: int
    bar: float
    unit_of: FloatArray
    most: tuple[int, int]
    nodes: list[int] = field(default_factory=list)
    points: list[tuple[int, list[int], list[int]]] = field(default_factory=list)
    listed: list[Support] = field(default_factory=list)

    def __post_init__(self) -> None:
        p = self.problem
        self.root = np.sqrt(p.penalty)
        G = p.Q / self.root / self.root[:, None]
        self.form = Form(np.ascontiguousarray(G), p.c / self.root, p.yy, float(np.trace(G)) + 1e-12)
        self.step = self.unit_of * self.root  # of an integer, in the coordinates of the form
        self.reach = BEYOND * max(p.yy - self.bar, 0.0)

    def solve(self) -> bool:
        """Make the tree; False where it would be too large."""
        q = self.problem.q
        nobody: _Point | None = None
        waiting = [(np.zeros(q, dtype=bool), np.ones(q, dtype=bool), np.zeros(q), nobody)]
        while waiting:
            if len(self.listed) > self.most[0] or len(self.nodes) > self.most[1]:
                return False
            inside, free, start, point = waiting.pop()
            left, count = self.size - int(inside.sum()), int(free.sum())
            if point is not None and self._dual(point, inside, free, left) >= self.bar:
                self._close(point)
                continue
            if left in (0, count):
                self._single(inside if left == 0 else inside | free, free if left == 0 else None)
                continue
            b, g, made = self._relax(inside, free, left, start)
            if made is not None:
                self._close(made)
                continue
            j = self._branch(b, g, free, left)
            self.nodes.append(j)
            rest, more = free.copy(), inside.copy()
            rest[j], more[j] = False, True
            without = b.copy()
            without[j] = 0.0
            here = self._rounded(b, BITS[3])
            waiting += [(inside, rest, without, here), (more, rest, b, here)]
        return True

    def _single(self, columns: BoolArray, free: BoolArray | None) -> None:
        """Close a node of one support: by its ridge fit, or by listing it. Free columns that must stay out go first."""
        support = tuple(np.flatnonzero(columns).tolist())
        at = list(support)
        p = self.problem
        value = p.yy - float(p.c[at] @ np.linalg.solve(p.M[np.ix_(at, at)], p.c[at]))
        if value < self.bar:
            self.listed.append(support)
            self.nodes.append(RIDGE)
            return
        if free is not None and free.any():  # the ridge fit of a leaf takes the free columns too
            b = np.zeros(p.q)
            b[at] = np.linalg.solve(p.M[np.ix_(at, at)], p.c[at]) * self.root[at]
            made = self._fitting(b, columns, np.zeros_like(columns), 0)
            if made is not None:
                self._close(made)
                return
            self.listed.append(support)
        self.nodes.append(RIDGE)

    def _relax(
        self, inside: BoolArray, free: BoolArray, left: int, start: FloatArray
    ) -> tuple[FloatArray, FloatArray, _Point | None]:
        q = len(free)
        node = Node(np.flatnonzero(inside), int(inside.sum()), np.flatnonzero(free), int(free.sum()), left)
        b, g, best_b, best_g = start.copy(), np.zeros(q), np.zeros(q), np.zeros(q)
        dual, _, _ = relax(self.form, node, Stop(self.bar + self.reach, NEAR, STEPS), b, g, best_b, best_g)
        return best_b, best_g, self._fitting(best_b, inside, free, left) if dual >= self.bar else None

    def _rounded(self, b: FloatArray, bits: int) -> _Point:
        scaled = b / self.step
        top = float(np.abs(scaled).max(initial=0.0))
        exponent = int(np.frexp(top)[1]) - bits if top > 0.0 else 0
        whole = np.rint(np.ldexp(scaled, -exponent))
        rounded = np.ldexp(whole, exponent) * self.step
        used = np.flatnonzero(whole)
        product = rounded[used] @ self.form.G[used]
        return _Point(exponent, whole, (self.form.c - product) ** 2, self.form.yy - float(rounded @ product))

    def _fitting(self, b: FloatArray, inside: BoolArray, free: BoolArray, left: int) -> _Point | None:
        """Round a point to as few bits as close the node; None where none do."""
        for bits in BITS:
            point = self._rounded(b, bits)
            if self._dual(point, inside, free, left) >= self.bar:
                return point
        return None

    def _dual(self, point: _Point, inside: BoolArray, free: BoolArray, left: int) -> float:
        others = point.squares[free]
        if 0 < left < len(others):
            others = np.partition(others, len(others) - left)[len(others) - left :]
        return point.base - float(point.squares[inside].sum()) - (float(others.sum()) if left else 0.0)

    def _close(self, point: _Point) -> None:
        if point.number < 0:
            point.number = len(self.points)
            used = np.flatnonzero(point.whole)
            self.points.append((point.exponent, used.tolist(), [int(v) for v in point.whole[used]]))
        self.nodes.append(-2 - point.number)

    def _branch(self, b: FloatArray, g: FloatArray, free: BoolArray, left: int) -> int:
        """Return the free column whose relaxed indicator, `b / g`, is nearest to 3/4 (1/2 measured worse)."""
        columns = np.flatnonzero(free)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(g[columns] != 0.0, np.clip(np.abs(b[columns] / g[columns]), 0.0, 1.0), 0.0)
        distance = np.minimum(z, 3.0 * (1.0 - z))
        if distance.max() > 1e-6:
            return int(columns[np.argmax(distance)])
        return int(columns[np.argmax(g[columns] ** 2)])

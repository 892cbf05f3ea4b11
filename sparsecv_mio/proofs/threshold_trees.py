"""Branch-and-bound trees that prove lower bounds (thresholds) on training objectives, in the units of the data.

A node (I, F) of a tree includes the columns I and may choose from the columns F. With few columns, ridge fits prove the
threshold at a leaf, as in the path tree. With many columns, the objectives of ridge fits are below the threshold. Then
a point of the perspective relaxation (theory section 1), rounded to few bits, has a dual value that proves the
threshold at a node. If the point of the parent node also proves the threshold at the node, no new point is computed.
Columns are scaled so that the penalty is 1. If columns form nearly collinear groups, the perspective terms use a
block-diagonal matrix B instead of the penalty, such that `M - B` is positive semidefinite; M is the Gram matrix plus
the penalty (docs/theory/bounds.md, section 9). The proof contains B.

A term is a column, or a group of columns such as a factor; `ChosenTerms` states which terms a support may contain. If
terms are groups, the objective of the ridge fit on all terms of a leaf is compared with the threshold. If the objective
of this fit is at least the threshold, so is that of every support at the leaf. Otherwise each term that the leaf may
choose is removed in turn, and the objectives of the fits without one term give the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.standard import ForcedColumns, StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.kernels import block_relaxation
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Accuracy, Form, Node
from sparsecv_mio.kernels.path_tree import LISTED, new_levels, prove
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.thresholds import PATH_TREE_COLUMNS
from sparsecv_mio.trees.blocks import BlockPart, centred_part, gather_blocks, has_correlated_columns
from sparsecv_mio.trees.normal_form import ROOT_ACCURACY
from sparsecv_mio.units import ACCURATE_RTOL, TINY

FEWEST_COLUMNS = 12  # minimum number of columns for the perspective relaxation and for blocks
BITS = (6, 9, 12, 16, 22, 30, 50)  # bits of the largest entry of a point, tried in turn
PROOF_STEPS = 200  # maximum number of steps of a relaxation
BEYOND_BAR = 1e-4  # share of y'y minus the cutoff by which a relaxation exceeds the cutoff, so that few bits suffice
NO_POINT = -1  # number of a leaf closed by its own fit, or whose supports are listed

Support = tuple[int, ...]


@dataclass(eq=False)
class Point:
    """A vector b as integers times a power of two, and its bound: `base` minus the costs of the columns of a support.

    `number` is that of the point in the proof, -1 if it is not in the proof yet.
    """

    exponent: int
    whole: FloatArray
    base: float
    costs: FloatArray
    number: int = -1


def bound_by_costs(base: float, costs: FloatArray, inside: BoolArray, free: BoolArray, room: int) -> float:
    """Return the bound of a node in which `room` of the free columns may be chosen: `base` minus the largest costs."""
    others = costs[free]
    if 0 < room < len(others):
        others = np.partition(others, len(others) - room)[len(others) - room :]
    return base - float(costs[inside].sum()) - (float(others.sum()) if room else 0.0)


PROVED_BLOCK = 4  # maximum number s of columns of a block: a point costs the checker 2^s vectors for each block
ENTRY_BITS = 40  # bits of the largest entry of W
LEFT = 1e-4  # share of W that is given up, so that the checker's factorisation succeeds


@dataclass(frozen=True, eq=False)
class StatedBlocks:
    """A block-diagonal part of M in the form of a proof and in the form that kernels take.

    Attributes
    ----------
    part : BlockPart
        Part in the coordinates of a `PerspectiveProof`.
    said : dict
        Blocks, exponent and entries in the proof.
    """

    part: BlockPart
    said: dict[str, Any]

    @classmethod
    def from_matrix(cls, M: FloatArray, step: FloatArray, square: float) -> StatedBlocks | None:
        """Return blocks of M; None if they would gain little, or M is nearly singular.

        Parameters
        ----------
        M : (q, q) array
            Matrix.
        step : (q,) array
            Value of an integer 1 of a point.
        square : float
            Square of the unit of objectives in units of the file.
        """
        if not FEWEST_COLUMNS <= len(M) <= PATH_TREE_COLUMNS or not has_correlated_columns(M):
            return None
        member = gather_blocks(M, PROVED_BLOCK)
        split = centred_part(M, member)
        if split is None:
            return None
        some = [row[row >= 0] for row in member]
        stated = [
            W[: len(at), : len(at)] * (1.0 - LEFT) * np.outer(step[at], step[at])
            for at, W in zip(some, split, strict=True)
        ]
        top = max(float(np.abs(W).max()) for W in stated) * square
        exponent = int(np.frexp(top)[1]) - ENTRY_BITS
        whole = [np.rint(np.ldexp(W * square, -exponent)) for W in stated]
        W = np.zeros_like(M)
        for at, entries in zip(some, whole, strict=True):
            W[np.ix_(at, at)] = np.ldexp(entries, exponent) / square / np.outer(step[at], step[at])
        root = np.sqrt(np.diag(M))
        try:
            np.linalg.cholesky((M - W) / root / root[:, None] - 0.1 * LEFT * W / root / root[:, None])
        except np.linalg.LinAlgError:
            return None
        entries = [[int(v) for v in block[np.tril_indices(len(block))]] for block in whole]
        return cls(
            BlockPart(M, member, W), {"blocks": [at.tolist() for at in some], "exponent": exponent, "entries": entries}
        )


@dataclass(eq=False)
class PointTree(ABC):
    """A tree of one size with bounds from points of the relaxation; a node uses the point of its parent if it suffices.

    Parameters
    ----------
    size : int
        Size.
    bar : float
        Value that leaves must reach.
    most : (int, int)
        Maximum numbers of listed supports and of nodes.

    Attributes
    ----------
    nodes, points, listed : lists
        Parts of the tree, as in `ProofTree`.
    """

    size: int
    bar: float
    most: tuple[int, int]
    nodes: list[int] = field(default_factory=list, init=False)
    points: list[tuple[int, list[int], list[int]]] = field(default_factory=list, init=False)
    listed: list[Support] = field(default_factory=list, init=False)

    bits: ClassVar[Sequence[int]] = BITS
    bits_of_children: ClassVar[int]  # bits of the point of a node that is tried at both children

    def _bound(self, point: Point, inside: BoolArray, free: BoolArray, room: int) -> float:
        """Return the bound of a point at a node."""
        return bound_by_costs(point.base, point.costs, inside, free, room)

    @abstractmethod
    def _round_point(self, b: FloatArray, bits: int) -> Point:
        """Return a point as integers with a given number of bits times a power of two."""

    @abstractmethod
    def _single(self, columns: BoolArray, free: BoolArray) -> None:
        """Close a node with one support by its fit or by listing it; free columns that stay out are split off first."""

    @abstractmethod
    def _relax(
        self, inside: BoolArray, free: BoolArray, room: int, start: FloatArray
    ) -> tuple[FloatArray, FloatArray, bool]:
        """Return the point of a node's best bound, its g for branching, and True if the bound reaches the cutoff."""

    def _branch(self, b: FloatArray, g: FloatArray, free: BoolArray) -> int:
        """Return the free column whose relaxed indicator, `b / g`, is nearest to 3/4 (1/2 took more nodes)."""
        columns = np.flatnonzero(free)
        size = np.abs(g[columns])
        z = np.clip(np.abs(b[columns]) / np.maximum(size, TINY), 0.0, 1.0)
        distance = np.minimum(z, 3.0 * (1.0 - z))
        return int(columns[np.argmax(distance if distance.max() > 1e-6 else size)])

    def solve(self, q: int) -> bool:
        """Make the tree over q columns; return False if it would be too large."""
        nobody: Point | None = None
        waiting = [(np.zeros(q, dtype=bool), np.ones(q, dtype=bool), np.zeros(q), nobody)]
        while waiting:
            if len(self.listed) > self.most[0] or len(self.nodes) > self.most[1]:
                return False
            inside, free, start, point = waiting.pop()
            room, count = self.size - int(inside.sum()), int(free.sum())
            if point is not None and self._bound(point, inside, free, room) >= self.bar:
                self._close(point)
                continue
            if room in (0, count):
                out = np.zeros_like(free)
                self._single(inside if room == 0 else inside | free, free if room == 0 else out)
                continue
            b, g, reached = self._relax(inside, free, room, start)
            made = self._fitting(b, inside, free, room) if reached else None
            if made is not None:
                self._close(made)
                continue
            j = self._branch(b, g, free)
            self.nodes.append(j)
            still_free, more = free.copy(), inside.copy()
            still_free[j], more[j] = False, True
            without, here = b.copy(), self._round_point(b, self.bits_of_children)
            without[j] = 0.0
            waiting += [(inside, still_free, without, here), (more, still_free, b, here)]
        return True

    def _fitting(self, b: FloatArray, inside: BoolArray, free: BoolArray, room: int) -> Point | None:
        """Return a point rounded to as few bits as close the node; None if no number of bits does."""
        rounded = (self._round_point(b, bits) for bits in self.bits)
        return next((point for point in rounded if self._bound(point, inside, free, room) >= self.bar), None)

    def _close(self, point: Point) -> None:
        if point.number < 0:
            point.number = len(self.points)
            used = np.flatnonzero(point.whole)
            self.points.append((point.exponent, used.tolist(), [int(v) for v in point.whole[used]]))
        self.nodes.append(-2 - point.number)


def round_to_bits(b: FloatArray, unit: FloatArray, bits: int) -> tuple[int, FloatArray]:
    """Return an exponent and integers with a given number of bits: `b` is about `2^exponent integers unit`."""
    scaled = b / unit
    top = float(np.abs(scaled).max(initial=0.0))
    exponent = int(np.frexp(top)[1]) - bits if top > 0.0 else 0
    return exponent, np.rint(np.ldexp(scaled, -exponent))


@dataclass(eq=False)
class PerspectiveProof(PointTree):
    """The tree of one size, `0 < size < q`; cutoffs are in the problem's units.

    Parameters
    ----------
    problem : SparseProblem
        Problem at one gamma.
    unit_of : (q,) array
        Units of points, which are integers times `2^e unit_of` in the problem's coordinates.
    square : float
        Square of the unit of objectives in units of the file.
    """

    bits_of_children = BITS[3]

    problem: SparseProblem
    unit_of: FloatArray
    square: float = 1.0

    def __post_init__(self) -> None:
        p = self.problem
        self.root = np.sqrt(p.penalty)
        G = p.Q / self.root / self.root[:, None]
        self.form = Form(np.ascontiguousarray(G), p.c / self.root, p.yy, float(np.trace(G)) + 1e-12)
        self.step = self.unit_of * self.root  # value of an integer 1 in the coordinates of the form
        self.reach = BEYOND_BAR * max(p.yy - self.bar, 0.0)
        M = G + np.eye(p.q)
        self.stated = StatedBlocks.from_matrix(M, self.step, self.square)
        self.tables = None if self.stated is None else self.stated.part.tables(np.arange(p.q), p.yy, self.size)
        self.curved = self.form.G if self.tables is None else self.tables.G
        if self.tables is not None:
            self.work = block_relaxation.new_block_work(p.q, self.size, self.tables)

    @property
    def block_statement(self) -> dict[str, Any] | None:
        """Statement of W in the proof; None if W is the penalty."""
        return None if self.stated is None or self.tables is None else self.stated.said

    def _single(self, columns: BoolArray, free: BoolArray) -> None:
        support = tuple(np.flatnonzero(columns).tolist())
        at = list(support)
        p = self.problem
        value = p.yy - float(p.c[at] @ np.linalg.solve(p.M[np.ix_(at, at)], p.c[at]))
        if value < self.bar:
            self.listed.append(support)
            self.nodes.append(NO_POINT)
            return
        if free.any():  # the ridge fit of a leaf takes the free columns too
            b = np.zeros(p.q)
            b[at] = np.linalg.solve(p.M[np.ix_(at, at)], p.c[at]) * self.root[at]
            made = self._fitting(b, columns, np.zeros_like(columns), 0)
            if made is not None:
                self._close(made)
                return
            self.listed.append(support)
        self.nodes.append(NO_POINT)

    def _relax(
        self, inside: BoolArray, free: BoolArray, room: int, start: FloatArray
    ) -> tuple[FloatArray, FloatArray, bool]:
        q = len(free)
        if self.tables is not None:
            b, z, ends = np.empty(q), np.empty(q), (self.bar + self.reach, self.bar)
            dual, _, _ = block_relaxation.bound_node(
                self.form, self.tables, _status(inside, free), ends, _no_mixture(self.tables), self.work, b, z
            )
            return b, z, bool(dual >= self.bar)
        node = Node(np.flatnonzero(inside), int(inside.sum()), np.flatnonzero(free), int(free.sum()), room)
        b, g, best_b, best_g = start.copy(), np.zeros(q), np.zeros(q), np.zeros(q)
        dual, _, _ = relax(
            self.form, node, Accuracy(self.bar + self.reach, ROOT_ACCURACY, PROOF_STEPS), b, g, best_b, best_g
        )
        return best_b, best_g, bool(dual >= self.bar)

    def _round_point(self, b: FloatArray, bits: int) -> Point:
        exponent, whole = round_to_bits(b, self.step, bits)
        rounded = np.ldexp(whole, exponent) * self.step
        used = np.flatnonzero(whole)
        product = rounded[used] @ self.curved[used]
        slopes = self.form.c - product
        costs = slopes**2 if self.tables is None else slopes  # blocks determine the costs of supports from slopes
        return Point(exponent, whole, self.form.yy - float(rounded @ product), costs)

    def _bound(self, point: Point, inside: BoolArray, free: BoolArray, room: int) -> float:
        if self.tables is None:
            return super()._bound(point, inside, free, room)
        block_relaxation.fitting(_status(inside, free), self.tables, self.work, _no_mixture(self.tables))
        return point.base - float(block_relaxation.largest_sum(point.costs, self.tables, self.size, self.work))

    def _branch(self, b: FloatArray, g: FloatArray, free: BoolArray) -> int:
        if self.tables is None:
            return super()._branch(b, g, free)
        columns = np.flatnonzero(free)
        weight = g[columns] * (1.0 - g[columns]) * b[columns] ** 2  # g is the share of supports with the column
        return int(columns[np.argmax(weight if weight.max() > 0.0 else np.abs(b[columns]))])


def _status(inside: BoolArray, free: BoolArray) -> NDArray[np.int8]:
    return np.where(inside, INSIDE, np.where(free, FREE, DROPPED)).astype(np.int8)


def _no_mixture(tables: block_relaxation.Blocks) -> block_relaxation.Mixture:
    most = block_relaxation.MOST_SUPPORTS
    return block_relaxation.Mixture(np.zeros((most, len(tables.member)), dtype=np.int64), np.zeros(most))


TREE_MOST = 1 << 20, 1 << 24  # maximum numbers of supports and nodes of one tree
RIDGE_FIRST_COLUMNS, MOST_PATH_COLUMNS = 40, 150  # maximum columns to try ridge fits first, and to try them at all
PROVED_PATH_NODES = 1 << 17  # nodes of a tree of ridge fits before the perspective relaxation is tried
POINTS = 512  # number of nodes that every tree of points may have
DEPENDENT = "--proof: columns are linearly dependent up to rounding at this gamma; give a larger gamma, or drop columns"
TOO_LARGE = "--proof: the trees of the proof are too large to write; request fewer sizes (--tau) or a larger gamma"


class TooLarge(BadInput):
    """A tree exceeds its limit on nodes or listed supports."""


@dataclass(frozen=True, eq=False)
class Units:
    """Units of the file in the coordinates of the problems: `square` of the target's unit, and those of points.

    Points of a proof are integers times `2^(e + exponent_j)` in units of the file, and `2^e point_j` in the problems'.
    """

    square: float
    exponent: IntArray
    point: FloatArray

    @classmethod
    def from_data(cls, data: StandardData) -> Units:
        """Return units in which the entries of points have similar sizes."""
        exponent = np.rint(np.log2(data.y_unit / data.divisor)).astype(np.int64)
        return cls(data.loss_unit, exponent, np.ldexp(data.divisor / data.y_unit, exponent))


@dataclass(frozen=True)
class ProofTree:
    """Nodes in preorder, and the listed supports by size, columns ascending; thresholds in units of the file."""

    nodes: list[int]
    listed: Mapping[int, list[tuple[int, ...]]]
    above: Mapping[int, float]
    points: list[tuple[int, list[int], list[int]]]
    part: dict[str, Any] | None = None

    def line(self, rows: int, gamma: int) -> dict[str, Any]:
        """Return the tree as a line of the proof."""
        first, last = min(self.above), max(self.above)
        supports = [list(support) for tau in sorted(self.listed) for support in self.listed[tau]]
        return {
            "kind": "tree", "rows": rows, "gamma": gamma, "taus": [first, last],
            "above": [self.above[tau] for tau in range(first, last + 1)], "listed": supports, "nodes": self.nodes,
            "points": self.points, **({} if self.part is None else {"part": self.part}),
        }  # fmt: skip

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> ProofTree:
        """Return the tree of a line made by `line`."""
        listed: dict[int, list[tuple[int, ...]]] = {}
        for support in line["listed"]:
            listed.setdefault(len(support), []).append(tuple(map(int, support)))
        sizes = range(int(line["taus"][0]), int(line["taus"][1]) + 1)
        return cls(
            line["nodes"], listed, dict(zip(sizes, line["above"], strict=True)), line["points"], line.get("part")
        )


def rounding(problem: SparseProblem, divisor: FloatArray) -> float:
    """Return an estimate of the amount that the checker's floats may lose of an objective, in the problem's units.

    Parameters
    ----------
    problem : SparseProblem
        Problem at one gamma.
    divisor : (q,) array
        Divisors of the columns of `StandardData`.
    """
    u = 2.0**-53
    norms = np.sqrt(np.maximum(problem.squares, 1e-300))
    size = max(float(np.sqrt(problem.size)), 1e-150)
    beta = np.abs(np.linalg.solve(problem.M, problem.c)) * norms / size
    share = float(np.frexp(size)[0]) / 2.0
    total = float(np.sum(beta * share / (np.frexp(norms * divisor)[0] / 2.0)))
    off = u * (8.0 * (problem.n + 10) + 2.0 * problem.q + 40.0) * (1.0 + total)
    inverse = (np.abs(np.linalg.inv(problem.M)) * norms * norms[:, None]).max(axis=1)
    with np.errstate(all="ignore"):
        by_penalty = norms**2 / problem.penalty
    largest = 16.0 * float(np.minimum(by_penalty, inverse).max())  # square of the norm of a unit vector
    return (4.0 * off * (1.0 + total) + problem.q * off * off * largest) * problem.size / share**2


def leaf_cutoffs(above: Mapping[int, float], units: Units, margin: float) -> dict[int, float]:
    """Return the values that leaves must reach by size, in the problem's units: see `prove_thresholds`."""
    return {tau: value / units.square * (1.0 + ACCURATE_RTOL) + margin for tau, value in above.items()}


def prove_thresholds(
    problem: SparseProblem, above: Mapping[int, float], units: Units, margin: float, most: tuple[int, int] = TREE_MOST
) -> Iterator[ProofTree]:
    """Yield trees that prove a threshold for every size; every size is in the range of one of them.

    Parameters
    ----------
    problem : SparseProblem
        Problem at one gamma.
    above : mapping of size to threshold
        Thresholds in units of the file.
    units : Units
        Units of the target and of points.
    margin : float
        Amount by which leaves must exceed thresholds, in the problem's units.
    most : tuple of int
        Approximate maximum numbers of listed supports and of nodes of a tree.

    Raises
    ------
    TooLarge
        If a tree would be larger.
    """
    bars = leaf_cutoffs(above, units, margin)
    if problem.q <= RIDGE_FIRST_COLUMNS:
        try:
            yield _path_tree(problem, above, bars, (most[0], min(most[1], PROVED_PATH_NODES)))
            return
        except TooLarge:
            if most[1] <= PROVED_PATH_NODES:
                raise
        if problem.q < FEWEST_COLUMNS:
            yield _path_tree(problem, above, bars, most)
            return
    for tau in sorted(above):
        yield _tree_of_size(problem, above, bars, tau, units, most)


def _tree_of_size(
    problem: SparseProblem, above: Mapping[int, float], bars: Mapping[int, float], tau: int, units: Units,
    most: tuple[int, int],
) -> ProofTree:  # fmt: skip
    """Return a tree of one size: by the perspective relaxation, or by ridge fits if that has too many nodes."""
    threshold = {tau: above[tau]}
    if tau in (0, problem.q):
        return ProofTree([-1], {tau: [tuple(range(tau))]}, threshold, [])
    limit = (most[0], max(most[1] >> 8, POINTS))
    tree = PerspectiveProof(tau, bars[tau], limit, problem, units.point, units.square)
    if tree.solve(problem.q):
        return ProofTree(tree.nodes, {tau: tree.listed}, threshold, tree.points, tree.block_statement)
    if problem.q > MOST_PATH_COLUMNS or most[1] <= PROVED_PATH_NODES:
        raise TooLarge(TOO_LARGE)
    return _path_tree(problem, threshold, bars, most)


def _path_tree(
    problem: SparseProblem, above: Mapping[int, float], wanted: Mapping[int, float], most: tuple[int, int]
) -> ProofTree:
    """Return one tree for all sizes, by ridge fits."""
    q, sizes = problem.q, np.array([min(above), max(above)])
    bars = np.full(q + 1, -np.inf)
    for tau in above:
        bars[tau] = wanted[tau]
    V = np.linalg.inv(problem.M)
    V = 0.5 * (V + V.T)
    beta = np.linalg.solve(problem.M, problem.c)  # more accurate than V c, and so is f
    value = float(problem.yy - problem.c @ beta)
    nodes, supports = np.empty(1 << 14, dtype=np.int64), np.zeros((min(1 << 10, most[0]), q), dtype=bool)
    while True:
        try:
            with np.errstate(all="ignore"):  # a diagonal of V may be 0
                root = new_levels(V, beta, value, int(sizes[0]), int(sizes[1]))
            ended, used, count = prove(root, problem.penalty, sizes, bars, nodes, supports)
        except ZeroDivisionError:
            raise BadInput(DEPENDENT) from None
        if not ended:
            break
        if len(supports) >= most[0] or len(nodes) >= most[1]:
            raise TooLarge(TOO_LARGE)
        if ended == LISTED:
            supports = np.zeros((8 * len(supports), q), dtype=bool)
        else:
            nodes = np.empty(8 * len(nodes), dtype=np.int64)
    listed: dict[int, list[tuple[int, ...]]] = {}
    for row in supports[:count]:
        support = tuple(np.flatnonzero(row).tolist())
        listed.setdefault(len(support), []).append(support)
    # sizes in between that are not requested get a threshold that every f exceeds, so they add no claim
    every = {tau: above.get(tau, -1e-3 * max(above.values())) for tau in range(int(sizes[0]), int(sizes[1]) + 1)}
    return ProofTree(nodes[:used].tolist(), listed, every, [])


MOST_TERM_NODES = 1 << 15  # maximum number of nodes of a tree: about a minute


@dataclass(frozen=True, eq=False)
class ChosenTerms:
    """The terms of a data set; supports of a proof are ascending lists of terms.

    Attributes
    ----------
    choice : ForcedColumns
        Split of the columns into adjustment columns and those that are chosen from.
    terms : tuple of tuples of int
        Columns of each term, as positions among those that are chosen from; ordered by the first one.
    """

    choice: ForcedColumns
    terms: tuple[Support, ...]

    @classmethod
    def from_data(cls, data: StandardData) -> ChosenTerms:
        """Return the terms that the restrictions of the data define."""
        choice = data.choice
        terms = [term.columns for term in data.terms if term.columns and not term.always]
        place = {column: j for j, column in enumerate(choice.others.tolist())}
        chosen = [tuple(place[column] for column in columns) for columns in terms]
        return cls(choice, tuple(sorted(chosen) if data.terms else ((j,) for j in range(data.q))))

    @property
    def q(self) -> int:
        """Number of terms."""
        return len(self.terms)

    @property
    def has_single_column_terms(self) -> bool:
        """True if every term is one column."""
        return self.q == len(self.choice.others)

    @cached_property
    def _term_by_column(self) -> dict[int, int]:
        return {j: term for term, columns in enumerate(self.terms) for j in columns}

    def column_terms(self, columns: Iterable[int]) -> Support:
        """Return the terms of columns, given as positions among those that are chosen from."""
        return tuple(sorted({self._term_by_column[j] for j in columns}))

    def support_terms(self, support: IntArray) -> Support:
        """Return the terms of a support of the search."""
        return self.column_terms(self.choice.inside(support).tolist())

    def columns(self, supports: Sequence[Support]) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield, for each number a of columns, the indices (L,) of the supports with it and their columns (L, a)."""
        columns = [sorted(j for term in support for j in self.terms[term]) for support in supports]
        widths = np.array([len(some) for some in columns])
        for width in np.unique(widths).tolist():
            which = np.flatnonzero(widths == width)
            yield which, np.array([columns[i] for i in which], dtype=np.int64).reshape(len(which), width)


def prove_term_thresholds(
    problem: SparseProblem, chosen: ChosenTerms, above: Mapping[int, float], units: Units, margin: float,
    most: tuple[int, int] = TREE_MOST,
) -> Iterator[ProofTree]:  # fmt: skip
    """Yield trees over terms that prove a threshold for every size; see `prove_thresholds`.

    Parameters
    ----------
    problem : SparseProblem
        Problem in the columns that are chosen from.
    chosen : ChosenTerms
        Terms.
    above : mapping of size to threshold
        Thresholds in units of the file.
    units : Units
        Units of the target and of points.
    margin : float
        Amount by which leaves must exceed thresholds, in the problem's units.
    most : (int, int)
        Maximum numbers of listed supports and of nodes of a tree.
    """
    if chosen.has_single_column_terms:
        yield from prove_thresholds(problem, above, units, margin, most)
    else:
        yield prove_terms(problem, chosen, above, leaf_cutoffs(above, units, margin), most)


def prove_terms(
    problem: SparseProblem, chosen: ChosenTerms, above: Mapping[int, float], bars: Mapping[int, float],
    most: tuple[int, int],
) -> ProofTree:  # fmt: skip
    """Return one tree for all sizes.

    A node includes the terms I and leaves the terms F free; A is their union. A support that drops m terms of A has an
    objective of at least the m-th smallest of the numbers f(A - t), t in F, because it lacks m of these terms t.

    Parameters
    ----------
    problem : SparseProblem
        Problem in the columns that are chosen from, at one gamma.
    chosen : ChosenTerms
        Terms.
    above : mapping of size to threshold
        Thresholds in units of the file.
    bars : mapping of size to float
        Values that leaves must reach, in the problem's units.
    most : (int, int)
        Maximum numbers of listed supports and of nodes.

    Raises
    ------
    TooLarge
        If the tree would be larger.
    """
    first, last, fits = min(above), max(above), _Fits(problem, chosen)
    nodes, listed = list[int](), dict[int, list[Support]]()
    waiting = [(frozenset[int](), frozenset(range(chosen.q)))]
    while waiting:
        if len(nodes) > min(most[1], MOST_TERM_NODES) or sum(map(len, listed.values())) > most[0]:
            raise TooLarge(TOO_LARGE)
        inside, free = waiting.pop()
        every, low, high = inside | free, len(inside), len(inside) + len(free)
        without = {term: fits.value(every - {term}) for term in free}
        bounds = [fits.value(every), *sorted(without.values())]
        sizes = range(max(first, low), min(last, high) + 1)
        open_sizes = {size for size in sizes if size in bars and bounds[high - size] < bars[size]}
        ends = {high: every}
        if low in open_sizes - {high} and fits.value(inside) < bars[low]:
            ends[low] = inside
        if open_sizes <= set(ends):
            for size in sorted(open_sizes):
                listed.setdefault(size, []).append(tuple(sorted(ends[size])))
            nodes.append(NO_POINT)
            continue
        branch = max(free, key=lambda term: (without[term], -term))
        nodes.append(branch)
        waiting += [(inside, free - {branch}), (inside | {branch}, free - {branch})]
    every_above = {tau: above.get(tau, -1e-3 * max(above.values())) for tau in range(first, last + 1)}
    return ProofTree(nodes, listed, every_above, [])


class _Fits:
    """Objectives of sets of terms, each computed once."""

    def __init__(self, problem: SparseProblem, chosen: ChosenTerms) -> None:
        self.problem, self.chosen = problem, chosen
        self.known: dict[frozenset[int], float] = {}

    def value(self, terms: frozenset[int]) -> float:
        """Return the objective of some terms."""
        if terms not in self.known:
            columns, p = [j for term in sorted(terms) for j in self.chosen.terms[term]], self.problem
            b = np.linalg.solve(p.M[np.ix_(columns, columns)], p.c[columns])
            self.known[terms] = float(p.yy - p.c[columns] @ b)
        return self.known[terms]

"""Branch-and-bound for one tau and many columns, by branching on clusters of correlated columns (theory section 4).

If columns are correlated, dropping one of them raises the objective little, because the other columns replace it.
Dropping a whole cluster of correlated columns raises the objective more. A node drops some columns and requires at
least one column of each of several disjoint clusters. A column that is in every support of the node counts as a cluster
of one column. A node has two children for a further cluster: one drops all columns of the cluster, and one requires the
cluster. As soon as tau clusters are required, all other columns are dropped. A node with few remaining columns is
solved as a separate problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import cluster_relaxation
from sparsecv_mio.kernels.dense import support_value
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, OPEN_NODE_GAP_RTOL, Accuracy
from sparsecv_mio.trees.normal_form import OUT, ClusterRelaxation, NodeAnswer, Root
from sparsecv_mio.trees.subsets import ROUND_GROWTH, BestSubsets, OpenNodes

CLUSTER_STEPS = 2000  # maximum number of steps of one round of a relaxation
NODE_SWEEPS = 3  # maximum number of rounds of relaxation and screening at a node
CLUSTER_CORRELATION = 0.4  # minimum correlation of a column with the centre of its cluster
LEAF, LEAF_OF_CLUSTERS = 60, 250  # maximum columns of a leaf, before and after tau clusters are required
LEAF_EFFORT = 1 << 14  # nodes of the first attempt at a leaf

Leaf = Callable[[IntArray, int], BestSubsets]
Candidates = list[tuple[BoolArray, float]]


@dataclass(frozen=True, eq=False)
class ClusterNode:
    """An open node: its bound, its required clusters, a start for its relaxation, and the columns to branch on.

    `effort` is the number of nodes with which its columns are solved as a separate problem; 0 if the node is branched
    on.
    """

    bound: float
    cluster: IntArray
    asked: int
    point: NDArray[np.float32]
    branch: IntArray
    effort: int = 0


class ClusterTree:
    """Best-first branch-and-bound for one size over clusters.

    Parameters
    ----------
    relaxation : ClusterRelaxation
        Relaxation that bounds the nodes.
    leaf : callable
        Function that solves the size on some columns with a given effort.
    held : (float, (m,) bool array)
        Value and columns of the incumbent.
    root : Root
        Solved relaxation of all columns.
    """

    def __init__(self, relaxation: ClusterRelaxation, leaf: Leaf, held: tuple[float, BoolArray], root: Root) -> None:
        self.relaxation, self.leaf = relaxation, leaf
        self.form, self.size = relaxation.form, relaxation.size
        self.upper, self.mask = held[0], held[1].copy()
        self.length = np.sqrt(np.diag(self.form.G) + 1.0)
        self.kept: dict[bytes, tuple[BoolArray, float]] = {}
        self.open = OpenNodes[ClusterNode]()
        self.nodes, self.reused, self.has_overflow, self.finished = 0, 0, False, False
        everywhere = np.full(self.form.m, cluster_relaxation.NO_CLUSTER, dtype=np.int64)
        first = ClusterNode(root.dual, everywhere, 0, root.b.astype(np.float32), everywhere[:0])
        self.open.push(first.bound, first)

    @property
    def bar(self) -> float:
        """Cutoff up to which supports are kept."""
        return self.form.raise_cutoff(self.upper)

    @property
    def lower(self) -> float:
        """Smallest bound of an open node."""
        return min(self.upper, self.open.smallest_bound)

    def improve(self, upper: float, support: BoolArray) -> None:
        """Replace the incumbent if the given support is better."""
        if upper < self.upper:
            self.upper, self.mask = upper, support.copy()

    def incumbent(self) -> BoolArray:
        """Return the mask of the incumbent in the columns of the normal form."""
        return self.mask

    def candidates(self) -> Candidates:
        """Return every support found within the cutoff, with its value."""
        return [(mask, value) for mask, value in self.kept.values() if value <= self.bar]

    def advance(self, nodes: int, is_expired: Callable[[], bool]) -> bool:
        """Process a number of nodes; return True when the tree is finished."""
        goal = self.nodes + nodes

        def expand(_: float, node: ClusterNode) -> list[tuple[float, ClusterNode]]:
            children = self._children(node, is_expired)
            return [(child.bound, child) for child in children if child is not None and child.bound < self.bar]

        self.finished = self.open.search(
            expand, lambda: self.bar, lambda: self.nodes < goal and not self.has_overflow and not is_expired()
        )
        if self.finished:
            self.open.clear()
        return self.finished

    def _children(self, node: ClusterNode, is_expired: Callable[[], bool]) -> list[ClusterNode | None]:
        if node.effort:
            return [self._solve_leaf(node)]
        if not len(node.branch):
            return [self._open(node, node.cluster.copy(), node.asked, is_expired)]
        out, asked_for = node.cluster.copy(), node.cluster.copy()
        out[node.branch] = OUT
        number = int(node.cluster[node.branch[0]])
        if number == cluster_relaxation.NO_CLUSTER:
            asked_for[node.branch] = node.asked
            return [
                self._open(node, out, node.asked, is_expired),
                self._open(node, asked_for, node.asked + 1, is_expired),
            ]
        asked_for[node.cluster == number] = cluster_relaxation.NO_CLUSTER
        asked_for[node.branch] = number
        return [self._open(node, mask, node.asked, is_expired) for mask in (out, asked_for)]

    def _open(
        self, parent: ClusterNode, cluster: IntArray, n_required: int, is_expired: Callable[[], bool]
    ) -> ClusterNode | None:
        """Bound a node and fix columns; return None if the node is closed."""
        self.nodes += 1
        bound, point = parent.bound, np.asarray(parent.point, dtype=float)
        relaxed = None
        for _ in range(NODE_SWEEPS):
            columns_left = self._drop_impossible_columns(cluster, n_required)
            if columns_left < self.size:
                return None
            if columns_left == self.size:
                break
            relaxed = self.relaxation.solve(
                cluster, n_required, point, Accuracy(self.bar, OPEN_NODE_GAP_RTOL, CLUSTER_STEPS), is_expired
            )
            bound, point = max(bound, relaxed.dual), relaxed.b
            if bound >= self.bar:
                return None
            self._round(cluster, n_required, relaxed.h)
            n_required, fixed = self._screen(cluster, n_required, relaxed)
            if 10 * fixed < columns_left or is_expired():
                break
        columns_left = self._drop_impossible_columns(cluster, n_required)
        if columns_left < self.size:
            return None
        few = max(LEAF_OF_CLUSTERS if n_required == self.size else LEAF, self.size)
        if columns_left <= few or relaxed is None:
            return ClusterNode(bound, cluster, n_required, point.astype(np.float32), parent.branch[:0], LEAF_EFFORT)
        branch = self._columns_to_branch(cluster, n_required, relaxed)
        return ClusterNode(bound, cluster, n_required, point.astype(np.float32), branch)

    def _drop_impossible_columns(self, cluster: IntArray, n_required: int) -> int:
        """Drop columns that can no longer be chosen; return the number of columns left, 0 if no support is left."""
        if (
            n_required > self.size
            or np.count_nonzero(np.bincount(cluster[cluster >= 0], minlength=n_required)) < n_required
        ):
            return 0
        if n_required == self.size:
            cluster[cluster == cluster_relaxation.NO_CLUSTER] = OUT
        return int(np.count_nonzero(cluster != OUT))

    def _screen(self, cluster: IntArray, n_required: int, relaxed: NodeAnswer) -> tuple[int, int]:
        """Fix columns by the dual point of a node; return the numbers of required clusters and of fixed columns."""
        active = np.flatnonzero(cluster != OUT)
        status = np.full(len(active), FREE, dtype=np.int8)
        choice = self.relaxation.choice(active, cluster, n_required)
        fixed = cluster_relaxation.screen_choice(
            np.ascontiguousarray(relaxed.h[active]), choice, self.bar - relaxed.dual, status
        )
        cluster[active[status == DROPPED]] = OUT
        for j in active[status == INSIDE].tolist():
            number = int(cluster[j])
            if number == cluster_relaxation.NO_CLUSTER:
                cluster[j] = n_required
                n_required += 1
            else:
                cluster[cluster == number] = cluster_relaxation.NO_CLUSTER
                cluster[j] = number
        return n_required, fixed

    def _round(self, cluster: IntArray, n_required: int, h: FloatArray) -> None:
        """Try the support with the largest scores."""
        active = np.flatnonzero(cluster != OUT)
        value = h[active]
        chosen = cluster_relaxation.best_choice(
            np.ascontiguousarray(value), self.relaxation.choice(active, cluster, n_required)
        ).first
        fillers = np.setdiff1d(np.argsort(-value, kind="stable")[: self.size], chosen, assume_unique=True)
        fillers = fillers[np.argsort(-value[fillers], kind="stable")][: self.size - n_required]
        support = active[np.concatenate([chosen, fillers])]
        if len(support) < self.size:
            return
        k = self.size
        f = support_value(self.form.G, 1.0, self.form.c, self.form.yy, support, k, np.empty((k, k)), np.empty(k))
        if f < self.upper:
            self._take(support, float(f))

    def _take(self, support: IntArray, value: float) -> BoolArray:
        mask = np.zeros(self.form.m, dtype=np.bool_)
        mask[support] = True
        self.improve(value, mask)
        return mask

    def _columns_to_branch(self, cluster: IntArray, n_required: int, relaxed: NodeAnswer) -> IntArray:
        """Return the free columns correlated with the one of largest weight.

        If tau clusters are required, return a part of the largest cluster.
        """
        free = np.flatnonzero(cluster == cluster_relaxation.NO_CLUSTER)
        if n_required < self.size and len(free):
            return free[self._alike(free, relaxed) >= CLUSTER_CORRELATION]
        sizes = np.bincount(cluster[cluster >= 0], minlength=n_required)
        members = np.flatnonzero(cluster == int(np.argmax(sizes)))
        order = np.argsort(-self._alike(members, relaxed), kind="stable")
        weight = np.cumsum(relaxed.z[members[order]])
        half = int(np.searchsorted(weight, 0.5 * weight[-1])) + 1
        return np.sort(members[order[: min(half, len(members) - 1)]])

    def _alike(self, columns: IntArray, relaxed: NodeAnswer) -> FloatArray:
        """Return the absolute correlation of some columns with the one of largest weight."""
        centre = columns[np.lexsort((relaxed.h[columns], relaxed.z[columns]))[-1]]
        out = np.abs(self.form.G[centre, columns]) / (self.length[centre] * self.length[columns])
        out[columns == centre] = 1.0
        return np.asarray(out)

    def _solve_leaf(self, node: ClusterNode) -> ClusterNode | None:
        """Solve the columns that a node leaves as a separate problem without clusters."""
        columns = np.flatnonzero(node.cluster != OUT)
        result = self.leaf(columns, node.effort)
        cell = result.by_size[self.size]
        self.nodes += result.nodes
        if len(cell.support) == self.size:
            self._take(columns[cell.support], cell.upper)
        for support, value in zip(cell.candidates, cell.values, strict=True):
            mask = self._take(columns[support], value)
            self.kept[mask.tobytes()] = (mask, value)
        if cell.complete:
            return None
        self.has_overflow |= result.finished
        return replace(node, bound=max(node.bound, cell.lower), effort=node.effort * ROUND_GROWTH)

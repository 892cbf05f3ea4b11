"""Lists of all supports with a given number of terms and a small objective: one tree for each number of terms.

A term is a column, or several columns that enter together. The nodes are those of the trees for best subsets
(:mod:`sparsecv_mio.trees.restricted_tree`). The cutoff is fixed, so a support with a small objective does not close
other nodes. Every support at a leaf is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE
from sparsecv_mio.kernels.restricted_node import NodePoint
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.trees.allowed_supports import Family, column_array, make_mask
from sparsecv_mio.trees.listing import MetSupports
from sparsecv_mio.trees.normal_form import NormalForm
from sparsecv_mio.trees.restricted_tree import RestrictedNode, RestrictedTree

TERM_SLICE = 64  # nodes between two deliveries: about ten milliseconds


class TermTree(RestrictedTree):
    """A tree of the supports of exactly tau terms below a cutoff.

    Parameters
    ----------
    form : NormalForm
        Trusted form of all columns of the family.
    family : Family
        Allowed supports.
    constraints : SideConstraints
        Side constraints of the family.
    limit : float
        Cutoff, with an allowance for rounding.
    """

    def __init__(self, form: NormalForm, family: Family, constraints: SideConstraints, limit: float) -> None:
        self.limit, self.met = limit, list[int]()
        super().__init__(form, family, constraints)

    @property
    def bar(self) -> float:
        """Cutoff on the objective."""
        return self.limit

    def take_found_supports(self) -> list[int]:
        """Return the supports found since the last call."""
        met, self.met = self.met, []
        return met

    def _visit(self, lower: float, node: RestrictedNode) -> list[tuple[float, RestrictedNode]]:
        """Bound a node; return its children, none if it is closed or holds one support only."""
        settled: tuple[int, int] | None = (node.inside, node.free)
        point = NodePoint(node.b.copy(), node.u.copy(), np.empty(self.form.m), np.empty(self.form.m))
        while settled is not None and self.family.count(settled[0] | settled[1]) >= self.family.tau:
            inside, free = settled
            bound, value, status = self._bound(inside, free, point)
            bound = max(bound, lower)
            if bound > self.bar:
                return []
            if not free:
                self.met.append(inside)
                return []
            fixed = self.family.settle(
                inside | make_mask(self.form.columns[status == INSIDE].tolist()),
                free & ~make_mask(self.form.columns[status == DROPPED].tolist()),
            )
            if fixed == settled:
                return self._branch(bound, value, (inside, free), point)
            settled = fixed
        return []


class TermsBelow:
    """A source of all supports of terms at or below the cutoffs of their numbers of terms.

    Parameters
    ----------
    form : NormalForm
        Trusted form of all columns of its problem.
    first : (m,) int array
        First column of the term of each column.
    bars : (m + 1,) array
        Cutoff on the objective for each number of terms; -inf if not requested. Rounding is allowed for here.
    expired : callable
        Function that returns True to end a slice early.

    Attributes
    ----------
    finished : bool
        True if every support at or below its cutoff was handed out.
    nodes : int
        Number of nodes of all trees so far.
    """

    def __init__(self, form: NormalForm, first: IntArray, bars: FloatArray, expired: Callable[[], bool]) -> None:
        self.form, self.expired, self.bars = form, expired, bars.copy()
        groups = [np.flatnonzero(first == column).tolist() for column in np.unique(first).tolist()]
        self._constraints = SideConstraints(terms=tuple(Term(tuple(some)) for some in groups if len(some) > 1))
        self._left = np.flatnonzero(bars[: len(groups) + 1] > -np.inf).tolist()
        self._tree: TermTree | None = None
        self._spent = 0

    @property
    def finished(self) -> bool:
        """True if every support at or below its cutoff was handed out."""
        return not self._left

    @property
    def nodes(self) -> int:
        """Number of nodes of all trees so far."""
        return self._spent + (0 if self._tree is None else self._tree.nodes)

    @property
    def effort(self) -> int:
        """Number of nodes so far, since these trees are of one kind."""
        return self.nodes

    def lower_bars(self, bars: FloatArray) -> None:
        """Lower the cutoffs that exceed the given ones.

        Parameters
        ----------
        bars : (m + 1,) array
            Cutoff for each number of terms.
        """
        self.bars = np.minimum(self.bars, bars)
        if self._tree is not None:
            self._tree.limit = float(self.form.raise_cutoff(self.bars)[self._tree.family.tau])

    def advance(self, nodes: int = TERM_SLICE) -> MetSupports:
        """Process a number of nodes and return the supports found.

        Parameters
        ----------
        nodes : int
            Maximum number of nodes.
        """
        if self.finished:
            return self._encode_supports([])
        if self._tree is None:
            size = self._left[0]
            family = Family(self.form.m, size, self._constraints)
            limit = float(self.form.raise_cutoff(self.bars)[size])
            self._tree = TermTree(self.form, family, self._constraints, limit)
        tree = self._tree
        tree.process_nodes(tree.nodes + min(nodes, TERM_SLICE), self.expired)
        met = tree.take_found_supports()
        if tree.is_finished:
            self._spent, self._tree, self._left = self.nodes, None, self._left[1:]
        return self._encode_supports(met)

    def _encode_supports(self, supports: Sequence[int]) -> MetSupports:
        masks = np.zeros((len(supports), self.form.m), dtype=np.bool_)
        for row, support in enumerate(supports):
            masks[row, column_array(support)] = True
        sizes = masks.sum(axis=1).astype(np.int64)
        return MetSupports(masks, sizes, np.full(len(supports), np.nan))

    def open_bounds(self) -> FloatArray:
        """Return (m + 1,) lower bounds on f of the supports not yet handed out, by number of terms; inf if all were."""
        bounds = np.full(len(self.bars), np.inf)
        bounds[self._left] = 0.0
        if self._tree is not None:
            bounds[self._tree.family.tau] = max(self._tree.open.smallest_bound, 0.0)
        return np.asarray(np.maximum((bounds - self.form.slack) / (1.0 + self.form.keep), 0.0))

"""Trees and lists on all rows that serve every fold of a gamma: made when first asked for."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.shared_tree.engines import root_node, solve_all_folds, solve_from
from sparsecv_mio.search.shared_tree.leave_out import LeaveOut
from sparsecv_mio.search.shared_tree.root_node import RootNode
from sparsecv_mio.words import Engine


class SharedTrees:
    """What one branch-and-bound on all rows can decide for all folds at once.

    Parameters
    ----------
    run : Run
    engine : Engine
    """

    def __init__(self, run: Run, engine: Engine = Engine.AUTO) -> None:
        self.run, self.engine = run, engine
        self._leave_out: LeaveOut | None = None
        self._roots: dict[int, RootNode | None] = {}

    @property
    def leave_out(self) -> LeaveOut:
        """Closed-form leave-fold-out scores; O(n q^2) the first time."""
        if self._leave_out is None:
            state, proposed = self.run.state, self.run.accelerators.often_proposed
            self._leave_out = LeaveOut(self.run.context, state.all_rows, state.cells, proposed)
        return self._leave_out

    def root(self, g: int) -> RootNode | None:
        """Return the fit on all rows that trees for all folds start from; None where they are no use."""
        if g not in self._roots:
            self._roots[g] = root_node(self.leave_out, g, self.engine)
        return self._roots[g]

    def decide_gamma(self, g: int) -> None:
        """Decide what can be decided of a whole gamma; nothing is kept of it."""
        nodes, decided = solve_all_folds(self.leave_out, g, self.engine)
        self.run.state.counts.add(nodes, decided)

    def decide_taus(self, g: int, which: Sequence[int], tree: int) -> int:
        """Decide what can be decided of some tau, given the nodes of one `tree`; returns the nodes spent.

        Parameters
        ----------
        g : int
            Index of gamma.
        which : sequence of int
            Indices of tau with open cells.
        tree : int
            Nodes that one tree on all rows costs.
        """
        root = self.root(g)
        if root is None:
            return 0
        nodes, decided = solve_from(root, which, tree, self.engine)
        self.run.state.counts.add(nodes, decided)
        return nodes

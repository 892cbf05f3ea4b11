"""Trees of single folds: they solve subproblems, those first that promise to raise the pair most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.grid_state import DONE, GridState
from sparsecv_mio.search.pairs import Aim, cells_to_raise
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.outcomes import bound_subproblems
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.steps import Findings, Step


class SubproblemTrees:
    """Trees of single folds."""

    name: ClassVar[str] = "subproblem trees"

    def account(self, step: Step) -> BoundSource:
        """Return the account of trees of single folds."""
        return BoundSource.FOLD_TREES

    def describe(self, step: Step) -> str:
        """Return what a step does, in words."""
        return f"trees: tau {step.sizes[0]}"

    def steps(self, state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int) -> Iterator[Step]:
        """Yield the open folds of a pair, those first that promise to raise its lower bound most."""
        g, t = aim.pair
        waiting = np.zeros(state.context.folds.k, dtype=bool)
        waiting[state.open_folds(aim.pair, tries)] = True
        for _, _, fold in cells_to_raise(state.cells, aim, waiting):
            node_limit, size = plan.node_limit(tries), int(state.context.grid.taus[t])
            starts = state.supports_near(aim.pair, fold)
            yield Step(self.name, g, (t,), (fold,), (size,), starts, node_limit, tries=tries)

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Grow the tree, and turn its outcome into certified numbers."""
        (size,), problem = step.sizes, problems.fold(step.folds[0], step.gamma)
        subsets = problem.solve([size], step.warm_starts, step.node_limit, is_expired)
        bounds = bound_subproblems(
            problem, step.gamma, step.taus, step.folds[0], [subsets.by_size[size]], subsets.finished, is_expired
        )  # fmt: skip
        was_stopped = is_expired() and not bool(bounds.is_final.all())
        return Findings(step, (bounds,), subsets.nodes, 1, subsets.finished, was_stopped)

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the nodes that the subproblem had."""
        step = findings.step
        where = step.gamma, step.taus[0], step.folds[0]
        state.tree_tries[where] = DONE if findings.is_finished else step.tries + 1

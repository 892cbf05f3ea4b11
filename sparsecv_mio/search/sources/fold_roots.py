"""The first nodes of the trees of single folds, which give a support and a ridge ball for every size.

A ridge ball is a ball around the ridge fit of all columns that contains every fit as good as the support. Some sizes
are already solved by these nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.outcomes import bound_subproblems
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees, gammas_of_step
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step, SubproblemBounds
from sparsecv_mio.trees.subsets import is_always_expired
from sparsecv_mio.words import NATIVE


class FoldRoots:
    """Source of bounds by a few nodes of the trees of this package: all sizes of a fold, gamma by gamma."""

    name: ClassVar[str] = "fold roots"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds of some pairs (G, T) whose trees have no root."""
        if not plan.grows_roots:
            return
        is_new = wanted[:, :, None] & ~np.asarray(state.cells.final) & ~state.tried.has_root[:, None, :]
        for step in SubproblemTrees().steps_by_fold(state, plan, is_new, 0):
            yield replace(step, source=self.name, node_limit=plan.root_nodes, n_mios=0)

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Grow the first nodes from the largest gamma on; enclose subproblems still open by the ridge ball alone."""
        (fold,), bounds, n_nodes = step.folds, list[SubproblemBounds](), 0
        for g, taus, starts in gammas_of_step(step):
            if is_expired():
                return Findings(step, tuple(bounds), n_nodes, len(bounds), was_stopped=True)
            problem, sizes = problems.fold(fold, g), [step.sizes[step.taus.index(t)] for t in taus]
            solution = problem.solve(sizes, starts, step.node_limit, is_expired)
            subsets = [solution.by_size[size] for size in sizes]
            is_finished = solution.finished and step.solver == NATIVE
            bounds.append(bound_subproblems(problem, g, taus, fold, subsets, is_finished, is_always_expired))
            n_nodes += solution.nodes if step.node_limit else 0
        return Findings(step, tuple(bounds), n_nodes, len(bounds), is_finished=False)

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the folds that have roots."""
        for statement in findings.statements:
            assert isinstance(statement, SubproblemBounds)
            state.tried.has_root[statement.gamma, statement.folds] = True

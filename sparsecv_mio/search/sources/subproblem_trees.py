"""Branch-and-bound trees of single folds; the trees with the largest expected rise of the lower bound come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.outcomes import bound_subproblems
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Aim, Pair
from sparsecv_mio.search.steps import Findings, PairsStep, Step, SubproblemBounds
from sparsecv_mio.trees.subsets import is_always_expired


class SubproblemTrees:
    """Source of bounds by trees of single folds: of one pair, or of many pairs if sizes share a tree."""

    name: ClassVar[str] = "subproblem trees"

    def steps(self, state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int) -> Iterator[Step]:
        """Yield open folds of a pair, those first whose bounds may rise most: as many as may reach the cutoff."""
        cells, folds = state.cells, state.open_folds(aim.pair, tries)
        top = cells.upper[aim.pair][folds]
        if not aim.solves_pair:
            top = np.minimum(cells.nominal[aim.pair][folds], top)
        rises = top - cells.lower[aim.pair][folds]
        order = np.argsort(-rises, kind="stable")
        missing = aim.sum_cutoff - cells.lower[aim.pair].sum()
        n_needed = int(np.searchsorted(np.cumsum(rises[order]), missing, side="right")) + 1  # all folds if it is inf
        yield from self.steps_of_folds(state, plan, aim.pair, folds[order][: max(n_needed, n_threads)].tolist(), tries)

    def steps_of_folds(
        self, state: GridState, plan: Plan, pair: Pair, folds: Iterable[int], tries: int
    ) -> Iterator[Step]:
        """Yield some folds of a pair in the given order; each step is built when it is taken.

        Parameters
        ----------
        state : GridState
            State of the search.
        plan : Plan
            Plan of the search.
        pair : int, int
            Indices of gamma and tau.
        folds : iterable of int
            Indices of folds.
        tries : int
            Number of trees that each fold had.
        """
        (g, t), node_limit, size = pair, plan.node_limit(tries), int(state.context.grid.taus[pair[1]])
        for fold in folds:
            starts = state.warm_start_supports(pair, fold)
            yield Step(
                self.name, g, (t,), (fold,), (size,), starts, node_limit, tries=tries, solver=plan.solver,
                n_mios=int(tries == 0),
            )  # fmt: skip

    def steps_by_fold(
        self, state: GridState, plan: Plan, subproblems: BoolArray, tries: int, node_limit: int = 0
    ) -> Iterator[Step]:
        """Yield some subproblems (G, T, K) fold by fold, those first whose lower bounds may rise most.

        A node limit of 0 selects the node limit of the plan after `tries` tries.
        """
        shown = state.cells.nominal
        rise = np.where(subproblems & np.isfinite(shown), np.maximum(shown - state.cells.lower, 0.0), 0.0)
        for fold in np.argsort(-rise.sum(axis=(0, 1)), kind="stable").tolist():
            gammas = np.flatnonzero(subproblems[:, :, fold].any(axis=1))
            for part_index in range(min(plan.parts_of_fold, len(gammas))):
                wanted = np.zeros(subproblems.shape[:2], dtype=bool)
                wanted[gammas[part_index :: plan.parts_of_fold]] = subproblems[
                    gammas[part_index :: plan.parts_of_fold], :, fold
                ]
                yield self._step_of_fold(state, plan, fold, wanted, tries, node_limit or plan.node_limit(tries))

    def _step_of_fold(
        self, state: GridState, plan: Plan, fold: int, wanted: BoolArray, tries: int, node_limit: int
    ) -> Step:
        """Return a step over some pairs (G, T) in a fold."""
        taus = tuple(np.flatnonzero(wanted.any(axis=0)).tolist())
        step = PairsStep(
            self.name, -1, taus, (fold,), tuple(state.context.grid.taus[list(taus)].tolist()),
            node_limit=node_limit, tries=tries, wanted=wanted, solver=plan.solver,
            n_mios=int(wanted.sum()) if tries == 0 else 0,
        )  # fmt: skip
        for g in np.flatnonzero(wanted.any(axis=1)).tolist():
            own = state.fold_supports(g, np.flatnonzero(wanted[g]), fold) if plan.searches_folds_first else ()
            step.starts[g] = (*(subset.support for subset in state.full_subsets(g)), *own)
        return step

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Grow the trees from the largest gamma on, and compute certified bounds from their outcomes."""
        (fold,), done = step.folds, Findings(step, ())
        bounds, before = list[SubproblemBounds](), tuple[IntArray, ...]()
        for g, taus, starts in step.targets():
            if is_expired():
                return replace(done, statements=tuple(bounds), was_stopped=True)
            problem, sizes = problems.fold(fold, g), step.sizes_of(taus)
            solution = problem.solve(sizes, (*starts, *before), step.node_limit, is_expired)
            subsets = [solution.by_size[size] for size in sizes]
            bounds.append(bound_subproblems(problem, g, taus, fold, subsets, solution.finished, is_expired))
            before = tuple(subset.support for subset in subsets)
            done = replace(
                done, n_nodes=done.n_nodes + solution.nodes, n_problems=done.n_problems + 1,
                is_finished=done.is_finished and solution.finished,
            )  # fmt: skip
        was_stopped = is_expired() and not all(bool(some.is_final.all()) for some in bounds)
        return replace(done, statements=tuple(bounds), was_stopped=was_stopped)

    def bound(self, step: Step, problems: Problems) -> Findings:
        """Bound one subproblem by its best support and the ridge ball, whatever the time; no try is counted."""
        (fold,), problem = step.folds, problems.fold(step.folds[0], step.gamma)
        solution = problem.solve(step.sizes, step.warm_starts, 0, is_always_expired)
        subsets = [solution.by_size[size] for size in step.sizes]
        return Findings(
            step,
            (bound_subproblems(problem, step.gamma, step.taus, fold, subsets, False, is_always_expired),),
            n_problems=1,
            is_finished=False,
            was_stopped=True,
        )

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the nodes that were spent on the subproblems."""
        step = findings.step
        n_pairs = sum(
            len(statement.taus) for statement in findings.statements if isinstance(statement, SubproblemBounds)
        )
        for statement in findings.statements:
            assert isinstance(statement, SubproblemBounds)
            state.tried.tree_seconds[statement.gamma, list(statement.taus)] += findings.cpu_seconds / n_pairs
            tries = np.where(statement.is_final | findings.is_finished, DONE, step.tries + 1)
            state.tried.tree_tries[statement.gamma, list(statement.taus), step.folds[0]] = tries[:, 0]
        if step.tries == 0 and len(step.taus) == 1:
            state.tried.count_first_trees(step.taus, n_pairs, findings.n_nodes, findings.cpu_seconds)

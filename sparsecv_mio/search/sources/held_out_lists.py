"""Lists of near-optimal supports of the full data.

The listed supports are refitted with each fold held out. These refits give bounds on the held-out losses of all folds
of a pair at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import FoldProblem, HeldOutList, IsExpired, Problems
from sparsecv_mio.search.state.attempts import BOUNDED, DONE, RAISED, SOLVED
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Aim, Pair
from sparsecv_mio.search.steps import ALL_FOLDS, Findings, FullDataBounds, Statement, Step, SubproblemBounds
from sparsecv_mio.trees.subsets import BestSubsets
from sparsecv_mio.units import WORST_ROUNDING


@dataclass(frozen=True, eq=False, kw_only=True)
class ListStep(Step):
    """A step over all folds of a pair.

    Attributes
    ----------
    upper : float
        Upper bound on the objective of the full data.
    sum_cutoff : float
        Sum of lower bounds to reach; inf to solve the folds.
    """

    upper: float
    sum_cutoff: float


class HeldOutLists:
    """Source of bounds by lists of near-optimal supports of the full data."""

    name: ClassVar[str] = "held-out lists"

    def steps(self, state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int) -> Iterator[Step]:
        """Yield the list of a pair if it was not made yet."""
        stage, solves = int(state.tried.list_stage[aim.pair]), aim.solves_pair
        if stage <= BOUNDED or (solves and stage == RAISED):
            numbers = np.unique(state.cells.support[aim.pair]).tolist()
            shown = (state.cells.pool.supports[number] for number in numbers)
            best = state.full_support(aim.pair)
            supports = (best, *(support for support in shown if len(support) == len(best)))
            nodes = plan.node_limit(tries, plan.list_folds)
            yield self.step(state, aim.pair, supports, nodes, aim.sum_cutoff, n_threads, tries)

    def step(
        self, state: GridState, pair: Pair, supports: tuple, node_limit: int, cutoff: float, n_threads: int = 1,
        tries: int = 0,
    ) -> Step:  # fmt: skip
        """Return the step that refits some supports with each fold of a pair held out.

        Parameters
        ----------
        state : GridState
            State of the search.
        pair : int, int
            Indices of gamma and tau.
        supports : tuple of int arrays
            Supports to try, the support of the full data first.
        node_limit : int
            Node limit of the list; 0 for no list.
        cutoff, n_threads, tries
            As of :class:`ListStep`.
        """
        (g, t), size = pair, int(state.context.grid.taus[pair[1]])
        return ListStep(
            self.name, g, (t,), ALL_FOLDS, (size,), supports, node_limit, n_threads, tries,
            upper=state.full_subset(pair).upper, sum_cutoff=cutoff,
        )  # fmt: skip

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Hold every fold out of the known supports, list more supports, and bound or solve the folds."""
        assert isinstance(step, ListStep)
        problem, size = problems.full(step.gamma), step.sizes[0]
        near_best = problem.make_near_optimal_list(size, step.warm_starts, is_expired)
        is_single, is_complete = problem.has_one_support(size) and step.node_limit == 1, True
        solves = not np.isfinite(step.sum_cutoff)
        if solves and step.node_limit:
            near_best.compute_exactly()
        least, most = near_best.bound_all_fits(step.upper) if solves else near_best.unknown_bounds()
        if step.node_limit:
            is_complete = _fill_list(near_best, step, np.inf if is_single else None, most)
            if solves and is_complete:
                near_best.tighten_unlisted_folds(least, most, partial(_enclose, problems, step, is_expired))
        statements: list[Statement] = [_state_pair(near_best, step, least, most, solves and step.node_limit > 0)]
        if near_best.best is not None:
            best = near_best.best
            statements.insert(0, FullDataBounds(step.gamma, BestSubsets({best.tau: best}, 0, best.complete)))
        n_problems = 1 + len(near_best.supports)
        return Findings(step, tuple(statements), near_best.n_nodes, n_problems, is_complete, is_expired())

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the list of the pair."""
        step, pair = findings.step, (findings.step.gamma, findings.step.taus[0])
        assert isinstance(step, ListStep)
        state.tried.list_stage[pair] = BOUNDED
        if step.node_limit <= 1:  # only the supports of the state were fitted
            return
        state.tried.list_tries[pair] = step.tries + 1
        if findings.is_finished:
            state.tried.list_stage[pair] = RAISED if np.isfinite(step.sum_cutoff) else SOLVED
            state.tried.full_tries[pair] = max(int(state.tried.full_tries[pair]), min(step.tries + 1, DONE))


def _fill_list(near_best: HeldOutList, step: ListStep, cutoff: float | None, most: FloatArray) -> bool:
    """List near-optimal supports as far as the step needs them; return True if the list is complete."""
    if cutoff is None:
        solves = not np.isfinite(step.sum_cutoff)
        cutoff = near_best.cutoff_to_solve(most) if solves else near_best.cutoff_to_raise(step.sum_cutoff)
        cutoff = max(cutoff, step.upper)
        if not np.isfinite(cutoff):
            return False
    return near_best.list_supports(cutoff, step.node_limit, step.n_threads)


def _enclose(
    problems: Problems, step: Step, is_expired: IsExpired, fold: int, objective_upper: float
) -> tuple[float, float]:  # fmt: skip
    """Bound the held-out loss of a fold by the rows of the fold."""
    problem: FoldProblem = problems.fold(fold, step.gamma)
    ends = problem.enclose(step.sizes, np.array([objective_upper]), step.warm_starts, is_expired)
    return float(ends.lower[0]), float(ends.upper[0])


def _state_pair(
    near_best: HeldOutList, step: Step, least: FloatArray, most: FloatArray, solves: bool
) -> SubproblemBounds:  # fmt: skip
    """Return the bounds on all folds of the pair."""
    folds = near_best.bound_folds(least, most)
    is_solved = folds.is_listed & (folds.upper - folds.lower - WORST_ROUNDING * folds.held_out <= folds.tie)
    n_folds = len(folds.best)
    bounds = SubproblemBounds.unknown(step.gamma, step.taus, slice(0, n_folds), n_folds, near_best.supports)
    bounds.best[0], bounds.held_out[0], bounds.tie[0] = folds.best, folds.held_out, folds.tie
    bounds.objective[0] = bounds.objective_upper[0] = folds.objective
    bounds.lower[0], bounds.upper[0] = folds.lower, folds.upper
    bounds.is_solved[0], bounds.is_branched[0] = is_solved & solves, is_solved & solves
    bounds.tied.update({(0, fold): places for fold, places in folds.tied.items()})
    return bounds

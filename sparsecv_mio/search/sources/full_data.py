"""Lower bounds on the training objective of the full data, from complete trees or from the first nodes of trees.

The training-loss bound uses these lower bounds to exclude pairs (tau, gamma).

Let F* be a lower bound on the smallest objective of the full data, and u the objective of one known support on the
training rows of a fold. Then the held-out loss of the optimum of the fold is at least F* - u (docs/theory/glm.md,
section 9).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import Capability, IsExpired, Problems
from sparsecv_mio.search.state.attempts import DONE, LAST_TRY
from sparsecv_mio.search.state.grid_state import GridState, find_open_gammas
from sparsecv_mio.search.state.pairs import Aim, Pair
from sparsecv_mio.search.steps import (
    FULL_DATA,
    Findings,
    FullDataBounds,
    PairsStep,
    Statement,
    Step,
    StepClock,
    SupportInFolds,
)
from sparsecv_mio.trees.subsets import UNLIMITED


class FullDataRelaxations:
    """Source of bounds by the roots of trees of some sizes at a gamma; each root bounds smaller sizes too."""

    name: ClassVar[str] = "full-data relaxations"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the gammas that were not relaxed, in ascending order."""
        sizes = tuple(state.context.grid.taus[:: -plan.relaxed_stride][::-1].tolist())
        taus = tuple(range(wanted.shape[1]))
        for g in find_open_gammas(wanted, state.tried.is_relaxed)[::-1]:
            by_size = state.all_rows.best[g].by_size
            yield Step(self.name, g, taus, FULL_DATA, sizes, tuple(by_size[size].support for size in sizes))

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Relax the full data at the gamma of a step."""
        subsets = problems.full(step.gamma).relax(step.sizes, step.warm_starts, is_expired)
        return Findings(step, (FullDataBounds(step.gamma, subsets),), subsets.nodes, 1, was_stopped=is_expired())

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the gamma that was relaxed."""
        state.tried.is_relaxed[findings.step.gamma] = True


class FirstFullDataTrees:
    """Source of supports and bounds by the first trees of a gamma, which cover all its sizes."""

    name: ClassVar[str] = "first full-data trees"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the gammas without a tree; one step for all if no supports are known, since trees are cheap then."""
        taus, is_open = state.context.grid.taus.tolist(), wanted & (state.tried.full_tries == 0)
        first = tuple(range(len(taus))), FULL_DATA, tuple(taus)
        if not plan.first_full_nodes or not is_open.any():
            return
        if not state.has_supports.any():
            yield PairsStep(self.name, -1, *first, node_limit=plan.first_full_nodes, wanted=is_open)
            return
        for g in np.flatnonzero(is_open.any(axis=1))[::-1][: plan.n_threads].tolist():
            near, here = range(g, min(g + 2, len(wanted))), np.zeros_like(is_open)
            starts = tuple(subset.support for neighbour in near for subset in state.full_subsets(neighbour))
            here[g] = is_open[g]
            yield PairsStep(self.name, g, *first, starts, plan.first_full_nodes, wanted=here)

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Grow trees of all sizes at some gammas, each from the supports of the next larger gamma."""
        assert isinstance(step, PairsStep)
        starts, statements = step.warm_starts, list[FullDataBounds]()
        for g in reversed(step.gammas):
            if statements and is_expired():
                break
            subsets = problems.full(g).solve(step.sizes, starts, step.node_limit, is_expired)
            statements.append(FullDataBounds(g, subsets))
            starts = (*step.warm_starts, *(subset.support for subset in subsets.by_size.values()))
        n_nodes, n_done = sum(bounds.subsets.nodes for bounds in statements), len(statements)
        return Findings(step, tuple(statements), n_nodes, n_done, was_stopped=n_done < len(step.gammas))

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the nodes of each gamma."""
        for statement in findings.statements:
            assert isinstance(statement, FullDataBounds)
            is_solved = [subset.complete for subset in statement.subsets.by_size.values()]
            state.tried.full_tries[statement.gamma] = np.where(is_solved, DONE, 1)
            state.tried.full_nodes[statement.gamma] = statement.subsets.nodes


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeStep(Step):
    """A tree of the full data; its targets are the last of `taus`, one for each of `sizes`.

    Attributes
    ----------
    objective_cutoffs : (S,) array
        Sufficient lower bounds, by size; inf to solve a size.
    is_known_in_folds : bool
        True if the first warm start was fitted in every fold before.
    """

    objective_cutoffs: FloatArray
    is_known_in_folds: bool = True

    @property
    def pairs(self) -> tuple[int, list[int]]:
        """Indices of the targets."""
        return self.gamma, list(self.taus[-len(self.sizes) :])


class FullDataTrees:
    """Source of bounds by trees of the full data, which exclude a pair, raise its bound, or solve its model.

    If the source is switched off, its trees only solve models to be reported.
    """

    name: ClassVar[str] = "full-data trees"

    def steps(self, state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int) -> Iterator[Step]:
        """Yield the tree that may exclude the pair or raise its bound, if there is one.

        A bound at a larger size bounds all smaller sizes too. So the tree has the largest size at which it may exclude
        the pair. A tree that cannot exclude the pair alone raises its bound, once in each round.
        """
        if plan.counts_mios:
            yield from self._bound_once(state, plan, aim)
            return
        if aim.solves_pair or not plan.uses(self.name) or len(state.open_folds(aim.pair, tries)) < 2:
            return
        bars = np.full(state.context.shape[:2], aim.sum_cutoff)
        target = _target(state, plan, aim, tries, state.objective_cutoffs(bars)[aim.pair[0]])
        if target is not None:
            node_limit = plan.node_limit(tries, plan.full_data_folds)
            yield self.step(state, target[0], target[1], node_limit, n_threads, tries)

    def _bound_once(self, state: GridState, plan: Plan, aim: Aim) -> Iterator[Step]:
        """Yield one MIO at a pair that is raised in several folds; its optimum bounds other pairs too."""
        subset = state.full_subset(aim.pair)
        is_tried = bool(state.tried.full_tries[aim.pair] > 0) or subset.complete
        if not aim.solves_pair and not is_tried and len(state.open_folds(aim.pair, 0)) > 1:
            step = self.step(state, aim.pair, subset.upper, UNLIMITED, plan.n_threads, 0)
            yield replace(step, solver=plan.solver, n_mios=1)

    def step(
        self, state: GridState, pair: Pair, cutoff: float = np.inf, node_limit: int = UNLIMITED, n_threads: int = 1,
        tries: int = LAST_TRY,
    ) -> Step:  # fmt: skip
        """Return the tree at a pair; by default it has no limit and solves the model.

        Parameters
        ----------
        state : GridState
            State of the search.
        pair : int, int
            Indices of gamma and tau.
        cutoff : float
            Lower bound at which the tree may end.
        node_limit, n_threads, tries : int
            Fields of :class:`Step`.
        """
        (g, t), support = pair, state.full_support(pair)
        is_known = (*pair, np.sort(support).astype(np.int64).tobytes()) in state.offered
        size = int(state.context.grid.taus[t])
        return TreeStep(
            self.name, g, tuple(range(t + 1)), FULL_DATA, (size,), (support,), node_limit, n_threads, tries,
            objective_cutoffs=np.array([cutoff]), is_known_in_folds=is_known,
        )  # fmt: skip

    def steps_of_pairs(
        self, state: GridState, plan: Plan, pairs: BoolArray, bars: FloatArray, tries: int, node_limit: int,
        seconds: float = np.inf,
    ) -> Iterator[Step]:  # fmt: skip
        """Yield trees of the sizes of some pairs (G, T), gamma by gamma; sizes of a gamma may share a tree.

        Work on a pair ends once its bound brings the sum of its lower bounds to its cutoff in `bars`.

        Parameters
        ----------
        state : GridState
            State of the search.
        plan : Plan
            Plan of the search.
        pairs : (G, T) bool array
            Pairs to bound.
        bars : (G, T) array
            Cutoffs on the sums of lower bounds over folds.
        tries, node_limit : int
            Fields of :class:`Step`.
        seconds : float
            Time for all steps together, in seconds.
        """
        wanted = pairs & ~state.all_rows.solved_pairs() & plan.uses(self.name)
        cutoffs, taus_of = state.objective_cutoffs(bars), state.context.grid.taus
        gammas = np.flatnonzero(wanted.any(axis=1)).tolist()
        n_parts = plan.n_threads if len(gammas) < plan.n_threads and node_limit > plan.look_nodes else 1
        by_gamma = [(g, np.flatnonzero(wanted[g])[i::n_parts].tolist()) for g in gammas for i in range(n_parts)]
        by_gamma = [(g, taus) for g, taus in by_gamma if taus]
        for g, taus in by_gamma:
            near = range(max(g - 1, 0), min(g + 2, len(state.all_rows.best)))
            starts = [state.full_support((neighbour, t)) for neighbour in near for t in taus]
            numbers = np.unique(state.cells.support[g, taus]).tolist()
            starts += [state.cells.pool.supports[number] for number in numbers]
            yield TreeStep(
                self.name, g, tuple(taus), FULL_DATA, tuple(taus_of[taus].tolist()), tuple(starts), node_limit,
                tries=tries, objective_cutoffs=cutoffs[g, taus].copy(),
                seconds=seconds * plan.n_threads / len(by_gamma),
            )  # fmt: skip

    def ranked_steps(self, state: GridState, plan: Plan, pairs: BoolArray, aims: FloatArray) -> Iterator[Step]:
        """Yield trees of the pairs (G, T) with the fewest tries; each promises a rise towards the sums `aims`.

        Parameters
        ----------
        state : GridState
            State of the search.
        plan : Plan
            Plan of the search.
        pairs : (G, T) bool array
            Pairs to raise.
        aims : (G, T) array
            Sums of lower bounds to reach.
        """
        tries = np.where(pairs & ~state.all_rows.solved_pairs(), state.tried.full_tries, DONE)
        lowest = int(tries.min())
        node_limit = plan.node_limit(lowest)
        for step in self.steps_of_pairs(
            state, plan, pairs & (tries == lowest), aims, lowest, node_limit, plan.slice_seconds
        ):  # fmt: skip
            promised = state.rise_by_full_data(step.gamma, list(step.taus), aims)
            yield replace(step, promised=promised, work=float(node_limit * len(step.taus)))

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Grow the tree, and fit a new support in every fold at once if the problem is able to."""
        assert isinstance(step, TreeStep)
        problem, is_over = problems.full(step.gamma), StepClock.from_step(step, is_expired).has_expired
        cutoffs = dict(zip(step.sizes, step.objective_cutoffs.tolist(), strict=True))
        found = problem.solve(
            step.sizes, step.warm_starts, step.node_limit, is_over, cutoffs, n_threads=step.n_threads
        )  # fmt: skip
        statements: list[Statement] = [FullDataBounds(step.gamma, found)]
        targets = zip(step.pairs[1], step.sizes, strict=True) if Capability.HOLD_OUT in problem.capabilities else ()
        for t, size in targets:
            support = found.by_size[size].support
            if not (step.is_known_in_folds and np.array_equal(np.sort(support), np.sort(step.warm_starts[0]))):
                in_folds = problem.hold_out(support, is_expired)
                statements.append(SupportInFolds(step.gamma, t, support, *in_folds))
        # with a higher cutoff nodes give more
        is_final = found.finished and not np.isfinite(step.objective_cutoffs).any()
        is_finished = is_final or all(subset.complete for subset in found.by_size.values())
        return Findings(step, tuple(statements), found.nodes, 1, is_finished, was_stopped=is_expired())

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the nodes that were spent on the pairs."""
        step = findings.step
        assert isinstance(step, TreeStep)
        is_unlimited = (step.node_limit >= UNLIMITED) & np.isinf(step.objective_cutoffs)
        is_done = state.all_rows.solved_pairs()[step.pairs] | is_unlimited | findings.is_finished
        state.tried.full_tries[step.pairs] = np.where(is_done, DONE, step.tries + 1)
        state.tried.is_looked_at[step.pairs] = True
        if step.tries == 0:
            state.tried.count_first_trees(step.taus, len(step.sizes), findings.n_nodes, findings.cpu_seconds)


def _target(state: GridState, plan: Plan, aim: Aim, tries: int, cutoffs: FloatArray) -> tuple[Pair, float] | None:
    """Return the pair of the full data to grow a tree at instead of the folds, and its cutoff; None for the folds."""
    g, t = aim.pair
    uppers = state.all_rows.upper()[g]
    is_tried = (state.tried.full_tries[g] > tries) | state.all_rows.solved_pairs()[g]
    if cutoffs[t] <= uppers[t]:
        may_exclude = ~is_tried & (uppers >= cutoffs[t])
        may_exclude[:t] = False
        if may_exclude.any():
            last = int(np.flatnonzero(may_exclude)[-1])
            reached = cutoffs[t : last + 1]
            return (g, last), float(np.max(reached[reached <= uppers[last]]))
    elif not is_tried[t]:
        lower_sums = state.bounds().lower[g]
        sums_lower = state.cells.lower[aim.pair] + state.objective_upper[aim.pair]
        for last in np.flatnonzero((lower_sums < aim.sum_cutoff) & ~is_tried)[::-1].tolist():
            rise = np.maximum(uppers[last] - sums_lower, 0.0).sum()  # the bound at a larger size may be too weak
            if last >= t and rise >= plan.rise_share * (aim.sum_cutoff - lower_sums[t]):
                return (g, last), float(cutoffs[last])
    return None

"""Cheap bounds on the held-out loss of one fold: ridge balls, relaxations, and the first nodes of trees.

* A ridge ball has the ridge fit of all columns as its centre. The ball contains every fit whose objective is at most
  that of a known support.
* A relaxation of a fold bounds the held-out losses of supports of all sizes at one gamma.
* The first nodes of the trees of a fold give a support and a ridge ball for every size, and may solve some sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.outcomes import bound_subproblems
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, PairsStep, Step, SubproblemBounds
from sparsecv_mio.trees.subsets import is_always_expired
from sparsecv_mio.words import NATIVE


@dataclass(frozen=True, eq=False, kw_only=True)
class EnclosureStep(PairsStep):
    """A step over some pairs of a fold, with (G, T) upper bounds on their objectives."""

    objective_upper: FloatArray


class Enclosures:
    """Source of intervals by ridge balls of single folds, at all gammas and sizes."""

    name: ClassVar[str] = "enclosures"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds that were not enclosed, each with its open pairs among those that are wanted (G, T)."""
        for fold in np.flatnonzero(~state.tried.is_enclosed).tolist() if plan.encloses_folds else ():
            here = wanted & ~state.cells.final[:, :, fold] & np.isfinite(state.objective_upper[:, :, fold])
            if here.any():
                step = EnclosureStep(
                    self.name, -1, tuple(range(here.shape[1])), (fold,), tuple(state.context.grid.taus.tolist()),
                    wanted=here, objective_upper=state.objective_upper[:, :, fold].copy(),
                )  # fmt: skip
                for g in np.flatnonzero(here.any(axis=1)).tolist():
                    numbers = state.cells.support[g, here[g], fold].tolist()
                    step.starts[g] = tuple(state.cells.pool.supports[number] for number in numbers)
                yield step

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Enclose the held-out losses, gamma by gamma; O(q^3) a gamma."""
        assert isinstance(step, EnclosureStep)
        (fold,), statements = step.folds, list[SubproblemBounds]()
        for g, taus, supports in step.targets():
            if is_expired():
                return Findings(step, tuple(statements), n_problems=len(statements), was_stopped=True)
            uppers = step.objective_upper[g, list(taus)]
            ends = problems.fold(fold, g).enclose(step.sizes_of(taus), uppers, supports, is_expired, relaxes=False)
            bounds = SubproblemBounds.unknown(
                g, taus, slice(fold, fold + 1), 1, (), ("lower", "upper", "objective_lower")
            )  # fmt: skip
            bounds.lower[:, 0], bounds.upper[:, 0] = ends.lower, ends.upper
            bounds.objective_lower[:, 0] = ends.objective_lower
            statements.append(bounds)
        return Findings(step, tuple(statements), n_problems=len(statements))

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the fold that was enclosed."""
        state.tried.is_enclosed[findings.step.folds[0]] = True


class FoldRelaxations:
    """Source of relaxations of folds; a step covers several folds at a gamma, or several gammas of a fold."""

    name: ClassVar[str] = "fold relaxations"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds of some pairs (G, T) that were not relaxed at their gamma."""
        if not plan.relaxes_folds or state.tried.is_fold_relaxed[wanted.any(axis=1)].all():
            return
        is_new = wanted[:, :, None] & ~state.cells.final & ~state.tried.is_fold_relaxed[:, None, :]
        folds = np.flatnonzero(is_new.any(axis=(0, 1)))
        n_gammas = max(int(is_new.any(axis=(1, 2)).sum()), 1)
        n_together = -(-plan.relaxations_at_once // n_gammas)
        for begin in range(0, len(folds), n_together):
            yield self._step(state, is_new, folds[begin : begin + n_together])

    def _step(self, state: GridState, is_new: BoolArray, folds: IntArray) -> Step:
        """Return the step over some folds, at the gammas and sizes that are new in at least one of them."""
        pairs = np.asarray(is_new[:, :, folds].any(axis=2))
        gammas, taus = np.flatnonzero(pairs.any(axis=1)).tolist(), np.flatnonzero(pairs.any(axis=0))
        step = PairsStep(
            self.name, gammas[0] if len(gammas) == 1 else -1, tuple(taus.tolist()), tuple(folds.tolist()),
            tuple(state.context.grid.taus[taus].tolist()), wanted=pairs,
        )  # fmt: skip
        for g in gammas:
            shown = {state.cells.support[g, t, fold] for t in taus.tolist() for fold in folds.tolist()}
            own = tuple(state.cells.pool.supports[number] for number in sorted(shown) if number)
            step.starts[g] = (*(subset.support for subset in state.full_subsets(g)), *own)
        return step

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Relax the folds of a step one after the other."""
        bounds = list[SubproblemBounds]()
        for fold in step.folds:
            for g, taus, starts in step.targets():
                if is_expired():
                    return Findings(step, tuple(bounds), n_problems=len(bounds), was_stopped=True)
                bounds.append(problems.fold(fold, g).relax_fold(taus, step.sizes_of(taus), starts, is_expired))
        return Findings(step, tuple(bounds), n_problems=len(bounds))

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the folds that were relaxed."""
        for statement in findings.statements:
            assert isinstance(statement, SubproblemBounds)
            state.tried.is_fold_relaxed[statement.gamma, statement.folds] = True


class FoldRoots:
    """Source of bounds by a few nodes of the trees of this package: all sizes of a fold, gamma by gamma."""

    name: ClassVar[str] = "fold roots"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds of some pairs (G, T) whose trees have no root."""
        if not plan.grows_roots:
            return
        is_new = wanted[:, :, None] & ~state.cells.final & ~state.tried.has_root[:, None, :]
        for step in SubproblemTrees().steps_by_fold(state, plan, is_new, 0):
            yield replace(step, source=self.name, node_limit=plan.root_nodes, n_mios=0)

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Grow the first nodes from the largest gamma on; enclose subproblems still open by the ridge ball alone."""
        (fold,), bounds, n_nodes = step.folds, list[SubproblemBounds](), 0
        for g, taus, starts in step.targets():
            if is_expired():
                return Findings(step, tuple(bounds), n_nodes, len(bounds), was_stopped=True)
            problem, sizes = problems.fold(fold, g), step.sizes_of(taus)
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

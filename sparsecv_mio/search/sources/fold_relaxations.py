"""Relaxations of single folds, which bound the held-out losses at one gamma for all sizes, without a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step, SubproblemBounds


class FoldRelaxations:
    """Source of relaxations of folds; a step covers several folds at a gamma, or several gammas of a fold."""

    name: ClassVar[str] = "fold relaxations"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds of some pairs (G, T) that were not relaxed at their gamma."""
        if not plan.relaxes_folds or state.tried.is_fold_relaxed[wanted.any(axis=1)].all():
            return
        is_new = wanted[:, :, None] & ~np.asarray(state.cells.final) & ~state.tried.is_fold_relaxed[:, None, :]
        folds = np.flatnonzero(is_new.any(axis=(0, 1)))
        n_gammas = max(int(is_new.any(axis=(1, 2)).sum()), 1)
        n_together = -(-plan.relaxations_at_once // n_gammas)
        for begin in range(0, len(folds), n_together):
            yield self._step(state, is_new, folds[begin : begin + n_together])

    def _step(self, state: GridState, is_new: BoolArray, folds: IntArray) -> Step:
        """Return the step over some folds, at the gammas and sizes that are new in at least one of them."""
        pairs = np.asarray(is_new[:, :, folds].any(axis=2))
        gammas, taus = np.flatnonzero(pairs.any(axis=1)).tolist(), np.flatnonzero(pairs.any(axis=0))
        step = Step(
            self.name, gammas[0] if len(gammas) == 1 else -1, tuple(taus.tolist()), tuple(folds.tolist()),
            tuple(state.context.grid.taus[taus].tolist()), wanted=pairs,
        )  # fmt: skip
        for g in gammas:
            shown = {state.cells.support[g, t, fold] for t in taus.tolist() for fold in folds.tolist()}
            own = tuple(state.cells.pool.supports[number] for number in sorted(shown) if number)
            step.starts[g] = (*(subset.support for subset in state.full_subsets(g)), *own)
        return step

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Relax the folds of a step one after the other."""
        assert step.wanted is not None
        bounds = list[SubproblemBounds]()
        for fold in step.folds:
            for g, starts in step.starts.items():
                if is_expired():
                    return Findings(step, tuple(bounds), n_problems=len(bounds), was_stopped=True)
                taus = tuple(np.flatnonzero(step.wanted[g]).tolist())
                sizes = [step.sizes[step.taus.index(t)] for t in taus]
                bounds.append(problems.fold(fold, g).relax_fold(taus, sizes, starts, is_expired))
        return Findings(step, tuple(bounds), n_problems=len(bounds))

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the folds that were relaxed."""
        for statement in findings.statements:
            assert isinstance(statement, SubproblemBounds)
            state.tried.is_fold_relaxed[statement.gamma, statement.folds] = True

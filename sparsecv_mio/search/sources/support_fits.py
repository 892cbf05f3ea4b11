"""Fits of supports in every fold with certified objectives, which the training-loss bound needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.outcomes import show_supports
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step, SubproblemBounds


class SupportFits:
    """Source of fits of the supports that folds show, or of the full-data support where a fold shows none."""

    name: ClassVar[str] = "support fits"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds in which some pairs (G, T) show no support, or a support that was not fitted."""
        shows = np.isfinite(state.cells.nominal)
        is_new = wanted[:, :, None] & ~(shows & (state.tried.fitted == state.cells.support)) & ~state.cells.final
        for fold in np.flatnonzero(is_new.any(axis=(0, 1))).tolist() if plan.uses(self.name) else ():
            here = is_new[:, :, fold]
            taus = tuple(np.flatnonzero(here.any(axis=0)).tolist())
            step = Step(self.name, -1, taus, (fold,), wanted=here)
            for g in np.flatnonzero(here.any(axis=1)).tolist():
                numbers, full = state.cells.support[g, :, fold].tolist(), state.full_subsets(g)
                step.starts[g] = tuple(
                    state.cells.pool.supports[numbers[t]] if shows[g, t, fold] else full[t].support
                    for t in np.flatnonzero(here[g]).tolist()
                )  # fmt: skip
            yield step

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Fit the supports, gamma by gamma."""
        assert step.wanted is not None
        (fold,), bounds = step.folds, list[SubproblemBounds]()
        for g, supports in step.starts.items():
            if is_expired():
                return Findings(step, tuple(bounds), n_problems=len(bounds), was_stopped=True)
            taus = tuple(np.flatnonzero(step.wanted[g]).tolist())
            bounds.append(show_supports(problems.fold(fold, g), g, taus, fold, supports))
        return Findings(step, tuple(bounds), n_problems=len(bounds))

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the supports that were fitted."""
        for statement in findings.statements:
            assert isinstance(statement, SubproblemBounds)
            numbers = state.cells.pool.numbers(statement.supports)
            state.tried.fitted[statement.gamma, list(statement.taus), statement.folds.start] = numbers

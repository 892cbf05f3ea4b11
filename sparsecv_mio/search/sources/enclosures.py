"""Intervals for held-out losses, without branch-and-bound.

Every fit whose objective is at most that of the incumbent lies in a ball around the ridge fit of all columns. The
interval contains the held-out losses of all fits in this ball.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step, SubproblemBounds


class Enclosures:
    """Source of intervals by ridge balls of single folds, at all gammas and sizes."""

    name: ClassVar[str] = "enclosures"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds that were not enclosed, each with its open pairs among those that are wanted (G, T)."""
        for fold in np.flatnonzero(~state.tried.is_enclosed).tolist() if plan.encloses_folds else ():
            here = wanted & ~state.cells.final[:, :, fold] & np.isfinite(state.objective_upper[:, :, fold])
            if here.any():
                step = Step(self.name, -1, tuple(range(here.shape[1])), (fold,), wanted=here,
                            sizes=tuple(state.context.grid.taus.tolist()),
                            cutoffs=state.objective_upper[:, :, fold].copy())  # fmt: skip
                for g in np.flatnonzero(here.any(axis=1)).tolist():
                    numbers = state.cells.support[g, here[g], fold].tolist()
                    step.starts[g] = tuple(state.cells.pool.supports[number] for number in numbers)
                yield step

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Enclose the held-out losses, gamma by gamma; O(q^3) a gamma."""
        assert step.wanted is not None and step.cutoffs is not None
        (fold,), statements = step.folds, list[SubproblemBounds]()
        for g, supports in step.starts.items():
            if is_expired():
                return Findings(step, tuple(statements), n_problems=len(statements), was_stopped=True)
            taus = np.flatnonzero(step.wanted[g])
            sizes, uppers = [step.sizes[t] for t in taus.tolist()], step.cutoffs[g, taus]
            ends = problems.fold(fold, g).enclose(sizes, uppers, supports, is_expired, relaxes=False)
            bounds = SubproblemBounds.unknown(
                g, tuple(taus.tolist()), slice(fold, fold + 1), 1, (), ("lower", "upper", "objective_lower")
            )  # fmt: skip
            bounds.lower[:, 0], bounds.upper[:, 0] = ends.lower, ends.upper
            bounds.objective_lower[:, 0] = ends.objective_lower
            statements.append(bounds)
        return Findings(step, tuple(statements), n_problems=len(statements))

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note the fold that was enclosed."""
        state.tried.is_enclosed[findings.step.folds[0]] = True

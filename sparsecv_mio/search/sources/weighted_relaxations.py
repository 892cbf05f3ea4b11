"""Lower bounds on the training objective plus the weighted held-out loss of a fold, for all pairs (tau, gamma) at once.

Let V be a lower bound on this sum over all fits, and u an upper bound on the smallest training objective. Then the
held-out loss of the optimum is at least (V - u) / weight (docs/theory/glm.md, section 14).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step, WeightedBounds


class WeightedRelaxations:
    """Source of relaxations of training rows with weighted held-out rows of a fold, at every weight and gamma."""

    name: ClassVar[str] = "weighted relaxations"

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the folds that were not relaxed."""
        if plan.weighs_held_out and wanted.any():
            taus = tuple(range(wanted.shape[1]))
            for fold in range(state.context.folds.k):
                if fold not in state.weighted:
                    yield Step(self.name, -1, taus, (fold,))

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Relax the fold of a step."""
        (fold,) = step.folds
        lower = problems.fold(fold, 0).bound_weighted(is_expired)
        return Findings(step, (WeightedBounds(fold, lower),), n_problems=1)

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note nothing, because the state stores the bounds."""

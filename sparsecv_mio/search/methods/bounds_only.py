"""The answer of the bounds layer alone: Algorithm 1 that stops before its first MIO."""

from __future__ import annotations

from sparsecv_mio.search.methods.algorithm1 import Algorithm1
from sparsecv_mio.search.state.cells import Where


class BoundsOnly(Algorithm1):
    """Phase one of Algorithm 1: every cell bracketed by certified bounds, no branching.

    Proved where the intervals decide the best pair to the gap; a limit with a valid interval otherwise.
    """

    name = "bounds"

    def pick(self) -> list[Where]:
        """No cell is an MIO."""
        return []

    def decide_rest(self) -> None:
        """Nothing: what the bounds leave open stays open."""

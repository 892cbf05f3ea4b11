"""Bounds without branching alone: Algorithm 1 that stops before its first MIO."""

from __future__ import annotations

from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell
from sparsecv_mio.search.state.cells import Where


class BoundsOnly:
    """Phase one of Algorithm 1: every cell bracketed by certified bounds, no branching.

    Proved where the intervals decide the best pair to the gap; a limit with a valid interval otherwise.
    """

    name = "bounds"
    brackets = True
    goes_beyond_proof = False

    def pick(self, by_cell: CellByCell) -> list[Where]:
        """Return nothing: no cell is an MIO."""
        return []

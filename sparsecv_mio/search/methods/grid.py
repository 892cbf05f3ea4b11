"""Grid search, the baseline of the papers: every cell of the grid is an MIO of its own."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell
from sparsecv_mio.search.state.cells import Where


class GridOrder:
    """Every (gamma, tau, fold) in that order; no bounds, no early stop."""

    name = "grid"
    brackets = False
    goes_beyond_proof = True

    def pick(self, by_cell: CellByCell) -> list[Where]:
        """Return the next cells of one pair."""
        left = np.flatnonzero(~by_cell.submitted)[: by_cell.run.context.threads]
        ahead = [tuple(int(i) for i in np.unravel_index(cell, by_cell.submitted.shape)) for cell in left]
        return [(g, t, fold) for g, t, fold in ahead if (g, t) == ahead[0][:2]]

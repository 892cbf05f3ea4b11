"""Algorithm 1 of the paper: bounds without branching first, then one MIO at a time where it matters most.

Phase one brackets every h_j(gamma, tau) by the certified bounds of :mod:`sparsecv_mio.bounds`. Phase two takes the pair
with the least lower bound, its fold with the widest interval, and hands that cell to branch-and-bound, until
`(UB - LB) / UB <= gap` or the budget of MIOs is spent.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell
from sparsecv_mio.search.state.cells import Where


class Algorithm1:
    """The widest open cells of the pair with the least lower bound, or of the reported one where that pair is done."""

    name = "algorithm 1"
    brackets = True
    goes_beyond_proof = True

    def pick(self, by_cell: CellByCell) -> list[Where]:
        """Return the next cells; none once the certificate is closed."""
        state, context = by_cell.run.state, by_cell.run.context
        now = state.bounds()
        if now.proved(context.gap):
            return []
        least = np.unravel_index(int(np.argmin(now.lower)), now.lower.shape)
        for g, t in ((int(least[0]), int(least[1])), now.best):
            folds = np.flatnonzero(by_cell.open[g, t])
            if len(folds):
                width = state.cells.upper[g, t, folds] - state.cells.lower[g, t, folds]
                order = np.argsort(-width, kind="stable")[: context.threads]
                return [(g, t, int(folds[i])) for i in order]
        return []

"""Grid search, the baseline of the papers: every cell of the grid is an MIO of its own."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.search.methods.algorithm1 import OneByOne
from sparsecv_mio.search.state.cells import Where


class GridSearch(OneByOne):
    """Hands every (gamma, tau, fold) to branch-and-bound, in that order; no bounds, no early stop."""

    name = "grid"

    def pick(self) -> list[Where]:
        """The next cells of one pair."""
        left = np.flatnonzero(~self.asked)[: self.threads]
        ahead = [tuple(int(i) for i in np.unravel_index(cell, self.asked.shape)) for cell in left]
        return [(g, t, fold) for g, t, fold in ahead if (g, t) == ahead[0][:2]]

"""Grid search, the baseline of the papers: every cell of the grid is an MIO of its own."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.search.algorithm1 import OneByOne, Where


class GridSearch(OneByOne):
    """Hands every (gamma, tau, fold) to branch-and-bound, in that order; no bounds, no early stop."""

    name = "grid"

    def begin(self) -> None:
        """Heuristic starts only; what they happen to decide is solved all the same."""
        super().begin()
        self.rest = [(int(g), int(t), int(j)) for g, t, j in np.argwhere(~self.asked)]

    def pick(self) -> list[Where]:
        """The next cells of one pair."""
        done = self.mios
        ahead = self.rest[done : done + self.threads]
        return [where for where in ahead if where[:2] == ahead[0][:2]]

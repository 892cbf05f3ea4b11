"""Near-optimal supports on all rows: one branch-and-bound that lists all of them up to a threshold.

What such a list proves of the folds is said in :mod:`sparsecv_mio.search.shared_tree.list_bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.training_loss import ROWS_ROUNDING
from sparsecv_mio.formulation.backends.native.listing import supports_below
from sparsecv_mio.search.options import PATH_TREE_COLUMNS
from sparsecv_mio.search.state.context import AllRows

MOST_LISTED = 1024  # supports worth refitting in every fold
WIDEST_KEEP = 1e-6  # relative rounding of the trees beyond which a threshold on all rows means little in a fold
THRESHOLD_MARGIN = 4.0  # times the rounding that a list's threshold loses


@dataclass(frozen=True, eq=False)
class SupportList:
    """Every support of tau columns with `f <= threshold` on all rows, and perhaps some above it.

    Attributes
    ----------
    supports : tuple of int arrays
    threshold : float
        Rounded down; inf where every support there is is listed.
    """

    supports: tuple[IntArray, ...]
    threshold: float


class NearOptimal:
    """Lists of near-optimal supports on all rows at one gamma, tau by tau.

    Parameters
    ----------
    all_rows : AllRows
    g : int
        Index of gamma.

    Attributes
    ----------
    allowance : float
        Rounding error between values on all rows and values in a fold.
    usable : bool
        Whether the rounding of the trees leaves a threshold any meaning, and the columns are few enough.
    """

    def __init__(self, all_rows: AllRows, g: int) -> None:
        self._all_rows, self._g = all_rows, g
        self.problem, self.form = all_rows.problem(g), all_rows.normal_form(g)
        self.allowance = ROWS_ROUNDING * self.problem.yy
        self.usable = self.form.keep <= WIDEST_KEEP and 0 < self.form.m <= PATH_TREE_COLUMNS

    def margin(self, threshold: float) -> float:
        """How far a threshold must be raised for rounding not to spoil what it is to prove."""
        return THRESHOLD_MARGIN * (self.form.keep * threshold + self.form.slack + self.allowance)

    def below(self, tau: int, threshold: float, budget: int) -> tuple[SupportList | None, int]:
        """List every support of tau columns up to a threshold.

        Where fewer than tau columns vary, only the support of all of them is left.

        Parameters
        ----------
        tau : int
        threshold : float
            On the training objective of all rows.
        budget : int
            Most nodes.

        Returns
        -------
        listed : SupportList or None
            None where the budget, the time or `MOST_LISTED` did not suffice.
        nodes : int
        """
        form, size = self.form, min(tau, self.form.m)
        cutoffs = np.full(form.m + 1, -np.inf)
        cutoffs[size] = threshold
        solved, expired = self._all_rows.solved(self._g), self._all_rows.context.deadline.expired
        found, nodes = supports_below(form, solved, cutoffs, budget, MOST_LISTED, expired)
        if found is None:
            return None, nodes
        supports = tuple(form.columns[mask] for mask in found.get(size, []))
        complete = size in (0, form.m)
        reached = np.inf if complete else threshold * (1.0 - form.keep) - form.slack - self.allowance
        return SupportList(supports, reached), nodes

"""The full-data fit of one gamma at all columns, as the root of the trees that serve all folds."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.formulation.backends.native.path import PathResult
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.shared_tree.leave_out import KEPT_NUMBERS, LeaveOut, ListedSupports, Scores


class TreeRoot:
    """V, beta and f at all columns; leverage and residual norm of every fold there; the folds' incumbents.

    Attributes
    ----------
    floor : float
        f of all columns less the rounding allowance.
    eta, residual : (K,) arrays
        At least the largest eigenvalue of H_NN, and the norm of e_N.
    listed : ListedSupports
        The incumbents, refitted on all rows.
    """

    def __init__(
        self, full: LeaveOut, g: int, problem: SparseProblem, form: NormalForm, best: PathResult, wanted: list[int]
    ) -> None:
        self.full, self.g, self.problem, self.form = full, g, problem, form
        self.V, self.beta, self.value = form.solved()
        self.floor = self.value - form.slack
        self.eta, self.residual = full.leverages(problem, 1e-9 + form.keep)
        self.supports, self.place = full.incumbents(best, wanted)
        more, at = full.proposed(g, wanted, self.supports)
        self.supports, self.place = self.supports + more, self.place + at
        self.listed = ListedSupports.of(problem, self.supports, self.place)
        self._keep = len(full.taus) * full.folds.k <= KEPT_NUMBERS
        self._kept: dict[int, Scores] = {}

    def scores(self, lo: int, hi: int) -> Scores:
        """Scores of the best full-data supports in folds lo..hi; kept where they are not much, to be read only."""
        if lo in self._kept:
            return self._kept[lo]
        everything = np.full((len(self.full.taus), hi - lo), np.inf)
        found = self.full.score(self.listed, self.full.rows(lo, hi), everything, np.full(hi - lo, 0.9999))
        if self._keep:
            self._kept[lo] = found
        return found

    def bars(self, lo: int, hi: int) -> FloatArray:
        """(T, hi - lo): pruning bars of folds lo..hi from the best full-data supports, left out of exactly."""
        return np.asarray(self.scores(lo, hi).best * (1.0 + self.form.keep) + self.form.slack)

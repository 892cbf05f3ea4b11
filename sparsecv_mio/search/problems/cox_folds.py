"""Problems with Cox loss, whose held-out losses are differences of two log partial likelihoods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.parallel import Hands
from sparsecv_mio.problem.cox import risk_sets_of
from sparsecv_mio.problem.risk_sets import RiskSets
from sparsecv_mio.search.problems.protocol import Capability, Fits, IsExpired
from sparsecv_mio.search.problems.smooth import SmoothProblem, SmoothProblems
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.trees.cox_subsets import CoxSubsets, make_cox_columns, make_cox_subsets
from sparsecv_mio.trees.glm_subsets import GlmSubsets, SubsetFits
from sparsecv_mio.units import ACCURATE_RTOL, SUM_RTOL


@dataclass(frozen=True, eq=False)
class CoxFoldProblem(SmoothProblem):
    """The training rows of a fold, or the full data, at one gamma."""

    @property
    def capabilities(self) -> Capability:
        """Capabilities of the problem beyond `solve`, `fit` and `enclose`; none with terms of several columns."""
        return Capability.NONE if self.subsets.terms else Capability.FULL_DATA_RELAXATIONS

    def _negligible(self, objective: FloatArray) -> FloatArray | float:
        return ACCURATE_RTOL / self.data.n * np.where(objective < np.inf, objective, 0.0)

    def _score(self, supports: Sequence[IntArray]) -> tuple[SubsetFits, FloatArray, FloatArray, FloatArray]:
        assert isinstance(self.subsets, CoxSubsets)
        return self.subsets.score_held_out(list(supports), self.find_held_out_rows())

    def score(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports with bounds, which take no longer than fits without them."""
        return self.fit(supports)

    def _bound_open_fold(
        self, subsets: GlmSubsets, size: int, upper: float, is_expired: IsExpired
    ) -> tuple[float, float]:
        assert isinstance(subsets, CoxSubsets)
        return subsets.bound_open_fold(size, upper, self.find_held_out_rows(), is_expired)


class CoxProblems(SmoothProblems):
    """The problems by fold and gamma, which share the columns of all rows; a fold has only its own risk sets."""

    problem_class: ClassVar[type[SmoothProblem]] = CoxFoldProblem

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, n_threads: int = 1, hands: Hands | None = None
    ) -> None:
        super().__init__(data, folds, grid, n_threads, hands)
        self._columns = make_cox_columns(data)
        self._all_rows = risk_sets_of(data.dataset, slice(0, data.n))
        self.slip = SUM_RTOL * self._all_rows.total * float(np.log(max(data.n, 2)) + 1.0)

    def _make_subsets(self, rows: IntArray) -> GlmSubsets:
        return make_cox_subsets(self.data, rows, self._columns)

    def _find_held_out(self, fold: int) -> RiskSets:
        if fold == ALL_ROWS:
            return self._all_rows
        rows = np.union1d(self.folds.train_rows(fold), self.folds.scored_rows(fold))
        return self._all_rows if len(rows) == self.data.n else risk_sets_of(self.data.dataset, rows)

    def _hold_fold_out(self, fold: int) -> None:
        """Return None: every fold has its own risk sets."""

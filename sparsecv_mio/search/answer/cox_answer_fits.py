"""Fits of one support with Cox loss that the parts of an answer need."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.problem.cox import score_statistics
from sparsecv_mio.search.answer.answer_fits import AllRowsFit, SmoothAnswerFits
from sparsecv_mio.trees.cox_subsets import make_cox_columns, make_cox_subsets
from sparsecv_mio.trees.glm_subsets import GlmSubsets


class CoxAnswerFits(SmoothAnswerFits):
    """Fits with Cox loss, of which single rows have no share."""

    has_steps, cost_without_rows = False, np.inf

    def count_numbers(self, size: int) -> int:
        """Return the work of a fit in long precision, which grows with the square of the number of columns."""
        return super().count_numbers(size) * (20 + size * size) // 20

    def fit_without_bounds(self, gamma: float, support: IntArray) -> AllRowsFit:
        """Fit with bounds, which take no longer."""
        return self.fit_support(gamma, None, support)

    def _score_columns(self, rows: IntArray | slice) -> FloatArray:
        return score_statistics(self.data, rows)

    @cached_property
    def whole(self) -> GlmSubsets:
        """The problem of all rows at a gamma of 1, with its risk sets."""
        return make_cox_subsets(self.data, np.arange(self.data.n), make_cox_columns(self.data))

"""Ridge fits of supports from the moments of a problem, with bounds on their rounding errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels.held_out_sums import SupportFits, SupportRows, refit_supports
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import KEEP_RTOL, OUTWARD


@dataclass(frozen=True, eq=False)
class MomentFits:
    """Ridge fits of k supports.

    Attributes
    ----------
    table : (k, top) int array
        The supports; of row r the first `sizes[r]` entries count, the others are 0.
    sizes : (k,) int array
    beta, spread : (k, top) arrays
        Coefficients and a bound on the rounding error of each.
    value, value_error : (k,) arrays
        Training objectives and bounds on their rounding errors; inf where the moments have lost their digits.
    """

    table: IntArray
    sizes: IntArray
    beta: FloatArray
    spread: FloatArray
    value: FloatArray
    value_error: FloatArray

    @property
    def listed(self) -> SupportRows:
        """The supports as the kernels take them."""
        return SupportRows(self.table, self.sizes)

    @property
    def fits(self) -> SupportFits:
        """Coefficients and objectives as the kernels take them."""
        return SupportFits(self.beta, self.spread, self.value, self.value_error)

    def coefficients(self, row: int) -> FloatArray:
        """Coefficients of one support, in its order."""
        return self.beta[row, : self.sizes[row]].copy()


def fit_from_moments(problem: SparseProblem, supports: Sequence[IntArray]) -> MomentFits:
    """Fit supports from the moments of a problem. O(s^3) each."""
    k = len(supports)
    sizes = np.array([len(support) for support in supports], dtype=np.int64)
    table = np.zeros((k, max(int(sizes.max(initial=0)), 1)), dtype=np.int64)
    for row, support in zip(table, supports, strict=True):
        row[: len(support)] = support
    made = MomentFits(table, sizes, np.zeros(table.shape), np.zeros(table.shape), np.empty(k), np.empty(k))
    refit_supports(problem.Q, problem.c, problem.yy, problem.penalty, made.listed, problem.rounding, made.fits)
    return made


def objective_rounding(problem: SparseProblem) -> float:
    """Return a generous bound on the rounding error of training objectives from moments."""
    return OUTWARD * problem.size


def near_tie_margin(problem: SparseProblem, value: float) -> float:
    """Return how far above the best training objective a support may lie and still has to be refitted."""
    return KEEP_RTOL * value + objective_rounding(problem)

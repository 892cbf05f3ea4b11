"""Ridge fits of supports from the moments of a problem, with bounds on their rounding errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels.cluster_relaxation import BoxEnds
from sparsecv_mio.kernels.held_out_sums import RidgeFits, SupportRows, refit_supports
from sparsecv_mio.kernels.restricted_node import refit_in_bounds
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import KEEP_RTOL, OUTWARD

Bounds = tuple[FloatArray, FloatArray]  # lower and upper bounds on coefficients


@dataclass(frozen=True, eq=False)
class MomentFits:
    """Ridge fits of k supports.

    Attributes
    ----------
    table : (k, top) int array
        Supports: the first `sizes[r]` entries of row r, followed by zeros.
    sizes : (k,) int array
        Numbers of columns.
    beta, spread : (k, top) arrays
        Coefficients, and bounds on their rounding errors.
    value, value_error : (k,) arrays
        Training objectives, and bounds on their rounding errors; inf if the moments have no accurate digit left.
    """

    table: IntArray
    sizes: IntArray
    beta: FloatArray
    spread: FloatArray
    value: FloatArray
    value_error: FloatArray

    @property
    def support_rows(self) -> SupportRows:
        """Supports in the form that kernels take."""
        return SupportRows(self.table, self.sizes)

    @property
    def fits(self) -> RidgeFits:
        """Coefficients and objectives in the form that kernels take."""
        return RidgeFits(self.beta, self.spread, self.value, self.value_error)

    def coefficients(self, row: int) -> FloatArray:
        """Return the coefficients of one support, in its order."""
        return self.beta[row, : self.sizes[row]].copy()


def fit_from_moments(problem: SparseProblem, supports: Sequence[IntArray], bounds: Bounds | None = None) -> MomentFits:
    """Return fits of supports from the moments of a problem. O(s^3) for each support of s columns.

    Parameters
    ----------
    problem : SparseProblem
        Problem with the moments.
    supports : sequence of int arrays
        Supports to fit.
    bounds : two (q,) arrays, optional
        Bounds on the coefficients.
    """
    k = len(supports)
    sizes = np.array([len(support) for support in supports], dtype=np.int64)
    table = np.zeros((k, max(int(sizes.max(initial=0)), 1)), dtype=np.int64)
    for row, support in zip(table, supports, strict=True):
        row[: len(support)] = support
    made = MomentFits(table, sizes, np.zeros(table.shape), np.zeros(table.shape), np.empty(k), np.empty(k))
    refit_supports(problem.Q, problem.c, problem.yy, problem.penalty, made.support_rows, problem.rounding, made.fits)
    if bounds is None:
        return made
    ends, unit = BoxEnds(*map(np.ascontiguousarray, bounds)), 2.0 * problem.rounding
    refit_in_bounds(problem.Q, problem.c, problem.yy, problem.penalty, ends, made.support_rows, unit, made.fits)
    return made


def objective_rounding(problem: SparseProblem) -> float:
    """Return a generous bound on the rounding error of training objectives from moments."""
    return OUTWARD * problem.size


def tie_margin(problem: SparseProblem, value: float) -> float:
    """Return the margin above the best training objective within which supports have to be refitted."""
    return KEEP_RTOL * value + objective_rounding(problem)

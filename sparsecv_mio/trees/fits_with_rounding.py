"""Ridge fits of supports from the moments of a problem, with bounds on their rounding errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels.held_out_sums import MOST_LOST, RidgeFits, SupportRows, refit_supports
from sparsecv_mio.kernels.restricted_node import bounded_fit
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

    def crosses(self, bounds: Bounds) -> BoolArray:
        """Return (k,) True where a coefficient may cross its bound, given (q,) bounds that the fits ignore."""
        low, high = (end[self.table] for end in bounds)
        has_column = np.arange(self.table.shape[1]) < self.sizes[:, None]
        crosses = (self.beta - self.spread < low) | (self.beta + self.spread > high)
        return np.asarray((crosses & has_column).any(axis=1))

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
    for i in np.flatnonzero(made.crosses(bounds)).tolist():
        at, size = np.asarray(supports[i], dtype=np.int64), slice(0, sizes[i])
        made.beta[i, size], made.spread[i, size], value = _fit_in_bounds(problem, at, (bounds[0][at], bounds[1][at]))
        made.value[i], made.value_error[i] = value
    return made


def _fit_in_bounds(
    problem: SparseProblem, at: IntArray, bounds: Bounds
) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    """Return coefficients within bounds, their errors, and the objective with its error. O(s^3).

    Let r be the part of the gradient that a step within the bounds can follow, plus the rounding `load` of the
    gradient. The coefficients b are the exact minimiser after a change of c by at most |r|, so `||b - b*||_M` is at
    most `||r||_{M^-1}`, and f(b) exceeds its minimum by at most the square. The rounding of M is treated as in
    `refit_supports`, with twice its unit for the rounding of the bounds.
    """
    M, unit = problem.Q[np.ix_(at, at)] + np.diag(problem.penalty[at]), 2.0 * problem.rounding
    scale = 1.0 / np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))
    M, c, (low, high) = M * scale[:, None] * scale, problem.c[at] * scale, [end / scale for end in bounds]
    b, unknown = np.clip(np.zeros(len(at)), low, high), np.full(len(at), np.inf)
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return b * scale, unknown, (np.inf, np.inf)
    loss = len(at) * unit * float(np.trace(inverse))
    if not (0.0 <= loss <= MOST_LOST and bounded_fit(M, c, low, high, b, len(at))):
        return b * scale, unknown, (np.inf, np.inf)
    off = np.flatnonzero((low < b) & (b < high))
    b[off] += np.linalg.solve(M[np.ix_(off, off)], (c - M @ b)[off])
    b = np.clip(b, low, high)
    slope, size = c - M @ b, np.abs(M) @ np.abs(b)
    value, load = float(problem.yy - (c + slope) @ b), unit * (size + np.abs(c))
    is_kept = ((b <= low) & (slope <= 0.0)) | ((b >= high) & (slope >= 0.0))
    r = np.where(is_kept, 0.0, np.abs(slope)) + load
    excess = float(r @ np.abs(inverse) @ r) / (1.0 - loss)
    spread = np.sqrt(np.diag(inverse) * excess / (1.0 - loss)) * scale
    return b * scale, spread, (value, unit * float(problem.yy + (2.0 * np.abs(c) + size) @ np.abs(b)) + excess)


def objective_rounding(problem: SparseProblem) -> float:
    """Return a generous bound on the rounding error of training objectives from moments."""
    return OUTWARD * problem.size


def tie_margin(problem: SparseProblem, value: float) -> float:
    """Return the margin above the best training objective within which supports have to be refitted."""
    return KEEP_RTOL * value + objective_rounding(problem)

"""Ridge fit of one support from the moments, inside boxes where there are any: the upper bounds of every backend.

Which fit is made where: :mod:`sparsecv_mio.problem.refit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, eigvalsh, solve_triangular
from scipy.optimize import lsq_linear

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import TINY


@dataclass(frozen=True, eq=False)
class Fit:
    """A support with its coefficients.

    Attributes
    ----------
    support : tuple of int
    beta : (s,) array
        Coefficients, inside the boxes.
    objective : float
        `f` at these very coefficients, rounded up: an upper bound whatever the solve did.
    shortfall : float
        Certified bound on how far `objective` is above the best one of this support.
    """

    support: tuple[int, ...]
    beta: FloatArray
    objective: float
    shortfall: float

    def spread(self, q: int) -> FloatArray:
        """(q,) coefficients of all columns, zero outside of the support."""
        beta = np.zeros(q)
        beta[list(self.support)] = self.beta
        return beta


def refit_moments(
    problem: SparseProblem, support: tuple[int, ...], box: tuple[FloatArray, FloatArray] | None = None
) -> Fit:
    """Minimise `f` over the coefficients of one support, inside a box.

    Parameters
    ----------
    problem : SparseProblem
    support : tuple of int
        Chosen columns; the box holds for all of them.
    box : tuple of two (q,) arrays, optional
        `lo <= b <= hi`.

    Returns
    -------
    Fit

    Notes
    -----
    O(s^3). Without a box: Cholesky with one step of iterative refinement, the residual in extended precision. With
    one: bounded least squares on the Cholesky factor (active set), then one exact solve on the coefficients off their
    bounds. Either way the objective is evaluated afresh, and for any feasible b' of the same support

        f(b') >= f(b) + sum_j min_d { h_j d + mu d^2 },   h = 2 (M b - c),  mu = lambda_min(M_SS),

    d over the room left in the box, bounds the shortfall.

    Examples
    --------
    >>> import numpy as np
    >>> p = SparseProblem(np.eye(2), np.array([1.0, 2.0]), 6.0, np.ones(2), 1.0, 5, np.zeros(2), 0.0)
    >>> round(refit_moments(p, (1,)).objective, 12)
    4.0
    """
    S = np.asarray(sorted(support), dtype=np.intp)
    chosen = tuple(int(j) for j in S)
    if S.size == 0:
        return Fit((), np.zeros(0), float(problem.yy), 0.0)
    # power-of-two column units: a penalty weight may span hundreds of orders of magnitude (scale "none")
    unit = 2.0 ** -np.rint(0.5 * np.log2(np.maximum(problem.M[S, S], TINY)))
    M = problem.M[np.ix_(S, S)] * np.outer(unit, unit)
    c = problem.c[S] * unit
    if box is None:
        beta, lo, hi = _solve(M, c), np.full(S.size, -np.inf), np.full(S.size, np.inf)
    else:
        lo, hi = box[0][S] / unit, box[1][S] / unit
        beta = _box_solve(M, c, lo, hi)
    objective = _objective(problem.yy, M, c, beta)
    return Fit(chosen, beta * unit, objective, _shortfall(M, c, beta, lo, hi))


def _objective(yy: float, M: FloatArray, c: FloatArray, beta: FloatArray) -> float:
    """Evaluate `yy - 2c'b + b'Mb` in extended precision, rounded up to the next float."""
    if not beta.any():
        return float(yy)
    b = beta.astype(np.longdouble)
    value = np.longdouble(yy) - b @ (2 * c.astype(np.longdouble) - M.astype(np.longdouble) @ b)
    return max(float(np.nextafter(float(value), np.inf)), 0.0)


def _solve(M: FloatArray, c: FloatArray) -> FloatArray:
    try:
        factor = cho_factor(M, lower=True)
    except np.linalg.LinAlgError:  # gamma = 0 on collinear columns: any least-squares solution will do
        return np.asarray(np.linalg.lstsq(M, c, rcond=None)[0], dtype=np.float64)
    beta = np.asarray(cho_solve(factor, c), dtype=np.float64)
    residual = c.astype(np.longdouble) - M.astype(np.longdouble) @ beta.astype(np.longdouble)
    better = beta + cho_solve(factor, residual.astype(np.float64))
    return np.asarray(better, dtype=np.float64)


def _box_solve(M: FloatArray, c: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Minimise `b'Mb - 2c'b` over `lo <= b <= hi`, M positive definite but for rounding."""
    beta = np.where(lo == hi, lo, 0.0)
    loose = np.flatnonzero(lo < hi)
    if loose.size:
        target = c[loose] - M[np.ix_(loose, np.flatnonzero(lo == hi))] @ beta[lo == hi]
        sub = M[np.ix_(loose, loose)]
        root, rhs = _root(sub, target)
        found = lsq_linear(root, rhs, bounds=(lo[loose], hi[loose]), method="bvls", tol=1e-14)
        beta[loose] = np.clip(found.x, lo[loose], hi[loose])
        free = loose[(beta[loose] > lo[loose]) & (beta[loose] < hi[loose])]
        if free.size:
            held = np.setdiff1d(np.arange(len(c)), free)
            polished = beta.copy()
            polished[free] = _solve(M[np.ix_(free, free)], c[free] - M[np.ix_(free, held)] @ beta[held])
            polished = np.clip(polished, lo, hi)
            if polished @ (M @ polished - 2 * c) <= beta @ (M @ beta - 2 * c):
                beta = polished
    return beta


def _root(M: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return R and d with `R'R = M` and `R'd = c`, as far as columns that are collinear to rounding allow."""
    try:
        factor = cholesky(M, lower=True)
        return factor.T, np.asarray(solve_triangular(factor, c, lower=True))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(M)
        keep = values > len(c) * np.finfo(float).eps * values[-1]
        half = np.sqrt(values[keep])
        return (vectors[:, keep] * half).T, (c @ vectors[:, keep]) / half


def _shortfall(M: FloatArray, c: FloatArray, beta: FloatArray, lo: FloatArray, hi: FloatArray) -> float:
    mu = max(float(eigvalsh(M, subset_by_index=(0, 0))[0]), TINY)
    slope = 2.0 * (M @ beta - c)
    step = np.clip(-slope / (2.0 * mu), lo - beta, hi - beta)
    return float(-np.sum(slope * step + mu * step * step))

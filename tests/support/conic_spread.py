"""The exact conic spread of predictions, by its dual (docs/theory/bounds.md 4)."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.fold import RELAXED_AT_MOST, TIE, FoldBounds
from sparsecv_mio.bounds.relaxation import UnitDiagonal
from sparsecv_mio.kernels import fold_bounds
from sparsecv_mio.kernels.nodes import Incumbents
from sparsecv_mio.kernels.reduced_forms import SHARP_COLUMNS
from sparsecv_mio.problem.problem import SparseProblem


def spread_bound(form: UnitDiagonal, x: FloatArray, tau: int, ubar: float, t: float, b: FloatArray) -> float:
    """Upper bound of `x'b*`, for any t > 0 and any b: weak duality.

        x'b* <= (ubar - D_t(b)) / t,   D_t(b) = yy - b'G b - (tau largest g_j^2 / w_j),   g = c + t x / 2 - G b

    Parameters
    ----------
    form : UnitDiagonal
    x, b : (m,) arrays
        In the units of the form.
    tau : int
    ubar : float
        Every b* covered is tau-sparse with `f(b*) <= ubar`.
    t : float

    Notes
    -----
    The definition in plain numpy, without rounding allowance; `conic_spread` searches t and b.

    Examples
    --------
    >>> from sparsecv_mio.bounds.relaxation import Diagonal, unit_diagonal
    >>> problem = SparseProblem(np.eye(2), np.full(2, 1.5), 4.5, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> form = unit_diagonal(problem, diagonal=Diagonal.PENALTY)
    >>> unit = np.array([0.0, 1.0]) * form.scale                              # predicts beta_2, 0 or 3/4 at the optimum
    >>> bound = spread_bound(form, unit, 1, 3.375, 1.0, np.array([0.25, 0.75]) / form.scale)
    >>> bool(0.75 <= bound < 1.5)
    True
    """
    Gb = form.M @ b - form.w * b
    g = form.c + 0.5 * t * x - Gb
    top = np.sort(g**2 / form.w)[::-1][:tau].sum()
    return float((ubar - (form.yy - b @ Gb - top)) / t)


def conic_spread(
    problem: SparseProblem, V: FloatArray, tau: int, ubar: float, *, screened: bool = True, r: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Certified ends of the predictions `r_mean + (v - v_mean)'beta*` of every optimum.

    Parameters
    ----------
    problem : SparseProblem
    V : (N, q) array
        Rows in standard coordinates.
    tau : int
    ubar : float
        f of a known support of size tau, rounded up.
    screened : bool
        Minimise out what screening fixes; False keeps all columns.
    r : (N,) array, optional
        Targets: ends that say nothing about their sum of squares may be loose.

    Returns
    -------
    lower, upper : (N,) arrays
        Infinite where nothing is known.
    """
    target = np.full(len(V), problem.r_mean) if r is None else r
    fold = FoldBounds(problem, V, target)
    form = fold.form
    lower, upper = np.full(len(V), -np.inf), np.full(len(V), np.inf)
    if form is None or not 0 < tau < fold.m:
        return lower, upper
    X, u = form.rows(problem, V, target)
    fold.best[tau] = ubar
    mode = fold_bounds.DO_ROWS | (fold_bounds.DO_ENDS if r is None else 0) | (fold_bounds.DO_REDUCE if screened else 0)
    out, ends = np.zeros((1, 8)), np.empty((1, len(V), 2))
    asked = fold_bounds.BoundTask(mode, RELAXED_AT_MOST, SHARP_COLUMNS, TIE, form.rounding)
    incumbents = Incumbents(fold.best, fold.supports)
    fold_bounds.bound_fold(form.fold(X, u), np.array([tau], dtype=np.int64), asked, incumbents, out, ends)
    return problem.r_mean + ends[0, :, 0], problem.r_mean + ends[0, :, 1]

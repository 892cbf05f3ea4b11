"""The conic program of a relaxation and its bounds on predictions, by a solver for cones."""

from __future__ import annotations

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.fold import RELAXED_AT_MOST, TIE, FoldBounds
from sparsecv_mio.kernels import fold_bounds
from sparsecv_mio.kernels.nodes import Incumbents
from sparsecv_mio.kernels.reduced_forms import SHARP_COLUMNS
from sparsecv_mio.problem.problem import SparseProblem

Floats = NDArray[np.float64]


def conic_minimum(M: Floats, c: Floats, yy: float, w: Floats, k: int) -> float:
    """`min yy - 2c'b + b'(M - diag(w))b + sum w_j b_j^2 / z_j`, z in [0, 1] with sum at most k, by a conic solver.

    Variables (b, s, z): `w_j s_j` in the objective, `b_j^2 <= s_j z_j` as `||(2 b_j, s_j - z_j)|| <= s_j + z_j`.
    """
    q = len(c)
    P = sparse.block_diag([2.0 * (M - np.diag(w)), sparse.csc_matrix((2 * q, 2 * q))], format="csc")
    linear = np.concatenate([-2.0 * c, w, np.zeros(q)])
    eye, none = sparse.eye(q), sparse.csc_matrix((q, q))
    rows = [sparse.hstack([none, none, eye]), sparse.csc_matrix(np.concatenate([np.zeros(2 * q), np.ones(q)])[None, :])]
    right = [np.ones(q), np.array([float(k)])]
    cones = [clarabel.NonnegativeConeT(q + 1)]
    for j in range(q):
        block = np.zeros((3, 3 * q))
        block[0, [q + j, 2 * q + j]] = -1.0
        block[1, j] = -2.0
        block[2, q + j], block[2, 2 * q + j] = -1.0, 1.0
        rows.append(sparse.csc_matrix(block))
        right.append(np.zeros(3))
        cones.append(clarabel.SecondOrderConeT(3))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sparse.triu(P).tocsc(), linear, sparse.vstack(rows).tocsc(), np.concatenate(right), cones, settings
    )
    return yy + float(solver.solve().obj_val)


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

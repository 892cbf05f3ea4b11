"""The perspective relaxation as a conic program, solved by Clarabel."""

from __future__ import annotations

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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

"""A problem on some columns, others included for certain and minimised out (docs/theory/bounds.md 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import cholesky_in_place, gershgorin
from sparsecv_mio.kernels.forms import Fold, Form


class Normal(NamedTuple):
    """A fold in normal form: its problem, its held-out rows in the same units, and `root_j = 1 / sqrt(w_j)`."""

    form: Form
    X: np.ndarray
    root: np.ndarray


@njit(cache=True, nogil=True)
def reduce_problem(fold, inside, free, w):
    """Eliminate the columns `inside` and drop all columns in neither list.

    Parameters
    ----------
    fold : Fold
    inside, free : int arrays
    w : (f,) array
        A diagonal for what is left; that of the fold stays valid on it.

    Returns
    -------
    left : Fold
        The same objective and residuals as functions of `b_F`, `b_I = M_II^{-1}(c_I - M_IF b_F)` put in.
    ok : bool
        False if `M_II` is not positive definite.

    Notes
    -----
    O(i^3 / 3 + i^2 (f + N) + i f (f + N)).
    """
    M, c, yy, X, u = fold.M, fold.c, fold.yy, fold.X, fold.u
    i = inside.shape[0]
    f = free.shape[0]
    N = X.shape[0]
    width = f + 1 + N
    L = np.empty((i, i))
    A = np.empty((i, width))  # L^{-1} [M_IF, c_I, X_I']
    for a in range(i):
        for e in range(a + 1):
            L[a, e] = M[inside[a], inside[e]]
        for e in range(f):
            A[a, e] = M[inside[a], free[e]]
        A[a, f] = c[inside[a]]
        for e in range(N):
            A[a, f + 1 + e] = X[e, inside[a]]
    ok = cholesky_in_place(L, i)
    out_M = np.empty((f, f))
    out_c = np.empty(f)
    out_X = np.empty((N, f))
    out_u = u.copy()
    if not ok:
        return Fold(out_M, out_c, yy, w, out_X, out_u), False
    for a in range(i):
        for e in range(a):
            s = L[a, e]
            for z in range(width):
                A[a, z] -= s * A[e, z]
        d = 1.0 / L[a, a]
        for z in range(width):
            A[a, z] *= d
    for j in range(f):
        out_c[j] = c[free[j]]
        for e in range(f):
            out_M[j, e] = M[free[j], free[e]]
        for e in range(N):
            out_X[e, j] = X[e, free[j]]
    for a in range(i):
        z = A[a, f]
        yy -= z * z
        for j in range(f):
            s = A[a, j]
            out_c[j] -= s * z
            for e in range(f):
                out_M[j, e] -= s * A[a, e]
            for e in range(N):
                out_X[e, j] -= s * A[a, f + 1 + e]
        for e in range(N):
            out_u[e] -= z * A[a, f + 1 + e]
    return Fold(out_M, out_c, yy, w, out_X, out_u), True


@njit(cache=True, nogil=True)
def normalise(fold):
    """Bring a fold to normal form: columns divided by `sqrt(w)`, `G = M - I`. O(q^2 + N q)."""
    M, c, X, w = fold.M, fold.c, fold.X, fold.w
    q = c.shape[0]
    root = np.empty(q)
    for j in range(q):
        root[j] = 1.0 / np.sqrt(w[j])
    G = np.empty((q, q))
    out_c = np.empty(q)
    out_X = np.empty(X.shape)
    for i in range(q):
        for j in range(q):
            G[i, j] = M[i, j] * root[i] * root[j]
        G[i, i] -= 1.0
        out_c[i] = c[i] * root[i]
        for e in range(X.shape[0]):
            out_X[e, i] = X[e, i] * root[i]
    return Normal(Form(G, out_c, fold.yy, gershgorin(G)), out_X, root)

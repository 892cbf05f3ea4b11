"""Elimination of columns from a problem, and diagonals for tight relaxations (docs/theory/bounds.md, sections 2 and 3).

Every diagonal `w > 0` with `M - diag(w)` positive semidefinite gives a perspective relaxation. A larger w gives a
tighter relaxation. The diagonal w that this module computes is the solution of

    maximise   sharpness * sum_j log w_j + log det(M - diag(w)).

If column j is multiplied by t, w_j is multiplied by t^2, so the relaxation does not depend on the units of the columns.
The larger `sharpness`, the nearer is `sum log w_j` to its maximum.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, gershgorin, gram_of_lower
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.nodes import Fold, Form

SHARPNESS = 20.0
SHARP_COLUMNS = 300  # maximum number of columns for sharpening w, which costs O(f^3)


@njit(cache=True, nogil=True)
def factor_difference(M, w, L):
    """Fill L with the Cholesky factor of `M - diag(w)`; return False if it is not positive definite. O(q^3 / 3).

    Parameters
    ----------
    M : (q, q) array
        Matrix.
    w : (q,) array
        Diagonal.
    L : (q, q) array
        Array whose lower triangle is filled.
    """
    q = M.shape[0]
    for i in range(q):
        for j in range(i):
            L[i, j] = M[i, j]
        L[i, i] = M[i, i] - w[i]
    return cholesky_in_place(L, q)


@njit(cache=True, nogil=True)
def inverse_of_factor(L, T, V):
    """Fill V with the inverse of `L L'`, computing the inverse of L row by row for SIMD. O(q^3).

    Parameters
    ----------
    L : (q, q) array
        Lower-triangular matrix.
    T : (q, q) array
        Work array.
    V : (q, q) array
        Array to fill.
    """
    q = L.shape[0]
    for i in range(q):
        for j in range(i + 1):
            T[i, j] = 0.0
        T[i, i] = 1.0
        for k in range(i):
            a = L[i, k]
            for j in range(k + 1):
                T[i, j] -= a * T[k, j]
        d = 1.0 / L[i, i]
        for j in range(i + 1):
            T[i, j] *= d
    gram_of_lower(T, V)


@njit(cache=True, nogil=True)
def fill_valid_diagonal(M, share, w):
    """Fill w with `share / sum_l |V_jl| sqrt(V_jj / V_ll)`, V the inverse of M; False if M is not positive definite.

    With share <= 1 this w is valid: V scaled to unit diagonal lies under the diagonal of its absolute row sums. O(q^3).

    Parameters
    ----------
    M : (q, q) array
        Matrix.
    share : float
        Factor, at most 1.
    w : (q,) array
        Array to fill.
    """
    q = M.shape[0]
    L = np.empty((q, q))
    T = np.empty((q, q))
    V = np.empty((q, q))
    w[:] = 0.0
    if not factor_difference(M, w, L):
        return False
    inverse_of_factor(L, T, V)
    for j in range(q):
        s = 0.0
        for k in range(q):
            s += abs(V[j, k]) / np.sqrt(V[k, k])
        w[j] = share / (s * np.sqrt(V[j, j]))
    return True


@njit(cache=True, nogil=True)
def sharpen(M, w, sharpness, max_steps):
    """Take Newton steps on the problem of the module from a valid w > 0, in place.

    Parameters
    ----------
    M : (q, q) array
        Matrix.
    w : (q,) array
        Start, `M - diag(w)` positive definite; improved in place and valid on return.
    sharpness : float
        Sharpness.
    max_steps : int
        Maximum number of steps.

    Returns
    -------
    steps : int
        Number of steps; -1 if the start was not valid, and w is then unchanged.

    Notes
    -----
    O(q^3) for each step. w is certified by the factorisation of `M - diag(w)`, which every accepted step has passed.
    """
    q = M.shape[0]
    L = np.empty((q, q))
    T = np.empty((q, q))
    V = np.empty((q, q))
    x = np.empty(q)
    trial = np.empty(q)
    if not factor_difference(M, w, L):
        return -1
    for step in range(max_steps):
        inverse_of_factor(L, T, V)
        for i in range(q):
            x[i] = sharpness / w[i] - V[i, i]
            trial[i] = x[i]
            for j in range(i):
                T[i, j] = V[i, j] * V[i, j]
            T[i, i] = V[i, i] * V[i, i] + sharpness / (w[i] * w[i])
        if not cholesky_in_place(T, q):
            return step
        cholesky_solve(T, x, q)
        decrement = 0.0
        size = 1.0
        for i in range(q):
            decrement += x[i] * trial[i]
            if x[i] < 0.0:
                size = min(size, -0.9 * w[i] / x[i])
        # the steps with a guarantee for self-concordant functions are short, so the full step is tried first
        while True:
            for i in range(q):
                trial[i] = w[i] + size * x[i]
            if factor_difference(M, trial, L):
                break
            size *= 0.5
            if size < 1e-6:
                return step
        for i in range(q):
            w[i] = trial[i]
        if decrement < 0.1:
            return step + 1
    return max_steps


class Normal(NamedTuple):
    """A fold in normal form: its problem, its held-out rows in the same units, and `root_j = 1 / sqrt(w_j)`."""

    form: Form
    X: np.ndarray
    root: np.ndarray


@njit(cache=True, nogil=True)
def reduce_problem(fold, inside, free, w):
    """Return a problem without the columns `inside`, which are minimised out, and without columns in neither list.

    Parameters
    ----------
    fold : Fold
        Problem.
    inside, free : int arrays
        Columns to minimise out, and columns to keep.
    w : (f,) array
        Diagonal for the reduced problem; that of the fold stays valid on it.

    Returns
    -------
    left : Fold
        The same objective and residuals as functions of `b_F`, with `b_I = M_II^{-1}(c_I - M_IF b_F)` inserted.
    lever : (N,) array
        `|M_II^{-1} x_I|_1` of every row: multiplied by the rounding of the moments and the size of a candidate, it
        bounds the error of a residual (docs/theory/bounds.md, section 7).
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
    lever = np.zeros(N)
    if not ok:
        return Fold(out_M, out_c, yy, w, out_X, out_u), lever, False
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
    for a in range(i - 1, -1, -1):
        d = 1.0 / L[a, a]
        for e in range(N):
            A[a, f + 1 + e] *= d
            lever[e] += abs(A[a, f + 1 + e])
        for z in range(a):
            for e in range(N):
                A[z, f + 1 + e] -= L[a, z] * A[a, f + 1 + e]
    return Fold(out_M, out_c, yy, w, out_X, out_u), lever, True


@njit(cache=True, nogil=True)
def normalise(fold):
    """Return a fold in normal form: columns divided by `sqrt(w)`, `G = M - I`. O(q^2 + N q)."""
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

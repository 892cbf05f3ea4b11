"""Small dense linear algebra on the columns of one support, for use inside other kernels."""

import numpy as np

from sparsecv_mio.kernels.jit import njit

EPS = 2.220446049250313e-16  # spacing of floats at 1
LONG = 40  # minimum size of a system with one right side whose inner products are summed in any order


@njit(cache=True, nogil=True)
def copy_vector(source, target):
    """Copy a vector to another; `target[:] = source` would also compile an error message, which takes a second."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@njit(cache=True, nogil=True)
def copy_entries(source, target, places):
    """Copy some entries of a vector to another."""
    for a in range(places.shape[0]):
        target[places[a]] = source[places[a]]


@njit(cache=True, nogil=True)
def add_multiple(t, u, v):
    """Add `t u` to the vector v, in place.

    Indices from 0 to the length let the compiler use vector instructions; a range `begin` to `end` of a longer vector
    would prevent them, so callers pass slices.
    """
    for i in range(v.shape[0]):
        v[i] += t * u[i]


@njit(cache=True, nogil=True)
def times(a, b):
    """Return the entrywise product of two vectors."""
    out = np.empty(a.shape[0])
    for i in range(a.shape[0]):
        out[i] = a[i] * b[i]
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def dot(u, v, size):
    """Return the inner product of the first `size` entries; long ones are summed in the order that is fastest.

    Parameters
    ----------
    u, v : arrays
        Vectors.
    size : int
        Number of entries.
    """
    s = 0.0
    for k in range(size):
        s += u[k] * v[k]
    return s


@njit(cache=True, nogil=True)
def cholesky_in_place(A, size):
    """Overwrite the lower triangle of `A[:size, :size]` by its Cholesky factor; False if not positive.

    O(size^3 / 3).
    """
    for j in range(size):
        s = A[j, j] - dot(A[j], A[j], j)
        if not s > 0.0:
            return False
        d = np.sqrt(s)
        A[j, j] = d
        for i in range(j + 1, size):
            A[i, j] = (A[i, j] - dot(A[i], A[j], j)) / d
    return True


@njit(cache=True, nogil=True)
def solve_lower(L, b, size):
    """Overwrite `b[:size]` by the solution of `L x = b`, L lower triangular. O(size^2).

    Parameters
    ----------
    L : (q, q) array
        Matrix, of which the lower triangle is used.
    b : (q,) array
        Right side, then solution.
    size : int
        Number of entries used.
    """
    if size > LONG:
        for i in range(size):
            b[i] = (b[i] - dot(L[i], b, i)) / L[i, i]
        return
    for i in range(size):
        s = b[i]
        for k in range(i):
            s -= L[i, k] * b[k]
        b[i] = s / L[i, i]


@njit(cache=True, nogil=True)
def subtract_multiples(weights, rows, count, out):
    """Subtract the sum of the first rows of a matrix, each times a weight, from a vector, in place.

    Four rows at a time are read for each entry that is written. The sums have the order of the rows.

    Parameters
    ----------
    weights : array
        Weight of each row.
    rows : matrix
        Rows, of which the first entries are used.
    count : int
        Number of rows.
    out : array
        Vector.
    """
    first = count - count % 4
    for e in range(0, first, 4):
        t, u, v, w = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        a, b, c, d = rows[e], rows[e + 1], rows[e + 2], rows[e + 3]
        for i in range(out.shape[0]):
            out[i] = (((out[i] - t * a[i]) - u * b[i]) - v * c[i]) - w * d[i]
    for e in range(first, count):
        t, a = weights[e], rows[e]
        for i in range(out.shape[0]):
            out[i] -= t * a[i]


@njit(cache=True, nogil=True)
def solve_lower_rows(L, B, size):
    """Overwrite the rows `B[:size]` by the solution of `L X = B`, L lower triangular. O(size^2) for each column of B.

    Parameters
    ----------
    L : (q, q) array
        Matrix, of which the lower triangle is used.
    B : (q, m) array
        Right sides, one in each column, then solutions.
    size : int
        Number of rows used.
    """
    for i in range(size):
        row, d = B[i], L[i, i]
        subtract_multiples(L[i], B, i, row)
        for f in range(row.shape[0]):
            row[f] /= d


@njit(cache=True, nogil=True)
def solve_upper(L, b, size):
    """Overwrite `b[:size]` by the solution of `L' x = b`, L lower triangular. O(size^2).

    Parameters
    ----------
    L : (q, q) array
        Matrix, of which the lower triangle is used.
    b : (q,) array
        Right side, then solution.
    size : int
        Number of entries used.
    """
    for i in range(size - 1, -1, -1):
        b[i] /= L[i, i]
        t, row = b[i], L[i]
        for k in range(i):
            b[k] -= t * row[k]


@njit(cache=True, nogil=True)
def cholesky_solve(L, b, size):
    """Overwrite `b[:size]` by the solution of `L L' x = b`. O(size^2).

    Parameters
    ----------
    L : (q, q) array
        Matrix, of which the lower triangle is used.
    b : (q,) array
        Right side, then solution.
    size : int
        Number of entries used.
    """
    solve_lower(L, b, size)
    solve_upper(L, b, size)


@njit(cache=True, nogil=True)
def invert_lower(L, out, size):
    """Fill the lower triangle of `out[:size, :size]` with the inverse of L, column by column. O(size^3 / 6).

    Parameters
    ----------
    L : (q, q) array
        Lower-triangular matrix.
    out : (q, q) array
        Array to fill.
    size : int
        Number of rows and columns used.
    """
    for j in range(size):
        out[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, size):
            s = 0.0
            for k in range(j, i):
                s -= L[i, k] * out[k, j]
            out[i, j] = s / L[i, i]


@njit(cache=True, nogil=True)
def gram_of_lower(T, out):
    """Fill `out` with `T'T`, T lower triangular: the inverse of `L L'` if T is the inverse of L. O(q^3 / 3)."""
    q = T.shape[0]
    for i in range(q):
        for j in range(i + 1):
            out[i, j] = 0.0
    for k in range(q):
        for i in range(k + 1):
            a = T[k, i]
            for j in range(i + 1):
                out[i, j] += a * T[k, j]
    for i in range(q):
        for j in range(i):
            out[j, i] = out[i, j]


@njit(cache=True, nogil=True)
def gather(M, support, size, out):
    """Fill the lower triangle of `out[:size, :size]` with `M_SS`. O(size^2).

    Parameters
    ----------
    M : (q, q) array
        Symmetric matrix.
    support : int array
        Columns.
    size : int
        Number of columns used.
    out : array
        Array to fill, at least (size, size).
    """
    for a in range(size):
        i = support[a]
        for b in range(a + 1):
            out[a, b] = M[i, support[b]]


@njit(cache=True, nogil=True)
def support_value(M, shift, c, yy, support, size, work, x):
    """Return `yy - c_S' A^{-1} c_S`, `A = M_S + shift I`, and leave `A^{-1} c_S` in `x`; inf if A is not positive.

    O(size^3 / 3).

    Parameters
    ----------
    M : (q, q) array
        Symmetric matrix.
    shift : float
        Number added to the diagonal.
    c, yy : (q,) array, float
        Vector and number of the formula.
    support : int array
        Columns.
    size : int
        Number of columns used.
    work : array
        Work array, at least (size, size), with the Cholesky factor on return.
    x : array
        Array to fill, at least (size,).
    """
    gather(M, support, size, work)
    for a in range(size):
        x[a] = c[support[a]]
        work[a, a] += shift
    if not cholesky_in_place(work, size):
        return np.inf
    cholesky_solve(work, x, size)
    s = yy
    for a in range(size):
        s -= c[support[a]] * x[a]
    return s


@njit(cache=True, nogil=True)
def invert(M):
    """Return the inverse of a symmetric positive definite matrix, and False if it is not positive definite. O(q^3)."""
    q = M.shape[0]
    L = M.copy()
    out = np.zeros((q, q))
    if not cholesky_in_place(L, q):
        return out, False
    T = np.zeros((q, q))
    invert_lower(L, T, q)
    gram_of_lower(T, out)
    return out, True


@njit(cache=True, nogil=True)
def gershgorin(G):
    """Return an upper bound on the largest eigenvalue: the smaller of the largest row sum and the trace. O(f^2)."""
    f = G.shape[0]
    top = 0.0
    trace = 0.0
    for i in range(f):
        s = 0.0
        for j in range(f):
            s += abs(G[i, j])
        top = max(top, s)
        trace += G[i, i]
    return max(min(top, trace), 1e-12)

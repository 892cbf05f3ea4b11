"""The diagonal of the perspective: how much of the curvature of M the relaxation may take.

**Theorem** (docs/theory/bounds.md, sections 1 and 2). With `M = Q + diag(penalty)`, every `w >= 0` for which `M -
diag(w)` is positive semidefinite gives a relaxation `min yy - 2 c'b + b'M b + min_z sum w_j b_j^2 (1 / z_j - 1)` below
every f(S), and a larger w a tighter one. There is no largest w: the choices below differ in what they cost.

========================== ================================================ =======================================
where                      diagonal                                         why that one
========================== ================================================ =======================================
papers, `bounds.printed`,  the penalty                                      as printed; with fewer rows than
folds by rows                                                               columns nothing else is to be had
trees                      `shifted`; for 37 to 400 columns the mean of it  a spectrum is shared by all gammas; one
                           and `own_part`                                   more inversion a problem saves nodes
vendors' models            `shifted`, in units with `M_jj = 1`              well scaled, and one number to prove
bounds of a fold           `kernels.curvature.sharpen`: about the largest   the tightest; some factorisations a
                           sum of logarithms                                fold and gamma, warm from all rows
a fold, from all rows      `without_rows` of the diagonal of all rows       no factorisation
========================== ================================================ =======================================

**Rounding.** `smallest` is lowered by its caller, `smallest_eigenvalue` by four roundings of the trace a column (a
Cholesky factorisation that succeeds shows that no eigenvalue is further below zero: Rump, BIT 46, 2006), `own_part` by
1e-12 of the largest eigenvalue times the columns. What no factorisation of `M - diag(w)` has certified is multiplied by
`1 - DIAGONAL_MARGIN`.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray

DIAGONAL_MARGIN = 1e-9  # share of a diagonal given up for rounding where no factorisation has certified it
EIGENVALUE_ROUNDING = 1e-12  # of the largest eigenvalue, a column
EIGENVALUE_ACCURACY = 1e-3  # relative, of that estimate
SHARES = (0.98, 0.9, 0.6)  # of an estimate of the smallest eigenvalue, tried until a factorisation proves one


def shifted(penalty: FloatArray, smallest: float) -> FloatArray:
    """Return the penalty and a lower bound of the smallest eigenvalue of Q, `Q >= smallest I`.

    Examples
    --------
    >>> shifted(np.array([0.5, 1.0]), 2.0).tolist()
    [2.5, 3.0]
    """
    return penalty + smallest


def smallest_eigenvalue(Q: FloatArray) -> float:
    """Bound the smallest eigenvalue of Q from below: Lanczos on the inverse, proved by a factorisation.

    Parameters
    ----------
    Q : (q, q) array
        Positive semidefinite.

    Returns
    -------
    float
        At least 0, which is all that is known where Q is singular to rounding.

    Notes
    -----
    O(q^3 / 3) twice, a fifth of what all eigenvalues cost.

    Examples
    --------
    >>> round(smallest_eigenvalue(np.diag([2.0, 3.0, 5.0])), 9)
    1.96
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    q, rounding = len(Q), 4.0 * len(Q) * float(np.finfo(float).eps * np.trace(Q))
    try:
        factor = cho_factor(Q, check_finite=False)
        inverse = LinearOperator((q, q), matvec=lambda x: cho_solve(factor, x, check_finite=False), dtype=float)
        largest = eigsh(inverse, k=1, tol=EIGENVALUE_ACCURACY, v0=np.ones(q), return_eigenvectors=False)
    except (LinAlgError, ArpackError):
        return 0.0
    for share in SHARES:
        A = Q.copy()
        A.flat[:: q + 1] -= share / float(largest[0])
        try:
            cholesky(A, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        return max(share / float(largest[0]) - rounding, 0.0)
    return 0.0


def own_part(M: FloatArray) -> FloatArray | None:
    """Return `t / V_jj`, what each column has of its own beside the others; None where M is singular to rounding.

    V is the inverse of M and t the smallest eigenvalue of M in the units where every `V_jj = 1`: then `M >= t I`. It is
    larger than the shifted penalty wherever a column is not nearly a combination of others.

    Parameters
    ----------
    M : (q, q) array

    Notes
    -----
    O(q^3).

    Examples
    --------
    >>> own_part(np.diag([2.0, 3.0])).round(9).tolist()
    [2.0, 3.0]
    """
    try:
        inverse = np.diag(np.linalg.inv(M))
    except np.linalg.LinAlgError:
        return None
    if not np.all((inverse > 0.0) & np.isfinite(inverse)):
        return None
    own = 1.0 / inverse
    scale = 1.0 / np.sqrt(own)
    values = np.linalg.eigvalsh(M * scale[:, None] * scale)
    t = float(values[0]) - EIGENVALUE_ROUNDING * len(M) * float(values[-1])
    return np.asarray(t * own) if t > 0.0 else None


def without_rows(diagonal: FloatArray, leverage: FloatArray) -> FloatArray:
    """Return diagonals that are valid once rows are taken away, one for every fold.

    With H the hat matrix at all columns and `leverage >= lambda_max(H_NN)`, `X_N'X_N <= leverage M`, so that `M -
    X_N'X_N >= (1 - leverage) M >= (1 - leverage) diag(w)`.

    Parameters
    ----------
    diagonal : (q,) array
        Valid on all rows.
    leverage : (K,) array

    Returns
    -------
    (K, q) array
        Less `DIAGONAL_MARGIN`. Not positive, so of no use, where the leverage is 1 or more.

    Examples
    --------
    >>> without_rows(np.array([2.0]), np.array([0.0, 0.5])).round(6).tolist()
    [[2.0], [1.0]]
    """
    return np.asarray(((1.0 - leverage) * (1.0 - DIAGONAL_MARGIN))[:, None] * diagonal)

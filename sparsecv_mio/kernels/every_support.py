"""Enumeration of all supports of one size, for problems without a useful relaxation.

Without a ridge penalty, the relaxation on linearly dependent columns gives no bound. Small supports S may still be well
conditioned, and the condition number of a support bounds its rounding error. Let M be the matrix of the problem, scaled
to a unit diagonal. Let s be the number of columns of S, and `M_SS = L L'` the Cholesky factorisation. The sum of the
eigenvalues of `M_SS` is s, and their product is the product of the `L_ii^2`. Hence the smallest eigenvalue satisfies

    lambda_min(M_SS)  >=  prod L_ii^2 ((s - 1) / s)^(s - 1)  >=  prod L_ii^2 / e.
"""

import math
from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit

LARGEST_ERROR = 0.1  # relative error of f above which a value is not used
LEAST_PIVOT = 1e-30  # replaces a pivot that rounding made zero or negative; the value of the support is not used


class ScannedProblem(NamedTuple):
    """A problem in columns of length 1, and the rounding of its objectives.

    Attributes
    ----------
    M, c, yy : (q, q), (q,), float
        Moments; M has diagonal 1.
    beside : float
        Magnitude to which rounding errors of objectives refer.
    share, slack : float
        Minimum error of f, as a share of f and as a share of `beside`.
    rounding : float
        Relative rounding error of f for each unit of the condition number of `M_SS`.
    """

    M: np.ndarray
    c: np.ndarray
    yy: float
    beside: float
    share: float
    slack: float
    rounding: float


class BestOfSize(NamedTuple):
    """Supports that may be the best of their size.

    Attributes
    ----------
    level : (1,) array
        Upper bound on f of the best support so far; the scan lowers it.
    supports : (room, size) int array
        Supports.
    values, lower : (room,) arrays
        f of each stored support, and a lower bound on its exact f; inf and -inf if rounding hides the value.
    filled : (1,) int array
        Number of stored supports.
    """

    level: np.ndarray
    supports: np.ndarray
    values: np.ndarray
    lower: np.ndarray
    filled: np.ndarray


def new_kept_supports(size, room, level):
    """Return an empty `BestOfSize` for supports of a size."""
    return BestOfSize(
        np.full(1, level), np.empty((room, size), dtype=np.int64), np.empty(room), np.empty(room),
        np.zeros(1, dtype=np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def scan_supports(problem, size, first, kept):
    """Store every support with a given first column that may be the best of its size; return False if `kept` is full.

    Parameters
    ----------
    problem : ScannedProblem
        Problem.
    size : int
        Number of columns of a support, at least 1.
    first : int
        First column.
    kept : BestOfSize
        Stored supports of all first columns so far; changed in place.

    Notes
    -----
    O(1) for each support, plus O(q size) for each support without its last column.
    """
    M, c, yy, beside = problem.M, problem.c, problem.yy, problem.beside
    level, supports, values, lower = kept.level, kept.supports, kept.values, kept.lower
    count = kept.filled[0]
    q = c.shape[0]
    own, left = np.ones((size, q)), np.empty((size, q))
    rows = np.empty((size, q))
    value, det = np.empty(size), np.empty(size)
    chosen = np.zeros(size, dtype=np.int64)
    left[0] = c
    value[0], det[0] = yy, 1.0
    depth = 0
    chosen[0] = first
    while True:
        if depth == size - 1:
            start = chosen[depth]
            end = first + 1 if depth == 0 else q
            for j in range(start, end):
                pivot = max(own[depth, j], LEAST_PIVOT)
                f = max(value[depth] - left[depth, j] * left[depth, j] / pivot, 0.0)
                error = problem.rounding * size * math.e / max(det[depth] * pivot, LEAST_PIVOT)
                low = -np.inf
                if error < LARGEST_ERROR:
                    share = max(error, problem.share)
                    slack = max(0.1 * error, problem.slack) * beside
                    low = f - share * f - slack
                    level[0] = min(level[0], f + share * f + slack)
                else:
                    f = np.inf
                if low > level[0]:
                    continue
                if count == supports.shape[0]:
                    left_over = 0
                    for r in range(count):
                        if lower[r] <= level[0]:
                            supports[left_over], values[left_over], lower[left_over] = supports[r], values[r], lower[r]
                            left_over += 1
                    if 2 * left_over > count:
                        return False
                    count = left_over
                chosen[depth] = j
                supports[count] = chosen
                values[count], lower[count] = f, low
                count += 1
            depth -= 1
            if depth <= 0:
                kept.filled[0] = count
                return True
            chosen[depth] += 1
            continue
        j = chosen[depth]
        if j > q - (size - depth):  # too few columns after it
            depth -= 1
            if depth <= 0:
                kept.filled[0] = count
                return True
            chosen[depth] += 1
            continue
        pivot = max(own[depth, j], LEAST_PIVOT)
        root = math.sqrt(pivot)
        e = left[depth, j] / root
        value[depth + 1], det[depth + 1] = value[depth] - e * e, det[depth] * pivot
        for k in range(j + 1, q):
            x = M[j, k]
            for d in range(depth):
                x -= rows[d, j] * rows[d, k]
            x /= root
            rows[depth, k] = x
            own[depth + 1, k] = own[depth, k] - x * x
            left[depth + 1, k] = left[depth, k] - e * x
        depth += 1
        chosen[depth] = j + 1

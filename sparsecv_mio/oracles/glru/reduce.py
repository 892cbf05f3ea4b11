"""More columns than rows, L2: the same problem in n coordinates, by the factor of `X X'` (the kernel trick as data).

With `X X' = L L'` the rows of L have the inner products of the rows of X, so every problem on some of the rows has the
same predictions, objective, gap and bounds in L as in X, and w is `X' (L')^{-1} v`. One product O(n^2 d), then each
pass costs O(n^2) in place of O(nd).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.oracles.glru.problem import Design, Problem

WIDE = 1.5
"""Columns for each row from which the smaller problem saves more than the product `X X'` costs."""


def reduce(problem: Problem) -> Problem:
    """Return a problem with n columns and the same predictions, or the problem itself where that saves nothing.

    Parameters
    ----------
    problem : Problem
        Reduced when dense, L2, all columns in, and wider than `WIDE` times its rows.

    Returns
    -------
    Problem
        Rows, responses and masks as before; an intercept's column stays the last.

    Notes
    -----
    Inner products carry a relative error of about n eps of the largest squared row norm.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, make_problem
    >>> wide = make_problem([[3.0, 0.0, 4.0, 0.0]], [1.0], Squared(), Regularizer(1.0))
    >>> reduce(wide).design.X.tolist()
    [[5.0]]
    """
    design, regularizer = problem.design, problem.regularizer
    d = regularizer.penalised(design.d)
    if design.sparse or regularizer.l1 > 0.0 or problem.column_mask is not None or d < WIDE * design.n:
        return problem
    return replace(problem, design=Design(_factor(design.X[:, :d]), regularizer.intercept))


def _factor(X: FloatArray) -> FloatArray:
    K = X @ X.T
    try:
        return np.ascontiguousarray(cholesky(K, lower=True, check_finite=False))
    except LinAlgError:
        values, vectors = eigh(K, check_finite=False)
        return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))

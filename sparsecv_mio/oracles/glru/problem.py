"""The regularised empirical risk on some of the rows and columns of one matrix, dense or sparse.

    P(w)     =  (1/n) sum_i l_{y_i}(x_i' w)       +  sum_j rho_j(w_j)
    D(alpha) = -(1/n) sum_i l*_{y_i}(-alpha_i)    -  sum_j rho_j*(x_j' alpha / n)

Rows and columns outside of the problem stay in the matrix: a row that is out has `alpha_i = 0`, which costs nothing as
`l*(0) = 0`, a column that is out has `w_j = 0` and its score `x_j' alpha / n` is read as 0. No fold copies X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray, row_chunks
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.losses import ConjugateLoss
from sparsecv_mio.oracles.penalties import Regularizer

WIDE = 1.5
"""Columns for each row from which the smaller problem saves more than the product `X X'` costs."""


class DesignMatrix:
    """A matrix (n, d), dense or sparse, with its products, single rows and columns, and squared norms.

    Parameters
    ----------
    X : (n, d) array or scipy sparse matrix
        Dense input is used as it is where it is float64 and C-contiguous; sparse input is held by rows and, once a
        column is asked for, by columns.
    intercept : bool
        Append a column of ones.

    Raises
    ------
    BadInput
        If X is not a matrix of finite numbers with at least one row and one column.

    Examples
    --------
    >>> design = DesignMatrix([[3.0, 4.0], [0.0, 1.0]], intercept=True)
    >>> design.d, design.row_sq.tolist(), design.forward(np.array([1.0, 0.0, 2.0])).tolist()
    (3, [26.0, 2.0], [5.0, 2.0])
    """

    def __init__(self, X: Any, intercept: bool = False) -> None:
        self.sparse = hasattr(X, "tocsr")
        if self.sparse:
            import scipy.sparse as sp

            self.X: Any = sp.csr_array(X, dtype=np.float64)
            if intercept:
                ones = sp.csr_array(np.ones((self.X.shape[0], 1)))
                self.X = sp.csr_array(sp.hstack([self.X, ones]))
            values = self.X.data
        else:
            self.X = np.ascontiguousarray(X, dtype=np.float64)
            if self.X.ndim == 2 and intercept:
                self.X = np.hstack([self.X, np.ones((self.X.shape[0], 1))])
            values = self.X
        if self.X.ndim != 2 or min(self.X.shape) == 0:
            raise BadInput(f"X of shape {self.X.shape} must be a matrix with at least one row and one column")
        if not np.isfinite(values).all():
            raise BadInput("X holds a number that is not finite: remove or fill it first")

    @property
    def n(self) -> int:
        """Number of rows of the matrix."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of columns of the matrix, the intercept's included."""
        return int(self.X.shape[1])

    @cached_property
    def row_sq(self) -> FloatArray:
        """(n,) squared norms of the rows over all columns."""
        if self.sparse:
            return np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", self.X, self.X)

    @cached_property
    def column_sq(self) -> FloatArray:
        """(d,) squared norms of the columns over all rows."""
        return self.weighted_column_sq(np.ones(self.n))

    def weighted_column_sq(self, h: FloatArray) -> FloatArray:
        """(d,) `sum_i h_i x_ij^2`, in blocks of rows."""
        if self.sparse:
            return np.asarray(self.X.multiply(self.X).T @ h).ravel()
        out = np.zeros(self.d)
        for rows in row_chunks(self.n, self.d):
            out += h[rows] @ np.square(self.X[rows])
        return out

    @cached_property
    def by_columns(self) -> Any:
        """The matrix with its columns contiguous: a copy."""
        return self.X.tocsc() if self.sparse else np.asfortranarray(self.X)

    def forward(self, w: FloatArray) -> FloatArray:
        """`X w`, (n,) or (n, k)."""
        return np.asarray(self.X @ w)

    def adjoint(self, a: FloatArray) -> FloatArray:
        """`X' a`, (d,)."""
        return np.asarray(self.X.T @ a)

    def rows(self, index: IntArray | slice) -> FloatArray:
        """(k, d) dense rows."""
        block = self.X[index]
        return np.asarray(block.toarray() if self.sparse else block)

    def columns(self, index: IntArray | slice) -> FloatArray:
        """(n, k) dense columns."""
        return np.asarray(self.by_columns[:, index].toarray() if self.sparse else self.X[:, index])


@dataclass(frozen=True, eq=False)
class Problem:
    """`min_w P(w)` over some rows and columns of a :class:`DesignMatrix`.

    Parameters
    ----------
    design : DesignMatrix
        With its column of ones last where `regularizer.intercept`.
    y : (n,) array
        Responses; -1 / +1 for the losses of labels.
    loss : ConjugateLoss
        Of a response and a prediction.
    regularizer : Regularizer
        Of the coefficients.
    row_mask : (n,) bool array, optional
        Rows in the problem; all by default.
    column_mask : (d,) bool array, optional
        Columns in the problem; all by default. An intercept cannot be left out.

    Raises
    ------
    BadInput
        If shapes differ, no row is left, or y is outside of the loss's domain.

    Examples
    --------
    >>> from sparsecv_mio.oracles.losses import Squared
    >>> problem = Problem(DesignMatrix([[1.0], [2.0]]), np.array([1.0, 0.0]), Squared(1.0), Regularizer(1.0))
    >>> problem.primal(np.array([1.0]), np.array([1.0, 2.0])), problem.without_rows([1]).n
    (1.5, 1)
    """

    design: DesignMatrix
    y: FloatArray
    loss: ConjugateLoss
    regularizer: Regularizer
    row_mask: BoolArray | None = None
    column_mask: BoolArray | None = None

    def __post_init__(self) -> None:
        if self.y.shape != (self.design.n,):
            raise BadInput(f"y of shape {self.y.shape} must hold one response for each of the {self.design.n} rows")
        if not np.isfinite(self.y).all():
            raise BadInput("y holds a number that is not finite")
        if self.n == 0:
            raise BadInput("no row is left to fit: keep at least one")
        if self.regularizer.intercept and self.column_mask is not None and not self.column_mask[-1]:
            raise BadInput("the intercept cannot be removed: fit without one instead")
        if self.regularizer.weights is not None:
            raise BadInput("GLRU has no weights of columns: scale the columns instead")
        self.loss.check(self.y)

    @cached_property
    def n(self) -> int:
        """Number of rows in the problem: the n of `P`."""
        return self.design.n if self.row_mask is None else int(np.count_nonzero(self.row_mask))

    @cached_property
    def rows(self) -> IntArray:
        """Positions of the rows in the problem."""
        return np.arange(self.design.n) if self.row_mask is None else np.flatnonzero(self.row_mask)

    @cached_property
    def columns(self) -> IntArray:
        """Positions of the columns in the problem, an intercept's last."""
        return np.arange(self.design.d) if self.column_mask is None else np.flatnonzero(self.column_mask)

    def keep_rows(self, values: FloatArray) -> FloatArray:
        """Return the (n,) values, zero for rows that are not in the problem."""
        return values if self.row_mask is None else np.where(self.row_mask, values, 0.0)

    def keep_columns(self, values: FloatArray) -> FloatArray:
        """Return the (d,) values, zero for columns that are not in the problem."""
        return values if self.column_mask is None else np.where(self.column_mask, values, 0.0)

    def without_rows(self, rows: Any) -> Problem:
        """Return the problem without some of its rows."""
        mask = np.ones(self.design.n, dtype=bool) if self.row_mask is None else self.row_mask.copy()
        mask[rows] = False
        return replace(self, row_mask=mask)

    def primal(self, w: FloatArray, t: FloatArray) -> float:
        """`P(w)` given `t = X w`. O(n + d)."""
        return float(self.keep_rows(self.loss.value(t, self.y)).sum()) / self.n + self.regularizer.value(w)


def weighted_gram(X: Any, h: FloatArray) -> FloatArray:
    """`X' diag(h) X` of a dense or sparse matrix. O(n d^2)."""
    if hasattr(X, "multiply"):
        return np.asarray((X.multiply(h[:, None]).T @ X).toarray())
    root = np.sqrt(h)[:, None] * X
    return np.asarray(root.T @ root)


def make_problem(X: Any, y: Any, loss: ConjugateLoss, regularizer: Regularizer) -> Problem:
    """Return the problem on all rows and columns of X; the regulariser's intercept appends a column of ones.

    Parameters
    ----------
    X : (n, d) array_like or scipy sparse matrix
        Features, used as they are.
    y : (n,) array_like
        Responses; -1 and +1 for a loss on labels.
    loss : ConjugateLoss
        Of a response and a prediction.
    regularizer : Regularizer
        Of the coefficients.

    Returns
    -------
    Problem

    Raises
    ------
    BadInput
        As :class:`DesignMatrix` and :class:`Problem`.

    Examples
    --------
    >>> from sparsecv_mio.oracles.losses import Logistic
    >>> make_problem([[0.0], [1.0]], [-1, 1], Logistic(), Regularizer(1.0, intercept=True)).design.d
    2
    """
    response = np.array(y, dtype=np.float64).ravel()
    return Problem(DesignMatrix(X, regularizer.intercept), response, loss, regularizer)


def reduce(problem: Problem) -> Problem:
    """Return a problem with n columns and the same predictions, or the problem itself where that saves nothing.

    For more columns than rows and L2: with `X X' = L L'` the rows of L have the inner products of the rows of X, so
    every problem on some of the rows has the same predictions, objective, gap and bounds in L as in X, and w is
    `X' (L')^{-1} v` (the kernel trick as data). One product O(n^2 d), then each pass costs O(n^2) in place of O(nd).

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
    >>> wide = make_problem([[3.0, 0.0, 4.0, 0.0]], [1.0], Squared(1.0), Regularizer(1.0))
    >>> reduce(wide).design.X.tolist()
    [[5.0]]
    """
    design, regularizer = problem.design, problem.regularizer
    d = regularizer.penalised(design.d)
    if design.sparse or regularizer.l1 > 0.0 or problem.column_mask is not None or d < WIDE * design.n:
        return problem
    return replace(problem, design=DesignMatrix(_factor(design.X[:, :d]), regularizer.intercept))


def _factor(X: FloatArray) -> FloatArray:
    K = X @ X.T
    try:
        return np.ascontiguousarray(cholesky(K, lower=True, check_finite=False))
    except LinAlgError:
        values, vectors = eigh(K, check_finite=False)
        return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))

"""Fits from moments in plain numpy: one support with bounds on coefficients, many supports, forward selection.

The upper bounds of every backend come from `refit_moments`. This function evaluates the objective of its coefficients
again and rounds it up, so the result is an upper bound on the minimum for any coefficients. `problem.refit` computes
fits from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, eigvalsh, solve_triangular

from sparsecv_mio.arrays import LONG, BoolArray, FloatArray, IntArray, row_chunks
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.problem import SparseProblem, capped_penalty
from sparsecv_mio.units import ROUNDING, TINY
from sparsecv_mio.words import Intercept

# relative rounding of an objective, which matters if long double is no longer than double
SLACK = 16.0 * ROUNDING if np.finfo(LONG).eps == ROUNDING else 0.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A support with its coefficients.

    Attributes
    ----------
    support : tuple of int
        Columns of the support.
    beta : (s,) array
        Coefficients within the boxes.
    objective : float
        Value of `f` at these coefficients, rounded up: an upper bound however they were computed.
    shortfall : float
        Certified bound on the excess of `objective` over the optimum of this support.
    """

    support: tuple[int, ...]
    beta: FloatArray
    objective: float
    shortfall: float

    def spread(self, q: int) -> FloatArray:
        """Return the (q,) coefficients of all columns, zero outside the support."""
        beta = np.zeros(q)
        beta[list(self.support)] = self.beta
        return beta


def refit_moments(
    problem: SparseProblem, support: tuple[int, ...], box: tuple[FloatArray, FloatArray] | None = None
) -> Fit:
    """Return the minimiser of `f` over the coefficients of one support within a box.

    Parameters
    ----------
    problem : SparseProblem
        Problem.
    support : tuple of int
        Chosen columns; the box holds for all of them.
    box : tuple of two (q,) arrays, optional
        Bounds `lo <= b <= hi`.

    Returns
    -------
    Fit
        The minimiser, with a certified bound on its excess.

    Notes
    -----
    O(s^3). Without a box: Cholesky with one step of iterative refinement, the residual in extended precision. With one:
    bounded least squares on the Cholesky factor (active set), then one exact solve on the coefficients off their
    bounds. In both cases the objective is evaluated again, and for any feasible b' of the same support

        f(b') >= f(b) + sum_j min_d { h_j d + mu d^2 },   h = 2 (M b - c),  mu = lambda_min(M_SS),

    with d over the remaining range of the box, bounds the shortfall.

    Examples
    --------
    >>> import numpy as np
    >>> p = SparseProblem(np.eye(2), np.array([1.0, 2.0]), 6.0, np.ones(2), 1.0, 5, np.zeros(2), 0.0)
    >>> round(refit_moments(p, (1,)).objective, 12)
    4.0
    """
    S = np.asarray(sorted(support), dtype=np.intp)
    chosen = tuple(int(j) for j in S)
    if S.size == 0:
        return Fit((), np.zeros(0), float(problem.yy), 0.0)
    # power-of-two column units: a penalty weight may span hundreds of orders of magnitude (scale "none")
    unit = 2.0 ** -np.rint(0.5 * np.log2(np.maximum(problem.M[S, S], TINY)))
    M = problem.M[np.ix_(S, S)] * np.outer(unit, unit)
    c = problem.c[S] * unit
    if box is None:
        beta, lo, hi = _moment_refit_solve(M, c), np.full(S.size, -np.inf), np.full(S.size, np.inf)
    else:
        lo, hi = box[0][S] / unit, box[1][S] / unit
        beta = solve_bounded_squares(M, c, lo, hi)
    objective = _long_objective(problem.yy, M, c, beta)
    return Fit(chosen, beta * unit, objective, _shortfall(M, c, beta, lo, hi))


def _long_objective(yy: float, M: FloatArray, c: FloatArray, beta: FloatArray) -> float:
    """Return `yy - 2c'b + b'Mb`, evaluated in extended precision and rounded up to the next float."""
    if not beta.any():
        return float(yy)
    b = beta.astype(LONG)
    value = LONG(yy) - b @ (2 * c.astype(LONG) - M.astype(LONG) @ b)
    if SLACK:
        value += SLACK * (yy + np.abs(b) @ (2 * np.abs(c) + np.abs(M) @ np.abs(b)))
    return max(float(np.nextafter(float(value), np.inf)), 0.0)


def _moment_refit_solve(M: FloatArray, c: FloatArray) -> FloatArray:
    try:
        factor = cho_factor(M, lower=True)
    except np.linalg.LinAlgError:  # gamma = 0 with collinear columns: any least-squares solution is valid
        return np.asarray(np.linalg.lstsq(M, c, rcond=None)[0], dtype=np.float64)
    beta = np.asarray(cho_solve(factor, c), dtype=np.float64)
    residual = c.astype(LONG) - M.astype(LONG) @ beta.astype(LONG)
    better = beta + cho_solve(factor, residual.astype(np.float64))
    return np.asarray(better, dtype=np.float64)


def solve_bounded_squares(M: FloatArray, c: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Return the minimiser of `b'Mb - 2c'b` over `lo <= b <= hi`; M is positive definite up to rounding."""
    beta = np.where(lo == hi, lo, 0.0)
    loose = np.flatnonzero(lo < hi)
    if loose.size:
        from scipy.optimize import lsq_linear

        target = c[loose] - M[np.ix_(loose, np.flatnonzero(lo == hi))] @ beta[lo == hi]
        sub = M[np.ix_(loose, loose)]
        root, rhs = _root(sub, target)
        solution = lsq_linear(root, rhs, bounds=(lo[loose], hi[loose]), method="bvls", tol=1e-14)
        beta[loose] = np.clip(solution.x, lo[loose], hi[loose])
        free = loose[(beta[loose] > lo[loose]) & (beta[loose] < hi[loose])]
        if free.size:
            fixed = np.setdiff1d(np.arange(len(c)), free)
            polished = beta.copy()
            polished[free] = _moment_refit_solve(M[np.ix_(free, free)], c[free] - M[np.ix_(free, fixed)] @ beta[fixed])
            polished = np.clip(polished, lo, hi)
            if polished @ (M @ polished - 2 * c) <= beta @ (M @ beta - 2 * c):
                beta = polished
    return beta


def _root(M: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return R and d with `R'R = M` and `R'd = c`, as accurately as nearly collinear columns allow."""
    try:
        factor = cholesky(M, lower=True)
        return factor.T, np.asarray(solve_triangular(factor, c, lower=True))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(M)
        keep = values > len(c) * ROUNDING * values[-1]
        half = np.sqrt(values[keep])
        return (vectors[:, keep] * half).T, (c @ vectors[:, keep]) / half


def _shortfall(M: FloatArray, c: FloatArray, beta: FloatArray, lo: FloatArray, hi: FloatArray) -> float:
    mu = max(float(eigvalsh(M, subset_by_index=(0, 0))[0]), TINY)
    slope = 2.0 * (M @ beta - c)
    step = np.clip(-slope / (2.0 * mu), lo - beta, hi - beta)
    return float(-np.sum(slope * step + mu * step * step))


NULL = 1e-12  # share of its curvature below which the residual of a column is rounding


def greedy_columns(
    row: Callable[[int], FloatArray],
    diagonal: FloatArray,
    c: FloatArray,
    most: int,
    first: Sequence[int] | IntArray = (),
) -> Iterator[int]:
    """Yield given columns, then greedily those that lower `yy - c_S' M_S^{-1} c_S` most. O(q most) each, plus the row.

    Parameters
    ----------
    row : callable
        Function that returns a row of M.
    diagonal, c : (q,) arrays
        Diagonal of M, and c.
    most : int
        Maximum number of columns; fewer are yielded if the others are linear combinations of these.
    first : sequence of int, optional
        Columns to yield first.
    """
    correlation, own, least = c.copy(), diagonal.copy(), NULL * diagonal
    rows, open_columns = np.zeros((most, len(c))), np.ones(len(c), dtype=bool)
    for step in range(most):
        gain = np.where((own > least) & open_columns, correlation**2 / np.maximum(own, TINY), -1.0)
        pick = int(first[step]) if step < len(first) else int(np.argmax(gain))
        if gain[pick] < 0.0 and step >= len(first):
            return
        open_columns[pick] = False
        yield pick
        if not own[pick] > least[pick]:  # a given column that is a combination of earlier ones
            continue
        root = np.sqrt(own[pick])
        rows[step] = (row(pick) - rows[:step, pick] @ rows[:step]) / root
        correlation = correlation - rows[step] * (correlation[pick] / root)
        own = own - rows[step] ** 2


def select_forward(M: FloatArray, c: FloatArray, most: int, first: Sequence[int] | IntArray = ()) -> IntArray:
    """Return the columns that `greedy_columns` yields for a matrix. O(q^2 most) at most."""
    return np.array(list(greedy_columns(M.__getitem__, np.diag(M), c, most, first)), dtype=np.int64)


def coefficients_of_sets(problem: SparseProblem, sets: IntArray, penalty: FloatArray) -> FloatArray:
    """Return (L, s) coefficients of the ridge fits of L supports of one size, without error bounds.

    Parameters
    ----------
    problem : SparseProblem
        Problem with the moments; its gamma is ignored.
    sets : (L, s) int array
        Supports.
    penalty : (L, s) array
        Halves of the ridge weights of the columns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If one of the fits is singular to rounding.

    Notes
    -----
    O(L s^3).

    Examples
    --------
    >>> p = SparseProblem(np.eye(2), np.array([1.0, 2.0]), 6.0, np.ones(2), 1.0, 5, np.zeros(2), 0.0)
    >>> coefficients_of_sets(p, np.array([[1], [0]]), np.ones((2, 1))).tolist()
    [[1.0], [0.5]]
    """
    M, at = problem.Q[sets[:, :, None], sets[:, None, :]], np.arange(sets.shape[1])
    M[:, at, at] += penalty
    return np.asarray(np.linalg.solve(M, problem.c[sets][:, :, None])[:, :, 0])


def rows_left_out(
    M: FloatArray, c: FloatArray, sets: IntArray, rows: tuple[FloatArray, FloatArray], share: FloatArray | float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the effect of holding out each of K rows on the fits of L supports of one size, in closed form.

    Let e and h be the residual and the leverage of a row in the full-data fit of a support. Holding out the row lowers
    the objective by `e^2 / (1 - h)`, and the held-out error is `(e / (1 - h))^2` (theory, section 5).

    Parameters
    ----------
    M, c : (q, q), (q,) arrays
        Moments of all rows, with the ridge penalty on the diagonal.
    sets : (L, s) int array
        Supports.
    rows : (K, q), (K,) arrays
        Rows and their responses, in the coordinates of the moments.
    share : float or (K,) array
        Leverage of the intercept.

    Returns
    -------
    fall, residual, leverage : (L,), (L, K), (L, K) arrays
        Decrease `fall` of the squared response by each support, residuals and leverages, without outward rounding.

    Notes
    -----
    O(L s^2 (s + K)).

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0]]), np.array([1.0, 4.0])
    >>> fall, e, h = rows_left_out(X.T @ X, X.T @ y, np.array([[0]]), (X, y), 0.0)
    >>> fall.round(6).tolist(), (e / (1.0 - h)).round(6).tolist()  # without the second row the coefficient is 1
    ([16.2], [[-1.0, 2.0]])
    """
    X, r = rows
    columns, slope = X.T[sets], c[sets]
    inverse = np.linalg.inv(M[sets[:, :, None], sets[:, None, :]])
    beta = (inverse @ slope[:, :, None])[:, :, 0]
    leverage = ((inverse @ columns) * columns).sum(axis=1) + share
    return (slope * beta).sum(axis=1), r - (beta[:, None, :] @ columns)[:, 0, :], leverage


class WeightedRows:
    """All rows, multiplied by the square roots of their weights, with 0 for held-out rows of a fold.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan, optional
        Folds; not needed if the only fold is -1, which trains on all rows.
    """

    def __init__(self, data: StandardData, folds: FoldPlan | None = None) -> None:
        self.data, self.folds = data, folds
        self.centred = data.intercept is Intercept.FOLD

    def products(self, R: FloatArray) -> FloatArray:
        """Return `R V` (m, q) for `R` (m, n), V the standard rows. O(m n q), by BLAS."""
        out: FloatArray | None = None
        for rows in row_chunks(self.data.n, self.data.q):
            product = R[:, rows] @ self.data.rows(rows)[0]
            out = product if out is None else np.add(out, product, out=out)
        assert out is not None
        return out

    def inside(self, folds: Sequence[int]) -> FloatArray:
        """Return an (m, n) array with 1 for the training rows of each fold."""
        out = np.ones((len(folds), self.data.n))
        for line, fold in zip(out, folds, strict=True):
            if fold >= 0:
                assert self.folds is not None
                line[self.folds.left_out(fold)] = 0.0
        return out

    def squares_and_slopes(self, folds: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return (m, q) squared norms of the columns on the training rows, and products with the response.

        With a fold intercept both are about the training means. One pass over the rows.
        """
        inside = self.inside(folds)
        ones = inside if self.data.root is None else inside * self.data.root
        response = self.centre(self.data.targets(slice(None)), inside)
        squares, sums, slopes = (np.zeros((len(folds), self.data.q)) for _ in range(3))
        for rows in row_chunks(self.data.n, self.data.q):
            V = self.data.rows(rows)[0]
            squares += inside[:, rows] @ V**2
            slopes += response[:, rows] @ V
            if self.centred:
                sums += ones[:, rows] @ V
        if self.centred:
            squares -= sums**2 / np.einsum("ij,ij->i", ones, ones)[:, None]
        return np.maximum(squares, 0.0), slopes

    def centre(self, values: FloatArray, inside: FloatArray) -> FloatArray:
        """Return (m, n) values minus their training means (fold intercept), and 0 for held-out rows."""
        out = values * inside
        if self.centred:
            ones, parts = (inside, out) if self.data.root is None else (inside * self.data.root, out * self.data.root)
            out -= ones * (parts.sum(axis=1) / np.einsum("ij,ij->i", ones, ones))[:, None]
        return out


class ForwardSelection:
    """Forward selection in several folds at once, at one gamma; forced columns come first.

    The chosen columns are orthonormalised in the augmented rows `(x_j; sqrt(penalty_j) e_j)`. The product of a
    remaining column with them involves only the data rows, so one product `u V` in each step keeps all gains exact. O(m
    n q) for each step.

    Parameters
    ----------
    rows : WeightedRows
        Weighted rows.
    folds : sequence of m int
        Indices of the folds; -1 trains on all rows.
    squares, slopes : (m, q) arrays
        Results of `WeightedRows.squares_and_slopes`.
    lam : float
        Half of gamma.
    top : int
        Number of columns to choose.

    Attributes
    ----------
    picked : list of m lists of int
        Columns in the order of their choice, without forced columns.
    """

    def __init__(
        self, rows: WeightedRows, folds: Sequence[int], squares: FloatArray, slopes: FloatArray, lam: float, top: int
    ) -> None:
        self.rows, self.top = rows, top
        self.picked: list[list[int]] = [[] for _ in folds]
        self._inside = rows.inside(folds)
        self._response = rows.centre(rows.data.targets(slice(None)), self._inside)
        self._curvature = squares + capped_penalty(lam, rows.data.weight)  # given the chosen columns
        self._null = NULL * self._curvature
        self._slope = slopes.copy()  # product of every column with the residual response
        self._forced = rows.data.forced
        self._basis = np.zeros((len(folds), top + len(self._forced), rows.data.n))

    def pick_columns(self, is_expired: Callable[[], bool]) -> None:
        """Choose `top` columns in each fold; at least one, even after the time limit."""
        for step, j in enumerate(self._forced.tolist()):
            picks = np.full(len(self.picked), j)
            self._pick(step, picks, self._curvature[:, j] > self._null[:, j])
        for picked in self.picked:
            picked.clear()
        for step in range(self.top):
            if step and is_expired():
                return
            gain = self._gains()
            going = gain.max(axis=1, initial=-1.0) >= 0.0
            if not going.any():
                return
            self._pick(step + len(self._forced), gain.argmax(axis=1), going)

    def order(self) -> list[IntArray]:
        """Return all columns by fold: forced columns, chosen columns, then the others by gain."""
        orders = []
        for picked, gain in zip(self.picked, self._gains(), strict=True):
            first = np.concatenate([self._forced, np.array(picked, dtype=np.int64)])
            others = np.argsort(-gain, kind="stable")
            orders.append(np.concatenate([first, others[~np.isin(others, first)]]).astype(np.int64))
        return orders

    def _gains(self) -> FloatArray:
        """(m, q) decrease of the sum of squares by each column, given the chosen ones; -1 if collinear with them."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self._curvature > self._null, self._slope**2 / self._curvature, -1.0)

    def _pick(self, step: int, columns: NDArray[np.intp], going: BoolArray) -> None:
        """Add one column to the basis of each fold."""
        m = len(columns)
        x = self.rows.centre(np.stack([self.rows.data.column(int(j)) for j in columns]), self._inside)
        before = self._basis[:, :step]
        x -= np.einsum("fs,fsn->fn", np.einsum("fsn,fn->fs", before, x), before)
        x *= (going / np.sqrt(np.where(going, self._curvature[np.arange(m), columns], 1.0)))[:, None]
        self._basis[:, step] = x
        share = np.einsum("fn,fn->f", x, self._response)
        products = self.rows.products(x)
        self._slope -= share[:, None] * products
        self._curvature -= products**2
        self._curvature[np.arange(m), columns] = 0.0
        for f in np.flatnonzero(going).tolist():
            self.picked[f].append(int(columns[f]))

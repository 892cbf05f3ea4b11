"""The ridge fit of one support, from the rows or from the moments, with a bound on its rounding.

The same fit is made in three ways, by what is at hand and by what happens to its rounding error:

* `problem.objective.fit`, the definition: from the rows, in the units of the file, in floats or, where these leave
  fewer than nine digits of a residual, in fractions, of many rows in twice the precision. `verify` and the tests
  compute with nothing else.
* `refit_squares`, here: from the rows, in standard coordinates, refined in long precision: what is reported, and where
  the moments lose too many digits. It returns bounds on its rounding errors, computed afterwards from the residual
  left; where these are wider than what tells supports apart, a small fit is made in fractions (`problem.exact_fit`).
* `refit_moments`, here: from the moments, inside boxes where there are any: the upper bounds of every backend. Its
  objective is evaluated afresh and rounded up, an upper bound whatever the solve did; it returns how far above the
  optimum that may be.

The search fits many supports at once by a kernel (`search.fold_fits`), with a bound on every number, and comes here
where that bound is too wide. `certificate.enumeration` and `certificate.exchange` compare supports by closed forms and
let `problem.objective.fit` decide whatever is close. `forward_selection` finds a support where no kernel may be called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, eigvalsh, solve_triangular

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.standard import StandardData, part_of
from sparsecv_mio.problem.exact_fit import EXACT_WORK, ExactFit, fit_exactly
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import TIE_RTOL, TINY
from sparsecv_mio.words import Intercept, Loss

if TYPE_CHECKING:
    from sparsecv_mio.problem.glm_refit import GlmRowFit

LongArray = NDArray[np.longdouble]
LONG = np.longdouble
FINE = 16.0 * float(np.finfo(LONG).eps)  # rounding of a long sum, with room
# of an objective that is only rounded up in the end: where long double is no longer than double, its sums round too
SLACK = FINE if np.finfo(LONG).eps == np.finfo(float).eps else 0.0
ROUNDING = 64.0 * np.finfo(float).eps
REFINING_STEPS = 3  # each multiplies the error by ROUNDING * cond(A)
TOLD = TIE_RTOL / 2.0  # rounding of a number, relatively, from which on a fit in fractions is made, where it is small


@dataclass(frozen=True, eq=False)
class RowFit:
    """A fit in standard coordinates: prediction of a row v, not scaled, is `r_mean + (v_S - v_mean)' beta`.

    `spread` bounds the rounding error of each coefficient, `objective_error` that of the objective.
    """

    data: StandardData
    rows: IntArray | slice  # of training
    gamma: float
    fractions: bool
    support: IntArray
    beta: FloatArray
    spread: FloatArray
    objective: float
    objective_error: float
    v_mean: FloatArray
    r_mean: float
    fine: tuple[LongArray, LongArray, Any]  # beta, v_mean and r_mean in long precision, about `centre`
    centre: tuple[FloatArray, float]  # what is taken off columns and target, in units of the file, before they are
    ball: tuple[FloatArray, float]  # A (s, s) and t: the coefficients are off by A z with `||z|| <= t`, at most

    def held_out(self, data: StandardData, rows: IntArray) -> tuple[float, float]:
        """Weighted sum of squares of the residuals of `rows`, and a bound on its rounding error. O(rows s)."""
        e, slip = self._with_slip(data, rows)
        total = float(e @ e)
        doubt = float(((2.0 * np.abs(e) + slip) * slip).sum()) + np.finfo(float).eps * total
        if not doubt <= TOLD * total and self.exact is not None:
            exact = self._exact_residuals(data, rows)
            total = float(exact @ exact)
            doubt = float(8 + len(exact)) * np.finfo(float).eps * total
        return total, doubt

    def residuals(self, data: StandardData, rows: IntArray) -> FloatArray:
        """(m,) residuals of some rows in standard units, times the roots of their weights."""
        e, slip = self._with_slip(data, rows)
        if not np.linalg.norm(slip) <= TOLD * np.linalg.norm(e) and self.exact is not None:
            return self._exact_residuals(data, rows)
        return np.asarray(e, dtype=float)

    @cached_property
    def exact(self) -> ExactFit | None:
        """The fit in fractions; None where it takes long."""
        data, rows = self.data, np.arange(self.data.n)[self.rows]
        if not self.fractions or len(rows) * len(self.support) ** 2 > EXACT_WORK:
            return None
        unit = [Fraction(float(size)) for size in data.divisor[self.support]]
        weight = [Fraction(float(each)) for each in data.weight[self.support]]
        lam = Fraction(self.gamma) / 2
        penalty = [lam * each * size**2 for each, size in zip(weight, unit, strict=True)]
        about = {Intercept.FOLD: rows, Intercept.GLOBAL: np.arange(data.n)}.get(data.intercept)
        source = data.dataset
        return fit_exactly(
            source.X, source.y, data.columns[self.support].tolist(), penalty, rows, about, source.row_weights
        )

    def _exact_residuals(self, data: StandardData, rows: IntArray) -> FloatArray:
        assert self.exact is not None
        e = self.exact.residuals(data.dataset.X, data.dataset.y, rows) / data.y_unit
        root = data.root_of(rows)
        return e if root is None else e * root

    def _in_fractions(self) -> RowFit:
        """Return it with the numbers of the fit in fractions; as it is where there is none."""
        if self.exact is None:
            return self
        data, size = self.data, self.data.divisor[self.support]
        beta = np.array([float(b) for b in self.exact.beta]) * size / data.y_unit
        objective = float(self.exact.objective / Fraction(data.y_unit) ** 2)
        rounding = 8.0 * np.finfo(float).eps
        exact_fit = replace(
            self, beta=beta, spread=rounding * np.abs(beta), objective=objective, objective_error=rounding * objective
        )
        vars(exact_fit)["exact"] = self.exact  # the cached property
        return exact_fit

    def _with_slip(self, data: StandardData, rows: IntArray) -> tuple[LongArray, LongArray]:
        """Residuals of some rows, and bounds on their rounding errors."""
        V, e, level = self._residuals(data, rows)
        (matrix, length), beta = self.ball, self.fine[0]
        if not np.isfinite(length):
            return e, np.full(len(e), np.inf, dtype=LONG)
        size = np.abs(V)
        # what coefficients that nearly cancel are off cancels too
        reach = np.linalg.norm(V.astype(float) @ matrix, axis=1) + ROUNDING * (size @ np.abs(matrix)).sum(axis=1)
        spread = length * np.linalg.norm(matrix, axis=1) + FINE * np.abs(beta)
        return e, np.minimum(size @ spread, reach * length + FINE * (size @ np.abs(beta))) + level

    def _residuals(self, data: StandardData, rows: IntArray) -> tuple[LongArray, LongArray, LongArray]:
        """Rows of the support about the training means, residuals, and bounds on these that no coefficient causes."""
        beta, v_mean, r_mean = self.fine
        V, r = _long_rows(data, rows, self.support, self.centre)
        level = FINE * (np.abs(r) + np.abs(r_mean) + (np.abs(V) + np.abs(v_mean)) @ np.abs(beta))
        V, r = V - v_mean, r - r_mean
        root = _long_root(data, rows)
        if root is not None:
            V, r, level = V * root[:, None], r * root, level * root
        return V, r - V @ beta, level


def refit_rows(
    data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float, fractions: bool = True
) -> RowFit | GlmRowFit:
    """Fit a support on training rows by the loss of the data, with a bound on its error.

    Parameters
    ----------
    data, rows, support, gamma, fractions
        As for `refit_squares` and `refit_glm`.
    """
    if data.loss is Loss.SQUARED:
        return refit_squares(data, rows, support, gamma, fractions)
    from sparsecv_mio.problem.glm_refit import refit_glm  # loads what squares need not

    return refit_glm(data, rows, support, gamma)


def refit_squares(
    data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float, fractions: bool = True
) -> RowFit:
    """Fit `support` on training rows by QR of `[V_S; sqrt(lam weight)]`, refined in long precision.

    Parameters
    ----------
    data : StandardData
    rows : int array or slice
        Training rows.
    support : (s,) int array
        Columns in standard coordinates.
    gamma : float
    fractions : bool
        Whether a small fit is made in fractions where its digits are lost.

    Notes
    -----
    O(n s^2). The error bounds are a posteriori. With A = [V; sqrt(penalty)] = QR, b = [r; 0], residual e known up to d,
    `beta* - beta = R^{-1} (R^{-T} A'e - Q'd)`, which is at most `||row of R^{-1}|| (||R^{-T} A'e|| + ||d||)`, and
    `f(beta) - f*` is the square of that bracket. Where long double is no longer than double the bounds are wider by the
    ratio of their epsilons, and as valid.
    """
    free = data.intercept is Intercept.FOLD
    center, y_center = data.center[support], data.y_center
    if free:  # any will do: those of these rows cost their spreads no digits
        X = part_of(data.dataset.X, rows, data.columns[support])
        center, y_center = X.mean(axis=0), float(data.dataset.y[rows].mean())
    V, r = _long_rows(data, rows, support, (center, y_center))
    r_mean: Any
    v_mean, r_mean = np.zeros(len(support), dtype=LONG), LONG(0.0)
    root = _long_root(data, rows)
    if free:
        v_mean, r_mean = V.mean(axis=0), r.mean()
        if root is not None:
            share = root * root / (root @ root)
            v_mean, r_mean = share @ V, share @ r
        V, r = V - v_mean, r - r_mean
    if root is not None:
        V, r = V * root[:, None], r * root
    penalty = LONG(gamma) / 2 * data.weight[support].astype(LONG)
    size = np.sqrt((V * V).sum(axis=0) + penalty)
    size[size == 0.0] = 1.0
    V, penalty = V / size, penalty / (size * size)
    beta, spread, (inverse, length) = _solve(V, r, penalty)
    residual = r - V @ beta
    objective = float(residual @ residual + penalty @ (beta * beta))
    load = float(np.abs(residual) @ (np.abs(r) + np.abs(V) @ np.abs(beta)) + penalty @ (beta * beta))
    fine = beta / size
    shift, r_shift = (center - data.center[support]) / data.divisor[support], (y_center - data.y_center) / data.y_unit
    row_fit = RowFit(
        data=data,
        rows=rows,
        gamma=gamma,
        fractions=fractions,
        support=np.asarray(support, dtype=np.int64),
        beta=fine.astype(float),
        spread=(spread / size).astype(float),
        objective=objective,
        objective_error=FINE * load + length**2 + 2.0 * np.finfo(float).eps * objective,
        v_mean=v_mean.astype(float) + shift,
        r_mean=float(r_mean) + r_shift,
        fine=(fine, v_mean, r_mean),
        centre=(center, y_center),
        ball=((inverse / size[:, None]).astype(float), length),
    )
    return row_fit if row_fit.objective_error <= TOLD * objective else row_fit._in_fractions()


def _solve(V: LongArray, r: LongArray, penalty: LongArray) -> tuple[LongArray, LongArray, tuple[FloatArray, float]]:
    """Minimiser of `||r - V b||^2 + b' diag(penalty) b`, bounds on the error of each entry, and `(A, t)`.

    It is off by A z with `||z|| <= t`, and f could still drop by t^2.
    """
    s = V.shape[1]
    if s == 0:
        return np.zeros(0, dtype=LONG), np.zeros(0, dtype=LONG), (np.zeros((0, 0)), 0.0)
    R = np.linalg.qr(np.vstack([V.astype(float), np.diag(np.sqrt(penalty.astype(float)))]), mode="r")
    values = np.linalg.svd(R, compute_uv=False)
    beta = np.zeros(s, dtype=LONG)
    if not values[-1] > ROUNDING * s * values[0]:
        return beta, np.full(s, np.inf, dtype=LONG), (np.zeros((s, s)), np.inf)
    inverse = np.linalg.inv(R)
    for _ in range(1 + REFINING_STEPS):
        g = V.T @ (r - V @ beta) - penalty * beta
        beta = beta + inverse @ (inverse.T @ g.astype(float))
    e = r - V @ beta
    g = V.T @ e - penalty * beta
    blur = float(np.linalg.norm(np.abs(r) + np.abs(V) @ np.abs(beta)))
    load = (np.abs(V).T @ np.abs(e) + penalty * np.abs(beta)).astype(float)
    reach = np.linalg.norm(inverse, axis=1)
    # twice: R is a rounded factor, and its inverse rounded again
    length = 2.0 * (float(np.linalg.norm(inverse.T @ g.astype(float))) + FINE * (float(reach @ load) + blur))
    return beta, (reach * length + FINE * np.abs(beta)).astype(LONG), (inverse, length)


def _long_rows(
    data: StandardData, rows: IntArray | slice, support: IntArray, centre: tuple[FloatArray, float]
) -> tuple[LongArray, LongArray]:
    """`(V_S, r)` of some rows about a centre in long precision, from the numbers of the file; not scaled by weights."""
    columns = data.columns[support]
    X = part_of(data.dataset.X, rows, columns).astype(LONG)
    divisor, offset = (factors[support].astype(LONG) for factors in (data.divisor, data.rest))
    V: LongArray = (X - centre[0].astype(LONG)) / divisor - offset
    r: LongArray = (data.dataset.y[rows].astype(LONG) - LONG(centre[1])) / LONG(data.y_unit) - LONG(data.r_rest)
    return V, r


def _long_root(data: StandardData, rows: IntArray | slice) -> LongArray | None:
    """Roots of the weights of some rows, as the search has them, in long precision; None where each counts once."""
    root = data.root_of(rows)
    return None if root is None else root.astype(LONG)


@dataclass(frozen=True, eq=False)
class Fit:
    """A support with its coefficients.

    Attributes
    ----------
    support : tuple of int
    beta : (s,) array
        Coefficients, inside the boxes.
    objective : float
        `f` at these very coefficients, rounded up: an upper bound whatever the solve did.
    shortfall : float
        Certified bound on how far `objective` is above the best one of this support.
    """

    support: tuple[int, ...]
    beta: FloatArray
    objective: float
    shortfall: float

    def spread(self, q: int) -> FloatArray:
        """(q,) coefficients of all columns, zero outside of the support."""
        beta = np.zeros(q)
        beta[list(self.support)] = self.beta
        return beta


def refit_moments(
    problem: SparseProblem, support: tuple[int, ...], box: tuple[FloatArray, FloatArray] | None = None
) -> Fit:
    """Minimise `f` over the coefficients of one support, inside a box.

    Parameters
    ----------
    problem : SparseProblem
    support : tuple of int
        Chosen columns; the box holds for all of them.
    box : tuple of two (q,) arrays, optional
        `lo <= b <= hi`.

    Returns
    -------
    Fit

    Notes
    -----
    O(s^3). Without a box: Cholesky with one step of iterative refinement, the residual in extended precision. With
    one: bounded least squares on the Cholesky factor (active set), then one exact solve on the coefficients off their
    bounds. Either way the objective is evaluated afresh, and for any feasible b' of the same support

        f(b') >= f(b) + sum_j min_d { h_j d + mu d^2 },   h = 2 (M b - c),  mu = lambda_min(M_SS),

    d over the room left in the box, bounds the shortfall.

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
        beta = _box_solve(M, c, lo, hi)
    objective = _long_objective(problem.yy, M, c, beta)
    return Fit(chosen, beta * unit, objective, _shortfall(M, c, beta, lo, hi))


def _long_objective(yy: float, M: FloatArray, c: FloatArray, beta: FloatArray) -> float:
    """Evaluate `yy - 2c'b + b'Mb` in extended precision, rounded up to the next float."""
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
    except np.linalg.LinAlgError:  # gamma = 0 on collinear columns: any least-squares solution will do
        return np.asarray(np.linalg.lstsq(M, c, rcond=None)[0], dtype=np.float64)
    beta = np.asarray(cho_solve(factor, c), dtype=np.float64)
    residual = c.astype(LONG) - M.astype(LONG) @ beta.astype(LONG)
    better = beta + cho_solve(factor, residual.astype(np.float64))
    return np.asarray(better, dtype=np.float64)


def _box_solve(M: FloatArray, c: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Minimise `b'Mb - 2c'b` over `lo <= b <= hi`, M positive definite but for rounding."""
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
    """Return R and d with `R'R = M` and `R'd = c`, as far as columns that are collinear to rounding allow."""
    try:
        factor = cholesky(M, lower=True)
        return factor.T, np.asarray(solve_triangular(factor, c, lower=True))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(M)
        keep = values > len(c) * np.finfo(float).eps * values[-1]
        half = np.sqrt(values[keep])
        return (vectors[:, keep] * half).T, (c @ vectors[:, keep]) / half


def _shortfall(M: FloatArray, c: FloatArray, beta: FloatArray, lo: FloatArray, hi: FloatArray) -> float:
    mu = max(float(eigvalsh(M, subset_by_index=(0, 0))[0]), TINY)
    slope = 2.0 * (M @ beta - c)
    step = np.clip(-slope / (2.0 * mu), lo - beta, hi - beta)
    return float(-np.sum(slope * step + mu * step * step))


NULL = 1e-12  # of a column's own curvature: what is left of it beside the picks is rounding


def picks(
    row: Callable[[int], FloatArray],
    diagonal: FloatArray,
    c: FloatArray,
    most: int,
    first: Sequence[int] | IntArray = (),
) -> Iterator[int]:
    """Yield some columns, then those that lower `yy - c_S' M_S^{-1} c_S` most, one by one. O(q most) each, and the row.

    Parameters
    ----------
    row : callable
        Gives a row of M.
    diagonal, c : (q,) arrays
        The diagonal of M.
    most : int
        Number of columns, of which there are fewer where the others have nothing of their own.
    first : sequence of int, optional
        Columns that come first.
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
        if not own[pick] > least[pick]:  # comes first, and has nothing beside those before
            continue
        root = np.sqrt(own[pick])
        rows[step] = (row(pick) - rows[:step, pick] @ rows[:step]) / root
        correlation = correlation - rows[step] * (correlation[pick] / root)
        own = own - rows[step] ** 2


def forward_selection(M: FloatArray, c: FloatArray, most: int, first: Sequence[int] | IntArray = ()) -> IntArray:
    """Return what `picks` yields of a matrix. O(q^2 most) at most."""
    return np.array(list(picks(M.__getitem__, np.diag(M), c, most, first)), dtype=np.int64)


def coefficients_of_sets(problem: SparseProblem, sets: IntArray, penalty: FloatArray) -> FloatArray:
    """(L, s) coefficients of the ridge fits of L supports of one size, from moments; as computed, nothing is bounded.

    Parameters
    ----------
    problem : SparseProblem
        Its gamma does not matter.
    sets : (L, s) int array
    penalty : (L, s) array
        Halves of the ridge weights of the columns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If one of the fits has no digits.

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
    """Return what leaving out any one of K rows makes of the fits of L supports of one size, in closed form.

    With e and h, residual and leverage of a row in the fit of a support on all rows, leaving the row out lowers its
    objective by `e^2 / (1 - h)`, and the row's error is then `(e / (1 - h))^2` (theory, section 5).

    Parameters
    ----------
    M, c : (q, q), (q,) arrays
        Moments of all rows, the ridge penalty on the diagonal.
    sets : (L, s) int array
    rows : (K, q), (K,) arrays
        Rows and their responses, in the coordinates of the moments.
    share : float or (K,) array
        What an intercept adds to the leverages.

    Returns
    -------
    fall, residual, leverage : (L,), (L, K), (L, K) arrays
        `fall` is what the support takes off the squared response. As computed: nothing is rounded outwards.

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

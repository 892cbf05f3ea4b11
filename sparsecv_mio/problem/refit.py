"""The ridge fit of one support to the rows, with a bound on its rounding error.

The package has three implementations of this fit, which differ in their input and in their treatment of rounding:

* `problem.objective.fit` is the reference definition of the fit. This function computes in floats, from the rows in
  their original units. If fewer than nine digits of a residual are accurate in floats, it uses exact fractions, or
  twice the precision if there are many rows. `verify` and the tests use no other fit.
* `refit_squares`, in this module, computes the fit from the rows in standard coordinates (docs/notation.md), and
  refines the coefficients in long precision. This function computes the reported numbers, and replaces fits from
  moments that are not accurate enough. `refit_squares` returns bounds on its rounding errors, computed from the
  residual. If these bounds are too wide to distinguish two supports, a fit of few rows and columns is computed again in
  fractions (`problem.beyond_floats`).
* `problem.moment_fits.refit_moments` fits from the moments, within the bounds on coefficients if there are any. The
  upper bounds of every backend come from this function. It evaluates the objective of its coefficients again and rounds
  it up, so the result is an upper bound for any coefficients. `refit_moments` also returns a bound on the excess of the
  result over the minimum.

The search fits many supports at once by a kernel (`search.problems.fold_fits`), with a bound on the error of every
number, and calls this module if a bound is too wide. `certificate.ridge_design` and `certificate.refits` compare
supports by closed forms. If two values are close, these modules compare the fits of `problem.objective.fit`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import FINE, LONG, FloatArray, IntArray, LongArray
from sparsecv_mio.data.standard import StandardData, take_submatrix
from sparsecv_mio.problem.beyond_floats import EXACT_WORK, ExactFit, fit_exactly
from sparsecv_mio.problem.moment_fits import solve_bounded_squares
from sparsecv_mio.units import NO_RIDGE, ROUNDING, TIE_RTOL
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    from sparsecv_mio.problem.cox import CoxRowFit
    from sparsecv_mio.problem.glm_refit import GlmRowFit

SOLVE_ROUNDING = 64.0 * ROUNDING
REFINING_STEPS = 3  # each multiplies the error by SOLVE_ROUNDING * cond(A)
TOLD = TIE_RTOL / 2.0  # relative rounding error from which a small fit is computed in fractions


@dataclass(frozen=True, eq=False)
class RowFit:
    """A fit in standard coordinates: the prediction for an unscaled row v is `r_mean + (v_S - v_mean)' beta`.

    `spread` bounds the rounding error of each coefficient, `objective_error` that of the objective.
    """

    data: StandardData
    rows: IntArray | slice  # training rows
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
    centre: tuple[FloatArray, float]  # centres of the columns and the target, in units of the file
    ball: tuple[FloatArray, float]  # A (s, s) and t: the error of the coefficients is A z with `||z|| <= t`

    def held_out(self, data: StandardData, rows: IntArray) -> tuple[float, float]:
        """Return the weighted sum of squared residuals of `rows`, and a bound on its rounding error. O(rows s)."""
        e, slip = self.residuals_with_errors(data, rows)
        total = float(e @ e)
        doubt = float(((2.0 * np.abs(e) + slip) * slip).sum()) + ROUNDING * total
        if not doubt <= TOLD * total and self.exact is not None:
            exact = self._exact_residuals(data, rows)
            total = float(exact @ exact)
            doubt = float(8 + len(exact)) * ROUNDING * total
        return total, doubt

    def residuals(self, data: StandardData, rows: IntArray) -> FloatArray:
        """Return the (m,) residuals of some rows in standard units, times the roots of their weights."""
        e, slip = self.residuals_with_errors(data, rows)
        if not np.linalg.norm(slip) <= TOLD * np.linalg.norm(e) and self.exact is not None:
            return self._exact_residuals(data, rows)
        return np.asarray(e, dtype=float)

    def predictors(self, data: StandardData, rows: IntArray) -> FloatArray:
        """Return the (m,) predictions of some rows, in units of the file."""
        fitted = (data.of_columns(rows, self.support) - self.v_mean) @ self.beta
        return np.asarray(data.y_center + data.y_unit * (data.r_rest + self.r_mean + fitted))

    @cached_property
    def exact(self) -> ExactFit | None:
        """The fit in fractions; None if it would take long."""
        data, rows = self.data, np.arange(self.data.n)[self.rows]
        if not self.fractions or len(rows) * len(self.support) ** 2 > EXACT_WORK:
            return None
        unit = [Fraction(float(size)) for size in data.divisor[self.support]]
        weight = [Fraction(float(each)) for each in data.weight_of(self.rows)[self.support]]
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

    def _adopt_exact_fit(self) -> RowFit:
        """Return the fit with the numbers of the fit in fractions; unchanged if there is none."""
        if self.exact is None:
            return self
        data, size = self.data, self.data.divisor[self.support]
        beta = np.array([float(b) for b in self.exact.beta]) * size / data.y_unit
        objective = float(self.exact.objective / Fraction(data.y_unit) ** 2)
        rounding = 8.0 * ROUNDING
        error = rounding * objective
        if self.gamma <= NO_RIDGE:  # this gamma stands for 0, at which perfect fits are tied
            error += self.gamma * float(data.weight_of(self.rows)[self.support] @ (beta * beta))
        exact_fit = replace(self, beta=beta, spread=rounding * np.abs(beta), objective=objective, objective_error=error)
        vars(exact_fit)["exact"] = self.exact  # sets the cached property
        return exact_fit

    def residuals_with_errors(self, data: StandardData, rows: IntArray) -> tuple[LongArray, LongArray]:
        """Return the residuals of some rows times the roots of their weights, and bounds on their rounding errors."""
        V, e, level = self._residuals(data, rows)
        (matrix, length), beta = self.ball, self.fine[0]
        if not np.isfinite(length):
            return e, np.full(len(e), np.inf, dtype=LONG)
        size = np.abs(V)
        # the errors of coefficients that nearly cancel also cancel
        reach = np.linalg.norm(V.astype(float) @ matrix, axis=1) + SOLVE_ROUNDING * (size @ np.abs(matrix)).sum(axis=1)
        spread = length * np.linalg.norm(matrix, axis=1) + FINE * np.abs(beta)
        return e, np.minimum(size @ spread, reach * length + FINE * (size @ np.abs(beta))) + level

    def _residuals(self, data: StandardData, rows: IntArray) -> tuple[LongArray, LongArray, LongArray]:
        """Return rows about the training means, residuals, and bounds on residual errors not due to coefficients."""
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
) -> RowFit | GlmRowFit | CoxRowFit:
    """Return the fit of a support to training rows under the loss of the data, with a bound on its error.

    Parameters
    ----------
    data, rows, support, gamma, fractions
        Arguments as for `refit_squares` and `refit_glm`.
    """
    if data.loss.is_quadratic:
        return refit_squares(data, rows, support, gamma, fractions)
    if not data.loss.target.is_sum_over_rows:
        from sparsecv_mio.problem.cox import refit_cox  # other losses do not need this import

        return refit_cox(data, rows, support, gamma)
    from sparsecv_mio.problem.glm_refit import refit_glm  # squared-error loss does not need this import

    return refit_glm(data, rows, support, gamma)


def refit_squares(
    data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float, fractions: bool = True
) -> RowFit:
    """Return the fit of a support to training rows by QR of `[V_S; sqrt(lam weight)]`, refined in long precision.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    rows : int array or slice
        Training rows.
    support : (s,) int array
        Columns in standard coordinates.
    gamma : float
        Ridge weight.
    fractions : bool
        True if a small fit is computed in fractions when floats lose its digits.

    Notes
    -----
    O(n s^2). The error bounds are a posteriori. With A = [V; sqrt(penalty)] = QR, b = [r; 0], residual e known up to d,
    `beta* - beta = R^{-1} (R^{-T} A'e - Q'd)`, which is at most `||row of R^{-1}|| (||R^{-T} A'e|| + ||d||)`, and
    `f(beta) - f*` is the square of that bracket. If long double is no longer than double, the bounds are wider by the
    ratio of the epsilons but remain valid.

    If the data have bounds on coefficients, the fit is the minimiser within these bounds. Its gradient then counts only
    where a step within the bounds lowers f, because `f(b) - f(beta) >= -2 e'A (b - beta) + ||R (b - beta)||^2` for
    every other b. This doubles the bracket, and bounds the error of `beta` in the same way.
    """
    free = data.intercept is Intercept.FOLD
    center, y_center = data.center[support], data.y_center
    if free:  # any centre is valid; the means of these rows keep the digits of the spreads
        X = take_submatrix(data.dataset.X, rows, data.columns[support])
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
    penalty = LONG(gamma) / 2 * data.weight_of(rows)[support].astype(LONG)
    size = np.sqrt((V * V).sum(axis=0) + penalty)
    size[size == 0.0] = 1.0
    V, penalty = V / size, penalty / (size * size)
    ends = _long_ends(data, support, size)
    beta, spread, (inverse, length) = _solve(V, r, penalty, ends)
    residual = r - V @ beta
    objective = float(residual @ residual + penalty @ (beta * beta))
    load = float(np.abs(residual) @ (np.abs(r) + np.abs(V) @ np.abs(beta)) + penalty @ (beta * beta))
    fine = beta / size
    shift, r_shift = (center - data.center[support]) / data.divisor[support], (y_center - data.y_center) / data.y_unit
    row_fit = RowFit(
        data=data,
        rows=rows,
        gamma=gamma,
        fractions=fractions and ends is None,
        support=np.asarray(support, dtype=np.int64),
        beta=fine.astype(float) if ends is None else np.clip(fine.astype(float), *data.support_bounds(support)),
        spread=(spread / size).astype(float),
        objective=objective,
        objective_error=FINE * load + length**2 + 2.0 * ROUNDING * objective,
        v_mean=v_mean.astype(float) + shift,
        r_mean=float(r_mean) + r_shift,
        fine=(fine, v_mean, r_mean),
        centre=(center, y_center),
        ball=((inverse / size[:, None]).astype(float), length),
    )
    is_accurate = ends is not None or (objective < np.inf and row_fit.objective_error <= TOLD * objective)
    return row_fit if is_accurate else row_fit._adopt_exact_fit()


def find_wrong_signs(
    data: StandardData, rows: IntArray | slice, gamma: float, ends: tuple[FloatArray, FloatArray]
) -> Callable[[IntArray], IntArray]:
    """Return a function from a support to its columns whose coefficient, fitted from the rows, has a wrong sign.

    Parameters
    ----------
    data, rows, gamma
        Arguments as for `refit_squares`.
    ends : two (q,) arrays
        Lower and upper bounds on the coefficients. A lower bound of 0 excludes negative coefficients, an upper bound of
        0 positive ones.

    Notes
    -----
    A coefficient within its rounding error of 0 counts as 0, and its sign as wrong. If no bound on this error is known,
    no sign is wrong. O(n s^2) for each support.
    """

    def wrong_signs(support: IntArray) -> IntArray:
        fit = refit_squares(data, rows, support, gamma)
        low, high = (end[support] == 0.0 for end in ends)
        is_wrong = (low & (fit.beta <= fit.spread)) | (high & (fit.beta >= -fit.spread))
        return np.asarray(support[is_wrong & np.isfinite(fit.spread)], dtype=np.int64)

    return wrong_signs


Ends = tuple[LongArray, LongArray]


def _long_ends(data: StandardData, support: IntArray, size: LongArray) -> Ends | None:
    """Return bounds on the coefficients of a support times `size`; None if the data have none on these columns."""
    if data.coefficient_bounds is None:
        return None
    factor = size * data.divisor[support].astype(LONG) / LONG(data.y_unit)
    low, high = data.ends_in_file(data.restrictions)[:, support].astype(LONG) * factor
    return (low, high) if np.isfinite(low).any() or np.isfinite(high).any() else None


def _solve(
    V: LongArray, r: LongArray, penalty: LongArray, ends: Ends | None = None
) -> tuple[LongArray, LongArray, tuple[FloatArray, float]]:
    """Return the minimiser of `||r - V b||^2 + b' diag(penalty) b`, error bounds for its entries, and `(A, t)`.

    Its error is A z with `||z|| <= t`, and f exceeds its minimum by at most t^2. With `ends`, b is between them.
    """
    s = V.shape[1]
    if s == 0:
        return np.zeros(0, dtype=LONG), np.zeros(0, dtype=LONG), (np.zeros((0, 0)), 0.0)
    augmented = np.vstack([V.astype(float), np.diag(np.sqrt(penalty.astype(float)))])
    R = np.asarray(np.linalg.qr(augmented, mode="r"), dtype=float)
    values = np.linalg.svd(R, compute_uv=False)
    beta = np.zeros(s, dtype=LONG)
    if not values[-1] > SOLVE_ROUNDING * s * values[0]:
        return beta, np.full(s, np.inf, dtype=LONG), (np.zeros((s, s)), np.inf)
    inverse = np.linalg.inv(R)
    beta = _refine(V, r, penalty, beta, inverse)
    at_end = ends is not None and not bool(np.all((ends[0] <= beta) & (beta <= ends[1])))
    if ends is not None and at_end:
        beta = _minimise_bounded_squares(V, r, penalty, R, ends)
    e = r - V @ beta
    g = V.T @ e - penalty * beta
    if ends is not None and at_end:
        g[((beta <= ends[0]) & (g <= 0.0)) | ((beta >= ends[1]) & (g >= 0.0))] = 0.0
    blur = float(np.linalg.norm(np.abs(r) + np.abs(V) @ np.abs(beta)))
    load = (np.abs(V).T @ np.abs(e) + penalty * np.abs(beta)).astype(float)
    reach = np.linalg.norm(inverse, axis=1)
    # twice, since the factor R is rounded and its inverse is rounded again
    length = 2.0 * (float(np.linalg.norm(inverse.T @ g.astype(float))) + FINE * (float(reach @ load) + blur))
    length *= 2.0 if at_end else 1.0
    return beta, (reach * length + FINE * np.abs(beta)).astype(LONG), (inverse, length)


def _refine(V: LongArray, r: LongArray, penalty: LongArray, beta: LongArray, inverse: FloatArray) -> LongArray:
    """Return the minimiser without bounds, by refinement from a point."""
    for _ in range(1 + REFINING_STEPS):
        g = V.T @ (r - V @ beta) - penalty * beta
        beta = beta + inverse @ (inverse.T @ g.astype(float))
    return beta


def _minimise_bounded_squares(V: LongArray, r: LongArray, penalty: LongArray, R: FloatArray, ends: Ends) -> LongArray:
    """Return the minimiser within bounds: an active set in floats, corrected in long precision.

    A coefficient that leaves its bounds is set to the bound, and the worst one that a bound keeps from lowering f is
    released, until none is left. O(s) rounds of O(n s^2).
    """
    low, high = (end.astype(float) for end in ends)
    start = solve_bounded_squares(R.T @ R, (V.T @ r).astype(float), low, high)
    beta = np.where(start <= low, ends[0], np.where(start >= high, ends[1], start.astype(LONG)))
    is_fixed = (start <= low) | (start >= high)
    for _ in range(3 * len(beta) + 3):
        free = np.flatnonzero(~is_fixed)
        if len(free):
            augmented = np.vstack([V[:, free], np.diag(np.sqrt(penalty[free]))]).astype(float)
            own = np.linalg.inv(np.linalg.qr(augmented, mode="r"))
            rest = r - V[:, is_fixed] @ beta[is_fixed]
            beta[free] = _refine(V[:, free], rest, penalty[free], beta[free], own)
        is_outside = (beta < ends[0]) | (beta > ends[1])
        beta, is_fixed = np.clip(beta, *ends), is_fixed | is_outside
        if is_outside.any():
            continue
        e = r - V @ beta
        descent = V.T @ e - penalty * beta
        inward = np.where(beta <= ends[0], descent, -descent) * (is_fixed & (ends[0] < ends[1]))
        inward[inward <= FINE * (np.abs(V).T @ np.abs(e) + penalty * np.abs(beta))] = 0.0
        if not inward.any():
            break
        is_fixed[int(np.argmax(inward))] = False
    return np.asarray(beta)


def _long_rows(
    data: StandardData, rows: IntArray | slice, support: IntArray, centre: tuple[FloatArray, float]
) -> tuple[LongArray, LongArray]:
    """Return unscaled `(V_S, r)` of some rows about a centre in long precision, from the numbers of the file."""
    columns = data.columns[support]
    X = take_submatrix(data.dataset.X, rows, columns).astype(LONG)
    divisor, offset = (factors[support].astype(LONG) for factors in (data.divisor, data.rest))
    V: LongArray = (X - centre[0].astype(LONG)) / divisor - offset
    r: LongArray = (data.dataset.y[rows].astype(LONG) - LONG(centre[1])) / LONG(data.y_unit) - LONG(data.r_rest)
    return V, r


def _long_root(data: StandardData, rows: IntArray | slice) -> LongArray | None:
    """Return the square roots of row weights in long precision; None if each row counts once."""
    root = data.root_of(rows)
    return None if root is None else root.astype(LONG)

"""Bounds in closed form: the training-loss bound, bounds implied at other (tau, gamma) pairs, and the ridge ball.

A pair (tau, gamma) is a size tau and a ridge penalty gamma.

**Training-loss bound.** The held-out error of a fold is at least the minimum training objective on all rows minus the
minimum training objective on the training rows of the fold.

**Theorem** (docs/theory.md, section 3). Let f be the training objective on all rows, `f^(-N)` the training objective
without the rows N on which a fold does not train, and `h_N(b)` the sum of squared errors of b on N. For every b,

    f(support of b) <= f(b) = f^(-N)(b) + h_N(b).

Here `f(support of b)` is the minimum of f over all coefficients on the support of b and over the intercept. In
`f^(-N)(b) + h_N(b)`, the intercept is that of the fit without N. Let b be an optimum of the fold with at most tau
nonzero coefficients. Then `f^(-N)(b) <= u` for every feasible value u of the problem of the fold, and

* `h_N(b) >= v - u` for every lower bound v on the minimum of f over supports of tau columns;
* if a list contains *every* support S of tau columns with `f(S) <= T`, the support of b is in the list, or
  `h_N(b) > T - u`.

`training_loss_bound` computes both bounds. If the list is empty, T is a lower bound v. If the fold scores only some
rows of N (`FoldPlan.scores_all_left_out` is False), the bounds do not hold.

**Rounding.** `training_loss_bound` makes no allowance for rounding errors of v, T and u. The caller lowers v or T, and
raises u, by bounds on these errors. If supports with tied objectives count as optimal, the caller also raises u by the
tolerance for ties. The argument `allowances` bounds all other rounding errors. In the table, `keep` and `slack` are the
allowances of a tree for its own rounding errors (`kernels.nodes`).

============================= =================================== ==============================================
caller                        v or T is lowered by                u is raised by
============================= =================================== ==============================================
`bounds.cv_error`             the rounding of the fold bounds     `TIE_RTOL` times u, and the same rounding
trees of a subproblem         the margin of the trees             the error of a refit, and `TIE_RTOL` times u
`left_out_folds.bound_folds`  the margin of the trees, `slack`    `keep`, `slack`
lists with fits in closed     `keep`, `slack`, `ROWS_ROUNDING`    `keep`, `slack`, the error of the closed form
form
lists with refits             `keep`, `slack`, `ROWS_ROUNDING`    the error of a refit, and `TIE_RTOL` times u
============================= =================================== ==============================================

**Held-out weights.** Let `V_t` be a lower bound on the minimum of `f^(-N)(b) + t h_N(b)` over b with at most tau
nonzero coefficients, for a weight t > 0 of the held-out rows. Then `h_N(b) >= (V_t - u) / t` for the optimum b of the
fold (docs/theory/bounds.md, section 10). `held_out_error_bounds` returns the largest of the bounds for the weights in
`LEFT_OUT_WEIGHTS`. The numbers V_t come from :mod:`sparsecv_mio.bounds.more_weight`.

**Other pairs.** Lower bounds on the minimum objective at some pairs (tau, gamma) imply lower bounds at other pairs.

**Lemma.** `f(tau, gamma) = min { ||y - Xb||^2 + (gamma/2) ||b||^2 : ||b||_0 <= tau
}` is nonincreasing in tau. For every tau, `f(tau, gamma)` is concave and nondecreasing in gamma, and at least 0 at
gamma = 0.

*Proof.* A larger tau allows more vectors b. For every b the objective is affine in gamma with slope `||b||^2 / 2 >= 0`.
A minimum of such functions is concave and nondecreasing. At gamma = 0 the objective is a sum of squares.

Therefore a lower bound at tau holds at every smaller tau, and a lower bound at gamma holds at every larger gamma.
Between two gammas, the linear interpolation of their lower bounds is a lower bound. At gamma = 0, the number 0 is a
lower bound.

**Ridge ball.** All coefficient vectors whose objective is at most a given number lie in a ball. The ball gives bounds
on the held-out errors of these vectors.

**Theorem** (docs/theory.md, section 2, with eps = gamma / 2). Let b0 be the ridge fit on *all* columns of the training
rows, Q their Gram matrix and `M = Q + diag(penalty)`. Then `||b - b0||_M^2 = f(b) - f(b0)` for every b. All b with
`f(b) <= ubar`, for any support, therefore lie in the ball of radius `sqrt(ubar - f(b0))` about b0 in the norm of M. For
held-out rows X with targets z, and for all b in the ball,

    | ||z - X b|| - ||z - X b0|| |  <=  radius sqrt(reach),        reach = largest eigenvalue of X M^{-1} X'.

For a single row x, `reach` is `x'M^{-1} x`. A computed centre b0 has a rounding error, which
:mod:`sparsecv_mio.problem.problem` bounds.

**Rounding.** The bounds are widened to cover three rounding errors: those of the centre of the ball, of the objective
at the centre, and of the held-out rows. In the table, `unit` is the relative rounding error of the moments of the
fold, and `load = ||y|| + sum_j sqrt(M_jj) |b0_j|`.

====================== =============================== ===========================================================
code                   centre of the ball              numbers that are widened
====================== =============================== ===========================================================
`RidgeBall`            the ridge fit of a fold, with   `f(b0)` by `unit load^2`, the radius by the residual of the
                       a bound on its error            normal equations, `reach` by the condition of M, rows by
                                                       `unit`
`ball_of_left_out`     not computed; the full-data fit the leverage, the residual and the result, by the caller
                       bounds its residuals
`kernels.level_sets`   the ridge fit on the columns    `ubar` by the allowance for comparing f at two points
                       that remain after screening     (docs/theory/bounds.md 7), eigenvalues by 1e-9
`formulation.task`     the scaled ridge fit; the ball  `ubar` by a margin, the radius by the residual of the
                       bounds coefficients             normal equations and by 1e-6, every bound by 1e-9
====================== =============================== ===========================================================

The kernel `level_sets` computes the minimum and maximum of a quadratic function over the ball exactly (S-lemma), by an
eigendecomposition. This module instead applies the inequality of the ridge-ball theorem: once to all held-out rows
together and, if the rows are available, once to each row. The module returns the tighter of the two bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from sparsecv_mio.arrays import CHUNK_ELEMENTS, FloatArray
from sparsecv_mio.problem.problem import SparseProblem, level_set_radius
from sparsecv_mio.units import OUTWARD, ROUNDING, SUM_RTOL, Interval

ROWS_ROUNDING = 1e-10  # share of y'y: bound on the error of moments, refits and centring in f - f^(-N)
LEFT_OUT_WEIGHTS = 0.05, 0.1, 0.2, 0.4, 0.75, 1.5, 3.0, 6.0, 12.0, 24.0  # weights t of held-out rows


def training_loss_bound(
    all_rows: FloatArray | float, fold: FloatArray | float, *allowances: FloatArray | float
) -> FloatArray:
    """Return a lower bound on the held-out error of every optimum of a fold, `all_rows - fold - allowances`.

    Parameters
    ----------
    all_rows : array or float
        The value v, a certified lower bound of the optimum on all rows for the same gamma and tau; or T, the value up
        to which a list of supports is complete. With T, the bound holds for optima outside of the list.
    fold : array or float
        The value u of a feasible solution of the fold's problem (training rows only). Broadcast against `all_rows`.
    *allowances : array or float
        Rounding errors that `all_rows` and `fold` do not include, subtracted one after the other.

    Returns
    -------
    array
        Lower bound; a negative value gives no information. -inf if u is not finite, that is unknown.

    Examples
    --------
    >>> training_loss_bound(np.array([[5.0], [7.0]]), np.array([4.0, np.inf])).tolist()
    [[1.0, -inf], [3.0, -inf]]
    >>> float(training_loss_bound(5.0, 4.0, 0.25))
    0.75
    """
    finite = np.isfinite(fold)
    everywhere = bool(finite.all())
    bound = np.subtract(all_rows, fold if everywhere else np.where(finite, fold, 0.0))
    for allowance in allowances:
        bound = bound - allowance
    return bound if everywhere else np.where(finite, bound, -np.inf)


def enough_on_all_rows(lower: FloatArray, fold: FloatArray, bar: FloatArray) -> FloatArray:
    """Return the smallest v for which the sum over folds of the larger of two lower bounds reaches a cutoff.

    Parameters
    ----------
    lower : (..., K) array
        Lower bounds of the held-out errors, from any method.
    fold : (..., K) array
        Values u of `training_loss_bound`; inf if unknown.
    bar : (...) array
        Cutoff that `sum_N max(lower_N, v - u_N)` must reach; inf if no value suffices.

    Returns
    -------
    (...) array
        The v; 0 if `lower` suffices, inf if no v does.

    Examples
    --------
    >>> enough_on_all_rows(np.array([[0.0, 2.0]]), np.array([[5.0, 4.0]]), np.array([3.0])).tolist()
    [6.0]
    """
    if lower.ndim > 1 and lower.size > CHUNK_ELEMENTS:  # one pair at a time: the arrays below are large
        return np.array([enough_on_all_rows(*of_one) for of_one in zip(lower, fold, bar, strict=True)])
    is_below = np.sum(lower, axis=-1) < bar
    enough = np.zeros(is_below.shape)
    lower, fold, bar = lower[is_below], fold[is_below], np.asarray(bar)[is_below]
    start = lower + fold  # for v above this value, v - u is the larger bound
    order = np.arange(len(start))[:, None], np.argsort(start, axis=-1, kind="stable")
    start, lower, fold = start[order], lower[order], fold[order]
    lower_sum, usable = np.sum(lower, axis=-1, keepdims=True), np.isfinite(fold)
    rests = np.subtract.accumulate(np.concatenate([lower_sum, lower], axis=-1), axis=-1)[..., 1:]
    totals = np.cumsum(np.where(usable, fold, 0.0), axis=-1)
    v = (bar[..., None] - rests + totals) / np.arange(1, lower.shape[-1] + 1)
    enough[is_below] = np.min(np.where(usable & (v >= start), v, np.inf), axis=-1, initial=np.inf)
    return enough


def held_out_error_bounds(implied: FloatArray, values: FloatArray) -> FloatArray:
    """Return (G, T) lower bounds on h from lower bounds (W, G, T) on `f + t h` and u (inf if unknown)."""
    usable, weights = np.isfinite(values) & (implied > 0.0), np.reshape(LEFT_OUT_WEIGHTS, (-1, 1, 1))
    rises = np.where(usable, implied - np.where(np.isfinite(values), values, 0.0), 0.0)
    return np.asarray(np.maximum((rises / weights).max(axis=0), 0.0))


def implied_lower_bounds(gammas: FloatArray, lower: FloatArray) -> FloatArray:
    """Return for every pair the largest lower bound of f that the bounds at all pairs imply by the lemma.

    Parameters
    ----------
    gammas : (G,) array
        Ascending, positive ridge weights.
    lower : (G, T) array
        Certified lower bounds of f, at least 0; columns in the order of rising tau.

    Returns
    -------
    (G, T) array
        Lower bounds, at least `lower`.

    Notes
    -----
    O(G T).

    Examples
    --------
    >>> gammas, known = np.array([1.0, 2.0, 3.0]), np.array([[4.0, 2.0], [0.0, 0.0], [6.0, 1.0]])
    >>> implied_lower_bounds(gammas, known).round(6).tolist()
    [[4.0, 2.0], [5.0, 2.0], [6.0, 2.0]]
    """
    best = np.maximum.accumulate(lower[:, ::-1], axis=1)[:, ::-1]
    x = np.append(0.0, gammas)
    rising = np.vstack([np.zeros(best.shape[1]), np.maximum.accumulate(best, axis=0)])
    places = x.tolist()
    for column, values in enumerate(rising.T.tolist()):
        corners = _upper_corners(places, values)
        chords = np.interp(gammas, x[corners], rising[corners, column]) * (1.0 - SUM_RTOL)
        best[:, column] = np.maximum(np.maximum(best[:, column], rising[1:, column]), chords)
    return np.asarray(best)


def _upper_corners(x: list[float], y: list[float]) -> list[int]:
    """Return the corners of the smallest concave function above some points, x ascending."""
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return corners


WORST_CONDITION = 0.01  # maximum of condition of M x relative rounding; beyond, the centre has no accurate digit


@dataclass(frozen=True, eq=False)
class Centre:
    """Ridge fit on all columns with bounds on its error.

    Attributes
    ----------
    beta : (q,) array
        Coefficients.
    factor : (q, q) array
        Lower Cholesky factor of M.
    value : float
        Lower bound of f at `beta`.
    off : float
        Upper bound on the norm of the error of `beta`, see :func:`~sparsecv_mio.problem.problem.level_set_radius`.
    widening : float
        Relative widening of numbers computed with the factor.
    """

    beta: FloatArray
    factor: FloatArray
    value: float
    off: float
    widening: float

    @property
    def objective_lower_bound(self) -> float:
        """Lower bound of f at any coefficients."""
        return max(self.value - self.off**2, 0.0)

    @classmethod
    def from_problem(cls, problem: SparseProblem, unit: float) -> Centre | None:
        """Return the fit from moments of relative rounding `unit`; None if these have no accurate digit. O(q^3).

        With `s_j^2` the diagonal of M^{-1} and `length_j^2` that of M, `|v_j| <= s_j` if `v'M v = 1`. Errors of the
        entries of M of at most `unit length_i length_j` therefore change `v'M v` by at most the share `unit condition`
        of it, `condition = (length's)^2`. Errors of c and M change the slope at `beta` by a vector whose norm in M^{-1}
        is at most `unit load sqrt(condition)`. As `Q <= r M` for the largest eigenvalue r of `X M^{-1} X'`, an error of
        held-out moments Q changes r by at most the share `unit condition`.
        """
        length = np.sqrt(np.diag(problem.M))
        try:
            factor = cholesky(problem.M, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            return None
        spread = np.linalg.norm(solve_triangular(factor, np.diag(length), lower=True), axis=0)
        condition = float(spread.sum()) ** 2
        if not unit * condition < WORST_CONDITION:
            return None
        beta = cho_solve((factor, True), problem.c)
        load = float(np.sqrt(problem.yy) + length @ np.abs(beta))
        residual = problem.c - problem.M @ beta
        off = float(np.linalg.norm(solve_triangular(factor, residual, lower=True))) + unit * load * np.sqrt(condition)
        value = float(problem.yy - problem.c @ beta - residual @ beta) - unit * load**2
        widening = 1.0 + 3.0 * unit * condition
        return cls(beta, factor, value, off * widening, widening)


@dataclass(frozen=True, eq=False)
class RidgeBall:
    """The ridge ball of one fold and gamma, for every level.

    Attributes
    ----------
    value, off, least : float
        Values of the centre, see `Centre`.
    norm, reach : float
        The norm `||u - X b0||`, and an upper bound on the largest eigenvalue of `X M^{-1} X'`.
    slip : (m,) array
        Rounding errors of the residuals, row by row; that of their norm alone if the rows are not available.
    rows : pair of (m,) arrays, optional
        Residuals `|u - X b0|` and upper bounds on `x'M^{-1} x`, row by row.

    Examples
    --------
    >>> problem = SparseProblem(np.eye(1), np.array([2.0]), 4.5, np.ones(1), 1.0, 9, np.zeros(1), 0.0)
    >>> ball = RidgeBall.from_rows(problem, np.array([[1.0]]), np.array([3.0]), 1e-15)
    >>> found = ball.held_out(3.0)  # f(b0) = 2.5 at b0 = 1, so (b - 1)^2 <= 1/4
    >>> round(float(found.lower), 6), round(float(found.upper), 6)
    (2.25, 6.25)
    """

    value: float
    off: float
    least: float
    norm: float
    reach: float
    slip: FloatArray
    rows: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def from_rows(
        cls, problem: SparseProblem, X: FloatArray, u: FloatArray, unit: float, level: FloatArray | None = None
    ) -> RidgeBall | None:
        """Return the ball of a fold from its held-out rows; None if nothing can be proved.

        Parameters
        ----------
        problem : SparseProblem
            Problem of the training rows.
        X, u : (m, q), (m,) arrays
            Held-out rows and targets about the training means.
        unit : float
            Relative rounding of the moments and of the rows.
        level : (q + 1,) array, optional
            Sizes of the means of the columns and, last, of the target that were subtracted from the rows.

        Notes
        -----
        O(q^3 + m q^2).
        """
        centre = Centre.from_problem(problem, unit)
        if centre is None:
            return None
        residual = np.abs(u - X @ centre.beta)
        half = solve_triangular(centre.factor, X.T, lower=True)
        with np.errstate(over="ignore"):
            each = centre.widening * np.einsum("ij,ij->j", half, half)
        if not np.isfinite(each.sum()):  # a column is constant in training and has nearly no penalty
            return None
        small = len(u) <= 2 * problem.q
        largest = centre.widening * float(np.linalg.eigvalsh(half.T @ half)[-1]) if small else float(each.sum())
        slip = unit * (np.abs(u) + np.abs(X) @ np.abs(centre.beta)) + _mean_rounding(level, centre.beta)
        length = float(np.linalg.norm(residual))
        return cls(centre.value, centre.off, centre.objective_lower_bound, length, largest, slip, (residual, each))

    @classmethod
    def from_moments(
        cls, problem: SparseProblem, Q: FloatArray, c: FloatArray, yy: float, unit: float,
        level: FloatArray | None = None, count: int = 0,
    ) -> RidgeBall | None:  # fmt: skip
        """Return the ball of a fold from the moments of its held-out rows; None if nothing can be proved.

        Parameters
        ----------
        problem : SparseProblem
            Problem of the training rows.
        Q, c, yy : (q, q), (q,), float
            Moments of the held-out rows about the training means.
        unit : float
            Relative rounding of all moments.
        level : (q + 1,) array, optional
            Sizes of the means of the columns and, last, of the target that were subtracted from the rows.
        count : int
            Number of held-out rows.

        Notes
        -----
        O(q^3).
        """
        centre = Centre.from_problem(problem, unit)
        if centre is None:
            return None
        beta = centre.beta
        size = float(np.sqrt(yy) + np.sqrt(np.diag(Q)) @ np.abs(beta))
        norm = float(np.sqrt(max(float(yy - 2.0 * c @ beta + beta @ Q @ beta), 0.0)))
        reach = centre.widening * float(eigh(Q, problem.M, eigvals_only=True)[-1])
        slip = np.sqrt(unit) * size + np.sqrt(count) * _mean_rounding(level, beta)
        return cls(centre.value, centre.off, centre.objective_lower_bound, norm, reach, np.array([slip]))

    def held_out(self, upper: float) -> Interval:
        """Return the interval of the held-out sum of squares of every b with `f(b) <= upper`."""
        if not np.isfinite(upper):
            return Interval(0.0, np.inf)
        radius = level_set_radius(upper - self.value, self.off)
        move = radius * float(np.sqrt(max(self.reach, 0.0))) + float(np.linalg.norm(self.slip))
        low, high = max(self.norm - move, 0.0) ** 2, (self.norm + move) ** 2
        if self.rows is not None:
            residual, each = self.rows
            moves = radius * np.sqrt(each) + self.slip
            low = max(low, float((np.maximum(residual - moves, 0.0) ** 2).sum()))
            high = min(high, float(((residual + moves) ** 2).sum()))
        return Interval(low * (1 - OUTWARD), high * (1 + OUTWARD))


def _mean_rounding(level: FloatArray | None, beta: FloatArray) -> float:
    """Return the rounding error of a residual that comes from subtracting means: 4 ulps of their size."""
    return 0.0 if level is None else 4.0 * ROUNDING * float(level[-1] + level[:-1] @ np.abs(beta))


def ball_of_left_out(
    room: FloatArray, residual: tuple[FloatArray, FloatArray], leverage: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on the held-out error of every b in the ridge ball of a fold, from the full data.

    The held-out residuals of the fold's ridge fit are `(I - H_NN)^{-1} e_N`. Their norm is therefore at least that of
    e_N, and at most that of e_N divided by `1 - leverage`. The `reach` of the ball is at most `leverage / (1 -
    leverage)` (docs/theory.md, section 5, with A all columns).

    Parameters
    ----------
    room : array
        Upper bounds on `ubar - f^(-N)(b0)`, the squared radius; negative values count as 0.
    residual : two arrays
        Lower and upper bounds on the norm of e_N, the held-out residuals of the full-data fit.
    leverage : array
        Upper bounds on the largest eigenvalue of `H_NN`.

    Returns
    -------
    lower, upper : arrays
        Bounds without rounding: the caller rounds outward. A leverage of 1 or more gives no bound.

    Examples
    --------
    >>> length = np.array([1.0, 3.0])
    >>> ball_of_left_out(np.array([1.0, 1.0]), (length, length), np.array([0.0, 0.5]))
    (array([1., 4.]), array([ 1., 49.]))
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = np.sqrt(np.maximum(room, 0.0) * leverage / (1.0 - leverage))
        return np.maximum(residual[0] - reach, 0.0) ** 2, (residual[1] / (1.0 - leverage) + reach) ** 2

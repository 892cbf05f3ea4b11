"""The ridge ball: what every fit with an objective up to a level predicts for the rows left out.

**Theorem** (docs/theory.md, section 2, with eps = lam). With b0 the ridge fit on *all* columns and `M = Q +
diag(penalty)`, `||b - b0||_M^2 = f(b) - f(b0)` for every b. So all b with `f(b) <= ubar`, whatever their support, lie
in the ball of radius `sqrt(ubar - f(b0))` about b0, and for held-out rows X with targets u

    | ||u - X b|| - ||u - X b0|| |  <=  radius sqrt(reach),        reach = largest eigenvalue of X M^{-1} X',

row by row with `x'M^{-1} x` in place of `reach`. A centre that is not exact: :mod:`sparsecv_mio.problem.level_set`.

**Rounding.** Bounds are widened by what is known of the rounding of the centre, its value and the rows.

===================== =============================== ============================================================
where                 centre                          what is widened
===================== =============================== ============================================================
here, `RidgeBall`     the ridge fit of a fold, with   `f(b0)` by `unit load^2`, the radius by the residual of the
                      a bound on its error            normal equations, `reach` by the condition, rows by `unit`
`ball_of_left_out`    never computed: bounds of it    the caller raises leverage and residual, and the result
                      from the fit on all rows
kernels `ridge_ball`  the ridge fit of what screening `ubar` by the allowance of a comparison of f at two points
                      leaves, within the fold bounds  (docs/theory/bounds.md 7), eigenvalues by 1e-9
`formulation.bigm`    the scaled ridge fit; bounds    the level by a margin, the radius by the residual of the
                      coefficients, not predictions   normal equations and 1e-6, every end by 1e-9
===================== =============================== ============================================================

The kernel takes the extremes of a quadratic over the ball exactly (S-lemma), by an eigen-decomposition; here the
triangle inequality and single rows have to do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.fold import OUTWARD
from sparsecv_mio.problem.level_set import level_set_radius
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import Interval

WORST_CONDITION = 0.01  # of M, times its relative rounding: beyond, the centre has lost its digits


@dataclass(frozen=True, eq=False)
class Centre:
    """Ridge fit on all columns with bounds on its error.

    Attributes
    ----------
    beta : (q,) array
    factor : (q, q) array
        Lower Cholesky factor of M.
    value : float
        At most f at `beta`.
    off : float
        At least the norm of the error of `beta`, see :func:`~sparsecv_mio.problem.level_set.level_set_radius`.
    widening : float
        Of what is computed by the factor, relative.
    """

    beta: FloatArray
    factor: FloatArray
    value: float
    off: float
    widening: float

    @classmethod
    def of(cls, problem: SparseProblem, unit: float) -> Centre | None:
        """Fit from moments of relative rounding `unit`; None where they have lost their digits. O(q^3)."""
        length = np.sqrt(np.diag(problem.M))
        try:
            factor = cholesky(problem.M, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            return None
        spread = solve_triangular(factor, np.diag(length), lower=True)
        condition = float(np.einsum("ij,ij->", spread, spread))
        if not unit * condition < WORST_CONDITION:
            return None
        beta = cho_solve((factor, True), problem.c)
        load = float(np.sqrt(problem.yy) + length @ np.abs(beta))
        left = problem.c - problem.M @ beta
        return cls(
            beta=beta,
            factor=factor,
            value=float(problem.yy - problem.c @ beta - left @ beta) - unit * load**2,
            off=float(np.linalg.norm(solve_triangular(factor, left, lower=True))) + unit * load * np.sqrt(condition),
            widening=1.0 + 1e-9 + 8.0 * unit * condition,
        )


@dataclass(frozen=True, eq=False)
class RidgeBall:
    """The ball of one fold and gamma, for every level.

    Attributes
    ----------
    value, off : float
        Of the centre.
    norm, reach : float
        `||u - X b0||`, and at least the largest eigenvalue of `X M^{-1} X'`.
    slip : (m,) array
        Rounding of the residuals, row by row; of their norm alone where the rows are not at hand.
    rows : pair of (m,) arrays, optional
        Residuals `|u - X b0|` and at least `x'M^{-1} x`, row by row.

    Examples
    --------
    >>> problem = SparseProblem(np.eye(1), np.array([2.0]), 4.5, np.ones(1), 1.0, 9, np.zeros(1), 0.0)
    >>> ball = RidgeBall.of_rows(problem, np.array([[1.0]]), np.array([3.0]), 1e-15)
    >>> found = ball.held_out(3.0)  # f(b0) = 2.5 at b0 = 1, so (b - 1)^2 <= 1/4
    >>> round(float(found.lower), 6), round(float(found.upper), 6)
    (2.25, 6.25)
    """

    value: float
    off: float
    norm: float
    reach: float
    slip: FloatArray
    rows: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def of_rows(cls, problem: SparseProblem, X: FloatArray, u: FloatArray, unit: float) -> RidgeBall | None:
        """Return the ball of a fold from its held-out rows; None where nothing can be said.

        Parameters
        ----------
        problem : SparseProblem
            Training rows.
        X, u : (m, q), (m,) arrays
            Held-out rows about the training means.
        unit : float
            Relative rounding of the moments and of the rows.

        Notes
        -----
        O(q^3 + m q^2).
        """
        centre = Centre.of(problem, unit)
        if centre is None:
            return None
        residual = np.abs(u - X @ centre.beta)
        half = solve_triangular(centre.factor, X.T, lower=True)
        each = centre.widening * np.einsum("ij,ij->j", half, half)
        small = len(u) <= 2 * problem.q
        largest = centre.widening * float(np.linalg.eigvalsh(half.T @ half)[-1]) if small else float(each.sum())
        slip = unit * (np.abs(u) + np.abs(X) @ np.abs(centre.beta))
        return cls(centre.value, centre.off, float(np.linalg.norm(residual)), largest, slip, (residual, each))

    @classmethod
    def of_moments(
        cls, problem: SparseProblem, Q: FloatArray, c: FloatArray, yy: float, unit: float
    ) -> RidgeBall | None:
        """Return the ball of a fold from the moments of its held-out rows; None where nothing can be said.

        Parameters
        ----------
        problem : SparseProblem
            Training rows.
        Q, c, yy : (q, q), (q,), float
            Moments of the held-out rows about the training means.
        unit : float
            Relative rounding of all moments.

        Notes
        -----
        O(q^3).
        """
        centre = Centre.of(problem, unit)
        if centre is None:
            return None
        beta = centre.beta
        size = float(np.sqrt(yy) + np.sqrt(np.diag(Q)) @ np.abs(beta))
        norm = float(np.sqrt(max(float(yy - 2.0 * c @ beta + beta @ Q @ beta), 0.0)))
        reach = centre.widening * float(eigh(Q, problem.M, eigvals_only=True)[-1])
        return cls(centre.value, centre.off, norm, reach, np.array([np.sqrt(unit) * size]))

    def held_out(self, upper: float) -> Interval:
        """Interval of the held-out sum of squares of every b with `f(b) <= upper`."""
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


def ball_of_left_out(room: FloatArray, residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Upper bound of the held-out error of every b in the ridge ball of a fold, known from the fit on all rows.

    The held-out residuals of the fold's ridge fit are at most `residual / (1 - leverage)` long, and its `reach` is at
    most `leverage / (1 - leverage)` (docs/theory.md, section 5, A all columns).

    Parameters
    ----------
    room : array
        At least `ubar - f^(-N)(b0)`, the square of the radius; negative counts as 0.
    residual, leverage : arrays of one shape
        At least the norm of the held-out residuals, and the largest eigenvalue of `H_NN`, of the fit on all rows.

    Returns
    -------
    array
        As computed: the caller rounds up. Says nothing where the leverage is 1 or more.

    Examples
    --------
    >>> ball_of_left_out(np.array([1.0, 1.0]), np.array([1.0, 1.0]), np.array([0.0, 0.5])).tolist()
    [1.0, 9.0]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        norm, reach = residual / (1.0 - leverage), np.maximum(room, 0.0) * leverage / (1.0 - leverage)
        return np.asarray((norm + np.sqrt(reach)) ** 2)

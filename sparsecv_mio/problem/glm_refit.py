"""The fit of one support to the rows for a smooth convex loss, with certified bounds on the errors of the optimum.

    F(a, b) = sum_i w_i l_i(sign_i (a + v_i'b)) + (gamma / 2) sum_j weight_j b_j^2

F is minimised by Newton's method with step halving; v_i are the features of row i, and `a` is the intercept. Let g be
the gradient and H the Hessian at the last point. The optimum lies within a distance `rho` of this point in the norm of
H (docs/theory/glm.md, section 2). Between the last point and the optimum, the margin of a row z therefore changes by at
most `rho sqrt(z'H^{-1}z)`, and the objective by at most `delta^2 / (2 kappa)`. Here `delta^2 = g'H^{-1}g`, and kappa is
a number near 1 (`kernels/glm_newton`). Bounds on rounding errors are added to delta. If coefficients have bounds, g is
projected as in that kernel.

The module uses plain numpy, so that the thread that waits for a search can call it without loading kernels. For
squared-error loss, `refit_rows` calls `refit_squares`.

**Existence of an optimum.** `check_optimum_exists` checks that an objective with a smooth convex loss and some
unpenalised coefficients has a unique minimiser.

The intercept and the adjustment columns have no ridge penalty; let `z_i = (1, x_i)` be their values in row i and u_i
the penalised features. With v_i the weight of row i and l_i its loss as a function of the margin, the objective on a
set of rows is

    F(a, b) = sum_i v_i l_i(sign_i (z_i'a + u_i'b)) + sum_j ridge_j b_j^2

**Claim.** Let R_i be the set of changes of the margin along which l_i never rises. F has exactly one minimiser if and
only if no `d != 0` has `sign_i z_i'd` in R_i for all rows with a positive weight. R_i is `[0, inf)` for logistic loss.
For Poisson loss it is `(-inf, 0]` if the count is 0, else `{0}` (`RowLoss.recession_range`).

*Proof.* If such a d exists, F never rises along (d, 0) from any point, so no point is the only minimiser. Conversely,
suppose that no such d exists and that F never rises along a direction `(a, e)`. Then e = 0, since otherwise the penalty
would rise. Therefore a satisfies the condition, and so a = 0. A convex function that eventually rises along every
direction has bounded level sets and therefore a minimum. As l'' > 0, two minimisers would differ by a d with
`z_i'd = 0` in all rows; such a d satisfies the condition, so d = 0. []

The condition depends neither on the chosen features nor on gamma. The fit on the columns z alone therefore shows
whether the condition holds for all models. A certified ball around this fit proves that the minimiser exists; the proof
includes rounding errors. A run starts only if there is such a ball for all rows and for the training rows of every
fold. Otherwise a linear program searches for a d as in the claim, and the error message names the columns in which d is
not 0.

**Held-out rows.** Most folds need no separate fit. Let H be the Hessian, on the unpenalised columns z, at the
computed full-data fit. The gradient there is nearly 0; let g_0 be its length. The length g_0 and all lengths `|x|` are
in the norm of `H^{-1}`. Let `s_i = -v_i l'` and `c_i = v_i l''` at this fit, and let N be the held-out rows of a fold.
Without N, the Hessian at this fit is at least `(1 - h) H` with `h = sum over N of c_i z_i'H^{-1}z_i`. In the norm of
the inverse of the Hessian without N, the gradient without N has at most the length
`delta = (g_0 + |sum over N of s_i sign_i z_i|) / sqrt(1 - h)`, and a row at most `L = max |z_i| / sqrt(1 - h)`. If
`delta L <= 0.9`, there is a certified ball of radius `10 / L`, because `10 k(10) >= 1.8 >= 2 delta L` with the function
k of docs/theory/glm.md, section 2. Folds that do not satisfy this condition are fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv, dpotrf

from sparsecv_mio.arrays import CACHED_ROWS, FINE, LONG, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData, find_constant_columns
from sparsecv_mio.digits import abbreviate_list, plural
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.row_losses import (
    FAR_OFF,
    HALVINGS,
    NEWTON_STEPS,
    RADII_TRIED,
    RowLoss,
    encode_row_targets,
    row_loss,
    worst_ratio,
)
from sparsecv_mio.targets import Loss
from sparsecv_mio.units import ROUNDING

REFIT_NEAR, LEAST_LENGTH = 1e-12, 1e-6  # limits of double precision: squared decrement / objective, step length
REFIT_QUICK = 1e-18  # squared decrement, as a share of the objective, at which a fit in double precision ends
REFIT_ENOUGH = 1e-15  # share of the root of the objective, below which a decrement ends the steps
REFIT_SETTLED = 1e-9  # share of the objective, below which a squared decrement may be rounding
REFIT_DOUBT = 0.1  # maximum relative rounding error of the Hessian


@dataclass(frozen=True, eq=False)
class RefitRows:
    """Rows Z (n, k) of a fit, with targets, weights, ridge weights, the loss, and (2, k) bounds on coefficients."""

    Z: FloatArray
    y: FloatArray
    w: FloatArray
    penalty: FloatArray
    loss: RowLoss
    ends: FloatArray | None = None

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        """Yield blocks of rows with their signs multiplied in, targets and weights, without copying all rows."""
        for begin in range(0, max(len(self.y), 1), CACHED_ROWS):
            here = slice(begin, begin + CACHED_ROWS)
            Z, y = self.Z[here], self.y[here]
            yield Z, Z * self.loss.signs(y)[:, None], y, self.w[here]


@dataclass(frozen=True, eq=False)
class GlmRowFit:
    """A fit in standard coordinates: the linear predictor of a row v is `r_mean + v_S'beta`.

    `spread` bounds the error of each coefficient, `objective_error` that of the objective; both are infinite if the
    rows do not determine the fit.
    """

    support: IntArray
    beta: FloatArray
    spread: FloatArray
    objective: float
    objective_error: float
    v_mean: FloatArray
    r_mean: float
    first: int
    root: FloatArray  # (k, k): the error of a margin is at most `||root z||` times the radius
    radius: float

    @property
    def theta(self) -> FloatArray:
        """(first + s,) intercept, if there is one, and coefficients."""
        return np.append(self.r_mean, self.beta) if self.first else self.beta

    def held_out(self, data: StandardData, rows: IntArray) -> tuple[float, float]:
        """Return the weighted loss of some rows and a bound on its error. O(rows s^2)."""
        losses, off = self.losses(data, rows)
        total = float(losses.sum())
        return total, float(off.sum()) + (len(losses) + 4) * ROUNDING * total

    def losses(self, data: StandardData, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
        """Return the (m,) weighted losses of some rows and bounds on their errors."""
        loss = row_loss(data.loss)
        Z, y, w = make_design_rows(data, rows, self.support, self.first)
        theta = self.theta
        margins = loss.signs(y) * (Z @ theta)
        wide = np.linalg.norm(Z @ self.root.T, axis=1) if np.isfinite(self.radius) else np.ones(len(y))
        reach = self.radius * wide * (1.0 + 1e-9) if len(theta) else np.zeros(len(y))
        size = (Z.shape[1] + 3) * np.abs(Z) + np.minimum(_blur(data, self.support, self.first), 2.0 * np.abs(Z))
        reach += ROUNDING * (size @ np.abs(theta))
        rise = loss.rises(margins, y, reach) + loss.roundings(margins, y, 0.0, ROUNDING)
        return w * loss.losses(margins, y), w * rise * (1.0 + 1e-12)

    def predictors(self, data: StandardData, rows: IntArray | slice) -> FloatArray:
        """Return the (m,) linear predictors of some rows."""
        Z = make_design_rows(data, rows, self.support, self.first)[0]
        return np.asarray(Z @ self.theta)


def make_design_rows(
    data: StandardData, rows: IntArray | slice, support: IntArray, first: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `(Z, y, w)` of some rows: a column of ones and the support, targets and weights of the loss.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    rows : int array or slice
        Rows.
    support : (s,) int array
        Columns of the support.
    first : int
        Number of intercepts, 1 or 0.
    """
    every = np.arange(*rows.indices(data.n)) if isinstance(rows, slice) else rows
    Z = np.ones((len(every), first + len(support)))
    for begin in range(0, len(every), CACHED_ROWS):
        Z[begin : begin + CACHED_ROWS, first:] = data.of_columns(every[begin : begin + CACHED_ROWS], support)
    return Z, *encode_row_targets(data, rows)


def _blur(data: StandardData, support: IntArray, first: int) -> FloatArray:
    """Return (k,) errors of the entries of the columns, in epsilons, from centring: offset over spread.

    The error is at most two epsilons of the entry itself, since a difference of two floats and its quotient round once
    each.
    """
    return np.append(np.zeros(first), 4.0 * np.abs(data.center[support] / data.divisor[support]))


def refit_glm(data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float) -> GlmRowFit:
    """Return the fit of a support to training rows, with certified errors.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    rows : int array or slice
        Training rows, with both classes if there is an intercept.
    support : (s,) int array
        Columns of the support.
    gamma : float
        Ridge weight.

    Notes
    -----
    Some six steps of O(n s^2).
    """
    support, first = np.asarray(support, dtype=np.int64), int(data.has_intercept)
    training, theta, flat = _training(data, rows, support, gamma)
    largest = np.maximum(training.Z.max(axis=0, initial=0.0), -training.Z.min(axis=0, initial=0.0))
    blur = np.minimum(_blur(data, support, first), 2.0 * largest)
    theta, point = newton(training, fit_roughly(training, theta), blur)
    point.root[:, flat] = 0.0
    radius, drop = bound_distance_to_optimum(training.Z, point)
    finite = np.isfinite(radius)
    spread = radius * np.linalg.norm(point.root, axis=0) if finite else np.full(len(theta), np.inf)
    return GlmRowFit(
        support=support, beta=theta[first:], spread=spread[first:], objective=point.value,
        objective_error=point.value_off + drop, v_mean=np.zeros(len(support)), r_mean=float(theta[0]) if first else 0.0,
        first=first, root=point.root, radius=radius,
    )  # fmt: skip


def _training(
    data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float
) -> tuple[RefitRows, FloatArray, IntArray]:
    """Return the training rows of a fit, its initial point, and the positions of coefficients of constant columns.

    With an intercept, these coefficients are exactly 0, or at the nearest bound.
    """
    first = int(data.has_intercept)
    penalty = np.append(np.zeros(first), gamma / 2.0 * data.weight_of(rows)[support])
    ends = None
    if data.coefficient_bounds is not None:
        ends = np.column_stack([np.full((2, first), [[-np.inf], [np.inf]]), np.array(data.support_bounds(support))])
    training = RefitRows(*make_design_rows(data, rows, support, first), penalty, row_loss(data.loss), ends)
    theta, flat = np.zeros(len(penalty)), np.zeros(0, dtype=np.int64)
    if first:
        flat = first + np.flatnonzero(np.isin(support, find_constant_columns(data, np.arange(data.n)[rows], support)))
        training.Z[:, flat] = 0.0
        theta[0] = training.loss.origin(training.y, training.w)
    return training, theta, flat


def fit_glm_quickly(
    data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float
) -> tuple[FloatArray, float, float]:
    """Return coefficients, intercept and objective of a fit in double precision, without error bounds.

    Parameters
    ----------
    data, rows, support, gamma
        Arguments as for `refit_glm`.

    Notes
    -----
    Some six steps of O(n s^2), a tenth of the time of `refit_glm`.
    """
    training, theta, _ = _training(data, rows, support, gamma)
    theta, first = fit_roughly(training, theta, REFIT_QUICK), int(data.has_intercept)
    return theta[first:], float(theta[0]) if first else 0.0, _value(training, theta)


def fit_roughly(
    rows: RefitRows, theta: FloatArray, near: float = REFIT_NEAR, is_expired: Callable[[], bool] = lambda: False
) -> FloatArray:
    """Return the result of Newton's method in double precision, a start for steps in long precision.

    Parameters
    ----------
    rows : RefitRows
        Rows of the fit.
    theta : (k,) array
        Initial point.
    near : float
        Share of the objective at which a squared decrement ends the method.
    is_expired : callable
        Function that is called between steps; True ends the method.
    """
    theta = _clip(rows, theta)
    penalty, loss, value = rows.penalty, rows.loss, _value(rows, theta)
    for _ in range(NEWTON_STEPS if len(theta) else 0):
        gradient, H = 2.0 * penalty * theta, np.diag(2.0 * penalty)
        for _, signed, y, w in rows.blocks():
            margins = signed @ theta
            gradient -= signed.T @ loss.negative_gradient(margins, y, w)
            H += dsyrk(1.0, signed.T * np.sqrt(loss.curvatures(margins, y, w)))
        _, step, failed = dposv(H, -gradient)
        target = None
        if not (failed or rows.ends is None):
            root = np.triu(dpotrf(H)[0])
            target = find_bounded_target(root, -gradient, theta, rows.ends, near * value)
            step = target - theta
        decrement, length = -float(gradient @ step), 1.0
        if failed or not decrement > near * value or is_expired():
            break
        while length > LEAST_LENGTH and not _value(rows, theta + length * step) <= value - 1e-4 * length * decrement:
            length /= 2.0
        if length <= LEAST_LENGTH:
            break
        if decrement > FAR_OFF * value:
            length = _longer(rows, theta, step, length)
        theta = _move(rows, theta, step, length, target)
        value = _value(rows, theta)
    return theta


def find_bounded_target(
    root: FloatArray, slope: FloatArray, theta: FloatArray, ends: FloatArray, least: float
) -> FloatArray:
    """Return the minimum of a quadratic within bounds by active sets: the twin of the kernel with this name.

    Parameters
    ----------
    root : (k, k) array
        Upper triangular factor R of the Hessian R'R.
    slope : (k,) array
        Negative gradient at theta.
    theta : (k,) array
        Point within the bounds.
    ends : (2, k) array
        Bounds.
    least : float
        A coefficient leaves its bound only if this alone, by the diagonal, lowers the quadratic by half of `least`.

    Examples
    --------
    >>> ends = np.array([[-np.inf, 0.0], [np.inf, 1.0]])
    >>> find_bounded_target(np.eye(2), np.array([3.0, 4.0]), np.zeros(2), ends, 0.0).tolist()
    [3.0, 1.0]
    """
    target, releases, fixed = theta.copy(), True, np.zeros(len(theta), dtype=np.bool_)
    for count in range(NEWTON_STEPS):
        if releases:
            below, above = target <= ends[0], target >= ends[1]
            keeps = (below & (slope <= 0.0)) | (above & (slope >= 0.0))
            keeps |= (below | above) & (slope**2 <= least * np.einsum("ij,ij->j", root, root))
            if count and not np.any(fixed & ~keeps):
                break
            fixed = keeps
        free = np.flatnonzero(~fixed)
        own = np.linalg.qr(root[:, free], mode="r")
        step = np.zeros(len(theta))
        step[free] = solve_triangular(own, solve_triangular(own, slope[free], trans=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(
                step != 0.0, np.abs(np.where(step > 0.0, ends[1], ends[0]) - target) / np.abs(step), np.inf
            )
        stop = int(np.argmin(shares)) if len(shares) else 0
        releases = not (len(shares) and shares[stop] < 1.0)
        share = 1.0 if releases else shares[stop]
        target, slope = target + share * step, slope - share * (root.T @ (root @ step))
        if not releases:
            fixed[stop], target[stop] = True, ends[int(step[stop] > 0.0), stop]
        target = np.clip(target, *ends)
    return target


def _clip(rows: RefitRows, theta: Any) -> Any:
    """Return the nearest point within the bounds."""
    return theta if rows.ends is None else np.clip(theta, *rows.ends)


def _move(rows: RefitRows, theta: Any, step: Any, length: float, target: FloatArray | None = None) -> Any:
    """Return the point after a step, within the bounds; `target` is the exact point of the whole step, if known."""
    return target if target is not None and length == 1.0 else _clip(rows, theta + length * step)


def _longer(rows: RefitRows, theta: NDArray[np.floating], step: FloatArray, length: float) -> float:
    """Double the step length while F falls: for nearly separated classes a step moves margins by only 1."""
    value = _value(rows, _move(rows, theta, step, length))
    while (farther := _value(rows, _move(rows, theta, step, 2.0 * length))) < value:
        length, value = 2.0 * length, farther
    return length


def _value(rows: RefitRows, theta: NDArray[np.floating]) -> float:
    """Return F, summed in the precision of the point."""
    of_blocks = [w @ rows.loss.losses(signed @ theta, y) for _, signed, y, w in rows.blocks()]
    return float(sum(of_blocks) + rows.penalty @ theta**2)


@dataclass(frozen=True, eq=False)
class _LongPoint:
    """F at a point with gradient g and Hessian H: `|root z|^2` bounds `z'H^{-1}z`, and exceeds it by little.

    If `sound`, the error of `along = root g` is at most `along_off` in length, and that of `value` at most `value_off`.
    With bounds, g is projected, and the quadratic of F has its minimum within them at `target`. A whole step lowers the
    quadratic by at least half of `fall`.
    """

    value: float
    value_off: float
    root: FloatArray
    along: FloatArray
    along_off: float
    sound: bool
    fall: float
    target: FloatArray | None = None

    @property
    def decrement(self) -> float:
        """Length of `along`: F exceeds its minimum by about half its square."""
        return float(np.linalg.norm(self.along))

    def step(self, theta: FloatArray) -> FloatArray:
        """Return the step from theta to the minimum of the quadratic."""
        return -self.root.T @ self.along if self.target is None else self.target - theta


def _evaluate_point(rows: RefitRows, theta: FloatArray, blur: FloatArray) -> _LongPoint:
    """Look at F about a point, with margins and gradient in long precision and `H = A'A` by orthogonal factors of A.

    `A = Q R D` with lengths D of its columns, up to two errors: rounding and `blur` change column j by p_j D_j, and
    errors of the margins change each row by a share of it. In `A / D R^{-1}` both errors amount to at most tau, the sum
    of that share and `sum_j p_j |row j of R^{-1}|`. Therefore `root = R^{-T} / D / (1 - tau)`, and no condition number
    is squared. Errors of the margins change g by A' times their vector, and so `root g` by approximately its length.
    """
    penalty, loss, (n, k), fine = rows.penalty, rows.loss, rows.Z.shape, theta.astype(LONG)
    long_value, long_off, farthest, bent, loose, blocks = LONG(0), LONG(0), 0.0, 0.0, 0.0, 0
    pull, g_off, weighted_sum = np.zeros(k, LONG), np.zeros(k), 0.0
    A, D = np.diag(np.sqrt(2.0 * penalty)), 2.0 * penalty  # a factor of the Hessian so far, squared lengths
    for Z, signed, y, w in rows.blocks():
        long = signed.astype(LONG)
        margins = long @ fine
        margin_off = (FINE * (k + 3) * np.abs(Z) + ROUNDING * blur) @ np.abs(theta)
        long_value += w @ loss.losses(margins, y)
        long_off += w @ loss.roundings(margins, y, margin_off, FINE)
        curvature = np.sqrt(w * loss.curvatures(margins, y).astype(np.float64))
        weighted = loss.gradient_scale(margins, y, w)
        pull += loss.negative_gradient(margins, y, w) @ long
        g_off += np.abs(Z).T @ (weighted * (n + 12) * FINE).astype(np.float64)
        weighted_sum += float(weighted.sum())
        farthest, bent = max(farthest, float(margin_off.max(initial=0.0))), bent + float(curvature @ curvature)
        loose += float(np.sum((curvature * margin_off) ** 2))
        scaled, blocks = Z * curvature[:, None], blocks + 1
        D = D + np.einsum("ij,ij->j", scaled, scaled)
        A = np.array(np.linalg.qr(np.vstack([A, scaled]), mode="r")) if k and np.isfinite(scaled).all() else A + np.inf
    value, D = float(long_value + penalty @ fine**2), np.sqrt(D)
    off = 1.01 * float(long_off) + ((n + k + 12) * FINE + ROUNDING) * value
    unknown = _LongPoint(value, off, np.zeros((k, k)), np.zeros(k), np.inf if k else 0.0, sound=not k, fall=0.0)
    if not k or not np.all((D > 0.0) & np.isfinite(D) & np.isfinite(A)):
        return unknown
    try:
        back = np.linalg.inv(A / D)
    except np.linalg.LinAlgError:
        return unknown
    moved = (4 * k * (n + k * (blocks + 1)) + 32) * ROUNDING + ROUNDING * blur * np.sqrt(bent) / D
    tau = float(moved @ np.linalg.norm(back, axis=1)) + 1.01 * farthest
    sound, tau = tau <= REFIT_DOUBT, min(tau, REFIT_DOUBT)
    root = back.T / D / (1.0 - tau)
    ridge = 2.0 * penalty * fine
    g = (ridge - pull).astype(np.float64)
    g_off += ROUNDING * blur * weighted_sum + FINE * np.abs(ridge).astype(np.float64) + ROUNDING * np.abs(g)
    along_off = 1.2 * float(np.sqrt(loose)) + float(np.linalg.norm(np.abs(root) @ g_off))
    if rows.ends is None:
        along = root @ g
        return _LongPoint(value, off, root, along, along_off, sound, float(np.linalg.norm(along)) ** 2)
    target = find_bounded_target(A, -g, theta, rows.ends, REFIT_ENOUGH * REFIT_ENOUGH * value)
    fall = float(g @ (theta - target))
    keeps = ((theta <= rows.ends[0]) & (g >= 0.0)) | ((theta >= rows.ends[1]) & (g <= 0.0))
    return _LongPoint(value, off, root, root @ np.where(keeps, 0.0, g), along_off, sound, fall, target)


def newton(rows: RefitRows, theta: FloatArray, blur: FloatArray) -> tuple[FloatArray, _LongPoint]:
    """Return the result of Newton's method with step halving, and F with its derivatives there."""
    theta = _clip(rows, theta)
    point, last = _evaluate_point(rows, theta, blur), np.inf
    nowhere = not theta[rows.penalty > 0.0].any()  # the ridge may be so large that no step changes a digit of F
    for count in range(NEWTON_STEPS if len(theta) else 0):
        square = point.fall
        if (count or not nowhere) and (
            square <= REFIT_ENOUGH * REFIT_ENOUGH * point.value
            or (square < REFIT_SETTLED * point.value and square > last / 2.0)
        ):
            break  # far below, or rounding: for nearly separated rows a step removes only 1 - 1/e
        step, length = point.step(theta), 1.0
        for _ in range(HALVINGS):
            ahead = _move(rows, theta, step, length, point.target)
            there = _value(rows, ahead.astype(LONG))
            settled = square < REFIT_SETTLED * point.value and there <= point.value * (1.0 + 1e-13)
            if settled or there <= point.value - 1e-4 * length * square:
                break
            length /= 2.0
        else:
            break
        if length == 1.0 and square > FAR_OFF * point.value:
            ahead = _move(rows, theta, step, _longer(rows, theta.astype(LONG), step, length), point.target)
        theta, point, last = ahead, _evaluate_point(rows, ahead, blur), square
    return theta, point


def bound_distance_to_optimum(Z: FloatArray, point: _LongPoint) -> tuple[float, float]:
    """Return `(radius, drop)`: the optimum is within the radius of a point, and at most `drop` below it."""
    unknown = np.inf, point.value
    if not point.sound:
        return unknown
    delta = point.decrement + point.along_off
    blocks = [Z[begin : begin + CACHED_ROWS] for begin in range(0, len(Z), CACHED_ROWS)]
    widest = max((float(np.linalg.norm(block @ point.root.T, axis=1).max()) for block in blocks), default=0.0)
    widest *= 1.0 + 1e-9
    rho = 2.0 * delta
    for _ in range(RADII_TRIED):
        kappa = float(worst_ratio(np.array([rho * widest]))[0])
        if rho * kappa >= 2.0 * delta:
            return rho, delta * delta / (2.0 * kappa)
        rho *= 1.2
    return unknown


MAX_STEP_SHARE = 0.5  # bound on `delta L`; the proof needs 0.9, the rest is for rounding
MOVES = 1e-6  # smallest move of a margin in the linear program, whose tolerance is 1e-7


def check_optimum_exists(data: StandardData, folds: FoldPlan | None = None) -> None:
    """Raise `BadInput` if the coefficients of adjustment columns have no optimum.

    Parameters
    ----------
    data : StandardData
        Data with adjustment columns and another loss than squared error.
    folds : FoldPlan, optional
        Folds whose training rows are checked too; None checks all rows only.

    Raises
    ------
    BadInput
        If there is no optimum; the message names the fold, counted from 1, and the columns.

    Notes
    -----
    Approximately six steps of O(n k^2) with k adjustment columns, on all rows and in every fold that the full-data fit
    does not settle.
    """
    whole = refit_glm(data, slice(0, data.n), data.adjusting, 1.0)
    if not np.isfinite(whole.radius):
        _refuse(data, np.arange(data.n), "all rows")
    if folds is None:
        return
    sure = _sure(data, whole, folds)
    for fold in np.flatnonzero(~sure).tolist():
        rows = folds.train_rows(fold)
        if not np.isfinite(refit_glm(data, rows, data.adjusting, 1.0).radius):
            _refuse(data, rows, f"the training rows of fold {fold + 1} of {folds.k}")


def _sure(data: StandardData, whole: GlmRowFit, folds: FoldPlan) -> BoolArray:
    """Return a (K,) mask of the folds for which the full-data fit proves that a fit exists."""
    loss = row_loss(data.loss)
    Z, y, v = make_design_rows(data, slice(0, data.n), data.adjusting, whole.first)
    signed = Z * loss.signs(y)[:, None]
    margins = signed @ whole.theta
    turned = signed @ whole.root.T
    length = np.linalg.norm(turned, axis=1)
    leverage = loss.curvatures(margins, y, v) * length**2
    slope = turned * loss.negative_gradient(margins, y, v)[:, None]
    sure = np.zeros(folds.k, dtype=np.bool_)
    for fold in range(folds.k):
        left_out = folds.left_out(fold)
        remaining = 1.0 - float(leverage[left_out].sum())
        delta = 0.5 * whole.radius + float(np.linalg.norm(slope[left_out].sum(axis=0)))
        sure[fold] = remaining > 0.0 and delta * float(length.max()) <= MAX_STEP_SHARE * remaining
    return sure


def _refuse(data: StandardData, rows: IntArray, where: str) -> None:
    """Raise `BadInput` that names the columns without optimal coefficients."""
    first, loss = int(data.has_intercept), row_loss(data.loss)
    Z, y, v = make_design_rows(data, rows, data.adjusting, first)
    signed, y = (Z * loss.signs(y)[:, None])[v > 0.0], y[v > 0.0]
    columns = np.arange(signed.shape[1])
    told_apart = has_recession_direction(signed, y, loss)
    for j in columns.tolist() if told_apart else ():  # a smallest set of such columns
        fewer = columns[columns != j]
        columns = fewer if len(fewer) and has_recession_direction(signed[:, fewer], y, loss) else columns
    names = [repr(data.names[j]) for j in data.adjusting[columns[columns >= first] - first].tolist()]
    columns_named = f"{plural(len(names), 'column')} {abbreviate_list(names)}"
    why = f"the coefficients of {columns_named} are nearly infinite, so their fit cannot be certified"
    if told_apart:
        tell = "separates" if len(names) == 1 else "separate"
        why = f"{columns_named} {tell} {data.loss.target.separated}, so coefficients without a penalty are not finite"
    raise BadInput(
        f"adjust: on {where}, {why}; leave a column out, force it in instead (with a penalty), or merge a rare level"
    )


def are_rows_separated(Z: FloatArray, y: FloatArray, loss: Loss) -> bool:
    """Return True if a fit of rows without a penalty has no finite coefficients.

    Parameters
    ----------
    Z : (n, m) array
        Columns of the fit, with a constant column for the intercept.
    y : (n,) array
        Targets.
    loss : Loss
        Logistic or Poisson loss.
    """
    of_rows = row_loss(loss)
    targets, _ = of_rows.encode_targets(y)
    return has_recession_direction(Z * of_rows.signs(targets)[:, None], targets, of_rows)


def has_recession_direction(Z: FloatArray, y: FloatArray, loss: RowLoss) -> bool:
    """Return True if a direction moves some margins such that no loss ever rises."""
    from scipy.optimize import linprog  # imported here since most runs do not need it

    low, high = loss.recession_range(y)
    unit = np.abs(Z).max(axis=0)
    A = Z / np.where(unit > 0.0, unit, 1.0)
    one_way = (low < 0.0).astype(float) - (high > 0.0)  # -1 for margins that may rise, 1 for those that may fall
    still = (low == 0.0) & (high == 0.0)
    program = linprog(
        one_way @ A, A_ub=A[~still] * one_way[~still, None], b_ub=np.zeros(int((~still).sum())), A_eq=A[still],
        b_eq=np.zeros(int(still.sum())), bounds=[(-1.0, 1.0)] * A.shape[1],
    )  # fmt: skip
    return bool(program.status == 0 and float(program.fun or 0.0) < -MOVES * len(A))

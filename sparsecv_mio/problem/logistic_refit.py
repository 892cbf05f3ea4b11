"""The logistic fit of one support from the rows, with certified errors: what `refit_rows` is for squares.

    F(a, b) = sum_i w_i log(1 + exp(-y_i (a + v_i'b))) + (gamma / 2) sum_j weight_j b_j^2,     y_i = -1 or 1,

is minimised by Newton's method with halved steps. At the point where that ends, with gradient g and Hessian H, the
optimum lies within `rho` of it in the norm of H (docs/theory/logistic.md, section 2): so every margin of a row z is off
by at most `rho sqrt(z'H^{-1}z)`, and the objective by `delta^2 / (2 kappa)`. Rounding is added to g. Plain numpy: a
thread that waits for a search may call it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.logistic import worst_ratio

EPS = float(np.finfo(float).eps)
STEPS, HALVINGS = 100, 40  # of Newton
ENOUGH = 1e-15  # of the objective: a squared decrement below it ends the steps
LARGEST_DOUBT = 0.1  # share of the Hessian that rounding may be worth
TRIES = 60  # radii tried


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A fit in standard coordinates: the linear predictor of a row v is `r_mean + v_S'beta`.

    `spread` bounds the error of each coefficient, `objective_error` that of the objective; infinite where the rows tell
    them too little apart.
    """

    support: IntArray
    beta: FloatArray
    spread: FloatArray
    objective: float
    objective_error: float
    v_mean: FloatArray
    r_mean: float
    first: int
    root: FloatArray  # (k, k): `||root z|| <= 1` bounds how far a margin is off, times the radius
    radius: float

    def held_out(self, data: StandardData, rows: IntArray) -> tuple[float, float]:
        """Weighted log loss of some rows, and a bound on its error. O(rows s^2)."""
        losses, off = self.losses(data, rows)
        total = float(losses.sum())
        return total, float(off.sum()) + (len(losses) + 4) * EPS * total

    def losses(self, data: StandardData, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
        """(m,) weighted log losses of some rows, and bounds on their errors."""
        Z, y, w = rows_of(data, rows, self.support, self.first)
        theta = np.append(self.r_mean, self.beta) if self.first else self.beta
        margins = y * (Z @ theta)
        wide = np.linalg.norm(Z @ self.root.T, axis=1) if np.isfinite(self.radius) else np.ones(len(y))
        reach = self.radius * wide * (1.0 + 1e-9) if len(theta) else np.zeros(len(y))
        size = (Z.shape[1] + 3) * np.abs(Z) + _blur(data, self.support, self.first)
        reach += EPS * (size @ np.abs(theta))
        at = np.logaddexp(0.0, -margins)
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.where(np.isfinite(reach), np.logaddexp(0.0, reach - margins) - at, np.inf)
        return w * at, w * (np.maximum(rise, 0.0) + 8.0 * EPS * at) * (1.0 + 1e-12)

    def predictors(self, data: StandardData, rows: IntArray | slice) -> FloatArray:
        """(m,) linear predictors of some rows."""
        Z = rows_of(data, rows, self.support, self.first)[0]
        return np.asarray(Z @ (np.append(self.r_mean, self.beta) if self.first else self.beta))


def rows_of(
    data: StandardData, rows: IntArray | slice, support: IntArray, first: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `(Z, y, w)` of some rows: a column of ones before those of the support, labels -1 and 1, weights.

    Parameters
    ----------
    data : StandardData
    rows : int array or slice
    support : (s,) int array
    first : int
        1 with an intercept, else 0.
    """
    V, labels = data.of_columns(rows, support), data.labels(rows)
    Z = np.column_stack([np.ones((len(labels), first)), V])
    weights = data.dataset.row_weights
    return Z, labels, np.ones(len(labels)) if weights is None else weights[rows]


def _blur(data: StandardData, support: IntArray, first: int) -> FloatArray:
    """(k,) by how many epsilons entries of the columns are off, as their centres were taken off: offset over spread."""
    return np.append(np.zeros(first), 4.0 * np.abs(data.center[support] / data.divisor[support]))


def refit_logistic(data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float) -> LogisticFit:
    """Fit a support on training rows.

    Parameters
    ----------
    data : StandardData
    rows : int array or slice
        Training rows, of both classes where there is an intercept.
    support : (s,) int array
    gamma : float

    Notes
    -----
    Some six steps of O(n s^2).
    """
    support = np.asarray(support, dtype=np.int64)
    first = int(data.has_intercept)
    Z, y, w = rows_of(data, rows, support, first)
    penalty = np.append(np.zeros(first), gamma / 2.0 * data.weight[support])
    theta = np.zeros(Z.shape[1])
    if first:
        theta[0] = np.log(w[y > 0].sum()) - np.log(w[y < 0].sum())
    theta = _newton(Z, y, w, penalty, theta)
    value, off, root, radius, drop = _accuracy(Z, y, w, penalty, theta, _blur(data, support, first))
    known = np.isfinite(radius)
    spread = radius * np.linalg.norm(root, axis=0) if known else np.full(len(theta), np.inf)
    return LogisticFit(
        support=support, beta=theta[first:], spread=spread[first:], objective=value, objective_error=off + drop,
        v_mean=np.zeros(len(support)), r_mean=float(theta[0]) if first else 0.0, first=first, root=root, radius=radius,
    )  # fmt: skip


def _value(Z: FloatArray, y: FloatArray, w: FloatArray, penalty: FloatArray, theta: FloatArray) -> float:
    return float(w @ np.logaddexp(0.0, -y * (Z @ theta)) + penalty @ theta**2)


def _newton(Z: FloatArray, y: FloatArray, w: FloatArray, penalty: FloatArray, theta: FloatArray) -> FloatArray:
    value = _value(Z, y, w, penalty, theta)
    for _ in range(STEPS if len(theta) else 0):
        share = expit(-y * (Z @ theta))
        g = 2.0 * penalty * theta - Z.T @ (w * y * share)
        H = (Z.T * (w * share * (1.0 - share))) @ Z
        H.flat[:: len(theta) + 1] += 2.0 * penalty
        unit = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
        try:
            step = -np.linalg.solve(H / unit[:, None] / unit, g / unit) / unit
        except np.linalg.LinAlgError:
            break
        decrement, length = float(-g @ step), 1.0
        for _ in range(HALVINGS):
            ahead = theta + length * step
            there = _value(Z, y, w, penalty, ahead)
            settled = decrement < 1e-9 * value and there <= value * (1.0 + 1e-13)
            if settled or there <= value - 1e-4 * length * decrement:
                break
            length /= 2.0
        else:
            break
        theta, value = ahead, there
        if decrement <= ENOUGH * ENOUGH * value:
            break
    return theta


def _accuracy(
    Z: FloatArray, y: FloatArray, w: FloatArray, penalty: FloatArray, theta: FloatArray, blur: FloatArray
) -> tuple[float, float, FloatArray, float, float]:
    """Return `(value, rounding of it, root, radius, drop)`: the optimum is within the radius, and so far below."""
    n, k = Z.shape
    margins = y * (Z @ theta)
    margin_off = EPS * (((k + 3) * np.abs(Z) + blur) @ np.abs(theta))
    share, loss = expit(-margins), np.logaddexp(0.0, -margins)
    value = float(w @ loss + penalty @ theta**2)
    off = 1.01 * float(w @ (margin_off + 8.0 * EPS * loss)) + (n + k + 12) * EPS * value
    unknown = value, off, np.zeros((k, k)), float("inf"), value
    if not k:
        return value, off, np.zeros((0, 0)), 0.0, 0.0
    g = 2.0 * penalty * theta - Z.T @ (w * y * share)
    g_off = np.abs(Z).T @ (w * share * (2.0 * margin_off + (n + 12) * EPS)) + 8.0 * EPS * np.abs(penalty * theta)
    g_off += EPS * blur * float(w @ share)
    H = (Z.T * (w * share * (1.0 - share))) @ Z
    H.flat[:: k + 1] += 2.0 * penalty
    unit = np.sqrt(np.diag(H))
    if not np.all((unit > 0.0) & np.isfinite(unit)):
        return unknown
    try:
        root = np.linalg.inv(np.linalg.cholesky(H / unit[:, None] / unit))
    except np.linalg.LinAlgError:
        return unknown
    doubt = k * (2.0 * float(margin_off.max()) + (n + 4 * k + 40) * EPS) * float((root * root).sum())
    if not doubt <= LARGEST_DOUBT:
        return unknown
    root = root / unit / np.sqrt(1.0 - doubt)
    delta = float(np.linalg.norm(root @ g)) + float((np.abs(root) @ g_off) @ np.ones(k))
    widest = float(np.linalg.norm(Z @ root.T, axis=1).max()) * (1.0 + 1e-9)
    rho = 2.0 * delta
    for _ in range(TRIES):
        kappa = float(worst_ratio(np.array([rho * widest]))[0])
        if rho * kappa >= 2.0 * delta:
            return value, off, root, rho, delta * delta / (2.0 * kappa)
        rho *= 1.2
    return unknown

"""Convex conjugates of the losses and penalties of GLRU, and the dual objective: what closed forms are checked by."""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py, xlogy

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.oracles.glru import ConjugateLoss, Huber, Logistic, Regularizer, SmoothedHinge, SquaredHinge


def conjugate(loss: ConjugateLoss, u: FloatArray, y: FloatArray) -> FloatArray:
    """`l_y*(u) = sup_t (u t - l_y(t))`, +inf outside of the domain.

    Squared loss: `u^2 / 2 + u y`, Huber's the same on `|u| <= width`; squared hinge: `u^2 / 4 + y u` for `y u <= 0`;
    smoothed hinge: `width u^2 / 2 + y u` for `-1 <= y u <= 0`. (The paper prints
    `((width y u + y)^2 - 1) / (2 width)`, which is wrong for y = -1.) Logistic: `q log q + (1 - q) log(1 - q)` with
    `q = -y u` in [0, 1].
    """
    if isinstance(loss, Huber):
        return np.where(np.abs(u) <= loss.width, u * (0.5 * u + y), np.inf)
    if isinstance(loss, SquaredHinge):
        return np.where(y * u <= 0.0, u * (0.25 * u + y), np.inf)
    if isinstance(loss, SmoothedHinge):
        return np.where((y * u <= 0.0) & (y * u >= -1.0), u * (0.5 * loss.width * u + y), np.inf)
    if isinstance(loss, Logistic):
        share = -y * u
        inside = (share >= 0.0) & (share <= 1.0)
        safe = np.where(inside, share, 0.0)
        return np.where(inside, xlogy(safe, safe) + xlog1py(1.0 - safe, -safe), np.inf)
    return np.asarray(u * (0.5 * u + y))


def penalty_conjugate(regularizer: Regularizer, c: FloatArray) -> float:
    """`R*(c) = sup_w (c'w - R(w))`, +inf outside of the domain."""
    v = c[: regularizer.penalised(c.shape[0])]
    if regularizer.intercept and c[-1] != 0.0:
        return np.inf
    beyond = np.maximum(np.abs(v) - regularizer.l1, 0.0)
    if regularizer.ridge == 0.0:
        return 0.0 if not beyond.any() else np.inf
    return float(beyond @ beyond) / (2.0 * regularizer.ridge)

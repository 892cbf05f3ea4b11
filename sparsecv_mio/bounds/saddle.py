"""The saddle-point iteration of Bertsimas, Pauphilet and Van Parys (2020) for large p: only products with X."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray

COLD, WARM = 0.3, 0.01  # first guess of what is left to gain, beside y'y


@dataclass(frozen=True, eq=False)
class SaddlePoint:
    """The best dual point found, and the average of the supports it answered with.

    Attributes
    ----------
    r : (n,) array
        Dual point; its residual form, theory section 1.
    dual : float
        `D_tau(r)` less the rounding allowance.
    z : (p,) array
        Average indicator, in [0, 1] with sum tau: round it to the tau largest.
    """

    r: FloatArray
    dual: float
    z: FloatArray


def saddle_point(
    X: FloatArray,
    y: FloatArray,
    lam: float,
    tau: int,
    *,
    iterations: int = 500,
    start: FloatArray | None = None,
    expired: Callable[[], bool] | None = None,
) -> SaddlePoint:
    """Ascend the concave `D_tau(r) = 2 r'y - ||r||^2 - (tau largest (x_j'r)^2) / lam` by supergradients.

    Steps are Polyak's, towards a target above the best value so far.

    Parameters
    ----------
    X : (n, p) array
        Centred as the intercept asks, columns over the root of their penalty weight.
    y : (n,) array
    lam : float
    tau : int
        0 < tau < p.
    iterations : int
    start : (n,) array, optional
        Dual point of a neighbouring problem (another tau, all rows); any is valid.
    expired : callable, optional
        True ends the ascent with what it holds.

    Notes
    -----
    O(n p) an iteration and no matrix beside X. The supergradient answers with the support S of the tau largest |x_j'r|:
    `2 (y - r - X_S X_S'r / lam)`. Slower to high accuracy than the Newton steps of `WideRelaxation`, which it checks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 50)) / 4
    >>> point = saddle_point(X, X[:, 0] + X[:, 1], 0.5, 2)
    >>> bool(np.argsort(-point.z)[:2].max() < 2 and point.dual > 0.0)
    True
    """
    n, p = X.shape
    squares = np.einsum("ij,ij->j", X, X)
    r = y * (lam / (lam + float(np.mean(squares)))) if start is None else start
    best, best_r, average = -np.inf, r, np.zeros(p)
    stall = (COLD if start is None else WARM) * float(y @ y)
    for i in range(iterations):
        score = X.T @ r
        top = np.argpartition(-(score**2), tau - 1)[:tau]
        value = float(2.0 * (r @ y) - r @ r - np.sum(score[top] ** 2) / lam)
        average[top] += 1.0
        if value > best:
            best, best_r = value, r
        elif i % 20 == 19:
            stall *= 0.7
        slope = 2.0 * (y - r - X[:, top] @ score[top] / lam)
        square = float(slope @ slope)
        if square <= 1e-30 * float(y @ y) or (expired is not None and expired()):
            break
        r = r + slope * ((best + stall - value) / square)
    size = float(np.linalg.norm(best_r)) * (float(np.linalg.norm(y)) + float(np.linalg.norm(best_r)))
    size += tau * float(np.max(squares) * (best_r @ best_r)) / lam
    allowance = np.finfo(float).eps * (n + tau + 16) * size
    return SaddlePoint(best_r, best - allowance, average / average.sum() * tau)

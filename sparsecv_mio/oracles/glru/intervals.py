"""Intervals for the coefficients and predictions of an unknown optimum, which lies in an :class:`OptimumRegion`.

Numbers in parentheses are equations of the GLRU paper (docs/oracles/glru.md). P is the primal and D the dual objective,
w and alpha are a primal and a dual point, G is the gap between them and c = X' alpha / n; a star marks the optimum.

| method | made from |
|---|---|
| `primal` | Primal-SCB as printed: ball (9) about w, interval (15) |
| `dual` | Dual-SCB as printed, with Remark 2: ball (11), intervals (12) of the coefficients, their sum (16) |
| `sharp` | the ball of the midpoint, see :mod:`.optimum_region` |
| `best` | intersection of `sharp`, the dual intervals with the sharp radius, and, for L1, the level sets below |

In (16), the division by n belongs inside the argument of the derivative, contrary to the printed formula. For L1, the
level sets are `sum_j l1 |w_j*| - c_j w_j* <= G` and `l1 ||w*||_1 <= P(w)`. Each set gives the range of a linear
function in closed form.

The paper has no interval for an unpenalised intercept, because (12) is then the whole line. This module computes two
intervals and intersects them. Let t_i be the predictor of row i. For the first interval, the sum of the derivatives
`l_i'(t_i*)` is 0 and monotone in the intercept, and each t_i* is known up to a radius. The second interval is computed
from a few rows, the *anchors*. For these rows t_i* lies in the subdifferential of the conjugate loss l_i* at
`-alpha_i*`, and alpha_i* lies in a known interval.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.answers import Bracket
from sparsecv_mio.oracles.glru.optimum_region import OptimumRegion
from sparsecv_mio.units import ROUNDING

INTERVAL_ROUNDING = 32.0 * ROUNDING


class IntervalMethod(StrEnum):
    """Construction of an interval; the table of the module explains the names."""

    PRIMAL = "primal"
    DUAL = "dual"
    SHARP = "sharp"
    BEST = "best"


def coefficient_intervals(region: OptimumRegion, method: str = "best") -> Bracket:
    """Return intervals of the optimal coefficients.

    Parameters
    ----------
    region : OptimumRegion
        A set that contains the optimum.
    method : {"primal", "dual", "sharp", "best"}
        Construction of the intervals. `primal` and `sharp` give infinite intervals without strong convexity.

    Returns
    -------
    Bracket
        Bounds (d,) in the coordinates of the region; the entry of an intercept is last and computed by
        :func:`prediction_intervals`.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem, region_of
    >>> problem = make_problem([[1.0], [1.0]], [2.0, 2.0], Squared(1.0), Regularizer(1.0))
    >>> box = coefficient_intervals(region_of(assess(problem, np.array([0.5]))))
    >>> bool(box.lower[0] <= 1.0 <= box.upper[0])
    True
    """
    units, which = np.eye(region.d), IntervalMethod(method)
    if not region.regularizer.intercept:
        return prediction_intervals(region, units, method)
    low, high = _linear(region, which)(units) if np.isfinite(region.gap) else (units[0] - np.inf, units[0] + np.inf)
    level = prediction_intervals(region, units[:1] - units[:1], method)
    return Bracket(np.append(low, level.lower), np.append(high, level.upper))


def prediction_intervals(region: OptimumRegion, X: FloatArray, method: str = "best") -> Bracket:
    """Return intervals of the optimal predictions `x' w*`, including an intercept.

    Parameters
    ----------
    region : OptimumRegion
        A set that contains the optimum.
    X : (m, d) array
        Test rows over the penalised columns, in the region's order.
    method : {"primal", "dual", "sharp", "best"}
        Construction of the intervals, see the table of the module.

    Returns
    -------
    Bracket
        Bounds (m,). The cost is O(md), with an intercept O(md + n).

    Raises
    ------
    BadInput
        If X has another number of columns.

    Examples
    --------
    >>> from sparsecv_mio.oracles.glru import Regularizer, Squared, assess, make_problem, change_rows
    >>> problem = make_problem([[1.0], [1.0], [1.0]], [1.0, 1.0, 4.0], Squared(1.0), Regularizer(1.0))
    >>> region = change_rows(assess(problem, np.array([1.0])), remove=[2])
    >>> [round(float(prediction_intervals(region, np.ones((1, 1)), m).upper[0]), 6) for m in IntervalMethod]
    [2.0, 1.0, 1.0, 0.5]
    """
    if X.ndim != 2 or X.shape[1] != region.d:
        raise BadInput(f"test rows of shape {X.shape} must have the {region.d} penalised columns of the problem")
    which = IntervalMethod(method)
    if not np.isfinite(region.gap):
        return Bracket(np.full(X.shape[0], -np.inf), np.full(X.shape[0], np.inf))
    linear = _linear(region, which)
    if region.regularizer.intercept:
        return _with_intercept(region, X, linear, which)
    return Bracket(*linear(X))


Linear = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def _linear(region: OptimumRegion, method: IntervalMethod) -> Linear:
    """Return a function of rows V (m, d): the bounds of `V w*` over the penalised part of the region."""
    ridge = region.regularizer.ridge > 0.0
    parts: list[Linear] = []
    if ridge and method is IntervalMethod.PRIMAL:
        parts.append(_ball(region.w[: region.d], region.primal_radius))
    if ridge and method in (IntervalMethod.SHARP, IntervalMethod.BEST):
        parts.append(_ball(region.center[: region.d], region.radius))
    if method in (IntervalMethod.DUAL, IntervalMethod.BEST):
        parts.append(_box(*_dual_box(region, sharp=method is IntervalMethod.BEST)))
    if not ridge and method is IntervalMethod.BEST:
        parts += [_l1_gap(region), _l1_size(region)]

    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = np.full(V.shape[0], -np.inf), np.full(V.shape[0], np.inf)
        for ends_of in parts:
            least, most = ends_of(V)
            low, high = np.maximum(low, least), np.minimum(high, most)
        return _order_bounds(low, high)

    return ends


def _ball(center: FloatArray, radius: float) -> Linear:
    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        norm = np.sqrt(np.einsum("ij,ij->i", V, V))
        reach = norm * (radius * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * float(np.linalg.norm(center)))
        middle = V @ center
        return middle - reach, middle + reach

    return ends


def _box(low: FloatArray, high: FloatArray) -> Linear:
    """Return the MinLin and MaxLin of the paper as one function."""
    finite = np.isfinite(low) & np.isfinite(high)
    middle = np.where(finite, 0.5 * (np.where(finite, low, 0.0) + np.where(finite, high, 0.0)), 0.0)
    half = np.where(finite, 0.5 * (np.where(finite, high, 0.0) - np.where(finite, low, 0.0)), 0.0)
    half = half * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * np.abs(middle)
    open_ = np.flatnonzero(~finite)

    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        mid, reach = V @ middle, np.abs(V) @ half
        least, most = mid - reach, mid + reach
        if open_.size:
            columns = V[:, open_]
            below = np.where(columns > 0.0, low[open_], high[open_])
            above = np.where(columns > 0.0, high[open_], low[open_])
            least = least + np.multiply(columns, below, where=columns != 0.0, out=np.zeros_like(columns)).sum(axis=1)
            most = most + np.multiply(columns, above, where=columns != 0.0, out=np.zeros_like(columns)).sum(axis=1)
        return least, most

    return ends


def _l1_gap(region: OptimumRegion) -> Linear:
    """Return the range over `sum_j l1 |w_j| - c_j w_j <= G`, from `G v_j / (l1 - c_j)` and `-G v_j / (l1 + c_j)`."""
    l1, c = region.regularizer.l1, region.score[: region.d]
    room_up, room_down = (np.maximum(l1 - s * c, 0.0) * (1.0 - INTERVAL_ROUNDING) for s in (1.0, -1.0))
    with np.errstate(divide="ignore"):
        up, down = region.gap / room_up, region.gap / room_down

    def max_product(V: FloatArray) -> FloatArray:
        rise = np.multiply(V, up, where=V > 0.0, out=np.zeros_like(V))
        fall = np.multiply(-V, down, where=V < 0.0, out=np.zeros_like(V))
        return np.maximum(rise, fall).max(axis=1, initial=0.0)

    return lambda V: (-max_product(-V), max_product(V))


def _l1_size(region: OptimumRegion) -> Linear:
    """Return the range over `l1 ||w||_1 <= P(w)`."""
    size = region.primal / region.regularizer.l1 * (1.0 + INTERVAL_ROUNDING)

    def ends(V: FloatArray) -> tuple[FloatArray, FloatArray]:
        reach = size * np.abs(V).max(axis=1, initial=0.0)
        return -reach, reach

    return ends


def _dual_box(region: OptimumRegion, sharp: bool) -> tuple[FloatArray, FloatArray]:
    """Return the intervals (12) of the penalised coefficients with the domain-tightened F of (27)."""
    radius = region.dual_radius_sharp if sharp else region.dual_radius
    total = region.n * region.score
    reach = radius * np.sqrt(region.column_sq) * (1.0 + INTERVAL_ROUNDING) + INTERVAL_ROUNDING * np.abs(total)
    box_low, box_high = region.box
    low, high = np.maximum(total - reach, box_low) / region.n, np.minimum(total + reach, box_high) / region.n
    # widened first: a coefficient is zero for certain only if its score is certainly inside of the L1 threshold
    spread = INTERVAL_ROUNDING * (np.abs(low) + np.abs(high) + region.regularizer.l1)
    spread = np.where(np.isfinite(spread), spread, 0.0)
    domain_low, domain_high = region.regularizer.score_range(region.w.shape[0])
    low, high = np.maximum(low - spread, domain_low), np.minimum(high + spread, domain_high)
    low, high = region.regularizer.conjugate_ends(low, high)
    return low[: region.d], high[: region.d]


def _order_bounds(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounds, swapped where rounding made them cross (both are within their allowances of one number)."""
    return np.minimum(low, high), np.maximum(low, high)


def _with_intercept(region: OptimumRegion, X: FloatArray, linear: Linear, method: IntervalMethod) -> Bracket:
    low, high = _bound_by_anchors(region, X, linear)
    if region.regularizer.ridge > 0.0:
        least, most = _bound_by_common_point(region, X, linear, method)
        low, high = np.maximum(low, least), np.minimum(high, most)
    return Bracket(*_order_bounds(low, high))


def _bound_by_anchors(region: OptimumRegion, X: FloatArray, linear: Linear) -> tuple[FloatArray, FloatArray]:
    """Return bounds by `x' w* + b* = t_k* + (x - x_k)' w*` with `t_k*` in `dl*(-alpha_k*)`, for a few rows k."""
    anchor, loss, radius = region.anchor, region.loss, region.dual_radius_sharp * (1.0 + INTERVAL_ROUNDING)
    box_low, box_high = loss.dual_range(anchor.y)
    least, _ = loss.conjugate_ends(-np.minimum(anchor.alpha + radius, box_high), anchor.y)
    _, most = loss.conjugate_ends(-np.maximum(anchor.alpha - radius, box_low), anchor.y)
    low, high = np.full(X.shape[0], -np.inf), np.full(X.shape[0], np.inf)
    for k in range(anchor.y.size):
        a, b = linear(X - anchor.rows[k, :-1])
        below, above = least[k] - INTERVAL_ROUNDING * abs(least[k]), most[k] + INTERVAL_ROUNDING * abs(most[k])
        low, high = np.maximum(low, a + below), np.minimum(high, b + above)
    return low, high


def _bound_by_common_point(
    region: OptimumRegion, X: FloatArray, linear: Linear, method: IntervalMethod
) -> tuple[FloatArray, FloatArray]:
    """Bound by `(x - z)' w* + b'`, b' between the roots of `sum_i l_i'(t_i + shift -/+ radius ||x_i - z||) = 0`."""
    common = region.common_point
    radius = region.primal_radius if method in (IntervalMethod.PRIMAL, IntervalMethod.DUAL) else region.radius_about_w
    reach = radius * common.distance * (1.0 + INTERVAL_ROUNDING)
    reach = reach + INTERVAL_ROUNDING * (np.abs(common.t) + common.distance * float(np.linalg.norm(region.w)))

    def slope(shift: float, side: float) -> float:
        return float(region.loss.derivative(common.t + (shift + side * reach), common.y).sum())

    step = float(reach.max(initial=0.0)) + ROUNDING
    least = -_first_rise(lambda s: slope(-s, 1.0) < 0.0, step)
    most = _first_rise(lambda s: slope(s, -1.0) > 0.0, step)
    level = float(region.w[-1]) + float(common.point @ region.w[: region.d])
    size = float(np.abs(common.point) @ np.abs(region.w[: region.d])) + abs(float(region.w[-1]))
    a, b = linear(X - common.point)
    return a + (level + least - INTERVAL_ROUNDING * size), b + (level + most + INTERVAL_ROUNDING * size)


def _first_rise(beyond: Callable[[float], bool], step: float) -> float:
    """Return an s >= 0 at which `beyond` holds, as small as bisection makes it; +inf if none is found."""
    high = step
    for _ in range(60):
        if beyond(high):
            break
        high *= 2.0
    else:
        return np.inf
    low = 0.0
    for _ in range(24):
        half = 0.5 * (low + high)
        if beyond(half):
            high = half
        else:
            low = half
    return high

"""Best-subset problems with a smooth convex loss and a ridge penalty, and quadratic lower bounds on their objective.

    F(a, b) = sum_i v_i l_i(sign_i (a + x_i'b)) + sum_j ridge_j b_j^2,

where v_i is the weight of row i, l_i its loss and sign_i the sign of its margin
(:mod:`sparsecv_mio.problem.row_losses`). F_S is the minimum of F over b supported on S, with the intercept `a` free (or
0). With `gamma = 1 / C` for scikit-learn's C, ridge_j is `gamma / 2` times the penalty weight of column j.

Wherever F is at most a number `level`, F is at least a quadratic q (docs/theory/glm.md, section 3), whose moments form
a `SparseProblem`. Suppose that a tree proves that the minimum of q on a support S is at least `lower`. Then F_S is at
least `lower`, or above `level`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri

from sparsecv_mio.arrays import (
    CACHED_NUMBERS,
    FloatArray,
    IntArray,
    base_with_ones,
    exact_product,
    power_of_two,
    prepend_ones,
)
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.row_losses import LOG_LOSS, RADII_TRIED, SMALL_RANGE, RowLoss
from sparsecv_mio.units import ROUNDING, TINY

RADII_GROWTH, RADII_SETTLED = 1.3, 0.95  # growth of a radius that is too small, and the ratio at which to stop
CURVATURE_DOUBT = 1e-2  # maximum relative rounding error of the curvature
LEAST_RANGE = 1e-9  # minimum half width of the range of a margin
WIDENED = 1.0 + 1e-6  # safety factor between the level set of q and the radii


@dataclass(frozen=True, eq=False)
class GlmProblem:
    """The data of the objective F of this module.

    Parameters
    ----------
    X : (n, p) array
        Columns with any offset and scale; fits use `centred`.
    y : (n,) array
        Targets in the form of the loss: labels -1 and 1 for logistic loss.
    v : (n,) array
        Row weights >= 0.
    weight : (p,) array
        Penalty weights > 0.
    gamma : float
        Ridge weight > 0.
    intercept : bool
        True if the model has an unpenalised intercept `a`.
    loss : RowLoss
        Row loss.
    ends : (2, p) array, optional
        Lower and upper bounds on the coefficients of the columns of a support.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.0], [1.0]]), np.array([-1.0, 1.0, 1.0])
    >>> problem = GlmProblem(X, y, np.ones(3), np.ones(1), 1.0)
    >>> round(problem.objective(np.zeros(2)), 6)
    2.079442
    """

    X: FloatArray
    y: FloatArray
    v: FloatArray
    weight: FloatArray
    gamma: float
    intercept: bool = True
    loss: RowLoss = LOG_LOSS
    ends: FloatArray | None = None

    def __post_init__(self) -> None:
        self.loss.check(self.y[self.v > 0.0], self.intercept)
        if not (np.all(self.ridge >= 0.0) and np.all(np.isfinite(self.ridge)) and 0.0 < self.gamma < np.inf):
            raise BadInput(f"{self.loss.name} loss: gamma must be a positive number, for every column")

    @property
    def ridge(self) -> FloatArray:
        """(p,) ridge weight of each column."""
        return np.asarray(0.5 * self.gamma * self.weight)

    @property
    def p(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def first_coefficient(self) -> int:
        """Index of the first coefficient: 1 with an intercept, else 0."""
        return int(self.intercept)

    def blocks(self) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield blocks of rows: their positions, the (m, first + p) rows z_i and their signs."""
        n, signs, step = len(self.y), self.signs, self.rows_at_once
        for begin in range(0, max(n, 1), step):
            here = slice(begin, min(begin + step, n))
            yield here, np.hstack([np.ones((len(signs[here]), self.first_coefficient)), self.X[here]]), signs[here]

    @property
    def rows(self) -> FloatArray:
        """(n, first + p) rows z_i."""
        return np.concatenate([Z for _, Z, _ in self.blocks()])

    @property
    def penalty(self) -> FloatArray:
        """(first + p,) diagonal of the penalty, 0 for the intercept."""
        return np.concatenate([np.zeros(self.first_coefficient), self.ridge])

    @property
    def ends_of_point(self) -> FloatArray | None:
        """(2, first + p) bounds on the intercept, which has none, and on the coefficients; None without bounds."""
        if self.ends is None:
            return None
        return np.column_stack([np.full((2, self.first_coefficient), [[-np.inf], [np.inf]]), self.ends])

    @property
    def signs(self) -> FloatArray:
        """(n,) signs that turn the products of rows with theta into margins."""
        return self.loss.signs(self.y)

    def objective(self, theta: FloatArray) -> float:
        """Return F of `(a, b)`, or of b without an intercept, without a bound on its rounding."""
        margins = np.concatenate([sign * (Z @ theta) for _, Z, sign in self.blocks()])
        return float(self.v @ self.loss.losses(margins, self.y) + self.penalty @ theta**2)

    def select_columns(self, columns: IntArray) -> GlmProblem:
        """Return the problem restricted to some columns."""
        if np.array_equal(columns, np.arange(self.p)):
            return self
        ends = None if self.ends is None else self.ends[:, columns]
        return replace(self, X=prepend_ones(self.X, columns)[1:].T, weight=self.weight[columns], ends=ends)

    def with_gamma(self, gamma: float) -> GlmProblem:
        """Return the problem with another gamma."""
        return replace(self, gamma=gamma)

    def start(self) -> FloatArray:
        """(first + p,) point without features: the optimal intercept (log odds for two classes), or 0."""
        theta = np.zeros(self.first_coefficient + self.p)
        if self.intercept:
            theta[0] = self.loss.origin(self.y, self.v)
        return theta

    def centre_columns(self) -> tuple[GlmProblem, FloatArray, Centring]:
        """Return the problem with columns centred and divided by powers of two, without rows of weight 0.

        The numbers have a relative error of one ulp, which every bound on margins allows for; everything else is exact.
        Columns that need neither step stay unchanged (`Centring`). The function also returns the rows as columns: the
        same numbers, after a row of ones if there is an intercept.
        """
        weighted, step = np.flatnonzero(self.v > 0.0), self.rows_at_once
        whole: Any = slice(None) if len(weighted) == len(self.v) else weighted
        y, v = self.y[whole], self.v[whole]
        centring = Centring.from_rows(self.X, v, self.intercept, weighted)
        there = base_with_ones(self.X)
        if there is not None and len(y) == len(self.y) and centring.is_identity:
            W = there[1 - self.first_coefficient :]
        else:
            W = np.empty((self.first_coefficient + self.p, len(y)))
            W[: self.first_coefficient] = 1.0
            for begin in range(0, len(y), step):
                here = slice(begin, begin + step)
                W[self.first_coefficient :, here] = centring.rows(self.X[weighted[here]]).T
        v = W[0] if self.intercept and np.all(v == 1.0) else v
        weight, ends = self.weight / centring.unit**2, None if self.ends is None else self.ends * centring.unit
        return replace(self, X=W[self.first_coefficient :].T, y=y, v=v, weight=weight, ends=ends), W, centring

    @property
    def rows_at_once(self) -> int:
        """Number of rows in a block."""
        return max(CACHED_NUMBERS // max(self.first_coefficient + self.p, 1), 1)


NEARLY_CENTRED, NEARLY_SCALED = 0.25, 256.0  # limits for unchanged columns: mean / rms, largest entry
CENTRE_BITS = 20  # bits of a centre relative to the spread; coarse centres keep a column and its complement duplicates


@dataclass(frozen=True, eq=False)
class Centring:
    """Columns as `z = (x - centre) / unit`, units powers of two.

    Columns stay unchanged if all of them are nearly centred and scaled, and no two of them become duplicates by
    centring, since all their numbers in the first row differ. Standardised data are therefore not copied.

    Examples
    --------
    >>> centring = Centring.from_rows(np.array([[1e6], [1e6 + 3.0]]), np.ones(2), True)
    >>> centring.rows(np.array([[1e6], [1e6 + 3.0]])).ravel().tolist()
    [-0.75, 0.75]
    """

    centre: FloatArray
    unit: FloatArray

    @classmethod
    def from_rows(cls, X: FloatArray, v: FloatArray, intercept: bool, rows: IntArray | None = None) -> Centring:
        """Return the centring for some rows (all by default) with these weights; centre 0 without an intercept."""
        rows = np.arange(len(X)) if rows is None else rows
        begin = X[rows[0]] if intercept else np.zeros(X.shape[1])
        step = max(CACHED_NUMBERS // max(X.shape[1], 1), 1)
        parts = [slice(at, at + step) for at in range(0, len(rows), step)]

        def farthest(centre: FloatArray) -> FloatArray:
            most = [np.abs(X[rows[block]] - centre).max(axis=0, initial=0.0) for block in parts]
            return np.max(most, axis=0, initial=0.0)

        widest = farthest(begin)
        unit = power_of_two(widest)
        centre = begin
        if intercept:
            step_of_centre = unit * 2.0**-CENTRE_BITS
            moved = np.sum([v[block] @ (X[rows[block]] - begin) for block in parts], axis=0)
            centre = np.where(
                widest > 0.0, np.round((begin + moved / v.sum()) / step_of_centre) * step_of_centre, begin
            )
        chosen, plain = cls(centre, power_of_two(farthest(centre))), cls(np.zeros(len(centre)), np.ones(len(centre)))
        if np.all((chosen.unit >= 1.0 / NEARLY_SCALED) & (np.maximum(chosen.unit, np.abs(centre)) <= NEARLY_SCALED)):
            length = np.sqrt(np.sum([v[block] @ X[rows[block]] ** 2 for block in parts], axis=0) / v.sum())
            if np.all(np.abs(centre) <= NEARLY_CENTRED * length):
                apart = np.abs(chosen.rows(X[rows[:1]])[0])
                return plain if len(np.unique(apart)) == len(apart) else chosen
        return chosen

    @property
    def is_identity(self) -> bool:
        """True if the columns are unchanged."""
        return not np.any(self.centre) and bool(np.all(self.unit == 1.0))

    def rows(self, X: FloatArray) -> FloatArray:
        """Return rows in the new coordinates."""
        moved = np.ascontiguousarray(X - self.centre)
        moved /= self.unit
        return moved

    def back(self, theta: FloatArray, intercept: bool) -> tuple[FloatArray, float]:
        """Return `(b, a)` for the original columns; a is correctly rounded for the rounded b."""
        b = theta[int(intercept) :] / self.unit
        if not intercept:
            return b, 0.0
        high, low = exact_product(b, self.centre)
        return b, math.fsum([float(theta[0]), *(-high).tolist(), *(-low).tolist()])


class Ranges(NamedTuple):
    """Bounds on the margins of every fit of interest, by row."""

    low: FloatArray
    high: FloatArray

    def intersect(self, other: Ranges) -> Ranges:
        """Return the intersection of two ranges, stored in the arrays of the first."""
        return Ranges(np.maximum(self.low, other.low, out=self.low), np.minimum(self.high, other.high, out=self.high))

    @property
    def width(self) -> float:
        """Mean width of the ranges."""
        return float((self.high.sum() - self.low.sum()) / len(self.low))


class Ellipsoid(NamedTuple):
    """`|z'(theta - centre)| <= spread sqrt(z' inverse z)` for every theta of interest and every row z.

    The rounding error of theta is relative to `size`.
    """

    centre: FloatArray
    inverse: FloatArray
    spread: float
    size: FloatArray

    def predictions(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on `z'theta` for some rows z."""
        length = np.sqrt(np.maximum(np.einsum("ij,ij->i", rows @ self.inverse, rows), 0.0))
        half = length * self.spread * (1.0 + 1e-9) + 1e-11 * (np.abs(rows) @ self.size)
        middle = rows @ self.centre
        return middle - half, middle + half


@dataclass(frozen=True, eq=False)
class RoundedPoint:
    """F about one point, with bounds on the rounding error of every number."""

    theta: FloatArray
    value: float
    value_off: float
    gradient: FloatArray
    gradient_off: FloatArray


@dataclass(frozen=True, eq=False)
class _RoundedPoint(RoundedPoint):
    """The same for a sum of losses of rows."""

    margins: FloatArray
    margin_off: FloatArray


def _evaluate_point(problem: GlmProblem, theta: FloatArray) -> _RoundedPoint:
    v, y, loss, n, k = problem.v, problem.y, problem.loss, len(problem.y), len(theta)
    margins, off = np.empty(n), np.empty(n)
    for here, Z, sign in problem.blocks():
        margins[here] = sign * (Z @ theta)
        off[here] = (k + 5) * ROUNDING * (np.abs(Z) @ np.abs(theta))
    ridge = problem.penalty * theta
    value = float(v @ loss.losses(margins, y) + ridge @ theta)
    noise = 1.01 * float(v @ loss.roundings(margins, y, off, ROUNDING)) + (n + k + 24) * ROUNDING * value
    pull, rounded = np.zeros(k), np.zeros(k)
    for here, Z, sign in problem.blocks():
        of_rows = margins[here], y[here], v[here]
        pull += Z.T @ (loss.negative_gradient(*of_rows) * sign)
        rounded += np.abs(Z).T @ (loss.gradient_scale(*of_rows) * (2.0 * off[here] + (n + 16) * ROUNDING))
    return _RoundedPoint(
        theta, value, noise, 2.0 * ridge - pull, rounded + 32.0 * ROUNDING * np.abs(ridge), margins, off
    )


@dataclass(frozen=True, eq=False)
class QuadraticAbout:
    """`low + g'd + d'H d / 2` below F within the radii, H lowered by its rounding, and its level set."""

    H: FloatArray
    low: float
    ranges: Ranges  # ranges that contain its level set; empty if the quadratic was made without rows
    reach: FloatArray  # bound on each coordinate of d in the level set
    ellipsoid: Ellipsoid  # ellipsoid that contains it
    doubt: float


@dataclass(frozen=True, eq=False)
class Minorant(QuadraticAbout):
    """A quadratic lower bound on F that holds at every fit with F at most a level.

    Attributes
    ----------
    moments : SparseProblem
        Moments with `moments.f(S) - shift <= F_S` for every S with `F_S <= level`.
    shift : float
        Constant that is subtracted from the objective of the moments.
    level : float
        Level of the objective.
    H, linear : (first + p, first + p), (first + p,) arrays
        Hessian of the quadratic, and its gradient at 0.
    ranges : Ranges
        Ranges of the margins of all fits of interest.
    ellipsoid : Ellipsoid
        Ellipsoid that contains every theta with F at most the level.
    reach : (first + p,) array
        Bounds on the distance of such a theta from the centre, by coordinate.
    """

    moments: SparseProblem
    shift: float
    level: float
    linear: FloatArray


def symmetric(upper: FloatArray) -> FloatArray:
    """Return the symmetric matrix whose upper triangle is given, as LAPACK leaves it.

    Examples
    --------
    >>> symmetric(np.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    lower = np.tri(len(upper), k=-1, dtype=bool)
    return np.where(lower, upper.T, upper)


def _quadratic(problem: GlmProblem, at: _RoundedPoint, level: float, ranges: Ranges) -> QuadraticAbout | None:
    n, k = len(at.margins), len(at.gradient)
    H = np.zeros((k, k))
    for here, Z, _ in problem.blocks():
        m, off = at.margins[here], at.margin_off[here]
        curvature = problem.loss.least_curvature(m, ranges.low[here] - off, ranges.high[here] + off, problem.y[here])
        weights = problem.v[here] * curvature * (1.0 - 2.0 * off)
        if k:  # LAPACK prints a warning for 0 columns
            H += symmetric(dsyrk(1.0, (Z * np.sqrt(np.maximum(weights, 0.0))[:, None]).T))
    H.flat[:: k + 1] += 2.0 * problem.penalty
    quadratic = bound_level_set(
        H, at, level, np.diag(H), 2.0 * float(at.margin_off.max()) + (n + 4 * k + 64) * ROUNDING
    )
    if quadratic is None:
        return None
    step, (_, inverse, spread, _), reach = quadratic.ellipsoid.centre - at.theta, quadratic.ellipsoid, quadratic.reach
    ends = Ranges(np.empty(n), np.empty(n))
    for here, Z, sign in problem.blocks():
        length = np.sqrt(np.maximum(np.einsum("ij,ij->i", Z @ inverse, Z), 0.0)) * spread
        half = length * WIDENED + 1e-12 * (np.abs(Z) @ reach) + LEAST_RANGE
        middle = at.margins[here] + sign * (Z @ step)
        ends.low[here], ends.high[here] = middle - half, middle + half
    return replace(quadratic, ranges=ends)


def bound_level_set(
    H: FloatArray, at: RoundedPoint, level: float, moments: FloatArray, relative: float
) -> QuadraticAbout | None:
    """Return the quadratic about a point with a given Hessian, lowered by its rounding, and bounds on its level set.

    Parameters
    ----------
    H : (k, k) array
        Hessian of the quadratic.
    at : RoundedPoint
        F about the point.
    level : float
        Level of the objective.
    moments : (k,) array
        Numbers with `|error of H_ab| <= relative * sqrt(moments_a moments_b)`.
    relative : float
        Relative rounding error of sums.

    Returns
    -------
    QuadraticAbout or None
        The quadratic, without ranges; None if its rounding error is too large.
    """
    k = len(at.gradient)
    unit = np.sqrt(np.diag(H))
    if not np.all((unit > 0.0) & np.isfinite(unit)):
        return None
    factor, failed = dpotrf(H / unit[:, None] / unit)
    if failed:
        return None
    inverse = symmetric(dpotri(factor)[0]) if k else factor
    doubt = k * relative * float((moments / np.diag(H) * np.diag(inverse)).sum())
    if not doubt <= CURVATURE_DOUBT:
        return None
    inverse /= (1.0 - doubt) * unit[:, None] * unit
    step = -inverse @ at.gradient
    fall = max(float(-at.gradient @ step), 0.0)
    room = level - at.value + at.value_off + 0.5 * fall * (1.0 + 4.0 * doubt)
    wide, lost = np.sqrt(np.diag(inverse)) * (1.0 + 4.0 * doubt), 1e-13 * at.value + at.value_off
    for _ in range(3):  # the rounding of the gradient costs `lost` on the level set enlarged by `lost`
        reach = np.abs(step) + wide * (np.sqrt(2.0 * max(room + lost, 0.0)) + 4.0 * doubt * np.sqrt(fall))
        if float(at.gradient_off @ reach) <= lost:
            break
        lost = 2.0 * float(at.gradient_off @ reach)
    else:
        return None
    spread = (np.sqrt(2.0 * max(room + lost, 0.0)) + 4.0 * doubt * np.sqrt(fall)) * (1.0 + 4.0 * doubt)
    low, centre, no_ranges = at.value - at.value_off - lost, at.theta + step, Ranges(np.zeros(0), np.zeros(0))
    ellipsoid = Ellipsoid(centre, inverse, spread, reach + np.abs(centre))
    return QuadraticAbout((1.0 - doubt) * H, low, no_ranges, reach, ellipsoid, doubt)


def minorant(
    problem: GlmProblem, theta: FloatArray, level: float, is_expired: Callable[[], bool] = lambda: False
) -> Minorant | None:
    """Return a quadratic lower bound on F over `{F <= level}`, built around a point of that set.

    Parameters
    ----------
    problem : GlmProblem
        The problem.
    theta : (first + p,) array
        Point with F at most the level.
    level : float
        The level.
    is_expired : callable
        Function that is called between rounds; if it returns True, the best bound so far is returned.

    Returns
    -------
    Minorant or None
        The bound. None if F is above the level at the point, or if no ball verifies itself. Reasons are nearly
        dependent columns with a small ridge, and a level far above the minimum of F.

    Notes
    -----
    Approximately ten rounds of O(n p^2).
    """
    at = _evaluate_point(problem, theta)
    if not at.value + at.value_off <= level:
        return None
    m, best = at.margins, None
    ranges = Ranges(m - SMALL_RANGE, m + SMALL_RANGE)
    for _ in range(RADII_TRIED):
        if is_expired():
            break
        quadratic = _quadratic(problem, at, level, ranges)
        if quadratic is None or not np.isfinite(quadratic.ranges.width) or ranges.width > 1e8:
            break
        need = _stretch(m, quadratic.ranges, WIDENED, LEAST_RANGE)  # shares the arrays, which contain m
        if np.all(need.low > ranges.low) and np.all(need.high < ranges.high):
            settled = best is not None and need.width > RADII_SETTLED * ranges.width
            best, ranges = quadratic, need
            if settled:
                break
        elif best is not None:
            break
        else:
            np.minimum(need.low, ranges.low, out=ranges.low)
            np.maximum(need.high, ranges.high, out=ranges.high)
            _stretch(m, ranges, RADII_GROWTH, 0.0)
            del quadratic, need  # frees arrays over rows, which may be very large
    return None if best is None else with_moments(problem, at, level, best)


def _stretch(m: FloatArray, ranges: Ranges, times: float, more: float) -> Ranges:
    """Scale the distances of ranges from m, in place for very many rows; 0 where a range does not contain m."""
    for end, way in ((ranges.low, -1.0), (ranges.high, 1.0)):
        end -= m
        end *= way * times
        np.maximum(end, 0.0, out=end)
        end += more
        end *= way
        end += m
    return ranges


def minorant_on_ranges(problem: GlmProblem, theta: FloatArray, level: float, ranges: Ranges) -> Minorant | None:
    """Return a quadratic lower bound on F for all points whose margins lie within ranges.

    Parameters
    ----------
    problem : GlmProblem
        Problem.
    theta : (first + p,) array
        Any point.
    level : float
        Level of interest: fits with a larger F are ignored.
    ranges : Ranges
        Ranges of the margins of all fits of interest.
    """
    at = _evaluate_point(problem, theta)
    quadratic = _quadratic(problem, at, level, ranges)
    return None if quadratic is None else with_moments(problem, at, level, quadratic)


def eliminate_intercept(
    H: FloatArray, linear: FloatArray, constant: float, first: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return M, c and yy of `yy - 2 c'b + b'M b`, the minimum of a quadratic in theta over the intercept.

    Parameters
    ----------
    H, linear, constant
        Parts of the quadratic `constant + linear'theta + theta'H theta / 2`.
    first : int
        Number of intercepts, 1 or 0.
    """
    M, c = 0.5 * H[first:, first:], -0.5 * linear[first:]
    if not first:
        return M, c, constant
    beside, own = H[0, 1:] / max(float(H[0, 0]), TINY), float(linear[0])
    yy = constant - 0.5 * own * own / max(float(H[0, 0]), TINY)
    return M - 0.5 * np.outer(H[0, 1:], beside), c + 0.5 * own * beside, yy


def with_moments(problem: GlmProblem, at: RoundedPoint, level: float, quadratic: QuadraticAbout) -> Minorant:
    """Expand q about 0, eliminate the intercept, and lower the constant by the rounding error on the level set.

    Parameters
    ----------
    problem : GlmProblem
        Problem.
    at : RoundedPoint
        F about the point of the quadratic.
    level : float
        Level of the objective.
    quadratic : QuadraticAbout
        Quadratic below F on its level set.
    """
    H, g, theta, k, first = quadratic.H, at.gradient, at.theta, len(at.theta), problem.first_coefficient
    linear, size = g - H @ theta, np.abs(g) + np.abs(H) @ np.abs(theta)
    constant = quadratic.low - float(g @ theta) + 0.5 * float(theta @ H @ theta)
    off = float((np.abs(theta) + quadratic.reach) @ size) + abs(quadratic.low) + float(size @ np.abs(theta))
    M, c, yy = eliminate_intercept(H, linear, constant, first)
    if first:
        moved = float(np.abs(H[0, 1:] / H[0, 0]) @ (np.abs(theta) + quadratic.reach)[1:])
        off += size[0] * moved + 0.5 * size[0] ** 2 / H[0, 0]
    yy -= 4.0 * (k + 12) * ROUNDING * off
    least = yy - float(c @ np.linalg.solve(M, c)) if len(c) else yy
    shift = max(-least, 0.0) * (1.0 + 1e-9)
    ridge = (1.0 - quadratic.doubt) * problem.ridge
    Q = M - np.diag(ridge)
    moments = SparseProblem(0.5 * (Q + Q.T), c, yy + shift, ridge, 1.0, len(problem.y), np.zeros(len(c)), 0.0)
    return Minorant(**vars(quadratic), moments=moments, shift=shift, level=level, linear=linear)


def level_ranges(
    problem: GlmProblem, theta: FloatArray, level: float, is_expired: Callable[[], bool] = lambda: False
) -> tuple[Ranges, FloatArray, FloatArray]:
    """Return ranges of the margins of all points with F at most a level, and centres and half widths of coefficients.

    For coefficients with a ridge penalty both are 0. If unpenalised columns prevent any bound, the ranges are infinite.

    Parameters
    ----------
    problem : GlmProblem
        The problem.
    theta : (first + p,) array
        One of these points.
    level : float
        The level.
    is_expired : callable
        Function that returns True after the time limit.

    Notes
    -----
    The penalty alone is at most the level, so `|x'b| <= r` for a row x. The losses within r of the margin at an
    intercept add up to at most the level, and their sum is convex in the intercept (docs/theory/glm.md, section 4).
    """
    middle, half, n = np.zeros(len(theta)), np.zeros(len(theta)), len(problem.y)
    if not np.all(problem.ridge > 0.0):
        below = minorant(problem, theta, level, is_expired)
        if below is None:
            return Ranges(np.full(n, -np.inf), np.full(n, np.inf)), middle, half + np.inf
        return below.ranges, below.ellipsoid.centre, below.reach
    reach = np.sqrt(level * np.einsum("ij,ij,j->i", problem.X, problem.X, 1.0 / problem.ridge)) * WIDENED + LEAST_RANGE
    ends = [
        _last_intercept(problem, theta[0], way, reach, level) if problem.first_coefficient else 0.0
        for way in (-1.0, 1.0)
    ]
    middle[: problem.first_coefficient] = 0.5 * sum(ends)
    half[: problem.first_coefficient] = 0.5 * (ends[1] - ends[0]) * WIDENED
    return Ranges(*np.sort(problem.signs * np.array([ends[0] - reach, ends[1] + reach]), axis=0)), middle, half


def _last_intercept(problem: GlmProblem, a: float, way: float, reach: FloatArray, level: float) -> float:
    """Return an intercept, above or below that of a point, beyond which no point has F at most the level."""
    step = 1.0
    with np.errstate(over="ignore"):
        while step < np.inf:
            low, high = a + way * step - reach, a + way * step + reach
            if problem.v @ problem.loss.bound_losses(low, high, problem.y)[0] > level * WIDENED:
                break
            step *= 2.0
    return a + way * step

"""Bounds on objectives, fits and held-out losses of logistic regression, from entropies and in integer arithmetic.

Let `l(m) = log(1 + exp(-m))` and `H(u) = -u log u - (1 - u) log(1 - u)`. Every u in [0, 1] gives `l(m) >= H(u) - u m`.
Let F(S) be the minimum objective of a support S, y_i = -1 or 1 the class of row i, x_ij its features, and s_j the scale
of column j. Define `g_j = sum y_i u_i x_ij` and `pi_j = (gamma / 2) s_j^2`. For every vector u with `sum y_i u_i = 0`,

    F(S) >= sum_i H(u_i) - sum_{j in S} g_j^2 / (4 pi_j).

Without an intercept, the inequality holds for every u. Since u need not be the best vector, it may be computed in
floating point. The objective at any point b is an upper bound on F(S). If b* is the fit of S, the difference of the two
bounds is at least `sum_j pi_j (b_j - b*_j)^2`. This inequality bounds the distance of b from b*. Numbers are
represented as integers times `2^-WIDTH`. Every logarithm, exponential and margin in this module has an error of less
than `LOST_UNITS` = 2^20 of these units, because its rounding errors add up to less than 2^17 units.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .proof_file import Array, Fractions, need
from .statements import BoundedScores, Folds, ProvedTree, Support, Terms, point_of_line, read_tree

WIDTH = 160
ONE, LOST_UNITS = 1 << WIDTH, 1 << 20
TABLE_BITS = 8  # bits of the numbers whose logarithm and exponential are in a table
NEWTON_LIMIT, EXACT_STEPS = 60, 3  # maximum numbers of Newton steps in floats and in integers
NEAR_FIT = ONE >> 36  # distance of predictors from the fit that suffices for every claim


def _log_of_ratio(above: int, below: int) -> int:
    """Return `log(above / below)` for a ratio from 1 to 2, by `2 artanh z`."""
    z = ((above - below) << WIDTH) // (above + below)
    power, total, square = z, z, z * z >> WIDTH
    for k in range(3, 2 * WIDTH, 2):
        power = power * square >> WIDTH
        total += power // k
    return 2 * total


@lru_cache(maxsize=1)
def _tables() -> tuple[int, Array, Array]:
    """Return log 2; the logarithms of the midpoints of the parts of [1, 2]; `exp(-j / 2^TABLE_BITS)`."""
    parts = 1 << TABLE_BITS
    logs = [_log_of_ratio(2 * parts + 2 * i + 1, 2 * parts) for i in range(parts)]
    step, each = np.array([ONE // parts], dtype=object), [ONE]
    for _ in range(parts):
        each.append(each[-1] * int(_series(step)[0]) >> WIDTH)
    return _log_of_ratio(2, 1), np.array([*logs, logs[-1]], dtype=object), np.array(each, dtype=object)


def _series(s: Array) -> Array:
    """Return `exp(-s)` for `0 <= s <= 2^-TABLE_BITS`."""
    total = np.full(s.shape, ONE, dtype=object)
    for k in range(17, 0, -1):
        total = ONE - (s * total >> WIDTH) // k
    return total


def exp_minus(t: Array) -> Array:
    """Return `exp(-t)` of integers `t >= 0`, all in units of `2^-WIDTH`."""
    log2, _, each = _tables()
    whole = np.minimum(t, 200 << WIDTH)
    halvings = whole // log2
    remainder = whole - halvings * log2
    place = remainder >> (WIDTH - TABLE_BITS)
    small = _series(remainder - (place << (WIDTH - TABLE_BITS)))
    return np.asarray((each[place.astype(int)] * small >> WIDTH) >> halvings)


def fixed_point_log(f: Array) -> Array:
    """Return the logarithm of integers `ONE <= f <= 2 ONE`, in units of `2^-WIDTH`."""
    _, logs, _ = _tables()
    place = np.minimum(f >> (WIDTH - TABLE_BITS), (2 << TABLE_BITS) - 1) - (1 << TABLE_BITS)
    middle = ONE + ((2 * place + 1) << (WIDTH - TABLE_BITS - 1))
    z = ((f - middle) << WIDTH) // (f + middle)
    square = z * z >> WIDTH
    total = np.zeros(f.shape, dtype=object)
    for k in range(17, 0, -2):
        total = ONE // k + (square * total >> WIDTH)
    return np.asarray(logs[place.astype(int)] + 2 * (z * total >> WIDTH))


_bits = np.frompyfunc(int.bit_length, 1, 1)


def _minus_log(u: Array) -> Array:
    """Return `-log u` of integers `0 < u <= ONE`."""
    shift = WIDTH + 1 - _bits(u)
    return np.asarray(shift * _tables()[0] - fixed_point_log(u << shift))


def entropies(u: Array) -> Array:
    """Return `H(u)` of integers `0 <= u <= ONE`, to within `LOST_UNITS`, in units of `2^-WIDTH`."""
    total = np.zeros(u.shape, dtype=object)
    for share in (u, ONE - u):
        inside = (share > 0).astype(bool)
        total[inside] += share[inside] * _minus_log(share[inside]) >> WIDTH
    return total


class Training(NamedTuple):
    """Training rows: columns about a centre, entries at most 1 in size, as integers over `2^shift` and as floats.

    `sign` is -1 or 1 for each row, and `free` is True if there is an intercept.
    """

    Z: Array
    shift: Array
    near: Array
    sign: Array
    free: bool


class EnclosedFit(NamedTuple):
    """Fit of a support: `lower <= F(S) <= upper`, a point a and b, and a bound on the error of predictors.

    All numbers are integers times `2^-WIDTH`; the error bound `off` is None if unknown.
    """

    lower: int
    upper: int
    a: int
    b: list[int]
    off: int | None


class TwoClasses:
    """The data: columns about a centre divided by powers of two, and the factors of the penalty.

    Attributes
    ----------
    exponent : (q,) int array
        Exponents of the power of two of every column.
    """

    kind, y_unit, within = Fractions(), Fraction(1), None

    def __init__(self, X: Array, y: Array, scale: str, intercept: str) -> None:
        need(set(y.tolist()) <= {0.0, 1.0}, "the target has values other than 0 and 1, which logistic loss requires")
        need(intercept in ("fold", "none"), f"the intercept is {intercept!r}; logistic loss requires 'fold' or 'none'")
        self.intercept, (self.n, self.q) = intercept, X.shape
        need(self.n < 1 << 24 and self.q < 1 << 16, f"{self.n} rows of {self.q} columns are too many for the checker")
        center = X.mean(0) if intercept == "fold" else np.zeros(self.q)
        need(np.isfinite(center).all(), "the mean of a column exceeds the range of floating-point numbers")
        whole = [_convert_to_integers(X[:, j], center[j]) for j in range(self.q)]
        sizes = [max(map(abs, column)) for column, _ in whole]
        bits = [size.bit_length() for size in sizes]
        self.exponent = np.array([b - below for b, (_, below) in zip(bits, whole, strict=True)], dtype=np.int64)
        Z = np.array([column for column, _ in whole], dtype=object).reshape(self.q, self.n).T
        near = np.array([[z / (1 << b) for z in column] for (column, _), b in zip(whole, bits, strict=True)])
        self.rows = Training(
            Z, np.array(bits, dtype=object), near.reshape(self.q, self.n).T,
            np.array([1 if label else -1 for label in y.tolist()], dtype=object), intercept == "fold",
        )  # fmt: skip
        scales = list[Fraction]()
        for (column, _), power, exponent in zip(whole, bits, self.exponent.tolist(), strict=True):
            spread = Fraction(self.n * sum(z * z for z in column) - sum(column) ** 2, self.n << 2 * power)
            unscaled = Fraction(4) ** -exponent
            scales.append({"length": spread, "variance": spread / self.n, "none": unscaled}[scale])
        self.scale = np.array(scales, dtype=object)

    def penalty(self, gamma: float, rows: Training | None = None) -> Array:
        """Return the (q,) factors of `b_j^2` of the scaled columns."""
        return np.asarray(self.scale * Fraction(gamma) / 2)

    def exclude_rows(self, left: list[int]) -> Training:
        """Return all rows except the held-out ones."""
        training = np.setdiff1d(np.arange(self.n), left)
        rows = self._select_rows(training)
        need(len(training) > 0, "the training set is empty")
        need(not rows.free or len(set(rows.sign.tolist())) == 2, "all training rows are of one class")
        return rows

    def _select_rows(self, rows: Any) -> Training:
        every = self.rows
        return every._replace(Z=every.Z[rows], near=every.near[rows], sign=every.sign[rows])

    def losses(self, rows: list[int], columns: Support, fit: EnclosedFit) -> tuple[int, int | None]:
        """Return bounds on the losses of some rows at the fit of a support."""
        held_out = self._select_rows(rows)
        loss, _ = _losses(held_out, _margins(held_out, columns, fit.a, fit.b))
        if fit.off is None:
            return 0, None
        off = fit.off + LOST_UNITS
        return int(np.maximum(loss - off, 0).sum()), int((loss + off).sum())


def _convert_to_integers(values: Array, center: float) -> tuple[list[int], int]:
    """Return numbers minus a centre as integers over `2^below`."""
    ratios = [number.as_integer_ratio() for number in (*values.tolist(), float(center))]
    below = max(under.bit_length() - 1 for _, under in ratios)
    *integers, middle = [(above << below) // under for above, under in ratios]
    return [number - middle for number in integers], below


def _margins(rows: Training, columns: Support, a: int, b: list[int]) -> Array:
    """Return the margins of rows at a point."""
    total = np.full(len(rows.sign), a, dtype=object)
    for j, entry in zip(columns, b, strict=True):
        total = total + (rows.Z[:, j] * entry >> rows.shift[j])
    return np.asarray(rows.sign * total)


def _losses(rows: Training, m: Array) -> tuple[Array, Array]:
    """Return `l(m)` and u near `-l'(m)`."""
    e = exp_minus(abs(m))
    inverse = (ONE << WIDTH) // (ONE + e)
    return fixed_point_log(ONE + e) + np.maximum(-m, 0), np.where((m >= 0).astype(bool), e * inverse >> WIDTH, inverse)


def _balance_classes(rows: Training, u: Array) -> Array:
    """Return u with `sum y_i u_i = 0`, if there is an intercept, by scaling down the values of the heavier class."""
    if not rows.free:
        return u
    ones = (rows.sign > 0).astype(bool)
    weights = {True: int(u[ones].sum()), False: int(u[~ones].sum())}
    heavier = weights[True] > weights[False]
    of, total, u = ones == heavier, weights[not heavier], u.copy()
    if weights[heavier] > total:
        smaller = u[of] * total // weights[heavier]
        smaller[: total - int(smaller.sum())] += 1  # fewer units than rows are missing
        u[of] = smaller
    return u


def _dual(rows: Training, u: Array, penalty: Array, columns: Support) -> tuple[int, list[int]]:
    """Return a lower bound of the sum of entropies of u, and upper bounds of `g_j^2 / (4 pi_j)` of some columns."""
    u = _balance_classes(rows, u)
    slopes, costs = rows.sign * u, list[int]()
    need(
        u.min() >= 0 and u.max() <= ONE and not (rows.free and slopes.sum()),
        "the slopes of a dual point are not between 0 and 1, or do not balance the two classes",
    )
    for j in columns:
        g, pi = int((slopes * rows.Z[:, j]).sum()), penalty[j]
        costs.append(-(-(g * g * pi.denominator) // (4 * pi.numerator << (WIDTH + 2 * int(rows.shift[j])))))
    return int(entropies(u).sum()) - LOST_UNITS * len(u), costs


def _approximate_fit(rows: Training, penalty: Array, columns: Support, begin: Array | None = None) -> Array:
    """Return a point near the fit of a support, the intercept first; given `begin`, only the intercept is fitted."""
    sign, fixed = rows.sign.astype(float), np.zeros(len(rows.sign)) if begin is None else rows.near @ begin
    Z = rows.near[:, list(columns)] if begin is None else rows.near[:, :0]
    if rows.free:
        Z = np.column_stack([np.ones(len(sign)), Z])
    ridge = 2.0 * np.array([*[0.0] * rows.free, *(float(penalty[j]) for j in columns if begin is None)])
    theta = np.zeros(Z.shape[1])

    def value(point: Array) -> float:
        return float(np.logaddexp(0.0, -sign * (fixed + Z @ point)).sum() + ridge @ point**2 / 2.0)

    current = value(theta)
    for _ in range(NEWTON_LIMIT):
        step = _newton_step(Z, sign * (fixed + Z @ theta), sign, ridge, ridge * theta)
        size = 1.0
        while size > 1e-9 and not value(theta - size * step) <= current:
            size /= 2.0
        before, theta = current, theta - size * step
        current = value(theta)
        if not before - current > 1e-13 * abs(current):
            break
    return theta


def _newton_step(Z: Array, m: Array, sign: Array, ridge: Array, slope: Array, gradient: Array | None = None) -> Array:
    """Return a step of Newton's method, for a given gradient or that of floats."""
    u = np.exp(-np.logaddexp(0.0, m))
    H = (Z.T * (u * (1.0 - u))) @ Z + np.diag(ridge)
    g = slope - Z.T @ (sign * u) if gradient is None else gradient
    root = np.sqrt(np.maximum(np.diag(H), 1e-300))
    try:
        return np.asarray(np.linalg.solve(H / root / root[:, None], g / root) / root)
    except np.linalg.LinAlgError:
        return np.asarray(g / root**2)


def _scaled_float(value: float) -> int:
    above, below = value.as_integer_ratio()
    return (above << WIDTH) // below


def enclosed_fit(rows: Training, penalty: Array, columns: Support) -> EnclosedFit:
    """Return bounds on the fit of a support on training rows.

    Parameters
    ----------
    rows : Training
        Training rows.
    penalty : (q,) array
        Factors of `b_j^2`.
    columns : tuple of int
        Support.
    """
    theta = _approximate_fit(rows, penalty, columns)
    need(np.isfinite(theta).all(), "the coefficients of a fit exceed the range of floating-point numbers")
    a, *b = [*([0] * (not rows.free)), *map(_scaled_float, theta.tolist())]
    best: EnclosedFit | None = None
    for _ in range(EXACT_STEPS):
        m = _margins(rows, columns, a, b)
        loss, u = _losses(rows, m)
        upper = int(loss.sum()) + LOST_UNITS * len(u)
        for j, entry in zip(columns, b, strict=True):
            pi = penalty[j]
            upper -= -(pi.numerator * entry * entry) // (pi.denominator << WIDTH)
        base, costs = _dual(rows, u, penalty, columns)
        lower = base - sum(costs)
        bounded = EnclosedFit(lower, upper, a, b, _predictor_radius(rows, penalty, columns, u, upper - lower))
        if best is None or bounded.upper - bounded.lower < best.upper - best.lower:
            best = bounded
        if best.off is not None and best.off <= NEAR_FIT:
            break
        a, b = _improve_point(rows, penalty, columns, (a, b, m, u))
    assert best is not None
    return best


def _improve_point(rows: Training, penalty: Array, columns: Support, at: Any) -> tuple[int, list[int]]:
    """Return the point after a step of Newton's method whose gradient is computed in integers."""
    a, b, m, u = at
    slopes = rows.sign * u
    gradient = [-int(slopes.sum())] * rows.free
    for j, entry in zip(columns, b, strict=True):
        pi = penalty[j]
        pull = int((slopes * rows.Z[:, j]).sum()) >> rows.shift[j]
        gradient.append(2 * pi.numerator * entry // pi.denominator - pull)
    Z = np.column_stack([np.ones((len(u), int(rows.free))), rows.near[:, list(columns)]])
    ridge = np.array([*[0.0] * rows.free, *(2.0 * float(penalty[j]) for j in columns)])
    floats = np.array([entry / ONE for entry in gradient])
    step = _newton_step(Z, np.array([margin / ONE for margin in m]), rows.sign.astype(float), ridge, ridge, floats)
    if not np.isfinite(step).all():
        return a, b
    moved = [value - _scaled_float(d) for value, d in zip([*[a] * rows.free, *b], step.tolist(), strict=True)]
    return (moved[0], moved[1:]) if rows.free else (0, moved)


def _predictor_radius(rows: Training, penalty: Array, columns: Support, u: Array, gap: int) -> int | None:
    """Return a bound on the distance of `a + x'b` of any row of the data from that of the fit.

    `sum_j pi_j (b_j - b*_j)^2 <= gap` and entries of rows are at most 1 in size, so `|x'(b - b*)|` is at most e, with
    `e^2 = gap sum 1 / pi_j`. If predictors without the intercept move by at most e, so does the best intercept. At b it
    is within `r = 2 |D| / D'` of a, where `D = sum y_i u_i` is the slope there and D' the curvature, if `r <= 1/2`:
    within that distance the curvature falls by at most a factor `exp(-r) > 1/2`.
    """
    over = sum((1 / penalty[j] for j in columns), Fraction(0))
    square = max(gap, 0) * over.numerator << WIDTH
    e = math.isqrt(square // over.denominator) + 1
    if not rows.free:
        return e
    slope = abs(int((rows.sign * u).sum())) + LOST_UNITS * len(u)
    curvature = int((u * (ONE - u) >> WIDTH).sum()) - 2 * LOST_UNITS * len(u)
    if curvature <= 0 or 4 * slope > curvature:
        return None
    return (2 * slope << WIDTH) // curvature + 1 + 2 * e


def check_logistic_tree(line: dict[str, Any], m: Training, penalty: Array, kind: Any, units: Any) -> ProvedTree:
    """Check every leaf of a tree, by the entropies at its point; return its result.

    Parameters
    ----------
    line : dict
        Tree in the proof.
    m : Training
        Rows of the tree.
    penalty : (q,) array
        Factors of `b_j^2`.
    kind : Fractions
        Arithmetic.
    units : number, (q,) array
        The number 1, and exponents that scale points.
    """
    q = len(penalty)
    points = [point_of_line(point, units[1]) for point in line.get("points", [])]
    need("part" not in line, "the field `part` of a tree is not supported with logistic loss")
    tree = read_tree(line, q, len(points), kind, units[0])
    bounds: dict[int, tuple[int, list[int]]] = {}
    for i, t in np.argwhere(tree.to_bound).tolist():
        code, size = -2 - int(tree.codes[i]), int(tree.sizes[t])
        need(code >= 0, f"leaf {i + 1} has no dual point, and does not list its support of size {size}")
        if code not in bounds:
            bounds[code] = _bound_at_point(m, penalty, points[code])
        base, costs = bounds[code]
        inside = tree.inside[i]
        free = sorted((costs[j] for j in np.flatnonzero(tree.every[i] & ~inside)), reverse=True)
        bound = base - sum(costs[j] for j in np.flatnonzero(inside)) - sum(free[: size - int(inside.sum())])
        above = tree.above[t] * ONE
        need(
            bound >= above,
            f"leaf {i + 1} has a bound below the threshold of size {size}, and its supports are not listed",
        )
    return ProvedTree(tree.first, tree.above, tree.listed, len(tree.codes))


def _bound_at_point(rows: Training, penalty: Array, b: Array) -> tuple[int, list[int]]:
    """Return the bound of a point: u near the slopes there, with the intercept that balances it."""
    predictors = rows.near @ b
    if rows.free:
        predictors = predictors + _approximate_fit(rows, penalty, (), b)[0]
    m = rows.sign.astype(float) * predictors
    u = np.nan_to_num(np.exp(-np.logaddexp(0.0, m)), nan=0.5)
    whole = np.array([int(share) for share in np.rint(np.ldexp(u, 60)).tolist()], dtype=object)
    return _dual(rows, np.minimum(whole << (WIDTH - 60), ONE), penalty, tuple(range(len(penalty))))


class LogisticFolds(Folds):
    """The folds of a proof with logistic loss, with fits of supports and held-out losses."""

    design: Any

    def __init__(self, design: TwoClasses, left: list[list[int]], scored: list[list[int]], terms: Terms) -> None:
        super().__init__(design, left, scored, terms)  # type: ignore[arg-type]
        self._fits: dict[tuple[int, float, Support], EnclosedFit] = {}

    def _fit(self, fold: int, gamma: float, support: Support) -> EnclosedFit:
        key = fold, gamma, support
        if key not in self._fits:
            self._fits[key] = enclosed_fit(self.moments(fold), self.penalty(gamma), support)  # type: ignore[arg-type]
        return self._fits[key]

    def scores(self, gamma: float, mine: list[int], supports: list[Support]) -> BoundedScores:
        """Return the intervals of supports (L) in some folds (K).

        Parameters
        ----------
        gamma : float
            Ridge weight.
        mine : list of int
            Folds.
        supports : list of tuple of int
            Supports.
        """
        ends = [np.empty((len(mine), len(supports)), dtype=object) for _ in range(4)]
        for k, fold in enumerate(mine):
            for s, columns in enumerate(supports):
                here = self._fit(fold, gamma, columns)
                low, high = self.design.losses(self.scored[fold], columns, here)
                for end, bound in zip(ends, (here.lower, here.upper, low, high), strict=True):
                    end[k, s] = np.inf if bound is None else Fraction(bound, ONE)
        return BoundedScores(*ends)

    def objectives(self, gamma: float, supports: list[Support]) -> tuple[Array, Array]:
        """Return bounds on the objectives of supports on all rows."""
        fits = [self._fit(-1, gamma, columns) for columns in supports]
        lower, upper = ([Fraction(end, ONE) for end in ends] for ends in zip(*(fit[:2] for fit in fits), strict=True))
        return np.array(lower, dtype=object), np.array(upper, dtype=object)

    def left_out_thresholds(self, gamma: float, above: Any, mine: list[int]) -> Array:
        """Refuse: a list on all rows bounds folds for squared-error loss only."""
        need(False, "a statement from a list of supports requires squared-error loss")
        return np.zeros(0)

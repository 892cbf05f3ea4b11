"""Coordinates and fits that need more precision than floats: twice that precision, or integers without rounding.

**Twice the precision.** A number is stored as an unevaluated sum of two floats (about 32 digits). Sums and products use
the error-free transformations of Dekker and Knuth, in plain numpy. The module does not use long doubles, because a
significand of 64 bits is too short, and some machines have no long doubles. Callers multiply by powers of two so that
all numbers stay between 1e-280 and 1e280.

**Fits in fractions** are for data that need more than twice the precision of floats.

A float is an integer divided by a power of two, so moments about means are integers over one common divisor. The normal
equations are solved by fraction-free elimination (Bareiss). If the exponents of the data differ much, the integers have
many digits. Fits in fractions are therefore used for few rows and columns only; `problem.objective.fit` decides when
fractions are used.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray, exact_product, power_of_two
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.units import ACCURATE_RTOL


def exact_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded sum and its rounding error, which together equal `a + b` exactly (Knuth).

    Examples
    --------
    >>> exact_sum(1.0, 1e-20)
    (1.0, 1e-20)
    """
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@dataclass(frozen=True, eq=False)
class DoubleDouble:
    """An array of numbers `high + low` with `|low|` at most half an ulp of `high`.

    Examples
    --------
    >>> third = DoubleDouble.from_floats(np.array([1.0])) / 3.0
    >>> float((third * 3.0 - 1.0).high[0])
    0.0
    >>> float(DoubleDouble.from_floats(np.array([1e16, 1.0, -1e16])).sum(0).high)
    1.0
    """

    high: FloatArray
    low: FloatArray

    @classmethod
    def from_floats(cls, values: Any) -> DoubleDouble:
        """Return floats in twice the precision."""
        high = np.asarray(values, dtype=np.float64)
        return cls(high, np.zeros_like(high))

    def _normalise(self, high: Any, low: Any) -> DoubleDouble:
        total = high + low
        return DoubleDouble(np.asarray(total), np.asarray(low - (total - high)))

    def __neg__(self) -> DoubleDouble:
        return DoubleDouble(-self.high, -self.low)

    def __add__(self, other: Any) -> DoubleDouble:
        if not isinstance(other, DoubleDouble):
            total, error = exact_sum(self.high, other)
            return self._normalise(total, error + self.low)
        total, error = exact_sum(self.high, other.high)
        low, carry = exact_sum(self.low, other.low)
        first = self._normalise(total, error + low)
        return self._normalise(first.high, first.low + carry)

    def __sub__(self, other: Any) -> DoubleDouble:
        return self + (-other)

    def __mul__(self, other: Any) -> DoubleDouble:
        if not isinstance(other, DoubleDouble):
            product, error = exact_product(self.high, np.asarray(other, dtype=np.float64))
            return self._normalise(product, error + self.low * other)
        product, error = exact_product(self.high, other.high)
        return self._normalise(product, error + (self.high * other.low + self.low * other.high))

    def __truediv__(self, divisor: float) -> DoubleDouble:
        first = self.high / divisor
        remainder = self - DoubleDouble.from_floats(first) * divisor
        return self._normalise(first, (remainder.high + remainder.low) / divisor)

    def __getitem__(self, index: Any) -> DoubleDouble:
        return DoubleDouble(np.asarray(self.high[index]), np.asarray(self.low[index]))

    def rescale(self, power_of_two: Any) -> DoubleDouble:
        """Return the numbers multiplied by powers of two, which is exact."""
        return DoubleDouble(np.asarray(self.high * power_of_two), np.asarray(self.low * power_of_two))

    def sum(self, axis: int) -> DoubleDouble:
        """Return the sum along an axis, computed by repeated halving."""
        high, low = np.moveaxis(self.high, axis, 0), np.moveaxis(self.low, axis, 0)
        sums = DoubleDouble(high, low)
        while (count := sums.high.shape[0]) > 1:
            half = count // 2
            head = sums[:half] + sums[half : 2 * half]
            sums = head if count == 2 * half else head.concatenate(sums[2 * half :])
        return sums[0] if sums.high.shape[0] else DoubleDouble.from_floats(np.zeros(high.shape[1:]))

    def concatenate(self, other: DoubleDouble) -> DoubleDouble:
        """Return two arrays joined along the first axis."""
        return DoubleDouble(np.concatenate([self.high, other.high]), np.concatenate([self.low, other.low]))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Some columns and the target, centred and divided by powers of two without loss of digits.

    `z = (x - x_shift) / x_unit - x_rest`, `t = (y - y_shift) / y_unit - y_rest`. The shifts are floats near the
    centres, so that a spread far below its offset keeps its digits; the rests are the differences between centres and
    shifts.
    """

    columns: tuple[int, ...]
    x_shift: FloatArray
    y_shift: float
    x_unit: FloatArray
    y_unit: float
    x_rest: DoubleDouble
    y_rest: DoubleDouble

    @classmethod
    def from_columns(
        cls,
        X: FloatArray,
        y: FloatArray,
        columns: Sequence[int],
        about: IntArray | None,
        root: FloatArray | None = None,
    ) -> Coordinates:
        """Return coordinates of some columns, with rests computed in floats.

        Parameters
        ----------
        X : (n, p) array
            Features.
        y : (n,) array
            Target.
        columns : sequence of int
            Columns.
        about : int array or None
            Rows whose means are the centres; None: zero.
        root : (n,) array, optional
            Square roots of the weights of all rows; 1 by default.
        """
        A, q = X[:, list(columns)], len(columns)
        x_shift, y_shift = np.zeros(q), 0.0
        if about is not None:
            x_shift, y_shift = _weighted_mean(A[about], about, root), float(_weighted_mean(y[about], about, root))
        # powers of two, so that columns and targets of any size become size one without rounding
        x_unit = power_of_two(np.abs(A - x_shift).max(axis=0, initial=0.0))
        y_unit = float(power_of_two(np.abs(y - y_shift).max(initial=0.0)))
        zero = DoubleDouble.from_floats(np.zeros(q)), DoubleDouble.from_floats(0.0)
        plain = cls(tuple(columns), x_shift, y_shift, x_unit, y_unit, *zero)
        if about is None:
            return plain
        Z, t = plain.standardise_rows(X, y, about)
        rests = (
            DoubleDouble.from_floats(_weighted_mean(Z, about, root)),
            DoubleDouble.from_floats(_weighted_mean(t, about, root)),
        )
        return replace(plain, x_rest=rests[0], y_rest=rests[1])

    @property
    def centers(self) -> tuple[FloatArray, float]:
        """Centres of the columns and of the target, in units of the file, rounded."""
        x_center = np.asarray(self.x_shift + self.x_rest.high * self.x_unit)
        return x_center, self.y_shift + float(self.y_rest.high) * self.y_unit

    def standardise_rows(self, X: FloatArray, y: FloatArray, index: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return standardised rows (Z, t) in floats; a value has an error of one or two ulps relative to the spread.

        Parameters
        ----------
        X : (n, p) array
            Features.
        y : (n,) array
            Target.
        index : (m,) int array
            The rows.
        """
        Z = (X[index[:, None], list(self.columns)] - self.x_shift) / self.x_unit - self.x_rest.high
        return Z, (y[index] - self.y_shift) / self.y_unit - self.y_rest.high

    def doubled_rows(self, X: FloatArray, y: FloatArray, index: IntArray) -> tuple[DoubleDouble, DoubleDouble]:
        """Return (Z, t) of some rows in twice the precision.

        Parameters
        ----------
        X : (n, p) array
            Features.
        y : (n,) array
            Target.
        index : (m,) int array
            The rows.
        """
        Z = DoubleDouble(*exact_sum(X[index[:, None], list(self.columns)], -self.x_shift)).rescale(1.0 / self.x_unit)
        t = DoubleDouble(*exact_sum(y[index], -self.y_shift)).rescale(1.0 / self.y_unit)
        return Z - self.x_rest, t - self.y_rest

    def double_precision(
        self, X: FloatArray, y: FloatArray, about: IntArray | None, root: FloatArray | None = None
    ) -> Coordinates:
        """Return the same coordinates with rests in twice the precision.

        Parameters
        ----------
        X : (n, p) array
            Features.
        y : (n,) array
            Target.
        about, root
            Arguments as for `of`.
        """
        if about is None:
            return self
        Z, t = replace(self, x_rest=self.x_rest.rescale(0.0), y_rest=self.y_rest.rescale(0.0)).doubled_rows(X, y, about)
        weights = np.ones(len(about)) if root is None else root[about]
        total, per_row = float(weights @ weights), weights[:, None]
        x_rest, y_rest = (Z * per_row * per_row).sum(0) / total, (t * weights * weights).sum(0) / total
        return replace(self, x_rest=x_rest, y_rest=y_rest)


def _weighted_mean(rows: FloatArray, about: IntArray, root: FloatArray | None) -> FloatArray:
    """Return the weighted mean of the rows `about`."""
    if root is None:
        return np.asarray(rows.mean(axis=0))
    weight = root[about] ** 2
    return np.asarray(weight @ rows / weight.sum())


def size_of_target(dataset: Dataset, intercept: str) -> float:
    """Return the largest absolute deviation of the target from its mean, or from zero without an intercept."""
    y = dataset.y
    return float(np.abs(y).max() if intercept == "none" else np.ptp(y))


def objective_slack(objective: float, dataset: Dataset, intercept: str) -> float:
    """Return a bound on the rounding error of an objective of the search.

    Parameters
    ----------
    objective : float
        Objective.
    dataset : Dataset
        Data set.
    intercept : {"fold", "global", "none"}
        Type of the intercept.

    Returns
    -------
    float
        A fraction of the objective plus, for a nearly perfect fit, a bound on the error of its residuals.
    """
    noise = 1e-15 * size_of_target(dataset, intercept) * math.sqrt(dataset.weight_of(slice(0, dataset.n)))
    return ACCURATE_RTOL * objective + noise * (2.0 * math.sqrt(objective) + noise)


Whole = list[int]

EXACT_WORK = 20_000  # rows times squared columns, up to which a fit is made in fractions: about 5 ms


@dataclass(frozen=True, eq=False)
class ExactFit:
    """The minimiser behind f(S) in fractions: prediction = y_center + (x - x_center)' beta.

    Attributes
    ----------
    columns : tuple of int
        Columns of X.
    x_center : tuple of Fraction
        Centres of the columns.
    y_center : Fraction
        Centre of the target.
    beta : tuple of Fraction
        Coefficients.
    objective : Fraction
        Training objective.
    slope : tuple of Fraction
        A positive multiple of the decrease of the objective by increasing each coefficient.
    """

    columns: tuple[int, ...]
    x_center: tuple[Fraction, ...]
    y_center: Fraction
    beta: tuple[Fraction, ...]
    objective: Fraction
    slope: tuple[Fraction, ...]

    def residuals(self, X: FloatArray, y: FloatArray, index: IntArray) -> FloatArray:
        """Return (m,) `y - prediction` of some rows, each rounded once.

        Parameters
        ----------
        X : (n, p) array
            Features.
        y : (n,) array
            Target.
        index : (m,) int array
            The rows.
        """
        residuals = []
        for row, target in zip(X[index][:, list(self.columns)].tolist(), y[index].tolist(), strict=True):
            moved = (b * (Fraction(v) - c) for b, v, c in zip(self.beta, row, self.x_center, strict=True))
            residuals.append(float(Fraction(target) - self.y_center - sum(moved, Fraction(0))))
        return np.array(residuals)


def fit_exactly(
    X: FloatArray,
    y: FloatArray,
    columns: Sequence[int],
    penalty: Sequence[Fraction],
    train: IntArray,
    about: IntArray | None,
    weights: FloatArray | None = None,
    fixed: Iterable[tuple[int, Fraction]] = (),
) -> ExactFit | None:
    """Return the fit of a support without rounding; None if unpenalised columns are linearly dependent.

    Parameters
    ----------
    X : (n, p) array
        Features.
    y : (n,) array
        Target.
    columns : sequence of s int
        Columns of the support.
    penalty : sequence of s Fraction
        Factors of the squared coefficients.
    train : (m,) int array
        Training rows.
    about : int array or None
        Rows whose means are subtracted; None: no centring.
    weights : (n,) array, optional
        Weights of all rows; 1 by default.
    fixed : iterable of (int, Fraction)
        Places in `columns` and values of fixed coefficients.

    Examples
    --------
    >>> X, y, rows = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0]), np.arange(3)
    >>> fit_exactly(X, y, [0], [Fraction(4)], rows, rows).beta
    (Fraction(1, 3),)
    """
    heft, unit = _convert_to_integers(np.ones(len(y)) if weights is None else weights)
    s, values = len(columns), [_convert_to_integers(column) for column in (*X.T[list(columns)], y)]
    centred = [_centre_numbers(column, heft, about) for column, _ in values]
    scale = [total * divisor for (_, total, _), (_, divisor) in zip(centred, values, strict=True)]
    own = [unit * size**2 for size in scale]
    cross = _products([moved for moved, _, _ in centred], heft, train.tolist())
    bottom = math.lcm(*(p.denominator for p in penalty))
    system = [[product * bottom for product in row[:s]] for row in cross[:s]]
    for j, p in enumerate(penalty):
        system[j][j] += p.numerator * (bottom // p.denominator) * own[j]
    moment = [row[s] * bottom for row in cross[:s]]
    fixed_b = {j: value * Fraction(scale[s], scale[j]) for j, value in fixed}
    solved = _minimise_exactly(system, moment, fixed_b)
    if solved is None:
        return None
    b, slope = solved
    beta = tuple(value * Fraction(scale[j], scale[s]) for j, value in enumerate(b))
    gain = sum(map(operator.mul, b, map(operator.add, moment, slope)), Fraction(0)) / bottom
    objective = (Fraction(cross[s][s]) - gain) / own[s]
    *centers, y_center = (Fraction(far, size) for (_, _, far), size in zip(centred, scale, strict=True))
    return ExactFit(tuple(columns), tuple(centers), y_center, beta, objective, slope)


def _minimise_exactly(
    system: list[Whole], moment: Whole, fixed: Mapping[int, Fraction]
) -> tuple[list[Fraction], tuple[Fraction, ...]] | None:
    """Return the minimiser b of `b'Mb - 2c'b` with some entries fixed, and `c - Mb`; None if M is singular."""
    b = [fixed.get(j, Fraction(0)) for j in range(len(moment))]
    free = [j for j in range(len(moment)) if j not in fixed]
    right = [moment[j] - sum(map(operator.mul, system[j], b)) for j in free]
    shared = math.lcm(*(value.denominator for value in right))
    whole = [value.numerator * (shared // value.denominator) for value in right]
    solved = _solve_exactly([[system[j][k] for k in free] for j in free], whole)
    if solved is None:
        return None
    for j, value in zip(free, solved, strict=True):
        b[j] = value / shared
    return b, tuple(c - sum(map(operator.mul, row, b)) for row, c in zip(system, moment, strict=True))


def _centre_numbers(values: Whole, heft: Whole, about: IntArray | None) -> tuple[Whole, int, int]:
    """Return numbers minus their mean over some rows, times the weight of these rows; this weight, and their sum."""
    if about is None:
        return values, 1, 0
    rows = about.tolist()
    total, far = sum(heft[i] for i in rows), sum(heft[i] * values[i] for i in rows)
    return [total * value - far for value in values], total, far


def _products(columns: list[Whole], heft: Whole, rows: list[int]) -> list[Whole]:
    """Return the weighted inner products of all pairs of columns on some rows."""
    here = [[column[i] for i in rows] for column in columns]
    weighed = [[heft[i] * value for i, value in zip(rows, column, strict=True)] for column in here]
    return [[sum(map(int.__mul__, a, b)) for b in here] for a in weighed]


def _convert_to_integers(values: FloatArray) -> tuple[Whole, int]:
    """Return floats as integers over one power of two."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    divisor = max((below for _, below in ratios), default=1)
    return [above * (divisor // below) for above, below in ratios], divisor


def _solve_exactly(system: list[Whole], right: Whole) -> list[Fraction] | None:
    """Return the solution of a positive definite system of integers; None if it is singular."""
    rows, last, size = [[*row, value] for row, value in zip(system, right, strict=True)], 1, len(right)
    for k in range(size):
        if rows[k][k] == 0:
            return None
        for i in range(k + 1, size):
            rows[i] = [(rows[k][k] * rows[i][j] - rows[i][k] * rows[k][j]) // last for j in range(size + 1)]
        last = rows[k][k]
    solution = [Fraction(0)] * size
    for i in reversed(range(size)):
        later = sum((rows[i][j] * solution[j] for j in range(i + 1, size)), Fraction(0))
        solution[i] = (rows[i][size] - later) / rows[i][i]
    return solution

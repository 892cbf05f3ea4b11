"""Twice the precision of a float in plain numpy: numbers as unevaluated sums of two floats, about 32 digits.

Dekker's and Knuth's error-free sums and products; no long double, whose 64 bits are not enough and which not every
machine has. Sizes must stay within 1e-280 .. 1e280, which the callers see to by powers of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray

SPLITTER = 134217729.0  # 2^27 + 1


def exact_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded sum and what rounding took off: `a + b` exactly (Knuth).

    Examples
    --------
    >>> exact_sum(1.0, 1e-20)
    (1.0, 1e-20)
    """
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the rounded product and what rounding took off: `a * b` exactly (Dekker)."""
    product = a * b
    a_high, b_high = SPLITTER * a, SPLITTER * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@dataclass(frozen=True, eq=False)
class DoubleDouble:
    """An array of numbers `high + low` with `|low|` at most half an ulp of `high`.

    Examples
    --------
    >>> third = DoubleDouble.of(np.array([1.0])) / 3.0
    >>> float((third * 3.0 - 1.0).high[0])
    0.0
    >>> float(DoubleDouble.of(np.array([1e16, 1.0, -1e16])).sum(0).high)
    1.0
    """

    high: FloatArray
    low: FloatArray

    @classmethod
    def of(cls, values: Any) -> DoubleDouble:
        """Floats as they are."""
        high = np.asarray(values, dtype=np.float64)
        return cls(high, np.zeros_like(high))

    def _with(self, high: Any, low: Any) -> DoubleDouble:
        total = high + low
        return DoubleDouble(np.asarray(total), np.asarray(low - (total - high)))

    def __neg__(self) -> DoubleDouble:
        return DoubleDouble(-self.high, -self.low)

    def __add__(self, other: Any) -> DoubleDouble:
        if not isinstance(other, DoubleDouble):
            total, error = exact_sum(self.high, other)
            return self._with(total, error + self.low)
        total, error = exact_sum(self.high, other.high)
        low, rest = exact_sum(self.low, other.low)
        first = self._with(total, error + low)
        return self._with(first.high, first.low + rest)

    def __sub__(self, other: Any) -> DoubleDouble:
        return self + (-other)

    def __mul__(self, other: Any) -> DoubleDouble:
        if not isinstance(other, DoubleDouble):
            product, error = exact_product(self.high, np.asarray(other, dtype=np.float64))
            return self._with(product, error + self.low * other)
        product, error = exact_product(self.high, other.high)
        return self._with(product, error + (self.high * other.low + self.low * other.high))

    def __truediv__(self, divisor: float) -> DoubleDouble:
        first = self.high / divisor
        rest = self - DoubleDouble.of(first) * divisor
        return self._with(first, (rest.high + rest.low) / divisor)

    def __getitem__(self, index: Any) -> DoubleDouble:
        return DoubleDouble(np.asarray(self.high[index]), np.asarray(self.low[index]))

    def scaled(self, power_of_two: Any) -> DoubleDouble:
        """Multiply by powers of two: exact."""
        return DoubleDouble(np.asarray(self.high * power_of_two), np.asarray(self.low * power_of_two))

    def sum(self, axis: int) -> DoubleDouble:
        """Sum along an axis, by halving it."""
        high, low = np.moveaxis(self.high, axis, 0), np.moveaxis(self.low, axis, 0)
        left = DoubleDouble(high, low)
        while (count := left.high.shape[0]) > 1:
            half = count // 2
            head = left[:half] + left[half : 2 * half]
            left = head if count == 2 * half else head.joined(left[2 * half :])
        return left[0] if left.high.shape[0] else DoubleDouble.of(np.zeros(high.shape[1:]))

    def joined(self, other: DoubleDouble) -> DoubleDouble:
        """One after the other along the first axis."""
        return DoubleDouble(np.concatenate([self.high, other.high]), np.concatenate([self.low, other.low]))

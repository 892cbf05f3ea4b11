"""The two arithmetics of the checker: floats with a bound on every rounding error, and fractions without any.

The same formulas serve both. They hold arrays of floats, or of `Fraction`; every bound on a rounding error is a
multiple of `u`, which is 2^-53 for floats and 0 for fractions, so that the exact mode computes with no error term at
all. Floats are taken to round as IEEE 754 says, to nearest, sums and dot products in any order: then
`|fl(x'y) - x'y| <= 1.01 k u |x|'|y|` for vectors of length k < 2^40.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DIGITS = 120  # binary ones, of numbers that are rounded outwards in exact mode


class Floats:
    """Floats; `u` bounds the relative rounding error of an operation."""

    u: Any = 2.0**-53

    def of(self, values: Any) -> Array:
        """Return an array of this arithmetic's numbers from floats."""
        return np.asarray(values, dtype=np.float64)

    def product(self, a: Array, b: Array) -> Array:
        """Return `a @ b`."""
        return np.asarray(a @ b)

    def inner(self, a: Array, b: Array) -> Array:
        """Return the sums of products over the last axis."""
        return np.asarray(np.einsum("...i,...i->...", a, b))

    def above(self, values: Array) -> Array:
        """Return the numbers; `ValueError` where one is none: comparisons with it would say nothing."""
        if not np.isfinite(values).all():
            raise ValueError("a number leaves the range of floats")
        return values

    def root_above(self, x: Array) -> Array:
        """Return a number at least the square root of each of `x >= 0`."""
        return np.asarray(np.sqrt(x) * (1.0 + 2.0**-50))

    def gram(self, W: Array) -> Array:
        """Return `W'W` for |W| <= 1, off by at most `4 u |w_i| |w_j|` (norms of columns) in the entry (i, j).

        W is cut into slices of so few bits that every sum of products of two slices is an integer multiple of one unit
        below 2^53, and so is exact in any order; only the sum of these matrices is rounded.
        """
        bits = (52 - max(len(W) - 1, 1).bit_length()) // 2
        count = -(-80 // bits)
        rest, slices = W, list[Array]()
        for k in range(1, count + 1):
            part = np.ldexp(np.rint(np.ldexp(rest, k * bits)), -k * bits)
            rest, slices = rest - part, [*slices, part]
        total = np.zeros((W.shape[1], W.shape[1]))
        for i, j in sorted(np.ndindex(count, count), key=sum, reverse=True):  # the smallest first
            total += slices[i].T @ slices[j] if i + j < count else 0.0
        return total


class Fractions:
    """Fractions: no rounding at all, but of bounds, outwards, to `DIGITS`: long numbers make every operation slow."""

    u: Any = Fraction(0)

    def of(self, values: Any) -> Array:
        """Return an array of this arithmetic's numbers from floats."""
        return _elementwise(Fraction, np.asarray(values, dtype=np.float64))

    def product(self, a: Array, b: Array) -> Array:
        """Return `a @ b`: as integers over one denominator for each factor, which spares most of the work."""
        (top, under), (other, beneath) = _integers(a), _integers(b)
        whole = under * beneath
        return _elementwise(lambda value: Fraction(value, whole), np.asarray(top @ other, dtype=object))

    def inner(self, a: Array, b: Array) -> Array:
        """Return the sums of products over the last axis."""
        return self.product(a[..., None, :], b[..., :, None])[..., 0, 0]

    def above(self, values: Array) -> Array:
        """Return short numbers at least those given."""
        return _elementwise(_above, values)

    def root_above(self, x: Array) -> Array:
        """Return a number at least the square root of each of `x >= 0`."""
        return _elementwise(_root_above, x)

    def gram(self, W: Array) -> Array:
        """Return `W'W`."""
        return self.product(W.T, W)


Arithmetic = Floats | Fractions


def _elementwise(function: Any, values: Array) -> Array:
    out = np.empty(np.shape(values), dtype=object)
    out.reshape(-1)[:] = [function(value) for value in np.asarray(values, dtype=object).reshape(-1).tolist()]
    return out


def _digits(value: Fraction) -> int:
    return max(0, DIGITS + value.denominator.bit_length() - value.numerator.bit_length())


def _above(value: Fraction) -> Fraction:
    digits = _digits(value)
    return Fraction(-((-value.numerator << digits) // value.denominator), 1 << digits)


def _root_above(value: Fraction) -> Fraction:
    digits = _digits(value) // 2
    whole = math.isqrt((value.numerator << 2 * digits) // value.denominator) + 1
    return Fraction(whole, 1 << digits) if value else value


def _integers(values: Array) -> tuple[Array, int]:
    under = math.lcm(*{value.denominator for value in values.reshape(-1).tolist()})
    return _elementwise(lambda value: value.numerator * (under // value.denominator), values), under

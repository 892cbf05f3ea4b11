"""Rows and training moments in units of about 1, each with a bound on its error: 0 in exact mode."""

import math
from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Array
from .reading import Refused, need


class Moments(NamedTuple):
    """`Q = X'X`, `c = X'y`, `yy = y'y` of training rows, centred; every entry is off by at most `error`.

    `center` (q + 1,) is what was taken off each column and the target, off by at most `center_error`.
    """

    Q: Array
    c: Array
    yy: Any
    error: Any
    center: Array
    center_error: Any


class Design:
    """The data in scaled units: columns and target over powers of two, so that no sum of squares exceeds 1.

    Attributes
    ----------
    Z : (n, q + 1) array
        Columns and target about a number near their mean (0 without an intercept).
    scale : (q,) array
        Squared scale of every column: what `gamma / 2` times `b_j^2` is multiplied by.
    y_unit : Fraction or float
        Squares of the target are times its square in units of the file.
    """

    def __init__(self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic) -> None:
        self.kind, self.intercept, self.u1, (self.n, self.q) = kind, intercept, 8 * kind.u, X.shape
        need(self.n < 1 << 24, "more rows than the error bounds are made for")
        table = np.column_stack([X, y])
        self.Z, exponent = _scaled(table, bool(kind.u), kind)
        self.gram, unit = self._products(self.Z), exponent
        squares = self.gram.diagonal()[:-2]
        spread = squares - self.gram[:-2, -1] ** 2 / self.n
        need(all((spread * 2 > squares).tolist()) or not kind.u, "an offset is too large for fast mode: use exact mode")
        if intercept == "none":
            self.Z, exponent = _scaled(table, False, kind)
            self.gram = self._products(self.Z)
        self.scale = spread * kind.of(np.ldexp(1.0, 2 * (unit - exponent)[:-1]))
        self.scale, self.scale_error = self.scale / (self.n if scale == "variance" else 1), 8 * self.u1
        if scale == "none":
            self.scale, self.scale_error = kind.of(np.ldexp(1.0, -2 * exponent[:-1])), 0 * kind.u
        self.exponent = exponent[:-1] - exponent[-1]  # of a coefficient in units of the file over one in these
        self.y_unit = kind.of(np.ldexp(1.0, exponent[-1:]))[0]

    def _products(self, Z: Array) -> Array:
        return self.kind.gram(np.concatenate([Z, self.kind.of(np.ones((len(Z), 1)))], axis=1))

    def penalty(self, gamma: float) -> tuple[Array, Any]:
        """Return what multiplies `b_j^2` in scaled units, `(gamma / 2) scale_j` (q,), and its relative error."""
        return self.scale * self.kind.of(np.array([gamma]))[0] / 2, self.scale_error + 4 * self.kind.u

    def of_rows(self, left: list[int]) -> Moments:
        """Return the moments of all rows but those left out; error bounds as docs/proof-format.md derives them."""
        n, u, count, gram = self.n, self.kind.u, self.n - len(left), self.gram
        need(count >= 1, "a fold trains on no row")
        if left:
            gram = gram - self._products(self.Z[left])
        sums, stretch = gram[:-1, -1], math.isqrt(4 * n // count) + 1  # stretch: at least 2 sqrt(n / count)
        center = {"fold": sums / count, "global": self.gram[:-1, -1] / n}.get(self.intercept, 0 * sums)
        C = gram[:-1, :-1] - np.outer(sums, center) - np.outer(center, sums) + count * np.outer(center, center)
        error, off = self.u1 * (1 + 2 * stretch) + 16 * u, self.u1 * stretch + 2 * u
        return Moments(C[:-1, :-1], C[:-1, -1], C[-1, -1], error, center, off)


def _scaled(table: Array, about_mean: bool, kind: Arithmetic) -> tuple[Array, Array]:
    """Return the columns about a float near their mean, or as they are, over powers of two: norms in [1/4, 1/2]."""
    middle = table.mean(0) if about_mean else np.zeros(table.shape[1])
    exponent = np.frexp(np.abs(table - middle).max(0))[1].astype(np.int64)
    exponent += 1 + np.frexp(np.linalg.norm(np.ldexp(table - middle, -exponent), axis=0) * (1.0 + 2.0**-20))[1]
    moved = np.ldexp(table - middle, -exponent)
    if not (np.isfinite(moved).all() and np.abs(exponent).max() < 511 and np.abs(moved).max(0).min() > 0.0):
        raise Refused("a column is constant, or too large or too small for the checker")
    return moved if kind.u else kind.of(table) * kind.of(np.ldexp(1.0, -exponent)), exponent

"""Rows and training moments in units of about 1, each with a bound on its error: 0 in exact mode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Array, Floats
from .reading import Refused, need


@dataclass(frozen=True, eq=False)
class Moments:
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
        self.kind, self.intercept, self.n, self.q = kind, intercept, len(y), X.shape[1]
        table = np.column_stack([X, y])
        self.Z, exponent = _scaled(table, intercept != "none" and kind is Floats, kind)
        n, u = self.n, kind.u
        need(n < 1 << 24, "more rows than the error bounds are made for")
        self.u1 = 8 * u  # of a sum of products of rows, whose numbers were rounded once
        self.gram = centred = kind.gram(_with_ones(self.Z, kind))
        if intercept == "none":
            centred = kind.gram(_with_ones(_about_mean(table, exponent, kind), kind))
        squares = centred.diagonal()[:-2]
        own = centred[:-2, -1] ** 2 / n
        need(all((own * 4 <= squares).tolist()) or u == 0, "an offset is too large for fast mode: use exact mode")
        self.scale = squares - own
        if scale == "variance":
            self.scale = self.scale / n
        elif scale == "none":
            self.scale = kind.of(np.ldexp(1.0, -2 * exponent[:-1]))
        self.scale_error = 0 * u if scale == "none" else 8 * self.u1
        need(all(value > 0 for value in self.scale.tolist()), "a column does not vary")
        self.exponent = exponent[:-1] - exponent[-1]  # of a coefficient in units of the file over one in these
        self.y_unit = kind.of(np.ldexp(1.0, exponent[-1:]))[0]

    def of_rows(self, left: list[int]) -> Moments:
        """Return the moments of all rows but those left out; error bounds as docs/proof-format.md derives them."""
        n, q, kind = self.n, self.q, self.kind
        count, gram = n - len(left), self.gram
        need(count >= 1, "a fold trains on no row")
        if left:
            gram = gram - kind.gram(_with_ones(self.Z[left], kind))
        sums, first = gram[:-1, -1], self.u1
        center = sums / count if self.intercept == "fold" else self.gram[:-1, -1] / n
        if self.intercept == "none":
            center = 0 * sums
        C = gram[:-1, :-1] - np.outer(sums, center) - np.outer(center, sums) + count * np.outer(center, center)
        stretch = math.isqrt(4 * n // count) + 1  # at least 2 sqrt(n / count)
        error = first * (1 + 2 * stretch) + 16 * kind.u
        off = first * stretch + 2 * kind.u
        return Moments(C[:q, :q], C[:q, q], C[q, q], error, center, off)


def _scaled(table: Array, about_mean: bool, kind: Arithmetic) -> tuple[Array, Array]:
    """Return the columns about a float near their mean, or as they are, over powers of two: norms in [1/4, 1/2]."""
    middle = table.mean(0) if about_mean else np.zeros(table.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.frexp(np.abs(table - middle).max(0))[1].astype(np.int64)
        exponent += 1 + np.frexp(np.linalg.norm(np.ldexp(table - middle, -exponent), axis=0) * (1.0 + 2.0**-20))[1]
        moved = np.ldexp(table - middle, -exponent)
    if not (np.isfinite(moved).all() and np.abs(exponent).max() < 511 and np.abs(moved).max(0).min() > 0.0):
        raise Refused("a column is constant, or too large or too small for the checker")
    return moved if kind is Floats else kind.of(table) * kind.of(np.ldexp(1.0, -exponent)), exponent


def _with_ones(Z: Array, kind: Arithmetic) -> Array:
    return np.concatenate([Z, kind.of(np.ones((len(Z), 1)))], axis=1)


def _about_mean(table: Array, exponent: Array, kind: Arithmetic) -> Array:
    """Return the columns about a number near their mean, over given powers of two."""
    moved = np.ldexp(table - table.mean(0), -exponent)
    return moved if kind is Floats else kind.of(table) * kind.of(np.ldexp(1.0, -exponent))

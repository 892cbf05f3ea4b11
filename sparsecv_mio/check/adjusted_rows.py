"""Rows of the data minus their projection on the intercept and the adjustment columns, computed without rounding."""

from functools import cached_property
from typing import Any

import numpy as np

from .bounded_fits import BoundedMoments, ScaledDesign
from .proof_file import Arithmetic, Array, Fractions, need


class AdjustedDesign(ScaledDesign):
    """The data in the units of `ScaledDesign`, with the unpenalised columns eliminated from the training rows.

    The elimination uses fractions in either mode. In fast mode the remainders are rounded to floats once each: entries
    of moments and of rows have an error of at most `u`, because none exceeds 1.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Columns that are chosen from, and target.
    scale, intercept : str
        Scale and intercept of the proof.
    kind : Floats or Fractions
        Arithmetic.
    Z : (n, k) array
        Adjustment columns.
    """

    def __init__(self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic, Z: Array) -> None:
        super().__init__(X, y, scale, intercept, kind)
        self.whole = Fractions()
        beside, rows = self.whole.from_floats(Z), self.whole.from_floats(np.column_stack([X, y]))
        rows = rows * self.whole.from_floats(np.ldexp(1.0, -self.powers))
        if intercept == "global":
            beside, rows = (table - table.sum(0) / self.n for table in (beside, rows))
        elif intercept == "fold":
            beside = np.concatenate([self.whole.from_floats(np.ones((self.n, 1))), beside], axis=1)
        self.rows, self.beside = rows, beside
        self.products = self.whole.gram(np.concatenate([beside, rows], axis=1))

    def exclude_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows except the held-out ones, of the remainders of columns and target.

        `center` holds the coefficients of each unpenalised column, by which these columns are subtracted in all rows.
        """
        need(self.n > len(left), "the training set is empty")
        products = self.products
        if left:
            products = products - self.whole.gram(np.concatenate([self.beside[left], self.rows[left]], axis=1))
        return self._eliminate_adjustment(products, self.beside, self.rows)

    def _eliminate_adjustment(self, products: Array, beside: Array, rows: Array) -> BoundedMoments:
        share, Q = _eliminate_columns(products, beside.shape[1])
        own, u = self._round_values(Q), self.kind.u
        need(
            not u or np.abs(own).max() <= 0.5,
            "the values of a column in the training rows are too large for fast mode; use --mode exact",
        )
        return BoundedMoments(own[:-1, :-1], own[:-1, -1], own[-1, -1], u, (share, beside, rows), 0 * u)

    def centre_rows(self, m: BoundedMoments, rows: list[int]) -> Array:
        """Return the remainders of some rows, the target last; in fast mode, refuse rows with too large remainders."""
        share, beside, every = m.center
        out = self._round_values(every[rows] - self.whole.product(beside[rows], share))
        sound = not self.kind.u or np.abs(out).max(initial=0.0) <= 1.0
        need(sound, "a held-out row is too far from the training rows for fast mode; use --mode exact")
        return out

    @cached_property
    def shares(self) -> Array:
        """Return the (n,) part of the eliminated columns in the leverages of the full-data fit."""
        k = self.beside.shape[1]
        stacked = np.concatenate([self.products[:k, :k], self.whole.from_floats(np.eye(k))], axis=1)
        inverse, _ = _eliminate_columns(np.concatenate([stacked, stacked[:0]]), k)
        return self._round_values(self.whole.inner(self.whole.product(self.beside, inverse), self.beside))

    def _round_values(self, values: Array) -> Array:
        return np.asarray(values, dtype=np.float64) if self.kind.u else values


class DesignOfFolds(AdjustedDesign):
    """Data with fold-specific preprocessing: the training rows of each fold fill missing values or give the scales.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Columns that are chosen from, with NaN for missing values, and target.
    scale, intercept : str
        Scale and intercept of the proof.
    kind : Floats or Fractions
        Arithmetic.
    Z : (n, k) array
        Adjustment columns, with NaN for missing values.
    within : dict
        `na`, the rule that fills missing values, and `scale`, True if training rows give the scales.
    """

    def __init__(
        self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic, Z: Array, within: dict[str, Any]
    ) -> None:
        near = [np.where(np.isnan(table), np.nanmean(table, axis=0), table) for table in (X, Z)]
        super().__init__(near[0], y, scale, intercept, kind, near[1])
        cells = np.column_stack([Z, X, y])
        self.within, self.how = within, scale
        self.holes, self.there = np.isnan(cells), self.whole.from_floats(np.nan_to_num(cells))
        self.scale_error = 2 * kind.u
        every = list(range(self.n))
        self.spread = self._spread(self._fill_columns(every)[1], every)

    def _fill_columns(self, training: list[int]) -> tuple[Array, Array]:
        """Return the unpenalised columns and the others, in all rows, as training rows fill them."""
        table, holes = self.there.copy(), self.holes
        for j in np.flatnonzero(holes.any(axis=0)).tolist():
            there = sorted(table[i, j] for i in training if not holes[i, j])
            need(there, "a column has no value in the training rows")
            middle = there[(len(there) - 1) // 2] + there[len(there) // 2]
            table[holes[:, j], j] = middle / 2 if self.within["na"] == "median" else sum(there) / len(there)
        k = holes.shape[1] - len(self.powers)
        beside, rows = table[:, :k], table[:, k:] * self.whole.from_floats(np.ldexp(1.0, -self.powers))
        if self.intercept == "fold":
            beside = np.concatenate([self.whole.from_floats(np.ones((self.n, 1))), beside], axis=1)
        return beside, rows

    def _spread(self, rows: Array, training: list[int]) -> Array:
        """Return the (q,) squared scales of columns on some rows; 0 for a column that is constant there."""
        own = rows[training][:, :-1]
        squares = (own**2).sum(0) - own.sum(0) ** 2 / len(training)
        return np.asarray(squares / (len(training) if self.how == "variance" else 1))

    def exclude_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows except the held-out ones, as these rows fill them, and their scales."""
        training = sorted({*range(self.n)} - {*left})
        need(training, "the training set is empty")
        beside, rows = self._fill_columns(training)
        m = self._eliminate_adjustment(self.whole.gram(np.concatenate([beside, rows], axis=1)[training]), beside, rows)
        if self.how == "none":
            return m._replace(scale=self.scale)
        own = self._spread(rows, training) if self.within["scale"] else self.spread
        return m._replace(scale=self._round_values(np.where(own > 0, own, self.spread)))


def _eliminate_columns(A: Array, k: int) -> tuple[Array, Array]:
    """Return `B = A_11^{-1} A_12` and `A_22 - A_21 B` for symmetric A in fractions, or refuse.

    The block A_11 (k, k) must be definite.
    """
    A = A.copy()
    for j in range(k):
        need(A[j, j] > 0, "in the training rows, the adjustment columns are linearly dependent")
        A[j] = A[j] / A[j, j]
        others = np.arange(len(A)) != j
        A[others] = A[others] - np.outer(A[others, j], A[j])
    return A[:k, k:], A[k:, k:]

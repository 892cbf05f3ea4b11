"""Rows less what the intercept and the columns that are adjusted for tell of them: eliminated without rounding."""

from functools import cached_property
from typing import Any

import numpy as np

from .bounded_fits import BoundedMoments, Design
from .proof_file import Arithmetic, Array, Fractions, need


class AdjustedDesign(Design):
    """The data in the units of `Design`; what every model has without a penalty is eliminated from training rows.

    That is done in fractions, in either mode. Floats are rounded from what is left, each once: entries of moments and
    of rows are off by at most `u`, as none exceeds 1.

    Parameters
    ----------
    Z : (n, k) array
        Columns that are adjusted for.
    """

    def __init__(self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic, Z: Array) -> None:
        super().__init__(X, y, scale, intercept, kind)
        self.whole = Fractions()
        beside, rows = self.whole.of(Z), self.whole.of(np.column_stack([X, y]))
        rows = rows * self.whole.of(np.ldexp(1.0, -self.powers))
        if intercept == "global":
            beside, rows = (table - table.sum(0) / self.n for table in (beside, rows))
        elif intercept == "fold":
            beside = np.concatenate([self.whole.of(np.ones((self.n, 1))), beside], axis=1)
        self.rows, self.beside = rows, beside
        self.products = self.whole.gram(np.concatenate([beside, rows], axis=1))

    def of_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows but those left out, of what is left of columns and target.

        `center` are how much of each column beside is taken off, these columns and the others, in all rows.
        """
        need(self.n > len(left), "a fold trains on no row")
        products = self.products
        if left:
            products = products - self.whole.gram(np.concatenate([self.beside[left], self.rows[left]], axis=1))
        return self._without_beside(products, self.beside, self.rows)

    def _without_beside(self, products: Array, beside: Array, rows: Array) -> BoundedMoments:
        share, Q = _eliminated(products, beside.shape[1])
        own, u = self._rounded(Q), self.kind.u
        need(not u or np.abs(own).max() <= 0.5, "columns are longer than by all rows: use exact mode")
        return BoundedMoments(own[:-1, :-1], own[:-1, -1], own[-1, -1], u, (share, beside, rows), 0 * u)

    def about(self, m: BoundedMoments, rows: list[int]) -> Array:
        """Return what is left of some rows, the target last; floats of a row that is far off are refused."""
        share, beside, every = m.center
        out = self._rounded(every[rows] - self.whole.product(beside[rows], share))
        sound = not self.kind.u or np.abs(out).max(initial=0.0) <= 1.0
        need(sound, "rows are too far from those that are trained on: use exact mode")
        return out

    @cached_property
    def shares(self) -> Array:
        """(n,) what is eliminated adds to the leverages of the fit on all rows."""
        k = self.beside.shape[1]
        stacked = np.concatenate([self.products[:k, :k], self.whole.of(np.eye(k))], axis=1)
        inverse, _ = _eliminated(np.concatenate([stacked, stacked[:0]]), k)
        return self._rounded(self.whole.inner(self.whole.product(self.beside, inverse), self.beside))

    def _rounded(self, values: Array) -> Array:
        return np.asarray(values, dtype=np.float64) if self.kind.u else values


class DesignOfFolds(AdjustedDesign):
    """Data of which each fold has rows of its own: its training rows fill empty cells, or measure columns.

    Parameters
    ----------
    X, Z : arrays
        NaN in empty cells.
    within : dict
        `na`, the rule by which cells are filled, and whether to `scale`.
    """

    def __init__(
        self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic, Z: Array, within: dict[str, Any]
    ) -> None:
        near = [np.where(np.isnan(table), np.nanmean(table, axis=0), table) for table in (X, Z)]
        super().__init__(near[0], y, scale, intercept, kind, near[1])
        cells = np.column_stack([Z, X, y])
        self.within, self.how = within, scale
        self.holes, self.there = np.isnan(cells), self.whole.of(np.nan_to_num(cells))
        self.scale_error = 2 * kind.u
        every = list(range(self.n))
        self.spread = self._spread(self._seen(every)[1], every)

    def _seen(self, training: list[int]) -> tuple[Array, Array]:
        """Return the columns beside and the others, in all rows, as training rows fill them."""
        table, holes = self.there.copy(), self.holes
        for j in np.flatnonzero(holes.any(axis=0)).tolist():
            there = sorted(table[i, j] for i in training if not holes[i, j])
            need(there, "a column is empty in every training row of a fold")
            middle = there[(len(there) - 1) // 2] + there[len(there) // 2]
            table[holes[:, j], j] = middle / 2 if self.within["na"] == "median" else sum(there) / len(there)
        k = holes.shape[1] - len(self.powers)
        beside, rows = table[:, :k], table[:, k:] * self.whole.of(np.ldexp(1.0, -self.powers))
        if self.intercept == "fold":
            beside = np.concatenate([self.whole.of(np.ones((self.n, 1))), beside], axis=1)
        return beside, rows

    def _spread(self, rows: Array, training: list[int]) -> Array:
        """(q,) squared scales of columns by some rows; 0 of a column that is constant there."""
        own = rows[training][:, :-1]
        squares = (own**2).sum(0) - own.sum(0) ** 2 / len(training)
        return np.asarray(squares / (len(training) if self.how == "variance" else 1))

    def of_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows but those left out as these fill them, and their scales."""
        training = sorted({*range(self.n)} - {*left})
        need(training, "a fold trains on no row")
        beside, rows = self._seen(training)
        m = self._without_beside(self.whole.gram(np.concatenate([beside, rows], axis=1)[training]), beside, rows)
        if self.how == "none":
            return m._replace(scale=self.scale)
        own = self._spread(rows, training) if self.within["scale"] else self.spread
        return m._replace(scale=self._rounded(np.where(own > 0, own, self.spread)))


def _eliminated(A: Array, k: int) -> tuple[Array, Array]:
    """Return `B = A_11^{-1} A_12` and `A_22 - A_21 B`, A symmetric in fractions and A_11 (k, k) definite; or refuse."""
    A = A.copy()
    for j in range(k):
        need(A[j, j] > 0, "what is adjusted for is dependent on the rows that are trained on")
        A[j] = A[j] / A[j, j]
        others = np.arange(len(A)) != j
        A[others] = A[others] - np.outer(A[others, j], A[j])
    return A[:k, k:], A[k:, k:]

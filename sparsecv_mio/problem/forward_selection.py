"""Forward selection from the rows of the data, in several folds at once, without a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray, row_chunks
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.moment_fits import NULL
from sparsecv_mio.problem.problem import capped_penalty
from sparsecv_mio.words import Intercept


class WeightedRows:
    """All rows, multiplied by the square roots of their weights, with 0 for held-out rows of a fold.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan, optional
        Folds; not needed if the only fold is -1, which trains on all rows.
    """

    def __init__(self, data: StandardData, folds: FoldPlan | None = None) -> None:
        self.data, self.folds = data, folds
        self.centred = data.intercept is Intercept.FOLD

    def products(self, R: FloatArray) -> FloatArray:
        """Return `R V` (m, q) for `R` (m, n), V the standard rows. O(m n q), by BLAS."""
        out: FloatArray | None = None
        for rows in row_chunks(self.data.n, self.data.q):
            product = R[:, rows] @ self.data.rows(rows)[0]
            out = product if out is None else np.add(out, product, out=out)
        assert out is not None
        return out

    def inside(self, folds: Sequence[int]) -> FloatArray:
        """Return an (m, n) array with 1 for the training rows of each fold."""
        out = np.ones((len(folds), self.data.n))
        for line, fold in zip(out, folds, strict=True):
            if fold >= 0:
                assert self.folds is not None
                line[self.folds.left_out(fold)] = 0.0
        return out

    def squares_and_slopes(self, folds: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return (m, q) squared norms of the columns on the training rows, and products with the response.

        With a fold intercept both are about the training means. One pass over the rows.
        """
        inside = self.inside(folds)
        ones = inside if self.data.root is None else inside * self.data.root
        response = self.centre(self.data.targets(slice(None)), inside)
        squares, sums, slopes = (np.zeros((len(folds), self.data.q)) for _ in range(3))
        for rows in row_chunks(self.data.n, self.data.q):
            V = self.data.rows(rows)[0]
            squares += inside[:, rows] @ V**2
            slopes += response[:, rows] @ V
            if self.centred:
                sums += ones[:, rows] @ V
        if self.centred:
            squares -= sums**2 / np.einsum("ij,ij->i", ones, ones)[:, None]
        return np.maximum(squares, 0.0), slopes

    def centre(self, values: FloatArray, inside: FloatArray) -> FloatArray:
        """Return (m, n) values minus their training means (fold intercept), and 0 for held-out rows."""
        out = values * inside
        if self.centred:
            ones, parts = (inside, out) if self.data.root is None else (inside * self.data.root, out * self.data.root)
            out -= ones * (parts.sum(axis=1) / np.einsum("ij,ij->i", ones, ones))[:, None]
        return out


class ForwardSelection:
    """Forward selection in several folds at once, at one gamma; forced columns come first.

    The chosen columns are orthonormalised in the augmented rows `(x_j; sqrt(penalty_j) e_j)`. The product of a
    remaining column with them involves only the data rows, so one product `u V` in each step keeps all gains exact. O(m
    n q) for each step.

    Parameters
    ----------
    rows : WeightedRows
        Weighted rows.
    folds : sequence of m int
        Indices of the folds; -1 trains on all rows.
    squares, slopes : (m, q) arrays
        Results of `WeightedRows.squares_and_slopes`.
    lam : float
        Half of gamma.
    top : int
        Number of columns to choose.

    Attributes
    ----------
    picked : list of m lists of int
        Columns in the order of their choice, without forced columns.
    """

    def __init__(
        self, rows: WeightedRows, folds: Sequence[int], squares: FloatArray, slopes: FloatArray, lam: float, top: int
    ) -> None:
        self.rows, self.top = rows, top
        self.picked: list[list[int]] = [[] for _ in folds]
        self._inside = rows.inside(folds)
        self._response = rows.centre(rows.data.targets(slice(None)), self._inside)
        self._curvature = squares + capped_penalty(lam, rows.data.weight)  # given the chosen columns
        self._null = NULL * self._curvature
        self._slope = slopes.copy()  # product of every column with the residual response
        self._forced = rows.data.forced
        self._basis = np.zeros((len(folds), top + len(self._forced), rows.data.n))

    def pick_columns(self, expired: Callable[[], bool]) -> None:
        """Choose `top` columns in each fold; at least one, even after the time limit."""
        for step, j in enumerate(self._forced.tolist()):
            picks = np.full(len(self.picked), j)
            self._pick(step, picks, self._curvature[:, j] > self._null[:, j])
        for picked in self.picked:
            picked.clear()
        for step in range(self.top):
            if step and expired():
                return
            gain = self._gains()
            going = gain.max(axis=1, initial=-1.0) >= 0.0
            if not going.any():
                return
            self._pick(step + len(self._forced), gain.argmax(axis=1), going)

    def order(self) -> list[IntArray]:
        """Return all columns by fold: forced columns, chosen columns, then the others by gain."""
        orders = []
        for picked, gain in zip(self.picked, self._gains(), strict=True):
            first = np.concatenate([self._forced, np.array(picked, dtype=np.int64)])
            others = np.argsort(-gain, kind="stable")
            orders.append(np.concatenate([first, others[~np.isin(others, first)]]).astype(np.int64))
        return orders

    def _gains(self) -> FloatArray:
        """(m, q) decrease of the sum of squares by each column, given the chosen ones; -1 if collinear with them."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self._curvature > self._null, self._slope**2 / self._curvature, -1.0)

    def _pick(self, step: int, columns: NDArray[np.intp], going: BoolArray) -> None:
        """Add one column to the basis of each fold."""
        m = len(columns)
        x = self.rows.centre(np.stack([self.rows.data.column(int(j)) for j in columns]), self._inside)
        before = self._basis[:, :step]
        x -= np.einsum("fs,fsn->fn", np.einsum("fsn,fn->fs", before, x), before)
        x *= (going / np.sqrt(np.where(going, self._curvature[np.arange(m), columns], 1.0)))[:, None]
        self._basis[:, step] = x
        share = np.einsum("fn,fn->f", x, self._response)
        products = self.rows.products(x)
        self._slope -= share[:, None] * products
        self._curvature -= products**2
        self._curvature[np.arange(m), columns] = 0.0
        for f in np.flatnonzero(going).tolist():
            self.picked[f].append(int(columns[f]))

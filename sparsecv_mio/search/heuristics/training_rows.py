"""Products of the training rows of several folds with all columns, without a matrix of columns by columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import row_chunks
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData


class TrainingRows:
    """All rows, with a 0 for those that a fold leaves out.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    """

    def __init__(self, data: StandardData, folds: FoldPlan) -> None:
        self.data, self.folds = data, folds
        self.centred = data.intercept is Intercept.FOLD

    def products(self, R: FloatArray) -> FloatArray:
        """Return `R V` (m, q) for `R` (m, n), V the standard rows. O(m n q), by BLAS."""
        out: FloatArray | None = None
        for rows in row_chunks(self.data.n, self.data.q):
            part = R[:, rows] @ self.data.rows(rows)[0]
            out = part if out is None else np.add(out, part, out=out)
        assert out is not None
        return out

    def inside(self, folds: Sequence[int]) -> FloatArray:
        """Return (m, n): 1 where a row trains the fold."""
        return (self.folds.labels != np.asarray(folds)[:, None]).astype(float)

    def squares(self, folds: Sequence[int]) -> FloatArray:
        """Return (m, q): each column's sum of squares over the training rows, about its mean with a fold intercept."""
        inside = self.inside(folds)
        total = np.zeros((len(folds), self.data.q))
        for rows in row_chunks(self.data.n, self.data.q):
            total += inside[:, rows] @ self.data.rows(rows)[0] ** 2
        if self.centred:
            total -= self.products(inside) ** 2 / inside.sum(axis=1)[:, None]
        return np.maximum(total, 0.0)

    def centre(self, values: FloatArray, inside: FloatArray) -> FloatArray:
        """Return values (m, n) less their training mean, with a fold intercept, and 0 on the rows left out."""
        out = values * inside
        if self.centred:
            out -= inside * (out.sum(axis=1) / inside.sum(axis=1))[:, None]
        return out

    def response(self) -> FloatArray:
        """Return the (n,) response of all rows."""
        return (self.data.dataset.y - self.data.y_center) / self.data.y_unit - self.data.r_rest

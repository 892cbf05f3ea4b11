"""Training rows about their own means, for whatever computes from rows instead of moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.standard import Intercept, StandardData


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Rows in standard coordinates, less their means where the intercept is `fold`.

    `||r - V b||^2 + lam sum_j weight_j b_j^2` is the training objective of b; a new row v is predicted by
    `r_mean + (v - v_mean)' b`. Rows are times the roots of their weights, means are not. Its moments are those of
    :class:`sparsecv_mio.problem.problem.SparseProblem`.

    Attributes
    ----------
    V : (n, q) array
        The caller's own: it may be scaled in place.
    r : (n,) array
    v_mean, r_mean : (q,) array, float
        What was taken off; zero unless the intercept is `fold`.
    """

    V: FloatArray
    r: FloatArray
    v_mean: FloatArray
    r_mean: float

    @classmethod
    def of(cls, data: StandardData, rows: slice | IntArray) -> CentredRows:
        """Gather and centre; O(n q), one copy of the rows.

        Parameters
        ----------
        data : StandardData
        rows : slice or (n,) int array

        Examples
        --------
        >>> from sparsecv_mio.data.dataset import Dataset
        >>> from sparsecv_mio.data.standard import standardize
        >>> data = standardize(Dataset.from_arrays([[0.0], [3.0], [6.0]], [1.0, 2.0, 4.0]))
        >>> float(CentredRows.of(data, slice(0, 2)).V.sum())
        0.0
        """
        V, r = data.rows(rows)
        if not V.flags.writeable:  # a view of rows that the data keep
            V = V.copy()
        if data.intercept is not Intercept.FOLD:
            return cls(V, r, np.zeros(data.q), 0.0)
        root = data.root_of(rows)
        if root is not None:
            total = float(root @ root)
            v_mean, r_mean = root @ V / total, float(root @ r) / total
            V -= root[:, None] * v_mean
            return cls(V, r - root * r_mean, v_mean, r_mean)
        v_mean, r_mean = V.mean(axis=0), float(r.mean())
        V -= v_mean
        return cls(V, r - r_mean, v_mean, r_mean)

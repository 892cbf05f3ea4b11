"""Weights of rows that are whole numbers: a row of weight w is w rows, of weight 0 none.

So the training loss and the cross-validation error weigh every row, in every method and by every backend, and what is
proved is proved of the weighted problem. The copies of a row are always in one fold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, folds_from_labels
from sparsecv_mio.errors import BadInput

MOST_NUMBERS = 100_000_000  # of all rows together: 0.8 GB


def row_counts(weights: ArrayLike, data: Dataset) -> IntArray:
    """Return weights as the number of times that each row counts.

    Parameters
    ----------
    weights : (n,) array_like
    data : Dataset
        The n rows.

    Raises
    ------
    BadInput
        For a weight that is no whole number from 0 on, or weights that make too many rows, or none.

    Examples
    --------
    >>> row_counts([2.0, 0.0], Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]))
    array([2, 0])
    """
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (data.n,):
        raise BadInput(f"sample_weight has the shape {given.shape} but the data has {data.n} rows: give one per row")
    wrong = np.flatnonzero(~(given >= 0.0) | (given != np.floor(given)) | ~np.isfinite(given))
    if wrong.size:
        value, row = given[wrong[0]], wrong[0] + 1
        raise BadInput(f"sample_weight is {value:g} in row {row}: give how often each row counts, a whole number")
    if not 0.0 < given.sum() * data.p <= MOST_NUMBERS:
        much = "are all zero" if not given.any() else f"make {given.sum():g} rows of {data.p} numbers: divide them"
        raise BadInput(f"sample_weight: the weights {much}")
    return given.astype(np.int64)


def repeated(data: Dataset, counts: IntArray) -> Dataset:
    """Return the data with every row as often as it counts.

    Examples
    --------
    >>> repeated(Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]), np.array([2, 1])).X.tolist()
    [[1.0], [1.0], [2.0]]
    """
    if (counts == 1).all():
        return data
    aux = {name: np.repeat(column, counts) for name, column in data.aux.items()}
    return Dataset(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts), data.names, data.target, aux)


def repeated_folds(folds: FoldPlan, counts: IntArray) -> FoldPlan:
    """Return folds of :func:`repeated` data: every copy is held out with its row; a fold that lost all rows is gone.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import folds_from_labels
    >>> repeated_folds(folds_from_labels([0, 1, 2, 1]), np.array([2, 0, 1, 3])).labels.tolist()
    [0, 0, 2, 1, 1, 1]
    """
    if (counts == 1).all():
        return folds
    labels = np.repeat(folds.labels, counts)
    held = np.unique(labels[labels >= 0])
    labels = np.where(labels >= 0, np.searchsorted(held, labels), -1)
    return folds_from_labels(labels, f"{folds.spec} weighted")

"""Weights of rows that are whole numbers: a row of weight w is w rows, of weight 0 none.

So the training loss and the cross-validation error weigh every row, in every method and by every backend, and what is
proved is proved of the weighted problem. The copies of a row are always in one fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan, repeated_folds
from sparsecv_mio.errors import BadInput

MOST_NUMBERS = 100_000_000  # of all rows together: 0.8 GB
WEIGHTED = " weighted"  # after the spec of the folds


def row_counts(weights: ArrayLike, data: Dataset, name: str = "weights") -> IntArray:
    """Return weights as the number of times that each row counts.

    Parameters
    ----------
    weights : (n,) array_like
        Numbers, or text that holds numbers.
    data : Dataset
        The n rows.
    name : str
        Of the weights, for messages.

    Raises
    ------
    BadInput
        For a weight that is no whole number from 0 on, or weights that make too many rows, or none.

    Examples
    --------
    >>> row_counts([2.0, 0.0], Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]))
    array([2, 0])
    """
    try:
        given = np.asarray(weights).astype(np.float64)
    except (TypeError, ValueError) as error:
        for row, value in enumerate(np.atleast_1d(np.asarray(weights, dtype=object)).tolist(), 1):
            if _no_number(value):
                raise BadInput(
                    f"{name} is {value!r} in row {row}: give how often each row counts, a whole number"
                ) from None
        raise BadInput(f"{name} must hold numbers only: {error}".splitlines()[0]) from None
    if given.shape != (data.n,):
        raise BadInput(f"{name} has the shape {given.shape} but the data has {data.n} rows: give one per row")
    wrong = np.flatnonzero(~(given >= 0.0) | (given != np.floor(given)) | ~np.isfinite(given))
    if wrong.size:
        value, row = given[wrong[0]], wrong[0] + 1
        raise BadInput(f"{name} is {value:g} in row {row}: give how often each row counts, a whole number")
    if not 0.0 < given.sum() * data.p <= MOST_NUMBERS:
        many = f"make {given.sum():g} rows of {data.p} numbers: divide them by a common factor"
        raise BadInput(f"{name}: the weights {many if given.any() else 'are all zero'}")
    return given.astype(np.int64)


def _no_number(value: object) -> bool:
    try:
        np.float64(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True
    return False


def weighted(
    data: Dataset, weights: ArrayLike, deal: Callable[[Dataset], FoldPlan], *, name: str, by_row: bool = False
) -> tuple[Dataset, FoldPlan]:
    """Repeat the rows as often as they count, and deal them to folds.

    Parameters
    ----------
    data : Dataset
    weights : (n,) array_like
    deal : callable
        Makes folds of the rows that count, each once.
    name : str
        Of the weights, for the record.
    by_row : bool
        Whether `deal` makes folds of all rows instead: where they are given row by row.

    Returns
    -------
    data : Dataset
    folds : FoldPlan
        Every copy is held out with its row; a fold without rows is gone.

    Examples
    --------
    >>> from sparsecv_mio.data.folds import make_folds
    >>> rows = Dataset.from_arrays([[1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0])
    >>> weighted(rows, [2.0, 0.0, 1.0, 1.0], lambda data: make_folds("loo", data), name="w")
    (Dataset(n=4, p=1, target='y'), FoldPlan('loo weighted', k=3, n=4))
    """
    counts = row_counts(weights, data, name)
    if by_row:
        plan = repeated_folds(deal(data), counts)
    else:
        plan = repeated_folds(deal(repeated(data, np.minimum(counts, 1))), counts[counts > 0])
    return weighted_rows(data, weights, name), replace(plan, spec=plan.spec + WEIGHTED)


def weighted_rows(data: Dataset, weights: ArrayLike, name: str) -> Dataset:
    """Repeat the rows as often as they count.

    Parameters
    ----------
    data : Dataset
    weights : (n,) array_like
    name : str
        Of the weights, for the record.
    """
    return replace(repeated(data, row_counts(weights, data, name)), weights=name)


def repeated(data: Dataset, counts: IntArray) -> Dataset:
    """Return the data with every row as often as it counts.

    Examples
    --------
    >>> repeated(Dataset.from_arrays([[1.0], [2.0]], [0.0, 1.0]), np.array([2, 1])).X.tolist()
    [[1.0], [1.0], [2.0]]
    """
    aux = {name: np.repeat(column, counts) for name, column in data.aux.items()}
    return replace(data, X=np.repeat(data.X, counts, axis=0), y=np.repeat(data.y, counts), aux=aux)

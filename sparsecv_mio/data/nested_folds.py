"""Folds within folds: the outer folds of a nested cross-validation, and the inner ones of an outer training set.

Rows that the inner folds keep together (groups, or folds that were stated row by row) are never parted by the outer
folds either. Folds in order of time stay so, stratified ones stratified; all others are dealt at random.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.dealing import equal_folds
from sparsecv_mio.data.folds import FoldPlan, canonical, folds_from_labels, make_folds
from sparsecv_mio.data.weights import WEIGHTED
from sparsecv_mio.errors import BadInput

DEALT = ("blocks", "holdout")  # kinds of folds, beside numbers and `loo`, that are dealt at random
LIKE_INNER = ("forward", "stratified")  # kinds that outer folds are of, too


def outer_folds(count: int, plan: FoldPlan, dataset: Dataset) -> FoldPlan:
    """Return the outer folds of a nested cross-validation.

    Parameters
    ----------
    count : int
        How many.
    plan : FoldPlan
        The folds by which a model is chosen.
    dataset : Dataset
        The rows of the plan.

    Raises
    ------
    BadInput
        If there are too few rows or groups, or the plan's folds overlap and were stated row by row.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 6, [0.0] * 6)
    >>> outer_folds(3, make_folds("loo", data), data)
    FoldPlan('3', k=3, n=6)
    >>> outer_folds(2, folds_from_labels([0, 0, 1, 1, 2, 2]), data).labels.tolist()
    [1, 1, 0, 0, 0, 0]
    """
    if count < 2:
        raise BadInput(f"nested: {count} is out of range, give at least 2 outer folds")
    if count > dataset.n:
        raise BadInput(f"nested: {count} outer folds of {dataset.n} rows, ask for at most {dataset.n}")
    kind, seed = _kind(plan), plan.seed or 0
    if kind in LIKE_INNER:
        return make_folds(f"{kind}:{count}", dataset, seed)
    if is_dealt(plan):
        return make_folds(str(count), dataset, seed)
    if not plan.is_partition:
        raise BadInput("nested: the folds overlap and were stated row by row: no outer folds can be made of them")
    labels = plan.labels
    together = np.where(labels < 0, plan.k, labels)  # rows that no fold holds out stay together too
    groups = int(together.max()) + 1
    if groups <= count:
        most = f"ask for at most {groups - 1}" if groups > 2 else "nested folds need at least three"
        raise BadInput(f"nested: the folds keep rows together in {groups} groups, {most}")
    found = folds_from_labels(equal_folds(str(count), groups, seed)[together], str(count))
    return replace(found, seed=seed)


def inner_folds(plan: FoldPlan, rows: IntArray, training: Dataset) -> FoldPlan:
    """Return the folds by which a model is chosen on an outer training set alone.

    Parameters
    ----------
    plan : FoldPlan
        Those of all rows.
    rows : int array
        The outer training rows, ascending.
    training : Dataset
        The same.

    Raises
    ------
    BadInput
        If they are too few.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0]] * 3, [0.0] * 3)
    >>> inner_folds(folds_from_labels([0, 0, 1, 1, 2]), np.array([0, 3, 4]), data).labels.tolist()
    [0, 1, 2]
    """
    spec = plan.spec.removesuffix(WEIGHTED)
    if is_dealt(plan) or _kind(plan) in LIKE_INNER:
        return make_folds(spec, training, plan.seed or 0)
    labels = plan.labels[rows]
    held = np.unique(labels[labels >= 0])
    return folds_from_labels(np.where(labels >= 0, np.searchsorted(held, labels), -1), spec)


def is_dealt(plan: FoldPlan) -> bool:
    """Whether folds can be dealt anew to other rows: they were not stated row by row, nor are they groups."""
    kind = _kind(plan)
    return kind == "loo" or (plan.seed is not None and (kind[:1].isdigit() or kind in DEALT))


def _kind(plan: FoldPlan) -> str:
    return canonical(plan.spec.removesuffix(WEIGHTED)).partition(":")[0]

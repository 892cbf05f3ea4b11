"""Functions that check a target of counts, and the exposure (time or population) of each row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.two_classes import as_two_classes, check_spreads, check_training_classes
from sparsecv_mio.data.weights import weights_of, with_class_weight
from sparsecv_mio.errors import BadInput
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import Intercept

LARGEST_COUNT = 1e15  # beyond this, the spacing of floats exceeds 1/8
MOST_EXPOSURE = 1e12  # maximum exposure; the minimum is its reciprocal


def exposure_columns(name: str | None) -> tuple[str, ...]:
    """Return the columns that exposures need in addition to the features and the target."""
    return () if name is None else (name,)


def as_counts(dataset: Dataset, exposure: str | None = None, whole: bool = True) -> Dataset:
    """Return the data as counts: the target is checked, and the exposure of each row is stored.

    Parameters
    ----------
    dataset : Dataset
        Data with the column of exposures in `aux`.
    exposure : str, optional
        Name of that column; without it every row has exposure 1.
    whole : bool
        True if counts must be integers; data that are counts already are not checked for this.

    Raises
    ------
    BadInput
        If the target has a value that is not a count or consists of zeros, or an exposure is not positive.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0], [1.0], [2.0]], [1.0, 0.0, 4.0], aux={"days": [1.0, 2.0, 2.0]})
    >>> as_counts(data, "days").row_exposure.tolist()
    [1.0, 2.0, 2.0]
    """
    _check_counts(dataset, whole and not dataset.counts)
    check_spreads(dataset, "poisson")
    if exposure is None or dataset.exposure is not None:
        if exposure not in (None, dataset.exposure):
            raise BadInput(
                f"exposure: {exposure!r} is given, but the data already have the exposures {dataset.exposure!r}; leave "
                "this option out"
            )
        return replace(dataset, counts=True)
    if exposure in (*dataset.names, dataset.target):
        fault = "the target" if exposure == dataset.target else "a feature"
        raise BadInput(
            f"exposure: {exposure!r} is {fault}; an exposure cannot be a feature or the target (exclude it with --drop)"
        )
    if exposure not in dataset.aux:
        raise BadInput(f"exposure: {exposure!r} is not stored with these data; read the data with aux=({exposure!r},)")
    return replace(dataset, counts=True, exposure=exposure, row_exposure=read_exposures(dataset, exposure))


def prepare_for_loss(
    dataset: Dataset,
    loss: Loss,
    positive: str | float | None = None,
    class_weight: str | None = None,
    exposure: str | None = None,
) -> Dataset:
    """Return the data in the form that a loss needs: two classes with class weights, or counts with exposures.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    loss : Loss
        Loss of the fits.
    positive : str or number, optional
        The class that becomes 1.
    class_weight : {"balanced"}, optional
        Class weights.
    exposure : str, optional
        Column of exposures.
    """
    target = loss.target
    if target.is_quadratic:
        return dataset
    dataset.store_by_columns()
    if target.has_classes:
        return with_class_weight(as_two_classes(dataset, positive), class_weight)
    if target.has_counts:
        return as_counts(dataset, exposure)
    check_spreads(dataset, loss)
    return dataset


def read_exposures(dataset: Dataset, name: str) -> FloatArray:
    """Return the checked exposures from a column in `aux`."""
    exposures = np.empty(dataset.n)
    for row, cell in enumerate(np.asarray(weights_of(dataset, name)).tolist()):
        try:
            exposures[row] = cell
        except (TypeError, ValueError):
            held = repr(cell) if not isinstance(cell, str) or cell.strip() else "empty"
            raise BadInput(
                f"exposure: column {name!r} is {held} in row {row + 1}; give a number above 0, or remove the row"
            ) from None
    wrong = np.flatnonzero(~((exposures >= 1.0 / MOST_EXPOSURE) & (exposures <= MOST_EXPOSURE)))
    if wrong.size:
        row = wrong[0]
        raise BadInput(
            f"exposure: column {name!r} is {exposures[row]:g} in row {row + 1}; give numbers above 0 and at most 1e12, "
            "or remove the row"
        )
    return exposures


def _check_counts(dataset: Dataset, whole: bool) -> None:
    y, target = dataset.y, dataset.target
    if dataset.target_words:
        named = " and ".join(dataset.target_words)
        raise BadInput(
            f'target {target!r} has the text values {named}; loss="poisson" needs counts, and '
            f'loss="logistic" two classes'
        )
    wrong = np.flatnonzero(~((y >= 0.0) & (y <= LARGEST_COUNT) & ((y == np.floor(y)) | (not whole))))
    if wrong.size:
        value, kind = f"{y[wrong[0]]:.12g} in row {wrong[0] + 1}", "whole numbers" if whole else "numbers"
        raise BadInput(f'target {target!r} is {value}: loss="poisson" needs counts, {kind} of at least 0')
    if not y.any():
        raise BadInput(f'target {target!r} is 0 in every row; loss="poisson" needs at least one count above 0')


def check_training(dataset: Dataset, folds: FoldPlan, intercept: Intercept, loss: Loss) -> None:
    """Raise `BadInput` if the intercept has no optimum because training rows have one class or only zeros.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    folds : FoldPlan
        Folds.
    intercept : Intercept
        Type of the intercept.
    loss : Loss
        Loss of the fits.
    """
    if loss.target.has_classes:
        check_training_classes(dataset, folds, intercept)
    if loss.target.has_counts:
        check_training_counts(dataset, folds, intercept)


def check_training_counts(dataset: Dataset, folds: FoldPlan, intercept: Intercept) -> None:
    """Raise `BadInput` if the training rows of a fold are all zero: the intercept has no optimum.

    Parameters
    ----------
    dataset : Dataset
        Data with a target of counts.
    folds : FoldPlan
        Folds.
    intercept : Intercept
        Type of the intercept.
    """
    if intercept is Intercept.GLOBAL:
        raise BadInput(
            "intercept global: requires squared loss; give fold (an intercept for every training set) or none"
        )
    positive = dataset.y > 0.0
    all_zero = folds.count_left_out(positive) == np.count_nonzero(positive)
    if intercept is not Intercept.NONE and all_zero.any():
        where = f"the training rows of fold {int(np.argmax(all_zero)) + 1} of {folds.k}"
        raise BadInput(
            f"folds: {where} all have the count 0, so the intercept has no finite optimum; give fewer folds or "
            "another --seed"
        )

"""Functions that convert successes of trials to two classes: weighted rows of successes and of failures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.dataset import KEPT, MULTIPLICITY, Dataset
from sparsecv_mio.data.number_format import POINT
from sparsecv_mio.data.weights import read_numbers, weights_of
from sparsecv_mio.errors import BadInput

CLASSES = ("failure", "success")
MOST_TRIALS = 1e9  # maximum number of trials of a row


def expand_trials(dataset: Dataset, trials: str) -> Dataset:
    """Return two-class data in which each case, a row with k successes of n trials, has a row for each outcome.

    The row of successes has the weight k and that of failures the weight n - k, both times the weight of the case.
    Rows of weight 0 are omitted. The two rows of a case follow each other and are always in one fold.

    Parameters
    ----------
    dataset : Dataset
        Data whose target is the number of successes, with the column of trials in `aux`.
    trials : str
        Column with the numbers of trials.

    Raises
    ------
    BadInput
        If the column is missing or is a feature, or a number of successes or trials is out of range.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.5], [1.5]], [2.0, 3.0], aux={"n": [5, 3]})
    >>> expanded = expand_trials(data, "n")
    >>> expanded.y.tolist(), expanded.row_weights.tolist(), expanded.places.tolist()
    ([1.0, 0.0, 1.0], [2.0, 3.0, 3.0], [0, 0, 1])
    """
    if dataset.trials is not None:
        if dataset.trials != trials:
            raise BadInput(f"trials: {trials!r} is given, but the data already have the trials {dataset.trials!r}")
        return dataset
    counts = _read_trials(dataset, trials)
    by_outcome = np.column_stack([dataset.y, counts - dataset.y])  # successes before failures
    case, outcome = np.nonzero(by_outcome)
    weights = by_outcome[case, outcome]
    expanded = replace(dataset, aux={**dataset.aux, KEPT: dataset.places}).take(case)
    own = 1.0 if expanded.row_weights is None else expanded.row_weights
    return replace(
        expanded, y=(outcome == 0).astype(np.float64), aux={**expanded.aux, MULTIPLICITY: weights}, classes=CLASSES,
        row_weights=None if np.all(own * weights == 1.0) else own * weights, trials=trials,
    )  # fmt: skip


def _read_trials(dataset: Dataset, trials: str) -> FloatArray:
    """Return the checked numbers of trials; the target must be at most the number of trials of its row."""
    if trials in (*dataset.names, dataset.target):
        fault = "the target" if trials == dataset.target else "a feature"
        raise BadInput(
            f"trials: {trials!r} is {fault}; the trials cannot be a feature or the target (exclude it with --drop)"
        )
    if trials not in dataset.aux:
        raise BadInput(f"trials: {trials!r} is not stored with these data; read the data with aux=({trials!r},)")
    if dataset.target_words:
        raise BadInput(
            f"trials: target {dataset.target!r} has text values; give the column with the successes of each row"
        )
    advice = "; give a whole number of trials for each row, or remove the row"
    counts = read_numbers(weights_of(dataset, trials), POINT, f"trials: column {trials!r}", advice)
    _check_rows(counts, (counts >= 1.0) & (counts <= MOST_TRIALS) & (counts % 1.0 == 0.0),
                f"trials: column {trials!r}", "give whole numbers from 1 to 1e9, or remove the row")  # fmt: skip
    y = dataset.y
    _check_rows(y, (y >= 0.0) & (y <= counts) & (y % 1.0 == 0.0), f"trials: target {dataset.target!r}",
                f"give the number of successes, a whole number from 0 to {trials!r}")  # fmt: skip
    for outcomes, name in ((y, "success"), (counts - y, "failure")):
        if not outcomes.any():
            raise BadInput(f"trials: target {dataset.target!r} has no {name}; give rows of both outcomes")
    return counts


def _check_rows(values: FloatArray, are_valid: BoolArray, who: str, remedy: str) -> None:
    """Raise `BadInput` that names the first row with an invalid value."""
    wrong = np.flatnonzero(~are_valid)
    if wrong.size:
        raise BadInput(f"{who} is {values[wrong[0]]:.12g} in row {wrong[0] + 1}; {remedy}")

"""Functions that prepare a target for its loss: they encode two classes as 0 and 1, check counts, and add offsets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import KEPT, MULTIPLICITY, Dataset, describe_value_out_of_range
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.reading_options import YES_AND_NO
from sparsecv_mio.data.survival_columns import check_events_of_folds, with_survival
from sparsecv_mio.data.weights import (
    REMOVE_ROW,
    check_row_values,
    check_stored_column,
    read_option_column,
    with_class_weight,
)
from sparsecv_mio.digits import MOST_NAMED
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.targets import NO_TARGET_COLUMNS, Loss, TargetColumns, Ties
from sparsecv_mio.words import Intercept

TRUTH = {"false": "0", "true": "1"}
MOST_SPREAD = 1e140  # maximum spread of a column; the minimum is its reciprocal, so that squares are finite
LARGEST_COUNT = 1e15  # beyond this, the spacing of floats exceeds 1/8


def prepare_for_loss(
    dataset: Dataset,
    loss: Loss,
    positive: str | float | None = None,
    class_weight: str | None = None,
    columns: TargetColumns = NO_TARGET_COLUMNS,
    ties: Ties | None = None,
) -> Dataset:
    """Return the data in the form that a loss needs: two classes with class weights, counts with offsets, or times.

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
    columns : TargetColumns, optional
        Columns of exposures, offsets and trials, or of events, entry times and strata.
    ties : Ties, optional
        Method for tied events.

    Raises
    ------
    BadInput
        If the target or a column does not suit the loss, or `positive` is given for trials.
    """
    target = loss.target
    if target.is_quadratic:
        return dataset
    dataset.store_by_columns()
    if columns.trials is not None:
        if positive is not None:
            raise BadInput("positive: not supported with trials, whose positive class is success; omit this option")
        check_spreads(dataset, loss)
        return with_class_weight(expand_trials(with_offsets(dataset, columns), columns.trials), class_weight)
    if target.has_classes:
        return with_class_weight(with_offsets(as_two_classes(dataset, positive), columns), class_weight)
    if target.has_counts:
        return with_offsets(as_counts(dataset), columns)
    check_spreads(dataset, loss)
    return with_survival(dataset, columns, ties)


def class_names(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the target values in ascending order, as words if the file has words."""
    words, values = dataset.target_words, np.unique(dataset.y).tolist()
    if words and all(value in range(len(words)) for value in values):
        return tuple(words[int(value)] for value in values)
    return tuple(f"{value:.12g}" for value in values)


def as_two_classes(dataset: Dataset, positive: str | float | None = None) -> Dataset:
    """Return the data with a target of 0 and 1 and the names of both classes.

    Parameters
    ----------
    dataset : Dataset
        Data whose target has two values, or two text values (`read_dataset(..., two_words=True)`).
    positive : str or number, optional
        Class that becomes 1, in upper or lower case. The default is the larger number, the later word in the alphabet,
        or yes of no and yes.

    Raises
    ------
    BadInput
        If the target does not have two values, `positive` is not one of them, or the spread of a column is above 1e140
        or below 1e-140.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0], [1.0], [2.0]], [1.0, 2.0, 2.0])
    >>> as_two_classes(data).y.tolist(), as_two_classes(data).classes
    ([0.0, 1.0, 1.0], ('1', '2'))
    >>> as_two_classes(data, 1).y.tolist()
    [1.0, 0.0, 0.0]
    """
    if dataset.classes is not None and positive in (None, dataset.classes[1]):
        check_spreads(dataset, "logistic")
        return dataset
    if dataset.classes is not None:
        names, ones, swapped = dataset.classes, dataset.y > 0.0, dataset.are_classes_swapped
    else:
        classes = class_names(dataset)
        if len(classes) != 2:
            raise BadInput(_not_two(dataset, classes))
        names, ones, swapped = (classes[0], classes[1]), dataset.y == dataset.y.max(), False
    if positive is not None:
        is_word = isinstance(positive, str | bool)
        wanted = resolve_class(str(positive) if is_word else f"{float(positive):.12g}", names)
        if wanted not in names:
            meant = did_you_mean(wanted, names)
            named = " and ".join(names)
            raise BadInput(
                f"positive: {wanted!r} is not a class of {dataset.target!r}, whose classes are {named}{meant}"
            )
        if wanted == names[0]:
            names, ones, swapped = (names[1], names[0]), ~ones, not swapped
    check_spreads(dataset, "logistic")
    reading = dataset.reading
    if reading is not None:  # the order of words has no meaning for classes
        notes = tuple(note for note in reading.notes if not note.startswith(f"target {dataset.target!r}: "))
        reading = replace(reading, notes=notes)
    y = np.asarray(ones, dtype=np.float64)
    return replace(dataset, y=y, classes=names, are_classes_swapped=swapped, reading=reading)


def affirmative_class(classes: Sequence[str]) -> str:
    """Return the one of two classes that means yes, such as `Ja`, or that the other one negates; empty if unknown.

    Examples
    --------
    >>> affirmative_class(("Ja", "Nein")), affirmative_class(("event", "no event")), affirmative_class(("A", "B"))
    ('Ja', 'event', '')
    """
    by_word = {name.strip().lower(): name for name in classes}
    for no, yes in (*YES_AND_NO, ("control", "case")):
        if by_word.keys() == {no, yes}:
            return by_word[yes]
    for word, name in by_word.items():
        if any(re.fullmatch(rf"(no|not|non|kein|keine)[ _-]?{re.escape(word)}", candidate) for candidate in by_word):
            return name
    return ""


def check_spreads(dataset: Dataset, loss: str) -> None:
    """Raise `BadInput` if the spread of a column is so large or small that squares overflow or underflow."""
    X, first = dataset.X, dataset.X[0]
    with np.errstate(over="ignore"):
        spread = np.maximum(X.max(axis=0) - first, first - X.min(axis=0))
    wrong = np.flatnonzero((spread > 0.0) & ~((spread >= 1.0 / MOST_SPREAD) & (spread <= MOST_SPREAD)))
    if wrong.size:
        name, by = dataset.names[wrong[0]], float(spread[wrong[0]])
        raise BadInput(
            f"column {name!r} varies by {by:g}, which is too much or too little for {loss} loss; change its unit"
        )


def encode_classes(dataset: Dataset, classes: tuple[str, str]) -> Dataset:
    """Return the data with a target of 0 and 1 for two known classes; one of them may be absent.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    classes : tuple of two str
        Names of the negative and the positive class.

    Raises
    ------
    BadInput
        If the target has another value.

    Examples
    --------
    >>> encode_classes(Dataset.from_arrays([[0.0], [1.0]], [2.0, 2.0]), ("1", "2")).y.tolist()
    [1.0, 1.0]
    """
    if dataset.classes == classes:
        return dataset
    values, place = np.unique(dataset.y, return_inverse=True)
    names = dataset.classes if dataset.classes is not None and len(values) == 2 else class_names(dataset)
    if len(names) != len(values):  # some of the words do not occur
        names = tuple(dataset.target_words[int(value)] for value in values)
    for name in names:
        if name not in classes:
            named = " and ".join(classes)
            raise BadInput(
                f"target {dataset.target!r} has the class {name!r}, but the classes of the model are {named}"
            )
    ones = np.array([name == classes[1] for name in names])
    swapped = (dataset.classes is not None and dataset.are_classes_swapped) != (tuple(names) == classes[::-1])
    return replace(dataset, y=ones[place].astype(np.float64), classes=classes, are_classes_swapped=swapped)


def resolve_class(word: str, names: tuple[str, str]) -> str:
    """Return the class that a word names, in any case if that is unique, and a number in any notation."""
    if word in names:
        return word
    alike = [name for name in names if name.lower() == word.lower()]
    if len(alike) == 1:
        return alike[0]
    for truth in (TRUTH, {number: name for name, number in TRUTH.items()}):  # the same class by its other name
        if set(names) == set(truth.values()) and word.lower() in truth:
            return truth[word.lower()]
    try:
        return f"{float(word):.12g}"
    except ValueError:
        return word


def _not_two(dataset: Dataset, found: tuple[str, ...]) -> str:
    target = repr(dataset.target)
    if len(found) == 1:
        return (
            f"target {target} has only one class ({found[0]}), but logistic loss needs two; give rows of both classes"
        )
    some = ", ".join(found[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "")
    return (
        f"target {target} holds {len(found)} different values ({some}), but logistic loss needs exactly two classes; "
        'use loss="squared", join classes, or, for numbers of successes, name the column of trials (trials="n")'
    )


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
    return with_offsets(replace(dataset, counts=True), TargetColumns(exposure))


def with_offsets(dataset: Dataset, columns: TargetColumns) -> Dataset:
    """Return the data with the exposure of each row: the product of its exposure and the exponential of its offset.

    Parameters
    ----------
    dataset : Dataset
        Data with the columns in `aux`, in the form of their loss.
    columns : TargetColumns
        Columns, of which those of exposures and offsets are used; without them, the data are returned unchanged.

    Raises
    ------
    BadInput
        If a column is missing, is a feature, or has a value that is out of range.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0], [1.0]], [1.0, 4.0], aux={"days": [1.0, 2.0], "o": [0.0, np.log(3.0)]})
    >>> with_offsets(data, TargetColumns(exposure="days", offset="o")).row_exposure.round(6).tolist()
    [1.0, 6.0]
    """
    columns = columns.predictor_columns
    if columns == TargetColumns(dataset.exposure, dataset.offset) or not columns.names:
        return dataset
    exposures = np.ones(dataset.n)
    for option, name in columns.by_option().items():
        if name is not None:
            _check_column(dataset, option, name)
            exposures = exposures * _read_exposures(dataset, option, name)
    _check_exposures(
        exposures, "exposure with offset: the exposure times the exponential of the offset", dataset.places
    )
    return replace(dataset, exposure=columns.exposure, offset=columns.offset, row_exposure=exposures)


def _check_column(dataset: Dataset, option: str, name: str) -> None:
    """Raise `BadInput` if the column of an option is not stored, is a feature, or the data have offsets already."""
    if dataset.row_exposure is not None:
        present = " and ".join(map(repr, TargetColumns(dataset.exposure, dataset.offset).names))
        raise BadInput(
            f"{option}: {name!r} is given, but the data already have the {option}s {present}; leave this option out"
        )
    check_stored_column(dataset, option, name, f"an {option}")


def _read_exposures(dataset: Dataset, option: str, name: str) -> FloatArray:
    """Return the checked exposures from a column in `aux`, or the exponentials of the checked offsets from it."""
    kind = "a number above 0" if option == "exposure" else "a number"
    values, who = read_option_column(dataset, option, name, kind), f"{option}: column {name!r}"
    if option == "exposure":
        _check_exposures(values, who, dataset.places)
        return values
    if fault := describe_value_out_of_range(option, values, dataset.places):
        raise BadInput(f"{who} {fault} (subtract the same number from every offset), {REMOVE_ROW}")
    return np.asarray(np.exp(values))


def _check_exposures(exposures: FloatArray, who: str, places: IntArray) -> None:
    if fault := describe_value_out_of_range("exposure", exposures, places):
        raise BadInput(f"{who} {fault}, {REMOVE_ROW}")


def _check_counts(dataset: Dataset, whole: bool) -> None:
    y, target = dataset.y, dataset.target
    if dataset.target_words:
        named = " and ".join(dataset.target_words)
        raise BadInput(
            f'target {target!r} has the text values {named}, not counts; name another target, or give loss="logistic" '
            "for two classes"
        )
    wrong = np.flatnonzero(~((y >= 0.0) & (y <= LARGEST_COUNT) & ((y == np.floor(y)) | (not whole))))
    if wrong.size:
        value = f"{y[wrong[0]]:.12g} in row {dataset.places[wrong[0]] + 1}"
        kind = "whole numbers" if whole else "numbers"
        raise BadInput(f'target {target!r} is {value}; loss="poisson" needs counts: {kind} from 0 to {LARGEST_COUNT:g}')
    if not y.any():
        raise BadInput(f'target {target!r} is 0 in every row; loss="poisson" needs at least one count above 0')


def check_training(dataset: Dataset, folds: FoldPlan, intercept: Intercept, loss: Loss) -> None:
    """Raise `BadInput` if the intercept has no optimum because training rows have one class or only zeros.

    Parameters
    ----------
    dataset : Dataset
        Data in the form of their loss.
    folds : FoldPlan
        Folds.
    intercept : Intercept
        Type of the intercept.
    loss : Loss
        Loss of the fits.
    """
    if dataset.survival is not None:
        check_events_of_folds(dataset.survival, folds)
    if not (loss.target.has_classes or loss.target.has_counts):
        return
    if intercept is Intercept.GLOBAL:
        raise BadInput(
            "intercept global: requires squared loss; give fold (an intercept for every training set) or none"
        )
    positive = dataset.y > 0.0
    n_positive = int(positive.sum())
    trained_positive = n_positive - folds.count_left_out(positive)
    has_no_optimum = trained_positive == 0
    if loss.target.has_classes:
        has_no_optimum |= trained_positive == dataset.n - folds.left_sizes
    if intercept is Intercept.NONE or not has_no_optimum.any():
        return
    fold = int(np.argmax(has_no_optimum))
    rows, fault = f"the training rows of fold {fold + 1} of {folds.k}", "so the intercept has no finite optimum"
    is_positive = bool(trained_positive[fold])
    is_random_split = folds.k == 1 and folds.seed is not None
    advice = "give another --seed" if is_random_split else "give other folds, such as stratified:5"
    if folds.spec.startswith("forward:"):  # fewer folds have longer first training sets
        advice = "give fewer folds"
    has_one_other = (dataset.n - n_positive if is_positive else n_positive) == 1
    if dataset.classes is None:
        advice = "a single row has a count above 0; give data with at least two such rows" if has_one_other else advice
        raise BadInput(f"folds: {rows} all have the count 0, {fault}; {advice}")
    if has_one_other:
        advice = "the other class has one row; give data with at least two rows of each class"
    raise BadInput(f"folds: {rows} are all of class {dataset.classes[is_positive]}, {fault}; {advice}")


OUTCOMES = ("failure", "success")
MOST_TRIALS = 1e9  # maximum number of trials of a row


def expand_trials(dataset: Dataset, trials: str) -> Dataset:
    """Return two-class data in which each case, a row with k successes in n trials, has a row for each outcome.

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
            raise BadInput(
                f"trials: {trials!r} is given, but the data already have the trials {dataset.trials!r}; leave this "
                "option out"
            )
        return dataset
    counts = _read_trials(dataset, trials)
    by_outcome = np.column_stack([dataset.y, counts - dataset.y])  # successes before failures
    case, outcome = np.nonzero(by_outcome)
    weights = by_outcome[case, outcome]
    expanded = replace(dataset, aux={**dataset.aux, KEPT: dataset.places}).take(case)
    own = 1.0 if expanded.row_weights is None else expanded.row_weights
    return replace(
        expanded, y=(outcome == 0).astype(np.float64), aux={**expanded.aux, MULTIPLICITY: weights}, classes=OUTCOMES,
        row_weights=None if np.all(own * weights == 1.0) else own * weights, trials=trials,
    )  # fmt: skip


def _read_trials(dataset: Dataset, trials: str) -> FloatArray:
    """Return the checked numbers of trials; the target must be at most the number of trials of its row."""
    check_stored_column(dataset, "trials", trials, "the trials")
    if dataset.target_words:
        raise BadInput(
            f"trials: target {dataset.target!r} has text values; give a column with the number of successes per row"
        )
    y, counts = dataset.y, read_option_column(dataset, "trials", trials, "a whole number of trials for each row")
    are_valid = (counts >= 1.0) & (counts <= MOST_TRIALS) & (counts % 1.0 == 0.0)
    remedy = f"; give whole numbers from 1 to 1e9, {REMOVE_ROW}"
    check_row_values(counts, are_valid, f"trials: column {trials!r}", remedy, dataset.places)
    remedy = f"; give the number of successes, a whole number from 0 to {trials!r}"
    are_valid = (y >= 0.0) & (y <= counts) & (y % 1.0 == 0.0)
    check_row_values(y, are_valid, f"trials: target {dataset.target!r}", remedy, dataset.places)
    for outcomes, name in ((y, "success"), (counts - y, "failure")):
        if not outcomes.any():
            raise BadInput(f"trials: target {dataset.target!r} has no {name}; give rows of both outcomes")
    return counts

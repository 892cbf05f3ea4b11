"""Functions that convert a target with two classes to 0 and 1, and choose the positive class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.reading_options import YES_AND_NO
from sparsecv_mio.digits import MOST_NAMED
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.words import Intercept

TRUTH = {"false": "0", "true": "1"}
MOST_SPREAD = 1e140  # maximum spread of a column; the minimum is its reciprocal, so that squares are finite


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
            raise BadInput(f"positive {wanted!r}: the classes of {dataset.target!r} are {named}{meant}")
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
        'use loss="squared", or join classes'
    )


def check_training_classes(dataset: Dataset, folds: FoldPlan, intercept: Intercept) -> None:
    """Raise `BadInput` if the training rows of a fold have one class: its intercept has no optimum.

    Parameters
    ----------
    dataset : Dataset
        Data with a two-class target.
    folds : FoldPlan
        Folds.
    intercept : Intercept
        Type of the intercept.
    """
    if intercept is Intercept.GLOBAL:
        raise BadInput(
            "intercept global: requires squared loss; give fold (an intercept for every training set) or none"
        )
    if intercept is Intercept.NONE or dataset.classes is None:
        return
    positive = dataset.y > 0.0
    ones, rows = int(positive.sum()), len(positive)
    training_ones = ones - folds.count_left_out(positive)
    one_class = (training_ones == 0) | (training_ones == rows - folds.left_sizes)
    if one_class.any():
        fold = int(np.argmax(one_class))
        which = dataset.classes[int(training_ones[fold] > 0)]
        absent_rows = rows - ones if training_ones[fold] else ones
        cure = "give fewer folds, or stratified ones" if folds.k > 1 else "give another --seed"
        cure = "the other class has one row; give data with at least two rows of it" if absent_rows == 1 else cure
        where = f"the training rows of fold {fold + 1} of {folds.k}"
        raise BadInput(f"folds: {where} are all of class {which}, so the intercept has no finite optimum; {cure}")

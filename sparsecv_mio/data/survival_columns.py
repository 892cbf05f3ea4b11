"""Reading of survival times: the columns of events, entry times and strata, with checks of their values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.data.weights import REMOVE_ROW, check_row_values, check_stored_column, read_option_column
from sparsecv_mio.digits import MOST_NAMED
from sparsecv_mio.errors import BadInput
from sparsecv_mio.targets import TargetColumns, Ties, split_event

MISSING = "", "nan", "na", "n/a", "none", "<na>", "null", "nat", "."  # texts of missing values, in lower case


def with_survival(dataset: Dataset, columns: TargetColumns, ties: Ties | None = None) -> Dataset:
    """Return the data with the events, entry times and strata of survival times, which are the target.

    Parameters
    ----------
    dataset : Dataset
        Data whose target is the time, with the other columns in `aux`.
    columns : TargetColumns
        Columns; that of the events is required unless the data have survival times already.
    ties : Ties, optional
        Method for tied events; Efron's by default.

    Raises
    ------
    BadInput
        If a column is missing or is a feature, or a value is out of range.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0], [1.0], [2.0]], [5.0, 3.0, 4.0], target="days", aux={"status": [1, 2, 2]})
    >>> with_survival(data, TargetColumns(event="status=2")).survival.is_event.tolist()
    [False, True, True]
    """
    known = dataset.survival
    if known is not None:
        if columns.event not in (None, dataset.event):
            raise BadInput(f"event: {columns.event!r} is given, but the data already have the events {dataset.event!r}")
        return dataset
    if columns.event is None:
        raise BadInput('event: loss cox needs the column that marks events; give event="COLUMN" or "COLUMN=VALUE"')
    options = dict[str, str]()
    for option, name in columns.by_option().items():
        if name is not None:
            check_stored_column(dataset, option, name, f"the column of option {option}")
            if name in options:
                raise BadInput(f"{option}: column {name!r} is that of option {options[name]} too; give another column")
            options[name] = option
    _check_times(dataset)
    is_event = _read_events(dataset, columns.event)
    entry = None if columns.entry is None else _read_entry_times(dataset, columns.entry)
    stratum = None
    if columns.strata is not None:
        labels = _read_values(dataset, "strata", columns.strata)
        stratum = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    survival = Survival(is_event, entry, stratum, ties or Ties.EFRON)
    if not np.any(survival.count_at_risk(dataset.y)[is_event] > 1):
        raise BadInput(
            f"event: no other row is at risk at any event of column {columns.event!r}, so the data determine no model; "
            "check the columns of the time, the entry time and the strata"
        )
    return replace(dataset, survival=survival, event=columns.event, entry=columns.entry, strata=columns.strata)


def _check_times(dataset: Dataset) -> None:
    """Raise `BadInput` if the target is no survival time."""
    y, target = dataset.y, dataset.target
    if dataset.target_words:
        named = " and ".join(dataset.target_words[:2])
        raise BadInput(f"time: column {target!r} has the text values {named}; give a column of numbers")
    check_row_values(
        y, y >= 0.0, f"time: column {target!r}", f"; give times of at least 0, {REMOVE_ROW}", dataset.places
    )


def _read_events(dataset: Dataset, event: str) -> BoolArray:
    """Return the mask of the events; a column without the value of an event must hold 0 and 1 or be boolean."""
    column, value = split_event(event)
    values = _read_values(dataset, "event", column)
    distinct = [str(one) for one in np.unique(values).tolist()]
    shown = ", ".join(distinct[:MOST_NAMED]) + (", ..." if len(distinct) > MOST_NAMED else "")
    advice = f'name the value that means an event, for example event="{column}={distinct[-1]}"'
    if value is None:
        if not set(distinct) <= {"0", "1"} and not set(distinct) <= {"False", "True"}:
            raise BadInput(f"event: column {column!r} has the values {shown}; {advice}")
        is_event = np.isin(values.astype(str), ("1", "True"))
    else:
        is_event = values == _convert_to_kind(value, values)
        if not is_event.any():
            raise BadInput(f"event: column {column!r} has no value {value!r}; its values are {shown}; {advice}")
    if is_event.sum() < 2:
        count = "no event" if not is_event.any() else "one event"
        raise BadInput(
            f"event: column {column!r} has {count}, and its values are {shown}; give data with at least two events"
        )
    return np.asarray(is_event)


def _read_values(dataset: Dataset, option: str, column: str) -> NDArray[Any]:
    """Return a column of numbers, truth values or texts, whole numbers as such; raise `BadInput` if one is missing."""
    values = dataset.aux[column]
    if values.dtype.kind not in "biuf":
        values = np.array([str(cell).strip() for cell in values.tolist()])
        missing = np.flatnonzero(np.isin(np.char.lower(values), MISSING))
    else:
        missing = np.flatnonzero(np.isnan(values.astype(np.float64)))
    if missing.size:
        row = int(dataset.places[missing[0]]) + 1
        raise BadInput(f"{option}: column {column!r} is empty in row {row}; give a value, {REMOVE_ROW}")
    is_whole = values.dtype.kind == "f" and np.all(np.abs(values) < 2.0**62) and np.all(values == np.rint(values))
    return values.astype(np.int64) if is_whole else values


def _convert_to_kind(text: str, values: NDArray[Any]) -> object:
    """Return the value that a text means in a column of numbers, truth values or texts; None if it is none."""
    if values.dtype.kind in "US":
        return text.strip()
    if values.dtype.kind == "b":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return None


def _read_entry_times(dataset: Dataset, name: str) -> FloatArray:
    """Return the checked entry times of the rows."""
    entry = read_option_column(dataset, "entry", name, "the time after which the row is at risk")
    wrong = np.flatnonzero(~(entry < dataset.y))
    end = f" ({dataset.y[wrong[0]]:.12g})" if wrong.size else ""
    remedy = f"; give a time before that of {dataset.target!r}{end}, {REMOVE_ROW}"
    check_row_values(entry, entry < dataset.y, f"entry: column {name!r}", remedy, dataset.places)
    return entry


def check_events_of_folds(survival: Survival, folds: FoldPlan) -> None:
    """Raise `BadInput` if the training rows of a fold have no event, or no scored row is an event.

    Parameters
    ----------
    survival : Survival
        Events of the rows.
    folds : FoldPlan
        Folds of the rows.
    """
    trained = int(survival.is_event.sum()) - folds.count_left_out(survival.is_event)
    if np.any(trained < 1):
        fold = int(np.argmin(trained))
        raise BadInput(f"folds: the training rows of fold {fold + 1} of {folds.k} have no event; give other folds")
    if not survival.is_event[folds.all_scored].any():
        raise BadInput("folds: no scored row is an event; give other folds")


MANY_EVENTS = 2.0  # events per stratum on average, below which strata are like matched sets


def collect_survival_warnings(data: Dataset, folds: FoldPlan, columns: Mapping[str, FloatArray]) -> list[str]:
    """Return a warning for each property of survival data that makes an answer doubtful; empty for other data.

    Parameters
    ----------
    data : Dataset
        Data.
    folds : FoldPlan
        Folds of the cross-validation.
    columns : mapping of str to (n,) array
        Features of the model.
    """
    survival, notes = data.survival, list[str]()
    if survival is None:
        return notes
    is_event = survival.is_event
    if is_event.all():
        notes.append(f"event: every row of {data.event!r} is an event, and none is censored; check the values")
    if data.reading is not None and data.target in data.reading.date_forms and survival.entry is None:
        notes.append(
            f"time: column {data.target!r} has dates, which count from 1970; give the time since a start, such as the "
            "difference of two dates"
        )
    empty = sum(not is_event[folds.scored_rows(fold)].any() for fold in range(folds.k))
    if empty and int(folds.sizes.max()) > 1:
        notes.append(f"event: {empty} of {folds.k} folds have none of the {is_event.sum()} events; give fewer folds")
    notes += [*_describe_split_strata(data, survival, folds), *_describe_split_persons(data, survival, folds)]
    for name, column in columns.items():
        events, censored = column[is_event], column[~is_event]
        if censored.size and (events.min() > censored.max() or events.max() < censored.min()):
            notes.append(
                f"feature {name!r} separates all events from the censored rows, so it may be a copy of the outcome; "
                "drop it if it is not known at the start of the time"
            )
    return notes


def _describe_split_strata(data: Dataset, survival: Survival, folds: FoldPlan) -> list[str]:
    """Return a warning if folds split strata of few events, such as matched sets."""
    if survival.stratum is None:
        return []
    labels, n_events, n_strata = folds.scoring_folds, int(survival.is_event.sum()), survival.n_strata
    n_split = len(np.unique(survival.stratum[labels != labels[survival.first_of_stratum]]))
    if not n_split or n_events >= MANY_EVENTS * n_strata:
        return []
    return [
        f"strata: the folds split {n_split} of the {n_strata} strata of {data.strata!r}, which have "
        f"{n_events / n_strata:.1f} events on average; to hold out whole strata, as for matched sets, give --folds "
        f"groups:{data.strata}:{min(10, n_strata)}"
    ]


def _describe_split_persons(data: Dataset, survival: Survival, folds: FoldPlan) -> list[str]:
    """Return a warning if folds separate consecutive rows that look like intervals of one person."""
    if survival.entry is None:
        return []
    continued = np.flatnonzero((survival.entry[1:] == data.y[:-1]) & ~survival.is_event[:-1])
    labels = folds.scoring_folds
    if 10 * len(continued) <= data.n or np.array_equal(labels[continued], labels[continued + 1]):
        return []
    return [
        f"entry: {len(continued)} rows begin when the row before them ends, so they may be intervals of one person; "
        "keep the rows of a person in one fold by --folds groups:COLUMN:10"
    ]

"""Reading of survival times: the columns of events, entry times and strata, with checks of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.dataset import Dataset
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
    for option, name in columns.by_option().items():
        if name is not None:
            check_stored_column(dataset, option, name, f"the column of option {option}")
    _check_times(dataset)
    is_event = _read_events(dataset, columns.event)
    entry = None if columns.entry is None else _read_entry_times(dataset, columns.entry)
    stratum = None
    if columns.strata is not None:
        labels = _read_texts(dataset, "strata", columns.strata)
        stratum = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    if dataset.y.min() == dataset.y.max():
        raise BadInput(f"time: column {dataset.target!r} is {dataset.y[0]:.12g} in every row; give different times")
    survival = Survival(is_event, entry, stratum, ties or Ties.EFRON)
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
    cells = dataset.aux[column]
    texts = _read_texts(dataset, "event", column)
    distinct = sorted(set(texts.tolist()))
    shown = ", ".join(distinct[:MOST_NAMED]) + (", ..." if len(distinct) > MOST_NAMED else "")
    advice = f'name the value that means an event, for example event="{column}={distinct[-1]}"'
    if value is None:
        if cells.dtype.kind != "b" and not set(distinct) <= {"0", "1"}:
            raise BadInput(f"event: column {column!r} has the values {shown}; {advice}")
        is_event = texts == ("True" if cells.dtype.kind == "b" else "1")
    else:
        wanted = _format_cell(value)
        if wanted not in distinct:
            raise BadInput(f"event: column {column!r} has no value {value!r}; its values are {shown}; {advice}")
        is_event = texts == wanted
    if is_event.sum() < 2:
        count = "no event" if not is_event.any() else "one event"
        raise BadInput(
            f"event: column {column!r} has {count}, and its values are {shown}; give data with at least two events"
        )
    return np.asarray(is_event)


def _read_texts(dataset: Dataset, option: str, column: str) -> NDArray[np.str_]:
    """Return the values of a column as text; raise `BadInput` if one is missing."""
    texts = np.array([_format_cell(cell) for cell in dataset.aux[column].tolist()])
    missing = np.flatnonzero(np.isin(np.char.lower(texts), MISSING))
    if missing.size:
        row = int(dataset.places[missing[0]]) + 1
        raise BadInput(f"{option}: column {column!r} is empty in row {row}; give a value, {REMOVE_ROW}")
    return texts


def _format_cell(cell: object) -> str:
    """Return a cell as text, numbers in their shortest form."""
    text = str(cell).strip()
    try:
        return f"{float(text):.12g}" if not isinstance(cell, bool) else text
    except ValueError:
        return text


def _read_entry_times(dataset: Dataset, name: str) -> FloatArray:
    """Return the checked entry times of the rows."""
    entry = read_option_column(dataset, "entry", name, "the time after which the row is at risk")
    remedy = f"; give a time before that of {dataset.target!r}, {REMOVE_ROW}"
    check_row_values(entry, entry < dataset.y, f"entry: column {name!r}", remedy, dataset.places)
    return entry


def join_rows(first: Dataset, second: Dataset) -> Dataset:
    """Return the rows of two parts of the same survival data, without columns of options.

    Parameters
    ----------
    first, second : Dataset
        Parts with the same columns.
    """
    parts, survivals = (first, second), (first.survival, second.survival)
    assert first.survival is not None

    def join(name: str, holders: Sequence[object]) -> FloatArray | None:
        values = [getattr(holder, name) for holder in holders]
        return None if values[0] is None else np.concatenate(values)

    joined: dict[str, Any] = {name: join(name, survivals) for name in ("is_event", "entry", "stratum")}
    return replace(
        first, X=np.vstack([first.X, second.X]), y=np.concatenate([first.y, second.y]), aux={}, holes=None,
        row_weights=join("row_weights", parts), survival=replace(first.survival, **joined),
    )  # fmt: skip

"""Reading of survival times: the columns of events, entry times and strata, with checks of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.dataset import KEPT, Dataset
from sparsecv_mio.data.fold_plan import WEIGHTED, FoldPlan
from sparsecv_mio.data.folds import fold_columns
from sparsecv_mio.data.reading_options import STRICT
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.data.weights import REMOVE_ROW, check_row_values, check_stored_column, read_option_column
from sparsecv_mio.digits import MOST_NAMED, abbreviate_list, several
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.targets import TargetColumns, Ties, split_event
from sparsecv_mio.words import Missing

MISSING = "", "nan", "na", "n/a", "none", "<na>", "null", "nat", "."  # texts of missing values, in lower case


@dataclass(frozen=True)
class SurvivalColumns:
    """Columns that data of survival times have in addition to the time, which is the target.

    Attributes
    ----------
    event : str, optional
        Column that marks the events, or `COLUMN=VALUE`.
    entry, strata : str, optional
        Columns of entry times and of strata.
    ties : {"efron", "breslow"}, optional
        Method for tied events; `efron` by default.
    """

    event: str | None = None
    entry: str | None = None
    strata: str | None = None
    ties: str | None = None


def find_fields_of_times(y: Any) -> tuple[NDArray[Any], str, str]:
    """Return a structured array of events and times, and the names of its boolean and its numeric field.

    Parameters
    ----------
    y : structured array
        Events and times, as `sksurv.util.Surv.from_arrays(event, time)` makes them.

    Raises
    ------
    BadInput
        If y has other fields.
    """
    array = np.asarray(y)
    names = array.dtype.names or ()
    flags = [name for name in names if array.dtype[name].kind == "b"]
    numbers = [name for name in names if array.dtype[name].kind in "iuf"]
    if array.ndim != 1 or len(flags) != 1 or len(numbers) != 1 or len(names) != 2:
        if array.ndim == 1 and len(names) == 2 and len(numbers) == 2:
            raise BadInput(f"y: neither of the fields {' and '.join(names)} is boolean; convert the events to bool")
        raise BadInput(
            "y is not a structured array of events and times; give np.array(list(zip(event, time)), "
            "dtype=[('event', bool), ('time', float)]), or sksurv.util.Surv.from_arrays(event, time)"
        )
    return array, flags[0], numbers[0]


def with_survival(dataset: Dataset, columns: TargetColumns, ties: str | None = None) -> Dataset:
    """Return the data with the events, entry times and strata of survival times, which are the target.

    Rows in which one of these columns is empty are dropped if the reading drops rows without a target.

    Parameters
    ----------
    dataset : Dataset
        Data whose target is the time, with the other columns in `aux`.
    columns : TargetColumns
        Columns; that of the events is required unless the data have survival times already.
    ties : {"efron", "breslow"}, optional
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
    known, method = dataset.survival, None if ties is None else Ties(match_keyword(ties, list(Ties), "ties"))
    if known is not None:
        for option in ("event", "entry", "strata"):
            given, stored = getattr(columns, option), getattr(dataset, option)
            if given not in (None, stored):
                raise BadInput(
                    f"{option}: {given!r} is given, but the data already have {stored or 'none'}; leave this option out"
                )
        is_same = method in (None, known.ties)
        return dataset if is_same else replace(dataset, survival=replace(known, ties=method or known.ties))
    if columns.event is None:
        raise BadInput('event: loss cox needs the column that marks events; give event="COLUMN" or "COLUMN=VALUE"')
    options = dict[str, str]()
    for option, name in columns.by_option().items():
        if name is not None:
            check_stored_column(dataset, option, name, f"the column of option {option}")
            if name in options:
                raise BadInput(f"{option}: column {name!r} is that of option {options[name]} too; give another column")
            options[name] = option
    dataset = _drop_rows_without_outcome(dataset, options)
    _check_times(dataset)
    is_event = _read_events(dataset, columns.event)
    entry = None if columns.entry is None else _read_entry_times(dataset, columns.entry)
    stratum = None
    if columns.strata is not None:
        labels = _read_values(dataset, "strata", columns.strata)
        stratum = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    survival = Survival(is_event, entry, stratum, method or Ties.EFRON)
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


def _drop_rows_without_outcome(dataset: Dataset, columns: Iterable[str]) -> Dataset:
    """Return the data without the rows in which a column is empty, if the reading drops rows without a target."""
    reading = dataset.reading
    if reading is None or reading.how.na is Missing.ERROR:
        return dataset
    empty = {name: split_missing(dataset, name)[1] for name in columns}
    is_dropped = np.any([*empty.values()], axis=0)
    if not is_dropped.any():
        return dataset
    if is_dropped.all():
        raise BadInput(f"event: every row has an empty cell in {' or '.join(map(repr, empty))}; check these columns")
    n_dropped = int(is_dropped.sum())
    counts = ", ".join(f"{name!r}: {rows.sum():,}" for name, rows in empty.items() if rows.any())
    note = f"{several(n_dropped, 'row')} with a missing outcome dropped ({counts})"
    reading = replace(reading, left_out=reading.left_out + n_dropped, notes=(*reading.notes, note))
    kept = replace(dataset, reading=reading, aux={**dataset.aux, KEPT: dataset.places})
    return kept.take(np.flatnonzero(~is_dropped))


def split_missing(dataset: Dataset, column: str) -> tuple[NDArray[Any], BoolArray]:
    """Return a column of numbers, truth values or texts, and the mask of its missing values.

    Parameters
    ----------
    dataset : Dataset
        Data with the column in `aux`. Numbers among empty cells are stored as texts there.
    column : str
        Name of the column.
    """
    values, how = dataset.aux[column], STRICT if dataset.reading is None else dataset.reading.how
    if values.dtype.kind not in "biuf":
        texts = np.array([str(cell).strip() for cell in values.tolist()])
        is_empty = np.isin(np.char.lower(texts), [*MISSING, *how.missing_words(column)])
        try:
            values = np.where(is_empty, "nan", texts).astype(np.float64)
        except ValueError:
            return texts, is_empty
        numbers, known = values[~is_empty].tolist(), texts[~is_empty].tolist()
        if any(text not in (repr(number), f"{number:.0f}") for number, text in zip(numbers, known, strict=True)):
            return texts, is_empty  # ids such as 007
    return values, np.isin(values, how.missing_numbers(column)) | np.isnan(values.astype(np.float64))


def _read_values(dataset: Dataset, option: str, column: str) -> NDArray[Any]:
    """Return a column of numbers, truth values or texts, whole numbers as such; raise `BadInput` if one is missing."""
    values, is_missing = split_missing(dataset, column)
    if is_missing.any():
        row = int(dataset.places[np.argmax(is_missing)]) + 1
        raise BadInput(f'{option}: column {column!r} is empty in row {row}; give na="drop", {REMOVE_ROW}')
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


MOST_COMPARISONS = 200_000_000  # values of risk sets, up to which the columns that order all events are found


def find_ordering_columns(survival: Survival, time: FloatArray, columns: Mapping[str, FloatArray]) -> list[str]:
    """Return the columns of which each alone orders all events, so that its coefficient has no finite optimum.

    At each event, such a column has its maximum over the risk set in the row of the event, or at each its minimum.

    Parameters
    ----------
    survival : Survival
        Events, entry times and strata of the rows.
    time : (n,) array
        Times of the rows.
    columns : mapping of str to (n,) array
        Columns by name. With very many values, no column is returned.
    """
    events, n = np.flatnonzero(survival.is_event), len(time)
    if len(events) * n * len(columns) > MOST_COMPARISONS or not columns:
        return []
    stratum = np.zeros(n) if survival.stratum is None else survival.stratum
    entry = np.full(n, -np.inf) if survival.entry is None else survival.entry
    X = np.column_stack([*columns.values()])
    is_largest, is_smallest, varies = (np.full(X.shape[1], start) for start in (True, True, False))
    for row in events.tolist():
        at_risk = X[(time >= time[row]) & (entry < time[row]) & (stratum == stratum[row])]
        low, high = at_risk.min(axis=0), at_risk.max(axis=0)
        is_largest &= X[row] == high
        is_smallest &= X[row] == low
        varies |= low < high
        if not np.any(is_largest | is_smallest):
            break
    return [name for name, found in zip(columns, (is_largest | is_smallest) & varies, strict=True) if found]


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
    notes += _describe_other_codes(data, survival)
    notes += [*_describe_split_strata(data, survival, folds), *_describe_split_persons(data, survival, folds)]
    ordering = find_ordering_columns(survival, data.y, columns)
    for name, column in columns.items():
        events, censored = column[is_event], column[~is_event]
        if censored.size and (events.min() > censored.max() or events.max() < censored.min()):
            fault = "separates all events from the censored rows, so it may be a copy of the outcome"
        elif name in ordering:
            fault = "orders all events, so it may be a copy of the time"
        else:
            continue
        notes.append(f"feature {name!r} {fault}; drop it if it is not known at the start of the time")
    return notes


def _describe_other_codes(data: Dataset, survival: Survival) -> list[str]:
    """Return a warning if censored rows have several codes, of which one may be a competing event."""
    column = split_event(data.event or "")[0]
    if column not in data.aux:
        return []
    codes, counts = np.unique(_read_values(data, "event", column)[~survival.is_event], return_counts=True)
    if len(codes) < 2:
        return []
    shown = abbreviate_list([f"{code}: {several(n, 'row')}" for code, n in zip(codes, counts.tolist(), strict=True)])
    return [
        f"event: all codes of {column!r} but that of {data.event!r} count as censored ({shown}); if one of them is "
        "another kind of event (a competing risk), the hazard ratios are those of the cause-specific hazard"
    ]


def _describe_split_strata(data: Dataset, survival: Survival, folds: FoldPlan) -> list[str]:
    """Return warnings if strata have no event, or if folds split strata of few events, such as matched sets."""
    if survival.stratum is None:
        return []
    notes, counts = list[str](), np.bincount(survival.stratum, survival.is_event)
    if idle := int((counts == 0.0).sum()):
        n_rows = int((counts[survival.stratum] == 0.0).sum())
        notes.append(
            f"strata: {idle} of the {survival.n_strata} strata of {data.strata!r} have no event; their "
            f"{several(n_rows, 'row')} are in no risk set and do not affect hazard ratios"
        )
    labels, n_events, n_strata = folds.scoring_folds, int(survival.is_event.sum()), survival.n_strata
    n_split = len(np.unique(survival.stratum[labels != labels[survival.first_of_stratum]]))
    if not n_split or n_events >= MANY_EVENTS * n_strata:
        return notes
    return [
        *notes,
        f"strata: the folds split {n_split} of the {n_strata} strata of {data.strata!r}, which have "
        f"{n_events / n_strata:.1f} events on average; to hold out whole strata, as for matched sets, give --folds "
        f"groups:{data.strata}:{min(10, n_strata)}",
    ]


def _describe_split_persons(data: Dataset, survival: Survival, folds: FoldPlan) -> list[str]:
    """Return a warning if folds separate consecutive rows that look like intervals of one person."""
    if survival.entry is None or fold_columns(folds.spec.removesuffix(WEIGHTED)):  # the user knows the persons
        return []
    continued = np.flatnonzero((survival.entry[1:] == data.y[:-1]) & ~survival.is_event[:-1])
    labels = folds.scoring_folds
    if 10 * len(continued) <= data.n or np.array_equal(labels[continued], labels[continued + 1]):
        return []
    return [
        f"entry: {len(continued)} rows begin when the row before them ends, so they may be intervals of one person; "
        "keep the rows of a person in one fold by --folds groups:COLUMN:10"
    ]

"""Functions that convert pandas data frames, and tables of polars, DuckDB and Arrow, to data sets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, is_missing_cell
from sparsecv_mio.data.column_choice import Selection, Wanted
from sparsecv_mio.data.columns import RawColumn, RawTable, build_table, word_of_category
from sparsecv_mio.data.dataset import Dataset, require_in_memory
from sparsecv_mio.data.missing_and_text import apply_to_new_rows, impute_and_encode
from sparsecv_mio.data.number_format import POINT, check_ambiguous, describe_ambiguous, duration_in_days, parse_texts
from sparsecv_mio.data.reading_options import OF_CELLS, STRICT, Applied, Reading
from sparsecv_mio.data.survival_columns import find_fields_of_times
from sparsecv_mio.errors import BadInput, name_index_labels, need_extra

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def is_arrow_table(data: Any) -> bool:
    """Return True for a table of polars, DuckDB, Arrow or another library that exports Arrow, except pandas."""
    return hasattr(type(data), "__arrow_c_stream__") and not hasattr(data, "iloc")


def as_pandas(data: Any) -> Any:
    """Return a table of polars, DuckDB or Arrow as a pandas frame, and any other object unchanged.

    Durations in a frame become numbers of days.

    Raises
    ------
    BadInput
        If the object exports Arrow, but not as a table of rows and columns.
    """
    if hasattr(data, "collect") and not is_arrow_table(data):
        raise BadInput(f"data: a {type(data).__name__} is not a table in memory; call its .collect() first")
    if not is_arrow_table(data):
        return _with_durations_in_days(data) if hasattr(data, "isetitem") else data
    import pyarrow as pa

    need_extra("frames", f"a table of {type(data).__module__.partition('.')[0]}")
    others = _columns_outside_arrow(data)
    try:
        frame = _with_intervals_in_days(pa.table(data.drop(list(others)) if others else data)).to_pandas()
        for place, name in enumerate(data.columns if others else ()):
            if name in others:
                frame.insert(place, name, np.array([*others[name], None], dtype=object)[:-1])
        return _with_durations_in_days(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise BadInput(f"data: {type(data).__name__} is not a table that can be read ({why}); give a table") from error


NOT_IN_ARROW = ("Int128", "UInt128", "Object")  # types of polars that Arrow does not have


def _columns_outside_arrow(data: Any) -> dict[str, list[Any]]:
    """Return the columns of a polars frame that Arrow does not have, as lists of Python objects."""
    if not hasattr(data, "get_column"):
        return {}
    return {name: data[name].to_list() for name, kind in data.schema.items() if str(kind) in NOT_IN_ARROW}


def _with_intervals_in_days(table: pa.Table) -> pa.Table:
    """Return an Arrow table with intervals, such as those of DuckDB, as numbers of days.

    An interval of months has no fixed number of days, so a column with such an interval is unchanged.
    """
    import pyarrow as pa

    for j, field in enumerate(table.schema):
        cells = table.column(j).to_pylist() if pa.types.is_interval(field.type) else []
        if cells and all(cell is None or cell.months == 0 for cell in cells):
            days = [None if cell is None else cell.days + cell.nanoseconds / NANOSECONDS_OF_A_DAY for cell in cells]
            table = table.set_column(j, field.name, pa.array(days, pa.float64()))
    return table


NANOSECONDS_OF_A_DAY = 86_400 * 10**9


def _with_durations_in_days(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with durations converted to numbers of days."""
    places = [j for j, kind in enumerate(frame.dtypes) if kind.kind == "m"]
    frame = frame.copy(deep=False) if places else frame
    for j in places:
        cells = frame.iloc[:, j]
        days = [duration_in_days(cell) if there else np.nan for cell, there in zip(cells, cells.notna(), strict=True)]
        frame.isetitem(j, np.array(days, dtype=np.float64))
    return frame


def dataset_from_frame(
    frame: Any, target: str | int, features: Sequence[str] | None, drop: Sequence[str] | None, aux: Sequence[str],
    two_words: bool | None, reading: Mapping[str, Any],
) -> Dataset:  # fmt: skip
    """Return the data set of a frame; see :meth:`sparsecv_mio.data.dataset.Dataset.from_frame`."""
    if "weights" in reading:
        raise BadInput("weights: not supported here; use read_dataset(frame, target, weights=...)")
    how = Reading.from_keywords(**reading)
    of_files = [name for name in how.changed_options() if name not in OF_CELLS]
    if of_files:
        raise BadInput(f"{of_files[0]}: requires a file; omit it for frames")
    wanted = Wanted(target, features, drop, tuple(aux), two_words=two_words)
    return read_frame(frame, wanted, how)


def read_frame(frame: Any, wanted: Wanted, how: Reading) -> Dataset:
    """Return the data set of a frame; see :meth:`sparsecv_mio.data.dataset.Dataset.from_frame`."""
    frame = as_pandas(require_in_memory(frame))
    if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
        lazy = "; give its attribute .frame" if hasattr(frame, "frame") else ""
        kinds = "; give a table of pandas, polars, DuckDB or Arrow, a file or Dataset.from_arrays(X, y)"
        raise BadInput(f"data: a {type(frame).__name__} is not a table in memory{lazy or kinds}")
    with name_index_labels(frame):
        chosen = wanted.select_columns(_names_of_columns(frame))
        table = _read_table(frame, chosen, how, are_classes=bool(wanted.two_words))
        parts = impute_and_encode(table, how, wanted)
        is_text = wanted.two_words and frame.dtypes.iloc[chosen.header.index(chosen.goal)].kind not in "biuf"
        if not (how.changed_options() or is_text):
            for j in chosen.numeric:
                _check_texts(frame.iloc[:, j], chosen.header[j])
        return parts


def _names_of_columns(frame: pd.DataFrame) -> list[str]:
    """Return the column names of a frame as text; empty for None and NaN."""
    return ["" if is_missing_cell(name) else str(name) for name in frame.columns]


def read_new_frame(frame: pd.DataFrame, features: Sequence[str], learnt: Applied, aux: Sequence[str] = ()) -> Dataset:
    """Return features of new rows in a frame, with the preprocessing of the rows of the model.

    Parameters
    ----------
    frame : pandas.DataFrame
        New rows.
    features : sequence of str
        Names of the features.
    learnt : Applied
        Preprocessing of the rows of the model.
    aux : sequence of str
        Other columns that the model needs, such as exposures.
    """
    wanted = Wanted("", learnt.source_columns(features), None, tuple(aux), needed=False)
    with name_index_labels(frame):
        chosen = wanted.select_columns(_names_of_columns(frame))
        table = _read_table(frame, chosen, learnt.how, factors=learnt.levels)
        if learnt.how.number_format == POINT:
            check_ambiguous(describe_ambiguous(table.evidence, POINT, are_new=True))
        return apply_to_new_rows(table, learnt)


def _read_table(
    frame: pd.DataFrame, chosen: Selection, how: Reading, are_classes: bool = False,
    factors: Collection[str] | None = None,
) -> RawTable:  # fmt: skip
    """Return the selected columns of a frame; truth values of the target are texts, as in a file, if it has classes.

    Categories are texts, except in columns other than the factors of a model.
    """
    place = {name: j for j, name in enumerate(chosen.header)}
    kinds = {name: frame.dtypes.iloc[place[name]] for name in chosen.names}
    declared = {name: kind.categories.tolist() for name, kind in kinds.items() if getattr(kind, "ordered", False)}

    def read(name: str) -> RawColumn:
        series = frame.iloc[:, place[name]]
        is_target = name == chosen.goal
        truth_values = _truth_values_as_texts(series) if are_classes and is_target else None
        if truth_values is not None:
            return RawColumn.from_cells(name, truth_values, how)
        if not is_target and (factors is None or name in factors) and _has_text_categories(series):
            return RawColumn.from_categories(name, series.tolist(), how)
        return _read_series(series, name, how)

    aux = {chosen.header[j]: _series_ids(frame.iloc[:, j]) for j in chosen.aux}
    return build_table(read, chosen.names, chosen.goal, len(frame), aux, declared).with_categories(how)


def _read_series(series: pd.Series[Any], name: str, how: Reading) -> RawColumn:
    """Return a column of a frame, of numbers or of any cells."""
    if series.dtype.kind in "biuf":
        return RawColumn.from_numbers(name, series.to_numpy(dtype=np.float64, na_value=np.nan).copy(), how)
    return RawColumn.from_cells(name, series.tolist(), how)


def join_times(data: Any, y: Any) -> tuple[Any, str, str]:
    """Return a table with the events and times of a structured array as columns, and the names of the two columns.

    Parameters
    ----------
    data : pandas.DataFrame or table with `__arrow_c_stream__`
        Features.
    y : structured array
        Events and times, as of scikit-survival.
    """
    array, event, time = find_fields_of_times(y)
    if not (hasattr(data, "columns") or is_arrow_table(data)):
        raise BadInput("y: requires a table of features; for an array, give pandas.DataFrame(X)")
    frame = as_pandas(data)
    if len(array) != len(frame):
        raise BadInput(f"y: has {len(array):,} rows, but the data have {len(frame):,}")
    if names := {event, time}.intersection(frame.columns):
        raise BadInput(f"y: its field {min(names)!r} is a column of the data too; drop or rename one of them")
    return frame.assign(**{event: array[event], time: array[time]}), event, time


def _truth_values_as_texts(series: pd.Series[Any]) -> list[str | None] | None:
    """Return the truth values of a column as texts, None for missing cells; None if it has other values."""
    if series.dtype.kind not in "bO":
        return None
    cells = [None if is_missing else cell for cell, is_missing in zip(series, series.isna(), strict=True)]
    if not all(cell is None or isinstance(cell, bool | np.bool_) for cell in cells):
        return None
    return [cell if cell is None else str(cell) for cell in cells]


def _has_text_categories(series: pd.Series[Any]) -> bool:
    """Return True for a column of categories with different words, other than truth values."""
    categories = getattr(series.dtype, "categories", None)
    if categories is None or categories.dtype.kind == "b":
        return False
    words = list(map(word_of_category, categories.tolist()))
    return len(set(words)) == len(words)


def _check_texts(series: pd.Series[Any], name: str) -> None:
    """Raise `BadInput` for a number that is stored as text."""
    cells = [] if series.dtype.kind in "biuf" else series.tolist()
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    rows = np.flatnonzero(~np.isnan(parse_texts(texts))) if any(texts) else np.empty(0, dtype=np.int64)
    if rows.size:
        more = "convert the column, for example by pandas.to_numeric"
        raise BadInput(f"column {name!r}, row {rows[0] + 1}: the number {texts[rows[0]]!r} is stored as text; {more}")


def table_columns(table: Any) -> tuple[list[str], Any]:
    """Return the column names of a table, and its columns as numbers; `BadInput` names the first other cell."""
    table = as_pandas(table)
    names = [str(name) for name in table.columns]
    if not hasattr(table, "iloc"):
        return names, table
    X = np.empty(table.shape)
    with name_index_labels(table):
        for j, name in enumerate(names):
            X[:, j] = _series_numbers(table.iloc[:, j], name)
    return names, X


def _series_numbers(series: pd.Series[Any], name: str) -> FloatArray:
    """Return a column of a frame as numbers; `BadInput` names the first cell that is not a number."""
    _check_texts(series, name)
    column = _read_series(series, name, STRICT)
    if column.texts:
        row, text = next(iter(column.texts.items()))
        fault = f"holds text {text[:30]!r} in row {row + 1}; encode it as numbers, or drop the column"
        raise BadInput(f"column {name!r} {fault}")
    if column.has_empty:
        row = int(np.argmax(column.empty))
        raise BadInput(f"column {name!r} is empty in row {row + 1}; fill the cell, or drop the row")
    return column.numbers


def _series_ids(series: pd.Series[Any]) -> NDArray[Any]:
    if series.dtype.kind in "biuf" and not series.isna().any():
        return series.to_numpy(dtype=None).copy()
    return series.to_numpy(dtype=object).copy()

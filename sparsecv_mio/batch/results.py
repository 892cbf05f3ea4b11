"""The results of a batch as a table with one row for each run: reading, writing, selection and comparison of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparsecv_mio.batch.batch_plan import COMMON
from sparsecv_mio.digits import abbreviate_list
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.files import check_numbers, check_readable, replacing, with_inert_words

if TYPE_CHECKING:
    import pandas as pd


PROBLEM = ("data", *COMMON)  # settings shared by runs that are compared with one another
FORMATS = (".parquet", ".csv")  # suffixes of table files
TABLE_BYTES = 1 << 32  # maximum size of a table


def read_table(path: str | Path) -> pd.DataFrame:
    """Return a table of results.

    Parameters
    ----------
    path : str or Path
        Parquet or CSV file written by :func:`~sparsecv_mio.batch.results.write_table`.

    Raises
    ------
    BadInput
        If the file cannot be read, or has no rows.
    """
    import pandas as pd
    from pyarrow.parquet import read_metadata

    place = Path(path)
    check_format(place, "table")
    if not place.exists():
        raise BadInput(f"table {str(place)!r} does not exist; check the path")
    check_readable(place, "table", most=TABLE_BYTES)
    try:
        if place.suffix.lower() == ".csv":
            frame = pd.read_csv(place)
        else:
            size = read_metadata(place)
            check_numbers(place, size.num_rows, size.num_columns)
            frame = pd.read_parquet(place)
    except (OSError, ValueError) as error:  # pandas and pyarrow raise ValueErrors for invalid content
        words = str(error).splitlines() or ["no table"]
        raise BadInput(f"table {str(place)!r} cannot be read: {words[0]}") from None
    if "data" not in frame or "state" not in frame:
        raise BadInput(f"table {str(place)!r} was not written by `sparsecv collect`: it has no columns data and state")
    if not len(frame):
        raise BadInput(f"table {str(place)!r} has no rows; run `sparsecv collect` again")
    return frame


def check_format(path: str | Path, what: str = "--out:") -> None:
    """Raise `BadInput` unless the suffix of a path is that of a table format."""
    if Path(path).suffix.lower() not in FORMATS:
        raise BadInput(f"{what} {str(path)!r} must end with {' or '.join(FORMATS)}")


def check_columns(frame: pd.DataFrame, names: Sequence[str], option: str, numbers: bool = False) -> None:
    """Raise `BadInput` if the table lacks a column, or a column has no numbers although they are needed.

    Parameters
    ----------
    names : sequence of str
        Columns.
    option : str
        Option that names the columns, for the message.
    numbers : bool
        True if the columns must have numbers.
    """
    for name in names:
        if name not in frame:
            columns = abbreviate_list([str(column) for column in frame.columns])
            raise BadInput(
                f"{option}: there is no column {name!r}{did_you_mean(name, list(frame.columns))} among {columns}"
            )
        if numbers and frame[name].dtype.kind not in "iuf":
            raise BadInput(f"{option}: column {name!r} does not contain numbers; name a numeric column")


def with_numbers(frame: pd.DataFrame, name: str | None) -> pd.DataFrame:
    """Return a table in which a column of numeric text is converted to numbers, if all its values allow it.

    Parameters
    ----------
    name : str or None
        Name of the column; a missing column is reported by `check_columns`.

    Examples
    --------
    >>> import pandas as pd
    >>> with_numbers(pd.DataFrame({"folds": ["5", "10"]}), "folds")["folds"].tolist()
    [5, 10]
    """
    import pandas as pd

    if name is None or name not in frame or frame[name].dtype.kind in "iuf":
        return frame
    numbers = pd.to_numeric(frame[name], errors="coerce")
    filled = numbers.notna()
    return frame.assign(**{name: numbers}) if filled.any() and filled.equals(frame[name].notna()) else frame


def where(frame: pd.DataFrame, conditions: Sequence[str]) -> pd.DataFrame:
    """Return the rows that satisfy all conditions.

    Parameters
    ----------
    conditions : sequence of str
        Conditions `COLUMN=A,B`: the column has one of these values; an empty one is a missing value.

    Raises
    ------
    BadInput
        If a condition names an unknown column, or no row is left.
    """
    for condition in conditions:
        name, values = _split(condition, "--where")
        check_columns(frame, [name], "--where")
        matching = _column_words(frame[name]).isin([_word(value) for value in values.split(",")])
        if not matching.any():
            some_values = abbreviate_list(list(_column_words(frame[name]).unique()))
            raise BadInput(f"--where {condition}: no row matches; the values of {name} are {some_values}")
        frame = frame[matching]
    return frame


def _split(text: str, option: str) -> tuple[str, str]:
    name, mark, values = text.partition("=")
    if not mark:
        raise BadInput(f"{option} {text!r} is not a condition; write COLUMN=VALUE")
    return name, values


def _column_words(column: pd.Series) -> pd.Series:
    return column.astype(object).map(_word)


def _word(value: object) -> str:
    """Return a value as text for comparisons: numbers by value, missing values as empty text."""
    if value is None or str(value) == "<NA>" or value != value:  # comparisons of pandas' NA are not bool
        return ""
    text = str(value).strip()
    number = _as_number(text)
    return text if number is None else f"{number:g}"


def labels(frame: pd.DataFrame, columns: Sequence[str], names: Mapping[str, str] | None = None) -> pd.Series:
    """Return a label for every row, from the values of some columns without missing ones.

    Parameters
    ----------
    names : mapping, optional
        Other names for labels.

    Returns
    -------
    pandas.Series
        Ordered categories: renamed labels come first, in the given order; the others are in natural order.
    """
    import pandas as pd

    parts = [_column_words(frame[name]) for name in columns]
    row_names = [" ".join(word for word in row if word) for row in zip(*parts, strict=True)]
    words = dict(names or {})
    first = [words[name] for name in words if name in set(row_names)]
    unworded = [name for name in sorted(set(row_names), key=_natural) if name not in words]
    order = list(dict.fromkeys([*first, *unworded]))
    return pd.Series(
        pd.Categorical([words.get(name, name) for name in row_names], order, ordered=True), index=frame.index
    )


def _natural(label: str) -> list[tuple[bool, float, str]]:
    """Return a sort key for natural order: 2 comes before 10, and numbers before words."""
    return [
        (True, 0.0, word) if (number := _as_number(word)) is None else (False, number, "") for word in label.split()
    ]


def _as_number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def settings_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns with the settings of a run, which `collect` writes before its state."""
    columns = list(map(str, frame.columns))
    return columns[: columns.index("state")] if "state" in columns else []


def varying(frame: pd.DataFrame, cells: Sequence[pd.Series], names: Sequence[str]) -> dict[str, int]:
    """Return the columns in which runs of one cell differ, with the maximum number of values in a cell.

    Parameters
    ----------
    cells : sequence of pandas.Series
        Columns that identify a cell.
    names : sequence of str
        Columns to examine.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"data": ["a", "a", "b"], "seed": [0, 1, 0], "method": ["grid", "grid", "joint"]})
    >>> varying(runs, [runs["data"]], ["seed", "method"])
    {'seed': 2}
    """
    keys = [cell.astype(str) for cell in cells]
    most = {name: int(frame[name].astype(str).groupby(keys, sort=False).nunique().max()) for name in names}
    return {name: count for name, count in most.items() if count > 1}


def relative(
    frame: pd.DataFrame, values: Sequence[str], baseline: str, problem: Sequence[str] = (), reduction: bool = False
) -> pd.DataFrame:
    """Return values divided by those of the baseline row with the same problem.

    Parameters
    ----------
    values : sequence of str
        Names of numeric columns.
    baseline : str
        Condition `COLUMN=VALUE` that identifies the rows of the baseline.
    problem : sequence of str
        Columns that must be equal; by default data, folds, seed, test and split, if they exist.
    reduction : bool
        True to return the reduction in per cent instead of the ratio.

    Returns
    -------
    pandas.DataFrame
        The table; rows without a baseline have no numbers.

    Raises
    ------
    BadInput
        If two rows of the baseline have the same problem.
    """
    option = "--reduction" if reduction else "--relative"
    name, value = _split(baseline, option)
    check_columns(frame, [name], option)
    check_columns(frame, values, "--values", numbers=True)
    keys = labels(frame, problem_columns(frame, problem)).astype(str)
    base = frame[_column_words(frame[name]) == _word(value)]
    if base.empty:
        raise BadInput(f"{option} {baseline}: no row of the table has this value; check the column and the value")
    if (twice := keys[base.index].duplicated()).any():
        first_problem = keys[base.index][twice].iloc[0]
        alike = base[keys[base.index] == first_problem]
        differing = [name for name in settings_columns(frame) if alike[name].nunique(dropna=False) > 1]
        how = "with --problem, name the columns that tell these rows apart"
        if differing:
            columns = ",".join([*problem_columns(frame, problem), *differing])
            how = (
                f"these rows differ in {', '.join(differing)}; choose among them with --where, or give --problem "
                f"{columns}"
            )
        raise BadInput(f"{option} {baseline}: the table has several rows for {first_problem!r}: {how}")
    compared = frame.copy()
    for column in values:
        below = keys.map(dict(zip(keys[base.index], base[column].astype(float), strict=True))).astype(float)
        ratio = frame[column].astype(float) / below.where(below != 0.0)
        compared[column] = 100.0 * (1.0 - ratio) if reduction else ratio
    return compared


def problem_columns(frame: pd.DataFrame, given: Sequence[str] = ()) -> list[str]:
    """Return the columns that identify the problem of a run."""
    check_columns(frame, given, "--problem")
    return list(given) or [name for name in PROBLEM if name in frame]


def tabulate_problems(frame: pd.DataFrame, value: str, by: pd.Series, problem: Sequence[str]) -> pd.DataFrame:
    """Return a table of mean values with a row for every problem and a column for every label; NaN if missing.

    Parameters
    ----------
    by : pandas.Series
        Label of every row, from :func:`labels`.
    problem : sequence of str
        Columns that identify the problem.
    """
    numbers = frame[value].astype(float)
    means = numbers.groupby([labels(frame, problem).astype(str), by.astype(str)], sort=False).mean().unstack()
    return means[[name for name in by.cat.categories if name in means]]


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table as Parquet or CSV, by its suffix, completely or not at all.

    Raises
    ------
    BadInput
        If the suffix is another one, or the file cannot be written.
    """
    place = Path(path)
    check_format(place)
    with replacing(place) as temporary:
        if place.suffix.lower() == ".csv":
            with_inert_words(frame).to_csv(temporary, index=False)
        else:
            frame.to_parquet(temporary, index=False)

"""A collected table is read again: some of its rows, numbers relative to a baseline, labels of what is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparsecv_mio.batch.plan import COMMON
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.files import check_numbers, check_readable

if TYPE_CHECKING:
    import pandas as pd

PROBLEM = ("data", *COMMON)  # what two runs share that are compared with one another
FORMATS = (".parquet", ".csv")  # of a table
MOST_SHOWN = 12
MOST_BYTES = 1 << 32  # of a table


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a table of results.

    Parameters
    ----------
    path : str or Path
        Parquet or CSV, as :func:`~sparsecv_mio.batch.collect.write_table` writes it.

    Raises
    ------
    BadInput
        The file cannot be read, or has no rows.
    """
    import pandas as pd
    from pyarrow.parquet import read_metadata

    place = Path(path)
    if place.suffix.lower() not in FORMATS:
        raise BadInput(f"table {str(place)!r} must end with {' or '.join(FORMATS)}")
    if not place.exists():
        raise BadInput(f"table {str(place)!r} does not exist: check its path")
    check_readable(place, "table", most=MOST_BYTES)
    try:
        if place.suffix.lower() == ".csv":
            frame = pd.read_csv(place)
        else:
            size = read_metadata(place)
            check_numbers(place, size.num_rows, size.num_columns)
            frame = pd.read_parquet(place)
    except (OSError, ValueError) as error:  # what pandas and pyarrow raise of a file's content are ValueErrors
        words = str(error).splitlines() or ["no table"]
        raise BadInput(f"table {str(place)!r} cannot be read: {words[0]}") from None
    if "data" not in frame or "state" not in frame:
        raise BadInput(f"table {str(place)!r} was not written by `sparsecv collect`: it has no columns data and state")
    if not len(frame):
        raise BadInput(f"table {str(place)!r} has no rows")
    return frame


def check_columns(frame: pd.DataFrame, names: Sequence[str], option: str, numbers: bool = False) -> None:
    """Raise `BadInput` where the table has no such column, or no number in it that is wanted.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
        Columns.
    option : str
        That names them, for the message.
    numbers : bool
        Whether they must hold numbers.
    """
    for name in names:
        if name not in frame:
            shown = ", ".join(map(str, frame.columns[:MOST_SHOWN])) + (", ..." if frame.shape[1] > MOST_SHOWN else "")
            raise BadInput(f"{option}: no column {name!r}{did_you_mean(name, list(frame.columns))} among {shown}")
        if numbers and frame[name].dtype.kind not in "iuf":
            raise BadInput(f"{option}: column {name!r} holds no numbers")


def with_numbers(frame: pd.DataFrame, name: str | None) -> pd.DataFrame:
    """Return a table with a column of words that are all numbers as numbers, else the table as it is.

    Parameters
    ----------
    frame : pandas.DataFrame
    name : str or None
        Column; one that is not there is left to `check_columns`.

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
    known = numbers.notna()
    return frame.assign(**{name: numbers}) if known.any() and known.equals(frame[name].notna()) else frame


def where(frame: pd.DataFrame, conditions: Sequence[str]) -> pd.DataFrame:
    """Return the rows that fulfil all conditions.

    Parameters
    ----------
    frame : pandas.DataFrame
    conditions : sequence of str
        `COLUMN=A,B`: the column holds one of these; an empty one is a missing value.

    Raises
    ------
    BadInput
        A condition names no column, or nothing is left.
    """
    for condition in conditions:
        name, values = _split(condition, "--where")
        check_columns(frame, [name], "--where")
        kept = _words(frame[name]).isin([_word(value) for value in values.split(",")])
        if not kept.any():
            found = ", ".join(_words(frame[name]).unique()[:MOST_SHOWN])
            raise BadInput(f"--where {condition}: no row has that, {name} is one of {found}")
        frame = frame[kept]
    return frame


def _split(text: str, option: str) -> tuple[str, str]:
    name, mark, values = text.partition("=")
    if not mark:
        raise BadInput(f"{option} {text!r} is no condition: write COLUMN=VALUE")
    return name, values


def _words(column: pd.Series) -> pd.Series:
    return column.astype(object).map(_word)


def _word(value: object) -> str:
    """Return a value as it is compared: numbers by what they are, not by how they are written; nothing is empty."""
    if value is None or str(value) == "<NA>" or value != value:  # the second compares as no bool
        return ""
    text = str(value).strip()
    known = _number(text)
    return text if known is None else f"{known:g}"


def labels(frame: pd.DataFrame, columns: Sequence[str], names: Mapping[str, str] | None = None) -> pd.Series:
    """Return a label of every row: the values of some columns, missing ones left out.

    Parameters
    ----------
    frame : pandas.DataFrame
    columns : sequence of str
    names : mapping, optional
        Other words for labels.

    Returns
    -------
    pandas.Series
        Ordered categories: those with other words come first, as these are given, the rest by numbers and letters.
    """
    import pandas as pd

    parts = [_words(frame[name]) for name in columns]
    found = [" ".join(word for word in row if word) for row in zip(*parts, strict=True)]
    words = dict(names or {})
    first = [words[one] for one in words if one in set(found)]
    rest = [one for one in sorted(set(found), key=_natural) if one not in words]
    order = list(dict.fromkeys([*first, *rest]))
    return pd.Series(pd.Categorical([words.get(one, one) for one in found], order, ordered=True), index=frame.index)


def _natural(label: str) -> list[tuple[bool, float, str]]:
    """Return a key by which 2 comes before 10, and numbers before words."""
    return [(True, 0.0, word) if (known := _number(word)) is None else (False, known, "") for word in label.split()]


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def relative(
    frame: pd.DataFrame, values: Sequence[str], baseline: str, problem: Sequence[str] = (), reduction: bool = False
) -> pd.DataFrame:
    """Divide values by those of the row of a baseline with the same problem.

    Parameters
    ----------
    frame : pandas.DataFrame
    values : sequence of str
        Columns of numbers.
    baseline : str
        `COLUMN=VALUE`, which rows are the baseline.
    problem : sequence of str
        Columns that must be equal; by default data, folds, seed, test and split, as far as there are any.
    reduction : bool
        Return how many per cent less than the baseline they are, instead of the ratio.

    Returns
    -------
    pandas.DataFrame
        Rows without a baseline hold no number.

    Raises
    ------
    BadInput
        Two rows of the baseline have the same problem.
    """
    option = "--reduction" if reduction else "--relative"
    name, value = _split(baseline, option)
    check_columns(frame, [name], option)
    check_columns(frame, values, "--values", numbers=True)
    keys = labels(frame, problem_columns(frame, problem)).astype(str)
    base = frame[_words(frame[name]) == _word(value)]
    if base.empty:
        raise BadInput(f"{option} {baseline}: no row has that")
    if (twice := keys[base.index].duplicated()).any():
        one = keys[base.index][twice].iloc[0]
        raise BadInput(f"{option} {baseline}: several rows of {one!r}: name what tells them apart with --problem")
    found = frame.copy()
    for column in values:
        below = keys.map(dict(zip(keys[base.index], base[column].astype(float), strict=True))).astype(float)
        ratio = frame[column].astype(float) / below.where(below != 0.0)
        found[column] = 100.0 * (1.0 - ratio) if reduction else ratio
    return found


def problem_columns(frame: pd.DataFrame, given: Sequence[str] = ()) -> list[str]:
    """Return the columns that say which problem a row is a run on."""
    check_columns(frame, given, "--problem")
    return list(given) or [name for name in PROBLEM if name in frame]


def by_problem(frame: pd.DataFrame, value: str, by: pd.Series, problem: Sequence[str]) -> pd.DataFrame:
    """Return a row for every problem, a column for every label: the mean of the value, NaN where there is none.

    Parameters
    ----------
    frame : pandas.DataFrame
    value : str
    by : pandas.Series
        Label of every row, as :func:`labels` makes them.
    problem : sequence of str
        Columns.
    """
    numbers = frame[value].astype(float)
    found = numbers.groupby([labels(frame, problem).astype(str), by.astype(str)], sort=False).mean().unstack()
    return found[[name for name in by.cat.categories if name in found]]

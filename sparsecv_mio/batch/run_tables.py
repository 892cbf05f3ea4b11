"""Functions that tabulate the results of a batch: one row for each run, or summaries of the runs for a paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.batch.batch_plan import COMMON
from sparsecv_mio.batch.oracle_tasks import ORACLES
from sparsecv_mio.digits import abbreviate_list, format_with_zeros, several
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.files import (
    as_written,
    check_numbers,
    check_readable,
    inert,
    map_words,
    replacing,
    with_inert_words,
)
from sparsecv_mio.report.document import markdown_text, tex
from sparsecv_mio.targets import Loss

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
        Parquet or CSV file written by :func:`~sparsecv_mio.batch.run_tables.write_table`.

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
            frame = map_words(pd.read_csv(place), as_written)
        else:
            size = read_metadata(place)
            check_numbers(place, size.num_rows, size.num_columns)
            frame = pd.read_parquet(place)
    except (OSError, ValueError) as error:  # pandas and pyarrow raise ValueErrors for invalid content
        words = str(error).splitlines() or ["no table"]
        raise BadInput(f"table {str(place)!r} cannot be read: {words[0]}; run `sparsecv collect` again") from None
    if "data" not in frame or "state" not in frame:
        raise BadInput(
            f"table {str(place)!r} was not written by `sparsecv collect`: it has no columns data and state; name "
            "another table"
        )
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
        how = "give the columns in which these rows differ as --problem COLUMN,..."
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


SMALLER = re.compile(
    r"(.*_)?error|(.*_)?brier|seconds|relative_risk|relative_test_error|mae|gap|mios|nodes|upper"
)  # values that are better if they are smaller
LARGER = re.compile(r"f1|variance_explained|test_r_squared|lower|(.*_)?(accuracy|auc|concordance|gain)")
MISSING = "-"
UNCERTAIN = ("status", "estimate")  # columns that state whether a run was certified
OF_LOSS = re.compile(r"(.*_)?(cv|test)_error|null_error")
ON_TEST_ROWS = re.compile(r"(?!relative_)(.*_)?test_(error|r_squared|accuracy|auc|brier|gain|concordance)")
REPEATS = ("design_draw", "split", "seed", "folds", "test")  # settings of runs that repeat one another
DIFFER = ("data", *REPEATS)  # settings in which the runs of a cell may differ


@dataclass(frozen=True)
class TableCells:
    """The numbers of a table.

    Attributes
    ----------
    centre, spread, count : pandas.DataFrame
        Numbers, standard errors and numbers of runs. Each of these frames has one row for each row of the table, and
        columns (label, value). NaN means that there is no standard error.
    values : tuple of str
        Names of the values.
    marks : pandas.DataFrame
        2 if some run of the cell has an estimate of the CV error, 1 if a limit ended some run, otherwise 0.
    notes : tuple of str
        Notes: the settings over which standard errors are computed, and other settings in which the runs of a cell
        differ.
    """

    centre: pd.DataFrame
    spread: pd.DataFrame
    count: pd.DataFrame
    marks: pd.DataFrame
    values: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Label and value of each column."""
        return [(str(column[0]), str(column[1])) for column in self.centre.columns]


def summarise(
    frame: pd.DataFrame, rows: pd.Series, columns: pd.Series, values: tuple[str, ...], aggregate: str = "mean-se"
) -> TableCells:
    """Return a summary of the runs of every cell.

    Parameters
    ----------
    rows, columns : pandas.Series
        Labels of every run.
    values : tuple of str
        Names of numeric columns.
    aggregate : {"mean-se", "mean", "median", "min", "max", "sum", "count"}
        Summary statistic; missing numbers are ignored.

    Returns
    -------
    TableCells
        The table; rows and columns are in the order of the categories, or of their first appearance.
    """
    numbers = frame[list(values)].astype(float)
    cell = [rows.astype(str).rename("row"), columns.astype(str).rename("column")]
    groups = numbers.groupby(cell, sort=False)
    word = "mean" if aggregate == "mean-se" else aggregate
    centre, count = getattr(groups, word)(), groups.count()
    if word == "sum":
        centre = centre.where(count > 0)
    spread, notes = standard_errors(numbers, cell, frame) if aggregate == "mean-se" else (centre * np.nan, ())
    over = {name for name in DIFFER if spread.notna().to_numpy().any()}  # the note on the errors names these settings
    settings = [name for name in settings_columns(frame) if name not in over]
    if pooled := varying(frame, cell, settings):
        how = "name these settings in --rows or --columns, or choose runs with --where"
        notes = (*notes, f"cells combine runs that differ in {list_settings(pooled)}; {how}")
    notes = (*notes, *describe_losses(frame, values), *describe_missing_values(frame, values))
    marks, mark_notes = _mark_uncertain_runs(frame, numbers)
    notes = (*notes, *mark_notes)
    order = [(label, value) for label in present(columns) for value in values]

    def wide(found: pd.DataFrame) -> pd.DataFrame:
        table: pd.DataFrame = found.unstack("column")  # type: ignore[assignment]  # of a frame: a frame
        return table.swaplevel(axis=1).reindex(index=present(rows))[order]

    counts = [
        wide(found).astype(float).fillna(0.0).astype(int) for found in (count, marks.groupby(cell, sort=False).max())
    ]
    return TableCells(wide(centre), wide(spread), counts[0], counts[1], values, notes)


def _mark_uncertain_runs(frame: pd.DataFrame, numbers: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return 2 for every estimate, 1 for every other number after a limit and 0 for the rest, and notes on them."""
    import pandas as pd

    words = {name: frame[name].astype(str) if name in frame else pd.Series("", frame.index) for name in UNCERTAIN}
    limited, estimated = words["status"].isin(["limit", "interrupted"]), words["estimate"] == "True"
    marks, notes = numbers.notna().mul(limited, axis=0).astype(int), list[str]()
    if "cv_error" in marks:
        marks["cv_error"] += estimated.astype(int)
    if (marks > 0).to_numpy().any():
        names = frame["estimator"].astype(str) if "estimator" in frame else pd.Series("all", frame.index)
        counts = limited.groupby(names, sort=False).agg(["sum", "size"])
        runs = ", ".join(f"{name} {few} of {size}" for name, few, size in counts.itertuples() if few)
        notes.append(f"†: a limit ended runs before their choice was certified: {runs}")
    if (marks > 1).to_numpy().any():
        notes.append(f"~: {several(int(estimated.sum()), 'CV error')} estimated, because a limit left folds unsolved")
    return marks, notes


def describe_losses(frame: pd.DataFrame, values: Sequence[str]) -> Iterator[str]:
    """Yield notes on the loss behind the errors, if searches and peers use another loss than squared error.

    Parameters
    ----------
    frame : pandas.DataFrame
        Runs with their `estimator`, and their `loss` unless it is squared error.
    values : sequence of str
        Names of numeric columns.
    """
    errors = [value for value in values if OF_LOSS.fullmatch(value)]
    if errors and {"estimator", "loss"} <= {*frame}:
        losses = dict.fromkeys(frame.loc[~frame["estimator"].isin(ORACLES), "loss"].dropna().astype(str).str.lower())
        for loss in [loss for loss in Loss if loss in losses]:
            note = f"{', '.join(errors)} with loss {loss}: {loss.target.cv_error}"
            if not loss.target.is_sum_over_rows:
                note += "; it depends on the numbers of rows and folds, so compare gain and test_gain, which do not"
            yield note


def describe_missing_values(frame: pd.DataFrame, values: Sequence[str]) -> Iterator[str]:
    """Yield the reason why an estimator lacks a value that others have: it reports none, or all its runs failed.

    Parameters
    ----------
    frame : pandas.DataFrame
        Runs with their `estimator` and, from `collect`, their `state`.
    values : sequence of str
        Names of numeric columns.
    """
    if "estimator" not in frame:
        return
    ended = frame["state"] != "failed" if "state" in frame else frame["estimator"].notna()
    estimators = dict.fromkeys(frame["estimator"].astype(str))
    fitted = {name: frame[ended & (frame["estimator"].astype(str) == name)] for name in estimators}
    if failed := [name for name in estimators if fitted[name].empty]:
        yield f"{MISSING}: every run of {', '.join(failed)} failed"
    for value in values:
        silent = [name for name, runs in fitted.items() if len(runs) and runs[value].isna().all()]
        if 0 < len(silent) < len(estimators) - len(failed):
            yield f"{MISSING}: {', '.join(silent)} {'reports' if len(silent) == 1 else 'report'} no {value}"


def list_settings(settings: Mapping[str, int]) -> str:
    """Return a list of settings in words, each with the number of its values.

    Examples
    --------
    >>> list_settings({"seed": 2, "method": 3})
    'seed (2 values), method (3)'
    """
    first, *others = (f"{name} ({count}" for name, count in settings.items())
    return ", ".join([f"{first} values)", *(f"{word})" for word in others)])


def standard_errors(
    numbers: pd.DataFrame, cell: list[pd.Series], frame: pd.DataFrame
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the standard errors of the cells, and the settings over which they are computed.

    Errors on test rows vary with the rows, so runs on one test set, identified by the fingerprint of the other rows,
    count as one.

    Parameters
    ----------
    numbers : pandas.DataFrame
        Numbers of every run.
    cell : list of pandas.Series
        Columns that identify a cell.
    frame : pandas.DataFrame
        All columns of these runs.
    """
    groups = numbers.groupby(cell, sort=False)
    spread, on_tests = groups.sem(), [name for name in map(str, numbers) if ON_TEST_ROWS.fullmatch(name)]
    alone: list[str] = []
    if on_tests and "fingerprint" in frame:
        by_set = numbers.groupby([*cell, frame["fingerprint"].rename("test set")], sort=False).mean()
        over_sets = by_set.groupby(level=list(range(len(cell))), sort=False)
        for value in on_tests:
            spread[value] = over_sets[value].sem().reindex(spread.index)
            sets = over_sets[value].count().reindex(spread.index)
            if ((sets == 1) & (groups[value].count() > 1)).any():
                alone.append(
                    f"{value}: no standard error (±), because all runs have the same test set; list several values of "
                    "`split` in [vary] (`seed` changes only the folds)"
                )
    if not spread.notna().to_numpy().any():
        return spread, tuple(alone)
    differing = [name for name in DIFFER if name in frame and (frame[name].groupby(cell).nunique() > 1).any()]
    runs = groups.count().to_numpy()[spread.notna().to_numpy()]
    few, many = int(runs.min()), int(runs.max())
    size = f"{few} runs" if few == many else f"{few} to {many} runs"
    over = f"±: standard error of the mean of {size}{' that differ in ' if differing else ''}{', '.join(differing)}"
    means = "fingerprint" in frame and any(spread[value].notna().any() for value in on_tests)
    return spread, (over + (" (errors on test rows: over test sets)" if means else ""), *alone)


def present(labels: pd.Series) -> list[str]:
    """Return the labels that occur, in the order of their categories or of the runs."""
    present_labels = dict.fromkeys(map(str, labels))
    order = labels.cat.categories if labels.dtype == "category" else present_labels
    return [name for name in order if name in present_labels]


def with_overall(cells: TableCells, geometric: bool = False) -> TableCells:
    """Return the table with a last row: the mean over all rows, for columns that have a value in every row.

    Parameters
    ----------
    geometric : bool
        True for the geometric mean, which suits ratios.
    """
    import pandas as pd

    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (cells.centre.apply(np.log) if geometric else cells.centre).mean(skipna=False)
    name = "geometric mean" if geometric else "mean"
    rows = {
        "centre": np.exp(mean) if geometric else mean,
        "spread": mean * np.nan,
        "count": cells.count.sum(),
        "marks": cells.marks.max(),
    }
    return replace(
        cells, **{part: pd.concat([getattr(cells, part), row.to_frame(name).T]) for part, row in rows.items()}
    )  # fmt: skip


def optimum_kind(value: str, word: str = "auto") -> str:
    """Return whether the smallest or the largest value is the best: min, max or none.

    Examples
    --------
    >>> optimum_kind("test_error"), optimum_kind("f1"), optimum_kind("tau")
    ('min', 'max', 'none')
    """
    if word != "auto":
        return word
    return "min" if SMALLER.fullmatch(value) else "max" if LARGER.fullmatch(value) else "none"


def markdown(cells: TableCells, best: str = "auto", digits: int = 4) -> str:
    """Return the table in Markdown, with padded columns so that it is readable as plain text.

    Parameters
    ----------
    best : {"auto", "min", "max", "none"}
        Number in bold in each row.
    digits : int
        Number of significant digits.
    """
    body = _texts(cells, best, digits, lambda text: f"**{text}**", " ± ")
    many = len(cells.values) > 1
    head = ["", *(f"{label} {value}".strip() if many else label or value for label, value in cells.columns)]
    lines = [list(map(markdown_text, head))]
    lines += [[markdown_text(str(name)), *row] for name, row in zip(cells.centre.index, body, strict=True)]
    width = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    first, *others = lines
    padded = [[cell.ljust(wide) for cell, wide in zip(first, width, strict=True)]]
    padded.append(["-" * width[0], *("-" * (wide - 1) + ":" for wide in width[1:])])
    for name, *line in others:
        padded.append([name.ljust(width[0]), *map(str.rjust, line, width[1:])])
    return "\n".join("| " + " | ".join(line) + " |" for line in padded) + "\n" + _note(cells)


def latex(cells: TableCells, best: str = "auto", digits: int = 4) -> str:
    """Return the table in LaTeX, for the package booktabs.

    Parameters
    ----------
    cells, best, digits
        Arguments as for :func:`markdown`.
    """
    body = _texts(cells, best, digits, lambda text: rf"\textbf{{{text}}}", r" $\pm$ ")
    in_tex = str.maketrans({"±": r"$\pm$", "†": r"$\dagger$", "~": r"$\sim$"})
    body = [[text.translate(in_tex) for text in row] for row in body]
    columns, many = cells.columns, len(cells.values)
    labels = dict.fromkeys(label for label, _ in columns)
    lines = [rf"\begin{{tabular}}{{l{'r' * cells.centre.shape[1]}}}", r"\toprule"]
    lines.append(" & ".join(["", *(rf"\multicolumn{{{many}}}{{c}}{{{tex(label)}}}" for label in labels)]) + r" \\")
    if many > 1:
        lines.append(" & ".join(["", *(tex(value) for _, value in columns)]) + r" \\")
    lines.append(r"\midrule")
    names = [tex(str(name)) for name in cells.centre.index]
    lines += [" & ".join([name, *row]) + r" \\" for name, row in zip(names, body, strict=True)]
    notes = [f"% {note}".translate(in_tex) for note in _note(cells).split("\n") if note]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes, ""])


def csv(cells: TableCells) -> str:
    """Return the table as CSV with full precision; each row has the number of runs and standard errors, if any."""
    import pandas as pd

    spread = bool(cells.spread.notna().to_numpy().any())
    parts = {"": cells.centre, **({" standard error": cells.spread} if spread else {}), " runs": cells.count}
    table = pd.DataFrame(
        {
            " ".join(map(str, column)).strip() + ending: part[column]
            for column in cells.centre.columns for ending, part in parts.items()
        }
    )  # fmt: skip
    table = table.rename(index=lambda label: inert(str(label)), columns=inert)
    return table.rename_axis("row").to_csv(lineterminator="\n")


def _texts(cells: TableCells, best: str, digits: int, bold: Callable[[str], str], between: str) -> list[list[str]]:
    """Return the texts of the cells of every row; the best number of each value is bold."""
    texts: dict[tuple[int, tuple[str, str]], str] = {}
    for value in cells.values:
        columns = [column for column in cells.columns if column[1] == value]
        parts = (cells.centre, cells.spread, cells.count, cells.marks)
        centre, spread, count, marks = (part[columns].to_numpy() for part in parts)
        finite = centre[np.isfinite(centre)]
        whole = bool(np.all(finite == np.round(finite))) and not np.any(spread > 0)
        for k, (numbers, errors, runs, row_marks) in enumerate(zip(centre, spread, count, marks, strict=True)):
            plain = [f"{x:.0f}" if whole and np.isfinite(x) else format_with_zeros(float(x), digits) for x in numbers]
            winning = _winning_text(numbers.tolist(), plain, optimum_kind(value, best))
            cells_of_row = zip(columns, plain, numbers, errors, runs, row_marks, strict=True)
            for column, text, number, error, n_runs, mark in cells_of_row:
                shown = bold(text) if text == winning else text
                shown += between + _as_many_decimals(error, text) if np.isfinite(error) else ""
                texts[k, column] = MISSING if np.isnan(number) else _add_marks(shown, mark, 0 < n_runs < runs.max())
    return [[texts[k, column] for column in cells.columns] for k in range(len(cells.centre))]


def _add_marks(text: str, mark: int, has_fewer_runs: bool) -> str:
    """Return the text of a cell with the marks that the notes of the table explain."""
    return ("~" if mark > 1 else "") + text + ("†" if mark else "") + ("*" if has_fewer_runs else "")


def _winning_text(numbers: list[float], texts: list[str], kind: str) -> str | None:
    """Return the text of the best number; None if they need no comparison or all texts are equal."""
    finite = [number for number in numbers if np.isfinite(number)]
    if kind == "none" or len(finite) < 2 or len(set(texts)) == 1:
        return None
    return texts[numbers.index(min(finite) if kind == "min" else max(finite))]


def _as_many_decimals(error: float, text: str) -> str:
    """Return a standard error with the decimals of its mean, but at least one significant digit."""
    decimals = len(text.partition(".")[2]) if "e" not in text else 0
    return f"{error:.{decimals}f}" if error >= 0.5 * 10.0**-decimals or error == 0.0 else f"{error:.1g}"


def _note(cells: TableCells) -> str:
    counts = cells.count.to_numpy()
    fewer = any(0 < few < max(row) for row in counts for few in row)
    few = "*: fewer runs than other cells of the row, because some runs failed or were not requested."
    notes = [*([few] if fewer else []), *cells.notes]
    return "\n" + "\n\n".join(notes) + "\n" if notes else ""

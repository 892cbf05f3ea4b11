"""Treatment of missing and text values: imputation, encoding, or an error that names the option to use.

Columns with empty cells or text values become numeric features. `Applied` stores the values that this conversion needs,
such as the means for imputation and the levels of a text column. New rows are therefore transformed in the same way.
Like the scales of the columns, these values are computed from all rows, including the rows that a fold holds out. The
target has no influence on these values.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.column_choice import Wanted, drop_keyword
from sparsecv_mio.data.column_faults import Fault, find_faults, raise_faults
from sparsecv_mio.data.columns import MOST_LEVELS, RawColumn, RawTable, is_unreadable
from sparsecv_mio.data.dataset import KEPT, Dataset, check_dataset
from sparsecv_mio.data.number_format import (
    DAYS,
    PARTS,
    Evidence,
    check_ambiguous,
    date_features,
    describe_ambiguous,
    example_of_form,
    form_of_dates,
    parts_of_form,
    read_moment,
)
from sparsecv_mio.data.reading_options import (
    ABSENT,
    OPPOSITES,
    OVER_ALL_ROWS,
    Applied,
    Reading,
    describe_imputed_cells,
    feature_names,
    fill_value,
    indicator_name,
)
from sparsecv_mio.digits import MOST_NAMED, abbreviate_list, plural, several
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.words import Encode, Missing

SUM_DIGITS = 1e-4  # relative difference of a rounded total from the sum of its column
MANY_DROPPED = 0.1  # share of dropped rows, above which a column that causes most of them is to be left out
MIN_ROWS_ABOVE_TOTAL = 5  # rows, from which a last row of sums is refused although all of its cells can be read
TOTAL = re.compile(
    r"(?i)(grand |sub-?|column )?(totals?|totale|sums?|summe|gesamt(summe|wert|ergebnis)?|insgesamt|somme|suma)\W*"
)  # labels of a last row of totals
NO_TARGET = "(no target)"  # auxiliary column that marks new rows without a target, if others have one


def impute_and_encode(table: RawTable, how: Reading, wanted: Wanted) -> Dataset:
    """Return the features of a table after the imputation and encoding that the options request.

    Parameters
    ----------
    table : RawTable
        The table before any treatment.
    how : Reading
        The reading options.
    wanted : Wanted
        The selected columns; states also whether the target may hold two text values, and whether the number format is
        known.

    Returns
    -------
    Dataset
        The data set; `reading` has the learned preprocessing.

    Raises
    ------
    BadInput
        If a column has cells that the options do not allow, or ambiguous numbers; the message names every such column.
    """
    columns = tuple(column.name for column in table.features)
    if not wanted.has_fixed_options:
        _check_total_row(table, how)
    table, date_forms = number_dates(table, how)
    how = how.add_declared_orders(table.declared)
    _check_named_columns(table, how)
    _check_orders(table, how)
    _check_cells(table, how, wanted)
    if not wanted.has_fixed_options:
        check_ambiguous(describe_ambiguous(table.evidence, how.number_format))
    doubts = [] if wanted.sure else list(filter(None, map(describe_codes, table.columns)))
    every, (is_kept, table) = table, _complete_rows(table, how)
    if table.rows == 0 and len(is_kept):
        most = max(every.features, key=lambda column: int(column.empty.sum()), default=None)
        named = f"{drop_keyword(most.name)} ({int(most.empty.sum()):,} missing values)" if most else "another target"
        raise BadInput(f'no row is left, because every row has a missing value; give na="mean", or {named}')
    means = _fill_values(table, how)
    levels = {column.name: column.levels(how.orders.get(column.name, ())) for column in table.columns if column.texts}
    filled = tuple(column.name for column in table.features if column.name in means and column.has_empty)
    absent = _count_absent_cells(table)
    repeated = {name for column in date_forms for name in list(date_features(column, how.dates))[1:]}
    marked = tuple(name for name in filled if name not in repeated) if how.na_indicator else ()
    notes = (*_describe_dropped_rows(every, is_kept, how), *doubts, *_describe_cells(table, how, means, levels))
    n_dropped = int(np.sum(~is_kept))
    return check_dataset(
        _build_dataset(
            table, Applied(how, columns, means, levels, n_dropped, notes, marked, filled, date_forms, absent)
        )
    )


def _count_absent_cells(table: RawTable) -> dict[str, int]:
    """Return the number of missing cells of each text column that has some."""
    return {column.name: int(column.empty.sum()) for column in table.features if column.texts and column.has_empty}


def apply_to_new_rows(table: RawTable, learnt: Applied) -> Dataset:
    """Return the features of new rows, with the preprocessing learned from other rows.

    If rows with missing cells were dropped there, such new rows are dropped as well.

    Parameters
    ----------
    table : RawTable
        The required columns. The target, if there is one, may have missing cells: it is zero there, and the column
        `NO_TARGET` marks these rows.
    learnt : Applied
        The learned preprocessing.

    Raises
    ------
    BadInput
        If there is an unknown text value, or a missing cell in a column without a learned fill value.
    """
    columns, levels = tuple(column.name for column in table.features), learnt.levels
    table, _ = number_dates(table, learnt.how, learnt.date_forms, keep_texts=learnt.invalid is not None)

    def may_be_missing(column: RawColumn) -> bool:
        is_dropped = learnt.how.na is Missing.DROP or column is table.target
        return is_dropped or column.name in learnt.means or ABSENT in levels.get(column.name, ())

    faults = find_faults(table, learnt.how, lambda column: column.name in levels, may_be_missing, True)
    is_kept, table, learnt = _keep_valid_rows(table, learnt, faults)
    target = table.target
    if target is not None and target.empty.all():
        table = replace(table, target=None)
    elif target is not None and target.has_empty:
        table = replace(table, aux={**table.aux, NO_TARGET: target.empty})
    notes = _describe_new_cells(table, learnt)
    return _build_dataset(table, replace(learnt, columns=columns, left_out=int(np.sum(~is_kept)), notes=notes))


def _keep_valid_rows(table: RawTable, learnt: Applied, faults: Sequence[Fault]) -> tuple[BoolArray, RawTable, Applied]:
    """Return the mask of kept new rows, their table, and the preprocessing with the invalid rows.

    Raises
    ------
    BadInput
        If a row that is not dropped has an invalid value.
    """
    levels, invalid, n_rows = learnt.levels, dict[int, str](), table.rows
    if learnt.invalid is not None:
        invalid, n_rows = _find_invalid_rows(table, levels, faults), 0
        learnt = replace(learnt, invalid={row + 1: invalid[row] for row in sorted(invalid)})
    faults = [fault for fault in faults if fault.is_target or not invalid]
    is_kept, kept = _complete_rows(table, learnt.how, targets=False, invalid=list(invalid))
    places = np.flatnonzero(is_kept).tolist()
    unknown, rows = _describe_unknown_levels(kept.features, levels, places, learnt.how)
    raise_faults(
        faults, table, "; ".join(["", *unknown]) + _advise_no_prediction(_rows_of_faults(faults) | rows, n_rows)
    )
    unknown += _describe_unknown_levels([kept.target] if kept.target else [], levels, places, learnt.how)[0]
    if unknown:
        raise BadInput("; ".join(unknown) + _advise_no_prediction(rows, n_rows))
    return is_kept, kept, learnt


def _describe_new_cells(table: RawTable, learnt: Applied) -> tuple[str, ...]:
    """Return notes on imputed cells of new rows, and on cells that count as the level of missing cells."""
    filled = _describe_imputation(table, learnt.how, learnt.means)
    levels = [column for column in table.features if column.has_empty and column.name in learnt.levels]
    n_rows = [(learnt.absent or {}).get(column.name) for column in levels]
    return (
        *(f"{cells} over the rows of the fit, in {names}" for cells, names in filled),
        *(describe_absent_level(column) + _describe_rows_of_fit(n) for column, n in zip(levels, n_rows, strict=True)),
    )


def _describe_rows_of_fit(n_rows: int | None) -> str:
    """Return the number of rows of the fit with a level; empty if it is not known."""
    if n_rows is None:
        return ""
    return f", which {several(n_rows, 'row')} of the fit {'has' if n_rows == 1 else 'have'}"


def _find_invalid_rows(table: RawTable, levels: Mapping[str, Sequence[str]], faults: Sequence[Fault]) -> dict[int, str]:
    """Return the rows, from 0, with an invalid value of a feature, each with a reason."""
    reasons = dict[int, str]()
    for column in table.features:
        for row, word in column.level_codes(levels[column.name])[1].items() if column.name in levels else ():
            reasons[row] = f"column {column.name!r} holds {word!r:.40}, which is not a level in the data of the model"
    for fault in faults:
        if not fault.is_target:
            reasons |= fault.find_reasons()
    return reasons


def number_dates(
    table: RawTable, how: Reading, forms: Mapping[str, str] | None = None, keep_texts: bool = False
) -> tuple[RawTable, dict[str, str]]:
    """Return a table with numeric columns instead of dates, and the date format of each date column.

    Parameters
    ----------
    table : RawTable
        Table with dates; dates of the target become days for every choice of date features.
    how : Reading
        Options with the numbers that dates become; none by default.
    forms : mapping of str to str, optional
        Date format of each column, if it is known from other rows.
    keep_texts : bool
        True to keep cells of these columns that are not dates as texts.

    Raises
    ------
    BadInput
        If no column holds dates, a cell of a date column is not a date, or the order of day and month is ambiguous.
    """
    if not how.dates:
        return table, {}
    is_form_known = forms is not None
    if forms is None:
        forms = {column.name: form_of_dates(column.name, column.texts.values(), how.dates) for column in table.columns}
    conversions = {name: form for name, form in forms.items() if form}
    if not conversions:
        raise BadInput(f"dates: no feature is read as dates; {_find_other_dates(table, how)}leave this option out")
    features = list[RawColumn]()
    for column in table.features:
        made = date_features(column.name, how.dates)
        features += (
            _date_columns(column, conversions[column.name], made, is_form_known, keep_texts)
            if column.name in conversions
            else [column]
        )
    target = table.target
    if target is not None and target.name in conversions:
        target = _date_columns(target, conversions[target.name], {target.name: DAYS}, is_form_known)[0]
    return replace(table, features=features, target=target, X=None), conversions


def _find_other_dates(table: RawTable, how: Reading) -> str:
    """Return advice on dates for a table without features of dates: it names a column of dates with another use."""
    for name, cells in table.aux.items():
        with suppress(BadInput):  # if the day or the month may come first, --dates names no column either
            if form_of_dates(name, map(str, cells.tolist()), how.dates):
                return f"{name!r} holds dates, but it gives ids, folds, weights or exposures; "
    return "write dates as 2024-12-31, or "


def _date_columns(
    column: RawColumn, form: str, features: Mapping[str, str], is_form_known: bool, keep_texts: bool = False
) -> list[RawColumn]:
    """Return the numeric columns of a date column, one for each requested part of the date."""
    moments, texts = dict[int, datetime](), dict[int, str]()
    for row in np.flatnonzero(~column.empty).tolist():
        cell = column.texts.get(row, f"{column.numbers[row]:g}")
        try:
            moments[row] = read_moment(cell, form)
        except ValueError:
            if keep_texts:
                texts[row] = cell
                continue
            code = json.dumps(f"{column.name}={cell}", ensure_ascii=False)
            advice = f"write all dates in one form, or give na_values={code} if this cell means a missing date"
            if is_form_known:
                advice = f"write the dates as {parts_of_form(form)}, as in the data of the model"
            raise BadInput(
                f"column {column.name!r}, row {row + 1}: {cell[:30]!r} is not a date such as "
                f"{example_of_form(form)}; {advice}"
            ) from None
    columns = []
    for name, date_part in features.items():
        numbers = np.full(len(column.numbers), np.nan)
        numbers[list(moments)] = [PARTS[date_part](moment) for moment in moments.values()]
        columns.append(replace(column, name=name, numbers=numbers, texts=texts, evidence=Evidence()))
    return columns


def _check_cells(table: RawTable, how: Reading, wanted: Wanted) -> None:
    """Raise `BadInput` that names every column with cells that are not allowed."""

    def may_be_text(column: RawColumn) -> bool:
        is_encoded = how.column_encoding(column.name) is not Encode.ERROR
        return column.has_text_values and (is_encoded or (column is table.target and bool(wanted.two_words)))

    faults = find_faults(
        table, how, may_be_text, lambda _: how.na is not Missing.ERROR, wanted.has_fixed_options, wanted.classes_by
    )
    if faults and not wanted.has_fixed_options:
        _check_rows(table, how)
    if table.target is not None and table.target.has_text_values:
        _check_classes(table.target)  # no option of other columns helps with such a target
    raise_faults(faults, table, _advise_no_prediction(_rows_of_faults(faults), 0 if wanted.needed else table.rows))
    for column in table.features:
        _check_feature(column, how)


def _check_classes(target: RawColumn) -> None:
    """Raise `BadInput` if a target of text values does not have two of them."""
    levels = target.levels()
    if len(levels) == 2:
        return
    words, variants = several(len(levels), "text value"), target.describe_case_variants(levels)
    advice = "give numbers, or exactly two different values for two classes"
    if len(levels) > 2:
        code = missing_code_among_classes(levels)
        advice = code or (
            "a target of more than two classes is not supported; give numbers, keep the rows of two classes for "
            'loss="logistic", or join classes until two are left'
        )
    codes = "; or give keep_default_na=False if missing-value codes are text values" if target.codes else ""
    raise BadInput(f"target {target.name!r} has {words}{f' ({variants})' if variants else ''}; {advice}{codes}")


UNANSWERED = re.compile(
    r"(unknown|unk|missing|refused|declined|undefined|undetermined|not (known|given|done|applicable|available)|"
    r"no (answer|data|response)|don'?t know|dk|n\.? ?[ad]\.?|n/d|k\. ?a\.|keine angabe|unbekannt|fehlt|inconnu|-+|\?+)",
    re.IGNORECASE,
)  # a class that may be a missing-value code; a number may be a value of another column


def missing_code_among_classes(classes: Sequence[str]) -> str:
    """Return advice on the one of three classes that may be a missing-value code; empty if there is none.

    Examples
    --------
    >>> print(missing_code_among_classes(["no", "unknown", "yes"]))
    give na_values="unknown" and na="drop" if 'unknown' marks missing values
    >>> missing_code_among_classes(["blue", "green", "red"])
    ''
    """
    codes = [name for name in classes if UNANSWERED.fullmatch(name.strip())]
    if len(classes) != 3 or len(codes) != 1:
        return ""
    return (
        f'give na_values={json.dumps(codes[0], ensure_ascii=False)} and na="drop" if {codes[0]!r} marks missing values'
    )


def _check_feature(column: RawColumn, how: Reading) -> None:
    """Raise `BadInput` if a feature has no value, too many text values, or missing values without a rank."""
    if column.has_empty and column.empty.all():
        raise BadInput(f"column {column.name!r} is empty in every row; give {drop_keyword(column.name)}")
    if not column.texts:
        return
    n_levels = len(column.levels())
    if n_levels > MOST_LEVELS:
        spec = json.dumps(f"groups:{column.name}", ensure_ascii=False)
        subjects = f"; or folds={spec} if they are subjects with several rows each"
        raise BadInput(
            f"column {column.name!r} holds {n_levels:,} different text values, more than {MOST_LEVELS}; give "
            f"{drop_keyword(column.name)}, or join some of them{subjects * (2 * n_levels <= len(column.numbers))}"
        )
    if how.column_encoding(column.name) is Encode.ORDINAL and how.na.uses_imputation and column.has_empty:
        raise BadInput(
            f'column {column.name!r} has ranks and missing values, which na="{how.na}" does not impute; give '
            'na="drop", write the ranks as numbers into the data, or give encode="onehot" and no order for this '
            "column: missing values are then a separate level"
        )


def rows_without_data(table: RawTable) -> dict[int, str]:
    """Return the rows of a file without data, such as a second header, units or totals, with their text.

    In such a row, more than half of the numeric columns are text or empty. The last rows also count if only there the
    first column has texts without a digit, such as `Total`.
    """
    columns = [column for column in table.columns if not column.has_text_values]
    texts = {
        row: text for column in reversed(columns) if 2 * len(column.texts) < table.rows
        for row, text in column.texts.items() if not is_unreadable(text)
    }  # fmt: skip
    labels = {row: text for row, text in table.columns[0].texts.items() if not re.search(r"\d", text)}
    if 2 * len(labels) >= table.rows or min(labels, default=0) != table.rows - len(labels):
        labels = {}
    texts |= labels
    if table.find_lines is None or len(texts) > MOST_NAMED:
        return {}
    n_unread = {row: sum(row in column.texts or bool(column.empty[row]) for column in columns) for row in sorted(texts)}
    return {row: texts[row] for row, count in n_unread.items() if row in labels or 2 * count > len(columns)}


def rows_of_sums(table: RawTable) -> list[int]:
    """Return the last row of a file if each of its numbers is the sum of the column above it; otherwise no row.

    At least two of the sums must differ from 0.
    """
    last = table.rows - 1
    if table.find_lines is None or last < 2:
        return []
    numbers = [column.numbers for column in table.columns if np.isfinite(column.numbers[last])]
    sums = [float(np.nansum(column[:last])) for column in numbers]
    are_sums = np.isclose([column[last] for column in numbers], sums, rtol=SUM_DIGITS, atol=0.0)
    return [last] if are_sums.all() and np.count_nonzero(sums) >= 2 else []


def find_total_row(table: RawTable) -> int | None:
    """Return the last row, from 0, if it is a row of totals, otherwise None.

    Each number of such a row is the sum of its column, and a sum exceeds all values of its column. A row with a label
    such as `Total`, which no other row has, also counts if at least half of its other cells are empty.
    """
    last, columns = table.rows - 1, table.columns
    if last < MIN_ROWS_ABOVE_TOTAL:
        return None
    n_empty = sum(bool(column.empty[last]) for column in columns)
    labels = [column for column in columns if TOTAL.fullmatch(column.texts.get(last, "").strip())]
    has_label = any(list(column.texts.values()).count(column.texts[last]) == 1 for column in labels)
    if has_label and 2 * n_empty >= len(columns) - len(labels):
        return last
    n_sums, is_larger = 0, False
    for column in columns:
        if not np.isfinite(column.numbers[last]):
            continue
        total = float(np.nansum(column.numbers[:last]))
        if not np.isclose(column.numbers[last], total, rtol=SUM_DIGITS, atol=0.0):
            return None
        n_sums += total != 0.0
        is_larger |= abs(total) > float(np.max(np.abs(column.numbers[:last]), initial=0.0, where=~column.empty[:last]))
    is_row_of_sums = is_larger and (has_label or n_sums >= 2 or n_empty == len(columns) - 1)
    return last if is_row_of_sums else None


def _check_total_row(table: RawTable, how: Reading) -> None:
    """Raise `BadInput` if the last row is a row of totals that the options for missing cells do not drop."""
    last = find_total_row(table)
    if last is None:
        return
    is_dropped = how.na is Missing.DROP and any(column.empty[last] for column in table.features)
    if is_dropped or (how.na is not Missing.ERROR and table.target is not None and table.target.empty[last]):
        return
    texts = [column.texts[last] for column in table.columns if last in column.texts]
    label = f" under the label {texts[0][:30]!r}" if texts else ""
    remedy = "leave this row out"
    if table.find_lines is not None:
        remedy = f'leave the line out with skip_lines="{skipped_lines(table, how, [last])}", or correct the file'
    raise BadInput(f"row {last + 1}, the last one, holds the sums of the other rows{label}; {remedy}")


def skipped_lines(table: RawTable, how: Reading, rows: Iterable[int]) -> str:
    """Return the line numbers to skip if the given rows, from 0, are skipped as well."""
    lines = {} if table.find_lines is None else table.find_lines({row + 1 for row in rows})
    return how.skipping(lines.values())


def _check_rows(table: RawTable, how: Reading) -> None:
    """Raise `BadInput` that names rows without data, or a row of sums, and the keyword that skips them."""
    if texts := rows_without_data(table):
        named = abbreviate_list([f"{text[:30]!r} in row {row + 1}" for row, text in texts.items()])
        verb = "holds" if len(texts) == 1 else "hold"
        rows = list(texts)
        description = f"{several(len(texts), 'row')} {verb} text where other rows have numbers ({named})"
    elif rows := rows_of_sums(table):
        description = f"row {rows[0] + 1}, the last one, holds the sums of the other rows"
    if rows:
        raise BadInput(
            f"{description}; leave the {plural(len(rows), 'line')} out with "
            f'skip_lines="{skipped_lines(table, how, rows)}", or correct the file'
        )


def _check_named_columns(table: RawTable, how: Reading) -> None:
    """Raise `BadInput` if an option for the values of some columns names a column that the table does not have."""
    features, columns = [column.name for column in table.features], [column.name for column in table.columns]
    for name in how.categories:
        if name not in features:
            raise BadInput(f"categories: {name!r} is not a feature{did_you_mean(name, features)}; give a feature")
    for code in how.na_values:  # a code of all columns may have the sign =
        name, is_named, _ = code.rpartition("=")
        similar = did_you_mean(name, columns) if is_named and name not in columns else ""
        if similar:
            raise BadInput(f"na_values: {code!r} names no column{similar}; give COLUMN=CODE, or CODE for all columns")


def _check_orders(table: RawTable, how: Reading) -> None:
    """Raise `BadInput` for an order that does not fit its column, and for ordinal columns without an order."""
    columns, orders = {column.name: column for column in table.features}, how.orders
    for name, order in orders.items():
        if name not in columns:
            raise BadInput(f"order: {name!r} is not a feature{did_you_mean(name, columns)}; give a text column")
        if unknown := columns[name].level_codes(order)[1]:
            row, word = next(iter(unknown.items()))
            raise BadInput(f"order: column {name!r}, row {row + 1}: {word!r} has no rank; add it to the order")
    levels = {column.name: column.levels() for column in table.features if column.texts and column.has_text_values}
    without = [
        name for name, words in levels.items() if name not in orders and len(words) > 1 and words not in OPPOSITES
    ]
    if without and how.encode is Encode.ORDINAL:
        names, words = abbreviate_list(list(map(repr, without))), abbreviate_list(levels[without[0]])
        ranks = json.dumps(f"{without[0]}=LOWEST<...<HIGHEST", ensure_ascii=False)
        raise BadInput(
            f"{plural(len(without), 'column')} {names}: the text values have no declared order ({words}); "
            f'give all of them as order={ranks}, or give encode="onehot", and order only for the columns with ranks'
        )


def _describe_unknown_levels(
    columns: Sequence[RawColumn], levels: Mapping[str, Sequence[str]], rows: Sequence[int], how: Reading
) -> tuple[list[str], set[int]]:
    """Return descriptions of the text values of new rows that are not levels, and the rows, from 0, with one.

    Parameters
    ----------
    columns : sequence of RawColumn
        Columns of the kept rows.
    levels : mapping of str to sequence of str
        Levels of the data of the model, by text column.
    rows : sequence of int
        Positions of the kept rows in the table, from 0.
    how : Reading
        Reading options.
    """
    said, places = list[str](), set[int]()
    for column in columns:
        unknown = column.level_codes(levels[column.name])[1] if column.name in levels else {}
        first: dict[str, int] = {}
        for row, word in unknown.items():
            first.setdefault(word, rows[row] + 1)
        if first:
            places.update(rows[row] for row in unknown)
            words = abbreviate_list([f"{word!r} in row {row}" for word, row in first.items()])
            words_of_model = abbreviate_list([level for level in levels[column.name] if level != ABSENT])
            empty = ""
            if ABSENT in levels[column.name]:
                empty = " (an empty cell counts as missing)"
            elif how.na is Missing.DROP:
                empty = " (a row with an empty cell gets no prediction)"
            said.append(
                f"column {column.name!r} holds {words}, but its values in the data of the model are "
                f"{words_of_model}{empty}"
            )
    more = [f"and {several(len(said) - MOST_NAMED, 'more column')}"] if len(said) > MOST_NAMED else []
    return said[:MOST_NAMED] + more, places


def _rows_of_faults(faults: Sequence[Fault]) -> set[int]:
    """Return the rows, from 0, with a refused cell of a feature."""
    return {row for fault in faults if not fault.is_target for row in fault.find_rows()}


def _advise_no_prediction(invalid: Collection[int], n_rows: int) -> str:
    """Return the option that gives invalid new rows no prediction; empty if they are most of the rows."""
    if not invalid or 2 * len(invalid) > n_rows:
        return ""
    return '; to predict the other rows, give invalid_rows="na"'


def _complete_rows(
    table: RawTable, how: Reading, targets: bool = True, invalid: Sequence[int] = ()
) -> tuple[BoolArray, RawTable]:
    """Return the mask of kept rows, which are not invalid, and their table; `targets` requires a target in each."""
    is_kept = np.ones(table.rows, dtype=bool)
    is_kept[list(invalid)] = False
    if targets and table.target is not None and how.na is not Missing.ERROR:
        is_kept &= ~table.target.empty
    if how.na is Missing.DROP:
        for feature in table.features:
            is_kept &= ~feature.empty
    if is_kept.all():
        return is_kept, table
    rows = np.flatnonzero(is_kept)
    aux = {name: column[rows] for name, column in table.aux.items()} | {KEPT: rows}
    target = None if table.target is None else table.target.select_rows(rows)
    return is_kept, RawTable([column.select_rows(rows) for column in table.features], target, aux)


def _fill_values(table: RawTable, how: Reading) -> dict[str, float]:
    """Return the fill values of all numeric columns, since new rows may have missing cells where these have none."""
    if not how.na.uses_imputation:
        return {}
    for column in table.features:
        if column.empty.all():
            raise BadInput(
                f"column {column.name!r} is empty in every row that has a target; give {drop_keyword(column.name)}"
            )
    return {column.name: fill_value(column.numbers, how.na) for column in table.features if not column.texts}


def _describe_dropped_rows(table: RawTable, is_kept: BoolArray, how: Reading) -> list[str]:
    """Return a note on dropped rows, with the missing values by column, and a column without which most rows remain."""
    n_dropped = int(np.sum(~is_kept))
    if not n_dropped:
        return []
    words = f"{n_dropped:,} of {len(is_kept):,} rows"
    if how.na is not Missing.DROP:
        return [f"{words} without a target dropped"]
    gaps = {column.name: column.empty for column in table.columns if column.has_empty}
    ranked = sorted(gaps, key=lambda name: -int(gaps[name].sum()))
    words += f" with missing values dropped ({abbreviate_list([f'{name!r}: {gaps[name].sum():,}' for name in ranked])})"
    n_gaps = np.sum([*gaps.values()], axis=0)
    alone = {column.name: int((column.empty & (n_gaps == 1)).sum()) for column in table.features}
    name = max(alone, key=lambda column: alone[column])
    if 2 * alone[name] > n_dropped > MANY_DROPPED * len(is_kept):
        words += f"; with --drop {shlex.quote(name)}, {alone[name] + int(is_kept.sum()):,} rows remain"
    return [words]


def describe_codes(column: RawColumn) -> str:
    """Return a note on usual missing-value codes in a column of text values, which may be text values too."""
    counts = {code: count for code, count in column.codes.items() if code.replace("/", "").isalpha()}
    if not (counts and column.texts and column.has_text_values):
        return ""
    codes = [f"{code!r} in {several(count, 'cell')}" for code, count in counts.items()]
    return (
        f"column {column.name!r}: {abbreviate_list(codes)} counted as missing; if such a code is a text value, give "
        "--no-keep-default-na (keep_default_na in Python)"
    )


def describe_absent_level(column: RawColumn) -> str:
    """Return a note on missing cells of a text column, if cells of numeric columns are imputed."""
    n_cells, level = int(column.empty.sum()), indicator_name(column.name)
    own = "is a separate level" if n_cells == 1 else "are a separate level"
    return f"{several(n_cells, 'missing value')} of {column.name!r} {own}, {level}"


def _describe_imputation(table: RawTable, how: Reading, means: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the numbers of imputed cells with their fill values and columns; empty if no cell is imputed."""
    counts = {column.name: int(column.empty.sum()) for column in table.features if column.name in means}
    return describe_imputed_cells(counts, str(how.na))


def _describe_cells(
    table: RawTable, how: Reading, means: Mapping[str, float], levels: Mapping[str, tuple[str, ...]]
) -> list[str]:
    """Return notes on imputed cells, durations, missing and similar text values, and the two values of the target."""
    notes = [f"{cells} {OVER_ALL_ROWS}, in {names}" for cells, names in _describe_imputation(table, how, means)]
    features = [column for column in table.features if column.name in levels]
    notes += [describe_absent_level(column) for column in features if column.has_empty]
    if how.encode is Encode.ONEHOT and table.features and not levels:
        notes.append("no column has text values; --categories (categories in Python) names columns of number codes")
    notes += [
        f"column {column.name!r}: durations such as {column.duration!r} are read as numbers of days"
        for column in table.columns
        if column.duration
    ]
    texts = (column for column in table.columns if column.name in levels)
    variants = ((column.name, column.describe_case_variants(levels[column.name])) for column in texts)
    notes += [f"column {name!r}: {said}" for name, said in variants if said]
    if table.target is not None and table.target.name in levels:
        smaller, larger = levels[table.target.name]
        notes.append(f"target {table.target.name!r}: {smaller!r} is the smaller value, {larger!r} the larger")
    return notes


def _build_dataset(table: RawTable, learnt: Applied) -> Dataset:
    """Return the data set of a table: one array of numbers, imputed, with text values encoded."""
    gaps = {feature.name: feature.empty for feature in table.features if feature.has_empty}
    levels = {
        name: (*words, ABSENT) if name in gaps and ABSENT not in words else words
        for name, words in learnt.levels.items()
    }
    columns = [column for feature in table.features for column in _feature_columns(feature, levels, learnt)]
    names, X = [name for name, _ in columns], table.X
    if len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise BadInput(
            f"encoding or imputation would add a second column with the name {twice!r}; rename the column of the data"
        )
    if X is None or levels or gaps:
        X = np.empty((table.rows, len(columns)))
        for k, (_, numbers) in enumerate(columns):
            X[:, k] = numbers
    holes = _mark_holes(X.shape, names, {name: gaps[name] for name in gaps.keys() - levels.keys()})
    learnt = replace(learnt, levels=levels)
    return Dataset(
        X, _target_numbers(table.target, levels, table.rows), tuple(names), table.target.name if table.target else "",
        table.aux, reading=learnt if learnt.is_told or learnt.notes else None, holes=holes,
    )  # fmt: skip


def _mark_holes(shape: tuple[int, ...], names: Sequence[str], gaps: Mapping[str, BoolArray]) -> BoolArray | None:
    """Return the mask of imputed cells; None if no cell is missing."""
    masks = np.zeros(shape if gaps else 0, dtype=bool)
    for name, empty in gaps.items():
        masks[:, names.index(name)] = empty
    return masks if gaps else None


def _target_numbers(target: RawColumn | None, levels: Mapping[str, Sequence[str]], n_rows: int) -> FloatArray:
    """Return the target as numbers: 0 for missing cells, the position in its levels for text values."""
    if target is None:
        return np.zeros(n_rows)
    is_text = target.name in levels
    y = target.level_codes(levels[target.name])[0].astype(float) if is_text else target.numbers.copy()
    y[target.empty] = 0.0
    return y


def _feature_columns(
    feature: RawColumn, levels: Mapping[str, Sequence[str]], learnt: Applied
) -> list[tuple[str, FloatArray]]:
    """Return the names and numbers of the features of a column: imputed, or ranks or 0/1 columns of text values."""
    name = feature.name
    if name not in levels:
        numbers = feature.numbers
        if feature.has_empty:
            numbers = np.where(feature.empty, learnt.means.get(name, np.nan), numbers)
        is_marked = name in learnt.marked
        return [(name, numbers)] + is_marked * [(indicator_name(name), feature.empty.astype(float))]
    words = levels[name]
    codes, _ = feature.level_codes([level for level in words if level != ABSENT])
    codes[codes < 0] = len(words) - 1  # the last level is that of missing cells, if there are any
    names = feature_names(name, words, learnt.how.column_encoding(name))
    if names == (name,):
        return [(name, codes.astype(float))]
    return [(level, (codes == len(words) - len(names) + k).astype(float)) for k, level in enumerate(names)]

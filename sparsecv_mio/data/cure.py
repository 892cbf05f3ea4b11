"""Columns as people have them, empty cells and words among the numbers, become features.

What is learnt on the way, the means that fill empty cells and the words of a column, is kept (`Applied`), so that new
rows are read alike. It is learnt from all rows, those held out by a fold among them, as the scales of the columns are:
no value of the target enters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.data.cells import Faults, is_missing, left_out
from sparsecv_mio.data.marks import BOUND, Marks, Way, check_marks, parse_number, what_else
from sparsecv_mio.data.reading import ABSENT, OPPOSITES, Applied, Reading, feature_names
from sparsecv_mio.data.select import Wanted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.words import Encode, Missing

MOST_LEVELS = 50


@dataclass(frozen=True, eq=False)
class RawColumn:
    """The cells of a column: its numbers, and what else it holds.

    Attributes
    ----------
    name : str
    numbers : (n,) array
        NaN where a cell is no number.
    empty : (n,) bool array
        Where nothing is, or a mark that says so.
    others : dict of int to str
        Text by row, where a cell is neither.
    marks : Marks
        What its text shows of how numbers are written.
    """

    name: str
    numbers: FloatArray
    empty: BoolArray
    others: dict[int, str]
    marks: Marks

    @classmethod
    def of(cls, name: str, cells: Sequence[Any], way: Way) -> RawColumn:
        """Look at the cells of a column: numbers, text, or what a frame holds; O(n).

        Parameters
        ----------
        name : str
        cells : sequence of n
        way : Way
            How numbers are written.
        """
        marks, (decimal, thousands) = Marks(way), way
        numbers, empty, others = np.full(len(cells), np.nan), np.zeros(len(cells), dtype=bool), dict[int, str]()
        for row, cell in enumerate(cells):
            if is_missing(cell) or repr(cell) in ("<NA>", "NaT"):
                empty[row] = True
            elif isinstance(cell, str):
                try:
                    numbers[row] = parse_number(cell, decimal, thousands)
                    if not marks.proof:
                        marks.number(cell)
                except ValueError:
                    others[row] = cell.strip()
                    marks.text(cell)
            elif isinstance(cell, Real | Decimal | np.bool_):
                numbers[row] = float(cell)
                empty[row] = bool(np.isnan(numbers[row]))
            else:
                others[row] = str(cell)
        return cls(name, numbers, empty, others, marks)

    @property
    def kind(self) -> str:
        """What the first text is that is no word, such as `22%`, and what to do with it; empty where all are words."""
        return next((said for said in map(self._kind_of, dict.fromkeys(self.others.values())) if said), "")

    @property
    def is_words(self) -> bool:
        """Whether words are what the column is made of: at least half of its cells."""
        words = len(self.others)
        if self.kind:
            words = sum(count for text, count in Counter(self.others.values()).items() if not self._kind_of(text))
        return 2 * words >= max(1, int(np.sum(~self.empty)))

    def _kind_of(self, text: str) -> str:
        """Say what a text is that is no word; `<18` is one where no cell is a number."""
        beside = len(self.others) + int(self.empty.sum()) < len(self.numbers)
        return what_else(text) if beside or not BOUND.fullmatch(text) else ""

    def levels(self) -> tuple[str, ...]:
        """Return the different words of the column: no before yes, else in alphabetical order."""
        found = sorted({*self.others.values(), *(f"{value:g}" for value in set(self.numbers[~self._gaps()].tolist()))})
        plain = sorted({word.lower() for word in found})
        return next((pair for pair in OPPOSITES if set(plain) <= set(pair)), tuple(found)) if found else ()

    def codes(self, levels: Sequence[str]) -> NDArray[np.int64]:
        """Return the place of every cell in the levels, -1 where it is empty; `BadInput` for a word that is none."""
        places = {word: k for k, word in enumerate(levels)}
        codes = np.full(len(self.numbers), -1, dtype=np.int64)
        for row in np.flatnonzero(~self.empty).tolist():
            word = self.others.get(row, f"{self.numbers[row]:g}")
            code = places.get(word, places.get(word.lower(), -1))
            if code < 0:
                known = ", ".join(levels[:8])
                raise BadInput(f"column {self.name!r} holds {word!r} in row {row + 1}, none of its words: {known}")
            codes[row] = code
        return codes

    def at(self, rows: NDArray[np.intp]) -> RawColumn:
        """Return the column on some rows, in rising order."""
        place = {row: k for k, row in enumerate(rows.tolist())} if self.others else {}
        others = {place[row]: word for row, word in self.others.items() if row in place}
        return RawColumn(self.name, self.numbers[rows], self.empty[rows], others, self.marks)

    def _gaps(self) -> BoolArray:
        gaps = self.empty.copy()
        gaps[list(self.others)] = True
        return gaps


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a table as they are: features, the target where there is one, others as arrays by name."""

    features: list[RawColumn]
    target: RawColumn | None
    aux: dict[str, NDArray[Any]]
    rows: int

    @property
    def marks(self) -> dict[str, Marks]:
        """By column, what its text shows of how numbers are written."""
        return {one.name: one.marks for one in (*self.features, *([self.target] if self.target else []))}


def raw_table(
    names: Iterable[str], goal: str, cells: Callable[[str], Sequence[Any]], aux: dict[str, NDArray[Any]], how: Reading
) -> RawTable:
    """Look at the columns of a table.

    Parameters
    ----------
    names : iterable of str
        Features.
    goal : str
        Name of the target, empty where there is none.
    cells : callable
        Returns the cells of a column.
    aux : dict of str to (n,) array
        Group, fold and weight columns.
    how : Reading
    """
    features = [RawColumn.of(name, cells(name), how.way) for name in names]
    target = RawColumn.of(goal, cells(goal), how.way) if goal else None
    first = target or (features[0] if features else None)
    return RawTable(features, target, aux, 0 if first is None else len(first.numbers))


class Made(NamedTuple):
    """What a data set is assembled of: features (n, p), target (n,), their names, other columns, what was learnt."""

    X: FloatArray
    y: FloatArray
    names: tuple[str, ...]
    target: str
    aux: Mapping[str, NDArray[Any]]
    reading: Applied | None


def cured(table: RawTable, how: Reading, wanted: Wanted) -> Made:
    """Make features of the columns of a table, as a reading says.

    Parameters
    ----------
    table : RawTable
    how : Reading
    wanted : Wanted
        Whether the target may hold two words, and whether it is known how numbers are written.

    Returns
    -------
    Made
        With what was learnt, in `reading`.

    Raises
    ------
    BadInput
        The message names every column with cells that the reading does not allow, or numbers that could be others.
    """
    _check(table, how, wanted)
    if not wanted.sure:
        check_marks(table.marks, how.sep)
    kept, table = _complete_rows(table, how)
    if table.rows == 0 and len(kept):
        raise BadInput('no row is left: every one has an empty cell; use na="mean", or drop the columns with most')
    means = _means(table, how)
    levels = {one.name: one.levels() for one in table.features if one.others}
    if table.target is not None and table.target.others:
        levels[table.target.name] = table.target.levels()
    notes = (*_row_notes(kept, how), *_cell_notes(table, means, levels))
    columns = tuple(one.name for one in table.features)
    return _assembled(table, Applied(how, columns, means, levels, int(np.sum(~kept)), notes))


def read_alike(table: RawTable, learnt: Applied) -> Made:
    """Make features of new rows by what was learnt from others.

    Parameters
    ----------
    table : RawTable
        Some of the columns; the target, where there is one, may have empty cells.
    learnt : Applied

    Raises
    ------
    BadInput
        For a word that was not there, an empty cell for which no mean was learnt, or numbers that could be others.
    """
    faults = Faults(table.target.name if table.target else "", marks=table.marks, settled=True)
    for one in table.features:
        words = one.name in learnt.levels
        if one.name not in learnt.means and not (words and ABSENT in learnt.levels[one.name]):
            for row in np.flatnonzero(one.empty).tolist():
                faults.add(one.name, row + 1, None)
        for row, word in list(one.others.items())[: 0 if words else 1]:
            faults.add(one.name, row + 1, word)
    faults.raise_if_any()
    check_marks(table.marks)
    if table.target is not None and (table.target.empty.any() or (table.target.others and not learnt.levels)):
        table = replace(table, target=None)
    return _assembled(table, replace(learnt, columns=tuple(one.name for one in table.features)))


def _check(table: RawTable, how: Reading, wanted: Wanted) -> None:
    """Raise `BadInput` that names every column with cells that are not allowed."""
    goal = table.target.name if table.target else ""
    faults = Faults(goal, rows=table.rows, marks=table.marks, settled=wanted.settled)
    columns = [*table.features, *([table.target] if table.target else [])]
    for one in columns:
        if how.na is Missing.ERROR:
            for row in np.flatnonzero(one.empty).tolist():
                faults.add(one.name, row + 1, None)
        for row in np.flatnonzero(np.isinf(one.numbers)).tolist():
            faults.add(one.name, row + 1, float(one.numbers[row]))
        allowed = how.encode is not Encode.ERROR or (one is table.target and wanted.two_words)
        if one.others and not (allowed and one.is_words):
            for row, word in one.others.items():
                faults.add(one.name, row + 1, word)
    if faults.found:
        faults.subjects = name_of_subjects(table)
    faults.raise_if_any()
    for one in columns:
        _check_column(one, how, one is table.target)


def name_of_subjects(table: RawTable) -> str:
    """Return the name of the feature that names subjects of several rows each; empty without one."""
    from sparsecv_mio.data.proposal import subjects_of

    found = subjects_of(table.features) if table.target is not None else None
    return "" if found is None else found.column


def _check_column(one: RawColumn, how: Reading, goal: bool) -> None:
    if one.empty.all() and len(one.empty) and not goal:
        raise BadInput(f"column {one.name!r} is empty in every row: give {left_out(one.name)}")
    if not one.others:
        return
    found = one.levels()
    if goal and len(found) != 2:
        words = f"{len(found)} word{'s' * (len(found) > 1)}"
        raise BadInput(f"target {one.name!r} holds {words}: give it numbers, or two words")
    if len(found) > MOST_LEVELS:
        words = f"holds {len(found):,} different words, more than {MOST_LEVELS}"
        raise BadInput(f"column {one.name!r} {words}: give {left_out(one.name)}, or join some of them")
    if how.encode is Encode.ORDINAL and how.na is Missing.MEAN and one.empty.any():
        raise BadInput(f'column {one.name!r} has words and empty cells, and words have no mean: give na="drop"')


def _complete_rows(table: RawTable, how: Reading) -> tuple[BoolArray, RawTable]:
    """Return which rows are kept, and the table of these."""
    kept = np.ones(table.rows, dtype=bool)
    if table.target is not None and how.na is not Missing.ERROR:
        kept &= ~table.target.empty
    if how.na is Missing.DROP:
        for one in table.features:
            kept &= ~one.empty
    if kept.all():
        return kept, table
    rows = np.flatnonzero(kept)
    aux = {name: column[rows] for name, column in table.aux.items()}
    target = None if table.target is None else table.target.at(rows)
    return kept, RawTable([one.at(rows) for one in table.features], target, aux, len(rows))


def _means(table: RawTable, how: Reading) -> dict[str, float]:
    """Return the mean of every column of numbers: new rows may have empty cells where these have none."""
    if how.na is not Missing.MEAN:
        return {}
    for one in table.features:
        if one.empty.all():
            raise BadInput(f"column {one.name!r} is empty in every row that has a target: give {left_out(one.name)}")
    return {one.name: float(np.nanmean(one.numbers)) for one in table.features if not one.others}


def _row_notes(kept: BoolArray, how: Reading) -> list[str]:
    lost = int(np.sum(~kept))
    if not lost:
        return []
    why = "with empty cells" if how.na is Missing.DROP else "without a target"
    return [f"{lost:,} of {len(kept):,} rows {why} left out"]


def _cell_notes(
    table: RawTable, means: Mapping[str, float], levels: Mapping[str, tuple[str, ...]]
) -> list[str]:
    notes = []
    filled_in = [one for one in table.features if one.name in means and one.empty.any()]
    if filled_in:
        cells = sum(int(one.empty.sum()) for one in filled_in)
        shown = ", ".join(repr(one.name) for one in filled_in[:8]) + (", ..." if len(filled_in) > 8 else "")
        filled = f"{cells:,} empty cell{'s' if cells > 1 else ''} filled with the mean of their column over all rows"
        notes.append(f"{filled}, held-out ones included, in {shown}")
    for name, words in levels.items():
        if table.target is not None and name == table.target.name:
            notes.append(f"target {name!r}: {words[0]!r} is the smaller value, {words[1]!r} the larger")
    return notes


def _assembled(table: RawTable, learnt: Applied) -> Made:
    """Put the columns into one array: numbers, filled where they were empty, and words encoded."""
    made: list[tuple[str, FloatArray]] = []
    levels = dict(learnt.levels)
    for one in table.features:
        if one.name not in levels:
            fill = learnt.means.get(one.name, np.nan)
            made.append((one.name, np.where(one.empty, fill, one.numbers)))
            continue
        if one.empty.any() and ABSENT not in levels[one.name]:
            levels[one.name] = (*levels[one.name], ABSENT)
        made += _encoded(one, levels[one.name], learnt.how.encode)
    X = np.empty((table.rows, len(made)))
    for k, (_, column) in enumerate(made):
        X[:, k] = column
    y = np.zeros(table.rows)
    goal = table.target
    if goal is not None:
        y = goal.codes(levels[goal.name]).astype(float) if goal.name in levels else goal.numbers.copy()
    names = tuple(name for name, _ in made)
    taken = set(names)
    if len(taken) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"a column of words would be called {twice!r}, as another column is: rename one of them")
    return Made(X, y, names, "" if goal is None else goal.name, table.aux, replace(learnt, levels=levels))


def _encoded(one: RawColumn, levels: Sequence[str], encode: Encode) -> list[tuple[str, FloatArray]]:
    """Return the columns of numbers that stand for a column of words: one of their places, or zeros and ones."""
    codes = one.codes([level for level in levels if level != ABSENT])
    codes[codes < 0] = len(levels) - 1  # the last one stands for empty cells, where there are any
    names = feature_names(one.name, levels, encode)
    if names == (one.name,):
        return [(one.name, codes.astype(float))]
    first = len(levels) - len(names)
    return [(name, (codes == first + k).astype(float)) for k, name in enumerate(names)]

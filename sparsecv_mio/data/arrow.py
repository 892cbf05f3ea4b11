"""Text tables: Arrow reads them, block by block into one preallocated array where all are numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.cure import RawColumn, RawTable, cured, name_of_subjects, raw_table, read_alike
from sparsecv_mio.data.dataset import Dataset, assemble
from sparsecv_mio.data.delimited import TextTable, blame, first_cells, read_header
from sparsecv_mio.data.marks import Marks, check_marks
from sparsecv_mio.data.opened import PACKED, opened
from sparsecv_mio.data.reading import STRICT, Applied, Reading
from sparsecv_mio.data.select import Selection, Wanted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_numbers

BLOCK_BYTES = 8 << 20
BYTES_A_NUMBER = 32  # a line must fit into a block
FIRST_ROWS = 4096  # that mostly show already how numbers are written


class Columns:
    """The chosen columns of a table, filled block by block.

    Parameters
    ----------
    chosen : Selection
    rows : int
        At least as many as the table has.
    """

    def __init__(self, chosen: Selection, rows: int) -> None:
        self.names, self.target = chosen.names, chosen.goal
        self.X, self.y = np.empty((rows, len(self.names))), np.zeros(rows)
        self.place = {self.target: self.y} | {name: self.X[:, k] for k, name in enumerate(self.names)}
        self.aux: dict[str, list[NDArray[Any]]] = {chosen.header[j]: [] for j in chosen.aux}

    def put(self, block: Any, start: int) -> None:
        """Copy the columns of an Arrow table, whose first row is row `start`; `BadInput` names an empty cell."""
        for name in block.column_names:
            if name in self.aux:
                self.aux[name].append(ids(block[name]))
            else:
                self.place[name][start : start + block.num_rows] = _numbers(block[name], name, start)

    def dataset(self, rows: int) -> Dataset:
        """Return the data set of the first `rows` rows; `BadInput` names a cell that is not finite."""
        aux = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in self.aux.items()}
        return assemble(self.X[:rows], self.y[:rows], self.names, self.target, aux)


def read_delimited(
    path: Path, wanted: Wanted, kind: str, how: Reading = STRICT, learnt: Applied | None = None
) -> Dataset:
    """Read a text table.

    Parameters
    ----------
    path : Path
    wanted : Wanted
    kind : str
        `.csv`, `.tsv` or `.txt`, of which the usual separator follows.
    how : Reading
    learnt : Applied, optional
        How other rows were read; these are read alike.

    Raises
    ------
    BadInput
        The message names line, column and row: where Arrow stumbles, a plain parser finds the cells to blame.
    """
    import pyarrow as pa

    stream = _stream(path, wanted, kind, how)
    table, chosen = stream.table, stream.chosen
    lenient = learnt is not None or how.cures or (wanted.two_words and _holds_words(table, chosen))

    def named() -> str:
        try:
            return name_of_subjects(stream.raw())
        except (pa.ArrowException, BadInput):
            return ""

    try:
        if learnt is not None:
            return assemble(*read_alike(stream.raw(), learnt))
        if lenient:
            return assemble(*cured(stream.raw(), how, wanted))
        data = stream.numbers()
    except pa.ArrowException as error:
        blame(table, chosen, cells=not lenient, settled=wanted.settled, subjects=named)
        raise BadInput(f"file {str(path)!r} cannot be read as a table: {str(error).splitlines()[0]}") from error
    except BadInput:
        if not lenient:
            blame(table, chosen, settled=wanted.settled, subjects=named)
        raise
    if not wanted.sure:  # new rows may be written in another way
        check_marks(stream.marks(data), how.sep)
    return data


def raw_delimited(path: Path, wanted: Wanted, kind: str, how: Reading) -> RawTable:
    """Read a text table, whatever its cells hold.

    Parameters
    ----------
    path : Path
    wanted : Wanted
    kind : str
        As for :func:`read_delimited`.
    how : Reading

    Raises
    ------
    BadInput
        For a line that is too short or long, or no table at all.
    """
    import pyarrow as pa

    stream = _stream(path, wanted, kind, how)
    try:
        return stream.raw()
    except pa.ArrowException as error:
        blame(stream.table, stream.chosen, cells=False)
        raise BadInput(f"file {str(path)!r} cannot be read as a table: {str(error).splitlines()[0]}") from error


def _stream(path: Path, wanted: Wanted, kind: str, how: Reading) -> _Stream:
    table = TextTable.of(path, kind, how)
    header, header_lines = read_header(table)
    return _Stream(table, wanted.within(header), header_lines, *_most_rows(table))


def _holds_words(table: TextTable, chosen: Selection) -> bool:
    """Whether the target of the first row is a word."""
    cells = first_cells(table)
    if chosen.target is None or len(cells) <= chosen.target:
        return False
    return bool(RawColumn.of(chosen.goal, [cells[chosen.target]], table.how.way).others)


@dataclass(frozen=True)
class _Stream:
    """A text table that Arrow reads block by block."""

    table: TextTable
    chosen: Selection
    header_lines: int
    most: int
    quoted: bool
    marked: bool

    def numbers(self) -> Dataset:
        """Return the data set of a table of numbers."""
        import pyarrow as pa

        check_numbers(self.table.path, self.most, len(self.chosen.numeric))
        columns = Columns(self.chosen, self.most)
        types = {self.chosen.header[j]: pa.float64() for j in self.chosen.numeric}
        filled = 0
        for block in self._blocks(types | dict.fromkeys(columns.aux, pa.string())):
            columns.put(block, filled)
            filled += block.num_rows
        return columns.dataset(filled)

    def marks(self, data: Dataset) -> dict[str, Marks]:
        """Return what the text of columns shows whose numbers could be others; the text of these alone is looked at."""
        import pyarrow as pa

        way = self.table.how.way
        found = {name: Marks(way) for name in (*data.names, data.target)} if self.marked and not way.thousands else {}
        left = set[str]()
        for name, column in zip(found, (*data.X.T, data.y), strict=False):
            found[name].proof = has_decimals(column[:FIRST_ROWS]) or has_decimals(column)
            if found[name].proof and way.decimal == ".":
                return {}
            largest = float(np.abs(column).max())
            if not found[name].proof and 1.0 < largest < (1000.0 if way.decimal == "." else np.inf):
                left.add(name)
        for block in self._blocks(dict.fromkeys(left, pa.string())) if left else ():
            for name in sorted(left):
                for text in block[name].unique().to_pylist():
                    found[name].number(text)
            settled = {name for name in left if found[name].proof}
            left -= settled
            if not left or (settled and way.decimal == "."):
                break
        return found

    def raw(self) -> RawTable:
        """Return the columns of a table of anything."""
        import pyarrow as pa

        names = [self.chosen.header[j] for j in (*self.chosen.numeric, *self.chosen.aux)]
        blocks = list(self._blocks(dict.fromkeys(names, pa.string())))
        if not blocks:
            raise BadInput(f"file {str(self.table.path)!r} has a header but no rows: give one line per row")
        whole = pa.concat_tables(blocks)
        aux = {self.chosen.header[j]: ids(whole[self.chosen.header[j]]) for j in self.chosen.aux}
        how, cells = self.table.how, lambda name: whole[name].to_pylist()
        return raw_table(self.chosen.names, self.chosen.goal, cells, aux, how)

    def _blocks(self, types: dict[str, Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        header, how = self.chosen.header, self.table.how
        plain = self.table.path.suffix.lower() not in PACKED and not how.rewrites
        with ExitStack() as stack:
            source = self.table.path if plain else stack.enter_context(opened(self.table.path, how))
            stream = stack.enter_context(csv.open_csv(
                source,
                csv.ReadOptions(
                    column_names=list(header), skip_rows=self.header_lines,
                    block_size=max(BLOCK_BYTES, BYTES_A_NUMBER * len(header)),
                ),
                csv.ParseOptions(delimiter=self.table.delimiter, newlines_in_values=self.quoted),
                csv.ConvertOptions(
                    column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False,
                    decimal_point=how.decimal,
                ),
            ))  # fmt: skip
            for batch in stream:
                yield pa.Table.from_batches([batch])


def has_decimals(column: FloatArray) -> bool:
    """Whether a number shows that the decimal mark before its digits sets off no thousands: these are not three.

    Parameters
    ----------
    column : (n,) array
    """
    part = np.abs(column[column != np.rint(column)])
    return bool(np.any((part < 1.0) | (part >= 1000.0) | (np.abs(1000.0 * part - np.rint(1000.0 * part)) > 1e-6)))


def _most_rows(table: TextTable) -> tuple[int, bool, bool]:
    """Return a number that the rows of a text file do not exceed, and whether it has quotes and decimal marks."""
    feeds, returns, quoted, marked = 0, 0, False, False
    mark = table.how.decimal.encode()
    with opened(table.path, table.how) as handle:
        while block := handle.read(BLOCK_BYTES):
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            quoted = quoted or b'"' in block
            marked = marked or mark in block
    return max(feeds, returns) + 1, quoted, marked


def is_numeric(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers."""
    import pyarrow as pa

    test = pa.types
    return bool(test.is_integer(kind) or test.is_floating(kind) or test.is_boolean(kind) or test.is_decimal(kind))


def _numbers(column: Any, name: str, start: int) -> FloatArray:
    import pyarrow as pa

    if column.null_count:
        empty = column.is_null().to_numpy()
        raise bad_cell(name, start + int(np.argmax(empty)) + 1, None)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy()


def ids(column: Any) -> NDArray[Any]:
    """Return a column of an Arrow table that names groups or folds, as an array."""
    import pyarrow as pa

    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.array(column.to_pylist(), dtype=object)
    return column.to_numpy()

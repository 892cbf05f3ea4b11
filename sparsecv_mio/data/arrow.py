"""CSV, TSV and Parquet: Arrow reads them block by block into one preallocated array."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.dataset import Dataset, assemble
from sparsecv_mio.data.delimited import blame, read_header
from sparsecv_mio.data.select import Selection, Wanted
from sparsecv_mio.errors import BadInput

BLOCK_BYTES = 8 << 20
BYTES_A_NUMBER = 32  # a line must fit into a block
BATCH_NUMBERS = 1 << 22


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
                self.aux[name].append(_ids(block[name]))
            else:
                self.place[name][start : start + block.num_rows] = _numbers(block[name], name, start)

    def dataset(self, rows: int) -> Dataset:
        """Return the data set of the first `rows` rows; `BadInput` names a cell that is not finite."""
        aux = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in self.aux.items()}
        return assemble(self.X[:rows], self.y[:rows], self.names, self.target, aux)


def read_delimited(path: Path, wanted: Wanted, delimiter: str) -> Dataset:
    """Read a UTF-8 text table with one header line.

    Parameters
    ----------
    path : Path
    wanted : Wanted
    delimiter : str

    Raises
    ------
    BadInput
        The message names line, column and row: where Arrow stumbles, a plain parser finds the cell to blame.
    """
    import pyarrow as pa

    header, header_lines = read_header(path, delimiter)
    chosen = wanted.within(header)
    most, quoted = _most_rows(path)
    columns = Columns(chosen, most)
    try:
        return columns.dataset(_stream(path, delimiter, chosen, header_lines, quoted, columns))
    except (pa.ArrowException, BadInput) as error:
        blame(path, delimiter, chosen)
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"file {str(path)!r} cannot be read as a table: {str(error).splitlines()[0]}") from error


def _stream(
    path: Path, delimiter: str, chosen: Selection, header_lines: int, quoted: bool, columns: Columns
) -> int:
    """Fill the columns from a text table; the number of rows."""
    import pyarrow as pa
    from pyarrow import csv

    types = dict.fromkeys((chosen.header[j] for j in chosen.numeric), pa.float64())
    types |= dict.fromkeys(columns.aux, pa.string())
    block_bytes = max(BLOCK_BYTES, BYTES_A_NUMBER * len(chosen.header))
    filled = 0
    with csv.open_csv(
        path,
        csv.ReadOptions(column_names=list(chosen.header), skip_rows=header_lines, block_size=block_bytes),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=quoted),
        csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
        ),
    ) as stream:
        for batch in stream:
            columns.put(pa.Table.from_batches([batch]), filled)
            filled += batch.num_rows
    return filled


def _most_rows(path: Path) -> tuple[int, bool]:
    """Return a number that the rows of a text file do not exceed, and whether it has quotes."""
    feeds, returns, quoted = 0, 0, False
    with path.open("rb") as handle:
        while block := handle.read(BLOCK_BYTES):
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            quoted = quoted or b'"' in block
    return max(feeds, returns) + 1, quoted


def read_parquet(path: Path, wanted: Wanted) -> Dataset:
    """Read a few columns of one row group at a time.

    Peak memory is X plus one column of the longest row group, or 32 MB where that is more.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            # pandas writes its row index as such a column; it numbers the rows and is no measurement.
            header = [name for name in file.schema_arrow.names if not re.fullmatch(r"__index_level_\d+__", name)]
            chosen = wanted.within(header)
            for j in chosen.numeric:
                _check_type(header[j], file.schema_arrow.field(header[j]).type)
            columns, start = Columns(chosen, file.metadata.num_rows), 0
            names = [header[j] for j in (*chosen.numeric, *chosen.aux)]
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                step = max(1, BATCH_NUMBERS // max(1, rows))
                for first in range(0, len(names), step):
                    block = file.read_row_group(group, columns=names[first : first + step], use_threads=False)
                    columns.put(block, start)
                start += rows
            return columns.dataset(start)
    except pa.ArrowException as error:
        raise BadInput(f"file {str(path)!r} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _check_type(name: str, kind: Any) -> None:
    import pyarrow as pa

    test = pa.types
    if not (test.is_integer(kind) or test.is_floating(kind) or test.is_boolean(kind) or test.is_decimal(kind)):
        raise BadInput(f"column {name!r} has the type {kind}, not numbers: encode it as numbers or drop the column")


def _numbers(column: Any, name: str, start: int) -> FloatArray:
    import pyarrow as pa

    if column.null_count:
        empty = column.is_null().to_numpy()
        raise bad_cell(name, start + int(np.argmax(empty)) + 1, None)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy()


def _ids(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.array(column.to_pylist(), dtype=object)
    return column.to_numpy()

"""CSV and TSV files: Arrow reads them fast; where it stumbles, a plain parser finds the cell to blame."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.dataset import Dataset, FloatArray, assemble
from sparsecv_mio.data.select import Selection, Wanted
from sparsecv_mio.errors import BadInput

Columns = tuple[FloatArray, FloatArray, dict[str, NDArray[Any]]]  # X, y, auxiliary columns

BLOCK_BYTES = 8 << 20
LONGEST_LINE = 1 << 28


def read_delimited(path: Path, wanted: Wanted, delimiter: str) -> Dataset:
    """Read a UTF-8 text table with one header line; `BadInput` names line, column and row."""
    header, header_lines = _read_header(path, delimiter)
    chosen = wanted.within(header)
    read = _read_arrow(path, delimiter, chosen, header_lines)
    if read is None:
        read = _read_plain(path, delimiter, chosen)
    X, y, aux = read
    if len(y) == 0:
        raise BadInput(f"file {str(path)!r} has a header but no rows: give one line per row")
    return assemble(X, y, chosen.names, chosen.header[chosen.target], aux)


@contextmanager
def _rows(path: Path, delimiter: str) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Open a table as (line number of the row's end, cells), blank lines left out."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(_lines(handle, path), delimiter=delimiter)
            yield ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise BadInput(f"file {str(path)!r} is not UTF-8 text: save it as UTF-8") from error
    except csv.Error as error:
        raise BadInput(f"file {str(path)!r} is not a readable table: {error}") from error


def _lines(handle: TextIO, path: Path) -> Iterator[str]:
    """Return the lines of a file; one that never ends is no table, and must not fill the memory."""
    while line := handle.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(f"file {str(path)!r} has a line of more than {LONGEST_LINE:,} characters: it is no table")
        yield line


def _read_header(path: Path, delimiter: str) -> tuple[list[str], int]:
    with _rows(path, delimiter) as rows:
        line, cells = next(rows, (0, []))
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise BadInput(f"file {str(path)!r} is empty: give one header line and one line per row")
    if len(names) == 1:
        for other, word in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
            if other != delimiter and other in names[0]:
                suffix = "commas (.csv) or tabs (.tsv)"
                raise BadInput(f"file {str(path)!r} seems to be separated by {word}: save it with {suffix}")
    if all(_is_number(name) for name in names) and not all(name.isdigit() for name in names):
        raise BadInput(f"file {str(path)!r} has numbers where its column names belong: add a header line")
    return names, line


def _is_number(text: str) -> bool:
    try:
        parse_number(text)
    except ValueError:
        return False
    return True


def parse_number(text: str) -> float:
    """Read a decimal number; ValueError for text, also for the spellings that only Python knows (1_000)."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def _read_arrow(path: Path, delimiter: str, chosen: Selection, header_lines: int) -> Columns | None:
    """Stream the file into a preallocated array; None where anything at all is wrong."""
    import pyarrow as pa
    from pyarrow import csv as pacsv

    names, target = chosen.names, chosen.header[chosen.target]
    extra = [chosen.header[j] for j in chosen.aux]
    types: dict[str, Any] = {name: pa.float64() for name in (*names, target)}
    types.update({name: pa.string() for name in extra})
    size = _most_rows(path)
    X, y = np.empty((size, len(names))), np.empty(size)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in extra}
    filled = 0
    try:
        with pacsv.open_csv(
            path,
            read_options=pacsv.ReadOptions(
                column_names=list(chosen.header), skip_rows=header_lines, block_size=BLOCK_BYTES
            ),
            parse_options=pacsv.ParseOptions(delimiter=delimiter),
            convert_options=pacsv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
            ),
        ) as stream:
            for batch in stream:
                stop = filled + batch.num_rows
                for k in range(len(names)):
                    X[filled:stop, k] = batch.column(k).to_numpy(zero_copy_only=False)
                y[filled:stop] = batch.column(len(names)).to_numpy(zero_copy_only=False)
                for k, name in enumerate(extra):
                    parts[name].append(batch.column(len(names) + 1 + k).to_numpy(zero_copy_only=False))
                if not (np.isfinite(X[filled:stop]).all() and np.isfinite(y[filled:stop]).all()):
                    return None
                filled = stop
    except pa.ArrowException:
        return None
    return X[:filled], y[:filled], {name: np.concatenate([np.empty(0, object), *parts[name]]) for name in extra}


def _most_rows(path: Path) -> int:
    feeds = returns = 0
    with path.open("rb") as handle:
        while block := handle.read(BLOCK_BYTES):
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
    return max(feeds, returns) + 1


def _read_plain(path: Path, delimiter: str, chosen: Selection) -> Columns:
    """Read cell by cell in pure Python; raises at the first bad one."""
    width, numeric = len(chosen.header), chosen.numeric
    values = array("d")
    extra: dict[str, list[str]] = {chosen.header[j]: [] for j in chosen.aux}
    count = 0
    with _rows(path, delimiter) as rows:
        next(rows, None)
        for line, cells in rows:
            count += 1
            if len(cells) != width:
                raise BadInput(
                    f"file {str(path)!r} has {len(cells)} cells in line {line} but its header names {width} columns: "
                    "make every line as long as the header"
                )
            for j in numeric:
                values.append(_cell(cells[j], chosen.header[j], count, line))
            for j in chosen.aux:
                extra[chosen.header[j]].append(cells[j])
    table = np.frombuffer(values, dtype=np.float64).reshape(count, len(numeric)) if count else np.empty((0, 1))
    aux = {name: np.array(column, dtype=object) for name, column in extra.items()}
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), aux


def _cell(text: str, column: str, row: int, line: int) -> float:
    try:
        value = parse_number(text)
    except ValueError:
        raise bad_cell(column, row, text, line) from None
    if not np.isfinite(value):
        raise bad_cell(column, row, value, line)
    return value

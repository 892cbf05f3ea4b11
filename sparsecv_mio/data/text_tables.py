"""Reading of text tables in blocks by the package Arrow; a simple parser locates the lines that Arrow cannot read."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import shutil
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import CHUNK_ELEMENTS, FloatArray
from sparsecv_mio.data import cure, reading_options
from sparsecv_mio.data.dataset import Dataset, assemble
from sparsecv_mio.digits import MOST_NAMED, several
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_numbers, check_unpacked_size

LONGEST_LINE = 1 << 28
TEXT = (".csv", ".tsv", ".txt", ".dat", ".data")
PACKED = (".gz", ".zip")
BLANKS = re.compile(r'"(?:[^"]|"")*"|[ \t]+')


def format_suffix(path: Path) -> str:
    """Return the suffix that gives the format of a file; for a compressed file, that of its content.

    Raises
    ------
    BadInput
        If a ZIP archive does not contain exactly one file.

    Examples
    --------
    >>> format_suffix(Path("a.CSV")), format_suffix(Path("a.csv.gz"))
    ('.csv', '.csv')
    """
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return Path(_member(path)).suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _member(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as store:
            inside = [member.filename for member in store.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise BadInput(f"file {str(path)!r} is not a ZIP archive: {error}") from error
    files = [name for name in inside if not name.startswith("__MACOSX/")]
    if len(files) != 1:
        raise BadInput(f"file {str(path)!r} holds {len(files)} files: pack only the table")
    return files[0]


def _unpack(path: Path) -> Iterator[bytes]:
    """Yield the content of a file compressed by gzip or ZIP, as long as it fits into memory."""
    count = 0
    try:
        with ExitStack() as stack:
            if path.suffix.lower() == ".zip":
                store = stack.enter_context(zipfile.ZipFile(path))
                handle: Any = stack.enter_context(store.open(_member(path)))
            else:
                handle = stack.enter_context(gzip.open(path, "rb"))
            while piece := handle.read(CHUNK_ELEMENTS):
                count += len(piece)
                check_unpacked_size(path, count)
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"file {str(path)!r} cannot be unpacked: {error}") from error


def _rewritten(handle: IO[bytes], how: reading_options.Reading, path: Path) -> Iterator[bytes]:
    """Yield the lines of a file as UTF-8 text, without skipped lines, and with tabs for blanks that separate cells."""
    encoding = "utf-8-sig" if how.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else how.encoding
    try:
        lines = _lines_of_text(io.TextIOWrapper(handle, encoding=encoding, newline=""), path)
        for number, line in enumerate(lines, start=1):
            end = line[len(line.rstrip("\r\n")) :]
            is_comment = how.comment is not None and line.lstrip().startswith(how.comment)
            if is_comment or any(number in numbers for numbers in how.skipped_lines):
                line = end  # an empty line keeps the numbers of the other lines
            elif how.sep == " ":
                line = BLANKS.sub(lambda found: found[0] if found[0][0] == '"' else "\t", line.strip()) + end
            yield line.encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        raise BadInput(f"file {str(path)!r} is not text in {how.encoding}: try another encoding") from error


MARKS: dict[str, tuple[str, str]] = {  # other separators: in words, and as an option
    ";": ("semicolons", "semicolon"),
    "\t": ("tabs", "tab"),
    "|": ("bars", "pipe"),
    ",": ("commas", "comma"),
    " ": ("blanks", "space"),
}


@dataclass(frozen=True)
class TextTable:
    """A text table: its file, the separator of its cells, and the reading options.

    `text` is a file of plain UTF-8 text with the same lines: a temporary one, which is deleted with the table, if the
    file must be unpacked or rewritten.
    """

    path: Path
    delimiter: str
    how: reading_options.Reading
    text: Path

    @classmethod
    def from_path(cls, path: Path, kind: str, how: reading_options.Reading = reading_options.STRICT) -> TextTable:
        """Return the text table of a file.

        Parameters
        ----------
        kind : str
            Format such as `.csv`, which determines the default separator.

        Raises
        ------
        BadInput
            If the file cannot be unpacked, is not text in the encoding of the options, has an endless line, or does not
            fit into memory.
        """
        delimiter = "\t" if how.sep == " " else how.sep or ("," if kind == ".csv" else "\t")
        is_packed = path.suffix.lower() in PACKED
        if not is_packed and not how.needs_rewriting:
            return cls(path, delimiter, how, path)
        folder = Path(mkdtemp(prefix="sparsecv-"))
        table, unpacked = cls(path, delimiter, how, folder / "text"), path
        weakref.finalize(table, shutil.rmtree, folder, ignore_errors=True)
        if is_packed:
            unpacked = folder / "unpacked" if how.needs_rewriting else table.text
            with unpacked.open("wb") as out:
                out.writelines(_unpack(path))
        if how.needs_rewriting:
            with unpacked.open("rb") as handle, table.text.open("wb") as out:
                out.writelines(_rewritten(handle, how, path))
        return table

    def with_separator(self, mark: str) -> TextTable:
        """Return the table with another separator; a decimal comma becomes a point if the comma separates cells."""
        if mark == self.delimiter:
            return self
        decimal = "." if mark == self.how.decimal else self.how.decimal
        return TextTable.from_path(self.path, ".csv", replace(self.how, sep=mark, decimal=decimal))


def read_header(table: TextTable) -> tuple[list[str], int]:
    """Return the column names and the number of header lines; raise `BadInput` if there is no header."""
    path, how = table.path, table.how
    with _open_rows(table) as rows:
        line, cells = next(rows, (0, []))
        _, second = next(rows, (0, cells))
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise BadInput(f"file {str(path)!r} is empty: give one header line and one line per row")
    if how.comment is None and names[0][0:1] in ("#", "%"):
        mark = names[0][0]
        raise BadInput(f'file {str(path)!r} begins with {mark!r}: give comment="{mark}" to skip such lines')
    if len(names) == 1 or len(second) != len(names):
        _check_first_lines(table, line)
    _check_separator(names, table)
    if not how.header:
        return [f"x{j}" for j in range(len(names))], 0
    if all(reading_options.is_number(name, how.way) for name in names) and not all(name.isdigit() for name in names):
        raise BadInput(
            f"file {str(path)!r} has numbers where its column names belong: add a header line, or give header=False"
            + (f", or skip other lines than {how.skip_lines}" if how.skip_lines else "")
        )
    return names, line


def _check_separator(names: list[str], table: TextTable) -> None:
    """Raise `BadInput` if a header of one cell contains another separator."""
    for separator in MARKS:
        if len(names) == 1 and separator != table.delimiter and separator in names[0]:
            raise _make_separator_error(separator, table)


def _check_first_lines(table: TextTable, first_line: int) -> None:
    """Raise `BadInput` for lines before the column names, with the option that skips them.

    Parameters
    ----------
    table : TextTable
        Table whose first line has only one cell, or another number of cells than the next line.
    first_line : int
        Number of its first line.
    """
    advice = list[str]()
    for mark in dict.fromkeys((table.delimiter, *MARKS)):
        other = table.with_separator(mark)
        with _open_rows(other) as rows:
            lines = list(islice(rows, FIRST_ROWS))
        shown = mark.join(lines[0][1])
        widths = [len(cells) for _, cells in lines]
        (width, count), *_ = Counter(widths[1:]).most_common(1) or [(1, 1)]
        place = widths.index(width) if width > 1 else 0  # position of the column names among the lines
        names = [name.strip() for name in lines[place][1]]
        are_names = len(names) == width and _are_names(names)
        if shown.lower() == f"sep={mark}":
            description, last_line = f"{shown!r}, a line for Excel", first_line
        elif widths[0] == width > 1:
            return
        elif place and are_names and 2 * count >= len(lines) - place:
            description, last_line = f"{shown[:30]!r} before the names of its columns", lines[place][0] - 1
        else:
            continue
        skipped = table.how.skipping(range(first_line, last_line + 1))
        option = "" if other is table else f' and sep="{MARKS[mark][1]}"'
        option += _number_format(other, place + 1, table.how.way)
        advice.append(f'file {str(table.path)!r} begins with {description}: give skip_lines="{skipped}"{option}')
    if advice:
        raise BadInput(advice[0])


def _make_separator_error(mark: str, table: TextTable) -> BadInput:
    """Return the error that names the separator of the cells and, if necessary, the number format."""
    word, option = MARKS[mark]
    numbers = _number_format(table.with_separator(mark), 1, table.how.way)
    return BadInput(f'file {str(table.path)!r} seems to be separated by {word}: give sep="{option}"{numbers}')


def _number_format(table: TextTable, first: int, now: reading_options.Way) -> str:
    """Return the keywords of the number format of a file, after " and ", if it differs from the present one."""
    way, columns = table.how.way, dict[int, list[str]]()
    with _open_rows(table) as rows:
        for _, row in islice(rows, first, FIRST_ROWS):
            for j, text in enumerate(row):
                if not reading_options.is_number(text, way):
                    columns.setdefault(j, []).append(text)
    texts = [text for column in columns.values() if reading_options.possible_formats(column, way) for text in column]
    ways = reading_options.possible_formats(texts, way)
    is_clear = len(ways) == 1 and ways[0].decimal != table.delimiter
    keywords = (ways[0] if is_clear else way).changed_keywords(now)
    return f" and {keywords}" if keywords else ""


def _check_lines(table: TextTable, width: int) -> None:
    """Raise `BadInput` for lines with another number of cells than the first line, with the option that skips them."""
    others, n_rows = list[tuple[int, list[str]]](), 0
    with _open_rows(table) as rows:
        for n_rows, (line, row) in enumerate(rows, start=1):  # noqa: B007
            if len(row) != width:
                others.append((line, row))
    if not others:
        return
    line, row = others[0]
    for mark in ";\t|" if len(row) == 1 else "":  # names in the header may contain commas
        if row[0].count(mark) >= width:
            raise _make_separator_error(mark, table)
    first = "its header names" if table.how.header else "its first line has"
    advice = "make every line as long"
    if len(others) <= MOST_NAMED and len(others) < n_rows / 2:
        lines = (line - k for line, row in others for k in range(1 + sum(cell.count("\n") for cell in row)))
        which = "the line" if len(others) == 1 else "such lines"
        advice += f', or leave {which} out with skip_lines="{table.how.skipping(lines)}"'
    raise BadInput(
        f"file {str(table.path)!r} has {several(len(row), 'cell')} in line {line} but {first} {width} columns: {advice}"
    )


def _find_lines(table: TextTable, rows: Collection[int]) -> dict[int, int]:
    """Return the line of the file in which each of the given rows, from 1, ends."""
    with _open_rows(table) as rows_read:
        return {row: line for row, (line, _) in enumerate(rows_read, start=not table.how.header) if row in rows}


def blame_cell(text: str, column: str, row: int, line: int) -> None:
    """Raise `BadInput` for a cell that is not a finite number.

    Parameters
    ----------
    row : int
        Row number from 1, without the header.
    line : int
        Line of the cell in the file.
    """
    try:
        value = reading_options.parse_number(text)
    except ValueError:
        raise cure.bad_cell(column, row, text, line) from None
    if not math.isfinite(value):
        raise cure.bad_cell(column, row, value, line)


@contextmanager
def _open_rows(table: TextTable) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Yield the rows of a table as (line number of the end of the row, cells), without blank lines."""
    path = table.path
    try:
        with table.text.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(_lines_of_text(handle, path), delimiter=table.delimiter)
            yield ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise BadInput(f'file {str(path)!r} is not UTF-8 text: give encoding="latin-1", say') from error
    except csv.Error as error:
        raise BadInput(f"file {str(path)!r} is not a readable table: {error}") from error


def _lines_of_text(handle: TextIO, path: Path) -> Iterator[str]:
    """Yield lines; raise an error for an endless line, which would fill the memory."""
    while line := handle.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(
                f"file {str(path)!r} has a line of more than {LONGEST_LINE:,} characters, so it is not a table"
            )
        yield line


BLOCK_BYTES = 8 * CHUNK_ELEMENTS
BYTES_A_NUMBER = 32  # bytes for each number of a line, which must fit into a block
MOST_HEADER_ROWS = 50  # lines at the beginning of a file that may have the column names
FIRST_ROWS = 4096  # rows that usually show the number format


class FilledColumns:
    """The selected columns of a table, filled block by block.

    Parameters
    ----------
    rows : int
        Upper bound on the number of rows of the table.
    """

    def __init__(self, chosen: reading_options.Selection, rows: int) -> None:
        self.names, self.target = chosen.names, chosen.goal
        self.X, self.y = np.empty((rows, len(self.names))), np.zeros(rows)
        self.place = {self.target: self.y} | {name: self.X[:, k] for k, name in enumerate(self.names)}
        self.aux: dict[str, list[NDArray[Any]]] = {chosen.header[j]: [] for j in chosen.aux}

    def add_block(self, block: Any, start: int) -> None:
        """Copy the columns of an Arrow table to the rows from `start`; `BadInput` names a missing cell."""
        for name in block.column_names:
            if name in self.aux:
                self.aux[name].append(ids(block[name]))
            else:
                self.place[name][start : start + block.num_rows] = _column_numbers(block[name], name, start)

    def dataset(self, rows: int) -> Dataset:
        """Return the data set of the first `rows` rows; `BadInput` names a cell that is not finite."""
        aux = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in self.aux.items()}
        return assemble(self.X[:rows], self.y[:rows], self.names, self.target, aux)


def read_text_table(
    path: Path, wanted: reading_options.Wanted, kind: str, how: reading_options.Reading = reading_options.STRICT
) -> Dataset:
    """Return the data set of a numeric text table.

    Parameters
    ----------
    kind : str
        Format `.csv`, `.tsv` or `.txt`, which determines the default separator.

    Raises
    ------
    BadInput
        If the table is invalid; the message names line, column and row, since every cell is checked if Arrow fails.
    """
    import pyarrow as pa

    stream = _stream(path, wanted, kind, how)
    check_numbers(path, stream.most, len(stream.chosen.numeric))
    try:
        data = stream.numbers()
    except (pa.ArrowException, BadInput):  # the slow reader reports errors of all columns, with their lines
        return assemble(*cure.impute_and_encode(stream.raw(), how, wanted))
    if not wanted.sure:  # new rows may have another number format
        marks = stream.marks(data)
        if wanted.needed:
            reading_options.check_marks(marks, how.sep)
        else:
            check_new_number_format(marks, path, wanted, how)
        if notes := reading_options.both_readings(marks):
            return replace(data, reading=reading_options.Applied(how, data.names, notes=notes))
    return data


def check_new_number_format(
    marks: dict[str, reading_options.Marks], path: Path, wanted: reading_options.Wanted, how: reading_options.Reading
) -> None:
    """Raise `BadInput` for ambiguous numbers of new rows, unless another column of their file settles the format.

    A decimal comma or a thousands separator of the record is settled.

    Parameters
    ----------
    marks : dict of str to Marks
        Number formats of the columns of the model.
    """
    if how.way != reading_options.POINT or not reading_options.doubts(marks):
        return
    every, kind = marks, format_suffix(path)
    if kind in TEXT:
        with suppress(BadInput):  # a column without a name, for example
            whole_file = replace(wanted, target="", features=None, aux=())
            every = read_raw_table(path, whole_file, kind, how).marks
    if not reading_options.doubts(every).keys().isdisjoint(marks):
        reading_options.check_marks(marks)


def read_raw_table(
    path: Path, wanted: reading_options.Wanted, kind: str, how: reading_options.Reading
) -> cure.RawTable:
    """Return the unprocessed columns of a text table.

    Parameters
    ----------
    kind : str
        Format as for :func:`read_text_table`.

    Raises
    ------
    BadInput
        If a line is too short or too long, or the file is not a table.
    """
    return _stream(path, wanted, kind, how).raw()


def _stream(path: Path, wanted: reading_options.Wanted, kind: str, how: reading_options.Reading) -> _Stream:
    table = TextTable.from_path(path, kind, how)
    header, header_lines = read_header(table)
    try:
        chosen = wanted.select_columns(header, _void_columns(table, header))
    except BadInput:
        _check_later_names(table, header, wanted)
        raise
    return _Stream(table, chosen, header_lines, *_most_rows(table))


def _void_columns(table: TextTable, header: list[str]) -> list[int]:
    """Return the positions of columns without a name whose cells are all empty, as after a last separator."""
    void = [j for j, name in enumerate(header) if not name] if table.how.header else []
    if void:
        with _open_rows(table) as rows:
            for _, row in rows:
                void = [j for j in void if j >= len(row) or not row[j].strip()]
    return void


def _check_later_names(table: TextTable, header: list[str], wanted: reading_options.Wanted) -> None:
    """Raise `BadInput` if the column names, the target among them, are in a line below the first one."""
    target = str(wanted.target).strip()
    if not wanted.needed or (target in header and len(set(header)) == len(header)):
        return
    with _open_rows(table) as rows:
        lines = [(line, [cell.strip() for cell in row]) for line, row in islice(rows, MOST_HEADER_ROWS)]
    for line, cells in lines[1:]:
        if target in cells and _are_names(cells) and len(cells) == len(header):
            skipped = table.how.skipping(range(lines[0][0], line))
            above = table.delimiter.join(header)[:30]
            raise BadInput(
                f"file {str(table.path)!r} has its column names in line {line}, below {above!r}: "
                f'give skip_lines="{skipped}"'
            )


def _are_names(cells: list[str]) -> bool:
    """Return True if the cells of a line can be column names: all different, none empty or a number."""
    are_numbers = any(reading_options.is_number(cell, way) for cell in cells for way in reading_options.WAYS)
    return all(cells) and len(set(cells)) == len(cells) and not are_numbers


@dataclass(frozen=True)
class _Stream:
    """A text table that Arrow reads block by block."""

    table: TextTable
    chosen: reading_options.Selection
    header_lines: int
    most: int
    quoted: bool
    marked: bool

    def numbers(self) -> Dataset:
        """Return the data set of a numeric table."""
        import pyarrow as pa

        columns = FilledColumns(self.chosen, self.most)
        types = {self.chosen.header[j]: pa.float64() for j in self.chosen.numeric}
        filled = 0
        for block in self._blocks(types | dict.fromkeys(columns.aux, pa.string())):
            columns.add_block(block, filled)
            filled += block.num_rows
        return columns.dataset(filled)

    def marks(self, data: Dataset) -> dict[str, reading_options.Marks]:
        """Return the number formats of columns with ambiguous numbers; only the text of these columns is read."""
        import pyarrow as pa

        way = self.table.how.way
        if not self.marked or way.thousands:
            return {}
        columns = dict(zip((*data.names, data.target), (*data.X.T, data.y), strict=True))
        marks = {name: reading_options.Marks(way, proof=cure.has_decimals(column)) for name, column in columns.items()}
        if way.decimal == "." and any(evidence.proof for evidence in marks.values()):
            return {}
        most = 1000.0 if way.decimal == "." else np.inf  # a number that may be grouped has three digits at most
        doubtful = [name for name, x in columns.items() if not marks[name].proof and 1.0 < np.abs(x).max() < most]
        if not doubtful:
            return marks
        texts = pa.concat_tables(self._blocks(dict.fromkeys(doubtful, pa.string())))
        return marks | {name: raw_column(name, texts[name], self.table.how).marks for name in doubtful}

    def raw(self) -> cure.RawTable:
        """Return the columns of any table; `BadInput` names a line that is too short or too long."""
        import pyarrow as pa

        names = [self.chosen.header[j] for j in (*self.chosen.numeric, *self.chosen.aux)]
        try:
            blocks = list(self._blocks(dict.fromkeys(names, pa.string())))
        except pa.ArrowException as error:
            _check_lines(self.table, len(self.chosen.header))
            raise BadInput(
                f"file {str(self.table.path)!r} cannot be read as a table: {str(error).splitlines()[0]}"
            ) from error
        if not blocks:
            raise BadInput(f"file {str(self.table.path)!r} has a header but no rows: give one line per row")
        whole = pa.concat_tables(blocks)
        aux = {self.chosen.header[j]: ids(whole[self.chosen.header[j]]) for j in self.chosen.aux}
        column = partial(raw_column, how=self.table.how)
        table = cure.raw_table(self.chosen.names, self.chosen.goal, lambda name: column(name, whole[name]), aux)
        return replace(table, lines=partial(_find_lines, self.table))

    def _blocks(self, types: dict[str, Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        header, how = self.chosen.header, self.table.how
        stream = csv.open_csv(
            self.table.text,
            csv.ReadOptions(
                column_names=list(header), skip_rows=self.header_lines,
                block_size=max(BLOCK_BYTES, BYTES_A_NUMBER * len(header)),
            ),
            csv.ParseOptions(delimiter=self.table.delimiter, newlines_in_values=self.quoted),
            csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False,
                decimal_point=how.decimal,
            ),
        )  # fmt: skip
        with stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])


def _most_rows(table: TextTable) -> tuple[int, bool, bool]:
    """Return an upper bound on the rows of a text file, and whether it has quotes and decimal marks."""
    feeds, returns, quoted, marked = 0, 0, False, False
    mark = table.how.decimal.encode()
    with table.text.open("rb") as handle:
        while block := handle.read(BLOCK_BYTES):
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            quoted = quoted or b'"' in block
            marked = marked or mark in block
    return max(feeds, returns) + 1, quoted, marked


def is_numeric(kind: Any) -> bool:
    """Return True if an Arrow type is numeric."""
    import pyarrow as pa

    test = pa.types
    return bool(test.is_integer(kind) or test.is_floating(kind) or test.is_boolean(kind) or test.is_decimal(kind))


def _column_numbers(column: Any, name: str, start: int) -> FloatArray:
    import pyarrow as pa

    if column.null_count:
        raise cure.bad_cell(name, start + column.is_null().index(True).as_py() + 1, None)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return _numpy_values(column)


def raw_column(name: str, column: Any, how: reading_options.Reading) -> cure.RawColumn:
    """Return the cells of an Arrow column; Arrow parses the texts of a column without words, in plain notation.

    Parameters
    ----------
    name : str
        Name of the column.
    column : pyarrow.ChunkedArray
        The cells.
    how : Reading
        Number format and missing-value codes.
    """
    import pyarrow as pa
    from pyarrow import compute

    (words, codes), usual = how.absent, cure.usual_codes(how)
    if how.decimal != "." or how.way.has_groups or not pa.types.is_string(column.type) or column.null_count:
        return cure.RawColumn.from_cells(name, column.to_pylist(), how)
    texts = compute.utf8_trim_whitespace(column)
    is_code = compute.is_in(compute.utf8_lower(texts), value_set=pa.array(["", *usual, *words]))
    try:
        numbers = compute.cast(compute.if_else(is_code, pa.scalar("nan"), texts), pa.float64())
    except pa.ArrowInvalid:  # a cell is a word, or a number in another notation
        return cure.RawColumn.from_cells(name, column.to_pylist(), how)
    values, empty = _numpy_values(numbers), _numpy_values(is_code).astype(bool)
    if np.any(np.isnan(values) & ~empty):
        return cure.RawColumn.from_cells(name, column.to_pylist(), how)
    empty |= np.isin(values, list(codes))
    values[empty] = np.nan
    absent = Counter(text for text in texts.filter(is_code).to_pylist() if text)
    counts = {code: count for code, count in absent.items() if code.lower() in usual - words}
    marked = compute.and_(compute.match_substring(texts, "."), compute.invert(is_code))
    grouped = compute.match_substring_regex(texts, r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$")
    marks = reading_options.Marks(how.way, proof=bool(compute.any(compute.and_not(marked, grouped)).as_py()))
    if not marks.proof and compute.any(compute.match_substring(texts, ".")).as_py():
        spelled: dict[str, int] = {}
        for row, text in enumerate(texts.to_pylist(), start=1):
            if reading_options.is_number(text, how.way):
                spelled.setdefault(text, row)
        marks = reading_options.Marks.from_texts(spelled, how.way)
    first = column[int(np.argmax(empty))].as_py() if empty.any() else None
    return cure.RawColumn(name, values, empty, {}, marks, first, counts)


def _numpy_values(column: Any) -> NDArray[Any]:
    """Return a column without missing cells as a numpy array, without `to_numpy` of Arrow, which loads pandas."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    parts = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0)


def ids(column: Any) -> NDArray[Any]:
    """Return a column of an Arrow table that names groups or folds as an array."""
    import pyarrow as pa

    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.array(column.to_pylist(), dtype=object)
    return _numpy_values(column)

"""Functions that read text tables with the package Arrow; a simple parser finds the lines that Arrow cannot read."""

from __future__ import annotations

import csv
import gzip
import io
import re
import shutil
import weakref
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import CHUNK_ELEMENTS
from sparsecv_mio.data.column_choice import Selection, Wanted
from sparsecv_mio.data.columns import RawTable, TextColumns, is_unreadable
from sparsecv_mio.data.number_format import is_number, to_numpy
from sparsecv_mio.data.reading_options import STRICT, Reading
from sparsecv_mio.digits import MOST_NAMED, several
from sparsecv_mio.errors import BadInput, WrongSeparator
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
        raise BadInput(f"file {str(path)!r} is not a ZIP archive: {error}; pack the table again") from error
    files = [name for name in inside if not name.startswith("__MACOSX/")]
    if len(files) != 1:
        raise BadInput(f"file {str(path)!r} holds {len(files)} files; pack only the table")
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
        raise BadInput(f"file {str(path)!r} cannot be unpacked: {error}; pack the table again") from error


def _rewritten(handle: IO[bytes], how: Reading, path: Path) -> Iterator[bytes]:
    """Yield the lines of a file as UTF-8 text, without skipped lines, and with tabs for blanks that separate cells."""
    encoding = "utf-8-sig" if how.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else how.encoding
    try:
        with io.TextIOWrapper(handle, encoding=encoding, newline="") as text:
            for number, line in enumerate(_lines_of_text(text, path), start=1):
                end = line[len(line.rstrip("\r\n")) :]
                is_comment = how.comment is not None and line.lstrip().startswith(how.comment)
                if is_comment or any(number in numbers for numbers in how.skipped_lines):
                    line = end  # an empty line keeps the numbers of the other lines
                elif how.sep == " ":
                    line = BLANKS.sub(lambda found: found[0] if found[0][0] == '"' else "\t", line.strip()) + end
                yield line.encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        raise BadInput(f"file {str(path)!r} is not text in {how.encoding}; try another encoding") from error


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
    how: Reading
    text: Path

    @classmethod
    def from_path(cls, path: Path, kind: str, how: Reading = STRICT) -> TextTable:
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


def read_text_table(path: Path, wanted: Wanted, kind: str, how: Reading = STRICT) -> RawTable:
    """Return the columns of a text table; texts that are numbers become numbers block by block.

    Parameters
    ----------
    path : Path
        Path of the file.
    wanted : Wanted
        The selected columns.
    kind : str
        Format `.csv`, `.tsv` or `.txt`, which determines the default separator.
    how : Reading
        Reading options.

    Raises
    ------
    BadInput
        If the file is not a table with these columns; the message names the line and the option that helps.
    """
    import pyarrow as pa

    table = TextTable.from_path(path, kind, how)
    header, header_lines = read_header(table)
    try:
        chosen = wanted.select_columns(header, _void_columns(table, header))
        return _read_columns(table, chosen, header_lines)
    except BadInput:
        _check_first_lines(table, wanted)
        raise
    except pa.ArrowException as error:
        _check_first_lines(table, wanted)
        _check_widths(table, len(header))
        raise BadInput(
            f"file {str(path)!r} cannot be read as a table: {str(error).splitlines()[0]}; check sep, comment and "
            "skip_lines"
        ) from error


def read_header(table: TextTable) -> tuple[list[str], int]:
    """Return the column names and the number of header lines; raise `BadInput` if there is no header."""
    path, how = table.path, table.how
    with _open_rows(table) as rows:
        line, cells = next(rows, (0, []))
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise BadInput(f"file {str(path)!r} is empty; give one header line and one line per row")
    if how.comment is None and names[0][0:1] in ("#", "%"):
        mark = names[0][0]
        raise BadInput(f'file {str(path)!r} begins with {mark!r}; give comment="{mark}" to skip such lines')
    if not how.header:
        return [f"x{j}" for j in range(len(names))], 0
    if all(is_number(name, how.number_format) for name in names) and not all(name.isdigit() for name in names):
        raise BadInput(
            f"file {str(path)!r} has numbers where its column names belong; add a header line, or give header=False"
            + (f", or change skip_lines (now {how.skip_lines})" if how.skip_lines else "")
        )
    return names, line


def _void_columns(table: TextTable, header: list[str]) -> list[int]:
    """Return the positions of columns without a name whose cells are all empty, as after a last separator."""
    void = [j for j, name in enumerate(header) if not name] if table.how.header else []
    if void:
        with _open_rows(table) as rows:
            for _, row in rows:
                void = [j for j in void if j >= len(row) or not row[j].strip()]
    return void


class HeaderPlace(NamedTuple):
    """The position of the column names among the first lines of a file, read with one separator."""

    position: int
    separator: str
    lines: list[tuple[int, list[str]]]


def _check_first_lines(table: TextTable, wanted: Wanted) -> None:
    """Raise `BadInput` if the column names are below the first line, or need another separator, with the options."""
    names = [wanted.target] if wanted.needed else (wanted.features or ())  # the target of new rows may be absent
    expected = {str(name).strip() for name in names}
    separators = dict.fromkeys((table.delimiter, *MARKS))
    places = [place for mark in separators if (place := _find_header(table, mark, expected)) is not None]
    first = HeaderPlace(0, table.delimiter, [])
    position, mark, lines = min(places, key=lambda place: place.position, default=first)
    option = "" if mark == table.delimiter else f'sep="{MARKS[mark][1]}"'
    option += ' and decimal="."' if option and mark == table.how.decimal else ""
    if position:
        skip = f'skip_lines="{table.how.skipping(range(lines[0][0], lines[position][0]))}"'
        raise BadInput(
            f"file {str(table.path)!r} begins with {mark.join(lines[0][1])[:30]!r}, and line {lines[position][0]} has "
            f"the names of its columns; give {skip}{option and f' and {option}'}"
        )
    if option:
        raise WrongSeparator(f"file {str(table.path)!r} seems to be separated by {MARKS[mark][0]}; give {option}")


def _find_header(table: TextTable, separator: str, expected: set[str]) -> HeaderPlace | None:
    """Return the place of the column names in a file, read with a separator; None if its lines form no table.

    The names are in the first line that has the usual number of cells and the expected names, if any line has them.
    """
    with _open_rows(table.with_separator(separator)) as rows:
        lines = list(islice(rows, FIRST_ROWS))
    widths = [len(cells) for _, cells in lines]
    if _has_row_names(lines):
        return HeaderPlace(0, separator, lines)
    width = max(widths, key=widths.count, default=1)
    names = [k for k, (_, cells) in enumerate(lines) if len(cells) == width and _are_names(cells)]
    with_expected = [k for k in names if expected and expected <= set(map(str.strip, lines[k][1]))]
    is_title = widths[:1] != [width] or sum(bool(cell.strip()) for cell in lines[0][1]) == 1
    names = with_expected or (names if is_title else [])
    if width > 1 and (names or len(set(widths)) == 1):
        return HeaderPlace(names[0] if names else 0, separator, lines)
    return None


def _has_row_names(lines: list[tuple[int, list[str]]]) -> bool:
    """Return True if the header has a name for every column except the first one, as `write.table` in R writes it."""
    header, rows = (lines[0][1], [cells for _, cells in lines[1:]]) if len(lines) > 2 else ([], [])
    is_longer = len(header) > 1 and all(len(cells) == len(header) + 1 for cells in rows)
    are_row_names = len({cells[0] for cells in rows}) == len(rows) and any(cells[-1].strip() for cells in rows)
    return is_longer and are_row_names and _are_names(header)


def _are_names(cells: list[str]) -> bool:
    """Return True if the cells of a line can be column names: all different, none empty or a number."""
    names = [cell.strip() for cell in cells]
    return all(names) and len(set(names)) == len(names) and not any(map(is_unreadable, names))


def _check_widths(table: TextTable, width: int) -> None:
    """Raise `BadInput` for lines with another number of cells than the first line, with the option that skips them."""
    others, n_rows = list[tuple[int, list[str]]](), 0
    with _open_rows(table) as rows:
        has_row_names = _has_row_names(list(islice(rows, FIRST_ROWS)))
    if has_row_names:
        raise BadInput(
            f"file {str(table.path)!r} has {width} column names but {width + 1} cells in each line: its first "
            "column has no name; add one, or write the file with row.names = FALSE or col.names = NA in R"
        )
    with _open_rows(table) as rows:
        for n_rows, (line, row) in enumerate(rows, start=1):  # noqa: B007
            if len(row) != width:
                others.append((line, row))
    if not others:
        return
    line, row = others[0]
    first = "its header names" if table.how.header else "its first line has"
    advice = "give every line the same number of cells"
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


@contextmanager
def _open_rows(table: TextTable) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Yield the rows of a table as (line number of the end of the row, cells), without blank lines."""
    path = table.path
    try:
        with table.text.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(_lines_of_text(handle, path), delimiter=table.delimiter)
            yield ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise BadInput(
            f'file {str(path)!r} is not UTF-8 text; give its encoding, for example encoding="latin-1"'
        ) from error
    except csv.Error as error:
        raise BadInput(
            f"file {str(path)!r} is not a readable table: {error}; correct the file, or give its separator (sep)"
        ) from error


def _lines_of_text(handle: TextIO, path: Path) -> Iterator[str]:
    """Yield lines; raise an error for an endless line, which would fill the memory."""
    while line := handle.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(
                f"file {str(path)!r} has a line of more than {LONGEST_LINE:,} characters, so it is not a table; name "
                "another file"
            )
        yield line


BLOCK_BYTES = 8 * CHUNK_ELEMENTS
BYTES_A_NUMBER = 32  # bytes for each number of a line, which must fit into a block
FIRST_ROWS = 50  # lines at the beginning of a file that may have the column names


def _read_columns(table: TextTable, chosen: Selection, header_lines: int) -> RawTable:
    """Return the selected columns of a text table; Arrow raises an error for a line that is too short or too long."""
    import pyarrow as pa
    from pyarrow import csv

    header, how = chosen.header, table.how
    n_lines, has_quotes = _count_lines(table)
    check_numbers(table.path, n_lines, len(chosen.numeric))
    names, aux_names = [header[j] for j in chosen.numeric], [header[j] for j in chosen.aux]
    blocks, aux = TextColumns(names, chosen.goal, n_lines, how), {name: list[NDArray[Any]]() for name in aux_names}
    types = dict.fromkeys([*names, *aux_names], pa.string())
    stream = csv.open_csv(
        table.text,
        csv.ReadOptions(
            column_names=list(header), skip_rows=header_lines,
            block_size=max(BLOCK_BYTES, BYTES_A_NUMBER * len(header)),
        ),
        csv.ParseOptions(delimiter=table.delimiter, newlines_in_values=has_quotes),
        csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False,
        ),
    )  # fmt: skip
    with stream:
        for batch in stream:
            for name in aux_names:
                aux[name].append(ids(pa.chunked_array([batch[name]])))
            blocks.add(pa.concat_arrays(batch.columns[: len(names)]))
    if not blocks.n_rows:
        raise BadInput(f"file {str(table.path)!r} has a header but no rows; give one line per row")
    joined = {name: np.concatenate(parts) for name, parts in aux.items()}
    return blocks.build_table(joined, partial(_find_lines, table))


def _count_lines(table: TextTable) -> tuple[int, bool]:
    """Return an upper bound on the rows of a text file, and whether it has quotes."""
    feeds, returns, has_quotes = 0, 0, False
    with table.text.open("rb") as handle:
        while block := handle.read(BLOCK_BYTES):
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            has_quotes = has_quotes or b'"' in block
    return max(feeds, returns) + 1, has_quotes


def is_numeric(kind: Any) -> bool:
    """Return True if an Arrow type is numeric."""
    import pyarrow as pa

    test = pa.types
    return bool(test.is_integer(kind) or test.is_floating(kind) or test.is_boolean(kind) or test.is_decimal(kind))


def ids(column: Any) -> NDArray[Any]:
    """Return a column of an Arrow table that names groups or folds as an array."""
    import pyarrow as pa

    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.array(column.to_pylist(), dtype=object)
    return to_numpy(column)

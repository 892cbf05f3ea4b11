"""Parquet and Feather: columns with types of their own, read by Arrow one part of the rows at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sparsecv_mio.data.arrow import Columns, is_numeric
from sparsecv_mio.data.cure import RawTable, cured, raw_table, read_alike
from sparsecv_mio.data.dataset import Dataset, assemble
from sparsecv_mio.data.reading import STRICT, Applied, Reading
from sparsecv_mio.data.select import Selection, Wanted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_numbers

FEATHER = (".feather", ".arrow", ".ipc")
SUFFIXES = (".parquet", *FEATHER)
BATCH_NUMBERS = 1 << 22


class Batches:
    """A Feather or Arrow file with the few words of a Parquet file that are needed here.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.source = pa.memory_map(str(path))
        self.schema_arrow = self._opened(None).schema

    def rows(self) -> list[int]:
        """Return the number of rows of each part."""
        file = self._opened(self.schema_arrow.names[:1])
        return [file.get_batch(k).num_rows for k in range(file.num_record_batches)]

    def read(self, part: int | None, columns: Sequence[str]) -> Any:
        """Return some columns, of one part or of all."""
        import pyarrow as pa

        file = self._opened(columns)
        whole = file.read_all() if part is None else pa.Table.from_batches([file.get_batch(part)])
        return whole.select(list(columns))

    def close(self) -> None:
        """Close the file."""
        self.source.close()

    def _opened(self, columns: Sequence[str] | None) -> Any:
        from pyarrow import ipc

        if columns is None:
            return ipc.open_file(self.source)
        places = [self.schema_arrow.get_field_index(name) for name in columns]
        return ipc.open_file(self.source, options=ipc.IpcReadOptions(included_fields=places))


class RowGroups:
    """A Parquet file, part by part.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self.file = parquet.ParquetFile(path, pre_buffer=False)
        self.schema_arrow = self.file.schema_arrow

    def rows(self) -> list[int]:
        """Return the number of rows of each part."""
        return [self.file.metadata.row_group(k).num_rows for k in range(self.file.num_row_groups)]

    def read(self, part: int | None, columns: Sequence[str]) -> Any:
        """Return some columns, of one part or of all."""
        if part is None:
            return self.file.read(columns=list(columns), use_threads=False)
        return self.file.read_row_group(part, columns=list(columns), use_threads=False)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def read_columnar(path: Path, wanted: Wanted, how: Reading = STRICT, learnt: Applied | None = None) -> Dataset:
    """Read a few columns of one part of the rows at a time.

    Parameters
    ----------
    path : Path
    wanted : Wanted
    how : Reading
    learnt : Applied, optional
        How other rows were read; these are read alike.

    Notes
    -----
    Peak memory is X plus one column of the longest part, or 32 MB where that is more.
    """
    with _opened(path, wanted) as (file, chosen):
        if learnt is not None:
            return assemble(*read_alike(_raw(file, chosen, how), learnt))
        words = chosen.target is not None and not is_numeric(file.schema_arrow.field(chosen.goal).type)
        if how.cures or how.decimal != "." or (wanted.two_words and words):
            return assemble(*cured(_raw(file, chosen, how), how, wanted))
        try:
            return _all_numbers(file, chosen)
        except BadInput:
            cured(_raw(file, chosen, how), how, wanted)  # names all bad columns
            raise


def raw_columnar(path: Path, wanted: Wanted, how: Reading) -> RawTable:
    """Read a Parquet or Feather file, whatever its cells hold.

    Parameters
    ----------
    path : Path
    wanted : Wanted
    how : Reading
    """
    with _opened(path, wanted) as (file, chosen):
        return _raw(file, chosen, how)


@contextmanager
def _opened(path: Path, wanted: Wanted) -> Iterator[tuple[Batches | RowGroups, Selection]]:
    import pyarrow as pa

    feather = path.suffix.lower() in FEATHER
    try:
        file = Batches(path) if feather else RowGroups(path)
        try:
            # pandas writes its row index as such a column; it numbers the rows and is no measurement.
            header = [name for name in file.schema_arrow.names if not re.fullmatch(r"__index_level_\d+__", name)]
            chosen = wanted.within(header)
            check_numbers(path, sum(file.rows()), len(chosen.numeric) + len(chosen.aux))
            yield file, chosen
        finally:
            file.close()
    except pa.ArrowException as error:
        kind = "Feather" if feather else "Parquet"
        raise BadInput(f"file {str(path)!r} cannot be read as {kind}: {str(error).splitlines()[0]}") from error


def _all_numbers(file: Batches | RowGroups, chosen: Selection) -> Dataset:
    header = chosen.header
    for j in chosen.numeric:
        _check_type(header[j], file.schema_arrow.field(header[j]).type)
    sizes = file.rows()
    columns, start = Columns(chosen, sum(sizes)), 0
    names = [header[j] for j in (*chosen.numeric, *chosen.aux)]
    for part, rows in enumerate(sizes):
        step = max(1, BATCH_NUMBERS // max(1, rows))
        for first in range(0, len(names), step):
            columns.put(file.read(part, names[first : first + step]), start)
        start += rows
    return columns.dataset(start)


def _raw(file: Batches | RowGroups, chosen: Selection, how: Reading) -> RawTable:
    def cells(name: str) -> list[Any]:
        found: list[Any] = file.read(None, [name])[name].to_pylist()
        return found

    aux = {chosen.header[j]: np.array(cells(chosen.header[j]), dtype=object) for j in chosen.aux}
    return raw_table(chosen.names, chosen.goal, cells, aux, how)


def _check_type(name: str, kind: Any) -> None:
    if not is_numeric(kind):
        raise BadInput(f"column {name!r} has the type {kind}, not numbers: encode it as numbers or drop the column")

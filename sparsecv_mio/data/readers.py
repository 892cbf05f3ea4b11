"""From a file to a `Dataset`: the suffix chooses the reader, the header and the user's words choose the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Unpack

from sparsecv_mio.data.arrow import raw_delimited, read_delimited
from sparsecv_mio.data.columnar import FEATHER, SUFFIXES, raw_columnar, read_columnar
from sparsecv_mio.data.cure import RawTable, raw_table
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.npz import read_npz
from sparsecv_mio.data.opened import PACKED, kind_of
from sparsecv_mio.data.reading import OF_CELLS, STRICT, Applied, Reading, ReadingWords
from sparsecv_mio.data.select import Wanted
from sparsecv_mio.data.svmlight import read_svmlight
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import reason, special

TEXT = (".csv", ".tsv", ".txt", ".dat", ".data")
MATRICES: dict[str, Callable[[Path, Wanted], Dataset]] = {
    ".npz": read_npz,
    ".svm": read_svmlight,
    ".svmlight": read_svmlight,
    ".libsvm": read_svmlight,
}
OTHERS = {  # what pandas reads, and how
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "pd.read_excel({file})"),
    ".dta": "pd.read_stata({file})",
    **dict.fromkeys((".sav", ".zsav", ".por"), "pd.read_spss({file})"),
    **dict.fromkeys((".sas7bdat", ".xpt"), "pd.read_sas({file})"),
    ".json": "pd.read_json({file})",
    **dict.fromkeys((".jsonl", ".ndjson"), "pd.read_json({file}, lines=True)"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), 'pd.read_sql("select * from TABLE", sqlite3.connect({file}))'),
    **dict.fromkeys((".pkl", ".pickle"), "pd.read_pickle({file})"),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), "pd.read_hdf({file})"),
    ".orc": "pd.read_orc({file})",
    ".xml": "pd.read_xml({file})",
    **dict.fromkeys((".html", ".htm"), "pd.read_html({file})[0]"),
    **dict.fromkeys((".rds", ".rdata", ".rda"), "next(iter(pyreadr.read_r({file}).values()))"),
}
OWN_TARGET = (".npz", ".svm", ".svmlight", ".libsvm")


def target_of(path: str | Path, target: str | int | None, option: str = "target") -> str | int:
    """Return the target of a file: where none is named, `y` of those formats that keep it apart.

    Parameters
    ----------
    path : str or Path
    target : str, int or None
    option : str
        What the message calls the option.

    Raises
    ------
    BadInput
        If the file needs one.

    Examples
    --------
    >>> target_of("a.npz", None), target_of("a.csv", "price")
    ('y', 'price')
    """
    if target is not None:
        return target
    if Path(path).suffix.lower() not in OWN_TARGET:
        raise BadInput(f"{option} is missing: name the column to predict")
    return "y"


def read_dataset(
    path: str | Path,
    target: str | int,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    aux: Sequence[str] = (),
    two_words: bool = False,
    **reading: Unpack[ReadingWords],
) -> Dataset:
    r"""Read a data file.

    Parameters
    ----------
    path : str or Path
        `.csv`, `.tsv` and `.txt` (UTF-8, one header line; packed too: `.csv.gz`, `.csv.zip`), `.parquet`,
        `.feather` and `.arrow`, `.npz` (arrays `X`, `y` and optionally `names`), or svmlight text (`.svm`,
        `.svmlight`, `.libsvm`; its features are named `x` and their number in the file).
    target : str or int
        Column name, or 0-based position where no column has that name; `y` for NPZ and svmlight files.
    features, drop : sequence of str, optional
        Columns to keep, or to leave out, by name or position; at most one of the two. Columns not kept may hold
        anything.
    aux : sequence of str
        Group and fold columns (see :func:`sparsecv_mio.data.folds.fold_columns`); never features.
    two_words : bool
        Whether the target may hold two words, for a classification: they become 0 and 1.
    **reading
        `sep`, `decimal`, `thousands`, `comment`, `encoding`, `header`, `index_col`, `na`, `encode`: see
        :class:`~sparsecv_mio.data.reading.Reading`.

    Returns
    -------
    Dataset
        Features in file order, in the units of the file.

    Raises
    ------
    BadInput
        If the file is missing, empty or malformed, a name is wrong, or a used cell is not a finite number, or could be
        two; the message names column and row (1-based, header not counted).

    Notes
    -----
    Peak memory is the feature array plus one block of the file for CSV, TSV and Parquet.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "small.csv"
    >>> _ = file.write_text("a,b,y\n1,2,3\n4,5,6\n")
    >>> read_dataset(file, "y", drop=["b"]).X.tolist()
    [[1.0], [4.0]]
    >>> folder.cleanup()
    """
    how = Reading.of(**reading)
    return read_by(path, Wanted(target, features, drop, tuple(aux), index=how.index_col, two_words=two_words), how)


class NewRows(NamedTuple):
    """Rows to predict; whether their target is `known`, and what is wrong with it if the file has one that is not."""

    data: Dataset
    known: bool
    doubt: str


def read_rows(
    path: str | Path, features: Sequence[str], target: str, learnt: Applied | None = None
) -> NewRows:
    """Read some columns of new rows, of which the target may not be known yet.

    Parameters
    ----------
    path : str or Path
        As for :func:`read_dataset`.
    features : sequence of str
        Names of features.
    target : str
    learnt : Applied, optional
        How the rows were read that a model was fitted on; the new ones are read alike.

    Returns
    -------
    NewRows
        With zeros for a target that is not known, in some row or at all, and no name of it.

    Raises
    ------
    BadInput
        As :func:`read_dataset`; the message names every column that is missing.
    """
    columns, how = features, STRICT
    if learnt is not None:
        columns = [name for name in learnt.columns if any(made in features for made in learnt.names_of(name))]
        how = learnt.how
    wanted = Wanted(target, columns, None, (), needed=False, index=how.index_col)
    try:
        data = read_by(path, wanted, how, learnt)
    except BadInput as error:
        untold = read_by(path, replace(wanted, target=""), how, learnt)  # raises if it is not the target
        return NewRows(untold, False, str(error))
    return NewRows(data, data.target == target, "")


def read_by(path: str | Path, wanted: Wanted, how: Reading, learnt: Applied | None = None) -> Dataset:
    """Read a data file.

    Parameters
    ----------
    path : str or Path
    wanted : Wanted
        Which columns.
    how : Reading
    learnt : Applied, optional
        How other rows were read; these are read alike.

    Raises
    ------
    BadInput
        As :func:`read_dataset`.
    """
    with _regular(path) as file:
        data = _by_kind(file, wanted, how, learnt)
        return replace(data, reading=Applied(how, data.names)) if data.reading is None and how.given() else data


def read_raw(path: str | Path, wanted: Wanted, how: Reading) -> RawTable:
    """Read a data file, whatever its cells hold.

    Parameters
    ----------
    path : str or Path
    wanted : Wanted
        Which columns.
    how : Reading

    Raises
    ------
    BadInput
        As :func:`read_dataset`, but for cells that are no numbers.
    """
    with _regular(path) as file:
        kind = _known_kind(file, how)
        if kind in TEXT:
            return raw_delimited(file, wanted, kind, how)
        if kind in SUFFIXES:
            return raw_columnar(file, wanted, how)
        data = MATRICES[kind](file, replace(wanted, target=wanted.target or "y"))
        columns = dict(zip(data.names, data.X.T, strict=True)) | {data.target: data.y}
        return raw_table(data.names, data.target, lambda name: columns[name].tolist(), dict(data.aux), how)


@contextmanager
def _regular(path: str | Path) -> Iterator[Path]:
    """Yield a path that is a file with something in it; `BadInput` for what cannot be read there."""
    file = Path(path)
    shown = str(file)
    try:
        found, missing = special(file), not file.exists()
    except (OSError, ValueError) as error:
        raise BadInput(f"file {shown!r} cannot be read: {reason(error)}") from None
    if missing:
        raise BadInput(f"file {shown!r} does not exist: check its path")
    if found is not None:
        raise BadInput(f"{shown!r} is {found}: name a data file")
    try:
        if file.stat().st_size == 0:
            raise BadInput(f"file {shown!r} is empty: give one header line and one line per row")
        yield file
    except OSError as error:
        raise BadInput(f"file {shown!r} cannot be read: {reason(error)}") from error
    except MemoryError as error:
        raise BadInput(f"file {shown!r} does not fit in memory as numbers: keep fewer columns or rows") from error


def _by_kind(file: Path, wanted: Wanted, how: Reading, learnt: Applied | None) -> Dataset:
    kind = _known_kind(file, how)
    if kind in TEXT:
        return read_delimited(file, wanted, kind, how, learnt)
    if kind in SUFFIXES:
        return read_columnar(file, wanted, how, learnt)
    return MATRICES[kind](file, wanted)


def _known_kind(file: Path, how: Reading) -> str:
    """Return what a file holds; `BadInput` for what is not read, or not with these options."""
    kind = kind_of(file)
    if kind in TEXT:
        return kind
    if kind in OTHERS:
        call = OTHERS[kind].format(file=repr(str(file)))
        python = f"in Python give sc.solve({call}, target=...)"
        raise BadInput(f"file {str(file)!r} is read by way of pandas: {python}, or save it as .csv")
    if file.suffix.lower() in PACKED or kind not in (*SUFFIXES, *MATRICES):
        known = ", ".join((*TEXT[:3], SUFFIXES[0], FEATHER[0], *MATRICES))
        shown = f"{kind}{file.suffix}" if file.suffix.lower() in PACKED else file.suffix
        uses = f"use one of {known}, text also as .gz or .zip"
        raise BadInput(f"file {str(file)!r} has the unknown suffix {shown!r}: {uses}")
    if kind in SUFFIXES:
        text_only = set(how.given()) - {*OF_CELLS, "index_col"}
        if text_only:
            raise BadInput(f"{min(text_only)}: goes with text tables, and {str(file)!r} is none: leave it out")
    elif how.given():
        raise BadInput(f"{how.given()[0]}: goes with text tables and Parquet: save {str(file)!r} as one of them")
    return kind

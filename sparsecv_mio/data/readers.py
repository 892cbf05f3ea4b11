"""From a file to a `Dataset`: the suffix chooses the reader, the header and the user's words choose the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sparsecv_mio.data.arrow import read_delimited, read_parquet
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.npz import read_npz
from sparsecv_mio.data.select import Wanted
from sparsecv_mio.data.svmlight import read_svmlight
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import reason, special

READERS: dict[str, Callable[[Path, Wanted], Dataset]] = {
    ".csv": lambda path, wanted: read_delimited(path, wanted, ","),
    ".tsv": lambda path, wanted: read_delimited(path, wanted, "\t"),
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".svm": read_svmlight,
    ".svmlight": read_svmlight,
    ".libsvm": read_svmlight,
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
) -> Dataset:
    r"""Read a data file.

    Parameters
    ----------
    path : str or Path
        `.csv` and `.tsv` (UTF-8, one header line), `.parquet`, `.npz` (arrays `X`, `y` and optionally `names`), or
        svmlight text (`.svm`, `.svmlight`, `.libsvm`; its features are named `x` and their number in the file).
    target : str or int
        Column name, or 0-based position where no column has that name; `y` for NPZ and svmlight files.
    features, drop : sequence of str, optional
        Columns to keep, or to leave out; at most one of the two. Columns not kept may hold anything.
    aux : sequence of str
        Group and fold columns (see :func:`sparsecv_mio.data.folds.fold_columns`); never features.

    Returns
    -------
    Dataset
        Features in file order, in the units of the file.

    Raises
    ------
    BadInput
        If the file is missing, empty or malformed, a name is wrong, or a used cell is not a finite number; the message
        names column and row (1-based, header not counted).

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
    return _read(path, Wanted(target, features, drop, tuple(aux)))


class NewRows(NamedTuple):
    """Rows to predict; whether their target is `known`, and what is wrong with it if the file has one that is not."""

    data: Dataset
    known: bool
    doubt: str


def read_rows(path: str | Path, features: Sequence[str], target: str) -> NewRows:
    """Read some columns of new rows, of which the target may not be known yet.

    Parameters
    ----------
    path : str or Path
        As for :func:`read_dataset`.
    features : sequence of str
    target : str

    Returns
    -------
    NewRows
        With zeros for a target that is not known, in some row or at all, and no name of it.

    Raises
    ------
    BadInput
        As :func:`read_dataset`; the message names every column that is missing.
    """
    wanted = Wanted(target, features, None, (), needed=False)
    try:
        data = _read(path, wanted)
    except BadInput as error:
        return NewRows(_read(path, replace(wanted, target="")), False, str(error))  # raises if it is not the target
    return NewRows(data, data.target == target, "")


def _read(path: str | Path, wanted: Wanted) -> Dataset:
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
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise BadInput(f"file {shown!r} has the unknown suffix {file.suffix!r}: use one of {', '.join(READERS)}")
    try:
        if file.stat().st_size == 0:
            raise BadInput(f"file {shown!r} is empty: give one header line and one line per row")
        return reader(file, wanted)
    except OSError as error:
        raise BadInput(f"file {shown!r} cannot be read: {reason(error)}") from error
    except MemoryError as error:
        raise BadInput(f"file {shown!r} does not fit in memory as numbers: keep fewer columns or rows") from error

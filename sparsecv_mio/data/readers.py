"""Functions that read files of every supported format into data sets, and make the folds of `solve`."""

from __future__ import annotations

import itertools
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import ArrowTable, BoolArray, FloatArray
from sparsecv_mio.data import text_tables
from sparsecv_mio.data.column_choice import Selection, Wanted
from sparsecv_mio.data.columns import RawColumn, RawTable, build_table, read_texts
from sparsecv_mio.data.dataset import Dataset, check_dataset, check_dimensions, check_finite
from sparsecv_mio.data.fold_plan import WEIGHTED, FoldPlan
from sparsecv_mio.data.folds import AnyFolds, fold_columns, is_by_row, make_folds
from sparsecv_mio.data.frames import is_arrow_table
from sparsecv_mio.data.missing_and_text import NO_TARGET, apply_to_new_rows, impute_and_encode
from sparsecv_mio.data.number_format import POINT, check_ambiguous, describe_ambiguous, to_numpy
from sparsecv_mio.data.reading_options import OF_CELLS, STRICT, Applied, Reading
from sparsecv_mio.data.survival_columns import SurvivalColumns, with_survival
from sparsecv_mio.data.text_tables import PACKED, TEXT
from sparsecv_mio.data.weights import apply_weight_column, note_rows_of_weight_0, weight_columns, weighted, weights_of
from sparsecv_mio.declared_options import keywords_are
from sparsecv_mio.errors import BadInput, WrongColumn
from sparsecv_mio.files import check_numbers, check_unpacked_size, reason, special
from sparsecv_mio.targets import NO_TARGET_COLUMNS, TargetColumns

if TYPE_CHECKING:
    import pandas as pd

FEATHER = (".feather", ".arrow", ".ipc")
SUFFIXES = (".parquet", *FEATHER)


def read_columnar(path: Path, wanted: Wanted, how: Reading = STRICT) -> RawTable:
    """Return the columns of a columnar file, read one at a time; peak memory is the numbers plus one column."""
    with _open_columnar(path, wanted) as (file, chosen):

        def read(name: str) -> Any:
            return file.to_table(columns=[name], use_threads=False)[name]

        aux = {name: text_tables.ids(read(name)) for name in (chosen.header[j] for j in chosen.aux)}
        return build_table(
            lambda name: _read_column(name, read(name), how), chosen.names, chosen.goal, file.count_rows(), aux,
            _declared_orders(file, chosen),
        )  # fmt: skip


def _read_column(name: str, column: Any, how: Reading) -> RawColumn:
    """Return an Arrow column."""
    import pyarrow as pa
    from pyarrow import compute

    if text_tables.is_numeric(column.type):
        numbers = column.cast(pa.float64(), safe=pa.types.is_decimal(column.type))
        values = to_numpy(compute.fill_null(numbers, float("nan")))
        return RawColumn.from_numbers(name, values, how)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pa.concat_arrays(column.cast(pa.string()).chunks) if column.num_chunks else pa.array([], pa.string())
        return read_texts(name, texts, how).with_durations().with_number_codes(how)
    return RawColumn.from_cells(name, column.to_pylist(), how)


@contextmanager
def _open_columnar(path: Path, wanted: Wanted) -> Iterator[tuple[Any, Selection]]:
    """Yield a file as an Arrow data set, with the selected columns."""
    import pyarrow as pa
    from pyarrow import dataset

    feather = path.suffix.lower() in FEATHER
    try:
        form = dataset.IpcFileFormat() if feather else dataset.ParquetFileFormat(pre_buffer=False)
        file = dataset.dataset(str(path.absolute()), format=form)
        # pandas writes its row index as such a column; it only numbers the rows.
        chosen = wanted.select_columns(
            [name for name in file.schema.names if not re.fullmatch(r"__index_level_\d+__", name)]
        )
        check_numbers(path, file.count_rows(), len(chosen.numeric) + len(chosen.aux))
        yield file, chosen
    except pa.ArrowException as error:
        if "duplicate field names" in str(error):
            wanted.select_columns(_header(path, feather))  # raises the error that names the missing columns
        kind = "Feather" if feather else "Parquet"
        raise BadInput(
            f"file {str(path)!r} cannot be read as {kind}: {str(error).splitlines()[0]}; write the file again"
        ) from error


def _header(path: Path, feather: bool) -> list[str]:
    from pyarrow import ipc, parquet

    schema = ipc.open_file(str(path)).schema if feather else parquet.read_schema(path)
    return list(schema.names)


def _declared_orders(file: Any, chosen: Selection) -> dict[str, list[Any]]:
    """Return the values of each ordered category in a file, from the lowest to the highest."""
    import pyarrow as pa

    kinds = {name: file.schema.field(name).type for name in chosen.names}
    ordered = [name for name, kind in kinds.items() if pa.types.is_dictionary(kind) and kind.ordered]
    columns = {name: file.to_table(columns=[name], use_threads=False)[name].unify_dictionaries() for name in ordered}
    return {name: column.chunk(0).dictionary.to_pylist() for name, column in columns.items() if column.num_chunks}


class Matrix(NamedTuple):
    """The features, the target `y`, the feature names, and the other arrays of a file."""

    X: FloatArray
    y: FloatArray
    names: list[str]
    extra: dict[str, NDArray[Any]]


def read_npz(path: Path, aux: Sequence[str]) -> Matrix:
    """Return the arrays of an NPZ file; group and fold columns are separate arrays or columns of X."""
    if not zipfile.is_zipfile(path):
        raise BadInput(f"file {str(path)!r} is not an NPZ archive; save it with numpy.savez(file, X=X, y=y)")
    try:
        with np.load(path, allow_pickle=False) as store:
            used = [key for key in store.files if key in ("X", "y", "names", *aux)]
            sizes = {member.filename.removesuffix(".npy"): member.file_size for member in store.zip.infolist()}
            check_unpacked_size(path, sum(sizes.get(key, 0) for key in used))
            arrays = {key: store[key] for key in used}
    except BadInput:
        raise
    except (ValueError, EOFError, KeyError, OverflowError, NotImplementedError, RecursionError, SyntaxError,
            MemoryError, TokenError, zlib.error, zipfile.BadZipFile) as error:  # fmt: skip
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise BadInput(
            f"file {str(path)!r} cannot be read as NPZ: {why}; save it with numpy.savez(file, X=X, y=y)"
        ) from error
    for key in ("X", "y"):
        if key not in arrays:
            raise BadInput(f"file {str(path)!r} has no array {key!r}; save it with numpy.savez(file, X=X, y=y)")
    X, y = _array(arrays.pop("X"), "X", 2, path), _array(arrays.pop("y"), "y", 1, path)
    if X.shape[0] != y.shape[0]:
        raise BadInput(f"file {str(path)!r} has {X.shape[0]} rows in X but {y.shape[0]} in y; give one target per row")
    names = arrays.pop("names", None)
    labels = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names.reshape(-1)]
    if len(labels) != X.shape[1]:
        raise BadInput(
            f"file {str(path)!r} has {X.shape[1]} columns in X but {len(labels)} names; give one name per column"
        )
    return Matrix(X, y, labels, arrays)


def read_matrix(path: Path, wanted: Wanted) -> RawTable:
    """Return selected columns of a file with a matrix, whose target is named `y`.

    Parameters
    ----------
    path : Path
        Path of the file.
    wanted : Wanted
        The selected columns.

    Raises
    ------
    BadInput
        If another target is requested, or a name or a number is wrong.
    """
    X, y, names, extra = MATRICES[path.suffix.lower()](path, wanted.aux)
    if wanted.needed and wanted.target != "y":
        raise BadInput(f"file {str(path)!r} holds its target under the name 'y'; give target y, not {wanted.target}")
    chosen = replace(wanted, target="y").select_columns([*names, "y", *extra])
    aux = extra | {chosen.header[j]: X[:, j].copy() for j in chosen.aux if j < X.shape[1]}
    X = np.ascontiguousarray(X if len(chosen.features) == X.shape[1] else X[:, list(chosen.features)])
    check_finite(X, y, chosen.names, "y")
    features = [RawColumn.from_numbers(name, column, STRICT) for name, column in zip(chosen.names, X.T, strict=True)]
    return RawTable(features, RawColumn.from_numbers("y", y, STRICT), aux, X=X)


def _array(values: NDArray[Any], key: str, ndim: int, path: Path) -> FloatArray:
    if values.dtype.kind not in "biuf":
        raise BadInput(f"array {key!r} of {str(path)!r} has the type {values.dtype}, not numbers; save it as float64")
    values = check_dimensions(values, f"array {key!r} of {str(path)!r}", ndim)
    with np.errstate(over="ignore"):  # a number beyond float64 is reported as not finite
        return values.astype(np.float64, copy=False)


def read_svmlight(path: Path, aux: Sequence[str]) -> Matrix:
    """Return an svmlight file as a dense array; columns are named `x` and their index in the file.

    If the index 0 occurs, the first feature is `x0`, otherwise `x1`. An index that no row mentions is a column of
    zeros.
    """
    targets, cells = list[float](), list[tuple[int, int, float]]()
    with path.open(encoding="utf-8", errors="replace") as handle:
        for line, text in enumerate(handle, start=1):
            words = text.partition("#")[0].split()
            if not words:
                continue
            pairs = [word.split(":", 1) for word in words[1:] if not word.startswith("qid:")]
            try:
                indices, values = [int(index) for index, _ in pairs], [float(value) for _, value in pairs]
                targets.append(float(words[0]))
            except ValueError:
                indices = [-1]
            if "_" in text or indices != sorted({*indices}) or min(indices, default=0) < 0:
                raise BadInput(
                    f"file {str(path)!r} has {text.strip()[:40]!r} in line {line}; write a number and index:value "
                    "pairs, with increasing indices from 0"
                )
            cells += zip([len(targets) - 1] * len(indices), indices, values, strict=True)
    if not targets:
        raise BadInput(f"file {str(path)!r} has no rows; give one line per row")
    numbers = np.array(cells or [(0, 0, 0.0)])
    rows, columns = numbers[:, 0].astype(np.int64), numbers[:, 1].astype(np.int64)
    first = min(1, int(columns.min()))
    check_numbers(path, len(targets), int(columns.max()) + 1)
    X = np.zeros((len(targets), int(columns.max()) + 1 - first))
    X[rows, columns - first] = numbers[:, 2]
    return Matrix(X, np.array(targets), [f"x{j + first}" for j in range(X.shape[1])], {})


MATRICES: dict[str, Callable[[Path, Sequence[str]], Matrix]] = {  # formats that store the target separately
    ".npz": read_npz, **dict.fromkeys((".svm", ".svmlight", ".libsvm"), read_svmlight),
}  # fmt: skip
OTHERS = {  # formats that pandas can read, with its function
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


NO_TARGET_GIVEN = "target: no column is given; name the column to predict"
NO_TIME_GIVEN = "time: no column is given; name the column of the survival times"
RECORD_START = re.compile(rb'\s*\{\s*"schema": *"sparsecv')  # first bytes of the JSON text of a record


def resolve_target(path: str | Path, target: str | int | None, fault: str = NO_TARGET_GIVEN) -> str | int:
    """Return the target of a file; the default is `y` for formats that store the target separately.

    Raises
    ------
    BadInput
        If the format requires a target name and none is given.

    Examples
    --------
    >>> resolve_target("a.npz", None), resolve_target("a.csv", "price")
    ('y', 'price')
    """
    if target is not None:
        return target
    if Path(path).suffix.lower() not in MATRICES:
        _refuse_record(Path(path))
        raise BadInput(fault)
    return "y"


@keywords_are(SurvivalColumns, Reading)
def read_dataset(
    path: str | Path | pd.DataFrame | ArrowTable,
    target: str | int,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    aux: Sequence[str] = (),
    two_words: bool | None = None,
    weights: str | None = None,
    **reading: Any,
) -> Dataset:
    r"""Return the data set of a file, or of a table of pandas, polars, DuckDB or Arrow.

    Parameters
    ----------
    path : str, Path, pandas.DataFrame, or a table with `__arrow_c_stream__`
        Data source. A table in memory is read as by :meth:`~sparsecv_mio.data.dataset.Dataset.from_frame`. The file
        formats are `.csv`, `.tsv` and `.txt` (UTF-8, one header line; also compressed: `.csv.gz`, `.csv.zip`),
        `.parquet`, `.feather` and `.arrow`, `.npz` (arrays `X`, `y` and optionally `names`), and svmlight text (`.svm`,
        `.svmlight`, `.libsvm`; features are named `x` and their index in the file).
    target : str or int
        Column name, or 0-based position if no column has that name; `y` for NPZ and svmlight files.
    features, drop : sequence of str, optional
        Columns to keep, or to drop, by name or position; at most one of the two. Other columns may hold anything.
    aux : sequence of str
        Group and fold columns (see :func:`sparsecv_mio.data.folds.fold_columns`); never features.
    two_words : bool, optional
        True if the target may hold two text values, for classification; they become 0 and 1. By default it may
        not, and the error for such a target names this parameter.
    weights : str, optional
        Column of row weights, or `file:FILE` with one number in each line. Rows of weight 0 are dropped, and `solve`
        assigns only the other rows to folds.
    **reading
        Reading options `sep`, `decimal`, `thousands`, `comment`, `skip_lines`, `encoding`, `header`, `index_col`, `na`,
        `na_indicator`, `na_values`, `keep_default_na`, `encode`, `order`, `categories`, `dates`; see
        :class:`~sparsecv_mio.data.reading_options.Reading`. In addition, `event`, `entry`, `strata` and `ties` for data
        of survival times, whose target is the time.

    Returns
    -------
    Dataset
        Features in file order, in the units of the file.

    Raises
    ------
    BadInput
        If the file is missing, empty or malformed, if a name is wrong, or if a used cell is ambiguous or not a finite
        number. The message names the column and the row (from 1, without the header).

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
    times = {name: reading.pop(name) for name in (field.name for field in fields(SurvivalColumns)) if name in reading}
    of_target = TargetColumns.from_fields(SurvivalColumns(**times))

    def complete(rows: Dataset) -> Dataset:
        rows = apply_weight_column(rows, weights)
        return with_survival(rows, of_target, times.get("ties")) if times else rows

    columns = (*aux, *weight_columns(weights), *of_target.names)
    if not isinstance(path, str | Path):
        frame = Dataset.from_frame(path, target, features, drop, columns, two_words, **reading)
        return complete(frame)
    how = Reading.from_keywords(**reading)
    wanted = Wanted(target, features, drop, columns, index=how.index_col, two_words=two_words)
    return complete(read_with_options(path, wanted, how))


class NewRows(NamedTuple):
    """Rows to predict, and the rows among them that have a target.

    `doubt` describes the error in the target if the file has a target that cannot be read. `ids` are the cells of the
    column that names the rows, including rows without a prediction; empty without such a column. The record skipped
    some lines of its own data. `skipped_lines` are those of these lines that were skipped in this file too, and
    `read_lines` are those that were read as rows.
    """

    data: Dataset
    has_target: BoolArray
    doubt: str
    ids: NDArray[Any] = np.empty(0)
    skipped_lines: str = ""
    read_lines: str = ""

    @property
    def n_invalid_rows(self) -> int:
        """Number of rows of the file that were dropped because a cell is invalid."""
        return len((self.data.reading and self.data.reading.invalid) or ())

    @property
    def line_warning(self) -> str:
        """Warning about lines that were skipped without a request; empty if there are none."""
        if not self.skipped_lines:
            return ""
        return (
            f"skipped in this file: {name_lines(self.skipped_lines)}; the data of the record skipped the same lines, "
            "and this file cannot be read with them"
        )


def name_lines(lines: str) -> str:
    """Return line numbers with their noun.

    Examples
    --------
    >>> name_lines("2"), name_lines("1:3,32")
    ('line 2', 'lines 1:3,32')
    """
    return f"line{'' if lines.isdigit() else 's'} {lines}"


def read_new_rows(
    path: str | Path, features: Sequence[str], target: str, learnt: Applied | None = None, id: str | None = None,
    columns: TargetColumns = NO_TARGET_COLUMNS, *, are_lines_given: bool = False,
) -> NewRows:  # fmt: skip
    """Return selected columns of new rows, whose target may be missing.

    Lines that the record skipped are numbered in its own file. In another file, the first of these lines are skipped
    only if the file cannot be read with them, or has fewer invalid rows without them. All of these lines are skipped if
    the last one is the last line of the file, such as totals.

    Parameters
    ----------
    path : str or Path
        Path of a file as for :func:`read_dataset`.
    features : sequence of str
        Names of features.
    target : str
        Name of the target.
    learnt : Applied, optional
        Preprocessing of the rows that the model was fitted to, which is applied to the new rows.
    id : str, optional
        Column that names the rows.
    columns : TargetColumns
        Columns of exposures, offsets and trials.
    are_lines_given : bool
        True if the lines to skip were given for this file.

    Returns
    -------
    NewRows
        The rows. A missing target is zero; if no row has a target, it has no name.

    Raises
    ------
    BadInput
        As for :func:`read_dataset`; the message names every missing column.
    """
    sources, how = features, STRICT
    if learnt is not None:
        sources, how = learnt.source_columns(features), learnt.how
    needs = " and the ".join(option for option, name in columns.by_option().items() if name is not None)
    rates = " (an exposure of 1 predicts rates)" if columns.exposure is not None else ""
    role = f"the model needs the {needs} of each row{rates}, but column"
    wanted = Wanted(target, sources, None, columns.names, needed=False, index=how.index_col, role=role)
    lines = how.skip_lines
    if learnt is None or lines is None or are_lines_given:
        return _read_rows_with(path, wanted, how, learnt, id)
    parts, failures, found = lines.split(","), list[BadInput](), list[NewRows]()
    n_lines = _count_lines(path)
    has_same_end = how.skipped_lines[-1].stop - 1 == n_lines
    n_present = len(parts)
    if Path(path).suffix.lower() not in PACKED:
        n_present = sum(lines.start <= n_lines for lines in how.skipped_lines)
    for count in (0, len(parts)) if has_same_end else range(len(parts) + 1):
        options = replace(how, skip_lines=",".join(parts[:count]) or None)
        try:
            rows = _read_rows_with(path, wanted, options, replace(learnt, how=options), id)
        except BadInput as error:
            failures.append(error)
            continue
        first = count + _begins_with_header(how, count)
        found.append(rows._replace(skipped_lines=",".join(parts[:count]), read_lines=",".join(parts[first:n_present])))
        if rows.n_invalid_rows == 0:
            break
    if not found:
        raise failures[0]
    return min(found, key=lambda rows: rows.n_invalid_rows)


def _begins_with_header(how: Reading, n_skipped: int) -> bool:
    """Return True if the first of some ranges of lines, after skipped ones, begins with the names of the columns."""
    skipped, read = how.skipped_lines[:n_skipped], how.skipped_lines[n_skipped : n_skipped + 1]
    header = next(line for line in itertools.count(1) if not any(line in lines for lines in skipped))
    return how.header and any(header in lines for lines in read)


def _count_lines(path: str | Path) -> int:
    """Return the number of the last line of a plain text file that is not empty."""
    with suppress(OSError), open(path, "rb") as stream:
        return max((number for number, line in enumerate(stream, start=1) if line.strip()), default=0)
    return 0


def _read_rows_with(
    path: str | Path, wanted: Wanted, how: Reading, learnt: Applied | None, id: str | None
) -> NewRows:  # fmt: skip
    try:
        data, doubt = read_with_options(path, wanted, how, learnt), ""
    except BadInput as error:
        data, doubt = read_with_options(path, replace(wanted, target=""), how, learnt), str(error)
    has_target = np.full(data.n, not doubt and data.target == wanted.target)
    has_target &= ~np.asarray(data.aux.get(NO_TARGET, False), dtype=bool)
    if id is None:
        return NewRows(data, has_target, doubt)
    named = replace(wanted, target="", features=(wanted.features or ())[:1], aux=(id,), role="id column")
    return NewRows(data, has_target, doubt, read_raw(path, named, how).aux[id])


def read_with_options(path: str | Path, wanted: Wanted, how: Reading, learnt: Applied | None = None) -> Dataset:
    """Return the data set of a file with parsed options.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    wanted : Wanted
        Selected columns.
    how : Reading
        Reading options.
    learnt : Applied, optional
        Preprocessing of other rows, which is applied to these rows.

    Raises
    ------
    BadInput
        As :func:`read_dataset`.
    """
    table = read_raw(path, wanted, how)
    if not wanted.needed and how.number_format == POINT:
        ambiguous = describe_ambiguous(table.evidence, POINT, are_new=True)
        check_ambiguous({} if ambiguous and _has_settled_column(path, wanted, how) else ambiguous)
    if learnt is None:
        return impute_and_encode(table, how, wanted)
    rows = apply_to_new_rows(table, learnt)
    return rows if rows.n == 0 < table.rows else check_dataset(rows)  # rows without a prediction may be all rows


def _has_settled_column(path: str | Path, wanted: Wanted, how: Reading) -> bool:
    """Return True if a column of the file, which the model may not need, shows that the decimal mark is one."""
    try:
        table = read_raw(path, replace(wanted, target="", features=None, aux=()), how)
    except BadInput:  # a column without a name, for example
        return False
    return any(evidence.is_settled for evidence in table.evidence.values())


def read_raw(path: str | Path, wanted: Wanted, how: Reading) -> RawTable:
    """Return the columns of a data file before any treatment.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    wanted : Wanted
        Selected columns.
    how : Reading
        Reading options.

    Raises
    ------
    BadInput
        As for :func:`read_dataset`, except that cells need not be numbers.
    """
    with _regular(path) as file:
        kind = _known_kind(file, how)
        if kind in TEXT:
            return text_tables.read_text_table(file, wanted, kind, how).with_categories(how)
        if kind in SUFFIXES:
            return read_columnar(file, wanted, how).with_categories(how)
        return read_matrix(file, wanted)


@contextmanager
def _regular(path: str | Path) -> Iterator[Path]:
    """Yield the path if it is a non-empty regular file; raise `BadInput` otherwise."""
    file = Path(path)
    shown = str(file)
    try:
        kind, missing = special(file), not file.exists()
    except (OSError, ValueError) as error:
        raise BadInput(f"file {shown!r} cannot be read: {reason(error)}") from None
    if missing and "://" in str(path):
        raise BadInput(f"file {str(path)!r}: a web address is not a file; download the file and give its path")
    if missing and shown == "-":
        raise BadInput("file '-': data cannot be read from standard input; give the path of a file")
    if missing:
        raise BadInput(f"file {shown!r} does not exist; check its path")
    if kind is not None:
        raise BadInput(f"{shown!r} is {kind}; name a data file")
    try:
        if file.stat().st_size == 0:
            raise BadInput(f"file {shown!r} is empty; give one header line and one line per row")
        yield file
    except OSError as error:
        raise BadInput(f"file {shown!r} cannot be read: {reason(error)}") from error
    except MemoryError as error:
        raise BadInput(f"file {shown!r} does not fit in memory as numbers; keep fewer columns or rows") from error


def _refuse_record(file: Path) -> None:
    """Raise `BadInput` if a file is a record, such as one that `solve --json` wrote."""
    try:
        with file.open("rb") as stream:
            is_record = RECORD_START.match(stream.read(100)) is not None
    except OSError:  # other messages describe files that cannot be read
        return
    if is_record:
        raise BadInput(
            f"file {str(file)!r} is a record, not a table of data; give the data from which it was made (`report`, "
            "`predict`, `plot` and `verify` take records)"
        )


def _known_kind(file: Path, how: Reading) -> str:
    """Return the format of a file; raise `BadInput` if it is not supported, or not with these options."""
    kind = text_tables.format_suffix(file)
    if kind in TEXT:
        return kind
    if kind in OTHERS:
        _refuse_record(file)
        call = OTHERS[kind].format(file=repr(str(file)))
        python = f"in Python give sc.solve({call}, target=...)"
        raise BadInput(f"file {str(file)!r} must first be read with pandas; {python}, or save it as .csv")
    if file.suffix.lower() in text_tables.PACKED or kind not in (*SUFFIXES, *MATRICES):
        kinds = ", ".join((*TEXT[:3], SUFFIXES[0], FEATHER[0], *MATRICES))
        shown = f"{kind}{file.suffix}" if file.suffix.lower() in text_tables.PACKED else file.suffix
        uses = f"use one of {kinds}, text also as .gz or .zip"
        raise BadInput(f"file {str(file)!r} has the unknown suffix {shown!r}; {uses}")
    if kind in SUFFIXES:
        text_only = set(how.changed_options()) - {*OF_CELLS, "index_col"}
        if text_only:
            raise BadInput(f"{min(text_only)}: requires a text table, but {str(file)!r} is not one; omit it")
    elif how.changed_options():
        raise BadInput(
            f"{how.changed_options()[0]}: requires a text table or Parquet; save {str(file)!r} as one of them"
        )
    return kind


def requested_columns(
    folds: AnyFolds = "", weights: str | None = None, id: str | None = None,
    of_target: TargetColumns = NO_TARGET_COLUMNS,
) -> dict[str, tuple[str, ...]]:  # fmt: skip
    """Return the columns that options need in addition to the features and the target, by the name of the option.

    Examples
    --------
    >>> found = requested_columns("groups:patient", "w", of_target=TargetColumns(offset="o"))
    >>> found["folds"], found["weights"], found["id"], found["offset"]
    (('patient',), ('w',), (), ('o',))
    """
    return {
        "folds": fold_columns(folds) if isinstance(folds, str) else (),
        "weights": weight_columns(weights),
        "id": () if id is None else (id,),
        **{option: () if name is None else (name,) for option, name in of_target.by_option().items()},
    }


@dataclass(frozen=True)
class TableColumns:
    """Columns of a file, a frame or a table.

    Attributes
    ----------
    target : str or int, optional
        Column to predict, by name or position; a `Dataset`, NPZ and svmlight files have their own.
    features, drop : sequence of str, optional
        Columns to keep, or to omit, by name or position; at most one of the two.
    """

    target: str | int | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None


def read_requested_data(
    options: Any, data: str | Path | pd.DataFrame | ArrowTable | Dataset, given: Mapping[str, Any],
    folds: AnyFolds = "",
) -> Dataset:  # fmt: skip
    """Return the data set of a file, a frame or a table for a function with its own options.

    Parameters
    ----------
    options : PathOptions or NearOptions
        Options with the loss and the columns that its target needs.
    given : mapping
        The given fields of :class:`TableColumns` and options of reading, by name; `time` is another name of `target`.
    folds : str or other folds, optional
        Folds; a text may name columns.
    """
    reading = {name: value for name, value in given.items() if name not in ("target", "time")}
    columns = requested_columns(folds, of_target=TargetColumns.from_fields(options))
    target = choose_target(given.get("target"), given.get("time"))
    return read_data(data, target, reading, columns, two_words=options.loss.target.has_classes)


def choose_target(target: Any, time: Any) -> Any:
    """Return the target.

    Parameters
    ----------
    target : str or int, optional
        Column to predict.
    time : str or int, optional
        Another name of `target`, for survival times.
    """
    if target is not None and time is not None:
        raise BadInput(f"time: {time!r} is the target, but target {target!r} is given too; leave out one of the two")
    return target if time is None else time


def read_data(
    data: str | Path | pd.DataFrame | ArrowTable | Dataset, target: str | int | None, reading: Mapping[str, Any],
    columns: Mapping[str, Sequence[str]], *, two_words: bool = False,
) -> Dataset:  # fmt: skip
    """Return the data set of a file, a frame or a table; a data set is returned unchanged.

    Parameters
    ----------
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        The rows.
    target : str or int, optional
        Column to predict, by name or position; formats that store the target need none.
    reading : mapping
        Options of :func:`~sparsecv_mio.data.readers.read_dataset`, by name.
    columns : mapping
        Further columns to keep, from :func:`requested_columns`.
    two_words : bool
        True if the target may have two text values, for classification.

    Raises
    ------
    BadInput
        If an option, column or row is wrong; the message names it.
    """
    if isinstance(data, Dataset):
        for name in reading:
            raise BadInput(
                f"{name}: applies to a file or a frame, and these data have been read already; leave this option out"
            )
        if target not in (None, data.target):
            raise BadInput(
                f"target: {target!r} is given, but the data already have the target {data.target!r}; leave this "
                "option out"
            )
        return data
    aux = tuple(chain.from_iterable(columns.values()))
    fault = NO_TIME_GIVEN if columns.get("event") else NO_TARGET_GIVEN
    with _name_option_of_column(columns):
        if isinstance(data, str | Path):
            return read_dataset(data, resolve_target(data, target, fault), aux=aux, two_words=two_words, **reading)
        if target is None and (hasattr(data, "columns") or is_arrow_table(data)):
            raise BadInput(f"{fault} by {fault.partition(':')[0]}=NAME")
        return Dataset.from_frame(data, "" if target is None else target, aux=aux, two_words=two_words, **reading)


@contextmanager
def _name_option_of_column(columns: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Name the option that requests a missing column, instead of all options that may request columns."""
    try:
        yield
    except WrongColumn as error:
        option = next((option for option, names in columns.items() if error.name in names), None)
        if error.role != Wanted.role or option is None:
            raise
        raise WrongColumn(f"{option}: column", error.name, error.fault) from None


def split_rows(
    dataset: Dataset, folds: AnyFolds = "10", seed: int = 0, weights: str | None = None
) -> tuple[Dataset, FoldPlan]:
    """Return the data with row weights, without rows of weight 0, and the folds of the remaining rows.

    Parameters
    ----------
    dataset : Dataset
        Data from :func:`read_data`, in the form of their loss.
    folds : FoldPlan, str, int, splitter, labels or pairs
        Definition of the folds, as for :func:`~sparsecv_mio.data.folds.make_folds`.
    seed : int
        Seed of the shuffle.
    weights : str, optional
        Column of the row weights in `aux`, or `file:F`.

    Raises
    ------
    BadInput
        If the folds or the weights are wrong.
    """
    if weights is None:
        plan = make_folds(folds, dataset, seed)
        is_marked = dataset.weights is None or plan.spec.endswith(WEIGHTED)
        return dataset, plan if is_marked else replace(plan, spec=plan.spec + WEIGHTED)
    if dataset.weights is not None:
        raise BadInput(
            f"weights: {weights!r} is given, but the data already have the weights {dataset.weights!r}; leave this "
            "option out"
        )
    for column in weight_columns(weights):
        if column not in dataset.aux:
            raise BadInput(f"weights: {column!r} is not stored with these data; read the data with aux=({column!r},)")
    row_weights, by_row = weights_of(dataset, weights), is_by_row(folds, dataset)
    kept, plan = weighted(dataset, row_weights, lambda rows: make_folds(folds, rows, seed), name=weights, by_row=by_row)
    return note_rows_of_weight_0(dataset, kept), plan

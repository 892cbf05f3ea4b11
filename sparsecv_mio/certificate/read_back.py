"""Functions that read records, and the data that a record describes, from files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, NearRecord, PathRecord
from sparsecv_mio.certificate.parts import DataInfo, FoldInfo, applied_reading, read_schema
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.column_choice import Wanted
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import WEIGHTED, FoldPlan
from sparsecv_mio.data.folds import AnyFolds, fold_columns, is_by_row, make_folds, outer_folds
from sparsecv_mio.data.frames import read_frame
from sparsecv_mio.data.loss_targets import as_counts, encode_classes, expand_trials, with_offsets
from sparsecv_mio.data.readers import read_with_options
from sparsecv_mio.data.reading_options import STRICT, Applied, Reading
from sparsecv_mio.data.survival_columns import with_survival
from sparsecv_mio.data.weights import FILE, weight_columns, weighted, weighted_rows, weights_of, with_class_weight
from sparsecv_mio.errors import BadInput, CorruptStore, MissingFile, WrongColumn, WrongSeparator
from sparsecv_mio.files import check_readable
from sparsecv_mio.targets import TargetColumns, Ties

AnyRecord = Record | PathRecord | FitRecord | CommonRecord
StoredRecord = AnyRecord | NearRecord

RECORD_BYTES = 1 << 30  # maximum size of a record, about ten million folds


def read_record(path: str | os.PathLike[str]) -> StoredRecord:
    """Return the record stored at `path`, of any schema.

    Raises
    ------
    CorruptStore
        If the file cannot be read, is not a regular file, is larger than 1 GiB, or is not a record. A file that does
        not exist raises its subclass `MissingFile`, which is also a `FileNotFoundError`.
    """
    if not isinstance(path, str | os.PathLike):
        raise BadInput(f"path: a {type(path).__name__} is not a path; give the file of a record")
    if not os.path.exists(path):
        raise MissingFile(f"record {path}: does not exist; check the path")
    check_readable(path, "record", CorruptStore, RECORD_BYTES)
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except OSError as error:
        raise CorruptStore(f"cannot read record {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CorruptStore(f"record {path}: is not a text file; name a JSON record") from None
    others = (PathRecord, FitRecord, NearRecord, CommonRecord)
    try:
        schema = read_schema(text)
        return next((kind for kind in others if kind.schema_name == schema), Record).from_json(text)
    except CorruptStore as error:
        raise CorruptStore(f"record {path}: {str(error).removeprefix('record: ')}") from None


def unknown_fields(path: str | os.PathLike[str], record: StoredRecord) -> list[str]:
    """Return the fields of a stored record that this version does not know, in the order of the file.

    Unknown fields are skipped, so that records with later additions can be read; they are not verified.
    """
    with open(path, encoding="utf-8") as stream:
        return list(dict.fromkeys(_unknown(json.load(stream), json.loads(record.to_json()), "")))


def _unknown(stored: Any, known: Any, path: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(known, dict):
        for name, value in stored.items():
            if name in known:
                yield from _unknown(value, known[name], f"{path}.{name}".lstrip("."))
            else:
                yield f"{path}.{name}".lstrip(".")
    elif isinstance(stored, list) and isinstance(known, list):
        for item, model in zip(stored, known, strict=False):
            yield from _unknown(item, model, f"{path}[]")


def read_drawable_record(path: str | os.PathLike[str]) -> AnyRecord:
    """Return the record stored at `path`, of a kind that has figures and reports.

    Raises
    ------
    CorruptStore
        As for `read_record`, and if the table of the record is empty.
    BadInput
        If the record is of another kind.
    """
    stored = read_record(path)
    if isinstance(stored, NearRecord):
        raise BadInput(f"record {path} has no figures; name a record of `solve`, `path` or `fit`")
    if (isinstance(stored, Record | CommonRecord) and not stored.table) or (
        isinstance(stored, PathRecord) and not stored.path
    ):
        raise CorruptStore(f"record {path}: its table is empty; run the command of the record again")
    return stored


def adapt_to_format(
    applied: Applied | None, names: tuple[str, ...], reading: Mapping[str, Any] | None
) -> Applied | None:
    """Return the reading options of a record for a file of another format.

    Parameters
    ----------
    applied : Applied or None
        Preprocessing of the file of the record.
    names : tuple of str
        Features of the record.
    reading : dict, optional
        Options of the format, by name; None changes nothing.

    Raises
    ------
    BadInput
        If an option is invalid; the message names it.
    """
    changes = {name: value for name, value in (reading or {}).items() if value is not None}
    if not changes:
        return applied
    how = STRICT if applied is None else applied.how
    words = {declared_field.name: getattr(how, declared_field.name) for declared_field in fields(Reading)} | changes
    way = Reading.from_keywords(**words)
    return Applied(way, names) if applied is None else replace(applied, how=way)


def data_of(record: StoredRecord, data: Any, reading: Mapping[str, Any] | None = None) -> Dataset:
    """Return the data of a record, with the columns that its folds, weights and offsets need.

    Parameters
    ----------
    record : record of any command
        Record.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data; a file or a table is read as the record states, and a `Dataset` is returned unchanged.
    reading : dict, optional
        Format of the file, if it differs from that of the record.

    Raises
    ------
    BadInput
        As :func:`sparsecv_mio.data.readers.read_dataset`.
    """
    if isinstance(data, Dataset):
        return data
    weights, aux = record.data.weights, list[str]()
    folds = getattr(record, "folds", None)
    if folds is not None:
        aux += fold_columns(folds.spec.removesuffix(WEIGHTED) if weights else folds.spec)
    aux += [*weight_columns(weights or None), *TargetColumns.from_fields(record.data).names]
    return read_again(data, record.data, aux, reading)


def read_again(path: Any, info: DataInfo, aux: Sequence[str] = (), reading: Mapping[str, Any] | None = None) -> Dataset:
    """Return the data of a record from their file, or from a table in memory, with the options of the record.

    Parameters
    ----------
    path : path, pandas.DataFrame or table with `__arrow_c_stream__`
        File or table with the data.
    info : DataInfo
        Description of the data in the record.
    aux : sequence of str
        Columns of folds and weights.
    reading : dict, optional
        Format of the file, if it differs now.

    Raises
    ------
    BadInput
        As :func:`sparsecv_mio.data.readers.read_dataset`.
    """
    stored = applied_reading(info.reading)
    applied = adapt_to_format(stored, info.names, reading)
    how = STRICT if applied is None else applied.how
    columns = info.names if applied is None else applied.columns
    words = applied is not None and info.target in applied.levels
    wanted = Wanted(info.target, columns, None, tuple(aux), two_words=words, sure=True)
    if not isinstance(path, str | Path):
        try:
            return read_frame(path, wanted, how)
        except WrongColumn as error:
            if error.role != "target":
                raise
            separate = f"; give X and y as Dataset.from_arrays(X, y, target={info.target!r})"
            raise WrongColumn(error.role, error.name, f"{error.fault}{separate}") from None
    try:
        data = read_with_options(path, replace(wanted, index=how.index_col), how)
    except WrongSeparator:
        if applied is None or any((reading or {}).values()):
            raise
        raise BadInput(
            f"file {str(path)!r} does not have the separator {how.sep!r} of the data of the record: give the file "
            "from which the record was made"
        ) from None
    if applied is stored:
        return data
    read = data.reading  # another format of the same cells does not change the preprocessing
    return replace(data, reading=None if stored is None or read is None else replace(read, how=stored.how))


def adapt_to_record_loss(record: StoredRecord, dataset: Dataset) -> Dataset:
    """Return the data of a record in the form of its loss.

    With logistic loss the target becomes 0 and 1, with trials and class weights if the record has them; offsets are
    added. Data of other records are returned unchanged.
    """
    classes, columns = getattr(record, "classes", None), TargetColumns.from_fields(record.data)
    for option, name in columns.by_option().items():
        _check_named_file(f"data.{option}", name or "")
    if getattr(record, "counts", None) is not None:
        return with_offsets(as_counts(dataset, whole=False), columns)
    if record.data.event is not None:
        return with_survival(dataset, columns, None if record.data.ties is None else Ties(record.data.ties))
    if classes is None:
        return dataset
    dataset = with_offsets(dataset, columns)
    if columns.trials is not None:
        return with_class_weight(expand_trials(dataset, columns.trials), record.data.class_weight)
    return with_class_weight(encode_classes(dataset, (classes.negative, classes.positive)), record.data.class_weight)


def has_weights(info: DataInfo, dataset: Dataset) -> bool:
    """Return True if a data set without row weights has those of a record."""
    name = info.weights or ""
    return dataset.weights is None and (name in dataset.aux or name.startswith(FILE))


def _check_named_file(field: str, text: str) -> None:
    """Raise `BadInput` if an untrusted record names a file outside the working directory."""
    place = text.removeprefix(FILE)
    if place == text or "\0" in place or Path(os.path.realpath(place)).is_relative_to(os.path.realpath(os.curdir)):
        return
    raise BadInput(
        f"{field}: the file {place[:80]!r} of the record is outside the working directory and is not opened; run "
        "the command in a folder that contains the file, or pass folds and weights in Python"
    )


def rows_and_folds_of_record(record: Record, data: Any, folds: AnyFolds | None = None) -> tuple[Dataset, FoldPlan]:
    """Return the data of a record in the form of its loss, with row weights, and its folds.

    Parameters
    ----------
    record : Record
        Record of a search.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`, if the record does not describe them.
    """
    rows = adapt_to_record_loss(record, data_of(record, data))
    if has_weights(record.data, rows):
        return apply_weights_and_folds(record.data, record.folds, rows, folds)
    rows = with_classes_as_in_folds(record.folds, rows)
    return rows, folds_again(record.folds, rows, folds)


FROM_PYTHON = ("labels", "splitter:")  # specs of folds that no text describes


def is_from_python(folds: FoldInfo | FoldPlan) -> bool:
    """Return True if folds came from labels, pairs or a splitter, so that no text describes them."""
    return folds.spec.startswith(FROM_PYTHON)


def folds_again(info: FoldInfo, dataset: Dataset, folds: AnyFolds | None = None) -> FoldPlan:
    """Assign the rows of a record's data to its folds again; a plain number of folds ignores the classes.

    Parameters
    ----------
    info : FoldInfo
        The folds as the record states them.
    dataset : Dataset
        The data, with the column that the folds need in `aux`.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        The folds as given to `solve`, if the record does not describe them.

    Raises
    ------
    BadInput
        As for `make_folds`, if the record names a file outside the working directory, or if the folds came from Python
        and are not given.
    """
    if folds is not None:
        plan = make_folds(folds, dataset, info.seed or 0)
        lacks_mark = dataset.weights is not None and info.spec == plan.spec + WEIGHTED
        return replace(plan, spec=info.spec) if lacks_mark else _name_as_in_record(plan, info)
    if is_from_python(info):
        raise BadInput(
            f"folds: {info.spec!r} of the record was made in Python, and the record does not describe it; in Python "
            "pass the folds again, as in sc.verify(record, data, folds=...)"
        )
    _check_named_file("folds.spec", info.spec)
    ordered = replace(with_classes_as_in_folds(info, dataset), classes=None)
    return make_folds(info.spec, ordered, info.seed or 0)


def remake_outer_folds(said: FoldInfo, dataset: Dataset, plan: FoldPlan) -> FoldPlan:
    """Return the outer folds that a record describes, made from its data and folds, to be compared with it.

    Parameters
    ----------
    said : FoldInfo
        Description of the outer folds in the record.
    dataset : Dataset
        Data of the record.
    plan : FoldPlan
        Folds of the record.

    Raises
    ------
    BadInput
        If the data have no such folds.
    """
    drawn = replace(plan, given_seed=said.seed or 0)
    outer = outer_folds(said.k, drawn, dataset)
    if outer.digest != said.digest and plan.spec.startswith("groups:"):
        with suppress(BadInput):  # records of older versions kept folds of groups together
            outer = outer_folds(said.k, drawn, dataset, by_fold=True)
    return replace(outer, spec=said.spec) if said.spec == str(said.k) else outer  # as older records name them


def with_classes_as_in_folds(info: FoldInfo, dataset: Dataset) -> Dataset:
    """Return the data with the order of the classes from which the record made stratified folds.

    Older records made them from the order in which the positive class is the second one.

    Parameters
    ----------
    info : FoldInfo
        The folds as the record states them.
    dataset : Dataset
        The data.
    """
    if not dataset.are_classes_swapped or "stratified:" not in info.spec or is_from_python(info):
        return dataset
    as_coded = replace(dataset, are_classes_swapped=False)
    older = make_folds(info.spec, replace(as_coded, classes=None), info.seed or 0)
    return as_coded if older.digest == info.digest else dataset


def _name_as_in_record(plan: FoldPlan, info: FoldInfo) -> FoldPlan:
    """Return a plan with the spec of the record if it has the same folds, which pairs and a splitter may both give."""
    same = is_from_python(info) and is_from_python(plan) and plan.digest == info.digest
    return replace(plan, spec=info.spec) if same else plan


def weighted_again(info: DataInfo, dataset: Dataset) -> Dataset:
    """Return the data of a record with the weights that the record names, if any.

    Parameters
    ----------
    dataset : Dataset
        Data with the column of weights in `aux`; returned unchanged if they have weights already.
    """
    if not has_weights(info, dataset):
        return dataset
    name = str(info.weights)
    _check_named_file("data.weights", name)
    return weighted_rows(dataset, weights_of(dataset, name), name, repeat=info.total_weight is None)


def apply_weights_and_folds(
    data: DataInfo, info: FoldInfo, dataset: Dataset, folds: AnyFolds | None = None
) -> tuple[Dataset, FoldPlan]:
    """Return the data of a record with row weights, and its folds.

    Parameters
    ----------
    data : DataInfo
        Description of the data of a record with weights.
    info : FoldInfo
        Description of the folds in the record.
    dataset : Dataset
        All rows, with the column of weights in `aux`.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`, or a plan of the rows with positive weight, if the record does not describe them.

    Returns
    -------
    data : Dataset
        Rows with positive weight.
    folds : FoldPlan
        Folds of these rows.
    """
    if isinstance(folds, FoldPlan) and folds.spec.endswith(WEIGHTED):
        return weighted_again(data, dataset), folds
    column, spec = str(data.weights), info.spec.removesuffix(WEIGHTED)
    _check_named_file("data.weights", column)
    by_row = is_by_row(spec if folds is None else folds, dataset)

    def deal(rows: Dataset) -> FoldPlan:
        return folds_again(replace(info, spec=spec), rows, folds)

    repeats = data.total_weight is None
    row_weights = weights_of(dataset, column)
    rows, plan = weighted(dataset, row_weights, deal, name=column, by_row=by_row, repeat=repeats)
    return rows, _name_as_in_record(plan, info)

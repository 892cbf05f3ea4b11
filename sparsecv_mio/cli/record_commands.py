"""The commands `verify`, `predict`, `report`, `cite` and `plot`, which read a record, and the files of `--proof`."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

from sparsecv_mio.cli import ending, session
from sparsecv_mio.cli.command_options import DataFile, Given, Place, option, with_declared_options
from sparsecv_mio.digits import several
from sparsecv_mio.errors import (
    BadInput,
    CorruptStore,
    Interrupted,
    OutOfTime,
    ProofImpossible,
    SparseCVError,
    VerificationFailed,
    WrongColumn,
)
from sparsecv_mio.files import argument, csv_lines, write_text
from sparsecv_mio.model_space import FEW_FEATURES
from sparsecv_mio.satellites import registered
from sparsecv_mio.words import InvalidRows, Within

if TYPE_CHECKING:
    from sparsecv_mio.arrays import FloatArray
    from sparsecv_mio.certificate.checked_fields import VerifyReport
    from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, PathRecord
    from sparsecv_mio.certificate.read_back import StoredRecord
    from sparsecv_mio.certificate.records import Classes, Record
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.data.readers import NewRows
    from sparsecv_mio.fits.prediction_intervals import FoldModels
    from sparsecv_mio.model_space import Restrictions
    from sparsecv_mio.report.time_pictures import FittedHazards
    from sparsecv_mio.search.options import ModelOptions
    from sparsecv_mio.search.state.context import Snapshot


def refuse_early(
    path: str | None, restrictions: Restrictions | None, weights: str | None,
    how: ModelOptions, other: str | None = None,
) -> None:  # fmt: skip
    """Raise an error for options that proofs do not support, if a proof is requested.

    Parameters
    ----------
    path : str or None
        Value of `--proof`.
    weights : str or None
        Value of `--weights`.
    how : options
        Options with the loss, the class weights and the columns of the target.
    other : str, optional
        Another option that proofs do not support.
    """
    if path is not None:
        from sparsecv_mio.proofs.proof_writing import refuse_options

        unproved = (f"--{option}" for option in ("offset", "trials") if getattr(how, option) is not None)
        other = other or next(unproved, None)
        refuse_options(restrictions, weights, how.loss, how.class_weight, other)
        if not any(registered("PROOF_CHECKER")):
            raise BadInput("--proof: the checker of proofs, sparsecv_mio.check, is not installed; install it again")


def proof_files(
    record: Record | PathRecord | FitRecord, dataset: Dataset, path: str | None, plan: FoldPlan | None = None,
    found: Snapshot | None = None, *, data: str, json: str | None = None, quiet: bool = False,
) -> list[Callable[[], None]]:  # fmt: skip
    """Return the functions that write the proof and report it, for `ending.deliver`; empty without a request.

    Parameters
    ----------
    path : str or None
        Value of `--proof`.
    plan : FoldPlan, optional
        Folds of a cross-validation.
    found : Snapshot, optional
        State of the search at its end.
    data : str
        File of the data, for the line with the command that checks the proof.
    json : str, optional
        Value of `--json`; with `-` the line is printed on standard error.
    quiet : bool
        True to omit the line.
    """
    if path is None:
        return []
    from sparsecv_mio.certificate.own_rows import fold_preprocessing
    from sparsecv_mio.certificate.read_back import adapt_to_record_loss
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.cli import live
    from sparsecv_mio.data.rows_of_folds import OfTrainingRows
    from sparsecv_mio.proofs.proof_lines import stated_cells, unfinished_file
    from sparsecv_mio.proofs.proof_writing import write_proof

    checker = next(registered("PROOF_CHECKER"))
    rows = adapt_to_record_loss(record, dataset)
    within = fold_preprocessing(record) if isinstance(record, Record) else OfTrainingRows()
    cells, has_holes = stated_cells(rows, within), within.na is Within.FOLDS

    def write() -> None:
        modes, table = list[str](), data
        if not quiet:
            ending.tell(f"writing the proof to {path}, without a time limit; Ctrl-C ends it and keeps the answer")
        try:
            with live.proof_lines(quiet) as progress:
                write_proof(
                    record, rows, path, plan, found,
                    lambda place: modes.append(checker.find_check_mode(place, cells, rows.y)), progress,
                )  # fmt: skip
        except ProofImpossible as error:
            return ending.tell(f"warning: {error}; the answer is not affected")
        except KeyboardInterrupt:
            unfinished, advice = unfinished_file(path), "no part of the proof is stored"
            if unfinished.exists():
                advice = f"the same command continues from {unfinished}"
            raise Interrupted(
                f"--proof: the proof was interrupted and {path} is not written; the answer is not affected; {advice}"
            ) from None
        if not checker.is_read_alike(data, replace(rows, X=cells), has_holes):
            table = f"{path}{session.NUMBERS}"
            numbers = ([None if math.isnan(cell) else cell for cell in row] for row in cells.tolist())
            lines = ([*row, y] for row, y in zip(numbers, rows.y.tolist(), strict=True))
            write_text(table, csv_lines(chain([[*rows.names, rows.target]], lines), "\t"), "table of numbers")
        if quiet:
            return
        failure = ending.show(lambda screen: screen.print(_written(path, table, modes[0]), soft_wrap=True), json)
        if failure is not None:
            raise failure

    return [write]


def _written(path: str, data: str, mode: str) -> str:
    """Return the line with the path and size of a proof, and the command and mode that check it.

    If `sparsecv check` would read other numbers from the file, the numbers are written to a separate table.
    """
    from rich.filesize import decimal

    size = decimal(os.path.getsize(path), precision=0)
    words = ["sparsecv", "check", argument(path), argument(data), *(["--mode", mode] if mode == "exact" else [])]
    return f"proof: {path} ({size}); to check it, run: {shlex.join(words)}"


GZIP = b"\x1f\x8b"  # first bytes of a proof file
VERIFY_CODES = "Exit codes: 0 verified, 1 verification failed (the message names the field), 2 bad input."


@with_declared_options()
def verify(
    record: Annotated[str, Place("RECORD", "JSON record of `solve`, `path`, `near` or `fit`.")],
    data: DataFile,
    *,
    reading: Given,
    full: bool = option(False, "", "List every field that is not recomputed but only compared with bounds, and "
                                   "the checks that compute these bounds."),
    quiet: bool = option(False, "", "Print only fields that disagree or could not be verified.", also="-q"),
) -> int:  # fmt: skip
    """Check a record against the data.

    The command uses plain linear algebra instead of the search code. It makes the folds again, refits every support and
    recomputes the errors. With squared-error loss and at most 12 non-constant features, it tries every subset of every
    pair; with 13 to 15, every subset of the reported pair and some others. The first line states the verdict and the
    claims that were not verified. The other lines state whether each field was recomputed, bounded or only read.
    """
    from sparsecv_mio.certificate.read_back import data_of, unknown_fields
    from sparsecv_mio.certificate.verify import verify as check
    from sparsecv_mio.cli.live import counting_bar
    from sparsecv_mio.report.record_tables import print_verification

    stored = _record_before(record, data, "verify")
    dataset = data_of(stored, data, reading)
    with counting_bar(quiet, "parts of this check (the total is a maximum)") as progress:
        report = check(stored, dataset, progress=progress)
    failure, hint = None, _advise_proof(stored, dataset, report)
    if not quiet or not report.ok or report.caveat:
        failure = ending.show(lambda screen: print_verification(screen, report, quiet, full, hint))
    if unknown := unknown_fields(record, stored):
        ending.tell(f"not checked: {', '.join(unknown)}; this version does not know these fields")
    if report.failures:
        first, more = report.failures[0].field, len(report.failures) - 1
        others = f" (and {more} more)" if more else ""
        raise VerificationFailed(f"verification failed: field {first}{others}, as printed above", first)
    if failure is not None:
        raise failure
    return 0


def _advise_proof(stored: StoredRecord, dataset: Dataset, report: VerifyReport) -> str:
    """Return the commands that prove what `verify` cannot, or why there is no proof; empty for other records."""
    from sparsecv_mio.certificate.fit_records import CommonRecord, NearRecord, PathRecord
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.certificate.restrictions import restrictions_of
    from sparsecv_mio.proofs.proof_writing import refuse_unsupported_record

    if isinstance(stored, NearRecord | CommonRecord) or not (report.is_optimality_open and stored.loss.is_quadratic):
        return ""
    command = "solve" if isinstance(stored, Record) else "path" if isinstance(stored, PathRecord) else "fit"
    advice = f"`{command} --proof PROOF` and `sparsecv check PROOF DATA` verify optimality for any number of features"
    try:
        refuse_unsupported_record(stored, dataset)
    except OutOfTime:
        return f"{advice}, if the search ends with a certified choice"
    except BadInput as error:
        reason, restrictions = str(error).partition("; ")[0], restrictions_of(stored)
        comparison = "; a search with another --backend is an independent comparison" if restrictions else ""
        return f"no proof can verify the optimality of this record ({reason}){comparison}"
    return advice


def _has_prefix(path: str, mark: bytes) -> bool:
    """Return True if a file begins with these bytes."""
    if not Path(path).is_file():
        return False
    with open(path, "rb") as stream:
        return stream.read(len(mark)) == mark


def _record_before(record: str, data: str, command: str) -> StoredRecord:
    """Return the record of a command; the error names its file, and reports swapped arguments."""
    from sparsecv_mio.certificate.read_back import read_record

    try:
        return read_record(record)
    except CorruptStore as error:
        more = "; for a proof use `sparsecv check`" if _has_prefix(record, GZIP) else ""
        if _has_prefix(data, b"{"):
            swapped = shlex.join(["sparsecv", command, argument(data), argument(record)])
            more = f"; the record is the first argument: {swapped}"
        raise CorruptStore(f"{str(error).replace('record:', f'record {record}:', 1)}{more}") from None


PREDICT_CODES = "Exit codes: 0 predictions written, 2 bad input (the message names a missing column)."


@with_declared_options()
def predict(
    record: Annotated[str, Place("RECORD", "JSON record of `solve` or `fit`.")],
    data: Annotated[
        str, Place("DATA", "File of new rows that has the columns of the model.")
    ],
    *,
    reading: Given,
    id: str | None = option(None, "COLUMN", "Column of row labels, such as names or identifiers; written next to each "
                                            "prediction. [none]"),
    interval: float | None = option(None, "LEVEL", "Also write prediction intervals (CV+, from the fold models) that "
                                                   "contain the target of about this share of new rows, such as 0.9; "
                                                   "requires --train. [none]"),
    at: float | None = option(None, "TIME", "With --loss cox: also write the probability to survive this time, "
                                            "which is at most the last time of the training rows; requires --train. "
                                            "[none]"),
    train: str | None = option(None, "FILE", "Data of the record, for --interval and --at. [none]"),
    out: str | None = option(None, "FILE", "Write the predictions to this CSV file. [standard output, -]", also="-o"),
    invalid_rows: str = option(InvalidRows.ERROR, "",
                               "Treatment of rows with an unknown level, a text instead of a number, an invalid "
                               "exposure or offset, or a missing value that is not imputed. error: stop with a "
                               "message; na: no prediction (NA), with a warning that lists the rows.", InvalidRows),
    threshold: float | None = option(None, "P", "With --loss logistic: predict the positive class if its probability "
                                                "is at least P. [0.5]"),
    quiet: bool = False,
) -> int:  # fmt: skip
    """Predict new rows with the model of a record.

    With --loss logistic, the predictions are the probability of the positive class and the class. With --loss poisson,
    they are expected counts; if the model has exposures or offsets, the file needs their column. With --loss cox, they
    are log hazard ratios, compared with a row of zeros.

    The file needs only the columns of the model, in any order. If it also has the target, the errors of the predictions
    are printed next to the cross-validation error. Each line begins with the number of its row, counted from 1 without
    the header. NA means that the row has no prediction.

    The file is read in the same way as the data of the record, unless options give another format. Lines that were
    skipped in the data of the record, such as units, are skipped in this file only if it cannot be read otherwise.
    """
    out = None if out == "-" else out
    session.check_outputs({"--out": out}, [record, data, *filter(None, [train])])
    stored = _one_model(_record_before(record, data, "predict"), record)
    hazards = None if at is None else _fit_hazards(stored, train, at)
    folds = None if hazards is not None and interval is None else _fold_models(stored, interval, train)
    new, are_read_alike = _read_new_rows(stored, folds, data, reading, id, invalid_rows, at is not None)
    classes = getattr(stored, "classes", None)
    _check_threshold(threshold, classes)
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        table = _predict_rows(stored, folds, new, interval)
        survival = None if hazards is None else table[:, 0] + math.nan
        if hazards is not None and survival is not None and at is not None:
            places = new.data.places
            survival[places] = hazards.predict_survival(stored.data, new.data, table[places, 0], at)
    read = new.data.reading.notes if new.data.reading is not None and are_read_alike else ()
    notes = [f"{several(new.data.n, 'row')} predicted", *read]
    notes += _describe_fit(stored, new, table, threshold, data, reading)
    if interval is not None and folds is not None and new.data.n:
        import numpy as np

        from sparsecv_mio.report.record_tables import coverage_lines

        targets = np.where(new.has_target, new.data.y, np.nan)
        notes += coverage_lines(table[new.data.places, 1:], interval, targets, folds.record)
    notes += _describe_read_lines(new)
    columns = _predicted_columns(table, classes, threshold)
    if survival is not None:
        columns["survival"] = survival.tolist()
    lines = session.csv_of_rows(range(len(table)), {} if id is None else {id: new.ids.tolist()}, columns)
    warnings = [*(str(each.message) for each in caught), *_warn_of_rows(new, folds)]
    return _give(lines, [] if quiet else notes, ending.warnings_to_print(warnings, quiet), out)


def _read_new_rows(
    stored: Record | FitRecord | CommonRecord,
    folds: FoldModels | None,
    path: str,
    reading: Given,
    id: str | None,
    invalid_rows: str,
    needs_strata: bool = False,
) -> tuple[NewRows, bool]:
    """Return the rows to predict, and whether they are read as the data of the record were read."""
    import numpy as np

    from sparsecv_mio.certificate.parts import applied_reading
    from sparsecv_mio.certificate.predicting import drop_rows_without_offset
    from sparsecv_mio.certificate.read_back import adapt_to_format
    from sparsecv_mio.data.readers import read_new_rows
    from sparsecv_mio.data.reading_options import STRICT, Applied
    from sparsecv_mio.targets import TargetColumns

    learnt = adapt_to_format(applied_reading(stored.data.reading), stored.data.names, reading)
    are_read_alike = learnt is not None
    if invalid_rows == InvalidRows.NA:
        learnt = replace(learnt or Applied(STRICT, stored.data.names), invalid={})
    used = dict.fromkeys((*stored.predictor.coefficients, *(folds.names if folds else ())))
    features, columns = tuple(used) or stored.data.names, TargetColumns.from_fields(stored.data)
    read = partial(
        read_new_rows, path, features, stored.data.target, learnt, id, are_lines_given=reading["skip_lines"] is not None
    )
    try:
        new = read(columns)
    except WrongColumn as error:  # only errors of predictions need columns such as trials, events or strata
        needed = columns.predictor_columns._replace(strata=columns.strata if needs_strata else None)
        if error.name in needed.names or error.name not in columns.names:
            raise
        new = read(needed)
        option = next(option for option, name in columns.by_option().items() if name == error.name)
        doubt = f"the file has no column {error.name!r} ({option})" if new.has_target.any() else new.doubt
        new = new._replace(has_target=new.has_target & False, doubt=doubt)
    if invalid_rows == InvalidRows.NA:
        rows = drop_rows_without_offset(stored.data, new.data, columns.predictor_columns)
        new = new._replace(data=rows, has_target=new.has_target[np.isin(new.data.places, rows.places)])
    return new, are_read_alike


def _fit_hazards(stored: Record | FitRecord | CommonRecord, train: str | None, at: float) -> FittedHazards:
    """Return the model of survival times with its baseline hazards, from the data of the record.

    A time at which no training row has been observed is refused: the data do not determine the survival there.
    """
    if not stored.loss.target.has_times or stored.data.has_matched_sets:
        raise BadInput("--at: requires a record with Cox loss and without matched sets; leave this option out")
    if train is None:
        raise BadInput("--at: also give --train DATA, the data of the record, which have the baseline hazard")
    from sparsecv_mio.certificate.read_back import data_of
    from sparsecv_mio.report.time_pictures import FittedHazards

    if not at >= 0.0:
        raise BadInput(f"--at: {at:g} is not a survival time; give a number of at least 0")
    hazards = FittedHazards.from_record(stored, data_of(stored, train))
    if at > hazards.last:
        raise BadInput(
            f"--at: {at:g} is beyond the last time of the training rows, so the survival is not known; give a number "
            f"of at most {hazards.last:.12g}"
        )
    return hazards


def _predict_rows(
    stored: Record | FitRecord | CommonRecord, folds: FoldModels | None, new: NewRows, interval: float | None
) -> FloatArray:
    """Return the predictions of all rows of the file, NaN if there is none, and the bounds of their intervals."""
    import numpy as np

    rows = new.data
    table = np.full((rows.n + rows.n_dropped_rows, 1 if folds is None else 3), np.nan)
    table[rows.places, 0] = stored.predict(rows)
    if folds is not None and interval is not None:
        table[rows.places, 1:] = folds.interval(rows, interval)
    return table


def _describe_fit(
    stored: Record | FitRecord | CommonRecord, new: NewRows, table: FloatArray, threshold: float | None, path: str,
    reading: Given,
) -> list[str]:  # fmt: skip
    """Return notes on the errors of the predictions, with a warning about training rows."""
    import numpy as np

    from sparsecv_mio.certificate.accuracy import TimeQuality, assess_predictions
    from sparsecv_mio.certificate.read_back import adapt_to_record_loss
    from sparsecv_mio.data.dataset import MULTIPLICITY
    from sparsecv_mio.data.weights import repeated
    from sparsecv_mio.problem.cox_objective import loss_of_times
    from sparsecv_mio.problem.glm_objective import null_error_of_folds
    from sparsecv_mio.report.record_tables import error_lines

    rows, scored, notes, n = new.data, np.flatnonzero(new.has_target), list[str](), stored.data.n
    if (len(scored) >= n or stored.data.trials is not None) and _are_training_rows(stored, path, reading):
        which = f"{n:,} of these rows" if rows.n > n else "these rows"
        notes.append(f"the model was fitted to {which}, so the errors are training errors")
    known, doubt, n_scored = None, new.doubt, 0
    try:
        known = adapt_to_record_loss(stored, repeated(rows, new.has_target.astype(np.int64))) if len(scored) else None
    except BadInput as error:  # predictions need neither the target nor its other columns
        doubt = str(error)
    if known is not None:
        places = rows.places[scored] if known.survival is None else known.places  # without rows of a missing event
        n_scored = len(places)
        predicted, trials = table[places, 0], known.aux.get(MULTIPLICITY)
        alike = replace(known, row_weights=None if trials is None else trials.astype(np.float64))
        null = null_error_of_folds(alike, stored.loss, None)
        predicted = np.repeat(predicted, known.split_into_cases()[1])
        quality = assess_predictions(stored.loss, known, predicted, trials, threshold)
        if isinstance(quality, TimeQuality) and null is not None:
            quality = replace(quality, loss=loss_of_times(alike, predicted), null_loss=null)
        notes += error_lines(stored, quality, null)
    if known is not None and n_scored < rows.n:
        notes.append(f"the errors are computed from the {n_scored:,} of {rows.n:,} rows that have a target")
    return [*notes, *([f"no errors are computed: {doubt}"] if doubt else [])]


def _describe_read_lines(new: NewRows) -> list[str]:
    """Return a note on lines of the file that are read although the record skipped the same lines of its own data."""
    from sparsecv_mio.data.readers import name_lines

    if not new.read_lines:
        return []
    lines = ",".join(filter(None, (new.skipped_lines, new.read_lines)))
    verb = "are" if "," in new.read_lines or ":" in new.read_lines else "is"
    return [
        f"{name_lines(new.read_lines)} of this file {verb} read as data, but the data of the record skipped the same "
        f"line numbers; to skip them here too, give --skip-lines {lines}"
    ]


def _warn_of_rows(new: NewRows, folds: FoldModels | None) -> list[str]:
    """Return warnings about skipped lines and rows without a prediction."""
    warnings = [new.line_warning] if new.line_warning else []
    if new.n_invalid_rows and new.data.reading is not None:
        warnings.append(new.data.reading.invalid_rows_warning)
    if n_empty := new.data.n_dropped_rows - new.n_invalid_rows:
        where = "the model" if folds is None else "the model or of a fold model"
        empty = f"{several(n_empty, 'row')} with a missing value in a column of {where}"
        warnings.append(f"{empty}: no prediction, because the fit also dropped rows with missing values (--na drop)")
    return warnings


def _are_training_rows(stored: StoredRecord, path: str, reading: Given) -> bool:
    """Return True if a file holds the rows to which the model of a record was fitted, apart from rows left out."""
    from sparsecv_mio.certificate.read_back import adapt_to_record_loss, data_of, weighted_again

    try:
        dataset = adapt_to_record_loss(stored, data_of(stored, path, reading))
        return weighted_again(stored.data, dataset).fingerprint == stored.data.fingerprint
    except SparseCVError:  # a column that no model needs may be missing
        return False


def _check_threshold(threshold: float | None, classes: Classes | None) -> None:
    if threshold is None:
        return
    if classes is None:
        raise BadInput("--threshold: requires a record with logistic loss; leave this option out")
    if not 0.0 <= threshold <= 1.0:
        raise BadInput(f"--threshold: {threshold:g} is not a probability; give a number from 0 to 1")


def _one_model(stored: StoredRecord, place: str) -> Record | FitRecord | CommonRecord:
    """Return a record with one model; raise `BadInput` for other records."""
    from sparsecv_mio.certificate.fit_records import NearRecord, PathRecord

    if not isinstance(stored, PathRecord | NearRecord):
        return stored
    models = "a model for every size" if isinstance(stored, PathRecord) else "many models"
    advice = "this command needs one model; name a record of `solve` or `fit`"
    raise BadInput(f"record {place} holds {models}: {advice}")


def _predicted_columns(table: FloatArray, classes: Classes | None, threshold: float | None) -> dict[str, list[Any]]:
    """Return predictions by column name; for two classes the probability of one class, and the class."""
    columns: dict[str, list[Any]] = dict(zip(("prediction", "lower", "upper"), table.T.tolist(), strict=False))
    if classes is None:
        return columns
    from sparsecv_mio.certificate.accuracy import predict_positive

    chances, is_positive = columns["prediction"], predict_positive(table[:, 0], threshold).tolist()
    named = [classes.positive if positive else classes.negative for positive in is_positive]
    known = [None if math.isnan(chance) else name for chance, name in zip(chances, named, strict=True)]
    return {"probability": chances, "class": known}


def _give(lines: Iterable[str], notes: list[str], warnings: list[str], out: str | None) -> int:
    """Print or write predictions; notes are printed on another stream."""
    if out is not None:
        return ending.deliver(
            0, lambda screen: screen.print("\n".join(notes), end="\n" if notes else ""), warnings=warnings,
            files=[lambda: write_text(out, lines, "predictions", through=True)],
        )  # fmt: skip
    return _print_lines(lines, [*notes, *(f"warning: {words}" for words in warnings)])


def _print_lines(lines: Iterable[str], notes: Iterable[str] = ()) -> int:
    """Write lines to standard output and notes to standard error; return the exit code."""
    failure = ending.write_stream(sys.stdout, lines)
    for note in notes:
        ending.tell(note)
    if failure is not None:
        raise failure
    return 0


def _fold_models(stored: StoredRecord, level: float | None, train: str | None) -> FoldModels | None:
    """Return the models of the folds, if intervals are requested."""
    from sparsecv_mio.fits.prediction_intervals import FoldModels, check_level, with_fold_models

    why = "prediction intervals need the fold models, which are refitted to the training data"
    if level is None:
        if train is not None:
            raise BadInput(f"--train: also give --interval LEVEL, such as 0.9; {why}")
        return None
    searched = with_fold_models(stored)
    check_level(level, stored.data.n)
    if train is None:
        raise BadInput(f"--interval: also give --train DATA, the data from which the record was made; {why}")
    from sparsecv_mio.certificate.read_back import data_of, folds_again

    dataset = data_of(stored, train)
    folds = folds_again(searched.folds, dataset)
    return FoldModels.from_record(searched, dataset, folds)


REPORT_CODES = "Exit codes: 0 written, 2 bad input."


def read_to_draw(path: str, stored: StoredRecord) -> Dataset:
    """Return the data of a record for its figures, with a note if drawing may take long."""
    from sparsecv_mio.certificate.read_back import data_of
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.report.record_plots import PATH_SECONDS

    data = data_of(stored, path)
    if isinstance(stored, Record) and data.p > FEW_FEATURES:
        picture = "computing the best subset of every size on all rows, for the picture of coefficients"
        ending.tell(f"{picture}; this takes about {PATH_SECONDS:.0f} s")
    return data


@with_declared_options()
def report(
    record: Annotated[str, Place("RECORD", "JSON record of `solve`, `path` or `fit`.")],
    data: str | None = option(None, "DATA", "Data of the record. If you give this file, the report also shows the "
                                            "coefficients for each tau. [none]"),
    style: str = option("report", "", "report: the whole report; publication: the table of the model for a paper, and "
                                      "(not in .csv) texts on methods and results.", ("report", "publication")),
    out: str | None = option(None, "FILE", "Output file: .html (one page), .md or .tex (tables); with --style "
                                           "publication .tex, .csv or .md; - writes the default format to standard "
                                           "output. [RECORD with .html, or .md with --style publication]", also="-o"),
) -> int:  # fmt: skip
    """Write a report of a record: answer, certified statements, pictures, tables, and how to verify it.

    The HTML page works without other files and without a network. --style publication writes a table for a paper:
    estimates, effects of one standard deviation (with --data), and how often the folds chose each term. Its caption
    states only what is certified.
    """
    from sparsecv_mio.report.record_report import PUBLICATION, report_format

    suffix = ".md" if style == PUBLICATION else ".html"
    place = out or str(Path(record).with_suffix(suffix))
    kind = report_format(f"RECORD{suffix}" if place == "-" else place, style)
    session.check_outputs({"--out": None if place == "-" else place}, [record, *([data] if data else [])])
    from sparsecv_mio.certificate.read_back import data_of, read_drawable_record
    from sparsecv_mio.report.record_report import report_text

    stored = read_drawable_record(record)
    read = read_to_draw if style != PUBLICATION else lambda path, stored: data_of(stored, path)
    rows = read(data, stored) if data else None
    text = report_text(stored, kind, record, rows, data or "DATA", style)
    if place == "-":
        return _print_lines([text])
    write_text(place, [text], "report", through=True)
    return ending.deliver(0, lambda screen: screen.print(f"report: {place}", soft_wrap=True))


CITE_CODES = "Exit codes: 0 printed, 2 bad input."


@with_declared_options()
def cite(
    record: Annotated[
        str | None,
        Place("RECORD", "JSON record; its methods are cited. [the package and the paper on which it is based]"),
    ] = None,
) -> int:
    """Print the references of this package, or of a record, as BibTeX.

    Without a record, these are the package and the paper that it starts from. With a record, they are all references
    that the methods text of `report --style publication` cites, with the version of the package that made the record.
    """
    from sparsecv_mio.report.references import bibliography, find_references

    if record is None:
        return _print_lines([bibliography(find_references())])
    from sparsecv_mio.certificate.read_back import read_record
    from sparsecv_mio.report.publication import cited_keys

    stored = read_record(record)
    return _print_lines([bibliography(find_references(cited_keys(stored), stored.versions["sparsecv_mio"]))])


PLOT_CODES = "Exit codes: 0 drawn, 2 bad input."
PANELS = (  # panels of a record
    "all", "cv-error", "grid", "bounds", "features", "sources", "baselines", "inclusion", "intervals", "roc",
    "calibration", "risk-groups", "baseline", "hazards", "coefficients",
)  # fmt: skip
PLOT_DATA = option(
    None,
    "DATA",
    "Data of the record. If you give this file, the figure also shows the coefficients for each tau, in comparable "
    "units.",
)
PLOT_PANEL = option(
    PANELS[0],
    "WORD",
    "Panel for a record of `solve`: cv-error, grid (every pair), bounds (certified bound of every pair), features "
    "(number of folds that select each feature), coefficients; with logistic loss and --data, roc and calibration; "
    "with Cox loss and --data, risk-groups (Kaplan-Meier curves of held-out rows) and calibration. all: all of these "
    "panels. Other panels: sources (relative gap over time, by bounding method), baselines (with "
    "solve --baselines), inclusion and intervals (frequencies of features and percentiles of coefficients over the "
    "draws of --bootstrap); with Cox loss and --data, baseline (survival) and hazards (check of proportional hazards).",
    PANELS,
)
PLOT_OUT = option(None, "FILE", "Output file (.png, .svg, .pdf). [RECORD with .png]", also="-o")


@with_declared_options()
def plot(
    record: Annotated[
        str,
        Place("RECORD", "JSON record of `solve`, `path` or `fit`; or a trace (`solve --trace`)."),
    ],
    *,
    data: str | None = PLOT_DATA,
    panel: str = PLOT_PANEL,
    out: str | None = PLOT_OUT,
) -> int:  # fmt: skip
    """Draw a record or a trace.

    The figure of a record shows the CV error by tau, the CV error of every pair, how often each feature is selected,
    and the coefficients. The figure of a trace shows the certified bounds over time and the interval of every tau.
    """
    return draw_record(record, data, panel, figure_place(record, data, out))


def figure_place(record: str, data: str | None, out: str | None) -> str:
    """Return the file of a figure, RECORD with .png by default, after checking that it can be written."""
    place = out or str(Path(record).with_suffix(".png"))
    session.check_outputs({"--out": place}, [record, *([data] if data else [])])
    return place


def draw_file(draw: Callable[[], None], place: str) -> int:
    """Draw a figure into its file; return the exit code.

    Parameters
    ----------
    draw : callable
        Function that draws and writes the figure.
    place : str
        File of the figure, which is printed.
    """
    from sparsecv_mio.report.figures import check_plot

    check_plot(place, "--out")
    replaced = " (replaced an older file)" if Path(place).exists() else ""
    with ending.print_warnings():
        draw()
    return ending.deliver(0, lambda screen: screen.print(f"figure: {place}{replaced}", soft_wrap=True))


def draw_record(record: str, data: str | None, panel: str, place: str) -> int:
    """Draw a record or a trace into a file; return the exit code.

    Parameters
    ----------
    record : str
        File of the record or the trace.
    data : str or None
        File of its data.
    panel : str
        Picture of a record, one of `PANELS`.
    place : str
        File of the figure.
    """
    from sparsecv_mio.search.observers import is_trace, read_trace

    def draw() -> None:
        if is_trace(record):
            from sparsecv_mio.report.course_plots import plot_trace

            plot_trace(*read_trace(record), place)
            return
        from sparsecv_mio.certificate.read_back import read_drawable_record
        from sparsecv_mio.report.figures import save
        from sparsecv_mio.report.record_plots import draw_panel

        try:
            stored = read_drawable_record(record)
        except CorruptStore as error:
            raise BadInput(f"{record} cannot be read as a trace or a record: {error}") from None
        save(draw_panel(stored, panel, read_to_draw(data, stored) if data else None), place)

    return draw_file(draw, place)

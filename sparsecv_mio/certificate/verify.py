"""Verification of a record against the data by direct refits with linear algebra.

The module uses no code of the search, with one exception. The tests of `--infer` are recomputed by
`inference.split_tests`, the module that made them, so an error in that module is not detected.

The module rebuilds the folds from their specification, refits the supports by `problem.objective` and sums the held-out
errors again. With squared-error loss and at most 12 non-constant features, the module tries every support at every
pair. With 13 to 15 non-constant features, it tries every support at the reported pair, and at the pairs with the
smallest lower and the smallest upper bound. Fields that are too expensive to recompute are checked against bounds or
only read. The report states how each field was checked (:mod:`sparsecv_mio.certificate.checked_fields`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import ArrowTable
from sparsecv_mio.certificate import claims, optimality, read_back, refits
from sparsecv_mio.certificate.averages import check_average
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks, EnumerationLevel, VerifyReport
from sparsecv_mio.certificate.design import Design, HeldOut, Model, Support
from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, NearRecord, PathRecord
from sparsecv_mio.certificate.inference_checks import check_baselines, check_draws
from sparsecv_mio.certificate.near_records import check_common, check_near_list
from sparsecv_mio.certificate.nested_models import check_nested, check_weights
from sparsecv_mio.certificate.own_rows import adapt_to_expanded_table, checked_rows, fold_preprocessing
from sparsecv_mio.certificate.parts import (
    NAMED_BY_DATASET,
    DataInfo,
    FoldInfo,
    GridRequest,
    JsonRecord,
    Side,
    reading_info,
)
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.certificate.records import Record, TableRow
from sparsecv_mio.certificate.refits import verify_fit
from sparsecv_mio.certificate.restrictions import check_supports, reference_levels
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.certificate.stable_models import check_stability
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.digits import abbreviate_list
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.implementations import find_implementation
from sparsecv_mio.model_space import NONE
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.units import ACCURATE_RTOL

if TYPE_CHECKING:
    import pandas as pd

FRAME_ADVICE = "; pandas 2 rounds some numbers of a file, so a record of a file needs the file, not a frame"


@blas_on_one_thread()
def verify(
    record: read_back.StoredRecord, dataset: str | Path | pd.DataFrame | ArrowTable | Dataset,
    folds: AnyFolds | None = None, progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:  # fmt: skip
    """Return the result of checking a record of `solve`, `path`, `fit` or `near` against its data.

    Parameters
    ----------
    record : Record, PathRecord, FitRecord, NearRecord or CommonRecord
        Record.
    dataset : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record, as passed to `solve`: a file or a table is read as the record states. A `Dataset` must have
        the target and the features of the record, and the columns that its folds and weights need.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds of a cross-validation, as given to `solve`; by default rebuilt from the spec and seed of the record.
        Required for folds that came from labels, pairs or a splitter.
    progress : callable, optional
        Function that is called with (done, total) during parts that may take long.

    Returns
    -------
    VerifyReport
        Report with every disagreement; a wrong data set or wrong folds end the check at once.

    Raises
    ------
    BadInput
        If the folds cannot be rebuilt from their spec, the argument is not a record, or the data cannot be read.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sparsecv_mio import cross_validate, make_folds
    >>> data = Dataset.from_arrays(np.eye(6)[:, :2] * 3.0, [3.0, 1.0, 0.5, 0.0, -0.5, 0.0])
    >>> record = cross_validate(data, make_folds("loo", data), gammas=[0.1], taus=[1, 2])
    >>> verify(record, data).ok
    True
    >>> verify(replace(record, intercept=record.intercept + 1.0), data).failures[0].field
    'intercept'
    """
    if not isinstance(record, JsonRecord):
        raise BadInput(f"{type(record).__name__} is not a record; read_record reads a record from its file")
    checks = Checks(progress=progress, data_advice=_describe_frame_numbers(dataset))
    dataset = read_back.data_of(record, dataset)
    try:
        check_supports(record)
    except CorruptStore as error:
        checks.require(False, "support", str(error).removeprefix("record: "))
        return checks.report(None)
    dataset = read_back.adapt_to_record_loss(record, dataset)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # an altered number may be arbitrarily large
        rows = _rows_and_folds(checks, record, dataset, folds)
        complete = rows is not None and _check_claims(checks, record, *rows)
    return checks.report(record if complete else None)


def _describe_frame_numbers(data: Any) -> str:
    """Return the advice for a frame of pandas 2, which may have read a file with rounded numbers, or an empty text."""
    pandas = sys.modules.get("pandas")
    has_rounding = pandas is not None and pandas.__version__.startswith("2.") and isinstance(data, pandas.DataFrame)
    return FRAME_ADVICE if has_rounding else ""


def _check_claims(checks: Checks, record: read_back.StoredRecord, dataset: Dataset, plan: FoldPlan | None) -> bool:
    """Check the claims of a record about its data; return True if every check could be completed."""
    asked = record.side if isinstance(record, FitRecord) else record.request
    if asked is not None and asked.reference:
        _check_reference(checks, "side" if isinstance(record, FitRecord) else "request", asked, dataset)
    if isinstance(record, FitRecord):
        return verify_fit(checks, record, dataset)
    if not _check_restrictions(checks, record, dataset):
        return False
    if not claims.check_target(checks, record, dataset, None if isinstance(record, NearRecord) else plan):
        return False
    claims.check_requested_grid(checks, record.request, record.data.p)
    if isinstance(record, Record):
        assert plan is not None
        return _verify_search(checks, record, dataset, plan)
    design = refits.make_design(record, dataset, plan, checks.tell)
    if isinstance(record, NearRecord):
        return check_near_list(checks, record, design)
    if isinstance(record, PathRecord):
        _verify_path(checks, record, design)
    else:
        check_common(checks, record, design)
    return True


def _rows_and_folds(
    checks: Checks, record: read_back.StoredRecord, dataset: Dataset, folds: AnyFolds | None
) -> tuple[Dataset, FoldPlan | None] | None:
    """Return the data with weights, and the folds; None if they differ from those of the record."""
    info = None if isinstance(record, PathRecord | FitRecord) else record.folds
    if info is None:  # the given folds belong to another record
        dataset, folds = read_back.weighted_again(record.data, dataset), None
    elif read_back.has_weights(record.data, dataset):
        dataset, folds = read_back.apply_weights_and_folds(record.data, info, dataset, folds)
    if not _check_data(checks, record.data, dataset):
        return None
    if info is None:
        return dataset, None
    dataset = read_back.with_classes_as_in_folds(info, dataset)
    plan = read_back.folds_again(info, dataset, folds)
    for pair in claims.reported_pairs(record) if isinstance(record, Record) else ():
        checks.require(len(pair.folds) == plan.k, pair.name, f"has {len(pair.folds)} entries for {plan.k} folds")
    return (dataset, plan) if _check_folds(checks, info, plan) else None


def _verify_search(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> bool:
    claims.check_claims(checks, record, dataset, plan)
    optimality.check_partition(checks, record)
    optimality.check_refined_pair(checks, record)
    design = whole = refits.make_design(record, dataset, plan, checks.tell)
    if fold_preprocessing(record):
        own = checked_rows(checks, record, dataset, plan)
        if own is None:
            return False
        design = refits.make_design(adapt_to_expanded_table(record), own.dataset, own.folds, checks.tell)
    placed = []
    for pair in claims.reported_pairs(record):
        supports = _fold_supports(checks, pair, design)
        if supports is None:
            return False
        placed.append((pair, supports))
    afresh = optimality.Optimality(checks, record, design, placed)
    level, reason = afresh.choose_level()
    for pair, supports in placed:
        _check_fold_losses(checks, record, pair, design, supports, level)
    outer = check_nested(checks, record, dataset, plan)
    check_weights(checks, record, dataset, plan)
    check_draws(checks, record, dataset)
    _check_optima(checks, record, whole, afresh, level, reason)
    check_stability(checks, record, design, level)
    check_average(checks, record, design, level)
    check_baselines(checks, record, design, dataset, outer)
    if record.inference is not None:
        find_implementation("check_inference")(checks, record, dataset, plan)
    return True


def _check_optima(
    checks: Checks, record: Record, whole: Design, afresh: optimality.Optimality, level: EnumerationLevel, reason: str
) -> None:
    """Check the optimality in folds and on all rows; `reason` states why the comparisons are not complete."""
    model = _refit(checks, record, whole)
    if level is EnumerationLevel.NEIGHBOURS:
        checks.caveat = f"optimality not verified ({reason})"
        afresh.neighbours()
        if model is not None and refits.check_neighbours(checks, whole, record.refit, model, "refit."):
            checks.end_part("no exchange of one column gives an objective below `lower` of the fit on all rows")
        return
    if level is EnumerationLevel.PAIR:
        words = "the optimality of the reported pair is verified"
        checks.caveat = f"optimality over the grid not verified ({reason}); {words}"
    if refits.check_optimum(checks, whole, record.refit, "refit.", whole.positions(record.support) or ()):
        checks.end_part(f"lower and upper of the fit on all rows, by {whole.how} all supports")
    else:
        checks.caveat = checks.caveat or "optimality of the fit on all rows not verified"
    afresh.enumerate(level)
    if isinstance(afresh.design, RidgeDesign):
        optimality.check_by_enumeration(checks, record, afresh.design, afresh.truth)


def _check_data(checks: Checks, data: DataInfo, dataset: Dataset) -> bool:
    same_names = checks.require(data.names == dataset.names, "data.names", _describe_names(data.names, dataset.names))
    compared = ("n", "p", "target", *NAMED_BY_DATASET) if same_names else ("n",)
    same = [checks.require_equal(f"data.{name}", getattr(data, name), getattr(dataset, name)) for name in compared]
    checks.mark_recomputed_fields("data.names", "data.fingerprint")
    if not (same_names and all(same)):  # the other fields differ for the same reason
        return checks.end_part("data: size and names")
    said, computed = data.fingerprint, dataset.fingerprint
    digests = f"record {said[:19]}..., data {computed[:19]}..."
    words = f"the values or the order of the rows differ from those of the record ({digests}){checks.data_advice}"
    if not checks.require(said == computed, "data.fingerprint", words):
        return checks.end_part("data: fingerprint")
    if data.total_weight is not None:
        total = dataset.weight_of(slice(0, dataset.n))
        checks.close("data.total_weight", data.total_weight, total, 1e-12 * total)
    reading = reading_info(dataset.reading)
    if data.reading is not None and reading is not None and data.reading.absent is None:  # an older record
        reading = replace(reading, absent=None)
    if data.reading != reading:
        checks.require_equal("data.reading", data.reading, reading)
    elif reading is not None:  # other options may give the same values
        results = vars(reading).keys() - {option.name for option in fields(Reading)}
        checks.mark_recomputed_fields(*(f"data.reading.{name}" for name in results))
    for name, allowed in (("scale", ("length", "variance", "none")), ("intercept", ("fold", "global", "none"))):
        checks.require(getattr(data, name) in allowed, f"data.{name}", f"must be one of {', '.join(allowed)}")
    checks.mark_bounded_fields("schema")
    return checks.end_part("data: size, names and fingerprint")


def _describe_names(said: Sequence[str], found: Sequence[str]) -> str:
    """Return the difference between the names of the features in the record and in the data."""
    lost = [repr(name) for name in said if name not in found]
    new = [repr(name) for name in found if name not in said]
    words = [f"the data lack {abbreviate_list(lost)}"] if lost else []
    words += [f"the record lacks {abbreviate_list(new)}"] if new else []
    return "; ".join(words) or "the data have the features of the record in another order"


def _check_restrictions(
    checks: Checks, record: Record | PathRecord | NearRecord | CommonRecord, dataset: Dataset
) -> bool:
    """Check that restrictions concern varying features of the data and allow a model of every size."""
    restrictions, place, request = record.request.restrictions, "request.restrictions", record.request
    if restrictions is None:
        return True
    rows: Sequence[Any] = ()
    if isinstance(record, PathRecord):
        rows = record.path
    elif isinstance(record, Record):
        rows = [pair for pair in (record.refit, record.refined, *record.table, *record.descent) if pair is not None]
    constant = set(dataset.names) - {dataset.names[j] for j in varying_columns(dataset.X).tolist()}
    try:
        by_name = restrictions.resolve_names(dataset.names)
        by_name.check_sizes((*request.taus, *(row.tau for row in rows)), dataset.p)
    except BadInput as error:
        return checks.require(False, place, str(error))
    checks.require(by_name == restrictions, place, "must use the feature names of the data, in the order of the data")
    try:
        by_name.check_vary(constant)
    except BadInput as error:
        checks.require(False, place, str(error))
    checks.mark_bounded_fields(f"{place}.")
    return checks.end_part("restrictions: all their features exist in the data, and every support satisfies them")


def _check_reference(checks: Checks, place: str, asked: GridRequest | Side, dataset: Dataset) -> None:
    """Check that the reference levels are levels of factors, one for each factor."""
    try:
        reference_levels(asked.reference or (), dataset, asked.restrictions or NONE)
    except BadInput as error:
        checks.require(False, f"{place}.reference", str(error).removeprefix("reference: "))
    checks.mark_bounded_fields(f"{place}.reference")
    checks.end_part("reference: at most one level of each factor is named")


def _check_folds(checks: Checks, info: FoldInfo, plan: FoldPlan) -> bool:
    for name in ("spec", "seed", "k", "repeats", "digest"):
        checks.require_equal(f"folds.{name}", getattr(info, name), getattr(plan, name))
    return checks.end_part(f"folds: {plan.k} folds, rebuilt from {info.spec!r}; their digest equals that of the record")


def _fold_supports(checks: Checks, pair: claims.ReportedPair, design: Design) -> list[Support] | None:
    """Return the supports of the folds of a pair as positions; None, with a failure, if one is invalid."""
    which, tau, supports = pair.folds.which.tolist(), pair.known.tau, dict[int, Support]()
    for number in dict.fromkeys(which):  # few supports occur in many folds
        path = f"{pair.name}[{which.index(number)}]."
        support = refits.checked_support(checks, design, pair.folds.supports[number], tau, f"{path}support")
        if support is None or not refits.check_allowed(checks, design, support, tau, path):
            return None
        supports[number] = support
    return [supports[number] for number in which]


def _check_fold_losses(
    checks: Checks, record: Record, pair: claims.ReportedPair, design: Design, supports: list[Support],
    level: EnumerationLevel,
) -> None:  # fmt: skip
    """Check the held-out losses of the folds of a pair, their mean, and the quality of the predictions."""
    _check_signs_of_folds(checks, pair, design, supports)
    losses = design.held_out_losses(supports, pair.known.gamma, pair.known.tau, checks.tell)
    _check_losses_by_fold(checks, pair, design, losses)
    _check_mean_loss(checks, record, pair, design, losses, level)
    if not pair.path and record.classes is not None and losses.predictors is not None:
        scored, data = design.folds.order[: design.folds.scored], design.dataset
        weights = None if data.row_weights is None else data.row_weights[scored]
        chances = probabilities(losses.predictors + data.row_offsets(scored))
        claims.check_quality(checks, record.classes, data.y[scored], chances, weights, "classes.")
        checks.end_part("accuracy, AUC and Brier score of the held-out predictions")


def _check_losses_by_fold(checks: Checks, pair: claims.ReportedPair, design: Design, losses: HeldOut) -> None:
    """Check the held-out loss of every fold."""
    said = pair.folds.error
    is_finite = np.isfinite(said)  # an unsolved fold may have no model with a finite held-out loss
    wrong = np.flatnonzero(~((losses.lower <= said) & (said <= losses.upper)) & (is_finite | pair.folds.decided))
    for fold in wrong[:3].tolist():
        checks.close(f"{pair.name}[{fold}].error", float(said[fold]), float(losses.losses[fold]), 0.0)
    checks.mark_recomputed_fields(f"{pair.name}[].fold", f"{pair.name}[].error")
    how = f" ({losses.how})" if losses.how else ""
    which = "" if is_finite.all() else f" with a finite loss ({int(is_finite.sum())} of {len(said)})"
    checks.end_part(f"held-out {design.error_name} of every fold{which}{pair.words}{how}")


def _check_mean_loss(
    checks: Checks, record: Record, pair: claims.ReportedPair, design: Design, losses: HeldOut,
    level: EnumerationLevel,
) -> None:  # fmt: skip
    """Check the CV error and the mean absolute error of a pair, which are means over the scored rows."""
    said, total = pair.folds.error, design.scored.total
    sum_of = float(said.sum()) / total
    mean = float(losses.losses.sum()) / total if np.isfinite(said).all() else np.inf
    own = claims.find_row(pair.known, record.table)
    if own is not None and own.folds_decided < own.folds:
        if level is EnumerationLevel.NEIGHBOURS:  # otherwise the interval is proved
            _note_moved_estimate(checks, pair, own, mean)
        sum_of, mean = (min(max(value, own.lower), own.upper) for value in (sum_of, mean))
    checks.close(f"{pair.path}cv_error", pair.known.cv_error, sum_of, 1e-12 * sum_of)
    checks.close(f"{pair.path}cv_error", pair.known.cv_error, mean, losses.mean_room)
    mae = None if pair.path else record.mae
    if mae is not None and losses.mae is not None:
        checks.close("mae", mae, losses.mae, losses.mae_room)
    checks.end_part(f"{pair.path}cv_error" + ("" if mae is None or losses.mae is None else ", mae"))


def _check_signs_of_folds(checks: Checks, pair: claims.ReportedPair, design: Design, supports: list[Support]) -> None:
    for fold, support in enumerate(supports if design.allowed is not None else []):
        model = design.refit(support, pair.known.gamma, design.folds.train_rows(fold))
        if not refits.check_signs(checks, design, support, model, f"{pair.name}[{fold}]."):
            return


def _note_moved_estimate(checks: Checks, pair: claims.ReportedPair, own: TableRow, mean: float) -> None:
    """Record that the interval of an estimate, which was moved into it, is only read."""
    if own.lower - ACCURATE_RTOL * mean <= mean <= own.upper + ACCURATE_RTOL * mean:
        return
    words = f"the errors of the folds give {mean!r}; the rounding error of this value is not checked"
    for name in (f"{pair.path}cv_error",) if pair.path else ("cv_error", "r_squared"):
        checks.only_read(name, words)


def _refit(checks: Checks, record: Record, design: Design) -> Model | None:
    refit = record.refit
    for name in ("gamma", "tau"):
        said, answered = getattr(refit, name), getattr(record, name)
        checks.require(said == answered, f"refit.{name}", f"is {said!r}, but the answer has {answered!r}")
    model = refits.check_fit(checks, design, record, refit)
    if model is not None:
        refits.check_objective(checks, design, refit, model, record.request.gap, "refit.")
        checks.end_part("coefficients, intercept and objective of the full-data fit")
    return model


def _verify_path(checks: Checks, record: PathRecord, design: Design) -> None:
    """Check a path record: the refit of every row and, if this is possible, its optimality."""
    request, pieces = record.request, () if record.surface is None else record.surface.pieces
    reason = design.full_data_obstacle(list(request.taus), len(request.gammas))
    checks.caveat = f"optimality not verified ({reason})" if reason else ""
    claims.check_grid(checks, request, record.path, "path")
    every = all(row.proved for row in record.path) and all(piece.proved for piece in pieces)
    words = f"is {record.status}, but {'every' if every else 'not every'} subset of the path is certified optimal"
    checks.require(every == (record.status == "proved"), "status", words)
    checks.end_part("requested grid and status")
    for i, row in enumerate(record.path):
        checks.tell(i, len(record.path))
        model = refits.check_fit(checks, design, row, row, f"path[{i}].")
        if model is not None:
            refits.check_objective(checks, design, row, model, request.gap, f"path[{i}].")
        if reason and model is not None:
            refits.check_neighbours(checks, design, row, model, f"path[{i}].")
    checks.end_part(f"coefficients, intercept and objective of {len(record.path)} fits on all rows")
    if not reason:
        reason = _check_optima_of_path(checks, record, design)
    if isinstance(design, RidgeDesign):
        optimality.check_surface(checks, record, design, not reason)


def _check_optima_of_path(checks: Checks, record: PathRecord, design: Design) -> str:
    """Check the bounds of every fit; return the reason why this was not possible, or an empty text."""
    fits_left = MOST_FITS
    for i, row in enumerate(record.path):
        checks.tell(i, len(record.path))
        start, begun = design.positions(row.support) or (), design.n_fits
        if not refits.check_optimum(checks, design, row, f"path[{i}].", start, fits_left):
            checks.caveat = f"optimality not verified ({design.limit_words})"
            return design.limit_words
        fits_left -= design.n_fits - begun
    checks.end_part(f"lower and upper of every fit, by {design.how} all supports")
    return ""

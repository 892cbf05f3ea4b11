"""Verification of a record against the data by plain linear algebra.

The module uses no code of the search. Folds are rebuilt from their specification, supports are refitted by
`problem.objective`, and errors are summed again. With at most 15 varying features the optimality of the supports is
proved again by enumeration. Fields that cannot be recomputed at this cost are bounded or only read; the report lists
the treatment of every field (:mod:`sparsecv_mio.certificate.checked_fields`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import ArrowTable
from sparsecv_mio.certificate import (
    lists_and_fits,
    optimality,  # fmt: skip
    refits,
)
from sparsecv_mio.certificate.adjusted import adjustment_columns, check_supports
from sparsecv_mio.certificate.averaged_fits import GlmPairFits, PairFits
from sparsecv_mio.certificate.averages import check_average
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks, EnumerationLevel, VerifyReport
from sparsecv_mio.certificate.claims import check_claims, check_gap, check_grid, check_requested_grid, find_row
from sparsecv_mio.certificate.class_values import RefittedValues
from sparsecv_mio.certificate.enumeration import AllowedSupports, UnitColumns, held_out_errors
from sparsecv_mio.certificate.factor_levels import reference_levels
from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, NearRecord, PathRecord
from sparsecv_mio.certificate.glm_records import (
    GlmDesign,
    check_classes,
    check_coefficients,
    check_fit_of_classes,
    check_path_of_classes,
    check_target,
)
from sparsecv_mio.certificate.lists_and_fits import SupportValues
from sparsecv_mio.certificate.own_rows import adapt_to_expanded_table, checked_rows, fold_preprocessing
from sparsecv_mio.certificate.parts import DataInfo, FoldInfo, JsonRecord, Request, Side, reading_info
from sparsecv_mio.certificate.read_back import (
    StoredRecord,
    adapt_to_record_loss,
    apply_weights_and_folds,
    data_of,
    folds_again,
    has_weights,
    weighted_again,
)
from sparsecv_mio.certificate.records import Record, TableRow
from sparsecv_mio.certificate.stable_models import (
    LogLossesOfModels,
    LossesOfModels,
    check_nested,
    check_stability,
    check_weights,
)
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.pandas_rounding import read_by_pandas_2
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.model_space import NONE
from sparsecv_mio.problem.coordinates import objective_slack
from sparsecv_mio.problem.objective import RidgeFit, evaluate_objective, ridge_weights, varying_columns
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, FOLLOWS_RTOL
from sparsecv_mio.words import Loss

if TYPE_CHECKING:
    import pandas as pd

MAE_RTOL = 2.0 * FOLLOWS_RTOL  # tolerance of the mean absolute error, given the agreement of squares
FOLD_RTOL = 1e-8  # share of the mean error, since the error of a single fold may be negligible


def verify(
    record: StoredRecord, dataset: str | Path | pd.DataFrame | ArrowTable | Dataset, folds: FoldPlan | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:  # fmt: skip
    """Return the result of checking a record of `solve`, `path`, `fit` or `near` against its data.

    Parameters
    ----------
    record : Record, PathRecord, FitRecord, NearRecord or CommonRecord
        Record.
    dataset : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record, as passed to `solve`: a file or a table is read as the record states. A `Dataset` must have
        the target and the features of the record, and the columns that its folds and weights need.
    folds : FoldPlan, optional
        Folds of a cross-validation; by default rebuilt from the spec and seed of the record. Required for folds that
        came from labels or a splitter.
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
        raise BadInput(f"{type(record).__name__} is no record: read_record reads one from its file")
    dataset = data_of(record, dataset)
    checks = Checks(progress=progress)
    try:
        check_supports(record)
    except CorruptStore as error:
        checks.require(False, "support", str(error).removeprefix("record: "))
        return checks.report(None)
    dataset = adapt_to_record_loss(record, dataset)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # an altered number may be arbitrarily large
        rows = _rows_and_folds(checks, record, dataset, folds)
        complete = rows is not None and _check_claims(checks, record, *rows)
    return checks.report(record if complete else None)


def _check_claims(checks: Checks, record: StoredRecord, dataset: Dataset, plan: FoldPlan | None) -> bool:
    """Check the claims of a record about its data; return True if every check could be completed."""
    if isinstance(record, FitRecord):
        return _verify_fit(checks, record, dataset)
    if isinstance(record, PathRecord):
        return _verify_path(checks, record, dataset)
    if isinstance(record, NearRecord | CommonRecord):
        return _verify_near_optimal(checks, record, dataset, plan)
    assert plan is not None
    return _verify_search(checks, record, dataset, plan)


def _rows_and_folds(
    checks: Checks, record: StoredRecord, dataset: Dataset, folds: FoldPlan | None
) -> tuple[Dataset, FoldPlan | None] | None:
    """Return the data with weights, and the folds; None if they differ from those of the record."""
    info = None if isinstance(record, PathRecord | FitRecord) else record.folds
    if info is None:  # the given folds belong to another record
        dataset, folds = weighted_again(record.data, dataset), None
    elif has_weights(record.data, dataset):
        dataset, folds = apply_weights_and_folds(record.data, info, dataset, folds)
    dataset, read = _recover_fitted_data(record.data, dataset)
    if not _check_data(checks, record.data, dataset, read):
        return None
    if info is None:
        return dataset, None
    plan = folds_again(info, dataset) if folds is None else folds
    for pair in optimality.reported_pairs(record) if isinstance(record, Record) else ():
        checks.require(len(pair.folds) == plan.k, pair.name, f"{len(pair.folds)} entries for {plan.k} folds")
    return (dataset, plan) if _check_folds(checks, info, plan) else None


def _design(
    record: Record | PathRecord | NearRecord | CommonRecord, dataset: Dataset, plan: FoldPlan | None
) -> UnitColumns:
    """Return the columns that may be in a support."""
    design = UnitColumns.from_restricted_dataset(
        dataset, record.data.scale, record.data.intercept, record.request.restrictions
    )
    if plan is None:
        return design
    return replace(design, rows_by_weight=plan.scored / Scored.of(dataset, plan).total, plan=plan)


def _verify_search(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> bool:
    by_rows = record.request.loss not in (None, Loss.SQUARED)
    if not by_rows:
        check_claims(checks, record, dataset, plan)
    optimality.check_partition(checks, record)
    optimality.check_refined_pair(checks, record)
    pairs = [pair for pair in (record.refit, record.refined, *record.table, *record.descent) if pair is not None]
    if not _check_restrictions(checks, record.request, dataset, [pair.tau for pair in pairs]):
        return False
    own = checked_rows(checks, record, dataset, plan) if fold_preprocessing(record) else None
    if fold_preprocessing(record) and own is None:
        return False
    whole = design = _design(record, dataset, plan)
    if own is not None:
        design = _design(adapt_to_expanded_table(record), own.dataset, own.folds)
    if by_rows:
        check_nested(checks, record, dataset, plan)
        check_weights(checks, record, dataset, plan)
        complete = check_classes(checks, record, dataset, plan, lambda pair: _fold_supports(checks, pair, design), own)
        of_classes = LogLossesOfModels(design, GlmDesign(record, dataset), MOST_FITS // (plan.k + 1))
        grid_proved = complete and not checks.caveat  # the instability of every pair takes a similar number of fits
        level = EnumerationLevel.GRID if grid_proved else EnumerationLevel.PAIR
        check_stability(checks, record, of_classes, plan, level)
        level, _ = optimality.choose_enumeration_level(record, design, plan)
        check_average(checks, record, GlmPairFits(design, plan, GlmDesign(record, dataset)), level)
        return complete
    dealt = plan if own is None else own.folds
    supports = [(pair, _fold_supports(checks, pair, design)) for pair in optimality.reported_pairs(record)]
    placed = [(pair, of_folds) for pair, of_folds in supports if of_folds is not None]
    if len(placed) < len(supports):
        return False
    level, reason = optimality.choose_enumeration_level(record, design, dealt)
    for pair, of_folds in placed:
        _check_fold_errors(checks, record, pair, design, dealt, (of_folds, level))
    check_nested(checks, record, dataset, plan)
    check_weights(checks, record, dataset, plan)
    afresh = optimality.Optimality(checks, record, design, dealt, placed)
    _check_least(checks, record, whole, afresh, (level, reason))
    check_stability(checks, record, LossesOfModels(design), plan, level)
    check_average(checks, record, PairFits(design, plan), level)
    return True


def _check_least(
    checks: Checks,
    record: Record,
    whole: UnitColumns,
    afresh: optimality.Optimality,
    reached: tuple[EnumerationLevel, str],
) -> None:
    """Check by enumeration the optimality in folds and on all rows; `reached` is the extent and its reason."""
    model, (level, reason) = _refit(checks, record, whole), reached
    if level is EnumerationLevel.NEIGHBOURS:
        checks.caveat = f"optimality not verified ({reason})"
        afresh.neighbours()
        if model is not None and refits.check_neighbours(checks, whole, record.refit, model, "refit."):
            checks.end_part("that no support one column away has an objective below `lower` of the fit on all rows")
    else:
        if level is EnumerationLevel.PAIR:
            checks.caveat = f"optimality over the grid not verified ({reason}): of the reported pair it is"
        refits.check_optimum(checks, whole, record.refit, "refit.")
        checks.end_part("lower and upper of the fit on all rows, by enumeration of all supports")
        afresh.enumerate(level)
        optimality.check_by_enumeration(checks, record, afresh.design, afresh.plan, afresh.truth)


def _recover_fitted_data(data: DataInfo, dataset: Dataset) -> tuple[Dataset, str]:
    """Return the data, rounded as by pandas 2 if the record has these numbers, and a note on this."""
    same = all(getattr(data, name) == getattr(dataset, name) for name in ("n", "p", "target", "names"))
    if not same or data.fingerprint == dataset.fingerprint:
        return dataset, ""
    read = read_by_pandas_2(dataset, data.fingerprint)
    if read is None:
        return dataset, ""
    how = "pandas.read_csv(..., float_precision='round_trip') reads all exactly"
    return read[0], f", of the numbers as pandas 2 reads them ({read[1]}; {how})"


def _check_data(checks: Checks, data: DataInfo, dataset: Dataset, read: str = "") -> bool:
    for name in ("n", "p", "target", "names", "fingerprint", "weights", "class_weight"):
        checks.require_equal(f"data.{name}", getattr(data, name), getattr(dataset, name))
    if data.total_weight is not None:
        total = dataset.weight_of(slice(0, dataset.n))
        checks.close("data.total_weight", data.total_weight, total, 1e-12 * total)
    checks.require_equal("data.reading", data.reading, reading_info(dataset.reading))
    words = {"scale": ("length", "variance", "none"), "intercept": ("fold", "global", "none")}
    for name, allowed in words.items():
        checks.require(getattr(data, name) in allowed, f"data.{name}", f"must be one of {', '.join(allowed)}")
    checks.mark_bounded_fields("schema")
    return checks.end_part(f"data: size, names, fingerprint{read}")


def _check_restrictions(checks: Checks, request: Request, dataset: Dataset, sizes: Iterable[int] = ()) -> bool:
    """Check that restrictions concern varying features of the data and allow a model of every size."""
    restrictions, place = request.restrictions, "request.restrictions"
    _check_reference(checks, "request", request, dataset)
    if restrictions is None:
        return True
    try:
        by_name = restrictions.resolve_names(dataset.names)
        by_name.check_sizes((*request.taus, *sizes), dataset.p)
    except BadInput as error:
        return checks.require(False, place, str(error))
    vary = {dataset.names[j] for j in varying_columns(dataset.X).tolist()}
    checks.require(by_name == restrictions, place, "are not by the names of the data, in their order")
    try:
        by_name.check_vary(set(dataset.names) - vary)
    except BadInput as error:
        checks.require(False, place, str(error))
    checks.mark_bounded_fields(f"{place}.")
    return checks.end_part("restrictions: features of the data, kept to by every support")


def _check_reference(checks: Checks, place: str, asked: Request | Side, dataset: Dataset) -> None:
    """Check that the reference levels are levels of factors, one for each factor."""
    if not asked.reference:
        return
    try:
        reference_levels(asked.reference, dataset, asked.restrictions or NONE)
    except BadInput as error:
        checks.require(False, f"{place}.reference", str(error).removeprefix("reference: "))
    checks.mark_bounded_fields(f"{place}.reference")
    checks.end_part("reference: levels of factors, one a factor")


def _check_folds(checks: Checks, info: FoldInfo, plan: FoldPlan) -> bool:
    for name in ("spec", "seed", "k", "repeats", "digest"):
        checks.require_equal(f"folds.{name}", getattr(info, name), getattr(plan, name))
    return checks.end_part(f"folds: {plan.k}, rebuilt from {info.spec!r}, same digest")


def _fold_supports(checks: Checks, pair: optimality.ReportedPair, design: UnitColumns) -> optimality.Supports | None:
    size = design.most_columns(pair.known.tau)
    translated = [design.positions(names) for names in pair.folds.supports]
    supports: optimality.Supports = []
    allowed = set[int]()  # few supports occur in many folds
    for fold, which in enumerate(pair.folds.which.tolist()):
        support = translated[which]
        if support is None or len(support) > size:
            words = f"is not a set of up to {size - len(design.adjusted_columns)} features of the data"
            checks.require(False, f"{pair.name}[{fold}].support", words)
            return None
        path = f"{pair.name}[{fold}]."
        if which not in allowed and not refits.check_allowed(checks, design, support, pair.known.tau, path):
            return None
        allowed.add(which)
        supports.append(support)
    return supports


def _check_fold_errors(
    checks: Checks, record: Record, pair: optimality.ReportedPair, design: UnitColumns, plan: FoldPlan,
    given: tuple[optimality.Supports, EnumerationLevel],
) -> None:  # fmt: skip
    (supports, level), gamma, tau = given, pair.known.gamma, pair.known.tau
    for fold, support in enumerate(supports if design.allowed is not None else []):
        model = design.refit(support, gamma, plan.train_rows(fold))
        if not refits.check_signs(checks, design, support, model, f"{pair.name}[{fold}]."):
            break
    errors, absolute, how = held_out_errors(design, plan, supports, gamma)
    said, rows = pair.folds.error, Scored.of(design.dataset, plan).total
    mean, square = float(errors.sum()) / rows, float(errors.sum()) / plan.scored
    noise = design.residual_noise(square, gamma, tau)
    # a residual is a difference of numbers of the size of the target, so its error is relative to that size
    reach = CROSSING_RTOL * np.sqrt(errors) + (FOLD_RTOL * math.sqrt(square) + noise) * np.sqrt(plan.sizes)
    wrong = np.flatnonzero(~(np.abs(np.sqrt(np.maximum(said, 0.0)) - np.sqrt(errors)) <= reach) | (said < 0.0))
    for fold in wrong[:3].tolist():
        checks.close(f"{pair.name}[{fold}].error", float(said[fold]), float(errors[fold]), 0.0)
    checks.mark_recomputed_fields(f"{pair.name}[].fold", f"{pair.name}[].error")
    checks.end_part(f"held-out error of every fold{pair.words} ({how})")
    sum_of, own = float(said.sum()) / rows, find_row(pair.known, record.table)
    if own is not None and own.folds_decided < own.folds:
        if level is EnumerationLevel.NEIGHBOURS:  # with up to 15 features the interval is proved
            _note_moved_estimate(checks, pair, own, mean)
        sum_of, mean = (min(max(value, own.lower), own.upper) for value in (sum_of, mean))
    checks.close(f"{pair.path}cv_error", pair.known.cv_error, sum_of, 1e-12 * sum_of)
    checks.close(f"{pair.path}cv_error", pair.known.cv_error, mean, design.slack(mean, gamma, tau, CROSSING_RTOL))
    mae = None if pair.path else record.mae
    if mae is not None and absolute is not None:
        found_mae = float(absolute.sum()) / float(plan.sizes.sum())
        checks.close("mae", mae, found_mae, MAE_RTOL * found_mae + noise)
    checks.end_part(f"{pair.path}cv_error" + ("" if mae is None or absolute is None else ", mae"))


def _note_moved_estimate(checks: Checks, pair: optimality.ReportedPair, own: TableRow, mean: float) -> None:
    """Record that the interval of an estimate, which was moved into it, is only read."""
    if own.lower - ACCURATE_RTOL * mean <= mean <= own.upper + ACCURATE_RTOL * mean:
        return
    words = f"the errors of the folds give {mean!r}, the interval of the pair that it is moved to is read"
    for name in (f"{pair.path}cv_error",) if pair.path else ("cv_error", "r_squared"):
        checks.only_read(name, words)


def _refit(checks: Checks, record: Record, design: UnitColumns) -> RidgeFit | None:
    refit = record.refit
    for name in ("gamma", "tau"):
        said, answered = getattr(refit, name), getattr(record, name)
        checks.require(said == answered, f"refit.{name}", f"is {said!r}, the answer's is {answered!r}")
    model = refits.check_fit(checks, design, record, refit)
    if model is not None:
        refits.check_objective(checks, design, refit, model, record.request.gap, "refit.")
        checks.end_part("coefficients, intercept and objective of the fit on all rows")
    return model


def _verify_path(checks: Checks, record: PathRecord, dataset: Dataset) -> bool:
    """Check a path record: the refit of every row and, with at most 15 varying features, its optimality."""
    request = record.request
    if not _check_restrictions(checks, request, dataset, [row.tau for row in record.path]):
        return False
    if record.loss is not Loss.SQUARED:
        return check_path_of_classes(checks, record, dataset)
    design = _design(record, dataset, None)
    reason = design.enumeration_obstacle(list(request.taus), len(request.gammas), 1)
    checks.caveat = f"optimality not verified ({reason})" if reason else ""
    check_requested_grid(checks, request, record.data.p)
    check_grid(checks, request, record.path, "path")
    pieces = () if record.surface is None else record.surface.pieces
    every = all(row.proved for row in record.path) and all(piece.proved for piece in pieces)
    checks.require(every == (record.status == "proved"), "status", f"is {record.status}, the rows say otherwise")
    checks.end_part("the requested grid, status")
    for i, row in enumerate(record.path):
        checks.tell(i, len(record.path))
        model = refits.check_fit(checks, design, row, row, f"path[{i}].")
        if model is not None:
            refits.check_objective(checks, design, row, model, request.gap, f"path[{i}].")
        if reason and model is not None:
            refits.check_neighbours(checks, design, row, model, f"path[{i}].")
    checks.end_part(f"coefficients, intercept and objective of {len(record.path)} fits on all rows")
    for i, row in enumerate(() if reason else record.path):
        checks.tell(i, len(record.path))
        refits.check_optimum(checks, design, row, f"path[{i}].")
    if not reason:
        checks.end_part("lower and upper of every fit, by enumeration of all supports")
    optimality.check_surface(checks, record, design, not reason)
    return True


def _verify_near_optimal(
    checks: Checks, record: NearRecord | CommonRecord, dataset: Dataset, plan: FoldPlan | None
) -> bool:
    """Check a near-optimal list or a common subset: values and, with at most 15 varying features, all claims."""
    if not _check_restrictions(checks, record.request, dataset):
        return False
    check_requested_grid(checks, record.request, record.data.p)
    design = _design(record, dataset, plan)
    if isinstance(record, CommonRecord):
        assert plan is not None
        if record.loss is Loss.SQUARED:
            refits.check_fit(checks, design, record, record)
            checks.end_part("coefficients and intercept of the fit on all rows")
            lists_and_fits.check_common(checks, record, lambda gamma: SupportValues(design, gamma, plan))
            return True
        by_rows = GlmDesign(record, dataset)
        if not check_target(checks, record, dataset, plan.all_scored):
            return False
        check_coefficients(checks, record, by_rows)
        checks.end_part("coefficients and intercept of the fit on all rows")
        lists_and_fits.check_common(checks, record, lambda gamma: RefittedValues(design, gamma, plan, by_rows))
        return True
    checks.require(record.by in ("cv", "objective"), "by", "must be cv or objective")
    dealt = record.by != "cv" or plan is not None
    if not checks.require(dealt, "folds", "is null though the models are compared by their CV error"):
        return False
    dealt_to = plan if record.by == "cv" else None
    if record.loss is Loss.SQUARED:
        values = SupportValues(design, record.gamma, dealt_to)
    elif check_target(checks, record, dataset, np.arange(dataset.n)):
        values = RefittedValues(design, record.gamma, dealt_to, GlmDesign(record, dataset))
    else:
        return False
    lists_and_fits.check_near_list(checks, record, values)
    return True


def _verify_fit(checks: Checks, record: FitRecord, dataset: Dataset) -> bool:
    """Check the record of one MIO: the objective at its own coefficients, bounds, gap and status.

    The model must satisfy the side constraints of the record. With at most 15 varying features the lower bound is
    compared with every model that satisfies them, or with every model within an assumed box. Older records lack the
    side constraints; neither the optimality of the support nor the lower bound can be proved again for them.
    """
    checks.caveat = "optimality not verified (the record does not hold the side constraints)"
    checks.require(0 <= record.tau <= dataset.p, "tau", f"{record.tau} is out of range: there are {dataset.p} features")
    index = {dataset.names[j]: j for j in varying_columns(dataset.X).tolist()}
    restrictions = NONE if record.side is None else record.side.restrictions or NONE
    most = AllowedSupports(tuple(index), restrictions).columns(record.tau)
    support = refits.checked_support(checks, record.support, index, most, "support", adjusted=restrictions.adjust)
    if support is None:
        return False
    if record.side is not None:
        _check_reference(checks, "side", record.side, dataset)
    if record.loss is not Loss.SQUARED:
        return _verify_fit_of_classes(checks, record, dataset)
    _check_coefficients_of_fit(checks, record, dataset, support, index)
    slack = objective_slack(record.objective, dataset, record.data.intercept)
    weights = dataset.row_weights
    centre = 0.0 if record.data.intercept == "none" else float(np.average(dataset.y, weights=weights))
    squares = (dataset.y - centre) ** 2 * (1.0 if weights is None else weights)
    _fit_claims(checks, record, 100.0 * slack, float(squares.sum()))
    checks.mark_recomputed_fields("coefficients")
    checks.mark_bounded_fields("gamma", "support")
    checks.end_part("objective and intercept at the coefficients; bounds, gap and status agree with each other")
    side = record.side
    satisfied = side is not None and lists_and_fits.check_side(checks, record, side, dataset)
    if record.assumed_box is not None:
        lists_and_fits.check_within_box(checks, record, record.assumed_box, dataset)
    elif satisfied and side is not None:
        lists_and_fits.check_least(checks, record, side, dataset)
    if "optimality not verified" in checks.caveat:
        checks.leaves("that no other is better is read", "support")
    return True


def _check_coefficients_of_fit(
    checks: Checks, record: FitRecord, dataset: Dataset, support: tuple[int, ...], index: Mapping[str, int]
) -> None:
    """Check objective and intercept at the stored coefficients."""
    names = [dataset.names[j] for j in support]
    if not checks.require(set(record.coefficients) == set(names), "coefficients", "are not those of the support"):
        return
    beta = np.array([record.coefficients[name] for name in names])
    ridge = ridge_weights(support, [index[name] for name in adjustment_columns(record)], record.gamma)
    objective, center = evaluate_objective(
        dataset.X, dataset.y, support, beta, ridge, scale=record.data.scale, intercept=record.data.intercept,
        weights=dataset.row_weights,
    )  # fmt: skip
    slack = 100.0 * objective_slack(objective, dataset, record.data.intercept)
    checks.close("objective", record.objective, objective, slack)
    level = float(np.abs(dataset.X[:, support]).max(axis=0, initial=0.0) @ np.abs(beta)) + np.abs(dataset.y).max()
    checks.close("intercept", record.intercept, center, 1e-12 * level)


def _verify_fit_of_classes(checks: Checks, record: FitRecord, dataset: Dataset) -> bool:
    """Check the record of one MIO with logistic or Poisson loss."""
    side = record.side
    if side is not None and not lists_and_fits.check_side(checks, record, side, dataset):
        return False
    checks.caveat = ""
    checked = check_fit_of_classes(checks, record, dataset)
    if checked is None:
        return False
    _fit_claims(checks, record, *checked)
    checks.mark_bounded_fields("gamma", "support")
    checks.end_part("bounds, gap and status agree with each other")
    if "optimality not verified" in checks.caveat:
        checks.leaves("that no other is better is read", "support")
    return True


def _fit_claims(checks: Checks, record: FitRecord, slack: float, nothing: float) -> None:
    """Check bounds, gap and status against each other.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : FitRecord
        Record of a fit.
    slack : float
        Rounding error of the objective.
    nothing : float
        Objective without columns.
    """
    check_gap(checks, record)
    checks.require(0.0 <= record.requested_gap < 1.0, "requested_gap", f"{record.requested_gap!r} is not in [0, 1)")
    checks.require(record.lower <= record.objective + slack, "lower", f"{record.lower!r} exceeds the objective")
    right = abs(record.objective - record.upper) <= slack + 1e-3 * record.upper
    checks.require(right, "upper", f"{record.upper!r} is not the objective, {record.objective!r}")
    room = min(1e-3 * record.upper, 4e-6 * nothing) + slack
    checks.require(0.0 <= record.allowance <= room, "allowance", f"{record.allowance!r} is no rounding error")
    checks.leaves("within that it is read", "requested_gap", "allowance")
    if record.status == "proved":
        width = record.requested_gap * record.upper + record.allowance
        closed = record.upper - record.lower <= width * (1.0 + 1e-12)
        checks.require(closed, "status", "upper - lower exceeds the requested gap")

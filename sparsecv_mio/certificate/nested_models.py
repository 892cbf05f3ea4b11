"""Checks of nested cross-validation, and of weights of the instability, from models chosen on outer training sets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checked_fields import SAME, Checks
from sparsecv_mio.certificate.claims import check_quality
from sparsecv_mio.certificate.glm_design import GlmDesign
from sparsecv_mio.certificate.own_rows import rows_of_outer_fold
from sparsecv_mio.certificate.parts import STATUSES, FoldInfo, OuterModel
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.certificate.read_back import remake_outer_folds
from sparsecv_mio.certificate.records import Nested, NestedFold, OuterAverage, Record
from sparsecv_mio.certificate.refits import check_allowed, checked_support, make_design
from sparsecv_mio.certificate.restrictions import adjustment_columns, positions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm_objective import compare_with_null_model, weighted_losses
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.units import CROSSING_RTOL


def check_nested(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> FoldPlan | None:
    """Check the claims about outer folds, and return these folds; None if the record has none, or lists wrong ones.

    Parameters
    ----------
    plan : FoldPlan
        Folds of the record.
    """
    nested = record.nested
    if nested is None:
        return None
    outer = rebuild_outer_folds(checks, nested.outer, dataset, plan, "nested.outer.")
    words = f"must be the outer folds 0 to {nested.outer.k - 1}, in this order"
    right = outer is None or _are_ordered_folds(nested.folds, nested.outer.k)
    if not checks.require(right, "nested.folds", words) or outer is None:
        return None
    for i, outer_fold in enumerate(nested.folds):
        words = f"must be one of {', '.join(STATUSES)}"
        checks.require(outer_fold.status in STATUSES, f"nested.folds[{i}].status", words)
    errors, weights, error = _outer_errors(checks, record, (dataset, outer), nested.folds, "nested.")
    checks.close("nested.error", nested.error, error, SAME * error)
    spread = standard_error(errors * weights, weights) if len(errors) > 1 else None
    checks.check_optional("nested.standard_error", nested.standard_error, spread, SAME * error)
    is_comparable, done = record.loss.target.is_sum_over_rows, [outer_fold.fold for outer_fold in nested.folds]
    optimism = 100.0 * (error / record.cv_error - 1.0) if is_comparable and 0.0 < record.cv_error < math.inf else None
    room = 1e-10 * (abs(optimism or 0.0) + 100.0)
    checks.check_optional("nested.optimism", nested.optimism, optimism, room)
    null, gain_error = compare_with_null_model(dataset, record.loss, outer, errors * weights, done)
    room = 1e-10 * (1.0 + (null or 0.0))
    checks.check_optional("nested.null_error", nested.null_error, null, room)
    checks.check_optional("nested.gain_error", nested.gain_error, gain_error, room)
    _outer_classes(checks, record, (dataset, outer), nested)
    checks.mark_bounded_fields("nested.folds[].fold")
    checks.leaves("not checked: whether the status is right", "nested.folds[].status")
    checks.end_part(f"held-out errors of {len(errors)} models, each chosen with one outer fold held out")
    return outer


def _outer_classes(checks: Checks, record: Record, rows: tuple[Dataset, FoldPlan], nested: Nested) -> None:
    """Check the claims about probabilities on outer folds, each row by the model without its fold."""
    quality, (dataset, outer) = nested.classes, rows
    words = "must be given with logistic loss, and must be null with other losses"
    right = (quality is None) == (record.classes is None)
    if not checks.require(right, "nested.classes", words) or quality is None:
        return
    scored = np.concatenate([outer.scored_rows(outer_fold.fold) for outer_fold in nested.folds])
    chances = []
    for outer_fold in nested.folds:
        here, train = outer.scored_rows(outer_fold.fold), outer.train_rows(outer_fold.fold)
        seen = rows_of_outer_fold(checks, record, dataset, train, "nested.classes")
        if seen is None:
            return
        X, offsets = seen.X[here], dataset.row_offsets(here)
        if outer_fold.average is not None:
            chances.append(probabilities(_averaged_predictors(outer_fold.average, X, dataset.names) + offsets))
            continue
        design = make_design(record, seen.take(train), tell=checks.tell)
        model = design.refit(design.positions(outer_fold.support) or (), outer_fold.gamma, None)
        chances.append(probabilities(model.predictors(X) + offsets))
    weights = None if dataset.row_weights is None else dataset.row_weights[scored]
    check_quality(checks, quality, dataset.y[scored], np.concatenate(chances), weights, "nested.classes.")
    inside = quality.lower <= nested.error * (1.0 + SAME) and nested.error <= quality.upper * (1.0 + SAME)
    checks.require(inside, "nested.classes.lower", "lower and upper do not contain the nested CV error")
    checks.mark_bounded_fields("nested.classes.lower", "nested.classes.upper")


def _averaged_predictors(model: OuterAverage, X: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Return (m,) linear predictors of rows from the coefficients of an averaged model."""
    columns = [names.index(name) for name in model.coefficients]
    return np.asarray(model.intercept + X[:, columns] @ np.array(list(model.coefficients.values())))


def _are_ordered_folds(models: Sequence[NestedFold | OuterModel], k: int) -> bool:
    """Return True if models are of consecutive outer folds, each once."""
    numbers = [model.fold for model in models]
    return len(numbers) > 0 and numbers == sorted(set(numbers)) and numbers[-1] < k


def _outer_errors(
    checks: Checks, record: Record, rows: tuple[Dataset, FoldPlan], models: Sequence[NestedFold | OuterModel], path: str
) -> tuple[FloatArray, FloatArray, float]:
    """Check outer models, and return their errors, the weights of their rows, and the mean error."""
    dataset, outer = rows
    for i, model in enumerate(models):
        check_outer_model(checks, record, rows, model, f"{path}folds[{i}].")
    weights = np.array([dataset.weight_of(outer.scored_rows(model.fold)) for model in models])
    errors = np.array([model.error for model in models])
    return errors, weights, float(np.average(errors, weights=weights))


def rebuild_outer_folds(checks: Checks, said: FoldInfo, dataset: Dataset, plan: FoldPlan, path: str) -> FoldPlan | None:
    """Return the outer folds, built again; None if they differ from those of the record.

    Parameters
    ----------
    said : FoldInfo
        Description of the outer folds in the record.
    plan : FoldPlan
        Folds of the record.
    path : str
        Prefix of the fields in messages.
    """
    try:
        outer = remake_outer_folds(said, dataset, plan)
    except BadInput as error:
        checks.require(False, path.rstrip("."), str(error))
        return None
    names = ("spec", "seed", "k", "repeats", "digest")
    same_folds = [checks.require_equal(f"{path}{name}", getattr(said, name), getattr(outer, name)) for name in names]
    return outer if all(same_folds) else None


def check_outer_model(
    checks: Checks, record: Record, rows: tuple[Dataset, FoldPlan], one: NestedFold | OuterModel, path: str
) -> None:
    """Fit the support of an outer model to its training rows, and score it on the held-out rows.

    Parameters
    ----------
    rows : Dataset, FoldPlan
        All rows, and the outer folds.
    path : str
        Prefix of the fields in messages.
    """
    (whole, outer), request = rows, record.request
    test, train = outer.scored_rows(one.fold), outer.train_rows(one.fold)
    dataset = rows_of_outer_fold(checks, record, whole, train, path.rstrip("."))
    if dataset is None:
        return
    design = make_design(record, dataset.take(train))
    what = "that vary on the training rows"
    support = checked_support(checks, design, one.support, one.tau, f"{path}support", what=what)
    if support is None:
        return
    check_allowed(checks, design, support, one.tau, path)
    default_gammas = isinstance(design, GlmDesign)  # they depend on the number of rows
    if not record.descent and not default_gammas:
        checks.require(one.gamma in request.gammas, f"{path}gamma", f"{one.gamma!r} is not a requested gamma")
    is_size = min(request.taus) <= one.tau <= max(request.taus)  # default sizes depend on the number of rows
    checks.require(is_size, f"{path}tau", f"{one.tau} is not a requested size")
    words = "not checked: whether the pair is the best choice with the outer fold held out"
    checks.leaves(words, f"{path}gamma", f"{path}support")
    checks.mark_bounded_fields(f"{path}tau")
    checks.leaves("not checked: whether a smaller size satisfies the rule that chose this size", f"{path}tau")
    if isinstance(one, NestedFold) and one.average is not None:
        _outer_average(checks, record, dataset.take(test), one, path)
        return
    loss, slack = design.held_out(design.refit(support, one.gamma, None), test, dataset)
    total = dataset.weight_of(test)
    checks.close(f"{path}error", one.error, loss / total, slack / total)


def _outer_average(checks: Checks, record: Record, test: Dataset, one: NestedFold, path: str) -> None:
    """Score an averaged model on the held-out rows by its stored coefficients."""
    model = one.average
    assert model is not None
    adjusted = adjustment_columns(record)
    columns = positions(model.support, {name: j for j, name in enumerate(test.names)}, adjusted)
    right = columns is not None and set(model.coefficients) == {*model.support, *adjusted}
    words = "must have a coefficient for each feature of its support, and only features of the data"
    if not checks.require(right, f"{path}average", words) or columns is None:
        return
    predictors = _averaged_predictors(model, test.X, test.names)
    error = float(weighted_losses(test, record.loss, predictors).sum()) / test.weight_of(slice(0, test.n))
    sizes = np.array([abs(model.coefficients[test.names[j]]) for j in columns])
    level = float((np.abs(test.X[:, list(columns)]) @ sizes).max(initial=0.0) + np.abs(test.y).max())
    checks.close(f"{path}error", one.error, error, CROSSING_RTOL * error + 1e-12 * level * math.sqrt(error))
    checks.mark_bounded_fields(f"{path}average.coefficients", f"{path}average.intercept", f"{path}average.support")
    words = "not checked: whether averaging with the outer fold held out gives this model"
    checks.leaves(words, f"{path}average.coefficients")


def check_weights(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> None:
    """Check the weights tried by nested cross-validation: every outer model is scored again, and the best is chosen.

    Parameters
    ----------
    plan : FoldPlan
        Folds of the record.
    """
    chosen = None if record.stability is None else record.stability.chosen
    if chosen is None or (chosen.outer is None and not chosen.tried):
        return
    path = "stability.chosen."
    right = chosen.outer is not None and len(chosen.tried) > 0
    words = "must be given together with stability.chosen.tried"
    if not checks.require(right, f"{path}outer", words) or chosen.outer is None:
        return
    outer = rebuild_outer_folds(checks, chosen.outer, dataset, plan, f"{path}outer.")
    if outer is None:
        return
    for i, tried in enumerate(chosen.tried):
        place, first = f"{path}tried[{i}].", [outer_model.fold for outer_model in chosen.tried[0].folds]
        right = _are_ordered_folds(tried.folds, outer.k) and first == [outer_model.fold for outer_model in tried.folds]
        words = "must list the same outer folds for every weight, with no fold repeated"
        if not checks.require(right, f"{place}folds", words):
            return
        *_, error = _outer_errors(checks, record, (dataset, outer), tried.folds, place)
        checks.close(f"{place}error", tried.error, error, SAME * error)
    best = min(chosen.tried, key=lambda one: (one.error, one.weight))
    checks.mark_bounded_fields(f"{path}tried[].folds[].fold", f"{path}tried[].weight")
    checks.leaves("not checked: whether this weight leads to these models", f"{path}tried[].weight")
    distinct = len({weighed.weight for weighed in chosen.tried}) == len(chosen.tried)
    checks.require(distinct, f"{path}tried", "must have each weight once")
    for j, weighed_error in enumerate(chosen.tried):
        checks.require(weighed_error.weight >= 0.0, f"{path}tried[{j}].weight", f"{weighed_error.weight!r} is below 0")
    words = f"is {chosen.weight!r}, but the weight with the minimum error is {best.weight!r}"
    checks.require(chosen.weight == best.weight, f"{path}weight", words)
    checks.end_part(f"nested errors of the models chosen with each of {len(chosen.tried)} weights of the instability")

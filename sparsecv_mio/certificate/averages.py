"""Checks of an averaged model: the weights of the pairs, the averaged coefficients, and the approximating subset.

A pair (tau, gamma) is a size and a ridge penalty. The smaller the CV error of a pair, the larger its weight in the
average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS, SAME, Checks, EnumerationLevel
from sparsecv_mio.certificate.claims import find_row
from sparsecv_mio.certificate.design import Design, Model, RowLosses, Support
from sparsecv_mio.certificate.parts import NOT_AVERAGED
from sparsecv_mio.certificate.records import Average, AveragedPair, PathRow, Record
from sparsecv_mio.certificate.refits import (
    check_allowed,
    check_fit,
    check_neighbours,
    check_objective,
    check_optimum,
    check_signs,
)
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.problem.glm_objective import approximate_by_squares, weighted_losses
from sparsecv_mio.problem.objective import (
    RidgeFit,
    changes_of_pairs,
    distances_of_pairs,
    weights_of_pairs,
)
from sparsecv_mio.units import (
    ACCURATE_RTOL,
    AVERAGE_GAMMA,
    AVERAGE_GAP,
    FOLLOWS_RTOL,
    MISSED_SHARE,
    ROUNDING,
    SUM_RTOL,
    TIE_RTOL,
)

OFFSET_RTOL = 20.0 * ROUNDING  # rounding of a predictor, relative to the part of the column centres

AVERAGE_OPERATIONS = 4e9  # operations of refits; beyond it only pairs of the average are refitted

Known = dict[int, Support]  # supports that are only read, by position


def check_average(checks: Checks, record: Record, design: Design, level: EnumerationLevel) -> None:
    """Check the averaged model from the supports of the record, if it has one.

    Parameters
    ----------
    design : Design
        Columns, folds and fits.
    level : EnumerationLevel
        Extent of the enumeration of supports.
    """
    average, requested = record.average, record.request.model == "average"
    needed = requested and record.status == "proved" and NOT_AVERAGED not in record.warnings
    if average is None:
        checks.require(not needed, "average", "must be given, because the averaged model was requested")
        return
    if not checks.require(requested, "average", "must be null, because the averaged model was not requested"):
        return
    if not _check_pairs(checks, record, average, design) or not _supports(checks, average, design):
        return
    supports = {i: design.positions(names) or () for i, names in enumerate(average.supports)}
    _distances(checks, record, average, design, supports)
    _check_projection(checks, record, average, design, _averaged_target(checks, average, design, supports), level)
    _check_fold_averages(checks, record, average, design, supports)


def _check_pairs(checks: Checks, record: Record, average: Average, design: Design) -> bool:
    """Check that pairs are those of the table and of all columns, with the weights of their distances."""
    said = [(pair.gamma, pair.tau) for pair in average.pairs]
    table = [(row.gamma, row.tau) for row in record.table]
    whole = design.allowed is None and design.terms > max(record.request.taus)
    table += [(gamma, design.terms) for gamma in sorted({gamma for gamma, _ in table})] if whole else []
    words = "must contain the pairs of the table, then one pair for each gamma with all features"
    if not checks.require(said == table, "average.pairs", words):
        return False
    distances = np.array([pair.distance for pair in average.pairs])
    if not checks.require(bool(np.all(distances >= 0.0)), "average.pairs[].distance", "must be 0 or larger"):
        return False
    near = weights_of_pairs(distances) > 0.0
    weights = weights_of_pairs(distances, [pair.model(i) for i, pair in enumerate(average.pairs)])
    for i, (pair, row, weight) in enumerate(zip_longest(average.pairs, record.table, weights.tolist())):
        path = f"average.pairs[{i}]."
        checks.close(f"{path}weight", pair.weight, weight, ACCURATE_RTOL * weight)
        _check_named_fits(checks, average, pair, path, design.folds.k, used=bool(near[i]))
        closed = row is None or row.folds_decided == row.folds
        checks.require(closed or pair.estimate, f"{path}estimate", "must be true, because a fold is not solved")
    checks.mark_recomputed_fields("average.pairs[].weight", "average.pairs[].gamma", "average.pairs[].tau")
    checks.leaves("not checked: whether pairs without stored folds are solved", "average.pairs[].estimate")
    return checks.end_part("weights of the averaged pairs, from their differences in CV error")


def _check_named_fits(checks: Checks, average: Average, pair: AveragedPair, path: str, k: int, *, used: bool) -> None:
    """Check that a pair names a support for every fold and a full-data support, if it must."""
    words = "given, because the weight of the pair is positive" if used else "null, because the weight of the pair is 0"
    checks.require((pair.fit is not None) == used, f"{path}fit", f"must be {words}")
    right = len(pair.folds) == k or (not used and not pair.folds)
    checks.require(right, f"{path}folds", f"has {len(pair.folds)} entries for {k} folds")
    places = (*pair.folds, *(() if pair.fit is None else (pair.fit,)))
    _check_support_numbers(checks, average, places, path)
    # the record of a large grid may omit the folds of pairs outside the average
    are_omitted = not any(other.folds for other in average.pairs if other.fit is None) and len(average.pairs) * k > 1000
    present = len(pair.folds) > 0 or math.isinf(pair.distance) or are_omitted
    checks.require(present, f"{path}folds", "must have a support for each fold, because `distance` is finite")


def _check_support_numbers(checks: Checks, average: Average, places: Sequence[int], path: str) -> bool:
    last, count = max(places, default=0), len(average.supports)
    words = f"refers to support {last}, but average.supports has {count} entries"
    return checks.require(last < count, f"{path}folds", words)


def _supports(checks: Checks, average: Average, design: Design) -> bool:
    """Check that every support of a pair is an allowed one."""
    largest: dict[int, int] = {}
    for pair in average.pairs:
        for place in {*pair.folds, *(() if pair.fit is None else (pair.fit,))}:
            largest[place] = min(largest.get(place, pair.tau), pair.tau)
    for place in () if average.within_folds is None else average.within_folds.folds:
        largest.setdefault(place, max(pair.tau for pair in average.pairs))
    for place, names in enumerate(average.supports):
        support, path = design.positions(names), f"average.supports[{place}]"
        most = largest.get(place, -1)
        allowed = support if len(names) <= most else None
        if not checks.has_value(allowed, path, f"is not a set of up to {most} features of the data"):
            return False
        if not check_allowed(checks, design, allowed, most, f"{path}."):
            return False
    distinct = len(set(map(frozenset, average.supports))) == len(average.supports)
    checks.require(distinct, "average.supports", "has the same support twice")
    checks.leaves("not checked: whether each support is the best subset of a fold or of all rows", "average.supports")
    return checks.end_part("supports of the averaged pairs contain only features of the data")


def _pairs_to_refit(checks: Checks, average: Average, design: Design) -> list[int]:
    """Return the pairs whose folds are refitted: all pairs with supports, or only those of the average."""
    places = [i for i, pair in enumerate(average.pairs) if pair.folds]
    if _may_fit(design, [average.pairs[i].tau + 1.0 for i in places]):
        return places
    checks.reread.append("average: not checked whether pairs are missing (too many rows and folds to refit)")
    return [i for i in places if average.pairs[i].fit is not None]


def _distances(checks: Checks, record: Record, average: Average, design: Design, known: Known) -> None:
    """Refit the folds of pairs, and compare the distances of their errors from those of the reported pair."""
    places = _pairs_to_refit(checks, average, design)
    here = next((i for i in places if (average.pairs[i].gamma, average.pairs[i].tau) == (record.gamma, record.tau)), -1)
    if not checks.require(here >= 0, "average.pairs", "has no folds for the reported pair"):
        return
    same = [average.supports[place] for place in average.pairs[here].folds]
    theirs = [record.chosen_folds.supports[which] for which in record.chosen_folds.which]
    right = [set(names) for names in same] == [set(names) for names in theirs]
    checks.require(right, f"average.pairs[{here}].folds", "has supports that differ from those of chosen_folds")

    def losses(pair: AveragedPair) -> RowLosses:
        return design.held_out_rows([known[place] for place in pair.folds], pair.gamma, pair.tau)

    best, best_noise = losses(average.pairs[here])
    least = design.average_scored(best)
    for done, i in enumerate(places):
        checks.tell(done, len(places))
        pair = average.pairs[i]
        errors, noise = losses(pair)
        distance = float(distances_of_pairs(errors[None, :], best, design.times, design.dataset.row_weights)[0])
        mean, row = design.average_scored(errors), find_row(pair, record.table)  # type: ignore[arg-type]
        room = FOLLOWS_RTOL * distance
        spread = float(changes_of_pairs(errors[None, :], best, design.times, design.dataset.row_weights)[1][0])
        off = noise + best_noise
        if spread > 0.0 and mean - least + 2.0 * off > TIE_RTOL * least:  # below rounding the distance is 0
            room += 2.0 * (FOLLOWS_RTOL * mean + off) / spread
        checks.close(f"average.pairs[{i}].distance", pair.distance, distance, room)
        if row is not None and row.folds_decided == row.folds:
            checks.close(f"average.pairs[{i}].folds", row.cv_error, mean, FOLLOWS_RTOL * mean + off)
    checks.mark_recomputed_fields("average.pairs[].distance")
    checks.end_part(
        f"differences in CV error between {len(places)} pairs and the best pair (in standard errors), by refits of "
        "their folds"
    )


def _may_fit(design: Design, sizes: list[float]) -> bool:
    """Return True if pairs of these sizes are few enough to be fitted in every fold."""
    n, k = design.dataset.n, design.folds.k
    few = isinstance(design, RidgeDesign) or k * len(sizes) <= MOST_FITS
    return few and k * n * sum(size * min(size, n) for size in sizes) <= AVERAGE_OPERATIONS


def _predict_linearly(model: Model, X: FloatArray) -> FloatArray:
    """Return the (m,) linear predictors of rows: predictions of squared-error fits, log odds, or log rates."""
    return model.predict(X) if isinstance(model, RidgeFit) else model.predictors(X)


def _averaged_target(checks: Checks, average: Average, design: Design, known: Known) -> tuple[FloatArray, float]:
    """Return (n,) linear predictors of the average of the full-data fits, and a bound on those of a search."""
    dataset = design.dataset
    target, offset = np.zeros(dataset.n), 0.0
    exact = design.allowed is None
    for i, pair in enumerate(average.pairs):
        if pair.fit is None:
            continue
        support, path = known[pair.fit], f"average.pairs[{i}].fit"
        model = design.refit(support, pair.gamma, None)
        right = not exact or _is_as_large(design, support, pair, model.objective)
        checks.require(right, path, f"does not have {pair.tau} features")
        if isinstance(model, RidgeFit):
            check_signs(checks, design, support, model, f"{path}.")
        target += pair.weight * _predict_linearly(model, dataset.X)
        sizes = np.abs(dataset.X[:, list(model.support)]).max(axis=0, initial=0.0)  # collinear columns cancel
        offset = max(offset, float(sizes @ np.abs(model.beta)))
    checks.leaves("not checked: whether the support is the best subset of its size", "average.pairs[].fit")
    checks.end_part("full-data fits of the averaged pairs, and the average of these fits")
    largest = max(float(np.abs(of_rows).max()) for of_rows in (dataset.y, target))
    return target, SUM_RTOL * largest + OFFSET_RTOL * offset


def _is_as_large(design: Design, support: Support, pair: AveragedPair, objective: float) -> bool:
    """Return True if a support has all features of its pair, or no further feature lowers its objective."""
    if len(support) >= design.most_columns(pair.tau):
        return len(support) == design.most_columns(pair.tau)
    least = objective * (1.0 - 2.0 * TIE_RTOL) - design.refit_rounding(objective)
    larger = (tuple(sorted((*support, j))) for j in range(design.q) if j not in support)
    return all(design.refit(more, pair.gamma, None).objective >= least for more in larger)


def _check_projection(
    checks: Checks, record: Record, average: Average, whole: Design, aimed: tuple[FloatArray, float],
    level: EnumerationLevel,
) -> None:  # fmt: skip
    """Check the best subset for the averaged predictions: its fit, its size, and the bound on smaller ones."""
    model, path, dataset = average.model, "average.model.", whole.dataset
    checks.require(model.gamma == AVERAGE_GAMMA, f"{path}gamma", f"must be {AVERAGE_GAMMA:g}")
    allowed, total = MISSED_SHARE * record.cv_error, dataset.weight_of(slice(0, dataset.n))
    checks.close("average.allowed", average.allowed, allowed, SAME * allowed)
    checks.close("average.missed", average.missed, model.objective / total, SAME * average.missed)
    least, most = len(whole.forced) - len(whole.adjusted_columns), min(max(record.request.taus), whole.terms)
    right = least <= model.tau <= max(least, most)
    checks.require(right, f"{path}tau", f"is {model.tau}, but must be from {least} to {max(least, most)}")
    near = average.missed <= average.allowed * (1.0 + SAME) or model.tau >= most or record.status != "proved"
    words = f"must be at most average.allowed, {average.allowed!r}, because the grid has larger sizes"
    checks.require(near, "average.missed", words)
    aim = approximate_by_squares(dataset, record.loss, aimed[0])
    design = RidgeDesign.from_restrictions(aim, whole.scale, whole.intercept, record.request.restrictions)
    design = replace(design, target_noise=aimed[1])
    fit = check_fit(checks, design, model, model, path)
    if fit is None:
        checks.end_part("the averaged model")
        return
    check_objective(checks, design, model, fit, AVERAGE_GAP, path)
    checks.end_part("coefficients, intercept and objective of the averaged model")
    if level is not EnumerationLevel.NEIGHBOURS:
        check_optimum(checks, design, model, path)
        _fewer(checks, average, design, model, level)
        checks.end_part("bounds of the averaged model and of all models with fewer features")
        return
    check_neighbours(checks, design, model, fit, path)
    checks.leaves("not checked: whether another subset fits the average better", f"{path}support", f"{path}lower")
    _fewer(checks, average, design, model, level)
    checks.end_part("no exchange or removal of one feature improves the averaged model; its bounds are not checked")


def _check_fold_averages(checks: Checks, record: Record, average: Average, design: Design, known: Known) -> None:
    """Rebuild the average of every fold, refit the features of its model to it, and score the held-out rows."""
    within, path, plan, dataset = average.within_folds, "average.within_folds.", design.folds, design.dataset
    requested = within is None or bool(record.request.own_error)
    if not checks.require(requested, path[:-1], "must be null, because it was not requested") or within is None:
        return
    words = f"has {len(within.folds)} entries for {plan.k} folds"
    if not checks.require(len(within.folds) == plan.k, f"{path}folds", words):
        return
    if not _check_support_numbers(checks, average, within.folds, path):
        return
    most = max(record.request.taus)
    losses, heft = np.zeros(plan.k), np.zeros(plan.k)
    noise = OFFSET_RTOL * float(np.abs(dataset.y).max())  # of residuals of a model that fits all rows
    for fold, place in enumerate(within.folds):
        train, rows = plan.train_rows(fold), dataset.take(plan.scored_rows(fold))
        here, target = dataset.take(train), np.zeros(len(train))
        for pair in average.used:
            target += pair.weight * _predict_linearly(design.refit(known[pair.folds[fold]], pair.gamma, train), here.X)
        aim = approximate_by_squares(here, record.loss, target)
        training = RidgeDesign.from_restrictions(aim, design.scale, design.intercept, record.request.restrictions)
        support, size = training.positions(average.supports[place]), training.most_columns(most)
        words = f"is not a set of up to {size} features that vary in the training rows"
        right = support is not None and len(support) <= size
        if not checks.require(right, f"{path}folds[{fold}]", words) or support is None:
            return
        model = training.refit(support, AVERAGE_GAMMA, None)
        allowed = (average.allowed * (1.0 + FOLLOWS_RTOL) + noise**2) * here.weight_of(slice(0, here.n))
        near = model.objective <= allowed or len(support) == size or training.allowed is not None
        words = "has predictions that differ from the average of the fold by more than average.allowed"
        checks.require(near, f"{path}folds[{fold}]", words)
        losses[fold] = weighted_losses(rows, record.loss, model.predict(rows.X)).sum()
        heft[fold] = rows.weight_of(slice(0, rows.n))
    error = float(losses.sum() / heft.sum())
    slack = FOLLOWS_RTOL * error + noise * (2.0 * math.sqrt(error) + noise)
    checks.close(f"{path}error", within.error, error, slack)
    checks.leaves("not checked: whether each support is the best subset for the average of its fold", f"{path}folds")
    checks.end_part("held-out error of the averaged model, with averaging repeated within every fold")


def _fewer(checks: Checks, average: Average, design: Design, model: PathRow, level: EnumerationLevel) -> None:
    """Compare the lower bound of smaller models with what some of them, or all, reach."""
    smallest = model.tau == len(design.forced) - len(design.adjusted_columns)
    words = "must be null, because no smaller model is possible"
    words = words if smallest else "must be given, because smaller models exist"
    if not checks.require((average.fewer is None) == smallest, "average.fewer", words) or average.fewer is None:
        return
    if level is EnumerationLevel.NEIGHBOURS:
        support = design.positions(model.support) or ()
        smaller = [tuple(i for i in support if i != j) for j in support if j not in design.forced]
        values = [design.refit(support, model.gamma, None).objective for support in smaller if design.allowed is None]
        value = min(values, default=math.inf)
        words = "not checked: whether the bound also holds for models with at least two features fewer"
        checks.leaves(words, "average.fewer")
    else:
        value = design.best_fit(model.gamma, model.tau - 1).objective
    slack = design.objective_slack(value) if math.isfinite(value) else 0.0
    checks.require_at_most("average.fewer", average.fewer, value, f"{value!r}, the objective of a smaller model", slack)

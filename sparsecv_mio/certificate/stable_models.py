"""Checks of models fitted without some rows: nested cross-validation, stability, and the choice by stability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.adjusted import adjustment_columns
from sparsecv_mio.certificate.checked_fields import MOST_ENUMERATED, SAME, Checks, EnumerationLevel
from sparsecv_mio.certificate.claims import are_nearly_equal, find_row
from sparsecv_mio.certificate.enumeration import LOOSE_TIES, AllowedSupports, UnitColumns, close_fits, positions
from sparsecv_mio.certificate.glm_records import GlmDesign, check_quality
from sparsecv_mio.certificate.parts import (
    STATUSES,
    FoldInfo,
    InstabilityRow,
    OuterModel,
    Stability,
    StableChoice,
    WeighedModel,
)
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.certificate.records import Nested, NestedFold, OuterAverage, Record
from sparsecv_mio.certificate.refits import checked_support
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import outer_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import NONE
from sparsecv_mio.problem import glm_objective, objective
from sparsecv_mio.problem.coordinates import size_of_target
from sparsecv_mio.units import CROSSING_RTOL, FOLLOWS_RTOL, ROUNDING, TIE_RTOL
from sparsecv_mio.words import Loss


def check_nested(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> None:
    """Check the claims about outer folds, if the record has them.

    Parameters
    ----------
    plan : FoldPlan
        Folds of the record.
    """
    nested = record.nested
    if nested is None:
        return
    outer = rebuild_outer_folds(checks, nested.outer, dataset, plan, "nested.outer.")
    right = _are_ordered_folds(nested.folds, nested.outer.k)
    if outer is None or not checks.require(right, "nested.folds", "are not outer folds in their order, each once"):
        return
    for i, outer_fold in enumerate(nested.folds):
        checks.require(
            outer_fold.status in STATUSES, f"nested.folds[{i}].status", f"must be one of {', '.join(STATUSES)}"
        )
    errors, weights, error = _outer_errors(checks, record, (dataset, outer), nested.folds, "nested.")
    checks.close("nested.error", nested.error, error, SAME * error)
    spread = objective.standard_error(errors * weights, weights) if len(errors) > 1 else None
    if checks.require((spread is None) == (nested.standard_error is None), "nested.standard_error", "is null or not"):
        checks.close("nested.standard_error", nested.standard_error or 0.0, spread or 0.0, SAME * error)
    _optimism(checks, record, nested, error)
    _outer_classes(checks, record, (dataset, outer), nested)
    checks.mark_bounded_fields("nested.folds[].fold")
    checks.leaves("which of these words is read", "nested.folds[].status")
    checks.end_part(f"error of the {len(errors)} models that were chosen without an outer fold")


def _outer_classes(checks: Checks, record: Record, rows: tuple[Dataset, FoldPlan], nested: Nested) -> None:
    """Check the claims about probabilities on outer folds, each row by the model without its fold."""
    quality, of_classes = nested.classes, record.classes is not None
    if not checks.require((quality is not None) == of_classes, "nested.classes", "is null or not") or quality is None:
        return
    dataset, outer = rows
    scored = np.concatenate([outer.scored_rows(outer_fold.fold) for outer_fold in nested.folds])
    chances = []
    for outer_fold in nested.folds:
        if outer_fold.average is not None:
            X = dataset.X[outer.scored_rows(outer_fold.fold)]
            chances.append(probabilities(_averaged_predictors(outer_fold.average, X, dataset.names)))
            continue
        names = (*outer_fold.support, *adjustment_columns(record))
        support = sorted(dataset.names.index(name) for name in names if name in dataset.names)
        model = _fit_by_rows(record, dataset, support, outer_fold.gamma, outer.train_rows(outer_fold.fold))
        chances.append(probabilities(model.predictors(dataset.X[outer.scored_rows(outer_fold.fold)])))
    weights = None if dataset.row_weights is None else dataset.row_weights[scored]
    check_quality(checks, quality, dataset.y[scored], np.concatenate(chances), weights, "nested.classes.")
    inside = quality.lower <= nested.error * (1.0 + SAME) and nested.error <= quality.upper * (1.0 + SAME)
    checks.require(inside, "nested.classes.lower", "the error lies outside of its interval")
    checks.mark_bounded_fields("nested.classes.lower", "nested.classes.upper")


def _fit_by_rows(
    record: Record, dataset: Dataset, support: Sequence[int], gamma: float, train: IntArray
) -> glm_objective.GlmModel:
    """Return the fit of a support to some rows with another loss than squared error, in units of the file."""
    ridge = _ridge(record, dataset, support, gamma)
    return glm_objective.fit_of_data(
        dataset.take(train), record.loss, support, ridge, scale=record.data.scale, intercept=record.data.intercept
    )


def _averaged_predictors(model: OuterAverage, X: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Return (m,) linear predictors of rows from the coefficients of an averaged model."""
    columns = [names.index(name) for name in model.coefficients]
    return np.asarray(model.intercept + X[:, columns] @ np.array(list(model.coefficients.values())))


def _ridge(record: Record, dataset: Dataset, support: Sequence[int], gamma: float) -> float | FloatArray:
    """Return the ridge weight of columns, 0 for adjusted columns."""
    free = [dataset.names.index(name) for name in adjustment_columns(record)]
    return objective.ridge_weights(support, free, gamma)


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
    drawn = replace(plan, given_seed=said.seed or 0)
    try:
        outer = outer_folds(said.k, drawn, dataset)
        if outer.digest != said.digest and plan.spec.startswith("groups:"):
            with suppress(BadInput):  # records of older versions kept folds of groups together
                outer = outer_folds(said.k, drawn, dataset, by_fold=True)
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
    (dataset, outer), request = rows, record.request
    train, test = outer.train_rows(one.fold), outer.scored_rows(one.fold)
    X, y = dataset.X[train], dataset.y[train]
    vary = objective.varying_columns(X).tolist()
    index, kind = {dataset.names[j]: j for j in vary}, "that vary on the training rows"
    limits = request.restrictions or NONE
    most = AllowedSupports(tuple(index), limits).columns(one.tau)
    support = checked_support(checks, one.support, index, most, f"{path}support", what=kind, adjusted=limits.adjust)
    if support is None:
        return
    if limits:
        # a sign constraint may force the coefficient of a forced feature to zero
        forced = set(limits.force_in) - {*limits.nonnegative, *limits.nonpositive}
        allowed = forced <= set(one.support) and not set(limits.force_out) & set(one.support)
        allowed &= limits.features(one.support) <= one.tau
        checks.require(allowed, f"{path}support", "does not keep to the restrictions")
    by_rows = record.loss is not Loss.SQUARED  # then default gammas depend on the number of rows
    if not record.descent and not by_rows:
        checks.require(one.gamma in request.gammas, f"{path}gamma", "is not one that was asked for")
    checks.leaves("that it is best is read", f"{path}gamma", f"{path}support")
    checks.mark_bounded_fields(f"{path}tau")
    checks.leaves("whether fewer features would do is read", f"{path}tau")
    weights = dataset.row_weights
    if isinstance(one, NestedFold) and one.average is not None:
        _outer_average(checks, record, dataset.take(test), one, path)
        return
    if by_rows:
        loss, doubt = _fit_by_rows(record, dataset, support, one.gamma, train).held_out(dataset, test)
        total = dataset.weight_of(test)
        checks.close(f"{path}error", one.error, loss / total, (CROSSING_RTOL * loss + doubt) / total)
        return
    ridge = _ridge(record, dataset, support, one.gamma)
    model = objective.fit(
        X, y, support, ridge, scale=record.data.scale, intercept=record.data.intercept,
        weights=None if weights is None else weights[train],
    )  # fmt: skip
    error = objective.held_out_error(model, dataset.X, dataset.y, test, weights) / dataset.weight_of(test)
    noise = 1e-12 * float(np.ptp(dataset.y)) + 1e-15 * float(np.abs(dataset.y).max())
    slack = CROSSING_RTOL * error + noise * (2.0 * math.sqrt(error) + noise)
    checks.close(f"{path}error", one.error, error, slack)


def _outer_average(checks: Checks, record: Record, test: Dataset, one: NestedFold, path: str) -> None:
    """Score an averaged model on the held-out rows by its stored coefficients."""
    model = one.average
    assert model is not None
    adjusted = adjustment_columns(record)
    columns = positions(model.support, {name: j for j, name in enumerate(test.names)}, adjusted)
    right = columns is not None and set(model.coefficients) == {*model.support, *adjusted}
    if not checks.require(right, f"{path}average", "is not a model of features of the data") or columns is None:
        return
    predictors = _averaged_predictors(model, test.X, test.names)
    error = float(glm_objective.weighted_losses(test, record.loss, predictors).sum()) / test.weight_of(slice(0, test.n))
    sizes = np.array([abs(model.coefficients[test.names[j]]) for j in columns])
    level = float((np.abs(test.X[:, list(columns)]) @ sizes).max(initial=0.0) + np.abs(test.y).max())
    checks.close(f"{path}error", one.error, error, CROSSING_RTOL * error + 1e-12 * level * math.sqrt(error))
    checks.mark_bounded_fields(f"{path}average.coefficients", f"{path}average.intercept", f"{path}average.support")
    checks.leaves("that the rule gives it is read", f"{path}average.coefficients")


def _optimism(checks: Checks, record: Record, nested: Nested, error: float) -> None:
    chosen = record.cv_error
    comparable = 0.0 < chosen < math.inf
    if checks.require(comparable == (nested.optimism is not None), "nested.optimism", "is null or not") and comparable:
        optimism = 100.0 * (error / chosen - 1.0)
        checks.close("nested.optimism", nested.optimism or 0.0, optimism, 1e-10 * (abs(optimism) + 100.0))


SAME_OBJECTIVE = 4.0 * ROUNDING  # relative difference below which objectives are equal
STABILITY_NUMBERS = 5e8  # size of the refits of one pair, beyond which its instability is only read
LAST = 1e-11  # relative outward rounding of sums
INTERVAL_BOUNDS = "stability.chosen.intervals[].lower", "stability.chosen.intervals[].upper"


class LossesOfModels:
    """Weighted squared errors of all rows under models with given supports.

    Parameters
    ----------
    design : UnitColumns
        Design of all columns that may be in a support.
    """

    how = "enumeration of"

    def __init__(self, design: UnitColumns) -> None:
        self.design, self.dataset = design, design.dataset
        self.total = design.dataset.weight_of(slice(0, design.dataset.n))
        self.mean_weight = self.total / design.dataset.n  # a common factor of the weights changes no mean

    def row_losses(self, support: Sequence[int], gamma: float, train: IntArray | None) -> FloatArray:
        """Return (n,) losses of the fit of a support to some rows, or to all rows for None."""
        return self._squares(self.design.refit(tuple(support), gamma, train))

    def _squares(self, model: objective.RidgeFit) -> FloatArray:
        data = self.dataset
        return objective.squared_errors(model, data.X, data.y, data.row_weights)

    def noise(self, losses: FloatArray, level: float) -> float:
        """Return a bound on the rounding of a mean change of losses: 1,000 ulps of a residual."""
        data = self.dataset
        noise = 5e-13 * size_of_target(data, self.design.intercept) + 1e-15 * float(np.abs(data.y).max())
        size = math.sqrt(level) + math.sqrt(float(losses.max(initial=0.0)) / self.mean_weight)
        return noise * (2.0 * size + noise)

    def room(self, pair: tuple[float, int], largest: float) -> float:
        """Return a bound on the rounding allowed in an interval for nearly singular fits, by the largest loss of a row.

        Each of two models may have this error.
        """
        largest /= self.mean_weight
        noise = self.design.residual_noise(largest, *pair)
        return 2.0 * noise * (2.0 * math.sqrt(largest) + noise)

    def optima(
        self, left_out: IntArray, train: IntArray | None, pair: tuple[float, int], start: Sequence[int]
    ) -> tuple[list[FloatArray], list[FloatArray]] | None:
        """Return the losses of the tied optima of a training set, and of all possible ties; None if unknown.

        Parameters
        ----------
        left_out : int array
            Held-out rows.
        train : int array or None
            Training rows; None for all.
        pair : gamma, tau
            Pair of the models.
        start : sequence of int
            Initial support.
        """
        design, (gamma, tau) = self.design, pair
        fits = [model for model, _ in close_fits(design, design.sets(tau), gamma, tau, left_out, train)]
        least = min(model.objective for model in fits)
        doubt = design.rounding(least)
        squares = [(model.objective, self._squares(model)) for model in fits]
        tied = [model for value, model in squares if value <= least * (1.0 + 0.5 * TIE_RTOL)]
        return tied, [model for value, model in squares if value <= least * (1.0 + LOOSE_TIES) + doubt]


class LogLossesOfModels(LossesOfModels):
    """Losses of all rows under models with given supports, for logistic and Poisson loss.

    Parameters
    ----------
    design : UnitColumns
        Columns in the coordinates of the checks.
    classes : GlmDesign
        Design that computes the fits.
    most : int
        Maximum number of fits for the optima of one training set.
    """

    how = "branching over"

    def __init__(self, design: UnitColumns, classes: GlmDesign, most: int) -> None:
        super().__init__(design)
        self.classes, self.most, self.doubt = classes, most, 0.0

    def row_losses(self, support: Sequence[int], gamma: float, train: IntArray | None) -> FloatArray:
        """Return (n,) losses; see `LossesOfModels`."""
        columns = tuple(int(self.design.columns[place]) for place in support)
        return self._losses(columns, gamma, train)

    def _losses(self, columns: tuple[int, ...], gamma: float, train: IntArray | None) -> FloatArray:
        losses, doubt = self.classes.fit(columns, gamma, train).compute_row_losses(
            self.dataset, slice(0, self.dataset.n)
        )
        self.doubt = max(self.doubt, float(doubt.sum()))
        return losses

    def noise(self, losses: FloatArray, level: float) -> float:
        """Return a bound on the rounding of a mean change, from the errors of the fits of both models."""
        return 2.0 * self.doubt / self.total + 1e-12 * float(losses.sum()) / self.total

    def room(self, pair: tuple[float, int], largest: float) -> float:
        """See `LossesOfModels`."""
        return 8.0 * self.doubt / self.total + FOLLOWS_RTOL * largest

    def optima(
        self, left_out: IntArray, train: IntArray | None, pair: tuple[float, int], start: Sequence[int]
    ) -> tuple[list[FloatArray], list[FloatArray]] | None:
        """Return the same by branching; a search distinguishes fits that differ by more than its rounding."""
        begin = tuple(int(self.design.columns[place]) for place in start)
        best = self.classes.best(pair[1], pair[0], train, begin, self.most)
        if best is None:
            return None
        values = [self.classes.fit(support, pair[0], train).objective for support in best]
        losses = [self._losses(support, pair[0], train) for support in best]
        least = min(values) * (1.0 + SAME_OBJECTIVE)
        return [model for value, model in zip(values, losses, strict=True) if value <= least], losses


def check_stability(
    checks: Checks, record: Record, models: LossesOfModels, plan: FoldPlan, level: EnumerationLevel
) -> None:
    """Check the claims about the stability of the model, and about a choice by it.

    Parameters
    ----------
    models : LossesOfModels
        Losses of models.
    level : EnumerationLevel
        Extent of the enumeration of supports.
    """
    stable, requested = record.stability, record.request.stability is not None
    if stable is None:
        needed = requested and record.status == "proved"
        checks.require(not needed, "stability", "is null though a weight was asked for")
        return
    row = find_row(record, record.table)
    if row is None:
        return
    chosen = stable.chosen is not None
    checks.require(chosen <= requested, "stability.chosen", "is given though no weight was asked for")
    needed = requested and record.status == "proved"
    checks.require(chosen or not needed, "stability.chosen", "is null though a weight was asked for")
    inside = stable.instability_lower <= stable.instability <= stable.instability_upper
    checks.require(inside, "stability.instability", "lies outside of its own interval")
    decided = row.folds_decided == row.folds
    checks.require(decided or stable.estimate, "stability.estimate", "is false though a fold of the pair is open")
    if stable.chosen is not None:
        _choice(checks, record, stable, stable.chosen)
    tried = level is not EnumerationLevel.NEIGHBOURS
    ends = ("stability.instability_lower", "stability.instability_upper")
    checks.mark_bounded_fields(*ends, "request.stability")
    if not tried:
        checks.leaves("how far it is from the instability is read", *ends)
    if not checks.end_part("stability agrees with the table, and the choice by a weight with both"):
        return
    n_compared = 0
    if _check_refitted_changes(checks, record, models, plan, stable, level) and tried:
        n_compared = _compare_instability_intervals(checks, record, models, plan, stable, level)
    n_claimed = len(_claimed_intervals(record, stable))
    if stable.chosen is not None and n_compared < n_claimed:
        for name in INTERVAL_BOUNDS:
            checks.only_read(name, f"of {n_claimed - n_compared} of {n_claimed} pairs")


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
    compared = chosen.outer is not None and len(chosen.tried) > 0
    if not checks.require(compared, f"{path}outer", "outer folds and weights go together") or chosen.outer is None:
        return
    outer = rebuild_outer_folds(checks, chosen.outer, dataset, plan, f"{path}outer.")
    if outer is None:
        return
    for i, tried in enumerate(chosen.tried):
        place, first = f"{path}tried[{i}].", [outer_model.fold for outer_model in chosen.tried[0].folds]
        right = _are_ordered_folds(tried.folds, outer.k) and first == [outer_model.fold for outer_model in tried.folds]
        if not checks.require(right, f"{place}folds", "are not the same outer folds for every weight, each once"):
            return
        *_, error = _outer_errors(checks, record, (dataset, outer), tried.folds, place)
        checks.close(f"{place}error", tried.error, error, SAME * error)
    best = min(chosen.tried, key=lambda one: (one.error, one.weight))
    checks.mark_bounded_fields(f"{path}tried[].folds[].fold", f"{path}tried[].weight")
    checks.leaves("that it chooses its models is read", f"{path}tried[].weight")
    distinct = len({weighed.weight for weighed in chosen.tried}) == len(chosen.tried)
    checks.require(distinct, f"{path}tried", "names a weight twice")
    for j, weighed_error in enumerate(chosen.tried):
        checks.require(weighed_error.weight >= 0.0, f"{path}tried[{j}].weight", f"{weighed_error.weight!r} is below 0")
    words = f"is {chosen.weight!r}, the least error of the weights tried is that of {best.weight!r}"
    checks.require(chosen.weight == best.weight, f"{path}weight", words)
    checks.end_part(f"error of the models that {len(chosen.tried)} weights chose without an outer fold")


def _choice(checks: Checks, record: Record, stable: Stability, chosen: StableChoice) -> None:
    """Check that the bounds of the criterion follow from the table and the intervals, and the pair from its bounds."""
    path, weight = "stability.chosen.", chosen.weight
    weights = record.request.stability or ()
    checks.require(weight in weights[:1] and weight >= 0.0, f"{path}weight", "is not the one that was asked for")
    if not checks.require(len(chosen.intervals) == len(record.table), f"{path}intervals", "are not one for each pair"):
        return
    lower, upper = _criterion_bounds(record, chosen, weight)
    for i, interval_said in enumerate(chosen.intervals):
        checks.require(0.0 <= interval_said.lower <= interval_said.upper, f"{path}intervals[{i}]", "is no interval")
    checks.mark_bounded_fields(*INTERVAL_BOUNDS)
    checks.mark_bounded_fields(f"{path}proved", f"{path}models[].weight", f"{path}models[].tau")
    here = next(i for i, row in enumerate(record.table) if (row.gamma, row.tau) == (record.gamma, record.tau))
    mine, slip = chosen.intervals[here], 1e-9 * stable.instability_upper
    inside = mine.lower <= stable.instability_lower + slip and stable.instability_upper <= mine.upper + slip
    checks.require(inside, f"{path}intervals[{here}]", "does not hold the interval of the model's instability")
    least = float(lower.min())
    checks.require(
        _are_within_tolerance(chosen.lower, least),
        f"{path}lower",
        f"is {chosen.lower!r}, table and intervals give {least!r}",
    )
    top = float(upper[here])
    checks.require(
        _are_within_tolerance(chosen.upper, top),
        f"{path}upper",
        f"is {chosen.upper!r}, table and intervals give {top!r}",
    )
    room = _largest_allowance(record, lower, upper)
    words = f"{chosen.allowance!r} is not the width of the pair with the least lower end, {room!r}"
    checks.require(0.0 <= chosen.allowance <= room, f"{path}allowance", words)
    closed = math.isfinite(top) and chosen.upper - chosen.lower <= record.request.gap * top + chosen.allowance
    _models(checks, record, chosen, f"{path}models", weights)
    if chosen.proved:
        checks.require(closed, f"{path}proved", "is true though upper - lower exceeds the gap")
        first = top <= float(upper.min()) * (1.0 + 2.0 * TIE_RTOL)
        checks.require(first, f"{path}upper", "another pair has a smaller one")


def _criterion_bounds(record: Record, chosen: StableChoice, weight: float) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds of `h + weight * instability` by row of the table."""
    rows = list(zip(record.table, chosen.intervals, strict=True))
    lower = np.array([row.lower + weight * interval.lower for row, interval in rows])
    return lower, np.array([row.upper + (weight * interval.upper if weight else 0.0) for row, interval in rows])


def _largest_allowance(record: Record, lower: FloatArray, upper: FloatArray) -> float:
    """Return the width of the pair with the smallest lower bound if all its folds are solved, else 0."""
    lowest = int(lower.argmin())
    if record.table[lowest].folds_decided < record.table[lowest].folds:
        return 0.0
    return float(upper[lowest] - lower[lowest]) * (1.0 + FOLLOWS_RTOL) + LAST * abs(float(upper[lowest]))


def _models(checks: Checks, record: Record, chosen: StableChoice, path: str, asked: tuple[float, ...]) -> None:
    """Check that the models are for the requested weights, and that the first one is the answer."""
    for i, model in enumerate(chosen.models):
        _model(checks, record, model, f"{path}[{i}].")
        lower, upper = _criterion_bounds(record, chosen, model.weight)
        here = [j for j, row in enumerate(record.table) if (row.gamma, row.tau) == (model.gamma, model.tau)]
        if i and here and model.proved:
            top = float(upper[here[0]])
            width = record.request.gap * top + _largest_allowance(record, lower, upper)
            closed = math.isfinite(top) and top - float(lower.min()) <= width
            checks.require(
                closed, f"{path}[{i}].proved", "is true though the criterion of its weight leaves a larger gap"
            )
    if len(chosen.models) > 1:
        checks.only_read(f"{path}[].support", "no other subset is compared")
    if chosen.models:
        weights = tuple(model.weight for model in chosen.models)
        checks.require(weights == asked, path, "are not those of the weights that were asked for")
        own = chosen.models[0]
        right = (own.gamma, own.tau, own.support) == (record.gamma, record.tau, record.support)
        checks.require(right, f"{path}[0]", "is not the model of the record")


def _model(checks: Checks, record: Record, one: WeighedModel, path: str) -> None:
    """Check that the model of a weight is at a pair of the grid and has features of the data."""
    pairs = {(row.gamma, row.tau) for row in record.table}
    checks.require((one.gamma, one.tau) in pairs, f"{path}gamma", "the pair is not in the table")
    size = (record.request.restrictions or NONE).features(one.support)
    allowed = len(set(one.support)) == len(one.support) and size <= one.tau
    allowed &= set(one.support) <= set(record.data.names)
    checks.require(allowed, f"{path}support", f"is not a set of up to {one.tau} features of the data")


def _are_within_tolerance(a: float, b: float) -> bool:
    return are_nearly_equal(a, b) or abs(a - b) <= LAST * max(abs(a), abs(b))


def _check_refitted_changes(
    checks: Checks, record: Record, models: LossesOfModels, plan: FoldPlan, stable: Stability, level: EnumerationLevel
) -> bool:
    """Refit the full-data model and that of every fold; return True if the changes agree with the record."""
    data, design = models.dataset, models.design
    if float(data.n) * plan.k * (record.tau + 1.0) ** 2 > STABILITY_NUMBERS:
        checks.only_read("stability.instability", "too many rows and folds to fit all again")
        return True
    full = design.positions(record.support)
    by_number = [design.positions(names) for names in record.chosen_folds.supports]
    supports = [support for which in record.chosen_folds.which if (support := by_number[which]) is not None]
    if full is None or len(supports) < plan.k:
        return True
    model = models.row_losses(full, record.gamma, None)
    changes = np.array([
        objective.changes(model, models.row_losses(own, record.gamma, plan.train_rows(i)), models.total)
        for i, own in enumerate(supports)
    ])  # fmt: skip
    worst = float(changes.max())
    slack = FOLLOWS_RTOL * worst + models.noise(model, worst)
    if stable.estimate:  # moved to the nearer bound of its interval
        said = min(max(worst, stable.instability_lower), stable.instability_upper)
        if level is EnumerationLevel.NEIGHBOURS and abs(said - worst) > slack:
            words = f"the supports of the record give {worst!r}, the interval that it is moved to is read"
            for name in ("", "_lower", "_upper"):
                checks.only_read(f"stability.instability{name}", words)
        worst = said
    checks.close("stability.instability", stable.instability, worst, slack)
    right = stable.fold < plan.k and changes[stable.fold] >= changes.max() - slack
    checks.require(bool(right), "stability.fold", f"another fold changes the model more, {int(changes.argmax())}")
    return checks.end_part("instability of the model at the supports of the record, by refits")


def _claimed_intervals(record: Record, stable: Stability) -> list[tuple[float, int, InstabilityRow, str]]:
    """Return gamma, tau, interval and path of every pair with a claim: the reported pair, then the smallest bounds."""
    own = InstabilityRow(stable.instability_lower, stable.instability_upper)
    claimed = [(record.gamma, record.tau, own, "stability.instability")]
    if stable.chosen is None:
        return claimed
    weight, rows = stable.chosen.weight, zip(record.table, stable.chosen.intervals, strict=True)
    others = [
        (row.lower + weight * interval.lower, (row.gamma, row.tau, interval, f"stability.chosen.intervals[{i}]"))
        for i, (row, interval) in enumerate(rows)
        if (row.gamma, row.tau) != (record.gamma, record.tau)
        and (interval.lower > 0.0 or math.isfinite(interval.upper))
    ]
    return claimed + [claim for _, claim in sorted(others, key=lambda bound_and_claim: bound_and_claim[0])]


def _compare_instability_intervals(
    checks: Checks, record: Record, models: LossesOfModels, plan: FoldPlan, stable: Stability, level: EnumerationLevel
) -> int:
    """Compare the intervals of instabilities with the truth; return the number of compared pairs."""
    claimed = _claimed_intervals(record, stable)
    most = max(1, MOST_ENUMERATED // plan.k) if level is EnumerationLevel.GRID else 1
    for i, (gamma, tau, interval, path) in enumerate(claimed[:most]):
        ends = interval.lower, interval.upper
        if not _check_true_interval(checks, record, (models, plan), (gamma, tau), ends, path, None if i else stable):
            checks.leaves("how far it is from the instability is read", "stability.instability_lower")
            checks.leaves("how far it is from the instability is read", "stability.instability_upper")
            return i
    checks.mark_bounded_fields("stability.instability_lower", "stability.instability_upper")
    if len(claimed) > 1 and most > 1:
        checks.mark_bounded_fields(*INTERVAL_BOUNDS)
    which = "the pair" if len(claimed) == 1 else f"{min(most, len(claimed))} of {len(claimed)} pairs"
    checks.end_part(f"instability of {which}, by {models.how} all supports")
    return min(most, len(claimed))


def _check_true_interval(
    checks: Checks, record: Record, given: tuple[LossesOfModels, FoldPlan], pair: tuple[float, int],
    ends: tuple[float, float], path: str, stable: Stability | None,
) -> bool:  # fmt: skip
    """Compare the interval of a pair with the changes of its true optima, including ties; False if unknown."""
    (models, plan), none = given, np.zeros(0, dtype=np.int64)
    design = models.design
    features = sorted(design.index[name] for name in record.support if name in design.index)[: pair[1]]
    start = sorted({*features, *design.adjusted_columns})
    every = [models.optima(none, None, pair, start)]
    for fold in range(plan.k):
        if every[-1] is None:
            return False
        every.append(models.optima(plan.left_out(fold), plan.train_rows(fold), pair, start))
    solved = [optima for optima in every if optima is not None]
    if len(solved) < len(every):
        return False
    low, high = _instability_ends([tied for tied, _ in solved], models.total)
    slack = FOLLOWS_RTOL * high + models.noise(np.concatenate(solved[0][0]), high)
    checks.require(ends[0] <= low + slack, path, f"the lower end {ends[0]!r} exceeds the true {low!r}")
    checks.require(high <= ends[1] + slack, path, f"the upper end {ends[1]!r} is below the true {high!r}")
    if stable is not None and not stable.estimate:
        loose_low, loose_high = _instability_ends([loose for _, loose in solved], models.total)
        largest = max(float(values.max(initial=0.0)) for _, loose in solved for values in loose)
        room = slack + models.room(pair, largest)
        near = loose_low - room <= ends[0] and ends[1] <= loose_high + room
        checks.require(near, path, f"of a pair whose optima are known the interval is [{loose_low!r}, {loose_high!r}]")
    return True


def _instability_ends(models: Sequence[list[FloatArray]], total: float) -> tuple[float, float]:
    """Return the smallest and the largest instability over the full-data models (first) and the fold models."""
    full, *folds = models
    ends = []
    for model in full:
        by_fold = [[objective.changes(model, without, total) for without in fold] for fold in folds]
        ends.append((max(map(min, by_fold)), max(map(max, by_fold))))
    return min(low for low, _ in ends), max(high for _, high in ends)

"""Summaries of models chosen on random draws of the rows, comparisons with baselines, and checks of both by `verify`.

The summaries are frequencies, intervals and bounds. `verify` recomputes them from the models that the record lists, but
does not choose these models again. It recomputes the held-out errors of baselines from their stored fold models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checked_fields import SAME, Checks
from sparsecv_mio.certificate.design import Design
from sparsecv_mio.certificate.inference_parts import (
    Baseline,
    Bootstrap,
    DrawPlan,
    FeatureCount,
    FeatureFrequency,
    ModelFrequency,
    SizeFrequency,
    StabilitySelection,
)
from sparsecv_mio.certificate.own_rows import rows_of_outer_fold
from sparsecv_mio.certificate.records import Nested, Record
from sparsecv_mio.certificate.restrictions import complete_factors, restrictions_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.model_space import words_of_terms
from sparsecv_mio.problem.glm_objective import weighted_losses
from sparsecv_mio.problem.objective import standard_error, varying_columns
from sparsecv_mio.thresholds import MAX_DRAWS
from sparsecv_mio.units import ACCURATE_RTOL, LOSS_ROUNDING

MAX_MODELS = 50  # maximum number of distinct models with their frequencies in a record
ENDS = ("lower", "upper", "coefficient_low", "coefficient_high")  # fields of the two intervals of a feature


def count_features(record: Record, supports: Sequence[Collection[str]]) -> list[FeatureCount]:
    """Return the number of models with each feature, the most frequent first, then in the order of the data.

    Parameters
    ----------
    record : Record
        Record of all rows, whose features are listed too.
    supports : sequence of collections of str
        Columns of the models of the draws, at least one model, with all columns of their factors.
    """
    counts = Counter(name for support in supports for name in support)
    counts.update(dict.fromkeys(restrictions_of(record).adjust, len(supports)))
    counts.update(dict.fromkeys(record.support, 0))
    place = {name: i for i, name in enumerate(record.data.names)}
    order = sorted(counts, key=lambda name: (-counts[name], place[name]))
    return [FeatureCount(name, counts[name], counts[name] / len(supports)) for name in order]


def summarise_bootstrap(record: Record, found: Bootstrap) -> Bootstrap:
    """Return a bootstrap in which all numbers are computed from its models.

    Parameters
    ----------
    record : Record
        Record of all rows.
    found : Bootstrap
        Bootstrap with the models of the draws, at least one; its frequencies are replaced.

    Notes
    -----
    The binomial interval is that of Wilson (1927). The percentiles of coefficients are linear interpolations of the
    order statistics over all draws (Efron and Tibshirani 1993, section 13.3); coefficients outside of a model are 0.
    """
    from scipy.stats import binomtest

    models, n_models, features = found.chosen, len(found.chosen), []
    limits = restrictions_of(record)
    forced, supports = limits.forced_columns, [complete_factors(model.support, limits.count) for model in models]
    for counted in count_features(record, supports):
        values = np.array([model.coefficients.get(counted.feature, 0.0) for model in models])
        share = binomtest(counted.draws, n_models).proportion_ci(found.level, method="wilson")
        low, high = np.quantile(values, [(1.0 - found.level) / 2.0, (1.0 + found.level) / 2.0]).tolist()
        ends = float(share.low), float(share.high), low, high
        zeros, is_forced = float(np.mean(values == 0.0)), counted.feature in forced
        features.append(
            FeatureFrequency(**vars(counted), **dict(zip(ENDS, ends, strict=True)), zeros=zeros, forced=is_forced)
        )
    place = {name: i for i, name in enumerate(record.data.names)}
    sizes = Counter(model.tau for model in models)
    counts = Counter(tuple(sorted(support, key=place.__getitem__)) for support in supports)
    by_count = sorted(counts, key=lambda support: (-counts[support], len(support), support))
    return replace(
        found,
        certified=sum(model.status == "proved" for model in models),
        features=tuple(features),
        sizes=tuple(SizeFrequency(tau, sizes[tau], sizes[tau] / n_models) for tau in sorted(sizes)),
        models=tuple(ModelFrequency(one, counts[one], counts[one] / n_models) for one in by_count[:MAX_MODELS]),
    )


def bound_false_selections(mean_size: float, n_features: int, threshold: float) -> float:
    """Return the bound on the expected number of selected features that a half rarely chooses.

    Parameters
    ----------
    mean_size : float
        Mean number of features that a half chooses.
    n_features : int
        Number of features to choose from.
    threshold : float
        Minimum frequency of a selected feature, above 0.5.

    Notes
    -----
    Shah and Samworth (2013), Theorem 1 with theta = mean_size / n_features. Meinshausen and Buehlmann (2010),
    Theorem 1, have the same bound on the number of selected noise features under stronger assumptions.

    Examples
    --------
    >>> bound_false_selections(5.0, 100, 0.75)
    0.5
    """
    return mean_size**2 / ((2.0 * threshold - 1.0) * n_features) if n_features else 0.0


def summarise_stability_selection(
    record: Record, dataset: Dataset, found: StabilitySelection, by_column: bool = False
) -> StabilitySelection:
    """Return a stability selection in which all numbers are computed from its models.

    Parameters
    ----------
    record : Record
        Record of all rows.
    dataset : Dataset
        Data of the record.
    found : StabilitySelection
        Stability selection with the models of the halves; its frequencies are replaced.
    by_column : bool
        True if each level of a factor counts as a feature, as in records of development versions.
    """
    halves, limits = Counter(model.draw // 2 for model in found.chosen), restrictions_of(record)
    models = [model for model in found.chosen if halves[model.draw // 2] == 2]  # both halves of the pair have a model
    varying = [dataset.names[j] for j in varying_columns(dataset.X).tolist()]
    names = [name for name in varying if name not in (*limits.forced_columns, *limits.force_out)]
    factors = () if by_column else limits.count
    terms = words_of_terms(names, factors)
    if not models:
        return replace(found, pairs=0, mean_size=0.0, n_features=len(terms), bound=0.0, selected=(), features=())
    counts = Counter(
        term for model in models for term in words_of_terms([name for name in model.support if name in names], factors)
    )
    mean_size = counts.total() / len(models)
    return replace(
        found,
        pairs=len(models) // 2,
        mean_size=mean_size,
        n_features=len(terms),
        bound=bound_false_selections(mean_size, len(terms), found.threshold),
        selected=tuple(term for term in terms if counts[term] / len(models) >= found.threshold),
        certified=sum(model.status == "proved" for model in found.chosen),
        features=tuple(count_features(record, [complete_factors(model.support, factors) for model in models])),
    )


def check_draws(checks: Checks, record: Record, dataset: Dataset) -> None:
    """Check the numbers of the bootstrap and of stability selection, if the record has them.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record with the models of the draws.
    dataset : Dataset
        Data of the record.
    """
    drawn, halves = record.bootstrap, record.stability_selection
    if drawn is not None and _check_models(checks, record, drawn, "bootstrap"):
        again = summarise_bootstrap(record, drawn)
        checks.compare_parts("bootstrap.features", drawn.features, again.features, _allow_rounding)
        checks.compare_fields("bootstrap", drawn, again, ("certified", "sizes", "models"))
        checks.end_part(f"bootstrap: frequencies and intervals of the models of {len(drawn.chosen)} draws")
    if halves is not None and _check_models(checks, record, halves, "stability_selection"):
        same = summarise_stability_selection(record, dataset, halves)
        if halves.n_features != same.n_features:
            same = summarise_stability_selection(record, dataset, halves, by_column=True)
        names = ("certified", "pairs", "mean_size", "n_features", "selected", "features")
        checks.compare_fields("stability_selection", halves, same, names)
        checks.close("stability_selection.bound", halves.bound, same.bound, 1e-12 * same.bound)
        checks.end_part(f"stability selection: frequencies and error bound of {len(halves.chosen)} halves")


def check_missing_draws(checks: Checks, record: Record, plan: DrawPlan, numbers: Sequence[int], name: str) -> None:
    """Check that a warning states the number of the finished draws if requested draws are missing.

    Otherwise draws could be left out because of their results.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record with the draws.
    plan : DrawPlan
        Requested draws.
    numbers : sequence of int
        Numbers of the finished draws, with those that have no model.
    name : str
        Field of the draws in the record.
    """
    option = "infer" if name == "inference" else name
    stated = f" after {len(numbers)} of {plan.requested} draws"
    is_explained = any(text.startswith(f"{option}: ") and stated in text for text in record.warnings)
    missing = sorted(set(range(min(plan.requested, MAX_DRAWS))) - set(numbers))
    shown = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
    words = f"omits the requested draws {shown}, and no warning states that a limit ended the run"
    checks.require(not missing or is_explained, name, words)


def _check_models(checks: Checks, record: Record, found: Bootstrap | StabilitySelection, name: str) -> bool:
    """Check the numbers of the draws, and that each model is a pair of the grid; return True if all can be counted."""
    numbers = [model.draw for model in found.chosen] + [one.draw for one in found.failed]
    is_distinct = len(set(numbers)) == len(numbers) and all(number < found.plan.requested for number in numbers)
    right = checks.require(is_distinct, f"{name}.chosen", "must have each of the requested draws at most once")
    left_out = found.plan.truncated <= found.plan.requested - len(numbers)
    checks.require(
        left_out, f"{name}.plan.truncated", "must be at most the number of the requested draws without a model"
    )
    check_missing_draws(checks, record, found.plan, numbers, name)
    right &= checks.require(bool(found.chosen), f"{name}.chosen", "must have a model for at least one draw")
    if isinstance(found, Bootstrap):
        right &= checks.require(0.0 < found.level < 1.0, f"{name}.level", "must be between 0 and 1")
    else:
        right &= checks.require(0.5 < found.threshold <= 1.0, f"{name}.threshold", "must be above 0.5 and at most 1")
    for i, model in enumerate(found.chosen):
        on_grid = bool(record.descent) or model.gamma in record.request.gammas
        on_grid &= model.tau in record.request.taus
        checks.require(on_grid, f"{name}.chosen[{i}].tau", "must form, with gamma, a pair of the requested grid")
    checks.only_read(f"{name}.chosen", "not checked: whether the procedure chooses these models from the draws")
    checks.mark_bounded_fields(f"{name}.plan.requested", f"{name}.plan.truncated", f"{name}.failed[].draw")
    return right


def _allow_rounding(part: FeatureFrequency, name: str) -> float:
    """Return the maximum difference of a number of a feature; intervals may differ in their last digits."""
    return 1e-9 * max(abs(getattr(part, name)), 1e-6) if name in ENDS else 0.0


def check_baselines(checks: Checks, record: Record, design: Design, dataset: Dataset, outer: FoldPlan | None) -> None:
    """Check the baselines of a record; that the stored fold models are those of their methods is only read.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record of a search.
    design : Design
        Rows and folds of the record.
    dataset : Dataset
        Data of the record, before fold-specific preprocessing.
    outer : FoldPlan or None
        Outer folds of the record; None if it has none, or lists wrong ones.
    """
    methods = () if record.baselines is None else record.baselines.methods
    is_nested = any(entry.nested is not None for entry in methods)
    outer_rows = _take_outer_rows(checks, record, dataset, outer) if is_nested else None
    shape = design.folds.k, 1 + design.dataset.p
    for i, entry in enumerate(methods):
        path = f"baselines.methods[{i}]."
        is_first = all((other.method, other.one_se) != (entry.method, entry.one_se) for other in methods[:i])
        checks.require(is_first, f"{path}method", f"{entry.label} is listed twice")
        if not checks.require(len(entry.fold_errors) == shape[0], f"{path}fold_errors", "must have one value per fold"):
            continue
        if not entry.fold_models:
            checks.only_read(
                "baselines.methods[].fold_errors", f"{entry.method}: the fold models are too many to store"
            )
        elif checks.require(
            [len(model) for model in entry.fold_models] == [shape[1]] * shape[0], f"{path}fold_models",
            "must have the intercept and every coefficient of every fold",
        ):  # fmt: skip
            _check_fold_errors(checks, record, design, entry, f"{path}fold_errors")
        _check_comparison(checks, record, design, entry, path)
        _check_nested(checks, record, outer_rows, entry, path)
        if entry.one_se:
            _check_one_se(checks, record, design, entry, path)
        is_nonzero = all(entry.coefficients.get(name) for name in entry.support)
        checks.require(is_nonzero, f"{path}support", "must have only features with nonzero coefficients")
    if methods:
        is_stored = all(entry.fold_models for entry in methods)
        errors = "held-out errors of baselines by their stored fold models, " if is_stored else ""
        checks.end_part(f"{errors}CV errors of baselines, differences from the reported pair, certified percentages")


def _check_one_se(checks: Checks, record: Record, design: Design, entry: Baseline, path: str) -> None:
    """Check that a baseline of the one-standard-error rule is within one standard error of that of the minimum."""
    methods = record.baselines.methods if record.baselines is not None else ()
    least = next((other for other in methods if other.method == entry.method and not other.one_se), None)
    words = "is true, but the record lacks a one-standard-error pair, or the smallest CV error of this method"
    right = record.one_se is not None and design.scored.has_standard_error
    if not checks.require(right and least is not None, f"{path}one_se", words) or least is None:
        return
    spread = standard_error(np.array(least.fold_errors), design.scored.by_fold, design.scored.times)
    is_within = least.cv_error <= entry.cv_error * (1.0 + SAME)
    is_within &= entry.cv_error <= (least.cv_error + spread) * (1.0 + SAME)
    words = "must be from the smallest CV error of this method to one standard error above it"
    checks.require(is_within, f"{path}cv_error", words)
    checks.mark_bounded_fields(f"{path}one_se")


def _check_fold_errors(checks: Checks, record: Record, design: Design, entry: Baseline, path: str) -> None:
    """Compare the held-out losses of the stored models of the folds with the record."""
    checks.mark_recomputed_fields(path)
    for fold, (said, model) in enumerate(zip(entry.fold_errors, np.array(entry.fold_models), strict=True)):
        error, room = _score_model(record, design.dataset.take(design.folds.scored_rows(fold)), model)
        if not checks.close(f"{path}[{fold}]", said, error, room):
            return


def _score_model(record: Record, rows: Dataset, model: FloatArray) -> tuple[float, float]:
    """Return the sum of the losses of rows for an intercept and coefficients, and a bound on its rounding error."""
    predictors = model[0] + rows.X @ model[1:]
    rounding = LOSS_ROUNDING * (abs(model[0]) + np.abs(rows.X) @ np.abs(model[1:]))
    losses = weighted_losses(rows, record.loss, predictors)
    moved = [weighted_losses(rows, record.loss, predictors + side) for side in (-rounding, rounding)]
    error = float(losses.sum())
    return error, float(np.max([np.abs(shifted - losses) for shifted in moved], axis=0).sum()) + ACCURATE_RTOL * error


def compare_with_pair(record: Record, scored: Scored, errors: FloatArray) -> dict[str, float | None]:
    """Return the CV error of a baseline, and its comparison with the reported pair, as fields of `Baseline`.

    Parameters
    ----------
    record : Record
        Record of a search.
    scored : Scored
        Weights of the rows that the folds score.
    errors : (k,) array
        Sums of the held-out losses of the baseline.
    """
    differences, lower = errors - record.chosen_folds.error, record.certificate.lower
    error, is_known = float(errors.sum()) / scored.total, bool(np.isfinite(differences).all())
    has_spread = is_known and scored.has_standard_error
    return {
        "cv_error": error,
        "difference": float(differences.sum()) / scored.total if is_known else None,
        "standard_error": standard_error(differences, scored.by_fold, scored.times) if has_spread else None,
        "possible_gain": 100.0 * (1.0 - lower / error) if lower > 0.0 and error > 0.0 else None,
    }


def compare_nested_errors(nested: Nested, weights: FloatArray, errors: FloatArray) -> dict[str, Any]:
    """Return the nested CV error of a baseline, and its comparison with that of the record, as `NestedBaseline` has it.

    Parameters
    ----------
    nested : Nested
        Nested cross-validation of the record.
    weights : (F,) array
        Total weights of the rows of the finished outer folds.
    errors : (F,) array
        Mean losses of the baseline on these folds.
    """
    differences = (errors - [one.error for one in nested.folds]) * weights
    return {
        "error": float(np.average(errors, weights=weights)),
        "difference": float(differences.sum() / weights.sum()),
        "standard_error": standard_error(differences, weights) if len(weights) > 1 else None,
    }


def _take_outer_rows(checks: Checks, record: Record, dataset: Dataset, outer: FoldPlan | None) -> list[Dataset] | None:
    """Return the rows of each finished outer fold as models without it see them; None if the record has none."""
    taken = list[Dataset]()
    if record.nested is None or outer is None:
        return None
    for fold in (one.fold for one in record.nested.folds):
        seen = rows_of_outer_fold(checks, record, dataset, outer.train_rows(fold), "nested.folds")
        if seen is None:
            return None
        taken.append(seen.take(outer.scored_rows(fold)))
    return taken


def _check_nested(checks: Checks, record: Record, outer_rows: list[Dataset] | None, entry: Baseline, path: str) -> None:
    """Score the stored models of the outer folds of a baseline again; that they are its choices is only read."""
    said, nested, place = entry.nested, record.nested, f"{path}nested"
    if said is None or not checks.require(nested is not None, place, "requires a nested CV error of the record"):
        return
    if nested is None or outer_rows is None:  # an error of the outer folds themselves is stated already
        return
    widths = [1 + rows.p for rows in outer_rows] if said.fold_models else []
    is_whole = len(said.fold_errors) == len(outer_rows) and [len(model) for model in said.fold_models] == widths
    if not checks.require(is_whole, f"{place}.fold_errors", "must have one value, and one model, per outer fold"):
        return
    weights = np.array([rows.weight_of(slice(0, rows.n)) for rows in outer_rows])
    for at, model in enumerate(np.array(said.fold_models)):
        error, room = _score_model(record, outer_rows[at], model)
        checks.close(f"{place}.fold_errors[{at}]", said.fold_errors[at], error / weights[at], room / weights[at])
    if said.fold_models:
        checks.mark_recomputed_fields(f"{place}.fold_errors")
    else:
        checks.only_read("baselines.methods[].nested.fold_errors", f"{entry.method}: the models are too many to store")
    again = compare_nested_errors(nested, weights, np.array(said.fold_errors))
    _compare_numbers(checks, said, again, f"{place}.", (said.error + nested.error, len(outer_rows)))


def _compare_numbers(
    checks: Checks, said: Any, again: dict[str, float | None], path: str, size: tuple[float, int]
) -> None:
    """Compare numbers of a comparison, or their absence, with those computed again; `size`: their scale, and folds."""
    for name, value in again.items():
        given, place = getattr(said, name), f"{path}{name}"
        checks.mark_recomputed_fields(place)
        if given is None or value is None:
            checks.require(given is value, place, f"is {given!r}, but the recomputed value is {value!r}")
        else:
            unit = 100.0 + abs(value) if name == "possible_gain" else size[0]
            checks.close(place, given, value, 10.0 * SAME * unit * np.sqrt(size[1]))


def _check_comparison(checks: Checks, record: Record, design: Design, entry: Baseline, path: str) -> None:
    """Compute the numbers of the comparison again, from the held-out errors of the folds."""
    errors = np.array(entry.fold_errors)
    again = compare_with_pair(record, design.scored, errors)
    scale = float(np.abs(errors).sum()) / design.scored.total + record.cv_error
    _compare_numbers(checks, entry, again, path, (scale, len(errors)))

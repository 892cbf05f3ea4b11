"""Frequencies, intervals and bounds from the models of draws, and the checks of these numbers by `verify`.

`verify` recomputes the numbers from the models that the record lists. It does not choose these models again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.inference_parts import (
    Bootstrap,
    ChosenModel,
    FailedDraw,
    FeatureCount,
    FeatureFrequency,
    ModelFrequency,
    SizeFrequency,
    StabilitySelection,
)
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.objective import varying_columns

MAX_MODELS = 50  # maximum number of distinct models with their frequencies in a record
MODELS_READ = "not checked: whether the procedure chooses these models from the draws"


def count_features(record: Record, models: Sequence[ChosenModel]) -> list[FeatureCount]:
    """Return the number of models with each feature, the most frequent first, then in the order of the data.

    Parameters
    ----------
    record : Record
        Record of all rows, whose features are listed too.
    models : sequence of ChosenModel
        Models of the draws, at least one.
    """
    counts = Counter(name for model in models for name in model.support)
    counts.update(dict.fromkeys(restrictions_of(record).adjust, len(models)))
    counts.update(dict.fromkeys(record.support, 0))
    place = {name: i for i, name in enumerate(record.data.names)}
    order = sorted(counts, key=lambda name: (-counts[name], place[name]))
    return [FeatureCount(name, counts[name], counts[name] / len(models)) for name in order]


def summarise_features(record: Record, models: Sequence[ChosenModel], level: float) -> tuple[FeatureFrequency, ...]:
    """Return inclusion frequencies and intervals of coefficients over bootstrap draws.

    Parameters
    ----------
    record : Record
        Record of all rows.
    models : sequence of ChosenModel
        Models of the draws, at least one.
    level : float
        Level of the intervals.

    Notes
    -----
    The binomial interval is that of Wilson (1927). The percentiles of coefficients are linear interpolations of the
    order statistics over all draws (Efron and Tibshirani 1993, section 13.3); coefficients outside of a model are 0.
    """
    from scipy.stats import binomtest

    forced, ends = set(restrictions_of(record).forced_columns), [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    rows = []
    for counted in count_features(record, models):
        values = np.array([model.coefficients.get(counted.feature, 0.0) for model in models])
        share = binomtest(counted.draws, len(models)).proportion_ci(level, method="wilson")
        low, high = np.quantile(values, ends).tolist()
        zeros = float(np.mean(values == 0.0))
        rows.append(
            FeatureFrequency(
                counted.feature, counted.draws, counted.frequency, float(share.low), float(share.high), low, high,
                zeros, counted.feature in forced,
            )
        )  # fmt: skip
    return tuple(rows)


def summarise_bootstrap(record: Record, found: Bootstrap) -> Bootstrap:
    """Return a bootstrap in which all numbers are computed from its models.

    Parameters
    ----------
    record : Record
        Record of all rows.
    found : Bootstrap
        Bootstrap with the models of the draws, at least one; its frequencies are replaced.
    """
    models, n_models = found.chosen, len(found.chosen)
    place = {name: i for i, name in enumerate(record.data.names)}
    sizes = Counter(model.tau for model in models)
    supports = Counter(tuple(sorted(model.support, key=place.__getitem__)) for model in models)
    by_count = sorted(supports, key=lambda support: (-supports[support], len(support), support))
    return replace(
        found,
        certified=sum(model.status == "proved" for model in models),
        features=summarise_features(record, models, found.level),
        sizes=tuple(SizeFrequency(tau, sizes[tau], sizes[tau] / n_models) for tau in sorted(sizes)),
        models=tuple(ModelFrequency(one, supports[one], supports[one] / n_models) for one in by_count[:MAX_MODELS]),
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


def selectable_features(record: Record, dataset: Dataset) -> tuple[str, ...]:
    """Return the features that a model may have or lack: those that vary and are neither forced in nor out.

    Parameters
    ----------
    record : Record
        Record of all rows.
    dataset : Dataset
        Data of the record.
    """
    limits = restrictions_of(record)
    fixed = {*limits.forced_columns, *limits.force_out}
    names = (dataset.names[j] for j in varying_columns(dataset.X).tolist())
    return tuple(name for name in names if name not in fixed)


def complete_pairs(chosen: Sequence[ChosenModel]) -> list[ChosenModel]:
    """Return the models of complementary pairs of which both halves have a model.

    Parameters
    ----------
    chosen : sequence of ChosenModel
        Models of the halves; halves 2 i and 2 i + 1 are a pair.
    """
    halves = Counter(model.draw // 2 for model in chosen)
    return [model for model in chosen if halves[model.draw // 2] == 2]


def summarise_stability_selection(record: Record, dataset: Dataset, found: StabilitySelection) -> StabilitySelection:
    """Return a stability selection in which all numbers are computed from its models.

    Parameters
    ----------
    record : Record
        Record of all rows.
    dataset : Dataset
        Data of the record.
    found : StabilitySelection
        Stability selection with the models of the halves; its frequencies are replaced.
    """
    models, names = complete_pairs(found.chosen), selectable_features(record, dataset)
    if not models:
        return replace(found, pairs=0, mean_size=0.0, n_features=len(names), bound=0.0, selected=(), features=())
    sizes = [len(set(model.support) & set(names)) for model in models]
    mean_size, features = sum(sizes) / len(models), count_features(record, models)
    chosen = {one.feature for one in features if one.frequency >= found.threshold}
    return replace(
        found,
        pairs=len(models) // 2,
        mean_size=mean_size,
        n_features=len(names),
        bound=bound_false_selections(mean_size, len(names), found.threshold),
        selected=tuple(name for name in names if name in chosen),
        certified=sum(model.status == "proved" for model in found.chosen),
        features=tuple(features),
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
    if (found := record.bootstrap) is not None and _check_models(checks, record, found, "bootstrap."):
        again = summarise_bootstrap(record, found)
        _check_frequencies(checks, found.features, again.features, "bootstrap.features")
        for name in ("certified", "sizes", "models"):
            checks.require_equal(f"bootstrap.{name}", getattr(found, name), getattr(again, name))
        checks.end_part(f"bootstrap: frequencies and intervals of the models of {len(found.chosen)} draws")
    if (halves := record.stability_selection) is not None and _check_models(
        checks, record, halves, "stability_selection."
    ):
        same = summarise_stability_selection(record, dataset, halves)
        for name in ("certified", "pairs", "mean_size", "n_features", "selected", "features"):
            checks.require_equal(f"stability_selection.{name}", getattr(halves, name), getattr(same, name))
        checks.close("stability_selection.bound", halves.bound, same.bound, 1e-12 * same.bound)
        checks.end_part(f"stability selection: frequencies and bound of the models of {len(halves.chosen)} halves")


def _check_models(checks: Checks, record: Record, found: Bootstrap | StabilitySelection, path: str) -> bool:
    """Check the numbers of the draws, and that each model is a pair of the grid; return True if all can be counted."""
    choices: list[ChosenModel | FailedDraw] = [*found.chosen, *found.failed]
    numbers = [choice.draw for choice in choices]
    distinct = len(set(numbers)) == len(numbers) and all(number < found.plan.requested for number in numbers)
    right = checks.require(distinct, f"{path}chosen", "must have each of the requested draws at most once")
    right &= checks.require(bool(found.chosen), f"{path}chosen", "has no model")
    right &= checks.require(0.0 < getattr(found, "level", 0.5) < 1.0, f"{path}level", "is not between 0 and 1")
    right &= checks.require(0.5 < getattr(found, "threshold", 1.0) <= 1.0, f"{path}threshold", "is not above 0.5")
    for i, model in enumerate(found.chosen):
        on_grid = bool(record.descent) or model.gamma in record.request.gammas
        on_grid &= model.tau in record.request.taus
        checks.require(on_grid, f"{path}chosen[{i}].tau", "and gamma are not a pair of the requested grid")
    checks.only_read(f"{path}chosen", MODELS_READ)
    checks.mark_bounded_fields(f"{path}plan.requested", f"{path}failed[].draw")
    return bool(right)


def _check_frequencies(
    checks: Checks, stated: Sequence[FeatureFrequency], again: Sequence[FeatureFrequency], name: str
) -> None:
    """Compare inclusion frequencies and intervals; binomial intervals may differ in their last digits."""
    counts = [(one.feature, one.draws, one.frequency, one.zeros, one.forced) for one in again]
    same = [(one.feature, one.draws, one.frequency, one.zeros, one.forced) for one in stated] == counts
    if not checks.require(same, name, "has other features or frequencies than the models"):
        return
    checks.mark_recomputed_fields(name)
    for i, (one, other) in enumerate(zip(stated, again, strict=True)):
        for field in ("lower", "upper", "coefficient_low", "coefficient_high"):
            value = getattr(other, field)
            checks.close(f"{name}[{i}].{field}", getattr(one, field), value, 1e-9 * max(abs(value), 1e-6))

"""Records with an averaged model, altered in one place: `verify` refuses them and names the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.certificate.records import Average, OuterAverage, Record, WithinFolds
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.problem.objective import fit, weights_of_pairs
from sparsecv_mio.search.api import cross_validate, solve

R = dataclasses.replace


@cache
def data() -> Dataset:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(40, 6)) + 2.0
    X[:, 4] = X[:, 0] + 0.4 * rng.normal(size=40)
    return Dataset.from_arrays(X, X[:, 0] - 0.7 * X[:, 2] + 0.4 * X[:, 5] + rng.normal(size=40) + 30.0)


@cache
def record() -> Record:
    folds = make_folds("5", data(), 3)
    return cross_validate(
        data(), folds, gammas=[0.02, 0.3, 2.0], taus=range(7), gap=0.0, threads=1, model="average", own_error=True
    )  # fmt: skip


def average() -> Average:
    found = record().average
    assert found is not None
    return found


def used(rank: int = 0) -> int:
    """Place of an averaged pair other than the reported one, the heaviest first."""
    own = (record().gamma, record().tau)
    order = sorted(range(len(average().pairs)), key=lambda i: -average().pairs[i].weight)
    return [i for i in order if (average().pairs[i].gamma, average().pairs[i].tau) != own][rank]


def left_out() -> int:
    return next(i for i, one in enumerate(average().pairs) if one.weight == 0.0)


def with_pair(i: int, **changes: Any) -> Average:
    pairs = list(average().pairs)
    pairs[i] = R(pairs[i], **changes)
    return R(average(), pairs=tuple(pairs))


def with_distances(i: int, distance: float) -> Average:
    """Another distance of a pair, all weights made again by it."""
    said = np.array([one.distance for one in average().pairs])
    said[i] = distance
    weights, sizes = weights_of_pairs(said).tolist(), [len(one) for one in average().supports]
    pairs = tuple(
        R(one, distance=d, weight=w, fit=None if w == 0.0 else sizes.index(one.tau) if one.fit is None else one.fit)
        for one, d, w in zip(average().pairs, said.tolist(), weights, strict=True)
    )
    return R(average(), pairs=pairs)


def with_model(**changes: Any) -> Average:
    return R(average(), model=R(average().model, **changes))


def refitted(support: tuple[str, ...]) -> Average:
    """Another support of the model, with the fit that it has to the right target."""
    X, target = data().X, np.zeros(data().n)
    for pair in average().used:
        assert pair.fit is not None
        columns = [data().names.index(name) for name in average().supports[pair.fit]]
        target += pair.weight * fit(X, data().y, columns, pair.gamma).predict(X)
    made = fit(X, target, [data().names.index(name) for name in support], 1e-6)
    model = R(
        average().model, tau=len(support), support=support, intercept=made.intercept, objective=made.objective,
        lower=made.objective * (1.0 - 1e-9), upper=made.objective * (1.0 + 1e-9),
        coefficients=dict(zip(support, made.beta.tolist(), strict=True)),
    )  # fmt: skip
    return R(average(), model=model, missed=made.objective / data().n)


def another(size: int) -> tuple[str, ...]:
    """A support of a size that is not the model's."""
    names = [name for name in data().names if name not in average().model.support]
    return tuple(sorted((*average().model.support[: size - 1], names[0])))


def other_support(place: int) -> tuple[tuple[str, ...], ...]:
    """The supports with a feature of one exchanged for one that it has not."""
    supports = [list(one) for one in average().supports]
    supports[place][0] = next(name for name in data().names if name not in supports[place])
    return tuple(map(tuple, supports))


def longest() -> int:
    sizes = [len(one) if len(one) < data().p else 0 for one in average().supports]
    return sizes.index(max(sizes))


def exchanged(i: int) -> tuple[int, ...]:
    """The folds of a pair with the support of one exchanged for that of another pair of this size."""
    pair = average().pairs[i]
    rest = [one for other in average().pairs for one in other.folds if len(average().supports[one]) == pair.tau]
    new = next(one for one in rest if one != pair.folds[0])
    return (new, *pair.folds[1:])


def within_folds() -> WithinFolds:
    found = average().within_folds
    assert found is not None
    return found


def within(**changes: Any) -> Average:
    return R(average(), within_folds=R(within_folds(), **changes))


ALTERED: dict[str, tuple[Callable[[], Average | None], str]] = {
    "no average": (lambda: None, "average"),
    "a weight raised": (lambda: with_pair(used(), weight=average().pairs[used()].weight * 1.01), "weight"),
    "two weights exchanged": (
        lambda: R(with_pair(used(0), weight=average().pairs[used(-1)].weight)), "weight"),
    "a distance below 0": (lambda: with_pair(used(), distance=-0.1), "distance"),
    "a distance lowered, weights by it": (lambda: with_distances(used(3), 0.0), "distance"),
    "a distance raised, weights by it": (lambda: with_distances(used(), 9.0), "distance"),
    "a pair left out, weights by it": (lambda: with_distances(used(1), float("inf")), "distance"),
    "a pair taken in, weights by it": (lambda: with_distances(left_out(), 0.5), "distance"),
    "a pair gone": (lambda: R(average(), pairs=average().pairs[1:]), "average.pairs"),
    "pairs in another order": (lambda: R(average(), pairs=average().pairs[::-1]), "average.pairs"),
    "gamma of a pair": (lambda: with_pair(used(), gamma=0.7), "average.pairs"),
    "no fit": (lambda: with_pair(used(), fit=None), "fit"),
    "the fit of another pair": (
        lambda: with_pair(used(), fit=next(
            one.fit for one in average().used if one.fit not in (None, average().pairs[used()].fit))), "average"),
    "a support of a fold": (lambda: with_pair(used(), folds=exchanged(used())), "average.pairs"),
    "folds of a pair cut": (lambda: with_pair(used(), folds=average().pairs[used()].folds[1:]), "folds"),
    "folds of a pair gone": (lambda: with_pair(left_out(), folds=()), "folds"),
    "a support that is not there": (lambda: with_pair(used(), fit=99), "folds"),
    "a feature of a support": (lambda: R(average(), supports=other_support(longest())), "average"),
    "a feature twice": (
        lambda: R(average(), supports=(*average().supports[:-1], (data().names[0],) * 2)), "average.supports"),
    "a support more": (lambda: R(average(), supports=(*average().supports, ("x0",))), "average.supports"),
    "what is allowed": (lambda: R(average(), allowed=2.0 * average().allowed), "average.allowed"),
    "what is missed": (lambda: R(average(), missed=0.5 * average().missed), "average.missed"),
    "a coefficient": (
        lambda: with_model(coefficients={
            name: 1.001 * value for name, value in average().model.coefficients.items()}), "coefficients"),
    "the intercept": (lambda: with_model(intercept=average().model.intercept + 0.01), "average.model.intercept"),
    "the objective": (lambda: with_model(objective=average().model.objective * 1.01), "average"),
    "its lower end": (lambda: with_model(lower=average().model.objective * 1.1), "average.model.lower"),
    "its upper end": (lambda: with_model(upper=average().model.objective * 0.9), "average.model.upper"),
    "the ridge weight": (lambda: with_model(gamma=1e-5), "average.model.gamma"),
    "its size": (lambda: with_model(tau=average().model.tau + 1), "average.model"),
    "another support of its size, refitted": (lambda: refitted(another(average().model.tau)), "average.model"),
    "a feature more, refitted": (lambda: refitted(another(average().model.tau + 1)), "average"),
    "a feature fewer, refitted": (lambda: refitted(average().model.support[:-1]), "average"),
    "the bound of smaller ones": (
        lambda: R(average(), fewer=(average().fewer or 1.0) * 1.5), "average.fewer"),
    "no bound of smaller ones": (lambda: R(average(), fewer=None), "average.fewer"),
    "its own error": (lambda: within(error=0.99 * within_folds().error), "average.within_folds.error"),
    "a fold less": (lambda: within(folds=within_folds().folds[1:]), "average.within_folds.folds"),
    "the features of a fold": (
        lambda: within(folds=(len(average().supports) - 1, *within_folds().folds[1:])), "average.within_folds"),
    "no support for a fold": (
        lambda: within(folds=(len(average().supports), *within_folds().folds[1:])), "average.within_folds.folds"),
}  # fmt: skip


def test_the_record_itself_is_right_and_reads_back() -> None:
    """Nothing is refused; the model has fewer features than the data, and its size is proved."""
    report = verify(record(), data())
    assert report.ok and not report.caveat
    assert Record.from_json(record().to_json()) == record()
    assert 1 < len(average().used) < len(average().pairs) and 0 < average().model.tau < data().p
    assert (average().fewer or 0.0) > average().allowed * data().n


@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_average_is_refused(kind: str) -> None:
    """`verify` finds a disagreement, in a field of the average."""
    change, field = ALTERED[kind]
    altered = R(record(), average=change())
    report = verify(altered, data())
    assert not report.ok, kind
    assert any(field in failure.field for failure in report.failures), report.failures
    assert all(failure.field.startswith("average") for failure in report.failures)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_error_within_folds_may_be_rounding_alone(offset: float) -> None:
    """Columns that are adjusted for fit a target without noise: what is left are the last digits of the target."""
    X = np.random.default_rng(0).normal(size=(23, 2)).round(1)
    exact = Dataset.from_arrays(X, 2.0 * X[:, 1] + offset)
    found = solve(
        exact, folds="5", gammas=[0.03, 8.0], taus=[0, 1], adjust=["x1"], model="average", own_error=True, threads=1
    )  # fmt: skip
    assert found.average is not None and found.average.within_folds is not None
    assert found.average.within_folds.error < 1e-25 and verify(found, exact).failures == ()


def test_an_average_that_was_not_asked_for_is_refused() -> None:
    """The request says which model was asked for."""
    altered = R(record(), request=R(record().request, model="pair"))
    assert [one.field for one in verify(altered, data()).failures] == ["request.own_error", "average"]


def test_outer_models_are_scored_by_their_own_coefficients() -> None:
    """The nested error is of the averaged models; an altered coefficient is refused."""
    found = solve(data(), folds="4", gammas=[0.1, 1.0], taus=[1, 2, 3], nested=3, model="average", threads=1)
    assert found.nested is not None and verify(found, data()).ok
    assert all(one.average is not None for one in found.nested.folds)
    assert Record.from_json(found.to_json()) == found
    first, *rest = found.nested.folds
    assert first.average is not None
    other = OuterAverage(first.average.support, first.average.coefficients, first.average.intercept + 0.1)
    altered = R(found, nested=R(found.nested, folds=(R(first, average=other), *rest)))
    assert [one.field for one in verify(altered, data()).failures] == ["nested.folds[0].error"]

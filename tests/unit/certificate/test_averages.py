"""Records with an averaged model, altered in one place: `verify` refuses them and names the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from altered_fields import set_fields

from sparsecv_mio.certificate.records import Average, Record
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


def other_fit() -> int:
    return next(one.fit for one in average().used if one.fit not in (None, average().pairs[used()].fit))


def times(factor: float) -> Callable[[float], float]:
    return lambda value: factor * value


Change = dict[str, Any] | Average | None  # of the average: fields by path, or another one
ALTERED: list[tuple[Change | Callable[[], Change], str]] = [
    (None, "average"),
    (lambda: {f"pairs.{used()}.weight": times(1.01)}, "weight"),
    (lambda: {f"pairs.{used(0)}.weight": average().pairs[used(-1)].weight}, "weight"),
    (lambda: {f"pairs.{used()}.distance": -0.1}, "distance"),
    (lambda: with_distances(used(3), 0.0), "distance"),
    (lambda: with_distances(used(), 9.0), "distance"),
    (lambda: with_distances(used(1), float("inf")), "distance"),
    (lambda: with_distances(left_out(), 0.5), "distance"),
    ({"pairs": lambda pairs: pairs[1:]}, "average.pairs"),
    ({"pairs": lambda pairs: pairs[::-1]}, "average.pairs"),
    (lambda: {f"pairs.{used()}.gamma": 0.7}, "average.pairs"),
    (lambda: {f"pairs.{used()}.fit": None}, "fit"),
    (lambda: {f"pairs.{used()}.fit": other_fit()}, "average"),
    (lambda: {f"pairs.{used()}.fit": 99}, "folds"),
    (lambda: {f"pairs.{used()}.folds": exchanged(used())}, "average.pairs"),
    (lambda: {f"pairs.{used()}.folds": lambda folds: folds[1:]}, "folds"),
    (lambda: {f"pairs.{left_out()}.folds": ()}, "folds"),
    (lambda: {"supports": other_support(longest())}, "average"),
    (lambda: {"supports.-1": (data().names[0],) * 2}, "average.supports"),
    ({"supports": lambda supports: (*supports, ("x0",))}, "average.supports"),
    ({"allowed": times(2.0)}, "average.allowed"),
    ({"missed": times(0.5)}, "average.missed"),
    ({"model.coefficients": lambda known: {name: 1.001 * value for name, value in known.items()}}, "coefficients"),
    ({"model.intercept": lambda value: value + 0.01}, "average.model.intercept"),
    ({"model.objective": times(1.01)}, "average"),
    ({"model.lower": times(1.1)}, "average.model.lower"),
    ({"model.upper": times(0.9)}, "average.model.upper"),
    ({"model.gamma": 1e-5}, "average.model.gamma"),
    ({"model.tau": lambda tau: tau + 1}, "average.model"),
    (lambda: refitted(another(average().model.tau)), "average.model"),
    (lambda: refitted(another(average().model.tau + 1)), "average"),
    (lambda: refitted(average().model.support[:-1]), "average"),
    ({"fewer": times(1.5)}, "average.fewer"),
    ({"fewer": None}, "average.fewer"),
    ({"within_folds.error": times(0.99)}, "average.within_folds.error"),
    ({"within_folds.folds": lambda folds: folds[1:]}, "average.within_folds.folds"),
    (lambda: {"within_folds.folds.0": len(average().supports) - 1}, "average.within_folds"),
    (lambda: {"within_folds.folds.0": len(average().supports)}, "average.within_folds.folds"),
]


def test_the_record_itself_is_right_and_reads_back() -> None:
    """Nothing is refused; the model has fewer features than the data, and its size is proved."""
    report = verify(record(), data())
    assert report.ok and not report.caveat
    assert Record.from_json(record().to_json()) == record()
    assert 1 < len(average().used) < len(average().pairs) and 0 < average().model.tau < data().p
    assert (average().fewer or 0.0) > average().allowed * data().n


@pytest.mark.parametrize(("change", "field"), ALTERED)
def test_an_altered_average_is_refused(change: Change | Callable[[], Change], field: str) -> None:
    """`verify` finds a disagreement, in a field of the average."""
    changed = change() if callable(change) else change
    changed = set_fields(average(), changed) if isinstance(changed, dict) else changed
    report = verify(R(record(), average=changed), data())
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
    altered = set_fields(found, {"nested.folds.0.average.intercept": lambda value: value + 0.1})
    assert [one.field for one in verify(altered, data()).failures] == ["nested.folds[0].error"]

"""Error control of inference by splits, by simulation with the whole procedure on every half."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from sparsecv_mio import Dataset, make_folds
from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.inference_parts import Inference
from sparsecv_mio.inference.choices import DrawOptions
from sparsecv_mio.inference.repetitions import Repetition
from sparsecv_mio.search.api import answer
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.question import Question

pytest.importorskip("statsmodels")

LEVEL = 0.95
Draw = Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]


class Case(NamedTuple):
    """Data of a simulation: a draw of X and y, the coefficients, and the options of the procedure."""

    draw: Draw
    beta: tuple[float, ...]
    options: dict[str, Any]
    folds: str = "4"
    gamma: float = 0.01
    taus: tuple[int, ...] = (1, 2, 3)


def equicorrelated(rng: np.random.Generator, n: int, p: int, rho: float) -> FloatArray:
    return np.asarray(np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1.0 - rho) * rng.normal(size=(n, p)))


def linear(n: int, beta: tuple[float, ...], rho: float) -> Draw:
    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        X = equicorrelated(rng, n, len(beta), rho)
        return X, X @ np.array(beta) + rng.normal(size=n)

    return draw


def two_classes(n: int, beta: tuple[float, ...]) -> Draw:
    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        X = rng.normal(size=(n, len(beta)))
        return X, (X @ np.array(beta) + rng.logistic(size=n) > 0.0).astype(float)

    return draw


def counts(n: int, beta: tuple[float, ...]) -> Draw:
    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        X = rng.normal(size=(n, len(beta)))
        return X, rng.poisson(3.0 * np.exp(X @ np.array(beta)) * rng.gamma(2.0, 0.5, size=n)).astype(float)

    return draw


def grouped(n_groups: int, size: int, p: int) -> Draw:
    """Return a draw in which the first feature and a part of the noise are constant in every group."""

    def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        X = rng.normal(size=(n_groups * size, p))
        X[:, 0] = np.repeat(rng.normal(size=n_groups), size)
        return X, np.repeat(rng.normal(size=n_groups), size) + rng.normal(size=len(X))

    return draw


STRONG, NONE = (1.0, 1.0, 1.0, *[0.0] * 5), (0.0,) * 8
CASES = {
    "null": Case(linear(80, NONE, 0.0), NONE, {}),
    "equicorrelated": Case(linear(120, STRONG, 0.5), STRONG, {}, taus=(2, 3, 4)),
    "two classes, null": Case(two_classes(100, NONE[:6]), NONE[:6], {"loss": "logistic"}),
    "two classes": Case(two_classes(200, (2.0, -2.0, 0.0, 0.0, 0.0)), (2.0, -2.0, 0.0, 0.0, 0.0), {"loss": "logistic"}),
    "counts, null": Case(counts(100, NONE[:5]), NONE[:5], {"loss": "poisson"}),
    "groups, null": Case(grouped(30, 4, 6), NONE[:6], {}, folds="groups:g:4"),
}


def infer_once(case: Case, seed: int, n_splits: int) -> Inference:
    X, y = case.draw(np.random.default_rng([65, seed]))
    aux = {"g": np.arange(len(y)) // 4} if case.folds.startswith("groups") else None
    options = SearchOptions.of(threads=1, **case.options)
    data = options.in_classes(Dataset.from_arrays(X, y, aux=aux))
    question = Question(data, make_folds(case.folds, data), [case.gamma], case.taus, options)
    made = Repetition("infer", n_splits, LEVEL).add_results(answer(question), question, DrawOptions(seed))
    assert made.inference is not None and not any(words.startswith("infer") for words in made.warnings)
    return made.inference


class Outcome(NamedTuple):
    """Shares of the draws: false discoveries, intervals that miss, discovered features, models with all features."""

    family_wise_error: float
    missed: float
    power: float
    screened: float

    def __str__(self) -> str:
        names = ("family-wise error", "some interval misses", "power", "models with all relevant features")
        return ", ".join(f"{name} {value:.3f}" for name, value in zip(names, self, strict=True))


def simulate(case: Case, n_draws: int, n_splits: int) -> Outcome:
    truth = {f"x{j}": value for j, value in enumerate(case.beta)}
    relevant = {name for name, value in truth.items() if value}
    rows = []
    for seed in range(n_draws):
        inference = infer_once(case, seed, n_splits)
        found = {term.term for term in inference.terms if term.p_value <= 1.0 - LEVEL}
        ends = [(truth[term.term], term.interval_lower, term.interval_upper) for term in inference.terms]
        misses = any(low is not None and high is not None and not low <= value <= high for value, low, high in ends)
        screened = np.mean([relevant <= set(split.support) for split in inference.splits])
        rows.append((bool(found - relevant), misses, len(found & relevant) / max(len(relevant), 1), screened))
    return Outcome(*np.mean(rows, axis=0).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_family_wise_error_and_intervals_in_1000_draws(name: str) -> None:
    outcome = simulate(CASES[name], 1000, 6)
    print(f"{name}: {outcome}")
    assert outcome.screened > 0.9
    assert outcome.family_wise_error <= 0.05 and outcome.missed <= 0.05


def test_few_draws() -> None:
    null, strong = (simulate(CASES[name], 6, 4) for name in ("null", "equicorrelated"))
    assert null.family_wise_error <= 1.0 / 6.0 and strong.family_wise_error <= 1.0 / 6.0  # at most one draw of six
    assert strong.power > 0.5

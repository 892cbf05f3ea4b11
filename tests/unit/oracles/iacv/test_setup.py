"""Problems and methods of IACV from the words of the command line."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import EpochDoubling, default_step, full_step, make_erm, make_solver


def sample() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) + 2.0
    return Dataset.from_arrays(X, X @ [1.0, -1.0, 0.5] + 3.0 + 0.1 * rng.normal(size=30))


def test_a_free_intercept_is_a_column_without_a_penalty() -> None:
    data = sample()
    erm = make_erm(data, "squared", "ridge", 0.7, intercept="fold")
    solver, theta = make_solver(erm, "gd", iterations=1), np.zeros(4)
    for t in range(4000):
        theta = full_step(erm, solver, t, theta)
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    assert theta[:3] == pytest.approx(np.linalg.solve(X.T @ X + 0.7 * np.eye(3), X.T @ y), abs=1e-8)
    assert theta[3] == pytest.approx(data.y.mean(), abs=1e-8)


def test_defaults_and_options_of_a_method() -> None:
    erm = make_erm(sample(), "squared", "ridge", 0.7, scale="length", intercept="global")
    assert erm.y.mean() == pytest.approx(0.0, abs=1e-12) and erm.X.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    plain = make_solver(erm, "gd", iterations=10)
    assert plain.schedule(1) == default_step(erm) and plain.batch is None and not plain.proximal
    batches = make_solver(erm, "sgd", iterations=10, doubling=4, step=0.5, seed=2)
    assert batches.batch == 30 and batches.schedule == EpochDoubling(0.5, 4) and batches.seed == 2
    assert make_solver(make_erm(sample(), "squared", "l1", 1.0), "proxgd", iterations=1).proximal


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": "newton"}, "--solver"),
        ({"batch": 4}, "--batch"),
        ({"step": 0.0}, "--step"),
        ({"doubling": 0}, "--doubling"),
        ({"seed": -1}, "--seed"),
        ({"kind": "sgd", "batch": 31}, "--batch"),
    ],
)
def test_bad_methods(change: dict[str, object], word: str) -> None:
    erm = make_erm(sample(), "squared", "ridge", 0.7)
    with pytest.raises(BadInput, match=word):
        make_solver(erm, **({"kind": "gd", "iterations": 1} | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(("words", "word"), [(("hinge", "ridge"), "--loss"), (("squared", "l0"), "--penalty")])
def test_bad_words(words: tuple[str, str], word: str) -> None:
    with pytest.raises(BadInput, match=word):
        make_erm(sample(), *words, 1.0)

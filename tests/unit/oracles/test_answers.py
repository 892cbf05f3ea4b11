"""What oracles take and answer: intervals, and arrays from a data set."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.answers import Bracket, Estimate, binary_labels, design_matrix, holdout_split, validation_rows
from sparsecv_mio.oracles.glru import Logistic
from sparsecv_mio.oracles.glru.loocv import GlruOracle, NewtonOracle

from .glru.problems import RIDGES, fitted


def test_certified_and_estimated_answers_have_types_of_their_own() -> None:
    fit = fitted(Logistic(), RIDGES[0])
    glru, step = GlruOracle(fit), NewtonOracle(fit)
    assert glru.guarantee == "certified"
    assert step.guarantee == "estimate"
    joint, guess = glru.leave_out(np.array([1, 2, 3])), step.leave_out(np.array([1, 2]))
    assert isinstance(joint, Bracket) and joint.lower.shape == (3,)
    assert isinstance(guess, Estimate) and guess.value.shape == (2,)


def sample(n: int = 12, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 1.0] + 4.0
    X[:, 2] = 7.0
    return Dataset.from_arrays(X, np.where(np.arange(n) % 3, 5.0, -2.0))


@pytest.mark.parametrize("scale", ["none", "length", "variance"])
@pytest.mark.parametrize("intercept", ["none", "global", "fold"])
def test_columns_by_their_definition(scale: str, intercept: str) -> None:
    data = sample()
    X = data.X - data.X.mean(axis=0) if intercept == "global" else data.X
    norm = np.linalg.norm(data.X - data.X.mean(axis=0), axis=0)
    unit = {"none": np.ones(3), "length": norm, "variance": norm / np.sqrt(12)}[scale]
    unit = np.where(norm < 1e-9, 1.0, unit)
    assert design_matrix(data, scale, intercept) == pytest.approx(X / unit, abs=1e-12)


def test_nothing_is_copied_where_nothing_changes() -> None:
    data = sample()
    assert design_matrix(data) is data.X and design_matrix(data, "none", "fold") is data.X


@pytest.mark.parametrize(("scale", "intercept"), [("length", "global"), ("variance", "none"), ("none", "none")])
def test_validation_rows_are_treated_as_the_training_rows(scale: str, intercept: str) -> None:
    whole = sample(20)
    first, rest = (Dataset.from_arrays(whole.X[part], whole.y[part]) for part in (slice(0, 12), slice(12, 20)))
    X, labels = validation_rows(first, rest, scale, intercept)
    trained = design_matrix(first, scale, intercept)
    again, _ = validation_rows(first, first, scale, intercept)
    assert again == pytest.approx(trained, abs=1e-12)
    assert X.shape == (8, 3) and labels.tolist() == np.where(rest.y > 0.0, 1.0, -1.0).tolist()


def test_refusals() -> None:
    data = sample()
    with pytest.raises(BadInput, match="exactly two"):
        binary_labels(Dataset.from_arrays(data.X, np.arange(12.0)))
    with pytest.raises(BadInput, match="scale: unknown word 'x'"):
        design_matrix(data, "x")
    with pytest.raises(BadInput, match="intercept: unknown word 'x'"):
        design_matrix(data, "none", "x")
    with pytest.raises(BadInput, match="columns of the training data"):
        validation_rows(data, Dataset.from_arrays(data.X[:, :2], data.y))
    with pytest.raises(BadInput, match="has the value 1; the training data have only -2 and 5"):
        validation_rows(data, Dataset.from_arrays(data.X, np.where(data.y > 0.0, 5.0, 1.0)))
    with pytest.raises(BadInput, match="holdout"):
        holdout_split(data, 1.5)
    train, test = holdout_split(data, 0.25, seed=3)
    assert sorted([*train, *test]) == list(range(12)) and len(test) == 3

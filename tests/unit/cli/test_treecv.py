"""`sparsecv treecv`: options to the library, answer to the screen and to JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.oracles.treecv import LeastSquaresSgd, PegasosLearner, RidgeLearner, make_task, tree_cv


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((48, 3)) + 1.0
    y = X @ [1.0, -1.0, 0.5] + rng.standard_normal(48)
    path = tmp_path / "data.csv"
    rows = np.column_stack([X, y, np.where(y > 0.5, 3.0, 1.0), np.arange(48) % 4])
    np.savetxt(path, rows, delimiter=",", header="a,b,c,y,label,site", comments="")
    return path


def sparsecv(*words):
    return run([str(word) for word in words])


def numbers(capsys, file, *words):
    assert sparsecv("treecv", file, "--features", "a,b,c", *words, "--json", "-", "-q") == 0
    return json.loads(capsys.readouterr().out)


def test_ridge_equals_standard_cv(file, capsys):
    found = numbers(capsys, file, "--target", "y", "--learner", "ridge", "--folds", 16, "--standard")
    assert found["estimate"] == pytest.approx(found["standard"]["estimate"], rel=1e-12)
    assert found["updates"] == 48 * 4
    assert found["standard"]["updates"] == 48 * 15
    assert found["updates"] <= 48 * (1 + np.log2(16))


def test_ridge_with_an_intercept_by_hand(file, capsys):
    words = ("--target", "y", "--learner", "ridge", "--folds", "loo", "--lam", 2, "--intercept", "fold")
    found = numbers(capsys, file, *words)
    raw = np.loadtxt(file, delimiter=",", skiprows=1)
    A, y = np.column_stack([raw[:, :3], np.ones(48)]), raw[:, 3]
    errors = []
    for i in range(48):
        keep = np.arange(48) != i
        M = A[keep].T @ A[keep] + np.diag([2.0, 2.0, 2.0, 0.0])
        errors.append((y[i] - A[i] @ np.linalg.solve(M, A[keep].T @ y[keep])) ** 2)
    assert found["estimate"] == pytest.approx(np.mean(errors), rel=1e-10)
    assert found["loss"] == "squared error"


@pytest.mark.parametrize("learner", ["pegasos", "naive-bayes", "bernoulli-nb"])
@pytest.mark.parametrize("extra", [(), ("--randomized",), ("--strategy", "revert"), ("--jobs", "2")])
def test_classifiers(file, capsys, learner, extra):
    found = numbers(capsys, file, "--target", "label", "--learner", learner, "--folds", 8, "--standard", *extra)
    assert 0.0 <= found["estimate"] < 0.6
    assert found["loss"] == "misclassification"
    if learner != "pegasos":
        assert found["estimate"] == found["standard"]["estimate"]


def test_groups(file, capsys):
    found = numbers(capsys, file, "--target", "y", "--learner", "lsqsgd", "--folds", "groups:site")
    assert found["options"]["k"] == 4
    assert found["updates"] == 96


def test_screen(file, capsys):
    assert sparsecv("treecv", file, "--target", "y", "--learner", "ridge", "--folds", 4, "--standard") == 0
    out = capsys.readouterr().out
    assert "TreeCV" in out
    assert "standard" in out
    assert "96 rows learned" in out


def test_tasks():
    rng = np.random.default_rng(1)
    data = Dataset.from_arrays(rng.standard_normal((30, 2)) + 4.0, rng.standard_normal(30) + 1.0)
    plain = make_task(data, "lsqsgd")
    assert isinstance(plain.learner, LeastSquaresSgd)
    assert plain.learner.rate == 30**-0.5
    assert plain.X is data.X
    centred = make_task(data, "ridge", intercept="global", scale="variance")
    assert abs(centred.y.mean()) < 1e-12
    assert centred.X.std(axis=0) == pytest.approx(np.ones(2))
    free = make_task(data, "ridge", intercept="fold")
    assert isinstance(free.learner, RidgeLearner)
    assert free.learner.intercept
    ones = make_task(Dataset.from_arrays(data.X, np.arange(30) % 2), "pegasos", intercept="fold")
    assert isinstance(ones.learner, PegasosLearner)
    assert ones.X[:, 2].tolist() == [1.0] * 30
    shifted = make_task(Dataset.from_arrays(data.X + 100.0, data.y), "ridge", intercept="fold")
    folds = make_folds("5", data)
    here, there = (tree_cv(task.learner, task.X, task.y, folds).estimate for task in (free, shifted))
    assert here == pytest.approx(there, rel=1e-10)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--learner", "forest"), "--learner"),
        (("--learner", "naive-bayes"), "two"),
        (("--learner", "naive-bayes", "--target", "label", "--lam", "1"), "--lam"),
        (("--learner", "naive-bayes", "--target", "label", "--intercept", "fold"), "--intercept"),
        (("--step", "0.1"), "--step"),
        (("--learner", "lsqsgd", "--step", "-1"), "--step: -1 is out of range"),
        (("--learner", "pegasos", "--target", "label", "--lam", "0"), "lam > 0"),
        (("--lam", "-1"), "--lam: -1 is out of range"),
        (("--folds", "1"), "folds"),
        (("--folds", "49"), "rows"),
        (("--strategy", "forget"), "strategy"),
        (("--jobs", "0"), "--jobs"),
        (("--seed", "-1"), "seed"),
        (("--json", "no/such/folder/f.json"), "--json"),
    ],
)
def test_bad_input_is_one_line(file, words, says, capsys):
    assert sparsecv("treecv", file, "--target", "y", *words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert says in lines[0]

"""`sparsecv iacv`: options to the library, answer to the screen, to JSON and to a figure."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import make_erm, make_solver
from sparsecv_mio.oracles.iacv import run as library


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 0.0]
    label = np.where(X[:, 0] + rng.standard_normal(40) > 0, 7.0, 2.0)
    count = rng.poisson(2.0, 40)
    path = tmp_path / "data.csv"
    rows = np.column_stack([X, label, count])
    np.savetxt(path, rows, delimiter=",", header="a,b,c,label,count", comments="")
    return path


def read(path):
    raw = np.loadtxt(path, delimiter=",", skiprows=1)
    return raw[:, :3], raw[:, 3], raw[:, 4]


def sparsecv(*words):
    return run([str(word) for word in words])


def test_answer_equals_the_library(file, tmp_path, capsys):
    out = tmp_path / "out.json"
    words = ("--target", "label", "--drop", "count", "--loss", "logistic", "--penalty", "ridge", "--lam", 0.3)
    code = sparsecv("iacv", file, *words, "--solver", "gd", "--iterations", 30, "--exact", "--json", out)
    assert code == 0
    found = json.loads(out.read_text())
    X, label, _ = read(file)
    erm = make_erm(Dataset.from_arrays(X, label), "logistic", "ridge", 0.3)
    assert erm.y.tolist() == np.where(label == 7.0, 1.0, -1.0).tolist()
    report = library(erm, make_solver(erm, "gd", iterations=30), 30, methods=("exact",))
    assert found["cv"] == pytest.approx(report.traces["iacv"].cv[-1], rel=1e-14)
    assert found["err_approx"] == pytest.approx(report.traces["iacv"].err_approx[-1], rel=1e-9)
    assert found["rel_err_cv"] == pytest.approx(report.traces["iacv"].rel_err_cv[-1], rel=1e-9)
    assert found["seconds"] > 0
    top = np.linalg.eigvalsh(X.T @ X)[-1] / 4 + 0.6
    assert found["options"]["step"] == pytest.approx(1 / top, rel=1e-12)
    assert "leave-one-out loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("--loss", "logistic", "--penalty", "l1", "--solver", "proxgd", "--target", "label", "--drop", "count"),
        ("--loss", "squared", "--solver", "gd", "--target", "a", "--intercept", "fold", "--scale", "variance"),
        ("--loss", "squared", "--solver", "sgd", "--batch", "10", "--target", "a", "--scale", "length"),
        ("--loss", "poisson", "--target", "count", "--drop", "label", "--scale", "variance", "--intercept", "global"),
        ("--loss", "squared", "--solver", "sgd", "--doubling", "5", "--scale-penalty", "--target", "a"),
    ],
)
def test_each_way_runs(file, words, capsys):
    assert sparsecv("iacv", file, *words, "--lam", 0.5, "--iterations", 25, "--exact", "--json", "-", "-q") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["options"]["iterations"] == 25
    assert found["err_approx"] < (1e-10 if "squared" in words else 0.1)


def test_without_exact_the_errors_are_null(file, capsys):
    words = ("--target", "label", "--lam", 1, "--iterations", 10, "--json", "-", "-q")
    assert sparsecv("iacv", file, *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["err_approx"] is None
    assert found["rel_err_cv"] is None
    assert found["cv"] > 0


def test_quiet_prints_the_number(file, capsys):
    assert sparsecv("iacv", file, "--target", "label", "--lam", 1, "--iterations", 10, "-q") == 0
    assert float(capsys.readouterr().out) > 0


@pytest.mark.parametrize("exact", [False, True])
def test_plot(file, tmp_path, exact):
    target = tmp_path / "figure.png"
    words = ["--target", "label", "--lam", 1, "--iterations", 20, "--baselines", "--plot", target, "-q"]
    assert sparsecv("iacv", file, *words, *(["--exact"] if exact else [])) == 0
    assert target.read_bytes()[:4] == b"\x89PNG"


def test_early_stop(file, capsys):
    words = ("--target", "label", "--lam", 0, "--iterations", 3000, "--early-stop", 3, "--json", "-", "-q")
    assert sparsecv("iacv", file, *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stopped_early"]
    assert found["iteration"] == found["best_iteration"] < 3000


def test_a_scaled_problem_has_unit_columns(file):
    X, label, _ = read(file)
    data = Dataset.from_arrays(X, label)
    erm = make_erm(data, "squared", "l1", 1.0, scale="variance", intercept="global")
    assert erm.X.std(axis=0) == pytest.approx(np.ones(3))
    assert abs(erm.y.mean()) < 1e-12
    free = make_erm(data, "squared", "l1", 1.0, intercept="fold")
    assert free.X[:, -1].tolist() == [1.0] * 40
    assert free.penalty.value(np.array([0.0, 0.0, 0.0, 5.0])) == 0.0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--loss", "hinge"), "--loss"),
        (("--penalty", "l0"), "--penalty"),
        (("--solver", "newton"), "--solver"),
        (("--penalty", "l1"), "proxgd"),
        (("--batch", "5"), "--batch"),
        (("--solver", "sgd", "--batch", "41"), "--batch"),
        (("--step", "-1"), "--step"),
        (("--step", "1e9", "--loss", "squared"), "smaller --step"),
        (("--iterations", "0"), "--iterations"),
        (("--target", "count"), "two"),
        (("--target", "a", "--loss", "poisson"), "counts"),
        (("--lam", "-1"), "lam"),
        (("--scale", "big"), "--scale"),
        (("--plot", "figure.txt"), "--plot"),
        (("--plot", "no/such/folder/f.png"), "--plot"),
        (("--json", "no/such/folder/f.json"), "--json"),
        (("--early-stop", "0"), "--early-stop"),
        (("--doubling", "0"), "--doubling"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_bad_input_is_one_line(file, words, says, capsys):
    base = ("--target", "label", "--lam", "1", "--iterations", "600")
    assert sparsecv("iacv", file, *base, *words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert says in lines[0]


def test_missing_options_are_bad_input(file, capsys):
    assert sparsecv("iacv", file, "--target", "label", "--iterations", 5) == 2
    assert "--lam" in capsys.readouterr().err


def test_interruption_reports_what_was_found(file):
    from threading import Event

    X, label, _ = read(file)
    erm = make_erm(Dataset.from_arrays(X, label), "logistic", "ridge", 0.3)
    stop = Event()

    def press(done, total):
        if done == 7:
            stop.set()

    report = library(erm, make_solver(erm, "gd", iterations=50), 50, record=[50], progress=press, stop=stop)
    assert report.iterations.tolist() == [8]
    assert report.summary()["cv"] > 0


def test_zero_columns():
    data = Dataset.from_arrays(np.zeros((5, 2)), [0.0, 1.0, 0.0, 1.0, 1.0])
    erm = make_erm(data, "squared", "ridge", 0.0)
    with pytest.raises(BadInput, match="zero"):
        make_solver(erm, "gd", iterations=5)

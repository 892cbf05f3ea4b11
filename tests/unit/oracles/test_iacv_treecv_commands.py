"""What the commands of the oracles share: the bar, the JSON text, the words on scale and intercept."""

from __future__ import annotations

import io
import json
import re
import sys

import numpy as np
import pytest
from command_lines import changed

from sparsecv_mio.cli import run
from sparsecv_mio.cli.live import counting_bar
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.commands import describe_model
from sparsecv_mio.oracles.iacv import make_erm, make_solver
from sparsecv_mio.oracles.iacv import run as library


@pytest.mark.parametrize(
    ("scale", "intercept", "said"),
    [
        ("none", "none", "columns as in the file, not scaled (--scale), no intercept (--intercept)"),
        ("length", "none", "no intercept (--intercept)"),
        ("none", "fold", "columns as in the file, not scaled (--scale)"),
        ("variance", "global", ""),
    ],
)
def test_columns_as_given_are_said(scale: str, intercept: str, said: str) -> None:
    assert describe_model({"scale": scale, "intercept": intercept}) == ([("model", said)] if said else [])


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_off_a_terminal_there_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with counting_bar(False, "rows") as early:
        assert early is not None
        early(1, 5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sparsecv_mio.cli.live.FIRST_LINE_SECONDS", 0.0)
    with counting_bar(False, "rows") as line:
        assert line is not None
        line(2, 5)
    assert re.fullmatch(r"sparsecv: \d+ s; 2 of 5 rows\n", capsys.readouterr().err)


def test_the_bar_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with counting_bar(True, "rows") as quiet:
        assert quiet is None
    with counting_bar(False, "rows") as draw:
        assert draw is not None
        for done in range(1001):
            draw(done, 1000)
    assert "1000/1000" in screen.getvalue() and "rows" in screen.getvalue()


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


def test_treecv_advises_only_options_that_it_has(tmp_path, capsys):
    path = tmp_path / "words.csv"
    for words in (["no", "yes"], ["no", "yes", "maybe"]):
        path.write_text("x,y\n" + "".join(f"{row},{words[row % len(words)]}\n" for row in range(12)))
        for learner in ("ridge", "pegasos"):
            code = sparsecv("treecv", path, "--target", "y", "--folds", 2, "--learner", learner)
            told = capsys.readouterr().err
            assert code == (0 if learner == "pegasos" and len(words) == 2 else 2) and "loss" not in told
            assert ("--learner pegasos" in told) == (code == 2)


def test_answer_equals_the_library(file, tmp_path, capsys):
    out = tmp_path / "out.json"
    words = ("--target", "label", "--drop", "count", "--loss", "logistic", "--penalty", "ridge", "--lam", 0.3)
    code = sparsecv("iacv", file, *words, "--solver", "gd", "--iterations", 30, "--exact", "--baselines", "--json", out)
    assert code == 0
    found = json.loads(out.read_text())
    X, label, _ = read(file)
    erm = make_erm(Dataset.from_arrays(X, label), "logistic", "ridge", 0.3)
    assert erm.y.tolist() == np.where(label == 7.0, 1.0, -1.0).tolist()
    report = library(erm, make_solver(erm, "gd", iterations=30), 30, methods=("ns", "exact"))
    assert (
        found["ns"] == pytest.approx(report.summary()["ns"]) and found["ij"]["cv"] > 0 and found["baseline"]["cv"] > 0
    )
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
        (("--json", "no/such/folder/f.json"), "--json"),
        (("--early-stop", "0"), "--early-stop"),
        (("--doubling", "0"), "--doubling"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_bad_input_is_one_line(file, words, says, capsys):
    base = ("--target", "label", "--lam", "1", "--iterations", "600")
    assert sparsecv("iacv", file, *changed(base, words)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert says in lines[0]


def test_a_missing_option_is_named_and_quiet_prints_the_estimate(file, capsys):
    words = ("--target", "label", "--iterations", 10)
    assert sparsecv("iacv", file, *words) == 2 and "--lam" in capsys.readouterr().err
    assert sparsecv("iacv", file, *words, "--lam", 1, "-q") == 0
    assert float(capsys.readouterr().out) > 0


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


@pytest.fixture
def file_treecv(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((48, 3)) + 1.0
    y = X @ [1.0, -1.0, 0.5] + rng.standard_normal(48)
    path = tmp_path / "data.csv"
    rows = np.column_stack([X, y, np.where(y > 0.5, 3.0, 1.0), np.arange(48) % 4])
    np.savetxt(path, rows, delimiter=",", header="a,b,c,y,label,site", comments="")
    return path


def numbers(capsys, file_treecv, *words):
    assert sparsecv("treecv", file_treecv, "--features", "a,b,c", *words, "--json", "-", "-q") == 0
    return json.loads(capsys.readouterr().out)


def test_ridge_with_an_intercept_by_hand(file_treecv, capsys):
    words = ("--target", "y", "--learner", "ridge", "--folds", "loo", "--lam", 2, "--intercept", "fold")
    found = numbers(capsys, file_treecv, *words)
    raw = np.loadtxt(file_treecv, delimiter=",", skiprows=1)
    A, y = np.column_stack([raw[:, :3], np.ones(48)]), raw[:, 3]
    errors = []
    for i in range(48):
        keep = np.arange(48) != i
        M = A[keep].T @ A[keep] + np.diag([2.0, 2.0, 2.0, 0.0])
        errors.append((y[i] - A[i] @ np.linalg.solve(M, A[keep].T @ y[keep])) ** 2)
    assert found["estimate"] == pytest.approx(np.mean(errors), rel=1e-10)
    assert found["loss"] == "squared error"


@pytest.mark.parametrize("learner", ["pegasos", "naive-bayes", "bernoulli-nb"])
@pytest.mark.parametrize("extra", [(), ("--randomized",), ("--jobs", "2")])
def test_classifiers(file_treecv, capsys, learner, extra):
    found = numbers(capsys, file_treecv, "--target", "label", "--learner", learner, "--folds", 8, "--standard", *extra)
    assert 0.0 <= found["estimate"] < 0.6
    assert found["loss"] == "misclassification"
    if learner != "pegasos":
        assert found["estimate"] == found["standard"]["estimate"]


def test_groups(file_treecv, capsys):
    found = numbers(capsys, file_treecv, "--target", "y", "--learner", "lsqsgd", "--folds", "groups:site")
    assert found["options"]["k"] == 4
    assert found["updates"] == 96
    assert sparsecv("treecv", file_treecv, "--target", "y", "--folds", 4, "--standard") == 0
    shown = capsys.readouterr().out
    assert "TreeCV" in shown and "standard" in shown and "96 rows learned" in shown


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
        (("--jobs", "0"), "--jobs"),
        (("--seed", "-1"), "seed"),
        (("--json", "no/such/folder/f.json"), "--json"),
    ],
)
def test_bad_input_is_one_line_treecv(file_treecv, words, says, capsys):
    assert sparsecv("treecv", file_treecv, *changed(["--target", "y"], words)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert says in lines[0]

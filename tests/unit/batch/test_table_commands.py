"""`sparsecv table`, and `plot` of the same: a real batch from plan to table and figures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sparsecv_mio.batch.run_tables import write_table
from sparsecv_mio.cli import run

PLAN = """
[[data]]
design = "toeplitz"
n = 24
p = 4
support = 2
snr = [1.0, 5.0]
[vary]
folds = "3"
gamma = ["0.1", "0.1:1:3"]
test = 0.25
split = [0, 1]
estimator = ["sparsecv", "lasso", "ridge"]
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("runs")
    (place / "plan.toml").write_text(PLAN)
    assert run(["batch", str(place / "plan.toml"), "--out", str(place / "out"), "--workers", "1"]) == 0
    table = place / "runs.parquet"
    assert run(["collect", str(place / "out"), "-o", str(table)]) == 0
    return str(table)


def test_a_table_is_shown(runs: str, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["table", runs, "--values", "features,test_error", "--rows", "design_snr", "--where",
                 "gammas=,0.1", "--overall", "--name", "sparsecv=ours"]  # fmt: skip
    assert run(arguments) == 0
    shown = capfd.readouterr().out
    head, _, first, second, mean, _, note, *_ = shown.splitlines()
    assert "ours features" in head and "lasso test_error" in head
    assert first.startswith("| 1") and second.startswith("| 5") and mean.startswith("| mean") and "**" in first
    assert note == "mean of features, test_error"
    frame = pd.read_parquet(runs)
    mine = frame[(frame["estimator"] == "lasso") & (frame["design_snr"] == 5.0)]
    assert f"{mine['test_error'].mean():.4g}" in second


def test_errors_on_test_rows_are_the_usual_numbers(
    runs: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", runs]) == 0 and "\nmean of test_error\n" in capfd.readouterr().out
    bare = tmp_path / "bare.parquet"
    write_table(pd.read_parquet(runs).drop(columns="test_error"), bare)
    assert run(["table", str(bare), "--aggregate", "max"]) == 0
    assert "\nmax of cv_error\n" in capfd.readouterr().out


def test_numbers_over_those_of_a_peer(runs: str, tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    assert run(["table", runs, "--value", "test_error", "--relative", "estimator=lasso", "-o", str(out)]) == 0
    table = pd.read_csv(out)
    assert (table["lasso test_error"] == 1.0).all() and (table["sparsecv test_error runs"] == 4).all()
    assert run(["table", runs, "-o", str(tmp_path / "t.tex")]) == 0
    assert (tmp_path / "t.tex").read_text().startswith(r"\begin{tabular}")
    assert run(["table", runs, "-o", str(tmp_path / "t.md")]) == run(["table", runs, "-o", "/dev/null"]) == 0
    assert (tmp_path / "t.md").read_text().startswith("| ")


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--kind", "box", "--value", "test_error", "--panels", "design_snr", "--by", "estimator,gammas"],
        ["--kind", "profile", "--value", "test_error"],
        ["--kind", "lines", "--value", "f1", "--against", "design_snr"],
    ],
)
def test_figures_are_drawn(runs: str, options: list[str], tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf")[: 1 if options else 3]:
        assert run(["plot", runs, *options, "--out", str(tmp_path / f"f.{ending}")]) == 0
        assert (tmp_path / f"f.{ending}").stat().st_size > 2000


def test_words_of_numbers_are_numbers_on_an_axis(runs: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    frame, table = pd.read_parquet(runs), tmp_path / "runs.parquet"
    ask = ["plot", str(table), "--kind", "lines", "--value", "f1", "--against", "folds"]
    ask += ["--out", str(tmp_path / "f.png")]
    for words, code in ((["3", "10"], 0), (["3", "loo"], 2)):
        write_table(frame.assign(folds=[words[k % 2] for k in range(len(frame))]), table)
        assert run(ask) == code
    assert "--against: column 'folds' does not contain numbers" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "RUNS", "--value", "test_eror"], "did you mean 'test_error'"),
        (["table", "RUNS", "--value", "estimator"], "does not contain numbers"),
        (["table", "RUNS", "--columns", "nothing"], "--columns: there is no column 'nothing'"),
        (["table", "RUNS", "--relative", "estimator=lasso", "--reduction", "estimator=lasso"], "exclude each other"),
        (["table", "RUNS", "--name", "ours"], "is not of the form LABEL=WORDS"),
        (["table", "RUNS", "--digits", "0"], "--digits 0"),
        (["table", "none.parquet"], "does not exist"),
        (["table", "RUNS", "--out", "t.doc"], "--out: 't.doc' must end with .md"),
        (["table", "RUNS", "--out", "table"], "--out: 'table' must end with .md"),
        (["plot", "RUNS", "--kind", "lines", "--out", "f.png"], "name its column by --against COLUMN"),
        (["plot", "RUNS", "--against", "folds", "--out", "f.png"], "--against: requires --kind lines"),
        (["plot", "RUNS", "--value", "f1,cv_error", "--out", "f.png"], "several columns require --kind lines"),
        (["plot", "RUNS", "--kind", "profile", "--where", "data=", "--out", "f.png"], "no row matches"),
        (["plot", "record.json", "--kind", "box", "--out", "f.png"], "is not a table of runs"),
    ],
)
def test_what_is_refused(
    arguments: list[str], message: str, runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run([runs if word == "RUNS" else word for word in arguments]) == 2
    assert message in capfd.readouterr().err and not list(tmp_path.iterdir())

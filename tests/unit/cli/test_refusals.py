"""What commands say that were given too much, too little, or another thing than was meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.cli import run

Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(12, 3)).round(3)
    for name, goal in (("one", "y"), ("two", "z")):
        Path(f"{name}.csv").write_text(f"a,b,{goal}\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    Path("runs.csv").write_text("data,estimator,state,cv_error\na,lasso,done,1.5\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("compare one.csv two.csv --tau 1 --gamma 1 --out o -t y",
         "two.csv: target 'y' is not in the data; the columns are a, b, z; --target takes one for each file: A,B"),
        ("near one.csv two.csv", "sparsecv near: this command takes DATA; remove two.csv"),
        ("verify one.csv two.csv a b", "sparsecv verify: this command takes RECORD DATA; remove a b"),
        ("report a.json one.csv", "this command takes RECORD; remove one.csv; give the data of the record as --data F"),
        ("table runs.csv --values nosuch", "--values: there is no column 'nosuch'"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(words: str, said: str, capsys: Said) -> None:
    assert run(words.split()) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_column_that_rounding_moves_is_not_called_constant(capsys: Said) -> None:
    up = float(np.nextafter(1.0, 2.0))
    rows = [f"{k % 5},{up if k % 3 else 1.0!r},4,{k % 7}\n" for k in range(20)]
    Path("ulp.csv").write_text("a,b,c,y\n" + "".join(rows))
    ask = ["solve", "ulp.csv", "-t", "y", "--gamma", "0.1", "--tau", "1", "--proof", "p"]
    assert run(ask) == 2
    told = capsys.readouterr().err
    assert "column 'c' is constant: its coefficient is zero" in told
    assert "column 'b' varies only by rounding errors: its coefficient is zero" in told
    assert "--proof: column 'b' is constant up to rounding; give --drop b" in told and not Path("p").exists()
    assert run([*ask, "--drop", "b", "-q"]) == 0 and run(["check", "p", "ulp.csv"]) == 0


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 0.66, 0.9, 3.0])
def test_the_accuracy_of_predictions_is_that_of_the_classes_written(threshold: float, capsys: Said) -> None:
    Path("two.csv").write_text("a,y\n" + "".join(f"{k * 7 % 11},{'yes' if k % 3 else 'no'}\n" for k in range(24)))
    ask = ["solve", "two.csv", "-t", "y", "--loss", "logistic", "--tau", "1", "--gamma", "1", "--folds", "2", "-q"]
    assert run([*ask, "--json", "two.json"]) == 0
    capsys.readouterr()
    code = run(["predict", "two.json", "two.csv", "--threshold", str(threshold), "-o", "p.csv"])
    said = capsys.readouterr()
    if threshold > 1.0:
        assert code == 2 and "--threshold: 3 is not a probability; give a number from 0 to 1" in said.err
        return
    written, given = pd.read_csv("p.csv"), pd.read_csv("two.csv")
    assert ((written["probability"] >= threshold) == (written["class"] == "yes")).all()
    accuracy = 100.0 * (written["class"] == given["y"]).mean()
    assert f"accuracy {accuracy:.1f}% at threshold {threshold:g}" in said.out

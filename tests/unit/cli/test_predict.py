"""`predict`: new rows by the model of a record, with or without their target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.cli import run

PROSTATE = INSTANCES / "prostate.csv"
Said = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("predict") / "record.json"
    sc.solve(PROSTATE, "lpsa", gammas=0.1, taus=3).write_record(file)
    return file


def test_predictions_go_to_the_screen_and_errors_beside_them(record: Path, capsys: Said) -> None:
    assert run(["predict", str(record), str(PROSTATE)]) == 0
    said = capsys.readouterr()
    head, *lines = said.out.splitlines()
    stored = sc.read_record(record)
    assert head == "prediction" and [float(line) for line in lines] == stored.predict(pd.read_csv(PROSTATE)).tolist()
    for words in ("97 rows predicted", "errors: RMSE 0.7", "in cross-validation: RMSE 0.7"):
        assert words in said.err
    assert run(["predict", str(record), str(PROSTATE), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_a_file_needs_the_columns_of_the_model_alone(record: Path, suffix: str, tmp_path: Path, capsys: Said) -> None:
    frame = pd.read_csv(PROSTATE)
    new = frame[["svi", "lweight", "lcavol"]][::-1].assign(name="text")
    file, out = tmp_path / f"new{suffix}", tmp_path / "out.csv"
    if suffix == ".parquet":
        new.to_parquet(file)
    else:
        new.to_csv(file, index=False, sep="\t" if suffix == ".tsv" else ",")
    assert run(["predict", str(record), str(file), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == "97 rows predicted" and said.err == ""
    stored = sc.read_record(record)
    assert pd.read_csv(out).prediction.tolist() == stored.predict(new).tolist()


def test_matrices_without_a_target_of_that_name(record: Path, tmp_path: Path, capsys: Said) -> None:
    data = sc.read_dataset(PROSTATE, "lpsa")
    np.savez(tmp_path / "new.npz", X=data.X, y=data.y, names=np.array(data.names))
    assert run(["predict", str(record), str(tmp_path / "new.npz")]) == 0
    assert "errors" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("age,lpsa\n1,2\n", "features 'lcavol', 'lweight', 'svi' are not in the data"),
        ("lcavol,lweight,swi\n1,2,3\n", "feature 'svi' is not in the data (did you mean 'swi'?)"),
        ("lcavol,lweight,svi\n1,2,\n", "column 'svi' is empty in row 1"),
        ("lcavol,lweight,svi\n", "has a header but no rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    record: Path, content: str, said: str, tmp_path: Path, capsys: Said
) -> None:
    file, out = tmp_path / "new.csv", tmp_path / "out.csv"
    file.write_text(content)
    assert run(["predict", str(record), str(file), "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == "" and not out.exists()


@pytest.mark.parametrize(("cell", "said"), [("", "column 'lpsa' is empty in row 2"), ("x", "text 'x' in row 2")])
def test_a_target_that_is_not_known_is_not_needed(
    record: Path, cell: str, said: str, tmp_path: Path, capsys: Said
) -> None:
    file = tmp_path / "new.csv"
    file.write_text(f"lcavol,lweight,svi,lpsa\n1,2,0,3\n0,3,1,{cell}\n")
    assert run(["predict", str(record), str(file)]) == 0
    printed = capsys.readouterr()
    stored = sc.read_record(record)
    new = pd.DataFrame({"lcavol": [1.0, 0.0], "lweight": [2.0, 3.0], "svi": [0.0, 1.0]})
    assert [float(line) for line in printed.out.split()[1:]] == stored.predict(new).tolist()
    assert "2 rows predicted" in printed.err and "errors are not known" in printed.err and said in printed.err
    file.write_text(f"lcavol,lweight,svi,lpsa\n1,,0,3\n0,3,1,{cell}\n")
    assert run(["predict", str(record), str(file)]) == 2 and "column 'lweight' is empty" in capsys.readouterr().err


@pytest.mark.parametrize("reading", [[], ["--na", "drop", "--encode", "onehot"]])
def test_empty_cells_of_new_rows_have_a_cure_that_predict_knows(
    reading: list[str], tmp_path: Path, capsys: Said
) -> None:
    data, answer, out = tmp_path / "data.csv", tmp_path / "answer.json", tmp_path / "out.csv"
    data.write_text("a,b,y\n" + "".join(f"{k},{k * k % 7},{k + k * k % 7}\n" for k in range(20)))
    search = ["solve", str(data), "-t", "y", "--gamma", "0.1", "--tau", "2", "-q", "--json", str(answer)]
    assert run([*search, *reading]) == 0
    capsys.readouterr()
    for content, said in (
        ("a,b\n1,2\n3,\n", "column 'b' is empty in row 2"),
        ("a,b\n1,\n3,\n,4\n", "(2 cells; fill them, or leave these rows out), 'a' is empty in row 3"),
        ("a,b\n1,x\n", "'b' holds text 'x' in row 1"),
    ):
        data.write_text(content)
        assert run(["predict", str(answer), str(data), "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1 and not out.exists()
        assert "--na" not in error and "--encode" not in error and "column or" not in error and "drop" not in error
    data.write_text("a,b\n1,2\n")
    assert run(["predict", str(answer), str(data)]) == 0
    assert capsys.readouterr().err == "sparsecv: 1 row predicted\n"


def test_a_model_without_features_predicts_its_intercept(tmp_path: Path, capsys: Said) -> None:
    stored = sc.solve(PROSTATE, "lpsa", gammas=0.1, taus=0)
    stored.write_record(tmp_path / "r.json")
    assert run(["predict", str(tmp_path / "r.json"), str(PROSTATE), "-q"]) == 0
    assert {float(line) for line in capsys.readouterr().out.split()[1:]} == {stored.intercept}


def test_records_that_cannot_predict_and_outputs_that_cannot_be_written(
    record: Path, tmp_path: Path, capsys: Said
) -> None:
    data = sc.read_dataset(PROSTATE, "lpsa")
    sc.best_subsets(data, gammas=0.1).write_record(tmp_path / "path.json")
    assert run(["predict", str(tmp_path / "path.json"), str(PROSTATE)]) == 2
    assert "holds a model for every size" in capsys.readouterr().err
    assert run(["predict", str(record), str(PROSTATE), "--out", str(record)]) == 2
    assert "is the data too" in capsys.readouterr().err


def test_held_out_predictions_of_repeated_folds_are_means(tmp_path: Path, capsys: Said) -> None:
    out = tmp_path / "rows.csv"
    command = ["solve", str(PROSTATE), "--target", "lpsa", "--gamma", "0.1", "--tau", "3", "--save-held-out", str(out)]
    for folds, times in (("2x4", {2}), ("forward:3", {1})):
        assert run([*command, "--folds", folds]) == 0
        rows = pd.read_csv(out)
        assert list(rows.columns) == ["target", "times scored", "prediction"] and len(rows) == 97
        assert set(rows["times scored"].dropna()) == times
        assert rows.prediction.isna().sum() == (0 if folds == "2x4" else 97 - 3 * 24)
        said, held = capsys.readouterr().out, rows.dropna()
        root = np.sqrt(np.mean((held.target - held.prediction) ** 2))
        assert f"held-out predictions in the file: RMSE {root:.6g}, " in said


@pytest.mark.parametrize("folds", [["loo"], ["holdout:0.2"], ["5", "--weights", "age"]])
def test_held_out_predictions_are_what_the_cv_error_is_made_of(
    folds: list[str], tmp_path: Path, capsys: Said
) -> None:
    file, out = tmp_path / "r.json", tmp_path / "rows.csv"
    command = ["solve", str(PROSTATE), "--target", "lpsa", "--gamma", "0.1", "--tau", "3", "--json", str(file)]
    assert run([*command, "--save-held-out", str(out), "--folds", *folds]) == 0
    said, record = capsys.readouterr().out, sc.read_record(file)
    assert isinstance(record, Record)
    rows = pd.read_csv(out)
    held = rows.dropna()
    weight = held.weight if "weight" in held else np.ones(len(held))
    assert ("--weights" in folds) == ("weight" in held)
    assert len(rows) == record.data.n and held.fold.nunique() == record.folds.k
    square = np.average((held.target - held.prediction) ** 2, weights=weight)
    assert square == pytest.approx(record.cv_error, rel=1e-9)
    mae = np.average(np.abs(held.target - held.prediction), weights=weight)
    assert f"held-out predictions in the file: RMSE {np.sqrt(record.cv_error):.6g}, MAE {mae:.6g}, R^2 " in said
    assert f"R^2 {record.r_squared:.4f}" in said.partition("MAE")[2].splitlines()[0]

"""A search over counts: record and back, predictions with exposures, what the command line says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_lines import changed
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput


def table(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")).assign(days=rng.uniform(0.5, 9.0, n))
    return frame.assign(hits=rng.poisson(frame["days"] * np.exp(-0.5 + 0.7 * frame["a"] - 0.4 * frame["c"])))


@pytest.fixture(scope="module")
def record() -> Record:
    how = {"loss": "poisson", "exposure": "days", "gammas": [0.1], "taus": [1, 2], "folds": 4, "threads": 1}
    return sc.solve(table(), "hits", **how)


def test_the_record_holds_and_comes_back(record: Record) -> None:
    assert record.status == "proved" and record.counts is not None and record.data.exposure == "days"
    assert Record.from_json(record.to_json()) == record
    data = Dataset.from_frame(table(), "hits", aux=("days",))
    assert verify(record, data).ok
    for wrong in (
        replace(record, cv_error=record.cv_error * 1.001), replace(record, intercept=record.intercept + 1e-3),
        replace(record, counts=replace(record.counts, null_error=record.counts.null_error * 1.001)),
        replace(record, r_squared=0.5),
    ):  # fmt: skip
        assert not verify(wrong, data).ok
    others = Dataset.from_frame(table().assign(days=1.0), "hits", aux=("days",))
    assert not verify(record, others).ok


def test_the_cv_error_is_half_the_deviance_of_held_out_rows(record: Record) -> None:
    from sklearn.metrics import mean_poisson_deviance

    from sparsecv_mio.search.answer.fold_models import held_out_predictions

    data = Dataset.from_frame(table(), "hits", aux=("days",))
    predicted = held_out_predictions(record, data, "4")
    assert record.cv_error == pytest.approx(mean_poisson_deviance(data.y, predicted) / 2.0, rel=1e-8)


def test_exposures_enter_predictions(record: Record, tmp_path: Path) -> None:
    frame = table(5)
    rates = np.exp(frame[list(record.coefficients)] @ np.array(list(record.coefficients.values())) + record.intercept)
    expected = pytest.approx((rates * frame["days"]).to_numpy())
    place = tmp_path / "new.csv"
    frame.to_csv(place, index=False)
    assert record.predict(frame) == expected and record.predict(place) == expected
    assert record.predict(Dataset.from_frame(frame, "hits", aux=("days",))) == expected
    for without in (frame.drop(columns="days"), frame[list("abcd")].to_numpy()):
        with pytest.raises(BadInput, match="^exposure: the model needs the column 'days' of exposures; give a file"):
            record.predict(without)
    with pytest.raises(BadInput, match="^exposure: column 'days' is 0 in row 1; give a number above 0, or remove"):
        record.predict(frame.assign(days=0.0))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--exposure", "days", "--loss", "squared"], "--exposure days: requires --loss poisson, not squared"),
        (["--positive", "1"], "--positive 1: requires --loss logistic, not poisson"),
        (["--class-weight", "balanced"], "--class-weight balanced: requires --loss logistic, not poisson"),
        (["--intercept", "global"], "--loss poisson: requires --intercept fold or none, not global"),
        (["--method", "grid"], "--loss poisson: requires --method auto or joint, not grid"),
        (["--proof", "x"], "not supported with --loss poisson"),
        (["--exposure", "hours"], "--exposure: column 'hours' is not in the data"),
        (["--exposure", "a", "--features", "a,b"], "column 'a' gives folds, weights, exposures, offsets or ids"),
        (["--gamma", "0"], "not supported with --loss poisson"),
    ],
)
def test_what_the_command_line_refuses(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "t.csv"
    table().to_csv(place, index=False)
    given = ["--loss", "poisson", "--gamma", "0.1", "--tau", "1:2"]
    assert run(["solve", str(place), "--target", "hits", *changed(given, options)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_command_line_says_what_is_certified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, out = tmp_path / "t.csv", tmp_path / "r.json"
    table().to_csv(place, index=False)
    asked = ["--target", "hits", "--loss", "poisson", "--exposure", "days", "--gamma", "0.1", "--tau", "1:2"]
    assert run(["solve", str(place), *asked, "--json", str(out), "--save-held-out", str(tmp_path / "h.csv")]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "(mean half deviance, standard error 0." in screen and "the model predicts the expected count" in screen
    assert json.loads(out.read_text())["counts"]["certified"] == "half_deviance"
    assert run(["verify", str(out), str(place)]) == 0
    assert run(["predict", str(out), str(place), "--out", str(tmp_path / "p.csv")]) == 0
    assert "in cross-validation of the training rows: half deviance" in " ".join(capsys.readouterr().out.split())
    assert run(["report", str(out), "--data", str(place), "--out", str(tmp_path / "r.html")]) == 0
    assert "Best-subset Poisson regression of hits" in (tmp_path / "r.html").read_text()
    assert run(["inspect", str(place), "--target", "hits"]) == 0
    assert "--loss poisson" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("loss", ["poisson", *slow(["logistic"])])
def test_every_command_takes_it(loss: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The averaged model predicts by its coefficients; lists, a common subset and outer models are verified."""
    frame = table()
    if loss == "logistic":
        frame["hits"] = np.where(frame["hits"] > frame["hits"].median(), "many", "few")
    place, out = tmp_path / "t.csv", tmp_path / "r.json"
    frame.to_csv(place, index=False)
    exposure = ["--exposure", "days"] if loss == "poisson" else ["--drop", "days"]
    asked = [str(place), "--target", "hits", "--loss", loss, *exposure, "--gamma", "0.1", "--tau", "1:2"]
    given = [*asked, "--folds", "4", "--json", str(out)]
    for command in (["near", *given, "--within", "5%"], ["solve", *given, "--criterion", "common"],
                    ["solve", *given, "--stability", "0.5"], ["solve", *given, "--nested", "3"]):  # fmt: skip
        assert run(command) == 0, command
        capsys.readouterr()
        assert run(["verify", str(out), str(place)]) == 0, command
        capsys.readouterr()
    assert run(["bounds", *asked, "--folds", "4"]) == 0
    capsys.readouterr()
    held = tmp_path / "h.csv"
    how = ["--model", "average", "--own-error", "--nested", "3", "--save-held-out", str(held)]
    assert run(["solve", *given, *how]) == 0
    assert ("pair_prediction" if loss == "poisson" else "pair_probability") in held.read_text().splitlines()[0]
    screen = " ".join(capsys.readouterr().out.split())
    assert "averaged model, used for predictions" in screen and "whole procedure with its averaged model" in screen
    assert run(["verify", str(out), str(place)]) == 0
    assert run(["report", str(out), "--data", str(place), "--out", str(tmp_path / "r.html")]) == 0
    assert ("log odds" if loss == "logistic" else "log rates") in (tmp_path / "r.html").read_text()
    assert run(["predict", str(out), str(place), "--out", str(tmp_path / "p.csv")]) == 0
    assert "of the best pair, not of the averaged model" in " ".join(capsys.readouterr().out.split())
    model = json.loads(out.read_text())["average"]["model"]
    predictors = frame[list(model["coefficients"])] @ list(model["coefficients"].values()) + model["intercept"]
    expected = frame["days"] * np.exp(predictors) if loss == "poisson" else 1.0 / (1.0 + np.exp(-predictors))
    predicted = pd.read_csv(tmp_path / "p.csv")
    column = "prediction" if loss == "poisson" else predicted.columns[1]
    assert predicted[column].to_numpy() == pytest.approx(expected.to_numpy())


def test_a_search_ends_where_no_number_holds_a_held_out_loss() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    X[3, 0] = 1e7
    data = Dataset.from_arrays(X, rng.poisson(np.exp(0.5 + 0.8 * X[:, 1])).astype(float))
    record = sc.solve(data, loss="poisson", folds="3", scale="none", gammas=[0.02, 0.3], taus="0:3")
    assert (record.status, record.tau) == ("proved", 2)
    assert any(row.cv_error == np.inf for row in record.table) and verify(record, data).ok

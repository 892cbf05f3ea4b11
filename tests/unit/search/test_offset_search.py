"""Searches with offsets: records, predictions, estimators, and messages on bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.search.answer.fold_models import held_out_predictions

GRID: dict[str, Any] = {"gammas": [0.1], "taus": [1, 2], "folds": "4", "threads": 1}


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")).assign(o=2.0 * rng.normal(size=n))
    odds = frame["o"] + frame["a"] - 0.8 * frame["c"]
    frame["ill"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(float)
    frame["hits"] = rng.poisson(np.exp(np.minimum(odds, 3.0))).astype(float)
    return frame


def classes() -> pd.DataFrame:
    return table().drop(columns="hits")


@pytest.fixture(scope="module")
def record() -> Record:
    return sc.solve(classes(), "ill", loss="logistic", offset="o", **GRID)


def test_the_record_holds_and_comes_back(record: Record) -> None:
    assert record.status == "proved" and record.data.offset == "o" and record.support == ("a", "c")
    assert Record.from_json(record.to_json()) == record
    data = Dataset.from_frame(classes(), "ill", aux=("o",))
    assert verify(record, data).ok
    for wrong in (
        replace(record, cv_error=record.cv_error * 1.001), replace(record, intercept=record.intercept + 1e-3),
        replace(record, classes=replace(record.classes, null_error=record.classes.null_error * 1.001)),  # type: ignore[type-var]
        replace(record, classes=replace(record.classes, brier=record.classes.brier * 1.001)),  # type: ignore[type-var, operator]
        replace(record, data=replace(record.data, offset=None)),
    ):  # fmt: skip
        assert not verify(wrong, data).ok
    others = Dataset.from_frame(classes().assign(o=0.0), "ill", aux=("o",))
    assert not verify(record, others).ok


def test_the_cv_error_is_the_log_loss_of_held_out_rows(record: Record) -> None:
    from sklearn.metrics import log_loss

    data = Dataset.from_frame(classes(), "ill", aux=("o",))
    assert record.cv_error == pytest.approx(log_loss(data.y, held_out_predictions(record, data, "4")), rel=1e-8)


def test_offsets_enter_predictions(record: Record, tmp_path: Path) -> None:
    frame, slopes = classes(), np.array(list(record.coefficients.values()))
    odds = frame[list(record.coefficients)] @ slopes + record.intercept + frame["o"]
    expected = 1.0 / (1.0 + np.exp(-odds))
    assert record.predict(frame) == pytest.approx(expected)
    file = tmp_path / "new.csv"
    frame.to_csv(file, index=False)
    assert record.predict(file) == pytest.approx(expected)
    with pytest.raises(BadInput, match="offset: the model needs the column 'o' of offsets; give a file or a frame"):
        record.predict(frame.drop(columns="o"))
    with pytest.raises(BadInput, match="offset: column 'o' is empty in row 2; give a number, or remove the row"):
        record.predict(frame.assign(o=np.where(np.arange(60) == 1, np.nan, frame["o"])))


def test_a_constant_offset_moves_only_the_intercept() -> None:
    frame = classes()
    plain, moved = (sc.solve(frame.assign(o=shift), "ill", loss="logistic", offset="o", **GRID) for shift in (0.0, 3.0))
    none = sc.solve(frame.drop(columns="o"), "ill", loss="logistic", **GRID)
    assert moved.cv_error == pytest.approx(plain.cv_error, rel=1e-9) and plain.cv_error == none.cv_error
    assert moved.intercept == pytest.approx(plain.intercept - 3.0, abs=1e-6)
    assert list(moved.coefficients.values()) == pytest.approx(list(none.coefficients.values()), rel=1e-6)


def test_an_offset_of_counts_is_the_logarithm_of_an_exposure() -> None:
    frame = table().drop(columns="ill").assign(e=np.exp(table()["o"]), half=0.5 * table()["o"])
    how: dict[str, Any] = {"loss": "poisson", **GRID}
    data = frame[["a", "b", "c", "d", "hits"]]
    one = sc.solve(data.assign(e=frame["e"]), "hits", exposure="e", **how)
    two = sc.solve(data.assign(o=frame["o"]), "hits", offset="o", **how)
    both = sc.solve(
        data.assign(e=np.exp(frame["half"]), half=frame["half"]), "hits", exposure="e", offset="half", **how
    )
    for other in (two, both):
        assert other.cv_error == pytest.approx(one.cv_error, rel=1e-12) and other.support == one.support
    assert two.predict(frame) == pytest.approx(one.predict(frame))
    with pytest.raises(BadInput, match="^exposure with offset: the logarithm of the exposure plus the offset is 34.5"):
        both.predict(frame.assign(e=np.exp(20.0), half=14.5))


@pytest.mark.parametrize("target", ["ill", "hits"])
def test_a_fit_with_tiny_gamma_is_the_glm_of_statsmodels(target: str) -> None:
    models = pytest.importorskip("statsmodels.api")
    loss, family = ("logistic", models.families.Binomial()), ("poisson", models.families.Poisson())
    name, family = loss if target == "ill" else family
    data = Dataset.from_frame(table()[["a", "b", "c", "d", "o", target]], target, aux=("o",))
    how = PathOptions.of(loss=name, offset="o", restrictions=Restrictions(force_out=("b", "d")))
    made = best_subsets(data, gammas=[1e-9], taus=[2], options=how).path[0]
    design = np.column_stack([np.ones(60), table()[["a", "c"]]])
    theirs = models.GLM(table()[target], design, family=family, offset=table()["o"]).fit(tol=1e-13)
    assert [made.intercept, *made.coefficients.values()] == pytest.approx(list(theirs.params), rel=1e-5)


def test_estimators_take_offsets() -> None:
    frame = classes()
    X, offset = frame[list("abcd")].to_numpy(), frame["o"].to_numpy()
    model = sc.BestSubsetLogisticCV(taus=[1, 2], gammas=[0.1], cv="4").fit(X, frame["ill"], offset=offset)
    same = sc.solve(frame, "ill", loss="logistic", offset="o", **GRID)
    assert model.cv_error_ == pytest.approx(same.cv_error, rel=1e-9)
    assert model.predict_proba(X, offset)[:, 1] == pytest.approx(same.predict(frame))
    odds = model.decision_function(X, offset)
    assert odds == pytest.approx(model.decision_function(X) + offset)
    assert model.predict(X, offset).tolist() == (odds > 0.0).astype(float).tolist()
    right = float(np.mean(model.predict(X, offset) == frame["ill"]))
    assert model.score(X, frame["ill"], offset=offset) == pytest.approx(right)
    counts = sc.BestSubsetPoisson(2, gamma=0.1).fit(X, table()["hits"], offset=offset)
    rates = sc.BestSubsetPoisson(2, gamma=0.1).fit(X, table()["hits"], exposure=np.exp(offset))
    assert counts.coef_ == pytest.approx(rates.coef_, rel=1e-9)
    assert counts.predict(X, offset=offset) == pytest.approx(rates.predict(X, np.exp(offset)))
    with pytest.raises(BadInput, match="offset is nan in row 2; give a finite number for each row"):
        sc.BestSubsetLogistic(1).fit(X, frame["ill"], offset=np.where(np.arange(60) == 1, np.nan, offset))
    with pytest.raises(BadInput, match="^offset is 30 in row 1; give numbers from -27.6 to 27.6, or remove the row"):
        model.predict_proba(X, 30.0)
    with pytest.raises(BadInput, match="^exposure is 1e[+]13 in row 1; give numbers from 1e-12 to 1e12, or remove"):
        counts.predict(X, exposure=1e13)


@pytest.mark.parametrize(
    ("given", "o", "said"),
    [
        ("--loss logistic --offset oo", None, "--offset: column 'oo' is not in the data"),
        ("--loss logistic --offset a", None, None),
        ("--offset o", None, "--offset o: requires --loss logistic or poisson, not squared .*subtract the offset"),
        ("--loss logistic --offset o", "inf", "--offset: column 'o' is inf in row 3; give numbers from -27.6 to 27.6"),
        ("--loss logistic --offset o", "many", "--offset: column 'o' is 'many' in row 3; give a number, or remove"),
        ("--loss logistic --offset o", "40", "--offset: column 'o' is 40 in row 3; give numbers from -27.6 to 27.6"),
        ("--loss logistic --exposure o", None, "--exposure o: requires --loss poisson, not logistic"),
        ("--loss logistic --offset o --proof P", None, "--proof: not supported with --offset"),
    ],
)
def test_bad_input_is_one_line(
    given: str, o: str | None, said: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, frame = tmp_path / "rows.csv", classes()
    frame["o"] = frame["o"].astype(str)
    if o is not None:
        frame.loc[2, "o"] = o
    frame.to_csv(file, index=False)
    words = given.replace("P", str(tmp_path / "proof.txt")).split()
    code = run(["solve", str(file), "--target", "ill", "--gamma", "0.1", "--tau", "1", "--folds", "3", *words])
    printed = capsys.readouterr().err.strip().splitlines()
    if said is None:
        assert code == 0
        return
    assert code == 2 and len([line for line in printed if not line.startswith("sparsecv: note")]) == 1
    assert pd.Series(printed[-1]).str.contains(said).all(), printed

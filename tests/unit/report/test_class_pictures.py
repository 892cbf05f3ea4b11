"""ROC and calibration of held-out rows against scikit-learn; odds ratios; reports and plots of two classes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.calibration import calibration_curve
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score, roc_curve

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report.class_pictures import PredictedClasses, Reliability, plot_calibration, plot_roc
from sparsecv_mio.report.publication import make_publication
from sparsecv_mio.report.record_plots import draw_panel, figure_of
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.report.record_tables import print_answer
from sparsecv_mio.search.api import cross_validate, solve

from .printing import printed


def drawn() -> Dataset:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(70, 3))
    y = (X[:, 0] - X[:, 2] + rng.logistic(size=70) > 0.3).astype(float)
    return Dataset.from_arrays(X, y, target="ill", aux={"w": rng.integers(0, 3, size=70).astype(float)})


DATA = drawn()
HOW = {"folds": 4, "gammas": [0.1, 1.0], "taus": [1, 2], "loss": "logistic"}
WEIGHED = {"weights": "w", "class_weight": "balanced", "positive": "0"}


@cache
def solved(weighted: bool = False) -> Record:
    return solve(DATA, **(HOW | WEIGHED if weighted else HOW))  # type: ignore[arg-type]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighed"])
def test_the_curves_are_those_of_scikit_learn(weighted: bool) -> None:
    record = solved(weighted)
    rows = PredictedClasses.from_record(record, DATA)
    assert record.classes is not None and record.classes.auc is not None
    assert rows.quality.auc == pytest.approx(record.classes.auc, abs=1e-9)
    assert rows.quality.log_loss == pytest.approx(record.cv_error, rel=1e-9)
    assert roc_auc_score(rows.y, rows.chance, sample_weight=rows.weights) == pytest.approx(record.classes.auc)
    false, true, _ = roc_curve(rows.y, rows.chance, sample_weight=rows.weights, drop_intermediate=False)
    assert rows.roc()[0] == pytest.approx(false) and rows.roc()[1] == pytest.approx(true)
    found = rows.measure()
    is_positive = rows.chance > 0.5
    for value, name in ((1.0, "sensitivity"), (0.0, "specificity")):
        recall = recall_score(rows.y, is_positive, pos_label=value, sample_weight=rows.weights)
        assert found[f"{name} (threshold 0.5)"] == pytest.approx(recall)
    log_odds = np.log(rows.chance / (1.0 - rows.chance))[:, None]
    slope = LogisticRegression(C=np.inf, tol=1e-10).fit(log_odds, rows.y, sample_weight=rows.weights).coef_
    assert found["calibration slope"] == pytest.approx(slope.item(), rel=1e-4)
    shifted = 1.0 / (1.0 + np.exp(-found["calibration intercept (slope 1)"] - log_odds[:, 0]))
    assert rows.weights @ (rows.y - shifted) == pytest.approx(0.0, abs=1e-6)
    assert found["accuracy of always predicting the larger class"] == pytest.approx(
        DummyClassifier().fit(log_odds, rows.y, rows.weights).score(log_odds, rows.y, rows.weights), abs=1e-12
    )
    assert ("standard error of the AUC (rows independent)" in found) == (not weighted)
    share = 50.0 if weighted else 100.0 * max(DATA.y.mean(), 1.0 - DATA.y.mean())
    assert f"; always predicting the larger class has an accuracy of {share:.1f}%" in printed(
        lambda console: print_answer(console, record), 400
    )
    text = report_text(record, "md", "RECORD", DATA, "DATA")
    assert "| calibration slope | " in text and "| specificity (threshold 0.5) | " in text
    paper = " ".join(make_publication(record, DATA).results.split())
    assert f"calibration slope {found['calibration slope']:.3g}" in paper and "sensitivity (threshold 0.5) 0." in paper
    assert "calibration" not in make_publication(record).results
    if not weighted:
        wins = (rows.chance[rows.y > 0][:, None] > rows.chance[rows.y <= 0]) * 1.0
        variance = sum(np.var(wins.mean(axis=axis), ddof=1) / wins.shape[1 - axis] for axis in (0, 1))
        assert found["standard error of the AUC (rows independent)"] == pytest.approx(variance**0.5, rel=1e-9)
        observed, predicted = calibration_curve(rows.y, rows.chance, n_bins=10)
        found = Reliability.from_predictions(rows)
        assert found.observed == pytest.approx(observed) and found.predicted == pytest.approx(predicted)
        assert found.counts.sum() == DATA.n and (found.low <= found.observed).all()


def test_repeated_folds_count_each_row_once() -> None:
    """The same predictions several times give the same intervals; repeats of random folds never count more rows."""
    once = PredictedClasses.from_record(solved(weighted=True), DATA)
    thrice = PredictedClasses(*(np.repeat(values, 3) for values in (once.y, once.chance, once.weights)), 1.0 / 3.0)
    for name in ("counts", "predicted", "observed", "low", "high"):
        one, three = (getattr(Reliability.from_predictions(rows), name) for rows in (once, thrice))
        assert three == pytest.approx(one), name
    record = solve(DATA, **HOW | {"folds": "3x4"})  # type: ignore[arg-type]
    rows = PredictedClasses.from_record(record, DATA)
    found = Reliability.from_predictions(rows)
    assert len(rows.y) == 3 * DATA.n and found.counts.sum() == pytest.approx(DATA.n)
    for observed, low, high, n in zip(found.observed, found.low, found.high, found.counts, strict=True):
        ends = proportion_ends(observed, n)
        assert (low, high) == pytest.approx(ends, abs=1e-6)
    page = report_text(record, "md", "R", DATA, "D")
    assert "If several folds score a row, its predictions share the weight of one row" in page
    assert "counts once" not in report_text(solved(), "md", "R", DATA, "D")


def proportion_ends(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval as the two roots p of (share - p)^2 = z^2 p (1 - p) / n."""
    z = norm.ppf(0.975) ** 2 / n
    low, high = sorted(np.roots([1.0 + z, -2.0 * share - z, share**2]).real.tolist())
    return max(low, 0.0), min(high, 1.0)


def test_panels_and_pages(tmp_path: Path) -> None:
    roc, calibration = plot_roc(solved(weighted=True), DATA), plot_calibration(solved(weighted=True), DATA)
    assert roc.get_xlabel() == "false positive rate (1 predicted as 0)"
    assert calibration.get_ylabel() == "observed share of 0"
    titles = [ax.get_title(loc="left") for ax in figure_of(solved(), DATA).axes]
    assert {"ROC curve of held-out rows", "calibration of held-out rows, with their numbers below"} <= set(titles)
    page = report_text(solved(), "html", "R", DATA, "D")
    assert 'id="roc-' in page and 'id="calibration-' in page and "odds ratio per unit" in page
    assert "Best-subset logistic regression of ill" in page and "the curve is not certified" in page
    without = report_text(solved(), "md", "R", None, "D")
    assert "to include them, give the data of the record" in without
    assert draw_panel(solved(), "roc", DATA).axes[0].get_title(loc="left") == "ROC curve of held-out rows"


def test_what_has_no_curves() -> None:
    with pytest.raises(BadInput, match="^panel roc: requires the data of the record, .*; give --data"):
        draw_panel(solved(), "roc")
    with pytest.raises(BadInput, match="^panel calibration: requires a record of `solve --loss logistic`"):
        draw_panel(solve(DATA, folds=3, gammas=[1.0], taus=[1]), "calibration", DATA)
    labels = np.arange(DATA.n) % 3
    record = solve(as_two_classes(DATA), **HOW | {"folds": labels})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="was made in Python"):
        PredictedClasses.from_record(record, DATA)
    assert len(PredictedClasses.from_record(record, DATA, labels).y) == DATA.n
    with pytest.raises(BadInput, match="not the data of the record"):
        PredictedClasses.from_record(solved(), replace(DATA, X=DATA.X + 1.0))


@pytest.mark.parametrize("spec", ["file", "3"])
def test_folds_of_all_rows_where_some_weigh_nothing(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file deals all rows, of which those of weight 0 are gone; a plain number is dealt as one, not by class."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "folds.txt"
    place.write_text("".join(f"{i % 3}\n" for i in range(DATA.n)), encoding="utf-8")
    how = f"file:{place}" if spec == "file" else spec
    rows, plan = weighted(
        DATA, DATA.aux["w"], lambda given: make_folds(how, given, 1), name="w", by_row=spec == "file"
    )  # fmt: skip
    record = cross_validate(rows, plan, gammas=[0.1], taus=[1], loss="logistic")
    assert record.folds.spec == f"{how} weighted" and rows.n < DATA.n
    found = verify(record, DATA)
    assert found.ok, found.failures
    assert PredictedClasses.from_record(record, DATA).quality.log_loss == pytest.approx(record.cv_error, rel=1e-9)

"""Odds and rate ratios beside coefficients, on the screen and in reports, and how far counts scatter."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.accuracy import OVER, scatter_of_counts, scatter_of_successes
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.fits.criteria import criteria, glm_criteria
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.report import record_words
from sparsecv_mio.report.class_pictures import PredictedClasses, Reliability
from sparsecv_mio.report.coefficients import overdispersion_note, ratio_columns, scatter_lines
from sparsecv_mio.report.fit_tables import print_fit, print_path
from sparsecv_mio.report.publication import make_publication
from sparsecv_mio.report.record_plots import fitted_rows
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.report.record_tables import print_answer
from sparsecv_mio.targets import Loss

from .printing import printed

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3)) * [1.0, 4.0, 1.0]
DAYS = RNG.uniform(1.0, 9.0, 60)
RATE = DAYS * np.exp(-0.5 + 0.4 * X[:, 0] + 0.15 * X[:, 1])
TARGETS = {
    "logistic": (2.0 * X[:, 0] + 0.3 * X[:, 1] + RNG.normal(size=60) > 0.0).astype(float),
    "poisson": RNG.poisson(RATE).astype(float),
    "scattered": RNG.poisson(RATE * RNG.gamma(0.4, 2.5, 60)).astype(float),
}
WORDS = {"logistic": "odds ratio", "poisson": "rate ratio"}


def asked(kind: str) -> tuple[sc.Dataset, dict[str, Any]]:
    loss = "logistic" if kind == "logistic" else "poisson"
    data = sc.Dataset.from_arrays(X, TARGETS[kind], ["a", "b, c", "d"], aux={"days": DAYS})
    return data, {"loss": loss, "exposure": "days" if loss == "poisson" else None}


def test_ratios_are_per_unit_and_per_standard_deviation() -> None:
    data = sc.Dataset.from_arrays([[0.0, 0.0], [4.0, 8.0]], [0.0, 1.0], ["a", "b"])
    heads, cells = ratio_columns(Loss.LOGISTIC.target, {"a": 0.5, "b": -0.25}, data)
    assert heads == ["odds ratio per unit", "odds ratio per standard deviation"]
    spread = math.sqrt(8.0)  # divisor n - 1, as in `inspect`
    assert cells == {
        "a": ["1.649", f"{math.exp(0.5 * spread):.4g}"], "b": ["0.7788", f"{math.exp(-0.5 * spread):.4g}"]
    }  # fmt: skip
    assert ratio_columns(Loss.POISSON.target, {"a": 0.5}, None) == (["rate ratio per unit"], {"a": ["1.649"]})
    assert ratio_columns(Loss.SQUARED.target, {"a": 0.5}, data) == ([], {})


def test_levels_of_a_factor_have_no_ratio_per_standard_deviation() -> None:
    level, names = np.arange(60) % 3, ["city=a", "city=b", "city=c", "x"]
    y = np.asarray(level - 1.0 + X[:, 0] + 0.5 * RNG.normal(size=60) > 0.0, dtype=float)
    data = sc.Dataset.from_arrays(np.column_stack([np.eye(3)[level], X[:, 0]]), y, names)
    how: dict[str, Any] = {"gammas": [0.1], "taus": [2], "count": "factors", "loss": "logistic"}
    _, cells = ratio_columns(Loss.LOGISTIC.target, {"city=a": 0.5, "x": 0.5}, data)
    assert cells["city=a"] == ["1.649", ""] and cells["x"][1]
    record, path = sc.solve(data, folds=4, threads=1, **how), sc.best_subsets(data, **how)
    assert set(record.support) == set(names)
    screen = printed(lambda console: print_answer(console, record, data=data), 200)
    assert re.search(r"(?m)^ term +coefficient", screen) and re.search(r"(?m)^ city=a( +\S+){2} *$", screen)
    text = printed(lambda console: print_path(console, path, data), 200)
    assert re.search(r"(?m)^ +2 +\S+ city=a  \S+ city=b  \S+ city=c  \S+ x +\S+ x *$", text)
    assert re.search(r"(?m)^\| city=a \| \S+ \| \S+ \| +\| ", report_text(record, "md", "R", data, "D"))


def test_separated_classes_are_stated() -> None:
    for y, is_separated in ((X[:, 0] > 0.0, True), (TARGETS["logistic"], False)):
        data = sc.Dataset.from_arrays(X, np.asarray(y, dtype=float), ["a", "b", "c"])
        record = sc.solve(data, folds=3, gammas=[0.1], taus=[1], loss="logistic", threads=1)
        line = "the terms of this model separate the two classes: the odds ratios are finite only because of the ridge"
        assert any(line in one for one in scatter_lines(record, record, data)) == is_separated
        assert (line[:50].capitalize() in make_publication(record, data).results) == is_separated
    assert ratio_columns(Loss.LOGISTIC.target, {"a": 63.0}, None)[1] == {"a": [">1e6"]}


@pytest.mark.parametrize("kind", WORDS)
def test_every_command_prints_them(kind: str) -> None:
    data, how = asked(kind)
    record = sc.solve(data, folds=3, gammas=[1.0], taus=[2], **how)
    path = sc.best_subsets(data, gammas=[1.0], taus=[1, 2], **how)
    fit = fit_one(data, tau=2, gamma=1.0, **how)
    first, spread = record.coefficients["a"], float(X[:, 0].std(ddof=1))
    wanted = [f"{math.exp(first):.4g}", f"{math.exp(first * spread):.4g}"]
    answers = {
        "solve": printed(lambda console: print_answer(console, record, data=data), 200),
        "path": printed(lambda console: print_path(console, path, data), 200),
        "fit": printed(lambda console: print_fit(console, fit, data=data), 200),
        "report": report_text(record, "md", "R", data, "D"),
    }
    for command, text in answers.items():
        assert WORDS[kind] in text and all(number in text for number in wanted), command
    assert f"{WORDS[kind]}s per standard deviation" in answers["path"]


def test_counts_that_scatter_are_said_to() -> None:
    told = {}
    for kind in ("poisson", "scattered"):
        data, how = asked(kind)
        fit = fit_one(data, tau=1, gamma=1e-6, **how)
        (found,) = glm_criteria([fit], data, True, fit)
        expected = fit.predict(data)
        chi_square = float(np.sum((data.y - expected) ** 2 / expected)) / (60 - 1 - 1)
        assert found.scatter is not None and found.scatter.ratio == pytest.approx(chi_square, rel=1e-9)
        told[kind] = scatter_lines(fit, fit, data)
        assert "Pearson chi-square / (n - rank of the model matrix)" in told[kind][0]
    assert len(told["poisson"]) == 1 and len(told["scattered"]) == 2
    assert "the certified half deviance remains valid" in told["scattered"][1]


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_the_formula_of_the_dispersion_gives_the_number(intercept: str) -> None:
    data, how = asked("poisson")
    heavy = np.arange(data.n) % 3 + 1.0
    data = dataclasses.replace(data, aux={**data.aux, "w": heavy})
    how |= {"folds": 3, "gammas": [1e-3], "taus": [1], "adjust": data.names[1], "intercept": intercept}
    for weights, total in ((None, "n"), ("w", "total weight")):
        record = sc.solve(data, weights=weights, **how)
        rows, w = (data, np.ones(data.n)) if weights is None else (weighted_rows(data, heavy, "w"), heavy)
        (line, *_) = scatter_lines(record, record, rows)
        formula = f"Pearson chi-square / ({total} - rank of the model matrix) "
        expected, used = record.predict(rows), 2 + (intercept == "fold")
        ratio = float(w @ ((data.y - expected) ** 2 / expected)) / (w.sum() - used)
        assert float(line.split(formula)[1]) == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_a_factor_has_one_degree_of_freedom_less_than_levels(intercept: str) -> None:
    rng = np.random.default_rng(2)
    levels = np.eye(3)[rng.permutation(60) % 3]
    counts = rng.poisson(np.exp(levels @ [0.0, 1.0, 2.0])).astype(float)
    data = sc.Dataset.from_arrays(levels, counts, ["city=A", "city=B", "city=C"])
    how = {"loss": "poisson", "folds": 3, "gammas": [1e-3], "taus": [1], "count": [data.names], "intercept": intercept}
    record = sc.solve(data, **how)
    assert len(record.coefficients) == 3  # of which two are free if there is an intercept
    (line, *_) = scatter_lines(record, record, data)
    expected = record.predict(data)
    ratio = float(np.sum((counts - expected) ** 2 / expected)) / (60 - 3)
    assert float(line.split("(n - rank of the model matrix) ")[1]) == pytest.approx(ratio, rel=1e-3)
    path = sc.best_subsets(data, loss="poisson", gammas=[1e-3], taus=[1], count=[data.names], intercept=intercept)
    (found,) = glm_criteria(path.path, data, intercept == "fold", path)
    assert found.aic == pytest.approx(found.deviance + 2 * 3)


def test_degrees_of_freedom_are_the_rank_of_the_model_matrix() -> None:
    """All levels of a factor as single features, a copied column, and units that differ by 1e12, as in statsmodels."""
    models = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(3)
    levels, x = np.eye(3)[rng.permutation(80) % 3], rng.normal(size=80)
    counts = rng.poisson(np.exp(levels @ [0.0, 1.0, 2.0] + 0.3 * x)).astype(float)
    columns = np.column_stack([levels, 1e6 * x, 1e-6 * x])
    data = sc.Dataset.from_arrays(columns, counts, ["c=A", "c=B", "c=C", "x", "copy"])
    path = sc.best_subsets(data, loss="poisson", gammas=[1e-8], taus=[4, 5])
    theirs = models.GLM(
        counts, models.add_constant(np.column_stack([levels[:, 1:], x])), models.families.Poisson()
    ).fit()
    for found, row in zip(glm_criteria(path.path, data, True, path), path.path, strict=True):
        assert len(row.coefficients) == row.tau  # of which 3 are independent, in addition to the intercept
        assert found.deviance == pytest.approx(theirs.deviance, rel=1e-5)
        assert found.aic - found.deviance == pytest.approx(2 * 4) and found.scatter is not None
        assert found.scatter.ratio == pytest.approx(theirs.pearson_chi2 / theirs.df_resid, rel=1e-4)
    squares = sc.best_subsets(data, gammas=[1e-8], taus=[5])
    (measures,) = criteria(squares.path, data, True, squares)
    ols = models.OLS(counts, models.add_constant(np.column_stack([levels[:, 1:], x]))).fit()
    assert measures.adjusted == pytest.approx(ols.rsquared_adj, rel=1e-5)


def test_what_is_well_above_one() -> None:
    """The Poisson law itself is hardly ever called too wide, and weights are rows."""
    rng = np.random.default_rng(1)
    for mean in (0.05, 1.0, 30.0):
        drawn = [scatter_of_counts(rng.poisson(mean, 200), np.full(200, mean), 0) for _ in range(200)]
        assert sum(scatter.is_wide for scatter in drawn) <= 4
        assert np.std([scatter.ratio for scatter in drawn]) == pytest.approx(drawn[0].standard_error, rel=0.25)
    twice = scatter_of_counts([0.0, 3.0, 1.0], [1.0, 2.0, 1.0], 1, np.array([1.0, 2.0, 1.0]))
    assert twice == scatter_of_counts([0.0, 3.0, 3.0, 1.0], [1.0, 2.0, 2.0, 1.0], 1)
    assert (
        math.isnan(scatter_of_counts([1.0], [1.0], 1).ratio)
        and overdispersion_note(scatter_of_counts([1.0], [1.0], 1)) == []
    )
    assert OVER > 1.0


def test_an_accuracy_of_the_larger_class_is_said() -> None:
    for rare, said in ((np.arange(60) % 20 == 0, True), (X[:, 0] > 0.0, False)):
        data = sc.Dataset.from_arrays(X, rare.astype(float))
        record = sc.solve(data, folds=3, gammas=[0.01], taus=[1], loss="logistic")
        share = 100.0 * max(rare.mean(), 1.0 - rare.mean())
        hints = [
            hint
            for hint in record_words.hints(record)
            if f"more accurate than always predicting the larger class ({share:.1f}%)" in hint
        ]
        assert len(hints) == said


def test_the_dispersion_of_binomial_successes_is_near_one() -> None:
    rng = np.random.default_rng(2)
    odds = rng.normal(size=300)
    chance, trials = 1.0 / (1.0 + np.exp(-odds)), rng.integers(2, 20, 300).astype(float)
    drawn = [scatter_of_successes(rng.binomial(trials.astype(int), chance), trials, odds, 0) for _ in range(200)]
    assert sum(scatter.is_wide for scatter in drawn) <= 4
    assert np.std([scatter.ratio for scatter in drawn]) == pytest.approx(drawn[0].standard_error, rel=0.2)
    assert np.mean([scatter.ratio for scatter in drawn]) == pytest.approx(1.0, abs=0.02)


def test_overdispersed_successes_are_stated_by_every_command() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=list("ab")).assign(n=rng.integers(10, 30, 60))
    frame["k"] = rng.binomial(frame["n"], rng.beta(0.5, 0.5, 60))
    how: dict[str, Any] = {"loss": "logistic", "trials": "n", "gammas": [0.01], "taus": [1]}
    found = sc.solve(frame, "k", folds="5", threads=1, **how)
    path = sc.best_subsets(frame, target="k", **how)
    rows = fitted_rows(found, sc.Dataset.from_frame(frame, "k", aux=("n",)))
    (name,) = found.support
    chance = 1.0 / (1.0 + np.exp(-found.intercept - found.coefficients[name] * frame[name]))
    squares = (frame["k"] - frame["n"] * chance) ** 2 / (frame["n"] * chance * (1.0 - chance))
    note, ratio = "he successes are overdispersed", squares.sum() / 58.0
    written = {
        "solve": printed(lambda console: print_answer(console, found, data=rows), 200),
        "path": printed(lambda console: print_path(console, path, rows), 200),
        "report": report_text(found, "md", "R", rows, "D"),
        "publication": report_text(found, "md", "R", rows, "D", "publication"),
    }
    for command, text in written.items():
        digits = 3 if command == "publication" else 4
        assert note in text and f"{ratio:.{digits}g}" in text, command
        per_deviation = math.exp(found.coefficients[name] * frame[name].std())  # divisor n - 1, over the 60 rows
        assert f"{per_deviation:.{digits}g}" in text, command


def test_calibration_counts_trials() -> None:
    """Wilson's interval is that of statsmodels for the trials of a bin, with several folds a row too."""
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"a": rng.normal(size=80), "n": rng.integers(1, 12, 80)})
    frame["k"] = rng.binomial(frame["n"], 1.0 / (1.0 + np.exp(-frame["a"])))
    for folds, weights in (("5", None), ("2x5", None), ("5", "w")):
        rows = frame if weights is None else frame.assign(w=1.0)
        found = sc.solve(rows, "k", folds=folds, weights=weights, trials="n", loss="logistic", gammas=[0.1], taus=[1])
        data = fitted_rows(found, sc.Dataset.from_frame(rows, "k", aux=("n", *(["w"] if weights else []))))
        predicted = PredictedClasses.from_record(found, data)
        points = Reliability.from_predictions(predicted)
        assert points.counts.sum() == pytest.approx(frame["n"].sum()) and predicted.unit == "trial"
        for count, share, low, high in zip(points.counts, points.observed, points.low, points.high, strict=True):
            assert [low, high] == pytest.approx(proportion.proportion_confint(share * count, count, method="wilson"))


def test_a_line_on_the_data_counts_rows_of_the_file() -> None:
    frame = pd.DataFrame({"a": np.arange(9.0), "n": [4] * 9, "k": [0, 4, 1, 2, 3, 2, 2, 4, 3]})
    found = sc.solve(frame, "k", trials="n", folds="3", loss="logistic", gammas=[0.1], taus=[1])
    data = fitted_rows(found, sc.Dataset.from_frame(frame, "k", aux=("n",)))
    assert record_words.data_line(found, data).startswith("9 rows with 36 trials (n); 1 feature; 3 random folds")

"""Odds and rate ratios beside coefficients, on the screen and in reports, and how far counts scatter."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.accuracy import OVER, scatter_of_counts
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.fits.criteria import glm_criteria
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.report import record_words
from sparsecv_mio.report.coefficients import overdispersion_note, ratio_columns, scatter_lines
from sparsecv_mio.report.fit_tables import print_fit, print_path
from sparsecv_mio.report.publication import make_publication
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
    heads, cells = ratio_columns(Loss.LOGISTIC, {"a": 0.5, "b": -0.25}, data)
    assert heads == ["odds ratio per unit", "odds ratio per standard deviation"]
    assert cells == {"a": ["1.649", "2.718"], "b": ["0.7788", "0.3679"]}
    assert ratio_columns(Loss.POISSON, {"a": 0.5}, None) == (["rate ratio per unit"], {"a": ["1.649"]})
    assert ratio_columns(Loss.SQUARED, {"a": 0.5}, data) == ([], {})


def test_separated_classes_are_stated() -> None:
    for y, is_separated in ((X[:, 0] > 0.0, True), (TARGETS["logistic"], False)):
        data = sc.Dataset.from_arrays(X, np.asarray(y, dtype=float), ["a", "b", "c"])
        record = sc.solve(data, folds=3, gammas=[0.1], taus=[1], loss="logistic", threads=1)
        line = "the terms of this model separate the two classes: the odds ratios are finite only because of the ridge"
        assert any(line in one for one in scatter_lines(record, record, data)) == is_separated
        assert (line[:50].capitalize() in make_publication(record, data).results) == is_separated
    assert ratio_columns(Loss.LOGISTIC, {"a": 63.0}, None)[1] == {"a": [">1e6"]}


@pytest.mark.parametrize("kind", WORDS)
def test_every_command_prints_them(kind: str) -> None:
    data, how = asked(kind)
    record = sc.solve(data, folds=3, gammas=[1.0], taus=[2], **how)
    path = sc.best_subsets(data, gammas=[1.0], taus=[1, 2], **how)
    fit = fit_one(data, tau=2, gamma=1.0, **how)
    first, spread = record.coefficients["a"], float(X[:, 0].std())
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
        assert "Pearson chi-square / (n - features - 1)" in told[kind][0]
    assert len(told["poisson"]) == 1 and len(told["scattered"]) == 2
    assert "the certified half deviance remains valid" in told["scattered"][1]


@pytest.mark.parametrize(("intercept", "constant"), [("fold", " - 1"), ("none", "")])
def test_the_formula_of_the_dispersion_gives_the_number(intercept: str, constant: str) -> None:
    data, how = asked("poisson")
    heavy = np.arange(data.n) % 3 + 1.0
    data = dataclasses.replace(data, aux={**data.aux, "w": heavy})
    how |= {"folds": 3, "gammas": [1e-3], "taus": [1], "adjust": data.names[1], "intercept": intercept}
    for weights, total in ((None, "n"), ("w", "total weight")):
        record = sc.solve(data, weights=weights, **how)
        rows, w = (data, np.ones(data.n)) if weights is None else (weighted_rows(data, heavy, "w"), heavy)
        (line, *_) = scatter_lines(record, record, rows)
        formula = f"Pearson chi-square / ({total} - features - adjustment columns{constant}) "
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
    constant = " - 1" if intercept == "fold" else ""
    expected = record.predict(data)
    ratio = float(np.sum((counts - expected) ** 2 / expected)) / (60 - 3)
    assert float(line.split(f"(n - free coefficients{constant}) ")[1]) == pytest.approx(ratio, rel=1e-3)
    path = sc.best_subsets(data, loss="poisson", gammas=[1e-3], taus=[1], count=[data.names], intercept=intercept)
    (found,) = glm_criteria(path.path, data, intercept == "fold", path)
    assert found.aic == pytest.approx(found.deviance + 2 * 3)


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

"""The table and the texts for a paper: rounded numbers, claims by status, and names of the data as data."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from repository import INSTANCES, ROOT
from rich.console import Console

import sparsecv_mio as sc
from sparsecv_mio.certificate.inference_checks import summarise_bootstrap, summarise_stability_selection
from sparsecv_mio.certificate.inference_parts import (
    Baseline,
    Baselines,
    Bootstrap,
    ChosenModel,
    DrawPlan,
    Inference,
    SplitResult,
    StabilitySelection,
    TermInference,
)
from sparsecv_mio.certificate.records import Nested, OneSe, Record
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.report.journal_numbers import find_decimals, format_estimate, format_limits, round_outward
from sparsecv_mio.report.layout import code_lines
from sparsecv_mio.report.optional_parts import print_draws, summarise_draws
from sparsecv_mio.report.publication import cited_keys, make_publication, print_pair, publication_text
from sparsecv_mio.report.references import bibliography, find_references
from sparsecv_mio.search.api import cross_validate

from .printing import data

BAD = ["a_b", "R&D", "cost $", "x|y", "50% #1", r"back\slash {z}", "*[~^`]*", '=1+"2",3']


@pytest.fixture(scope="module")
def hostile() -> tuple[Record, Dataset]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, len(BAD)))
    rows = Dataset.from_arrays(X, X.sum(axis=1) + 0.1 * rng.normal(size=40), BAD)
    return cross_validate(rows, "5", gammas=[0.01], taus=[len(BAD)], threads=1), rows


def test_the_numbers_are_those_of_the_model(record: Record) -> None:
    table = make_publication(record, data()).table
    assert table.head == ("Term", "Estimate", "Effect of 1 SD", "Folds (of 5)")
    spread = dict(zip(data().names, data().X.std(axis=0, ddof=1), strict=True))
    for name, estimate, effect, folds in table.rows[:-1]:
        exact = record.coefficients[name]
        assert float(estimate) == pytest.approx(exact, rel=5e-3)
        assert float(effect) == pytest.approx(exact * spread[name], rel=5e-3)
        assert int(folds) == record.chosen_in()[name]
    assert make_publication(record).table.head == ("Term", "Estimate", "Folds (of 5)")


def test_classes_and_counts_have_ratios() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3)) * [1.0, 1.0, 9.0]
    for loss, y, word in (
        ("logistic", np.where(X[:, 0] + rng.normal(size=60) > 0.0, "ill", "well"), "Odds ratio"),
        ("poisson", rng.poisson(np.exp(0.5 * X[:, 0])), "Rate ratio"),
    ):
        frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
        record = sc.solve(frame, "y", loss=loss, folds="4", gammas=[0.1], taus=[2], threads=1)
        made = make_publication(record)
        assert made.table.head[:3] == ("Term", "Estimate", word)
        for name, _, ratio, _ in made.table.rows[:-1]:
            assert float(ratio) == pytest.approx(math.exp(record.coefficients[name]), rel=0.02)
        assert ("le Cessie" in made.to_markdown(made.methods)) == (loss == "logistic")


def test_the_caption_claims_what_is_certified(record: Record, simplest: Record) -> None:
    half = replace(record, lower=0.5 * record.upper, gap=0.5)
    limit = replace(half, status="limit", estimate=True)
    for found, claims in (
        (record, ["This pair has the minimum CV error over the grid, certified up to a relative gap of 0.01%"]),
        (half, ["This pair has the minimum CV error over the grid, certified up to a relative gap of 50%"]),
        (limit, ["it is not certified to be the minimum", "certified to be between", "an estimate"]),
        (replace(limit, lower=0.0), ["The minimum is certified to be at most"]),
        (replace(limit, lower=0.0, upper=math.inf), ["No bound on the minimum is certified"]),
        (replace(limit, status="interrupted"), ["it is not certified to be the minimum (interrupted)"]),
        (replace(limit, status="doubtful"), ["not certified to be the minimum (an independent refit disagrees"]),
        (
            simplest,
            [
                "The pair was chosen by the one-standard-error rule",
                "(choice certified)",
                "The pair τ = ",
                f"The CV error of the reported pair, {print_pair(simplest.tau, simplest.gamma)}, is ",
            ],
        ),
        (
            replace(simplest, one_se=OneSe(1.0, True)),
            [
                "the simplest pair certified so far to have a CV error of at most the minimum plus one standard error",
                "(choice not certified)",
            ],
        ),
        (
            replace(limit, one_se=OneSe(1.0, True)),
            ["No simpler pair was certified to have a CV error of at most the minimum plus one", "rule chose none"],
        ),
        (replace(record, refit=replace(record.refit, proved=False)), ["the subset is not certified to be the best"]),
        (replace(record, cv_error=math.inf), ["The CV error of this pair is not known"]),
    ):
        caption = make_publication(found).table.caption
        assert all(claim in caption for claim in claims), (claims, caption)
        is_claimed = "has the minimum CV error over the grid, certified" in caption
        assert is_claimed == (found.status == "proved"), caption
        assert ("an estimate" in caption) == (found.estimate and math.isfinite(found.cv_error))


def test_an_estimated_error_is_called_an_estimate_in_the_results(record: Record) -> None:
    stopped = replace(record, status="limit", estimate=True)
    assert "(an estimate, not certified); other measures" in make_publication(stopped).results
    assert "an estimate, not" not in make_publication(record).results


def test_edges_of_the_grid_are_stated(record: Record, simplest: Record) -> None:
    assert "The best γ is the smallest of the grid." in make_publication(record).results
    gammas = record.request.gammas
    assert simplest.least is not None
    minimum = replace(simplest.least, gamma=sorted(gammas)[1])
    for gamma in (max(gammas), min(gammas)):  # a rule may choose an edge although the minimum is inside
        assert "γ of" not in make_publication(replace(simplest, least=minimum, gamma=gamma)).results


def test_rounded_bounds_state_no_more_than_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    for lower, width in zip(10.0 ** rng.uniform(-8, 12, 300), 10.0 ** rng.uniform(-9, 0, 300), strict=True):
        low, high = map(float, round_outward(lower, lower * (1.0 + width)))
        assert low <= lower <= lower * (1.0 + width) <= high
        assert high - low <= lower * width + 2e-3 * high or high >= 1e4


def test_an_interval_has_the_decimals_of_its_estimate_and_is_rounded_outward() -> None:
    assert [format_estimate(value, value) for value in (12.345, -0.0456, 1.0, 0.0)] == [
        "12.3",
        "-0.0456",
        "1.00",
        "0.00",
    ]
    assert format_estimate(-1e-9, 1e-9) == "-1.00e-09" and format_estimate(0.12, 1.16) == "0.12"
    assert format_limits(-1.23456e-9, 2e20, 1e-9) == "-1.24e-09 to 2.00e+20"
    assert (
        format_limits(-9.0, 9.0, 0.5, True) == "0.0001234 to 8103" and format_limits(-0.0, 0.0, 1.0) == "0.00 to 0.00"
    )
    rng = np.random.default_rng(4)
    for estimate, low, width in zip(
        10.0 ** rng.uniform(-6, 6, 300), rng.normal(size=300), rng.random(300), strict=True
    ):
        for is_ratio in (False, True):
            ends = low, low + width
            value = min(estimate, 3.0) if is_ratio else estimate
            shown = format_limits(*ends, value, is_ratio).split(" to ")
            exact = [math.exp(end) if is_ratio else end for end in ends]
            assert float(shown[0]) <= exact[0] <= exact[1] <= float(shown[1])
            decimals, null = find_decimals(value, is_ratio), float(is_ratio)
            assert not exact[0] > null or float(shown[0]) > null
            assert not exact[1] < null or float(shown[1]) < null
            for end, text, sign in zip(exact, shown, (1.0, -1.0), strict=True):
                more = math.ceil(-math.log10(sign * (end - null))) if sign * (end - null) > 0.0 else 0
                assert decimals is None or len(text.partition(".")[2]) == max(decimals, more)
            assert decimals is None or len(format_estimate(value, value, is_ratio).partition(".")[2]) == decimals


def test_a_limit_is_not_rounded_to_the_null_value() -> None:
    assert format_limits(0.0008, 0.156, 0.1, True) == "1.0008 to 1.17"
    assert format_limits(-0.156, -0.0008, 0.1, True) == "0.85 to 0.9993"
    assert format_limits(0.0, 0.156, 0.1, True) == "1.00 to 1.17"
    assert format_limits(-1.25, -0.002, 1.16) == "-1.25 to -0.002"
    assert format_limits(0.3, 0.8, 250.0) == "0.3 to 1" and format_limits(-0.3, 0.8, 250.0) == "-1 to 1"


def test_split_estimates_of_classes_are_named_as_ratios() -> None:
    rng = np.random.default_rng(8)
    given = Dataset.from_arrays(X := rng.normal(size=(80, 2)), (X[:, 0] + rng.normal(size=80) > 0.0).astype(float))
    record = sc.solve(given, loss="logistic", folds="4", gammas=0.1, taus=1, threads=1)
    plan, (name,) = DrawPlan(2, 7, "rows", 80, False, 1e-4), record.support
    split = SplitResult(0, 0.1, 1, (name,), "proved", 0.0)
    record = replace(record, inference=Inference(plan, 0.95, (split,), (TermInference(name, 1, 0.01, 0.6, 0.5, 0.7),)))
    made = make_publication(record, given)
    row = next(dict(zip(made.table.head, row, strict=True)) for row in made.table.rows if row[0] == name)
    assert row["Split odds ratio"] == "1.82" and "Split odds ratio, 1 SD" in row and "Split estimate" not in row
    assert row["Odds ratio"] == f"{math.exp(record.coefficients[name]):.2f}"
    assert "Split odds ratio: median over the splits of the unpenalised odds ratio" in made.notes
    (table,) = summarise_draws(record)[0].tables
    assert table.head[3] == "estimate (log odds)"


def test_latex_is_balanced_and_names_are_data(hostile: tuple[Record, Dataset]) -> None:
    text = publication_text(hostile[0], "latex", hostile[1])
    plain = re.sub(r"\\[\\{}&%$#_]", "", text)
    assert plain.count("{") == plain.count("}") and plain.count("$") % 2 == 0
    for kind in ("table", "tabular", "minipage"):
        assert text.count(rf"\begin{{{kind}}}") == text.count(rf"\end{{{kind}}}") == 1
    columns, body = re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL)[0]
    head, _, body = body.partition(r"\midrule")
    rows = [head, *(line for line in body.splitlines() if line.endswith(r"\\"))]
    assert len(rows) == len(BAD) + 2
    assert all(len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1 for row in rows)
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"$\tau$", r"$\gamma$"))
    assert r"a\_b" in text and r"R\&D" in text and r"cost \$" in text and r"x\textbar{}y" in text
    cited = {key for keys in re.findall(r"\\cite\{(.*?)\}", text) for key in keys.split(",")}
    assert cited == set(cited_keys(hostile[0]))


def test_markdown_has_as_many_cells_in_every_row(hostile: tuple[Record, Dataset]) -> None:
    text = publication_text(hostile[0], "md", hostile[1])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == len(BAD) + 3
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert r"x\|y" in text and "## Methods" in text and "<https://doi.org/10.1214/15-AOS1388>" in text


def test_csv_has_the_names_of_the_data(hostile: tuple[Record, Dataset]) -> None:
    record, rows = hostile
    head, *lines = csv.reader(io.StringIO(publication_text(record, "csv", rows)))
    assert tuple(head) == make_publication(record, rows).table.head
    assert [line[0] for line in lines] == [*BAD[:-1], f"'{BAD[-1]}", "(intercept)"]  # no formula for a spreadsheet
    assert all(
        float(line[1]) == pytest.approx(record.coefficients[line[0].lstrip("'")], rel=0.05) for line in lines[:-1]
    )


def test_a_feature_named_tau_keeps_its_name() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2))
    rows = Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.normal(size=40), ["tau", "gamma"])
    text = publication_text(cross_validate(rows, "5", gammas=[0.1], taus=[1], force_in="tau", threads=1), "md")
    assert "| tau |" in text and "with tau" in text


def test_the_methods_follow_the_request(record: Record, simplest: Record) -> None:
    text = publication_text(simplest, "md", data())
    for words in ("5 random folds (seed 0)", "3 sizes τ from 1 to 3", "3 ridge weights", "one standard error",
                  "columns that were centred and scaled to length 1", "sparsecv-mio"):  # fmt: skip
        assert words in text
    assert "breiman1984" in cited_keys(simplest) and "breiman1984" not in cited_keys(record)
    outer = replace(record, nested=Nested(record.folds, 2.5, 0.1, 25.0, ()))
    assert "varma2006" in cited_keys(outer) and "nested" in publication_text(outer, "md")


def test_draws_add_their_columns_and_sentences(record: Record) -> None:
    names = record.support
    models = [
        ChosenModel(i, record.gamma, len(some), some, {name: 1.0 + i for name in some}, 0.0, "proved", 0.0, 1.0)
        for i, some in enumerate([names, names, names, names[:1]] * 5)
    ]
    plan = DrawPlan(25, 7, "rows", record.data.n, False, 1e-4, truncated=1)
    drawn = replace(
        record,
        bootstrap=summarise_bootstrap(record, Bootstrap(plan, 0.9, 0, (), (), (), tuple(models))),
        stability_selection=summarise_stability_selection(
            record, data(), StabilitySelection(plan, 0.75, 0, 0.0, 0, 0.0, (), 0, (), tuple(models))
        ),
    )
    made = make_publication(drawn)
    assert made.table.head[-3:] == ("Inclusion", "90% bootstrap interval", "Halves")
    cells = {name: row[-3:] for name, *row in made.table.rows}
    assert cells[names[0]][0] == "100%" and cells[names[1]][0] == "75%" and cells[names[1]][2] == "75%"
    low, high = np.quantile([0.0 if i % 4 == 3 else 1.0 + i for i in range(20)], [0.05, 0.95])
    assert [float(end) for end in cells[names[1]][1].split(" to ")] == pytest.approx([low, high], rel=0.01)
    assert made.methods.count("truncated the search of 1 further draw, which is left out") == 2
    (line,) = [line for line in summarise_draws(drawn)[0].lines if "1 more draw, truncated by the time limit" in line]
    assert line.endswith("completes more draws; --draw-file FILE keeps finished draws for the next run")
    assert "(25 were requested)" in made.results and "chosen in 15 draws" in made.results
    assert "Stability selection selected" in made.results and "10 complementary pairs" in made.methods
    assert {"efron1993", "shah2013"} <= set(cited_keys(drawn)) and "efron1993" not in cited_keys(record)
    halves = drawn.stability_selection
    said = r"at most ([\d.]+) of the selected terms .* probability of at most ([\d.]+), as by chance;"
    bound, probability = map(float, re.findall(said, made.results)[0])
    assert halves is not None and probability <= halves.mean_size / halves.n_features and bound >= halves.bound


def test_sentences_on_draws_state_ties_and_conditions(record: Record) -> None:
    name, *_ = record.support
    model = ChosenModel(0, record.gamma, 1, (name,), {name: 1.0}, 0.0, "proved", 0.0, 1.0)
    plan = DrawPlan(4, 7, "rows", record.data.n, False, 1e-4)

    def draw(*taus: int) -> Record:
        models = tuple(replace(model, draw=i, tau=tau) for i, tau in enumerate(taus))
        own = replace(plan, requested=len(taus))
        halves = StabilitySelection(own, 0.75, 0, 0.0, 0, 0.0, (), 0, (), models)
        restricted = replace(record.request, restrictions=Restrictions(adjust=(name,)))
        return replace(
            replace(record, request=restricted),
            bootstrap=summarise_bootstrap(record, Bootstrap(own, 0.9, 0, (), (), (), models)),
            stability_selection=summarise_stability_selection(record, data(), halves),
        )

    assert "was 1 to 3, most often 1 or 3 (50% each);" in make_publication(draw(1, 1, 3, 3)).results
    assert "was 1 to 2, most often 1 (75%);" in make_publication(draw(1, 1, 1, 2)).results
    results = make_publication(draw(1, 1, 1, 1)).results
    assert "τ was always 1;" in results and "If the rows are independent, at most " in results
    assert "as an estimate of its expectation" in results
    boot, halves = summarise_draws(draw(1, 1))
    assert halves.tables[0].rows[0] == (name, "2", "forced") and halves.lines[0].startswith("2 halves of")
    assert boot.lines[0].startswith("2 bootstrap draws of")
    assert summarise_draws(draw(1))[0].lines[:1] == [
        f"1 bootstrap draw of {record.data.n} rows (seed 7), each searched again"
    ]


def test_few_draws_have_no_percentiles(record: Record) -> None:
    model = ChosenModel(0, record.gamma, record.tau, record.support, dict(record.coefficients), 0.0, "proved", 0.0, 1.0)
    plan = DrawPlan(40, 7, "rows", record.data.n, False, 1e-4)
    for n_draws in (39, 40):
        models = tuple(replace(model, draw=i) for i in range(n_draws))
        drawn = replace(record, bootstrap=summarise_bootstrap(record, Bootstrap(plan, 0.95, 0, (), (), (), models)))
        made, (summary,) = make_publication(drawn), summarise_draws(drawn)
        assert ("95% bootstrap interval" in made.table.head) == (n_draws == 40)
        assert ("require at least 40 draws" in made.notes) == (n_draws == 39)
        assert any("they require at least 40 draws" in line for line in summary.lines) == (n_draws == 39)
        assert ("zeros" in summary.tables[0].head) == (n_draws == 40)


def test_baselines_add_sentences(record: Record) -> None:
    errors = {"lasso": 1.25 * record.cv_error, "abess": record.cv_error}
    methods = [
        Baseline(name, error, error - record.cv_error, 0.5, None, None, record.support, {}, 0.0, 0.1,
                 100.0 * (1.0 - record.lower / error), ())
        for name, error in errors.items()
    ]  # fmt: skip
    drawn = replace(record, baselines=Baselines(tuple(methods), {"scikit-learn": "1.7.0"}))
    made = make_publication(drawn)
    assert "On the 5 folds that chose the model, we fitted lasso, abess" in made.methods
    assert made.results.count("which favours methods with many candidates; nested CV errors were not compared") == 1
    assert "scikit-learn 1.7.0" in made.methods
    assert "The CV error of lasso is" in made.results and "above that of the reported pair" in made.results
    assert re.search("Certified over the grid: no CV error of best-subset selection is more than 2[01]%", made.results)
    assert "lasso, abess, each with the penalty or size of its smallest CV error" in made.methods
    for one, chosen in zip(methods, ("penalty", "size"), strict=True):
        alone = replace(record, baselines=Baselines((one,), {"scikit-learn": "1.7.0"}))
        assert f"we fitted {one.method} with the {chosen} of the smallest CV error" in make_publication(alone).methods
    assert {"tibshirani1996", "zhu2020", "pedregosa2011"} <= set(cited_keys(drawn))
    assert "lasso" not in make_publication(record).methods


def test_requested_draws_without_results_are_stated(record: Record) -> None:
    warning = "infer: the time limit was reached after 0 of 20 draws; give a longer time limit"
    stopped = replace(record, warnings=(warning, "x: y"))
    stated = "The requested tests by random splits gave no results: the time limit was reached after 0 of 20 draws."
    assert stated in make_publication(stopped).methods and "gave no results" not in make_publication(record).methods
    for brief in (True, False):
        console = Console(width=200, record=True, file=io.StringIO())
        print_draws(console, stopped, brief, full=False)
        assert console.export_text().strip() == ("infer: no results; the time limit was reached after 0 of 20 draws")


def test_tests_by_splits_add_columns(record: Record) -> None:
    first, second = record.support[:2]
    terms = (
        TermInference(first, 4, 0.0004, 1.0, -0.5, 2.0),
        TermInference(second, 3, 0.2, 1.0, None, None, is_empty=True),
        TermInference("other", 3, 0.04, 1.0, None, None),
    )
    notes = ["", "", "", "the rows are separated; merge a level"]
    splits = tuple(
        SplitResult(i, record.gamma, 2, (first, second), "proved", 0.0, note=note) for i, note in enumerate(notes)
    )
    plan = DrawPlan(5, 7, "rows", record.data.n, False, 1e-4)
    drawn = replace(record, inference=Inference(plan, 0.95, splits, terms))
    made = make_publication(drawn)
    assert made.table.head[-3:] == ("Split estimate", "95% split interval", "p")
    cells = {name: row[-3:] for name, *row in made.table.rows}
    decimals = find_decimals(max(2.5, 1e-3 * abs(record.coefficients[first])), False)  # those of the interval's width
    expected = [f"{value:.{decimals}f}" for value in (1.0, -0.5, 2.0)]
    assert cells[first] == [expected[0], " to ".join(expected[1:]), "<0.001"]
    assert cells[second] == [format_estimate(1.0, record.coefficients[second]), "empty", "0.200"]
    (estimate,) = [row[1] for row in made.table.rows if row[0] == first]
    assert estimate == f"{record.coefficients[first]:.{decimals}f}"
    assert "Split estimate: median over the splits of the unpenalised coefficient" in made.notes
    assert all(cells[name] == ["", "", "1.000"] for name in record.support[2:])
    assert cells["(intercept)"] == ["", "", ""]
    assert f"are {first} (p < 0.001), other (p = 0.040, not in the reported model); 4 of the 4" in made.results
    assert "1 of the 4 halves tested no term (the rows are separated)." in made.results
    failed = [SplitResult(i, None, 0, (), "failed", math.inf, note=f"adjust: {i}; drop it") for i in (4, 5)]
    partly = replace(drawn, inference=replace(drawn.inference, splits=(*splits, *failed)))
    shown, (summary,) = make_publication(partly), summarise_draws(partly)
    assert "4 of the 4 models that halves chose are certified. A large p-value" in shown.results
    assert " 2 of the 6 halves chose no model and" in shown.results
    assert "(first reason: the rows are separated). Their p-values count as 1, which is conserv" in shown.results
    assert "No model could be chosen from 2 of the 6 halves: the p-values of these splits count as 1" in shown.methods
    assert "6 random splits (2 without a model count as p = 1)" in shown.notes
    assert "choice certified (gap <= 1e-4) in 4 of 4 searches with a model (100%)" in summary.lines
    assert any(
        "2 of the 6 halves chose no model and 1 of the 6 halves tested no term" in line for line in summary.lines
    )
    per_deviation = dict(zip(data().names, data().X.std(axis=0, ddof=1), strict=True))[first]
    table = make_publication(drawn, data()).table
    row = next(row for row in table.rows if row[0] == first)
    ends = [float(end) for end in row[table.head.index("95% split interval, 1 SD")].split(" to ")]
    decimals = find_decimals(per_deviation * max(2.5, 1e-3 * abs(record.coefficients[first])), False)
    unit = 10.0**-decimals if decimals else 1.0
    assert -0.5 * per_deviation - unit < ends[0] <= -0.5 * per_deviation < 2.0 * per_deviation <= ends[1]
    assert ends[1] < 2.0 * per_deviation + unit
    assert "come from 4 splits and depend strongly on the seed" in made.results
    assert "A large p-value does not show that a term has no effect." in made.results
    assert all("need not represent all draws" in text for text in (made.results, made.notes))
    assert any("so the finished ones need not represent all draws" in line for line in summarise_draws(drawn)[0].lines)
    broken = [replace(split, note="too few rows", tests=()) for split in splits]
    none = replace(drawn, inference=replace(drawn.inference, splits=(*broken, *failed), terms=()))
    said = "he tests failed in 6 of 6 halves, so they give no result"
    assert said in make_publication(none).results and "has a combined p-value" not in make_publication(none).results
    assert f"t{said}" in summarise_draws(none)[0].lines and "of at most 0.05" not in " ".join(
        summarise_draws(none)[0].lines
    )
    many = replace(drawn, inference=replace(drawn.inference, splits=splits * 5))
    assert "depend strongly" not in make_publication(many).results
    assert [any("caution" in line for line in summarise_draws(one)[0].lines) for one in (drawn, many)] == [True, False]
    assert "4 random splits (of 5 requested)" in made.methods and {"meinshausen2009", "dezeure2015", "bell2002"} <= set(
        cited_keys(drawn)
    )


def test_a_factor_has_its_own_row_and_its_levels_have_no_effect_of_a_deviation() -> None:
    rng, level = np.random.default_rng(1), np.arange(60) % 3
    names, x, sex = ["city=a", "city=b", "city=c", "x", "sex"], rng.normal(size=60), rng.integers(0, 2, 60)
    X = np.column_stack([np.eye(3)[level], x, sex]).astype(float)
    given = Dataset.from_arrays(X, 3.0 * level + x + sex + 0.1 * rng.normal(size=60), names)
    record = sc.solve(given, folds="5", gammas=0.1, taus=3, count="factors", threads=1)
    assert set(record.support) == set(names)
    plan, split = DrawPlan(2, 7, "rows", 60, False, 1e-4), SplitResult(0, 0.1, 3, tuple(names), "proved", 0.0)
    terms = TermInference("city", 1, 0.5, None, None, None), TermInference("x", 1, 0.01, 1.0, 0.5, 2.0)
    drawn = replace(record, inference=Inference(plan, 0.95, (split,), terms))
    for reference in ((), ("city=b",)):
        made = make_publication(replace(drawn, request=replace(record.request, reference=reference)), given)
        cells = {name: dict(zip(made.table.head[1:], row, strict=True)) for name, *row in made.table.rows}
        assert list(cells) == ["city", *names, "(intercept)"]
        assert [cells[name]["p"] for name in ("city", *names)] == ["0.500", "", "", "", "0.010", "1.000"]
        assert [bool(cells[name]["Effect of 1 SD"]) for name in ("city", *names)] == [*[False] * 4, True, True]
        assert (
            "`" not in made.notes
            and "the record" not in made.notes
            and "target y and 3 candidate terms (city, x, sex)" in made.methods
        )
        assert cells["city"]["Estimate"] == "" and "; not given for levels of factors." in made.notes
        assert "For a term with values 0 and 1 that is not a level of a factor, the estimate" in made.notes


def test_trials_are_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=list("ab")).assign(n=rng.integers(1, 9, 30))
    frame["k"] = rng.binomial(frame["n"], 1.0 / (1.0 + np.exp(-frame["a"])))
    record = sc.solve(frame, "k", loss="logistic", trials="n", folds="4", gammas=[0.1], taus=[1], threads=1)
    file = tmp_path / "a.md"
    record.write_report(file, frame, style="publication")
    text = file.read_text(encoding="utf-8")
    assert f"Each row had k successes in n trials, in total {frame['k'].sum()} of {frame['n'].sum()}." in text
    assert "scaled to length 1, with rows weighted by the number of trials, with scales from all rows" in text
    assert "The data had 30 rows, the target k" in text and "over all 30 rows (divisor n − 1, unweighted)" in text
    assert (
        f"with k successes in n trials: the model with τ = 1 and γ = 0.100, refitted to all {frame['n'].sum()}" in text
    )


def test_preprocessing_is_stated(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).assign(sex=["f", "m"] * 20)
    frame["y"] = frame["a"] + rng.normal(size=40)
    asked = {"folds": "4", "gammas": [0.1], "taus": [2], "threads": 1}
    plain = make_publication(sc.solve(frame.drop(columns="sex"), "y", **asked)).methods
    assert "No values were missing." in plain and "encoded" not in plain
    frame.loc[2, "b"] = np.nan
    file = tmp_path / "rows.csv"
    frame.to_csv(file, index=False)
    dropped = make_publication(sc.solve(file, "y", na="drop", encode="onehot", **asked)).methods
    assert (
        "We dropped 1 row with a missing value of the target or of a feature." in dropped
        and "We encoded 1 text column as 0/1" in dropped
    )
    imputed = sc.solve(file, "y", na="mean", drop=["sex"], force_in="b", **asked)
    made = make_publication(imputed)
    assert "We imputed missing values of 1 column by the mean of all rows" in made.methods
    for record, procedure in (
        (imputed, "the procedure except the imputation (which used all rows)"),
        (sc.solve(frame.drop(columns="sex").dropna(), "y", **asked), "the whole procedure"),
    ):
        outer = make_publication(replace(record, nested=Nested(record.folds, 2.5, 0.1, 25.0, ())))
        assert f": {procedure} was repeated with each outer fold held out" in outer.methods
        assert f"The nested CV error of {procedure}, over" in outer.results
    drawn = replace(
        imputed,
        bootstrap=summarise_bootstrap(
            imputed,
            Bootstrap(
                plan := DrawPlan(1, 7, "rows", 40, False, 1e-4),
                0.95,
                0,
                (),
                (),
                (),
                (ChosenModel(0, 0.1, 2, imputed.support, dict(imputed.coefficients), 0.0, "proved", 0.0, 1.0),),
            ),
        ),
        inference=Inference(plan, 0.95, (SplitResult(0, 0.1, 2, imputed.support, "proved", 0.0),), ()),
    )
    text = make_publication(drawn).methods  # each draw imputes from its own rows
    assert "The whole procedure, including the imputation, was repeated on 1 bootstrap draw" in text
    assert "one half chose a model by the whole procedure, including the imputation, and the other half" in text
    assert "The tests used values imputed from all rows." in text and "which used all rows" not in text
    with_data = make_publication(imputed, sc.read_dataset(file, "y", na="mean", drop=["sex"])).methods
    assert "We imputed 1 missing value of b (1) by the mean of all rows" in with_data
    frame["sex"] = ["f", "m", "x", None] * 10
    frame["y"] = frame["y"].astype(object)
    frame.loc[3, "y"] = "<50"
    frame.to_csv(file, index=False)
    coded = sc.solve(file, "y", na="mean", encode="onehot", na_values="<50", adjust="c", **asked)
    text = make_publication(coded).methods
    assert "In all columns, '<50' counted as missing. We dropped 1 row" in text
    assert "6 candidate terms (a, b, sex=f, sex=m, sex=x, sex=(missing))." in text
    unpenalised = "Estimates, except those of terms that were adjusted for, without penalty, are shrunk by"
    assert unpenalised in make_publication(coded).notes
    assert "counted as missing" not in made.methods
    assert "We dropped 1 row without a value of the target." in text
    assert "Missing values of sex were a level of their own, (missing)." in text
    assert "No values were missing" not in made.methods + dropped
    assert next(row for row in made.table.rows if row[0] == "b")[-1] == "forced"


def test_codes_are_those_of_terms_of_the_table() -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"a": rng.normal(size=40), "statin": ["no", "yes"] * 20})
    frame["y"] = frame["a"] + rng.normal(size=40)
    for name in ("a", "statin"):
        record = sc.solve(frame, "y", encode="onehot", force_in=name, folds="4", gammas=[0.1], taus=[1], threads=1)
        assert ("Codes of statin: no = 0, yes = 1." in make_publication(record).notes) == (name == "statin")


def test_references_agree_with_the_citation_file() -> None:
    ours, paper = find_references()
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for name in ("title", "url", "year", "version"):
        assert ours.fields[name] in cited
    assert paper.fields["title"] in cited and paper.fields["url"] in cited
    assert ours.bibtex in (ROOT / "README.md").read_text(encoding="utf-8")
    older = find_references(version="0.2.0")[0]
    assert "year" not in older.fields and "version = {0.2.0}" in older.bibtex


def test_every_entry_of_the_bibliography_is_complete() -> None:
    keys = re.findall(r"@\w+\{(\w+),", (ROOT / "sparsecv_mio/report/references.bib").read_text(encoding="utf-8"))
    text = bibliography(find_references(keys))
    assert len(set(keys)) == len(keys) > 10 and text.count("{") == text.count("}")
    for reference in find_references(keys):
        assert {"author", "title", "year"} <= set(reference.fields), reference.key
        assert reference.to_text().startswith(reference.short_name.split()[0])


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(INSTANCES / "prostate.csv")
    file = tmp_path / "answer.json"
    record = sc.solve(table, "lpsa", gammas=[0.1, 1.0], taus="1:3")
    record.write_record(file)
    for name in ("a.tex", "a.csv", "a.md"):
        out = tmp_path / name
        assert run(["report", str(file), "--style", "publication", "--data", table, "-o", str(out)]) == 0
        written = out.read_text(encoding="utf-8")
        assert "lcavol" in written and ("of~1~SD" if name == "a.tex" else "Effect of 1 SD") in written
        record.write_report(out, table, style="publication")
        assert out.read_text(encoding="utf-8") == written
    assert run(["report", str(file), "--style", "publication"]) == 0 and (tmp_path / "answer.md").exists()
    capsys.readouterr()
    assert run(["report", str(file), "--style", "publication", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("**Table.** Best-subset ridge regression of lpsa")
    assert run(["cite"]) == 0 and capsys.readouterr().out.startswith("@software{sparsecv_mio,")
    assert run(["cite", str(file)]) == 0 and "@article{stone1974," in capsys.readouterr().out
    for arguments, words in (
        (["report", str(file), "-o", str(tmp_path / "b.csv")], ".csv needs style publication"),
        (
            ["report", str(file), "--style", "publication", "-o", str(tmp_path / "b.html")],
            "must end in .tex or .csv or .md",
        ),
        (["report", str(file), "--style", "paper"], "unknown word 'paper'"),
        (["cite", table], "not a JSON file"),
    ):
        assert run(arguments) == 2
        told = capsys.readouterr().err
        assert words in told and told.count("\n") == 1


def test_other_records_have_no_table_for_a_paper(tmp_path: Path) -> None:
    path = sc.best_subsets(data(), gammas=[0.1], taus=[1, 2])
    with pytest.raises(BadInput, match="needs a record of `solve`"):
        path.write_report(tmp_path / "a.tex", style="publication")
    assert cited_keys(path)[0] == "sparsecv_mio"


def test_codes_of_two_words_and_levels_that_count_alone_are_stated() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=40), "city": np.array(["u", "v", "w"])[np.arange(40) % 3]})
    frame["status"] = np.where(frame["a"] + rng.normal(size=40) > 0.0, "died", "alive")
    record = sc.solve(frame, "status", encode="onehot", folds="4", gammas=[0.1], taus=[2], threads=1)
    made = make_publication(record)
    assert "The values of the target were coded as alive = 0, died = 1." in made.methods
    assert "Codes of status: alive = 0, died = 1." in made.notes
    assert code_lines(record) == ["codes of status: alive = 0, died = 1"]
    assert "Each level of city counts as a feature." in made.methods and "restricted" not in made.methods
    logistic = sc.solve(frame, "status", encode="onehot", loss="logistic", folds="4", gammas=[0.1], taus=[2], threads=1)
    assert "alive = 0" not in str(make_publication(logistic)) and code_lines(logistic) == []
    limited = sc.solve(frame, "status", encode="onehot", force_in="a", folds="4", gammas=[0.1], taus=[2], threads=1)
    assert (
        "The models were restricted: every model with a; each level of city counts" in make_publication(limited).methods
    )
    asked = {"folds": "4", "gammas": [0.1], "taus": [2], "threads": 1}
    whole = sc.solve(frame, "status", encode="onehot", force_in="city", count="factors", **asked)
    said = "The models were restricted: every model with city; all levels of a factor enter together and count as one"
    assert said in make_publication(whole).methods
    ranked = make_publication(sc.solve(frame, "status", order="city=u<v<w", encode="onehot", **asked)).methods
    assert "We encoded city by ranks." in ranked


def test_texts_have_paragraphs_on_data_model_choice_and_results(record: Record) -> None:
    made = make_publication(record, data())
    methods, results = made.methods.splitlines(), made.results.splitlines()
    assert [paragraph.split(" ")[:2] for paragraph in methods[:3]] == [["The", "data"], ["We", "fitted"], ["τ", "and"]]
    assert methods[-1].startswith("Computations used sparsecv-mio")
    assert results[0].startswith("The reported pair is") and results[1].startswith("The CV error of this pair")
    assert all(paragraph.endswith(".") for paragraph in (*methods, *results))
    mixed = replace(record, coefficients={"a": 1.0, "b": 0.5, "c": -2.0}, support=("a", "b", "c"))
    said = "The model of the table has positive coefficients for a, b and a negative coefficient for c."
    assert said in make_publication(mixed).results
    assert made.to_markdown("p <0.001\nx<a> < b") == "p <0.001\n\nx\\<a\\> < b"

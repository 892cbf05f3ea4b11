"""What a report says is what the record says."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import sparsecv_mio as sc
from sparsecv_mio.certificate.parts import ReadingInfo
from sparsecv_mio.certificate.records import Nested, Record
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.digits import format_interval, format_lower, format_number, several
from sparsecv_mio.errors import SparseCVWarning
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.report.document import Commands, Document, Facts, ReportTable, Sentences
from sparsecv_mio.report.fit_tables import print_fit
from sparsecv_mio.report.record_report import open_sentences, proved_sentences, report_of, report_text
from sparsecv_mio.report.record_tables import print_common, print_near_optimal
from sparsecv_mio.search.api import cross_validate, held_out_predictions, solve

from .printing import data, printed


def facts(document: Document) -> dict[str, str]:
    return dict(pair for section in document.sections for block in section.blocks if isinstance(block, Facts)
                for pair in block.pairs)  # fmt: skip


def tables(document: Document) -> list[ReportTable]:
    return [block for section in document.sections for block in section.blocks if isinstance(block, ReportTable)]


def test_the_numbers_are_those_of_the_record(record: Record) -> None:
    document = report_of(record, data=data())
    said = facts(document)
    error = data().y - held_out_predictions(record, data(), "5")
    assert said["CV error (mean squared error)"] == format_number(record.cv_error)
    assert float(said["RMSE, the square root of the CV error"]) == pytest.approx(math.sqrt(np.mean(error**2)), rel=1e-5)
    assert float(said["MAE of held-out rows"]) == pytest.approx(np.mean(np.abs(error)), rel=1e-5)
    assert float(said["R^2 of held-out rows"]) == pytest.approx(1.0 - np.mean(error**2) / np.var(data().y), abs=1e-4)
    assert said["fingerprint"] == record.data.fingerprint and said["digest"] == record.folds.digest
    assert {pair[0] for pair in record.versions.items()} < set(said)
    assert said["penalty"] == "for columns divided by their length" and said["intercept"].startswith("fitted in each")
    assert said["order of the search (--method)"] == record.request.method_used and "method" not in said


def test_hints_that_python_stored_as_warnings_are_printed_once() -> None:
    with pytest.warns(SparseCVWarning, match="the best tau is the largest of the grid"):
        record = solve(data(), folds="5", gammas=[0.1, 1.0], taus=[1, 2])
    other = "3 of 9 rows with weight 0 in 'w' dropped"
    text = report_text(dataclasses.replace(record, warnings=(*record.warnings, other)), "md", "R", None, "D")
    assert text.count("the best tau is the largest of the grid") == text.count(other) == 1


@pytest.mark.parametrize("upper", [0.60482171453, 83.76591443, 26227614.2])
def test_certified_sentences_are_true_of_the_rounded_numbers(record: Record, upper: float) -> None:
    rounded = dataclasses.replace(record, lower=upper * (1.0 - 1e-4), upper=upper)
    numbers = [float(re.findall(r" ([\d.]+)\.$", words)[0]) for words in proved_sentences(rounded)[:2]]
    assert numbers[0] <= rounded.lower and numbers[1] >= rounded.upper
    assert numbers == pytest.approx([rounded.lower, rounded.upper], rel=1e-4)


def test_every_command_counts_terms_where_factors_count_as_one() -> None:
    rng, level = np.random.default_rng(1), np.arange(60) % 3
    X = np.column_stack([np.eye(3)[level], rng.normal(size=(60, 2))])
    y, names = 3.0 * level + X[:, 3] + 0.1 * rng.normal(size=60), ["c=a", "c=b", "c=c", "x", "z"]
    given = sc.Dataset.from_arrays(X, y, names=names)
    record = solve(given, folds="5", gammas=0.1, taus=2, count="factors", threads=1)
    record = sc.bootstrap(record, given, draws=12, level=0.8, threads=1)
    fit = fit_one(given, tau=2, gamma=0.1, side=SideOptions(count="factors"))
    path = best_subsets(given, gammas=0.1, taus=[1, 2], count="factors")
    common = best_common_subset(given, "5", gammas=0.1, taus=2, count="factors")
    near = near_optimal(given, "5", gamma=0.1, taus=[2], within=0.5, count="factors")
    for shown, words in (
        (record, "tau = 2 terms, gamma = 0.1: predicts"), (record, "best subset of at most 2 terms"),
        (record, "Draws that choose exactly the terms of the reported model: "),
        (record, "0 in draws without its term"),
        (record, "| term or level | draws | frequency |"),
        (record, "| term | coefficient, in units of y per unit of the t"), (record, "\n| c, x | 12 |"),
        (record, "probabilities that a term belongs in"),
        (common, "2 terms common to all folds"), (path, "the best subsets of 1 to 2 terms"),
        (fit, "the best subset of 2 terms on all rows"),
    ):  # fmt: skip
        text = report_text(shown, "md", "R", None, "D")
        assert words in text and ("terms, tau" in text or shown in (fit, path))
    assert "60 rows, 3 terms, 5 folds" in record.summary()
    assert "tau = 2 terms, gamma" in printed(lambda console: print_fit(console, fit), 200)
    text = printed(lambda console: print_near_optimal(console, near), 200)
    assert "\n2 terms: 1 model, " in text and "hint" not in text
    near = near_optimal(given, "5", gamma=0.1, taus=[3], count="factors")
    hint = "hint: a model of all 3 terms has no alternatives; --tau 1,2 lists others"
    assert hint in printed(lambda console: print_near_optimal(console, near), 200)
    assert record.plot_cv_error(Figure().subplots()).get_xlabel() == "tau (terms)"
    assert path.plot_coefficients(Figure().subplots()).get_xlabel() == "tau (terms)"


def test_the_target_is_not_a_text_column_of_the_features(tmp_path: Path) -> None:
    table = tmp_path / "d.csv"
    rows = [f"{'uvw'[k % 3]},{'mf'[k % 2]},{k * k % 7},{['no', 'yes'][k * k * k % 5 > 1]}" for k in range(40)]
    table.write_text("\n".join(["arm,sex,a,ill", *rows]) + "\n", encoding="utf-8")
    record = solve(table, "ill", loss="logistic", encode="onehot", folds=3, gammas=1.0, taus=1)
    assert "2 text columns encoded as onehot" in report_text(record, "md", "R", None, "D")


def test_restrictions_and_nested_errors_are_said() -> None:
    found = cross_validate(data(), "4", gammas=0.1, taus=[1, 2], force_in="b")
    assert facts(report_of(found))["force in"] == "b" and facts(report_of(found))["models compared"] == "with b"
    words = "\n".join(proved_sentences(found))
    assert f"The full-data model uses the best subset of at most {found.tau} features within the restrictions" in words
    assert "Models compared: with b." in words
    outer = Nested(found.folds, 2.5, 0.1, 25.0, ())
    with_it = dataclasses.replace(found, nested=outer)
    nested = report_of(with_it)
    assert "nested CV error, 2.5," in open_sentences(with_it)[-1] and "nested CV error 2.5" in repr(with_it)
    assert "nested" not in repr(found) + open_sentences(found)[-1]
    said = [line for section in nested.sections for block in section.blocks if isinstance(block, Sentences)
            for line in block.lines]  # fmt: skip
    assert any("ested CV error of the whole procedure" in line and "2.5, standard error 0.1" in line for line in said)
    assert any("25.0% larger than the CV error" in line for line in said)
    signed = cross_validate(data(), "4", gammas=0.1, taus=2, force_in="b", nonnegative="b")
    assert "if a sign constraint sets its coefficient to 0" in tables(report_of(signed))[0].caption
    assert "sign constraint" not in tables(report_of(found))[0].caption


def test_a_subset_that_all_folds_share_has_a_page() -> None:
    found = best_common_subset(data(), "4", gammas=[0.1, 1.0], taus=[1, 2], gap=0.0)
    document = report_of(found, data=data())
    said, (model, by_tau, every) = facts(document), tables(document)
    assert said["CV error (mean squared error) of one subset for all folds"] == format_number(found.cv_error)
    assert (
        said["minimum CV error over all subsets, the same in every fold, of the requested sizes and gammas"]
        == f"in {format_interval(found.lower, found.upper)} (certified)"
    )
    assert [row[0] for row in model.rows] == [*found.coefficients, "(intercept)"]
    assert len(by_tau.rows) == 2 and len(every.rows) == 4 and by_tau.chosen == found.tau - 1
    lines = [line for section in document.sections for block in section.blocks if isinstance(block, Sentences)
             for line in block.lines]  # fmt: skip
    assert any(
        line.startswith("At these sizes and gammas, no common subset") and format_lower(found.lower) in line
        for line in lines
    )
    assert f"{found.tau} feature" in document.answer and "common to all folds" in document.answer
    duration = f"{several(found.work.nodes, 'node')}, search ended after {found.work.seconds:.2f} s"
    screen = printed(lambda console: print_common(console, found), 200)
    assert said["work"] == duration and f"work: {duration}" in screen


def test_how_the_file_was_read_is_said(record: Record) -> None:
    read = ReadingInfo(";", ",", None, "latin-1", True, None, "drop", "error", ("a",), {}, {}, 1)
    said = facts(report_of(dataclasses.replace(record, data=dataclasses.replace(record.data, reading=read))))
    parts = "missing values: drop, 1 row dropped, separator ';', decimal mark ',', encoding latin-1"
    assert said["read with"] == parts


def test_what_is_proved_and_what_not(record: Record) -> None:
    assert record.status == "proved" and any("has the minimum CV error" in line for line in proved_sentences(record))
    assert len(open_sentences(record)) == 1 and "error on new rows" in open_sentences(record)[0]
    open_row = {"folds_decided": 0, "status": "open", "estimate": True, "lower": 0.0, "upper": math.inf}
    rows = tuple(dataclasses.replace(row, **open_row) for row in record.table)  # type: ignore[arg-type]
    cut = dataclasses.replace(
        record, status="limit", estimate=True, lower=0.0, upper=math.inf, table=rows, region=None,
        refit=dataclasses.replace(record.refit, proved=False),
    )  # fmt: skip
    said, unsaid = " ".join(proved_sentences(cut)), " ".join(open_sentences(cut))
    assert "No CV error" not in said and "at most" not in said and "has the minimum" not in said
    estimate = "no fold is solved yet"
    for words in (
        "has the minimum CV error",
        estimate,
        "is known yet",
        "8 other pairs are not excluded",
        "full-data model",
    ):
        assert words in unsaid
    total = sum(row.folds for row in record.table)
    assert said == f"No bound yet: none of {total:,} subproblems is solved."


def test_how_to_verify_is_a_command_that_works_or_python(record: Record) -> None:
    def commands(document: Document) -> list[str]:
        return [line for section in document.sections for block in section.blocks if isinstance(block, Commands)
                for line in block.lines]  # fmt: skip

    assert commands(report_of(record, "my answer.json", None, "x.csv")) == ["sparsecv verify 'my answer.json' x.csv"]
    labels = np.arange(data().n) % 4
    of_labels = cross_validate(data(), labels, gammas=0.1, taus=1)
    assert "sc.verify(" in commands(report_of(of_labels))[-1] and "folds" in commands(report_of(of_labels))[-1]
    assert make_folds("5", data()).digest == record.folds.digest


def test_how_to_verify_is_about_the_loss_of_the_record(record: Record) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    rows = sc.Dataset.from_arrays(X, (X[:, 0] + rng.normal(size=40) > 0.0).astype(float))
    logistic = sc.solve(rows, loss="logistic", folds="4", gammas=[0.1], taus=[1], threads=1)
    squared, classes = (report_text(one, "md", "r.json", None, "d.csv") for one in (record, logistic))
    assert "every subset at every pair" in squared and "branch and bound that subsets are optimal" not in squared
    assert "every subset at every pair" not in classes and "at most 20,000 fits" in classes


def test_the_pair_of_a_rule_is_not_said_to_be_minimised() -> None:
    for rule, words in (
        (False, "the CV error was minimised over the grid"),
        (True, "standard-error rule chose the pa"),
    ):
        record = cross_validate(data(), "5", gammas=[0.01, 1.0], taus=[1, 2, 3], one_se=rule)
        assert (record.least is not None) == rule
        assert words in open_sentences(record)[-1]
        assert facts(report_of(record))["folds"] == "5 random folds (seed 0)"

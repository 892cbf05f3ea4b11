"""What is printed: no number cut at any width, estimates marked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from repository import INSTANCES

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.certificate.accuracy import FitQuality
from sparsecv_mio.certificate.parts import FoldInfo
from sparsecv_mio.certificate.records import Nested, Record, TableRow
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.digits import format_interval, format_number
from sparsecv_mio.report.before_search import print_bounds
from sparsecv_mio.report.layout import pair
from sparsecv_mio.report.record_report import proved_sentences
from sparsecv_mio.report.record_tables import describe_model_space, error_lines, print_answer
from sparsecv_mio.report.record_words import data_line, hints
from sparsecv_mio.report.size_rows import words_of_gamma
from sparsecv_mio.search.api import solve

from .printing import check, data, printed


def test_no_number_is_cut(record: Record) -> None:
    check(lambda console: print_answer(console, record))
    table = compute_bounds(standardize(data()), make_folds("5", data()), (0.1, 1.0), (1, 2, 3), threads=1)
    check(lambda console: print_bounds(console, table))
    check(lambda console: print_bounds(console, table, full=True))


def test_all_is_about_the_pair_that_the_rule_chose(simplest: Record) -> None:
    least = simplest.least
    assert least is not None and simplest.one_se is not None
    lines = printed(lambda console: print_answer(console, simplest), 200).splitlines()
    minimum = f"{pair(least.tau, least.gamma)}, CV error {format_number(least.cv_error)}"
    assert lines[0] == f"pair with the minimum CV error over the grid (certified, gap <= 1e-4): {minimum}"
    assert lines[1] == f"reported by the one-standard-error rule (certified): {pair(simplest.tau, simplest.gamma)}"
    assert lines[2] == data_line(simplest) and lines[2].startswith(f"{simplest.data.n} rows; ")
    assert lines[3].startswith(f"CV error {format_number(simplest.cv_error)} ")
    ends = format_interval(least.lower, least.upper)
    assert lines[4].startswith(f"minimum CV error over the grid: in {ends} (certified, relative gap ")
    at = next(k for k, line in enumerate(lines) if line.startswith("one-standard-error rule"))
    assert lines[at + 1] == "model refitted on all rows (subset certified optimal)"
    assert f"best gamma for each tau (for tau = {simplest.tau}: the reported gamma)" in lines
    assert words_of_gamma(simplest) == f"at its best gamma (tau = {simplest.tau}: the reported gamma)"
    assert len(simplest.support) == simplest.tau == simplest.refit.tau
    assert {len(fold.support) for fold in simplest.chosen_folds} == {simplest.tau}


def test_a_rule_that_is_not_settled_says_so(simplest: Record) -> None:
    assert simplest.one_se is not None
    unsettled = replace(simplest, one_se=replace(simplest.one_se, estimate=True))
    text = printed(lambda console: print_answer(console, unsettled), 200)
    assert text.startswith("pair with the minimum CV error over the grid (certified, gap <= 1e-4): ")
    assert "\nreported by the one-standard-error rule (not certified): " in text
    assert "\none-standard-error rule (not certified): " in text and "smallest tau" not in text
    assert "the smallest tau, then the largest gamma" in printed(lambda console: print_answer(console, simplest), 200)


def test_estimates_are_marked(record: Record) -> None:
    row = replace(record.table[0], estimate=True)
    marked = replace(record, estimate=True, table=(row, *record.table[1:]))
    text = printed(lambda console: print_answer(console, marked), 200)
    assert (
        "CV error ~" in text
        and "R^2 ~" in text
        and "\n~ an estimate, perhaps too low or too high; lower and upper are certified bounds" in text
    )
    other = replace(record, table=(row, *record.table[1:]))
    text = printed(lambda console: print_answer(console, other), 200)
    assert f" {row.tau} " in text and "~" not in text
    assert (
        "\nexcluded: this tau, at every gamma of the grid, is certified not to improve on the minimum CV error by "
        "more than the gap"
    ) in text
    ended = replace(marked, status="limit")
    text = printed(lambda console: print_answer(console, ended), 200)
    assert (
        "\n~ an estimate, perhaps too low or too high; lower and upper are certified bounds" in text
        and "; lower and upper are certified" in text
    )
    assert "~" not in printed(lambda console: print_answer(console, record), 200)


def test_a_run_that_ended_by_itself_does_not_blame_its_limit(record: Record) -> None:
    for limit in (None, 60.0):
        ended = replace(record, status="limit", request=replace(record.request, time_limit=limit))
        assert printed(lambda console: print_answer(console, ended), 200).startswith(  # noqa: B023
            "best pair so far (search ended without a proof; choice not certified): "
        )
        assert len(hints(ended)) == 1 and hints(ended)[0].startswith(
            "more time would not help: no step of the search is left"
        )
        spent = replace(ended, request=replace(ended.request, mio_budget=0))
        assert hints(spent)[0].startswith("more time would not help: the --mio-budget of 0 is used up")


def test_a_search_that_leaves_a_part_of_its_limit_to_the_model_is_not_said_to_have_ended_by_itself(
    record: Record,
) -> None:
    for na_within, by_itself in (("folds", False), (None, True)):  # where folds fill cells it has 85% of the limit
        ended = replace(
            record, status="limit", request=replace(record.request, time_limit=8.0, na_within=na_within),  # type: ignore[arg-type]
            work=replace(record.work, seconds=7.4),
        )  # fmt: skip
        assert any(words.startswith("more time would not help") for words in hints(ended)) == by_itself


def test_the_limit_of_a_nested_run_is_shared_with_the_outer_folds(record: Record) -> None:
    outer = FoldInfo("4", 0, 4, "0" * 64)
    for seconds, said in (
        (2.1, "limit reached"),
        (1.5, "search ended without a proof"),
    ):  # two of six shares are its own
        shared = replace(
            record, status="limit", request=replace(record.request, time_limit=6.0),
            work=replace(record.work, seconds=seconds), nested=Nested(outer, 1.0, None, None, ()),
        )  # fmt: skip
        assert printed(lambda console: print_answer(console, shared), 200).startswith(f"best pair so far ({said}; ")  # noqa: B023
        assert hints(shared)[0].startswith("more time would not help") == (said != "limit reached")


def test_what_is_not_proved_is_said(record: Record) -> None:
    nothing = replace(record.table[0], cv_error=float("inf"), lower=0.0, upper=float("inf"), estimate=True)
    rows = [replace(row, lower=0.0, upper=float("inf"), estimate=True, folds_decided=0) for row in record.table]
    rows = [
        row if row.gamma == record.gamma else replace(nothing, gamma=row.gamma, tau=row.tau, folds_decided=0)
        for row in rows
    ]
    bare = replace(
        record, status="limit", estimate=True, table=tuple(rows), lower=0.0, upper=float("inf"),
        request=replace(record.request, time_limit=1.0), work=replace(record.work, seconds=1.1),
    )  # fmt: skip
    text = printed(lambda console: print_answer(console, bare), 200)
    assert text.startswith("best pair so far (limit reached; choice not certified): ") and "[0, ?]" not in text
    assert "~ an estimate: no fold is solved yet, and each fold uses the best subset found so far" in text
    assert (
        f"chosen from 3 of 9 pairs, all at gamma = {format_number(record.gamma)}; the other pairs have no CV error yet"
        in text
    )
    assert hints(bare) == [
        "a longer --time-limit or a smaller grid (--gamma, --tau) lets the search evaluate and certify more pairs"
    ]
    assert "CV error of this pair" not in text
    better = replace(rows[0], lower=0.5, upper=0.75)
    rest = [row for row in rows if (row.gamma, row.tau) != (better.gamma, better.tau)]
    bounded = replace(bare, upper=0.75, gap=1.0, table=(better, *rest))
    told = printed(lambda console: print_answer(console, bounded), 200)
    ends = "minimum CV error over the grid: in [0, 0.75] (certified, relative gap 1)\n"
    assert f"{ends}CV error of this pair: no certified bound\n" in told
    assert "no certified bound\n" in text and "minimum CV error over the grid: no" not in told
    here = [replace(row, upper=2.0) if row.tau == record.tau else row for row in rest]
    told = printed(lambda console: print_answer(console, replace(bounded, table=(better, *here))), 200)
    assert f"{ends}CV error of this pair: in [0, 2] (certified)\n" in told
    told = printed(lambda console: print_answer(console, replace(bounded, training_gap=0.0351)), 200)
    words = f"training objective of each of the {record.folds.k} fold models of this pair"
    assert f"{ends}{words}: at most 3.6% above its minimum (certified)\n" in told


def test_a_pipe_has_the_width_it_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:

    prostate = str(INSTANCES / "prostate.csv")
    for width in (40, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        assert run(["solve", prostate, "-t", "lpsa", "--folds", "3", "--gamma", "0.1", "--tau", "1:2"]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_an_answer_is_one_screen_unless_all_of_it_is_asked_for(record: Record) -> None:
    def row(tau: int) -> TableRow:
        known = tau < 4
        return replace(
            record.table[0], tau=tau, gamma=record.gamma, cv_error=50.0 - tau, lower=49.0 - tau, upper=51.0 + tau,
            estimate=not known, folds_decided=5 if known else 0,
        )  # fmt: skip

    many = {f"x{number}": 1.0 + number for number in range(60)}
    table = tuple(row(tau) for tau in range(1, 31))
    long = replace(record, tau=30, table=table, coefficients=many, support=tuple(many), one_se=None)
    text = printed(lambda console: print_answer(console, long), 200)
    assert (
        "20 more coefficients with smaller values: --full shows all" in text
        and "\n x0 " not in text
        and "\n x59 " in text
    )
    assert "22 more sizes: --full shows all" in text

    def printed_sizes(text: str) -> list[int]:
        lines = [line.split() for line in text.partition("best gamma for each tau")[2].splitlines()]
        gamma = format_number(long.gamma)
        return [int(line[0]) for line in lines if line and line[0].isdigit() and line[1] in (gamma, "in", "at")]

    assert printed_sizes(text) == [1, 2, 4, 8, 16, 28, 29, 30]  # powers of two, and the neighbours of the chosen size
    full = printed(lambda console: print_answer(console, long, full=True), 200)
    assert "--full shows" not in full and all(f" {name} " in full for name in many)
    assert printed_sizes(full) == list(range(1, 31))
    inside = replace(long, tau=7)
    text = printed(lambda console: print_answer(console, inside), 200)
    assert printed_sizes(text) == [1, 2, 4, 5, 6, 7, 8, 9, 16, 30]
    few = replace(long, table=table[:25], tau=25)
    text = printed(lambda console: print_answer(console, few), 200)
    assert printed_sizes(text) == list(range(1, 26)) and "more sizes" not in text


def test_how_levels_are_counted_is_said() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(3)[np.arange(24) % 3], rng.standard_normal((24, 2))])
    visits = Dataset.from_arrays(X, X[:, 3] + rng.standard_normal(24), names=["city=a", "city=b", "city=c", "u", "v"])
    said = {
        given: describe_model_space(
            solve(visits, gammas=[0.1], taus="1:2", folds=3, **({given: words} if given else {}))
        )
        for given, words in (("", ""), ("count", "factors"), ("adjust", "city"))
    }
    assert said[""] == "each level of city counts as a feature"
    assert said["count"] == "all levels of a factor together, counted as one feature (city)"
    assert said["adjust"] == "adjusted for city=b, city=c (levels against city=a)"


def test_errors_of_new_rows_are_said_to_count_alike_beside_a_weighted_cross_validation(record: Record) -> None:
    found, weighted = FitQuality(1.0, 0.5, 0.25), replace(record, data=replace(record.data, weights="w"))
    assert error_lines(record, found)[0] == "errors: RMSE 1, MAE 0.5, R^2 0.2500"
    assert error_lines(weighted, found)[0].endswith("0.2500 (without weights: every row counts the same here)")


def test_engine_words_are_printed_only_on_request_or_after_a_limit(record: Record) -> None:
    words = (" lower ", " upper ", "folds solved", "subproblem", "branch and bound", "node")
    text = printed(lambda console: print_answer(console, record), 200)
    assert not any(word in text for word in words) and " s on " in text
    ended = replace(record, status="limit")
    for text in (
        printed(lambda console: print_answer(console, record, full=True), 200),
        printed(lambda console: print_answer(console, ended), 200),
    ):
        assert all(word in text for word in words)


def test_ties_that_widen_a_certified_interval_are_named() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 3))
    X[6:, 1] = X[6:, 0]  # equal outside the first fold
    data = Dataset.from_arrays(X, X[:, 0] + 0.3 * rng.normal(size=24))
    folds = make_folds(np.arange(24) // 6, data)
    record = solve(data, folds=folds, gammas=[0.01, 1.0], taus="1:2", scale="none", threads=1)
    text = printed(lambda console: print_answer(console, record), 200)
    assert record.status == "proved" and record.gap > 0.01
    assert "certified choice (gap <= 1e-4, except for ties)" in text
    assert "the reported pair has the smallest upper bound" in text and " (tied)" in text
    assert "at the pair with the smallest lower bound, subsets whose training errors agree to 1e-9 change the" in text
    assert "which is due to tied subsets" in " ".join(proved_sentences(record))
    clear = solve(data, folds="4", gammas=[0.01, 1.0], taus="1:2", threads=1)
    assert "ties" not in printed(lambda console: print_answer(console, clear), 200)

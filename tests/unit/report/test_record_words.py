"""What a certificate covers, in words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import problems
import pytest
from repository import INSTANCES

from sparsecv_mio.certificate.parts import ChosenFolds, FoldInfo
from sparsecv_mio.certificate.records import NO_AVERAGE, OWN_ERROR, Advice, CertifiedSoFar, Record, Region
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.digits import format_number, several
from sparsecv_mio.model_space import parse_gammas
from sparsecv_mio.report.layout import pair
from sparsecv_mio.report.publication import make_publication
from sparsecv_mio.report.record_report import open_sentences, report_of
from sparsecv_mio.report.record_tables import coverage_lines, meaning, print_answer
from sparsecv_mio.report.record_words import (
    average_lines,
    choice_lines,
    count_groups,
    data_line,
    describe_folds,
    describe_region,
    extend_gammas,
    hints,
    open_rows,
    region_lines,
    span,
    stability_lines,
)
from sparsecv_mio.search.api import cross_validate, solve

from .printing import data, printed


def record(method: str) -> Record:
    data = problems.linear(3, 30, 6, {0: 1.0, 1: -1.0})
    return cross_validate(data, make_folds("5", data), gammas=[0.1, 1.0], taus=[1, 2, 3], method=method, threads=1)


def test_pairs_that_may_win_are_counted_and_compared() -> None:
    part = record("bounds")
    while_open = [row for row in part.table if row.status == "open" and (row.gamma, row.tau) != (part.gamma, part.tau)]
    assert part.status == "limit" and open_rows(part) == while_open
    lines = region_lines(part)
    assert any(line.startswith("not excluded:") for line in lines) is bool(while_open)
    rows = tuple(replace(row, status="open", cv_error=2.0 * part.cv_error) for row in part.table)
    text = region_lines(replace(part, table=rows, region=None, so_far=None))
    assert len(text) == 1 and "5 other pairs (tau 1:3, gamma 0.1:1)" in text[0] and "100% larger" in text[0]


def test_the_part_is_named_by_its_sides() -> None:
    assert describe_region(3, None, [1, 2, 3]) == "the whole grid"
    assert describe_region(2, None, [1, 2, 3]) == "tau 1:2 at every gamma"
    assert describe_region(None, 0.5, [1, 2]) == "every tau at gamma >= 0.5"
    assert span({4}) == "4" and span([2, 7]) == "2:7"


def test_a_model_without_features_has_no_hint_on_gamma_and_no_influential_fold() -> None:
    record = solve(data(), folds="5", gammas=[0.1, 1.0], taus=0, intercept="none", threads=1)
    assert record.support == () and hints(record) == []
    assert stability_lines(record) == [
        "most influential fold: none; holding out a fold does not change the squared errors"
    ]
    fitted = solve(data(), folds="5", gammas=[0.1, 1.0], taus=0, threads=1)  # the mean depends on the fold
    assert hints(fitted) == [] and "most influential fold: fold " in stability_lines(fitted)[-1]


def test_a_hint_at_an_end_of_an_interval_names_the_interval() -> None:
    record = solve(data(), folds="5", gammas="0.5..1", taus=[1, 2], threads=1)
    gamma = [hint for hint in hints(record) if "gamma" in hint]
    assert gamma == ["the best gamma is the smallest of the interval; try --gamma 0.05..1"]
    assert record.continuous is not None
    inside = replace(record, gamma=0.7)
    assert not any("gamma" in hint for hint in hints(inside))


def test_folds_that_chose_other_features_are_counted() -> None:
    record = solve(data(), folds="5", gammas=0.1, taus=2, threads=1)
    every, change = stability_lines(record)
    assert every == "stability: all 5 fold models (each fitted without one fold) select the features of this model"
    assert record.stability is not None and change.startswith(
        f"most influential fold: fold {record.stability.fold + 1} of 5; "
    )
    assert "; refitting the model without its rows changes the squared error of a row by " in change
    assert "% of the CV error" in change and choice_lines(record) == []
    other = replace(record, support=record.support[:1])
    name = record.support[1]
    assert record.chosen_in() == dict.fromkeys(record.support, 5)
    words = "all 5 fold models (each fitted without one fold) select the features of this model"
    assert stability_lines(other)[0] == f"stability: {words}; other selected features: {name} by 5"
    many = stability_lines(replace(record, folds=replace(record.folds, k=60_000)))[0]
    assert "60,000 fold models (each fitted without one fold)" in many


def test_folds_in_time_order_are_not_left_out() -> None:
    (chosen,) = stability_lines(solve(data(), folds="forward:3", gammas=0.1, taus=2, threads=1))
    assert "all 3 fold models (each fitted on the rows before one fold) " in chosen
    asked = solve(data(), folds="forward:3", gammas=0.1, taus=2, stability=0.0, threads=1)
    assert (
        "; refitting the model only on the rows before it changes the squared error of a row by "
        in stability_lines(asked)[1]
    )


def test_folds_that_the_user_named_are_called_by_their_names() -> None:
    given = data()
    ids = np.array(["ann", "bob", "cid", "dan"])[np.arange(given.n) % 4]
    for spec, column in (("groups:who", ids), ("column:who", ids), ("column:who", np.arange(given.n) % 4)):
        named = replace(given, aux={"who": column})
        record = solve(named, folds=spec, gammas=0.1, taus=2, threads=1)
        assert record.stability is not None
        fold = record.stability.fold
        words = f"most influential fold: fold {fold + 1} of 4 (who {str(np.unique(column)[fold])!r}); "
        assert stability_lines(record, named)[-1].startswith(words)


def test_models_without_a_common_feature_are_said_to_have_none() -> None:
    record = solve(data(), folds="5", gammas=0.1, taus=2, threads=1)
    ours, other = record.support
    supports = [(ours,)] * 3 + [(other,)] * 2
    chosen = ChosenFolds.of(supports, record.chosen_folds.error, [True] * 5)
    apart = replace(record, chosen_folds=chosen)
    none = "no feature of this model is selected by all 5 fold models (each fitted without one fold)"
    assert stability_lines(apart)[0] == f"stability: {none}, {ours} by 3, {other} by 2"


def test_a_weight_and_where_it_came_from() -> None:
    record = solve(data(), folds="5", gammas="0.1,1", stability="nested", threads=1)
    first, tried = choice_lines(record)
    assert first.startswith("stable pair: the pair with the minimum of CV error + ")
    assert "x instability (certified); the minimum is in [" in first
    assert tried.startswith("nested CV over 5 outer folds chose the weight ")


def test_the_largest_weight_of_those_tried_is_at_an_end() -> None:
    record = solve(data(), folds="5", gammas="0.1,1", stability="nested", threads=1)
    assert record.stability is not None and (chosen := record.stability.chosen) is not None
    largest = max(one.weight for one in chosen.tried)
    ends = replace(record, stability=replace(record.stability, chosen=replace(chosen, weight=largest)))
    assert any("--stability 30 --nested 5 computes the error of a larger weight" in hint for hint in hints(ends))
    inside = replace(record, stability=replace(record.stability, chosen=replace(chosen, weight=0.1)))
    assert not any("the largest one tried" in hint for hint in hints(inside))


def test_a_run_that_was_to_decide_every_pair_says_how_many_it_left(record: Record) -> None:
    row = replace(record.table[0], folds_decided=0)
    short = replace(record, request=replace(record.request, gap=0.0), table=(row, *record.table[1:]))
    text = printed(lambda console: print_answer(console, short), 200)
    left = f"1 of {len(record.table)} pairs are not solved, although --gap 0 requests every pair\n"
    assert text.startswith("certified choice (gap 0): ") and f"\ninterrupted: {left}" in text
    limit = replace(short, request=replace(short.request, time_limit=1.0), work=replace(short.work, seconds=1.0))
    assert f"\nlimit reached: {left}" in printed(lambda console: print_answer(console, limit), 200)
    text = printed(lambda console: print_answer(console, replace(short, request=record.request)), 200)
    assert text.startswith("certified choice (gap <= 1e-4): ") and "not solved" not in text


def test_why_there_is_no_instability_is_said(record: Record) -> None:
    without = replace(record, stability=None)
    assert stability_lines(without)[-1].endswith("--stability 0 computes it")
    assert stability_lines(replace(without, status="limit"))[-1].endswith(
        ", because the run ended before this computation"
    )
    own = replace(without, request=replace(record.request, na_within="folds"))
    assert stability_lines(own)[-1].endswith("because each fold has its own imputed values (--na-within folds)")


def test_the_first_line_is_on_the_pair_that_is_shown() -> None:
    record = solve(data(), folds="5", gammas="0.1,1", stability=1.0, threads=1)
    assert record.stability is not None and record.stability.chosen is not None and record.least is not None
    head = printed(lambda console: print_answer(console, record), 200).splitlines()[:3]
    least = record.least
    minimum = f"{pair(least.tau, least.gamma)}, CV error {format_number(least.cv_error)}"
    assert head[0] == f"pair with the minimum CV error over the grid (certified, gap <= 1e-4): {minimum}"
    assert head[1] == f"reported by the weighted instability (certified): {pair(record.tau, record.gamma)}"
    unproved = replace(record.stability, chosen=replace(record.stability.chosen, proved=False))
    text = printed(lambda console: print_answer(console, replace(record, stability=unproved)), 200)
    assert text.startswith("pair with the minimum CV error over the grid (certified, gap <= 1e-4): ")
    assert "\nreported by the weighted instability (not certified): " in text
    same = solve(data(), folds="5", gammas="0.1,1", stability=0.0, threads=1)
    text = printed(lambda console: print_answer(console, same), 200)
    assert text.splitlines()[0] == f"certified choice (gap <= 1e-4): {pair(same.tau, same.gamma)}"
    assert "minimum CV error over the grid (" not in text


def test_what_would_complete_a_proof_is_told(record: Record) -> None:
    part = replace(limited(record, Region(2, None, 0.1, 2, 1.0, 1.0, 1.0, 0.0, 0.0)), advice=Advice("1:2", None, None))
    assert hints(part) == ["the smaller grid --tau 1:2 is certified already"]
    longer = replace(part, request=replace(part.request, time_limit=5.0), work=replace(part.work, seconds=5.0))
    assert hints(longer)[0].endswith(
        "; a longer --time-limit tightens the bounds, and --time-limit none runs until the choice is certified"
    )
    both = replace(longer, advice=Advice("1:2", "0.1:10:9", 300.0))
    assert hints(both)[0] == (
        "the smaller grid --tau 1:2 or --gamma 0.1:10:9 is certified already; --time-limit 300 may certify the whole "
        "grid (extrapolated from the cost so far)"
    )
    nowhere = replace(longer, region=None, advice=Advice(None, None, None))
    assert hints(nowhere)[0].startswith(
        "--tau 1,2 (no larger models) reduces the number of open pairs from 3 to 0; a longer"
    )
    assert hints(replace(both, advice=None)) == []


def test_the_part_that_is_proved_is_told(record: Record) -> None:
    part = limited(record, Region(2, 1.0, 0.1, 2, 1.0, 1.0, 1.0, 0.0, 0.0))
    assert region_lines(part) == [
        "certified for tau 1:2 at every gamma, and every tau at gamma >= 1: the reported pair is the best pair there",
        "not excluded: 3 other pairs (tau 3, gamma 0.01235:1); their smallest estimated CV error is 50% larger than "
        "that of the best pair",
    ]
    elsewhere = replace(part, region=Region(1, None, 0.1, 1, 1.25, 1.25, 1.25, 0.0, 0.0))
    assert region_lines(elsewhere)[0].endswith("the best pair there is tau = 1, gamma = 0.1, CV error 1.25")
    assert region_lines(record) == []
    worst = max((row for row in part.table if row.status == "open"), key=lambda row: row.cv_error)
    table = tuple(replace(row, cv_error=math.inf) if row is worst else row for row in part.table)
    assert (
        "; their smallest estimated CV error, known for 2 of them, is " in region_lines(replace(part, table=table))[1]
    )
    unknown = replace(part, region=None, table=tuple(replace(row, cv_error=float("inf")) for row in part.table))
    assert region_lines(unknown) == ["not excluded: 3 other pairs (tau 3, gamma 0.01235:1); they have no CV error yet"]


def limited(record: Record, region: Region) -> Record:
    """A run in which tau 3 was left open, and tau 2 at gamma 0.1 is reported."""
    table = tuple(
        replace(row, status="open" if row.tau == 3 else "decided", cv_error=1.5 if row.tau == 3 else 1.0)
        for row in record.table
    )
    request = replace(record.request, time_limit=None)
    changed = replace(record, status="interrupted", gamma=0.1, tau=2, cv_error=1.0, table=table, request=request)
    return replace(changed, region=region)


@pytest.mark.parametrize(
    ("gamma", "tau", "gammas", "taus", "told"),
    [
        (1.0, 2, (0.01, 0.1, 1.0), (1, 2, 3), ["largest of the grid; try --gamma 0.01:10:4"]),
        (0.01, 2, (0.01, 0.1, 1.0), (1, 2, 3), ["smallest of the grid; try --gamma 0.001:1:4"]),
        (0.1, 2, (0.01, 0.1, 1.0), (1, 2, 3), []),
        (0.1, 3, (0.01, 0.1, 1.0), (1, 2, 3), ["largest of the grid; try --tau 1:5"]),
        (0.1, 5, (0.01, 0.1, 1.0), (1, 2, 5), []),
        (0.1, 1, (0.01, 0.1, 1.0), (1, 2, 5), []),
        (0.1, 0, (0.01, 0.1, 1.0), (0, 2, 5), []),
        (0.1, 2, (0.01, 0.1, 1.0), (2, 3), ["smallest of the grid; try --tau 1:3"]),
        (0.1, 2, (0.1,), (2,), []),
        (1e-7, 2, (1e-7, 0.1), (1, 2, 3), []),
    ],
)
def test_an_edge_of_the_grid_is_told(
    gamma: float, tau: int, gammas: tuple[float, ...], taus: tuple[int, ...], told: list[str], record: Record
) -> None:
    request = replace(record.request, gammas=gammas, taus=taus)
    found = hints(replace(record, gamma=gamma, tau=tau, request=request))
    assert len(found) == len(told) and all(text in hint for text, hint in zip(told, found, strict=True))


def test_no_hint_follows_the_one_standard_error_rule_to_larger_gammas(simplest: Record) -> None:
    least = replace(simplest.certificate, gamma=0.1, tau=2)
    at_edge = replace(simplest, least=least, gamma=1.0)
    assert at_edge.least is not None and not any("--gamma" in hint for hint in hints(at_edge))
    assert any("--gamma" in hint for hint in hints(replace(at_edge, least=replace(least, gamma=1.0))))


def test_a_model_of_all_features_names_the_one_standard_error_rule() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    given = Dataset.from_arrays(X, X @ [3.0, 0.8, 0.6] + 2.0 * rng.normal(size=60), ["a", "b", "c"])
    record = solve(given, folds="5", gammas="0.001,0.1", taus="1:3", gap=0.0, threads=1)
    rule = solve(given, folds="5", gammas="0.001,0.1", taus="1:3", one_se=True, threads=1)
    assert record.tau == 3 > rule.tau and not any("--one-se" in hint for hint in hints(rule))
    answer = f"--one-se would report tau = {rule.tau}, gamma = {format_number(rule.gamma, 4)}, CV error "
    assert f"tau = 3 keeps every feature; {answer}{format_number(rule.cv_error)}" in hints(record)
    table = tuple(replace(row, lower=0.0, upper=math.inf) if row.tau < 3 else row for row in record.table)
    words = "tau = 3 keeps every feature; --one-se reports the smallest tau with a CV error within one standard error"
    assert words in hints(replace(record, table=table))
    assert rule.one_se is not None
    screen = printed(lambda console: print_answer(console, record), 200)
    assert f"(mean squared error, standard error {format_number(rule.one_se.standard_error, 3)}); on held-out" in screen


def test_a_wider_range_keeps_the_requested_sizes(record: Record) -> None:
    one = replace(record, tau=6, gamma=0.1, data=replace(record.data, names=tuple("abcdefghijkl"), p=12))
    [hint] = hints(replace(one, request=replace(record.request, gammas=(0.1,), taus=tuple(range(1, 7)))))
    assert hint.endswith("is the largest of the grid; try --tau 1:12")


def test_the_null_model_is_proposed_only_if_it_may_predict_better(record: Record) -> None:
    one = replace(record, tau=1, request=replace(record.request, gammas=(record.gamma,), taus=(1, 2, 5)))
    told = ["smallest of the grid: --tau 0:5 includes the model without features"]
    for r_squared, wanted in ((0.9, []), (0.002, []), (0.0005, told), (None, told)):
        found = hints(replace(one, r_squared=r_squared))
        assert len(found) == len(wanted) and all(text in hint for text, hint in zip(wanted, found, strict=True))


def test_sizes_between_the_small_ones_and_all_features_are_told(record: Record) -> None:
    names = tuple(f"x{j}" for j in range(40))
    record = replace(record, data=replace(record.data, names=names, p=40, n=90))
    request = replace(record.request, gammas=(0.01, 0.1, 1.0), taus=(1, 2, 3, 40))
    between = "--tau 4:39 tries the sizes in between"  # an option and what it takes: Python words it its own way
    for tau, told in ((40, [between]), (3, [between]), (2, [])):
        found = hints(replace(record, gamma=0.1, tau=tau, request=request))
        assert len(found) == len(told) and all(text in hint for text, hint in zip(told, found, strict=True))


def test_a_model_that_predicts_worse_than_the_mean_is_told(record: Record) -> None:
    worse = replace(record, r_squared=-0.01)
    most = max(record.request.taus)
    said = [text for text in hints(worse) if "R^2 is below 0" in text]
    assert min(record.request.taus) > 0 and len(said) == 1 and said[0].endswith(f"--tau 0:{most} includes it")
    with_none = replace(worse, request=replace(worse.request, taus=(0, *worse.request.taus)))
    assert not [text for text in [*hints(record), *hints(with_none)] if "R^2" in text]


def test_an_average_says_how_many_pairs_it_is_of() -> None:
    """Where no other pair is near, it is the model of the pair that is put on fewer features."""
    prostate = str(INSTANCES / "prostate.csv")
    many = solve(prostate, target="lpsa", gammas=[0.01, 0.1], taus="4:5", model="average")
    one = solve(prostate, target="lpsa", gammas=[0.1], taus="8", model="average")
    assert many.average is not None and one.average is not None and len(one.average.used) == 1
    count, whole = len(many.average.used), sum(pair.tau == 8 for pair in many.average.used)
    said, (first, second, *_) = average_lines(many)[0], average_lines(one)
    assert (
        whole
        and f"the average of {count} near-optimal pairs ({whole} of them are ridge fits of all features), approx"
        in said
    )
    assert first.endswith(f"(no other pair is near-optimal), approximated with {one.average.model.tau} features")
    assert second.startswith("the approximation differs from the model of the pair by 0.")
    for open_pairs, words in ((1, "1 averaged pair is not solved in every fold"), (2, "2 averaged pairs are not")):
        changed = [replace(pair, estimate=a < open_pairs) for a, pair in enumerate(many.average.used)]
        lines = average_lines(replace(many, average=replace(many.average, pairs=tuple(changed))))
        assert any(line.startswith(words) for line in lines)


def test_open_folds_that_use_what_all_rows_found_are_counted(record: Record) -> None:
    k, model = record.folds.k, list(record.support)
    other = [name for name in record.data.names if name not in model][:1]

    def with_folds(same: int, decided: int = 0) -> Record:
        supports = [model] * same + [other] * (k - same)
        open_folds = ChosenFolds.of(supports, record.chosen_folds.error, [i >= k - decided for i in range(k)])
        return replace(record, estimate=True, chosen_folds=open_folds)

    for part, many in ((with_folds(k), k), (with_folds(1, 1), k - 1)):
        uses = f"{part.seen_folds} of {k} folds use"
        words = f"perhaps too low or too high: {uses}"
        text = printed(lambda console: print_answer(console, part), 400)  # noqa: B023
        assert words in text and words in part.summary() and words in open_sentences(part)[0]
        assert "is only an estimate, which may be too low or too high" in open_sentences(part)[-1]
        assert " by construction: " in stability_lines(part)[0]
        assert stability_lines(part)[0].startswith(
            f"stability (estimate: {'no fold is solved yet' if many == k else f'{many} of {k} folds are not solved'}): "
        )
        told = coverage_lines(np.array([[0.0, 1.0]]), 0.9, None, part)
        assert told[1].startswith(f"the prediction intervals are perhaps too narrow: {uses}")
        assert "(an estimate, perhaps too low or too high)" in report_of(part).answer
    assert with_folds(1).seen_folds == 1 and with_folds(k, k).seen_folds == with_folds(0).seen_folds == 0
    assert len(coverage_lines(np.array([[0.0, 1.0]]), 0.9, None, with_folds(0))) == 1
    assert "too low" not in with_folds(0).summary() + record.summary() + report_of(record).answer


def test_a_model_that_was_not_averaged_is_told(record: Record) -> None:
    asked = replace(record, request=replace(record.request, model="average"))
    assert NO_AVERAGE in printed(lambda console: print_answer(console, asked, brief=True), 200)
    assert report_of(asked).answer.endswith(f"; {NO_AVERAGE}") and NO_AVERAGE in asked.summary()
    assert NO_AVERAGE not in record.summary() + report_of(record).answer


def test_an_average_that_no_size_approximates_has_the_largest_size() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 5))
    given = Dataset.from_arrays(X, 0.5 * X.sum(axis=1) + 1.5 * rng.normal(size=30))
    found = solve(given, folds="3", gammas=[0.1, 1.0, 3.0], taus="1:2", model="average", threads=1)
    assert found.average is not None and found.average.missed > 2.0 * found.average.allowed
    words = "the largest requested size, because no size "
    assert f"({words}has a difference of at most 0.5%; " in average_lines(found)[1]
    assert f": {words}had a mean squared difference of" in make_publication(found).methods


def test_errors_beside_an_averaged_model_are_those_of_the_pair() -> None:
    found = solve(data(), folds="5", gammas=0.1, taus="1:2", model="average", own_error=True, threads=1)
    assert found.average is not None and found.average.within_folds is not None
    own = found.average.within_folds.error
    assert "on held-out rows, model of the pair: RMSE" in found.summary()
    assert f"{OWN_ERROR}: {format_number(own)} (optimistic)" in found.summary()
    answer = report_of(found).answer
    assert "this is the error of the pair, but the averaged model of " in answer


def test_a_best_pair_outside_of_its_part_is_named_as_decided(record: Record) -> None:
    part = limited(record, Region(1, None, 1.0, 2, 1.25, 1.0, 1.25, 0.0, 0.0))
    words = "no pair there is better than {}tau = 2, gamma = 1, CV error 1.25"
    assert region_lines(part)[0].endswith(words.format(""))
    assert region_lines(replace(part, estimate=True))[0].endswith(words.format("the best solved pair, "))


def test_a_region_is_stated_once(record: Record) -> None:
    region = Region(2, 1.0, 0.1, 2, 1.0, 1.0, 1.0, 0.0, 0.0)
    wider = replace(region, from_gamma=0.1)
    part = limited(record, region)
    for near, count in ((region, 0), (wider, 1)):
        lines = region_lines(replace(part, so_far=CertifiedSoFar(1, 2, 3, near)))
        assert sum("certified within 1%" in line for line in lines) == count
    only = replace(part, table=tuple(replace(row, status="decided") for row in part.table[:-1]) + part.table[-1:])
    assert "1 other pair (" in region_lines(only)[-1] and "; its estimated CV error is " in region_lines(only)[-1]


def test_an_option_that_ended_the_search_is_named_in_the_title_and_the_hint(record: Record) -> None:
    part = limited(record, Region(2, 1.0, 0.1, 2, 1.0, 1.0, 1.0, 0.0, 0.0))
    for how, words in (
        ({"method": "bounds"}, "--method bounds does not branch"),
        ({"mio_budget": 0}, "the --mio-budget of 0 is used up"),
    ):
        ended = replace(part, status="limit", request=replace(part.request, **how))
        assert meaning(ended)[0] == f"best answer so far ({words}; not certified)"
        assert hints(ended)[0].startswith(f"more time would not help: {words}; ")


def test_what_is_certified_so_far_is_told() -> None:
    part = record("bounds")
    assert part.so_far is not None
    lines = region_lines(part)
    excluded, solved = (sum(row.status == status for row in part.table) for status in ("excluded", "decided"))
    counts = "certified so far: {1} of {0} pairs excluded by bound, {2} solved".format
    total = len(part.table)
    assert counts(total, excluded, solved) in lines
    one = replace(part, so_far=replace(part.so_far, excluded=1, solved=0))
    assert counts(total, 1, 0) in region_lines(one)
    assert any(line.startswith("certified within 1% for tau 1 at every gamma") for line in lines)
    none = replace(part, so_far=replace(part.so_far, region=None))
    assert any(line.endswith("the choice is not yet certified within 1% at any gamma") for line in region_lines(none))
    assert record("rounds").so_far is None


def test_the_line_on_the_data_states_rows_features_and_folds() -> None:
    given = data()
    classes = as_two_classes(replace(given, y=np.asarray(given.y > np.median(given.y), dtype=float)))
    record = solve(classes, folds="3", gammas=1.0, taus=1, loss="logistic", threads=1)
    rows = f"{given.n} rows, {int(classes.y.sum())} with {given.target} = 1"
    folds = "3 random folds, stratified by the outcome (seed 0)"
    assert data_line(record, classes) == f"{rows}; {several(given.p, 'feature')}; {folds}"
    counts = replace(given, y=np.arange(given.n) % 4.0)
    record = solve(counts, folds="3", gammas=1.0, taus=1, loss="poisson", threads=1)
    assert data_line(record, counts).startswith(f"{given.n} rows with a total count of {counts.y.sum():.0f}; ")


@pytest.mark.parametrize("folds", ["groups:who:4", "groups:who"])
def test_the_number_of_groups_is_stated(folds: str) -> None:
    given = data()
    given = replace(given, aux={**given.aux, "who": np.arange(given.n) // 5})
    record = solve(given, folds=folds, gammas=1.0, taus=1, threads=1)
    groups = -(-given.n // 5)
    assert data_line(record, given).startswith(f"{given.n} rows in {groups} groups of who; ")
    assert f"{given.n} rows in {groups} groups of who, the target" in make_publication(record, given).methods
    assert count_groups(record.folds, None) is None and count_groups(FoldInfo("5", 0, 5, ""), given) is None


def test_the_null_model_is_that_of_the_held_out_rows() -> None:
    """The baseline of the explained share is the mean rate of the scored rows, as the lines state."""
    given = data()
    counts = replace(given, y=np.arange(given.n) % 4.0)
    record = solve(counts, folds="3", gammas=1.0, taus=1, loss="poisson", threads=1)
    y, mean = counts.y, counts.y.mean()
    null = float(np.mean(mean - y + y * np.log(np.where(y > 0, y, 1.0) / mean)))
    assert record.null_error == pytest.approx(null)
    assert f"half deviance of the mean rate of these rows {record.null_error:.6g}"[:60] in record.accuracy_line()
    assert "half deviance of the mean rate of these rows 0." in make_publication(record, counts).results


@pytest.mark.parametrize(
    ("spec", "seed", "words"),
    [
        ("2x5", 3, "5 random folds, 2 times (seed 3)"),
        ("loo", None, "10 folds of one row (leave-one-out)"),
        ("stratified:10 weighted", 1, "10 random folds, stratified by the outcome (seed 1)"),
        ("groups:who:10", 0, "10 folds of whole groups of 'who' (seed 0)"),
        ("forward:10:2", None, "10 folds in the order of the rows, each predicted from the rows before it, with a gap"),
        ("holdout:0.2", 0, "1 fold: a random 20% of the rows, held out (seed 0)"),
        ("labels", None, "10 folds given in Python"),
        ("column:f", None, "10 folds from the column 'f'"),
    ],
)
def test_folds_are_described_by_kind_and_seed(spec: str, seed: int | None, words: str) -> None:
    k = 1 if spec.startswith("holdout") else 10
    assert describe_folds(FoldInfo(spec, seed, k, "", 2 if "2x" in spec else 1)).startswith(words)


def test_columns_of_a_factor_are_one_feature_in_the_line_on_stability() -> None:
    """The choice and this line count the same: tau = 2 features are four columns here."""
    rng = np.random.default_rng(1)
    level = np.arange(60) % 3
    X = np.column_stack([np.eye(3)[level], rng.normal(size=(60, 2))])
    names = ["city=a", "city=b", "city=c", "x", "z"]
    given = Dataset.from_arrays(X, 3.0 * level + X[:, 3] + 0.1 * rng.normal(size=60), names=names)
    record = solve(given, folds="5", gammas=0.1, taus=2, count="factors", threads=1)
    assert record.support == ("city=a", "city=b", "city=c", "x")
    moved = replace(record, support=(*record.support[:3], "z"))
    assert (
        "1 of the 2 terms of this model is selected by all 5 fold models (each fitted without one fold), z by 0"
        in (stability_lines(moved)[0])
    )
    assert "select the terms of this model" in stability_lines(record)[0]
    assert data_line(record, given) == "60 rows; 3 terms; 5 random folds (seed 0)"


def test_smaller_gammas_are_proposed_only_where_they_may_help() -> None:
    record = solve(data(), folds="5", gammas="0.001,0.01", taus=2, threads=1)
    best = record.certificate.gamma
    assert best == 0.001 and hints(record) == []  # a line through both CV errors gains less than 0.1% below 0.001
    table = tuple(replace(row, cv_error=row.cv_error * (1.0 if row.gamma == best else 1.1)) for row in record.table)
    assert any(
        "smallest of the grid; try --gamma 0.0001:0.01:3" in hint for hint in hints(replace(record, table=table))
    )


@pytest.mark.parametrize("grid", ["0.0021:0.21:5", "0.001:10:15", "0.1,0.25,1", "1e-4,1", "1,2,3,4,5,6,7,8,9,10"])
def test_a_proposed_grid_has_the_old_one_and_a_decade_more(grid: str) -> None:
    old = np.array(parse_gammas(grid, 5, 50))
    for upwards in (False, True):
        new = np.array(parse_gammas(extend_gammas(old.tolist(), upwards), 5, 50))
        wider = new.max() / old.max() if upwards else old.min() / new.min()
        assert wider > 10.0 - 1e-3 and min(new.min() / old.min(), old.max() / new.max()) <= 1.0 + 1e-5
        if old.size < 10:  # a range is proposed for a long list of uneven gammas
            assert all(np.min(np.abs(new / gamma - 1.0)) < 1e-5 for gamma in old)

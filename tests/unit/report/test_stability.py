"""What is said of the stability of a model."""

from __future__ import annotations

from dataclasses import replace

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.report.numbers import pair
from sparsecv_mio.report.stability import choice_lines, stability_lines
from sparsecv_mio.report.tables import print_answer
from sparsecv_mio.search.solve import solve

from .printing import data, printed


def test_folds_that_chose_other_features_are_counted() -> None:
    record = solve(data(), folds="5", gammas=0.1, taus=2, threads=1)
    every, change = stability_lines(record)
    assert every == "stability: the 5 models, each fitted without one fold, all have the features of this model"
    assert change.startswith("fold ") and "matters most: without it the model's squared errors change by " in change
    assert "% of the CV error" in change and choice_lines(record) == []
    other = replace(record, support=record.support[:1])
    name = record.support[1]
    assert record.chosen_in() == dict.fromkeys(record.support, 5)
    words = "the 5 models, each fitted without one fold, all have 1 of the 1 features of this model; not in this model"
    assert stability_lines(other)[0] == f"stability: {words}: {name} in 5"


def test_a_weight_and_where_it_came_from() -> None:
    record = solve(data(), folds="5", gammas="0.1,1", stability="nested", threads=1)
    first, tried = choice_lines(record)
    assert first.startswith("stable pair: the pair with the least CV error + ") and "instability, proved" in first
    assert tried.startswith("weight ") and "5 outer folds" in tried


def test_estimates_are_marked(record: Record) -> None:
    assert record.stability is not None
    marked = replace(record, stability=replace(record.stability, estimate=True))
    assert "~" in stability_lines(marked)[-1] and "certified in" in stability_lines(marked)[-1]


def test_the_first_line_is_on_the_pair_that_is_shown() -> None:
    record = solve(data(), folds="5", gammas="0.1,1", stability=1.0, threads=1)
    assert record.stability is not None and record.stability.chosen is not None and record.least is not None
    head = printed(lambda console: print_answer(console, record), 200).splitlines()[:3]
    assert head[0] == f"proved   {pair(record.tau, record.gamma)}, the stable pair"
    least = record.least
    assert head[2] == f"least CV error: {least.cv_error:.6g}, of {pair(least.tau, least.gamma)}"
    unproved = replace(record.stability, chosen=replace(record.stability.chosen, proved=False))
    text = printed(lambda console: print_answer(console, replace(record, stability=unproved)), 200)
    assert text.startswith("least CV error proved, stable pair not   tau = ")
    same = solve(data(), folds="5", gammas="0.1,1", stability=0.0, threads=1)
    text = printed(lambda console: print_answer(console, same), 200)
    assert text.splitlines()[0] == f"proved   {pair(same.tau, same.gamma)}" and "\nleast CV error:" not in text

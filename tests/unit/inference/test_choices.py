"""The whole procedure on draws: weights equal copied rows, files of draws are continued, limits keep what is done."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio import cross_validate
from sparsecv_mio.certificate.inference_parts import FailedDraw
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import inner_folds, make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.errors import BadInput
from sparsecv_mio.inference import choices
from sparsecv_mio.inference.choices import DrawOptions, choose_from_draw, choose_models
from sparsecv_mio.inference.draws import Draw, bootstrap_draws, half_draws
from sparsecv_mio.inference.repetitions import find_starts
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.search.question import Question

WHAT = "bootstrap"


def make_question(loss: str = "squared", n: int = 40, p: int = 5, **options: object) -> Question:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p)) * np.geomspace(0.1, 10.0, p)
    signal = X[:, 0] * 8.0 + X[:, 1] * 2.0
    noise = rng.normal(size=n)
    if loss == "logistic":
        data = as_two_classes(Dataset.from_arrays(X, (signal + noise > 0.0).astype(float)))
    elif loss == "poisson":
        data = as_counts(Dataset.from_arrays(X, np.floor(np.exp(np.clip(0.5 * signal, -1.0, 2.0)))))
    else:
        data = Dataset.from_arrays(X, signal + noise)
    chosen = SearchOptions.of(loss=loss, threads=1, **options)
    return Question(data, make_folds("5", data), (0.1, 1.0), (1, 2, 3), chosen)


@pytest.mark.parametrize(
    ("loss", "scale"), [("squared", "length"), ("squared", "variance"), ("logistic", "length"), ("poisson", "variance")]
)
def test_weights_of_a_draw_equal_copied_rows_in_one_fold(loss: str, scale: str) -> None:
    question = make_question(loss, scale=scale, gap=0.0)
    for draw in bootstrap_draws(question.dataset, question.folds, 3, 7):
        chosen = choose_from_draw(question, draw, None)
        rows = np.repeat(draw.rows, draw.weights)
        labels = np.repeat(
            inner_folds(question.folds, draw.rows, draw.select_rows(question.dataset)).labels, draw.weights
        )
        copied = cross_validate(
            question.dataset.take(rows), labels, gammas=question.gammas, taus=question.taus, options=question.options
        )
        assert (chosen.gamma, chosen.tau, chosen.support) == (copied.gamma, copied.tau, copied.support)
        assert chosen.cv_error == pytest.approx(copied.cv_error, rel=1e-9)
        assert chosen.coefficients == pytest.approx(copied.coefficients, rel=1e-6)
        assert chosen.intercept == pytest.approx(copied.intercept, rel=1e-6, abs=1e-9)


def test_supports_to_try_change_no_certified_choice() -> None:
    question = make_question(p=6, gap=0.0)
    record = cross_validate(
        question.dataset, question.folds, gammas=question.gammas, taus=question.taus, options=question.options
    )
    warm = replace(question, starts=(*find_starts(record), ("x0", "x5"), ("x4",)))
    draws = list(bootstrap_draws(question.dataset, question.folds, 4, 0))
    assert choose_models(warm, draws, WHAT).models == choose_models(question, draws, WHAT).models


def test_a_file_of_draws_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question, settings = make_question(), DrawOptions(store=tmp_path / "draws.jsonl")
    draws = list(bootstrap_draws(question.dataset, question.folds, 4, 0))
    first = choose_models(question, draws[:2], WHAT, settings)
    with open(settings.store, "a", encoding="utf-8") as stream:  # type: ignore[arg-type]
        stream.write('{"digest": "incompl')
    asked = list[int]()
    ask = choices.choose_from_draw
    monkeypatch.setattr(
        choices,
        "choose_from_draw",
        lambda question, draw, deadline: asked.append(draw.number) or ask(question, draw, deadline),
    )
    second = choose_models(question, draws, WHAT, settings)
    assert asked == [2, 3] and second.models[:2] == first.models and len(second.models) == 4
    assert choose_models(question, draws, WHAT, settings).models == second.models and asked == [2, 3]
    with pytest.raises(BadInput, match="has draws of other data, options"):
        choose_models(replace(question, taus=(1,)), draws, WHAT, settings)
    others = list(bootstrap_draws(question.dataset, question.folds, 2, 1))
    third = choose_models(question, others, WHAT, settings)
    assert asked == [2, 3, 0, 1]
    assert choose_models(question, others, WHAT, settings).models == third.models != second.models[:2]
    assert choose_models(question, draws, WHAT, settings).models == second.models and asked == [2, 3, 0, 1]


def test_an_expired_limit_keeps_what_is_done(tmp_path: Path) -> None:
    question = make_question()
    draws = list(bootstrap_draws(question.dataset, question.folds, 3, 0))
    none = choose_models(question, draws, WHAT, deadline=Deadline(0.0, None))
    assert none.models == () and none.notes == (
        f"bootstrap: the time limit was reached after 0 of 3 draws; {choices.MORE_DRAWS}",
    )
    deadline = Deadline(None, None)

    def stop(progress: object) -> None:
        if "1 of 3 draws done" in progress.stage:  # type: ignore[attr-defined]
            deadline.stop.set()

    some = choose_models(replace(question, hooks=Hooks(progress=stop)), draws, WHAT, deadline=deadline)
    assert len(some.models) == 1 and "the run was interrupted after 1 of 3 draws" in some.notes[0]


@pytest.mark.parametrize("one_se", [False, True])
def test_a_truncated_search_is_no_choice_of_the_procedure(one_se: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    question = make_question(one_se=one_se)
    draws = list(bootstrap_draws(question.dataset, question.folds, 3, 0))
    every = choose_models(question, draws, WHAT).models
    find = choices.answer

    def truncate(asked: Question, deadline: Deadline) -> Record:
        record = find(asked, deadline)
        if asked.dataset.fingerprint != draws[1].select_rows(question.dataset).fingerprint:
            return record
        if record.one_se is None:
            return replace(record, status="limit", gap=0.5)
        return replace(record, one_se=replace(record.one_se, estimate=True))

    monkeypatch.setattr(choices, "answer", truncate)
    found = choose_models(question, draws, WHAT, deadline=Deadline(60.0, None))
    assert found.models == (every[0], every[2]) and found.n_truncated == 1
    if one_se:  # a certificate of the minimum does not certify the choice of the rule
        return
    assert found.notes == (
        "bootstrap: the time limit was reached after 2 of 3 draws, without 1 draw whose search was stopped early; give "
        "a smaller grid, a larger relative gap for the draws, or a longer time limit",
    )
    budget = replace(question, options=replace(question.options, method="joint", mio_budget=10_000))
    assert choose_models(budget, draws, WHAT, deadline=Deadline(60.0, None)).n_truncated == 0


def test_a_draw_may_take_half_of_the_remaining_time() -> None:
    asked = ((None, 50), (0.0, 50), (100.0, 50), (100.0, 1), (12.0, 9))
    none, over, *limits = [choices._limit_draw(Deadline(seconds, None), n_rounds) for seconds, n_rounds in asked]
    assert none is None and over == 0.0
    assert limits == pytest.approx([50.0, 100.0, 10.0], abs=0.1)


@pytest.mark.parametrize(("limit", "is_started"), [(0.02, False), (100.0, True)])
def test_a_short_limit_starts_no_processes(limit: float, is_started: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("loky")
    started = list[int]()

    def start_processes(question: Question, draws: list[Draw], *rest: object) -> list[object]:
        started.append(len(draws))
        return []

    monkeypatch.setattr(choices, "_choose_in_processes", start_processes)
    monkeypatch.setattr(choices, "choose_from_draw", lambda *given: time.sleep(0.05))
    monkeypatch.setattr(choices, "_limit_draw", lambda *given: 1.0)
    monkeypatch.setattr(choices, "MIN_PROCESS_SECONDS", 0.03)
    question = make_question()
    question = replace(question, options=replace(question.options, threads=2))
    draws = list(bootstrap_draws(question.dataset, question.folds, 3, 0))
    found = list(choices._choose_each(question, draws, Deadline(limit, None)))
    assert started == ([2] if is_started else []) and len(found) == (1 if is_started else 3)


@pytest.mark.slow
def test_processes_choose_the_same_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "MIN_PROCESS_SECONDS", 0.0)
    question = make_question()
    draws = list(bootstrap_draws(question.dataset, question.folds, 6, 0))
    both = replace(question, options=replace(question.options, threads=2))
    assert choose_models(both, draws, WHAT).models == choose_models(question, draws, WHAT).models


def test_a_draw_without_a_model_is_stated() -> None:
    X, y = np.arange(12.0).reshape(-1, 1) ** 2, np.repeat([0.0, 1.0], 6)
    data = Dataset.from_arrays(X, y, aux={"g": np.repeat([0, 1, 2, 3], 3)})
    data = as_two_classes(replace(data, y=np.array([0.0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1])))
    question = Question(data, make_folds("groups:g", data), (1.0,), (1,), SearchOptions.of(loss="logistic", threads=1))
    found = choose_models(question, list(bootstrap_draws(data, question.folds, 8, 0)), WHAT)
    assert found.failed and found.models and len(found.failed) + len(found.models) == 8
    assert isinstance(found.failed[0], FailedDraw) and "no model could be chosen from" in found.notes[0]


def test_a_reason_names_the_rows_of_the_draw() -> None:
    """In most halves the rare level has rows of a single class."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=40), [1.0] * 3 + [0.0] * 37])
    data = as_two_classes(Dataset.from_arrays(X, [0.0, 1.0, 1.0, *([0.0, 1.0] * 18), 0.0], ["a", "rare"]))
    how = SearchOptions.of(loss="logistic", threads=1, restrictions=Restrictions(adjust=("rare",)))
    question = Question(data, make_folds("3", data), (0.1,), (0, 1), how)
    for kind, word in ((half_draws, "half"), (bootstrap_draws, "draw")):
        chosen = [choices.choose_from_draw(question, draw, None) for draw in kind(data, question.folds, 30, 0)]
        reasons = [one.reason for one in chosen if isinstance(one, FailedDraw)]
        assert any(f"adjust: on the rows of this {word}, column 'rare' separates" in reason for reason in reasons)
        assert not any("on all rows" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bounds"}, "method bounds"),
        ({"model": "average"}, "model average"),
    ],
)
def test_procedures_that_are_not_repeated_are_refused(options: dict[str, str], message: str) -> None:
    question = make_question(**options)
    with pytest.raises(BadInput, match=message):
        choose_models(question, [], WHAT)

"""The repetitions that the command `solve` requests: their options, their time, and their order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.inference.choices import DrawOptions
from sparsecv_mio.inference.repetitions import add_repetitions, request_bootstrap, request_pairs
from sparsecv_mio.model_space import interval
from sparsecv_mio.search.api import answer
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.search.question import Question


def make_question() -> Question:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 4))
    data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=20))
    return Question(data, sc.make_folds("4", data), (0.1, 1.0), (1, 2), SearchOptions.of(threads=1), Hooks())


def test_both_repetitions_share_a_file_and_agree_with_the_functions(tmp_path: Path) -> None:
    question = make_question()
    record = answer(question)
    requested, options = (request_bootstrap(3), request_pairs("2:0.8")), DrawOptions(7, store=tmp_path / "draws.jsonl")
    made = add_repetitions(record, question, requested, options, Deadline(None, None))
    assert made.bootstrap == sc.bootstrap(record, question.dataset, 3, seed=7, threads=1).bootstrap
    halves = sc.stability_selection(record, question.dataset, 2, threshold=0.8, seed=7, threads=1)
    assert made.stability_selection == halves.stability_selection
    assert add_repetitions(record, question, requested, options, Deadline(None, None)) == made
    assert len((tmp_path / "draws.jsonl").read_text(encoding="utf-8").splitlines()) == 1 + 3 + 4


def test_a_stop_leaves_the_answer_and_states_the_missing_draws() -> None:
    question, stop = make_question(), threading.Event()
    record = answer(question)
    stop.set()
    requested = request_bootstrap(3), request_pairs("2")
    made = add_repetitions(record, question, requested, DrawOptions(), Deadline(None, stop))
    assert made.bootstrap is None and made.stability_selection is None
    assert made.warnings[-2:] == (
        "bootstrap: the run was interrupted after 0 of 3 draws",
        "stability_selection: the run was interrupted after 0 of 4 draws",
    )
    assert replace(made, warnings=record.warnings) == record


@pytest.mark.parametrize("text", ["x", "5:", "5:0.5", "5:1.2", "0", "2.5"])
def test_wrong_pairs_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="^stability_selection: "):
        request_pairs(text)


def test_an_interval_of_gamma_is_refused_before_the_search() -> None:
    question = replace(make_question(), gammas=interval("0.1..1"))
    with pytest.raises(BadInput, match="^bootstrap: requires a grid of gammas"):
        request_bootstrap(3).check_question(question, DrawOptions())


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [
        (request_bootstrap, {"draws": 2.0}, "bootstrap: '2.0' is not an integer"),
        (request_bootstrap, {"draws": True}, "bootstrap: 'True' is not an integer"),
        (request_bootstrap, {"draws": None}, "bootstrap: 'None' is not an integer"),
        (request_bootstrap, {"draws": 2, "level": "a"}, "level: a is out of range"),
        (request_pairs, {"pairs": 2.0}, "stability_selection: '2.0' is not an integer"),
        (request_pairs, {"pairs": 2, "threshold": "a"}, "stability_selection: threshold a is out of range"),
        (DrawOptions, {"seed": 2.0}, "seed: '2.0' is not an integer"),
    ],
)
def test_wrong_types_are_refused(make: Callable[..., object], given: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=f"^{words}"):
        make(**given)
    assert request_bootstrap(np.int64(3)).n_draws == 3  # type: ignore[arg-type]

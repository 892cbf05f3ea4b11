"""The comparison of answers in `scripts/bench/_same_answer.py`, which judges changes of the search."""

import copy
import sys

import pytest
from repository import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "bench"))
from _same_answer import difference_of_answers  # noqa: E402

RECORD = {
    "schema": "sparsecv/2", "status": "proved", "gamma": 0.1, "tau": 2, "cv_error": 3.0, "lower": 2.9997,
    "upper": 3.0 + 1e-10, "estimate": False, "data": {"fingerprint": "sha256:1"}, "folds": {"digest": "sha256:2"},
    "request": {"gap": 1e-4}, "continuous": None, "least": None, "one_se": None, "nested": None,
    "refit": {"gamma": 0.1, "tau": 2, "objective": 40.0, "lower": 39.999, "upper": 40.0, "proved": True},
    "table": [
        {"gamma": 0.1, "tau": 1, "cv_error": 4.1, "lower": 3.5, "upper": 5.0, "estimate": True},
        {"gamma": 0.1, "tau": 2, "cv_error": 3.0, "lower": 2.9999, "upper": 3.0 + 1e-10, "estimate": False},
    ],
    "stability": {"instability_lower": 1.0, "instability_upper": 2.0, "chosen": None},
}  # fmt: skip


def changed(*path_and_value):
    """Return the record with one field changed."""
    record = copy.deepcopy(RECORD)
    *path, name, value = path_and_value
    place = record
    for step in path:
        place = place[step]
    place[name] = value
    return record


def test_equal_records_have_the_same_answer():
    assert not difference_of_answers(RECORD, copy.deepcopy(RECORD))
    assert not difference_of_answers(None, None)


@pytest.mark.parametrize(
    "same",
    [
        changed("lower", 2.9999),
        changed("table", 0, "lower", 4.0),
        changed("table", 0, "cv_error", 3.7),  # an estimate
        changed("cv_error", 3.0 + 5e-11),
        changed("refit", "lower", 39.0),
        changed("stability", "instability_upper", None),
        changed("work", {"nodes": 7}),
    ],
)
def test_other_bounds_and_estimates_are_the_same_answer(same):
    assert not difference_of_answers(RECORD, same)
    assert not difference_of_answers(same, RECORD)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (None, "record"),
        (changed("status", "limit"), "status"),
        (changed("tau", 1), "tau"),
        (changed("gamma", 0.2), "gamma"),
        (changed("data", "fingerprint", "sha256:3"), "data.fingerprint"),
        (changed("folds", "digest", "sha256:3"), "folds.digest"),
        (changed("cv_error", 3.0 - 1e-6), "answer"),
        (changed("lower", 3.1), "answer: interval"),
        (changed("table", 0, "lower", 5.5), "table (gamma 0.1, tau 1): interval"),
        (changed("table", 1, "cv_error", 3.0001), "table (gamma 0.1, tau 2)"),
        (changed("table", RECORD["table"][:1]), "table (gamma 0.1, tau 2)"),
        (changed("refit", "objective", 40.1), "refit (gamma 0.1, tau 2)"),
        (changed("stability", "instability_lower", 2.1), "stability (gamma 0.1, tau 2): interval"),
    ],
)
def test_another_answer_is_reported(other, name):
    for differs in (difference_of_answers(RECORD, other), difference_of_answers(other, RECORD)):
        assert name in differs.fields


def test_gamma_of_an_interval_may_move_within_the_gap():
    first, second = changed("continuous", {"low": 0.01}), changed("continuous", {"low": 0.01})
    second["gamma"], second["cv_error"] = 0.11, 3.0002
    second["refit"]["gamma"] = 0.11
    second["refit"]["objective"] = 41.0
    assert not difference_of_answers(first, second)
    second["cv_error"] = 3.001
    assert "answer" in difference_of_answers(first, second).fields
    second["cv_error"], second["tau"] = 3.0, 3
    assert "tau" in difference_of_answers(first, second).fields

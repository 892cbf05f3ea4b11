"""The rules by which `scripts/bench/guard.py` fails."""

import sys
from argparse import Namespace

import pytest
from repository import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "bench"))
from _record_difference import Difference  # noqa: E402
from _record_runs import FIXED, Run  # noqa: E402
from guard import QUESTIONS, Question, geometric_mean, questions_to_repeat  # noqa: E402
from same_records import Measured  # noqa: E402

LIMITS = Namespace(most=1.15, seconds=0.05, mean=1.0)


def question(*cpu: tuple[float, float]) -> Question:
    """Return a question that was measured with these CPU seconds, before and after."""
    run = Run("solve", ())
    return Question(run, [Measured(run, Difference(), seconds, seconds, True, True, ()) for seconds in cpu])


@pytest.mark.parametrize(
    ("cpu", "is_slower"),
    [
        ([(1.0, 1.16)], True),
        ([(1.0, 1.14)], False),  # 140 ms, but 14%
        ([(0.1, 0.149)], False),  # 49%, but 49 ms
        ([(0.1, 0.151)], True),
        ([(1.0, 1.16), (1.01, 1.0)], False),  # cleared by the second measurement
    ],
)
def test_a_question_fails_beyond_both_limits(cpu: list[tuple[float, float]], is_slower: bool) -> None:
    assert question(*cpu).is_slower(LIMITS) is is_slower


def test_the_mean_is_judged_to_two_decimals() -> None:
    assert geometric_mean([1.004, 1.004]) == 1.0 and geometric_mean([1.006, 1.006]) == 1.01
    assert geometric_mean([2.0, 0.5]) == 1.0


def test_questions_that_make_the_guard_fail_are_measured_again() -> None:
    fast, slow, failing = question((1.0, 0.5)), question((1.0, 1.1)), question((1.0, 1.2))
    assert questions_to_repeat([fast, slow], LIMITS) == []
    assert questions_to_repeat([fast, slow, failing], LIMITS) == [failing]
    assert questions_to_repeat([slow, failing], LIMITS) == [slow, failing]


def test_every_question_is_a_run_of_the_set() -> None:
    assert set(QUESTIONS) <= {line[2:] for line in FIXED.strip("\n").splitlines()}

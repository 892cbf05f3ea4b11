"""The slowest kind of task first, as far as is known; tasks whose worker died before all others."""

from __future__ import annotations

from sparsecv_mio.batch.folder import Outcome
from sparsecv_mio.batch.order import Attempt, Order
from sparsecv_mio.batch.plan import Task, tasks_of

PLAN = {"data": [{"design": "toeplitz", "n": [20, 30, 40], "p": 3, "support": 1}], "vary": {"seed": [0, 1, 2]}}


def outcome(task: Task, seconds: float) -> Outcome:
    return Outcome(task.address, task.to_dict(), "done", seconds=seconds)


def rows(attempt: Attempt) -> int:
    return int(dict(attempt.task.source.spec)["n"])


def test_one_of_every_kind_and_then_the_slowest() -> None:
    order, tasks = Order(), tasks_of(PLAN)
    for task in tasks:
        order.add(Attempt(task))
    first = [order.next() for _ in range(3)]
    assert [rows(one) for one in first] == [20, 30, 40]
    for one, seconds in zip(first, (1.0, 3.0, 2.0), strict=True):
        order.learn(outcome(one.task, seconds))
    second = order.next()
    assert rows(second) == 30
    order.learn(outcome(second.task, 0.5))  # the last one that was seen tells
    rest = [order.next() for _ in range(5)]
    assert [rows(one) for one in rest] == [40, 40, 20, 20, 30] and not order
    assert {one.task.address for one in (*first, second, *rest)} == {task.address for task in tasks}


def test_what_was_done_before_tells_too_and_suspects_come_first() -> None:
    order, tasks = Order(), tasks_of(PLAN)
    order.learn(outcome(tasks[0], 1.0))
    order.learn(outcome(tasks[3], 9.0))
    for task in (*tasks[1:3], *tasks[4:6]):
        order.add(Attempt(task))
    assert rows(order.next()) == 30 and order.lost == 0
    order.add(Attempt(tasks[8], lost=1))
    assert order.lost == 1 and rows(order.next()) == 40 and order.lost == 0

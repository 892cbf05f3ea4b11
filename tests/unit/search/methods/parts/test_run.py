"""Every method keeps its contract, and the loop drives it from the first step to the last."""

from __future__ import annotations

import inspect

import pytest
from drawn_search import drawn_run

from sparsecv_mio.search.methods.parts.run import Course, GridMethod, Run, Stored, run_to_end
from sparsecv_mio.search.observers.watched import Watched
from sparsecv_mio.words import Method

METHODS = [str(word) for word in Method if word not in (Method.AUTO, Method.DESCENT)]


def members(protocol: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(protocol) if not name.startswith("_")}


def missing(one: object, protocol: type) -> list[str]:
    """Members of a protocol that an object has not."""
    return [name for name in sorted(members(protocol)) if not hasattr(one, name)]


@pytest.mark.parametrize("method", [*METHODS, "descent"])
def test_every_search_can_be_driven_and_watched(method: str) -> None:
    search = drawn_run(method)
    assert missing(search, Course) == [] and missing(search, Watched) == []
    assert {"begin", "step", "finished", "finish"} <= members(Course) and search.context.gap == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_the_contract(method: str) -> None:
    one = drawn_run(method).method
    assert missing(one, GridMethod) == [] and isinstance(one.run, Run) and one.run.context is one.context
    assert [missing(part, Stored) for part in one.parts] == [[]] * len(one.parts)
    assert one.mios() == 0 and one.engine() and one.open.shape == one.context.shape and not one.exhausted


class Three:
    """Three steps."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @property
    def finished(self) -> bool:
        return len(self.done) == 3

    def step(self) -> None:
        self.done.append("step")

    def finish(self) -> None:
        self.done.append("finish")


def test_the_loop_steps_until_it_is_finished() -> None:
    course = Three()
    run_to_end(course)  # type: ignore[arg-type]
    assert course.done == ["step", "step", "step", "finish"]

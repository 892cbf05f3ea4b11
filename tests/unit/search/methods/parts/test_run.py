"""Every method keeps the contract of a strategy."""

from __future__ import annotations

import inspect

import pytest
from drawn_search import drawn_run

from sparsecv_mio.search.methods.parts.run import CellMethod, Strategy
from sparsecv_mio.words import Method


def members(protocol: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("method", [str(word) for word in Method if word is not Method.AUTO])
def test_every_method_is_a_strategy(method: str) -> None:
    run = drawn_run(method)
    wanted = members(Strategy) if method == "descent" else members(CellMethod)
    assert {"begin", "step", "finished", "archive", "resume"} <= wanted
    assert not [name for name in wanted if name != "reported" and not hasattr(run, name)]
    assert run.context.gap == 0.0

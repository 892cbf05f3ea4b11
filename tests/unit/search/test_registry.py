"""Methods by their words, what `auto` means, and how many threads a run has."""

from __future__ import annotations

import pytest
from drawn_search import drawn, drawn_run
from runs import new_run

from sparsecv_mio.search.methods.descent import Descent
from sparsecv_mio.search.methods.joint import JointSearch
from sparsecv_mio.search.methods.one_by_one import OneByOne
from sparsecv_mio.search.methods.rounds import Rounds
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.registry import ORDERS, method_for
from sparsecv_mio.words import Method

KINDS = {
    "rounds": Rounds, "joint": JointSearch, "algorithm1": OneByOne, "grid": OneByOne, "bounds": OneByOne,
    "descent": Descent,
}  # fmt: skip


def test_every_word_has_its_kind() -> None:
    assert set(KINDS) | {"auto"} == {str(word) for word in Method}
    assert set(ORDERS) == {Method(word) for word, kind in KINDS.items() if kind is OneByOne}
    for word, kind in KINDS.items():
        assert isinstance(drawn_run(word) if kind is Descent else drawn_run(word).method, kind), word


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_auto_hands_vendors_to_joint(backend: str) -> None:
    assert method_for(SearchOptions.of(backend=backend), 1, 5, 5) is Method.JOINT


def test_a_descent_estimates_many_columns() -> None:
    data, folds, grid = drawn(p=520, n=12, folds="3")
    assert new_run(data, folds, grid, method="descent").rows.saddle
    assert not drawn_run("descent").rows.saddle

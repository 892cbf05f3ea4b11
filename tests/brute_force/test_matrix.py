"""Every method on every kind of numbers, folds, weights, restrictions and options, drawn together, by enumeration."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from draws import KNOWN, METHODS, VENDORS, WAYS, WORDS, Draw, contradicted, drawn
from judge import wrong
from zoo import FOLDS, KINDS, RESTRICTED, WEIGHTS, hostile_problem

from sparsecv_mio.formulation import near_ties
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.problems import restricted
from sparsecv_mio.trees.subsets import FIRST_NODES, BestSubsets

BLOCKS = [range(first, first + 8) for first in range(0, 256, 8)]
MANY = [range(first, first + 200) for first in range(10_000, 20_000, 200)]


def check(seeds: range, backend: str = "native") -> None:
    for seed in seeds:
        draw = drawn(seed, backend)
        assert [*contradicted(draw)] == [], (seed, draw.kinds, draw.way, draw.words)


@pytest.mark.parametrize("seeds", [*BLOCKS, *(pytest.param(many, marks=pytest.mark.slow) for many in MANY)])
def test_searches(seeds: range) -> None:
    check(seeds)


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("backend", VENDORS)
def test_other_solvers(backend: str, count: int) -> None:
    usable = get_backend(backend).available()
    if not usable.usable:
        pytest.skip(usable.why)
    check(range(count), backend)


@pytest.fixture
def only_by_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own trees decide nothing at their first nodes, so that every restricted cell goes to the vendor's solver."""
    whole = restricted.solve_with_constraints

    def tree(*args: Any, effort: int, **more: Any) -> BestSubsets:
        found = whole(*args, effort=effort, **more)
        if effort > FIRST_NODES:
            return found
        left = {"complete": False, "candidates": (), "values": (), "lower": 0.0}
        unproved = {tau: replace(best, **left) for tau, best in found.by_size.items()}
        return replace(found, finished=False, by_size=unproved)

    for module in (restricted, near_ties):
        monkeypatch.setattr(module, "solve_with_constraints", tree)


@pytest.mark.parametrize("seed", [300, pytest.param(301, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", RESTRICTED[2:])
@pytest.mark.parametrize("backend", VENDORS)
@pytest.mark.usefixtures("only_by_vendor")
def test_restricted_cells_by_other_solvers(backend: str, kind: str, seed: int) -> None:
    if not get_backend(backend).available().usable:
        pytest.skip(f"no {backend}")
    kinds = {"kind": KINDS[0], "folds": FOLDS[0], "weights": WEIGHTS[0], "restricted": kind}
    case = hostile_problem(seed, **kinds)
    case = replace(case, gammas=case.gammas[:1], taus=case.taus[:2])
    words = {"method": "grid", "backend": backend, "gap": 0.0, "threads": 1}
    assert [*contradicted(Draw(case, kinds, "as they are", words, None))] == []


@pytest.mark.parametrize("seed", [1258, 3267])
def test_draws_that_failed_once(seed: int) -> None:
    """A refined pair that the table knew less of; a CV error of the size of rounding."""
    draw = drawn(seed)
    words = {name: word for name, word in draw.words.items() if name != "time_limit"}
    assert [*contradicted(replace(draw, words=words))] == []


def test_every_kind_and_word_is_drawn() -> None:
    draws = [drawn(seed) for seed in range(256)]
    count = Counter((name, word) for draw in draws for name, word in (*draw.kinds.items(), *draw.words.items()))
    wanted = [("kind", KINDS), ("folds", FOLDS), ("weights", WEIGHTS), ("restricted", RESTRICTED), ("method", METHODS)]
    wanted += [(name, some) for name, (_, some) in WORDS.items() if name in KNOWN]
    assert [(name, word) for name, some in wanted for word in some if count[name, word] < 3] == []
    assert set(WAYS) == {draw.way for draw in draws} and sum(draw.steps is not None for draw in draws) > 10
    assert {draw.problem.scale for draw in draws} == {"length", "variance", "none"}
    assert {draw.problem.intercept for draw in draws} == {"fold", "global", "none"}
    pairs = {(draw.words["method"], draw.kinds["folds"]) for draw in draws}
    assert len(pairs) >= 0.9 * len(METHODS) * len(FOLDS)


def test_what_is_wrong_is_found() -> None:
    """The same search with one number altered, each in turn."""
    kinds = {"kind": "as drawn", "folds": "as drawn", "weights": "none", "restricted": "none"}
    draw = Draw(hostile_problem(5, **kinds), kinds, "as they are", {"method": "grid", "gap": 0.0}, None)
    record, snapshot = draw.solved()
    assert record.status == "proved" and [*wrong(draw.problem, record, snapshot)] == []
    for name, factor in (("lower", 1.01), ("upper", 0.99)):
        for at in np.argwhere(snapshot.cells.decided)[:5]:
            cells = snapshot.cells.copy()
            getattr(cells, name)[tuple(at)] *= factor
            assert [*wrong(draw.problem, record, replace(snapshot, cells=cells))]
        for row, at in ((row, i) for i, row in enumerate(record.table)):
            number = getattr(row, name) * factor
            table = (*record.table[:at], replace(row, **{name: number}), *record.table[at + 1 :])
            assert [*wrong(draw.problem, replace(record, table=table))], (name, row)


@pytest.mark.parametrize("seed", [9301236])
def test_the_rows_decide_about_a_sign_that_rounding_hides(seed: int) -> None:
    """A third column with a valid sign improves the fit by 1e-8 of the objective; moments cannot resolve this."""
    assert [*contradicted(drawn(seed))] == []

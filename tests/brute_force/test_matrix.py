"""Every method on every kind of numbers, folds, weights, restrictions and options, drawn together, by enumeration."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from judge import wrong
from truth import Truth
from zoo import FOLDS, KINDS, RESTRICTED, WEIGHTS, RandomProblem, hostile_problem

from sparsecv_mio import thresholds
from sparsecv_mio.bounds import cv_error
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search import by_rows, estimates, loop, rounds, shared_trees
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.one_by_one import FIRST_NODES, RestrictedCells
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.trees.path_cells import PathResult

SEARCH_FIRST = [(estimates, "SMALL", 0)]
ON_ROWS = [(loop, "by_rows", lambda data, folds: True), (cv_error, "is_wide", lambda data: True)]
WAYS: dict[str, list[tuple[Any, str, Any]]] = {  # that large data take, by small thresholds
    "as they are": [],
    "folds search first": SEARCH_FIRST,
    "folds search first by rows": [*SEARCH_FIRST, (thresholds, "PRODUCT_BYTES", 1)],
    "outward": [*SEARCH_FIRST, (rounds, "SMALL", 0), (rounds, "FIRST_EFFORT", 1)],
    "outward, more effort": [*SEARCH_FIRST, (rounds, "SMALL", 0), (rounds, "FIRST_EFFORT", 8)],
    "trees are expensive": [(rounds, "EXPENSIVE_NODES", -1), (shared_trees, "FEWEST_FOLDS", 4)],
    "by rows": ON_ROWS,
    "by rows, few columns at once": [*ON_ROWS, (thresholds, "PRODUCT_BYTES", 1), (by_rows, "EXACT_COLUMNS", 2)],
    "branch on the rows": [*ON_ROWS, *((by_rows, name, n) for name, n in (("EXACT_COLUMNS", 2), ("EXACT_BYTES", 0)))],
}
BY_ROWS = tuple(way for way, places in WAYS.items() if places[:1] == ON_ROWS[:1])
METHODS = ("rounds", "auto", "joint", "algorithm1", "grid", "bounds", "descent")
WORDS: dict[str, tuple[float, tuple[Any, ...]]] = {  # how often an option is given, and what it may be
    "gap": (1.0, (0.0, 0.0, 1e-4, 5e-2)),
    "one_se": (0.2, (True,)),
    "oracles": (0.4, ("none", "glru", "iacv", "treecv", "glru,iacv,treecv")),
    "engine": (0.5, ("enumerate", "shared", "per-fold")),
    "mio_budget": (0.2, (0, 3, 20, 60)),
    "stability": (0.1, (0.1, 10.0)),
    "refine": (0.05, (True,)),
    "threads": (0.1, (2,)),
    "tau_step": (0.5, ("saddle",)),
    "time_limit": (0.05, (1e-9, 1e-2)),
}
KNOWN = {field.name for field in fields(SearchOptions)}
VENDORS = ("highs", "gurobi", "scip")
SEEDS, BLOCK = 320, 8


@dataclass(frozen=True)
class Draw:
    """A problem and what is asked; `way` is what its few columns are taken for; `steps` after which it is stopped."""

    problem: RandomProblem
    kinds: dict[str, str]
    way: str
    words: dict[str, Any]
    steps: int | None

    def solved(self) -> tuple[Record, Any]:
        """The record, and the snapshot that it is made of; that of a run which is stopped may be missing."""
        case, snapshots, stop, told = self.problem, list[Any](), threading.Event(), Counter[str]()

        def progress(state: object) -> None:
            told["steps"] += 1
            if self.steps is not None and told["steps"] > self.steps:
                stop.set()

        with pytest.MonkeyPatch.context() as patch:
            for place in WAYS[self.way]:
                patch.setattr(*place)
            record = cross_validate(
                case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept,
                restrictions=case.restrictions, found=snapshots.append, stop=stop, progress=progress, **self.words,
            )  # fmt: skip
        return record, snapshots[0] if snapshots else None


def drawn(seed: int, backend: str = "native") -> Draw:
    """Draw a problem and options; what does not go together is drawn again."""
    rng = np.random.default_rng([43, seed])
    while True:
        kinds = drawn_kinds(rng, backend)
        words = {"method": str(rng.choice(METHODS)), "threads": 1}
        words |= {name: some[rng.integers(len(some))] for name, (share, some) in WORDS.items() if rng.random() < share}
        if backend != "native":
            words |= {"backend": backend, "method": str(rng.choice(METHODS[2:5])), "mio_budget": None}
        way = str(rng.choice([*WAYS])) if rng.random() < 0.6 else "as they are"
        steps = int(rng.integers(25)) if rng.random() < 0.1 else None
        rows, columns = (24, 6) if backend == "native" else (14, 4)
        try:
            case = hostile_problem(int(rng.integers(2**31)), **kinds, rows=rows, columns=columns)
            words = {name: word for name, word in words.items() if name in KNOWN}
            SearchOptions.of(**words, restrictions=case.restrictions).check_data(case.data, case.folds)
        except BadInput:
            continue
        if way in BY_ROWS and kinds["kind"] == "extreme units" and case.scale == "none":
            continue  # rows keep the units of the columns, 200 orders of magnitude apart
        if backend != "native":
            case = replace(case, gammas=case.gammas[:1], taus=case.taus[:2])
        return Draw(case, kinds, way, words, steps)


def drawn_kinds(rng: np.random.Generator, backend: str) -> dict[str, str]:
    """Draw what a problem is like; vendors' solvers are no match for columns that rounding makes up."""
    every = {"kind": (0.6, KINDS), "folds": (0.5, FOLDS), "weights": (0.3, WEIGHTS), "restricted": (0.4, RESTRICTED)}
    at = {name: str(rng.choice(some[1:]) if rng.random() < share else some[0]) for name, (share, some) in every.items()}
    return at if backend == "native" else at | {"kind": KINDS[0]}


def contradicted(draw: Draw) -> Iterator[str]:
    """Yield what enumeration, and `verify` by its own, find wrong with a search."""
    try:
        record, snapshot = draw.solved()
    except (BadInput, OutOfTime) as error:  # no column varies, a size that no support can have, no answer yet
        if "\n" in str(error):
            yield f"refused in more than one line: {error}"
        return
    yield from wrong(draw.problem, record, snapshot)
    report = verify(type(record).from_json(record.to_json()), draw.problem.data, draw.problem.folds)
    yield from (f"verify: {failure}" for failure in report.failures)


def check(seeds: range, backend: str = "native") -> None:
    for seed in seeds:
        draw = drawn(seed, backend)
        assert [*contradicted(draw)] == [], (seed, draw.kinds, draw.way, draw.words)


@pytest.mark.parametrize("block", range(SEEDS // BLOCK))
def test_searches(block: int) -> None:
    check(range(BLOCK * block, BLOCK * (block + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(50))
def test_searches_at_length(block: int) -> None:
    check(range(10_000 + 200 * block, 10_200 + 200 * block))


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
    whole = RestrictedCells.tree

    def tree(self: RestrictedCells, *args: Any, **more: Any) -> PathResult:
        found = whole(self, *args, **more)
        if args[3] > FIRST_NODES:
            return found
        left = {"complete": False, "candidates": (), "values": (), "lower": 0.0}
        return replace(found, finished=False, cells={tau: replace(cell, **left) for tau, cell in found.cells.items()})

    monkeypatch.setattr(RestrictedCells, "tree", tree)


@pytest.mark.parametrize("kind", RESTRICTED[2:])
@pytest.mark.parametrize("backend", VENDORS)
@pytest.mark.usefixtures("only_by_vendor")
def test_restricted_cells_by_other_solvers(backend: str, kind: str) -> None:
    if not get_backend(backend).available().usable:
        pytest.skip(f"no {backend}")
    kinds = {"kind": KINDS[0], "folds": FOLDS[0], "weights": WEIGHTS[0], "restricted": kind}
    for seed in range(300, 302):
        case = hostile_problem(seed, **kinds)
        case = replace(case, gammas=case.gammas[:1], taus=case.taus[:2])
        words = {"method": "grid", "backend": backend, "gap": 0.0, "threads": 1}
        assert [*contradicted(Draw(case, kinds, "as they are", words, None))] == []


def test_every_kind_and_word_is_drawn() -> None:
    draws = [drawn(seed) for seed in range(SEEDS)]
    count = Counter((name, word) for draw in draws for name, word in (*draw.kinds.items(), *draw.words.items()))
    wanted = [("kind", KINDS), ("folds", FOLDS), ("weights", WEIGHTS), ("restricted", RESTRICTED), ("method", METHODS)]
    wanted += [(name, some) for name, (_, some) in WORDS.items() if name in KNOWN]
    assert [(name, word) for name, some in wanted for word in some if count[name, word] < 3] == []
    assert set(WAYS) == {draw.way for draw in draws} and sum(draw.steps is not None for draw in draws) > 10
    assert {draw.problem.scale for draw in draws} == {"length", "variance", "none"}
    assert {draw.problem.intercept for draw in draws} == {"fold", "global", "none"}
    pairs = {(draw.words["method"], draw.kinds["folds"]) for draw in draws}
    assert len(pairs) >= 0.9 * len(METHODS) * len(FOLDS)


def test_bounds_without_branching() -> None:
    for seed in range(3000, 3016):
        case = hostile_problem(seed, "as drawn", FOLDS[1 + seed % (len(FOLDS) - 1)], "none", "none")
        data, truth = standardize(case.data, case.scale, case.intercept), Truth(case)
        table = compute_bounds(data, case.folds, case.gammas, case.taus)
        slip = 1e-9 * float(case.data.y @ case.data.y)
        for (g, gamma), (t, tau) in product(enumerate(case.gammas), enumerate(case.taus)):
            (low, high, *_), interval = truth.h(gamma, tau), table.cv_interval(g, t)
            assert interval.lower <= low + slip and high - slip <= interval.upper, (seed, gamma, tau)


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

"""Searches drawn at random: a hostile problem, options that go together, and a way that large data take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from engines import ALWAYS_WEAKEST, ENGINES, by_size, patch_all, planned
from judge import wrong
from zoo import FOLDS, KINDS, RESTRICTED, WEIGHTS, RandomProblem, hostile_problem

from sparsecv_mio import thresholds
from sparsecv_mio.bounds import cv_error
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.search import plan
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.problems import many_columns, registry

SEARCH_FIRST = [(plan, "SMALL", 0)]
ON_ROWS = [(registry, "has_large_matrices", lambda data, folds: True), (cv_error, "is_wide", lambda data: True)]
WAYS: dict[str, list[tuple[Any, str, Any]]] = {  # that large data take, by small thresholds
    "as they are": [],
    "folds search first": SEARCH_FIRST,
    "folds search first by rows": [*SEARCH_FIRST, (thresholds, "PRODUCT_BYTES", 1)],
    "by size": by_size(1),
    "by size, more nodes": by_size(8),
    "by size, the weakest first": [*by_size(1), *ALWAYS_WEAKEST],
    "trees are expensive": [(plan, "FEWEST_FOLDS", 4), planned(bounds_before_trees=True, cheap_nodes=0)],
    **ENGINES,
    "by rows": ON_ROWS,
    "by rows, few columns at once": [*ON_ROWS, (thresholds, "PRODUCT_BYTES", 1), (many_columns, "EXACT_COLUMNS", 2)],
    "branch on the rows": [*ON_ROWS, (many_columns, "EXACT_COLUMNS", 2), (many_columns, "PRODUCT_BYTES", 0)],
}
BY_ROWS = tuple(way for way, places in WAYS.items() if places[:1] == ON_ROWS[:1])
METHODS = ("rounds", "auto", "joint", "algorithm1", "grid", "bounds", "descent")
WORDS: dict[str, tuple[float, tuple[Any, ...]]] = {  # how often an option is given, and what it may be
    "gap": (1.0, (0.0, 0.0, 1e-4, 5e-2)),
    "one_se": (0.2, (True,)),
    "sources": (0.4, ("none", "-full-data-trees", "-left-out-trees,-support-fits", "weighted-trees,enclosures")),
    "mio_budget": (0.2, (0, 3, 20, 60)),
    "stability": (0.1, (0.1, 10.0)),
    "refine": (0.05, (True,)),
    "threads": (0.1, (2,)),
    "time_limit": (0.05, (1e-9, 1e-2)),
}
KNOWN = {field.name for field in fields(SearchOptions)}
VENDORS = ("highs", "gurobi", "scip")


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
            patch_all(patch, WAYS[self.way])
            record = case.solve(found=snapshots.append, stop=stop, progress=progress, **self.words)
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
        if way == "branch on the rows" and kinds["kind"] == "huge offsets" and case.intercept == "none":
            continue  # a valid upper bound may be 20 orders of magnitude too high, and `verify` refuses its allowance
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

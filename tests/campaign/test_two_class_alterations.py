"""Altered records of two classes: every number of five kinds of records in four ways; started by hand, in minutes.

An alteration is refused by `verify`, is no record at all, or is of a field that `verify` lists as read, wholly or
beside what bounds it. What is left are claims that hold as well: an upper end that is raised, a lower end that is
lowered or stays below the truth, which `verify` finds by branching.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from altered_numbers import altered, multiplied, numbers

from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.search.api import solve

FACTORS = (1.001, 0.5, -1.0, 1e3)
WEAKER = ("lower", "upper")
GRID: dict[str, Any] = {"loss": "logistic", "gammas": [0.1, 1.0], "taus": [1, 2, 3], "folds": "4"}


def drawn() -> Dataset:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 4))
    data = Dataset.from_arrays(X, (X[:, 0] - X[:, 2] + rng.logistic(size=60) > 0).astype(float))
    return as_two_classes(replace(data, aux={"w": rng.integers(1, 4, size=60).astype(float)}))


def interrupted(data: Dataset) -> Record:
    stop, seen = threading.Event(), Counter[str]()

    def watch(_: Any) -> None:
        seen["looks"] += 1
        if seen["looks"] >= 3:
            stop.set()

    return solve(data, progress=watch, stop=stop, **GRID)


def record_of(kind: str, data: Dataset) -> Record | PathRecord:
    if kind == "path":
        return best_subsets(data, gammas=[0.1, 1.0], taus=[1, 2], loss="logistic")
    if kind == "interrupted":
        return interrupted(data)
    how: dict[str, Any] = {
        "one-se": {"one_se": True},
        "weighed": {"weights": "w", "class_weight": "balanced"},
        "every-pair": {"intercept": "none", "gap": 0.0, "scale": "variance", "force_in": "x3"},
    }[kind]
    return solve(data, **GRID, **how)


def moved(value: float, factor: float) -> float:
    """Return a number multiplied; zeros and whole numbers that stay the same are moved by a step."""
    other = multiplied(value, factor)
    return other if other != value else value + (1 if isinstance(value, int) else 1e-3)


def read_fields(record: Record | PathRecord, data: Dataset) -> set[str]:
    """Return the fields that `verify` lists as read, wholly or beside what bounds them."""
    report = verify(record, data)
    assert report.ok, report.failures
    return {name for how, names in report.fields if how.endswith("read") or " is read" in how for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one-se", "path", "weighed", "every-pair", "interrupted"])
def test_every_altered_number(kind: str) -> None:
    data = drawn()
    record = record_of(kind, data)
    whole, counts, kept = json.loads(record.to_json()), Counter[str](), []
    read = read_fields(record, data)
    for path, value in numbers(whole):
        field = ".".join("[]" if isinstance(step, int) else step for step in path).replace(".[]", "[]")
        inside = {field, *(field[:k] for k, letter in enumerate(field) if letter in ".[")}
        for factor in FACTORS:
            counts["alterations"] += 1
            try:
                report = verify(type(record).from_json(altered(whole, path, moved(value, factor))), data)
            except SparseCVError:
                counts["no record"] += 1
                continue
            if not report.ok:
                counts["refused"] += 1
            elif inside & read:
                counts["read"] += 1
            else:
                counts["weaker claims"] += 1
                kept.append((".".join(map(str, path)), factor))
    print(kind, dict(counts), kept)
    assert counts["alterations"] >= 150
    assert [one for one in kept if one[0].split(".")[-1].removeprefix("instability_") not in WEAKER] == []

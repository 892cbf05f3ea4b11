"""Sources of bounds are switched by name, whatever the loss: the answer stays the same, and the record says why."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.grid_search import Executor
from sparsecv_mio.search.plan import SETTINGS_OF_SOURCES, Plan
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.registry import REQUIRED, SOURCES, parse_sources
from sparsecv_mio.search.steps import Step
from sparsecv_mio.trees.subsets import UNLIMITED

CASES: dict[str, dict[str, Any]] = {
    "squared": {},
    "squared, leave-one-out": {"folds": "loo"},
    "squared, many columns": {"n": 70, "p": 40, "taus": [1, 2, 3]},
    "squared, joint": {"method": "joint"},
    "squared, algorithm1": {"method": "algorithm1"},
    "squared, signs": {"nonnegative": "all", "p": 4, "folds": "3"},
    "logistic": {"loss": "logistic"},
    "logistic, leave-one-out": {"loss": "logistic", "folds": "loo", "n": 30},
    "poisson": {"loss": "poisson"},
    "poisson, leave-one-out": {"loss": "poisson", "folds": "loo", "n": 30},
}
SWITCHED = [name for name in SOURCES if name not in REQUIRED]


@cache
def drawn(loss: str, n: int, p: int) -> Dataset:
    rng = np.random.default_rng(p)
    X = rng.normal(size=(n, p))
    X[:, 1] += X[:, 0]
    signal = X[:, 0] - 0.7 * X[:, 2] + 0.4 * X[:, 3]
    y = signal + rng.normal(size=n)
    if loss == "logistic":
        y = (signal + rng.logistic(size=n) > 0).astype(float)
    return Dataset.from_arrays(X, rng.poisson(np.exp(0.4 * signal)).astype(float) if loss == "poisson" else y)


def solved(n: int = 50, p: int = 6, folds: str = "4", loss: str = "squared", **words: Any) -> Record:
    data = drawn(loss, n, p)
    words = {"gammas": [0.1, 1.0], "taus": range(min(p, 4) + 1), "threads": 1, **words}
    return cross_validate(data, make_folds(folds, data), loss=loss, **words)


@pytest.mark.parametrize("case", CASES)
def test_the_answer_stays_the_same(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, submitted = Executor.submit, Counter[str]()

    def noted(executor: Executor, step: Step) -> None:
        # first trees of all sizes give supports, others the model of a pair that is reported: always on
        is_needed = step.source == FullDataTrees.name and (step.wanted is not None or step.node_limit == UNLIMITED)
        submitted[step.source] += not is_needed
        submit(executor, step)

    monkeypatch.setattr(Executor, "submit", noted)
    whole = solved(**CASES[case])
    used = [name for name in SWITCHED if submitted[name]]
    assert whole.status == "proved"
    for off in (*(f"-{name}" for name in used), "none"):
        submitted.clear()
        record = solved(**CASES[case], sources=off)
        assert (record.status, record.gamma, record.tau) == ("proved", whole.gamma, whole.tau), off
        assert record.cv_error == pytest.approx(whole.cv_error, rel=1e-9), off
        assert record.support == whole.support, off
        is_off = [name for name in SWITCHED if f"-{name}" in (record.request.sources or ())]
        assert not any(submitted[name] for name in is_off) and is_off == (SWITCHED if off == "none" else [off[1:]])


def test_every_switch_is_a_setting_of_the_plan() -> None:
    assert set(SETTINGS_OF_SOURCES) <= set(SWITCHED)
    names = {setting.name for setting in fields(Plan)}
    assert names.issuperset(name for settings in SETTINGS_OF_SOURCES.values() for name in settings)


def test_names() -> None:
    every = tuple(f"-{name}" for name in SWITCHED)
    assert parse_sources("all") == parse_sources(None) == () and parse_sources("none") == every
    assert parse_sources("-Weighted_Trees, -enclosures") == ("-enclosures", "-weighted trees")
    assert parse_sources(parse_sources("-support fits")) == ("-support fits",)
    assert parse_sources("support-fits") == tuple(name for name in every if name != "-support fits")


def test_the_record_has_the_plan() -> None:
    record = solved(folds="loo", sources="-left-out-trees", time_limit=60.0)
    plan = {setting.name: setting for setting in record.work.plan}
    assert list(plan) == [setting.name for setting in fields(Plan)]
    assert plan["orders"].setting == ("together",) and plan["sources_off"].setting == ("left-out trees",)
    assert plan["leaves_folds_out"].setting is False and plan["leaves_folds_out"].is_default
    assert plan["slice_seconds"].setting == 3.0 and not plan["slice_seconds"].is_default
    assert plan["mio_budget"].setting is None and plan["mio_budget"].is_default
    assert Record.from_json(record.to_json()) == record
    data = drawn("squared", 50, 6)
    assert verify(record, data, make_folds("loo", data)).ok

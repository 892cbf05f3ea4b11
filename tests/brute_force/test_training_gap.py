"""How near the models of folds that are not decided are to the best ones: a bound, on problems where all are tried."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from threading import Event
from typing import Any

import numpy as np
import pytest
from repository import INSTANCES
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.search.observers import Progress


def worst_excess(record: Any, data: Any, plan: Any) -> float:
    """By which share the training objective of the models of folds exceeds the least, at most: by trying all."""
    limits, worst = record.request.restrictions, 0.0
    must = set() if limits is None else {data.names.index(name) for name in limits.force_in}
    for fold in range(plan.k):
        train = plan.train_rows(fold)

        def objective(columns: Any, train: Any = train) -> float:
            return fit(
                data.X, data.y, list(columns), record.gamma, rows=train, scale=record.data.scale,
                intercept=record.data.intercept, weights=data.row_weights,
            ).objective  # fmt: skip

        sets = (S for S in combinations(range(data.p), record.tau) if must <= set(S))
        mine = objective([data.names.index(name) for name in record.chosen_folds[fold].support])
        worst = max(worst, mine / min(map(objective, sets)) - 1.0)
    return worst


def drawn(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """A small problem with nearly dependent columns, and a question that ends early."""
    n, p = int(rng.integers(12, 30)), int(rng.integers(4, 8))
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.2 * rng.normal(size=(n, p))
    data = sc.Dataset.from_arrays(X, X @ rng.normal(size=p) + rng.normal(size=n))
    if rng.random() < 0.3:
        data = weighted_rows(data, rng.uniform(0.2, 3.0, n), "w")
    ways: list[dict[str, Any]] = [
        {"method": "bounds"}, {"method": "joint", "mio_budget": int(rng.integers(0, 4))},
        {"method": "algorithm1", "mio_budget": int(rng.integers(0, 4))}, {"method": "rounds", "stop": True},
    ]  # fmt: skip
    asked = ways[int(rng.integers(len(ways)))]
    asked |= {
        "folds": str(rng.choice(["3", "5", "2x3", "forward:3", "loo"])), "gammas": [0.01, 0.3], "taus": f"1:{p - 1}",
        "intercept": str(rng.choice(["fold", "global", "none"])), "threads": 1,
        "scale": str(rng.choice(["length", "variance", "none"])),
    }  # fmt: skip
    if rng.random() < 0.2:
        asked["force_in"] = [data.names[0]]
    return data, asked


@pytest.mark.parametrize(("seed", "count"), [(0, 18), *slow((seed, 35) for seed in range(8))])
def test_no_model_of_a_fold_is_farther_from_the_best_than_is_said(seed: int, count: int) -> None:
    rng, said = np.random.default_rng(seed), list[float]()
    for _ in range(count):
        data, asked = drawn(rng)
        stop = Stop(int(rng.integers(1, 4))) if asked.pop("stop", False) else None
        plan = sc.make_folds(asked["folds"], data)
        hooks = {} if stop is None else {"progress": stop, "stop": stop.event}
        record = sc.solve(data, **asked, **hooks)
        if record.training_gap is None:
            assert not record.estimate or not np.isfinite(record.cv_error) or stop is not None
            continue
        true = worst_excess(record, data, plan)
        assert true <= record.training_gap * (1.0 + 1e-9) + 1e-9, asked
        said.append(record.training_gap)
        assert sc.verify(record, data).ok
        assert type(record).from_json(record.to_json()).training_gap == record.training_gap
        if true > 1e-6:
            report = sc.verify(replace(record, training_gap=0.5 * true), data)
            assert [one.field for one in report.failures] == ["training_gap"]
    assert len(said) > count // 4 and min(said) < 0.05  # a stop leaves some answers without the number


class Stop:
    """Ends a search after some reports."""

    def __init__(self, after: int) -> None:
        self.left, self.event = after, Event()

    def __call__(self, now: Progress) -> None:
        self.left -= 1
        if self.left <= 0:
            self.event.set()


def test_a_decided_pair_has_none_and_an_open_one_is_told() -> None:
    data = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")
    decided = sc.solve(data, gammas=0.1)
    assert decided.training_gap is None
    report = sc.verify(replace(decided, training_gap=0.5), data)
    assert [one.field for one in report.failures] == ["training_gap"]
    wide = sc.solve(data, gammas=0.1, method="bounds", taus="2:4")
    assert wide.training_gap is not None and 0.0 <= wide.training_gap < 0.2

"""The search that goes outward from small tau, wherever it ends, against enumeration."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from reference import cv_intervals

from sparsecv_mio.certificate.claims import rows_of
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search import estimates, rounds
from sparsecv_mio.search import rounds as outward
from sparsecv_mio.search.api import cross_validate

GAPS = (0.0, 1e-4, 5e-2)
H_RTOL, H_FLOOR = 1e-7, 1e-9
INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go outward on any data, with efforts that leave cells open."""
    monkeypatch.setattr(rounds, "SMALL", 0)
    monkeypatch.setattr(estimates, "SMALL", 0)


def problem(seed: int) -> RandomProblem:
    if seed % 3 == 0:
        return random_problem(seed, rows=30, columns=9)
    rng = np.random.default_rng([23, seed])
    n, p = int(rng.integers(14, 45)), int(rng.integers(3, 11))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 1.0]) * rng.normal(size=(n, 1))
    data = Dataset.from_arrays(X, X[:, : int(rng.integers(1, 4))].sum(axis=1) + rng.normal(size=n))
    gammas = np.unique(10.0 ** rng.uniform(-3.0, 1.0, size=3)).tolist()
    taus = np.unique(rng.integers(0, p + 1, size=6)).tolist()
    plan = make_folds(str(rng.choice(["2", "3", "5", "blocks:4"])), data, seed)
    return RandomProblem(data, plan, gammas, taus, "length", "fold")


def solved(case: RandomProblem, gap: float, **words: object) -> Record:
    return cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept, gap=gap,
        method="rounds", time_limit=600.0, threads=1, **words,  # type: ignore[arg-type]
    )  # fmt: skip


def right(case: RandomProblem, record: Record) -> None:
    """Intervals, statuses and the region hold what enumeration finds."""
    gammas, how = sorted({row.gamma for row in record.table}), (case.scale, case.intercept)
    low, high = cv_intervals(case.data.X, case.data.y, case.folds.labels, gammas, case.taus, how, INSIDE)
    slip = H_RTOL * high + H_FLOOR * float(np.var(case.data.y))
    best = min(row.upper for row in record.table)
    for row in record.table:
        at = gammas.index(row.gamma), case.taus.index(row.tau)
        assert row.lower <= low[at] + slip[at] and high[at] <= row.upper + slip[at], row
        if row.status == "excluded" and record.status != "proved":
            assert low[at] >= (1.0 - record.request.gap) * best - slip[at]
    if record.region is not None:
        rows = rows_of(record.region, record.table)
        least = min(float(low[gammas.index(row.gamma), case.taus.index(row.tau)]) for row in rows)
        width = record.request.gap * record.region.upper + record.region.tie_width + record.region.allowance
        own = gammas.index(record.region.gamma), case.taus.index(record.region.tau)
        assert record.region.lower <= least + slip.max() and low[own] <= least + width + 2.0 * slip.max()
    report = verify(record, case.data, case.folds)
    assert report.ok, report.failures


def check(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case, gap = problem(seed), GAPS[seed % 3]
    monkeypatch.setattr(outward, "FIRST_EFFORT", (1, 8, 1 << 13)[seed // 3 % 3])
    record = solved(case, gap)
    right(case, record)
    exact = cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept, gap=0.0,
        threads=1,
    )  # fmt: skip
    assert record.status == "proved" or any(row.estimate for row in exact.table)
    if gap == 0.0:
        assert [row.folds_decided for row in record.table] == [row.folds_decided for row in exact.table]


def ended_early(seed: int) -> bool:
    """A run that somebody stops after some steps; whether it was proved by then."""
    case, stop = problem(seed), threading.Event()
    steps = iter(range(int(np.random.default_rng(seed).integers(1, 25))))

    def progress(state: object) -> None:
        if next(steps, None) is None:
            stop.set()

    record = solved(case, GAPS[seed % 3], stop=stop, progress=progress)
    right(case, record)
    return record.status == "proved"


def test_against_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(24):
        check(seed, monkeypatch)


def test_a_run_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outward, "FIRST_EFFORT", 1)
    proved = [ended_early(seed) for seed in range(100, 124)]
    assert 2 <= sum(proved) <= 22


def test_a_run_that_is_stored_and_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outward, "FIRST_EFFORT", 1)
    case, stop, place = problem(4), threading.Event(), str(tmp_path / "run.ck")

    def progress(state: object) -> None:
        if state.done > 0:  # type: ignore[attr-defined]
            stop.set()

    cut = solved(case, 0.0, stop=stop, progress=progress, checkpoint=place)
    whole = solved(case, 0.0, resume=place)
    assert cut.status == "interrupted" and whole.status == "proved"
    right(case, whole)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_at_length(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(100 * block, 100 * block + 100):
        check(1000 + seed, monkeypatch)
        ended_early(3000 + seed)

"""The search that goes outward from small tau is stored and carried on."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from judge import wrong
from zoo import RandomProblem, random_problem

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search import estimates, rounds
from sparsecv_mio.search import rounds as outward
from sparsecv_mio.search.api import cross_validate


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


def test_a_run_that_is_stored_and_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outward, "FIRST_EFFORT", 1)
    case, stop, place = problem(4), threading.Event(), str(tmp_path / "run.ck")

    def progress(state: object) -> None:
        if state.done > 0:  # type: ignore[attr-defined]
            stop.set()

    cut = solved(case, 0.0, stop=stop, progress=progress, checkpoint=place)
    whole = solved(case, 0.0, resume=place)
    assert cut.status == "interrupted" and whole.status == "proved"
    assert [*wrong(case, whole)] == []
    assert verify(whole, case.data, case.folds).ok

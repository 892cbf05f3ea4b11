"""A limit holds whatever the search is at, and leaves a record that the checker accepts."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.time_limit import GRACE, run_within_limit

LATE = 2.0  # seconds after a limit that a loaded machine is allowed here


def made(n: int, p: int, seed: int = 0, offset: float = 0.0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + 0.3 * rng.normal(size=n))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Searches that hang in their first step, as in a long call of somebody's library, until the event is set."""
    from sparsecv_mio.fits.best_subsets import PathSearch
    from sparsecv_mio.search.methods.one_by_one import OneByOne
    from sparsecv_mio.search.methods.rounds import Rounds
    from sparsecv_mio.search.methods.saddle import SaddleRun

    release = threading.Event()
    for kind in (Rounds, OneByOne, SaddleRun):
        monkeypatch.setattr(kind, "begin", lambda self: release.wait(60.0))
    monkeypatch.setattr(PathSearch, "_rounds", lambda self, known, problem: release.wait(60.0))
    return release


def test_work_that_does_not_return_is_left_behind() -> None:
    release, clock = threading.Event(), Deadline(0.05, None)
    begun = time.monotonic()
    try:
        assert run_within_limit(lambda: release.wait(60.0), clock, lambda: "held") == "held"
        assert time.monotonic() - begun < 0.05 + GRACE + LATE and clock.expired()
    finally:
        release.set()


def test_work_that_returns_within_the_grace_is_the_result() -> None:
    clock = Deadline(0.01, None)
    assert run_within_limit(lambda: time.sleep(0.05) or "done", clock, lambda: "held") == "done"


def test_an_error_of_the_work_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_within_limit(lambda: 1 // 0, Deadline(60.0, None), lambda: 0)


def test_work_that_notices_it_is_late_does_not_spoil_the_result() -> None:
    clock, gone = Deadline(0.05, None), threading.Event()

    def work() -> str:
        clock.abandoned.wait(60.0)
        try:
            clock.check_wanted()
        finally:
            gone.set()
        return "done"

    def fallback() -> str:
        gone.wait(60.0)
        time.sleep(0.05)
        return "held"

    assert run_within_limit(work, clock, fallback) == "held"


def test_a_stop_ends_the_wait() -> None:
    release, stop = threading.Event(), threading.Event()
    told: list[float] = []
    threading.Timer(0.1, stop.set).start()
    try:
        begun = time.monotonic()
        answer = run_within_limit(lambda: release.wait(60.0), Deadline(None, stop), lambda: "held", told.append)
        assert answer == "held" and len(told) == 1 and time.monotonic() - begun < 0.1 + GRACE + LATE
    finally:
        release.set()


@pytest.mark.parametrize("method", ["rounds", "joint", "algorithm1", "grid", "bounds", "descent"])
@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_a_search_that_hangs_still_answers(method: str, intercept: str, held: threading.Event) -> None:
    data = made(24, 5)
    folds = make_folds("4", data)
    try:
        begun = time.monotonic()
        record = cross_validate(
            data, folds, gammas=[0.1, 1.0, 10.0], taus=[0, 1, 2, 5], method=method, time_limit=0.2, intercept=intercept
        )
        assert time.monotonic() - begun < 0.2 + GRACE + LATE
    finally:
        held.set()
    assert record.status == "limit" and record.estimate and record.lower == 0.0 and record.upper == np.inf
    assert np.isfinite(record.cv_error) and record.tau >= 2 and {"x0", "x2"} <= set(record.support)
    verify(record, data)


def test_a_path_that_hangs_still_answers(held: threading.Event) -> None:
    data = made(24, 5)
    try:
        record = best_subsets(data, gammas=[0.1, 1.0], taus=[1, 2, 5], time_limit=0.2)
    finally:
        held.set()
    assert record.status == "limit" and [row.support for row in record.path[:2]] == [("x2",), ("x0", "x2")]


def test_a_quick_refit_is_a_refit() -> None:
    from sparsecv_mio.formulation.backends.native.cell import PathCell
    from sparsecv_mio.search.result import all_rows_fit

    for intercept in ("fold", "global", "none"):
        std = standardize(made(30, 12, offset=5.0), "length", intercept)
        for support in (np.zeros(0, dtype=np.int64), np.array([0, 3, 6])):
            cell = PathCell(len(support), support, 0.0, np.inf, (), (), 0.0, complete=False, branched=False)
            quick, exact = (all_rows_fit(std, 0.5, None, cell, 1e-4, fast) for fast in (True, False))
            assert quick[0].objective == pytest.approx(exact[0].objective, rel=1e-10)
            assert quick[0].upper >= exact[0].objective and quick[1] == exact[1]
            assert list(quick[2].values()) == pytest.approx(list(exact[2].values()), rel=1e-9)
            assert quick[3] == pytest.approx(exact[3], rel=1e-9)

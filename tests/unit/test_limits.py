"""A limit holds whatever the search is at, and leaves an answer that the checker accepts."""

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
from sparsecv_mio.search.heuristics.plain import plain_answer, plain_supports
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.supervise import GRACE, attended

LATE = 2.0  # seconds after a limit that a loaded machine is allowed here


def made(n: int, p: int, seed: int = 0, offset: float = 0.0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + 0.3 * rng.normal(size=n))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Searches that hang in their first step, as in a long call of somebody's library, until the event is set."""
    from sparsecv_mio.fits.best_subsets import Subsets
    from sparsecv_mio.search.methods.algorithm1 import OneByOne
    from sparsecv_mio.search.methods.joint import JointSearch
    from sparsecv_mio.search.methods.rounds import CrossValidation
    from sparsecv_mio.search.methods.saddle import SaddleRun

    release = threading.Event()
    for kind in (CrossValidation, OneByOne, JointSearch, SaddleRun):
        monkeypatch.setattr(kind, "begin", lambda self: release.wait(60.0))
    monkeypatch.setattr(Subsets, "_rounds", lambda self, problem: release.wait(60.0))
    return release


def test_work_that_does_not_come_back_is_left_behind() -> None:
    release, clock = threading.Event(), Deadline(0.05, None)
    begun = time.monotonic()
    try:
        assert attended(lambda: release.wait(60.0), clock, lambda: "held") == "held"
        assert time.monotonic() - begun < 0.05 + GRACE + LATE and clock.expired()
    finally:
        release.set()


def test_work_that_comes_back_within_the_grace_is_the_answer() -> None:
    clock = Deadline(0.01, None)
    assert attended(lambda: time.sleep(0.05) or "done", clock, lambda: "held") == "done"


def test_an_error_of_the_work_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        attended(lambda: 1 // 0, Deadline(60.0, None), lambda: 0)


def test_work_that_notices_it_is_late_does_not_spoil_the_answer() -> None:
    clock, gone = Deadline(0.05, None), threading.Event()

    def work() -> str:
        clock.abandoned.wait(60.0)
        try:
            clock.check_wanted()
        finally:
            gone.set()
        return "done"

    def rescue() -> str:
        gone.wait(60.0)
        time.sleep(0.05)
        return "held"

    assert attended(work, clock, rescue) == "held"


def test_a_stop_ends_the_wait() -> None:
    release, stop = threading.Event(), threading.Event()
    told: list[float] = []
    threading.Timer(0.1, stop.set).start()
    try:
        begun = time.monotonic()
        answer = attended(lambda: release.wait(60.0), Deadline(None, stop), lambda: "held", told.append)
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


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("late", [True, False])
def test_plain_answers_are_what_they_say(intercept: str, late: bool) -> None:
    """Every value and held-out error is that of the support beside it, fitted without the rows it is scored on."""
    for seed in range(5):
        data = made(30, 12, seed, offset=3.0)
        folds = make_folds("holdout:0.3" if seed == 4 else "6", data, seed)
        std, grid = standardize(data, "length", intercept), Grid.of([0.5], [0, 1, 3, 12], 12)
        until = time.monotonic() + (0.0 if late else 60.0)
        found = plain_answer(std, folds, grid, until)
        V, r = std.rows(slice(0, std.n))
        for fold in range(folds.k):
            train, test = folds.train_rows(fold), folds.test_rows(fold)
            for t, tau in enumerate(grid.taus.tolist()):
                S = found.supports[t][fold]
                assert len(S) == min(tau, 1 if late else tau)
                A, b, H, u = V[train][:, S], r[train], V[test][:, S], r[test]
                if intercept == "fold":
                    A, b, H, u = A - A.mean(axis=0), b - b.mean(), H - A.mean(axis=0), u - b.mean()
                beta = np.linalg.solve(A.T @ A + 0.25 * np.eye(len(S)), A.T @ b)
                assert found.value[t, fold] == pytest.approx(b @ b - b @ A @ beta, rel=1e-9)
                assert found.nominal[t, fold] == pytest.approx(np.sum((u - H @ beta) ** 2), rel=1e-7)


def test_plain_supports_fall_in_value() -> None:
    low, high = plain_supports(standardize(made(30, 12)), [0.5, 2.0], [1, 2, 5])
    assert list(low) == [1, 2, 5] and low[1][1] > low[2][1] > low[5][1]
    assert all(high[tau][1] > low[tau][1] for tau in low)


def test_many_folds_get_an_answer_whatever_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparsecv_mio.search.heuristics import plain

    monkeypatch.setattr(plain, "FIRST_WORK", 50)
    data = made(40, 12)
    folds = make_folds("loo", data)
    std = standardize(data)
    found = plain_answer(std, folds, Grid.of([0.5], [1, 2], 12), 0.0)
    r = std.rows(slice(0, 40))[1]
    for fold in range(40):
        rest, test = r[folds.train_rows(fold)], r[folds.test_rows(fold)]
        if len(found.supports[0][fold]) == 0:
            assert found.nominal[0, fold] == pytest.approx(float(np.sum((test - rest.mean()) ** 2)), rel=1e-9)
            assert found.value[0, fold] == pytest.approx(float(np.sum((rest - rest.mean()) ** 2)), rel=1e-9)
    assert any(len(support) for support in found.supports[0]) and any(not len(s) for s in found.supports[0])


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

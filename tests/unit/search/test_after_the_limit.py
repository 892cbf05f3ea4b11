"""Work after a limit, counted by a clock of its own: data that stand for 100,000 rows of 10 columns."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.data import standard
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.fits.best_subsets import PathSearch, best_subsets
from sparsecv_mio.near.common_subset import CommonSearch, best_common_subset
from sparsecv_mio.problem import glm_refit, refit
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.grid_search import GridSearch

N, P, LIMIT = 60, 10, 8.0
STANDS_FOR = 100_000 * P / (N * P)  # numbers of the data that each number here stands for
SECONDS = 1e-8  # to read a number of the data
LONG, STEPS, LONG_STEPS = (
    20,
    10,
    100,
)  # times as many seconds in a fit of squares, in a quick one of rows, in one of rows
ALLOWED = 3.0  # seconds after the limit: every fit on its own is below a third of a second
THRESHOLDS = "QUICK_WORK", "LITTLE_WORK", "LEAST_ROWS", "MOST_ROWS_BY_FOLD"


class WorkClock:
    """A clock that moves by the numbers that are read and fitted."""

    def __init__(self) -> None:
        self.now, self.late, self.is_late = 1000.0, threading.Event(), False
        self._wait = threading.Event.wait

    def __call__(self) -> float:
        self.now += 1e-4
        return self.now

    def take(self, numbers: int, times: float = 1.0) -> None:
        """Let the seconds pass that some numbers take."""
        self.now += numbers * STANDS_FOR * SECONDS * times

    def end(self, *_: object) -> None:
        """Let the limit pass, and hang: a thread that is left behind."""
        self.now, self.is_late = max(self.now, 1000.0 + 1.01 * LIMIT), True
        self._wait(self.late, 60.0)

    def wait(self, event: threading.Event, timeout: float | None = None) -> bool:
        """Wait for an event: after the limit, a wait takes its seconds by this clock, not by the real one."""
        if timeout is None or not self.is_late:
            return self._wait(event, timeout)
        is_set = self._wait(event, 0.01 * timeout)
        self.now += 0.0 if is_set else timeout
        return is_set


def counted(
    clock: WorkClock, work: Callable[..., Any], numbers: Callable[..., int], times: float
) -> Callable[..., Any]:
    def timed(*given: Any, **how: Any) -> Any:
        clock.take(numbers(*given), times)
        return work(*given, **how)

    return timed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkClock]:
    """A clock of work, and the thresholds of work in its numbers."""
    clock = WorkClock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr(threading.Event, "wait", lambda event, timeout=None: clock.wait(event, timeout))

    def of_part(X: Any, rows: Any, columns: Any) -> int:
        return len(np.arange(len(X))[rows]) * len(columns)

    for module in (standard, refit):
        monkeypatch.setattr(module, "take_submatrix", counted(clock, standard.take_submatrix, of_part, 1.0))
    rows = standard.StandardData.rows
    monkeypatch.setattr(
        standard.StandardData, "rows", counted(clock, rows, lambda data, at: len(np.arange(data.n)[at]) * data.q, 1.0)
    )
    monkeypatch.setattr(refit, "_solve", counted(clock, refit._solve, lambda V, *_: V.size, LONG))
    monkeypatch.setattr(
        glm_refit, "fit_roughly", counted(clock, glm_refit.fit_roughly, lambda fit, *_: fit.Z.size, STEPS)
    )
    monkeypatch.setattr(glm_refit, "newton", counted(clock, glm_refit.newton, lambda fit, *_: fit.Z.size, LONG_STEPS))
    for name, module in list(sys.modules.items()):
        for threshold in THRESHOLDS if name.startswith("sparsecv_mio.") else ():
            if hasattr(module, threshold):
                monkeypatch.setattr(module, threshold, int(getattr(module, threshold) / STANDS_FOR))
    yield clock
    clock.late.set()


def data_of(loss: str) -> Dataset:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, P))
    X[rng.random(N) < 0.3, 1] = 0.0
    signal = X[:, 0] + X[:, 1] - X[:, 2]
    if loss == "logistic":
        return as_two_classes(Dataset.from_arrays(X, (signal + rng.logistic(size=N) > 0.0).astype(float)))
    if loss == "poisson":
        return as_counts(Dataset.from_arrays(X, rng.poisson(np.exp(np.clip(signal, -2.0, 2.0))).astype(float)))
    return Dataset.from_arrays(X, signal + rng.normal(size=N))


COUNT = {"count": [["x3", "x4", "x5"]]}
MANY: dict[str, Any] = {"gammas": np.geomspace(0.01, 10.0, 12).tolist(), "taus": list(range(1, 9))}


def late_by(clock: WorkClock, search: Callable[..., Any], *given: Any, **how: Any) -> float:
    """Return how many seconds after the limit an answer comes."""
    clock.now = 1000.0
    record = search(*given, **MANY, **how, time_limit=LIMIT, began=1000.0)
    assert record.status in ("limit", "proved")
    return clock.now - 1000.0 - LIMIT


@pytest.mark.parametrize(
    "how",
    [{}, COUNT, {"at_most": "1:x0,x3"}, {"loss": "logistic"}, {"loss": "poisson"}, {"method": "joint"},
     {"one_se": True}, {"stability": 0.3}, {"scale_within": "folds"}, {"model": "average"}, {"method": "descent"}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("spec", ["10", "loo"])
def test_solve(clock: WorkClock, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], spec: str) -> None:
    step = GridSearch.step

    def end_and_step(search: GridSearch) -> None:
        clock.end()
        step(search)

    monkeypatch.setattr(GridSearch, "step", end_and_step)
    data = data_of(how.get("loss", "squared"))
    assert late_by(clock, cross_validate, data, make_folds(spec, data), **how) < ALLOWED


@pytest.mark.parametrize("how", [{}, COUNT, {"loss": "logistic"}, {"loss": "poisson"}], ids=str)
@pytest.mark.parametrize("done", [False, True])
def test_path(clock: WorkClock, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], done: bool) -> None:
    rounds = PathSearch._rounds

    def end(search: PathSearch, *given: Any) -> None:
        if done:
            clock.now = 1000.0 - 1e6  # the search takes no time
            rounds(search, *given)
        clock.end()

    monkeypatch.setattr(PathSearch, "_rounds", end)
    assert late_by(clock, best_subsets, data_of(how.get("loss", "squared")), **how) < ALLOWED


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_common(clock: WorkClock, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    monkeypatch.setattr(CommonSearch, "_improve", clock.end)
    data = data_of(loss)
    assert late_by(clock, best_common_subset, data, make_folds("10", data), loss=loss) < ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize("how", ["solve --loss poisson --folds loo", "solve --loss poisson", "path --loss poisson",
                                 "solve --encode onehot --count factors --folds loo",
                                 "solve --encode onehot --at-most 2:x0,x1,x2 --folds loo"])  # fmt: skip
def test_files_of_which_nothing_ends_in_time(how: str, tmp_path: Path) -> None:
    rng, n = np.random.default_rng(3), 60_000 if "poisson" in how else 15_000
    X = rng.normal(size=(n, 10))
    lines = [",".join([*(f"x{i}" for i in range(10)), "f", "y"])]
    levels = rng.choice(list("12345" if "poisson" in how else "abcde"), n)
    y = rng.poisson(np.exp(0.3 * X[:, 0]))
    lines += [",".join([*(f"{x:.3f}" for x in row), f, str(t)]) for row, f, t in zip(X, levels, y, strict=True)]
    file = tmp_path / "large.csv"
    file.write_text("\n".join(lines))
    command, *options = how.split()
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "sparsecv_mio.cli", command, file, "-t", "y", *options, "--time-limit", "12", "-q"],
        check=True,
    )
    assert time.monotonic() - begun < 12.0 + ALLOWED

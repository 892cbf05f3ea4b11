"""Time limits, stop requests and abandonment; what comes after a limit, and what is compiled before a clock."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compilations import watched
from slow import slow

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data import standard
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.errors import Interrupted, OutOfTime
from sparsecv_mio.fits.best_subsets import PathSearch, best_subsets
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.near.common_subset import CommonSearch, best_common_subset
from sparsecv_mio.problem import glm_refit, refit
from sparsecv_mio.search import first_use
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.deadline import Deadline, StopSignal, interruptible, interruptible_call, run_within_limit
from sparsecv_mio.search.first_use import FirstUse, compile_kernels_once, make_first_use, make_tiny_data, start_clock
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.observers import COMPILING, Progress
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.targets import Loss


def test_without_a_limit_it_never_expires() -> None:
    deadline = Deadline(None, None)
    assert not deadline.limited and not deadline.has_expired() and deadline.remaining_seconds == float("inf")
    assert deadline.seconds_until(0.4) == float("inf") and deadline.seconds >= 0.0


def test_a_limit_counts_from_where_it_began() -> None:
    deadline = Deadline(10.0, None, began=time.monotonic() - 9.0)
    assert not deadline.has_expired() and 0.0 < deadline.remaining_seconds < 1.1
    assert deadline.seconds_until(0.5) == 0.0 and 0.0 < deadline.seconds_until(0.95) < 0.6
    assert Deadline(10.0, None, began=time.monotonic() - 11.0).has_expired()


def test_a_share_from_now() -> None:
    late = Deadline(10.0, None, began=time.monotonic() - 9.0)
    assert not late.sooner(0.05).has_expired() and late.sooner(-0.05).has_expired()
    assert not Deadline(None, None).sooner(0.1).has_expired()
    assert Deadline(10.0, None, began=time.monotonic() - 11.0).sooner(0.5).has_expired()


def test_a_stop_and_an_abandoned_run() -> None:
    stop = threading.Event()
    deadline = Deadline(None, stop)
    assert deadline.limited
    deadline.check_caller_waits()
    stop.set()
    assert deadline.has_expired()
    deadline.abandoned.set()
    with pytest.raises(OutOfTime):
        deadline.check_caller_waits()


def made(n: int, p: int, seed: int = 0, offset: float = 0.0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + 0.3 * rng.normal(size=n))


class Hung:
    """A call of somebody's library that takes long: it returns once it is released."""

    def __init__(self) -> None:
        self.release, self.returned = threading.Event(), False

    def __call__(self, *given: object) -> None:
        self.release.wait(60.0)
        self.returned = True


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hung]:
    """Searches that hang in their first step, until the test is over."""
    from sparsecv_mio.fits.best_subsets import PathSearch
    from sparsecv_mio.search.grid_search import GridSearch

    hung = Hung()
    monkeypatch.setattr(GridSearch, "take_turn", lambda self: hung())
    monkeypatch.setattr(PathSearch, "_rounds", lambda self, *given: hung())
    try:
        yield hung
        assert not hung.returned, "the answer came before"
    finally:
        hung.release.set()


def test_work_that_does_not_return_is_left_behind() -> None:
    hung, clock = Hung(), Deadline(0.05, None)
    try:
        assert run_within_limit(hung, clock, lambda: "held") == "held"
        assert not hung.returned and clock.has_expired()
    finally:
        hung.release.set()


def test_work_that_returns_within_the_grace_is_the_result() -> None:
    clock = Deadline(0.01, None)
    assert run_within_limit(lambda: time.sleep(0.05) or "done", clock, lambda: "held", grace=60.0) == "done"


def test_an_error_of_the_work_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_within_limit(lambda: 1 // 0, Deadline(60.0, None), lambda: 0)


def test_work_that_notices_it_is_late_does_not_spoil_the_result() -> None:
    clock, gone = Deadline(0.05, None), threading.Event()

    def work() -> str:
        clock.abandoned.wait(60.0)
        try:
            clock.check_caller_waits()
        finally:
            gone.set()
        return "done"

    def fallback() -> str:
        gone.wait(60.0)
        time.sleep(0.05)
        return "held"

    assert run_within_limit(work, clock, fallback) == "held"


def test_a_stop_ends_the_wait() -> None:
    hung, stop = Hung(), threading.Event()
    told: list[float] = []
    threading.Timer(0.1, stop.set).start()
    try:
        assert run_within_limit(hung, Deadline(None, stop), lambda: "held", told.append) == "held"
        assert len(told) == 1 and not hung.returned
    finally:
        hung.release.set()


@pytest.mark.parametrize(
    ("method", "intercept"),
    [
        ("rounds", "fold"),
        ("rounds", "none"),
        ("joint", "none"),
        ("grid", "fold"),
        ("bounds", "none"),
        ("descent", "fold"),
    ],
)
def test_a_search_that_hangs_still_answers(method: str, intercept: str, held: Hung) -> None:
    data = made(24, 5)
    record = cross_validate(
        data, make_folds("4", data), gammas=[0.1, 1.0, 10.0], taus=[0, 1, 2, 5], method=method, time_limit=0.2,
        intercept=intercept,
    )  # fmt: skip
    assert record.status == "limit" and record.estimate and record.lower == 0.0 and record.upper == np.inf
    assert np.isfinite(record.cv_error) and record.tau >= 2 and {"x0", "x2"} <= set(record.support)
    assert verify(record, data).ok


def test_a_logistic_search_that_hangs_still_answers(held: Hung) -> None:
    plain = made(24, 5)
    data = as_two_classes(Dataset.from_arrays(plain.X, (plain.y > np.median(plain.y)).astype(float)))
    record = cross_validate(
        data, make_folds("4", data), gammas=[0.1, 1.0], taus=[0, 1, 2, 5], loss="logistic", time_limit=0.2
    )
    path = best_subsets(data, gammas=[0.1], taus=[1, 2, 5], loss="logistic", time_limit=0.2)
    assert record.status == "limit" and record.estimate and record.lower == 0.0 and record.upper == np.inf
    assert np.isfinite(record.cv_error) and "x2" in record.support and verify(record, data).ok
    assert path.status == "limit" and path.path[0].support == ("x2",) and verify(path, data).ok


def test_a_path_that_hangs_still_answers(held: Hung) -> None:
    data = made(24, 5)
    record = best_subsets(data, gammas=[0.1, 1.0], taus=[1, 2, 5], time_limit=0.2)
    assert record.status == "limit" and [row.support for row in record.path[:2]] == [("x2",), ("x0", "x2")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_sets_the_event_and_a_later_one_quits(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)]
    with interruptible("name", terminable=True) as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set() and capfd.readouterr().err.startswith("name: stopping")
        signal.raise_signal(number)  # within a second, as `timeout` sends it to the process and to its group
        signal.raise_signal(signal.SIGINT)
        assert capfd.readouterr().err == "" and not stop.quits
        stop.since -= 1.5
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_soon_after_one_of_an_earlier_run_quits() -> None:
    for pause, quits in ((0.0, False), (0.05, False), (0.5, True), (2.0, True), (10.0, False)):
        StopSignal.latest -= pause
        with interruptible() as stop, pytest.raises(KeyboardInterrupt) if quits else nullcontext():
            signal.raise_signal(signal.SIGINT)
        assert stop.is_set() and stop.quits is quits


def test_a_call_from_python_ends_although_its_work_suppresses_the_second_signal() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible_call() as stop:
        signal.raise_signal(signal.SIGINT)
        stop.since -= 1.5
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_only_commands_take_sigterm() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible():
        assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_takes_no_handler() -> None:
    seen = []

    def work() -> None:
        with interruptible():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_the_handler_of_a_host_is_called_and_says_what_a_second_interrupt_does() -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: calls.append(number))
    try:
        host = signal.getsignal(signal.SIGINT)
        with interruptible() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.is_set() and calls == [signal.SIGINT]
            signal.raise_signal(signal.SIGINT)
        assert calls == [signal.SIGINT] * 2 and signal.getsignal(signal.SIGINT) is host
    finally:
        signal.signal(signal.SIGINT, before)


# `alarm` stands for the handler of a host in C: it takes a number, and touches nothing of Python. What Python knows of
# handlers it reads as its module of signals is loaded, here once more.
EMBEDDED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
address = ctypes.cast(libc.alarm, ctypes.c_void_p).value
libc.signal(2, address)
for name in ("_signal", "signal"):
    sys.modules.pop(name, None)
import signal
assert signal.getsignal(signal.SIGINT) is None
import numpy as np
from sparsecv_mio import BestSubsetRidgeCV
rng = np.random.default_rng(0)
X = rng.standard_normal((30, 4))
model = BestSubsetRidgeCV(gammas=[0.1, 1.0], cv=3).fit(X, X[:, 1] + rng.standard_normal(30))
print(model.status_, libc.signal(2, address) == address)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the C library has no name there")
def test_a_handler_that_python_did_not_set_is_left_alone() -> None:
    done = subprocess.run([sys.executable, "-c", EMBEDDED], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["proved", "True"], done.stderr


def test_an_interpreter_that_may_set_no_handler_searches_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int, handler: object) -> None:
        raise ValueError("signal only works in main thread of the main interpreter")

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patched:
        patched.setattr(signal, "signal", refuse)
        with interruptible() as stop:
            assert not stop.is_set()
    assert signal.getsignal(signal.SIGINT) is before


def test_time_that_is_kept_ends_a_run_early_where_it_is_wanted() -> None:
    asked = list[str]()

    def wanted() -> bool:
        asked.append("once")
        return True

    clock = Deadline(1000.0, None)
    clock.keep_time(1.0, wanted)  # the whole limit: it has begun
    assert clock.has_expired() and clock.sooner(0.5).has_expired() and not clock.is_over() and asked == ["once"]
    clock.release_reserve()
    assert not clock.has_expired()
    clock.keep_time(1.0, lambda: False)
    assert not clock.has_expired()
    endless = Deadline(None, None)
    endless.keep_time(1.0, wanted)
    assert not endless.has_expired() and asked == ["once"]


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is noted as compiled, beginning with nothing."""
    noted = list[str]()
    monkeypatch.setattr(first_use, "_compiled", set())
    monkeypatch.setattr(first_use, "_is_stored", lambda purpose: purpose in noted)
    monkeypatch.setattr(first_use, "_store", noted.append)
    return noted


def test_it_is_done_once_and_announced_before(stored: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done, seen = list[str](), list[Progress]()

    def run(stop: threading.Event | None) -> None:
        assert [state.stage for state in seen] == [
            f"{COMPILING}: about 7 s on an idle core, less if parts are stored, not counted in a time limit"
        ]
        compile_kernels_once(needs, None)  # the tiny run asks too
        time.sleep(0.01)
        done.append("run")

    needs = FirstUse("some", 7.0, run)
    assert compile_kernels_once(needs, None, seen.append) >= 0.01 and stored == ["some"]
    assert compile_kernels_once(needs, None, seen.append) == 0.0
    monkeypatch.setattr(first_use, "_compiled", set())  # another process
    assert compile_kernels_once(needs, None, seen.append) == 0.0
    assert done == ["run"] and len(seen) == 1


def test_without_progress_the_logger_reports_it(stored: list[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_kernels_once(FirstUse("some", 7.0, lambda stop: None), None)
    (said,) = caplog.messages
    assert said == f"{COMPILING}: about 7 s on an idle core, less if parts are stored, not counted in a time limit"
    assert stored == ["some"]


def test_the_clock_starts_after_it(stored: list[str]) -> None:
    needs = FirstUse("some", 7.0, lambda stop: time.sleep(0.3))
    deadline = start_clock(SearchOptions(time_limit=10.0), None, time.monotonic() - 1.0, needs, lambda state: None)
    assert 1.0 <= deadline.seconds < 1.25
    needs = FirstUse("other", 7.0, lambda stop: time.sleep(0.3))
    assert start_clock(SearchOptions(time_limit=10.0), None, None, needs, lambda state: None).seconds < 0.25


def test_a_stop_meanwhile_leaves_no_answer(stored: list[str]) -> None:
    stop = threading.Event()
    with pytest.raises(Interrupted, match="stopped while kernels were being compiled"):
        compile_kernels_once(FirstUse("some", 7.0, lambda stop: stop.set()), stop, lambda state: None)
    assert not stored and not first_use._compiled


@pytest.mark.parametrize(
    ("how", "p", "kind"),
    [({}, 5, "few_columns"), ({}, 30, "many_columns"), ({"at_most": "1:x0,x1"}, 5, "restrictions"),
     ({"loss": "logistic"}, 5, "smooth_losses"), ({"loss": "poisson"}, 30, "smooth_losses")],
)  # fmt: skip
def test_the_question_decides_what_is_compiled(how: dict[str, Any], p: int, kind: str) -> None:
    asked = list[tuple[int, dict[str, Any]]]()

    def run(data: Dataset, folds: object, **options: Any) -> None:
        asked.append((data.p, options))

    needs = make_first_use("path", PathOptions.of(**how), make_tiny_data(20, p), run)
    assert needs.purpose == f"path_{kind}" and 0.0 < needs.seconds <= 60.0
    stop = threading.Event()
    needs.run(stop)
    assert len(asked) >= 2 and all(options["stop"] is stop for _, options in asked)
    stop.set()
    needs.run(stop)
    assert len(asked) >= 2


@pytest.mark.parametrize(
    ("loss", "p"), [(Loss.SQUARED, 5), (Loss.SQUARED, 30), (Loss.LOGISTIC, 5), *slow([(Loss.POISSON, 30)])]
)
def test_a_search_compiles_nothing_after_it(loss: Loss, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "_compiled", set())
    rng = np.random.default_rng(7)
    drawn = make_tiny_data(50, p, loss, 0.3)
    X = drawn.X + 0.1 * rng.standard_normal(drawn.X.shape)
    data = Dataset.from_arrays(X, drawn.y) if loss is Loss.SQUARED else drawn
    how: dict[str, Any] = {"gammas": (0.1, 1.0), "taus": (1, 2), "loss": loss}
    cross_validate(data, make_folds("5", data), **how)  # with what is to be compiled first
    best_subsets(data, **how)
    compiled = list[int]()
    with watched(lambda: compiled.append(1)):
        for spec in ("5", "loo"):
            cross_validate(data, make_folds(spec, data), **how)
        best_subsets(data, **how)
    assert not compiled


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
    ("spec", "how"),
    [*(("loo", how) for how in ({}, COUNT, {"loss": "logistic"}, {"loss": "poisson"}, {"scale_within": "folds"})),
     *(("10", how) for how in ({}, {"at_most": "1:x0,x3"}, {"loss": "logistic"}, {"method": "joint"}, {"one_se": True},
                               {"stability": 0.3}, {"model": "average"}, {"method": "descent"}))],
    ids=str,
)  # fmt: skip
def test_solve(clock: WorkClock, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], spec: str) -> None:
    take_turn = GridSearch.take_turn

    def end_and_step(search: GridSearch) -> None:
        clock.end()
        take_turn(search)

    monkeypatch.setattr(GridSearch, "take_turn", end_and_step)
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

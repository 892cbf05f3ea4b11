"""The record of an interval of gamma: what it holds, and what a limit or a stop leaves of it."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.grids import GammaInterval
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.continuous import solve
from sparsecv_mio.search.continuous.asked import Interval
from sparsecv_mio.search.continuous.partition import Partition
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.state.deadline import Deadline


@pytest.mark.parametrize("spec", ["loo", "4"])
def test_a_record_is_proved_read_back_and_verified(spec: str) -> None:
    one, seen = interval_problem(8, spec), list[Progress]()
    data = one.data.dataset
    record = cross_validate(data, one.folds, gammas="0.01..2", taus=[1, 2, 6], gap=1e-4, progress=seen.append)
    assert record.status == "proved" and record.gap <= 1e-4 and record.region is None
    found = record.continuous
    assert found is not None and (found.low, found.high) == (0.01, 2.0)
    assert {piece.tau for piece in found.pieces} == {1, 2, 6}
    assert record.lower == min(piece.lower for piece in found.pieces)
    assert Record.from_json(record.to_json()) == record
    report = verify(record, data, one.folds)
    assert report.ok and any("pieces cover every gamma" in line for line in report.verified)


def test_a_grid_is_never_better_than_its_interval() -> None:
    one = interval_problem(9, "4")
    every = cross_validate(one.data.dataset, one.folds, gammas=GammaInterval(0.01, 2.0), taus=[2, 3], gap=1e-5)
    grid = cross_validate(one.data.dataset, one.folds, gammas="0.01:2:40", taus=[2, 3], gap=0.0)
    assert every.lower <= grid.upper and every.upper <= grid.upper * (1.0 + 1e-5)


def test_a_stop_leaves_valid_bounds() -> None:
    one, stop = interval_problem(8, "4"), threading.Event()
    stop.set()
    record = cross_validate(one.data.dataset, one.folds, gammas="0.01..2", taus=[1, 2], stop=stop)
    assert record.status == "interrupted" and record.lower == 0.0 and verify(record, one.data.dataset, one.folds).ok


def test_a_training_set_whose_targets_are_constant() -> None:
    X = np.array([[1, 0, 0], [1, 0, 1], [1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1]], dtype=float)
    data = Dataset.from_arrays(X, np.array([1000.0, 1001.0, 1000.0, 1000.0, 1000.0, 1000.0]))
    folds = folds_from_labels([2, 0, 3, 1, 1, 2])  # without row 1: targets of 1000
    record = cross_validate(data, folds, gammas=GammaInterval(0.03, 5.0), taus=[0, 1])
    assert record.status == "proved" and verify(record, data, folds).ok


@pytest.mark.parametrize("units", [(0.0, 115.0, 92.0, -99.0, -45.0), (8.0, 8.0, 8.0, 8.0, 8.0)])
def test_numbers_that_overflow_or_lose_all_digits_bound_nothing(units: tuple[float, ...]) -> None:
    """Errors without an upper bound, and bounds that are no numbers, leave their pieces open."""
    rng = np.random.default_rng(2)
    X = rng.integers(-2, 3, (6, 5)) * 10.0 ** np.array(units)
    X[0] += 10.0 ** np.array(units)
    data = Dataset.from_arrays(X if units[0] == 0.0 else 1e8 + X / 1e8, 1e-55 * rng.normal(size=6))
    folds = folds_from_labels(np.array([0, 0, 1, 1, -1, -1]))
    how = {"scale": "none", "intercept": "none", "time_limit": 1.0}
    record = cross_validate(data, folds, gammas="1e-6..1.8", taus=[3, 4], **how)  # type: ignore[arg-type]
    assert Record.from_json(record.to_json()) == record
    assert record.continuous is not None and all(piece.lower >= 0.0 for piece in record.continuous.pieces)
    assert verify(record, data, folds).ok


def test_points_of_the_curve_that_rounding_took_are_left_out() -> None:
    """Moments of columns at an offset, without an intercept, gave 0.89 where the CV error is 1e-9."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(27, 3)) + 1e4 * rng.choice([-1.0, 0.5, 1.0], size=3)
    data = Dataset.from_arrays(X, X @ [1.0, -0.5, 0.3] + 1e-6 * rng.normal(size=27))
    folds = folds_from_labels(np.arange(27))
    for ends in ("0.5..0.6", "0.001..0.0011"):
        record = cross_validate(
            data, folds, gammas=ends, taus=[2, 3], scale="variance", intercept="none", threads=1,
            time_limit=1.0,
        )  # fmt: skip
        verify(record, data, folds).raise_if_failed()


@pytest.mark.parametrize("where", ["_begun", "begin", "step"])
def test_a_limit_ends_a_search_that_does_not_ask_the_clock(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are loaded or compiled, and calls of LAPACK, ask for no clock."""
    one, free = interval_problem(8, "4"), threading.Event()
    owner = solve.IntervalSearch if where == "_begun" else Partition
    plain = getattr(owner, where)

    def stuck(self: object, *given: object) -> object:
        free.wait(60.0)
        return plain(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(owner, where, stuck)
        try:
            record = cross_validate(one.data.dataset, one.folds, gammas="0.01..2", taus=[1, 6], time_limit=0.1)
        finally:
            free.set()
    assert record.status == "limit" and record.continuous is not None and len(record.continuous.pieces) >= 2
    assert verify(record, one.data.dataset, one.folds).ok


def test_a_limit_before_the_data_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    one, free = interval_problem(8, "4"), threading.Event()
    monkeypatch.setattr(solve, "standardize", lambda *_: free.wait(60.0))
    with pytest.raises(OutOfTime, match="still being prepared"):
        cross_validate(one.data.dataset, one.folds, gammas="0.01..2", taus=[1], time_limit=0.1)
    free.set()


def test_the_model_at_the_answer_has_a_little_time_after_the_limit() -> None:
    for past, least in ((-3.0, 3.0), (-0.2, 0.3), (0.0, 0.3), (0.05, 0.25), (5.0, 0.2)):
        clock = Deadline(0.0, None, time.monotonic() - past)
        assert solve.seconds_for_model(clock) == pytest.approx(least, abs=0.02)


def test_the_curve_is_of_the_tau_that_is_reported() -> None:
    """Of a model that had no time another tau may be the best: the curve was of the one that the search found."""
    one, hooks = interval_problem(8, "4"), Hooks()
    data, options = one.data.dataset, SearchOptions(gap=1e-4)
    for tau in (1, 3, 6):

        def at(gamma: float, options: SearchOptions, tau: int = tau) -> Record:
            return cross_validate(data, one.folds, gammas=[gamma], taus=[tau], options=options)

        asked = Interval(data, one.folds, GammaInterval(0.01, 2.0), [1, 3, 6], options, hooks)
        record = solve.solve_interval(asked, at)
        found = record.continuous
        assert found is not None and record.tau == tau
        some = range(0, len(found.curve_gammas), 40)
        gammas = [found.curve_gammas[i] for i in some]
        if gammas:
            grid = cross_validate(data, one.folds, gammas=gammas, taus=[tau], gap=0.0, method="grid")
            errors = [row.cv_error for row in sorted(grid.table, key=lambda row: row.gamma)]
            assert errors == pytest.approx([found.curve_errors[i] for i in some], rel=1e-7)

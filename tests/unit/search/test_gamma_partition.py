"""What does not go with an interval of gamma is refused in one line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from every_gamma import EveryGamma
from interval_problem import interval_problem
from slow import slow

from sparsecv_mio import Dataset, cross_validate, solve
from sparsecv_mio.certificate.parts import relative_gap
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.digits import several
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.model_space import GammaInterval
from sparsecv_mio.report.record_report import open_sentences
from sparsecv_mio.report.record_tables import interval_lines
from sparsecv_mio.report.record_words import edge_hints, open_rows, region_lines
from sparsecv_mio.search.api import answer
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.every_gamma import gamma_partition
from sparsecv_mio.search.every_gamma.gamma_fits import FitsAtLam
from sparsecv_mio.search.every_gamma.gamma_lists import BestOverGamma, EndLists
from sparsecv_mio.search.every_gamma.gamma_partition import (
    GammaPartition,
    IntervalSearch,
    Piece,
    held_out,
)
from sparsecv_mio.search.observers import Progress
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.question import Question


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"gap": 0.0}, "give a positive gap"),
        ({"one_se": True}, "one_se requires a grid"),
        ({"method": "descent"}, "method requires a grid"),
        ({"force_in": "x0"}, "force_in requires a grid"),
        ({"trace": "t.csv"}, "trace requires a grid"),
    ],
)
def test_refusals_name_the_option(keywords: dict[str, object], words: str) -> None:
    data = Dataset.from_arrays(np.eye(6)[:, :2], [3.0, 2.0, 1.0, 0.0, 0.0, 0.5])
    with pytest.raises(BadInput, match=words):
        cross_validate(data, "3", gammas=GammaInterval(0.1, 1.0), taus=[1], **keywords)  # type: ignore[arg-type]


def test_a_column_that_is_constant_without_one_row_needs_few_pieces() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(14, 3))
    X[:, 2] = 5.0
    X[0, 2] = 7.0
    data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=14))
    record = cross_validate(data, "loo", gammas="1e-6..1e-4", taus=[3])
    assert record.continuous is not None
    assert record.status == "proved"
    assert len(record.continuous.pieces) < 100


def test_pieces_that_rounding_leaves_open_are_few_and_are_named() -> None:
    x = np.linspace(0.0, 1.0, 20)
    powers = np.stack([x**k for k in range(1, 9)], axis=1)
    data = Dataset.from_arrays(powers, np.sin(6.0 * x) + 0.01 * np.random.default_rng(1).normal(size=20))
    record = cross_validate(data, "4", gammas="1e-8..1e-6", taus=[8])
    assert record.continuous is not None
    assert len(record.continuous.pieces) < 100
    assert edge_hints(record) == []
    assert record.warnings[-1].startswith("ties or rounding errors exceed the gap: at tau = 8, gamma 1e-08 to ")
    assert record.warnings[-1].endswith("start the interval at a larger gamma, or omit this tau")


@pytest.mark.parametrize("spec", ["loo", "4"])
def test_supports_tied_up_to_the_tolerance_count_as_optimal(spec: str) -> None:
    rng = np.random.default_rng(4)
    column = rng.normal(size=8)
    y = column + 0.5 * rng.normal(size=8)
    nearly_equal = column + 1e-10 * rng.normal(size=8)
    nearly_equal[0] = y[0]
    data = Dataset.from_arrays(np.stack((column, nearly_equal), axis=1), y)
    record = solve(data, folds=spec, seed=1, gammas="1e-11..1e-10", taus=[1], gap=0.01)
    assert record.continuous is not None and record.continuous.pieces[0].supports is not None
    assert len(record.continuous.pieces) < 100 and record.tie_width > 0.05 * record.upper
    assert verify(record, data).ok


@pytest.mark.parametrize("spec", ["loo", "3"])
def test_a_search_can_end_at_any_step(spec: str) -> None:
    one = interval_problem(7, spec)
    lister, taus, ends = one.lister(), [1, 3, 5], (1e-3, 0.5)
    search = GammaPartition(EndLists(lister, BestOverGamma(lister, taus)), ends, 1e-5, lambda: False)
    truth = EveryGamma(one.data.dataset.X, one.data.dataset.y, one.folds, taus)
    least, unit = truth.least(2e-3, 1.0, 300), one.data.y_unit**2 / one.folds.scored
    search.begin()
    steps = 0
    while not search.is_finished:
        assert search.lower * unit <= least * (1.0 + 1e-9) and search.upper * unit >= least * (1.0 - 1e-9)
        search.step()
        steps += 1
    assert steps > 0 and search.lower >= (1.0 - 1e-5) * search.upper
    for t, tau in enumerate(taus):
        pieces = sorted((piece for piece in search.pieces() if piece.size == tau), key=lambda piece: piece.low)
        assert (pieces[0].low, pieces[-1].high) == ends
        assert all(a.high == b.low for a, b in zip(pieces[:-1], pieces[1:], strict=True))
        h = truth.h(np.array([2.0 * piece.middle for piece in pieces]))[t]
        assert all(piece.lower * unit <= value * (1.0 + 1e-9) for piece, value in zip(pieces, h, strict=True))


def test_without_time_nothing_is_claimed() -> None:
    one = interval_problem(7, "3")
    lister = one.lister()
    search = GammaPartition(EndLists(lister, BestOverGamma(lister, [2])), (1e-3, 1.0), 1e-4, lambda: True)
    search.begin()
    assert search.best is None and search.lower == 0.0 and search.upper == np.inf


def _covered(pieces: list[Piece], sizes: list[int], ends: tuple[float, float]) -> bool:
    for size in sizes:
        of_size = sorted((piece for piece in pieces if piece.size == size), key=lambda piece: piece.low)
        edges = [ends[0], *(piece.high for piece in of_size)]
        if edges[-1] != ends[1] or [piece.low for piece in of_size] != edges[:-1]:
            return False
    return True


def test_pieces_cover_the_interval_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also amid a step and before the first: another thread makes a record of them when the limit comes."""
    one, seen = interval_problem(7, "3"), list[bool]()
    lister, sizes, ends = one.lister(), [1, 3], (1e-3, 0.5)
    search = GammaPartition(EndLists(lister, BestOverGamma(lister, sizes)), ends, 1e-4, lambda: False)
    for name in ("_make_first_piece", "_solve", "_list", "_divide", "_score"):
        plain = getattr(search, name)

        def watched(*given: object, plain: Callable[..., object] = plain) -> object:
            seen.append(_covered(search.pieces(), sizes, ends))
            return plain(*given)

        monkeypatch.setattr(search, name, watched)
    assert _covered(search.pieces(), sizes, ends)
    search.begin()
    while not search.is_finished:
        search.step()
    assert len(seen) > 50 and all(seen)


def test_tied_optima_widen_the_held_out_error() -> None:
    """Of supports whose objectives differ by less than their rounding, each may be the optimum of its fold."""
    f, h = np.array([2.0, 2.0 + 1e-6, 5.0, 1.0]), np.array([0.5, 0.25, 9.0, 3.0])
    error, h_error = np.array([1e-5, 0.0, 0.0, 0.0]), np.array([0.125, 0.0, 0.0, 0.0])
    low, high, plain_low, plain_high = held_out(np.array([0, 0, 0, 1]), FitsAtLam(f, error, f, h, h_error))
    assert (low, plain_low) == (3.25, 3.5) and (high, plain_high) == pytest.approx((3.625, 3.5), rel=1e-9)


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
    assert report.ok and any("intervals cover every gamma" in line for line in report.verified)


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
    """Errors without an upper bound, and bounds that are not numbers, leave their pieces open."""
    rng = np.random.default_rng(2)
    X = rng.integers(-2, 3, (6, 5)) * 10.0 ** np.array(units)
    X[0] += 10.0 ** np.array(units)
    data = Dataset.from_arrays(X if units[0] == 0.0 else 1e8 + X / 1e8, 1e-55 * rng.normal(size=6))
    folds = folds_from_labels(np.array([0, 0, 1, 1, -1, -1]))
    how = {"scale": "none", "intercept": "none", "time_limit": 0.05}
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
            time_limit=0.25,
        )  # fmt: skip
        verify(record, data, folds).raise_if_failed()


@pytest.mark.parametrize("where", ["_make_search", "begin", "step"])
def test_a_limit_ends_a_search_that_does_not_ask_the_clock(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are loaded or compiled, and calls of LAPACK, ask for no clock."""
    one, free = interval_problem(8, "4"), threading.Event()
    owner = gamma_partition.IntervalSearch if where == "_make_search" else GammaPartition
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
    monkeypatch.setattr(gamma_partition, "standardize", lambda *_: free.wait(60.0))
    with pytest.raises(OutOfTime, match="while the data were being prepared"):
        cross_validate(one.data.dataset, one.folds, gammas="0.01..2", taus=[1], time_limit=0.1)
    free.set()


def test_the_model_at_the_answer_has_a_little_time_after_the_limit() -> None:
    for past, least in ((-3.0, 3.0), (-0.1, 0.2), (0.0, 0.2), (5.0, 0.2)):
        clock = Deadline(0.0, None, time.monotonic() - past)
        assert gamma_partition.seconds_for_model(clock) == pytest.approx(least, abs=0.02)


def test_the_curve_is_of_the_tau_that_is_reported() -> None:
    """Of a model that had no time another tau may be the best: the curve was of the one that the search found."""
    one = interval_problem(8, "4")
    data, options = one.data.dataset, SearchOptions(gap=1e-4)
    for tau in (1, 3, 6):

        def at(gamma: float, deadline: Deadline, tau: int = tau) -> Record:
            return answer(Question(data, one.folds, [gamma], [tau], options), deadline)

        gammas, taus = GammaInterval(0.01, 2.0), [1, 3, 6]
        question = Question(data, one.folds, gammas, taus, options)
        record = gamma_partition.solve_interval(IntervalSearch(question, gammas, taus, Deadline(None, None)), at)
        found = record.continuous
        assert found is not None and record.tau == tau
        some = range(0, len(found.curve_gammas), 40)
        gammas = [found.curve_gammas[i] for i in some]
        if gammas:
            grid = cross_validate(data, one.folds, gammas=gammas, taus=[tau], gap=0.0, method="grid")
            errors = [row.cv_error for row in sorted(grid.table, key=lambda row: row.gamma)]
            assert errors == pytest.approx([found.curve_errors[i] for i in some], rel=1e-7)


@pytest.mark.parametrize("seed", [9, *slow([7, 8])])
def test_the_bound_over_the_interval_is_that_of_its_pieces_if_no_pair_has_a_bound(seed: int) -> None:
    """After a limit the evaluated pairs may have the bound 0, while every piece has a bound above 0."""
    one, taus, gammas = interval_problem(seed, "4"), [1, 2, 3], GammaInterval(0.01, 2.0)
    data, options = one.data.dataset, SearchOptions(gap=1e-2)
    question = Question(data, one.folds, gammas, taus, options)
    truth = EveryGamma(data.X, data.y, one.folds, taus).least(0.01, 2.0, 400)
    for steps in (0, 3, 10**6):

        def at(gamma: float, deadline: Deadline) -> Record:
            stop = threading.Event()
            stop.set()
            return cross_validate(data, one.folds, gammas=[gamma], taus=taus, gap=1e-2, stop=stop)

        running = IntervalSearch(question, gammas, taus, Deadline(None, None))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gamma_partition, "MOST_PIECES", steps)
            record = gamma_partition.solve_interval(running, at)
        found = record.continuous
        assert found is not None and min(row.lower for row in record.table) == 0.0 and record.status != "proved"
        assert record.lower == min(record.cv_error, *(piece.lower for piece in found.pieces))
        assert 0.0 < record.lower <= truth * (1.0 + 1e-9) and verify(record, data, one.folds).ok
        wrong = replace(record, lower=truth * 1.01, gap=relative_gap(truth * 1.01, record.upper))
        assert "lower" in {failure.field for failure in verify(wrong, data, one.folds).failures}
        assert open_rows(record) == [] and not any("other pairs" in line for line in region_lines(record))
        is_open = [piece for piece in found.pieces if piece.lower < (1.0 - 1e-2) * record.upper]
        assert interval_lines(record)[1].startswith(f"not excluded: {several(len(is_open), 'piece')} (tau ")
        assert len(open_sentences(record)) == len(set(open_sentences(record)))

"""Grids: texts and numbers to ridge weights and support sizes."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio import grids
from sparsecv_mio.errors import BadInput


def test_gamma_lists_are_sorted_and_free_of_repeats() -> None:
    assert grids.gammas("1, 0.01,0.1,1") == (0.01, 0.1, 1.0)
    assert grids.gammas("5") == (5.0,)


def test_gamma_grids_are_logarithmic_and_inclusive() -> None:
    assert grids.gammas("0.001:10:5") == (0.001, 0.01, 0.1, 1.0, 10.0)
    assert grids.gammas("0.3:7:9") == pytest.approx(np.geomspace(0.3, 7, 9), rel=1e-11)
    assert grids.gammas("0.3:7:9")[0] == 0.3 and grids.gammas("0.3:7:9")[-1] == 7.0
    assert grids.gammas("2:2:1") == grids.gammas("2:2:4") == (2.0,)


def test_the_default_gammas_are_15_log_points() -> None:
    grid = grids.gammas(grids.DEFAULT_GAMMAS)
    assert len(grid) == 15
    assert grid == pytest.approx(np.logspace(-3, 1, 15), rel=1e-11)
    assert grids.default_gammas(89, 90) == grid and grids.default_gammas(89, 90, 5) == grids.gammas("1e-3:10:5")


def test_the_default_gammas_of_wide_data_begin_higher() -> None:
    assert grids.default_gammas(90, 90) == grids.gammas(grids.WIDE_GAMMAS)
    assert grids.default_gammas(90, 90) == pytest.approx(np.geomspace(0.05, 10, 9), rel=1e-11)
    assert grids.gammas_of(None, 90, 90) == grids.default_gammas(90, 90)
    with pytest.raises(BadInput, match="^gammas: COUNT of '0.05:10:0'"):
        grids.default_gammas(90, 90, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "nan",
        "inf",
        "a",
        "1,",
        "1,,2",
        "1:2",
        "1:2:3:4",
        "2:1:5",
        "0:1:5",
        "1:2:1",
        "1:2:0",
        "1:2:x",
        "1e400",
    ],
)
def test_a_wrong_gamma_names_its_option(text: str) -> None:
    with pytest.raises(BadInput, match="^--gamma: "):
        grids.gammas(text)


def test_tau_ranges_are_inclusive() -> None:
    assert grids.taus("2:4", 9) == (2, 3, 4)
    assert grids.taus("7", 9) == (7,)
    assert grids.taus("5, 0, 2:3,3", 9) == (0, 2, 3, 5)
    assert grids.taus("0:9", 9) == tuple(range(10))


@pytest.mark.parametrize(
    "text", ["", "10", "3:10", "-1", "-1:3", "4:2", "1:2:3", "a", "1.5", ":", "1:", "0:999999999999"]
)
def test_a_wrong_tau_names_its_option(text: str) -> None:
    with pytest.raises(BadInput, match="^--tau: "):
        grids.taus(text, 9)


@pytest.mark.parametrize(
    ("p", "n_train", "last"),
    [(10, 441, 10), (100, 441, 50), (100, 240, 30), (100, 20, 10), (31, 31, 10), (30, 31, 30), (30, 9, 8), (5, 2, 1)],
)
def test_default_taus(p: int, n_train: int, last: int) -> None:
    assert grids.default_taus(p, n_train) == tuple(range(1, last + 1))


def test_python_takes_texts_numbers_and_lists() -> None:
    assert grids.gammas_of("0.01:1:3", 9, 50) == grids.gammas_of(np.array([0.01, 0.1, 1.0]), 9, 50) == (0.01, 0.1, 1.0)
    assert grids.gammas_of(np.float32(0.5), 9, 50) == (0.5,)
    assert grids.taus_of(np.int64(3), 9, 50) == grids.taus_of([3.0], 9, 50) == (3,)
    assert grids.taus_of("log", 10, 100) == grids.log_taus(10, 100)
    assert grids.taus_of(None, 4, 3) == (1, 2)


@pytest.mark.parametrize("given", ["a", ["a"], [None], [float("nan")], object(), [[1.0]]])
def test_what_is_no_number_is_refused_in_one_line(given: object) -> None:
    with pytest.raises(BadInput, match=r"^gammas: .* not a [^\n]*$"):
        grids.gammas_of(given, 9, 50)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"^taus: .* not a [^\n]*$"):
        grids.taus_of(given, 9, 50)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"^taus: 2.5 is not a whole number$"):
        grids.taus_of(2.5, 9, 50)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["10..1", "1..1", "0..1", "1..2..3", "a..b", "1..", "-1..2"])
def test_intervals_that_are_none_are_refused_by_the_option(text: str) -> None:
    with pytest.raises(BadInput, match="--gamma"):
        grids.interval(text)


def test_an_interval_is_no_list() -> None:
    assert grids.interval("0.01:1:3") is None
    with pytest.raises(BadInput, match="is an interval"):
        grids.gammas("1e-3..10")
    with pytest.raises(BadInput, match="lower end first"):
        grids.GammaInterval(2.0, 1.0)

"""Option texts to values."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.cli import parse
from sparsecv_mio.errors import BadInput


def test_gamma_lists_are_sorted_and_free_of_repeats() -> None:
    assert parse.gammas("1, 0.01,0.1,1") == (0.01, 0.1, 1.0)
    assert parse.gammas("5") == (5.0,)


def test_gamma_grids_are_logarithmic_and_inclusive() -> None:
    assert parse.gammas("0.001:10:5") == (0.001, 0.01, 0.1, 1.0, 10.0)
    assert parse.gammas("0.3:7:9") == pytest.approx(np.geomspace(0.3, 7, 9), rel=1e-11)
    assert parse.gammas("0.3:7:9")[0] == 0.3 and parse.gammas("0.3:7:9")[-1] == 7.0
    assert parse.gammas("2:2:1") == parse.gammas("2:2:4") == (2.0,)


def test_the_default_gammas_are_15_log_points() -> None:
    grid = parse.gammas(parse.DEFAULT_GAMMAS)
    assert len(grid) == 15
    assert grid == pytest.approx(np.logspace(-3, 1, 15), rel=1e-11)


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
        parse.gammas(text)


def test_tau_ranges_are_inclusive() -> None:
    assert parse.taus("2:4", 9) == (2, 3, 4)
    assert parse.taus("7", 9) == (7,)
    assert parse.taus("5, 0, 2:3,3", 9) == (0, 2, 3, 5)
    assert parse.taus("0:9", 9) == tuple(range(10))


@pytest.mark.parametrize(
    "text", ["", "10", "3:10", "-1", "-1:3", "4:2", "1:2:3", "a", "1.5", ":", "1:", "0:999999999999"]
)
def test_a_wrong_tau_names_its_option(text: str) -> None:
    with pytest.raises(BadInput, match="^--tau: "):
        parse.taus(text, 9)


@pytest.mark.parametrize(
    ("p", "n_train", "last"), [(10, 441, 10), (100, 441, 30), (100, 20, 19), (30, 31, 30), (5, 2, 1), (1, 100, 1)]
)
def test_default_taus(p: int, n_train: int, last: int) -> None:
    assert parse.default_taus(p, n_train) == tuple(range(1, last + 1))


def test_names_may_be_quoted() -> None:
    assert parse.names(None, "--drop") is None
    assert parse.names('a b,"c,d" , e', "--drop") == ["a b", "c,d", "e"]
    for text in ("", " ", "a,,b", "a,"):
        with pytest.raises(BadInput, match="^--drop: "):
            parse.names(text, "--drop")


def test_limits() -> None:
    assert parse.threads(None, 7) == 7 and parse.threads(3, 7) == 3
    with pytest.raises(BadInput, match="^--threads: "):
        parse.threads(0, 7)

"""Checks that all option classes share."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.search.checks import (
    check_effort,
    check_formulation,
    check_limits,
    check_whole,
    shown,
    with_keywords,
)
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.words import Method


def test_keywords_are_checked_as_options_are() -> None:
    base = SearchOptions.of(method="grid", gap=0.5)
    made = with_keywords(base, {"gap": 0.25, "oracles": "none"}, "search")
    assert (made.method, made.gap, made.oracles, base.gap) == (Method.GRID, 0.25, (), 0.5)
    with pytest.raises(TypeError, match=r"search\(\) got .* 'gapp' \(did you mean 'gap'\?\)"):
        with_keywords(base, {"gapp": 0.1}, "search")
    with pytest.raises(BadInput, match="^engine shared: goes with method"):
        with_keywords(base, {"engine": "shared"}, "search")


def test_names_are_those_of_the_command_line() -> None:
    assert shown("mio_budget") == "mio-budget" and shown("gap") == "gap"


@pytest.mark.parametrize("given", [(0.0, None, None), (0.999, 1e-9, 1), (1e-4, 1e9, 4096)])
def test_effort_in_range(given: tuple[Any, Any, Any]) -> None:
    check_effort(*given)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((-1e-9, None, None), "gap"), ((1.0, None, None), "gap"), ((math.nan, None, None), "gap"),
        ((0.0, 0.0, None), "time-limit"), ((0.0, math.nan, None), "time-limit"), ((0.0, math.inf, None), "time-limit"),
        ((0.0, None, 0), "threads"), ((0.0, None, 4097), "threads"), ((0.0, None, math.nan), "threads"),
    ],
)  # fmt: skip
def test_effort_out_of_range(given: tuple[Any, Any, Any], name: str) -> None:
    with pytest.raises(BadInput, match=f"^{name}: "):
        check_effort(*given)


def test_whole_numbers() -> None:
    for fine in (None, 2, 2.0, 5):
        check_whole("repeats", fine, 2, 5)
    for wrong in (1, 6, 2.5, math.nan, math.inf, -(10**400)):
        with pytest.raises(BadInput, match="^repeats: "):
            check_whole("repeats", wrong, 2, 5)


def test_limits_of_one_mio() -> None:
    check_limits(Limits())
    check_limits(Limits(gap=0.0, seconds=1.0, nodes=5, threads=2))
    for wrong, name in (
        (Limits(gap=1.0), "gap"), (Limits(seconds=-1.0), "time-limit"), (Limits(nodes=0.5), "node-limit"),
        (Limits(threads=0), "threads"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=f"^{name}: "):
            check_limits(wrong)


def test_formulations_are_the_backends() -> None:
    assert check_formulation("gurobi", "BENDERS") == "benders" and check_formulation("native", None) is None
    with pytest.raises(BadInput, match="^formulation of highs: unknown word 'benders', use outer"):
        check_formulation("highs", "benders")


@pytest.mark.parametrize("wrong", ["x", "9" * 5000, [1], None, object()])
def test_what_is_no_number_is_no_effort(wrong: Any) -> None:
    for given in ({"gap": wrong}, {"time_limit": wrong}, {"threads": wrong}):
        if wrong is not None or "gap" in given:
            with pytest.raises(BadInput, match=r"is no (whole )?number$"):
                check_effort(**{"gap": 0.1, "time_limit": None, "threads": 1} | given)

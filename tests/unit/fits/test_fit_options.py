"""Options of fits on all rows: what they may be, and that keywords are their fields."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import FitOptions, PathOptions
from sparsecv_mio.formulation.outcome import Limits


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backend": "cplex"}, "^backend: unknown word 'cplex'"),
        ({"formulation": "benders"}, "^formulation of native: unknown word 'benders'"),
        ({"scale": "lenght"}, "^scale: unknown word 'lenght'"),
        ({"intercept": "no"}, "^intercept: unknown word 'no'"),
        ({"limits": Limits(gap=1.0)}, "^gap: 1 is out of range"),
        ({"limits": Limits(seconds=0.0)}, "^time_limit: 0 is out of range"),
        ({"limits": Limits(nodes=0)}, "^node_limit: 0 is out of range"),
        ({"limits": Limits(threads=0)}, "^threads: 0 is out of range"),
    ],
)
def test_a_value_out_of_range_names_its_option(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        FitOptions.of(**given)


def test_infinite_limits_are_none() -> None:
    assert FitOptions.of(limits=Limits(seconds=math.inf, nodes=math.inf)).limits == Limits()


@pytest.mark.parametrize(
    "given", [{"gap": float("nan")}, {"time_limit": -1.0}, {"threads": 0}, {"scale": "x"}, {"intercept": "x"}]
)
def test_a_path_out_of_range(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=f"^{next(iter(given))}: "):
        PathOptions.of(**given)

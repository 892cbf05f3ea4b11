"""The same plan with other values."""

from __future__ import annotations

import pytest

from sparsecv_mio.batch.changes import changed
from sparsecv_mio.batch.plan import tasks_of
from sparsecv_mio.errors import BadInput

PLAN = {"data": [{"design": "toeplitz", "draw": [0, 1]}, {"sklearn": "diabetes"}], "vary": {"folds": "5", "seed": 3}}


def test_settings_and_designs_change_and_the_plan_stays() -> None:
    found = changed(PLAN, ["draw=0:4", "snr=[0.5, 2]", "seed=7", "gamma=0.1:1:3", "time_limit=2.5", "folds=loo"])
    assert found["data"][0] == {"design": "toeplitz", "draw": [0, 1, 2, 3, 4], "snr": [0.5, 2]}
    assert found["data"][1] == {"sklearn": "diabetes"} and PLAN["vary"] == {"folds": "5", "seed": 3}
    assert found["vary"] == {"folds": "loo", "seed": 7, "gamma": "0.1:1:3", "time_limit": 2.5}
    assert len(tasks_of(found)) == 11


@pytest.mark.parametrize(
    ("change", "message"), [("seed", "write NAME=VALUES"), ("seed=5:2", "not above"), ("n=5", "no design that has it")]
)
def test_what_is_no_change(change: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        changed({"data": [{"sklearn": "diabetes"}]}, [change])

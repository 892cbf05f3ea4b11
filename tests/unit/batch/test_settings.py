"""Settings that are wrong for any data are refused by their name; those that are right pass."""

from __future__ import annotations

from typing import Any

import pytest

from sparsecv_mio.batch.settings import check_settings
from sparsecv_mio.errors import BadInput


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gap": 2.0}, "gap: 2 is out of range"),
        ({"gap": "1e-3"}, "gap: '1e-3' is no number, give one without quotes"),
        ({"gap": True}, "gap: True is no number"),
        ({"time_limit": 0}, "time_limit: 0 is out of range, give a positive number of seconds"),
        ({"cpu_limit": -1.0}, "cpu_limit: -1 is out of range"),
        ({"stability": "much"}, "stability: 'much' is no weight, give a number from 0"),
        ({"stability": -1}, "stability: -1 is no weight"),
        ({"stability": 1.0, "one_se": True}, "stability 1.0: goes with one_se off, not on"),
        ({"method": "rnds"}, "method: unknown word 'rnds' .did you mean 'rounds'"),
        ({"scale": "long"}, "scale: unknown word 'long'"),
        ({"scale": 1}, "scale: 1 is no word, give one in quotes"),
        ({"backend": "cplex"}, "backend: unknown word 'cplex'"),
        ({"oracles": "glr"}, "oracles: unknown word 'glr'"),
        ({"tau_step": "mio"}, "tau_step mio: goes with method descent, not auto"),
        ({"mio_budget": -1}, "mio_budget: -1 is no whole number of at least 0"),
        ({"seed": "a"}, "seed: 'a' is no whole number"),
        ({"split": 1.5}, "split: 1.5 is no whole number"),
        ({"refine": "yes"}, "refine: 'yes' is unknown, use true or false"),
        ({"one_se": "each"}, "one_se: 'each' is unknown"),
        ({"refit": "some"}, "refit: unknown word 'some'"),
        ({"test": 2}, "test 2 is no share"),
        ({"folds": 2.5}, "folds: 2.5 is neither"),
        ({"tau": 2.5}, "tau: 2.5 is neither"),
        ({"gamma": "1:0.1:3"}, "gamma: '1:0.1:3' is reversed"),
        ({"gamma": "0.1..1", "refine": True}, "gamma 0.1..1: refine goes with a grid"),
        ({"estimator": "laso"}, "estimator 'laso' is unknown .did you mean 'lasso'"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        check_settings({"estimator": "sparsecv", "folds": "10", "seed": 0, **wrong})
    assert "\n" not in str(caught.value)


def test_right_settings() -> None:
    check_settings({"estimator": "sparsecv", "folds": 10, "gamma": [0.1, 1], "tau": 3, "one_se": "both", "gap": 0})
    check_settings({"estimator": "lasso", "folds": "loo", "refit": "training", "test": 0.2, "gamma": None})

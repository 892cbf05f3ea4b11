"""The settings of a task: their names, and what is wrong with them whatever the data are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparsecv_mio.batch.estimators import REFITS, check_estimator_name
from sparsecv_mio.batch.oracles import ORACLES, SWITCHES, check_oracle
from sparsecv_mio.batch.ours import OURS, options_of
from sparsecv_mio.errors import BadInput
from sparsecv_mio.grids import gammas, interval
from sparsecv_mio.words import one_of

SEEDS = ("seed", "split")
COMMON = ("folds", "seed", "test", "split", "refit")
NUMBERS = ("gap", "time_limit", "cpu_limit", "test")
COUNTS = ("seed", "split", "mio_budget")
WORDS = (
    "scale", "intercept", "method", "backend", "formulation", "engine", "tau_step", "oracles", "refit", "estimator",
)  # fmt: skip
TEXTS_TOO = {"gamma": (int, float), "tau": (int,), "folds": (int,), "stability": (int, float)}  # beside texts
ONE_SE = (True, False, "both")


def check_settings(given: Mapping[str, Any]) -> None:
    """Refuse settings that are wrong for any data.

    Parameters
    ----------
    given : mapping
        Of a task, by name.

    Raises
    ------
    BadInput
        The message begins with the name of the setting.

    Examples
    --------
    >>> check_settings({"estimator": "sparsecv", "gap": 2.0})
    Traceback (most recent call last):
    ...
    sparsecv_mio.errors.BadInput: gap: 2 is out of range, a relative gap is at least 0 and below 1
    """
    for name, value in given.items():
        if value is not None:
            _check_kind(name, value)
    check_estimator_name(str(given["estimator"]))
    one_of(given.get("refit", "all"), REFITS, "refit")
    if given.get("test") is not None:
        check_share(given["test"])
    if given["estimator"] in ORACLES:
        check_oracle(given)
    if given["estimator"] == OURS:
        try:
            _check_search(given)
        except BadInput as error:
            raise BadInput(with_keys(str(error), given)) from None


def _check_kind(name: str, value: Any) -> None:
    """Refuse a value of another kind than a setting takes: a text where a number is wanted."""
    switch = isinstance(value, bool)
    if name in NUMBERS and (switch or not isinstance(value, int | float)):
        raise BadInput(f"{name}: {value!r} is no number, give one without quotes")
    if name in COUNTS and (switch or not isinstance(value, int) or value < 0):
        raise BadInput(f"{name}: {value!r} is no whole number of at least 0, give one without quotes")
    if name == "one_se" and value not in ONE_SE:
        raise BadInput(f"one_se: {value!r} is unknown, use true, false or 'both'")
    if name in ("refine", *SWITCHES) and not switch:
        raise BadInput(f"{name}: {value!r} is unknown, use true or false")
    if name in WORDS and not isinstance(value, str):
        raise BadInput(f"{name}: {value!r} is no word, give one in quotes")
    if name in TEXTS_TOO and not isinstance(value, list) and (switch or not isinstance(value, (str, *TEXTS_TOO[name]))):
        raise BadInput(f"{name}: {value!r} is neither a number nor a text in quotes")


def check_share(share: Any) -> None:
    """Raise `BadInput` for what is no share of test rows.

    Parameters
    ----------
    share : object
        As in the plan.
    """
    if not (isinstance(share, int | float) and 0.0 < share < 1.0):
        raise BadInput(f"test {share!r} is no share: give a number above 0 and below 1")


def _check_search(given: Mapping[str, Any]) -> None:
    """Refuse options of our search that are out of range or do not go together."""
    from sparsecv_mio.search.continuous.asked import check_interval
    from sparsecv_mio.search.hooks import Hooks

    options = options_of(given)
    limit, gamma = given.get("cpu_limit"), given.get("gamma")
    if limit is not None and not 0.0 < limit < float("inf"):
        raise BadInput(f"cpu_limit: {limit:g} is out of range, give a positive number of seconds")
    if isinstance(gamma, str):
        every = interval(gamma, "gamma")
        if every is None:
            gammas(gamma, "gamma")
        else:
            check_interval(every, options, Hooks())


def with_keys(message: str, given: Mapping[str, Any]) -> str:
    """Return a message about options with their names as plans have them.

    Parameters
    ----------
    message : str
    given : mapping
        Settings, by name.

    Examples
    --------
    >>> with_keys("time-limit: 0 is out of range", {"time_limit": 0})
    'time_limit: 0 is out of range'
    """
    message = re.sub(r"^(gamma|tau)s\b", r"\1", message).replace("=False", "=false")
    for name in given:
        message = re.sub(rf"\b{name.replace('_', '-')}\b", name, message) if "_" in name else message
    return message



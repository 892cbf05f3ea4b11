"""Every option with Cox loss works, or is refused with one line, as the table of docs/guide/survival.md states."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.data.weights import least_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.cv_bounds import bound_cv_errors
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.fits.one import export_one, fit_one
from sparsecv_mio.model_space import NONE, RESTRICTIONS
from sparsecv_mio.search.answer.answer_fits import make_answer_fits
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "survival.md"
GIVEN: dict[str, Any] = {  # a value of each option other than its default
    "scale": "variance", "intercept": "none", "loss": "cox", "positive": "1", "class_weight": "balanced",
    "exposure": "w", "offset": "w", "trials": "w", "event": "dead=1", "entry": "begin", "strata": "centre",
    "ties": "breslow", "gap": 0.01, "time_limit": 60.0, "threads": 1, "one_se": True, "stability": 0.5,
    "model": "average", "own_error": True, "method": "descent", "backend": "highs", "formulation": "perspective",
    "solver_option": "a=1", "mio_budget": 1.0, "refine": True, "scale_within": "folds",
    "na_within": "folds", "force_in": "a", "force_out": "a", "adjust": "a", "count": "columns", "at_most": "1:a,b",
    "hierarchy": "a=b", "nonnegative": "a", "nonpositive": "a", "coef_bounds": {"a": (None, 1.0)},
    "gamma 0": {"gammas": 0.0}, "gamma LO..HI": {"gammas": "0.1..1"}, "weights": "w",
    "folds": {"folds": "loo"}, "nested": {"nested": 2},
}  # fmt: skip


def table() -> dict[str, bool]:
    """Return the options and commands of the page, with True if they are supported."""
    text = PAGE.read_text().partition("## Supported options")[2]
    rows = re.findall(r"^\| (.*?) \| (supported|not supported)", text, re.MULTILINE)
    named = {name: words == "supported" for names, words in rows for name in re.findall(r"`([^`]+)`", names)}
    return {name.removeprefix("--").replace("-", "_"): is_supported for name, is_supported in named.items()}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    rows["days"] = np.ceil(8.0 * rng.exponential(size=40) * np.exp(-rows["a"]))
    number = np.arange(40)
    return rows.assign(dead=(number % 4 > 0) * 1, begin=-1.0, centre=number % 2, w=1.0 + number % 2)


def solve(**given: Any) -> Any:
    how: dict[str, Any] = {"event": "dead", "folds": "3", "gammas": [0.1], "taus": 1, "features": ["a", "b", "c"]}
    return sc.solve(frame(), time="days", **{"loss": "cox", **how, **given})


def test_default_sizes_depend_on_the_number_of_events() -> None:
    X, events = np.random.default_rng(1).normal(size=(200, 40)), np.arange(200) < 100
    rows = replace(Dataset.from_arrays(X, np.arange(200.0)), survival=Survival(events), event="event")
    folds = folds_from_labels(np.arange(200) % 10)  # the training rows have 90 events
    assert Grid.from_request(rows, folds, None, None, NONE, loss=Loss.COX).taus.tolist() == list(range(1, 12))
    weights = np.where(events, 2.0, 1.0)
    assert least_rows(replace(rows, row_weights=weights), folds, only_events=True) == 180
    assert least_rows(replace(rows, row_weights=weights), folds) == 270
    assert least_rows(replace(rows, row_weights=weights / 4.0), folds, only_events=True) == 90


def test_fits_in_long_precision_count_as_much_work() -> None:
    rows = Dataset.from_arrays(np.eye(9), np.arange(9.0))
    rows = replace(rows, survival=Survival(np.ones(9, dtype=bool)), event="event")
    fits = make_answer_fits(standardize(rows, "length", "none", loss=Loss.COX))
    assert fits.count_numbers(27) > 25 * fits.count_numbers(1)


def test_the_page_has_every_option() -> None:
    options = {field.name for field in fields(SearchOptions)} - {"restrictions", "sources", "oracles"} | set(
        RESTRICTIONS
    )
    assert set(GIVEN) <= set(table()) and options <= set(GIVEN)


@pytest.mark.parametrize("option", GIVEN)
def test_an_option_works_or_is_refused_with_one_line(option: str) -> None:
    value = GIVEN[option]
    given = value if option in ("gamma 0", "gamma LO..HI", "folds", "nested") else {option: value}
    if option == "own_error":
        given = {**given, "model": "average"}
    if table()[option]:
        record = solve(**given)
        assert record.status == "proved" and record.lower <= record.cv_error <= record.upper
        assert option != "nested" or (record.nested is not None and sc.verify(record, frame()).ok)
        return
    with pytest.raises(BadInput) as caught:
        solve(**given)
    words = str(caught.value)
    assert "\n" not in words and len(words) < 250
    if option not in ("gamma 0", "gamma LO..HI", "own_error", "method"):
        assert option.replace("_", "") in words.replace("_", "").replace(" ", "")


COMMANDS: dict[str, Callable[[Any, Any], object]] = {
    "path": lambda record, data: sc.best_subsets(data, gammas=[0.1], taus="1:2", loss="cox", event="dead"),
    "fit": lambda record, data: fit_one(data, tau=1, gamma=0.1, loss="cox", event="dead"),
    "verify": lambda record, data: sc.verify(record, frame()).ok or 1 / 0,
    "predict": lambda record, data: record.predict(frame()),
    "report": lambda record, data: record.report("/dev/null", frame()) if hasattr(record, "report") else None,
    "near": lambda record, data: sc.near_optimal(data, gamma=None, taus=None, loss="cox", event="dead"),
    "near __by cv": lambda record, data: sc.near_optimal(
        data, "3", gamma=0.1, taus=1, by="cv", loss="cox", event="dead"
    ),
    "bounds": lambda record, data: bound_cv_errors(
        data, sc.make_folds("3", data), gammas=[0.1], taus=[1], options=PathOptions(loss=Loss.COX, event="dead")
    ),
    "export": lambda record, data: export_one(data, "x.lp", tau=1, gamma=0.1, loss="cox", event="dead"),
    "baselines": lambda record, data: sc.compare_baselines(record, frame()),
    "infer": lambda record, data: sc.infer(record, frame(), 2),
    "bootstrap": lambda record, data: sc.bootstrap(record, frame(), 2),
    "stability_selection": lambda record, data: sc.stability_selection(record, frame(), 1),
}


@pytest.fixture(scope="module")
def record() -> Any:
    return solve()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works_or_is_refused_with_one_line(command: str, record: Any) -> None:
    rows = frame()
    data = sc.Dataset.from_arrays(
        rows[["a", "b", "c"]].to_numpy(), rows["days"].to_numpy(), names=list("abc"), target="days",
        aux={"dead": rows["dead"].to_numpy()},
    )  # fmt: skip
    if table()[command]:
        COMMANDS[command](record, data)
        return
    with pytest.raises(BadInput, match="not supported|is not supported") as caught:
        COMMANDS[command](record, data)
    assert "\n" not in str(caught.value)


def test_more_columns_than_rows() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(24, 30)), columns=[f"x{j}" for j in range(30)])
    rows["days"], rows["dead"] = np.arange(24.0) + 1.0, (np.arange(24) % 3 > 0) * 1
    record = sc.solve(rows, time="days", loss="cox", event="dead", folds="3", gammas=[1.0], taus=[0, 1])
    assert record.status == "proved" and sc.verify(record, rows).ok


def test_gamma_0_names_a_column_that_orders_all_events() -> None:
    for name, column in (("other", frame()["a"]), ("order", -frame()["days"])):
        words = "has no maximum if a combination of columns orders all events"
        words += {"other": "; give", "order": ", as 'order'; give"}[name]
        with pytest.raises(BadInput, match=words):
            sc.solve(frame().assign(**{name: column}), time="days", loss="cox", event="dead", gammas=0.0)


def test_a_structured_array_of_events_and_times() -> None:
    given, X = frame(), frame()[["a", "b", "c"]]
    y = np.array(list(zip(given["dead"] == 1, given["days"], strict=True)), dtype=[("died", bool), ("time", float)])
    how: dict[str, Any] = {"loss": "cox", "gammas": 0.1, "taus": 1, "folds": "3"}
    record = sc.solve(X, y=y, **how)
    assert record.cv_error == solve().cv_error and (record.data.target, record.data.event) == ("time", "died")
    for table, wrong, words in (
        (X, {"y": y[1:]}, "y: has 39 rows, but the data have 40"), (X, {"y": y["time"]}, "y is not a structured array"),
        (X, {"y": y, "event": "a"}, "event: y has the events"),
        (X, {"y": y, "target": "a"}, "target: y has the events"),
        (X.assign(died=1.0), {"y": y}, "y: its field 'died' is a column of the data too"),
        (X.to_numpy(), {"y": y}, "y: requires a table of features"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=words):
            sc.solve(table, **how, **wrong)

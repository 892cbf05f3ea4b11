"""An option is the same on every face: one test for commands, options of functions, estimators, plans and records."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio import cli
from sparsecv_mio.batch.batch_plan import COMMON, KINDS, OF_SEARCHES, SEARCH
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.declared_options import (
    COMMAND_SECONDS,
    OPTIONS,
    READING,
    RESTRICTING,
    SEARCHING,
    STORING,
    TABLE,
    UNITS,
    check_whole,
    option_name,
)
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import CommonOptions, FitOptions, NearOptions, PathOptions
from sparsecv_mio.model_space import RESTRICTIONS, Restrictions
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.sklearn import (
    BestSubsetLogistic,
    BestSubsetLogisticCV,
    BestSubsetPoisson,
    BestSubsetPoissonCV,
    BestSubsetRidge,
    BestSubsetRidgeCV,
)

CLASSES = (SearchOptions, PathOptions, FitOptions, CommonOptions, NearOptions, Hooks, Restrictions, Reading)
ESTIMATORS = (
    BestSubsetRidge, BestSubsetRidgeCV, BestSubsetLogistic, BestSubsetLogisticCV, BestSubsetPoisson,
    BestSubsetPoissonCV,
)  # fmt: skip
OTHER_DEFAULTS = {  # of a face that has reasons of its own
    ("fit", "gap"): 1e-7, ("compare", "gap"): 1e-7, ("compare", "threads"): 1, ("BestSubsetRidge", "gap"): 1e-7,
    ("BestSubsetLogistic", "gap"): 1e-7, ("BestSubsetLogistic", "gamma"): 0.1,
    ("BestSubsetPoisson", "gap"): 1e-7, ("BestSubsetPoisson", "gamma"): 0.1,
    ("solve", "time_limit"): COMMAND_SECONDS,
    ("PathOptions", "gap"): 1e-7, ("inspect", "loss"): None, ("BestSubsetRidge", "gamma"): 0.1,
    **{(oracle, name): "none" for oracle in ("iacv", "treecv", "loocv", "stepwise") for name in UNITS},
}  # fmt: skip
OTHER_HELP = {  # of a command that takes another value, or means something else
    "backend": ("fit",), "formulation": ("fit",), "folds": ("compare",), "threads": ("compare",),
    "target": ("compare",), "seed": ("iacv", "treecv"), "gamma": ("near", "fit", "export", "compare"),
    "json": ("inspect", "backends"), "tau": ("near", "fit", "export", "compare"), "quiet": ("verify",),
    "full": ("solve", "near", "inspect", "verify"),
    "by": ("plot",), "loss": ("iacv", "loocv", "stepwise"), "ties": ("stepwise",),
}  # fmt: skip


def commands() -> list[Any]:
    found = []
    for name in cli.COMMANDS:
        command: Any = cli.load_command(name)
        found += list(getattr(command, "commands", {name: command}).values())
    return found


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_commands(command: Any) -> None:
    for given in command.params:
        option = OPTIONS.get(given.name)
        if option is None or given.param_type_name == "argument" or command.name in OTHER_HELP.get(given.name, ()):
            continue
        text = option.help.rpartition("[")[0] if option.help.endswith("]") else option.help
        assert re.sub(r" +\[default: .*\]$", "", given.help) == text.rstrip(), option.name
        assert option.flag in given.opts or given.secondary_opts == [f"--no-{option_name(option.name)}"]
        default = OTHER_DEFAULTS.get((command.name, option.name), option.default)
        as_recorded = command.name in ("verify", "predict")
        assert given.default == (None if default == () or as_recorded and option.name in READING else default)


OF_RECORDS = ("verify", "predict", "check", "report", "plot")  # which read data as a record, or a proof, says


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_command_that_reads_a_table_has_all_its_options(command: Any) -> None:
    if command.name not in OF_RECORDS and any(one.name == "data" for one in command.params):
        assert set(TABLE) <= {one.name for one in command.params}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_options_of_functions(kind: Any) -> None:
    declared = [field for field in fields(kind) if field.name in OPTIONS]
    assert declared
    for field in declared:
        assert field.default == OTHER_DEFAULTS.get((kind.__name__, field.name), OPTIONS[field.name].default), field.name


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators(kind: Any) -> None:
    for name, given in signature(kind).parameters.items():
        if name in OPTIONS and name not in ("tau", "folds"):
            default = OTHER_DEFAULTS.get((kind.__name__, name), OPTIONS[name].default)
            assert given.default == (None if default == () else default), name


def test_groups_are_those_of_the_classes() -> None:
    search = {field.name for field in fields(SearchOptions)}
    assert {*UNITS, *SEARCHING, "sources", "oracles", "restrictions"} == search
    assert set(RESTRICTING) == set(RESTRICTIONS)
    assert tuple(field.name for field in fields(Restrictions)) == RESTRICTIONS
    assert set(READING) == {field.name for field in fields(Reading)}
    assert {*STORING, "scheduler"} <= {field.name for field in fields(Hooks)}


def test_plans() -> None:
    assert {*OF_SEARCHES, "threads"} == {*UNITS, *SEARCHING, *RESTRICTING, "sources", "oracles"}
    assert {*SEARCH, *COMMON} - {*RESTRICTING} <= set(KINDS)


def test_records() -> None:
    assert {"one_se", "gap"} <= {field.name for field in fields(Record)}


@pytest.mark.parametrize(
    ("name", "values"),
    [("gap", (0.0, 0.999)), ("time_limit", (None, 1e-9, 1e9)), ("threads", (None, 1, 4096)), ("mio_budget", (None, 0))],
)
def test_values_in_range(name: str, values: tuple[Any, ...]) -> None:
    assert [OPTIONS[name].validate(value) for value in values] == list(values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("gap", (-1e-9, 1.0, math.nan)), ("time_limit", (0.0, math.nan, math.inf)), ("threads", (0, 4097, math.nan)),
        ("mio_budget", (-1, 0.5)), ("by", ("x",)),
    ],
)  # fmt: skip
def test_values_out_of_range(name: str, values: tuple[Any, ...]) -> None:
    for wrong in values:
        with pytest.raises(BadInput, match=f"^{name}: "):
            OPTIONS[name].validate(wrong)


@pytest.mark.parametrize("wrong", ["x", "9" * 5000, [1], object()])
@pytest.mark.parametrize("name", ["gap", "time_limit", "threads"])
def test_what_is_no_number(name: str, wrong: Any) -> None:
    with pytest.raises(BadInput, match=r"is not a (whole )?number; give a (whole )?number$"):
        OPTIONS[name].validate(wrong)
    with pytest.raises(BadInput, match="^time_limit: 'True' is not a number; give a number$"):
        OPTIONS["time_limit"].validate(True)


def test_whole_numbers() -> None:
    for fine in (None, 2, 2.0, 5):
        check_whole("repeats", fine, 2, 5)
    for wrong in (1, 6, 2.5, math.nan, math.inf, -(10**400)):
        with pytest.raises(BadInput, match="^repeats: "):
            check_whole("repeats", wrong, 2, 5)


def test_keywords_of_searches_have_one_meaning() -> None:
    assert not {field.name for field in fields(SearchOptions)} & {field.name for field in fields(Hooks)}


@pytest.mark.parametrize(
    ("name", "value"),
    [("one_se", np.True_), ("refine", np.False_), ("gap", np.float32(0.25)), ("time_limit", np.int64(3)),
     ("threads", np.uint8(2)), ("method", np.str_("joint"))],
)  # fmt: skip
def test_scalars_of_numpy_are_those_of_python(name: str, value: Any) -> None:
    settled = OPTIONS[name].validate(value)
    assert settled == value.item() and not isinstance(settled, np.generic)
    assert getattr(SearchOptions.of(**{name: value}), name) == value.item()


@pytest.mark.parametrize(
    ("name", "end"),
    [
        (
            "reference",
            "'reference'; a record has a coefficient for each level; subtract the coefficient of the reference level",
        ),
        ("criterion", "'criterion'; use best_common_subset of sparsecv_mio.near.common_subset"),
        ("json", "'json'; use record.write_record(FILE)"),
        ("groups", "'groups'; use folds=\"groups:COLUMN\" with a column of the data"),
        ("Cs", "'Cs'; use gammas with the values 1 / C"),
        ("random_state", "'random_state'; use seed=... of solve, or cv=KFold(10, shuffle=True, random_state=...)"),
        ("force_inn", "(did you mean 'force_in'?)"),
        ("refined", "unexpected keyword argument 'refined'"),
        ("baselines", "; use compare_baselines(record, data, baselines=LIST) of sparsecv_mio"),
    ],
)
def test_an_unknown_keyword_is_told_its_counterpart_and_no_deprecated_one(name: str, end: str) -> None:
    data = sc.Dataset.from_arrays(np.eye(6, 2), np.arange(6.0))
    for function in (sc.solve, partial(sc.best_subsets, gammas=[1.0]), sc.near_optimal, sc.BestSubsetRidgeCV):
        arguments = () if function is sc.BestSubsetRidgeCV else (data,)
        with pytest.raises(TypeError) as wrong:
            function(*arguments, **{name: "x"})
        assert end in str(wrong.value) and "refine'?" not in str(wrong.value)

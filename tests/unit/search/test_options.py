"""Checks that all option classes share."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.cli.solve import solve
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.reading_options import Applied, Reading
from sparsecv_mio.declared_options import option_name
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.model_space import RESTRICTIONS
from sparsecv_mio.search import api
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.options import (
    DEFAULTS,
    RULES,
    Hooks,
    SearchOptions,
    check_limits,
    choose_method,
    merged_options,
    parse_oracles,
    with_keywords,
)
from sparsecv_mio.words import Intercept, Method, Oracle, Scale


def test_keywords_are_checked_as_options_are() -> None:
    base = SearchOptions.of(method="grid", gap=0.5)
    made = with_keywords(base, {"gap": 0.25, "oracles": "none"}, "search")
    assert (made.method, made.gap, made.oracles, base.gap) == (Method.GRID, 0.25, (), 0.5)
    with pytest.raises(TypeError, match=r"search\(\) got .* 'gapp' \(did you mean 'gap'\?\)"):
        with_keywords(base, {"gapp": 0.1}, "search")
    with pytest.raises(BadInput, match="^refine: requires method"):
        with_keywords(SearchOptions.of(method="bounds"), {"refine": True}, "search")


def test_limits_of_one_mio() -> None:
    check_limits(Limits())
    check_limits(Limits(gap=0.0, seconds=1.0, nodes=5, threads=2))
    for wrong, name in (
        (Limits(gap=1.0), "gap"), (Limits(seconds=-1.0), "time_limit"), (Limits(nodes=0.5), "node_limit"),
        (Limits(threads=0), "threads"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=f"^{name}: "):
            check_limits(wrong)


# a value of every option that differs from its default and can be asked of any machine
OTHER: dict[str, list[Any]] = {
    "scale": ["none"],
    "scale_within": ["folds"],
    "na_within": ["folds"],
    "intercept": ["none"],
    "gap": [0.0],
    "stability": [1.0],
    "one_se": [True],
    "model": ["average"],
    "own_error": [True],
    "time_limit": [60.0],
    "threads": [1],
    "method": ["rounds", "joint", "algorithm1", "grid", "bounds", "descent"],
    "backend": ["highs"],
    "formulation": ["outer"],
    "solver_option": [{"presolve": "off"}],
    "mio_budget": [0, 2],
    "refine": [True],
    "sources": ["-support-fits", "none"],
    "oracles": ["glru", "none"],
    "force_in": ["x0"],
    "adjust": ["x3"],
    "force_out": ["x2"],
    "count": [[["x2", "x3"]]],
    "at_most": ["1:x0,x1"],
    "hierarchy": ["x1=x0"],
    "coef_bounds": ["x0=0..1"],
    "nonnegative": ["x0"],
    "nonpositive": ["x1"],
    "loss": ["logistic"],
    "positive": ["0"],
    "class_weight": ["balanced"],
    "exposure": ["days"],
    "offset": ["days"],
    "trials": ["days"],
    "event": ["died"],
    "entry": ["begin"],
    "strata": ["centre"],
    "ties": ["breslow"],
}
EVERY = {field.name for field in fields(SearchOptions)} - {"restrictions"} | set(RESTRICTIONS)
# what an option needs before it can be combined with a third one
NEEDS: dict[str, dict[str, str]] = {
    "formulation": {"backend": "highs"},
    "solver_option": {"backend": "highs"},
    "mio_budget": {"method": "joint"},
    "own_error": {"model": "average"},
    "positive": {"loss": "logistic"},
    "class_weight": {"loss": "logistic"},
    "exposure": {"loss": "poisson"},
    "offset": {"loss": "poisson"},
    "trials": {"loss": "logistic"},
    "event": {"loss": "cox"},
    "entry": {"loss": "cox", "event": "died"},
    "strata": {"loss": "cox", "event": "died"},
    "ties": {"loss": "cox", "event": "died"},
}
SURVIVAL = "event", "entry", "strata", "ties"


def data(of_classes: bool = False) -> Dataset:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(18, 4))
    y = 2.0 * X[:, 1] - X[:, 3] + rng.normal(size=18)
    return Dataset.from_arrays(X, (y > np.median(y)).astype(float) if of_classes else y)


def refused(given: dict[str, Any]) -> bool:
    """What the rules say of some options, read off the table by hand."""
    value = DEFAULTS | given
    return any(
        value[rule.option] not in (DEFAULTS[rule.option], ()) and value[rule.other] not in rule.words for rule in RULES
    )


# -- one option -------------------------------------------------------------------------------------------------------


def test_words_become_members_in_whatever_letters() -> None:
    made = SearchOptions.of(scale="VARIANCE", intercept=" none", method="Joint", backend="HIGHS", formulation="Outer")
    assert (made.scale, made.intercept, made.method) == (Scale.VARIANCE, Intercept.NONE, Method.JOINT)
    assert (made.backend, made.formulation) == ("highs", "outer")
    assert replace(made, formulation=None, backend="native") == SearchOptions(
        Scale.VARIANCE, Intercept.NONE, method=Method.JOINT
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gap": 1.0}, "^gap: 1 is out of range"),
        ({"gap": -1e-9}, "^gap: "),
        ({"gap": float("nan")}, "^gap: nan"),
        ({"time_limit": 0.0}, "^time_limit: 0 is out of range"),
        ({"time_limit": float("nan")}, "^time_limit: "),
        (
            {"time_limit": float("inf")},
            "^time_limit: inf is out of range; give .* number of seconds, or None for no limit",
        ),
        ({"threads": 0}, "^threads: 0 is out of range; give a whole number of at least 1"),
        ({"threads": 1.5}, "^threads: 1.5"),
        ({"threads": 5000}, "^threads: 5000 is out of range; give at most 4,096"),
        ({"mio_budget": -1, "method": "grid"}, "^mio_budget: -1"),
        ({"scale": "lenght"}, "^scale: unknown word 'lenght' .did you mean 'length'"),
        ({"intercept": "folds"}, "^intercept: unknown word 'folds'"),
        ({"method": "magic"}, "^method: unknown word 'magic'; use auto, rounds, joint"),
        ({"backend": "cplex"}, "^backend: unknown word 'cplex'"),
        ({"backend": "highs", "formulation": "benders"}, "^formulation of highs: unknown word 'benders'; use outer"),
        ({"oracles": "glru,tree"}, "^oracles: unknown word 'tree' .did you mean 'treecv'"),
        ({"oracles": "none,glru"}, "^oracles: 'none' is given with other keywords; give 'none' alone"),
        ({"oracles": ""}, "^oracles: unknown word ''"),
        ({"sources": "-weighted-tree"}, "^sources: unknown bounding method 'weighted-tree' .did you mean 'weighted-t"),
        ({"sources": ""}, "^sources: unknown bounding method ''; give some of initial-supports, .*, subproblem-trees$"),
        ({"sources": "-initial supports"}, "^sources: every search needs initial-supports; remove -initial-supp"),
        (
            {"sources": "enclosures,-weighted-trees"},
            "^sources: some names have a minus and others do not; list the sources to use, or",
        ),
    ],
)
def test_a_value_out_of_range_names_its_option(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        SearchOptions.of(**given)


def test_oracles_by_list_or_text() -> None:
    assert parse_oracles("IACV, glru,glru") == parse_oracles(("iacv", "glru")) == (Oracle.GLRU, Oracle.IACV)
    assert parse_oracles("none") == parse_oracles(()) == parse_oracles(["none"]) == ()
    assert parse_oracles(None) is None


def test_options_never_change() -> None:
    made = SearchOptions.of(threads=3)
    assert made.workers == 3 and SearchOptions().workers >= 1 and hash(made) == hash(SearchOptions(threads=3))
    with pytest.raises(FrozenInstanceError):
        made.gap = 0.5  # type: ignore[misc]


def test_what_needs_the_data() -> None:
    plan = make_folds("3", data())
    SearchOptions.of(one_se=True).check_data(data(), plan)
    with pytest.raises(BadInput, match="has 18 rows, but the data have 5"):
        SearchOptions().check_data(Dataset.from_arrays(np.eye(5), np.arange(5.0)), plan)
    single = make_folds("holdout:0.2", data())
    SearchOptions().check_data(data(), single)
    with pytest.raises(BadInput, match="^one_se: "):
        SearchOptions.of(one_se=True).check_data(data(), single)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_other_losses_take_the_method_that_they_use(loss: str) -> None:
    assert choose_method(SearchOptions.of(loss=loss, method="joint")) is Method.JOINT
    with pytest.raises(BadInput, match="^loss .*: requires method auto or joint, not bounds .*use `sparsecv bounds`"):
        SearchOptions.of(loss=loss, method="bounds")


# -- options together -------------------------------------------------------------------------------------------------


def test_there_is_another_value_of_every_option() -> None:
    assert set(OTHER) == EVERY
    assert all({rule.option, rule.other} <= set(OTHER) and rule.why for rule in RULES)


PAIRS = [  # every sixteenth one; the slow suite takes all
    pytest.param(pair, marks=[pytest.mark.slow] if i % 16 else [], id="+".join(pair))
    for i, pair in enumerate(combinations(OTHER, 2))
]


@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_is_refused_or_runs(pair: tuple[str, str]) -> None:
    """The rules are the whole story: what they let pass is searched to an answer, and keeps to what was asked."""
    ours = data(bool({"loss", "positive", "class_weight"}.intersection(pair)))
    if "trials" in pair:
        ours = replace(data(True), aux={"days": 1.0 + np.arange(ours.n) % 3})
    elif set(SURVIVAL).intersection(pair):
        aux = {"died": np.arange(ours.n) % 3 > 0, "begin": np.full(ours.n, -1.0), "centre": np.arange(ours.n) % 2}
        ours = replace(ours, y=np.rint(np.abs(ours.y)), aux=aux)
    elif {"exposure", "offset"}.intersection(pair):
        ours = replace(ours, y=np.rint(np.abs(ours.y)), aux={"days": 1.0 + np.arange(ours.n) % 3})
    if "na_within" in pair:
        ours = replace(
            ours, holes=np.eye(*ours.X.shape) > 0.0, reading=Applied(Reading.from_keywords(na="mean"), ours.names)
        )
    for one in OTHER[pair[0]]:
        for two in OTHER[pair[1]]:
            given = NEEDS.get(pair[0], {}) | NEEDS.get(pair[1], {}) | {pair[0]: one, pair[1]: two}
            if refused(given):
                with pytest.raises(BadInput, match="requires|not supported with"):
                    cross_validate(ours, make_folds("3", ours), gammas=[0.1, 1.0], taus=[1, 2], **given)
                continue
            record = cross_validate(ours, make_folds("3", ours), gammas=[0.1, 1.0], taus=[1, 2], **given)
            assert record.lower <= record.cv_error
            assert record.work.mios <= given.get("mio_budget", np.inf)
            assert (record.refined is not None) == given.get("refine", False)
            assert (record.one_se is not None) == given.get("one_se", False)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"refine": True, "method": "descent"}, "^refine: requires method .*, not descent"),
        ({"backend": "scip", "method": "rounds"}, "^backend scip: requires method .*, not rounds"),
        ({"mio_budget": 0}, "^mio_budget 0: requires method joint, algorithm1 or grid, not auto"),
        ({"refine": True, "method": "bounds"}, "^refine: requires method .*, not bounds"),
        ({"formulation": "outer"}, "^formulation outer: requires backend .*, not native"),
        ({"one_se": True, "method": "bounds"}, "^one_se: requires method .*, not bounds"),
    ],
)
def test_the_message_names_both_options(given: dict[str, Any], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        SearchOptions.of(**given)


def test_the_command_line_refuses_what_python_refuses(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ours, path = data(), tmp_path / "data.csv"
    head = ",".join((*ours.names, "y"))
    np.savetxt(path, np.column_stack([ours.X, ours.y]), delimiter=",", header=head, comments="")
    ask = ["solve", str(path), "--target", "y", "--folds", "3", "--gamma", "1", "--tau", "1"]
    for given in (
        {"refine": True, "method": "descent"}, {"mio_budget": 3},
        {"backend": "scip", "method": "rounds"}, {"one_se": True, "method": "bounds"},
        {"gap": 1.0}, {"method": "magic"}, {"oracles": "none,glru"}, {"threads": 0},
    ):  # fmt: skip
        words = [[f"--{option_name(name)}", *([] if value is True else [str(value)])] for name, value in given.items()]
        with pytest.raises(BadInput) as error:
            SearchOptions.of(**given)  # type: ignore[arg-type]
        assert run([*ask, *(word for pair in words for word in pair)]) == 2
        said = capsys.readouterr().err  # with the names of options as the command line has them
        assert f"--{option_name(next(iter(given)))}" in said
        in_python = f"sparsecv: error: {error.value}\n"
        assert said.replace("--", "").replace("-", "_") == in_python.replace("--", "").replace("-", "_")


# -- one type for all who ask -----------------------------------------------------------------------------------------


def test_the_command_line_has_every_option() -> None:
    there = {param.name for param in solve.params}
    assert there >= EVERY
    assert {"checkpoint", "resume", "trace"} <= there


@pytest.mark.parametrize(
    ("given", "method"),
    [({}, "rounds"), ({"backend": "highs"}, "joint"), ({"loss": "logistic"}, "joint"), ({"method": "grid"}, "grid")],
)
def test_what_auto_means(given: dict[str, Any], method: str) -> None:
    assert choose_method(SearchOptions.of(**given)) == method


def test_keywords_go_before_objects() -> None:
    base, watch = SearchOptions.of(method="grid", gap=0.5), Hooks(began=3.0)
    options, hooks = merged_options(base, watch, {"gap": 0.25, "trace": "here"}, "search")
    assert (options.method, options.gap, base.gap) == (Method.GRID, 0.25, 0.5)
    assert (hooks.began, hooks.trace, watch.trace) == (3.0, "here", None)
    assert merged_options(None, None, {}, "search") == (SearchOptions(), Hooks())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seed": "a"}, "seed: 'a' is not a whole number"),
        ({"nested": "3"}, "nested: '3' is not a whole number"),
        ({"oracles": 5}, "oracles: 5 is not a list of keywords"),
        ({"oracles": [5]}, r"oracles: \[5\] is not a list of keywords"),
        ({"sources": 5}, "sources: 5 is not a list of names; give some of"),
        ({"scheduler": 3}, "--scheduler: 3 is not an address"),
        ({"scale": None}, "scale: unknown word 'None'"),
        ({"one_se": "yes"}, "one_se: 'yes' is neither True nor False"),
        ({"refine": "no"}, "refine: 'no' is neither True nor False"),
    ],
)
def test_a_value_of_another_kind_is_named(given: dict[str, Any], said: str) -> None:
    data = Dataset.from_arrays(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0))
    with pytest.raises(BadInput, match=f"^{said}"):
        api.solve(data, gammas=0.1, taus=1, **given)

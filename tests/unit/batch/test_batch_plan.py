"""Settings that are wrong for any data are refused by their name; those that are right pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparsecv_mio.batch.batch_plan import check_settings, lists_of_numbers, make_tasks, plan_with_changes, read_plan
from sparsecv_mio.errors import BadInput


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gap": 2.0}, "gap: 2 is out of range"),
        ({"gap": "1e-3"}, "gap: '1e-3' is not a number; give a number without quotes"),
        ({"gap": True}, "gap: True is not a number"),
        ({"time_limit": 0}, "time_limit: 0 is out of range; give a positive number of seconds"),
        ({"cpu_limit": -1.0}, "cpu_limit: -1 is out of range"),
        ({"stability": "much"}, "stability: 'much' is not a weight; give a number from 0"),
        ({"stability": -1}, "stability: -1 is not a weight"),
        ({"stability": 1.0, "one_se": True}, "stability 1: not supported with one_se .*; leave one of the two out$"),
        ({"method": "rnds"}, "method: unknown word 'rnds' .did you mean 'rounds'"),
        ({"scale": "long"}, "scale: unknown word 'long'"),
        ({"scale": 1}, "scale: 1 is not a text; give a text in quotes"),
        ({"backend": "cplex"}, "backend: unknown word 'cplex'"),
        ({"oracles": "glr"}, "oracles: unknown word 'glr'"),
        ({"sources": "-enclosure"}, "sources: unknown bounding method 'enclosure' .did you mean 'enclosures'"),
        ({"gamma": "0.1..1", "sources": "none"}, "gamma 0.1..1: sources requires a grid"),
        ({"mio_budget": -1}, "mio_budget: -1 is not a whole number of at least 0"),
        ({"seed": "a"}, "seed: 'a' is not a whole number"),
        ({"split": 1.5}, "split: 1.5 is not a whole number"),
        ({"refine": "yes"}, "refine: 'yes' is unknown; use true or false"),
        ({"one_se": "each"}, "one_se: 'each' is unknown"),
        ({"refit": "some"}, "refit: unknown word 'some'"),
        ({"test": 2}, "test: 2 is not a share"),
        ({"folds": 2.5}, "folds: 2.5 is neither"),
        ({"tau": 2.5}, "tau: 2.5 is neither"),
        ({"gamma": "1:0.1:3"}, "gamma: '1:0.1:3' is reversed"),
        ({"gamma": "0.1..1", "refine": True}, "gamma 0.1..1: refine requires a grid"),
        ({"estimator": "laso"}, "estimator 'laso' is unknown .did you mean 'lasso'"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        check_settings({"estimator": "sparsecv", "folds": "10", "seed": 0, **wrong})
    assert "\n" not in str(caught.value)


PLAN = {"data": [{"design": "toeplitz", "draw": [0, 1]}, {"sklearn": "diabetes"}], "vary": {"folds": "5", "seed": 3}}


def test_settings_and_designs_change_and_the_plan_stays() -> None:
    found = plan_with_changes(
        PLAN, ["draw=0:4", "snr=[0.5, 2]", "seed=7", "gamma=0.1:1:3", "time_limit=2.5", "folds=loo"]
    )
    assert found["data"][0] == {"design": "toeplitz", "draw": [0, 1, 2, 3, 4], "snr": [0.5, 2]}
    assert found["data"][1] == {"sklearn": "diabetes"} and PLAN["vary"] == {"folds": "5", "seed": 3}
    assert found["vary"] == {"folds": "loo", "seed": 7, "gamma": "0.1:1:3", "time_limit": 2.5}
    assert len(make_tasks(found)) == 11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("seed", "write NAME=VALUES"),
        ("seed=5:2", "LO at most HI"),
        ("n=5", "no design of the plan has this key"),
        ("seed=0:1000000", "at most 1,000,000 values"),
    ],
)
def test_what_is_no_change(change: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan_with_changes({"data": [{"sklearn": "diabetes"}]}, [change])


PLAN_PLAN = """
[[data]]
file = "*.csv"
target = "y"

[[data]]
design = "toeplitz"
n = [20, 30]
p = 5
support = 2

[vary]
folds = ["3", "loo"]
seed = [0, 1]
method = ["rounds", "joint"]
estimator = ["sparsecv", "lasso"]
gamma = "0.1"

[[exclude]]
folds = "loo"
seed = 1

[[include]]
data = "a"
folds = "4"
"""


def written(folder: Path, text: str = PLAN_PLAN) -> Path:
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text(f"x,y\n1,2\n2,{len(name)}\n3,4\n4,4\n{ord(name)},1\n")
    place = folder / "plan.toml"
    place.write_text(text)
    return place


def test_the_product_less_what_is_excluded(tmp_path: Path) -> None:
    tasks = read_plan(written(tmp_path))
    # 4 data sets x (3 of 4 pairs of folds and seed) x (2 methods of ours, 1 peer), and one besides
    assert len(tasks) == 4 * 3 * 3 + 1 and len({task.address for task in tasks}) == len(tasks)
    designs = {f"toeplitz n={n} p=5 support=2" for n in (20, 30)}
    assert {task.source.name for task in tasks} == {"a", "b"} | designs
    peer = next(task for task in tasks if task.estimator == "lasso")
    assert dict(peer.settings) == {"folds": "3", "seed": 0, "estimator": "lasso"}
    assert tasks[-1].words() == "folds=4 seed=0 estimator=sparsecv gamma=0.1 method=rounds"


def test_settings_that_no_estimator_uses_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    read_plan(written(tmp_path), warn=told.append)
    assert told == []
    plan = written(tmp_path, PLAN_PLAN.replace("[vary]", '[vary]\nway = "tree"'))
    read_plan(plan, warn=told.append)
    assert told == ["setting 'way' is not used by any estimator of the plan; remove it"]
    read_plan(plan, ["estimator=['treecv','lasso']"], warn=told.append)
    unused = [f"setting {name!r} is not used by any estimator of the plan; remove it" for name in ("method", "gamma")]
    assert told[1:] == unused


def test_deprecated_settings_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    tasks = read_plan(written(tmp_path), ["sources=['all', '-enclosures']", "refine=false"], warn=told.append)
    assert {task.settings.get("sources") for task in tasks} >= {"all", "-enclosures"} and told == []
    read_plan(written(tmp_path), ["oracles='none'", "refine=true"], warn=told.append)
    assert [line.partition(" will be")[0] for line in told] == [
        "setting 'oracles' has no effect and", "setting 'refine'",
    ]  # fmt: skip


def test_seeds_that_share_their_test_rows_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    read_plan(written(tmp_path), ["test=0.2"], warn=told.append)
    assert told == ["seed changes only the folds; to change the test rows as well, vary split"]
    read_plan(written(tmp_path), ["test=0.2", "split=0:1"], warn=told.append)
    assert len(told) == 1


def test_a_list_of_gammas_is_no_grid(tmp_path: Path) -> None:
    tasks = read_plan(written(tmp_path), ["gamma=[0.1, 1.0, 10]", "tau='1:3'"])
    assert lists_of_numbers(tasks) == [
        'each of the 3 values of gamma makes a separate task; for one task with a grid, write gamma = "0.1,1.0,10"'
    ]
    assert lists_of_numbers(read_plan(written(tmp_path))) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "is not a TOML file"),
        ("[vary]\nfolds = '5'\n", "there is no data set"),
        (
            "[[data]]\nsklearn = 'diabetes'\n[settings]\nfolds = '5'\n",
            "\\[settings\\] is not a table of a plan; use .*, and put settings into .vary.",
        ),
        (
            "folds = '5'\n[[data]]\nsklearn = 'diabetes'\n",
            "\\[folds\\] is not a table of a plan; use .*, and put settings into .vary.",
        ),
        ("[[data]]\nfile = 'no.csv'\n", "does not exist"),
        ("[[data]]\nfile = 'no*.csv'\n", "no file matches"),
        ("[[data]]\nfiles = 'a.csv'\n", "exactly one of the keys file, design and sklearn"),
        ("[[data]]\nfile = 'a.csv'\ntargt = 'y'\n", "unknown key 'targt' .did you mean 'target'"),
        ("[[data]]\nsklearn = 'iris'\n", "sklearn 'iris' is unknown"),
        ("[[data]]\nsklearn = 'diabetes'\n[vary]\nfold = '5'\n", "unknown key 'fold' .did you mean 'folds'"),
        ("[[data]]\nsklearn = 'diabetes'\n[vary]\ntest = [0.2, 2]\n", "test: 2 is not a share"),
        ("[[data]]\nsklearn = 'diabetes'\n[vary]\ngamma = '1..0.1'\n", "gamma: '1..0.1' is reversed"),
        ("[[data]]\nsklearn = 'diabetes'\n[vary]\nfolds = []\n", "is an empty list; remove it or give a value"),
        ("[[data]]\nsklearn = 'diabetes'\n[[exclude]]\nfolds = '10'\n", "every task is excluded"),
        ("[[data]]\nsklearn = 'diabetes'\n[[include]]\ndata = 'x'\n", "there is no data set 'x'"),
        ("[[data]]\nsklearn = 'diabetes'\n[vary]\nseed = 2020-01-01\n", "seed: 2020-01-01 is a date or a time"),
        ("[[data]]\nsklearn = 'diabetes'\n[vary]\nseed = [0, 10:00:00]\n", "seed: 10:00:00 is a date or a time"),
        (
            f"[[data]]\nsklearn = 'diabetes'\n[vary]\nseed = {'9' * 5000}\n",
            "a number with too many digits, or lists that are nested too deeply",
        ),
        (f"[[data]]\nsklearn = 'diabetes'\n[vary]\nseed = {'9' * 30}\n", "seed: a number has more than 18 digits"),
        ("data = 2020-01-01\n", "must be tables, not '2020-01-01'"),
        ("[[data]]\nsklearn = 'diabetes'\n[[vary]]\nseed = 1\n", "must be a table"),
        ("[[data]]\nfile = 'a.csv'\ntarget = 2020-01-01\n", "target: 2020-01-01 is a date"),
        ("[[data]]\nfile = 'a.csv'\ntarget = [['y']]\n", "target .* is not a column"),
        ("[[data]]\nfile = 'a.csv'\ntarget = 'y'\nfeatures = [1.5]\n", "features 1.5 is not a column"),
        ("[[data]]\nfile = 'a.csv'\ntarget = 'y'\nsep = 9\n", "sep: 9 is not a text"),
        ("[[data]]\nfile = 'a.csv'\ntarget = 'y'\nindex_col = [[]]\n", "neither the name nor the position"),
        ("[[data]]\nfile = 'a.csv'\ntarget = 'y'\nheader = 1\n", "neither True nor False"),
        ("[[data]]\nfile = ['a.csv', 3]\n", "file 3 is not a path"),
        ("[[data]]\nfile = []\n", "file is an empty list"),
    ],
)
def test_wrong_plans(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        read_plan(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_options_of_a_solver_are_tables_and_one_text_of_a_task(tmp_path: Path) -> None:
    asked = [{"presolve": "off"}, {"random_seed": 3, "parallel": "on"}]
    vary = {"gamma": 0.1, "backend": "highs", "solver_option": asked}
    design = {"design": "toeplitz", "n": 20, "p": 3, "support": 1}
    tasks = make_tasks({"data": [design], "vary": vary}, tmp_path)
    assert [task.settings["solver_option"] for task in tasks] == ["presolve=off", "random_seed=3,parallel=on"]
    for wrong, message in (
        ({"presolv": 1}, "highs rejects this option: unknown option 'presolv'"),
        (3, "3 is not a text"),
    ):
        with pytest.raises(BadInput, match=f"^.*solver_option.*{message}"):
            make_tasks({"data": [design], "vary": {**vary, "solver_option": wrong}}, tmp_path)
    with pytest.raises(BadInput, match="solver_option presolve=off: requires backend"):
        make_tasks({"data": [design], "vary": {"solver_option": {"presolve": "off"}}}, tmp_path)

"""Rounds, Algorithm 1, joint and grid search against full enumeration; every backend against the native engine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from reference import cv_intervals
from runs import new_run

from sparsecv_mio import thresholds
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run as main
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search import estimates
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.one_by_one import ORDERS
from sparsecv_mio.search.options import COUNT_MIOS
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.words import Method

INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance
GAPS = (0.0, 1e-4, 5e-2)
METHODS = (Method.ROUNDS, Method.JOINT, *ORDERS)  # each meets the enumeration; a descent its own, in test_gamma


def truth(case: RandomProblem) -> tuple[np.ndarray, np.ndarray]:
    """Optimistic and pessimistic h over ties, by (gamma, tau)."""
    data, how = case.data, (case.scale, case.intercept)
    return cv_intervals(data.X, data.y, case.folds.labels, case.gammas, case.taus, how, INSIDE)


def solved(case: RandomProblem, method: str, gap: float, **options: object) -> Record:
    return cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept,
        gap=gap, threads=1, method=method, **options,  # type: ignore[arg-type]
    )  # fmt: skip


def check(seed: int, **size: int) -> None:
    """Certificate and claim of one method on one problem; METHODS in turn, GAPS beneath."""
    case = random_problem(seed, **size)
    method, gap = METHODS[seed % len(METHODS)], GAPS[seed // len(METHODS) % 3]
    record = solved(case, method, gap)
    low, high = truth(case)
    rounding = 1e-9 * record.upper
    reported = high[case.gammas.index(record.gamma), case.taus.index(record.tau)]
    assert record.lower <= low.min() + rounding, (method, gap)
    assert record.own_row is not None and record.own_row.upper >= reported - rounding, (method, gap)
    assert record.upper >= high.min() - rounding, (method, gap)
    lists = 1 if method is Method.JOINT else 0  # of near-optimal supports on all rows, one a pair at most
    assert record.work.mios <= len(case.gammas) * len(case.taus) * (case.folds.k + lists)
    if record.status == "proved":
        room = gap * record.upper + record.tie_width + record.allowance
        assert reported <= low.min() + room * (1.0 + 1e-9) + rounding, (method, gap)


def test_every_word_of_the_command_names_a_method_that_is_tested() -> None:
    assert set(Method) == {Method.AUTO, Method.DESCENT, *METHODS}


@pytest.mark.parametrize("block", range(9))
def test_methods_against_enumeration(block: int) -> None:
    per_block = len(METHODS)
    for seed in range(per_block * block, per_block * (block + 1)):
        check(seed, rows=30, columns=7)


@pytest.mark.slow
def test_methods_against_enumeration_at_length() -> None:
    for seed in range(5000, 5500):
        check(seed, rows=40, columns=8)


@pytest.fixture(params=["by products", "by rows"])
def search_first(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds and all rows search before anything else, as they do with more columns than can be enumerated."""
    monkeypatch.setattr(estimates, "SMALL", 0)
    if request.param == "by rows":
        monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1)


def test_methods_that_search_first_against_enumeration(search_first: None) -> None:
    for seed in range(6000, 6000 + 3 * len(METHODS)):
        check(seed, rows=30, columns=7)


@pytest.mark.slow
def test_methods_that_search_first_against_enumeration_at_length(search_first: None) -> None:
    for seed in range(6100, 6400):
        check(seed, rows=40, columns=8)


@pytest.fixture(scope="module")
def plain() -> tuple[Dataset, FoldPlan]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 6))
    X[:, 3] = X[:, 1] + 0.3 * rng.normal(size=30)
    data = Dataset.from_arrays(X, X @ [1, 2, 0, -1, 0, 0.5] + rng.normal(size=30))
    return data, make_folds("5", data)


@pytest.mark.parametrize("backend", ["gurobi", "highs", pytest.param("scip", marks=pytest.mark.slow)])
def test_every_backend_gives_the_same_answer(backend: str, plain: tuple[Dataset, FoldPlan]) -> None:
    usable = get_backend(backend).available()
    if not usable.usable:
        pytest.skip(usable.why)
    data, folds = plain
    ask = {"gammas": [0.01, 0.1], "taus": range(0, 7), "gap": 1e-4, "threads": 1, "method": "algorithm1"}
    ours = cross_validate(data, folds, **ask)  # type: ignore[arg-type]
    theirs = cross_validate(data, folds, backend=backend, **ask)  # type: ignore[arg-type]
    assert (theirs.status, theirs.tau, theirs.support) == ("proved", ours.tau, ours.support)
    assert theirs.work.mios == ours.work.mios > 0
    assert theirs.cv_error == pytest.approx(ours.cv_error, rel=1e-10)
    assert theirs.lower == pytest.approx(ours.lower, rel=1e-9) and theirs.upper == pytest.approx(ours.upper, rel=1e-9)
    assert backend in theirs.work.engine


def test_scip_solves_one_cell_at_a_time(plain: tuple[Dataset, FoldPlan]) -> None:
    data, folds = plain
    asked = standardize(data), folds, Grid.of([0.01], range(1, 4), 6)
    for backend, threads in (("scip", 1), ("highs", 3)):
        assert new_run(*asked, method="algorithm1", backend=backend, threads=3).context.threads == threads


def test_benders_gives_the_same_answer(plain: tuple[Dataset, FoldPlan]) -> None:
    usable = get_backend("gurobi").available()
    if not usable.usable:
        pytest.skip(usable.why)
    data, folds = plain
    ask = {"gammas": [0.01, 0.1], "taus": range(0, 7), "gap": 0.0, "threads": 1}
    ours = cross_validate(data, folds, **ask)  # type: ignore[arg-type]
    for method in ("joint", "grid"):
        theirs = cross_validate(data, folds, method=method, backend="gurobi", formulation="benders", **ask)  # type: ignore[arg-type]
        assert (theirs.status, theirs.tau, theirs.support) == ("proved", ours.tau, ours.support)
        assert theirs.cv_error == pytest.approx(ours.cv_error, rel=1e-10)
        assert theirs.work.engine.endswith("gurobi, benders")


def test_near_ties_of_a_vendor_are_all_found() -> None:
    """Two columns that only the held-out rows tell apart: both supports are candidates, h is an interval."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 3))
    X[:12, 1] = X[:12, 0]
    X[12:, 1] = -X[12:, 0]
    data = Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.normal(size=16))
    folds = folds_from_labels(np.repeat(np.arange(4), 4))
    ask = {"gammas": [0.1], "taus": [1], "gap": 0.0, "threads": 1, "scale": "none", "intercept": "none"}
    ours = cross_validate(data, folds, method="grid", **ask)  # type: ignore[arg-type]
    theirs = cross_validate(data, folds, method="grid", backend="highs", **ask)  # type: ignore[arg-type]
    assert theirs.tie_width == pytest.approx(ours.tie_width, rel=1e-8) and ours.tie_width > 0.0
    assert theirs.status == ours.status == "proved"


def test_state_is_explicit_and_bounds_only_tighten(plain: tuple[Dataset, FoldPlan]) -> None:
    data, folds = plain
    run = new_run(standardize(data), folds, Grid.of([0.01], range(1, 7), 6), method="algorithm1")
    run.begin()
    before = run.run.bounds()
    while not run.finished:
        (where,) = run.order.pick(run.by_cell)
        run.step()
        after = run.run.bounds()
        assert run.run.cells.decided[where] and run.by_cell.submitted[where]
        assert after.floor >= before.floor and after.ceiling <= before.ceiling
        before = after
    assert before.proved(0.0)


def test_budget_stops_with_valid_bounds(plain: tuple[Dataset, FoldPlan]) -> None:
    data, folds = plain
    ask = {"gammas": [0.01, 0.1], "taus": range(1, 7), "gap": 0.0, "threads": 2}
    best = cross_validate(data, folds, **ask)  # type: ignore[arg-type]
    for method in COUNT_MIOS:
        for budget in (0, 3):
            record = cross_validate(data, folds, method=method, mio_budget=budget, **ask)  # type: ignore[arg-type]
            assert record.status == "limit" and record.work.mios == budget
            assert record.lower <= best.cv_error <= record.upper


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ({"method": "magic"}, "magic"),
        ({"method": "grid", "backend": "cplex"}, "cplex"),
        ({"method": "rounds", "backend": "scip"}, "method"),
        ({"mio_budget": 4}, "budget"),
        ({"method": "grid", "mio_budget": -1}, "budget"),
        ({"backend": "highs", "formulation": "benders"}, "outer"),
        ({"formulation": "benders"}, "backend"),
    ],
)
def test_bad_options_name_themselves(option: dict[str, object], word: str, plain: tuple[Dataset, FoldPlan]) -> None:
    data, folds = plain
    with pytest.raises(BadInput, match=word):
        cross_validate(data, folds, gammas=[1.0], taus=[1], **option)  # type: ignore[arg-type]


def test_command_line(tmp_path: Path, plain: tuple[Dataset, FoldPlan], capsys: pytest.CaptureFixture[str]) -> None:
    data, _ = plain
    table = tmp_path / "data.csv"
    head = ",".join((*data.names, "y"))
    np.savetxt(table, np.column_stack([data.X, data.y]), delimiter=",", header=head, comments="", fmt="%.17g")
    out = tmp_path / "answer.json"
    ask = ["solve", str(table), "--target", "y", "--folds", "5", "--gamma", "0.01,0.1", "--threads", "1"]
    assert main([*ask, "--method", "joint", "--json", str(out)]) == 0
    assert json.loads(out.read_text())["work"]["engine"] == "joint on native"
    assert main(["verify", str(out), str(table)]) == 0
    assert main([*ask, "--method", "algorithm1", "--mio-budget", "0", "--gap", "0"]) == 3
    wrongs = (["--method", "rounds", "--backend", "scip"], ["--mio-budget", "3"], ["--engine", "shared"])
    for wrong in (*wrongs[:2], ["--method", "grid", *wrongs[2]]):
        capsys.readouterr()
        assert main([*ask, *wrong]) == 2
        assert wrong[-2].removeprefix("--") in capsys.readouterr().err

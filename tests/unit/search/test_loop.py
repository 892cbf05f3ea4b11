"""The loop of a search and its methods: it ends, repeats itself, and loses nothing at any turn where it is stopped."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import problems
import pytest
import step_findings
from glm_cases import two_class_case
from runs import drawn, drawn_run, new_run, to_end
from slow import slow
from step_findings import CASES, write_steps
from stops import limit_after

import sparsecv_mio as sc
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput, Contradiction, OutOfTime, SparseCVError
from sparsecv_mio.search.api import cross_validate, solve
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.loop import limit_to_budget
from sparsecv_mio.search.observers import Checkpoint, Signals, read_checkpoint
from sparsecv_mio.search.options import Hooks
from sparsecv_mio.search.orders.algorithm1 import first_bounds
from sparsecv_mio.search.running_search import drive
from sparsecv_mio.search.sources.registry import SOURCES
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import ALL_FOLDS, Findings, Step, SubproblemBounds
from sparsecv_mio.targets import Loss


def test_another_weighing_of_rows_is_named_when_a_run_is_carried_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame = frame.assign(w=rng.integers(1, 3, 40), y=(frame.a + rng.normal(size=40) > 0.5) * 1)
    asked: dict[str, Any] = {"target": "y", "loss": "logistic", "gammas": [1.0], "taus": [1], "folds": 3}
    path, other = tmp_path / "run.ck", tmp_path / "other.ck"
    sc.solve(frame, class_weight="balanced", checkpoint=path, weights="w", **asked)
    with pytest.raises(BadInput, match=r"its class-weight differs \(balanced in the checkpoint, none in this run\);"):
        sc.solve(frame, resume=path, weights="w", **asked)
    with pytest.raises(BadInput, match=r"its weights differ \(w in the checkpoint, none in this run\);"):
        sc.solve(frame.drop(columns="w"), class_weight="balanced", resume=path, **asked)
    assert sc.solve(frame, class_weight="balanced", resume=path, weights="w", **asked).status == "proved"
    sc.solve(frame, checkpoint=other, weights="w", **asked)
    (tmp_path / "w.csv").write_text("\n".join(map(str, frame.w)))
    by_file = sc.solve(frame.drop(columns="w"), resume=other, weights=f"file:{tmp_path / 'w.csv'}", **asked)
    assert by_file.status == "proved"  # the same numbers


def test_a_run_that_ended_before_its_first_answers_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that the checkpoint does not exist."""
    run, place = new_run(*drawn()), tmp_path / "run.ck"

    def ended() -> None:
        raise OutOfTime("the limit came while the run began")

    monkeypatch.setattr(run, "take_turn", ended)
    with pytest.raises(OutOfTime):
        drive(run, Signals(), Hooks(checkpoint=place))
    assert not read_checkpoint(place)[1]["cells.decided"].any()
    again = new_run(*drawn())
    drive(again, Signals(), Hooks(resume=place, checkpoint=place))
    assert again.state.is_certified() and "cells.decided" in read_checkpoint(place)[1]


def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = list[SparseCVError]()

    def fail(self: Checkpoint, run: object) -> None:
        self.failure = SparseCVError("disk full")

    monkeypatch.setattr(Checkpoint, "write", fail)
    run, signals = new_run(*drawn()), Signals()
    drive(run, signals, Hooks(checkpoint=tmp_path / "run.ck", lost=lost.append))
    assert [str(error) for error in lost] == ["disk full"] and run.state.is_certified()


def test_memory_grows_with_the_data_and_with_one_table_of_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave-one-out: a row takes its numbers and twenty more, a row and a tau what a cell holds, and that once."""
    p, taus = 14, range(1, 13)
    of_row, of_cell = 8 * (p + 20), 3 * 8 + 4 + 3 + 4  # a cell: ends, error, number, marks; and masks of cells
    for name, most in (("state.cells.MANY_CELLS", 0), ("problems.left_out_folds.STORE_BYTES", 0)):
        monkeypatch.setattr(f"sparsecv_mio.search.{name}", most)
    monkeypatch.setattr("sparsecv_mio.data.standard.STORE_BYTES", 0)
    monkeypatch.setattr("sparsecv_mio.search.problems.left_out_folds.CACHED_ROWS", 1 << 10)
    peaks = []
    for n in (1_000, 20_000, 60_000):  # the first one loads what there is to
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, p))
        data = Dataset.from_arrays(X, X[:, :5].sum(axis=1) + rng.standard_normal(n))
        tracemalloc.start()
        record = cross_validate(data, "loo", gammas=[1.0], taus=taus, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert record.status == "proved"
    assert (peaks[2] - peaks[1]) / 40_000 < of_row + of_cell * len(taus)


def bounded(method: str, **words: Any) -> Any:
    """A search whose folds are bounded, before any subproblem is solved."""
    run = drawn_run(method, **words)
    while steps := list(first_bounds(run.state, run.plan, []) or ()):
        for step in steps:
            run.executor.submit(step)
            run.writer.take(run.executor.collect_findings())
    return run


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_a_gap_of_zero_solves_every_subproblem(gap: float) -> None:
    cells = to_end(drawn_run("joint", gap=gap)).state.cells
    assert bool(cells.decided.all()) is (gap == 0.0)


def test_a_budget_ends_a_grid_search() -> None:
    run = to_end(drawn_run("grid", mio_budget=4))
    assert run.n_trees == 4 and run.snapshot().work.engine == "grid on native" and run.name == "grid"


def test_a_budget_counts_what_is_running_and_what_a_step_counts_as() -> None:
    run = bounded("grid", mio_budget=5)
    steps = [Step(SubproblemTrees.name, 0, (0,), (fold,), (1,), n_mios=fold % 2) for fold in range(8)]
    assert len(list(limit_to_budget(steps, run.state, run.plan, []))) == 8
    run.state.tried.n_mios[...] = 3
    assert [step.folds for step in limit_to_budget(steps, run.state, run.plan, steps[:2])] == [(0,), (1,), (2,)]


def test_a_budget_lasts_over_a_checkpoint() -> None:
    first, again = drawn_run("grid", mio_budget=6), drawn_run("grid", mio_budget=6)
    for _ in first.turns():
        if first.n_trees >= 3:
            break
    again.resume(first.checkpoint())
    assert again.n_trees == first.n_trees
    for _ in again.turns():
        pass
    assert again.n_trees == 6 and again.state.tried.has_root.all()


@pytest.mark.parametrize("method", ["grid", "joint"])
def test_near_ties_that_a_vendor_leaves_are_listed_by_trees_of_this_package(method: str) -> None:
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    a = [-0.3671, -1.6379, 0.0258, 1.1266, -0.7264, 1.6279]
    b = np.array([-2.3245, 0.2766, -0.1144, -0.0582, 1.1595, -0.8081])
    c = np.array([0.5822, -0.8066, 0.6203, -0.6028, -1.3161, -0.3488])
    y = [0.6674, -0.3188, 1.2167, -0.4563, 0.1081, -1.5969]
    data = Dataset.from_arrays(np.column_stack([a, b, c, -c, -c, b]), y)  # three copies of one column, two of another
    record = cross_validate(
        data, make_folds("holdout:0.4", data, 3), gammas=[5e-6], taus=[4], scale="variance", method=method,
        backend="highs", gap=0.0, threads=1,
    )  # fmt: skip
    assert record.status == "proved" and record.chosen_folds.decided.all()


def test_a_tree_that_has_reached_its_cutoff_may_go_on_to_another(tmp_path: Path) -> None:
    """A resumed search ended without a proof: trees that had excluded a pair once were not grown on."""
    data = problems.counts(0, 90, 7, {0: 0.5, 1: -0.3})
    how: dict[str, Any] = {"folds": "loo", "loss": "poisson", "gammas": [0.1, 1.0, 10.0], "threads": 1}
    with limit_after(1500) as seconds:
        solve(data, **how, time_limit=seconds, checkpoint=tmp_path / "c")
    assert solve(data, **how, resume=tmp_path / "c").status == "proved"


def test_findings_of_a_step_are_bitwise_equal_in_a_fresh_process(tmp_path: Path) -> None:
    """A step carries all that it reads of the state, and no problem depends on what was computed before."""
    steps = [tmp_path / case for case in CASES]
    assert all(len(write_steps(path.name, path)) >= 2 for path in steps)
    again = subprocess.run([sys.executable, step_findings.__file__, *steps], capture_output=True, text=True, check=True)
    assert again.stdout == ""


def test_the_writer_refuses_a_contradiction() -> None:
    search = to_end(two_class_case(0).new_run(gap=1e-4))
    solved = tuple(int(i) for i in np.argwhere(np.asarray(search.state.cells.decided))[0])
    upper = float(search.state.cells.upper[solved])
    known = SubproblemBounds.unknown(solved[0], solved[1:2], slice(solved[2], solved[2] + 1), 1, [np.array([0])])
    known.lower[...], known.upper[...] = 1.9 * upper, 2.1 * upper
    step = Step("subproblem trees", solved[0], (solved[1],), (solved[2],), (1,))
    with pytest.raises(Contradiction):
        search.writer.take([Findings(step, (known,))])


def test_steps_are_described_by_their_source_sizes_and_folds() -> None:
    assert all(source.name == name for name, source in SOURCES.items())
    step = Step("subproblem trees", 0, (0, 1), (2,), (3, 5))
    assert step.description == "subproblem trees: tau 3 to 5, fold 3"
    assert replace(step, folds=(0, 4), solver="scip").description == "MIOs of scip: tau 3 to 5, 2 folds"
    assert replace(step, folds=ALL_FOLDS, sizes=()).description == "subproblem trees"


@pytest.mark.parametrize(
    "seed", [5, *slow([4])]
)  # a search that had other fits stored, or began its orders again, differed
def test_a_search_of_counts_carried_on_at_any_turn_repeats_itself(seed: int) -> None:
    """What a step finds depends on the state alone, to the last bit: not on what the process has computed before."""
    rng = np.random.default_rng(seed)
    X, exposure = rng.normal(size=(60, 6)).round(2), rng.uniform(0.5, 3.0, 60).round(2)
    y = rng.poisson(exposure * np.exp(X[:, :3] @ (0.4, -0.3, 0.2)))
    data = standardize(
        as_counts(Dataset.from_arrays(X, y.astype(float), aux={"e": exposure}), "e"), loss=Loss.POISSON
    )  # fmt: skip
    grid, folds = Grid.of(np.geomspace(0.006, 6.0, 7), range(1, 6), 6), make_folds("5", data.dataset)

    def begun(stored: Archive | None = None) -> GridSearch:
        search: GridSearch = new_run(data, folds, grid, gap=1e-4, loss="poisson", method="auto")
        if stored is not None:
            search.resume(stored)
        return search

    def ended(search: GridSearch) -> list[np.ndarray]:
        for _ in search.turns():
            pass
        cells = search.state.cells
        return [np.array(table) for table in (cells.lower, cells.upper, cells.nominal, cells.final)]

    whole, stored = begun(), list[Archive]()
    for _ in whole.turns():
        stored.append(whole.checkpoint())
    expected = ended(whole)
    for archive in stored[:: max(len(stored) // 3, 1)]:
        for one, other in zip(ended(begun(archive)), expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("loss", "n", "k", "seed"),
    [("poisson", 60, 3, 5), ("logistic", 60, 3, 6), *slow([("poisson", 60, 10, 0), ("logistic", 60, 3, 0)])],
)
def test_the_model_of_the_one_standard_error_pair_is_certified(loss: str, n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    linear = X @ [0.8, -0.5, 0.2, 0.0, 0.0]
    if loss == "logistic":
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * linear))).astype(float)
    else:
        y = rng.poisson(np.exp(linear)).astype(float)
    data = Dataset.from_arrays(X, y)
    for limit in (None, 300.0):
        record = solve(data, folds=k, loss=loss, one_se=True, threads=1, time_limit=limit)
        assert record.status == "proved" and record.least is not None and record.is_settled
        assert record.refit.proved and record.stability is not None and not record.stability.estimate
    assert verify(record, data).ok


@pytest.mark.parametrize("seed", [5, 24, 32])
def test_methods_report_the_same_pair_where_ties_widen_the_interval(seed: int) -> None:
    """Each method ended with another tied pair, perhaps before that pair was solved."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(32, 7))
    X[8:, 3:6] = X[8:, :3]  # equal outside the first fold
    data = Dataset.from_arrays(X, X[:, :3].sum(axis=1) + 0.2 * rng.normal(size=32))
    folds = make_folds(np.arange(32) // 8, data)
    asked: dict[str, Any] = {"folds": folds, "gammas": [0.01], "taus": "1:4", "scale": "none", "threads": 1}
    records = [solve(data, method=method, **asked) for method in ("grid", "rounds", "joint", "algorithm1")]
    grid = records[0]
    assert grid.tie_width > 0.01 * grid.upper
    assert {(record.status, record.tau, record.estimate) for record in records} == {("proved", grid.tau, False)}
    assert [record.upper for record in records] == pytest.approx([grid.upper] * 4, rel=1e-9)

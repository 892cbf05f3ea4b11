"""The loop of a search: it ends, repeats itself, and loses nothing at any turn at which it may be stopped."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import step_findings
from glm_cases import GlmCase, two_class_case
from runs import new_run
from step_findings import CASES, write_steps
from stops import limit_after

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.counts import as_counts
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.search.api import solve
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.sources.registry import SOURCES
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import ALL_FOLDS, Findings, Step, SubproblemBounds
from sparsecv_mio.targets import Loss


def new_search(case: GlmCase, threads: int = 1, **words: Any) -> GridSearch:
    data = standardize(case.data, case.how["scale"], case.how["intercept"], loss=Loss.LOGISTIC)
    grid, how = Grid.of(case.gammas, case.taus, case.data.p), {"gap": 1e-4, **words}
    search: GridSearch = new_run(data, case.folds, grid, loss="logistic", method="auto", threads=threads, **how)
    return search


def turns_of(search: GridSearch) -> int:
    return sum(1 for _ in search.turns())


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
    search = new_search(two_class_case(0))
    turns_of(search)
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


@pytest.mark.parametrize("seed", [4, 5])  # a search that had other fits stored, or began its orders again, differed
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
    [("poisson", 60, 3, 5), ("poisson", 60, 10, 0), ("logistic", 60, 3, 0), ("logistic", 60, 3, 6)],
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

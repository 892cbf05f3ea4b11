"""Searches by rows against searches by products of columns: the same decided cells, and no matrix of all columns."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from runs import new_run, to_end

from sparsecv_mio import thresholds
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.search import by_rows as wide
from sparsecv_mio.search import run
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.by_rows import ByRows
from sparsecv_mio.search.first_supports import FoldPaths
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.words import Method


def made(n: int, p: int, seed: int, noise: float = 0.3, copies: bool = False) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    if copies:
        X[:, 1], X[:, 5], X[0, 6:] = X[:, 0], 2.0, 0.0
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + X[:, 3] + noise * rng.normal(size=n))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns count as many."""
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1000)


@pytest.fixture
def on_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees grow on the rows where screening leaves more than four columns."""
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1000)
    monkeypatch.setattr(wide, "EXACT_COLUMNS", 4)
    monkeypatch.setattr(wide, "EXACT_BYTES", 0)


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize(("copies", "at_once"), [(False, 1200), (True, 1200), (False, 4), (True, 0)])
def test_cells_decided_by_rows_are_those_of_the_trees(
    intercept: str, copies: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide, "EXACT_COLUMNS", at_once)
    decided = 0
    for seed in range(4):
        dataset = made(14, 20, seed, copies=copies)
        data, folds = standardize(dataset, "length" if seed % 2 else "none", intercept), make_folds("4", dataset, seed)
        grid = Grid.of([0.01, 0.1, 1.0], [0, 1, 2, 3], data.q)
        by_trees = to_end(new_run(data, folds, grid))
        ours = to_end(ByRows(new_run(data, folds, grid).run, Method.GRID)).run.cells
        theirs = by_trees.run.cells
        assert theirs.decided.all()
        both = ours.decided
        decided += int(both.sum())
        np.testing.assert_allclose(ours.nominal[both], theirs.nominal[both], rtol=1e-6, atol=1e-12)
        slack = 1e-9 * theirs.upper + 1e-12
        assert (ours.lower <= theirs.upper + slack).all() and (theirs.lower <= ours.upper + slack).all()
        assert np.isfinite(ours.nominal).all()
        # the value of what is shown is never below the optimum
        assert (ours.value >= theirs.value * (1.0 - 1e-8) - 1e-12).all()
    assert decided > 100


@pytest.mark.parametrize("method", ["rounds", "joint", "algorithm1", "grid", "bounds", "descent"])
def test_every_method_answers_by_rows(method: str, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(16, 30, 1)
    folds = make_folds("4", data)
    record = cross_validate(data, folds, gammas=[0.5], taus=[1, 2, 3], method=method, threads=1)
    verify(record, data)
    assert record.lower <= record.cv_error <= record.upper
    if method not in ("bounds", "descent"):
        assert "by rows" in record.work.engine and record.status == "proved"
    if method == "bounds":
        assert record.work.mios == 0
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1 << 40)
    true = cross_validate(data, folds, gammas=[0.5], taus=[1, 2, 3], method="rounds", threads=1)
    assert record.lower <= true.upper * (1 + 1e-9)
    if record.status == "proved" and method != "descent":
        assert record.tau == true.tau and record.cv_error == pytest.approx(true.cv_error, rel=1e-6)


def against_the_trees(seed: int) -> int:
    """Solve a problem by rows and by trees of all columns; how many pairs were excluded without being decided."""
    rng = np.random.default_rng([7, seed])
    data = made(int(rng.integers(12, 20)), int(rng.integers(21, 30)), seed, noise=rng.uniform(0.2, 2.0))
    folds, how = make_folds("4", data, seed), {"gammas": [0.05, 1.0], "taus": [1, 2, 3, 4], "threads": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "PRODUCT_BYTES", 1 << 40)
        true = cross_validate(data, folds, method="grid", **how)
    record = cross_validate(data, folds, method="rounds", **how)
    verify(record, data)
    assert "by rows" in record.work.engine and record.status == "proved"
    assert record.lower <= true.upper * (1 + 1e-9) and record.upper >= true.lower * (1 - 1e-9)
    assert record.cv_error == pytest.approx(true.cv_error, rel=1e-4)  # the gap
    for ours, theirs in zip(record.table, true.table, strict=True):
        assert ours.lower <= theirs.upper * (1 + 1e-9) and ours.upper >= theirs.lower * (1 - 1e-9)
    return sum(0.0 < one.lower < one.upper * (1 - 1e-6) for one in record.table)


def test_searches_that_branch_on_the_rows_find_what_trees_find(on_rows: None) -> None:
    assert sum(against_the_trees(seed) for seed in range(3)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_many_searches_that_branch_on_the_rows_find_what_trees_find(on_rows: None, block: int) -> None:
    assert sum(against_the_trees(100 * (block + 1) + i) for i in range(100)) > 20


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_vendors_solve_what_screening_leaves(backend: str, small: None) -> None:
    from sparsecv_mio.formulation.backends import get_backend

    if not get_backend(backend).available().usable:
        pytest.skip(f"{backend} is not installed")
    data = made(16, 24, 2)
    record = cross_validate(
        data, make_folds("3", data), gammas=[2.0], taus=[2], method="grid", backend=backend, threads=1
    )
    verify(record, data)
    assert record.status == "proved" and f"by rows, grid on {backend}" in record.work.engine


def test_best_subsets_by_rows(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(16, 30, 3)
    found = best_subsets(data, gammas=[0.1, 1.0], taus=[0, 1, 2, 3])
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1 << 40)
    true = best_subsets(data, gammas=[0.1, 1.0], taus=[0, 1, 2, 3])
    assert sum(row.proved for row in found.path) >= 4
    for ours, theirs in zip(found.path, true.path, strict=True):
        assert ours.lower <= theirs.objective * (1 + 1e-9) and ours.objective >= theirs.objective * (1 - 1e-9)
        assert not ours.proved or ours.support == theirs.support


@pytest.mark.parametrize("method", ["rounds", "algorithm1", "bounds", "descent"])
def test_wide_data_form_no_matrix_of_all_columns(method: str) -> None:
    data = made(12, 9000, 4)
    tracemalloc.start()
    try:
        record = cross_validate(
            data, make_folds("2", data), gammas=[1.0], taus=[1, 2], method=method, threads=1, time_limit=1.0
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * data.p**2 / 8  # working sets of a thousand columns, and copies of the rows
    assert np.isfinite(record.cv_error)
    verify(record, data)


@pytest.mark.parametrize("taus", [[1, 2, 3], [1, 12, 30]])
def test_a_run_that_ends_in_its_first_search_has_supports_of_the_size_reported(
    taus: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, ended = made(20, 1300, 3), threading.Event()
    folds, whole = make_folds("3", dataset), run.first_supports

    def late(*asked: Any) -> Iterator[FoldPaths]:
        ended.set()
        return whole(*asked)

    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1000)
    monkeypatch.setattr(run, "first_supports", late)
    record = cross_validate(dataset, folds, gammas=[0.1, 1.0], taus=taus, stop=ended)
    assert record.status == "interrupted"
    assert len(record.support) == record.tau
    assert verify(record, dataset, folds).failures == ()

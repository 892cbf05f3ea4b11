"""Searches by rows form no matrix of all columns; fits and solvers by rows; a run that ends in its first search."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from draws import ON_ROWS
from engines import patch_all
from numpy.typing import NDArray
from slow import slow

from sparsecv_mio import thresholds
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.problems import support_searches
from sparsecv_mio.search.problems.fold_local_search import FoldPaths, LocalSearches


def made(n: int, p: int, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + X[:, 3] + 0.3 * rng.normal(size=n))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns count as many."""
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1000)


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


def test_every_column_forced_in_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_all(monkeypatch, ON_ROWS)
    data = made(12, 6, 4)
    record = cross_validate(data, "4", gammas=[0.05], taus=[data.p], force_in=data.names, gap=0.0, threads=1)
    assert record.status == "proved" and "by rows" in record.work.engine
    assert record.support == data.names and verify(record, data).ok


def test_best_subsets_by_rows(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(16, 30, 3)
    found = best_subsets(data, gammas=[0.1, 1.0], taus=[0, 1, 2, 3])
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1 << 40)
    true = best_subsets(data, gammas=[0.1, 1.0], taus=[0, 1, 2, 3])
    assert sum(row.proved for row in found.path) >= 4
    for ours, theirs in zip(found.path, true.path, strict=True):
        assert ours.lower <= theirs.objective * (1 + 1e-9) and ours.objective >= theirs.objective * (1 - 1e-9)
        assert not ours.proved or ours.support == theirs.support


@pytest.mark.parametrize("method", ["rounds", *slow(["algorithm1", "bounds", "descent"])])
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
    folds, whole = make_folds("3", dataset), support_searches.search_passes

    def late(searches: LocalSearches, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
        ended.set()
        return whole(searches, seeds)

    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1000)
    monkeypatch.setattr(support_searches, "search_passes", late)
    record = cross_validate(dataset, folds, gammas=[0.1, 1.0], taus=taus, stop=ended)
    assert record.status == "interrupted"
    assert len(record.support) == record.tau
    assert verify(record, dataset, folds).failures == ()

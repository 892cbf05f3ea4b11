"""Best subsets of every size on all rows, from Python."""

from __future__ import annotations

import threading
from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.fits.best_subsets import PathSearch, best_subsets
from sparsecv_mio.fits.known import NOT_TOLD_APART, KnownSubsets
from sparsecv_mio.fits.options import PathOptions
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.state.deadline import Deadline


def made(seed: int, n: int = 20) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return Dataset.from_arrays(X, X[:, 0] - X[:, 4] + rng.normal(size=n))


@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_the_least_of_all_subsets(seed: int) -> None:
    data, how = made(seed), {"scale": ("length", "none")[seed % 2], "intercept": ("fold", "global", "none")[seed % 3]}
    record = best_subsets(data, gammas=[1.0, 0.1], taus=[3, 0, 1], **how)  # type: ignore[arg-type]
    assert [(row.gamma, row.tau) for row in record.path] == [(g, t) for g in (0.1, 1.0) for t in (0, 1, 3)]
    assert record.status == "proved" and record.request.gap == 1e-7
    for row in record.path:
        supports = [S for size in range(row.tau + 1) for S in combinations(range(5), size)]
        least = min(fit(data.X, data.y, list(S), row.gamma, **how).objective for S in supports)  # type: ignore[arg-type]
        assert row.proved and row.objective == pytest.approx(least, rel=1e-9)
        assert row.lower <= least * (1 + 1e-12) and row.upper >= least * (1 - 1e-12)


def test_keywords_go_before_options() -> None:
    base = PathOptions.of(gap=0.5, threads=1)
    record = best_subsets(made(0), gammas=[1.0], taus=[1], options=base, gap=0.25, scale="none")
    assert (record.request.gap, record.request.threads, record.data.scale) == (0.25, 1, "none")
    with pytest.raises(TypeError, match=r"best_subsets\(\) got an unexpected keyword argument 'method'"):
        best_subsets(made(0), gammas=[1.0], taus=[1], method="rounds")  # type: ignore[call-arg]
    with pytest.raises(BadInput, match="^gap: "):
        best_subsets(made(0), gammas=[1.0], taus=[1], gap=1.0)
    with pytest.raises(BadInput, match="tau 6"):
        best_subsets(made(0), gammas=[1.0], taus=[6])


def test_progress_counts_every_pair() -> None:
    seen: list[Progress] = []
    best_subsets(made(0), gammas=[0.1, 1.0], taus=[1, 2], progress=seen.append)
    assert seen[-1].done == seen[-1].total == 4


def test_a_stop_before_the_start_leaves_an_answer() -> None:
    stop = threading.Event()
    stop.set()
    record = best_subsets(made(0), gammas=[0.1, 1.0], taus=[1, 2], stop=stop)
    assert record.status in ("interrupted", "proved") and len(record.path) == 4
    assert all(row.lower <= row.objective <= row.upper for row in record.path)


def test_there_is_no_answer_before_the_data() -> None:
    data = made(0)
    search = PathSearch(data, Grid.of([1.0], [1], data.p), PathOptions(), Deadline(None, None), None)
    search.prepare(0.0)
    with pytest.raises(OutOfTime, match="still being prepared"):
        search.record()


@pytest.mark.parametrize("asked", [{"at_most": "1:x0,x1"}, {"nonnegative": "all"}, {"nonpositive": "x1"}])
@pytest.mark.parametrize("tau", [0, 1, 2])
def test_columns_that_are_collinear_to_rounding_end_under_restrictions(asked: dict[str, str], tau: int) -> None:
    """Nothing can be pruned there: every support is tried once, or the record says that rounding leaves it open."""
    X = 1e8 * np.array([1.0, -1.0]) + np.array([[0, 1], [1, 0], [-1, -2], [2, 2], [0, -1], [-2, 0.0]])
    data = Dataset.from_arrays(X, [1.0, 0.0, 2.0, -1.0, 1.0, -2.0])
    record = best_subsets(data, gammas=[0.01], taus=[tau], intercept="none", **asked)  # type: ignore[arg-type]
    assert record.work.nodes < 100 and verify(record, data).ok
    if "at_most" in asked or tau == 0:
        assert record.status == "proved" and not record.warnings
    else:
        assert (record.status, record.warnings) == ("limit", (NOT_TOLD_APART,)) or record.status == "proved"


def test_fits_after_a_limit_have_their_size_and_their_digits() -> None:
    """Forward selection with fewer rows than columns, and columns of which products have no digits left."""
    rng = np.random.default_rng(5)
    for X in (rng.normal(size=(4, 7)), 1e7 + rng.normal(size=(11, 7))):
        data, clock = Dataset.from_arrays(X, rng.normal(size=len(X))), Deadline(0.0, None)
        grid = Grid.of([3e-4, 9e2], [2, 5, 6, 7], data.p)
        search = PathSearch(data, grid, PathOptions.of(intercept="none", time_limit=0.1), clock, None)
        search.known = KnownSubsets(standardize(data, "length", "none"), grid, search.options, clock)
        clock.abandoned.set()
        record = search.record()
        assert [len(row.support) for row in record.path] == [2, 5, 6, 7] * 2 and record.status == "limit"
        assert verify(record, data).ok

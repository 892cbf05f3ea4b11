"""What is known of best subsets is a valid record at every moment."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.fits.known import KnownSubsets
from sparsecv_mio.fits.options import PathOptions
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.state.deadline import Deadline


def made() -> tuple[StandardData, Grid]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 5))
    data = Dataset.from_arrays(X, X[:, 0] - X[:, 4] + rng.normal(size=20))
    return standardize(data), Grid.of([0.1, 1.0], [0, 2, 3], data.p)


@pytest.mark.parametrize("prepared", [True, False])
def test_nothing_found_yet(prepared: bool) -> None:
    """Forward selection stands in, valued exactly and bounded from below by 0."""
    data, grid = made()
    known = KnownSubsets(data, grid, PathOptions(), Deadline(None, None))
    if prepared:
        known.prepare(time.monotonic() + 60.0)
        known.clock.abandoned.set()  # the rows made ahead are taken as they are
    record = known.record()
    assert record.status == "limit" and len(record.path) == known.pairs == 6
    X, y = data.dataset.X, data.dataset.y
    for row in record.path:
        support = [data.dataset.names.index(name) for name in row.support]
        assert row.objective == pytest.approx(fit(X, y, support, row.gamma).objective, rel=1e-9)
        least = min(fit(X, y, list(S), row.gamma).objective for S in combinations(range(5), row.tau))
        assert row.lower <= least <= row.upper * (1 + 1e-12) and not row.proved


def test_what_was_found_goes_before_what_stands_in() -> None:
    data, grid = made()
    known = KnownSubsets(data, grid, PathOptions(), Deadline(None, None))
    known.prepare(time.monotonic() + 60.0)
    problem = row_moments(data, slice(0, data.n)).problem(data, 1.0)
    for g, gamma in enumerate(grid.gammas.tolist()):
        cells = solve_path(problem.with_gamma(gamma), grid.taus.tolist()).cells
        known.cells.update({(g, tau): cell for tau, cell in cells.items()})
    known.clock.abandoned.set()
    assert known.record().status == "proved" and known.record(problem).status == "proved"

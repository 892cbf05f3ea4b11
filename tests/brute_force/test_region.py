"""Where a record says that the best pair is proved, and which pairs it excludes, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from reference import cv_intervals

from sparsecv_mio.certificate.claims import rows_of
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate

GAPS = (0.0, 1e-4, 5e-2)
H_RTOL, H_FLOOR = 1e-7, 1e-9
INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance
METHODS = ("joint", "algorithm1", "grid", "bounds")


def problem(seed: int) -> RandomProblem:
    if seed % 3 == 0:
        return random_problem(seed, rows=30, columns=8)
    rng = np.random.default_rng([17, seed])
    n, p = int(rng.integers(12, 40)), int(rng.integers(3, 10))
    X = rng.normal(size=(n, p))
    data = Dataset.from_arrays(X, X[:, : int(rng.integers(1, 3))].sum(axis=1) + rng.normal(size=n))
    gammas = np.unique(10.0 ** rng.uniform(-2.0, 1.5, size=3)).tolist()
    taus = np.unique(rng.integers(0, p + 1, size=5)).tolist()
    plan = make_folds(str(rng.choice(["3", "5", "loo"])), data, seed)
    return RandomProblem(data, plan, gammas, taus, "length", "fold")


def ended_early(case: RandomProblem, seed: int) -> Record:
    """A run that ends after some MIOs."""
    method = METHODS[seed % 4]
    budget = None if method == "bounds" else int(np.random.default_rng(seed).integers(0, 60))
    return cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept,
        threads=1, gap=GAPS[seed // 4 % 3], method=method, mio_budget=budget,
    )  # fmt: skip


def check(seed: int) -> tuple[bool, bool]:
    """Whether a part of the grid only is proved, and whether pairs are excluded in a run that is not proved."""
    case = problem(seed)
    record = ended_early(case, seed)
    gammas = sorted({row.gamma for row in record.table})
    low, high = cv_intervals(
        case.data.X, case.data.y, case.folds.labels, gammas, case.taus, (case.scale, case.intercept), INSIDE
    )
    slip = H_FLOOR * float(np.var(case.data.y)) + H_RTOL * float(low.min())
    truth = {(gamma, tau): (low[g, t], high[g, t]) for g, gamma in enumerate(gammas) for t, tau in enumerate(case.taus)}
    best = min(row.upper for row in record.table)
    for row in record.table:
        h = truth[row.gamma, row.tau]
        if row.status == "excluded" and record.status != "proved":
            assert h[0] >= (1.0 - record.request.gap) * best - slip
        assert (row.status == "decided") == (row.folds_decided == row.folds)
    region = record.region
    assert region is not None or record.status != "proved"
    if region is not None:
        rows = rows_of(region, record.table)
        least = min(truth[row.gamma, row.tau][0] for row in rows)
        width = record.request.gap * region.upper + region.tie_width + region.allowance
        assert region.lower <= least + slip and truth[region.gamma, region.tau][1] <= region.upper + slip
        assert region.upper - region.lower <= width * (1.0 + 1e-12)
        assert truth[region.gamma, region.tau][0] <= least + width + 2.0 * slip
        if record.status == "proved":
            assert len(rows) == len(record.table) and (region.gamma, region.tau) == (record.gamma, record.tau)
    report = verify(record, case.data, case.folds)
    assert report.ok, report.failures
    part = region is not None and len(rows_of(region, record.table)) < len(record.table)
    return part, record.status != "proved" and any(row.status == "excluded" for row in record.table)


def test_the_region_and_what_is_excluded() -> None:
    found = np.array([check(seed) for seed in range(40)])
    assert found.sum(axis=0).min() >= 4


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_at_length(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        check(1000 + seed)

"""What the search writes, `verify` accepts: random small problems, every fold kind, scale and intercept mode."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.certificate.records import PathRecord, Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.search.api import cross_validate


def problem(seed: int) -> tuple[Dataset, np.random.Generator]:
    """n below and above p, integer columns (ties), copies up to sign, near copies, offsets, noise from 0 to 10."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(6, 50)), int(rng.integers(1, 9))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 10.0]) * rng.normal(size=p)
    if rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.3 and p > 1:
        X[:, -1] = X[:, 0] * rng.choice([1.0, -1.0, 2.0])
    if rng.random() < 0.3 and p > 2:
        X[:, 1] = X[:, 0] + 1e-2 * rng.normal(size=n)
    X[0, 0] += 1.0
    noise = rng.choice([0.0, 0.1, 1.0, 10.0])
    y = X @ (rng.normal(size=p) * (rng.random(p) < 0.5)) + noise * rng.normal(size=n)
    y[0] += 0.5
    return Dataset.from_arrays(X, y), rng


@pytest.mark.parametrize("seed", range(60))
def test_records_of_the_search_are_verified(seed: int) -> None:
    data, rng = problem(seed)
    plan = make_folds(str(rng.choice(["loo", "3", "5", "blocks:2", "blocks:3", "holdout:0.3"])), data, seed)
    request = {
        "gammas": sorted({float(g) for g in 10.0 ** rng.uniform(-3, 4, size=rng.integers(1, 4))}),
        "taus": sorted({int(t) for t in rng.integers(0, data.p + 1, size=4)}),
        "scale": str(rng.choice(["length", "variance", "none"])),
        "intercept": str(rng.choice(["fold", "global", "none"])),
        "gap": float(rng.choice([0.0, 1e-4, 1e-2])),
        "threads": 1,
    }
    record = cross_validate(data, plan, one_se=plan.k > 1 and seed % 2 == 0, **request)
    report = verify(Record.from_json(record.to_json()), data)
    assert report.failures == ()
    assert any("pairs, by enumeration" in part for part in report.verified)
    path = best_subsets(data, **request)
    assert verify(PathRecord.from_json(path.to_json()), data).failures == ()

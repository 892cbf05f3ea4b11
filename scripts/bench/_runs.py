"""Cross-validation runs of the benchmarks: one call of the library, one row of the table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from _common import INSTANCES, TARGETS, centred, synthetic

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.warmup import warm_up

__all__ = ["HEAD", "held", "run", "warm_up", "wide"]

HEAD = ["data", "folds", "gamma", "tau", "status", "best tau", "CV error", "gap", "decided", "mios", "nodes", "seconds"]


def held(name: str) -> Dataset:
    """One of the committed instances."""
    return read_dataset(INSTANCES / f"{name}.csv", TARGETS[name])


def wide(seed: int = 0) -> Dataset:
    """Synthetic data with n = 200, p = 1000, ten unit coefficients, SNR 5, columns of unit length."""
    X, y = synthetic(200, 1000, 10, seed)
    return Dataset.from_arrays(*centred(X, y, length=1.0))


def run(
    name: str, data: Dataset, spec: str, gammas: Sequence[float], taus: Sequence[int], **options: Any
) -> list[object]:
    """Time one cross-validation from the data in memory to the record; the row has the columns of HEAD."""
    folds = make_folds(spec, data, seed=0)
    begin = time.perf_counter()
    record = cross_validate(data, folds, gammas=gammas, taus=taus, **options)
    seconds = time.perf_counter() - begin
    relative = (record.upper - record.lower) / record.upper
    decided = sum(row.folds_decided for row in record.table)
    return [
        name,
        spec,
        ",".join(f"{gamma:g}" for gamma in gammas),
        f"{taus[0]}:{taus[-1]}",
        record.status,
        record.tau,
        record.cv_error,
        relative,
        f"{decided}/{sum(row.folds for row in record.table)}",
        record.work.mios,
        record.work.nodes,
        round(seconds, 3),
    ]

"""Small data for fold plans, what every plan must fulfil, and what a refusal looks like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput


def data_of(n: int, **aux: Any) -> Dataset:
    return Dataset.from_arrays(np.arange(2.0 * n).reshape(n, 2), np.arange(float(n)), aux=aux)


def check(plan: FoldPlan, n: int) -> None:
    assert plan.n == n
    assert sorted(plan.order.tolist()) == list(range(n))
    for j in range(plan.k):
        test, train = plan.scored_rows(j), plan.train_rows(j)
        assert np.array_equal(test, np.flatnonzero(plan.labels == j)) and test.size == plan.sizes[j] > 0
        assert np.array_equal(np.sort(np.concatenate([test, train])), np.arange(n))
    assert np.array_equal(plan.order[plan.starts[-1] :], np.flatnonzero(plan.labels < 0))


def refused(message: str, spec: str, data: Dataset, seed: int = 0) -> None:
    with pytest.raises(BadInput) as caught:
        make_folds(spec, data, seed)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

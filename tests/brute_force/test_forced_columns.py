"""Records that do not keep to the columns they force in or out are rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.bounds import cv_error
from sparsecv_mio.search import loop


def plain(seed: int) -> tuple[sc.Dataset, dict[str, Any]]:
    """Noisy data, three of its columns forced in or out, and every size that is left."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(9, 16)), int(rng.integers(4, 8))
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    if seed % 3 == 0:
        X[:, 1] = -X[:, 0]
    some = rng.permutation(p)[:3].tolist()
    data = sc.Dataset.from_arrays(X, X @ rng.normal(size=p) + rng.normal(size=n))
    return data, {"force_in": some[:2], "force_out": some[2:], "taus": range(2, min(p - 1, 4) + 1)}


def test_every_column_forced_in_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "has_large_matrices", lambda data, folds: True)
    monkeypatch.setattr(cv_error, "is_wide", lambda data: True)
    data, _ = plain(4)
    record = sc.cross_validate(data, "4", gammas=[0.05], taus=[data.p], force_in=data.names, gap=0.0, threads=1)
    assert record.status == "proved" and record.support == data.names and sc.verify(record, data).ok

"""Records that do not keep to the columns they force in or out are rejected."""

from __future__ import annotations

from dataclasses import replace
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


def test_altered_records_are_rejected() -> None:
    data, given = plain(4)
    record = sc.cross_validate(data, "4", gammas=[0.05, 1.0], gap=0.0, threads=1, **given)
    limits, free = record.request.restrictions, sc.cross_validate(data, "4", gammas=[0.05, 1.0], taus=given["taus"])
    assert limits is not None and sc.verify(record, data).ok

    def failed(**changes: Any) -> set[str]:
        return {one.field for one in sc.verify(replace(record, **changes), data).failures}

    def limited(**changes: Any) -> set[str]:
        return failed(request=replace(record.request, restrictions=replace(limits, **changes)))

    assert failed(support=free.support, coefficients=free.coefficients, intercept=free.intercept)
    assert "chosen_folds[0].support" in failed(chosen_folds=free.chosen_folds)
    assert failed(request=replace(record.request, restrictions=None))
    other = next(name for name in data.names if name not in limits.force_in and name not in record.support)
    assert limited(force_in=(*limits.force_in, "x9")) == {"request.restrictions"}
    assert limited(force_in=tuple(sorted({*limits.force_in, other})))
    assert limited(force_out=limits.force_in) == {"request.restrictions"}
    assert any("support" in field for field in limited(force_in=(), force_out=limits.force_in[:1]))


def test_every_column_forced_in_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "has_large_matrices", lambda data, folds: True)
    monkeypatch.setattr(cv_error, "is_wide", lambda data: True)
    data, _ = plain(4)
    record = sc.cross_validate(data, "4", gammas=[0.05], taus=[data.p], force_in=data.names, gap=0.0, threads=1)
    assert record.status == "proved" and record.support == data.names and sc.verify(record, data).ok

"""Every outer model of a nested cross-validation is refitted, scored and compared with the record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.folds import folds_of
from sparsecv_mio.data.weights import weighted_rows


def drawn() -> sc.Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    return sc.Dataset.from_arrays(X, X[:, 0] - X[:, 2] + rng.normal(size=30), aux={"g": np.arange(30) // 3})


def solved(**given: Any) -> Record:
    return sc.solve(drawn(), **{"folds": "5", "gammas": "0.05,1", "nested": 3, "threads": 1, **given})


@pytest.mark.parametrize("folds", ["groups:g", "loo", np.arange(30) % 5])
def test_verify_computes_it_again(folds: Any) -> None:
    record = solved(folds=folds, force_in=["x1"])
    plan = None if isinstance(folds, str) else folds_of(folds, drawn())
    assert sc.verify(record, drawn(), plan).ok
    assert Record.from_json(record.to_json()) == record


def test_altered_records_are_rejected() -> None:
    record = solved(force_in=["x1"])
    nested = record.nested
    assert nested is not None
    first, *rest = nested.folds
    altered: dict[str, Any] = {
        "nested.error": replace(nested, error=nested.error * 0.99),
        "nested.standard_error": replace(nested, standard_error=None),
        "nested.optimism": replace(nested, optimism=0.0),
        "nested.outer.seed": replace(nested, outer=replace(nested.outer, seed=1)),
        "nested.folds": replace(nested, folds=(first, first, *rest)),
        "nested.folds[0].error": replace(nested, folds=(replace(first, error=first.error * 0.99), *rest)),
        "nested.folds[0].support": replace(nested, folds=(replace(first, support=("x0",)), *rest)),
        "nested.folds[0].status": replace(nested, folds=(replace(first, status="sure"), *rest)),
        "nested.folds[0].gamma": replace(nested, folds=(replace(first, gamma=0.5), *rest)),
    }
    for field, wrong in altered.items():
        found = sc.verify(replace(record, nested=wrong), drawn()).failures
        assert field in {one.field for one in found}, field


def test_weighted_rows_are_weighted_outside_too() -> None:
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], size=30)
    data = weighted_rows(drawn(), weights, "w")
    record = sc.solve(data, folds="5", gammas="0.05,1", nested=3, threads=1)
    assert sc.verify(record, data).ok and record.nested != solved().nested

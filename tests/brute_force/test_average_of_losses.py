"""Averaged models of counts that were altered, or cut short; tests/campaign compares them with the definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import problems
import pytest
from glm_cases import count_case

from sparsecv_mio.certificate.parts import NOT_AVERAGED
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.search.answer.glm_average import SmoothAverageFits
from sparsecv_mio.search.api import cross_validate


def test_an_altered_average_is_refused() -> None:
    """Weights, distances, the model and its error within folds, each altered alone."""
    case = count_case(15, 4)
    record = case.solved(gap=0.0, model="average", own_error=True)
    average = record.average
    assert average is not None and average.within_folds is not None and verify(record, case.data).ok
    first, model, within = average.pairs[0], average.model, average.within_folds
    altered = {
        "weight": replace(average, pairs=(replace(first, weight=first.weight + 1e-3), *average.pairs[1:])),
        "distance": replace(average, pairs=(replace(first, distance=first.distance + 1e-2), *average.pairs[1:])),
        "missed": replace(average, missed=average.missed * 1.01 + 1e-9),
        "intercept": replace(average, model=replace(model, intercept=model.intercept + 1e-4)),
        "objective": replace(average, model=replace(model, objective=model.objective * 1.01 + 1e-6)),
        "error": replace(average, within_folds=replace(within, error=within.error * 1.001)),
    }
    for name, other in altered.items():
        report = verify(replace(record, average=other), case.data)
        assert any(failure.field.startswith("average") for failure in report.failures), (name, report.failures)


def test_pairs_of_one_model_have_one_distance_with_single_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    X, some = rng.normal(size=(30, 3)), rng.random(30) < 0.15
    y = some * rng.integers(1, 9, 30)
    y[:2] = 1, 2
    data = Dataset.from_arrays(X, y.astype(float))
    how: dict[str, Any] = {"loss": "poisson", "scale": "none", "model": "average", "gap": 0.01, "threads": 1}
    record = cross_validate(data, "loo", gammas=[0.01, 10.0], taus=[0, 1, 3], **how)
    assert record.average is not None and verify(record, data).ok
    assert [pair.distance for pair in record.average.pairs if pair.tau == 0] == [0.0, 0.0]  # one was 0.96


def test_without_time_for_the_losses_of_single_rows_there_is_no_average(monkeypatch: pytest.MonkeyPatch) -> None:
    data = problems.counts(3, 40, 3, {0: 0.5})
    by_rows = SmoothAverageFits.losses_of_single_rows
    monkeypatch.setattr(SmoothAverageFits, "losses_of_single_rows", lambda *asked: by_rows(*asked[:-1], lambda: True))
    record = cross_validate(data, "loo", gammas=[0.1, 1.0], taus=[1, 2], loss="poisson", model="average", threads=1)
    assert record.average is None and record.warnings[-1] == NOT_AVERAGED and verify(record, data).ok


def test_without_time_there_is_no_average_of_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    data = problems.counts(3, 40, 3, {0: 0.5})
    of_folds = SmoothAverageFits.averages_of_folds
    monkeypatch.setattr(SmoothAverageFits, "averages_of_folds", lambda *asked: of_folds(*asked[:-1], lambda: True))
    how: dict[str, Any] = {"loss": "poisson", "model": "average", "own_error": True, "threads": 1}
    record = cross_validate(data, "loo", gammas=[0.1, 1.0], taus=[1, 2], **how)
    assert record.average is not None and record.average.within_folds is None and verify(record, data).ok

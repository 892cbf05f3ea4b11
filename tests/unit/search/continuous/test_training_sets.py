"""Training sets and held-out rows are those of the definition."""

from __future__ import annotations

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.continuous import training_sets
from sparsecv_mio.search.continuous.training_sets import TrainingSets

SUPPORT = np.array([1, 3, 4])


@pytest.mark.parametrize("spec", ["loo", "5", "blocks:7"])
def test_values_are_those_of_the_definition(spec: str) -> None:
    one = interval_problem(1, spec)
    data, folds = one.data.dataset, one.folds
    unit = one.data.y_unit**2
    found = one.sets.values(np.arange(folds.k), np.tile(SUPPORT, (folds.k, 1)), 0.05)
    for fold in range(folds.k):
        model = fit(data.X, data.y, SUPPORT.tolist(), 0.1, rows=folds.train_rows(fold))
        assert abs(found.f[fold] * unit - model.objective) <= found.f_error[fold] * unit
        held = held_out_error(model, data.X, data.y, folds.scored_rows(fold))
        assert abs(found.h[fold] * unit - held) <= found.h_error[fold] * unit


def test_all_rows_hold_nothing_out() -> None:
    one = interval_problem(2, "3")
    sets = TrainingSets.of_all_rows(one.data)
    model = fit(one.data.dataset.X, one.data.dataset.y, SUPPORT.tolist(), 2.0)
    found = sets.values(np.zeros(1, dtype=np.int64), SUPPORT[None], 1.0)
    assert np.isclose(found.f[0] * one.data.y_unit**2, model.objective, rtol=1e-12) and found.h[0] == 0.0


def test_too_many_folds_are_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_sets, "MOST_BYTES", 1000)
    with pytest.raises(BadInput, match="more than 2 GB"):
        interval_problem(1, "loo")

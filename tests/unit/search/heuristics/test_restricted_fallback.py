"""Supports of last resort keep to the restrictions, and are scored as they stand."""

from __future__ import annotations

import time

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.restrictions import Restrictions
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.restricted_fallback import restricted_fallback, restricted_on_all_rows


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_every_support_keeps_to_the_restrictions(seconds: float) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 5))
    data = sc.Dataset.from_arrays(X, X @ [1.0, -1.0, 0.5, 0.2, 0.0] + rng.normal(size=30))
    asked = Restrictions(at_most="1:x0,x2", hierarchy="x1=x3", nonnegative=["x0", "x1", "x2"]).within(data.names)
    ready, folds = standardize(data, "length", "fold", asked), sc.make_folds("3", data)
    found = restricted_fallback(ready, folds, Grid.of([0.1], [1, 3], 5, asked), time.monotonic() + seconds)
    for t in range(2):
        for fold in range(3):
            support = found.supports[t][fold].tolist()
            model = fit(data.X, data.y, support, 0.1, rows=folds.train_rows(fold))
            names = {data.names[j] for j in support}
            assert len(names & {"x0", "x2"}) <= 1 and ("x1" not in names or "x3" in names)
            assert all(b >= 0 for j, b in zip(support, model.beta, strict=True) if j < 3)
            unit = ready.y_unit**2
            assert found.value[t, fold] * unit == pytest.approx(model.objective)
            error = held_out_error(model, data.X, data.y, folds.scored_rows(fold))
            assert found.nominal[t, fold] * unit == pytest.approx(error)
    on_all = restricted_on_all_rows(ready, [0.1], [3])[0][3]
    assert on_all[1] * ready.y_unit**2 == pytest.approx(fit(data.X, data.y, on_all[0].tolist(), 0.1).objective)


def test_a_size_without_a_model_is_refused() -> None:
    rng = np.random.default_rng(2)
    data = sc.Dataset.from_arrays(rng.normal(size=(12, 3)), rng.normal(size=12))
    message = "^tau 1: no model of at most 1 features keeps to the restrictions"
    for call in (lambda **how: sc.cross_validate(data, "2", gammas=[1.0], taus=[1], **how),
                 lambda **how: sc.best_subsets(data, gammas=[1.0], taus=[1], **how)):  # fmt: skip
        with pytest.raises(BadInput, match=message):
            call(force_in="x0", hierarchy="x0=x1")

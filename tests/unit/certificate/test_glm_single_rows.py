"""Losses of rows that are left out one by one are those of fits without them, and an altered one is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.certificate import glm_design
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.glm_design import LeftOutAlone
from sparsecv_mio.certificate.parts import ChosenFolds
from sparsecv_mio.certificate.refits import make_design
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.problem.glm_objective import fit_of_data
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.targets import Loss


def drawn(seed: int, n: int, loss: Loss) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(n, 4))
    rate = X[:, 0] - 0.5 * X[:, 1]
    y = (rate + rng.logistic(size=n) > 0.0) if loss is Loss.LOGISTIC else rng.poisson(np.exp(np.clip(rate, -3.0, 2.0)))
    return Dataset.from_arrays(X, np.asarray(y, dtype=np.float64))


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))])
def test_intervals_hold_the_losses_of_fits(seed: int, loss: Loss) -> None:
    rng, n = np.random.default_rng(seed), 40 + 10 * (seed % 7)
    data, gamma = drawn(seed, n, loss), float(10.0 ** rng.uniform(-3.0, 1.0))
    support = sorted(rng.permutation(4)[: 1 + seed % 4].tolist())
    how = {"scale": "length", "intercept": "fold" if seed % 3 else "none"}
    found = LeftOutAlone(fit_of_data(data, loss, support, gamma, **how), data).held_out(np.arange(n))
    known = np.flatnonzero(np.isfinite(found.losses))
    assert len(known) > n // 2
    for row in known.tolist():
        model = fit_of_data(data, loss, support, gamma, rows=np.delete(np.arange(n), row), **how)
        truth, off = model.held_out(data, np.array([row]))
        assert found.lower[row] - off <= truth <= found.upper[row] + off
        assert found.lower[row] * (1.0 - 1e-12) <= found.losses[row] <= found.upper[row] * (1.0 + 1e-12)
    narrow = found.upper[known] - found.lower[known] <= 1e-6 * found.upper[known]
    assert narrow.mean() > 0.9


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
def test_records_of_many_rows_left_out_are_verified(loss: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glm_design, "MANY_ALONE", 1)
    data = drawn(3, 40, loss)
    record = cross_validate(data, "loo", loss=loss, gammas=[0.1], taus=[1, 2], threads=1)
    assert verify(record, data).ok
    folds = record.chosen_folds
    errors = folds.error.copy()
    errors[11] *= 1.0 + 1e-5
    altered = replace(record, chosen_folds=ChosenFolds(folds.supports, folds.which, errors, folds.decided))
    assert "chosen_folds[11].error" in [failure.field for failure in verify(altered, data).failures]


def test_rows_that_steps_leave_open_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glm_design, "MANY_ALONE", 1)
    data = drawn(3, 40, Loss.LOGISTIC)
    record = cross_validate(data, "loo", loss=Loss.LOGISTIC, gammas=[0.1], taus=[1, 2], threads=1)
    design = make_design(record, data, make_folds("loo", data))
    supports = [design.positions(fold.support) for fold in record.chosen_folds]
    given = supports, record.gamma, record.tau, Checks().tell
    by_steps = design.held_out_losses(*given)
    monkeypatch.setattr(glm_design, "NARROW", 0.0)
    by_fits = design.held_out_losses(*given)
    assert by_steps.mean_room > by_fits.mean_room
    assert by_fits.losses == pytest.approx(by_steps.losses, rel=1e-6)

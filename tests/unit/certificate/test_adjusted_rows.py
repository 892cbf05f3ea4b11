"""Records of two classes and of counts with columns that are adjusted for: verified of every command, and altered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.criteria import criteria
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import export_one, fit_one
from sparsecv_mio.near.common_subset import best_common_subset

LOSSES = pytest.mark.parametrize("loss", ["logistic", "poisson"])


def drawn(loss: str) -> sc.Dataset:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 4))
    X[:, 1] = 40.0 + X[:, 1] + 0.5 * X[:, 0]
    score = X[:, [0, 2]] @ [1.0, -0.8] + 0.6 * (X[:, 1] - 40.0)
    y = score + rng.logistic(size=50) > 0.0 if loss == "logistic" else rng.poisson(np.exp(0.4 * score))
    return sc.Dataset.from_arrays(X, y.astype(float))


def asked(loss: str) -> dict[str, Any]:
    return {"gammas": [0.1], "taus": [0, 1], "loss": loss, "threads": 1, "adjust": ["x1"]}


@LOSSES
def test_altered_records_are_refused(loss: str) -> None:
    data = drawn(loss)
    record = sc.cross_validate(data, "2", gap=0.0, **{**asked(loss), "taus": [1]})
    assert sc.verify(record, data).ok and "x1" not in record.support and len(record.support) == record.tau
    limits = record.request.restrictions
    assert limits is not None

    def refused(**changes: Any) -> bool:
        return not sc.verify(replace(record, **changes), data).ok

    def asking(**changes: Any) -> bool:
        return refused(request=replace(record.request, restrictions=replace(limits, **changes)))

    assert asking(adjust=()) and asking(adjust=(), force_in=("x1",)) and asking(adjust=("x3",))
    for name, value in record.coefficients.items():
        assert refused(coefficients={**record.coefficients, name: value * 1.001}), name
    assert refused(refit=replace(record.refit, objective=record.refit.objective * 1.0001))
    assert refused(cv_error=record.cv_error * 1.0001)
    assert refused(table=tuple(replace(row, lower=row.upper * 1.01, upper=row.upper * 1.02) for row in record.table))


@LOSSES
def test_records_of_every_command_are_verified(loss: str) -> None:
    data, how = drawn(loss), asked(loss)
    path = sc.best_subsets(data, **how)
    near = sc.near_optimal(data, "3", gamma=0.1, taus=1, within=0.2, by="cv", adjust="x1", loss=loss)
    fit = fit_one(data, tau=1, gamma=0.1, loss=loss, side=SideOptions(adjust=["x1"]))
    common = best_common_subset(data, "3", **how)
    stable = sc.cross_validate(data, "3", stability=0.5, **how)
    average = sc.cross_validate(data, "3", model="average", **how)
    nested = sc.solve(data, folds="3", nested=2, **how)
    for record in (path, near, fit, common, stable, average, nested):
        found = sc.verify(record, data)
        assert found.ok, (type(record), found.failures[:2])
    assert set(path.path[0].coefficients) == {"x1"} and path.path[0].support == ()
    first = criteria(path.path, data, True, path)[0]
    assert first.aic == pytest.approx(first.deviance + 4.0)  # type: ignore[union-attr]  # the intercept and x1


def test_models_of_solvers_and_scales_without_an_end_are_refused() -> None:
    data, side = drawn("logistic"), SideOptions(adjust=["x1"])
    with pytest.raises(BadInput, match="^adjust: not supported with loss logistic and backend highs, .*native$"):
        fit_one(data, tau=1, gamma=0.1, loss="logistic", side=side, backend="highs")
    with pytest.raises(BadInput, match="^adjust: not supported with loss logistic and export, .*; give loss squared"):
        export_one(data, "never.nl", tau=1, gamma=0.1, loss="logistic", side=side)
    X = data.X.copy()
    X[:, 1] = data.y
    with pytest.raises(BadInput, match="^adjust: on all rows, column 'x1' separates the two classes"):
        sc.best_subsets(replace(data, X=X), **asked("logistic"))

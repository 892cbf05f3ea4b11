"""Predictions of a record: columns by name, missing ones named; how good they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from repository import INSTANCES
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

import sparsecv_mio as sc
from sparsecv_mio.certificate.model import accuracy
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.fits.one import fit_one

FRAME = pd.read_csv(INSTANCES / "prostate.csv")
DATA = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")


@pytest.fixture(scope="module")
def record() -> Record:
    return sc.solve(DATA, gammas=0.1, taus=3)


def test_rows_of_any_form_give_one_prediction(record: Record) -> None:
    used = list(record.coefficients)
    truth = FRAME[used].to_numpy() @ list(record.coefficients.values()) + record.intercept
    for X in (DATA, DATA.X, DATA.X.tolist(), FRAME, FRAME[used[::-1]], FRAME.assign(note="text")):
        assert record.predict(X) == pytest.approx(truth, rel=1e-12)
    assert record.predict(FRAME[:0]).shape == (0,)


def test_a_fit_predicts_as_the_definition_says() -> None:
    from sparsecv_mio.problem.objective import fit

    model = fit_one(DATA, tau=2, gamma=0.1)
    plain = fit(DATA.X, DATA.y, [DATA.names.index(name) for name in model.support], 0.1)
    assert model.predict(DATA) == pytest.approx(plain.predict(DATA.X), rel=1e-10)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (FRAME[["age"]], "the model needs the columns 'lcavol', 'lweight', 'svi': add"),
        (FRAME.drop(columns="svi"), "the model needs the column 'svi': add"),
        (DATA.X[:, :3], r"X has the shape \(97, 3\): give rows of 8 columns"),
        (DATA.X[0], r"X has the shape \(8,\)"),
        (FRAME.assign(svi="yes"), "X must hold numbers only"),
        (FRAME.assign(svi=[np.nan] * 97), "column 'svi' holds no finite number in row 1"),
    ],
)
def test_what_is_wrong_is_one_line(record: Record, X: Any, said: str) -> None:
    with pytest.raises(sc.SparseCVError, match=f"^{said}[^\n]*$"):
        record.predict(X)


def test_errors_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=50), rng.normal(size=50)
    found = accuracy(y, predicted)
    assert found.rmse == pytest.approx(root_mean_squared_error(y, predicted))
    assert found.mae == pytest.approx(mean_absolute_error(y, predicted))
    assert found.r_squared == pytest.approx(r2_score(y, predicted))
    assert np.isnan(accuracy([1.0, 1.0], [0.0, 2.0]).r_squared)

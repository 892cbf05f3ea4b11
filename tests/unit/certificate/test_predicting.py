"""Predictions of models whose terms cancel."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparsecv_mio as sc
from sparsecv_mio.cli import run
from sparsecv_mio.errors import SparseCVWarning
from sparsecv_mio.sklearn import BestSubsetRidgeCV


def test_a_warning_states_how_many_digits_cancel(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rng, how = np.random.default_rng(0), {"folds": "5", "gammas": [0.01], "taus": [2]}
    near = rng.normal(size=(40, 3)).round(3)
    far, y = near + [1e12, 0.0, 0.0], near[:, 0] - 2.0 * near[:, 1] + 0.1 * rng.normal(size=40)
    record = sc.solve(sc.Dataset.from_arrays(far, y, ["a", "b", "c"]), **how)
    with pytest.warns(SparseCVWarning, match="'a' has values up to 1e.12; subtract a constant from such") as caught:
        predicted = record.predict(far)
    stated = float(re.findall(r"accurate to about (\S+) only", str(caught[0].message))[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        true = sc.solve(sc.Dataset.from_arrays(near, y), **how).predict(near)
        model = BestSubsetRidgeCV(gammas=[0.01], taus=[2], cv=5).fit(near, y)
        assert model.predict(csr_array(near)) == pytest.approx(model.predict(near))
    assert 1e-6 < np.abs(predicted - true).max() <= stated
    with pytest.warns(SparseCVWarning, match="large terms cancel"):
        BestSubsetRidgeCV(gammas=[0.01], taus=[2], cv=5).fit(far, y).predict(far)
    (tmp_path / "r.json").write_text(record.to_json())
    np.savetxt(tmp_path / "far.csv", far, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    assert run(["predict", str(tmp_path / "r.json"), str(tmp_path / "far.csv")]) == 0
    assert "sparsecv: warning: predictions are accurate to about" in capfd.readouterr().err

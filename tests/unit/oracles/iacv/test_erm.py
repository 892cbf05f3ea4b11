"""The penalised risk, and the problem of a data set."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv import Erm, Logistic, Regularizer


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"lam": -1.0}, "lam"),
        ({"y": np.array([1.0, 2.0, 1.0])}, "labels -1 and"),
        ({"X": np.array([[1.0], [np.nan], [0.0]])}, "finite"),
        ({"y": np.ones(2)}, r"\(n,\)"),
        ({"labels": np.array([0, 2, -1])}, "labels"),
    ],
)
def test_bad_problems(change, word):
    good = {"X": np.ones((3, 1)), "y": np.array([1.0, -1.0, 1.0]), "lam": 0.0, "labels": None} | change
    with pytest.raises(BadInput, match=word):
        Erm(good["X"], good["y"], Logistic(), Regularizer(2.0), good["lam"], good["labels"])

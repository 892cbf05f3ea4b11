"""IACV as an oracle: predictions of single rows and of groups."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import Guess
from sparsecv_mio.oracles.iacv import Erm, IacvOracle, Logistic, Ridge, Squared, default_step, exact_step, gd

from ..samples import data


def test_iacv_single_rows_and_groups():
    X, y = data()
    erm = Erm(X, y, Squared(), Ridge(), 0.5)
    oracle = IacvOracle(erm, gd(default_step(erm)), 600)
    for rows in (np.array([4]), np.array([7]), np.array([1, 9, 30])):
        keep = np.setdiff1d(np.arange(40), rows)
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        found = oracle.leave_out(rows)
        assert isinstance(found, Guess)
        assert found.value == pytest.approx(X[rows] @ b, abs=1e-9)
    with pytest.raises(BadInput, match="labels"):
        IacvOracle(Erm(X, y, Squared(), Ridge(), 0.5, np.arange(40) % 4), gd(0.01), 5)


def test_iacv_logistic_is_near_the_exact_fit():
    X, y = data()
    erm = Erm(X, np.sign(y), Logistic(), Ridge(), 0.5)
    method = gd(default_step(erm))
    oracle, Theta = IacvOracle(erm, method, 100), np.zeros((40, 3))
    for t in range(100):
        Theta = exact_step(erm, method, t, Theta)
    for i in range(40):
        assert oracle.leave_out(np.array([i])).value[0] == pytest.approx(X[i] @ Theta[i], abs=0.1)

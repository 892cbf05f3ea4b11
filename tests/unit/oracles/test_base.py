"""What an oracle says of itself: IACV and TreeCV estimate, they certify nothing."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.oracles.base import CertifiedOracle, EstimateOracle, Guarantee, Guess
from sparsecv_mio.oracles.glru import (
    Logistic,
)
from sparsecv_mio.oracles.glru.leave_one_out import GlruOracle
from sparsecv_mio.oracles.glru.newton import NewtonOracle
from sparsecv_mio.oracles.iacv import Erm, IacvOracle, Ridge, Squared, gd
from sparsecv_mio.oracles.treecv import RidgeLearner, TreeCvOracle

from .glru.fits import RIDGES, fitted
from .samples import data


def test_they_are_estimates():
    X, y = data()
    erm = Erm(X, y, Squared(), Ridge(), 0.5)
    iacv = IacvOracle(erm, gd(0.01), 3)
    tree = TreeCvOracle(RidgeLearner(0.5), X, y, folds_from_labels(np.arange(40)))
    for oracle in (iacv, tree):
        assert isinstance(oracle, EstimateOracle)
        assert oracle.guarantee is Guarantee.ESTIMATE
        assert isinstance(oracle.leave_out(np.array([3])), Guess)


def test_oracles_keep_the_protocol() -> None:
    fit = fitted(Logistic(), RIDGES[0])
    glru, step = GlruOracle(fit), NewtonOracle(fit)
    assert isinstance(glru, CertifiedOracle) and glru.guarantee == "certified"
    assert isinstance(step, EstimateOracle) and step.guarantee == "estimate"
    joint = glru.leave_out(np.array([1, 2, 3]))
    assert joint.lower.shape == (3,) and step.leave_out(np.array([1, 2])).value.shape == (2,)

"""What each learner refuses."""

from __future__ import annotations

import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import (
    GaussianNaiveBayes,
    LeastSquaresSgd,
    PegasosLearner,
    RidgeLearner,
)

from .samples import SIGNS


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: PegasosLearner(2, 0.0), "lam > 0"),
        (lambda: LeastSquaresSgd(2, float("nan")), "step > 0"),
        (lambda: RidgeLearner(-1.0), "lam >= 0"),
        (lambda: GaussianNaiveBayes(2, SIGNS, smoothing=-1.0), "smoothing"),
        (lambda: RidgeLearner(1.0).fit(), "no rows"),
    ],
)
def test_refusals(make, word):
    with pytest.raises(BadInput, match=word):
        make()

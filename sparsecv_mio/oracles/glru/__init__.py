"""GLRU: certified bounds on the optimum of a regularised risk after rows or columns come or go (theory section 8)."""

from sparsecv_mio.oracles.glru.fit import Fit, assess
from sparsecv_mio.oracles.glru.gap import change_columns, change_rows, region_of
from sparsecv_mio.oracles.glru.intervals import (
    Method,
    coefficient_intervals,
    dual_intervals,
    prediction_intervals,
)
from sparsecv_mio.oracles.glru.losses import Huber, Logistic, Loss, SmoothedHinge, Squared, SquaredHinge, make_loss
from sparsecv_mio.oracles.glru.problem import Design, Problem, make_problem
from sparsecv_mio.oracles.glru.region import Region
from sparsecv_mio.oracles.glru.regularizers import Regularizer, make_regularizer
from sparsecv_mio.oracles.glru.train import HessianFactor, train

__all__ = [
    "Design",
    "Fit",
    "HessianFactor",
    "Huber",
    "Logistic",
    "Loss",
    "Method",
    "Problem",
    "Region",
    "Regularizer",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "assess",
    "change_columns",
    "change_rows",
    "coefficient_intervals",
    "dual_intervals",
    "make_loss",
    "make_problem",
    "make_regularizer",
    "prediction_intervals",
    "region_of",
    "train",
]

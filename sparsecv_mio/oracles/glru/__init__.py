"""GLRU: certified bounds on the optimum of a regularised risk after rows or columns come or go (theory section 8)."""

from sparsecv_mio.oracles.glru.fit import Fit, assess
from sparsecv_mio.oracles.glru.gap import change_columns, change_rows, region_of
from sparsecv_mio.oracles.glru.intervals import (
    Method,
    coefficient_intervals,
    dual_intervals,
    prediction_intervals,
)
from sparsecv_mio.oracles.glru.leave_one_out import GlruOracle, leave_one_out_bounds
from sparsecv_mio.oracles.glru.loocv import LoocvResult, loocv
from sparsecv_mio.oracles.glru.losses import Huber, Logistic, Loss, SmoothedHinge, Squared, SquaredHinge, make_loss
from sparsecv_mio.oracles.glru.newton import NewtonOracle
from sparsecv_mio.oracles.glru.problem import Design, Problem, make_problem
from sparsecv_mio.oracles.glru.region import Region
from sparsecv_mio.oracles.glru.regularizers import Regularizer, make_regularizer
from sparsecv_mio.oracles.glru.stepwise import StepwiseOptions, StepwiseResult, stepwise
from sparsecv_mio.oracles.glru.training import HessianFactor, train

__all__ = [
    "Design",
    "Fit",
    "GlruOracle",
    "HessianFactor",
    "Huber",
    "Logistic",
    "LoocvResult",
    "Loss",
    "Method",
    "NewtonOracle",
    "Problem",
    "Region",
    "Regularizer",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "StepwiseOptions",
    "StepwiseResult",
    "assess",
    "change_columns",
    "change_rows",
    "coefficient_intervals",
    "dual_intervals",
    "leave_one_out_bounds",
    "loocv",
    "make_loss",
    "make_problem",
    "make_regularizer",
    "prediction_intervals",
    "region_of",
    "stepwise",
    "train",
]

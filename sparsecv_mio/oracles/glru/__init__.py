"""Generalized low-rank update (GLRU): certified bounds on minima of regularised risks (docs/oracles/glru.md)."""

from sparsecv_mio.oracles.glru.loocv import GlruOracle, LoocvResult, NewtonOracle, leave_one_out_bounds, loocv
from sparsecv_mio.oracles.glru.regions import (
    IntervalMethod,
    OptimumRegion,
    change_columns,
    change_rows,
    coefficient_intervals,
    prediction_intervals,
    region_of,
)
from sparsecv_mio.oracles.glru.risk import DesignMatrix, DualFit, Problem, assess, make_problem
from sparsecv_mio.oracles.glru.stepwise import StepwiseOptions, StepwiseResult, stepwise
from sparsecv_mio.oracles.glru.training import HessianFactor, train
from sparsecv_mio.oracles.losses import ConjugateLoss, Huber, Logistic, SmoothedHinge, Squared, SquaredHinge, make_loss
from sparsecv_mio.oracles.penalties import Regularizer, make_regularizer

__all__ = [
    "ConjugateLoss", "DesignMatrix", "DualFit", "GlruOracle", "HessianFactor", "Huber", "Logistic",
    "LoocvResult", "IntervalMethod", "NewtonOracle", "Problem", "OptimumRegion", "Regularizer",
    "SmoothedHinge", "Squared", "SquaredHinge", "StepwiseOptions", "StepwiseResult", "assess",
    "change_columns", "change_rows", "coefficient_intervals",
    "leave_one_out_bounds", "loocv", "make_loss", "make_problem", "make_regularizer",
    "prediction_intervals", "region_of", "stepwise", "train",
]  # fmt: skip

"""Iterative approximate cross-validation (Luo, Ren, Barber 2023): left-out fits along the whole path of a solver.

Estimates, never certificates: they may order a search, they may not prune it (theory section 8).
"""

from sparsecv_mio.oracles.iacv.baselines import infinitesimal_jackknife, newton_step
from sparsecv_mio.oracles.iacv.batched import FoldFits, fold_fits
from sparsecv_mio.oracles.iacv.erm import Erm
from sparsecv_mio.oracles.iacv.losses import LOSSES, LinearLoss, Logistic, Poisson, SmoothLoss, Squared
from sparsecv_mio.oracles.iacv.oracle import IacvOracle
from sparsecv_mio.oracles.iacv.penalties import L1, KSupport, Penalty, Ridge
from sparsecv_mio.oracles.iacv.report import METHODS, EarlyStop, Report, Trace, log_spaced, run
from sparsecv_mio.oracles.iacv.setup import make_erm, make_solver
from sparsecv_mio.oracles.iacv.trajectory import (
    EpochDoubling,
    FixedStep,
    Solver,
    State,
    default_step,
    exact_step,
    full_step,
    gd,
    iacv_step,
    proxgd,
    sgd,
    start,
)

__all__ = [
    "L1",
    "LOSSES",
    "METHODS",
    "EarlyStop",
    "EpochDoubling",
    "Erm",
    "FixedStep",
    "FoldFits",
    "IacvOracle",
    "KSupport",
    "LinearLoss",
    "Logistic",
    "Penalty",
    "Poisson",
    "Report",
    "Ridge",
    "SmoothLoss",
    "Solver",
    "Squared",
    "State",
    "Trace",
    "default_step",
    "exact_step",
    "fold_fits",
    "full_step",
    "gd",
    "iacv_step",
    "infinitesimal_jackknife",
    "log_spaced",
    "make_erm",
    "make_solver",
    "newton_step",
    "proxgd",
    "run",
    "sgd",
    "start",
]

"""Iterative approximate cross-validation (Luo, Ren, Barber 2023): left-out fits along the whole path of a solver.

Estimates, never certificates: they may order a search, they may not prune it (theory section 8).
"""

from sparsecv_mio.oracles.iacv.risk_without_rows import (
    Erm,
    FoldFits,
    fold_fits,
    infinitesimal_jackknife,
    make_erm,
    newton_step,
)
from sparsecv_mio.oracles.iacv.trajectory import (
    METHODS,
    EarlyStop,
    EpochDoubling,
    FixedStep,
    IacvReport,
    MethodTrace,
    Solver,
    State,
    default_step,
    exact_step,
    full_step,
    gd,
    iacv_step,
    log_spaced,
    make_solver,
    proxgd,
    run,
    sgd,
    start,
)
from sparsecv_mio.oracles.losses import Logistic, Loss, Poisson, Squared
from sparsecv_mio.oracles.penalties import KSupport, Penalty, Regularizer

__all__ = [
    "METHODS", "EarlyStop", "EpochDoubling", "Erm", "FixedStep", "FoldFits",
    "KSupport", "Logistic", "Loss", "Penalty", "Poisson", "Regularizer", "IacvReport", "Solver",
    "Squared", "State", "MethodTrace", "default_step", "exact_step", "fold_fits", "full_step", "gd",
    "iacv_step", "infinitesimal_jackknife", "log_spaced", "make_erm", "make_solver", "newton_step",
    "proxgd", "run", "sgd", "start",
]  # fmt: skip

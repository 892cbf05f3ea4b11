"""IACV, iterative approximate cross-validation (Luo, Ren and Barber 2023): held-out fits at each step of a solver.

Its results are estimates, never certificates. They may determine the order of a search, but they exclude no model
(docs/oracles/iacv.md).
"""

# ruff: noqa: F403  # a module says itself what is public of it
from sparsecv_mio.oracles.iacv import risk_without_rows, trajectory
from sparsecv_mio.oracles.iacv.risk_without_rows import *
from sparsecv_mio.oracles.iacv.trajectory import *
from sparsecv_mio.oracles.losses import Logistic, Poisson, SmoothLoss, Squared
from sparsecv_mio.oracles.penalties import KSupport, Penalty, Regularizer

__all__ = [
    "KSupport", "Logistic", "SmoothLoss", "Penalty", "Poisson", "Regularizer", "Squared",
    *risk_without_rows.__all__, *trajectory.__all__,
]  # fmt: skip

"""Input and output of every solver backend: initial solutions, limits, known bounds and outcomes.

============================  ==================  ==============================================
situation                     stop                outcome
============================  ==================  ==============================================
gap closed                    Stop.OPTIMAL        incumbent, lower ~ upper
time, node or gap limit       TIME, NODES, GAP    incumbent (or None), lower <= optimum <= upper
a round changed nothing       STALLED             the same
cancelled                     INTERRUPTED         the same
side constraints exclude all  INFEASIBLE          no incumbent, lower = upper = inf
solver broke down             raises              BackendFailed(raw_status, log_tail)
not usable here               raises              BackendUnavailable
============================  ==================  ==============================================

An unknown bound is -inf / +inf, never None or NaN.

`Stop.OPTIMAL` means `upper - lower <= gap * upper + allowance`. A vendor's solver computes in floating point with its
own tolerances. Its dual bound is therefore trusted only to 2e-6 of the scale of the objective (theory section 9), and
`lower` is the dual bound minus this amount. `allowance` is this amount plus 5e-7 of the scale, because the incumbents
of a solver may violate their constraints. In the condition of `Stop.OPTIMAL` the allowance is at most a thousandth of
`upper`. A bound computed by this package has an allowance for rounding only.

`Stop.GAP` means that a solver met its own criterion, but the exact refit of its support leaves a larger gap, or the
bound of the solver is not trusted. Backends that solve a sequence of models have one model in each round.
`Stop.STALLED` means that a round changed neither the bound nor the incumbent. The tolerances of the solver are then
wider than the requested gap, and further rounds would not reach the gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from sparsecv_mio.arrays import FloatArray


class Stop(StrEnum):
    """Reason why a solve ended."""

    OPTIMAL = "optimal"
    GAP = "gap"
    TIME = "time"
    NODES = "nodes"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class Start:
    """A warm start: a fixed support and the name of its origin."""

    support: tuple[int, ...]
    origin: str


class StopRequest(Protocol):
    """A request to end, for instance an event that another thread may set."""

    def is_set(self) -> bool:
        """Return True if a solve has to end."""


@dataclass(frozen=True)
class Limits:
    """Stopping rules: relative gap `(upper - lower) / upper` of the full objective, seconds, nodes; threads, log file.

    `options` are further options of the solver, `NAME=VALUE` each (`Backend.check_options`). `cancel`, if given, is
    checked from time to time.
    """

    gap: float = 1e-7
    seconds: float = math.inf
    nodes: float = math.inf
    threads: int = 1
    log: str | None = None
    options: tuple[str, ...] = ()
    cancel: StopRequest | None = field(default=None, compare=False, repr=False)

    @property
    def cancelled(self) -> bool:
        """True if the solve was cancelled."""
        return self.cancel is not None and self.cancel.is_set()


@dataclass(frozen=True, eq=False)
class KnownBounds:
    """Bounds known in advance for one problem and tau.

    Attributes
    ----------
    lower : float
        Certified lower bound on the optimum, in the units of `f`.
    points : tuple of (q,) arrays
        Coefficients at which dual cuts are made first, for instance the solution of a relaxation.
    """

    lower: float = -math.inf
    points: tuple[FloatArray, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The result of one inner problem (one fold, one tau, one gamma).

    Attributes
    ----------
    stop : Stop
        Reason why the solve ended.
    incumbent : tuple of int, or None
        Best support found (columns of the problem).
    lower, upper : float
        Certified bounds on the optimum: `upper` is the exact refit of the incumbent, `lower` the dual bound.
    nodes, cuts : int
        Numbers of nodes and cuts.
    seconds : float
        Time inside the solver.
    raw_status : str
        The solver's own status.
    beta : tuple of float
        Coefficients of the incumbent's refit, in the order of `incumbent` (standard coordinates).
    allowance : float
        Allowance for tolerances and rounding, see the module.
    setup_seconds : float
        Time outside of the solver: start, scaling, model, refits.
    formulation : str
        Name of the model that was solved.
    """

    stop: Stop
    incumbent: tuple[int, ...] | None
    lower: float = -math.inf
    upper: float = math.inf
    nodes: int = 0
    cuts: int = 0
    seconds: float = 0.0
    raw_status: str = ""
    beta: tuple[float, ...] = field(default=(), repr=False)
    allowance: float = 0.0
    formulation: str = ""
    setup_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """Relative gap `(upper - lower) / upper`; 0 if the upper bound is zero and met, inf if a bound is unknown."""
        if not (math.isfinite(self.upper) and math.isfinite(self.lower)):
            return math.inf
        return 0.0 if self.upper <= self.lower else (self.upper - self.lower) / max(self.upper, 5e-324)

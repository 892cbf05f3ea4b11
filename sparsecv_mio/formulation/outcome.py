"""What every backend is given and what it returns.

============================  ==================  ==============================================
situation                     stop                what is held
============================  ==================  ==============================================
gap closed                    Stop.OPTIMAL        incumbent, lower ~ upper
time, node or gap limit       TIME, NODES, GAP    incumbent (or None), lower <= optimum <= upper
a round moved nothing         STALLED             the same
cancelled                     INTERRUPTED         the same
side constraints exclude all  INFEASIBLE          no incumbent, lower = upper = inf
solver broke down             raises              BackendFailed(raw_status, log_tail)
not usable here               raises              BackendUnavailable
============================  ==================  ==============================================

An unknown bound is -inf / +inf, never None or NaN.

`Stop.OPTIMAL` means `upper - lower <= gap * upper + allowance`. A vendor's solver works in floating point with
tolerances of its own, so its dual bound is trusted to 2e-6 of the objective's scale only (theory section 9): `lower` is
the dual bound less that much. `allowance` states this amount plus 5e-7 of the scale, by which incumbents of a solver
may violate their rows; in the test above it counts at most as a thousandth of the answer. A bound computed by this
package has an allowance for rounding only. `Stop.GAP` means that a solver met its own criterion, but that the exact
refit of its support leaves a larger gap, or that its bound is not trusted. `Stop.STALLED` means that a round
moved neither the bound nor the point: the tolerances of the solver are wider than the requested gap, and further rounds
would not end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from sparsecv_mio.arrays import FloatArray


class Stop(StrEnum):
    """Why a solve ended."""

    OPTIMAL = "optimal"
    GAP = "gap"
    TIME = "time"
    NODES = "nodes"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class Start:
    """A warm start: a frozen support and the name of where it came from."""

    support: tuple[int, ...]
    origin: str


class StopRequest(Protocol):
    """A request to end, for instance an event that another thread may set."""

    def is_set(self) -> bool:
        """Return True once a solve has to end."""


@dataclass(frozen=True)
class Limits:
    """When to stop: relative gap `(upper - lower) / upper` on the full objective, seconds, nodes, threads, log file.

    `options` are others of the solver, `NAME=VALUE` each (`Backend.check_options`). `cancel`, when given, is checked
    from time to time.
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
        """Whether the solve was cancelled."""
        return self.cancel is not None and self.cancel.is_set()


@dataclass(frozen=True, eq=False)
class KnownBounds:
    """What is known beforehand about one problem and tau.

    Attributes
    ----------
    lower : float
        A certified lower bound on the optimum, in the units of `f`.
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
        Why the solve ended.
    incumbent : tuple of int, or None
        Best support found (columns of the problem).
    lower, upper : float
        Certified bounds on the optimum: `upper` is the exact refit of the incumbent, `lower` the dual bound.
    nodes, cuts : int
        Work done.
    seconds : float
        Time inside the solver.
    raw_status : str
        The solver's own name for how it ended.
    beta : tuple of float
        Coefficients of the incumbent's refit, in the order of `incumbent` (standard coordinates).
    allowance : float
        See the text of the module.
    setup_seconds : float
        Time outside of the solver: start, scaling, model, refits.
    formulation : str
        The model that was solved.
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
        """`(upper - lower) / upper`, 0 for a zero upper bound that is met, inf when a side is unknown."""
        if not (math.isfinite(self.upper) and math.isfinite(self.lower)):
            return math.inf
        return 0.0 if self.upper <= self.lower else (self.upper - self.lower) / max(self.upper, 5e-324)

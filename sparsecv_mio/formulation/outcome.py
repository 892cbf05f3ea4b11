"""What a backend is given and what it gives back, whatever the solver.

============================  ==================  ==============================================
situation                     stop                what is held
============================  ==================  ==============================================
gap closed                    Stop.OPTIMAL        incumbent, lower ~ upper
time, node or gap limit       TIME, NODES, GAP    incumbent (or None), lower <= optimum <= upper
asked to stop                 INTERRUPTED         the same
side constraints exclude all  INFEASIBLE          no incumbent, lower = upper = inf
solver broke down             raises              BackendFailed(raw_status, log_tail)
not usable here               raises              BackendUnavailable
============================  ==================  ==============================================

An unknown bound is -inf / +inf, never None or NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum


class Stop(StrEnum):
    """Why a solve ended."""

    OPTIMAL = "optimal"
    GAP = "gap"
    TIME = "time"
    NODES = "nodes"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class Start:
    """A warm start: a frozen support and the name of where it came from."""

    support: tuple[int, ...]
    origin: str


@dataclass(frozen=True)
class Limits:
    """When to stop: relative gap `(upper - lower) / upper` on the full objective, seconds, nodes, threads, log file."""

    gap: float = 1e-7
    seconds: float = math.inf
    nodes: float = math.inf
    threads: int = 1
    log: str | None = None


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
        The solver's own word.
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

"""The interface of every solver backend: its input and output, its capabilities and its options.

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

An unknown lower bound is -inf, and an unknown upper bound is +inf.

`Stop.OPTIMAL` means `upper - lower <= gap * upper + allowance`. An external solver computes in floating point with its
own tolerances. Its dual bound is therefore assumed to be correct only up to 2e-6 times the scale of the objective
(theory section 9). `lower` is the dual bound minus this amount. `allowance` is this amount plus 5e-7 of the scale,
because the incumbents of a solver may violate their constraints. In the condition of `Stop.OPTIMAL` the allowance is at
most a thousandth of `upper`. A bound computed by this package has an allowance for rounding only.

`Stop.GAP` means that a solver met its own criterion, but the exact refit of its support leaves a larger gap, or the
bound of the solver is not trusted. Some backends solve a sequence of models, one in each round. `Stop.STALLED` means
that a round changed neither the bound nor the incumbent. The tolerances of the solver are then wider than the requested
gap, so further rounds would not reach the gap.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.targets import DEFAULT_LOSS, Loss

if TYPE_CHECKING:
    from sparsecv_mio.problem.glm import GlmProblem

KEPT = re.compile(  # names of solver options that are set here, or that may make a bound wrong
    r"tol|gap|limit|cutoff|stop|bound|thread|scale|epsilon|infin|log|output|flag|relax|lazy|small_|large_|objective|"
    r"ctrlc|donot|max_time|[^\w/.]",
    re.IGNORECASE,
)

OptionValue = int | float | bool | str


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
    def is_cancelled(self) -> bool:
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


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a backend.

    Attributes
    ----------
    formulations : dict of str to frozenset
        Names of the formulations for squared-error loss, with the supported kinds of side constraints (`force`,
        `together`, `at_most`, `box`). The first one is the default.
    logistic : dict of str to frozenset
        The same for logistic loss; empty if it is not supported.
    by_rows : dict of str to frozenset
        The same for every other loss of rows.
    limits : frozenset of str
        Supported limits among `seconds`, `nodes`, `gap`, `threads`, `log`, `options`.
    warm_start : bool
        True if a start is passed to the solver.
    concurrent : bool
        True if several threads of a process may solve at once.
    licence_free : bool
        True if it runs without a licence wherever the package is installed; tests then require it.
    """

    formulations: dict[str, frozenset[str]]
    limits: frozenset[str] = frozenset({"seconds", "nodes", "gap", "threads", "log", "options"})
    warm_start: bool = True
    concurrent: bool = True
    licence_free: bool = True
    logistic: dict[str, frozenset[str]] = field(default_factory=dict)
    by_rows: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, loss: Loss) -> dict[str, frozenset[str]]:
        """Return the formulations of a loss."""
        if loss.is_quadratic:
            return self.formulations
        return self.logistic if loss.target.has_classes and self.logistic else self.by_rows

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Supported losses."""
        return tuple(loss for loss in Loss if self.of(loss))


@dataclass(frozen=True)
class Availability:
    """State of a backend here: usable or not, with reason and hint; `version` and `licence` are texts to show."""

    usable: bool
    why: str = ""
    version: str = ""
    licence: str = ""
    hint: str = ""


class Solver(ABC):
    """The interface of a backend; `backends.contract.Backend` implements it for solvers."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def available(self) -> Availability:
        """Return whether this backend is usable here, or why not; cheap after the first call, never raises."""

    def solve(
        self,
        problem: SparseProblem | GlmProblem,
        tau: int,
        *,
        start: Start | None = None,
        limits: Limits | None = None,
        constraints: SideConstraints = FREE,
        advice: KnownBounds | None = None,
        formulation: str | None = None,
    ) -> Outcome:
        """Solve `min f(S), |S| <= tau` under the side constraints; return bounds and the best support.

        Parameters
        ----------
        problem : SparseProblem or GlmProblem
            Problem in standard coordinates; with two classes in any columns.
        tau : int
            Maximum support size, 0..q.
        start : Start, optional
            Warm start; ignored if the side constraints exclude it.
        limits : Limits, optional
            Stopping rules; by default only the relative gap of 1e-7.
        constraints : SideConstraints, optional
            Side constraints; none by default.
        advice : KnownBounds, optional
            A lower bound and points for cuts, if known.
        formulation : str, optional
            One of `capabilities.formulations`; the first by default.

        Returns
        -------
        Outcome
            Result, also if a limit was reached; `lower <= optimum <= upper` always holds.

        Raises
        ------
        BadInput
            If the backend does not support the tau, formulation or side constraint.
        BackendUnavailable
            If it is not installed, has no licence, or has a licence too small for this model.
        BackendFailed
            If the solver broke down; the error has its raw status and the end of its log.
        Contradiction
            If the solver's bound exceeds a feasible objective by more than the allowance.
        """
        limits = limits or Limits()
        form = self._check(problem, tau, formulation, constraints, limits)
        return self._solve(problem, tau, start, limits, constraints, advice or KnownBounds(), form)

    @abstractmethod
    def _solve(
        self, problem: SparseProblem | GlmProblem, tau: int, start: Start | None, limits: Limits,
        constraints: SideConstraints, advice: KnownBounds, form: str,
    ) -> Outcome:  # fmt: skip
        """Solve a problem whose arguments were checked."""

    def _check(
        self, problem: SparseProblem | GlmProblem, tau: int, formulation: str | None,
        constraints: SideConstraints, limits: Limits,
    ) -> str:  # fmt: skip
        loss = Loss.SQUARED if isinstance(problem, SparseProblem) else Loss(problem.loss.name)
        form, q = self.check_takes(formulation, constraints, loss), len(problem.weight)
        if not 0 <= tau <= q:
            raise BadInput(f"tau {tau} is out of range; give a number from 0 to {q}, the number of columns")
        if limits.gap < 0 or limits.threads < 1:
            raise BadInput(
                f"gap {limits.gap:g}, threads {limits.threads}: out of range; give a gap of at least 0 and at least "
                "one thread"
            )
        self.check_available()
        return form

    def check_available(self) -> None:
        """Raise `BackendUnavailable`, with the reason and a hint, if the backend cannot be used."""
        usable = self.available()
        if not usable.usable:
            hint = f"; {usable.hint}" if usable.hint else ""
            raise BackendUnavailable(f"backend {self.name} cannot be used: {usable.why}{hint}")

    def check_takes(
        self, formulation: str | None, constraints: SideConstraints = FREE, loss: Loss = DEFAULT_LOSS
    ) -> str:
        """Return the name of a formulation, the first by default; raise `BadInput` if the backend does not support it.

        Parameters
        ----------
        formulation : str or None
            Name of the formulation.
        constraints : SideConstraints, optional
            Side constraints.
        loss : Loss, optional
            Loss.
        """
        supported = self.capabilities.of(loss)
        if not supported:
            raise BadInput(
                f"backend {self.name} does not support loss {loss}; `sparsecv backends` lists the backends that do"
            )
        form = formulation or next(iter(supported))
        if form not in supported:
            raise BadInput(f"backend {self.name} has no formulation {form!r}; it has {', '.join(supported)}")
        missing = constraints.needs - supported[form]
        if missing:
            beside = "" if loss.is_quadratic else f", with loss {loss}"
            raise BadInput(
                f"backend {self.name}, formulation {form}{beside}, does not support: {', '.join(sorted(missing))}; "
                "`sparsecv backends` lists what each backend supports"
            )
        return form

    def check_options(self, options: Sequence[str]) -> None:
        """Raise an error for solver options that do not exist, are refused, or are needed by the certificate.

        Parameters
        ----------
        options : sequence of str
            Options `NAME=VALUE`, by the names of the solver.

        Raises
        ------
        BadInput
            If an option is refused; the message names it and quotes the solver's message.
        """
        if options and "options" not in self.capabilities.limits:
            raise BadInput(f"solver_option: backend {self.name} does not accept solver options; leave this option out")
        for name, _, _ in (setting.partition("=") for setting in options):
            if KEPT.search(name):
                why = (
                    "this option is set by the package, because the certificate, --gap or --time-limit depends on it; "
                    "leave it out"
                )
                raise BadInput(f"solver_option {name}: {why}")
        if options and self.available().usable:
            self.set_options(self._blank(), options)

    def set_options(self, solver: Any, options: Sequence[str]) -> None:
        """Set options of a solver; raise `BadInput` with the solver's message if it refuses one."""
        for name, _, text in (setting.partition("=") for setting in options):
            value, why = _parse_value(text), ""
            try:
                taken = self._set(solver, name, value)
                why = "" if taken == value else f"the solver would use {taken!r} instead"
            except Exception as error:
                why = str(error.args[0] if isinstance(error, KeyError) else error).rstrip(".!")
            if why:
                raise BadInput(f"solver_option {name}={text}: {self.name} rejects this option: {why}")

    def _blank(self) -> Any:
        """Return a solver without a model, on which options are tried."""
        raise NotImplementedError

    def _set(self, solver: Any, name: str, value: OptionValue) -> OptionValue:
        """Set an option of a solver and return its new value; any exception means that the solver refuses it."""
        raise NotImplementedError


def _parse_value(text: str) -> OptionValue:
    """Return the value of an option from its text: a number, a truth value, or a keyword.

    Examples
    --------
    >>> _parse_value("1"), _parse_value("0.5"), _parse_value("false"), _parse_value("off")
    (1, 0.5, False, 'off')
    """
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return {"true": True, "false": False}.get(text.lower(), text)

"""The base class of all solver backends, and the checks and conversions that backends of external solvers share.

A backend implements the methods `available()` and `_run(task, formulation, limits)`. The base class performs all steps
on which the correctness of a result depends. It checks that the side constraints are feasible and finds the initial
solution. Then it refits every support that a solver returns, and sets the bounds, their allowance and the status.

**Elimination.** Let F be the columns that are in every solution whose objective is at most the objective of the initial
solution. Before a solver runs, the base class eliminates F. An exact elimination leaves a problem of the same form in
the other columns (`problem.eliminate_forced_columns`). The elimination makes the result more accurate. The tolerances
of a solver are relative to the scale of the objective, which is the sum of squares y'y of the centred target. If the
columns F explain nearly all of the target, these tolerances may be larger than the minimum of the objective. After the
elimination, the scale of the objective is f(F), the objective of the ridge fit on F.
"""

from __future__ import annotations

import math
import os
import re
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigvalsh

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.data.standard import ForcedColumns
from sparsecv_mio.errors import BackendFailed, BackendUnavailable, Contradiction
from sparsecv_mio.formulation.outcome import Availability as Availability
from sparsecv_mio.formulation.outcome import Capabilities as Capabilities
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Outcome, Solver, Start, Stop
from sparsecv_mio.formulation.outcome import OptionValue as OptionValue
from sparsecv_mio.formulation.task import (
    SOLVER_ROUNDING,
    ModelTask,
    feasible_start,
    level_set_interval,
    make_task,
    model_task,
    refit_support,
)
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.moment_fits import Fit, refit_moments
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns
from sparsecv_mio.units import TINY

TRUST = 2e-6  # share of the objective's scale to which a vendor's dual bound is trusted (theory section 9)
PRIMAL = 5e-7  # share of that scale by which its incumbents may violate their rows; the allowance is the sum of both
ROOT_ROUNDS = 60  # maximum number of rounds of cuts at the root, if these are made outside of the solver
LARGEST_ALLOWANCE = 1e-3  # maximum allowance, as a share of the objective, of an optimum that is called proved
MOST_PASSES = 3
REACH = 2e3  # range of a scaled coefficient above which a vendor's bound is not trusted: wrong ones begin at 1e4
MISSING_MODULE = re.compile(r"(?:No module named '|import of )([\w.]+)(?:'| halted)")
COMPLETE = (Stop.OPTIMAL, Stop.STALLED)  # stops after which a longer run would not improve the answer
WIDEST_A = 1e4  # maximum condition of A at unit length for a rounding of its inverse below 1e-12 of yy
THINNEST = 1e-5  # minimum share of a column that F leaves unexplained; with less, M' would be mostly rounding error
PROVEN = 1e-11  # widening of the level set before a column is proven in; 1e-14 of yy is added for rounding


@dataclass(frozen=True, eq=False)
class Reduction:
    """A task on some of the columns of a whole problem.

    Attributes
    ----------
    task : ModelTask
        Problem on the other columns.
    choice : ForcedColumns
        Columns of the whole problem that are in every support at least as good as the start, and those of the task.
    """

    task: ModelTask
    choice: ForcedColumns

    @classmethod
    def make_trivial(cls, task: ModelTask) -> Reduction:
        """Return a task without any elimination."""
        return cls(task, ForcedColumns.from_positions(task.q, np.zeros(0, dtype=np.int64)))

    def make_support(self, support: tuple[int, ...]) -> tuple[int, ...]:
        """Return the support of the whole problem that corresponds to a support of the task."""
        return tuple(self.choice.make_support(np.array(support, dtype=np.int64)).tolist())


def reduce_task(task: ModelTask, advice: KnownBounds) -> Reduction:
    """Return a task without the columns that are fixed in, or that the level set of the start proves to be in.

    Columns with a box or with parents are not eliminated, nor any column whose elimination would lose more digits than
    a solver's tolerances.
    """
    boxed = {j for j, *_ in (*task.constraints.box, *task.constraints.parents)}
    inside = (task.z_lo > 0) | find_nonzero_columns(task)
    out = [j for j in sorted(task.start.support) if inside[j] and j not in boxed]
    choice = ForcedColumns.from_positions(task.q, np.array(out, dtype=np.int64))
    problem = _eliminate(task.squares, choice) if out else None
    if problem is None:
        return Reduction.make_trivial(task)
    columns = choice.others
    beta = np.array([b for j, b in zip(task.start.support, task.start.beta, strict=True) if j not in out])
    start = tuple(choice.inside(np.array(task.start.support)).tolist())
    return Reduction(
        model_task(
            problem,
            min(task.tau - task.constraints.count(out), len(columns)),
            _constraints(task.constraints, tuple(out), tuple(columns.tolist())),
            Fit(start, beta, task.start.objective, task.start.shortfall),
            replace(advice, points=tuple(point[columns] for point in advice.points)),
        ),
        choice,
    )


def find_nonzero_columns(task: ModelTask) -> BoolArray:
    """Return a (q,) mask of the columns that are nonzero in every b at least as good as the start."""
    margin = PROVEN + 1e-14 * task.scaled.yy / task.scaled.unit**2
    lo, hi = level_set_interval(task.scaled, task.scaled.value(task.start.objective), margin)
    return np.asarray((lo > 0) | (hi < 0))


def _eliminate(problem: SparseProblem, choice: ForcedColumns) -> SparseProblem | None:
    """Return the problem on the other columns; None if it would be too inaccurate. O(q^2 |F|)."""
    out, free = choice.forced, choice.others
    unit = 1.0 / np.sqrt(np.maximum(problem.M.diagonal()[out], TINY))
    spectrum = eigvalsh(problem.M[np.ix_(out, out)] * np.outer(unit, unit))
    if not spectrum[0] * WIDEST_A >= spectrum[-1]:
        return None
    reduced = eliminate_forced_columns(replace(problem, forced=out)).problem
    if np.any(reduced.M.diagonal() < THINNEST * problem.M.diagonal()[free]):
        return None
    return replace(reduced, yy=refit_moments(problem, tuple(out.tolist())).objective)


def _constraints(constraints: SideConstraints, out: tuple[int, ...], kept: tuple[int, ...]) -> SideConstraints:
    """Return the constraints on the other columns when all of `out` are chosen."""
    gone, place = set(out), {j: k for k, j in enumerate(kept)}
    pulled = {j for term in constraints.terms if gone & set(term.columns) for j in term.columns}
    forced = (set(constraints.forced_in) | pulled) - gone
    return SideConstraints(
        forced_in=tuple(sorted(place[j] for j in forced)),
        forced_out=tuple(place[j] for j in constraints.forced_out),
        terms=tuple(term.convert_to_positions(place) for term in constraints.terms if not gone & set(term.columns)),
        at_most=tuple(
            (k - len(gone & set(columns)), tuple(place[j] for j in columns if j not in gone))
            for k, columns in constraints.at_most
        ),
        box=tuple((place[j], lo, hi) for j, lo, hi in constraints.box),
        parents=tuple(
            (place[j], tuple(place[i] for i in columns if i not in gone), every)
            for j, columns, every in constraints.parents
            if not (gone.issuperset(columns) if every else gone.intersection(columns))
        ),
    )


@dataclass(frozen=True)
class Answer:
    """Result of a solver before any check, in the units of phi.

    Attributes
    ----------
    stop : Stop
        Reason why it ended; OPTIMAL by its own gap criterion.
    bound : float
        Dual bound, -inf if there is none.
    supports : tuple of tuples of int
        Candidate supports; each is checked and refitted.
    nodes, cuts : int
        Numbers of nodes and cuts.
    raw_status : str
        The solver's own status.
    seconds : float
        Time inside the solver, without building the model.
    certified : bool
        True if the bound is computed by this package, with rounding already subtracted.
    margin : float
        Amount subtracted from a certified bound for rounding, in the units of f.
    """

    stop: Stop
    bound: float
    supports: tuple[tuple[int, ...], ...] = ()
    nodes: int = 0
    cuts: int = 0
    raw_status: str = ""
    seconds: float = 0.0
    certified: bool = False
    margin: float = 0.0


@dataclass(frozen=True, eq=False)
class _Pass:
    """One call of a solver: the given problem, the result, and the best refit so far."""

    part: Reduction
    answer: Answer
    best: Fit

    def bound(self, boxed: float) -> tuple[float, str]:
        """Return the solver's dual bound in the units of f, minus the assumed error of the bound, and its status."""
        task, answer = self.part.task, self.answer
        dual = task.scaled.objective(answer.bound)
        if answer.certified:
            return dual, answer.raw_status
        why = "a few rows have nearly all the weight" if task.scaled.has_uneven_weights else ""
        if np.max(task.hi - task.lo, initial=0.0) > REACH:
            why = "columns are too collinear for this gamma"
        if why and math.isfinite(dual):
            return -math.inf, f"{answer.raw_status}; its lower bound is not used, because {why}"
        return dual - TRUST * max(task.scaled.yy, boxed), answer.raw_status


class Backend(Solver):
    """Base class of a solver backend."""

    reduces: ClassVar[bool] = True  # True if, given its tolerances, proven columns are eliminated first

    @abstractmethod
    def _run(self, task: ModelTask, formulation: str, limits: Limits) -> Answer:
        """Solve one task; vendor exceptions become `BackendUnavailable` or `BackendFailed` here."""

    def _solve(
        self, problem: SparseProblem | GlmProblem, tau: int, start: Start | None, limits: Limits,
        constraints: SideConstraints, advice: KnownBounds, form: str,
    ) -> Outcome:  # fmt: skip
        """Solve a problem whose arguments were checked."""
        begin = time.perf_counter()
        unit = np.ones(0)
        if not isinstance(problem, SparseProblem):
            if problem.ends is None and constraints.has_coefficient_bounds:
                problem = replace(problem, ends=np.array(constraints.interval(problem.p)))
            problem, _, centring = problem.centre_columns()
            unit = centring.unit
        first = self._find_first_fit(problem, tau, constraints)
        if first is None:
            why = "no support meets the side constraints"
            return Outcome(Stop.INFEASIBLE, None, math.inf, math.inf, formulation=form, raw_status=why)
        if start is not None and constraints.allows(start.support, tau):
            start_fit = refit_support(problem, start.support, constraints)
            first = min(first, start_fit, key=lambda fit: fit.objective)
        task = self._task(problem, tau, constraints, first, advice)
        passes = self._passes(task, form, limits, advice)
        outcome = self._judge(task, passes, limits, advice)
        if len(unit):
            beta = np.asarray(outcome.beta) / unit[list(outcome.incumbent or ())]
            outcome = replace(outcome, beta=tuple(beta.tolist()))
        return replace(outcome, setup_seconds=time.perf_counter() - begin - outcome.seconds, formulation=form)

    def _find_first_fit(
        self, problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints
    ) -> Fit | None:
        """Return a feasible fit; None if the side constraints exclude every support."""
        return feasible_start(problem, tau, constraints)

    def _task(
        self, problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints, start: Fit,
        advice: KnownBounds,
    ) -> ModelTask:  # fmt: skip
        """Return the task of a problem, with scaled units and bounds on its coefficients."""
        return make_task(problem, tau, constraints, start, advice)

    def _passes(self, task: ModelTask, form: str, limits: Limits, advice: KnownBounds) -> list[_Pass]:
        """Solve; if the optimum is small relative to the objective's scale, eliminate proven columns and solve again.

        A start far above the optimum proves few columns in; the support that the solver found may prove more.
        """
        passes: list[_Pass] = []
        while True:
            reduced = Reduction.make_trivial(task)
            squared = isinstance(task.problem, SparseProblem)
            if squared and self.reduces and TRUST * task.scaled.yy > LARGEST_ALLOWANCE * task.start.objective:
                reduced = reduce_task(task, advice)
            if passes and np.array_equal(reduced.choice.forced, passes[-1].part.choice.forced):
                return passes
            answer = self._attempt(reduced.task, form, _remaining_limits(limits, passes))
            best = self._best(task, reduced, answer)
            passes.append(_Pass(reduced, answer, best))
            done = answer.certified or answer.stop not in COMPLETE or best.objective >= task.start.objective
            if not squared or done or len(passes) == MOST_PASSES:
                return passes
            task = model_task(task.squares, task.tau, task.constraints, best, advice)

    def _attempt(self, task: ModelTask, form: str, limits: Limits) -> Answer:
        answer = self._trivial(task, limits)
        if answer is None and (limits.seconds <= 0 or limits.nodes <= 0 or limits.is_cancelled):
            stop = Stop.INTERRUPTED if limits.is_cancelled else Stop.TIME if limits.seconds <= 0 else Stop.NODES
            answer = Answer(stop, -math.inf, raw_status="stopped before the solver began")
        if answer is not None:
            if limits.log is not None:  # there is no log of the solver
                with open(limits.log, "a", encoding="utf-8") as handle:
                    handle.write(f"backend {self.name} was not needed: {answer.raw_status}\n")
            return answer
        return self._run(task, form, limits)

    def _trivial(self, task: ModelTask, limits: Limits) -> Answer | None:
        """Return a result without a solver if the ridge bound closes the gap (tau 0, no response, a huge gamma)."""
        lower, upper = task.scaled.objective(task.floor), task.start.objective
        if upper - lower <= limits.gap * upper or (task.tau == 0 and not task.constraints.forced_in):
            bound = max(task.floor, task.scaled.value(upper)) if task.tau == 0 else task.floor
            return Answer(Stop.OPTIMAL, bound, raw_status="closed by the ridge bound", certified=True)
        return None

    def _judge(self, task: ModelTask, passes: list[_Pass], limits: Limits, advice: KnownBounds) -> Outcome:
        """Return the outcome: bounds rounded outwards, and the status proved for the best refit."""
        best, answer, inner = passes[-1].best, passes[-1].answer, passes[-1].part.task
        boxed = best.objective if task.constraints.has_coefficient_bounds else 0.0
        rounding = SOLVER_ROUNDING * max(task.scaled.yy, boxed)
        dual, ours, raw = -math.inf, max(task.scaled.objective(task.floor) - rounding, advice.lower, 0.0), ""
        for solver_pass in passes:
            bound, raw = solver_pass.bound(boxed)
            dual = max(dual, bound - rounding)
            ours = max(ours, solver_pass.part.task.scaled.objective(solver_pass.part.task.floor) - rounding)
        if dual > best.objective:
            raise Contradiction(
                f"backend {self.name}: the lower bound {dual!r} exceeds the objective of a support, "
                f"{best.objective!r}; please report this"
            )
        vendor = 0.0 if answer.certified else (TRUST + PRIMAL) * max(inner.scaled.yy, boxed)
        doubt = vendor + answer.margin
        if ours > best.objective + doubt + rounding:
            raise Contradiction(
                f"the given lower bound {ours!r} exceeds the objective of a support, {best.objective!r}; please "
                "report this"
            )
        lower = min(max(dual, ours), best.objective)
        allowance = proof_allowance(doubt, max(inner.scaled.yy, boxed), best.objective) + rounding
        stop = answer.stop
        if best.objective - lower <= limits.gap * best.objective + allowance:
            stop = Stop.OPTIMAL
        elif stop is Stop.OPTIMAL:
            stop = Stop.GAP
            if doubt > LARGEST_ALLOWANCE * best.objective:
                raw += f"; the tolerances of the solver leave a relative error of {doubt / best.objective:.1e}"
        return Outcome(
            stop=stop,
            incumbent=best.support,
            lower=lower,
            upper=best.objective,
            nodes=sum(solver_pass.answer.nodes for solver_pass in passes),
            cuts=sum(solver_pass.answer.cuts for solver_pass in passes),
            seconds=sum(solver_pass.answer.seconds for solver_pass in passes),
            raw_status=raw,
            beta=tuple(best.beta.tolist()),
            allowance=allowance,
        )

    def _best(self, task: ModelTask, part: Reduction, answer: Answer) -> Fit:
        best = task.start
        for support in dict.fromkeys(part.make_support(support) for support in answer.supports):
            if support == best.support or not task.constraints.allows(support, task.tau):
                continue
            trial = refit_support(task.problem, support, task.constraints)
            if trial.objective < best.objective:
                best = trial
        return best


def proof_allowance(doubt: float, yy: float, objective: float) -> float:
    """Return the part of the uncertainty of a bound that may count as rounding when a result is called proved.

    Parameters
    ----------
    doubt : float
        Uncertainty of the solver's bound, or the margin of this package's trees; may be infinite.
    yy : float
        Objective of the null model.
    objective : float
        Objective of the result.

    Examples
    --------
    >>> proof_allowance(float("inf"), 1.0, 1e-6), proof_allowance(1e-12, 1.0, 1e-6)
    (1e-09, 1e-12)
    """
    return min(doubt, (TRUST + PRIMAL) * yy, LARGEST_ALLOWANCE * objective)


def _remaining_limits(limits: Limits, passes: list[_Pass]) -> Limits:
    """Return the time and the nodes that earlier passes left."""
    seconds = sum(solver_pass.answer.seconds for solver_pass in passes)
    nodes = sum(solver_pass.answer.nodes for solver_pass in passes)
    return replace(limits, seconds=limits.seconds - seconds, nodes=limits.nodes - nodes) if passes else limits


LOG_TAIL = 2000  # number of characters of a log that errors quote
EVERY_KIND = frozenset({"force", "together", "at_most", "parents", "sign", "box"})  # all kinds of side constraints
ON_SUPPORTS = EVERY_KIND - {"sign", "box"}  # side constraints on supports, not on coefficients


_IMPORTING = threading.RLock()  # two threads that import Pyomo at once may get modules that are not complete


def import_pyomo() -> None:
    """Import Pyomo, in one thread at a time, so that the models can be imported.

    Raises
    ------
    BackendUnavailable
        If Pyomo, or a package that it needs, cannot be imported; the message names the missing package.
    """
    try:
        with _IMPORTING:
            for module in ("pyomo.environ", "pyomo.core.expr", "pyomo.repn"):
                import_module(module)
    except Exception as error:  # a damaged installation may raise any exception
        missing = MISSING_MODULE.findall(str(error))
        if missing:
            package = missing[-1].partition(".")[0]
            need = package if package == "pyomo" else f"{package}, which pyomo needs,"
            words = f"{need} is not installed; run `pip install {package}`"
        else:
            words = f"pyomo cannot be imported ({str(error).partition(chr(10))[0]})"
        raise BackendUnavailable(words) from error


@cache
def probe(package: str, describe: Callable[[Any], Availability]) -> Availability:
    """Import Pyomo and a solver's package and return whether it can be used; a damaged one raises no error.

    Pyomo comes first, because it needs more packages once gurobipy is imported.

    Parameters
    ----------
    package : str
        Name of the package, under which it is also installed, together with Pyomo.
    describe : callable
        Function of the module that returns its `Availability`.

    Returns
    -------
    Availability
        Whether the package can be used.
    """
    if sys.modules.get(package) is None and find_spec(package) is None:
        return Availability(False, f"{package} is not installed", hint=f"pip install {package} pyomo")
    try:
        import_pyomo()
        with _IMPORTING:
            module = import_module(package)
    except BackendUnavailable as error:
        return Availability(False, str(error))
    except ImportError as error:
        return Availability(False, f"{package} cannot be imported ({error})", hint=f"pip install {package} pyomo")
    try:
        return describe(module)
    except Exception as error:
        return Availability(False, f"{package} does not start ({error})", str(getattr(module, "__version__", "")))


@contextmanager
def discard_output(descriptor: int) -> Iterator[None]:
    """Discard the output of a solver's library to a file descriptor of the process, which no option prevents.

    Parameters
    ----------
    descriptor : int
        Number of the file descriptor: 1 for standard output, 2 for standard error.
    """
    try:
        original = os.dup(descriptor)
    except OSError:  # it is closed, so nothing can be written to it
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, descriptor)
        yield
    finally:
        os.dup2(original, descriptor)
        os.close(original)
        os.close(nowhere)


class Poll:
    """A check of the cancel event from inside a solver's callback.

    An exception must not pass through a solver's C code, where it is printed and lost or corrupts the solve. So it is
    stored, the solver is told to stop, and `raise_stored_error` raises it after the solver has returned.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.error: BaseException | None = None

    def __call__(self) -> bool:
        """Return True if the solver has to stop."""
        if self.error is None:
            try:
                return self.limits.is_cancelled
            except BaseException as error:
                self.error = error
        return True

    def raise_stored_error(self) -> None:
        """Raise the exception that a callback stored, if any."""
        if self.error is not None:
            raise self.error


def gap_target(task: ModelTask, limits: Limits) -> float:
    """Return an absolute gap, in units of phi, equal to half the relative gap of the full objective.

    It is at least 1e-9, below which a floating-point branch-and-bound is not reliable; the allowance covers the
    difference.
    """
    least = max(task.scaled.objective(task.floor), 0.0)
    return max(0.5 * limits.gap * least / task.scaled.unit**2, 1e-9)


def failed(name: str, raw_status: str, limits: Limits | None = None) -> BackendFailed:
    """Return the error for a solver that stopped in an unexpected state with the given raw status."""
    tail = ""
    if limits is not None and limits.log is not None:
        with suppress(OSError), open(limits.log, encoding="utf-8", errors="replace") as handle:
            tail = handle.read()[-LOG_TAIL:]
    advice = "if columns are nearly collinear, use a larger gamma, scaled columns or the native backend"
    return BackendFailed(f"backend {name} failed: {raw_status}; {advice}", raw_status, tail)

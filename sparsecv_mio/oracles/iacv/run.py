"""A run of iterative approximate cross-validation: the trajectory, its errors and when to stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import ProgressHook
from sparsecv_mio.oracles.iacv.erm import Erm
from sparsecv_mio.oracles.iacv.fits import infinitesimal_jackknife, newton_step
from sparsecv_mio.oracles.iacv.steps import Solver, State, exact_step, iacv_step, start

METHODS = ("iacv", "ns", "ij", "baseline")
EXACT = "exact"


@dataclass(frozen=True)
class EarlyStop:
    """Stop when the approximated cross-validation loss has not fallen by `tolerance` (relative) in `patience` steps."""

    patience: int = 50
    tolerance: float = 0.0


@dataclass(frozen=True, eq=False)
class MethodTrace:
    """One method along the recorded iterations.

    Attributes
    ----------
    cv : (m,) array
        Cross-validation loss at the method's left-out iterates.
    err_approx : (m,) array or None
        `(1/k) sum_i ||approx_i - exact_i||_2` (the paper's (15)); None when the exact iterates were not run.
    cv_exact : (m,) array or None
        Cross-validation loss at the exact left-out iterates.
    """

    cv: FloatArray
    err_approx: FloatArray | None
    cv_exact: FloatArray | None

    @property
    def err_cv(self) -> FloatArray | None:
        """`|cv - exact cv|` (16)."""
        return None if self.cv_exact is None else np.abs(self.cv - self.cv_exact)

    @property
    def rel_err_cv(self) -> FloatArray | None:
        """The same over the exact one; 0 / 0 is 0."""
        if self.err_cv is None or self.cv_exact is None:
            return None
        whole = np.abs(self.cv_exact)
        return np.divide(self.err_cv, whole, out=np.where(self.err_cv > 0.0, np.inf, 0.0), where=whole > 0.0)


@dataclass(frozen=True, eq=False)
class IacvReport:
    """The outcome of :func:`run`.

    Attributes
    ----------
    iterations : (m,) int array
        Recorded iterations.
    traces : mapping of str to MethodTrace
        `iacv` and the baselines asked for.
    cv_exact : (m,) array or None
        Exact cross-validation loss at the recorded iterations.
    seconds : (m,) array
        Time of the full fit and the approximated left-out fits up to each recorded iteration, without evaluations.
    seconds_exact : (m,) array or None
        The same for the exact left-out fits.
    best : int
        Recorded iteration with the smallest approximated loss.
    theta, approx : (p,), (k, p) array
        Full and approximated left-out iterates: the last ones, or those of `best` after an early stop.
    stopped_early : bool
        Whether :class:`EarlyStop` ended the run.
    """

    iterations: np.ndarray
    traces: Mapping[str, MethodTrace]
    cv_exact: FloatArray | None
    seconds: FloatArray
    seconds_exact: FloatArray | None
    best: int
    theta: FloatArray
    approx: FloatArray
    stopped_early: bool

    @property
    def chosen(self) -> int:
        """Position in `iterations` of the iterate that is returned: the last, or the best after an early stop."""
        return int(np.flatnonzero(self.iterations == self.best)[0]) if self.stopped_early else len(self.iterations) - 1

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the chosen iterate, ready for JSON, of IACV and of every other method that was run."""
        at, trace = self.chosen, self.traces["iacv"]

        def pick(values: FloatArray | None) -> float | None:
            return float(values[at]) if values is not None and np.isfinite(values[at]) else None

        out: dict[str, Any] = {
            "iteration": int(self.iterations[at]),
            "cv": pick(trace.cv),
            "cv_exact": pick(self.cv_exact),
            "err_approx": pick(trace.err_approx),
            "err_cv": pick(trace.err_cv),
            "rel_err_cv": pick(trace.rel_err_cv),
            "best_iteration": self.best,
            "best_cv": float(trace.cv.min()),
            "stopped_early": self.stopped_early,
            "seconds": float(self.seconds[-1]),
            "seconds_exact": None if self.seconds_exact is None else float(self.seconds_exact[-1]),
        }
        for name, other in self.traces.items():
            if name != "iacv":
                numbers = (other.cv, other.err_approx, other.rel_err_cv)
                out[name] = dict(zip(("cv", "err_approx", "rel_err_cv"), map(pick, numbers), strict=True))
        return out


def log_spaced(iterations: int, count: int = 60) -> list[int]:
    """Return about `count` iterations from 1 to `iterations`, evenly spaced in the logarithm."""
    return sorted({int(round(t)) for t in np.geomspace(1, iterations, count)})


@dataclass
class _Recorder:
    """Collects the numbers of the recorded iterations."""

    erm: Erm
    solver: Solver
    methods: Sequence[str]
    iterations: list[int] = field(default_factory=list)
    rows: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    exact: list[float] = field(default_factory=list)
    seconds: list[tuple[float, float]] = field(default_factory=list)

    def add(self, state: State, Theta: FloatArray | None, clock: tuple[float, float]) -> float:
        """Evaluate every method at one iteration and return the approximated loss."""
        self.iterations.append(state.t)
        self.seconds.append(clock)
        if Theta is not None:
            self.exact.append(self.erm.held_out_loss(Theta))
        for name in self.methods:
            with np.errstate(over="ignore", invalid="ignore"):
                guess = self._iterates(name, state)
                error = np.nan if Theta is None else float(np.linalg.norm(guess - Theta, axis=1).mean())
                self.rows.setdefault(name, []).append((self.erm.held_out_loss(guess), error))
        return self.rows["iacv"][-1][0]

    def _iterates(self, name: str, state: State) -> FloatArray:
        if name == "iacv":
            return state.approx
        if name == "baseline":
            return np.broadcast_to(state.theta, state.offset.shape)
        one_step = newton_step if name == "ns" else infinitesimal_jackknife
        return one_step(self.erm, state.theta, proximal=self.solver.proximal)

    def report(self, state: State, best: int, stopped: bool) -> IacvReport:
        exact, clock = np.array(self.exact) if self.exact else None, np.array(self.seconds)
        columns = {name: np.array(rows).T for name, rows in self.rows.items()}
        return IacvReport(
            np.array(self.iterations, dtype=np.int64),
            {name: MethodTrace(cv, None if exact is None else off, exact) for name, (cv, off) in columns.items()},
            exact, clock[:, 0], None if exact is None else clock[:, 1], best, state.theta, state.approx, stopped,
        )  # fmt: skip


def run(
    erm: Erm,
    solver: Solver,
    iterations: int,
    *,
    record: Iterable[int] | None = None,
    methods: Sequence[str] = ("iacv",),
    early_stop: EarlyStop | None = None,
    progress: ProgressHook | None = None,
    stop: Event | None = None,
) -> IacvReport:
    """Follow the full fit and all approximated left-out fits for a number of steps, all from the origin.

    Parameters
    ----------
    erm : Erm
        Penalised risk and the rows each fit leaves out.
    solver : Solver
        :func:`gd`, :func:`sgd` or :func:`proxgd`.
    iterations : int
        Steps, at least 1.
    record : iterable of int, optional
        Iterations to evaluate; about sixty log-spaced ones unless given, every one with `early_stop`.
    methods : sequence of str
        What is evaluated: any of `iacv`, `ns` (Newton step), `ij` (infinitesimal jackknife), `baseline` (the full fit)
        and `exact`, which advances the exact left-out fits too and makes the report hold the errors (15) and (16).
        `iacv` is always among them.
    early_stop : EarlyStop, optional
        End the run by the approximated loss; the report then holds the best iterate.
    progress : callable, optional
        Called with (steps done, steps in all).
    stop : Event, optional
        Once set, the run ends after the current step; the report then ends there.

    Returns
    -------
    IacvReport
        Errors, losses and times along the trajectory.

    Raises
    ------
    BadInput
        An option does not fit, or the iterates leave the finite numbers (step too long).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.oracles.iacv import Erm, Logistic, Regularizer, default_step, gd, run
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = np.where(rng.random(200) < 1 / (1 + np.exp(-X[:, 0])), 1.0, -1.0)
    >>> erm = Erm(X, y, Logistic(), Regularizer(2.0), lam=0.1)
    >>> report = run(erm, gd(default_step(erm)), 50, methods=("baseline", "exact"))
    >>> bool(report.traces["iacv"].err_approx[-1] < 0.05 * report.traces["baseline"].err_approx[-1])
    True
    """
    names = _check(erm, solver, iterations, methods, early_stop)
    kept = set(range(1, iterations + 1) if early_stop else record if record is not None else log_spaced(iterations))
    kept.add(iterations)
    recorder = _Recorder(erm, solver, names)
    state = start(erm)
    held, best, stopped = state, (np.inf, 0), False
    Theta = np.tile(state.theta, (erm.k, 1)) if EXACT in methods else None
    clock = [0.0, 0.0]
    for t in range(iterations):
        begin = perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is too long is reported by `_finite`
            state = iacv_step(erm, solver, state)
            middle = perf_counter()
            clock[0] += middle - begin
            if Theta is not None:
                Theta = exact_step(erm, solver, t, Theta)
                clock[1] += perf_counter() - middle
        ended = stop is not None and stop.is_set()
        if ended or t + 1 in kept:
            cv = _finite(recorder.add(state, Theta, (clock[0], clock[1])), t + 1)
            floor = best[0] - (early_stop.tolerance * abs(best[0]) if early_stop and best[1] else 0.0)
            if cv < floor:
                best, held = (cv, t + 1), state
            stopped = early_stop is not None and t + 1 - best[1] >= early_stop.patience
        if progress is not None:
            progress(t + 1, iterations)
        if stopped or ended:
            break
    return recorder.report(held if stopped else state, best[1], stopped)


def _finite(cv: float, t: int) -> float:
    if not np.isfinite(cv):
        raise BadInput(f"the iterates left the finite numbers by iteration {t}: give a smaller --step")
    return cv


def _check(
    erm: Erm, solver: Solver, iterations: int, methods: Sequence[str], early_stop: EarlyStop | None
) -> tuple[str, ...]:
    unknown = set(methods) - {*METHODS, EXACT}
    if unknown:
        raise BadInput(f"unknown method {sorted(unknown)[0]!r}: choose among {', '.join((*METHODS, EXACT))}")
    if iterations < 1:
        raise BadInput(f"--iterations must be at least 1, not {iterations}")
    if early_stop is not None and early_stop.patience < 1:
        raise BadInput(f"--early-stop must be at least 1 step, not {early_stop.patience}")
    solver.check(erm)
    return ("iacv", *(name for name in METHODS[1:] if name in methods))

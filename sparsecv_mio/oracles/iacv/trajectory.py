"""Iterates of a solver on the full data and without each fold, the errors of the held-out fits, and early stopping.

The steps of the held-out fits, approximate or exact, follow equations (5), (9) and (11) of Luo, Ren and Barber (2023).

The objective is `F = g + h`. A step of the solver is a gradient step on g over a batch of rows, followed by a proximal
step on h. Gradient descent (GD) and stochastic gradient descent (SGD) have g = F and h = 0; proximal gradient descent
has g equal to the summed loss, and h = lam * pi with the penalty pi.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np

from sparsecv_mio.arrays import CACHED_NUMBERS, FloatArray, IntArray
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.oracles import SOLVERS
from sparsecv_mio.oracles.answers import ProgressHook
from sparsecv_mio.oracles.iacv.risk_without_rows import Erm, Expansion, infinitesimal_jackknife, newton_step, own_rows

__all__ = [
    "EarlyStop", "IacvReport", "METHODS", "MethodTrace", "Solver", "Iterate",
    "default_step", "exact_step", "full_step", "gd", "iacv_step", "log_spaced", "make_solver", "proxgd", "run",
    "sgd", "start",
]  # fmt: skip

DEFAULT_BATCH = 100  # the smaller of the paper's two
BLOCK_FITS = 16


@dataclass(frozen=True)
class Solver:
    """A first-order method: step lengths, batches, and the treatment of the penalty.

    :func:`gd`, :func:`sgd` and :func:`proxgd` return solvers.

    Parameters
    ----------
    alpha : float
        Step length.
    proximal : bool
        True for a proximal step on `lam * pi`, False for a step along its gradient.
    batch : int, optional
        Number of rows drawn for each step, without replacement; all rows by default.
    seed : int
        Seed of the batches; the batch of step t depends on (seed, t) only.
    scale_penalty : bool
        True to weight the penalty of a batch of K rows by K / n. The paper's (7) takes the whole penalty, so its steps
        minimise `(K/n) sum l + lam pi` on average. With the weight they minimise the objective itself.
    doubling : int, optional
        Number of steps of length alpha, followed by twice as many of alpha / 2, and so on (paper section 6.2).

    Examples
    --------
    >>> solver = Solver(1.0, doubling=2)
    >>> [solver.step(t) for t in range(1, 8)]
    [1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25]
    """

    alpha: float
    proximal: bool = False
    batch: int | None = None
    seed: int = 0
    scale_penalty: bool = False
    doubling: int | None = None

    def step(self, t: int) -> float:
        """Return the step length at iteration t = 1, 2, ..."""
        epochs = 1 if self.doubling is None else (t - 1) // self.doubling + 1
        return self.alpha / float(1 << (epochs.bit_length() - 1))

    def rows(self, t: int, n: int) -> IntArray | None:
        """Return the rows of the batch of step t, ascending, or None for all."""
        if self.batch is None or self.batch >= n:
            return None
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=t))
        return np.sort(rng.choice(n, size=self.batch, replace=False, shuffle=False)).astype(np.int64)

    def weight(self, erm: Erm) -> float:
        """Return the weight of the penalty in one step."""
        if self.scale_penalty and self.batch is not None:
            return erm.lam * min(self.batch, erm.n) / erm.n
        return erm.lam

    def check(self, erm: Erm) -> None:
        """Raise :class:`BadInput` if the penalty does not suit the method, or the batch does not suit the data."""
        if self.proximal and not erm.penalty.proximable:
            raise BadInput(f"penalty {erm.penalty.name} has no proximal map: use --solver gd or sgd")
        if not self.proximal and not erm.penalty.smooth:
            raise BadInput(f"penalty {erm.penalty.name} is not differentiable: use --solver proxgd")
        if self.batch is not None and not 1 <= self.batch <= erm.n:
            raise BadInput(f"--batch must lie between 1 and the number of rows, {erm.n}, not {self.batch}")


def gd(alpha: float) -> Solver:
    """Return gradient descent (6) with a fixed step."""
    return Solver(alpha)


def proxgd(alpha: float) -> Solver:
    """Return proximal gradient descent (8) with a fixed step."""
    return Solver(alpha, proximal=True)


def sgd(alpha: float, batch: int, seed: int = 0, *, scale_penalty: bool = False, doubling: int | None = None) -> Solver:
    """Return stochastic gradient descent (7) on batches of a fixed size.

    Parameters
    ----------
    alpha : float
        Step length.
    batch : int
        Number of rows of a batch.
    seed : int
        Seed of the batches.
    scale_penalty, doubling
        Options of :class:`Solver`.
    """
    return Solver(alpha, batch=batch, seed=seed, scale_penalty=scale_penalty, doubling=doubling)


@dataclass(frozen=True, eq=False)
class Iterate:
    """Iteration t: the full fit, and the approximate held-out fits as offsets from it.

    Attributes
    ----------
    t : int
        Number of steps taken.
    theta : (p,) array
        Iterate on all rows.
    offset : (k, p) array
        Approximate held-out iterates minus theta.
    """

    t: int
    theta: FloatArray
    offset: FloatArray

    @property
    def approx(self) -> FloatArray:
        """Approximate held-out iterates (k, p)."""
        return self.theta + self.offset


def start(erm: Erm, theta: FloatArray | None = None) -> Iterate:
    """Return state 0, in which all fits are at the same point, by default the origin."""
    first = np.zeros(erm.p) if theta is None else np.array(theta, dtype=np.float64)
    return Iterate(0, first, np.zeros((erm.k, erm.p)))


def iacv_step(erm: Erm, solver: Solver, state: Iterate) -> Iterate:
    """Return the state after one step of the full fit (5) and of all approximate held-out fits (11).

    With g_i, H_i the gradient and Hessian of row i at theta, `D_i` the offset, and G, H the sums of the g_i and H_i
    over the batch,

        theta+   = theta - a G,
        theta_i+ = theta_i - a ( G - g_i + (H - H_i) D_i )      i in the batch, no correction otherwise.

    So the offsets obey `D+ = D (I - a H) + a (g_i + H_i D_i)`, which takes one k x p by p x p product for all fits.

    Parameters
    ----------
    erm : Erm
        Problem with k held-out fits.
    solver : Solver
        Method, which determines the batch and the length of step t + 1.
    state : Iterate
        Iterates after t steps.

    Returns
    -------
    Iterate
        Iterates after t + 1 steps. A batch of m rows takes O(m p^2 + k p^2) time and O(k p + p^2) memory (the paper's
        Table 1).
    """
    t = state.t + 1
    alpha, weight, rows = solver.step(t), solver.weight(erm), solver.rows(t, erm.n)
    X, y, labels = erm.batch(rows)
    taylor = Expansion(erm.loss, X, y, state.theta)
    gradient = taylor.total()
    bent = taylor.apply(state.offset)
    if not solver.proximal and weight > 0.0:
        gradient = gradient + weight * erm.penalty.gradient(state.theta)
        bent += weight * erm.penalty.hessian_times(state.theta, state.offset)
    erm.take_out(bent, taylor.rows(own_rows(state.offset, labels)), rows)
    theta = state.theta - alpha * gradient
    offset = state.offset - alpha * bent
    if solver.proximal and weight > 0.0:
        moved = erm.penalty.prox(theta, alpha * weight)
        offset = erm.penalty.prox(theta + offset, alpha * weight) - moved
        theta = moved
    return Iterate(t, theta, offset)


def full_step(erm: Erm, solver: Solver, t: int, theta: FloatArray) -> FloatArray:
    """Return the iterate after step t + 1 of the full fit alone (5). O(m p).

    Parameters
    ----------
    erm : Erm
        Problem.
    solver : Solver
        Method, which determines the batch and the length of step t + 1.
    t : int
        Number of steps taken.
    theta : (p,) array
        Iterate after t steps.

    Returns
    -------
    (p,) array
    """
    X, y, _ = erm.batch(solver.rows(t + 1, erm.n))
    Theta = theta[None, :]
    return _descend_left_out(erm, solver, t + 1, Theta, np.asarray(erm.loss.derivative(Theta @ X.T, y) @ X))[0]


def exact_step(erm: Erm, solver: Solver, t: int, Theta: FloatArray) -> FloatArray:
    """Return the iterates after step t + 1 of every held-out fit, exactly (9), for comparison with the approximation.

    All k fits advance together, because their predictors are matrix products, formed in blocks that stay in the cache.

    Parameters
    ----------
    erm : Erm
        Problem.
    solver : Solver
        Method, with the same batches as in :func:`iacv_step`.
    t : int
        Number of steps taken.
    Theta : (k, p) array
        Held-out iterates after t steps.

    Returns
    -------
    (k, p) array
        Held-out iterates after t + 1 steps. O(k m p) time for a batch of m rows, O(k p) memory.
    """
    rows = solver.rows(t + 1, erm.n)
    X, y, fits = erm.batch(rows)
    size = max(BLOCK_FITS, CACHED_NUMBERS // max(X.shape[0], 1))
    gradient = np.empty_like(Theta)
    for lo in range(0, erm.k, size):
        hi = min(lo + size, erm.k)
        out = np.flatnonzero((fits >= lo) & (fits < hi))
        slopes = erm.loss.derivative(Theta[lo:hi] @ X.T, y)
        slopes[fits[out] - lo, out] = 0.0
        gradient[lo:hi] = slopes @ X
    return _descend_left_out(erm, solver, t + 1, Theta, gradient)


def _descend_left_out(erm: Erm, solver: Solver, t: int, Theta: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return (b, p) after a gradient step on g and a proximal step on h; `gradient` is that of the summed loss."""
    alpha, weight = solver.step(t), solver.weight(erm)
    if solver.proximal:
        moved = Theta - alpha * gradient
        return erm.penalty.prox(moved, alpha * weight) if weight > 0.0 else moved
    if weight > 0.0:
        gradient = gradient + weight * erm.penalty.gradient(Theta)
    return np.asarray(Theta - alpha * gradient)


def default_step(erm: Erm, *, proximal: bool = False, batch: int | None = None, iterations: int = 100) -> float:
    """Return the step length `1 / L`, with L a bound on the curvature of g over any batch.

    Without such a bound (Poisson loss), the step begins at the inverse of the curvature at the origin. It is halved
    until each of `iterations` full steps lowers the objective.

    Parameters
    ----------
    erm : Erm
        Problem.
    proximal : bool
        True if the penalty is treated by a proximal step.
    batch : int, optional
        Batch size; all rows by default.
    iterations : int
        Number of steps of the run.

    Returns
    -------
    float
        Step length.

    Raises
    ------
    BadInput
        If the curvature is zero (all columns are zero), or no step descends.
    """
    smooth = 0.0 if proximal or erm.lam == 0.0 else erm.lam * erm.penalty.bound()
    if np.isfinite(erm.loss.smoothness):
        bound = erm.loss.smoothness * _largest_square(erm.X, batch) + smooth
        if bound <= 0.0:
            raise BadInput("all columns are zero: there is nothing to fit")
        return 1.0 / bound
    curvature = float(np.linalg.eigvalsh(Expansion(erm.loss, erm.X, erm.y, np.zeros(erm.p)).hessian())[-1]) + smooth
    alpha = 1.0 / curvature
    for _ in range(60):
        if _is_monotone_descent(erm, Solver(alpha, proximal=proximal), iterations):
            return alpha
        alpha /= 2.0
    raise BadInput("no step length reduces the objective; rescale the columns with --scale variance")


def _largest_square(X: FloatArray, rows: int | None) -> float:
    """Return a bound on `||X_B v||^2` over unit vectors v and batches B of `rows` rows, by default all rows."""
    gram = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
    largest = float(np.linalg.eigvalsh(gram)[-1])
    if rows is not None and rows < X.shape[0]:
        lengths = np.einsum("ij,ij->i", X, X)
        largest = min(largest, float(np.partition(lengths, -rows)[-rows:].sum()))
    return max(largest, 0.0)


def _is_monotone_descent(erm: Erm, solver: Solver, iterations: int) -> bool:
    theta, value = np.zeros(erm.p), erm.objective(np.zeros(erm.p))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(iterations):
            theta = full_step(erm, solver, t, theta)
            new = erm.objective(theta)
            if not new <= value + 1e-12 * abs(value):
                return False
            value = new
    return True


def make_solver(
    erm: Erm,
    kind: str,
    *,
    iterations: int,
    step: float | None = None,
    batch: int | None = None,
    doubling: int | None = None,
    seed: int = 0,
    scale_penalty: bool = False,
) -> Solver:
    """Return a method with its default step, one over the Lipschitz constant of the gradient.

    Parameters
    ----------
    erm : Erm
        Problem.
    kind : {"gd", "sgd", "proxgd"}
        Method.
    iterations : int
        Number of steps of the run, used if the loss has no Lipschitz constant.
    step : float, optional
        Step length; by default one over the Lipschitz constant.
    batch : int, optional
        Number of rows per step of `sgd`; by default 100, or all rows if fewer.
    doubling : int, optional
        Epoch doubling: number of steps at the first length, followed by twice as many at half of it, and so on.
    seed : int
        Seed of the batches.
    scale_penalty : bool
        Option of :class:`~sparsecv_mio.oracles.iacv.Solver`.

    Returns
    -------
    Solver
        Method, checked against the problem.

    Raises
    ------
    BadInput
        If an option does not suit the method, the penalty or the data.
    """
    kind = match_keyword(kind, SOLVERS, "--solver")
    if batch is not None and kind != "sgd":
        raise BadInput("--batch: requires --solver sgd, because gd and proxgd use all rows")
    if step is not None and not (np.isfinite(step) and step > 0.0):
        raise BadInput(f"--step must be a number > 0, not {step}")
    if doubling is not None and doubling < 1:
        raise BadInput(f"--doubling must be at least 1 step, not {doubling}")
    if seed < 0:
        raise BadInput(f"--seed must be 0 or more, not {seed}")
    size = min(DEFAULT_BATCH, erm.n) if kind == "sgd" and batch is None else batch
    bare = Solver(1.0, kind == "proxgd", size, seed, scale_penalty, doubling)
    bare.check(erm)
    return replace(bare, alpha=step or default_step(erm, proximal=bare.proximal, batch=size, iterations=iterations))


METHODS = ("iacv", "ns", "ij", "baseline")
EXACT = "exact"


@dataclass(frozen=True)
class EarlyStop:
    """Rule that stops when the approximate loss has not fallen by `tolerance` (relative) in `patience` steps."""

    patience: int = 50
    tolerance: float = 0.0

    def to_beat(self, least: float, iteration: int) -> float:
        """Return the loss below which a step is progress: `least`, minus the tolerance unless it is of iteration 0."""
        return least - (self.tolerance * abs(least) if iteration else 0.0)


@dataclass(frozen=True, eq=False)
class MethodTrace:
    """One method along the recorded iterations.

    Attributes
    ----------
    cv : (m,) array
        Cross-validation loss at the method's held-out iterates.
    err_approx : (m,) array or None
        `(1/k) sum_i ||approx_i - exact_i||_2` (the paper's (15)); None if the exact iterates were not computed.
    cv_exact : (m,) array or None
        Cross-validation loss at the exact held-out iterates.
    """

    cv: FloatArray
    err_approx: FloatArray | None
    cv_exact: FloatArray | None

    @property
    def err_cv(self) -> FloatArray | None:
        """Absolute error `|cv - exact cv|` (16)."""
        return None if self.cv_exact is None else np.abs(self.cv - self.cv_exact)

    @property
    def rel_err_cv(self) -> FloatArray | None:
        """The error (16) relative to the exact loss; 0 / 0 is 0."""
        if self.err_cv is None or self.cv_exact is None:
            return None
        whole = np.abs(self.cv_exact)
        return np.divide(self.err_cv, whole, out=np.where(self.err_cv > 0.0, np.inf, 0.0), where=whole > 0.0)


@dataclass(frozen=True, eq=False)
class IacvReport:
    """The result of :func:`run`.

    Attributes
    ----------
    iterations : (m,) int array
        Recorded iterations.
    traces : mapping of str to MethodTrace
        Traces of `iacv` and of the requested baselines.
    cv_exact : (m,) array or None
        Exact cross-validation loss at the recorded iterations.
    seconds : (m,) array
        Time of the full fit and the approximate held-out fits up to each recorded iteration, without evaluations.
    seconds_exact : (m,) array or None
        Time of the exact held-out fits up to each recorded iteration.
    best : int
        Recorded iteration with the smallest approximate loss.
    theta, approx : (p,), (k, p) array
        Full and approximate held-out iterates: the last ones, or those of `best` after an early stop.
    stopped_early : bool
        True if :class:`EarlyStop` ended the run.
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
        """Position in `iterations` of the returned iterate: the last, or the best after an early stop."""
        return int(np.flatnonzero(self.iterations == self.best)[0]) if self.stopped_early else len(self.iterations) - 1

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the chosen iterate for IACV and every other method of the run, as JSON types."""
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
        for name, trace_of in self.traces.items():
            if name != "iacv":
                numbers = (trace_of.cv, trace_of.err_approx, trace_of.rel_err_cv)
                out[name] = dict(zip(("cv", "err_approx", "rel_err_cv"), map(pick, numbers), strict=True))
        return out


def log_spaced(iterations: int, count: int = 60) -> list[int]:
    """Return about `count` iterations from 1 to `iterations`, evenly spaced in the logarithm."""
    return sorted({int(round(t)) for t in np.geomspace(1, iterations, count)})


@dataclass
class _Recorder:
    """The collected numbers of the recorded iterations."""

    erm: Erm
    solver: Solver
    methods: Sequence[str]
    iterations: list[int] = field(default_factory=list)
    rows: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    exact: list[float] = field(default_factory=list)
    seconds: list[tuple[float, float]] = field(default_factory=list)

    def add(self, state: Iterate, Theta: FloatArray | None, clock: tuple[float, float]) -> float:
        """Evaluate every method at one iteration and return the approximate loss."""
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

    def _iterates(self, name: str, state: Iterate) -> FloatArray:
        if name == "iacv":
            return state.approx
        if name == "baseline":
            return np.broadcast_to(state.theta, state.offset.shape)
        one_step = newton_step if name == "ns" else infinitesimal_jackknife
        return one_step(self.erm, state.theta, proximal=self.solver.proximal)

    def report(self, state: Iterate, best: int, stopped: bool) -> IacvReport:
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
    """Return a report of the full fit and all approximate held-out fits over a number of steps from the origin.

    Parameters
    ----------
    erm : Erm
        Penalised risk and the held-out rows of each fit.
    solver : Solver
        Method: :func:`gd`, :func:`sgd` or :func:`proxgd`.
    iterations : int
        Number of steps, at least 1.
    record : iterable of int, optional
        Iterations to evaluate. The default is about sixty log-spaced iterations, or all of them with `early_stop`.
    methods : sequence of str
        Methods to evaluate: any of `iacv`, `ns` (Newton step), `ij` (infinitesimal jackknife), `baseline` (the full
        fit) and `exact`. With `exact` the exact held-out fits are computed as well, and the report contains the errors
        (15) and (16). `iacv` is always included.
    early_stop : EarlyStop, optional
        Rule that ends the run by the approximate loss; the report then contains the best iterate.
    progress : callable, optional
        Function called with (steps done, total steps).
    stop : Event, optional
        Event that ends the run and its report after the current step, once it is set.

    Returns
    -------
    IacvReport
        Errors, losses and times along the trajectory.

    Raises
    ------
    BadInput
        If an option is not valid, or the iterates are not finite (the step is too long).

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
    names = _check_arguments(erm, solver, iterations, methods, early_stop)
    recorded = set(range(1, iterations + 1) if early_stop else record if record is not None else log_spaced(iterations))
    recorded.add(iterations)
    recorder = _Recorder(erm, solver, names)
    state = start(erm)
    best_state, best, stopped = state, (np.inf, 0), False
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
        if ended or t + 1 in recorded:
            cv = _finite(recorder.add(state, Theta, (clock[0], clock[1])), t + 1)
            if cv < (early_stop.to_beat(*best) if early_stop is not None else best[0]):
                best, best_state = (cv, t + 1), state
            stopped = early_stop is not None and t + 1 - best[1] >= early_stop.patience
        if progress is not None:
            progress(t + 1, iterations)
        if stopped or ended:
            break
    return recorder.report(best_state if stopped else state, best[1], stopped)


def _finite(cv: float, t: int) -> float:
    if not np.isfinite(cv):
        raise BadInput(f"the iterates are not finite after iteration {t}; give a smaller --step")
    return cv


def _check_arguments(
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

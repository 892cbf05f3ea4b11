"""Certified cross-validation over a grid of (gamma, tau): rounds of growing effort until the certificate closes."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.certificate.record import PathRecord, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends.native.path import PathResult, solve_path
from sparsecv_mio.problem.accumulate import Moments, row_moments, training_moments
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.search.allfolds import Engine, solve_all_folds
from sparsecv_mio.search.allfolds.full import FullData
from sparsecv_mio.search.cells import CellTable, PairBounds, pair_bounds
from sparsecv_mio.search.fold_job import FoldJob

FIRST_EFFORT, EFFORT_GROWTH = 1 << 13, 8
MANY_FOLDS = 1000  # a limit may leave the rest of a round unvisited
MANY_CELLS, REPORT_SECONDS = 100_000, 0.2  # summing so many cells after every fold would cost more than the folds
FULL_SHARE = 0.1  # of the time limit, for the first pass on all rows


@dataclass(frozen=True)
class Progress:
    """How far a run is: final cells of all, nodes, bounds of the best CV error (per row, file units), seconds."""

    done: int
    total: int
    nodes: int
    lower: float
    upper: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Grid:
    """What was asked: gammas and taus in the order of the request, without repeats."""

    gammas: FloatArray
    taus: NDArray[np.int64]

    @classmethod
    def of(cls, gammas: Sequence[float], taus: Sequence[int], p: int) -> Grid:
        """Check and freeze the grid.

        Raises
        ------
        BadInput
            For an empty grid, a gamma outside 1e-300 .. 1e300, or a tau outside 0..p.
        """
        if len(gammas) == 0 or len(taus) == 0:
            raise BadInput("the grid is empty: give at least one gamma and one tau")
        for gamma in gammas:
            if not 1e-300 <= gamma <= 1e300:
                raise BadInput(f"gamma {gamma:g} is out of range: it must be positive and finite (1e-300 to 1e300)")
        for tau in taus:
            if not 0 <= tau <= p:
                raise BadInput(f"tau {tau} is out of range: use 0 to {p}, the number of features")
        unique = sorted(set(float(g) for g in gammas)), sorted(set(int(t) for t in taus))
        return cls(np.array(unique[0]), np.array(unique[1], dtype=np.int64))


class Clock:
    """Time limit and stop request in one question."""

    def __init__(self, time_limit: float | None, stop: threading.Event | None) -> None:
        self.began = time.monotonic()
        self.deadline = self.began + time_limit if time_limit is not None else np.inf
        self.stop = stop or threading.Event()

    def expired(self) -> bool:
        """Whether the run should end with what it holds."""
        return self.stop.is_set() or time.monotonic() > self.deadline

    def share_spent(self, share: float) -> bool:
        """Whether a share of the time limit is gone."""
        return self.stop.is_set() or time.monotonic() > self.began + share * (self.deadline - self.began)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.began


class CrossValidation:
    """A run as explicit state: `begin`, then `round` until `finished`; every moment holds a valid certificate.

    A round gives every open cell the same effort, counted in nodes; the next one eight times as much. With a gap
    above 0, pairs whose certified lower bound already exceeds the best upper bound by the gap are left as they are.
    `at_safe_point` is called whenever the state may be stored: no cell is half-written then.
    """

    name = "rounds"

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        grid: Grid,
        gap: float,
        clock: Clock,
        threads: int,
        progress: Callable[[Progress], None] | None,
        engine: Engine = Engine.AUTO,
    ) -> None:
        self.data, self.folds, self.grid, self.gap, self.engine = data, folds, grid, gap, engine
        self.decided_by: dict[str, int] = {}
        self.clock, self.threads, self.progress = clock, threads, progress
        self.cells = CellTable.empty(len(grid.gammas), len(grid.taus), folds.k)
        self.full: list[PathResult] = []
        self.all_rows: Moments | None = None
        self.nodes = 0
        self.effort = FIRST_EFFORT
        self.passed = np.zeros(len(grid.gammas), dtype=bool)  # gammas that one tree for all folds has seen
        self.in_round: NDArray[np.bool_] | None = None  # cells of the present round
        self.rest: list[int] = []  # folds it has yet to visit
        self.at_safe_point: Callable[[], None] | None = None
        self._reported = -np.inf
        self.watch: Callable[[], None] | None = None  # called with every report of progress

    def state(self) -> dict[str, NDArray[Any]]:
        """Where the run stands, beside the cells: see :mod:`sparsecv_mio.search.checkpoint`."""
        wanted = self.in_round if self.in_round is not None else np.zeros((0, 0, 0), dtype=bool)
        return {
            "nodes": np.array(self.nodes),
            "effort": np.array(self.effort),
            "passed": self.passed,
            "in_round": wanted,
            "rest": np.array(self.rest, dtype=np.int64),
            "decided_by": np.array(json.dumps(self.decided_by)),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go to where `state` was taken."""
        self.nodes, self.effort = int(state["nodes"]), int(state["effort"])
        self.passed[:] = state["passed"]
        self.in_round = state["in_round"] if state["in_round"].size else None
        self.rest = state["rest"].tolist()
        self.decided_by = json.loads(str(state["decided_by"]))

    def prepare(self) -> None:
        """What a resumed run computes again."""
        self.begin()

    def _safe(self) -> None:
        if self.at_safe_point is not None and not self.clock.expired():
            self.at_safe_point()

    def begin(self) -> None:
        """Best subsets on all rows, for every gamma: first supports for the folds and the training-loss bound."""
        self.all_rows = row_moments(self.data, slice(0, self.data.n))
        problem = self.all_rows.problem(self.data, 1.0)
        starts: list[NDArray[np.int64]] = []
        found: dict[int, PathResult] = {}

        def first_pass_over() -> bool:
            return self.clock.share_spent(FULL_SHARE)

        for g in np.argsort(-self.grid.gammas, kind="stable").tolist():
            here = problem.with_gamma(float(self.grid.gammas[g]))
            found[g] = solve_path(
                here, self.grid.taus.tolist(), starts=starts, effort=self.effort, expired=first_pass_over
            )
            starts = [cell.support for cell in found[g].cells.values()]
            self.nodes += found[g].nodes
        self.full = [found[g] for g in range(len(self.grid.gammas))]

    def all_folds(self) -> None:
        """Decide what one tree can decide for all folds at once; the rest is left to the rounds."""
        assert self.all_rows is not None
        if self.engine is Engine.PER_FOLD:
            return
        full = FullData(self.data, self.folds, self.all_rows, self.grid.taus, self.cells, self.threads)
        for g in np.argsort(-self.grid.gammas, kind="stable").tolist():
            if self.passed[g]:
                continue
            nodes, decided = solve_all_folds(
                full, g, float(self.grid.gammas[g]), self.full[g], self.engine, self.clock.expired
            )
            self.nodes += nodes
            for name, count in decided.items():
                self.decided_by[name] = self.decided_by.get(name, 0) + count
            self.passed[g] = True
            self._report()
            self._safe()

    def bounds(self) -> PairBounds:
        """Return the sums over folds."""
        return pair_bounds(self.cells, self.grid.gammas, self.grid.taus)

    def wanted(self) -> NDArray[np.bool_]:
        """(G, T, K): the cells worth more work."""
        open_cells = ~self.cells.final
        if self.gap > 0.0:
            now = self.bounds()
            if np.isfinite(now.ceiling):
                hopeless = now.lower >= now.ceiling * (1.0 - self.gap)
                hopeless[now.best] = False
                open_cells &= ~hopeless[:, :, None]
        return open_cells

    def engines(self) -> str:
        """Which engine decided how many cells, in words."""
        alone = int(self.cells.decided.sum()) - sum(self.decided_by.values())
        parts = [f"{name} {count}" for name, count in self.decided_by.items()]
        return ", ".join(parts + [f"per-fold {alone}"]) if parts else "per-fold"

    def solved_by_branching(self) -> int:
        """Cells (gamma, tau, fold) that a tree decided."""
        return int((self.cells.decided & self.cells.branched).sum())

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do."""
        if self.rest and not self.clock.expired():
            return False
        if self.gap > 0.0 and self.bounds().proved(self.gap):
            return True
        return self.clock.expired() or not self.wanted().any()

    def step(self) -> None:
        """One round."""
        self.round()

    def round(self) -> None:
        """Give every cell that is worth it the effort of this round, folds on threads."""
        if self.in_round is None:
            self.in_round = self.wanted()
            self.rest = np.flatnonzero(self.in_round.any(axis=(0, 1))).tolist()
        wanted = self.in_round
        job = FoldJob(
            self.data, self.folds, self.grid.gammas, self.grid.taus, self.full, self.cells, self.effort,
            self.clock.expired,
        )  # fmt: skip
        while self.rest:
            # moments are made per visit: parts only where somebody stores the state between them
            size = max(8 * self.threads, self.folds.k // 16) if self.at_safe_point is not None else len(self.rest)
            which = self.rest[:size]
            for nodes in run_folds(
                training_moments(self.data, self.folds, which),
                lambda fold, moments: job.run(fold, moments, wanted[:, :, fold]),
                min(self.threads, len(which)),
            ):
                self.nodes += nodes
                self._report()
                if self.at_safe_point is None and self.folds.k > MANY_FOLDS and self.clock.expired():
                    break
            del self.rest[:size]
            if self.rest:
                self._safe()
        self.in_round = None
        self.effort *= EFFORT_GROWTH
        self._safe()

    def _report(self) -> None:
        if self.watch is not None:
            self.watch()
        many = self.cells.final.size > MANY_CELLS
        if self.progress is None or (many and time.monotonic() < self._reported + REPORT_SECONDS):
            return
        self._reported = time.monotonic()
        now = self.bounds()
        per_row = self.data.y_unit**2 / max(int((self.folds.labels >= 0).sum()), 1)
        self.progress(
            Progress(
                done=int(self.cells.final.sum()),
                total=int(self.cells.final.size),
                nodes=self.nodes,
                lower=now.floor * per_row,
                upper=now.ceiling * per_row,
                seconds=self.clock.seconds,
            )
        )


def run_folds(
    source: Iterator[tuple[int, Moments]], work: Callable[[int, Moments], int], threads: int
) -> Iterator[int]:
    """Run `work` over folds on threads, at most two folds ahead of each thread; yields the nodes of each.

    BLAS is held to one thread: the folds are the parallelism.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        if threads <= 1:
            for fold, moments in source:
                yield work(fold, moments)
            return
        with ThreadPoolExecutor(threads) as pool:
            flying: set[Future[int]] = set()
            for fold, moments in source:
                flying.add(pool.submit(work, fold, moments))
                if len(flying) >= 2 * threads:
                    done, flying = wait(flying, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            for future in flying:
                yield future.result()


def cross_validate(
    dataset: Dataset,
    folds: FoldPlan,
    *,
    gammas: Sequence[float],
    taus: Sequence[int],
    scale: str = "length",
    intercept: str = "fold",
    gap: float = 1e-4,
    one_se: bool = False,
    time_limit: float | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    engine: str = "auto",
    method: str = "rounds",
    backend: str = "native",
    mio_budget: int | None = None,
    refine: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
) -> Record:
    """Find the CV-optimal (tau, gamma) of a grid and prove it.

    Minimises `h(gamma, tau) = (1/m) sum_j sum_{i in N_j} (y_i - x_i' b^(-N_j)(gamma, tau))^2` over the grid, where
    `b^(-N)` solves `min ||y - Xb||^2 + (gamma/2)||b||^2, ||b||_0 <= tau` on the rows outside N (theory section 0).

    Parameters
    ----------
    dataset : Dataset
    folds : FoldPlan
    gammas, taus : sequences
        The grid; gamma > 0, 0 <= tau <= p.
    scale : {"length", "variance", "none"}
    intercept : {"fold", "global", "none"}
    gap : float
        Relative gap at which the certificate counts as closed; 0 decides every cell.
    one_se : bool
        Apply the one-standard-error rule and refit at its pair.
    time_limit : float, optional
        Seconds; the best answer so far is returned with valid bounds.
    threads : int, optional
        Folds solved at once; all cores by default.
    progress : callable, optional
        Called with a :class:`Progress` after each fold.
    stop : threading.Event, optional
        Set it to end the run with what it holds.
    engine : {"auto", "enumerate", "shared", "per-fold"}
        How folds share work (:mod:`sparsecv_mio.search.allfolds`); the answer is the same.
    method : {"rounds", "joint", "algorithm1", "grid", "descent"}
        `rounds` shares work between taus and folds; `algorithm1` is the paper's, one MIO at a time, and `joint` the
        same over all pairs in a better order (:mod:`sparsecv_mio.search.joint`); `grid` is the baseline; `descent`
        leaves the grid of gammas, see :func:`sparsecv_mio.search.descent.descend`.
    backend : str
        Who solves the MIOs of `joint`, `algorithm1` and `grid`, see :data:`sparsecv_mio.formulation.backends.BACKENDS`.
    mio_budget : int, optional
        Most MIOs those three may solve.
    refine : bool
        Improve gamma around the reported pair too; stored under `refined`, the answer stays the grid's.
    checkpoint, resume : path, optional
        Store the run there now and then; carry on a run that was stored (:mod:`sparsecv_mio.search.checkpoint`).
    trace : path, optional
        Write the course of the bounds there (:mod:`sparsecv_mio.search.trace`).

    Returns
    -------
    Record
        Answer and certificate, `lower <= min h <= h(reported pair) <= upper`.

    Raises
    ------
    BadInput
        If the grid or an option is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=40))
    >>> record = cross_validate(data, make_folds("5", data), gammas=[0.01, 0.1], taus=range(1, 6))
    >>> record.status, record.tau, record.support
    ('proved', 2, ('x1', 'x3'))
    """
    from sparsecv_mio.search.answer import build_record
    from sparsecv_mio.search.last_answer import score_one_pair
    from sparsecv_mio.search.trace import Trace

    check_options(dataset, folds, gap, one_se, time_limit, threads)
    if engine not in list(Engine):
        raise BadInput(f"engine {engine!r} is unknown: use one of {', '.join(Engine)}")
    how = Engine(engine)
    _check_method(method, backend, mio_budget)
    if method == "descent":
        if checkpoint is not None or resume is not None or trace is not None:
            raise BadInput("a descent has no checkpoints and no trace: use another method")
        from sparsecv_mio.search.descent import descend

        return descend(
            dataset, folds, gammas=gammas, taus=taus, scale=scale, intercept=intercept, gap=gap, one_se=one_se,
            time_limit=time_limit, threads=threads, progress=progress, stop=stop,
        )  # fmt: skip
    grid = Grid.of(gammas, taus, dataset.p)
    clock = Clock(time_limit, stop)
    data = standardize(dataset, scale, intercept)
    workers = threads or os.cpu_count() or 1
    run: CrossValidation
    if method == "rounds":
        run = CrossValidation(data, folds, grid, gap, clock, workers, progress, how)
    else:
        from sparsecv_mio.search.methods import METHODS

        run = METHODS[method](data, folds, grid, gap, clock, workers, progress, backend, mio_budget)
    watcher = Trace(trace) if trace is not None else None
    if watcher is not None:
        run.watch = lambda: watcher.visit(run)
    carry_out(run, checkpoint, resume)
    if watcher is not None:
        watcher.close(run)
    score_one_pair(run)
    record = build_record(run, one_se=one_se, time_limit=time_limit, threads=threads)
    if refine:
        from sparsecv_mio.search.descent import refined

        record = replace(record, refined=refined(record, run))
    return record


def carry_out(
    run: CrossValidation, checkpoint: str | os.PathLike[str] | None, resume: str | os.PathLike[str] | None
) -> None:
    """Run from the start, or from where `resume` left off, to the end; store the state in `checkpoint` on the way."""
    from sparsecv_mio.search import checkpoint as store

    if resume is not None:
        store.resume(run, resume)
    else:
        run.begin()
    keeper = store.Checkpoint(checkpoint) if checkpoint is not None else None
    if keeper is not None:
        keeper.write(run)
        run.at_safe_point = lambda: keeper.visit(run)
    run.all_folds()
    while not run.finished:
        run.step()
    if keeper is not None and not run.clock.expired():
        keeper.write(run)


def best_subsets(
    dataset: Dataset,
    *,
    gammas: Sequence[float],
    taus: Sequence[int],
    scale: str = "length",
    intercept: str = "fold",
    gap: float = 1e-7,
    time_limit: float | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> PathRecord:
    """Best subset of every size on all rows, each with its certified interval.

    Parameters and errors as for :func:`cross_validate`; `gap` is the relative gap at which a fit counts as proved.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> [row.support for row in best_subsets(data, gammas=[0.1], taus=[1, 2]).path]
    [('x0',), ('x0', 'x1')]
    """
    from sparsecv_mio.search.answer import build_path

    check_options(dataset, None, gap, False, time_limit, threads)
    grid = Grid.of(gammas, taus, dataset.p)
    return build_path(
        standardize(dataset, scale, intercept), grid, gap, Clock(time_limit, stop), threads, time_limit, progress
    )


def _check_method(method: str, backend: str, mio_budget: int | None) -> None:
    from sparsecv_mio.formulation.backends import BACKENDS
    from sparsecv_mio.search.methods import METHODS

    words = ("rounds", *METHODS, "descent")
    if method not in words:
        raise BadInput(f"method {method!r} is unknown: use one of {', '.join(words)}")
    if backend not in BACKENDS:
        raise BadInput(f"backend {backend!r} is unknown: use one of {', '.join(BACKENDS)}")
    if method not in METHODS and backend != "native":
        raise BadInput(f"backend {backend}: method {method} is the native engine's; use {', '.join(METHODS)}")
    if mio_budget is not None and (method not in METHODS or mio_budget < 0):
        raise BadInput("an MIO budget is at least 0 and for the methods that count MIOs: " + ", ".join(METHODS))


def check_options(
    dataset: Dataset,
    folds: FoldPlan | None,
    gap: float,
    one_se: bool,
    time_limit: float | None,
    threads: int | None,
) -> None:
    """Raise `BadInput` for an option out of range."""
    if not 0.0 <= gap < 1.0:
        raise BadInput(f"gap {gap:g} is out of range: use 0 <= gap < 1")
    if time_limit is not None and not time_limit > 0.0:
        raise BadInput(f"time limit {time_limit:g} is out of range: give seconds above 0")
    if threads is not None and threads < 1:
        raise BadInput(f"threads {threads} is out of range: use at least 1")
    if folds is not None:
        if folds.n != dataset.n:
            raise BadInput(f"the fold plan is for {folds.n} rows, the data have {dataset.n}")
        if one_se and folds.k < 2:
            raise BadInput("the one-standard-error rule needs at least two scored folds")

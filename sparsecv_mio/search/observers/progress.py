"""How far a run is: what a live view draws."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.search.state.region import proved_ends

if TYPE_CHECKING:
    from sparsecv_mio.search.state.deadline import Deadline
    from sparsecv_mio.search.state.state import SearchState


SHARE = 5.0  # reports may take one part in so many of the time
COMPILING = "compiling kernels (first use)"
FIRST_USE = "compiling kernels, once on this machine: up to a minute or two; `sparsecv warmup` does it ahead"


@dataclass(frozen=True)
class TauProgress:
    """One tau, all gammas: cells that are final, that need no work any more, and all; the interval of its best h.

    `cv_error` is the least CV error found, inf where there is none yet; an `estimate` where not every fold is decided.
    """

    tau: int
    final: int
    pruned: int
    total: int
    lower: float
    upper: float
    cv_error: float = np.inf
    estimate: bool = True


@dataclass(frozen=True)
class Progress:
    """How far a run is: final cells of all, nodes, bounds of the best CV error (per row, file units), seconds.

    `best` is the pair (gamma, tau) that would be reported now, with its `cv_error` (an `estimate` where not every fold
    of it is decided); `pruned` counts the cells that a certified bound of their pair has made needless, `taus` says it
    tau by tau, `stage` says in words what is being done. `proved`: the largest tau up to which, and the least gamma
    from which on, the best pair is proved; None where it is nowhere.
    """

    done: int
    total: int
    nodes: int
    lower: float
    upper: float
    seconds: float
    mios: int = 0
    pruned: int = 0
    best: tuple[float, int] | None = None
    taus: tuple[TauProgress, ...] = ()
    stage: str = ""
    proved: tuple[int | None, float | None] | None = None
    cv_error: float = np.inf
    estimate: bool = True


def progress_of(state: SearchState, mios: int, stage: str = "") -> Progress:
    """Return how far a run over a grid is. O(G T K).

    Parameters
    ----------
    state : SearchState
    mios : int
        Solved so far.
    stage : str
        What is being done, in words.
    """
    now, cells, context = state.bounds(), state.cells, state.context
    grid, unit = context.grid, context.per_row
    final = cells.final.sum(axis=(0, 2))
    pruned = np.zeros_like(final)
    if np.isfinite(now.ceiling):
        out = now.lower >= now.ceiling * (1.0 - context.gap)
        out[now.best] = False
        pruned = (~cells.final & out[:, :, None]).sum(axis=(0, 2))
    lower, upper = now.lower.min(axis=0) * unit, now.upper.min(axis=0) * unit
    each = len(grid.gammas) * context.folds.k
    found, open_pairs = now.found * unit, now.decided < context.folds.k
    at, columns = found.argmin(axis=0), np.arange(len(grid.taus))
    errors, estimates = found[at, columns].tolist(), open_pairs[at, columns].tolist()
    numbers = zip(lower.tolist(), upper.tolist(), errors, estimates, strict=True)
    rows = zip(grid.taus.tolist(), final.tolist(), pruned.tolist(), numbers, strict=True)
    g, t = now.reported_pair(context.gap, grid.gammas, grid.taus)
    return Progress(
        done=int(final.sum()),
        total=int(cells.final.size),
        nodes=state.counts.nodes,
        lower=now.floor * unit,
        upper=now.ceiling * unit,
        seconds=context.deadline.seconds,
        mios=mios,
        pruned=int(pruned.sum()),
        best=(float(grid.gammas[g]), int(grid.taus[t])),
        taus=tuple(TauProgress(tau, done, out, each, *known) for tau, done, out, known in rows),
        stage=stage,
        proved=proved_ends(now, context.gap, grid.gammas, grid.taus),
        cv_error=float(found[g, t]),
        estimate=bool(open_pairs[g, t]),
    )


class Reporter:
    """Hands reports of a method on; where one takes long to make, less often.

    Parameters
    ----------
    progress : callable
        Called with a :class:`Progress`.
    make : callable
        Returns the progress of the method.
    """

    def __init__(self, progress: Callable[[Progress], None], make: Callable[[], Progress]) -> None:
        self.progress, self.make = progress, make
        self.last: Progress | None = None
        self._due, self._reported = -np.inf, 0.0

    def visit(self) -> None:
        """Report, unless reports would take more than one part in `SHARE` of the time."""
        if time.monotonic() >= self._due:
            self.report()

    def report(self) -> None:
        """Report, whenever the last one was."""
        begin = time.monotonic()
        self.last = self.make()
        self.progress(self.last)
        now = self._reported = time.monotonic()
        self._due = now + SHARE * (now - begin)

    def say(self, phase: str) -> None:
        """Report what is being done now beside the last numbers, which costs nothing."""
        if self.last is None:
            self.report()
            return
        seconds = self.last.seconds + time.monotonic() - self._reported
        self.progress(replace(self.last, stage=phase, seconds=seconds))


class Reports:
    """Hands reports on, and says in between that kernels are being compiled."""

    def __init__(self, progress: Callable[[Progress], None], deadline: Deadline) -> None:
        self.progress, self.deadline = progress, deadline
        self.last = Progress(0, 0, 0, 0.0, np.inf, 0.0)

    def __call__(self, state: Progress) -> None:
        """Take a report."""
        self.last = state
        self.progress(state)

    def compiling(self) -> None:
        """Say that a kernel is not in the cache and is being compiled."""
        self.progress(replace(self.last, seconds=self.deadline.seconds, stage=COMPILING))


@contextmanager
def reports(
    progress: Callable[[Progress], None] | None, deadline: Deadline
) -> Iterator[Callable[[Progress], None] | None]:
    """Hand reports on to `progress`, word of compiling among them; without `progress` that is a warning."""
    from sparsecv_mio.kernels.compilation import watched

    reporter = None if progress is None else Reports(progress, deadline)
    with watched(_warn_once if reporter is None else reporter.compiling, deadline.compiling):
        yield reporter


_warned = threading.Event()


def _warn_once() -> None:
    """Say on standard error that kernels are being compiled, once in a process; filters of warnings silence it."""
    if not _warned.is_set():
        _warned.set()
        with suppress(Warning):  # where warnings are errors, this one is none
            warnings.warn_explicit(FIRST_USE, UserWarning, "sparsecv_mio", 1)


def staged(report: Callable[[Progress], None] | None, stage: str) -> Callable[[Progress], None] | None:
    """Return what hands reports on, with the part of a larger run that they are of.

    Parameters
    ----------
    report : callable or None
    stage : str
        That part, in words.
    """
    if report is None:
        return None
    return lambda state: report(replace(state, stage=f"{stage}, {state.stage}" if state.stage else stage))

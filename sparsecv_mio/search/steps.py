"""Steps (units of work) of a search, and the findings (bounds and supports) of steps.

A source of bounds proposes a step. The step has copies of all parts of the state that it reads. The findings of a step
depend only on the step and the problems, so they are the same in any thread or process. Steps that continue a tree of
an earlier step are the exception.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.trees.subsets import BestSubsets
from sparsecv_mio.words import NATIVE

FULL_DATA = (-1,)  # instead of folds: the full data
ALL_FOLDS: tuple[int, ...] = ()  # every fold at once
ARRAYS_OF_FOLDS: dict[str, Any] = {  # arrays of bounds on folds, with the values that stand for no information
    "best": np.int32(-1), "held_out": np.nan, "objective": np.inf, "objective_lower": 0.0, "objective_upper": np.inf,
    "lower": 0.0, "upper": np.inf, "tie": 0.0, "is_solved": False, "is_final": False, "is_branched": False,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Step:
    """A unit of work on some sizes of one gamma; sources that read more of the state have their own classes of steps.

    Attributes
    ----------
    source : str
        Name of the source that runs the step.
    gamma : int
        Index of the gamma; -1 for several gammas.
    taus : tuple of int
        Indices of the sizes.
    folds : tuple of int
        Indices of the folds, `FULL_DATA` or `ALL_FOLDS`.
    sizes : tuple of int
        Values of the sizes.
    warm_starts : tuple of int arrays
        Supports to start from.
    node_limit : int
        Node limit of a tree; 0 for supports and bounds without branching.
    n_threads : int
        Number of threads of the step.
    tries : int
        Number of earlier tries of the target.
    seconds : float
        Time in seconds after which the step ends and returns its findings.
    promised : float
        Number of pairs that the step is expected to bring to their aims.
    work : float
        Expected number of nodes.
    solver : str
        Name of the backend that solves the step.
    n_mios : int
        Number of mixed-integer problems that the step counts as: 0 for a target that was tried before.
    """

    source: str
    gamma: int
    taus: tuple[int, ...]
    folds: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    warm_starts: tuple[IntArray, ...] = ()
    node_limit: int = 0
    n_threads: int = 1
    tries: int = 0
    seconds: float = np.inf
    promised: float = 0.0
    work: float = 1.0
    solver: str = NATIVE
    n_mios: int = 0

    @property
    def account(self) -> str:
        """Name of the account of the step: its source, or the MIOs of a backend."""
        return self.source if self.solver == NATIVE else f"MIOs of {self.solver}"

    @property
    def gamma_range(self) -> tuple[int, int]:
        """Indices of the smallest and the largest gamma; -1 is the largest of the grid."""
        return max(self.gamma, 0), self.gamma

    @property
    def description(self) -> str:
        """Description for the progress line and the trace: the account, the sizes and the folds."""
        targets = []
        if self.sizes:
            targets.append(f"tau {' to '.join(map(str, sorted({self.sizes[0], self.sizes[-1]})))}")
        if self.folds not in (FULL_DATA, ALL_FOLDS):
            targets.append(f"fold {self.folds[0] + 1}" if len(self.folds) == 1 else f"{len(self.folds)} folds")
        return f"{self.account}: {', '.join(targets)}" if targets else self.account

    def targets(self) -> Iterator[tuple[int, tuple[int, ...], tuple[IntArray, ...]]]:
        """Yield each gamma, the largest first, with the indices of its sizes and its warm starts."""
        yield self.gamma, self.taus, self.warm_starts

    def sizes_of(self, taus: Iterable[int]) -> tuple[int, ...]:
        """Return the values of sizes of the step that are given by index."""
        return tuple(self.sizes[self.taus.index(t)] for t in taus)

    def has_common_target(self, other: Step) -> bool:
        """Return True if another step of the same source covers some of the same targets."""
        if self.source != other.source or not (self.folds == other.folds or set(self.folds) & set(other.folds)):
            return False
        if isinstance(self, PairsStep) and isinstance(other, PairsStep):
            return bool((self.wanted & other.wanted).any())
        return self.gamma == other.gamma and bool(set(self.taus) & set(other.taus))

    def covers(self, gamma: int, tau: int) -> bool:
        """Return True if the step covers a pair, given by index."""
        return self.gamma in (-1, gamma) and tau in self.taus


@dataclass(frozen=True, eq=False, kw_only=True)
class PairsStep(Step):
    """A step over some pairs of several gammas.

    Attributes
    ----------
    wanted : (G, T) bool array
        Pairs of the step.
    starts : dict of int to tuple of int arrays
        Supports to start from, by the index of the gamma.
    """

    wanted: BoolArray
    starts: dict[int, tuple[IntArray, ...]] = field(default_factory=dict)

    @property
    def gammas(self) -> tuple[int, ...]:
        """Ascending indices of the gammas."""
        return tuple(np.flatnonzero(self.wanted.any(axis=1)).tolist())

    @property
    def gamma_range(self) -> tuple[int, int]:
        """Indices of the smallest and the largest gamma."""
        return self.gammas[0], self.gammas[-1]

    def targets(self) -> Iterator[tuple[int, tuple[int, ...], tuple[IntArray, ...]]]:
        """Yield each gamma, the largest first, with the indices of its sizes and its warm starts."""
        for g in reversed(self.gammas):
            yield g, tuple(np.flatnonzero(self.wanted[g]).tolist()), self.starts.get(g, self.warm_starts)

    def covers(self, gamma: int, tau: int) -> bool:
        """Return True if the step covers a pair, given by index."""
        return bool(self.wanted[gamma, tau])


@dataclass(frozen=True)
class StepClock:
    """The clock of a step: the step has to end once the search has to end, or once its time is over.

    Attributes
    ----------
    is_search_over : callable
        Function that returns True once the search has to end.
    at : float
        End of the step on the clock of `time.monotonic`, in seconds.
    """

    is_search_over: Callable[[], bool]
    at: float

    @classmethod
    def from_step(cls, step: Step, is_search_over: Callable[[], bool]) -> StepClock:
        """Return the clock of a step that begins now."""
        return cls(is_search_over, time.monotonic() + step.seconds)

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the step has to end."""
        return 0.0 if self.is_search_over() else max(self.at - time.monotonic(), 0.0)

    def has_expired(self) -> bool:
        """Return True if the step has to end now."""
        return self.is_search_over() or time.monotonic() > self.at


def idle_steps(steps: Iterable[Step], running: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps whose targets no running step covers."""
    return (step for step in steps if not any(step.has_common_target(running_step) for running_step in running))


def first_phase(phases: Iterable[Iterable[Step]], running: Sequence[Step]) -> Iterator[Step]:
    """Yield the idle steps of the first phase that has a step; while any step runs, no later phase begins.

    Each phase, and each of its steps, is built when it is needed.

    Parameters
    ----------
    phases : iterable of iterables of Step
        Steps that are left of each phase, in the order of the phases.
    running : sequence of Step
        Steps that are running.
    """
    for phase in phases:
        steps = iter(phase)
        first = next(steps, None)
        if first is not None or running:
            yield from idle_steps(chain([] if first is None else [first], steps), running)
            return


@dataclass(frozen=True, eq=False)
class FullDataBounds:
    """Best subsets of the full data at a gamma, with bounds."""

    gamma: int
    subsets: BestSubsets


@dataclass(frozen=True, eq=False)
class SupportInFolds:
    """A support with (K,) upper bounds on its objectives and (K,) held-out losses; inf and nan if unknown."""

    gamma: int
    tau: int
    support: IntArray
    objective_upper: FloatArray
    held_out: FloatArray


@dataclass(frozen=True, eq=False)
class SubproblemBounds:
    """Bounds on some sizes in some folds at a gamma; the arrays are (T', K').

    Attributes
    ----------
    gamma : int
        Index of the gamma.
    taus : tuple of int
        Indices of the T' sizes.
    folds : slice or int array
        The K' folds; an array only with one size.
    supports : sequence of int arrays
        Supports that `best` and `tied` refer to.
    best : int array
        Index of the support with the smallest training objective; -1 for none.
    held_out, objective : arrays
        Computed held-out loss and training objective of that support; nan and inf for none.
    objective_lower, objective_upper : arrays
        Bounds on the training objective of every optimal support, rounding and ties included.
    lower, upper : arrays
        Bounds on the held-out loss of every optimal support.
    tie : array
        Part of the width of these bounds that ties between supports cause.
    is_solved : bool array
        True where the optimal supports are known and their held-out losses are accurate.
    is_final : bool array
        True where no further work can improve the bounds.
    is_branched : bool array
        True where a tree was needed.
    tied : dict of (int, int) to list of int
        Indices of all optimal supports, by position in the arrays, where there are several.
    """

    gamma: int
    taus: tuple[int, ...]
    folds: slice | IntArray
    supports: Sequence[IntArray]
    best: NDArray[np.int32]
    held_out: FloatArray
    objective: FloatArray
    objective_lower: FloatArray
    objective_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    tie: FloatArray
    is_solved: BoolArray
    is_final: BoolArray
    is_branched: BoolArray
    tied: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    @classmethod
    def unknown(
        cls, gamma: int, taus: tuple[int, ...], folds: slice | IntArray, n_folds: int,
        supports: Sequence[IntArray] = (), filled: Collection[str] = ARRAYS_OF_FOLDS,
    ) -> SubproblemBounds:  # fmt: skip
        """Return bounds without any information, whose arrays are to be filled.

        Parameters
        ----------
        gamma, taus, folds, supports
            Attributes of the class.
        n_folds : int
            Number of folds, K'.
        filled : collection of str
            Names of the arrays that will be filled; other arrays take no memory.
        """
        shape = len(taus), n_folds
        arrays: dict[str, Any] = {
            name: np.full(shape, nothing) if name in filled else np.broadcast_to(nothing, shape)
            for name, nothing in ARRAYS_OF_FOLDS.items()
        }
        return cls(gamma, taus, folds, supports, **arrays)


@dataclass(frozen=True, eq=False)
class WeightedBounds:
    """(W, G, T) lower bounds on objective + weight * held-out loss of a fold."""

    fold: int
    lower: FloatArray


@dataclass(frozen=True, eq=False)
class HeldOutBounds:
    """(G, T) lower bounds on the held-out losses of the optima of a fold."""

    fold: int
    lower: FloatArray


@dataclass(frozen=True)
class NodeCount:
    """Number of nodes of trees, for a step that states it together with the bounds that it streams."""

    n_nodes: int


Statement = FullDataBounds | SupportInFolds | SubproblemBounds | WeightedBounds | HeldOutBounds | NodeCount


@dataclass(frozen=True, eq=False)
class Findings:
    """The statements that a step proved, with its work.

    Attributes
    ----------
    step : Step
        Step that was run.
    statements : iterable
        Statements as a tuple, or as an iterator that builds them while the writer takes them, to save memory.
    n_nodes, n_problems : int
        Number of nodes of trees, and number of problems that were set up.
    is_finished : bool
        True if more nodes cannot improve the bounds on the target.
    was_stopped : bool
        True if the clock ended the step, which may then be repeated.
    cpu_seconds : float
        CPU seconds of the thread that ran the step.
    """

    step: Step
    statements: Iterable[Statement] = ()
    n_nodes: int = 0
    n_problems: int = 0
    is_finished: bool = True
    was_stopped: bool = False
    cpu_seconds: float = 0.0

"""Steps of a search, and what they state. Both are data: a step carries all that it reads of the state.

A step is a unit of work that a source proposes. Its findings depend on the step and the problems alone, so that they
are the same in any thread or process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.problems.protocol import Subproblem
from sparsecv_mio.trees.subsets import BestSubsets

FULL_DATA = (-1,)  # in place of folds
ALL_FOLDS: tuple[int, ...] = ()  # every fold at once


@dataclass(frozen=True, eq=False)
class Step:
    """A unit of work.

    Attributes
    ----------
    source : str
        Name of the source that does it.
    gamma : int
        Index of the gamma; -1 for all.
    taus : tuple of int
        Indices of the sizes.
    folds : tuple of int
        Indices of the folds, `FULL_DATA` or `ALL_FOLDS`.
    sizes : tuple of int
        The sizes themselves.
    warm_starts : tuple of int arrays
        Supports to begin from.
    node_limit : int
        Nodes of a tree; 0 for local search alone.
    cutoff : float
        Of the full data: a lower bound that is enough. Of lists: the sum of lower bounds to reach. inf: solve.
    upper : float
        Upper bound on the objective of the full data; inf where it is not needed.
    n_threads : int
        Threads that the step uses itself.
    tries : int
        Number of earlier tries of its target.
    exchanges : bool
        True if warm starts are improved by exchanges of columns first.
    is_known_in_folds : bool
        True if its first warm start was fitted in every fold before.
    gap_left : float
        Relative gap that may stay open in a solved pair; 0 for none.
    """

    source: str
    gamma: int
    taus: tuple[int, ...]
    folds: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    warm_starts: tuple[IntArray, ...] = ()
    node_limit: int = 0
    cutoff: float = np.inf
    upper: float = np.inf
    n_threads: int = 1
    tries: int = 0
    exchanges: bool = True
    is_known_in_folds: bool = True
    gap_left: float = 0.0

    def covers(self, gamma: int, tau: int) -> bool:
        """Return True if the step works on a pair, by index."""
        return self.gamma in (-1, gamma) and tau in self.taus


@dataclass(frozen=True, eq=False)
class FullDataBounds:
    """Best subsets of the full data at a gamma."""

    gamma: int
    subsets: BestSubsets


@dataclass(frozen=True, eq=False)
class SupportInFolds:
    """A support with (K,) upper bounds on its objectives and its held-out losses; inf and nan where unknown."""

    gamma: int
    tau: int
    support: IntArray
    objective_upper: FloatArray
    held_out: FloatArray


@dataclass(frozen=True, eq=False)
class SubproblemBounds:
    """What a step says of one subproblem (gamma, tau, fold), by index."""

    gamma: int
    tau: int
    fold: int
    subproblem: Subproblem


@dataclass(frozen=True, eq=False)
class PairInFolds:
    """What near-best supports of the full data say of all folds of a pair; arrays are (K,).

    `best` is the index of the support with the smallest objective, -1 for none; `lower` and `upper` bound the held-out
    loss at the optimum. Where `is_solved`, all supports that can be optimal are known; `tied` has the indices of
    several.
    """

    gamma: int
    tau: int
    supports: tuple[IntArray, ...]
    best: NDArray[np.int32]
    objective_upper: FloatArray
    held_out: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_solved: BoolArray
    tie: FloatArray
    tied: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class WeightedBounds:
    """(W, G, T) lower bounds on objective + weight * held-out loss of a fold."""

    fold: int
    lower: FloatArray


Statement = FullDataBounds | SupportInFolds | SubproblemBounds | PairInFolds | WeightedBounds


@dataclass(frozen=True, eq=False)
class Findings:
    """What a step proved or found.

    Attributes
    ----------
    step : Step
    statements : tuple
    n_nodes, n_problems : int
        Work: nodes of trees, and problems that were set up.
    is_finished : bool
        True if more nodes can say no more about its target.
    was_stopped : bool
        True if the clock ended it: it may be repeated.
    cpu_seconds : float
        Of the thread that did it.
    """

    step: Step
    statements: tuple[Statement, ...] = ()
    n_nodes: int = 0
    n_problems: int = 0
    is_finished: bool = True
    was_stopped: bool = False
    cpu_seconds: float = 0.0

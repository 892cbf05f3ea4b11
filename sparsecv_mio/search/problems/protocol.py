"""The contract of a problem class, and the types in which fits and solved subproblems pass between modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.units import TIE_RTOL, WORST_ROUNDING

if TYPE_CHECKING:
    from sparsecv_mio.trees.near_best_held_out import NearBestHeldOut

IsExpired = Callable[[], bool]


class Capability(Flag):
    """What a problem class can do beyond `solve`, `fit` and `enclose`."""

    NONE = 0
    HELD_OUT_LISTS = auto()  # near-best supports of the full data give certified bounds in every fold
    WEIGHTED_RELAXATIONS = auto()  # lower bounds on objective + weight * held-out loss
    FULL_DATA_RELAXATIONS = auto()  # roots of trees of the full data bound all sizes at once


@dataclass(frozen=True, eq=False)
class SupportFits:
    """Fits of L supports to training rows: bounds with rounding, held-out losses as computed; arrays are (L,)."""

    supports: Sequence[IntArray]
    objective_lower: FloatArray
    objective_upper: FloatArray
    held_out_lower: FloatArray
    held_out_upper: FloatArray
    held_out: FloatArray


@dataclass(frozen=True, eq=False)
class Subproblem:
    """What is known of one subproblem: one pair (gamma, tau), one fold.

    Attributes
    ----------
    supports : tuple of int arrays
        The best support known; where solved, the supports tied with it follow.
    objective_lower, objective_upper : float
        Bounds on the optimal training objective.
    held_out : float
        Held-out loss of the first support.
    lower, upper : float
        Bounds on the held-out loss of every optimal support.
    tie : float
        Part of the width of these bounds that ties between supports cause.
    is_solved : bool
        True where `supports` are all optimal supports and their losses are accurate.
    is_final : bool
        True where no further work can say more.
    """

    supports: tuple[IntArray, ...]
    objective_lower: float
    objective_upper: float
    held_out: float
    lower: float = 0.0
    upper: float = np.inf
    tie: float = 0.0
    is_solved: bool = False
    is_final: bool = False


class FoldProblem(Protocol):
    """The training rows of a fold with its held-out rows, or the full data, at one gamma with one loss.

    A problem is pure: what it returns depends on its rows and the arguments alone. All bounds include rounding.
    """

    @property
    def capabilities(self) -> Capability:
        """What the problem can do beyond `solve`, `fit` and `enclose`."""

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve best subsets of some sizes by branch and bound; node limit 0 searches for supports only."""

    def relax(self, sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """Bound the optima of some sizes by the roots of their trees (FULL_DATA_RELAXATIONS)."""

    def fit(self, supports: Sequence[IntArray]) -> SupportFits:
        """Fit supports to the training rows and score the held-out rows."""

    def fit_first(self, support: IntArray) -> Subproblem:
        """Fit one support without bounds on its held-out loss, which takes less time than `fit`."""

    def enclose(
        self, size: int, objective_upper: float, supports: Sequence[IntArray], is_expired: IsExpired
    ) -> tuple[float, float]:  # fmt: skip
        """Bound the held-out loss of every fit of a size with at most some objective."""

    def hold_out(self, support: IntArray, is_expired: IsExpired) -> tuple[FloatArray, FloatArray]:
        """Return (K,) upper bounds on objectives and held-out losses of a support of the full data in every fold."""

    def near_best(self, size: int, supports: Sequence[IntArray], is_expired: IsExpired) -> NearBestHeldOut:
        """Return bounds on all folds by near-best supports of the full data (HELD_OUT_LISTS)."""

    def bound_weighted(self, is_expired: IsExpired) -> FloatArray:
        """(W, G, T) over the grid: lower bounds on objective + weight * held-out loss (WEIGHTED_RELAXATIONS)."""

    def has_one_support(self, size: int) -> bool:
        """Return True if a size leaves one support: that of all columns, or of those in every support."""


def solved_subproblem(problem: FoldProblem, subset: BestSubset, is_finished: bool, is_expired: IsExpired) -> Subproblem:
    """Turn the outcome of a tree of a fold into certified numbers: the one place for every loss.

    The supports that can be optimal are fitted; where the tree is not complete, or a held-out loss is not accurate,
    the held-out loss at the optimum has an interval.

    Parameters
    ----------
    problem : FoldProblem
        Of a fold.
    subset : BestSubset
        Outcome of its tree at one size.
    is_finished : bool
        True if no further nodes can say more.
    is_expired : callable
    """
    if not subset.complete:
        first = problem.fit_first(subset.support)
        ends = problem.enclose(subset.tau, subset.upper, [subset.support], is_expired)
        upper = min(subset.upper, first.objective_upper)
        return Subproblem(first.supports, subset.lower, upper, first.held_out, *ends, is_final=is_finished)
    fits = problem.fit(subset.candidates)
    tied = np.flatnonzero(fits.objective_lower <= float(fits.objective_upper.min()) * (1.0 + TIE_RTOL))
    low, high, losses = fits.held_out_lower[tied], fits.held_out_upper[tied], fits.held_out[tied]
    is_accurate = bool(np.isfinite(high).all() and np.all(high - low <= WORST_ROUNDING * losses))
    return Subproblem(
        tuple(subset.candidates[i] for i in tied.tolist()), subset.lower, float(fits.objective_upper[tied[0]]),
        float(losses[0]), float(low.min()), float(high.max()), float(np.ptp(losses)) if is_accurate else 0.0,
        is_solved=is_accurate, is_final=True,
    )  # fmt: skip


class Problems(Protocol):
    """Problems by fold and gamma, made once and stored within a memory limit. Safe to use from several threads."""

    engine: str  # who solves them, in words

    def full(self, gamma: int) -> FoldProblem:
        """Return the problem of the full data at the gamma of an index."""

    def fold(self, fold: int, gamma: int) -> FoldProblem:
        """Return the problem of a fold at the gamma of an index."""

    def clear(self) -> None:
        """Forget all stored problems."""

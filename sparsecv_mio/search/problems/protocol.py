"""The methods that every problem class must have, and the types of their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Flag, auto
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.parallel import Clock
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets, HeldOutFolds

if TYPE_CHECKING:
    from sparsecv_mio.search.state.pairs import Pair
    from sparsecv_mio.search.steps import NodeCount, SubproblemBounds

IsExpired = Callable[[], bool]


class MissingCapability(TypeError):
    """The error of a call to a method whose capability a problem does not have."""


class Capability(Flag):
    """Capabilities of a problem class beyond `solve`, `fit` and `enclose`."""

    NONE = 0
    HELD_OUT_LISTS = auto()  # near-optimal supports of the full data give certified bounds in every fold
    SHARED_TREE = auto()  # sizes share a tree: all sizes of a gamma are solved at once
    LEFT_OUT_FITS = auto()  # folds are held out of full-data fits in closed form; one tree serves all folds
    WEIGHTED_RELAXATIONS = auto()  # lower bounds on objective + weight * held-out loss
    WEIGHTED_TREES = auto()  # relaxations and trees of a fold with weighted held-out rows bound the loss of these rows
    HOLD_OUT = auto()  # a support of the full data is fitted in every fold at once
    FOLD_RELAXATIONS = auto()  # relaxations of a fold bound the held-out losses of all sizes at once
    FULL_DATA_RELAXATIONS = auto()  # roots of trees of the full data bound all sizes at once
    SCREENED_TREES = auto()  # screening reduces very many columns to those that trees grow on
    FOLD_SEARCHES = auto()  # local search in all folds at once, which exchange their supports (a method of `Problems`)


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of L supports to training rows: bounds that include rounding, computed held-out losses; arrays are (L,)."""

    supports: Sequence[IntArray]
    objective_lower: FloatArray
    objective_upper: FloatArray
    held_out_lower: FloatArray
    held_out_upper: FloatArray
    held_out: FloatArray
    objective: FloatArray  # as computed
    is_accurate: BoolArray  # True if the bounds on the held-out loss are narrow enough for a solved subproblem

    def widen(self, change: FloatArray) -> Fits:
        """Return fits whose bounds on held-out losses allow changes of the predictions with norms `change` (L,)."""
        lower, upper = np.sqrt(np.maximum(self.held_out_lower, 0.0)), np.sqrt(self.held_out_upper)
        lower, upper = np.maximum(lower - change, 0.0) ** 2, (upper + change) ** 2
        is_accurate = self.is_accurate & np.isfinite(change)
        return replace(self, held_out_lower=lower, held_out_upper=upper, is_accurate=is_accurate)

    @classmethod
    def join(cls, parts: Sequence[Fits]) -> Fits:
        """Return the fits of all parts as one."""
        arrays = (np.concatenate([getattr(part, array.name) for part in parts]) for array in fields(cls)[1:])
        return cls([support for part in parts for support in part.supports], *arrays)


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Bounds on the held-out loss of every optimum of S sizes, and lower bounds on its objective; arrays are (S,)."""

    lower: FloatArray
    upper: FloatArray
    objective_lower: FloatArray


@dataclass(frozen=True, eq=False)
class SupportsFound:
    """Supports that a local search found in a fold, by gamma and size; arrays are (G', T').

    Attributes
    ----------
    fold : int
        Index of the fold, `ALL_ROWS` for the full data.
    supports : sequence of sequences of int arrays
        Supports, by gamma and size.
    objective, held_out : arrays
        Computed training objectives and held-out losses.
    objective_upper : array
        Upper bounds on the objectives of these supports and of optima tied with them; inf where there is none.
    """

    fold: int
    supports: Sequence[Sequence[IntArray]]
    objective: FloatArray
    objective_upper: FloatArray
    held_out: FloatArray


@dataclass(frozen=True, eq=False)
class SupportsOfPass:
    """Supports that a pass of a search in all folds found.

    Attributes
    ----------
    found : tuple
        Supports of the searched folds in ascending order, those of the full data last.
    is_finished : bool
        True if no further pass finds more, or the time is over.
    n_problems : int
        Number of problems that were set up.
    """

    found: tuple[SupportsFound, ...]
    is_finished: bool
    n_problems: int


class HeldOutList(Protocol):
    """Near-optimal supports of the full data of one size, which bound the held-out losses of all K folds.

    Attributes
    ----------
    best : BestSubset or None
        Best subset of the full data by the tree of the list; None before `list_supports`.
    n_nodes : int
        Number of nodes of this tree.
    """

    best: BestSubset | None
    n_nodes: int

    @property
    def supports(self) -> tuple[IntArray, ...]:
        """Tried supports."""

    def compute_exactly(self) -> None:
        """Narrow the held-out losses of present and later supports as far as the work limit allows."""

    def cutoff_to_raise(self, target: float) -> float:
        """Return a cutoff at which the lower bounds of all folds sum to a target, or the largest useful cutoff."""

    def cutoff_to_solve(self, most: FloatArray) -> float:
        """Return a cutoff that solves most folds, given the (K,) upper bounds of `bound_all_fits`."""

    def list_supports(self, cutoff: float, node_limit: int, n_threads: int) -> bool:
        """List and try the supports of the full data up to a cutoff; return True if the list is complete."""

    def unknown_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the trivial (K,) bounds 0 and inf on held-out losses."""

    def bound_all_fits(self, full_upper: float) -> tuple[FloatArray, FloatArray]:
        """Return (K,) bounds on the held-out losses of all fits, given the best objective of the full data."""

    def tighten_unlisted_folds(
        self, least: FloatArray, most: FloatArray, enclose_fold: Callable[[int, float], tuple[float, float]]
    ) -> None:
        """Narrow the bounds of `bound_all_fits`, in place, in the folds that the list does not solve."""

    def bound_folds(self, least: FloatArray, most: FloatArray) -> HeldOutFolds:
        """Return the bounds and best supports of all folds, given the bounds of `bound_all_fits`."""


class FoldProblem(ABC):
    """The training rows of a fold with its held-out rows, or the full data, at one gamma with one loss.

    Results depend on the rows and the arguments alone, except that a later tree may continue an earlier one, which can
    change the support found and the width of bounds. All bounds include rounding. A method
    that is not abstract belongs to the capability that its docstring names. A size is a tau of the grid, without
    adjustment columns; supports contain the adjustment columns.

    Attributes
    ----------
    values_are_upper_bounds : bool
        True if trees state upper bounds on objectives; more accurate fits of the same supports may lie below.
    """

    values_are_upper_bounds: ClassVar[bool] = False

    @property
    @abstractmethod
    def capabilities(self) -> Capability:
        """Capabilities of the problem beyond `solve`, `fit` and `enclose`."""

    @abstractmethod
    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve best subsets of some sizes by branch and bound; with a node limit of 0 without branching."""

    @abstractmethod
    def fit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports to the training rows and score the held-out rows."""

    def include_columns_at_zero(self, subsets: Sequence[BestSubset]) -> tuple[Sequence[BestSubset], FloatArray | None]:
        """Return subsets with the candidates that bounds of 0 hide, and changes of predictions; None for no change."""
        return subsets, None

    @abstractmethod
    def score(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports without bounds on their held-out losses, which may take less time than `fit`."""

    @abstractmethod
    def enclose(
        self, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], is_expired: IsExpired,
        relaxes: bool = True,
    ) -> Enclosed:  # fmt: skip
        """Bound the held-out loss of every fit of some sizes with objectives at most `objective_upper` (S,)."""

    @abstractmethod
    def has_one_support(self, size: int) -> bool:
        """Return True if a size has one possible support: all columns, or the columns in every support."""

    def relax(self, sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """Bound the optima of some sizes by the roots of their trees (FULL_DATA_RELAXATIONS)."""
        raise MissingCapability(Capability.FULL_DATA_RELAXATIONS)

    def hold_out(self, support: IntArray, is_expired: IsExpired) -> tuple[FloatArray, FloatArray]:
        """Return (K,) upper bounds on objectives and (K,) held-out losses of a support in every fold (HOLD_OUT)."""
        raise MissingCapability(Capability.HOLD_OUT)

    def make_near_optimal_list(self, size: int, supports: Sequence[IntArray], is_expired: IsExpired) -> HeldOutList:
        """Return bounds on all folds by near-optimal supports of the full data (HELD_OUT_LISTS)."""
        raise MissingCapability(Capability.HELD_OUT_LISTS)

    def bound_left_out(
        self, supports: Sequence[IntArray], taus: Sequence[int], full_lower: FloatArray
    ) -> Iterator[SubproblemBounds] | None:
        """Bound all folds by full-data fits of supports for sizes by index; None if impossible (LEFT_OUT_FITS)."""
        raise MissingCapability(Capability.LEFT_OUT_FITS)

    def solve_left_out(
        self, supports: Sequence[IntArray], taus: Sequence[int], is_open: BoolArray, n_nodes: int, is_expired: IsExpired
    ) -> Iterator[SubproblemBounds | NodeCount]:
        """Solve the subproblems that one tree for all folds can solve (LEFT_OUT_FITS)."""
        raise MissingCapability(Capability.LEFT_OUT_FITS)

    def relax_weighted(
        self, wanted: BoolArray, objective_upper: FloatArray, held_out: FloatArray, is_expired: IsExpired
    ) -> FloatArray:
        """(G, T): lower bounds on held-out losses by relaxations of weighted held-out rows (WEIGHTED_TREES)."""
        raise MissingCapability(Capability.WEIGHTED_TREES)

    def branch_weighted(
        self, targets: Mapping[Pair, tuple[float, float]], node_limit: int, objective_upper: FloatArray,
        held_out: FloatArray, is_full_solved: BoolArray, is_expired: IsExpired,
    ) -> tuple[FloatArray, int]:  # fmt: skip
        """(G, T): the same bounds by trees, one for each target, and the number of nodes (WEIGHTED_TREES)."""
        raise MissingCapability(Capability.WEIGHTED_TREES)

    def bound_weighted(self, is_expired: IsExpired) -> FloatArray:
        """(W, G, T) over the grid: lower bounds on objective + weight * held-out loss (WEIGHTED_RELAXATIONS)."""
        raise MissingCapability(Capability.WEIGHTED_RELAXATIONS)

    def relax_fold(
        self, taus: tuple[int, ...], sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired
    ) -> SubproblemBounds:
        """Bound the optima of some sizes, also given by index, and their held-out losses (FOLD_RELAXATIONS)."""
        raise MissingCapability(Capability.FOLD_RELAXATIONS)


class Problems(Protocol):
    """The problems by fold and gamma, built once and stored within a memory limit. Safe to use from several threads."""

    name: str  # name of the search in checkpoints and traces
    engine: str  # description of the solver
    slip: float  # bound on the rounding error of sums of losses over a fold and its training rows, not in bounds yet

    def full(self, gamma: int) -> FoldProblem:
        """Return the problem of the full data at the gamma with an index."""

    def fold(self, fold: int, gamma: int) -> FoldProblem:
        """Return the problem of a fold at the gamma with an index."""

    def search_folds(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Clock,
        are_estimates: bool = False,
    ) -> SupportsOfPass:  # fmt: skip
        """Search in all folds and in the full data, and return the supports of the last pass (FOLD_SEARCHES).

        Gammas and sizes are given by index. The first pass runs to its end whatever the time. For estimates the full
        data is not searched, and objectives have no bounds.
        """
        raise MissingCapability(Capability.FOLD_SEARCHES)

    def sample_folds(
        self, gammas: Sequence[int], taus: Sequence[int], folds: Sequence[int],
        full_supports: Sequence[Sequence[IntArray]], n_threads: int, is_expired: IsExpired,
    ) -> Iterator[SubproblemBounds | tuple[tuple[int, ...], SupportsFound]]:  # fmt: skip
        """Yield the results of a sample of folds: bounds, or supports of each fold at some gammas (FOLD_SEARCHES)."""
        raise MissingCapability(Capability.FOLD_SEARCHES)

    def clear(self) -> None:
        """Remove all stored problems."""

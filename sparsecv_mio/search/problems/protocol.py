"""The contract of a problem class, and the types in which fits and solved subproblems pass between modules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, ClassVar, Protocol

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.slices import Clock
from sparsecv_mio.trees.subsets import BestSubsets

if TYPE_CHECKING:
    from sparsecv_mio.search.pairs import Pair
    from sparsecv_mio.search.steps import FoldBounds, NodeCount
    from sparsecv_mio.trees.near_best_held_out import NearBestHeldOut

IsExpired = Callable[[], bool]


class MissingCapability(TypeError):
    """Raised where problems are asked for what their capabilities do not name."""


class Capability(Flag):
    """What a problem class can do beyond `solve`, `fit` and `enclose`."""

    NONE = 0
    HELD_OUT_LISTS = auto()  # near-best supports of the full data give certified bounds in every fold
    SHARED_TREE = auto()  # sizes share a tree: all of a gamma are solved at once
    LEFT_OUT_FITS = auto()  # every fold is left out of fits of the full data in closed form; one tree serves all folds
    WEIGHTED_RELAXATIONS = auto()  # lower bounds on objective + weight * held-out loss
    WEIGHTED_TREES = auto()  # relaxations and trees of a fold with its held-out rows at a weight bound their loss
    HOLD_OUT = auto()  # a support of the full data is fitted in every fold at once
    FOLD_RELAXATIONS = auto()  # relaxations of a fold bound the held-out losses of all sizes at once
    FULL_DATA_RELAXATIONS = auto()  # roots of trees of the full data bound all sizes at once
    SCREENED_TREES = auto()  # of very many columns screening leaves those that trees grow on
    FOLD_SEARCHES = auto()  # local search in all folds at once, which learn from each other (of `Problems`)


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of L supports to training rows: bounds with rounding, held-out losses as computed; arrays are (L,)."""

    supports: Sequence[IntArray]
    objective_lower: FloatArray
    objective_upper: FloatArray
    held_out_lower: FloatArray
    held_out_upper: FloatArray
    held_out: FloatArray
    objective: FloatArray  # as computed
    is_accurate: BoolArray  # whether the bounds on the held-out loss are narrow enough for a solved subproblem


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
    objective, held_out : arrays
        Training objectives and held-out losses as computed.
    objective_upper : array
        Upper bounds on the objectives of these supports, and of optima tied with them; inf where there is none.
    """

    fold: int
    supports: Sequence[Sequence[IntArray]]
    objective: FloatArray
    objective_upper: FloatArray
    held_out: FloatArray


@dataclass(frozen=True, eq=False)
class FoldsSearched:
    """What a pass of a search in all folds found.

    Attributes
    ----------
    found : tuple
        Of the folds that were searched, in ascending order, the full data last.
    is_finished : bool
        True if no further pass finds more, or the time is over.
    n_problems : int
        Problems that were set up.
    """

    found: tuple[SupportsFound, ...]
    is_finished: bool
    n_problems: int


class FoldProblem(ABC):
    """The training rows of a fold with its held-out rows, or the full data, at one gamma with one loss.

    A problem is pure: what it returns depends on its rows and the arguments alone. All bounds include rounding. What is
    not abstract belongs to the capability that its docstring names. A size is a tau of the grid, without adjusted
    columns; supports contain the adjusted columns.

    Attributes
    ----------
    values_are_upper_bounds : bool
        True if trees state upper bounds on objectives, below which more accurate fits of the same supports may lie.
    """

    values_are_upper_bounds: ClassVar[bool] = False

    @property
    @abstractmethod
    def capabilities(self) -> Capability:
        """What the problem can do beyond `solve`, `fit` and `enclose`."""

    @abstractmethod
    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve best subsets of some sizes by branch and bound; node limit 0 searches for supports only."""

    @abstractmethod
    def fit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports to the training rows and score the held-out rows."""

    @abstractmethod
    def score(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports without bounds on their held-out losses, which may take less time than `fit`."""

    @abstractmethod
    def enclose(
        self, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], is_expired: IsExpired,
        relaxes: bool = True,
    ) -> Enclosed:  # fmt: skip
        """Bound the held-out loss of every fit of some sizes with at most some objectives, (S,)."""

    @abstractmethod
    def has_one_support(self, size: int) -> bool:
        """Return True if a size leaves one support: that of all columns, or of those in every support."""

    def relax(self, sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """Bound the optima of some sizes by the roots of their trees (FULL_DATA_RELAXATIONS)."""
        raise MissingCapability(Capability.FULL_DATA_RELAXATIONS)

    def hold_out(self, support: IntArray, is_expired: IsExpired) -> tuple[FloatArray, FloatArray]:
        """Return (K,) upper bounds on objectives and held-out losses of a support in every fold (HOLD_OUT)."""
        raise MissingCapability(Capability.HOLD_OUT)

    def near_best(self, size: int, supports: Sequence[IntArray], is_expired: IsExpired) -> NearBestHeldOut:
        """Return bounds on all folds by near-best supports of the full data (HELD_OUT_LISTS)."""
        raise MissingCapability(Capability.HELD_OUT_LISTS)

    def bound_left_out(
        self, supports: Sequence[IntArray], taus: Sequence[int], full_lower: FloatArray
    ) -> Iterator[FoldBounds] | None:
        """Bound all folds by full-data fits of supports for some sizes, by index; None if no use (LEFT_OUT_FITS)."""
        raise MissingCapability(Capability.LEFT_OUT_FITS)

    def solve_left_out(
        self, supports: Sequence[IntArray], taus: Sequence[int], is_open: BoolArray, n_nodes: int, is_expired: IsExpired
    ) -> Iterator[FoldBounds | NodeCount]:
        """Solve what one tree for all folds can solve (LEFT_OUT_FITS)."""
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
        """(G, T): the same by trees, of pairs each asked for a target, and the nodes they took (WEIGHTED_TREES)."""
        raise MissingCapability(Capability.WEIGHTED_TREES)

    def bound_weighted(self, is_expired: IsExpired) -> FloatArray:
        """(W, G, T) over the grid: lower bounds on objective + weight * held-out loss (WEIGHTED_RELAXATIONS)."""
        raise MissingCapability(Capability.WEIGHTED_RELAXATIONS)

    def relax_fold(
        self, taus: tuple[int, ...], sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired
    ) -> FoldBounds:
        """Bound the optima of some sizes, by index too, and their held-out losses (FOLD_RELAXATIONS)."""
        raise MissingCapability(Capability.FOLD_RELAXATIONS)


class Problems(Protocol):
    """Problems by fold and gamma, made once and stored within a memory limit. Safe to use from several threads."""

    name: str  # by which checkpoints and traces know a search
    engine: str  # who solves them, in words
    slip: float  # rounding of sums of losses over a fold and its training rows, beyond what bounds include

    def full(self, gamma: int) -> FoldProblem:
        """Return the problem of the full data at the gamma of an index."""

    def fold(self, fold: int, gamma: int) -> FoldProblem:
        """Return the problem of a fold at the gamma of an index."""

    def search_folds(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Clock
    ) -> FoldsSearched:
        """Search in all folds and in the full data; what the last of some passes finds (FOLD_SEARCHES).

        Gammas and sizes are given by index. The first pass is done whatever the time.
        """
        raise MissingCapability(Capability.FOLD_SEARCHES)

    def sample_folds(
        self, gammas: Sequence[int], taus: Sequence[int], folds: Sequence[int],
        full_supports: Sequence[Sequence[IntArray]], n_threads: int, is_expired: IsExpired,
    ) -> Iterator[FoldBounds | tuple[tuple[int, ...], SupportsFound]]:  # fmt: skip
        """Yield what a sample of many folds finds: bounds, or at some gammas supports of each fold (FOLD_SEARCHES)."""
        raise MissingCapability(Capability.FOLD_SEARCHES)

    def clear(self) -> None:
        """Forget all stored problems."""

"""Problems with squared-error loss, by Gram matrices, trees over sizes, and closed forms for held-out folds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.more_weight import HeldOutWeightedBounds, Known, RowsTogether
from sparsecv_mio.bounds.relaxation import unit_diagonal
from sparsecv_mio.bounds.wide_rows import is_wide
from sparsecv_mio.parallel import Clock, Kept, Moment
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import TrainingMoments, training_moments
from sparsecv_mio.search.problems import fold_fits, left_out_folds, one_tree_for_folds
from sparsecv_mio.search.problems.fold_fits import enclose_held_out, narrow_by_relaxations, relax_sizes
from sparsecv_mio.search.problems.outcomes import show_fits
from sparsecv_mio.search.problems.protocol import (
    Capability,
    Enclosed,
    Fits,
    FoldProblem,
    IsExpired,
    Problems,
    SupportsFound,
    SupportsOfPass,
)
from sparsecv_mio.search.problems.support_searches import FoldPasses, FullSupports, SampledFolds
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.search.state.pairs import Grid, Pair
from sparsecv_mio.search.steps import NodeCount, SubproblemBounds
from sparsecv_mio.thresholds import LARGEST_FOLD, PATH_TREE_COLUMNS
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import BestSubsets

FULL_TREE_BYTES = STORE_BYTES // 8  # memory of the trees of the full data at one gamma that a later call continues
MOMENTS_AT_ONCE = 32  # folds whose training moments are computed together: one costs nearly as much as all of them


@dataclass(frozen=True, eq=False)
class SquaredProblem(FoldProblem):
    """The training rows of a fold with its held-out rows, or the full data, at one gamma.

    Attributes
    ----------
    store : SquaredProblems
        Data that problems share.
    fold : int
        Index of the fold, `ALL_ROWS` for the full data.
    gamma : int
        Index of the gamma.
    problem : SparseProblem
        Problem of the training rows.
    held_out : HeldOutFold or None
        Held-out rows of the fold.
    """

    store: SquaredProblems
    fold: int
    gamma: int
    problem: SparseProblem
    held_out: fold_fits.HeldOutFold | None = None

    @property
    def capabilities(self) -> Capability:
        """Capabilities of the problem beyond `solve`, `fit` and `enclose`."""
        shared = Capability.SHARED_TREE | Capability.WEIGHTED_TREES
        shared |= Capability.FOLD_RELAXATIONS
        if self.fold != ALL_ROWS:
            return shared
        can_leave_out = self.store.can_leave_out
        shared |= Capability.FOLD_SEARCHES | Capability.FULL_DATA_RELAXATIONS
        return shared | (Capability.LEFT_OUT_FITS if can_leave_out else Capability.NONE)

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve some sizes by shared trees, and by perspective trees that continue from the last call."""
        context, resume = self.store.context, FULL_TREE_BYTES if self.fold == ALL_ROWS else self.store.tree_bytes
        return context.hands.do(
            solve_path,
            self.problem,
            list(sizes),
            warm_starts=list(warm_starts),
            node_limit=node_limit,
            until=Moment(is_expired, context.deadline.remaining_seconds),
            cutoffs=cutoffs,
            resume=resume if node_limit else 0,
        )

    def relax(self, sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """Bound the optima of some sizes by the roots of their trees."""
        return self.solve(sizes, supports, 0, is_expired)

    @property
    def fold_data(self) -> fold_fits.FoldData:
        """The fold with its held-out rows, in the form that functions of folds need."""
        return fold_fits.FoldData(self.problem, self._held_out)

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports from Gram matrices, or from the rows if these lose digits; O(s^3 + rows s) a support."""
        return self.fold_data.fit(supports)

    def score(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports; bounds on held-out losses add no cost to the fits."""
        return self.fit(supports)

    def enclose(
        self, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], is_expired: IsExpired,
        relaxes: bool = True,
    ) -> Enclosed:  # fmt: skip
        """Bound held-out losses by the ridge ball of the fold, and by relaxations of the columns left by screening."""
        return self.store.context.hands.do(
            enclose_held_out, self.fold_data, sizes, objective_upper, supports, relaxes and not is_expired()
        )

    def relax_fold(
        self, taus: tuple[int, ...], sizes: Sequence[int], supports: Sequence[IntArray], is_expired: IsExpired
    ) -> SubproblemBounds:
        """Bound the optima of some sizes, also given by index, and their held-out losses by relaxations of the fold."""
        numbers, incumbents = relax_sizes(self.fold_data, sizes, supports, self.store.diagonal(self.gamma), is_expired)
        places = [i for i, support in enumerate(incumbents) if support is not None]
        shown = [support for support in incumbents if support is not None]
        fits = self.fit(shown)
        bounds = show_fits(self.gamma, tuple(taus[i] for i in places), slice(self.fold, self.fold + 1), fits)
        some = [sizes[i] for i in places]
        ball = self.enclose(some, bounds.objective_upper[:, 0], shown, is_expired, relaxes=False)
        return narrow_by_relaxations(bounds, fits, ball, numbers[places])

    # -- training rows with weighted held-out rows (bounds.more_weight) -----------------------------------------------

    def relax_weighted(
        self, wanted: BoolArray, objective_upper: FloatArray, held_out: FloatArray, is_expired: IsExpired
    ) -> FloatArray:
        """(G, T): lower bounds on held-out losses by relaxations, at the weights that give the largest bounds."""
        more, known_bounds = self.store.held_out_weighted_bounds(self.fold), Known(objective_upper, held_out)
        rows, until = RowsTogether(self._unit_gamma_problem(), self._held_out.moments()), self._until(is_expired)
        more, lower = self.store.context.hands.do(
            HeldOutWeightedBounds.bound_pairs, more, rows, wanted, known_bounds, until=until
        )
        self.store.keep_weighted(self.fold, more)
        return self._subtract_mean_error(lower)

    def branch_weighted(
        self, targets: Mapping[Pair, tuple[float, float]], node_limit: int, objective_upper: FloatArray,
        held_out: FloatArray, is_full_solved: BoolArray, is_expired: IsExpired,
    ) -> tuple[FloatArray, int]:  # fmt: skip
        """(G, T): lower bounds on held-out losses by trees, one for each target, and the number of nodes."""
        more, known_bounds = self.store.held_out_weighted_bounds(self.fold), Known(objective_upper, held_out)
        rows, until = RowsTogether(self._unit_gamma_problem(), self._held_out.moments()), self._until(is_expired)
        more.take_light_weights(is_full_solved)
        more, lower, spent = self.store.context.hands.do(
            HeldOutWeightedBounds.branch_each, more, rows, dict(targets), node_limit, known_bounds, until=until
        )  # fmt: skip
        self.store.keep_weighted(self.fold, more)
        return self._subtract_mean_error(lower), sum(spent)

    def _unit_gamma_problem(self) -> SparseProblem:
        return self.problem.with_gamma(1.0)

    @property
    def _held_out(self) -> fold_fits.HeldOutFold:
        assert self.held_out is not None
        return self.held_out

    def _until(self, is_expired: IsExpired) -> Moment:
        return Moment(is_expired, self.store.context.deadline.remaining_seconds)

    def _subtract_mean_error(self, lower: FloatArray) -> FloatArray:
        """Return lower bounds less the change of all residuals that the rounded mean of the target may cause."""
        return np.asarray(np.maximum(np.sqrt(lower) - self._held_out.off_by_mean, 0.0) ** 2)

    # -- the full data, with every fold held out of its fits ----------------------------------------------------------

    def bound_left_out(
        self, supports: Sequence[IntArray], taus: Sequence[int], full_lower: FloatArray
    ) -> Iterator[SubproblemBounds] | None:
        """Bound all folds by fits of the full data with each fold held out; None if such a fit cannot be used."""
        root = self.fit_all_columns(supports, taus)
        return None if root is None else left_out_folds.bound_folds(root, full_lower)

    def solve_left_out(
        self, supports: Sequence[IntArray], taus: Sequence[int], is_open: BoolArray, n_nodes: int, is_expired: IsExpired
    ) -> Iterator[SubproblemBounds | NodeCount]:
        """Solve the subproblems that one tree for all folds can solve; no bounds if full-data fits cannot be used."""
        root = None if is_expired() else self.fit_all_columns(supports, taus)
        if root is None:
            return iter(())
        wanted = one_tree_for_folds.RequestedFolds(sorted(set(taus)), is_open, is_expired)
        return one_tree_for_folds.solve_folds(root, wanted, n_nodes)

    def fit_all_columns(self, supports: Sequence[IntArray], taus: Sequence[int]) -> left_out_folds.FullFit | None:
        """Return the full-data fit from which folds are held out; None if its accuracy or leverages are poor."""
        form = self.store.full_data.normal_form(self.gamma)
        if form.keep > left_out_folds.WIDEST_KEEP or form.m == 0:
            return None
        root = left_out_folds.FullFit(self.store.left_out, self.gamma, supports, taus)
        return root if one_tree_for_folds.is_usable(root) else None

    def has_one_support(self, size: int) -> bool:
        """Return True if a size has one possible support, also in every fold: all columns, or the forced ones."""
        return self.problem.choice.has_one_support(size)


Refit = Callable[["SquaredProblems", SupportsFound, Sequence[int]], SupportsFound]


class SquaredProblems(Problems):
    """The problems by fold and gamma, built once and stored within a memory limit. Safe to use from several threads.

    Parameters
    ----------
    context : Context
        Data, grid, folds and request of the search.
    full_data : BestOnAllRows
        Moments and normal forms of the full data, computed when first needed.
    make : callable
        Function that builds a problem from its store, fold, gamma, training rows and held-out rows.
    name : str
        Name of the search in checkpoints and traces.
    engine : str
        Description of the solver.
    refit : callable, optional
        Function of these problems, supports from local searches and their gammas that fits the supports again; required
        with bounds on coefficients, which the local searches ignore.
    """

    slip = 0.0  # bounds on objectives include all rounding of sums over a fold and its training rows

    def __init__(
        self, context: Context, full_data: BestOnAllRows, make: Callable[..., SquaredProblem] = SquaredProblem,
        name: str = "rounds", engine: str = "trees over the sizes of a gamma", refit: Refit | None = None,
    ) -> None:  # fmt: skip
        self.context, self.full_data, self._make = context, full_data, make
        self.name, self.engine, self._refit = name, engine, refit
        self.tree_bytes = STORE_BYTES // (len(context.grid.gammas) * context.folds.k)
        self._most = max(2, STORE_BYTES // (24 * (context.data.q + 1) ** 2 + 1))
        self._moments: OrderedDict[int, TrainingMoments] = OrderedDict()
        self._folds: OrderedDict[int, fold_fits.FoldData] = OrderedDict()
        self._kept: dict[int, Kept] = {}
        self._weighted: dict[int, HeldOutWeightedBounds] = {}
        self._passes = FoldPasses(context.data, context.folds, context.grid, context.hands, context.starts)
        self._diagonals: dict[int, FloatArray | None] = {}
        self._lock = threading.RLock()

    def diagonal(self, gamma: int) -> FloatArray | None:
        """Return the diagonal of the full-data relaxation, from which those of folds start; O(q^3) once."""
        with self._lock:
            if gamma not in self._diagonals:
                problem = None if is_wide(self.context.data) else self.full_data.reduced_problem(gamma).problem
                form = None if problem is None else unit_diagonal(problem)
                self._diagonals[gamma] = None if form is None else form.diagonal
            return self._diagonals[gamma]

    @cached_property
    def left_out(self) -> left_out_folds.LeftOutFolds:
        """The scores of supports with every fold held out of full-data fits; O(n q^2) the first time."""
        return left_out_folds.LeftOutFolds(self.full_data, self.context.folds, self.context.threads)

    def full(self, gamma: int) -> SquaredProblem:
        """Return the problem of the full data at the gamma with an index."""
        return self._make(self, ALL_ROWS, gamma, self.full_data.problem(gamma))

    def fold(self, fold: int, gamma: int) -> SquaredProblem:
        """Return the problem of a fold at the gamma with an index. O(n q^2) for several folds if it is not stored."""
        here = self._fold(fold).with_gamma(float(self.context.grid.gammas[gamma]))
        return self._make(self, fold, gamma, here.problem, here.held_out)

    def held_out_weighted_bounds(self, fold: int) -> HeldOutWeightedBounds:
        """Return the held-out-weighted bounds of a fold; later calls return the same object and continue its trees."""
        grid = self.context.grid
        return self._weighted.setdefault(fold, HeldOutWeightedBounds(grid.gammas, grid.taus))

    def keep_weighted(self, fold: int, known: HeldOutWeightedBounds) -> None:
        """Store the held-out-weighted bounds and trees of a fold."""
        self._weighted[fold] = known

    def _fold(self, fold: int) -> fold_fits.FoldData:
        data, folds = self.context.data, self.context.folds
        with self._lock:
            if fold not in self._folds:
                if fold not in self._moments:
                    self._compute_moments(fold)
                made = fold_fits.FoldData.from_moments(data, folds, fold, self._moments.pop(fold))
                self._folds[fold] = made.keeping(self._kept.setdefault(fold, Kept()))
                while len(self._folds) > self._most:
                    self._folds.popitem(last=False)
            self._folds.move_to_end(fold)
            return self._folds[fold]

    def _compute_moments(self, fold: int) -> None:
        """Compute the training moments of a fold and its neighbours along a tree of additions."""
        n_folds = min(MOMENTS_AT_ONCE, max(self._most // 2, 1))
        first = fold - fold % n_folds
        wanted = [
            later_fold
            for later_fold in range(first, min(first + n_folds, self.context.folds.k))
            if later_fold not in self._folds
        ]
        for later_fold, moments in training_moments(self.context.data, self.context.folds, wanted):
            self._moments[later_fold] = moments
        while len(self._moments) > 2 * n_folds:
            self._moments.popitem(last=False)

    def search_folds(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Clock,
        are_estimates: bool = False,
    ) -> SupportsOfPass:  # fmt: skip
        """Search in all folds and in the full data, and return the supports of the last pass."""
        searched = self._passes.search(gammas, taus, n_passes, n_threads, until, are_estimates)
        return replace(searched, found=tuple(self._fit_again(found, gammas) for found in searched.found))

    def _fit_again(self, found: SupportsFound, gammas: Sequence[int]) -> SupportsFound:
        return found if self._refit is None else self._refit(self, found, gammas)

    def sample_folds(
        self, gammas: Sequence[int], taus: Sequence[int], folds: Sequence[int], full_supports: FullSupports,
        n_threads: int, is_expired: IsExpired,
    ) -> Iterator[SubproblemBounds | tuple[tuple[int, ...], SupportsFound]]:  # fmt: skip
        """Yield the results of a sample of folds: bounds of all folds, or supports of each open fold at some gammas."""
        grid = Grid(self.context.grid.gammas[list(gammas)], self.context.grid.taus[list(taus)])
        sample = SampledFolds(self.context.data, self.context.folds, grid, full_supports, n_threads, is_expired)

        def fit_gamma(place: int) -> left_out_folds.FullFit | None:
            return self.full(gammas[place]).fit_all_columns(full_supports[place], taus)

        others = list(range(len(gammas)))
        for place, bounds in sample.score_left_out(fit_gamma) if self.can_leave_out else ():
            others.remove(place)
            yield from bounds
        if others and len(folds):
            other_pairs = Grid(grid.gammas[others], grid.taus)
            supports = [full_supports[place] for place in others]
            each = SampledFolds(self.context.data, self.context.folds, other_pairs, supports, n_threads, is_expired)
            at = tuple(gammas[place] for place in others)
            yield from ((at, self._fit_again(results, at)) for results in each.search_each(folds))

    @property
    def can_leave_out(self) -> bool:
        """True if folds are small, and the closed form scores every held-out row, which excludes bounds."""
        folds, data = self.context.folds, self.context.data
        is_small = bool(folds.sizes.max() <= LARGEST_FOLD) and data.q <= PATH_TREE_COLUMNS
        return folds.left is None and is_small and data.coefficient_bounds is None

    def clear(self) -> None:
        """Remove all stored folds."""
        self._passes.clear()
        with self._lock:
            for stored in (self._moments, self._folds, self._kept, self._weighted):
                stored.clear()
            self.__dict__.pop("left_out", None)

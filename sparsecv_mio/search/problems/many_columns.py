"""Problems with squared-error loss and very many columns, computed without the Gram matrix of all columns.

For each size, a relaxation computed from the rows bounds the objective and screens columns
(:class:`~sparsecv_mio.bounds.wide.WideFold`). If few columns remain, their Gram matrix is computed, and trees or an
external solver solve the size. Otherwise a tree computed from the rows solves the size.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import PRODUCTS_KEPT, SPECTRUM_WORK, WideRows
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.near_ties import MioSettings, VendorListing
from sparsecv_mio.parallel import Clock, Moment
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns, gamma_to_lam, strip_forced_columns
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.search.problems import fold_fits
from sparsecv_mio.search.problems.all_rows import WideTraining, limit_matrix_columns, make_problem_of_columns
from sparsecv_mio.search.problems.fold_fits import enclose_held_out
from sparsecv_mio.search.problems.protocol import (
    Capability,
    Enclosed,
    Fits,
    FoldProblem,
    IsExpired,
    Problems,
    SupportsOfPass,
)
from sparsecv_mio.search.problems.support_searches import FoldPasses
from sparsecv_mio.search.state.cells import ALL_ROWS, locate_supports
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.thresholds import EXACT_COLUMNS, PRODUCT_BYTES
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets, join_sizes
from sparsecv_mio.units import TIE_RTOL
from sparsecv_mio.words import NATIVE, Method

WIDEST_GAP = 0.15  # relative gap of a relaxation beyond which its bounds on predictions were never of use


@dataclass(frozen=True, eq=False)
class RowsProblem(FoldProblem):
    """The training rows of a fold with its held-out rows, or the full data, at one gamma.

    Every call starts from the rows, so that its result does not depend on other calls.

    Attributes
    ----------
    store : RowBasedProblems
        Data that problems share.
    fold : int
        Index of the fold, `ALL_ROWS` for the full data.
    gamma : int
        Index of the gamma.
    """

    store: RowBasedProblems
    fold: int
    gamma: int

    @property
    def capabilities(self) -> Capability:
        """Capabilities of the problem beyond `solve`, `fit` and `enclose`."""
        if self.fold != ALL_ROWS:
            return Capability.NONE
        return Capability.FOLD_SEARCHES | Capability.SCREENED_TREES | Capability.HOLD_OUT

    @property
    def data(self) -> StandardData:
        """The data with all columns."""
        return self.store.context.data

    @property
    def value_of_gamma(self) -> float:
        """Value of gamma."""
        return float(self.store.context.grid.gammas[self.gamma])

    @property
    def training_rows(self) -> IntArray:
        """Indices of the training rows."""
        return self.store.training_rows(self.fold)

    @cached_property
    def rows(self) -> WideRows:
        """Training and held-out rows in units of the penalty. O(n q) if they are not stored."""
        return self.store.rows(self.fold, self.gamma)

    def has_one_support(self, size: int) -> bool:
        """Return True if a size has one possible support: all columns, or the columns in every support."""
        return self.data.choice.has_one_support(size)

    # -- supports and lower bounds ------------------------------------------------------------------------------------

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve sizes one by one: a relaxation, then trees; with node limit 0 by forward selection alone."""
        solved = {size: self._solve_single(size) for size in sizes if self.has_one_support(size)}
        others = [size for size in sizes if size not in solved]
        if others:
            store, wide = self.store, WideFold(self.rows, is_expired)
            wide.try_supports(warm_starts)
            if not node_limit or any(wide.incumbent(size) is None for size in others):
                wide.search(others)
            gamma, grows_trees = self.value_of_gamma, store.most_columns > 0 and store.vendor is None
            training = WideTraining(self.data, self.training_rows, gamma, wide, store.most_columns, grows_trees)
            for size in others:
                cutoff = (cutoffs or {}).get(size, np.inf)
                solved[size] = training.solve_size(size, node_limit, cutoff, self._solve_columns)
        return join_sizes([solved[size] for size in sizes])

    def _solve_single(self, size: int) -> BestSubsets:
        """Return the only support of a size."""
        choice = self.data.choice
        support = np.arange(self.data.q) if choice.size(size) else np.asarray(choice.forced, dtype=np.int64)
        fits = self.fit([support])
        lower, upper = max(float(fits.objective_lower[0]), 0.0), float(fits.objective_upper[0])
        subset = BestSubset(size, support, min(lower, upper), upper, (support,), (), 0.0, True, branched=False)
        return BestSubsets({size: subset}, 0, finished=True)

    def _solve_columns(
        self, problem: SparseProblem, sizes: list[int], warm_starts: list[IntArray], is_expired: IsExpired,
        **limits: Any,
    ) -> BestSubsets:  # fmt: skip
        """Solve a size on the columns left by screening: in folds by the vendor's solver, if there is one."""
        context, vendor = self.store.context, self.store.vendor
        if vendor is not None and problem.q > problem.choice.n_columns(sizes[0]) and self.fold != ALL_ROWS:
            reduced = eliminate_forced_columns(problem)
            supports = strip_forced_columns(reduced.choice, warm_starts)
            solved = vendor.solve(reduced.problem, reduced.choice.size(sizes[0]), supports)
            return solved.add_forced_columns(reduced.choice.size, reduced.choice.make_support, sizes)
        until = Moment(is_expired, context.deadline.remaining_seconds)
        return context.hands.do(solve_path, problem, sizes, warm_starts=warm_starts, until=until, **limits)

    # -- fits and held-out losses -------------------------------------------------------------------------------------

    def _make_fold(self, columns: IntArray) -> fold_fits.FoldData:
        """Return the fold on some ascending columns, by their Gram matrix."""
        small, problem = make_problem_of_columns(self.data, self.training_rows, self.value_of_gamma, columns)
        held_out = fold_fits.HeldOutFold(small, self.store.context.folds, self.fold, problem)
        return fold_fits.FoldData(problem, held_out)

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports from the Gram matrix of their columns, or from the rows if the matrix loses digits."""
        columns = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *supports]))
        if self.fold == ALL_ROWS:
            problem = make_problem_of_columns(self.data, self.training_rows, self.value_of_gamma, columns)[1]
            fits = fit_from_moments(problem, locate_supports(columns, supports))
            value, error, unknown = fits.value, fits.value_error, np.full(len(supports), np.nan)
            none = np.zeros(len(supports), dtype=bool)
            return Fits(supports, value - error, value + error, unknown, unknown, unknown, value, none)
        return replace(self._make_fold(columns).fit(locate_supports(columns, supports)), supports=supports)

    def score(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports; bounds on held-out losses add no cost to the fits."""
        return self.fit(supports)

    def enclose(
        self, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], is_expired: IsExpired,
        relaxes: bool = True,
    ) -> Enclosed:  # fmt: skip
        """Bound held-out losses on the columns left by screening: by their Gram matrix if few, else by rows."""
        ends = [
            self._enclose_size(size, float(upper), support, is_expired)
            for size, upper, support in zip(sizes, objective_upper, supports, strict=True)
        ]
        return Enclosed(*np.array(ends).reshape(-1, 3).T)

    def _enclose_size(
        self, size: int, objective_upper: float, support: IntArray, is_expired: IsExpired
    ) -> tuple[float, float, float]:  # fmt: skip
        """Return bounds on the held-out loss, and a lower bound on the objective."""
        key = self.fold, self.gamma, size, objective_upper, support.tobytes()
        enclosure = self.store.enclosed.get(key)
        if enclosure is not None or is_expired() or self.has_one_support(size):
            return enclosure or (0.0, np.inf, 0.0)
        wide = WideFold(self.rows, is_expired)
        wide.try_supports([support])
        survivors = wide.survivors(size)
        ends = 0.0, np.inf, survivors.lower
        if len(survivors.columns) <= EXACT_COLUMNS:
            here = self._make_fold(survivors.columns)
            places = locate_supports(survivors.columns, [support])
            ball = enclose_held_out(here, [size], np.array([objective_upper]), places or [support[:0]], bool(places))
            ends = float(ball.lower[0]), float(ball.upper[0]), max(float(ball.objective_lower[0]), survivors.lower)
        elif survivors.upper - survivors.lower <= WIDEST_GAP * survivors.upper:
            (cell,) = wide.cells([size])
            ends = float(cell.lower), float(cell.upper), max(float(cell.objective_lower), survivors.lower)
        if not is_expired():
            self.store.enclosed[key] = ends
        return ends

    def hold_out(self, support: IntArray, is_expired: IsExpired) -> tuple[FloatArray, FloatArray]:
        """Return (K,) upper bounds on objectives and (K,) held-out losses of a support fitted in every fold."""
        context, columns = self.store.context, np.sort(support)
        small, every = self.data.only(columns), np.arange(len(columns))
        upper, held_out = np.full(context.folds.k, np.inf), np.full(context.folds.k, np.nan)
        for fold, moments in training_moments(small, context.folds):
            here = fold_fits.FoldData.from_moments(small, context.folds, fold, moments)
            fits = here.with_gamma(self.value_of_gamma).fit([every])
            upper[fold], held_out[fold] = fits.objective_upper[0] * (1.0 + TIE_RTOL), fits.held_out[0]
            if is_expired():
                break
        return np.where(np.isfinite(upper), upper, np.inf), held_out


class RowBasedProblems(Problems):
    """The problems by fold and gamma. Each copies its rows; few copies are stored. Safe to use from several threads.

    Parameters
    ----------
    context : Context
        Data, grid, folds and limits of the search.
    mio : MioSettings, optional
        Settings of the backend that solves a fold on the screened columns; trees of this package by default.
    branches : bool
        False to bound sizes without trees.
    words : str
        Name of the solver in words.
    """

    name = "by rows"

    def __init__(
        self, context: Context, mio: MioSettings | None = None, branches: bool = True, words: str = "trees"
    ) -> None:
        self.context = context
        self.engine = f"by rows, {words}"
        is_native = mio is None or mio.uses_native_backend
        self.vendor = None if mio is None or is_native else VendorListing(mio, context.deadline)
        targets = context.data.targets(slice(None))
        self.slip = ROWS_ROUNDING * float(targets @ targets)
        self.most_columns = (limit_matrix_columns(context.threads) if is_native else EXACT_COLUMNS) if branches else 0
        self._most = max(context.threads, PRODUCT_BYTES // 2 // (8 * context.data.n * context.data.q + PRODUCTS_KEPT))
        self._passes = FoldPasses(context.data, context.folds, context.grid, context.hands, context.starts)
        self._stored: OrderedDict[tuple[int, int], WideRows] = OrderedDict()
        self._largest: dict[int, float] = {}  # by fold, at gamma 2: upper bound on the largest eigenvalue of the rows
        self.enclosed: dict[tuple[int, int, int, float, bytes], tuple[float, float, float]] = {}
        self._lock = threading.Lock()

    def full(self, gamma: int) -> RowsProblem:
        """Return the problem of the full data at the gamma with an index."""
        return RowsProblem(self, ALL_ROWS, gamma)

    def fold(self, fold: int, gamma: int) -> RowsProblem:
        """Return the problem of a fold at the gamma with an index."""
        return RowsProblem(self, fold, gamma)

    def training_rows(self, fold: int) -> IntArray:
        """Return the indices of the training rows of a fold, or of the full data."""
        return np.arange(self.context.data.n) if fold == ALL_ROWS else self.context.folds.train_rows(fold)

    def rows(self, fold: int, gamma: int) -> WideRows:
        """Return rows in units of the penalty. O(n q) if they are not stored, and O(n^2 q) the first time."""
        data, folds, key = self.context.data, self.context.folds, (fold, gamma)
        with self._lock:
            if key in self._stored:
                self._stored.move_to_end(key)
                return self._stored[key]
            while len(self._stored) >= self._most:  # free memory before another copy is made
                self._stored.popitem(last=False)
        rows, value = self.training_rows(fold), float(self.context.grid.gammas[gamma])
        held_out = rows[:0] if fold == ALL_ROWS else folds.scored_rows(fold)
        made = WideRows.from_data(data, rows, held_out, value, self._largest_eigenvalue(fold, value))
        with self._lock:
            return self._stored.setdefault(key, made)

    def _largest_eigenvalue(self, fold: int, gamma: float) -> float | None:
        """Return an upper bound on the largest eigenvalue of the row products, in units of a penalty; None if quick."""
        data, rows = self.context.data, self.training_rows(fold)
        if len(rows) ** 2 * data.q > SPECTRUM_WORK:
            return None
        if fold not in self._largest:
            self._largest[fold] = WideRows.from_data(data, rows, rows[:0], 2.0).largest
        return self._largest[fold] / gamma_to_lam(gamma) * (1.0 + 1e-12)

    def search_folds(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Clock,
        are_estimates: bool = False,
    ) -> SupportsOfPass:  # fmt: skip
        """Search in all folds and in the full data, and return the supports of the last pass."""
        return self._passes.search(gammas, taus, n_passes, n_threads, until, are_estimates)

    def clear(self) -> None:
        """Remove all stored rows."""
        self._passes.clear()
        with self._lock:
            self._stored.clear()
            self.enclosed.clear()


def make_row_based_problems(context: Context) -> RowBasedProblems:
    """Return the problems of a question with very many columns.

    Parameters
    ----------
    context : Context
        Context whose request names the backend and the method, which decides whether trees solve sizes.
    """
    request = context.request
    mio = MioSettings(request.backend or NATIVE, request.formulation, request.mio_budget, request.solver_option or ())
    get_backend(mio.backend).check_available()
    words = f"{request.method_used} on {mio.backend}"
    return RowBasedProblems(context, mio, request.method_used != Method.BOUNDS, words)


def limit_threads(data: StandardData, n_threads: int) -> int:
    """Return the number of threads that may each store copies of the rows.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    n_threads : int
        Maximum number of threads.
    """
    each = 2 * 8 * data.n * data.q
    return max(1, min(n_threads, PRODUCT_BYTES // max(each, 1)))

"""Squared-error problems that are solved one size at a time, because of an external solver or of restrictions.

Four kinds of restrictions are supported: at most k columns of a group; a column only together with its parents; signs
of coefficients; all levels of a factor or none. Bounds that hold only for the best unrestricted support are not used.
In particular, no unrestricted support is used for screening or as an upper bound. Three bounds hold for any
restrictions on supports and coefficients (docs/theory.md, "Restrictions"). The first is the training-loss bound,
computed from the minimum of the full-data objective under the restrictions. The second is the ridge ball of all b with
`f(b) <= u`, where f is the training objective and u the objective of an allowed support. The third bound is exact: it
is computed from the fit of a given support.

A problem with bounds on coefficients and few columns is solved by a single branch-and-bound tree, which covers all
support sizes and only coefficients within the bounds. With more columns, the trees for models without bounds come
first. The minimum without bounds on coefficients is at most the minimum within bounds. Therefore every lower bound on
the minimum without bounds, also with weighted held-out rows, is a lower bound on the minimum within bounds. Bounds on
held-out losses hold for every model whose objective is at most that of a known support fitted within the bounds on
coefficients. A tree that ignores the bounds on coefficients lists all supports whose objective without these bounds is
at most a cutoff. If one of the listed supports, fitted within the bounds, also has an objective of at most the cutoff,
the best support within the bounds is in the list, and the size is solved. Otherwise a restricted tree follows. Closed
forms that remove the held-out rows from a fit are not used, because they ignore the bounds on coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BackendFailed, BadInput
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.near_ties import MioSettings, RestrictedListing, SolverClock, VendorListing, joined_lists
from sparsecv_mio.problem.constraints import FREE, SideConstraints, constraints_of
from sparsecv_mio.problem.problem import eliminate_forced_columns, strip_forced_columns
from sparsecv_mio.problem.refit import find_wrong_signs, refit_squares
from sparsecv_mio.search.problems.all_rows import check_restrictions
from sparsecv_mio.search.problems.columns_at_zero import ColumnsAtZero
from sparsecv_mio.search.problems.protocol import Capability, Enclosed, IsExpired, SupportsFound
from sparsecv_mio.search.problems.squared import SquaredProblem, SquaredProblems
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.restricted_tree import can_solve_sizes_together, solve_with_constraints
from sparsecv_mio.trees.subsets import MOST_NODES, UNLIMITED, BestSubset, BestSubsets, join_sizes
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, MOMENTS_RTOL, ROUNDING, TIE_RTOL

UNUSED = Capability.LEFT_OUT_FITS | Capability.FOLD_RELAXATIONS  # they fit supports without the bounds


def _complete_list(
    listing: BestSubsets, size: int, warm_starts: Sequence[IntArray], grow_trees: Callable[..., BestSubsets]
) -> BestSubsets:
    """Return the near ties of a size that a solver listed; trees of this package complete a list that stays open."""
    subset = listing.by_size[size]
    if subset.complete or not listing.finished:
        return listing
    own = grow_trees([size], [subset.support, *warm_starts], MOST_NODES)
    return BestSubsets({size: joined_lists(subset, own.by_size[size])}, listing.nodes + own.nodes, own.finished)


@dataclass(frozen=True, eq=False)
class VendorProblem(SquaredProblem):
    """A fold or the full data, solved by MIOs of a backend if a step sets no limit on nodes.

    A step with a node limit uses a tree of this package, since nodes of solvers are not comparable. On the full data, a
    finite cutoff requests a bound, which is one MIO. The model of the full data is found by trees of this package.

    Attributes
    ----------
    mio : MioSettings
        Settings of the backend.
    """

    mio: MioSettings = MioSettings()

    @property
    def capabilities(self) -> Capability:
        """Capabilities of the squared-error problem except those of shared trees, since each size is a separate MIO."""
        return super().capabilities & ~(Capability.SHARED_TREE | Capability.FULL_DATA_RELAXATIONS)

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve some sizes in a fold, or solve or bound sizes of the full data."""
        is_full = self.fold == ALL_ROWS
        asks_bound = any(map(isfinite, (cutoffs or {}).values()))
        if node_limit < UNLIMITED or (is_full and not asks_bound):
            return super().solve(sizes, warm_starts, node_limit, is_expired, cutoffs, n_threads, exchanges)
        if not is_full:
            return join_sizes([self._list_near_ties(size, warm_starts, is_expired) for size in sizes])
        return join_sizes([self._solve_reduced_problem(size, warm_starts, is_expired, True) for size in sizes])

    def _solve_reduced_problem(
        self, size: int, warm_starts: Sequence[IntArray], is_expired: IsExpired, is_bound: bool
    ) -> BestSubsets:
        """List near ties of a size, or bound its optimum, without the forced columns."""
        reduced = eliminate_forced_columns(self.problem)
        listing = VendorListing(self.mio, SolverClock(self.store.context.deadline, is_expired))
        run = listing.bound if is_bound else listing.solve
        try:
            solution = run(
                reduced.problem, reduced.choice.size(size), strip_forced_columns(reduced.choice, list(warm_starts))
            )
        except (BadInput, BackendFailed) as error:
            rows = "all rows" if self.fold == ALL_ROWS else f"fold {self.fold + 1}"
            error.args = (f"tau {size}, gamma {2.0 * self.problem.lam:g}, {rows}: {error}",)
            raise
        return solution.add_forced_columns(reduced.choice.size, reduced.choice.make_support, [size])

    def _list_near_ties(self, size: int, warm_starts: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """List near ties of a size by the solver; trees of this package complete the list if it stays open."""
        listing = self._solve_reduced_problem(size, warm_starts, is_expired, False)
        return _complete_list(listing, size, warm_starts, partial(super().solve, is_expired=is_expired))


@dataclass(frozen=True, eq=False)
class ConstrainedProblem(SquaredProblem):
    """A fold or the full data under restrictions, which trees of restricted supports solve.

    Attributes
    ----------
    constraints : SideConstraints
        Restrictions on supports and coefficients.
    """

    constraints: SideConstraints = FREE

    def _grow_trees(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None,
    ) -> BestSubsets:  # fmt: skip
        data = self.store.context.data
        signs = find_wrong_signs(data, self._rows, 2.0 * self.problem.lam, self.constraints.interval(data.q))
        return solve_with_constraints(
            self.problem, list(sizes), self.constraints, warm_starts=warm_starts, node_limit=node_limit,
            is_expired=is_expired, wrong_signs=signs, cutoffs=cutoffs,
        )  # fmt: skip

    def include_columns_at_zero(self, subsets: Sequence[BestSubset]) -> tuple[Sequence[BestSubset], FloatArray | None]:
        """Return subsets with the candidates that bounds of 0 hide, and changes of predictions (`columns_at_zero`).

        If the columns that a bound of 0 may hold cannot change a held-out loss by more than rounding, a candidate has a
        bound on the change. Otherwise every choice of these columns is a candidate, or the bound is infinite.

        Parameters
        ----------
        subsets : sequence of BestSubset
            Outcomes of trees.
        """
        at_zero = ColumnsAtZero(self.store.context.data, self._rows, self.problem, self.constraints)
        if not at_zero.inward.any():
            return subsets, None
        known = [support for subset in subsets if subset.complete for support in subset.candidates
                 if len(support) < self.constraints.columns(subset.tau) or at_zero.ignores_signs]  # fmt: skip
        unclear = {known[i].tobytes() for i in at_zero.find_unclear(known)} if known else set()
        if not unclear:
            return subsets, None
        found, changes, held_out = list[BestSubset](), list[float](), self._held_out.moments()[0]
        for subset in subsets:
            more, changes_of_subset = self._list_choices(at_zero, subset, unclear, held_out)
            found.append(more)
            changes += changes_of_subset
        return found, np.array(changes)

    def _list_choices(
        self, at_zero: ColumnsAtZero, subset: BestSubset, unclear: set[bytes], held_out: FloatArray
    ) -> tuple[BestSubset, list[float]]:  # fmt: skip
        """Return a subset with the neighbours of unclear candidates, and a bound on the change of each candidate."""
        listed = {tuple(support.tolist()): support for support in subset.candidates if subset.complete}
        if not listed:
            return subset, [0.0]
        own = [self._choose_columns(at_zero, support, subset.tau, held_out)
               if support.tobytes() in unclear else (0.0, []) for support in listed.values()]  # fmt: skip
        for _, supports in own:
            listed |= {tuple(support.tolist()): support for support in supports}
        n_added = len(listed) - len(own)
        values = (*subset.values, *[np.nan] * n_added) if subset.values else ()
        changes = [*(change for change, _ in own), *[0.0] * n_added]
        return replace(subset, candidates=tuple(listed.values()), values=values), changes

    def _choose_columns(
        self, at_zero: ColumnsAtZero, support: IntArray, tau: int, held_out: FloatArray
    ) -> tuple[float, list[IntArray]]:  # fmt: skip
        """Return a bound on the change of a candidate's predictions, or its neighbours if the change may matter."""
        problem, rows = self.problem, self._held_out
        change, columns = at_zero.bound_change(support, tau, held_out)
        loss = float(self.fit([support]).held_out[0])
        effect = change * (2.0 * np.sqrt(loss) + change)
        if effect <= ACCURATE_RTOL * loss or change <= ROUNDING * np.sqrt(problem.yy / problem.total * rows.weight):
            return change, []
        choices = at_zero.list_choices(support, columns, tau)
        if choices is None:
            return (change if effect <= CROSSING_RTOL * loss else np.inf), []
        return 0.0, choices

    @property
    def _rows(self) -> slice | IntArray:
        """Training rows."""
        context = self.store.context
        return slice(0, context.data.n) if self.fold == ALL_ROWS else context.folds.train_rows(self.fold)

    def enclose(
        self, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], is_expired: IsExpired,
        relaxes: bool = False,
    ) -> Enclosed:  # fmt: skip
        """Bound held-out losses by the ridge ball of the fold alone."""
        return super().enclose(sizes, objective_upper, supports, is_expired, relaxes=False)

    def has_one_support(self, size: int) -> bool:
        """Return True for size 0, whose only support is the empty one."""
        return size == 0


@dataclass(frozen=True, eq=False)
class RestrictedProblem(ConstrainedProblem):
    """A fold or the full data under restrictions, solved by restricted trees or by MIOs of a backend.

    Attributes
    ----------
    mio : MioSettings
        Settings of the backend for folds, used if a step sets no limit on nodes.
    """

    mio: MioSettings = MioSettings()

    @property
    def capabilities(self) -> Capability:
        """No capability: a full-data support may violate a sign in a fold, and relaxations ignore the restrictions."""
        return Capability.NONE

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve each size by a separate tree, which visits at least one node, or by the backend."""
        if self.mio.uses_native_backend or node_limit < UNLIMITED or self.fold == ALL_ROWS:
            return self._grow_trees(sizes, warm_starts, node_limit, is_expired)
        return join_sizes([self._list_near_ties(size, warm_starts, is_expired) for size in sizes])

    def _list_near_ties(self, size: int, warm_starts: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """List near ties of a size by the solver; a tree of this package completes the list if it stays open."""
        clock = SolverClock(self.store.context.deadline, is_expired)
        listing = RestrictedListing(self.mio, clock, self.constraints).solve(self.problem, size, warm_starts)
        return _complete_list(listing, size, warm_starts, partial(self._grow_trees, is_expired=is_expired))


def check_side_constraints(context: Context, mio: MioSettings) -> SideConstraints:
    """Return the restrictions of a question; raise `BadInput` if they cannot be searched under.

    Parameters
    ----------
    context : Context
        Data, grid and folds of the search.
    mio : MioSettings
        Settings of the backend, which has to support the restrictions.
    """
    check_restrictions(context.data, context.grid.taus.tolist(), context.folds.k)
    constraints = constraints_of(context.data)
    get_backend(mio.backend).check_takes(mio.formulation, constraints)
    return constraints


@dataclass(frozen=True, eq=False)
class BoundedProblem(ConstrainedProblem):
    """A fold or the full data whose models have bounds on coefficients, and no other restriction beyond forcing."""

    @property
    def capabilities(self) -> Capability:
        """Capabilities of the squared-error problem except those that fit supports without the bounds."""
        return super().capabilities & ~UNUSED

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve all sizes within the bounds, first without the bounds if columns are many."""
        if can_solve_sizes_together(self.problem.q, self.constraints):
            return self._grow_trees(sizes, warm_starts, node_limit, is_expired, cutoffs)
        free = super().solve(sizes, warm_starts, node_limit, is_expired, cutoffs, n_threads, exchanges)
        found = {size: self._fit_candidates(free.by_size[size]) for size in sizes}
        aims = cutoffs or {}
        waiting = [size for size in sizes if not found[size].complete and free.by_size[size].complete
                   and free.by_size[size].lower < aims.get(size, np.inf)]  # fmt: skip
        if not waiting or not node_limit:
            return BestSubsets(found, free.nodes, all(subset.complete for subset in found.values()))
        nodes, finished, last = free.nodes, free.finished, list[IntArray]()
        for size in waiting:
            grown = self._grow_trees([size], [found[size].support, *last], node_limit, is_expired)
            subset, last = grown.by_size[size], [grown.by_size[size].support]
            found[size] = subset if subset.complete else replace(subset, lower=max(subset.lower, found[size].lower))
            nodes, finished = nodes + grown.nodes, finished and grown.finished
        return BestSubsets(found, nodes, finished, free.reused)

    def _fit_candidates(self, free: BestSubset) -> BestSubset:
        """Return the subset within the bounds that follows from the supports of a tree without bounds."""
        supports = free.candidates if free.complete else (free.support,)
        values, errors = self.fit_objectives(supports)
        best = int(np.argmin(values + errors))
        upper = float(values[best] + errors[best])
        limit, copies = free.upper + 0.5 * free.margin, self.problem.copies
        is_tied = free.complete and upper * (1.0 + TIE_RTOL) <= limit
        if copies is not None and np.any(copies >= 0):  # a list contains one duplicate, and another may have no bounds
            is_tied &= bool(np.all(values - errors <= limit))
        if not is_tied:
            return BestSubset.from_bounds(free.tau, supports[best], upper, free.lower)
        listed = np.where(np.abs(values - free.values) <= 0.5 * free.margin, free.values, np.nan) if free.values else ()
        return replace(free, support=supports[best], values=tuple(listed))

    def fit_objectives(self, supports: Sequence[IntArray]) -> tuple[FloatArray, FloatArray]:
        """Return the objectives of supports within the bounds, and bounds on their rounding errors."""
        data = self.store.context.data
        made = fit_from_moments(self.problem, supports, data.coefficient_bounds)
        for i in np.flatnonzero(~(made.value_error <= MOMENTS_RTOL * made.value)).tolist():
            fit = refit_squares(data, self._rows, supports[i], 2.0 * self.problem.lam)
            made.value[i], made.value_error[i] = fit.objective, fit.objective_error
        return made.value, made.value_error


def make_bounded_problems(context: Context, full_data: BestOnAllRows) -> SquaredProblems:
    """Return the problems of a question with bounds on coefficients.

    Parameters
    ----------
    context : Context
        Data, grid, folds and request of the search.
    full_data : BestOnAllRows
        Moments of the full data.
    """
    make = partial(BoundedProblem, constraints=check_side_constraints(context, MioSettings()))
    engine = "trees over the sizes of a gamma, and restricted trees"
    return SquaredProblems(context, full_data, make, "rounds within bounds", engine, _fit_bounded_supports)


def _fit_bounded_supports(problems: SquaredProblems, found: SupportsFound, gammas: Sequence[int]) -> SupportsFound:
    """Return supports with their objectives and held-out losses within the bounds."""
    objective, upper, held_out = np.array([found.objective, found.objective_upper, found.held_out])
    is_known = np.isfinite(upper)
    for i, (g, supports) in enumerate(zip(gammas, found.supports, strict=True)):
        problem = problems.full(g) if found.fold == ALL_ROWS else problems.fold(found.fold, g)
        assert isinstance(problem, BoundedProblem)
        if found.fold == ALL_ROWS:
            objective[i], errors = problem.fit_objectives(supports)
            upper[i] = (objective[i] + errors) * (1.0 + TIE_RTOL)
        else:
            fits = problem.fit(supports)
            objective[i], held_out[i] = fits.objective, fits.held_out
            upper[i] = fits.objective_upper * (1.0 + TIE_RTOL)
    return replace(found, objective=objective, objective_upper=np.where(is_known, upper, np.inf), held_out=held_out)

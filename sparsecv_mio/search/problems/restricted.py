"""Problems with squared-error loss and restrictions on groups, parents or signs, or with all levels of each factor.

Bounds that hold only for the best unrestricted support are not used. Neither relaxations after screening with an
unrestricted support nor supports found without the restrictions enter the bounds. Three bounds hold for any family of
supports and any set of coefficients: the training-loss bound with the restricted minimum of the full data, the ridge
ball around every b with `f(b) <= u`, and the exact fit of a support (docs/theory.md, "Restrictions").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.near_ties import MioSettings, RestrictedListing, SolverClock, joined_lists
from sparsecv_mio.problem.constraints import FREE, SideConstraints, constraints_of
from sparsecv_mio.problem.refit import find_wrong_signs
from sparsecv_mio.search.problems.all_rows import check_restrictions
from sparsecv_mio.search.problems.protocol import Capability, Enclosed, IsExpired
from sparsecv_mio.search.problems.squared import SquaredProblem
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.trees.restricted_tree import solve_with_constraints
from sparsecv_mio.trees.subsets import MOST_NODES, UNLIMITED, BestSubsets


@dataclass(frozen=True, eq=False)
class RestrictedProblem(SquaredProblem):
    """A fold or the full data under restrictions, solved by restricted trees or by MIOs of a backend.

    Attributes
    ----------
    constraints : SideConstraints
        Restrictions on supports and coefficients.
    mio : MioSettings
        Settings of the backend for folds, used if a step sets no limit on nodes.
    """

    constraints: SideConstraints = FREE
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
        listings = [self._list_near_ties(size, warm_starts, is_expired) for size in sizes]
        by_size = {size: some.by_size[size] for size, some in zip(sizes, listings, strict=True)}
        return BestSubsets(by_size, sum(some.nodes for some in listings), all(some.finished for some in listings))

    def _grow_trees(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired
    ) -> BestSubsets:
        data, folds = self.store.context.data, self.store.context.folds
        rows = slice(0, data.n) if self.fold == ALL_ROWS else folds.train_rows(self.fold)
        signs = find_wrong_signs(data, rows, 2.0 * self.problem.lam, self.constraints.interval(data.q))
        return solve_with_constraints(
            self.problem, list(sizes), self.constraints, starts=warm_starts, effort=node_limit, expired=is_expired,
            wrong_signs=signs,
        )  # fmt: skip

    def _list_near_ties(self, size: int, warm_starts: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """List near ties of a size by the solver; a tree of this package completes the list if it stays open."""
        clock = SolverClock(self.store.context.deadline, is_expired)
        listing = RestrictedListing(self.mio, clock, self.constraints).solve(self.problem, size, warm_starts)
        subset = listing.by_size[size]
        if subset.complete or not listing.finished:
            return listing
        own = self._grow_trees([size], [subset.support, *warm_starts], MOST_NODES, is_expired)
        return BestSubsets({size: joined_lists(subset, own.by_size[size])}, listing.nodes + own.nodes, own.finished)

    def enclose(
        self, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], is_expired: IsExpired,
        relaxes: bool = False,
    ) -> Enclosed:  # fmt: skip
        """Bound held-out losses by the ridge ball of the fold alone."""
        return super().enclose(sizes, objective_upper, supports, is_expired, relaxes=False)

    def has_one_support(self, size: int) -> bool:
        """Return True for size 0, whose only support is the empty one."""
        return size == 0


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

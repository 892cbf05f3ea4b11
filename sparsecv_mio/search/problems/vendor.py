"""Problems with squared-error loss that the solver of a vendor solves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.formulation.near_ties import MioSettings, SolverClock, VendorListing, joined_lists
from sparsecv_mio.problem.elimination import eliminate_forced_columns, strip_forced_columns
from sparsecv_mio.search.problems.protocol import Capability, IsExpired
from sparsecv_mio.search.problems.squared import SquaredProblem
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.trees.subsets import MOST_NODES, UNLIMITED, BestSubsets


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
        """Capabilities of the squared-error problem without shared trees, since each size is a separate MIO."""
        return super().capabilities & ~Capability.SHARED_TREE

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
            listed = {size: self._list_near_ties(size, warm_starts, is_expired) for size in sizes}
        else:
            listed = {size: self._solve_reduced_problem(size, warm_starts, is_expired, True) for size in sizes}
        by_size = {size: listing.by_size[size] for size, listing in listed.items()}
        return BestSubsets(
            by_size,
            sum(listing.nodes for listing in listed.values()),
            all(listing.finished for listing in listed.values()),
        )

    def _solve_reduced_problem(
        self, size: int, warm_starts: Sequence[IntArray], is_expired: IsExpired, is_bound: bool
    ) -> BestSubsets:
        """List near ties of a size, or bound its optimum, without the forced columns."""
        reduced = eliminate_forced_columns(self.problem)
        listing = VendorListing(self.mio, SolverClock(self.store.context.deadline, is_expired))
        run = listing.bound if is_bound else listing.solve
        solution = run(
            reduced.problem, reduced.choice.size(size), strip_forced_columns(reduced.choice, list(warm_starts))
        )
        return solution.add_forced_columns(reduced.choice.size, reduced.choice.make_support, [size])

    def _list_near_ties(self, size: int, warm_starts: Sequence[IntArray], is_expired: IsExpired) -> BestSubsets:
        """List near ties of a size by the solver; trees of this package complete the list if it stays open."""
        listing = self._solve_reduced_problem(size, warm_starts, is_expired, False)
        subset = listing.by_size[size]
        if subset.complete or not listing.finished:
            return listing
        own = super().solve([size], [subset.support, *warm_starts], MOST_NODES, is_expired)
        return BestSubsets({size: joined_lists(subset, own.by_size[size])}, listing.nodes + own.nodes, own.finished)

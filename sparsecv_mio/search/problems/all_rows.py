"""Best subsets of training rows by trees of this package: with restrictions, or with very many columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import find_wrong_signs
from sparsecv_mio.problem.training_moments import moments_of_training
from sparsecv_mio.search.problems.protocol import IsExpired
from sparsecv_mio.search.state.cells import locate_supports
from sparsecv_mio.thresholds import EXACT_COLUMNS, PRODUCT_BYTES, TREE_MATRICES, has_large_matrices
from sparsecv_mio.trees.allowed_supports import Family
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.listing import NODE_RATIO
from sparsecv_mio.trees.restricted_tree import solve_with_constraints
from sparsecv_mio.trees.subsets import FIRST_LOOK, ROUND_GROWTH, BestSubset, BestSubsets, join_sizes
from sparsecv_mio.units import TIE_RTOL

MATRIX_NODES = FIRST_LOOK * ROUND_GROWTH  # node limit from which a matrix of over `EXACT_COLUMNS` columns saves time


def limit_matrix_columns(n_threads: int) -> int:
    """Return the number of columns whose Gram matrices, one for each thread, fit in memory with their trees."""
    return max(EXACT_COLUMNS, int(np.sqrt(PRODUCT_BYTES / (8.0 * TREE_MATRICES * n_threads))))


def make_problem_of_columns(
    data: StandardData, rows: IntArray, gamma: float, columns: IntArray
) -> tuple[StandardData, SparseProblem]:
    """Return the problem of training rows on some ascending columns, by their Gram matrix, and the data of these."""
    small = data.only(columns)
    return small, moments_of_training(small, rows).problem(small, gamma)


@dataclass(frozen=True, eq=False)
class WideTraining:
    """Training rows with very many columns at one gamma, and the solution of one size of them.

    Attributes
    ----------
    data : StandardData
        Data with all columns.
    rows : int array
        Indices of the training rows.
    gamma : float
        Ridge weight.
    wide : WideFold
        Relaxations and trees of these rows.
    most_columns : int
        Number of columns left by screening up to which their Gram matrix is computed; 0 to stop at the relaxation.
    grows_trees : bool
        True to grow trees on the rows.
    """

    data: StandardData
    rows: IntArray
    gamma: float
    wide: WideFold
    most_columns: int
    grows_trees: bool = True

    @classmethod
    def from_full_data(cls, data: StandardData, gamma: float, is_expired: IsExpired) -> WideTraining:
        """Return all rows. O(n^2 q).

        Parameters
        ----------
        data : StandardData
            Data in standard coordinates.
        gamma : float
            Ridge weight.
        is_expired : callable
            Function that returns True to end computations on the rows early.
        """
        rows = np.arange(data.n)
        wide = WideFold(WideRows.from_data(data, rows, rows[:0], gamma), is_expired)
        return cls(data, rows, gamma, wide, limit_matrix_columns(1))

    def solve_size(
        self, size: int, node_limit: int, cutoff: float = np.inf, solve_columns: Callable[..., BestSubsets] = solve_path
    ) -> BestSubsets:
        """Bound a size by a relaxation, then by a tree; the tree grows on the screened columns if these are few.

        Parameters
        ----------
        size : int
            Size.
        node_limit : int
            Node limit of a tree; 0 for the best known support alone.
        cutoff : float
            Lower bound from which more work has no use.
        solve_columns : callable
            Function with the parameters of `solve_path` that solves the columns left by screening.
        """
        if not node_limit:
            return self._stop(size, 0.0)
        wide = self.wide
        survivors, n_nodes, is_ended = wide.survivors(size), 0, not self.grows_trees
        if survivors.lower >= cutoff or wide.is_expired():
            return self._stop(size, survivors.lower)
        most = min(self.most_columns, EXACT_COLUMNS) if node_limit < MATRIX_NODES else self.most_columns
        if self.grows_trees and len(survivors.columns) > EXACT_COLUMNS:
            # a short tree may make the matrix needless
            tree_limit = MATRIX_NODES // ROUND_GROWTH if len(survivors.columns) <= most else node_limit
            tree_limit = max(tree_limit // NODE_RATIO, 1)
            branched, n_nodes = wide.branch(size, cutoff, tree_limit)
            survivors = replace(branched, lower=max(survivors.lower, branched.lower))
            is_ended = n_nodes < tree_limit and cutoff == np.inf and not wide.is_expired()
        is_few = len(survivors.columns) <= max(most, wide.rows.choice.n_columns(size))
        if not is_few or survivors.lower >= cutoff or wide.is_expired():
            return self._stop(size, survivors.lower, n_nodes, is_ended)
        problem = make_problem_of_columns(self.data, self.rows, self.gamma, survivors.columns)[1]
        support = wide.incumbent(size)
        starts = [] if support is None else locate_supports(survivors.columns, [support])
        cutoffs = None if cutoff == np.inf else {size: cutoff}
        solved = solve_columns(
            problem, [size], warm_starts=starts, node_limit=node_limit, is_expired=wide.is_expired, cutoffs=cutoffs
        ).map_to_columns(survivors.columns)
        subset = solved.by_size[size]
        if not subset.complete:
            subset = replace(subset, lower=min(max(subset.lower, survivors.lower), subset.upper))
        return replace(solved, by_size={size: subset}, nodes=n_nodes + solved.nodes)

    def _stop(self, size: int, lower: float, n_nodes: int = 0, is_finished: bool = False) -> BestSubsets:
        """Return the best known support of a size with an upper bound on its objective, and a lower bound."""
        rows, support = self.wide.rows, self.wide.incumbent(size)
        if support is None:  # the time expired before a support was found
            top = max(self.wide.known.support, default=0)
            columns = self.wide.known.support.get(top, np.zeros(0, dtype=np.int64))
            by_gain = np.argsort(-(rows.c**2 / rows.square), kind="stable")
            columns = np.concatenate([columns, by_gain[~np.isin(by_gain, columns)]])[: rows.choice.size(size)]
            support = rows.choice.make_support(np.sort(columns))
        problem = make_problem_of_columns(self.data, self.rows, self.gamma, support)[1]
        fits = fit_from_moments(problem, [np.arange(len(support))])
        upper = float(fits.value[0] + fits.value_error[0]) * (1.0 + TIE_RTOL)
        upper = upper if np.isfinite(upper) else np.inf  # also of optima tied with the support
        subset = BestSubset.from_bounds(size, support, upper, min(lower, upper))
        return BestSubsets({size: subset}, n_nodes, is_finished)


def check_restrictions(data: StandardData, taus: list[int], folds: int) -> None:
    """Raise `BadInput` if restrictions cannot be searched under, or no model of some size satisfies them.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates, with their restrictions.
    taus : list of int
        Sizes to check.
    folds : int
        Number of folds.
    """
    kinds = data.restrictions.side_constraints
    if kinds and has_large_matrices(data, folds):
        raise BadInput(
            f"{kinds[0]}: not supported with {data.q} features, because their Gram matrix does not fit in "
            "memory; drop columns"
        )
    for tau in taus if kinds else []:
        Family.require_support(data.q, tau, constraints_of(data))


def solve_all_rows(
    data: StandardData,
    gamma: float,
    problem: SparseProblem | None,
    taus: list[int],
    starts: list[IntArray],
    node_limit: int,
    is_expired: Callable[[], bool],
) -> BestSubsets:
    """Find the best supports of some sizes of the full data by trees of this package, with or without a Gram matrix.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates, with their restrictions.
    gamma : float
        Ridge weight.
    problem : SparseProblem or None
        Problem of these data at `gamma`; None if there are too many columns for a Gram matrix.
    taus : list of int
        Sizes to solve; without a Gram matrix each size has a separate start.
    starts : list of int arrays
        Supports to try first.
    node_limit : int
        Node limit of a tau.
    is_expired : callable
        Function that returns True to end the search with its present supports.
    """
    if problem is None:
        whole = WideTraining.from_full_data(data, gamma, is_expired)
        whole.wide.search(taus)
        return join_sizes([whole.solve_size(tau, node_limit) for tau in taus])
    if not data.restrictions.side_constraints:
        return solve_path(problem, taus, warm_starts=starts, node_limit=node_limit, is_expired=is_expired)
    constraints = constraints_of(data)
    signs = find_wrong_signs(data, slice(0, data.n), 2.0 * problem.lam, constraints.interval(data.q))
    return solve_with_constraints(
        problem, taus, constraints, warm_starts=starts, node_limit=node_limit, is_expired=is_expired, wrong_signs=signs
    )

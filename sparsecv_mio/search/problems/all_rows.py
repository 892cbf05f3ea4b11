"""Best subsets of the full data by trees of this package: with restrictions, or with very many columns."""

from __future__ import annotations

from collections.abc import Callable

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import find_wrong_signs
from sparsecv_mio.search.problems.by_rows import WideTraining
from sparsecv_mio.thresholds import has_large_matrices
from sparsecv_mio.trees.allowed_supports import Family
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.restricted_tree import solve_with_constraints
from sparsecv_mio.trees.subsets import BestSubsets, join_sizes


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
            f"{kinds[0]}: not supported with {data.q} features, because their products do not fit in "
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

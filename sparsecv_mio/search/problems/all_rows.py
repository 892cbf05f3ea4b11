"""Best subsets of the full data by trees of this package: with restrictions, or with very many columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import find_wrong_signs
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search.state.cells import locate_supports
from sparsecv_mio.thresholds import PART_COLUMNS, has_large_matrices
from sparsecv_mio.trees.allowed_supports import Family
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.restricted_tree import solve_with_constraints
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset, BestSubsets


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


def solve_any(
    data: StandardData,
    problem: SparseProblem,
    taus: list[int],
    starts: list[IntArray],
    node_limit: int,
    is_expired: Callable[[], bool],
) -> BestSubsets:
    """Find the best supports of some sizes by trees of this package, under the restrictions of the data.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates, with their restrictions.
    problem : SparseProblem
        Problem of these data.
    taus : list of int
        Sizes to solve.
    starts : list of int arrays
        Supports to try first.
    node_limit : int
        Node limit of a tau.
    is_expired : callable
        Function that returns True to end the search with its present supports.
    """
    if not data.restrictions.side_constraints:
        return solve_path(problem, taus, warm_starts=starts, node_limit=node_limit, is_expired=is_expired)
    constraints = constraints_of(data)
    signs = find_wrong_signs(data, slice(0, data.n), 2.0 * problem.lam, constraints.interval(data.q))
    return solve_with_constraints(
        problem, taus, constraints, warm_starts=starts, node_limit=node_limit, is_expired=is_expired, wrong_signs=signs
    )


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
    data, taus, starts, node_limit, is_expired
        Parameters of :func:`solve_any`; without a Gram matrix each size has a separate start.
    gamma : float
        Ridge weight.
    problem : SparseProblem or None
        Problem of these data at `gamma`; None if there are too many columns for a Gram matrix.
    """
    if problem is not None:
        return solve_any(data, problem, taus, starts, node_limit, is_expired)
    whole = make_full_data_fold(data, gamma, is_expired)
    whole.search(taus)
    each = [solve_by_rows(data, whole, tau, gamma, is_expired, node_limit) for tau in taus]
    cells = {tau: solved.by_size[tau] for tau, solved in zip(taus, each, strict=True)}
    return BestSubsets(cells, sum(solved.nodes for solved in each), all(solved.finished for solved in each))


def make_full_data_fold(data: StandardData, gamma: float, is_expired: Callable[[], bool]) -> WideFold:
    """Return the rows of the full data at a gamma, none held out. O(n^2 q).

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
    return WideFold(WideRows.from_data(data, rows, rows[:0], gamma), is_expired)


def solve_by_rows(
    data: StandardData,
    whole: WideFold,
    tau: int,
    gamma: float,
    is_expired: Callable[[], bool],
    node_limit: int = UNLIMITED,
) -> BestSubsets:
    """Find the best subset of one size of the full data; by a tree on the rows if screening leaves many columns.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    whole : WideFold
        Rows of the full data at `gamma`.
    tau : int
        Size.
    gamma : float
        Ridge weight.
    is_expired : callable
        Function that returns True to end the search with its present bounds.
    node_limit : int
        Node limit, as for `solve_path`.
    """
    seen, nodes = whole.survivors(tau), 0
    if len(seen.columns) > PART_COLUMNS and not is_expired():
        branched, nodes = whole.branch(tau, most=node_limit)
        seen = replace(branched, lower=max(branched.lower, seen.lower))
    support = whole.incumbent(tau)
    start = support if support is not None else np.zeros(0, dtype=np.int64)
    cell = BestSubset.from_bounds(tau, start, lower=seen.lower)
    if len(seen.columns) > PART_COLUMNS or is_expired():
        return BestSubsets({tau: cell}, nodes, False)
    small = data.only(seen.columns)
    problem = row_moments(small, slice(0, data.n)).problem(small, gamma)
    starts = locate_supports(seen.columns, [support] if support is not None else [])
    result = solve_path(
        problem, [tau], warm_starts=starts, node_limit=node_limit, is_expired=is_expired
    ).map_to_columns(seen.columns)
    cell = result.by_size[tau]
    if not cell.complete:
        result.by_size[tau] = replace(cell, lower=max(cell.lower, seen.lower))
    return replace(result, nodes=result.nodes + nodes)

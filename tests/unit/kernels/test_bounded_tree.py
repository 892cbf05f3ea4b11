"""The tree over all sizes within bounds against an enumeration of supports and faces of the box."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from sparsecv_mio.kernels import bounded_tree
from sparsecv_mio.kernels.nodes import FREE
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.restricted_tree import solve_with_constraints

FITS = dict[tuple[int, ...], tuple[float, np.ndarray]]  # objective and coefficients by support


def draw_problem(seed: int) -> tuple[SparseProblem, SideConstraints]:
    """Return a problem of up to eight columns, with bounds of every kind, some of them active, and forced columns."""
    rng = np.random.default_rng([7, seed])
    q = int(rng.integers(1, 8))
    X = rng.normal(size=(20, q)) @ (np.eye(q) + rng.choice([0.0, 0.5, 2.0]) * rng.normal(size=(q, q)))
    y = X @ rng.normal(size=q) + rng.normal(size=20) * rng.choice([0.1, 1.0, 5.0])
    lam = float(rng.choice([1e-6, 0.1, 5.0]))
    problem = SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), lam, 20, np.zeros(q), 0.0)
    plain = np.linalg.solve(problem.Q + np.diag(problem.penalty), problem.c)
    box = []
    for j in range(q):
        a = float(plain[j])
        ends = [(0.0, np.inf), (-np.inf, 0.0), (min(a, 0.0) / 2, max(a, 0.0) / 2), (-abs(a) / 2, abs(a) / 2),
                (min(1.2 * a, 3 * a), max(1.2 * a, 3 * a)), (a / 2, a / 2)][int(rng.integers(6))]  # fmt: skip
        if rng.random() < (0.7, 1.0)[seed % 2]:
            box.append((j, *ends))
    drawn = rng.permutation(q).tolist()
    forced, out = drawn[: int(seed % 5 == 4 and q > 2)], drawn[q - int(seed % 7 == 6 and q > 3) :]
    return problem, SideConstraints(forced_in=tuple(forced), forced_out=tuple(out), box=tuple(box))


def fit_all(problem: SparseProblem, constraints: SideConstraints) -> FITS:
    """Return the fit of every allowed support, by SciPy's least squares within bounds."""
    lo, hi = constraints.interval(problem.q)
    fits: FITS = {}
    for size in range(problem.q + 1):
        for S in map(list, combinations(range(problem.q), size)):
            if constraints.allows(S, problem.q):
                M, b = problem.Q[np.ix_(S, S)] + np.diag(problem.penalty[S]), np.zeros(size)
                free = [a for a in range(size) if lo[S[a]] < hi[S[a]]]
                b[:] = np.clip(0.0, lo[S], hi[S])
                if free:
                    held = [a for a in range(size) if a not in free]
                    L = np.linalg.cholesky(M[np.ix_(free, free)])
                    target = np.linalg.solve(L, problem.c[S][free] - M[np.ix_(free, held)] @ b[held])
                    ends = lo[S][free], hi[S][free]
                    b[free] = lsq_linear(L.T, target, ends, method="bvls", tol=1e-15).x
                fits[tuple(S)] = float(problem.yy + b @ M @ b - 2.0 * problem.c[S] @ b), b
    return fits


@pytest.mark.parametrize("seed", [*range(50), 564, 758])
def test_tree_lists_every_best_support(seed: int) -> None:
    problem, constraints = draw_problem(seed)
    q, n_forced = problem.q, len(constraints.forced_in)
    lo, hi = constraints.interval(q)
    fits, taus = fit_all(problem, constraints), list(range(n_forced, q + 1))
    solved = solve_with_constraints(problem, taus, constraints)
    assert solved.finished
    for tau in taus:
        subset, least = solved.by_size[tau], min(f for S, (f, _) in fits.items() if len(S) <= tau)
        assert subset.complete and subset.upper == pytest.approx(least, rel=1e-9, abs=1e-9 * problem.yy)
        assert subset.lower <= least + 1e-9 * problem.yy
        listed = {tuple(support.tolist()) for support in subset.candidates}
        for S, (f, b) in fits.items():
            if len(S) <= tau and f <= least + 1e-12 * problem.yy:
                active = tuple(j for j, x in zip(S, b, strict=True) if 0.0 not in (lo[j], hi[j]) or abs(x) > 1e-9)
                assert active in listed, (tau, S, listed)


# 493, 634, 687: a column inside its interval was taken to be at a bound; 1285: a bound fell short of its cutoff
@pytest.mark.parametrize("seed", [*range(25), 493, 634, 687, 1285])
def test_bounds_of_a_paused_tree_and_of_cutoffs(seed: int) -> None:
    problem, constraints = draw_problem(seed)
    q, n_forced = problem.q, len(constraints.forced_in)
    fits, taus = fit_all(problem, constraints), list(range(n_forced, q + 1))
    least = {tau: min(f for S, (f, _) in fits.items() if len(S) <= tau) for tau in taus}
    starts = [np.flatnonzero(row) for row in np.random.default_rng(seed).random((3, q)) < 0.5] if seed % 2 else []
    for limit in (1, 2, 4):
        paused = solve_with_constraints(problem, taus, constraints, warm_starts=starts, node_limit=limit)
        for tau, subset in paused.by_size.items():
            assert subset.lower <= least[tau] + 1e-9 * problem.yy <= subset.upper + 2e-9 * problem.yy
            support = {*subset.support.tolist(), *constraints.forced_in}  # a forced column at 0 is not named
            assert subset.upper == pytest.approx(fits[tuple(sorted(support))][0], rel=1e-9, abs=1e-9 * problem.yy)
    for share in (0.5, 0.99, 1.01):
        goals = {tau: share * f for tau, f in least.items()}
        bounded = solve_with_constraints(problem, taus, constraints, cutoffs=goals)
        for tau, subset in bounded.by_size.items():
            assert subset.lower <= least[tau] + 1e-9 * problem.yy
            assert subset.complete or subset.lower >= goals[tau] * (1.0 - 1e-6) - 1e-9 * problem.yy
            assert subset.complete or share < 1.0


def test_one_column_within_its_interval() -> None:
    M, c, ends = np.array([[2.0]]), np.array([3.0]), (np.zeros(1), np.ones(1))
    problem = bounded_tree.QuadraticInBox(M, c, 10.0, *ends, 1.0, np.zeros(1, dtype=bool))
    levels = bounded_tree.NodeLevels(
        np.empty((2, 1, 1)), np.zeros((2, 1), dtype=bool), *np.zeros((3, 2, 1)), np.full((2, 1), FREE, dtype=np.int8),
        np.zeros(2),
    )  # fmt: skip
    found = bounded_tree.FoundSupports(
        np.full(2, np.inf), np.full(2, np.inf), 0.0, 0.0, np.zeros((8, 1), dtype=bool), np.zeros(8),
        np.zeros(1, dtype=np.int64),
    )  # fmt: skip
    assert bounded_tree.start(problem, levels, found, np.zeros((0, 1), dtype=bool))
    assert (bounded_tree.bound_open_supports(problem, levels, 0) <= 10.0).all()  # only the empty support is not offered
    assert bounded_tree.advance(problem, levels, found, 0, np.array([1, 100])) == -1
    np.testing.assert_allclose(found.best, [10.0, 6.0])  # b = 0, and b = 1 at the bound
    assert np.isinf(bounded_tree.bound_open_supports(problem, levels, -1)).all()

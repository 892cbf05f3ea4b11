"""An initial support for every backend, which satisfies the side constraints but may not be optimal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.errors import BackendFailed
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.moment_fits import Fit, refit_moments, select_forward
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import TINY


def feasible_start(problem: SparseProblem, tau: int, constraints: SideConstraints) -> Fit | None:
    """Return a feasible fit, good but not optimal; None if the side constraints exclude every support.

    Parameters
    ----------
    problem : SparseProblem
        Problem in standard coordinates.
    tau : int
        Maximum support size.
    constraints : SideConstraints
        Side constraints.

    Returns
    -------
    Fit or None
        Fit of the support.

    Raises
    ------
    BackendFailed
        If the 0/1 program below could not be decided.

    Notes
    -----
    Feasibility depends on z alone (a box binds chosen columns only). Without side constraints: forward selection,
    O(tau q^2), then exchanges of columns. With them: a 0/1 program with unit coefficients that maximises the marginal
    scores of the chosen columns, a check of its support, then the exchanges that stay feasible.
    """
    if not constraints.needs - {"sign", "box"}:
        support = tuple(select_forward(problem.M, problem.c, min(tau, problem.q)).tolist())
    else:
        allowed = _feasible(problem, tau, constraints)
        if allowed is None:
            return None
        support = allowed
    return _improve(problem, support, tau, constraints)


def _feasible(problem: SparseProblem, tau: int, constraints: SideConstraints) -> tuple[int, ...] | None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    q = problem.q
    score = np.asarray(problem.c**2 / np.maximum(problem.M.diagonal(), TINY))
    lo, hi = constraints.fixed(q)
    if np.any(lo > hi):
        return None
    at_most, equal = constraints.rows
    columns = np.arange(q)
    rows = [constraints.feature_counts(q), *(np.isin(columns, some) * 1.0 for _, some in at_most)]
    rows += [(columns == i) * 1.0 - (columns == j) for i, j in equal]
    high = [tau, *(k for k, _ in at_most), *(0 for _ in equal)]
    low = [0.0] * len(rows)
    for j, parents in constraints.parent_rows:
        rows.append((columns == j) * 1.0 - np.isin(columns, parents))
        low.append(-float(q))
        high.append(0)
    gain = score / max(float(score.max(initial=0.0)), TINY)
    solved = milp(
        -gain,
        constraints=LinearConstraint(np.array(rows), low, high),
        integrality=np.ones(q, dtype=np.int64),
        bounds=Bounds(lo, hi),
    )
    if solved.status == 2:
        return None
    support = () if solved.x is None else tuple(int(j) for j in np.flatnonzero(solved.x > 0.5))
    if solved.x is None or not constraints.allows(support, tau):
        raise BackendFailed(
            f"the solver could not decide whether the side constraints are feasible: {solved.message}",
            str(solved.status),
        )
    return support


def _improve(problem: SparseProblem, support: tuple[int, ...], tau: int, constraints: SideConstraints) -> Fit:
    """Return the fit after exchanging or dropping columns while it improves; at most 20 rounds of O(tau) refits."""
    best = refit_moments(problem, support, constraints.boxes(problem.q))
    for _ in range(20):
        trial = _best_move(problem, best, lambda s: constraints.allows(s, tau), constraints)
        if trial is None:
            return best
        best = trial
    return best


def _best_move(
    problem: SparseProblem, fit: Fit, allowed: Callable[[set[int]], bool], constraints: SideConstraints
) -> Fit | None:
    slope = problem.c - problem.M @ fit.spread(problem.q)
    reach = slope**2 / np.maximum(problem.M.diagonal(), TINY)
    reach[list(fit.support)] = -1.0
    enter = [int(j) for j in np.argsort(-reach)[:5] if reach[j] >= 0]
    best: Fit | None = None
    for i in fit.support:
        base = set(fit.support) - {i}
        for new in [base, *(base | {j} for j in enter)]:
            if not allowed(new):
                continue
            trial = refit_moments(problem, tuple(sorted(new)), constraints.boxes(problem.q))
            if trial.objective < (best or fit).objective * (1 - 1e-12):
                best = trial
    return best

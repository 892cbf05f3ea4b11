"""Before a solver runs: a support within the side constraints, and the columns that every better answer contains.

A solver's tolerances are relative to the scale of the objective, `yy`. Where the columns F explain nearly all of the
response, they may be larger than the whole optimum. Eliminating these columns exactly
leaves the same problem on the other columns, whose scale is f(F) (:mod:`sparsecv_mio.problem.elimination`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigvalsh

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.errors import BackendFailed
from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.formulation.task import ModelTask, level_set_interval, model_task
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.elimination import ForcedColumns, eliminated
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import Fit, forward_selection, refit_moments
from sparsecv_mio.units import TINY


def feasible_start(problem: SparseProblem, tau: int, constraints: SideConstraints) -> Fit | None:
    """Return a feasible fit, good but not optimal; None when the side constraints exclude every support.

    Parameters
    ----------
    problem : SparseProblem
        In standard coordinates.
    tau : int
        Largest support size.
    constraints : SideConstraints
        Side constraints.

    Returns
    -------
    Fit or None

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
        support = tuple(forward_selection(problem.M, problem.c, min(tau, problem.q)).tolist())
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
    rows = [constraints.counted(q), *(np.isin(columns, some) * 1.0 for _, some in at_most)]
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
        raise BackendFailed(f"the side constraints could not be decided: {solved.message}", str(solved.status))
    return support


def _improve(problem: SparseProblem, support: tuple[int, ...], tau: int, constraints: SideConstraints) -> Fit:
    """Exchange or drop one column while that improves the fit; at most 20 rounds of O(tau) refits each."""
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


WIDEST_A = 1e4  # condition of A, columns of unit length, up to which the rounding of its inverse is below 1e-12 of yy
THINNEST = 1e-5  # share of a column that F may leave unexplained; with less, M' would be mostly rounding error
PROVEN = 1e-11  # widening of the level set before a column is proven in; 1e-14 of yy is added for rounding


@dataclass(frozen=True, eq=False)
class Reduction:
    """A task on some of the columns of a whole problem.

    Attributes
    ----------
    task : ModelTask
        The problem on the other columns.
    choice : ForcedColumns
        Columns of the whole problem that are in every support at least as good as the start, and those of the task.
    """

    task: ModelTask
    choice: ForcedColumns

    @classmethod
    def none(cls, task: ModelTask) -> Reduction:
        """Return a task as it is."""
        return cls(task, ForcedColumns.of(task.q, np.zeros(0, dtype=np.int64)))

    def whole(self, support: tuple[int, ...]) -> tuple[int, ...]:
        """Return the support of the whole problem for a support of the task."""
        return tuple(self.choice.whole(np.array(support, dtype=np.int64)).tolist())


def reduce_task(task: ModelTask, advice: KnownBounds) -> Reduction:
    """Eliminate the columns that are fixed in, or that the level set of the start proves in.

    Columns with a box or with parents are not eliminated, nor any column where that would lose more digits than a
    solver's tolerances.
    """
    boxed = {j for j, *_ in (*task.constraints.box, *task.constraints.parents)}
    inside = (task.z_lo > 0) | proven_in(task)
    out = [j for j in sorted(task.start.support) if inside[j] and j not in boxed]
    choice = ForcedColumns.of(task.q, np.array(out, dtype=np.int64))
    problem = _eliminate(task.squares, choice) if out else None
    if problem is None:
        return Reduction.none(task)
    columns = choice.others
    beta = np.array([b for j, b in zip(task.start.support, task.start.beta, strict=True) if j not in out])
    start = tuple(choice.inside(np.array(task.start.support)).tolist())
    return Reduction(
        model_task(
            problem,
            min(task.tau - len(out), len(columns)),
            _constraints(task.constraints, tuple(out), tuple(columns.tolist())),
            Fit(start, beta, task.start.objective, task.start.shortfall),
            replace(advice, points=tuple(point[columns] for point in advice.points)),
        ),
        choice,
    )


def proven_in(task: ModelTask) -> BoolArray:
    """Return a (q,) mask of the columns that are nonzero in every b at least as good as the start."""
    margin = PROVEN + 1e-14 * task.scaled.yy / task.scaled.unit**2
    lo, hi = level_set_interval(task.scaled, task.scaled.value(task.start.objective), margin)
    return np.asarray((lo > 0) | (hi < 0))


def _eliminate(problem: SparseProblem, choice: ForcedColumns) -> SparseProblem | None:
    """Return the problem on the other columns; None where it would be too inaccurate. O(q^2 |F|)."""
    out, free = choice.forced, choice.others
    unit = 1.0 / np.sqrt(np.maximum(problem.M.diagonal()[out], TINY))
    spectrum = eigvalsh(problem.M[np.ix_(out, out)] * np.outer(unit, unit))
    if not spectrum[0] * WIDEST_A >= spectrum[-1]:
        return None
    reduced = eliminated(replace(problem, forced=out)).problem
    if np.any(reduced.M.diagonal() < THINNEST * problem.M.diagonal()[free]):
        return None
    return replace(reduced, yy=refit_moments(problem, tuple(out.tolist())).objective)


def _constraints(constraints: SideConstraints, out: tuple[int, ...], kept: tuple[int, ...]) -> SideConstraints:
    """Return the constraints on the other columns when all of `out` are chosen."""
    gone, place = set(out), {j: k for k, j in enumerate(kept)}
    pulled = {j for term in constraints.terms if gone & set(term.columns) for j in term.columns}
    forced = (set(constraints.forced_in) | pulled) - gone
    return SideConstraints(
        forced_in=tuple(sorted(place[j] for j in forced)),
        forced_out=tuple(place[j] for j in constraints.forced_out),
        terms=tuple(term.at(place) for term in constraints.terms if not gone & set(term.columns)),
        at_most=tuple(
            (k - len(gone & set(columns)), tuple(place[j] for j in columns if j not in gone))
            for k, columns in constraints.at_most
        ),
        box=tuple((place[j], lo, hi) for j, lo, hi in constraints.box),
        parents=tuple(
            (place[j], tuple(place[i] for i in columns if i not in gone), every)
            for j, columns, every in constraints.parents
            if not (gone.issuperset(columns) if every else gone.intersection(columns))
        ),
    )

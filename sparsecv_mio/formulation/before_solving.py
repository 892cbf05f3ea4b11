"""Elimination, before a solver runs, of all columns that every solution at least as good as the start contains.

A solver's tolerances are relative to the scale of the objective, the sum of squares y'y of the centred target. If the
columns F explain nearly all of the target, these tolerances may be larger than the minimum. An exact elimination of F
leaves a problem of the same form in the other columns (:mod:`sparsecv_mio.problem.elimination`). The scale of this
problem is f(F), the objective of the ridge fit on F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigvalsh

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.data.forced_columns import ForcedColumns
from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.formulation.task import ModelTask, level_set_interval, model_task
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.elimination import eliminate_forced_columns
from sparsecv_mio.problem.moment_fits import Fit, refit_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import TINY

WIDEST_A = 1e4  # maximum condition of A at unit length for a rounding of its inverse below 1e-12 of yy
THINNEST = 1e-5  # minimum share of a column that F leaves unexplained; with less, M' would be mostly rounding error
PROVEN = 1e-11  # widening of the level set before a column is proven in; 1e-14 of yy is added for rounding


@dataclass(frozen=True, eq=False)
class Reduction:
    """A task on some of the columns of a whole problem.

    Attributes
    ----------
    task : ModelTask
        Problem on the other columns.
    choice : ForcedColumns
        Columns of the whole problem that are in every support at least as good as the start, and those of the task.
    """

    task: ModelTask
    choice: ForcedColumns

    @classmethod
    def make_trivial(cls, task: ModelTask) -> Reduction:
        """Return a task without any elimination."""
        return cls(task, ForcedColumns.from_positions(task.q, np.zeros(0, dtype=np.int64)))

    def make_support(self, support: tuple[int, ...]) -> tuple[int, ...]:
        """Return the support of the whole problem that corresponds to a support of the task."""
        return tuple(self.choice.make_support(np.array(support, dtype=np.int64)).tolist())


def reduce_task(task: ModelTask, advice: KnownBounds) -> Reduction:
    """Return a task without the columns that are fixed in or proven in by the level set of the start.

    Columns with a box or with parents are not eliminated, nor any column whose elimination would lose more digits than
    a solver's tolerances.
    """
    boxed = {j for j, *_ in (*task.constraints.box, *task.constraints.parents)}
    inside = (task.z_lo > 0) | find_nonzero_columns(task)
    out = [j for j in sorted(task.start.support) if inside[j] and j not in boxed]
    choice = ForcedColumns.from_positions(task.q, np.array(out, dtype=np.int64))
    problem = _eliminate(task.squares, choice) if out else None
    if problem is None:
        return Reduction.make_trivial(task)
    columns = choice.others
    beta = np.array([b for j, b in zip(task.start.support, task.start.beta, strict=True) if j not in out])
    start = tuple(choice.inside(np.array(task.start.support)).tolist())
    return Reduction(
        model_task(
            problem,
            min(task.tau - task.constraints.count(out), len(columns)),
            _constraints(task.constraints, tuple(out), tuple(columns.tolist())),
            Fit(start, beta, task.start.objective, task.start.shortfall),
            replace(advice, points=tuple(point[columns] for point in advice.points)),
        ),
        choice,
    )


def find_nonzero_columns(task: ModelTask) -> BoolArray:
    """Return a (q,) mask of the columns that are nonzero in every b at least as good as the start."""
    margin = PROVEN + 1e-14 * task.scaled.yy / task.scaled.unit**2
    lo, hi = level_set_interval(task.scaled, task.scaled.value(task.start.objective), margin)
    return np.asarray((lo > 0) | (hi < 0))


def _eliminate(problem: SparseProblem, choice: ForcedColumns) -> SparseProblem | None:
    """Return the problem on the other columns; None if it would be too inaccurate. O(q^2 |F|)."""
    out, free = choice.forced, choice.others
    unit = 1.0 / np.sqrt(np.maximum(problem.M.diagonal()[out], TINY))
    spectrum = eigvalsh(problem.M[np.ix_(out, out)] * np.outer(unit, unit))
    if not spectrum[0] * WIDEST_A >= spectrum[-1]:
        return None
    reduced = eliminate_forced_columns(replace(problem, forced=out)).problem
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
        terms=tuple(term.convert_to_positions(place) for term in constraints.terms if not gone & set(term.columns)),
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

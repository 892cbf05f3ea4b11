"""The objective of a point in a lowered model, and how far the point is from satisfying it: by arrays, and by Mosek."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.models import LoweredProblem


def objective(arrays: LoweredProblem, x: NDArray[np.float64]) -> float:
    """The objective at a point."""
    i, j, v = arrays.terms
    return float(arrays.constant + arrays.cost @ x + np.sum(v * x[i] * x[j]))


def violation(arrays: LoweredProblem, x: NDArray[np.float64]) -> float:
    """The largest violation of a bound, a row or a cone at a point."""
    worst = [0.0, float(np.max(arrays.lower - x, initial=0.0)), float(np.max(x - arrays.upper, initial=0.0))]
    activity = arrays.rows @ x
    worst.append(float(np.max(arrays.row_lower - activity, initial=0.0)))
    worst.append(float(np.max(activity - arrays.row_upper, initial=0.0)))
    for cone in arrays.cones:
        i, j, v = cone.terms
        worst.append(float(cone.linear @ x[cone.index] + np.sum(v * x[i] * x[j]) - cone.upper))
    return max(worst)


def evaluate(solver: Any, x: FloatArray) -> tuple[float, float]:
    """Return the objective and the largest violation of a row, bound or cone at a point, as the task itself sees it."""
    import mosek

    kind = mosek.soltype.itg
    size = solver.getnumvar()
    solver.putxxslice(kind, 0, size, x.tolist())
    worst = 0.0
    activity = np.zeros(solver.getnumcon())
    rows, columns, values = solver.getatrip()
    np.add.at(activity, np.asarray(rows), np.asarray(values) * x[np.asarray(columns)])
    for bounds, body in ((solver.getconboundslice(0, len(activity)), activity), (solver.getvarboundslice(0, size), x)):
        for key, low, high, value in zip(*bounds, body, strict=True):
            if key not in (mosek.boundkey.fr, mosek.boundkey.up):
                worst = max(worst, low - value)
            if key not in (mosek.boundkey.fr, mosek.boundkey.lo):
                worst = max(worst, value - high)
    for k in range(solver.getnumacc()):
        member = np.asarray(solver.evaluateacc(kind, k))
        worst = max(worst, _outside(solver.getdomaintype(solver.getaccdomain(k)), member))
    return float(solver.getprimalobj(kind)), float(worst)


def _outside(domain: Any, member: FloatArray) -> float:
    """Return how far a vector is from its domain; a file may hold its linear rows as conic ones."""
    from mosek import domaintype

    if domain == domaintype.rquadratic_cone:
        return max(-member[0], -member[1], float(np.sum(member[2:] ** 2) - 2.0 * member[0] * member[1]))
    if domain == domaintype.primal_exp_cone:
        return float(max(-member[1], member[1] * np.exp(member[2] / member[1]) - member[0]))
    linear = {domaintype.rplus: -member, domaintype.rminus: member, domaintype.rzero: np.abs(member)}
    if domain not in linear and domain != domaintype.r:
        raise ValueError(f"unexpected domain {domain}")
    return float(np.max(linear.get(domain, -np.ones(1)), initial=0.0))

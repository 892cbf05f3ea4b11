"""The perspective model in Pyomo's kernel, its cones written as cones (for Mosek).

    min  s + sum_j w_j t_j - 2 g'u    s.t.  (s, 1/2, Ru) and (t_j, z_j / 2, u_j) in the rotated quadratic cone
                                            { 2 x_1 x_2 >= x_3^2 + ... },   links, budget, side constraints

A second derivation of the same mathematics as :mod:`perspective`, so that the two check each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.kernel as pmo
from numpy.typing import NDArray

from sparsecv_mio.formulation.task import ModelTask

FloatArray = NDArray[np.float64]


def conic_model(task: ModelTask) -> Any:
    """Return a kernel block with variable lists `z`, `u`, `t`, a variable `s` and the objective `phi`."""
    q, scaled = task.q, task.scaled
    model = pmo.block()
    model.z = pmo.variable_list(
        pmo.variable(domain=pmo.IntegerSet, lb=float(task.z_lo[j]), ub=float(task.z_hi[j])) for j in range(q)
    )
    model.u = pmo.variable_list(pmo.variable() for _ in range(q))
    model.t = pmo.variable_list(pmo.variable(lb=0.0) for _ in range(q))
    model.s = pmo.variable(lb=0.0)
    factor = scaled.factor
    model.residual = pmo.conic.rotated_quadratic.as_domain(
        r1=model.s, r2=0.5, x=[sum(float(a) * u for a, u in zip(row, model.u, strict=True)) for row in factor]
    )
    model.cones = pmo.block_list(
        pmo.conic.rotated_quadratic.as_domain(r1=model.t[j], r2=0.5 * model.z[j], x=[model.u[j]]) for j in range(q)
    )
    model.budget = pmo.constraint(body=sum(model.z), ub=float(task.tau))
    model.links = pmo.constraint_list()
    for j in range(q):
        if np.isfinite(task.lo[j]):
            model.links.append(pmo.constraint(body=model.u[j] - float(task.lo[j]) * model.z[j], lb=0.0))
        if np.isfinite(task.hi[j]):
            model.links.append(pmo.constraint(body=model.u[j] - float(task.hi[j]) * model.z[j], ub=0.0))
    model.side = pmo.constraint_list()
    for k, columns in task.constraints.at_most:
        model.side.append(pmo.constraint(body=sum(model.z[j] for j in sorted(set(columns))), ub=float(k)))
    for term in task.constraints.terms:
        for j in term.columns[1:]:
            model.side.append(pmo.constraint(body=model.z[term.columns[0]] - model.z[j], rhs=0.0))
    cost = sum(float(w) * t for w, t in zip(scaled.w, model.t, strict=True))
    model.phi = pmo.objective(model.s + cost + sum(-2.0 * float(g) * u for g, u in zip(scaled.g, model.u, strict=True)))
    return model


def set_point(model: Any, task: ModelTask, u: FloatArray, z: FloatArray) -> None:
    """Give every variable of a kernel block, those inside its cones too, its value at (u, z)."""
    residual = task.scaled.factor @ u
    model.s.value = float(residual @ residual)
    for j in range(task.q):
        model.u[j].value, model.z[j].value, model.t[j].value = float(u[j]), float(z[j]), float(u[j]) ** 2
        inner = model.cones[j]
        inner.r1.value, inner.r2.value, inner.x[0].value = float(u[j]) ** 2, 0.5 * float(z[j]), float(u[j])
    model.residual.r1.value, model.residual.r2.value = model.s.value, 0.5
    for variable, value in zip(model.residual.x, residual, strict=True):
        variable.value = float(value)

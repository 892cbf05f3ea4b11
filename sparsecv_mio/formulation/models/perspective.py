"""The models: perspective (MISOCP), big-M (MIQP), and their linear masters (theory sections 1 and 6).

    min  u'Gu + sum_j w_j t_j - 2 g'u     s.t.  u_j^2 <= t_j z_j,  sum z <= tau,  z binary         (perspective)
    min  u'Gu + sum_j w_j u_j^2 - 2 g'u   s.t.  lo_j z_j <= u_j <= hi_j z_j,  sum z <= tau         (big-M)
    min  eta                              s.t.  eta >= a - s'z  for every dual cut,  sum z <= tau  (master)
    min  sum_i s_i + sum_j w_j t_j - 2 g'u
        s.t.  s_i >= 2 c r_i - c^2,   t_j >= 2 a u_j - a^2 z_j,   r = Ru,   lo z <= u <= hi z      (outer)

Every cut is valid at every feasible point, whatever a and c are: tangents of `r^2` and of `u^2 / z`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.models.common import SparseModel, linear
from sparsecv_mio.formulation.task import Task


def quadratic_form(Q: FloatArray, u: Sequence[Any]) -> Any:
    """Return `u'Qu` as a Pyomo expression, one term for each pair of columns."""
    q = len(u)
    terms = [float(Q[i, i]) * u[i] ** 2 for i in range(q) if Q[i, i] != 0.0]
    terms += [2.0 * float(Q[i, j]) * u[i] * u[j] for i in range(q) for j in range(i) if Q[i, j] != 0.0]
    return pyo.quicksum(terms)


class PerspectiveModel(SparseModel):
    """Perspective MISOCP with the quadratic form written on the Gram matrix: 3q variables, q cones."""

    def _variables(self, task: Task) -> None:
        self.u = self._coefficients()
        self.pyomo.t = pyo.Var(self.pyomo.columns, domain=pyo.NonNegativeReals)
        self.t = [self.pyomo.t[name] for name in self.labels]
        self.pyomo.phi = pyo.Objective(expr=0.0)

    def _retarget(self, task: Task) -> None:
        self._link(task, self.u)
        self._cones(task)
        self.pyomo.phi.set_value(quadratic_form(task.scaled.G, self.u) + self._separable(task))

    def _cones(self, task: Task) -> None:
        for j in range(task.q):
            reach = max(float(task.lo[j]) ** 2, float(task.hi[j]) ** 2)
            self.t[j].setub(reach if np.isfinite(reach) else None)
            self.pyomo.rows["cone", j] = self.u[j] ** 2 - self.t[j] * self.z[j] <= 0

    def _separable(self, task: Task) -> Any:
        return linear(task.scaled.w, self.t) + linear(-2.0 * task.scaled.g, self.u)

    def point(self, task: Task, u: FloatArray, z: FloatArray) -> dict[int, float]:
        values = {id(v): float(x) for v, x in zip(self.z, z, strict=True)}
        values |= {id(v): float(x) for v, x in zip(self.u, u, strict=True)}
        return values | {id(v): float(x) ** 2 for v, x in zip(self.t, u, strict=True)}


class FactorModel(PerspectiveModel):
    """Perspective MISOCP with `u'Gu = sum_i s_i`, `s_i >= r_i^2`, `r = Ru`, `R'R = G`.

    Each square is a cone of its own: outer approximation then works on one-dimensional parabolas.
    """

    @classmethod
    def shape_of(cls, task: Task) -> tuple[int, ...]:
        """Return the number of columns and the rank, which is the number of squares."""
        return (task.q, task.scaled.factor.shape[0])

    def _variables(self, task: Task) -> None:
        super()._variables(task)
        rank = self.shape[1]
        self.pyomo.r = pyo.Var(range(rank), domain=pyo.Reals)
        self.pyomo.s = pyo.Var(range(rank), domain=pyo.NonNegativeReals)
        self.r = [self.pyomo.r[i] for i in range(rank)]
        self.s = [self.pyomo.s[i] for i in range(rank)]

    def _retarget(self, task: Task) -> None:
        self._link(task, self.u)
        self._cones(task)
        for i, row in enumerate(task.scaled.factor):
            self.pyomo.rows["residual", i] = linear([*row, -1.0], [*self.u, self.r[i]]) == 0
            self._square(i)
        self.pyomo.phi.set_value(linear(np.ones(len(self.s)), self.s) + self._separable(task))

    def _square(self, i: int) -> None:
        self.pyomo.rows["square", i] = self.r[i] ** 2 - self.s[i] <= 0

    def point(self, task: Task, u: FloatArray, z: FloatArray) -> dict[int, float]:
        residual = task.scaled.factor @ u
        values = super().point(task, u, z)
        values |= {id(v): float(x) for v, x in zip(self.r, residual, strict=True)}
        return values | {id(v): float(x) ** 2 for v, x in zip(self.s, residual, strict=True)}


class BigMModel(SparseModel):
    """Big-M MIQP on the Gram matrix: 2q variables, 2q links whose bounds come from a level set."""

    def _variables(self, task: Task) -> None:
        self.u = self._coefficients()
        self.pyomo.phi = pyo.Objective(expr=0.0)

    def _retarget(self, task: Task) -> None:
        self._link(task, self.u)
        full = task.scaled.G + np.diag(task.scaled.w)
        self.pyomo.phi.set_value(quadratic_form(full, self.u) + linear(-2.0 * task.scaled.g, self.u))

    def point(self, task: Task, u: FloatArray, z: FloatArray) -> dict[int, float]:
        values = {id(v): float(x) for v, x in zip(self.z, z, strict=True)}
        return values | {id(v): float(x) for v, x in zip(self.u, u, strict=True)}


class CutMaster(SparseModel):
    """Cutting-plane master: q binaries and one number, the cuts of the start and of the task's points to begin with."""

    def _variables(self, task: Task) -> None:
        self.pyomo.eta = pyo.Var(domain=pyo.Reals)
        self.pyomo.phi = pyo.Objective(expr=self.pyomo.eta)

    def _retarget(self, task: Task) -> None:
        self.pyomo.eta.setlb(task.floor)
        for i, u in enumerate((task.start_u, *task.points)):
            a, s = task.scaled.clipped_cut(u, task.floor)
            self.pyomo.rows["cut", i] = linear([*s, 1.0], [*self.z, self.pyomo.eta]) >= a

    def point(self, task: Task, u: FloatArray, z: FloatArray) -> dict[int, float]:
        values = {id(v): float(x) for v, x in zip(self.z, z, strict=True)}
        full = u @ (task.scaled.G @ u) + task.scaled.w @ u**2 - 2.0 * task.scaled.g @ u
        return values | {id(self.pyomo.eta): max(float(full), task.floor)}


class OuterModel(FactorModel):
    """Disaggregated outer approximation: linear, its cuts added by the backend as it goes."""

    def _cones(self, task: Task) -> None:
        """Leave the cones to cuts."""

    def _square(self, i: int) -> None:
        """Leave the squares to cuts."""

"""Linear masters: the cutting-plane master in z alone and the disaggregated outer approximation.

    min eta    s.t.  eta >= a - s'z  for every dual cut,  sum z <= tau                              (master, section 6)
    min sum_i s_i + sum_j w_j t_j - 2 g'u
        s.t.  s_i >= 2 c r_i - c^2,   t_j >= 2 a u_j - a^2 z_j,   r = Ru,   lo z <= u <= hi z       (outer)

Every cut is valid at every feasible point, whatever a and c are: tangents of `r^2` and of `u^2 / z`.
"""

from __future__ import annotations

import pyomo.environ as pyo

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.models.common import SparseModel, linear
from sparsecv_mio.formulation.models.perspective import FactorModel
from sparsecv_mio.formulation.task import Task


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

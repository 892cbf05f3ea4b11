"""Tangent cuts of outer approximations, for every solver that adds cuts.

    s_i >= c(r) + c'(r) (r_i - r)          tangent at r of c, the squared residual or the log loss of a margin r_i
    t_j >= 2 a u_j - a^2 z_j               tangent with slope 2 a of u_j^2 / z_j

Each cut is valid at every feasible point (s, r, t, u, z) of the model, for any numbers r and a.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.models import FactorModel, Lowered
from sparsecv_mio.formulation.task import ModelTask


class ModelColumns(NamedTuple):
    """Positions of the variables in the compiled model; u ends with coefficients without an indicator."""

    z: IntArray
    u: IntArray
    t: IntArray
    r: IntArray
    s: IntArray

    @classmethod
    def from_model(cls, model: FactorModel, arrays: Lowered) -> ModelColumns:
        """Return the positions in a model."""
        groups = (model.z, [*model.u, *model.free], model.t, model.r, model.s)
        return cls(*(arrays.columns(variables) for variables in groups))


class Cuts(NamedTuple):
    """Rows `sum value x_place >= lower`: (k,) lower bounds, and the positions and values of each of their terms."""

    lower: FloatArray
    places: tuple[IntArray, ...]
    values: tuple[FloatArray, ...]


class Tangents:
    """Tangents of the terms of a task that a point violates by more than a tolerance.

    Parameters
    ----------
    task : ModelTask
        Task.
    at : ModelColumns
        Positions of the variables.
    tolerance : float
        Minimum violation of a cut.
    """

    def __init__(self, task: ModelTask, at: ModelColumns, tolerance: float) -> None:
        self.task, self.at, self.tolerance = task, at, tolerance
        self._reach = np.maximum(np.abs(task.lo), np.abs(task.hi))

    def violated_tangents(self, x: FloatArray) -> Iterator[Cuts]:
        """Yield the tangents that a point of all variables violates."""
        z = np.clip(x[self.at.z], 1e-9, 1.0)
        r, s, u, t = x[self.at.r], x[self.at.s], x[self.at.u][: self.task.q], x[self.at.t]
        return self.make_tangents(r, self.task.scaled.curve(r)[0] - s, u / z, u**2 / z - t)

    def touching(self, r: FloatArray, u: FloatArray, z: FloatArray) -> Iterator[Cuts]:
        """Yield all tangents at a point."""
        u = u[: self.task.q]
        return self.make_tangents(r, np.ones_like(r), u / z, np.where(u != 0.0, 1.0, 0.0))

    def make_tangents(
        self, r: FloatArray, r_short: FloatArray, slope: FloatArray, u_short: FloatArray
    ) -> Iterator[Cuts]:
        """Yield tangents at given points of contact and slopes, for terms with a large enough violation."""
        slope = np.clip(slope, -self._reach, self._reach)
        rows_i = np.flatnonzero(r_short > self.tolerance)
        rows_j = np.flatnonzero(self.task.scaled.w * u_short > self.tolerance)
        ri, aj = r[rows_i], slope[rows_j]
        ones, at = np.ones_like, self.at
        value, rise = self.task.scaled.curve(ri)
        yield Cuts(value - rise * ri, (at.s[rows_i], at.r[rows_i]), (ones(ri), -rise))
        yield Cuts(np.zeros_like(aj), (at.t[rows_j], at.u[rows_j], at.z[rows_j]), (ones(aj), -2.0 * aj, aj**2))

"""What the Pyomo models share: the indicators, the row `sum z <= tau`, the side constraints, the big-M rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.task import Task


def linear(coefficients: Sequence[float] | FloatArray, variables: Sequence[Any]) -> Any:
    """Return `sum coefficient * variable` without its zero terms; much faster to build than a Python sum."""
    pairs = [(float(a), v) for a, v in zip(coefficients, variables, strict=True) if a != 0.0]
    if not pairs:
        return LinearExpression(constant=0.0, linear_coefs=[], linear_vars=[])
    values, kept = zip(*pairs, strict=True)
    return LinearExpression(constant=0.0, linear_coefs=list(values), linear_vars=list(kept))


class SparseModel(ABC):
    """A Pyomo model of `min phi(u), |support of u| <= tau` that can be rewritten for another problem of the same shape.

    Variables are created once, for a number of columns and a rank; `retarget` rewrites bounds, rows and objective for
    another fold, tau or gamma. Another shape needs a new model, since it has other variables.

    Parameters
    ----------
    task : Task
        The problem with its bounds and its start.
    labels : sequence of str, optional
        Names of the columns, for exported files.

    Attributes
    ----------
    pyomo : ConcreteModel
        With `z` (binary, chosen or not) and, except in the cutting-plane master, `u` (scaled coefficients).
    """

    def __init__(self, task: Task, labels: Sequence[str] | None = None) -> None:
        self.labels: tuple[Any, ...] = tuple(range(task.q)) if labels is None else tuple(labels)
        self.shape = self.shape_of(task)
        self.pyomo = pyo.ConcreteModel()
        self.pyomo.columns = pyo.Set(initialize=self.labels, ordered=True)
        self.pyomo.z = pyo.Var(self.pyomo.columns, domain=pyo.Binary)
        self.pyomo.rows = pyo.Constraint(pyo.Any)
        self.z = [self.pyomo.z[name] for name in self.labels]
        self._variables(task)
        self.retarget(task)

    @classmethod
    def shape_of(cls, task: Task) -> tuple[int, ...]:
        """Return what a task must share with this model for `retarget`: the number of columns."""
        return (task.q,)

    def retarget(self, task: Task) -> None:
        """Rewrite the model for another task.

        Raises
        ------
        ValueError
            If the task has another shape.
        """
        if self.shape_of(task) != self.shape:
            raise ValueError(f"a model of shape {self.shape} cannot be retargeted to {self.shape_of(task)}: rebuild it")
        self.pyomo.rows.clear()
        for z, low, high in zip(self.z, task.z_lo, task.z_hi, strict=True):
            z.setlb(float(low))
            z.setub(float(high))
        rows = self.pyomo.rows
        rows["budget"] = linear(np.ones(task.q), self.z) <= task.tau
        at_most, equal = task.constraints.rows
        for i, (k, columns) in enumerate(at_most):
            chosen = sorted(set(columns))
            rows["at_most", i] = linear(np.ones(len(chosen)), [self.z[j] for j in chosen]) <= k
        for i, (a, b) in enumerate(equal):
            if a != b:
                rows["together", i] = self.z[a] - self.z[b] == 0
        for i, (j, parents) in enumerate(task.constraints.parent_rows):
            signs = np.concatenate(([1.0], -np.ones(len(parents))))
            rows["parents", i] = linear(signs, [self.z[j], *(self.z[parent] for parent in parents)]) <= 0
        self._retarget(task)

    def _coefficients(self) -> list[Any]:
        self.pyomo.u = pyo.Var(self.pyomo.columns, domain=pyo.Reals)
        return [self.pyomo.u[name] for name in self.labels]

    def _link(self, task: Task, u: Sequence[Any]) -> None:
        """Add `lo_j z_j <= u_j <= hi_j z_j` where the bounds are known."""
        rows = self.pyomo.rows
        for j, (uj, zj) in enumerate(zip(u, self.z, strict=True)):
            lo, hi = float(task.lo[j]), float(task.hi[j])
            uj.setlb(min(lo, 0.0) if np.isfinite(lo) else None)
            uj.setub(max(hi, 0.0) if np.isfinite(hi) else None)
            if np.isfinite(lo):
                rows["low", j] = uj - lo * zj >= 0
            if np.isfinite(hi):
                rows["high", j] = uj - hi * zj <= 0

    @abstractmethod
    def _variables(self, task: Task) -> None:
        """Create the variables beside z."""

    @abstractmethod
    def _retarget(self, task: Task) -> None:
        """Write the rows and the objective of this model."""

    @abstractmethod
    def point(self, task: Task, u: FloatArray, z: FloatArray) -> dict[int, float]:
        """Return the value of every variable at a feasible point: a full warm start.

        Parameters
        ----------
        task : Task
            What the model was built from.
        u : (q,) array
            Scaled coefficients.
        z : (q,) array
            Indicator of the chosen columns.

        Returns
        -------
        dict of int to float
            By `id(variable)`.
        """

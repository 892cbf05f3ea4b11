"""Pyomo models of one best-subset problem, perspective (MISOCP) or linear, and the arrays that solvers read.

    min  u'Gu + sum_j w_j t_j - 2 g'u     s.t.  u_j^2 <= t_j z_j,  sum z <= tau,  z binary         (perspective)
    min  eta                              s.t.  eta >= a - s'z  for every dual cut,  sum z <= tau  (master)
    min  sum_i s_i + sum_j w_j t_j - 2 g'u
        s.t.  s_i >= 2 c r_i - c^2,   t_j >= 2 a u_j - a^2 z_j,   r = Ru,   lo z <= u <= hi z      (outer)

The vector u contains the scaled coefficients of :mod:`sparsecv_mio.formulation.task`, which defines G, w and g. R is
any matrix with `R'R = G`. The dual cuts (a, s) of the formulation `master` are those of theory section 1. The cuts of
the formulation `outer` are tangents of `r^2` and of `u^2 / z`. Every choice of the numbers a and c gives cuts that are
valid at every feasible point. `Tangents` computes these cuts for solvers that add cuts during the solution. With
logistic loss, r are the margins of the rows, `log(1 + exp(-r))` replaces `r^2`, and

    s >= log(1 + exp(-r))      <=>      exp(-s) + exp(-r - s) <= 1.                                (losses)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression
from pyomo.repn import generate_standard_repn
from scipy.sparse import csr_array, csr_matrix

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.task import ModelTask, ScaledLosses

Terms = tuple[IntArray, IntArray, FloatArray]


def linear(coefficients: Sequence[float] | FloatArray, variables: Sequence[Any]) -> Any:
    """Return `sum coefficient * variable` without its zero terms; much faster than a Python sum."""
    pairs = [(float(a), v) for a, v in zip(coefficients, variables, strict=True) if a != 0.0]
    if not pairs:
        return LinearExpression(constant=0.0, linear_coefs=[], linear_vars=[])
    values, held_variables = zip(*pairs, strict=True)
    return LinearExpression(constant=0.0, linear_coefs=list(values), linear_vars=list(held_variables))


class SparseModel(ABC):
    """A Pyomo model of `min phi(u), |support of u| <= tau`.

    Parameters
    ----------
    task : ModelTask
        Problem with its bounds and its start.
    labels : sequence of str, optional
        Names of the columns, for exported files.

    Attributes
    ----------
    pyomo : ConcreteModel
        Model with variables `z` (binary, chosen or not) and, except in the cutting-plane master, `u` (scaled
        coefficients).
    losses : list of (variable, variable)
        Margin and log loss of every row; empty with squared-error loss.
    """

    def __init__(self, task: ModelTask, labels: Sequence[str] | None = None) -> None:
        self.losses: list[tuple[Any, Any]] = []
        self.labels: tuple[Any, ...] = tuple(range(task.q)) if labels is None else tuple(labels)
        self.pyomo = pyo.ConcreteModel()
        self.pyomo.columns = pyo.Set(initialize=self.labels, ordered=True)
        self.pyomo.rows = pyo.Constraint(pyo.Any)
        self.z = self._variables("z", pyo.Binary)
        for z, low, high in zip(self.z, task.z_lo, task.z_hi, strict=True):
            z.setlb(float(low))
            z.setub(float(high))
        for i, (kind, weights, low, high) in enumerate(task.constraints.linear_rows(task.q, task.tau)):
            row = linear(weights, self.z)
            self.pyomo.rows[kind, i] = row == high if low == high else row <= high
        self.pyomo.phi = pyo.Objective(expr=self._objective(task))

    def _variables(self, name: str, domain: Any, count: int | None = None) -> list[Any]:
        """Add one variable for each column, or `count` variables, and return them."""
        index = self.pyomo.columns if count is None else range(count)
        self.pyomo.add_component(name, pyo.Var(index, domain=domain))
        return list(self.pyomo.component(name).values())

    @abstractmethod
    def _objective(self, task: ModelTask) -> Any:
        """Create the rows of this model and its variables except z; return its objective."""

    @abstractmethod
    def point(self, task: ModelTask, u: FloatArray, z: FloatArray) -> dict[int, float]:
        """Return the value of every variable at a feasible point, as a full warm start.

        Parameters
        ----------
        task : ModelTask
            Task from which the model was built.
        u : (q,) array
            Scaled coefficients.
        z : (q,) array
            Indicator of the chosen columns.

        Returns
        -------
        dict of int to float
            Values by `id(variable)`.
        """


def variable_values(*groups: tuple[Sequence[Any], FloatArray]) -> dict[int, float]:
    """Return the values of groups of variables, by `id(variable)`."""
    return {id(v): float(x) for variables, values in groups for v, x in zip(variables, values, strict=True)}


class PerspectiveModel(SparseModel):
    """Perspective MISOCP with the quadratic form in terms of the Gram matrix: 3q variables, q cones."""

    def _objective(self, task: ModelTask) -> Any:
        self.u = self._variables("u", pyo.Reals)
        self.t = self._variables("t", pyo.NonNegativeReals)
        self._link(task)
        self._cones(task)
        return self._quadratic(task) + linear(task.scaled.w, self.t) + linear(-2.0 * task.scaled.g, self.u)

    def _link(self, task: ModelTask) -> None:
        """Add `lo_j z_j <= u_j <= hi_j z_j` for known bounds."""
        rows = self.pyomo.rows
        for j, (uj, zj) in enumerate(zip(self.u, self.z, strict=True)):
            lo, hi = float(task.lo[j]), float(task.hi[j])
            uj.setlb(min(lo, 0.0) if np.isfinite(lo) else None)
            uj.setub(max(hi, 0.0) if np.isfinite(hi) else None)
            if np.isfinite(lo):
                rows["low", j] = uj - lo * zj >= 0
            if np.isfinite(hi):
                rows["high", j] = uj - hi * zj <= 0

    def _cones(self, task: ModelTask) -> None:
        for j in range(task.q):
            reach = max(float(task.lo[j]) ** 2, float(task.hi[j]) ** 2)
            self.t[j].setub(reach if np.isfinite(reach) else None)
            self.pyomo.rows["cone", j] = self.u[j] ** 2 - self.t[j] * self.z[j] <= 0

    def _quadratic(self, task: ModelTask) -> Any:
        """Return `u'Gu`, one term for each pair of columns."""
        G, u = task.scaled.G, self.u
        terms = [float(G[i, i]) * u[i] ** 2 for i in range(task.q) if G[i, i] != 0.0]
        terms += [2.0 * float(G[i, j]) * u[i] * u[j] for i in range(task.q) for j in range(i) if G[i, j] != 0.0]
        return pyo.quicksum(terms)

    def point(self, task: ModelTask, u: FloatArray, z: FloatArray) -> dict[int, float]:
        return variable_values((self.z, z), (self.u, u), (self.t, u**2))


class FactorModel(PerspectiveModel):
    """Perspective MISOCP with `u'Gu = sum_i s_i`, `s_i >= r_i^2`, `r = Ru`, `R'R = G`, or with log losses of rows.

    Each square is a separate cone, so outer approximation works on one-dimensional parabolas. A log loss is modelled
    over the range of its margin in the level set of the start.
    """

    def _quadratic(self, task: ModelTask) -> Any:
        scaled, factor = task.scaled, task.scaled.factor
        self.free = self._variables("a", pyo.Reals, scaled.free)
        self.r = self._variables("r", pyo.Reals, len(factor))
        self.s = self._variables("s", pyo.NonNegativeReals, len(factor))
        for i, row in enumerate(factor):
            self.pyomo.rows["residual", i] = linear([*row, -1.0], [*self.u, *self.free, self.r[i]]) == 0
        if isinstance(scaled, ScaledLosses):
            self.losses = list(zip(self.r, self.s, strict=True))
            most = scaled.losses_and_slopes(scaled.low)[0]
            for r, s, low, high, top in zip(self.r, self.s, scaled.low, scaled.high, most, strict=True):
                r.setlb(float(low))
                r.setub(float(high) if np.isfinite(high) else None)
                s.setub(float(top) * (1.0 + 1e-6) + 1e-6)
        self._terms()
        return linear(scaled.row_weights, self.s)

    def _terms(self) -> None:
        """Add the squares, or the losses of rows."""
        self.pyomo.losses = pyo.Constraint(pyo.Any)
        for i, (r, s) in enumerate(zip(self.r, self.s, strict=True)):
            if self.losses:
                self.pyomo.losses[i] = pyo.exp(-s) + pyo.exp(-r - s) <= 1
            else:
                self.pyomo.rows["square", i] = r**2 - s <= 0

    def point(self, task: ModelTask, u: FloatArray, z: FloatArray) -> dict[int, float]:
        residual, count = task.scaled.factor @ u, len(self.u)
        smooth = variable_values(
            (self.free, u[count:]), (self.r, residual), (self.s, task.scaled.losses_and_slopes(residual)[0])
        )
        return super().point(task, u[:count], z) | smooth


class CutMaster(SparseModel):
    """Cutting-plane master: q binaries and one number, starting with the cuts of the start and of the task's points."""

    def _objective(self, task: ModelTask) -> Any:
        self.pyomo.eta = pyo.Var(domain=pyo.Reals, bounds=(task.floor, None))
        for i, u in enumerate((task.start_u, *task.points)):
            a, s = task.scaled.clipped_cut(u, task.floor)
            self.pyomo.rows["cut", i] = linear([*s, 1.0], [*self.z, self.pyomo.eta]) >= a
        return self.pyomo.eta

    def point(self, task: ModelTask, u: FloatArray, z: FloatArray) -> dict[int, float]:
        full = u @ (task.scaled.G @ u) + task.scaled.w @ u**2 - 2.0 * task.scaled.g @ u
        return variable_values((self.z, z)) | {id(self.pyomo.eta): max(float(full), task.floor)}


class OuterApproximation(FactorModel):
    """Disaggregated outer approximation: a linear model to which the backend adds cuts during the solve."""

    def _cones(self, task: ModelTask) -> None:
        """Add nothing, since cuts replace the cones."""

    def _terms(self) -> None:
        """Add nothing, since cuts replace the squares or the losses."""


class PiecewiseModel(OuterApproximation):
    """Outer approximation with a fixed number of tangents for each square or loss: a linear model.

    In the level set of the start, every `r` lies between the smallest and the largest tangent point. Let `h` be the
    distance of neighbouring tangent points; then the largest tangent is at most `(h / 2)^2` below the square. The
    minimum of the model is therefore at most `missed` below the minimum with squares. The slope of a log loss changes
    less.

    Parameters
    ----------
    task : ModelTask
        Task with finite bounds on the coefficients.
    labels : sequence of str, optional
        Names of the columns, for exported files.
    tangents : int
        Number of tangents for each square, at least 2.
    """

    def __init__(self, task: ModelTask, labels: Sequence[str] | None = None, tangents: int = 64) -> None:
        self.tangents, self.missed = tangents, 0.0
        super().__init__(task, labels)

    def _objective(self, task: ModelTask) -> Any:
        objective = super()._objective(task)
        scaled, rows = task.scaled, self.pyomo.rows
        low, high = scaled.row_ranges(scaled.value(task.start.objective))
        if isinstance(scaled, ScaledLosses):
            low, high = scaled.low, scaled.high
            if not np.all(np.isfinite(high)):
                raise BadInput(
                    "gamma is too small: margins have no finite bounds, which a linear model needs; give a larger gamma"
                )
        at = np.linspace(low, high, self.tangents)
        value, slope = scaled.losses_and_slopes(at)
        for i, (r, s) in enumerate(zip(self.r, self.s, strict=True)):
            r.setlb(float(low[i]))
            r.setub(float(high[i]))
            for k in range(self.tangents):
                rise = float(slope[k, i])
                rows["square", i, k] = linear([1.0, -rise], [s, r]) >= float(value[k, i] - rise * at[k, i])
        for j, (t, u, z) in enumerate(zip(self.t, self.u, self.z, strict=True)):
            for k, at in enumerate(np.linspace(task.lo[j], task.hi[j], self.tangents).tolist()):
                rows["cone", j, k] = linear([1.0, -2.0 * at, at**2], [t, u, z]) >= 0
        cones = np.sort(scaled.w * ((task.hi - task.lo) / (self.tangents - 1) / 2.0) ** 2)[
            max(task.q - task.constraints.columns(task.tau), 0) :
        ]
        bends = 0.125 * scaled.bend * ((high - low) / (self.tangents - 1)) ** 2
        self.missed = float(scaled.row_weights @ bends) + float(cones.sum())
        return objective


@dataclass(frozen=True, eq=False)
class QuadraticRow:
    """The constraint `linear' x + sum value x_i x_j <= upper`."""

    index: IntArray
    linear: FloatArray
    terms: Terms
    upper: float


@dataclass(frozen=True, eq=False)
class LoweredProblem:
    """The problem `min constant + cost'x + quadratic terms` over linear and quadratic rows.

    Attributes
    ----------
    position : dict
        Column of each Pyomo variable, by its `id`.
    binary : (m,) bool array
        True for binary variables.
    lower, upper, cost : (m,) arrays
        Bounds and cost of the variables.
    constant : float
        Constant of the objective.
    terms : three arrays
        Row, column and value of the quadratic terms of the objective.
    rows : (k, m) sparse array
        Linear rows.
    row_lower, row_upper : (k,) arrays
        Bounds of the linear rows.
    cones : tuple of QuadraticRow
        Quadratic rows.
    losses : tuple of (int, int)
        Positions of a margin r and of an s with `s >= log(1 + exp(-r))`.
    """

    position: dict[int, int]
    binary: BoolArray
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray
    constant: float
    terms: Terms
    rows: csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    cones: tuple[QuadraticRow, ...]
    losses: tuple[tuple[int, int], ...] = ()

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.cost)

    def matrix(self, terms: Terms) -> csr_matrix:
        """Return quadratic terms as a sparse (m, m) matrix."""
        return csr_matrix((terms[2], terms[:2]), shape=(self.size, self.size))

    def columns(self, variables: list[Any]) -> IntArray:
        """Return the positions of Pyomo variables."""
        return np.array([self.position[id(v)] for v in variables], dtype=np.int64)

    def vector(self, values: dict[int, float]) -> FloatArray:
        """Return a full point as an array."""
        x = np.zeros(self.size)
        for key, value in values.items():
            x[self.position[key]] = value
        return x


def lower_model(model: SparseModel) -> LoweredProblem:
    """Return a model as arrays; O(terms).

    Raises
    ------
    ValueError
        If an expression is not quadratic, or a quadratic constraint is an equality.
    """
    variables = list(model.pyomo.component_data_objects(pyo.Var, descend_into=True))
    position = {id(v): k for k, v in enumerate(variables)}
    rows, cones = list[tuple[IntArray, FloatArray, float, float]](), list[QuadraticRow]()
    for row in model.pyomo.rows.values():
        index, values, terms, constant = _repn(row.body, position)
        low = -np.inf if row.lower is None else pyo.value(row.lower) - constant
        high = np.inf if row.upper is None else pyo.value(row.upper) - constant
        if not len(terms[0]):
            rows.append((index, values, low, high))
        elif np.isneginf(low):
            cones.append(QuadraticRow(index, values, terms, high))
        else:
            raise ValueError(f"{row.name}: only quadratic constraints of the form <= are supported")
    places, factors, lows, highs = zip(*rows, strict=True)
    indptr = np.cumsum([0, *map(len, places)])
    index, values, terms, constant = _repn(model.pyomo.phi.expr, position)
    cost = np.zeros(len(variables))
    cost[index] = values
    bound = [(-np.inf if v.lb is None else v.lb, np.inf if v.ub is None else v.ub) for v in variables]
    return LoweredProblem(
        position=position,
        binary=np.array([v.is_binary() for v in variables]),
        lower=np.array([b[0] for b in bound], dtype=np.float64),
        upper=np.array([b[1] for b in bound], dtype=np.float64),
        cost=cost,
        constant=constant,
        terms=terms,
        rows=csr_array((np.concatenate(factors), np.concatenate(places), indptr), shape=(len(rows), len(variables))),
        row_lower=np.array(lows),
        row_upper=np.array(highs),
        cones=tuple(cones),
        losses=tuple((position[id(r)], position[id(s)]) for r, s in model.losses),
    )


def _repn(expression: Any, position: dict[int, int]) -> tuple[IntArray, FloatArray, Terms, float]:
    repn = generate_standard_repn(expression, compute_values=True, quadratic=True)
    if repn.nonlinear_expr is not None:
        raise ValueError("the expression is not quadratic")

    def places(variables: Iterable[Any]) -> IntArray:
        return np.array([position[id(v)] for v in variables], dtype=np.int64)

    pairs, numbers = list(repn.quadratic_vars), np.array(repn.quadratic_coefs, dtype=np.float64)
    terms = places(a for a, _ in pairs), places(b for _, b in pairs), numbers
    return places(repn.linear_vars), np.array(repn.linear_coefs, dtype=np.float64), terms, float(repn.constant)


class ModelColumns(NamedTuple):
    """Positions of the variables in the compiled model; u ends with coefficients without an indicator."""

    z: IntArray
    u: IntArray
    t: IntArray
    r: IntArray
    s: IntArray


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
    model : FactorModel
        Model of the task.
    arrays : LoweredProblem
        The compiled model.
    tolerance : float
        Minimum violation of a cut.
    """

    def __init__(self, task: ModelTask, model: FactorModel, arrays: LoweredProblem, tolerance: float) -> None:
        self.task, self.tolerance = task, tolerance
        groups = (model.z, [*model.u, *model.free], model.t, model.r, model.s)
        self.at = ModelColumns(*(arrays.columns(variables) for variables in groups))
        self._reach = np.maximum(np.abs(task.lo), np.abs(task.hi))

    def violated_tangents(self, x: FloatArray) -> Iterator[Cuts]:
        """Yield the tangents that a point of all variables violates."""
        z = np.clip(x[self.at.z], 1e-9, 1.0)
        r, s, u, t = x[self.at.r], x[self.at.s], x[self.at.u][: self.task.q], x[self.at.t]
        return self.make_tangents(r, self.task.scaled.losses_and_slopes(r)[0] - s, u / z, u**2 / z - t)

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
        value, rise = self.task.scaled.losses_and_slopes(ri)
        yield Cuts(value - rise * ri, (at.s[rows_i], at.r[rows_i]), (ones(ri), -rise))
        yield Cuts(np.zeros_like(aj), (at.t[rows_j], at.u[rows_j], at.z[rows_j]), (ones(aj), -2.0 * aj, aj**2))

"""A Pyomo model as plain arrays, which every solver takes directly: no files, no global state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn
from scipy.sparse import csr_array, csr_matrix

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.formulation.models.common import SparseModel

Terms = tuple[IntArray, IntArray, FloatArray]


@dataclass(frozen=True, eq=False)
class QuadraticRow:
    """`linear' x + sum value x_i x_j <= upper`."""

    index: IntArray
    linear: FloatArray
    terms: Terms
    upper: float


@dataclass(frozen=True, eq=False)
class Lowered:
    """`min constant + cost'x + quadratic terms` over linear and quadratic rows.

    Attributes
    ----------
    position : dict
        Column of each Pyomo variable by its `id`.
    binary : (m,) bool array
        Which variables are binary.
    lower, upper, cost : (m,) arrays
        Bounds of the variables and their cost.
    constant : float
        Of the objective.
    terms : three arrays
        Row, column and value of the quadratic terms of the objective.
    rows : (k, m) sparse array
        Linear rows.
    row_lower, row_upper : (k,) arrays
        Their bounds.
    cones : tuple of QuadraticRow
        Quadratic rows.
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


def lower_model(model: SparseModel) -> Lowered:
    """Compile a model; O(terms).

    Raises
    ------
    ValueError
        For an expression that is not quadratic, or a quadratic equality.
    """
    variables = list(model.pyomo.component_data_objects(pyo.Var, descend_into=True))
    position = {id(v): k for k, v in enumerate(variables)}
    size = len(variables)
    linear_rows: list[tuple[list[int], list[float]]] = []
    low: list[float] = []
    high: list[float] = []
    cones: list[QuadraticRow] = []
    for row in model.pyomo.component_data_objects(pyo.Constraint, active=True):
        index, values, terms, constant = _repn(row.body, position)
        lower = -np.inf if row.lower is None else pyo.value(row.lower) - constant
        upper = np.inf if row.upper is None else pyo.value(row.upper) - constant
        if not len(terms[0]):
            linear_rows.append((index, values))
            low.append(lower)
            high.append(upper)
        elif np.isneginf(lower):
            cones.append(QuadraticRow(np.array(index, dtype=np.int64), np.array(values), terms, upper))
        else:
            raise ValueError(f"{row.name}: only quadratic rows of the form <= are known")
    index, values, terms, constant = _repn(model.pyomo.phi.expr, position)
    cost = np.zeros(size)
    cost[index] = values
    indptr = np.cumsum([0, *(len(i) for i, _ in linear_rows)])
    indices = np.array([k for i, _ in linear_rows for k in i], dtype=np.int64)
    data = np.array([v for _, vs in linear_rows for v in vs], dtype=np.float64)
    bound = [(-np.inf if v.lb is None else v.lb, np.inf if v.ub is None else v.ub) for v in variables]
    return Lowered(
        position=position,
        binary=np.array([v.is_binary() for v in variables]),
        lower=np.array([b[0] for b in bound], dtype=np.float64),
        upper=np.array([b[1] for b in bound], dtype=np.float64),
        cost=cost,
        constant=constant,
        terms=terms,
        rows=csr_array((data, indices, indptr), shape=(len(linear_rows), size)),
        row_lower=np.array(low),
        row_upper=np.array(high),
        cones=tuple(cones),
    )


def _repn(expression: Any, position: dict[int, int]) -> tuple[list[int], list[float], Terms, float]:
    repn = generate_standard_repn(expression, compute_values=True, quadratic=True)
    if repn.nonlinear_expr is not None:
        raise ValueError("the expression is not quadratic")
    index = [position[id(v)] for v in repn.linear_vars]
    values = [float(a) for a in repn.linear_coefs]
    rows = np.array([position[id(a)] for a, _ in repn.quadratic_vars], dtype=np.int64)
    columns = np.array([position[id(b)] for _, b in repn.quadratic_vars], dtype=np.int64)
    terms = (rows, columns, np.array([float(a) for a in repn.quadratic_coefs], dtype=np.float64))
    return index, values, terms, float(repn.constant)

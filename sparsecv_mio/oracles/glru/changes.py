"""The difference between an old fit and a new problem, computed when an interval needs it.

Coordinates are those of the region: the columns of the problem, added ones after them, an intercept last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.oracles.glru.fit import EPS, Fit, box_table

ANCHORS = 8


@dataclass(frozen=True, eq=False)
class CommonPoint:
    """The rows of a problem relative to one common point z: their predictions and their distances to z.

    Attributes
    ----------
    point : (d,) array
        The common point z, over the penalised columns.
    t, y : (k,) arrays
        Predictions `x_i' w + b` and responses.
    distance : (k,) array
        `||x_i - z||` over the penalised columns, rounded up.
    """

    point: FloatArray
    t: FloatArray
    y: FloatArray
    distance: FloatArray


@dataclass(frozen=True, eq=False)
class Anchor:
    """A few rows of the problem with their dual variables: `rows` (k, d + 1) with the intercept's one, `y`, `alpha`."""

    rows: FloatArray
    y: FloatArray
    alpha: FloatArray


class Change(Protocol):
    """What the intervals of a region need to know of the new problem's data."""

    def column_sq(self) -> FloatArray:
        """Squared norms of the columns over the rows of the problem, rounded up."""
        ...

    def box(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest `X_j' alpha` over the box of the loss's domain: (27g), (27j) of Remark 2."""
        ...

    def common_point(self) -> CommonPoint:
        """Return the rows relative to one common point."""
        ...

    def anchor(self) -> Anchor:
        """Return the rows whose predictions are bounded best by their dual variables."""
        ...


@dataclass(eq=False)
class RowChange:
    """Rows `gone` are removed and rows `X_new` added; `columns` are the problem's positions in its matrix."""

    fit: Fit
    columns: Any
    gone: IntArray
    X_gone: FloatArray
    X_new: FloatArray
    y_new: FloatArray
    t_new: FloatArray
    alpha_new: FloatArray
    moved_rows: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    moved_alpha: FloatArray = field(default_factory=lambda: np.zeros(0))
    factor: float = 1.0

    def column_sq(self) -> FloatArray:
        old = self.fit.column_sq[self.columns]
        change = np.square(self.X_new).sum(axis=0) - np.square(self.X_gone).sum(axis=0)
        return np.maximum(old + change, 0.0) + 8.0 * EPS * old

    def box(self) -> tuple[FloatArray, FloatArray]:
        problem = self.fit.problem
        table = self.fit.box[:, self.columns] - box_table(self.X_gone, problem.y[self.gone], problem.loss)
        table = table + box_table(self.X_new, self.y_new, problem.loss)
        spread = 8.0 * EPS * (np.abs(self.fit.box[0]) + np.abs(self.fit.box[2]))[self.columns]
        return _box_ends(table, spread)

    def common_point(self) -> CommonPoint:
        fit, kept = self.fit, self._kept()
        z = fit.common_point if isinstance(self.columns, slice) else fit.common_point[self.columns[:-1]]
        far = np.square(self.X_new[:, :-1] - z).sum(axis=1) * (1.0 + 8.0 * EPS)
        distance = np.sqrt(np.concatenate([fit.distance_sq[kept], far]))
        t, y = np.concatenate([fit.t[kept], self.t_new]), np.concatenate([fit.problem.y[kept], self.y_new])
        return CommonPoint(z, t, y, distance)

    def anchor(self) -> Anchor:
        fit, problem = self.fit, self.fit.problem
        kept = self._kept()
        chosen = kept[_steepest(problem.loss.curvature(fit.t[kept], problem.y[kept]))]
        alpha = fit.alpha[chosen].copy()
        place = np.searchsorted(self.moved_rows, chosen)
        for i, k in enumerate(place.tolist()):
            if k < self.moved_rows.size and self.moved_rows[k] == chosen[i]:
                alpha[i] = self.moved_alpha[k]
        return Anchor(problem.design.rows(chosen)[:, self.columns], problem.y[chosen], self.factor * alpha)

    def _kept(self) -> IntArray:
        return without(self.fit.problem.rows, self.gone, self.fit.problem.design.n)


@dataclass(eq=False)
class ColumnChange:
    """Columns `gone` are removed, `X_new` added, `kept` (penalised) and `tail` (an intercept, if any) unchanged."""

    fit: Fit
    kept: IntArray
    tail: IntArray
    X_gone: FloatArray
    gone: IntArray
    X_new: FloatArray
    t: FloatArray
    factor: float = 1.0

    def column_sq(self) -> FloatArray:
        old, rows = self.fit.column_sq, self.fit.problem.rows
        new = np.square(self.X_new[rows]).sum(axis=0) * (1.0 + 8.0 * EPS)
        return np.concatenate([old[self.kept], new, old[self.tail]])

    def box(self) -> tuple[FloatArray, FloatArray]:
        problem = self.fit.problem
        old = self.fit.box
        new = box_table(self.X_new[problem.rows], problem.y[problem.rows], problem.loss)
        table = np.concatenate([old[:, self.kept], new, old[:, self.tail]], axis=1)
        return _box_ends(table, 8.0 * EPS * (np.abs(table[0]) + np.abs(table[2])))

    def common_point(self) -> CommonPoint:
        fit, rows = self.fit, self.fit.problem.rows
        weight = fit.problem.keep_rows(fit.problem.loss.curvature(fit.t, fit.problem.y))
        z_new = weight @ self.X_new / max(float(weight.sum()), np.finfo(float).tiny)
        lost = np.square(self.X_gone - fit.common_point[self.gone]).sum(axis=1)
        found = np.square(self.X_new - z_new).sum(axis=1)
        squares = np.maximum(fit.distance_sq - lost + found, 0.0) + 8.0 * EPS * (fit.distance_sq + found)
        z = np.concatenate([fit.common_point[self.kept], z_new])
        return CommonPoint(z, self.t[rows], fit.problem.y[rows], np.sqrt(squares[rows]))

    def anchor(self) -> Anchor:
        fit, problem = self.fit, self.fit.problem
        rows = problem.rows
        chosen = rows[_steepest(problem.loss.curvature(fit.t[rows], problem.y[rows]))]
        block = problem.design.rows(chosen)
        parts = [block[:, self.kept], self.X_new[chosen], block[:, self.tail]]
        return Anchor(np.hstack(parts), problem.y[chosen], self.factor * fit.alpha[chosen])


def without(index: IntArray, gone: IntArray, size: int) -> IntArray:
    """Return the positions in `index` that are not in `gone`, in ascending order. O(size), without a sort.

    Parameters
    ----------
    index, gone : int arrays
        Positions below `size`.
    size : int
        Number of positions.

    Returns
    -------
    int array
    """
    mask = np.zeros(size, dtype=bool)
    mask[index] = True
    mask[gone] = False
    return np.flatnonzero(mask)


def _steepest(curvature: FloatArray) -> IntArray:
    """Return the rows of largest curvature, where an interval of the dual variable bounds the prediction best."""
    count = min(ANCHORS, curvature.size)
    return np.argpartition(-curvature, count - 1)[:count]


def _box_ends(table: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    low = np.where(table[1] > 0.5, -np.inf, table[0] - spread)
    high = np.where(table[3] > 0.5, np.inf, table[2] + spread)
    return low, high

"""Coordinates of one fit in which no digit of the file is lost, and what rounding may do to its objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.doubled import DoubleDouble, exact_sum


def power_of_two(size: ArrayLike) -> FloatArray:
    """Return the power of two above each size, 1 for 0."""
    return np.asarray(np.exp2(np.where(np.asarray(size) > 0.0, np.frexp(size)[1], 0).astype(float)))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Some columns and the target about their centres and over powers of two, in which nothing is lost.

    `z = (x - x_shift) / x_unit - x_rest`, `t = (y - y_shift) / y_unit - y_rest`: the shifts are floats near the
    centres, so that a spread far below its offset keeps its digits; the rests are what the centres are off the shifts.
    """

    columns: tuple[int, ...]
    x_shift: FloatArray
    y_shift: float
    x_unit: FloatArray
    y_unit: float
    x_rest: DoubleDouble
    y_rest: DoubleDouble

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        columns: Sequence[int],
        about: IntArray | None,
        root: FloatArray | None = None,
    ) -> Coordinates:
        """Choose the coordinates of some columns; the rests are means in floats.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array
        columns : sequence of int
        about : int array or None
            Rows whose means are the centres; None: zero.
        root : (n,) array, optional
            Roots of the weights of all rows; 1 by default.
        """
        A, q = X[:, list(columns)], len(columns)
        x_shift, y_shift = np.zeros(q), 0.0
        if about is not None:
            x_shift, y_shift = _mean(A[about], about, root), float(_mean(y[about], about, root))
        # powers of two, so that columns and targets of any size are exact and of size one in between
        x_unit = power_of_two(np.abs(A - x_shift).max(axis=0, initial=0.0))
        y_unit = float(power_of_two(np.abs(y - y_shift).max(initial=0.0)))
        zero = DoubleDouble.of(np.zeros(q)), DoubleDouble.of(0.0)
        plain = cls(tuple(columns), x_shift, y_shift, x_unit, y_unit, *zero)
        if about is None:
            return plain
        Z, t = plain.rows(X, y, about)
        rests = DoubleDouble.of(_mean(Z, about, root)), DoubleDouble.of(_mean(t, about, root))
        return replace(plain, x_rest=rests[0], y_rest=rests[1])

    @property
    def centers(self) -> tuple[FloatArray, float]:
        """What is taken off the columns and the target, in units of the file, rounded."""
        x_center = np.asarray(self.x_shift + self.x_rest.high * self.x_unit)
        return x_center, self.y_shift + float(self.y_rest.high) * self.y_unit

    def rows(self, X: FloatArray, y: FloatArray, index: IntArray) -> tuple[FloatArray, FloatArray]:
        """(Z, t) of some rows in floats, each number with a relative error of an ulp or two of the spread.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array
        index : (m,) int array
            The rows.
        """
        Z = (X[index[:, None], list(self.columns)] - self.x_shift) / self.x_unit - self.x_rest.high
        return Z, (y[index] - self.y_shift) / self.y_unit - self.y_rest.high

    def doubled_rows(self, X: FloatArray, y: FloatArray, index: IntArray) -> tuple[DoubleDouble, DoubleDouble]:
        """(Z, t) of some rows in twice the precision.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array
        index : (m,) int array
            The rows.
        """
        Z = DoubleDouble(*exact_sum(X[index[:, None], list(self.columns)], -self.x_shift)).scaled(1.0 / self.x_unit)
        t = DoubleDouble(*exact_sum(y[index], -self.y_shift)).scaled(1.0 / self.y_unit)
        return Z - self.x_rest, t - self.y_rest

    def doubled(
        self, X: FloatArray, y: FloatArray, about: IntArray | None, root: FloatArray | None = None
    ) -> Coordinates:
        """Return the same with the rests in twice the precision.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array
        about, root
            As in `of`.
        """
        if about is None:
            return self
        Z, t = replace(self, x_rest=self.x_rest.scaled(0.0), y_rest=self.y_rest.scaled(0.0)).doubled_rows(X, y, about)
        if root is None:
            return replace(self, x_rest=Z.sum(0) / float(len(about)), y_rest=t.sum(0) / float(len(about)))
        part = root[about]
        total = float(part @ part)
        x_rest, y_rest = (Z * part[:, None] * part[:, None]).sum(0) / total, (t * part * part).sum(0) / total
        return replace(self, x_rest=x_rest, y_rest=y_rest)


def _mean(rows: FloatArray, about: IntArray, root: FloatArray | None) -> FloatArray:
    """Mean of the rows `about`, weighted."""
    if root is None:
        return np.asarray(rows.mean(axis=0))
    weight = root[about] ** 2
    return np.asarray(weight @ rows / weight.sum())


OBJECTIVE_RTOL = 1e-9


def size_of_target(dataset: Dataset, intercept: str) -> float:
    """Return the largest target about its mean, about zero without an intercept."""
    y = dataset.y
    return float(np.abs(y).max() if intercept == "none" else np.ptp(y))


def objective_slack(objective: float, dataset: Dataset, intercept: str) -> float:
    """Bound what rounding may do to an objective of the search.

    Parameters
    ----------
    objective : float
    dataset : Dataset
    intercept : {"fold", "global", "none"}

    Returns
    -------
    float
        A part of the objective and, for a fit that is nearly perfect, what its residuals may be off.
    """
    noise = 1e-15 * size_of_target(dataset, intercept) * math.sqrt(dataset.weight_of(slice(0, dataset.n)))
    return OBJECTIVE_RTOL * objective + noise * (2.0 * math.sqrt(objective) + noise)

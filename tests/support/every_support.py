"""The optimum of one (gamma, tau) in a fold, and h over all folds, by fitting every support: what judges the search."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.problem.objective import RidgeFit, fit, held_out_error, varying_columns
from sparsecv_mio.units import TIE_RTOL

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Cell:
    """The optimum of one (gamma, tau) on one training set: every support within `TIE_RTOL` of the best."""

    objective: float
    fits: tuple[RidgeFit, ...]

    @property
    def supports(self) -> tuple[tuple[int, ...], ...]:
        """The tied supports."""
        return tuple(model.support for model in self.fits)

    def held_out(self, X: FloatArray, y: FloatArray, test: IntArray) -> tuple[float, float]:
        """Smallest and largest held-out sum of squares over the tied supports.

        Parameters
        ----------
        X : (n, p) array
        y : (n,) array
        test : int array
            The held-out rows.
        """
        errors = [held_out_error(model, X, y, test) for model in self.fits]
        return min(errors), max(errors)


def brute_force_cell(
    X: FloatArray,
    y: FloatArray,
    tau: int,
    gamma: float,
    *,
    scale: str = "length",
    intercept: str = "fold",
    rows: IntArray | None = None,
) -> Cell:
    """Best supports of size tau by trying all of them; fewer than tau varying columns give the one support of them all.

    Parameters
    ----------
    X : (n, p) array
    y : (n,) array
    tau : int
    gamma : float
    scale, intercept : str
        As in `problem.objective`.
    rows : array of int, optional
        Training rows; all by default.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
    >>> brute_force_cell(X, np.array([0.0, 1.0, 2.0, 3.1]), 1, 0.1).supports
    ((0,),)
    """
    candidates = varying_columns(X).tolist()
    fits = [
        fit(X, y, support, gamma, scale=scale, intercept=intercept, rows=rows)
        for support in combinations(candidates, min(tau, len(candidates)))
    ]
    best = min(model.objective for model in fits)
    return Cell(best, tuple(model for model in fits if model.objective <= best * (1.0 + TIE_RTOL)))


def brute_force_cv_error(
    X: FloatArray,
    y: FloatArray,
    labels: IntArray,
    tau: int,
    gamma: float,
    *,
    scale: str = "length",
    intercept: str = "fold",
) -> tuple[float, float]:
    """h(gamma, tau) by brute force, as the interval over ties (a point without any).

    Parameters
    ----------
    X : (n, p) array
    y : (n,) array
    labels : (n,) integers
        The fold that holds each row out, -1 for never.
    tau : int
    gamma : float
    scale, intercept : str
        As in `problem.objective`.
    """
    lower = upper = 0.0
    for fold in range(int(labels.max()) + 1):
        train, test = np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)
        cell = brute_force_cell(X, y, tau, gamma, scale=scale, intercept=intercept, rows=train)
        low, high = cell.held_out(X, y, test)
        lower, upper = lower + low, upper + high
    scored = int(np.count_nonzero(labels >= 0))
    return lower / scored, upper / scored

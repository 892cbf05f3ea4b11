"""Supports that keep to restrictions where nothing else is known when the time is over, in plain NumPy.

As :mod:`sparsecv_mio.search.heuristics.fallback`, no kernel is called: first the least support that is allowed, in
every fold, then columns by what each explains alone, fold by fold while there is time. Nothing is proved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends.native.family import Family, columns_of
from sparsecv_mio.formulation.constraints import constraints_of
from sparsecv_mio.problem.centred_rows import CentredRows
from sparsecv_mio.problem.problem import LARGEST_PENALTY
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.fallback import FallbackSupports


def restricted_fallback(data: StandardData, folds: FoldPlan, grid: Grid, until: float) -> FallbackSupports:
    """Find and score supports within the restrictions at one gamma, the middle one, for every tau and fold.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
    until : float
        Moment of `time.monotonic` after which no fold is improved any more.

    Returns
    -------
    FallbackSupports

    Raises
    ------
    BadInput
        For a tau of which no model keeps to the restrictions.
    """
    constraints = constraints_of(data)
    fits = _Fits(data, float(grid.gammas[len(grid.gammas) // 2]), constraints.interval(data.q))
    families = [Family.some(data.q, tau, constraints) for tau in grid.taus.tolist()]
    whole = np.arange(data.n)
    trained = [whole, *(folds.train_rows(fold) for fold in range(folds.k))]
    scored = [whole[:0], *(folds.scored_rows(fold) for fold in range(folds.k))]
    found = [[fits.fit(least, train, test) for _, least in families]
             for train, test in zip(trained, scored, strict=True)]  # fmt: skip
    for mine, train, test in zip(found, trained, scored, strict=True):
        if time.monotonic() > until:
            break
        order = fits.order(train)
        for t, (family, _) in enumerate(families):
            other = fits.fit(family.greedily(order), train, test)
            mine[t] = min(mine[t], other, key=lambda one: one[1])
    all_rows, by_fold = found[0], found[1:]
    return FallbackSupports(
        gamma=fits.gamma,
        supports=[[mine[t][0] for mine in by_fold] for t in range(len(families))],
        nominal=np.array([[mine[t][2] for mine in by_fold] for t in range(len(families))]),
        value=np.array([[mine[t][1] for mine in by_fold] for t in range(len(families))]),
        on_all_rows=[support for support, _, _ in all_rows],
        value_on_all_rows=np.array([value for _, value, _ in all_rows]),
    )  # fmt: skip


def restricted_on_all_rows(
    data: StandardData, gammas: Sequence[float], taus: Sequence[int]
) -> list[dict[int, tuple[IntArray, float]]]:
    """Find supports of all rows within the restrictions.

    Parameters
    ----------
    data : StandardData
    gammas : sequence of G floats
    taus : sequence of int

    Returns
    -------
    list of dicts of int to (int array, float)
        By gamma and tau, a support and its objective.
    """
    constraints, whole = constraints_of(data), np.arange(data.n)
    out = []
    for gamma in gammas:
        fits, found = _Fits(data, gamma, constraints.interval(data.q)), {}
        order = fits.order(whole)
        for tau in taus:
            support, value, _ = fits.fit(Family(data.q, tau, constraints).greedily(order), whole, whole[:0])
            found[tau] = support, value
        out.append(found)
    return out


class _Fits:
    """Fits on training rows, signs held by leaving out whatever has the wrong one."""

    def __init__(self, data: StandardData, gamma: float, box: tuple[FloatArray, FloatArray]) -> None:
        self.data, self.gamma, (self.lo, self.hi) = data, gamma, box
        self.penalty = np.minimum(gamma / 2.0 * data.weight, LARGEST_PENALTY)

    def order(self, train: IntArray) -> list[int]:
        """Columns by what each explains alone, as far as its sign allows."""
        rows = CentredRows.of(self.data, train)
        c = rows.r @ rows.V
        c = np.where(((self.lo == 0.0) & (c < 0.0)) | ((self.hi == 0.0) & (c > 0.0)), 0.0, c)
        gain = c**2 / (np.einsum("ij,ij->j", rows.V, rows.V) + self.penalty)
        return [j for j in np.argsort(-gain, kind="stable").tolist() if gain[j] > 0.0]

    def fit(self, support: int | None, train: IntArray, test: IntArray) -> tuple[IntArray, float, float]:
        """Return the columns that are left of a support, its objective and its held-out sum of squares."""
        columns = np.array(list(columns_of(support or 0)), dtype=np.int64)
        while True:
            few = self.data.only(columns)
            rows = CentredRows.of(few, train)
            M = rows.V.T @ rows.V + np.diag(self.penalty[columns])
            b = np.linalg.lstsq(M, rows.r @ rows.V, rcond=None)[0]
            wrong = (b < self.lo[columns]) | (b > self.hi[columns])
            if not wrong.any():
                break
            columns = columns[~wrong]
        rest = rows.r - rows.V @ b
        H, u = few.about(test, rows.v_mean, rows.r_mean)
        miss = u - H @ b
        return columns, float(rest @ rest + self.penalty[columns] @ b**2), float(miss @ miss)

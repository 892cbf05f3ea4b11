"""R^2, adjusted R^2, Cp and BIC of best subsets on all rows, as R's leaps defines them; gamma 0 where that is possible.

Their degrees of freedom are those of least squares, one for each feature: they are meant for a small gamma. A ridge
weight takes some of these away, and choosing the best of many subsets adds others, which none of the four knows of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.records import PathRow
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.units import GAMMA_RANGE

MOST_WORK = 2e10  # n p^2 up to which all columns are fitted for Cp
REGULAR = 1e-12  # least eigenvalue of X'X, columns of length 1, down to which gamma 0 is taken
NO_RIDGE = GAMMA_RANGE[0]  # what gamma 0 is computed as: beside an eigenvalue of 1e-12 it changes no digit


class Criteria(NamedTuple):
    """How well a subset fits; NaN where the rows are too few, or the fit is perfect.

    With RSS the residual sum of squares, TSS that about the mean, d features and n rows: `r_squared = 1 - RSS / TSS`,
    `adjusted = 1 - (RSS / (n - d - 1)) / (TSS / (n - 1))`, `cp = RSS / s2 - n + 2 (d + 1)`, s2 the residual variance
    of all columns, and `bic = n log(RSS / TSS) + (d + 1) log n`. Without an intercept there is no 1 and no mean.
    """

    r_squared: float
    adjusted: float
    cp: float
    bic: float


def criteria(rows: Sequence[PathRow], data: Dataset, intercept: bool) -> list[Criteria]:
    """Compute the criteria of some models; O(n p) each, and O(n p^2) once.

    Parameters
    ----------
    rows : sequence of PathRow
    data : Dataset
        The data of their record.
    intercept : bool
        Whether the models have one.

    Examples
    --------
    >>> import sparsecv_mio as sc
    >>> data = sc.read_dataset("instances/prostate.csv", target="lpsa")
    >>> [round(one.r_squared, 3) for one in criteria(sc.best_subsets(data, gammas=0).path, data, True)][:3]
    [0.539, 0.586, 0.626]
    """
    weights = np.ones(data.n) if data.row_weights is None else data.row_weights
    free, place = int(intercept), {name: j for j, name in enumerate(data.names)}
    centred = data.y - float(np.average(data.y, weights=weights)) * free
    total, variance = float(weights @ centred**2), _residual_variance(data, weights, intercept)
    found = []
    for row in rows:
        beta = np.zeros(data.p)
        for name, value in row.coefficients.items():
            beta[place[name]] = value
        rss = float(weights @ (data.y - data.X @ beta - row.intercept) ** 2)
        share, used = rss / total, len(row.support) + free
        left = data.n - used
        adjusted = 1.0 - share * (data.n - free) / left if left > 0 else math.nan
        bic = data.n * math.log(share) + used * math.log(data.n) if share > 1e-20 else math.nan
        found.append(Criteria(1.0 - share, adjusted, rss / variance - data.n + 2 * used if variance else math.nan, bic))
    return found


def _residual_variance(data: Dataset, weights: FloatArray, intercept: bool) -> float:
    """Return the residual variance of the least-squares fit on all columns; 0 where there is none, or it takes long."""
    n, p = data.X.shape
    if n <= p + intercept or n * p**2 > MOST_WORK:
        return 0.0
    root = np.sqrt(weights)
    X, y = data.X, data.y
    if intercept:
        X, y = X - np.average(X, axis=0, weights=weights), y - np.average(y, weights=weights)
    X, y = X * root[:, None], y * root
    length = np.linalg.norm(X, axis=0)
    beta, _, rank, _ = np.linalg.lstsq(X[:, length > 0.0] / length[length > 0.0], y, rcond=None)
    rest = y - X[:, length > 0.0] / length[length > 0.0] @ beta
    return float(rest @ rest) / (n - int(rank) - intercept)


def refuse_dependent(data: StandardData) -> None:
    """Raise `BadInput` where columns are linearly dependent: without a ridge weight many models are then the best.

    Parameters
    ----------
    data : StandardData

    Notes
    -----
    O(n q^2). With X'X >= c I in columns of length 1, `f_0(S) <= f(S) <= f_0(S) + (gamma / 2) y'y / c`: what is proved
    at `NO_RIDGE` is proved at gamma 0, up to 1e-288 of y'y.
    """
    scatter = row_moments(data, slice(0, data.n)).scatter[: data.q, : data.q] if data.n > data.q else np.zeros((1, 1))
    length = np.sqrt(np.maximum(np.diag(scatter), 1e-300))
    if np.linalg.eigvalsh(scatter / np.outer(length, length))[0] < REGULAR:
        raise BadInput("gamma 0: columns are linearly dependent, so many models are the best: give gamma 1e-9")

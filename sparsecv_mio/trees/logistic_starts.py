"""Good supports of logistic regression: forward selection, then exchanges of one column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.trees.logistic_fits import LogisticFits

SWAP_COLUMNS = 6  # columns with the steepest gradients that are tried in the place of one
BETTER = 1e-11  # of a value, that an exchange must save


def exchanged(
    fits: LogisticFits, begin: frozenset[int], size: int, expired: Callable[[], bool]
) -> tuple[frozenset[int], FloatArray, float]:
    """Return a good support of a size with its fit and value: a start with more columns, then exchanges.

    Parameters
    ----------
    fits : LogisticFits
    begin : frozenset of int
        Varying columns, at most the size, with those that are forced in.
    size : int
    expired : callable
        True ends it; the support may then be smaller.
    """
    support = begin
    point, _, upper = fits.fit(support)
    while len(support) < size and not expired():
        added = _best_of(fits, support, support, point, upper=np.inf)
        if added is None:
            break
        support, point, upper = added
    improved = True
    while improved and not expired():
        improved = False
        for i in sorted(support - set(fits.forced)):
            if expired():
                break
            rest = support - {i}
            better = _best_of(fits, rest, support, fits.fit(rest, point)[0], upper * (1.0 - BETTER))
            if better is not None:
                (support, point, upper), improved = better, True
                break
    return support, point, upper


def _best_of(
    fits: LogisticFits, rest: frozenset[int], barred: frozenset[int], point: FloatArray, upper: float
) -> tuple[frozenset[int], FloatArray, float] | None:
    """Return the best of a support and one of the columns that promise most beside it, if it is below a value."""
    columns = _steepest(fits, point, barred)
    if not len(columns):
        return None
    masks = np.repeat(fits.mask(rest)[None, :], len(columns), axis=0)
    masks[np.arange(len(columns)), columns] = True
    fitted = fits.refit(masks, point, upper)
    best = int(np.argmin(fitted.upper))
    if not fitted.upper[best] < upper:
        return None
    return rest | {int(columns[best])}, fitted.points[best], float(fitted.upper[best])


def _steepest(fits: LogisticFits, point: FloatArray, barred: frozenset[int]) -> IntArray:
    """Return the columns that promise most: the gradient beside the curvature."""
    problem, rows, first = fits.problem, fits.rows, fits.problem.first
    share = expit(-(point @ rows.W))
    gradient = rows.W[first:] @ (problem.v * share)
    curvature = problem.X.T**2 @ (problem.v * share * (1.0 - share)) + 2.0 * problem.ridge
    gain = np.where(fits.varies, gradient**2 / curvature, -1.0)
    gain[list(barred)] = -1.0
    order = np.argsort(-gain, kind="stable")[:SWAP_COLUMNS]
    return order[gain[order] >= 0.0]

"""Bounds of the change that a fold makes to a model, where the best model without the fold is not known.

Theory, stability. With r the residuals of the model of all rows, T the training rows of fold N, u at least the training
objective of every model that may be optimal without N, and h_N in [lower, upper]:

    training rows    |R_T - u|^+ <= change <= min( R_T + u, d (2 sqrt(R_T) + d) ),     R_T = ||r_T||^2
    rows of N        |h_N - R_N| <= change <= h_N + R_N                (one row: change = |h_N - R_N|)

where `d >= ||r_T - r_T^(-N)||` comes from any dual point s r_T: the residual ball of theory section 2,
`||r_T^(-N) - s r_T||^2 <= u - D(s r_T)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.bounds.fold import OUTWARD


@dataclass(frozen=True, eq=False)
class OpenFolds:
    """What is known of the best models without each of some folds.

    Attributes
    ----------
    training : (k,) array
        `R_T`, of the model of all rows.
    held : (k,) array
        `R_N` over the rows that the fold scores.
    value : (k,) array
        At least the training objective of every optimum, rounding included; inf where nothing is known.
    lower, upper : (k,) arrays
        Around the held-out sums of squares.
    single : (k,) bool array
        Whether the fold scores one row.
    complete : (k,) bool array
        Whether it scores all rows that it leaves out.
    distance : (k,) array
        `d`, at least the distance of the residuals on the training rows; inf where nothing is known.
    """

    training: FloatArray
    held: FloatArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    single: BoolArray
    complete: BoolArray
    distance: FloatArray

    def changes(self) -> tuple[FloatArray, FloatArray]:
        """Return the (k,) lower and upper bounds of the changes.

        Examples
        --------
        >>> one, no, yes = np.ones(1), np.zeros(1, dtype=bool), np.ones(1, dtype=bool)
        >>> folds = OpenFolds(4 * one, one, 3 * one, 2 * one, 5 * one, no, yes, np.inf * one)
        >>> [end.round(6).tolist() for end in folds.changes()]
        [[2.0], [13.0]]
        """
        low = np.maximum(self.training - self.value, 0.0)
        with np.errstate(invalid="ignore"):
            near = self.distance * (2.0 * np.sqrt(self.training) + self.distance)
        high = np.minimum(self.training + self.value, near)
        low = low + np.maximum(np.maximum(self.lower - self.held, self.held - self.upper), 0.0)
        above = np.maximum(self.upper - self.held, self.held - self.lower)
        high = high + np.where(self.single, above, self.upper + self.held)
        high = np.where(self.complete, high, np.inf)
        return low * (1.0 - OUTWARD), high * (1.0 + OUTWARD)


def residual_distances(
    residual: FloatArray, target: FloatArray, scores: FloatArray, tau: int, value: FloatArray
) -> FloatArray:
    """Bound how far the residuals of the best models without some folds are from those of a given model.

    Parameters
    ----------
    residual, target : (n, k) arrays
        Residuals of the given model and targets on the training rows, about their means there; 0 on rows left out.
    scores : (q, k) array
        `(x_j' r)^2 / (lam weight_j)` of these residuals.
    tau : int
    value : (k,) array
        At least the training objective of every optimum.

    Returns
    -------
    (k,) array
        The smaller of what the dual points `r` and `s r` say, with s the best factor; O(q k).
    """
    size = np.einsum("ij,ij->j", residual, residual)
    along = np.einsum("ij,ij->j", residual, target)
    tau = min(tau, len(scores))
    rest = len(scores) - tau
    top = np.partition(scores, rest, axis=0)[rest:].sum(axis=0) if tau else np.zeros_like(size)
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.where(size + top > 0.0, np.clip(along / (size + top), 0.0, 1.0), 0.0)
    found = np.full(len(value), np.inf)
    for factor in (np.ones_like(best), best):
        dual = 2.0 * factor * along - factor**2 * (size + top)
        slack = OUTWARD * (np.abs(factor * along) + factor**2 * (size + top) + np.einsum("ij,ij->j", target, target))
        ball = np.sqrt(np.maximum(value - dual + slack, 0.0))
        found = np.minimum(found, (ball + (1.0 - factor) * np.sqrt(size)) * (1.0 + OUTWARD))
    return found

"""Ridge regression by accumulation of moments: exact, by additions only; the order of rows has no effect."""

from __future__ import annotations

from typing import Self

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.accumulate import Moments


class RidgeLearner:
    """`min sum_i (y_i - b0 - x_i'b)^2 + lam ||b||^2` by Gram accumulation and one Cholesky solve per score.

    Updates add the moments of the new rows (theory section 8: nothing is subtracted, so nothing cancels); the result
    does not depend on their order beyond rounding. Moments are immutable, so a copy is free.

    Parameters
    ----------
    lam : float
        Ridge weight, >= 0 (gamma / 2 of theory section 0).
    intercept : bool
        Profile out an unpenalised intercept.

    Raises
    ------
    BadInput
        lam is negative; at the first score, the fit is not unique.

    Examples
    --------
    >>> import numpy as np
    >>> learner = RidgeLearner(0.0, intercept=True)
    >>> learner.update(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]))
    >>> learner.fit()[0].round(12).tolist(), round(learner.fit()[1], 12)
    ([2.0], 1.0)
    """

    def __init__(self, lam: float, *, intercept: bool = False) -> None:
        if not (np.isfinite(lam) and lam >= 0.0):
            raise BadInput(f"ridge needs lam >= 0, not {lam}")
        self.lam = lam
        self.intercept = intercept
        self.moments: Moments | None = None

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Add the moments of m rows. O(m p^2)."""
        new = Moments.of(np.column_stack([X, y]))
        self.moments = new if self.moments is None else self.moments + new

    def update_saving(self, X: FloatArray, y: FloatArray) -> Moments | None:
        """Update and return the former moments."""
        before = self.moments
        self.update(X, y)
        return before

    def revert(self, change: Moments | None) -> None:
        """Restore the former moments."""
        self.moments = change

    def copy(self) -> Self:
        """Return an independent learner; the moments are shared, they never change."""
        twin = type(self)(self.lam, intercept=self.intercept)
        twin.moments = self.moments
        return twin

    def fit(self) -> tuple[FloatArray, float]:
        """Coefficients (p,) and intercept. O(p^3)."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        if self.moments is None:
            raise BadInput("ridge has learned no rows: every fold needs training rows")
        m = self.moments
        full = m.scatter if self.intercept else m.scatter + m.n * np.outer(m.mean, m.mean)
        p = full.shape[0] - 1
        try:
            factor = cho_factor(full[:p, :p] + self.lam * np.eye(p), lower=True)
        except LinAlgError:
            raise BadInput("the ridge fit of a fold is not unique: give lam > 0 or drop redundant columns") from None
        b = cho_solve(factor, full[:p, p])
        return b, float(m.mean[p] - m.mean[:p] @ b) if self.intercept else 0.0

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) predictions."""
        b, b0 = self.fit()
        return np.asarray(X @ b + b0)

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Mean squared error. O(p^3 + m p)."""
        return float(np.mean((y - self.predict(X)) ** 2))

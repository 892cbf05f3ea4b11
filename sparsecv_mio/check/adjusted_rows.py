"""Rows less what the intercept and the columns that are adjusted for tell of them: eliminated without rounding."""

from functools import cached_property

import numpy as np

from .bounded_fits import BoundedMoments, Design
from .proof_file import Arithmetic, Array, Fractions, need


class AdjustedDesign(Design):
    """The data in the units of `Design`; what every model has without a penalty is eliminated from training rows.

    That is done in fractions, in either mode. Floats are rounded from what is left, each once: entries of moments and
    of rows are off by at most `u`, as none exceeds 1.

    Parameters
    ----------
    Z : (n, k) array
        Columns that are adjusted for.
    """

    def __init__(self, X: Array, y: Array, scale: str, intercept: str, kind: Arithmetic, Z: Array) -> None:
        super().__init__(X, y, scale, intercept, kind)
        self.whole = Fractions()
        beside, rows = self.whole.of(Z), self.whole.of(np.column_stack([X, y]))
        rows = rows * self.whole.of(np.ldexp(1.0, -self.powers))
        if intercept == "global":
            beside, rows = (part - part.sum(0) / self.n for part in (beside, rows))
        elif intercept == "fold":
            beside = np.concatenate([self.whole.of(np.ones((self.n, 1))), beside], axis=1)
        self.rows, self.beside = rows, beside
        self.products = self.whole.gram(np.concatenate([beside, rows], axis=1))

    def of_rows(self, left: list[int]) -> BoundedMoments:
        """Return the moments of all rows but those left out, of what is left of columns and target.

        `center` (k, q + 1) says how much of each column beside is taken off.
        """
        need(self.n > len(left), "a fold trains on no row")
        products = self.products
        if left:
            products = products - self.whole.gram(np.concatenate([self.beside[left], self.rows[left]], axis=1))
        share, Q = _eliminated(products, self.beside.shape[1])
        own, u = self._rounded(Q), self.kind.u
        return BoundedMoments(own[:-1, :-1], own[:-1, -1], own[-1, -1], u, share, 0 * u)

    def about(self, m: BoundedMoments, rows: list[int]) -> Array:
        """Return what is left of some rows, the target last; floats of a row that is far off are refused."""
        out = self._rounded(self.rows[rows] - self.whole.product(self.beside[rows], m.center))
        sound = not self.kind.u or np.abs(out).max(initial=0.0) <= 1.0
        need(sound, "rows are too far from those that are adjusted for: use exact mode")
        return out

    @cached_property
    def shares(self) -> Array:
        """(n,) what is eliminated adds to the leverages of the fit on all rows."""
        k = self.beside.shape[1]
        both = np.concatenate([self.products[:k, :k], self.whole.of(np.eye(k))], axis=1)
        inverse, _ = _eliminated(np.concatenate([both, both[:0]]), k)
        return self._rounded(self.whole.inner(self.whole.product(self.beside, inverse), self.beside))

    def _rounded(self, values: Array) -> Array:
        return np.asarray(values, dtype=np.float64) if self.kind.u else values


def _eliminated(A: Array, k: int) -> tuple[Array, Array]:
    """Return `B = A_11^{-1} A_12` and `A_22 - A_21 B`, A symmetric in fractions and A_11 (k, k) definite; or refuse."""
    A = A.copy()
    for j in range(k):
        need(A[j, j] > 0, "what is adjusted for is dependent on the rows that are trained on")
        A[j] = A[j] / A[j, j]
        others = np.arange(len(A)) != j
        A[others] = A[others] - np.outer(A[others, j], A[j])
    return A[:k, k:], A[k:, k:]

"""What a left-out fit asks of a loss: values, gradients and Hessians of rows at a parameter.

:class:`SmoothLoss` is the protocol, :class:`LinearLoss` carries it out for losses of a linear prediction, of which
:mod:`.losses` has six.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BadInput


class Expansion:
    """Second-order Taylor data of `sum_i l(Z_i; .)` at one base point shared by every left-out iterate.

    This is where the method saves its time: gradients and Hessians are taken at one point instead of n (the paper's
    (10)). Here by the loss's own four methods.
    """

    def __init__(self, loss: SmoothLoss, X: FloatArray, y: FloatArray, theta: FloatArray) -> None:
        self._times = lambda D: loss.hessian_times(X, y, theta, D)
        self._gradients = loss.gradients(X, y, theta)
        self._hessian = loss.hessian(X, y, theta)

    def total(self) -> FloatArray:
        """(p,) gradient summed over the rows."""
        return np.asarray(self._gradients.sum(axis=0))

    def hessian(self) -> FloatArray:
        """(p, p) Hessian summed over the rows."""
        return self._hessian

    def rows(self, own: FloatArray) -> FloatArray:
        """(m, p) per row i: `grad l_i + hess l_i own_i`, the linearised gradient at base + own_i."""
        return np.asarray(self._gradients + self._times(own))

    def row_times(self, own: FloatArray) -> FloatArray:
        """(m, p) per row i: `hess l_i own_i`."""
        return np.asarray(self._times(own))

    def apply(self, D: FloatArray) -> FloatArray:
        """(k, p) rows `d H`, H the summed Hessian. O(k p^2)."""
        return D @ self.hessian()


class SmoothLoss(ABC):
    """A loss `l(Z; theta)` with two derivatives in theta: the protocol to implement for a new one.

    `theta` is (p,) for one parameter or (n, p) for one parameter per row where a method says so. Only the four abstract
    methods are needed; the others have general, slower definitions.
    """

    name: str = "custom"

    @abstractmethod
    def values(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the losses of the rows.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        theta : (p,) or (n, p) array
            One parameter, or one for each row.

        Returns
        -------
        (n,) array
        """

    @abstractmethod
    def gradients(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the gradients of the rows' losses.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        theta : (p,) array
            Parameter.

        Returns
        -------
        (n, p) array
        """

    @abstractmethod
    def hessian(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the sum of the Hessians of the rows' losses.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        theta : (p,) array
            Parameter.

        Returns
        -------
        (p, p) array
        """

    @abstractmethod
    def hessian_times(self, X: FloatArray, y: FloatArray, theta: FloatArray, D: FloatArray) -> FloatArray:
        """Multiply each row's Hessian by a vector of its own.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        theta : (p,) array
            Parameter.
        D : (n, p) array
            One vector for each row.

        Returns
        -------
        (n, p) array
        """

    def check(self, y: FloatArray) -> None:  # noqa: B027 - most losses take every response
        """Raise :class:`BadInput` when a response is outside the loss's domain."""

    def bound(self, X: FloatArray, y: FloatArray, rows: int | None = None) -> float | None:
        """Bound the largest eigenvalue of the Hessian summed over a batch of rows, at any parameter.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        rows : int, optional
            Size of the batch; all rows by default.

        Returns
        -------
        float or None
            None when there is no bound.
        """
        return None

    def row_hessians(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the Hessian of every row's loss.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        theta : (p,) array
            Parameter.

        Returns
        -------
        (n, p, p) array
        """
        return np.stack([self.hessian(X[i : i + 1], y[i : i + 1], theta) for i in range(X.shape[0])])

    def expand(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> Expansion:
        """Return the Taylor expansion of the summed losses.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        theta : (p,) array
            Where to expand.

        Returns
        -------
        Expansion
        """
        return Expansion(self, X, y, theta)

    def gradient_sums(
        self, X: FloatArray, y: FloatArray, Theta: FloatArray, skip: tuple[IntArray, IntArray]
    ) -> FloatArray:
        """Return gradients summed over the rows, for several fits that leave some rows out.

        Parameters
        ----------
        X, y : (n, p), (n,) arrays
            Rows.
        Theta : (b, p) array
            One parameter for each fit.
        skip : pair of (s,) int arrays
            Fit `skip[0][j]` leaves out row `skip[1][j]`.

        Returns
        -------
        (b, p) array
        """
        out = np.empty_like(Theta)
        for i, theta in enumerate(Theta):
            keep = np.ones(X.shape[0], dtype=bool)
            keep[skip[1][skip[0] == i]] = False
            out[i] = self.gradients(X[keep], y[keep], theta).sum(axis=0)
        return out


class LinearLoss(SmoothLoss):
    """A loss of the linear prediction, `l(Z_i; theta) = l_y(t)`, `t = x_i' theta`.

    Subclasses give the loss and its first two derivatives in t, elementwise with broadcasting, and state `smoothness`,
    the largest second derivative (infinite unless stated), and `labels` (True when y must be -1 or +1). Everything else
    is batched matrix arithmetic.
    """

    smoothness: float = np.inf
    labels: bool = False

    @abstractmethod
    def value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """`l_y(t)`."""

    @abstractmethod
    def derivative(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """`l_y'(t)`."""

    @abstractmethod
    def curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """`l_y''(t)`; at a kink of the derivative one of the one-sided values."""

    def slopes(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivative for many predictions at once: a loss may have a faster formula for that."""
        return self.derivative(t, y)

    def curvatures(self, t: FloatArray, y: FloatArray) -> FloatArray:
        """Return the second derivative for many predictions at once."""
        return self.curvature(t, y)

    def check(self, y: FloatArray) -> None:
        """Check that the loss is defined for every response.

        Raises
        ------
        BadInput
            For a loss of labels: if a value is neither -1 nor +1.
        """
        if self.labels and not np.all(np.abs(y) == 1.0):
            raise BadInput(f"loss {self.name!r} needs labels -1 and +1: map the two values of the target to them")

    def values(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        return self.value(X @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", X, theta), y)

    def gradients(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        return self.slopes(X @ theta, y)[:, None] * X

    def hessian(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        return (X.T * self.curvatures(X @ theta, y)) @ X

    def hessian_times(self, X: FloatArray, y: FloatArray, theta: FloatArray, D: FloatArray) -> FloatArray:
        return (self.curvatures(X @ theta, y) * np.einsum("ij,ij->i", X, D))[:, None] * X

    def bound(self, X: FloatArray, y: FloatArray, rows: int | None = None) -> float | None:
        if not np.isfinite(self.smoothness) or X.shape[0] == 0:
            return 0.0 if np.isfinite(self.smoothness) else None
        gram = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
        largest = float(np.linalg.eigvalsh(gram)[-1])
        if rows is not None and rows < X.shape[0]:
            lengths = np.einsum("ij,ij->i", X, X)
            largest = min(largest, float(np.partition(lengths, -rows)[-rows:].sum()))
        return self.smoothness * max(largest, 0.0)

    def row_hessians(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> FloatArray:
        return (self.curvatures(X @ theta, y)[:, None] * X)[:, :, None] * X[:, None, :]

    def expand(self, X: FloatArray, y: FloatArray, theta: FloatArray) -> Expansion:
        return _LinearExpansion(self, X, y, theta)

    def gradient_sums(
        self, X: FloatArray, y: FloatArray, Theta: FloatArray, skip: tuple[IntArray, IntArray]
    ) -> FloatArray:
        S = self.slopes(Theta @ X.T, y)
        S[skip] = 0.0
        return np.asarray(S @ X)


class _LinearExpansion(Expansion):
    """Taylor data of a loss of the linear predictor: two numbers per row."""

    def __init__(self, loss: LinearLoss, X: FloatArray, y: FloatArray, theta: FloatArray) -> None:
        t = X @ theta
        self.X, self.slopes, self.curvatures = X, loss.slopes(t, y), loss.curvatures(t, y)

    def total(self) -> FloatArray:
        return np.asarray(self.slopes @ self.X)

    def hessian(self) -> FloatArray:
        return np.asarray((self.X.T * self.curvatures) @ self.X)

    def rows(self, own: FloatArray) -> FloatArray:
        return (self.slopes + self.curvatures * np.einsum("ij,ij->i", self.X, own))[:, None] * self.X

    def row_times(self, own: FloatArray) -> FloatArray:
        return (self.curvatures * np.einsum("ij,ij->i", self.X, own))[:, None] * self.X

    def apply(self, D: FloatArray) -> FloatArray:
        m, p = self.X.shape
        k = D.shape[0]
        if 2 * k * m < (k + m) * p:  # few rows, wide data: never form the p x p Hessian
            return np.asarray(((D @ self.X.T) * self.curvatures) @ self.X)
        return np.asarray(D @ self.hessian())

"""Training and held-out rows of one fold at one gamma, for many more columns than rows: no q x q matrix."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.unit_diagonal import CONSTANT_COLUMN, centring_loss, held_out_loss
from sparsecv_mio.data.dataset import row_chunks
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.kernels.conic import size_of_candidates
from sparsecv_mio.kernels.forms import Rounding
from sparsecv_mio.kernels.relaxation_rows import Wide
from sparsecv_mio.problem.accumulate import CONSTANT

WIDE_COLUMNS = 600  # fewer columns than this go by moments in any case
CAPACITY = 1000  # columns that a relaxation solves for


def is_wide(data: StandardData) -> bool:
    """Whether folds of these data go by rows."""
    return data.q > WIDE_COLUMNS and data.q > 3 * data.n


class WideRows:
    """Rows about the training means, every column divided by the root of its penalty: `M = X'X + I`.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Training rows.
    X_test, u : (N, q), (N,) arrays
        Held-out rows in the same units.
    loss : float
        Of digits, by centring: see `centring_loss`.
    largest : float, optional
        At least the largest eigenvalue of `X'X`, where it is known: computing it is O(n^2 q).

    Attributes
    ----------
    Xt : (q, n) array
        The columns of X as rows.
    c, yy : (q,) array, float
        `X'y` and `y'y`.
    square : (q,) array
        `M_jj`.
    rounding : float
        Unit of the rounding allowance (docs/theory/bounds.md, section 7).
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        X_test: FloatArray,
        u: FloatArray,
        loss: float = 1.0,
        largest: float | None = None,
    ) -> None:
        self.Xt, self.y = np.ascontiguousarray(X.T), y
        self.X_test, self.u = np.ascontiguousarray(X_test), u
        self.q, self.n = self.Xt.shape
        self.yy = float(y @ y)
        self.c = self.Xt @ y
        self.square = 1.0 + np.einsum("ij,ij->i", self.Xt, self.Xt)
        if largest is None:
            largest = float(np.linalg.eigvalsh(X @ X.T)[-1]) * (1.0 + 1e-9)
        self.largest = max(largest, 1e-12)
        self.rounding = float(np.finfo(float).eps) * (3 * self.n + 4 * CAPACITY + 64) * loss

    @classmethod
    def of(
        cls,
        data: StandardData,
        rows: IntArray,
        held_out: IntArray,
        gamma: float,
        largest: float | None = None,
    ) -> WideRows:
        """Gather a fold; one copy of its training rows is held.

        Parameters
        ----------
        data : StandardData
        rows : int array
            Training rows.
        held_out : int array
            Held-out rows.
        gamma : float
        largest : float, optional
            As for the class.
        """
        Xt, y, squares, v_mean, r_mean = _gathered(data, rows)
        total = data.dataset.weight_of(rows)
        dead = squares <= CONSTANT_COLUMN * total * v_mean**2
        root = 1.0 / np.sqrt(gamma / 2.0 * data.weight)
        scale = np.where(dead, 0.0, root)
        yy = float(y @ y)
        if yy <= CONSTANT * data.n:  # the rounding of a constant target's mean
            y, yy = np.zeros_like(y), 0.0
        longest = float(np.abs(v_mean * root / np.sqrt(1.0 + squares * root**2)).max(initial=0.0))
        loss = centring_loss(total, longest, r_mean, yy) * held_out_loss(data.root_of(held_out), total)
        Xt *= scale[:, None]
        V, u = data.about(held_out, v_mean, r_mean)
        return cls(Xt.T, y, V * scale, u, loss, largest)

    @property
    def training(self) -> Wide:
        """Training rows as the kernels take them."""
        return Wide(self.Xt, self.y, self.largest)

    def matrix(self, columns: IntArray) -> FloatArray:
        """Return `M` on some columns. O(n s^2)."""
        A = self.Xt[columns]
        M = np.asarray(A @ A.T)
        M.flat[:: len(columns) + 1] += 1.0
        return M

    def allowance_of(self, tau: int) -> Rounding:
        """Return what rounding is allowed for where supports of tau columns are compared."""
        prior = size_of_candidates(self.yy, self.square, tau)
        return Rounding(self.rounding, prior, float(np.sqrt(self.yy)), np.sqrt(self.square))


def _gathered(data: StandardData, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Rows about their means, gathered in blocks: columns as rows, target, squared lengths of columns, both means."""
    Xt, y, squares, r_mean = np.empty((data.q, len(rows))), np.empty(len(rows)), np.zeros(data.q), 0.0
    v_mean: FloatArray | float = 0.0
    blocks, root = list(row_chunks(len(rows), data.q)), data.root_of(rows)
    total = data.dataset.weight_of(rows)
    if data.intercept is Intercept.FOLD:
        for block in blocks:
            V = data.rows(rows[block])[0]
            v_mean = v_mean + (V.sum(axis=0) if root is None else root[block] @ V)
        v_mean = v_mean / total
    for block in blocks:
        V, y[block] = data.rows(rows[block])
        V = V - (v_mean if root is None else root[block][:, None] * v_mean)
        squares += np.einsum("ij,ij->j", V, V)
        Xt[:, block] = V.T
    if data.intercept is Intercept.FOLD:
        r_mean = float(y.mean() if root is None else root @ y / total)
    return Xt, y - (r_mean if root is None else root * r_mean), squares, np.broadcast_to(v_mean, data.q), r_mean

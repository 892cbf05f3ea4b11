"""Training and held-out rows of one fold at one gamma, for many more columns than rows: no q x q matrix."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.bounds.unit_diagonal import CONSTANT_COLUMN, centring_loss, held_out_loss
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.kernels.conic import size_of_candidates
from sparsecv_mio.kernels.forms import Rounding
from sparsecv_mio.kernels.relaxation_rows import Wide
from sparsecv_mio.problem.accumulate import CONSTANT
from sparsecv_mio.problem.elimination import Choice

WIDE_COLUMNS = 600  # fewer columns than this go by moments in any case
LOST = 1e30  # in place of a factor of rounding that leaves no digit
NO_COLUMNS = np.zeros(0, dtype=np.int64)
CAPACITY = 1000  # columns that a relaxation solves for
SPECTRUM_WORK = 1 << 31  # multiplications that the largest eigenvalue is worth
KEPT_BYTES = 1 << 26  # of rows of X'X that are kept for other sizes


def is_wide(data: StandardData) -> bool:
    """Whether folds of these data go by rows."""
    return data.q > WIDE_COLUMNS and data.q > 3 * data.n


class WideRows:
    """Rows about the training means, every column divided by the root of its penalty: `M = X'X + I`.

    Columns that are forced in are eliminated: the other columns and the target become `P^(1/2) X` and `P^(1/2) y` with
    `P = (I + X_F X_F')^{-1}`, which is :mod:`sparsecv_mio.problem.elimination` by rows.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Training rows.
    X_test, u : (N, q), (N,) arrays
        Held-out rows in the same units.
    loss : float
        Of digits, by centring: see `centring_loss`.
    largest : float, optional
        At least the largest eigenvalue of `X'X`, where it is known: computing it is O(n^2 q). Where that takes long the
        sum of all eigenvalues stands for it: relaxations take theirs from the columns that they solve for.
    forced : int array, optional
        Columns that are forced in.

    Attributes
    ----------
    choice : Choice
        Columns that are forced in, which all below is without, and the others.
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
        forced: IntArray | None = None,
    ) -> None:
        if largest is None:
            quick = X.shape[0] ** 2 * X.shape[1] <= SPECTRUM_WORK
            largest = float(np.linalg.eigvalsh(X @ X.T)[-1]) if quick else float(np.einsum("ij,ij->", X, X))
            largest *= 1.0 + 1e-9
        self.choice = Choice.of(X.shape[1], NO_COLUMNS if forced is None else forced)
        if len(self.choice.forced):
            X, y, X_test, u, grown = without_forced(X, y, X_test, u, self.choice)
            loss *= grown
        self.Xt, self.y = np.ascontiguousarray(X.T), y
        self.X_test, self.u = np.ascontiguousarray(X_test), u
        self.q, self.n = self.Xt.shape
        self.yy = float(y @ y)
        self.c = self.Xt @ y
        self.square = 1.0 + np.einsum("ij,ij->i", self.Xt, self.Xt)
        self.largest = max(largest, 1e-12)
        self._products: dict[int, FloatArray] = {}
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
        X_test, u = np.empty((len(held_out), data.q)), np.empty(len(held_out))
        for block in row_chunks(len(held_out), data.q):  # a few rows at a time: they may be many
            V, u[block] = data.about(held_out[block], v_mean, r_mean)
            X_test[block] = V * scale
        return cls(Xt.T, y, X_test, u, loss, largest, data.forced)

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

    def products_with(self, column: int) -> FloatArray:
        """Return a row of `X'X`. O(n q) the first time; not to be written."""
        found = self._products.get(column)
        if found is None:
            found = self.Xt @ self.Xt[column]
            if 8 * self.q * len(self._products) < KEPT_BYTES:
                self._products[column] = found
        return found

    def allowance_of(self, tau: int) -> Rounding:
        """Return what rounding is allowed for where supports of tau columns are compared."""
        prior = size_of_candidates(self.yy, self.square, tau)
        return Rounding(self.rounding, prior, float(np.sqrt(self.yy)), np.sqrt(self.square))


def without_forced(
    X: FloatArray, y: FloatArray, X_test: FloatArray, u: FloatArray, choice: Choice
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Eliminate columns that are forced in by rows, in units where the penalty is 1.

    With `X_F = U diag(s) W'`: `P^(1/2) = I - U diag(1 - 1 / sqrt(1 + s^2)) U'`, and the coefficients on F of a target z
    are `W diag(s / (1 + s^2)) U'z`. O(n q f).

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Training rows about their means.
    X_test, u : (N, q), (N,) arrays
        Held-out rows about the same means.
    choice : Choice

    Returns
    -------
    X, y, X_test, u : arrays
        The same in the other columns.
    grown : float
        Factor by which that raises relative rounding.
    """
    forced, others = choice.forced, choice.others
    U, s, Wt = np.linalg.svd(X[:, forced], full_matrices=False)
    shrink, solve = 1.0 - 1.0 / np.sqrt(1.0 + s**2), X_test[:, forced] @ (Wt.T * (s / (1.0 + s**2)))
    rest, along, target = X[:, others], U.T @ X[:, others], U.T @ y
    left, aim = rest - (U * shrink) @ along, y - (U * shrink) @ target
    squares = [1.0 + np.einsum("ij,ij->j", each, each) for each in (rest, left)]
    grown = float(np.max(squares[0] / squares[1], initial=1.0))
    yy = float(y @ y)
    if yy > 0.0:
        aim_squared = float(aim @ aim)
        grown = max(grown, yy / aim_squared) if aim_squared > np.finfo(float).eps * yy else LOST
    return left, aim, X_test[:, others] - solve @ along, u - solve @ target, grown


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

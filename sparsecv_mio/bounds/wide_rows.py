"""Rows, relaxation and incumbents of one fold with many more columns than rows, without the Gram matrix of all columns.

A kernel solves the relaxation on a working set of columns, from their Gram matrix. The dual value is computed over
*all* columns, so it is a valid lower bound for any working set (docs/theory/bounds.md, section 2). Let g_j be the
product of column j with the residual. Columns with a large `|g_j|` join the working set until the value of the
relaxation and the dual value agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsecv_mio.arrays import STORE_BYTES, FloatArray, IntArray, row_chunks
from sparsecv_mio.bounds.relaxation import centring_loss, held_out_loss
from sparsecv_mio.data.standard import ForcedColumns, StandardData, find_constant_columns
from sparsecv_mio.kernels import starts
from sparsecv_mio.kernels.dense import gershgorin
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Form, Node, Rounding, absolute, size_of_candidates
from sparsecv_mio.problem.moment_fits import greedy_columns
from sparsecv_mio.problem.problem import gamma_to_lam
from sparsecv_mio.problem.training_moments import worn_means
from sparsecv_mio.trees.normal_form import ROOT_STEPS
from sparsecv_mio.units import ROUNDING, TINY
from sparsecv_mio.words import Intercept

WIDE_COLUMNS = 600  # minimum number of columns for bounds by rows; with fewer, moments are used
LOST_DIGITS = 1e30  # stands for a rounding factor that leaves no accurate digit
NO_COLUMNS = np.zeros(0, dtype=np.int64)
CAPACITY = 1000  # maximum number of columns of a working set
SPECTRUM_WORK = 1 << 31  # maximum number of multiplications for the largest eigenvalue
PRODUCTS_KEPT = STORE_BYTES // 4  # bytes of rows of X'X that are stored for other sizes


class Wide(NamedTuple):
    """Training rows: columns as rows (q, n), targets (n,), and `lipschitz`, at least the top eigenvalue of X'X."""

    Xt: FloatArray
    y: FloatArray
    lipschitz: float


def is_wide(data: StandardData) -> bool:
    """Return True if folds of these data are bounded by rows."""
    return data.q > WIDE_COLUMNS and data.q > 3 * data.n


class WideRows:
    """Rows about the training means, every column divided by the square root of its penalty: `M = X'X + I`.

    Forced columns are eliminated: the other columns and the target become `P^(1/2) X` and `P^(1/2) y` with
    `P = (I + X_F X_F')^{-1}`, the counterpart by rows of :mod:`sparsecv_mio.problem.problem`.

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Training rows.
    X_test, u : (N, q), (N,) arrays
        Held-out rows in the same units.
    loss : float
        Factor by which centring raises rounding: see `centring_loss`.
    largest : float, optional
        Upper bound on the largest eigenvalue of `X'X`, if known: computing it is O(n^2 q). If that takes too long, the
        sum of all eigenvalues is used; relaxations compute a bound for their working sets.
    choice : ForcedColumns, optional
        Columns of every support and the other columns; no column is in every support by default.
    flat_length : float
        Length of the mean of a target that is constant on the training rows; 0 for other targets.

    Attributes
    ----------
    choice : ForcedColumns
        Split of the columns into forced columns, which all attributes below exclude, and the others.
    Xt : (q, n) array
        Columns of X as rows.
    c, yy : (q,) array, float
        Moments `X'y` and `y'y`.
    square : (q,) array
        Diagonal `M_jj`.
    rounding : float
        Unit of the rounding allowance (docs/theory/bounds.md, section 7), without that of forced columns: see
        `unit_of`.
    longest, lever : float
        Rounding that comes from forced columns: see `Reduced`.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        X_test: FloatArray,
        u: FloatArray,
        loss: float = 1.0,
        largest: float | None = None,
        choice: ForcedColumns | None = None,
        flat_length: float = 0.0,
    ) -> None:
        if largest is None:
            quick = X.shape[0] ** 2 * X.shape[1] <= SPECTRUM_WORK
            largest = float(np.linalg.eigvalsh(X @ X.T)[-1]) if quick else float(np.einsum("ij,ij->", X, X))
            largest *= 1.0 + 1e-9
        self.choice = ForcedColumns.from_positions(X.shape[1], NO_COLUMNS) if choice is None else choice
        self.longest, self.lever, self.flat_length = 0.0, 0.0, flat_length
        if len(self.choice.forced):
            X, y, X_test, u, grown, self.longest, self.lever = eliminate_from_rows(X, y, X_test, u, self.choice)
            loss *= grown
        self.Xt, self.y = np.ascontiguousarray(X.T), y
        self.X_test, self.u = np.ascontiguousarray(X_test), u
        self.q, self.n = self.Xt.shape
        self.yy = float(y @ y)
        self.c = self.Xt @ y
        self.square = 1.0 + np.einsum("ij,ij->i", self.Xt, self.Xt)
        self.largest = max(largest, 1e-12)
        self._products: dict[int, FloatArray] = {}
        self.rounding = ROUNDING * (3 * self.n + 4 * CAPACITY + 64) * loss

    @classmethod
    def from_data(
        cls, data: StandardData, rows: IntArray, held_out: IntArray, gamma: float, largest: float | None = None
    ) -> WideRows:
        """Return the rows of a fold; one copy of its training rows is kept.

        Parameters
        ----------
        data : StandardData
            Data set.
        rows : int array
            Training rows.
        held_out : int array
            Held-out rows.
        gamma : float
            Ridge weight.
        largest : float, optional
            Upper bound on the largest eigenvalue of `X'X`, as for the class.
        """
        Xt, y, squares, v_mean, r_mean = _gathered_rows(data, rows)
        total = data.dataset.weight_of(rows)
        worn = worn_means(np.append(v_mean, r_mean), np.append(squares, y @ y), total)
        dead, flat = (np.isin(place, find_constant_columns(data, rows, worn)) for place in (np.arange(data.q), data.q))
        if len(worn) > dead.sum() + flat:
            data = data.about_own_centres(rows)
            Xt, y, squares, v_mean, r_mean = _gathered_rows(data, rows)
        root = 1.0 / np.sqrt(np.maximum(gamma_to_lam(gamma) * data.weight_of(rows), TINY))
        scale = np.where(dead, 0.0, root)
        yy, flat_length = float(y @ y), 0.0
        if flat:  # only the rounding of its mean is left
            y, yy, flat_length = np.zeros_like(y), 0.0, math.sqrt(total) * abs(r_mean)
        longest = float(np.abs(v_mean * root / np.sqrt(1.0 + squares * root**2)).max(initial=0.0))
        loss = centring_loss(total, longest, r_mean, yy) * held_out_loss(data.root_of(held_out), total)
        Xt *= scale[:, None]
        X_test, u = np.empty((len(held_out), data.q)), np.empty(len(held_out))
        for block in row_chunks(len(held_out), data.q):  # a few rows at a time, because there may be many
            V, u[block] = data.about(held_out[block], v_mean, r_mean)
            X_test[block] = V * scale
        return cls(Xt.T, y, X_test, u, loss, largest, data.choice, flat_length)

    @property
    def training(self) -> Wide:
        """Training rows in the form that kernels take."""
        return Wide(self.Xt, self.y, self.largest)

    def matrix(self, columns: IntArray) -> FloatArray:
        """Return `M` on some columns. O(n s^2)."""
        A = self.Xt[columns]
        M = np.asarray(A @ A.T)
        M.flat[:: len(columns) + 1] += 1.0
        return M

    def gram_row(self, column: int) -> FloatArray:
        """Return a row of `X'X`, which must not be modified. O(n q) at the first call."""
        products = self._products.get(column)
        if products is None:
            products = self.Xt @ self.Xt[column]
            if 8 * self.q * len(self._products) < PRODUCTS_KEPT:
                self._products[column] = products
        return products

    def row_of_matrix(self, column: int) -> FloatArray:
        """Return a row of M. O(n q)."""
        row = self.Xt @ self.Xt[column]
        row[column] += 1.0
        return np.asarray(row)

    def rounding_allowance(self, tau: int) -> Rounding:
        """Return the rounding allowance for comparisons of supports of tau columns."""
        prior = size_of_candidates(self.yy, self.square, tau)
        return Rounding(self.rounding_unit(tau), prior, float(np.sqrt(self.yy)), np.sqrt(self.square))

    def rounding_unit(self, tau: int) -> float:
        """Return the unit of rounding for supports of tau columns; forced columns add `longest` times y'y to it."""
        return self.rounding * (1.0 + self.longest / float(size_of_candidates(1.0, self.square, tau)) ** 2)


class Reduced(NamedTuple):
    """Rows without the forced columns, as `eliminate_from_rows` returns them.

    `grown` is the factor by which the elimination raises relative rounding, and `longest` the largest singular value of
    the forced columns. `lever`, times the unit and the size of a candidate, bounds the joint error of the held-out
    residuals (docs/theory/bounds.md, section 7).
    """

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    u: FloatArray
    grown: float
    longest: float
    lever: float


def eliminate_from_rows(
    X: FloatArray, y: FloatArray, X_test: FloatArray, u: FloatArray, choice: ForcedColumns
) -> Reduced:
    """Return rows without the forced columns, in units where the penalty is 1.

    With `X_F = U diag(s) W'`: `P^(1/2) = I - U diag(1 - 1 / sqrt(1 + s^2)) U'`, and the coefficients on F of a target z
    are `W diag(s / (1 + s^2)) U'z`. O(n q f).

    Parameters
    ----------
    X, y : (n, q), (n,) arrays
        Training rows about their means.
    X_test, u : (N, q), (N,) arrays
        Held-out rows about the same means.
    choice : ForcedColumns
        Split of the columns into forced columns and others.
    """
    forced, others = choice.forced, choice.others
    U, s, Wt = np.linalg.svd(X[:, forced], full_matrices=False)
    held_out = X_test[:, forced]
    shrink, solve = 1.0 - 1.0 / np.sqrt(1.0 + s**2), held_out @ (Wt.T * (s / (1.0 + s**2)))
    free, along, target = X[:, others], U.T @ X[:, others], U.T @ y
    residual, aim = free - (U * shrink) @ along, y - (U * shrink) @ target
    squares = [1.0 + np.einsum("ij,ij->j", each, each) for each in (free, residual)]
    grown = float(np.max(squares[0] / squares[1], initial=1.0))
    yy = float(y @ y)
    if yy > 0.0:
        aim_squared = float(aim @ aim)
        grown = max(grown, yy / aim_squared) if aim_squared > ROUNDING * yy else LOST_DIGITS
    longest, length = float(s[0]), np.linalg.norm(solve, axis=1)
    weights = held_out - solve @ (s[:, None] * Wt)  # M_FF^-1 times the rows: x - A'z
    doubt = longest * (np.linalg.norm(weights, axis=1) + length) + np.linalg.norm(held_out, axis=1) + length
    projected = X_test[:, others] - solve @ along, u - solve @ target
    return Reduced(residual, aim, *projected, grown, longest, float(np.linalg.norm(doubt)))


def _gathered_rows(data: StandardData, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Return rows about their means, gathered in blocks: columns as rows, target, squared lengths, and both means."""
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


CANDIDATES = 150  # maximum number of columns for swaps, in addition to those of known supports


class WideSupports:
    """Incumbents of one fold by size.

    Parameters
    ----------
    rows : WideRows
        Rows of the fold.
    is_expired : callable
        Function that returns True to end a search with its present result.

    Attributes
    ----------
    best, support : dict
        Objective f and columns by size.
    """

    def __init__(self, rows: WideRows, is_expired: Callable[[], bool]) -> None:
        self.rows, self.is_expired = rows, is_expired
        self.best: dict[int, float] = {}
        self.support: dict[int, IntArray] = {}

    def take(self, supports: Iterable[NDArray[np.integer]]) -> list[float]:
        """Try supports, keep each that is the best of its size, and return their values. O(n s^2) for each support."""
        return [self._try(np.sort(np.asarray(support, dtype=np.int64))) for support in supports]

    def _try(self, support: IntArray) -> float:
        """Keep a support if it is the best of its size; return its value, inf if it cannot be fitted."""
        rows, size = self.rows, len(support)
        if size == 0:
            return np.inf
        M = rows.matrix(support)
        try:
            half = solve_triangular(np.linalg.cholesky(M), rows.c[support], lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # a support that is singular to rounding cannot be an incumbent
            return np.inf
        value = rows.yy - float(half @ half)
        if value < self.best.get(size, np.inf):
            self.best[size], self.support[size] = value, np.sort(support)
        return value

    def search(self, sizes: Sequence[int], swap_rounds: int = 0) -> None:
        """Search for incumbents by forward selection over all columns and swaps among the promising ones."""
        rows = self.rows
        top = min(max([size for size in sizes if size < rows.q], default=0), rows.n)
        chosen: list[int] = []
        for pick in greedy_columns(rows.row_of_matrix, rows.square, rows.c, top):
            if self.is_expired():
                break
            chosen.append(pick)
            self._try(np.array(chosen))
        if swap_rounds:
            self._swap(sizes, np.argsort(-np.abs(rows.c))[:CANDIDATES], swap_rounds)

    def round(self, tau: int, b: FloatArray, g: FloatArray) -> None:
        """Try the largest entries of a relaxation's point, then swaps among its promising columns.

        Parameters
        ----------
        tau : int
            Size.
        b, g : (q,) arrays
            Point and its slope.
        """
        self._try(np.argsort(-np.abs(b))[:tau])
        extra = np.argsort(-np.abs(g))[:CANDIDATES]
        self._swap([tau], np.union1d(extra, np.flatnonzero(b)), 2)

    def _swap(self, sizes: Iterable[int], extra: IntArray, rounds: int) -> None:
        """Try swaps among `extra` and the columns of all incumbents."""
        rows = self.rows
        among = np.unique(np.concatenate([extra, *self.support.values()])).astype(np.int64)
        M, c = rows.matrix(among), rows.c[among]
        best = np.full(len(among) + 1, np.inf)
        masks = np.zeros((len(among) + 1, len(among)), dtype=np.bool_)
        for size, support in self.support.items():
            best[size] = self.best[size]
            masks[size] = np.isin(among, support)
        starts.forward_selection(M, c, rows.yy, min(max(self.best, default=1), len(among)), best, masks)
        for size in sizes:
            starts.improve_by_swaps(M, c, rows.yy, size, best, masks, rounds)
            if size < len(best) and best[size] < self.best.get(size, np.inf):
                self._try(among[masks[size]])


ROW_ROUNDS = 60
WORKING_SET = 4, 80  # maximum columns of a working set for two rounds: 4 for each column of a support, plus 80


class WideRelaxation:
    """Relaxation of given rows with its present point.

    Parameters
    ----------
    rows : WideRows
        Rows of the fold.

    Attributes
    ----------
    b, g : (q,) arrays
        Last point and its slope `X'(y - X b)`.
    columns : WorkingColumns
        Working set.
    """

    def __init__(self, rows: WideRows) -> None:
        self.rows = rows
        self.columns = WorkingColumns(rows.q)
        self.b, self.g = np.zeros(rows.q), np.zeros(rows.q)

    def solve(self, tau: int, accuracy: float) -> tuple[float, float]:
        """Move to the solution of a size; return dual and primal value, without allowance for rounding."""
        return self.solve_for_rows(self.rows.training, self.columns, tau, accuracy)

    def solve_for_rows(
        self, rows: Wide, columns: WorkingColumns, tau: int, accuracy: float, shift: FloatArray | float = 0.0
    ) -> tuple[float, float]:
        """Move to the solution of a size for other rows or another objective; return dual and primal value.

        Parameters
        ----------
        rows : Wide
            Training rows.
        columns : WorkingColumns
            Working set of these rows.
        tau : int
            Size.
        accuracy : float
            Absolute accuracy.
        shift : (q,) array, optional
            Vector s of a term `-2 s'b` that is added to the objective.

        Returns
        -------
        dual, primal : float
            Values of the relaxation.

        Notes
        -----
        A round costs a relaxation on the working set and O(n q) for g.
        """
        Xt, y, q, yy = rows.Xt, rows.y, len(rows.Xt), float(rows.y @ rows.y)
        cap, shift = min(q, max(CAPACITY, WORKING_SET[0] * tau + WORKING_SET[1])), np.broadcast_to(shift, q)
        columns.join(np.flatnonzero(self.b), Xt, cap)
        if len(columns.chosen) < min(2 * tau + 20, q):
            columns.join(columns.largest_outside(Xt @ y + shift, 2 * tau + 40), Xt, cap)
        b, dual, primal = np.where(columns.inside, self.b, 0.0), -np.inf, np.inf
        for _ in range(ROW_ROUNDS):
            chosen, count, A = columns.chosen, len(columns.chosen), Xt[columns.chosen]
            form = Form(columns.gram, A @ y + shift[chosen], yy, min(gershgorin(columns.gram), rows.lipschitz))
            every, (slope, point, best) = np.arange(count), np.empty((3, count))
            stop = absolute(yy, 0.3 * accuracy, ROOT_STEPS)
            _, value, _ = relax(form, Node(every, 0, every, count, tau), stop, b[chosen], slope, point, best)
            primal, used = min(primal, float(value)), np.flatnonzero(point)
            fit = point @ A
            g = Xt @ (y - fit) + shift
            b[chosen] = point
            dual_value = yy - float(fit @ fit) - float(np.partition(g * g, q - tau)[q - tau :].sum())
            if dual_value > dual:
                dual, self.b, self.g = dual_value, b.copy(), g
            if primal - dual <= accuracy or count == q:
                break
            fresh = columns.largest_outside(g, min(10 + tau, cap))  # other columns do not change the dual value
            if count + len(fresh) > cap:
                columns.keep(used[: cap - len(fresh)])
                b[~columns.inside] = 0.0
            columns.join(fresh, Xt, cap)
        return dual, primal


class WorkingColumns:
    """Working set of a relaxation by rows: its columns, a mask of these, and their Gram matrix."""

    def __init__(self, q: int) -> None:
        self.chosen, self.inside, self.gram = NO_COLUMNS, np.zeros(q, dtype=np.bool_), np.zeros((0, 0))

    def join(self, columns: IntArray, Xt: FloatArray, cap: int) -> None:
        """Add columns until there are `cap` of them."""
        fresh = columns[~self.inside[columns]][: max(cap - len(self.chosen), 0)]
        A = Xt[fresh]
        cross = A @ Xt[self.chosen].T
        self.gram = np.block([[self.gram, cross.T], [cross, A @ A.T]])
        self.chosen, self.inside[fresh] = np.concatenate([self.chosen, fresh]), True

    def keep(self, places: IntArray) -> None:
        """Remove all columns except the given ones."""
        self.chosen, self.gram = self.chosen[places], self.gram[np.ix_(places, places)]
        self.inside[:] = False
        self.inside[self.chosen] = True

    def largest_outside(self, g: FloatArray, most: int) -> IntArray:
        """Return the columns outside of the set with the largest |g|, the largest first."""
        size = np.where(self.inside, -1.0, np.abs(g))
        most = min(most, len(size) - len(self.chosen))
        places = np.argpartition(-size, most - 1)[:most] if most else NO_COLUMNS
        return np.asarray(places[np.argsort(-size[places], kind="stable")], dtype=np.int64)

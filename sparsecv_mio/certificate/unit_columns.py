"""Scaled columns, and closed forms that fit many supports at once on the training rows of a fold (theory section 5).

The first closed form corrects full-data fits. Let the full-data fit of a support S have the residuals e, the hat matrix
H and the objective f(S). Let N be the held-out rows of a fold. Then the objective and the residuals without N are

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residual = (I - H_NN)^{-1} e_N

With the intercept `fold`, columns are centred on all rows and 1/n is added to every entry of H. If row i has the weight
w_i, the row is multiplied by `sqrt(w_i)`, and `sqrt(w_i w_j) / (sum of all w)` replaces 1/n in entry (i, j). The second
closed form uses the Gram matrices of training rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, BoolArray, FloatArray, IntArray, exact_product
from sparsecv_mio.certificate.restrictions import NO_EFFECT
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.beyond_floats import Coordinates, ExactFit, exact_sum
from sparsecv_mio.problem.objective import RidgeFit, scales, solve_least_squares
from sparsecv_mio.units import ROUNDING, TINY

CANDIDATE_RTOL = 1e-5  # four times the error of the closed forms below, so that every tie is refitted
CANDIDATE_SHARE = 1e-10  # share of the sum of squares of the target: rounding of an objective from a Gram matrix
NEARLY_PERFECT = 1e-4  # condition^-1 times share of the target, below which residuals get twice the precision
CANCELLED = 1e-3  # share of the full-data objective; a smaller objective without some rows has lost digits
TWICE = 8.0 * ROUNDING  # rounding of a sum in twice the precision, relative to its terms
TRUSTED = 1e-7  # rounding / TRUSTED = 1e-9 bounds the error of a correction, below all tolerances
FACTOR_ROUNDING = 20.0 * ROUNDING  # rounding of a factorisation, relative to column lengths times root of its size
DOUBTFUL_EFFECT = 1000.0 * NO_EFFECT  # for a smaller effect an exact fit decides the sign
LARGEST_RIDGE_TERM = 1e280  # maximum factor of a squared coefficient: such a coefficient is 0 to rounding
LEAST_CONDITION = 1e-5  # reciprocal condition of a Gram matrix, below which its solution may lose digits


@dataclass(frozen=True, eq=False)
class UnitColumns:
    """Some columns of a data set, centred about means of all rows and divided by powers of two.

    Attributes
    ----------
    dataset : Dataset
        Data set.
    intercept : str
        Type of the intercept.
    columns : (q,) int array
        Positions in the data set.
    Z : (n, q) array
        Columns centred on all rows unless the intercept is `none`, divided by a power of two; rows multiplied by
        `root`.
    t : (n,) array
        Targets in the same form.
    weight : (q,) array
        Penalty weights in these coordinates.
    x_unit : (q,) array
        Units of the columns.
    y_unit : float
        Unit of the target: objectives here times `y_unit ** 2` are objectives in the file.
    root : (n,) array
        Square roots of the row weights.
    """

    dataset: Dataset
    intercept: str
    columns: IntArray
    Z: FloatArray
    t: FloatArray
    weight: FloatArray
    x_unit: FloatArray
    y_unit: float
    root: FloatArray

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, scale: str, intercept: str, columns: IntArray, free: Collection[int] = ()
    ) -> UnitColumns:
        """Return columns of a data set in these coordinates.

        Parameters
        ----------
        scale : {"length", "variance", "none"}
            Unit in which the penalty measures columns.
        intercept : {"fold", "global", "none"}
            Type of the intercept.
        columns : (q,) int array
            Positions of the columns.
        free : collection of int
            Positions in the data set of unpenalised columns.
        """
        everyone, weights = np.arange(dataset.n), dataset.row_weights
        root = np.ones(dataset.n) if weights is None else np.sqrt(weights)
        place = Coordinates.from_columns(
            dataset.X, dataset.y, columns.tolist(), None if intercept == "none" else everyone,
            None if weights is None else root,
        )  # fmt: skip
        Z, t = place.standardise_rows(dataset.X, dataset.y, everyone)
        sizes = scales(dataset.X[:, columns], scale, weights)
        if dataset.scales is not None:
            sizes = dataset.scales.of_rows(None)[columns]
        weight = np.minimum(sizes / place.x_unit, 1e150) ** 2
        weight[np.isin(columns, list(free))] = 0.0
        return cls(dataset, intercept, columns, Z * root[:, None], t * root, weight, place.x_unit, place.y_unit, root)

    def weight_without(self, test: IntArray) -> FloatArray:
        """Return the (q,) penalty weights of a fit to the other rows: `weight`, unless scales differ between folds."""
        given = self.dataset.scales
        if given is None:
            return self.weight
        rows = np.delete(np.arange(self.dataset.n), test)
        return self.weight * (given.of_rows(rows)[self.columns] / given.of_rows(None)[self.columns]) ** 2

    @property
    def smallest_weight(self) -> FloatArray:
        """(q,) smallest penalty weights of the columns over all fits."""
        given = self.dataset.scales
        if given is None:
            return self.weight
        scales_of_columns = given.scales[:, self.columns]
        return self.weight * (scales_of_columns.min(axis=0) / scales_of_columns[0]) ** 2

    def measure_objective(self, model: RidgeFit) -> float:
        """Return the objective of a fit in these coordinates, where that of a tiny target does not become 0."""
        if isinstance(model.solution, ExactFit):
            return float(model.solution.objective / Fraction(self.y_unit) ** 2)
        return model.objective / self.y_unit / self.y_unit

    @property
    def is_exact(self) -> bool:
        """True if columns and targets are exactly the data divided by powers of two."""
        return self.intercept == "none" and self.dataset.row_weights is None


def penalties(gamma: float, weight: FloatArray) -> FloatArray:
    """Return `gamma / 2 * weight`, capped where squares would overflow; such a coefficient is 0 in any case."""
    with np.errstate(over="ignore"):
        return np.minimum(gamma / 2.0 * weight, LARGEST_RIDGE_TERM)


def leave_out(
    unit: UnitColumns, supports: IntArray, gamma: float, rows: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return objectives and held-out errors of supports without each of some sets of rows, from full-data fits.

    Parameters
    ----------
    supports : (C, s) int array
        Positions in `unit.columns`.
    rows : (k, B) int array
        Sets of held-out rows, one in each row of the array.

    Returns
    -------
    objective, error : (C, k) arrays
        Values in the units of the unit.
    trust : (C, k) array
        Smallest eigenvalue of I - H_NN times reciprocal condition of the columns times ||e|| / ||t||; if it is near 0,
        the other results have lost digits. If e is computed from the data in twice the precision, ||e|| is divided by
        the root of f instead.
    """
    n, (count, s) = len(unit.t), supports.shape
    root = np.sqrt(penalties(gamma, unit.weight[supports]))
    stacked = np.zeros((count, n + s, s))
    stacked[:, :n] = unit.Z[:, supports].transpose(1, 0, 2)
    stacked[:, range(n, n + s), range(s)] = root
    length = np.sqrt(np.einsum("cij,cij->cj", stacked, stacked))
    Q, R = np.linalg.qr(stacked / np.where(length > 0.0, length, 1.0)[:, None])
    values = np.linalg.svd(R, compute_uv=False) if s else np.ones((count, 1))
    rcond = values[:, -1] / np.where(values[:, 0] > 0.0, values[:, 0], np.inf)
    e = np.concatenate([unit.t, np.zeros(s)]) - (Q @ (unit.t @ Q[:, :n])[:, :, None])[:, :, 0]
    full = np.einsum("ci,ci->c", e, e)
    share = np.minimum(1.0, np.sqrt(np.einsum("ci,ci->c", e[:, :n], e[:, :n])) / float(np.linalg.norm(unit.t)))
    if unit.is_exact:
        for i in np.flatnonzero((share * rcond < NEARLY_PERFECT) & (rcond > TRUSTED)):
            e[i], digits = _sharp_residual(unit, supports[i], root[i], (Q[i], R[i], length[i]))
            full[i] = float(e[i] @ e[i])
            share[i] = digits * float(np.linalg.norm(e[i, :n])) / math.sqrt(full[i]) if full[i] > 0.0 else 0.0
    held_out, margin = _residuals_left_out(unit, Q, e, rows)
    objective = full[:, None] - np.sum(e[:, rows] * held_out, axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        cancelled = np.where(full[:, None] > 0.0, np.clip(objective / (CANCELLED * full[:, None]), 0.0, 1.0), 0.0)
    return objective, np.sum(held_out**2, axis=2), margin * (rcond * share)[:, None] * cancelled


def _residuals_left_out(
    unit: UnitColumns, Q: FloatArray, e: FloatArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return `(I - H_NN)^-1 e_N` from factors and residuals of fits, and the smallest eigenvalue of `I - H_NN`."""
    out = Q[:, rows]
    H = out @ out.swapaxes(2, 3)
    if unit.intercept == "fold":
        H += unit.root[rows][:, :, None] * unit.root[rows][:, None, :] / float(unit.root @ unit.root)
    if rows.shape[1] == 1:
        complement = np.asarray(1.0 - H[..., 0, 0], dtype=np.float64)
        return e[:, rows] / np.where(complement > 0.0, complement, 1.0)[..., None], complement
    matrix = np.eye(rows.shape[1]) - (H + H.swapaxes(2, 3)) / 2.0
    margin = np.asarray(np.linalg.eigvalsh(matrix)[..., 0], dtype=np.float64)
    matrix[margin < TRUSTED] = np.eye(rows.shape[1])  # not trusted, and possibly exactly singular
    return np.asarray(np.linalg.solve(matrix, e[:, rows][..., None])[..., 0], dtype=np.float64), margin


def _sharp_residual(
    unit: UnitColumns, support: IntArray, root: FloatArray, factors: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, float]:
    """Return an accurate residual of `[Z; diag(root)] b = [t; 0]` if it is tiny relative to the target.

    For any `b`, the least-squares residual is the part of `t - Z b` that is orthogonal to the columns. If `b` is nearly
    correct and `t - Z b` is summed in twice the precision, little cancellation remains. The second returned number is
    the size of the residual relative to this sum and the rounding of its terms.
    """
    (Q, R, length), beta = factors, np.zeros(len(support))
    for _ in range(3):
        high, low = unit.t, np.zeros(len(unit.t))
        for column, b in zip(unit.Z[:, support].T, beta.tolist(), strict=True):
            product, below = exact_product(column, -b)
            high, lost = exact_sum(high, product)
            low = low + (lost + below)
        stacked = np.concatenate([high + low, -root * beta])
        along = Q.T @ stacked
        beta = beta + np.linalg.solve(R, along) / length
    residual: FloatArray = stacked - Q @ along
    size = float(np.linalg.norm(stacked)) + TWICE * float(np.linalg.norm(unit.t))
    return residual, min(1.0, float(np.linalg.norm(residual)) / max(size, TINY))


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """Moments of some training rows, about their means with a fold intercept, and factors that keep their digits.

    Attributes
    ----------
    gram : (q, q) array
        Gram matrix of the columns.
    moment : (q + 1,) array
        Products of columns and target; the last entry is the squared length of the target.
    root : (m, q + 1) array
        Orthogonal factor of columns and target: `root' root` gives all of these moments.
    rounding : float
        Rounding of the columns of `root`, relative to their lengths.
    weight : (q,) array
        Penalty weights of a fit to these rows.
    """

    gram: FloatArray
    moment: FloatArray
    root: FloatArray
    rounding: float
    weight: FloatArray

    def bounded_objective(self, gamma: float, support: IntArray, ends: FloatArray) -> float:
        """Return the objective of the fit of a support within (2, s) bounds, to the accuracy of the moments."""
        A = np.vstack([self.root[:, support], np.diag(np.sqrt(penalties(gamma, self.weight[support])))])
        target = np.concatenate([self.root[:, -1], np.zeros(len(support))])
        return float(np.sum((target - A @ solve_least_squares(A, target, (ends[0], ends[1]))) ** 2))


def moments(unit: UnitColumns, test: IntArray) -> FoldMoments:
    """Return the moments of the rows outside `test`."""
    keep = np.ones(len(unit.t), dtype=bool)
    keep[test] = False
    block = np.column_stack([unit.Z[keep], unit.t[keep]])
    if unit.intercept == "fold":  # from the file, since centring on all rows may have lost digits of these
        root, X, y = unit.root[keep], unit.dataset.X[keep][:, unit.columns], unit.dataset.y[keep]
        block = np.column_stack([(X - X.mean(axis=0)) / unit.x_unit, (y - y.mean()) / unit.y_unit])
        block *= root[:, None]
        block -= np.outer(root, root @ block / float(root @ root))
    product, rounding = block.T @ block, FACTOR_ROUNDING * float(np.sqrt(sum(block.shape)))
    factor: FloatArray = np.asarray(np.linalg.qr(block, mode="r"), dtype=np.float64)
    return FoldMoments(product[:-1, :-1], product[:, -1], factor, rounding, unit.weight_without(test))


class GramFits(NamedTuple):
    """Fits of a block of supports.

    Attributes
    ----------
    objective : (C,) array
        Objectives; -inf if unknown.
    beta : (C, s) array
        Coefficients.
    doubt : (C,) array
        Rounding error of a coefficient times the length of its column, relative to the length of the target.
    by_rows : (C,) bool array
        True for fits from rows: the error of the objective may be a fourth of the candidate tolerance.
    """

    objective: FloatArray
    beta: FloatArray
    doubt: FloatArray
    by_rows: BoolArray


def gram_objectives(train: FoldMoments, gamma: float, supports: IntArray) -> FloatArray:
    """Return the objectives of all supports of one size by :func:`gram_fits`."""
    return np.concatenate([fits.objective for fits in gram_fits(train, gamma, supports)])


def gram_fits(train: FoldMoments, gamma: float, supports: IntArray) -> Iterator[GramFits]:
    """Yield fits of blocks of supports: t't - c'(G + penalty)^{-1} c by moments, or by rows if digits are lost."""
    full = train.gram + np.diag(penalties(gamma, train.weight))
    unread = iter(supports)
    step = max(1, BLOCK_NUMBERS // max(1, supports.shape[1] ** 2))
    while block := list(islice(unread, step)):
        S = np.array(block)
        length = np.sqrt(np.diag(full)[S])
        length[length == 0.0] = 1.0
        matrix = full[S[:, :, None], S[:, None, :]] / (length[:, :, None] * length[:, None, :])
        c = train.moment[:-1][S] / length
        values, vectors = np.linalg.eigh(matrix)
        lost: BoolArray = np.asarray(~(values[:, :1] > LEAST_CONDITION * values[:, -1:]).all(axis=1))
        values[lost] = 1.0
        parts = np.einsum("kij,ki->kj", vectors, c)
        all_fits = GramFits(
            train.moment[-1] - np.sum(parts * parts / values, axis=1),
            np.einsum("kij,kj->ki", vectors, parts / values) / length, np.full(len(S), DOUBTFUL_EFFECT), lost,
        )  # fmt: skip
        at = np.flatnonzero(lost)
        few = max(1, BLOCK_NUMBERS // max(1, train.root.size))
        for some in (at[i : i + few] for i in range(0, len(at), few)):
            for all_of, fits in zip(all_fits, _fit_by_row_factors(train, gamma, S[some]), strict=True):
                all_of[some] = fits
        yield all_fits


def _fit_by_row_factors(train: FoldMoments, gamma: float, S: IntArray) -> GramFits:
    """Return fits of supports by orthogonal factors of their rows, whose condition is the root of that of moments.

    The computed fit is the exact one of columns and target that differ by r, which is `rounding` times their lengths.
    The error of the square root of its objective is therefore at most `r (|t| + sum_j length_j |b_j|)`. If this is too
    large for selecting candidates, the objective is set to -inf and the support is fitted exactly.
    """
    columns, t = train.root[:, :-1].T[S].transpose(0, 2, 1), train.root[:, -1]
    penalty = np.sqrt(penalties(gamma, train.weight[S]))
    A = np.concatenate([columns, penalty[:, :, None] * np.eye(S.shape[1])], axis=1)
    length = np.linalg.norm(A, axis=1)
    length[length == 0.0] = 1.0
    A /= length[:, None, :]
    target, size = np.concatenate([t, np.zeros(S.shape[1])]), max(float(np.linalg.norm(t)), TINY)
    U, values, V = np.linalg.svd(A, full_matrices=False)
    values = np.maximum(values, TINY)
    beta = np.einsum("kji,kj->ki", V, np.einsum("kij,i->kj", U, target) / values)
    error = np.linalg.norm(target - np.einsum("kij,kj->ki", A, beta), axis=1)
    wrong = train.rounding * (size + np.abs(beta).sum(axis=1))
    certain = wrong * (2.0 * error + wrong) <= (CANDIDATE_RTOL * error**2 + CANDIDATE_SHARE * size**2) / 4.0
    certain &= error <= 2.0 * size  # coefficients of a singular fit may overflow
    condition = values[:, 0] / values[:, -1]
    doubt = train.rounding * condition * (np.linalg.norm(beta, axis=1) + condition * error) / size
    every = np.ones(len(S), dtype=bool)
    return GramFits(np.where(certain, error**2, -np.inf), beta / length, np.maximum(doubt, DOUBTFUL_EFFECT), every)

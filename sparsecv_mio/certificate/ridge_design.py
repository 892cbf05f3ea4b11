"""Fits and best subsets with squared-error loss: closed forms select candidate supports, and refits compare them.

For folds with at most `IDENTITY_ROWS` rows, a closed form corrects full-data fits for the held-out rows. For larger
folds, another closed form uses the Gram matrix of the training rows. The closed forms only select candidates. Every
support whose objective is close to the smallest one is refitted on the training rows by `problem.objective.fit`, and
only refits decide which support is optimal.

The first closed form corrects full-data fits (theory section 5). Let the full-data fit of a support S have the
residuals e, the hat matrix H and the objective f(S). Let N be the held-out rows of a fold. Then the objective and the
residuals without N are

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residual = (I - H_NN)^{-1} e_N

With the intercept `fold`, columns are centred on all rows and 1/n is added to every entry of H. If row i has the weight
w_i, the row is multiplied by `sqrt(w_i)`, and `sqrt(w_i w_j) / (sum of all w)` replaces 1/n in entry (i, j).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import comb
from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray, exact_product
from sparsecv_mio.certificate.checked_fields import COST_LIMIT, ENUMERATE_GRID, ENUMERATE_PAIR
from sparsecv_mio.certificate.design import Design, FoldOptima, HeldOut, Pair, RowLosses, Support, Tell
from sparsecv_mio.certificate.restrictions import NO_EFFECT, AllowedSupports
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.beyond_floats import Coordinates, ExactFit, exact_sum, objective_slack, size_of_target
from sparsecv_mio.problem.objective import (
    RidgeFit,
    fit,
    fit_bounded_ridge,
    fit_exactly_within,
    held_out_error,
    scaled_norms,
    scales,
    solve_least_squares,
    squared_errors,
)
from sparsecv_mio.units import CROSSING_RTOL, NO_RIDGE, OUTWARD, PROVED_RTOL, ROUNDING, TIE_RTOL, TINY

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


CORRELATED_AT_ONCE = 10**9  # fold rows times squared columns, up to which the correlations of every fold are computed
IDENTITY_ROWS = 12
BOUNDED_WORK = 2e5  # operations of a fit within bounds, averaged over the supports of a fold
DIRECT_WORK = 5e8  # operations k n tau^2 of refits of all folds, beyond which the leave-out identity is used
NOISE = ROUNDING / 2.0  # of the target and a residual: 1,000 ulps of a long double, for sums and factors
RESIDUAL = 8.0 * ROUNDING  # rounding of a residual of the search, relative to the largest centred target
LOOSE_TIES = 16.0 * TIE_RTOL  # tolerance within which a search may have treated supports as tied
MAE_RTOL = 2.0 * CROSSING_RTOL  # tolerance of the mean absolute error, next to the rounding of residuals
FOLD_RTOL = 1e-8  # share of the mean error, since the error of a single fold may be negligible
NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)

Fits = list[tuple[RidgeFit, bool | None]]  # fits, and whether each is certainly valid; None: another one is better


@dataclass(frozen=True, eq=False)
class RidgeDesign(Design):
    """Columns of a data set, and fits with squared-error loss.

    Attributes
    ----------
    target_noise : float
        Error bound of each target, if targets are computed and not read from a file.
    """

    target_noise: float = 0.0
    _eigenvalues: dict[Support, float] = field(default_factory=dict, repr=False)

    how = "enumeration of"
    proved_rtol = PROVED_RTOL
    tie_rtol = 2.0 * TIE_RTOL
    bounds_ties = True

    @cached_property
    def unit(self) -> UnitColumns:
        """The columns in the coordinates of closed forms."""
        return UnitColumns.from_dataset(self.dataset, self.scale, self.intercept, self.columns, self.free)

    @property
    def rows_by_weight(self) -> float:
        """Number of scored rows divided by their weight."""
        return 1.0 if self.plan is None else self.plan.scored / self.scored.total

    # -- fits of one support ----------------------------------------------------------------------------------------

    def refit(self, support: Sequence[int] | IntArray, gamma: float, rows: IntArray | None) -> RidgeFit:
        """Return the fit of a support by `problem.objective.fit`; see `Design`."""
        at = np.asarray(support, dtype=np.int64)
        names = self.columns[at].tolist()
        what = self.dataset.X, self.dataset.y, names, self.ridge_weights(names, gamma, rows)
        how: dict[str, Any] = {"scale": self.scale, "intercept": self.intercept, "rows": rows}
        how["weights"] = self.dataset.row_weights
        if self.allowed is None or not self.allowed.asked.has_bounds:
            return fit(*what, **how)
        low, high = self.allowed.ends[:, at]
        return fit_bounded_ridge(*what, (low, high), **how)

    def effects(self, support: Sequence[int] | IntArray, model: RidgeFit) -> FloatArray:
        """Return coefficients of a fit times the lengths of their columns, divided by the length of the target.

        Parameters
        ----------
        support : (s,) int array or tuple
            Positions in `columns`.
        model : RidgeFit
            Fit of the support.
        """
        columns = self.dataset.X[:, self.columns[np.asarray(support, dtype=np.int64)]] - model.x_center
        unit, norms = scaled_norms(columns, self.unit.root)
        return np.asarray(model.beta * unit * norms / (np.linalg.norm(self.unit.t) * self.unit.y_unit))

    def has_required_signs(self, support: Sequence[int] | IntArray, model: RidgeFit) -> bool:
        """Return True if the coefficients of a fit satisfy the sign constraints."""
        return self.allowed is None or self.allowed.has_required_signs(support, self.effects(support, model))

    def coefficient_rooms(self, support: Support, gamma: float, model: RidgeFit) -> FloatArray:
        """Return (s,) tolerances for the coefficients of a full-data fit."""
        return self._prediction_slack(model) / self._spread(model) + self._noise_effects(support, gamma)

    def _spread(self, model: RidgeFit) -> FloatArray:
        """Return the largest distances of the columns of a full-data fit from their centres."""
        return np.asarray(np.abs(self.dataset.X[:, list(model.support)] - model.x_center).max(axis=0, initial=0.0))

    def _prediction_slack(self, model: RidgeFit) -> float:
        """Return a bound on the rounding error of a predicted part of the target."""
        slack = float(np.max(np.abs(model.beta) * self._spread(model), initial=0.0)) * CROSSING_RTOL
        return slack + 1e-12 * size_of_target(self.dataset, self.intercept) + self.target_noise

    def expected_intercept(self, model: RidgeFit, beta: FloatArray, rooms: FloatArray) -> tuple[float, float]:
        """Return the intercept of a full-data fit with given coefficients, and its tolerance.

        The error of coefficients of the record is tolerated already, and must not be multiplied by the centre again.
        """
        offset = float(np.abs(model.x_center) @ np.abs(beta)) + abs(model.y_center)
        # means that are 0 up to the rounding of their sums
        size = size_of_target(self.dataset, self.intercept) + float(self._spread(model) @ np.abs(beta))
        room = 1e-13 * offset + 1e-12 * self._prediction_slack(model) + 1e-15 * size + self.target_noise
        return float(model.y_center - model.x_center @ beta), room + float(np.abs(model.x_center) @ rooms)

    def _noise_effects(self, support: Support, gamma: float) -> FloatArray:
        """Return bounds on the effect of `target_noise` on full-data coefficients, in units of the file."""
        if not self.target_noise or not support:
            return np.zeros(len(support))
        at, unit = list(support), self.unit
        A = np.vstack([unit.Z[:, at], np.diag(np.sqrt(penalties(gamma, unit.weight[at])))])
        inverse = np.abs(np.linalg.pinv(A, rcond=1e-15)[:, : len(unit.t)])
        return np.asarray(inverse @ unit.root * self.target_noise / unit.x_unit[at])

    # -- rounding ---------------------------------------------------------------------------------------------------

    def residual_noise(self, h: float, gamma: float, tau: int) -> float:
        """Return a bound on the rounding error of a held-out residual of a search, times the root of its weight.

        Parameters
        ----------
        h : float
            Mean square of such residuals, in units of the file.

        Notes
        -----
        `r = 1e-16 (100 size + sqrt(n) (c size + c^2 sqrt(h)))`: a search computes in 64-bit long doubles, `size` is the
        largest centred target, and h is the mean square of the residuals. The condition number of a fit is at most
        `c = sqrt(tau max_j (1 + |z_j|^2 / (gamma/2 s_j^2)))`, as the penalty bounds its smallest singular value. For
        unpenalised columns the smallest eigenvalue of their correlations gives the bound.
        """
        unit = self.unit
        penalty, tau = penalties(gamma, unit.smallest_weight), self.most_columns(tau)
        paid = penalty > 0.0
        with np.errstate(over="ignore"):
            ratio = 1.0 + np.einsum("ij,ij->j", unit.Z[:, paid], unit.Z[:, paid]) / penalty[paid]
        square = max(tau, 1) * float(ratio.max(initial=1.0))
        if not paid.all():
            square *= max(tau, 1) / max(self._least_eigenvalue(tuple(np.flatnonzero(~paid).tolist())), TINY)
        condition = np.sqrt(min(square, 1e36))
        size = float(np.abs(unit.t).max()) * unit.y_unit
        reach = float(np.sqrt(self.dataset.n) * condition) * (size + float(condition) * float(np.sqrt(h)))
        return NOISE * (100.0 * size + reach)

    def _least_eigenvalue(self, columns: Support) -> float:
        """Return the smallest eigenvalue of the correlations of some columns, over all rows and training rows."""
        if columns not in self._eigenvalues:
            every = [NO_ROWS]
            if self.plan is not None and self.plan.k * self.dataset.n * len(columns) ** 2 <= CORRELATED_AT_ONCE:
                every += [self.plan.left_out(fold) for fold in range(self.plan.k)]
            grams = (moments(self.unit, rows).gram[np.ix_(columns, columns)] for rows in every)
            self._eigenvalues[columns] = min(map(_least_correlation, grams))
        return self._eigenvalues[columns]

    def slack(self, h: float, gamma: float, tau: int, relative: float) -> float:
        """Return `relative h + 2 r sqrt(h) + r^2`, with r the rounding error of a residual; see `Design`."""
        noise = self.residual_noise(h / self.rows_by_weight, gamma, tau) * float(np.sqrt(self.rows_by_weight))
        return relative * h + noise * (2.0 * float(np.sqrt(h)) + noise)

    def refit_slack(self, h: float) -> float:
        """Return a bound on the rounding of a mean square of refits: `CROSSING_RTOL h + 2 r sqrt(h) + r^2`.

        The rounding r of a residual matters if the fit is nearly perfect, so that h may be as small as `r^2`.

        Parameters
        ----------
        h : float
            Weighted mean square.
        """
        noise = RESIDUAL * float(np.abs(self.unit.t).max()) * self.unit.y_unit
        return CROSSING_RTOL * h + noise * (2.0 * math.sqrt(h) + noise)

    def rounding(self, model: RidgeFit) -> float:
        """Return a bound on the difference between the objective of a full-data fit and that of a search."""
        return self.objective_slack(model.objective)

    def objective_slack(self, objective: float) -> float:
        """Return a bound on the rounding error of a full-data objective of the search, in units of the file."""
        noise = self.target_noise * math.sqrt(self.total_weight)
        slack = objective_slack(objective, self.dataset, self.intercept)
        return slack + noise * (2.0 * math.sqrt(objective) + noise)

    def refit_rounding(self, objective: float, train: IntArray | None = None) -> float:
        """Return a bound on the rounding error of the objective of a refit.

        It is 1e-12 relative to the objective plus, for a nearly perfect fit, the rounding of residuals relative to the
        targets.
        """
        noise = RESIDUAL * self.unit.y_unit * float(np.linalg.norm(self.unit.root))
        return OUTWARD * objective + noise * (2.0 * float(np.sqrt(objective)) + noise)

    def _measured_rounding(self, value: float) -> float:
        """Return `refit_rounding` of an objective in the units of `unit`, in these units."""
        square = self.unit.y_unit * self.unit.y_unit
        return self.refit_rounding(value * square) / square

    # -- enumeration ------------------------------------------------------------------------------------------------

    def cost(self, taus: Sequence[int], gammas: int, k: int) -> float:
        """Return the approximate number of operations of `fold_optima` for all pairs.

        Parameters
        ----------
        gammas, k : int
            Numbers of gammas and folds.
        """
        limited, q, total = self.allowed is not None, self.terms, 0.0
        for size in [size for tau in taus for size in range(0 if limited else min(tau, q), min(tau, q) + 1)]:
            count = comb(q, size)
            blocks = 1.0 + k * count // BLOCK_NUMBERS
            work = max(self.dataset.n, 400, 30 * k) * (self.most_columns(size) + 2.0)
            total += count * (work * blocks + (BOUNDED_WORK if self.has_bounds else 500.0) * k * limited)
        return gammas * total

    def enumeration_obstacle(
        self, taus: Sequence[int], gammas: int, k: int, most_features: int = ENUMERATE_PAIR
    ) -> str:
        """Return the reason why not all supports of some pairs are tried in every fold; empty if they are.

        Parameters
        ----------
        gammas, k : int
            Numbers of gammas and folds.
        most_features : int
            Maximum number of features.
        """
        if self.terms > most_features:
            return f"p > {most_features}"
        return "too many rows to try all supports" if self.cost(taus, gammas, k) > COST_LIMIT else ""

    def full_data_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why not all supports are tried on all rows; empty if they are."""
        return self.enumeration_obstacle(taus, gammas, 1)

    def optima_obstacle(
        self, pairs: Sequence[Pair], reported: Mapping[Pair, list[Support]], start: Support, tell: Tell,
        of_grid: bool = False,
    ) -> str:  # fmt: skip
        """Return the reason why not all supports are tried in every fold of some pairs; see `Design`."""
        most = ENUMERATE_GRID if of_grid else ENUMERATE_PAIR
        reason = self.enumeration_obstacle([tau for _, tau in pairs], 1, self.folds.k, most)
        return f"{reason} of every pair" if of_grid and reason.startswith("too") else reason

    def fold_optima(self, gamma: float, tau: int) -> FoldOptima:
        """Return the optima of every fold of one pair, found by enumeration; see `Design`.

        No fit is needed if only one support may be optimal and the identity gives its error.
        """
        sets, folds = self.sets(tau), self.folds
        low, high, loose_low, loose_high = np.zeros((4, folds.k))
        optima = FoldOptima(low, high, loose_low, loose_high, [[] for _ in range(folds.k)])
        if self.allowed is not None:
            for fold in range(folds.k):
                fits = self.close_fits(sets, gamma, tau, folds.left_out(fold), folds.train_rows(fold))
                self._describe_optima(optima, fold, fits)
            return optima
        for fold, objective, error, sure in self.all_objectives(gamma, sets[0]):
            candidates = self._candidates(objective, sure)
            supports, first = list(map(tuple, sets[0][candidates].tolist())), candidates[0]
            if candidates.size == 1 and sure[first] and folds.scores_all_left_out[fold]:
                optima.supports[fold] = supports
                for ends in (low, high, loose_low, loose_high):
                    ends[fold] = float(error[first]) * self.unit.y_unit * self.unit.y_unit
            else:
                train = folds.train_rows(fold)
                self._describe_optima(optima, fold, [(self.refit(support, gamma, train), True) for support in supports])
        return optima

    def _describe_optima(self, optima: FoldOptima, fold: int, fits: Fits) -> None:
        """Store the tied supports of a fold and their errors; `low` and `high` are over those certainly tied."""
        X, y, weights, test = self.dataset.X, self.dataset.y, self.dataset.row_weights, self.folds.scored_rows(fold)
        values = [self.unit.measure_objective(model) for model, _ in fits]
        least = min(values)
        doubt = self._measured_rounding(least)
        errors = [(value, certain, held_out_error(model, X, y, test, weights))
                  for value, (model, certain) in zip(values, fits, strict=True)]  # fmt: skip
        tied = [error for value, certain, error in errors if is_tied(value, least, certain)]
        near = [error for value, _, error in errors if value <= least * (1.0 + LOOSE_TIES) + doubt]
        optima.low[fold], optima.high[fold] = min(tied), max(tied)
        optima.loose_low[fold], optima.loose_high[fold] = min(near), max(near)
        most = least * (1.0 + 2.0 * TIE_RTOL) + doubt
        best = [fits[i][0] for i in np.argsort(values, kind="stable").tolist() if values[i] <= most]
        optima.supports[fold] = [self.places(model) for model in best]

    def best_fit(self, gamma: float, tau: int, start: Support = (), most: int | None = None) -> RidgeFit:
        """Return the full-data fit with the minimum objective; see `Design`."""
        fits = self.close_fits(self.sets(tau), gamma, tau, NO_ROWS, None)
        return min((model for model, _ in fits), key=self.unit.measure_objective)

    def close_fits(
        self, sets: list[IntArray], gamma: float, tau: int, left_out: IntArray, train: IntArray | None
    ) -> Fits:
        """Return exact fits with the required signs of all sets that may be optimal, and whether each is certain.

        A fit is uncertain if a coefficient near zero may have the other sign, or if a column that a sign constraint
        forces to zero would improve the fit. None marks a fit that is worse than another fit that is certain and was
        computed in fractions.

        Parameters
        ----------
        sets : list of (C, size) int arrays
            Column sets from `sets(tau)`.
        gamma : float
            Ridge weight.
        tau : int
            Maximum number of features.
        left_out, train : int arrays
            Held-out rows and training rows; None: all rows.
        """
        of_rows = moments(self.unit, left_out)
        if self.allowed is not None and self.has_bounds:
            return self._fit_bounded_supports(self.allowed, sets, gamma, of_rows, train)
        if self.allowed is not None:
            return self._fit_signed_supports(self.allowed, sets, gamma, tau, of_rows, train)
        objective = gram_objectives(of_rows, gamma, sets[0])
        return [(self.refit(support, gamma, train), True) for support in sets[0][self._candidates(objective)]]

    def _candidates(self, objective: FloatArray, sure: BoolArray | None = None) -> IntArray:
        """Return the supports that may be optimal: close to the best known objective, or with an unknown one (-inf).

        The error of an objective that is not `sure` may be a share of the squares of the targets, in either direction.
        """
        finite, share = np.isfinite(objective), CANDIDATE_SHARE * float(self.unit.t @ self.unit.t)
        room = share if sure is None else np.where(sure, 0.0, share)
        most = np.where(finite, objective * (1.0 + CANDIDATE_RTOL) + room, np.inf)
        return np.flatnonzero((objective - room <= float(most.min(initial=np.inf))) | ~finite)

    def all_objectives(
        self, gamma: float, supports: IntArray
    ) -> Iterator[tuple[int, FloatArray, FloatArray, BoolArray]]:
        """Yield (fold, objectives of all supports, their held-out errors, mask of those accurate to 1e-9).

        Parameters
        ----------
        supports : (C, s) int array
            Positions in `columns`.
        """
        folds, sizes = self.folds, self.folds.left_sizes
        by_identity = (sizes <= IDENTITY_ROWS) & (not self.dataset.has_scales_of_folds)
        for size in np.unique(sizes[by_identity]).tolist():
            members = np.flatnonzero(sizes == size)
            step = max(1, BLOCK_NUMBERS // len(supports))
            for start in range(0, len(members), step):
                yield from self._evaluate_by_identity(gamma, supports, members[start : start + step])
        unknown, none = np.full(len(supports), np.nan), np.zeros(len(supports), dtype=bool)
        for fold in np.flatnonzero(~by_identity).tolist():
            train = moments(self.unit, folds.left_out(fold))
            yield fold, gram_objectives(train, gamma, supports), unknown, none

    def _evaluate_by_identity(
        self, gamma: float, supports: IntArray, members: IntArray
    ) -> Iterator[tuple[int, FloatArray, FloatArray, BoolArray]]:
        rows = np.stack([self.folds.left_out(fold) for fold in members.tolist()])
        objective, error, trust = np.empty((3, len(supports), len(members)))
        n, size = self.dataset.n, supports.shape[1]
        step = max(1, CHUNK_ELEMENTS // ((n + size) * (size + 2) + rows.size * (size + 2 * rows.shape[1])))
        for start in range(0, len(supports), step):
            some = slice(start, start + step)
            objective[some], error[some], trust[some] = leave_out(self.unit, supports[some], gamma, rows)
        doubtful = trust < TRUSTED
        for j, fold in enumerate(members.tolist()):
            if doubtful[:, j].any():
                train = moments(self.unit, self.folds.left_out(fold))
                objective[doubtful[:, j], j] = gram_objectives(train, gamma, supports[doubtful[:, j]])
            yield fold, objective[:, j], error[:, j], ~doubtful[:, j]

    def _fit_signed_supports(
        self, allowed: AllowedSupports, sets: list[IntArray], gamma: float, tau: int, of_rows: FoldMoments,
        train: IntArray | None,
    ) -> Fits:  # fmt: skip
        square = float(self.unit.t @ self.unit.t)
        squares = np.diag(of_rows.gram)
        lengths = np.sqrt(squares) / math.sqrt(square)
        unshrunk = np.ones(len(squares))  # rounding shrinks like the effect
        np.divide(squares + penalties(gamma, of_rows.weight), squares, out=unshrunk, where=squares > 0.0)
        rows, values, worst, doubts, betas = [], [], [], [], []
        for supports in sets:
            rows += list(supports)
            fits = list(gram_fits(of_rows, gamma, supports))
            values += [chunk.objective for chunk in fits]
            doubts += [chunk.doubt for chunk in fits]
            betas += [row for chunk in fits for row in chunk.beta]
            effect = np.concatenate([chunk.beta for chunk in fits]) * lengths[supports]
            worst.append(np.min(allowed.sign[supports] * effect, axis=1, initial=np.inf))
        value, sign, doubt = np.concatenate(values), np.concatenate(worst), np.concatenate(doubts)
        finite = np.isfinite(value)
        best = float(value[finite & (sign >= doubt)].min(initial=np.inf))
        models = []
        for i in np.argsort(value, kind="stable").tolist():  # early fits give bounds for the others
            close = value[i] <= best * (1.0 + CANDIDATE_RTOL) + CANDIDATE_SHARE * square
            if not close or (finite[i] and sign[i] < -doubt[i]):
                continue
            model = self.refit(rows[i], gamma, train)
            far = self.effects(rows[i], model) * unshrunk[rows[i]]
            negligible = 0.0 if model.is_exact else NO_EFFECT
            if allowed.has_required_signs(rows[i], far, negligible):
                best = min(best, self.unit.measure_objective(model))
                slope = of_rows.moment[:-1] - of_rows.gram[:, rows[i]] @ betas[i]
                slope = slope / np.maximum(lengths * square, TINY)
                certain = bool(np.all((allowed.sign[rows[i]] == 0) | (np.abs(far) > negligible)))
                models.append((model, certain and finite[i] and allowed.holds(tuple(rows[i].tolist()), tau, slope)))
        return models

    def _fit_bounded_supports(
        self, allowed: AllowedSupports, sets: list[IntArray], gamma: float, of_rows: FoldMoments, train: IntArray | None
    ) -> Fits:
        """Fit the sets within their bounds that may be optimal by fits from moments, if these lose no digits."""
        rows, room = [row for supports in sets for row in supports], CANDIDATE_SHARE * float(self.unit.t @ self.unit.t)
        value = np.concatenate([gram_objectives(of_rows, gamma, supports) for supports in sets])
        ends, least, models = allowed.ends * self.unit.x_unit / self.unit.y_unit, np.inf, Fits()
        for i in np.argsort(value, kind="stable").tolist():  # without bounds, which is at most the value within them
            if value[i] > least * (1.0 + CANDIDATE_RTOL) + room:
                break
            if np.isfinite(value[i]):
                value[i] = max(value[i], of_rows.bounded_objective(gamma, rows[i], ends[:, rows[i]]))
            least = min(least, np.inf if value[i] == -np.inf else value[i])
        for i in np.flatnonzero(value <= least * (1.0 + CANDIDATE_RTOL) + room).tolist():
            model = self.refit(rows[i], gamma, train)
            effect, signed = np.abs(self.effects(rows[i], model)), allowed.sign[rows[i]] != 0
            if not np.any(signed & (effect == 0.0)):  # otherwise the set without this column is tried too
                certain = bool(np.all(~signed | (effect > NO_EFFECT))) and allowed.allows(rows[i].tolist())
                models.append((model, certain))
        return self._mark_worse_fits(models, gamma, train)

    def _mark_worse_fits(self, fits: Fits, gamma: float, train: IntArray | None) -> Fits:
        """Return fits within bounds, with None for those that are nearly tied but worse in fractions.

        An interval that leaves them out is correct. The certain fit with the smallest objective keeps its mark.
        """
        least = min((self.unit.measure_objective(model) for model, _ in fits), default=0.0)
        near = [i for i, (model, certain) in enumerate(fits)
                if is_tied(self.unit.measure_objective(model), least, certain)]  # fmt: skip
        if not near[1:]:
            return fits
        exact = {i: self._fit_exactly(fits[i][0], gamma, train) for i in near}
        objectives = {i: fit.objective for i, fit in exact.items() if fit is not None}
        best = min((objective for i, objective in objectives.items() if fits[i][1]), default=None)
        worse = {i for i, objective in objectives.items() if best is not None and objective > best}
        return [(model, None if i in worse else certain) for i, (model, certain) in enumerate(fits)]

    def _fit_exactly(self, model: RidgeFit, gamma: float, train: IntArray | None) -> ExactFit | None:
        """Return a fit within bounds in fractions; None if it takes long."""
        assert self.allowed is not None
        weights = self.ridge_weights(model.support, gamma if gamma > NO_RIDGE else 0.0, train)
        low, high = self.allowed.ends[:, list(self.places(model))]
        return fit_exactly_within(
            self.dataset.X, self.dataset.y, model.support, model.beta, weights, (low, high),
            scale=self.scale, intercept=self.intercept, rows=train, weights=self.dataset.row_weights,
        )  # fmt: skip

    # -- held-out errors --------------------------------------------------------------------------------------------

    def held_out_errors(self, supports: Sequence[Support], gamma: float) -> tuple[FloatArray, FloatArray | None, str]:
        """Return held-out sums of squares and of absolute values of every fold at its given support.

        Parameters
        ----------
        supports : list of tuple of int
            Supports by fold.

        Returns
        -------
        errors : (k,) array
            Sums of squares, in units of the file.
        absolute : (k,) array or None
            Sums of absolute values without row weights; None unless every fold is refitted.
        how : str
            Method: "one refit per fold", or the leave-out identity if refits would take long.
        """
        dataset, folds, free = self.dataset, self.folds, self.free
        tau = max((len(support) for support in supports), default=0)
        errors, absolute = np.empty(folds.k), np.empty(folds.k)
        direct = np.ones(folds.k, dtype=bool)
        needs_fits = dataset.has_scales_of_folds or self.has_bounds
        if folds.k * dataset.n * (tau + 1.0) ** 2 > DIRECT_WORK and not needs_fits:
            groups: dict[tuple[Support, int], list[int]] = {}
            for fold, (support, size) in enumerate(zip(supports, folds.sizes.tolist(), strict=True)):
                if size <= IDENTITY_ROWS and folds.scores_all_left_out[fold]:
                    groups.setdefault((support, size), []).append(fold)
            for (support, _), members in groups.items():
                unit = UnitColumns.from_dataset(dataset, self.scale, self.intercept, self.columns[list(support)], free)
                rows = np.stack([folds.scored_rows(fold) for fold in members])
                _, error, trust = leave_out(unit, np.arange(len(support))[None], gamma, rows)
                errors[members] = error[0] * unit.y_unit * unit.y_unit
                direct[members] = trust[0] < TRUSTED
        for fold in np.flatnonzero(direct).tolist():
            model, rows = self.refit(supports[fold], gamma, folds.train_rows(fold)), folds.scored_rows(fold)
            errors[fold] = held_out_error(model, dataset.X, dataset.y, rows, dataset.row_weights)
            residuals = model.residuals(dataset.X, dataset.y, rows)
            absolute[fold] = float(np.abs(residuals).sum()) * model.coordinates.y_unit
        if direct.all():
            return errors, absolute, "one refit per fold"
        return errors, None, "leave-out identity"

    def held_out(self, model: RidgeFit, rows: IntArray, dataset: Dataset | None = None) -> tuple[float, float]:
        """Return the squared error of some rows, and a bound on its rounding error; see `Design`."""
        data = dataset or self.dataset
        error, weight = held_out_error(model, data.X, data.y, rows, data.row_weights), data.weight_of(rows)
        noise = 1e-12 * float(np.ptp(data.y)) + 1e-15 * float(np.abs(data.y).max())
        return error, CROSSING_RTOL * error + weight * noise * (2.0 * math.sqrt(error / weight) + noise)

    def held_out_losses(self, supports: Sequence[Support], gamma: float, tau: int, tell: Tell) -> HeldOut:
        """Return the held-out errors of every fold, with tolerances for their roots; see `Design`."""
        errors, absolute, how = self.held_out_errors(supports, gamma)
        mean, square = float(errors.sum()) / self.scored.total, float(errors.sum()) / self.folds.scored
        noise, sizes = self.residual_noise(square, gamma, tau), self.folds.sizes
        # a residual is a difference of numbers of the size of the target, so its error is relative to that size
        root = np.sqrt(errors)
        reach = CROSSING_RTOL * root + (FOLD_RTOL * math.sqrt(square) + noise) * np.sqrt(sizes)
        mae = None if absolute is None else float(absolute.sum()) / float(sizes.sum())
        return HeldOut(
            errors, np.maximum(root - reach, 0.0) ** 2, (root + reach) ** 2,
            self.slack(mean, gamma, tau, CROSSING_RTOL), mae, MAE_RTOL * (mae or 0.0) + noise, how=how,
        )  # fmt: skip

    def held_out_rows(self, supports: Sequence[Support], gamma: float, tau: int) -> RowLosses:
        """Return the held-out squared errors of rows; see `Design`."""
        dataset, plan, squares = self.dataset, self.folds, np.zeros(self.dataset.n)
        if (plan.sizes == 1).all():
            errors, _, _ = self.held_out_errors(supports, gamma)
            rows, weights = plan.order[: plan.scored], dataset.row_weights
            np.add.at(squares, rows, errors if weights is None else errors / weights[rows])
        else:
            for fold, support in enumerate(supports):
                model, rows = self.refit(support, gamma, plan.train_rows(fold)), plan.scored_rows(fold)
                squares[rows] += (model.residuals(dataset.X, dataset.y, rows) * model.coordinates.y_unit) ** 2
        squares /= np.maximum(self.times, 1)
        return RowLosses(squares, self.slack(self.average_scored(squares), gamma, tau, 0.0))

    # -- losses of all rows, for the instability --------------------------------------------------------------------

    def row_losses(self, support: Support, gamma: float, train: IntArray | None) -> FloatArray:
        """Return (n,) weighted squared errors; see `Design`."""
        return self._squares(self.refit(support, gamma, train))

    def _squares(self, model: RidgeFit) -> FloatArray:
        return squared_errors(model, self.dataset.X, self.dataset.y, self.dataset.row_weights)

    @property
    def _mean_weight(self) -> float:
        return self.total_weight / self.dataset.n  # a common factor of the weights changes no mean

    def change_noise(self, losses: FloatArray, level: float) -> float:
        """Return a bound on the rounding of a mean change of losses: 1,000 ulps of a residual."""
        data = self.dataset
        noise = 5e-13 * size_of_target(data, self.intercept) + 1e-15 * float(np.abs(data.y).max())
        size = math.sqrt(level) + math.sqrt(float(losses.max(initial=0.0)) / self._mean_weight)
        return noise * (2.0 * size + noise)

    def change_room(self, pair: Pair, largest: float) -> float:
        """Return a bound on the rounding allowed in an interval for nearly singular fits; see `Design`."""
        largest /= self._mean_weight
        noise = self.residual_noise(largest, *pair)
        return 2.0 * noise * (2.0 * math.sqrt(largest) + noise)

    def optimal_losses(
        self, fold: int | None, pair: Pair, start: Support
    ) -> tuple[list[FloatArray], list[FloatArray]] | None:
        """Return the losses of the tied optima of a training set, and of all possible ties; see `Design`."""
        left_out, train = (NO_ROWS, None) if fold is None else (self.folds.left_out(fold), self.folds.train_rows(fold))
        fits = self.close_fits(self.sets(pair[1]), *pair, left_out, train)
        least = min(self.unit.measure_objective(model) for model, _ in fits)
        near = least * (1.0 + LOOSE_TIES) + self._measured_rounding(least)
        squares = [(self.unit.measure_objective(model), certain, self._squares(model)) for model, certain in fits]
        tied = [losses for value, certain, losses in squares if is_tied(value, least, certain)]
        return tied, [losses for value, _, losses in squares if value <= near]


def is_tied(objective: float, least: float, certain: bool | None) -> bool:
    """Return True if a fit must count as optimal: it is the best, or certainly valid and within half of a tie."""
    is_near = objective == least or (certain is True and objective <= least * (1.0 + 0.5 * TIE_RTOL))
    return certain is not None and is_near


def _least_correlation(gram: FloatArray) -> float:
    """Return the smallest eigenvalue of a Gram matrix scaled to columns of length 1; 0 if a column is zero."""
    squares = np.diag(gram)
    if not (squares > 0.0).all():
        return 0.0
    unit = 1.0 / np.sqrt(squares)
    return float(np.linalg.eigvalsh(gram * unit[:, None] * unit)[0])

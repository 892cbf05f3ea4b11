"""The optimum of every fold by trying all supports, each fitted once on all rows and corrected for the rows left out.

Theory section 5: with e, H the residuals and hat matrix of the fit of S on all rows and N the rows of a fold,

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residual = (I - H_NN)^{-1} e_N

(`fold` intercept: columns centred on all rows, 1/n added to H). Folds of more than `IDENTITY_ROWS` rows use the
Gram matrix without their rows instead. Both only choose candidates: whatever is close is refitted by
`problem.objective.fit` on the training rows before anything is decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.problem.objective import TIE_RTOL, Cell, fit, held_out_error, scales, varying_columns

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

IDENTITY_ROWS = 12
CANDIDATE_RTOL = 1e-7  # looser than any drift of the corrections below, so that no tie escapes the exact refit
TRUSTED = 1e-7  # rounding over `trust` bounds the error of a correction: 1e-9, well inside what is compared
BLOCK_ELEMENTS = 1 << 24


@dataclass(frozen=True, eq=False)
class Design:
    """Some columns of a data set in coordinates of size one, and the way back.

    Attributes
    ----------
    dataset : Dataset
    scale, intercept : str
    columns : (q,) int array
        Their positions in the data set.
    Z : (n, q) array
        Columns over a power of two, centred on all rows unless the intercept is `none`.
    t : (n,) array
        Targets likewise.
    weight : (q,) array
        Penalty weights in these coordinates.
    y_unit : float
        Objectives here times `y_unit ** 2` are objectives in the file.
    """

    dataset: Dataset
    scale: str
    intercept: str
    columns: IntArray
    Z: FloatArray
    t: FloatArray
    weight: FloatArray
    y_unit: float

    @classmethod
    def of(cls, dataset: Dataset, scale: str, intercept: str, columns: IntArray | None = None) -> Design:
        """Coordinates of `columns`, by default of all that vary."""
        chosen = varying_columns(dataset.X) if columns is None else columns
        X, y = dataset.X[:, chosen], dataset.y
        centred = X - X.mean(axis=0)
        unit = np.ldexp(1.0, np.frexp(np.abs(centred).max(axis=0, initial=1e-300))[1])
        y_unit = float(np.ldexp(1.0, np.frexp(np.abs(y).max())[1]))
        Z, t = (X / unit, y / y_unit) if intercept == "none" else (centred / unit, (y - y.mean()) / y_unit)
        weight = np.minimum(scales(X, scale) / unit, 1e150) ** 2
        return cls(dataset, scale, intercept, chosen, Z, t, weight, y_unit)

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.columns.shape[0])

    def supports(self, tau: int) -> IntArray:
        """(C, min(tau, q)) all supports of one size, as positions in `columns`."""
        size = min(tau, self.q)
        found = [list(support) for support in combinations(range(self.q), size)]
        return np.array(found, dtype=np.int64).reshape(len(found), size)

    def exact(self, supports: IntArray, gamma: float, rows: IntArray | None) -> Cell:
        """Refit candidates on their training rows; the tied ones, half of `TIE_RTOL` being clear of rounding."""
        fits = [
            fit(self.dataset.X, self.dataset.y, self.columns[s].tolist(), gamma,
                scale=self.scale, intercept=self.intercept, rows=rows)
            for s in supports
        ]  # fmt: skip
        best = min(model.objective for model in fits)
        return Cell(best, tuple(m for m in fits if m.objective <= best * (1.0 + 0.5 * TIE_RTOL)))


@dataclass(frozen=True, eq=False)
class FoldOptima:
    """Per fold: held-out sums of squares over the tied optima, and whether a reported support is among these."""

    low: FloatArray
    high: FloatArray
    reported_optimal: NDArray[np.bool_]


def enumeration_cost(n: int, q: int, taus: list[int], gammas: int, k: int) -> float:
    """Elementary operations of `fold_optima` for all pairs, roughly."""
    counts = {tau: comb(q, min(tau, q)) for tau in taus}
    blocks = {tau: 1.0 + k * count // BLOCK_ELEMENTS for tau, count in counts.items()}
    return gammas * sum(counts[tau] * max(n, 400, 30 * k) * (tau + 2.0) * blocks[tau] for tau in taus)


def fold_optima(
    design: Design, folds: FoldPlan, gamma: float, tau: int, reported: list[tuple[int, ...]] | None = None
) -> FoldOptima:
    """The optimum of every fold of one (gamma, tau).

    Parameters
    ----------
    design : Design
        All columns that vary.
    folds : FoldPlan
    gamma : float
    tau : int
    reported : list of tuple of int, optional
        One support per fold, as sorted positions in `design.columns`, to be compared with the optimum. It may be
        smaller than tau: a column that is constant in a training set adds nothing there.
    """
    supports = design.supports(tau)
    index = {tuple(s): i for i, s in enumerate(supports.tolist())}
    low, high = np.zeros(folds.k), np.zeros(folds.k)
    good = np.ones(folds.k, dtype=bool)
    for fold, objective, error in _all_objectives(design, folds, gamma, supports):
        best = float(objective.min())
        close = objective <= best * (1.0 + CANDIDATE_RTOL) + 1e-11 * float(design.t @ design.t)
        mine = None if reported is None else tuple(reported[fold])
        candidates = np.flatnonzero(close)
        if error is not None and candidates.size == 1 and (mine is None or index.get(mine) == candidates[0]):
            low[fold] = high[fold] = error[candidates[0]] * design.y_unit**2
            continue
        train, test = folds.train_rows(fold), folds.test_rows(fold)
        cell = design.exact(supports[candidates], gamma, train)
        low[fold], high[fold] = cell.held_out(design.dataset.X, design.dataset.y, test)
        if mine is not None:
            good[fold] = _ties(design, np.array(mine, dtype=np.int64), gamma, train, cell.objective)
    return FoldOptima(low, high, good)


def full_optimum(design: Design, gamma: float, tau: int) -> float:
    """min f over supports of size tau on all rows, in the file's units."""
    supports = design.supports(tau)
    gram, moment = _moments(design, np.zeros(0, dtype=np.int64))
    objective = np.concatenate(list(_gram_objectives(design, gram, moment, gamma, supports)))
    close = objective <= objective.min() * (1.0 + CANDIDATE_RTOL) + 1e-11 * float(design.t @ design.t)
    return design.exact(supports[close], gamma, None).objective


def _ties(design: Design, support: IntArray, gamma: float, train: IntArray, best: float) -> bool:
    objective, noise = design.exact(support[None, :], gamma, train).objective, 1e-13 * design.y_unit
    # twice the tolerance, and the rounding of the residuals of a perfect fit: no false alarm from a refit's last digits
    return objective <= best * (1.0 + 2.0 * TIE_RTOL) + noise * (2.0 * np.sqrt(best) + noise) * len(train)


def _all_objectives(
    design: Design, folds: FoldPlan, gamma: float, supports: IntArray
) -> Iterator[tuple[int, FloatArray, FloatArray | None]]:
    """(fold, objective of every support, held-out error of every support where the identity gave it)."""
    sizes = folds.sizes
    for size in np.unique(sizes[sizes <= IDENTITY_ROWS]).tolist():
        members = np.flatnonzero(sizes == size)
        step = max(1, BLOCK_ELEMENTS // len(supports))
        for start in range(0, len(members), step):
            yield from _by_identity(design, folds, gamma, supports, members[start : start + step])
    for fold in np.flatnonzero(sizes > IDENTITY_ROWS).tolist():
        gram, moment = _moments(design, folds.test_rows(fold))
        yield fold, np.concatenate(list(_gram_objectives(design, gram, moment, gamma, supports))), None


def _by_identity(
    design: Design, folds: FoldPlan, gamma: float, supports: IntArray, members: IntArray
) -> Iterator[tuple[int, FloatArray, FloatArray | None]]:
    rows = np.stack([folds.test_rows(fold) for fold in members.tolist()])
    objective, error = np.empty((2, len(supports), len(members)))
    sure = np.ones(len(members), dtype=bool)
    for i, support in enumerate(supports):
        objective[i], error[i], trust = leave_out(design, support, gamma, rows)
        for j in np.flatnonzero(trust < TRUSTED).tolist():
            sure[j] = False
            train = folds.train_rows(int(members[j]))
            objective[i, j] = design.exact(support[None, :], gamma, train).objective / design.y_unit**2
    for j, fold in enumerate(members.tolist()):
        yield fold, objective[:, j], error[:, j] if sure[j] else None


def leave_out(
    design: Design, support: IntArray, gamma: float, rows: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """f and held-out error of one support with each row set of `rows` (k, B) left out, from one fit on all rows.

    Returns
    -------
    objective, error : (k,) arrays
        In the design's units.
    trust : (k,) array
        Smallest eigenvalue of I - H_NN times reciprocal condition of the fit times ||e|| / ||t||: near 0 the others
        have lost their digits.
    """
    Z = design.Z[:, support]
    penalty = gamma / 2.0 * design.weight[support]
    values, vectors = np.linalg.eigh(Z.T @ Z + np.diag(penalty))
    rcond = max(0.0, float(values[0]) / float(values[-1])) if values.size else 1.0
    V = (vectors / values) @ vectors.T if rcond > 0.0 else np.zeros((values.size, values.size))
    beta = V @ (Z.T @ design.t)
    e = design.t - Z @ beta
    share = min(1.0, float(np.linalg.norm(e)) / float(np.linalg.norm(design.t)))
    ZV, full = Z @ V, float(e @ e + penalty @ beta**2)
    H = np.einsum("kas,kbs->kab", ZV[rows], Z[rows])
    if design.intercept == "fold":
        H += 1.0 / design.dataset.n
    if rows.shape[1] == 1:
        margin = 1.0 - H[:, 0, 0]
        held = e[rows] / np.where(margin > 0.0, margin, 1.0)[:, None]
    else:
        matrix = np.eye(rows.shape[1]) - (H + H.transpose(0, 2, 1)) / 2.0
        margin = np.linalg.eigvalsh(matrix)[:, 0]
        matrix[margin <= 0.0] = np.eye(rows.shape[1])
        held = np.linalg.solve(matrix, e[rows][:, :, None])[:, :, 0]
    return full - np.sum(e[rows] * held, axis=1), np.sum(held**2, axis=1), margin * rcond * share


def _moments(design: Design, test: IntArray) -> tuple[FloatArray, FloatArray]:
    """Gram matrix (q, q) and cross moments (q + 1,), the last one t't, of the rows not in `test`."""
    keep = np.ones(design.dataset.n, dtype=bool)
    keep[test] = False
    block = np.column_stack([design.Z[keep], design.t[keep]])
    if design.intercept == "fold":
        block -= block.mean(axis=0)
    product = block.T @ block
    return product[:-1, :-1], product[:, -1]


def _gram_objectives(
    design: Design, gram: FloatArray, moment: FloatArray, gamma: float, supports: IntArray
) -> Iterator[FloatArray]:
    """Objectives of blocks of supports from moments: t't - c'(G + penalty)^{-1} c."""
    full = gram + np.diag(gamma / 2.0 * design.weight)
    rest = iter(supports)
    step = max(1, BLOCK_ELEMENTS // max(1, supports.shape[1] ** 2))
    while block := list(islice(rest, step)):
        S = np.array(block)
        c = moment[:-1][S]
        try:
            solution = np.linalg.solve(full[S[:, :, None], S[:, None, :]], c[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # singular in floating point: 0 makes every support a candidate for the refit
            solution = np.full(c.shape, np.nan)
        yield np.nan_to_num(moment[-1] - np.sum(c * solution, axis=1), nan=0.0)


def held_out_errors(
    dataset: Dataset, folds: FoldPlan, supports: list[tuple[int, ...]], gamma: float, scale: str, intercept: str
) -> tuple[FloatArray, str]:
    """Held-out sum of squares of every fold at its given support (positions in the data set).

    Returns
    -------
    errors : (k,) array
        In the file's units.
    how : str
        "one refit per fold", or the leave-out identity where refits would take k n tau^2 > 5e8 operations.
    """
    tau = max((len(support) for support in supports), default=0)
    errors = np.empty(folds.k)
    direct = np.ones(folds.k, dtype=bool)
    if folds.k * dataset.n * (tau + 1.0) ** 2 > 5e8:
        groups: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for fold, (support, size) in enumerate(zip(supports, folds.sizes.tolist(), strict=True)):
            if size <= IDENTITY_ROWS:
                groups.setdefault((support, size), []).append(fold)
        for (support, _), members in groups.items():
            design = Design.of(dataset, scale, intercept, np.array(support, dtype=np.int64))
            rows = np.stack([folds.test_rows(fold) for fold in members])
            _, error, trust = leave_out(design, np.arange(len(support)), gamma, rows)
            errors[members] = error * design.y_unit**2
            direct[members] = trust < TRUSTED
    for fold in np.flatnonzero(direct).tolist():
        model = fit(dataset.X, dataset.y, supports[fold], gamma,
                    scale=scale, intercept=intercept, rows=folds.train_rows(fold))  # fmt: skip
        errors[fold] = held_out_error(model, dataset.X, dataset.y, folds.test_rows(fold))
    return errors, "one refit per fold" if direct.all() else "leave-out identity"

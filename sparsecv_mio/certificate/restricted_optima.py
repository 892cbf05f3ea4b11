"""The optimum of every fold by trying all supports that keep to restrictions, signs included."""

from __future__ import annotations

from math import comb

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.enumeration import (
    CANDIDATE_RTOL,
    CANDIDATE_SHARE,
    LOOSE_TIES,
    FoldOptima,
    UnitColumns,
    enumeration_cost,
    gram_fits,
    moments,
)
from sparsecv_mio.certificate.restricted import NOTHING
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.problem.objective import RidgeFit, held_out_error
from sparsecv_mio.units import TIE_RTOL, TINY


def effects(design: UnitColumns, support: IntArray | tuple[int, ...], model: RidgeFit) -> FloatArray:
    """Return coefficients of a fit times the lengths of their columns, over the length of the target.

    Parameters
    ----------
    design : UnitColumns
    support : (s,) int array or tuple
        Positions in `design.columns`.
    model : RidgeFit
        Its fit.
    """
    columns = design.dataset.X[:, design.columns[np.asarray(support, dtype=np.int64)]] - model.x_center
    columns *= design.root[:, None]
    unit = np.linalg.norm(design.t) * design.y_unit
    return np.asarray(model.beta * np.sqrt(np.einsum("ij,ij->j", columns, columns)) / unit)


def restricted_cost(n: int, q: int, taus: list[int], gammas: int, k: int) -> float:
    """Elementary operations of `restricted_optima` for all pairs, roughly; as `enumeration_cost`, of all sizes.

    Parameters
    ----------
    n, q, k : int
        Rows, columns, folds.
    taus : list of int
    gammas : int
        Their number.
    """
    sizes = [size for tau in taus for size in range(min(tau, q) + 1)]
    ways = sum(comb(q, size) for size in sizes)
    return sum(enumeration_cost(n, q, [size], gammas, k) for size in sizes) + 500.0 * ways * gammas * k


def restricted_optima(
    design: UnitColumns, folds: FoldPlan, gamma: float, tau: int, reported: list[tuple[int, ...]] | None = None
) -> FoldOptima:
    """Find the optimum of every fold of one (gamma, tau) by trying all supports.

    Parameters
    ----------
    design : UnitColumns
        All columns that may be in a support, with what is allowed of them.
    folds : FoldPlan
    gamma : float
    tau : int
    reported : list of tuple of int, optional
        One support per fold, to be compared with the optimum.
    """
    assert design.allowed is not None
    X, y, weights, allowed = design.dataset.X, design.dataset.y, design.dataset.row_weights, design.allowed
    sets = allowed.up_to(tau)
    low, high, loose_low, loose_high = (np.zeros(folds.k) for _ in range(4))
    good = np.ones(folds.k, dtype=bool)
    for fold in range(folds.k):
        train, test = folds.train_rows(fold), folds.scored_rows(fold)
        fits = close_restricted(design, sets, gamma, train, folds.left_out(fold), tau)
        least = min(model.objective for model, _ in fits)
        doubt = design.rounding(least)
        tied = [held_out_error(m, X, y, test, weights) for m, certain in fits
                if m.objective == least or (certain and m.objective <= least * (1.0 + 0.5 * TIE_RTOL))]  # fmt: skip
        near = [held_out_error(m, X, y, test, weights) for m, _ in fits
                if m.objective <= least * (1.0 + LOOSE_TIES) + doubt]  # fmt: skip
        low[fold], high[fold], loose_low[fold], loose_high[fold] = min(tied), max(tied), min(near), max(near)
        if reported is not None:
            mine = design.refit(reported[fold], gamma, train)
            right = allowed.signed_right(reported[fold], effects(design, reported[fold], mine))
            good[fold] = right and mine.objective <= least * (1.0 + 2.0 * TIE_RTOL) + doubt
    return FoldOptima(low, high, loose_low, loose_high, good)


def restricted_least(design: UnitColumns, gamma: float, tau: int) -> float:
    """Return the least f on all rows, in the file's units.

    Parameters
    ----------
    design : UnitColumns
    gamma : float
    tau : int
    """
    assert design.allowed is not None
    fits = close_restricted(design, design.allowed.up_to(tau), gamma, None, np.zeros(0, dtype=np.int64), tau)
    return min(model.objective for model, _ in fits)


def close_restricted(
    design: UnitColumns, sets: dict[int, IntArray], gamma: float, train: IntArray | None, left_out: IntArray, tau: int
) -> list[tuple[RidgeFit, bool]]:
    """Exact fits of all sets that may be optimal, signs right, and of each whether it is beyond doubt the fit of one.

    That is in doubt where a coefficient next to zero may have the other sign, or a column that a sign must hold at zero
    would improve the fit.

    Parameters
    ----------
    design : UnitColumns
    sets : dict of int to (C, size) int array
        Supports by their size, as positions in `design.columns`.
    gamma : float
    train, left_out : int arrays
        Training rows, None for all; the others.
    tau : int
    """
    allowed = design.allowed
    assert allowed is not None
    train_rows = moments(design, left_out)
    lengths = np.sqrt(np.diag(train_rows.gram)) / float(np.linalg.norm(design.t))
    rows, values, worst, doubts, betas = [], [], [], [], []
    for supports in sets.values():
        rows += list(supports)
        fits = list(gram_fits(design, train_rows, gamma, supports))
        values += [part.objective for part in fits]
        doubts += [part.doubt for part in fits]
        betas += [row for part in fits for row in part.beta]
        effect = np.concatenate([part.beta for part in fits]) * lengths[supports]
        worst.append(np.min(allowed.sign[supports] * effect, axis=1, initial=np.inf))
    value, sign, doubt = np.concatenate(values), np.concatenate(worst), np.concatenate(doubts)
    known = np.isfinite(value)
    best = float(value[known & (sign >= doubt)].min(initial=np.inf))
    found = []
    for i in np.argsort(value, kind="stable").tolist():  # the first fits bound the others
        close = value[i] <= best * (1.0 + CANDIDATE_RTOL) + CANDIDATE_SHARE * float(design.t @ design.t)
        if not close or (known[i] and sign[i] < -doubt[i]):
            continue
        model = design.refit(rows[i], gamma, train)
        far = effects(design, rows[i], model)
        if allowed.signed_right(rows[i], far):
            best = min(best, model.objective / design.y_unit / design.y_unit)
            slope = train_rows.moment[:-1] - train_rows.gram[:, rows[i]] @ betas[i]
            slope = slope / np.maximum(lengths * float(design.t @ design.t), TINY)
            certain = bool(np.all((allowed.sign[rows[i]] == 0) | (np.abs(far) > NOTHING)))
            found.append((model, certain and known[i] and allowed.holds(tuple(rows[i].tolist()), tau, slope)))
    return found

"""Bounds of the held-out sum of squares of one fold, from rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.fold import ROUNDS, TIE, Origin, Which
from sparsecv_mio.bounds.wide_relaxation import MAX_STEPS, WideRelaxation, WorkingColumns
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.bounds.wide_supports import WideSupports
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.kernels import fold_bounds
from sparsecv_mio.kernels.conic import LEAST_EXCESS, gap_of, next_weight
from sparsecv_mio.kernels.forms import Candidates, Effort, Fold, Incumbents
from sparsecv_mio.kernels.held_out_interval import distances, one_support
from sparsecv_mio.kernels.perspective_newton import new_factor
from sparsecv_mio.kernels.relaxation_rows import Wide, farthest_rows
from sparsecv_mio.kernels.status import INSIDE
from sparsecv_mio.problem.diagonal import DIAGONAL_MARGIN
from sparsecv_mio.units import TINY

TOGETHER_ROUNDS = 6
TARGET = 0.2  # accepted relative error of F(b_t) - zeta: second order in the bound


@dataclass(frozen=True, eq=False)
class Ends:
    """An interval of the held-out sum of squares, where its ends come from, and the relaxation's estimate."""

    lower: float = 0.0
    upper: float = np.inf
    low_origin: Origin = Origin.TRIVIAL
    high_origin: Origin = Origin.TRIVIAL
    estimate: float = np.nan

    @classmethod
    def exact(cls, value: float) -> Ends:
        """Return the ends of a number that involves no choice."""
        return cls(value * (1.0 - 1e-13), value * (1.0 + 1e-13), Origin.EXACT, Origin.EXACT, value)


def of_few_columns(
    rows: WideRows, supports: WideSupports, tau: int, survivors: IntArray
) -> tuple[Ends, float]:
    """Bound what screening leaves as a problem with a matrix.

    Parameters
    ----------
    rows : WideRows
    supports : WideSupports
        With an incumbent of the size, improved where a better support is found.
    tau : int
    survivors : int array
        Columns that hold every candidate.

    Returns
    -------
    ends : Ends
    lower : float
        Lower bound of f, rounding taken off; -inf where there was nothing to relax.

    Raises
    ------
    Contradiction
        If the lower bound exceeds the value of the incumbent.
    """
    m, M = len(survivors), rows.matrix(survivors)
    scale = 1.0 / np.sqrt(np.diag(M))
    M *= scale[:, None]
    M *= scale
    np.fill_diagonal(M, 1.0)
    w = scale**2 * (1.0 - DIAGONAL_MARGIN)
    X = np.ascontiguousarray(rows.X_test[:, survivors] * scale)
    fold = Fold(M, rows.c[survivors] * scale, rows.yy, w, X, rows.u)
    if m <= tau:
        return _of_one_support(rows, fold), -np.inf
    best, masks = np.full(m + 1, np.inf), np.zeros((m + 1, m), dtype=np.bool_)
    best[tau] = supports.best[tau]
    out, each = np.zeros((1, 8)), np.empty((1, len(rows.u), 2))
    mode = fold_bounds.DO_REDUCE | fold_bounds.DO_ROWS | (fold_bounds.DO_TOGETHER if len(rows.u) > 1 else 0)
    asked = fold_bounds.Asked(mode, ROUNDS, rows.n, TIE, rows.rounding)
    if fold_bounds.run(fold, np.array([tau]), asked, Incumbents(best, masks), out, each):
        raise Contradiction("a certified lower bound exceeds the value of a known support")
    if best[tau] < supports.best[tau]:
        supports.take([survivors[masks[tau]]])
    ends = Ends(out[0, 2], out[0, 3], Origin(int(out[0, 4])), Origin(int(out[0, 5])), float(out[0, 6]))
    return ends, float(out[0, 0])


def _of_one_support(rows: WideRows, fold: Fold) -> Ends:
    """Return the held-out error of the only support left."""
    m, N = len(fold.c), len(rows.u)
    lo, hi = np.empty(N), np.empty(N)
    rounding = rows.allowance_of(m)
    if not one_support(fold, np.full(m, INSIDE, dtype=np.int8), m, rounding, lo, hi, new_factor(m, m)):
        return Ends()
    low, high = distances(rows.u, lo, hi)
    return Ends(low, high, Origin.EXACT, Origin.EXACT, 0.5 * (low + high))


def of_all_columns(
    relaxation: WideRelaxation, candidates: Candidates, dual: float, which: Which, expired: Callable[[], bool]
) -> Ends:
    """Bound prediction by prediction over all columns, and the sum from below.

    Parameters
    ----------
    relaxation : WideRelaxation
        Solved for the size; left as it is.
    candidates : Candidates
    dual : float
        Dual value of its point.
    which : Which
    expired : callable
        Once it is True predictions that are left keep their trivial bounds.
    """
    rows, centre = relaxation.rows, relaxation.b.copy()
    gap = gap_of(candidates._replace(zeta=dual), rows.yy)
    rounding, effort = rows.allowance_of(candidates.k), Effort(ROUNDS, MAX_STEPS)
    lo, hi = np.full(len(rows.u), -np.inf), np.full(len(rows.u), np.inf)
    if which is not Which.AGGREGATED:
        for i, x in enumerate(rows.X_test):
            ridge = float(x @ x) - float(np.sum((rows.Xt.T @ x) ** 2)) / (1.0 + rows.largest)
            t = 2.0 * np.sqrt(gap / max(ridge, TINY))
            if expired():
                break
            for sign, side in ((1.0, hi), (-1.0, lo)):
                near = relaxation.columns.arrays
                bound, t = farthest_rows(rows.training, sign * x, candidates, centre, t, effort, rounding, near)
                side[i] = sign * bound
    low, high = distances(rows.u, lo, hi)
    ends = Ends(low, high, Origin.CONIC, Origin.CONIC if np.isfinite(high) else Origin.TRIVIAL)
    if which is not Which.CONIC and len(rows.u) > 1:
        together = _least_squares(relaxation, candidates, rounding.prior, expired)
        if together > low:
            ends = replace(ends, lower=together, low_origin=Origin.AGGREGATED)
    relaxation.b[:] = centre
    return ends


def _least_squares(
    relaxation: WideRelaxation, candidates: Candidates, prior: float, expired: Callable[[], bool]
) -> float:
    """Lower bound of the held-out sum of squares: the relaxation with the held-out rows weighing t."""
    rows, b, gap = relaxation.rows, relaxation.b, gap_of(candidates, relaxation.rows.yy)
    longest = float(np.linalg.eigvalsh(rows.X_test @ rows.X_test.T)[-1]) * (1.0 + 1e-9)
    bound, low, high, t = 0.0, 0.0, np.inf, 1.0
    for _ in range(TOGETHER_ROUNDS):
        if expired():
            break
        root = np.sqrt(t)
        Xt, y = np.hstack([rows.Xt, root * rows.X_test.T]), np.concatenate([rows.y, root * rows.u])
        columns = WorkingColumns(rows.q)
        columns.take(np.flatnonzero(b), Xt)
        weighted = Wide(Xt, y, rows.largest + t * longest)
        dual, primal = relaxation.solve_on(weighted, columns, candidates.k, 0.01 * gap)
        size = float(np.sqrt(rows.square + t * np.einsum("ij,ij->j", rows.X_test, rows.X_test)) @ np.abs(b))
        slip = rows.rounding * (prior * (1.0 + root * np.sqrt(longest)) + float(np.linalg.norm(y)) + size) ** 2
        bound = max(bound, (dual - candidates.ubar - slip) / t)
        excess = primal - t * squared_error(rows, b) - candidates.zeta
        ratio = gap / max(excess, LEAST_EXCESS * gap)
        if abs(ratio - 1.0) < TARGET:
            break
        low, high = (t, high) if excess < gap else (low, t)
        t = next_weight(t, ratio, low, high)
    return bound


def squared_error(rows: WideRows, b: FloatArray) -> float:
    """Held-out sum of squares of a point."""
    return float(np.sum((rows.u - rows.X_test @ b) ** 2))

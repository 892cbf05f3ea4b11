"""Dual points of a neighbouring problem, evaluated in a fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.relaxation import UnitDiagonal, comparison_allowance


def reused_bounds(form: UnitDiagonal, beta: FloatArray, taus: Sequence[int]) -> list[float]:
    """Lower bounds of f for every tau from one point of another problem (other rows, gamma or tau): no iteration.

        D_tau(b) = yy - b'G b - (tau largest g_j^2 / w_j),    one sort for all tau

    Parameters
    ----------
    form : UnitDiagonal
        The fold.
    beta : (q,) array
        Any point, best the relaxation's on all rows: restricting its residual to the fold's rows and centring it there
        (GLRU, theory section 8) is what evaluating D on the fold's moments does.
    taus : sequence of int

    Notes
    -----
    O(m^2 + m log m).
    """
    b = beta / form.scale
    Gb = form.M @ b - form.w * b
    falling = np.sort((form.c - Gb) ** 2 / form.w)[::-1]
    value = float(form.yy - b @ Gb) - np.concatenate([[0.0], np.cumsum(falling)])
    return [float(value[min(tau, form.m)]) - comparison_allowance(form, min(tau, form.m), b) for tau in taus]

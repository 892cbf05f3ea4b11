"""Folds of the reported pair whose held-out loss exceeds the largest number, and the line that names them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.row_losses import OVERFLOWN

MAX_OVERFLOW_FITS = 50  # maximum number of fits that look for the row


def is_overflown(lower: FloatArray) -> BoolArray:
    """Return True where a lower bound on held-out losses shows that the loss exceeds the largest number."""
    return np.asarray(lower >= OVERFLOWN * (1.0 - 1e-9))


def describe_overflow(
    data: StandardData, folds: FoldPlan, gamma: float, errors: FloatArray, decided: BoolArray,
    supports: Iterable[IntArray],
) -> str:  # fmt: skip
    """Return a line that names a fold and a row whose held-out loss exceeds the largest number; empty if none does.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds.
    gamma : float
        Ridge weight of the reported pair.
    errors, decided : (K,) arrays
        Held-out losses of the folds, infinite where no model has a finite loss, and mask of solved folds.
    supports : iterable of int arrays
        Supports to fit in these folds.
    """
    if data.loss.is_quadratic:
        return ""
    from sparsecv_mio.problem.glm_refit import refit_glm  # squared-error loss does not need this import

    candidates, n_fits = list(supports), 0
    for fold in np.flatnonzero(~np.isfinite(errors) & ~decided).tolist():
        scored = folds.scored_rows(fold)
        for support in candidates:
            if n_fits == MAX_OVERFLOW_FITS:
                return ""
            n_fits += 1
            with np.errstate(all="ignore"):
                losses, _ = refit_glm(data, folds.train_rows(fold), support, gamma).losses(data, scored)
            if np.isinf(losses).any():
                row = int(data.dataset.places[scored[int(np.argmax(np.isinf(losses)))]]) + 1
                return (
                    f"fold {fold + 1}: the held-out loss of row {row} exceeds the largest number, because its "
                    "prediction is too large, so the CV error of this pair is undefined; give a larger gamma, or "
                    "check the row"
                )
    return ""

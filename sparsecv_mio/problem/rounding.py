"""What rounding may do to the objective of a fit, in units of the file: no search claims more, `verify` allows it."""

from __future__ import annotations

import math

import numpy as np

from sparsecv_mio.data.dataset import Dataset

OBJECTIVE_RTOL = 1e-9


def size_of_target(dataset: Dataset, intercept: str) -> float:
    """Return the largest target about its mean, about zero without an intercept."""
    y = dataset.y
    return float(np.abs(y).max() if intercept == "none" else np.ptp(y))


def objective_slack(objective: float, dataset: Dataset, intercept: str) -> float:
    """Bound what rounding may do to an objective of the search.

    Parameters
    ----------
    objective : float
    dataset : Dataset
    intercept : {"fold", "global", "none"}

    Returns
    -------
    float
        A part of the objective and, for a fit that is nearly perfect, what its residuals may be off.
    """
    noise = 1e-15 * size_of_target(dataset, intercept) * math.sqrt(dataset.weight_of(slice(0, dataset.n)))
    return OBJECTIVE_RTOL * objective + noise * (2.0 * math.sqrt(objective) + noise)

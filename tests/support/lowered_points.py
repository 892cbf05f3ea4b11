"""The objective of a point in a model that was lowered to arrays, and how far it is from satisfying the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.formulation.models import LoweredProblem


def objective(arrays: LoweredProblem, x: NDArray[np.float64]) -> float:
    """The objective at a point."""
    i, j, v = arrays.terms
    return float(arrays.constant + arrays.cost @ x + np.sum(v * x[i] * x[j]))


def violation(arrays: LoweredProblem, x: NDArray[np.float64]) -> float:
    """The largest violation of a bound, a row or a cone at a point."""
    worst = [0.0, float(np.max(arrays.lower - x, initial=0.0)), float(np.max(x - arrays.upper, initial=0.0))]
    activity = arrays.rows @ x
    worst.append(float(np.max(arrays.row_lower - activity, initial=0.0)))
    worst.append(float(np.max(activity - arrays.row_upper, initial=0.0)))
    for cone in arrays.cones:
        i, j, v = cone.terms
        worst.append(float(cone.linear @ x[cone.index] + np.sum(v * x[i] * x[j]) - cone.upper))
    return max(worst)

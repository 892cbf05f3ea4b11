"""Accelerated proximal gradient on many small problems at once, one per row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.arrays import FloatArray

Rows = Callable[[FloatArray], FloatArray]


def accelerated(
    gradient: Rows, prox: Rows, begin: FloatArray, step: float, steps: int, tolerance: float
) -> tuple[FloatArray, int]:
    """Minimise `q_i(z_i) + h(z_i)` for every row i, q_i convex with curvature at most `1 / step`.

    Momentum is dropped row by row when it points uphill, so rows of different conditioning do not slow each other.

    Parameters
    ----------
    gradient : callable
        (k, p) gradients of q_i at the rows of a (k, p) array.
    prox : callable
        (k, p) proximal map of `step * h`, row by row.
    begin : (k, p) array
        Starting points.
    step : float
        Step length.
    steps : int
        Most steps taken.
    tolerance : float
        Stop when no entry moves by more than this, relative to `1 + max |z|`.

    Returns
    -------
    (k, p) array, int
        Last points and the number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> z, taken = accelerated(lambda z: z - 3.0, lambda z: z, np.zeros((2, 1)), 1.0, 10, 1e-12)
    >>> z.ravel().tolist(), taken
    ([3.0, 3.0], 2)
    """
    z = begin.copy()
    ahead, momentum = z.copy(), np.ones(z.shape[0])
    for taken in range(1, steps + 1):
        new = prox(ahead - step * gradient(ahead))
        moved = float(np.abs(new - ahead).max(initial=0.0))
        uphill = np.einsum("ij,ij->i", ahead - new, new - z) > 0.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        push = np.where(uphill, 0.0, (momentum - 1.0) / following)
        momentum = np.where(uphill, 1.0, following)
        ahead = new + push[:, None] * (new - z)
        z = new
        if moved <= tolerance * (1.0 + float(np.abs(z).max(initial=0.0))):
            return z, taken
    return z, steps

"""The ridge fit of a support from the moments of a problem, as it is written down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.problem.problem import SparseProblem


def ridge(problem: SparseProblem, support: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """`b = M_S^{-1} c_S` and `f(S) = yy - c_S' b`."""
    S = np.asarray(support, dtype=np.int64)
    beta = np.linalg.solve(problem.M[np.ix_(S, S)], problem.c[S])
    return np.asarray(beta), float(problem.yy - problem.c[S] @ beta)

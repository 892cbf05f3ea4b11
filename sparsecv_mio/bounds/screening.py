"""Safe screening: columns that are in every, or in no, support as good as the incumbent (docs/theory/bounds.md 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.relaxation import Relaxation
from sparsecv_mio.kernels import screening as kernel
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE


@dataclass(frozen=True, eq=False)
class Screened:
    """Columns of the problem: in every optimum, in none, open. For one tau only: optima of two tau need not nest."""

    tau: int
    inside: IntArray
    dropped: IntArray
    free: IntArray


def screen(relaxation: Relaxation, ubar: float) -> Screened:
    """Fix columns by the dual point of a relaxation.

        d = g^2 / w,    d_(tau) - d_i > ubar - D  =>  i in no support,    d_i - d_(tau+1) > ubar - D  =>  i in every one

    Parameters
    ----------
    relaxation : Relaxation
        Any point with its own dual value; it need not be optimal.
    ubar : float
        f of a known support, rounded up.

    Examples
    --------
    >>> from sparsecv_mio.bounds.relaxation import relax_problem
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> c = np.array([3.0, 0.1])
    >>> problem = SparseProblem(np.eye(2), c, 9.01, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> found = screen(relax_problem(problem, [1])[0], ubar=4.51)
    >>> found.inside.tolist(), found.dropped.tolist()
    ([0], [1])
    """
    tau, columns = relaxation.tau, np.arange(len(relaxation.beta))
    empty = np.zeros(0, dtype=np.int64)
    if tau == 0:
        return Screened(tau, empty, columns, empty)
    if tau >= len(columns):
        return Screened(tau, columns, empty, empty)
    status = np.full(len(columns), FREE, dtype=np.int8)
    room = max(ubar - relaxation.dual, 0.0)
    kernel.screen(relaxation.slope**2 / relaxation.w, len(columns), columns, tau, room, status)
    return Screened(tau, *(columns[status == kind] for kind in (INSIDE, DROPPED, FREE)))

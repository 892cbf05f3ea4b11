"""Safe screening: columns that are in every, or in no, support as good as the incumbent (docs/theory/bounds.md 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.relaxation import Relaxation
from sparsecv_mio.kernels import screening as kernel
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE


def screen(relaxation: Relaxation, ubar: float) -> NDArray[np.int8]:
    """Fix columns by the dual point of a relaxation, for its tau only: optima of two tau need not nest.

        d = g^2 / w,    d_(tau) - d_i > ubar - D  =>  i in no support,    d_i - d_(tau+1) > ubar - D  =>  i in every one

    Parameters
    ----------
    relaxation : Relaxation
        Any point with its own dual value; it need not be optimal.
    ubar : float
        f of a known support, rounded up.

    Returns
    -------
    (q,) int8 array
        INSIDE where a column is in every optimum, DROPPED where it is in none, else FREE (:mod:`.kernels.status`).

    Examples
    --------
    >>> from sparsecv_mio.bounds.relaxation import relax_problem
    >>> from sparsecv_mio.problem.problem import SparseProblem
    >>> c = np.array([3.0, 0.1])
    >>> problem = SparseProblem(np.eye(2), c, 9.01, np.ones(2), 1.0, 2, np.zeros(2), 0.0)
    >>> found = screen(relax_problem(problem, [1])[0], ubar=4.51)
    >>> (found == INSIDE).tolist(), (found == DROPPED).tolist()
    ([True, False], [False, True])
    """
    tau, q = relaxation.tau, len(relaxation.beta)
    status = np.full(q, DROPPED if tau == 0 else INSIDE if tau >= q else FREE, dtype=np.int8)
    if 0 < tau < q:
        room = max(ubar - relaxation.dual, 0.0)
        kernel.screen(relaxation.slope**2 / relaxation.w, q, np.arange(q), tau, room, status)
    return status

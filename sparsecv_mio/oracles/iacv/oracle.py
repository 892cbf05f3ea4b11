"""Iterative approximate cross-validation as an oracle: predictions for rows that were left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import Guarantee, Guess
from sparsecv_mio.oracles.iacv.erm import Erm
from sparsecv_mio.oracles.iacv.trajectory import Solver, iacv_step, start


@dataclass(frozen=True, eq=False)
class IacvOracle:
    """Linear predictors of left-out rows after a number of steps, approximated.

    Parameters
    ----------
    erm : Erm
        Problem whose `labels` are None: single rows are left out by its own fits.
    solver : Solver
        Method.
    iterations : int
        Steps.

    Raises
    ------
    BadInput
        The problem has folds of its own, or the method does not suit it.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.oracles.iacv import Ridge, Squared, gd
    >>> erm = Erm(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 4.0]), Squared(), Ridge(), 0.0)
    >>> oracle = IacvOracle(erm, gd(0.03), 400)
    >>> oracle.leave_out(np.array([2])).value.round(9).tolist()
    [3.0]
    >>> oracle.leave_out(np.array([0, 1])).value.round(9).tolist()
    [1.333333333, 2.666666667]
    """

    guarantee: ClassVar[Guarantee] = Guarantee.ESTIMATE  # it may order a search, not prune it

    erm: Erm
    solver: Solver
    iterations: int

    def __post_init__(self) -> None:
        if self.erm.labels is not None:
            raise BadInput("an oracle leaves out the rows named in each call: give a problem without labels")
        self.solver.check(self.erm)

    @cached_property
    def _single(self) -> FloatArray:
        return np.einsum("ij,ij->i", self.erm.X, self._follow(self.erm))

    def leave_out(self, rows: IntArray) -> Guess:
        """Predictors `x_i' theta` of rows (m,) by the fit without them.

        O(T (n p^2)) for the first single row, then O(1) each; O(T (n p + p^2)) for each group of rows.
        """
        if rows.size == 1:
            return Guess(self._single[rows])
        labels = np.full(self.erm.n, -1, dtype=np.int64)
        labels[rows] = 0
        return Guess(self.erm.X[rows] @ self._follow(replace(self.erm, labels=labels))[0])

    def _follow(self, erm: Erm) -> FloatArray:
        state = start(erm)
        for _ in range(self.iterations):
            state = iacv_step(erm, self.solver, state)
        return state.approx

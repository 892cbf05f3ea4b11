"""The pairs (gamma, tau) of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.restrictions import NONE, Restrictions
from sparsecv_mio.units import GAMMA_RANGE


@dataclass(frozen=True, eq=False)
class Grid:
    """The pairs (gamma, tau) that are asked for: both ascending, without repeats."""

    gammas: FloatArray
    taus: IntArray

    @classmethod
    def of(cls, gammas: Sequence[float], taus: Sequence[int], p: int, restrictions: Restrictions = NONE) -> Grid:
        """Check and freeze the grid.

        Parameters
        ----------
        gammas : sequence of float
        taus : sequence of int
        p : int
            Number of features of the data.
        restrictions : Restrictions, optional
            By the names of the data.

        Raises
        ------
        BadInput
            For an empty grid, a gamma outside 1e-300 .. 1e300, or a tau that is no whole number in 0 .. p or that no
            model within the restrictions has.
        """
        if len(gammas) == 0 or len(taus) == 0:
            raise BadInput("the grid is empty: give at least one gamma and one tau")
        for gamma in gammas:
            if not GAMMA_RANGE[0] <= gamma <= GAMMA_RANGE[1]:
                raise BadInput(f"gamma {gamma:g} is out of range: it must be positive and finite (1e-300 to 1e300)")
        for tau in taus:
            if not 0 <= tau <= p or tau != int(tau):
                raise BadInput(f"tau {tau} is out of range: use 0 to {p}, the number of features")
        restrictions.check_sizes(taus, p)
        unique = sorted(set(float(g) for g in gammas)), sorted(set(int(t) for t in taus))
        return cls(np.array(unique[0]), np.array(unique[1], dtype=np.int64))

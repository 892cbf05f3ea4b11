"""The relaxation of all columns: solved to the end where these are many, as all else is done on those it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.backends.native.cell import MANY
from sparsecv_mio.formulation.backends.native.cluster_relaxation import ClusterRelaxation
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.kernels.cluster_relaxation import NO_CLUSTER, Box
from sparsecv_mio.kernels.forms import Node, Stop
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.screening import screen

NEAR, STEPS = 0.1, 300  # accuracy, of what is left to the bar, and steps of a root
NEAR_OF_MANY, STEPS_OF_MANY = 1e-4, 5_000  # the same of many columns, steps of a round


@dataclass(frozen=True, eq=False)
class Root:
    """A point of the relaxation of all columns with its dual value, rounding not yet taken off.

    Attributes
    ----------
    dual : float
    b, h : (m,) arrays
        The point and what each column adds to its dual value, in the columns of the normal form.
    """

    dual: float
    b: FloatArray
    h: FloatArray

    def status(self, size: int, bar: float) -> NDArray[np.int8]:
        """(m,) what supports of `size` columns with f at most `bar` have in common: FREE, INSIDE or DROPPED."""
        m = len(self.b)
        status = np.zeros(m, dtype=np.int8)
        if self.dual < bar:
            screen(self.h, m, np.arange(m), size, bar - self.dual, status)
        return status


def solve_root(
    form: NormalForm, size: int, bar: float, start: FloatArray, expired: Callable[[], bool], box: Box | None = None
) -> Root:
    """Solve the relaxation of a size until it passes `bar`, or well enough to branch.

    Parameters
    ----------
    form : NormalForm
        A curved one.
    size : int
        0 < size < m.
    bar : float
        Supports above it are of no interest.
    start : (m,) array
        A point to start from: zero, or the solution of a neighbouring size.
    expired : callable
        True ends it with the best dual value so far.
    box : Box, optional
        Assumed ends of the coefficients.
    """
    m = form.m
    if m > MANY or box is not None:
        everywhere, stop = np.full(m, NO_CLUSTER, dtype=np.int64), Stop(bar, NEAR_OF_MANY, STEPS_OF_MANY)
        found = ClusterRelaxation(form, size, box).solve(everywhere, 0, start, stop, expired)
        return Root(found.dual, found.b, found.h)
    free = np.arange(m)
    b, g, best_b, best_g = start.copy(), np.zeros(m), np.zeros(m), np.zeros(m)
    dual, _, _ = relax(form.quadratic, Node(free, 0, free, m, size), Stop(bar, NEAR, STEPS), b, g, best_b, best_g)
    return Root(float(dual), best_b, best_g**2)

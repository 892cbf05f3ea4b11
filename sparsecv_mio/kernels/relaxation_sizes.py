"""The perspective relaxation of every size of one problem, each warm from the one before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import put
from sparsecv_mio.kernels.forms import Node, Stop
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.perspective_newton import NONE


class Solved(NamedTuple):
    """Relaxations of T sizes.

    Attributes
    ----------
    points, slopes : (T, q) arrays
        b and `g = c - G b` of the best dual value.
    dual, primal : (T,) arrays
        That value and the smallest primal one seen.
    steps : (T,) int array
    """

    points: np.ndarray
    slopes: np.ndarray
    dual: np.ndarray
    primal: np.ndarray
    steps: np.ndarray


@njit(cache=True, nogil=True)
def relax_sizes(form, sizes, accuracy, max_steps, start, solved):
    """Solve each size to `primal - dual <= accuracy * primal`.

    Parameters
    ----------
    form : Form
    sizes : int array
        In 1..q-1; rising sizes start best from each other.
    accuracy : float
    max_steps : int
    start : (q,) array
        Start of the first size; overwritten.
    solved : Solved
        Filled.

    Notes
    -----
    The stopping test of `relax` is relative to a bar; one far above turns it into an absolute one.
    """
    points, slopes, dual, primal, steps = solved
    yy = form.yy
    q = form.c.shape[0]
    free = np.arange(q)
    g = np.empty(q)
    far = 1e6 * max(yy, 1e-300)
    for a in range(sizes.shape[0]):
        # the value is not known beforehand: the last one bounds how small it can be to within the accuracy wanted
        goal = accuracy * 0.5 * dual[a - 1] if a > 0 else 1e-3 * accuracy * yy
        d = -np.inf
        p = np.inf
        done = 0
        while done < max_steps:
            node, stop = Node(free, NONE, free, q, sizes[a]), Stop(far, goal / far, max_steps - done)
            d_new, p_new, s = relax(form, node, stop, start, g, points[a], slopes[a])
            d = max(d, d_new)
            p = min(p, p_new)
            done += max(s, 1)
            put(points[a], start)
            if p - d <= accuracy * p or goal <= 1e-13 * yy:
                break
            goal = max(0.5 * accuracy * max(d, 0.0), 1e-13 * yy)
        dual[a] = d
        primal[a] = p
        steps[a] = done

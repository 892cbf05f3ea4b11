"""Every support of a size whose objective is below a bar: the path tree with the bar held still."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.kernels import path_tree
from sparsecv_mio.kernels.elimination import new_levels
from sparsecv_mio.kernels.kept import Margin

Masks = list[BoolArray]

PATH_SLICE = 20_000  # nodes between two checks of the clock


def supports_below(
    form: NormalForm,
    solved: tuple[FloatArray, FloatArray, float],
    bars: FloatArray,
    budget: int,
    most: int,
    expired: Callable[[], bool],
) -> tuple[dict[int, Masks] | None, int]:
    """List every support with f at most `bars[size]`, by size.

    Parameters
    ----------
    form : NormalForm
        A trusted one.
    solved : tuple
        `form.solved()`: V, beta and f of all columns.
    bars : (m + 1,) array
        By size; -inf where nothing is asked. The tree's own rounding is the caller's: see `NormalForm.keep`, `slack`.
    budget : int
        Most nodes.
    most : int
        Most supports of all sizes together.
    expired : callable

    Returns
    -------
    found : dict of int to masks, or None
        None when the budget, the list or the time is too small.
    nodes : int
    """
    V, beta, value = solved
    m = form.m
    sizes = np.flatnonzero(bars > -np.inf)
    found: dict[int, Masks] = {}
    if 0 in sizes:
        found[0] = [np.zeros(m, dtype=bool)]
    if m in sizes:
        found[m] = [np.ones(m, dtype=bool)]
    sizes = sizes[(sizes > 0) & (sizes < m)]
    if len(sizes) == 0:
        return found, 0
    margin = Margin(0.0, 0.0)
    root = new_levels(V, beta, value, int(sizes[0]), int(sizes[-1]))
    state = path_tree.new_state(root, np.full(m + 1, -np.inf), margin, most)
    state.set_bars(sizes, -np.inf, bars[sizes])
    done = False
    while not done and budget > state.ctrl[path_tree.NODES] and not expired():
        step = min(PATH_SLICE, budget - int(state.ctrl[path_tree.NODES]))
        done = path_tree.run(state, form.copies, form.w, margin, step)
        if state.ctrl[path_tree.OVERFLOW]:
            done = False
            break
    spent = int(state.ctrl[path_tree.NODES])
    if not done:
        return None, spent
    for a in range(int(state.ctrl[path_tree.KEPT])):
        found.setdefault(int(state.kept.row[a]), []).append(state.kept.mask[a])
    return found, spent

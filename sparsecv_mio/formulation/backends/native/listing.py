"""Every support of a size whose objective is below a bar: the path tree with bars that only its caller moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.kernels import path_tree
from sparsecv_mio.kernels.elimination import new_levels
from sparsecv_mio.kernels.kept import Margin

Masks = list[BoolArray]

PATH_SLICE = 20_000  # nodes between two checks of the clock
NO_MARGIN = Margin(0.0, 0.0)


class Found(NamedTuple):
    """Supports as the path tree meets them.

    Attributes
    ----------
    masks : (L, m) bool array
        In the columns of the normal form.
    sizes : (L,) int array
    values : (L,) array
        Their objectives, rounded as the tree rounds: see `NormalForm.keep`, `slack`.
    """

    masks: BoolArray
    sizes: IntArray
    values: FloatArray


class PathListing:
    """A path tree that hands out every support with f at most the bar of its size, a few thousand nodes at a time.

    Parameters
    ----------
    form : NormalForm
        A trusted one.
    solved : tuple
        `form.solved()`: V, beta and f of all columns.
    bars : (m + 1,) array
        By size; -inf where nothing is asked.

    Attributes
    ----------
    bars : (m + 1,) array
    finished : bool
        Whether every support at or below the bars was handed out.
    """

    def __init__(
        self, form: NormalForm, solved: tuple[FloatArray, FloatArray, float], bars: FloatArray
    ) -> None:
        V, beta, value = solved
        m = form.m
        self.bars = bars.copy()
        self._form, self._ends = form, [size for size in sorted({0, m}) if bars[size] > -np.inf]
        self._end_values = {0: form.yy, m: value}
        inside = np.flatnonzero(bars[1:m] > -np.inf) + 1
        self._state: path_tree.PathState | None = None
        if len(inside):
            root = new_levels(V, beta, value, int(inside[0]), int(inside[-1]))
            self._state = path_tree.new_state(root, np.full(m + 1, -np.inf), NO_MARGIN, PATH_SLICE)
            self._state.set_bars(inside, -np.inf, bars[inside])
        self.finished = self._state is None and not self._ends

    @property
    def nodes(self) -> int:
        """Nodes so far."""
        return 0 if self._state is None else int(self._state.ctrl[path_tree.NODES])

    def lower_bars(self, bars: FloatArray) -> None:
        """Take over bars where they are below those so far.

        Parameters
        ----------
        bars : (m + 1,) array
        """
        self.bars = np.minimum(self.bars, bars)
        if self._state is not None:
            inside = np.flatnonzero(self._state.bar > -np.inf)
            self._state.set_bars(inside, -np.inf, self.bars[inside])

    def advance(self, nodes: int = PATH_SLICE) -> Found:
        """Work on at most so many nodes, and return what they held; no column and all are supports whatever their f.

        Parameters
        ----------
        nodes : int
            At most `PATH_SLICE`, each of which holds one support or none.
        """
        m = len(self.bars) - 1
        first, self._ends = np.array(self._ends, dtype=np.int64), []
        values = np.array([self._end_values[size] for size in first.tolist()])
        ends = Found(np.arange(m) < first[:, None], first, values)
        state = self._state
        if state is None or self.finished:
            self.finished = True
            return ends
        state.ctrl[path_tree.KEPT] = 0
        self.finished = bool(path_tree.run(state, self._form.copies, self._form.w, NO_MARGIN, min(nodes, PATH_SLICE)))
        kept = slice(0, int(state.ctrl[path_tree.KEPT]))
        return Found(
            np.concatenate((ends.masks, state.kept.mask[kept])), np.concatenate((ends.sizes, state.kept.row[kept])),
            np.concatenate((ends.values, state.kept.value[kept])),
        )  # fmt: skip

    def open_bounds(self) -> FloatArray:
        """(m + 1,): no support that was not handed out yet has an f below these, by size; inf where all were."""
        bounds = np.full(len(self.bars), np.inf)
        for size in self._ends:
            bounds[size] = self._end_values[size]
        if self._state is not None and not self.finished:
            path_tree.open_bounds(self._state, bounds)
        return np.asarray(np.where(self.bars > -np.inf, bounds, np.inf))


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
    listing = PathListing(form, solved, bars)
    found: dict[int, Masks] = {}
    listed = 0
    while True:
        masks, sizes, _ = listing.advance(min(PATH_SLICE, max(budget - listing.nodes, 0)))
        listed += len(masks)
        for mask, size in zip(masks, sizes.tolist(), strict=True):
            found.setdefault(size, []).append(mask)
        if listing.finished:
            return found, listing.nodes
        if listed > most or listing.nodes >= budget or expired():
            return None, listing.nodes

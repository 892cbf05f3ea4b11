"""Every support of some sizes with f at most a bar, handed out as they are found: the path tree, then perspectives.

The path tree serves all sizes at once and is at its best on few columns and small penalties; a perspective tree, one a
size, scans the last levels of its nodes and so meets thousands of supports at a node. Which is faster is not known
beforehand: the path tree gets `PATH_NODES`, then every size that it left open a tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import comb

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.backends.native.cell import SMALL
from sparsecv_mio.formulation.backends.native.listing import PATH_SLICE, Found, PathListing
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.formulation.backends.native.perspective import PerspectiveTree
from sparsecv_mio.formulation.backends.native.root import solve_root
from sparsecv_mio.kernels import curvature, perspective_tree
from sparsecv_mio.kernels.curvature import SHARP_COLUMNS, SHARPNESS

FIRST_SHARE, SHARP_STEPS = 0.9, 15  # of a valid diagonal to start from, and Newton steps to a sharper one
TRACE_ROOM = 1e-6  # of a trace that rounding may have left below the largest eigenvalue
PATH_NODES = 2_000_000  # of the path tree, where perspectives can take over
NODE_WORTH = 16  # path nodes worth one perspective node
SLICE = 16  # perspective nodes between two deliveries
LEAST_ROOM, MOST_ROOM = 1 << 14, 1 << 20  # supports that one delivery may hold


def sharpened(form: NormalForm) -> NormalForm:
    """Return the form with a larger diagonal taken out, where that is worth some factorisations; else itself.

    Lists are longer than searches: on diabetes64, tau 10, a list within 1% takes 0.5 to 0.9 of the nodes.
    """
    if not form.curved or not SMALL < form.m <= SHARP_COLUMNS:
        return form
    M = form.matrix()
    unit = 1.0 / np.sqrt(np.diag(M))
    w = FIRST_SHARE * unit**2
    if curvature.sharpen(M * unit[:, None] * unit, w, SHARPNESS, SHARP_STEPS) < 0:
        return form
    scale = unit / np.sqrt(w)
    G = np.ascontiguousarray(M * scale[:, None] * scale)
    G.flat[:: form.m + 1] -= 1.0
    largest = min(form.largest * float(np.max(scale**2)) + float(np.max(scale**2)), float(np.trace(G)) + TRACE_ROOM)
    condition = 50.0 * float(np.finfo(float).eps) * (largest + 1.0)
    return replace(
        form, G=G, c=form.c * scale, scale=form.scale * scale, largest=largest, keep=max(form.keep, condition),
        slack=form.slack * max(condition / form.keep, 1.0),
    )


class SupportsBelow:
    """A source of supports that ends when every one at or below the bars was handed out; some may come twice.

    Parameters
    ----------
    form : NormalForm
        A trusted one. Of supports that differ by copies of columns alone all are met.
    bars : (m + 1,) array
        Objectives by size; -inf where nothing is asked. Rounding is seen to here.
    expired : callable
        True ends the relaxation of a root early.

    Attributes
    ----------
    bars : (m + 1,) array
        They may be lowered by `lower_bars`.
    """

    def __init__(self, form: NormalForm, bars: FloatArray, expired: Callable[[], bool]) -> None:
        alone = np.full(form.m, -1, dtype=np.int64)
        self.form, self.expired = replace(sharpened(form), copy_prev=alone, copy_next=alone), expired
        self.bars = bars.copy()
        self.finished = False
        self._path_nodes = PATH_NODES if form.m <= SMALL else 0
        if not form.curved:
            self._path_nodes = -1  # no end
        self._path: PathListing | None = None
        if self._path_nodes or np.isfinite(bars[0]) or np.isfinite(bars[form.m]):
            self._path = PathListing(self.form, form.solved(), self._raised(self._path_bars()))
        self._tree: PerspectiveTree | None = None
        self._left = self._inside() if not self._path_nodes else []
        self._spent = 0
        self._known = np.zeros(form.m + 1)  # open bounds of a path tree that was given up

    def _inside(self) -> list[int]:
        return [size for size in np.flatnonzero(self.bars > -np.inf).tolist() if 0 < size < self.form.m]

    def _path_bars(self) -> FloatArray:
        bars = self.bars.copy()
        if not self._path_nodes:
            bars[1 : self.form.m] = -np.inf
        return bars

    def _raised(self, bars: FloatArray) -> FloatArray:
        """Return bars raised by what the rounding of a tree may hide."""
        return np.asarray(np.where(bars > -np.inf, bars * (1.0 + self.form.keep) + self.form.slack, -np.inf))

    @property
    def effort(self) -> int:
        """Nodes of path trees, and those of perspective trees times what one is worth."""
        path = 0 if self._path is None else self._path.nodes
        return path + NODE_WORTH * (self.nodes - path)

    @property
    def nodes(self) -> int:
        """Nodes of all trees so far."""
        path = 0 if self._path is None else self._path.nodes
        return self._spent + path + (0 if self._tree is None else self._tree.nodes)

    def lower_bars(self, bars: FloatArray) -> None:
        """Take over bars where they are below those so far.

        Parameters
        ----------
        bars : (m + 1,) array
        """
        self.bars = np.minimum(self.bars, bars)
        if self._path is not None:
            self._path.lower_bars(self._raised(self.bars))
        if self._tree is not None:
            self._tree.pool.best[1] = self._raised(self.bars)[self._tree.size]

    def advance(self, nodes: int = PATH_SLICE) -> Found:
        """Work for some milliseconds, on so many nodes of a path tree at most, and return what was found."""
        if self._path is not None and not self._path.finished:
            found = self._path.advance(nodes)
            if self._path.finished:
                self.finished = not self._left
            elif 0 <= self._path_nodes <= self._path.nodes:
                self._left, self._known = self._inside(), self._path.open_bounds()
                self._spent, self._path = self._spent + self._path.nodes, None
            return found
        if self._tree is None:
            self._tree = self._rooted(self._left[0]) if self._left else None
        found = self._from_tree()
        self.finished = self._tree is None and not self._left
        return found

    def _rooted(self, size: int) -> PerspectiveTree:
        bar = float(self._raised(self.bars)[size])
        origin = np.zeros(self.form.m)
        root = solve_root(self.form, size, bar, origin, self.expired)
        room = min(max(comb(self.form.m, min(size, 3)), LEAST_ROOM), MOST_ROOM)
        return PerspectiveTree(self.form, size, bar, np.zeros(self.form.m, dtype=np.bool_), root, (bar, room))

    def _from_tree(self) -> Found:
        tree, m = self._tree, self.form.m
        if tree is None:
            return Found(np.zeros((0, m), dtype=np.bool_), np.zeros(0, dtype=np.int64), np.zeros(0))
        tree.pool.ctrl[perspective_tree.KEPT] = 0
        tree.advance(SLICE, self.expired)
        kept = slice(0, int(tree.pool.ctrl[perspective_tree.KEPT]))
        masks = np.zeros((kept.stop, m), dtype=np.bool_)
        masks[:, tree.columns] = tree.pool.kept.mask[kept]
        found = Found(masks, np.full(kept.stop, tree.size, dtype=np.int64), tree.pool.kept.value[kept].copy())
        if tree.overflow:  # more than a slice can hold: the path tree hands out one a node
            self._spent, self._tree = self._spent + tree.nodes, None
            self._path_nodes = -1
            bars = np.full(m + 1, -np.inf)
            bars[self._left] = self.bars[self._left]
            self._path, self._left = PathListing(self.form, self.form.solved(), self._raised(bars)), []
        elif tree.finished:
            self._spent, self._tree = self._spent + tree.nodes, None
            self._left = self._left[1:]
        return found

    def open_bounds(self) -> FloatArray:
        """(m + 1,): no support that was not handed out yet has an f below these, by size; inf where all were."""
        bounds = np.full(len(self.bars), np.inf)
        if self.finished:
            return bounds
        bounds[self._left] = self._known[self._left]
        if self._path is not None and not self._path.finished:
            bounds = np.minimum(bounds, self._path.open_bounds())
        if self._tree is not None:
            tree = self._tree
            bound = float(tree.pool.bound[0]) if tree.pool.ctrl[perspective_tree.OPEN] else np.inf
            bounds[tree.size] = max(bound, bounds[tree.size])
        return np.asarray(np.maximum((bounds - self.form.slack) / (1.0 + self.form.keep), 0.0))

"""Trees of single sizes by the perspective relaxation, and every support with f at most a bar.

Every support of some sizes with f at most a bar, handed out as they are found: the path tree, then perspectives.

The path tree serves all sizes at once and is at its best on few columns and small penalties; a perspective tree, one a
size, scans the last levels of its nodes and so meets thousands of supports at a node. Which is faster is not known
beforehand: the path tree gets `LISTED_PATH_NODES`, then every size that it left open a tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import node_pool, path_tree, perspective_tree, reduced_forms
from sparsecv_mio.kernels.nodes import DROPPED, Copies, Margin
from sparsecv_mio.kernels.path_tree import new_levels
from sparsecv_mio.kernels.reduced_forms import SHARP_COLUMNS, SHARPNESS
from sparsecv_mio.thresholds import MANY, PATH_TREE_COLUMNS, SMALL
from sparsecv_mio.trees.normal_form import SHARP_STEPS, NormalForm, Root, solve_root
from sparsecv_mio.trees.subsets import FIRST_NODES

if TYPE_CHECKING:
    from sparsecv_mio.trees.blocks import BlockNodes, BlockPart

Masks = list[BoolArray]

PATH_SLICE = 20_000  # nodes between two checks of the clock
NO_MARGIN = Margin(0.0, 0.0)


class MetSupports(NamedTuple):
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


BLOCKS_LEAVE = 0.95  # of the gap of a node, at most, where they take over: their nodes cost up to twice as much


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

    def __init__(self, form: NormalForm, solved: tuple[FloatArray, FloatArray, float], bars: FloatArray) -> None:
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

    def advance(self, nodes: int = PATH_SLICE) -> MetSupports:
        """Work on at most so many nodes, and return what they held; no column and all are supports whatever their f.

        Parameters
        ----------
        nodes : int
            At most `PATH_SLICE`, each of which holds one support or none.
        """
        m = len(self.bars) - 1
        first, self._ends = np.array(self._ends, dtype=np.int64), []
        values = np.array([self._end_values[size] for size in first.tolist()])
        ends = MetSupports(np.arange(m) < first[:, None], first, values)
        state = self._state
        if state is None or self.finished:
            self.finished = True
            return ends
        state.ctrl[path_tree.KEPT] = 0
        self.finished = bool(path_tree.run(state, self._form.copies, self._form.w, NO_MARGIN, min(nodes, PATH_SLICE)))
        places = slice(0, int(state.ctrl[path_tree.KEPT]))
        return MetSupports(
            np.concatenate((ends.masks, state.kept.mask[places])), np.concatenate((ends.sizes, state.kept.row[places])),
            np.concatenate((ends.values, state.kept.value[places])),
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
    masks_by_size: dict[int, Masks] = {}
    listed = 0
    while True:
        masks, sizes, _ = listing.advance(min(PATH_SLICE, max(budget - listing.nodes, 0)))
        listed += len(masks)
        for mask, size in zip(masks, sizes.tolist(), strict=True):
            masks_by_size.setdefault(size, []).append(mask)
        if listing.finished:
            return masks_by_size, listing.nodes
        if listed > most or listing.nodes >= budget or expired():
            return None, listing.nodes


SLICE_COLUMNS = 10_000  # columns of the nodes between two checks of the clock, together
ROOM_AT_FIRST = 256  # supports within the bar that there is room for, unless more are asked for
WHOLE = 0.7  # share of the columns from which on a tree keeps them all

Candidates = list[tuple[BoolArray, float]]


class PerspectiveTree:
    """A perspective tree on the columns that survive the root's screening.

    With `held = (bar, room)` the bar stands still, whatever the tree finds, and there is room for so many supports.
    """

    def __init__(
        self, form: NormalForm, size: int, upper: float, support: BoolArray, root: Root,
        held: tuple[float, int] | None = None,
    ) -> None:  # fmt: skip
        self.form, self.size = form, size
        m = form.m
        if held is not None:
            upper = -np.inf
        self.bar, room = held or (form.raised(upper), ROOM_AT_FIRST)
        status = root.status(size, self.bar)
        self.columns = np.flatnonzero(status != DROPPED)
        if len(self.columns) > WHOLE * m:
            self.columns = np.arange(m)
        place = slice(None) if len(self.columns) == m else np.ix_(self.columns, self.columns)
        self.part = form.quadratic._replace(
            G=np.ascontiguousarray(form.G[place]), c=np.ascontiguousarray(form.c[self.columns])
        )
        prev = np.full(m + 1, -1, dtype=np.int64)
        prev[self.columns] = np.arange(len(self.columns))
        self.copies = Copies(prev[form.copy_prev[self.columns]], prev[form.copy_next[self.columns]])
        self.pool = node_pool.new_pool(
            status[self.columns], upper, self.bar, np.asarray(support[self.columns], dtype=np.bool_),
            keep_capacity=room,
        )  # fmt: skip
        self.pool.bound[0] = root.dual
        if m > MANY:
            self.pool.point[0] = root.b[self.columns]
        self.finished = False
        self._in_blocks: BlockNodes | None = None
        self._blocks_tried = not SMALL < m <= PATH_TREE_COLUMNS

    def advance(self, nodes: int, expired: Callable[[], bool]) -> bool:
        """Run for some nodes; True when the tree is finished."""
        goal = self.nodes + nodes
        slice_nodes = max(SLICE_COLUMNS // max(len(self.columns), 1), 1)
        while not self.finished and self.nodes < goal and not expired() and not self.overflow:
            step = min(goal - self.nodes, slice_nodes)
            if not self._blocks_tried:
                if self.nodes >= FIRST_NODES:
                    self._try_blocks()
                else:
                    step = min(step, FIRST_NODES - self.nodes)
            if self._in_blocks is None:
                code = perspective_tree.run(self.pool, self.part, self.size, self.copies, self.form.margin, step)
            else:
                code = self._in_blocks.run(self.pool, self.part, self.copies, self.form.margin, step)
            if code == node_pool.FULL:
                self.pool = node_pool.grown(self.pool)
            self.finished = code == node_pool.FINISHED
        return self.finished

    def _try_blocks(self) -> None:
        """Bound nodes by blocks of columns from now on, if that leaves much less of the gap of the open node."""
        self._blocks_tried = True
        if self.pool.ctrl[node_pool.OPEN] == 0:
            return
        from sparsecv_mio.trees.blocks import BlockNodes  # most trees end before

        block_part = _block_part(self.form)
        nodes = None if block_part is None else BlockNodes.of(block_part, self.columns, self.form.yy, self.size)
        if nodes is not None and nodes.left(self.pool, self.part) <= BLOCKS_LEAVE:
            self._in_blocks = nodes

    def improve(self, upper: float, support: BoolArray) -> None:
        """Take over a better incumbent."""
        if upper < self.upper:
            self.pool.best[:] = upper, self.form.raised(upper)
            self.pool.best_mask[:] = support[self.columns]

    @property
    def nodes(self) -> int:
        """Nodes so far."""
        return int(self.pool.ctrl[node_pool.NODES])

    @property
    def nbytes(self) -> int:
        """Bytes that it takes to go on later: open nodes, and the matrices that bound them."""
        arrays = [self.form.G, self.part.G, self.pool.status, self.pool.point]
        arrays += [] if self._in_blocks is None else [*self._in_blocks.blocks[:7], *self._in_blocks.mixtures]
        return sum(array.nbytes for array in arrays)

    @property
    def reused(self) -> int:
        """Nodes that their parent's dual point closed, without a relaxation of their own."""
        return int(self.pool.ctrl[node_pool.REUSED])

    @property
    def upper(self) -> float:
        """Value of the incumbent."""
        return float(self.pool.best[0])

    @property
    def lower(self) -> float:
        """Smallest bound of an open node."""
        return self.upper if self.pool.ctrl[node_pool.OPEN] == 0 else float(self.pool.bound[0])

    @property
    def overflow(self) -> bool:
        """Whether a support within the bar was not kept."""
        return bool(self.pool.ctrl[node_pool.OVERFLOW])

    def _mask(self, part: BoolArray) -> BoolArray:
        mask = np.zeros(self.form.m, dtype=np.bool_)
        mask[self.columns] = part
        return mask

    def incumbent(self) -> BoolArray:
        """Mask of the incumbent in the columns of the normal form."""
        return self._mask(self.pool.best_mask)

    def candidates(self) -> Candidates:
        """Every support kept within the bar, with its value."""
        count = int(self.pool.ctrl[node_pool.KEPT])
        mask, _, value = self.pool.kept
        rows = [r for r in range(count) if value[r] <= self.pool.best[1]]
        return [(self._mask(mask[r]), float(value[r])) for r in rows]


def _block_part(form: NormalForm) -> BlockPart | None:
    """Block-diagonal part of M; None where columns are hardly correlated or all but dependent."""
    from sparsecv_mio.trees.blocks import ChosenBlocks, block_part, chosen_blocks, tied

    M = form.matrix()
    if "blocks" not in form.kept:
        form.kept["blocks"] = chosen_blocks(M, form.scale) if tied(M) else None
    chosen: ChosenBlocks | None = form.kept["blocks"]
    return None if chosen is None else block_part(M, chosen, form.scale)


FIRST_SHARE = 0.9  # of a valid diagonal, to sharpen it from
TRACE_ROOM = 1e-6  # of a trace that rounding may have left below the largest eigenvalue
LISTED_PATH_NODES = 2_000_000  # of the path tree, where perspectives can take over
NODE_RATIO = 16  # path nodes worth one perspective node
DELIVERY_NODES = 16  # perspective nodes between two deliveries
LEAST_ROOM, MOST_ROOM = 1 << 14, 1 << 20  # supports that one delivery may hold


def sharpened(form: NormalForm) -> NormalForm:
    """Return the form with a larger diagonal taken out, where that is worth some factorisations; else itself.

    Lists are longer than searches: on diabetes64, tau 10, a list within 1% takes 0.5 to 0.9 of the nodes.
    """
    if not form.curved or not SMALL < form.m <= SHARP_COLUMNS:
        return form
    return with_diagonal(form, np.full(form.m, FIRST_SHARE), SHARP_STEPS) or form


def with_diagonal(form: NormalForm, start: FloatArray, steps: int = 0) -> NormalForm | None:
    """Return a curved form with another diagonal taken out; None where a factorisation does not certify it. O(m^3).

    Parameters
    ----------
    form : NormalForm
    start : (m,) array
        In its units.
    steps : int
        Of Newton's method, to a sharper one.
    """
    M = form.matrix()
    if not np.all(np.diag(M) > 0.0):
        return None
    unit = 1.0 / np.sqrt(np.diag(M))
    w = start * unit**2
    if reduced_forms.sharpen(M * unit[:, None] * unit, w, SHARPNESS, steps) < 0:
        return None
    scale = unit / np.sqrt(w)
    G = np.ascontiguousarray(M * scale[:, None] * scale)
    G.flat[:: form.m + 1] -= 1.0
    largest = min(form.largest * float(np.max(scale**2)) + float(np.max(scale**2)), float(np.trace(G)) + TRACE_ROOM)
    condition = 50.0 * float(np.finfo(float).eps) * (largest + 1.0)
    return replace(
        form,
        G=G,
        c=form.c * scale,
        scale=form.scale * scale,
        largest=largest,
        keep=max(form.keep, condition),
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
        self._path_nodes = LISTED_PATH_NODES if form.m <= SMALL else 0
        if not form.curved:
            self._path_nodes = -1  # no end
        self._path: PathListing | None = None
        if self._path_nodes or np.isfinite(bars[0]) or np.isfinite(bars[form.m]):
            self._path = PathListing(self.form, form.solved(), self.form.raised(self._path_bars()))
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

    @property
    def effort(self) -> int:
        """Nodes of path trees, and those of perspective trees times what one is worth."""
        path = 0 if self._path is None else self._path.nodes
        return path + NODE_RATIO * (self.nodes - path)

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
            self._path.lower_bars(self.form.raised(self.bars))
        if self._tree is not None:
            self._tree.pool.best[1] = self.form.raised(self.bars)[self._tree.size]

    def advance(self, nodes: int = PATH_SLICE) -> MetSupports:
        """Work for some milliseconds, on so many nodes of a path tree at most, and return what was found."""
        if self._path is not None and not self._path.finished:
            supports = self._path.advance(nodes)
            if self._path.finished:
                self.finished = not self._left
            elif 0 <= self._path_nodes <= self._path.nodes:
                self._left, self._known = self._inside(), self._path.open_bounds()
                self._spent, self._path = self._spent + self._path.nodes, None
            return supports
        if self._tree is None:
            self._tree = self._rooted(self._left[0]) if self._left else None
        supports = self._from_tree()
        self.finished = self._tree is None and not self._left
        return supports

    def _rooted(self, size: int) -> PerspectiveTree:
        bar = float(self.form.raised(self.bars)[size])
        origin = np.zeros(self.form.m)
        root = solve_root(self.form, size, bar, origin, self.expired)
        room = min(max(comb(self.form.m, min(size, 3)), LEAST_ROOM), MOST_ROOM)
        return PerspectiveTree(self.form, size, bar, np.zeros(self.form.m, dtype=np.bool_), root, (bar, room))

    def _from_tree(self) -> MetSupports:
        tree, m = self._tree, self.form.m
        if tree is None:
            return MetSupports(np.zeros((0, m), dtype=np.bool_), np.zeros(0, dtype=np.int64), np.zeros(0))
        tree.pool.ctrl[node_pool.KEPT] = 0
        tree.advance(DELIVERY_NODES, self.expired)
        places = slice(0, int(tree.pool.ctrl[node_pool.KEPT]))
        masks = np.zeros((places.stop, m), dtype=np.bool_)
        masks[:, tree.columns] = tree.pool.kept.mask[places]
        supports = MetSupports(
            masks, np.full(places.stop, tree.size, dtype=np.int64), tree.pool.kept.value[places].copy()
        )
        if tree.overflow:  # more than a slice can hold: the path tree hands out one a node
            self._spent, self._tree = self._spent + tree.nodes, None
            self._path_nodes = -1
            bars = np.full(m + 1, -np.inf)
            bars[self._left] = self.bars[self._left]
            self._path, self._left = PathListing(self.form, self.form.solved(), self.form.raised(bars)), []
        elif tree.finished:
            self._spent, self._tree = self._spent + tree.nodes, None
            self._left = self._left[1:]
        return supports

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
            bound = float(tree.pool.bound[0]) if tree.pool.ctrl[node_pool.OPEN] else np.inf
            bounds[tree.size] = max(bound, bounds[tree.size])
        return np.asarray(np.maximum((bounds - self.form.slack) / (1.0 + self.form.keep), 0.0))

"""List all supports with f at most a cutoff: by a path tree of all sizes, or by a perspective tree of one size.

The path tree lists all sizes at once and is fastest with few columns and small penalties. A perspective tree lists one
size, and finds thousands of supports at a node by scans of the last levels. It is not known in advance which kind of
tree is faster. The path tree therefore runs first, with at most `LISTED_PATH_NODES` nodes. Then every size that the
path tree has not finished gets a perspective tree. Supports are returned as soon as they are found.
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
from sparsecv_mio.units import ROUNDING

if TYPE_CHECKING:
    from sparsecv_mio.trees.blocks import BlockNodes, BlockPart

Masks = list[BoolArray]

PATH_SLICE = 20_000  # path-tree nodes between two checks of the clock
NO_MARGIN = Margin(0.0, 0.0)


class MetSupports(NamedTuple):
    """Supports found by a tree.

    Attributes
    ----------
    masks : (L, m) bool array
        Supports in the columns of the normal form.
    sizes : (L,) int array
        Numbers of columns.
    values : (L,) array
        Objectives with the rounding of the tree: see `NormalForm.keep` and `slack`.
    """

    masks: BoolArray
    sizes: IntArray
    values: FloatArray


# maximum share of the gap of a node that block bounds may leave to be used: their nodes cost up to twice as much
BLOCKS_LEAVE = 0.95


class PathListing:
    """A path tree that hands out every support with f at most the cutoff of its size, a few thousand nodes at a time.

    Parameters
    ----------
    form : NormalForm
        Trusted form.
    solved : tuple
        Result of `form.solve_all_columns()`: V, beta and f of all columns.
    bars : (m + 1,) array
        Cutoff for each size; -inf for sizes that are not requested.

    Attributes
    ----------
    bars : (m + 1,) array
        Present cutoffs.
    finished : bool
        True if every support at or below its cutoff was handed out.
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
        """Number of nodes so far."""
        return 0 if self._state is None else int(self._state.ctrl[path_tree.NODES])

    def lower_bars(self, bars: FloatArray) -> None:
        """Lower the cutoffs that exceed the given ones.

        Parameters
        ----------
        bars : (m + 1,) array
            Cutoff for each size.
        """
        self.bars = np.minimum(self.bars, bars)
        if self._state is not None:
            inside = np.flatnonzero(self._state.bar > -np.inf)
            self._state.set_bars(inside, -np.inf, self.bars[inside])

    def advance(self, nodes: int = PATH_SLICE) -> MetSupports:
        """Process some nodes and return the supports found; the null and the full model are returned whatever their f.

        Parameters
        ----------
        nodes : int
            Maximum number of nodes, at most `PATH_SLICE`; a node holds at most one support.
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
        self.finished = bool(
            path_tree.process_nodes(state, self._form.copies, self._form.w, NO_MARGIN, min(nodes, PATH_SLICE))
        )
        places = slice(0, int(state.ctrl[path_tree.KEPT]))
        return MetSupports(
            np.concatenate((ends.masks, state.kept.mask[places])), np.concatenate((ends.sizes, state.kept.row[places])),
            np.concatenate((ends.values, state.kept.value[places])),
        )  # fmt: skip

    def open_bounds(self) -> FloatArray:
        """Return (m + 1,) lower bounds on f of the supports not yet handed out, by size; inf if all were."""
        bounds = np.full(len(self.bars), np.inf)
        for size in self._ends:
            bounds[size] = self._end_values[size]
        if self._state is not None and not self.finished:
            path_tree.open_bounds(self._state, bounds)
        return np.asarray(np.where(self.bars > -np.inf, bounds, np.inf))


def list_supports_by_size(
    form: NormalForm,
    solved: tuple[FloatArray, FloatArray, float],
    bars: FloatArray,
    budget: int,
    most: int,
    is_expired: Callable[[], bool],
) -> tuple[dict[int, Masks] | None, int]:
    """Return every support with f at most `bars[size]`, by size.

    Parameters
    ----------
    form : NormalForm
        Trusted form.
    solved : tuple
        Result of `form.solve_all_columns()`: V, beta and f of all columns.
    bars : (m + 1,) array
        Cutoff for each size; -inf for sizes that are not requested. The caller allows for the rounding of the tree: see
        `NormalForm.keep` and `slack`.
    budget : int
        Maximum number of nodes.
    most : int
        Maximum number of supports of all sizes together.
    is_expired : callable
        Function that returns True when time is over.

    Returns
    -------
    found : dict of int to masks, or None
        Supports by size; None if the budget, the list or the time is too small.
    nodes : int
        Number of nodes.
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
        if listed > most or listing.nodes >= budget or is_expired():
            return None, listing.nodes


SLICE_COLUMNS = 10_000  # total number of columns of the nodes between two checks of the clock
ROOM_AT_FIRST = 256  # default capacity for supports within the cutoff
WHOLE = 0.7  # share of columns left by screening above which a tree keeps all columns

Candidates = list[tuple[BoolArray, float]]


class PerspectiveTree:
    """A perspective tree on the columns that survive the screening at the root.

    With `held = (bar, room)` the cutoff stays fixed, and the capacity is `room` supports.
    """

    def __init__(
        self, form: NormalForm, size: int, upper: float, support: BoolArray, root: Root,
        held: tuple[float, int] | None = None,
    ) -> None:  # fmt: skip
        self.form, self.size = form, size
        m = form.m
        if held is not None:
            upper = -np.inf
        self.bar, room = held or (form.raise_cutoff(upper), ROOM_AT_FIRST)
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

    def advance(self, nodes: int, is_expired: Callable[[], bool]) -> bool:
        """Process a number of nodes; return True when the tree is finished."""
        goal = self.nodes + nodes
        slice_nodes = max(SLICE_COLUMNS // max(len(self.columns), 1), 1)
        while not self.finished and self.nodes < goal and not is_expired() and not self.has_overflow:
            step = min(goal - self.nodes, slice_nodes)
            if not self._blocks_tried:
                if self.nodes >= FIRST_NODES:
                    self._try_blocks()
                else:
                    step = min(step, FIRST_NODES - self.nodes)
            if self._in_blocks is None:
                code = perspective_tree.process_nodes(
                    self.pool, self.part, self.size, self.copies, self.form.margin, step
                )
            else:
                code = self._in_blocks.process_nodes(self.pool, self.part, self.copies, self.form.margin, step)
            if code == node_pool.FULL:
                self.pool = node_pool.grow_pool(self.pool)
            self.finished = code == node_pool.FINISHED
        return self.finished

    def _try_blocks(self) -> None:
        """Bound nodes by blocks of columns from now on, if this narrows the gap of the open node enough."""
        self._blocks_tried = True
        if self.pool.ctrl[node_pool.OPEN] == 0:
            return
        from sparsecv_mio.trees.blocks import BlockNodes  # imported here, because most trees end before

        block_part = _block_part(self.form)
        nodes = (
            None
            if block_part is None
            else BlockNodes.from_block_part(block_part, self.columns, self.form.yy, self.size)
        )
        if nodes is not None and nodes.remaining_gap_share(self.pool, self.part) <= BLOCKS_LEAVE:
            self._in_blocks = nodes

    def improve(self, upper: float, support: BoolArray) -> None:
        """Replace the incumbent if the given support is better."""
        if upper < self.upper:
            self.pool.best[:] = upper, self.form.raise_cutoff(upper)
            self.pool.best_mask[:] = support[self.columns]

    @property
    def nodes(self) -> int:
        """Number of nodes so far."""
        return int(self.pool.ctrl[node_pool.NODES])

    @property
    def nbytes(self) -> int:
        """Number of bytes needed to continue later: open nodes, and the matrices of their bounds."""
        arrays = [self.form.G, self.part.G, self.pool.status, self.pool.point]
        arrays += [] if self._in_blocks is None else [*self._in_blocks.blocks[:7], *self._in_blocks.mixtures]
        return sum(array.nbytes for array in arrays)

    @property
    def reused(self) -> int:
        """Number of nodes closed by the dual point of their parent, without solving a relaxation."""
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
    def has_overflow(self) -> bool:
        """True if a support within the cutoff could not be stored."""
        return bool(self.pool.ctrl[node_pool.OVERFLOW])

    def _mask(self, part: BoolArray) -> BoolArray:
        mask = np.zeros(self.form.m, dtype=np.bool_)
        mask[self.columns] = part
        return mask

    def incumbent(self) -> BoolArray:
        """Return the mask of the incumbent in the columns of the normal form."""
        return self._mask(self.pool.best_mask)

    def candidates(self) -> Candidates:
        """Return every stored support within the cutoff, with its value."""
        count = int(self.pool.ctrl[node_pool.KEPT])
        mask, _, value = self.pool.kept
        rows = [r for r in range(count) if value[r] <= self.pool.best[1]]
        return [(self._mask(mask[r]), float(value[r])) for r in rows]


def _block_part(form: NormalForm) -> BlockPart | None:
    """Return a block-diagonal part of M; None if columns are hardly correlated or nearly dependent."""
    from sparsecv_mio.trees.blocks import ChosenBlocks, block_part, chosen_blocks, has_correlated_columns

    M = form.matrix()
    if "blocks" not in form.kept:
        form.kept["blocks"] = chosen_blocks(M, form.scale) if has_correlated_columns(M) else None
    chosen: ChosenBlocks | None = form.kept["blocks"]
    return None if chosen is None else block_part(M, chosen, form.scale)


FIRST_SHARE = 0.9  # share of a valid diagonal from which Newton's method sharpens it
TRACE_ROOM = 1e-6  # allowance for a computed trace that lies below the largest eigenvalue
LISTED_PATH_NODES = 2_000_000  # path-tree nodes before perspective trees take over
NODE_RATIO = 16  # path nodes that count as one perspective node
DELIVERY_NODES = 16  # perspective nodes between two deliveries
LEAST_ROOM, MOST_ROOM = 1 << 14, 1 << 20  # minimum and maximum capacity of one delivery, in supports


def sharpen_form(form: NormalForm) -> NormalForm:
    """Return the form with a larger diagonal taken out, or the form unchanged if the factorisations would cost more.

    Lists take longer than searches: on diabetes64 with tau 10, a list within 1% takes 0.5 to 0.9 of the nodes with the
    larger diagonal.
    """
    if not form.curved or not SMALL < form.m <= SHARP_COLUMNS:
        return form
    return with_diagonal(form, np.full(form.m, FIRST_SHARE), SHARP_STEPS) or form


def with_diagonal(form: NormalForm, start: FloatArray, steps: int = 0) -> NormalForm | None:
    """Return a curved form with another diagonal taken out; None if a factorisation does not certify it. O(m^3).

    Parameters
    ----------
    form : NormalForm
        Curved form.
    start : (m,) array
        Diagonal in the units of the form.
    steps : int
        Number of Newton steps that sharpen the diagonal.
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
    condition = 50.0 * ROUNDING * (largest + 1.0)
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
    """A tree search that passes on all supports at or below the cutoffs of their sizes, some of them possibly twice.

    Supports that differ only in the choice among duplicate columns are all passed on.

    Parameters
    ----------
    form : NormalForm
        Trusted form.
    bars : (m + 1,) array
        Cutoff on the objective for each size; -inf for sizes that are not requested. Rounding is allowed for here.
    is_expired : callable
        Function that returns True to end the relaxation of a root early.

    Attributes
    ----------
    bars : (m + 1,) array
        Present cutoffs, which `lower_bars` may lower.
    """

    def __init__(self, form: NormalForm, bars: FloatArray, is_expired: Callable[[], bool]) -> None:
        alone = np.full(form.m, -1, dtype=np.int64)
        self.form, self.is_expired = replace(sharpen_form(form), copy_prev=alone, copy_next=alone), is_expired
        self.bars = bars.copy()
        self.finished = False
        self._path_nodes = LISTED_PATH_NODES if form.m <= SMALL else 0
        if not form.curved:
            self._path_nodes = -1  # no limit
        self._path: PathListing | None = None
        if self._path_nodes or np.isfinite(bars[0]) or np.isfinite(bars[form.m]):
            self._path = PathListing(self.form, form.solve_all_columns(), self.form.raise_cutoff(self._path_bars()))
        self._tree: PerspectiveTree | None = None
        self._left = self._inside() if not self._path_nodes else []
        self._spent = 0
        self._known = np.zeros(form.m + 1)  # open bounds of a path tree that was stopped

    def _inside(self) -> list[int]:
        return [size for size in np.flatnonzero(self.bars > -np.inf).tolist() if 0 < size < self.form.m]

    def _path_bars(self) -> FloatArray:
        bars = self.bars.copy()
        if not self._path_nodes:
            bars[1 : self.form.m] = -np.inf
        return bars

    @property
    def n_spent_nodes(self) -> int:
        """Number of path nodes, plus that of perspective nodes times their relative cost."""
        path = 0 if self._path is None else self._path.nodes
        return path + NODE_RATIO * (self.nodes - path)

    @property
    def nodes(self) -> int:
        """Number of nodes of all trees so far."""
        path = 0 if self._path is None else self._path.nodes
        return self._spent + path + (0 if self._tree is None else self._tree.nodes)

    def lower_bars(self, bars: FloatArray) -> None:
        """Lower the cutoffs that exceed the given ones.

        Parameters
        ----------
        bars : (m + 1,) array
            Cutoff for each size.
        """
        self.bars = np.minimum(self.bars, bars)
        if self._path is not None:
            self._path.lower_bars(self.form.raise_cutoff(self.bars))
        if self._tree is not None:
            self._tree.pool.best[1] = self.form.raise_cutoff(self.bars)[self._tree.size]

    def advance(self, nodes: int = PATH_SLICE) -> MetSupports:
        """Work for some milliseconds, on at most `nodes` path nodes, and return the supports found."""
        if self._path is not None and not self._path.finished:
            supports = self._path.advance(nodes)
            if self._path.finished:
                self.finished = not self._left
            elif 0 <= self._path_nodes <= self._path.nodes:
                self._left, self._known = self._inside(), self._path.open_bounds()
                self._spent, self._path = self._spent + self._path.nodes, None
            return supports
        if self._tree is None:
            self._tree = self._make_tree(self._left[0]) if self._left else None
        supports = self._from_tree()
        self.finished = self._tree is None and not self._left
        return supports

    def _make_tree(self, size: int) -> PerspectiveTree:
        bar = float(self.form.raise_cutoff(self.bars)[size])
        origin = np.zeros(self.form.m)
        root = solve_root(self.form, size, bar, origin, self.is_expired)
        room = min(max(comb(self.form.m, min(size, 3)), LEAST_ROOM), MOST_ROOM)
        return PerspectiveTree(self.form, size, bar, np.zeros(self.form.m, dtype=np.bool_), root, (bar, room))

    def _from_tree(self) -> MetSupports:
        tree, m = self._tree, self.form.m
        if tree is None:
            return MetSupports(np.zeros((0, m), dtype=np.bool_), np.zeros(0, dtype=np.int64), np.zeros(0))
        tree.pool.ctrl[node_pool.KEPT] = 0
        tree.advance(DELIVERY_NODES, self.is_expired)
        places = slice(0, int(tree.pool.ctrl[node_pool.KEPT]))
        masks = np.zeros((places.stop, m), dtype=np.bool_)
        masks[:, tree.columns] = tree.pool.kept.mask[places]
        supports = MetSupports(
            masks, np.full(places.stop, tree.size, dtype=np.int64), tree.pool.kept.value[places].copy()
        )
        if tree.has_overflow:  # a slice cannot hold all supports: the path tree takes over, with at most one a node
            self._spent, self._tree = self._spent + tree.nodes, None
            self._path_nodes = -1
            bars = np.full(m + 1, -np.inf)
            bars[self._left] = self.bars[self._left]
            self._path, self._left = (
                PathListing(self.form, self.form.solve_all_columns(), self.form.raise_cutoff(bars)),
                [],
            )
        elif tree.finished:
            self._spent, self._tree = self._spent + tree.nodes, None
            self._left = self._left[1:]
        return supports

    def open_bounds(self) -> FloatArray:
        """Return (m + 1,) lower bounds on f of the supports not yet handed out, by size; inf if all were."""
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

"""One tau by the perspective tree, on the columns that survive the root's screening."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.cell import MANY
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.formulation.backends.native.root import Root
from sparsecv_mio.kernels import perspective_tree
from sparsecv_mio.kernels.copies import Copies
from sparsecv_mio.kernels.status import DROPPED

PERSPECTIVE_SLICE, SLICE_COLUMNS = 400, 10_000  # nodes between two checks of the clock, and columns of these together
KEPT_AT_FIRST = 256  # supports within the bar that there is room for, unless more are asked for
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
        self.bar, room = held or (upper * (1.0 + form.keep) + form.slack, KEPT_AT_FIRST)
        status = root.status(size, self.bar)
        self.columns = np.flatnonzero(status != DROPPED)
        if len(self.columns) > WHOLE * m:
            self.columns = np.arange(m)
        part = slice(None) if len(self.columns) == m else np.ix_(self.columns, self.columns)
        self.part = form.quadratic._replace(
            G=np.ascontiguousarray(form.G[part]), c=np.ascontiguousarray(form.c[self.columns])
        )
        prev = np.full(m + 1, -1, dtype=np.int64)
        prev[self.columns] = np.arange(len(self.columns))
        self.copies = Copies(prev[form.copy_prev[self.columns]], prev[form.copy_next[self.columns]])
        self.pool = perspective_tree.new_pool(
            status[self.columns], upper, self.bar, np.asarray(support[self.columns], dtype=np.bool_),
            keep_capacity=room,
        )  # fmt: skip
        self.pool.bound[0] = root.dual
        if m > MANY:
            self.pool.point[0] = root.b[self.columns]
        self.finished = False

    def advance(self, nodes: int, expired: Callable[[], bool]) -> bool:
        """Run for some nodes; True when the tree is finished."""
        goal = self.nodes + nodes
        part = max(min(PERSPECTIVE_SLICE, SLICE_COLUMNS // max(len(self.columns), 1)), 1)
        while not self.finished and self.nodes < goal and not expired() and not self.overflow:
            step = min(goal - self.nodes, part)
            code = perspective_tree.run(self.pool, self.part, self.size, self.copies, self.form.margin, step)
            if code == perspective_tree.FULL:
                self.pool = perspective_tree.grown(self.pool)
            self.finished = code == perspective_tree.FINISHED
        return self.finished

    def improve(self, upper: float, support: BoolArray) -> None:
        """Take over a better incumbent."""
        if upper < self.upper:
            self.pool.best[:] = upper, upper * (1.0 + self.form.keep) + self.form.slack
            self.pool.best_mask[:] = support[self.columns]

    @property
    def nodes(self) -> int:
        """Nodes so far."""
        return int(self.pool.ctrl[perspective_tree.NODES])

    @property
    def reused(self) -> int:
        """Nodes that their parent's dual point closed, without a relaxation of their own."""
        return int(self.pool.ctrl[perspective_tree.REUSED])

    @property
    def upper(self) -> float:
        """Value of the incumbent."""
        return float(self.pool.best[0])

    @property
    def lower(self) -> float:
        """Smallest bound of an open node."""
        return self.upper if self.pool.ctrl[perspective_tree.OPEN] == 0 else float(self.pool.bound[0])

    @property
    def overflow(self) -> bool:
        """Whether a support within the bar was not kept."""
        return bool(self.pool.ctrl[perspective_tree.OVERFLOW])

    def _mask(self, part: BoolArray) -> BoolArray:
        mask = np.zeros(self.form.m, dtype=np.bool_)
        mask[self.columns] = part
        return mask

    def incumbent(self) -> BoolArray:
        """Mask of the incumbent in the columns of the normal form."""
        return self._mask(self.pool.best_mask)

    def candidates(self) -> Candidates:
        """Every support kept within the bar, with its value."""
        kept = int(self.pool.ctrl[perspective_tree.KEPT])
        mask, _, value = self.pool.kept
        rows = [r for r in range(kept) if value[r] <= self.pool.best[1]]
        return [(self._mask(mask[r]), float(value[r])) for r in rows]

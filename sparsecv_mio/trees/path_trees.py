"""Path trees of several sizes: one for all of them, or one for each where the supports of all need too much memory."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.kernels import path_tree
from sparsecv_mio.kernels.path_tree import new_levels
from sparsecv_mio.trees.listing import PATH_SLICE, ROOM_AT_FIRST, Candidates
from sparsecv_mio.trees.size_results import SizeResults

ROOM = ROOM_AT_FIRST, 16  # supports that a path tree can keep: a base number, and an additional number for each size


class PathTrees:
    """Path trees that continue from call to call.

    Parameters
    ----------
    results : SizeResults
        Incumbents and bounds, which the trees improve.
    inverse : tuple
        Result of `NormalForm.solve_all_columns`: V, beta and f of all columns.

    Attributes
    ----------
    nodes : int
        Number of nodes of the collected trees.
    """

    def __init__(self, results: SizeResults, inverse: tuple[FloatArray, FloatArray, float]) -> None:
        self.results, self.inverse, self.nodes = results, inverse, 0
        self._trees: list[path_tree.PathState] | None = None

    def _new_tree(self, sizes: list[int]) -> path_tree.PathState:
        V, beta, value = self.inverse
        best = np.full(self.results.form.m + 1, -np.inf)
        best[sizes] = np.minimum(self.results.best[sizes], self.results.enough[sizes])
        root = new_levels(V, beta, value, sizes[0], sizes[-1])
        return path_tree.new_state(root, best, self.results.form.margin, ROOM[0] + ROOM[1] * len(sizes))

    def advance(self, sizes: list[int], nodes: int) -> list[int]:
        """Continue the path trees for a total number of nodes; return the sizes that are still open.

        Closed sizes leave the trees. A tree that runs out of memory for supports is replaced by one tree for each size.
        """
        if not sizes or self.results.expired():
            return sizes
        trees, self._trees = [self._new_tree(sizes)] if self._trees is None else self._trees, []
        for state in trees:
            open_sizes = np.flatnonzero(state.bar > -np.inf).tolist()
            mine = self.results.open_sizes(open_sizes)
            for size in open_sizes:
                if size not in mine:
                    state.set_bars(size, -np.inf, -np.inf)
                elif self.results.best[size] < state.best[size]:
                    state.set_bars(size, self.results.best[size], self.results.cutoff(size))
            finished = not mine or self._advance_tree(state, nodes * len(mine) // max(len(sizes), 1))
            if state.ctrl[path_tree.OVERFLOW] and len(mine) > 1:
                self._collect(state, finished=False)
                self._trees += [self._new_tree([size]) for size in mine]
            elif finished or state.ctrl[path_tree.OVERFLOW]:
                self._collect(state, finished)
            else:
                self._take_incumbents(state)
                self._trees.append(state)
        return self.results.open_sizes(sizes)

    def _advance_tree(self, state: path_tree.PathState, nodes: int) -> bool:
        """Run a path tree for some nodes or until its memory for supports is full; return True if it is finished."""
        form = self.results.form
        while nodes > 0 and not self.results.expired() and not state.ctrl[path_tree.OVERFLOW]:
            step = min(nodes, PATH_SLICE)
            if path_tree.process_nodes(state, form.copies, form.w, form.margin, step):
                return True
            nodes -= step
        return False

    def _take_incumbents(self, state: path_tree.PathState) -> dict[int, Candidates]:
        """Record the best supports that a path tree found; return those that it kept within the cutoff, by size."""
        count = int(state.ctrl[path_tree.KEPT])
        by_size: dict[int, Candidates] = {}
        for mask, size, value in zip(*(array[:count] for array in state.kept), strict=True):
            if value <= state.bar[size]:
                by_size.setdefault(int(size), []).append((mask.copy(), float(value)))
                self.results.offer(size, value, mask)
        return by_size

    def _collect(self, state: path_tree.PathState, finished: bool) -> None:
        """Record the bounds that a path tree proved and the sizes that it branched on."""
        self.nodes += int(state.ctrl[path_tree.NODES])
        bounds = np.full(self.results.form.m + 1, np.inf)
        overflow = bool(state.ctrl[path_tree.OVERFLOW])
        if not finished or overflow:
            path_tree.open_bounds(state, bounds)
        by_size = self._take_incumbents(state)
        mine = [size for size in np.flatnonzero(state.bar > -np.inf).tolist() if size not in self.results.done]
        for size in mine:
            if state.ctrl[path_tree.NODES]:
                self.results.branched.add(size)
            if finished and not overflow and self.results.best[size] <= self.results.enough[size]:
                self.results.close(size, by_size.get(size, []))
            else:  # the tree prunes above the target, so it proves no bound beyond the target
                self.results.raise_lower(size, min(bounds[size], self.results.enough[size]))
        if overflow and len(mine) == 1:
            self.results.close(mine[0], [], complete=False)

    def collect_all(self) -> None:
        """Record what the unfinished trees proved."""
        for state in self._trees or ():
            self._collect(state, finished=False)

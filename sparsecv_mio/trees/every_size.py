"""Every tau of one fold, solved exactly: the path tree of all of them and a perspective tree of each, in turn.

Which tree prunes depends on the data: the path tests where gamma is small and n > p, the perspective where gamma is
large or n <= p (theory section 4). Nothing is guessed: both get budgets that grow fourfold in turn, counted in nodes
(never seconds, so that runs repeat), and the first to finish decides the tau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import comb

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import path_tree, starts
from sparsecv_mio.kernels.every_support import ScannedProblem, new_kept, scan_supports
from sparsecv_mio.kernels.nodes import DROPPED
from sparsecv_mio.kernels.path_tree import new_levels
from sparsecv_mio.problem.elimination import eliminated, stripped
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.thresholds import MANY, SMALL
from sparsecv_mio.trees.clusters import ClusterTree
from sparsecv_mio.trees.listing import NODE_RATIO, PATH_SLICE, ROOM_AT_FIRST, WHOLE, Candidates, PerspectiveTree
from sparsecv_mio.trees.normal_form import ClusterRelaxation, NormalForm, Root, box_of, normal_form, solve_root
from sparsecv_mio.trees.subsets import (
    FIRST_LOOK,
    MAX_SCANNED_SUPPORTS,
    MOST_REFITTED,
    MOST_TRIED,
    SWAP_ROUNDS,
    UNLIMITED,
    BestSubset,
    BestSubsets,
    never,
)
from sparsecv_mio.units import KEEP_RTOL, TINY

MOST_PATH_TREE_COLUMNS = 400  # the path tree's memory grows as m^3 / 3
PATH_TREE_ALONE = 10  # columns up to which the path tree of all tau finishes within FIRST_LOOK nodes, one a subset
SMALL_NODES = 200_000  # of the path tree of a small problem, before anything else
PATH_PART = 8  # the path trees get an effort divided by this: 1 to 4 were slower on all of ten problems
ROOM = ROOM_AT_FIRST, 16  # supports that a path tree can keep, and how many more a size
WIDE_BY = 2  # times as many columns as rows, beyond which trees branch on columns and not on clusters
SCAN_ROOM = 8  # room during the scan of all supports, as a multiple of the number kept in the end
SCAN_SLACK = 1e-13  # minimum rounding error of a value, as a share of the size of objectives
SCAN_ROUNDING = 50.0 * float(
    np.finfo(float).eps
)  # relative error of a value per unit of the condition number of its support
STORED_TREES = "trees"  # of one gamma: under which name


def solve_path(
    problem: SparseProblem,
    taus: Sequence[int],
    *,
    starts: Iterable[IntArray] = (),
    effort: int = UNLIMITED,
    expired: Callable[[], bool] = never,
    ends: FloatArray | None = None,
    enough: Mapping[int, float] | None = None,
    resume: int = 0,
) -> BestSubsets:
    """Solve `min f(S), |S| <= tau` for every tau asked.

    Parameters
    ----------
    problem : SparseProblem
        Columns that it has forced in are in every support.
    taus : sequence of int
        Sizes, `0 <= tau`; larger than the number of useful columns is allowed.
    starts : iterable of int arrays
        Supports worth trying first.
    effort : int
        Nodes of a path tree any one tau may cost; a perspective node counts as 16.
    expired : callable
        Looked at every few milliseconds; True stops with what is held.
    ends : (q,) array, optional
        Coefficients are assumed to lie within plus or minus these. Then `lower` bounds the f of every such model, and
        what is complete is so among those; `upper` and the supports are of all models. Not used with forced columns.
    enough : mapping of int to float, optional
        By tau, a lower bound that will do: work on this tau ends there, with or without its best support.
    resume : int
        Bytes a gamma of perspective trees that go on where the last call of the same problem left them, and are kept
        for the next one (in `problem.kept`); the effort is what they may cost beyond that. 0: each begins anew.

    Returns
    -------
    BestSubsets
    """
    limits, will_do = (effort, expired), dict(enough or {})
    if not len(problem.forced):
        return _PathSolver(problem, taus, starts, limits, ends, resume).solve(will_do)
    reduced = eliminated(problem)
    sizes, supports = reduced.choice.sizes(taus), stripped(reduced.choice, list(starts))
    will_do = {reduced.choice.size(tau): bound for tau, bound in sorted(will_do.items())}
    return (
        _PathSolver(reduced.problem, sizes, supports, limits, resume=resume)
        .solve(will_do)
        .with_forced(reduced.choice.size, reduced.choice.whole, taus)
    )


class _PathSolver:
    """State of one call: incumbents by size in the columns of the normal form, and what has been proved."""

    def __init__(
        self,
        problem: SparseProblem,
        taus: Sequence[int],
        first: Iterable[IntArray],
        limits: tuple[int, Callable[[], bool]],
        ends: FloatArray | None = None,
        resume: int = 0,
    ) -> None:
        self.problem = problem
        self.form: NormalForm = normal_form(problem)
        self.taus = sorted(set(taus))
        self.effort, self.expired = limits
        self.ends = ends
        self.box = None if ends is None else box_of(self.form, ends)
        m = self.form.m
        self.padding = problem.q - m
        self.sizes = sorted({size for t in self.taus for size in self._sizes_of(t)})
        self.best = np.full(m + 1, np.inf)
        self.best[0] = self.form.yy
        self.support = np.zeros((m + 1, m), dtype=np.bool_)
        self.lower, self.enough = np.zeros(m + 1), np.full(m + 1, np.inf)
        self.kept: dict[int, Candidates] = {}
        self.done: dict[int, bool] = {}  # size -> candidates complete
        self.branched: set[int] = set()
        self.nodes = self.reused = 0
        self._inverse: tuple[FloatArray, FloatArray, float] | None = None
        self._roots: dict[int, Root] = {}  # of sizes that are solved on all of many columns
        self._trees: dict[int, PerspectiveTree | ClusterTree] = {}
        self._stored: dict[int, PerspectiveTree] = self.form.kept.setdefault(STORED_TREES, {}) if resume else {}
        self._resumes = resume
        self._paths: list[path_tree.PathState] | None = None  # one of all open sizes, or one of each
        self._begin(first)

    def _sizes_of(self, tau: int) -> tuple[int, ...]:
        """Sizes that decide tau: its own, and the one below where a column that is constant in training can fill up."""
        size = min(tau, self.form.m)
        return (size - 1, size) if size > 0 and self._least_size(tau) < size else (size,)

    def _least_size(self, tau: int) -> int:
        """Fewest varying columns in a support of tau columns."""
        return max(min(tau, self.form.m + self.padding) - self.padding, 0)

    # -- incumbents -------------------------------------------------------------------------------------------------

    def _begin(self, first: Iterable[IntArray]) -> None:
        form, m = self.form, self.form.m
        if 0 in self.sizes:
            self._close(0, [(np.zeros(m, dtype=bool), form.yy)])
        if m == 0:
            return
        if not form.yy > 0.0:
            self._flat()
            return
        M, searched = form.matrix(), [size for size in self.sizes if size < m]
        if m <= MOST_PATH_TREE_COLUMNS and form.trusted and searched:
            self._inverse = form.solved()
            V, beta, value = self._inverse
            starts.backward_elimination(V.copy(), beta.copy(), value, self.best, self.support)
        masks = self._masks(first)
        if len(masks):
            starts.try_supports(M, form.c, form.yy, masks, self.best, self.support)
        if searched and (m > SMALL or (m > PATH_TREE_ALONE and not len(masks)) or self._inverse is None):
            starts.forward_selection(M, form.c, form.yy, searched[-1], self.best, self.support)
        if m > SMALL:
            for size in searched:
                starts.improve_by_swaps(M, form.c, form.yy, size, self.best, self.support, SWAP_ROUNDS)
        if m in self.sizes:
            full = np.ones(m, dtype=bool)
            if not np.isfinite(self.best[m]):
                starts.try_supports(M, form.c, form.yy, full[None, :], self.best, self.support)
            self._close(m, [(full, float(self.best[m]))])

    def _flat(self) -> None:
        """Answer for a target that is constant in training: f and every coefficient are zero, whatever the support."""
        for size in self.sizes:
            mask = np.arange(self.form.m) < size
            self._close(size, [(mask, 0.0)])
            self.best[size], self.support[size] = 0.0, mask

    def _masks(self, first: Iterable[IntArray]) -> BoolArray:
        supports = list(first)
        masks = np.zeros((len(supports), self.form.m), dtype=np.bool_)
        if not supports:
            return masks
        place = np.full(self.form.m + self.padding, -1, dtype=np.int64)  # -1: constant in training
        place[self.form.columns] = np.arange(self.form.m)
        rows = np.repeat(np.arange(len(supports)), [len(support) for support in supports])
        columns = place[np.concatenate(supports).astype(np.int64)]
        masks[rows[columns >= 0], columns[columns >= 0]] = True
        return masks

    # -- proofs -----------------------------------------------------------------------------------------------------

    def solve(self, enough: Mapping[int, float]) -> BestSubsets:
        """Run the trees until every size is closed, the effort is spent or the clock stops them.

        Parameters
        ----------
        enough : mapping of int to float
            By tau, a lower bound that will do.
        """
        if enough:
            for size in self.sizes:
                levels = [enough.get(tau, np.inf) for tau in self.taus if min(tau, self.form.m) == size]
                self.enough[size] = max(levels, default=np.inf) + self.margin(size)
        open_sizes = [s for s in self.sizes if s not in self.done]
        while open_sizes:
            if self.form.trusted:
                self._prove(open_sizes)
            else:
                for size in open_sizes:
                    self._try_all(size, MOST_REFITTED)
            below = {self._candidates(tau)[2] for tau in self.taus}
            open_sizes = sorted(s for s in below if s is not None and s not in self.sizes)
            self.sizes = sorted({*self.sizes, *open_sizes})
        if self._resumes:
            self._store_trees()
        cells = {tau: self._cell(tau) for tau in self.taus}
        return BestSubsets(cells, self.nodes, all(s in self.done for s in self.sizes), self.reused)

    def _store_trees(self) -> None:
        """Keep trees that are not finished for the next call: those of this one first, then those of smaller sizes."""
        mine = {
            size: tree
            for size, tree in self._trees.items()
            if isinstance(tree, PerspectiveTree) and size not in self.done
        }
        self._stored.update(mine)
        room = self._resumes
        for size in sorted(self._stored, key=lambda size: (size not in mine, size)):
            room -= self._stored[size].nbytes
            if room < 0:
                del self._stored[size]

    def _left(self, sizes: list[int]) -> list[int]:
        """Sizes that are not closed, and whose lower bound will not do yet."""
        return [size for size in sizes if size not in self.done and self.lower[size] < self.enough[size]]

    def _prove(self, sizes: list[int]) -> None:
        """Both trees in turn with growing budgets: the path tree of all open sizes, the perspective of each."""
        small = self.form.m <= SMALL
        if self.form.m > MANY and self.form.curved:
            sizes = self._on_columns_left(sizes)
        self._paths = None
        if small:
            sizes = self._along_paths(sizes, min(self.effort, SMALL_NODES))
        if not self.effort:  # roots, and no tree
            self._each_in_perspective(sizes, 0)
        budget, spent = FIRST_LOOK, 0
        while sizes and spent < self.effort and not self.expired():
            budget = min(budget, self.effort - spent)
            self._each_in_perspective(sizes, budget)
            sizes = self._left(sizes)
            if spent or small:
                sizes = self._along_paths(sizes, budget * len(sizes) // PATH_PART)
            elif self.effort <= FIRST_LOOK:
                sizes = self._along_paths(sizes, self.effort)
            spent += budget
            budget *= 4
        states: list[path_tree.PathState] = self._paths or []
        for state in states:
            self._collect_path(state, finished=False)

    def _each_in_perspective(self, sizes: list[int], budget: int) -> None:
        for size in sizes:
            if not self.expired():
                self._in_perspective(size, budget)

    def _on_columns_left(self, sizes: list[int]) -> list[int]:
        """Solve sizes on the columns that their roots leave; return those whose roots leave most, and what failed."""
        point = np.zeros(self.form.m)
        for size in sizes:
            if self.expired():
                break
            root = self._roots[size] = solve_root(self.form, size, self._bar(size), point, self.expired, self.box)
            point = root.b
            self._try_point(size, root)
            self.lower[size] = max(self.lower[size], min(root.dual, self.best[size]))
            kept_columns = np.flatnonzero(root.status(size, self._bar(size)) != DROPPED)
            if len(kept_columns) <= WHOLE * self.form.m and self.lower[size] < self.enough[size]:
                self._solve_part(size, kept_columns)
        return self._left(sizes)

    def _try_point(self, size: int, root: Root) -> None:
        """Try the largest coefficients of a root's point as a support, then exchanges."""
        form = self.form
        mask = np.zeros((1, form.m), dtype=np.bool_)
        mask[0, np.argsort(-np.abs(root.b), kind="stable")[:size]] = True
        before, M = self.best[size], form.matrix()
        starts.try_supports(M, form.c, form.yy, mask, self.best, self.support)
        if self.best[size] < before:
            starts.improve_by_swaps(M, form.c, form.yy, size, self.best, self.support, SWAP_ROUNDS)

    def _solve_part(self, size: int, left: IntArray) -> None:
        """Solve a size on some columns of the normal form that hold every support of it within the bar."""
        ends = None if self.ends is None else self.ends[self.form.columns[left]]
        result = self._on_part(size, left, self.effort, ends, float(self.enough[size]))
        cell = result.by_size[size]
        self.nodes += result.nodes
        self.reused += result.reused
        self.lower[size] = max(self.lower[size], min(cell.lower, self.best[size]))
        if cell.branched:
            self.branched.add(size)
        supports = [(self._mask_of(left[s]), v) for s, v in zip(cell.candidates, cell.values, strict=True)]
        if cell.upper < self.best[size]:
            self.best[size], self.support[size] = cell.upper, self._mask_of(left[cell.support])
        if cell.complete:
            self._close(size, supports)
        elif result.finished:
            self.done[size] = False

    def _on_part(
        self, size: int, columns: IntArray, effort: int, ends: FloatArray | None = None, enough: float = np.inf
    ) -> BestSubsets:
        """Solve a size on some columns of the normal form."""
        place = np.full(self.form.m, -1, dtype=np.int64)
        place[columns] = np.arange(len(columns))
        start = place[np.flatnonzero(self.support[size])]
        narrow = self.problem.only(self.form.columns[columns])
        first = [start[start >= 0]]
        return solve_path(
            narrow, [size], starts=first, effort=effort, expired=self.expired, ends=ends, enough={size: enough}
        )

    def _mask_of(self, columns: IntArray) -> BoolArray:
        mask = np.zeros(self.form.m, dtype=np.bool_)
        mask[columns] = True
        return mask

    def _bar(self, size: int) -> float:
        """Value up to which supports of a size are kept."""
        return self.form.raised(float(self.best[size]))

    def _path_state(self, sizes: list[int]) -> path_tree.PathState:
        assert self._inverse is not None
        V, beta, value = self._inverse
        best = np.full(self.form.m + 1, -np.inf)
        best[sizes] = np.minimum(self.best[sizes], self.enough[sizes])
        root = new_levels(V, beta, value, sizes[0], sizes[-1])
        return path_tree.new_state(root, best, self.form.margin, ROOM[0] + ROOM[1] * len(sizes))

    def _along_paths(self, sizes: list[int], nodes: int) -> list[int]:
        """Go on with the path trees for so many nodes in all; returns the sizes that are still open.

        Closed sizes leave the trees. A tree that cannot keep what it finds is replaced by one for each of its sizes.
        """
        if not sizes or self._inverse is None or self.expired():
            return sizes
        states, self._paths = self._paths, []
        for state in states if states is not None else [self._path_state(sizes)]:
            open_sizes = np.flatnonzero(state.bar > -np.inf).tolist()
            mine = self._left(open_sizes)
            for size in open_sizes:
                if size not in mine:
                    state.set_bars(size, -np.inf, -np.inf)
                elif self.best[size] < state.best[size]:
                    state.set_bars(size, self.best[size], self._bar(size))
            finished = not mine or self._advance_path(state, nodes * len(mine) // max(len(sizes), 1))
            if state.ctrl[path_tree.OVERFLOW] and len(mine) > 1:
                self._collect_path(state, finished=False)
                self._paths += [self._path_state([size]) for size in mine]
            elif finished or state.ctrl[path_tree.OVERFLOW]:
                self._collect_path(state, finished)
            else:
                self._take_incumbents(state)
                self._paths.append(state)
        return self._left(sizes)

    def _advance_path(self, state: path_tree.PathState, nodes: int) -> bool:
        """Run a path tree for some nodes, or until it cannot keep what it finds; True when it is finished."""
        form = self.form
        while nodes > 0 and not self.expired() and not state.ctrl[path_tree.OVERFLOW]:
            step = min(nodes, PATH_SLICE)
            if path_tree.run(state, form.copies, form.w, form.margin, step):
                return True
            nodes -= step
        return False

    def _take_incumbents(self, state: path_tree.PathState) -> dict[int, Candidates]:
        """Take over the best supports a path tree found; returns by size what it kept within the bar."""
        count = int(state.ctrl[path_tree.KEPT])
        by_size: dict[int, Candidates] = {}
        for mask, size, value in zip(*(array[:count] for array in state.kept), strict=True):
            if value <= state.bar[size]:
                by_size.setdefault(int(size), []).append((mask.copy(), float(value)))
                if value < self.best[size]:
                    self.best[size], self.support[size] = value, mask
        return by_size

    def _collect_path(self, state: path_tree.PathState, finished: bool) -> None:
        """Take over what a path tree proved, and that it was worked on."""
        self.nodes += int(state.ctrl[path_tree.NODES])
        bounds = np.full(self.form.m + 1, np.inf)
        overflow = bool(state.ctrl[path_tree.OVERFLOW])
        if not finished or overflow:
            path_tree.open_bounds(state, bounds)
        by_size = self._take_incumbents(state)
        mine = [size for size in np.flatnonzero(state.bar > -np.inf).tolist() if size not in self.done]
        for size in mine:
            if state.ctrl[path_tree.NODES]:
                self.branched.add(size)
            if finished and not overflow and self.best[size] <= self.enough[size]:
                self._close(size, by_size.get(size, []))
            else:  # nothing is known beyond what would do: the tree leaves out what lies there
                self.lower[size] = max(self.lower[size], min(bounds[size], self.best[size], self.enough[size]))
        if overflow and len(mine) == 1:
            self._close(mine[0], [], complete=False)

    def _in_perspective(self, size: int, effort: int) -> None:
        """Go on with the perspective tree of a size."""
        if not self.form.curved:
            if self._inverse is None:
                self.done[size] = False
            return
        pool = self._rooted(size)
        nodes, reused = pool.nodes, pool.reused
        while effort > 0 and self._left([size]) and not (pool.finished or pool.overflow or self.expired()):
            pool.advance(min(effort, FIRST_LOOK) // NODE_RATIO + 1, self.expired)
            self._learn(size, pool)
            effort -= FIRST_LOOK
        self.nodes += pool.nodes - nodes
        self.reused += pool.reused - reused
        if pool.finished or pool.overflow:
            self._trees.pop(size)
            self._close(size, pool.candidates(), not pool.overflow)

    def _learn(self, size: int, pool: PerspectiveTree | ClusterTree) -> None:
        """Share incumbents and bounds between a tree of a size and this solver."""
        if pool.upper < self.best[size]:
            self.best[size] = pool.upper
            self.support[size] = pool.incumbent()
        self.lower[size] = max(self.lower[size], min(pool.lower, self.best[size]))
        if pool.nodes > 1:
            self.branched.add(size)

    def _rooted(self, size: int) -> PerspectiveTree | ClusterTree:
        """Return the tree of a size, as far as it has come: over clusters where columns are many."""
        stored = self._stored.pop(size, None)
        if stored is not None:
            self._trees[size] = stored
        if size in self._trees:
            self._trees[size].improve(float(self.best[size]), self.support[size])
            if stored is not None:
                self._learn(size, stored)
            return self._trees[size]
        root = self._roots.get(size)
        if root is None:
            origin = np.zeros(self.form.m)
            root = solve_root(self.form, size, self._bar(size), origin, self.expired, self.box)
        pool: PerspectiveTree | ClusterTree
        if self._clustered:
            relaxation = ClusterRelaxation(self.form, size, self.box)
            pool = ClusterTree(relaxation, partial(self._on_part, size), self._held(size), root)
        else:
            pool = PerspectiveTree(self.form, size, float(self.best[size]), self.support[size], root)
        self._trees[size] = pool
        self._learn(size, pool)
        return pool

    def _held(self, size: int) -> tuple[float, BoolArray]:
        return float(self.best[size]), self.support[size]

    @property
    def _clustered(self) -> bool:
        few_rows = (
            self.form.m > WIDE_BY * self.problem.n
        )  # riboflavin: 66 CPU seconds by columns, not in 193 by clusters
        return (self.form.m > MANY and not few_rows) or self.box is not None

    def _try_all(self, size: int, most: int) -> None:
        """Close a size by the values of all its supports, if they are few: each has the rounding of its own condition.

        Parameters
        ----------
        size : int
        most : int
            Candidates that are kept.
        """
        form, m = self.form, self.form.m
        self.done[size] = False
        if size == 0:  # the null model is the only one, and its value is not computed
            self.lower[0] = max(form.yy - KEEP_RTOL * form.yy - SCAN_SLACK * self.problem.size, 0.0)
            self._close(0, [(np.zeros(m, dtype=np.bool_), form.yy)])
            return
        if comb(m, size) > (most if form.trusted else MAX_SCANNED_SUPPORTS):
            return
        M = form.matrix()
        unit = 1.0 / np.sqrt(np.maximum(np.diag(M), TINY))
        scanned = ScannedProblem(
            M * unit[:, None] * unit, form.c * unit, form.yy, self.problem.size, KEEP_RTOL, SCAN_SLACK,
            SCAN_ROUNDING * self.problem.shrinkage,
        )  # fmt: skip
        room = new_kept(size, SCAN_ROOM * most, np.inf)
        for first in range(m - size + 1):
            if not scan_supports(scanned, size, first, room) or self.expired():
                return
        near = np.flatnonzero(room.lower[: int(room.filled[0])] <= room.level[0])
        masks = np.zeros((len(near), m), dtype=np.bool_)
        np.put_along_axis(masks, room.supports[near], True, axis=1)
        later = np.flatnonzero(form.copy_prev >= 0)
        kept = ~np.any(masks[:, later] & ~masks[:, form.copy_prev[later]], axis=1)
        if np.count_nonzero(kept) <= most:
            self.lower[size] = max(float(room.lower[near].min()), 0.0)
            self._close(size, [(masks[r], float(room.values[near[r]])) for r in np.flatnonzero(kept)])

    def _close(self, size: int, candidates: Candidates, complete: bool = True) -> None:
        if not complete and self.form.trusted:
            self._try_all(size, MOST_TRIED)
            return
        self.done[size] = complete and bool(candidates)
        self.kept[size] = candidates
        if candidates:
            low = min(value for _, value in candidates)
            if low <= self.best[size]:
                self.best[size] = low
                self.support[size] = min(candidates, key=lambda item: item[1])[0]

    def _cell(self, tau: int) -> BestSubset:
        form = self.form
        size = min(tau, form.m)
        upper = float(self.best[size])
        candidates, complete, _ = self._candidates(tau)
        if form.trusted:
            margin = self.margin(size)
            lower = max((upper if complete else float(self.lower[size])) - margin, 0.0)
        else:  # no bound, or that of all supports, each with its own rounding
            lower = float(self.lower[size]) if complete and size == tau else 0.0
            margin = upper - lower if lower > 0.0 else np.inf
        return BestSubset(
            tau=tau,
            support=form.columns[self.support[size]],
            lower=lower,
            upper=upper,
            candidates=tuple(form.columns[mask] for mask, _ in candidates),
            values=tuple(value for _, value in candidates),
            margin=margin,
            complete=complete,
            branched=size in self.branched,
        )

    def margin(self, size: int) -> float:
        """Return how far above the best value of a size supports are kept, and its lower bound is lowered."""
        form = self.form
        return float(self.best[size]) * form.keep + form.slack if form.trusted else np.inf

    def _candidates(self, tau: int) -> tuple[Candidates, bool, int | None]:
        """Supports of tau columns that can be optimal, whether these are all, and the size to solve if they are not.

        Columns that are constant in training pad smaller supports to tau columns, listed here without their padding.
        """
        size = min(tau, self.form.m)
        bar = float(self.best[size]) + self.margin(size)
        supports, complete = list(self.kept.get(size, [])), self.done.get(size, False)
        if not complete or not self.form.yy > 0.0:
            return supports, complete, None
        for smaller in range(size - 1, self._least_size(tau) - 1, -1):
            if not self.done.get(smaller, False):
                sure = self.lower[smaller] > bar
                return supports, bool(sure), None if sure else smaller
            near = [item for item in self.kept[smaller] if item[1] <= bar]
            if not near:
                break
            supports += near
        return supports, True, None

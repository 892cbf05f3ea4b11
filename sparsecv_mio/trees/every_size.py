"""Exact solution of the best-subset problem of one fold for every tau, by path and perspective trees in turn.

A path tree solves all sizes at once and prunes well if gamma is small and n > p. A perspective tree solves one size and
prunes well if gamma is large or n <= p (theory section 4). Trees of the two kinds run in turn with node limits that
grow fourfold, and the first tree that finishes solves the size. The limits count nodes, not seconds, so that runs are
reproducible. There is one path tree for all sizes, or one for each size if the supports of all sizes need too much
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import comb

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import path_tree, starts
from sparsecv_mio.kernels.every_support import ScannedProblem, new_kept_supports, scan_supports
from sparsecv_mio.kernels.nodes import DROPPED
from sparsecv_mio.kernels.path_tree import new_levels
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns, strip_forced_columns
from sparsecv_mio.thresholds import MANY, SMALL
from sparsecv_mio.trees.clusters import ClusterTree
from sparsecv_mio.trees.listing import NODE_RATIO, PATH_SLICE, ROOM_AT_FIRST, WHOLE, Candidates, PerspectiveTree
from sparsecv_mio.trees.normal_form import ClusterRelaxation, NormalForm, Root, make_box, normal_form, solve_root
from sparsecv_mio.trees.subsets import (
    FIRST_LOOK,
    MAX_SCANNED_SUPPORTS,
    MOST_REFITTED,
    MOST_TRIED,
    SWAP_ROUNDS,
    UNLIMITED,
    BestSubset,
    BestSubsets,
    is_never_expired,
)
from sparsecv_mio.units import KEEP_RTOL, ROUNDING, TINY

ROOM = ROOM_AT_FIRST, 16  # supports that a path tree can keep: a base number, and an additional number for each size
MOST_PATH_TREE_COLUMNS = 400  # maximum columns of a path tree, whose memory grows as m^3 / 3
PATH_TREE_ALONE = 10  # maximum columns for which the path tree of all tau finishes within FIRST_LOOK nodes
SMALL_NODES = 200_000  # nodes of the path tree of a small problem, which runs first
PATH_PART = 8  # divisor of the effort for path trees: 1 to 4 were slower on all of ten problems
WIDE_BY = 2  # columns per row beyond which trees branch on columns instead of clusters
STORED_TREES = "trees"  # key of the stored trees of one gamma
SCAN_ROOM = 8  # supports stored during the scan of all supports, as a multiple of the number kept in the end
SCAN_SLACK = 1e-13  # minimum rounding error of a value, as a share of the size of objectives
SCAN_ROUNDING = 50.0 * ROUNDING  # relative error of a value per unit of the condition number of its support


class SizeResults:
    """Incumbents, bounds and candidates by size, in the columns of the normal form.

    Parameters
    ----------
    problem : SparseProblem
        Problem of one training set without forced columns.
    taus : sequence of int
        Requested numbers of features.
    is_expired : callable
        Function that returns True when time is over.

    Attributes
    ----------
    sizes : list of int
        Sizes to solve.
    best, support : (m + 1,) array, (m + 1, m) bool array
        Value and columns of the incumbents; inf if there is none.
    lower, cutoffs : (m + 1,) arrays
        Lower bounds, and their targets.
    kept : dict of int to Candidates
        Supports of a closed size that can be optimal.
    done : dict of int to bool
        Closed sizes; True if the candidates are complete.
    branched : set of int
        Sizes whose trees branched.
    """

    def __init__(self, problem: SparseProblem, taus: Sequence[int], is_expired: Callable[[], bool]) -> None:
        self.problem, self.is_expired = problem, is_expired
        self.form: NormalForm = normal_form(problem)
        self.taus = sorted(set(taus))
        m = self.form.m
        self.padding = problem.q - m
        self.sizes = sorted({size for t in self.taus for size in self.needed_sizes(t)})
        self.best = np.full(m + 1, np.inf)
        self.best[0] = self.form.yy
        self.support = np.zeros((m + 1, m), dtype=np.bool_)
        self.lower, self.cutoffs = np.zeros(m + 1), np.full(m + 1, np.inf)
        self.kept: dict[int, Candidates] = {}
        self.done: dict[int, bool] = {}
        self.branched: set[int] = set()

    def offer(self, size: int, value: float, support: BoolArray) -> None:
        """Replace the incumbent of a size if a support is better."""
        if value < self.best[size]:
            self.best[size], self.support[size] = value, support

    def raise_lower(self, size: int, bound: float) -> None:
        """Raise the lower bound of a size, at most to the value of its incumbent."""
        self.lower[size] = max(self.lower[size], min(bound, self.best[size]))

    def needed_sizes(self, tau: int) -> tuple[int, ...]:
        """Return the sizes needed for tau: tau, and tau - 1 if a column constant in training can fill a support."""
        size = min(tau, self.form.m)
        return (size - 1, size) if size > 0 and self.least_size(tau) < size else (size,)

    def least_size(self, tau: int) -> int:
        """Return the minimum number of varying columns in a support of tau columns."""
        return max(min(tau, self.form.m + self.padding) - self.padding, 0)

    def close_all_at_zero(self) -> None:
        """Solve all sizes if the target is constant in training: f and every coefficient are zero for every support."""
        for size in self.sizes:
            mask = np.arange(self.form.m) < size
            self.close(size, [(mask, 0.0)])
            self.best[size], self.support[size] = 0.0, mask

    def make_masks(self, first: Iterable[IntArray]) -> BoolArray:
        """Return supports in columns of the problem as masks, without columns that are constant in training."""
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

    def open_sizes(self, sizes: list[int]) -> list[int]:
        """Return the sizes that are not closed and whose lower bound is below its target."""
        return [size for size in sizes if size not in self.done and self.lower[size] < self.cutoffs[size]]

    def cutoff(self, size: int) -> float:
        """Return the cutoff up to which supports of a size are kept."""
        return self.form.raise_cutoff(float(self.best[size]))

    def make_mask(self, columns: IntArray) -> BoolArray:
        """Return columns of the normal form as a mask."""
        mask = np.zeros(self.form.m, dtype=np.bool_)
        mask[columns] = True
        return mask

    def close(self, size: int, candidates: Candidates, complete: bool = True) -> None:
        """Close a size, with its candidates; if these are not complete, try all its supports if they are few.

        Parameters
        ----------
        size : int
            Size to close.
        candidates : list of (mask, float)
            Supports that can be optimal, with their values.
        complete : bool
            True if there are no others.
        """
        if not complete and self.form.is_trusted:
            self.try_all(size, MOST_TRIED)
            return
        self.done[size] = complete and bool(candidates)
        self.kept[size] = candidates
        if candidates:
            low = min(value for _, value in candidates)
            if low <= self.best[size]:
                self.best[size] = low
                self.support[size] = min(candidates, key=lambda item: item[1])[0]

    def try_all(self, size: int, most: int) -> None:
        """Close a size by the values of all its supports if these are few, each with a bound on its rounding.

        Parameters
        ----------
        size : int
            Size to close.
        most : int
            Maximum number of candidates.
        """
        form, m = self.form, self.form.m
        self.done[size] = False
        if size == 0:  # the null model is the only one, and its value needs no computation
            self.lower[0] = max(form.yy - KEEP_RTOL * form.yy - SCAN_SLACK * self.problem.size, 0.0)
            self.close(0, [(np.zeros(m, dtype=np.bool_), form.yy)])
            return
        if comb(m, size) > (most if form.is_trusted else MAX_SCANNED_SUPPORTS):
            return
        M = form.matrix()
        unit = 1.0 / np.sqrt(np.maximum(np.diag(M), TINY))
        scanned = ScannedProblem(
            M * unit[:, None] * unit, form.c * unit, form.yy, self.problem.size, KEEP_RTOL, SCAN_SLACK,
            SCAN_ROUNDING * self.problem.shrinkage,
        )  # fmt: skip
        room = new_kept_supports(size, SCAN_ROOM * most, np.inf)
        for first in range(m - size + 1):
            if not scan_supports(scanned, size, first, room) or self.is_expired():
                return
        near = np.flatnonzero(room.lower[: int(room.filled[0])] <= room.level[0])
        masks = np.zeros((len(near), m), dtype=np.bool_)
        np.put_along_axis(masks, room.supports[near], True, axis=1)
        later = np.flatnonzero(form.copy_prev >= 0)
        is_first = ~np.any(masks[:, later] & ~masks[:, form.copy_prev[later]], axis=1)
        if np.count_nonzero(is_first) <= most:
            self.lower[size] = max(float(room.lower[near].min()), 0.0)
            self.close(size, [(masks[r], float(room.values[near[r]])) for r in np.flatnonzero(is_first)])

    def subset(self, tau: int) -> BestSubset:
        """Return the best support of tau features and its bounds."""
        form = self.form
        size = min(tau, form.m)
        upper = float(self.best[size])
        candidates, complete, _ = self.candidates(tau)
        if form.is_trusted:
            margin = self.margin(size)
            lower = max((upper if complete else float(self.lower[size])) - margin, 0.0)
        else:  # no bound, or the bound of the scan of all supports, which includes rounding
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
        """Return the margin of a size, within which supports are kept and by which its lower bound is lowered."""
        form = self.form
        return float(self.best[size]) * form.keep + form.slack if form.is_trusted else np.inf

    def candidates(self, tau: int) -> tuple[Candidates, bool, int | None]:
        """Return the supports of tau columns that can be optimal, whether they are complete, and a size still to solve.

        Columns that are constant in training pad smaller supports to tau columns; supports are listed without the
        padding.
        """
        size = min(tau, self.form.m)
        bar = float(self.best[size]) + self.margin(size)
        supports, complete = list(self.kept.get(size, [])), self.done.get(size, False)
        if not complete or not self.form.yy > 0.0:
            return supports, complete, None
        for smaller in range(size - 1, self.least_size(tau) - 1, -1):
            if not self.done.get(smaller, False):
                sure = self.lower[smaller] > bar
                return supports, bool(sure), None if sure else smaller
            near = [item for item in self.kept[smaller] if item[1] <= bar]
            if not near:
                break
            supports += near
        return supports, True, None


class PathTrees:
    """Path trees of several sizes that continue from call to call.

    Parameters
    ----------
    results : SizeResults
        Incumbents and bounds, which the trees improve.
    inverse : tuple or None
        Result of `NormalForm.solve_all_columns`: V, beta and f of all columns; None to have no path trees.

    Attributes
    ----------
    nodes : int
        Number of nodes of the collected trees.
    """

    def __init__(self, results: SizeResults, inverse: tuple[FloatArray, FloatArray, float] | None) -> None:
        self.results, self.inverse, self.nodes = results, inverse, 0
        self._trees: list[path_tree.PathState] | None = None

    def _new_tree(self, sizes: list[int]) -> path_tree.PathState:
        assert self.inverse is not None
        V, beta, value = self.inverse
        best = np.full(self.results.form.m + 1, -np.inf)
        best[sizes] = np.minimum(self.results.best[sizes], self.results.cutoffs[sizes])
        root = new_levels(V, beta, value, sizes[0], sizes[-1])
        return path_tree.new_state(root, best, self.results.form.margin, ROOM[0] + ROOM[1] * len(sizes))

    def advance(self, sizes: list[int], nodes: int) -> list[int]:
        """Continue the path trees for a total number of nodes; return the sizes that are still open.

        Closed sizes leave the trees. A tree that runs out of memory for supports is replaced by one tree for each size.
        """
        if self.inverse is None or not sizes or self.results.is_expired():
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
        while nodes > 0 and not self.results.is_expired() and not state.ctrl[path_tree.OVERFLOW]:
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
            if finished and not overflow and self.results.best[size] <= self.results.cutoffs[size]:
                self.results.close(size, by_size.get(size, []))
            else:  # the tree prunes above the target, so it proves no bound beyond the target
                self.results.raise_lower(size, min(bounds[size], self.results.cutoffs[size]))
        if overflow and len(mine) == 1:
            self.results.close(mine[0], [], complete=False)

    def collect_all(self) -> None:
        """Record what the unfinished trees proved."""
        for state in self._trees or ():
            self._collect(state, finished=False)


def solve_path(
    problem: SparseProblem,
    taus: Sequence[int],
    *,
    warm_starts: Iterable[IntArray] = (),
    node_limit: int = UNLIMITED,
    is_expired: Callable[[], bool] = is_never_expired,
    ends: FloatArray | None = None,
    cutoffs: Mapping[int, float] | None = None,
    resume: int = 0,
) -> BestSubsets:
    """Return the best subsets, `min f(S)` over supports of at most tau features, for every requested tau.

    Parameters
    ----------
    problem : SparseProblem
        Problem of one training set; its forced columns are in every support.
    taus : sequence of int
        Numbers of features, `0 <= tau`, without adjustment columns; they may exceed the number of useful columns.
    warm_starts : iterable of int arrays
        Initial supports.
    node_limit : int
        Maximum number of path-tree nodes for each tau; a perspective node counts as 16.
    is_expired : callable
        Function called every few milliseconds; True stops the work with the bounds found so far.
    ends : (q,) array, optional
        Assumed bounds: coefficients are within plus or minus these values. Then `lower` bounds f over the models within
        the bounds, and `complete` refers to these models; `upper` and the supports refer to all models. Ignored if
        columns are forced.
    cutoffs : mapping of int to float, optional
        Target of the lower bound for each tau: work on a tau stops once the bound reaches it, with or without the best
        support.
    resume : int
        Number of bytes for unfinished perspective trees, stored in `problem.kept` for each gamma. The next call on the
        same problem continues them, and `node_limit` limits the additional work. With 0 every tree starts from scratch.

    Returns
    -------
    BestSubsets
        Supports and bounds for each tau.
    """
    limits, will_do = (node_limit, is_expired), dict(cutoffs or {})
    if not len(problem.forced):
        return _PathSolver(problem, taus, warm_starts, limits, ends, resume).solve(will_do)
    reduced = eliminate_forced_columns(problem)
    sizes, supports = reduced.choice.sizes(taus), strip_forced_columns(reduced.choice, list(warm_starts))
    will_do = {reduced.choice.size(tau): bound for tau, bound in sorted(will_do.items())}
    return (
        _PathSolver(reduced.problem, sizes, supports, limits, resume=resume)
        .solve(will_do)
        .add_forced_columns(reduced.choice.size, reduced.choice.make_support, taus)
    )


class _PathSolver:
    """Order of the trees of one call."""

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
        self.node_limit, self.is_expired = limits
        self.results = SizeResults(problem, taus, self.is_expired)
        self.form = self.results.form
        self.ends = ends
        self.box = None if ends is None else make_box(self.form, ends)
        self.nodes = self.reused = 0
        self._inverse: tuple[FloatArray, FloatArray, float] | None = None
        self._roots: dict[int, Root] = {}  # roots of sizes that are solved on all columns where columns are many
        self._trees: dict[int, PerspectiveTree | ClusterTree] = {}
        self._stored: dict[int, PerspectiveTree] = self.form.kept.setdefault(STORED_TREES, {}) if resume else {}
        self._resumes = resume
        self._begin(first)

    # -- incumbents ----------------------------------------------------------------------------------------------------

    def _begin(self, first: Iterable[IntArray]) -> None:
        form, m = self.form, self.form.m
        if 0 in self.results.sizes:
            self.results.close(0, [(np.zeros(m, dtype=bool), form.yy)])
        if m == 0:
            return
        if not form.yy > 0.0:
            self.results.close_all_at_zero()
            return
        M, searched = form.matrix(), [size for size in self.results.sizes if size < m]
        if m <= MOST_PATH_TREE_COLUMNS and form.is_trusted and searched:
            self._inverse = form.solve_all_columns()
            V, beta, value = self._inverse
            starts.backward_elimination(V.copy(), beta.copy(), value, self.results.best, self.results.support)
        masks = self.results.make_masks(first)
        if len(masks):
            starts.try_supports(M, form.c, form.yy, masks, self.results.best, self.results.support)
        if searched and (m > SMALL or (m > PATH_TREE_ALONE and not len(masks)) or self._inverse is None):
            starts.forward_selection(M, form.c, form.yy, searched[-1], self.results.best, self.results.support)
        if m > SMALL:
            for size in searched:
                starts.improve_by_swaps(M, form.c, form.yy, size, self.results.best, self.results.support, SWAP_ROUNDS)
        if m in self.results.sizes:
            full = np.ones(m, dtype=bool)
            if not np.isfinite(self.results.best[m]):
                starts.try_supports(M, form.c, form.yy, full[None, :], self.results.best, self.results.support)
            self.results.close(m, [(full, float(self.results.best[m]))])

    # -- proofs --------------------------------------------------------------------------------------------------------

    def solve(self, cutoffs: Mapping[int, float]) -> BestSubsets:
        """Run the trees until every size is closed, the effort is spent or the clock stops them.

        Parameters
        ----------
        cutoffs : mapping of int to float
            Target of the lower bound for each tau.
        """
        if cutoffs:
            for size in self.results.sizes:
                levels = [cutoffs.get(tau, np.inf) for tau in self.results.taus if min(tau, self.form.m) == size]
                self.results.cutoffs[size] = max(levels, default=np.inf) + self.results.margin(size)
        open_sizes = [s for s in self.results.sizes if s not in self.results.done]
        while open_sizes:
            if self.form.is_trusted:
                self._prove(open_sizes)
            else:
                for size in open_sizes:
                    self.results.try_all(size, MOST_REFITTED)
            below = {self.results.candidates(tau)[2] for tau in self.results.taus}
            open_sizes = sorted(s for s in below if s is not None and s not in self.results.sizes)
            self.results.sizes = sorted({*self.results.sizes, *open_sizes})
        if self._resumes:
            self._store_trees()
        subsets = {tau: self.results.subset(tau) for tau in self.results.taus}
        return BestSubsets(subsets, self.nodes, all(s in self.results.done for s in self.results.sizes), self.reused)

    def _store_trees(self) -> None:
        """Store unfinished trees for the next call, trees of this call first, then smaller sizes first."""
        mine = {
            size: tree
            for size, tree in self._trees.items()
            if isinstance(tree, PerspectiveTree) and size not in self.results.done
        }
        self._stored.update(mine)
        room = self._resumes
        for size in sorted(self._stored, key=lambda size: (size not in mine, size)):
            room -= self._stored[size].nbytes
            if room < 0:
                del self._stored[size]

    def _prove(self, sizes: list[int]) -> None:
        """Run both trees in turn with growing budgets: one path tree for all sizes, a perspective tree of each."""
        small = self.form.m <= SMALL
        if self.form.m > MANY and self.form.curved:
            sizes = self._solve_remaining_columns(sizes)
        paths = PathTrees(self.results, self._inverse)
        if small:
            sizes = paths.advance(sizes, min(self.node_limit, SMALL_NODES))
        if not self.node_limit:  # only the roots are bounded
            self._each_in_perspective(sizes, 0)
        budget, spent = FIRST_LOOK, 0
        while sizes and spent < self.node_limit and not self.is_expired():
            budget = min(budget, self.node_limit - spent)
            self._each_in_perspective(sizes, budget)
            sizes = self.results.open_sizes(sizes)
            if spent or small:
                sizes = paths.advance(sizes, budget * len(sizes) // PATH_PART)
            elif self.node_limit <= FIRST_LOOK:
                sizes = paths.advance(sizes, self.node_limit)
            spent += budget
            budget *= 4
        paths.collect_all()
        self.nodes += paths.nodes

    def _each_in_perspective(self, sizes: list[int], budget: int) -> None:
        for size in sizes:
            if not self.is_expired():
                self._continue_tree(size, budget)

    def _solve_remaining_columns(self, sizes: list[int]) -> list[int]:
        """Solve sizes on the columns left by their roots; return the sizes with too many columns left or still open."""
        point = np.zeros(self.form.m)
        for size in sizes:
            if self.is_expired():
                break
            root = self._roots[size] = solve_root(
                self.form, size, self.results.cutoff(size), point, self.is_expired, self.box
            )
            point = root.b
            self._try_point(size, root)
            self.results.raise_lower(size, root.dual)
            kept_columns = np.flatnonzero(root.status(size, self.results.cutoff(size)) != DROPPED)
            if len(kept_columns) <= WHOLE * self.form.m and self.results.lower[size] < self.results.cutoffs[size]:
                self._solve_part(size, kept_columns)
        return self.results.open_sizes(sizes)

    def _try_point(self, size: int, root: Root) -> None:
        """Try the largest coefficients of the point of a root as a support, then exchange columns."""
        form = self.form
        mask = np.zeros((1, form.m), dtype=np.bool_)
        mask[0, np.argsort(-np.abs(root.b), kind="stable")[:size]] = True
        before, M = self.results.best[size], form.matrix()
        starts.try_supports(M, form.c, form.yy, mask, self.results.best, self.results.support)
        if self.results.best[size] < before:
            starts.improve_by_swaps(M, form.c, form.yy, size, self.results.best, self.results.support, SWAP_ROUNDS)

    def _solve_part(self, size: int, left: IntArray) -> None:
        """Solve a size on columns of the normal form that contain every support of the size within the cutoff."""
        ends = None if self.ends is None else self.ends[self.form.columns[left]]
        result = self._on_part(size, left, self.node_limit, ends, float(self.results.cutoffs[size]))
        subset = result.by_size[size]
        self.nodes += result.nodes
        self.reused += result.reused
        self.results.raise_lower(size, subset.lower)
        if subset.branched:
            self.results.branched.add(size)
        supports = [(self.results.make_mask(left[s]), v) for s, v in zip(subset.candidates, subset.values, strict=True)]
        self.results.offer(size, subset.upper, self.results.make_mask(left[subset.support]))
        if subset.complete:
            self.results.close(size, supports)
        elif result.finished:
            self.results.done[size] = False

    def _on_part(
        self, size: int, columns: IntArray, node_limit: int, ends: FloatArray | None = None, cutoff: float = np.inf
    ) -> BestSubsets:
        """Return the best subsets of a size on some columns of the normal form."""
        place = np.full(self.form.m, -1, dtype=np.int64)
        place[columns] = np.arange(len(columns))
        start = place[np.flatnonzero(self.results.support[size])]
        narrow = self.problem.select_columns(self.form.columns[columns])
        first = [start[start >= 0]]
        return solve_path(
            narrow,
            [size],
            warm_starts=first,
            node_limit=node_limit,
            is_expired=self.is_expired,
            ends=ends,
            cutoffs={size: cutoff},
        )

    def _continue_tree(self, size: int, node_limit: int) -> None:
        """Continue the perspective tree of a size."""
        if not self.form.curved:
            if self._inverse is None:
                self.results.done[size] = False
            return
        pool = self._get_tree(size)
        nodes, reused = pool.nodes, pool.reused
        while (
            node_limit > 0
            and self.results.open_sizes([size])
            and not (pool.finished or pool.has_overflow or self.is_expired())
        ):
            pool.advance(min(node_limit, FIRST_LOOK) // NODE_RATIO + 1, self.is_expired)
            self._learn(size, pool)
            node_limit -= FIRST_LOOK
        self.nodes += pool.nodes - nodes
        self.reused += pool.reused - reused
        if pool.finished or pool.has_overflow:
            self._trees.pop(size)
            self.results.close(size, pool.candidates(), not pool.has_overflow)

    def _learn(self, size: int, pool: PerspectiveTree | ClusterTree) -> None:
        """Exchange incumbents and bounds between this solver and a tree of a size."""
        self.results.offer(size, pool.upper, pool.incumbent())
        self.results.raise_lower(size, pool.lower)
        if pool.nodes > 1:
            self.results.branched.add(size)

    def _get_tree(self, size: int) -> PerspectiveTree | ClusterTree:
        """Return the tree of a size in its present state: over clusters if there are many columns."""
        stored = self._stored.pop(size, None)
        if stored is not None:
            self._trees[size] = stored
        if size in self._trees:
            self._trees[size].improve(float(self.results.best[size]), self.results.support[size])
            if stored is not None:
                self._learn(size, stored)
            return self._trees[size]
        root = self._roots.get(size)
        if root is None:
            origin = np.zeros(self.form.m)
            root = solve_root(self.form, size, self.results.cutoff(size), origin, self.is_expired, self.box)
        pool: PerspectiveTree | ClusterTree
        if self._uses_clusters:
            relaxation = ClusterRelaxation(self.form, size, self.box)
            incumbent = float(self.results.best[size]), self.results.support[size]
            pool = ClusterTree(relaxation, partial(self._on_part, size), incumbent, root)
        else:
            pool = PerspectiveTree(self.form, size, float(self.results.best[size]), self.results.support[size], root)
        self._trees[size] = pool
        self._learn(size, pool)
        return pool

    @property
    def _uses_clusters(self) -> bool:
        # riboflavin: solved in 66 CPU seconds by columns, unsolved after 193 by clusters
        few_rows = self.form.m > WIDE_BY * self.problem.n
        return (self.form.m > MANY and not few_rows) or self.box is not None

"""A shared branch-and-bound tree on the full data for all folds with squared-error loss (theory section 5).

A subproblem has one fold, size and gamma; its incumbent is the best support found so far. There are three methods:

* A list of supports for all folds. If a support has a smaller objective in a fold than the incumbent, its objective on
  the full data is below the threshold of :func:`sparsecv_mio.search.problems.left_out_folds.objective_threshold`. For
  each size, the path tree lists every support whose objective on the full data is below the largest threshold of the
  folds. One tree covers all sizes. The listed supports are then scored in all folds at once in closed form. A fold with
  a large residual, or with a leverage near one half or more, may have a threshold that would list too many supports.
  Such a fold remains open. A subproblem whose two best supports nearly tie remains open too. The list is fast if n is
  much larger than p, or if few supports are near-optimal.
* The leave-one-out tree (:mod:`sparsecv_mio.kernels.alive_folds`), for folds of one row and moderate n. One tree covers
  all sizes and all folds. A node stores only the folds whose best support may still be in the node. The numbers of the
  tree may have rounding errors up to an allowance, and are used only to branch and prune. Each support found is
  fitted on the full data, each row is held out of this fit in closed form, and the resulting objectives are compared
  with those of the tree. A subproblem remains open if the two computations disagree, if its best supports nearly tie,
  or if the held-out row has a leverage near one.
* A list of supports for most folds, if a list for all folds takes too long.

The choice between the methods depends on counted nodes, never on time. With folds of single rows, the list for all
folds is used if the tree that makes it needs at most as many nodes as the tree that solves the full data. Otherwise the
leave-one-out tree is used if there is enough memory. If folds are not single rows, the limits on nodes are larger. Let
m be the number of nodes of one tree on the full data. With K folds, the tree that lists supports has at most m K / 4
nodes for the list for all folds, and at most m K / 16 nodes for the list for most folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import alive_folds
from sparsecv_mio.kernels.leave_out import BestByFold, HeldOutRows
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.search.problems import left_out_folds
from sparsecv_mio.search.problems.left_out_folds import FullFit, LeftOutFolds, ScoredTogether
from sparsecv_mio.search.steps import NodeCount, SubproblemBounds
from sparsecv_mio.trees.listing import list_supports_by_size
from sparsecv_mio.trees.subsets import MOST_TRIED

EVERY_FOLD: tuple[float, ...] = (1.0,)
FEWER_FOLDS: tuple[float, ...] = (0.95, 0.7)  # shares of the folds that thresholds cover, tried in turn
LEAST_SHARE = 0.6  # minimum share of folds whose leverage allows thresholds
FOLD_OVERHEAD = 200  # cost of a separate tree in addition to its nodes, in nodes

IsExpired = Callable[[], bool]


@dataclass(frozen=True, eq=False)
class RequestedFolds:
    """The subproblems that one tree is to solve.

    Attributes
    ----------
    taus : sequence of int
        Indices of the sizes.
    is_open : (T, K) bool array
        Subproblems that are not solved yet, of all sizes of the grid.
    is_expired : callable
        Function that returns True once the search has to end.
    """

    taus: Sequence[int]
    is_open: BoolArray
    is_expired: IsExpired

    def sizes(self, root: FullFit) -> dict[int, int]:
        """Return the sizes in columns of the normal form, by the index of tau."""
        taus = root.left_out.taus
        return {t: min(root.choice.size(int(taus[t])), root.form.m) for t in self.taus}


def is_usable(root: FullFit) -> bool:
    """Return True if the leverages of most folds allow thresholds."""
    return float(np.mean(root.leverage < left_out_folds.WIDEST_LEVERAGE)) >= LEAST_SHARE


def solve_folds(root: FullFit, wanted: RequestedFolds, n_nodes: int) -> Iterator[SubproblemBounds | NodeCount]:
    """Solve the subproblems that one tree for all folds can solve; yield bounds by chunk of folds, and node counts.

    Parameters
    ----------
    root : FullFit
        Fit of the full data.
    wanted : RequestedFolds
        Subproblems to solve.
    n_nodes : int
        Number of nodes that a tree on the full data costs.
    """
    folds, one_tree, n_solved = root.left_out.folds, n_nodes + FOLD_OVERHEAD, 0
    is_shared = can_share(root.left_out, root.form.m)
    budget = one_tree if is_shared else one_tree * max(folds.k // 4, 1)
    is_open = wanted.is_open.copy() if is_shared else wanted.is_open
    for bounds in list_below_thresholds(root, wanted, budget, EVERY_FOLD):
        if isinstance(bounds, SubproblemBounds):
            n_solved += int(bounds.is_solved.sum())
            if is_shared:
                is_open[:, bounds.folds] &= ~bounds.is_solved
        yield bounds
    if is_shared and is_open[list(wanted.taus)].any():
        requested = RequestedFolds(wanted.taus, is_open, wanted.is_expired)
        for bounds in grow_alive_folds(root, requested, folds.k * one_tree):
            n_solved += int(bounds.is_solved.sum()) if isinstance(bounds, SubproblemBounds) else 0
            yield bounds
    if not n_solved:
        yield from list_below_thresholds(root, wanted, folds.k * one_tree // 16, FEWER_FOLDS)


def list_below_thresholds(
    root: FullFit, wanted: RequestedFolds, budget: int, levels: tuple[float, ...]
) -> Iterator[SubproblemBounds | NodeCount]:
    """Solve the subproblems of one gamma that thresholds can solve.

    Parameters
    ----------
    root : FullFit
        Fit of the full data.
    wanted : RequestedFolds
        Subproblems to solve.
    budget : int
        Node limit of each level.
    levels : tuple of float
        Shares of the folds to cover, tried in turn until a list fits the budget.
    """
    form, sizes = root.form, wanted.sizes(root)
    limit = fold_thresholds(root)
    for level in levels:
        cover = _cover(limit, wanted.taus, level, root.left_out.folds.k)
        cutoffs = np.full(form.m + 1, -np.inf)
        for t, size in sizes.items():
            cutoffs[size] = max(cutoffs[size], cover[t])
        solved = root.V, root.beta, root.value
        listed, spent = list_supports_by_size(form, solved, cutoffs, budget, MOST_TRIED, wanted.is_expired)
        yield NodeCount(spent)
        if listed is not None:
            del limit
            yield from _score_candidates(root, _candidates(root, listed, sizes), cover, wanted)
            return
        if wanted.is_expired():
            return


def fold_thresholds(root: FullFit) -> NDArray[np.float32]:
    """(T, K): upper bound on the full-data objective of an optimal support of a fold; inf if leverages are too high.

    The thresholds are in single precision, rounded up, because those of very many folds would take much memory.
    """
    left_out = root.left_out
    limit = np.full((len(left_out.taus), left_out.folds.k), -np.inf, dtype=np.float32)

    def measure(lo: int, hi: int) -> None:
        limit[:, lo:hi] = np.nextafter(_thresholds(root, root.scores(lo, hi), lo, hi).astype(np.float32), np.inf)

    for _ in left_out.map_chunks(measure):
        pass
    return limit


def _thresholds(root: FullFit, incumbents: BestByFold, lo: int, hi: int) -> FloatArray:
    """(T, hi - lo): the thresholds of folds lo..hi of a chunk, from the scores of the incumbents there."""
    height = left_out_folds.objective_threshold(
        root.incumbent_cutoffs(incumbents) - root.lower, root.residual[lo:hi], root.leverage[lo:hi]
    )
    return np.asarray(height + root.lower + root.form.slack)


def _cover(limit: NDArray[np.float32], wanted: Sequence[int], level: float, folds: int) -> FloatArray:
    """Return, by size, the value that the thresholds of a share of the folds do not exceed."""
    cover = np.full(limit.shape[0], -np.inf)
    for t in wanted:
        finite = limit[t][np.isfinite(limit[t])]
        if len(finite):
            out = min(max(len(finite) - int(np.ceil(level * folds)), 0), len(finite) - 1)
            cover[t] = finite.max() if out == 0 else np.partition(finite, len(finite) - out - 1)[len(finite) - out - 1]
    return cover


def _candidates(root: FullFit, found: dict[int, list[BoolArray]], sizes: dict[int, int]) -> ScoredTogether:
    """Return the incumbents and the further supports that the tree found."""
    supports, tau_index = [], []
    incumbents = {(t, np.sort(support).tobytes()) for support, t in zip(root.supports, root.tau_index, strict=True)}
    for t, size in sizes.items():
        for mask in found.get(size, []):
            support = root.make_support(mask)
            if (t, np.sort(support).tobytes()) not in incumbents:
                supports.append(support)
                tau_index.append(t)
    return ScoredTogether(root, supports, tau_index)


def _score_candidates(
    root: FullFit, candidates: ScoredTogether, cover: FloatArray, wanted: RequestedFolds
) -> Iterator[SubproblemBounds]:
    """Score the candidates in every fold, and yield the bounds that result.

    Thresholds are computed again, fold by fold. Those of all folds were released before, because the bounds take as
    much memory.
    """
    left_out = root.left_out
    value_error = candidates.listing.left_out_error(len(left_out.taus))[:, None]

    def solve(lo: int, hi: int) -> SubproblemBounds:
        leverage, incumbents = root.leverage[lo:hi], root.scores(lo, hi)
        limit = _thresholds(root, incumbents, lo, hi)
        scores = candidates.scores(lo, hi, limit, leverage, incumbents)
        sure = left_out_folds.is_best_untied(scores.value, scores.second, value_error)
        sure &= (limit <= cover[:, None]) & (leverage < left_out_folds.WIDEST_LEVERAGE) & wanted.is_open[:, lo:hi]
        bounds = left_out_folds.show_scores(root, scores, candidates.supports, (lo, hi))
        left_out_folds.solve_sure_subproblems(bounds, scores, sure, root.inner)
        return bounds

    return left_out.map_chunks(solve)


Tree = tuple[IntArray, alive_folds.AliveState]  # some folds, and the state of the tree that served them


def can_share(left_out: LeftOutFolds, n_columns: int) -> bool:
    """Return True if every fold is one row and the alive-fold tree stays within its memory limit."""
    folds = left_out.folds
    return bool(folds.sizes.max() == 1) and left_out.one_chunk and alive_folds.memory(n_columns, folds.k) <= STORE_BYTES


def grow_alive_folds(root: FullFit, wanted: RequestedFolds, budget: int) -> Iterator[SubproblemBounds | NodeCount]:
    """Solve the open subproblems of one gamma by trees that each serve many folds.

    Parameters
    ----------
    root : FullFit
        Fit of the full data.
    wanted : RequestedFolds
        Subproblems to solve.
    budget : int
        Node limit of a tree; a tree that costs more solves nothing.
    """
    left_out, form, sizes = root.left_out, root.form, wanted.sizes(root)
    is_open = wanted.is_open[list(wanted.taus)].any(axis=0)
    open_folds = np.flatnonzero((root.leverage < left_out_folds.LARGEST_LEVERAGE) & is_open)
    if len(open_folds) == 0 or not any(0 < size < form.m for size in sizes.values()):
        return
    # a node is pruned once it serves no fold of its tree, so folds that need similar numbers of nodes share a tree
    decrease = left_out_folds.largest_decrease(root.residual[open_folds], root.leverage[open_folds])
    open_folds = open_folds[np.argsort(decrease, kind="stable")]
    groups = [open_folds[lo : lo + alive_folds.GROUP] for lo in range(0, len(open_folds), alive_folds.GROUP)]
    rows, cutoffs = left_out.rows(0, left_out.folds.k), root.cutoffs(0, left_out.folds.k)
    trees = on_threads(lambda group: _grow(root, group, rows, cutoffs, wanted, budget), groups, left_out.threads)
    done = [(group, state) for group, (_, state) in zip(groups, trees, strict=True) if state is not None]
    yield NodeCount(sum(spent for spent, _ in trees))
    if done:
        yield _solve_best_supports(root, done, wanted)


def _grow(
    root: FullFit, group: IntArray, rows: HeldOutRows, cutoffs: FloatArray, wanted: RequestedFolds, budget: int
) -> tuple[int, alive_folds.AliveState | None]:
    """Grow one tree for a group of folds; return its number of nodes, and its state if it has finished."""
    left_out, form = root.left_out, root.form
    reduced = left_out.full.reduced_problem(root.g)
    V, r = reduced.reduce_rows(rows.V[group], rows.r[group])
    X = V[:, form.columns] * form.scale
    W = root.V @ X.T
    leverage = reduced.leverage(rows.V[group]) + left_out.intercept_leverage * rows.root[group] ** 2
    state, finished = alive_folds.grow(
        (root.V, root.beta, root.value),
        (W, r - X @ root.beta, np.einsum("ij,ji->i", X, W) + leverage),
        {size: t for t, size in wanted.sizes(root).items() if 0 < size < form.m},
        np.ascontiguousarray(cutoffs[:, group]),
        form.copies,
        form.margin,
        budget,
        wanted.is_expired,
    )
    return int(state.ctrl[alive_folds.NODES]), state if finished else None


class _BestSupports:
    """The best supports of the trees, by (size, fold), with the trees' two smallest objectives."""

    def __init__(self, root: FullFit) -> None:
        left_out = root.left_out
        shape = (len(left_out.taus), left_out.folds.k)
        self.root = root
        self.which = np.full(shape, -1, dtype=np.int64)
        self.best, self.second = np.full(shape, np.inf), np.full(shape, np.inf)
        self.supports: list[IntArray] = []
        self.tau_index: list[int] = []
        self._numbers: dict[tuple[int, bytes], int] = {}

    def add(self, tree: Tree, t: int, size: int) -> None:
        """Add the supports that a tree found for a size."""
        group, state = tree
        m = self.root.form.m
        if size in (0, m):
            self.which[t, group] = self._number(t, np.full(m, size > 0))
            return
        numbers, index = np.unique(state.answers.which[t], return_inverse=True)
        ours = np.array([self._number(t, state.kept_mask[n]) if n >= 0 else -1 for n in numbers])
        self.which[t, group] = ours[index.reshape(-1)]
        self.best[t, group], self.second[t, group] = state.answers.best[t], state.answers.second[t]

    def _number(self, t: int, mask: BoolArray) -> int:
        key = (t, mask.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.supports)
            self.supports.append(self.root.make_support(mask))
            self.tau_index.append(t)
        return self._numbers[key]


def _solve_best_supports(root: FullFit, trees: Sequence[Tree], wanted: RequestedFolds) -> SubproblemBounds:
    """Fit the best supports on the full data, hold every fold out, and solve subproblems where both agree."""
    left_out, form, sizes = root.left_out, root.form, wanted.sizes(root)
    found = _BestSupports(root)
    for tree in trees:
        for t, size in sizes.items():
            found.add(tree, t, size)
    which, best = found.which, found.best
    listing = left_out_folds.listed_supports(root.problem, found.supports, found.tau_index)
    limit = np.where(which >= 0, listing.value[np.maximum(which, 0)], -np.inf)
    every = 0, left_out.folds.k
    scores = left_out.score(listing, left_out.rows(*every), limit, root.leverage)
    sure = (scores.which == which) & wanted.is_open
    for t, size in sizes.items():
        if size in (0, form.m):
            best[t] = scores.value[t]
    sure &= left_out_folds.clear_of_ties(best, found.second, form)
    with np.errstate(invalid="ignore"):
        sure &= np.abs(scores.value - best) <= 0.5 * (form.keep * scores.value + form.slack)
    sure &= root.leverage < left_out_folds.LARGEST_LEVERAGE
    bounds = SubproblemBounds.unknown(
        root.g, tuple(range(len(left_out.taus))), slice(*every), every[1], found.supports, left_out_folds.SHOWN
    )
    left_out_folds.solve_sure_subproblems(bounds, scores, sure, root.inner)
    return bounds

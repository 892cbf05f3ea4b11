"""One branch-and-bound on all rows for every fold: which engine serves which cells (theory section 5).

* `enumerate`: a support that beats the fold's incumbent has an objective on all rows below the threshold of
  :func:`sparsecv_mio.search.leave_fold_out.objective_threshold`. One pass of the path tree lists every support below
  the largest threshold of each tau; those few are then scored in all folds at once by closed form, in chunks of rows. A
  fold whose own threshold would list too many supports (a large residual, a leverage near one half or more) is left to
  another engine, and so is a cell with a near tie. For n much larger than p, or few candidates.
* `shared`: the alive-fold tree, leave-one-out for every tau in one tree, for moderate n. The tree's own values only
  steer and prune, with the usual allowance for drift. What it finds is fitted on all rows, each row left out of that
  fit by closed form, and compared; a cell whose values disagree, that has a near tie or whose leverage is near one
  stays open for a tree of its own.
* `per-fold`: one tree a fold, for what is left and for large folds (:mod:`sparsecv_mio.search.fold_solver`).

Which is taken is decided by counted nodes, never by clocks: a list for every fold if it costs at most one tree on all
rows, else the alive-fold tree where folds are single rows and memory allows. Where they are not, a list may cost a
quarter of what a tree a fold would, then one for most folds a sixteenth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import alive_folds
from sparsecv_mio.kernels.leave_out import BestByFold, HeldOutRows
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.search import leave_fold_out
from sparsecv_mio.search.context import SearchState
from sparsecv_mio.thresholds import FEWEST_FOLDS, LARGEST_FOLD, PATH_TREE_COLUMNS
from sparsecv_mio.trees.listing import supports_below
from sparsecv_mio.trees.subsets import MOST_TRIED

EVERY_FOLD: tuple[float, ...] = (1.0,)
FEWER_FOLDS: tuple[float, ...] = (0.95, 0.7)  # shares of the folds the thresholds cover, tried in turn


def enumerate_below_thresholds(
    root: leave_fold_out.RootNode, wanted: Sequence[int], budget: int, levels: tuple[float, ...]
) -> tuple[int, int]:
    """Decide what thresholds can decide of one gamma.

    Parameters
    ----------
    root : RootNode
    wanted : sequence of int
        Indices of tau with open cells.
    budget : int
        Nodes each level may cost.
    levels : tuple of float
        Shares of the folds to cover, tried in turn until a list fits the budget.

    Returns
    -------
    nodes, decided : int
    """
    leave_out, form = root.leave_out, root.form
    limit = fold_thresholds(root)
    nodes = 0
    sizes = {t: min(root.choice.size(int(leave_out.taus[t])), form.m) for t in wanted}
    for level in levels:
        cover = _cover(limit, wanted, level, leave_out.folds.k)
        cutoffs = np.full(form.m + 1, -np.inf)
        for t in wanted:
            cutoffs[sizes[t]] = max(cutoffs[sizes[t]], cover[t])
        solved = root.V, root.beta, root.value
        listed, spent = supports_below(form, solved, cutoffs, budget, MOST_TRIED, leave_out.expired)
        nodes += spent
        if listed is not None:
            del limit
            return nodes, _decide(root, _candidates(root, listed, sizes), cover)
        if leave_out.expired():
            break
    return nodes, 0


def fold_thresholds(root: leave_fold_out.RootNode) -> NDArray[np.float32]:
    """(T, K): objective on all rows that no support winning the fold exceeds; inf where leverages are too high.

    In single precision, rounded up: of very many folds they would take much memory.
    """
    leave_out = root.leave_out
    limit = np.full((len(leave_out.taus), leave_out.folds.k), -np.inf, dtype=np.float32)

    def measure(lo: int, hi: int) -> None:
        limit[:, lo:hi] = np.nextafter(_thresholds(root, root.scores(lo, hi), lo, hi).astype(np.float32), np.inf)

    leave_out.over_chunks(measure)
    return limit


def _thresholds(root: leave_fold_out.RootNode, incumbents: BestByFold, lo: int, hi: int) -> FloatArray:
    """(T, hi - lo): the thresholds of folds lo..hi of a chunk, from the scores of the incumbents there."""
    height = leave_fold_out.objective_threshold(
        root.raised(incumbents) - root.lower, root.residual[lo:hi], root.leverage[lo:hi]
    )
    return np.asarray(height + root.lower + root.form.slack)


def _cover(limit: NDArray[np.float32], wanted: Sequence[int], level: float, folds: int) -> FloatArray:
    """Value, by tau, that the thresholds of a share of the folds stay below."""
    cover = np.full(limit.shape[0], -np.inf)
    for t in wanted:
        finite = limit[t][np.isfinite(limit[t])]
        if len(finite):
            out = min(max(len(finite) - int(np.ceil(level * folds)), 0), len(finite) - 1)
            cover[t] = finite.max() if out == 0 else np.partition(finite, len(finite) - out - 1)[len(finite) - out - 1]
    return cover


def _candidates(
    root: leave_fold_out.RootNode, found: dict[int, list[BoolArray]], sizes: dict[int, int]
) -> leave_fold_out.ScoredTogether:
    """Return the incumbents, then what else the tree found."""
    supports, tau_index = [], []
    incumbents = {(t, np.sort(support).tobytes()) for support, t in zip(root.supports, root.tau_index, strict=True)}
    for t, size in sizes.items():
        for mask in found.get(size, []):
            support = root.whole(mask)
            if (t, np.sort(support).tobytes()) not in incumbents:
                supports.append(support)
                tau_index.append(t)
    return leave_fold_out.ScoredTogether(root, supports, tau_index)


def _decide(root: leave_fold_out.RootNode, candidates: leave_fold_out.ScoredTogether, cover: FloatArray) -> int:
    """Score the candidates in every fold and write the cells that are then known; how many.

    Thresholds are computed anew, fold by fold: those of all are let go by now, for the cells take as much memory.
    """
    leave_out = root.leave_out
    decided = []
    value_error = candidates.listing.left_out_error(len(leave_out.taus))[:, None]

    def decide(lo: int, hi: int) -> None:
        leverage, incumbents = root.leverage[lo:hi], root.scores(lo, hi)
        limit = _thresholds(root, incumbents, lo, hi)
        scores = candidates.scores(lo, hi, limit, leverage, incumbents)
        sure = leave_fold_out.clear_of_ties_refitted(scores.value, scores.second, value_error)
        sure &= (limit <= cover[:, None]) & (leverage < leave_fold_out.WIDEST_LEVERAGE)
        place = root.g, slice(lo, hi)
        decided.append(leave_out.decide(place, scores, candidates.numbers, sure, root.inner[:, None]))

    leave_out.over_chunks(decide)
    return sum(decided)


Tree = tuple[IntArray, alive_folds.AliveState]  # some folds and what one tree found for them


def is_applicable(leave_out: leave_fold_out.LeaveOut, columns: int) -> bool:
    """Whether every fold is one row and the tree stays within its memory."""
    folds = leave_out.folds
    return bool(folds.sizes.max() == 1) and leave_out.one_chunk and alive_folds.memory(columns, folds.k) <= STORE_BYTES


def run_alive_folds(root: leave_fold_out.RootNode, wanted: Sequence[int], budget: int) -> tuple[int, int]:
    """Decide the open cells of one gamma by trees that each serve many folds.

    Parameters
    ----------
    root : RootNode
    wanted : sequence of int
        Indices of tau with open cells.
    budget : int
        Nodes a tree may cost; of one that costs more nothing is decided.

    Returns
    -------
    nodes, decided : int
    """
    leave_out, form = root.leave_out, root.form
    final = leave_out.cells.final[root.g][list(wanted)].all(axis=0)
    open_folds = np.flatnonzero((root.leverage < leave_fold_out.LARGEST_LEVERAGE) & ~final)
    sizes = {t: min(root.choice.size(int(leave_out.taus[t])), form.m) for t in wanted}
    if len(open_folds) == 0 or not any(0 < size < form.m for size in sizes.values()):
        return 0, 0
    # a node is pruned once it is useless to every fold of its tree: folds that need about as many nodes share one
    decrease = leave_fold_out.largest_decrease(root.residual[open_folds], root.leverage[open_folds])
    open_folds = open_folds[np.argsort(decrease, kind="stable")]
    groups = [open_folds[lo : lo + alive_folds.GROUP] for lo in range(0, len(open_folds), alive_folds.GROUP)]
    rows, cutoffs = leave_out.rows(0, leave_out.folds.k), root.cutoffs(0, leave_out.folds.k)
    threads = leave_out.context.threads
    trees = on_threads(lambda group: _grow(root, group, rows, cutoffs, sizes, budget), groups, threads)
    done = [(group, state) for group, (_, state) in zip(groups, trees, strict=True) if state is not None]
    nodes = sum(spent for spent, _ in trees)
    return nodes, _loo_tree_decide(root, done, sizes) if done else 0


def _grow(
    root: leave_fold_out.RootNode,
    group: IntArray,
    rows: HeldOutRows,
    cutoffs: FloatArray,
    sizes: dict[int, int],
    budget: int,
) -> tuple[int, alive_folds.AliveState | None]:
    """One tree for a group of folds: its nodes, and what it found if it came to its end."""
    leave_out, form = root.leave_out, root.form
    reduced = leave_out.all_rows.eliminated(root.g)
    V, r = reduced.about(rows.V[group], rows.r[group])
    X = V[:, form.columns] * form.scale
    W = root.V @ X.T
    leverage = reduced.leverage(rows.V[group]) + leave_out.intercept_leverage * rows.root[group] ** 2
    state, finished = alive_folds.grow(
        (root.V, root.beta, root.value),
        (W, r - X @ root.beta, np.einsum("ij,ji->i", X, W) + leverage),
        {size: t for t, size in sizes.items() if 0 < size < form.m},
        np.ascontiguousarray(cutoffs[:, group]),
        form.copies,
        form.margin,
        budget,
        leave_out.expired,
    )
    return int(state.ctrl[alive_folds.NODES]), state if finished else None


class _Winners:
    """The supports that the trees found best, by (tau, fold), and the trees' two least objectives there."""

    def __init__(self, root: leave_fold_out.RootNode) -> None:
        leave_out = root.leave_out
        shape = (len(leave_out.taus), leave_out.folds.k)
        self.root = root
        self.which = np.full(shape, -1, dtype=np.int64)
        self.best, self.second = np.full(shape, np.inf), np.full(shape, np.inf)
        self.supports: list[IntArray] = []
        self.tau_index: list[int] = []
        self._numbers: dict[tuple[int, bytes], int] = {}

    def add(self, tree: Tree, t: int, size: int) -> None:
        """Take over what a tree found for a tau."""
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
            self.supports.append(self.root.whole(mask))
            self.tau_index.append(t)
        return self._numbers[key]


def _loo_tree_decide(root: leave_fold_out.RootNode, trees: Sequence[Tree], sizes: dict[int, int]) -> int:
    """Fit the winners on all rows, leave every fold out by closed form, and write the cells on which both agree."""
    leave_out, form = root.leave_out, root.form
    winners = _Winners(root)
    for tree in trees:
        for t, size in sizes.items():
            winners.add(tree, t, size)
    which, best = winners.which, winners.best
    listing = leave_fold_out.listed_supports(root.problem, winners.supports, winners.tau_index)
    limit = np.where(which >= 0, listing.value[np.maximum(which, 0)], -np.inf)
    folds = slice(0, leave_out.folds.k)
    scores = leave_out.score(listing, leave_out.rows(0, leave_out.folds.k), limit, root.leverage)
    sure = scores.which == which
    for t, size in sizes.items():
        if size in (0, form.m):
            best[t] = scores.value[t]
    sure &= leave_fold_out.clear_of_ties(best, winners.second, form)
    with np.errstate(invalid="ignore"):
        sure &= np.abs(scores.value - best) <= 0.5 * (form.keep * scores.value + form.slack)
    sure &= root.leverage < leave_fold_out.LARGEST_LEVERAGE
    return leave_out.decide((root.g, folds), scores, leave_out.pool_numbers(listing), sure, root.inner[:, None])


LEAST_SHARE = 0.6  # of the folds that must have a leverage thresholds can use
FOLD_OVERHEAD = 200  # nodes' worth of work that a tree of its own costs beside its nodes


class SharedTrees:
    """What one branch-and-bound on all rows can decide for all folds at once.

    Parameters
    ----------
    state : SearchState
        With the best supports found on all rows; decided cells are written there.
    """

    def __init__(self, state: SearchState) -> None:
        self.state = state
        self._roots: dict[int, leave_fold_out.RootNode | None] = {}

    @cached_property
    def leave_out(self) -> leave_fold_out.LeaveOut:
        """Closed-form leave-fold-out scores; O(n q^2) the first time."""
        return leave_fold_out.LeaveOut(self.state)

    def root(self, g: int) -> leave_fold_out.RootNode | None:
        """Return the fit on all rows that trees for all folds start from; None where they are no use.

        Made when first asked for, O(n q^2), and kept.
        """
        if g not in self._roots:
            self._roots[g] = self._new_root(g)
        return self._roots[g]

    def _new_root(self, g: int) -> leave_fold_out.RootNode | None:
        leave_out = self.leave_out
        wanted, folds, q = self._open_taus(g), leave_out.folds, leave_out.data.q
        usable = folds.sizes.max() <= LARGEST_FOLD and q <= PATH_TREE_COLUMNS
        usable = usable and folds.left is None  # the identities score every row that is left out
        if folds.k < FEWEST_FOLDS * folds.times_scored or not usable or not wanted:
            return None
        form = leave_out.all_rows.normal_form(g)
        if form.keep > leave_fold_out.WIDEST_KEEP or form.m == 0:
            return None
        root = leave_fold_out.RootNode(leave_out, g, wanted)
        if float(np.mean(root.leverage < leave_fold_out.WIDEST_LEVERAGE)) < LEAST_SHARE:
            return None
        return root

    def _open_taus(self, g: int) -> list[int]:
        """Return the indices of the taus with open cells."""
        return np.flatnonzero(self.state.open[g].any(axis=1)).tolist()

    def decide_gamma(self, g: int) -> None:
        """Decide what can be decided of a whole gamma; nothing is kept of it."""
        root = None if self.leave_out.expired() else self._new_root(g)
        if root is not None:
            self._decide(root, self._open_taus(g), self.state.all_rows.best[g].nodes)

    def decide_taus(self, g: int, which: Sequence[int], tree: int) -> int:
        """Decide what can be decided of some tau, given the nodes of one `tree`; returns the nodes spent.

        Parameters
        ----------
        g : int
            Index of gamma.
        which : sequence of int
            Indices of tau with open cells.
        tree : int
            Nodes that one tree on all rows costs.
        """
        root = self.root(g)
        return 0 if root is None else self._decide(root, which, tree)

    def _decide(self, root: leave_fold_out.RootNode, wanted: Sequence[int], tree: int) -> int:
        """Have the engines decide what they can of some tau, and count it; returns the nodes spent."""
        folds, one_tree = self.leave_out.folds, tree + FOLD_OVERHEAD
        shared = is_applicable(self.leave_out, root.form.m)
        budget = one_tree if shared else one_tree * max(folds.k // 4, 1)
        nodes, listed = enumerate_below_thresholds(root, wanted, budget, EVERY_FOLD)
        decided = {"enumerate": listed, "shared": 0}
        if shared and not self.state.cells.final[root.g][list(wanted)].all():
            spent, decided["shared"] = run_alive_folds(root, wanted, folds.k * one_tree)
            nodes += spent
        if not any(decided.values()):
            budget = folds.k * one_tree // 16
            spent, decided["enumerate"] = enumerate_below_thresholds(root, wanted, budget, FEWER_FOLDS)
            nodes += spent
        self.state.counts.add(nodes, problems=1, decided={name: count for name, count in decided.items() if count})
        return nodes

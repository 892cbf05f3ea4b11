"""The alive-fold tree at work: leave-one-out for every tau in one tree (theory section 5).

The tree's own values only steer and prune, with the usual allowance for drift. What it finds is fitted on all rows,
each row left out of that fit by closed form, and compared; a cell whose values disagree, that has a near tie or whose
leverage is near one stays open for a tree of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import alive_folds
from sparsecv_mio.kernels.elimination import new_levels
from sparsecv_mio.kernels.leave_out import HeldOutRows
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.search.shared_tree.identities import LARGEST_LEVERAGE, largest_decrease
from sparsecv_mio.search.shared_tree.leave_out import LeaveOut
from sparsecv_mio.search.shared_tree.listed_supports import ListedSupports, clear_of_ties
from sparsecv_mio.search.shared_tree.root_node import RootNode

Tree = tuple[IntArray, alive_folds.AliveState]  # some folds and what one tree found for them

MEMORY = 256 << 20  # bytes the tree may take
GROUP = 192  # folds a tree: its columns stay in the cache, and groups run on threads
SLICE = 2_000  # nodes between two checks of the clock
KEPT_SUPPORTS = 1024  # that a tree has room for at first


def is_applicable(leave_out: LeaveOut, columns: int) -> bool:
    """Whether every fold is one row and the tree stays within its memory."""
    folds = leave_out.folds
    return bool(folds.sizes.max() == 1) and leave_out.one_chunk and alive_folds.memory(columns, folds.k) <= MEMORY


def run_alive_folds(root: RootNode, wanted: Sequence[int], budget: int) -> tuple[int, int]:
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
    open_folds = np.flatnonzero((root.leverage < LARGEST_LEVERAGE) & ~final)
    sizes = {t: min(root.choice.size(int(leave_out.taus[t])), form.m) for t in wanted}
    if len(open_folds) == 0 or not any(0 < size < form.m for size in sizes.values()):
        return 0, 0
    # a node is pruned once it is useless to every fold of its tree: folds that need about as many nodes share one
    decrease = largest_decrease(root.residual[open_folds], root.leverage[open_folds])
    open_folds = open_folds[np.argsort(decrease, kind="stable")]
    groups = [open_folds[lo : lo + GROUP] for lo in range(0, len(open_folds), GROUP)]
    rows, cutoffs = leave_out.rows(0, leave_out.folds.k), root.cutoffs(0, leave_out.folds.k)
    threads = leave_out.context.threads
    trees = on_threads(lambda group: _grow(root, group, rows, cutoffs, sizes, budget), groups, threads)
    done = [(group, state) for group, (_, state) in zip(groups, trees, strict=True) if state is not None]
    nodes = sum(spent for spent, _ in trees)
    return nodes, _decide(root, done, sizes) if done else 0


def _grow(
    root: RootNode, group: IntArray, rows: HeldOutRows, cutoffs: FloatArray, sizes: dict[int, int], budget: int
) -> tuple[int, alive_folds.AliveState | None]:
    """One tree for a group of folds: its nodes, and what it found if it came to its end."""
    leave_out, form = root.leave_out, root.form
    inner = sorted(size for size in sizes.values() if 0 < size < form.m)
    row_of = np.full(form.m + 1, -1, dtype=np.int64)
    for t, size in sizes.items():
        if 0 < size < form.m:
            row_of[size] = t
    part = leave_out.all_rows.eliminated(root.g)
    V, r = part.about(rows.V[group], rows.r[group])
    X = V[:, form.columns] * form.scale
    W = root.V @ X.T
    leverage = part.leverage(rows.V[group]) + leave_out.intercept_leverage * rows.root[group] ** 2
    state = alive_folds.new_state(
        new_levels(root.V, root.beta, root.value, inner[0], inner[-1]),
        W,
        r - X @ root.beta,
        np.einsum("ij,ji->i", X, W) + leverage,
        np.arange(len(group)),
        row_of,
        np.ascontiguousarray(cutoffs[:, group]),
        KEPT_SUPPORTS,
    )
    code = alive_folds.BUDGET
    while code != alive_folds.FINISHED and state.ctrl[alive_folds.NODES] < budget and not leave_out.expired():
        code = alive_folds.run(state, form.copies, form.margin, SLICE)
        if code == alive_folds.FULL:
            state = alive_folds.grown(state)
    return int(state.ctrl[alive_folds.NODES]), state if code == alive_folds.FINISHED else None


class _Winners:
    """The supports that the trees found best, by (tau, fold), and the trees' two least objectives there."""

    def __init__(self, root: RootNode) -> None:
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
        found, index = np.unique(state.answers.which[t], return_inverse=True)
        ours = np.array([self._number(t, state.kept_mask[n]) if n >= 0 else -1 for n in found])
        self.which[t, group] = ours[index.reshape(-1)]
        self.best[t, group], self.second[t, group] = state.answers.best[t], state.answers.second[t]

    def _number(self, t: int, mask: BoolArray) -> int:
        key = (t, mask.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.supports)
            self.supports.append(self.root.whole(mask))
            self.tau_index.append(t)
        return self._numbers[key]


def _decide(root: RootNode, trees: Sequence[Tree], sizes: dict[int, int]) -> int:
    """Fit the winners on all rows, leave every fold out by closed form, and write the cells on which both agree."""
    leave_out, form = root.leave_out, root.form
    winners = _Winners(root)
    for tree in trees:
        for t, size in sizes.items():
            winners.add(tree, t, size)
    which, best = winners.which, winners.best
    listing = ListedSupports.of(root.problem, winners.supports, winners.tau_index)
    limit = np.where(which >= 0, listing.value[np.maximum(which, 0)], -np.inf)
    folds = slice(0, leave_out.folds.k)
    scores = leave_out.score(listing, leave_out.rows(0, leave_out.folds.k), limit, root.leverage)
    sure = scores.which == which
    for t, size in sizes.items():
        if size in (0, form.m):
            best[t] = scores.value[t]
    sure &= clear_of_ties(best, winners.second, form)
    with np.errstate(invalid="ignore"):
        sure &= np.abs(scores.value - best) <= 0.5 * (form.keep * scores.value + form.slack)
    sure &= root.leverage < LARGEST_LEVERAGE
    return leave_out.decide((root.g, folds), scores, leave_out.pool_numbers(listing), sure, root.inner[:, None])

"""The alive-fold tree at work: leave-one-out for every tau in one tree (theory section 5).

The tree's own values only steer and prune, with the usual allowance for drift. What it finds is refitted on all rows,
left out of afresh, and compared; a cell whose values disagree, that has a near tie or whose leverage is near one stays
open for a tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.kernels import alive_folds
from sparsecv_mio.search.shared_tree.leave_out import SAFE_ETA, LeaveOut, ListedSupports, clear_of_ties
from sparsecv_mio.search.shared_tree.tree_root import TreeRoot

MEMORY = 256 << 20  # bytes the tree may take
GROUP = 192  # folds a tree: its columns stay in the cache, and groups run on threads
SLICE = 2_000  # nodes between two looks at the clock


def fits(full: LeaveOut, columns: int) -> bool:
    """Whether every fold is one row and the tree stays within its memory."""
    return bool(full.folds.sizes.max() == 1) and full.single and alive_folds.memory(columns, full.folds.k) <= MEMORY


def run_alive_folds(
    full: LeaveOut, root: TreeRoot, wanted: Sequence[int], budget: int, expired: Callable[[], bool]
) -> tuple[int, int]:
    """Decide the open cells of one gamma: (nodes, cells decided). Nothing is decided when the budget runs out."""
    form = root.form
    rows, r, _ = full.rows(0, full.folds.k)
    open_folds = np.flatnonzero((root.eta < SAFE_ETA) & ~full.cells.final[root.g][list(wanted)].all(axis=0))
    sizes = {t: min(int(full.taus[t]), form.m) for t in wanted}
    inner = sorted(s for s in sizes.values() if 0 < s < form.m)
    if not inner or len(open_folds) == 0:
        return 0, 0
    row_of = np.full(form.m + 1, -1, dtype=np.int64)
    for t, size in sizes.items():
        if 0 < size < form.m:
            row_of[size] = t
    # folds alike in how far a support may stray from the best die together
    open_folds = open_folds[np.argsort(root.residual[open_folds] ** 2 / (1.0 - root.eta[open_folds]), kind="stable")]
    groups = [open_folds[lo : lo + GROUP] for lo in range(0, len(open_folds), GROUP)]
    bars = root.bars(0, full.folds.k)

    def grow(group: NDArray[np.int64]) -> tuple[int, alive_folds.AliveState | None]:
        X = rows[group][:, form.columns] * form.scale
        W = root.V @ X.T
        state = alive_folds.new_state(
            root.V,
            root.beta,
            root.value,
            W,
            r[group] - X @ root.beta,
            np.einsum("ij,ji->i", X, W) + full.lift,
            np.arange(len(group)),
            row_of,
            np.ascontiguousarray(bars[:, group]),
            inner[0],
            inner[-1],
            1024,
        )
        code = alive_folds.BUDGET
        while code != alive_folds.FINISHED and state.ctrl[alive_folds.NODES] < budget and not expired():
            code = alive_folds.run(state, form.copy_prev, form.copy_next, form.keep, form.slack, SLICE)
            if code == alive_folds.FULL:
                state = alive_folds.grown(state)
        return int(state.ctrl[alive_folds.NODES]), state if code == alive_folds.FINISHED else None

    if full.threads > 1 and len(groups) > 1:
        with ThreadPoolExecutor(full.threads) as pool:
            trees = list(pool.map(grow, groups))
    else:
        trees = [grow(group) for group in groups]
    done = [(group, state) for group, (_, state) in zip(groups, trees, strict=True) if state is not None]
    nodes = sum(spent for spent, _ in trees)
    return nodes, _decide(full, root, done, sizes) if done else 0


def _decide(
    full: LeaveOut,
    root: TreeRoot,
    trees: list[tuple[NDArray[np.int64], alive_folds.AliveState]],
    sizes: dict[int, int],
) -> int:
    """Refit the winners, leave every fold out of them afresh, and write the cells on which both agree."""
    form = root.form
    shape = (len(full.taus), full.folds.k)
    winner = np.full(shape, -1, dtype=np.int64)
    best, second = np.full(shape, np.inf), np.full(shape, np.inf)
    number: dict[tuple[int, bytes], int] = {}
    supports: list[NDArray[np.int64]] = []
    place: list[int] = []

    def listed(t: int, mask: NDArray[np.bool_]) -> int:
        key = (t, mask.tobytes())
        if key not in number:
            number[key] = len(supports)
            supports.append(form.columns[mask])
            place.append(t)
        return number[key]

    for group, state in trees:
        for t, size in sizes.items():
            if size in (0, form.m):
                winner[t, group] = listed(t, np.full(form.m, size > 0))
                continue
            found, index = np.unique(state.which[t], return_inverse=True)
            ours = np.array([listed(t, state.kept_mask[n]) if n >= 0 else -1 for n in found])
            winner[t, group] = ours[index.reshape(-1)]
            best[t, group], second[t, group] = state.best[t], state.second[t]
    listing = ListedSupports.of(root.problem, supports, place)
    limit = np.where(winner >= 0, listing.value[np.maximum(winner, 0)], -np.inf)
    scores = full.score(listing, full.rows(0, full.folds.k), limit, np.minimum(root.eta, 0.9999))
    sure = scores.which == winner
    for t, size in sizes.items():
        if size in (0, form.m):
            best[t] = scores.best[t]
    sure &= clear_of_ties(best, second, form)
    with np.errstate(invalid="ignore"):
        sure &= np.abs(scores.best - best) <= 0.5 * (form.keep * scores.best + form.slack)
    sure &= root.eta < SAFE_ETA
    return full.settle(root.g, 0, full.folds.k, scores, full.numbers(listing), form, sure)

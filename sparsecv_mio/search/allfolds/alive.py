"""The alive-fold tree at work: leave-one-out for every tau in one tree (theory section 5).

The tree's own values only steer and prune, with the usual allowance for drift. What it finds is refitted on all rows,
left out of afresh, and compared; a cell whose values disagree, that has a near tie or whose leverage is near one stays
open for a tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.kernels import alive_folds
from sparsecv_mio.search.allfolds.full import SAFE_ETA, FullData, Listing, clear_of_ties
from sparsecv_mio.search.allfolds.root import Root

MEMORY = 256 << 20  # bytes the tree may take
SLICE = 2_000  # nodes between two looks at the clock


def fits(full: FullData, columns: int) -> bool:
    """Whether every fold is one row and the tree stays within its memory."""
    return bool(full.folds.sizes.max() == 1) and full.single and alive_folds.memory(columns, full.folds.k) <= MEMORY


def run_alive_folds(
    full: FullData, root: Root, wanted: Sequence[int], budget: int, expired: Callable[[], bool]
) -> tuple[int, int]:
    """Decide the open cells of one gamma: (nodes, cells decided). Nothing is decided when the budget runs out."""
    form = root.form
    rows, r, starts = full.rows(0, full.folds.k)
    open_folds = np.flatnonzero((root.eta < SAFE_ETA) & ~full.cells.final[root.g][list(wanted)].all(axis=0))
    sizes = {t: min(int(full.taus[t]), form.m) for t in wanted}
    inner = sorted(s for s in sizes.values() if 0 < s < form.m)
    if not inner or len(open_folds) == 0:
        return 0, 0
    row_of = np.full(form.m + 1, -1, dtype=np.int64)
    for t, size in sizes.items():
        if 0 < size < form.m:
            row_of[size] = t
    X = rows[open_folds][:, form.columns] * form.scale
    W = root.V @ X.T
    state = alive_folds.new_state(
        root.V,
        root.beta,
        root.value,
        W,
        r[open_folds] - X @ root.beta,
        np.einsum("ij,ji->i", X, W) + full.lift,
        open_folds,
        row_of,
        root.bars(0, full.folds.k).copy(),
        inner[0],
        inner[-1],
        1024,
    )
    code = alive_folds.BUDGET
    while code != alive_folds.FINISHED and state.ctrl[alive_folds.NODES] < budget and not expired():
        code = alive_folds.run(state, form.copy_prev, form.copy_next, form.keep, form.slack, SLICE)
        if code == alive_folds.FULL:
            state = alive_folds.grown(state)
    nodes = int(state.ctrl[alive_folds.NODES])
    if code != alive_folds.FINISHED:
        return nodes, 0
    return nodes, _decide(full, root, state, sizes, open_folds)


def _decide(
    full: FullData,
    root: Root,
    state: alive_folds.AliveState,
    sizes: dict[int, int],
    open_folds: NDArray[np.int64],
) -> int:
    """Refit the winners, leave every fold out of them afresh, and write the cells on which both agree."""
    form = root.form
    rows, r, starts = full.rows(0, full.folds.k)
    supports, place = [], []
    winner = np.full(state.which.shape, -1, dtype=np.int64)
    best, second = state.best.copy(), state.second
    for t, size in sizes.items():
        if size in (0, form.m):
            masks, index = [np.full(form.m, size > 0)], np.zeros(len(open_folds), dtype=np.int64)
        else:
            numbers, index = np.unique(state.which[t, open_folds], return_inverse=True)
            masks = [state.kept_mask[n] if n >= 0 else np.zeros(form.m, dtype=bool) for n in numbers]
            index = np.where(state.which[t, open_folds] >= 0, index.reshape(-1), -len(supports) - 1)
        winner[t, open_folds] = index + len(supports)
        supports.extend(form.columns[mask] for mask in masks)
        place.extend([t] * len(masks))
    listing = Listing.of(root.problem, supports, place, full.unit)
    limit = np.where(winner >= 0, listing.value[np.maximum(winner, 0)], -np.inf)
    scores = full.score(listing, rows, r, starts, limit, np.minimum(root.eta, 0.9999), 0)
    sure = scores.which == winner
    for t, size in sizes.items():
        if size in (0, form.m):
            best[t] = scores.best[t]
    sure &= clear_of_ties(best, second, form)
    with np.errstate(invalid="ignore"):
        sure &= np.abs(scores.best - best) <= 0.5 * (form.keep * scores.best + form.slack)
    sure &= root.eta < SAFE_ETA
    return full.settle(root.g, 0, full.folds.k, scores, full.numbers(listing), form, sure)

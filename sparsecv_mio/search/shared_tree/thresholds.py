"""One list for all folds: every support that can win any fold lies below a threshold on all rows (theory section 5).

A support that beats the fold's incumbent has an objective on all rows below the threshold of
:func:`sparsecv_mio.search.shared_tree.identities.objective_threshold`. One pass of the path tree lists every support
below the largest threshold of each tau; those few are then scored in all folds at once by closed form, in chunks of
rows. A fold whose own threshold would list too many supports (a large residual, a leverage near one half or more) is
left to another engine, and so is a cell with a near tie.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.formulation.backends.native.listing import supports_below
from sparsecv_mio.search.shared_tree.identities import WIDEST_LEVERAGE, objective_threshold
from sparsecv_mio.search.shared_tree.listed_supports import Scores, clear_of_ties_refitted
from sparsecv_mio.search.shared_tree.root_node import Candidates, RootNode

MOST_LISTED = 4096  # supports a pass over all rows can afford to score
EVERY_FOLD: tuple[float, ...] = (1.0,)
FEWER_FOLDS: tuple[float, ...] = (0.95, 0.7)  # shares of the folds the thresholds cover, tried in turn
OUTWARD = 1e-6  # relative, of a threshold's height above the objective of all columns
SINGLE_PRECISION_FOLDS = 200_000  # beyond so many folds thresholds are kept in single precision, rounded up


def enumerate_below_thresholds(
    root: RootNode, wanted: Sequence[int], budget: int, levels: tuple[float, ...]
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
        found, spent = supports_below(form, solved, cutoffs, budget, MOST_LISTED, leave_out.expired)
        nodes += spent
        if found is not None:
            del limit
            return nodes, _decide(root, _candidates(root, found, sizes), cover)
        if leave_out.expired():
            break
    return nodes, 0


def fold_thresholds(root: RootNode) -> FloatArray:
    """(T, K): objective on all rows that no support winning the fold exceeds; inf where leverages are too high."""
    leave_out = root.leave_out
    k = leave_out.folds.k
    limit = np.full((len(leave_out.taus), k), -np.inf, dtype=np.float32 if k > SINGLE_PRECISION_FOLDS else float)

    def measure(lo: int, hi: int) -> None:
        found = _thresholds(root, root.scores(lo, hi), lo, hi)
        limit[:, lo:hi] = np.nextafter(found.astype(limit.dtype), np.inf) if limit.dtype == np.float32 else found

    leave_out.over_chunks(measure)
    return limit


def _thresholds(root: RootNode, incumbents: Scores, lo: int, hi: int) -> FloatArray:
    """(T, hi - lo): the thresholds of folds lo..hi of a chunk, from the scores of the incumbents there."""
    height = objective_threshold(root.raised(incumbents) - root.lower, root.residual[lo:hi], root.leverage[lo:hi])
    return np.asarray(height * (1.0 + OUTWARD) + root.lower + root.form.slack)


def _cover(limit: FloatArray, wanted: Sequence[int], level: float, folds: int) -> FloatArray:
    """Value, by tau, that the thresholds of a share of the folds stay below."""
    cover = np.full(limit.shape[0], -np.inf)
    for t in wanted:
        finite = limit[t][np.isfinite(limit[t])]
        if len(finite):
            out = min(max(len(finite) - int(np.ceil(level * folds)), 0), len(finite) - 1)
            cover[t] = finite.max() if out == 0 else np.partition(finite, len(finite) - out - 1)[len(finite) - out - 1]
    return cover


def _candidates(root: RootNode, found: dict[int, list[BoolArray]], sizes: dict[int, int]) -> Candidates:
    """Return the incumbents, then what else the tree found."""
    supports, tau_index = [], []
    known = {(t, np.sort(support).tobytes()) for support, t in zip(root.supports, root.tau_index, strict=True)}
    for t, size in sizes.items():
        for mask in found.get(size, []):
            support = root.whole(mask)
            if (t, np.sort(support).tobytes()) not in known:
                supports.append(support)
                tau_index.append(t)
    return Candidates(root, supports, tau_index)


def _decide(root: RootNode, candidates: Candidates, cover: FloatArray) -> int:
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
        sure = clear_of_ties_refitted(scores.value, scores.second, value_error)
        sure &= (limit <= cover[:, None]) & (leverage < WIDEST_LEVERAGE)
        part = root.g, slice(lo, hi)
        decided.append(leave_out.decide(part, scores, candidates.numbers, sure, root.inner[:, None]))

    leave_out.over_chunks(decide)
    return sum(decided)

"""Every fold at once from supports listed on all rows, left out of exactly: no tree of a fold's own, no refit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.formulation.backends.native.path import PathResult
from sparsecv_mio.search.shared_tree.leave_out import SAFE_ETA, WIDEST_ETA, ListedSupports, clear_of_ties_refitted
from sparsecv_mio.search.shared_tree.tree_root import TreeRoot

ROUNDING = 1e-8  # of leverages and residuals at all columns
KNOWN_ERROR = 1e-6  # of a held-out error: an estimate needs no more


def look(root: TreeRoot, best: PathResult) -> None:
    """Write what the supports of all rows say of every open cell of a gamma.

    Their held-out errors are the estimates that order the search. Their values u are feasible in the fold, so with a
    lower bound v of the optimum on all rows `h_N >= v - u` (theory section 3). At all columns, with e, eta and f taken
    on all rows, the fold's ridge solution b0 has `f^(-N)(b0) >= f - ||e||^2 / (1 - eta)`, leaves residuals of norm at
    most `||e|| / (1 - eta)`, and in its ball (theory section 2, eps = lam) predictions move by at most
    `sqrt((u - f^(-N)(b0)) eta / (1 - eta))`: an upper bound of the root of h_N. O(n tau^2) a support.
    """
    full, g, form = root.full, root.g, root.form
    numbers = full.numbers(root.listed)
    floor = np.array([best.cells[int(tau)].lower for tau in full.taus]) - form.slack
    cells = full.cells

    def write(lo: int, hi: int) -> None:
        scores, bars = root.scores(lo, hi), root.bars(lo, hi)
        known = (scores.which >= 0) & (scores.error <= KNOWN_ERROR * scores.held + form.slack)
        known &= ~cells.final[g, :, lo:hi]
        part = (g, slice(None), slice(lo, hi))
        cells.offer(part, numbers[scores.which], scores.held, np.where(known, scores.best, np.nan))
        least = np.where(known, floor[:, None] - bars, 0.0)
        eta, size = np.minimum(root.eta[lo:hi], 1.0), root.residual[lo:hi] * (1.0 + ROUNDING) + form.slack
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            radius = np.maximum(bars - (root.floor - size**2 / (1.0 - eta)), 0.0)
            most = (size / (1.0 - eta) + np.sqrt(radius * eta / (1.0 - eta))) ** 2 * (1.0 + ROUNDING)
        most = np.where(known & (eta < SAFE_ETA), most, np.inf)
        cells.narrow(part, least, most)

    full.over_chunks(write)


def show(root: TreeRoot, supports: Sequence[NDArray[np.int64]], place: Sequence[int]) -> None:
    """Offer more supports, each for a row of tau, to every open cell of a gamma. O(n s^2) a support."""
    full, g, form = root.full, root.g, root.form
    first = len(root.supports)
    listing = ListedSupports.of(root.problem, [*root.supports, *supports], [*root.place, *place])
    numbers = full.numbers(listing)

    def write(lo: int, hi: int) -> None:
        scores = root.scores(lo, hi).copy()
        everything = np.full((len(full.taus), hi - lo), np.inf)
        full.score(listing.after(first), full.rows(lo, hi), everything, np.full(hi - lo, 0.9999), first, scores)
        known = (scores.which >= 0) & (scores.error <= KNOWN_ERROR * scores.held + form.slack)
        part = (g, slice(None), slice(lo, hi))
        full.cells.offer(part, numbers[scores.which], scores.held, np.where(known, scores.best, np.nan))

    full.over_chunks(write)


def lift(root: TreeRoot, t: int, supports: Sequence[NDArray[np.int64]], reach: float) -> NDArray[np.bool_]:
    """Raise the lower bounds of a pair's open cells to what a list on all rows proves; the folds that were served.

    `supports` holds every support of tau columns with `f <= reach`; with `ubar` the best value known in a fold, an
    optimum is listed or `h_N >= reach - ubar` (:mod:`sparsecv_mio.search.shared_tree.near_optimal`). Folds with a near
    tie or a high leverage are left to a refit of their own.
    """
    full, g, form = root.full, root.g, root.form
    first = len(root.supports)
    places = [*root.place, *[t] * len(supports)]
    listing = ListedSupports.of(root.problem, [*root.supports, *supports], places)
    numbers = full.numbers(listing)
    blur = float(listing.blur_of(len(full.taus))[t])
    cells = full.cells
    served = np.zeros(full.folds.k, dtype=bool)

    def write(lo: int, hi: int) -> None:
        scores = root.scores(lo, hi).copy()
        everything = np.full((len(full.taus), hi - lo), np.inf)
        full.score(listing.after(first), full.rows(lo, hi), everything, np.full(hi - lo, 0.9999), first, scores)
        best, held, error = scores.best[t], scores.held[t], scores.error[t]
        known = clear_of_ties_refitted(best, scores.second[t], blur) & (root.eta[lo:hi] < WIDEST_ETA)
        known &= (scores.which[t] >= 0) & (error <= KNOWN_ERROR * held + form.slack)
        ubar = best * (1.0 + form.keep) + form.slack + 2.0 * blur
        least = np.minimum(reach - ubar, held - error)
        part = (g, t, slice(lo, hi))
        write_to = known & ~cells.final[part]
        cells.offer(part, numbers[scores.which[t]], held, np.where(write_to, best, np.nan))
        cells.narrow(part, np.where(write_to, least, 0.0), np.inf)
        served[lo:hi] = known

    full.over_chunks(write)
    return served

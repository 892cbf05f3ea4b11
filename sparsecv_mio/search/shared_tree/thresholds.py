"""One tree for all folds, by thresholds: every support that can win any fold, listed once (theory section 5).

Leaving a fold N out of a ridge fit is exact: `f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N`. With A all columns, `e`
and `eta = lambda_max(H_NN)` taken at A,

    f(S) - f^(-N)(S) <= ( ||e_N|| + sqrt(eta (f(S) - f(A))) )^2 / (1 - eta),

so a support that beats the fold's incumbent has `f(S)` below a threshold, the larger root of a scalar quadratic. One
pass of the path tree lists every support below the largest threshold of each tau; those few are then left out of
exactly, for all folds at once, in chunks of rows. A fold whose own threshold would list too many supports (a large
residual, a leverage near one half or more) is left to another engine, and so is a cell with a near tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.formulation.backends.native.listing import supports_below
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.search.shared_tree.leave_out import WIDEST_ETA, LeaveOut, ListedSupports, clear_of_ties_refitted
from sparsecv_mio.search.shared_tree.tree_root import TreeRoot

LISTED = 4096  # supports a chunked pass can afford to list
EVERY_FOLD: tuple[float, ...] = (1.0,)
FEWER_FOLDS: tuple[float, ...] = (0.95, 0.7)  # shares of the folds the thresholds cover, tried in turn


def enumerate_below_thresholds(
    full: LeaveOut,
    root: TreeRoot,
    wanted: Sequence[int],
    budget: int,
    levels: tuple[float, ...],
    expired: Callable[[], bool],
) -> tuple[int, int]:
    """Decide what thresholds can decide of one gamma.

    Parameters
    ----------
    full : LeaveOut
    root : TreeRoot
        The full-data fit of the gamma at all columns, with the folds' incumbents.
    wanted : sequence of int
        Rows of tau with open cells.
    budget : int
        Nodes each level may cost.
    levels : tuple of float
        Shares of the folds to cover, tried in turn until a listing fits the budget.
    expired : callable

    Returns
    -------
    nodes, decided : int
    """
    form = root.form
    shape = (len(full.taus), full.folds.k)
    limit = np.full(shape, -np.inf, dtype=np.float32 if full.folds.k > 200_000 else float)

    def thresholds(lo: int, hi: int) -> None:
        bar = root.bars(lo, hi)
        room = bar - root.floor
        found = _larger_root(room, root.residual[lo:hi], root.eta[lo:hi]) * (1.0 + 1e-6) + root.floor + form.slack
        limit[:, lo:hi] = np.nextafter(found.astype(limit.dtype), np.inf) if limit.dtype == np.float32 else found

    full.over_chunks(thresholds)
    nodes = 0
    sizes = {t: min(int(full.taus[t]), form.m) for t in wanted}
    for level in levels:
        cover = _cover(limit, wanted, level, full.folds.k)
        bars = np.full(form.m + 1, -np.inf)
        for t in wanted:
            bars[sizes[t]] = max(bars[sizes[t]], cover[t])
        found, spent = supports_below(form, (root.V, root.beta, root.value), bars, budget, LISTED, expired)
        nodes += spent
        if found is not None:
            listing = _listing(full, root, found, sizes)
            return nodes, _decide(full, root, listing, limit, cover)
        if expired():
            break
    return nodes, 0


def _cover(limit: FloatArray, wanted: Sequence[int], level: float, folds: int) -> FloatArray:
    """Bar by tau under which a share of the folds has its threshold."""
    cover = np.full(limit.shape[0], -np.inf)
    for t in wanted:
        finite = limit[t][np.isfinite(limit[t])]
        if len(finite):
            out = min(max(len(finite) - int(np.ceil(level * folds)), 0), len(finite) - 1)
            cover[t] = finite.max() if out == 0 else np.partition(finite, len(finite) - out - 1)[len(finite) - out - 1]
    return cover


def _listing(
    full: LeaveOut, root: TreeRoot, found: dict[int, list[NDArray[np.bool_]]], sizes: dict[int, int]
) -> ListedSupports:
    """The incumbents, then what else the tree found, refitted."""
    supports, place = list(root.supports), list(root.place)
    known = {(t, np.sort(support).tobytes()) for support, t in zip(supports, place, strict=True)}
    for t, size in sizes.items():
        for mask in found.get(size, []):
            support = root.form.columns[mask]
            if (t, np.sort(support).tobytes()) not in known:
                supports.append(support)
                place.append(t)
    return ListedSupports.of(root.problem, supports, place)


def _decide(full: LeaveOut, root: TreeRoot, listing: ListedSupports, limit: FloatArray, cover: FloatArray) -> int:
    """Leave every fold out of the listed supports and write the cells that are then known; how many."""
    numbers = full.numbers(listing)
    decided = []
    first = len(root.supports)
    blur = listing.blur_of(len(full.taus))[:, None]

    def decide(lo: int, hi: int) -> None:
        scores = root.scores(lo, hi).copy()
        eta = np.minimum(root.eta[lo:hi], 0.9999)
        full.score(listing.after(first), full.rows(lo, hi), limit[:, lo:hi], eta, first, scores)
        sure = clear_of_ties_refitted(scores.best, scores.second, blur)
        sure &= (limit[:, lo:hi] <= cover[:, None]) & (root.eta[lo:hi] < WIDEST_ETA)
        decided.append(full.settle(root.g, lo, hi, scores, numbers, root.form, sure))

    full.over_chunks(decide)
    return sum(decided)


def _larger_root(room: FloatArray, residual: FloatArray, eta: FloatArray) -> FloatArray:
    """Largest `u^2` with `u^2 - (residual + sqrt(eta) u)^2 / (1 - eta) <= room`, inf where eta >= WIDEST_ETA.

    Nothing is left below a negative discriminant; 0 is returned there.
    """
    safe = np.where(eta < WIDEST_ETA, eta, 0.0)
    a = (1.0 - 2.0 * safe) / (1.0 - safe)
    b = residual * np.sqrt(safe) / (1.0 - safe)
    c = residual**2 / (1.0 - safe) + room
    with np.errstate(invalid="ignore"):
        u = (b + np.sqrt(np.maximum(b * b + a * c, 0.0))) / a
    return np.where(eta < WIDEST_ETA, u * u, np.inf)

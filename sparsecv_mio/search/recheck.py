"""What a search is about to report, computed again by the arithmetic of `verify`, which shares nothing with the search.

No run says `proved`, or prints an upper end, that its own verifier refuses. At the end the folds of the reported pair
are refitted from the numbers of the file, and its supports compared with those one column away; then a sample of the
other decided cells is. A fold where the two disagree by more than rounding is known to nobody: all its intervals become
[0, inf), the status says so, and a warning names the pair, the fold and what was seen.

It costs `SHARE` of the seconds that the search took, or what is left of a limit, whichever is less: folds and cells are
drawn by a fixed seed, and there are as many as time allows, `FEWEST` at least.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.enumeration import UnitColumns
from sparsecv_mio.certificate.optimality import H_RTOL
from sparsecv_mio.certificate.refits import Exchanges
from sparsecv_mio.problem.objective import held_out_error
from sparsecv_mio.search.cells import Where
from sparsecv_mio.search.context import Snapshot
from sparsecv_mio.search.pairs import pair_bounds
from sparsecv_mio.units import TINY

SHARE, FEWEST = 0.03, 5  # of the seconds of a search, that it may take, beyond so many cells
EXCHANGES = 2e7  # elementary operations, about, that comparing the supports of a pair with their neighbours may take


def rechecked(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without the ends that a refit by plain arithmetic refuses.

    Parameters
    ----------
    snapshot : Snapshot
        Its cells are written: nothing else may write them any more.
    """
    context, cells = snapshot.context, snapshot.cells
    deadline = context.deadline
    until = time.monotonic() + min(SHARE * deadline.seconds, deadline.left)
    look: _Recheck | None = None
    doubts: list[str] = []
    for done, where in enumerate(_in_turn(snapshot)):
        if done >= FEWEST and time.monotonic() > until:
            break
        look = look or _Recheck(snapshot)
        seen = look.objection(where)
        if seen:
            doubts.append(seen)
            cells.withdraw(where[2])
    return replace(snapshot, doubts=tuple(doubts)) if doubts else snapshot


def _in_turn(snapshot: Snapshot) -> Iterator[Where]:
    """Yield decided cells: those of the pair to report, then the others, both as a fixed seed shuffles them."""
    context, decided = snapshot.context, snapshot.cells.decided
    rng, grid = np.random.default_rng(0), context.grid
    known = pair_bounds(snapshot.cells, grid.gammas, grid.taus)
    g, t = known.reported_pair(context.gap, grid.gammas, grid.taus)
    for fold in rng.permutation(np.flatnonzero(decided[g, t])).tolist():
        if decided[g, t, fold]:
            yield g, t, fold
    size = decided.size
    for _ in range(size):  # cells that come twice are few, and those of withdrawn folds are not decided any more
        where = tuple(int(i) for i in np.unravel_index(int(rng.integers(size)), decided.shape))
        if decided[where]:
            yield where[0], where[1], where[2]


class _Recheck:
    """Refits cells in units of the file."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.context, self.cells = snapshot.context, snapshot.cells
        data = self.context.data
        self.design = UnitColumns.within(data.dataset, str(data.scale), str(data.intercept), data.restrictions)
        self.place = np.searchsorted(self.design.columns, data.columns)
        self._exchanges: dict[int, Exchanges] = {}

    def objection(self, where: Where) -> str:
        """Say what a refit has against a decided cell; empty where it has nothing."""
        g, t, fold = where
        context, cells, design = self.context, self.cells, self.design
        gamma, tau, folds = float(context.grid.gammas[g]), int(context.grid.taus[t]), context.folds
        support = tuple(self.place[cells.pool.supports[cells.support[where]]].tolist())
        train, scored, dataset = folds.train_rows(fold), folds.scored_rows(fold), context.data.dataset
        model = design.refit(support, gamma, train)
        error = held_out_error(model, dataset.X, dataset.y, scored, dataset.row_weights)
        unit = context.data.y_unit**2
        low, high = float(cells.lower[where]) * unit, float(cells.upper[where]) * unit
        room = len(scored) * design.slack(error / len(scored), gamma, tau, H_RTOL) + TINY
        named = f"gamma {gamma:.6g}, tau {tau}, fold {fold + 1}"
        if not low - room <= error <= high + room:
            return f"{named}: the search has a held-out error in [{low:.9g}, {high:.9g}], a refit {error:.9g}"
        other = self._better(g, train, folds.left_out(fold), support)
        if other is not None:
            return f"{named}: the features {design.named(other)} fit better than those said to be the best"
        return ""

    def _better(self, g: int, train: IntArray, left_out: IntArray, support: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return a support one column away that fits the training rows better; None where none does, or costs much."""
        design = self.design
        n, q = design.Z.shape
        if design.allowed is not None or n * q * (len(support) + 1) > EXCHANGES:
            return None
        gamma = float(self.context.grid.gammas[g])
        exchanges = self._exchanges.setdefault(g, Exchanges(design, gamma))
        other = exchanges.best(left_out, support)
        return other if other is not None and exchanges.beats(train, other, support) else None

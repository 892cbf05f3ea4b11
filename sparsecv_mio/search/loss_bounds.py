"""Bounds of every cell by what is known of all rows: ridge balls, a closed form, trees on the rows of all folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.refit import RowFit
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.cells import Where
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.fold_fits import FoldProblem
from sparsecv_mio.search.fold_solver import Incumbent, balls_by_gamma
from sparsecv_mio.search.leave_fold_out import first_intervals
from sparsecv_mio.search.pairs import likely_winner
from sparsecv_mio.search.run import Run
from sparsecv_mio.search.shared_trees import SharedTrees
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.units import TIE_RTOL

if TYPE_CHECKING:
    from sparsecv_mio.bounds.wide import WideFold


class LossByRows:
    """What trees on the rows of all folds together exclude.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included; inf where none is known.
    tried : (G, T) int array
        Nodes that a tree on all rows was given.
    """

    def __init__(self, run: Run) -> None:
        r = run.context.data.targets(slice(None))
        self.run, self.values = run, np.full(run.context.shape, np.inf)
        self.slip = ROWS_ROUNDING * float(r @ r)
        self.tried = np.zeros(run.context.shape[:2], dtype=np.int64)

    def note(self, where: Where, fit: RowFit) -> None:
        """Take note of the training objective of a support of the size of a cell."""
        value = (fit.objective + fit.objective_error) * (1.0 + TIE_RTOL)
        if np.isfinite(value):
            self.values[where] = min(self.values[where], value)

    def promising(self, wanted: BoolArray, effort: int) -> BoolArray:
        """(G, T): pairs of some cells (G, T, K) that a tree on all rows may exclude, and was not given the effort yet.

        None before the best pair is known.
        """
        now = self.run.bounds()
        wanted_pairs = wanted.any(axis=2) & (self.tried < effort)
        wanted_pairs[now.best] = False
        return wanted_pairs & np.isfinite(self.enough())

    def winner_first(self, wanted: BoolArray) -> BoolArray:
        """(G, T, K): while no pair has an upper bound, the cells of the one that is likely to win; then `wanted`."""
        now = self.run.bounds()
        if np.isfinite(now.ceiling):
            return wanted
        winner = np.zeros(wanted.shape, dtype=bool)
        winner[likely_winner(now)] = True
        return wanted & winner if (wanted & winner).any() else wanted

    def enough(self) -> FloatArray:
        """(G, T): bounds on all rows from which on a pair is excluded; inf where none is enough."""
        bar = self.run.bounds().ceiling * (1.0 - self.run.context.gap)
        return self.run.enough_to_exclude(self.values, np.full(self.values.shape[:2], bar), self.slip)

    def bound(self, whole: WideFold, g: int, which: list[int], effort: int) -> None:
        """Grow a tree on all rows for some tau of a gamma, as far as it takes to exclude the pair, and bound the folds.

        Parameters
        ----------
        whole : WideFold
            All rows at the gamma.
        g : int
        which : list of int
            Indices of tau.
        effort : int
            Nodes of each tree.
        """
        with self.run.accounts.of(BoundSource.ALL_ROWS):
            self._grow(whole, g, which, effort)

    def _grow(self, whole: WideFold, g: int, which: list[int], effort: int) -> None:
        state = self.run
        with state.cells.lock:
            numbers = set(state.cells.support[g].ravel().tolist()) - {0}
        whole.try_supports([state.cells.pool.supports[number] for number in sorted(numbers)])
        for t in which:
            self.tried[g, t], tau = effort, int(self.run.context.grid.taus[t])
            enough = float(self.enough()[g, t])
            if whole.expired() or not enough < whole.upper(tau):
                continue
            seen, nodes = whole.branch(tau, enough, effort)
            state.counts.add(nodes, problems=1)
            support = whole.incumbent(tau)
            if support is not None:
                cell = BestSubset.unproved(tau, support, whole.upper(tau), seen.lower)
                state.all_rows.improve(g, BestSubsets({tau: cell}, nodes, False))
            self.run.raise_lower_ends(self.values, self.slip)


def narrow_by_ridge_balls(run: Run, values: FloatArray, until: Deadline) -> None:
    """Bound the held-out error of every open cell by a ball (:mod:`sparsecv_mio.bounds.closed_form`).

    O(q^3) for each fold and gamma, whatever the number of taus.

    Parameters
    ----------
    run : Run
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included; inf where that is not known.
    until : Deadline
        Cells not bounded by then are left as they are.
    """
    context, cells = run.context, run.cells
    taus = context.grid.taus.tolist()
    wanted = run.open & np.isfinite(values)

    def narrow(fold: int, moments: TrainingMoments) -> None:
        incumbents = {
            g: [
                Incumbent(taus[t], cells.pool.supports[cells.support[g, t, fold]], float(values[g, t, fold]))
                for t in np.flatnonzero(wanted[g, :, fold]).tolist()
            ]
            for g in np.flatnonzero(wanted[:, :, fold].any(axis=1)).tolist()
        }
        here = FoldProblem.of(context.data, context.folds, fold, moments)
        at_gammas = [(float(context.grid.gammas[g]), some) for g, some in incumbents.items()]
        bounds = context.hands.do(balls_by_gamma, here, at_gammas, until=until)
        for g, (intervals, floors) in zip(incumbents, bounds, strict=False):  # a limit may leave the last ones
            run.counts.add(0, problems=1)
            place = (g, np.flatnonzero(wanted[g, :, fold]), fold)
            cells.narrow(place, [interval.lower for interval in intervals], [interval.upper for interval in intervals])
            cells.raise_floor(place, floors)

    with run.accounts.of(BoundSource.RIDGE_BALLS):
        in_folds(run, wanted, narrow, until)


def bounded_in_closed_form(run: Run, trees: SharedTrees) -> list[int]:
    """Bound every cell by the fits on all rows with the rows of its fold left out; the gammas where that is no use.

    Parameters
    ----------
    run : Run
    trees : SharedTrees
        Of the run; they start from the same fits.

    Returns
    -------
    list of int
        Indices of gammas, those beyond a limit among them.
    """
    others = []
    with run.accounts.of(BoundSource.CLOSED_FORM):
        for g in range(len(run.context.grid.gammas)):
            root = None if run.context.deadline.expired() else trees.root(g)
            if root is None:
                others.append(g)
            else:
                run.counts.add(0, problems=1)
                first_intervals(root)
    return others


def in_folds(
    run: Run, wanted: BoolArray, narrow: Callable[[int, TrainingMoments], None], until: Deadline,
    order: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Bound cells of every fold that has some that are wanted (G, T, K), those not reached by then excepted.

    With an order, only the folds in it, one after the other.
    """
    folds = np.flatnonzero(wanted.any(axis=(0, 1))).tolist()
    groups = [folds] if order is None else [[fold] for fold in order if fold in folds]
    moments = chain.from_iterable(map(run.accelerators.training_moments, groups))
    for _ in run_folds(moments, narrow, run.context.threads) if folds else ():
        if until.expired():
            break

"""The training-loss bound where searches go by rows: one tree on all rows for the folds of a pair."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.bounds.training_loss import ROWS_ROUNDING, enough_on_all_rows, training_loss_bound
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.problem.refit import RowFit
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.search.state.pairs import likely_winner
from sparsecv_mio.units import TIE_RTOL

SURELY = 1.0 + 1e-9  # beyond a bar, for the rounding of sums


class LossByRows:
    """What the folds' training objectives and bounds of all rows say of held-out errors.

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
        self.run = run
        self.values = np.full(run.context.shape, np.inf)
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
        now = self.run.state.bounds()
        found = wanted.any(axis=2) & (self.tried < effort)
        found[now.best] = False
        return found & np.isfinite(self.enough())

    def winner_first(self, wanted: BoolArray) -> BoolArray:
        """(G, T, K): while no pair has an upper bound, the cells of the one that is likely to win; then `wanted`."""
        now = self.run.state.bounds()
        if np.isfinite(now.ceiling):
            return wanted
        winner = np.zeros(wanted.shape, dtype=bool)
        winner[likely_winner(now)] = True
        return wanted & winner if (wanted & winner).any() else wanted

    def enough(self) -> FloatArray:
        """(G, T): bounds on all rows from which on a pair is excluded; inf where none is enough."""
        state, folds = self.run.state, self.run.context.folds
        bar = state.bounds().ceiling * (1.0 - self.run.context.gap) * SURELY
        values = np.where(folds.scores_all_left_out, self.values + self.slip, np.inf)
        return enough_on_all_rows(state.cells.lower, values, np.full(values.shape[:2], bar))

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
        state, folds = self.run.state, self.run.context.folds
        with state.cells.lock:
            numbers = set(state.cells.support[g].ravel().tolist()) - {0}
        whole.try_supports([state.cells.pool.supports[number] for number in sorted(numbers)])
        for t in which:
            self.tried[g, t], tau = effort, int(self.run.context.grid.taus[t])
            enough = float(self.enough()[g, t])
            if whole.expired() or not enough < whole.upper(tau):
                continue
            seen, nodes = whole.branch(tau, enough, effort)
            state.counts.add(nodes)
            support = whole.incumbent(tau)
            if support is not None:
                cell = PathCell.unproved(tau, support, whole.upper(tau), seen.lower)
                state.all_rows.improve(g, PathResult({tau: cell}, nodes, False))
            bound = training_loss_bound(state.all_rows.lower_bounds()[:, :, None], self.values, self.slip)
            state.cells.narrow(np.s_[:, :, :], np.where(folds.scores_all_left_out, bound, 0.0), np.inf)

    @property
    def slip(self) -> float:
        """What rounding may leave between the training rows of a fold and all rows."""
        data = self.run.context.data
        r, root = (data.dataset.y - data.y_center) / data.y_unit - data.r_rest, data.root_of(slice(0, data.n))
        return ROWS_ROUNDING * float(r @ r if root is None else (root * r) @ (root * r))

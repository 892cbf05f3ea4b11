"""One tree for all folds, gamma by gamma; where trees are expensive, only for the taus that may still win.

Trees are spared in this order:

1. The best supports of all rows are scored in every fold, which bounds every held-out error from below
   (:mod:`sparsecv_mio.bounds.training_loss`) and says which pair is likely to win.
2. That pair is decided: its upper sum is the bar.
3. Every gamma, the likely ones first, grows a tree for the taus whose lower sums are still below the bar.

Pairs that are excluded stay open and need estimates in the end, which take longer than cheap trees. So where the bar
excludes few pairs of few columns, none are left out.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.path import SMALL
from sparsecv_mio.search.methods.parts.fold_rounds import FIRST_EFFORT, FoldRounds
from sparsecv_mio.search.methods.parts.loss_bounds import LossBounds
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.shared_tree.first_intervals import first_intervals
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.pairs import likely_winner
from sparsecv_mio.words import Engine

# of the trees on all rows together, beyond which leaving out pairs is tried: up to `SMALL` columns, and beyond
EXPENSIVE_NODES, EXPENSIVE_NODES_OF_MANY = 1 << 14, 64
MOST_LEFT = 0.5  # share of the pairs beyond which it is given up where columns are few
MANY_FOLDS = 10_000  # beyond, what is kept of every gamma takes too much memory


class SharedPass:
    """The first pass over the grid, for all folds at once.

    Parameters
    ----------
    run : Run
    trees : SharedTrees
    rounds : FoldRounds
        Decide the folds of the likely winner that a tree for all folds leaves over.

    Attributes
    ----------
    done : (G,) bool array
        Gammas that were taken.
    bounded : bool
        Whether all cells were bounded and the likely winner was decided.
    excludes : bool
        Whether pairs that cannot win are left out.
    """

    def __init__(self, run: Run, trees: SharedTrees, rounds: FoldRounds) -> None:
        self.run, self.trees, self.rounds = run, trees, rounds
        self.done = np.full(len(run.context.grid.gammas), trees.engine is Engine.PER_FOLD)
        self.bounded = self.excludes = False

    @property
    def left(self) -> bool:
        """Whether some gamma is left."""
        return not self.done.all()

    @property
    def wanted(self) -> BoolArray:
        """(G, T, K): the cells to work on, once all gammas were taken."""
        given_up = self.bounded and not self.excludes and self.rounds.effort == FIRST_EFFORT
        return self.run.state.open if given_up else self.run.state.worth_work()

    def step(self) -> None:
        """Bound all cells and decide the likely winner, or take the next gamma."""
        if not self.bounded and self._may_exclude():
            self._bound_cells()
            self._decide_likely_winner()
            left = self.run.state.worth_work().any(axis=2)
            self.bounded, self.excludes = True, self.run.context.data.q > SMALL or float(left.mean()) <= MOST_LEFT
        else:
            self._next_gamma()
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def _may_exclude(self) -> bool:
        """Whether leaving out pairs may pay: where trees are expensive, and not all pairs are asked for."""
        context, best = self.run.context, self.run.state.all_rows.best
        all_asked_for = context.gap == 0.0 or context.one_se or self.trees.engine is not Engine.AUTO
        if all_asked_for or context.folds.k > MANY_FOLDS:
            return False
        enough = EXPENSIVE_NODES if context.data.q <= SMALL else EXPENSIVE_NODES_OF_MANY
        return sum(result.nodes for result in best) > enough

    def _bound_cells(self) -> None:
        """Bound every cell by the fits on all rows: in closed form where there is one, else refitted in every fold."""
        self.run.signals.doing("bounds of every fold by the fits on all rows")
        refitted = []
        for g in range(len(self.done)):
            if self.run.context.deadline.expired():
                return
            root = self.trees.root(g)
            if root is not None:
                first_intervals(root)
            else:
                refitted.append(g)
        if refitted:
            LossBounds(self.run).apply(gammas=np.array(refitted))

    def _decide_likely_winner(self) -> None:
        state = self.run.state
        g, t = likely_winner(state.bounds())
        self.run.signals.doing(f"trees: tau {self.run.context.grid.taus[t]}, the likely best")
        self.trees.decide_taus(g, [t], state.all_rows.best[g].nodes)
        left = np.zeros(self.run.context.shape, dtype=bool)
        left[g, t] = state.open[g, t]
        if left.any():
            self.rounds.run_round(left, grow=False)

    def _next_gamma(self) -> None:
        """Take the next gamma: the likely winner, if somebody has an estimate, else the largest."""
        state = self.run.state
        self.run.signals.doing("trees of all folds at once: gamma", int(self.done.sum()) + 1, len(self.done))
        if not self.excludes:
            order = self.run.accelerators.gamma_order(self.run.context.grid.gammas)
            g = next(g for g in order if not self.done[g])
            self.trees.decide_gamma(g)
        else:
            g = int(np.argmin(np.where(self.done, np.inf, state.bounds().nominal.min(axis=1))))
            g = g if not self.done[g] else int(np.argmin(self.done))
            which = np.flatnonzero(state.worth_work()[g].any(axis=1)).tolist()
            if which:
                self.trees.decide_taus(g, which, state.all_rows.best[g].nodes)
        self.done[g] = True

    def archive(self) -> Archive:
        """Return where it stands."""
        return {"passed": self.done, "bounded": np.array([self.bounded, self.excludes])}

    def check(self, stored: Archive) -> None:
        """Any mask of the grid's gammas is one."""

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        self.done |= stored["passed"]
        self.bounded, self.excludes = stored["bounded"].tolist()

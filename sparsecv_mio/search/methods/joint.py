"""Joint search over all (gamma, tau): decide the likely winner, and prove of the others no more than that they lose.

First supports. The best supports on all rows are refitted in every fold, and a ball around each fold's ridge solution
bounds every cell. There is no phase one over the whole grid as in Algorithm 1.

Which pair next (`aim`). The pair that is likely to win, by the held-out errors of the supports at hand, is decided:
these are estimates, which order the search and never prune. Its upper bound, less the gap, is the *goal*: a pair whose
lower bound reaches it cannot win and is left in all its remaining folds (racing). Of the pairs below the goal the one
with the least lower bound is next.

What is done for it (`step`), the first of these that may help:

1. a list of near-optimal supports on all rows, which bounds all folds of the pair at once and is stopped at the value
   that suffices for the goal (:mod:`sparsecv_mio.search.shared_tree.list_bounds`);
2. one tree for all folds (:mod:`sparsecv_mio.search.shared_tree.engines`), of the likely winner before any list;
3. bounds without branching for the whole gamma (:mod:`sparsecv_mio.bounds`), where trees are expensive;
4. branch-and-bound in the folds that are left: where trees are expensive in rounds of growing effort that share work
   between taus, else cell by cell, first the cells that promise to raise the pair most per node.

A vendor's solver takes long for any cell: there bounds without branching come first, and no tree is shared.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.path import FEW, SMALL, PathCell, PathResult
from sparsecv_mio.search.methods.parts.all_rows import best_on_all_rows
from sparsecv_mio.search.methods.parts.beyond_proof import decide_beyond_proof
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell, MioSettings, bracket, check_available
from sparsecv_mio.search.methods.parts.cell_costs import CellCosts
from sparsecv_mio.search.methods.parts.estimates import OpenCellEstimates
from sparsecv_mio.search.methods.parts.fold_rounds import FoldRounds
from sparsecv_mio.search.methods.parts.pair_lists import FEWEST_FOLDS, Aim, Pair, PairLists
from sparsecv_mio.search.methods.parts.reported_pair import score_reported_pair
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.options import PATH_TREE_COLUMNS
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.shared_tree.first_intervals import first_intervals
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.search.state.pairs import likely_winner

EXPENSIVE_NODES = 4096  # nodes of a cell beyond which bounds without branching and rounds over taus are cheaper


class JointSearch:
    """Best-first over all pairs; the answer of Algorithm 1 with a fraction of its nodes.

    Parameters
    ----------
    run : Run
    mio : MioSettings
    """

    name = "joint"

    def __init__(self, run: Run, mio: MioSettings) -> None:
        self.run = run
        self.by_cell = CellByCell(run, mio)
        self.trees = SharedTrees(run.state, proposed=run.accelerators.often_proposed)
        self.rounds = FoldRounds(run)
        self.costs = CellCosts(self.by_cell)
        self.lists = PairLists(self.by_cell, self.trees, self.costs)
        self.estimates = OpenCellEstimates(run, self.trees)
        self.context, self.parts = run.context, (self.by_cell, self.rounds, self.costs, self.lists)

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that are not decided and were not handed to branch-and-bound."""
        return self.by_cell.open

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        return self.by_cell.exhausted(self.mios())

    # -- first steps -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Find first answers, and refit the best supports on all rows in every fold: something to start from."""
        check_available(self.by_cell.mio.backend)
        self.estimates.before_all()
        self._prepare()
        if self.context.data.q > PATH_TREE_COLUMNS:
            self.estimates.before_proof()
            self.by_cell.bound_every_cell()
        else:
            self._refit_in_every_fold()
            self.estimates.before_proof()
        self.by_cell.begun = not self.context.deadline.expired()
        self.run.signals.progressed()

    def _prepare(self) -> None:
        # so many nodes solve all rows of few columns, where a relaxation would cost as much and prove less
        self.by_cell.prepare(1 << self.context.data.q if self.context.data.q <= FEW else 0)

    def _refit_in_every_fold(self) -> None:
        """In closed form where folds are small, else fold by fold."""
        left = []
        for g in range(len(self.context.grid.gammas)):
            if self.context.deadline.expired():
                break
            root = self.trees.root(g)
            if root is not None:
                first_intervals(root)
                self.run.accelerators.decide_in_every_fold(root)
            if root is None or not np.isfinite(self.run.state.cells.nominal[g]).all():
                left.append(g)
        if left:
            self._refit_fold_by_fold(left)

    def _refit_fold_by_fold(self, gammas: list[int]) -> None:
        """Bound cells that no tree for all folds can bound, at the supports they show or else the best on all rows."""
        expired, state, solver = self.context.deadline.expired, self.run.state, self.by_cell.solver
        for fold, moments in self.run.accelerators.training_moments():
            solver.store.keep(fold, moments)
            for g in gammas:
                if expired():
                    break
                shown = np.isfinite(state.cells.nominal[g, :, fold])
                which = np.flatnonzero(~shown if self.trees.root(g) is not None else np.ones_like(shown))
                best, taus = state.all_rows.best[g].cells, self.context.grid.taus.tolist()
                numbers = state.cells.support[g, :, fold].tolist()
                supports = [
                    state.cells.pool.supports[number] if known else best[tau].support
                    for tau, known, number in zip(taus, shown.tolist(), numbers, strict=True)
                ]
                cells = {tau: PathCell.unproved(tau, support) for tau, support in zip(taus, supports, strict=True)}
                solver.intervals.write_outcome(solver.at(g, fold), g, which, PathResult(cells, 0, False), relax=False)
            if expired():
                break

    # -- what next ---------------------------------------------------------------------------------------------------

    def aim(self) -> Aim | None:
        """Return the likely winner to be decided, then the others to be raised to the goal; None once all is proved."""
        now, gap = self.run.state.bounds(), self.context.gap
        if now.proved(gap):
            return None
        winner = likely_winner(now)
        goal = now.upper[winner] * (1.0 - gap)
        others = (now.lower < goal) & self.open.any(axis=2)
        others[winner] = False
        nearly_closed = now.upper[winner] * (1.0 - 0.5 * gap) <= now.lower[winner] < np.inf
        if self.open[winner].any() and not (nearly_closed and others.any()):
            return Aim(winner, np.inf)
        if not others.any():
            return None
        # the pair furthest below the goal holds the lower bound of the whole grid
        g, t = np.unravel_index(int(np.argmin(np.where(others, now.lower, np.inf))), others.shape)
        return Aim((int(g), int(t)), float(goal))

    def next_cells(self) -> list[Where]:
        """Open folds of the pair aimed at that promise to raise its lower bound most per node."""
        aim = self.aim()
        if aim is None:
            return []
        g, t = aim.pair
        cells, folds = self.run.state.cells, np.flatnonzero(self.open[aim.pair])
        top = cells.upper[g, t, folds]
        if np.isfinite(aim.goal):
            top = np.minimum(cells.nominal[g, t, folds], top)
        cost = self.costs.expected(folds) * self.costs.growth(g, t, folds)
        gain = (top - cells.lower[g, t, folds]) / cost
        return [(g, t, int(folds[i])) for i in np.argsort(-gain, kind="stable")[: self.context.threads]]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do, or the time or the budget is spent."""
        return self.exhausted or not self.next_cells()

    def step(self) -> None:
        """Do the first thing that may help the pair aimed at; the order is that of the module's docstring."""
        aim = self.aim()
        if self.rounds.folds_left:  # of a round that a checkpoint was written in
            self.rounds.continue_round()
        elif aim is not None and self._serve_all_folds(aim):
            pass
        elif self.by_cell.mio.native and self.trees_are_expensive:
            wanted = self.run.state.worth_work()
            self.costs.try_again(wanted)
            self.rounds.run_round(wanted)
        else:
            self._solve(self.next_cells())
            return
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def _serve_all_folds(self, aim: Aim) -> bool:
        """Work on all folds of a pair at once; False where nothing of the kind may help (any more)."""
        g, t = aim.pair
        if not self.by_cell.mio.native and self.may_bracket(aim.pair):  # cheaper than a vendor's MIO
            self.bracket_gamma(g)
        elif self.lists.may_list(aim, self.open):
            self.lists.list_pair(aim, self.open)
        elif self.lists.may_share(aim.pair):
            self.lists.share(g, [t])
        elif self.may_bracket(aim.pair):
            self.bracket_gamma(g)
        else:
            return False
        return True

    def _solve(self, cells: list[Where]) -> None:
        self.by_cell.solve(cells, self.mios(), self.costs.effort, self.costs.note)

    def work_on(self, pairs: BoolArray) -> None:
        """Grow a tree for all folds where none was grown yet, else a round of trees that share work between taus."""
        if not self.by_cell.mio.native or self.by_cell.mio.budget is not None:
            self._solve(self.by_cell.next_of(pairs))
            return
        unseen: list[Pair] = [(int(g), int(t)) for g, t in np.argwhere(pairs & ~self.lists.shared)]
        unseen = [pair for pair in unseen if self.lists.may_share(pair)]
        if unseen:
            g = unseen[0][0]
            self.lists.share(g, [t for other, t in unseen if other == g])
            return
        wanted = self.open & pairs[:, :, None]
        self.rounds.run_round(wanted.copy())
        self.costs.try_again(wanted & self.run.state.cells.branched)

    @property
    def trees_are_expensive(self) -> bool:
        """Whether branch-and-bound in a fold should share its work between taus instead of taking one at a time."""
        return self.context.data.q > SMALL or self.costs.mean > EXPENSIVE_NODES

    # -- bounds without branching ------------------------------------------------------------------------------------

    def may_bracket(self, pair: Pair) -> bool:
        """Whether a gamma was not bounded without branching yet, and that may spare branch-and-bound in many folds."""
        if self.lists.bracketed[pair[0]]:
            return False
        return not self.by_cell.mio.native or (int(self.open[pair].sum()) > FEWEST_FOLDS and self.trees_are_expensive)

    def bracket_gamma(self, g: int) -> None:
        """Bound the open cells of a gamma without branching."""
        which = np.flatnonzero(self.open[g].any(axis=1))
        bracket(self.by_cell, np.array([g]), which)
        self.lists.note_bracketed(g, which)

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Decide what is asked for beyond the proof, and estimate what stays open."""
        decide_beyond_proof(self, self.context.one_se)
        self.estimates.at_end()

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold."""
        score_reported_pair(self.run, self.trees)

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Return the best subset on all rows at a pair, solved while there is time."""
        return best_on_all_rows(self.run, g, tau, self.rounds.effort)

    # -- what is known now -------------------------------------------------------------------------------------------

    def mios(self) -> int:
        """Return the number of cells handed to branch-and-bound so far, and of lists."""
        return int(self.costs.tried.sum()) + self.lists.count

    def engine(self) -> str:
        """Return the method and its solver, in words."""
        return self.by_cell.words(self.name)

    def recompute(self) -> None:
        """Find supports on all rows again; what the folds found first is among the cells."""
        self.estimates.resume()
        self._prepare()

"""Joint search over all (gamma, tau): racing, one list for all folds of a pair, work where a node pays most.

What changes against Algorithm 1:

* There is no phase one over the whole grid: the best supports on all rows are refitted in every fold, and a ball around
  each fold's ridge solution says something of every cell. The bounds layer is asked only about a gamma that lists
  cannot help with.
* The pair that is likely to win (least held-out error of the supports at hand: an estimate, it orders the work and
  never prunes) is decided first: its upper sum is the bar. A pair whose lower sum is past the bar is out, in all its
  remaining folds (racing).
* Any other pair needs its lower sum raised over the bar, not its intervals closed. One branch-and-bound on *all* rows
  does that for all its folds at once (:mod:`sparsecv_mio.search.shared_tree.list_bounds`); it is stopped at the
  value that suffices.
* The likely winner is decided by one tree for all folds where that pays
  (:mod:`sparsecv_mio.search.shared_tree.engines`).
* Folds that this leaves over are handed to branch-and-bound one by one, in the order of what each is expected to raise
  the pair by, per node; where trees are dear, in rounds of growing effort that share work between taus.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.formulation.backends.native.path import FEW, SMALL, PathCell, PathResult
from sparsecv_mio.search.methods.parts import archive
from sparsecv_mio.search.methods.parts.bracketing import bracket
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell, MioSolver
from sparsecv_mio.search.methods.parts.cell_costs import CellCosts
from sparsecv_mio.search.methods.parts.estimates import OpenCellEstimates
from sparsecv_mio.search.methods.parts.fold_rounds import FoldRounds
from sparsecv_mio.search.methods.parts.pair_lists import FEWEST_FOLDS, Aim, Pair, PairLists
from sparsecv_mio.search.methods.parts.reported_pair import score_reported_pair
from sparsecv_mio.search.methods.parts.rest import decide_rest
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.methods.parts.shared_trees import SharedTrees
from sparsecv_mio.search.methods.parts.standing import standing_of
from sparsecv_mio.search.methods.rounds import best_on_all_rows
from sparsecv_mio.search.observers.progress import Progress, progress_of
from sparsecv_mio.search.observers.trace import moment_of
from sparsecv_mio.search.options import PATH_TREE_COLUMNS
from sparsecv_mio.search.shared_tree.first_intervals import first_intervals
from sparsecv_mio.search.state.cells import BoolArray, State, Where
from sparsecv_mio.search.state.context import Context, unproved
from sparsecv_mio.search.state.pairs import PairBounds
from sparsecv_mio.search.state.standing import Standing

DEAR_NODES = 4096  # nodes of a cell beyond which bounds without branching and rounds of shared trees are cheaper


class JointSearch:
    """Best-first over all pairs; the answer of Algorithm 1 with a fraction of its nodes.

    Parameters
    ----------
    run : Run
    solver : MioSolver
    """

    name = "joint"

    def __init__(self, run: Run, solver: MioSolver) -> None:
        self.run = run
        self.by_cell = CellByCell(run, solver)
        self.trees = SharedTrees(run)
        self.rounds = FoldRounds(run)
        self.costs = CellCosts(self.by_cell)
        self.lists = PairLists(self.by_cell, self.trees, self.costs)
        self.estimates = OpenCellEstimates(run, self.trees)

    @property
    def context(self) -> Context:
        """The question."""
        return self.run.context

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that are not decided, and branch-and-bound has not been asked about."""
        return self.by_cell.open

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        return self.by_cell.exhausted(self.mios())

    # -- first steps -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Refit the best supports on all rows in every fold: something to report, and to start from."""
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
                self.run.accelerators.everywhere(root)
            if root is None or not np.isfinite(self.run.state.cells.nominal[g]).all():
                left.append(g)
        if left:
            self._refit_fold_by_fold(left)

    def _refit_fold_by_fold(self, gammas: list[int]) -> None:
        """Refit the best supports on all rows in every fold, where they are not known yet."""
        expired, state, solver = self.context.deadline.expired, self.run.state, self.by_cell.solver
        for fold, moments in self.run.accelerators.training_moments():
            solver.store.keep(fold, moments)
            for g in gammas:
                if expired():
                    break
                rows = np.flatnonzero(~np.isfinite(state.cells.nominal[g, :, fold]))
                best = state.all_rows.best[g].cells
                known = PathResult({tau: unproved(cell.tau, cell.support) for tau, cell in best.items()}, 0, False)
                solver.intervals.settle(solver.at(g, fold), g, rows, known, relax=False)
            if expired():
                break

    # -- what next ---------------------------------------------------------------------------------------------------

    def aim(self) -> Aim | None:
        """Decide the likely winner, then raise the others over the bar; None when nothing is left to do."""
        now, gap = self.run.state.bounds(), self.context.gap
        if now.proved(gap):
            return None
        winner = likely_winner(now)
        bar = now.upper[winner] * (1.0 - gap)
        others = (now.lower < bar) & self.open.any(axis=2)
        others[winner] = False
        settled = now.upper[winner] * (1.0 - 0.5 * gap) <= now.lower[winner] < np.inf
        if self.open[winner].any() and not (settled and others.any()):
            return Aim(winner, np.inf)
        if not others.any():
            return None
        # the pair furthest below the bar holds the lower bound of the whole grid
        g, t = np.unravel_index(int(np.argmin(np.where(others, now.lower, np.inf))), others.shape)
        return Aim((int(g), int(t)), float(bar))

    def pick(self) -> list[Where]:
        """Open folds of the pair aimed at that promise most per node."""
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
        return self.exhausted or not self.pick()

    def step(self) -> None:
        """Do the cheapest thing that helps: a list, a tree for all folds, bounds without branching, the next cells."""
        aim = self.aim()
        native = self.by_cell.by.native
        if self.rounds.rest:
            self.rounds.carry_out()
        elif aim is not None and not native and self.may_bracket(aim.pair):  # cheaper than a vendor's MIO
            self.bracket_gamma(aim.pair[0])
        elif aim is not None and self.lists.may_list(aim, self.open):
            self.lists.list_pair(aim, self.open)
        elif aim is not None and self.lists.may_share(aim.pair):
            self.lists.share(aim.pair[0], [aim.pair[1]])
        elif aim is not None and self.may_bracket(aim.pair):
            self.bracket_gamma(aim.pair[0])
        elif native and self.hard:
            wanted = self.run.state.worth_work()
            self.costs.try_again(wanted)
            self.rounds.round(wanted)
        else:
            self._solve(self.pick())
            return
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def _solve(self, cells: list[Where]) -> None:
        self.by_cell.solve(cells, self.mios(), self.costs.effort, self.costs.note)

    def work_on(self, pairs: BoolArray) -> None:
        """Grow a tree for all folds of pairs that none has seen, or a round of trees that share work between taus."""
        if not self.by_cell.by.native or self.by_cell.by.mio_budget is not None:
            self._solve(self.by_cell.next_of(pairs))
            return
        unseen: list[Pair] = [(int(g), int(t)) for g, t in np.argwhere(pairs & ~self.lists.shared)]
        unseen = [pair for pair in unseen if self.lists.may_share(pair)]
        if unseen:
            g = unseen[0][0]
            self.lists.share(g, [t for row, t in unseen if row == g])
            return
        wanted = self.open & pairs[:, :, None]
        self.rounds.round(wanted.copy())
        self.costs.try_again(wanted & self.run.state.cells.branched)

    @property
    def hard(self) -> bool:
        """Whether trees are too dear to be handed out one tau at a time: they share work between taus then."""
        return self.context.data.q > SMALL or self.costs.mean > DEAR_NODES

    # -- bounds without branching ------------------------------------------------------------------------------------

    def may_bracket(self, pair: Pair) -> bool:
        """Whether the bounds layer has yet to be asked about a gamma of which many cells are open."""
        if self.lists.bracketed[pair[0]]:
            return False
        return not self.by_cell.by.native or (int(self.open[pair].sum()) > FEWEST_FOLDS and self.hard)

    def bracket_gamma(self, g: int) -> None:
        """Ask the bounds layer about the open taus of a gamma."""
        taus = np.flatnonzero(self.open[g].any(axis=1))
        bracket(self.by_cell, np.array([g]), taus)
        self.lists.bracketed[g] = True
        self.lists.attempts[g, taus] = 0  # what is known better now may be worth another list

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Decide what is asked for beyond the proof, and estimate what stays open."""
        decide_rest(self, self.context.one_se)
        self.estimates.at_end()

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold."""
        score_reported_pair(self.run, self.trees)

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Return the best subset on all rows at a pair, solved while there is time."""
        return best_on_all_rows(self.run, g, tau, self.rounds.effort)

    # -- where it stands ---------------------------------------------------------------------------------------------

    @property
    def reported(self) -> JointSearch:
        """The run itself."""
        return self

    def mios(self) -> int:
        """Return the number of cells handed to branch-and-bound so far, and of lists."""
        return int(self.costs.tried.sum()) + self.lists.lists

    def standing(self) -> Standing:
        """Return where the run stands."""
        return standing_of(self.run, self.mios(), self.by_cell.words(self.name))

    def progress(self) -> Progress:
        """Return how far the run is."""
        return progress_of(self.run.state, self.mios())

    def moment(self) -> dict[str, Any]:
        """Return a line of a trace."""
        return moment_of(self.run.state, self.mios())

    def archive(self) -> State:
        """Return all that a checkpoint holds."""
        return archive.archive_of(self.run, (self.by_cell, self.rounds, self.costs, self.lists))

    def resume(self, stored: State) -> None:
        """Go to where `stored` was archived; begin where it was archived before the first steps came to their end."""
        if not archive.begun(stored):
            self.begin()
            return
        self.estimates.resume()
        parts = (self.by_cell, self.rounds, self.costs, self.lists)
        archive.restore(self.run, parts, stored, self._prepare)


def likely_winner(now: PairBounds) -> Pair:
    """Pair with the least estimate of h, among those that may still win."""
    alive = now.lower <= now.ceiling
    g, t = np.unravel_index(int(np.argmin(np.where(alive, now.nominal, np.inf))), now.lower.shape)
    return int(g), int(t)

"""Joint search over all (gamma, tau): racing, one listing for all folds of a pair, work where a node pays most.

What changes against Algorithm 1:

* There is no phase one over the whole grid: the best supports on all rows are refitted in every fold, and a ball around
  each fold's ridge solution says something of every cell. The bounds layer is asked only about a gamma that lists
  cannot help with.
* The pair that is likely to win (least held-out error of the supports at hand: an estimate, it orders the work and
  never prunes) is decided first: its upper sum is the bar. A pair whose lower sum is past the bar is out, in all its
  remaining folds (racing).
* Any other pair needs its lower sum lifted over the bar, not its intervals closed. One branch-and-bound on *all* rows
  does that for all its folds at once (:mod:`sparsecv_mio.search.shared_tree.list_bounds`); it is stopped at the
  value that suffices.
* The likely winner is decided by one tree for all folds where that pays
  (:mod:`sparsecv_mio.search.shared_tree.engines`).
* Folds that this leaves over are handed to branch-and-bound one by one, in the order of what each is expected to lift
  the pair by, per node; where trees are dear, in rounds of growing effort that share work between taus.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.formulation.backends import NATIVE, get_backend
from sparsecv_mio.formulation.backends.native.path import FEW, SMALL, PathCell, PathResult
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.search.methods.algorithm1 import OneByOne, bracket
from sparsecv_mio.search.methods.rounds import EFFORT_GROWTH, FIRST_EFFORT, CrossValidation
from sparsecv_mio.search.shared_tree.engines import solve_from
from sparsecv_mio.search.shared_tree.first_intervals import first_intervals
from sparsecv_mio.search.shared_tree.list_bounds import (
    apply_by_refits,
    apply_in_closed_form,
    incumbent_values,
    least_threshold,
)
from sparsecv_mio.search.shared_tree.near_optimal import MOST_COLUMNS, NearOptimal, SupportList
from sparsecv_mio.search.state.cells import PairBounds, Where
from sparsecv_mio.search.subproblem.vendor_listing import limits_of

Pair = tuple[int, int]

DECIDED_SHARES = (0.5, 0.6, 1.0)  # of the open folds that a list should decide, in turn
ESTIMATED_SHARE = 0.9  # of the folds of the likely winner that a first list should serve
FIRST_NODES = 128  # nodes of a cell before any was solved
LIST_NODES = 1024  # that any list may cost
FEWEST_FOLDS = 2  # a list costs what a cell costs
MOST_FOLDS, LOW_LEVERAGE = 0.95, 0.25  # share of larger folds whose leverage must be low for a tree for all to pay
DEAR_NODES = 4096  # nodes of a cell beyond which bounds without branching and rounds of shared trees are cheaper
MOST_TRIES = 12


class Aim(NamedTuple):
    """A pair to work on, and the lower sum it should reach; inf asks for a decision."""

    pair: Pair
    goal: float


class JointSearch(OneByOne):
    """Best-first over all pairs; the answer of Algorithm 1 with a fraction of its nodes.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> from sparsecv_mio.data.standard import standardize
    >>> from sparsecv_mio.search.state.deadline import Deadline
    >>> from sparsecv_mio.search.options import Grid
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=40))
    >>> grid, folds = Grid.of([0.1, 1.0], range(1, 6), data.p), make_folds("5", data)
    >>> run = JointSearch(standardize(data), folds, grid, 1e-4, Deadline(None, None), 1, None)
    >>> run.begin()
    >>> while not run.finished:
    ...     run.step()
    >>> int(grid.taus[run.bounds().best[1]]), run.mios < run.cells.final.size
    (2, True)
    """

    name = "joint"

    def __init__(self, *asked: Any) -> None:
        super().__init__(*asked)
        shape = self.cells.lower.shape[:2]
        self.attempts = np.zeros(shape, dtype=np.int64)
        self.shared = np.zeros(shape, dtype=bool)  # pairs that a tree for all folds has seen
        self.bracketed = np.zeros(shape[0], dtype=bool)
        self.spent = np.zeros(self.folds.k, dtype=np.int64)
        self.tries = np.zeros(self.cells.lower.shape, dtype=np.int8)
        self.lists = 0
        self.effort = FIRST_EFFORT
        self.full_lists: dict[int, NearOptimal] = {}

    def first_effort(self) -> int:
        """Nodes that solve all rows of few columns, where a relaxation would cost as much and prove less."""
        return 1 << self.data.q if self.data.q <= FEW else 0

    def begin(self) -> None:
        """The best supports on all rows, in every fold: something to report, and to start from."""
        if self.data.q > MOST_COLUMNS:
            super().begin()
            return
        self.prepare()
        left = []
        for g in range(len(self.grid.gammas)):
            if self.clock.expired():
                break
            root = self.root(g)
            if root is not None:
                first_intervals(root)
                self.oracles.everywhere(root)
            if root is None or not np.isfinite(self.cells.nominal[g]).all():
                left.append(g)
        if left:
            self.look_one_by_one(left)
        self.show_first_answers()
        self.begun = not self.clock.expired()
        self._report()

    def look_one_by_one(self, gammas: list[int]) -> None:
        """Refit the best supports on all rows in every fold, where they are not known yet."""
        assert self.solver is not None
        for fold, moments in self.oracles.training_moments():
            self.solver.store.keep(fold, moments)
            for g in gammas:
                if self.clock.expired():
                    break
                rows = np.flatnonzero(~np.isfinite(self.cells.nominal[g, :, fold]))
                known = {tau: _unproved(cell) for tau, cell in self.full[g].cells.items()}
                here = self.solver.at(g, fold)
                self.solver.intervals.settle(here, g, rows, PathResult(known, 0, False), relax=False)
            if self.clock.expired():
                break

    def state(self) -> dict[str, NDArray[Any]]:
        """Where the run stands, beside the cells."""
        return super().state() | {
            "attempts": self.attempts, "shared": self.shared, "bracketed": self.bracketed, "spent": self.spent,
            "tries": self.tries, "lists": np.array(self.lists),
        }  # fmt: skip

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go to where `state` was taken."""
        super().restore(state)
        self.attempts[...] = state["attempts"]
        self.shared[...] = state["shared"]
        self.bracketed[...] = state["bracketed"]
        self.spent[...] = state["spent"]
        self.tries[...] = state["tries"]
        self.lists = int(state["lists"])

    @property
    def mios(self) -> int:
        """Cells handed to branch-and-bound so far, and lists."""
        return int((self.asked | (self.tries > 0)).sum()) + self.lists

    def aim(self) -> Aim | None:
        """Decide the likely winner, then lift the others over the bar; None when nothing is left to do."""
        now = self.bounds()
        if now.proved(self.gap):
            return None
        winner = self.winner(now)
        bar = now.upper[winner] * (1.0 - self.gap)
        others = (now.lower < bar) & self.open.any(axis=2)
        others[winner] = False
        settled = now.upper[winner] * (1.0 - 0.5 * self.gap) <= now.lower[winner] < np.inf
        if self.open[winner].any() and not (settled and others.any()):
            return Aim(winner, np.inf)
        if not others.any():
            return None
        # the pair furthest below the bar holds the floor
        g, t = np.unravel_index(int(np.argmin(np.where(others, now.lower, np.inf))), others.shape)
        return Aim((int(g), int(t)), float(bar))

    def winner(self, now: PairBounds) -> Pair:
        """Pair with the least estimate of h, among those still in the race."""
        alive = now.lower <= now.ceiling
        g, t = np.unravel_index(int(np.argmin(np.where(alive, now.nominal, np.inf))), now.lower.shape)
        return int(g), int(t)

    def pick(self) -> list[Where]:
        """Open folds of the pair aimed at that promise most per node."""
        aim = self.aim()
        if aim is None:
            return []
        g, t = aim.pair
        cells, folds = self.cells, np.flatnonzero(self.open[aim.pair])
        top = cells.upper[g, t, folds]
        if np.isfinite(aim.goal):
            top = np.minimum(cells.nominal[g, t, folds], top)
        cost = self.cost(folds) * float(EFFORT_GROWTH) ** self.tries[g, t, folds]
        gain = (top - cells.lower[g, t, folds]) / cost
        return [(g, t, int(folds[i])) for i in np.argsort(-gain, kind="stable")[: self.threads]]

    def cost(self, folds: NDArray[np.int64]) -> FloatArray:
        """Nodes a cell of each fold is expected to cost, from those of the fold that were solved."""
        solved = (self.asked | (self.tries > 0)).sum(axis=(0, 1))
        typical = self.spent.sum() / max(int(solved.sum()), 1) if self.spent.any() else FIRST_NODES
        return np.asarray((self.spent[folds] + typical) / (solved[folds] + 1.0))

    def step(self) -> None:
        """The cheapest thing that helps: a list, a tree for all folds, bounds without branching, the next cells."""
        aim = self.aim()
        dear = self.backend != NATIVE  # a vendor's MIO costs more than bounds of a whole gamma
        if self.rest:
            self.round()
        elif aim is not None and dear and self.may_bracket(aim.pair):
            self.bracket_gamma(aim.pair[0])
        elif aim is not None and self.may_list(aim):
            self.list_pair(aim)
        elif aim is not None and self.may_share(aim.pair):
            self.share(aim.pair[0], [aim.pair[1]])
        elif aim is not None and self.may_bracket(aim.pair):
            self.bracket_gamma(aim.pair[0])
        elif not dear and self.hard:
            wanted = self.wanted()
            self.tries[wanted] = np.minimum(self.tries[wanted] + 1, MOST_TRIES)
            self.round()
        else:
            super().step()
            return
        self._report()
        self._safe()

    def work_on(self, pairs: NDArray[np.bool_]) -> None:
        """A tree for all folds of pairs that none has seen, or a round of trees that share work between taus."""
        if self.backend != NATIVE or self.mio_budget is not None:
            super().work_on(pairs)
            return
        fresh = [(int(g), int(t)) for g, t in np.argwhere(pairs & ~self.shared)]
        fresh = [pair for pair in fresh if self.may_share(pair)]
        if fresh:
            g = fresh[0][0]
            self.share(g, [t for row, t in fresh if row == g])
            return
        wanted = self.open & pairs[:, :, None]
        CrossValidation.work_on(self, pairs)
        wanted &= self.cells.branched
        self.tries[wanted] = np.minimum(self.tries[wanted] + 1, MOST_TRIES)

    @property
    def hard(self) -> bool:
        """Whether trees are too dear to be handed out one tau at a time: they share work between taus then."""
        return self.data.q > SMALL or float(self.cost(np.arange(self.folds.k)).mean()) > DEAR_NODES

    # -- trees for all folds ----------------------------------------------------------------------------------------

    def may_share(self, pair: Pair) -> bool:
        """Whether a tree for all folds of the pair is worth a try."""
        if self.backend != NATIVE or self.shared[pair]:
            return False
        root = self.root(pair[0])
        if root is None:
            return False
        return bool(self.folds.sizes.max() == 1) or float(np.quantile(root.leverage, MOST_FOLDS)) < LOW_LEVERAGE

    def share(self, g: int, wanted: list[int]) -> None:
        """Decide what one tree for all folds can decide of some rows of tau."""
        root = self.root(g)
        assert root is not None
        typical = int(self.cost(np.arange(1))[0])
        nodes, decided = solve_from(root, wanted, typical, self.engine)
        self.shared[g, wanted] = True
        self.nodes += nodes
        self.lists += int(nodes > 0)
        for name, count in decided.items():
            self.decided_by[name] = self.decided_by.get(name, 0) + count

    # -- bounds without branching -----------------------------------------------------------------------------------

    def may_bracket(self, pair: Pair) -> bool:
        """Whether the bounds layer has yet to be asked about a gamma of which many cells are open."""
        if self.bracketed[pair[0]]:
            return False
        return self.backend != NATIVE or (int(self.open[pair].sum()) > FEWEST_FOLDS and self.hard)

    def bracket_gamma(self, g: int) -> None:
        """Certified bounds of the bounds layer for the open taus of a gamma."""
        taus = np.flatnonzero(self.open[g].any(axis=1))
        bracket(self, np.array([g]), taus)
        self.bracketed[g] = True
        for t in taus.tolist():  # what is known better now may be worth another list
            self.attempts[g, t] = 0

    def effort_of(self, where: Where) -> int:
        """Nodes a cell may cost now: a tree need not be finished while others promise more per node."""
        return FIRST_EFFORT * EFFORT_GROWTH ** int(self.tries[where])

    def solved(self, where: Where, nodes: int) -> None:
        """Take note of what a cell cost; one that is not decided may be asked about again."""
        self.spent[where[2]] += nodes
        if self.backend == NATIVE and not self.cells.final[where]:
            self.asked[where] = False
            self.tries[where] += 1

    # -- lists ------------------------------------------------------------------------------------------------------

    def may_list(self, aim: Aim) -> bool:
        """Whether a list is worth a try: to lift a pair, or to decide one of which upper bounds are known."""
        pair = aim.pair
        if (self.attempts[pair] or not np.isfinite(aim.goal)) and self.may_share(pair):
            return False
        tries = len(DECIDED_SHARES) if self.backend == NATIVE else 1
        if self.attempts[pair] >= tries or int(self.open[pair].sum()) < FEWEST_FOLDS:
            return False
        informed = not self.attempts[pair] or self.bracketed[pair[0]]
        if not np.isfinite(aim.goal) and not (self.backend == NATIVE and informed):
            return False
        return self.backend != NATIVE or self.listing(pair[0]).usable

    def listing(self, g: int) -> NearOptimal:
        """All rows at one gamma, ready to be listed."""
        if g not in self.full_lists:
            self.full_lists[g] = NearOptimal(self.leave_out.all_rows, g)
        return self.full_lists[g]

    def list_pair(self, aim: Aim) -> None:
        """One branch-and-bound on all rows, told to every open fold of the pair."""
        (g, t), tau = aim.pair, int(self.grid.taus[aim.pair[1]])
        assert self.solver is not None
        folds = np.flatnonzero(self.open[aim.pair])
        listed: SupportList | None
        if self.backend == NATIVE:
            bar, served = self.bar(aim, folds)
            if not served:
                self.attempts[aim.pair] = len(DECIDED_SHARES)
                return
            budget = max(LIST_NODES, int(self.cost(folds).mean() * served) // 2)
            listed, nodes = self.listing(g).below(tau, bar, budget)
        else:
            listed, nodes = self.by_vendor(g, tau)
        self.attempts[aim.pair] += 1 if listed is not None else len(DECIDED_SHARES)
        self.lists += 1
        self.nodes += nodes
        if listed is None:
            return
        root = self.root(g) if np.isfinite(aim.goal) else None
        if root is not None:
            folds = folds[~apply_in_closed_form(root, t, listed)[folds]]
            if self.may_share(aim.pair):  # quicker than a refit in every fold with a tie
                return
        apply_by_refits(self.solver, aim.pair, folds, listed, aim.goal)

    def bar(self, aim: Aim, folds: NDArray[np.int64]) -> tuple[float, int]:
        """Value on all rows that a list should reach for the goal, and how many trees of folds it spares."""
        g, t = aim.pair
        assert self.solver is not None
        root = self.root(g) if np.isfinite(aim.goal) else None
        ubar = root.cutoffs(0, self.folds.k)[t, folds] if root else incumbent_values(self.solver, aim.pair, folds)
        cells = self.cells
        clear = np.isfinite(ubar + cells.nominal[g, t, folds])
        folds, ubar = folds[clear], ubar[clear]
        if not len(folds):
            return -np.inf, 0
        if np.isfinite(aim.goal):
            closed = float(cells.lower[g, t].sum() - cells.lower[g, t, folds].sum())
            need = aim.goal * (1.0 + 1e-7) - closed
            bar = least_threshold(cells.lower[g, t, folds], cells.nominal[g, t, folds], ubar, need)
            if np.isfinite(bar):
                return bar + self.listing(g).margin(bar), len(folds)
        # what a first list says of h in most folds is an estimate to go by
        needed, share = np.sort(ubar + cells.nominal[g, t, folds]), ESTIMATED_SHARE
        if self.bracketed[g]:
            needed = np.sort(ubar + cells.upper[g, t, folds])
            share = DECIDED_SHARES[min(int(self.attempts[aim.pair]), len(DECIDED_SHARES) - 1)]
        needed = needed[np.isfinite(needed)]
        if not len(needed):
            return -np.inf, 0
        served = max(int(np.ceil(share * len(needed))), 1)
        return float(needed[served - 1]) + self.listing(g).margin(float(needed[served - 1])), served

    def by_vendor(self, g: int, tau: int) -> tuple[SupportList, int]:
        """The optimum on all rows by a vendor's solver: a list without supports, below its dual bound."""
        full = self.listing(g)
        problem = full.problem
        outcome = get_backend(self.backend).solve(
            problem, min(tau, problem.q), limits=limits_of(self.clock), formulation=self.formulation
        )
        return SupportList((), max(outcome.lower, 0.0) - full.allowance), outcome.nodes


def _unproved(cell: PathCell) -> PathCell:
    """The support of a cell of all rows, of which nothing is known in a fold."""
    return PathCell(cell.tau, cell.support, 0.0, np.inf, (), (), 0.0, complete=False, branched=False)

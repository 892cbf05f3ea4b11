"""The class `GridSearch`: a search over a grid of pairs (tau, gamma) that pursues its goals one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sparsecv_mio.certificate.parts import Work
from sparsecv_mio.search.accounts import Accounts
from sparsecv_mio.search.answer.instability import StablePair
from sparsecv_mio.search.goals import (
    AllPairs,
    CertifiedChoice,
    Estimates,
    FullDataModel,
    OneStandardError,
    SearchGoal,
    is_scored,
)
from sparsecv_mio.search.loop import Executor, Order, search_grid
from sparsecv_mio.search.observers import Progress, Signals, Watched, make_trace_line, measure_progress
from sparsecv_mio.search.orders.algorithm1 import algorithm1, grid
from sparsecv_mio.search.orders.by_size import by_size
from sparsecv_mio.search.orders.first_answers import first_answers
from sparsecv_mio.search.orders.first_supports import first_supports
from sparsecv_mio.search.orders.given_pairs import estimates, given_pairs
from sparsecv_mio.search.orders.together import together
from sparsecv_mio.search.orders.winner_first import winner_first
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.registry import make_problems
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.state.cells import Archive, add_prefix, select_by_prefix
from sparsecv_mio.search.state.context import Context, SearchState, Snapshot
from sparsecv_mio.search.state.grid_state import GridState, archive_state, check_archive, restore_state
from sparsecv_mio.search.state.pairs import Grid, proved_ends
from sparsecv_mio.search.steps import Step
from sparsecv_mio.search.writer import Writer
from sparsecv_mio.units import MODEL_SHARE

ORDERS: dict[str, Order] = {
    order.__name__: order
    for order in (
        first_answers, winner_first, first_supports, together, by_size, given_pairs, estimates, algorithm1, grid,
    )
}  # fmt: skip


def goals_beyond_choice(state: GridState, context: Context) -> list[SearchGoal]:
    """Return the goals of a search beyond the certified choice, in the order of work.

    Parameters
    ----------
    state : GridState
        State of the search.
    context : Context
        Context with the request: that of the state, or of a descent over several grids.
    """
    goals = list[SearchGoal]()
    if context.gap == 0.0:
        goals.append(AllPairs())
    elif context.request.one_se:
        goals.append(OneStandardError())
    if context.stability:
        goals.append(StablePair(state))
    return goals


class GridSearch(Watched):
    """A search over a grid, with the interface for its observers.

    Parameters
    ----------
    context : Context
        Data, grid, folds and limits of the search.
    signals : Signals
        Signals to the observers.
    """

    def __init__(self, context: Context, signals: Signals) -> None:
        state = SearchState.from_context(context)
        self.context, self.problems, self.signals = context, make_problems(context, state.all_rows), signals
        self.name, problems = self.problems.name, self.problems
        self.plan = Plan.make(context, problems.full(0))
        self.state = GridState.unknown(state, problems.slip, self.plan.stores_objectives)
        self.accounts = Accounts(self.state)
        self.writer = Writer(self.state, self.plan, self.accounts)
        is_expired, waits = context.deadline.has_expired, self.plan.waits_for_all
        self.executor = Executor(problems, self.plan.n_threads, is_expired, waits, self.plan.steps_of_turn)
        self._turns: Iterator[None] = self.turns()
        self._is_over, self._look_at_sizes = False, 0.0

    def turns(self) -> Iterator[None]:
        """Search for one goal after the other; every turn leaves a valid state.

        All search orders of the plan serve the certified choice. Once the orders before the last one have ended, a part
        of a time limit is reserved for the model of the full data, and the last order begins. The pair of the
        one-standard-error rule comes next if it is requested, then the model of the full data at the pair to report.
        The last order is then followed for the remaining time. Other goals and estimates of open pairs come last.
        """
        deadline, plan, last = self.context.deadline, self.plan, self.plan.orders[-1]
        choice: SearchGoal = AllPairs() if plan.solves_all else CertifiedChoice()
        yield from self._pursue_by_earlier_orders(choice)
        deadline.keep_time(MODEL_SHARE, self.is_model_open)
        yield from self._pursue(choice, ORDERS[last])
        goals = goals_beyond_choice(self.state, self.context) if plan.solves_subproblems else []
        if self.context.request.one_se:  # which decides whose model is needed
            yield from self._pursue_goals(goals)
        deadline.release_reserve()
        if not deadline.is_over() and self.is_model_open():
            yield from self._pursue(FullDataModel(self.context), given_pairs)
            yield from self._pursue(choice, ORDERS[last])
        yield from self._pursue_goals(goals)
        yield from self._pursue(Estimates(), estimates)
        self.problems.clear()

    def _pursue_by_earlier_orders(self, choice: SearchGoal) -> Iterator[None]:
        """Search by the orders of the plan before the last one, except those that ended before a checkpoint."""
        for order in self.plan.orders[int(self.state.tried.n_orders_done) : -1]:
            yield from self._pursue(choice, ORDERS[order])
            if not self.context.deadline.has_expired():
                self.writer.count_finished_order()
            yield

    def _pursue_goals(self, goals: Iterable[SearchGoal]) -> Iterator[None]:
        for goal in goals:
            yield from self._pursue(goal, ORDERS[self.plan.order_of_pairs])

    def _pursue(self, goal: SearchGoal, order: Order) -> Iterator[None]:
        yield from search_grid(goal, order, self.state, self.plan, self.executor, self.writer, self.signals)

    def is_model_open(self) -> bool:
        """Return True if a pair is scored and the best subset of the full data at the pair to report is not known."""
        return not FullDataModel(self.context).is_settled(self.state)

    # -- the interface `Watched`, which searches by descent have too --------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """True once every goal is settled, or the deadline has expired."""
        return self._is_over

    def take_turn(self) -> None:
        """Take a turn."""
        try:
            next(self._turns)
        except StopIteration:
            self._is_over = True
        self._note_proved_sizes()

    def _note_proved_sizes(self) -> None:
        """Note under a limit, at most once a second, up to which size the grid is proved, to suggest a longer limit."""
        deadline, grid, reached = self.context.deadline, self.context.grid, self.state.counts.reached
        if deadline.limit is None or deadline.seconds < self._look_at_sizes:
            return
        self._look_at_sizes = deadline.seconds + 1.0
        tau, _ = proved_ends(self.state.bounds(), self.context.gap, grid.gammas, grid.taus) or (None, None)
        if tau is not None:
            reached.setdefault(tau, deadline.seconds)

    def pursue_goals(self, requested: Context) -> None:
        """Search for the goals beyond the certified choice of another request over the same data."""
        for _ in self._pursue_goals(goals_beyond_choice(self.state, requested)):
            pass
        for _ in self._pursue(FullDataModel(requested), given_pairs) if is_scored(self.state) else ():
            pass

    def score_reported_pair(self) -> None:
        """Score and bound the pair to report in every fold if the limit ended the search before."""
        state, taus = self.state, self.context.grid.taus
        if not (self.plan.bounds_reported and state.has_supports.any() and self.context.deadline.has_expired()):
            return
        pair = state.reported_pair() if is_scored(state) else state.pair_with_most_folds()
        unknown = np.flatnonzero(~np.isfinite(state.cells.nominal[pair]) | ~np.isfinite(state.cells.upper[pair]))
        for fold in unknown.tolist() if len(unknown) <= self.plan.reported_folds else ():
            if self.context.deadline.abandoned.is_set():
                return
            step = Step(SubproblemTrees.name, pair[0], pair[1:], (fold,), (int(taus[pair[1]]),),
                        (*state.warm_start_supports(pair, fold),))  # fmt: skip
            self.writer.take([SubproblemTrees().bound(step, self.problems)])

    def snapshot(self, over: bool = False) -> Snapshot:
        """Return copies of the data of the record, for any thread.

        Parameters
        ----------
        over : bool
            True if nothing will be written any more; subproblems are then not copied.
        """
        state = self.state
        cells = state.cells if over else state.cells.copy()
        did = self.n_trees, state.counts.nodes, 0.0, self.problems.engine, ()
        work = Work(*did, self.accounts.table(), self.accounts.course(), self.plan.settings())
        best, reached = tuple(state.all_rows.best), dict(state.counts.reached)
        all_rows = state.all_rows if over else None
        return Snapshot(self.context, cells, best, work, reached=reached, changes=state.changes, all_rows=all_rows)

    @property
    def n_trees(self) -> int:
        """Number of subproblems solved by trees; if MIOs are counted, number of those given to branch and bound."""
        cells, tries = self.state.cells, self.state.tried.tree_tries
        if not self.plan.counts_mios:
            return int((cells.decided & cells.branched).sum())
        return int(self.state.tried.n_mios) + int((cells.decided & cells.branched & (tries == 0)).sum())

    def progress(self) -> Progress:
        """Return the progress of the search."""
        return measure_progress(self.state, self.n_trees, self.signals.stage)

    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""
        return make_trace_line(self.state, self.n_trees) | {"stage": self.signals.stage}

    def checkpoint(self) -> Archive:
        """Return the content of a checkpoint."""
        return archive_state(self.state) | add_prefix("accounts", self.accounts.archive())

    def resume(self, stored: Archive) -> None:
        """Restore a checkpoint of the same search, which is checked before anything changes."""
        no_accounts = {"accounts": np.array("[]")}
        accounts = no_accounts | select_by_prefix("accounts", stored)  # a checkpoint may be without them
        check_archive(self.state, stored)
        self.accounts.check(accounts)
        restore_state(self.state, stored)
        self.accounts.restore(accounts)


def new_row(
    context: Context, gammas: Sequence[float], taus: Sequence[int], signals: Signals | None = None
) -> GridSearch:
    """Return a search over some pairs of the same data and folds, before its first step.

    Parameters
    ----------
    context : Context
        Context of the search that the new search belongs to.
    gammas, taus : sequences
        Grid of the new search.
    signals : Signals, optional
        Signals by which the search reports its progress; without listeners by default.
    """
    grid = Grid.of(gammas, taus, context.data.dataset.p)
    return GridSearch(context.row(grid), signals or Signals())

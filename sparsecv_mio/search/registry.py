"""From the options to the method that searches, not begun; and the runs that a descent and `refine` are made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.accelerators import Accelerators, Ledger
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.methods.by_rows import ByRows, by_rows, threads_for
from sparsecv_mio.search.methods.descent import Descent
from sparsecv_mio.search.methods.joint import WinnerFirst
from sparsecv_mio.search.methods.one_by_one import OneByOne
from sparsecv_mio.search.methods.orders import ORDERS
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell, MioSettings
from sparsecv_mio.search.methods.parts.grid_search import GridSearch
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.methods.restricted import Restricted, check_restrictions
from sparsecv_mio.search.methods.rounds import Rounds
from sparsecv_mio.search.methods.saddle import SaddleRun
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.options import SearchOptions, method_for
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.state import SearchState
from sparsecv_mio.search.state.trees import HERE, Trees
from sparsecv_mio.words import Method, Oracle, TauStep

Search = GridSearch | Descent
MANY_COLUMNS = 500  # beyond, a descent estimates its rows: folds are seldom solved to optimality in reasonable time


def context_of(
    data: StandardData,
    folds: FoldPlan,
    grid: Grid,
    options: SearchOptions,
    deadline: Deadline,
    trees: Trees = HERE,
) -> Context:
    """Return the context of a search, with the threads that the data and the backend allow.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
    options : SearchOptions
    deadline : Deadline
    trees : Trees, optional
        As many folds are worked on at once as it grows trees, if that are more.
    """
    threads = max(options.workers, trees.at_once) if get_backend(options.backend).capabilities.concurrent else 1
    if by_rows(data, folds.k):
        threads = threads_for(data, threads)
    return Context(data, folds, grid, options.gap, deadline, threads, options.one_se, options.weights, trees)


def new_method(context: Context, options: SearchOptions, signals: Signals) -> Search:
    """Return the method that is asked for, not begun.

    Parameters
    ----------
    context : Context
    options : SearchOptions
    signals : Signals
        Where it will say that it has come further.

    Raises
    ------
    BadInput
        For options that do not go with the tau step that `auto` means.
    """
    method = method_for(options)
    if method is Method.DESCENT:
        return _descent(context, options, signals)
    state = SearchState.new(context)
    run = Run(state, Accelerators(context, state.all_rows, options.oracles), signals)
    mio = MioSettings(options.backend, options.formulation, options.mio_budget)
    if context.data.restrictions.beyond_forcing:
        check_restrictions(context.data, context.grid.taus.tolist(), context.folds.k)
        return GridSearch(Restricted(run, method, mio))
    if by_rows(context.data, context.folds.k):
        return GridSearch(ByRows(run, method, mio))
    if method is Method.ROUNDS:
        return GridSearch(Rounds(run, options.engine))
    by_cell, trees = CellByCell(run, mio), SharedTrees(state, proposed=run.accelerators.often_proposed)
    if method is Method.JOINT:
        winner_first = WinnerFirst(by_cell, trees)
        return GridSearch(OneByOne(by_cell, trees, winner_first.order, winner_first))
    return GridSearch(OneByOne(by_cell, trees, ORDERS[method]))


def _descent(context: Context, options: SearchOptions, signals: Signals) -> Descent:
    step = options.tau_step
    if step is TauStep.AUTO:
        step = TauStep.SADDLE if context.data.q > MANY_COLUMNS else TauStep.MIO
        replace(options, tau_step=step)  # checks what goes with it
    saddle = step is TauStep.SADDLE
    return Descent(context, RowMaker(context, options.oracles, saddle).make, saddle, signals)


class RowMaker:
    """Makes runs over other pairs of the same data and folds.

    Parameters
    ----------
    context : Context
        Of the search that they belong to.
    oracles : collection of Oracle, optional
        Those they may use, see :class:`sparsecv_mio.search.accelerators.Accelerators`.
    saddle : bool
        Estimate every cell by the saddle point instead of certifying it.
    """

    def __init__(self, context: Context, oracles: Collection[Oracle] | None = None, saddle: bool = False) -> None:
        self.context, self.oracles, self.saddle = context, oracles, saddle
        self.ledger = Ledger()

    def make(self, gammas: Sequence[float], taus: Sequence[int], signals: Signals | None = None) -> GridSearch:
        """Return a run over some pairs, not begun.

        Parameters
        ----------
        gammas, taus : sequences
            The grid of the run.
        signals : Signals, optional
            Where it says that it has come further; nobody listens by default.
        """
        data, folds = self.context.data, self.context.folds
        wide = by_rows(data, folds.k)
        threads = threads_for(data, self.context.threads) if wide or self.saddle else self.context.threads
        grid = Grid.of(gammas, taus, data.dataset.p)
        state = SearchState.new(replace(self.context, grid=grid, threads=threads, one_se=False))
        accelerators = Accelerators(state.context, state.all_rows, self.oracles, self.ledger)
        run = Run(state, accelerators, signals or Signals())
        if self.saddle:
            return GridSearch(SaddleRun(run))
        return GridSearch(ByRows(run) if wide else Rounds(run))

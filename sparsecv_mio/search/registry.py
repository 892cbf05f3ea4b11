"""From the options to the method that searches, not begun."""

from __future__ import annotations

from dataclasses import replace

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.accelerators import Accelerators
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
from sparsecv_mio.search.methods.rows import RowMaker
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.options import SearchOptions, method_for
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.state import SearchState
from sparsecv_mio.search.state.trees import HERE, Trees
from sparsecv_mio.words import Method, TauStep

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
    return Descent(context, RowMaker(context, options.oracles, saddle=step is TauStep.SADDLE), signals)

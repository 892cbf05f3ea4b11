"""One gamma, or one line of the grid, as a run of its own: what a descent and `refine` are made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sparsecv_mio.search.accelerators import Accelerators, Ledger
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.methods.by_rows import ByRows, by_rows, threads_for
from sparsecv_mio.search.methods.parts.grid_search import GridSearch
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.methods.rounds import Rounds
from sparsecv_mio.search.methods.saddle import SaddleRun
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.state import SearchState
from sparsecv_mio.words import Oracle


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

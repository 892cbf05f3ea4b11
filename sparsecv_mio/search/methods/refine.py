"""`--refine`: gamma improved continuously around the winner of a grid, its tau fixed."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.certificate.record import Record, Refined
from sparsecv_mio.search.methods.gamma_step import LEAST, MOST, PROGRESS, proposals
from sparsecv_mio.search.methods.parts.grid_search import NewRun
from sparsecv_mio.search.methods.parts.run import run_to_end
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.state.state import SearchState


def refined(record: Record, state: SearchState, new_run: NewRun) -> Refined:
    """Improve gamma around the reported pair at its tau; each gamma's folds are solved anew.

    Parameters
    ----------
    record : Record
    state : SearchState
        Of the run behind it.
    new_run : callable
        Makes the runs at other gammas.
    """
    context, unit = state.context, state.context.per_row
    interval = (min(LEAST, *record.request.gammas), max(MOST, *record.request.gammas))
    at = (int(np.searchsorted(context.grid.gammas, record.gamma)), int(np.searchsorted(context.grid.taus, record.tau)))
    lower, upper = (float(ends[at]) * unit for ends in (state.bounds().lower, state.bounds().upper))
    here = Refined(record.gamma, record.tau, record.cv_error, lower, upper, record.estimate)
    points = proposals(state, at, interval)
    while points and not context.deadline.expired():
        row = new_run([points.pop(0).gamma], [record.tau], Signals())
        row.begin()
        run_to_end(row)
        now = row.run.state.bounds()
        if now.ceiling * unit < here.upper * (1.0 - PROGRESS):
            h, open_folds = float(now.shown[now.best]) * unit, int(now.decided[now.best]) < context.folds.k
            gamma = float(row.context.grid.gammas[0])
            here = Refined(gamma, record.tau, h, now.floor * unit, now.ceiling * unit, open_folds)
            points = proposals(row.run.state, now.best, interval)
    return here

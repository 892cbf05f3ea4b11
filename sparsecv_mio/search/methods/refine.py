"""`--refine`: gamma improved continuously around the winner of a grid, its tau fixed."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.certificate.record import Record, Refined
from sparsecv_mio.search.methods.by_rows import WideSearch, by_rows
from sparsecv_mio.search.methods.descent import PROGRESS, proposals
from sparsecv_mio.search.methods.gamma_step import LEAST, MOST
from sparsecv_mio.search.methods.rounds import CrossValidation
from sparsecv_mio.search.options import Grid


def refined(record: Record, run: CrossValidation) -> Refined:
    """Improve gamma around the reported pair at its tau; each gamma's folds are solved anew.

    Parameters
    ----------
    record : Record
    run : CrossValidation
        The run behind it.
    """
    interval = (min(LEAST, *record.request.gammas), max(MOST, *record.request.gammas))
    at = (int(np.searchsorted(run.grid.gammas, record.gamma)), int(np.searchsorted(run.grid.taus, record.tau)))
    lower = float(run.bounds().lower[at]) * run.per_row
    here = Refined(record.gamma, record.tau, record.cv_error, lower, record.upper, record.estimate)
    points = proposals(run, at, interval)
    while points and not run.clock.expired():
        grid = Grid.of([points.pop(0).gamma], [record.tau], run.data.dataset.p)
        kind = WideSearch if by_rows(run.data, run.folds.k) else CrossValidation
        trial = kind(run.data, run.folds, grid, run.gap, run.clock, run.threads, None)
        trial.begin()
        trial.to_end()
        now, unit = trial.bounds(), trial.per_row
        if now.ceiling * unit < here.upper * (1.0 - PROGRESS):
            h, open_folds = float(now.shown[now.best]) * unit, int(now.decided[now.best]) < run.folds.k
            here = Refined(float(grid.gammas[0]), record.tau, h, now.floor * unit, now.ceiling * unit, open_folds)
            points = proposals(trial, now.best, interval)
    return here

"""The interval of every open cell that one factorisation of its fold and gamma gives."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.subproblem.cell_intervals import Incumbent, held_out_intervals
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem


def narrow_by_ridge_balls(run: Run, values: FloatArray, until: Deadline) -> None:
    """Bound the held-out error of every open cell by a ball (:mod:`sparsecv_mio.bounds.ridge_ball`).

    O(q^3) for each fold and gamma, whatever the number of taus.

    Parameters
    ----------
    run : Run
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included; inf where that is not known.
    until : Deadline
        Cells not bounded by then are left as they are.
    """
    context, cells = run.context, run.state.cells
    taus = context.grid.taus.tolist()
    wanted = run.state.open & np.isfinite(values)

    def narrow(fold: int, moments: Moments) -> None:
        made = FoldProblem.of(context.data, context.folds, fold, moments)
        for g, gamma in enumerate(context.grid.gammas.tolist()):
            which = np.flatnonzero(wanted[g, :, fold])
            if until.expired() or not len(which):
                continue
            shown = [cells.pool.supports[number] for number in cells.support[g, which, fold].tolist()]
            known = [
                Incumbent(taus[t], support, float(values[g, t, fold]))
                for t, support in zip(which.tolist(), shown, strict=True)
            ]
            found = held_out_intervals(made.with_gamma(gamma), known, relax=False)
            cells.narrow((g, which, fold), [one.lower for one in found], [one.upper for one in found])

    folds = np.flatnonzero(wanted.any(axis=(0, 1))).tolist()
    for _ in run_folds(run.accelerators.training_moments(folds), narrow, context.threads) if folds else ():
        if until.expired():
            break

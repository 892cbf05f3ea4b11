"""Supports proposed by IACV: the relaxations of all folds, run at once, estimate what each fold will choose.

For the squared loss the iterates are the left-out iterates themselves, so one accelerated proximal gradient run over
all folds (:func:`sparsecv_mio.oracles.iacv.fold_fits` with the squared k-support norm) comes near every fold's
relaxation of one gamma. The largest entries of a fold's point are candidate supports of every size; its held-out errors
say which gamma is likely to win. All of it is an estimate: supports are refitted before anything is said of them, and
the errors only order the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.formulation.backends.native.cell import PathResult
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.state.cells import CellTable

STEPS, TOLERANCE = 60, 1e-4  # supports settle long before values do
MOST_WORK = 4e9  # multiply-adds of all runs together; gammas beyond are left without a proposal
MOST_OFTEN = 8  # supports of a pair that every fold tries
PROX_WORK = 60.0  # of a proximal step, an entry, in multiply-adds


@dataclass(frozen=True, eq=False)
class Proposals:
    """Columns of every (gamma, fold) by falling size of their coefficients, and the estimated error of every gamma.

    Attributes
    ----------
    ranking : dict of int to (k, q) int array
        By gamma.
    nonzero : dict of int to (k,) int array
        How many of them are not zero.
    error : dict of int to float
        Held-out sum of squares of the relaxations, standard units: estimates, which may order the work only.
    fits : int
        Relaxations estimated.
    """

    ranking: dict[int, IntArray]
    nonzero: dict[int, IntArray]
    error: dict[int, float]
    fits: int

    def support(self, g: int, tau: int, fold: int) -> list[IntArray]:
        """Propose the columns of the tau largest coefficients of a fold, if so many are not zero.

        Parameters
        ----------
        g : int
            Index of the gamma.
        tau : int
        fold : int

        Returns
        -------
        list of int arrays
            One or none.
        """
        if g not in self.ranking or not 0 < tau <= self.nonzero[g][fold]:
            return []
        return [np.sort(self.ranking[g][fold, :tau])]

    def often(self, g: int, tau: int) -> list[IntArray]:
        """Return the supports of a size that are proposed in most folds, at most `MOST_OFTEN` of them."""
        if g not in self.ranking or tau <= 0:
            return []
        able = self.nonzero[g] >= tau
        if not able.any():
            return []
        named, count = np.unique(np.sort(self.ranking[g][able, :tau], axis=1), axis=0, return_counts=True)
        return [named[a] for a in np.argsort(-count, kind="stable")[:MOST_OFTEN]]

    def order(self, gammas: Sequence[int]) -> list[int]:
        """Sort gammas by their estimated error, those without one last."""
        return sorted(gammas, key=lambda g: self.error.get(g, np.inf))

    def hits(self, cells: CellTable, best_on_all_rows: Sequence[PathResult], taus: IntArray) -> int:
        """Count the decided cells whose support was proposed here and is not the best one on all rows.

        Parameters
        ----------
        cells : CellTable
        best_on_all_rows : sequence of PathResult
            By gamma.
        taus : (T,) int array

        Returns
        -------
        int
        """
        found = 0
        for g in self.ranking:
            for t, tau in enumerate(taus.tolist()):
                common = cells.pool.number(best_on_all_rows[g].cells[tau].support)
                for fold in np.flatnonzero(cells.decided[g, t] & (cells.support[g, t] != common)).tolist():
                    mine = self.support(g, tau, fold)
                    found += bool(mine and np.array_equal(mine[0], cells.pool.supports[cells.support[g, t, fold]]))
        return found


def work_of(data: StandardData, folds: FoldPlan) -> float:
    """Estimate the multiply-adds of the run of one gamma."""
    q = float(data.q)
    return STEPS * (folds.k * q * q + 4.0 * data.n * q + PROX_WORK * folds.k * q)


def propose(data: StandardData, folds: FoldPlan, grid: Grid, expired: Callable[[], bool]) -> Proposals:
    """Run the relaxations of all folds, one size a gamma, as many gammas as `MOST_WORK` affords.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
        The size is the middle one of its taus; a ranking serves every size.
    expired : callable
        True leaves the remaining gammas without a proposal.

    Returns
    -------
    Proposals
    """
    from sparsecv_mio.oracles.iacv import Erm, KSupport, Squared, fold_fits

    inner = grid.taus[(grid.taus > 0) & (grid.taus < data.q)]
    made = Proposals({}, {}, {}, 0)
    afford = int(MOST_WORK // max(work_of(data, folds), 1.0))
    if not len(inner) or data.q == 0 or folds.k < 1:
        return made
    X, y = data.rows(slice(0, data.n))
    penalty = KSupport(int(inner[len(inner) // 2]), None if np.all(data.weight == 1.0) else data.weight)
    theta: FloatArray | None = None
    fits = 0
    for g in np.argsort(-grid.gammas, kind="stable")[:afford].tolist():
        if expired():
            break
        erm = Erm(X, y, Squared(2.0), penalty, float(grid.gammas[g]) / 2.0, folds.labels)
        free = data.intercept is Intercept.FOLD
        found = fold_fits(erm, intercept=free, steps=STEPS, tolerance=TOLERANCE, begin=theta)
        if not np.all(np.isfinite(found.theta)):
            break
        theta = found.theta
        size = np.abs(theta)
        made.ranking[g] = np.argsort(-size, axis=1, kind="stable")
        made.nonzero[g] = (size > 0.0).sum(axis=1)
        held = folds.labels >= 0
        label = folds.labels[held]
        miss = y[held] - found.intercept[label] - np.einsum("ij,ij->i", X[held], theta[label])
        made.error[g] = float(miss @ miss)
        fits += folds.k
    return Proposals(made.ranking, made.nonzero, made.error, fits)

"""What is searched, in which data, and by when; and what is computed once from all rows."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.implied import implied_lower_bounds
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm, normal_form
from sparsecv_mio.problem.accumulate import Moments, row_moments
from sparsecv_mio.problem.elimination import Eliminated, eliminated
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.trees import HERE, Trees


@dataclass(frozen=True, eq=False)
class Context:
    """What is searched, in which data, and by when; the same for all of a search.

    Attributes
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
    gap : float
        Relative gap at which the certificate counts as closed; 0 decides every cell.
    deadline : Deadline
    threads : int
        Folds worked on at once.
    one_se : bool
        Whether the one-standard-error rule will be applied, and has to be sure of its pair.
    stability : tuple of float
        Weights of the instability for each of which the best pair has to be known; the first one's is reported.
    trees : Trees
        Who grows the trees of single folds.
    """

    data: StandardData
    folds: FoldPlan
    grid: Grid
    gap: float
    deadline: Deadline
    threads: int
    one_se: bool = False
    stability: tuple[float, ...] = ()
    trees: Trees = HERE

    @property
    def per_row(self) -> float:
        """Factor from sums of h_j in standard units to CV errors per row, by weight, in units of the file."""
        return self.data.y_unit**2 / (self.scored.total or 1)

    @cached_property
    def scored(self) -> Scored:
        """Weights of the rows that each fold scores."""
        return Scored.of(self.data.dataset, self.folds)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Gammas, taus, folds."""
        return len(self.grid.gammas), len(self.grid.taus), self.folds.k


class AllRows:
    """All rows at every gamma: moments once, one factorised normal form a gamma, the best supports found on them.

    Safe to use from several threads.

    Parameters
    ----------
    context : Context

    Attributes
    ----------
    best : list of PathResult
        By gamma, the best supports of every tau that were found on all rows; empty before the first were.
    starts : list of lists of int arrays
        By gamma, supports worth trying first.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.best: list[PathResult] = []
        self.starts: list[list[IntArray]] = [[] for _ in context.grid.gammas]
        self._moments: Moments | None = None
        self._base: SparseProblem | None = None
        self._eliminated: dict[int, Eliminated] = {}
        self._forms: dict[int, NormalForm] = {}
        self._solved: dict[int, tuple[FloatArray, FloatArray, float]] = {}
        self._lock = threading.RLock()

    def keep(self, found: Mapping[int, PathResult]) -> None:
        """Keep results by gamma in `best`; a gamma that a limit left out gets the supports of the nearest other one.

        Of such supports nothing is proved. Nothing is kept where nothing was found.
        """
        if not found:
            return
        near = {g: min(found, key=lambda other: abs(other - g)) for g in range(len(self.context.grid.gammas))}
        self.best[:] = [found[g] if g in found else _unproved(found[other]) for g, other in near.items()]

    def improve(self, g: int, found: PathResult) -> None:
        """Take over what another result says of some taus of a gamma.

        Parameters
        ----------
        g : int
            Index of the gamma.
        found : PathResult
            Of all rows at that gamma.
        """
        with self._lock:
            old = self.best[g]
            cells = old.cells | {tau: _joined(old.cells[tau], cell) for tau, cell in found.cells.items()}
            self.best[g] = PathResult(cells, old.nodes + found.nodes, all(cell.complete for cell in cells.values()))

    def lower_bounds(self) -> FloatArray:
        """(G, T): lower bounds of the optimum on all rows, what each pair says of the others included; kept in `best`.

        O(G T).
        """
        with self._lock:
            known = [[result.cells[tau].lower for tau in self.context.grid.taus.tolist()] for result in self.best]
            lower = implied_lower_bounds(self.context.grid.gammas, np.array(known))
            self.raise_lower_bounds(lower)
        return lower

    def raise_lower_bounds(self, lower: FloatArray) -> None:
        """Take over lower bounds of the optimum on all rows, whoever proved them.

        Parameters
        ----------
        lower : (G, T) array
            Certified, rounding included; 0 where nothing is known.
        """
        with self._lock:
            for result, bounds in zip(self.best, lower.tolist(), strict=True):
                for tau, bound in zip(self.context.grid.taus.tolist(), bounds, strict=True):
                    cell = result.cells[tau]
                    if bound > cell.lower:
                        result.cells[tau] = replace(cell, lower=max(cell.lower, min(bound, cell.upper)))

    @property
    def at_hand(self) -> bool:
        """Whether the moments were computed: never where a search goes by rows."""
        return self._moments is not None

    @property
    def moments(self) -> Moments:
        """Training moments of all rows; O(n q^2) the first time."""
        with self._lock:
            if self._moments is None:
                self._moments = row_moments(self.context.data, slice(0, self.context.data.n))
            return self._moments

    @property
    def base(self) -> SparseProblem:
        """All rows at gamma 1: what does not depend on gamma (Gram matrix, means, rows) is read from here."""
        with self._lock:
            if self._base is None:
                self._base = self.moments.problem(self.context.data, 1.0)
            return self._base

    def problem(self, g: int) -> SparseProblem:
        """All rows at the gamma of index `g`."""
        return self.base.with_gamma(float(self.context.grid.gammas[g]))

    def eliminated(self, g: int) -> Eliminated:
        """Return `problem(g)` without the columns that are forced in."""
        with self._lock:
            if g not in self._eliminated:
                self._eliminated[g] = eliminated(self.problem(g))
            return self._eliminated[g]

    def normal_form(self, g: int) -> NormalForm:
        """Return the normal form of `eliminated(g)`; O(q^3) the first time."""
        with self._lock:
            if g not in self._forms:
                self._forms[g] = normal_form(self.eliminated(g).problem)
            return self._forms[g]

    def solved(self, g: int) -> tuple[FloatArray, FloatArray, float]:
        """`(M^{-1}, M^{-1} c, f)` of the ridge fit on all columns of `normal_form(g)`; O(q^3) the first time."""
        with self._lock:
            if g not in self._solved:
                self._solved[g] = self.normal_form(g).solved()
            return self._solved[g]


def _joined(old: PathCell, new: PathCell) -> PathCell:
    """Return what two results together say of a tau: the better support, the larger lower bound."""
    if old.complete or new.complete:
        return old if old.complete else new
    return replace(new if new.upper <= old.upper else old, lower=max(old.lower, new.lower))


def _unproved(result: PathResult) -> PathResult:
    """Return the supports of a result, of which nothing is proved at another gamma or in a fold."""
    return PathResult({tau: PathCell.unproved(tau, cell.support) for tau, cell in result.cells.items()}, 0, False)

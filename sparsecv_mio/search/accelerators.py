"""The accelerators that `--oracles` switches: which are on, and what each of them saved.

They are named after the oracles they use.

* `glru`: the relaxation on all rows tested in every fold before a tree or a relaxation of the fold's own
  (:mod:`sparsecv_mio.bounds.reused`). Certified: it decides cells and drops columns.
* `iacv`: one batched proximal gradient run over all folds a gamma names supports and orders the gammas
  (:mod:`sparsecv_mio.search.heuristics.proposals`). Estimates: they are refitted before anything is said of them.
* `treecv`: the training moments of all folds by additions along a tree; off, every fold is read anew.

The answer and its certificate do not depend on what is on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.reused import Points, points_of
from sparsecv_mio.bounds.unit_diagonal import unit_diagonal
from sparsecv_mio.certificate.parts import OracleWork
from sparsecv_mio.formulation.backends.native.path import PathResult
from sparsecv_mio.problem.accumulate import Moments, direct_moments, training_moments
from sparsecv_mio.problem.elimination import eliminated, stripped
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.heuristics.proposals import Proposals, propose
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import AllRows, Context
from sparsecv_mio.search.subproblem.presolve import Solver, solve_presolved
from sparsecv_mio.words import Oracle

GLRU_COLUMNS = 300  # beyond, a fold's diagonal costs more than its first test can save


DEFAULT = frozenset({Oracle.GLRU, Oracle.TREECV})
COUNTS = ("asked", "mios", "relaxations", "columns", "hits", "rows")


class Ledger:
    """Counts and seconds by oracle, and the trees that were grown. Safe to use from several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: dict[Oracle, dict[str, int]] = {oracle: dict.fromkeys(COUNTS, 0) for oracle in Oracle}
        self.seconds: dict[Oracle, float] = dict.fromkeys(Oracle, 0.0)
        self.trees, self.nodes = 0, 0

    def add(self, oracle: Oracle, seconds: float = 0.0, **counts: int) -> None:
        """Add to the seconds and the counts of an oracle.

        Parameters
        ----------
        oracle : Oracle
        seconds : float
        **counts : int
            By their names in `COUNTS`.
        """
        with self.lock:
            self.seconds[oracle] += seconds
            for name, count in counts.items():
                self.counts[oracle][name] += int(count)

    def grown(self, trees: int, nodes: int) -> None:
        """Take note of trees of cells that were grown."""
        with self.lock:
            self.trees += trees
            self.nodes += nodes

    @contextmanager
    def clocked(self, oracle: Oracle) -> Iterator[None]:
        """Add what passes in here to the seconds of an oracle."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add(oracle, time.perf_counter() - begun)

    def work(self, oracle: Oracle) -> OracleWork:
        """Return what an oracle did so far."""
        counts = self.counts[oracle]
        nodes = round(counts["mios"] * self.nodes / self.trees) if self.trees else 0
        return OracleWork(str(oracle), nodes=nodes, seconds=self.seconds[oracle], **counts)


class Accelerators:
    """The accelerators of one run, and what each of them saved.

    Parameters
    ----------
    context : Context
    all_rows : AllRows
    named : collection of Oracle, optional
        One that is named is used wherever it can be; None means `DEFAULT`, each only where it saves time.
    ledger : Ledger, optional
        Shared by the runs of a descent.
    """

    def __init__(
        self,
        context: Context,
        all_rows: AllRows,
        named: Collection[Oracle] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.context, self.all_rows = context, all_rows
        self.wherever_possible, self.ledger = named is not None, ledger or Ledger()
        self.on = DEFAULT if named is None else frozenset(named)
        self._points: dict[int, Points | None] = {}
        self._proposals: Proposals | None = None
        self._lock = threading.Lock()

    # -- treecv -----------------------------------------------------------------------------------------------------

    def training_moments(self, wanted: Sequence[int] | None = None) -> Iterator[tuple[int, Moments]]:
        """Training moments of every fold wanted, along the tree or, with `treecv` off, one by one."""
        data, folds, ledger = self.context.data, self.context.folds, self.ledger
        read: list[int] = []
        tree = Oracle.TREECV in self.on
        source = (training_moments if tree else direct_moments)(data, folds, wanted, read.append)
        anew = 0
        while True:
            with ledger.clocked(Oracle.TREECV):
                found = next(source, None)
            if found is None:
                break
            anew += folds.n - int(folds.left_sizes[found[0]])
            if tree:
                ledger.add(Oracle.TREECV, asked=1)
            yield found
        if tree:
            ledger.add(Oracle.TREECV, rows=max(anew - sum(read), 0))

    # -- glru -------------------------------------------------------------------------------------------------------

    def points(self, g: int) -> Points | None:
        """Return the relaxations on all rows at a gamma; solved when first needed."""
        if Oracle.GLRU not in self.on or self.context.data.q > GLRU_COLUMNS:
            return None
        with self._lock:
            if g not in self._points:
                with self.ledger.clocked(Oracle.GLRU):
                    part = self.all_rows.eliminated(g)
                    taus = part.choice.sizes(self.context.grid.taus.tolist())
                    self._points[g] = points_of(unit_diagonal(part.problem), taus)
            return self._points[g]

    def solve(
        self,
        problem: SparseProblem,
        g: int,
        taus: Sequence[int],
        starts: Sequence[IntArray],
        solver: Solver,
        by_vendor: bool,
    ) -> PathResult:
        """Hand taus of one fold and gamma to `solver`, but for what the points on all rows decide.

        By default only a vendor's solver is spared: our own trees are done before the test is. Columns that are in no
        optimum of a single tau are removed, but for a vendor's solver, whose cells fix their own.

        Parameters
        ----------
        problem : SparseProblem
            Training rows of the fold at the gamma.
        g : int
            Index of gamma.
        taus : sequence of int
        starts : sequence of int arrays
            Supports to try first.
        solver : callable
            `(problem, taus, starts) -> PathResult`; it is given the problem without columns that are forced in.
        by_vendor : bool
            Whether `solver` is a vendor's.
        """
        part = eliminated(problem)
        sizes, supports = part.choice.sizes(taus), stripped(part.choice, starts)
        points = self.points(g) if by_vendor or self.wherever_possible else None
        if points is None:
            result = solver(part.problem, sizes, supports)
        else:
            note = partial(self.ledger.add, Oracle.GLRU)
            result = solve_presolved(part.problem, points, sizes, supports, solver, note, restrict=not by_vendor)
        if len(problem.forced):
            result = result.with_forced(part.choice, taus)
        if Oracle.GLRU in self.on:
            self.ledger.add(Oracle.GLRU, relaxations=result.reused)
        self.ledger.grown(sum(cell.branched for cell in result.cells.values()), result.nodes)
        return result

    @property
    def reuses(self) -> bool:
        """Whether the bounds layer tests the points on all rows first: where `glru` was named.

        Relaxations of the size that a test can spare are done in the time the test takes.
        """
        return Oracle.GLRU in self.on and self.wherever_possible

    def note_bounds(self, tested: int, relaxations: int, seconds: float) -> None:
        """Take note of what the bounds layer did with the points.

        Parameters
        ----------
        tested, relaxations : int
            Cells tested, and relaxations of folds that this spared.
        seconds : float
        """
        self.ledger.add(Oracle.GLRU, seconds, asked=tested, relaxations=relaxations)

    def decide_in_every_fold(self, g: int, decide: Callable[[Points], tuple[int, int]]) -> None:
        """Decide cells of every fold at once, from the rows alone, where `glru` was named.

        Best-first search rarely needs the cells that this decides: by default it is left out.

        Parameters
        ----------
        g : int
            Index of gamma.
        decide : callable
            Takes the relaxations on all rows and returns how many cells were tested, and how many decided.
        """
        points = self.points(g) if self.wherever_possible else None
        if points is None:
            return
        with self.ledger.clocked(Oracle.GLRU):
            tested, decided = decide(points)
        self.ledger.add(Oracle.GLRU, asked=tested, mios=decided)

    # -- iacv -------------------------------------------------------------------------------------------------------

    @property
    def proposals(self) -> Proposals | None:
        """Supports proposed by the batched relaxations of all folds; run when first needed."""
        if Oracle.IACV not in self.on:
            return None
        with self._lock:
            if self._proposals is None:
                with self.ledger.clocked(Oracle.IACV):
                    context = self.context
                    self._proposals = propose(context.data, context.folds, context.grid, context.deadline.expired)
                self.ledger.add(Oracle.IACV, asked=self._proposals.fits)
            return self._proposals

    def proposed(self, g: int, tau: int, fold: int) -> list[IntArray]:
        """Return the support that iacv proposes for a cell, if any.

        Parameters
        ----------
        g, tau, fold : int
            Index of gamma, size, fold.
        """
        proposals = self.proposals
        return [] if proposals is None else self._with_forced(tau, proposals.support(g, tau, fold))

    def often_proposed(self, g: int, tau: int) -> list[IntArray]:
        """Return the supports that iacv proposes most often for a pair."""
        proposals = self.proposals
        return [] if proposals is None else self._with_forced(tau, proposals.often(g, tau))

    def _with_forced(self, tau: int, supports: list[IntArray]) -> list[IntArray]:
        """Return supports with the columns that are forced in, of which the relaxations know nothing."""
        forced = self.context.data.forced
        if not len(forced):
            return supports
        chosen = [np.setdiff1d(support, forced)[: tau - len(forced)] for support in supports]
        return list({one.tobytes(): one for one in (np.union1d(forced, some) for some in chosen)}.values())

    def gamma_order(self, gammas: FloatArray) -> list[int]:
        """Which gamma first: the likely winner, if somebody has an estimate, else the largest."""
        proposals = self.proposals
        falling: list[int] = np.argsort(-gammas, kind="stable").tolist()
        return falling if proposals is None else proposals.order(falling)

    # -- the record -------------------------------------------------------------------------------------------------

    def work(self, cells: CellTable) -> tuple[OracleWork, ...]:
        """Return what each oracle that was on did and spared; `cells` are those of the run."""
        done = {oracle: self.ledger.work(oracle) for oracle in Oracle if oracle in self.on}
        if Oracle.IACV in done and self._proposals is not None:
            hits = self._proposals.hits(cells, self.all_rows.best, self.context.grid.taus)
            done[Oracle.IACV] = replace(done[Oracle.IACV], hits=done[Oracle.IACV].hits + hits)
        return tuple(done.values())

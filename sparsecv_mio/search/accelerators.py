"""The accelerators that `--oracles` switches: which are on, and what each of them saved.

They are named after the oracles they use. The answer and its certificate do not depend on what is on.

* `glru` (`solve_presolved`): the dual solutions of the relaxations on all rows are dual feasible in every fold
  (:mod:`sparsecv_mio.bounds.fold`), and are tested there before a tree or a relaxation of the fold's own. They fix
  columns in or out of every near-optimal support. A cell whose support they fix completely needs no branch-and-bound;
  where a single tau is left, the columns that are fixed out are removed from the problem, which is valid for that tau
  alone, as optima of two tau need not be nested. Certified.
* `treecv`: the training moments of all folds by additions along a tree; off, every fold is read anew.
* `iacv`: nothing. It proposed supports and an order of the gammas, which shortened no search; the word goes in 0.3.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.fold import FoldBounds, Points, Reused, points_of, reuse
from sparsecv_mio.bounds.relaxation import unit_diagonal
from sparsecv_mio.certificate.parts import OracleWork
from sparsecv_mio.kernels.nodes import DROPPED
from sparsecv_mio.problem.elimination import eliminated, stripped
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import TrainingMoments, moments_of_training, training_moments
from sparsecv_mio.search.cells import places_in
from sparsecv_mio.search.context import BestOnAllRows, Context
from sparsecv_mio.slices import Kept
from sparsecv_mio.thresholds import RELAXED_COLUMNS, SMALL
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.trees.support_fits import near_tie_margin
from sparsecv_mio.units import KEEP_RTOL
from sparsecv_mio.words import Oracle

Solver = Callable[[SparseProblem, list[int], list[IntArray]], BestSubsets]


def solve_presolved(
    problem: SparseProblem,
    points: Points,
    taus: Sequence[int],
    starts: Sequence[IntArray],
    solver: Solver,
    report: Callable[..., None],
    restrict: bool = True,
) -> BestSubsets:
    """Solve some tau of a fold, by `solver` what the relaxations on all rows do not decide.

    Parameters
    ----------
    problem : SparseProblem
        Training rows of a fold at the gamma of the points.
    points : Points
        Solutions of the relaxations on all rows.
    taus : sequence of int
    starts : sequence of int arrays
        Supports to try as incumbents.
    solver : callable
        `(problem, taus, starts) -> BestSubsets`.
    report : callable
        Called with what the test did: seconds, cells that were asked for, those decided (`mios`), columns removed.
    restrict : bool
        Whether columns may be removed.

    Returns
    -------
    BestSubsets
        In the columns of `problem`.
    """
    begun = time.perf_counter()
    fold = FoldBounds(problem, np.zeros((0, problem.q)), np.zeros(0), points.diagonal)  # no held-out rows
    tested = _test(fold, points, [tau for tau in taus if 0 < tau < fold.m], starts)
    if tested is None:
        report(seconds=time.perf_counter() - begun)
        return solver(problem, list(taus), list(starts))
    decided = {int(tested.sizes[t]): _decided(fold, int(tested.sizes[t])) for t in np.flatnonzero(tested.decided)}
    undecided = [tau for tau in taus if tau not in decided]
    incumbents = [tau for tau in undecided if 0 < tau < fold.m and np.isfinite(fold.best[tau])]
    supports_known = [*starts, *(np.flatnonzero(fold.supports[tau]) for tau in incumbents)]
    keep = _columns_left(problem, tested, undecided) if restrict else np.arange(problem.q)
    seconds, removed = time.perf_counter() - begun, problem.q - len(keep)
    report(seconds=seconds, asked=len(tested.sizes), mios=len(decided), columns=removed)
    if not undecided:
        return BestSubsets(decided, 0, True)
    if len(keep) == problem.q or len(keep) <= undecided[0]:
        solved = solver(problem, undecided, supports_known)
    else:
        solved = solver(problem.only(keep), undecided, places_in(keep, supports_known)).in_columns(keep)
    return BestSubsets({**solved.by_size, **decided}, solved.nodes, solved.finished, solved.reused)


def _test(fold: FoldBounds, points: Points, sizes: list[int], starts: Sequence[IntArray]) -> Reused | None:
    """Test the points on all rows in a fold; None where they say nothing."""
    if not sizes:
        return None
    fold.try_supports(starts)
    if fold.problem.q <= SMALL:  # beyond, elimination costs more than a tree
        fold.search(sizes)
    return reuse(fold, points, sizes, KEEP_RTOL)


def _decided(fold: FoldBounds, tau: int) -> BestSubset:
    """Cell of which the incumbent is the only near-optimal support."""
    value, support = float(fold.best[tau]), np.flatnonzero(fold.supports[tau])
    margin = near_tie_margin(fold.problem, value)
    low = max(value - margin, 0.0)
    return BestSubset(tau, support, low, value, (support,), (value,), margin, complete=True, branched=False)


def _columns_left(problem: SparseProblem, tested: Reused, left: list[int]) -> IntArray:
    """Columns that a near-optimal support may hold, where a single tau is left and no column has a copy; else all."""
    copies = problem.copies is not None and bool(np.any(problem.copies >= 0))
    if copies or len(left) != 1 or left[0] not in tested.sizes:
        return np.arange(problem.q)
    return np.flatnonzero(tested.status[int(np.searchsorted(tested.sizes, left[0]))] != DROPPED)


DEFAULT = frozenset({Oracle.GLRU, Oracle.TREECV})
COUNTS = ("asked", "mios", "relaxations", "columns", "rows")


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
    all_rows : BestOnAllRows
    named : collection of Oracle, optional
        One that is named is used wherever it can be; None means `DEFAULT`, each only where it saves time.
    ledger : Ledger, optional
        Shared by the runs of a descent.
    """

    def __init__(
        self,
        context: Context,
        all_rows: BestOnAllRows,
        named: Collection[Oracle] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.context, self.all_rows = context, all_rows
        self.wherever_possible, self.ledger = named is not None, ledger or Ledger()
        self.on = DEFAULT if named is None else frozenset(named)
        self._points: dict[int, Points | None] = {}
        self._lock = threading.Lock()
        self._kept: dict[int, Kept] = {}

    def kept(self, fold: int) -> Kept:
        """Return what was computed of the training rows of a fold, whenever it was visited."""
        return self._kept.setdefault(fold, Kept())

    # -- treecv -----------------------------------------------------------------------------------------------------

    def training_moments(self, wanted: Sequence[int] | None = None) -> Iterator[tuple[int, TrainingMoments]]:
        """Training moments of every fold wanted, along the tree or, with `treecv` off, one by one."""
        data, folds, ledger = self.context.data, self.context.folds, self.ledger
        read: list[int] = []
        tree = Oracle.TREECV in self.on
        one_by_one = range(folds.k) if wanted is None else sorted(wanted)
        source = (
            training_moments(data, folds, wanted, read.append)
            if tree
            else ((fold, moments_of_training(data, folds.train_rows(fold))) for fold in one_by_one)
        )
        anew = 0
        while True:
            with ledger.clocked(Oracle.TREECV):
                pair_of_fold = next(source, None)
            if pair_of_fold is None:
                break
            anew += folds.n - int(folds.left_sizes[pair_of_fold[0]])
            if tree:
                ledger.add(Oracle.TREECV, asked=1)
            yield pair_of_fold
        if tree:
            ledger.add(Oracle.TREECV, rows=max(anew - sum(read), 0))

    # -- glru -------------------------------------------------------------------------------------------------------

    def points(self, g: int) -> Points | None:
        """Return the relaxations on all rows at a gamma; solved when first needed."""
        if Oracle.GLRU not in self.on or self.context.data.q > RELAXED_COLUMNS:
            return None
        with self._lock:
            if g not in self._points:
                with self.ledger.clocked(Oracle.GLRU):
                    reduced = self.all_rows.eliminated(g)
                    taus = reduced.choice.sizes(self.context.grid.taus.tolist())
                    self._points[g] = points_of(unit_diagonal(reduced.problem), taus)
            return self._points[g]

    def solve(
        self,
        problem: SparseProblem,
        g: int,
        taus: Sequence[int],
        starts: Sequence[IntArray],
        solver: Solver,
        by_vendor: bool,
    ) -> BestSubsets:
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
            `(problem, taus, starts) -> BestSubsets`; it is given the problem without columns that are forced in.
        by_vendor : bool
            Whether `solver` is a vendor's.
        """
        reduced = eliminated(problem)
        sizes, supports = reduced.choice.sizes(taus), stripped(reduced.choice, starts)
        points = self.points(g) if by_vendor or self.wherever_possible else None
        if points is None:
            result = solver(reduced.problem, sizes, supports)
        else:
            note = partial(self.ledger.add, Oracle.GLRU)
            result = solve_presolved(reduced.problem, points, sizes, supports, solver, note, restrict=not by_vendor)
        if len(problem.forced):
            result = result.with_forced(reduced.choice.size, reduced.choice.whole, taus)
        if Oracle.GLRU in self.on:
            self.ledger.add(Oracle.GLRU, relaxations=result.reused)
        self.ledger.grown(sum(cell.branched for cell in result.by_size.values()), result.nodes)
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

    # -- the record -------------------------------------------------------------------------------------------------

    def work(self) -> tuple[OracleWork, ...]:
        """Return what each oracle that was on did and spared."""
        return tuple(self.ledger.work(oracle) for oracle in Oracle if oracle in self.on)

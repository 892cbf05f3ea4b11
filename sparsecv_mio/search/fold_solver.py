"""Cells of one fold by our own trees, up to certified intervals of the held-out errors.

Branch-and-bound on the training problem of a cell (gamma, tau, fold) ends in one of two ways.

* *Every candidate is known*: a list holds each support that can be optimal. All are refitted. Those whose training
  objective is least, or tied with the least within the rounding of the refits, are the optimal ones; their held-out
  errors, with the rounding of each, span the interval, and the cell is decided.
* *Only an incumbent is known*, with training objective at most `u`: the error is bounded by what holds for every b with
  `f(b) <= u`: the ridge ball (:mod:`sparsecv_mio.bounds.closed_form`), whatever its support, the relaxations of
  :mod:`sparsecv_mio.bounds.fold` on what screening by the incumbent leaves, and the training-loss bound of section 3.

A cell whose candidates are known stays undecided where the refits disagree with the values that the tree pruned by, or
where their held-out errors are inaccurate.

Trees and relaxations are slices (:mod:`sparsecv_mio.slices`): pure functions of a fold, for threads here or workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, IntArray
from sparsecv_mio.bounds.closed_form import RidgeBall, training_loss_bound
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.accelerators import Accelerators
from sparsecv_mio.search.cells import Where
from sparsecv_mio.search.context import SearchState
from sparsecv_mio.search.fold_fits import FoldProblem, Refits
from sparsecv_mio.thresholds import CUBIC_COLUMNS, RELAXED_COLUMNS, SMALL
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.restricted_tree import solve_restricted
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.units import TIE_RTOL, WORST_ROUNDING, Interval


@dataclass(frozen=True, eq=False)
class Incumbent:
    """Best support known of a cell.

    Attributes
    ----------
    tau : int
    support : int array
        Columns of the problem.
    upper : float
        At least f of every optimum of the cell, tied ones included; inf where that is not known.
    """

    tau: int
    support: IntArray
    upper: float


def held_out_intervals(
    here: FoldProblem, incumbents: Sequence[Incumbent], relax: bool = True
) -> tuple[list[Interval], list[float]]:
    """Bound the held-out sums of squares of some cells of one fold and gamma, and their training objectives from below.

    Parameters
    ----------
    here : FoldProblem
    incumbents : sequence of Incumbent
        Of each cell.
    relax : bool
        False leaves it at the ridge ball, O(q^3 + rows q^2) in all; True adds relaxations where rows and columns are
        few enough.

    Returns
    -------
    intervals : list of Interval
        Squared standard units.
    floors : list of float
        At most the training objective of every optimum; 0 where nothing is known.
    """
    problem, rows = here.problem, here.held_out
    intervals, floors = [Interval(0.0, np.inf)] * len(incumbents), [0.0] * len(incumbents)
    if problem.q <= CUBIC_COLUMNS:
        ball = (
            RidgeBall.of_moments(problem, rows.Q, rows.c, rows.yy, rows.unit, rows.level, rows.count)
            if rows.by_moments
            else RidgeBall.of_rows(problem, rows.V, rows.r, rows.unit, rows.level)
        )
        if ball is not None:
            intervals = [ball.held_out(incumbent.upper) for incumbent in incumbents]
            floors = [ball.least] * len(incumbents)
    finite = [at for at, incumbent in enumerate(incumbents) if np.isfinite(incumbent.upper)]
    if not relax or not finite or rows.by_moments or problem.q > RELAXED_COLUMNS:
        return intervals, floors
    scored = rows.folds.scored_rows(rows.fold)
    fold = FoldBounds(problem, *(problem.own or rows.data).rows(scored), root=rows.data.root_of(scored))
    for incumbent_of in (incumbents[at] for at in finite):
        fold.improve(incumbent_of.tau, incumbent_of.support, incumbent_of.upper)
    cells = fold.cells([incumbents[at].tau for at in finite])
    slack = 1e-12 * float(fold.u @ fold.u) + 1e-300
    for at, cell in zip(finite, cells, strict=True):
        intervals[at] = intervals[at].tighten(cell.interval, slack + 1e-9 * intervals[at].upper)
        floors[at] = max(floors[at], cell.objective_lower)
    return intervals, floors


def balls_by_gamma(
    here: FoldProblem, incumbents: Sequence[tuple[float, Sequence[Incumbent]]], expired: Callable[[], bool]
) -> list[tuple[list[Interval], list[float]]]:
    """Bound cells of one fold at some gammas by ridge balls, a slice; of the last gammas none where the time is over.

    Parameters
    ----------
    here : FoldProblem
    incumbents : sequence of (float, sequence of Incumbent)
        A gamma, and those of the cells at it.
    expired : callable

    Returns
    -------
    list
        At each gamma what `held_out_intervals` returns.
    """
    bounds = []
    for gamma, some in incumbents:
        if expired():
            break
        bounds.append(held_out_intervals(here.with_gamma(gamma), some, relax=False))
    return bounds


class CellIntervals:
    """Turns outcomes of branch-and-bound into intervals and writes them.

    Parameters
    ----------
    state : SearchState
        Its cells are written for the fold at hand only, so that folds may be worked on in several threads; the lower
        bounds on all rows serve the training-loss bound.
    """

    def __init__(self, state: SearchState) -> None:
        self.context, self.cells, self.all_rows = state.context, state.cells, state.all_rows

    def write_outcome(
        self, here: FoldProblem, g: int, which: IntArray, result: BestSubsets, relax: bool = True
    ) -> None:
        """Write what the outcome of branch-and-bound for some tau of a fold and gamma says of their intervals.

        Parameters
        ----------
        here : FoldProblem
            The fold at the gamma of index `g`.
        g : int
        which : (m,) int array
            Indices of tau.
        result : BestSubsets
            Has a cell for each of them.
        relax : bool
            Whether cells that are not decided may be bounded by relaxations.
        """
        if not len(which):
            return
        solved = [result.by_size[int(self.context.grid.taus[t])] for t in which]
        listed = [list(cell.candidates) if cell.complete else [cell.support] for cell in solved]
        supports = [support for some in listed for support in some]
        ends = np.cumsum([len(some) for some in listed])
        fits, fold = here.refit(supports), here.fold
        lone = self._decide_lone(here, g, which, solved, fits.at(ends - 1))
        undecided: dict[int, Incumbent] = {}
        for at in np.flatnonzero(~lone).tolist():
            t, cell, some, end = int(which[at]), solved[at], listed[at], int(ends[at])
            mine, where = fits.at(slice(end - len(some), end)), (g, t, fold)
            if cell.complete and _agree(mine, cell):
                self.decide(here, where, some, mine, cell.branched)
            else:
                undecided[t] = Incumbent(cell.tau, *self._offer_best(here, where, some, mine, cell.complete))
                self.cells.mark(where, cell.branched, result.finished)
                self.cells.raise_floor(where, cell.lower)
        if undecided:
            self._bound(here, g, undecided, relax)

    def _decide_lone(
        self, here: FoldProblem, g: int, which: IntArray, found: list[BestSubset], fits: Refits
    ) -> BoolArray:
        """Decide the cells that list one support, all at once, but for those `decide` has to look at; which these are.

        Parameters
        ----------
        here : FoldProblem
        g : int
        which : (m,) int array
        found : list of m cells
        fits : Refits
            Of the last support that each of them lists.

        Returns
        -------
        (m,) bool array
            The cells that are decided now.
        """
        lone = np.array([cell.complete and len(cell.candidates) == 1 for cell in found])
        tree = np.array([cell.values[0] if alone else np.nan for cell, alone in zip(found, lone, strict=True)])
        margin = np.array([cell.margin for cell in found])
        with np.errstate(invalid="ignore"):  # values that are not finite are not sure
            sure = lone & np.isfinite(fits.value) & (np.abs(fits.value - tree) <= 0.5 * margin + fits.value_error)
        sure &= fits.held_out_error <= WORST_ROUNDING * fits.held_out + here.negligible
        numbers = [
            self._number(here, cell.candidates[0]) if alone else 0 for cell, alone in zip(found, sure, strict=True)
        ]
        self.cells.decide_part(
            (g, which, here.fold), sure, np.array(numbers, dtype=np.int32), fits.held_out,
            fits.held_out - fits.held_out_error, fits.held_out + fits.held_out_error, fits.value,
            np.array([cell.branched for cell in found]),
        )  # fmt: skip
        return np.asarray(sure)

    def _offer_best(
        self, here: FoldProblem, where: Where, supports: list[IntArray], fits: Refits, complete: bool
    ) -> tuple[IntArray, float]:
        """Offer the best support of a cell to the table; that support, and a value at least f of every optimum."""
        values = fits.value + fits.value_error
        upper = float(values.min() if complete else values[0]) * (1.0 + TIE_RTOL)  # a tied optimum may lie that high
        best = int(np.argmin(fits.value))
        self.cells.offer(where, self._number(here, supports[best]), float(fits.held_out[best]), float(fits.value[best]))
        return supports[best], upper

    def _bound(self, here: FoldProblem, g: int, undecided: dict[int, Incumbent], relax: bool) -> None:
        """Bound the held-out errors of cells of which only an incumbent is known, by the number of tau."""
        incumbents = list(undecided.values())
        on_all_rows = np.array([self.all_rows.best[g].by_size[incumbent.tau].lower for incumbent in incumbents])
        uppers = np.array([incumbent.upper for incumbent in incumbents])
        place = (g, np.array(list(undecided)), here.fold)
        if self.context.folds.scores_all_left_out[here.fold]:
            self.cells.narrow(place, training_loss_bound(on_all_rows, uppers), np.inf)
        if not self.context.deadline.spare():  # nobody waits for more
            return
        intervals, floors = self.context.hands.do(held_out_intervals, here, incumbents, relax)
        self.cells.raise_floor(place, floors)
        self.cells.narrow(place, [interval.lower for interval in intervals], [interval.upper for interval in intervals])

    def decide(self, here: FoldProblem, where: Where, supports: list[IntArray], fits: Refits, branched: bool) -> None:
        """Decide a cell by supports among which every optimal one is, unless its error is too inaccurate for that.

        Parameters
        ----------
        here : FoldProblem
            The fold at the gamma of the cell.
        where : gamma, tau, fold
        supports : list of int arrays
            Columns of `here.problem`.
        fits : Refits
            Their refits, with finite error bounds.
        branched : bool
            Whether a tree was needed.
        """
        value, error = fits.value, fits.value_error
        best = int(np.argmin(value))
        tied = np.flatnonzero(value - error <= value[best] * (1.0 + TIE_RTOL) + error[best])
        supports = [supports[int(i)] for i in tied]
        losses, slip = fits.held_out[tied], fits.held_out_error[tied]
        if not np.all(slip <= WORST_ROUNDING * losses + here.negligible):
            self.cells.narrow(where, max(float((losses - slip).min()), 0.0), float((losses + slip).max()))
            self.cells.offer(where, self._number(here, supports[0]), float(losses[0]), float(value[tied[0]]))
            self.cells.mark(where)
            return
        first = min(range(len(supports)), key=lambda i: tuple(np.sort(supports[i]).tolist()))
        self.cells.decide(
            where,
            support=[
                self._number(here, support) for support in (supports[first], *supports[:first], *supports[first + 1 :])
            ],
            nominal=float(losses[first]),
            lower=float((losses - slip).min()),
            upper=float((losses + slip).max()),
            tie=float(losses.max() - losses.min()),
            value=float(value[tied[first]]),
            branched=branched,
        )

    def _number(self, here: FoldProblem, support: IntArray) -> int:
        """Return the number of a support in the pool of all columns."""
        return self.cells.pool.number(here.in_data(support))


def _agree(fits: Refits, cell: BestSubset) -> bool:
    """Whether refitted values are those of the tree up to its margin; values without any accuracy are no agreement."""
    if not np.all(np.isfinite(fits.value)):
        return False
    return bool(np.all(np.abs(fits.value - np.array(cell.values)) <= 0.5 * cell.margin + fits.value_error))


class FoldSolver:
    """Solves cells of one fold after the other. Safe to use from several threads, each at a fold of its own.

    Parameters
    ----------
    state : SearchState
        Its cells are written for the fold at hand; the best supports on all rows are the first to try.
    accelerators : Accelerators
    """

    def __init__(self, state: SearchState, accelerators: Accelerators) -> None:
        self.context, self.cells, self.all_rows, self.counts = state.context, state.cells, state.all_rows, state.counts
        self.accelerators, self.intervals = accelerators, CellIntervals(state)
        self.tree_bytes = STORE_BYTES // (len(self.context.grid.gammas) * self.context.folds.k)

    def run(self, fold: int, moments: TrainingMoments, wanted: BoolArray, effort: int) -> int:
        """Work on some cells of a fold until the limit.

        Parameters
        ----------
        fold : int
        moments : TrainingMoments
            Of its training rows.
        wanted : (G, T) bool array
        effort : int
            Nodes that branch-and-bound may spend on one tau.

        Returns
        -------
        int
            Nodes spent.
        """
        nodes = 0
        supports: list[IntArray] = []  # at the gamma before
        for g, which, here in self._each_gamma(fold, moments, wanted):
            if self.context.deadline.expired():
                break
            starts = self.best_on_all_rows(g) + supports + self._shown(g, which, fold)
            result = self.branch_and_bound(here, g, which, starts, effort)
            self.intervals.write_outcome(here, g, which, result)
            supports = [cell.support for cell in result.by_size.values()]
            nodes += result.nodes
        return nodes

    def bound(self, fold: int, moments: TrainingMoments, wanted: BoolArray) -> None:
        """Give some cells of a fold an incumbent and the bounds that need no branching, whatever the time.

        Parameters
        ----------
        fold : int
        moments : TrainingMoments
            Of its training rows.
        wanted : (G, T) bool array
        """
        for g, which, here in self._each_gamma(fold, moments, wanted):
            starts = self.best_on_all_rows(g) + self._shown(g, which, fold)
            taus = self.context.grid.taus[which].tolist()
            result = solve_path(here.problem, taus, starts=starts, effort=0, expired=lambda: True)
            self.intervals.write_outcome(here, g, which, result)

    def branch_and_bound(
        self, here: FoldProblem, g: int, which: IntArray, starts: Sequence[IntArray], effort: int
    ) -> BestSubsets:
        """Solve some tau of a fold and gamma by our own trees, but for what the accelerators spare.

        Parameters
        ----------
        here : FoldProblem
            The fold at the gamma of index `g`.
        g : int
        which : int array
            Indices of tau.
        starts : sequence of int arrays
            Supports to try first.
        effort : int
            Nodes that one tau may cost.

        Returns
        -------
        BestSubsets
        """

        def trees(problem: SparseProblem, taus: list[int], starts: list[IntArray]) -> BestSubsets:
            until = self.context.deadline
            return self.context.hands.do(
                solve_path, problem, taus, starts=starts, effort=effort, until=until, resume=self.tree_bytes
            )

        taus = self.context.grid.taus[which].tolist()
        if self.context.data.restrictions.beyond_forcing:
            constraints, expired = constraints_of(self.context.data), self.context.deadline.expired
            return solve_restricted(here.problem, taus, constraints, starts=starts, effort=effort, expired=expired)
        return self.accelerators.solve(here.problem, g, taus, list(starts), trees, by_vendor=False)

    def at_gamma(self, fold_problem: FoldProblem, g: int) -> FoldProblem:
        """Return a fold at the gamma of index `g`."""
        return fold_problem.with_gamma(float(self.context.grid.gammas[g]))

    def best_on_all_rows(self, g: int) -> list[IntArray]:
        """Return the best supports known on all rows at a gamma, of every tau."""
        return [cell.support for cell in self.all_rows.best[g].by_size.values()]

    def _each_gamma(
        self, fold: int, moments: TrainingMoments, wanted: BoolArray
    ) -> Iterator[tuple[int, IntArray, FoldProblem]]:
        """Yield the gammas with cells that are wanted, the largest first, with their taus and the fold there."""
        fold_problem = FoldProblem.of(self.context.data, self.context.folds, fold, moments)
        fold_problem = fold_problem.keeping(self.accelerators.kept(fold))
        for g in np.argsort(-self.context.grid.gammas, kind="stable").tolist():
            if wanted[g].any():
                self.counts.add(0, problems=1)
                yield g, np.flatnonzero(wanted[g]), self.at_gamma(fold_problem, g)

    def _shown(self, g: int, which: IntArray, fold: int) -> list[IntArray]:
        """Supports that the table holds for some tau of a fold, where folds have searched by themselves."""
        if self.context.data.q <= SMALL:
            return []
        numbers = np.unique(self.cells.support[g, which, fold])
        return [self.cells.pool.supports[number] for number in numbers[numbers > 0].tolist()]

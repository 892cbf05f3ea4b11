"""Bounds of every cell by what is known of all rows: the training-loss bound and ridge balls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING, enough_on_all_rows, training_loss_bound
from sparsecv_mio.bounds.more_weight import MOST_MISSED, Known, MoreWeight, RowsTogether
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.refit import RowFit
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.cells import Archive, Where, held_sums, within
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.fold_fits import FoldProblem, refits_by_gamma
from sparsecv_mio.search.fold_solver import Incumbent, balls_by_gamma
from sparsecv_mio.search.leave_fold_out import first_intervals
from sparsecv_mio.search.pair_rows import PairRows
from sparsecv_mio.search.pairs import likely_winner
from sparsecv_mio.search.run import Run, StoredPart
from sparsecv_mio.search.shared_trees import SharedTrees
from sparsecv_mio.trees.subsets import ROUND_GROWTH, BestSubset, BestSubsets
from sparsecv_mio.units import ACCURATE_RTOL, SUM_RTOL, TIE_RTOL

if TYPE_CHECKING:
    from sparsecv_mio.bounds.wide import WideFold

LEAST_MISSING = 0.05  # of the rise of a pair, below which a fold is not worth a tree
NEAR_BEST = 0.25  # of what the most promising fold promises: those below have no trees before it has had more


def raise_lower_ends(run: Run, values: FloatArray, slip: float = 0.0) -> None:
    """Raise the lower ends of all held-out intervals to what the lower bounds on all rows say.

    Parameters
    ----------
    run : Run
    values : (G, T, K) array
        At least the training objective of every optimum of a fold, tied ones included; inf where none is known.
    slip : float
        What rounding may leave between the training rows of a fold and all rows.
    """
    whole, on_all_rows, sums = run.context.folds.scores_all_left_out, run.all_rows.lower_bounds(), held_sums(values)
    by_sums = np.isfinite(sums)
    for g, t in np.argwhere(by_sums).tolist():
        least = run.context.folds.k * (on_all_rows[g, t] - slip) * (1.0 - SUM_RTOL)
        run.cells.raise_sum(g, t, float(least - sums[g, t] * (1.0 + SUM_RTOL)))
    for g, lower in enumerate(on_all_rows):  # one by one, as all at once would take memory
        for t in _rows_of(by_sums[g], values):
            bound = training_loss_bound(lower[t, None], values[g, t], slip)
            run.cells.narrow(np.s_[g, t, :], np.where(whole, bound, 0.0), np.inf)


def _rows_of(by_sums: BoolArray, values: Any) -> list[Any]:
    """Return indices of all sizes together, or of tables that hold rows of pairs one by one, but for those of sums."""
    return np.flatnonzero(~by_sums).tolist() if isinstance(values, PairRows) else [slice(None)]


def enough_to_exclude(run: Run, values: FloatArray, bars: FloatArray, slip: float = 0.0) -> FloatArray:
    """(G, T): bounds on all rows from which on the sum of the lower ends of a pair reaches a bar; inf where none does.

    Parameters
    ----------
    run, values, slip
        As for `raise_lower_ends`.
    bars : (G, T) array
    """
    whole, enough = run.context.folds.scores_all_left_out, np.empty(bars.shape)
    bars, sums = bars * (1.0 + ACCURATE_RTOL), held_sums(values)
    by_sums = np.isfinite(sums)
    for g, bar in enumerate(bars):  # one by one, as all at once would take memory
        for t in _rows_of(by_sums[g], values):
            enough[g, t] = enough_on_all_rows(
                run.cells.lower[g, t], np.where(whole, values[g, t] + slip, np.inf), bar[t]
            )  # fmt: skip
    if by_sums.any():
        reached = np.asarray(run.cells.lower.sum(axis=2)) >= bars
        least = (bars + sums * (1.0 + SUM_RTOL)) / (run.context.folds.k * (1.0 - SUM_RTOL)) + slip
        enough[by_sums] = np.where(reached, 0.0, least)[by_sums]
    return enough


class LowerOnAllRows(StoredPart):
    """Lower bounds on all rows in a checkpoint.

    Parameters
    ----------
    run : Run
        All rows have a support of every size when it is restored.
    name : str
        Of the array.
    """

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.name = run, name

    def archive(self) -> Archive:
        """Return what is known; 0 before supports are."""
        lower, known = np.zeros(self.run.context.shape[:2]), self.run.all_rows.of_pairs(lambda cell: cell.lower)
        lower[: len(known)] = known
        return {self.name: lower}

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` for numbers that cannot be such."""
        within(stored, self.name, 0.0, np.finfo(np.float64).max)

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        self.run.all_rows.raise_lower_bounds(stored[self.name])


class LossBounds(StoredPart):
    """A better bound on all rows raises the lower bounds of all folds of a pair at once.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included: that of the supports that the cells
        showed when they were last refitted; inf where they were not.
    """

    stored_as: ClassVar = {
        "loss_values": ("values", 0, np.inf), "loss_refitted": ("_refitted", -1, np.iinfo(np.int32).max),
    }  # fmt: skip

    def __init__(self, run: Run) -> None:
        self.run = run
        self.values = np.full(run.context.shape, np.inf)
        self._refitted = np.full(run.context.shape, -1, dtype=np.int32)  # the numbers of these supports

    def apply(self, lower: FloatArray | None = None, gammas: IntArray | slice = slice(None)) -> None:
        """Raise the lower ends of all held-out intervals to what the lower bounds on all rows say.

        Cells that show no support yet are offered the best one on all rows.

        Parameters
        ----------
        lower : (G, T) array, optional
            Certified lower bounds of the optimum on all rows, rounding included, beyond those known already; 0 where
            there is none.
        gammas : int array or slice
            Indices of those at which supports may be refitted; all by default.
        """
        self._refit(gammas)
        if lower is not None:
            self.run.all_rows.raise_lower_bounds(lower)
        raise_lower_ends(self.run, self.values)

    def _refit(self, gammas: IntArray | slice) -> None:
        """Refit in every fold the supports that its cells have come to show. O(G T (s^3 + rows s)) a fold."""
        context, cells = self.run.context, self.run.cells
        on_all_rows = self.run.all_rows.of_pairs(lambda cell: cells.pool.number(cell.support))
        with cells.lock:
            shown = np.where(np.isfinite(cells.nominal), cells.support, on_all_rows[:, :, None])
        new = np.zeros(context.shape, dtype=bool)
        new[gammas] = shown[gammas] != self._refitted[gammas]

        def refit(fold: int, moments: TrainingMoments) -> None:
            self._refit_fold(FoldProblem.of(context.data, context.folds, fold, moments), shown, new)

        folds = np.flatnonzero(new.any(axis=(0, 1))).tolist()
        for _ in run_folds(self.run.accelerators.training_moments(folds), refit, context.threads) if folds else ():
            if context.deadline.expired():
                break
        self.values = np.minimum.accumulate(self.values, axis=1)  # what is feasible for tau is so for a larger one

    def _refit_fold(self, here: FoldProblem, shown: IntArray, new: BoolArray) -> None:
        """Refit some supports of a fold, by their numbers (G, T, K), and offer them to its cells."""
        context, pool = self.run.context, self.run.cells.pool
        numbers, at_taus = dict[int, IntArray](), dict[int, IntArray]()
        for g in np.flatnonzero(new[:, :, here.fold].any(axis=1)).tolist():
            numbers[g], at_taus[g] = np.unique(shown[g, new[g, :, here.fold], here.fold], return_inverse=True)
        supports = [
            (float(context.grid.gammas[g]), [pool.supports[number] for number in some.tolist()])
            for g, some in numbers.items()
        ]
        by_gamma = context.hands.do(refits_by_gamma, here, supports, until=context.deadline)
        for (g, some), fits in zip(numbers.items(), by_gamma, strict=False):  # a limit may leave the last ones
            self.run.counts.add(0, problems=1)
            at, place = at_taus[g].reshape(-1), (g, np.flatnonzero(new[g, :, here.fold]), here.fold)
            self.run.cells.offer(place, some[at].astype(np.int32), fits.held_out[at], fits.value[at])
            values = (fits.value + fits.value_error) * (1.0 + TIE_RTOL)
            values = np.where(np.isfinite(values), values, np.inf)[at]
            self.values[place] = np.minimum(self.values[place], values)
            self._refitted[place] = shown[place]


class LossByRows:
    """What trees on the rows of all folds together exclude.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included; inf where none is known.
    tried : (G, T) int array
        Nodes that a tree on all rows was given.
    """

    def __init__(self, run: Run) -> None:
        data = run.context.data
        r, root = (data.dataset.y - data.y_center) / data.y_unit - data.r_rest, data.root_of(slice(0, data.n))
        self.run, self.values = run, np.full(run.context.shape, np.inf)
        self.slip = ROWS_ROUNDING * float(r @ r if root is None else (root * r) @ (root * r))
        self.tried = np.zeros(run.context.shape[:2], dtype=np.int64)

    def note(self, where: Where, fit: RowFit) -> None:
        """Take note of the training objective of a support of the size of a cell."""
        value = (fit.objective + fit.objective_error) * (1.0 + TIE_RTOL)
        if np.isfinite(value):
            self.values[where] = min(self.values[where], value)

    def promising(self, wanted: BoolArray, effort: int) -> BoolArray:
        """(G, T): pairs of some cells (G, T, K) that a tree on all rows may exclude, and was not given the effort yet.

        None before the best pair is known.
        """
        now = self.run.bounds()
        wanted_pairs = wanted.any(axis=2) & (self.tried < effort)
        wanted_pairs[now.best] = False
        return wanted_pairs & np.isfinite(self.enough())

    def winner_first(self, wanted: BoolArray) -> BoolArray:
        """(G, T, K): while no pair has an upper bound, the cells of the one that is likely to win; then `wanted`."""
        now = self.run.bounds()
        if np.isfinite(now.ceiling):
            return wanted
        winner = np.zeros(wanted.shape, dtype=bool)
        winner[likely_winner(now)] = True
        return wanted & winner if (wanted & winner).any() else wanted

    def enough(self) -> FloatArray:
        """(G, T): bounds on all rows from which on a pair is excluded; inf where none is enough."""
        bar = self.run.bounds().ceiling * (1.0 - self.run.context.gap)
        return enough_to_exclude(self.run, self.values, np.full(self.values.shape[:2], bar), self.slip)

    def bound(self, whole: WideFold, g: int, which: list[int], effort: int) -> None:
        """Grow a tree on all rows for some tau of a gamma, as far as it takes to exclude the pair, and bound the folds.

        Parameters
        ----------
        whole : WideFold
            All rows at the gamma.
        g : int
        which : list of int
            Indices of tau.
        effort : int
            Nodes of each tree.
        """
        with self.run.accounts.of(BoundSource.ALL_ROWS):
            self._grow(whole, g, which, effort)

    def _grow(self, whole: WideFold, g: int, which: list[int], effort: int) -> None:
        state = self.run
        with state.cells.lock:
            numbers = set(state.cells.support[g].ravel().tolist()) - {0}
        whole.try_supports([state.cells.pool.supports[number] for number in sorted(numbers)])
        for t in which:
            self.tried[g, t], tau = effort, int(self.run.context.grid.taus[t])
            enough = float(self.enough()[g, t])
            if whole.expired() or not enough < whole.upper(tau):
                continue
            seen, nodes = whole.branch(tau, enough, effort)
            state.counts.add(nodes, problems=1)
            support = whole.incumbent(tau)
            if support is not None:
                cell = BestSubset.unproved(tau, support, whole.upper(tau), seen.lower)
                state.all_rows.improve(g, BestSubsets({tau: cell}, nodes, False))
            raise_lower_ends(self.run, self.values, self.slip)


def narrow_by_ridge_balls(run: Run, values: FloatArray, until: Deadline) -> None:
    """Bound the held-out error of every open cell by a ball (:mod:`sparsecv_mio.bounds.closed_form`).

    O(q^3) for each fold and gamma, whatever the number of taus.

    Parameters
    ----------
    run : Run
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included; inf where that is not known.
    until : Deadline
        Cells not bounded by then are left as they are.
    """
    context, cells = run.context, run.cells
    taus = context.grid.taus.tolist()
    wanted = run.open & np.isfinite(values)

    def narrow(fold: int, moments: TrainingMoments) -> None:
        incumbents = {
            g: [
                Incumbent(taus[t], cells.pool.supports[cells.support[g, t, fold]], float(values[g, t, fold]))
                for t in np.flatnonzero(wanted[g, :, fold]).tolist()
            ]
            for g in np.flatnonzero(wanted[:, :, fold].any(axis=1)).tolist()
        }
        here = FoldProblem.of(context.data, context.folds, fold, moments)
        at_gammas = [(float(context.grid.gammas[g]), some) for g, some in incumbents.items()]
        bounds = context.hands.do(balls_by_gamma, here, at_gammas, until=until)
        for g, (intervals, floors) in zip(incumbents, bounds, strict=False):  # a limit may leave the last ones
            run.counts.add(0, problems=1)
            place = (g, np.flatnonzero(wanted[g, :, fold]), fold)
            cells.narrow(place, [interval.lower for interval in intervals], [interval.upper for interval in intervals])
            cells.raise_floor(place, floors)

    with run.accounts.of(BoundSource.RIDGE_BALLS):
        _in_folds(run, wanted, narrow, until)


def bounded_in_closed_form(run: Run, trees: SharedTrees) -> list[int]:
    """Bound every cell by the fits on all rows with the rows of its fold left out; the gammas where that is no use.

    Parameters
    ----------
    run : Run
    trees : SharedTrees
        Of the run; they start from the same fits.

    Returns
    -------
    list of int
        Indices of gammas, those beyond a limit among them.
    """
    others = []
    with run.accounts.of(BoundSource.CLOSED_FORM):
        for g in range(len(run.context.grid.gammas)):
            root = None if run.context.deadline.expired() else trees.root(g)
            if root is None:
                others.append(g)
            else:
                run.counts.add(0, problems=1)
                first_intervals(root)
    return others


class WeightBounds:
    """Lower ends of held-out intervals from the rows of every fold, with some weight (`bounds.more_weight`).

    Parameters
    ----------
    run : Run
    loss : LossBounds
        Whose training objectives are those of every optimum.
    """

    def __init__(self, run: Run, loss: LossBounds) -> None:
        self.run, self.loss = run, loss
        self._rising = np.argsort(run.context.grid.gammas, kind="stable")
        self._by_fold: dict[int, MoreWeight] = {}

    def relax(self, pairs: BoolArray, until: Deadline) -> None:
        """Bound the open cells of some pairs (G, T) by relaxations; cells not bounded by then are left as they are."""

        def work(here: FoldProblem, rows: RowsTogether, known: Known) -> FloatArray:
            wanted = pairs & self.run.open[:, :, here.fold]
            self.run.counts.add(0, problems=int(wanted.any(axis=1).sum()))
            do, bounds = self.run.context.hands.do, self._of(here.fold)
            arguments = rows, wanted[self._rising], known
            self._by_fold[here.fold], errors = do(MoreWeight.relax, bounds, *arguments, until=until)
            return errors

        with self.run.accounts.of(BoundSource.LEFT_OUT_RELAXED):
            self._in_folds(pairs, work, until)

    def branch(self, pairs: list[tuple[int, int]], rise: float, nodes: int, until: Deadline) -> None:
        """Grow a tree in every fold of some pairs, by index, that is to raise the lower end of the cell.

        The folds share what is asked by what they miss. Those that may rise most for the nodes of their next trees come
        first, and others wait: one fold that no model fits may hold most of what is missing.

        Parameters
        ----------
        pairs : list of (int, int)
        rise : float
            Of the sum of held-out errors of a pair.
        nodes : int
            Of the first tree of a cell, at most.
        until : Deadline
        """
        solved = self.run.all_rows.solved_pairs()[self._rising]
        place = np.argsort(self._rising)
        wanted = np.zeros(self.run.context.shape[:2], dtype=bool)
        wanted[tuple(zip(*pairs, strict=True))] = True

        folds = range(self.run.context.folds.k)
        shares = {pair: rise / max(sum(self._missing(fold)[pair] for fold in folds), rise) for pair in pairs}

        def work(here: FoldProblem, rows: RowsTogether, known: Known) -> FloatArray:
            cells, bounds, missing, targets = self.run.cells, self._of(here.fold), self._missing(here.fold), {}
            worth_a_tree = self._worth_trees(here.fold, rise)
            for pair in pairs:
                if worth_a_tree[pair]:
                    least, more = float(cells.lower[*pair, here.fold]), float(shares[pair] * missing[pair])
                    targets[int(place[pair[0]]), pair[1]] = least + more, least + 0.5 * more
            if not targets:
                return bounds.held_out_errors(known.values)
            do, arguments = self.run.context.hands.do, (rows, targets, nodes, known)
            bounds.take_light_weights(solved)
            self._by_fold[here.fold], errors, spent = do(MoreWeight.branch_each, bounds, *arguments, until=until)
            self.run.counts.add(sum(spent), problems=len(spent))
            return errors

        with self.run.accounts.of(BoundSource.LEFT_OUT_TREES):
            self._in_folds(wanted, work, until, self._most_promising(wanted, rise))

    def _most_promising(self, pairs: BoolArray, rise: float) -> list[int]:
        """Return the folds that may rise most at some pairs (G, T) for the nodes of their next trees, in that order."""
        place, promises = np.argsort(self._rising), {}
        for fold in range(self.run.context.folds.k):
            nodes = ROUND_GROWTH ** self._of(fold).missed[place]
            promises[fold] = float((self._missing(fold) / nodes)[pairs & self._worth_trees(fold, rise)].sum())
        least = NEAR_BEST * max(promises.values())
        return sorted((fold for fold in promises if promises[fold] > least), key=lambda fold: -promises[fold])

    def may_rise(self, rise: float) -> BoolArray:
        """(G, T): pairs with a fold that is worth a tree, for a rise of their sums of held-out errors."""
        folds = range(self.run.context.folds.k)
        return np.any([self._worth_trees(fold, rise) for fold in folds], axis=0)

    def _worth_trees(self, fold: int, rise: float) -> BoolArray:
        missed = self._of(fold).missed[np.argsort(self._rising)]
        return (self._missing(fold) > LEAST_MISSING * rise) & (missed < MOST_MISSED)

    def _missing(self, fold: int) -> FloatArray:
        """(G, T): what the lower ends of a fold are below the held-out errors shown; 0 where nothing is open."""
        cells, still_open = self.run.cells, self.run.open[:, :, fold]
        shown = np.where(still_open & np.isfinite(cells.nominal[:, :, fold]), cells.nominal[:, :, fold], 0.0)
        return np.maximum(shown - cells.lower[:, :, fold], 0.0)

    def _of(self, fold: int) -> MoreWeight:
        grid = self.run.context.grid
        return self._by_fold.setdefault(fold, MoreWeight(grid.gammas[self._rising], grid.taus))

    def _in_folds(
        self, pairs: BoolArray, work: Callable[[FoldProblem, RowsTogether, Known], FloatArray], until: Deadline,
        order: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Work on the folds with open cells among some pairs (G, T), and raise the lower ends of all cells by it."""
        run, rising = self.run, self._rising

        def narrow(fold: int, moments: TrainingMoments) -> None:
            here = FoldProblem.of(run.context.data, run.context.folds, fold, moments)
            here = here.keeping(run.accelerators.kept(fold))
            known_values = Known(self.loss.values[rising, :, fold], run.cells.nominal[rising, :, fold])
            lower = np.zeros(known_values.values.shape)
            lower[rising] = work(here, RowsTogether(here.problem, here.held_out.moments()), known_values)
            lower = np.maximum(np.sqrt(lower) - here.held_out.off_by_mean, 0.0) ** 2
            run.cells.narrow(np.s_[:, :, fold], lower, np.inf)

        _in_folds(run, pairs[:, :, None] & run.open, narrow, until, order)


def _in_folds(
    run: Run, wanted: BoolArray, narrow: Callable[[int, TrainingMoments], None], until: Deadline,
    order: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Bound cells of every fold that has some that are wanted (G, T, K), those not reached by then excepted.

    With an order, only the folds in it, one after the other.
    """
    folds = np.flatnonzero(wanted.any(axis=(0, 1))).tolist()
    groups = [folds] if order is None else [[fold] for fold in order if fold in folds]
    moments = chain.from_iterable(map(run.accelerators.training_moments, groups))
    for _ in run_folds(moments, narrow, run.context.threads) if folds else ():
        if until.expired():
            break

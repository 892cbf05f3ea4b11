"""The least lower bounds of the grid, which are the gap that a limit leaves, raised by what raised them most a second.

Two sources: trees on all rows, and trees on the rows of folds with those left out. A slice works on the pairs of the
least bounds, one of each tau, and raises them by a tenth of the least upper bound: no further, as others are the least
then. Trees on all rows are asked for less where their best objectives known allow no more: they go on where the last
slice, or sweep, left them, and often end. Each source notes what a slice brought at a pair a second, and the one that
promises more is taken (:mod:`sparsecv_mio.search.ranked_loop`). A tree on all rows shows nothing of what it brought
until it passes the bounds that other sources gave: it is ranked by how far it has still to go, and how fast it came on.
Without a limit only relaxations are made: a proof needs all pairs excluded, whatever their order.

Both together have half of the time in the first half of a limit, and all of the second. To rank them with sweeps over
taus, pairs proved and gap closed counting alike, was tried: on 64 columns the gap after a minute was 0.058 and tau 11
was proved, instead of 0.083 and tau 15; on 91 columns the gap was larger. They have no part while sweeps are expected
to end within the limit: 44 columns of prostate, tau 1 to 10, are proved in 22 CPU seconds, and ended a limit of 40 with
a gap of 0.16.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.bounds.more_weight import MOST_MISSED, Known, MoreWeight, RowsTogether
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.deadline import CHOOSING_SHARE, CLOCK_TICK, SLICE_SHARE, Deadline
from sparsecv_mio.search.fold_fits import FoldProblem
from sparsecv_mio.search.loss_bounds import in_folds
from sparsecv_mio.search.pairs import Pair
from sparsecv_mio.search.ranked_loop import Offer
from sparsecv_mio.search.run import MOST_TRIES, Run, effort_of
from sparsecv_mio.search.sources.all_rows_trees import AllRowsTrees, LossBounds
from sparsecv_mio.search.sources.in_question import RISE, mask_of, taus_named
from sparsecv_mio.thresholds import MANY
from sparsecv_mio.trees.subsets import FIRST_LOOK, ROUND_GROWTH

LEFT_OUT_NODES = FIRST_LOOK // ROUND_GROWTH  # of such a tree
PAIRS = 8  # of a slice at first, whose bounds are at most half a rise above the least one
LESS = 0.5, 0.25, 0.125  # of the rise, that trees on all rows are asked for where they cannot bring all of it
LEAST_DISTANCE = 1e-6  # of an objective, that what is asked is away at least
LEAST_MISSING = 0.05  # of the rise of a pair, below which a fold is not worth a tree
NEAR_BEST = 0.25  # of what the most promising fold promises: those below have no trees before it has had more


class TimeShare:
    """The part of a limit that the least bounds have: a proof, and one among the small taus, is worth more.

    Parameters
    ----------
    deadline : Deadline
    needed : callable
        Seconds that a proof is expected to take without them: where it fits into the limit, they have no part.

    Attributes
    ----------
    began, spent : float
        When the work on taus began, inf before, and seconds spent on the least bounds since.
    """

    def __init__(self, deadline: Deadline, needed: Callable[[], float]) -> None:
        self.deadline, self.needed, self.began, self.spent = deadline, needed, np.inf, 0.0

    @property
    def due(self) -> bool:
        """Whether a slice is due: always in the second half of a limit that no proof fits into; never without one."""
        if not (np.isfinite(self.deadline.at) and np.isfinite(self.began)):
            return False
        if self.needed() <= self.deadline.left:
            return False
        slice_left, since = self.deadline.sooner(SLICE_SHARE).left, self.deadline.seconds - self.began
        return self.spent + slice_left <= CHOOSING_SHARE * since or self.deadline.by_share(CHOOSING_SHARE).over()


class RankedTrees(ABC):
    """Trees at the pairs with the least lower bounds, ranked by what they brought last.

    Parameters
    ----------
    trees : AllRowsTrees
    share : TimeShare
        Of the time, of all trees that are ranked with these.

    Attributes
    ----------
    tries : (G, T) int array
        Of each effort, at a pair.
    gains : (G, T) array
        What the last one brought, in shares of the least upper bound and second; inf where there was none.
    seconds : (G, T) array
        That trees of a pair took so far.
    most : int
        Pairs of a slice: half as many after one that the clock ended, which left some of them or their folds out.
    """

    def __init__(self, trees: AllRowsTrees, share: TimeShare) -> None:
        self.run, self.trees, self.in_question, self.share = trees.run, trees, trees.in_question, share
        self.tries = np.zeros(self.run.context.shape[:2], dtype=np.int64)
        self.gains, self.seconds, self.most = np.full(self.tries.shape, np.inf), np.zeros(self.tries.shape), PAIRS

    @abstractmethod
    def usable(self) -> BoolArray:
        """(G, T): pairs whose lower bounds they may raise."""

    @abstractmethod
    def grow(self, pairs: list[Pair], until: Deadline) -> None:
        """Do a slice of work at some pairs, which were tried as often."""

    @abstractmethod
    def progress(self) -> FloatArray:
        """(G, T): how far pairs have come, as what gains are measured by."""

    @property
    def bar(self) -> float:
        """The least upper bound."""
        return float(self.run.cells.upper.sum(axis=2).min())

    def gained(self, rises: FloatArray) -> FloatArray:
        """Return what a slice is said to have brought each of its pairs, by what they rose."""
        return rises

    @abstractmethod
    def needs_more(self, rises: FloatArray) -> BoolArray:
        """Whether the next slice needs more effort, by what this one brought, in shares of the bar."""

    def promise(self, pair: Pair) -> float:
        """Return what a slice brought last at a pair, or at the nearest one where one was tried; inf where none was."""
        near = self.nearest(pair)
        return np.inf if near is None else float(self.gains[near])

    def nearest(self, pair: Pair) -> Pair | None:
        """Return the pair nearest to one where a slice was done; None where none was."""
        tried = np.argwhere(np.isfinite(self.gains))
        if not len(tried):
            return None
        g, t = tried[np.abs(tried - pair).sum(axis=1).argmin()].tolist()
        return g, t

    def offers(self) -> list[Offer]:
        """Return work on the pairs of the least bounds, one of each tau, at the same effort, where a slice is due."""
        if not self.share.due:
            return []
        usable = self.in_question.pairs() & (self.tries < MOST_TRIES) & self.usable()
        lower = np.where(usable, self.run.cells.lower.sum(axis=2), np.inf)
        weakest = lower.argmin(axis=0)
        which = np.argsort(lower.min(axis=0), kind="stable")
        pairs = [(int(weakest[t]), t) for t in which.tolist() if np.isfinite(lower[weakest[t], t])]
        top = float(lower.min()) + RISE / 2.0 * self.bar
        pairs = [pair for pair in pairs if self.tries[pair] == self.tries[pairs[0]] and lower[pair] <= top]
        return [Offer(self, tuple(pairs[: self.most]), self.promise(pairs[0]))] if pairs else []

    def work(self, offer: Offer) -> None:
        """Do a slice, and note by how much it raised each pair a second."""
        run, pairs = self.run, list(offer.pairs)
        at, began = tuple(zip(*pairs, strict=True)), run.context.deadline.seconds
        before, until = self.progress()[at], run.context.deadline.sooner(SLICE_SHARE)
        self.grow(pairs, until)
        self.most = max(len(pairs) // 2, 1) if until.expired() else min(2 * self.most, self.tries.size)
        rises = self.progress()[at] - before
        seconds = run.context.deadline.seconds - began
        self.share.spent += seconds
        each = max(seconds, CLOCK_TICK) / len(pairs)
        self.gains[at] = self.gained(rises) / each
        self.seconds[at] += each
        self.tries[at] += self.needs_more(rises)


class RankedAllRows(RankedTrees):
    """Trees on all rows; what they prove at one gamma bounds its neighbours too."""

    def usable(self) -> BoolArray:
        """(G, T): pairs whose best subset of all rows is not known, and may raise the bound by some of the rise."""
        return ~self.run.all_rows.solved_pairs() & (self._rises() > 0.0)

    def progress(self) -> FloatArray:
        """(G, T): lower bounds on all rows, in shares of the best objective known."""
        return self.run.all_rows.of_pairs(lambda cell: cell.lower / cell.upper if cell.upper > 0.0 else 1.0)

    def promise(self, pair: Pair) -> float:
        """Return what is asked a second, by how far that is and how fast trees came on here or at the nearest pair.

        Other bounds may hold a pair, of which trees that come near them show nothing yet. Trees come on by the
        logarithm of their time: with a rate r after S seconds, a distance d takes `S (exp(d / (r S)) - 1)` more. What
        takes more than is left of the limit promises nothing.
        """
        near, upper, rises = self.nearest(pair), self.run.all_rows.of_pairs(lambda cell: cell.upper), self._rises()
        if near is None:
            return np.inf
        short = max(self.trees.enough(self._raised(rises))[pair] / upper[pair] - self.progress()[pair], LEAST_DISTANCE)
        log_rise = max(float(self.gains[near] * self.seconds[near]), LEAST_DISTANCE)
        with np.errstate(over="ignore"):
            needed = float(self.seconds[near] * np.expm1(short / log_rise))
        return float(rises[pair]) / max(needed, CLOCK_TICK) if needed < self.run.context.deadline.left else 0.0

    def offers(self) -> list[Offer]:
        """Return work that promises something."""
        return [offer for offer in super().offers() if offer.rate > 0.0]

    def grow(self, pairs: list[Pair], until: Deadline) -> None:
        """Solve all rows at some pairs, as far as it takes to raise each by what is asked."""
        raised, effort = self._raised(self._rises()), effort_of(int(self.tries[pairs[0]]))
        self.trees.solve(mask_of(self.tries.shape, *pairs), effort, until, raised)

    def _rises(self) -> FloatArray:
        """(G, T): by how much bounds are to rise, in shares of the bar: no more than best objectives known allow."""
        upper, rises = self.run.all_rows.of_pairs(lambda cell: cell.upper), np.zeros(self.tries.shape)
        for share in (1.0, *LESS):
            asked = np.full(rises.shape, share * RISE)
            rises = np.where((rises == 0.0) & (self.trees.enough(self._raised(asked)) <= upper), asked, rises)
        return rises

    def _raised(self, rises: FloatArray) -> FloatArray:
        """(G, T): sums of lower ends that are asked for, at most those that exclude a pair."""
        lower = self.run.cells.lower.sum(axis=2)
        return np.asarray(np.minimum(lower + rises * self.bar, self.in_question.bars()))

    def needs_more(self, rises: FloatArray) -> BoolArray:
        """Say yes to all: what an effort proves is known now."""
        return np.ones(len(rises), dtype=bool)


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

        in_folds(run, pairs[:, :, None] & run.open, narrow, until, order)


class RankedLeftOut(RankedTrees):
    """Trees of folds with the rows that they leave out, up to so many columns that their relaxations cost little."""

    @cached_property
    def weight(self) -> WeightBounds:
        """Bounds from the rows that folds leave out, made where they are asked for."""
        return WeightBounds(self.run, self.trees.loss)

    def usable(self) -> BoolArray:
        """(G, T): pairs with a fold that is worth a tree."""
        few_columns = self.run.context.data.q <= MANY
        return self.weight.may_rise(RISE * self.bar) if few_columns else np.zeros(self.tries.shape, dtype=bool)

    def progress(self) -> FloatArray:
        """(G, T): lower bounds, in shares of the bar."""
        return np.asarray(self.run.cells.lower.sum(axis=2) / self.bar)

    def grow(self, pairs: list[Pair], until: Deadline) -> None:
        """Grow a tree in every fold of some pairs."""
        run = self.run
        taus = run.context.said_taus[np.unique([t for _, t in pairs])]
        run.signals.doing(f"trees with rows left out: {taus_named(taus)}, fold")
        self.weight.branch(pairs, RISE * self.bar, LEFT_OUT_NODES, until)

    def gained(self, rises: FloatArray) -> FloatArray:
        """Return the mean: what one pair rose says little of the next ones."""
        return np.full(len(rises), rises.mean())

    def needs_more(self, rises: FloatArray) -> BoolArray:
        """Whether they brought less than half of what was asked for."""
        return np.asarray(rises < 0.5 * RISE)

    def relax(self) -> None:
        """Bound the folds of all pairs in question by relaxations first: what they raise needs fewer trees.

        (Without a limit, too: 40 columns of topgear are proved in 5.1 CPU seconds, and were in 8.3 without this.)
        """
        self.run.signals.doing("relaxations of every fold with its rows left out")
        self.weight.relax(self.in_question.pairs(), self.run.context.deadline)

"""The least lower bounds of the grid, which are the gap that a limit leaves, raised by what raised them most a second.

Two sources compete: trees on all rows, and trees on the rows of folds with those left out. Each notes what a slice
brought at a pair, in shares of the bar and second; of the two that with the larger gain last time is taken, one that
was never tried first. An effort that brought too little grows at the next try.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.loss_bounds import WeightBounds
from sparsecv_mio.search.pairs import Pair
from sparsecv_mio.search.run import FIRST_EFFORT
from sparsecv_mio.search.sources.all_rows_trees import AllRowsTrees
from sparsecv_mio.search.sources.in_question import mask_of, taus_named
from sparsecv_mio.thresholds import MANY

EFFORT_FACTOR = 4  # from one try of a pair to the next
MOST_TRIES = 24
ALL_ROWS_EFFORT = 4  # a tree on all rows may cost so many times what one of a fold may: it speaks for all folds
LEAST_SHARE = 0.25  # of the time since taus are worked on, under a limit, that the least lower bounds may take
LEAST_TURN = 0.05  # of a time limit, at once
RISE, LEFT_OUT_NODES = 0.1, 128  # of the bar, that trees of folds with their rows left out are to bring, and nodes
LEAST_ENOUGH = 0.9  # of the bar, from which on the least lower bound needs no work of its own
LEAST_AT_ONCE = 4  # pairs of the least lower bounds that each thread works on


class RankedTrees(ABC):
    """Trees that are ranked by what they brought last.

    Attributes
    ----------
    tries : (G, T) int array
        Of each effort, at a pair.
    gains : (G, T) array
        What the last one brought, in shares of the bar and second; inf where there was none.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.tries = np.zeros(shape[:2], dtype=np.int64)
        self.gains = np.full(shape[:2], np.inf)

    @abstractmethod
    def usable(self) -> BoolArray:
        """(G, T): pairs whose lower bounds they may raise."""

    @abstractmethod
    def grow(self, pairs: list[Pair], tries: int, bar: float, until: Deadline) -> None:
        """Do a slice of work at some pairs, by the effort of so many tries."""

    @abstractmethod
    def needs_more(self, rises: FloatArray) -> BoolArray:
        """Whether the next slice needs more effort, by what this one brought, in shares of the bar."""


class RankedAllRows(RankedTrees):
    """Trees on all rows; what they prove at one gamma bounds its neighbours too."""

    def __init__(self, trees: AllRowsTrees) -> None:
        super().__init__(trees.run.context.shape)
        self.trees = trees

    def usable(self) -> BoolArray:
        """(G, T): pairs whose best subset of all rows is not known."""
        return self.trees.unsolved()

    def grow(self, pairs: list[Pair], tries: int, bar: float, until: Deadline) -> None:
        """Solve all rows at some pairs."""
        effort = ALL_ROWS_EFFORT * FIRST_EFFORT * EFFORT_FACTOR**tries
        self.trees.solve(mask_of(self.tries.shape, *pairs), effort, LEAST_TURN)

    def needs_more(self, rises: FloatArray) -> BoolArray:
        """Say yes to all: what an effort proves is known now."""
        return np.ones(len(rises), dtype=bool)


class RankedLeftOut(RankedTrees):
    """Trees of folds with the rows that they leave out, up to so many columns that their relaxations cost little.

    Parameters
    ----------
    trees : AllRowsTrees
        Whose training objectives they start from.
    """

    def __init__(self, trees: AllRowsTrees) -> None:
        super().__init__(trees.run.context.shape)
        self.run, self.trees = trees.run, trees

    @cached_property
    def weight(self) -> WeightBounds:
        """Bounds from the rows that folds leave out, made where they are asked for."""
        return WeightBounds(self.run, self.trees.loss)

    def usable(self) -> BoolArray:
        """(G, T): all pairs."""
        return np.full(self.tries.shape, self.run.context.data.q <= MANY)

    def grow(self, pairs: list[Pair], tries: int, bar: float, until: Deadline) -> None:
        """Grow a tree in every fold of some pairs."""
        run = self.run
        taus = run.context.grid.taus[np.unique([t for _, t in pairs])]
        run.signals.doing(f"trees with rows left out: {taus_named(taus)}, fold")
        rise = RISE * bar / run.context.folds.k
        self.weight.branch(pairs, rise, LEFT_OUT_NODES * EFFORT_FACTOR**tries, until)

    def needs_more(self, rises: FloatArray) -> BoolArray:
        """Whether they brought less than half of what was asked for."""
        return np.asarray(rises < 0.5 * RISE)


class LeastBounds:
    """Raises the least lower bounds for a part of the time: a proof among the small taus is worth more.

    Parameters
    ----------
    trees : AllRowsTrees

    Attributes
    ----------
    began, spent : float
        When the work on taus began, inf before, and seconds spent here since.
    """

    def __init__(self, trees: AllRowsTrees) -> None:
        self.run, self.in_question = trees.run, trees.in_question
        self.left_out = RankedLeftOut(trees)
        self.ranked: tuple[RankedTrees, ...] = (RankedAllRows(trees), self.left_out)
        self.began, self.spent = np.inf, 0.0

    def relax(self, share: float) -> None:
        """Bound the folds of the low pairs by relaxations with their rows left out, for a share of the limit at most.

        Nothing is done without a limit, which alone leaves a gap.
        """
        run = self.run
        if np.isfinite(run.context.deadline.at) and self.left_out.usable().all():
            run.signals.doing("relaxations of every fold with its rows left out")
            lower, upper = run.cells.lower.sum(axis=2), run.cells.upper.sum(axis=2)
            low = self.in_question.pairs() & (lower < LEAST_ENOUGH * upper.min())
            self.left_out.weight.relax(low, run.context.deadline.sooner(share))

    def raise_them(self) -> bool:
        """Work on the pairs of the least lower bounds, one of each tau; False where that is not due."""
        run, deadline = self.run, self.run.context.deadline
        until, since = deadline.sooner(LEAST_TURN), deadline.seconds - self.began
        if not np.isfinite(deadline.at) or self.spent + until.left > LEAST_SHARE * since:
            return False
        bar = float(run.cells.upper.sum(axis=2).min())
        offers = [(source, pairs) for source in self.ranked if (pairs := self._least(source, bar))]
        if not offers:
            return False
        source, pairs = max(offers, key=lambda offer: float(offer[0].gains[offer[1][0]]))
        at = tuple(zip(*pairs, strict=True))
        began, before = deadline.seconds, run.cells.lower.sum(axis=2)[at]
        source.grow(pairs, int(source.tries[at].max()), bar, until)
        seconds, rises = deadline.seconds - began, (run.cells.lower.sum(axis=2)[at] - before) / bar
        source.gains[at] = rises / max(seconds, 1e-6)
        source.tries[at] += source.needs_more(rises)
        self.spent += seconds
        return True

    def _least(self, source: RankedTrees, bar: float) -> list[Pair]:
        """Return pairs of the least bounds that a source may raise, one of each tau; none if all are high."""
        tries = source.tries
        usable = self.in_question.pairs() & (tries < MOST_TRIES) & source.usable()
        lower = np.where(usable, self.run.cells.lower.sum(axis=2), np.inf)
        weakest = lower.argmin(axis=0)
        which = np.argsort(lower.min(axis=0), kind="stable")[: LEAST_AT_ONCE * self.run.context.threads]
        pairs = [(int(weakest[t]), t) for t in which.tolist() if lower[weakest[t], t] < LEAST_ENOUGH * bar]
        return [pair for pair in pairs if tries[pair] == tries[pairs[0]]]

"""Certified cross-validation of best subsets by a smooth convex loss, over a grid.

The order is that of the joint search (:mod:`sparsecv_mio.search.one_by_one`): the likely winner is decided, the others
are raised above it. What raises them is the training-loss bound above all (docs/theory/glm.md, section 9): with
`F*` the least objective of all rows and `u` that of any support in the training rows of a fold, the held-out loss of
the fold's optimum is at least `F* - u`. So

1. all rows and every fold get supports, at every gamma and tau: incumbents, and estimates of every CV error; roots on
   all rows, and all columns in the folds, give most pairs a lower end and the best one an upper end;
2. best subsets of all rows are proved where a pair could win by what is known: what is proved at one pair bounds others
   (fewer features, other gammas) too;
3. of many folds, a tree on all rows lists the supports near the best one of a pair, which are left out of by Newton
   steps in every fold (`glm_shared_trees`);
4. folds of the pairs that are left are solved by trees of their own.

Trees are grown in rounds: `FIRST_NODES` nodes a tree at first, `EFFORT_GROWTH` times as many once nothing is left that
so many could decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.more_weight import LEFT_OUT_WEIGHTS, MoreWeight, said_of_held_out
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.cells import ALL_ROWS, Where, pair_rows_of, shared_rows, some_without, table_filled
from sparsecv_mio.search.deadline import CHOOSING_SHARE, SLICE_SHARE
from sparsecv_mio.search.glm_bounds import held_out_with_more_weight
from sparsecv_mio.search.glm_folds import GlmFolds, ScoredFits
from sparsecv_mio.search.glm_shared_trees import FoldsOfPair, SharedTree
from sparsecv_mio.search.jobs import Job, Jobs, Write, nothing
from sparsecv_mio.search.loss_bounds import LowerOnAllRows
from sparsecv_mio.search.pair_rows import PairRows
from sparsecv_mio.search.pairs import Aim, Pair, PairBounds, aim_at, cells_to_raise, likely_winner
from sparsecv_mio.search.run import GridMethod, Run
from sparsecv_mio.search.sources.in_question import RISE
from sparsecv_mio.thresholds import FEW_FOLDS, FEWEST_FOLDS, SMALL
from sparsecv_mio.trees.glm_fits import WIDE
from sparsecv_mio.trees.subsets import FIRST_NODES, UNLIMITED, BestSubset, BestSubsets
from sparsecv_mio.units import SUM_RTOL, TIE_RTOL, WORST_ROUNDING
from sparsecv_mio.words import Loss

EFFORT_GROWTH = 4  # times as many nodes of a tree in the next round
ROWS_OF_COLUMN = 10  # training rows for a column, from which on supports of all rows estimate the errors of folds
RISEN = 3  # sizes in a row whose estimates are above the least one, at which growing sizes end
HELD = 0.02  # of the gap: pairs with lower ends beyond have to wait then
ROOTS_APART = 4  # sizes, of which all rows have one relaxed before any tree
MOST_IN_PLACE = 8  # folds, in place of which a tree on all rows has their nodes
CLOSE = 0.5  # of the gap: of very many folds those that a list leaves open, and leave no more, are not worked on alone
NOT_LISTED, SOME_LISTED, LISTED, DECIDED = range(4)  # what a tree on all rows has done for the folds of a pair


class GlmSearch(GridMethod):
    """Best-first search over the pairs of the grid.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    values : (G, T, K) array
        At least the least training objective of every cell; inf where none is known.
    tried : (G, T, K) bool array
        Cells whose tree had this round's nodes.
    solved : (G, T) bool array
        Pairs whose tree on all rows had them.
    searched : (G, T) bool array
        Pairs whose folds have been looked at for supports of their own.
    listed : (G, T) int array
        What a tree on all rows has done for the folds of a pair: nothing in this round, as much as its nodes were
        enough for, all that raises the pair, all that decides its folds.
    effort : int
        Nodes of a tree in this round.
    stuck : bool
        Whether the last round changed nothing though its trees came to an end: rounding hides what is left.
    cut : bool
        Whether a tree of this round had too few nodes to come to an end.
    """

    stored_as: ClassVar = {
        "solved": ("solved", 0, 1), "searched": ("searched", 0, 1), "effort": ("effort", 1, UNLIMITED),
        "trees": ("trees", 0, np.iinfo(np.int64).max), "begun": ("begun", 0, 1), "values": ("values", 0, np.inf),
        "tried": ("tried", 0, 1),
    }  # fmt: skip

    def __init__(self, run: Run) -> None:
        super().__init__(run, (self, LowerOnAllRows(run, "all_rows_lower")))
        self.name = str(run.context.data.loss)
        self.folds = GlmFolds(run.context)
        self.values = table_filled(run.context.shape, np.inf, better=min)
        self.tried = table_filled(run.context.shape, False, bool)
        self.solved = np.zeros(run.context.shape[:2], dtype=bool)
        self.searched = np.full(run.context.shape[:2], self.by_lists)
        self.listed = np.full(run.context.shape[:2], NOT_LISTED, dtype=np.int8)
        self.effort, self.begun, self.trees = FIRST_NODES, False, 0
        self.stuck, self.cut = False, False
        self.jobs, data = Jobs(run), self.context.data
        self._slip = SUM_RTOL * data.dataset.weight_of(slice(0, data.n))  # of sums over a fold and its training rows
        run.cells.show_again_by(self._shown)
        self._first: dict[int, BestSubsets] = {}  # of all rows, by gamma
        self._offered = set[tuple[int, int, bytes]]()  # pairs and supports of all rows that every fold was shown
        self._heavier: dict[int, FloatArray] = {}  # by fold, lower bounds with held-out rows of more weight
        self._ends: tuple[float, float, float] | None = None  # of all pairs, at the end of the round before

    # -- first answers ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Find supports of all rows, and of every fold among them: at the middle gamma first, then at every one."""
        every = list(reversed(range(len(self.context.grid.gammas))))
        middle = every[len(every) // 2]
        for gammas in ([middle], every):
            self._fit_all_rows(gammas)
            if self.by_lists:
                self._bound_all_columns()
            self._offer_in_folds(gammas)
            if self.own_supports:
                self._estimate_near(gammas)
            if self.by_lists and self._slow:
                self._bound_likely_winner()
            self.run.signals.progressed()
        if not self.context.deadline.expired():
            self._relax_all_rows()
        if self.run.all_rows.best:
            self._raise_lower_ends()
        self.begun = not self.context.deadline.expired()
        self.run.signals.progressed()

    def _fit_all_rows(self, gammas: Sequence[int]) -> None:
        """Find supports of all rows at some gammas, from those of the ones before; the others take the nearest.

        Where one gamma has taken long under a limit, the others have its supports, fitted.
        """
        new = [g for g in gammas if g not in self._first]
        starts = [cell.support for subsets in self._first.values() for cell in subsets.by_size.values()]
        self.run.signals.doing("first supports of all rows: gammas", len(self._first), len(self.context.grid.gammas))

        def fitted(g: int) -> Write:
            if self._first and self.context.deadline.expired():
                return nothing
            again = bool(self._first) and isinstance(self.values, PairRows)  # rows are very many
            here, expired = self.folds.at(ALL_ROWS, g), self.context.deadline.expired
            taus, exchanges = self.context.grid.taus.tolist(), not (self._slow or again)
            found = here.solve(taus, starts, 0, expired=expired, exchanges=exchanges)
            return partial(self._first.__setitem__, g, found)

        def kept() -> None:
            self.run.counts.add(0, problems=len(new))
            self.run.all_rows.keep(self._first)

        self.jobs.do(Job(BoundSource.FIRST_SUPPORTS, np.s_[list(gammas)], [partial(fitted, g) for g in new], kept))

    @property
    def _slow(self) -> bool:
        return bool(self._first) and self.context.deadline.by_share(SLICE_SHARE).over()

    def _bound_likely_winner(self) -> None:
        """Bound the folds of the pair with the least estimate, whatever their supports: no tree, one pass over rows."""
        g, t = likely_winner(self.run.bounds())
        tau = int(self.context.grid.taus[t])
        best = self.run.all_rows.best[g].by_size[tau]
        if self.context.deadline.expired() or np.isfinite(self.run.cells.upper[g, t]).all():
            return
        self.run.signals.doing(f"folds of the likely winner: tau {tau}")
        with self.run.accounts.of(BoundSource.ROWS_OUT):
            tree = SharedTree(self.folds, g, tau, [best.support], self._slip)
            self._take_folds((g, t), tree, *tree.most_held(best.upper))

    def _bound_all_columns(self) -> None:
        """Bound the folds of the largest size at every gamma, where it leaves one support.

        Every CV error then has an upper end; and that support's objective on all rows bounds those of fewer columns.
        """
        tau, t = int(self.context.grid.taus[-1]), len(self.context.grid.taus) - 1
        for g, subsets in list(self._first.items()):
            if self.context.deadline.expired() or not self.folds.one_support(tau):
                break
            if np.isfinite(self.run.cells.upper[g, t]).all():
                continue
            with self.run.accounts.of(BoundSource.ROWS_OUT):
                tree = SharedTree(self.folds, g, tau, [subsets.by_size[tau].support], self._slip)
                if tree.list_up_to(np.inf, 1):
                    self._take_folds((g, t), tree, *tree.nothing_held())
                    self._hold_sums((g, t), intervals=True)
            self._first[g] = self.run.all_rows.best[g]

    def _relax_all_rows(self) -> None:
        """Bound best subsets of all rows at every gamma by the roots of some sizes, each of which bounds smaller ones.

        So most pairs have a lower end before any tree, unless columns are many; of the largest size, where it has one
        support, the best pair has both.
        """
        taus = self.context.grid.taus[::-ROOTS_APART][::-1].tolist()
        if np.count_nonzero(self.folds.at(ALL_ROWS, 0).fits.copies) > WIDE:
            taus = []

        def relaxed(g: int) -> Write:
            here, known = self.folds.at(ALL_ROWS, g), [self.run.all_rows.best[g].by_size[tau].support for tau in taus]
            roots = here.solve(taus, known, 1, expired=self.jobs.expired, exchanges=False, work=1)
            return partial(self.run.all_rows.improve, g, roots)

        gammas = range(len(self.context.grid.gammas))
        self.run.signals.doing("relaxations on all rows")
        self.run.counts.add(0, problems=len(gammas))
        pieces = [partial(relaxed, g) for g in gammas]
        self.jobs.do(Job(BoundSource.ALL_ROWS_RELAXED, np.s_[:, :], pieces, self._raise_lower_ends))
        errors = self.run.bounds().nominal[:, -1]
        if not self.by_lists and np.isfinite(errors).any() and self.folds.one_support(int(self.context.grid.taus[-1])):
            largest = int(np.nanargmin(errors)), len(self.context.grid.taus) - 1
            self.jobs.do(self._grow([(*largest, fold) for fold in range(self.context.folds.k)]))

    def _offer_in_folds(self, gammas: Sequence[int]) -> None:
        """Offer the supports of all rows at some gammas to every fold, fitted from all rows, until the limit."""
        self.run.signals.doing("first supports of folds: gammas", len(gammas), len(self.context.grid.gammas))

        def offered(g: int, t: int, tau: int) -> Write:
            if self.context.deadline.expired() or np.isfinite(self.run.cells.upper[g, t]).all():
                return nothing  # what is bounded is shown
            support = self.run.all_rows.best[g].by_size[tau].support
            values, held = self.folds.left_out(g, support)
            if self.own_supports and t > 0:  # nothing is shown by them
                held = np.full(len(held), np.nan)
            return partial(self._offer_in_all, (g, t), support, values, held)

        pieces = [partial(offered, g, t, tau) for g in gammas for t, tau in enumerate(self.context.grid.taus.tolist())]
        step = self.context.threads if self.by_sums else max(len(pieces), 1)  # rows of all would take memory
        for begin in range(0, len(pieces), step):
            some = pieces[begin : begin + step]
            self.jobs.do(Job(BoundSource.FIRST_SUPPORTS, np.s_[list(gammas)], some, nothing))
        self.run.counts.add(0, problems=len(gammas))

    def _offer_in_all(self, pair: Pair, support: IntArray, values: FloatArray, held: FloatArray) -> None:
        """Offer a support of all rows to every fold."""
        self._offer_all(pair, self.run.cells.pool.number(support), held, values)
        self._hold_sums(pair, intervals=False)
        if np.isfinite(values).all() and np.isfinite(held).all():
            self._offered.add((*pair, support.tobytes()))

    @property
    def by_sums(self) -> bool:
        """Whether of pairs that are not being decided sums over folds do: rows are many, and no rule asks for more."""
        rows = isinstance(self.values, PairRows) and self.by_lists and not self.context.all_asked_for
        return rows and not (self.context.stability or self.context.all_shown)

    def _hold_sums(self, pair: Pair, intervals: bool) -> None:
        """Hold sums of a pair in place of rows, where these do: of what it shows, or of `intervals` too."""
        cells, scored = self.run.cells, self.context.scored
        shown, held = cells.nominal[pair], cells.standard_error(*pair) is not None
        if not self.by_sums or cells.decided[pair].any() or not (held or np.isfinite(shown).all()):
            return  # what a limit has left out is shown later, and its standard error is that of rows
        has_error = scored.has_standard_error and not held
        error = standard_error(shown, scored.by_fold, scored.times) if has_error else np.nan
        pair_rows_of(self.values).hold_for_all(*pair, float(self.values[pair].max()))
        self.run.cells.hold_sums(*pair, error, intervals)

    def _shown(self, g: int, numbers: NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
        """(K,) objectives and held-out losses of the supports that folds show, by their numbers."""
        values, losses = np.full(len(numbers), np.inf), np.full(len(numbers), np.nan)
        for number in np.unique(numbers).tolist():
            here, (value, loss) = numbers == number, self.folds.left_out(g, self.run.cells.pool.supports[number])
            values[here], losses[here] = value[here], loss[here]
        return values, losses

    @property
    def own_supports(self) -> bool:
        """Whether estimates ask for supports of each fold's own.

        Those of all rows know the rows that a fold holds out: of many columns beside few rows they make the largest
        sizes look best.
        """
        q, plan = self.context.data.q, self.context.folds
        return q > SMALL and q * ROWS_OF_COLUMN > plan.least_training and plan.k <= FEW_FOLDS

    def _estimate_near(self, gammas: Sequence[int]) -> None:
        """Look in the folds at growing sizes, until the estimates of a gamma have risen; near the best size so far."""
        sums = self.run.cells.nominal.sum(axis=2)
        first = max(int(np.argmin(sums.min(axis=0))) - RISEN, 0)
        for g in gammas:
            least, risen = np.inf, 0
            for t in range(first, len(self.context.grid.taus)):
                if self.context.deadline.expired() or risen == RISEN:
                    break
                if not self.searched[g, t]:
                    self.jobs.do(self._look_around((g, t)))
                estimate = float(self.run.cells.nominal[g, t].sum())
                least, risen = min(least, estimate), 0 if estimate < least else risen + 1

    def _look_around(self, pair: Pair) -> Job:
        """Return the search for better supports in the folds of a pair, from those that are known, before any tree."""
        tau = int(self.context.grid.taus[pair[1]])
        self.run.signals.doing(f"supports of folds: tau {tau}")
        cells = [(*pair, int(fold)) for fold in np.flatnonzero(self.open[pair])]

        def look(where: Where, starts: list[IntArray]) -> Write:
            if self.jobs.expired():
                return nothing
            found = self.folds.at(where[2], where[0]).solve([tau], starts, 0, expired=self.jobs.expired)
            return self._offering(where, found.by_size[tau].support)

        def looked() -> None:
            if not self.context.deadline.expired():
                self.run.counts.add(0, problems=len(cells))
                self._raise_lower_ends()
                self.searched[pair] = True

        pieces = [partial(look, where, self._starts(where)) for where in cells]
        return Job(BoundSource.FIRST_SUPPORTS, pair, pieces, looked)

    def _offering(self, where: Where, support: IntArray) -> Write:
        """Return what shows a cell a support, fitted here."""
        g, _, fold = where
        (value,), losses = self.folds.losses(fold, g, [support])

        def offer() -> None:
            self.values[where] = min(self.values[where], float(value))
            self.run.cells.offer(where, self.run.cells.pool.number(support), float(losses.sum()), float(value))

        return offer

    # -- the loop -----------------------------------------------------------------------------------------------------

    def _waiting(self, pair: Pair) -> BoolArray:
        """(K,): open cells of a pair that have not had this round's nodes."""
        return ~np.asarray(self.run.cells.final[pair]) & ~np.asarray(self.tried[pair])

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, nothing is left that would raise the least bound, or the time is over."""
        return self.exhausted or self.stuck or self.run.proved() or bool(self.run.cells.final.all())

    def step(self) -> None:
        """Begin what is next, as much as there are threads for, and write what the first to end has found."""
        try:
            if self._late:
                self._weigh_held_out()
            while self.jobs.room and (job := self._next()) is not None:
                self.jobs.begin(job)
            if not self.jobs.some:
                self._next_round()
            elif self.jobs.wait():
                self.run.signals.progressed()
                self.run.signals.safe_point()
        except BaseException:
            self.jobs.abandon()
            raise

    def _next(self) -> Job | None:
        """Return what is next: all rows at a pair, or its folds; None where nothing is that so many nodes may do."""
        now = self.run.bounds()
        bars, uppers = np.full(self.solved.shape, self._goal(now)), self.run.all_rows.of_pairs(lambda cell: cell.upper)
        enough = self.run.enough_to_exclude(self.values, bars, self._slip)
        waiting = some_without(self.run.cells.final, self.tried)
        # more work on all rows would exclude these, which had its nodes in this round
        deferred = (enough <= uppers) & self.solved & ~self.run.all_rows.solved_pairs() & self.searched
        waiting &= ~(deferred | (self.listed == SOME_LISTED) | self.jobs.pairs)
        aim = self._aim(now, waiting)
        if aim is None or (self.jobs.some and np.isinf(aim.goal) and aim.pair != likely_winner(now)):
            return None  # the others wait for what the winner leaves to be proved
        others = 1 if np.isinf(aim.goal) else int(((now.lower < aim.goal) & waiting).sum())
        threads = -(-self.context.threads // others)  # the others have pairs of their own
        g = aim.pair[0]
        if others > len(LEFT_OUT_WEIGHTS) * len(bars) and not self._heavier and self.context.folds.k <= FEW_FOLDS:
            self._weigh_held_out()  # a fit for each weight and gamma: fewer than cells of a fold that are open
            return self._next()
        on_all_rows = self._next_on_all_rows(aim, now.lower[g], enough[g], uppers[g])
        excludes = on_all_rows is not None and enough[aim.pair] <= uppers[aim.pair]
        may_list = self.by_lists and self.listed[aim.pair] in (NOT_LISTED, LISTED if np.isinf(aim.goal) else NOT_LISTED)
        if may_list and not excludes:
            return None if self.jobs.some else Job(BoundSource.ROWS_OUT, aim.pair, [], partial(self._list, aim))
        if not excludes and not self.searched[aim.pair]:
            return self._look_around(aim.pair)
        if on_all_rows is None or (self.by_lists and not excludes):
            return self._grow(cells_to_raise(self.run.cells, aim, self._waiting(aim.pair))[:threads])
        nodes = min(self.effort * min(self.context.folds.k, MOST_IN_PLACE), UNLIMITED)
        return self._all_rows(*on_all_rows, nodes, threads)

    @property
    def _late(self) -> bool:
        return self.context.deadline.by_share(CHOOSING_SHARE).over()

    def _aim(self, now: PairBounds, waiting: BoolArray) -> Aim | None:
        """Return the pair to work on next.

        In the second half of a limit it is one of those that hold the gap, for as long as they hold more of it than the
        winner does: these have more and more nodes while all others wait. From the beginning, that takes longer where a
        proof is within reach.

        Parameters
        ----------
        now : PairBounds
        waiting : (G, T) bool array
        """
        estimate, ceiling, floor = now.nominal[likely_winner(now)], now.ceiling, now.floor
        if not self._late or not ceiling - estimate < estimate - floor:
            return aim_at(now, self.context.gap, waiting)
        goal = self._goal(now)
        held = now.lower < goal
        if not self.by_lists:
            held &= now.lower <= floor + HELD * (goal - floor)
        low = np.where(waiting & held, now.lower, np.inf)
        g, t = np.unravel_index(int(np.argmin(low)), low.shape)
        return Aim((int(g), int(t)), goal) if np.isfinite(low[g, t]) else None

    def _goal(self, now: PairBounds) -> float:
        """Return what lower ends are raised to: what excludes a pair; late in a limit, of very many folds, a step."""
        goal = now.ceiling * (1.0 - self.context.gap)
        if self._late and self.by_lists and now.ceiling < np.inf:
            goal = min(goal, max(2.0 * now.floor, now.floor + RISE * now.ceiling))
        return float(goal)

    def _next_on_all_rows(
        self, aim: Aim, lower: FloatArray, enough: FloatArray, uppers: FloatArray
    ) -> tuple[Pair, float] | None:  # fmt: skip
        """Return what to do on all rows in place of the folds of a pair, and what bound will do; None for its folds.

        A bound of more features is one of all with fewer: the most features, as long as they may exclude the pair. One
        that all rows cannot exclude alone has its bound raised by them too, once a round.

        Parameters
        ----------
        aim : Aim
        lower, enough, uppers : (T,) arrays
            Lower ends, bounds that are enough on all rows, and upper ones that are known there, at its gamma.
        """
        (g, t), solved = aim.pair, self.solved[aim.pair[0]]
        if not np.isfinite(aim.goal) or int(self._waiting(aim.pair).sum()) < 2:
            return None
        if enough[t] <= uppers[t]:
            may = ~solved & (uppers >= enough[t])
            may[:t] = False
            if may.any():
                last = int(np.flatnonzero(may)[-1])
                reached = enough[t : last + 1]
                return (g, last), float(np.max(reached[reached <= uppers[last]]))
        elif not solved[t]:
            known = self.run.cells.lower[aim.pair] + self.values[aim.pair]
            for last in np.flatnonzero((lower < aim.goal) & ~solved)[::-1].tolist():
                rise = np.maximum(uppers[last] - known, 0.0).sum()  # more features may say next to nothing
                if last >= t and rise >= RISE * (aim.goal - lower[t]):
                    return (g, last), float(enough[last])
        return None

    def _next_round(self) -> None:
        now = self.run.bounds()
        ends = now.ceiling, float(now.lower.sum()), float(now.nominal[np.isfinite(now.nominal)].sum())
        self.stuck |= ends == self._ends and (self.effort == UNLIMITED or not self.cut)
        self._ends, self.cut = ends, False
        self._weigh_held_out()
        self.effort = min(self.effort * EFFORT_GROWTH, UNLIMITED)
        self.tried[...] = self.run.cells.final
        self.listed[self.listed == SOME_LISTED] = NOT_LISTED
        self.solved[...] = self.run.all_rows.solved_pairs()

    def _all_rows(self, pair: Pair, enough: float, nodes: int, threads: int) -> Job:
        """Return work on the best subset of all rows at a pair; every cell is bounded by what that proves.

        Parameters
        ----------
        pair : Pair
        enough : float
            A bound of the least objective that will do.
        nodes, threads : int
            Of the tree.
        """
        (g, t), tau = pair, int(self.context.grid.taus[pair[1]])
        self.run.signals.doing(f"trees on all rows: tau {tau}")
        start = self.run.all_rows.best[g].by_size[tau].support

        def prove() -> Write:
            result = self.folds.at(ALL_ROWS, g).solve(
                [tau], starts=[start], effort=nodes, enough={tau: enough}, expired=self.jobs.expired,
                threads=threads,
            )  # fmt: skip
            support = result.by_size[tau].support
            shown = None if (g, t, support.tobytes()) in self._offered else self.folds.left_out(g, support)

            def take() -> None:
                self.cut |= not result.finished
                self.run.counts.add(result.nodes, problems=1)
                self.run.all_rows.improve(g, result)
                if shown is not None:
                    self._offer_in_all(pair, support, *shown)

            return take

        def proved() -> None:
            self.solved[g, t] = not self.context.deadline.expired()
            self._raise_lower_ends()

        return Job(BoundSource.ALL_ROWS, np.s_[g, : t + 1], [prove], proved)

    def _offer_all(self, pair: Pair, numbers: NDArray[np.int32] | int, held: FloatArray, values: FloatArray) -> None:
        """Show supports, by their numbers, in all folds of a pair."""
        self.values[pair] = np.minimum(self.values[pair], values)
        self.run.cells.offer(np.s_[pair[0], pair[1], :], numbers, held, values)
        shared_rows(self.values, self.run.cells.value, [pair])

    # -- lists of all rows --------------------------------------------------------------------------------------------

    @property
    def by_lists(self) -> bool:
        """Whether folds are many enough for a tree on all rows to take less time than trees of their own."""
        plan = self.context.folds
        return plan.k >= FEWEST_FOLDS and bool(plan.scores_all_left_out.all())

    def _list(self, aim: Aim) -> None:
        """Bound the folds of a pair by supports near the best one of all rows; decide those of the likely winner."""
        (g, t), deciding = aim.pair, not np.isfinite(aim.goal)
        tau, on_all_rows = int(self.context.grid.taus[t]), self.run.all_rows.best[g]
        best = on_all_rows.by_size[tau]
        shown = [self.run.cells.pool.supports[number] for number in np.unique(self.run.cells.support[g, t]).tolist()]
        known = [best.support, *(support for support in shown if len(support) == len(best.support))]
        self.run.signals.doing(f"one tree for all folds: tau {tau}")
        tree = SharedTree(self.folds, g, tau, known, self._slip)
        if deciding:
            tree.settle()
        least, most = tree.most_held(best.upper) if deciding else tree.nothing_held()
        enough = tree.enough_to_decide(most) if deciding else tree.enough_for(aim.goal)
        with self.run.accounts.of(BoundSource.SHARED_TREES):
            nodes, up_to = min(self.effort * MOST_IN_PLACE, UNLIMITED), max(enough, best.upper)
            complete = bool(np.isfinite(up_to)) and tree.list_up_to(up_to, nodes)
            self.cut |= not complete
            self.run.counts.add(tree.nodes, problems=1)
        if deciding and complete and not (self.by_sums and self._close(tree, least, most)):
            tree.most_alone(least, most)
        self._take_folds(aim.pair, tree, least, most, decide=True)
        del tree, least, most  # of very many folds
        self._raise_lower_ends()
        if not deciding:
            self._hold_sums(aim.pair, intervals=bool(self.run.bounds().lower[aim.pair] >= aim.goal))
        if not self.context.deadline.expired():
            self.solved[g, t] |= complete
            self.listed[g, t] = (DECIDED if deciding else LISTED) if complete else SOME_LISTED

    # -- rows left out, with more weight ------------------------------------------------------------------------------

    def _weigh_held_out(self) -> None:
        """Bound every fold by fits of all columns, its held-out rows among the others with some weight."""
        if self._heavier or self.context.folds.k > FEW_FOLDS:
            return
        self.run.signals.doing("rows left out with more weight")
        grid, data, folds = self.context.grid, self.context.data, self.context.folds

        def weigh(fold: int) -> Write:
            bounds = MoreWeight(grid.gammas, grid.taus)
            held_out_with_more_weight(data, folds, fold, bounds, self.jobs.expired)
            return partial(self._heavier.__setitem__, fold, bounds.implied())

        pieces = [partial(weigh, fold) for fold in range(folds.k)]
        self.run.counts.add(0, problems=len(pieces))
        self.jobs.do(Job(BoundSource.LEFT_OUT_RELAXED, np.s_[:, :], pieces, self._raise_lower_ends))

    def _raise_lower_ends(self) -> None:
        """Raise lower ends to what is known of all rows, and of held-out rows with more weight."""
        self.run.raise_lower_ends(self.values, self._slip)
        for fold, implied in self._heavier.items():
            losses = said_of_held_out(implied, self.values[:, :, fold] + self._slip)
            self.run.cells.narrow(np.s_[:, :, fold], losses, np.inf)

    def _close(self, tree: SharedTree, least: FloatArray, most: FloatArray) -> bool:
        """Whether folds that a list leaves open leave little of the gap."""
        ends = [(found.lower.sum(), found.upper.sum()) for _, found in tree.result(least, most)]
        lower, upper = np.sum(ends, axis=0)
        return bool(upper < np.inf and upper - lower <= CLOSE * self.context.gap * upper)

    def _take_folds(
        self, pair: Pair, tree: SharedTree, least: FloatArray, most: FloatArray, decide: bool = False
    ) -> None:
        """Show the folds of a pair what was tried, and narrow their intervals; those that are listed may be decided."""
        cells = self.run.cells
        self.run.counts.add(0, problems=len(tree.tried))
        if tree.best is not None:
            self.run.all_rows.improve(pair[0], BestSubsets({tree.tau: tree.best}, 0, tree.best.complete))
        numbers = np.array([cells.pool.number(tried.support) for tried in tree.tried], dtype=np.int32)
        best, held, value = tree.shown()
        self._offer_all(pair, numbers[best], held, value)
        del best, held, value
        for at, found in tree.result(least, most):
            part = np.s_[pair[0], pair[1], at]
            cells.narrow(part, np.minimum(found.lower, found.upper), found.upper)
            if decide:
                self._decide_listed(pair, part, found, numbers)

    def _decide_listed(
        self, pair: Pair, part: tuple[int, int, slice], found: FoldsOfPair, numbers: NDArray[np.int32]
    ) -> None:
        """Decide those of some folds of a pair of which all that may be optimal is tried."""
        cells, first_fold = self.run.cells, part[2].start
        sure = found.listed & (found.upper - found.lower - WORST_ROUNDING * found.held_out <= found.tie)
        for fold in (fold for fold in found.tied if sure[fold] and not cells.decided[(*pair, first_fold + fold)]):
            first = int(found.best[fold])
            others = [place for place in found.tied[fold] if place != first]
            cells.decide(
                (*pair, first_fold + fold), support=numbers[[first, *others]].tolist(), tie=float(found.tie[fold]),
                nominal=float(found.held_out[fold]), lower=float(found.lower[fold]), upper=float(found.upper[fold]),
                value=float(found.value[fold]), branched=True,
            )  # fmt: skip
        sure[list(found.tied)] = False
        cells.decide_part(
            part, sure, numbers[found.best], found.held_out, found.lower, found.upper, found.value, branched=True
        )  # fmt: skip

    def _grow(self, cells: Sequence[Where]) -> Job:
        """Return trees of some cells of a pair."""
        self.run.signals.doing(f"trees: tau {self.context.grid.taus[cells[0][1]]}")
        pieces = [partial(self._solve, where, self._starts(where)) for where in cells]
        return Job(BoundSource.FOLD_TREES, cells[0][:2], pieces, nothing)

    def _starts(self, where: Where) -> list[IntArray]:
        """Supports known of the cell, of its neighbours in gamma and tau, and of all rows."""
        g, t, _ = where
        on_all_rows = self.run.all_rows.best[g].by_size[int(self.context.grid.taus[t])]
        return [*self.run.cells.shown_near(where, other_folds=False), on_all_rows.support]

    def _solve(self, where: Where, starts: list[IntArray]) -> Write:
        """Grow the tree of a cell; returns what writes that which it proves."""
        g, t, fold = where
        tau = int(self.context.grid.taus[t])
        result = self.folds.at(fold, g).solve([tau], starts=starts, effort=self.effort, expired=self.jobs.expired)
        cell = result.by_size[tau]
        if cell.complete:
            writes: list[Write] = [partial(self._decide, where, cell, self.folds.score(fold, g, list(cell.candidates)))]
        else:
            narrow = partial(self.run.cells.narrow, where, *self.folds.interval(fold, g, tau, cell.upper))
            writes = [self._offering(where, cell.support), narrow]

        def solved() -> None:
            self.values[where] = min(self.values[where], cell.upper)
            self.run.cells.raise_floor(where, cell.lower)
            self.tried[where] = True
            self.trees += 1
            self.cut |= not result.finished
            self.run.counts.add(result.nodes, problems=1)
            for write in writes:
                write()
            if result.finished and not cell.complete:  # rounding hides some of its fits
                self.run.cells.mark(where, branched=True)

        return solved

    def _decide(self, where: Where, cell: BestSubset, scored: ScoredFits) -> None:
        """Decide a cell by the supports among which every optimal one is."""
        supports = cell.candidates
        tied = np.flatnonzero(scored.value_lower <= float(scored.value_upper.min()) * (1.0 + TIE_RTOL))
        low, high, held = scored.held_lower[tied], scored.held_upper[tied], scored.held_out[tied]
        numbers = [self.run.cells.pool.number(supports[i]) for i in tied.tolist()]
        value = float(scored.value_upper[tied[0]])
        if not (np.isfinite(high).all() and np.all(high - low <= WORST_ROUNDING * held)):
            self.run.cells.narrow(where, float(low.min()), float(high.max()))
            self.run.cells.offer(where, numbers[0], float(held[0]), value)
            self.run.cells.mark(where, branched=True)
            return
        self.run.cells.decide(
            where, support=numbers, nominal=float(held[0]), lower=float(low.min()), upper=float(high.max()),
            tie=float(held.max() - held.min()), value=value, branched=True,
        )  # fmt: skip

    # -- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write what is still being worked on, and decide what is asked for beyond the proof."""
        self.jobs.end()
        super().finish()
        self.folds = GlmFolds(self.context)  # without what it kept

    def work_on(self, pairs: BoolArray) -> None:
        """Grow trees of open cells of the first of some pairs."""
        pair: Pair = tuple(int(i) for i in np.argwhere(pairs)[0])  # type: ignore[assignment]
        if not self._waiting(pair).any():
            self._next_round()
        folds = np.flatnonzero(self._waiting(pair))[: self.context.threads]
        self.jobs.do(self._grow([(*pair, int(fold)) for fold in folds]))
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def best_on_all_rows(self, g: int, tau: int) -> BestSubset:
        """Return the best subset of all rows at a pair, solved on where it is not proved and there is time."""
        if not self.run.all_rows.best[g].by_size[tau].complete and not self.context.deadline.expired():
            self._prove_on_all_rows((g, int(np.searchsorted(self.context.grid.taus, tau))))
        return self.run.all_rows.best[g].by_size[tau]

    def model_is_open(self) -> bool:
        """Whether the pair to report is scored, and its best subset of all rows is not proved."""
        if not (self.run.all_rows.best and self.run.cells.scored_pairs().any()):
            return False
        return not self.run.all_rows.solved_pairs()[self.run.reported_pair()]

    def prove_model(self, beside: bool = False) -> None:
        """Solve all rows at that pair, as far as time allows."""
        self.jobs.end()
        if self.model_is_open():
            self._prove_on_all_rows(self.run.reported_pair())

    def _prove_on_all_rows(self, pair: Pair) -> None:
        self.jobs.do(self._all_rows(pair, np.inf, UNLIMITED, self.context.threads))

    def mios(self) -> int:
        """Return the number of trees that were grown."""
        return self.trees

    def engine(self) -> str:
        """Return who solved the cells."""
        what = "log loss" if self.name == Loss.LOGISTIC else "deviance"
        return f"trees bounded by tangents of the {what}"

    # -- a checkpoint -------------------------------------------------------------------------------------------------

    def recompute(self) -> None:
        """Find supports on all rows again."""
        self._fit_all_rows(list(reversed(range(len(self.context.grid.gammas)))))

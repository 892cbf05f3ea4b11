"""The order of work where trees are expensive: outward from the likely winner and from small tau.

`Rounds.goes_outward` says when. Trees grow more expensive with tau, and a proof among the taus up to some size is worth
more than a little work everywhere. So

* before anything expensive, sizes with few supports (tau 1, 2 of up to 512 columns, 3 of up to 93) are decided;
* first the pair that is likely to win is decided, if the first folds promise that the limit allows it: its upper bound
  is the bar that excludes others;
* then the taus up to that pair's, at every gamma, and one tau after the other beyond it. Before any fold is looked at,
  all rows are solved at the pairs in question, no further than it takes: one tree for the training-loss bound of all
  folds, which excludes most of the pairs. A fold that is solved may raise the sum over the bar too; the rest of the
  folds is then left, and while all rows may still exclude a pair, all of them are;
* what is still open is tried again with more effort, four times as much every time. Work on new taus and work on those
  that were left open take turns, by the nodes they cost, so that no pair starves the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import comb

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.training_loss import enough_on_all_rows
from sparsecv_mio.formulation.backends.native.cell import UNLIMITED
from sparsecv_mio.formulation.backends.native.path import FIRST_LOOK, PathResult, solve_path
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.search.methods.parts.fold_rounds import FIRST_EFFORT, promising_folds
from sparsecv_mio.search.methods.parts.loss_bounds import LossBounds
from sparsecv_mio.search.methods.parts.ridge_balls import narrow_by_ridge_balls
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.pairs import likely_winner
from sparsecv_mio.search.state.region import proved_ends
from sparsecv_mio.search.state.stored import within
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver

Pair = tuple[int, int]

GROWTH = 4  # of the effort of a tau from one try to the next
MOST_TRIES = 24
FIRST_TRIES = 2  # of the likely winner, before anything else; the last one only if the first promises that it succeeds
TRIAL_SHARE, LOOK_SHARE = 0.15, 0.15  # of a time limit, for the first of these tries and for a look at all rows
WINNER_SHARE = 0.7  # of the time that is left, which the likely winner may take
FEW_SUPPORTS = 1 << 17  # a size that has no more is decided first
SMALL_SHARE, REST_SHARE = 0.2, 0.03  # of a time limit, for the likely best gammas of these sizes, and for the others
BALL_SHARE = 0.05  # of a time limit, for ridge balls: they cost little but where columns are many
ALL_ROWS_EFFORT = 4  # a tree on all rows may cost so many times what one of a fold may: it speaks for all folds
ALL_ROWS_TRIES = 3  # of a tau, before its folds, where all rows can still exclude it
SURELY = 1.0 + 1e-9  # beyond a bar, for the rounding of sums
NEW, OPEN = 0, 1  # taus: tried for the first time, or again


class Outward:
    """Which pairs are worked on next, and how hard.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    tries : (T,) int array
        How often the open pairs of a tau were worked on.
    tries_of_winner : int
        How often the likely winner was worked on by itself.
    looked : bool
        Whether all rows were looked at for the taus that were not tried yet.
    spent : (2,) int array
        Nodes spent on new taus, and on those that were tried before.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tries = np.zeros(len(run.context.grid.taus), dtype=np.int64)
        self.tries_of_winner = 0
        self.looked = False
        self.spent = np.zeros(2, dtype=np.int64)

    @cached_property
    def loss(self) -> LossBounds:
        """Training-loss bounds; three numbers a cell, so made where this order of work is taken."""
        return LossBounds(self.run)

    @property
    def left(self) -> bool:
        """Whether some pair is neither decided nor excluded, and more work could change that."""
        return bool(self.in_question().any())

    def in_question(self) -> BoolArray:
        """(G, T, K): open cells of the pairs that are in question.

        A pair is not where its lower bound excludes it, up to the gap: against the best pair of the grid once that is
        decided; before, against the best pair with no larger tau, for a proof among small taus needs no more. (Until
        then `SearchState.worth_work`, which compares with the best pair of the grid at once, may leave out more.)
        """
        state = self.run.state
        beaten = state.cells.lower.sum(axis=2) >= self._bars()
        return np.asarray(state.open & ~beaten[:, :, None])

    def _bars(self) -> FloatArray:
        """(G, T): lower sums from which on a pair is not in question; inf for the best pair itself."""
        state = self.run.state
        upper = state.cells.upper.sum(axis=2)
        bar = np.minimum.accumulate(upper.min(axis=0))
        best = np.unravel_index(int(upper.argmin()), upper.shape)
        if state.cells.final[best].all():
            bar = np.full(len(bar), upper[best])
        bars = np.tile(bar * (1.0 - self.run.context.gap), (len(upper), 1))
        bars[best] = np.inf
        return bars

    def _pairs_in_question(self) -> BoolArray:
        """(G, T): pairs in question."""
        return np.asarray(self.in_question().any(axis=2))

    def decide_small_sizes(self) -> None:
        """Decide the taus with few supports: the likely best gamma of each first, then all pairs in question."""
        context = self.run.context
        free, forced = context.data.q - len(context.data.forced), len(context.data.forced)
        easy = [comb(free, max(min(tau - forced, free), 0)) <= FEW_SUPPORTS for tau in context.grid.taus.tolist()]
        count = easy.index(False) if False in easy else len(easy)
        if count:
            small = np.broadcast_to(np.arange(len(easy)) < count, context.shape[:2])
            for t in range(count):
                self._work_on_folds(self._only(self._leader(t, t)), FIRST_EFFORT, SMALL_SHARE)
            self._work_on_folds(small, FIRST_EFFORT, REST_SHARE)
            self._note_what_is_proved()

    def begin(self) -> None:
        """Bound all rows at the largest tau of every gamma, which bounds every smaller one; then every cell."""
        state, taus = self.run.state, self.run.context.grid.taus.tolist()
        missing = np.zeros(self.run.context.shape[:2], dtype=bool)
        missing[:, -1] = [not result.cells[taus[-1]].lower > 0.0 for result in state.all_rows.best]
        self._fit_all_rows(missing, 0, LOOK_SHARE)
        self.run.signals.doing("bounds of every fold by the fits on all rows")
        narrow_by_ridge_balls(self.run, self.loss.values, self.run.context.deadline.sooner(BALL_SHARE))

    def step(self) -> None:
        """Do the first of these that is due.

        1. The pair that is likely to win by now is not decided: work on it, at most `FIRST_TRIES` times in all.
        2. It is decided, and no tau was worked on yet: work on the taus up to its own, together.
        3. Some tau was worked on: look at all rows for all pairs in question, once.
        4. Otherwise: work on one tau, new or open (`_next`).
        """
        winner = self._leader(len(self.tries) - 1)
        known = bool(self.run.state.cells.final[winner].all())
        if self.tries_of_winner < FIRST_TRIES and not known:
            self._try_winner(winner)
        elif known and not self.tries.any():
            self._work_on(range(winner[1] + 1), NEW)
        elif self.tries.any() and not self.looked:
            self._fit_all_rows(self._pairs_in_question(), FIRST_LOOK, LOOK_SHARE)
            self.looked = True
        else:
            self._work_on(*self._next())
        self._note_what_is_proved()
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def _try_winner(self, winner: Pair) -> None:
        """Work on the pair that is likely to win.

        Under a time limit a fold for each thread is solved, however many nodes that takes, and then the others if that
        promises that there is time for them; else all folds get an effort, and four times as much if it decides some.
        """
        context, final = self.run.context, self.run.state.cells.final
        pair, first = self._only(winner), self.tries_of_winner == 0
        if not np.isfinite(context.deadline.at):
            self._work_on_folds(pair, FIRST_EFFORT * GROWTH**self.tries_of_winner)
            promising = bool(final[winner].any())
        elif first:
            before, began = int(final[winner].sum()), context.deadline.seconds
            self._work_on_folds(pair, UNLIMITED, TRIAL_SHARE, most=context.threads)
            decided, spent = int(final[winner].sum()) - before, context.deadline.seconds - began
            left = context.folds.k - before - decided
            promising = decided > 0 and spent / decided * left <= WINNER_SHARE * context.deadline.left
        else:
            left_share = context.deadline.left / (context.deadline.at - context.deadline.began)
            self._work_on_folds(pair, UNLIMITED, WINNER_SHARE * left_share)
            promising = False
        self.tries_of_winner = 1 if first and promising else FIRST_TRIES

    def _note_what_is_proved(self) -> None:
        """Keep when the part of the grid that is proved came to hold one more tau."""
        state, context = self.run.state, self.run.context
        top, _ = proved_ends(state.bounds(), context.gap, context.grid.gammas, context.grid.taus) or (None, None)
        if top is not None:
            state.counts.reached.setdefault(top, context.deadline.seconds)

    def _leader(self, top: int, least: int = 0) -> Pair:
        """Return the pair with the least estimate of h among the taus from index `least` up to index `top`."""
        now, places = self.run.state.bounds(), np.arange(len(self.tries))
        part = np.broadcast_to((least <= places) & (places <= top), now.lower.shape)
        return likely_winner(now.within(part, self.run.context.grid.gammas, self.run.context.grid.taus))

    def _only(self, pair: Pair) -> BoolArray:
        """(G, T): one pair."""
        pairs = np.zeros(self.run.context.shape[:2], dtype=bool)
        pairs[pair] = True
        return pairs

    def _next(self) -> tuple[range, int]:
        """Return the tau to work on, and whether it is new: the smallest new one, or the least tried of the others."""
        open_taus = self._pairs_in_question().any(axis=0)
        new, tried = np.flatnonzero(open_taus & (self.tries == 0)), np.flatnonzero(open_taus & (self.tries > 0))
        if len(new) and (not len(tried) or self.spent[NEW] <= self.spent[OPEN]):
            return range(int(new[0]), int(new[0]) + 1), NEW
        tau = int(tried[np.argmin(self.tries[tried])])
        return range(tau, tau + 1), OPEN

    def _work_on(self, taus: range, kind: int) -> None:
        """Work on all rows, then on the folds, of the pairs of some taus that are in question."""
        before = self.run.state.counts.nodes
        among = np.isin(np.arange(len(self.tries)), taus)
        effort = FIRST_EFFORT * GROWTH ** int(self.tries[among].max())
        self._fit_all_rows(self._pairs_in_question() & among, ALL_ROWS_EFFORT * effort)
        spared = self._left_to_all_rows()
        for tau in taus:
            self._work_on_folds(self._only(self._leader(tau)) & ~spared, effort)
            self._work_on_folds(self._pairs_in_question() & (np.arange(len(self.tries)) == tau) & ~spared, effort)
        self.tries[among] = np.minimum(self.tries[among] + 1, MOST_TRIES)
        self.spent[kind] += self.run.state.counts.nodes - before

    def _left_to_all_rows(self) -> BoolArray:
        """(G, T): pairs whose folds are spared: with the best pair decided, a tree on all rows can still exclude them.

        It has no more to prove than that, which is easier than what a tree of every fold has to prove.
        """
        state, taus = self.run.state, self.run.context.grid.taus.tolist()
        best = np.unravel_index(int(state.cells.upper.sum(axis=2).argmin()), state.cells.upper.shape[:2])
        known = state.cells.final[best].all() and np.isfinite(state.cells.upper[best]).all()
        upper = np.array([[result.cells[tau].upper for tau in taus] for result in state.all_rows.best])
        return np.asarray(known & (self._enough_on_all_rows() <= upper) & (self.tries < ALL_ROWS_TRIES))

    def _fit_all_rows(self, pairs: BoolArray, effort: int, share: float = 1.0) -> None:
        """Solve all rows at some pairs (G, T) as far as an effort goes, and bound the folds by what that proves.

        A pair is left once it is excluded; no more than a share of the time limit is spent in all.
        """
        state, context = self.run.state, self.run.context
        until = context.deadline.sooner(share)
        taus, enough = context.grid.taus, self._enough_on_all_rows()
        missing = [
            (g, which) for g, result in enumerate(state.all_rows.best)
            if len(which := [t for t in np.flatnonzero(pairs[g]).tolist() if not result.cells[int(taus[t])].complete])
        ]  # fmt: skip
        if len(missing) < context.threads and effort > FIRST_LOOK:
            missing = [(g, which[i :: context.threads]) for g, which in missing for i in range(context.threads)]

        def fit(g: int, which: list[int]) -> int:
            found = self._best_subsets(g, which, effort, until, enough)
            state.all_rows.improve(g, found)
            return found.nodes

        parts = [(g, which) for g, which in missing if which]
        words = f"{'trees' if effort else 'relaxations'} on all rows: {_named(taus[pairs.any(axis=0)])},"
        if parts:
            self.run.signals.doing(words, 0, len(parts))
        for done, nodes in enumerate(run_folds(parts, fit, context.threads), start=1):
            self.run.signals.doing(words, done, len(parts))
            state.counts.add(nodes)
            if until.expired():
                break
        self.loss.apply()

    def _enough_on_all_rows(self) -> FloatArray:
        """(G, T): lower bounds on all rows from which on the training-loss bound excludes a pair; inf where unknown."""
        values = np.where(self.run.context.folds.scores_all_left_out, self.loss.values, np.inf)
        return enough_on_all_rows(self.run.state.cells.lower, values, self._bars() * SURELY)

    def _best_subsets(self, g: int, which: list[int], effort: int, until: Deadline, enough: FloatArray) -> PathResult:
        """Solve all rows at a gamma and some taus, by index, from the supports of neighbours and folds."""
        state, context = self.run.state, self.run.context
        near = [result for result in state.all_rows.best[max(g - 1, 0) : g + 2]]
        taus = context.grid.taus[which].tolist()
        starts = [result.cells[tau].support for result in near for tau in taus]
        numbers = np.unique(state.cells.support[g, which])
        starts += [state.cells.pool.supports[number] for number in numbers.tolist()]
        return solve_path(
            state.all_rows.problem(g), taus, starts=starts, effort=effort, expired=until.expired,
            enough=dict(zip(taus, enough[g, which].tolist(), strict=True)),
        )  # fmt: skip

    def _work_on_folds(self, pairs: BoolArray, effort: int, share: float = 1.0, most: int | None = None) -> None:
        """Grow trees in the folds of some pairs (G, T), in `most` of them: those first that may raise the sums most.

        A fold works on the pairs that are still in question when it starts; no more than a share of the time limit is
        spent in all.
        """
        run, context = self.run, replace(self.run.context, deadline=self.run.context.deadline.sooner(share))
        solver = FoldSolver(replace(run.state, context=context), run.accelerators)

        def work(fold: int, moments: Moments) -> int:
            return solver.run(fold, moments, self.in_question()[:, :, fold] & pairs, effort)

        groups = self._in_turn(self.in_question() & pairs[:, :, None], most)
        done, every = 0, sum(map(len, groups))
        words = f"trees: {_named(context.grid.taus[pairs.any(axis=0)])}, fold"
        for which in groups:
            run.signals.doing(words, min(done + 1, every), every)
            for nodes in run_folds(run.accelerators.training_moments(which), work, min(context.threads, len(which))):
                run.state.counts.add(nodes)
                done += 1
                run.signals.doing(words, min(done + 1, every), every)
                run.signals.progressed()
                if context.deadline.expired():
                    return
            run.signals.safe_point()

    def _in_turn(self, wanted: BoolArray, most: int | None) -> list[Sequence[int]]:
        """Split the folds with cells that are wanted into groups, those with most to gain first."""
        order = promising_folds(self.run.state.cells, wanted)[:most]
        size = max(2 * self.run.context.threads, len(order) // 16)
        return [order[i : i + size] for i in range(0, len(order), size)]

    def archive(self) -> Archive:
        """Return where it stands."""
        return {
            "outward_tries": self.tries, "outward_first": np.array(self.tries_of_winner), "outward_spent": self.spent,
        }  # fmt: skip

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` unless `stored` was archived by a run over the same grid."""
        within(stored, "outward_tries", 0, MOST_TRIES)
        within(stored, "outward_first", 0, FIRST_TRIES)
        within(stored, "outward_spent", 0, np.iinfo(np.int64).max)

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived; what is known of all rows is computed anew."""
        self.tries[...], self.spent[...] = stored["outward_tries"], stored["outward_spent"]
        self.tries_of_winner, self.looked = int(stored["outward_first"]), False


def _named(taus: IntArray) -> str:
    """Name some taus, as `tau 3` or `tau 1 to 5`."""
    ends = sorted({int(tau) for tau in taus[[0, -1]]}) if len(taus) else []
    return f"tau {' to '.join(map(str, ends))}"

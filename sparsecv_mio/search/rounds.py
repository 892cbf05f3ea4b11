"""Rounds of growing effort until the certificate closes: work shared between taus and folds.

1. `SharedPass`: one tree on all rows a gamma decides what it can for all folds at once
   (:mod:`sparsecv_mio.search.shared_trees`). Where trees are expensive, the best supports of all rows are scored in
   every fold first, which bounds every held-out error from below (:mod:`sparsecv_mio.bounds.closed_form`) and says
   which pair is likely to win. That pair is decided; its upper sum is the bar. Then every gamma, the likely ones first,
   grows a tree for the taus whose lower sums are still below the bar. Pairs that are excluded stay open and need
   estimates in the end, which take longer than cheap trees: where trees are cheap, none are left out.
2. `FoldRounds`: every fold with cells still open grows trees of its own, with eight times the effort in every round.

With many columns and few folds (`Rounds.goes_outward` says when) `Outward` comes before both, mostly instead of them:
it ends when no pair is in question any more, which closes the certificate but for cells that no work can decide. Trees
grow more expensive with tau, and a proof among the taus up to some size is worth more than a little work everywhere. So

* under a limit, before anything expensive, sizes with few supports (tau 1, 2 of up to 512 columns, 3 of up to 93) are
  decided;
* first the pair with the best estimate is worked on, with twice the effort each time, as long as bounds on all rows may
  exclude half of the other pairs once it is solved, and the next try fits into half of the time that is left: its upper
  bound is the cutoff that excludes others. (200 x 200, one gamma, tau 1:8, pair of tau 8: with a single try the folds
  of tau 1 to 5 were solved one by one.)
* then the taus up to that pair's, at every gamma, and one tau after the other beyond it. Before any fold is looked at,
  all rows are solved at the pairs in question, no further than it takes: one tree for the training-loss bound of all
  folds, which excludes most of the pairs. A fold that is solved may raise the sum over the bar too; the rest of the
  folds is then left, and where all rows may still exclude a pair, its folds come with its second sweep;
* what is still open is swept again with more effort, eight times as much every time
  (:mod:`sparsecv_mio.search.sources.tau_sweeps`);
* under a time limit up to half of the time, and all of its second half, goes to trees at the pairs whose lower bounds
  are the least of the grid: these are the gap that a limit leaves (:mod:`sparsecv_mio.search.sources.least_bounds`);
  none of it where what is open is expected to be decided within the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from math import comb
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.deadline import CHOOSING_SHARE, SLICE_SHARE
from sparsecv_mio.search.estimates import OpenCellEstimates, score_reported_pair
from sparsecv_mio.search.loss_bounds import bounded_in_closed_form, narrow_by_ridge_balls
from sparsecv_mio.search.pairs import Pair, likely_winner, proved_ends
from sparsecv_mio.search.ranked_loop import Source, best_offer
from sparsecv_mio.search.run import (
    MOST_COUNTED,
    MOST_TRIES,
    ROUND_EFFORT,
    GridMethod,
    Run,
    StoredPart,
    best_on_all_rows,
    fit_all_rows,
)
from sparsecv_mio.search.shared_trees import SharedTrees
from sparsecv_mio.search.sources.all_rows_trees import AllRowsTrees, LossBounds
from sparsecv_mio.search.sources.fold_trees import FoldTrees
from sparsecv_mio.search.sources.in_question import InQuestion, mask_of
from sparsecv_mio.search.sources.least_bounds import RankedAllRows, RankedLeftOut, TimeShare
from sparsecv_mio.search.sources.tau_sweeps import TauSweeps
from sparsecv_mio.thresholds import FEW_FOLDS, MANY, MANY_FOLDS, PATH_TREE_COLUMNS, SMALL
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import FIRST_LOOK, ROUND_GROWTH, UNLIMITED, BestSubset, BestSubsets


class FoldRounds(StoredPart):
    """Gives every cell of a round the same effort, counted in nodes, and the next round eight times as much.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    effort : int
        Nodes that a cell may cost in the next round.
    """

    stored_as: ClassVar = {"effort": ("effort", 0, MOST_COUNTED)}  # a round under way begins again with what is open

    def __init__(self, run: Run) -> None:
        self.run = run
        self.effort = ROUND_EFFORT

    def run_round(self, pairs: BoolArray, wanted: Callable[[], BoolArray], racing: bool, grow: bool = True) -> None:
        """Carry out a round over some pairs (G, T), as far as time allows.

        Parameters
        ----------
        pairs : (G, T) bool array
        wanted, racing
            As of `FoldTrees`.
        grow : bool
            Whether the next round makes more effort.
        """
        with self.run.accounts.of(BoundSource.FOLD_TREES):
            FoldTrees(self.run, wanted, racing).grow(pairs, self.effort)
        if grow:
            self.effort *= ROUND_GROWTH
        self.run.signals.safe_point()

    def open_cells(self) -> BoolArray:
        """(G, T, K): cells that more work could decide."""
        return self.run.open


FITS_SHARE = 0.6  # of a limit, until when trees on all rows go on where they may take all of it
GROWTH_OF_TRIES = 2  # factor of the effort between two tries at the pair with the best estimate
SUPPORTS_OF_SMALL = 1 << 17  # a size that has no more is decided first


class Outward(StoredPart):
    """Which pairs are worked on next, and how hard.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    winner_tried : int
        Number of times that the pair with the best estimate was worked on by itself.
    winner_seconds : float
        Seconds that the last time took for each fold that was not solved; they set no order without a limit.
    looked : bool
        Whether all rows were looked at for the taus that were not tried yet.
    in_question : InQuestion
        Pairs that are neither decided nor excluded.
    all_rows, folds : AllRowsTrees, FoldTrees
        What they are worked on by.
    sweeps : TauSweeps
    left_out : RankedLeftOut
    share : TimeShare
        Of the time, for the least bounds.
    sources : tuple of Source
        What is ranked against each other between two sweeps; another source of bounds is a file of its own and a place
        here.
    """

    stored_as: ClassVar = {"outward_first": ("winner_tried", 0, MOST_TRIES)}  # what all rows say is computed anew

    def __init__(self, run: Run) -> None:
        self.run = run
        self.winner_tried, self.winner_seconds = 0, 0.0
        self.looked = False
        self.in_question = InQuestion(run)
        self.all_rows, self.folds = AllRowsTrees(run, self.in_question), FoldTrees(run, self.in_question.cells)
        self.sweeps = TauSweeps(self.all_rows, self.folds)
        self.share = TimeShare(run.context.deadline, self.sweeps.seconds_left)
        self.left_out = RankedLeftOut(self.all_rows, self.share)
        self.sources: tuple[Source, ...] = (RankedAllRows(self.all_rows, self.share), self.left_out)

    @cached_property
    def searched(self) -> BoolArray:
        """(T,): sizes below all columns, of which there is one support."""
        return np.asarray(self.run.context.grid.taus < self.run.context.data.q)

    @property
    def left(self) -> bool:
        """Whether some pair is neither decided nor excluded, and more work could change that."""
        return bool(self.in_question.pairs().any())

    def decide_small_sizes(self) -> None:
        """Decide the taus with few supports: the likely best gamma of each first, then all pairs in question.

        These are the small ones, and that of all columns.
        """
        context = self.run.context
        free, forced = context.data.q - len(context.data.forced), len(context.data.forced)
        easy = [comb(free, max(min(tau - forced, free), 0)) <= SUPPORTS_OF_SMALL for tau in context.grid.taus.tolist()]
        count = easy.index(False) if False in easy else len(easy)
        few = (np.arange(len(easy)) < count) | ~self.searched
        if not few.any():
            return
        with self.run.accounts.of(BoundSource.SMALL_SIZES):
            for t in np.flatnonzero(few).tolist():
                self.folds.grow(mask_of(self.run.context.shape, self.sweeps.leader(t, t)), ROUND_EFFORT)
            self.folds.grow(np.broadcast_to(few, context.shape[:2]), ROUND_EFFORT)
        self._note_what_is_proved()

    def begin(self) -> None:
        """Bound all rows at the largest tau of every gamma, which bounds every smaller one; then every cell."""
        state, taus = self.run, self.run.context.grid.taus.tolist()
        missing = np.zeros(self.run.context.shape[:2], dtype=bool)
        last = max(int(self.searched.sum()), 1) - 1  # with all columns nothing is missing
        missing[:, last] = [not result.by_size[taus[last]].lower > 0.0 for result in state.all_rows.best]
        self.all_rows.solve(missing, 0)
        if self.run.context.data.q <= MANY:
            self.run.signals.doing("bounds of every fold by the fits on all rows")
            narrow_by_ridge_balls(self.run, self.all_rows.loss.values, self.run.context.deadline)
            self.left_out.relax()

    def step(self) -> None:
        """Do the first of these that is due.

        1. The pair with the best estimate is not solved: work on it, as long as `_winner_is_due` says.
        2. It is decided, and no tau was worked on yet: work on the taus up to its own, together.
        3. Some tau was worked on: look at all rows for all pairs in question, once, as far as a slice goes.
        4. So it was, and a source has an offer, as those of the least lower bounds under a limit: take the best one.
        5. Otherwise: sweep over the tau that is due.
        """
        winner, tried = self.sweeps.leader(len(self.sweeps.tries) - 1), self.sweeps.tries.any()
        decided = bool(self.run.cells.final[winner].all())
        if not decided and self._winner_is_due(winner):
            self._try_winner(winner)
        elif decided and not tried and self.searched[winner[1]]:
            self._sweep(range(winner[1] + 1))
        elif tried and not self.looked:
            until = self.run.context.deadline.sooner(SLICE_SHARE)
            self.all_rows.solve(self.in_question.pairs(), FIRST_LOOK, until)
            self.looked = True
        elif offer := best_offer(self.sources):
            offer.source.work(offer)
        else:
            self._sweep(self.sweeps.due())
        self._note_what_is_proved()
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def _winner_is_due(self, winner: Pair) -> bool:
        """Return True if the pair with the best estimate is to be worked on before all others.

        A proof of the grid solves this pair in any case. Once it is solved, trees on all rows exclude other pairs,
        without trees in their folds: the pair comes first as long as they may exclude half of the others in question.
        Under a limit, the next try must fit into half of the time that is left.
        """
        others = self.in_question.pairs()
        if self.winner_tried == 0 or not others[winner]:
            return self.winner_tried == 0
        n_open = int((~self.run.cells.final[winner]).sum())
        others[winner] = False
        fits = GROWTH_OF_TRIES * self.winner_seconds * n_open <= CHOOSING_SHARE * self.run.context.deadline.left
        return fits and 2 * int((others & self._may_be_excluded_by(winner)).sum()) >= int(others.sum())

    def _try_winner(self, winner: Pair) -> None:
        """Work on the folds of the pair with the best estimate; their trees go on where the last try left them."""
        run, began = self.run, self.run.context.deadline.seconds
        n_open = int((~run.cells.final[winner]).sum())
        with run.accounts.of(BoundSource.FOLD_TREES):
            effort = min(ROUND_EFFORT * GROWTH_OF_TRIES**self.winner_tried, UNLIMITED)
            self.folds.grow(mask_of(run.context.shape, winner), effort)
        self.winner_tried = min(self.winner_tried + 1, MOST_TRIES)
        self.winner_seconds = (run.context.deadline.seconds - began) / n_open

    def _may_be_excluded_by(self, winner: Pair) -> BoolArray:
        """(G, T): pairs that a tree on all rows may exclude if a pair has the CV error of its estimate."""
        run = self.run
        bars = np.full(run.context.shape[:2], run.cells.nominal[winner].sum() * (1.0 - run.context.gap))
        excluded = run.cells.lower.sum(axis=2) >= bars
        return np.asarray(excluded | (self.all_rows.enough(bars) <= run.all_rows.of_pairs(lambda cell: cell.upper)))

    def _sweep(self, taus: range) -> None:
        self.share.began = min(self.share.began, self.run.context.deadline.seconds)
        self.sweeps.sweep(taus)

    def _note_what_is_proved(self) -> None:
        """Keep when the part of the grid that is proved came to hold one more tau."""
        state, context = self.run, self.run.context
        top, _ = proved_ends(state.bounds(), context.gap, context.grid.gammas, context.grid.taus) or (None, None)
        if top is not None:
            state.counts.reached.setdefault(top, context.deadline.seconds)


def trees_take_long(run: Run) -> bool:
    """Whether those on all rows together took more nodes than one tree may in the first round, or columns are many."""
    return run.context.data.q > SMALL or sum(result.nodes for result in run.all_rows.best) > ROUND_EFFORT


class SharedPass(StoredPart):
    """The first pass over the grid, for all folds at once.

    Parameters
    ----------
    run : Run
    trees : SharedTrees
    rounds : FoldRounds
        Decide the folds of the likely winner that a tree for all folds leaves over.

    Attributes
    ----------
    done : (G,) bool array
        Gammas that were taken.
    bounded : bool
        Whether all cells were bounded and the likely winner was decided, which excludes others.
    """

    stored_as: ClassVar = {"passed": ("done", 0, 1)}  # what bounds all cells is done again, which takes little

    def __init__(self, run: Run, trees: SharedTrees, rounds: FoldRounds) -> None:
        self.run, self.trees, self.rounds = run, trees, rounds
        self.done = np.zeros(len(run.context.grid.gammas), dtype=bool)
        self.bounded = False

    @property
    def left(self) -> bool:
        """Whether some gamma is left."""
        return not self.done.all()

    def step(self) -> None:
        """Bound all cells and decide the likely winner, or take the next gamma."""
        if self.excludes and not self.bounded:
            self._bound_cells()
            self._decide_likely_winner()
            self.bounded = True
        else:
            with self.run.accounts.of(BoundSource.SHARED_TREES):
                self._next_gamma()
        self.run.signals.progressed()
        self.run.signals.safe_point()

    @cached_property
    def excludes(self) -> bool:
        """Whether pairs are left out: where trees take long, and neither all pairs are asked for nor folds too many."""
        context = self.run.context
        return not context.all_asked_for and context.folds.k <= MANY_FOLDS and trees_take_long(self.run)

    def _bound_cells(self) -> None:
        """Bound every cell by the fits on all rows: in closed form where there is one, else refitted in every fold."""
        self.run.signals.doing("bounds of every fold by the fits on all rows")
        refitted = bounded_in_closed_form(self.run, self.trees)
        if refitted and not self.run.context.deadline.expired():
            with self.run.accounts.of(BoundSource.ALL_ROWS):
                LossBounds(self.run).apply(gammas=np.array(refitted))

    def _decide_likely_winner(self) -> None:
        state = self.run
        g, t = likely_winner(state.bounds())
        self.run.signals.doing(f"trees: tau {self.run.context.said_taus[t]}, the likely best")
        with state.accounts.of(BoundSource.SHARED_TREES):
            self.trees.decide_taus(g, [t], state.all_rows.best[g].nodes)
        if state.open[g, t].any():
            pair = mask_of(self.run.context.shape, (g, t))
            self.rounds.run_round(pair, self.rounds.open_cells, racing=False, grow=False)

    def _next_gamma(self) -> None:
        """Take the next gamma: the largest, or where pairs are left out the one with the least CV error."""
        state = self.run
        self.run.signals.doing("trees of all folds at once: gamma", int(self.done.sum()) + 1, len(self.done))
        if not self.excludes:
            g = int(np.argmax(np.where(self.done, -np.inf, self.run.context.grid.gammas)))
            self.trees.decide_gamma(g)
        else:
            g = int(np.argmin(np.where(self.done, np.inf, state.bounds().nominal.min(axis=1))))
            g = g if not self.done[g] else int(np.argmin(self.done))
            which = np.flatnonzero(state.worth_work()[g].any(axis=1)).tolist()
            if which:
                self.trees.decide_taus(g, which, state.all_rows.best[g].nodes)
        self.done[g] = True


class Rounds(GridMethod):
    """A round gives every open cell the same effort, counted in nodes; the next one eight times as much.

    With a gap above 0, pairs whose certified lower bound already exceeds the best upper bound by the gap are left as
    they are. With many columns and few folds small taus come first (`Outward`).

    Parameters
    ----------
    run : Run
    """

    name = "rounds"

    def __init__(self, run: Run) -> None:
        self.trees = SharedTrees(run)
        self.rounds = FoldRounds(run)
        self.estimates = OpenCellEstimates(run, self.trees)
        self.shared_pass = SharedPass(run, self.trees, self.rounds)
        self.outward = Outward(run)
        super().__init__(run, (self.rounds, self.shared_pass, self.outward, self.outward.sweeps))

    @property
    def goes_outward(self) -> bool:
        """Whether small taus come first: where trees are expensive and folds few, unless all cells are asked for."""
        context = self.context
        if context.data.q <= SMALL or context.folds.k > FEW_FOLDS:
            return False
        single = len(context.grid.gammas) == 1 and context.data.q <= PATH_TREE_COLUMNS
        few_pairs = single or context.all_asked_for  # that may be left out
        return not few_pairs or bool(np.isfinite(context.deadline.at))

    def begin(self) -> None:
        """Find first answers, then best subsets on all rows for every gamma, and with these the training-loss bound.

        Under a limit sizes with few supports are decided as soon as every fold has a quick answer: something is proved
        and the interval is finite, whenever the run ends.
        """
        limited = self.goes_outward and bool(np.isfinite(self.context.deadline.at))
        self.estimates.before_all(self.outward.decide_small_sizes if limited else None)
        relaxed = list[BestSubsets]()
        if self.fits_take_the_limit:
            self._fit_all_rows(0)
            self.estimates.before_proof()
            relaxed = list(self.run.all_rows.best)
        self._fit_all_rows()
        for g, known in enumerate(relaxed):
            self.run.all_rows.improve(g, known)
        self.estimates.before_proof()
        if self.goes_outward:
            self.outward.begin()

    @property
    def fits_take_the_limit(self) -> bool:
        """Whether trees on all rows may take all of a limit: relaxations of all gammas and estimates then come first.

        Not of more columns than one tree for all folds takes: few folds would search there, and the others would be
        scored by supports that have seen their rows.
        """
        many = SMALL < self.context.data.q <= PATH_TREE_COLUMNS
        return many and not self.goes_outward and bool(np.isfinite(self.context.deadline.at))

    def _fit_all_rows(self, effort: int | None = None) -> None:
        """Solve all rows as far as an effort goes, the first one; each gamma starts from the supports of the last."""
        if effort is None:
            effort = 0 if self.goes_outward else self.rounds.effort
        falling = np.argsort(-self.context.grid.gammas, kind="stable").tolist()
        until = self.context.deadline.by_share(FITS_SHARE) if effort and self.fits_take_the_limit else None
        fit_all_rows(self.run, falling, effort, in_turn=True, until=until)

    def step(self) -> None:
        """Take the next gamma for all folds at once; once all are taken, a round of trees of the folds' own."""
        if self.goes_outward and self.outward.left:
            self.outward.step()
            return
        if self.shared_pass.left:
            self.shared_pass.step()
            return
        every = np.ones(self.context.shape[:2], dtype=bool)
        self.rounds.run_round(every, self.run.worth_work, self.shared_pass.excludes)

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do."""
        if self.exhausted:
            return True
        if self.context.gap > 0.0 and self.goes_outward and self.run.proved():
            return True
        if self.shared_pass.left:
            return False
        if self.context.gap > 0.0 and self.run.proved():
            return True
        return not self.run.worth_work().any()

    def work_on(self, pairs: BoolArray) -> None:
        """Carry out a round over the open cells of some pairs (G, T)."""
        self.rounds.run_round(pairs, self.rounds.open_cells, racing=False)

    def finish(self) -> None:
        """Decide what is asked for beyond the proof, and estimate what stays open."""
        super().finish()
        self.estimates.at_end()

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold."""
        score_reported_pair(self.run, self.trees)

    def best_on_all_rows(self, g: int, tau: int) -> BestSubset:
        """Return the best subset on all rows at a pair, solved on where the first pass left it open."""
        return best_on_all_rows(self.run, g, tau, self.rounds.effort)

    def model_is_open(self) -> bool:
        """Whether the best subset on all rows of the pair to report is not known yet."""
        if not self.run.all_rows.best:
            return False
        g, t = self.run.reported_pair()
        return not self.run.all_rows.best[g].by_size[int(self.context.grid.taus[t])].complete

    def prove_model(self, beside: bool = False) -> None:
        """Solve all rows at the pair to report until that is proved or the limit comes."""
        g, t = self.run.reported_pair()
        tau, run = int(self.context.grid.taus[t]), self.run
        if not beside:
            run.signals.doing(f"best subset on all rows: tau {self.context.said_taus[t]}")
        start, do = run.all_rows.best[g].by_size[tau].support, self.context.hands.do
        with nullcontext() if beside else run.accounts.of(BoundSource.ALL_ROWS):
            problem, until = run.all_rows.problem(g), self.context.deadline
            result = do(solve_path, problem, [tau], starts=[start], effort=UNLIMITED, until=until)
            run.counts.add(result.nodes, problems=1)
            run.all_rows.improve(g, result)

    # -- what is known now -------------------------------------------------------------------------------------------

    def mios(self) -> int:
        """Return the number of cells that a tree decided."""
        cells = self.run.cells
        return int((cells.decided & cells.branched).sum())

    def engine(self) -> str:
        """Return which engine decided how many cells, in words."""
        counts = self.run.counts.by_engine
        alone = int(self.run.cells.decided.sum()) - sum(counts.values())
        parts = [f"{name} {count}" for name, count in counts.items()]
        return ", ".join([*parts, f"per-fold {alone}"]) if parts else "per-fold"

    def recompute(self) -> None:
        """Fit all rows again; what the folds found first is among the cells."""
        self.estimates.resume()
        self._fit_all_rows()

"""Rounds of growing effort until the certificate closes: work shared between taus and folds.

In general:

1. `SharedPass`: one tree on all rows a gamma decides what it can for all folds at once
   (:mod:`sparsecv_mio.search.shared_tree.engines`). Where trees are expensive the likely winner comes first, and pairs
   that it excludes are left out.
2. `FoldRounds`: every fold with cells still open grows trees of its own, with eight times the effort in every round.

With many columns and few folds (`Rounds.goes_outward` says when) `Outward` comes before both, mostly instead of them:
it ends when no pair is in question any more, which closes the certificate but for cells that no work can decide.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.path import SMALL, PathCell
from sparsecv_mio.search.methods.parts.all_rows import best_on_all_rows, fit_all_rows
from sparsecv_mio.search.methods.parts.beyond_proof import decide_beyond_proof
from sparsecv_mio.search.methods.parts.estimates import OpenCellEstimates
from sparsecv_mio.search.methods.parts.fold_rounds import FoldRounds
from sparsecv_mio.search.methods.parts.outward import Outward
from sparsecv_mio.search.methods.parts.reported_pair import score_reported_pair
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.methods.parts.shared_pass import SharedPass
from sparsecv_mio.search.options import FEW_FOLDS
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.words import Engine

ALL_ROWS_SHARE = 0.1  # of the time limit, for the first pass on all rows
LONG_ANSWERS = 3e7  # gammas x folds x sizes x columns squared, from which first answers take seconds


class Rounds:
    """A round gives every open cell the same effort, counted in nodes; the next one eight times as much.

    With a gap above 0, pairs whose certified lower bound already exceeds the best upper bound by the gap are left as
    they are. With many columns and few folds small taus come first
    (:mod:`sparsecv_mio.search.methods.parts.outward`).

    Parameters
    ----------
    run : Run
    engine : Engine
        How folds share work; the answer is the same.
    """

    name = "rounds"

    def __init__(self, run: Run, engine: Engine = Engine.AUTO) -> None:
        self.run = run
        self.trees = SharedTrees(run.state, engine, run.accelerators.often_proposed)
        self.rounds = FoldRounds(run)
        self.estimates = OpenCellEstimates(run, self.trees)
        self.shared_pass = SharedPass(run, self.trees, self.rounds)
        self.outward = Outward(run)
        self.context, self.parts = run.context, (self.rounds, self.shared_pass, self.outward)

    @property
    def goes_outward(self) -> bool:
        """Whether small taus come first: where trees are expensive and folds few, unless all cells are asked for."""
        context, engine = self.context, self.trees.engine
        if context.data.q <= SMALL or context.folds.k > FEW_FOLDS or engine not in (Engine.AUTO, Engine.PER_FOLD):
            return False
        few_pairs = len(context.grid.gammas) == 1 or context.gap == 0.0 or context.one_se  # that may be left out
        return not few_pairs or bool(np.isfinite(context.deadline.at))

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that more work could decide."""
        return self.run.state.open

    @property
    def exhausted(self) -> bool:
        """Whether the time is over."""
        return self.context.deadline.expired()

    def begin(self) -> None:
        """Find first answers, then best subsets on all rows for every gamma, and with these the training-loss bound.

        Where these are long, or under a limit, sizes with few supports are decided as soon as every fold has a quick
        answer: something is proved and the interval is finite, whenever the run ends.
        """
        context = self.context
        work = len(context.grid.gammas) * context.folds.k * float(context.grid.taus.max()) * context.data.q**2
        first = self.goes_outward and (work >= LONG_ANSWERS or bool(np.isfinite(context.deadline.at)))
        self.estimates.before_all(self.outward.decide_small_sizes if first else None)
        self._fit_all_rows()
        self.estimates.before_proof()
        if self.goes_outward:
            self.outward.begin()

    def _fit_all_rows(self) -> None:
        """Solve all rows as far as the first effort goes; each gamma starts from the supports of the one before."""
        first_pass_over = self.context.deadline.share_from_now(ALL_ROWS_SHARE)
        falling = np.argsort(-self.context.grid.gammas, kind="stable").tolist()
        effort = 0 if self.goes_outward else self.rounds.effort
        fit_all_rows(self.run, falling, effort, first_pass_over, in_turn=True)

    def step(self) -> None:
        """Take the next gamma for all folds at once; once all are taken, a round of trees of the folds' own."""
        if self.goes_outward and self.outward.left:
            self.outward.step()
            return
        if self.shared_pass.left:
            self.shared_pass.step()
            return
        if not self.rounds.under_way:
            self.rounds.start(self.shared_pass.wanted)
        self.rounds.continue_round(in_parts=self.shared_pass.excludes)

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do."""
        if self.exhausted:
            return True
        if self.context.gap > 0.0 and self.goes_outward and not self.rounds.under_way and self.run.state.proved():
            return True
        if self.shared_pass.left or self.rounds.folds_left:
            return False
        if self.context.gap > 0.0 and self.run.state.proved():
            return True
        return not self.run.state.worth_work().any()

    def work_on(self, pairs: BoolArray) -> None:
        """Carry out a round over the open cells of some pairs (G, T)."""
        self.rounds.run_round(self.open & pairs[:, :, None])

    def finish(self) -> None:
        """Decide what is asked for beyond the proof, and estimate what stays open."""
        decide_beyond_proof(self, self.context.one_se)
        self.estimates.at_end()

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold."""
        score_reported_pair(self.run, self.trees)

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Return the best subset on all rows at a pair, solved on where the first pass left it open."""
        return best_on_all_rows(self.run, g, tau, self.rounds.effort)

    # -- what is known now -------------------------------------------------------------------------------------------

    def mios(self) -> int:
        """Return the number of cells that a tree decided."""
        cells = self.run.state.cells
        return int((cells.decided & cells.branched).sum())

    def engine(self) -> str:
        """Return which engine decided how many cells, in words."""
        counts = self.run.state.counts.by_engine
        alone = int(self.run.state.cells.decided.sum()) - sum(counts.values())
        parts = [f"{name} {count}" for name, count in counts.items()]
        return ", ".join([*parts, f"per-fold {alone}"]) if parts else "per-fold"

    def recompute(self) -> None:
        """Fit all rows again; what the folds found first is among the cells."""
        self.estimates.resume()
        self._fit_all_rows()

"""Sweeps over one tau: all rows, then the folds, of its pairs that are in question, by an effort that grows.

Where all rows can still exclude a pair, its first sweep leaves its folds. A sweep costs what its trees cost
(:mod:`all_rows_trees`, :mod:`fold_trees`), and closes pairs: it decides or excludes them. The smallest new tau and the
one that was tried least take turns, by the nodes they cost, so that none is starved. Taking whichever promises more
pairs a second was tried: new taus came before all others, as their easy pairs are soon excluded, and on 64 columns what
was proved after a minute ended at tau 11 instead of 16.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.deadline import CLOCK_TICK
from sparsecv_mio.search.pairs import Pair, likely_winner
from sparsecv_mio.search.run import MOST_COUNTED, MOST_TRIES, StoredPart, effort_of
from sparsecv_mio.search.sources.all_rows_trees import AllRowsTrees
from sparsecv_mio.search.sources.fold_trees import FoldTrees
from sparsecv_mio.search.sources.in_question import mask_of
from sparsecv_mio.trees.subsets import ROUND_GROWTH

ROOT_NODES = 32  # cost of starting a tree (moments, eigenvalues, root of a fold), in nodes


class TauSweeps(StoredPart):
    """Works on all rows, then on the folds, of the pairs of some taus that are in question.

    Parameters
    ----------
    all_rows : AllRowsTrees
    folds : FoldTrees

    Attributes
    ----------
    tries : (T,) int array
        How often a tau was swept.
    spent : (2,) int array
        Nodes spent on taus that were new, and on those that were tried before.
    work : (T,) array
        Work of the first sweep of a tau in the folds of each pair: nodes, and `ROOT_NODES` for each tree; inf where no
        tree grew.
    total_work, total_seconds : float
        Work and seconds of all first sweeps in folds.
    """

    stored_as: ClassVar = {"outward_tries": ("tries", 0, MOST_TRIES), "outward_spent": ("spent", 0, MOST_COUNTED)}

    def __init__(self, all_rows: AllRowsTrees, folds: FoldTrees) -> None:
        self.run, self.in_question, self.all_rows, self.folds = all_rows.run, all_rows.in_question, all_rows, folds
        self.tries = np.zeros(len(self.run.context.grid.taus), dtype=np.int64)
        self.spent = np.zeros(2, dtype=np.int64)
        self.work = np.full(len(self.tries), np.inf)
        self.total_work = self.total_seconds = 0.0

    def due(self) -> range:
        """Return the tau to sweep, by index: the smallest new one, or the least tried of the others.

        Some pair must be in question.
        """
        open_taus = self.in_question.pairs().any(axis=0)
        new, tried = (np.flatnonzero(open_taus & which) for which in (self.tries == 0, self.tries > 0))
        if len(new) and (not len(tried) or self.spent[0] <= self.spent[1]):
            return range(int(new[0]), int(new[0]) + 1)
        tau = int(tried[np.argmin(self.tries[tried])])
        return range(tau, tau + 1)

    def sweep(self, taus: range) -> None:
        """Work on the pairs of some taus, by index, that are in question."""
        before, among = self.run.counts.nodes, np.isin(np.arange(len(self.tries)), taus)
        tries = int(self.tries[among].max())
        effort = effort_of(tries)
        self.all_rows.solve(self.in_question.pairs() & among, effort)
        spared = self.all_rows.may_exclude() & (self.tries == 0)
        with self.run.accounts.of(BoundSource.FOLD_TREES):
            for t in taus:
                began, nodes = self.run.context.deadline.seconds, self.run.counts.nodes
                self.folds.grow(mask_of(self.run.context.shape, self.leader(t)) & ~spared, effort)
                pairs = self.in_question.pairs() & (np.arange(len(self.tries)) == t) & ~spared
                self.folds.grow(pairs, effort)
                if tries == 0 and pairs.any():
                    roots = ROOT_NODES * self.run.context.folds.k * pairs.sum()
                    self.work[t] = (self.run.counts.nodes - nodes + roots) / pairs.sum()
                    self.total_work += float(self.work[t] * pairs.sum())
                    self.total_seconds += self.run.context.deadline.seconds - began
        self.tries[among] = np.minimum(self.tries[among] + 1, MOST_TRIES)
        self.spent[int(tries > 0)] += self.run.counts.nodes - before

    def seconds_left(self) -> float:
        """Return about how long sweeps take until no pair is in question, if all goes on as it went.

        The work is counted in nodes, so that one slow second of a busy machine changes it no more than its share of all
        seconds. A pair of a new tau takes as much work as one of the last new tau, and more with each tau by as much as
        pairs did from one to the next so far. One that was swept takes as much more than at first as its effort grew,
        at most (64 columns: 1.3 to 3 times for the second sweep). inf where nothing is known of it.
        """
        pairs, swept = self.in_question.pairs().sum(axis=0), np.flatnonzero(np.isfinite(self.work))
        if not len(swept):
            return float(np.inf)
        first, last = self.work[swept[[0, -1]]]
        growth = max(last / first, 1.0) ** (1.0 / max(len(swept) - 1, 1))
        each = self.work * float(ROUND_GROWTH) ** self.tries
        new = np.flatnonzero(np.isinf(self.work) & (pairs > 0))
        each[new] = last * growth ** (1.0 + np.arange(len(new)))
        work_left = float(each[pairs > 0] @ pairs[pairs > 0])
        return work_left * max(self.total_seconds, CLOCK_TICK) / self.total_work

    def leader(self, top: int, least: int = 0) -> Pair:
        """Return the pair with the least estimate of h among the taus from index `least` up to index `top`."""
        now, places = self.run.bounds(), np.arange(len(self.tries))
        pairs = np.broadcast_to((least <= places) & (places <= top), now.lower.shape)
        return likely_winner(now.within(pairs, self.run.context.grid.gammas, self.run.context.grid.taus))

"""Proofs of cross-validations with logistic loss, with few statements about folds.

For each pair (tau, gamma) the bounds of the folds in a proof must sum to the lower bound of the record. For a pair that
is not reported, a tree on the full data proves that every support outside a list has an objective F of at least some
number T. Let u be the objective of a known support on the training rows of a fold. The best support of the fold is then
either listed, or its held-out loss is at least `T - u`. T is the smallest number for which these bounds sum to the
bound of the record. If `T - u` is too small in a fold, the fold gets a tree on its training rows. All folds of the
reported pair get such trees too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.files import Place
from sparsecv_mio.proofs.logistic_trees import MOST_STATED, MOST_TREE_NODES, LogisticRows, ScaledRows, prove_logistic
from sparsecv_mio.proofs.pair_proofs import PairProof, PairStatements
from sparsecv_mio.proofs.proof_lines import proof_head
from sparsecv_mio.proofs.threshold_trees import ProofTree, Support, TooLarge
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.trees.smooth_rows import make_subsets
from sparsecv_mio.units import ACCURATE_RTOL, KEEP_RTOL, TIE_RTOL

THRESHOLDS_TRIED = 4  # maximum number of thresholds of trees on all rows before folds get separate trees
FEW_STATED, STATED_NODES = 200, 4_000  # supports and nodes of a tree with a threshold above the minimum objective


class _AtGamma:
    """Objectives and held-out losses of supports in every fold, at one gamma."""

    def __init__(self, scaled: ScaledRows, plan: FoldPlan, gamma: float) -> None:
        self.scaled, self.plan, self.gamma = scaled, plan, gamma
        self.whole = scaled.make_problem(gamma)
        self._scores: dict[tuple[int, Support], tuple[float, float]] = {}

    def rows(self, fold: int) -> LogisticRows:
        """Return the training rows of a fold."""
        return self.scaled.make_problem(self.gamma, self.plan.train_rows(fold))

    def score(self, fold: int, support: Support) -> tuple[float, float]:
        """Return the training objective of a support in a fold, and the loss of the scored rows."""
        if (fold, support) not in self._scores:
            rows = self.rows(fold)
            b, here = rows.fit(np.array(support, dtype=np.int64))
            scored = self.plan.scored_rows(fold)
            m = self.scaled.sign[scored] * (here.a + (self.scaled.Z[scored] / rows.root) @ b)
            self._scores[fold, support] = here.loss + float(b @ b), float(np.logaddexp(0.0, -m).sum())
        return self._scores[fold, support]

    def all_scores(self, support: Support) -> tuple[FloatArray, FloatArray]:
        """Return the scores of a support in every fold."""
        scores = np.array([self.score(fold, support) for fold in range(self.plan.k)])
        return scores[:, 0], scores[:, 1]


class LogisticSearchProof(PairProof):
    """The lines of the proof of one record with logistic loss."""

    def __init__(self, record: Record, plan: FoldPlan, dataset: Dataset, place: Place) -> None:
        self.data = standardize(dataset, record.data.scale, record.data.intercept, loss=record.loss)
        self.scaled = ScaledRows.from_data(self.data)
        request = record.request
        super().__init__(
            record, plan, proof_head(self.data, request.gammas, request.taus, plan, self.scaled.exponent), place
        )
        self.same = np.array([len(plan.scored_rows(k)) == len(plan.left_out(k)) for k in range(plan.k)])
        self._subsets: dict[int, GlmSubsets] = {}

    def _gamma(self, g: int) -> Iterator[dict[str, Any]]:
        at = _AtGamma(self.scaled, self.plan, self.gammas[g])
        for t in range(len(self.taus)):
            yield from self._pair(g, t, at)

    def _best(self, rows: int, gamma: float, size: int) -> Support:
        """Return the best support of a size that the trees find, in a fold or (-1) on all rows."""
        every = np.arange(self.data.n) if rows < 0 else self.plan.train_rows(rows)
        subsets = self._subsets.get(rows)
        if subsets is None:
            self._subsets[rows] = subsets = make_subsets(self.data, every)
        best = subsets.with_gamma(gamma).solve([size]).by_size[size]
        return tuple(sorted(np.asarray(best.support).tolist()))

    def _pair(self, g: int, t: int, at: _AtGamma) -> Iterator[dict[str, Any]]:
        k, size = self.plan.k, min(self.taus[t], self.data.q)
        pair = PairStatements(g, t, size, np.zeros(k), np.full(k, np.inf))
        reported, folds = self._is_reported(pair), list(range(k))
        if not reported:
            folds = yield from self._on_all_rows(pair, at)
        for fold in folds:
            if not reported and pair.low.sum() >= self.goal * (1.0 + ACCURATE_RTOL):
                break
            yield from self._own_tree(pair, fold, at)
        yield self._line(pair)

    def _on_all_rows(self, pair: PairStatements, at: _AtGamma) -> Generator[dict[str, Any], None, list[int]]:
        """Yield the best tree on all rows for a pair; return the folds in the order in which they need own trees."""
        first = self._best(-1, at.gamma, pair.size)
        own, held_out = at.all_scores(first)
        best = self._find_best_tree(pair, at, first, own)
        if best is not None:
            tree, low = best
            pair.state_loss(self.trees, None if self.same.all() else np.flatnonzero(self.same).tolist(), [first])
            yield self._tree(tree, -1, pair.g)
            pair.tighten(np.flatnonzero(self.same), low[self.same], np.inf)
        order: list[int] = np.argsort(pair.low - held_out, kind="stable").tolist()
        return order

    def _find_best_tree(
        self, pair: PairStatements, at: _AtGamma, first: Support, own: FloatArray
    ) -> tuple[ProofTree, FloatArray] | None:
        """Return the tree on all rows with the largest held-out losses, and these by fold; None if it gives none."""
        count, goal = int(self.same.sum()), self.goal * (1.0 + 2.0 * ACCURATE_RTOL)
        if count == 0:
            return None
        b, worth = at.whole.fit(np.array(first, dtype=np.int64))
        value = worth.loss + float(b @ b)
        threshold, most, best = (goal + float(own[self.same].sum())) / count, 0.0, None
        for _ in range(THRESHOLDS_TRIED):
            limit = (FEW_STATED, STATED_NODES) if threshold > value else (MOST_STATED, MOST_TREE_NODES)
            try:
                tree = prove_logistic(at.whole, {pair.size: threshold}, limit, self.kept.select_trees(-1, pair.g))[0]
            except TooLarge:
                break
            low = self._losses(tree, at, threshold, own)
            total = float(low[self.same].sum())
            if total > most:
                most, best = total, (tree, low)
            if most >= goal or (low[self.same] < (threshold - own)[self.same] - TIE_RTOL * value).all():
                break
            threshold += 1.5 * (goal - most) / count
        return best

    def _losses(self, tree: ProofTree, at: _AtGamma, threshold: float, own: FloatArray) -> FloatArray:
        """Return the bounds of the statement `loss` in every fold, for a support with objectives `own` there."""
        low = threshold - own
        for support in (support for of_size in tree.listed.values() for support in of_size):
            value, lost = at.all_scores(support)
            low = np.where(value <= own * (1.0 + TIE_RTOL), np.minimum(low, lost), low)
        return np.asarray(low)

    def _own_tree(self, pair: PairStatements, fold: int, at: _AtGamma) -> Iterator[dict[str, Any]]:
        """Solve a fold by a tree on its own rows."""
        best = self._best(fold, at.gamma, pair.size)
        value, _ = at.score(fold, best)
        tree = prove_logistic(
            at.rows(fold), {pair.size: value * (1.0 + KEEP_RTOL)}, kept=self.kept.select_trees(fold, pair.g)
        )[0]
        pair.state_own([fold], [self.trees])
        yield self._tree(tree, fold, pair.g)
        scores = [at.score(fold, support) for support in tree.listed[pair.size]]
        least = min(own for own, _ in scores)
        possible = [lost for own, lost in scores if own <= least * (1.0 + TIE_RTOL)]
        pair.tighten(fold, min(possible), max(possible))

"""Proofs of cross-validations: for every pair of the grid statements about its folds, as few as reach the bound.

A tree on all rows serves all sizes of one gamma. Where the training-loss bound of every fold already lifts a pair above
the bound of the record, its tree only proves the best objective; else its thresholds reach as high as folds need them,
so that one list decides them (theory section 5), and the folds that are left have trees of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.proofs.fold_scores import FoldScores, ScoresAt, Support
from sparsecv_mio.proofs.lines import head_of
from sparsecv_mio.proofs.trees import MOST, ProofTree, TooLarge, Units, prove_thresholds, rounding

ABOVE = 1e-8  # above a best objective, relatively: supports below are listed
TIED = 1e-9  # objectives of supports that a checker in floats may not tell apart
OUTWARD = 1e-7  # of a CV error, by which a proof claims less than was computed
WIDEST_LEVERAGE = 0.45
COVERED = (1.0, 0.97, 0.9, 0.7)  # shares of folds whose thresholds a list may serve, tried in turn
LISTED, NODES = 4_000, 1 << 17  # what such a list may cost


@dataclass(eq=False)
class Pair:
    """What a proof says of the folds of one pair: ends of h_N in the problem's units, and the statements."""

    index: int
    low: FloatArray
    high: FloatArray
    parts: list[dict[str, Any]] = field(default_factory=list)

    def tighten(self, folds: IntArray, low: FloatArray, high: FloatArray | float) -> None:
        """Intersect with what a statement gives.

        Parameters
        ----------
        folds : int array
        low, high : arrays or numbers
        """
        self.low[folds] = np.maximum(self.low[folds], low)
        self.high[folds] = np.minimum(self.high[folds], high)


class SearchProof:
    """The lines of the proof of one record."""

    def __init__(self, record: Record, dataset: Dataset, plan: FoldPlan) -> None:
        self.record, self.plan = record, plan
        self.data: StandardData = standardize(dataset, record.data.scale, record.data.intercept)
        self.folds = FoldScores(self.data, plan)
        self.units = Units.of(self.data)
        self.unit = self.units.square
        self.place = {name: j for j, name in enumerate(self.data.names)}
        self.gammas, self.taus = list(record.request.gammas), list(record.request.taus)
        self.goal = record.lower * (1.0 - OUTWARD) * plan.scored / self.unit  # of a pair, in the problem's units
        self.trees, self.least, self.upper = 0, np.inf, np.inf

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the proof."""
        yield head_of(self.data, self.gammas, self.taus, self.plan)
        for g, gamma in enumerate(self.gammas):
            yield from self._gamma(g, self.folds.at(gamma))
        per_row = self.unit / self.plan.scored
        if self.least < self.goal * (1.0 - 10.0 * OUTWARD) or not np.isfinite(self.upper):
            raise BadInput("--proof: the proof does not reach the bounds of the record, which may rest on ties")
        lower, upper = self.least * per_row * (1.0 - OUTWARD), self.upper * per_row * (1.0 + OUTWARD)
        g, t = self.gammas.index(self.record.gamma), self.taus.index(self.record.tau)
        yield {"kind": "claim", "gamma": g, "tau": t, "lower": lower, "upper": upper}

    def _tree(self, tree: ProofTree, rows: int, g: int) -> dict[str, Any]:
        self.trees += 1
        return tree.line(rows, g)

    def _gamma(self, g: int, at: ScoresAt) -> Iterator[dict[str, Any]]:
        sizes = [min(tau, self.data.q) for tau in self.taus]
        lost = rounding(at.whole, self.data.divisor)
        pool, best = self._best(at, sorted(set(sizes)))
        self._add_reported(g, pool)
        scores = {size: at.score(supports) for size, supports in pool.items()}
        pairs = [Pair(t, np.zeros(self.plan.k), np.full(self.plan.k, np.inf)) for t in range(len(sizes))]
        loss = {size: self._loss(best[size], scores[size][0]) for size in pool}
        hard = {sizes[t] for t in range(len(sizes)) if self._wants(g, t, loss[sizes[t]].sum())}
        thresholds = {size: best[size] * (1.0 + ABOVE) + 2.0 * lost for size in pool}
        limits = {size: self._limits(at, scores[size][0], lost) for size in hard} if self.folds.single else {}
        numbered: dict[int, tuple[int, ProofTree]] = {}
        for tree in self._cover(at, thresholds, limits, lost):
            numbered.update(dict.fromkeys(tree.above, (self.trees, tree)))
            yield self._tree(tree, -1, g)
        for pair in pairs:
            size = sizes[pair.index]
            if size in limits:
                self._by_list(pair, at, *numbered[size], size, lost)
        for pair in pairs:
            size = sizes[pair.index]
            self._by_loss(pair, pool[size], scores[size][0], loss[size], numbered[size][0])
        yield from self._own_trees(g, at, pairs, sizes, pool)
        for pair in pairs:
            yield self._line(g, pair)

    def _best(self, at: ScoresAt, sizes: list[int]) -> tuple[dict[int, list[Support]], dict[int, float]]:
        """Return supports worth trying and the best objective on all rows, by size."""
        found = solve_path(at.whole, sizes)
        pool: dict[int, list[Support]] = {}
        for size in sizes:
            cell = found.cells[size]
            pool[size] = [_sorted(one) for one in (*cell.candidates[:8], cell.support) if len(one) == size]
            pool[size] = list(dict.fromkeys(pool[size])) or [self._filled(_sorted(cell.support), size)]
        return pool, {size: found.cells[size].upper for size in sizes}

    def _filled(self, support: Support, size: int) -> Support:
        """Add columns, whatever they are, up to a size."""
        more = [j for j in range(self.data.q) if j not in set(support)]
        return tuple(sorted((*support, *more[: size - len(support)])))

    def _add_reported(self, g: int, pool: dict[int, list[Support]]) -> None:
        if self.gammas[g] == self.record.gamma:
            size = min(self.record.tau, self.data.q)
            for names in self.record.chosen_folds.supports:
                one = self._filled(tuple(sorted(self.place[name] for name in names)), size)
                if one not in pool[size]:
                    pool[size].append(one)

    def _reported(self, g: int, t: int) -> bool:
        return bool(self.gammas[g] == self.record.gamma and self.taus[t] == self.record.tau)

    def _wants(self, g: int, t: int, total: float) -> bool:
        """Whether a pair needs more than a lower bound of its sum over folds."""
        return self._reported(g, t) or total < self.goal

    def _loss(self, best: float, objective: FloatArray) -> FloatArray:
        """Return the training-loss bound of every fold."""
        found = np.maximum(best * (1.0 - TIED) - objective.min(axis=0) * (1.0 + TIED), 0.0)
        return np.where(self.plan.scores_all_left_out, found, 0.0)

    def _limits(self, at: ScoresAt, objective: FloatArray, lost: float) -> FloatArray:
        """Return by fold the threshold on all rows beyond which no support wins the fold; inf where there is none."""
        base, e, h = at.all_columns
        h = h + 1e-9
        usable = h < WIDEST_LEVERAGE
        h = np.where(usable, h, 0.0)
        excess = objective.min(axis=0) * (1.0 + ABOVE) + 4.0 * lost - base
        a, b, c = (1.0 - 2.0 * h) / (1.0 - h), np.abs(e) * np.sqrt(h) / (1.0 - h), e**2 / (1.0 - h) + excess
        u = (b + np.sqrt(np.maximum(b * b + a * c, 0.0))) / a
        u = np.maximum(u, np.abs(e) * np.sqrt(h) / (1.0 - 2.0 * h))
        return np.where(usable, base + u * u * (1.0 + 1e-6) + 4.0 * lost, np.inf)

    def _cover(
        self, at: ScoresAt, thresholds: Mapping[int, float], limits: Mapping[int, FloatArray], lost: float
    ) -> list[ProofTree]:
        """Return trees on all rows whose thresholds cover as many folds as a list can afford."""
        for share in COVERED if limits else ():
            above = dict(thresholds)
            for size, limit in limits.items():
                finite = np.sort(limit[np.isfinite(limit)])
                if len(finite):
                    above[size] = max(above[size], float(finite[max(int(np.ceil(share * len(finite))) - 1, 0)]))
            try:
                return self._prove(at.whole, above, lost, (LISTED, NODES))
            except TooLarge:
                continue
        return self._prove(at.whole, thresholds, lost)

    def _prove(
        self, problem: SparseProblem, above: Mapping[int, float], lost: float, most: tuple[int, int] = MOST
    ) -> list[ProofTree]:
        in_units = {size: value * self.unit for size, value in above.items()}
        return prove_thresholds(problem, in_units, self.units, lost, most)

    def _by_list(self, pair: Pair, at: ScoresAt, number: int, tree: ProofTree, size: int, lost: float) -> None:
        """Decide the folds whose thresholds the list reaches."""
        supports = tree.listed.get(size, [])
        if not supports:
            return
        objective, error = at.score(supports)
        covered = np.flatnonzero(self._limits(at, objective, lost) <= tree.above[size] / self.unit)
        if len(covered):
            low, high = _ends(objective[:, covered], error[:, covered], lost)
            pair.tighten(covered, low, high)
            pair.parts.append({"by": "list", "tree": number, "folds": covered.tolist()})

    def _by_loss(
        self, pair: Pair, pool: list[Support], objective: FloatArray, loss: FloatArray, number: int
    ) -> None:
        """Bound the folds that are not decided by their training loss."""
        folds = np.flatnonzero(~np.isfinite(pair.high) & (loss > 0.0))
        if len(folds):
            used, which = np.unique(objective[:, folds].argmin(axis=0), return_inverse=True)
            supports = [list(pool[i]) for i in used.tolist()]
            pair.tighten(folds, loss[folds], np.inf)
            pair.parts.append({"by": "loss", "tree": number, "folds": folds.tolist(), "supports": supports,
                               "which": which.reshape(-1).tolist()})  # fmt: skip

    def _own_trees(
        self, g: int, at: ScoresAt, pairs: list[Pair], sizes: list[int], pool: Mapping[int, list[Support]]
    ) -> Iterator[dict[str, Any]]:
        """Decide what is still needed by trees on the training rows of folds."""
        open_pairs = [pair for pair in pairs if self._wants(g, pair.index, pair.low.sum()) and not _closed(pair)]
        chosen: dict[int, tuple[list[int], list[int]]] = {pair.index: ([], []) for pair in open_pairs}
        for fold in range(self.plan.k):
            wanted = [pair for pair in open_pairs if not np.isfinite(pair.high[fold])
                      and self._wants(g, pair.index, pair.low.sum())]  # fmt: skip
            if not wanted:
                continue
            problem = at.problem(fold)
            lost = rounding(problem, self.data.divisor)
            mine = sorted({sizes[pair.index] for pair in wanted})
            best = self._fold_best(problem, mine, pool)
            above = {size: best[size] * (1.0 + ABOVE) + 2.0 * lost for size in mine}
            for tree in self._prove(problem, above, lost):
                for pair in wanted:
                    size = sizes[pair.index]
                    if size not in tree.above:
                        continue
                    if size not in tree.listed:
                        raise BadInput(f"--proof: the best supports of fold {fold} differ by less than floats can tell")
                    pair.tighten(np.array([fold]), *_ends(*at.score(tree.listed[size], [fold]), lost))
                    chosen[pair.index][0].append(fold)
                    chosen[pair.index][1].append(self.trees)
                yield self._tree(tree, fold, g)
        for pair in open_pairs:
            folds, trees = chosen[pair.index]
            if folds:
                pair.parts.append({"by": "own", "folds": folds, "trees": trees})

    def _fold_best(
        self, problem: SparseProblem, sizes: list[int], pool: Mapping[int, list[Support]]
    ) -> dict[int, float]:
        """Return the best objectives of one fold."""
        starts = [np.array(one, dtype=np.int64) for size in sizes for one in pool[size][:2]]
        found = solve_path(problem, sizes, starts=starts)
        return {size: found.cells[size].upper for size in sizes}

    def _line(self, g: int, pair: Pair) -> dict[str, Any]:
        per_row, low = self.unit / self.plan.scored, float(pair.low.sum())
        high = float(pair.high.sum()) if _closed(pair) else None
        self.least = min(self.least, low)
        if self._reported(g, pair.index) and high is not None:
            self.upper = high
        return {"kind": "pair", "gamma": g, "tau": pair.index, "parts": pair.parts,
                "lower": low * per_row * (1.0 - OUTWARD),
                "upper": None if high is None else high * per_row * (1.0 + OUTWARD)}  # fmt: skip


def _closed(pair: Pair) -> bool:
    return bool(np.isfinite(pair.high).all())


def _sorted(support: IntArray) -> Support:
    return tuple(sorted(int(j) for j in support))


def _ends(objective: FloatArray, error: FloatArray, lost: float) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest held-out error of the supports that may be best in each fold."""
    tied: BoolArray = objective <= objective.min(axis=0) * (1.0 + TIED) + 4.0 * lost
    return np.where(tied, error, np.inf).min(axis=0), np.where(tied, error, -np.inf).max(axis=0)

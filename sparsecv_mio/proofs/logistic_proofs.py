"""Functions that write proofs of the certified bounds of cross-validations with logistic loss.

A node (I, F) of a tree includes the columns I and may choose `k = tau - |I|` of the columns F. At a leaf, every
coefficient vector b gives a lower bound on the objectives of all supports of the leaf. The bound is `sum H(u_i) - sum
of c_j over I - sum of the k largest c_j over F`. Here H is the entropy, and u_i is the absolute slope of the loss of
row i at b. The intercept is chosen so that the slopes sum to the same number in both classes. docs/proof-format.md
defines `c_j = g_j^2 / (4 pi_j)`. Columns are divided by the square roots of their penalties.

For each pair (tau, gamma), the sum of the bounds of the folds must be at least the lower bound of the record. For a
pair that is not reported, a tree on the full data proves that every support outside a list has an objective F of at
least a number T. Let u be the objective of a known support on the training rows of a fold. The best support of the fold
is then either listed, or its held-out loss is at least `T - u`. T begins at the number for which the values `T - u`
have the required sum, and is raised while the tree stays within its limits. Until the sum is reached, folds get trees
on their training rows, those with the smallest bounds first. All folds of the reported pair get such trees too.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, xlogy

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.files import Place
from sparsecv_mio.kernels.k_support import support_norm
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Accuracy, Form, Node
from sparsecv_mio.problem.glm_refit import REFIT_QUICK, RefitRows, fit_roughly
from sparsecv_mio.problem.objective import scales
from sparsecv_mio.problem.row_losses import HALVINGS, LOG_LOSS
from sparsecv_mio.proofs import threshold_trees
from sparsecv_mio.proofs.proof_lines import PairProof, PairStatements, proof_head
from sparsecv_mio.trees.glm_subsets import GlmSubsets, make_subsets
from sparsecv_mio.units import ACCURATE_RTOL, KEEP_RTOL, LOSS_ROUNDING, NEWTON_RTOL, TIE_RTOL

# maximum numbers of supports and nodes of one tree: each leaf has a point, which the checker evaluates in integers
MOST_STATED, MOST_TREE_NODES = 20_000, 60_000
THRESHOLDS_TRIED = 4  # maximum number of thresholds of trees on all rows before folds get separate trees
FEW_STATED, STATED_NODES = 200, 4_000  # supports and nodes of a tree with a threshold above the minimum objective


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Columns about their means, divided by powers of two, in the form of a proof.

    Attributes
    ----------
    Z : (n, q) array
        Scaled columns.
    sign : (n,) array
        Labels -1 and 1.
    scale : (q,) array
        Squared scale of every column.
    exponent : (q,) int array
        Exponent of the unit of an entry of a point, in units of the file.
    free : bool
        True if there is an intercept.
    """

    Z: FloatArray
    sign: FloatArray
    scale: FloatArray
    exponent: IntArray
    free: bool

    @classmethod
    def from_data(cls, data: StandardData) -> ScaledRows:
        """Return the columns that vary, for data of two classes."""
        source, free = data.dataset, data.intercept == "fold"
        X = source.X[:, data.columns]
        moved = X - X.mean(axis=0) if free else X
        exponent = np.frexp(np.abs(moved).max(axis=0))[1].astype(np.int64)
        scale = scales(X, str(data.scale)) ** 2 * np.ldexp(1.0, -2 * exponent)
        sign = np.where(source.y > 0.0, 1.0, -1.0)
        return cls(np.ldexp(moved, -exponent), sign, scale, -exponent, free)

    def make_problem(self, gamma: float, rows: IntArray | slice = slice(None)) -> LogisticRows:
        """Return the problem of some rows at one gamma."""
        root = np.sqrt(0.5 * gamma * self.scale)
        return LogisticRows(np.ascontiguousarray(self.Z[rows] / root), self.sign[rows], root, self.free)

    def rounding_error_bound(self, gamma: float) -> float:
        """Return 0, because proofs for logistic loss are checked without rounding."""
        return 0.0

    def prove(self, gamma: float, above: Mapping[int, float]) -> Iterator[threshold_trees.ProofTree]:
        """Yield trees on all rows that prove a threshold for every size."""
        return prove_logistic(self.make_problem(gamma), above)


@dataclass(frozen=True, eq=False)
class Worth:
    """The bound of a point: `base` and the costs (q,), which bound every support; its intercept, slopes and losses."""

    base: float
    costs: FloatArray
    a: float
    u: FloatArray
    loss: float

    def bound(self, inside: BoolArray, free: BoolArray, room: int) -> float:
        """Return the bound of a node in which `room` of the free columns may be chosen."""
        return threshold_trees.bound_by_costs(self.base, self.costs, inside, free, room)


@dataclass(frozen=True, eq=False)
class LogisticRows:
    """The problem `min sum_i l(y_i (a + v_i'b)) + |b|^2`, with columns divided by the roots of their penalties."""

    V: FloatArray
    sign: FloatArray
    root: FloatArray
    free: bool

    @property
    def q(self) -> int:
        """Number of columns."""
        return self.V.shape[1]

    @cached_property
    def margin(self) -> float:
        """Amount by which a leaf must exceed its threshold, in addition to a share of it."""
        return LOSS_ROUNDING * (len(self.sign) + 10)

    def _intercept(self, offset: FloatArray) -> float:
        """Return the intercept with the smallest loss for given offsets."""
        if not self.free:
            return 0.0
        ones = int((self.sign > 0).sum())
        middle = math.log(ones / (len(self.sign) - ones))
        low, high = middle - float(offset.max()) - 1.0, middle - float(offset.min()) + 1.0
        slope = partial(self._slope, offset, ones)
        return float(brentq(slope, low, high, xtol=1e-15, maxiter=1000))

    @staticmethod
    def _slope(offset: FloatArray, ones: int, a: float) -> float:
        return float(expit(a + offset).sum()) - ones

    def worth(self, b: FloatArray) -> Worth:
        """Return the bound of a point."""
        offset = self.V @ b
        a = self._intercept(offset)
        m = self.sign * (offset + a)
        u = expit(-m)
        loss = float(np.logaddexp(0.0, -m).sum())
        if self.free:
            ones = self.sign > 0
            up, down = float(u[ones].sum()), float(u[~ones].sum())
            u = np.where(ones == (up > down), u * (min(up, down) / max(up, down)), u)
        costs = (self.V.T @ (self.sign * u)) ** 2 / 4.0
        return Worth(-float((xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)).sum()), costs, a, u, loss)

    def model(self, b: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return half the Hessian at a point, with the intercept eliminated, and `G b - gradient / 2`."""
        curve = u * (1.0 - u)
        G = (self.V.T * curve) @ self.V
        if self.free:
            mixed = self.V.T @ curve
            G -= np.outer(mixed, mixed) / max(float(curve.sum()), 1e-300)
        G *= 0.5
        return np.ascontiguousarray(G), G @ b + 0.5 * (self.V.T @ (self.sign * u))

    def fit(self, columns: IntArray) -> tuple[FloatArray, Worth]:
        """Return the fit of some columns, and its bound."""
        n, first, s = len(self.sign), int(self.free), len(columns)
        Z = np.hstack([np.ones((n, first)), self.V[:, columns]])
        rows = RefitRows(Z, self.sign, np.ones(n), np.repeat([0.0, 1.0], [first, s]), LOG_LOSS)
        start = np.repeat([LOG_LOSS.origin(self.sign, rows.w) if first else 0.0, 0.0], [first, s])
        b = np.zeros(self.q)
        b[columns] = fit_roughly(rows, start, REFIT_QUICK)[first:]
        return b, self.worth(b)


@dataclass(eq=False)
class LogisticTree(threshold_trees.PointTree):
    """The tree of one size.

    Parameters
    ----------
    rows : LogisticRows
        Rows at one gamma.
    """

    bits, bits_of_children = threshold_trees.BITS[1:], threshold_trees.BITS[4]

    rows: LogisticRows

    def _single(self, columns: BoolArray, free: BoolArray) -> None:
        b, here = self.rows.fit(np.flatnonzero(columns))
        nothing = np.zeros_like(columns)
        made = self._fitting(b, columns, nothing, 0) if here.bound(columns, nothing, 0) >= self.bar else None
        if made is not None:
            self._close(made)
            return
        self.listed.append(tuple(np.flatnonzero(columns).tolist()))
        self.nodes.append(threshold_trees.NO_POINT)

    def _relax(
        self, inside: BoolArray, free: BoolArray, room: int, start: FloatArray
    ) -> tuple[FloatArray, FloatArray, bool]:
        """Return the best point of a node by Newton's method; the kernel for squared-error loss relaxes its models."""
        rows, members = self.rows, np.flatnonzero(free)
        node = Node(np.flatnonzero(inside), int(inside.sum()), members, len(members), room)
        b = np.where(inside | free, start, 0.0)
        here = best = rows.worth(b)
        point, value = b, _primal(here, b, inside, members, room)
        for _ in range(threshold_trees.PROOF_STEPS):
            least = best.bound(inside, free, room)
            if least >= self.bar or value - least <= ACCURATE_RTOL * value or value < self.bar - 0.5 * (value - least):
                break
            target = self._model_point(node, b, here)
            step = 1.0
            for _ in range(HALVINGS):
                moved = b + step * (target - b)
                there = rows.worth(moved)
                next_value = _primal(there, moved, inside, members, room)
                if there.bound(inside, free, room) > best.bound(inside, free, room):
                    point, best = moved, there
                if next_value <= value:
                    break
                step *= 0.5
            else:
                break
            settled, b, here, value = value - next_value <= 1e-13 * value, moved, there, next_value
            if settled:
                break
        return point, np.sqrt(best.costs), best.bound(inside, free, room) >= self.bar

    def _model_point(self, node: Node, b: FloatArray, here: Worth) -> FloatArray:
        G, c = self.rows.model(b, here.u)
        yy = max(here.loss, float(c @ np.linalg.solve(G + np.eye(len(b)), c))) * 2.0
        form = Form(G, np.ascontiguousarray(c), yy, float(np.trace(G)) + 1e-12)
        moved, g, point, slopes = b.copy(), np.zeros(len(b)), np.zeros(len(b)), np.zeros(len(b))
        relax(form, node, Accuracy(4.0 * yy, 1e-8, threshold_trees.PROOF_STEPS), moved, g, point, slopes)
        return point

    def _round_point(self, b: FloatArray, bits: int) -> threshold_trees.Point:
        exponent, whole = threshold_trees.round_to_bits(b, self.rows.root, bits)
        worth = self.rows.worth(np.ldexp(whole, exponent) * self.rows.root)
        return threshold_trees.Point(exponent, whole, worth.base, worth.costs)


def _primal(here: Worth, b: FloatArray, inside: BoolArray, free: IntArray, room: int) -> float:
    """Return the value of the relaxation at a point."""
    heap, those = np.empty(max(room, 1)), b[free]
    return here.loss + float(b[inside] @ b[inside]) + float(support_norm(those, len(those), room, heap))


def prove_logistic(
    rows: LogisticRows, above: Mapping[int, float], most: tuple[int, int] = (MOST_STATED, MOST_TREE_NODES)
) -> Iterator[threshold_trees.ProofTree]:
    """Yield a tree for every size that proves its threshold.

    Parameters
    ----------
    rows : LogisticRows
        Rows at one gamma.
    above : mapping of size to threshold
        Thresholds.
    most : (int, int)
        Maximum numbers of listed supports and of nodes of a tree.

    Raises
    ------
    TooLarge
        If a tree would be larger.
    """
    for size, threshold in sorted(above.items()):
        tree = LogisticTree(size, threshold * (1.0 + NEWTON_RTOL) + rows.margin, most, rows)
        if not tree.solve(rows.q):
            raise threshold_trees.TooLarge(threshold_trees.TOO_LARGE)
        yield threshold_trees.ProofTree(tree.nodes, {size: tree.listed}, {size: threshold}, tree.points)


class _AtGamma:
    """Objectives and held-out losses of supports in every fold, at one gamma."""

    def __init__(self, scaled: ScaledRows, plan: FoldPlan, gamma: float) -> None:
        self.scaled, self.plan, self.gamma = scaled, plan, gamma
        self.whole = scaled.make_problem(gamma)
        self._scores: dict[tuple[int, threshold_trees.Support], tuple[float, float]] = {}

    def rows(self, fold: int) -> LogisticRows:
        """Return the training rows of a fold."""
        return self.scaled.make_problem(self.gamma, self.plan.train_rows(fold))

    def score(self, fold: int, support: threshold_trees.Support) -> tuple[float, float]:
        """Return the training objective of a support in a fold, and the loss of the scored rows."""
        if (fold, support) not in self._scores:
            rows = self.rows(fold)
            b, here = rows.fit(np.array(support, dtype=np.int64))
            scored = self.plan.scored_rows(fold)
            m = self.scaled.sign[scored] * (here.a + (self.scaled.Z[scored] / rows.root) @ b)
            self._scores[fold, support] = here.loss + float(b @ b), float(np.logaddexp(0.0, -m).sum())
        return self._scores[fold, support]

    def all_scores(self, support: threshold_trees.Support) -> tuple[FloatArray, FloatArray]:
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

    def _best(self, rows: int, gamma: float, size: int) -> threshold_trees.Support:
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
        self, pair: PairStatements, at: _AtGamma, first: threshold_trees.Support, own: FloatArray
    ) -> tuple[threshold_trees.ProofTree, FloatArray] | None:
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
                [tree] = self._prove(at.whole, -1, pair, threshold, limit)
            except threshold_trees.TooLarge:
                break
            low = self._losses(tree, at, threshold, own)
            total = float(low[self.same].sum())
            if total > most:
                most, best = total, (tree, low)
            if most >= goal or (low[self.same] < (threshold - own)[self.same] - TIE_RTOL * value).all():
                break
            threshold += 1.5 * (goal - most) / count
        return best

    def _prove(
        self, problem: LogisticRows, rows: int, pair: PairStatements, threshold: float, most: tuple[int, int]
    ) -> list[threshold_trees.ProofTree]:
        def prove(above: Mapping[int, float]) -> Iterator[threshold_trees.ProofTree]:
            return prove_logistic(problem, above, most)

        return self.kept.prove(rows, pair.g, {pair.size: threshold}, prove)

    def _losses(self, tree: threshold_trees.ProofTree, at: _AtGamma, threshold: float, own: FloatArray) -> FloatArray:
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
        [tree] = self._prove(at.rows(fold), fold, pair, value * (1.0 + KEEP_RTOL), (MOST_STATED, MOST_TREE_NODES))
        pair.state_own([fold], [self.trees])
        yield self._tree(tree, fold, pair.g)
        scores = [at.score(fold, support) for support in tree.listed[pair.size]]
        least = min(own for own, _ in scores)
        possible = [lost for own, lost in scores if own <= least * (1.0 + TIE_RTOL)]
        pair.tighten(fold, min(possible), max(possible))

"""Best subsets of logistic regression, proved by the trees of the squared loss.

A quadratic below F on the level set of the best support so far goes to the trees: their bound holds for every support
that is at least as good, and the list of supports whose quadratic is within the level holds all of these, so refits
decide. Where the list is long, a column goes out or in and the quadratic is made anew on what is left: its level set is
smaller, so its curvature is larger (docs/theory/logistic.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import logistic_newton
from sparsecv_mio.problem.elimination import eliminated
from sparsecv_mio.problem.logistic import LogisticProblem, Minorant, minorant
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.every_size import never, solve_path
from sparsecv_mio.trees.listing import SupportsBelow
from sparsecv_mio.trees.normal_form import normal_form
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset, BestSubsets, OpenNodes

LEVEL_ROOM = 1e-9  # of the best F, which the level is above it
CLOSED = 1e-10  # of the best F: a bound this far below it closes a node
MIXTURES = (0.1, 0.3, 0.6, 1.0)  # of the way from the best support's fit to that of all columns
TREE_EFFORT = 60_000  # of the trees on one quadratic
MOST_LISTED = 3_000  # supports refitted at a node, beyond which it is split
SWAP_COLUMNS = 6  # columns with the steepest gradients that are tried in the place of one


@dataclass(frozen=True, eq=False)
class Refits:
    """Least F of some supports: `lower <= F_S <= upper`, (L,) arrays each."""

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class _Node:
    inside: frozenset[int]
    outside: frozenset[int]


class LogisticSubsets:
    """Best supports of every size asked, with bounds of their objectives.

    Parameters
    ----------
    problem : LogisticProblem
    forced : int array, optional
        Columns that every support contains.
    """

    def __init__(self, problem: LogisticProblem, forced: IntArray | None = None) -> None:
        self.problem = replace(problem, X=np.ascontiguousarray(problem.X))
        self.forced = frozenset(() if forced is None else forced.tolist())
        self.origin, self.refits = float(self.problem.start()[0]) if problem.intercept else 0.0, 0

    def with_gamma(self, gamma: float, weight: FloatArray) -> LogisticSubsets:
        """Return the same rows under another gamma and the columns' penalty weights."""
        return LogisticSubsets(self.problem.with_gamma(gamma, weight), np.array(sorted(self.forced), dtype=np.int64))

    # -- refits -----------------------------------------------------------------------------------------------------

    def fit(self, support: Iterable[int], start: FloatArray | None = None) -> tuple[FloatArray, float, float]:
        """Return `(theta, lower, upper)` of a support: its fit on all columns, and bounds of F_S."""
        problem, columns = self.problem, np.array(sorted(support), dtype=np.int64)
        point = problem.start() if start is None else start
        places = np.concatenate([np.arange(problem.first), columns + problem.first]).astype(np.int64)
        theta = point[places]
        data = problem.X, problem.y, problem.v, problem.ridge, columns, theta, problem.first
        upper, lower, _ = logistic_newton.fit_and_prove(*data, self.origin)
        self.refits += 1
        whole = np.zeros(problem.first + problem.p)
        whole[places] = theta
        return whole, lower, upper

    def refit(self, masks: BoolArray, start: FloatArray | None = None) -> Refits:
        """Bound F_S of several supports.

        Parameters
        ----------
        masks : (L, p) bool array
        start : (first + p,) array, optional
            Where every fit begins.
        """
        problem, point = self.problem, self.problem.start() if start is None else start
        lower, upper = np.empty(len(masks)), np.empty(len(masks))
        logistic_newton.refit(
            problem.X, problem.y, problem.v, problem.ridge, (masks, point), problem.first, self.origin, (lower, upper)
        )  # fmt: skip
        self.refits += len(masks)
        return Refits(lower, upper)

    # -- incumbents -------------------------------------------------------------------------------------------------

    def _steepest(self, theta: FloatArray, among: Sequence[int]) -> list[int]:
        """Columns in the order of what they promise: the gradient beside the curvature."""
        problem, first = self.problem, self.problem.first
        margins = problem.y * (problem.rows @ theta)
        share = 1.0 / (1.0 + np.exp(np.clip(margins, -700.0, 700.0)))
        gradient = problem.X.T @ (problem.v * problem.y * share) - 2.0 * problem.ridge * theta[first:]
        curvature = (problem.v * share * (1.0 - share)) @ problem.X**2 + 2.0 * problem.ridge
        columns = np.array(among, dtype=np.int64)
        return [int(j) for j in columns[np.argsort(-(gradient**2 / curvature)[columns], kind="stable")]]

    def first_support(self, size: int, begin: Iterable[int] = ()) -> tuple[frozenset[int], FloatArray, float]:
        """Return a good support: forward selection from a support, then exchanges of one column."""
        support = frozenset(begin) | self.forced
        theta, _, upper = self.fit(support)
        while len(support) < size:
            outside = self._steepest(theta, [j for j in range(self.problem.p) if j not in support])[:SWAP_COLUMNS]
            upper, j, theta = min(
                ((value, j, point) for j in outside for point, _, value in [self.fit(support | {j}, theta)]),
                key=lambda trial: trial[:2],
            )
            support |= {j}
        return self._exchanged(support, theta, upper)

    def _exchanged(
        self, support: frozenset[int], theta: FloatArray, upper: float
    ) -> tuple[frozenset[int], FloatArray, float]:
        moved = True
        while moved:
            moved = False
            for i in sorted(support - self.forced):
                rest = support - {i}
                point = self.fit(rest, theta)[0]
                outside = [j for j in range(self.problem.p) if j not in support]
                for j in self._steepest(point, outside)[:SWAP_COLUMNS]:
                    trial, _, value = self.fit(rest | {j}, point)
                    if value < upper * (1.0 - 1e-11):
                        support, theta, upper, moved = rest | {j}, trial, value, True
                        break
                if moved:
                    break
        return support, theta, upper

    # -- proofs -----------------------------------------------------------------------------------------------------

    def solve(
        self,
        sizes: Sequence[int],
        starts: Iterable[IntArray] = (),
        effort: int = UNLIMITED,
        enough: Mapping[int, float] | None = None,
        expired: Callable[[], bool] = never,
    ) -> BestSubsets:
        """Solve `min F_S, |S| <= tau` for every tau asked.

        Parameters
        ----------
        sizes : sequence of int
            At least the number of columns that are forced in.
        starts : iterable of int arrays
            Supports worth trying first.
        effort : int
            Most nodes of the outer tree of a size, each with trees of its own.
        enough : mapping of int to float, optional
            By tau, a lower bound that will do.
        expired : callable
            Looked at often; True ends with what is held.

        Returns
        -------
        BestSubsets
            `complete` where the bounds meet up to rounding; no candidates beside the support.
        """
        by_size, nodes, support, given = {}, 0, frozenset[int](), [frozenset(s.tolist()) for s in starts]
        for tau in sorted(set(sizes)):
            size = max(min(tau, self.problem.p), len(self.forced))
            search = _Search(self, size, expired)
            for begin in [support, *(s for s in given if len(s | self.forced) <= size)]:
                search.offer(*self.first_support(size, begin))
            best = search.run(effort, np.inf if enough is None else enough.get(tau, np.inf))
            by_size[tau], support, nodes = replace(best, tau=tau), search.support, nodes + search.nodes
        return BestSubsets(by_size, nodes, all(best.complete for best in by_size.values()))


class _Search:
    """The outer tree of one size."""

    def __init__(self, subsets: LogisticSubsets, size: int, expired: Callable[[], bool]) -> None:
        self.subsets, self.size, self.expired = subsets, size, expired
        self.support, self.theta, self.upper = frozenset[int](), subsets.problem.start(), np.inf
        self.nodes, self.closed = 0, np.inf

    def offer(self, support: frozenset[int], theta: FloatArray, upper: float) -> None:
        """Take over a better support."""
        if upper < self.upper:
            self.support, self.theta, self.upper = support, theta, upper

    def run(self, effort: int, enough: float) -> BestSubset:
        """Work until every node is closed, the effort is spent or the bound will do."""
        waiting: OpenNodes[_Node] = OpenNodes()
        waiting.push(0.0, _Node(self.subsets.forced, frozenset()))
        while len(waiting) and self.nodes < effort and not self.expired():
            if min(waiting.least, self.closed) >= min(enough, self._goal):
                break
            bound, node = waiting.least, waiting.pop()
            self.nodes += 1
            for below, child in self._step(node, bound):
                waiting.push(below, child)
        lower = min(waiting.least, self.closed, self.upper)
        support = np.array(sorted(self.support), dtype=np.int64)
        complete = lower >= self._goal
        return BestSubset(
            self.size, support, lower, self.upper, (support,), (self.upper,), self.upper - lower, complete, True
        )  # fmt: skip

    @property
    def _goal(self) -> float:
        return self.upper * (1.0 - CLOSED)

    def _close(self, bound: float) -> list[tuple[float, _Node]]:
        self.closed = min(self.closed, bound)
        return []

    def _step(self, node: _Node, bound: float) -> list[tuple[float, _Node]]:
        """Close a node, or return its children with a bound of each."""
        subsets, problem = self.subsets, self.subsets.problem
        open_columns = [j for j in range(problem.p) if j not in node.outside]
        everything, below, _ = subsets.fit(open_columns, self.theta)
        bound = max(bound, below)
        if bound >= self._goal:
            return self._close(bound)
        if len(node.inside) >= self.size or len(open_columns) <= self.size:
            support = node.inside if len(node.inside) >= self.size else frozenset(open_columns)
            theta, below, upper = subsets.fit(support, self.theta)
            self.offer(support, theta, upper)
            return self._close(max(bound, below))
        view = _View(subsets, node, open_columns, self.size)
        near = subsets.fit((self.support - node.outside) | node.inside, self.theta)[0]
        best: tuple[float, IntArray] | None = None
        for share in MIXTURES:
            if self.expired():
                break
            level = self.upper * (1.0 + LEVEL_ROOM)
            below, chosen = view.bounded((1.0 - share) * near + share * everything, level, self.expired)
            if chosen is None:
                continue
            self.offer(frozenset(chosen.tolist()), *_fit_and_upper(subsets.fit(chosen.tolist(), self.theta)))
            if best is None or below > best[0]:
                best = below, chosen
                view.keep()
            if below >= self._goal:
                return self._close(max(bound, below))
        if best is not None:
            bound = max(bound, best[0])
            listed = view.listed(self.upper * (1.0 + LEVEL_ROOM), self.expired)
            if listed is not None:
                return self._close(max(bound, self._refitted(listed, view.level)))
        return self._children(node, bound, open_columns, everything, best)

    def _refitted(self, masks: BoolArray, level: float) -> float:
        """Refit the supports of a list; what is not in it is above the level."""
        if not len(masks):
            return level
        refits = self.subsets.refit(masks, self.theta)
        best = int(np.argmin(refits.upper))
        if refits.upper[best] < self.upper:
            support = np.flatnonzero(masks[best]).tolist()
            self.offer(frozenset(support), *_fit_and_upper(self.subsets.fit(support, self.theta)))
        return min(level, float(refits.lower.min()))

    def _children(
        self, node: _Node, bound: float, open_columns: list[int], everything: FloatArray,
        best: tuple[float, IntArray] | None,
    ) -> list[tuple[float, _Node]]:  # fmt: skip
        free = [j for j in open_columns if j not in node.inside]
        among = free if best is None else [j for j in best[1].tolist() if j not in node.inside] or free
        first = self.subsets.problem.first
        j = max(among, key=lambda column: abs(everything[first + column]))
        return [
            (bound, _Node(node.inside | {j}, node.outside)),
            (bound, _Node(node.inside, node.outside | {j})),
        ]


def _fit_and_upper(fit: tuple[FloatArray, float, float]) -> tuple[FloatArray, float]:
    return fit[0], fit[2]


class _View:
    """The quadratics of one node, on the columns that are not out."""

    def __init__(self, subsets: LogisticSubsets, node: _Node, open_columns: list[int], size: int) -> None:
        self.columns, self.size = np.array(open_columns, dtype=np.int64), size
        self.problem, self.whole = subsets.problem.only(self.columns), subsets.problem
        self.forced = np.searchsorted(self.columns, np.array(sorted(node.inside), dtype=np.int64)).astype(np.int64)
        self.level = np.inf
        self._last: tuple[SparseProblem, Minorant] | None = None
        self._kept: tuple[SparseProblem, Minorant] | None = None

    def bounded(self, theta: FloatArray, level: float, expired: Callable[[], bool]) -> tuple[float, IntArray | None]:
        """Bound every F_S up to the level by the quadratic around a point, and return its own best support."""
        first = self.whole.first
        places = np.concatenate([np.arange(first), self.columns + first]).astype(np.int64)
        below = minorant(self.problem, theta[places], level)
        if below is None:
            return 0.0, None
        moments = replace(below.moments, forced=self.forced)
        enough = {self.size: level + below.shift}
        best = solve_path(moments, [self.size], enough=enough, effort=TREE_EFFORT, expired=expired).by_size[self.size]
        self._last = (moments, below)
        return min(best.lower - below.shift, level), self.columns[best.support]

    def keep(self) -> None:
        """Make the list from the quadratic that was bounded last."""
        self._kept = self._last

    def listed(self, level: float, expired: Callable[[], bool]) -> BoolArray | None:
        """Return every support whose quadratic is within the level, as (L, p) masks; None where they are too many."""
        if self._kept is None:
            return None
        moments, below = self._kept
        self.level = min(level, below.level)
        inner = eliminated(moments) if len(self.forced) else None
        others = np.arange(moments.q) if inner is None else inner.choice.others
        form = normal_form(moments if inner is None else inner.problem)
        size = self.size - len(self.forced)
        if not form.trusted or form.m < len(others) or size > form.m:
            return None
        bars = np.full(form.m + 1, -np.inf)
        bars[size] = self.level + below.shift
        source, masks, count = SupportsBelow(form, bars, expired), [], 0
        while not source.finished:
            batch = source.advance()
            masks.append(batch.masks[batch.sizes == size])
            count += len(masks[-1])
            if count > MOST_LISTED or source.effort > TREE_EFFORT or expired():
                return None
        inside = np.unique(np.concatenate(masks), axis=0) if masks else np.zeros((0, form.m), dtype=bool)
        whole = np.zeros((len(inside), self.whole.p), dtype=np.bool_)
        whole[:, self.columns[others[form.columns]]] = inside
        whole[:, self.columns[self.forced]] = True
        return whole

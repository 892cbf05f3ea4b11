"""The branch-and-bound tree of one size for a smooth convex loss.

Each node of this outer tree runs the compiled leaps and bounds of `kernels/glm_leaps` for a few hundredths of a second.
The nodes that this inner tree leaves open become nodes of the outer tree (docs/theory/glm.md, sections 5 and 13). The
outer tree processes the node with the smallest bound first, distributes nodes over threads and checks the clock.

The initial support of a tree comes from a local search. Near a fit, the objective F is close to the objective of a
weighted least-squares problem. For this quadratic, forward selection and exchanges of single columns are evaluated for
all columns at once (`kernels.local_search`). Each proposed support is then fitted, and the support with the smallest F
is used.

**Bounds on coefficients.** All fits are within the bounds, and a listed set of columns may have more columns than the
size. Bounds of 0 then hold the coefficients of the other columns at 0, so the fit of the set is that of a support. Let
theta be this fit up to rounding, a point within the bounds. Every support in the set whose F is at most F(theta) has
its fit in the certified ball about theta. Therefore the set stands for all supports in it that can be optimal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice, product
from math import comb
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg.blas import dsyrk

from sparsecv_mio.arrays import CACHED_NUMBERS, BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import glm_leaps, local_search
from sparsecv_mio.problem.glm import level_ranges, symmetric
from sparsecv_mio.problem.glm_objective import LEAST_CURVATURE
from sparsecv_mio.thresholds import SMOOTH_COLUMNS
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.subsets import BestSubset, OpenNodes
from sparsecv_mio.units import NEWTON_RTOL, TIE_RTOL, TINY

MAX_EXCHANGE_ROUNDS = 20  # maximum number of quadratics of one search
EXCHANGE_RTOL = 1e-11  # minimum relative improvement of F by an exchange
MAX_QUADRATIC_COLUMNS = 128  # maximum number of columns of a quadratic, in addition to those of the support
FEW_SUPPORTS = 200  # maximum number of supports of a size for which the start is not improved before the tree
ROWS_TRIED = 1 << 16  # maximum of rows times columns for refitting all supports of a node with one column to choose
MOST_CHOICES = 512  # maximum number of choices among copies for one support
LEAPS_WORK = 1 << 24  # rows times columns of the fits of one node: some hundredths of a second
DEEP_NODES, BROAD = 8, 16  # nodes with all of this work; later nodes have 1/16 of it, so that small bounds wait less
LEAPS_FOUND = 1_000  # number of supports found at which the leaps of a node end


@dataclass(frozen=True, eq=False)
class GlmNode:
    """Columns that are in and out, and the point where fits begin."""

    inside: frozenset[int]
    outside: frozenset[int]
    point: FloatArray


# for each first copy: its copies in every support, its other copies, and the number of these in a support
_Shape = list[tuple[tuple[int, ...], tuple[int, ...], int]]


class Listing(Protocol):
    """A list that takes every support of a size with F at most a level."""

    @property
    def level(self) -> float:
        """Value of F up to which supports are listed; it may fall."""
        ...

    def take(self, support: IntArray, lower: float, upper: float) -> None:
        """Take a support with bounds on its F; a support may be passed twice.

        Parameters
        ----------
        support : int array
            Columns in ascending order.
        lower, upper : float
            Bounds on F.
        """
        ...


class FittedSupport(NamedTuple):
    """A support with its fit and its F."""

    support: frozenset[int]
    point: FloatArray
    upper: float


Quadratic = tuple[IntArray, local_search.PenalisedMoments]  # columns, and moments of a quadratic in these columns


class SizeSearch:
    """The outer tree of one size.

    Parameters
    ----------
    fits : GlmFits
        Fits to the training rows.
    size : int
        Number of columns of a support.
    is_expired : callable
        Function that returns True when time is over.
    listing : Listing, optional
        List that takes every support up to its level. Supports that can be optimal are kept in any case.

    Attributes
    ----------
    support : frozenset of int
        Best support so far, with the value `upper`.
    kept : dict of frozenset to (float, float)
        Bounds on F of supports that can be optimal.
    exhausted : bool
        True if every node is closed, so that further work cannot change the result.
    """

    def __init__(
        self, fits: GlmFits, size: int, is_expired: Callable[[], bool], listing: Listing | None = None
    ) -> None:
        self.fits, self.is_expired, self.listing = fits, is_expired, listing
        flat = [j for j in fits.forced if not fits.varies[j]]
        self.size = min(size - len(flat), int(fits.varies.sum()))
        self.flat = frozenset(flat)
        self.support, self.point, self.upper = frozenset(fits.forced), fits.start(), np.inf
        self.kept: dict[frozenset[int], tuple[float, float]] = {}
        self.open, self.closed, self._left, self.exhausted = OpenNodes[GlmNode](), np.inf, np.inf, False
        self.work, self._broad = LEAPS_WORK, 0  # work of a node, and number of nodes that had a share of it
        self._cutoff = np.inf  # target of the lower bound: supports above it are not needed
        self._lock = threading.Lock()

    @property
    def nodes(self) -> int:
        """Number of nodes so far."""
        return self.open.n_expanded

    @property
    def unseen(self) -> float:
        """Lower bound on F of the unvisited supports with F at most the level."""
        if not self.open.n_expanded:
            return 0.0
        return min(self.open.smallest_bound, self._left)

    @property
    def level(self) -> float:
        """Cutoff on F of the supports to be found."""
        if self.listing is not None:
            return self.listing.level * (1.0 + NEWTON_RTOL)
        return min(self.upper * (1.0 + TIE_RTOL) + TINY, self._cutoff)  # F may be 0

    def begin(self, starts: Iterable[frozenset[int]], exchanges: bool = True) -> None:
        """Choose an initial support: the best start of the size, else a smaller start extended to the size.

        It is improved by exchanges, unless there are few supports or `exchanges` is False.
        """
        constant = frozenset(np.flatnonzero(~self.fits.varies).tolist())
        forced = frozenset(self.fits.forced) - self.flat
        varying = {start - constant | forced for start in starts}
        whole = [start for start in varying if len(start) == self.size]
        for start in whole:
            fitted = self.fits.refit(self.fits.masks([start]), is_expired=self.is_expired)
            self._offer(start, fitted.points[0], float(fitted.upper[0]))
        if whole and (not exchanges or comb(np.count_nonzero(self.fits.copies), self.size) <= FEW_SUPPORTS):
            return
        smaller = max((start for start in varying if len(start) < self.size), key=len, default=forced)
        start = self.support - self.flat if self.upper < np.inf else smaller
        if not (self.is_expired() and self.upper < np.inf):
            self._offer(*exchange_columns(self.fits, start, self.size, self.is_expired, self._make_quadratic))

    def _make_quadratic(self, best: FittedSupport) -> Quadratic:
        """Return columns, and the moments of Newton's quadratic about a fit, by which exchanges are chosen."""
        return make_quadratic(self.fits, best)

    def _offer(self, support: frozenset[int], point: FloatArray, upper: float) -> None:
        with self._lock:
            if upper < self.upper:
                active = self.fits.find_active(self.fits.masks([support]), point[None, :])[0]
                self.support = self.flat.union(np.flatnonzero(active).tolist())
                self.point, self.upper = point, upper

    def solve(self, tau: int, node_limit: int, cutoff: float, threads: int = 1) -> BestSubset:
        """Process nodes until every node is closed, the effort is spent or the bound reaches the target.

        Parameters
        ----------
        tau : int
            Requested size, for the result.
        node_limit : int
            Maximum number of nodes.
        cutoff : float
            Target of the lower bound.
        threads : int
            Number of nodes that are processed at the same time.
        """
        self._cutoff = cutoff
        self.open.clear()
        self.open.push(0.0, self._root())
        self.open.search(
            self._step,
            lambda: cutoff if self.listing is None and self.closed >= cutoff else np.inf,
            lambda: self.nodes - self._broad + self._broad // BROAD < node_limit and not self.is_expired(),
            threads,
        )
        self.exhausted = not self.open
        lower = min(self.open.smallest_bound, self.closed, self.upper)
        if lower < cutoff <= self.level and self.exhausted and self.listing is None:  # fits are not exact enough
            self.closed = self._left = np.inf
            everything = self.solve(tau, node_limit, np.inf, threads)
            return replace(everything, lower=max(everything.lower, lower))
        kept_supports = sorted((high, sorted(s)) for s, (low, high) in self.kept.items() if low <= self.upper)
        supports = tuple(np.array(s, dtype=np.int64) for _, s in kept_supports)
        values = tuple(high for high, _ in kept_supports)
        best, complete = np.array(sorted(self.support), dtype=np.int64), min(self.unseen, self.level) > self.upper
        return BestSubset(
            tau, best, lower, self.upper, supports, values, self.upper - lower, complete and bool(kept_supports), True
        )  # fmt: skip

    def _root(self) -> GlmNode:
        """Return the node of all supports."""
        inside = frozenset(np.flatnonzero(self.fits.copies)[self.fits.inside].tolist())
        return GlmNode(inside, frozenset(), self.point)

    def _close(self, bound: float) -> list[tuple[float, GlmNode]]:
        with self._lock:
            self.closed = min(self.closed, bound)
        return []

    def _step(self, bound: float, node: GlmNode) -> list[tuple[float, GlmNode]]:
        """Close a node, or return its children, each with a bound."""
        fits = self.fits
        columns = np.array([j for j in np.flatnonzero(fits.copies).tolist() if j not in node.outside], dtype=np.int64)
        room = int(fits.copies[columns].sum())
        all_in = len(columns) == len(node.inside)  # with copies, the number of each may still be open
        all_in |= room <= self.size and not fits.excludes_zero[np.setdiff1d(columns, sorted(node.inside))].any()
        if all_in or len(node.inside) >= self.size:
            chosen = columns if all_in else np.array(sorted(node.inside), dtype=np.int64)
            return self._close_node(bound, node, fits.masks([chosen]), np.inf)
        few = len(columns) * len(fits.problem.y) <= ROWS_TRIED and not fits.has_copies
        if few and fits.problem.ends is None and len(node.inside) == self.size - 1:
            last = (node.inside | {j} for j in columns.tolist() if j not in node.inside)
            return self._close_node(bound, node, fits.masks(list(last)), np.inf)
        return self._leapt(bound, node, columns)

    @cached_property
    def _region(self) -> glm_leaps.FitRanges:
        """Region that contains all points with F at most the level."""
        fits, firsts = self.fits, np.flatnonzero(self.fits.copies)
        places, problem, level = (
            fits.places(firsts),
            fits.bounding_problem.select_columns(firsts),
            max(self.level, self.upper),
        )
        free = np.flatnonzero(problem.penalty == 0.0)
        ends, middle, half = level_ranges(problem, self.point[places], level, self.is_expired)
        size = np.array([np.abs(row).max(initial=0.0) for row in fits.rows.W])
        return glm_leaps.FitRanges(np.array(ends), places[free], middle[free], half[free], size)

    def _leapt(self, bound: float, node: GlmNode, columns: IntArray) -> list[tuple[float, GlmNode]]:
        """Run leaps and bounds at a node; return the nodes that remain open after a number of fits."""
        fits, region, most = self.fits, self._region, min(self.size, len(columns))
        room = np.sort(fits.copies[columns])[::-1].cumsum()  # copies can fill a support up to the size
        least = min(max(int(np.searchsorted(room, self.size)) + 1, len(node.inside)), most)
        least = len(node.inside) if fits.excludes_zero.any() else least  # such columns may raise F
        adjusted = region.free[fits.problem.first_coefficient :]
        inside = np.setdiff1d(fits.places(np.array(sorted(node.inside), dtype=np.int64)), region.free)
        others = np.setdiff1d(fits.places(columns), np.concatenate([region.free, inside]))
        most_fits = self._most_fits(len(columns))
        falls = self.listing is None and not fits.has_copies  # with all copies, F is lower than at the size
        wanted = glm_leaps.SizesWanted(
            least - len(adjusted), most - len(adjusted), self.level, falls, len(columns) <= SMOOTH_COLUMNS
        )
        nodes = glm_leaps.one_node(
            np.concatenate([inside, others]), len(inside), wanted.most, most_fits, node.point, bound
        )
        supports = np.zeros((LEAPS_FOUND, len(node.point)), dtype=np.bool_)
        rows = fits.rows._replace(penalty=fits.bounding_problem.penalty)
        n_left, count, level = glm_leaps.process_nodes(rows, region, wanted, nodes, most_fits, supports)
        self._close(max(bound, level))  # for the closed part of the node
        found = supports[:count, fits.problem.first_coefficient :]
        children = self._close_node(bound, node, found, level) if count else []
        if any(child is node for _, child in children):  # interrupted
            return children
        return [*children, *(self._left_open(nodes, row, adjusted) for row in range(n_left))]

    def _most_fits(self, columns: int) -> int:
        """Return the maximum number of fits of a node with a given number of columns."""
        with self._lock:
            self._broad += int(self.work < LEAPS_WORK)
            self.work = self.work if self.nodes < DEEP_NODES else min(self.work, LEAPS_WORK // BROAD)
        most = self.work // (len(self.fits.problem.y) * columns)
        return 1 if columns > SMOOTH_COLUMNS else max(most, 1)

    def _left_open(self, nodes: glm_leaps.Nodes, row: int, adjusted: IntArray) -> tuple[float, GlmNode]:
        """Return an open node of the inner stack, with its bound."""
        first = self.fits.problem.first_coefficient
        own = np.concatenate([adjusted, nodes.columns[row, : nodes.width[row]]]) - first
        inside = frozenset(own[: len(adjusted) + nodes.inside[row]].tolist())
        outside = frozenset(np.setdiff1d(np.flatnonzero(self.fits.copies), own).tolist())
        return float(nodes.bound[row]), GlmNode(inside, outside, nodes.point[row].copy())

    def _close_node(self, bound: float, node: GlmNode, firsts: BoolArray, level: float) -> list[tuple[float, GlmNode]]:
        """Close a node by fits of its remaining supports, with every number of copies; if interrupted, keep it open.

        All other supports of the node are above the level.
        """
        shapes, whole = list[_Shape](), True
        for first in firsts if self.fits.has_copies else ():
            of_first = list(islice(self._shapes(np.flatnonzero(first).tolist()), MOST_CHOICES + 1))
            whole = whole and len(of_first) <= MOST_CHOICES
            shapes += of_first[:MOST_CHOICES]
        masks = self.fits.masks([next(_supports(shape)) for shape in shapes]) if self.fits.has_copies else firsts
        fitted = self.fits.refit(masks, self.point, self.level, self.is_expired)
        whole = whole and bool(np.all(fitted.upper < np.inf))
        is_support = self.fits.find_active(masks, fitted.points).sum(axis=1) <= self.size
        for best in np.flatnonzero(is_support & (fitted.upper < self.upper)).tolist():
            self._offer(frozenset(np.flatnonzero(masks[best]).tolist()), fitted.points[best], float(fitted.upper[best]))
        is_open = (fitted.lower <= self.level) & (fitted.upper < np.inf)
        closed = min(level, float(fitted.lower[is_support | ~is_open].min(initial=np.inf)))
        for row in np.flatnonzero(is_open & is_support).tolist():
            alike = _supports(shapes[row]) if shapes else [frozenset(np.flatnonzero(masks[row]).tolist())]
            supports = list(islice(alike, MOST_CHOICES + 1))
            whole = whole and len(supports) <= MOST_CHOICES
            self._keep(supports[:MOST_CHOICES], float(fitted.lower[row]), float(fitted.upper[row]))
        if not whole and self.is_expired():
            return [(bound, node)]
        with self._lock:
            self._left = self._left if whole else min(self._left, bound)
        self._close(max(bound, closed) if whole else bound)
        larger = is_open & ~is_support
        return list(self._split_sets(bound, node, masks[larger], fitted.points[larger]))

    def _split_sets(
        self, bound: float, node: GlmNode, masks: BoolArray, points: FloatArray
    ) -> Iterator[tuple[float, GlmNode]]:
        """Yield the two nodes of each set of columns that rounding hid to be larger than a support."""
        for mask, point in zip(masks, points, strict=True):
            inside = node.inside.union(np.flatnonzero(mask & self.fits.excludes_zero).tolist())
            outside = frozenset(np.flatnonzero(~mask & (self.fits.copies > 0)).tolist())
            weight = np.abs(point[self.fits.problem.first_coefficient :]) * mask
            weight[list(inside)] = -1.0
            largest = int(np.argmax(weight))
            yield bound, GlmNode(inside | {largest}, outside, point)
            yield bound, GlmNode(inside, outside | {largest}, point)

    def _keep(self, supports: Iterable[frozenset[int]], lower: float, upper: float) -> None:
        """List supports with the same bounds on F, and keep those that can be optimal."""
        for support in supports:
            with self._lock:
                if self.listing is not None:
                    self.listing.take(np.array(sorted(support | self.flat), dtype=np.int64), lower, upper)
                if lower <= self.upper:
                    self.kept[support | self.flat] = lower, upper

    def _shapes(self, firsts: list[int]) -> Iterator[_Shape]:
        """Yield the numbers of copies that supports of the size may have of some first copies, at least one of each."""
        copies = [np.flatnonzero(self.fits.copy_of == j).tolist() for j in firsts]
        inside = [tuple(j for j in group if j in self.fits.forced) for group in copies]
        others = [tuple(j for j in group if j not in self.fits.forced) for group in copies]
        least, most = [max(len(group), 1) for group in inside], [len(group) for group in copies]
        for number in _numbers(least, most, self.size):
            yield [(own, more, k - len(own)) for own, more, k in zip(inside, others, number, strict=True)]


def _supports(shape: _Shape) -> Iterator[frozenset[int]]:
    """Yield the supports of a shape, which differ only in the choice among copies."""
    groups = ([(*inside, *more) for more in combinations(others, number)] for inside, others, number in shape)
    for choice in product(*groups):
        yield frozenset(j for group in choice for j in group)


def _numbers(least: list[int], most: list[int], total: int) -> Iterator[tuple[int, ...]]:
    """Yield all sequences of integers between two bounds that sum to a total.

    Examples
    --------
    >>> list(_numbers([1, 1], [3, 1], 3)), list(_numbers([], [], 0))
    ([(2, 1)], [()])
    """
    if not least:
        if total == 0:
            yield ()
        return
    lowest = max(least[0], total - sum(most[1:]))
    for number in range(lowest, min(most[0], total - sum(least[1:])) + 1):
        for others in _numbers(least[1:], most[1:], total - number):
            yield (number, *others)


def exchange_columns(
    fits: GlmFits, begin: frozenset[int], size: int, is_expired: Callable[[], bool],
    make_quadratic: Callable[[FittedSupport], Quadratic],
) -> tuple[frozenset[int], FloatArray, float]:  # fmt: skip
    """Return a good support of a size with its fit and value, by adding columns to a start and exchanging columns.

    Parameters
    ----------
    fits : GlmFits
        Fits to the training rows.
    begin : frozenset of int
        Columns of the start: varying columns including the forced ones, at most `size` of them.
    size : int
        Number of columns of the support.
    is_expired : callable
        Function that returns True when time is over; the support may then be smaller.
    make_quadratic : callable
        Function that returns columns, and the moments of a quadratic about a fit in these columns.
    """
    ends, way, (point, _, upper) = fits.exchanged, [begin], fits.fit(begin)
    best = FittedSupport(begin, point, upper)
    while (way[-1], size) not in ends:
        if is_expired():
            return best
        better = _improve_support(fits, best, size, make_quadratic(best)) if len(way) <= MAX_EXCHANGE_ROUNDS else None
        if better is None:
            ends[way[-1], size] = best
        else:
            best = better
            way.append(best.support)
    end = ends[way[-1], size]
    ends.update({(support, size): end for support in way})
    return end


def _improve_support(fits: GlmFits, best: FittedSupport, size: int, quadratic: Quadratic) -> FittedSupport | None:
    """Return a better support, or one of the full size if the present one is smaller; None if none is found."""
    columns, moments = quadratic
    chosen = np.flatnonzero(fits.mask(best.support)[columns])
    forced = len(best.support) - len(chosen)
    room = min(size - forced, len(columns))
    scratch = local_search.new_tableau(len(columns), max(room, 1))
    if room <= 0 or not local_search.load(scratch, moments, chosen, len(chosen)):
        return None
    for _ in range(room - len(chosen)):
        added = local_search.best_to_add(scratch)
        if added < 0:
            return None
        local_search.add(scratch, moments, added)
    local_search.exchange(scratch, moments, local_search.MOST_EXCHANGES)
    inside = best.support - set(columns.tolist())
    proposed = inside | set(columns[scratch.members[:room]].tolist())
    if proposed == best.support:
        return None
    level = best.upper * (1.0 - EXCHANGE_RTOL) if len(proposed) == len(best.support) else np.inf
    fitted = fits.refit(fits.masks([proposed]), best.point, level, sure=False)
    return FittedSupport(proposed, fitted.points[0], float(fitted.upper[0])) if fitted.upper[0] < level else None


def make_quadratic(fits: GlmFits, best: FittedSupport) -> Quadratic:
    """Return varying columns that are not forced, and the moments of Newton's quadratic about a fit in these columns.

    If there are many columns, only those of the support and those with the largest gain are used, the gain of adding
    the column or exchanging it for one of the support.

    Parameters
    ----------
    fits : GlmFits
        Fits to the training rows.
    best : FittedSupport
        Support with its fit.
    """
    problem, rows, first, point = fits.problem, fits.rows, fits.problem.first_coefficient, best.point
    margins = problem.signs * (point @ rows.W)
    weight = problem.v * np.maximum(problem.loss.curvatures(margins, problem.y), LEAST_CURVATURE)
    falls = problem.signs * problem.loss.negative_gradient(margins, problem.y, problem.v)
    target = weight * (problem.signs * margins) + falls
    inner = np.concatenate([np.arange(first), np.array(fits.forced, dtype=np.int64) + first]).astype(np.int64)
    free = fits.varies.copy()
    free[list(fits.forced)] = False
    columns = np.flatnonzero(free)
    if len(columns) > MAX_QUADRATIC_COLUMNS:
        chosen = np.array(sorted(best.support - set(fits.forced)), dtype=np.int64)
        worth = _worth(fits, weight, falls, inner, chosen, point)
        worth[chosen] = np.inf
        worth[~free] = -np.inf
        columns = np.sort(np.argpartition(-worth, MAX_QUADRATIC_COLUMNS)[: MAX_QUADRATIC_COLUMNS + len(chosen)])
    places = np.concatenate([inner, columns + first])
    H, c, k = np.zeros((len(places), len(places))), np.zeros(len(places)), len(inner)
    step = CACHED_NUMBERS // max(len(places), 1) + 1
    for begin in range(0, len(weight), step):
        here = slice(begin, begin + step)
        W = rows.W[places, here]
        H += symmetric(dsyrk(1.0, W * np.sqrt(weight[here]), trans=0))
        c += W @ target[here]
    yy = float(target @ (target / np.where(weight > 0.0, weight, 1.0)))
    A = H[:k, :k] + np.diag(2.0 * rows.penalty[inner] + np.finfo(float).tiny)
    beside = np.linalg.solve(A, np.column_stack([H[:k, k:], c[:k]]))
    yy -= float(c[:k] @ beside[:, -1])
    H, c = H[k:, k:] - H[k:, :k] @ beside[:, :-1], c[k:] - H[k:, :k] @ beside[:, -1]
    Q = np.ascontiguousarray(0.5 * (H + H.T))
    return columns, local_search.PenalisedMoments(Q, 2.0 * rows.penalty[columns + first], np.ascontiguousarray(c), yy)


def _worth(
    fits: GlmFits, weight: FloatArray, slope: FloatArray, inner: IntArray, chosen: IntArray, point: FloatArray
) -> FloatArray:
    """Return the (p,) gains in Newton's quadratic of each column, added or exchanged for a column of the support."""
    rows, first = fits.rows, fits.problem.first_coefficient
    inside = np.concatenate([inner, chosen + first])
    W = rows.W[first:]
    g = W @ slope
    diagonal = (W * W) @ weight + 2.0 * rows.penalty[first:]
    floor = local_search.MIN_LENGTH_LEFT * diagonal
    between = (rows.W[inside] * weight) @ rows.W.T
    M = between[:, inside] + np.diag(2.0 * rows.penalty[inside] + np.finfo(float).tiny)
    V = np.linalg.pinv(M, hermitian=True)
    T = V @ between[:, first:]
    diagonal = diagonal - np.einsum("sj,sj->j", T, between[:, first:])
    worth = np.where(diagonal > floor, g * g / np.where(diagonal > floor, diagonal, 1.0), 0.0)
    k = len(inner)
    T, beta, spread = T[k:], point[inside[k:], None], np.diag(V)[k:, None]
    room = diagonal + T * T / spread
    gains = np.where(room > floor, (g + T * beta / spread) ** 2 / np.where(room > floor, room, 1.0), -np.inf)
    return np.asarray(np.maximum(worth, (gains - beta * beta / spread).max(axis=0, initial=-np.inf)))

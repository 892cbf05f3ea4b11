"""The outer tree of one size of a best subset by a smooth convex loss.

Where at most 100 columns are open they are left out of fits (`kernels/glm_leaps`; docs/theory/glm.md, section 13).
Of more, a quadratic below F on the level set of the best support so far goes to the trees of the squared loss: their
list of supports whose quadratic is within the level holds every support that is at least as good, so refits decide.
Where the list is long, a column goes out or in. Without it the level set is smaller, so the quadratic is made anew and
its curvature is larger; with it, it serves as it is, or is made anew for supports that have the column
(docs/theory/glm.md, section 5).
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

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import glm_leaps
from sparsecv_mio.kernels.nodes import DROPPED
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.problem.elimination import eliminated
from sparsecv_mio.problem.glm import GlmProblem, Minorant, Ranges, minorant, minorant_within
from sparsecv_mio.thresholds import PATH_TREE_COLUMNS, SMALL
from sparsecv_mio.trees.glm_fits import WIDE, GlmFits
from sparsecv_mio.trees.glm_ranges import sparser
from sparsecv_mio.trees.glm_starts import exchanged
from sparsecv_mio.trees.listing import PathListing, PerspectiveTree, sharpened
from sparsecv_mio.trees.normal_form import NormalForm, normal_form, solve_root
from sparsecv_mio.trees.subsets import BestSubset, OpenNodes

LEVEL_ROOM = 1e-9  # of the best F, which the level is above it
CLOSED = 1e-10  # of the best F: bounds that are this near are as good as equal
MIXTURES = (0.15, 0.4, 0.7)  # of the way from the best support's fit to that of all columns
PATH_NODES, PATH_EFFORT = 2_048, 60_000  # of a list by the path tree, between two looks at the clock and in all
NODES_AT_ONCE, PERSPECTIVE_EFFORT = 16, 500  # the same of one by perspectives
MOST_LISTED = 1_000  # supports of a node, beyond which it is split
ALL_TRIED = 200  # supports of a node, up to which they are refitted as they are
PROMISING = 0.6  # of the way from all columns' fit to the level, that a relaxation may be below it for a list of many
MOST_CHOICES = 512  # of copies, for one support
LEAPS_COLUMNS = 100  # open columns of a node up to which they are left out of fits; beyond, quadratics are made
LEAPS_WORK = 1 << 24  # rows times columns of the fits of a node, some hundredths of a second
DEEP_NODES, BROAD = 8, 16  # of a tree, with so much work; later ones have a share of it, as least bounds wait meanwhile
LEAPS_FOUND = 1_000  # supports that they find in a node, with which it ends
REMADE = 1e-3  # of the level: where it has fallen by more, quadratics are made anew


@dataclass(frozen=True, eq=False)
class _Node:
    """Columns in and out; the quadratic of the open ones, once there is one."""

    inside: frozenset[int]
    outside: frozenset[int]
    quadratic: _Quadratic | None = None
    share: int = 0  # of MIXTURES, that was best above
    ranges: Ranges | None = None  # of the margins of all fits of interest
    passed: bool = False  # whether no list is tried, as that of the node above was too long
    point: FloatArray | None = None  # where its fits begin


class Listing(Protocol):
    """Who wants every support of a size with F at most a level."""

    @property
    def level(self) -> float:
        """Up to which supports are wanted; it may fall."""
        ...

    def take(self, support: IntArray, lower: float, upper: float) -> None:
        """Take a support with bounds of its F; one may come twice.

        Parameters
        ----------
        support : int array
            Ascending.
        lower, upper : float
        """
        ...


class SizeSearch:
    """The outer tree of one size.

    Parameters
    ----------
    fits : GlmFits
    size : int
    expired : callable
    listing : Listing, optional
        Hand it every support up to its level; else those that can be optimal are kept.

    Attributes
    ----------
    support : frozenset of int
        The best so far, with the value `upper`.
    kept : dict of frozenset to (float, float)
        Bounds of F of supports that can be optimal.
    unseen : float
        No support that was not met has an F below this, unless it is above the level.
    exhausted : bool
        Whether every node is closed: what is not known then no further work will tell.
    """

    def __init__(self, fits: GlmFits, size: int, expired: Callable[[], bool], listing: Listing | None = None) -> None:
        self.fits, self.expired, self.listing = fits, expired, listing
        forced = np.array(fits.forced, dtype=np.int64)
        flat = [j for j in fits.forced if not fits.varies[j]]
        self.size = min(size - len(flat), int(fits.varies.sum()))
        self.flat = frozenset(flat)
        varying = forced[fits.varies[forced]] if len(forced) else forced
        self.least = np.bincount(fits.copy_of[varying], minlength=fits.problem.p)  # copies of each column forced in
        self.support, self.point, self.upper = frozenset(fits.forced), fits.start(), np.inf
        self.kept: dict[frozenset[int], tuple[float, float]] = {}
        self.nodes, self.closed, self.unseen, self._left, self.exhausted = 0, np.inf, 0.0, np.inf, False
        self.work, self._broad = LEAPS_WORK, 0  # of a node, and nodes that had a share of it
        self._enough = np.inf  # a bound that will do: supports above it are of no interest
        self._lock = threading.Lock()

    @property
    def level(self) -> float:
        """What supports of interest have at most."""
        if self.listing is not None:
            return self.listing.level * (1.0 + CLOSED)
        return min(self.upper * (1.0 + LEVEL_ROOM), self._enough)

    def begin(self, starts: Iterable[frozenset[int]], exchanges: bool = True) -> None:
        """Choose a first support: the best start of the size, and a smaller one extended, improved by exchanges.

        Where supports are few the starts do: all others are tried in any case; or where no `exchanges` are asked for.
        """
        constant = frozenset(np.flatnonzero(~self.fits.varies).tolist())
        forced = frozenset(self.fits.forced) - self.flat
        varying = {start - constant | forced for start in starts}
        whole = [start for start in varying if len(start) == self.size]
        if whole:
            masks = np.array([self.fits.mask(start) for start in whole])
            fitted = self.fits.refit(masks, expired=self.expired)
            best = int(np.argmin(fitted.upper))
            self._offer(whole[best], fitted.points[best], float(fitted.upper[best]))
            if not exchanges or self._few(len(self.fits.copies.nonzero()[0]), 0):
                return
        smaller = max((start for start in varying if len(start) < self.size), key=len, default=forced)
        for start in [self.support - self.flat, smaller] if self.upper < np.inf else [smaller]:
            if not (self.expired() and self.upper < np.inf):
                self._offer(*exchanged(self.fits, start, self.size, self.expired))

    def _few(self, columns: int, inside: int) -> bool:
        return comb(columns - inside, min(self.size - inside, columns - inside)) <= ALL_TRIED

    def _offer(self, support: frozenset[int], point: FloatArray, upper: float) -> None:
        with self._lock:
            if upper < self.upper:
                self.support, self.point, self.upper = support | self.flat, point, upper

    def run(self, tau: int, effort: int, enough: float, threads: int = 1) -> BestSubset:
        """Work until every node is closed, the effort is spent or the bound will do.

        Parameters
        ----------
        tau, effort, enough
            What was asked for, most nodes, and the bound.
        threads : int
            So many nodes are worked on at the same time.
        """
        waiting: OpenNodes[_Node] = OpenNodes()
        self._enough = enough
        waiting.push(0.0, _Node(frozenset(np.flatnonzero(self.least).tolist()), frozenset()))
        while len(waiting) and self.nodes - self._broad + self._broad // BROAD < effort and not self.expired():
            self.unseen = min(waiting.least, self._left)
            if self.listing is None and min(waiting.least, self.closed) >= enough:
                break
            nodes = [(waiting.least, waiting.pop()) for _ in range(min(len(waiting), threads))]
            self.nodes += len(nodes)
            for children in on_threads(lambda given: self._step(*given), nodes, threads):
                for below, child in children:
                    waiting.push(below, child)
        self.unseen, self.exhausted = min(waiting.least, self._left), not len(waiting)
        lower = min(waiting.least, self.closed, self.upper)
        if lower < enough <= self.level and not len(waiting) and self.listing is None:  # fits are not exact enough
            self.closed = self._left = np.inf
            vars(self).pop("_region", None)  # that of a lower level
            everything = self.run(tau, effort, np.inf, threads)
            return replace(everything, lower=max(everything.lower, lower))
        kept = {s: ends for s, ends in self.kept.items() if ends[0] <= self._kept_up_to}
        supports = tuple(np.array(sorted(s), dtype=np.int64) for s in sorted(kept, key=lambda s: kept[s][1]))
        complete = bool(self.unseen == np.inf and self.level < enough and (kept or self.listing is not None))
        best = np.array(sorted(self.support), dtype=np.int64)
        values = tuple(kept[frozenset(s.tolist())][1] for s in supports)
        return BestSubset(
            tau, best, lower, self.upper, supports, values, self.upper - lower, complete, True
        )  # fmt: skip

    @property
    def _kept_up_to(self) -> float:
        return self.upper if self.listing is None else self.listing.level

    def _close(self, bound: float) -> list[tuple[float, _Node]]:
        with self._lock:
            self.closed = min(self.closed, bound)
        return []

    def _step(self, bound: float, node: _Node) -> list[tuple[float, _Node]]:
        """Close a node, or return its children with a bound of each."""
        fits = self.fits
        columns = np.array([j for j in np.flatnonzero(fits.copies).tolist() if j not in node.outside], dtype=np.int64)
        room = int(fits.copies[columns].sum())
        all_in = len(columns) == len(node.inside)  # copies may leave a choice of how many of each
        if room <= self.size or len(node.inside) >= self.size or all_in:
            chosen = columns if room <= self.size or all_in else np.array(sorted(node.inside), dtype=np.int64)
            mask = np.zeros((1, fits.problem.p), dtype=np.bool_)
            mask[0, chosen] = True
            return self._tried(bound, node, mask, np.inf)
        if self._few(len(columns), len(node.inside)) and not fits.has_copies:
            return self._tried(bound, node, self._all(node, columns), np.inf)
        region = self._region if len(columns) <= LEAPS_COLUMNS else None
        if region is not None:
            return self._leapt(region, bound, node, columns)
        quadratic = node.quadratic
        if quadratic is None or quadratic.level > self.level * (1.0 + REMADE):
            everything = np.isin(fits.copy_of, columns) & fits.varies
            far, below = fits.fit_of_all(everything, self.point, self.expired)
            bound = max(bound, below)
            if bound > self.level:
                return self._close(bound)
            quadratic, bound = self._best_quadratic(node, bound, columns, far)
        else:
            bound = max(bound, self._bounded(quadratic, node))
            if bound < self.level:
                anew, bound = self._best_quadratic(node, bound, columns, quadratic.everything)
                quadratic = quadratic if anew is None else anew
        if bound >= self.level:
            return self._close(bound)
        passed = False
        if quadratic is not None and not node.passed and self._promising(quadratic, bound) and not self.expired():
            level = min(self.level, quadratic.level)
            masks = quadratic.listed(
                node.inside, self._sizes(node, columns), level, MOST_LISTED, self.expired
            )  # fmt: skip
            if masks is not None:
                return self._tried(bound, node, masks, level)
            passed = True
        return self._children(node, bound, columns, quadratic, passed)

    @cached_property
    def _region(self) -> glm_leaps.FitRanges | None:
        """Where all points with F at most the level lie; None where no quadratic says so, or columns are many."""
        fits, firsts = self.fits, np.flatnonzero(self.fits.copies)
        if len(firsts) > WIDE or not np.all(fits.whole.ridge[firsts] > 0.0):
            return None
        far, _ = fits.fit_of_all(fits.varies, self.point, self.expired)
        below = minorant(fits.whole.only(firsts), far[fits.places(firsts)], self.level, self.expired)
        if below is None:
            return None
        intercept = np.array([below.centre[0], below.reach[0]])
        return glm_leaps.FitRanges(
            np.array(below.ranges), intercept, np.array([np.abs(row).max(initial=0.0) for row in fits.rows.W])
        )

    def _leapt(
        self, region: glm_leaps.FitRanges, bound: float, node: _Node, columns: IntArray
    ) -> list[tuple[float, _Node]]:
        """Leave columns out of fits; return what is left of a node after so many."""
        fits, sizes = self.fits, self._sizes(node, columns)
        inside, point = np.array(sorted(node.inside), dtype=np.int64), node.point
        if point is None:
            point, _ = fits.fit_of_all(np.isin(fits.copy_of, columns) & fits.varies, self.point, self.expired)
        open_nodes = glm_leaps.one_node(
            np.concatenate([inside, np.setdiff1d(columns, inside)]), len(inside), point, bound
        )  # fmt: skip
        masks = np.zeros((LEAPS_FOUND, fits.problem.p), dtype=np.bool_)
        falls = self.listing is None and not fits.has_copies  # with all copies in F is lower than with a size's number
        most = max(self.work // (len(fits.problem.y) * len(columns)), 1)
        with self._lock:
            self._broad += int(self.work < LEAPS_WORK)
            self.work = self.work if self.nodes < DEEP_NODES else min(self.work, LEAPS_WORK // BROAD)
        rows = fits.rows._replace(penalty=fits.whole.penalty)
        left, count, level = glm_leaps.run(
            rows, region, glm_leaps.SizesWanted(sizes[0], sizes[-1], self.level, falls), open_nodes, most, masks
        )  # fmt: skip
        self._close(max(bound, level))  # what they have closed, all or a part of the node
        if count:
            interrupted = self._tried(bound, node, masks[:count], level)
            if interrupted:
                return interrupted
        firsts, children = frozenset(np.flatnonzero(fits.copies).tolist()), []
        for row in range(left):
            own = open_nodes.columns[row, : open_nodes.width[row]].tolist()
            child = _Node(
                frozenset(own[: open_nodes.inside[row]]), firsts.difference(own), point=open_nodes.point[row].copy()
            )
            children.append((float(open_nodes.bound[row]), child))
        return children

    def _all(self, node: _Node, columns: IntArray) -> BoolArray:
        """Return all supports of a node."""
        free = [j for j in columns.tolist() if j not in node.inside]
        chosen = list(combinations(free, self.size - len(node.inside)))
        masks = np.zeros((len(chosen), self.fits.problem.p), dtype=np.bool_)
        np.put_along_axis(masks, np.array(chosen, dtype=np.int64).reshape(len(chosen), -1), True, axis=1)
        masks[:, list(node.inside)] = True
        return masks

    def _promising(self, quadratic: _Quadratic, bound: float) -> bool:
        """Tell whether a list may be short; the path tree finds out in no time."""
        gap = self.level - self.fits.whole.objective(quadratic.everything)
        return len(quadratic.columns) <= SMALL or self.level - bound <= PROMISING * gap

    def _best_quadratic(
        self, node: _Node, bound: float, columns: IntArray, far: FloatArray
    ) -> tuple[_Quadratic | None, float]:
        """Make quadratics about points nearer and nearer to the fit of all columns, while they bound the node better.

        Returns the best one, and the bound.
        """
        near, best, highest, ranges = self._near(node), None, -np.inf, node.ranges
        problem = self.fits.whole.only(columns)
        for share in range(node.share, len(MIXTURES)):
            if highest >= self.level or self.expired():
                break
            point = self.fits.mixed(near, far, MIXTURES[share], self.level)[self.fits.places(columns)]
            made = self._made(problem, columns, point, ranges, (far, share), node.inside)
            below = -np.inf if made is None else self._bounded(made, node)
            if best is not None and not below > highest:
                break
            if made is not None:
                best, highest, ranges = made, below, made.ranges
        return best, max(bound, highest)

    def _made(
        self, problem: GlmProblem, columns: IntArray, point: FloatArray, ranges: Ranges | None,
        beside: tuple[FloatArray, int], inside: frozenset[int],
    ) -> _Quadratic | None:  # fmt: skip
        """Make a quadratic about a point, within ranges where they are known."""
        level = self.level
        if ranges is None:
            below = minorant(problem, point, level, self.expired)
        else:
            below = minorant_within(problem, point, level, ranges)
        if below is None:
            return None
        below, ranges = sparser(
            problem, below, below.ranges if ranges is None else ranges, self.size, self.expired,
            np.searchsorted(columns, sorted(inside)).astype(np.int64),
        )  # fmt: skip
        return _Quadratic(columns, below, ranges, beside, self.fits.problem.p)

    def _bounded(self, quadratic: _Quadratic, node: _Node) -> float:
        sizes = self._sizes(node, quadratic.columns)
        below, chosen = quadratic.bounded(node.inside, sizes, min(self.level, quadratic.level), self.expired)
        if len(chosen):
            self._refitted(self.fits.mask(chosen.tolist())[None, :], np.inf)
        return below

    def _near(self, node: _Node) -> FloatArray:
        """Return the fit of the best support as far as it fits a node."""
        fits = self.fits
        inside = {j for j in self.support - self.flat if fits.copy_of[j] not in node.outside} | node.inside
        return fits.fit(inside, self.point)[0]

    def _sizes(self, node: _Node, columns: IntArray) -> range:
        """Sizes of supports of first columns that copies can fill up to the size."""
        most = min(self.size, len(columns))
        room = np.sort(self.fits.copies[columns])[::-1].cumsum()
        return range(min(max(int(np.searchsorted(room, self.size)) + 1, len(node.inside)), most), most + 1)

    def _tried(self, bound: float, node: _Node, firsts: BoolArray, level: float) -> list[tuple[float, _Node]]:
        """Close a node by its supports of first columns; what is interrupted leaves it open."""
        below, whole = self._refitted(firsts, level)
        if not whole and self.expired():
            return [(bound, node)]
        with self._lock:
            self._left = self._left if whole else min(self._left, bound)
        return self._close(max(bound, below) if whole else bound)

    def _refitted(self, firsts: BoolArray, level: float) -> tuple[float, bool]:
        """Refit supports of first columns, copies in every number.

        Returns a bound of them and of what is above the level, and whether all were fitted.
        """
        masks, whole = firsts, True
        if self.fits.has_copies:
            filled = [self._filled(first) for first in firsts]
            whole = all(len(some) <= MOST_CHOICES for some in filled)
            chosen = [mask for some in filled for mask in some[:MOST_CHOICES]]
            masks = np.array(chosen, dtype=np.bool_).reshape(-1, self.fits.problem.p)
        if not len(masks):
            return level, whole
        fitted = self.fits.refit(masks, self.point, self.level, self.expired)
        whole = whole and bool(np.all(fitted.upper < np.inf))
        best = int(np.argmin(fitted.upper))
        self._offer(frozenset(np.flatnonzero(masks[best]).tolist()), fitted.points[best], float(fitted.upper[best]))
        for row in np.flatnonzero((fitted.lower <= self._kept_up_to) & (fitted.upper < np.inf)).tolist():
            ends = float(fitted.lower[row]), float(fitted.upper[row])
            supports = list(islice(self._with_other_copies(masks[row]), MOST_CHOICES + 1))
            whole = whole and len(supports) <= MOST_CHOICES
            for support in supports[:MOST_CHOICES]:
                self._keep(support | self.flat, ends)
        return min(level, float(fitted.lower.min())), whole

    def _keep(self, support: frozenset[int], ends: tuple[float, float]) -> None:
        if self.listing is None:
            self.kept[support] = ends
            return
        with self._lock:
            self.listing.take(np.array(sorted(support), dtype=np.int64), *ends)

    def _filled(self, first: BoolArray) -> list[BoolArray]:
        """Return supports of the size that have some first columns, of copies the first ones; at most one too many."""
        fits = self.fits
        columns, masks = np.flatnonzero(first), list[BoolArray]()
        most, least = fits.copies[columns], np.maximum(self.least[columns], 1)
        for number in islice(_numbers(least.tolist(), most.tolist(), self.size), MOST_CHOICES + 1):
            mask = np.zeros(fits.problem.p, dtype=np.bool_)
            for j, count in zip(columns.tolist(), number, strict=True):
                mask[self._copies_of(j)[:count]] = True
            masks.append(mask)
        return masks

    def _copies_of(self, first: int) -> IntArray:
        """Return copies of a column, those that are forced in before the others."""
        columns = np.flatnonzero(self.fits.copy_of == first)
        forced = np.isin(columns, self.fits.forced)
        return np.concatenate([columns[forced], columns[~forced]])

    def _with_other_copies(self, mask: BoolArray) -> Iterator[frozenset[int]]:
        """Yield the support, and those that have other copies of its columns."""
        fits, columns = self.fits, np.flatnonzero(mask)
        if not fits.has_copies:
            yield frozenset(columns.tolist())
            return
        choices = []
        for j, count in zip(*np.unique(fits.copy_of[columns], return_counts=True), strict=True):
            copies = self._copies_of(int(j)).tolist()
            forced = copies[: self.least[j]]
            choices.append([(*forced, *more) for more in combinations(copies[len(forced) :], count - len(forced))])
        for choice in product(*choices):
            yield frozenset(j for copies in choice for j in copies)

    def _children(
        self, node: _Node, bound: float, columns: IntArray, quadratic: _Quadratic | None, passed: bool
    ) -> list[tuple[float, _Node]]:
        """Split a node by a column, the one whose coefficient says most."""
        free = [j for j in columns.tolist() if j not in node.inside]
        j = free[0] if quadratic is None else quadratic.split(node.inside, free)
        share, ranges = (node.share, node.ranges) if quadratic is None else (quadratic.share, quadratic.ranges)
        return [
            (bound, _Node(node.inside | {j}, node.outside, quadratic, share, ranges, passed)),
            (bound, _Node(node.inside, node.outside | {j}, None, share, ranges)),
        ]


def _numbers(least: list[int], most: list[int], total: int) -> Iterator[tuple[int, ...]]:
    """Yield the numbers between two ends that add up to a total.

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


class _Quadratic:
    """A quadratic on some first columns, and the fit of all of them."""

    def __init__(
        self, columns: IntArray, below: Minorant, ranges: Ranges, beside: tuple[FloatArray, int], p: int
    ) -> None:
        self.columns, self.below, self.level, self.p = columns, below, below.level, p
        (self.everything, self.share), self.ranges, self._chosen = beside, ranges, columns[:0]
        self._last: tuple[frozenset[int], _Part] | None = None

    def on(self, inside: frozenset[int]) -> _Part:
        """Return it with some columns forced in."""
        if self._last is None or self._last[0] != inside:
            self._last = inside, self._part(inside)
        return self._last[1]

    def _part(self, inside: frozenset[int]) -> _Part:
        forced = np.searchsorted(self.columns, np.array(sorted(inside), dtype=np.int64)).astype(np.int64)
        moments = replace(self.below.moments, forced=forced)
        inner = eliminated(moments) if inside else None
        others = np.arange(moments.q) if inner is None else inner.choice.others
        return _Part(normal_form(moments if inner is None else inner.problem), others)

    def split(self, inside: frozenset[int], free: list[int]) -> int:
        """Return the column to split by: of its best support, that which all columns together would miss most."""
        among = [j for j in self._chosen.tolist() if j not in inside] or free
        first, own = len(self.everything) - self.p, np.zeros(self.p)
        own[self.columns] = self.everything[first + self.columns] ** 2 / np.diag(self.below.inverse)[first:]
        return max(among, key=lambda j: float(own[j]))

    def bounded(
        self, inside: frozenset[int], sizes: range, level: float, expired: Callable[[], bool]
    ) -> tuple[float, IntArray]:
        """Bound every F_S of some sizes up to the level by a relaxation, and return a support that it points at."""
        part, size = self.on(inside), sizes[-1] - len(inside)
        form, shift = part.form, self.below.shift
        if not (form.curved and form.trusted and 0 < size < form.m):
            return -np.inf, self.columns[:0]
        root = solve_root(form, size, form.raised(level + shift), np.zeros(form.m), expired)
        best = np.argsort(-np.abs(root.b), kind="stable")[:size]
        self._chosen = np.concatenate([self.columns[part.others[form.columns[best]]], sorted(inside)]).astype(np.int64)
        below = (root.dual - form.slack) / (1.0 + form.keep) - shift
        return min(below, level), self._chosen

    def listed(
        self, inside: frozenset[int], sizes: range, level: float, most: int, expired: Callable[[], bool]
    ) -> BoolArray | None:
        """Return every support of some sizes whose quadratic is within the level, as (L, p) masks.

        None where they are more than `most`, or hard to list.
        """
        part = self.on(inside)
        form = part.form
        if not form.trusted or form.m < len(part.others):
            return None
        wanted = range(sizes[0] - len(inside), sizes[-1] - len(inside) + 1)
        free = _supports_within(form, wanted, level + self.below.shift, most, expired)
        if free is None:
            return None
        whole = np.zeros((len(free), self.p), dtype=np.bool_)
        whole[:, self.columns[part.others[form.columns]]] = free
        whole[:, list(inside)] = True
        return whole


class _Part(NamedTuple):
    """A quadratic without the columns that are forced in, and which these others are."""

    form: NormalForm
    others: IntArray


def _supports_within(
    form: NormalForm, sizes: range, bar: float, most: int, expired: Callable[[], bool]
) -> BoolArray | None:
    """List supports of some sizes with f at most a bar; None where they are many or hard to list."""
    alone = np.full(form.m, -1, dtype=np.int64)
    bars = np.full(form.m + 1, -np.inf)
    bars[sizes[0] : sizes[-1] + 1] = bar
    masks: list[BoolArray] = [np.zeros((0, form.m), dtype=np.bool_)]
    ends = [size for size in sizes if size in (0, form.m)]
    by_path = form.m <= SMALL or not form.curved
    if by_path or ends:
        form = replace(form, copy_prev=alone, copy_next=alone)
        if not by_path:
            bars[1 : form.m] = -np.inf
        listing, count = PathListing(form, form.solved(), form.raised(bars)), 0
        while not listing.finished:
            batch = listing.advance(PATH_NODES)
            masks.append(batch.masks)
            count += len(batch.masks)
            if count > most or listing.nodes > PATH_EFFORT or expired():
                return None
    if not by_path:
        form = replace(sharpened(form), copy_prev=alone, copy_next=alone)
        for size in (size for size in sizes if size not in ends):
            within = float(form.raised(bar))
            root = solve_root(form, size, within, np.zeros(form.m), expired)
            if np.count_nonzero(root.status(size, within) != DROPPED) > PATH_TREE_COLUMNS:
                return None
            held = within, most
            tree = PerspectiveTree(form, size, within, np.zeros(form.m, dtype=np.bool_), root, held)
            while not tree.finished:
                tree.advance(max(NODES_AT_ONCE * SMALL // form.m, 1), expired)
                if tree.overflow or tree.nodes > PERSPECTIVE_EFFORT or expired():
                    return None
            masks += [mask[None, :] for mask, _ in tree.candidates()]
    return np.concatenate(masks)

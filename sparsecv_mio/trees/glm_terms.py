"""The branch-and-bound tree for one number of terms and a smooth convex loss; all columns of a term enter together.

A node includes some terms and excludes other terms. The objective of the fit on all columns that the node does not
exclude is a lower bound on the objectives of all supports of the node. A node is split by leaps and bounds: for each
free term, compute the bound of the node after this term is excluded, and sort the free terms by this bound, largest
first. Child i (i = 0, 1, ...) includes the first i terms and excludes the next one. If a support has k of the free
terms, it excludes one of the first k + 1. Therefore k + 1 children contain all supports of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.trees.glm_fits import FittedSupports, GlmFits
from sparsecv_mio.trees.glm_tree import EXCHANGE_RTOL, MAX_EXCHANGE_ROUNDS, GlmNode, Listing, SizeSearch

Terms = tuple[tuple[int, ...], ...]


def multicolumn_terms(data: StandardData) -> Terms:
    """Return the terms that may be chosen, each by its columns; empty if every term has one column."""
    groups = [term.columns for term in data.terms if term.count]
    return tuple(groups) if any(len(columns) > 1 for columns in groups) else ()


class TermSearch(SizeSearch):
    """The tree of one number of terms.

    Parameters
    ----------
    fits : GlmFits
        Fits to the training rows.
    terms : tuple of tuple of int
        Columns of each term; adjustment columns are forced and belong to no term.
    tau : int
        Number of terms of a support.
    is_expired : callable
        Function that returns True when time is over.
    listing : Listing, optional
        List that takes every support up to its level.
    """

    def __init__(
        self, fits: GlmFits, terms: Terms, tau: int, is_expired: Callable[[], bool], listing: Listing | None = None
    ) -> None:
        super().__init__(fits, len(fits.forced), is_expired, listing)
        forced = frozenset(fits.forced)
        self.terms = tuple(columns for columns in terms if np.any(fits.varies[list(columns)]) or forced & {*columns})
        self.inside = frozenset(t for t, columns in enumerate(self.terms) if forced & {*columns})
        self.size = max(min(tau, len(self.terms)), len(self.inside))

    def _columns(self, chosen: Iterable[int]) -> frozenset[int]:
        """Return the columns of some terms, and the forced columns."""
        return frozenset(self.fits.forced).union(*(self.terms[t] for t in chosen))

    def _chosen_terms(self, support: frozenset[int]) -> frozenset[int] | None:
        """Return the terms of a support; None if it is not a support of the size."""
        chosen = frozenset(t for t, columns in enumerate(self.terms) if support & {*columns}) | self.inside
        varying = frozenset(np.flatnonzero(self.fits.varies).tolist())
        is_whole = len(chosen) == self.size and self._columns(chosen) & varying == support & varying
        return chosen if is_whole else None

    def _fit(self, choices: Sequence[frozenset[int]], point: FloatArray, bar: float = np.inf) -> FittedSupports:
        """Return the fits of sets of terms."""
        return self.fits.refit(
            self.fits.masks([self._columns(chosen) for chosen in choices]), point, bar, self.is_expired
        )

    def _offer_best(self, choices: Sequence[frozenset[int]]) -> frozenset[int]:
        """Fit sets of terms, use the best one as support if it has the size, and return it."""
        fitted = self._fit(choices, self.point)
        best = int(np.argmin(fitted.upper))
        if len(choices[best]) == self.size:
            self._offer(self._columns(choices[best]), fitted.points[best], float(fitted.upper[best]))
        return choices[best]

    def begin(self, starts: Iterable[frozenset[int]], exchanges: bool = True) -> None:
        """Choose an initial support: the best start of the size, or forward selection; then exchange single terms.

        Parameters
        ----------
        starts : iterable of frozenset of int
            Supports to try first; those of another number of terms are ignored.
        exchanges : bool
            True to improve a start of the size by exchanges.
        """
        known = [chosen for start in starts if (chosen := self._chosen_terms(start)) is not None]
        best = self._offer_best(known or [self._select_forward()])
        if len(best) == self.size and (exchanges or not known):
            self._exchange_terms(best)

    def _select_forward(self) -> frozenset[int]:
        """Return terms that are selected one after the other, fewer than the size if the time is over."""
        best = self.inside
        while len(best) < self.size and not self.is_expired():
            best = self._offer_best([best | {t} for t in range(len(self.terms)) if t not in best])
        return best

    def _exchange_terms(self, best: frozenset[int]) -> None:
        """Improve a support of the size by exchanges of single terms."""
        others = frozenset(range(len(self.terms)))
        for _ in range(MAX_EXCHANGE_ROUNDS):
            before, choices = self.upper, [best - {s} | {t} for s in best - self.inside for t in others - best]
            if not choices or self.is_expired():
                return
            best = self._offer_best(choices)
            if not self.upper < before * (1.0 - EXCHANGE_RTOL):
                return

    def _root(self) -> GlmNode:
        """Return the node of all supports; nodes list terms by their indices."""
        return GlmNode(self.inside, frozenset(), self.point)

    def _step(self, bound: float, node: GlmNode) -> list[tuple[float, GlmNode]]:
        """Close a node, or return its children, each with a bound."""
        free = sorted(frozenset(range(len(self.terms))) - node.inside - node.outside)
        room = self.size - len(node.inside)
        if bound > self.level:
            return self._close(bound)
        if room == 0:
            return self._close_support(bound, node, node.inside)
        columns = sorted(self._columns(free) - frozenset(self.fits.forced))
        if len(free) <= room and not self.fits.excludes_zero[columns].any():
            return self._close_support(bound, node, node.inside.union(free))
        choices = [node.inside.union(free) - {t} for t in free]
        masks = self.fits.masks([self._columns(chosen) for chosen in choices])
        fitted = self.fits.hull.refit(masks, node.point, self.level, self.is_expired)
        order = np.argsort(-fitted.lower, kind="stable").tolist()
        children = list[tuple[float, GlmNode]]()
        if len(free) <= room:
            children.append((bound, GlmNode(node.inside.union(free), node.outside, node.point)))
        for i, place in enumerate(order[: room + 1]):
            below = max(bound, float(fitted.lower[place]))
            if below > self.level:
                self._close(below)
                continue
            inside = node.inside.union(free[t] for t in order[:i])
            children.append((below, GlmNode(inside, node.outside | {free[place]}, fitted.points[place])))
        return children

    def _close_support(self, bound: float, node: GlmNode, chosen: frozenset[int]) -> list[tuple[float, GlmNode]]:
        """Close a node by the fit of its single support; if interrupted, keep it open."""
        fitted = self._fit([chosen], node.point, self.level)
        lower, upper = float(fitted.lower[0]), float(fitted.upper[0])
        if upper == np.inf and self.is_expired():
            return [(bound, node)]
        self._offer(self._columns(chosen), fitted.points[0], upper)
        if lower <= self.level and upper < np.inf:
            self._keep([self._columns(chosen)], lower, upper)
        with self._lock:
            self._left = self._left if upper < np.inf else min(self._left, bound)
        return self._close(max(bound, lower))

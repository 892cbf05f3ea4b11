"""One tree on all rows for the folds of a pair: near-best supports of all rows, each in every fold.

A tree on all rows lists every support S of a size with F_S up to some T. With u_N the objective of any support in the
training rows of a fold N, and h_N the held-out loss of the fold's optimum S,

    T < F_S <= F_S^(-N) + h_N <= u_N + h_N    where S is not listed.

So h_N is at least `T - u_N`, or S is listed: and of a listed support the held-out loss without N has an interval, by a
Newton step from its fit on all rows (`trees/glm_left_out`). A T that is above the least F by half of what the losses of
held-out rows rise, as the fit is made without them, makes that a bound as good as the loss itself: lists are short.

For an upper end, every point with F up to some level has a loss of the rows of N up to `anywhere`, and a fit of the
size one up to `most`. If `u_N + anywhere` is below the level then F is below it at the fold's optimum: on the way to it
from the fold's fit of a listed support F would otherwise reach the level, at a point with F^(-N) up to u_N and a loss
up to `anywhere`. So h_N is at most `most`, or the optimum is listed; and where `most <= T - u_N` it is listed in any
case: the fold is decided (docs/theory/glm.md, section 9).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.cells import ALL_ROWS
from sparsecv_mio.search.glm_folds import GlmFolds, ScoredFits
from sparsecv_mio.trees.glm_left_out import SupportLeftOut
from sparsecv_mio.trees.subsets import MOST_REFITTED, BestSubset
from sparsecv_mio.units import MARGINS_OFF, OUTWARD, TIE_RTOL, WORST_ROUNDING

ALONE = 8  # folds, those with the largest losses, for which a list is not lengthened
MOST_WORK = 1 << 34  # numbers that steps in the folds of one support may look at, some ten seconds' worth


@dataclass(frozen=True, eq=False)
class InFolds(ScoredFits):
    """Fits of a support in some folds; of their held-out losses what these nearly are."""

    folds: IntArray


class Tried(NamedTuple):
    """A support, and where it may be optimal, for each of the folds that are looked at together."""

    support: IntArray
    parts: list[InFolds]


@dataclass(eq=False)
class FoldsOfPair:
    """What is known of folds of a pair that are looked at together, (k,) each.

    Attributes
    ----------
    lower, upper : arrays
        Of the held-out loss at the fold's optimum.
    listed : bool array
        Whether every support that may be optimal is among those tried.
    best : int array
        The place among those tried of the one with the least objective known.
    value, held_out : arrays
        Its objective from above, and its held-out loss.
    tie : array
        By how much the held-out losses of those that may be optimal differ.
    tied : dict of int to list of int
        Their places, of folds with several.
    """

    lower: FloatArray
    upper: FloatArray
    listed: BoolArray
    best: NDArray[np.int32]
    value: FloatArray
    held_out: FloatArray
    tie: FloatArray
    tied: dict[int, list[int]]


class _NearBest:
    """A list of supports up to a level, which falls where they are more than `MOST_REFITTED`."""

    def __init__(self, level: float) -> None:
        self.level, self.ends = level, dict[tuple[int, ...], tuple[float, float]]()
        self._lock = threading.Lock()

    def take(self, support: IntArray, lower: float, upper: float) -> None:
        """Take a support with bounds of its F."""
        with self._lock:
            if lower <= self.level:
                self.ends[tuple(support.tolist())] = lower, upper
            if len(self.ends) > MOST_REFITTED:
                self.level = sorted(low for low, _ in self.ends.values())[MOST_REFITTED // 2]
                self.ends = {support: ends for support, ends in self.ends.items() if ends[0] <= self.level}


class SharedTree:
    """The folds of a pair by supports of all rows.

    Parameters
    ----------
    folds : GlmFolds
    g, tau : int
        Index of gamma, and size.
    known : sequence of int arrays
        Supports of the size, the best one of all rows first.
    slip : float
        What sums of losses over a fold and its training rows may be off by rounding.
    """

    def __init__(self, folds: GlmFolds, g: int, tau: int, known: Sequence[IntArray], slip: float) -> None:
        self.folds, self.g, self.tau, self.slip = folds, g, tau, slip
        self.subsets = folds.at(ALL_ROWS, g)
        self.left_out = folds.left_out_rows(self.subsets.fits)
        self.expired = folds.context.deadline.expired
        self.least = np.full(self.left_out.k, np.inf)  # objectives of folds, from above
        self.tried: list[Tried] = []
        self.others_above, self.nodes = 0.0, 0
        self.best: BestSubset | None = None  # what the list says of all rows
        self._settled = False
        self.add(known)

    def add(self, supports: Sequence[IntArray]) -> None:
        """Leave the rows of every fold out of some supports, unless these were tried."""
        done = {tuple(tried.support.tolist()) for tried in self.tried}
        distinct = dict.fromkeys(tuple(sorted(given.tolist())) for given in supports)
        new = [support for support in distinct if support not in done]
        if not new:
            return
        fits = self.subsets.fits
        masks = fits.masks(new)
        fitted = fits.refit(masks, expired=self.expired)
        for mask, point in zip(masks, fitted.points, strict=True):
            if self.expired() and self.tried:
                break
            self._try(mask, point)

    def _try(self, mask: BoolArray, point: FloatArray) -> None:
        parts = [self._in_part(part, self.least[at]) for at, part in self.left_out.by_parts(mask, point)]
        self.tried.append(Tried(np.flatnonzero(mask).astype(np.int64), parts))

    def _in_part(self, here: SupportLeftOut, least: FloatArray) -> InFolds:
        """Return what a support is in some folds, where it may be optimal; lowers (k,) `least` objectives of them."""
        unknown = np.flatnonzero(~(here.values[:, 1] < np.inf))
        here.settle(self._affordable(here, unknown), MARGINS_OFF, self.expired)
        np.minimum(least, here.values[:, 1], out=least)
        may = np.flatnonzero(here.values[:, 0] <= least * (1.0 + TIE_RTOL))
        if self._settled:
            known = MARGINS_OFF * here.fine
            wide = here.nearly_all(may[here.values[may, 2] > known], WORST_ROUNDING / 4.0)
            here.settle(self._affordable(here, wide), known, self.expired)
            np.minimum(least, here.values[:, 1], out=least)
            may = may[here.values[may, 0] <= least[may] * (1.0 + TIE_RTOL)]
        low, high, near = (of_folds[may] for of_folds in here.held_out())
        return InFolds(here.values[may, 0], here.values[may, 1], low, high, near, may.astype(np.int32))

    def _affordable(self, here: SupportLeftOut, folds: IntArray) -> IntArray:
        """Return of some folds those that are off the most, as many as there is time for."""
        most = MOST_WORK * here.folds.k // (here.size * 4 * self.left_out.k)
        return folds[np.argsort(-here.values[folds, 2], kind="stable")][:most]

    def settle(self) -> None:
        """From now on, and of what was tried, have held-out losses as exactly as there is time for."""
        self._settled, before, self.tried = True, [tried.support for tried in self.tried], []
        self.add(before)

    # -- lists --------------------------------------------------------------------------------------------------------

    def enough_for(self, goal: float) -> float:
        """Return a T from which on lower ends of all folds add up to a goal; if none does, what they need at most."""
        held = self._among_tried("lower")
        need = _of_most_folds(self.least + held + self.slip)

        def reached(T: float) -> bool:
            return float(np.minimum(held, np.maximum(T - self.least - self.slip, 0.0)).sum()) >= goal

        low, high = float(self.least.min()), need
        if not (np.isfinite(need) and reached(need)):
            return need
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        return high

    def nothing_held(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of `most_held` where nothing is known."""
        return np.zeros(self.left_out.k), np.full(self.left_out.k, np.inf)

    def most_held(self, upper: float) -> tuple[FloatArray, FloatArray]:
        """Return (K,) ends of the held-out losses of fits of the size, whatever their support; 0 and inf if unknown.

        Parameters
        ----------
        upper : float
            At least the least F.
        """
        held = self._among_tried("upper")
        level = max(_of_most_folds(self.least + held), upper)
        least, most = self.nothing_held()
        for _ in range(2):
            if self.expired() or not np.isfinite(level):
                break
            found, need = self.subsets.losses_below(self.tau, level, self.expired), np.empty(len(held))
            for at, part in self.left_out.parts():
                need[at] = part.summed(found.anywhere) * (1.0 + OUTWARD) + self.least[at] + self.slip
                inside = (need[at] < level) & (self.least[at] + held[at] < level)
                low, high = part.summed(found.least) * (1.0 - OUTWARD), part.summed(found.most) * (1.0 + OUTWARD)
                np.maximum(least[at], low, out=least[at], where=inside)
                np.minimum(most[at], high, out=most[at], where=inside)
            level = upper + 1.5 * (max(_of_most_folds(need), level) - upper)
            del found, need  # numbers of rows and folds, of which there may be very many
        return least, most

    def most_alone(self, least: FloatArray, most: FloatArray) -> None:
        """Narrow the ends of `most_held`, of folds that the list leaves open, by the points of their own rows.

        O(n p^2) a round, some ten rounds a fold.

        Parameters
        ----------
        least, most : (K,) arrays
        """
        for fold in np.flatnonzero(~(self._others() >= most) & np.isfinite(self.least)).tolist():
            if self.expired():
                break
            low, high = self.folds.interval(fold, self.g, self.tau, float(self.least[fold]))
            least[fold], most[fold] = max(least[fold], low), min(most[fold], high)

    def _others(self, at: slice = slice(None)) -> FloatArray:
        """Return what the held-out loss of a support that is not listed is at least, in some folds."""
        least = self.least[at]  # inf where nothing is known; there may be no others, which then are above inf
        above = np.maximum(self.others_above - np.where(least < np.inf, least, 0.0) - self.slip, 0.0)
        return np.where(least < np.inf, above, 0.0)

    def enough_to_decide(self, most: FloatArray) -> float:
        """Return a T from which on most folds are decided, as far as (K,) upper ends of `most_held` are known."""
        held = np.where(np.isfinite(most), most, self._among_tried("lower"))
        return _of_most_folds(self.least + held + self.slip)

    def list_up_to(self, T: float, effort: int) -> bool:
        """Have a tree on all rows list the supports with F up to T, and try them; whether the list is complete.

        Parameters
        ----------
        T : float
        effort : int
            Nodes of the tree.
        """
        listed = _NearBest(T)
        search = self.subsets.listing(self.tau, listed, self.expired)
        self.best = search.run(self.tau, effort, np.inf, self.folds.context.threads)
        self.nodes = search.nodes
        self.add([np.array(support, dtype=np.int64) for support in listed.ends])
        if set(listed.ends) <= {tuple(tried.support.tolist()) for tried in self.tried}:  # else time was over
            self.others_above = min(search.unseen, listed.level)
        return search.unseen >= listed.level

    def shown(self) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        """Return in every fold the place among those tried of the best support, its held-out loss and objective."""
        best, held, value = np.empty(self.left_out.k, dtype=np.int32), *np.empty((2, self.left_out.k))
        for at, some in self._by_parts():
            best[at], held[at], value[at] = some.best, some.held_out, some.value
        return best, held, value

    def result(self, least: FloatArray, most: FloatArray) -> Iterator[tuple[slice, FoldsOfPair]]:
        """Yield what is known of the folds, of those that are looked at together, and which they are.

        Parameters
        ----------
        least, most : (K,) arrays
            Of `most_held`.
        """
        for at, found in self._by_parts():
            others = self._others(at)
            found.listed = (others >= most[at]) & (found.best >= 0)
            lower = np.minimum(found.lower, np.maximum(others, least[at]))
            np.copyto(found.lower, lower, where=~found.listed)
            np.copyto(found.upper, np.maximum(found.upper, most[at]), where=~found.listed)
            yield at, found

    def _among_tried(self, end: str) -> FloatArray:
        """(K,) `lower` or `upper` ends, were every support that may be optimal in some fold among those tried."""
        return np.concatenate([getattr(found, end) for _, found in self._by_parts()])

    def _by_parts(self) -> Iterator[tuple[slice, FoldsOfPair]]:
        """Yield what would be known of folds that are looked at together if all that may be optimal were tried."""
        for number, (at, _) in enumerate(self.left_out.parts()):
            yield at, self._of_part(number, self.least[at])

    def _of_part(self, number: int, least: FloatArray) -> FoldsOfPair:
        k, tied = len(least), dict[int, list[int]]()
        low, high, value, near = np.full(k, np.inf), np.zeros(k), np.full(k, np.inf), np.full(k, np.nan)
        places, best = np.full((2, k), -1, dtype=np.int32)
        found = FoldsOfPair(low, high, np.zeros(k, dtype=np.bool_), best, value, near, np.zeros(k), tied)
        for place, tried in enumerate(of.parts[number] for of in self.tried):
            may = tried.value_lower <= least[tried.folds] * (1.0 + TIE_RTOL)
            here, held, upper = tried.folds[may], tried.held_out[may], tried.value_upper[may]
            low[here] = np.minimum(low[here], tried.held_lower[may])
            high[here] = np.maximum(high[here], tried.held_upper[may])
            for fold in here[places[here] >= 0].tolist():
                tied.setdefault(fold, [int(places[fold])]).append(place)
            places[here] = place
            better = upper < value[here]
            value[here[better]], near[here[better]], best[here[better]] = upper[better], held[better], place
        for fold, of in tied.items():
            some = (self.tried[place].parts[number] for place in of)
            held = np.array([tried.held_out[np.searchsorted(tried.folds, fold)] for tried in some])
            found.tie[fold] = np.fmax.reduce(held) - np.fmin.reduce(held)
        np.clip(near, low, np.maximum(high, low), out=near)
        return found


def _of_most_folds(needs: FloatArray) -> float:
    """Return the largest number but for those of a few folds."""
    alone = min(ALONE, len(needs) // 10)
    return float(np.partition(needs, len(needs) - 1 - alone)[len(needs) - 1 - alone])

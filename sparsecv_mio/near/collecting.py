"""Supports of one gamma, met in the order of a tree and handed to whoever wants those with a small value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations, count, islice
from math import comb
from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends.native.listing import PATH_SLICE, Found
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm, normal_form
from sparsecv_mio.formulation.backends.native.supports_below import SupportsBelow
from sparsecv_mio.near.criteria import Branch, Criterion, Part, least_objective
from sparsecv_mio.problem.elimination import Choice, eliminated

MOST_TRIED = 20_000  # supports of all sizes that are all tried where no tree can be trusted
TRIED_AT_ONCE = 256
BUDGET, WORTH, STEP = 20_000, 30, 1_000  # nodes before a branch is split, those a support is worth, those of a step
LEAST_SPLIT = 8  # columns to choose from, up to which no branch is split
ROUNDED = 1e-9  # relative, off the bound of a value


@dataclass(eq=False)
class Open:
    """A branch that is not done, and by size a value that none of its supports not handed over is below."""

    branch: Branch
    bounds: dict[int, float]


class Wanted(Protocol):
    """Who takes supports of some sizes."""

    @property
    def taus(self) -> Sequence[int]:
        """Numbers of columns of the supports that are wanted."""
        ...

    def threshold(self, tau: int) -> float:
        """Value up to which supports of a size are wanted; it may fall."""
        ...

    def take(self, support: IntArray, value: float, error: float) -> None:
        """Take a support whose value is near the threshold or below it; one may come twice.

        Parameters
        ----------
        support : int array
            Ascending.
        value, error : float
            Its value, and a bound on the rounding error of that; inf where it cannot be valued.
        """
        ...


class Collection:
    """All supports at one gamma with a value up to the threshold of their size.

    Parameters
    ----------
    criterion : Criterion
        One that splits is asked for tighter problems of smaller branches, wherever the tree of a branch is long.
    wanted : Wanted
    expired : callable

    Attributes
    ----------
    finished : bool
        Whether all were handed over.
    nodes : int
    """

    def __init__(self, criterion: Criterion, wanted: Wanted, expired: Callable[[], bool]) -> None:
        self.criterion, self.wanted, self.expired = criterion, wanted, expired
        self.finished, self.nodes = False, 0
        self._count = count()
        self._stuck: list[Open] = []  # branches that no tree can be trusted with, too large to be tried
        root = Branch(criterion.problem.forced, np.zeros(0, dtype=np.int64))
        part = criterion.part(root)
        floor = self._value(least_objective(part.problem), part)
        self._now: Open | None = self._opened(root, dict.fromkeys(wanted.taus, floor))
        self._heap: list[tuple[float, int, Open]] = []

    def run(self) -> None:
        """Hand over supports until all are, or the time is over."""
        while self._now is not None and not self.expired():
            if not self._search(self._now):
                return
            self._now = heappop(self._heap)[2] if self._heap else None
        self.finished = self._now is None and not self._stuck

    def unseen(self, tau: int) -> float:
        """No support of a size that was not handed over has a value below this, unless it is above the threshold.

        Parameters
        ----------
        tau : int
        """
        left = [one for _, _, one in self._heap] + self._stuck + ([] if self._now is None else [self._now])
        return min((one.bounds[tau] for one in left if tau in one.bounds), default=np.inf)

    @staticmethod
    def _value(objective: float, part: Part) -> float:
        """Return the value that supports with at least such an objective have at least."""
        return max(objective - part.offset, 0.0) / part.rate * (1.0 - ROUNDED)

    def _opened(self, branch: Branch, bounds: dict[int, float]) -> Open:
        """Return a branch with bounds for the sizes that it has."""
        least, most = len(branch.inside), self.criterion.problem.q - len(branch.outside)
        return Open(branch, {tau: bound for tau, bound in bounds.items() if least <= tau <= most})

    def _search(self, now: Open) -> bool:
        """Work on a branch until it is done or split; False if the time was over before."""
        taus = [tau for tau, bound in now.bounds.items() if bound <= self.wanted.threshold(tau)]
        part = self.criterion.part(now.branch)
        eliminated_part = eliminated(part.problem)
        choice, problem = eliminated_part.choice, eliminated_part.problem
        form = normal_form(problem)
        if not taus:
            return True
        if not form.trusted or len(form.columns) < len(choice.others):
            return self._try_all(now, taus)
        columns = part.columns[choice.others][form.columns]
        source = SupportsBelow(form, self._bars(part, choice, taus, form.m), self.expired)
        budget = BUDGET if self.criterion.splits and form.m > LEAST_SPLIT else None
        valued = 0
        while not source.finished:
            if self.expired() or (budget is not None and source.effort + WORTH * valued >= budget):
                self.nodes += source.nodes
                bounds = source.open_bounds()
                here = {tau: self._value(float(bounds[choice.size(tau)]), part) for tau in taus}
                now.bounds = {tau: max(now.bounds[tau], here[tau]) for tau in taus if here[tau] < np.inf}
                if self.expired():
                    return False
                self._split(now, columns, form)
                return True
            found = source.advance(STEP if budget is not None else PATH_SLICE)
            valued += len(found.masks)
            if len(found.masks):
                self._offer(self._supports(found, columns, now.branch.inside))
                source.lower_bars(self._bars(part, choice, taus, form.m))
        self.nodes += source.nodes
        return True

    def _split(self, now: Open, columns: IntArray, form: NormalForm) -> None:
        """Open the two branches with and without the column that is dearest to drop."""
        V, beta, _ = form.solved()
        column = int(columns[int(np.argmax(beta**2 / np.diag(V)))])
        inside, outside = now.branch
        for branch in (
            Branch(np.sort(np.append(inside, column)), outside), Branch(inside, np.sort(np.append(outside, column)))
        ):  # fmt: skip
            child = self._opened(branch, now.bounds)
            if child.bounds:
                heappush(self._heap, (min(child.bounds.values()), next(self._count), child))

    def _bars(self, part: Part, choice: Choice, taus: Sequence[int], m: int) -> FloatArray:
        bars = np.full(m + 1, -np.inf)
        for tau in taus:
            limit = self.wanted.threshold(tau) * part.rate + part.offset
            bars[choice.size(tau)] = min(limit, 2.0 * part.problem.size)  # no f exceeds that of no column
        return bars

    def _supports(self, found: Found, columns: IntArray, inside: IntArray) -> list[IntArray]:
        """Return what a tree found, as columns of the criterion's problem, ascending."""
        parts = np.split(columns[np.nonzero(found.masks)[1]], np.cumsum(found.sizes)[:-1])
        return [np.sort(np.concatenate((inside, part))) for part in parts] if len(inside) else parts

    def _offer(self, supports: list[IntArray]) -> None:
        limit = max((self.wanted.threshold(tau) for tau in self.wanted.taus), default=np.inf)
        values, errors = self.criterion.values(supports, limit)
        for a in np.flatnonzero(values - errors <= limit).tolist():
            self.wanted.take(supports[a], float(values[a]), float(errors[a]))

    def _try_all(self, now: Open, taus: Sequence[int]) -> bool:
        """Hand over every support of a branch, if they are few; False if the time was over before."""
        inside, outside = now.branch
        others = np.setdiff1d(np.arange(self.criterion.problem.q), np.concatenate((inside, outside)))
        sizes = [tau - len(inside) for tau in taus]
        if comb_sum(len(others), sizes) > MOST_TRIED:
            self._stuck.append(now)
            return True
        every = (np.sort(np.append(inside, some)) for size in sizes for some in combinations(others.tolist(), size))
        while some := [one.astype(np.int64) for one in islice(every, TRIED_AT_ONCE)]:
            if self.expired():
                return False
            self._offer(some)
        return True


def comb_sum(m: int, sizes: Sequence[int]) -> int:
    """Return how many sets of some sizes m things have.

    Examples
    --------
    >>> comb_sum(4, [0, 2])
    7
    """
    return sum(comb(m, size) for size in sizes)

"""Supports of one gamma, met in the order of a tree and handed to whoever wants those with a small value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb
from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends.native.listing import Found
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm, normal_form
from sparsecv_mio.formulation.backends.native.supports_below import SupportsBelow
from sparsecv_mio.near.criteria import Criterion
from sparsecv_mio.problem.elimination import Choice, eliminated

MOST_TRIED = 20_000  # supports of all sizes that are all tried where no tree can be trusted


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
        problem = criterion.tree
        if len(problem.forced):
            part = eliminated(problem)
            self.choice, problem = part.choice, part.problem
        else:
            self.choice = Choice.of(problem.q, problem.forced)
        self.form: NormalForm = normal_form(problem)
        self._few = comb_sum(len(self.choice.others), self.choice.sizes(wanted.taus)) <= MOST_TRIED
        self._open: dict[int, float] = dict.fromkeys(wanted.taus, self._least())

    def _least(self) -> float:
        """Return the f of all columns, which no support is below, rounded down."""
        if not self.form.trusted or not self.form.m:
            return 0.0
        return max((self.form.solved()[2] - self.form.slack) / (1.0 + self.form.keep), 0.0)

    def run(self) -> None:
        """Hand over supports until all are, or the time is over."""
        if not self.form.trusted or len(self.form.columns) < len(self.choice.others):
            self._try_all()
            return
        source = SupportsBelow(self.form, self._bars(), self.expired)
        while not source.finished and not self.expired():
            found = source.advance()
            if len(found.masks):
                self._offer(self._supports(found))
                source.lower_bars(self._bars())
        self.finished, self.nodes = source.finished, source.nodes
        bounds = source.open_bounds()
        self._open = {tau: max(floor, float(bounds[self.choice.size(tau)])) for tau, floor in self._open.items()}

    def unseen(self, tau: int) -> float:
        """No support of a size that was not handed over has a value below this, unless it is above the threshold.

        Parameters
        ----------
        tau : int
        """
        return np.inf if self.finished else self._open[tau] / self.criterion.rate

    def _bars(self) -> FloatArray:
        bars = np.full(self.form.m + 1, -np.inf)
        for tau in self.wanted.taus:
            limit = self.wanted.threshold(tau) * self.criterion.rate
            bars[self.choice.size(tau)] = min(limit, 2.0 * self.criterion.tree.size)  # no f exceeds that of no column
        return bars

    def _supports(self, found: Found) -> list[IntArray]:
        """Return what a tree found as columns, ascending."""
        columns = self.form.columns[np.nonzero(found.masks)[1]]
        parts = np.split(columns, np.cumsum(found.sizes)[:-1])
        return [self.choice.whole(part) for part in parts] if len(self.choice.forced) else parts

    def _offer(self, supports: list[IntArray]) -> None:
        limit = max((self.wanted.threshold(tau) for tau in self.wanted.taus), default=np.inf)
        values, errors = self.criterion.values(supports, limit)
        for a in np.flatnonzero(values - errors <= limit).tolist():
            self.wanted.take(supports[a], float(values[a]), float(errors[a]))

    def _try_all(self) -> None:
        """Hand over every support, if they are few."""
        if not self._few:
            return
        for tau in self.wanted.taus:
            size, others = self.choice.size(tau), len(self.choice.others)
            supports = [self.choice.whole(np.array(some, dtype=np.int64)) for some in combinations(range(others), size)]
            for lo in range(0, len(supports), 256):
                if self.expired():
                    return
                self._offer(supports[lo : lo + 256])
        self.finished = True


def comb_sum(m: int, sizes: Sequence[int]) -> int:
    """Return how many sets of some sizes m things have.

    Examples
    --------
    >>> comb_sum(4, [0, 2])
    7
    """
    return sum(comb(m, size) for size in sizes)

"""The search of one fold: what is known by gamma and size, and how it is improved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.kernels import exchange
from sparsecv_mio.kernels import first_supports as kernel
from sparsecv_mio.problem.problem import FloatArray, SparseProblem

IntArray = NDArray[np.int64]
WORK = 2e7  # multiplications between two looks at the clock
WORST = 1.05  # f of a first replacement, relative to the best, beyond which it is not followed


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """A support of min(tau, q) columns for every gamma and tau of one fold (of fewer, for hundreds of columns).

    Attributes
    ----------
    fold : int
    objective : (G, T) array
        Training objective f of each support, standard units.
    held_out : (G, T) array
        Sum of squares of the held-out rows, standard units.
    columns : (G, T, top) int array
        The supports in ascending order, -1 beyond their size.
    """

    fold: int
    objective: FloatArray
    held_out: FloatArray
    columns: IntArray

    def support(self, g: int, t: int) -> IntArray:
        """Columns (standard, ascending) of gamma `g` and tau `t` of the grid."""
        chosen = self.columns[g, t]
        return chosen[chosen >= 0]


class FoldSearch:
    """Supports of one fold on some of the columns, from the Gram matrix of these.

    Parameters
    ----------
    fold : int
    problem : SparseProblem
        Training rows, any gamma.
    lams : (G,) array
        Halves of the gammas.
    top : int
        Largest size.
    among : (q,) int array, optional
        The columns of the data, ascending, that are those of `problem`; all by default.
    """

    def __init__(
        self, fold: int, problem: SparseProblem, lams: FloatArray, top: int, among: IntArray | None = None
    ) -> None:
        self.fold, self.lams, self.top = fold, lams, top
        self.among = np.arange(problem.q) if among is None else among
        self.Q, self.c, self.yy, self.weight = problem.Q, problem.c, problem.yy, problem.weight
        self.v_mean, self.r_mean = problem.v_mean, problem.r_mean
        self.value = np.full((len(lams), top + 1), np.inf)
        self.value[:, 0] = self.yy
        self.columns = np.full((len(lams), top + 1, top), -1, dtype=np.int64)
        self.tried: set[bytes] = set()
        self.last: FoldPaths | None = None
        self.settled = np.zeros((len(lams), top + 1), dtype=np.bool_)

    @property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, float, FloatArray]:
        """What every kernel takes first."""
        return self.Q, self.weight, self.c, self.yy, self.lams

    def sweep(self, order: Iterable[int], expired: Callable[[], bool]) -> None:
        """Walk over the sizes at every gamma of `order`, each from what the one before found; at least a little."""
        scratch = exchange.new_tableau(len(self.c), self.top)
        visits, phase = np.array(list(order), dtype=np.int64), np.zeros(5, dtype=np.int64)
        while not kernel.sweep(scratch, *self.moments, self.value, self.columns, self.settled, visits, phase, WORK):
            if expired():
                return

    def learn(self, seeds: IntArray, at: IntArray) -> None:
        """Judge supports (m, top) by this fold's objective, each at the gamma `at`, or at all where that is -1."""
        if len(seeds):
            place = np.minimum(np.searchsorted(self.among, seeds), len(self.among) - 1)
            here = np.where(self.among[place] == seeds, place, -1)
            whole = (here >= 0).sum(axis=1) == (seeds >= 0).sum(axis=1)
            kernel.try_supports_at(
                *self.moments, at[whole], here[whole], self.value, self.columns, self.settled
            )

    def take_over(self, other: FoldSearch) -> None:
        """Start from what a search of the same fold on fewer columns found."""
        self.learn(other.found().reshape(-1, self.top), np.repeat(np.arange(len(self.lams)), self.top + 1))
        self.last = other.last

    def known(self, g: int, size: int) -> bool:
        """Whether a support of that size is known."""
        return bool(np.isfinite(self.value[g, size]))

    def found(self) -> IntArray:
        """The best supports known (G, top + 1, top), in columns of the data; -1 beyond their size."""
        return np.where(self.columns < 0, -1, self.among[self.columns])

    def keep_columns_out(self, g: int, expired: Callable[[], bool]) -> None:
        """At one gamma, force each column of each best support out in turn and search on from there.

        A support that was treated so at another gamma is passed over.
        """
        scratch, saved = (exchange.new_tableau(len(self.c), self.top) for _ in range(2))
        penalty = np.minimum(self.lams[g] * self.weight, kernel.LARGEST_PENALTY)
        for size in range(1, min(self.top, len(self.c) - 1) + 1):
            if expired():
                return
            if self._told(g, size) in self.tried:
                continue
            kernel.keep_out(
                scratch, saved, self.Q, penalty, self.c, self.yy,
                self.value[g], self.columns[g], self.settled[g], size, WORST,
            )  # fmt: skip
            self.tried.add(self._told(g, size))

    def _told(self, g: int, size: int) -> bytes:
        """The support of one gamma and size as a word."""
        return np.sort(self.columns[g, size, :size]).tobytes()

    def chosen(self, taus: IntArray) -> IntArray:
        """Supports (G, T, top); where none is known, the largest known below, filled up with other columns."""
        found = np.full((len(self.lams), len(taus), self.top), -1, dtype=np.int64)
        for t, size in enumerate(np.minimum(taus, self.top).tolist()):
            known = size
            found[:, t] = self.columns[:, size]
            for g in np.flatnonzero(~np.isfinite(self.value[:, size])).tolist():
                known = int(np.flatnonzero(np.isfinite(self.value[g, : size + 1]))[-1])
                mine = self.columns[g, known, :known]
                rest = np.setdiff1d(np.arange(min(len(self.c), known + size)), mine)[: size - known]
                found[g, t, :size] = np.concatenate([mine, rest])
        return found

    def paths(self, taus: IntArray, V: FloatArray, r: FloatArray) -> FoldPaths:
        """Refit and score what is known; `V`, `r` are the held-out rows."""
        chosen = self.chosen(taus)
        objective, held_out = np.empty(chosen.shape[:2]), np.empty(chosen.shape[:2])
        kernel.score(*self.moments, chosen, taus, V - self.v_mean, r - self.r_mean, objective, held_out)
        found, last = FoldPaths(self.fold, objective, held_out, self._in_data(chosen)), self.last
        if last is not None:  # the tableau drifts a little where a fit is nearly perfect
            worse = last.objective < objective
            objective[worse], held_out[worse] = last.objective[worse], last.held_out[worse]
            found.columns[worse] = last.columns[worse]
        self.last = found
        return found

    def _in_data(self, columns: IntArray) -> IntArray:
        """Supports in ascending columns of the data, the -1 beyond their size last."""
        far = np.iinfo(np.int64).max
        out = np.sort(np.where(columns < 0, far, self.among[columns]), axis=-1)
        out[out == far] = -1
        return out

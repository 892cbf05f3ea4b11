"""Search for good supports of one fold, by gamma and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels import exchange
from sparsecv_mio.kernels import first_supports as kernel
from sparsecv_mio.problem.elimination import eliminated
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.subproblem.supports import NO_COLUMN, missing_columns

WORK = 2e7  # multiplications after which the time is checked
WORST = 1.05  # f of a first replacement, relative to the best, beyond which it is not followed


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """Best supports found in one fold, for every gamma and tau: of min(tau, q) columns, where q is not too large.

    Attributes
    ----------
    fold : int
    objective : (G, T) array
        Training objective of each support, standard units.
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
        """Return the ascending columns of gamma `g` and tau `t` of the grid."""
        chosen = self.columns[g, t]
        return chosen[chosen >= 0]


def _moments_of(problem: SparseProblem) -> exchange.Moments:
    return exchange.Moments(problem.Q, problem.weight, problem.c, problem.yy)


class FoldSearch:
    """Improves the best supports known of one fold, from the Gram matrix of some of the columns.

    Columns that are forced in are eliminated first, at the middle gamma for all of them: that is near enough to search
    by. What is held is without them; `paths` fits and scores whole supports at their own gamma.

    Parameters
    ----------
    fold : int
    whole : SparseProblem
        Training rows, at any gamma.
    lams : (G,) array
        Halves of the gammas.
    top : int
        Largest size, without columns that are forced in.
    among : (q,) int array, optional
        The columns of the data, ascending, that are those of `whole`; all by default.

    Attributes
    ----------
    part, problem, choice : Eliminated, SparseProblem, Choice
        Without the columns that are forced in, and which these are.
    of_whole, among : int arrays
        The columns of the data that are those of `whole`, and those of `problem`.
    value : (G, top + 1) array
        Least training objective found, by gamma and size; inf where none is known.
    columns : (G, top + 1, top) int array
        Where it was found, in columns of `problem`; -1 beyond the size.
    settled : (G, top + 1) bool array
        Whether exchanges of columns were seen to help no more.
    last : FoldPaths, optional
        What `paths` returned last.
    """

    def __init__(
        self, fold: int, whole: SparseProblem, lams: FloatArray, top: int, among: IntArray | None = None
    ) -> None:
        part = eliminated(replace(whole, lam=float(lams[len(lams) // 2]))) if len(whole.forced) else eliminated(whole)
        problem = part.problem
        self.fold, self.whole, self.problem, self.lams, self.top = fold, whole, problem, lams, top
        self.part, self.choice = part, part.choice
        self.of_whole = np.arange(whole.q) if among is None else among
        self.among = self.of_whole[part.choice.others] if len(whole.forced) else self.of_whole
        self.value = np.full((len(lams), top + 1), np.inf)
        self.value[:, 0] = problem.yy
        self.columns = np.full((len(lams), top + 1, top), NO_COLUMN, dtype=np.int64)
        self.settled = np.zeros((len(lams), top + 1), dtype=np.bool_)
        self.last: FoldPaths | None = None
        self._kept_out: set[bytes] = set()  # supports whose columns were kept out in turn

    @property
    def _moments(self) -> exchange.Moments:
        """Moments and penalty weights as the kernels take them."""
        return _moments_of(self.problem)

    @property
    def _found(self) -> kernel.Found:
        """The best supports known as the kernels take them."""
        return kernel.Found(self.value, self.columns, self.settled)

    def sweep(self, order: Iterable[int], expired: Callable[[], bool]) -> None:
        """Walk up and down the sizes at the gammas of `order`, each from what the one before found.

        Even where the time is over, a first piece of the work is done.
        """
        if not self.problem.q:  # every column is forced in
            return
        scratch = exchange.new_tableau(self.problem.q, self.top)
        visits, phase = np.array(list(order), dtype=np.int64), np.zeros(5, dtype=np.int64)
        while not kernel.sweep(scratch, self._moments, self.lams, self._found, visits, phase, WORK):
            if expired():
                return

    def learn(self, seeds: IntArray, at: IntArray) -> None:
        """Keep those of some supports that are the best of their size by this fold's training objective.

        Parameters
        ----------
        seeds : (m, top) int array
            Columns of the data, -1 beyond the size; supports with a column that is not searched are left out.
        at : (m,) int array
            The gamma at which to judge each of them; -1 for every gamma.
        """
        if len(seeds) and self.problem.q:
            place = np.minimum(np.searchsorted(self.among, seeds), len(self.among) - 1)
            here = np.where(self.among[place] == seeds, place, NO_COLUMN)
            whole = (here >= 0).sum(axis=1) == (seeds >= 0).sum(axis=1)
            kernel.try_supports_at(self._moments, self.lams, at[whole], here[whole], self._found)

    def take_over(self, other: FoldSearch) -> None:
        """Start from what a search of the same fold on fewer columns found."""
        self.learn(other.found().reshape(-1, self.top), np.repeat(np.arange(len(self.lams)), self.top + 1))
        self.last = other.last

    def known(self, g: int, size: int) -> bool:
        """Return whether a support of that size is known."""
        return bool(np.isfinite(self.value[g, size]))

    def found(self) -> IntArray:
        """Return the best supports known (G, top + 1, top), in columns of the data; -1 beyond their size."""
        return np.append(self.among, NO_COLUMN)[self.columns]

    def keep_columns_out(self, g: int, expired: Callable[[], bool]) -> None:
        """At one gamma, force each column of each best support out in turn and search on from there.

        A support that was treated so before, at another gamma, is left out.
        """
        problem = self.problem
        scratch, saved = (exchange.new_tableau(problem.q, self.top) for _ in range(2))
        moments, found = kernel.penalised(self._moments, self.lams[g]), kernel.at_gamma(self._found, g)
        for size in range(1, min(self.top, problem.q - 1) + 1):
            if expired():
                return
            if self._key(g, size) in self._kept_out:
                continue
            kernel.keep_out(scratch, saved, moments, found, size, WORST)
            self._kept_out.add(self._key(g, size))

    def _key(self, g: int, size: int) -> bytes:
        """Key of the support of one gamma and size."""
        return np.sort(self.columns[g, size, :size]).tobytes()

    def supports_for(self, sizes: IntArray) -> IntArray:
        """Return supports (G, T, top); where none is known, the largest known below, filled up with other columns."""
        found = np.full((len(self.lams), len(sizes), self.top), NO_COLUMN, dtype=np.int64)
        for t, size in enumerate(np.minimum(sizes, self.top).tolist()):
            found[:, t] = self.columns[:, size]
            for g in np.flatnonzero(~np.isfinite(self.value[:, size])).tolist():
                known = int(np.flatnonzero(np.isfinite(self.value[g, : size + 1]))[-1])
                mine = self.columns[g, known, :known]
                more = missing_columns(mine, size, np.arange(min(self.problem.q, known + size)))
                found[g, t, :size] = np.concatenate([mine, more])
        return found

    def paths(self, taus: IntArray, V: FloatArray, r: FloatArray) -> FoldPaths:
        """Refit the best supports known, and score them on the rows left out.

        Parameters
        ----------
        taus : (T,) int array
        V, r : (m, q), (m,) arrays
            Rows left out about the training means, in the columns of `whole`.

        Returns
        -------
        FoldPaths
            Nowhere worse, by training objective, than what was returned before.
        """
        chosen = self._with_forced(self.supports_for(self._sizes_of(taus)))
        objective, held_out = np.empty(chosen.shape[:2]), np.empty(chosen.shape[:2])
        kernel.score(_moments_of(self.whole), self.lams, chosen, taus, V, r, objective, held_out)
        found, last = FoldPaths(self.fold, objective, held_out, self._in_data(chosen)), self.last
        if last is not None:  # the tableau drifts a little where a fit is nearly perfect
            worse = last.objective < objective
            objective[worse], held_out[worse] = last.objective[worse], last.held_out[worse]
            found.columns[worse] = last.columns[worse]
        self.last = found
        return found

    def _sizes_of(self, taus: IntArray) -> IntArray:
        """Return the sizes of supports of tau columns without those that are forced in."""
        return np.maximum(taus - len(self.choice.forced), 0)

    def _with_forced(self, chosen: IntArray) -> IntArray:
        """Supports (G, T, top) in the columns of `whole`, those that are forced in first."""
        forced = self.choice.forced
        if not len(forced):
            return chosen
        others = np.append(self.choice.others, NO_COLUMN)[chosen]
        return np.concatenate([np.broadcast_to(forced, (*chosen.shape[:2], len(forced))), others], axis=2)

    def _in_data(self, columns: IntArray) -> IntArray:
        """Supports in ascending columns of the data, the -1 beyond their size last."""
        far = np.iinfo(np.int64).max
        out = np.sort(np.where(columns < 0, far, self.of_whole[columns]), axis=-1)
        out[out == far] = NO_COLUMN
        return out

"""Supports and bounds of every size that the trees of one problem have found so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import comb

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.kernels.every_support import ScannedProblem, new_kept_supports, scan_supports
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.listing import Candidates
from sparsecv_mio.trees.normal_form import NormalForm, normal_form
from sparsecv_mio.trees.subsets import MAX_SCANNED_SUPPORTS, MOST_TRIED, BestSubset
from sparsecv_mio.units import KEEP_RTOL, ROUNDING, TINY

SCAN_ROOM = 8  # supports stored during the scan of all supports, as a multiple of the number kept in the end
SCAN_SLACK = 1e-13  # minimum rounding error of a value, as a share of the size of objectives
SCAN_ROUNDING = 50.0 * ROUNDING  # relative error of a value per unit of the condition number of its support


class SizeResults:
    """Incumbents, bounds and candidates by size, in the columns of the normal form.

    Parameters
    ----------
    problem : SparseProblem
        Problem of one training set without forced columns.
    taus : sequence of int
        Requested numbers of features.
    expired : callable
        Function that returns True when time is over.

    Attributes
    ----------
    sizes : list of int
        Sizes to solve.
    best, support : (m + 1,) array, (m + 1, m) bool array
        Value and columns of the incumbents; inf if there is none.
    lower, enough : (m + 1,) arrays
        Lower bounds, and their targets.
    kept : dict of int to Candidates
        Supports of a closed size that can be optimal.
    done : dict of int to bool
        Closed sizes; True if the candidates are complete.
    branched : set of int
        Sizes whose trees branched.
    """

    def __init__(self, problem: SparseProblem, taus: Sequence[int], expired: Callable[[], bool]) -> None:
        self.problem, self.expired = problem, expired
        self.form: NormalForm = normal_form(problem)
        self.taus = sorted(set(taus))
        m = self.form.m
        self.padding = problem.q - m
        self.sizes = sorted({size for t in self.taus for size in self.needed_sizes(t)})
        self.best = np.full(m + 1, np.inf)
        self.best[0] = self.form.yy
        self.support = np.zeros((m + 1, m), dtype=np.bool_)
        self.lower, self.enough = np.zeros(m + 1), np.full(m + 1, np.inf)
        self.kept: dict[int, Candidates] = {}
        self.done: dict[int, bool] = {}
        self.branched: set[int] = set()

    def offer(self, size: int, value: float, support: BoolArray) -> None:
        """Replace the incumbent of a size if a support is better."""
        if value < self.best[size]:
            self.best[size], self.support[size] = value, support

    def raise_lower(self, size: int, bound: float) -> None:
        """Raise the lower bound of a size, at most to the value of its incumbent."""
        self.lower[size] = max(self.lower[size], min(bound, self.best[size]))

    def needed_sizes(self, tau: int) -> tuple[int, ...]:
        """Return the sizes needed for tau: tau, and tau - 1 if a column constant in training can fill a support."""
        size = min(tau, self.form.m)
        return (size - 1, size) if size > 0 and self.least_size(tau) < size else (size,)

    def least_size(self, tau: int) -> int:
        """Return the minimum number of varying columns in a support of tau columns."""
        return max(min(tau, self.form.m + self.padding) - self.padding, 0)

    def close_all_at_zero(self) -> None:
        """Solve all sizes if the target is constant in training: f and every coefficient are zero for every support."""
        for size in self.sizes:
            mask = np.arange(self.form.m) < size
            self.close(size, [(mask, 0.0)])
            self.best[size], self.support[size] = 0.0, mask

    def make_masks(self, first: Iterable[IntArray]) -> BoolArray:
        """Return supports in columns of the problem as masks, without columns that are constant in training."""
        supports = list(first)
        masks = np.zeros((len(supports), self.form.m), dtype=np.bool_)
        if not supports:
            return masks
        place = np.full(self.form.m + self.padding, -1, dtype=np.int64)  # -1: constant in training
        place[self.form.columns] = np.arange(self.form.m)
        rows = np.repeat(np.arange(len(supports)), [len(support) for support in supports])
        columns = place[np.concatenate(supports).astype(np.int64)]
        masks[rows[columns >= 0], columns[columns >= 0]] = True
        return masks

    def open_sizes(self, sizes: list[int]) -> list[int]:
        """Return the sizes that are not closed and whose lower bound is below its target."""
        return [size for size in sizes if size not in self.done and self.lower[size] < self.enough[size]]

    def cutoff(self, size: int) -> float:
        """Return the cutoff up to which supports of a size are kept."""
        return self.form.raise_cutoff(float(self.best[size]))

    def make_mask(self, columns: IntArray) -> BoolArray:
        """Return columns of the normal form as a mask."""
        mask = np.zeros(self.form.m, dtype=np.bool_)
        mask[columns] = True
        return mask

    def close(self, size: int, candidates: Candidates, complete: bool = True) -> None:
        """Close a size, with its candidates; if these are not complete, try all its supports if they are few.

        Parameters
        ----------
        size : int
            Size to close.
        candidates : list of (mask, float)
            Supports that can be optimal, with their values.
        complete : bool
            True if there are no others.
        """
        if not complete and self.form.is_trusted:
            self.try_all(size, MOST_TRIED)
            return
        self.done[size] = complete and bool(candidates)
        self.kept[size] = candidates
        if candidates:
            low = min(value for _, value in candidates)
            if low <= self.best[size]:
                self.best[size] = low
                self.support[size] = min(candidates, key=lambda item: item[1])[0]

    def try_all(self, size: int, most: int) -> None:
        """Close a size by the values of all its supports if these are few, each with a bound on its rounding.

        Parameters
        ----------
        size : int
            Size to close.
        most : int
            Maximum number of candidates.
        """
        form, m = self.form, self.form.m
        self.done[size] = False
        if size == 0:  # the null model is the only one, and its value needs no computation
            self.lower[0] = max(form.yy - KEEP_RTOL * form.yy - SCAN_SLACK * self.problem.size, 0.0)
            self.close(0, [(np.zeros(m, dtype=np.bool_), form.yy)])
            return
        if comb(m, size) > (most if form.is_trusted else MAX_SCANNED_SUPPORTS):
            return
        M = form.matrix()
        unit = 1.0 / np.sqrt(np.maximum(np.diag(M), TINY))
        scanned = ScannedProblem(
            M * unit[:, None] * unit, form.c * unit, form.yy, self.problem.size, KEEP_RTOL, SCAN_SLACK,
            SCAN_ROUNDING * self.problem.shrinkage,
        )  # fmt: skip
        room = new_kept_supports(size, SCAN_ROOM * most, np.inf)
        for first in range(m - size + 1):
            if not scan_supports(scanned, size, first, room) or self.expired():
                return
        near = np.flatnonzero(room.lower[: int(room.filled[0])] <= room.level[0])
        masks = np.zeros((len(near), m), dtype=np.bool_)
        np.put_along_axis(masks, room.supports[near], True, axis=1)
        later = np.flatnonzero(form.copy_prev >= 0)
        is_first = ~np.any(masks[:, later] & ~masks[:, form.copy_prev[later]], axis=1)
        if np.count_nonzero(is_first) <= most:
            self.lower[size] = max(float(room.lower[near].min()), 0.0)
            self.close(size, [(masks[r], float(room.values[near[r]])) for r in np.flatnonzero(is_first)])

    def cell(self, tau: int) -> BestSubset:
        """Return the best support of tau features and its bounds."""
        form = self.form
        size = min(tau, form.m)
        upper = float(self.best[size])
        candidates, complete, _ = self.candidates(tau)
        if form.is_trusted:
            margin = self.margin(size)
            lower = max((upper if complete else float(self.lower[size])) - margin, 0.0)
        else:  # no bound, or the bound of the scan of all supports, which includes rounding
            lower = float(self.lower[size]) if complete and size == tau else 0.0
            margin = upper - lower if lower > 0.0 else np.inf
        return BestSubset(
            tau=tau,
            support=form.columns[self.support[size]],
            lower=lower,
            upper=upper,
            candidates=tuple(form.columns[mask] for mask, _ in candidates),
            values=tuple(value for _, value in candidates),
            margin=margin,
            complete=complete,
            branched=size in self.branched,
        )

    def margin(self, size: int) -> float:
        """Return the margin of a size, within which supports are kept and by which its lower bound is lowered."""
        form = self.form
        return float(self.best[size]) * form.keep + form.slack if form.is_trusted else np.inf

    def candidates(self, tau: int) -> tuple[Candidates, bool, int | None]:
        """Return the supports of tau columns that can be optimal, whether they are complete, and a size still to solve.

        Columns that are constant in training pad smaller supports to tau columns; supports are listed without the
        padding.
        """
        size = min(tau, self.form.m)
        bar = float(self.best[size]) + self.margin(size)
        supports, complete = list(self.kept.get(size, [])), self.done.get(size, False)
        if not complete or not self.form.yy > 0.0:
            return supports, complete, None
        for smaller in range(size - 1, self.least_size(tau) - 1, -1):
            if not self.done.get(smaller, False):
                sure = self.lower[smaller] > bar
                return supports, bool(sure), None if sure else smaller
            near = [item for item in self.kept[smaller] if item[1] <= bar]
            if not near:
                break
            supports += near
        return supports, True, None

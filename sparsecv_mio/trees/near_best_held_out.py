"""Bounds on held-out losses of all folds, from a list of near-optimal supports of the full data.

A tree of the full data lists every support S of a size with an objective F_S of at most T. Let N be the held-out rows
of a fold and F_S^(-N) the objective of S on the other rows. Let u_N be the objective of one known support on the other
rows; it need not be the best support. Let S now be the best support on the other rows, and h_N the held-out loss of S.
If S is not listed,

    T < F_S <= F_S^(-N) + h_N <= u_N + h_N.

Therefore h_N is at least `T - u_N`, or S is listed. A Newton step from the full-data fit of a listed support gives an
interval for its held-out loss (`trees/glm_left_out`). Let d be the difference between two losses on N: the loss of the
fit without N, minus the loss of the full-data fit. The lower bound `T - u_N` reaches h_N as soon as T exceeds the
minimum of F by about d / 2, so short lists are sufficient.

For an upper bound on h_N, choose a number `level`. Let `loss_of_all` be an upper bound on the loss of the rows N at all
points with F of at most `level`. Let `loss_of_fits` be an upper bound on the loss of the rows N at all fits of the
given size with F of at most `level`. Consider a fit whose objective on the other rows is u_N. Suppose that F is below
`level` at this fit, and that `u_N + loss_of_all` is below `level`. Then F is below `level` at the optimum of the fold.
Otherwise F would be equal to `level` at some point of the segment from this fit to the optimum. The objective without N
is convex, so it is at most u_N at this point. The loss is at most `loss_of_all`, so F is below `level`, a
contradiction. Therefore h_N is at most `loss_of_fits`, or the optimum is listed. If `loss_of_fits <= T - u_N`, the
optimum is listed in any case, and the fold is solved (docs/theory/glm.md, section 9).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.trees.glm_left_out import LeftOut, SupportLeftOut
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.trees.subsets import MOST_REFITTED, BestSubset, HeldOutFolds
from sparsecv_mio.units import MARGINS_OFF, OUTWARD, TIE_RTOL, WORST_ROUNDING

MAX_OUTLYING_FOLDS = 8  # number of folds with the largest losses for which a list is not lengthened
MAX_NEWTON_WORK = 1 << 34  # values that the steps in the folds of one support may read: about ten seconds of work


@dataclass(frozen=True, eq=False)
class FitsInFolds:
    """Fits of a support in F folds: bounds on training objectives and on held-out losses, and estimated losses."""

    objective_lower: FloatArray
    objective_upper: FloatArray
    held_out_lower: FloatArray
    held_out_upper: FloatArray
    held_out: FloatArray
    folds: IntArray


class TriedSupport(NamedTuple):
    """A support and its fits in the folds where it may be optimal, in groups of folds that are handled together."""

    support: IntArray
    parts: list[FitsInFolds]


class _NearBestList:
    """A list of supports up to a level, which falls if there are more than `MOST_REFITTED`."""

    def __init__(self, level: float) -> None:
        self.level, self.objectives = level, dict[tuple[int, ...], float]()
        self._lock = threading.Lock()

    def take(self, support: IntArray, lower: float, upper: float) -> None:
        """Add a support with bounds on its objective."""
        with self._lock:
            if lower <= self.level:
                self.objectives[tuple(support.tolist())] = lower
            if len(self.objectives) > MOST_REFITTED:
                self.level = sorted(self.objectives.values())[MOST_REFITTED // 2]
                self.objectives = {key: low for key, low in self.objectives.items() if low <= self.level}


class NearBestHeldOut:
    """Bounds on the held-out losses of all folds at one size, from near-optimal supports of the full data.

    Parameters
    ----------
    subsets : GlmSubsets
        Best-subset problem of the full data, at one gamma.
    left_out : LeftOut
        Rows of the folds, with the fits of `subsets`.
    size : int
        Number of columns of a support.
    supports : sequence of int arrays
        Supports of the size to try first, beginning with that of the full data.
    slip : float
        Bound on the rounding of sums of losses over a fold and its training rows.
    is_expired : callable
        Function that returns True to end all work with the present bounds.
    """

    def __init__(
        self, subsets: GlmSubsets, left_out: LeftOut, size: int, supports: Sequence[IntArray], slip: float,
        is_expired: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.subsets, self.left_out, self.size, self.slip = subsets, left_out, size, slip
        self.is_expired = is_expired
        self.objective_upper = np.full(left_out.k, np.inf)
        self.tried: list[TriedSupport] = []
        self.unlisted_objective, self.n_nodes = 0.0, 0
        self.best: BestSubset | None = None  # of the full data, by the tree of the list
        self._is_exact = False
        self.add(supports)

    @property
    def supports(self) -> tuple[IntArray, ...]:
        """Tried supports."""
        return tuple(tried.support for tried in self.tried)

    def add(self, supports: Sequence[IntArray]) -> None:
        """Try supports that were not tried yet, with every fold held out."""
        done = {tuple(support.tolist()) for support in self.supports}
        distinct = dict.fromkeys(tuple(sorted(support.tolist())) for support in supports)
        new = [support for support in distinct if support not in done]
        if not new:
            return
        fits = self.subsets.fits
        masks = fits.masks(new)
        fitted = fits.refit(masks, is_expired=self.is_expired)
        for mask, point in zip(masks, fitted.points, strict=True):
            if self.is_expired() and self.tried:
                break
            parts = [
                self._fit_part(block, self.objective_upper[at])
                for at, block in self.left_out.evaluate_in_parts(mask, point)
            ]
            self.tried.append(TriedSupport(np.flatnonzero(mask).astype(np.int64), parts))

    def _fit_part(self, part: SupportLeftOut, objective_upper: FloatArray) -> FitsInFolds:
        """Return fits of a support in folds where it may be optimal; lower their `objective_upper` (k,) in place."""
        unknown = np.flatnonzero(~(part.values[:, 1] < np.inf))
        part.settle(self._affordable_folds(part, unknown), MARGINS_OFF, self.is_expired)
        np.minimum(objective_upper, part.values[:, 1], out=objective_upper)
        may = np.flatnonzero(part.values[:, 0] <= objective_upper * (1.0 + TIE_RTOL))
        if self._is_exact:
            fine = MARGINS_OFF * part.fine
            wide = part.refine_folds(may[part.values[may, 2] > fine], WORST_ROUNDING / 4.0)
            part.settle(self._affordable_folds(part, wide), fine, self.is_expired)
            np.minimum(objective_upper, part.values[:, 1], out=objective_upper)
            may = may[part.values[may, 0] <= objective_upper[may] * (1.0 + TIE_RTOL)]
        low, high, near = (losses[may] for losses in part.held_out())
        return FitsInFolds(part.values[may, 0], part.values[may, 1], low, high, near, may.astype(np.int32))

    def _affordable_folds(self, part: SupportLeftOut, folds: IntArray) -> IntArray:
        """Return the folds with the widest intervals, as many as the work limit allows."""
        n_folds = MAX_NEWTON_WORK * part.folds.k // (part.size * 4 * self.left_out.k)
        return folds[np.argsort(-part.values[folds, 2], kind="stable")][:n_folds]

    def compute_exactly(self) -> None:
        """Narrow the held-out losses of present and later supports as far as the work limit allows."""
        self._is_exact, before, self.tried = True, self.supports, []
        self.add(before)

    # -- lists --------------------------------------------------------------------------------------------------------

    def cutoff_to_raise(self, target: float) -> float:
        """Return a T at which the lower bounds of all folds sum to a target; if there is none, the largest useful T."""
        held_out, upper = self._bounds_if_complete("lower"), self.objective_upper
        largest = _all_but_outlying(upper + held_out + self.slip)

        def is_target_reached(T: float) -> bool:
            return float(np.minimum(held_out, np.maximum(T - upper - self.slip, 0.0)).sum()) >= target

        low, high = float(upper.min()), largest
        if not (np.isfinite(largest) and is_target_reached(largest)):
            return largest
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if is_target_reached(middle) else (middle, high)
        return high

    def unknown_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the trivial (K,) bounds 0 and inf on held-out losses."""
        return np.zeros(self.left_out.k), np.full(self.left_out.k, np.inf)

    def bound_all_fits(self, full_upper: float) -> tuple[FloatArray, FloatArray]:
        """Return (K,) bounds on the held-out losses of all fits of the size, whatever their support.

        Parameters
        ----------
        full_upper : float
            Upper bound on the smallest objective of the full data.
        """
        held_out = self._bounds_if_complete("upper")
        level = max(_all_but_outlying(self.objective_upper + held_out), full_upper)
        least, most = self.unknown_bounds()
        for _ in range(2):
            if self.is_expired() or not np.isfinite(level):
                break
            losses, need = (
                self.subsets.bound_training_losses(self.size, level, self.is_expired),
                np.empty(len(held_out)),
            )
            for at, block in self.left_out.parts():
                need[at] = (
                    block.sum_held_out_rows(losses.anywhere) * (1.0 + OUTWARD) + self.objective_upper[at] + self.slip
                )
                inside = (need[at] < level) & (self.objective_upper[at] + held_out[at] < level)
                low, high = (
                    block.sum_held_out_rows(losses.least) * (1.0 - OUTWARD),
                    block.sum_held_out_rows(losses.most) * (1.0 + OUTWARD),
                )
                np.maximum(least[at], low, out=least[at], where=inside)
                np.minimum(most[at], high, out=most[at], where=inside)
            level = full_upper + 1.5 * (max(_all_but_outlying(need), level) - full_upper)
            del losses, need  # their lengths are the numbers of rows and folds, which may be large
        return least, most

    def tighten_unlisted_folds(
        self, least: FloatArray, most: FloatArray, enclose_fold: Callable[[int, float], tuple[float, float]]
    ) -> None:
        """Narrow the bounds of `bound_all_fits`, in place, in the folds that the list does not solve.

        Parameters
        ----------
        least, most : (K,) arrays
            Bounds on the held-out losses.
        enclose_fold : callable
            Function of the index and the objective of a fold that returns bounds on its held-out loss from its own
            rows.
        """
        for fold in np.flatnonzero(~(self._unlisted_loss() >= most) & np.isfinite(self.objective_upper)).tolist():
            if self.is_expired():
                break
            low, high = enclose_fold(fold, float(self.objective_upper[fold]))
            least[fold], most[fold] = max(least[fold], low), min(most[fold], high)

    def _unlisted_loss(self, at: slice = slice(None)) -> FloatArray:
        """Return lower bounds on the held-out loss of a support that is not listed, in some folds."""
        upper = self.objective_upper[at]  # inf if nothing is known; there may be no other support
        above = np.maximum(self.unlisted_objective - np.where(upper < np.inf, upper, 0.0) - self.slip, 0.0)
        return np.where(upper < np.inf, above, 0.0)

    def cutoff_to_solve(self, most: FloatArray) -> float:
        """Return a T that solves most folds, given the (K,) upper bounds of `bound_all_fits`."""
        held_out = np.where(np.isfinite(most), most, self._bounds_if_complete("lower"))
        return _all_but_outlying(self.objective_upper + held_out + self.slip)

    def list_supports(self, cutoff: float, node_limit: int, n_threads: int) -> bool:
        """List the supports of the full data up to a cutoff and try them; return True if the list is complete.

        Parameters
        ----------
        cutoff : float
            Maximum objective of a listed support.
        node_limit, n_threads : int
            Maximum number of nodes of the tree, and number of nodes processed at the same time.
        """
        near_best = _NearBestList(cutoff)
        tree = self.subsets.listing(self.size, near_best, self.is_expired)
        self.best = tree.solve(self.size, node_limit, np.inf, n_threads)
        self.n_nodes = tree.nodes
        self.add([np.array(support, dtype=np.int64) for support in near_best.objectives])
        if set(near_best.objectives) <= {tuple(support.tolist()) for support in self.supports}:  # else time was over
            self.unlisted_objective = min(tree.unseen, near_best.level)
        return bool(tree.unseen >= near_best.level)

    def bound_folds(self, least: FloatArray, most: FloatArray) -> HeldOutFolds:
        """Return the bounds and best supports of all folds.

        Parameters
        ----------
        least, most : (K,) arrays
            Bounds of `bound_all_fits`.
        """
        folds = self._merge_parts()
        unlisted = self._unlisted_loss()
        folds.is_listed = (unlisted >= most) & (folds.best >= 0)
        lower = np.minimum(folds.lower, np.maximum(unlisted, least))
        np.copyto(folds.lower, lower, where=~folds.is_listed)
        np.copyto(folds.upper, np.maximum(folds.upper, most), where=~folds.is_listed)
        np.minimum(folds.lower, folds.upper, out=folds.lower)
        return folds

    def _bounds_if_complete(self, bound: str) -> FloatArray:
        """Return (K,) `lower` or `upper` bounds, assuming that all supports that may be optimal were tried."""
        return np.concatenate([getattr(folds, bound) for _, folds in self._bound_in_parts()])

    def _merge_parts(self) -> HeldOutFolds:
        """Return the results of all groups of folds as one."""
        names = ("lower", "upper", "is_listed", "best", "objective", "held_out", "tie")
        parts = list(self._bound_in_parts())
        joined = {name: np.concatenate([getattr(folds, name) for _, folds in parts]) for name in names}
        tied = {at.start + fold: places for at, folds in parts for fold, places in folds.tied.items()}
        return HeldOutFolds(**joined, tied=tied)

    def _bound_in_parts(self) -> Iterator[tuple[slice, HeldOutFolds]]:
        """Yield groups of folds with their results, assuming that every support that may be optimal was tried."""
        for number, (at, _) in enumerate(self.left_out.parts()):
            yield at, self._bound_part(number, self.objective_upper[at])

    def _bound_part(self, number: int, objective_upper: FloatArray) -> HeldOutFolds:
        k, tied = len(objective_upper), dict[int, list[int]]()
        low, high, value, near = np.full(k, np.inf), np.zeros(k), np.full(k, np.inf), np.full(k, np.nan)
        places, best = np.full((2, k), -1, dtype=np.int32)
        folds = HeldOutFolds(low, high, np.zeros(k, dtype=np.bool_), best, value, near, np.zeros(k), tied)
        for place, fits in enumerate(tried.parts[number] for tried in self.tried):
            may = fits.objective_lower <= objective_upper[fits.folds] * (1.0 + TIE_RTOL)
            here, held_out, upper = fits.folds[may], fits.held_out[may], fits.objective_upper[may]
            low[here] = np.minimum(low[here], fits.held_out_lower[may])
            high[here] = np.maximum(high[here], fits.held_out_upper[may])
            for fold in here[places[here] >= 0].tolist():
                tied.setdefault(fold, [int(places[fold])]).append(place)
            places[here] = place
            better = upper < value[here]
            value[here[better]], near[here[better]], best[here[better]] = upper[better], held_out[better], place
        for fold, tied_places in tied.items():
            tied_fits = (self.tried[place].parts[number] for place in tied_places)
            losses = np.array([fits.held_out[np.searchsorted(fits.folds, fold)] for fits in tied_fits])
            folds.tie[fold] = np.fmax.reduce(losses) - np.fmin.reduce(losses)
        np.clip(near, low, np.maximum(high, low), out=near)
        return folds


def _all_but_outlying(needs: FloatArray) -> float:
    """Return the largest number except those of a few folds."""
    n_outlying = min(MAX_OUTLYING_FOLDS, len(needs) // 10)
    return float(np.partition(needs, len(needs) - 1 - n_outlying)[len(needs) - 1 - n_outlying])

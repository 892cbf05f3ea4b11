"""Certified bounds on the subproblems of a fold from the result of a branch-and-bound tree, for every loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.search.problems.protocol import Fits, FoldProblem, IsExpired
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.trees.subsets import BestSubset
from sparsecv_mio.units import TIE_RTOL


def bound_subproblems(
    problem: FoldProblem, gamma: int, taus: tuple[int, ...], fold: int, subsets: Sequence[BestSubset],
    is_finished: bool, is_expired: IsExpired,
) -> SubproblemBounds:  # fmt: skip
    """Return the bounds on one fold that follow from the outcomes of trees of some sizes.

    If a tree has listed every support that can be optimal, all of them are fitted. Supports are optimal if their
    training objective is the smallest, or tied with it within rounding; their held-out losses span the interval. The
    subproblem stays open if the fits disagree with the values that the tree pruned by, or if a held-out loss is not
    accurate. If only an incumbent is known, the held-out loss is enclosed by bounds for every fit with at most the
    incumbent's objective.

    Parameters
    ----------
    problem : FoldProblem
        Problem of a fold.
    gamma, fold : int
        Indices of gamma and fold.
    taus : tuple of int
        Indices of the sizes.
    subsets : sequence of BestSubset
        Outcomes, by size.
    is_finished : bool
        True if further nodes cannot improve the outcomes.
    is_expired : callable
        Function that returns True once the search has to end.
    """
    subsets, change = problem.include_columns_at_zero(subsets)
    listed = [subset.candidates if subset.complete else (subset.support,) for subset in subsets]
    supports = [support for some in listed for support in some]
    counts = np.array([len(some) for some in listed])
    first, is_complete = np.cumsum(counts) - counts, np.array([subset.complete for subset in subsets])
    fits = problem.fit(supports) if is_complete.any() else problem.score(supports)
    fits = fits if change is None else fits.widen(change)
    least_upper = np.minimum.reduceat(fits.objective_upper, first) * (1.0 + TIE_RTOL)
    is_tied = fits.objective_lower <= np.repeat(least_upper, counts)
    agrees = is_complete & np.logical_and.reduceat(_agree_with_trees(problem, fits, subsets, listed), first)
    is_accurate = np.logical_and.reduceat(fits.is_accurate | ~is_tied, first)

    supports = list(fits.supports)
    bounds = SubproblemBounds.unknown(gamma, taus, slice(fold, fold + 1), 1, supports)
    best = first.copy()
    for i in np.flatnonzero(counts > 1).tolist():
        tied = first[i] + np.flatnonzero(is_tied[first[i] : first[i] + counts[i]])
        by_support = {tuple(np.sort(supports[place]).tolist()): place for place in tied[::-1].tolist()}
        best[i], places = by_support[min(by_support)], np.sort(list(by_support.values()))
        if len(places) > 1 and agrees[i] and is_accurate[i]:
            bounds.tied[i, 0] = places.tolist()
    bounds.best[:, 0], bounds.held_out[:, 0], bounds.objective[:, 0] = best, fits.held_out[best], fits.objective[best]
    bounds.objective_upper[:, 0] = np.where(np.isfinite(least_upper), least_upper, np.inf)
    bounds.objective_lower[:, 0] = [subset.lower for subset in subsets]
    bounds.is_branched[:, 0] = [subset.branched for subset in subsets]
    bounds.is_solved[:, 0] = agrees & is_accurate
    bounds.is_final[:, 0] = agrees | is_finished

    def reduce_ties(values: np.ndarray, none: float, choose: np.ufunc) -> np.ndarray:
        return np.where(agrees, choose.reduceat(np.where(is_tied, values, none), first), bounds.lower[:, 0])

    bounds.lower[:, 0] = np.maximum(reduce_ties(fits.held_out_lower, np.inf, np.minimum), 0.0)
    bounds.upper[:, 0] = np.where(agrees, reduce_ties(fits.held_out_upper, -np.inf, np.maximum), np.inf)
    if bounds.tied:
        width = reduce_ties(fits.held_out, -np.inf, np.maximum) - reduce_ties(fits.held_out, np.inf, np.minimum)
        bounds.tie[:, 0] = np.where(bounds.is_solved[:, 0], width, 0.0)
    _enclose_open(problem, bounds, subsets, ~agrees, is_expired)
    return bounds


def show_fits(gamma: int, taus: tuple[int, ...], folds: slice | IntArray, fits: Fits) -> SubproblemBounds:
    """Return fits of one support for each size in one fold, or for each fold at one size, without any other bounds.

    Parameters
    ----------
    gamma : int
        Index of the gamma.
    taus : tuple of int
        Indices of the sizes.
    folds : slice or int array
        Fold, or folds.
    fits : Fits
        Fits of the supports, by size or by fold.
    """
    shape = len(taus), folds.stop - folds.start if isinstance(folds, slice) else len(folds)
    shown = "best", "held_out", "objective", "objective_upper"
    bounds = SubproblemBounds.unknown(gamma, taus, folds, shape[1], fits.supports, shown)
    upper = fits.objective_upper * (1.0 + TIE_RTOL)
    values = np.arange(len(upper)), fits.held_out, fits.objective, np.where(np.isfinite(upper), upper, np.inf)
    for name, value in zip(shown, values, strict=True):
        getattr(bounds, name)[...] = value.reshape(shape)
    return bounds


def _agree_with_trees(
    problem: FoldProblem, fits: Fits, subsets: Sequence[BestSubset], listed: Sequence[Sequence[IntArray]]
) -> BoolArray:
    """Return True where the fits of listed supports agree with the values of their trees, within the trees' margins."""
    values = [
        subset.values if subset.complete and len(subset.values) == len(some) else [np.nan] * len(some)
        for subset, some in zip(subsets, listed, strict=True)
    ]
    half = np.repeat([0.5 * subset.margin for subset in subsets], [len(some) for some in listed])
    flat = np.concatenate([np.asarray(some, dtype=float) for some in values])
    with np.errstate(invalid="ignore"):
        off = fits.objective_lower - flat > half
        if not problem.values_are_upper_bounds:
            off |= flat - fits.objective_upper > half
    return np.isfinite(fits.objective_upper) & ~(off & np.isfinite(flat))


def _enclose_open(
    problem: FoldProblem,
    bounds: SubproblemBounds,
    subsets: Sequence[BestSubset],
    is_open: BoolArray,
    is_expired: IsExpired,
) -> None:
    """Enclose the held-out losses of the sizes for which only an incumbent is known."""
    places = np.flatnonzero(is_open)
    if not len(places):
        return
    supports = [bounds.supports[int(at)] for at in bounds.best[places, 0]]
    sizes = [subsets[i].tau for i in places.tolist()]
    ends = problem.enclose(sizes, bounds.objective_upper[places, 0], supports, is_expired)
    bounds.lower[places, 0], bounds.upper[places, 0] = ends.lower, ends.upper
    bounds.objective_lower[places, 0] = np.maximum(bounds.objective_lower[places, 0], ends.objective_lower)

"""Problems with bounds on coefficients, solved by the trees for models without bounds as far as these suffice.

The minimum without bounds is at most the minimum within bounds, so every lower bound on objectives, and on objectives
with weighted held-out rows, remains valid. Bounds on held-out losses hold for every model with an objective at most
that of a known support, which is fitted within the bounds here. A list of all supports near the optimum without bounds
solves a size if it contains a support whose fit within the bounds is as good as the list is long; otherwise a
restricted tree follows. Closed forms of fits without some rows ignore the bounds and are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.near_ties import MioSettings
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.search.problems.protocol import Capability, IsExpired, SupportsFound
from sparsecv_mio.search.problems.size_by_size import RestrictedProblem, check_side_constraints
from sparsecv_mio.search.problems.squared import SquaredProblem, SquaredProblems
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets
from sparsecv_mio.units import MOMENTS_RTOL, TIE_RTOL

UNUSED = Capability.LEFT_OUT_FITS | Capability.FOLD_RELAXATIONS  # they fit supports without the bounds


@dataclass(frozen=True, eq=False)
class BoundedProblem(RestrictedProblem):
    """A fold or the full data whose models have bounds on coefficients, and no other restriction beyond forcing."""

    @property
    def capabilities(self) -> Capability:
        """Capabilities of the squared-error problem except those that fit supports without the bounds."""
        return SquaredProblem.capabilities.__get__(self) & ~UNUSED

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[IntArray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        """Solve all sizes without the bounds, and grow restricted trees of the sizes that this leaves open."""
        free = SquaredProblem.solve(self, sizes, warm_starts, node_limit, is_expired, cutoffs, n_threads, exchanges)
        found = {size: self._fit_candidates(free.by_size[size]) for size in sizes}
        aims = cutoffs or {}
        waiting = [size for size in sizes if not found[size].complete and free.by_size[size].complete
                   and free.by_size[size].lower < aims.get(size, np.inf)]  # fmt: skip
        if not waiting or not node_limit:
            return BestSubsets(found, free.nodes, all(subset.complete for subset in found.values()))
        nodes, finished, last = free.nodes, free.finished, list[IntArray]()
        for size in waiting:
            grown = self._grow_trees([size], [found[size].support, *last], node_limit, is_expired)
            subset, last = grown.by_size[size], [grown.by_size[size].support]
            found[size] = subset if subset.complete else replace(subset, lower=max(subset.lower, found[size].lower))
            nodes, finished = nodes + grown.nodes, finished and grown.finished
        return BestSubsets(found, nodes, finished, free.reused)

    def _fit_candidates(self, free: BestSubset) -> BestSubset:
        """Return the subset within the bounds that follows from the supports of a tree without bounds."""
        supports = free.candidates if free.complete else (free.support,)
        values, errors = self.fit_objectives(supports)
        best = int(np.argmin(values + errors))
        upper = float(values[best] + errors[best])
        limit, copies = free.upper + 0.5 * free.margin, self.problem.copies
        is_tied = free.complete and upper * (1.0 + TIE_RTOL) <= limit
        if copies is not None and np.any(copies >= 0):  # a list contains one duplicate, and another may have no bounds
            is_tied &= bool(np.all(values - errors <= limit))
        if not is_tied:
            return BestSubset.from_bounds(free.tau, supports[best], upper, free.lower)
        listed = np.where(np.abs(values - free.values) <= 0.5 * free.margin, free.values, np.nan) if free.values else ()
        return replace(free, support=supports[best], values=tuple(listed))

    def fit_objectives(self, supports: Sequence[IntArray]) -> tuple[FloatArray, FloatArray]:
        """Return the objectives of supports within the bounds, and bounds on their rounding errors."""
        data, folds = self.store.context.data, self.store.context.folds
        made = fit_from_moments(self.problem, supports, data.coefficient_bounds)
        rows = slice(0, data.n) if self.fold == ALL_ROWS else folds.train_rows(self.fold)
        for i in np.flatnonzero(~(made.value_error <= MOMENTS_RTOL * made.value)).tolist():
            fit = refit_squares(data, rows, supports[i], 2.0 * self.problem.lam)
            made.value[i], made.value_error[i] = fit.objective, fit.objective_error
        return made.value, made.value_error


def make_bounded_problems(context: Context, full_data: BestOnAllRows) -> SquaredProblems:
    """Return the problems of a question with bounds on coefficients.

    Parameters
    ----------
    context : Context
        Data, grid, folds and request of the search.
    full_data : BestOnAllRows
        Moments of the full data.
    """
    make = partial(BoundedProblem, constraints=check_side_constraints(context, MioSettings()))
    engine = "trees over the sizes of a gamma, and restricted trees"
    return SquaredProblems(context, full_data, make, "rounds within bounds", engine, _fit_supports_within)


def _fit_supports_within(problems: SquaredProblems, found: SupportsFound, gammas: Sequence[int]) -> SupportsFound:
    """Return supports with their objectives and held-out losses within the bounds."""
    objective, upper, held_out = np.array([found.objective, found.objective_upper, found.held_out])
    is_known = np.isfinite(upper)
    for i, (g, supports) in enumerate(zip(gammas, found.supports, strict=True)):
        problem = problems.full(g) if found.fold == ALL_ROWS else problems.fold(found.fold, g)
        assert isinstance(problem, BoundedProblem)
        if found.fold == ALL_ROWS:
            objective[i], errors = problem.fit_objectives(supports)
            upper[i] = (objective[i] + errors) * (1.0 + TIE_RTOL)
        else:
            fits = problem.fit(supports)
            objective[i], held_out[i] = fits.objective, fits.held_out
            upper[i] = fits.objective_upper * (1.0 + TIE_RTOL)
    return replace(found, objective=objective, objective_upper=np.where(is_known, upper, np.inf), held_out=held_out)

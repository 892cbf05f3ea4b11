"""Best subsets of Cox regression on one training set: fits, certified bounds, and held-out partial likelihoods.

The outer tree, and the treatment of factors, duplicate columns and ties, are shared by all smooth losses
(`trees/glm_tree`, `trees/glm_terms`, `trees/glm_subsets`). A node of the outer tree is closed by quadratic lower bounds
on its objective (`trees/cox_fits`). The trees for squared-error loss list all supports at which a quadratic is at most
the cutoff, and the listed supports are fitted. If the list is too long, the node branches on one column; the quadratics
of its children are closer to the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.kernels import cox_newton
from sparsecv_mio.kernels.glm_newton import Columns
from sparsecv_mio.problem.cox import risk_sets_of
from sparsecv_mio.problem.glm import Ellipsoid, Minorant
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns
from sparsecv_mio.problem.risk_sets import RiskSets
from sparsecv_mio.trees.cox_fits import CoxColumns, CoxFits, cox_minorant, make_quadratic, mixed_points
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.glm_subsets import GlmSubsets, SubsetFits, multicolumn_terms, sparse_ellipsoid
from sparsecv_mio.trees.glm_terms import Terms, TermSearch
from sparsecv_mio.trees.glm_tree import FittedSupport, GlmNode, Listing, Quadratic, SizeSearch
from sparsecv_mio.trees.listing import list_supports_by_size
from sparsecv_mio.trees.normal_form import normal_form
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import GAMMA_RANGE, TIE_RTOL

MOST_LISTED, LISTED_NODES = 3_000, 30_000  # supports of a list, and nodes of its tree; beyond these, a node branches
SHORT_LIST, SHORT_LIST_NODES = 16, 500  # the same for a list that is tried before further quadratics
MAX_LEVEL_SET_COLUMNS = 36  # columns up to which all quadratics of a node are below F on its level set, by timings
LISTED_GAP_SHARE = 0.7  # after a list failed, lists are tried below this share of its distance from bound to level
FITTED_AT_ONCE = 64  # supports of a node that are all fitted without a bound


class CoxSizeSearch(SizeSearch):
    """The outer tree of one size."""

    _listed_gap = np.inf  # distance from the bound of a node to the level, from which on no list is tried

    def _make_quadratic(self, best: FittedSupport) -> Quadratic:
        """Return columns, and the moments of Newton's quadratic about a fit, by which exchanges are chosen."""
        return make_quadratic(self.fits, best)

    def _leapt(self, bound: float, node: GlmNode, columns: IntArray) -> list[tuple[float, GlmNode]]:
        """Close a node by quadratics, fits of a list of supports, or return two children."""
        fits, inside = self.fits, np.array(sorted(node.inside), dtype=np.int64)
        most = min(self.size, len(columns))
        room = np.sort(fits.copies[columns])[::-1].cumsum()  # copies can fill a support up to the size
        least = max(int(np.searchsorted(room, self.size)) + 1, len(inside)) if fits.has_copies else most
        if least == most and comb(len(columns) - len(inside), most - len(inside)) <= FITTED_AT_ONCE:
            return self._close_node(bound, node, _all_masks(fits, inside, columns, most), np.inf)
        level = self.level
        point, below = fits.fit_of_all(fits.mask(_with_copies(fits, columns)), node.point, self.is_expired)
        if below > level:
            return self._close(max(bound, below))
        bound = max(bound, below)
        best: tuple[float, _NodeQuadratic, IntArray] | None = None
        for lower, quadratic, support in self._quadratics(columns, inside, most, point):
            if lower > self.level:
                return self._close(max(bound, self.level))
            if self.work > 1:  # a short list takes less time than further quadratics
                masks = quadratic.list_supports(
                    range(least, most + 1), self.level, SHORT_LIST, SHORT_LIST_NODES, self.is_expired
                )
                if masks is not None:
                    return self._close_node(max(bound, lower), node, masks, self.level)
            if best is None or lower > best[0]:
                best = lower, quadratic, support
        if best is None:
            return [(bound, node)] if self.is_expired() else self._branch(bound, node, columns, inside, point)
        return self._list_or_branch(max(bound, best[0]), node, best, range(least, most + 1), point)

    def _list_or_branch(
        self, bound: float, node: GlmNode, best: tuple[float, _NodeQuadratic, IntArray], sizes: range, point: FloatArray
    ) -> list[tuple[float, GlmNode]]:
        """Fit the supports at which the best quadratic is at most the level, or return children if there are many."""
        if self.work == 1:
            return [(bound, GlmNode(node.inside, node.outside, point))]
        if (gap := self.level - best[0]) < self._listed_gap:
            masks = best[1].list_supports(sizes, self.level, MOST_LISTED, LISTED_NODES, self.is_expired)
            if masks is not None:
                return self._close_node(bound, node, masks, self.level)
            self._listed_gap = min(self._listed_gap, LISTED_GAP_SHARE * gap)
        if self.is_expired():
            return [(bound, node)]
        return self._branch(bound, node, best[2], np.array(sorted(node.inside), dtype=np.int64), point)

    def _quadratics(
        self, columns: IntArray, inside: IntArray, most: int, point: FloatArray
    ) -> Iterator[tuple[float, _NodeQuadratic, IntArray]]:
        """Yield lower bounds on F of a node up to the level, with their quadratics and the best supports of these.

        Supports of the quadratics become the incumbent if they are better.
        """
        fits = self.fits
        problem: Any = fits.bounding_problem.select_columns(columns)
        start = frozenset(columns.tolist()) & frozenset(fits.copy_of[sorted(self.support)].tolist()) | {
            *inside.tolist()
        }
        near, positions = fits.refit(fits.masks([start]), self.point).points[0], np.searchsorted(columns, inside)
        region: Ellipsoid | None = None
        for theta in mixed_points(near[columns], point[columns]):
            level = self.level
            below = None if self.is_expired() else cox_minorant(problem, theta, level, self.is_expired, region)
            if below is None:
                continue
            quadratic = _NodeQuadratic(fits, columns, positions, below)
            lower, support = quadratic.solve(most, level, self.is_expired)
            chosen = frozenset(columns[support].tolist())
            if len(chosen) == self.size and not fits.has_copies:
                fitted = fits.refit(fits.masks([chosen]), near, self.upper, self.is_expired, sure=False)
                self._offer(chosen, fitted.points[0], float(fitted.upper[0]))
            yield lower, quadratic, columns[support]
            if len(columns) > MAX_LEVEL_SET_COLUMNS:
                region = sparse_ellipsoid(below, 0, most, level, self.is_expired, positions) or region

    def _branch(
        self, bound: float, node: GlmNode, choice: IntArray, inside: IntArray, point: FloatArray
    ) -> list[tuple[float, GlmNode]]:
        """Return the children that include and exclude the column with the largest effect among some columns."""
        others = np.setdiff1d(choice, inside)
        if not len(others):
            others = np.array(
                [j for j in np.flatnonzero(self.fits.copies).tolist() if j not in node.inside | node.outside]
            )
        spread = np.ptp(self.fits.rows.W[others], axis=1)
        j = int(others[np.argmax(np.abs(point[others]) * spread)])
        return [
            (bound, GlmNode(node.inside | {j}, node.outside, point)),
            (bound, GlmNode(node.inside, node.outside | {j}, point)),
        ]


class _NodeQuadratic(NamedTuple):
    """A quadratic below the objective of a node, and its columns.

    Attributes
    ----------
    fits : GlmFits
        Fits to the training rows.
    columns : int array
        First copies of the open columns.
    inside : int array
        Positions, among these, of the columns in every support of the node.
    below : Minorant
        Quadratic.
    """

    fits: GlmFits
    columns: IntArray
    inside: IntArray
    below: Minorant

    @property
    def reduced(self) -> tuple[SparseProblem, IntArray]:
        """The moments without the columns in every support, and the positions of the others."""
        whole = eliminate_forced_columns(replace(self.below.moments, forced=self.inside))
        return whole.problem, np.asarray(whole.choice.others, dtype=np.int64)

    def solve(self, most: int, level: float, is_expired: Callable[[], bool]) -> tuple[float, IntArray]:
        """Return a lower bound on F up to the level, and the best support found, by positions."""
        problem, others = self.reduced
        size, cutoff = most - len(self.inside), level + self.below.shift
        found = solve_path(
            problem, [size], cutoffs={size: cutoff * (1.0 + TIE_RTOL)}, is_expired=is_expired, node_limit=LISTED_NODES
        )
        cell = found.by_size[size]
        support = np.sort(np.concatenate([self.inside, others[cell.support]]))
        return min(cell.lower - self.below.shift, level * (1.0 + TIE_RTOL)), support

    def list_supports(
        self, sizes: range, level: float, most: int, node_limit: int, is_expired: Callable[[], bool]
    ) -> BoolArray | None:
        """Return (L, p) masks of all supports of some sizes at which the quadratic is at most the level; None if many.

        Parameters
        ----------
        sizes : range
            Numbers of columns.
        level : float
            Level of F.
        most : int
            Maximum number of supports.
        is_expired : callable
            Function that returns True when time is over.
        """
        problem, others = self.reduced
        form, n_inside = normal_form(problem), len(self.inside)
        if not form.is_trusted or form.m != len(others):
            return None
        bars = np.full(form.m + 1, -np.inf)
        bars[[size - n_inside for size in sizes if 0 <= size - n_inside <= form.m]] = form.raise_cutoff(
            level + self.below.shift
        )
        found, _ = list_supports_by_size(form, form.solve_all_columns(), bars, node_limit, most, is_expired)
        if found is None or sum(map(len, found.values())) > most:
            return None
        supports = [others[form.columns[np.flatnonzero(mask)]] for masks in found.values() for mask in masks]
        return self.fits.masks([self.columns[np.concatenate([self.inside, support])] for support in supports])


def _with_copies(fits: GlmFits, columns: IntArray) -> list[int]:
    """Return some first copies with all their copies."""
    return np.flatnonzero(np.isin(fits.copy_of, columns) & fits.varies).tolist()


def _all_masks(fits: GlmFits, inside: IntArray, columns: IntArray, size: int) -> BoolArray:
    """Return the masks of all supports of a size that contain some columns."""
    others = np.setdiff1d(columns, inside).tolist()
    return fits.masks([(*inside.tolist(), *more) for more in combinations(others, size - len(inside))])


class CoxSubsets(GlmSubsets):
    """Best supports of the requested sizes, with bounds on their objectives and on held-out partial likelihoods.

    Parameters
    ----------
    fits : CoxFits
        Fits to the training rows.
    terms : tuple of tuple of int, optional
        Columns of each term, if some terms have several columns, which enter together.
    """

    fits: CoxFits

    def __init__(self, fits: CoxFits, terms: Terms = ()) -> None:
        self.fits, self._good, self.terms = fits, dict[int, list[frozenset[int]]](), terms

    def _make_search(self, tau: int, is_expired: Callable[[], bool], wanted: Listing | None = None) -> SizeSearch:
        """Return the search of a number of features."""
        if self.terms:
            return TermSearch(self.fits, self.terms, tau, is_expired, wanted)
        return CoxSizeSearch(self.fits, max(self.n_columns(tau), len(self.fits.forced)), is_expired, wanted)

    def score_held_out(
        self, supports: Sequence[IntArray], every: RiskSets
    ) -> tuple[SubsetFits, FloatArray, FloatArray, FloatArray]:
        """Return fits of supports, with bounds on `l_all - l_train` at each exact fit, and its values.

        Parameters
        ----------
        supports : sequence of int arrays
            Supports.
        every : RiskSets
            Risk sets of the training and the scored rows.
        """
        masks = self.fits.masks(supports)
        fitted, held_out = self.fits.refit(masks), np.empty((3, len(masks)))
        for row, mask in enumerate(masks):
            held_out[:, row] = cox_newton.bound_held_out(
                self.fits.rows, every, mask & self.fits.varies, fitted.points[row], fitted.radius[row]
            )
        lower, upper, middle = np.maximum(held_out, 0.0)  # l_all is at least l_train
        return self._convert_to_x_units(masks, fitted), lower, upper, np.clip(middle, lower, upper)

    def bound_open_fold(
        self, tau: int, upper: float, every: RiskSets, is_expired: Callable[[], bool] = is_never_expired
    ) -> tuple[float, float]:
        """Return bounds on `l_all - l_train` at the best fit of a tau whose support is unknown.

        Parameters
        ----------
        tau : int
            Number of features, without adjustment columns; some support of at most this many has F at most `upper`.
        upper : float
            Upper bound on F.
        every : RiskSets
            Risk sets of the training and the scored rows.
        is_expired : callable
            Function that returns True to end with (0, inf).
        """
        fits = self.fits
        if not upper < np.inf or self.fits.has_copies:
            return 0.0, np.inf
        columns = np.flatnonzero(fits.varies)
        level = upper * (1.0 + TIE_RTOL)
        point, _ = fits.fit_of_all(fits.varies, fits.start(), is_expired)
        problem: Any = fits.bounding_problem.select_columns(columns)
        below = cox_minorant(problem, point[columns], level, is_expired)
        if below is None:
            return 0.0, np.inf
        return _bound_difference(Columns(fits.rows.W, columns), below.ellipsoid, every, fits.problem.sets)


def _bound_difference(Z: Columns, ellipsoid: Ellipsoid, every: RiskSets, train: RiskSets) -> tuple[float, float]:
    """Return bounds on `l_all - l_train` in an ellipsoid, by its slope at the centre and bounds on both curvatures."""
    centre, inverse, spread, _ = ellipsoid
    nothing, k = np.zeros(len(centre)), len(centre)
    values, slopes, off = np.empty(2), np.empty((2, k)), 0.0
    for row, sets in enumerate((every, train)):
        state = cox_newton.new_state(sets)
        values[row], size = cox_newton.evaluate(Z, sets, nothing, centre, state)
        off += float(cox_newton.bound_value_rounding(Z, sets, centre, size, state)[0])
        cox_newton.gradient(Z, sets, nothing, centre, state, slopes[row])
    W, slope = Z.W[np.ix_(Z.places, np.flatnonzero(every.weight > 0.0))], slopes[0] - slopes[1]
    reach = spread * float(np.sqrt(np.einsum("ij,ik,kj->j", W, inverse, W).max(initial=0.0)))
    half = spread * float(np.sqrt(max(slope @ inverse @ slope, 0.0)))
    half = (half + 0.5 * (every.total + train.total) * reach * reach) * (1.0 + 1e-6) + 2.0 * off
    middle = float(values[0] - values[1])
    half += TIE_RTOL * abs(middle)
    return max(middle - half, 0.0), middle + half


def make_cox_columns(data: StandardData) -> CoxColumns:
    """Return the columns of all rows, which the problems of all folds share."""
    return CoxColumns.from_rows(np.ascontiguousarray(data.dataset.X[:, data.columns]))


def make_cox_subsets(data: StandardData, rows: IntArray, columns: CoxColumns) -> CoxSubsets:
    """Return the best-subset problem of some rows at gamma 1.

    Parameters
    ----------
    data : StandardData
        Data set.
    rows : int array
        Training rows.
    columns : CoxColumns
        Columns of all rows.
    """
    if data.coefficient_bounds is not None:
        raise BadInput("coef_bounds, nonnegative and nonpositive: not supported with loss cox; leave them out")
    weight = np.clip(data.weight_of(rows) * data.divisor * data.divisor, *GAMMA_RANGE)
    weight[data.adjusting] = 0.0
    fits = CoxFits.from_columns(
        columns, risk_sets_of(data.dataset, rows), weight, 1.0, data.forced, len(rows) == data.n
    )
    return CoxSubsets(fits, multicolumn_terms(data))

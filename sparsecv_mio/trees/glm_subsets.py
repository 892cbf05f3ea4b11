"""Best subsets for a smooth convex loss on one training set: fits, certified bounds, and held-out losses.

The functions at the end of the module make the problem from the rows of a data set. The columns of the problem are
numbered as in standard coordinates, but have the units of the file. `GlmSubsets` works on centred columns with
duplicate columns merged (`trees/glm_fits`) and solves each size by the tree of `trees/glm_tree`.

Let F be the objective and U a number. The module also bounds the margins of rows at all fits with at most k columns and
`F <= U`. Let `q(b) = yy - 2 c'b + b'M b` be a quadratic that is at most F at these fits; at other points, q may exceed
F. Let w be a diagonal with `M - W` positive definite for `W = diag(w)`, b any point and `g = c - (M - W) b`. Then, for
every b' with at most k columns,

    q(b') >= dual + ||b' - b||^2_{M - W},    dual = yy - b'(M - W) b - (sum of the k largest g_j^2 / w_j).

Hence all fits with at most k columns and `F <= U` lie in an ellipsoid about b. The squared radius `U - dual`
of the ellipsoid is far smaller than `U - min q` (docs/theory/glm.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from sparsecv_mio.arrays import CACHED_ROWS, BoolArray, FloatArray, IntArray, base_with_ones
from sparsecv_mio.data.fold_plan import FoldPlan, RowLists
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.glm import (
    Centring,
    Ellipsoid,
    GlmProblem,
    Minorant,
    Ranges,
    minorant,
    minorant_on_ranges,
    symmetric,
)
from sparsecv_mio.problem.problem import eliminate_forced_columns
from sparsecv_mio.problem.row_losses import RowLoss, encode_row_targets, row_loss
from sparsecv_mio.trees.glm_fits import FittedSupports, GlmFits
from sparsecv_mio.trees.glm_left_out import LeftOut
from sparsecv_mio.trees.glm_terms import Terms, TermSearch, multicolumn_terms
from sparsecv_mio.trees.glm_tree import Listing, SizeSearch
from sparsecv_mio.trees.normal_form import NormalForm, normal_form, solve_root
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset, BestSubsets, is_never_expired
from sparsecv_mio.units import GAMMA_RANGE, LOSS_ROUNDING, ROUNDING, TIE_RTOL

DIAGONAL_SHARE = 0.6  # share of the trees' diagonal that is used as w; with all of it, M - W is singular
RADIUS_ROUNDING = 1e-11  # rounding of the squared radius, as a share of the terms added up
MAX_ELLIPSOID_ROUNDING = 1e-3  # maximum relative rounding of the ellipsoid
MOST_STARTS = 5  # number of supports of a size, the last ones found, that serve as starts for another gamma or size


@dataclass(frozen=True, eq=False)
class SubsetFits:
    """Fits of L supports.

    Attributes
    ----------
    supports : sequence of int arrays
        Supports, without columns that a bound of 0 holds at 0.
    coefficients : (L, p) array
        Coefficients in the units of X.
    intercept : (L,) array
        Intercepts.
    lower, upper : (L,) arrays
        Bounds `lower <= F_S <= upper`.
    """

    supports: Sequence[IntArray]
    coefficients: FloatArray
    intercept: FloatArray
    lower: FloatArray
    upper: FloatArray

    def losses(self, loss: RowLoss, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the (L, m) weighted losses of rows, without bounds on rounding."""
        margins = loss.signs(y) * (self.coefficients @ X.T + self.intercept[:, None])
        return np.asarray(weights * loss.losses(margins, y))


class LossesBelow(NamedTuple):
    """Bounds on the losses of n training rows over points with F at most an objective.

    Attributes
    ----------
    least, most : (n,) arrays
        Bounds over points with at most the number of columns of a size.
    anywhere : (n,) array
        Upper bound over all points.
    """

    least: FloatArray
    most: FloatArray
    anywhere: FloatArray


class GlmSubsets:
    """Best supports of the requested sizes, with bounds on their objectives and on held-out losses.

    Parameters
    ----------
    problem : GlmProblem
        Problem with columns of any offset and scale.
    forced : int array, optional
        Columns that every support contains.
    terms : tuple of tuple of int, optional
        Columns of each term, if some terms have several columns, which enter together.
    """

    def __init__(self, problem: GlmProblem, forced: IntArray | None = None, terms: Terms = ()) -> None:
        self.fits, self._good = GlmFits.from_problem(problem, forced), dict[int, list[frozenset[int]]]()
        self.terms = terms

    def with_gamma(self, gamma: float) -> GlmSubsets:
        """Return the same rows with another gamma; the best supports found here are its first starts."""
        subsets = copy(self)
        subsets.fits = self.fits.with_gamma(gamma)
        return subsets

    def hold_rows_out(self, rows: IntArray) -> GlmSubsets | None:
        """Return the best-subset problem without some rows, in the same columns.

        Returns None if only the removed rows distinguish two columns.

        Parameters
        ----------
        rows : int array
            Rows to remove, among those with a weight.
        """
        fits, subsets = self.fits.hold_rows_out(rows), copy(self)
        if fits is None:
            return None
        subsets.fits, subsets._good = fits, {}
        return subsets

    def n_columns(self, tau: int) -> int:
        """Return the maximum number of columns of a support of some features, with the adjustment columns."""
        widths = sorted(map(len, self.terms), reverse=True)
        return self.fits.choice.n_columns(sum(widths[:tau]) if self.terms else tau)

    def _make_search(self, tau: int, is_expired: Callable[[], bool], wanted: Listing | None = None) -> SizeSearch:
        """Return the search of a number of features."""
        if self.terms:
            return TermSearch(self.fits, self.terms, tau, is_expired, wanted)
        return SizeSearch(self.fits, max(self.n_columns(tau), len(self.fits.forced)), is_expired, wanted)

    def _starts(self, size: int) -> list[frozenset[int]]:
        """Return the last good supports of a size and of the nearest smaller size; with terms, of every size."""
        if self.terms:
            return [support for supports in tuple(self._good.values()) for support in supports]
        smaller = max((below for below in tuple(self._good) if below < size), default=size)
        return [support for of in {smaller, size} for support in self._good.get(of, [])]

    def _known_supports(self, tau: int, size: int) -> list[frozenset[int]]:
        """Return the last good supports of a number of features, which may have at most `size` columns."""
        if not self.terms and self.fits.problem.ends is not None:
            return [support for supports in tuple(self._good.values()) for support in supports if len(support) <= size]
        if not self.terms:
            return self._good.get(size, [])
        n_terms = {support: sum(not support.isdisjoint(some) for some in self.terms) for support in self._starts(size)}
        return [support for support, count in n_terms.items() if count == tau]

    # -- sizes ------------------------------------------------------------------------------------------------------

    def relax(
        self, taus: Sequence[int], warm_starts: Iterable[IntArray], is_expired: Callable[[], bool]
    ) -> BestSubsets:
        """Return bounds on the optima of some taus by the roots of their trees.

        Parameters
        ----------
        taus : sequence of int
            Numbers of features, as in `solve`.
        warm_starts : iterable of int arrays
            Initial supports.
        is_expired : callable
            Function called every few milliseconds; True ends the work with the bounds found so far.
        """
        return self.solve(taus, warm_starts, 1, None, is_expired, exchanges=False, work=1)

    def solve(
        self,
        taus: Sequence[int],
        warm_starts: Iterable[IntArray] = (),
        node_limit: int = UNLIMITED,
        cutoffs: Mapping[int, float] | None = None,
        is_expired: Callable[[], bool] = is_never_expired,
        threads: int = 1,
        exchanges: bool = True,
        work: int | None = None,
    ) -> BestSubsets:
        """Return the best subsets, `min F_S` over supports of at most tau features, for every requested tau.

        Parameters
        ----------
        taus : sequence of int
            Numbers of features without adjustment columns, at least the number of other forced columns.
        warm_starts : iterable of int arrays
            Initial supports.
        node_limit : int
            Maximum number of nodes of the outer tree of a size; each of these has an inner tree.
        cutoffs : mapping of int to float, optional
            Target of the lower bound for each tau.
        is_expired : callable
            Function called every few milliseconds; True ends the work with the bounds found so far.
        threads : int
            Number of nodes of a tree that are processed at the same time; with several, the number of nodes may differ
            between runs.
        exchanges : bool
            True if starts of a size are improved by exchanges before its tree.
        work : int, optional
            Work limit of a node, in rows times columns; 1 for its relaxation alone; by default that of `SizeSearch`.

        Returns
        -------
        BestSubsets
            Supports and bounds. If a size is `complete`, its candidates are all supports that can be optimal, up to
            columns that are constant in these rows.
        """
        by_size, nodes, before = dict[int, BestSubset](), 0, frozenset(self.fits.forced)
        finished = True
        initial = [frozenset(start.tolist()) for start in warm_starts]
        for tau in sorted(set(taus)):
            size, search = self.n_columns(tau), self._make_search(tau, is_expired)
            search.begin([before, *initial, *self._starts(size)], exchanges)
            search.work = search.work if work is None else work
            by_size[tau] = search.solve(
                tau, node_limit, np.inf if cutoffs is None else cutoffs.get(tau, np.inf), threads
            )
            before, nodes = search.support, nodes + search.nodes
            finished &= by_size[tau].complete or search.exhausted
            good = self._good.get(len(before), [])
            if before not in good:
                self._good[len(before)] = [*good, before][-MOST_STARTS:]
        return BestSubsets(by_size, nodes, finished)

    def listing(self, tau: int, wanted: Listing, is_expired: Callable[[], bool] = is_never_expired) -> SizeSearch:
        """Return a search that, when run, passes every support of a tau with F at most a level to a list.

        Parameters
        ----------
        tau : int
            Number of features, without adjustment columns.
        wanted : Listing
            List that takes the supports; its level may fall during the run.
        is_expired : callable
            Function that returns True to end the run; `SizeSearch.unseen` then bounds the other supports.
        """
        search = self._make_search(tau, is_expired, wanted)
        search.begin([frozenset(self.fits.forced), *self._starts(self.n_columns(tau))])
        return search

    # -- supports ---------------------------------------------------------------------------------------------------

    def refit(self, supports: Sequence[IntArray]) -> SubsetFits:
        """Return fits of supports.

        Parameters
        ----------
        supports : sequence of int arrays
            Supports.
        """
        masks = self.fits.masks(supports)
        return self._convert_to_x_units(masks, self.fits.refit(masks))

    def _convert_to_x_units(self, masks: BoolArray, fitted: FittedSupports) -> SubsetFits:
        coefficients, intercept = np.zeros(masks.shape), np.zeros(len(masks))
        for row, mask in enumerate(masks):
            coefficients[row], intercept[row] = self.fits.convert_to_x_units(mask, fitted.points[row])
        supports = list(map(np.flatnonzero, self.fits.find_active(masks, fitted.points)))
        return SubsetFits(supports, coefficients, intercept, fitted.lower, fitted.upper)

    def score_supports(
        self, supports: Sequence[IntArray], X: FloatArray, y: FloatArray, weights: FloatArray | None = None
    ) -> tuple[SubsetFits, FloatArray, FloatArray]:
        """Return fits of supports, with bounds on the total loss of some rows at each exact fit.

        Parameters
        ----------
        supports : sequence of int arrays
            Supports.
        X, y : (m, p), (m,) arrays
            Rows in the units of the problem, and targets in the form of the loss.
        weights : (m,) array, optional
            Row weights; 1 by default.

        Returns
        -------
        SubsetFits
            Fits as `refit` returns them.
        lower, upper : (L,) arrays
            Bounds on the total losses.
        """
        masks = self.fits.masks(supports)
        fitted = self.fits.refit(masks)
        return self._convert_to_x_units(masks, fitted), *self._bound_loss_sums(
            *self.fits.decisions(masks, fitted, X), y, weights
        )

    def open_fold_interval(
        self,
        tau: int,
        upper: float,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray | None = None,
        is_expired: Callable[[], bool] = is_never_expired,
    ) -> tuple[float, float]:
        """Return bounds on the total loss of rows at the best fit of a tau whose support is unknown.

        Every fit with F at most `upper` is in an ellipsoid, and every such fit with at most `tau` features in a smaller
        one, whatever its support (docs/theory/glm.md, section 8).

        Parameters
        ----------
        tau : int
            Number of features, without adjustment columns; some support of at most this many has F at most `upper`.
        upper : float
            Upper bound on F.
        X, y : (m, p), (m,) arrays
            Rows in the units of the problem, and targets in the form of the loss.
        weights : (m,) array, optional
            Row weights; 1 by default.
        is_expired : callable
            Function that returns True to end with the bounds proved so far, (0, inf) if none is proved.
        """
        if not upper < np.inf:
            return 0.0, np.inf
        fits, low, high = self.fits, np.full(len(X), -np.inf), np.full(len(X), np.inf)
        size = self.n_columns(tau)
        rows, spread = fits.rows_outside(X)
        level = upper * (1.0 + TIE_RTOL)
        points = fits.points_below_level(level, self._known_supports(tau, size), is_expired)
        for below, sparse, _ in bound_around_points(fits, points, size, level, is_expired):
            off = spread @ below.ellipsoid.size
            for ellipsoid in (below.ellipsoid, sparse or below.ellipsoid):
                least, most = ellipsoid.predictions(rows)
                low, high = np.maximum(low, least - off), np.minimum(high, most + off)
            del below  # frees its arrays of one entry for each row before the next quadratic is made
        lower, most_lost = self._bound_loss_sums(low[None, :], high[None, :], y, weights)
        return float(lower[0]), float(most_lost[0])

    def bound_training_losses(
        self, tau: int, objective: float, is_expired: Callable[[], bool] = is_never_expired
    ) -> LossesBelow:
        """Return bounds on the loss of every training row at points with F at most an objective.

        Parameters
        ----------
        tau : int
            Number of features, without adjustment columns; some support of at most this many has F at most `objective`.
        objective : float
            Maximum F.
        is_expired : callable
            Function that returns True to end with the bounds proved so far.
        """
        n, level, size = len(self.fits.problem.y), objective * (1.0 + TIE_RTOL), self.n_columns(tau)
        points = self.fits.points_below_level(level, self._known_supports(tau, size), is_expired)
        for below, _, ranges in bound_around_points(self.fits, points, size, level, is_expired):
            least, most = self._bound_losses(ranges)
            anywhere = most if ranges is below.ranges else self._bound_losses(below.ranges).high
            return LossesBelow(least, most, anywhere)
        return LossesBelow(np.zeros(n), np.full(n, np.inf), np.full(n, np.inf))

    def _bound_losses(self, ranges: Ranges) -> Ranges:
        """Replace ranges of margins of training rows by bounds on their losses, in place."""
        problem, room = self.fits.problem, 1.0 + 4.0 * LOSS_ROUNDING
        for begin in range(0, len(problem.y), CACHED_ROWS):
            here = slice(begin, begin + CACHED_ROWS)
            low, high = np.sort(
                problem.loss.signs(problem.y[here]) * np.array([ranges.low[here], ranges.high[here]]), axis=0
            )
            least, most = problem.loss.bound_losses(low, high, problem.y[here])
            ranges.low[here], ranges.high[here] = least / room, most * room
        return ranges

    def _bound_loss_sums(
        self, low: FloatArray, high: FloatArray, y: FloatArray, weights: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds on sums of weighted losses of rows whose linear predictors lie between (L, m) bounds."""
        v = np.ones(len(y)) if weights is None else weights
        v, low, high, y = v[v > 0.0], low[:, v > 0.0], high[:, v > 0.0], y[v > 0.0]
        least, most = self.fits.problem.loss.bound_losses(low, high, y)
        rounding = LOSS_ROUNDING + len(v) * ROUNDING
        with np.errstate(over="ignore"):
            lower, upper = least @ v * (1.0 - rounding), most @ v * (1.0 + rounding)
        # a value that overflowed gives no bound
        return np.where(lower > 0.0, lower, 0.0), np.where(upper < np.inf, upper, np.inf)


def sparse_ellipsoid(
    below: Minorant, first: int, size: int, level: float, is_expired: Callable[[], bool], inside: IntArray
) -> Ellipsoid | None:
    """Return an ellipsoid that contains every fit of a size with F at most a level; None if rounding is too large.

    Parameters
    ----------
    below : Minorant
        Quadratic below F at these fits.
    first : int
        Number of leading coefficients of the intercept: 1 or 0.
    size : int
        Maximum number of columns of a fit.
    level : float
        Maximum F of a fit.
    is_expired : callable
        Function that returns True when time is over.
    inside : int array
        Positions of the columns that every such fit has. Their diagonal is 0, which makes that of the others larger.
    """
    moments, chosen = below.moments, size - len(inside)
    inner = eliminate_forced_columns(replace(moments, forced=inside))
    form, others = normal_form(inner.problem), inner.choice.others
    if not (form.curved and form.is_trusted and 0 < chosen < form.m and form.m == len(others)):
        return None
    partial_form = _partly(form)
    root = solve_root(
        partial_form, chosen, partial_form.raise_cutoff(level + below.shift), np.zeros(form.m), is_expired
    )
    b, w = np.zeros(moments.q), np.zeros(moments.q)
    b[others], w[others] = root.b * partial_form.scale, 1.0 / partial_form.scale**2
    b[inside] = inner.centre - inner.share @ b[others]
    product = moments.M @ b - w * b
    slope = moments.c - product
    most = float(np.sort(slope[others] ** 2 / w[others])[::-1][:chosen].sum())
    farthest = below.ellipsoid.size[first:]
    square = level + below.shift - (moments.yy - float(b @ product) - most)
    square += 2.0 * float(np.abs(slope[inside]) @ farthest[inside])
    square += RADIUS_ROUNDING * (moments.yy + most + float(np.abs(b) @ (np.abs(moments.M) @ np.abs(b))))
    K = 0.5 * below.H
    K.flat[first * (len(K) + 1) :: len(K) + 1] -= w
    unit = np.sqrt(np.maximum(np.diag(K), 0.0))
    factor, failed = dpotrf(K / np.where(unit > 0.0, unit, 1.0)[:, None] / np.where(unit > 0.0, unit, 1.0))
    if failed or not np.all(unit > 0.0):
        return None
    inverse = symmetric(dpotri(factor)[0])
    doubt = 40.0 * len(K) ** 2 * ROUNDING * float(np.trace(inverse))
    if not doubt <= MAX_ELLIPSOID_ROUNDING:
        return None
    inverse *= (1.0 + 4.0 * doubt) / unit[:, None] / unit
    intercept = [-(below.linear[0] + float(below.H[0, 1:] @ b)) / below.H[0, 0]] if first else []
    centre = np.concatenate([intercept, b])
    return Ellipsoid(centre, inverse, float(np.sqrt(max(square, 0.0))), np.abs(centre))


def _partly(form: NormalForm) -> NormalForm:
    """Return a normal form with a share of the diagonal taken out."""
    G = form.matrix() / DIAGONAL_SHARE
    G.flat[:: form.m + 1] -= 1.0
    scale, largest = 1.0 / np.sqrt(DIAGONAL_SHARE), (form.largest + 1.0) / DIAGONAL_SHARE - 1.0
    return replace(form, G=np.ascontiguousarray(G), c=form.c * scale, scale=form.scale * scale, largest=largest)


def bound_around_points(
    fits: GlmFits, points: Iterable[FloatArray], size: int, level: float, is_expired: Callable[[], bool]
) -> Iterator[tuple[Minorant, Ellipsoid | None, Ranges]]:
    """Yield quadratics about some points, the ellipsoids of sparse fits that they imply, and ranges of margins.

    The ranges are the intersection of all ranges so far. The first quadratic is below F on its level set; every later
    one is below F at sparse fits only, whose margins have shorter ranges by then. Ranges are updated in place, because
    a second copy for very many rows would be too large.

    Parameters
    ----------
    fits : GlmFits
        Fits to the training rows.
    points : iterable of (first + p,) arrays
        Points about which quadratics are made.
    size : int
        Maximum number of columns of a fit.
    level : float
        Maximum F of a fit.
    is_expired : callable
        Function that returns True when time is over.
    """
    firsts, ranges = np.flatnonzero(fits.copies), None
    places, problem = fits.places(firsts), fits.bounding_problem.select_columns(firsts)
    for point in points:
        if is_expired():
            break
        if ranges is None:
            below = minorant(problem, point[places], level, is_expired)
        else:
            below = minorant_on_ranges(problem, point[places], level, ranges)
        if below is None:
            continue
        ellipsoid = sparse_ellipsoid(below, problem.first_coefficient, size, level, is_expired, fits.inside)
        ranges = below.ranges if ranges is None else ranges.intersect(below.ranges)
        if ellipsoid is not None:
            ranges = Ranges(ranges.low.copy(), ranges.high.copy()) if ranges is below.ranges else ranges
            for here, Z, sign in problem.blocks():
                there = np.sort(sign * np.array(ellipsoid.predictions(Z)), axis=0)
                Ranges(ranges.low[here], ranges.high[here]).intersect(Ranges(*there))  # in place
        yield below, ellipsoid, ranges
        del below  # its arrays have one entry for each row, and there may be very many rows


def rows_in_units(data: StandardData, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return some rows: columns in the units of the file, targets in the form of the loss, and weights.

    Parameters
    ----------
    data : StandardData
        Data set.
    rows : int array
        Row indices.
    """
    X = data.dataset.X
    whole = np.array_equal(rows, np.arange(len(X))) and np.array_equal(data.columns, np.arange(X.shape[1]))
    if whole:  # avoids a copy of the whole data set
        return X, *encode_row_targets(data, rows)
    return np.ascontiguousarray(X[np.ix_(rows, data.columns)]), *encode_row_targets(data, rows)


def make_subsets(data: StandardData, rows: IntArray) -> GlmSubsets:
    """Return the best-subset problem of some rows at gamma 1.

    Parameters
    ----------
    data : StandardData
        Data set.
    rows : int array
        Training rows.
    """
    n, p = data.dataset.X.shape
    takes_most_rows = len(rows) > n // 2 and not data.dataset.has_scales_of_folds
    if not (len(data.columns) == p and takes_most_rows and np.all(np.diff(rows) > 0)):
        return GlmSubsets(make_glm_problem(data, rows), data.forced, multicolumn_terms(data))
    every = make_glm_problem(
        data, np.arange(n)
    )  # rows without weight are skipped when columns are centred, which avoids a copy of most rows
    weights = np.zeros(n)
    weights[rows] = every.v[rows]
    return GlmSubsets(replace(every, v=weights), data.forced, multicolumn_terms(data))


def make_glm_problem(data: StandardData, rows: IntArray, gamma: float = 1.0) -> GlmProblem:
    """Return the problem of some rows.

    Parameters
    ----------
    data : StandardData
        Data set.
    rows : int array
        Training rows.
    gamma : float, optional
        Ridge weight.
    """
    weight = np.clip(data.weight_of(rows) * data.divisor * data.divisor, *GAMMA_RANGE)
    weight[data.adjusting] = 0.0
    X, y, v = rows_in_units(data, rows)
    ends = None if data.coefficient_bounds is None else data.ends_in_file(data.restrictions)
    return GlmProblem(X, y, v, weight, gamma, data.has_intercept, row_loss(data.loss), ends)


def make_held_out_folds(data: StandardData, plan: FoldPlan, fits: GlmFits) -> LeftOut:
    """Return the folds of all rows, given full-data fits.

    Parameters
    ----------
    data : StandardData
        Data set.
    plan : FoldPlan
        Folds.
    fits : GlmFits
        Fits to all rows, on any columns.
    """
    row_lists = RowLists(plan.order[: plan.scored], plan.starts) if plan.left is None else plan.left
    weights = encode_row_targets(data, slice(0, data.n))[1]
    scored = None if plan.left is None else [plan.scored_rows(fold) for fold in range(plan.k)]
    return LeftOut(fits, row_lists, scored, weights)


def fit_rows_in_place(data: StandardData, gamma: float) -> GlmFits | None:
    """Return fits to all rows if they need no copy of the rows; otherwise None."""
    problem = make_glm_problem(data, np.arange(data.n), gamma)
    if base_with_ones(problem.X) is None or not Centring.from_rows(problem.X, problem.v, problem.intercept).is_identity:
        return None
    return GlmFits.from_problem(problem, None)


def held_out_losses_at_fits(
    data: StandardData,
    plan: FoldPlan,
    support: IntArray,
    gamma: float,
    folds: IntArray,
    is_expired: Callable[[], bool] = is_never_expired,
    ended: Callable[[], bool] = is_never_expired,
    every: GlmFits | None = None,
) -> FloatArray:
    """Return (F,) held-out losses of a support in some folds, from its full-data fit; nan if steps do not suffice.

    Parameters
    ----------
    data : StandardData
        Data set.
    plan : FoldPlan
        Folds.
    support, folds : int arrays
        Columns of the support, and indices of the folds.
    gamma : float
        Ridge weight.
    is_expired : callable
        Function that returns True when time is over; later folds get second steps if these are accurate enough, or nan.
    ended : callable
        Function that returns True to leave nan for all remaining folds.
    every : GlmFits, optional
        Fits of `fit_rows_in_place` at this gamma; otherwise the columns of the support are copied.
    """
    fits, columns = every, support
    if fits is None:
        problem, columns = (
            make_glm_problem(data, np.arange(data.n), gamma).select_columns(support),
            np.arange(len(support)),
        )
        fits = GlmFits.from_problem(problem, None)
    mask, point = fits.mask(columns.tolist()), fits.fit(columns.tolist())[0]
    return make_held_out_folds(data, plan, fits).held_out(mask, point, folds, is_expired, ended)

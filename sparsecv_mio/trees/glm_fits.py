"""Fits of a smooth convex loss on centred columns, with duplicate columns merged.

Two columns are duplicates if, on the rows of the fit, one column equals the other column or its negative to the last
bit. Duplicates may also differ by a factor that is a power of two and, with an intercept, by an added constant. The
ridge weights of duplicates must agree up to rounding. In a fit, m duplicates with ridge r have the same coefficient, so
they are equivalent to one column with ridge r / m. The sum of the coefficients of duplicates is stored for the first
one (`copy_of`). A column that is constant on the rows of the fit is stored as zero and has the coefficient zero,
except if its bounds exclude zero. With bounds on coefficients, no column counts as a duplicate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.standard import ForcedColumns
from sparsecv_mio.kernels import glm_newton
from sparsecv_mio.kernels.smooth_losses import Response
from sparsecv_mio.problem.glm import Centring, GlmProblem
from sparsecv_mio.problem.glm_refit import RefitRows, fit_roughly
from sparsecv_mio.thresholds import SMOOTH_COLUMNS
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import ROUNDING

ROUGH_ACCURACY = 1e-6  # accuracy of fits that use LAPACK
# shares of the way from the best fit of a size to the fit of all columns; 0.4 twice, as the second ranges are shorter
MIXTURES = (0.4, 0.4, 0.15, 0.7)
KEPT_FITS = 1 << 17  # maximum number of values in the points of stored fits, which are not computed again
ALIKE = 8.0 * ROUNDING  # relative difference of penalty weights up to which columns may be copies


@dataclass(frozen=True, eq=False)
class FittedSupports:
    """Fits of L supports: bounds on F_S, radii of the balls that contain the fits, and points."""

    lower: FloatArray
    upper: FloatArray
    radius: FloatArray
    points: FloatArray


@dataclass(frozen=True, eq=False)
class GlmFits:
    """Training rows in centred columns, and fits of supports to them.

    Attributes
    ----------
    problem : GlmProblem
        Problem in centred columns.
    centring : Centring
        Map from the given columns to the centred ones.
    forced : tuple of int
        Columns in every support.
    copy_of : (p,) int array
        First copy of each column; the column itself if no earlier column is a copy.
    sign : (p,) array
        Signs: -1 if a column is the negative of its first copy, otherwise 1.
    varies : (p,) bool array
        True for columns that are not constant.
    rows : Rows
        Rows in the form that kernels take.
    exchanged : dict
        Results of local searches, by the support and size from which they started.
    kept : dict
        Bounds, radii and points of fitted supports, by packed masks.
    from_origin : dict
        The same of fits that begin at the empty support. They depend on the problem alone.
    """

    problem: GlmProblem
    centring: Centring
    forced: tuple[int, ...]
    copy_of: IntArray
    sign: FloatArray
    varies: BoolArray
    rows: glm_newton.Rows
    exchanged: dict[tuple[frozenset[int], int], tuple[frozenset[int], FloatArray, float]] = field(
        default_factory=dict, init=False
    )
    kept: dict[bytes, tuple[float, float, float, FloatArray]] = field(default_factory=dict, init=False)
    from_origin: dict[bytes, tuple[float, float, float, FloatArray]] = field(default_factory=dict, init=False)

    @classmethod
    def from_problem(cls, problem: GlmProblem, forced: IntArray | None) -> GlmFits:
        """Return the fits of a problem, after centring it and finding copies."""
        inner, W, centring = problem.centre_columns()
        columns, varies = () if forced is None else tuple(sorted(set(forced.tolist()))), np.any(inner.X, axis=0)
        copy_of, sign = np.arange(problem.p), np.ones(problem.p)
        if problem.ends is None:
            copy_of, sign = _copies(inner, problem, centring)
        else:
            varies |= (problem.ends[0] > 0.0) | (problem.ends[1] < 0.0)
        return cls(inner, centring, columns, copy_of, sign, varies, _make_rows(inner, W, copy_of))

    @cached_property
    def choice(self) -> ForcedColumns:
        """The columns in every support and the others, by which tau becomes a number of columns."""
        return ForcedColumns.from_penalty_weights(np.array(self.forced, dtype=np.int64), self.problem.weight)

    def with_gamma(self, gamma: float) -> GlmFits:
        """Return the same rows with another gamma."""
        problem = self.problem.with_gamma(gamma)
        return replace(self, problem=problem, rows=self.rows._replace(penalty=problem.penalty))

    def copy_without_fits(self) -> GlmFits:
        """Return the same rows and gamma without stored fits, so that later results do not depend on earlier calls.

        Fits that begin at the empty support are equal in every call, and stay.
        """
        fits = copy(self)
        fits.__dict__.update(kept={}, exchanged={})
        return fits

    def hold_rows_out(self, rows: IntArray) -> GlmFits | None:
        """Return the same columns with weight zero on some rows; the columns are not copied. O(n p).

        Returns None if only these rows distinguish two columns, because the other rows then have more copies.

        Parameters
        ----------
        rows : int array
            Rows that get the weight zero.
        """
        v = self.problem.v.copy()
        v[rows] = 0.0
        if not self._has_distinct_columns(v > 0.0):
            return None
        problem = replace(self.problem, v=v)
        return replace(self, problem=problem, rows=_make_rows(problem, self.rows.W, self.copy_of))

    def _has_distinct_columns(self, kept: BoolArray) -> bool:
        """Return True if on some rows no first copy is constant and no two are equal up to sign and an intercept."""
        first, seen = self.problem.first_coefficient, set[bytes]()
        for j in np.flatnonzero(self.copies).tolist():
            column = self.rows.W[first + j][kept]
            column -= column[0] if first else 0.0
            differs = np.flatnonzero(column)[:1]
            if not len(differs):
                return False
            column *= np.sign(column[differs])
            seen.add(blake2b((column + 0.0).tobytes()).digest())
        return len(seen) == np.count_nonzero(self.copies)

    @cached_property
    def copies(self) -> IntArray:
        """Number of copies of each first copy, itself included, (p,); 0 for other copies and for constant columns."""
        return np.bincount(self.copy_of[self.varies], minlength=self.problem.p)

    @cached_property
    def inside(self) -> IntArray:
        """Positions, among the first copies, of the columns in every support."""
        forced = np.array(self.forced, dtype=np.int64)
        in_all = np.unique(self.copy_of[forced[self.varies[forced]]])
        return np.searchsorted(np.flatnonzero(self.copies), in_all).astype(np.int64)

    @cached_property
    def has_copies(self) -> bool:
        """True if some columns are copies."""
        return bool(np.any(self.copies > 1))

    @cached_property
    def excludes_zero(self) -> BoolArray:
        """(p,) mask of the columns whose bounds exclude the coefficient 0."""
        ends = self.rows.ends[:, self.problem.first_coefficient :]
        low, high = ends if ends.size else np.zeros((2, self.problem.p))
        return np.asarray((low > 0.0) | (high < 0.0))

    @cached_property
    def hull(self) -> GlmFits:
        """Fits whose intervals of coefficients are extended to 0, which bound the fits of subsets of a support."""
        if not self.excludes_zero.any():
            return self
        ends = np.array([np.minimum(self.rows.ends[0], 0.0), np.maximum(self.rows.ends[1], 0.0)])
        return replace(self, rows=self.rows._replace(ends=ends))

    def find_active(self, masks: BoolArray, points: FloatArray) -> BoolArray:
        """Return the (L, p) masks of supports without the columns that a bound of 0 holds at 0, except forced ones."""
        if self.problem.ends is None:
            return masks
        is_held = (points[:, self.problem.first_coefficient :] == 0.0) & np.any(self.problem.ends == 0.0, axis=0)
        is_held[:, list(self.forced)] = False
        return masks & ~is_held

    @cached_property
    def bounding_problem(self) -> GlmProblem:
        """Problem that bounds the fits of all supports from below: a first copy has the ridge of all its copies."""
        return replace(self.problem, weight=self.problem.weight / np.maximum(self.copies, 1))

    # -- fits -------------------------------------------------------------------------------------------------------

    def start(self) -> FloatArray:
        """Return the (first + p,) point of the empty support."""
        point = np.zeros(self.problem.first_coefficient + self.problem.p)
        point[: self.problem.first_coefficient] = self.rows.origin
        return point

    def refit(
        self, masks: BoolArray, start: FloatArray | None = None, bar: float = np.inf,
        is_expired: Callable[[], bool] = is_never_expired, sure: bool = True,
    ) -> FittedSupports:  # fmt: skip
        """Fit supports from a common start; fits stored by earlier calls are used again.

        Parameters
        ----------
        masks : (L, p) bool array
            Supports.
        start : (first + p,) array, optional
            Point at which every fit begins; that of the empty support by default.
        bar : float
            Cutoff: the fit of a support stops once it is proved to be above the cutoff.
        is_expired : callable
            Function that returns True when time is over; the remaining supports then have the bounds 0 and inf.
        sure : bool
            True if a value above the cutoff must be proved; else supports hardly below it get the bounds 0 and inf too.
        """
        count = len(masks)
        points = np.repeat((self.start() if start is None else start)[None, :], count, axis=0)
        lower, upper, radius = np.zeros(count), np.full(count, np.inf), np.full(count, np.inf)
        stored, ended = self.from_origin if start is None and bar == np.inf else self.kept, False
        for at, name in enumerate(mask.tobytes() for mask in np.packbits(masks, axis=1)):
            row = slice(at, at + 1)
            if name in stored:
                lower[at], upper[at], radius[at], points[at] = stored[name]
            elif not (ended := ended or is_expired()):
                self._refit(masks[row], points[row], bar, sure, (lower[row], upper[row], radius[row]))
                if upper[at] < np.inf and upper[at] <= bar and len(stored) * points.shape[1] < KEPT_FITS:
                    stored[name] = float(lower[at]), float(upper[at]), float(radius[at]), points[at].copy()
        return FittedSupports(lower, upper, radius, points)

    def _refit(
        self, masks: BoolArray, points: FloatArray, bar: float, sure: bool,
        ends: tuple[FloatArray, FloatArray, FloatArray],
    ) -> None:  # fmt: skip
        """Fit supports in place by the kernel of the loss."""
        glm_newton.refit(self.rows, masks, points, bar, sure, ends)

    def fit(self, support: Iterable[int], start: FloatArray | None = None) -> tuple[FloatArray, float, float]:
        """Return `(point, lower, upper)` of a support: its fit with copies merged, and bounds on F_S."""
        fitted = self.refit(self.masks([support]), start)
        return fitted.points[0], float(fitted.lower[0]), float(fitted.upper[0])

    def fit_of_all(
        self, mask: BoolArray, start: FloatArray, is_expired: Callable[[], bool] = is_never_expired
    ) -> tuple[FloatArray, float]:
        """Return `(point, lower)` of the fit of all open columns; `lower` is 0 if columns are too many for a proof.

        Parameters
        ----------
        mask : (p,) bool array
            Open columns.
        start : (first + p,) array
            Point at which the fit begins.
        is_expired : callable
            Function called between steps if there are many columns; True ends them before the point is the fit.
        """
        if np.count_nonzero(mask) <= SMOOTH_COLUMNS:
            fitted = self.hull.refit(mask[None, :], start)
            return fitted.points[0], float(fitted.lower[0])
        places, penalty = glm_newton.merge_copies(self.rows, mask)
        problem, point = self.problem, np.zeros(len(start))
        rows = RefitRows(self.rows.W[places].T, problem.y, problem.v, penalty, problem.loss)
        point[places] = fit_roughly(rows, start[places], ROUGH_ACCURACY, is_expired)
        return point, 0.0

    def places(self, columns: IntArray) -> IntArray:
        """Return the positions of the intercept and of some columns in a point."""
        first = self.problem.first_coefficient
        return np.concatenate([np.arange(first), columns + first]).astype(np.int64)

    def mask(self, support: Iterable[int]) -> BoolArray:
        """Return the (p,) mask of a support."""
        return np.asarray(self.masks([support])[0])

    def masks(self, supports: Collection[Iterable[int]]) -> BoolArray:
        """Return the (L, p) masks of supports."""
        masks = np.zeros((len(supports), self.problem.p), dtype=np.bool_)
        for mask, support in zip(masks, supports, strict=True):
            mask[list(support)] = True
        return masks

    def points_below_level(
        self, level: float, supports: Collection[frozenset[int]], is_expired: Callable[[], bool]
    ) -> Iterator[FloatArray]:
        """Yield points with F at most a level, between the best fit of some supports and the fit of all columns.

        A point above the level is replaced by the fit of all columns.
        """
        near = self.start()
        if supports:
            fitted = self.refit(self.masks(supports), is_expired=is_expired)
            near = fitted.points[int(np.argmin(fitted.upper))]
        everything, below = self.fit_of_all(self.varies, self.start(), is_expired)
        if below > level or is_expired():
            return
        for share in MIXTURES:
            point = (1.0 - share) * near + share * everything
            yield point if self.bounding_problem.objective(point) <= level * (1.0 - 1e-12) else everything

    # -- in the units of X ------------------------------------------------------------------------------------------

    def convert_to_x_units(self, mask: BoolArray, point: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients and intercept of the point of a support."""
        first, columns = self.problem.first_coefficient, np.flatnonzero(mask & self.varies)
        of, inner = self.copy_of[columns], np.where(np.arange(len(point)) < first, point, 0.0)
        count = np.bincount(of, minlength=self.problem.p)
        inner[first + columns] = self.sign[columns] * point[first + of] / count[of]
        return self.centring.back(inner, self.problem.intercept)

    def decisions(self, masks: BoolArray, fitted: FittedSupports, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the linear predictor `a + x'b` of rows at the exact fits."""
        first = self.problem.first_coefficient
        outside = np.ascontiguousarray(np.hstack([np.ones((len(X), first)), self.centring.rows(X)]).T)
        sign = np.concatenate([np.ones(first), self.sign])
        low, high = np.empty((len(masks), len(X))), np.empty((len(masks), len(X)))
        glm_newton.decisions(self.rows, masks & self.varies, fitted.points, fitted.radius, (outside, sign), (low, high))
        return low, high

    def rows_outside(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows at first copies: midpoints of the values of the copies, and their largest distances from them."""
        copies, first, columns = (
            self.copies[self.copies > 0],
            self.problem.first_coefficient,
            np.flatnonzero(self.varies),
        )
        columns = columns[np.argsort(self.copy_of[columns], kind="stable")]
        signed = (self.centring.rows(X) * self.sign)[:, columns]
        low, high = (end.reduceat(signed, np.cumsum(copies) - copies, axis=1) for end in (np.minimum, np.maximum))
        rows = np.hstack([np.ones((len(X), first)), 0.5 * (low + high)])
        return rows, np.hstack([np.zeros((len(X), first)), 0.5 * (high - low)])


def _make_rows(problem: GlmProblem, W: FloatArray, copy_of: IntArray) -> glm_newton.Rows:
    """Return rows in the form that kernels take, given columns W."""
    first = problem.first_coefficient
    places = np.concatenate([np.arange(first), copy_of + first]).astype(np.int64)
    origin = float(problem.start()[0]) if first else 0.0
    response = Response(problem.v, problem.y, problem.loss.find_code(problem.y))
    ends = np.empty((2, 0)) if problem.ends_of_point is None else problem.ends_of_point
    return glm_newton.Rows(W, response, problem.penalty, places, first, origin, ends)


def _copies(problem: GlmProblem, given: GlmProblem, centring: Centring) -> tuple[IntArray, FloatArray]:
    """Return the first column that each column equals up to sign, with the same penalty weight, and that sign."""
    weighted = given.v > 0.0
    return find_duplicates(problem.X.T, lambda j: given.X[weighted, j] / centring.unit[j], problem.weight)


def find_duplicates(
    columns: FloatArray, given: Callable[[int], FloatArray], weight: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return the first column that each column equals up to sign, with the same penalty weight, and that sign.

    Centring rounds, so columns that are equal after centring are compared again as they were given: their difference
    matters if the ridge is nearly zero.

    Parameters
    ----------
    columns : (p, n) array
        Columns after centring; 0 if they are constant.
    given : callable
        Function that returns a column before centring.
    weight : (p,) array
        Penalty weights.
    """
    p = len(columns)
    copy_of, sign = np.arange(p), np.ones(p)
    seen: dict[bytes, list[int]] = {}

    def are_copies(i: int, j: int) -> bool:
        if abs(weight[i] - weight[j]) > ALIKE * weight[i]:
            return False
        first, second = (sign[k] * given(k) for k in (i, j))
        less, back = first - second, first - (first - second)
        return not (np.ptp(less) or np.ptp((first - (less + back)) + (back - second)))  # difference, its rounding

    for j, column in enumerate(columns):
        begin = column[np.argmax(column != 0.0)] if len(column) else 0.0
        if begin == 0.0:
            continue
        sign[j] = np.sign(begin)
        alike = seen.setdefault(blake2b(column * sign[j] + 0.0).digest(), [])  # adding zero removes negative zeros
        copy_of[j] = next((i for i in alike if are_copies(i, j)), j)
        if copy_of[j] == j:
            alike.append(j)
    return copy_of, sign * sign[copy_of]

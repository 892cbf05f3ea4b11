"""Fits of a smooth convex loss on centred columns, of which copies are one.

A copy is a column that is another one, or its negative, to the last bit in these rows but for a constant beside an
intercept and a power of two, under a ridge that differs by rounding at most. In a fit m copies share their coefficient,
so they are one column with ridge r / m. Points have the whole coefficient at the first of them (`copy_of`); a column
that is constant in these rows is zero, and so is its coefficient.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels import glm_newton
from sparsecv_mio.kernels.row_losses import Response
from sparsecv_mio.problem.glm import Centring, GlmProblem
from sparsecv_mio.problem.glm_refit import RefitRows, nearly_fitted
from sparsecv_mio.trees.subsets import never

WIDE, WIDE_NEAR = 200, 1e-6  # columns from which on all of them are fitted by LAPACK, and how well
# of the way from a size's best fit to that of all columns; 0.4 twice, as ranges are shorter by then
MIXTURES = (0.4, 0.4, 0.15, 0.7)
KEPT_FITS = 1 << 17  # numbers in the points of fits that are kept, so that none is made twice
ALIKE = 8.0 * float(np.finfo(float).eps)  # of a penalty weight: copies may differ by so much, fits have room for it


@dataclass(frozen=True, eq=False)
class FittedSupports:
    """Fits of L supports: bounds of F_S, radii of balls, and points."""

    lower: FloatArray
    upper: FloatArray
    radius: FloatArray
    points: FloatArray


@dataclass(frozen=True, eq=False)
class GlmFits:
    """Training rows in centred columns, and fits on them.

    Attributes
    ----------
    problem : GlmProblem
        Centred.
    centring : Centring
    forced : tuple of int
        Columns in every support.
    copy_of : (p,) int array
        First column that each is a copy of, itself where there is none before.
    sign : (p,) array
        1, or -1 where it is that one's negative.
    varies : (p,) bool array
    rows : Rows
        The rows as the kernels take them.
    exchanged : dict
        Where local search has ended, by support and size that it went on from.
    kept : dict
        Bounds, radii and points of supports that were fitted, by their packed masks.
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

    @classmethod
    def of(cls, problem: GlmProblem, forced: IntArray | None) -> GlmFits:
        """Centre a problem and find its copies."""
        inner, W, centring = problem.centred()
        copy_of, sign = _copies(inner, problem, centring)
        columns, varies = () if forced is None else tuple(sorted(set(forced.tolist()))), np.any(inner.X, axis=0)
        return cls(inner, centring, columns, copy_of, sign, varies, _rows_of(inner, W, copy_of))

    def with_gamma(self, gamma: float) -> GlmFits:
        """Return the same rows under another gamma."""
        problem = self.problem.with_gamma(gamma)
        return replace(self, problem=problem, rows=self.rows._replace(penalty=problem.penalty))

    def without_stored_fits(self) -> GlmFits:
        """Return the same rows and gamma with no fit stored: what is computed then depends on no earlier call."""
        other = copy(self)
        other.__dict__.update(kept={}, exchanged={})
        return other

    def without(self, rows: IntArray) -> GlmFits | None:
        """Return the same columns, in which some rows have no weight: no copy of them. O(n p).

        None where columns differ by these rows alone: copies are those of the others.

        Parameters
        ----------
        rows : int array
        """
        v = self.problem.v.copy()
        v[rows] = 0.0
        if not self._told_apart(v > 0.0):
            return None
        problem = replace(self.problem, v=v)
        return replace(self, problem=problem, rows=_rows_of(problem, self.rows.W, self.copy_of))

    def _told_apart(self, kept: BoolArray) -> bool:
        """Whether in some rows no first column is constant or what another one is, up to sign and an intercept."""
        first, seen = self.problem.first, set[bytes]()
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
        """(p,) how many columns are copies of each first one, itself too; 0 for the others and constant ones."""
        return np.bincount(self.copy_of[self.varies], minlength=self.problem.p)

    @cached_property
    def inside(self) -> IntArray:
        """Places, among the first columns, of those that are in every support."""
        forced = np.array(self.forced, dtype=np.int64)
        in_all = np.unique(self.copy_of[forced[self.varies[forced]]])
        return np.searchsorted(np.flatnonzero(self.copies), in_all).astype(np.int64)

    @cached_property
    def has_copies(self) -> bool:
        """Whether there are any."""
        return bool(np.any(self.copies > 1))

    @cached_property
    def whole(self) -> GlmProblem:
        """The problem on which every support is a special one: first columns have the ridge of all copies together."""
        return replace(self.problem, weight=self.problem.weight / np.maximum(self.copies, 1))

    # -- fits -------------------------------------------------------------------------------------------------------

    def start(self) -> FloatArray:
        """(first + p,) point of no column."""
        point = np.zeros(self.problem.first + self.problem.p)
        point[: self.problem.first] = self.rows.origin
        return point

    def refit(
        self, masks: BoolArray, start: FloatArray | None = None, bar: float = np.inf,
        expired: Callable[[], bool] = never, sure: bool = True,
    ) -> FittedSupports:  # fmt: skip
        """Fit supports, each from a point; those that were fitted before are not fitted again.

        Parameters
        ----------
        masks : (L, p) bool array
        start : (first + p,) array, optional
            Where every fit begins.
        bar : float
            A support that is proved to be above it need not be fitted any better.
        expired : callable
            True leaves the others' bounds at 0 and inf.
        sure : bool
            Whether that is to be proved; else what is hardly below the bar has the bounds 0 and inf too.
        """
        count = len(masks)
        points = np.repeat((self.start() if start is None else start)[None, :], count, axis=0)
        lower, upper, radius = np.zeros(count), np.full(count, np.inf), np.full(count, np.inf)
        kept, ended = self.kept, False
        for at, name in enumerate(mask.tobytes() for mask in np.packbits(masks, axis=1)):
            one = slice(at, at + 1)
            if name in kept:
                lower[at], upper[at], radius[at], points[at] = kept[name]
            elif not (ended := ended or expired()):
                glm_newton.refit(self.rows, masks[one], points[one], bar, sure, (lower[one], upper[one], radius[one]))
                if upper[at] < np.inf and upper[at] <= bar and len(kept) * points.shape[1] < KEPT_FITS:
                    kept[name] = float(lower[at]), float(upper[at]), float(radius[at]), points[at].copy()
        return FittedSupports(lower, upper, radius, points)

    def fit(self, support: Iterable[int], start: FloatArray | None = None) -> tuple[FloatArray, float, float]:
        """Return `(point, lower, upper)` of a support: its fit, copies as one, and bounds of F_S."""
        fitted = self.refit(self.masks([support]), start)
        return fitted.points[0], float(fitted.lower[0]), float(fitted.upper[0])

    def fit_of_all(
        self, mask: BoolArray, start: FloatArray, expired: Callable[[], bool] = never
    ) -> tuple[FloatArray, float]:
        """Return `(point, lower)` of all columns that are open; not proved, so 0, where they are many.

        Parameters
        ----------
        mask : (p,) bool array
        start : (first + p,) array
        expired : callable
            Looked at between steps where columns are many; True ends with a point that is not the fit.
        """
        if np.count_nonzero(mask) <= WIDE:
            fitted = self.refit(mask[None, :], start)
            return fitted.points[0], float(fitted.lower[0])
        places, penalty = glm_newton.merged(self.rows, mask)
        problem, point = self.problem, np.zeros(len(start))
        rows = RefitRows(self.rows.W[places].T, problem.y, problem.v, penalty, problem.loss)
        point[places] = nearly_fitted(rows, start[places], WIDE_NEAR, expired)
        return point, 0.0

    def places(self, columns: IntArray) -> IntArray:
        """Places of the intercept and some columns in a point."""
        first = self.problem.first
        return np.concatenate([np.arange(first), columns + first]).astype(np.int64)

    def mask(self, support: Iterable[int]) -> BoolArray:
        """(p,) mask of a support."""
        return np.asarray(self.masks([support])[0])

    def masks(self, supports: Collection[Iterable[int]]) -> BoolArray:
        """(L, p) masks of supports."""
        masks = np.zeros((len(supports), self.problem.p), dtype=np.bool_)
        for mask, support in zip(masks, supports, strict=True):
            mask[list(support)] = True
        return masks

    def points_below(
        self, level: float, supports: Collection[frozenset[int]], expired: Callable[[], bool]
    ) -> Iterator[FloatArray]:
        """Yield points with F at most a level: some of the way from the best of some supports to all columns' fit.

        That fit itself in place of one that is above the level.
        """
        near = self.start()
        if supports:
            fitted = self.refit(self.masks(supports), expired=expired)
            near = fitted.points[int(np.argmin(fitted.upper))]
        everything, below = self.fit_of_all(self.varies, self.start(), expired)
        if below > level or expired():
            return
        for share in MIXTURES:
            point = (1.0 - share) * near + share * everything
            yield point if self.whole.objective(point) <= level * (1.0 - 1e-12) else everything

    # -- in the units of X ------------------------------------------------------------------------------------------

    def in_units_of_x(self, mask: BoolArray, point: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients and intercept of a support's point."""
        first, columns = self.problem.first, np.flatnonzero(mask & self.varies)
        of, inner = self.copy_of[columns], np.where(np.arange(len(point)) < first, point, 0.0)
        count = np.bincount(of, minlength=self.problem.p)
        inner[first + columns] = self.sign[columns] * point[first + of] / count[of]
        return self.centring.back(inner, self.problem.intercept)

    def decisions(self, masks: BoolArray, fitted: FittedSupports, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bound `a + x'b` of rows at the exact fits."""
        first = self.problem.first
        outside = np.ascontiguousarray(np.hstack([np.ones((len(X), first)), self.centring.rows(X)]).T)
        sign = np.concatenate([np.ones(first), self.sign])
        low, high = np.empty((len(masks), len(X))), np.empty((len(masks), len(X)))
        glm_newton.decisions(self.rows, masks & self.varies, fitted.points, fitted.radius, (outside, sign), (low, high))
        return low, high

    def rows_outside(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows at first columns, the middle of what copies have there, and how far copies are off the middle."""
        copies, first, columns = self.copies[self.copies > 0], self.problem.first, np.flatnonzero(self.varies)
        columns = columns[np.argsort(self.copy_of[columns], kind="stable")]
        signed = (self.centring.rows(X) * self.sign)[:, columns]
        low, high = (end.reduceat(signed, np.cumsum(copies) - copies, axis=1) for end in (np.minimum, np.maximum))
        rows = np.hstack([np.ones((len(X), first)), 0.5 * (low + high)])
        return rows, np.hstack([np.zeros((len(X), first)), 0.5 * (high - low)])


def _rows_of(problem: GlmProblem, W: FloatArray, copy_of: IntArray) -> glm_newton.Rows:
    """Return rows as the kernels take them, of columns W."""
    first = problem.first
    places = np.concatenate([np.arange(first), copy_of + first]).astype(np.int64)
    origin = float(problem.start()[0]) if first else 0.0
    return glm_newton.Rows(W, Response(problem.v, problem.y, problem.loss.code), problem.penalty, places, first, origin)


def _copies(problem: GlmProblem, given: GlmProblem, centring: Centring) -> tuple[IntArray, FloatArray]:
    """Return the first column that each one equals up to sign, under the same penalty weight, and that sign.

    Centring rounds, so columns that it leaves equal are compared as they were `given`: what tells them apart counts
    where a ridge is next to none.
    """
    p, weight = problem.p, problem.weight
    copy_of, sign, kept = np.arange(p), np.ones(p), given.v > 0.0
    seen: dict[bytes, list[int]] = {}

    def same(i: int, j: int) -> bool:
        if abs(weight[i] - weight[j]) > ALIKE * weight[i]:
            return False
        one, other = (sign[k] * given.X[kept, k] / centring.unit[k] for k in (i, j))
        less, back = one - other, one - (one - other)
        return not (np.ptp(less) or np.ptp((one - (less + back)) + (back - other)))  # a difference, and its rounding

    for j in range(p):
        column = problem.X[:, j]
        begin = column[np.argmax(column != 0.0)]
        if begin == 0.0:
            continue
        sign[j] = np.sign(begin)
        alike = seen.setdefault(blake2b(column * sign[j] + 0.0).digest(), [])  # no minus zero
        copy_of[j] = next((i for i in alike if same(i, j)), j)
        if copy_of[j] == j:
            alike.append(j)
    return copy_of, sign * sign[copy_of]

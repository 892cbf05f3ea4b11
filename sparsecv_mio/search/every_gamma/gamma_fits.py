"""Fits of given supports as functions of lam = gamma / 2: objective, slope, held-out error, and possible optima.

`FitsOverGamma` has the fits on the training rows of one fold. Let G be the Gram matrix of these rows, c the products of
the columns with the target, `G_SS = Q diag(mu) Q'` for the support S, and `a = Q'c_S`. Let yy be the sum of squares of
the target. Consider a held-out row with features v and target r, both centred. The objective f, its slope and the
residual of this row are

    f = yy - sum_k a_k^2 / (mu_k + lam),    df/dlam = ||b||^2 = sum_k a_k^2 / (mu_k + lam)^2,
    held-out residual = r - sum_k w_k / (mu_k + lam),   w_k = (v'Q)_k a_k.

Every term of these sums is monotone in lam. The values of the terms at the two ends of an interval of lam therefore
bound the residual and its derivatives on the interval.

`RowFits` has the fits for folds of one row. For a given support, one factorisation of the full data is sufficient for
all folds. Let r be the target of the held-out row x, let `z = Q'x`, and let s be the part of the leverage of x that is
due to the intercept. Define

    e = r - sum_k a_k z_k / (mu_k + lam),        g = 1 - s - sum_k z_k^2 / (mu_k + lam)

Then the held-out residual is `t = e / g`, and the training objective of the fold is `f - e^2 / g`. The slope of this
objective is `sum_k (a_k - t z_k)^2 / (mu_k + lam)^2` (theory section 5).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import TrainingMoments, row_moments, training_moments
from sparsecv_mio.thresholds import LARGEST_BYTES
from sparsecv_mio.units import CROSSING_RTOL, TIE_RTOL

BACKWARD_ERROR = 16.0  # backward error of a factorisation over (columns times rounding of the moments), with a margin
FIRST_RATIO = 1.4  # ratio of the ends of the first intervals


def first_grid(ends: tuple[float, float]) -> list[float]:
    """Return the ends of the first intervals; successive ends have a ratio of at most `FIRST_RATIO`.

    Parameters
    ----------
    ends : two floats
        Ends of the whole interval.

    Examples
    --------
    >>> first_grid((1.0, 1.69))
    [1.0, 1.3, 1.69]
    """
    steps = max(1, int(np.ceil(np.log(ends[1] / ends[0]) / np.log(FIRST_RATIO))))
    inner = np.geomspace(*ends, steps + 1)[1:-1]
    return [ends[0], *(float(lam) for lam in inner), ends[1]]


def geometric_mean(low: float, high: float) -> float:
    """Return the point at which an interval of lam is divided: the middle of its logarithms.

    Parameters
    ----------
    low, high : float
        Ends of the interval.

    Examples
    --------
    >>> geometric_mean(1.0, 4.0)
    2.0
    """
    return float(np.sqrt(low) * np.sqrt(high))


@dataclass(frozen=True, eq=False)
class FitsAtLam:
    """Fits at one lam; entries of all arrays at one index belong to the same fit.

    Attributes
    ----------
    f, f_error : (P,) arrays
        Training objectives, and bounds on their rounding errors.
    slope : (P,) array
        Derivatives `df / dlam`.
    h, h_error : (P,) arrays
        Held-out losses, and bounds on their rounding errors.
    """

    f: FloatArray
    f_error: FloatArray
    slope: FloatArray
    h: FloatArray
    h_error: FloatArray

    def select(self, which: IntArray) -> FitsAtLam:
        """Return some of the fits."""
        parts = (self.f, self.f_error, self.slope, self.h, self.h_error)
        return FitsAtLam(*(array[which] for array in parts))


@dataclass(frozen=True, eq=False)
class FitsOverGamma:
    """P fits, each of a support of s columns on one training set, at every lam at once.

    Attributes
    ----------
    fold : (P,) int array
        Index of the training set of each fit.
    support : (P, s) int array
        Columns of each support, ascending.
    mu, square : (P, s) arrays
        Eigenvalues of the Gram matrix of each support, and the squares of `a`.
    w, size : (P, m, s) arrays
        Terms of the predictions of the held-out rows, and their absolute values.
    r : (P, m) array
        Targets of these rows.
    yy, level : (P,) arrays
        Objective f without columns; length of the held-out rows on the support.
    rounding : float
        Relative backward error of a fit.
    """

    fold: IntArray
    support: IntArray
    mu: FloatArray
    square: FloatArray
    w: FloatArray
    size: FloatArray
    r: FloatArray
    yy: FloatArray
    level: FloatArray
    rounding: float

    @classmethod
    def from_training_sets(cls, sets: TrainingSets, fold: IntArray, support: IntArray) -> FitsOverGamma:
        """Factorise every fit. O(P s^2 (s + m)).

        Parameters
        ----------
        sets : TrainingSets
            Training sets.
        fold : (P,) int array
            Indices of training sets.
        support : (P, s) int array
            Columns of supports.
        """
        count, s = support.shape
        G = sets.G[fold[:, None, None], support[:, :, None], support[:, None, :]]
        mu, Q = np.linalg.eigh(G) if s and count else (np.zeros((count, s)), np.zeros((count, s, s)))
        a = np.einsum("pij,pi->pj", Q, sets.c[fold[:, None], support])
        V = np.take_along_axis(sets.V[fold], support[:, None, :], axis=2)
        w = np.matmul(V, Q) * a[:, None, :]
        rounding = BACKWARD_ERROR * (s + 2) * sets.rounding
        level = np.sqrt(np.einsum("pms,pms->p", V, V))
        return cls(
            fold, support, np.maximum(mu, 0.0), a * a, w, np.abs(w), sets.r[fold], sets.yy[fold], level, rounding
        )

    def __len__(self) -> int:
        return len(self.fold)

    def select(self, which: IntArray) -> FitsOverGamma:
        """Return some of the fits."""
        names = [field.name for field in fields(self) if field.name != "rounding"]
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def values(self, lam: float) -> FitsAtLam:
        """Return objectives, slopes and held-out errors at one lam, with bounds on their rounding errors. O(P m s)."""
        inverse = 1.0 / (self.mu + lam)
        fall = np.einsum("ps,ps->p", self.square, inverse)
        slope = np.einsum("ps,ps->p", self.square, inverse * inverse)
        residual = self.r - np.einsum("pms,ps->pm", self.w, inverse)
        least = (self.mu[:, 0] if self.mu.shape[1] else 0.0) + lam
        spectrum = self.mu.sum(axis=1) + lam, least
        return _with_rounding((self.yy, self.r), fall, slope, residual, self.level, spectrum, self.rounding)

    def curvature(self, low: float, high: float) -> FloatArray:
        """(P,): upper bounds on the second derivative of held-out errors with respect to lam on an interval. O(P m s).

        Parameters
        ----------
        low, high : float
            Bounds of the interval.
        """
        powers = _powers(self.mu, low, high)
        middle = [np.einsum("pms,ps->pm", self.w, centre) for centre, _ in powers]
        radius = [np.einsum("pms,ps->pm", self.size, half) for _, half in powers]
        residual, bend = self.r - middle[0], -2.0 * middle[2]
        around = residual * bend + np.abs(residual) * 2.0 * radius[2] + (np.abs(bend) + 2.0 * radius[2]) * radius[0]
        steepest = np.abs(middle[1]) + radius[1]
        return np.asarray(2.0 * (steepest * steepest + around).sum(axis=1)) * (1.0 + 1e-9)


def fit_at_lam(sets: TrainingSets, fold: IntArray, support: IntArray, lam: float) -> FitsAtLam:
    """Return the fits of supports (P, s) on training sets (P,) at one lam. O(P s (s^2 + m)).

    Bounds on the rounding errors are those of `FitsOverGamma.values` for a Gram matrix with eigenvalues from 0 up.

    Parameters
    ----------
    sets : TrainingSets
        Training sets.
    fold : (P,) int array
        Indices of training sets.
    support : (P, s) int array
        Columns of supports.
    lam : float
        Half of gamma.
    """
    s = support.shape[1]
    M = sets.G[fold[:, None, None], support[:, :, None], support[:, None, :]]
    M[:, np.arange(s), np.arange(s)] += lam
    c = sets.c[fold[:, None], support]
    try:
        beta = np.linalg.solve(M, c[:, :, None])[:, :, 0] if s else c
    except np.linalg.LinAlgError:  # a lam below the rounding of columns that are collinear
        return FitsOverGamma.from_training_sets(sets, fold, support).values(lam)
    V = np.take_along_axis(sets.V[fold], support[:, None, :], axis=2)
    r, yy = sets.r[fold], sets.yy[fold]
    fall, slope = np.einsum("ps,ps->p", c, beta), np.einsum("ps,ps->p", beta, beta)
    residual = r - np.einsum("pms,ps->pm", V, beta)
    spectrum = np.trace(M, axis1=1, axis2=2) + lam, lam
    level = np.sqrt(np.einsum("pms,pms->p", V, V))
    return _with_rounding((yy, r), fall, slope, residual, level, spectrum, BACKWARD_ERROR * (s + 2) * sets.rounding)


def _with_rounding(
    target: tuple[FloatArray, FloatArray],
    fall: FloatArray,
    slope: FloatArray,
    residual: FloatArray,
    level: FloatArray,
    spectrum: tuple[FloatArray, FloatArray | float],
    rounding: float,
) -> FitsAtLam:
    """Bound the rounding errors of fits whose `G + lam I` has a given trace and a lower bound on its eigenvalues.

    `target` has y'y in training and the held-out targets; `level` is the norm of the held-out rows. A backward error E
    of the Gram matrix changes f by b'Eb and b by (G + lam I)^{-1} E b. A backward error e of c changes f by 2 e'b and b
    by (G + lam I)^{-1} e, with ||c|| <= sqrt(yy tr G).
    """
    (yy, r), (top, least), length = target, spectrum, np.sqrt(slope)
    push = top * length + np.sqrt(yy * top)
    f_error = rounding * (yy + np.abs(fall) + push * length)
    moved = rounding * (push / least + length) * level
    moved += rounding * np.sqrt(np.einsum("pm,pm->p", r, r))
    h = np.einsum("pm,pm->p", residual, residual)
    return FitsAtLam(yy - fall, f_error, slope, h, moved * (2.0 * np.sqrt(h) + moved))


def find_run_starts(fold: IntArray) -> IntArray:
    """Return the positions where runs of equal numbers start."""
    return np.flatnonzero(np.concatenate(([True], fold[1:] != fold[:-1])))


def kinks(
    ends: tuple[float, float], values: tuple[FloatArray, FloatArray], slopes: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return where the tangents at both ends of an interval meet, as a share of the way, and how far above the chord.

    Parameters
    ----------
    ends : two floats
        Ends of the interval.
    values, slopes : two (K,) arrays each
        Values and slopes of K concave functions at the ends.

    Returns
    -------
    share, excess : (K,) arrays
        Share of the way, and height. No concave function with these values and slopes exceeds its chord by more than
        `excess`.
    """
    length = ends[1] - ends[0]
    rise = values[1] - values[0]
    before, after = np.maximum(slopes[0] * length - rise, 0.0), np.maximum(rise - slopes[1] * length, 0.0)
    total = before + after
    share = np.where(total > 0.0, after / np.where(total > 0.0, total, 1.0), 0.5)
    return share, share * before


@dataclass(frozen=True, eq=False)
class Envelope:
    """The smallest objective of each fold at both ends of an interval, among fits sorted by fold.

    Attributes
    ----------
    starts, member : (K,), (P,) int arrays
        Position of the first fit of each fold, and position of the fold of each fit.
    left, right : (K,) arrays
        Smallest objectives at the ends.
    share, excess : (K,) arrays
        Results of `kinks` for the smallest objective.
    room : (K,) array
        Excess over the smallest objective up to which a fit counts as optimal: rounding errors of objectives at the
        ends, and the tolerance of ties.
    """

    starts: IntArray
    member: IntArray
    left: FloatArray
    right: FloatArray
    share: FloatArray
    excess: FloatArray
    room: FloatArray

    @classmethod
    def from_fits(
        cls, ends: tuple[float, float], fold: IntArray, left: FitsAtLam, right: FitsAtLam, tie_rtol: float = TIE_RTOL
    ) -> Envelope:
        """Find the smallest objectives at both ends.

        Parameters
        ----------
        ends : two floats
            Ends of the interval.
        fold : (P,) int array
            Ascending indices of folds.
        left, right : FitsAtLam
            Values of the P fits at the ends.
        tie_rtol : float
            Tolerance of ties, relative to the objective.
        """
        starts = find_run_starts(fold)
        member = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(fold))))
        least = [np.minimum.reduceat(side.f, starts) for side in (left, right)]
        slopes = (
            np.minimum.reduceat(np.where(left.f == least[0][member], left.slope, np.inf), starts),
            np.maximum.reduceat(np.where(right.f == least[1][member], right.slope, -np.inf), starts),
        )
        share, excess = kinks(ends, (least[0], least[1]), slopes)
        error = np.maximum.reduceat(np.maximum(left.f_error, right.f_error), starts)
        room = 4.0 * error + tie_rtol * np.abs(least[1])  # the smallest objective grows with lam
        return cls(starts, member, least[0], least[1], share, excess, room)

    def may_win(self, left: FitsAtLam, right: FitsAtLam) -> BoolArray:
        """(P,): True for a fit that may be the smallest of its fold anywhere on the interval.

        By concavity the objective of a fit is above its chord, and the smallest objective is below the tangents at both
        ends. So a fit remains only if its chord is below these tangents, plus `room`, at an end or where they meet.
        """
        over_left, over_right = left.f - self.left[self.member], right.f - self.right[self.member]
        share, room = self.share[self.member], self.room[self.member]
        at_kink = (1.0 - share) * over_left + share * over_right - self.excess[self.member]
        return np.asarray(np.minimum(np.minimum(over_left, over_right), at_kink) <= room)


Ball = tuple[FloatArray, FloatArray]  # centres and radii


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """K folds of one row each, in the coordinates of `TrainingSets`.

    Attributes
    ----------
    G, c, yy : (q, q), (q,), float
        Moments of all rows.
    V, r : (K, q), (K,) arrays
        Row of each fold about the means of all rows.
    share : (K,) array
        Part of the leverage of each row that is due to the intercept.
    rounding : float
        Relative rounding of the entries of G and c.
    """

    G: FloatArray
    c: FloatArray
    yy: float
    V: FloatArray
    r: FloatArray
    share: FloatArray
    rounding: float

    @property
    def k(self) -> int:
        """Number of folds."""
        return len(self.r)

    @property
    def scored_whole(self) -> BoolArray:
        """(K,): True, since every fold scores its held-out row."""
        return np.ones(self.k, dtype=bool)

    @classmethod
    def from_problem(
        cls, problem: SparseProblem, rows: tuple[FloatArray, FloatArray], share: FloatArray
    ) -> LeftOutRows:
        """Return the rows of all folds in these coordinates.

        Parameters
        ----------
        problem : SparseProblem
            Problem of all rows, in standard coordinates.
        rows : (K, q), (K,) arrays
            Row of each fold about the means of all rows.
        share : (K,) array
            Part of the leverage of each row that is due to the intercept.
        """
        unit = 1.0 / np.sqrt(problem.weight)
        G, c = problem.Q * unit[:, None] * unit, problem.c * unit
        return cls(G, c, problem.yy, rows[0] * unit, rows[1], share, problem.rounding)

    def values(self, fold: IntArray, support: IntArray, lam: float) -> FitsAtLam:
        """Return objectives, slopes and held-out errors of some supports in some folds. O(P s^2).

        Parameters
        ----------
        fold : (P,) int array
            Indices of folds.
        support : (P, s) int array
            Columns of supports.
        lam : float
            Half of gamma.
        """
        return self.fits(fold, support).values(lam)

    def fits(self, fold: IntArray, support: IntArray) -> RowFits:
        """Return the fits of some supports in some folds, at every lam. O(P s^2).

        Parameters
        ----------
        fold : (P,) int array
            Indices of folds.
        support : (P, s) int array
            Columns of supports.
        """
        s = support.shape[1]
        _, first, which = np.unique(row_keys(support), return_index=True, return_inverse=True)
        S, which = support[first], which.reshape(-1)
        mu, Q = np.zeros(S.shape), np.zeros((*S.shape, s))
        if s:
            mu, Q = np.linalg.eigh(self.G[S[:, :, None], S[:, None, :]])
        a = np.einsum("lij,li->lj", Q, self.c[S])
        x = self.V[fold[:, None], support]
        z = np.empty_like(x)
        order = np.argsort(which, kind="stable")
        for same in np.split(order, np.flatnonzero(np.diff(which[order])) + 1):
            z[same] = x[same] @ Q[which[same[:1]]].reshape(s, s) if len(same) else 0.0
        return RowFits(
            fold, support, np.maximum(mu, 0.0)[which], a[which], z, self.r[fold], self.share[fold],
            np.full(len(fold), self.yy), np.full(len(fold), BACKWARD_ERROR * (s + 2) * self.rounding),
        )  # fmt: skip


def row_keys(table: IntArray) -> NDArray[Any]:
    """Return a key for each row of small whole numbers; only equal rows have the same key.

    Examples
    --------
    >>> row_keys(np.array([[0, 2], [1, 2], [0, 2]])).tolist()
    [5, 6, 5]
    """
    if table.shape[1] == 0:
        return np.zeros(len(table), dtype=np.int64)
    if int(table.max(initial=0)) < np.iinfo(np.int64).bits - 1:
        return np.asarray(np.left_shift(np.int64(1), table).sum(axis=1))
    rows = np.ascontiguousarray(table)
    return rows.view(f"V{rows.itemsize * rows.shape[1]}").reshape(-1)


@dataclass(frozen=True, eq=False)
class RowFits:
    """P fits, each of a support of s columns in a fold of one row; the module docstring has the formulas.

    Attributes
    ----------
    fold : (P,) int array
        Index of the fold of each fit.
    support : (P, s) int array
        Columns of each support, ascending.
    mu, a, z : (P, s) arrays
        Eigenvalues of the Gram matrix, and terms of the targets and of the held-out row.
    r, share, yy, rounding : (P,) arrays
        Target of the held-out row, part of its leverage by the intercept, f without columns, relative backward error.
    """

    fold: IntArray
    support: IntArray
    mu: FloatArray
    a: FloatArray
    z: FloatArray
    r: FloatArray
    share: FloatArray
    yy: FloatArray
    rounding: FloatArray

    def __len__(self) -> int:
        return len(self.fold)

    def select(self, which: IntArray) -> RowFits:
        """Return some of the fits."""
        return RowFits(*(getattr(self, declared_field.name)[which] for declared_field in fields(self)))

    def values(self, lam: float) -> FitsAtLam:
        """Return objectives, slopes and held-out errors at one lam, with bounds on their rounding errors. O(P s)."""
        inverse = 1.0 / (self.mu + lam)
        b, u = self.a * inverse, self.z * inverse
        e = self.r - _dot(b, self.z)
        g = 1.0 - self.share - _dot(u, self.z)
        fall = _dot(b, self.a)
        top = self.mu.sum(axis=1) + lam
        least = (self.mu[:, 0] if self.mu.shape[1] else 0.0) + lam
        length, reach, size = (np.sqrt(_dot(v, v)) for v in (b, u, self.z))
        push = top * length + np.sqrt(self.yy * top)
        e_error = self.rounding * (np.abs(self.r) + size * (push / least + length))
        g_error = self.rounding * (1.0 + reach * (top * reach + 2.0 * size))
        sure = g > 2.0 * g_error
        safe = np.where(sure, g, 1.0)
        t = e / safe
        t_error = np.where(sure, 2.0 * (e_error + np.abs(t) * g_error) / safe, np.inf)
        f_error = self.rounding * (self.yy + fall + push * length) + (np.abs(t) + t_error) * (
            2.0 * e_error + (np.abs(t) + t_error) * g_error
        )
        slope = _dot(b - u * t[:, None], b - u * t[:, None])
        h_error = t_error * (2.0 * np.abs(t) + t_error)
        return FitsAtLam(self.yy - fall - e * t, f_error, slope, t * t, h_error)

    def is_accurate(self, lam: float) -> bool:
        """Return True if rounding errors are small at one lam and curvatures are finite.

        They are large if a fit of all rows almost interpolates a held-out row.
        """
        values = self.values(lam)
        is_small = values.h_error.sum() <= CROSSING_RTOL * values.h.sum()
        return bool(is_small and np.isfinite(self.curvature(lam, lam)).all())

    def curvature(self, low: float, high: float) -> FloatArray:
        """(P,): upper bounds on the second derivative of held-out errors with respect to lam on an interval. O(P s).

        Parameters
        ----------
        low, high : float
            Bounds of the interval.
        """
        powers = _powers(self.mu, low, high)
        mixed, square = self.a * self.z, self.z * self.z
        size = np.abs(mixed)
        e, e1, e2 = ((_dot(mixed, centre), _dot(size, radius)) for centre, radius in powers)
        g, g1, g2 = ((_dot(square, centre), _dot(square, radius)) for centre, radius in powers)
        least = 1.0 - self.share - g[0] - g[1]
        most = 1.0 - self.share - g[0] + g[1]
        safe = np.where(least > 0.0, least, 1.0)
        over = 0.5 * (1.0 / safe + 1.0 / most), 0.5 * (1.0 / safe - 1.0 / most)
        t = _times((self.r - e[0], e[1]), over)
        t1 = _times(_minus(e1, _times(t, g1)), over)
        bend = _minus(_minus(_scale_ball(e2, -2.0), _scale_ball(_times(t1, g1), 2.0)), _times(t, _scale_ball(g2, -2.0)))
        t2 = _times(bend, over)
        around = _times(t, t2)
        steepest = np.abs(t1[0]) + t1[1]
        curvature = 2.0 * (steepest * steepest + around[0] + around[1]) + 1e-9 * np.abs(around[0])
        return np.where(least > 1e-6, curvature, np.inf)


def _powers(mu: FloatArray, low: float, high: float) -> list[Ball]:
    """Enclose the first three powers of `1 / (mu + lam)` for every lam of an interval."""
    first, last = 1.0 / (mu + low), 1.0 / (mu + high)
    return [(0.5 * (first**d + last**d), 0.5 * (first**d - last**d)) for d in (1, 2, 3)]


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.einsum("ps,ps->p", a, b)


def _times(a: Ball, b: Ball) -> Ball:
    return a[0] * b[0], np.abs(a[0]) * b[1] + np.abs(b[0]) * a[1] + a[1] * b[1]


def _minus(a: Ball, b: Ball) -> Ball:
    return a[0] - b[0], a[1] + b[1]


def _scale_ball(a: Ball, factor: float) -> Ball:
    return factor * a[0], abs(factor) * a[1]


@dataclass(frozen=True, eq=False)
class TrainingSets:
    """K inner problems at any gamma: `f(S) = yy - c_S' (G_SS + lam I)^{-1} c_S`, with the rows that each scores.

    Attributes
    ----------
    problems : tuple of SparseProblem
        The same problems in standard coordinates, at gamma 1.
    G, c, yy : (K, q, q), (K, q), (K,) arrays
        Moments of the training sets, in units of the penalty.
    V, r : (K, m, q), (K, m) arrays
        Held-out rows about the means of the training rows, each times the root of its weight; zero beyond the rows of a
        set with fewer than m.
    scored_whole : (K,) bool array
        True if every row outside of a training set is scored.
    rounding : float
        Relative rounding of the entries of G and c.
    """

    problems: tuple[SparseProblem, ...]
    G: FloatArray
    c: FloatArray
    yy: FloatArray
    V: FloatArray
    r: FloatArray
    scored_whole: BoolArray
    rounding: float

    @property
    def k(self) -> int:
        """Number of training sets."""
        return len(self.problems)

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.c.shape[1])

    def values(self, fold: IntArray, support: IntArray, lam: float) -> FitsAtLam:
        """Return objectives, slopes and held-out errors of some supports.

        Parameters
        ----------
        fold : (P,) int array
            Indices of training sets.
        support : (P, s) int array
            Columns of supports.
        lam : float
            Half of gamma.
        """
        return fit_at_lam(self, fold, support, lam)

    def fits(self, fold: IntArray, support: IntArray) -> FitsOverGamma:
        """Return the fits of supports (P, s) on training sets (P,) at every lam."""
        return FitsOverGamma.from_training_sets(self, fold, support)

    @classmethod
    def from_folds(cls, data: StandardData, folds: FoldPlan) -> TrainingSets:
        """Return the training rows and scored rows of every fold.

        Raises
        ------
        BadInput
            If the moments of all folds would take more than 2 GB.
        """
        most = int(folds.sizes.max())
        if 16 * folds.k * data.q * (data.q + most) > LARGEST_BYTES:
            raise BadInput(
                f"gammas LO..HI: {folds.k} folds of {data.q} columns take more than 2 GB; give fewer folds, or a grid"
            )
        V, r = np.zeros((folds.k, most, data.q)), np.zeros((folds.k, most))
        problems = _problems(data, (moments for _, moments in training_moments(data, folds)))
        for fold, problem in enumerate(problems):
            rows = folds.scored_rows(fold)
            V[fold, : len(rows)], r[fold, : len(rows)] = problem.centre_rows(data, rows)
        return cls._from_problems(problems, V, r, folds.scores_all_left_out)

    @classmethod
    def from_full_data(cls, data: StandardData) -> TrainingSets:
        """Return all rows as the only training set, with no row held out."""
        problems = _problems(data, [row_moments(data, slice(0, data.n))])
        return cls._from_problems(problems, np.zeros((1, 0, data.q)), np.zeros((1, 0)), np.zeros(1, dtype=bool))

    @classmethod
    def _from_problems(
        cls, problems: tuple[SparseProblem, ...], V: FloatArray, r: FloatArray, whole: BoolArray
    ) -> TrainingSets:
        unit = 1.0 / np.sqrt(problems[0].weight)
        return cls(
            problems=problems,
            G=np.stack([problem.Q * unit[:, None] * unit for problem in problems]),
            c=np.stack([problem.c * unit for problem in problems]),
            yy=np.array([problem.yy for problem in problems]),
            V=V * unit,
            r=r,
            scored_whole=whole,
            rounding=max(problem.rounding for problem in problems),
        )


def _problems(data: StandardData, moments: Iterable[TrainingMoments]) -> tuple[SparseProblem, ...]:
    return tuple(moments_of.problem(data, 1.0) for moments_of in moments)

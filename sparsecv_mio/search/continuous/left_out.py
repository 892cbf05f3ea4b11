r"""Folds of one row, from the fit of a support on all rows: every number of a fold as a function of lam.

With `G_SS = Q diag(mu) Q'` on all rows, `a = Q'c_S`, `z = Q'x` for the row x, s its share of the intercept, and sums of

    e = r - sum_k a_k z_k / (mu_k + lam),        g = 1 - s - sum_k z_k^2 / (mu_k + lam)

the fold's held-out residual is `t = e / g`, its objective `f - e^2 / g` and its slope `sum_k (a_k - t z_k)^2 / (mu_k +
lam)^2` (theory section 5). One factorisation a support serves all folds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.continuous.fits import ROUNDING, Values

MOST_BITS = 62  # columns up to which a support is one number

Ball = tuple[FloatArray, FloatArray]  # centres and radii


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """K folds of one row each, in the coordinates of `TrainingSets`.

    Attributes
    ----------
    G, c, yy : (q, q), (q,), float
        Of all rows.
    V, r : (K, q), (K,) arrays
        The row of each fold about the means of all rows.
    share : (K,) array
        What the intercept adds to its leverage.
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
    _known: dict[int, _Factors] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """Number of folds."""
        return len(self.r)

    @property
    def scored_whole(self) -> BoolArray:
        """(K,): every fold scores the row that it leaves out."""
        return np.ones(self.k, dtype=bool)

    @classmethod
    def of(cls, problem: SparseProblem, rows: tuple[FloatArray, FloatArray], share: FloatArray) -> LeftOutRows:
        """Bring all rows to these coordinates.

        Parameters
        ----------
        problem : SparseProblem
            Of all rows, in standard coordinates.
        rows : (K, q), (K,) arrays
            The row of each fold about their means.
        share : (K,) array
        """
        unit = 1.0 / np.sqrt(problem.weight)
        G, c = problem.Q * unit[:, None] * unit, problem.c * unit
        return cls(G, c, problem.yy, rows[0] * unit, rows[1], share, problem.rounding)

    def values(self, fold: IntArray, support: IntArray, lam: float) -> Values:
        """Objectives, slopes and held-out errors of some supports in some folds. O(P s^2).

        Parameters
        ----------
        fold : (P,) int array
        support : (P, s) int array
        lam : float
        """
        return self.fits(fold, support).values(lam)

    def fits(self, fold: IntArray, support: IntArray) -> RowFits:
        """Fits of some supports in some folds, at every lam. O(P s^2).

        Parameters
        ----------
        fold : (P,) int array
        support : (P, s) int array
        """
        s = support.shape[1]
        known = self._known.setdefault(s, _Factors.none(s))
        which = known.numbers(support, self.G, self.c)
        x = self.V[fold[:, None], support]
        z = np.empty_like(x)
        order = np.argsort(which, kind="stable")
        for same in np.split(order, np.flatnonzero(np.diff(which[order])) + 1):
            z[same] = x[same] @ known.Q[which[same[:1]]].reshape(s, s) if len(same) else 0.0
        return RowFits(
            fold, support, known.mu[which], known.a[which], z, self.r[fold], self.share[fold],
            np.full(len(fold), self.yy), np.full(len(fold), ROUNDING * (s + 2) * self.rounding),
        )  # fmt: skip


def row_keys(table: IntArray) -> NDArray[Any]:
    """One key a row of small whole numbers, the same for equal rows only.

    Examples
    --------
    >>> row_keys(np.array([[0, 2], [1, 2], [0, 2]])).tolist()
    [5, 6, 5]
    """
    if table.shape[1] == 0:
        return np.zeros(len(table), dtype=np.int64)
    if int(table.max(initial=0)) < MOST_BITS:
        return np.asarray(np.left_shift(np.int64(1), table).sum(axis=1))
    rows = np.ascontiguousarray(table)
    return rows.view(f"V{rows.itemsize * rows.shape[1]}").reshape(-1)


@dataclass(eq=False)
class _Factors:
    """Factorisations of supports of one size, each made once: `G_SS = Q diag(mu) Q'`, `a = Q'c_S`."""

    mu: FloatArray
    Q: FloatArray
    a: FloatArray
    number: dict[bytes, int]

    @classmethod
    def none(cls, s: int) -> _Factors:
        return cls(np.zeros((0, s)), np.zeros((0, s, s)), np.zeros((0, s)), {})

    def numbers(self, support: IntArray, G: FloatArray, c: FloatArray) -> IntArray:
        """Return the places (P,) of supports (P, s) among the factorisations, made where they are missing."""
        _, first, inverse = np.unique(row_keys(support), return_index=True, return_inverse=True)
        distinct = np.ascontiguousarray(support[first])
        keys = [row.tobytes() for row in distinct]
        new = [i for i, key in enumerate(keys) if key not in self.number]
        if new:
            for i in new:
                self.number[keys[i]] = len(self.number)
            S = distinct[new]
            mu, Q = np.zeros(S.shape), np.zeros((*S.shape, S.shape[1]))
            if S.shape[1]:
                mu, Q = np.linalg.eigh(G[S[:, :, None], S[:, None, :]])
            self.mu = np.concatenate((self.mu, np.maximum(mu, 0.0)))
            self.Q = np.concatenate((self.Q, Q))
            self.a = np.concatenate((self.a, np.einsum("lij,li->lj", Q, c[S])))
        places = np.array([self.number[key] for key in keys], dtype=np.int64)
        return np.asarray(places[inverse.reshape(-1)])


@dataclass(frozen=True, eq=False)
class RowFits:
    """P fits, each of a support of s columns in a fold of one row; see the head of this module.

    Attributes
    ----------
    fold : (P,) int array
    support : (P, s) int array
    mu, a, z : (P, s) arrays
    r, share, yy, rounding : (P,) arrays
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

    def at(self, which: IntArray) -> RowFits:
        """Return some of the fits."""
        return RowFits(*(getattr(self, one.name)[which] for one in fields(self)))

    def values(self, lam: float) -> Values:
        """Objectives, slopes and held-out errors at one lam, with bounds on their rounding. O(P s)."""
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
        return Values(self.yy - fall - e * t, f_error, slope, t * t, h_error)

    def curvature(self, low: float, high: float) -> FloatArray:
        """(P,): at least the second derivative of every held-out error by lam, anywhere in an interval. O(P s).

        Parameters
        ----------
        low, high : float
            Ends of the interval.
        """
        first, last = 1.0 / (self.mu + low), 1.0 / (self.mu + high)
        powers = [(0.5 * (first**d + last**d), 0.5 * (first**d - last**d)) for d in (1, 2, 3)]
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
        bend = _minus(_minus(_scaled(e2, -2.0), _scaled(_times(t1, g1), 2.0)), _times(t, _scaled(g2, -2.0)))
        t2 = _times(bend, over)
        around = _times(t, t2)
        steepest = np.abs(t1[0]) + t1[1]
        found = 2.0 * (steepest * steepest + around[0] + around[1]) + 1e-9 * np.abs(around[0])
        return np.where(least > 1e-6, found, np.inf)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.einsum("ps,ps->p", a, b)


def _times(a: Ball, b: Ball) -> Ball:
    return a[0] * b[0], np.abs(a[0]) * b[1] + np.abs(b[0]) * a[1] + a[1] * b[1]


def _minus(a: Ball, b: Ball) -> Ball:
    return a[0] - b[0], a[1] + b[1]


def _scaled(a: Ball, factor: float) -> Ball:
    return factor * a[0], abs(factor) * a[1]

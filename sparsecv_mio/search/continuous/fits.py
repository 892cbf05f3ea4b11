r"""Fits of given supports as functions of lam: objective, slope and held-out error, and curvature on an interval.

With `G_SS = Q diag(mu) Q'` on the training rows of a fold and `a = Q'c_S`, all for `lam = gamma / 2`,

    f = yy - sum_k a_k^2 / (mu_k + lam),    df/dlam = ||b||^2 = sum_k a_k^2 / (mu_k + lam)^2,
    held-out residual = r - sum_k w_k / (mu_k + lam),   w_k = (v'Q)_k a_k.

Every term is monotone in lam, so sums over the terms at both ends enclose residual and derivatives on an interval.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray

ROUNDING = 16.0  # times the columns and the rounding of the moments: backward error of a factorisation, with room


class Sets(Protocol):
    """What fits are made of: see `training_sets.TrainingSets`."""

    @property
    def G(self) -> FloatArray: ...  # noqa: D102
    @property
    def c(self) -> FloatArray: ...  # noqa: D102
    @property
    def yy(self) -> FloatArray: ...  # noqa: D102
    @property
    def V(self) -> FloatArray: ...  # noqa: D102
    @property
    def r(self) -> FloatArray: ...  # noqa: D102
    @property
    def rounding(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Values:
    """Fits at one lam, each entry with that of the same fit.

    Attributes
    ----------
    f, f_error : (P,) arrays
        Training objectives and bounds on their rounding.
    slope : (P,) array
        `df / dlam`.
    h, h_error : (P,) arrays
        Held-out sums of squares and bounds on their rounding.
    """

    f: FloatArray
    f_error: FloatArray
    slope: FloatArray
    h: FloatArray
    h_error: FloatArray

    def at(self, which: IntArray) -> Values:
        """Return some of them."""
        parts = (self.f, self.f_error, self.slope, self.h, self.h_error)
        return Values(*(part[which] for part in parts))


@dataclass(frozen=True, eq=False)
class Fits:
    """P fits, each of a support of s columns on one training set, at every lam at once.

    Attributes
    ----------
    fold : (P,) int array
        Training set of each.
    support : (P, s) int array
        Its columns, ascending.
    mu, square : (P, s) arrays
        Eigenvalues of its Gram matrix and the squares of `a`.
    w, size : (P, m, s) arrays
        Terms of the predictions of the rows held out, and their absolute values.
    r : (P, m) array
        Targets of these rows.
    yy, level : (P,) arrays
        f without columns; length of the held-out rows on the support.
    rounding : float
        Backward error of a fit, relative.
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
    def of(cls, sets: Sets, fold: IntArray, support: IntArray) -> Fits:
        """Factorise every fit. O(P s^2 (s + m)).

        Parameters
        ----------
        sets : Sets
        fold : (P,) int array
        support : (P, s) int array
        """
        count, s = support.shape
        G = sets.G[fold[:, None, None], support[:, :, None], support[:, None, :]]
        mu, Q = np.linalg.eigh(G) if s and count else (np.zeros((count, s)), np.zeros((count, s, s)))
        a = np.einsum("pij,pi->pj", Q, sets.c[fold[:, None], support])
        V = np.take_along_axis(sets.V[fold], support[:, None, :], axis=2)
        w = np.matmul(V, Q) * a[:, None, :]
        rounding = ROUNDING * (s + 2) * sets.rounding
        level = np.sqrt(np.einsum("pms,pms->p", V, V))
        return cls(
            fold, support, np.maximum(mu, 0.0), a * a, w, np.abs(w), sets.r[fold], sets.yy[fold], level, rounding
        )

    def __len__(self) -> int:
        return len(self.fold)

    def at(self, which: IntArray) -> Fits:
        """Return some of the fits."""
        names = [field.name for field in fields(self) if field.name != "rounding"]
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def values(self, lam: float) -> Values:
        """Objectives, slopes and held-out errors at one lam, with bounds on their rounding. O(P m s).

        Notes
        -----
        A backward error E of the Gram matrix moves f by b'Eb and b by (G + lam I)^{-1} E b; one e of c by 2 e'b and
        (G + lam I)^{-1} e, with ||c|| <= sqrt(yy tr G).
        """
        inverse = 1.0 / (self.mu + lam)
        fall = np.einsum("ps,ps->p", self.square, inverse)
        slope = np.einsum("ps,ps->p", self.square, inverse * inverse)
        residual = self.r - np.einsum("pms,ps->pm", self.w, inverse)
        h = np.einsum("pm,pm->p", residual, residual)
        top = self.mu.sum(axis=1) + lam
        length = np.sqrt(slope)
        push = top * length + np.sqrt(self.yy * top)
        f_error = self.rounding * (self.yy + fall + push * length)
        least = (self.mu[:, 0] if self.mu.shape[1] else 0.0) + lam
        moved = self.rounding * (push / least + length) * self.level
        moved += self.rounding * np.sqrt(np.einsum("pm,pm->p", self.r, self.r))
        return Values(self.yy - fall, f_error, slope, h, moved * (2.0 * np.sqrt(h) + moved))

    def curvature(self, low: float, high: float) -> FloatArray:
        """(P,): at least the second derivative of every held-out error by lam, anywhere in an interval. O(P m s).

        Parameters
        ----------
        low, high : float
            Ends of the interval.
        """
        first, last = 1.0 / (self.mu + low), 1.0 / (self.mu + high)
        powers = [(0.5 * (first**d + last**d), 0.5 * (first**d - last**d)) for d in (1, 2, 3)]
        middle = [np.einsum("pms,ps->pm", self.w, centre) for centre, _ in powers]
        radius = [np.einsum("pms,ps->pm", self.size, half) for _, half in powers]
        residual, bend = self.r - middle[0], -2.0 * middle[2]
        around = residual * bend + np.abs(residual) * 2.0 * radius[2] + (np.abs(bend) + 2.0 * radius[2]) * radius[0]
        steepest = np.abs(middle[1]) + radius[1]
        return np.asarray(2.0 * (steepest * steepest + around).sum(axis=1)) * (1.0 + 1e-9)


def values_at(sets: Sets, fold: IntArray, support: IntArray, lam: float) -> Values:
    """Fits of supports (P, s) on training sets (P,) at one lam. O(P s (s^2 + m)).

    Bounds on the rounding are those of `Fits.values` for a Gram matrix with eigenvalues from 0 up.

    Parameters
    ----------
    sets : Sets
    fold : (P,) int array
    support : (P, s) int array
    lam : float
    """
    s = support.shape[1]
    M = sets.G[fold[:, None, None], support[:, :, None], support[:, None, :]]
    M[:, np.arange(s), np.arange(s)] += lam
    c = sets.c[fold[:, None], support]
    try:
        beta = np.linalg.solve(M, c[:, :, None])[:, :, 0] if s else c
    except np.linalg.LinAlgError:  # a lam below the rounding of columns that are collinear
        return Fits.of(sets, fold, support).values(lam)
    V = np.take_along_axis(sets.V[fold], support[:, None, :], axis=2)
    r, yy = sets.r[fold], sets.yy[fold]
    fall, slope = np.einsum("ps,ps->p", c, beta), np.einsum("ps,ps->p", beta, beta)
    residual = r - np.einsum("pms,ps->pm", V, beta)
    h = np.einsum("pm,pm->p", residual, residual)
    rounding = ROUNDING * (s + 2) * sets.rounding
    top, length = np.trace(M, axis1=1, axis2=2) + lam, np.sqrt(slope)
    push = top * length + np.sqrt(yy * top)
    f_error = rounding * (yy + np.abs(fall) + push * length)
    moved = rounding * (push / lam + length) * np.sqrt(np.einsum("pms,pms->p", V, V))
    moved += rounding * np.sqrt(np.einsum("pm,pm->p", r, r))
    return Values(yy - fall, f_error, slope, h, moved * (2.0 * np.sqrt(h) + moved))

"""A support in every fold at once, from its fit on all rows: objectives from above, and held-out losses.

Newton's method without the rows of a fold begins at the fit on all rows, with the Hessian there less what these rows
add; a few steps with the same factor follow. The objective at any point bounds the least one from above, so nothing has
to converge (docs/theory/glm.md, section 9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.kernels.glm_newton import merged
from sparsecv_mio.trees.glm_fits import GlmFits

STEPS = 3  # with one factor
MOST_STEPS, SETTLED = 20, 2e-8  # where held-out losses are to be those of the fits; of a margin
AT_ONCE = 1 << 20  # margins held at once
EPS = float(np.finfo(float).eps)


class LeftOut:
    """Folds of some rows.

    Parameters
    ----------
    fits : GlmFits
        Of all rows.
    training : (K, n) bool array
        Rows of each fold's training set; n counts rows of weight 0 too.
    scored : sequence of int arrays
        Rows that each fold scores.
    weights : (n,) array
    """

    def __init__(self, fits: GlmFits, training: BoolArray, scored: Sequence[IntArray], weights: FloatArray) -> None:
        kept = weights > 0.0  # fits have no others
        place = np.cumsum(kept) - 1
        self.fits, self.training = fits, np.ascontiguousarray(training[:, kept])
        self.scored = [place[rows[kept[rows]]] for rows in scored]

    def with_fits(self, fits: GlmFits) -> LeftOut:
        """Return the same folds of the same rows with other fits of them all.

        Parameters
        ----------
        fits : GlmFits
        """
        other = copy(self)
        other.fits = fits
        return other

    def values(
        self, masks: Sequence[BoolArray], points: Sequence[FloatArray], expired: Callable[[], bool]
    ) -> tuple[FloatArray, FloatArray]:
        """Return (L, K) upper bounds of least objectives in training sets, and held-out losses at nearly the fits.

        Parameters
        ----------
        masks, points : sequences of (p,) bool arrays and (first + p,) arrays
            Supports, and fits on all rows.
        expired : callable
            True leaves inf and nan.
        """
        shape = len(masks), len(self.training)
        values, held = np.full(shape, np.inf), np.full(shape, np.nan)
        step = max(AT_ONCE // self.training.shape[1], 1)
        for row, (mask, point) in enumerate(zip(masks, points, strict=True)):
            if expired():
                break
            places, penalty = merged(self.fits.rows, mask)
            about = _About(self.fits, places, penalty, point[places])
            for begin in range(0, shape[1], step):
                here = slice(begin, begin + step)
                values[row, here], held[row, here] = about.folds(self.training[here], self.scored[here])
        return values, held

    def held_out(self, mask: BoolArray, point: FloatArray, folds: IntArray) -> FloatArray:
        """Return (F,) held-out losses of some folds at the fits themselves; nan where the steps do not get there.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            A support, and its fit on all rows.
        folds : (F,) int array
        """
        places, penalty = merged(self.fits.rows, mask)
        about, held = _About(self.fits, places, penalty, point[places]), np.full(len(folds), np.nan)
        step = max(AT_ONCE // self.training.shape[1], 1)
        for begin in range(0, len(folds), step):
            here = folds[begin : begin + step]
            held[begin : begin + step] = about.settled(self.training[here], [self.scored[fold] for fold in here])
        return held


class _About:
    """Some columns about their fit on all rows."""

    def __init__(self, fits: GlmFits, places: IntArray, penalty: FloatArray, theta: FloatArray) -> None:
        self.Z, self.v, self.penalty, self.theta = fits.rows.W[places], fits.problem.v, penalty, theta
        self.y, self.loss = fits.problem.y, fits.problem.loss
        self.curvature = self.loss.curvatures(theta @ self.Z, self.y, self.v)
        self.H = (self.Z * self.curvature) @ self.Z.T
        self.H.flat[:: len(theta) + 1] += 2.0 * penalty

    def folds(self, training: BoolArray, scored: Sequence[IntArray]) -> tuple[FloatArray, FloatArray]:
        """Return objectives from above and held-out losses of some folds."""
        factors = [self._factor(np.flatnonzero(~rows)) for rows in training]
        thetas = np.repeat(self.theta[None, :], len(training), axis=0)
        values, best, held = np.full(len(training), np.inf), thetas.copy(), np.full(len(training), np.nan)
        weights = self.v * training
        for step in range(STEPS + 1):
            margins = thetas @ self.Z
            losses = self.loss.losses(margins, self.y)
            reached = np.einsum("ij,ij->i", weights, losses) + thetas**2 @ self.penalty
            better = reached < values
            values[better], best[better] = reached[better], thetas[better]
            for fold in np.flatnonzero(better).tolist():
                rows = scored[fold]
                held[fold] = float(self.v[rows] @ losses[fold, rows])
            if step == STEPS or not len(self.theta):
                break
            gradients = 2.0 * self.penalty * thetas - self.loss.falls(margins, self.y, weights) @ self.Z.T
            for fold, factor in enumerate(factors):
                if factor is not None and better[fold]:
                    thetas[fold] = thetas[fold] - dpotrs(factor, gradients[fold])[0]
        return self._from_above(values, best, weights), held

    def settled(self, training: BoolArray, scored: Sequence[IntArray]) -> FloatArray:
        """Return held-out losses where the margins of all rows have settled; nan elsewhere."""
        factors = [self._factor(np.flatnonzero(~rows)) for rows in training]
        thetas, weights = np.repeat(self.theta[None, :], len(training), axis=0), self.v * training
        margins, moved = thetas @ self.Z, np.full(len(training), np.inf if len(self.theta) else 0.0)
        for step in range(MOST_STEPS):
            moving = np.flatnonzero(moved > SETTLED)
            if not len(moving):
                break
            falls = self.loss.falls(margins[moving], self.y, weights[moving])
            gradients = 2.0 * self.penalty * thetas[moving] - falls @ self.Z.T
            for at, fold in enumerate(moving.tolist()):
                if step > STEPS:
                    factors[fold] = self._factor_at(self.loss.curvatures(margins[fold], self.y, weights[fold]))
                factor = factors[fold]
                thetas[fold] -= 0.0 if factor is None else dpotrs(factor, gradients[at])[0]
            before, margins[moving] = margins[moving], thetas[moving] @ self.Z
            moved[moving] = np.abs(margins[moving] - before).max(axis=1)
        losses = [
            float(self.v[rows] @ self.loss.losses(margins[fold, rows], self.y[rows]))
            for fold, rows in enumerate(scored)
        ]
        known = np.array([factor is not None for factor in factors])
        return np.where(known & (moved <= SETTLED), losses, np.nan)

    def _factor_at(self, curvature: FloatArray) -> FloatArray | None:
        """Factor the Hessian of some curvatures; None where it is singular."""
        H = (self.Z * curvature) @ self.Z.T
        H.flat[:: len(H) + 1] += 2.0 * self.penalty
        factor, failed = dpotrf(H)
        return None if failed else factor

    def _factor(self, out: IntArray) -> FloatArray | None:
        """Factor the Hessian without some rows; None where it is singular."""
        Z = self.Z[:, out]
        factor, failed = dpotrf(self.H - (Z * self.curvature[out]) @ Z.T)
        return None if failed else factor

    def _from_above(self, values: FloatArray, thetas: FloatArray, weights: FloatArray) -> FloatArray:
        """Raise values at points by what their rounding may be worth (docs/theory/glm.md, section 6).

        A margin's rounding is worth no more than itself where `|l'| <= 1`.
        """
        k, n = self.Z.shape
        if self.loss.steepest <= 1.0:
            off = 2.0 * (k + 5) * EPS * (np.abs(thetas) @ (np.abs(self.Z) @ self.v))
        else:
            moved = 2.0 * (k + 5) * EPS * (np.abs(thetas) @ np.abs(self.Z))
            off = np.einsum("ij,ij->i", weights, self.loss.roundings(thetas @ self.Z, self.y, moved, 2.0 * EPS))
        return np.asarray((values + off) * (1.0 + (n + k + 40) * EPS))

"""Brute force over all supports, fast enough for thousands of problems and independent of the engine.

One QR factorisation of the augmented matrix `[A; sqrt(lam) diag(s) | b]` per training set and gamma, then a small
least squares per support on its triangular factor, all supports of a size in one batch. f is a sum of squared
residuals, never a difference. Written from theory section 0 alone: only numpy, nothing of the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EPS = float(np.finfo(float).eps)
ROUNDING = 64.0 * EPS


@dataclass(frozen=True, eq=False)
class Optima:
    """Every support of one size on one training set: f, held-out sum of squares, and the rounding error of both.

    Units: squares of `target / 2 ** exponent`, the exponent of the :class:`Enumeration`.
    """

    supports: IntArray  # (N, s) columns of the file
    value: FloatArray
    value_error: FloatArray
    held_out: FloatArray
    held_out_error: FloatArray
    scale: float  # mean square of the training targets times the number of rows held out
    sign: IntArray  # (N, s) of the coefficients, 0 where rounding may have decided it

    @property
    def best(self) -> float:
        """f of the optimum."""
        return float(self.value.min())

    def tied(self, rtol: float, sign: float = 0.0) -> NDArray[np.bool_]:
        """Mask of the supports within `rtol` of the best: for sure (sign -1), as computed (0), or possibly (+1)."""
        error = sign * (self.value_error + self.value_error[int(np.argmin(self.value))])
        return np.asarray((self.value <= self.best * (1.0 + rtol) + error) | (self.value == self.best))

    def interval(self, rtol: float, sign: float = 0.0) -> tuple[float, float]:
        """Smallest and largest held-out sum of squares of the tied supports."""
        held = self.held_out[self.tied(rtol, sign)]
        return float(held.min()), float(held.max())

    def rounding(self, rtol: float, sign: float = 0.0) -> float:
        """Rounding error of the interval."""
        return float(self.held_out_error[self.tied(rtol, sign)].max())

    def at(self, support: Sequence[int]) -> tuple[float, float]:
        """f of one support and its rounding error."""
        row = np.flatnonzero((self.supports == np.sort(np.asarray(support, dtype=np.int64))).all(axis=1))
        return float(self.value[row[0]]), float(self.value_error[row[0]])


class Enumeration:
    """All supports of one fold.

    Parameters
    ----------
    X, y : (n, p), (n,) arrays in units of the file
    train, test : row numbers
    scale, intercept : as in theory section 0
    force_in, force_out : columns that every support contains, and that none does
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        train: IntArray,
        test: IntArray,
        scale: str,
        intercept: str,
        force_in: Sequence[int] = (),
        force_out: Sequence[int] = (),
    ) -> None:
        low, high = X.min(axis=0), X.max(axis=0)
        varies = high - low > 4.0 * EPS * np.maximum(np.abs(low), np.abs(high))
        varies[list(force_out)] = False
        self.columns = np.flatnonzero(varies).astype(np.int64)
        self.forced = set(np.searchsorted(self.columns, list(force_in)).tolist())
        X = X[:, self.columns]
        # powers of two make everything of size one without a rounding error
        centred = X - X.mean(axis=0)
        x_exponent = np.frexp(np.abs(centred).max(axis=0, initial=0.0))[1]
        norm = np.linalg.norm(np.ldexp(centred, -x_exponent), axis=0)
        if scale == "none":
            self.root = np.ldexp(1.0, -x_exponent)
        else:
            self.root = norm / (np.sqrt(len(y)) if scale == "variance" else 1.0)
        self.exponent = int(np.frexp(np.abs(y - (0.0 if intercept == "none" else y.mean())).max())[1])
        if intercept != "none":
            # twice: the mean of the differences is what the first mean was off by
            about = train if intercept == "fold" else np.arange(len(y))
            X, y = X - X[about].mean(axis=0), y - y[about].mean()
            X, y = X - X[about].mean(axis=0), y - y[about].mean()
        V, r = np.ldexp(X, -x_exponent), np.ldexp(y, -self.exponent)
        self.level = float(np.sqrt(np.mean(r[train] ** 2))) + float(np.abs(r).mean())
        self.V, self.r, self.V_test, self.r_test = V[train], r[train], V[test], r[test]

    def optima(self, gamma: float, tau: int) -> Optima:
        """Enumerate the supports of size tau, or the one of all columns that may be in it if they are fewer."""
        q = len(self.columns)
        A = np.vstack([self.V, np.diag(np.sqrt(gamma / 2.0) * self.root)])
        size = np.linalg.norm(A, axis=0)
        size[size == 0.0] = 1.0
        b = np.append(self.r, np.zeros(q))
        R = np.linalg.qr(np.column_stack([A / size, b]), mode="r")
        s = min(tau, q)
        allowed = [support for support in combinations(range(q), s) if self.forced.issubset(support)]
        chosen = np.array(allowed, dtype=np.int64).reshape(len(allowed), s)
        matrices = np.ascontiguousarray(R[:, :q][:, chosen].transpose(1, 0, 2))
        right = R[:, q]
        beta, spread, residual = _least_squares(matrices, right)
        value = np.einsum("ij,ij->i", residual, residual)
        length = float(np.linalg.norm(right))
        value_error = ROUNDING * np.sqrt(value) * (length + np.abs(beta).sum(axis=1)) + 1e-300
        test = (self.V_test / size)[:, chosen].transpose(1, 0, 2)
        errors = self.r_test - np.einsum("ijk,ik->ij", test, beta)
        slip = np.einsum("ijk,ik->ij", np.abs(test), spread) + 2.0 * EPS * (np.abs(self.r_test) + self.level)
        slip += 4.0 * EPS * np.einsum("ijk,ik->ij", np.abs(test), np.abs(beta))
        with np.errstate(over="ignore"):  # coefficients that no penalty holds back
            held_out_error = ((2.0 * np.abs(errors) + slip) * slip).sum(axis=1)
        return Optima(
            supports=self.columns[chosen],
            value=value,
            value_error=value_error,
            held_out=np.einsum("ij,ij->i", errors, errors),
            held_out_error=held_out_error,
            scale=float(np.mean(self.r**2)) * len(self.r_test),
            sign=np.where(np.abs(beta) > 1e3 * spread, np.sign(beta), 0.0).astype(np.int64),
        )


def _least_squares(matrices: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solutions (N, s) of N least squares problems with one right side, their error bounds and residuals."""
    count, _, s = matrices.shape
    if s == 0:
        return np.zeros((count, 0)), np.zeros((count, 0)), np.tile(right, (count, 1))
    orthogonal, triangle = np.linalg.qr(matrices)
    inverse = np.linalg.inv(triangle)
    beta = np.einsum("nij,nkj,k->ni", inverse, orthogonal, right, optimize=True)
    for _ in range(2):
        residual = right - np.einsum("nij,nj->ni", matrices, beta)
        beta = beta + np.einsum("nij,nkj,nk->ni", inverse, orthogonal, residual, optimize=True)
    residual = right - np.einsum("nij,nj->ni", matrices, beta)
    reach = np.linalg.norm(inverse, axis=2)
    tail = np.linalg.norm(inverse, axis=(1, 2)) * np.linalg.norm(residual, axis=1)
    load = float(np.linalg.norm(right)) + np.abs(beta).sum(axis=1) + tail
    return beta, ROUNDING / 8.0 * reach * load[:, None], residual


def cv_intervals(
    X: FloatArray,
    y: FloatArray,
    labels: IntArray,
    gammas: Sequence[float],
    taus: Sequence[int],
    how: tuple[str, str],
    inside: float,
) -> tuple[FloatArray, FloatArray]:
    """Optimistic and pessimistic h over ties, by (gamma, tau), per row in file units; `how`: scale, intercept."""
    pairs = [(np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)) for fold in range(int(labels.max()) + 1)]
    return intervals_of_pairs((X, y), pairs, gammas, taus, how, inside)


def intervals_of_pairs(
    rows_of: tuple[FloatArray, FloatArray],
    pairs: Sequence[tuple[IntArray, IntArray]],
    gammas: Sequence[float],
    taus: Sequence[int],
    how: tuple[str, str],
    inside: float,
) -> tuple[FloatArray, FloatArray]:
    """As `cv_intervals`, for folds that are pairs (training rows, scored rows) of `(X, y)`."""
    low, high = (np.zeros((len(gammas), len(taus))) for _ in range(2))
    for train, scored in pairs:
        rows = Enumeration(*rows_of, train, scored, *how)
        for g, gamma in enumerate(gammas):
            for t, tau in enumerate(taus):
                ends = rows.optima(gamma, tau).interval(inside, -1.0)
                low[g, t], high[g, t] = low[g, t] + ends[0], high[g, t] + ends[1]
    unit = np.ldexp(1.0, rows.exponent) ** 2 / sum(len(scored) for _, scored in pairs)
    return low * unit, high * unit

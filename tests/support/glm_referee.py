"""All supports of a small problem of two classes or of counts, fitted in long doubles from the definition alone.

    F_S = min over a, b on S   sum_i v_i l_i(a + x_i'b) + (gamma / 2) sum_j (s_j b_j)^2

with s_j the scale of a column on all rows, `l = log(1 + exp(-y (t + log e)))` for classes -1 and 1 with `v = w`, and
for counts over exposures y `exp(t) - y t - (y - y log y)` with `v = w e` (docs/theory/glm.md); e are exposures, the
exponentials of offsets. Nothing of the package is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

Support = tuple[int, ...]
LONG = np.longdouble
FAR = 1e-9  # of a predictor: a fit that is known less well says nothing
TIED = 1e-10  # of an objective


class Unsure(Exception):
    """A fit that long doubles do not settle."""


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of some supports on some training rows: F, and what each row of the data loses, per unit of its weight."""

    supports: list[Support]
    value: np.ndarray
    predictors: np.ndarray
    losses: np.ndarray

    def best(self) -> np.ndarray:
        """Places of the supports that may be the best one, ties among them."""
        return np.flatnonzero(self.value <= self.value.min() * (1 + TIED) + 1e-300)

    def of(self, support: Support) -> int:
        return self.supports.index(support)


def _solve(H: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve many positive definite systems, (m, q, q) with (m, q, r), by Cholesky in the precision of H."""
    unit = 1 / np.sqrt(np.einsum("mii->mi", H))
    L, q = H * unit[:, :, None] * unit[:, None, :], H.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        for j in range(q):
            L[:, j, j] = np.sqrt(L[:, j, j] - (L[:, j, :j] ** 2).sum(1))
            for i in range(j + 1, q):
                L[:, i, j] = (L[:, i, j] - (L[:, i, :j] * L[:, j, :j]).sum(1)) / L[:, j, j]
        X = B * unit[:, :, None]
        for i in range(q):
            X[:, i] = (X[:, i] - (L[:, i, :i, None] * X[:, :i]).sum(1)) / L[:, i, i, None]
        for i in reversed(range(q)):
            X[:, i] = (X[:, i] - (L[:, i + 1 :, i, None] * X[:, i + 1 :]).sum(1)) / L[:, i, i, None]
    return np.asarray(X * unit[:, :, None])


@dataclass(frozen=True, eq=False)
class Referee:
    """A problem, by arrays: `y` are -1 and 1 or counts; `w` weights of rows, `e` exposures.

    Columns have the scales of the rows that are `measured`, of all by default.
    """

    loss: str
    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    e: np.ndarray
    scale: str
    intercept: bool
    force_in: Support = ()
    force_out: Support = ()
    free: Support = ()  # columns without a penalty
    measured: np.ndarray | None = None
    known: dict[Any, Fits] = field(default_factory=dict)

    @property
    def varying(self) -> list[int]:
        """Columns that are no constants."""
        X = self.X if self.measured is None else self.X[self.measured]
        return [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0.0]

    def supports(self, tau: int) -> list[Support]:
        """All supports of a size, or of all columns; adding a column raises no F, so fewer are never better."""
        columns = [j for j in self.varying if j not in self.force_out]
        some = combinations(columns, min(tau, len(columns)))
        return [S for S in some if set(self.force_in) <= set(S)]

    def penalties(self) -> np.ndarray:
        """Squares of the columns' scales."""
        rows = slice(None) if self.measured is None else self.measured
        X, w = self.X[rows].astype(LONG), self.w[rows].astype(LONG)
        squares = w @ (X - w @ X / w.sum()) ** 2 if self.scale != "none" else np.ones(X.shape[1], dtype=LONG)
        squares[list(self.free)] = 0
        return np.asarray(squares / w.sum() if self.scale == "variance" else squares)

    def row_loss(self, t: np.ndarray, kind: Any = LONG) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Losses, slopes and curvatures of all rows at predictors (m, n), of a weight of 1."""
        y, e = self.y.astype(kind), self.e.astype(kind)
        if self.loss == "logistic":
            m = y * (t + np.log(e))
            share = np.exp(-np.maximum(m, 0) - np.log1p(np.exp(-np.abs(m))))  # 1 / (1 + exp(m))
            return np.maximum(-m, 0) + np.log1p(np.exp(-np.abs(m))), -y * share, share * (1 - share)
        rate = y / e
        with np.errstate(over="ignore"):
            u = t - np.log(np.where(rate > 0, rate, 1))
            far = np.where(rate > 0, rate * (np.expm1(u) - u), np.exp(t))
            return e * far, e * np.where(rate > 0, rate * np.expm1(u), np.exp(t)), e * np.exp(t)

    def fits(self, train: np.ndarray, gamma: float, tau: int) -> Fits:
        """Fits of all supports of a size on training rows."""
        key = (train.tobytes(), gamma, min(tau, len(self.varying)))
        if key not in self.known:
            self.known[key] = self.fits_of(train, gamma, self.supports(tau))
        return self.known[key]

    def fits_of(self, train: np.ndarray, gamma: float, supports: list[Support]) -> Fits:
        """Fits of some supports on training rows."""
        X, n, p = self.X.astype(LONG), *self.X.shape
        v = np.zeros(n, dtype=LONG)
        v[train] = self.w[train]
        # the intercept takes up any shift of columns; any unit of a column is taken off its penalty
        Z = X - X[train].mean(axis=0) if self.intercept else X
        unit = np.abs(Z[train]).max(axis=0)
        unit = np.where(unit > 0, unit, np.maximum(np.abs(Z).max(axis=0), 1e-300))
        Z = np.hstack([np.ones((n, int(self.intercept)), dtype=LONG), Z / unit])
        ridge = np.concatenate([np.zeros(int(self.intercept), dtype=LONG), gamma * self.penalties() / unit**2])
        first, q = int(self.intercept), p + int(self.intercept)
        here = np.zeros((len(supports), q), dtype=bool)
        here[:, :first] = True
        for s, S in enumerate(supports):
            here[s, [first + j for j in S]] = True
        theta = np.zeros((len(supports), q), dtype=LONG)
        if self.intercept:
            mean = v @ self.y.astype(LONG) / (v.sum() if self.loss == "logistic" else v @ self.e)
            theta[:, 0] = np.log((1 + mean) / (1 - mean)) if self.loss == "logistic" else np.log(mean)
        theta, off = self._newton(Z, v, ridge, here, theta)
        if not off.max(initial=0.0) <= FAR:
            raise Unsure(f"predictors are known to {off.max():.1e}")
        t = theta @ Z.T
        losses = self.row_loss(t)[0]
        value = losses @ v + (ridge * theta**2).sum(1) / 2
        return Fits(supports, value, t, losses)

    def _objective(self, Z: np.ndarray, v: np.ndarray, ridge: np.ndarray, theta: np.ndarray) -> np.ndarray:
        value = self.row_loss(theta @ Z.T, theta.dtype.type)[0][:, v > 0] @ v[v > 0] + (ridge * theta**2).sum(1) / 2
        return np.where(np.isnan(value), np.inf, value)

    def _step(
        self, Z: np.ndarray, v: np.ndarray, ridge: np.ndarray, here: np.ndarray, theta: np.ndarray, last: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Newton's step, its decrement, and (at last) how far predictors of any row may move by one of that length."""
        _, slope, bent = self.row_loss(theta @ Z.T, theta.dtype.type)
        on = v > 0  # beside the training rows nothing is summed: there exp may overflow
        V, q = Z[on], Z.shape[1]
        g = np.where(here, (slope[:, on] * v[on]) @ V + ridge * theta, 0)
        upper = np.triu_indices(q)
        H = np.zeros((len(theta), q, q), dtype=theta.dtype)
        H[:, upper[0], upper[1]] = (bent[:, on] * v[on]) @ (V[:, upper[0]] * V[:, upper[1]])
        H[:, upper[1], upper[0]] = H[:, upper[0], upper[1]]
        H[:, np.arange(q), np.arange(q)] += ridge
        H = np.where(here[:, :, None] & here[:, None, :], H, 0)
        H[:, np.arange(q), np.arange(q)] = np.where(here, np.einsum("mii->mi", H), 1)
        if not last:
            step = -_solve(H, g[:, :, None])[:, :, 0]
            return step, np.abs((g * step).sum(1)), np.zeros(0)
        rows = np.where(here[:, :, None], Z.T[None], 0)
        both = _solve(H, np.concatenate([-g[:, :, None], rows], axis=2))
        step = both[:, :, 0]
        length = np.sqrt(np.abs((rows * both[:, :, 1:]).sum(1)).max(axis=1))
        return step, np.abs((g * step).sum(1)), length

    def _newton(
        self, Z: np.ndarray, v: np.ndarray, ridge: np.ndarray, here: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Points, and how far any predictor may be from that of the fit."""
        if Z.shape[1] == 0:
            return theta, np.zeros(len(theta))
        for kind, most in ((np.float64, 150), (LONG, 60)):
            z, u, r = Z.astype(kind), v.astype(kind), ridge.astype(kind)
            work = np.arange(len(theta))
            for _ in range(most):
                now = theta[work].astype(kind)
                step, decrement, _ = self._step(z, u, r, here[work], now)
                value = self._objective(z, u, r, now)
                good = np.isfinite(step).all(1) & (decrement > (1e-13 * value if kind is np.float64 else 1e-34 * value))
                work, now, step, value, decrement = (x[good] for x in (work, now, step, value, decrement))
                if not len(work):
                    break
                size = np.minimum(1, 30 / np.maximum(np.abs(step @ z.T).max(1), 1e-300)).astype(kind)
                close = decrement < 1e-8 * value + 1e-300  # where F says nothing more, full steps
                left = ~close
                for _ in range(50):
                    bad = left & ~(self._objective(z, u, r, now + size[:, None] * step) < value)
                    if not bad.any():
                        break
                    size[bad] /= 2
                theta[work] = now + size[:, None] * step
                if kind is LONG:
                    work = work[decrement > 1e-30 * value]
        _, decrement, length = self._step(Z, v, ridge, here, theta, last=True)
        off = 2 * np.sqrt(decrement) * length
        return theta, np.where(np.isfinite(off), off, np.inf)

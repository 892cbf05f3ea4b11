"""The truth about small problems by trying every support, in every fold: what judges the search.

One QR factorisation of the augmented matrix `[A; sqrt(lam) diag(s) | b]` per training set and gamma, then a small
least squares per support on its triangular factor, all supports of a size in one batch. f is a sum of squared
residuals, never a difference. Written from theory section 0 alone, independent of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EPS = float(np.finfo(float).eps)
ROUNDING = 64.0 * EPS
INSIDE, OUTSIDE = 0.9e-9, 1.1e-9  # tie tolerances on both sides of the engine's 1e-9: borderline ties go either way
NO_COLUMN = -1


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
        near = self.value <= self.best * (1.0 + rtol) + sign * self.error
        return np.asarray(near | (self.value == self.best))

    @property
    def error(self) -> FloatArray:
        """Rounding error of the difference to the best value."""
        return self.value_error + self.value_error[int(np.argmin(self.value))]

    def interval(self, rtol: float, sign: float = 0.0) -> tuple[float, float]:
        """Smallest and largest held-out sum of squares of the tied supports.

        If the sign is -1 and rounding hides which support is best, the largest comes first: a valid interval begins at
        or below it, and ends at or above the smallest.
        """
        if sign < 0.0 and not (self.value <= self.best * (1.0 + rtol) - self.error).any():
            held = self.held_out[self.tied(rtol, 1.0)]  # rounding hides which of these is best
            return float(held.max()), float(held.min())
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
    weight : of the rows, all positive; 1 by default
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
        weight: FloatArray | None = None,
    ) -> None:
        def mean(values: FloatArray, rows: IntArray | slice = slice(None)) -> Any:
            return np.average(values[rows], axis=0, weights=None if weight is None else weight[rows])

        low, high = X.min(axis=0), X.max(axis=0)
        varies = high - low > 4.0 * EPS * np.maximum(np.abs(low), np.abs(high))
        varies[list(force_out)] = False
        self.columns = np.flatnonzero(varies).astype(np.int64)
        self.forced = set(np.searchsorted(self.columns, list(force_in)).tolist())
        X = X[:, self.columns]
        # powers of two make everything of size one without a rounding error
        share = np.ones(len(y)) if weight is None else weight
        centred = X - mean(X)
        centred = centred - mean(centred)  # what the first mean was off by, beside a small spread
        x_exponent = np.frexp(np.abs(centred).max(axis=0, initial=0.0))[1]
        norm = np.linalg.norm(np.sqrt(share)[:, None] * np.ldexp(centred, -x_exponent), axis=0)
        if scale == "none":
            self.root = np.ldexp(1.0, -x_exponent)
        else:
            self.root = norm / (np.sqrt(share.sum()) if scale == "variance" else 1.0)
        self.exponent = int(np.frexp(np.abs(y - (0.0 if intercept == "none" else mean(y))).max())[1])
        if intercept != "none":
            # twice: the mean of the differences is what the first mean was off by
            about = train if intercept == "fold" else np.arange(len(y))
            X, y = X - mean(X, about), y - mean(y, about)
            X, y = X - mean(X, about), y - mean(y, about)
        V, r = np.ldexp(X, -x_exponent), np.ldexp(y, -self.exponent)
        self.level = float(np.sqrt(np.mean(r[train] ** 2))) + float(np.abs(r).mean())
        self.test_root = np.sqrt(share[test])
        V, r = np.sqrt(share)[:, None] * V, np.sqrt(share) * r
        self.V, self.r, self.V_test, self.r_test = V[train], r[train], V[test], r[test]
        self._of_size, self._up_to = dict[tuple[float, int], Optima](), dict[tuple[float, int], Optima]()

    def optima(self, gamma: float, tau: int) -> Optima:
        """Enumerate the supports of size tau, or the one of all columns that may be in it if they are fewer; once."""
        if (gamma, tau) not in self._of_size:
            self._of_size[gamma, tau] = self._enumerated(gamma, tau)
        return self._of_size[gamma, tau]

    def _enumerated(self, gamma: float, tau: int) -> Optima:
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
        residual_error = ROUNDING * (length + np.abs(beta).sum(axis=1))
        value_error = (np.sqrt(value) + residual_error) * residual_error + 1e-300
        test = (self.V_test / size)[:, chosen].transpose(1, 0, 2)
        errors = self.r_test - np.einsum("ijk,ik->ij", test, beta)
        slip = np.einsum("ijk,ik->ij", np.abs(test), spread)
        slip += 2.0 * EPS * (np.abs(self.r_test) + self.level * self.test_root)
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

    def value_of(self, support: IntArray, found: Optima) -> tuple[float, float]:
        """f of a support and its rounding error; columns that are constant in training may be missing from it."""
        if len(support) == found.supports.shape[1]:
            return found.at(support.tolist())
        holders = [r for r in range(len(found.supports)) if set(support.tolist()) <= set(found.supports[r].tolist())]
        row = holders[int(np.argmax(found.value[holders]))]
        return float(found.value[row]), float(found.value_error[row])


def _least_squares(matrices: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solutions (N, s) of N least squares problems with one right side, their error bounds and residuals."""
    count, _, s = matrices.shape
    if s == 0:
        return np.zeros((count, 0)), np.zeros((count, 0)), np.tile(right, (count, 1))
    orthogonal, triangle = np.linalg.qr(matrices)
    inverse = np.linalg.inv(triangle)
    beta = np.einsum("nij,nj->ni", inverse, np.einsum("nkj,k->nj", orthogonal, right))
    for _ in range(2):
        residual = right - np.einsum("nij,nj->ni", matrices, beta)
        beta = beta + np.einsum("nij,nj->ni", inverse, np.einsum("nkj,nk->nj", orthogonal, residual))
    residual = right - np.einsum("nij,nj->ni", matrices, beta)
    reach = np.linalg.norm(inverse, axis=2)
    tail = np.linalg.norm(inverse, axis=(1, 2)) * np.linalg.norm(residual, axis=1)
    load = float(np.linalg.norm(right)) + np.abs(beta).sum(axis=1) + tail
    return beta, ROUNDING / 8.0 * reach * load[:, None], residual


def allowed(chosen: set[str], asked: Any) -> bool:
    """Whether a model may consist of these features, signs aside."""
    return (
        chosen.issuperset(asked.force_in)
        and chosen.isdisjoint(asked.force_out)
        and all(len(chosen.intersection(group.features)) <= group.count for group in asked.at_most)
        and all(
            chosen.issuperset(one.parents) if one.every else not chosen.isdisjoint(one.parents)
            for one in asked.hierarchy
            if one.feature in chosen
        )
    )


class RestrictedEnumeration(Enumeration):
    """As `Enumeration`, of the supports up to a size that keep to restrictions.

    With signs held, a fit is the ridge fit of its coefficients off zero: every support whose ridge fit has the signs
    counts, where an allowed support holds it and beside it only features that a sign does hold at zero.
    """

    names: tuple[str, ...]
    asked: Any

    def optima(self, gamma: float, tau: int) -> Optima:
        """Every support of up to tau columns."""
        if (gamma, tau) not in self._up_to:
            self._up_to[gamma, tau] = self._allowed(gamma, tau)
        return self._up_to[gamma, tau]

    def _allowed(self, gamma: float, tau: int) -> Optima:
        q = len(self.columns)
        known = [self.names[j] for j in self.columns.tolist()]
        plus, minus = (np.isin(known, some) for some in (self.asked.nonnegative, self.asked.nonpositive))
        sets = [set(some) for size in range(min(tau, q) + 1) for some in combinations(range(q), size)]
        family = [some for some in sets if allowed({known[j] for j in some}, self.asked)]
        parts = [super(RestrictedEnumeration, self).optima(gamma, size) for size in range(min(tau, q) + 1)]
        held = set(np.flatnonzero(plus | minus).tolist())
        place = {int(j): i for i, j in enumerate(self.columns)}
        supports, keep, start = [], [], 0
        for part in parts:
            for row, sign in zip(part.supports, part.sign, strict=True):
                at = [place[int(j)] for j in row]
                right = np.where(plus[at], sign > 0, np.where(minus[at], sign < 0, True)).all()
                slope = None if set(at) in family else self._slopes(gamma, at) * np.where(plus, 1.0, -1.0)
                stays = {j for j in held if slope is not None and slope[j] <= 1e-9}
                if right and any(set(at) <= some and some - set(at) <= stays for some in family):
                    keep.append(start)
                    supports.append(np.pad(np.sort(row), (0, tau - len(row)), constant_values=NO_COLUMN))
                start += 1
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts])[keep]
            for name in ("value", "value_error", "held_out", "held_out_error")
        }
        table = np.array(supports, dtype=np.int64).reshape(len(keep), tau)
        return Optima(supports=table, scale=parts[0].scale, sign=np.zeros((0, 0), dtype=np.int64), **joined)

    def _slopes(self, gamma: float, at: list[int]) -> np.ndarray:
        """How much adding to each coefficient would lower f of a fit, over the lengths of column and target."""
        A = np.vstack([self.V, np.diag(np.sqrt(gamma / 2.0) * self.root)])
        b = np.append(self.r, np.zeros(A.shape[1]))
        rest = b - A[:, at] @ np.linalg.lstsq(A[:, at], b, rcond=None)[0]
        return np.asarray(rest @ A / (np.linalg.norm(A, axis=0) * np.linalg.norm(b) + 1e-300))

    def value_of(self, support: np.ndarray, found: Optima) -> tuple[float, float]:
        """f of one of the supports and its rounding error; inf where it is none of them."""
        wanted = np.pad(np.sort(support), (0, found.supports.shape[1] - len(support)), constant_values=NO_COLUMN)
        row = np.flatnonzero((found.supports == wanted).all(axis=1))
        return (float(found.value[row[0]]), float(found.value_error[row[0]])) if len(row) else (np.inf, 0.0)


class Truth:
    """Every support of every fold of a problem: data, folds, scale, intercept and restrictions."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self._folds: dict[int, Enumeration] = {}

    def rows(self, fold: int) -> Enumeration:
        """Supports of a fold; of all rows for fold -1."""
        if fold not in self._folds:
            data, plan = self.problem.data, self.problem.folds
            asked = self.problem.restrictions.resolve_names(data.names)
            train, test = np.arange(data.n), np.arange(1)
            if fold >= 0:
                train, test = plan.train_rows(fold), plan.scored_rows(fold)
            how = data.X, data.y, train, test, self.problem.scale, self.problem.intercept
            forced = [data.names.index(name) for name in asked.force_in]
            left = [data.names.index(name) for name in asked.force_out]
            if asked.side_constraints:
                made = RestrictedEnumeration(*how, weight=data.row_weights)
                made.names, made.asked = data.names, asked
                self._folds[fold] = made
            else:
                self._folds[fold] = Enumeration(*how, forced, left, data.row_weights)
        return self._folds[fold]

    def h(self, gamma: float, tau: int) -> FloatArray:
        """CV error at least and at most over what is tied for sure; the same over what may be, rounding added."""
        data, plan = self.problem.data, self.problem.folds
        weight = np.ones(data.n) if data.row_weights is None else data.row_weights
        scored = sum(float(weight[plan.scored_rows(fold)].sum()) for fold in range(plan.k))
        unit, total = 1.0, np.zeros(4)
        for fold in range(plan.k):
            found = self.rows(fold).optima(gamma, tau)
            unit = float(np.ldexp(1.0, self.rows(fold).exponent)) ** 2 / scored
            (low, high), slip = found.interval(INSIDE, -1.0), found.rounding(OUTSIDE, 1.0)
            least, most = found.interval(OUTSIDE, 1.0)
            slip += 1e-9 * high
            total += unit * np.array([low + slip, high - slip, least - slip, most + slip])
        return total

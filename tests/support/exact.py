"""Exact fractions: CV errors (theory section 0) of the numbers of a file as read, and bounds that rounding may move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import isqrt
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan

Row = list[Fraction]
ZERO = Fraction(0)


@dataclass(frozen=True)
class ExactFold:
    """One fold: moments of its training rows about `mean` and `y_mean`, and the rows that it scores."""

    mean: Row
    y_mean: Fraction
    gram: list[Row]
    cross: Row
    square: Fraction
    scored: list[int]


@dataclass(frozen=True)
class ExactProblem:
    """Data, folds and penalty weights in fractions; `forced` and `columns` are positions."""

    X: list[Row]
    y: Row
    row_weight: Row
    column_weight: Row
    folds: list[ExactFold]
    columns: list[int]
    forced: list[int]

    @classmethod
    def of(
        cls,
        X: Sequence[Sequence[float]],
        y: Sequence[float],
        weights: Sequence[float] | None,
        folds: Sequence[tuple[Sequence[int], Sequence[int]]],
        how: tuple[str, str],
        columns: Sequence[int],
        forced: Sequence[int] = (),
        free: Sequence[int] = (),
    ) -> ExactProblem:
        """Bring floats to fractions; `folds` are (training rows, scored rows), `how` is (scale, intercept).

        Columns that are `free` have no penalty.
        """
        scale, intercept = how
        rows, target = [[Fraction(v) for v in row] for row in X], [Fraction(v) for v in y]
        w = [Fraction(1)] * len(rows) if weights is None else [Fraction(v) for v in weights]
        everyone = list(range(len(rows)))
        mean, y_mean = _means(rows, target, w, everyone)
        length = [sum((w[i] * (rows[i][j] - mean[j]) ** 2 for i in everyone), ZERO) for j in range(len(mean))]
        column_weight = {"length": length, "variance": [v / sum(w) for v in length], "none": [Fraction(1)] * len(mean)}
        paid = [ZERO if j in free else weight for j, weight in enumerate(column_weight[scale])]
        if intercept == "global":
            rows = [[v - m for v, m in zip(row, mean, strict=True)] for row in rows]
            target = [v - y_mean for v in target]
        made = [_fold(rows, target, w, list(train), list(scored), intercept == "fold") for train, scored in folds]
        return cls(rows, target, w, paid, made, list(columns), list(forced))

    @classmethod
    def from_data(
        cls,
        data: Dataset,
        plan: FoldPlan | None,
        how: tuple[str, str],
        columns: Sequence[int],
        forced: Sequence[int] = (),
        free: Sequence[int] = (),
    ) -> ExactProblem:
        """Take data with the folds of a plan, or without a plan one fold that trains on all rows."""
        folds: list[tuple[Sequence[int], Sequence[int]]] = [(range(data.n), [])]
        if plan is not None:
            folds = [(plan.train_rows(j).tolist(), plan.scored_rows(j).tolist()) for j in range(plan.k)]
        weights = None if data.row_weights is None else data.row_weights.tolist()
        return cls.of(data.X.tolist(), data.y.tolist(), weights, folds, how, columns, forced, free)

    def cv_error(self, gamma: float, tau: int) -> tuple[Fraction, Fraction]:
        """Least and largest mean squared error over the optima of the folds, which differ where objectives tie."""
        low = high = ZERO
        for fold in self.folds:
            fits = [self._fit(fold, Fraction(gamma) / 2, list(support)) for support in self.supports(tau)]
            least = min(value for value, _ in fits)
            tied = [error for value, error in fits if value == least]
            low, high = low + min(tied), high + max(tied)
        return low / self._total, high / self._total

    def of_support(self, gamma: float, support: Sequence[int]) -> tuple[Fraction, Fraction]:
        """Training objectives of one support, added up over the folds, and its CV error where all folds share it."""
        fits = [self._fit(fold, Fraction(gamma) / 2, list(support)) for fold in self.folds]
        return sum((value for value, _ in fits), ZERO), sum((error for _, error in fits), ZERO) / (self._total or 1)

    @property
    def _total(self) -> Fraction:
        return sum((self.row_weight[i] for fold in self.folds for i in fold.scored), ZERO)

    def supports(self, tau: int) -> list[tuple[int, ...]]:
        """Return the supports of a size that hold the forced columns."""
        free = [j for j in self.columns if j not in self.forced]
        size = min(tau, len(self.columns)) - len(self.forced)
        return [tuple(sorted((*self.forced, *rest))) for rest in combinations(free, max(size, 0))]

    def _fit(self, fold: ExactFold, lam: Fraction, S: list[int]) -> tuple[Fraction, Fraction]:
        """Training objective of a support and its weighted sum of squares over the scored rows."""
        A = [[fold.gram[a][b] + (lam * self.column_weight[a] if a == b else 0) for b in S] for a in S]
        beta = _solved(A, [fold.cross[a] for a in S])
        value = fold.square - sum((b * fold.cross[a] for b, a in zip(beta, S, strict=True)), ZERO)
        error = ZERO
        for i in fold.scored:
            fitted = sum((b * (self.X[i][a] - fold.mean[a]) for b, a in zip(beta, S, strict=True)), fold.y_mean)
            error += self.row_weight[i] * (self.y[i] - fitted) ** 2
        return value, error


def _means(X: list[Row], y: Row, w: Row, rows: list[int]) -> tuple[Row, Fraction]:
    total = sum((w[i] for i in rows), ZERO)
    mean = [sum((w[i] * X[i][j] for i in rows), ZERO) / total for j in range(len(X[0]))]
    return mean, sum((w[i] * y[i] for i in rows), ZERO) / total


def _fold(X: list[Row], y: Row, w: Row, train: list[int], scored: list[int], centred: bool) -> ExactFold:
    p = len(X[0])
    mean, y_mean = _means(X, y, w, train) if centred else ([ZERO] * p, ZERO)
    Z = [[X[i][j] - mean[j] for j in range(p)] for i in train]
    t, v = [y[i] - y_mean for i in train], [w[i] for i in train]
    gram = [[sum((k * row[a] * row[b] for k, row in zip(v, Z, strict=True)), ZERO) for b in range(p)] for a in range(p)]
    cross = [sum((k * row[a] * u for k, row, u in zip(v, Z, t, strict=True)), ZERO) for a in range(p)]
    return ExactFold(mean, y_mean, gram, cross, sum((k * u * u for k, u in zip(v, t, strict=True)), ZERO), scored)


def _solved(A: list[Row], b: Row) -> Row:
    """Solve a positive definite system by elimination."""
    n, rows = len(b), [[*row, value] for row, value in zip(A, b, strict=True)]
    for i in range(n):
        for k in range(i + 1, n):
            share = rows[k][i] / rows[i][i]
            if share:
                rows[k] = [x - share * z for x, z in zip(rows[k], rows[i], strict=True)]
    x = [ZERO] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum((rows[i][j] * x[j] for j in range(i + 1, n)), ZERO)) / rows[i][i]
    return x


fractions = np.vectorize(Fraction, otypes=[object])  # arrays of fractions multiply like arrays of numbers


def solve(A: Any, b: Any) -> Any:
    """Solution of a positive definite system of fractions."""
    return np.array(_solved(A.tolist(), b.tolist()), dtype=object)


def square_root(value: Fraction) -> Fraction:
    """Square root, rounded down at the 60th digit."""
    return Fraction(isqrt(value.numerator * 10**120 // value.denominator), 10**60)


Excesses = Callable[[int], Iterable[Fraction]]


def check_allowance(
    excesses: Excesses, seeds: Iterable[int], zeroed: Iterable[tuple[ModuleType, str]], patch: pytest.MonkeyPatch
) -> None:
    """Check that no bound lies beyond the exact number, and that without an allowance for rounding one would.

    Parameters
    ----------
    excesses : callable
        Function that returns, for a seed, by how much each bound lies on the wrong side of its exact number.
    seeds : iterable of int
        Problems to try.
    zeroed : iterable of (module, name)
        Constants that make the allowance.
    """
    assert all(excess <= 0 for seed in seeds for excess in excesses(seed))
    for module, name in zeroed:
        patch.setattr(module, name, 0.0)
    assert any(excess > 0 for seed in seeds for excess in excesses(seed))

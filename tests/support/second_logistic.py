"""Logistic loss for the second checker, from docs/proof-format.md alone: `decimal` rounded outwards, and fractions.

Logarithms and exponentials of `decimal` are correctly rounded, so the numbers next to them enclose the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from second_checker import Interval, Refused, Support, above, distinct, integer, integers, listing, need, root_above

DIGITS = 70
WHOLE = 10**60  # slopes u are integers over this
DOWN, UP = (
    Context(prec=DIGITS, rounding=how, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[]) for how in (ROUND_FLOOR, ROUND_CEILING)
)
LEAST = 300  # predictors beyond it change no digit


def decimal(value: Fraction, how: Context) -> Decimal:
    return how.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp(value: Fraction, how: Context) -> Decimal:
    """The exponential of a number <= 0, rounded outwards."""
    near = how.exp(decimal(max(value, Fraction(-LEAST)), how))
    if how is DOWN:
        return DOWN.next_minus(near) if value > -LEAST else Decimal(0)
    return UP.next_plus(near)


def log(value: Decimal, how: Context) -> Decimal:
    near = how.ln(value)
    return DOWN.next_minus(near) if how is DOWN else UP.next_plus(near)


def loss(m: Fraction, how: Context) -> Fraction:
    """`log(1 + exp(-m))`, rounded outwards."""
    small = log(how.add(Decimal(1), exp(-abs(m), how)), how)
    return max(Fraction(small), Fraction(0)) + max(-m, Fraction(0))


def sigmoid(t: Fraction, how: Context) -> Fraction:
    """`1 / (1 + exp(-t))`, rounded outwards."""
    other = DOWN if how is UP else UP
    if t <= 0:
        e = exp(t, how)
        return Fraction(how.divide(e, other.add(Decimal(1), exp(t, other))))
    return Fraction(how.divide(Decimal(1), other.add(Decimal(1), exp(-t, other))))


def entropy(u: int) -> Fraction:
    """A lower bound of H of `u / WHOLE`."""
    total = Fraction(0)
    for share in (u, WHOLE - u):
        if 0 < share < WHOLE:
            part = DOWN.divide(Decimal(share), Decimal(WHOLE))  # exact: a shift by 60 digits
            total += Fraction(DOWN.multiply(part, log(part, UP).copy_negate()))
    return total


@dataclass(frozen=True)
class LogisticFit:
    """A point of a support, bounds of its least objective, how far coefficients are off (`sum pi d^2 <= gap`)."""

    support: Support
    a: Fraction
    b: list[Fraction]
    low: Fraction
    high: Fraction
    gap: Fraction


@dataclass(frozen=True)
class SlopePoint:
    """The sum of entropies at a point, and what each column can take of it."""

    base: Fraction
    costs: list[Fraction]

    def bound(self, size: int, included: set[int], free: set[int]) -> Fraction:
        rest = sorted((self.costs[j] for j in free), reverse=True)[: size - len(included)]
        return self.base - sum((self.costs[j] for j in included), Fraction(0)) - sum(rest, Fraction(0))


class LogisticProblem:
    """Training rows of two classes at one gamma; columns are integers less a centre that is one too."""

    def __init__(self, rows: list[list[int]], penalty: list[Fraction], free: bool) -> None:
        self.penalty, self.free, self.q = penalty, free, len(penalty)
        need(bool(rows), "a fold trains on no row")
        self.sign = [1 if row[-1] else -1 for row in rows]
        need(not free or len(set(self.sign)) == 2, "a fold trains on rows of one class")
        self.centre = [sum(row[j] for row in rows) // len(rows) if free else 0 for j in range(self.q)]
        self.X = [self.moved(row) for row in rows]
        self.size = [max(1, max(abs(row[j]) for row in self.X)).bit_length() for j in range(self.q)]
        self.near = np.array([[row[j] / (1 << self.size[j]) for j in range(self.q)] for row in self.X])
        self.near = self.near.reshape(len(rows), self.q)
        self.ridge = np.array([float(pi / 4 ** self.size[j]) for j, pi in enumerate(penalty)])
        self.solved: dict[Support, LogisticFit] = {}

    def moved(self, row: list[int]) -> list[int]:
        return [cell - middle for cell, middle in zip(row[: self.q], self.centre, strict=True)]

    def predictor(self, row: list[int], columns: Iterable[int], a: Fraction, b: list[Fraction]) -> Fraction:
        return sum((row[j] * entry for j, entry in zip(columns, b, strict=True)), a)

    # Below

    def balanced(self, u: list[int]) -> list[int]:
        """u with `sum of sign u = 0` where the intercept is free: the larger sum is scaled down to the other."""
        if not self.free:
            return u
        totals = {sign: sum(v for v, s in zip(u, self.sign, strict=True) if s == sign) for sign in (-1, 1)}
        large = max(totals, key=lambda sign: totals[sign])
        whole, goal = totals[large], totals[-large]
        if whole == goal:
            return u
        smaller = [v * goal // whole if s == large else v for v, s in zip(u, self.sign, strict=True)]
        missing = goal - sum(v for v, s in zip(smaller, self.sign, strict=True) if s == large)
        for i, s in enumerate(self.sign):
            if s == large and missing:
                smaller[i], missing = smaller[i] + 1, missing - 1
        return smaller

    def slopes(self, u: list[int], columns: Iterable[int]) -> SlopePoint:
        u = self.balanced(u)
        assert all(0 <= v <= WHOLE for v in u)
        assert not self.free or sum(v * s for v, s in zip(u, self.sign, strict=True)) == 0
        costs = []
        for j in columns:
            g = Fraction(sum(v * s * row[j] for v, s, row in zip(u, self.sign, self.X, strict=True)), WHOLE)
            costs.append(g * g / (4 * self.penalty[j]))
        return SlopePoint(sum(map(entropy, u), Fraction(0)), costs)

    def point(self, setting: Any, value: Any) -> SlopePoint:
        """What a stored point is worth."""
        exponent, places, entries = listing(value, "point", 3)
        exponent = integer(exponent, -1000, 999, "exponent of a point")
        places = distinct(places, self.q - 1, "columns of a point")
        entries = integers(entries, -(2**53), 2**53 - 1, "integers of a point", len(places))
        b = [Fraction(0)] * self.q
        for j, entry in zip(places, entries, strict=True):
            power = exponent + setting.units[j] - setting.table.powers[j]
            b[j] = Fraction(entry) * (Fraction(2) ** power)
        try:
            offset = self.near @ np.array([float(entry * 2 ** self.size[j]) for j, entry in enumerate(b)])
        except OverflowError:
            raise Refused("a point is too large") from None
        need(bool(np.abs(offset).max(initial=0.0) < 1e100), "a point is too large")
        a = self.newton((), offset)[0] if self.free else 0.0
        margins = np.array(self.sign) * (offset + a)
        return self.slopes([int(v * 2**60) * WHOLE >> 60 for v in sigmoids(-margins)], range(self.q))

    # Fits

    def newton(self, columns: Support, offset: np.ndarray) -> np.ndarray:
        """Floats near the best intercept and coefficients of some columns."""
        ones = np.ones((len(self.sign), int(self.free)))
        Z, sign = np.column_stack([ones, self.near[:, list(columns)]]), np.array(self.sign, dtype=float)
        ridge = 2.0 * np.array([*[0.0] * self.free, *self.ridge[list(columns)]])
        theta = np.zeros(Z.shape[1])

        def value(at: np.ndarray) -> float:
            return float(np.logaddexp(0.0, -sign * (offset + Z @ at)).sum() + ridge @ at**2 / 2.0)

        for _ in range(80):
            u = sigmoids(-sign * (offset + Z @ theta))
            step = solved((Z.T * (u * (1 - u))) @ Z + np.diag(ridge), ridge * theta - Z.T @ (sign * u))
            share = 1.0
            while share > 1e-8 and not value(theta - share * step) <= value(theta):
                share /= 2
            before, theta = value(theta), theta - share * step
            if before - value(theta) <= 1e-14 * before:
                break
        return theta

    def fit(self, support: Support) -> LogisticFit:
        if support not in self.solved:
            self.solved[support] = self._fit(support)
        return self.solved[support]

    def _fit(self, support: Support) -> LogisticFit:
        theta = self.newton(support, np.zeros(len(self.sign)))
        need(bool(np.isfinite(theta).all()), "a fit leaves the range of floats")
        a = Fraction(float(theta[0])) if self.free else Fraction(0)
        b = [Fraction(v) / 2 ** self.size[j] for v, j in zip(theta[int(self.free) :].tolist(), support, strict=True)]
        best: LogisticFit | None = None
        for _ in range(4):
            margins = [s * self.predictor(row, support, a, b) for s, row in zip(self.sign, self.X, strict=True)]
            u = [int(sigmoid(-m, DOWN) * WHOLE) for m in margins]
            cost = sum((self.penalty[j] * entry * entry for j, entry in zip(support, b, strict=True)), Fraction(0))
            high = above(sum((loss(m, UP) for m in margins), cost))
            dual = self.slopes(u, support)
            low = dual.base - sum(dual.costs, Fraction(0))
            if best is None or high - low < best.gap:
                best = LogisticFit(support, a, b, low, high, max(high - low, Fraction(0)))
            a, b = self.step(support, a, b, margins, u)
        assert best is not None
        return best

    def step(
        self, support: Support, a: Fraction, b: list[Fraction], margins: list[Fraction], u: list[int]
    ) -> tuple[Fraction, list[Fraction]]:
        """A step of Newton's method with an exact gradient; the point keeps some 200 binary digits."""
        pulls = [v * s for v, s in zip(u, self.sign, strict=True)]
        gradient = [-sum(pulls) / WHOLE] * self.free
        for j, entry in zip(support, b, strict=True):
            pull = Fraction(sum(v * row[j] for v, row in zip(pulls, self.X, strict=True)), WHOLE)
            gradient.append(float((2 * self.penalty[j] * entry - pull) / 2 ** self.size[j]))
        share = sigmoids(np.array([-float(m) for m in margins]))
        Z = np.column_stack([np.ones((len(u), int(self.free))), self.near[:, list(support)]])
        ridge = 2.0 * np.array([*[0.0] * self.free, *self.ridge[list(support)]])
        step = solved((Z.T * (share * (1 - share))) @ Z + np.diag(ridge), np.array(gradient)).tolist()
        if not np.isfinite(step).all():
            return a, b
        if self.free:
            a = short(a - Fraction(step.pop(0)))
        return a, [short(v - Fraction(d) / 2 ** self.size[j]) for v, d, j in zip(b, step, support, strict=True)]

    def objective(self, support: Support) -> Interval:
        fit = self.fit(support)
        return Interval(fit.low, fit.high)

    # Rows outside

    def off(self, row: list[int], fit: LogisticFit) -> Fraction:
        """By how much `x'(b - b*)` may be off zero."""
        spread = sum((Fraction(row[j] ** 2) / self.penalty[j] for j in fit.support), Fraction(0))
        return root_above(above(fit.gap * spread))

    def intercept(self, fit: LogisticFit) -> Fraction | None:
        """How far the best intercept may be from a: the slope has both signs at the ends. None where it has not."""
        if not self.free:
            return Fraction(0)
        most = max(self.off(row, fit) for row in self.X)
        ones = sum(s > 0 for s in self.sign)
        offsets = [self.predictor(row, fit.support, Fraction(0), fit.b) for row in self.X]
        for reach in (Fraction(1, 2**k) for k in range(150, 0, -10)):
            low = sum((sigmoid(fit.a - reach + o, UP) for o in offsets), Fraction(0))
            high = sum((sigmoid(fit.a + reach + o, DOWN) for o in offsets), Fraction(0))
            if low <= ones <= high:
                return reach + most
        return None

    def squares(self, rows: Iterable[list[int]], fit: LogisticFit) -> Interval:
        """What rows lose at the fit of a support."""
        own, low, high = self.intercept(fit), Fraction(0), Fraction(0)
        if own is None:
            return Interval(Fraction(0), None)
        for row in rows:
            x = self.moved(row)
            m = (1 if row[-1] else -1) * self.predictor(x, fit.support, fit.a, fit.b)
            off = own + self.off(x, fit)
            low, high = low + loss(m + off, DOWN), high + loss(m - off, UP)
        return Interval(low, above(high))


def sigmoids(t: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -t))


def solved(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    root = np.sqrt(np.maximum(np.diag(H), 1e-300))
    try:
        return np.asarray(np.linalg.solve(H / root / root[:, None], g / root) / root)
    except np.linalg.LinAlgError:
        return np.asarray(g / root**2)


def short(value: Fraction) -> Fraction:
    if not value:
        return value
    power = max(0, 220 - value.numerator.bit_length() + value.denominator.bit_length())
    return Fraction(math.floor(value * (1 << power)), 1 << power)

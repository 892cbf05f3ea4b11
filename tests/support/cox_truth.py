"""Cox regression by dense weights of all terms in long double, and random survival data."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

LONG = np.longdouble


class Case(NamedTuple):
    """Random survival data."""

    X: Any
    time: Any
    event: Any
    entry: Any
    stratum: Any
    weights: Any
    efron: bool


def drawn_case(seed: int, n: int | None = None, p: int | None = None, plain: bool = False, spread: float = 1.0) -> Case:
    """Return survival data with ties, and perhaps with entry times, strata, weights, an outlier and near copies."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 50)) if n is None else n
    p = int(rng.integers(2, 7)) if p is None else p
    X = rng.normal(size=(n, p)) @ (np.eye(p) + rng.uniform(0, 2) * rng.normal(size=(p, p)) * (rng.random() < 0.5))
    if rng.random() < 0.3 and not plain:
        X[rng.integers(n)] *= rng.uniform(3, 20)
    if rng.random() < 0.2 and not plain:
        X[:, 0] = X[:, 1] + 1e-3 * X[:, 0]
    b = rng.normal(size=p) * rng.choice([0.0, 0.5, 1.5]) * spread
    risk = np.exp(-np.clip((X - X.mean(0)) / X.std(0) @ b, -20, 20))
    died, left = rng.exponential(size=n) * risk, rng.exponential(size=n) * np.median(risk) * rng.choice([0.5, 2, 10])
    time, event = np.minimum(died, left), died <= left
    if rng.random() < 0.6:
        time = np.ceil(time / np.quantile(time, 0.9) * 8)
    event[np.argsort(time)[: min(2, n)]] = True
    entry = time * rng.uniform(0, 1, n) - 1e-9 if rng.random() < 0.35 else None
    stratum = rng.integers(0, 3, n) if rng.random() < 0.35 else None
    weights = rng.uniform(0.2, 3.0, n) if rng.random() < 0.35 else None
    return Case(X, time, event, entry, stratum, weights, bool(rng.random() < 0.6))


def dense_terms(case: Case, rows: Any = None) -> tuple[Any, Any, Any, float]:
    """Return (T, n) weights of the terms, (T,) weights omega, (n,) event weights and the constant, for some rows."""
    n = len(case.time)
    inside = np.zeros(n, bool)
    inside[np.arange(n) if rows is None else rows] = True
    w = np.ones(n) if case.weights is None else case.weights
    stratum = np.zeros(n, int) if case.stratum is None else case.stratum
    W, omega, constant = [], [], LONG(0)
    for s in np.unique(stratum):
        for t in np.unique(case.time[case.event & inside & (stratum == s)]):
            R = inside & (stratum == s) & (case.time >= t)
            if case.entry is not None:
                R &= case.entry < t
            D = inside & (stratum == s) & (case.time == t) & case.event
            R |= D
            m, total = int(D.sum()), float(w[D].sum())
            for step in range(m if case.efron else 1):
                row = np.where(R, w, 0.0).astype(LONG)
                if case.efron:
                    row[D] *= 1 - LONG(step) / m
                W.append(row)
                omega.append(LONG(total) / m if case.efron else LONG(total))
            unit = np.full(m, LONG(total) / m) if case.efron else w[D].astype(LONG)
            constant += (w[D] * np.log(unit)).sum()
    events = np.where(inside & case.event, w, 0.0)
    return np.array(W, LONG).reshape(-1, n), np.array(omega, LONG), events.astype(LONG), constant


class Dense:
    """The loss of some rows, with its derivatives."""

    def __init__(self, case: Case, rows: Any = None) -> None:
        self.X = case.X.astype(LONG)
        self.W, self.omega, self.events, self.constant = dense_terms(case, rows)

    def shares(self, eta: Any) -> tuple[Any, Any]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.W) + eta
        most = logs.max(axis=1, keepdims=True, initial=-np.inf)
        E = np.exp(logs - most)
        total = E.sum(axis=1)
        return E / total[:, None], np.log(total) + most[:, 0]

    def loss(self, eta: Any) -> Any:
        if not len(self.omega):
            return LONG(0)
        return self.omega @ self.shares(eta)[1] - self.events @ eta - self.constant

    def derivatives(self, b: Any, S: Any = None) -> tuple[Any, Any, Any]:
        """Return l, its gradient and its Hessian at coefficients of some columns."""
        X = self.X if S is None else self.X[:, list(S)]
        eta = X @ np.asarray(b, LONG)
        if not len(self.omega):
            return LONG(0), 0 * X[0], np.zeros((X.shape[1],) * 2, LONG)
        P, _ = self.shares(eta)
        means = P @ X
        H = (X * (self.omega @ P)[:, None]).T @ X - (means * self.omega[:, None]).T @ means
        return self.loss(eta), (self.omega @ P - self.events) @ X, H

    def fit(self, S: Any, ridge: Any) -> tuple[Any, Any]:
        """Return the minimum of the loss and the penalty `ridge_j b_j^2` over some columns, and the coefficients."""
        S = list(S)
        ridge, b = np.asarray(ridge, LONG)[S], np.zeros(len(S), LONG)
        value, g, H = self.derivatives(b, S)
        for _ in range(100 if S else 0):
            g, H = g + 2 * ridge * b, H + np.diag(2 * ridge)
            F = value + ridge @ b**2
            step = -np.linalg.solve(H.astype(float), g.astype(float))
            size = 1.0
            near = float(-(g @ step)) <= 1e-10 * float(F)
            while size > 1e-12 and not near:
                there = self.derivatives(b + size * step, S)
                if there[0] + ridge @ (b + size * step) ** 2 <= F:
                    break
                size /= 2
            if size <= 1e-12:
                break
            there = self.derivatives(b + size * step, S)
            b, (value, g, H) = b + size * step, there
            if np.abs(step).max() <= 1e-17 * max(np.abs(b).max(), 1e-300):
                break
        return value + ridge @ b**2, b


def all_supports(p: int, most: int, least: int = 0) -> list[tuple[int, ...]]:
    """Return all supports with `least` to `most` of p columns."""
    return [S for k in range(least, most + 1) for S in itertools.combinations(range(p), k)]

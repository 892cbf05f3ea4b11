"""The enumeration that judges the search, against the definition of f and h fitted support by support."""

from __future__ import annotations

import numpy as np
import pytest
from every_support import brute_force_cell
from truth import INSIDE, OUTSIDE, Enumeration
from zoo import random_problem


@pytest.mark.parametrize("seed", range(40))
def test_reference_is_the_definition(seed: int) -> None:
    case = random_problem(seed, rows=20, columns=5)
    how = {"scale": case.scale, "intercept": case.intercept}
    X, y, fold = case.data.X, case.data.y, seed % case.folds.k
    train, test = case.folds.train_rows(fold), case.folds.scored_rows(fold)
    rows = Enumeration(X, y, train, test, **how)
    unit = np.ldexp(1.0, rows.exponent)
    for tau in case.taus:
        found = rows.optima(case.gammas[0], tau)
        slow = brute_force_cell(X, y, tau, case.gammas[0], rows=train, **how)
        blur = 16.0 * float(found.value_error.max()) + 1e-28  # the definition takes one mean, the reference two
        assert abs(slow.objective / unit / unit - found.best) <= 1e-9 * found.best + blur
        low, high = slow.held_out(X, y, test)
        slip = found.rounding(OUTSIDE, 1.0) * 64.0
        outer, inner = found.interval(OUTSIDE, 1.0), found.interval(INSIDE, -1.0)
        assert outer[0] * (1 - 1e-9) - slip <= low / unit / unit <= inner[0] * (1 + 1e-9) + slip
        assert inner[1] * (1 - 1e-9) - slip <= high / unit / unit <= outer[1] * (1 + 1e-9) + slip


@pytest.mark.parametrize("seed", range(12))
def test_a_weight_counts_as_so_many_rows(seed: int) -> None:
    rng, case = np.random.default_rng(seed), random_problem(seed, rows=20, columns=5)
    X, y, weight = case.data.X, case.data.y, rng.integers(1, 4, case.data.n)
    train, test = case.folds.train_rows(0), case.folds.scored_rows(0)
    many = np.repeat(np.arange(len(y)), weight)
    how = case.scale, case.intercept
    rows = Enumeration(X, y, train, test, *how, weight=weight.astype(float))
    repeated = (np.flatnonzero(np.isin(many, some)) for some in (train, test))
    again = Enumeration(X[many], y[many], *repeated, *how)
    one, two = (some.optima(case.gammas[0], case.taus[-1]) for some in (rows, again))
    room = 1e-9 * two.value + 16.0 * (one.value_error + two.value_error)
    assert np.all(np.abs(one.value - two.value) <= room)
    loose = 1e-7 * two.held_out + 64.0 * (one.held_out_error + two.held_out_error)
    assert np.all(np.abs(one.held_out - two.held_out) <= loose)

"""Multipliers of normal equations, against every support of small problems, by plain linear algebra."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.bounds import normal_equations
from sparsecv_mio.bounds.normal_equations import (
    Multipliers,
    adapt_multipliers,
    best_multipliers,
    multiplied_form,
)
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.normal_form import solve_root

HeldOut = tuple[np.ndarray, np.ndarray, float]


def drawn(seed: int, q: int = 6, forced: tuple[int, ...] = ()) -> tuple[SparseProblem, HeldOut]:
    """Correlated columns, and rows left out about the training means."""
    rng = np.random.default_rng(seed)
    n, held = 3 * q, q
    X = rng.standard_normal((n + held, q)) + rng.choice([0.5, 2.0]) * rng.standard_normal((n + held, 1))
    y = X @ rng.standard_normal(q) + rng.choice([0.3, 2.0]) * rng.standard_normal(n + held)
    V, r = X - X[:n].mean(axis=0), y - y[:n].mean()
    problem = SparseProblem(
        V[:n].T @ V[:n], V[:n].T @ r[:n], float(r[:n] @ r[:n]), rng.uniform(0.5, 2.0, q),
        float(rng.choice([1e-3, 0.3])), n, X[:n].mean(axis=0), float(y[:n].mean()),
        forced=np.array(forced, dtype=np.int64),
    )  # fmt: skip
    return problem, (V[n:].T @ V[n:], V[n:].T @ r[n:], float(r[n:] @ r[n:]))


def fits(problem: SparseProblem, held_out: HeldOut, size: int) -> list[tuple[float, float, np.ndarray]]:
    """Return f, h and b of the fit of every support of a size with the forced columns."""
    (Q, c, yy), out = held_out, []
    for support in map(list, combinations(range(problem.q), size)):
        if set(problem.forced.tolist()) <= set(support):
            b = np.zeros(problem.q)
            b[support] = np.linalg.solve(problem.M[np.ix_(support, support)], problem.c[support])
            out.append((problem.yy - float(problem.c @ b), float(yy - 2.0 * c @ b + b @ Q @ b), b))
    return out


def plain(problem: SparseProblem, t: float, share: float = 0.5) -> Multipliers:
    least = float(np.linalg.eigvalsh(problem.M)[0])
    return Multipliers(t, np.zeros(problem.q), np.full(problem.q - len(problem.forced), share * least))


@pytest.mark.parametrize("seed", range(40))
def test_what_they_prove_holds_for_every_support(seed: int) -> None:
    problem, held_out = drawn(seed, forced=(2,) if seed % 3 == 0 else ())
    rng, size = np.random.default_rng(seed), 3
    every, t = fits(problem, held_out, size), float(rng.choice([0.2, 1.5, 12.0]))
    f, h, _ = min(every, key=lambda fit: fit[0])
    start = plain(problem, t)
    found = best_multipliers(problem, held_out, size - len(problem.forced), (f, h), start, lambda: False)
    assert found.weight == t
    assert np.all(found.nu >= normal_equations.LEAST_MULTIPLIER) and np.all(
        found.nu <= normal_equations.MOST_MULTIPLIER
    )
    values = []
    for at in (start, found):
        made = multiplied_form(problem, held_out, at)
        assert made is not None
        form, zero = made[1], np.zeros(made[1].m)
        bar = 2.0 * (f + t * h)
        root = solve_root(form, size - len(problem.forced), bar, zero, lambda: False, near=1e-6, steps=2000)
        values.append(root.dual)
    assert values[1] >= values[0] - 1e-2 * t * h, "except for what room is worth"
    assert values[1] <= min(f + t * h for f, h, _ in every) + 1e-9 * (problem.yy + t * held_out[2])


@pytest.mark.parametrize("seed", range(6))
def test_the_slope_of_the_ascent_is_that_of_its_value(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal_equations, "RELAXED_NEAR", 1e-12)
    problem, held_out = drawn(seed, forced=(2,) if seed % 2 else ())
    rng, start = np.random.default_rng(seed), plain(problem, 1.5)
    ascent = normal_equations._Ascent(problem, held_out, 2, (problem.yy, held_out[2]), start, lambda: False)
    point = np.concatenate([rng.uniform(-0.1, 0.4, problem.q), rng.uniform(-0.3, 0.0, len(start.diagonal))])
    barrier, along = 1e-3 * problem.yy, rng.standard_normal(len(point))
    here = ascent.value(point, barrier)
    assert here is not None
    ends = [ascent.value(point + step * along, barrier) for step in (-1e-5, 1e-5)]
    assert ends[0] is not None and ends[1] is not None
    assert (ends[1][0] - ends[0][0]) / 2e-5 == pytest.approx(float(here[1] @ along), rel=2e-3, abs=1e-4 * problem.yy)


def test_those_of_a_neighbour_have_room_at_other_weights_and_gammas() -> None:
    problem, held_out = drawn(3, q=12)
    b = np.linalg.solve(problem.M, problem.c)
    ends = problem.yy - float(problem.c @ b), held_out[2]
    found = best_multipliers(problem, held_out, 4, ends, plain(problem, 6.0), lambda: False)
    for t in (1.5, 6.0, 24.0):
        for lam in (problem.lam, 10.0 * problem.lam):
            other, start = replace(problem, lam=lam, kept={}), plain(problem, t)
            at = adapt_multipliers(other, held_out, found, start)
            assert at.weight == t and at.nu.any() and multiplied_form(other, held_out, at) is not None


def test_an_ascent_ends_when_told() -> None:
    problem, held_out = drawn(1)
    start = plain(problem, 1.5)
    found = best_multipliers(problem, held_out, 2, (problem.yy, held_out[2]), start, lambda: True)
    assert np.array_equal(found.nu, start.nu) and np.array_equal(found.diagonal, start.diagonal)


@pytest.mark.parametrize("seed", range(4))
def test_an_ascent_ends_where_squares_of_its_slopes_are_no_numbers(seed: int) -> None:
    problem, (Q, c, yy) = drawn(seed)
    for unit in (1e-80, 1e-85, 1e-120, 1e-160):  # of a target that is next to nothing in the rows of a fold
        small = replace(problem, c=unit * problem.c, yy=unit**2 * problem.yy, kept={})
        start, held_out = plain(small, 1.5), (Q, unit * c, unit**2 * yy)
        found = best_multipliers(small, held_out, 3, (0.5 * small.yy, held_out[2]), start, lambda: False)
        assert np.isfinite(found.nu).all() and np.isfinite(found.diagonal).all()


def test_nothing_is_said_where_forced_columns_have_no_least_point_or_numbers_overflow() -> None:
    problem, held_out = drawn(4, forced=(1, 2))
    problem = replace(problem, weight=np.where(np.isin(np.arange(6), [1, 2]), 0.0, problem.weight), kept={})
    at = plain(problem, 1.5)
    assert multiplied_form(problem, held_out, at) is not None
    for nu in (np.array([0.0, 10.0, -0.5, 0.0, 0.0, 0.0]), np.array([0.0, np.nan, 0.0, 0.0, 0.0, 0.0])):
        Q = problem.Q.copy()
        Q[2] = Q[:, 2] = (1.0 - 1e-9) * Q[1] if np.isfinite(nu).all() else Q[2]
        twins = replace(problem, Q=Q, kept={})
        assert multiplied_form(twins, held_out, at._replace(nu=nu)) is None
    huge = held_out[0] * 1e300, held_out[1] * 1e300, np.inf
    found = best_multipliers(problem, huge, 1, (problem.yy, 1.0), at, lambda: False)
    assert np.array_equal(found.nu, at.nu) and multiplied_form(problem, huge, found) is None

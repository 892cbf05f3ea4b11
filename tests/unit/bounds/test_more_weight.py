"""Held-out errors bounded by rows with some weight, against every support within the level, by plain linear algebra."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from slow import slow

from sparsecv_mio.bounds import more_weight
from sparsecv_mio.bounds.closed_form import LEFT_OUT_WEIGHTS
from sparsecv_mio.bounds.more_weight import (
    HeldOutWeightedBounds,
    Known,
    Multipliers,
    RowsTogether,
    adapt_multipliers,
    best_multipliers,
    multiplied_form,
    with_multipliers,
)
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.normal_form import solve_root

GAMMAS = np.array([1e-4, 3e-3, 0.1, 4.0])


def drawn(seed: int) -> tuple[SparseProblem, np.ndarray, np.ndarray]:
    """Training rows about their means, some of their columns near copies; rows left out about the same means."""
    rng = np.random.default_rng(seed)
    q, n, held = int(rng.integers(3, 8)), int(rng.integers(9, 30)), int(rng.integers(1, 9))
    X = rng.standard_normal((n + held, q))
    X[:, 1] = X[:, 0] + rng.choice([0.01, 0.5]) * X[:, 1]
    if seed % 5 == 0:
        X[:n, 2] = 3.0  # constant where the fold trains
    y = X @ rng.standard_normal(q) + rng.choice([0.1, 2.0]) * rng.standard_normal(n + held)
    mean, level = X[:n].mean(axis=0), float(y[:n].mean())
    V, r = X - mean, y - level
    forced = np.array([1] if seed % 3 == 0 else [], dtype=np.int64)
    problem = SparseProblem(
        V[:n].T @ V[:n], V[:n].T @ r[:n], float(r[:n] @ r[:n]), rng.uniform(0.5, 2.0, q), 1.0, n, mean, level,
        forced=forced,
    )  # fmt: skip
    return problem, V[n:], r[n:]


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 300))])
def test_no_support_within_the_level_has_a_smaller_error(seed: int) -> None:
    problem, X, u = drawn(seed)
    rng, q = np.random.default_rng(seed), problem.q
    taus = np.arange(1, q + 1)
    values, errors = np.empty((len(GAMMAS), q)), np.full((len(GAMMAS), q), np.inf)
    fits = {}
    for g, gamma in enumerate(GAMMAS):
        M = replace(problem, lam=gamma / 2.0, kept={}).M
        for size in range(1, q + 1):
            for support in map(list, combinations(range(q), size)):
                if set(problem.forced.tolist()) <= set(support):
                    b = np.linalg.solve(M[np.ix_(support, support)], problem.c[support])
                    h = float(((u - X[:, support] @ b) ** 2).sum())
                    fits[g, tuple(support)] = problem.yy - float(problem.c[support] @ b), h
        for t, tau in enumerate(taus):
            mine = [fit for (at, s), fit in fits.items() if at == g and len(s) <= tau]
            level = min(f for f, _ in mine) * (1.0 + 1e-9) + 0.1 * float(rng.choice([0.0, rng.random()])) * problem.yy
            values[g, t], errors[g, t] = level, min(h for f, h in mine if f <= level)
    values[rng.random(values.shape) < 0.1] = np.inf
    wanted = rng.random(values.shape) < 0.8
    rows, known = RowsTogether(problem, (X.T @ X, X.T @ u, float(u @ u))), Known(values, errors)
    bounds = HeldOutWeightedBounds(GAMMAS, taus)
    bounds.best[...] = rng.integers(0, len(LEFT_OUT_WEIGHTS), values.shape)  # trees go on where nothing is relaxed
    if seed % 4:
        bounds.bound_pairs(rows, wanted, known, lambda: False)
    relaxed = bounds.held_out_errors(values)
    for _ in range(6 if seed % 2 else 0):
        pair = int(rng.integers(len(GAMMAS))), int(rng.integers(q))
        target = float(relaxed[pair] + rng.choice([0.1, 0.5, 1.5]) * errors[pair])
        bounds.branch(rows, pair, (target, target), int(rng.integers(1, 40)), known, lambda: False)
    found = bounds.held_out_errors(values)
    assert found.shape == values.shape and np.all(found >= relaxed) and not found[np.isinf(values)].any()
    assert np.all(found <= errors * (1.0 + 1e-9) + 1e-12 * problem.yy)


def test_they_say_something_and_end_when_told() -> None:
    problem, X, u = drawn(7)
    b = np.linalg.solve(problem.with_gamma(0.1).M, problem.c)
    value, error = problem.yy - float(problem.c @ b), float(((u - X @ b) ** 2).sum())
    rows = RowsTogether(problem, (X.T @ X, X.T @ u, float(u @ u)))
    # of the ridge fit of all columns: no support is better
    known = Known(np.full((1, 1), value), np.full((1, 1), error))
    for is_expired, least in ((True, 0.0), (False, 0.3 * error)):
        bounds, wanted = HeldOutWeightedBounds(np.array([0.1]), np.array([2])), np.ones((1, 1), dtype=bool)
        bounds.bound_pairs(rows, wanted, known, lambda is_expired=is_expired: is_expired)
        found = bounds.held_out_errors(known.values)[0, 0]
        assert found > least if least else found == 0.0


def test_a_tree_says_more_than_a_relaxation() -> None:
    """A hard problem: columns that all depend on one another, of which few are taken."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 14)) + 2.0 * rng.standard_normal((60, 1))
    y = X @ rng.standard_normal(14) + rng.standard_normal(60)
    V, r = X - X[:45].mean(axis=0), y - y[:45].mean()
    problem = SparseProblem(
        V[:45].T @ V[:45], V[:45].T @ r[:45], float(r[:45] @ r[:45]), np.ones(14), 1.0, 45, X[:45].mean(axis=0),
        float(y[:45].mean()), forced=np.array([], dtype=np.int64),
    )  # fmt: skip
    M, fits = problem.with_gamma(0.01).M, []
    for support in map(list, combinations(range(14), 5)):
        b = np.linalg.solve(M[np.ix_(support, support)], problem.c[support])
        fits.append((problem.yy - float(problem.c[support] @ b), float(((r[45:] - V[45:][:, support] @ b) ** 2).sum())))
    value, error = min(fits)
    rows = RowsTogether(problem, (V[45:].T @ V[45:], V[45:].T @ r[45:], float(r[45:] @ r[45:])))
    known = Known(np.full((1, 1), value * (1.0 + 1e-9)), np.full((1, 1), error))
    bounds = HeldOutWeightedBounds(np.array([0.01]), np.array([5]))
    bounds.bound_pairs(rows, np.ones((1, 1), dtype=bool), known, lambda: False)
    before = float(bounds.held_out_errors(known.values)[0, 0])
    nodes = bounds.branch(rows, (0, 0), (before + 0.05 * error,) * 2, 4000, known, lambda: False)
    by_multipliers = float(bounds.held_out_errors(known.values)[0, 0])
    assert nodes == 0 and before + 0.1 * error < by_multipliers
    nodes = bounds.branch(rows, (0, 0), (by_multipliers + 0.15 * error,) * 2, 4000, known, lambda: False)
    after = float(bounds.held_out_errors(known.values)[0, 0])
    assert nodes > 1 and by_multipliers + 0.14 * error < after <= error
    bounds.take_light_weights(np.ones((1, 1), dtype=bool))
    assert LEFT_OUT_WEIGHTS[int(bounds.best[0, 0])] < 0.75
    bounds.branch(rows, (0, 0), (2.0 * error,) * 2, 4000, known, lambda: False)
    assert after < float(bounds.held_out_errors(known.values)[0, 0]) <= error, "beyond what any tree can prove"


def correlated(seed: int) -> tuple[RowsTogether, Known, float]:
    """Rows of columns that all depend on one another, what is known of 9 of them as if by a search, and an h."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 40)) + 2.0 * rng.standard_normal((80, 1))
    y = X @ rng.standard_normal(40) + 3.0 * rng.standard_normal(80)
    V, r = X - X[:70].mean(axis=0), y - y[:70].mean()
    problem = SparseProblem(
        V[:70].T @ V[:70], V[:70].T @ r[:70], float(r[:70] @ r[:70]), np.ones(40), 0.005, 70, X[:70].mean(axis=0),
        float(y[:70].mean()), forced=np.array([], dtype=np.int64),
    )  # fmt: skip
    best = solve_path(problem, [9], node_limit=0).by_size[9]
    b = np.linalg.solve(problem.M[np.ix_(best.support, best.support)], problem.c[best.support])
    error = float(((r[70:] - V[70:][:, best.support] @ b) ** 2).sum())
    rows = RowsTogether(problem, (V[70:].T @ V[70:], V[70:].T @ r[70:], float(r[70:] @ r[70:])))
    return rows, Known(np.full((1, 1), best.upper), np.full((1, 1), error)), error


def test_a_tree_goes_on_where_it_was_left() -> None:
    target = (2.0 * correlated(0)[2],) * 2
    bounds_seen, spent = [], []
    for parts in ((40,), (10, 10, 20)):
        rows, known, _ = correlated(0)
        bounds, nodes = HeldOutWeightedBounds(np.array([0.01]), np.array([9])), 0
        for part in parts:
            bounds.missed[...] = 0.0
            nodes += bounds.branch(rows, (0, 0), target, part, known, lambda: False)
        bounds_seen.append(bounds.held_out_errors(known.values).max())
        spent.append(nodes)
    assert spent == [40, 40] and bounds_seen[0] == bounds_seen[1]


def test_a_tree_that_cannot_bring_what_will_do_begins_anew() -> None:
    rows, known, error = correlated(1)
    bounds = HeldOutWeightedBounds(np.array([0.01]), np.array([9]))
    bounds.branch(rows, (0, 0), (0.5 * error,) * 2, 4, known, lambda: False)
    ((level, _, tree),) = rows.unfinished_trees.values()
    bounds.missed[...] = 0.0
    bounds.branch(rows, (0, 0), (0.9 * error, 0.7 * error), 4, known, lambda: False)
    ((higher, _, other),) = rows.unfinished_trees.values()
    assert higher > level and other is not tree


def test_trees_that_were_left_take_no_more_room_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, known, error = correlated(1)
    bounds = HeldOutWeightedBounds(np.array([0.01]), np.array([8, 9, 10]))
    known = Known(*(np.repeat(array, 3, axis=1) for array in known))
    for at in range(3):
        bounds.branch(rows, (0, at), (2.0 * error,) * 2, 4, known, lambda: False)
    sizes = [left.tree.nbytes for left in rows.unfinished_trees.values()]
    assert len(sizes) == 3
    monkeypatch.setattr(more_weight, "TREE_BYTES", sum(sizes) - 1)
    bounds.missed[...] = 0.0
    bounds.branch(rows, (0, 0), (2.0 * error,) * 2, 4, known, lambda: False)
    assert [tau for _, _, tau, _ in rows.unfinished_trees] == [10, 8], (
        "that which was not worked on for longest is forgotten"
    )


HeldOut = tuple[np.ndarray, np.ndarray, float]


def drawn_problem(seed: int, q: int = 6, forced: tuple[int, ...] = ()) -> tuple[SparseProblem, HeldOut]:
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


def all_fits(problem: SparseProblem, held_out: HeldOut, size: int) -> list[tuple[float, float, np.ndarray]]:
    """Return f, h and b of the fit of every support of a size with the forced columns."""
    (Q, c, yy), out = held_out, []
    for support in map(list, combinations(range(problem.q), size)):
        if set(problem.forced.tolist()) <= set(support):
            b = np.zeros(problem.q)
            b[support] = np.linalg.solve(problem.M[np.ix_(support, support)], problem.c[support])
            out.append((problem.yy - float(problem.c @ b), float(yy - 2.0 * c @ b + b @ Q @ b), b))
    return out


def plain_multipliers(problem: SparseProblem, t: float, share: float = 0.5) -> Multipliers:
    least = float(np.linalg.eigvalsh(problem.M)[0])
    return Multipliers(t, np.zeros(problem.q), np.full(problem.q - len(problem.forced), share * least))


@pytest.mark.parametrize("seed", range(20))
def test_what_they_prove_holds_for_every_support(seed: int) -> None:
    problem, held_out = drawn_problem(seed, forced=(2,) if seed % 3 == 0 else ())
    rng, size = np.random.default_rng(seed), 3
    every, t = all_fits(problem, held_out, size), float(rng.choice([0.2, 1.5, 12.0]))
    f, h, _ = min(every, key=lambda fit: fit[0])
    start = plain_multipliers(problem, t)
    found = best_multipliers(problem, held_out, size - len(problem.forced), (f, h), start, lambda: False)
    assert found.weight == t
    assert np.all(found.nu >= more_weight.LEAST_MULTIPLIER) and np.all(found.nu <= more_weight.MOST_MULTIPLIER)
    values = []
    for at in (start, found):
        made, scale = multiplied_form(problem, held_out, at), (1.0 + np.abs(at.nu).max()) * problem.yy + t * held_out[2]
        assert made is not None
        objective = with_multipliers(problem, held_out, at)
        assert objective is not None and objective.size == pytest.approx(scale, rel=1e-12)
        form, zero = made[1], np.zeros(made[1].m)
        bar = 2.0 * (f + t * h)
        root = solve_root(form, size - len(problem.forced), bar, zero, lambda: False, near=1e-6, steps=2000)
        values.append(root.dual)
    assert values[1] >= values[0] - 1e-2 * t * h, "except for what room is worth"
    assert values[1] <= min(f + t * h for f, h, _ in every) + 1e-9 * (problem.yy + t * held_out[2])


@pytest.mark.parametrize("seed", range(6))
def test_the_slope_of_the_ascent_is_that_of_its_value(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(more_weight, "RELAXED_NEAR", 1e-12)
    problem, held_out = drawn_problem(seed, forced=(2,) if seed % 2 else ())
    rng, start = np.random.default_rng(seed), plain_multipliers(problem, 1.5)
    ascent = more_weight._Ascent(problem, held_out, 2, (problem.yy, held_out[2]), start, lambda: False)
    point = np.concatenate([rng.uniform(-0.1, 0.4, problem.q), rng.uniform(-0.3, 0.0, len(start.diagonal))])
    barrier, along = 1e-3 * problem.yy, rng.standard_normal(len(point))
    here = ascent.value(point, barrier)
    assert here is not None
    ends = [ascent.value(point + step * along, barrier) for step in (-1e-5, 1e-5)]
    assert ends[0] is not None and ends[1] is not None
    assert (ends[1][0] - ends[0][0]) / 2e-5 == pytest.approx(float(here[1] @ along), rel=2e-3, abs=1e-4 * problem.yy)


def test_those_of_a_neighbour_have_room_at_other_weights_and_gammas() -> None:
    problem, held_out = drawn_problem(3, q=12)
    b = np.linalg.solve(problem.M, problem.c)
    ends = problem.yy - float(problem.c @ b), held_out[2]
    found = best_multipliers(problem, held_out, 4, ends, plain_multipliers(problem, 6.0), lambda: False)
    for t in (1.5, 6.0, 24.0):
        for lam in (problem.lam, 10.0 * problem.lam):
            other, start = replace(problem, lam=lam, kept={}), plain_multipliers(problem, t)
            at = adapt_multipliers(other, held_out, found, start)
            assert at.weight == t and at.nu.any() and multiplied_form(other, held_out, at) is not None


def test_an_ascent_ends_when_told() -> None:
    problem, held_out = drawn_problem(1)
    start = plain_multipliers(problem, 1.5)
    found = best_multipliers(problem, held_out, 2, (problem.yy, held_out[2]), start, lambda: True)
    assert np.array_equal(found.nu, start.nu) and np.array_equal(found.diagonal, start.diagonal)


@pytest.mark.parametrize("seed", range(4))
def test_an_ascent_ends_where_squares_of_its_slopes_are_no_numbers(seed: int) -> None:
    problem, (Q, c, yy) = drawn_problem(seed)
    for unit in (1e-80, 1e-85, 1e-120, 1e-160):  # of a target that is next to nothing in the rows of a fold
        small = replace(problem, c=unit * problem.c, yy=unit**2 * problem.yy, kept={})
        start, held_out = plain_multipliers(small, 1.5), (Q, unit * c, unit**2 * yy)
        found = best_multipliers(small, held_out, 3, (0.5 * small.yy, held_out[2]), start, lambda: False)
        assert np.isfinite(found.nu).all() and np.isfinite(found.diagonal).all()


def test_nothing_is_said_where_forced_columns_have_no_least_point_or_numbers_overflow() -> None:
    problem, held_out = drawn_problem(4, forced=(1, 2))
    problem = replace(problem, weight=np.where(np.isin(np.arange(6), [1, 2]), 0.0, problem.weight), kept={})
    at = plain_multipliers(problem, 1.5)
    assert multiplied_form(problem, held_out, at) is not None
    for nu in (np.array([0.0, 10.0, -0.5, 0.0, 0.0, 0.0]), np.array([0.0, np.nan, 0.0, 0.0, 0.0, 0.0])):
        Q = problem.Q.copy()
        Q[2] = Q[:, 2] = (1.0 - 1e-9) * Q[1] if np.isfinite(nu).all() else Q[2]
        twins = replace(problem, Q=Q, kept={})
        assert multiplied_form(twins, held_out, at._replace(nu=nu)) is None
    huge = held_out[0] * 1e300, held_out[1] * 1e300, np.inf
    found = best_multipliers(problem, huge, 1, (problem.yy, 1.0), at, lambda: False)
    assert np.array_equal(found.nu, at.nu) and multiplied_form(problem, huge, found) is None

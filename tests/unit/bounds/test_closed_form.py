"""The training-loss bound against enumeration of every support."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact import check_allowance, fractions, solve, square_root
from scipy.linalg import cho_solve

from sparsecv_mio.bounds import closed_form
from sparsecv_mio.bounds.closed_form import (
    Centre,
    RidgeBall,
    ball_of_left_out,
    enough_on_all_rows,
    implied_lower_bounds,
    training_loss_bound,
)
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.problem.problem import SparseProblem


def drawn(seed: int) -> tuple[dict[tuple[int, ...], tuple[float, float, float]], np.random.Generator]:
    """For every support of a size (objective on all rows, objective without a fold, held-out error), at random."""
    rng = np.random.default_rng(seed)
    n, p, tau = int(rng.integers(6, 20)), int(rng.integers(2, 6)), int(rng.integers(1, 3))
    X = rng.normal(size=(n, p)) + rng.uniform(0, 2) * rng.normal(size=(n, 1))
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0]  # copies: optima that are not unique
    y = X @ rng.normal(size=p) + rng.uniform(0.1, 3) * rng.normal(size=n) + 5.0
    gamma, intercept = 10.0 ** rng.uniform(-2, 1), str(rng.choice(["fold", "global", "none"]))
    test = rng.choice(n, size=int(rng.integers(1, n // 2)), replace=False)
    train = np.setdiff1d(np.arange(n), test)
    found = {}
    for s in combinations(range(p), tau):
        whole = fit(X, y, s, gamma, intercept=intercept)
        part = fit(X, y, s, gamma, intercept=intercept, rows=train)
        found[s] = whole.objective, part.objective, held_out_error(part, X, y, test)
    return found, rng


def optima(found: dict[tuple[int, ...], tuple[float, float, float]]) -> list[tuple[int, ...]]:
    least = min(inside for _, inside, _ in found.values())
    return [s for s, (_, inside, _) in found.items() if inside <= least * (1.0 + 1e-9)]


@pytest.mark.parametrize("block", range(4))
def test_every_optimum_of_a_fold(block: int) -> None:
    tight = 0
    for seed in range(100 * block, 100 * block + 100):
        found, rng = drawn(seed)
        best = min(f for f, _, _ in found.values())
        v = best * (1.0 - rng.choice([0.0, 1e-3, 0.2]))
        for s in optima(found):
            u = found[s][1] * (1.0 + rng.choice([0.0, 1e-3, 0.2]))
            bound = float(training_loss_bound(v, u))
            assert bound <= found[s][2] + 1e-9 * best
            tight += bound > 0.0
    assert tight > 10


def test_an_unknown_value_bounds_nothing() -> None:
    found = training_loss_bound(np.array([3.0, np.inf, np.inf]), np.array([np.nan, np.inf, 1.0]))
    assert found.tolist() == [-np.inf, -np.inf, np.inf]


def test_allowances_are_taken_off_in_turn() -> None:
    """To the last bit, so that certificates do not depend on who computes them."""
    rng = np.random.default_rng(0)
    v, u, a, b = rng.uniform(1, 2, (4, 100))
    assert np.array_equal(training_loss_bound(v, u, a, b), ((v - u) - a) - b)
    assert training_loss_bound(v[:3, None], u).shape == (3, 100)


@pytest.mark.parametrize("seed", range(20))
def test_the_least_bound_on_all_rows_that_is_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known, fold = rng.uniform(0.0, 3.0, size=(2, 4, 5)), rng.uniform(4.0, 9.0, size=(2, 4, 5))
    fold[rng.random(size=fold.shape) < 0.2] = np.inf
    bar = known.sum(axis=-1) + rng.uniform(-1.0, 9.0, size=(2, 4))

    def reached(v: np.ndarray) -> np.ndarray:
        return np.maximum(known, training_loss_bound(v[..., None], fold)).sum(axis=-1)

    v, usable = enough_on_all_rows(known, fold, bar), np.isfinite(fold).any(axis=-1)
    idle = known.sum(axis=-1) >= bar
    assert np.all(v[idle] == 0.0) and np.all(np.isinf(v[~idle & ~usable]))
    working = ~idle & usable
    np.testing.assert_allclose(reached(v)[working], bar[working], rtol=1e-12)
    assert np.all(np.isinf(enough_on_all_rows(known, fold, np.full((2, 4), np.inf))))


def optima_implied(X: np.ndarray, y: np.ndarray, gammas: np.ndarray) -> np.ndarray:
    """(G, p + 1): f of every pair by trying every support."""
    f = np.full((len(gammas), X.shape[1] + 1), float(y @ y))
    for g, gamma in enumerate(gammas):
        for tau in range(1, X.shape[1] + 1):
            values = []
            for support in combinations(range(X.shape[1]), tau):
                A = np.vstack([X[:, support], np.sqrt(gamma / 2.0) * np.eye(tau)])
                b = np.append(y, np.zeros(tau))
                values.append(float(((b - A @ np.linalg.lstsq(A, b, rcond=None)[0]) ** 2).sum()))
            f[g, tau] = min(values)
    return f


def test_no_bound_exceeds_an_optimum_and_none_falls() -> None:
    sharper = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(4, 15)), int(rng.integers(1, 5))
        X = rng.normal(size=(n, p))
        y = X[:, 0] + rng.uniform(0.0, 2.0) * rng.normal(size=n)
        gammas = np.sort(10.0 ** rng.uniform(-3.0, 3.0, size=int(rng.integers(1, 7))))
        f = optima_implied(X, y, gammas)
        lower = f * rng.choice([0.0, 0.5, 0.9, 1.0], size=f.shape)
        found = implied_lower_bounds(gammas, lower)
        assert np.all(found >= lower) and np.all(found <= f * (1.0 + 1e-12))
        # nothing more follows from what was found
        np.testing.assert_allclose(implied_lower_bounds(gammas, found), found, rtol=1e-9)
        sharper += int((found > lower * (1.0 + 1e-9)).sum())
    assert sharper > 200


def test_bounds_far_apart_keep_their_digits() -> None:
    gammas = np.array([1e-300, 1e-3, 1.0, 1e300])
    lower = np.array([[1e-200], [0.0], [3.0], [4.0]])
    found = implied_lower_bounds(gammas, lower)
    assert np.all(np.isfinite(found)) and np.all(found >= lower) and np.all(np.diff(found[:, 0]) >= 0.0)


def chord_excess(seed: int) -> list[Fraction]:
    """Lower bounds at two gammas; at the gamma between them, f may be exactly on their chord."""
    rng = np.random.default_rng(seed)
    gammas = np.sort(10.0 ** rng.uniform(-2.0, 2.0, size=3))
    lower = np.array([1.0, 0.0, rng.uniform(1.0, gammas[2] / gammas[0])])
    low, between, high = map(Fraction, gammas)
    chord = 1 + (Fraction(lower[2]) - 1) * (between - low) / (high - low)
    return [Fraction(implied_lower_bounds(gammas, lower[:, None])[1, 0]) - chord]


def test_chords_are_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    check_allowance(chord_excess, range(40), [(closed_form, "SUM_RTOL")], monkeypatch)


UNIT = 1e-14


def problem_of(X: np.ndarray, y: np.ndarray, lam: float) -> SparseProblem:
    q = X.shape[1]
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), lam, len(y), np.zeros(q), 0.0)


def drawn_ridge_ball(seed: int, m: int, q: int = 5) -> tuple[SparseProblem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((20, q)), rng.standard_normal(20)
    X[:, 1] += 2.0 * X[:, 0]
    return problem_of(X, y, float(rng.choice([0.01, 1.0]))), rng.standard_normal((m, q)), rng.standard_normal(m)


def fits(problem: SparseProblem) -> list[tuple[float, np.ndarray]]:
    """f and coefficients of every support."""
    found = []
    for size in range(problem.q + 1):
        for support in combinations(range(problem.q), size):
            held, b = list(support), np.zeros(problem.q)
            b[held] = np.linalg.solve(problem.M[np.ix_(held, held)], problem.c[held])
            found.append((float(problem.yy - problem.c @ b), b))
    return found


def excesses_of_ball(seed: int, has_unit: bool = True) -> Iterator[Fraction]:
    """Claims on the ball of moments that differ from the exact ones by nearly their whole relative rounding."""
    rng, q = np.random.default_rng(seed), 3
    X, y, unit = rng.standard_normal((6, q)), rng.standard_normal(6), 10.0 ** rng.uniform(-8.0, -6.0)
    X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-1.5, 0.0) * X[:, 1]
    true, row, target = problem_of(X, y, 10.0 ** rng.uniform(-3.0, 0.0)), rng.standard_normal(q), rng.standard_normal()
    vectors = np.linalg.eigh(true.M)[1]
    row = vectors[:, -1] if seed % 5 == 0 else row  # the smallest reach; most of it may be lost in moments
    length, b, near = np.sqrt(np.diag(true.M)), np.linalg.solve(true.M, true.c), 0.99 * unit
    target = target if seed % 2 else float(row @ b)  # a residual of 0 loses all digits in moments
    sign = np.sign(b) if seed % 3 else rng.choice([-1.0, 1.0], size=q)
    moved, lost = sign * length * rng.choice([-1.0, 1.0]), np.abs(row) * np.sign(vectors[:, 0])
    Q, c, yy = (
        true.Q + near * np.outer(moved, moved), true.c - near * np.sqrt(true.yy) * moved, true.yy * (1.0 + near)
    )  # fmt: skip
    problem, stated = replace(true, Q=Q, c=c, yy=yy), unit if has_unit else 0.0
    centre = Centre.from_problem(problem, stated)
    by_rows = RidgeBall.from_rows(
        problem, (row * (1.0 + near * np.sign(b)))[None], np.array([target * (1.0 - near)]), stated
    )
    by_moments = RidgeBall.from_moments(
        problem, np.outer(row, row) - near * np.outer(lost, lost), target * row, target**2, stated
    )
    assert centre is not None and by_rows is not None and by_rows.rows is not None and by_moments is not None
    M, x, u, beta = fractions(true.Q), fractions(row), Fraction(target), fractions(centre.beta)
    M += Fraction(true.lam) * fractions(np.eye(q))
    exact_c, exact_yy = fractions(true.c), Fraction(true.yy)
    slope, reach = exact_c - M @ beta, x @ solve(M, x)
    yield Fraction(centre.value) - (exact_yy - (exact_c + slope) @ beta)
    yield slope @ solve(M, slope) - Fraction(centre.off) ** 2
    yield Fraction(by_rows.least) - (exact_yy - exact_c @ solve(M, exact_c))
    yield reach - Fraction(by_rows.rows[1][0])
    for ball in (by_rows, by_moments):
        yield reach - Fraction(ball.reach)
        yield abs(abs(u - x @ beta) - Fraction(ball.norm)) - Fraction(float(ball.slip[0]))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_claims_of_a_ball_allow_for_rounding(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """The residual of the normal equations bounds the error of any centre."""
    monkeypatch.setattr(closed_form, "cho_solve", lambda *of: share * cho_solve(*of))
    for seed in range(30):
        assert all(excess <= 0 for excess in excesses_of_ball(seed))
    of_seeds = zip(*(excesses_of_ball(seed, has_unit=False) for seed in range(30)), strict=True)
    assert all(any(excess > 0 for excess in of_claim) for of_claim in of_seeds)


def excesses_of_ends(seed: int) -> Iterator[Fraction]:
    """Ends of a ball against the formula of its attributes."""
    rng, m = np.random.default_rng(seed), 1 + seed % 3
    residual, each, slip = rng.uniform(0.0, 1.0, size=(3, m)) * np.array([[1.0], [seed % 2], [1e-3 * (seed % 5)]])
    value, off, room = rng.uniform(1.0, 2.0), 0.1 * (seed % 7), rng.uniform(0.0, 1e-3) * (seed % 4)
    ball = RidgeBall(value, off, value, float(np.linalg.norm(residual)), 9.0, slip, (residual, each))
    found, exact_off = ball.held_out(value + room), Fraction(off)
    radius = exact_off + square_root(exact_off**2 + Fraction(value + room) - Fraction(value))
    moves = [radius * square_root(Fraction(x)) + Fraction(s) for x, s in zip(each, slip, strict=True)]
    pairs = list(zip(fractions(residual), moves, strict=True))
    yield Fraction(found.lower) - sum(max(r - move, 0) ** 2 for r, move in pairs)
    yield sum((r + move) ** 2 for r, move in pairs) - Fraction(found.upper)


def test_ends_of_a_ball_are_rounded_outwards(monkeypatch: pytest.MonkeyPatch) -> None:
    check_allowance(excesses_of_ends, range(420), [(closed_form, "OUTWARD")], monkeypatch)


def test_a_ball_about_any_centre_holds_the_level_set() -> None:
    """f(b) = (b - 2)^2 + 1/2 about 0, whose error in the norm of M is 2."""
    centre = Centre(np.zeros(1), np.eye(1), 4.5, 2.0, 1.0)
    assert centre.objective_lower_bound == 0.5
    ball = RidgeBall(centre.value, centre.off, centre.objective_lower_bound, 2.0, 1.0, np.zeros(1))
    assert ball.held_out(1.5).lower == 0.0 and ball.held_out(1.5).upper >= (2.0 + 3.0) ** 2


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("m", [1, 3, 40])
def test_every_fit_up_to_the_level_is_inside(seed: int, m: int) -> None:
    problem, X, u = drawn_ridge_ball(seed, m)
    by_rows = RidgeBall.from_rows(problem, X, u, UNIT)
    by_moments = RidgeBall.from_moments(problem, X.T @ X, X.T @ u, float(u @ u), UNIT)
    assert by_rows is not None and by_moments is not None
    every = fits(problem)
    for level in np.quantile([value for value, _ in every], [0.0, 0.3, 1.0]):
        one, two = by_rows.held_out(float(level)), by_moments.held_out(float(level))
        for value, b in every:
            if value <= level:
                error = float(np.sum((u - X @ b) ** 2))
                assert one.lower <= error * (1 + 1e-9) and error <= one.upper * (1 + 1e-9)
                assert two.lower <= error * (1 + 1e-6) and error <= two.upper * (1 + 1e-6)
        if m <= 2 * problem.q:  # of more rows the sum of the leverages stands for the largest eigenvalue
            assert one.upper - one.lower <= (two.upper - two.lower) * (1.0 + 1e-3) + 1e-6


def test_what_means_leave_of_a_row_is_rounding() -> None:
    """A target of 5 in training and in the row, about the mean of all rows: its residual may be 0."""
    problem = SparseProblem(np.eye(1), np.zeros(1), 0.0, np.ones(1), 1.0, 9, np.zeros(1), -0.012)
    X, u, level = np.array([[1.0]]), np.array([8.7e-19]), np.array([0.0, 0.012])
    for ball in (
        RidgeBall.from_rows(problem, X, u, 1e-15, level),
        RidgeBall.from_moments(problem, X.T @ X, X.T @ u, float(u @ u), 1e-15, level, 1),
    ):
        assert ball is not None and ball.held_out(0.0).lower == 0.0


def test_moments_without_digits_say_nothing() -> None:
    X = np.ones((9, 2))
    problem = problem_of(X, np.arange(9.0), 1e-18)
    assert RidgeBall.from_rows(problem, X, np.ones(9), UNIT) is None
    assert RidgeBall.from_moments(problem, X.T @ X, X.T @ np.ones(9), 9.0, UNIT) is None
    problem, *_ = drawn_ridge_ball(1, 1)
    assert Centre.from_problem(problem, UNIT) is not None and Centre.from_problem(problem, 1.0) is None


def test_a_column_that_is_constant_in_training_under_next_to_no_penalty_says_nothing() -> None:
    problem, X, u = drawn_ridge_ball(1, 2)
    Q = problem.Q.copy()
    Q[0] = Q[:, 0] = 0.0
    weight = np.append(1e-300, np.ones(problem.q - 1))
    lost = replace(problem, Q=Q, c=np.append(0.0, problem.c[1:]), weight=weight, lam=1e-14)
    assert RidgeBall.from_rows(lost, X, u, UNIT) is None


@pytest.mark.parametrize("seed", range(12))
def test_ball_of_a_fold_from_the_fit_on_all_rows(seed: int) -> None:
    """No fit on the fold's training rows is needed: its ridge ball, looser, from residuals and leverages."""
    rng, q = np.random.default_rng(seed), 4
    X, y, lam = rng.standard_normal((30, q)), rng.standard_normal(30), 0.5
    rows = np.arange(1 + seed % 3)
    rest = np.setdiff1d(np.arange(30), rows)
    whole, part = problem_of(X, y, lam), problem_of(X[rest], y[rest], lam)
    b = np.linalg.solve(whole.M, whole.c)
    e, H = (y - X @ b)[rows], X[rows] @ np.linalg.solve(whole.M, X[rows].T)
    leverage = float(np.linalg.eigvalsh(H)[-1])
    decrease = float(e @ e) / (1.0 - leverage)
    every = fits(part)
    for level in np.quantile([value for value, _ in every], [0.2, 1.0]):
        room = level - (whole.yy - whole.c @ b - decrease)
        length = np.array([np.linalg.norm(e)])
        (least,), (most,) = ball_of_left_out(np.array([room]), (length, length), np.array([leverage]))
        inside = [float(np.sum((y[rows] - X[rows] @ b) ** 2)) for value, b in every if value <= level]
        assert least * (1.0 - 1e-9) <= min(inside) and max(inside) <= most * (1.0 + 1e-9)

"""Residuals of every row under the models without each fold, against the definition, with bounds on their rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from exact import check_allowance, fractions, square_root

from sparsecv_mio.bounds import model_changes
from sparsecv_mio.bounds.model_changes import (
    LossesOfRows,
    OpenFolds,
    Residuals,
    residual_distances,
    residuals_without_rows,
)
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.problem.beyond_floats import fit_exactly
from sparsecv_mio.problem.objective import fit


def drawn(seed: int) -> tuple[Dataset, str, str, float]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    X = rng.normal(size=(n, 4))
    if seed % 3 == 1:  # nearly dependent columns
        X[:, 1] = X[:, 0] + 10.0 ** -rng.integers(2, 9) * rng.normal(size=n)
    if seed % 3 == 2:  # large offsets
        X = X * 10.0 ** rng.integers(-3, 4, size=4) + 10.0 ** rng.integers(-2, 5, size=4)
    data = Dataset.from_arrays(X, X @ rng.normal(size=4) + rng.normal(size=n) * 10.0 ** rng.integers(-6, 2))
    if seed % 4 == 3:
        data = weighted_rows(data, rng.uniform(0.1, 3.0, size=n), "w")
    how = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "global", "none"]))
    return data, *how, float(10.0 ** rng.integers(-8, 3))


@pytest.mark.parametrize("block", range(4))
def test_residuals_are_those_of_the_definition_within_their_bounds(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        data, scale, intercept, gamma = drawn(seed)
        standard, plan = standardize(data, scale, intercept), make_folds("5", data)
        support = np.arange(min(3, standard.q))
        found = residuals_without_rows(standard, support, gamma, [plan.left_out(fold) for fold in range(5)])
        for fold in range(5):
            model = fit(
                data.X, data.y, standard.columns[support].tolist(), gamma, scale=scale, intercept=intercept,
                rows=plan.train_rows(fold), weights=data.row_weights,
            )  # fmt: skip
            true = model.residuals(data.X, data.y, np.arange(data.n)) * model.coordinates.y_unit / standard.y_unit
            if data.row_weights is not None:
                true = true * np.sqrt(data.row_weights)
            assert (np.abs(true - found.values[:, fold]) <= found.doubt[:, fold]).all()
            assert found.doubt[:, fold].max() <= 1e-7 * np.abs(standard.rows(slice(0, data.n))[1]).max()


def test_a_fold_without_the_one_huge_cell_keeps_its_digits() -> None:
    """About the mean of all rows the others are equal, and the fold would seem to have no use for the column."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 1))
    data = Dataset.from_arrays(np.where(np.arange(12)[:, None] == 7, 1e24, X), 2.0 * X[:, 0] + rng.normal(size=12))
    standard = standardize(data, "none")
    found = residuals_without_rows(standard, np.array([0]), 1e-3, [np.array([7])])
    model = fit(data.X, data.y, [0], 1e-3, scale="none", rows=np.delete(np.arange(12), 7))
    true = model.residuals(data.X, data.y, np.arange(12)) * model.coordinates.y_unit / standard.y_unit
    assert np.abs(true[7]) > 1e23 and found.values[:, 0] == pytest.approx(true, rel=1e-9)


def test_equations_that_cannot_be_solved_are_in_doubt() -> None:
    X = np.repeat(np.arange(6.0)[:, None], 2, axis=1)
    standard = standardize(Dataset.from_arrays(X, np.arange(6.0) ** 2))
    found = residuals_without_rows(standard, np.array([0, 1]), 1e-300, [np.array([0])])
    assert np.isinf(found.doubt).all() or found.doubt.max() < 1.0
    full = residuals_without_rows(standard, np.array([0]), 1.0, [np.zeros(0, dtype=np.int64)])
    change, doubt = found.changes(full)
    assert change[0] >= 0.0 and doubt[0] >= 0.0


def ridge(V: np.ndarray, r: np.ndarray, lam: float, support: tuple[int, ...]) -> tuple[np.ndarray, float]:
    part = V[:, support]
    beta = np.linalg.solve(part.T @ part + lam * np.eye(len(support)), part.T @ r)
    rest = r - part @ beta
    return rest, float(rest @ rest + lam * beta @ beta)


@pytest.mark.parametrize("seed", range(40))
def test_every_model_at_least_as_good_is_within_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, q, tau, held = 14, 5, int(rng.integers(1, 5)), int(rng.integers(1, 4))
    V, lam = rng.normal(size=(n, q)) / np.sqrt(n), float(10.0 ** rng.uniform(-3, 2))
    r = 2.0 * V @ rng.normal(size=q) + rng.normal(size=n) * 0.3
    train, left = slice(held, n), slice(0, held)
    full = ridge(V, r, lam, tuple(sorted(rng.choice(q, tau, replace=False).tolist())))[0]
    fits = {}
    for support in combinations(range(q), tau):
        part = V[train][:, support]
        beta = np.linalg.solve(part.T @ part + lam * np.eye(tau), part.T @ r[train])
        fits[support] = r - V[:, support] @ beta, ridge(V[train], r[train], lam, support)[1]
    value = sorted(one for _, one in fits.values())[int(rng.integers(0, len(fits)))] * (1.0 + 1e-9)
    good = [residual for residual, one in fits.values() if one <= value]
    errors = [float(residual[left] @ residual[left]) for residual in good]
    scores = (V[train].T @ full[train]) ** 2 / lam
    distance = residual_distances(full[train, None], r[train, None], scores[:, None], tau, np.array([value]))
    assert all(np.linalg.norm(residual[train] - full[train]) <= distance[0] * (1.0 + 1e-12) for residual in good)
    one = np.ones(1)
    for known in (distance, np.inf * one):
        folds = OpenFolds(
            one * (full[train] @ full[train]), one * (full[left] @ full[left]), one * value, one * min(errors),
            one * max(errors), np.array([held == 1]), np.array([True]), known,
        )  # fmt: skip
        low, high = folds.changes()
        changes = [float(np.abs(residual**2 - full**2).sum()) for residual in good]
        assert low[0] <= min(changes) * (1.0 + 1e-9) + 1e-12 and max(changes) <= high[0] * (1.0 + 1e-9) + 1e-12


def test_nothing_is_known_of_a_fold_that_does_not_score_all_it_leaves_out() -> None:
    one, no = np.ones(1), np.zeros(1, dtype=bool)
    assert OpenFolds(one, one, one, one, one, no, no, one).changes()[1][0] == np.inf


@pytest.mark.parametrize("seed", range(5))
def test_without_the_row_of_a_huge_cell_the_moments_of_all_rows_say_nothing(seed: int) -> None:
    """No intercept: what is left of the products of such columns is rounding, and refinements by it do not move."""
    rng = np.random.default_rng(seed)
    n, gamma = 13, 10.0 ** rng.uniform(-5, 0)
    X, y = np.column_stack([rng.normal(size=(n, 2)), np.full(n, -1e9)]), rng.normal(size=n)
    X[:, 2] += 1e-4 * rng.normal(size=n)
    X[4, :2] = 1e11
    data = standardize(Dataset.from_arrays(X, y), "none", "none")
    left_out = [np.array([4, 9]), np.array([0, 1]), np.arange(5)]
    found = residuals_without_rows(data, np.arange(3), gamma, left_out)
    for fold, rows in enumerate(left_out):
        train = np.setdiff1d(np.arange(n), rows)
        exact = fit_exactly(X, y, [0, 1, 2], [Fraction(gamma) / 2] * 3, train, None)
        assert exact is not None
        off = np.abs(found.values[:, fold] * data.y_unit - exact.residuals(X, y, np.arange(n)))
        assert np.all(off <= found.doubt[:, fold] * data.y_unit)
        assert found.doubt[:, fold].max() <= 1e-8 * np.abs(found.values[:, fold]).max()


def test_scores_that_overflow_leave_the_distance_unknown() -> None:
    one, many = np.ones((3, 1)), np.full((2, 1), np.inf)
    assert residual_distances(one, one, many, 1, np.ones(1)).tolist() == [np.inf]


def excesses_of_sums(seed: int) -> Iterator[Fraction]:
    """Sums of losses that are exact themselves, and of their changes."""
    values, nothing = np.random.default_rng(seed).uniform(size=(7, 1)), np.zeros((7, 1))
    here, full = Residuals(values, nothing), LossesOfRows(values[::-1], nothing)
    yield abs(Fraction(float(here.losses.sum())) - (fractions(values) ** 2).sum()) - Fraction(here.slip)
    (sums,), (doubt,) = LossesOfRows(values, nothing).changes(full)
    yield abs(Fraction(sums) - abs(fractions(values) - fractions(values[::-1])).sum()) - Fraction(doubt)


def excesses_of_changes(seed: int) -> Iterator[Fraction]:
    """Both ends of a change, one after the other the smaller of its upper bounds."""
    T, N, u, h, d = np.random.default_rng(seed).uniform(0.1, 1.0, size=5) * [1.0, 1.0, 1.0, 1.0, 9.0 ** (-(seed % 2))]
    one, single = np.ones(1), seed % 3 == 0
    folds = OpenFolds(T * one, N * one, u * one, h * one, h * one, np.array([single]), np.array([True]), d * one)
    (low,), (high,) = folds.changes()
    T, N, u, h, d = map(Fraction, (T, N, u, h, d))
    yield Fraction(low) - (max(T - u, 0) + abs(h - N))
    yield min(T + u, d * (2 * square_root(T) + d)) + (abs(h - N) if single else h + N) - Fraction(high)


def excesses_of_distances(seed: int) -> Iterator[Fraction]:
    """Distances by the residuals as a dual point, with a value just above the dual value, and by the point 0."""
    rng = np.random.default_rng(seed)
    residual = rng.uniform(size=(5, 1))
    size = (fractions(residual) ** 2).sum()
    value = np.nextafter(float(size) * (1.0 + 10.0 ** rng.uniform(-18, 0)), np.inf)
    for target, scores, distance in (
        (residual, np.zeros((3, 1)), square_root(Fraction(value) - size)),
        (0.0 * residual, np.full((3, 1), 1e300), square_root(Fraction(value)) + square_root(size)),
    ):
        yield distance - Fraction(residual_distances(residual, target, scores, 1, np.array([value]))[0])


@pytest.mark.parametrize(
    ("excesses", "constants"),
    [
        (excesses_of_sums, ["OUTWARD", "PREDICTION_ROUNDING"]),
        (excesses_of_changes, ["OUTWARD"]),
        (excesses_of_distances, ["OUTWARD"]),
    ],
)
def test_exact_numbers_are_within_the_allowances(
    excesses: Callable[[int], Iterator[Fraction]], constants: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_allowance(excesses, range(40), [(model_changes, name) for name in constants], monkeypatch)


def test_the_error_of_a_square_has_two_parts() -> None:
    assert Residuals(np.ones((1, 1)), 2.0 * np.ones((1, 1))).with_doubt()[1] == (1.0 + 2.0) ** 2 - 1.0

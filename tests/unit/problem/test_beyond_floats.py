"""Coordinates and fits beyond the precision of floats, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact import ExactProblem
from thin_columns import thin_case

from sparsecv_mio.arrays import power_of_two
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.beyond_floats import Coordinates, DoubleDouble, fit_exactly, objective_slack, size_of_target
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.units import ACCURATE_RTOL


def test_units_are_powers_of_two_above_each_size() -> None:
    sizes = np.array([0.0, 1e-300, 0.3, 1.0, 7.0, 1e300])
    units = power_of_two(sizes)
    assert np.array_equal(units, 2.0 ** np.round(np.log2(units))) and units[0] == 1.0
    assert np.all(units[1:] >= sizes[1:]) and np.all(units[1:] <= 2.0 * sizes[1:])


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e12])
@pytest.mark.parametrize("centred", [True, False])
def test_rows_return_to_the_numbers_of_the_file(offset: float, centred: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 3)) * [1.0, 1e-3, 1e3] + offset, rng.normal(size=9) + offset
    about = np.array([0, 2, 3, 5, 8]) if centred else None
    plain = Coordinates.from_columns(X, y, (2, 0), about)
    fine = plain.double_precision(X, y, about)
    rows = np.arange(9)
    Z, t = plain.standardise_rows(X, y, rows)
    Z2, t2 = fine.doubled_rows(X, y, rows)
    assert np.abs(Z - Z2.high).max() <= 1e-15 * (1.0 + np.abs(Z).max()) and np.abs(t - t2.high).max() <= 1e-14
    center = [sum(Fraction(float(X[i, 2])) for i in about) / len(about) if centred else Fraction(0)]
    for i in range(9):
        exact = (Fraction(float(X[i, 2])) - center[0]) / Fraction(float(fine.x_unit[0]))
        found = Fraction(float(Z2.high[i, 0])) + Fraction(float(Z2.low[i, 0]))
        assert abs(found - exact) <= Fraction(1, 2**95)
    x_center, y_center = fine.centers
    assert x_center[0] == pytest.approx(float(center[0]), rel=1e-15, abs=1e-12)
    assert y_center == pytest.approx(y[about].mean() if centred else 0.0, rel=1e-15)


def data(offset: float) -> Dataset:
    return Dataset.from_arrays(np.arange(4.0)[:, None] ** 2, offset + np.array([0.0, 2.0, 1.0, -1.0]))


def test_the_size_of_a_target_is_about_its_mean_where_there_is_an_intercept() -> None:
    assert size_of_target(data(100.0), "fold") == size_of_target(data(100.0), "global") == 3.0
    assert size_of_target(data(100.0), "none") == 102.0


@pytest.mark.parametrize("objective", [0.0, 1e-30, 1e-12, 1.0, 50.0])
def test_a_relative_part_and_what_residuals_near_zero_are_off(objective: float) -> None:
    noise = 1e-15 * 3.0 * 2.0
    found = objective_slack(objective, data(0.0), "fold")
    assert found == pytest.approx(ACCURATE_RTOL * objective + noise**2 + 2.0 * noise * objective**0.5, rel=1e-12)
    assert objective_slack(objective, data(1e6), "none") > found


def test_no_refit_misses_by_more() -> None:
    """Residuals of 1e-9 beside targets of 1e3: moved by an ulp of the targets, the objective stays within the slack."""
    rng = np.random.default_rng(3)
    residual, target = 1e-9 * rng.normal(size=50), 1e3 * rng.normal(size=50)
    sample = Dataset.from_arrays(rng.normal(size=(50, 1)), target)
    moved = residual + np.spacing(target) * rng.uniform(-1.0, 1.0, size=50)
    objective = float(residual @ residual)
    assert abs(float(moved @ moved) - objective) <= objective_slack(objective, sample, "fold")


def exact(number: DoubleDouble, place: int) -> Fraction:
    return Fraction(float(number.high[place])) + Fraction(float(number.low[place]))


def test_arithmetic_has_thirty_digits() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = rng.normal(size=(2, 7)) * 10.0 ** rng.uniform(-8, 8, size=(2, 7))
        A, B = (DoubleDouble.from_floats(v) + v * 1e-17 * rng.normal(size=7) for v in (a, b))
        for i in range(7):
            x, y = exact(A, i), exact(B, i)
            pairs = [(A * B, x * y), (A / 3.7, x / Fraction(3.7)), (A * 2.3, x * Fraction(2.3))]
            pairs.append((A * A + B * B, x * x + y * y))
            for got, wanted in pairs:
                assert abs(exact(got, i) - wanted) <= abs(wanted) * Fraction(1, 10**30)
            assert abs(exact(A - B, i) - (x - y)) <= (abs(x) + abs(y)) * Fraction(1, 10**30)
        total = sum((exact(A, i) for i in range(7)), Fraction(0))
        size = sum((abs(exact(A, i)) for i in range(7)), Fraction(0))
        assert abs(exact(A.sum(0)[None], 0) - total) <= size * Fraction(1, 10**30)


@pytest.mark.parametrize("seed", range(30))
def test_a_fit_in_fractions_is_that_of_elimination(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, s = int(rng.integers(3, 9)), int(rng.integers(0, 4))
    X, y = rng.normal(size=(n, s)) * 10.0 ** rng.integers(-30, 30, size=s), rng.normal(size=n)
    weights = rng.uniform(0.1, 9.0, n) if seed % 3 == 0 else None
    where, lam = ("fold", "global", "none")[seed % 3], 10.0 ** rng.uniform(-9, 2)
    train, scored = np.arange(n)[: n - 1], [n - 1]
    about = {"fold": train, "global": np.arange(n), "none": None}[where]
    made = fit_exactly(X, y, range(s), [Fraction(lam)] * s, train, about, weights)
    exact = ExactProblem.of(
        X.tolist(), y.tolist(), weights, [(train.tolist(), scored)], ("none", where), list(range(s))
    )  # fmt: skip
    value, error = exact._fit(exact.folds[0], Fraction(lam), list(range(s)))
    assert made is not None and made.objective == value
    (residual,) = made.residuals(X, y, np.array(scored))
    heft = 1.0 if weights is None else weights[-1]
    assert heft * residual**2 == pytest.approx(float(error), rel=1e-14)


def test_columns_without_a_penalty_that_are_dependent_have_no_fit() -> None:
    X, rows = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]]), np.arange(3)
    assert fit_exactly(X, X[:, 0], [0, 1], [Fraction(0)] * 2, rows, None) is None


@pytest.mark.parametrize("block", range(4))
def test_no_digit_is_lost_to_columns_that_hardly_move(block: int) -> None:
    """Objectives and held-out errors of every support and fold, by the definition and in standard coordinates."""
    compared = 0
    for seed in range(400_080 + 30 * block, 400_110 + 30 * block):
        try:
            case = thin_case(seed)
            data = standardize(case.data, case.words["scale"], case.words["intercept"])
        except BadInput:
            continue
        exact, gamma, source = case.exact(), case.gammas[0], case.data
        how = {"scale": case.words["scale"], "intercept": case.words["intercept"]}
        for j in range(min(case.folds.k, 3)):
            train, scored = case.folds.train_rows(j), case.folds.scored_rows(j)
            for support in exact.supports(max(case.taus)):
                value, error = map(float, exact._fit(exact.folds[j], Fraction(gamma) / 2, list(support)))
                model = fit(source.X, source.y, support, gamma, rows=train, weights=source.row_weights, **how)
                own = held_out_error(model, source.X, source.y, scored, source.row_weights)
                made = refit_rows(data, train, np.searchsorted(data.columns, support), gamma)
                held, doubt = (number * data.y_unit**2 for number in made.held_out(data, scored))
                slack = case.noise * len(source.y)
                assert abs(model.objective - value) <= 1e-9 * value + slack
                assert abs(own - error) <= 3e-9 * error + slack
                unit = data.y_unit**2
                assert abs(made.objective * unit - value) <= made.objective_error * unit + 1e-14 * value
                assert abs(held - error) <= doubt + 1e-12 * error
                assert made.objective_error <= 1e-9 * made.objective and doubt <= 1e-9 * held
                compared += 1
    assert compared > 30

"""Fits in fractions against elimination in fractions, and the fits that turn to them where floats lose digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact import ExactProblem
from thin_columns import thin_case

from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.beyond_floats import fit_exactly
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.problem.refit import refit_rows


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

"""Columns that are adjusted for by losses of rows: every claim against long Newton, and refusals are true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from adjusted_rows import AdjustedCase, adjusted_case
from logistic_truth import adjusting, counted, drawn, free_of, harder, judged
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import sparsecv_mio as sc
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput

ROUNDING = 1e-7  # of a held-out loss
NEARLY = 1e-9  # least eigenvalue of a correlation matrix, above which nothing is dependent
DRAWS = (drawn, harder, counted)


def check_problem(seed: int) -> bool:
    """Check every claim about the subsets of one problem; False where what is adjusted for has no best fit."""
    problem = adjusting(seed // 3, 5, DRAWS[seed % 3])
    if problem is None:
        return False
    asked, proved = judged(seed // 3, 5, lambda _seed, _most: problem, free_of(problem))
    assert proved == asked, seed
    return True


def test_every_claim_about_problems() -> None:
    assert sum(check_problem(seed) for seed in range(6)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30, 1_230, 100))
def test_hundreds_of_problems(first: int) -> None:
    assert sum(check_problem(seed) for seed in range(first, first + 100)) > 60


def all_but_dependent(case: AdjustedCase) -> bool:
    every = [np.arange(case.data.n), *(case.folds.train_rows(fold) for fold in range(case.folds.k))]
    for rows in every:
        Z = case.data.X[np.ix_(rows, case.adjusted)]
        Z = Z - Z.mean(axis=0) if case.how["intercept"] != "none" else Z
        Z = Z / np.maximum(np.linalg.norm(Z, axis=0), 1e-300)
        if np.linalg.eigvalsh(Z.T @ Z)[0] < NEARLY:
            return True
    return False


def check_search(seed: int) -> str:
    """Check every interval of a search and its record; returns its status, or why there is none."""
    try:
        case = adjusted_case(seed)
        if case is None:
            return "none"
        record = case.solved(time_limit=20.0, model="average" if seed % 7 == 0 else "pair")
    except BadInput as error:
        said = str(error)
        assert "\n" not in said, seed
        if said.startswith("adjust: "):
            near = "cannot be certified" in said or all_but_dependent(case)
            assert not case.has_least() or near, (seed, said)
            return "refused"
        assert "one class" in said or "all rows are" in said, (seed, said)
        return "one class"
    assert case.has_least(), seed
    for row in record.table:
        low, high = case.truth(row.gamma, row.tau)
        assert row.lower <= high * (1.0 + ROUNDING) and row.upper >= low * (1.0 - ROUNDING), (seed, row, low, high)
        if row.folds_decided == row.folds:
            assert low * (1.0 - ROUNDING) <= row.cv_error <= high * (1.0 + ROUNDING), (seed, row, low, high)
    assert set(record.coefficients) == {*record.support, *case.names} and not set(record.support) & set(case.names)
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    return str(record.status)


def test_every_interval_of_a_search_holds_the_truth() -> None:
    statuses = [check_search(seed) for seed in (3, 4, 5, 14, 16, 18, 21)]
    assert statuses.count("proved") >= 4 and "refused" in statuses


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 700, 50))
def test_hundreds_of_searches(first: int) -> None:
    statuses = [check_search(seed) for seed in range(first, first + 50)]
    assert statuses.count("proved") > 15 and "refused" in statuses


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_with_nothing_chosen_it_is_unpenalised_regression(intercept: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 4))
    score = X @ [1.0, -0.5, 0.3, 0.0] + 0.3
    classes = (score + rng.logistic(size=90) > 0.0).astype(float)
    counts = rng.poisson(np.exp(0.5 * score)).astype(float)
    how = {"gammas": [0.1], "taus": [0], "adjust": ["x0", "x1", "x2"], "intercept": intercept, "threads": 1}
    free = intercept == "fold"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, fit_intercept=free).fit(X[:, :3], classes)
        other = PoissonRegressor(
            alpha=0.0, tol=1e-12, max_iter=10_000, fit_intercept=free, solver="newton-cholesky"
        ).fit(X[:, :3], counts)
    for loss, y, model in (("logistic", classes, one), ("poisson", counts, other)):
        record = sc.solve(sc.Dataset.from_arrays(X, y), folds="5", loss=loss, **how)
        assert [record.coefficients[f"x{j}"] for j in range(3)] == pytest.approx(model.coef_.ravel(), abs=1e-6)
        assert record.intercept == pytest.approx(float(np.ravel(model.intercept_)[0]), abs=1e-6)
        assert record.support == () and record.tau == 0

"""Weights of rows by their definition, all subsets tried: in every fit and in the error of held-out rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from weighted_problems import GAMMAS, Weighted, drawn

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan, repeated_folds
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.weights import repeated, weighted

METHODS = ("auto", "joint", "rounds", "grid", "algorithm1", "bounds", "descent", "shared", "enumerate", "per-fold")
ENGINES = METHODS[7:]


def plan_of(problem: Weighted) -> FoldPlan:
    return folds_from_labels(np.unique(problem.labels, return_inverse=True)[1] - int((problem.labels < 0).any()))


def solved(problem: Weighted, data: Dataset, plan: FoldPlan, method: str, **options: object) -> Record:
    how = {"engine": method, "method": "rounds"} if method in ENGINES else {"method": method}
    return sc.cross_validate(
        data, plan, gammas=GAMMAS, taus=range(data.p + 1), gap=0.0, scale=problem.scale, intercept=problem.intercept,
        threads=1, **how, **options,  # type: ignore[arg-type]
    )  # fmt: skip


def check(seed: int) -> None:
    problem, method = drawn(seed), METHODS[seed % len(METHODS)]
    rows = Dataset.from_arrays(problem.X, problem.y, aux={"w": problem.weight})
    data, plan = weighted(rows, problem.weight, lambda _: plan_of(problem), name="w", by_row=True)
    record = solved(problem, data, plan, method)
    compare(problem, record, method, seed)
    report = sc.verify(record, rows, plan_of(problem))
    assert report.ok, (seed, method, report.failures)
    other = np.where(np.arange(len(problem.y)) == np.flatnonzero(problem.weight)[-1], 1.001, 1.0) * problem.weight
    altered = Dataset.from_arrays(problem.X, problem.y, aux={"w": other})
    assert "data.fingerprint" in {failure.field for failure in sc.verify(record, altered, plan_of(problem)).failures}


def compare(problem: Weighted, record: Record, method: str, seed: int) -> None:
    """Every interval of the table, the answer and the model against the definition."""
    truth = {(gamma, tau): error for gamma in GAMMAS for tau, error in enumerate(problem.cv_errors(gamma))}
    for row in record.table:
        if (row.gamma, row.tau) in truth:  # a descent leaves the grid
            right = truth[row.gamma, row.tau]
            assert row.lower <= right * (1 + 1e-8) and right <= row.upper * (1 + 1e-8), (seed, method, row, right)
    if method == "bounds":
        return
    assert record.status == "proved", (seed, method)
    if method != "descent":
        assert record.certificate.cv_error == pytest.approx(min(truth.values()), rel=1e-8), (seed, method)
    support, beta, intercept = problem.best(np.arange(len(problem.y)), record.refit.gamma)[record.refit.tau]
    assert list(record.coefficients) == [f"x{j}" for j in support], (seed, method)
    assert list(record.coefficients.values()) == pytest.approx(beta.tolist(), rel=1e-7, abs=1e-8), (seed, method)
    assert record.intercept == pytest.approx(intercept, rel=1e-7, abs=1e-8), (seed, method)


def check_whole(seed: int) -> None:
    """A whole weight is so many rows: the same intervals, the same answer, standard errors included."""
    problem, method = drawn(seed, whole=True), METHODS[seed % len(METHODS)]
    counts, plan = problem.weight.astype(int), plan_of(problem)
    rows = Dataset.from_arrays(problem.X, problem.y)
    data, folds = weighted(rows, problem.weight, lambda _: plan, name="w", by_row=True)
    copies, many = repeated(rows, counts), repeated_folds(plan, counts)
    one_se = method != "bounds" and many.has_standard_error
    one, two = solved(problem, data, folds, method, one_se=one_se), solved(problem, copies, many, method, one_se=one_se)
    compare(problem, one, method, seed)
    compare(problem, two, method, seed)
    assert (one.tau, one.support, one.status) == (two.tau, two.support, two.status), seed
    assert one.gamma == pytest.approx(two.gamma, rel=1e-6), seed
    names = ("cv_error", "lower", "upper", "r_squared")
    mine, other = ([getattr(record, name) for name in names] for record in (one, two))
    if method == "bounds":  # what a relaxation leaves depends on where it stops
        return
    assert mine == pytest.approx(other, rel=1e-8), (seed, method)
    if one_se and one.one_se is not None and two.one_se is not None:
        assert one.one_se.standard_error == pytest.approx(two.one_se.standard_error, rel=1e-8), seed
        assert one.tau == two.tau, seed
    assert sc.verify(two, copies, many).ok
    # a record of the past is of the rows so repeated, and says so by having no total weight
    old = replace(two, data=replace(two.data, weights="w"), folds=replace(two.folds, spec=f"{two.folds.spec} weighted"))
    assert sc.verify(old, Dataset.from_arrays(problem.X, problem.y, aux={"w": counts}), plan).ok, seed


@pytest.mark.parametrize("seed", range(10))
def test_whole_weights_are_so_many_rows(seed: int) -> None:
    check_whole(seed)


@pytest.mark.slow
def test_whole_weights_are_so_many_rows_at_length() -> None:
    for seed in range(300):
        check_whole(seed)

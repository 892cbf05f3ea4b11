"""Columns that are adjusted for by losses of rows: every claim against long Newton, and refusals are true."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from glm_cases import GlmCase, count_case, two_class_case
from glm_claims import Truth
from glm_referee import Unsure
from logistic_truth import adjusting, counted, drawn, free_of, harder, has_least, judged
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.objective import scales
from sparsecv_mio.problem.row_losses import encode_dataset_targets, row_loss
from sparsecv_mio.targets import Loss

KINDS = ("plain", "near copy", "copy", "apart in a fold", "binary", "constant in a fold", "dependent", "far away")


@dataclass(frozen=True, eq=False)
class AdjustedCase(GlmCase):
    """A problem, and the columns that are adjusted for."""

    adjusted: list[int]

    @property
    def names(self) -> list[str]:
        """Of what is adjusted for."""
        return [self.data.names[j] for j in self.adjusted]

    def problem(self, rows: IntArray, gamma: float) -> GlmProblem:
        """Return the problem of some rows, by its definition."""
        data, loss = self.data, row_loss(Loss(self.loss))
        weight = scales(data.X, self.how["scale"], data.row_weights) ** 2
        weight[self.adjusted] = 0.0
        y, v = encode_dataset_targets(loss, data, rows)
        return GlmProblem(data.X[rows], y, v, weight, gamma, self.how["intercept"] != "none", loss)

    def has_least(self) -> bool:
        """Whether what is adjusted for has a best fit on all rows, and on the training rows of every fold."""
        every = [np.arange(self.data.n), *(self.folds.train_rows(fold) for fold in range(self.folds.k))]
        return all(has_least(self.problem(rows, 1.0), tuple(self.adjusted)) for rows in every)

    @cached_property
    def truth(self) -> Truth:
        """All supports with what is adjusted for, fitted in long doubles."""
        return Truth.from_data(self.data, self.folds, self.loss, self.how, tuple(self.adjusted))


def adjusted_case(seed: int) -> AdjustedCase | None:
    """Draw a case; None where it has too few columns or rows to choose and adjust by.

    Parameters
    ----------
    seed : int
    """
    rng, logistic = np.random.default_rng(seed), seed % 2 == 0
    base = two_class_case(seed // 2) if logistic else count_case(seed // 2)
    data, p = base.data, min(base.data.p, 5)
    if p < 2 or (base.folds.k > 12 and base.data.n > 20):
        return None
    adjusted = sorted(rng.choice(p, size=1 + int(p > 2 and rng.random() < 0.4), replace=False).tolist())
    others = [j for j in range(p) if j not in adjusted]
    X, kind, last = data.X[:, :p].copy(), KINDS[int(rng.integers(len(KINDS)))], adjusted[-1]
    train = base.folds.train_rows(0)
    if kind in ("near copy", "copy"):  # a feature of a column that is adjusted for
        noise = 0.0 if kind == "copy" else 10.0 ** rng.uniform(-6, -1)
        X[:, others[0]] = -X[:, last] + noise * X[:, last].std() * rng.normal(size=data.n)
    if kind == "apart in a fold":
        X[train, last] = (data.y[train] > 0.0) * (rng.random(len(train)) < 0.5)
    if kind == "binary":
        X[:, last] = rng.random(data.n) < 0.4
    if kind == "constant in a fold":
        X[train, last] = 1.0
    if kind == "dependent" and len(adjusted) > 1:
        X[:, last] = 2.0 * X[:, adjusted[0]] + 1.0
    if kind == "far away":
        X[:, last] = X[:, last] * 10.0 ** rng.uniform(-4, 4) + 1e5 * X[:, last].std()
    taus = sorted({min(tau, p - len(adjusted)) for tau in base.taus})
    data = replace(data, X=X, names=data.names[:p])
    return AdjustedCase(base.loss, data, base.folds, base.gammas, taus, base.how, adjusted)


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


@pytest.mark.parametrize("seeds", [range(6), *slow(range(first, first + 100) for first in range(30, 1_230, 100))])
def test_every_claim_about_problems(seeds: range) -> None:
    assert sum(check_problem(seed) for seed in seeds) > 0.6 * len(seeds)


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
    """Check every interval of a search and its record; returns its status, or why it was not judged."""
    try:
        case = adjusted_case(seed)
        if case is None:
            return "none"
        record = case.solved(adjust=case.names, time_limit=120.0, model="average" if seed % 7 == 0 else "pair")
    except BadInput as error:
        said = str(error)
        assert "\n" not in said, seed
        if said.startswith("adjust: "):
            near = "cannot be certified" in said or all_but_dependent(case)
            assert not case.has_least() or near, (seed, said)
            return "refused"
        assert "one class" in said or "are all of class" in said or "all rows are" in said, (seed, said)
        return "one class"
    assert case.has_least(), seed
    for row in record.table:
        try:
            low, high = case.truth.h(row.gamma, row.tau + len(case.adjusted))
        except Unsure:  # the fits of the referee are not accurate enough to judge by
            return "unsure"
        assert row.lower <= high * (1.0 + ROUNDING) and row.upper >= low * (1.0 - ROUNDING), (seed, row, low, high)
        if row.folds_decided == row.folds:
            assert low * (1.0 - ROUNDING) <= row.cv_error <= high * (1.0 + ROUNDING), (seed, row, low, high)
    assert set(record.coefficients) == {*record.support, *case.names} and not set(record.support) & set(case.names)
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    return str(record.status)


@pytest.mark.parametrize(
    "seeds", [(3, 4, 5, 14, 16, 18, 21, 314), *slow(range(first, first + 50) for first in range(100, 700, 50))]
)
def test_every_interval_of_a_search_holds_the_truth(seeds: Sequence[int]) -> None:
    statuses = [check_search(seed) for seed in seeds]
    assert statuses.count("proved") > 0.3 * len(seeds) and "refused" in statuses
    assert statuses.count("unsure") <= 0.05 * len(seeds)


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

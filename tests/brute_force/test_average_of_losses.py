"""Averaged models of two classes and of counts against a plain implementation by the definition of their losses."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import problems
import pytest
from count_cases import CountCase, count_case
from two_class_cases import TwoClassCase, two_class_case

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.parts import NOT_AVERAGED
from sparsecv_mio.certificate.records import Average, Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm_objective import GlmModel, fit_of_data
from sparsecv_mio.problem.objective import scales, varying_columns
from sparsecv_mio.search.answer.glm_average import SmoothAverageFits
from sparsecv_mio.search.api import cross_validate

Case = TwoClassCase | CountCase
MOST_COLUMNS = 5


def drawn(seed: int) -> Case | None:
    """A case of few columns, two classes for even seeds; None where the draw is no problem, or a large one."""
    try:
        case: Case = count_case(seed, 4) if seed % 2 else two_class_case(seed)
    except BadInput:
        return None
    return case if case.data.p <= MOST_COLUMNS else None


class Plain:
    """Fits of a case by enumeration, each once."""

    def __init__(self, case: Case, record: Record) -> None:
        self.case, self.record, self.data = case, record, case.data
        self.columns = varying_columns(case.data.X).tolist()
        self.heft = np.ones(case.data.n) if case.data.row_weights is None else case.data.row_weights
        self.best = cache(self._best)

    def fit(self, support: Any, gamma: float, fold: int) -> GlmModel:
        rows = None if fold < 0 else self.case.folds.train_rows(fold)
        how = {name: self.case.how[name] for name in ("scale", "intercept")}
        return fit_of_data(self.data, self.record.loss, support, gamma, rows=rows, **how)

    def _best(self, gamma: float, tau: int, fold: int) -> GlmModel:
        every = combinations(self.columns, min(tau, len(self.columns)))
        return min((self.fit(support, gamma, fold) for support in every), key=lambda model: model.objective)

    def pairs(self) -> list[tuple[float, int]]:
        pairs = [(row.gamma, row.tau) for row in self.record.table]
        every = len(self.columns)
        return pairs + [(g, every) for g in sorted({g for g, _ in pairs}) if every > max(self.record.request.taus)]

    def losses(self, gamma: float, tau: int) -> FloatArray:
        """Held-out losses of rows, the mean over folds that score one; NaN where none does."""
        plan, total, times = self.case.folds, np.zeros(self.data.n), np.zeros(self.data.n)
        for fold in range(plan.k):
            rows = plan.scored_rows(fold)
            total[rows] += self.best(gamma, tau, fold).compute_row_losses(self.data, rows)[0] / self.heft[rows]
            times[rows] += 1.0
        with np.errstate(invalid="ignore"):
            return total / times

    def weights(self) -> FloatArray:
        """Weights of all pairs, those of all columns among them."""
        times = np.bincount(self.case.folds.all_scored, minlength=self.data.n)
        seen = times > 0
        whole = bool(np.all(self.heft == np.floor(self.heft)))
        rows = (self.heft if whole else np.ones(self.data.n))[seen]
        share = (self.heft * times)[seen] / float(self.heft @ times)
        n, least, distances = float(rows.sum()), self.losses(self.record.gamma, self.record.tau)[seen], []
        for pair in self.pairs():
            change = self.losses(*pair)[seen] - least
            mean = float(change @ share)
            spread = math.sqrt(float((change - mean) ** 2 @ (share**2 / rows)) * n / max(n - 1.0, 1.0))
            if mean <= 1e-9 * float(least @ share):
                distances.append(0.0)
            else:
                distances.append(mean / spread if spread > 0.0 else math.inf)
        weights = np.array([math.exp(-z - z * z) for z in distances])
        weights[weights < 0.02 * weights.max()] = 0.0
        models = [(gamma, min(tau, len(self.columns))) for gamma, tau in self.pairs()]
        weights[[models.index(model) < i for i, model in enumerate(models)]] = 0.0
        return weights / weights.sum()

    def curvatures(self, target: FloatArray) -> FloatArray:
        """Weights of rows where a loss is replaced by squares about predictors: half of its curvature there."""
        if self.record.classes is not None:
            return 0.5 * self.heft / (2.0 + np.exp(target) + np.exp(-target))
        return 0.5 * self.heft * np.exp(target) * (1.0 if self.data.row_exposure is None else self.data.row_exposure)

    def least_squares(self, size: int, target: FloatArray) -> float:
        """Least objective of so many columns for predictors instead of the target, by numpy's least squares."""
        heft = self.curvatures(target)
        heft = np.maximum(heft, 1e-12 * heft.max())
        root, values = np.sqrt(heft), []
        for some in combinations(self.columns, min(size, len(self.columns))):
            X = self.data.X[:, list(some)]
            length = scales(X, self.case.how["scale"], heft)
            y = target
            if self.case.how["intercept"] != "none":
                X, y = X - np.average(X, axis=0, weights=heft), y - np.average(y, weights=heft)
            A = np.vstack([root[:, None] * X, np.diag(math.sqrt(0.5e-6) * length)])
            b = np.append(root * y, np.zeros(len(some)))
            rest = b - A @ np.linalg.lstsq(A, b, rcond=None)[0] if some else b
            values.append(float(rest @ rest))
        return min(values)


def check(case: Case, record: Record, average: Average) -> None:
    plain = Plain(case, record)
    said, weights = np.array([pair.weight for pair in average.pairs]), plain.weights()
    if np.any(said[len(record.table) :]) or not np.any(weights[len(record.table) :]):
        assert said == pytest.approx(weights, rel=1e-4, abs=1e-7)
    else:  # no size is near the average with fits of all columns
        weights[len(record.table) :] = 0.0
        assert said == pytest.approx(weights / weights.sum(), rel=1e-4, abs=1e-7)
    target, total = np.zeros(case.data.n), case.data.weight_of(slice(0, case.data.n))
    for pair in average.used:
        assert pair.fit is not None
        columns = [case.data.names.index(name) for name in average.supports[pair.fit]]
        model, best = plain.fit(columns, pair.gamma, -1), plain.best(pair.gamma, pair.tau, -1)
        assert pair.estimate or model.objective == pytest.approx(best.objective, rel=1e-7)
        target += pair.weight * model.predictors(case.data.X)
    found, allowed, size = average.model, 0.005 * record.cv_error, float(plain.curvatures(target) @ target**2)
    least = plain.least_squares(found.tau, target)
    assert found.objective == pytest.approx(least, rel=1e-5, abs=1e-9 * size)
    most = min(max(record.request.taus), len(plain.columns))
    assert least / total <= allowed * (1.0 + 1e-5) or found.tau == most
    if found.tau > 0:
        fewer = plain.least_squares(found.tau - 1, target)
        assert fewer / total > allowed * (1.0 - 1e-5)
        assert average.fewer is not None and average.fewer <= fewer * (1.0 + 1e-7) + 1e-9 * size


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 400))])
def test_average_is_that_of_a_plain_implementation(seed: int) -> None:
    """Weights, average and best subset of hostile problems; the record is verified."""
    case = drawn(seed)
    if case is None:
        return
    try:
        record = case.solved(gap=0.0, model="average", own_error=seed % 3 == 0, time_limit=30.0)
    except BadInput as error:
        assert "one class" in str(error) or "are all of class" in str(error) or "have the count 0" in str(error)
        return
    report = verify(record, case.data)
    assert report.ok, (seed, report.failures[:3])
    tied = any(row.upper - row.lower > 1e-7 * row.upper for row in record.table)
    if record.average is not None and record.status == "proved" and not tied:
        check(case, record, record.average)


def test_an_altered_average_is_refused() -> None:
    """Weights, distances, the model and its error within folds, each altered alone."""
    case = count_case(15, 4)
    record = case.solved(gap=0.0, model="average", own_error=True)
    average = record.average
    assert average is not None and average.within_folds is not None and verify(record, case.data).ok
    first, model, within = average.pairs[0], average.model, average.within_folds
    altered = {
        "weight": replace(average, pairs=(replace(first, weight=first.weight + 1e-3), *average.pairs[1:])),
        "distance": replace(average, pairs=(replace(first, distance=first.distance + 1e-2), *average.pairs[1:])),
        "missed": replace(average, missed=average.missed * 1.01 + 1e-9),
        "intercept": replace(average, model=replace(model, intercept=model.intercept + 1e-4)),
        "objective": replace(average, model=replace(model, objective=model.objective * 1.01 + 1e-6)),
        "error": replace(average, within_folds=replace(within, error=within.error * 1.001)),
    }
    for name, other in altered.items():
        report = verify(replace(record, average=other), case.data)
        assert any(failure.field.startswith("average") for failure in report.failures), (name, report.failures)


def test_pairs_of_one_model_have_one_distance_with_single_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    X, some = rng.normal(size=(30, 3)), rng.random(30) < 0.15
    y = some * rng.integers(1, 9, 30)
    y[:2] = 1, 2
    data = Dataset.from_arrays(X, y.astype(float))
    how: dict[str, Any] = {"loss": "poisson", "scale": "none", "model": "average", "gap": 0.01, "threads": 1}
    record = cross_validate(data, "loo", gammas=[0.01, 10.0], taus=[0, 1, 3], **how)
    assert record.average is not None and verify(record, data).ok
    assert [pair.distance for pair in record.average.pairs if pair.tau == 0] == [0.0, 0.0]  # one was 0.96


def test_without_time_for_the_losses_of_single_rows_there_is_no_average(monkeypatch: pytest.MonkeyPatch) -> None:
    data = problems.counts(3, 40, 3, {0: 0.5})
    by_rows = SmoothAverageFits.losses_of_single_rows
    monkeypatch.setattr(SmoothAverageFits, "losses_of_single_rows", lambda *asked: by_rows(*asked[:-1], lambda: True))
    record = cross_validate(data, "loo", gammas=[0.1, 1.0], taus=[1, 2], loss="poisson", model="average", threads=1)
    assert record.average is None and record.warnings[-1] == NOT_AVERAGED and verify(record, data).ok


def test_without_time_there_is_no_average_of_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    data = problems.counts(3, 40, 3, {0: 0.5})
    of_folds = SmoothAverageFits.averages_of_folds
    monkeypatch.setattr(SmoothAverageFits, "averages_of_folds", lambda *asked: of_folds(*asked[:-1], lambda: True))
    how: dict[str, Any] = {"loss": "poisson", "model": "average", "own_error": True, "threads": 1}
    record = cross_validate(data, "loo", gammas=[0.1, 1.0], taus=[1, 2], **how)
    assert record.average is not None and record.average.within_folds is None and verify(record, data).ok

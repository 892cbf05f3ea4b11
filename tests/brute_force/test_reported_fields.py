"""Every number of a record: inside of its interval, right where it is decided, the same pair by every method."""

from __future__ import annotations

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from reference import cv_intervals

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import Inconsistent
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.pairs import PairBounds
from sparsecv_mio.units import CROSSING_RTOL

H_RTOL = 1e-7
H_FLOOR = 1e-9  # of the mean square of the target: a held-out error far below it is rounding
ROUNDED = 1e-24  # of the same: a fit that leaves less is exact, and its error a matter of who adds in what order
INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance
GAPS = (0.0, 1e-4, 5e-2)
NATIVE = ("rounds", "joint", "algorithm1", "grid", "bounds", "descent")
BY_VENDOR = ("joint", "algorithm1", "grid")


def small_problem(seed: int) -> RandomProblem:
    """Few rows and a ridge weight that lets bounds alone close many cells."""
    rng = np.random.default_rng([11, seed])
    n, p = int(rng.integers(12, 31)), int(rng.integers(2, 10))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 1.0, 3.0]) * rng.normal(size=(n, 1))
    y = X[:, : int(rng.integers(1, 3))].sum(axis=1) + rng.choice([0.3, 1.0, 3.0]) * rng.normal(size=n)
    data = Dataset.from_arrays(X, y)
    gammas = np.unique(10.0 ** rng.uniform(-1.5, 1.5, size=rng.integers(1, 4))).tolist()
    taus = np.unique(rng.integers(0, p + 1, size=rng.integers(1, p + 2))).tolist()
    spec = str(rng.choice(["3", "5", "loo", "blocks:2"]))
    return RandomProblem(data, make_folds(spec, data, seed), gammas, taus, "length", "fold")


def drawn(seed: int, backend: str) -> RandomProblem:
    """A problem of either kind; vendors' solvers are no match for scales of 1e150."""
    tame = seed % 2 or backend != "native"
    return small_problem(seed) if tame else random_problem(seed, rows=30, columns=9)


def solved(case: RandomProblem, **options: object) -> Record:
    return cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept,
        threads=1, **options,  # type: ignore[arg-type]
    )  # fmt: skip


def inside(record: Record) -> None:
    """Every number within its interval, every mark true to what it marks."""
    assert record.lower <= record.cv_error <= record.upper
    grid = record.certificate
    for row in record.table:
        assert grid.lower <= row.lower <= row.cv_error <= row.upper
        assert row.estimate == (row.folds_decided < row.folds)
    for part in (record.least, record.refined):
        assert part is None or part.lower <= part.cv_error <= part.upper
    assert record.refit.lower <= record.refit.objective <= record.refit.upper
    own = next(row for row in record.table if (row.gamma, row.tau) == (record.gamma, record.tau))
    assert (own.cv_error, own.estimate) == (record.cv_error, record.estimate)
    assert grid.upper <= max(min(row.upper for row in record.table), grid.cv_error) * (1.0 + CROSSING_RTOL)
    if record.least is not None:
        assert (own.lower, own.upper) == (record.lower, record.upper)
    assert int(record.chosen_folds.decided.sum()) == own.folds_decided
    assert {len(fold.support) for fold in record.chosen_folds} <= {*range(record.tau + 1)}
    if record.status == "limit" and not record.descent:
        assert grid.cv_error <= min(row.cv_error for row in record.table) * (1.0 + 1e-9)


def right(case: RandomProblem, record: Record) -> None:
    """Intervals hold the truth of every pair, decided rows are it."""
    how = (case.scale, case.intercept)
    gammas = sorted({row.gamma for row in record.table})
    low, high = cv_intervals(case.data.X, case.data.y, case.folds.labels, gammas, case.taus, how, INSIDE)
    floor = H_FLOOR * float(np.var(case.data.y))
    for row in record.table:
        at = gammas.index(row.gamma), case.taus.index(row.tau)
        slip = H_RTOL * high[at] + floor
        assert row.lower <= low[at] + slip and high[at] <= row.upper + slip, row
        if not row.estimate:
            assert low[at] - slip <= row.cv_error <= high[at] + slip, row
    assert record.certificate.lower <= low.min() + floor + H_RTOL * low.min()


def check(seed: int, method: str, backend: str) -> None:
    """One problem by one method and backend; which gap, and whether with the one-standard-error rule, by the seed."""
    case, gap = drawn(seed, backend), GAPS[seed // 2 % 3]
    one_se = bool(seed // 6 % 2) and case.folds.k > 1 and method != "bounds"
    ask: dict[str, object] = {"gap": gap, "one_se": one_se, "method": method}
    record = solved(case, backend=backend, **ask)
    inside(record)
    right(case, record)
    if min(row.upper for row in record.table) > ROUNDED * float(np.var(case.data.y)):
        report = verify(record, case.data, case.folds)
        assert report.ok, report.failures
    if method in ("bounds", "descent"):
        return
    exact = solved(case, gap=0.0, one_se=one_se, method="rounds")
    # columns that rounding makes up leave some held-out errors unknown, whoever solves the cells
    assert record.status == "proved" or any(row.estimate for row in exact.table)
    if gap == 0.0:
        assert [row.folds_decided for row in record.table] == [row.folds_decided for row in exact.table]
    if record.one_se is not None and not record.one_se.estimate:
        assert exact.one_se is not None
        assert (record.gamma, record.tau) == (exact.gamma, exact.tau)


def usable(backend: str) -> None:
    found = get_backend(backend).available()
    if not found.usable:
        pytest.skip(found.why)


@pytest.mark.parametrize("method", NATIVE)
def test_native(method: str) -> None:
    for seed in range(4):
        check(NATIVE.index(method) * 5 + seed, method, "native")


def test_a_fold_of_leverage_one_is_verified_by_refits() -> None:
    check(3020, "algorithm1", "native")  # I - H of a fold is singular to the last bit


@pytest.mark.parametrize("backend", ["highs", "gurobi", pytest.param("scip", marks=pytest.mark.slow)])
def test_vendors(backend: str) -> None:
    usable(backend)
    check(9, "joint", backend)


@pytest.mark.parametrize("backend", ["native", "highs"])
@pytest.mark.parametrize("method", ["algorithm1", "joint"])
def test_cells_that_bounds_close(backend: str, method: str) -> None:
    """Bounds close cells whose heuristic support is not the optimal one."""
    usable(backend)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 6))
        data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=20))
        case = RandomProblem(data, make_folds("3", data), [10.0], [1, 2, 3], "length", "fold")
        record = solved(case, backend=backend, method=method)
        inside(record)
        right(case, record)


def test_a_number_outside_of_its_interval_is_never_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is on what is built, whoever made the mistake."""
    case = small_problem(1)
    monkeypatch.setattr(PairBounds, "shown", property(lambda self: 2.0 * self.upper + 1.0))
    with pytest.raises(Inconsistent, match="cv_error.*outside"):
        solved(case, method="rounds")


@pytest.mark.slow
@pytest.mark.parametrize("block", range(17))
def test_native_at_length(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        check(1000 + seed, NATIVE[seed % len(NATIVE)], "native")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip"])
def test_vendors_at_length(backend: str) -> None:
    usable(backend)
    for seed in range(100):
        check(5000 + seed, BY_VENDOR[seed % 3], backend)

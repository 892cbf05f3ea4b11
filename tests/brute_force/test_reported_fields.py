"""Every number of a record: inside of its interval, right where it is decided, the same pair by every method."""

from __future__ import annotations

import numpy as np
import pytest
from judge import wrong
from zoo import RandomProblem, random_problem

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import Inconsistent
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.pairs import PairBounds


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


def solved(case: RandomProblem, **options: object) -> Record:
    return cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept,
        threads=1, **options,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_number_outside_of_its_interval_is_never_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is on what is built, whoever made the mistake."""
    case = small_problem(1)
    monkeypatch.setattr(PairBounds, "shown", property(lambda self: 2.0 * self.upper + 1.0))
    with pytest.raises(Inconsistent, match="cv_error.*outside"):
        solved(case, method="rounds")


def test_a_fold_of_leverage_one_is_verified_by_refits() -> None:
    case = random_problem(3020, rows=30, columns=9)  # I - H of a fold is singular to the last bit
    record = solved(case, method="algorithm1", gap=0.0)
    assert [*wrong(case, record)] == []
    assert verify(record, case.data, case.folds).ok


@pytest.mark.parametrize("backend", ["native", "highs"])
@pytest.mark.parametrize("method", ["algorithm1", "joint"])
def test_cells_that_bounds_close(backend: str, method: str) -> None:
    """Bounds close cells whose heuristic support is not the optimal one."""
    if not get_backend(backend).available().usable:
        pytest.skip(f"no {backend}")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 6))
        data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=20))
        case = RandomProblem(data, make_folds("3", data), [10.0], [1, 2, 3], "length", "fold")
        assert [*wrong(case, solved(case, backend=backend, method=method))] == []

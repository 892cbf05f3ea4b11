"""Single cases of the methods: near ties of other solvers, budgets, what a state holds, the command."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.options import COUNT_MIOS


@pytest.fixture(scope="module")
def plain() -> tuple[Dataset, FoldPlan]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 6))
    X[:, 3] = X[:, 1] + 0.3 * rng.normal(size=30)
    data = Dataset.from_arrays(X, X @ [1, 2, 0, -1, 0, 0.5] + rng.normal(size=30))
    return data, make_folds("5", data)


def test_benders_gives_the_same_answer(plain: tuple[Dataset, FoldPlan]) -> None:
    usable = get_backend("gurobi").available()
    if not usable.usable:
        pytest.skip(usable.why)
    data, folds = plain
    ask = {"gammas": [0.01, 0.1], "taus": range(0, 7), "gap": 0.0, "threads": 1}
    ours = cross_validate(data, folds, **ask)  # type: ignore[arg-type]
    for method in ("joint", "grid"):
        theirs = cross_validate(data, folds, method=method, backend="gurobi", formulation="benders", **ask)  # type: ignore[arg-type]
        assert (theirs.status, theirs.tau, theirs.support) == ("proved", ours.tau, ours.support)
        assert theirs.cv_error == pytest.approx(ours.cv_error, rel=1e-10)
        assert theirs.work.engine.endswith("gurobi, benders")


def test_near_ties_of_a_vendor_are_all_found() -> None:
    """Two columns that only the held-out rows tell apart: both supports are candidates, h is an interval."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 3))
    X[:12, 1] = X[:12, 0]
    X[12:, 1] = -X[12:, 0]
    data = Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.normal(size=16))
    folds = folds_from_labels(np.repeat(np.arange(4), 4))
    ask = {"gammas": [0.1], "taus": [1], "gap": 0.0, "threads": 1, "scale": "none", "intercept": "none"}
    ours = cross_validate(data, folds, method="grid", **ask)  # type: ignore[arg-type]
    theirs = cross_validate(data, folds, method="grid", backend="highs", **ask)  # type: ignore[arg-type]
    assert theirs.tie_width == pytest.approx(ours.tie_width, rel=1e-8) and ours.tie_width > 0.0
    assert theirs.status == ours.status == "proved"


def test_budget_stops_with_valid_bounds() -> None:
    """Columns are so alike that bounds without branching leave more than three subproblems of the best pair open."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 10)) + 3.0 * rng.normal(size=(30, 1))
    data = Dataset.from_arrays(X, X @ [1, 2, 0, -1, 0, 0.5, 0, 0, 1, 0] + 3.0 * rng.normal(size=30))
    folds = make_folds("5", data)
    ask = {"gammas": [1e-3, 0.01], "taus": range(1, 9), "gap": 0.0, "threads": 2}
    best = cross_validate(data, folds, **ask)  # type: ignore[arg-type]
    for method in COUNT_MIOS:
        for budget in (0, 3):
            record = cross_validate(data, folds, method=method, mio_budget=budget, **ask)  # type: ignore[arg-type]
            assert record.status == "limit" and record.work.mios == budget
            assert record.lower <= best.cv_error <= record.upper

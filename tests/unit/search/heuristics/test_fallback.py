"""Forward selection in plain NumPy: what it says of a support is what a fit of that support says."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics import fallback
from sparsecv_mio.search.heuristics.fallback import fallback_supports, supports_on_all_rows


def made(n: int, p: int, seed: int = 0, offset: float = 0.0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + 0.3 * rng.normal(size=n))


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("late", [True, False])
def test_fits_are_what_they_say(intercept: str, late: bool) -> None:
    """Every value and held-out error is that of the support beside it, fitted without the rows it is scored on."""
    for seed in range(5):
        data = made(30, 12, seed, offset=3.0)
        folds = make_folds(("6", "6", "forward:3", "2x4", "holdout:0.3")[seed], data, seed)
        std, grid = standardize(data, "length", intercept), Grid.of([0.5], [0, 1, 3, 12], 12)
        until = time.monotonic() + (0.0 if late else 60.0)
        found = fallback_supports(std, folds, grid, until)
        V, r = std.rows(slice(0, std.n))
        for fold in range(folds.k):
            train, test = folds.train_rows(fold), folds.scored_rows(fold)
            for t, tau in enumerate(grid.taus.tolist()):
                S = found.supports[t][fold]
                assert len(S) == min(tau, 1 if late else len(train))
                A, b, H, u = V[train][:, S], r[train], V[test][:, S], r[test]
                if intercept == "fold":
                    A, b, H, u = A - A.mean(axis=0), b - b.mean(), H - A.mean(axis=0), u - b.mean()
                beta = np.linalg.solve(A.T @ A + 0.25 * np.eye(len(S)), A.T @ b)
                assert found.value[t, fold] == pytest.approx(b @ b - b @ A @ beta, rel=1e-9)
                assert found.nominal[t, fold] == pytest.approx(np.sum((u - H @ beta) ** 2), rel=1e-7)


def test_supports_fall_in_value() -> None:
    low, high = supports_on_all_rows(standardize(made(30, 12)), [0.5, 2.0], [1, 2, 5])
    assert list(low) == [1, 2, 5] and low[1][1] > low[2][1] > low[5][1]
    assert all(high[tau][1] > low[tau][1] for tau in low)


@pytest.mark.parametrize("spec", ["loo", "forward:19"])
def test_many_folds_get_supports_whatever_the_time(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "FIRST_WORK", 50)
    data = made(40, 12)
    folds = make_folds(spec, data)
    std = standardize(data)
    found = fallback_supports(std, folds, Grid.of([0.5], [1, 2], 12), 0.0)
    r = std.rows(slice(0, 40))[1]
    for fold in range(folds.k):
        rest, test = r[folds.train_rows(fold)], r[folds.scored_rows(fold)]
        if len(found.supports[0][fold]) == 0:
            assert found.nominal[0, fold] == pytest.approx(float(np.sum((test - rest.mean()) ** 2)), rel=1e-9)
            assert found.value[0, fold] == pytest.approx(float(np.sum((rest - rest.mean()) ** 2)), rel=1e-9)
    assert any(len(support) for support in found.supports[0]) and any(not len(s) for s in found.supports[0])

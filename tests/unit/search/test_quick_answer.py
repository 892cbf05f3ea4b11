"""The quickest answer: fits are what they say, without the rows they are scored on, and keep to the restrictions."""

from __future__ import annotations

import time

import numpy as np
import problems
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.answer import quick_answer
from sparsecv_mio.search.answer.quick_answer import find_quick_answer
from sparsecv_mio.search.first_use import make_tiny_data
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss


def made(n: int, p: int, seed: int = 0, offset: float = 0.0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + 0.3 * rng.normal(size=n))


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("by_fold", [True, False])
def test_fits_are_what_they_say(intercept: str, late: bool, by_fold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value and held-out error is that of the support beside it, fitted without the rows it is scored on."""
    if not by_fold:
        monkeypatch.setattr(quick_answer, "MOST_ROWS_BY_FOLD", 0)
    for seed in range(5):
        data = made(30, 12, seed, offset=3.0)
        folds = make_folds(("6", "6", "forward:3", "2x4", "holdout:0.3")[seed], data, seed)
        std, grid = standardize(data, "length", intercept), Grid.of([0.5], [0, 1, 3, 12], 12)
        until = time.monotonic() + (0.0 if late else 60.0)
        found = find_quick_answer(std, folds, grid, until)
        V, r = std.rows(slice(0, std.n))
        for fold in range(folds.k):
            train, test = folds.train_rows(fold), folds.scored_rows(fold)
            for t, tau in enumerate(grid.taus.tolist()):
                S = found.supports[t][fold]
                assert len(S) == tau
                if late and tau != 3:  # the size nearest to a likely one is scored whatever the time
                    assert found.nominal[t, fold] == np.inf
                    continue
                A, b, H, u = V[train][:, S], r[train], V[test][:, S], r[test]
                if intercept == "fold":
                    A, b, H, u = A - A.mean(axis=0), b - b.mean(), H - A.mean(axis=0), u - b.mean()
                beta = np.linalg.solve(A.T @ A + 0.25 * np.eye(len(S)), A.T @ b)
                assert found.value[t, fold] == pytest.approx(b @ b - b @ A @ beta, rel=1e-9)
                assert found.nominal[t, fold] == pytest.approx(np.sum((u - H @ beta) ** 2), rel=1e-7)


@pytest.mark.parametrize("spec", ["3", "loo", "forward:4"])
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_every_support_keeps_to_the_restrictions(seconds: float, spec: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 5))
    data = sc.Dataset.from_arrays(X, X @ [1.0, -1.0, 0.5, 0.2, 0.0] + rng.normal(size=30))
    asked = Restrictions(at_most="1:x0,x2", hierarchy="x1=x3", nonnegative=["x0", "x1", "x2"]).resolve_names(data.names)
    ready, folds = standardize(data, "length", "fold", asked), sc.make_folds(spec, data)
    found = find_quick_answer(ready, folds, Grid.of([0.1], [1, 3], 5, asked), time.monotonic() + seconds)
    for t in range(2):
        for fold in range(folds.k):
            support = found.supports[t][fold].tolist()
            names = {data.names[j] for j in support}
            assert len(names & {"x0", "x2"}) <= 1 and ("x1" not in names or "x3" in names)
            if not np.isfinite(found.nominal[t, fold]):
                assert t == 0 and seconds == 0.0
                continue
            model = fit(data.X, data.y, support, 0.1, rows=folds.train_rows(fold))
            assert all(b >= 0 for j, b in zip(support, model.beta, strict=True) if j < 3)
            unit = ready.y_unit**2
            assert found.value[t, fold] * unit == pytest.approx(model.objective)
            error = held_out_error(model, data.X, data.y, folds.scored_rows(fold))
            assert found.nominal[t, fold] * unit == pytest.approx(error)
    on_all = found.on_all_rows[1].tolist()
    assert found.value_on_all_rows[1] * ready.y_unit**2 == pytest.approx(fit(data.X, data.y, on_all, 0.1).objective)


@pytest.mark.parametrize("loss", list(Loss))
def test_late_on_large_data_it_is_the_null_model(loss: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_answer, "QUICK_WORK", 0)
    data = make_tiny_data(30, 6, loss)
    ready, folds = standardize(data, loss=loss), make_folds("5", data)
    found = find_quick_answer(ready, folds, Grid.of([0.5], [1, 2], 6), 0.0)
    assert all(len(support) == 0 for supports in found.supports for support in supports)
    assert np.isfinite(found.nominal[0]).all() and np.isfinite(found.value_on_all_rows[0])


def test_columns_that_are_forced_in_come_first() -> None:
    data = made(30, 6)
    asked = Restrictions(force_in="x5").resolve_names(data.names)
    ready, folds = standardize(data, "length", "fold", asked), make_folds("3", data)
    found = find_quick_answer(ready, folds, Grid.of([0.5], [1, 2, 3], 6, asked), np.inf)
    for t, size in enumerate((1, 2, 3)):
        supports = [found.on_all_rows[t], *found.supports[t]]
        assert all(len(support) == size and 5 in support for support in supports)
        assert np.isfinite(found.nominal[t]).all()


def test_a_size_without_a_model_is_refused() -> None:
    rng = np.random.default_rng(2)
    data = sc.Dataset.from_arrays(rng.normal(size=(12, 3)), rng.normal(size=12))
    message = "^tau 1: no model of at most 1 features satisfies the restrictions"
    for call in (lambda **how: sc.cross_validate(data, "2", gammas=[1.0], taus=[1], **how),
                 lambda **how: sc.best_subsets(data, gammas=[1.0], taus=[1], **how)):  # fmt: skip
        with pytest.raises(BadInput, match=message):
            call(force_in="x0", hierarchy="x0=x1")


@pytest.mark.parametrize("most", ["QUICK_WORK", "MOST_ROWS_BY_FOLD"])
def test_of_many_folds_all_rows_choose_and_a_step_leaves_each_row_out(
    most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = as_two_classes(problems.classes(2, 80, 4, {0: 1.0}))
    ready, folds, grid = standardize(data, loss=Loss.LOGISTIC), make_folds("loo", data), Grid.of([0.5], [1, 2], 4)
    by_fold = find_quick_answer(ready, folds, grid, float("inf"))
    monkeypatch.setattr(quick_answer, most, 0)
    found = find_quick_answer(ready, folds, grid, float("inf"))
    assert not np.array_equal(found.nominal, by_fold.nominal)
    for t in range(2):
        same = [fold for fold in range(80) if np.array_equal(found.supports[t][fold], by_fold.supports[t][fold])]
        assert len(same) > 70
        np.testing.assert_allclose(found.nominal[t, same], by_fold.nominal[t, same], rtol=5e-3)
        assert np.all(found.value[t, same] >= by_fold.value[t, same] * (1.0 - 1e-12))
        np.testing.assert_allclose(found.value[t, same], by_fold.value[t, same], rtol=2e-2)
    assert found.value_on_all_rows.tolist() == by_fold.value_on_all_rows.tolist()


@pytest.mark.parametrize(("n", "columns", "k"), [(40, 12, 5), (40, 3, 40), (9, 2, 9), (60, 30, 2)])
def test_products_by_fold_take_few_steps(n: int, columns: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, steps = np.random.default_rng(0), list[int]()
    rows, label = rng.normal(size=(n, columns)), np.sort(rng.integers(1, k, n))  # no row in fold 0
    bincount = np.bincount
    monkeypatch.setattr(quick_answer.np, "bincount", lambda *given: steps.append(1) or bincount(*given))
    products = quick_answer._products_by_fold(rows, label, k)
    assert len(steps) == (columns**2 if columns**2 < k else 0)
    for fold in range(k):
        own = rows[label == fold]
        assert np.allclose(products[fold], own.T @ own, rtol=1e-13, atol=1e-13)

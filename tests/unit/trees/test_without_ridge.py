"""Where gamma 0 is taken: refusals name the fold and the columns, and leverages spare only folds that are regular."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions, gammas
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.trees import without_ridge
from sparsecv_mio.trees.without_ridge import _SubsetCheck, check_independent


def rows(n: int = 12, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, p)), rng.normal(size=n)


def test_a_combination_of_columns_is_named_without_the_others() -> None:
    X, y = rows(p=4)
    X = np.column_stack([X, X[:, 0] - 3.0 * X[:, 2] + 5.0])
    said = (
        r"^gamma 0: on all rows, columns 'x0', 'x2', 'x4' are linearly dependent; give force_out=\[.x4.\], "
        r"give tau at most 2, or give a gamma of at least 1e-08$"
    )
    with pytest.raises(BadInput, match=said):
        check_independent(standardize(Dataset.from_arrays(X, y)), [0.0], 3)
    check_independent(standardize(Dataset.from_arrays(X, y)), [0.0], 2)
    check_independent(standardize(Dataset.from_arrays(X, y)), [1e-9], 5)
    check_independent(standardize(Dataset.from_arrays(X, y), restrictions=Restrictions(force_out=["x2"])), [0.0], 4)
    check_independent(standardize(Dataset.from_arrays(X, y), "length", "none"), [0.0], 5)  # the constant is apart


def test_the_fold_is_named_whose_training_rows_do_not_tell() -> None:
    X, y = rows()
    labels = np.arange(12) % 4
    X[:, 1] = np.where(labels == 2, X[:, 1], 7.0)
    data, folds = standardize(Dataset.from_arrays(X, y)), folds_from_labels(labels)
    check_independent(data, [0.0], 3)
    with pytest.raises(BadInput, match="^gamma 0: on the training rows of fold 3 of 4, column 'x1' is constant; "):
        check_independent(data, [0.0, 0.1], 1, folds)
    X[:, 1] = np.where(labels == 2, X[:, 1], X[:, 0])
    with pytest.raises(BadInput, match="fold 3 of 4, columns 'x0', 'x1' are linearly dependent"):
        check_independent(standardize(Dataset.from_arrays(X, y)), [0.0], 2, folds)
    check_independent(standardize(Dataset.from_arrays(X, y)), [0.0], 1, folds)


@pytest.mark.parametrize("adjusted", [(), ("x0",)])
def test_a_feature_is_not_forced_out_if_none_would_be_left(adjusted: tuple[str, ...]) -> None:
    X, y = rows(12, 2)
    X[:, 1] = np.eye(12)[3]
    dataset = Dataset.from_arrays(X if adjusted else X[:, [1]], y)
    data = standardize(dataset, restrictions=Restrictions(adjust=adjusted))
    with pytest.raises(BadInput, match="^gamma 0: on the training rows of fold .* is constant; give a gamma of at le"):
        check_independent(data, [0.0], len(adjusted) + 1, make_folds("loo", dataset))


def test_too_few_rows_are_counted() -> None:
    data = standardize(Dataset.from_arrays(*rows(6, 4)))
    check_independent(data, [0.0], 4, make_folds("loo", data.dataset))
    with pytest.raises(BadInput, match="fold 1 of 3 trains on 4 rows, on which any 4 columns with an intercept"):
        check_independent(data, [0.0], 4, make_folds("3", data.dataset))
    with pytest.raises(BadInput, match="^gamma 0: there are 6 rows, on which any 6 columns with an intercept"):
        check_independent(standardize(Dataset.from_arrays(*rows(6, 6))), [0.0], 6)
    wide = standardize(Dataset.from_arrays(*rows(6, 8)))
    with pytest.raises(BadInput, match="^gamma 0: there are 6 rows, on which any 5 columns .* exactly if .*most 4"):
        check_independent(wide, [0.0], 5)
    check_independent(wide, [0.0], 4)


def test_copies_of_rows_fit_exactly_with_fewer_columns() -> None:
    X, y = rows(6, 8)
    twice = standardize(Dataset.from_arrays(np.vstack([X, X]), np.concatenate([y, y])))
    check_independent(twice, [0.0], 4)
    with pytest.raises(
        BadInput, match="^gamma 0: on all rows, any 5 independent columns fit the target exactly; give tau at most 4"
    ):
        check_independent(twice, [0.0], 5)
    with pytest.raises(BadInput, match="columns .* are linearly dependent; .*give tau at most 4"):
        check_independent(twice, [0.0], 6)
    noisy = standardize(Dataset.from_arrays(np.vstack([X, X]), np.concatenate([y, y + 0.1])))
    check_independent(noisy, [0.0], 5)  # the residual is no rounding error: subsets that tie are known to tie


def test_a_subset_is_refused_and_not_all_columns() -> None:
    X, y = rows(40, 9)
    X[:, :4] = (np.arange(40) % 4)[:, None] == np.arange(4)
    X[:, 4:7] = (np.arange(40) % 3)[:, None] == np.arange(3)
    data = standardize(Dataset.from_arrays(X, y))
    check_independent(data, [0.0], 2)
    with pytest.raises(BadInput, match="columns 'x4', 'x5', 'x6' are linearly dependent; .*tau at most 2, or"):
        check_independent(data, [0.0], 3)
    X[:, 6] += X[:, 7]  # then no 3 of the levels are dependent, but 4 of the other factor are
    data = standardize(Dataset.from_arrays(X, y))
    check_independent(data, [0.0], 3)
    with pytest.raises(BadInput, match="columns 'x0', 'x1', 'x2', 'x3' are linearly dependent"):
        check_independent(data, [0.0], 4)


def test_several_dependencies_of_the_same_columns_are_told_apart() -> None:
    X, y = rows(12, 5)
    X = np.column_stack([X, X[:, 0] + X[:, 1] + X[:, 2], X[:, 0] - 2.0 * X[:, 3]])  # both have x0
    data = standardize(Dataset.from_arrays(X, y))
    check_independent(data, [0.0], 2)
    with pytest.raises(BadInput, match="columns 'x0', 'x3', 'x6' are linearly dependent"):
        check_independent(data, [0.0], 3)


def test_columns_with_little_of_their_own_are_independent() -> None:
    X, y = rows(30, 4)
    for own, refused in ((1e-5, False), (1e-10, False), (1e-14, True)):
        X[:, 3] = X[:, 0] + own * X[:, 1]
        data = standardize(Dataset.from_arrays(X, y))
        check_independent(data, [0.0], 1)
        if refused:
            with pytest.raises(BadInput, match="columns 'x0', 'x3' are linearly dependent"):
                check_independent(data, [0.0], 2)
        else:
            check_independent(data, [0.0], 2)


def test_too_many_subsets_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_ridge, "MAX_CHECKED_SUBSETS", 1000)
    data = standardize(Dataset.from_arrays(*rows(10, 14)))
    with pytest.raises(BadInput, match="^gamma 0: too many subsets of 5 columns .*; give tau at most 3, or"):
        check_independent(data, [0.0], 5)
    check_independent(data, [0.0], 3)


def test_a_column_whose_penalty_would_count_is_refused() -> None:
    X, y = rows()
    data = standardize(Dataset.from_arrays(X * [1.0, 1e-60, 1.0], y), "none")
    with pytest.raises(BadInput, match="column 'x1' has a length below 1e-50"):
        check_independent(data, [0.0], 3)


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("heavy", [False, True])
def test_leverages_are_those_of_least_squares(intercept: str, heavy: bool) -> None:
    X, y = rows()
    dataset = Dataset.from_arrays(X + 3.0, y)
    if heavy:
        weights = np.random.default_rng(1).uniform(0.5, 2.0, 12)
        dataset, _ = weighted(dataset, weights, lambda data: make_folds("3", data), name="w")
    data = standardize(dataset, "length", intercept)
    V, _ = data.rows(slice(0, 12))
    A = V if intercept != "fold" else np.column_stack([np.ones(12) if data.root is None else data.root, V])
    expected = np.diag(A @ np.linalg.solve(A.T @ A, A.T))
    assert without_ridge._leverages(data, row_moments(data, slice(0, 12))) == pytest.approx(expected, rel=1e-9)


def test_a_grid_may_begin_with_0() -> None:
    assert gammas("0,0.01:1:3") == (0.0, 0.01, 0.1, 1.0) and gammas(" 0.0 ") == (0.0,)
    for text in ("0:1:3", "-0.1", "0..1"):
        with pytest.raises(BadInput, match="^--gamma: "):
            gammas(text)


def test_the_advised_tau_is_accepted() -> None:
    t = np.linspace(0.0, 6.0, 40)
    a, b = np.sin(t), np.cos(t)
    X = np.column_stack([a, b, a**3, a * b**2, b**3, a**2 * b, a**2, b**2])
    data = standardize(Dataset.from_arrays(X, rows(40)[1]))
    for most in (3, 8):  # cubes are dependent by threes; the squares by twos
        with pytest.raises(BadInput, match="^gamma 0: .* dependent; .*give tau at most 1, or"):
            check_independent(data, [0.0], most)
    check_independent(data, [0.0], 1)
    with pytest.raises(
        BadInput, match="there are 7 rows, on which any 6 columns .* exactly if .*; .*give tau at most 1, or"
    ):
        check_independent(standardize(Dataset.from_arrays(X[:7], rows(7)[1])), [0.0], 6)


def test_folds_that_hold_out_little_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(60, 8)
    X[:, :4] = (np.arange(60) % 4)[:, None] == np.arange(4)
    X[7, 5], X[:, 6] = 50.0, np.arange(60) == 11  # a row of much leverage, and a level of one row
    dataset, seen, look = Dataset.from_arrays(X, y), list[str](), without_ridge._SubsetCheck._check
    monkeypatch.setattr(
        without_ridge._SubsetCheck, "_check", lambda self, where, rows: seen.append(where) or look(self, where, rows)
    )
    with pytest.raises(BadInput, match="^gamma 0: on the training rows of fold 12 of 60, column 'x6' is constant; "):
        check_independent(standardize(dataset), [0.0], 3, make_folds("loo", dataset))
    assert seen[0] == "all rows" and len(seen) <= 3


def test_columns_of_small_rank_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(10, 40)), rng.normal(size=10)
    dataset, seen, look = Dataset.from_arrays(np.vstack([X, X]), np.tile(y, 2)), list[str](), _SubsetCheck._check
    monkeypatch.setattr(_SubsetCheck, "_check", lambda self, where, rows: seen.append(where) or look(self, where, rows))
    with pytest.raises(BadInput, match=r"linearly dependent; give tau at most \d, or give a gamma") as refused:
        check_independent(standardize(dataset), [0.0], 12)
    assert "force_out" not in str(refused.value) and seen == ["all rows"]


def factors() -> Dataset:
    """Return 40 rows with a column, a factor of three levels and one of four."""
    at, (a, y) = np.arange(40), np.random.default_rng(1).normal(size=(2, 40))
    X = np.column_stack([a, at[:, None] % 3 == np.arange(3), (at[:, None] // 3) % 4 == np.arange(4)]).astype(float)
    return Dataset.from_arrays(X, y, names=["a", *(f"f={c}" for c in "uvw"), *(f"g={c}" for c in "klmn")])


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_the_advice_counts_as_tau_counts(tau: int) -> None:
    data, whole = factors(), dict[str, Any](taus=[tau], gammas=[0.0], count="factors")
    with pytest.raises(BadInput) as refused:
        sc.best_subsets(data, **whole)
    advice = 'give force_out=["f=w", "g=n"], which removes every dependency, give count="columns" and tau at most 2, or'
    assert advice in str(refused.value)
    with pytest.raises(BadInput) as of_fit:
        fit_one(data, tau=tau, gamma=0.0, side=SideOptions(count="factors"))  # type: ignore[arg-type]
    assert str(of_fit.value) == str(refused.value)
    assert sc.best_subsets(data, **whole, force_out=["f=w", "g=n"]).status == "proved"
    assert sc.best_subsets(data, **whole | {"count": "columns", "taus": [2]}).status == "proved"
    assert sc.best_subsets(data, **whole | {"gammas": [1e-8]}).status == "proved"


def test_the_advice_does_not_count_what_is_adjusted_for() -> None:
    data = factors()
    with pytest.raises(BadInput, match='force_out=.*"g=n".*, give tau at most 2, or') as refused:
        sc.best_subsets(data, taus=[4], gammas=[0.0], adjust=["a"])
    assert "count=" not in str(refused.value)
    assert sc.best_subsets(data, taus=[2], gammas=[0.0], adjust=["a"]).status == "proved"
    assert fit_one(data, tau=2, gamma=0.0, side=SideOptions(adjust=["a"])).status == "proved"  # type: ignore[arg-type]


def test_too_few_rows_for_the_levels_of_a_factor() -> None:
    rows = factors()
    few = Dataset.from_arrays(rows.X[:16, :4], rows.y[:16], names=rows.names[:4])
    how = dict[str, Any](gammas=[0.0], folds="forward:5:2")
    with pytest.raises(
        BadInput, match="on 4 rows, on which any 3 columns .* fit the target exactly if they are linearly indep"
    ) as e:
        sc.solve(few, taus=[1], count="factors", **how)
    assert 'independent; give count="columns" and tau at most 2, or give a gamma' in str(e.value)
    assert sc.solve(few, taus=[1], count="factors", force_out=["f=w"], **how).status == "proved"
    assert sc.solve(few, taus=[2], count="columns", **how).status == "proved"


@pytest.mark.parametrize("noise", [1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("most", [2, 3, 4, 8])
def test_nearly_dependent_columns_hide_no_dependency_and_are_not_advised_to_go(noise: float, most: int) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 8))
    X[:, 3] = 7.0 - 0.5 * X[:, 1]
    X[:, 4] = X[:, 0] + X[:, 1] + noise * rng.normal(size=50)
    X[:, 5] = X[:, 2] + noise * rng.normal(size=50)
    data = standardize(Dataset.from_arrays(X, rng.normal(size=50)))
    check_independent(data, [0.0], 1)
    with pytest.raises(BadInput, match=r"columns 'x1', 'x3' are .*; give force_out=\[.x3.\], "):
        check_independent(data, [0.0], most)
    kept = standardize(data.dataset, restrictions=Restrictions(force_out=["x3"]))
    check_independent(kept, [0.0], min(most, kept.q))


def test_the_fewest_columns_are_advised_to_go() -> None:
    X, y = rows(40, 6)
    labels = np.arange(40) % 4
    for fold, column in enumerate((1, 2, 4)):  # x0 is a copy of another column on the training rows of each fold
        X[:, column] = np.where(labels == fold, X[:, column], X[:, 0])
    data, folds = standardize(Dataset.from_arrays(X, y)), folds_from_labels(labels)
    with pytest.raises(BadInput, match=r"give force_out=\[.x0.\]"):
        check_independent(data, [0.0], 6, folds)
    check_independent(standardize(data.dataset, restrictions=Restrictions(force_out=["x0"])), [0.0], 5, folds)
    held = standardize(data.dataset, restrictions=Restrictions(force_in=["x4"]))
    with pytest.raises(BadInput, match=r"give force_out=\[.x0.\]"):
        check_independent(held, [0.0], 6, folds)
    X[:, 5] = 2.0 * X[:, 3]
    data = standardize(Dataset.from_arrays(X, y))
    with pytest.raises(BadInput, match=r"give force_out=\[.x5., .x0.\], which removes every"):
        check_independent(data, [0.0], 6, folds)


@pytest.mark.parametrize("folds", ["labels", "loo"])
def test_perfect_fits_at_gamma_0_are_tied(folds: str) -> None:
    """On the rows 1, 3 and 4 both columns are equal and fit exactly; on held-out row 0 they differ."""
    x = np.array([-1.0, 0.0, 2.0, 3.0, 0.0])
    other = x * (1.0 + 2.0**-12 * (x == -1.0))
    data = Dataset.from_arrays(np.column_stack([x, other]), [-1.333, 0.0, 2.667, 4.0, 0.0])
    plan = make_folds([1, 0, 1, 0, 0] if folds == "labels" else folds, data)
    record = sc.cross_validate(data, plan, gammas=[0.0], taus=[1], intercept="none", gap=0.0)
    report = sc.verify(record, data, plan if folds == "labels" else None)
    assert record.status == "proved" and report.ok
    if folds == "labels":
        assert record.lower == pytest.approx(5.2444444e-8, rel=1e-7) and record.upper == pytest.approx(1.1703998e-7)

"""`verify` under restrictions: what is altered is found, of signs, groups and parents alike."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from every_support import brute_force_cv_error

import sparsecv_mio as sc
from sparsecv_mio.certificate.parts import ChosenFolds
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import AllowedSupports
from sparsecv_mio.certificate.ridge_design import CANDIDATE_RTOL, CANDIDATE_SHARE, RidgeDesign, gram_fits, moments
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.model_space import AtMost, Parents, Restrictions
from sparsecv_mio.problem.objective import RidgeFit, fit, held_out_error

from .enumerated import small, truth

ASKED = Restrictions(
    at_most=(AtMost(1, ("a", "b")),), hierarchy=(Parents("ab", ("a", "b"), False),), nonnegative=("c", "d"),
)  # fmt: skip


@cache
def example() -> tuple[sc.Dataset, Record]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 4))
    X = np.column_stack([X, X[:, 0] * X[:, 1]])
    y = X @ [1.0, 0.8, -0.7, 0.5, 1.5] + rng.normal(size=40)
    data = sc.Dataset.from_arrays(X, y, names=["a", "b", "c", "d", "ab"])
    return data, sc.cross_validate(data, "4", gammas=[0.05, 0.5], taus=[1, 2, 4], gap=0.0, restrictions=ASKED)


@pytest.mark.parametrize(
    "asked",
    [replace(ASKED, at_most=()), replace(ASKED, nonnegative=()), replace(ASKED, nonpositive=("a",)),
     replace(ASKED, hierarchy=(Parents("ab", ("a", "b"), True),)), replace(ASKED, nonnegative=("d", "c"))],
)  # fmt: skip
def test_other_restrictions_are_not_those_of_the_search(asked: Restrictions) -> None:
    data, record = example()
    assert not sc.verify(replace(record, request=replace(record.request, restrictions=asked)), data).ok


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a", "b"), "does not satisfy the restrictions"),
        (("ab", "d"), "does not satisfy the restrictions"),
        (("a", "c"), "wrong sign"),
    ],
)
def test_supports_outside_of_the_family(names: tuple[str, ...], words: str) -> None:
    data, record = example()
    folds = record.chosen_folds
    forged = ChosenFolds((names, *folds.supports[1:]), folds.which, folds.error, folds.decided)
    altered = replace(record, chosen_folds=forged)
    found = [failure.message for failure in sc.verify(altered, data).failures]
    assert any(words in message for message in found), found


def test_a_lower_bound_above_the_truth_is_found() -> None:
    data, record = example()
    worst = max(range(len(record.table)), key=lambda i: record.table[i].lower)
    row = record.table[worst]
    table = list(record.table)
    table[worst] = replace(row, lower=row.lower * 1.01, upper=row.upper * 1.02, cv_error=row.cv_error * 1.01)
    assert not sc.verify(replace(record, table=tuple(table)), data).ok


def test_which_sets_count() -> None:
    allowed = AllowedSupports(("a", "b", "c", "d", "ab"), ASKED)
    assert allowed.sign.tolist() == [0, 0, 1, 1, 0]
    assert allowed.allows([0, 4]) and not allowed.allows([0, 1]) and not allowed.allows([4])
    assert allowed.holds((0, 4), 2) and not allowed.holds((4,), 3)
    by_size = allowed.support_tables(2)
    assert by_size[0].tolist() == [[]] and len(by_size[1]) == 4
    assert all(allowed.holds(tuple(row), 2) for rows in by_size.values() for row in rows.tolist())
    assert allowed.has_required_signs([0, 2], np.array([-1.0, 1.0])) and not allowed.has_required_signs(
        [2], np.array([-1.0])
    )


@pytest.mark.parametrize("asked", [{"hierarchy": "x1=x0"}, {"nonnegative": "x0"}])
def test_columns_whose_squares_overflow_have_signs(asked: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((14, 2))
    dataset = Dataset.from_arrays(1e157 * (1.0 + 1e-3 * X), X[:, 0] + 0.1 * rng.standard_normal(14) + 9.0)
    record = sc.solve(dataset, gammas=[0.1], taus=[2], folds="3", intercept="none", scale="variance", gap=0.0, **asked)
    assert verify(record, dataset).failures == ()


@pytest.mark.parametrize("restrictions", [ASKED, Restrictions(force_in=("a", "b"))])
def test_sizes_that_no_model_can_have_are_named(restrictions: Restrictions) -> None:
    """Altered by the campaign of forgeries: all supports of such a size are none, which ended in a traceback."""
    data, _ = example()
    least = len(restrictions.force_in)
    record = sc.cross_validate(data, "4", gammas=[0.05], taus=[least, least + 1], restrictions=restrictions)
    below = least - 1 if least else 9
    table = (replace(record.table[0], tau=below), *record.table[1:])
    altered = [replace(record, table=table), replace(record, refit=replace(record.refit, tau=below))]
    path = sc.best_subsets(data, gammas=[0.05], taus=[least, least + 1], restrictions=restrictions)
    altered += [replace(path, path=(replace(path.path[0], tau=below), path.path[1]))]
    for one in altered:
        report = sc.verify(one, data)
        assert "request.restrictions" in [failure.field for failure in report.failures]


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("spec", ["loo", "blocks:2", "blocks:13", "3"])
def test_enumeration_equals_brute_force(spec: str, intercept: str) -> None:
    for seed in range(4):
        data = small(seed, n=29 if spec == "blocks:13" else 14)
        plan = make_folds(spec, data, seed)
        design = RidgeDesign.from_restrictions(data, "length", intercept, None, plan=plan)
        for gamma, tau in ((1e-4, 3), (0.3, 2), (1e4, 1)):
            optima = design.fold_optima(gamma, tau)
            found = optima.low.sum() / plan.n, optima.high.sum() / plan.n
            expected = brute_force_cv_error(data.X, data.y, plan.labels, tau, gamma, intercept=intercept)
            assert found == pytest.approx(expected, rel=1e-9)


def test_a_row_of_full_leverage_is_refitted() -> None:
    """A column that is nonzero in one row only: I - H vanishes there and the identity has nothing to divide by."""
    data = small(9)
    X = data.X.copy()
    X[:, 3] = 0.0
    X[5, 3] = 1e6
    spiky = Dataset.from_arrays(X, data.y)
    for gamma in (1e-4, 1e-9):
        assert verify(truth(spiky, make_folds("loo", spiky), [gamma], [2, 3]), spiky).failures == ()


def test_held_out_errors_by_identity_and_by_refit_agree() -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(8000, 4))
    data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=8000))
    plan = make_folds("loo", data)
    supports = [(0, 2) if j % 3 else (0, 1) for j in range(8000)]
    design = RidgeDesign.from_restrictions(data, "length", "fold", None, plan=plan)
    errors, absolute, how = design.held_out_errors(supports, 0.5)
    assert how == "leave-out identity" and absolute is None
    for fold in (0, 1, 777, 7999):
        model = fit(X, data.y, supports[fold], 0.5, rows=plan.train_rows(fold))
        expected = held_out_error(model, X, data.y, plan.scored_rows(fold))
        assert errors[fold] == pytest.approx(expected, rel=1e-8)


def test_fits_of_nearly_dependent_columns_are_as_exact_as_their_doubt_says() -> None:
    """Columns at large offsets without an intercept: moments have lost their digits, the rows have not."""
    rng, by_rows = np.random.default_rng(2), 0
    for case in range(40):
        n, q = int(rng.integers(6, 20)), int(rng.integers(2, 6))
        offset = 10.0 ** rng.uniform(2, 7)
        X = rng.normal(size=(n, q)) + offset * rng.choice([-1.0, 1.0, 3.0], size=q)
        data = Dataset.from_arrays(X, X[:, 0] - X[:, 1] + rng.normal(size=n) + offset * (case % 2))
        design, gamma = RidgeDesign.from_restrictions(data, "variance", "none", None), float(10.0 ** rng.uniform(-6, 1))
        train, out = moments(design.unit, np.array([0])), design.dataset.X.shape[0]
        for size in range(1, q + 1):
            supports = np.array(list(combinations(range(q), size)))
            for part in gram_fits(train, gamma, supports):
                by_rows += int((part.by_rows & np.isfinite(part.objective)).sum())
                exact = [design.refit(support, gamma, np.arange(1, out)) for support in supports]
                objective = np.array([model.objective for model in exact]) / design.unit.y_unit**2
                room = (CANDIDATE_RTOL * objective + CANDIDATE_SHARE * float(train.moment[-1])) / 2.0
                assert np.all(np.abs(part.objective - objective) <= room, where=np.isfinite(part.objective))
                beta = np.stack([model.beta for model in exact])
                x_unit = np.array([np.linalg.norm(X[1:, design.columns[s]], axis=0) for s in supports])
                z_unit = np.sqrt(np.diag(train.gram))[supports]
                said = part.beta * z_unit / np.sqrt(train.moment[-1])
                true = beta * x_unit / np.linalg.norm(data.y[1:])
                near = np.abs(said - true).max(axis=1) <= part.doubt + 1e-9 * np.abs(true).max(axis=1)
                assert np.all(near, where=np.isfinite(part.objective))
    assert by_rows > 50


def test_few_supports_are_refitted_where_columns_are_nearly_dependent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave-one-out of 24 x 6 at an offset of 10^6, plain and with signs: some refits a fold, not one a support."""
    rng, count = np.random.default_rng(0), [0]
    X = rng.normal(size=(24, 6)) + 1e6 * np.array([1.0, -0.3, 2.0, 0.5, -1.0, 0.1])
    data = Dataset.from_arrays(X, rng.normal(size=24))
    plan, refit = make_folds("loo", data), RidgeDesign.refit

    def counted(self: RidgeDesign, *arguments: Any) -> RidgeFit:
        count[0] += 1
        return refit(self, *arguments)

    monkeypatch.setattr(RidgeDesign, "refit", counted)
    for asked in (None, Restrictions(nonnegative=("x0", "x2"), nonpositive="x4")):
        design = RidgeDesign.from_restrictions(data, "variance", "none", asked, plan=plan)
        count[0] = 0
        for tau in (1, 2, 3, 4):
            design.fold_optima(0.1, tau)
        assert count[0] < 4 * 24 * 3  # of up to 57 supports in each of 24 folds


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9])
def test_nearly_perfect_fits_at_an_offset_are_enumerated_without_a_refit_of_every_fold(
    noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(27, 3)) + 1e4 * rng.choice([-1.0, 0.5, 1.0], size=3)
    y = X @ [1.0, -0.5, 0.3] + noise * rng.normal(size=27)
    data = Dataset.from_arrays(X, y)
    plan = make_folds("loo", data)
    design = RidgeDesign.from_restrictions(data, "variance", "none", None, plan=plan)
    count, refit = [0], RidgeDesign.refit

    def counted(*given: Any) -> RidgeFit:
        count[0] += 1
        return refit(*given)

    for gamma, tau in ((0.001, 3), (0.3, 3), (10.0, 2), (0.01, 1)):
        with monkeypatch.context() as patch:
            patch.setattr(RidgeDesign, "refit", counted)
            optima = design.fold_optima(gamma, tau)
        for fold in range(0, 27, 5):
            fits = [refit(design, s, gamma, plan.train_rows(fold)) for s in combinations(range(3), tau)]
            best = min(fits, key=lambda model: model.objective)
            true = held_out_error(best, X, y, plan.scored_rows(fold))
            assert optima.low[fold] == pytest.approx(true, rel=1e-8, abs=1e-8 * float(optima.low.mean()))
    assert count[0] <= 27


@pytest.mark.parametrize("seed", range(4))
def test_a_tiny_effect_of_the_wrong_sign_is_no_support(seed: int) -> None:
    """Compared with a target of 1e6, the effect of x1 is 1e-9; the fit in fractions determines its sign."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([0.02 * rng.normal(size=(9, 2)), 1e6 + rng.normal(size=9)])
    y = X[:, 2] - 0.05 * X[:, 1] + rng.normal(size=9)
    data = sc.Dataset.from_arrays(X, y)
    record = best_subsets(data, gammas=[3.0], taus=[1, 2, 3], scale="none", intercept="none", nonnegative="all")
    assert verify(record, data).ok
    least = min(
        model.objective
        for size in range(4)
        for support in combinations(range(3), size)
        if (model := fit(X, y, support, 3.0, scale="none", intercept="none")).beta.min(initial=0.0) >= 0.0
    )
    assert record.path[2].lower <= least <= record.path[2].upper


@pytest.mark.parametrize("gamma", [1e10, 1e12])
def test_signs_of_shrunken_effects_are_decided(gamma: float) -> None:
    """All effects are far below 1e-9 of the target, as gamma shrinks them, but so is their rounding."""
    X = [[-0.08, -1.5], [-1.27, -0.24], [-0.35, -0.45], [0.23, -1.3], [-0.55, -0.3], [0.62, -0.37], [0, -2.23],
         [-0.88, -0.13], [-1.05, -0.23]]  # fmt: skip
    y = [-1.467, -0.925, -0.281, -0.955, -0.586, -0.138, -1.96, 0.587, -1.34]
    data = Dataset.from_arrays(np.array(X), np.array(y))
    how: dict[str, Any] = {"gammas": [gamma], "taus": [1], "nonpositive": ["x1"], "intercept": "none"}
    record = sc.cross_validate(data, "loo", **how)
    assert verify(record, data).ok and not verify(replace(record, support=("x1",), coefficients={"x1": 1e-12}), data).ok


def test_singular_fits_with_overflowing_coefficients_are_tried() -> None:
    levels = np.eye(3)[[0, 1, 2, 0, 1, 2, 2, 2]]
    x = np.array([0.03, -0.71, -0.17, 1.16, 0.42, -0.81, -0.93, -0.3])
    y = [-0.434, -0.508, 0.436, 1.044, 0.21, -0.691, -0.47, -0.186]
    data = Dataset.from_arrays(np.column_stack([levels, x, 2.0 * x]), y, names=["f=a", "f=b", "f=c", "x0", "x1"])
    folds = make_folds([0, 1, 0, 1, 0, 1, 0, 1], data)
    record = sc.cross_validate(
        data, folds, gammas=[1e-300], taus=[2], scale="none", restrictions=Restrictions(count=(("f=a", "f=b", "f=c"),))
    )
    assert record.status == "proved" and verify(record, data, folds).ok


def test_objectives_of_tiny_targets_are_compared_though_they_underflow() -> None:
    x = np.array([-0.71, 0.46, -0.59, 0.02, 0.04, 0.38, -0.23])
    error = 2.0**-37 * (np.arange(7) == 2)
    y = np.array([0.1, -0.804, 1.365, 0.026, 0.052, -0.558, 0.032]) * 2.0**-300
    data = Dataset.from_arrays(np.column_stack([x, 2.0 * x + error, 3.0 * x + error]), y)
    folds = make_folds([1, 0, 0, 1, 0, 0, 1], data)
    how: dict[str, Any] = {"gammas": [1e-200], "taus": [3], "scale": "none", "nonpositive": ["x0", "x1"]}
    record = sc.cross_validate(data, folds, **how)
    assert record.status == "proved" and verify(record, data, folds).ok

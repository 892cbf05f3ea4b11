"""Every certified bound against enumeration, and the printed one, which the same check must find wrong."""

from __future__ import annotations

import pytest
from bounds_problems import breaches, moment_folds, random_case, truth, wide_folds
from ellipsoids import ellipsoid_interval
from reused_points import reused_bounds

from sparsecv_mio.bounds import wide
from sparsecv_mio.bounds.cv_error import printed_ends
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem, unit_diagonal

QUICK, MANY = 250, 5000


def check(seeds: range, folds=moment_folds) -> int:
    cells = 0
    for seed in seeds:
        case = random_case(seed)
        if case is None:
            continue
        for fold, here in folds(case):
            if case.rng.random() < 0.5:
                here.search(range(1, case.data.q))
            wrong, count = breaches(case, fold, here)
            assert not wrong, f"seed {seed}, fold {fold}: {wrong[:3]}"
            cells += count
    return cells


@pytest.mark.parametrize("count", [QUICK, pytest.param(MANY, marks=pytest.mark.slow)])
def test_intervals_contain_the_truth(count: int) -> None:
    assert check(range(count)) > 3000


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dense", [0, wide.RELAXED_COLUMNS])
def test_intervals_from_rows_contain_the_truth(monkeypatch: pytest.MonkeyPatch, dense: int, count: int) -> None:
    monkeypatch.setattr(wide, "RELAXED_COLUMNS", dense)
    assert check(range(count), wide_folds) > 500


def printed_violations(seeds: range) -> tuple[int, int]:
    wrong = cells = 0
    for seed in seeds:
        case = random_case(seed)
        if case is None:
            continue
        weight = case.gamma / 2.0 * case.data.weight
        for fold, here in moment_folds(case):
            here.search(range(1, case.data.q))
            inner = range(1, case.data.q)
            for tau, (lower, upper, _) in zip(inner, printed_ends(here, inner), strict=True):
                _, low, high = truth(case, fold, tau, weight)
                slack = 1e-6 * (high + float(here.u @ here.u))
                wrong += lower > low + slack or upper < high - slack
                cells += 1
    return wrong, cells


def test_the_same_check_finds_the_printed_intervals_wrong() -> None:
    wrong, cells = printed_violations(range(QUICK))
    assert wrong > 0.005 * cells, f"{wrong} of {cells}"


@pytest.mark.slow
def test_rate_of_printed_violations() -> None:
    wrong, cells = printed_violations(range(MANY))
    print(f"as printed: {wrong} of {cells} cells wrong, {wrong / cells:.2%}")
    assert wrong


def test_ellipsoids_relaxations_and_reused_points() -> None:
    for seed in range(120):
        case = random_case(seed)
        if case is None:
            continue
        weight = case.gamma / 2.0 * case.data.weight
        before = None
        for fold, here in moment_folds(case):
            inner = [tau for tau in range(1, here.m)]
            if here.form is None or not inner:
                continue
            for diagonal in Diagonal:
                for point in relax_problem(here.problem, inner, diagonal=diagonal):
                    best, _, _ = truth(case, fold, point.tau, weight)
                    assert point.dual <= best * (1.0 + 1e-10) + 1e-13 * here.problem.yy
                    assert point.dual <= point.primal + 1e-10 * here.problem.yy
            plain = unit_diagonal(here.problem, diagonal=Diagonal.PENALTY)
            if before is not None and len(before) == here.problem.q:
                for form in (here.form, plain):
                    for tau, bound in zip(inner, reused_bounds(form, before, inner), strict=True):
                        assert bound <= truth(case, fold, tau, weight)[0] * (1.0 + 1e-10) + 1e-13 * here.problem.yy
            before = point.beta
            tau = inner[seed % len(inner)]
            best, low, high = truth(case, fold, tau, weight)
            X, u = here.rows
            ends = ellipsoid_interval(here.form, X, u, tau, best * (1.0 + 3e-9))
            slack = 1e-9 * (high + float(u @ u))
            assert ends.lower <= low + slack and ends.upper >= high - slack, (seed, fold, tau)

"""Columns that every model contains, or none does: every method against all supports that keep to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from runs import new_run, record_of, to_end
from test_cross_validation import Tally, compare

import sparsecv_mio as sc
from sparsecv_mio.bounds import cv_error
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import repeated
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.search import loop
from sparsecv_mio.search.pairs import Grid

METHODS = (
    {"method": "rounds"}, {"method": "rounds", "engine": "enumerate"}, {"method": "rounds", "engine": "shared"},
    {"method": "rounds", "engine": "per-fold"}, {"method": "joint"}, {"method": "algorithm1"}, {"method": "grid"},
    {"method": "bounds"}, {"method": "rounds", "oracles": "glru,iacv"}, {"method": "grid", "oracles": "glru"},
)  # fmt: skip


def forced_problem(seed: int, rows: int = 40, columns: int = 10) -> RandomProblem:
    """A random problem with some columns forced in or out, and every size that is left."""
    case = random_problem(seed, rows, columns)
    rng = np.random.default_rng([7, seed])
    able = rng.permutation(varying_columns(case.data.X))
    inside = able[: int(rng.integers(0, min(len(able), 4) + 1))]
    outside = able[len(inside) : len(inside) + int(rng.integers(0, 3))]
    outside = outside[: len(able) - max(len(inside), 1)]
    names = case.data.names
    restrictions = Restrictions(
        tuple(names[j] for j in sorted(inside.tolist())), tuple(names[j] for j in sorted(outside.tolist()))
    )
    sizes = np.arange(len(inside), case.data.p - len(outside) + 1)
    taus = np.unique(rng.choice(sizes, size=min(len(sizes), 4))).tolist()
    return replace(case, taus=taus, restrictions=restrictions)


def kept(support: Iterable[str], restrictions: Restrictions) -> bool:
    return set(restrictions.force_in) <= set(support) and not set(restrictions.force_out) & set(support)


def check(seed: int, tally: Tally, how: dict[str, str] | None = None, **size: int) -> None:
    case = forced_problem(seed, **size)
    data = standardize(case.data, case.scale, case.intercept, case.restrictions)
    grid = Grid.of(case.gammas, case.taus, case.data.p, case.restrictions)
    run = to_end(new_run(data, case.folds, grid, **(how or METHODS[seed % len(METHODS)])))
    compare(seed, case, run, tally)
    record = record_of(run)
    for support in (record.support, *record.chosen_folds.supports):
        if not kept(support, case.restrictions):
            tally.violations.append(f"seed {seed}: {support} does not keep to {case.restrictions}")


def go_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every search and all bounds go by rows, however few the columns are."""
    monkeypatch.setattr(loop, "by_rows", lambda data, folds: True)
    monkeypatch.setattr(cv_error, "is_wide", lambda data: True)


@pytest.mark.parametrize("block", range(3))
def test_forced_columns(block: int) -> None:
    tally = Tally()
    for seed in range(10 * block, 10 * block + 10):
        check(seed, tally, rows=20, columns=6)
    assert tally.violations == []
    assert tally.decided >= 0.7 * tally.cells


@pytest.mark.parametrize("method", ["rounds", "grid", "bounds"])
def test_forced_columns_by_rows(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    go_by_rows(monkeypatch)
    tally = Tally()
    for seed in range(100, 107):
        check(seed, tally, {"method": method}, rows=14, columns=6)
    assert tally.violations == []
    assert method == "bounds" or tally.decided >= 0.5 * tally.cells


def plain(seed: int) -> tuple[sc.Dataset, dict[str, Any]]:
    """Noisy data, three of its columns forced in or out, and every size that is left."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(9, 16)), int(rng.integers(4, 8))
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    if seed % 3 == 0:
        X[:, 1] = -X[:, 0]
    some = rng.permutation(p)[:3].tolist()
    data = sc.Dataset.from_arrays(X, X @ rng.normal(size=p) + rng.normal(size=n))
    return data, {"force_in": some[:2], "force_out": some[2:], "taus": range(2, min(p - 1, 4) + 1)}


RUNS: tuple[dict[str, Any], ...] = (
    {"method": "descent"}, {"method": "descent", "tau_step": "saddle"}, {"refine": True}, {"one_se": True},
    {"time_limit": 0.002}, {"method": "joint", "backend": "highs"}, {"method": "bounds"},
)  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_records_keep_to_the_restrictions_and_pass_verification(
    run: dict[str, Any], wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if wide:
        go_by_rows(monkeypatch)
    for seed in range(1 if "backend" in run else 2):
        data, given = plain(seed)
        record = sc.cross_validate(data, "4", gammas=[0.05, 1.0], gap=0.0, threads=1, **given, **run)
        assert record.request.restrictions is not None
        assert all(kept(one, record.request.restrictions) for one in (record.support, *record.chosen_folds.supports))
        assert sc.verify(record, data).failures == ()


@pytest.mark.parametrize("wide", [False, True])
def test_weights_count_as_rows_do(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        go_by_rows(monkeypatch)
    for seed in range(3):
        data, given = plain(seed)
        weight = np.random.default_rng(seed).integers(1, 4, size=data.n)
        labels = np.arange(data.n) % 4
        weighted = replace(data, weights="w", row_weights=weight.astype(float))
        ask = {"gammas": [0.05, 1.0], "gap": 0.0, "threads": 1, **given}
        ours, theirs = (
            sc.cross_validate(weighted, labels, **ask),
            sc.cross_validate(repeated(data, weight), np.repeat(labels, weight), **ask),
        )
        assert (ours.tau, ours.gamma, ours.support) == (theirs.tau, theirs.gamma, theirs.support)
        for one, other in zip(ours.table, theirs.table, strict=True):
            assert (one.lower, one.cv_error) == pytest.approx((other.lower, other.cv_error), rel=1e-9)


def test_altered_records_are_rejected() -> None:
    data, given = plain(4)
    record = sc.cross_validate(data, "4", gammas=[0.05, 1.0], gap=0.0, threads=1, **given)
    limits, free = record.request.restrictions, sc.cross_validate(data, "4", gammas=[0.05, 1.0], taus=given["taus"])
    assert limits is not None and sc.verify(record, data).ok

    def failed(**changes: Any) -> set[str]:
        return {one.field for one in sc.verify(replace(record, **changes), data).failures}

    def limited(**changes: Any) -> set[str]:
        return failed(request=replace(record.request, restrictions=replace(limits, **changes)))

    assert failed(support=free.support, coefficients=free.coefficients, intercept=free.intercept)
    assert "chosen_folds[0].support" in failed(chosen_folds=free.chosen_folds)
    assert failed(request=replace(record.request, restrictions=None))
    other = next(name for name in data.names if name not in limits.force_in and name not in record.support)
    assert limited(force_in=(*limits.force_in, "x9")) == {"request.restrictions"}
    assert limited(force_in=tuple(sorted({*limits.force_in, other})))
    assert limited(force_out=limits.force_in) == {"request.restrictions"}
    assert any("support" in field for field in limited(force_in=(), force_out=limits.force_in[:1]))


@pytest.mark.slow
def test_five_hundred_problems_with_forced_columns(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for seed in range(1000, 1500):
        check(seed, tally)
    with capsys.disabled():
        print(f"\n{tally}")
    assert tally.violations == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rounds", "grid", "bounds"])
def test_a_hundred_problems_by_rows(
    method: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go_by_rows(monkeypatch)
    tally = Tally()
    for seed in range(2000, 2100):
        check(seed, tally, {"method": method}, rows=20, columns=8)
    with capsys.disabled():
        print(f"\n{method}: {tally}")
    assert tally.violations == []

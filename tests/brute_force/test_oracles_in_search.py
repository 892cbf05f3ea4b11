"""The search with its oracles on and off: the same certified answer, every interval valid against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from random_problems import RandomProblem, random_problem
from reference import cv_intervals

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.search.api import cross_validate

INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance
METHODS = ("rounds", "joint", "algorithm1", "grid")
GAPS = (0.0, 1e-4, 0.0, 5e-2)
ON: tuple[tuple[str, ...], ...] = (("glru",), ("iacv",), ("treecv",), ("glru", "iacv", "treecv"))


def solved(case: RandomProblem, method: str, gap: float, oracles: tuple[str, ...] | None) -> Record:
    return cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept,
        gap=gap, threads=1, method=method, oracles=oracles,
    )  # fmt: skip


def valid(case: RandomProblem, record: Record, low: np.ndarray, high: np.ndarray) -> None:
    """Every interval of the table contains the truth, ties included, and so does the certificate."""
    for row in record.table:
        at = case.gammas.index(row.gamma), case.taus.index(row.tau)
        assert row.lower <= low[at] * (1.0 + 1e-9) + row.lower * 1e-9
        assert row.upper >= high[at] * (1.0 - 1e-9)
    assert record.lower <= low.min() * (1.0 + 1e-9)


def check(seed: int, **size: int) -> None:
    """One problem, one method and gap: off against each oracle alone, all of them, and the default."""
    case = random_problem(seed, **size)
    method, gap = METHODS[seed % 4], GAPS[seed // 4 % 4]
    data, how = case.data, (case.scale, case.intercept)
    low, high = cv_intervals(data.X, data.y, case.folds.labels, case.gammas, case.taus, how, INSIDE)
    off = solved(case, method, gap, ())
    valid(case, off, low, high)
    assert off.work.oracles == ()
    for oracles in (*ON, None):
        on = solved(case, method, gap, oracles)
        valid(case, on, low, high)
        assert on.status == off.status, (oracles, method, gap)
        if off.status != "proved":  # rounding leaves cells undecided: the intervals are valid, and wide
            continue
        scale = max(off.upper, 1e-300)
        room = gap * scale + off.allowance + on.allowance + 1e-9 * scale
        assert abs(on.upper - off.upper) <= room + abs(on.tie_width - off.tie_width), (oracles, method, gap)
        assert abs(on.lower - off.lower) <= room + abs(on.tie_width - off.tie_width), (oracles, method, gap)
        if gap == 0.0:
            h = high[case.gammas.index(on.gamma), case.taus.index(on.tau)]
            assert h <= high[case.gammas.index(off.gamma), case.taus.index(off.tau)] * (1.0 + 1e-9)
        if oracles is not None:
            assert {work.oracle for work in on.work.oracles} == set(oracles)


@pytest.mark.parametrize("block", range(10))
def test_oracles_change_no_answer(block: int) -> None:
    for seed in range(3 * block, 3 * block + 3):
        check(seed, rows=30, columns=7)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(6))
def test_oracles_change_no_answer_on_300_problems(block: int) -> None:
    for seed in range(9000 + 50 * block, 9050 + 50 * block):
        check(seed, rows=40, columns=8)

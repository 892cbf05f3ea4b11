"""Supports of all rows scored in every fold by closed form, against fits without the fold."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.shared_tree import leave_out as module
from sparsecv_mio.search.shared_tree.leave_out import LeaveOut
from sparsecv_mio.search.shared_tree.listed_supports import ListedSupports, Scores

from .enumerated import VARIANTS, Enumerated


def listing_of(case: Enumerated) -> tuple[list[tuple[int, ...]], ListedSupports]:
    every = [s for size in case.taus.tolist() for s in case.of_size(size)]
    arrays = [np.array(s) for s in every]
    return every, ListedSupports.of(case.all_rows.problem(0), arrays, [len(s) - 1 for s in every])


def check(case: Enumerated, scores: Scores, folds: range, every: list[tuple[int, ...]]) -> None:
    for t, size in enumerate(case.taus.tolist()):
        for place, fold in enumerate(folds):
            values = sorted(case.inside[s][fold] for s in case.of_size(size))
            best = case.best(size)[fold]
            assert every[scores.which[t, place]] == best
            np.testing.assert_allclose([scores.value[t, place], scores.second[t, place]], values[:2], rtol=1e-9)
            assert abs(scores.held_out[t, place] - case.error[best][fold]) <= scores.error[t, place] + 1e-14


@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_scores_are_those_of_fits_without_the_fold(spec: str, intercept: str) -> None:
    case = Enumerated(1, spec=spec, intercept=intercept)
    every, listing = listing_of(case)
    k = case.folds.k
    rows = case.leave_out.rows(0, k)
    check(case, case.leave_out.score(listing, rows), range(k), every)
    # the same in two steps, on top of each other
    half = len(every) // 2
    first = ListedSupports(*(getattr(listing, name)[:half] for name in ListedSupports.__dataclass_fields__))
    scores = case.leave_out.score(first, rows)
    scores = case.leave_out.score(listing.after(half), rows, first=half, scores=scores)
    check(case, scores, range(k), every)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("spec", ["loo", "blocks:3"])
def test_chunks_of_folds(spec: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 7)
    case = Enumerated(2, spec=spec, threads=threads)
    every, listing = listing_of(case)
    leave_out = case.leave_out
    assert not leave_out.one_chunk
    pieces = list(leave_out.chunks())
    assert [lo for lo, _ in pieces][1:] == [hi for _, hi in pieces][:-1] and pieces[-1][1] == case.folds.k
    seen = []

    def score(lo: int, hi: int) -> None:
        check(case, leave_out.score(listing, leave_out.rows(lo, hi)), range(lo, hi), every)
        seen.append((lo, hi))

    leave_out.over_chunks(score)
    assert sorted(seen) == pieces


def test_a_support_above_the_limit_cannot_win() -> None:
    case = Enumerated()
    every, listing = listing_of(case)
    limit = np.full((len(case.taus), case.folds.k), np.inf)
    limit[1] = 0.0
    scores = case.leave_out.score(listing, case.leave_out.rows(0, case.folds.k), limit)
    assert (scores.which[1] == -1).all() and np.isinf(scores.value[1]).all() and (scores.which[0] >= 0).all()


@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_leverages(spec: str, intercept: str) -> None:
    case = Enumerated(3, spec=spec, intercept=intercept)
    problem = case.all_rows.problem(0)
    leverage, residual = case.leave_out.leverages(problem, 1e-9)
    V, r, starts, _ = case.leave_out.rows(0, case.folds.k)
    H = V @ np.linalg.solve(problem.M, V.T) + (1.0 / case.n if intercept == "fold" else 0.0)
    e = r - V @ np.linalg.solve(problem.M, problem.c)
    for fold in range(case.folds.k):
        block = slice(starts[fold], starts[fold + 1])
        exact = np.linalg.eigvalsh(H[block, block])[-1]
        assert exact <= leverage[fold] <= exact + 1e-8
        assert residual[fold] == pytest.approx(np.linalg.norm(e[block]))


def test_supports_that_are_named_join_those_of_all_rows() -> None:
    case = Enumerated()
    best = case.all_rows.best[0].cells[2].support
    other = next(s for s in case.supports(2) if not np.array_equal(s, best))

    def named(g: int, tau: int) -> list[np.ndarray]:
        return [np.sort(best), other] if (g, tau) == (0, 2) else []

    leave_out = LeaveOut(case.all_rows, case.cells, named)
    supports, place = leave_out.supports_on_all_rows(0, [0, 1])
    assert place == [0, 1, 1] and np.array_equal(supports[1], best) and np.array_equal(supports[2], other)


def test_only_cells_that_are_sure_are_decided() -> None:
    case = Enumerated()
    every, listing = listing_of(case)
    numbers = case.leave_out.pool_numbers(listing)
    scores = case.leave_out.score(listing, case.leave_out.rows(0, case.folds.k))
    sure = np.zeros(scores.value.shape, dtype=bool)
    sure[0, :5] = True
    scores.error[0, 0] = scores.held_out[0, 0]  # a held-out error that is not known
    assert case.leave_out.decide((0, slice(0, case.folds.k)), scores, numbers, sure, False) == 4
    assert case.cells.decided[0].sum() == 4 and not case.cells.decided[0, 0, 0] and not case.cells.branched.any()
    case.check_cells()

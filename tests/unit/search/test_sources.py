"""Sources of bounds: what they may claim, that they stop, and what they offer."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.bounds.more_weight import MoreWeight, RowsTogether
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.fold_solver import FoldSolver
from sparsecv_mio.search.pairs import Grid, likely_winner
from sparsecv_mio.search.ranked_loop import Offer
from sparsecv_mio.search.sources.fold_trees import FoldTrees, promising_folds
from sparsecv_mio.search.sources.in_question import mask_of, taus_named
from sparsecv_mio.search.sources.least_bounds import RankedAllRows, RankedLeftOut, RankedTrees, TimeShare


@pytest.fixture
def run() -> Any:
    """A method that began without a limit, so that no size was decided before all rows; then one came."""
    data, folds, _ = drawn(p=38, n=40, noise=3.0)
    made = new_run(data, folds, Grid.of([0.01, 5.0], list(range(1, 6)), 38), gap=1e-4)
    made.begin()
    made.context.deadline.at = made.context.deadline.began + 600.0
    return made


def test_all_rows_are_solved_where_they_are_asked_for(run: Any) -> None:
    trees, everywhere = run.outward.all_rows, np.ones(run.context.shape[:2], dtype=bool)
    before = run.run.cells.lower.copy()
    trees.solve(mask_of(run.context.shape, (1, 0)), 1 << 13)
    assert run.run.all_rows.solved_pairs()[1, 0] and np.all(run.run.cells.lower >= before)
    assert trees.enough().shape == everywhere.shape
    best = np.unravel_index(run.run.cells.upper.sum(axis=2).argmin(), everywhere.shape)
    assert run.run.cells.final[best].all() or not trees.may_exclude().any()


def test_trees_of_folds_visit_what_is_in_question(run: Any) -> None:
    folds, cells = run.outward.folds, run.run.cells
    pair = mask_of(run.context.shape, (1, 1))
    wanted = run.outward.in_question.cells() & pair[:, :, None]
    assert set(promising_folds(cells, wanted)) == set(np.flatnonzero(wanted.any(axis=(0, 1))).tolist())
    folds.grow(pair, 1 << 13)
    assert not (run.outward.in_question.cells() & pair[:, :, None]).any()
    assert not cells.decided[0].any()


def test_each_fold_is_visited_for_some_gammas_at_a_time(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    visited, solve, everywhere = [], FoldSolver.run, np.ones(run.context.shape[:2], dtype=bool)

    def noted(solver: FoldSolver, fold: int, moments: TrainingMoments, wanted: BoolArray, effort: int) -> int:
        visited.append((fold, *np.flatnonzero(wanted.any(axis=1)).tolist()))
        return solve(solver, fold, moments, wanted, effort)

    monkeypatch.setattr(FoldSolver, "run", noted)
    run.context.hands.at_once = 4
    FoldTrees(run.run, lambda: run.run.open).grow(everywhere, 1 << 13)
    assert run.run.cells.final.all()
    assert sorted(visited) == [(fold, g) for fold in range(run.context.folds.k) for g in range(2)]


def test_pairs_are_in_question_until_they_are_decided_or_excluded(run: Any) -> None:
    asked, cells = run.outward.in_question, run.run.cells
    beaten = cells.lower.sum(axis=2) >= asked.bars()
    assert np.array_equal(asked.pairs(), ~beaten & ~cells.final.all(axis=2))
    assert np.isinf(asked.bars()).sum() == 1


@pytest.mark.parametrize("kind", [RankedAllRows, RankedLeftOut])
def test_trees_raise_the_least_bounds_of_the_grid(run: Any, kind: type[RankedTrees]) -> None:
    run.outward.share.began = -1e9
    trees, cells = kind(run.outward.all_rows, run.outward.share), run.run.cells
    cells.lower[:] = 0.0  # relaxations say more here than trees of few nodes
    before = cells.lower.sum(axis=2)
    (offer,) = trees.offers()
    assert np.isinf(offer.rate) and before[offer.pairs[0]] == before.min()
    assert len({t for _, t in offer.pairs}) == len(offer.pairs)
    trees.work(offer)
    after = cells.lower.sum(axis=2)
    assert np.all(after >= before) and after[offer.pairs[0]] > before[offer.pairs[0]]
    assert 0.0 < trees.gains[offer.pairs[0]] < np.inf
    for pair in np.argwhere(np.isinf(trees.gains) & trees.usable()).tolist():
        assert 0.0 < trees.promise((pair[0], pair[1])) < np.inf, "what neighbours brought"


def test_least_bounds_have_their_share_of_a_limit(run: Any) -> None:
    share, sources = run.outward.share, run.outward.sources
    assert not share.due, "no tau was worked on"
    share.began, share.spent = -1e9, 1e9
    assert not share.due, "little was spent besides"
    share.spent = 0.0
    offers = [offer for source in sources for offer in source.offers()]
    assert [offer.source for offer in offers] == list(sources)
    sources[0].work(offers[0])
    assert share.spent > 0.0 and sources[0].tries.any() and not sources[1].tries.any()
    free = TimeShare(Deadline(None, None), lambda: np.inf)
    free.began = -1e9
    assert not free.due, "no limit"


@pytest.mark.parametrize("gone, due", [(40.0, False), (60.0, True)])
def test_least_bounds_come_first_in_the_second_half_of_a_limit(gone: float, due: bool) -> None:
    needed = 101.0 - gone
    share = TimeShare(Deadline(100.0, None, time.monotonic() - gone), lambda: needed)
    assert not share.due, "no tau was worked on"
    share.began, share.spent = 1.0, gone
    assert share.due is due
    needed = 99.0 - gone
    assert not share.due, "a proof fits into what is left"


def test_sweeps_say_about_how_long_they_take(run: Any) -> None:
    sweeps, everywhere = run.outward.sweeps, np.ones(run.context.shape[:2], dtype=bool)
    sweeps.in_question.pairs = lambda: everywhere  # of two gammas
    assert np.isinf(sweeps.seconds_left()), "nothing was swept"
    sweeps.work[:3], sweeps.tries[:3] = (1.0, 2.0, 4.0), (1, 1, 2)
    sweeps.total_work = sweeps.total_seconds = 7.0
    assert sweeps.seconds_left() == pytest.approx(2 * (8 * (1 + 2) + 64 * 4 + 4 * (2 + 4)))
    everywhere[:, :4] = False
    assert sweeps.seconds_left() == pytest.approx(2 * 4 * 2)
    sweeps.total_seconds *= 3.0  # a machine that is busy all the time
    assert sweeps.seconds_left() == pytest.approx(3 * 2 * 4 * 2)
    everywhere[:] = False
    assert sweeps.seconds_left() == 0.0
    del sweeps.in_question.pairs
    sweeps.work[:], sweeps.tries[:] = np.inf, 0
    sweeps.sweep(range(1))
    assert np.isfinite(sweeps.work[0]) == (sweeps.seconds_left() < np.inf)


def test_trees_on_all_rows_promise_by_what_is_left_to_raise(run: Any) -> None:
    trees = RankedAllRows(run.outward.all_rows, run.outward.share)
    pair, solved = (0, 2), run.run.all_rows.solved_pairs()
    assert np.isinf(trees.promise(pair)) and not trees.usable()[solved].any()
    trees.gains[pair], trees.seconds[pair] = 1e-3, 1.0
    promised = trees.promise(pair)
    trees.gains[pair] = 2e-3
    assert trees.promise(pair) >= promised
    trees.gains[pair] = 0.0
    assert trees.promise(pair) == 0.0, "it would take longer than the limit"


def test_the_fold_that_misses_most_has_the_first_tree(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trees, cells, visited = run.outward.left_out, run.run.cells, []
    branch = MoreWeight.branch_each

    def noted(
        bounds: MoreWeight, rows: RowsTogether, targets: dict[tuple[int, int], tuple[float, float]], *given: Any,
        **limit: Any,
    ) -> Any:  # fmt: skip
        visited.append(targets[0, 2][0])
        return branch(bounds, rows, targets, *given, **limit)

    monkeypatch.setattr(MoreWeight, "branch_each", noted)
    cells.lower[:] = 0.0
    shown = cells.nominal[0, 2].copy()
    trees.weight.branch([(0, 2)], float(shown.sum()), 1, run.context.deadline)
    assert visited == sorted(shown, reverse=True)


class Told:
    """A source that offers one pair once, and claims of it what is known."""

    def __init__(self, run: Any) -> None:
        self.run, self.pair, self.slices = run, likely_winner(run.run.bounds()), 0

    def offers(self) -> list[Offer]:
        """Return the pair, once."""
        return [] if self.slices else [Offer(self, (self.pair,))]

    def work(self, offer: Offer) -> None:
        """Narrow it by nothing."""
        self.slices += 1
        self.run.run.cells.narrow(self.pair, self.run.run.cells.lower[self.pair], np.inf)


def test_another_source_is_asked_and_does_its_slices(run: Any) -> None:
    told = Told(run)
    run.outward.sources = (*run.outward.sources, told)
    for _ in range(4):
        run.step()
    assert told.slices == 1 and run.outward.looked


def test_a_sweep_only_tightens(run: Any) -> None:
    sweeps, cells = run.outward.sweeps, run.run.cells
    (t,) = due = sweeps.due()
    lower, upper = cells.lower.copy(), cells.upper.copy()
    sweeps.sweep(due)
    assert np.all(cells.lower >= lower) and np.all(cells.upper <= upper)
    assert sweeps.tries.tolist() == [int(tau == t) for tau in range(5)]
    assert sweeps.spent[0] > 0 == sweeps.spent[1]


def test_new_taus_and_open_ones_take_turns(run: Any) -> None:
    sweeps = run.outward.sweeps
    sweeps.tries[:3] = (1, 2, 1)
    run.outward.in_question.cells = lambda: np.ones(run.context.shape, dtype=bool)
    sweeps.spent[:] = (5, 5)
    assert sweeps.due() == range(3, 4)
    sweeps.spent[:] = (6, 5)
    assert sweeps.due() == range(1)
    sweeps.tries[0] = 3
    assert sweeps.due() == range(2, 3)
    sweeps.tries[:] = 1
    assert sweeps.due() == range(1)


def test_taus_have_names() -> None:
    assert [taus_named(np.array(taus, dtype=int)) for taus in ([3], [1, 2, 5], [])] == ["tau 3", "tau 1 to 5", "tau "]

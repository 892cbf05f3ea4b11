"""Sources of bounds: what they may claim, that they stop, and that of two the better one is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.search import rounds
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.pairs import Grid, Pair
from sparsecv_mio.search.sources import least_bounds
from sparsecv_mio.search.sources.fold_trees import promising_folds
from sparsecv_mio.search.sources.in_question import mask_of, taus_named
from sparsecv_mio.search.sources.least_bounds import LeastBounds, RankedTrees


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A method begun under a limit, whose first efforts leave cells open, and no size has few supports."""
    monkeypatch.setattr(rounds, "FIRST_EFFORT", 1)
    monkeypatch.setattr(rounds, "FEW_SUPPORTS", 0)
    data, folds, _ = drawn(p=38, n=40, noise=3.0)
    made = new_run(data, folds, Grid.of([0.01, 5.0], list(range(1, 6)), 38), seconds=600.0, gap=1e-4)
    made.begin()
    return made


def test_all_rows_are_solved_where_they_are_asked_for(run: Any) -> None:
    trees, everywhere = run.outward.all_rows, np.ones(run.context.shape[:2], dtype=bool)
    before = run.run.cells.lower.copy()
    trees.solve(mask_of(run.context.shape, (1, 0)), 1 << 13)
    assert not trees.unsolved()[1, 0] and np.all(run.run.cells.lower >= before)
    assert trees.enough().shape == everywhere.shape
    best = np.unravel_index(run.run.cells.upper.sum(axis=2).argmin(), everywhere.shape)
    assert run.run.cells.final[best].all() or not trees.may_exclude().any()


def test_trees_of_folds_visit_what_is_in_question(run: Any) -> None:
    folds, cells = run.outward.folds, run.run.cells
    pair = mask_of(run.context.shape, (1, 1))
    wanted = run.outward.in_question.cells() & pair[:, :, None]
    promised = len(promising_folds(cells, wanted))
    folds.grow(pair, 1 << 13, most=1)
    assert cells.decided[1, 1].sum() == min(1, promised)
    folds.grow(pair, 1 << 13)
    assert not (run.outward.in_question.cells() & pair[:, :, None]).any()
    assert not cells.decided[0].any()


def test_pairs_are_in_question_until_they_are_decided_or_excluded(run: Any) -> None:
    asked, cells = run.outward.in_question, run.run.cells
    beaten = cells.lower.sum(axis=2) >= asked.bars()
    assert np.array_equal(asked.pairs(), ~beaten & ~cells.final.all(axis=2))
    assert np.isinf(asked.bars()).sum() == 1


@pytest.mark.parametrize("kind", [0, 1])
def test_trees_raise_the_least_bounds_of_the_grid(run: Any, kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    least, cells = run.outward.least, run.run.cells
    monkeypatch.setattr(least_bounds, "LEAST_ENOUGH", np.inf)
    cells.lower[:] = 0.0  # rows with more weight say more here than trees of few nodes
    before = cells.lower.sum(axis=2)
    where = np.unravel_index(before.argmin(), before.shape)
    chosen, other = least.ranked[kind], least.ranked[1 - kind]
    other.gains[:] = 0.0  # they brought nothing
    assert not least.raise_them(), "no tau was worked on"
    least.began, least.spent = -1e9, 1e9
    assert not least.raise_them(), "little was spent besides"
    least.spent = 0.0
    assert least.raise_them() and least.spent > 0.0 and 0.0 < chosen.gains[where] < np.inf
    assert not other.tries.any()
    after = cells.lower.sum(axis=2)
    assert np.all(after >= before) and after[where] > before[where]
    monkeypatch.setattr(least_bounds, "LEAST_ENOUGH", 0.0)
    assert not least.raise_them(), "they are large enough"


class Told(RankedTrees):
    """A source that only says that it was asked, and raises every lower bound by so much a fold."""

    def __init__(self, least: LeastBounds, rise: float) -> None:
        super().__init__(least.run.context.shape)
        self.least, self.rise, self.asked = least, rise, 0

    def usable(self) -> BoolArray:
        return np.ones(self.tries.shape, dtype=bool)

    def grow(self, pairs: list[Pair], tries: int, bar: float, until: Deadline) -> None:
        self.asked += 1
        for pair in pairs:
            self.least.run.cells.lower[pair] += self.rise

    def needs_more(self, rises: FloatArray) -> BoolArray:
        return rises <= 0.0


def test_the_source_that_brought_more_is_asked_again(run: Any) -> None:
    least = run.outward.least
    run.run.cells.lower[:] = 0.0
    poor, rich = Told(least, 0.0), Told(least, 1e-6)
    least.ranked, least.began = (poor, rich), -1e9
    for _ in range(40):
        least.spent = 0.0
        assert least.raise_them()
    assert poor.asked >= 1 and rich.asked > 2 * poor.asked and rich.tries.max() == 0 < poor.tries.max()


def test_taus_have_names() -> None:
    assert [taus_named(np.array(taus, dtype=int)) for taus in ([3], [1, 2, 5], [])] == ["tau 3", "tau 1 to 5", "tau "]

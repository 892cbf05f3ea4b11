"""The grid of a search and its tables: what is written to them is kept and checked, whatever stores it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from runs import drawn_run, to_end

from sparsecv_mio.arrays import is_constant
from sparsecv_mio.errors import BadInput, Contradiction, CorruptStore
from sparsecv_mio.search.state import pairs
from sparsecv_mio.search.state.cells import (
    CellTable,
    parse_json,
)
from sparsecv_mio.search.state.pairs import Grid, PairBounds, pair_bounds, proved_ends, proved_part, simplest, statuses


def test_json_is_read() -> None:
    assert parse_json(np.array("[1]"), "a") == [1]
    with pytest.raises(CorruptStore, match="its array `a` "):
        parse_json(np.array("{"), "a")


def new_table() -> CellTable:
    return CellTable.empty(2, 3, 4)


def test_narrow_tightens_scalars_and_parts_alike() -> None:
    cells = new_table()
    cells.narrow((0, 1, 2), 1.0, 5.0)
    cells.narrow((0, 1, slice(None)), np.array([0.5, 0.5, 0.5, -1.0]), 4.0)
    assert cells.lower[0, 1].tolist() == [0.5, 0.5, 1.0, 0.0]
    assert cells.upper[0, 1].tolist() == [4.0] * 4
    cells.narrow((1, np.array([0, 2]), 3), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert cells.lower[1, :, 3].tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize(("lower", "upper"), [(3.1, 9.0), (0.0, 0.9), (float("nan"), 2.0), (0.0, float("nan"))])
def test_narrow_raises_on_contradiction(lower: float, upper: float) -> None:
    cells = new_table()
    cells.narrow((0, 0, 1), 1.0, 3.0)
    with pytest.raises(Contradiction, match="gamma number 1, tau number 1, fold 2: lower"):
        cells.narrow((0, 0, slice(None)), np.array([0.0, lower, 0.0, 0.0]), np.array([9.0, upper, 9.0, 9.0]))
    assert (cells.lower[0, 0, 1], cells.upper[0, 0, 1]) == (1.0, 3.0)


@pytest.mark.parametrize(("lower", "upper", "nominal"), [(4.0, 4.0, 4.0), (7.0, 8.0, 7.5), (5.2, 5.5, 5.1)])
def test_settling_a_cell_outside_of_what_is_known_raises(lower: float, upper: float, nominal: float) -> None:
    cells, sure = new_table(), np.array([False, True, False, False])
    cells.narrow((0, 0, slice(None)), 5.0, 6.0)
    with pytest.raises(Contradiction, match="fold 2"):
        cells.decide((0, 0, 1), 0, nominal, lower, upper, 0.0)
    row = np.ones(4)
    with pytest.raises(Contradiction, match="fold 2"):
        cells.decide_part((0, 0, slice(None)), sure, 0, nominal * row, (lower * row, upper * row), row, branched=True)
    assert not cells.decided.any()


def test_a_decided_cell_holds_its_number_for_good() -> None:
    cells = new_table()
    cells.narrow((0, 0, 0), 1.0, 2.0 * (1.0 - 1e-9))
    cells.decide((0, 0, 0), 0, 2.0, 2.0 - 1e-12, 2.0 + 1e-12, 0.0, value=3.0)
    assert cells.lower[0, 0, 0] <= cells.nominal[0, 0, 0] <= cells.upper[0, 0, 0]
    cells.offer((0, 0, 0), 0, 1.5, 0.5)
    cells.narrow((0, 0, 0), 2.0 + 1e-10, 5.0)
    assert cells.nominal[0, 0, 0] == 2.0 and cells.lower[0, 0, 0] <= 2.0
    with pytest.raises(Contradiction):
        cells.narrow((0, 0, 0), 2.1, 5.0)


def test_an_open_cell_shows_the_support_with_the_least_training_objective() -> None:
    cells = new_table()
    first, second = cells.pool.number(np.array([1, 2])), cells.pool.number(np.array([0, 2]))
    cells.offer((0, 0, slice(None)), first, np.full(4, 2.0), np.array([1.0, 2.0, 3.0, np.nan]))
    cells.offer((0, 0, slice(None)), second, np.full(4, 9.0), np.full(4, 2.5))
    assert cells.support[0, 0].tolist() == [first, first, second, second]
    assert cells.nominal[0, 0].tolist() == [2.0, 2.0, 9.0, 9.0]


def test_a_copy_is_of_one_moment() -> None:
    cells, stop = CellTable.empty(1, 1, 2000), threading.Event()

    def write() -> None:
        level = 0.0
        while not stop.is_set():
            level += 1.0
            cells.narrow((0, 0, slice(None)), level, np.inf)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(50):
            assert len(np.unique(cells.copy().lower)) == 1
    finally:
        stop.set()
        writer.join()


def test_of_many_cells_training_objectives_take_memory_once_an_undecided_cell_is_offered_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparsecv_mio.search.state.cells.MANY_CELLS", 1)
    assert not is_constant(CellTable.empty(2, 3, 4, values=True).value)
    cells, part = new_table(), (0, 0, slice(None))
    ones = np.ones(4)
    cells.decide_part(part, np.array([True, False, False, False]), 0, ones, (ones, ones), ones, False)
    cells.decide((0, 0, 1), 0, 1.0, 1.0, 1.0, 0.0, value=7.0)
    assert is_constant(cells.value) and is_constant(cells.copy().value) and np.isinf(cells.value).all()
    stored = cells.archive()
    cells.offer(part, 0, 2.0 * ones, 3.0 * ones)
    assert cells.value[0, 0].tolist() == [np.inf, np.inf, 3.0, 3.0]
    assert cells.nominal[0, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    again = new_table()
    again.fill(stored)
    assert again.decided.sum() == 2 and again.value.tolist() == stored["value"].tolist()


def write(cells: CellTable, rng: np.random.Generator) -> None:
    """Call a writer of the table with consistent numbers."""
    g, t, k = (int(rng.integers(size)) for size in cells.lower.shape)
    parts: list[Any] = [np.s_[g, t, :], np.s_[g, 1:3, :], np.s_[:, :, k], (g, [0, 2], slice(k, k + 1)), (g, t, k)]
    kind = int(rng.choice(7, p=[0.3, 0.1, 0.3, 0.1, 0.16, 0.02, 0.02]))
    part = parts[int(rng.integers(4 if kind == 4 else 5))]
    numbers = np.full(cells.lower[part].shape, 9.0)
    lower = rng.random(numbers.shape)
    if kind == 0:
        cells.offer(part, 0, numbers + lower, lower)
    elif kind == 1:
        cells.rescore(part, numbers - lower, numbers)
    elif kind == 2:
        cells.narrow(part, lower, 40.0 - lower)
    elif kind == 3:
        cells.decide((g, t, k), 0, 9.0, 8.0, 10.0, 0.0)
    elif kind == 4:
        cells.decide_part(part, lower < 0.1, 0, numbers, (numbers - 1.0, numbers + 1.0), numbers, True)
    elif kind == 5:
        cells.withdraw(k)
    else:
        cells.fill(cells.copy().archive())


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_the_arrays_after_every_write(seed: int) -> None:
    rng, cells = np.random.default_rng(seed), CellTable.empty(3, 4, 7)
    for _ in range(150):
        write(cells, rng)
        for total, array in zip(cells.sums(), (cells.lower, cells.upper, cells.nominal), strict=True):
            np.testing.assert_array_equal(total, array.sum(axis=2))
    assert cells.decided.any() and np.isfinite(cells.upper).any() and np.isfinite(cells.nominal).any()
    again = CellTable.empty(3, 4, 7)
    assert not again.sums()[0].any()
    again.fill(cells.archive())
    np.testing.assert_array_equal(again.sums(), cells.sums())


@pytest.mark.parametrize(
    ("gammas", "taus", "message"),
    [
        ([], [1], "empty"), ([1.0], [], "empty"), ([-0.1], [1], "gamma -0.1 "), ([float("nan")], [1], "gamma nan"),
        ([1e301], [1], "gamma"), ([1.0], [5], "give a number from 0 to 4"), ([1.0], [-1], "tau -1"),
        ([1.0], [1.5], "tau 1.5"),
    ],
)  # fmt: skip
def test_a_grid_out_of_range(gammas: list[float], taus: list[Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Grid.of(gammas, taus, 4)


def test_a_grid_is_ascending_without_repeats() -> None:
    grid = Grid.of([1.0, 0.1, 1.0], [3, 0, 3], 4)
    assert grid.gammas.tolist() == [0.1, 1.0] and grid.taus.tolist() == [0, 3]


GAMMAS, TAUS = np.array([0.1, 1.0]), np.array([1, 2, 3])


def test_alike_pairs_give_the_smallest_tau_then_the_largest_gamma() -> None:
    cells = CellTable.empty(2, 3, 2)
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 2.0)
    assert pair_bounds(cells, GAMMAS, TAUS).best == (1, 0)
    assert simplest(np.array([[False, True, True], [False, False, True]]), GAMMAS, TAUS) == (0, 1)


def test_without_a_proof_the_least_estimate_is_reported() -> None:
    cells = CellTable.empty(2, 3, 2)
    cells.narrow((slice(None), slice(None), slice(None)), 0.0, 9.0)
    cells.narrow((0, 0, slice(None)), 0.0, 5.0)
    cells.offer((slice(None), slice(None), slice(None)), 0, np.full((2, 3, 2), 4.0), 1.0)
    cells.offer((1, 2, slice(None)), 0, np.full(2, 3.0), 0.5)
    now = pair_bounds(cells, GAMMAS, TAUS)
    assert now.best == (0, 0) and now.reported_pair(1e-4, GAMMAS, TAUS) == (1, 2)


def drawn(seed: int) -> tuple[PairBounds, np.ndarray, np.ndarray]:
    """A table in which some cells are decided, some bounded, ties among them."""
    rng = np.random.default_rng(seed)
    G, T, K = (int(rng.integers(1, 6)) for _ in range(3))
    cells = CellTable.empty(G, T, K)
    h = rng.uniform(1.0, 1.5 if seed % 3 else 1.0001, size=(G, T, K))
    easy = rng.random((G, T)) < rng.uniform(0.2, 1.0)
    for g, t, j in np.ndindex(G, T, K):
        if easy[g, t] or rng.random() < 0.3:
            tie = 0.05 if rng.random() < 0.1 else 0.0
            low, held = float(h[g, t, j]) - tie, float(h[g, t, j])
            cells.decide((g, t, j), 0, held, low * (1 - 1e-12), held * (1 + 1e-12), tie)
        else:
            cells.narrow((g, t, j), rng.uniform(0.3, 1.0) * h[g, t, j], rng.uniform(1.0, 2.0) * h[g, t, j])
            cells.offer((g, t, j), 0, h[g, t, j], 1.0)
    gammas, taus = np.sort(rng.uniform(size=G)), np.arange(1, T + 1)
    return pair_bounds(cells, gammas, taus), gammas, taus


@pytest.mark.parametrize("gap", [0.0, 1e-4, 0.1])
def test_no_larger_part_is_proved(gap: float) -> None:
    seen = set()
    for seed in range(150):
        now, gammas, taus = drawn(seed)
        shape = now.lower.shape
        parts = []
        for most in range(shape[1] + 1):
            for rows in range(shape[0] + 1):
                if most or rows:
                    part = (np.arange(shape[1]) < most) | (np.arange(shape[0]) >= shape[0] - rows)[:, None]
                    best = np.zeros(shape, dtype=bool)
                    best[now.best] = True
                    for pairs in (part | best, part):
                        if now.restrict(pairs, gammas, taus).is_certified(gap):
                            parts.append((most, rows, pairs))
                            break
        found = proved_part(now, gap, gammas, taus)
        # as many taus as are proved at every gamma by themselves; then as many gammas as go with them
        alone = max([most for most, rows, _ in parts if rows == 0], default=0)
        beside = max([rows for most, rows, _ in parts if most == alone], default=0)
        assert (found is None) == (alone == beside == 0)
        if found is None:
            continue
        assert (found.taus, found.gammas) == (alone, beside)
        seen.add((found.taus == 0, found.gammas == 0, found.taus == shape[1]))
        inside = next(part for most, rows, part in parts if (most, rows) == (alone, beside))
        assert inside[found.bounds.best] and found.bounds.ceiling <= now.upper[inside].min() * (1.0 + 1e-7)
        assert found.bounds.floor == now.lower[inside].min()
        ends = proved_ends(now, gap, gammas, taus)
        assert ends == (
            int(taus[found.taus - 1]) if found.taus else None, float(gammas[-found.gammas]) if found.gammas else None
        )  # fmt: skip
        assert (now.is_certified(gap)) <= (found.taus == shape[1])
    assert len(seen) >= 4


def test_nothing_is_proved_of_an_empty_table() -> None:
    now = pair_bounds(CellTable.empty(2, 3, 4), np.array([0.1, 1.0]), np.array([1, 2, 3]))
    assert proved_part(now, 0.1, np.array([0.1, 1.0]), np.array([1, 2, 3])) is None
    assert set(statuses(now.lower, now.upper, now.n_solved_folds == 4, 0.1, False).ravel()) == {"open"}


def test_the_gap_excludes_pairs_that_are_hardly_better() -> None:
    lower, upper = np.array([[1.0, 0.95, 0.8]]), np.array([[1.0, 2.0, 1.5]])
    decided = np.array([[True, False, False]])
    assert statuses(lower, upper, decided, 0.0, False).tolist() == [["decided", "open", "open"]]
    assert statuses(lower, upper, decided, 0.1, False).tolist() == [["decided", "excluded", "open"]]
    assert statuses(lower, upper, decided, 0.0, True).tolist() == [["decided", "excluded", "excluded"]]
    alone = statuses(lower, upper, np.zeros((1, 3), dtype=bool), 0.1, True)
    assert alone.tolist() == [["open", "excluded", "excluded"]]  # nobody excludes the best


def test_a_pair_without_a_model_of_every_fold_is_not_taken_and_the_pair_taken_is_decided() -> None:
    run = to_end(drawn_run())
    now, asked = run.state.bounds(), run.context
    grid, unit = asked.grid, asked.data.y_unit**2
    wide = replace(now, upper=now.upper * 0.0 + now.upper[now.best], nominal=now.nominal.copy())
    first = pairs.one_se_rule(wide, now.best, grid.gammas, grid.taus, asked.scored_weights, unit).pair
    assert first == (len(grid.gammas) - 1, 0) != now.best
    wide.nominal[first] = np.inf
    assert pairs.one_se_rule(wide, now.best, grid.gammas, grid.taus, asked.scored_weights, unit).pair != first
    decided = now.cells.decided[first].copy()
    now.cells.decided[first] = False
    wide.nominal[first] = now.nominal[first]
    assert pairs.one_se_rule(wide, now.best, grid.gammas, grid.taus, asked.scored_weights, unit).missing[first]
    now.cells.decided[first] = decided

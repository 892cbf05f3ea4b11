"""The proved part of a grid, against every part there is; the status of every pair."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.pairs import PairBounds, pair_bounds, statuses
from sparsecv_mio.search.state.region import proved_ends, proved_part


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
                        if now.within(pairs, gammas, taus).proved(gap):
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
        assert (now.proved(gap)) <= (found.taus == shape[1])
    assert len(seen) >= 4


def test_nothing_is_proved_of_an_empty_table() -> None:
    now = pair_bounds(CellTable.empty(2, 3, 4), np.array([0.1, 1.0]), np.array([1, 2, 3]))
    assert proved_part(now, 0.1, np.array([0.1, 1.0]), np.array([1, 2, 3])) is None
    assert set(statuses(now.lower, now.upper, now.decided == 4, 0.1, False).ravel()) == {"open"}


def test_the_gap_excludes_pairs_that_are_hardly_better() -> None:
    lower, upper = np.array([[1.0, 0.95, 0.8]]), np.array([[1.0, 2.0, 1.5]])
    decided = np.array([[True, False, False]])
    assert statuses(lower, upper, decided, 0.0, False).tolist() == [["decided", "open", "open"]]
    assert statuses(lower, upper, decided, 0.1, False).tolist() == [["decided", "excluded", "open"]]
    assert statuses(lower, upper, decided, 0.0, True).tolist() == [["decided", "excluded", "excluded"]]
    alone = statuses(lower, upper, np.zeros((1, 3), dtype=bool), 0.1, True)
    assert alone.tolist() == [["open", "excluded", "excluded"]]  # nobody excludes the best

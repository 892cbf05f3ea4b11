"""The grid of a search: what it refuses, and its order."""

from __future__ import annotations

from typing import Any

import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.grid import Grid


@pytest.mark.parametrize(
    ("gammas", "taus", "message"),
    [
        ([], [1], "empty"), ([1.0], [], "empty"), ([0.0], [1], "gamma 0 "), ([float("nan")], [1], "gamma nan"),
        ([1e301], [1], "gamma"), ([1.0], [5], "use 0 to 4"), ([1.0], [-1], "tau -1"), ([1.0], [1.5], "tau 1.5"),
    ],
)  # fmt: skip
def test_a_grid_out_of_range(gammas: list[float], taus: list[Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Grid.of(gammas, taus, 4)


def test_a_grid_is_ascending_without_repeats() -> None:
    grid = Grid.of([1.0, 0.1, 1.0], [3, 0, 3], 4)
    assert grid.gammas.tolist() == [0.1, 1.0] and grid.taus.tolist() == [0, 3]

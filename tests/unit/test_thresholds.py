"""Which way is taken for which size."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sparsecv_mio.thresholds import has_large_matrices, is_very_wide


@dataclass
class Shape:
    n: int
    q: int


@pytest.mark.parametrize(
    ("n", "q", "folds", "wide"),
    [
        (100, 2_000, 10, False), (100, 3_100, 10, True), (5_000, 4_000, 10, False), (100, 2_500, 2, False),
        (100, 2_500, 300, True),
    ],
)  # fmt: skip
def test_matrices_of_columns_by_columns_are_formed_while_they_fit(n: int, q: int, folds: int, wide: bool) -> None:
    assert has_large_matrices(Shape(n, q), folds) is wide


@pytest.mark.parametrize(
    ("n", "q", "wide"), [(40, 3000, True), (40, 1500, False), (300, 2000, False), (250, 2000, True)]
)
def test_many_times_more_columns_than_rows(n: int, q: int, wide: bool) -> None:
    assert is_very_wide(Shape(n, q)) is wide

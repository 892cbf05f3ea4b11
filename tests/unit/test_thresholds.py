"""Which way is taken for which size."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sparsecv_mio.thresholds import by_rows


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
    assert by_rows(Shape(n, q), folds) is wide

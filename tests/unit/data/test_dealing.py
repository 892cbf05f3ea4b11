"""Rows dealt out to folds: sizes, seeds that mean the same for ever, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dealing import blocks, equal_folds, holdout
from sparsecv_mio.errors import BadInput


@pytest.mark.parametrize(("text", "n"), [("3", 10), ("2", 2), ("7", 50)])
def test_equal_folds(text: str, n: int) -> None:
    sizes = np.bincount(equal_folds(text, n, 0))
    assert len(sizes) == int(text) and sizes.max() - sizes.min() <= 1 and list(sizes) == sorted(sizes, reverse=True)


def test_remaining_rows_go_one_to_each_block_in_turn() -> None:
    assert np.bincount(blocks("5", 23, 0)).tolist() == [6, 6, 6, 5]
    assert np.bincount(blocks("3", 8, 0)).tolist() == [4, 4]


@pytest.mark.parametrize(("share", "n", "held"), [("0.2", 10, 2), ("0.25", 10, 3), ("0.001", 10, 1), ("1e-1", 5, 1)])
def test_holdout_rounds_to_the_nearest_and_holds_at_least_one(share: str, n: int, held: int) -> None:
    labels = holdout(share, n, 0)
    assert np.sum(labels == 0) == held and np.sum(labels == -1) == n - held


def test_a_seed_decides_the_deal() -> None:
    one, again, other = (equal_folds("4", 40, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)
    assert equal_folds("2", 6, 0).tolist() == [1, 0, 0, 0, 1, 1]  # a record of today must find its folds in years


@pytest.mark.parametrize(
    ("deal", "text", "word"),
    [
        (equal_folds, "1", "fewer than two folds"),
        (equal_folds, "11", "need 11 rows"),
        (equal_folds, "lo", "did you mean 'loo'"),
        (equal_folds, "9" * 400, "need"),
        (blocks, "0", "empty blocks"),
        (blocks, "6", "fewer than two blocks"),
        (blocks, "-1", "are unknown"),
        (holdout, "0", "between 0 and 1"),
        (holdout, "1", "between 0 and 1"),
        (holdout, "nan", "between 0 and 1"),
        (holdout, "x", "between 0 and 1"),
    ],
)
def test_refusals(deal, text: str, word: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=word) as caught:
        deal(text, 10, 0)
    assert "\n" not in str(caught.value)

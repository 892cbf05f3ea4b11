"""Folds on threads: every result, whatever the number of threads."""

from __future__ import annotations

import pytest

from sparsecv_mio.search.parallel import run_folds


@pytest.mark.parametrize("threads", [1, 3])
def test_every_fold_is_worked_on(threads: int) -> None:
    source = ((fold, 10 * fold) for fold in range(20))
    assert sorted(run_folds(source, lambda fold, given: fold + given, threads)) == [11 * fold for fold in range(20)]


def test_an_error_of_a_fold_comes_out() -> None:
    def work(fold: int, given: int) -> int:
        raise ValueError(f"fold {fold}")

    with pytest.raises(ValueError, match="fold"):
        list(run_folds(((fold, 0) for fold in range(4)), work, 2))

"""Folds on threads: every result, whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from sparsecv_mio.parallel import blas_on_one_thread, run_folds


@pytest.mark.parametrize("threads", [1, 3])
def test_every_fold_is_worked_on(threads: int) -> None:
    source = ((fold, 10 * fold) for fold in range(20))
    assert sorted(run_folds(source, lambda fold, given: fold + given, threads)) == [11 * fold for fold in range(20)]


def test_an_error_of_a_fold_comes_out() -> None:
    def work(fold: int, given: int) -> int:
        raise ValueError(f"fold {fold}")

    with pytest.raises(ValueError, match="fold"):
        list(run_folds(((fold, 0) for fold in range(4)), work, 2))


def threads_of_blas() -> list[int]:
    return [one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"]


def test_blas_is_held_to_one_thread_time_and_again() -> None:
    assert np.linalg.inv(np.eye(2)).shape == (2, 2)
    with threadpool_limits(limits=2):
        before = threads_of_blas()
        for _ in range(2):
            with blas_on_one_thread():
                assert set(threads_of_blas()) == {1}
            assert threads_of_blas() == before

"""Word of a compilation: told of each one in here, and of none where the code is at hand."""

from __future__ import annotations

from numba import njit

from sparsecv_mio.kernels.compilation import watched


def test_each_compilation_is_told_and_no_other_call() -> None:
    @njit
    def double(x):  # a new function in every run of the test: not in the cache
        return 2 * x

    told: list[int] = []
    with watched(lambda: told.append(len(told))):
        assert double(2) == 4
        assert told == [0]
        assert double(3) == 6
        assert told == [0], "compiled for whole numbers already"
        assert double(1.5) == 3.0
    assert told == [0, 1]
    assert double(1j) == 2j
    assert told == [0, 1], "nobody listens any more"

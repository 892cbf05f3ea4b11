"""Kernels are declared as numba's are, and run where numba's inner parts have other names or where it is off."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from compilations import watched
from numba.core.caching import FunctionCache, NullCache
from numba.core.errors import TypingError
from repository import ROOT

from sparsecv_mio.kernels import jit
from sparsecv_mio.kernels.jit import NO_ITEMS, int_constant, njit
from sparsecv_mio.kernels.kernel_cache import KernelCache


def plain(x):  # numba types it
    return x + 1


def test_only_what_asks_for_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(njit()(plain)._cache, NullCache)
    assert isinstance(njit(cache=True)(plain)._cache, KernelCache)
    assert njit(cache=True, fastmath=True)(plain).targetoptions["fastmath"] is True
    monkeypatch.setattr(jit, "KernelCache", None)
    assert isinstance(njit(cache=True)(plain)._cache, FunctionCache)


def test_what_begins_with_an_underscore_is_called_by_kernels_alone() -> None:
    @njit()
    def _twice(x):
        return 2.0 * x

    @njit()
    def both(x):
        return _twice(x) + 1.0

    assert both(2.0) == 5.0
    for _ in range(2):  # compiled, and yet no code to call
        with pytest.raises(TypeError, match="_twice is for kernels"):
            _twice(2.0)


def test_a_constant_has_the_type_of_a_length() -> None:
    """Else a kernel that is called with both would be compiled twice."""
    five = int_constant(5)

    @njit()
    def _next(count):
        return count + 1

    @njit()
    def both(x):
        return _next(five) + _next(NO_ITEMS) + _next(x.shape[0])

    assert both(np.ones(3)) == 11
    assert len(_next.overloads) == 1


def test_garbage_is_collected_again_after_compiling() -> None:
    """The compiler works without collections; what it refuses leaves them on too, and what was off stays off."""
    seen: list[bool] = []
    with watched(lambda: seen.append(gc.isenabled())):
        assert njit()(plain)(1) == 2 and gc.isenabled()
        with pytest.raises(TypingError):
            njit()(plain)("one")
        assert gc.isenabled()
        gc.disable()
        try:
            assert njit()(plain)(1.0) == 2.0 and not gc.isenabled()
        finally:
            gc.enable()
    assert len(seen) >= 3 and not any(seen)


def test_kernels_are_plain_functions_where_numba_is_off() -> None:
    words = "import numpy as np; from sparsecv_mio.kernels.dense import dot; print(dot(np.ones(3), np.ones(3), 2), dot)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2.0 <function dot")

"""Kernels that only kernels call have no machine code until Python calls them, and the same numbers either way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float64

from sparsecv_mio.kernels import kernel_cache
from sparsecv_mio.kernels.jit import njit, watched
from sparsecv_mio.kernels.linked_code import DEPTH, LINKED, LinkedCode, rebuilt, waits, with_machine_code

X = np.arange(1.0, 7.0)
TYPES = (float64[::1],)


def pair() -> tuple[Any, Any]:
    """A kernel and one that calls it, new to this process."""

    @njit(cache=True, nogil=True)
    def inner(x):
        out = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            if x[i] < 0.0:
                raise ValueError("negative")
            out[i] = 3.0 * x[i]
        return out

    @njit(cache=True, nogil=True)
    def outer(x):
        return inner(x) + inner(x)

    return inner, outer


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel_cache, "own_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_cache, "_failures", [])
    tmp_path.chmod(0o700)
    return tmp_path


def sizes(folder: Path) -> dict[str, int]:
    return {file.name.split("-")[0].rpartition(".")[2]: file.stat().st_size for file in folder.glob("*.nbc")}


def compilations(call: Callable[[], Any]) -> int:
    told: list[int] = []
    with watched(lambda: told.append(1)):
        call()
    return len(told)


def test_machine_code_is_made_when_python_calls(own: Path) -> None:
    inner, outer = pair()
    np.testing.assert_array_equal(outer(X), 6.0 * X)
    assert waits(inner.overloads[TYPES]) and not waits(outer.overloads[TYPES])
    before = sizes(own)
    assert compilations(lambda: np.testing.assert_array_equal(inner(X), 3.0 * X)) == 0
    assert not waits(inner.overloads[TYPES])
    after = sizes(own)
    assert after["inner"] > before["inner"] and after["outer"] == before["outer"]
    np.testing.assert_array_equal(inner(2.0 * X), 6.0 * X)
    np.testing.assert_array_equal(outer(X), 6.0 * X)


def test_exceptions_of_linked_kernels_are_raised(own: Path) -> None:
    for _ in range(2):  # compiled, and read
        inner, outer = pair()
        for kernel in (outer, inner):
            with pytest.raises(ValueError, match="negative"):
                kernel(-X)


def test_what_is_kept_for_kernels_serves_others_and_python(own: Path) -> None:
    _, outer = pair()
    outer(X)
    inner, _ = pair()

    @njit(cache=True, nogil=True)
    def another(x):
        return inner(x) - 1.0

    assert compilations(lambda: np.testing.assert_array_equal(another(X), 3.0 * X - 1.0)) >= 1
    assert waits(inner.overloads[TYPES]), "read for a kernel: linked as it was kept"
    inner, outer = pair()
    linked = sizes(own)["inner"]
    assert compilations(lambda: np.testing.assert_array_equal(inner(X), 3.0 * X)) == 0
    assert sizes(own)["inner"] > linked, "kept with its machine code now"
    inner, outer = pair()
    assert compilations(lambda: np.testing.assert_array_equal(inner(X), 3.0 * X)) == 0
    np.testing.assert_array_equal(outer(X), 6.0 * X)
    assert not kernel_cache._failures


def test_what_python_called_first_is_linked_as_well(own: Path) -> None:
    for _ in range(2):
        inner, outer = pair()
        np.testing.assert_array_equal(inner(X), 3.0 * X)
        np.testing.assert_array_equal(outer(X), 6.0 * X)
        assert not waits(inner.overloads[TYPES])


def test_several_types_at_once(own: Path) -> None:
    inner, outer = pair()
    outer(X)
    inner(X[::2])  # of another layout: compiled for Python
    assert [waits(one) for one in inner.overloads.values()] == [True, False]
    np.testing.assert_array_equal(inner(X), 3.0 * X)
    np.testing.assert_array_equal(inner(X[::2]), 3.0 * X[::2])


def test_a_library_of_bitcode_is_rebuilt_and_made_callable(own: Path) -> None:
    inner, outer = pair()
    outer(X)
    kept = inner.overloads[TYPES]
    name, form, bitcode = kept.library.serialize_using_object_code()
    assert form == LINKED and LinkedCode.of(kept.codegen, name, bitcode).serialize_using_object_code()[1] == LINKED
    again = rebuilt(kept.target_context, kept._reduce())
    assert waits(again) and again.fndesc is kept.fndesc and again.entry_point is not kept.entry_point
    np.testing.assert_array_equal(with_machine_code(again).entry_point(X), 3.0 * X)


def test_who_compiles_says_who_calls(own: Path) -> None:
    inner, _ = pair()
    with DEPTH.as_called_by(python=False):
        inner.compile(TYPES)
    assert waits(inner.overloads[TYPES]) and DEPTH.value == 0
    strided = (float64[:],)
    with DEPTH.deeper(), DEPTH.as_called_by(python=True):
        inner.compile(strided)
    assert not waits(inner.overloads[strided]) and DEPTH.value == 0

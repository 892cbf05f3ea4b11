"""Compiled kernels: the user's own, those of the package where they fit, else the compiler; always the same numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.registry import cpu_target

from sparsecv_mio.kernels import kernel_cache, storage
from sparsecv_mio.kernels.compilation import watched
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.kernel_cache import shipped_for, where_kernels_are

HOST = cpu_target.target_context.codegen().magic_tuple()
X = np.arange(6.0)


def doubled() -> Callable[..., Any]:
    """A kernel that no process has compiled before, but for those of the same test."""

    @njit(cache=True, nogil=True)
    def kernel(x):
        out = np.empty(x.shape[0])
        for i in range(x.shape[0]):
            out[i] = 2.0 * x[i]
        return out

    return kernel


def compiled(kernel: Callable[..., Any], x: Any = X) -> bool:
    told: list[int] = []
    with watched(lambda: told.append(1)):
        np.testing.assert_array_equal(kernel(x), 2.0 * x)
    return bool(told)  # a kernel and those of numba that it calls


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    for folder in (own, shipped):
        folder.mkdir(mode=0o700)
    monkeypatch.setattr(storage, "own_folder", lambda: own)
    monkeypatch.setattr(storage, "SHIPPED", shipped)
    monkeypatch.setattr(kernel_cache, "_failures", [])
    shipped_for.cache_clear()
    yield own, shipped
    shipped_for.cache_clear()


def manifest(**other: str) -> str:
    made = {"numba": numba.__version__, "python": storage.PYTHON, "triple": HOST[0], "processor": "old", "features": ""}
    return json.dumps(made | other)


def test_what_is_compiled_is_found_again(folders: tuple[Path, Path]) -> None:
    own, _ = folders
    assert compiled(doubled())
    assert not compiled(doubled())
    assert compiled(doubled(), X[::2]), "of another layout"
    assert not compiled(doubled(), X[::2])
    assert len(list(own.glob("*.nbc"))) == 2 == len(list(own.iterdir()))


def test_kernels_of_the_package_are_used_where_they_fit(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, shipped = folders
    old = (HOST[0], "old", "")
    with monkeypatch.context() as there:
        there.setattr(cpu_target.target_context.codegen(), "magic_tuple", lambda: old, raising=False)
        assert compiled(doubled())
    for path in own.iterdir():
        path.rename(shipped / path.name)
    (shipped / "manifest.json").write_text(manifest())
    shipped_for.cache_clear()
    assert not compiled(doubled())
    assert not list(own.iterdir())
    assert where_kernels_are()[1] == "kernels of the package: 1, for old"
    (shipped / "manifest.json").write_text(manifest(numba="0.1"))
    shipped_for.cache_clear()
    assert compiled(doubled())


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"numba": "0.1"}, "they are for numba 0.1, not"),
        ({"python": "py30"}, "they are for Python py30, not"),
        ({"triple": "pdp11"}, "they are for the platform pdp11, not"),
        ({"features": "+sse2,+teleport,-avx"}, "they need a processor with teleport"),
    ],
)
def test_kernels_of_the_package_that_do_not_fit_are_left(
    folders: tuple[Path, Path], made: dict[str, str], why: str
) -> None:
    host = (HOST[0], "new", "+sse2,+avx")
    (folders[1] / "manifest.json").write_text(manifest(**made))
    found, told = shipped_for(host)
    assert found is None and told.startswith(why)


def test_a_manifest_that_cannot_be_read_or_trusted_is_none(folders: tuple[Path, Path]) -> None:
    _, shipped = folders
    for text in ("", "[]", "{}", "{"):
        (shipped / "manifest.json").write_text(text)
        shipped_for.cache_clear()
        assert shipped_for(HOST)[1].startswith("their manifest cannot be read")
    (shipped / "manifest.json").write_text(manifest())
    shipped.chmod(0o777)
    shipped_for.cache_clear()
    assert shipped_for(HOST)[1].startswith("others can write into")
    shipped.rename(shipped.parent / "gone")
    shipped_for.cache_clear()
    assert shipped_for(HOST) == (None, "none came with the package")


def test_a_file_that_is_no_kernel_is_compiled_anew(folders: tuple[Path, Path]) -> None:
    own, _ = folders
    assert compiled(doubled())
    (file,) = own.iterdir()
    storage.write(own, file.name, b"not a kernel")
    assert compiled(doubled())
    assert "could not be stored or loaded" in where_kernels_are()[2]
    assert not compiled(doubled()), "and is kept in its place"


def test_numba_of_another_make_compiles(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails inside, the kernel runs."""

    def gone(*_: object) -> None:
        raise AttributeError("renamed")

    monkeypatch.setattr(kernel_cache, "_name_helpers", gone)
    monkeypatch.setattr(kernel_cache, "dumps", gone)
    assert [compiled(doubled()) for _ in range(2)] == [True, True]
    assert not list(folders[0].iterdir())

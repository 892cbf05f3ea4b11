"""Compiled kernels: the user's own, those of the package where they fit, else the compiler; always the same numbers.

Their files are whole or not there, never of other sources, never from where others can write.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from compilations import watched
from numba.core.registry import cpu_target
from repository import ROOT

from sparsecv_mio.kernels import kernel_cache, numba_internals
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.kernel_cache import (
    CALLED,
    HERE,
    PYTHON,
    digest_of_sources,
    find_shipped_kernels,
    is_compiled,
    is_trusted,
    keep,
    own_folder,
    read,
    read_source,
    record_compilation,
    users_folder,
    where_kernels_are,
    write,
)

HOST = cpu_target.target_context.codegen().magic_tuple()
X = np.arange(6.0)


def doubled() -> Callable[..., Any]:
    """A kernel that no process has compiled before, except for those of the same test."""

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
    monkeypatch.setattr(kernel_cache, "own_folder", lambda: own)
    monkeypatch.setattr(kernel_cache, "SHIPPED", shipped)
    monkeypatch.setattr(kernel_cache, "_failures", [])
    find_shipped_kernels.cache_clear()
    yield own, shipped
    find_shipped_kernels.cache_clear()


def manifest(**other: str) -> str:
    made = {"numba": numba.__version__, "python": PYTHON, "triple": HOST[0], "processor": "old", "features": ""}
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
    find_shipped_kernels.cache_clear()
    assert not compiled(doubled())
    assert not list(own.iterdir())
    assert where_kernels_are()[1] == "shipped kernels: 1, for old"
    (shipped / "manifest.json").write_text(manifest(numba="0.1"))
    find_shipped_kernels.cache_clear()
    assert compiled(doubled())


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"numba": "0.1"}, "they are for numba 0.1, not"),
        ({"python": "py30"}, "they are for Python py30, not"),
        ({"triple": "pdp11"}, "they are for the platform pdp11, not"),
        ({"features": "+sse2,+teleport,-avx"}, "they need a processor that has teleport"),
    ],
)
def test_kernels_of_the_package_that_do_not_fit_are_left(
    folders: tuple[Path, Path], made: dict[str, str], why: str
) -> None:
    host = (HOST[0], "new", "+sse2,+avx")
    (folders[1] / "manifest.json").write_text(manifest(**made))
    found, told = find_shipped_kernels(host)
    assert found is None and told.startswith(why)


def test_a_manifest_that_cannot_be_read_or_trusted_is_none(folders: tuple[Path, Path]) -> None:
    _, shipped = folders
    for text in ("", "[]", "{}", "{"):
        (shipped / "manifest.json").write_text(text)
        find_shipped_kernels.cache_clear()
        assert find_shipped_kernels(HOST)[1].startswith("their manifest cannot be read")
    (shipped / "manifest.json").write_text(manifest())
    shipped.chmod(0o777)
    find_shipped_kernels.cache_clear()
    assert find_shipped_kernels(HOST)[1].startswith("other users can write into")
    shipped.rename(shipped.parent / "gone")
    find_shipped_kernels.cache_clear()
    assert find_shipped_kernels(HOST) == (None, "none came with the package")


def test_a_file_that_is_no_kernel_is_compiled_anew(folders: tuple[Path, Path]) -> None:
    own, _ = folders
    assert compiled(doubled())
    (file,) = own.iterdir()
    kernel_cache.write(own, file.name, b"not a kernel")
    assert compiled(doubled())
    assert "could not be stored or loaded" in where_kernels_are()[2]
    assert not compiled(doubled()), "and is kept in its place"


def test_numba_of_another_make_compiles(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails inside, the kernel runs."""

    def gone(*_: object) -> None:
        raise AttributeError("renamed")

    monkeypatch.setattr(numba_internals, "_name_helpers", gone)
    monkeypatch.setattr(numba_internals, "dumps", gone)
    assert [compiled(doubled()) for _ in range(2)] == [True, True]
    assert not list(folders[0].iterdir())


NAME = f"dense.dot-{PYTHON}-0123456789abcdef-0123456789.nbc"
LINUX = pytest.mark.skipif(os.name == "nt", reason="permissions are not in the mode there")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel_cache, "own_folder", lambda: tmp_path)
    return tmp_path


def test_what_is_kept_is_read(folder: Path) -> None:
    keep(NAME, b"code")
    assert read(folder, NAME) == b"code"
    keep(NAME, b"other code")
    assert read(folder, NAME) == b"other code"
    assert [path.name for path in folder.iterdir()] == [NAME]
    assert read(folder, "another") is None and read(folder / "nowhere", NAME) is None


def test_a_damaged_file_is_as_good_as_none(folder: Path) -> None:
    keep(NAME, b"code" * 100)
    whole = (folder / NAME).read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:50] + b"X" + whole[51:]):
        (folder / NAME).write_bytes(damaged)
        assert read(folder, NAME) is None


def test_code_of_other_sources_is_deleted(folder: Path) -> None:
    """What belongs to another kernel or another Python stays."""
    gone = [NAME.replace("01234", "ffff4", 1)]
    stay = [NAME.replace("dot", "dot_all"), NAME.replace(PYTHON, "py300"), NAME.replace("6789.nbc", "1.nbc"), "a.pyc"]
    unfinished, new = folder / f"{NAME}.12.part", folder / f"{NAME}.13.part"
    for name in (*gone, *stay, unfinished.name, new.name):
        (folder / name).touch()
    os.utime(unfinished, (0, 0))
    keep(NAME, b"code")
    assert {path.name for path in folder.iterdir()} == {NAME, *stay, new.name}


def test_the_digest_is_of_all_that_a_kernel_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "HERE", tmp_path)
    for name, called in (("a", "b"), ("b", "c"), ("c", "jit"), ("d", "jit"), ("jit", "jit")):
        (tmp_path / f"{name}.py").write_text(f"from sparsecv_mio.kernels.{called} import f  # {name}")

    def digests() -> dict[str, str]:
        read_source.cache_clear()
        digest_of_sources.cache_clear()
        return {name: digest_of_sources(name) for name in "abcd"}

    before = digests()
    assert len(set(before.values())) == 4
    (tmp_path / "c.py").write_text("from sparsecv_mio.kernels.jit import f, g")
    assert {name for name, now in digests().items() if now != before[name]} == {"a", "b", "c"}
    changed = digests()
    (tmp_path / "c.py").write_text("edited after it was imported")
    digest_of_sources.cache_clear()
    assert {name: digest_of_sources(name) for name in "abcd"} == changed, "compiled is what was imported"
    read_source.cache_clear()
    digest_of_sources.cache_clear()


@pytest.mark.parametrize("path", sorted(HERE.glob("*.py")), ids=lambda path: path.stem)
def test_the_digest_sees_every_import_of_kernels(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    called = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            if node.module == "sparsecv_mio.kernels":
                called |= {one.name for one in node.names}
            elif (node.module or "").startswith("sparsecv_mio.kernels."):
                called.add(str(node.module).rpartition(".")[2])
        elif isinstance(node, ast.Import):
            assert not any(one.name.startswith("sparsecv_mio") for one in node.names)
    assert called <= set(CALLED.findall(text))


def test_a_full_disk_is_no_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_cache.os, "replace", full)
    keep(NAME, b"code")
    assert not list(folder.iterdir())
    with pytest.raises(OSError, match="No space"):
        write(folder, NAME, b"code")


@LINUX
def test_a_folder_into_which_others_can_write_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, kernels = tmp_path / "package", tmp_path / "kernels"
    for folder in (package, kernels):
        folder.mkdir()
        folder.chmod(0o755)
    monkeypatch.setattr(kernel_cache, "HERE", package)
    assert is_trusted(kernels) and not is_trusted(tmp_path / "nowhere")
    for mode in (0o775, 0o757, 0o777):
        kernels.chmod(mode)
        assert not is_trusted(kernels)
    package.chmod(0o775)  # others of the group can change the package itself
    kernels.chmod(0o775)
    assert is_trusted(kernels)
    kernels.chmod(0o777)
    assert not is_trusted(kernels)
    (tmp_path / "link").symlink_to(package)
    assert not is_trusted(tmp_path / "link")


@LINUX
def test_the_folder_of_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "here"))
    own_folder.cache_clear()
    first = own_folder()
    assert first is not None and first.parent == tmp_path / "here" and first.stat().st_mode & 0o777 == 0o700
    first.chmod(0o777)
    own_folder.cache_clear()
    assert kernel_cache.is_clone() and own_folder() == kernel_cache.HERE / "__pycache__"
    own_folder.cache_clear()


def installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of kernels of an installed package, with a home of its own."""
    kernels = place / "site-packages" / "sparsecv_mio" / "kernels"
    kernels.mkdir(parents=True)
    monkeypatch.setattr(kernel_cache, "HERE", kernels)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "caches"))
    monkeypatch.setenv("HOME", str(place))
    return kernels


@LINUX
def test_what_an_installed_package_compiles_is_kept_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = installed(tmp_path, monkeypatch)
    own_folder.cache_clear()
    users = own_folder()
    assert users is not None and users == users_folder() and users.is_relative_to(tmp_path)
    assert users.stat().st_mode & 0o777 == 0o700
    keep(NAME, b"kernel")
    assert not list(kernels.iterdir()) and read(users, NAME) == b"kernel"
    (tmp_path / "site-packages" / "pyproject.toml").touch()  # a clone
    own_folder.cache_clear()
    assert own_folder() == kernels / "__pycache__"
    (tmp_path / "site-packages" / "pyproject.toml").unlink()
    users.chmod(0o777)  # no place for what is run
    own_folder.cache_clear()
    assert own_folder() == kernels / "__pycache__"
    own_folder.cache_clear()


@LINUX
def test_versions_that_share_a_folder_leave_each_other_what_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch)
    own_folder.cache_clear()
    users = own_folder()
    assert users is not None
    module, python, _, rest = NAME.rsplit("-", 3)
    others = [f"{module}-{python}-{digest * 16}-{rest}" for digest in ("a", "b")]
    for name in others:
        keep(name, b"of another version")
    os.utime(users / others[1], (0.0, 0.0))
    keep(NAME, b"kernel")
    assert sorted(file.name for file in users.iterdir()) == sorted([NAME, others[0]])
    own_folder.cache_clear()


def test_threads_that_keep_the_same_leave_one_whole_file(folder: Path) -> None:
    contents = [bytes([number]) * 100_000 for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: keep(NAME, content), contents))
    assert read(folder, NAME) in contents and len(list(folder.iterdir())) == 1


def test_kernels_are_compiled_where_nothing_may_be_stored(tmp_path: Path) -> None:
    """In a package that is only read, for a user without a home; what is compiled lasts as long as the process."""
    words = (
        "from pathlib import Path; from sparsecv_mio.kernels import kernel_cache\n"
        "kernel_cache.HERE = Path('/proc/none/kernels')\n"
        "kernel_cache.digest_of_sources = lambda module: '0' * 64\n"
        "import numpy as np, os; from sparsecv_mio.kernels.dense import dot\n"
        "from sparsecv_mio.kernels.kernel_cache import where_kernels_are\n"
        "print(dot.stats.cache_path, where_kernels_are()[0])\n"
        "dot(np.ones(3), np.ones(3), 2)\n"
        "kept = os.environ['NUMBA_CACHE_DIR']; print(kept, [file for _, _, files in os.walk(kept) for file in files])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
    environment |= {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("None") and "for this process only" in first
    assert last.startswith(str(tmp_path)) and "['dense.dot-" in last
    assert not list(tmp_path.iterdir())


def test_a_first_use_is_remembered_for_these_sources(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_compiled("search_few")
    record_compilation("search_few")
    assert is_compiled("search_few") and not is_compiled("search_many")
    with monkeypatch.context() as other:
        other.setattr(kernel_cache, "HERE", folders[1])  # other sources
        assert not is_compiled("search_few")
    (folders[1] / "manifest.json").write_text(manifest())
    find_shipped_kernels.cache_clear()
    assert is_compiled("search_many"), "kernels came with the package"

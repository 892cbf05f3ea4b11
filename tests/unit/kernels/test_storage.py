"""Files of compiled kernels: whole or not there, never of other sources, never from where others can write."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from repository import ROOT

from sparsecv_mio.kernels import storage
from sparsecv_mio.kernels.storage import (
    CALLED,
    HERE,
    digest_of_sources,
    is_trusted,
    keep,
    own_folder,
    read,
    source_of,
    write,
)

NAME = f"dense.dot-{storage.PYTHON}-0123456789abcdef-0123456789.nbc"
LINUX = pytest.mark.skipif(os.name == "nt", reason="permissions are not in the mode there")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(storage, "own_folder", lambda: tmp_path)
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
    """Also what earlier releases kept; not what belongs to another kernel or another Python."""
    python = storage.PYTHON
    gone = [NAME.replace("01234", "ffff4", 1), f"dense.dot-120.{python}.1.nbc", f"dense.dot-12.{python}.nbi"]
    stay = [NAME.replace("dot", "dot_all"), NAME.replace(python, "py300"), NAME.replace("6789.nbc", "1.nbc"), "a.pyc"]
    unfinished, new = folder / f"{NAME}.12.part", folder / f"{NAME}.13.part"
    for name in (*gone, *stay, unfinished.name, new.name):
        (folder / name).touch()
    os.utime(unfinished, (0, 0))
    keep(NAME, b"code")
    assert {path.name for path in folder.iterdir()} == {NAME, *stay, new.name}


def test_the_digest_is_of_all_that_a_kernel_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "HERE", tmp_path)
    for name, called in (("a", "b"), ("b", "c"), ("c", "jit"), ("d", "jit"), ("jit", "jit")):
        (tmp_path / f"{name}.py").write_text(f"from sparsecv_mio.kernels.{called} import f  # {name}")

    def digests() -> dict[str, str]:
        source_of.cache_clear()
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
    source_of.cache_clear()
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

    monkeypatch.setattr(storage.os, "replace", full)
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
    monkeypatch.setattr(storage, "HERE", package)
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
    assert own_folder() == storage.HERE / "__pycache__"
    own_folder.cache_clear()


def test_threads_that_keep_the_same_leave_one_whole_file(folder: Path) -> None:
    contents = [bytes([number]) * 100_000 for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: keep(NAME, content), contents))
    assert read(folder, NAME) in contents and len(list(folder.iterdir())) == 1


def test_kernels_are_compiled_where_nothing_may_be_stored(tmp_path: Path) -> None:
    """In a package that is only read, for a user without a home; what is compiled lasts as long as the process."""
    words = (
        "from pathlib import Path; from sparsecv_mio.kernels import storage\n"
        "storage.HERE = Path('/proc/none/kernels')\n"
        "storage.digest_of_sources = lambda module: '0' * 64\n"
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

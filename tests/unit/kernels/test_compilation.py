"""Word of a compilation: told of each one in here, and of none where the code is at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from numba import njit

import sparsecv_mio.kernels
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


def test_kernels_are_compiled_where_nothing_may_be_stored(tmp_path: Path) -> None:
    """In a package that is only read, for a user without a home: numba ends in a traceback there."""
    package = tmp_path / "kernels"
    package.mkdir()
    for name in ("__init__.py", "dense.py"):
        shutil.copy(Path(sparsecv_mio.kernels.__file__).parent / name, package)
    (package / "__pycache__").touch()
    nowhere = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "TMPDIR": str(tmp_path)}
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | nowhere
    words = "import kernels.dense, os; print(os.listdir(os.environ['NUMBA_CACHE_DIR']))"
    done = subprocess.run([sys.executable, "-B", "-c", words], cwd=tmp_path, env=environment, capture_output=True)
    assert done.returncode == 0 and done.stdout.startswith(b"['kernels_"), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernels"]


def test_code_of_other_sources_is_deleted(tmp_path: Path) -> None:
    """Of a kernel whose callee has changed too; numba itself would go on using it."""
    stamp, kept = tmp_path / sparsecv_mio.kernels.STAMP, tmp_path / "dense.cpython-311.pyc"
    names = "dense", "pegasos", "path_tree", "gone"
    files = [tmp_path / f"{name}.solve-12.py311.nbi" for name in names]

    def left() -> list[str]:
        sparsecv_mio.kernels._drop_outdated(tmp_path)
        return [path.name.partition(".")[0] for path in files if path.exists()]

    for path in (*files, kept):
        path.write_bytes(b"")
    assert left() == [] and kept.exists()
    for path in files:
        path.write_bytes(b"")
    assert left() == list(names)
    lines = dict(line.split() for line in stamp.read_text().splitlines())
    stamp.write_text("".join(f"{name} {'0' if name == 'path_tree' else digest}\n" for name, digest in lines.items()))
    assert left() == ["dense", "pegasos"]
    own = sha256((Path(sparsecv_mio.kernels.__file__).parent / "path_tree.py").read_bytes()).hexdigest()
    assert lines["path_tree"] != own  # of those that it calls too

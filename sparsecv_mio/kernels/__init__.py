"""Compiled arithmetic (numba): plain arrays in and out; imports nothing else of the package."""

from __future__ import annotations

import atexit
import os
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from numba import config, njit

STAMP = "kernels.sha256"  # of all sources, in the folder of what is compiled from them


def _probe() -> None:
    """Nothing: numba is asked where it would store this."""


def _keep_somewhere() -> None:
    """Keep what is compiled until the end of the process, where neither the package nor the user has a place for it."""
    try:
        _drop_outdated(Path(njit(cache=True)(_probe)._cache.cache_path))
    except RuntimeError:  # numba's, for folders that cannot be written to
        place = mkdtemp(prefix="sparsecv-kernels-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = place  # of processes that this one starts, too


def _drop_outdated(folder: Path) -> None:
    """Delete what was compiled from other sources: of a kernel numba sees the own file alone, not those it calls."""
    sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    now = sha256(sources).hexdigest()
    with suppress(OSError):  # a full disk, or a process that does the same
        if (folder / STAMP).exists() and (folder / STAMP).read_text() == now:
            return
        for old in folder.glob("*.nb[ic]"):
            old.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / STAMP).write_text(now)


_keep_somewhere()

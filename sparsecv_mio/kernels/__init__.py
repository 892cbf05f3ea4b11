"""Compiled arithmetic (numba): plain arrays in and out; imports nothing else of the package."""

from __future__ import annotations

import atexit
import os
import re
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from numba import config, njit

STAMP = "kernels.sha256"  # of each source and those it calls, in the folder of what is compiled from them


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
    sources = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")}
    called = {
        name: set(re.findall(r"sparsecv_mio\.kernels\.(\w+)", text)) & set(sources) for name, text in sources.items()
    }
    now = {}
    for name in sources:
        behind = {name}
        while more := set().union(*(called[one] for one in behind)) - behind:
            behind |= more
        now[name] = sha256("".join(sources[one] for one in sorted(behind)).encode()).hexdigest()
    with suppress(OSError):  # a full disk, or a process that does the same
        stamp = folder / STAMP
        lines = stamp.read_text().splitlines() if stamp.exists() else []
        known = {name: digest for name, _, digest in (line.partition(" ") for line in lines)}
        if known == now:
            return
        for old in folder.glob("*.nb[ic]"):
            name = old.name.partition(".")[0]
            if known.get(name) is None or known[name] != now.get(name):
                old.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text("".join(f"{name} {digest}\n" for name, digest in sorted(now.items())))


_keep_somewhere()

"""Where compiled kernels are kept: folders that may be trusted, and files that are whole or not there.

A file is named after all that its content depends on (see :mod:`sparsecv_mio.kernels.kernel_cache`), begins with the
digest of the rest, and takes its place in one step. So processes that start together never read what another one has
not finished, nor what it made of other sources, and a damaged file is as good as none. What fails costs a compilation.

What is read is unpickled, and so is run: a folder into which others can write is not read.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

HERE = Path(__file__).parent
SHIPPED = HERE / "compiled"  # of a wheel; `manifest.json` in it says for which numba, Python and processor
VARIABLE = "NUMBA_CACHE_DIR"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
CALLED = re.compile(r"sparsecv_mio\.kernels(?:\.| import )(\w+)")
HOUR = 3600.0
OPEN_TO_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@cache
def source_of(module: str) -> bytes | None:
    """Return the text of a file of kernels, None where there is none, as it was when this process first asked for it.

    Kernels ask as they are declared: what is compiled later is what was read then, whatever the file holds by now.
    """
    path = HERE / f"{module}.py"
    return path.read_bytes() if path.exists() else None


@cache
def digest_of_sources(module: str) -> str:
    """Return the digest of a file of kernels, of all those whose kernels it calls, and of how they are compiled.

    Parameters
    ----------
    module : str
        Last part of its name.
    """
    texts: dict[str, bytes] = {}
    found = [module]
    while found:
        name = found.pop()
        text = None if name in {*texts, "kernel_cache", "storage"} else source_of(name)
        if text is not None:
            texts[name] = text
            found += CALLED.findall(text.decode())
    return sha256(b"\0".join(texts[name] for name in sorted(texts))).hexdigest()


def is_trusted(folder: Path) -> bool:
    """Whether nobody can write into a folder who could not change the package itself.

    It belongs to the user, to root or to the owner of the package, and is open to others no more than the package is.
    """
    if os.name == "nt":  # permissions are not in the mode there
        return folder.is_dir()
    try:
        found, package = folder.lstat(), HERE.stat()
    except OSError:
        return False
    allowed = package.st_mode & OPEN_TO_OTHERS if found.st_gid == package.st_gid else 0
    owned = found.st_uid in (os.getuid(), 0, package.st_uid)
    return stat.S_ISDIR(found.st_mode) and owned and not found.st_mode & OPEN_TO_OTHERS & ~allowed


def _candidates() -> Iterator[Path]:
    """Yield the folders of the user, the preferred one first, as numba has them: its variable, the package, a cache."""
    name = f"{HERE.parent.name}_{HERE.name}_{sha1(str(HERE).encode()).hexdigest()[:16]}"
    if os.environ.get(VARIABLE):
        yield Path(os.environ[VARIABLE]) / name
    yield HERE / "__pycache__"
    with suppress(Exception):
        from numba.misc.appdirs import AppDirs

        yield Path(AppDirs(appname="numba", appauthor=False).user_cache_dir) / name


def _can_keep(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o755 if folder.parent == HERE else 0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return is_trusted(folder) and os.access(folder, os.W_OK | os.X_OK)


@cache
def own_folder() -> Path | None:
    """Return the folder in which this user's kernels are kept; None where there is no such place."""
    return next((folder for folder in _candidates() if _can_keep(folder)), None)


@cache
def _folder_of_process() -> Path:
    """Return a folder that lasts as long as this process, for it and for those that it starts."""
    place = mkdtemp(prefix="sparsecv-kernels-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.environ[VARIABLE] = place
    folder = next(_candidates())
    folder.mkdir(mode=0o700)
    return folder


def read(folder: Path, name: str) -> bytes | None:
    """Return the content of a file of a trusted folder; None where there is none, or where it is damaged."""
    try:
        with open(folder / name, "rb") as file:
            seal, content = file.read(32), file.read()
    except OSError:
        return None
    return content if sha256(content).digest() == seal else None


def keep(name: str, content: bytes) -> None:
    """Keep a content under a name, in place of what the same kernel was of other sources; fails without a word.

    Parameters
    ----------
    name : str
        `MODULE.KERNEL-PYTHON-SOURCES-REST.nbc`.
    content : bytes
    """
    with suppress(OSError):
        folder = own_folder() or _folder_of_process()
        _drop_outdated(folder, name)
        write(folder, name, content)


def write(folder: Path, name: str, content: bytes) -> None:
    """Write a file that is whole as soon as it is there."""
    part = folder / f"{name}.{uuid4().hex[:12]}.part"
    try:
        with open(part, "xb") as file:
            file.write(sha256(content).digest() + content)
        os.replace(part, folder / name)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _drop_outdated(folder: Path, name: str) -> None:
    """Delete what a kernel was of other sources, what releases before 0.2 kept of it, and what was never finished."""
    kernel, _, _, _ = name.rsplit("-", 3)
    same, numbered = name.rpartition("-")[0], re.compile(rf"-\d+\.{PYTHON}\.")
    for old in folder.glob(f"{kernel}-*"):
        ours = old.name.startswith(f"{kernel}-{PYTHON}-")
        stale = not old.name.startswith(f"{same}-") if ours else numbered.match(old.name[len(kernel) :])
        if stale or (old.suffix == ".part" and time.time() - old.stat().st_mtime > HOUR):
            old.unlink(missing_ok=True)

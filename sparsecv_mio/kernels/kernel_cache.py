"""A cache of compiled kernels that can be shipped with the package and shared by processes that start together.

The cache looks for a kernel first in the folder of the user (in a clone: next to its source files), which has kernels
for the processor of this machine. Then it looks among the kernels shipped with the package, if they match numba, Python
and the processor. If no kernel is found, or if an internal function of numba that
:mod:`sparsecv_mio.kernels.numba_internals` uses fails, the kernel is compiled and stored.

The name of a file contains everything on which its content depends. A file begins with a digest of its content. The
file is written under another name and then renamed. A process therefore never reads an incomplete file or a file that
was compiled from another version of the source, and it ignores a damaged file. Reading a file unpickles it, which can
run code. A folder that other users can write to is therefore not used.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import numba

from sparsecv_mio.kernels import numba_internals

HERE = Path(__file__).parent
SHIPPED = HERE / "compiled"  # kernels of a wheel; `manifest.json` states their numba, Python and processor
VARIABLE = "NUMBA_CACHE_DIR"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
NOT_COMPILED = {"kernel_cache", "numba_internals"}  # files on which no compiled code depends
CALLED = re.compile(r"sparsecv_mio\.kernels(?:\.| import )(\w+)")
HOUR = 3600.0
MONTH = 30 * 24 * HOUR  # age from which files of other sources may be deleted from the user's folder
OPEN_TO_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@cache
def read_source(module: str) -> bytes | None:
    """Return the text of a file of kernels, None if there is none, as of the first request by this process.

    Kernels request it when they are declared, so code that is compiled later belongs to this text, even if the file has
    changed since.
    """
    path = HERE / f"{module}.py"
    return path.read_bytes() if path.exists() else None


@cache
def digest_of_sources(module: str) -> str:
    """Return the digest of a file of kernels, of all files whose kernels it calls, and of the compiler options.

    Parameters
    ----------
    module : str
        Last part of the module name.
    """
    texts: dict[str, bytes] = {}
    modules = [module]
    while modules:
        name = modules.pop()
        text = None if name in NOT_COMPILED.union(texts) else read_source(name)
        if text is not None:
            texts[name] = text
            modules += CALLED.findall(text.decode())
    return sha256(b"\0".join(texts[name] for name in sorted(texts))).hexdigest()


def is_trusted(folder: Path) -> bool:
    """Return True if only users who can change the package itself can write to a folder.

    The folder must belong to the user, to root or to the owner of the package, and be open to others no more than the
    package is.
    """
    if os.name == "nt":  # the mode has no permissions on Windows
        return folder.is_dir()
    try:
        status, package = folder.lstat(), HERE.stat()
    except OSError:
        return False
    allowed = package.st_mode & OPEN_TO_OTHERS if status.st_gid == package.st_gid else 0
    owned = status.st_uid in (os.getuid(), 0, package.st_uid)
    return stat.S_ISDIR(status.st_mode) and owned and not status.st_mode & OPEN_TO_OTHERS & ~allowed


def is_clone() -> bool:
    """Return True if the package is used from a clone of its sources, also by an editable installation."""
    return (HERE.parents[1] / "pyproject.toml").exists()


def users_folder() -> Path | None:
    """Return the user's cache folder that installed copies of the package share; None if numba has none."""
    with suppress(Exception):
        return Path(numba_internals.user_cache_folder("sparsecv-mio")) / "kernels"
    return None


def _candidates() -> Iterator[Path]:
    """Yield the folders in which kernels may be stored, in order of preference.

    First comes the folder of numba's environment variable. In a clone the folder next to the sources follows, where
    nothing is uninstalled; otherwise the user's folder, because files compiled into an installed package would stay
    after it is uninstalled. The package itself is the last choice.
    """
    if os.environ.get(VARIABLE):
        name = f"{HERE.parent.name}_{HERE.name}_{sha1(str(HERE).encode()).hexdigest()[:16]}"
        yield Path(os.environ[VARIABLE]) / name
    beside, users = HERE / "__pycache__", users_folder()
    if is_clone():
        yield beside
    if users is not None:
        yield users
    yield beside


def _can_keep(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o755 if folder.parent == HERE else 0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return is_trusted(folder) and os.access(folder, os.W_OK | os.X_OK)


@cache
def own_folder() -> Path | None:
    """Return the folder in which this user's kernels are stored; None if there is none."""
    return next((folder for folder in _candidates() if _can_keep(folder)), None)


@cache
def _folder_of_process() -> Path:
    """Return a folder that exists as long as this process, for it and for the processes that it starts."""
    place = mkdtemp(prefix="sparsecv-kernels-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.environ[VARIABLE] = place
    folder = next(_candidates())
    folder.mkdir(mode=0o700)
    return folder


def read(folder: Path, name: str) -> bytes | None:
    """Return the content of a file of a trusted folder; None if it is missing or damaged."""
    try:
        with open(folder / name, "rb") as file:
            seal, content = file.read(32), file.read()
    except OSError:
        return None
    return content if sha256(content).digest() == seal else None


def keep(name: str, content: bytes) -> None:
    """Store a content under a name, and remove files of the same kernel from other sources; failures are silent.

    Parameters
    ----------
    name : str
        File name `MODULE.KERNEL-PYTHON-SOURCES-REST.nbc`.
    content : bytes
        Content.
    """
    with suppress(OSError):
        folder = own_folder() or _folder_of_process()
        _delete_outdated_files(folder, name)
        write(folder, name, content)


def write(folder: Path, name: str, content: bytes) -> None:
    """Write a file that is complete as soon as it exists."""
    unfinished = folder / f"{name}.{uuid4().hex[:12]}.part"
    try:
        with open(unfinished, "xb") as file:
            file.write(sha256(content).digest() + content)
        os.replace(unfinished, folder / name)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _delete_outdated_files(folder: Path, name: str) -> None:
    """Delete files of a kernel from other sources, and unfinished files."""
    kernel, _, _, _ = name.rsplit("-", 3)
    grace = MONTH if folder == users_folder() else 0.0  # another version of the package may use it
    same = name.rpartition("-")[0]
    for old in folder.glob(f"{kernel}-*"):
        stale = old.name.startswith(f"{kernel}-{PYTHON}-") and not old.name.startswith(f"{same}-")
        unfinished = old.suffix == ".part"
        with suppress(FileNotFoundError):  # another process deletes it too
            age = time.time() - old.stat().st_mtime
            if (stale and age >= grace) or (unfinished and age > HOUR):
                old.unlink()


class KernelCache:
    """The cache of one kernel, with the methods that numba calls.

    Parameters
    ----------
    kernel : function
        Kernel before compilation.
    """

    cache_path = property(lambda self: str(own_folder()))

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.module, self.kernel = kernel.__module__.rpartition(".")[2], kernel.__qualname__
        read_source(self.module)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel, or None if it has to be compiled."""
        try:
            numba_internals.prepare_loading(target_context)
            return self._read(numba_internals.argument_types(sig), target_context)
        except Exception as error:  # after any error the kernel is compiled
            _failures.append(f"{self.module}.{self.kernel}: {type(error).__name__}: {error}")
        return None

    def _read(self, args: tuple[Any, ...], target_context: Any) -> Any:
        """Return a stored kernel; None if there is none for these types."""
        for folder, name in self._places(args, numba_internals.machine_of(target_context)):
            content = read(folder, name)
            if content is not None:
                kernel = numba_internals.load_kernel(content, target_context)
                if tuple(kernel.signature.args) == args:
                    return kernel
        return None

    @property
    def prefix(self) -> str:
        """First part of the names of its files, without the types of its arguments and the processor."""
        return f"{self.module}.{self.kernel}-{PYTHON}-{digest_of_sources(self.module)[:16]}"

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel."""
        try:
            name = self._name(numba_internals.argument_types(sig), data.codegen.magic_tuple())
            content = numba_internals.dump_kernel(data)
            if content is not None:
                keep(name, content)
        except Exception as error:  # the compiled kernel can be used nevertheless
            _failures.append(f"{self.module}.{self.kernel}: {type(error).__name__}: {error}")

    def enable(self) -> None:
        """Do nothing, because the cache is always on."""

    def disable(self) -> None:
        """Do nothing, because the cache is always on."""

    def flush(self) -> None:
        """Do nothing, because a file is replaced when it is written again."""

    def _places(self, args: tuple[Any, ...], host: tuple[str, str, str]) -> Iterator[tuple[Path, str]]:
        own = own_folder()
        if own is not None:
            yield own, self._name(args, host)
        shipped, _ = find_shipped_kernels(host)
        if shipped is not None:
            yield SHIPPED, self._name(args, shipped)

    def _name(self, args: tuple[Any, ...], machine: tuple[str, str, str]) -> str:
        """Return the name of the file for a type of arguments and a machine (its triple, processor and features)."""
        sources = digest_of_sources(self.module)[:16]
        digest = sha256(repr((numba.__version__, sources, args, *machine)).encode()).hexdigest()[:20]
        return f"{self.prefix}-{digest}.nbc"


_failures: list[str] = []


@cache
def find_shipped_kernels(host: tuple[str, str, str]) -> tuple[tuple[str, str, str] | None, str]:
    """Return the machine for which kernels were shipped with the package.

    Parameters
    ----------
    host : (str, str, str)
        Triple, name and features of this machine, as numba gives them.

    Returns
    -------
    (str, str, str) or None
        The same for the machine of the shipped kernels; None if they cannot be used here.
    str
        Reason why not.
    """
    if not SHIPPED.exists():
        return None, "none came with the package"
    if not is_trusted(SHIPPED):
        return None, f"other users can write into {SHIPPED}"
    try:
        made = json.loads((SHIPPED / "manifest.json").read_text(encoding="utf-8"))
        machine = (made["triple"], made["processor"], made["features"])
        compared = [("numba", made["numba"], numba.__version__), ("Python", made["python"], PYTHON)]
    except (OSError, ValueError, LookupError, TypeError) as error:
        return None, f"their manifest cannot be read: {error}"
    compared.append(("the platform", machine[0], host[0]))
    for subject, theirs, ours in compared:
        if theirs != ours:
            return None, f"they are for {subject} {theirs}, not {ours}"
    missing = {word for word in machine[2].split(",") if word.startswith("+")} - set(host[2].split(","))
    if missing:
        return None, f"they need a processor that has {', '.join(sorted(word[1:] for word in missing))}"
    return machine, ""


def where_kernels_are() -> list[str]:
    """Return lines that state where kernels are stored, whether the shipped ones can be used, and what failed."""
    own = own_folder()
    lines = [
        f"compiled kernels are stored {f'in {own}' if own else 'for this process only, because no folder is writable'}"
    ]
    try:
        machine, why = find_shipped_kernels(numba_internals.host_machine())
    except Exception as error:
        machine, why = None, f"numba says {error}"
    count = sum(1 for _ in SHIPPED.glob("*.nbc")) if SHIPPED.exists() else 0
    lines.append(
        f"shipped kernels: {count}, for {machine[1]}" if machine else f"shipped kernels: not used, because {why}"
    )
    return [*lines, *(f"a kernel could not be stored or loaded: {line}" for line in _failures)]


def _name_of_first_use(purpose: str, machine: tuple[str, str, str]) -> str:
    """Return the name of the file that records that the kernels of a purpose are compiled."""
    texts = [path.read_bytes() for path in sorted(HERE.glob("*.py")) if path.stem not in NOT_COMPILED]
    sources = sha256(b"\0".join(texts)).hexdigest()[:16]
    digest = sha256(repr((numba.__version__, sources, *machine)).encode()).hexdigest()[:20]
    return f"first_use.{purpose}-{PYTHON}-{sources}-{digest}.done"


def is_compiled(purpose: str) -> bool:
    """Return True if the kernels of a purpose are in the cache or were shipped with the package.

    Parameters
    ----------
    purpose : str
        Purpose as given to `record_compilation`.
    """
    host = numba_internals.host_machine()
    folder = own_folder()
    if find_shipped_kernels(host)[0] is not None:
        return True
    return folder is not None and read(folder, _name_of_first_use(purpose, host)) is not None


def record_compilation(purpose: str) -> None:
    """Record that the kernels of a purpose were compiled, from these sources and for this machine.

    Parameters
    ----------
    purpose : str
        Name of letters, digits and underscores.
    """
    keep(_name_of_first_use(purpose, numba_internals.host_machine()), b"")

"""A cache of compiled kernels that can be shipped, shared by processes that start together, and is quick to read.

A kernel is looked for in the user's folder (of a clone: beside its sources), as compiled for this very processor; then
among those that came with the package, where numba, Python and the processor fit; else it is compiled, and kept. The
parts of numba that this stands on are not public: where one is missing, numba's own cache takes its place, where one
fails the compiler does.

A file is named after all that its content depends on, begins with the digest of the rest, and takes its place in one
step. So processes that start together never read what another one has not finished, nor what it made of other sources,
and a damaged file is as good as none. What is read is unpickled, and so is run: a folder into which others can write
is not read.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha1, sha256
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import numba
from llvmlite.binding import add_symbol
from numba.core import sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env
from numba.core.runtime import _nrt_python
from numba.core.serialize import dumps

QUICK = ("0.68.",)  # versions of numba whose kernels were seen to run without the tables that the compiler needs
HERE = Path(__file__).parent
SHIPPED = HERE / "compiled"  # of a wheel; `manifest.json` in it says for which numba, Python and processor
VARIABLE = "NUMBA_CACHE_DIR"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
CALLED = re.compile(r"sparsecv_mio\.kernels(?:\.| import )(\w+)")
HOUR = 3600.0
MONTH = 30 * 24 * HOUR  # after which the user's folder may lose what was compiled of other sources
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
    modules = [module]
    while modules:
        name = modules.pop()
        text = None if name in {*texts, "kernel_cache"} else source_of(name)
        if text is not None:
            texts[name] = text
            modules += CALLED.findall(text.decode())
    return sha256(b"\0".join(texts[name] for name in sorted(texts))).hexdigest()


def is_trusted(folder: Path) -> bool:
    """Whether nobody can write into a folder who could not change the package itself.

    It belongs to the user, to root or to the owner of the package, and is open to others no more than the package is.
    """
    if os.name == "nt":  # permissions are not in the mode there
        return folder.is_dir()
    try:
        status, package = folder.lstat(), HERE.stat()
    except OSError:
        return False
    allowed = package.st_mode & OPEN_TO_OTHERS if status.st_gid == package.st_gid else 0
    owned = status.st_uid in (os.getuid(), 0, package.st_uid)
    return stat.S_ISDIR(status.st_mode) and owned and not status.st_mode & OPEN_TO_OTHERS & ~allowed


def is_clone() -> bool:
    """Whether the package is used in a clone of its sources, also by an editable installation."""
    return (HERE.parents[1] / "pyproject.toml").exists()


def users_folder() -> Path | None:
    """Return the folder of this user's caches that installed copies of the package share; None where numba has none."""
    with suppress(Exception):
        from numba.misc.appdirs import AppDirs

        return Path(AppDirs(appname="sparsecv-mio", appauthor=False).user_cache_dir) / "kernels"
    return None


def _candidates() -> Iterator[Path]:
    """Yield the folders in which kernels may be kept, the preferred one first.

    That of numba's variable; beside the sources in a clone, where nothing uninstalls them; else the user's, as what is
    compiled into an installed package stays when that is uninstalled. The package itself is the last resort.
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
    unfinished = folder / f"{name}.{uuid4().hex[:12]}.part"
    try:
        with open(unfinished, "xb") as file:
            file.write(sha256(content).digest() + content)
        os.replace(unfinished, folder / name)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _drop_outdated(folder: Path, name: str) -> None:
    """Delete what a kernel was of other sources, what releases before 0.2 kept of it, and what was never finished."""
    kernel, _, _, _ = name.rsplit("-", 3)
    grace = MONTH if folder == users_folder() else 0.0  # another version of the package may use it
    same, numbered = name.rpartition("-")[0], re.compile(rf"-\d+\.{PYTHON}\.")
    for old in folder.glob(f"{kernel}-*"):
        ours = old.name.startswith(f"{kernel}-{PYTHON}-")
        stale = not old.name.startswith(f"{same}-") if ours else numbered.match(old.name[len(kernel) :])
        unfinished = old.suffix in (".part", ".claim")
        with suppress(FileNotFoundError):  # another process deletes it too
            age = time.time() - old.stat().st_mtime
            if (stale and age >= grace) or (unfinished and age > HOUR):
                old.unlink()


class KernelCache(_Cache):
    """The cache of one kernel; the methods are those that numba asks for.

    Parameters
    ----------
    kernel : function
        As it is written.
    """

    cache_path = property(lambda self: str(own_folder()))

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.module, self.kernel = kernel.__module__.rpartition(".")[2], kernel.__qualname__
        source_of(self.module)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel, or None where it has to be compiled."""
        try:
            if not numba.__version__.startswith(QUICK):
                target_context.refresh()
            return self._read(tuple(sigutils.normalize_signature(sig)[0]), target_context)
        except Exception as error:  # whatever it is: the compiler is there
            _failures.append(f"{self.module}.{self.kernel}: {type(error).__name__}: {error}")
        return None

    def _read(self, args: tuple[Any, ...], target_context: Any) -> Any:
        """Return a kernel that is kept; None where there is none for these types."""
        for folder, name in self._places(args, target_context.codegen().magic_tuple()):
            content = read(folder, name)
            if content is not None:
                _name_helpers()
                kernel = CompileResult._rebuild(target_context, *_Reader(BytesIO(content)).load())
                if tuple(kernel.signature.args) == args:
                    return kernel
        return None

    @property
    def prefix(self) -> str:
        """How its files are named, but for the types of its arguments and the processor."""
        return f"{self.module}.{self.kernel}-{PYTHON}-{digest_of_sources(self.module)[:16]}"

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel."""
        try:
            args = tuple(sigutils.normalize_signature(sig)[0])
            name = self._name(args, data.codegen.magic_tuple())
            if not data.lifted and not data.library.has_dynamic_globals:
                keep(name, dumps(data._reduce()))
        except Exception as error:  # the kernel itself is compiled
            _failures.append(f"{self.module}.{self.kernel}: {type(error).__name__}: {error}")

    def enable(self) -> None:
        """Do nothing: it is always on."""

    def disable(self) -> None:
        """Do nothing: it is always on."""

    def flush(self) -> None:
        """Do nothing: a file is replaced when it is written again."""

    def _places(self, args: tuple[Any, ...], host: tuple[str, str, str]) -> Iterator[tuple[Path, str]]:
        own = own_folder()
        if own is not None:
            yield own, self._name(args, host)
        shipped, _ = shipped_for(host)
        if shipped is not None:
            yield SHIPPED, self._name(args, shipped)

    def _name(self, args: tuple[Any, ...], machine: tuple[str, str, str]) -> str:
        """Return the name of the file for a type of arguments and a machine (its triple, processor and features)."""
        sources = digest_of_sources(self.module)[:16]
        digest = sha256(repr((numba.__version__, sources, args, *machine)).encode()).hexdigest()[:20]
        return f"{self.prefix}-{digest}.nbc"


_failures: list[str] = []


class _Reader(pickle.Unpickler):
    """Reads a kernel without loading the parts of numba whose code it holds already."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name stands for."""
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """Return what a compiled function finds its constants in; its globals are for code that Python itself runs."""
    if not module.startswith("numba.") or module in sys.modules:
        return _rebuild_env(module, constants, name)
    made = Environment({"__name__": module})
    made.consts[:] = constants
    made.env_name = name
    return made


@cache
def _name_helpers() -> None:
    """Tell LLVM where the functions are that allocate arrays; compiled kernels call them by name."""
    for name, address in _nrt_python.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@cache
def shipped_for(host: tuple[str, str, str]) -> tuple[tuple[str, str, str] | None, str]:
    """Say for which machine kernels came with the package.

    Parameters
    ----------
    host : (str, str, str)
        Triple, name and features of this machine, as numba has them.

    Returns
    -------
    (str, str, str) or None
        The same of the machine for which they were compiled; None where they cannot be used here.
    str
        Why not.
    """
    if not SHIPPED.exists():
        return None, "none came with the package"
    if not is_trusted(SHIPPED):
        return None, f"others can write into {SHIPPED}"
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
        return None, f"they need a processor with {', '.join(sorted(word[1:] for word in missing))}"
    return machine, ""


def where_kernels_are() -> list[str]:
    """Say in lines where kernels are kept, whether those that came with the package can be used, and what failed."""
    own = own_folder()
    lines = [
        f"compiled kernels are kept {f'in {own}' if own else 'for this process only: no folder can be written to'}"
    ]
    try:
        from numba.core.registry import cpu_target

        machine, why = shipped_for(cpu_target.target_context.codegen().magic_tuple())
    except Exception as error:
        machine, why = None, f"numba says {error}"
    count = sum(1 for _ in SHIPPED.glob("*.nbc")) if SHIPPED.exists() else 0
    lines.append(
        f"kernels of the package: {count}, for {machine[1]}" if machine else f"kernels of the package: not used, {why}"
    )
    return [*lines, *(f"a kernel could not be stored or loaded: {line}" for line in _failures)]


def _name_of_first_use(purpose: str, machine: tuple[str, str, str]) -> str:
    """Return the name of the file which states that the kernels of a purpose are compiled."""
    texts = [path.read_bytes() for path in sorted(HERE.glob("*.py")) if path.stem != "kernel_cache"]
    sources = sha256(b"\0".join(texts)).hexdigest()[:16]
    digest = sha256(repr((numba.__version__, sources, *machine)).encode()).hexdigest()[:20]
    return f"first_use.{purpose}-{PYTHON}-{sources}-{digest}.done"


def is_compiled(purpose: str) -> bool:
    """Return True if the kernels of a purpose are in the cache, or came with the package.

    Parameters
    ----------
    purpose : str
        As given to `note_compiled`.
    """
    from numba.core.registry import cpu_target

    host = cpu_target.target_context.codegen().magic_tuple()
    folder = own_folder()
    if shipped_for(host)[0] is not None:
        return True
    return folder is not None and read(folder, _name_of_first_use(purpose, host)) is not None


def note_compiled(purpose: str) -> None:
    """Record that the kernels of a purpose were compiled, from these sources and for this machine.

    Parameters
    ----------
    purpose : str
        Letters, digits and underscores.
    """
    from numba.core.registry import cpu_target

    keep(_name_of_first_use(purpose, cpu_target.target_context.codegen().magic_tuple()), b"")

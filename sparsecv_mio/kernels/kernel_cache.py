"""A cache of compiled kernels that can be shipped, shared by processes that start together, and is quick to read.

A kernel is looked for in the user's folder, as compiled for this very processor; then among those that came with the
package, where numba, Python and the processor fit; else it is compiled, and kept. The parts of numba that this stands
on are not public: where one is missing, numba's own cache takes its place, where one fails the compiler does.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import add_symbol
from numba.core import sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env
from numba.core.runtime import _nrt_python
from numba.core.serialize import dumps

from sparsecv_mio.kernels import storage

QUICK = ("0.68.",)  # versions of numba whose kernels were seen to run without the tables that the compiler needs


class KernelCache(_Cache):
    """The cache of one kernel; the methods are those that numba asks for.

    Parameters
    ----------
    kernel : function
        As it is written.
    """

    cache_path = property(lambda self: str(storage.own_folder()))

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.module, self.kernel = kernel.__module__.rpartition(".")[2], kernel.__qualname__
        storage.source_of(self.module)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel, or None where it has to be compiled."""
        try:
            if not numba.__version__.startswith(QUICK):
                target_context.refresh()
            args = tuple(sigutils.normalize_signature(sig)[0])
            for folder, name in self._places(args, target_context.codegen().magic_tuple()):
                content = storage.read(folder, name)
                if content is not None:
                    _name_helpers()
                    found = CompileResult._rebuild(target_context, *_Reader(BytesIO(content)).load())
                    if tuple(found.signature.args) == args:
                        return found
        except Exception as error:  # whatever it is: the compiler is there
            _failures.append(f"{self.module}.{self.kernel}: {type(error).__name__}: {error}")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel."""
        try:
            if data.lifted or data.library.has_dynamic_globals:
                return
            args = tuple(sigutils.normalize_signature(sig)[0])
            storage.keep(self._name(args, data.codegen.magic_tuple()), dumps(data._reduce()))
        except Exception as error:  # the kernel itself is compiled
            _failures.append(f"{self.module}.{self.kernel}: {type(error).__name__}: {error}")

    def enable(self) -> None:
        """Do nothing: it is always on."""

    def disable(self) -> None:
        """Do nothing: it is always on."""

    def flush(self) -> None:
        """Do nothing: a file is replaced when it is written again."""

    def _places(self, args: tuple[Any, ...], host: tuple[str, str, str]) -> Iterator[tuple[Path, str]]:
        own = storage.own_folder()
        if own is not None:
            yield own, self._name(args, host)
        shipped, _ = shipped_for(host)
        if shipped is not None:
            yield storage.SHIPPED, self._name(args, shipped)

    def _name(self, args: tuple[Any, ...], machine: tuple[str, str, str]) -> str:
        """Return the name of the file for a type of arguments and a machine (its triple, processor and features)."""
        sources = storage.digest_of_sources(self.module)[:16]
        rest = sha256(repr((numba.__version__, sources, args, *machine)).encode()).hexdigest()[:20]
        return f"{self.module}.{self.kernel}-{storage.PYTHON}-{sources}-{rest}.nbc"


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
    if not storage.SHIPPED.exists():
        return None, "none came with the package"
    if not storage.is_trusted(storage.SHIPPED):
        return None, f"others can write into {storage.SHIPPED}"
    try:
        made = json.loads((storage.SHIPPED / "manifest.json").read_text(encoding="utf-8"))
        machine = (made["triple"], made["processor"], made["features"])
        asked = [("numba", made["numba"], numba.__version__), ("Python", made["python"], storage.PYTHON)]
    except (OSError, ValueError, LookupError, TypeError) as error:
        return None, f"their manifest cannot be read: {error}"
    asked.append(("the platform", machine[0], host[0]))
    for what, theirs, ours in asked:
        if theirs != ours:
            return None, f"they are for {what} {theirs}, not {ours}"
    missing = {word for word in machine[2].split(",") if word.startswith("+")} - set(host[2].split(","))
    if missing:
        return None, f"they need a processor with {', '.join(sorted(word[1:] for word in missing))}"
    return machine, ""


def where_kernels_are() -> list[str]:
    """Say in lines where kernels are kept, whether those that came with the package can be used, and what failed."""
    own = storage.own_folder()
    lines = [
        f"compiled kernels are kept {f'in {own}' if own else 'for this process only: no folder can be written to'}"
    ]
    try:
        from numba.core.registry import cpu_target

        machine, why = shipped_for(cpu_target.target_context.codegen().magic_tuple())
    except Exception as error:
        machine, why = None, f"numba says {error}"
    count = sum(1 for _ in storage.SHIPPED.glob("*.nbc")) if storage.SHIPPED.exists() else 0
    lines.append(
        f"kernels of the package: {count}, for {machine[1]}" if machine else f"kernels of the package: not used, {why}"
    )
    return [*lines, *(f"a kernel could not be stored or loaded: {line}" for line in _failures)]

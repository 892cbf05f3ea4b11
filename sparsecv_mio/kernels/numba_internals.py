"""All uses of private modules of numba in the package: types of arguments, and compiled code as bytes.

The oldest and the newest release of numba that pyproject.toml allows were tested. If a release of numba lacks one of
the private names, the import of this module fails, and the cache of numba is used.
"""

from __future__ import annotations

import pickle
import sys
from functools import cache
from io import BytesIO
from typing import Any

import numba
from llvmlite.binding import add_symbol
from numba.core import sigutils
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

QUICK = ("0.68.",)  # versions of numba whose kernels were seen to run without the tables that the compiler needs


def argument_types(signature: Any) -> tuple[Any, ...]:
    """Return the types of the arguments of a signature."""
    return tuple(sigutils.normalize_signature(signature)[0])


def host_machine() -> tuple[str, str, str]:
    """Return triple, name and features of this machine."""
    return machine_of(cpu_target.target_context)


def machine_of(target_context: Any) -> tuple[str, str, str]:
    """Return triple, name and features of the machine for which a target context compiles."""
    triple, name, features = target_context.codegen().magic_tuple()
    return triple, name, features


def user_cache_folder(application: str) -> str:
    """Return the folder in which an application may cache files of this user."""
    return str(AppDirs(appname=application, appauthor=False).user_cache_dir)


def dump_kernel(compiled: Any) -> bytes | None:
    """Return compiled code as bytes; None if it depends on this process."""
    is_bound = compiled.lifted or compiled.library.has_dynamic_globals
    return None if is_bound else dumps(compiled._reduce())


def prepare_loading(target_context: Any) -> None:
    """Load the tables that compiled code needs, if this release of numba needs them."""
    if not numba.__version__.startswith(QUICK):
        target_context.refresh()


def load_kernel(content: bytes, target_context: Any) -> Any:
    """Return the compiled code of `dump_kernel`."""
    _name_helpers()
    return CompileResult._rebuild(target_context, *_Reader(BytesIO(content)).load())


class _Reader(pickle.Unpickler):
    """An unpickler that reads a kernel without loading the parts of numba whose code it contains already."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the object with a name."""
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """Return the environment in which a compiled function finds its constants; its globals serve code run by Python."""
    if not module.startswith("numba.") or module in sys.modules:
        return _rebuild_env(module, constants, name)
    made = Environment({"__name__": module})
    made.consts[:] = constants
    made.env_name = name
    return made


@cache
def _name_helpers() -> None:
    """Register with LLVM the functions that allocate arrays, which compiled kernels call by name."""
    for name, address in _nrt_python.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)

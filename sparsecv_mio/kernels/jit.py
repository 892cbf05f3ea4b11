"""The decorator `njit` of all kernels, which is `njit` of numba with the cache `sparsecv_mio.kernels.kernel_cache`."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

try:
    from sparsecv_mio.kernels.kernel_cache import KernelCache
except ImportError:  # a release of numba with other internal names: numba's own cache is used
    KernelCache = None  # type: ignore[assignment, misc]


def int_constant(value: int) -> np.int64:
    """Return an integer of the type of lengths and indices.

    A literal has its own type in numba: a kernel called with a literal and with a variable would be compiled twice.
    """
    return np.int64(value)


NO_ITEMS = FIRST_INDEX = int_constant(0)
NO_INDEX = int_constant(-1)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's `njit` decorator for kernels of this package, with the package's cache.

    A kernel whose name begins with an underscore is called by kernels only: the code by which Python would call it, and
    the checks of its arguments, are not compiled. No kernel is passed to another one as a function.

    Parameters
    ----------
    cache : bool
        True if compiled code is stored.
    **options
        Options of numba.
    """

    def declare(kernel: Callable[..., Any]) -> Any:
        hidden = kernel.__name__.startswith("_")
        made = numba.njit(no_cfunc_wrapper=True, no_cpython_wrapper=hidden, **options)(kernel)
        if not hasattr(made, "overloads"):  # a plain function, if numba is told to compile nothing
            return made
        if hidden:
            made._compile_for_args = partial(_refuse, kernel.__name__)
            made.add_overload = partial(_add_overload, made)
        made.compile = partial(_compile, made)
        if not cache:
            return made
        if KernelCache is None or not hasattr(made, "_cache"):
            made.enable_caching()
            return made
        made._cache = KernelCache(kernel)
        return made

    return declare


def _compile(made: Any, signature: Any) -> Any:
    """Compile without garbage collection, because the compiler makes very many objects that it needs until its end."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return type(made).compile(made, signature)
    finally:
        if collecting:
            gc.enable()


def _add_overload(made: Any, compiled: Any) -> None:
    """Register compiled code that has no entry point for Python."""
    made.overloads[tuple(compiled.signature.args)] = compiled


def _refuse(name: str, *_: Any, **__: Any) -> None:
    raise TypeError(f"{name} is for kernels: its name begins with an underscore")

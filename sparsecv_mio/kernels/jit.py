"""`njit` of numba, with the cache of :mod:`sparsecv_mio.kernels.kernel_cache`, and word of what is being compiled."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numba
from numba.core import event, sigutils
from numba.core.compiler_lock import global_compiler_lock

try:
    from sparsecv_mio.kernels.kernel_cache import KernelCache
    from sparsecv_mio.kernels.linked_code import DEPTH, KernelCompiler, waits, with_machine_code
except ImportError:  # a release of numba whose inner parts have other names: its own cache does the work
    KernelCache = None  # type: ignore[assignment, misc]


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As numba's, for kernels of this package, with a cache of our own.

    A kernel whose name begins with an underscore is called by kernels alone: the code by which Python would call it,
    and the checks of its arguments, are not compiled. No kernel is passed to another one as a function.

    Parameters
    ----------
    cache : bool
        Whether what is compiled is kept.
    **options
        Of numba.
    """

    def declare(kernel: Callable[..., Any]) -> Any:
        hidden = kernel.__name__.startswith("_")
        own = {} if KernelCache is None else {"pipeline_class": KernelCompiler}
        made = numba.njit(no_cfunc_wrapper=True, no_cpython_wrapper=hidden, **own, **options)(kernel)
        if hidden and hasattr(made, "overloads"):
            made._compile_for_args = partial(_refuse, kernel.__name__)
        if hasattr(made, "py_func"):
            made.add_overload = partial(_add_overload, made, hidden)
            made.compile = partial(_compile, made, hidden)
        if not cache or not hasattr(made, "py_func"):  # a plain function where numba is told to compile nothing
            return made
        if KernelCache is None or not hasattr(made, "_cache"):
            made.enable_caching()
            return made
        made._cache = KernelCache(kernel)
        return made

    return declare


class NotCompiled(Exception):
    """A kernel would have to be compiled, or waited for, where there is no time for it."""


_thread = threading.local()


@contextmanager
def without_compiling() -> Iterator[None]:
    """Have kernels that are in no cache, or that have to wait for another one to be compiled, raise `NotCompiled`.

    Of this thread, after a limit: a kernel may take the compiler longer than the whole run was to last.
    """
    _thread.hurries = True
    try:
        yield
    finally:
        _thread.hurries = False


def _at_hand(made: Any, signature: Any) -> bool:
    """Whether a kernel is in a cache, and nobody compiles another one just now."""
    lock = getattr(global_compiler_lock, "_lock", None)
    if lock is None or not lock.acquire(blocking=False):
        return lock is None
    lock.release()
    return isinstance(made._cache, KernelCache) and made._cache.holds(signature)


def _compile(made: Any, hidden: bool, signature: Any) -> Any:
    """Compile without collecting garbage: the compiler makes very many objects that it needs to its end."""
    if KernelCache is not None and getattr(_thread, "hurries", False) and not _at_hand(made, signature):
        raise NotCompiled(made.__name__)
    collecting = gc.isenabled()
    gc.disable()
    try:
        if KernelCache is None:
            return type(made).compile(made, signature)
        with global_compiler_lock, DEPTH.deeper():
            entry = type(made).compile(made, signature)
            return entry if hidden or DEPTH.value > 1 else _callable(made, signature, entry)
    finally:
        if collecting:
            gc.enable()


def _callable(made: Any, signature: Any, entry: Any) -> Any:
    """Return what Python calls; the machine code is made if so far only kernels have called it."""
    compiled = made.overloads[tuple(sigutils.normalize_signature(signature)[0])]
    if not waits(compiled):
        return entry
    compiled = with_machine_code(compiled)
    made.add_overload(compiled)
    made._cache.save_overload(signature, compiled)
    return compiled.entry_point


def _add_overload(made: Any, hidden: bool, compiled: Any) -> None:
    """Take note of compiled code; what has none for Python is known to kernels alone."""
    if hidden or (KernelCache is not None and waits(compiled)):
        made.overloads[tuple(compiled.signature.args)] = compiled
    else:
        type(made).add_overload(made, compiled)


def _refuse(name: str, *_: Any, **__: Any) -> None:
    raise TypeError(f"{name} is for kernels: its name begins with an underscore")


class _Listener(event.Listener):
    def __init__(self, begun: Callable[[], None], during: Callable[[bool], None] | None) -> None:
        self.begun, self.during, self.depth = begun, during, 0  # one thread compiles at a time, one kernel in another

    def on_start(self, event: event.Event) -> None:
        """Tell that a kernel is not in the cache."""
        self.depth += 1
        if self.depth == 1 and self.during is not None:
            self.during(True)
        self.begun()

    def on_end(self, event: event.Event) -> None:
        """Tell that it is compiled."""
        self.depth -= 1
        if self.depth == 0 and self.during is not None:
            self.during(False)


@contextmanager
def watched(begun: Callable[[], None], during: Callable[[bool], None] | None = None) -> Iterator[None]:
    """Call `begun`, from the thread that compiles, whenever a kernel is compiled in here.

    Parameters
    ----------
    begun : callable
    during : callable, optional
        Called with True where compiling begins and with False where it ends.
    """
    with event.install_listener("numba:compile", _Listener(begun, during)):
        yield

"""`njit` of numba, with the cache of :mod:`sparsecv_mio.kernels.kernel_cache`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

try:
    from sparsecv_mio.kernels.kernel_cache import KernelCache
except ImportError:  # a release of numba whose inner parts have other names: its own cache does the work
    KernelCache = None  # type: ignore[assignment, misc]


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As numba's, for kernels of this package, with a cache of our own.

    Parameters
    ----------
    cache : bool
        Whether what is compiled is kept.
    **options
        Of numba.
    """

    def declare(kernel: Callable[..., Any]) -> Any:
        made = numba.njit(**options)(kernel)
        if not cache or not hasattr(made, "py_func"):  # a plain function where numba is told to compile nothing
            return made
        if KernelCache is None or not hasattr(made, "_cache"):
            return numba.njit(cache=True, **options)(kernel)
        made._cache = KernelCache(kernel)
        return made

    return declare

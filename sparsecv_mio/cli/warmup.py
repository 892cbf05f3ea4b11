"""`sparsecv warmup`: every kernel compiled ahead."""

from __future__ import annotations

import time

from sparsecv_mio.cli import ending


def warmup() -> int:
    """Compile all numerical code now and keep it in the cache, so that no later command has to.

    A command compiles what it needs at its first use and later ones load it; this does all of it at once, in a minute
    or two. The cache is beside the package, or where NUMBA_CACHE_DIR says.
    """
    begun = time.monotonic()

    def show(what: str, number: int, count: int) -> None:
        ending.tell(f"{time.monotonic() - begun:.0f} s; compiling kernels, {number} of {count}: {what}")

    from sparsecv_mio.warmup import warm_up

    warm_up(show)
    ending.tell(f"{time.monotonic() - begun:.0f} s; all kernels are compiled")
    return 0

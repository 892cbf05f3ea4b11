"""Compiled arithmetic (numba): plain arrays in and out; imports nothing else of the package."""

from __future__ import annotations

import atexit
import os
import shutil
from tempfile import mkdtemp

from numba import config, njit


def _probe() -> None:
    """Nothing: numba is asked where it would store this."""


def _keep_somewhere() -> None:
    """Keep what is compiled until the end of the process, where neither the package nor the user has a place for it."""
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # numba's, for folders that cannot be written to
        place = mkdtemp(prefix="sparsecv-kernels-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = place  # of processes that this one starts, too


_keep_somewhere()

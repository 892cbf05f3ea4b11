"""The types of arrays that signatures speak of, and the blocks of rows in which passes over them go."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

CHUNK_ELEMENTS = 1 << 20  # 8 MB blocks keep every pass over X inside the caches' reach and free of copies of X
BLOCK_NUMBERS = 1 << 22  # in a block of any other work that is done at once: 32 MB
CACHED_NUMBERS = 1 << 15  # of rows that are looked at several times over: 0.3 MB, as caches hold
CACHED_ROWS = 1 << 12  # the same, where only some columns of them are looked at
STORE_BYTES = 1 << 28  # of what is kept so that it need not be computed again


def row_chunks(n: int, width: int) -> Iterator[slice]:
    """Yield slices that cut n rows of `width` numbers into blocks of at most 8 MB."""
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))

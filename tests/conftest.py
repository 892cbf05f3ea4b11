"""Settings of every test process."""

from __future__ import annotations

import os
from pathlib import Path

# Two processes that fill one numba cache directory can pair a kernel's index entry with another signature's code
# (its data files are numbered by whoever saves first), so each pytest-xdist worker keeps a cache of its own.
_worker = os.environ.get("PYTEST_XDIST_WORKER")
if _worker:
    os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).resolve().parents[1] / "build" / "numba" / _worker)

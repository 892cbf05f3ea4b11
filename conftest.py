"""Settings of every test process, of the suite and of the examples in docstrings."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

# Two processes that fill one numba cache directory can pair a kernel's index entry with another signature's code
# (its data files are numbered by whoever saves first), so each pytest-xdist worker keeps a cache of its own.
_worker = os.environ.get("PYTEST_XDIST_WORKER")
if _worker:
    os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).resolve().parent / "build" / "numba" / _worker)

# Modules that load a modelling package as they are imported: without it their examples cannot be collected.
_models = ["sparsecv_mio/formulation/models", "sparsecv_mio/formulation/lowering.py"]
collect_ignore = [] if find_spec("pyomo") else _models

"""Settings of every test process, of the suite and of the examples in docstrings."""

from __future__ import annotations

import os
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["COLUMNS"] = "200"  # of what is printed into a pipe; the terminal of whoever runs the tests does not count

# The processes of pytest-xdist share one cache of compiled kernels. numba numbers its data files by whoever saves
# first, so that two processes may give one number to two signatures, and it writes the index before the data: a name
# that the signature determines, written before the index, cannot be paired with another one's code. An entry that two
# writers of an index lose costs a compilation. The folder is that of these sources: numba itself would go on using a
# kernel whose callee has changed.
_here = Path(__file__).resolve().parent
_share = "PYTEST_XDIST_WORKER" in os.environ
if _share:
    _sources = b"".join(path.read_bytes() for path in sorted((_here / "sparsecv_mio" / "kernels").glob("*.py")))
    os.environ["NUMBA_CACHE_DIR"] = str(_here / "build" / "numba" / sha256(_sources).hexdigest()[:12])


def _save_under_own_name(cache: Any, key: Any, data: Any) -> None:
    name = cache._data_name(int(sha256(repr(key).encode()).hexdigest()[:12], 16))
    cache._save_data(name, data)
    cache._save_index({**cache._load_index(), key: name})


def pytest_configure() -> None:
    """Share the cache before a test module loads a kernel."""
    if _share:
        from numba.core.caching import IndexDataCacheFile

        IndexDataCacheFile.save = _save_under_own_name


# A module that loads a modelling package as it is imported: without it their examples cannot be collected.
_models = ["sparsecv_mio/formulation/models.py"]
collect_ignore = [] if find_spec("pyomo") else _models

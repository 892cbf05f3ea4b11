"""Settings of the tests of batches."""

from __future__ import annotations

import pytest

from sparsecv_mio.batch import dispatch


@pytest.fixture(scope="session", autouse=True)
def kernels_are_loaded_where_they_are_called() -> None:
    """Leave out loading every kernel before the first task; `unit/test_warmup` tests the loading."""
    dispatch._compile_once = lambda: None

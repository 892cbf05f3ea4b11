"""Registry of backends: one line each, loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    from sparsecv_mio.formulation.backends.contract import Backend

NATIVE = "native"  # our own trees; every other backend is a vendor's solver
BACKENDS = {
    NATIVE: "sparsecv_mio.formulation.backends.native:NativeBackend",
    "gurobi": "sparsecv_mio.formulation.backends.gurobi:GurobiBackend",
    "highs": "sparsecv_mio.formulation.backends.highs:HighsBackend",
    "scip": "sparsecv_mio.formulation.backends.scip:ScipBackend",
    "mosek": "sparsecv_mio.formulation.backends.mosek:MosekBackend",
}


@cache
def get_backend(name: str) -> Backend:
    """Return a backend by name; the same object every time, safe to use from several threads.

    Raises
    ------
    BadInput
        For a name that is not registered.

    Examples
    --------
    >>> get_backend("gurobi").name
    'gurobi'
    """
    if name not in BACKENDS:
        raise BadInput(f"there is no backend {name!r}; choose from {', '.join(BACKENDS)}")
    module, _, attribute = BACKENDS[name].partition(":")
    backend: Backend = getattr(import_module(module), attribute)()
    return backend

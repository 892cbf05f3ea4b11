"""The registered solver backends; a backend is imported when it is first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from sparsecv_mio.errors import BackendUnavailable, match_keyword
from sparsecv_mio.formulation.outcome import Solver
from sparsecv_mio.words import NATIVE

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BACKENDS = {
    NATIVE: "sparsecv_mio.formulation.backends.native:NativeBackend",
    "gurobi": "sparsecv_mio.formulation.backends.gurobi:GurobiBackend",
    "highs": "sparsecv_mio.formulation.backends.highs:HighsBackend",
    "scip": "sparsecv_mio.formulation.backends.scip:ScipBackend",
    "mosek": "sparsecv_mio.formulation.backends.mosek:MosekBackend",
}


ENTRY_POINTS = "sparsecv.backends"  # entry point group of the backends of other packages


@cache
def find_package_backends() -> dict[str, EntryPoint]:
    """Return the backends that other installed packages provide, by name; names of this package cannot be replaced."""
    from importlib.metadata import entry_points  # looks at every installed package

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS) if entry.name not in BACKENDS}


def backend_name(word: str) -> str:
    """Return the name of a backend, ignoring case; raise `BadInput` if it is unknown."""
    backends = BACKENDS if str(word).strip().lower() in BACKENDS else (*BACKENDS, *find_package_backends())
    return match_keyword(word, backends, "backend")


@cache
def get_backend(name: str) -> Solver:
    """Return a backend by name; it is the same object at every call and can be used from several threads.

    Raises
    ------
    BadInput
        If the name is not registered.
    BackendUnavailable
        If the package that provides it cannot be loaded, or provides something else.

    Examples
    --------
    >>> get_backend("gurobi").name
    'gurobi'
    """
    if name in BACKENDS:
        module, _, attribute = BACKENDS[name].partition(":")
        backend: Solver = getattr(import_module(module), attribute)()
        return backend
    if name not in find_package_backends():
        return get_backend(backend_name(name))
    return _load_package_backend(find_package_backends()[name])


def _load_package_backend(entry: EntryPoint) -> Solver:
    """Return the backend of another package."""
    try:
        backend = entry.load()()
    except Exception as error:  # code of another package may raise any exception
        raise BackendUnavailable(f"backend {entry.name}: {entry.value} cannot be loaded: {error}") from error
    if not isinstance(backend, Solver) or backend.name != entry.name:
        raise BackendUnavailable(
            f"backend {entry.name}: {entry.value} does not define a Backend with this name; correct its package"
        )
    return backend

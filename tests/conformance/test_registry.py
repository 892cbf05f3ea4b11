"""No backend may hide from the conformance suite, and no licence-free one may be skipped."""

from __future__ import annotations

import pytest
from conformance_suite import LICENCE_FREE, NAMES

from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends import BACKENDS, get_backend


def test_every_registered_backend_is_in_the_suite() -> None:
    assert set(NAMES) == set(BACKENDS)


def test_the_licence_free_ones_run_here() -> None:
    declared = {name for name in BACKENDS if get_backend(name).capabilities.licence_free}
    assert declared == set(LICENCE_FREE)
    for name in declared:
        here = get_backend(name).available()
        assert here.usable, f"{name}: {here.why}"


def test_contract() -> None:
    for name in BACKENDS:
        backend = get_backend(name)
        assert backend.name == name
        assert backend is get_backend(name)
        assert backend.capabilities.formulations
        assert backend.capabilities.limits >= {"seconds", "nodes", "gap"}
        here = backend.available()
        assert here.usable or here.why


def test_unknown_backend_is_one_clear_line() -> None:
    with pytest.raises(BadInput, match="backend: unknown word 'cplex'; use native"):
        get_backend("cplex")

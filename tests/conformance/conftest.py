"""The backend and the formulation of a test of the suite."""

from __future__ import annotations

import pytest
from conformance_suite import FORMS, Solver, usable


@pytest.fixture(params=FORMS, ids="-".join)
def solver(request: pytest.FixtureRequest) -> Solver:
    """Each backend that is usable here, with each of its formulations."""
    return Solver(usable(request.param[0]), request.param[1])

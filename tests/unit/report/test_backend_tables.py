"""Backends and single fits on the screen and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.backends import BACKENDS
from sparsecv_mio.report.fit_tables import describe_backends, print_backends, print_fit, text_of_backends

from .printing import check, data, printed


@pytest.fixture(scope="module")
def fit() -> FitRecord:
    return fit_one(data(), tau=2, gamma=0.1)


def test_every_backend_has_its_row() -> None:
    rows = describe_backends()
    assert [row.name for row in rows] == list(BACKENDS)
    assert [row["name"] for row in json.loads(text_of_backends(rows))["backends"]] == list(BACKENDS)
    broken = replace(rows[0], usable=False, why="numba is not installed", hint="pip install numba")
    text = printed(lambda console: print_backends(console, [broken]), 200)
    assert "numba is not installed. pip install numba" in text and "no" in text.split()


def test_a_fit_says_what_is_proved_and_cuts_no_number(fit: FitRecord) -> None:
    check(lambda console: print_fit(console, fit))
    text = printed(lambda console: print_fit(console, fit), 200)
    assert text.startswith("certified best subset: tau = 2 features")
    assert "minimum objective: in [" in text and "(certified, relative gap " in text and "work: native" in text
    brief = printed(lambda console: print_fit(console, fit, brief=True), 200)
    assert "work:" not in brief and "(intercept)" in brief


def test_an_allowance_is_explained(fit: FitRecord) -> None:
    for allowance, said in ((0.0, False), (0.5, True)):
        other = replace(fit, allowance=allowance)
        text = printed(lambda console: print_fit(console, other), 200)  # noqa: B023
        assert ("below that of the solver, to cover the tolerances of the solver" in text) is said

"""A record and a path to print."""

from __future__ import annotations

import pytest

from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.search.api import cross_validate

from .printing import data


@pytest.fixture(scope="module")
def record() -> Record:
    plan = make_folds("5", data())
    return cross_validate(data(), plan, gammas=[0.012345678, 0.1, 1.0], taus=[1, 2, 3], threads=1)


@pytest.fixture(scope="module")
def simplest() -> Record:
    """The same by the one-standard-error rule, which takes another pair than that of the least CV error."""
    plan = make_folds("5", data())
    found = cross_validate(data(), plan, gammas=[0.012345678, 0.1, 1.0], taus=[1, 2, 3], one_se=True, threads=1)
    assert found.least is not None
    return found


@pytest.fixture(scope="module")
def path() -> PathRecord:
    return best_subsets(data(), gammas=[0.01, 0.1, 10.0], taus=[1, 2, 3], threads=1)

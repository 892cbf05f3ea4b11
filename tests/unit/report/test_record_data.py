"""What the data add to a record."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.report.record_data import path_at, rows_of
from sparsecv_mio.search.api import cross_validate

from .printing import data


def test_the_path_is_that_of_the_models_gamma(record: Record) -> None:
    path = path_at(record, data(), 10.0)
    assert {row.gamma for row in path.path} == {record.refit.gamma}
    same = next(row for row in path.path if row.tau == record.refit.tau)
    assert (same.support, same.objective) == (record.support, pytest.approx(record.refit.objective))


def test_the_path_keeps_to_the_restrictions() -> None:
    record = cross_validate(data(), "4", gammas=0.1, taus=[1, 2], force_in="b")
    assert all("b" in row.support for row in path_at(record, data(), 10.0).path)


def test_other_data_are_refused_and_weights_are_those_of_the_record(record: Record) -> None:
    counts = np.arange(data().n) % 3
    weighted = Dataset.from_arrays(data().X, data().y, data().names, data().target, {"w": counts})
    with pytest.raises(BadInput, match="not the data of the record"):
        rows_of(record, Dataset.from_arrays(data().X + 1.0, data().y, data().names, data().target))
    fitted = best_subsets(weighted_rows(weighted, counts, "w"), gammas=0.1, taus=2)
    assert rows_of(fitted, weighted).n == (counts > 0).sum() == fitted.data.n
    assert fitted.data.total_weight == counts.sum()

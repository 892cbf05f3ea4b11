"""Both classes weigh the same: the weights are scikit-learn's, and a record keeps what was asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import weighted_rows, with_class_weight
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.search.api import solve
from sparsecv_mio.search.options import SearchOptions

RNG = np.random.default_rng(4)
X = RNG.normal(size=(50, 3))
Y = (X[:, 0] + RNG.logistic(size=50) > 1.2).astype(float)
COUNTS = RNG.integers(0, 3, size=50).astype(float)


def rows() -> Dataset:
    return Dataset.from_arrays(X, Y, aux={"w": COUNTS})


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    made = with_class_weight(rows(), "balanced")
    assert made.row_weights == pytest.approx(compute_sample_weight("balanced", Y), rel=1e-12)
    assert with_class_weight(made, "balanced") is made and with_class_weight(rows(), None).row_weights is None
    even = Dataset.from_arrays(X[:4], [0.0, 1.0, 1.0, 0.0])
    assert with_class_weight(even, "balanced").row_weights is None


def test_a_row_of_weight_two_is_two_rows() -> None:
    made = weighted_rows(with_class_weight(rows(), "balanced"), COUNTS, "w")
    left = COUNTS > 0.0
    repeated = compute_sample_weight("balanced", np.repeat(Y, COUNTS.astype(int)))
    for value in (0.0, 1.0):
        own = made.row_weights[made.y == value] / COUNTS[left & (value == Y)]  # type: ignore[index]
        assert own == pytest.approx(repeated[np.repeat(Y, COUNTS.astype(int)) == value][0], rel=1e-12)


@pytest.mark.parametrize("weights", [None, "w"])
def test_a_record_keeps_it(weights: str | None) -> None:
    how = {"folds": 3, "gammas": [0.1, 1.0], "taus": [1, 2], "loss": "logistic", "class_weight": "balanced"}
    record = solve(rows(), weights=weights, **how)  # type: ignore[arg-type]
    assert record.data.class_weight == "balanced" and record.classes is not None
    assert record.classes.null_error == pytest.approx(np.log(2.0), rel=1e-12)
    found = verify(record, rows())
    assert found.ok and not found.caveat, found.failures
    plain = replace(record, data=replace(record.data, class_weight=None))
    assert verify(plain, rows()).failures[0].field == "data.fingerprint"
    with pytest.raises(CorruptStore, match="class_weight"):
        Record.from_json(record.to_json().replace('"class_weight": "balanced"', '"class_weight": "heavy"'))


def test_a_run_is_carried_on_with_it_alone(tmp_path: Path) -> None:
    how = {"folds": 3, "gammas": [0.1, 1.0], "taus": [1, 2], "loss": "logistic"}
    place = tmp_path / "run.ck"
    first = solve(rows(), class_weight="balanced", checkpoint=place, **how)  # type: ignore[arg-type]
    again = solve(rows(), class_weight="balanced", resume=place, **how)  # type: ignore[arg-type]
    assert again.table == first.table
    with pytest.raises(BadInput, match="belongs to another run: its class-weight differs"):
        solve(rows(), resume=place, **how)  # type: ignore[arg-type]


def test_fits_on_all_rows_and_what_is_refused() -> None:
    record = best_subsets(rows(), gammas=[0.1], taus=[1], loss="logistic", class_weight="balanced")
    assert record.data.class_weight == "balanced" and verify(record, rows()).ok
    with pytest.raises(BadInput, match="class_weight balanced: requires loss logistic, not squared"):
        SearchOptions.of(class_weight="balanced")
    with pytest.raises(BadInput, match="class_weight: requires loss logistic, not squared"):
        best_subsets(rows(), gammas=[0.1], taus=[1], class_weight="balanced")
    with pytest.raises(BadInput, match="class_weight: unknown word 'balance'"):
        SearchOptions.of(loss="logistic", class_weight="balance")

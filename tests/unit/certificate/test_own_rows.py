from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate import own_rows
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.rows_of_folds import RowsOfFolds
from sparsecv_mio.errors import BadInput

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(RNG.normal(size=(15, 3)), columns=list("abc")).assign(y=lambda table: table.a - table.b)
FRAME.loc[[1, 4, 9], "a"] = np.nan
FRAME.loc[[2, 4, 14], "b"] = np.nan


def solved(**how: str) -> tuple[sc.Dataset, Record]:
    data = sc.read_dataset(FRAME, "y", na="median")
    return data, sc.solve(data, folds="3", gammas=0.1, taus="1:2", **how)


@pytest.mark.parametrize("within", ["na_within", "scale_within"])
def test_a_record_that_says_otherwise_is_refused(within: str) -> None:
    data, record = solved(**{within: "folds"})
    assert sc.verify(record, data).ok and getattr(record.request, within) == "folds"
    assert "missing values and scales of every fold, from its training rows" in sc.verify(record, data).verified
    _, by_all = solved()
    assert by_all.request.na_within is None and not own_rows.fold_preprocessing(by_all)
    assert by_all.cv_error != pytest.approx(record.cv_error, rel=1e-6)
    assert not sc.verify(replace(record, request=by_all.request), data).ok
    assert not sc.verify(replace(by_all, request=record.request, stability=None), data).ok
    assert sc.verify(replace(by_all, request=record.request), data).failures[0].field == "stability"


def test_rows_that_are_not_those_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    data, record = solved(na_within="folds")
    right = own_rows.rows_of_record(record, data, sc.make_folds("3", data))
    assert right is not None and own_rows.adapt_to_expanded_table(record).data.scale == "none"
    X = right.dataset.X.copy()
    X[right.folds.train_rows(2)[-1], 0] += 1e-3
    wrong = RowsOfFolds(replace(right.dataset, X=X), right.folds)
    monkeypatch.setattr(own_rows, "rows_of_record", lambda *_: wrong)
    failure = sc.verify(record, data).failures[0]
    assert (
        failure.field == "request.na_within"
        and failure.message == "the imputed values or scales of fold 3 differ from those of its training rows"
    )


def test_data_without_cells_that_were_filled() -> None:
    data, record = solved(na_within="folds")
    plain = sc.Dataset.from_arrays(data.X, data.y, data.names)
    with pytest.raises(BadInput, match="^na_within folds: requires na mean or median"):
        own_rows.rows_of_record(record, plain, sc.make_folds("3", plain))
    other = sc.solve(plain, folds="3", gammas=0.1, taus="1:2", scale_within="folds")
    (failure,) = sc.verify(replace(other, request=record.request), plain).failures
    assert str(failure).startswith("request.na_within: requires na mean or median")


@pytest.mark.parametrize("seed", range(20))
def test_records_of_few_rows_and_one_fold_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(8, 4)) / 2.0
    data = sc.Dataset.from_arrays(X, X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=8))
    record = sc.cross_validate(data, sc.make_folds("holdout:0.4", data), gammas=[1.0], taus=[2], scale_within="folds")
    assert sc.verify(record, data).ok

"""Every method of a record accepts the tables that `solve` accepts, read as the record states."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.utils import Bunch

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.errors import BadInput


def frame() -> pd.DataFrame:
    """Return numbers with an empty value, a column of text, a column of groups and a binary target in text."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["kind"] = np.where(X[:, 1] > 0.0, "new", "old")
    table["group"] = np.arange(40) % 8
    table["y"] = 2.0 * X[:, 0] - X[:, 2] + 0.1 * rng.normal(size=40)
    table["sold"] = np.where(table["y"] + rng.normal(size=40) > 0.0, "yes", "no")
    table.loc[4, "b"] = np.nan
    return table


def of_polars(table: pd.DataFrame) -> Any:
    return pytest.importorskip("polars", reason="polars, a peer of the tests, is not installed").DataFrame(
        {name: pa.array(table[name], from_pandas=True) for name in table}
    )


def of_duckdb(table: pd.DataFrame) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB, a peer of the tests, is not installed")
    rows = pa.Table.from_pandas(table, preserve_index=False)
    return duckdb.connect().from_arrow(rows)


def of_arrow(table: pd.DataFrame) -> Any:
    return pa.Table.from_pandas(table, preserve_index=False)


def as_it_is(table: pd.DataFrame) -> Any:
    return table


Maker = Callable[[pd.DataFrame], Any]
makers = pytest.mark.parametrize("make", [as_it_is, of_arrow, of_polars, of_duckdb])
HOW: dict[str, Any] = {
    "na": "median",
    "encode": "onehot",
    "folds": "groups:group",
    "gammas": [0.01, 0.1],
    "taus": "1:2",
}


@pytest.fixture(scope="module")
def record() -> Record:
    return sc.solve(frame(), "y", drop=["sold"], **HOW)


@makers
def test_a_table_is_read_as_the_frame_of_pandas(make: Maker) -> None:
    how: dict[str, Any] = {"drop": ["sold"], "na": "median", "encode": "onehot", "aux": ["group"]}
    ours = sc.Dataset.from_frame(frame(), "y", **how)
    assert sc.Dataset.from_frame(make(frame()), "y", **how).fingerprint == ours.fingerprint
    assert sc.read_dataset(make(frame()), "y", **how).fingerprint == ours.fingerprint
    plain = frame()[["a", "c"]]
    assert sc.Dataset.from_arrays(make(plain), frame()["y"]).names == ("a", "c")


@makers
def test_a_record_takes_the_table_that_solve_took(make: Maker, record: Record, tmp_path: Path) -> None:
    table = make(frame())
    found = sc.solve(make(frame()), "y", drop=["sold"], **HOW)
    assert (found.cv_error, found.data.fingerprint) == (record.cv_error, record.data.fingerprint)
    sc.verify(record, table).raise_if_failed()
    assert record.predict(table) == pytest.approx(record.predict(frame()), abs=0.0)
    ends = record.predict_interval(table, 0.8, data=table)
    assert ends.shape == (40, 2) and (ends == record.predict_interval(frame(), 0.8, data=frame())).all()
    record.write_report(tmp_path / "a.md", table)
    assert "standardised" in (tmp_path / "a.md").read_text()
    assert record.plot_coefficients(data=table).get_title(loc="left")
    assert record.plot(table).get_axes()


@makers
def test_a_record_of_two_classes_takes_the_table(make: Maker) -> None:
    found = sc.solve(frame(), "sold", loss="logistic", drop=["y", "group"], na="drop", encode="onehot",
                     folds="3", gammas=[1.0], taus=[1])  # fmt: skip
    table = make(frame())
    sc.verify(found, table).raise_if_failed()
    for draw in (found.plot_roc, found.plot_calibration):
        with pytest.raises(BadInput, match="^data: plot_[a-z]+ requires the data of the record; give data=, as"):
            draw()
    assert found.plot_roc(table).get_title(loc="left") and found.plot_calibration(table).get_title(loc="left")


def test_a_record_takes_its_file(record: Record, tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "rows.csv", index=False)
    sc.verify(record, tmp_path / "rows.csv").raise_if_failed()
    record.write_report(str(tmp_path / "a.md"), str(tmp_path / "rows.csv"))


def test_a_path_compares_its_models_by_a_table() -> None:
    data = sc.Dataset.from_frame(frame()[["a", "c", "y"]], "y")
    path = sc.best_subsets(data, gammas=0.0, taus=[1, 2])
    assert path.to_frame(of_arrow(frame())).equals(path.to_frame(data))


def test_a_path_of_counts_has_numbers_in_every_column_of_its_criteria() -> None:
    table = frame()[["a", "c"]].assign(y=np.arange(40) % 5)
    path = sc.best_subsets(table, "y", loss="poisson", gammas=0.1, taus=[0, 1])
    criteria = path.to_frame(table)
    numbers = criteria.drop(columns=["support", "coefficients"])
    assert all(kind.kind in "biuf" for kind in numbers.infer_objects().dtypes)
    expected = path.path[0].intercept
    chi_square = float(np.sum((table["y"] - np.exp(expected)) ** 2)) / np.exp(expected)
    assert criteria["pearson"][0] == pytest.approx(chi_square / 39.0) and criteria["pearson_standard_error"][0] > 0.0
    classes = sc.best_subsets(table.assign(y=np.arange(40) % 2), "y", loss="logistic", gammas=0.1, taus=[1])
    assert "pearson" not in classes.to_frame(table.assign(y=np.arange(40) % 2))


@makers
def test_estimators_take_the_table(make: Maker) -> None:
    X = frame()[["a", "c"]]
    model = sc.BestSubsetRidgeCV(gammas=[0.1], taus=[1, 2]).fit(make(X), frame()["y"])
    assert list(model.feature_names_in_) == ["a", "c"]
    assert (model.predict(make(X)) == model.predict(X)).all()


def test_other_data_are_refused_in_one_line(record: Record) -> None:
    with pytest.raises(BadInput, match="^the data are of other|differ"):
        record.plot(frame().assign(a=1.0))
    assert not sc.verify(record, frame().assign(a=1.0)).ok
    with pytest.raises(BadInput, match="^data: a list is not a table in memory; give a table of pandas, polars"):
        sc.solve([1.0, 2.0], "y")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"^data: a Bunch is not a table in memory; give its attribute \.frame$"):
        sc.solve(Bunch(frame=None), "y")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="^data: .* is not a table that can be read"):
        sc.Dataset.from_frame(pa.chunked_array([[1.0, 2.0]]), "y")


def test_a_lazy_frame_is_to_be_collected() -> None:
    polars = importlib.import_module("polars") if importlib.util.find_spec("polars") else None
    if polars is None:
        pytest.skip("polars, a peer of the tests, is not installed")
    with pytest.raises(BadInput, match=r"^data: a LazyFrame is not a table in memory; call its \.collect\(\) first$"):
        sc.solve(polars.LazyFrame({"a": [1.0], "y": [2.0]}), "y")

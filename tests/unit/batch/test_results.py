"""A collected table: rows chosen, numbers over those of a baseline, labels, one row for each problem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.batch.run_tables import check_columns, labels, read_table, relative, tabulate_problems, where
from sparsecv_mio.errors import BadInput

RUNS = pd.DataFrame(
    {
        "data": ["a", "a", "b", "b", "b"],
        "folds": ["10", "10", "10", "10", "loo"],
        "method": ["grid", "rounds", "grid", "rounds", "rounds"],
        "gammas": [0.1, 0.10, 0.1, 0.1, None],
        "formulation": [None, "outer", None, "outer", "outer"],
        "mios": pd.array([100, 20, 50, 60, None], dtype="Int64"),
    }
)


def test_rows_by_words_and_by_numbers() -> None:
    assert len(where(RUNS, ["folds=10,loo", "gammas=1e-1"])) == 4
    assert list(where(RUNS, ["gammas="]).index) == [4]
    assert len(where(RUNS, ["method=rounds", "data=b"])) == 2
    for wrong, message in [
        ("data", "not a condition"),
        ("date=a", "did you mean 'data'"),
        ("data=c", "values of data are a, b"),
    ]:
        with pytest.raises(BadInput, match=message):
            where(RUNS, [wrong])


def test_labels_leave_out_what_is_missing() -> None:
    found = labels(RUNS, ["method", "formulation"], {"rounds outer": "ours"})
    assert list(found) == ["grid", "ours", "grid", "ours", "ours"] and list(found.cat.categories) == ["ours", "grid"]
    numbers = labels(pd.DataFrame({"k": ["10", "2", "loo", "b", None]}), ["k"])
    assert list(numbers.cat.categories) == ["", "2", "10", "b", "loo"]


def test_missing_whole_numbers_have_no_label() -> None:
    assert list(labels(RUNS, ["method", "mios"])) == ["grid 100", "rounds 20", "grid 50", "rounds 60", "rounds"]
    assert list(where(RUNS, ["mios="]).index) == [4]


def test_numbers_over_those_of_a_baseline() -> None:
    ratio = relative(RUNS, ["mios"], "method=grid")["mios"]
    assert list(ratio[:4]) == [1.0, 0.2, 1.0, 1.2] and np.isnan(ratio[4])
    less = relative(RUNS, ["mios"], "method=grid", reduction=True)["mios"]
    assert np.allclose(less[:4], [0.0, 80.0, 0.0, -20.0])
    with pytest.raises(BadInput, match=r"several rows for '10'.*--problem"):
        relative(RUNS, ["mios"], "method=grid", ["folds"])
    with pytest.raises(BadInput, match="--relative method=joint: no row"):
        relative(RUNS, ["mios"], "method=joint")
    with pytest.raises(BadInput, match="does not contain numbers"):
        check_columns(RUNS, ["folds"], "--value", numbers=True)


def test_one_row_for_each_problem() -> None:
    table = tabulate_problems(RUNS, "mios", labels(RUNS, ["method"]), ["data", "folds"])
    assert list(table.columns) == ["grid", "rounds"]
    assert table.loc["a 10"].tolist() == [100.0, 20.0] and np.isnan(table.loc["b loo", "grid"])


def test_files_that_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("data,state\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "no.parquet").write_text("no table")
    for name, message in [("empty.csv", "no rows"), ("other.csv", "was not written by"),
                          ("no.parquet", "cannot be read"), ("none.csv", "does not exist"),
                          ("a.json", "must end with .parquet or .csv")]:  # fmt: skip
        with pytest.raises(BadInput, match=message):
            read_table(tmp_path / name)

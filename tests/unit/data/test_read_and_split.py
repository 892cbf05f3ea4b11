"""Reading and splitting: the option of a missing column is named, and folds follow the rows with a weight."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.readers import read_data, requested_columns, split_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.targets import TargetColumns

FRAME = {"a": [1.0, 2.0, 4.0, 5.0], "y": [1.0, 0.0, 2.0, 3.0], "w": [0.0, 1.0, 2.0, 1.0], "g": [0, 0, 1, 2]}


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("folds", {"folds": "groups:nope"}),
        ("weights", {"weights": "nope"}),
        ("id", {"id": "nope"}),
        ("exposure", {"of_target": TargetColumns(exposure="nope")}),
        ("offset", {"of_target": TargetColumns(offset="nope")}),
    ],
)
def test_the_option_of_a_missing_column_is_named(option: str, wanted: dict[str, Any]) -> None:
    import pandas as pd

    with pytest.raises(BadInput, match=f"^{option}: column 'nope' is not in the data"):
        read_data(pd.DataFrame(FRAME), "y", {}, requested_columns(**wanted))


def test_rows_of_weight_zero_are_in_no_fold() -> None:
    import pandas as pd

    columns = requested_columns("groups:g", "w")
    rows = read_data(pd.DataFrame(FRAME), "y", {}, columns)
    assert rows.names == ("a",) and read_data(rows, None, {}, columns) is rows
    data, plan = split_rows(rows, "groups:g", weights="w")
    assert data.n == 3 and plan.k == 3 and plan.spec == "groups:g weighted"
    again = split_rows(data, "loo")[1]
    assert again.k == 3 and again.spec == "loo weighted"
    with pytest.raises(BadInput, match="already have the weights"):
        split_rows(data, "loo", weights="w")
    with pytest.raises(BadInput, match="read the data with aux="):
        split_rows(Dataset.from_arrays(np.eye(3), np.arange(3.0)), "loo", weights="w")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (np.eye(3), "data: a ndarray is not a table in memory; give .* or Dataset.from_arrays"),
        ("-", "file '-': data cannot be read from standard input; give the path of a file"),
    ],
)
def test_data_that_are_no_table_are_refused_before_a_missing_target(data: Any, said: str) -> None:
    with pytest.raises(BadInput, match=f"^{said}"):
        sc.solve(data, "y" if isinstance(data, str) else None)


def test_tables_are_read_as_solve_reads_them(tmp_path: Path) -> None:
    frame = pd.DataFrame({
        "a": [float(k * k % 13) for k in range(24)], "b": [None, *(float(k * k % 7) for k in range(23))],
        "ill": ["yes", "no", "no"] * 8, "y": [float(k * k % 11) for k in range(24)],
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    how: dict[str, Any] = {"target": "y", "drop": ["ill"], "na": "mean"}
    data = sc.read_dataset(frame, "y", drop=["ill"], na="mean")
    path, near = best_subsets(data, gammas=[0.1]), near_optimal(data, "3", gamma=0.1, taus=1)
    for table in (frame, tmp_path / "t.csv"):
        assert best_subsets(table, gammas=[0.1], **how).path == path.path
        assert near_optimal(table, "3", gamma=0.1, taus=1, **how).models == near.models
    assert best_subsets(frame, target="ill", na="mean", gammas=[0.1], loss="logistic").data.target == "ill"
    with pytest.raises(BadInput, match="target: no column is given"):
        best_subsets(frame, gammas=[0.1])
    with pytest.raises(BadInput, match="na: applies to a file or a frame"):
        near_optimal(data, "3", na="mean")
    with pytest.raises(BadInput, match="cross_validate needs a Dataset, .*; solve takes a frame or a file"):
        sc.cross_validate(frame, "3", gammas=[0.1], taus=[1])  # type: ignore[arg-type]


def test_a_record_is_not_a_table(tmp_path: Path) -> None:
    data = sc.Dataset.from_arrays(np.arange(24.0).reshape(12, 2) % 7, np.arange(12.0) % 5)
    file = tmp_path / "answer.json"
    sc.solve(data, folds=3, gammas=[0.1], taus=[1]).write_record(file)
    for target in (None, "y"):
        with pytest.raises(BadInput, match=r"answer.json' is a record, not a table of data; give the data from which"):
            sc.near_optimal(file, target=target)
    (tmp_path / "other.json").write_text('[{"a": 1}]')
    with pytest.raises(BadInput, match="must first be read with pandas"):
        sc.near_optimal(tmp_path / "other.json", target="a")


@pytest.mark.parametrize(
    ("column", "cell", "options", "message"),
    [
        ("e", -1.0, {"loss": "poisson", "exposure": "e"}, "exposure: column 'e' is -1 in row 11"),
        ("e", "bad", {"loss": "poisson", "exposure": "e"}, "exposure: column 'e' is 'bad' in row 11"),
        ("o", 99.0, {"loss": "poisson", "offset": "o"}, "offset: column 'o' is 99 in row 11"),
        ("y", -2.0, {"loss": "poisson"}, "target 'y' is -2 in row 11"),
        ("k", 0.5, {"loss": "logistic", "trials": "k"}, "trials: column 'k' is 0.5 in row 11"),
        ("y", 9.0, {"loss": "logistic", "trials": "k"}, "trials: target 'y' is 9 in row 11"),
        ("w", -1.0, {"weights": "w"}, "w is -1 in row 11"),
        ("g", None, {"folds": "groups:g"}, "column 'g' has no id in row 11"),
    ],
)
def test_messages_number_the_rows_of_the_file_after_rows_were_dropped(
    column: str, cell: object, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """The message on a row of the file has its number there, and names the option that skips its line."""
    a = [np.nan, *np.arange(19.0)]
    frame = pd.DataFrame({"a": a, "y": [1.0, 2.0] * 10, "e": 1.0, "o": 0.5, "k": 3.0, "w": 1.0, "g": [1, 2, 3, 4] * 5})
    frame[column] = frame[column].astype(object)
    frame.loc[10, column] = cell
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (tmp_path / "t.csv", frame):
        with pytest.raises(BadInput, match=re.escape(message)) as raised:
            sc.solve(data, "y", features=["a"], na="drop", taus=1, gammas=[1.0], **{"folds": 4, **options})
    assert ('skip_lines="N"' in str(raised.value)) == (column in "eok")

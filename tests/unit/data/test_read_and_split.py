"""Reading and splitting: the option of a missing column is named, and folds follow the rows with a weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import TargetColumns
from sparsecv_mio.data.readers import read_data, requested_columns, split_rows
from sparsecv_mio.errors import BadInput

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

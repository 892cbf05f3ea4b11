"""Columns of a pandas frame: copied, typed, and refused by name and row."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput

FRAME = pd.DataFrame(
    {"a": [1, 2], "b": [True, False], "c": pd.array([1.5, 2.5], dtype="Float64"), "d": [Decimal("0.5"), 3],
     "g": ["u", "v"], "y": [0.0, 1.0]}
)  # fmt: skip


def test_types_become_floats_and_nothing_is_shared() -> None:
    frame = FRAME.copy()
    found = Dataset.from_frame(frame, "y", aux=["g"])
    assert found.names == ("a", "b", "c", "d") and found.target == "y"
    assert found.X.tolist() == [[1.0, 1.0, 1.5, 0.5], [2.0, 0.0, 2.5, 3.0]] and found.y.tolist() == [0.0, 1.0]
    assert found.aux["g"].tolist() == ["u", "v"]
    frame.loc[0, "y"] = 9.0
    frame.loc[0, "a"] = 9
    assert found.y[0] == 0.0 and found.X[0, 0] == 1.0


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ([1.0, None], "'z' is empty in row 2"),
        (pd.array([1, None], dtype="Int64"), "'z' is empty in row 2"),
        (["1", 2], "'z' holds text '1' in row 1, which is a number: turn the column into numbers"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "'z'"),
    ],
)
def test_what_is_no_number_is_named(column: object, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        Dataset.from_frame(FRAME.assign(z=column).drop(columns="g"), "y")


def test_ids_with_holes_stay_objects() -> None:
    found = Dataset.from_frame(FRAME.assign(k=[1.0, np.nan]), "y", features=["a"], aux=["k"])
    assert found.aux["k"].dtype == object and found.names == ("a",)

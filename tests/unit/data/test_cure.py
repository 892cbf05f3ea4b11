"""Means and words are learnt once, and new rows are read by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.data.cure import RawColumn
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.marks import Way
from sparsecv_mio.data.readers import read_dataset, read_rows
from sparsecv_mio.errors import BadInput

FRAME = pd.DataFrame({
    "age": [30.0, None, 40.0, 50.0], "city": ["Rome", "Oslo", None, "Rome"], "smoker": ["Yes", "no", "No", "yes"],
    "y": [1.0, 2.0, 3.0, None],
})  # fmt: skip


def test_cells() -> None:
    column = RawColumn.of("a", [1, " 2,5 ", "x", None, "NA", np.nan, True, pd.NA, "1e3"], Way(",", None))
    assert np.array_equal(column.numbers, [1, 2.5, np.nan, np.nan, np.nan, np.nan, 1, np.nan, 1000], equal_nan=True)
    assert column.empty.tolist() == [False, False, False, True, True, True, False, True, False]
    assert column.others == {2: "x"} and not column.is_words
    few = column.at(np.array([1, 2]))
    assert few.others == {1: "x"} and few.is_words and few.levels() == ("2.5", "x")


def test_a_frame_is_cured_and_says_so() -> None:
    data = Dataset.from_frame(FRAME, "y", na="mean", encode="onehot")
    assert data.names == ("age", "city=Oslo", "city=Rome", "city=(missing)", "smoker")
    assert data.X.tolist() == [[30, 0, 1, 0, 1], [35, 1, 0, 0, 0], [40, 0, 0, 1, 0]] and data.y.tolist() == [1, 2, 3]
    assert data.reading is not None
    assert data.reading.means == {"age": 35.0} and data.reading.left_out == 1
    assert data.reading.levels == {"city": ("Oslo", "Rome", "(missing)"), "smoker": ("no", "yes")}
    assert data.reading.notes == (
        "1 of 4 rows without a target left out",
        "1 empty cell filled with the mean of their column over all rows, held-out ones included, in 'age'",
    )
    coded = Dataset.from_frame(FRAME, "y", na="drop", encode="ordinal")
    assert coded.names == ("age", "city", "smoker") and coded.X.tolist() == [[30.0, 0.0, 1.0]]


def test_new_rows_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    FRAME.to_csv(path, index=False)
    learnt = read_dataset(path, "y", na="mean", encode="onehot").reading
    path.write_text("smoker,city,age\nNO,Oslo,\nyes,,20\n")
    rows, known, _ = read_rows(path, ["age", "city=Oslo", "smoker"], "y", learnt)
    assert not known and set(rows.names) == {"city=Oslo", "city=Rome", "city=(missing)", "smoker", "age"}
    place = {name: k for k, name in enumerate(rows.names)}
    assert rows.X[:, place["age"]].tolist() == [35.0, 20.0] and rows.X[:, place["smoker"]].tolist() == [0.0, 1.0]
    assert rows.X[:, [place["city=Oslo"], place["city=(missing)"]]].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    path.write_text("smoker,city,age\nno,Paris,1\n")
    with pytest.raises(BadInput, match="column 'city' holds 'Paris' in row 1, none of its words: Oslo, Rome"):
        read_rows(path, ["city=Oslo"], "y", learnt)
    path.write_text("smoker,age\n,1\n")
    with pytest.raises(BadInput, match="column 'smoker' is empty in row 1"):
        read_rows(path, ["smoker"], "y", learnt)


def test_new_rows_may_have_gaps_where_the_first_had_none(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n1,2,3\n3,,1\n5,4,2\n")
    data = read_dataset(path, "y", na="mean")
    assert data.reading is not None and data.reading.means == {"a": 3.0, "b": 3.0}
    assert data.reading.notes[0].endswith("in 'b'")
    path.write_text("a,b\n,1\n")
    assert read_rows(path, ["a", "b"], "y", data.reading).data.X.tolist() == [[3.0, 1.0]]


def test_two_words_of_a_target(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("a,y\n1,sick\n2,healthy\n3,sick\n")
    data = read_dataset(path, "y", two_words=True)
    assert data.y.tolist() == [1.0, 0.0, 1.0] and data.reading is not None
    assert data.reading.notes == ("target 'y': 'healthy' is the smaller value, 'sick' the larger",)
    path.write_text("a,y\n1,sick\n2,healthy\n3,unsure\n")
    with pytest.raises(BadInput, match="target 'y' holds 3 words: give it numbers, or two words"):
        read_dataset(path, "y", two_words=True)
    with pytest.raises(BadInput, match="column 'y' holds text 'sick'"):
        read_dataset(path, "y")

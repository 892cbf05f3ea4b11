"""Fold ids of a column and of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput

from .plans import check, data_of, refused


def test_column_ids_are_numbers_or_text_and_minus_one_is_never_held_out() -> None:
    data = data_of(6, f=["10", "2", "2", "10", "2", "10"], g=np.array([2.0, 1, 1, 2, -1, -1]), h=[9, 10, 9, 10, 11, 11])
    with pytest.raises(BadInput, match="no row with fold id 3 although ids run from 2 to 10"):
        make_folds("column:f", data)
    plan = make_folds("column:g", data)
    check(plan, 6)
    assert plan.labels.tolist() == [1, 0, 0, 1, -1, -1]
    assert make_folds("column:h", data).labels.tolist() == [0, 1, 0, 1, 2, 2]
    text = data_of(4, f=np.array(["late", "early", "late", "early"], dtype=object))
    assert make_folds("column:f", text).labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("header", ["", "fold\n", "\ufefffold\n", '"the fold"\n'])
def test_fold_file_with_and_without_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "folds.csv"
    path.write_text(header + "1\n2\n\n3\n1\n2\n3\n", encoding="utf-8")
    assert make_folds(f"file:{path}", data_of(6)).labels.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("header", ["", "first,second\n"])
def test_fold_file_with_a_column_per_repeat(tmp_path: Path, header: str) -> None:
    path = tmp_path / "folds.csv"
    path.write_text(header + "1,1\n2,-1\n1,-1\n2,1\n")
    plan = make_folds(f"file:{path}", data_of(4))
    assert [plan.scored_rows(j).tolist() for j in range(plan.k)] == [[0, 2], [1, 3], [0, 3]] and plan.repeats == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n1\n", "has 3 lines but the data has 4 rows"),
        ("fold\n1\n2\n1\n", "has 3 ids below its header but the data has 4 rows"),
        ("1,2\n2,2\n3\n1\n", "has 1 columns in line 3 and 2 in the first"),
        ("1,2\n2,1\n1,2\n2,2\n3,3\n1,1\n", "has 6 lines but the data has 4 rows"),
        ("1,1\n2,1\n1,3\n2,3\n", "column 2 has no row with fold id 2"),
        ("1\n2\n4\n4\n", "no row with fold id 3"),
        ("1\n1\n1\n1\n", "single fold"),
        ("1\n2\n1\n2\n1\n2\n", "has 6 lines but the data has 4 rows"),
        ("", "has 0 lines"),
        ('1\n""\n2\n2\n', "has no id in row 2"),
    ],
)
def test_bad_fold_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "folds.csv"
    path.write_text(text)
    refused(message, f"file:{path}", data_of(4))

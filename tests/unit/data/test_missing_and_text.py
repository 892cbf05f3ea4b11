"""Cells that cannot be numbers: one line with column and row."""

from __future__ import annotations

import csv
import re
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.column_faults import Fault
from sparsecv_mio.data.columns import RawColumn
from sparsecv_mio.data.dataset import Dataset, check_finite
from sparsecv_mio.data.readers import read_dataset, read_new_rows
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.row_structure import find_subjects, numbers_rows, quote_names
from sparsecv_mio.data.standard import stand_in_notes
from sparsecv_mio.data.table_facts import describe_target
from sparsecv_mio.errors import BadInput, SparseCVWarning


@pytest.mark.parametrize(
    ("value", "is_missing", "said"),
    [
        ("", True, "'a' is empty in row 3 (line 4)"),
        ("N/A", True, "'a' has the missing-value code 'N/A' in row 3 (line 4)"),
        ("five", False, "'a' holds text 'five' in row 3 (line 4)"),
        ("x" * 50, False, f"'a' holds text '{'x' * 27}...' in row 3 (line 4)"),
        (float("inf"), False, "'a' holds inf in row 3 (line 4)"),
    ],
)
def test_what_a_cell_holds_is_said(value: str | float, is_missing: bool, said: str) -> None:
    assert Fault(column("a", []), 3, value, 1, is_missing).describe(4) == said


@pytest.mark.parametrize("wide", [False, True])
def test_the_first_bad_row_is_named(wide: bool) -> None:
    p = 400_000 if wide else 2  # wide: the rows are checked three at a time
    X, y, names = np.zeros((7, p)), np.zeros(7), [f"x{j}" for j in range(p)]
    check_finite(X, y, names, "y")
    y[5] = np.nan
    with pytest.raises(BadInput, match="column 'y' holds nan in row 6"):
        check_finite(X, y, names, "y")
    X[4, 1] = -np.inf
    with pytest.raises(BadInput, match="column 'x1' holds -inf in row 5"):
        check_finite(X, y, names, "y")


def test_numbers_that_stand_for_nothing() -> None:
    X = np.column_stack([np.arange(8.0), np.full(8, 99.0), 20.0 * np.arange(8)])
    assert stand_in_notes(X, X[:, 0], "abc", "y") == ()
    X[3, 0], X[5, 2] = -999.0, 9999.0
    notes = stand_in_notes(X, np.array([1.0, 99.0, 2, 3, 4, 5, 6, 7]), "abc", "y")
    assert [note[:21] for note in notes] == ["column 'a' holds -999", "column 'c' holds 9999", "column 'y' holds 99, "]
    X[:, 2] = [9000.0, 9999.0, 3.0, 700.0, 20.0, 8000.0, 1.0, 2.0]
    assert len(stand_in_notes(X, X[:, 1], "abc", "y")) == 1


FRAME = pd.DataFrame({
    "age": [30.0, None, 40.0, 50.0], "city": ["Rome", "Oslo", None, "Rome"], "smoker": ["Yes", "no", "No", "yes"],
    "y": [1.0, 2.0, 3.0, None],
})  # fmt: skip


def test_cells() -> None:
    column = RawColumn.from_cells(
        "a", [1, " 2,5 ", "x", None, "NA", np.nan, True, pd.NA, "1e3"], Reading.from_keywords(decimal=",")
    )
    assert np.array_equal(column.numbers, [1, 2.5, np.nan, np.nan, np.nan, np.nan, 1, np.nan, 1000], equal_nan=True)
    assert column.empty.tolist() == [False, False, False, True, True, True, False, True, False]
    assert column.texts == {2: "x"} and not column.has_text_values
    few = column.select_rows(np.array([1, 2]))
    assert few.texts == {1: "x"} and few.has_text_values and few.levels() == ("2.5", "x")


def test_a_frame_is_cured_and_says_so() -> None:
    data = Dataset.from_frame(FRAME, "y", na="mean", encode="onehot")
    assert data.names == ("age", "city=Oslo", "city=Rome", "city=(missing)", "smoker")
    assert data.X.tolist() == [[30, 0, 1, 0, 1], [35, 1, 0, 0, 0], [40, 0, 0, 1, 0]] and data.y.tolist() == [1, 2, 3]
    assert data.reading is not None
    assert data.reading.means == {"age": 35.0} and data.reading.left_out == 1
    assert data.reading.levels == {"city": ("Oslo", "Rome", "(missing)"), "smoker": ("no", "yes")}
    assert data.reading.notes == (
        "1 of 4 rows without a target dropped",
        "1 missing value imputed by the mean of its column over all rows, held-out ones included, in 'age'",
        "1 missing value of 'city' is a separate level, city=(missing)",
        "column 'smoker': 'No' and 'no' count as one value",
    )
    coded = Dataset.from_frame(FRAME, "y", na="drop", encode="ordinal", order={"city": ["Rome", "Oslo"]})
    assert coded.names == ("age", "city", "smoker") and coded.X.tolist() == [[30.0, 0.0, 1.0]]


SIZES = ["small", "medium", "large"]


@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_ordered_categories_are_coded_in_their_declared_order(tmp_path: Path, kind: str) -> None:
    words = ["large", "small", "large", "small"]  # no row is medium
    frame = pd.DataFrame({"size": pd.Categorical(words, SIZES, ordered=True), "y": [3.0, 1.0, 3.5, 1.5]})
    frame.to_parquet(tmp_path / "t.parquet")
    data = read_dataset(frame if kind == "frame" else tmp_path / "t.parquet", "y", encode="ordinal")
    assert data.X.ravel().tolist() == [2.0, 0.0, 2.0, 0.0] and data.reading is not None
    assert data.reading.levels == {"size": tuple(SIZES)} == data.reading.how.orders
    pd.DataFrame({"size": ["medium"]}).to_csv(tmp_path / "new.csv", index=False)
    assert read_new_rows(tmp_path / "new.csv", ["size"], "y", data.reading).data.X.tolist() == [[1.0]]
    onehot = read_dataset(frame, "y", encode="onehot")
    assert onehot.names == ("size=small",)


def test_an_order_codes_one_column_and_encode_the_others(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("size,town,y\n<M,u,1\nlarge,v,2\nsmall,w,3\n")
    with pytest.raises(
        BadInput, match="^columns 'size', 'town': the text values have no declared order .<M, large, small.; "
    ):
        read_dataset(path, "y", encode="ordinal")
    for order in ('size=small<"<M"<large', {"size": ["small", "<M", "large"]}, ['size=small<"<M"<large']):
        data = read_dataset(path, "y", encode="onehot", order=order)
        assert data.names == ("size", "town=u", "town=v", "town=w") and data.X[:, 0].tolist() == [1.0, 2.0, 0.0]
    assert read_dataset(path, "y", order=order, features=["size"]).X.tolist() == [[1.0], [2.0], [0.0]]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("size=small<large", r"order: column 'size', row 2 \(index 1\): 'medium' has no rank; add it to"),
        ("sise=small<large", "order: 'sise' is not a feature .did you mean 'size'.+; give a text column"),
        ("n=1<2", r"order: column 'n', row 3 \(index 2\): '3' has no rank; add it to the order"),
        ("size", "order: 'size' is not a column with its values; give the values"),
        ("size=small", "order: .'small'. is not a list of two or more different values for column 'size'; give"),
        (["size=a<b", "size=b<a"], "order: column 'size' is given twice; give the values"),
    ],
)
def test_an_order_that_does_not_fit_is_refused(order: object, said: str) -> None:
    frame = pd.DataFrame({"size": ["small", "medium", "large"], "n": [1, 2, 3], "y": [1.0, 2.0, 4.0]})
    with pytest.raises(BadInput, match=f"^{said}"):
        read_dataset(frame, "y", order=order)


def test_new_rows_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    FRAME.to_csv(path, index=False)
    learnt = read_dataset(path, "y", na="mean", encode="onehot").reading
    path.write_text("smoker,city,age\nNO,Oslo,\nyes,,20\n")
    new = read_new_rows(path, ["age", "city=Oslo", "smoker"], "y", learnt)
    rows = new.data
    assert not new.has_target.any() and set(rows.names) == {"city=Oslo", "city=Rome", "city=(missing)", "smoker", "age"}
    place = {name: k for k, name in enumerate(rows.names)}
    assert rows.X[:, place["age"]].tolist() == [35.0, 20.0] and rows.X[:, place["smoker"]].tolist() == [0.0, 1.0]
    assert rows.X[:, [place["city=Oslo"], place["city=(missing)"]]].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    path.write_text("smoker,city,age\nno,Paris,1\n")
    words = (
        r"column 'city' holds 'Paris' in row 1, but its values in the data of the model are Oslo, Rome \(an empty cell "
        r"counts as missing\)$"
    )
    with pytest.raises(BadInput, match=words):
        read_new_rows(path, ["city=Oslo"], "y", learnt)
    path.write_text("smoker,age\n,1\n")
    with pytest.raises(BadInput, match="column 'smoker' is empty in row 1"):
        read_new_rows(path, ["smoker"], "y", learnt)


def test_all_words_that_no_model_knows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    FRAME.to_csv(path, index=False)
    learnt = read_dataset(path, "y", na="mean", encode="onehot").reading
    path.write_text("smoker,city,age\nno,Paris,1\nperhaps,Rome,2\nno,Wien,3\nno,Paris,4\n")
    with pytest.raises(BadInput) as refused:
        read_new_rows(path, ["city=Oslo", "smoker"], "y", learnt)
    city = (
        "column 'city' holds 'Paris' in row 1, 'Wien' in row 3, but its values in the data of the model are Oslo, Rome"
    )
    city += " (an empty cell counts as missing)"
    assert str(refused.value) == (
        f"column 'smoker' holds 'perhaps' in row 2, but its values in the data of the model are no, yes; {city}"
    )


def test_new_rows_may_have_gaps_where_the_first_had_none(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n1,2,3\n3,,1\n5,4,2\n")
    data = read_dataset(path, "y", na="mean")
    assert data.reading is not None and data.reading.means == {"a": 3.0, "b": 3.0}
    assert data.reading.notes[0].endswith("in 'b'")
    path.write_text("a,b\n,1\n")
    assert read_new_rows(path, ["a", "b"], "y", data.reading).data.X.tolist() == [[3.0, 1.0]]


def test_medians_and_columns_that_say_what_was_empty(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,y\n1,2,5,3\n3,,1,4\n8,4,,2\n2,9,3,1\n")
    data = read_dataset(path, "y", na="median", na_indicator=True)
    assert data.names == ("a", "b", "b=(missing)", "c", "c=(missing)")
    assert data.X[:, 1:].tolist() == [[2, 0, 5, 0], [4, 1, 1, 0], [4, 0, 3, 1], [9, 0, 3, 0]]
    assert data.reading is not None and data.reading.means == {"a": 2.5, "b": 4.0, "c": 3.0}
    assert data.reading.notes[0].startswith("2 missing values imputed by the median of their column over all rows")
    assert data.holes is not None and np.argwhere(data.holes).tolist() == [[1, 1], [2, 3]]
    held = data.take(np.array([2, 0])).holes
    assert held is not None and np.argwhere(held).tolist() == [[0, 3]]
    path.write_text("c,b,a\n,1,\n7,,2\n")
    rows = read_new_rows(path, ["a", "b", "b=(missing)", "c=(missing)"], "y", data.reading).data
    new = {name: rows.X[:, k].tolist() for k, name in enumerate(rows.names)}
    assert new == {"a": [2.5, 2], "b": [1, 4], "b=(missing)": [0, 1], "c": [3, 7], "c=(missing)": [1, 0]}
    with pytest.raises(BadInput, match="^na_indicator: requires na mean or na median; na drop imputes no value$"):
        read_dataset(path, "a", na="drop", na_indicator=True)
    frame = pd.DataFrame({"a": [1.0, None, 4.0], "a=(missing)": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(BadInput, match=r"would add a second column with the name 'a=\(missing\)'"):
        Dataset.from_frame(frame, "y", na="mean", na_indicator=True)


def test_two_words_of_a_target(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("a,y\n1,sick\n2,healthy\n3,sick\n")
    data = read_dataset(path, "y", two_words=True)
    assert data.y.tolist() == [1.0, 0.0, 1.0] and data.reading is not None
    assert data.reading.notes == ("target 'y': 'healthy' is the smaller value, 'sick' the larger",)
    path.write_text("a,y\n1,sick\n2,healthy\n3,unsure\n")
    with pytest.raises(
        BadInput, match="target 'y' has 3 text values; a target of more than two classes is not supported"
    ):
        read_dataset(path, "y", two_words=True)
    with pytest.raises(BadInput, match="^target 'y' has 3 text values; a target of more than two classes is not supp"):
        read_dataset(path, "y")
    path.write_text("a,y\nu,sick\nv,healthy\nu,unsure\n")
    with pytest.raises(BadInput, match="^target 'y' has 3 text values; a target of more than two classes"):
        read_dataset(path, "y")


RISING = np.exp(np.linspace(-1, 6, 40))


def column(name: str, cells: Any) -> RawColumn:
    return RawColumn.from_cells(name, list(cells), Reading())


def test_numbers_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    shuffled = (rng.permutation(20) + 1).tolist()
    assert numbers_rows(column("a", range(1, 5))) == numbers_rows(column("a", range(20))) == "numbers the rows"
    assert numbers_rows(column("a", shuffled)) == "has each number from 1 to 20 once: numbers the rows"
    assert "its name suggests" in numbers_rows(column("patient_id", rng.permutation(1000)[:20].tolist()))
    assert "its name suggests" in numbers_rows(column("customerId", range(1001, 1021)))
    assert numbers_rows(column("subject_no", [k + 10000 for k in shuffled])) == (
        "has each number from 10001 to 10020 once: numbers the rows"
    )
    assert "its name suggests" in numbers_rows(column("subject_id", [k + 1000 * (k > 9) + 10000 for k in shuffled]))
    others: list[tuple[str, Any]] = [
        ("students", [k * k for k in shuffled]), ("year", [k + 1950 for k in shuffled]), ("x", range(5, 25)),
        ("a", [3, 1, 2, 4]), ("year", range(1950, 1970)), ("acid", [7, 9, 1, 5, 3]), ("id", [1, 2, 3, 3]),
        ("id", [1, 2, None, 4]), ("id", [0.5, 1.5, 2.5, 3.5]),
    ]  # fmt: skip
    for name, cells in others:
        assert numbers_rows(column(name, cells)) == ""


def test_subjects_that_are_measured_again() -> None:
    who, visit = [f"s{k // 3}" for k in range(18)], [k % 3 + 1 for k in range(18)]
    found = find_subjects([column("a", np.linspace(0, 1, 18).tolist()), column("who", who), column("visit", visit)])
    assert found is not None and (found.column, found.visit, found.count) == ("who", "visit", 6)
    assert found.option == "--folds groups:who" and "'visit'" in found.note
    assert find_subjects([column("Patient ID", [k // 3 + 1 for k in range(18)]), column("t", visit)]) is not None
    few = [column("treatment", [f"t{k // 4}" for k in range(12)]), column("replicate", [k % 4 + 1 for k in range(12)])]
    blocks = [float(k // 3) for k in range(30)]  # numbers, without a column that numbers the rows of each
    assert find_subjects([column("subj", blocks)]) is not None and find_subjects([column("dose", blocks)]) is None
    assert find_subjects([column("subj", blocks[::-1][::7] + blocks)]) is None
    assert find_subjects(few) is None  # a factor of an experiment
    uneven = [k for k in range(18) if k not in (4, 11, 17)]
    some = [column("subject", [who[k] for k in uneven]), column("week", [visit[k] for k in uneven])]
    assert find_subjects(some) is not None
    none: list[Any] = [(who, [1, 1, 2] * 6), (who, range(18)), (map(str, range(18)), visit)]
    for names, numbers in none:
        assert find_subjects([column("who", names), column("visit", numbers)]) is None
    blank = find_subjects([column("who", [*who[:-1], None]), column("visit", visit)])
    assert blank is not None and (blank.count, blank.without_id) == (6, (17,))


@pytest.mark.parametrize(
    ("name", "in_runs", "shuffled"),
    [("MRN", True, True), ("Pat.-Nr.", True, True), ("patient_id", True, True), ("Patientennummer", True, False),
     ("case_no", True, False), ("ptn", True, False), ("Code", True, False), ("case", True, False),
     ("postcode", False, False), ("persona", False, False), ("showcase", False, False)],
)  # fmt: skip
def test_usual_names_of_subjects_are_recognised(name: str, in_runs: bool, shuffled: bool) -> None:
    """Shuffled numbers need a name that states no count."""
    numbers = [float(100 + k // 3) for k in range(36)]
    mixed = np.random.default_rng(0).permutation(numbers).tolist()
    assert (find_subjects([column(name, numbers)]) is not None) == in_runs
    assert (find_subjects([column(name, mixed)]) is not None) == shuffled


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([0, 1, 1, 0], "two values, 0 and 1: squared-error loss fits a linear probability model"),
        ([-1, 1, 1, -1], "two values, -1 and 1"),
        ([0, 3, 1, 9, 2], r"perhaps counts: .*; log\(1 \+ y\) as the target"),
        ([1, 1, 2, 1, 7], "perhaps counts"),
        (RISING, r"a long upper tail: .*; log\(y\) as the target"),
        ([0.0, *RISING], r"log\(1 \+ y\) as the target"),
        ([0.0, *(1e-4 * RISING)], "the root of y as the target"),
        (RISING * 1e150, "a long upper tail"),
        (RISING * 1e-150, "a long upper tail"),
        ([3, 4, 5, 6, 7], "^$"),
        ([0.5, 1.5, 2.5], "^$"),
        ([-1.0, 0.0, 90.0], "^$"),
        ([2.0, 2.0, 2.0], "^$"),
    ],
)
def test_what_is_fitted_to_a_target(y: Sequence[float], said: str) -> None:
    text = describe_target(Dataset.from_arrays(np.arange(float(len(y)))[:, None], y))
    assert re.search(said, text) and "\n" not in text


def test_names_are_one_word_of_a_shell() -> None:
    names = ["a", "b,c", "it's", '"q', "d e", "$x"]
    assert next(csv.reader(shlex.split(quote_names(names)))) == names


def test_a_column_of_subjects_that_is_read_as_numbers_is_proposed_for_the_folds(tmp_path: Path) -> None:
    """The message proposed to encode the names, which the hint of `inspect` did not."""
    frame = pd.DataFrame(
        {"who": [f"s{k // 2}" for k in range(16)], "visit": [1, 2] * 8, "a": np.arange(16) % 5, "y": np.arange(16.0)}
    )
    frame.to_csv(tmp_path / "s.csv", index=False)
    frame.assign(a=frame["a"].where(frame.index != 3)).to_csv(tmp_path / "gaps.csv", index=False)
    for given in (frame, tmp_path / "s.csv", tmp_path / "gaps.csv"):
        with pytest.raises(BadInput, match='each value has several rows; give folds="groups:who"'):
            sc.solve(given, target="y")
    plain = frame.assign(who=frame["y"].astype(str) + "s")
    with pytest.raises(BadInput) as found:
        sc.solve(plain, target="y")
    assert "groups:" not in str(found.value) and "encode" in str(found.value)
    assert sc.solve(tmp_path / "s.csv", target="y", folds="groups:who", taus=1).status == "proved"


FRAME_FRAME = pd.DataFrame(
    {"a": [1, 2], "b": [True, False], "c": pd.array([1.5, 2.5], dtype="Float64"), "d": [Decimal("0.5"), 3],
     "g": ["u", "v"], "y": [0.0, 1.0]}
)  # fmt: skip


def test_types_become_floats_and_nothing_is_shared() -> None:
    frame = FRAME_FRAME.copy()
    found = Dataset.from_frame(frame, "y", aux=["g"])
    assert found.names == ("a", "b", "c", "d") and found.target == "y"
    assert found.X.tolist() == [[1.0, 1.0, 1.5, 0.5], [2.0, 0.0, 2.5, 3.0]] and found.y.tolist() == [0.0, 1.0]
    assert found.aux["g"].tolist() == ["u", "v"]
    frame.loc[0, "y"] = 9.0
    frame.loc[0, "a"] = 9
    assert found.y[0] == 0.0 and found.X[0, 0] == 1.0


def test_ids_with_holes_stay_objects() -> None:
    found = Dataset.from_frame(FRAME_FRAME.assign(k=[1.0, np.nan]), "y", features=["a"], aux=["k"])
    assert found.aux["k"].dtype == object and found.names == ("a",)


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_cells_that_stand_for_nothing_are_as_empty_ones(kind: str, tmp_path: Path) -> None:
    empty = pd.DataFrame({
        "a": [1.0, np.nan, 3.5, 4.0, 5.0, 7.0], "b": ["u", "v", None, "u", "v", "u"], "y": [1.0, 2, 3, 4, 5, 6.5],
    })  # fmt: skip
    marked = empty.fillna({"a": -999.0, "b": "Refused"})
    for na in ("drop", "mean"):
        for given in ("-999, refused", [-999, "refused"], ["-999.0", "REFUSED"]):
            how: dict[str, Any] = {"na": na, "encode": "onehot"}
            data = [read_kind(empty, kind, tmp_path, **how), read_kind(marked, kind, tmp_path, na_values=given, **how)]
            assert data[0].names == data[1].names and (data[0].X == data[1].X).all() and (data[0].y == data[1].y).all()
    with pytest.raises(BadInput, match="^column 'a' (is empty|has the missing-value code '-999') in row 2"):
        read_kind(marked.drop(columns="b"), kind, tmp_path, na_values=-999)
    for wrong in ([None], object(), {"a": [1]}.values()):
        with pytest.raises(BadInput, match="^na_values: .* is not a list of texts and numbers; give such a list$"):
            read_kind(marked, kind, tmp_path, na_values=wrong)


def none_as_level() -> pd.DataFrame:
    """Return columns of words with levels that are usual marks for nothing, and a number that is not known."""
    garage, alley = ["none", "attached", "none", "shed", "attached", "none", "shed", "none"], ["NA", "gravel"] * 4
    return pd.DataFrame(
        {"garage": garage, "alley": alley, "area": ["1.5", "2", "?", "4", "5.5", "6", "7", "9"], "y": range(8)}
    )


def test_a_column_that_loses_most_rows_is_named() -> None:
    frame = pd.DataFrame(
        {"a": range(12), "b": [1.5, None] + [2.5] * 10, "c": [1.5] + [None] * 8 + [2.5] * 3, "y": range(12)}
    )
    with pytest.raises(BadInput, match=r"8 cells; most of its cells are empty; give drop=\[\"c\"\], or na=\"mean\""):
        Dataset.from_frame(frame, "y")
    data = Dataset.from_frame(frame, "y", na="drop")
    assert data.reading is not None and data.reading.notes[0] == (
        "8 of 12 rows with missing values dropped ('c': 8, 'b': 1); with --drop c, 11 rows remain"
    )
    assert Dataset.from_frame(frame.drop(columns="c"), "y", na="drop").n == 11
    with pytest.raises(BadInput, match=r"no row is left.*drop=\[\"c\"\] \(11 missing values\)"):
        Dataset.from_frame(frame.assign(c=[None, 2.5] + [None] * 10), "y", na="drop")


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_usual_marks_for_nothing_may_be_words(kind: str, tmp_path: Path) -> None:
    frame = none_as_level()
    how: dict[str, Any] = {"na": "drop", "encode": "onehot", "keep_default_na": False, "na_values": "?"}
    data = read_kind(frame, kind, tmp_path, **how)
    assert data.n == 7 and data.names == ("garage=attached", "garage=none", "garage=shed", "alley=gravel", "area")
    assert data.X[:, 1].tolist() == [1, 0, 0, 0, 1, 0, 1] and data.X[:, 3].tolist() == [0, 1, 1, 0, 1, 0, 1]
    assert data.reading is not None and data.reading.notes == (
        "1 of 8 rows with missing values dropped ('area': 1); with --drop area, 8 rows remain",
    )
    renamed = frame.replace({"none": "no garage", "NA": "no alley"})
    told = read_kind(renamed, kind, tmp_path, na="drop", encode="onehot")
    assert told.names[1:] == ("garage=no garage", "garage=shed", "alley=no alley", "area")
    assert np.array_equal(told.X[:, [0, 1, 2, 4]], data.X[:, [0, 1, 2, 4]])
    assert np.array_equal(told.X[:, 3], 1.0 - data.X[:, 3])  # of two words the later one has the column
    (tmp_path / "new.csv").write_text("area,garage,alley\n2,none,NA\n3,shed,gravel\n")
    rows = read_new_rows(tmp_path / "new.csv", ["garage=none", "alley=gravel", "area"], "y", data.reading).data
    assert dict(zip(rows.names, rows.X.T.tolist(), strict=True))["garage=none"] == [1.0, 0.0]
    blank = frame.assign(garage=frame.garage.replace("shed", " "))
    assert "garage=(missing)" in read_kind(blank, kind, tmp_path, **how | {"na": "mean"}).names


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_words_that_count_as_empty_are_named(kind: str, tmp_path: Path) -> None:
    frame = none_as_level()
    data = read_kind(frame, kind, tmp_path, na="mean", encode="onehot")
    assert data.reading is not None and data.reading.notes[:2] == (
        "column 'garage': 'none' in 4 cells counted as missing; if such a code is a text value, give "
        "--no-keep-default-na (keep_default_na in Python)",
        "column 'alley': 'NA' in 4 cells counted as missing; if such a code is a text value, give "
        "--no-keep-default-na (keep_default_na in Python)",
    )
    said = read_kind(frame, kind, tmp_path, na="mean", encode="onehot", na_values="none,NA").reading
    assert said is not None and not any("counted as missing" in note for note in said.notes)
    with pytest.raises(BadInput) as found:
        read_kind(frame[["garage", "y"]], kind, tmp_path)
    words = 'give na="drop" or na="mean", or keep_default_na=False if it is a text value'
    assert words.replace("it is", "'none' is") in str(found.value)
    assert '(4 cells; give encode="onehot", or drop' in str(found.value)
    with pytest.raises(
        BadInput, match=r"'\?' in row 3.*; text in 1 of 8 cells; correct them, give na_values=\"\?\" and na="
    ):
        read_kind(frame[["area", "y"]], kind, tmp_path, keep_default_na=False, encode="onehot")


def test_a_target_of_two_words_may_have_none(tmp_path: Path) -> None:
    frame = none_as_level().assign(y=["none", "ill"] * 4, area=range(8))
    frame.to_csv(tmp_path / "t.csv", index=False)
    how: dict[str, Any] = {"na": "drop", "encode": "onehot", "two_words": True, "features": ["area"]}
    with pytest.raises(
        BadInput,
        match="^target 'y' has 1 text value; .*; or give keep_default_na=False if missing-value codes are text values$",
    ):
        read_dataset(tmp_path / "t.csv", "y", **how)
    assert read_dataset(tmp_path / "t.csv", "y", keep_default_na=False, **how).y.tolist() == [1.0, 0.0] * 4
    for wrong in (None, "no", 0):
        with pytest.raises(BadInput, match="^keep_default_na: .* is neither True nor False; give one of these$"):
            read_dataset(tmp_path / "t.csv", "y", keep_default_na=wrong)


def read_kind(frame: pd.DataFrame, kind: str, folder: Path, **how: Any) -> Dataset:
    """Read a frame, or the file of it."""
    if kind == "frame":
        return Dataset.from_frame(frame, "y", **how)
    place = folder / f"t.{kind}"
    frame.to_csv(place, index=False) if kind == "csv" else frame.to_parquet(place)
    return read_dataset(place, "y", **how)


def test_a_column_of_names_is_better_left_out(tmp_path: Path) -> None:
    for rows, said in (
        (60, "nearly every row has a different value, so it identifies the rows and is not a feature; give {}"),
        (
            20,
            "every row has a different value, so the column may identify the rows; give {} to leave it out, or "
            'encode="onehot" to use it as a feature',
        ),
    ):
        lines = [f"P{k:03},{k % 7},{k}\n" for k in range(rows)]
        (tmp_path / "d.csv").write_text("patient,x,y\n" + "".join(lines))
        with pytest.raises(BadInput) as found:
            read_dataset(tmp_path / "d.csv", "y")
        words = said.format('drop=["patient"]')
        assert str(found.value) == f"column 'patient' holds text 'P000' in row 1 (line 2); {words}"
    (tmp_path / "d.csv").write_text("patient,x,y\n" + "".join(line.replace(",6,", ",u,") for line in lines))
    with pytest.raises(BadInput, match=r"give drop=\[\"patient\"\] to leave it out, or encode=.*, 'x' holds text"):
        read_dataset(tmp_path / "d.csv", "y")


@pytest.mark.parametrize("bound", ["<0.5", "> 12", "<=3"])
def test_a_detection_limit_is_called_a_bound(bound: str, tmp_path: Path) -> None:
    cells = [bound if k == 4 else f"{k * k % 11}.5" for k in range(20)]
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))
    with pytest.raises(BadInput) as wrong:
        read_dataset(tmp_path / "t.csv", "y")
    said = str(wrong.value)
    number, rows = ("the limit", "highest") if bound[0] == ">" else ("half the limit", "lowest")
    assert f"detection limit, is not a number; write a number instead (for example {number}), or " in said
    assert f"or, to remove the rows with the {rows} values, give na_values=" in said and 'and na="drop"' in said
    assert read_dataset(tmp_path / "t.csv", "y", na_values=[bound], na="drop").n == 19


def test_ranks_with_missing_values_have_two_remedies(tmp_path: Path) -> None:
    words = ["low", "mid", "high", ""]
    (tmp_path / "t.csv").write_text("a,g,y\n" + "".join(f"{k * k % 7},{words[k % 4]},{k}\n" for k in range(24)))
    order = "g=low<mid<high"
    with pytest.raises(BadInput, match="na=.mean. does not impute; give na=.drop., write the .+ encode=.onehot. and"):
        read_dataset(tmp_path / "t.csv", "y", na="mean", order=order)
    assert read_dataset(tmp_path / "t.csv", "y", na="drop", order=order).n == 18
    assert "g=(missing)" in read_dataset(tmp_path / "t.csv", "y", na="mean", encode="onehot").names


def test_predictions_that_are_missing_are_announced(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30), "y": rng.normal(size=30)})
    frame.loc[3, "a"] = np.nan
    record = sc.solve(frame, "y", na="drop", gammas=[0.1], force_in=["a"], folds=3)
    new = frame.drop(columns="y")
    new.to_csv(tmp_path / "new.csv", index=False)
    for rows in (new, tmp_path / "new.csv"):
        with pytest.warns(SparseCVWarning, match="^1 row with a missing value in a column of the model: the pre"):
            predicted = record.predict(rows)
        assert np.flatnonzero(np.isnan(predicted)).tolist() == [3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record.predict(new.dropna())


@pytest.mark.parametrize("kind", [int, str])
def test_categories_that_are_numbers_are_text_values_if_texts_are_encoded(kind: type) -> None:
    grades = [kind(grade) for grade in (3, 1, 2, 3, 1, 2, 1, 3)]
    order = [kind(grade) for grade in (3, 2, 1)]
    frame = pd.DataFrame({"grade": pd.Categorical(grades, order, ordered=True), "y": [3.0, 1, 2.5, 3, 1.5, 2, 1, 3.5]})
    ranked = read_dataset(frame, "y", encode="ordinal")
    assert ranked.X.ravel().tolist() == [0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 2.0, 0.0]
    assert read_dataset(frame, "y", encode="onehot").names == ("grade=1", "grade=2", "grade=3")
    record = sc.solve(frame, "y", folds=4, gammas=0.1, taus=1, encode="ordinal")
    assert sc.verify(record, frame).ok
    plain = frame.assign(grade=[int(grade) for grade in grades])
    assert record.predict(plain) == pytest.approx(record.predict(frame), rel=1e-12)
    with pytest.raises(BadInput, match="the column has categories; give encode=.onehot., convert them to numbers, or"):
        read_dataset(frame, "y")
    numeric = sc.solve(plain, "y", folds=4, gammas=0.1, taus=1)
    assert numeric.predict(frame) == pytest.approx(numeric.predict(plain), rel=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "frame"])
def test_numbers_of_named_columns_are_categories(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    codes = rng.choice([1000001, 1000002, 10, 9], 40)
    frame = pd.DataFrame({"code": codes, "a": rng.normal(size=40), "y": rng.normal(size=40) + (codes == 10)})
    source = frame if suffix == "frame" else tmp_path / f"t.{suffix}"
    if suffix != "frame":
        (frame.to_csv if suffix == "csv" else frame.to_parquet)(source, index=False)
    record = sc.solve(source, "y", categories="code", gammas=[0.1], taus=[5], folds=4)
    assert record.support == ("code=9", "code=10", "code=1000001", "code=1000002", "a")
    assert sc.verify(record, source).ok
    texts = frame.assign(code=[f"c{code}" for code in codes])
    same = sc.solve(texts, "y", encode="onehot", gammas=[0.1], taus=[5], folds=4)
    assert record.cv_error == pytest.approx(same.cv_error, rel=1e-12)
    new = frame.drop(columns="y")
    new.to_csv(tmp_path / "new.csv", index=False)
    for rows in (new, tmp_path / "new.csv"):
        assert record.predict(rows) == pytest.approx(same.predict(texts), rel=1e-10)
    ranked = read_dataset(source, "y", order="code=9<10<1000001<1000002")
    assert sorted(set(ranked.X[:, 0])) == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(BadInput, match="^categories: 'cod' is not a feature .did you mean 'code'"):
        read_dataset(source, "y", categories=["cod"])


def test_an_encoding_without_text_values_names_the_option_for_number_codes() -> None:
    frame = pd.DataFrame({"a": [4, 6, 8, 4], "y": [1.0, 2.0, 4.0, 3.0]})
    notes = read_dataset(frame, "y", encode="onehot").reading
    assert notes is not None and any("--categories" in note for note in notes.notes)
    with pytest.raises(BadInput, match='categories="COLUMN" if the values are numbers'):
        sc.solve(frame, "y", encode="onehot", count="factors", folds=4)


def test_a_missing_value_code_may_belong_to_one_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"bmi": [20.0, -9, 25, 30], "edu": [9.0, 8, 9, -9], "w": list("abxc"), "y": [1.0, 2, 4, 3]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source, codes in ((frame, {"bmi": -9, "w": "x"}), (tmp_path / "t.csv", "bmi=-9,w=X")):
        data = read_dataset(source, "y", na_values=codes, na="mean", encode="onehot")
        assert data.X[:, :2].tolist() == [[20.0, 9.0], [25.0, 8.0], [25.0, 9.0], [30.0, -9.0]]
        assert "w=(missing)" in data.names and "w=x" not in data.names
    with pytest.raises(BadInput, match="^na_values: 'bmy=-9' names no column .did you mean 'bmi'.+ CODE for all"):
        read_dataset(frame, "y", na_values="bmy=-9", drop=["w"])


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, 1j, b"ab", time(3), object()])
@pytest.mark.parametrize("how", [{}, {"encode": "onehot"}])
def test_cells_of_several_values_are_refused_by_their_type(value: object, how: dict[str, str]) -> None:
    frame = pd.DataFrame({"a": pd.Series([value] * 3, dtype=object), "b": [1.0, 2.0, 4.0], "y": [0.0, 1.0, 2.0]})
    kind = type(value).__name__
    with pytest.raises(BadInput, match=f"^column 'a' holds a value of type {kind} in row 1 [^\n]*, or drop="):
        read_dataset(frame, "y", **how)
    assert read_dataset(frame, "y", drop=["a"], **how).names == ("b",)


def test_names_with_outer_blanks_are_found_again() -> None:
    frame = pd.DataFrame(
        {" a": [1.0, 2.0, 4.0, 3.0, 5.0, 7.0], "b ": [1.0, 0.0] * 3, " y": [0.0, 1.0, 2.0, 3.0, 4.0, 5]}
    )
    record = sc.solve(frame, " y", folds=3, gammas=0.1, taus=1)
    assert record.data.names == (" a", "b ") and record.data.target == " y" and sc.verify(record, frame).ok
    with pytest.raises(BadInput, match="the columns are none: the table is empty"):
        sc.solve(pd.DataFrame(), "y")


def test_types_of_polars_that_arrow_does_not_have() -> None:
    class Frame:  # as of polars
        columns, schema = ["a", "b", "y"], {"a": "Int128", "b": "Object", "y": "Float64"}
        cells = {"a": [1, 2, 4], "b": [[1], [2], [3]], "y": [0.0, 1.0, 3.0]}

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"y": self.cells["y"]}).__arrow_c_stream__(requested_schema)

        def __getitem__(self, name: str) -> Any:
            return pd.Series(self.cells[name], dtype=object)

        get_column = __getitem__

        def drop(self, names: list[str]) -> Frame:
            return self

    assert read_dataset(Frame(), "y", drop=["b"]).X.ravel().tolist() == [1.0, 2.0, 4.0]  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="column 'b' holds a value of type list"):
        read_dataset(Frame(), "y")  # type: ignore[arg-type]


@pytest.mark.parametrize(("mark", "other"), [(",", "."), (".", ",")])
def test_new_rows_with_another_decimal_mark_name_the_option(tmp_path: Path, mark: str, other: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"a;y\n1{mark}25;2\n2{mark}5;3\n4{mark}75;9\n")
    reading = read_dataset(path, "y", sep=";", decimal=mark).reading
    new = tmp_path / "new.csv"
    new.write_text(f"a;b\n12{other}83;x\n11{other}5;y\n")
    with pytest.raises(BadInput, match=f'give decimal="[{other}]" if the numbers have this decimal mark$'):
        read_new_rows(new, ("a",), "y", reading)
    new.write_text(f"a;b\n12{other}83;x\nlow;y\n")
    with pytest.raises(BadInput, match="write the value as in the data of the model, or leave the row out$"):
        read_new_rows(new, ("a",), "y", reading)


@pytest.mark.parametrize("options", [{"na": "mean", "encode": "onehot"}, {"na": "mean", "drop": ["who"]}])
@pytest.mark.parametrize("label", ["Total", "Summe:", "P9"])
def test_a_row_of_totals_is_refused_although_its_cells_can_be_read(
    label: str, options: dict[str, Any], tmp_path: Path
) -> None:
    path, rng = tmp_path / "export.csv", np.random.default_rng(0)
    rows = [f"P{k // 2},{x:.2f},{50 + y:.2f}" for k, (x, y) in enumerate(rng.normal(size=(14, 2)))]
    total = sum(float(row.split(",")[2]) for row in rows)
    path.write_text("\n".join(["who,x,y", *rows, f"{label},,{total:.2f}"]) + "\n")
    if label == "P9" and "drop" not in options:
        assert read_dataset(path, "y", **options).n == 15  # a row of its own, as far as the file shows
        return
    with pytest.raises(
        BadInput, match=r'^row 15, the last one, holds the sums of the other rows.*; .* skip_lines="16"'
    ) as raised:
        read_dataset(path, "y", **options)
    assert "\n" not in str(raised.value) and read_dataset(path, "y", skip_lines="16", **options).n == 14
    with pytest.raises(BadInput, match="leave this row out$"):
        read_dataset(pd.read_csv(path), "y", **options)
    assert read_dataset(path, "y", **{**options, "na": "drop"}).n == 14
    path.write_text("\n".join(["who,x,y", *rows, f"P7,,{rng.normal() + 50:.2f}"]) + "\n")
    assert read_dataset(path, "y", **options).n == 15


def test_the_remedy_for_new_rows_that_are_refused_reads_the_others(tmp_path: Path) -> None:
    """Invalid rows are dropped and listed with their reasons; the numbers of the other rows stay."""
    path = tmp_path / "new.csv"
    frame = pd.DataFrame({"city": ["Oslo", "Rome"] * 4, "age": np.arange(8.0) ** 2, "y": np.arange(8.0)})

    def read(text: str, are_allowed: bool = False, **options: Any) -> tuple[list[int], dict[int, str]]:
        learnt = read_dataset(frame, "y", encode="onehot", **options).reading
        assert learnt is not None
        how = replace(learnt.how, skip_lines="1")
        path.write_text("# cm\n" + text)
        learnt = replace(learnt, how=how, invalid={} if are_allowed else None)
        rows = read_new_rows(path, ["city=Rome", "age"], "y", learnt, are_lines_given=True).data
        assert rows.reading is not None
        return rows.places.tolist(), dict(rows.reading.invalid or {})

    unknown = "age,city\n1,Rome\n2,Wien\n3,Oslo\n4,Oslo\n5,Bern\n"
    with pytest.raises(BadInput, match='model are Oslo, Rome; to predict the other rows, give invalid_rows="na"$'):
        read(unknown)
    places, reasons = read(unknown, True)
    assert places == [0, 2, 3] and sorted(reasons) == [2, 5]
    assert reasons[5] == "column 'city' holds 'Bern', which is not a level in the data of the model"
    with pytest.raises(BadInput, match=r"a row with an empty cell gets no prediction\); to predict"):
        read(unknown, na="drop")
    assert read(unknown.replace("Wien", ""), True, na="drop") == ([0, 2, 3], {5: reasons[5]})
    gap = "age,city\n1,Rome\n,Oslo\n3,Oslo\nold,Oslo\n5,Wien\ninf,Rome\n7,Rome\n"
    with pytest.raises(BadInput, match="'age' is empty in row 2 .*, 'age' holds text 'old' in row 4"):
        read(gap)
    places, reasons = read(gap, True)
    assert places == [0, 2, 6] and [*reasons] == [2, 4, 5, 6] and reasons[4] == "column 'age' holds 'old'"
    assert (reasons[2], reasons[6]) == ("column 'age' is empty", "column 'age' is infinite")
    places, reasons = read("age,city\n1,Wien\n2,Bern\n", True)  # no row can be predicted
    assert places == [] and [*reasons] == [1, 2]


def test_units_are_skipped_before_rows_are_invalid(tmp_path: Path) -> None:
    path, frame = (
        tmp_path / "new.csv",
        pd.DataFrame({"city": ["Oslo", "Rome"] * 4, "age": np.arange(8.0) ** 2, "y": 1.0}),
    )
    learnt = read_dataset(frame.assign(y=frame["age"]), "y", encode="onehot").reading
    assert learnt is not None
    learnt = replace(learnt, how=replace(learnt.how, skip_lines="2,12"), invalid={})
    path.write_text("age,city\nyears,name\n1,Rome\n2,Wien\n3,Oslo\n")
    new = read_new_rows(path, ["city=Rome", "age"], "y", learnt)
    assert (new.skipped_lines, new.data.places.tolist()) == ("2", [0, 2])
    assert (new.n_invalid_rows, new.data.n_dropped_rows) == (1, 1)


def test_a_title_above_new_rows_is_named(tmp_path: Path) -> None:
    path, learnt = tmp_path / "new.csv", read_dataset(FRAME, "y", na="mean", encode="onehot").reading
    path.write_text("Export 2024,,\nsmoker,city,age\nno,Rome,1\nyes,Oslo,2\n")
    with pytest.raises(BadInput, match='begins with .*, and line 2 has the names of its columns; give skip_lines="1"$'):
        read_new_rows(path, ["city=Oslo", "age"], "y", learnt)

"""Targets of two classes: which value is the positive one, folds of both classes, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.parts import FoldInfo
from sparsecv_mio.certificate.read_back import folds_again, with_classes_as_in_folds
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes, check_training, class_names, encode_classes
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.targets import Loss
from sparsecv_mio.words import Intercept


def of(y: list[float]) -> Dataset:
    return Dataset.from_arrays(np.arange(float(len(y)))[:, None], y, target="ill")


def test_numbers_of_any_kind() -> None:
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (1.0, 2.0), (0.25, 1e6)):
        made = as_two_classes(of([low, high, high, low]))
        assert made.y.tolist() == [0.0, 1.0, 1.0, 0.0]
        assert as_two_classes(of([low, high]), low).y.tolist() == [1.0, 0.0]
        assert as_two_classes(made, made.classes[0]).y.tolist() == [1.0, 0.0, 0.0, 1.0] if made.classes else False


def test_words_keep_their_names(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("a,outcome\n1,no\n2,yes\n3,no\n4,yes\n")
    data = read_dataset(file, "outcome", two_words=True)
    assert class_names(data) == ("no", "yes")
    assert as_two_classes(data).classes == ("no", "yes") and as_two_classes(data).y.tolist() == [0.0, 1.0, 0.0, 1.0]
    turned = as_two_classes(data, "no")
    assert turned.classes == ("yes", "no") and turned.y.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert encode_classes(data, ("yes", "no")).fingerprint == turned.fingerprint != as_two_classes(data).fingerprint
    with pytest.raises(
        BadInput, match="positive: 'yse' is not a class of 'outcome', whose classes are no and yes .did you mean 'yes'"
    ):
        as_two_classes(data, "yse")
    file.write_text("a,outcome\n1,False\n2,True\n3,False\n4,True\n")
    data = read_dataset(file, "outcome", two_words=True)
    assert as_two_classes(data, "False").classes == ("true", "false"), "as the file has them, and as they are named"
    file.write_text("a,outcome\n1,b\n2,B\n3,b\n4,B\n")
    data = read_dataset(file, "outcome", two_words=True)
    assert {as_two_classes(data, word).classes[1] for word in ("b", "B")} == {"b", "B"}


def test_a_class_is_named_in_any_letters(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("a,ill,grade\n1,False,B\n2,True,b\n3,False,B\n4,True,b\n")
    data = read_dataset(file, "ill", drop=["grade"], two_words=True)
    assert as_two_classes(data, "True").classes == as_two_classes(data, "TRUE").classes == ("false", "true")
    assert as_two_classes(data, "False").classes == ("true", "false")
    graded = read_dataset(file, "grade", drop=["ill"], two_words=True)
    assert as_two_classes(graded, "B").classes == ("b", "B") and as_two_classes(graded, "b").classes == ("B", "b")


def test_words_that_count_as_one_are_said(tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("a,b,outcome\nx,1,no\nX,2,Yes\nx,3,No\nx,4,Yes\n")
    reading = as_two_classes(read_dataset(file, "outcome", encode="onehot", two_words=True)).reading
    notes = reading.notes if reading is not None else ()
    assert "column 'outcome': 'No' and 'no' count as one value" in notes
    assert "column 'a': 'X' and 'x' count as 2 values (they differ only in capital letters)" in notes


def test_words_that_capital_letters_alone_tell_apart_are_said(tmp_path: Path) -> None:
    path, said = tmp_path / "data.csv", "'Case' and 'case' count as 2 values (they differ only in capital letters)"
    path.write_text("a,outcome\n1,Case\n2,case\n3,Case\n")
    data = read_dataset(path, target="outcome", two_words=True)
    assert data.reading is not None and f"column 'outcome': {said}" in data.reading.notes
    path.write_text("a,outcome\n1,Case\n2,case\n3,control\n")
    with pytest.raises(BadInput, match=re.escape(f"has 3 text values ({said}); a target of more than two classes")):
        read_dataset(path, target="outcome", two_words=True)


@pytest.mark.parametrize(("word", "ones"), [("True", [0.0, 1.0]), ("false", [1.0, 0.0])])
def test_truth_values_are_named_as_such(word: str, ones: list[float]) -> None:
    """A column of them is read as 0 and 1."""
    assert as_two_classes(Dataset.from_arrays([[0.0], [1.0]], [0.0, 1.0]), word).y.tolist() == ones


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, 1.0], "target 'ill' has only one class .1., but logistic loss needs two"),
        (
            [0.0, 1.0, 2.0],
            r"target 'ill' holds 3 different values .0, 1, 2., but logistic loss needs exactly two classes",
        ),
        (list(range(9)), r"holds 9 different values .0, 1, 2, 3, 4, 5, 6, 7, \.\.\.."),
    ],
)
def test_no_two_classes(y: list[float], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        as_two_classes(of(y))


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_columns_out_of_all_proportion_are_named(unit: float) -> None:
    X = np.column_stack([np.arange(4.0), unit * np.arange(4.0)])
    with pytest.raises(
        BadInput,
        match="column 'x1' varies by 3e[+-]200, which is too much or too little for logistic loss; change its unit",
    ):
        as_two_classes(Dataset.from_arrays(X, [0.0, 1.0, 1.0, 0.0]))


def test_rows_of_classes_that_are_known() -> None:
    assert encode_classes(of([2.0, 2.0]), ("1", "2")).y.tolist() == [1.0, 1.0]
    assert encode_classes(of([1.0, 2.0]), ("2", "1")).y.tolist() == [1.0, 0.0]
    with pytest.raises(BadInput, match="target 'ill' has the class '3', but the classes of the model are 1 and 2"):
        encode_classes(of([3.0, 2.0]), ("1", "2"))


def test_folds_of_classes_are_dealt_by_class() -> None:
    data = as_two_classes(of([0.0] * 12 + [1.0] * 4))
    for spec, said in (("4", "stratified:4"), ("2x4", "2xstratified:4"), ("loo", "loo"), ("stratified:4",) * 2):
        plan = make_folds(spec, data)
        assert plan.spec == said
        if spec != "loo":
            assert [int(data.y[plan.scored_rows(fold)].sum()) for fold in range(plan.k)] == [1] * plan.k


def test_a_training_fold_of_one_class_is_named() -> None:
    data = as_two_classes(of([0.0, 0.0, 0.0, 1.0]))
    with pytest.raises(
        BadInput, match="rows of fold 4 of 4 are all of class 0, so the intercept has no finite optimum; "
    ):
        check_training(data, make_folds("loo", data), Intercept.FOLD, Loss.LOGISTIC)
    check_training(data, make_folds("loo", data), Intercept.NONE, Loss.LOGISTIC)
    with pytest.raises(BadInput, match="intercept global"):
        check_training(data, make_folds("loo", data), Intercept.GLOBAL, Loss.LOGISTIC)


@pytest.mark.parametrize("third", ["unknown", "Refused", "n.d.", "k.A.", "?", "don't know"])
def test_one_of_three_classes_that_may_be_a_code_is_named(third: str, tmp_path: Path) -> None:
    rows = [(k, k * k % 7, ("no", "yes", third)[k % 3]) for k in range(30)]
    path = tmp_path / "t.csv"
    path.write_text("a,b,ill\n" + "".join(f'{a},{b},"{c}"\n' for a, b, c in rows))
    how = {"na": "drop", "na_values": third}
    if third != "?":  # a usual missing-value code
        with pytest.raises(BadInput, match="3 text values; give na_values=.* and na=.drop. if .* marks missing valu"):
            read_dataset(path, "ill", two_words=True)
    data = as_two_classes(read_dataset(path, "ill", two_words=True, **how))
    assert data.n == 20 and data.classes == ("no", "yes")


def test_truth_values_of_a_frame_are_those_of_its_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "ill": X[:, 0] + rng.normal(size=40) > 0.0})
    frame.to_csv(tmp_path / "t.csv", index=False)
    tables = [frame, frame.assign(ill=frame.ill.astype("boolean")), frame.assign(ill=frame.ill.astype(object))]
    how = dict[str, Any](loss="logistic", gammas=[0.1], folds=4)
    for table in (*tables, tmp_path / "t.csv"):
        record = sc.solve(table, "ill", **how)
        assert record.classes.positive == "true" and "the probability of 'true'" in record.summary()
        assert all(sc.verify(record, other).ok for other in (frame, tmp_path / "t.csv"))
        for word in (False, "False", 0, "0"):
            assert sc.solve(table, "ill", positive=word, **how).classes.positive == "false"
    numbers = sc.solve(frame.assign(ill=frame.ill.astype(int)), "ill", **how)
    assert numbers.classes.positive == "1" and sc.verify(numbers, frame).ok  # as in records of earlier versions
    assert sc.solve(frame, "ill", gammas=[0.1], folds=4).classes is None


def test_the_positive_class_does_not_change_the_folds(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    ills = ["no" if row % 3 else "yes" for row in range(24)]
    file.write_text("x,ill\n" + "".join(f"{row % 7},{ill}\n" for row, ill in enumerate(ills)))
    records = []
    for positive in ("yes", "no", None):
        records.append(
            sc.solve(file, target="ill", loss="logistic", folds=4, gammas=[0.1], taus=[1], positive=positive)
        )
    assert [record.classes.positive for record in records if record.classes] == ["yes", "no", "yes"]
    assert len({record.folds.digest for record in records}) == 1
    words = read_dataset(file, target="ill", two_words=True)
    for positive in ("yes", "no"):
        data = as_two_classes(words, positive)
        assert make_folds("4", data).digest == make_folds("4", as_two_classes(data, "yes")).digest
        assert make_folds("stratified:4", data).digest == records[0].folds.digest
    assert all(sc.verify(record, file).ok for record in records)


def test_folds_of_an_older_record_with_a_named_class_are_made_again() -> None:
    coded = Dataset.from_arrays(np.arange(24.0)[:, None], (np.arange(24) % 3 > 0).astype(float))
    older = make_folds("stratified:4", replace(coded, y=1.0 - coded.y))
    data = encode_classes(coded, ("1", "0"))
    assert make_folds("stratified:4", data).digest != older.digest
    info = FoldInfo(spec="stratified:4", seed=0, k=4, digest=older.digest, repeats=1)
    assert folds_again(info, data).digest == older.digest
    assert not with_classes_as_in_folds(info, data).are_classes_swapped
    info = replace(info, digest=make_folds("stratified:4", data).digest)
    assert with_classes_as_in_folds(info, data).are_classes_swapped

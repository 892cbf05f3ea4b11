"""`Dataset` from arrays and frames, and its fingerprint."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import sparsecv_mio as sc
from sparsecv_mio import arrays
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput

X = np.arange(12.0).reshape(6, 2) ** 2
Y = np.arange(6.0)


def test_arrays_are_copied_and_frozen() -> None:
    mine = X.copy()
    data = Dataset.from_arrays(mine, Y)
    mine[0, 0] = 99.0
    assert data.X[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1.0


def test_fingerprint_sees_numbers_names_and_target_but_not_memory_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = {
        Dataset.from_arrays(X, Y).fingerprint,
        Dataset.from_arrays(X, Y, names=["a", "b"]).fingerprint,
        Dataset.from_arrays(X, Y, target="z").fingerprint,
        Dataset.from_arrays(X[:, ::-1], Y).fingerprint,
        Dataset.from_arrays(X, Y[::-1]).fingerprint,
        Dataset.from_arrays(np.nextafter(X, 1e9), Y).fingerprint,
    }
    assert len(prints) == 6
    reference = Dataset.from_arrays(X, Y).fingerprint
    assert Dataset.from_arrays(np.asfortranarray(X), Y[:, None]).fingerprint == reference
    assert Dataset.from_arrays(np.where(X == 0, -0.0, X), Y).fingerprint == reference
    monkeypatch.setattr(arrays, "CHUNK_ELEMENTS", 3)
    assert Dataset.from_arrays(X, Y).fingerprint == reference, "independent of the chunks"


def test_many_numbers_stored_by_columns_are_the_same_numbers() -> None:
    data = Dataset.from_arrays(np.random.default_rng(0).normal(size=(9_000, 4)), np.arange(9_000.0))
    before, said = data.X.copy(), data.fingerprint
    again = Dataset.from_arrays(before, data.y)
    again.store_by_columns()
    assert again.X.flags.f_contiguous and not again.X.flags.writeable and np.array_equal(again.X, before)
    assert again.fingerprint == said and again.take(np.array([3, 1])).X.tolist() == before[[3, 1]].tolist()
    few = Dataset.from_arrays(before[:20], data.y[:20])
    few.store_by_columns()
    assert few.X.flags.c_contiguous


def test_frames_with_nullable_boolean_object_and_integer_names() -> None:
    frame = pd.DataFrame(
        {
            0: pd.array([1, 2, 3], dtype="Int64"),
            1: [True, False, True],
            2: pd.Series([1, 2.5, 3], dtype=object),
            "t": [1.0, 2.0, 4.0],
            "g": pd.Categorical(["u", "v", "u"]),
        }
    )
    data = Dataset.from_frame(frame, "t", aux=["g"])
    assert data.names == ("0", "1", "2") and data.aux["g"].tolist() == ["u", "v", "u"]
    assert data.X.tolist() == [[1.0, 1.0, 1.0], [2.0, 0.0, 2.5], [3.0, 1.0, 3.0]]
    assert Dataset.from_frame(frame, 3, drop=["g"]).target == "t"
    assert Dataset.from_arrays(frame[[0, 1]], frame["t"]).names == ("0", "1")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["u", "v"], "column 'a' holds text 'u' in row 1"),
        ([1.0, None], "column 'a' is empty in row 2"),
        (pd.array([1, None], dtype="Int64"), "column 'a' is empty in row 2"),
        ([1.0, np.inf], "column 'a' holds inf in row 2"),
        (pd.Series([1, "2"], dtype=object), r"column 'a', row 2 \(index 1\): the number '2' is stored as text"),
        (pd.Series([1, None], dtype=object), "column 'a' is empty in row 2"),
        (["1", 2], r"column 'a', row 1 \(index 0\): the number '1' is stored as text; convert the column"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "column 'a' holds '2020-01-01 00:00:00', which looks"),
        (pd.Categorical(["u", "v"]), "column 'a' holds text 'u' in row 1"),
        ([1j, 2.0], "column 'a' holds a value of type complex"),
    ],
)
def test_bad_frames(column: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Dataset.from_frame(pd.DataFrame({"a": column, "y": [1.0, 2.0]}), "y")


def test_messages_on_frames_name_the_index_label_of_a_row() -> None:
    numbers = np.random.default_rng(0).normal(size=(12, 2))
    frame = pd.DataFrame(numbers, columns=["a", "y"], index=[f"p{i}" for i in range(12)]).assign(w=1.0, g="u")
    empty, text = frame.assign(a=frame.a.where(frame.index != "p10")), frame.assign(a=frame.a.astype(object))
    text.loc["p10", "a"] = "in row 99"
    weighted, nobody = frame.assign(w=-(frame.index == "p10").astype(float)), frame.assign(g=empty.a)
    record = sc.solve(frame, "y", gammas=[1.0], taus=[1], folds=3, drop=["g", "w"])
    label = r"row 11 \(index 'p10'\)"
    for message, call in (
        (f"'a' is empty in {label}; give", lambda: sc.solve(empty, "y", drop=["g", "w"])),
        (f"holds text 'in row 99.*' in {label}; ", lambda: sc.solve(text, "y", drop=["g", "w"])),
        (f"^w is -1 in {label}; give", lambda: sc.solve(weighted, "y", weights="w", drop=["g"])),
        (f"'g' has no id in {label}; give", lambda: sc.solve(nobody, "y", folds="groups:g:3", drop=["w"])),
        (f"in {label}; fill it in", lambda: record.predict(empty)),
        (f"in {label}; to impute", lambda: sc.BestSubsetRidge(1).fit(empty[["a"]], frame.y)),
        (f"in {label}; fill the cell", lambda: Dataset.from_arrays(empty[["a"]], frame.y)),
        (r"in row 11 \(index 10\)", lambda: Dataset.from_frame(empty.reset_index(drop=True), "y", drop=["g"])),
    ):
        with pytest.raises(BadInput, match=message):
            call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": X, "y": Y[:-1]}, "X has 6 rows but y has 5"),
        ({"X": X, "y": Y, "names": ["a"]}, "X has 2 columns but 1 names"),
        ({"X": X, "y": Y, "names": ["a", "a"]}, "feature name 'a' is given twice"),
        ({"X": X, "y": Y, "names": ["a", "y"]}, "feature name 'y' is also the target"),
        ({"X": X[0], "y": Y}, "X has 1 dimension; give an array with 2"),
        ({"X": X, "y": X}, "y has 2 dimensions"),
        ({"X": [["a"]], "y": [1.0]}, "X must hold numbers only"),
        ({"X": [[1.0]], "y": [1.0], "names": ["(intercept)"]}, "feature name '.intercept.' is reserved for the const"),
        ({"X": [[1.0]], "y": np.array(["a"])}, "y must hold numbers only: could not convert string to float: 'a'"),
        ({"X": csr_array([[1.0]]), "y": [1.0]}, "X is sparse; give X.toarray()"),
        (
            {"X": pd.DataFrame({"a": [1.0], "b": ["u"]}), "y": [1.0]},
            r"column 'b' holds text 'u' in row 1 \(index 0\); encode it",
        ),
        (
            {"X": pd.DataFrame({"a": pd.Categorical(["u"])}), "y": [1.0]},
            r"column 'a' holds text 'u' in row 1 \(index 0\); encode",
        ),
        ({"X": [[1.0], [2.0, 3.0]], "y": [1.0, 2.0]}, "X must hold numbers only"),
        ({"X": X[:0], "y": Y[:0]}, "the data have no rows"),
        ({"X": X[:, :0], "y": Y}, "no feature is left"),
        ({"X": np.where(X == 4, np.nan, X), "y": Y}, "column 'x0' holds nan in row 2"),
        ({"X": X, "y": np.where(Y == 4, -np.inf, Y)}, "column 'y' holds -inf in row 5"),
        ({"X": X, "y": Y, "aux": {"g": [1, 2]}}, "column 'g' has shape"),
    ],
)
def test_bad_arrays(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        Dataset.from_arrays(**arguments)
    assert "\n" not in str(caught.value)


def test_a_series_gives_its_name_to_the_target() -> None:
    X, series = pd.DataFrame({"a": [1.0, 2.0, 4.0]}), pd.Series([0.0, 1.0, 3.0], name="dose")
    assert Dataset.from_arrays(X, series).target == "dose" and Dataset.from_arrays(X, series, target="z").target == "z"
    for other in (series.rename(None), series.rename(3), series.rename("a"), series.to_numpy()):
        assert Dataset.from_arrays(X, other).target == "y"

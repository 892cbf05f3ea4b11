"""Which columns are features, which the target, which give the folds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import BadInput

from .files import FRAME, NAMES, X, Y, refused, write


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".svm"])
def test_features_and_drop_choose_columns_in_file_order(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, suffix)
    kept = read_dataset(path, "y", features=["x4", "x2"])
    assert kept.names == ("x2", "x4")
    assert np.array_equal(kept.X, X[:, [1, 3]])
    assert read_dataset(path, "y", drop=["x1", "x3"]).fingerprint == kept.fingerprint


def test_target_by_position_and_name_before_position(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("2,a,b\n1,2,3\n4,5,6\n")
    assert read_dataset(path, "1").target == "a"
    assert read_dataset(path, 0).target == "2"
    assert read_dataset(path, 2).target == "2", "a column named 2 wins over position 2"


def test_auxiliary_columns_hold_text_or_numbers_and_are_no_features(tmp_path: Path) -> None:
    frame = FRAME.assign(who=["u", "v", "w"] * 10, day=np.arange(30) % 4)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        data = read_dataset(path, "y", aux=["who", "day"])
        assert data.names == tuple(NAMES)
        assert data.aux["who"].tolist() == frame["who"].tolist()
        assert [int(v) for v in data.aux["day"]] == frame["day"].tolist()
    np.savez(tmp_path / "a.npz", X=X, y=Y, g=np.arange(30) % 3)
    data = read_dataset(tmp_path / "a.npz", "y", aux=["g", "x1"])
    assert data.names == ("x0", "x2", "x3")
    assert np.array_equal(data.aux["x1"], X[:, 1]) and data.aux["g"].tolist() == (np.arange(30) % 3).tolist()


BAD_WORDS = [
    ({"features": ["a", "q"]}, "feature 'q' is not in the data"),
    ({"drop": ["q"]}, "dropped column 'q' is not in the data"),
    ({"features": ["a"], "drop": ["b"]}, "features and drop were both given"),
    ({"features": ["a", "a"]}, "column 'a' is named twice in features"),
    ({"drop": ["a", "a"]}, "column 'a' is named twice in drop"),
    ({"features": ["a", "y"]}, "is the target and cannot be a feature"),
    ({"drop": ["y"]}, "is the target and cannot be dropped"),
    ({"aux": ["y"]}, "is the target and cannot give the folds"),
    ({"aux": ["g"]}, "fold, group or weight column 'g' is not in the data"),
    ({"aux": ["a"], "features": ["a"]}, "gives the folds or weights and cannot be a feature"),
    ({"drop": ["a", "b"]}, "no feature is left"),
    ({"features": []}, "no feature is left"),
]


@pytest.mark.parametrize(("options", "message"), BAD_WORDS)
def test_bad_column_words(tmp_path: Path, options: dict[str, list[str]], message: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b,y\n1,2,3\n4,5,7\n")
    refused(message, path, "y", **options)


def test_a_wrong_name_is_told_the_first_columns_and_the_last(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(",".join(f"g{j}" for j in range(30)) + ",outcome\n" + ",".join(["1"] * 31) + "\n")
    refused("its columns are g0, g1, g2, g3, g4, g5, g6, ..., outcome (31 in all)", path, "zz")


def test_columns_may_be_given_by_position_and_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,bc,y\n1,2,3\n2,3,5\n")
    for given in ([1], ["1"], "bc", 1, ["bc"]):
        assert read_dataset(path, "y", features=given).names == ("bc",)  # type: ignore[arg-type]
        assert read_dataset(path, "y", drop=given).names == ("a",)  # type: ignore[arg-type]
    for wrong in (1.5, [1.5], [["a"]]):
        with pytest.raises(BadInput, match="is no list of names or positions of columns"):
            read_dataset(path, "y", features=wrong)  # type: ignore[arg-type]

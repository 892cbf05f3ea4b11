"""What tasks ask of their data is refused before one has begun; the data set and the key are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparsecv_mio.batch import run, sources
from sparsecv_mio.batch.checked import check_with_data
from sparsecv_mio.batch.plan import tasks_of
from sparsecv_mio.errors import BadInput

FILE = {"file": "a.csv", "target": "y"}


def written(folder: Path) -> None:
    rows = "".join(f"{i},{i * i % 7},{i % 3},{i % 2}\n" for i in range(20))
    (folder / "a.csv").write_text(f"a,b,y,which\n{rows}")


@pytest.mark.parametrize(
    ("data", "vary", "message"),
    [
        ({}, {"tau": 99}, "data 'a': tau 99 is out of range: use 0 to 3"),
        ({}, {"tau": ["1:2", "1:99"]}, "data 'a': tau: '1:99' is out of range, the data have 3 features"),
        ({"target": "z"}, {}, "data 'a': .*target.*'z'"),
        ({"drop": "z"}, {}, "data 'a': .*drop.*'z'"),
        ({}, {"folds": ["5", "500"]}, "data 'a': folds '500' need 500 rows but the data has 20"),
        ({}, {"folds": "five"}, "data 'a': folds 'five' are unknown"),
        ({}, {"folds": "groups:z"}, "data 'a': fold, group or weight column 'z' is not in the data"),
        ({}, {"folds": "15", "test": 0.5}, "data 'a': folds '15' need 15 rows but the data has 10"),
        ({}, {"test": 0.9}, "data 'a': test 0.9 leaves 2 rows to train on"),
        ({}, {"refit": "training"}, "data 'a': refit training needs a single fold, not 10"),
        ({}, {"folds": "holdout:0.3", "one_se": True}, "data 'a': one_se: a single fold has no standard error"),
        ({}, {"force_in": "z"}, "data 'a': force_in"),
        ({}, {"estimator": "abess", "folds": "forward:3"}, "data 'a': abess takes folds that hold out every row once"),
    ],
)
def test_what_data_do_not_allow(data: dict[str, str], vary: dict[str, Any], message: str, tmp_path: Path) -> None:
    written(tmp_path)
    tasks = tasks_of({"data": [{**FILE, **data}], "vary": vary}, tmp_path)
    with pytest.raises(BadInput, match=message) as caught:
        check_with_data(tasks)
    assert "\n" not in str(caught.value)


def test_what_data_allow(tmp_path: Path) -> None:
    written(tmp_path)
    vary = {
        "folds": ["loo", "4", "groups:which"], "tau": ["1:2", 0], "gamma": ["0.1..1", 0.5, "0.1,1"],
        "test": 0.2, "estimator": ["sparsecv", "ridge"],
    }  # fmt: skip
    check_with_data(tasks_of({"data": [FILE]} | {"vary": vary}, tmp_path))


def test_data_sets_are_read_once_and_designs_of_a_size_drawn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    read, load = [], sources._load
    monkeypatch.setattr(sources, "_load", lambda source, aux: read.append(source) or load(source, aux))
    monkeypatch.setattr(sources, "_held", sources._Held())
    design = {"design": "toeplitz", "n": [20, 30], "p": 4, "support": 2, "draw": [0, 1, 2], "snr": [1.0, 2.0]}
    vary = {"folds": ["3", "5"], "seed": list(range(10)), "test": [0.2, 0.3], "split": list(range(10))}
    dealt, deal = [], run.make_folds
    monkeypatch.setattr(run, "make_folds", lambda *given: dealt.append(given) or deal(*given))
    check_with_data(tasks_of({"data": [FILE, design], "vary": vary}, tmp_path))
    assert len(read) == 3 and len(dealt) == 3 * 2 * 2

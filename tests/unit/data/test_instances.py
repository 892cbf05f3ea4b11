"""The instances are the files their provenance describes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from repository import INSTANCES

from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import standardize

SUMS = {line.split()[1]: line.split()[0] for line in (INSTANCES / "SHA256SUMS").read_text().splitlines()}

SHAPES = {
    "diabetes": (442, 10, "y"),
    "diabetes11": (442, 11, "y"),
    "diabetes64": (442, 64, "y"),
    "housing": (506, 13, "medv"),
    "housing2": (506, 91, "medv"),
    "servo": (167, 19, "class"),
    "autompg": (392, 25, "mpg"),
    "prostate": (97, 8, "lpsa"),
    "prostate_train": (97, 9, "lpsa"),
    "topgear": (242, 40, "MPG"),
    "topgear_int": (242, 376, "MPG"),
    "hitters": (263, 19, "log10_salary"),
    "toxicity": (38, 9, "toxicity"),
    "steam": (25, 8, "Steam"),
    "alcohol2": (44, 21, "logSolubility"),
}
DOWNLOADED = {"wine": (6497, 11, "quality"), "bardet": (120, 200, "y"), "riboflavin": (71, 4088, "y")}


def locate(name: str) -> Path:
    folders = [INSTANCES, Path(os.environ.get("SPARSECV_INSTANCES", INSTANCES))]
    for folder in folders:
        if (folder / f"{name}.csv").exists():
            return folder / f"{name}.csv"
    pytest.skip(f"{name}.csv is absent: run scripts/instances/download.py or set SPARSECV_INSTANCES")


@pytest.mark.parametrize("name", [*SHAPES, *DOWNLOADED])
def test_checksum_shape_and_target(name: str) -> None:
    path = locate(name)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SUMS[path.name]
    n, p, target = (SHAPES | DOWNLOADED)[name]
    data = read_dataset(path, target)
    assert (data.n, data.p) == (n, p)
    std = standardize(data)
    V, _ = std.rows(slice(0, n))
    np.testing.assert_allclose(np.linalg.norm(V, axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("name", "rank"), [("servo", 15), ("autompg", 22), ("diabetes11", 10)])
def test_one_hot_designs_lose_the_rank_their_provenance_states(name: str, rank: int) -> None:
    std = standardize(read_dataset(locate(name), SHAPES[name][2]))
    assert np.linalg.matrix_rank(std.rows(slice(0, std.n))[0]) == rank


def test_both_indicators_of_sex_are_copies() -> None:
    std = standardize(read_dataset(locate("diabetes11"), "y"))
    assert std.names[1:3] == ("sex_1", "sex_2") and std.copy_of.tolist() == [-1, -1, 1] + [-1] * 8

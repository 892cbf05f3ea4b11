"""The spec of a record gives the same folds through `solve`, `make_folds` and the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.cli import run
from sparsecv_mio.errors import BadInput


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(np.round(rng.normal(size=(24, 2)), 2), columns=["a", "b"])
    return table.assign(y=np.arange(24) % 3 % 2, w=np.arange(24) % 4)


def test_two_classes(tmp_path: Path) -> None:
    table = frame().drop(columns="w")
    table.to_csv(tmp_path / "d.csv", index=False)
    data = sc.Dataset.from_frame(table, "y")
    record = sc.solve(data, folds="3", loss="logistic", gammas=[1.0], taus=[1])
    assert record.folds.spec == "stratified:3"
    words = ["--target", "y", "--folds", "3", "--loss", "logistic", "--gamma", "1", "--tau", "1", "-q"]
    assert run(["solve", str(tmp_path / "d.csv"), *words, "--json", str(tmp_path / "r.json")]) == 0
    stored = read_record(tmp_path / "r.json").folds
    plan = sc.make_folds(record.folds.spec, data, record.folds.seed or 0)
    assert record.folds.digest == stored.digest == plan.digest != sc.make_folds("3", data).digest


def test_weights() -> None:
    table = frame().assign(y=np.arange(24.0) ** 2)
    record = sc.solve(table, "y", folds="3", weights="w", gammas=[1.0], taus=[1])
    assert record.folds.spec == "3 weighted"
    data = sc.read_dataset(table, "y", weights="w")
    assert sc.make_folds(record.folds.spec, data).digest == record.folds.digest
    with pytest.raises(BadInput, match="data with row weights"):
        sc.make_folds(record.folds.spec, sc.Dataset.from_frame(table, "y", aux=("w",)))
    named = sc.Dataset.from_frame(table.rename(columns={"w": "is weighted"}), "y", aux=("is weighted",))
    assert sc.make_folds("groups:is weighted", named).k == 4


@pytest.mark.parametrize("folds", ["4", "groups:g:5", "groups:g", "column:g", "loo", "forward:4"])
def test_outer_folds_of_a_nested_cross_validation(folds: str) -> None:
    table = frame().assign(y=np.arange(24.0) ** 2, g=np.arange(24) // 3).drop(columns="w")
    for seed in (0, 3):
        how = {"folds": folds, "nested": 3, "seed": seed, "drop": ["g"] * ("g" not in folds)}
        record = sc.solve(table, "y", gammas=[1.0], taus=[1], **how)  # type: ignore[arg-type]
        data = sc.Dataset.from_frame(table, "y", aux=("g",))
        assert record.nested is not None
        outer = sc.make_folds(record.nested.outer.spec, data, record.nested.outer.seed or 0)
        assert outer.digest == record.nested.outer.digest

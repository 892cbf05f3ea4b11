"""Bounds on CV errors as a library function: those of the command, which contain the exact errors."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.bounds.cv_error import BoundsTable, PrintedTable
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.cv_bounds import bound_cv_errors
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.search import first_use
from sparsecv_mio.search.options import Hooks

PROSTATE = str(INSTANCES / "prostate.csv")


def test_bounds_are_those_of_the_command_and_contain_the_errors(tmp_path: Path) -> None:
    data = sc.read_dataset(PROSTATE, "lpsa")
    folds, grid = make_folds("4", data), {"gammas": [0.1, 1.0], "taus": [1, 2, 3]}
    bounded = bound_cv_errors(data, folds, **grid)  # type: ignore[arg-type]
    assert bounded.status == "proved" and isinstance(bounded.table, BoundsTable)
    record = sc.cross_validate(data, folds, **grid, gap=0.0)  # type: ignore[arg-type]
    pairs = bounded.table.to_dict()["table"]
    for pair, row in zip(pairs, record.table, strict=True):
        assert pair["lower"] <= row.upper * (1.0 + 1e-9) and pair["upper"] >= row.lower * (1.0 - 1e-9)
    out = tmp_path / "b.json"
    words = ["--target", "lpsa", "--folds", "4", "--gamma", "0.1,1", "--tau", "1:3", "--quiet", "--json", str(out)]
    assert run(["bounds", PROSTATE, *words]) == 0
    assert json.loads(out.read_text())["table"] == pairs


def test_the_formula_of_the_paper_is_for_squared_error_alone() -> None:
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.normal(size=(20, 3)), np.arange(20) % 2)
    folds, grid = make_folds("2", data), {"gammas": [1.0], "taus": [1]}
    assert isinstance(bound_cv_errors(data, folds, as_printed=True, **grid).table, PrintedTable)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="as-printed: requires loss squared"):
        bound_cv_errors(data, folds, as_printed=True, options=PathOptions(loss="logistic"), **grid)  # type: ignore[arg-type]


def test_an_interrupted_run_has_valid_bounds() -> None:
    data, stop = sc.read_dataset(PROSTATE, "lpsa"), threading.Event()
    stop.set()
    bounded = bound_cv_errors(data, make_folds("4", data), gammas=[0.1], taus=[1], hooks=Hooks(stop=stop))
    assert bounded.status == "interrupted" and np.all(bounded.table.lower >= 0.0)


def test_the_first_use_on_a_machine_takes_options_of_any_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled by tiny data of two classes, which have no exposures."""
    noted = list[str]()
    monkeypatch.setattr(first_use, "_compiled", set())
    monkeypatch.setattr(first_use, "_is_stored", lambda purpose: purpose in noted)
    monkeypatch.setattr(first_use, "_store", noted.append)
    rng = np.random.default_rng(0)
    counts, days = rng.poisson(2.0, 40).astype(float), rng.uniform(1.0, 2.0, 40)
    data = Dataset.from_arrays(rng.normal(size=(40, 3)), counts, names=["a", "b", "c"], aux={"days": days})
    options = PathOptions(loss="poisson", exposure="days")
    bounded = bound_cv_errors(data, make_folds("4", data), gammas=[0.1], taus=[1], options=options)
    assert bounded.status == "proved" and noted

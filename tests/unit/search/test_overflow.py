"""A held-out loss above the largest number: the CV error is undefined, and the record is valid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.errors import SparseCVWarning

ROWS = 12
FAR = 5  # row whose prediction overflows


def counts_with_far_row() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(ROWS, 2)), 2)
    y = np.round(np.exp(1.0 + X[:, 0]))
    X[FAR, 0] = 4000.0
    return X, y


def test_an_overflow_is_an_undefined_error_with_valid_bounds() -> None:
    X, y = counts_with_far_row()
    data = sc.Dataset.from_arrays(X, y)
    labels = np.arange(ROWS) % 3
    options = dict(gammas=[0.01], taus=[1], loss="poisson", scale="none")
    with pytest.warns(SparseCVWarning, match=f"fold {FAR % 3 + 1}: the held-out loss of row {FAR + 1} exceeds"):
        record = sc.solve(data, folds=labels, **options)
    assert record.cv_error == record.upper == np.inf and 1e200 < record.lower < np.inf
    assert [np.isfinite(fold.error) for fold in record.chosen_folds] == [fold != FAR % 3 for fold in range(3)]
    again = Record.from_json(record.to_json())
    assert np.array_equal(again.chosen_folds.error, record.chosen_folds.error)
    report = sc.verify(again, data, labels)
    assert report.ok and record.status == "limit", report.failures


def test_another_pair_without_an_overflow_is_certified() -> None:
    X, y = counts_with_far_row()
    data = sc.Dataset.from_arrays(X, y)
    record = sc.solve(
        data, folds=np.arange(ROWS) % 3, gammas=[0.01, 1e5], taus=[0, 1], loss="poisson", scale="none", time_limit=60
    )
    assert record.status == "proved" and np.isfinite(record.cv_error)
    assert any(row.cv_error == np.inf and row.status == "excluded" for row in record.table)


def test_the_command_names_the_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = counts_with_far_row()
    lines = [",".join(map(str, (*x, count, row % 3))) for row, (x, count) in enumerate(zip(X, y, strict=True))]
    data, json = tmp_path / "d.csv", tmp_path / "r.json"
    data.write_text("a,b,y,fold\n" + "\n".join(lines) + "\n")
    words = ["--target", "y", "--loss", "poisson", "--folds", "column:fold", "--gamma", "0.01", "--tau", "1"]
    assert run(["solve", str(data), *words, "--scale", "none", "--json", str(json)]) == 3
    shown = capsys.readouterr()
    assert "CV error undefined" in shown.out and "more time would not help" in shown.out
    assert "2 known fold models" in shown.out and "chosen from 0" not in shown.out
    assert shown.err.count(f"the held-out loss of row {FAR + 1} exceeds the largest number") == 1
    assert run(["verify", str(json), str(data)]) == 0

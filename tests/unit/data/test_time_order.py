"""Rows in the order of time: what shows it, and what does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.table_facts import Inspection, inspect_file

RNG = np.random.default_rng(3)
N = 40
DAYS = pd.date_range("2023-01-30", periods=N, freq="9D")
NOISE, SMOOTH = RNG.normal(size=N), np.cumsum(RNG.normal(size=N))


def inspected(tmp_path: Path, y: object, **columns: object) -> Inspection:
    file = tmp_path / "rows.csv"
    pd.DataFrame({"a": RNG.normal(size=N), **columns, "y": y}).to_csv(file, index=False)
    return inspect_file(file, "y", Reading.from_keywords(), None)


@pytest.mark.parametrize(
    ("columns", "y"),
    [
        ({"seen": DAYS.strftime("%Y-%m-%d")}, NOISE),
        ({"seen": DAYS.strftime("%d.%m.%Y")}, NOISE),
        ({"seen": DAYS.strftime("%m/%d/%Y")}, NOISE),
        ({"seen": pd.date_range("2024-02-28", periods=N, freq="7h").strftime("%Y-%m-%dT%H:%M:%S")}, NOISE),
        ({"year": 1990 + np.arange(N) // 4, "quarter": np.arange(N) % 4 + 1}, NOISE),
        ({"Jahr": 1900 + np.arange(N)}, NOISE),
        ({"depth": np.arange(N) ** 1.5}, SMOOTH),
    ],
)
def test_what_shows_the_order_of_time(columns: dict[str, object], y: object, tmp_path: Path) -> None:
    found = inspected(tmp_path, y, **columns)
    assert found.refused == "" and "--folds forward:5" in found.options and found.folds == 5
    named = next(fact for fact in found.columns if fact.name in columns)
    assert "increases from row to row" in named.notes[-1] and "--folds forward:5" in named.notes[-1]


@pytest.mark.parametrize(
    ("columns", "y"),
    [
        ({"seen": DAYS[RNG.permutation(N)].strftime("%Y-%m-%d")}, NOISE),
        ({"year": np.tile(1990 + np.arange(10), 4)}, SMOOTH),
        ({"year": np.repeat(1990 + np.arange(2), 20)}, NOISE),
        ({"depth": np.arange(N) ** 1.5}, NOISE),
        ({"depth": np.arange(N) ** 1.5}, np.sort(SMOOTH)),
        ({"depth": RNG.normal(size=N)}, SMOOTH),
        ({}, SMOOTH),
    ],
)
def test_what_does_not(columns: dict[str, object], y: object, tmp_path: Path) -> None:
    assert not [option for option in inspected(tmp_path, y, **columns).options if "--folds" in option]


def test_subjects_come_before_time(tmp_path: Path) -> None:
    visits = {"patient": [f"p{k // 4}" for k in range(N)], "visit": np.arange(N) % 4, "seen": DAYS.strftime("%Y-%m-%d")}
    assert [option for option in inspected(tmp_path, NOISE, **visits).options if "--folds" in option] == [
        "--folds groups:patient"
    ]


def test_empty_cells_are_not_filled_by_later_rows(tmp_path: Path) -> None:
    days, gaps = DAYS.strftime("%Y-%m-%d"), np.where(np.arange(N) % 4 == 1, np.nan, NOISE[::-1].round(2))
    found = inspected(tmp_path, NOISE, day=days, b=gaps, c=np.arange(N) % 7)
    assert {"--na drop", "--folds forward:5"} <= set(found.options) and found.n == N - np.isnan(gaps).sum()
    assert "--na mean" in inspected(tmp_path, NOISE, b=gaps, c=np.arange(N) % 7).options
    sparse = [np.where(np.arange(N) % 3 == k, np.nan, NOISE[::-1].round(2)) for k in range(3)]
    found = inspected(tmp_path, NOISE, day=days, b=sparse[0], c=sparse[1] + np.arange(N), d=sparse[2] ** 2)
    assert {"--na mean", "--na-within folds"} <= set(found.options) and found.refused == ""


def test_a_copy_of_a_column_that_stays_is_left_out(tmp_path: Path) -> None:
    b = RNG.normal(size=N).round(3)
    found = inspected(tmp_path, NOISE, b=b, again=b, degrees=1.8 * b + 32.0)
    assert "--drop again,degrees" in found.options and found.p == 2
    assert [fact.drop for fact in found.columns] == [False, False, True, True, False]
    leak = inspected(tmp_path, b, b=b)
    assert "--drop b" in leak.options and leak.columns[1].notes == ("a copy of 'y', the target",)


@pytest.mark.parametrize(
    ("subjects", "option"), [(12, "groups:patient"), (20, "groups:patient"), (30, "groups:patient:10")]
)
def test_many_subjects_share_folds(subjects: int, option: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"patient": [f"p{k // 3}" for k in range(3 * subjects)], "a": rng.normal(size=3 * subjects)})
    frame["y"] = frame.a + rng.normal(size=len(frame))
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = inspect_file(tmp_path / "t.csv", "y", Reading(), None)
    assert f"--folds {option}" in found.options and found.folds == (10 if subjects == 30 else subjects)
    sc.solve(tmp_path / "t.csv", "y", folds=option, gammas=[0.1])

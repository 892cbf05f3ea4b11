"""What is proposed of a file: numbers of rows, subjects measured again, what a target is."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.cure import RawColumn
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.marks import POINT
from sparsecv_mio.data.proposal import about_target, numbers_rows, quoted, subjects_of
from sparsecv_mio.errors import BadInput

RISING = np.exp(np.linspace(-1, 6, 40))


def column(name: str, cells: Any) -> RawColumn:
    return RawColumn.of(name, list(cells), POINT)


def test_numbers_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    shuffled = (rng.permutation(20) + 1).tolist()
    assert numbers_rows(column("a", range(1, 5))) == numbers_rows(column("a", range(20))) == "numbers the rows"
    assert numbers_rows(column("a", shuffled)) == "holds 1 to 20, each once: numbers the rows"
    assert "by its name" in numbers_rows(column("patient_id", rng.permutation(1000)[:20].tolist()))
    assert "by its name" in numbers_rows(column("customerId", range(1001, 1021)))
    others: list[tuple[str, Any]] = [
        ("a", [3, 1, 2, 4]), ("year", range(1950, 1970)), ("acid", [7, 9, 1, 5, 3]), ("id", [1, 2, 3, 3]),
        ("id", [1, 2, None, 4]), ("id", [0.5, 1.5, 2.5, 3.5]),
    ]  # fmt: skip
    for name, cells in others:
        assert numbers_rows(column(name, cells)) == ""


def test_subjects_that_are_measured_again() -> None:
    who, visit = [f"s{k // 3}" for k in range(18)], [k % 3 + 1 for k in range(18)]
    found = subjects_of([column("a", np.linspace(0, 1, 18).tolist()), column("who", who), column("visit", visit)])
    assert found is not None and (found.column, found.visit, found.count) == ("who", "visit", 6)
    assert found.option == "--folds groups:who" and "'visit'" in found.note
    assert subjects_of([column("Patient ID", [k // 3 + 1 for k in range(18)]), column("t", visit)]) is not None
    few = [column("treatment", [f"t{k // 4}" for k in range(12)]), column("replicate", [k % 4 + 1 for k in range(12)])]
    assert subjects_of(few) is None  # a factor of an experiment
    uneven = [k for k in range(18) if k not in (4, 11, 17)]
    some = [column("subject", [who[k] for k in uneven]), column("week", [visit[k] for k in uneven])]
    assert subjects_of(some) is not None
    none: list[Any] = [(who, [1, 1, 2] * 6), (who, range(18)), ([*who[:-1], None], visit), (map(str, range(18)), visit)]
    for names, numbers in none:
        assert subjects_of([column("who", names), column("visit", numbers)]) is None


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([0, 1, 1, 0], "two values, 0 and 1: fitted is a linear probability model"),
        ([-1, 1, 1, -1], "two values, -1 and 1"),
        ([0, 3, 1, 9, 2], r"counts perhaps: .*; log\(1 \+ y\) as the target"),
        ([1, 1, 2, 1, 7], "counts perhaps"),
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
    text = about_target(Dataset.from_arrays(np.arange(float(len(y)))[:, None], y))
    assert re.search(said, text) and "\n" not in text


def test_names_are_one_word_of_a_shell() -> None:
    names = ["a", "b,c", "it's", '"q', "d e", "$x"]
    assert next(csv.reader(shlex.split(quoted(names)))) == names


def test_a_column_of_subjects_that_is_read_as_numbers_is_proposed_for_the_folds(tmp_path: Path) -> None:
    """The message proposed to encode the names, which the hint of `inspect` did not."""
    frame = pd.DataFrame(
        {"who": [f"s{k // 2}" for k in range(16)], "visit": [1, 2] * 8, "a": np.arange(16) % 5, "y": np.arange(16.0)}
    )
    frame.to_csv(tmp_path / "s.csv", index=False)
    frame.assign(a=frame["a"].where(frame.index != 3)).to_csv(tmp_path / "gaps.csv", index=False)
    for given in (frame, tmp_path / "s.csv", tmp_path / "gaps.csv"):
        with pytest.raises(BadInput, match='several rows each, so give folds="groups:who"'):
            sc.solve(given, target="y")
    plain = frame.assign(who=frame["y"].astype(str) + "s")
    with pytest.raises(BadInput) as found:
        sc.solve(plain, target="y")
    assert "groups:" not in str(found.value) and "encode" in str(found.value)
    assert sc.solve(tmp_path / "s.csv", target="y", folds="groups:who", taus=1).status == "proved"

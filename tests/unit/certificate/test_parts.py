"""What all records share: files that are never half-written, the relative gap."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path

import pytest

from sparsecv_mio.certificate.chosen_folds import ChosenFolds
from sparsecv_mio.certificate.parts import relative_gap
from sparsecv_mio.certificate.reading import read_record
from sparsecv_mio.errors import BadInput

from .examples import example


def test_write_and_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    example().write_record(path)
    assert read_record(path) == example()
    assert [p.name for p in tmp_path.iterdir()] == ["answer.json"]


def test_a_failing_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    example().write_record(path)
    bad = ChosenFolds.of([("a b",)] * 3, [1.0, math.nan, 3.0])
    with pytest.raises(ValueError):
        example(chosen_folds=bad).write_record(path)
    assert read_record(path) == example()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_and_a_device_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    example().write_record(tmp_path / "link.json")
    assert read_record(tmp_path / "real.json") == example() and (tmp_path / "link.json").is_symlink()
    example().write_record(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_an_unwritable_place_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot write"):
        example().write_record(tmp_path / "nowhere" / "answer.json")
    with pytest.raises(BadInput, match="cannot write"):
        example().write_record(tmp_path)


def test_relative_gap() -> None:
    assert relative_gap(0.0, math.inf) == math.inf
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(1.5, 2.0) == 0.25

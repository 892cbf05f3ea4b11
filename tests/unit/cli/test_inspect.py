"""`sparsecv inspect`: what it prints, the command that it proposes, its JSON."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.cli import run


@pytest.fixture(autouse=True)
def wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_the_command_that_is_proposed_solves_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, numbers = tmp_path / "my data.csv", tmp_path / "facts.json"
    rows = [f"{k};{30 + k * k % 17},5;{('Rome', 'Oslo', 'Bonn')[k % 3]};{k % 5 or ''}" for k in range(20)]
    data.write_text("id;age;city;y\n" + "\n".join(rows) + "\n")
    assert run(["inspect", str(data), "-t", "y"]) == 2
    assert "give --sep semicolon" in capfd.readouterr().err
    given = ["--sep", ";", "--decimal", ","]
    assert run(["inspect", str(data), "-t", "y", "--json", str(numbers), *given]) == 0
    shown = capfd.readouterr().out
    assert "numbers the rows" in shown and "Bonn, Oslo, Rome" in shown
    facts = json.loads(numbers.read_text())
    assert facts["n"] == 16 and facts["p"] == 4 and facts["columns"][-1]["missing"] == 4
    command = next(line for line in shown.splitlines() if line.startswith("sparsecv solve"))
    assert run([*shlex.split(command)[1:], "--gamma", "0.1", "-q"]) == 0
    assert "proved" in capfd.readouterr().out


def test_without_a_target_and_with_many_columns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "wide.csv"
    X = np.random.default_rng(0).normal(size=(12, 60))
    np.savetxt(data, X, delimiter=",", header=",".join(f"c{j}" for j in range(60)), comments="")
    assert run(["inspect", str(data)]) == 0
    shown = capfd.readouterr().out
    assert "20 more columns: --full lists them" in shown and "name the column to predict" in shown
    assert run(["inspect", str(data), "--full", "-t", "c0"]) == 0
    assert "59 features" in capfd.readouterr().out

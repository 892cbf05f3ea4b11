"""Models as files: the objective of the file is f, and what cannot be written is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.one import export_model
from sparsecv_mio.problem.constraints import SideConstraints

from .problems import problem_of


@pytest.mark.parametrize("suffix", [".mps", ".lp", ".nl"])
def test_names_and_units(suffix: str, tmp_path: Path) -> None:
    problem = problem_of(np.random.default_rng(0), 20, 3, 0.5)
    path = tmp_path / f"m{suffix}"
    offset, factor = export_model(problem, 2, str(path), labels=("age", "bmi", "sex"))
    assert offset == problem.yy and 0.0 < factor <= problem.yy * (1 + 1e-9)
    written = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "age" in written and "bmi" in written


def test_what_cannot_be_written(tmp_path: Path) -> None:
    problem = problem_of(np.random.default_rng(0), 20, 3, 0.5)
    with pytest.raises(BadInput, match="unknown ending"):
        export_model(problem, 2, str(tmp_path / "m.txt"))
    with pytest.raises(BadInput, match="no support of at most 1"):
        export_model(problem, 1, str(tmp_path / "m.mps"), constraints=SideConstraints(forced_in=(0, 1)))
    assert not list(tmp_path.iterdir())

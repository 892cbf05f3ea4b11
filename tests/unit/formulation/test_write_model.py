"""Models as files: the objective of the file is f, and what cannot be written is refused."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.one import export_model
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.moment_fits import refit_moments

from .problems import problem_of


@pytest.mark.parametrize("suffix", [".mps", ".lp", ".nl"])
def test_names_and_units(suffix: str, tmp_path: Path) -> None:
    problem = problem_of(np.random.default_rng(0), 20, 3, 0.5)
    path = tmp_path / f"m{suffix}"
    offset, factor, missed = export_model(problem, 2, str(path), labels=("age", "bmi", "sex"))
    assert missed == 0.0 and offset == problem.yy and 0.0 < factor <= problem.yy * (1 + 1e-9)
    written = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "age" in written and "bmi" in written


def test_what_cannot_be_written(tmp_path: Path) -> None:
    problem = problem_of(np.random.default_rng(0), 20, 3, 0.5)
    with pytest.raises(BadInput, match="unknown file ending"):
        export_model(problem, 2, str(tmp_path / "m.txt"))
    with pytest.raises(BadInput, match="no support of at most 1"):
        export_model(problem, 1, str(tmp_path / "m.mps"), constraints=SideConstraints(forced_in=(0, 1)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_highs_solves_the_piecewise_linear_model(suffix: str, tmp_path: Path) -> None:
    """Its least objective is below the true one by no more than is said, with the support of the best subset."""
    import highspy

    rng, path, same = np.random.default_rng(1), str(tmp_path / f"m{suffix}"), 0
    for _ in range(15):
        q = int(rng.integers(2, 6))
        problem, tau = problem_of(rng, 25, q, 10.0 ** rng.uniform(-3, 1)), int(rng.integers(1, q + 1))
        truth = {S: refit_moments(problem, S).objective for S in combinations(range(q), tau)}
        names = [f"a:{j}^2" for j in range(q)]
        offset, factor, missed = export_model(problem, tau, path, labels=names, piecewise=int(rng.integers(2, 65)))
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("mip_rel_gap", 0.0)
        assert solver.readModel(path) != highspy.HighsStatus.kError
        solver.run()
        assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        found = offset + factor * solver.getInfo().objective_function_value
        least, slack = min(truth.values()), 1e-6 * problem.yy
        assert found - slack <= least <= found + missed + slack
        values = dict(zip(solver.getLp().col_names_, solver.getSolution().col_value, strict=True))
        chosen = tuple(j for j, name in enumerate(sorted(n for n in values if n.startswith("z"))) if values[name] > 0.5)
        u = min(truth[S] for S in truth if set(chosen) <= set(S))
        assert u <= least + missed + slack
        same += u <= least + slack
    assert same > 10


def test_a_piecewise_model_is_written_where_it_can_be(tmp_path: Path) -> None:
    problem = problem_of(np.random.default_rng(0), 20, 3, 0.5)
    for suffix, tangents, message in ((".nl", 8, "write .mps or .lp"), (".mps", 1, "^piecewise: 1 is out of")):
        with pytest.raises(BadInput, match=message):
            export_model(problem, 2, str(tmp_path / f"m{suffix}"), piecewise=tangents)
    assert not list(tmp_path.iterdir())

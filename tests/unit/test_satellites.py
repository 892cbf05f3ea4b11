"""The package without its satellites: the core answers, verifies and fits, and states what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import INSTANCES, ROOT

from sparsecv_mio.cli import COMMANDS, CORE_COMMANDS
from sparsecv_mio.satellites import SATELLITES, installed_optional_packages, registered

# An editable install finds folders that the copy lacks in the repository: the copy is run without this finder. One
# process runs all commands, each with the code that it ends with and what it prints.
SCRIPT = """
import contextlib, io, json, sys
sys.meta_path[:] = [one for one in sys.meta_path if not getattr(one, "__module__", "").startswith("__editable__")]
import numpy as np
import sparsecv_mio as sc
from sparsecv_mio.cli import run
from sparsecv_mio.satellites import installed_optional_packages

answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    answers.append([code, out.getvalue(), err.getvalue()])
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
y = X[:, 0] + rng.normal(size=40)
for estimator, target in (
    (sc.BestSubsetRidge(tau=2), y), (sc.BestSubsetRidgeCV(cv=3), y),
    (sc.BestSubsetLogistic(tau=1), y > 0.0), (sc.BestSubsetPoisson(tau=1), np.arange(40) % 3),
):
    assert estimator.fit(X, target).predict(X).shape == (40,)
assert installed_optional_packages() == ()
print(json.dumps(answers))
"""
PROSTATE = str(INSTANCES / "prostate.csv")
COMMAND_LINES = {
    "solve": ["solve", PROSTATE, "--target", "lpsa", "--folds", "5", "--json", "record.json"],
    "verify": ["verify", "record.json", PROSTATE],
    "plot": ["plot", "record.json", "--out", "a.png"],
    "help": ["--help"],
    "batch": ["batch", "plan.toml"],
    "proof": ["solve", PROSTATE, "--target", "lpsa", "--proof", "a.proof"],
}


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has no satellite; it shares the compiled kernels of the package."""
    folder, kernels = tmp_path_factory.mktemp("core"), Path("sparsecv_mio", "kernels", "__pycache__")
    ignored = shutil.ignore_patterns(*SATELLITES, "__pycache__")
    shutil.copytree(ROOT / "sparsecv_mio", folder / "sparsecv_mio", ignore=ignored)
    (ROOT / kernels).mkdir(exist_ok=True)
    (folder / kernels).symlink_to(ROOT / kernels, target_is_directory=True)
    return folder


@pytest.fixture(scope="module")
def answers(core: Path) -> dict[str, tuple[int, str, str]]:
    """Exit code, output and messages of each command line in the copy, in which the estimators were fitted, too."""
    command = [sys.executable, "-c", SCRIPT, json.dumps([*COMMAND_LINES.values()])]
    done = subprocess.run(command, cwd=core, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(core)})
    assert done.returncode == 0, done.stderr
    return dict(zip(COMMAND_LINES, json.loads(done.stdout.splitlines()[-1]), strict=True))


def test_solve_verify_and_plot_run_without_satellites(core: Path, answers: dict[str, tuple[int, str, str]]) -> None:
    assert [answers[name][0] for name in ("solve", "verify", "plot")] == [0, 0, 0], answers
    assert "certified choice" in answers["solve"][1] and (core / "a.png").exists()


def test_the_help_names_the_commands_of_the_core_alone(answers: dict[str, tuple[int, str, str]]) -> None:
    shown = answers["help"][1]
    assert all(f"  {name} " in shown for name in CORE_COMMANDS)
    assert not any(f"  {name} " in shown for name in COMMANDS.keys() - CORE_COMMANDS.keys())
    code, _, told = answers["batch"]
    assert code == 2 and told.count("\n") == 1 and "no command 'batch'" in told


def test_a_proof_needs_its_checker(core: Path, answers: dict[str, tuple[int, str, str]]) -> None:
    code, _, told = answers["proof"]
    assert code == 2 and told.count("\n") == 1
    assert "--proof: the checker of proofs" in told and not (core / "a.proof").exists()


def test_satellites_register_what_the_core_uses() -> None:
    assert [module.__name__ for module in installed_optional_packages()] == [
        f"sparsecv_mio.{name}" for name in SATELLITES
    ]
    assert {"check", "batch", "glru"} <= COMMANDS.keys() - CORE_COMMANDS.keys()
    assert COMMANDS["plot"] == "sparsecv_mio.batch.table_commands" != f"sparsecv_mio.cli.{CORE_COMMANDS['plot']}"
    assert len([*registered("PROOF_CHECKER")]) == len([*registered("WARM_UP")]) == 1

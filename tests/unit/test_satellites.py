"""The package without its satellites: the core answers, verifies and fits, and states what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import INSTANCES, ROOT

from sparsecv_mio.cli import COMMANDS, CORE_COMMANDS
from sparsecv_mio.satellites import SATELLITES, installed_optional_packages, registered

# An editable install finds folders that the copy lacks in the repository: the copy is run without this finder.
SITE = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if not getattr(one, "__module__", "").startswith("__editable__")]
"""
PROSTATE = str(INSTANCES / "prostate.csv")
ESTIMATORS = """
import numpy as np
import sparsecv_mio as sc
from sparsecv_mio.satellites import installed_optional_packages
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
y = X[:, 0] + rng.normal(size=40)
for estimator, target in (
    (sc.BestSubsetRidge(tau=2), y), (sc.BestSubsetRidgeCV(cv=3), y),
    (sc.BestSubsetLogistic(tau=1), y > 0.0), (sc.BestSubsetPoisson(tau=1), np.arange(40) % 3),
):
    assert estimator.fit(X, target).predict(X).shape == (40,)
assert installed_optional_packages() == ()
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has no satellite; it shares the compiled kernels of the package."""
    folder, kernels = tmp_path_factory.mktemp("core"), Path("sparsecv_mio", "kernels", "__pycache__")
    ignored = shutil.ignore_patterns(*SATELLITES, "__pycache__")
    shutil.copytree(ROOT / "sparsecv_mio", folder / "sparsecv_mio", ignore=ignored)
    (ROOT / kernels).mkdir(exist_ok=True)
    (folder / kernels).symlink_to(ROOT / kernels, target_is_directory=True)
    (folder / "sitecustomize.py").write_text(SITE)
    return folder


def run_core(core: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(core)}
    return subprocess.run([sys.executable, *arguments], cwd=core, capture_output=True, text=True, env=environment)


def sparsecv(core: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_core(core, "-m", "sparsecv_mio.cli", *arguments)


def test_solve_and_verify_run_without_satellites(core: Path) -> None:
    solved = sparsecv(core, "solve", PROSTATE, "--target", "lpsa", "--folds", "5", "--json", "record.json")
    assert solved.returncode == 0 and "certified choice" in solved.stdout, solved.stderr
    verified = sparsecv(core, "verify", "record.json", PROSTATE)
    assert verified.returncode == 0, verified.stderr
    drawn = sparsecv(core, "plot", "record.json", "--out", "a.png")
    assert drawn.returncode == 0 and (core / "a.png").exists(), drawn.stderr


def test_estimators_fit_without_satellites(core: Path) -> None:
    fitted = run_core(core, "-c", ESTIMATORS)
    assert fitted.returncode == 0, fitted.stderr


def test_the_help_names_the_commands_of_the_core_alone(core: Path) -> None:
    shown = sparsecv(core, "--help").stdout
    assert all(f"  {name} " in shown for name in CORE_COMMANDS)
    assert not any(f"  {name} " in shown for name in COMMANDS.keys() - CORE_COMMANDS.keys())
    refused = sparsecv(core, "batch", "plan.toml")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "no command 'batch'" in refused.stderr


def test_a_proof_needs_its_checker(core: Path) -> None:
    refused = sparsecv(core, "solve", PROSTATE, "--target", "lpsa", "--proof", "a.proof")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "--proof: the checker of proofs" in refused.stderr and not (core / "a.proof").exists()


def test_satellites_register_what_the_core_uses() -> None:
    assert [module.__name__ for module in installed_optional_packages()] == [
        f"sparsecv_mio.{name}" for name in SATELLITES
    ]
    assert {"check", "batch", "glru"} <= COMMANDS.keys() - CORE_COMMANDS.keys()
    assert COMMANDS["plot"] == "sparsecv_mio.batch.table_commands" != f"sparsecv_mio.cli.{CORE_COMMANDS['plot']}"
    assert len([*registered("PROOF_CHECKER")]) == len([*registered("WARM_UP")]) == 1

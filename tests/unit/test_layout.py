"""A newcomer finds the test of a module by its name: `data/folds.py` is tested by `tests/unit/data/test_folds.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from repository import ROOT

UNIT = Path(__file__).parent
PACKAGE = ROOT / "sparsecv_mio"
MODULES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.stem not in ("__init__", "__main__")
)

# Modules, or folders of them, tested elsewhere: by one suite for all backends, or with the module that they serve.
ELSEWHERE = {
    "check": "unit/check/test_main.py",
    "cli/check": "unit/cli/test_proof.py",
    "proofs": "unit/check/test_main.py",
    "certificate/checks": "unit/certificate/test_verify.py",
    "certificate/claims": "unit/certificate/test_verify_altered.py",
    "certificate/optimality": "unit/certificate/test_verify.py",
    "certificate/restricted_optima": "unit/certificate/test_restricted.py",
    "certificate/near_records": "brute_force/test_near.py",
    "certificate/verify_near": "brute_force/test_near.py",
    "cli/common": "unit/cli/test_near.py",
    "near": "brute_force/test_near.py",
    "report/near_tables": "unit/cli/test_near.py",
    "certificate/refits": "unit/certificate/test_verify_altered.py",
    "batch/collect": "unit/batch/test_run.py",
    "batch/engines": "unit/test_cluster.py",
    "batch/estimators": "unit/batch/test_peers.py",
    "batch/fitted": "unit/batch/test_ours.py",
    "batch/folder": "unit/batch/test_run.py",
    "cli/collect": "unit/cli/test_batch.py",
    "cli/results": "unit/cli/test_table.py",
    "cli/options": "unit/cli/test_solve.py",
    "cli/warmup": "unit/test_warmup.py",
    "formulation/backends": "conformance/test_answers.py",
    "formulation/models": "unit/formulation/models/test_models.py",
    "kernels/forms": "unit/kernels/test_perspective.py",
    "certificate/stability": "unit/certificate/test_stable_models.py",
    "search/stability": "brute_force/test_stability.py",
    "report/numbers": "unit/report/test_tables.py",
    "search/methods/restricted": "brute_force/test_restrictions.py",
    "search/subproblem/restricted_cells": "brute_force/test_restrictions.py",
    "search/state/trees": "unit/test_cluster.py",
    "search/subproblem/sent_trees": "unit/test_cluster.py",
    "search/observers/checkpoint": "brute_force/test_checkpoint.py",
    "search/observers/watched": "unit/search/methods/parts/test_run.py",
    "version": "unit/cli/test_main.py",
}


def elsewhere(module: str) -> str | None:
    return next((place for part, place in ELSEWHERE.items() if module == part or module.startswith(part + "/")), None)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_its_test(module: str) -> None:
    folder, _, name = module.rpartition("/")
    own = UNIT / folder / f"test_{name}.py"
    place = elsewhere(module)
    assert own.exists() or place is not None, f"{module}.py has no {own.relative_to(ROOT)}"
    assert place is None or (ROOT / "tests" / place).exists(), f"tests/{place} is gone"


@pytest.mark.parametrize("part", ELSEWHERE)
def test_what_is_tested_elsewhere_is_still_there(part: str) -> None:
    assert any(module == part or module.startswith(part + "/") for module in MODULES), f"{part} is gone"


def test_folders_of_tests_are_those_of_the_package() -> None:
    folders = {path.parent.relative_to(UNIT).as_posix() for path in UNIT.rglob("test_*.py")}
    assert {folder for folder in folders if not (PACKAGE / folder).is_dir()} == set()

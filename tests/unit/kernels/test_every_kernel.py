"""Every module of kernels/ has a test module of its name here, which meets each of its public functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from repository import syntax

import sparsecv_mio.kernels

HERE = Path(__file__).parent


def public_functions(path: Path) -> set[str]:
    tree = syntax(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}


FILES = Path(sparsecv_mio.kernels.__path__[0]).glob("*.py")
MODULES = sorted(path for path in FILES if public_functions(path))  # a file of named tuples computes nothing


def names_used(path: Path) -> set[str]:
    tree = syntax(path.read_text(encoding="utf-8"))
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} | {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name)
    }


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_public_function_is_met(module: Path) -> None:
    tests = HERE / f"test_{module.stem}.py"
    assert tests.exists(), f"kernels/{module.name} has no tests/unit/kernels/test_{module.stem}.py"
    assert f"sparsecv_mio.kernels.{module.stem} import" in tests.read_text(encoding="utf-8") or (
        f"from sparsecv_mio.kernels import {module.stem}" in tests.read_text(encoding="utf-8")
    )
    missing = public_functions(module) - names_used(tests)
    assert not missing, f"{tests.name} never uses {sorted(missing)}"

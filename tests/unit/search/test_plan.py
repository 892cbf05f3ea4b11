"""The plan is the only place of the one search that compares sizes, and the docs list every number of it."""

from __future__ import annotations

import ast
import re
from dataclasses import fields

import pytest
from repository import ROOT, syntax

from sparsecv_mio.search.plan import Plan

SEARCH = ROOT / "sparsecv_mio" / "search"
ONE_SEARCH = [
    *(SEARCH / f"{name}.py" for name in ("executor", "goals", "steps", "writer")),
    *SEARCH.glob("grid_*.py"),
    *(SEARCH / "orders").glob("*.py"),
    *(SEARCH / "sources").glob("*.py"),
]
SIZE = re.compile(r"\b(n|q|p|k|m|data\.n|data\.q|folds\.k|plan\.k)$")


def row_of(setting: object) -> str:
    """Return the row of the page for a setting of the plan."""
    name, metadata = setting.name, setting.metadata  # type: ignore[attr-defined]
    return f"| `{name}` | {metadata['unit']} | {metadata['reason']} |"


def test_the_page_lists_every_number_of_the_plan() -> None:
    page = (ROOT / "docs" / "how_it_decides.md").read_text(encoding="utf-8")
    missing = [row_of(setting) for setting in fields(Plan) if row_of(setting) not in page]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("path", ONE_SEARCH, ids=lambda path: path.name)
def test_no_other_file_compares_a_size_with_a_number(path: object) -> None:
    """A threshold on rows, columns or folds is a setting of the plan, with its reason."""
    tree = syntax(path.read_text(encoding="utf-8"))  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            sizes = [side for side in sides if SIZE.search(ast.unparse(side))]
            numbers = [side for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, int | float)]
            names = [side for side in sides if ast.unparse(side).isupper()]
            assert not (sizes and (numbers or names)), ast.unparse(node)


@pytest.mark.parametrize("path", ONE_SEARCH, ids=lambda path: path.name)
def test_no_other_file_asks_for_the_loss(path: object) -> None:
    assert "Loss." not in path.read_text(encoding="utf-8")  # type: ignore[attr-defined]

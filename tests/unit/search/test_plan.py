"""The plan is the only place of the one search that compares sizes, and the docs list every number of it."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from repository import ROOT, syntax
from runs import new_run

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss

SEARCH = ROOT / "sparsecv_mio" / "search"
ONE_SEARCH = [
    *(SEARCH / f"{name}.py" for name in ("goals", "steps", "writer")),
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


SIDES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[Any, Any]]] = [  # a threshold, its two sides, two values
    ("searches_folds", {"q": 36}, {"q": 37}, (False, True)),
    ("orders", {"q": 36}, {"q": 37}, (("together",), ("first supports", "by size"))),
    ("searches_all_folds", {"n": 50, "k": 50}, {"n": 51, "k": 51}, (True, False)),
    ("samples_folds", {"n": 50, "k": 50}, {"n": 51, "k": 51}, (False, True)),
    ("encloses_folds", {"q": 400}, {"q": 401}, (True, False)),
    ("grows_weighted_trees", {"q": 400}, {"q": 401}, (True, False)),
    ("leaves_folds_out", {"n": 48, "k": 23}, {"n": 48, "k": 24}, (False, True)),
    ("leaves_folds_out", {"n": 60, "k": 30, "q": 128}, {"n": 60, "k": 30, "q": 129}, (True, False)),
    ("searches_folds", {"q": 36, "loss": Loss.LOGISTIC}, {"q": 37, "loss": Loss.LOGISTIC}, (False, True)),
    (
        "searches_folds",
        {"n": 410, "q": 37, "loss": Loss.LOGISTIC},
        {"n": 412, "q": 37, "loss": Loss.LOGISTIC},
        (True, False),
    ),
    ("weighs_held_out", {"k": 50, "loss": Loss.LOGISTIC}, {"k": 51, "loss": Loss.LOGISTIC}, (True, False)),
    ("lists_held_out", {"k": 23, "loss": Loss.LOGISTIC}, {"k": 24, "loss": Loss.LOGISTIC}, (False, True)),
    ("leaves_folds_out", {"n": 64 * 24, "k": 24}, {"n": 65 * 24, "k": 24}, (True, False)),
]


def plan_of(n: int = 60, q: int = 5, k: int = 10, loss: Loss = Loss.SQUARED) -> Plan:
    """Return the plan for the default question about n rows, q columns and k folds."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n) if loss.is_quadratic else np.resize([-1.0, 1.0], n)
    data = standardize(Dataset.from_arrays(rng.normal(size=(n, q)), y), loss=loss)
    plan: Plan = new_run(
        data, make_folds(str(k), data.dataset), Grid.of([0.1, 1.0], [1, 2], q), method="auto", gap=1e-4, loss=loss
    ).plan
    return plan


@pytest.mark.parametrize(("setting", "at_most", "beyond", "values"), SIDES)
def test_a_plan_takes_the_right_side_of_a_threshold(
    setting: str, at_most: dict[str, Any], beyond: dict[str, Any], values: tuple[Any, Any]
) -> None:
    assert (getattr(plan_of(**at_most), setting), getattr(plan_of(**beyond), setting)) == values


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

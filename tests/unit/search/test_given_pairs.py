"""The order of given pairs: a hard pair does not keep the others waiting, and the answer is that of other orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runs import change_plan, new_run, to_end

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.executor import Executor
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import Step
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees import glm_tree


def new_search() -> Any:
    """A search whose pairs are all to be solved, in noise."""
    rng = np.random.default_rng(0)
    data = standardize(Dataset.from_arrays(rng.normal(size=(60, 20)), np.repeat([-1.0, 1.0], 30)), loss=Loss.LOGISTIC)
    grid = Grid.of([1e-3, 1e-2], [2, 4, 6], 20)
    return new_run(data, make_folds("3", data.dataset), grid, loss="logistic", method="auto")


def test_pairs_get_trees_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, submit, tries = to_end(new_search()).state.cells, Executor.submit, list[int]()

    def note(self: Executor, step: Step) -> None:
        tries.extend([step.tries] if step.source == "subproblem trees" else [])
        submit(self, step)

    monkeypatch.setattr(glm_tree, "LEAPS_WORK", 1)  # otherwise one node solves a small subproblem
    change_plan(monkeypatch, first_node_limit=1, node_growth=2, orders=("first answers", "given pairs"))
    monkeypatch.setattr(Executor, "submit", note)
    cells = to_end(new_search()).state.cells
    assert tries == sorted(tries) and max(tries) > 1
    lower, upper = np.asarray(cells.lower), np.asarray(cells.upper)
    assert cells.decided.all() and (lower <= whole.upper).all() and (whole.lower <= upper).all()

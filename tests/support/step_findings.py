"""Findings of the steps of a search, as plain values that are compared bit by bit, also in a fresh process.

    python step_findings.py FILE

does the steps of a file that `write_steps` made, and prints the sources of those whose findings differ.
"""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from runs import new_run

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.loop import Executor
from sparsecv_mio.search.problems.registry import make_problems
from sparsecv_mio.search.sources.registry import find_source
from sparsecv_mio.search.state.context import SearchState
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import Findings, Step
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees.subsets import is_never_expired

CASES = {  # rows, columns, folds, largest size
    "few columns": (60, 6, "5", 4), "many columns": (40, 45, "4", 3),
    "leave-one-out": (40, 6, "loo", 4), "logistic": (60, 6, "5", 4), "poisson": (60, 6, "5", 4),
}  # fmt: skip


def make_search(case: str) -> GridSearch:
    """Return the search of a case, not begun."""
    n, p, folds, largest = CASES[case]
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, p))
    score = X[:, :3] @ (1.0, -0.7, 0.4)
    loss = Loss(case) if case in ("logistic", "poisson") else Loss.SQUARED
    y = {
        Loss.SQUARED: score + rng.normal(size=n),
        Loss.LOGISTIC: (score + rng.logistic(size=n) > 0.0).astype(float),
        Loss.POISSON: rng.poisson(np.exp(0.5 * score)).astype(float),
    }[loss]
    data = Dataset.from_arrays(X, y)
    if loss is not Loss.SQUARED:
        data = as_two_classes(data) if loss is Loss.LOGISTIC else as_counts(data, None)
    grid = Grid.of([0.1, 1.0, 10.0], range(1, largest + 1), p)
    plan = make_folds(folds, data)
    search: GridSearch = new_run(standardize(data, loss=loss), plan, grid, gap=1e-4, loss=loss, method="auto")
    return search


def write_steps(case: str, path: Path) -> Counter[str]:
    """Search, and write each step with its findings; returns how many steps of each source were written.

    Later tries of a tree are left out: they go on from where the tree was left.
    """
    run, done = Executor._run, list[tuple[bytes, Any]]()

    def noted(executor: Executor, step: Step) -> Findings:
        packed = pickle.dumps(step)
        found = run(executor, step)
        found = replace(found, statements=tuple(found.statements))
        if step.tries == 0 or not step.node_limit:
            done.append((packed, plain(found)))
        return found

    with patch.object(Executor, "_run", noted):
        for _ in make_search(case).turns():
            pass
    path.write_bytes(pickle.dumps((case, done)))
    return Counter(pickle.loads(packed).source for packed, _ in done)


def find_differences(path: Path) -> list[str]:
    """Do the steps of a file, each with problems made anew; returns case and source of those with other findings."""
    case, done = pickle.loads(path.read_bytes())
    with blas_on_one_thread():
        context, differ = make_search(case).context, list[str]()
        for packed, expected in done:
            step = pickle.loads(packed)
            problems = make_problems(context, SearchState.from_context(context).all_rows)
            found = find_source(step).run_step(step, problems, is_never_expired)
            if plain(replace(found, statements=tuple(found.statements))) != expected:
                differ.append(f"{case}: {step.source}")
    return differ


def plain(value: Any) -> Any:
    """Return a value as nested tuples, in which numbers are bytes: nan equals nan, and 0 is not -0."""
    if isinstance(value, Findings):
        value = value.is_finished, value.was_stopped, value.n_nodes, value.n_problems, value.statements
    if is_dataclass(value):
        return type(value).__name__, *[plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((plain(key), plain(held)) for key, held in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(held) for held in value)
    return np.float64(value).tobytes() if isinstance(value, float) else repr(value)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(*find_differences(Path(name)), sep="\n", end="")

"""One cell after the other: whatever the order, the answer is that of rounds."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn_run
from runs import to_end


@pytest.mark.parametrize("method", ["algorithm1", "grid"])
def test_the_answer_is_that_of_rounds(method: str) -> None:
    run, rounds = to_end(drawn_run(method)), to_end(drawn_run())
    assert run.run.state.proved()
    assert run.run.state.bounds().best == rounds.run.state.bounds().best
    both = run.run.state.cells.decided
    assert np.allclose(run.run.state.cells.nominal[both], rounds.run.state.cells.nominal[both], rtol=1e-9)


def test_a_budget_ends_it() -> None:
    run = to_end(drawn_run("grid", mio_budget=4))
    assert run.method.mios() == 4 and run.method.exhausted and run.finished
    assert run.snapshot().engine == "grid on native"


def test_work_on_takes_the_next_open_cells_of_a_pair() -> None:
    run = drawn_run("algorithm1", threads=2)
    run.begin()
    pairs = run.method.open.any(axis=2)
    if not pairs.any():
        pytest.skip("the bounds decide every cell")
    g, t = np.argwhere(pairs)[0]
    before = int(run.method.by_cell.submitted.sum())
    run.method.work_on(pairs)
    assert before < int(run.method.by_cell.submitted.sum()) <= before + 2 and run.method.by_cell.submitted[g, t].any()

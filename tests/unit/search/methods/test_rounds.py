"""Rounds: the pass of all folds first, then rounds of growing effort, until every cell is decided."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn, drawn_run
from runs import new_run, to_end


def test_steps_lead_to_a_proof_and_bounds_only_tighten() -> None:
    run = drawn_run()
    run.begin()
    low, high = run.run.state.cells.lower.copy(), run.run.state.cells.upper.copy()
    while not run.finished:
        run.step()
        cells = run.run.state.cells
        assert (cells.lower >= low).all() and (cells.upper <= high).all()
        low, high = cells.lower.copy(), cells.upper.copy()
    assert run.run.state.proved() and run.run.state.cells.decided.all()
    assert run.method.mios() <= run.run.state.cells.decided.size
    assert run.snapshot().engine == "per-fold"


def test_engines_decide_the_same() -> None:
    data, folds, grid = drawn(n=40, folds="loo")
    runs = [to_end(new_run(data, folds, grid, engine=engine)) for engine in ("enumerate", "shared", "per-fold")]
    first, *others = (run.run.state.cells for run in runs)
    for cells in others:
        assert np.array_equal(cells.decided, first.decided)
        assert np.allclose(cells.nominal, first.nominal, rtol=1e-9)
    assert [run.method.shared_pass.left for run in runs] == [False] * 3
    assert "enumerate" in runs[0].snapshot().engine and runs[2].snapshot().engine == "per-fold"


def test_work_on_decides_the_pairs_asked_for() -> None:
    run = drawn_run(gap=0.5)
    run.begin()
    pairs = np.zeros((2, 3), dtype=bool)
    pairs[1, 2] = True
    run.method.work_on(pairs)
    assert run.run.state.cells.decided[1, 2].all() and not run.method.open[1, 2].any()

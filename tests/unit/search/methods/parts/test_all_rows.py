"""Best subsets on all rows: those of every gamma, the nearest where a limit left one out, and solved on at one pair."""

from __future__ import annotations

import pytest
from drawn_search import drawn_run

from sparsecv_mio.search.methods.parts.all_rows import best_on_all_rows, fit_all_rows


@pytest.mark.parametrize("in_turn", [False, True])
def test_bounds_hold_the_optimum_of_every_gamma(in_turn: bool) -> None:
    exact, run = drawn_run().run, drawn_run().run
    fit_all_rows(exact, [0, 1], 1 << 40, lambda: False)
    fit_all_rows(run, [1, 0], 0, lambda: False, in_turn)
    for g in range(2):
        for tau, cell in run.state.all_rows.best[g].cells.items():
            optimum = exact.state.all_rows.best[g].cells[tau]
            assert optimum.complete and cell.lower <= optimum.upper * (1.0 + 1e-9) and cell.upper >= optimum.lower
    assert run.state.counts.nodes <= exact.state.counts.nodes


def test_a_gamma_left_out_gets_the_supports_of_the_nearest_without_a_proof() -> None:
    run = drawn_run(seconds=1e-9).run
    fit_all_rows(run, [1, 0], 0, lambda: True)
    first, other = run.state.all_rows.best[1], run.state.all_rows.best[0]
    assert [cell.support.tolist() for cell in other.cells.values()] == [
        cell.support.tolist() for cell in first.cells.values()
    ]
    assert all(cell.lower == 0.0 and not cell.complete for cell in other.cells.values())


def test_an_open_pair_is_solved_on() -> None:
    run = drawn_run()
    run.begin()
    cell = best_on_all_rows(run.run, 0, 2, 1 << 20)
    assert cell.complete and cell.tau == 2 and sorted(cell.support.tolist()) == [0, 3]

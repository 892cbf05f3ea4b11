"""Best subsets on all rows: found first for every gamma, and solved on at the reported pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.formulation.backends.native.path import PathCell, PathResult, solve_path
from sparsecv_mio.search.methods.parts.run import Run


def fit_all_rows(
    run: Run, order: Sequence[int], effort: int, expired: Callable[[], bool], in_turn: bool = False
) -> None:
    """Find best subsets on all rows at every gamma and tau: first supports for the folds, and bounds on all rows.

    Parameters
    ----------
    run : Run
    order : sequence of int
        Indices of the gammas; the time limit may leave out the last ones, never the first.
    effort : int
        Nodes a tau may cost.
    expired : callable
        True ends a fit with the supports and bounds it has.
    in_turn : bool
        Whether each gamma starts from the supports of the one before.
    """
    state, context = run.state, run.context
    starts: list[IntArray] = []
    found: dict[int, PathResult] = {}
    sizes = len(context.grid.taus)
    what = "best subsets on all rows:" if effort else "relaxations on all rows:"
    for g in order:
        if found and context.deadline.expired():
            break
        run.signals.doing(what, len(found) * sizes, len(order) * sizes)
        found[g] = solve_path(
            state.all_rows.problem(g), context.grid.taus.tolist(), starts=[*starts, *state.all_rows.starts[g]],
            effort=effort, expired=expired,
        )  # fmt: skip
        if in_turn:
            starts = [cell.support for cell in found[g].cells.values()]
        state.counts.add(found[g].nodes)
    state.all_rows.keep(found)


def best_on_all_rows(run: Run, g: int, tau: int, effort: int) -> PathCell:
    """Return the best subset on all rows at a pair; an open one is solved on while there is time.

    Parameters
    ----------
    run : Run
    g, tau : int
        Index of gamma, and size.
    effort : int
        Nodes that it may cost.
    """
    cell, expired = run.state.all_rows.best[g].cells[tau], run.context.deadline.expired
    if cell.complete or expired():
        return cell
    again = solve_path(run.state.all_rows.problem(g), [tau], starts=[cell.support], effort=effort, expired=expired)
    run.state.counts.add(again.nodes)
    return again.cells[tau]

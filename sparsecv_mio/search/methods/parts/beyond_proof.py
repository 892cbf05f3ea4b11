"""What a closed certificate leaves open and is asked for all the same: a gap of 0, one standard error, stability."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.cell import PathResult
from sparsecv_mio.search import one_se
from sparsecv_mio.search.instability import Instabilities, StabilityTable, stability_table
from sparsecv_mio.search.methods.parts.run import GridMethod


def decide_beyond_proof(method: GridMethod, one_standard_error: bool) -> None:
    """Work on the pairs that are still asked for until none is, or no more work may be done."""
    _decide(method, one_standard_error)
    decide_stable_pairs(method)


def _decide(method: GridMethod, one_standard_error: bool) -> None:
    while not method.exhausted:
        if method.run.context.gap == 0.0:
            pairs = np.asarray(method.open.any(axis=2))
        elif one_standard_error:
            pairs = pairs_for_rule(method)
        else:
            return
        if not pairs.any():
            return
        method.work_on(pairs)


def pairs_for_rule(method: GridMethod) -> BoolArray:
    """(G, T): the pairs to decide next for the one-standard-error rule to be sure of its pair."""
    context, now = method.run.context, method.run.state.bounds()
    grid, unit = context.grid, context.data.y_unit**2
    rule = one_se.apply(now, now.best, grid.gammas, grid.taus, context.scored, unit)
    return one_se.next_to_decide(rule.missing & method.open.any(axis=2), now)


def decide_stable_pairs(method: GridMethod) -> None:
    """Work on the pairs that may have the least criterion, for any of the weights, until each choice is proved.

    The pair that leads comes first, then its rivals. Nothing is done where no weight was given.
    """
    context, state = method.run.context, method.run.state
    if not context.stability:
        return
    instabilities = Instabilities(context, state.cells, state.changes)
    fitted = np.zeros(state.cells.lower.shape[:2], dtype=bool)
    while not method.exhausted:
        table = stability_table(
            instabilities, state.bounds(), state.all_rows.best, context.stability, lambda: method.exhausted
        )
        missing = np.any([table.missing(weight, context.gap) for weight in context.stability], axis=0)
        workable = method.open.any(axis=2) | ~(fitted | _fitted(method))
        pairs = _leading(method, table) & missing & workable
        if not pairs.any():
            pairs = missing & workable
        if not pairs.any():
            return
        for g, t in np.argwhere(pairs & ~fitted).tolist():
            _fit(method, g, int(context.grid.taus[t]))
        fitted |= pairs
        still_open = pairs & method.open.any(axis=2)
        if still_open.any():
            method.work_on(still_open)


def _fitted(method: GridMethod) -> BoolArray:
    """(G, T): pairs whose best subset of all rows is known."""
    taus = method.run.context.grid.taus.tolist()
    return np.array([[result.cells[tau].complete for tau in taus] for result in method.run.state.all_rows.best])


def _leading(method: GridMethod, table: StabilityTable) -> BoolArray:
    """(G, T): the pairs that the weights choose of what is known."""
    context, found = method.run.context, np.zeros(table.known.shape, dtype=bool)
    for weight in context.stability:
        found[table.choose(weight, context.gap, context.grid.gammas, context.grid.taus).pair] = True
    return found


def _fit(method: GridMethod, g: int, tau: int) -> None:
    """Solve all rows at a pair, as far as the method goes."""
    best = method.run.state.all_rows.best[g].cells[tau]
    if not best.complete:
        found = method.best_on_all_rows(g, tau)
        method.run.state.all_rows.improve(g, PathResult({tau: found}, 0, finished=found.complete))

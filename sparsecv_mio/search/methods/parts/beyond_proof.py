"""What a closed certificate leaves open and is asked for all the same: a gap of 0, one standard error, stability."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search import one_se
from sparsecv_mio.search.methods.parts.run import GridMethod
from sparsecv_mio.search.methods.parts.stable_pair import decide_stable_pairs


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

"""Risk sets against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from cox_truth import dense_terms, drawn_case

from sparsecv_mio.problem.risk_sets import make_risk_sets, sum_blocks, sum_paths


@pytest.mark.parametrize("seed", range(60))
def test_sums_over_risk_sets_are_those_of_the_definition(seed: int) -> None:
    case = drawn_case(seed)
    n = len(case.time)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(n)[: max(n - 3, 2)]) if seed % 2 else None
    sets = make_risk_sets(case.time, case.event, case.entry, case.stratum, case.weights, rows, case.efron)
    W, omega, events, _ = dense_terms(case, rows)
    values = rng.uniform(1.0, 2.0, size=(n, 2)) * sets.weight[:, None]
    block = np.repeat(np.arange(len(sets.node)), sets.n_terms)
    first = np.cumsum(sets.n_terms) - sets.n_terms
    share = 1.0 - (np.arange(len(block)) - first[block]) / sets.n_terms[block]
    sums = sum_paths(sets, values)[sets.node][block] + share[:, None] * sum_blocks(sets, values)[block]
    raw = np.where(sets.weight[:, None] > 0.0, values / np.where(sets.weight > 0.0, sets.weight, 1.0)[:, None], 0.0)
    expected = np.column_stack([W @ raw, omega]).astype(float)
    found = np.column_stack([sums, sets.omega[block]])
    order = [np.lexsort(np.round(part, 9).T) for part in (expected, found)]
    np.testing.assert_allclose(found[order[1]], expected[order[0]], rtol=1e-12)
    np.testing.assert_allclose(sets.event_weight, events.astype(float))
    assert sets.depth >= np.diff(sets.start).max(initial=0)


def test_rows_that_are_never_at_risk_have_no_weight() -> None:
    sets = make_risk_sets(
        np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, False]), np.array([0, 0, 2, 1.0])
    )
    assert sets.weight.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert sets.total == 1.0


def test_no_event_is_no_block() -> None:
    sets = make_risk_sets(np.array([1.0, 2.0]), np.array([False, False]))
    assert len(sets.node) == 0 and sets.total == 0.0
    assert sum_blocks(sets, np.ones(2)).shape == (0,) and sum_paths(sets, np.ones(2)).shape == (0,)

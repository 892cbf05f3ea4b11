"""The one-standard-error rule: the simplest pair within reach, and what must be known for it to be sure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.search import one_se


def test_the_simplest_pair_within_one_standard_error() -> None:
    run = to_end(drawn_run())
    now, asked = run.run.state.bounds(), run.context
    sizes, unit, cells = asked.folds.sizes, asked.data.y_unit**2, run.run.state.cells
    rule = one_se.apply(now, now.best, asked.grid.gammas, asked.grid.taus, asked.scored, unit)
    error = standard_error(cells.nominal[now.best] * unit, sizes)
    h = now.nominal * unit / sizes.sum()
    within = [(t, -g) for g, t in np.argwhere(h <= h[now.best] + error).tolist()]
    tau, gamma = min(within)
    assert rule.pair == (-gamma, tau) and rule.standard_error == error and not rule.missing.any()


def test_open_pairs_are_missing_until_decided() -> None:
    run = drawn_run("joint", gap=1e-4)
    run.begin()
    now, asked = run.run.state.bounds(), run.context
    rule = one_se.apply(now, now.best, asked.grid.gammas, asked.grid.taus, asked.scored, 1.0)
    assert rule.missing[now.best] and one_se.next_to_decide(rule.missing, now)[now.best]


def test_a_pair_without_a_model_of_every_fold_is_not_taken_and_the_pair_taken_is_decided() -> None:
    run = to_end(drawn_run())
    now, asked = run.run.state.bounds(), run.context
    grid, unit = asked.grid, asked.data.y_unit**2
    wide = replace(now, upper=now.upper * 0.0 + now.upper[now.best], nominal=now.nominal.copy())
    first = one_se.apply(wide, now.best, grid.gammas, grid.taus, asked.scored, unit).pair
    assert first == (len(grid.gammas) - 1, 0) != now.best
    wide.nominal[first] = np.inf
    assert one_se.apply(wide, now.best, grid.gammas, grid.taus, asked.scored, unit).pair != first
    decided = now.cells.decided[first].copy()
    now.cells.decided[first] = False
    wide.nominal[first] = now.nominal[first]
    assert one_se.apply(wide, now.best, grid.gammas, grid.taus, asked.scored, unit).missing[first]
    now.cells.decided[first] = decided

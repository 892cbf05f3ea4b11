"""Lower ends from held-out rows with some weight, by relaxations and by trees, on hostile problems: enumerated."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engines import by_size, patch_all
from slow import slow
from truth import INSIDE, OUTSIDE, Truth
from zoo import FOLDS, KINDS, WEIGHTS, hostile_problem

from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.sources.weighted_rows import WeightedTrees
from sparsecv_mio.trees import listing
from sparsecv_mio.trees.subsets import is_never_expired


@pytest.mark.parametrize("block", [0, 1, 2, *slow([3, 4, 5])])
def test_no_lower_end_exceeds_the_truth(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_all(monkeypatch, by_size(4))
    monkeypatch.setattr(listing, "SMALL", (0, 36)[block % 2])
    take, seen = WeightedTrees.relaxations, list[Any]()

    def every_pair(source: WeightedTrees, state: Any, plan: Any, wanted: Any) -> Any:
        """Relax every pair, and grow trees at every pair; the search is over then."""
        search, before = searches[-1], state.cells.lower.copy()
        every, shown = np.ones_like(wanted), np.where(np.isfinite(state.cells.nominal), state.cells.nominal, 0.0)
        for steps in (take(source, state, plan, every), *(
            source.steps(state, plan, every, rise * shown.sum(axis=2)) for rise in (0.1, 1.0)
        )):  # fmt: skip
            search.writer.take([source.run_step(step, search.problems, is_never_expired) for step in steps])
        seen.append((search, before, state.open.copy()))
        search.context.deadline.stop.set()
        return iter(())

    searches, make = list[Any](), GridSearch.__init__

    def noted(search: Any, *given: Any) -> None:
        searches.append(search)
        make(search, *given)

    monkeypatch.setattr(GridSearch, "__init__", noted)
    monkeypatch.setattr(WeightedTrees, "relaxations", every_pair)
    raised = 0
    for seed in range(5 * block, 5 * block + 5):
        rng = np.random.default_rng([7, seed])
        kinds = {"kind": str(rng.choice(KINDS)), "folds": str(rng.choice(FOLDS)), "weights": str(rng.choice(WEIGHTS))}
        try:
            case = hostile_problem(
                int(rng.integers(2**31)), **kinds, restricted=("none", "forced")[seed % 2], rows=20, columns=6
            )
            case = replace(case, gammas=[10.0 ** rng.uniform(-8.0, -4.0), *case.gammas], taus=list(range(7)))
            case = replace(case, taus=case.taus[: case.data.p + 1])
            case.solve(time_limit=600.0, gap=0.0, stop=threading.Event())
        except (BadInput, OutOfTime):
            continue
        raised += sum(above_none(case, *one) for one in seen)
        seen.clear()
    assert raised > 0


def above_none(case: Any, run: Any, before: Any, left: Any) -> int:
    """How many open cells have a larger lower end than before; none exceeds the least held-out error of an optimum."""
    truth, context, cells = Truth(case), run.context, run.state.cells
    share = 1e-9 if np.any(context.data.copy_of >= 0) else 1e-12
    for fold in range(case.folds.k):
        rows = truth.rows(fold)
        for g, t in np.argwhere(left[:, :, fold]).tolist():
            try:
                optima = rows.optima(float(context.grid.gammas[g]), int(context.grid.taus[t]))
            except np.linalg.LinAlgError:  # columns that no penalty holds apart
                continue
            if len(optima.value):
                unit = (context.data.y_unit / np.ldexp(1.0, rows.exponent)) ** 2
                (low, high), slip = optima.interval(INSIDE, -1.0), optima.rounding(OUTSIDE, 1.0)
                assert float(cells.lower[g, t, fold]) * unit <= low + slip + share * high, (g, t, fold)
    return int((left & (cells.lower > before)).sum())

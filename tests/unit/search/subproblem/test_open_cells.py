"""Cells of which only a value is known: every support up to that value has its error in the interval."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.search.subproblem.open_cells import Incumbent, held_out_intervals
from sparsecv_mio.units import TIE_RTOL

from .drawn import context_of, fold_of


@pytest.mark.parametrize("relax", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_every_optimum_is_inside(seed: int, relax: bool) -> None:
    context, rng = context_of(seed), np.random.default_rng(seed)
    for fold, g in np.ndindex(context.folds.k, 2):
        here, taus = fold_of(context, fold, g), [1, 2, 3]
        held = [np.sort(rng.choice(6, tau, replace=False)) for tau in taus]
        values = [ridge(here.problem, support)[1] * (1.0 + TIE_RTOL) for support in held]
        incumbents = [Incumbent(*one) for one in zip(taus, held, values, strict=True)]
        for tau, found in zip(taus, held_out_intervals(here, incumbents, relax), strict=True):
            best = min(combinations(range(6), tau), key=lambda s: ridge(here.problem, s)[1])
            error = here.refit([np.array(best)]).held_out[0]
            assert found.lower <= error * (1.0 + 1e-9) and error <= found.upper * (1.0 + 1e-9)


def test_without_relaxations_every_support_below_the_value_is_inside() -> None:
    """The ridge ball knows nothing of tau: what it says holds for every b with f(b) <= upper."""
    context = context_of(1)
    here = fold_of(context, 0, 0)
    supports = [np.array(s) for size in (1, 2, 3) for s in combinations(range(6), size)]
    fits = here.refit(supports)
    upper = float(np.median(fits.value))
    found = held_out_intervals(here, [Incumbent(3, supports[-1], upper)], relax=False)[0]
    inside = fits.held_out[fits.value <= upper]
    assert len(inside) > 5 and found.lower <= inside.min() and inside.max() <= found.upper


def test_an_unknown_value_says_nothing() -> None:
    context = context_of()
    found = held_out_intervals(fold_of(context, 0, 0), [Incumbent(1, np.array([0]), np.inf)])[0]
    assert (found.lower, found.upper) == (0.0, np.inf)

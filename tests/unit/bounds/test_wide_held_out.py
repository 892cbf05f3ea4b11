"""Held-out errors bounded from rows: every support up to the level is inside, few columns or all of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.bounds.fold import Origin, Which
from sparsecv_mio.bounds.wide_held_out import Ends, of_all_columns, of_few_columns, squared_error
from sparsecv_mio.bounds.wide_relaxation import WideRelaxation
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.bounds.wide_supports import WideSupports
from sparsecv_mio.kernels.forms import Candidates

TAU = 2


def drawn(seed: int, held_out: int) -> tuple[WideRows, list[tuple[float, float]]]:
    """A fold, and f and the held-out error of every support."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8 + held_out, 12))
    y = X[:, 0] - X[:, 5] + 0.5 * rng.standard_normal(len(X))
    rows = WideRows(X[held_out:], y[held_out:], X[:held_out], y[:held_out])
    found = []
    for s in combinations(range(12), TAU):
        support, b = np.array(s), np.zeros(12)
        b[support] = np.linalg.solve(rows.matrix(support), rows.c[support])
        found.append((float(rows.yy - rows.c @ b), squared_error(rows, b)))
    return rows, found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("held_out", [1, 3])
@pytest.mark.parametrize("which", list(Which))
def test_over_all_columns(seed: int, held_out: int, which: Which) -> None:
    rows, every = drawn(seed, held_out)
    relaxation = WideRelaxation(rows)
    dual, primal = relaxation.solve(TAU, 1e-6)
    before, level = relaxation.b.copy(), min(every)[0] * 1.05
    ends = of_all_columns(relaxation, Candidates(TAU, level, primal), dual, which, lambda: False)
    for value, error in every:
        if value <= level:
            assert ends.lower <= error * (1 + 1e-9) and error <= ends.upper * (1 + 1e-9)
    assert np.array_equal(relaxation.b, before)
    assert ends.high_origin is (Origin.TRIVIAL if which is Which.AGGREGATED else Origin.CONIC)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("held_out", [1, 3])
def test_on_what_screening_leaves(seed: int, held_out: int) -> None:
    rows, every = drawn(seed, held_out)
    known = WideSupports(rows, lambda: False)
    known.search([TAU], swap_rounds=3)
    ends, lower = of_few_columns(rows, known, TAU, np.arange(12))
    value, error = min(every)
    assert lower <= value <= known.best[TAU] * (1 + 1e-9)
    assert ends.lower <= error * (1 + 1e-9) and error <= ends.upper * (1 + 1e-9)
    only = of_few_columns(rows, known, TAU, known.support[TAU])
    assert only[0].low_origin is Origin.EXACT and only[1] == -np.inf


def test_a_number_without_a_choice() -> None:
    ends = Ends.exact(3.0)
    assert ends.lower <= 3.0 <= ends.upper and ends.upper - ends.lower < 1e-11 and ends.low_origin is Origin.EXACT


def test_no_time_leaves_the_trivial_bounds() -> None:
    rows, every = drawn(0, 3)
    relaxation = WideRelaxation(rows)
    dual, primal = relaxation.solve(TAU, 1e-6)
    ends = of_all_columns(relaxation, Candidates(TAU, min(every)[0], primal), dual, Which.SAFE, lambda: True)
    assert (ends.lower, ends.upper) == (0.0, np.inf)

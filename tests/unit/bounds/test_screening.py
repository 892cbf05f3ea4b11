"""Safe screening by the relaxation's point: columns of the best support stay, whatever the size."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.relaxation import relax_problem
from sparsecv_mio.bounds.screening import screen
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

from .drawn import best_support, random_problem


@pytest.mark.parametrize("seed", range(8))
def test_the_best_support_survives(seed: int) -> None:
    problem, _ = random_problem(seed, lam=1.0, rho=0.2)
    for tau in (1, 3, 6):
        value, support = best_support(problem, tau)
        found = screen(relax_problem(problem, [tau])[0], value * (1 + 1e-12))
        inside, dropped = (set(np.flatnonzero(found == kind).tolist()) for kind in (INSIDE, DROPPED))
        assert inside <= set(support) and not dropped & set(support)
        assert set(found.tolist()) <= {INSIDE, DROPPED, FREE}


def test_no_column_and_all_of_them_leave_no_choice() -> None:
    problem, _ = random_problem(0)
    none, full = (screen(point, problem.yy) for point in relax_problem(problem, [0, problem.q]))
    assert np.all(none == DROPPED) and np.all(full == INSIDE) and len(none) == len(full) == problem.q


def test_a_generous_level_fixes_nothing() -> None:
    problem, _ = random_problem(1)
    found = screen(relax_problem(problem, [3])[0], 10.0 * problem.yy)
    assert np.all(found == FREE) and len(found) == problem.q

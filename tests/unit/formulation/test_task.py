"""What a solver is given: bounds that hold the start."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.formulation.constraints import FREE
from sparsecv_mio.formulation.outcome import Advice
from sparsecv_mio.formulation.task import make_task
from sparsecv_mio.problem.moment_refit import refit_moments

from .problems import problem_of


def test_links_never_contradict_the_start() -> None:
    rng = np.random.default_rng(8)
    problem = problem_of(rng, 30, 5, 0.3)
    start = refit_moments(problem, (0, 1))
    task = make_task(problem, 2, FREE, start, Advice())
    u, z = task.start_u, task.start_z
    assert np.all(task.lo * z <= u + 1e-15) and np.all(u <= task.hi * z + 1e-15)
    assert np.all(task.z_lo <= z) and np.all(z <= task.z_hi)

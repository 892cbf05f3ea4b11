"""The Pyomo models: their arrays are f, nothing true is cut off; what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from lowered_points import objective, violation

from sparsecv_mio.formulation.models import (
    CutMaster,
    FactorModel,
    LoweredProblem,
    OuterApproximation,
    PerspectiveModel,
    SparseModel,
    lower_model,
)
from sparsecv_mio.formulation.task import ModelTask
from sparsecv_mio.model_space import Term
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.moment_fits import refit_moments

from .problems import task_of

KINDS = (PerspectiveModel, FactorModel, CutMaster, OuterApproximation)
SIDE = SideConstraints(forced_in=(1,), forced_out=(4,), terms=(Term((0, 2), 2),), at_most=((2, (0, 1, 3)),))


def at_start(model: SparseModel, task: ModelTask, arrays: LoweredProblem) -> np.ndarray:
    return arrays.vector(model.point(task, task.start_u, task.start_z))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constraints", [FREE, SIDE], ids=["free", "side"])
def test_the_start_is_feasible_at_its_own_value(kind: type[SparseModel], constraints: SideConstraints) -> None:
    task = task_of(0, constraints=constraints)
    model = kind(task)
    arrays = lower_model(model)
    x = at_start(model, task, arrays)
    assert violation(arrays, x) <= 1e-9
    assert objective(arrays, x) == pytest.approx(task.scaled.value(task.start.objective), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_no_support_as_good_as_the_start_is_cut_off(kind: type[SparseModel]) -> None:
    """At each such support's exact fit the model is feasible, and never above f."""
    for seed in range(6):
        task = task_of(seed)
        model = kind(task)
        arrays = lower_model(model)
        for support in itertools.combinations(range(task.q), task.tau):
            fit = refit_moments(task.problem, support)
            if fit.objective > task.start.objective:
                continue
            beta, z = np.zeros(task.q), np.zeros(task.q)
            beta[list(support)], z[list(support)] = fit.beta, 1.0
            x = arrays.vector(model.point(task, task.scaled.to_u(beta), z))
            assert violation(arrays, x) <= 1e-8
            assert objective(arrays, x) <= task.scaled.value(fit.objective) + 1e-9


@pytest.mark.parametrize("kind", [PerspectiveModel, FactorModel])
def test_side_constraints_are_rows(kind: type[SparseModel]) -> None:
    task = task_of(3, constraints=SIDE)
    model = kind(task)
    arrays = lower_model(model)
    for size in range(task.q + 1):
        for support in itertools.combinations(range(task.q), size):
            z = np.zeros(task.q)
            z[list(support)] = 1.0
            x = arrays.vector(model.point(task, np.zeros(task.q), z))
            assert (violation(arrays, x) <= 1e-9) == SIDE.allows(support, task.tau)


def test_lowering_refuses_what_it_cannot_carry() -> None:
    model = PerspectiveModel(task_of(0))
    model.pyomo.rows["odd"] = model.u[0] ** 3 <= 1.0
    with pytest.raises(ValueError, match="not quadratic"):
        lower_model(model)
    model = PerspectiveModel(task_of(0))
    model.pyomo.rows["odd"] = model.u[0] ** 2 >= 1.0
    with pytest.raises(ValueError, match="only quadratic constraints of the form <="):
        lower_model(model)

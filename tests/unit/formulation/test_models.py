"""Lowering of a Pyomo model to arrays: what it cannot carry is refused."""

from __future__ import annotations

import pytest

from sparsecv_mio.formulation.models import PerspectiveModel, lower_model

from .problems import task_of


def test_lowering_refuses_what_it_cannot_carry() -> None:
    model = PerspectiveModel(task_of(0))
    model.pyomo.rows["odd"] = model.u[0] ** 3 <= 1.0
    with pytest.raises(ValueError, match="not quadratic"):
        lower_model(model)
    model = PerspectiveModel(task_of(0))
    model.pyomo.rows["odd"] = model.u[0] ** 2 >= 1.0
    with pytest.raises(ValueError, match="only quadratic rows of the form <="):
        lower_model(model)

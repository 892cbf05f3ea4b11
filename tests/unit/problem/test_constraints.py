"""Side constraints by the names of features, in units of the file."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Restrictions, Term
from sparsecv_mio.problem.constraints import SideConstraints, constraints_of


def test_constraints_from_names_carry_units() -> None:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((20, 4)) * np.array([1.0, 100.0, 0.01, 0.0])
    data = standardize(Dataset.from_arrays(X, 50.0 * X[:, 0] + rng.standard_normal(20), ["a", "b", "c", "k"]))
    asked = Restrictions(force_in=["a"], force_out=["k", "c"], at_most=[(1, ["b", "c"])], coef_bounds={"b": (0.0, 2.0)})  # type: ignore[arg-type]
    found = constraints_of(data, asked, together=[["a", "b"]])
    assert found.forced_in == (0, 1) and found.forced_out == (2,)  # b comes with a
    assert found.terms == (Term((0, 1), 2, always=True),) and found.at_most == ((1, (1, 2)),)
    ((j, lo, hi),) = found.box
    coefficients, _ = data.coefficients([1], np.array([hi]), np.zeros(3), 0.0)
    assert (j, lo) == (1, 0.0) and coefficients["b"] == pytest.approx(2.0)
    for bad, message in (
        ({"together": [["a", "x"]]}, "'x' is not a feature"),
        ({"together": [["k", "a"]]}, "'k' is constant"),
    ):
        with pytest.raises(BadInput, match=message):
            constraints_of(data, **bad)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="must not be negative"):
        SideConstraints(at_most=((-1, (0,)),))


def test_boxes_that_hold_no_number_are_refused() -> None:
    with pytest.raises(BadInput, match="column 0: no coefficient is within the bounds inf to inf"):
        SideConstraints(box=((0, math.inf, math.inf),))
    with pytest.raises(BadInput, match="column 0: no coefficient is within all of its bounds"):
        SideConstraints(box=((0, 0.0, 1.0), (0, 2.0, 3.0))).interval(2)

"""What the tables hold: intervals that only tighten, estimates that cannot become intervals."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.bounds.fold import Origin
from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import Contradiction

from .drawn import random_data


def empty() -> BoundsTable:
    data = random_data()
    return BoundsTable.empty(standardize(data), make_folds("4", data), (1.0,), (1, 2), "safe")


def test_a_floor_raises_lower_ends_and_never_crosses() -> None:
    table = empty()
    numbers = np.tile([0.0, 9.0, 2.0, 5.0, Origin.CONIC, Origin.CONIC, 3.0, 1.0], (2, 1))
    for fold in range(4):
        table.put(0, fold, numbers)
    floor = np.array([[1.0, 3.0, 5.0 * (1.0 + 1e-9), -np.inf], [0.0] * 4])
    table.raise_lower(0, floor, Origin.TRAINING)
    assert table.lower[0, 0].tolist() == [2.0, 3.0, 5.0, 2.0] and np.all(table.lower[0, 1] == 2.0)
    assert [Origin(code) for code in table.low_origin[0, 0]] == [
        Origin.CONIC, Origin.TRAINING, Origin.TRAINING, Origin.CONIC
    ]  # fmt: skip
    with pytest.raises(Contradiction, match="gamma 1, tau 2, fold 1"):
        table.raise_lower(0, np.array([[0.0] * 4, [0.0, 6.0, 0.0, 0.0]]), Origin.TRAINING)


def test_a_table_that_knows_nothing() -> None:
    table = empty()
    assert table.cv_interval(0, 0).upper == np.inf and table.minimum().lower == 0.0 and table.decided(0, 1) == 0
    assert table.to_dict()["folds"][0] == {
        "gamma": 1.0, "tau": 1, "fold": 0, "lower": 0.0, "upper": None, "estimate": None, "bound": "trivial"
    }  # fmt: skip


def test_printed_table_is_another_type() -> None:
    data = random_data(4)
    table = compute_bounds(standardize(data), make_folds("5", data), [1.0], [1, 2], "as-printed")
    assert isinstance(table, PrintedTable) and not table.certified
    assert not hasattr(table, "interval") and not hasattr(table, "cv_interval") and not hasattr(table, "minimum")
    assert table.to_dict()["certified"] is False
    low, high, middle = table.cv_estimates(0, 1)
    assert low <= middle * 1.5 and low <= high

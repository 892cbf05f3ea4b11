"""Where columns without a penalty have a best fit: on all rows, and on the training rows of every fold."""

from __future__ import annotations

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.glm_refit import check_optimum_exists
from sparsecv_mio.targets import Loss


def asked(X: np.ndarray, y: np.ndarray, loss: str, columns: list[str], folds: str | None = "quarters") -> None:
    data = sc.Dataset.from_arrays(X, y)
    limits = Restrictions(adjust=tuple(columns))
    plan = None
    if folds is not None:
        plan = folds_from_labels(np.arange(80) // 20) if folds == "quarters" else make_folds(folds, data, 0)
    check_optimum_exists(standardize(data, "length", "fold", limits, Loss(loss)), plan)


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 4))
    return X, (X[:, 0] + rng.logistic(size=80) > 0.0).astype(float)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("folds", [None, "2", "loo"])
def test_plain_columns_are_taken(loss: str, folds: str | None) -> None:
    asked(*rows(), loss, ["x0", "x1"], folds)


def test_the_fold_is_named_whose_rows_are_told_apart_and_no_other_column() -> None:
    X, y = rows()
    X[:, 1] = (y > 0.0) & (np.arange(80) % 3 == 0)  # says ill, where it says anything
    X[np.flatnonzero(y[:20] == 0.0)[:2], 1] = 1.0  # but of two rows, both held out by the first fold
    said = "^adjust: on the training rows of fold 1 of 4, column 'x1' separates the two classes, so"
    with pytest.raises(BadInput, match=said):
        asked(X, y, "logistic", ["x0", "x1", "x2"])


def test_columns_that_tell_classes_apart_together_are_named() -> None:
    X, y = rows()
    X[:, 2] = np.where(y > 0.0, 1.0, -1.0) - X[:, 1]
    with pytest.raises(BadInput, match="^adjust: on all rows, columns 'x1', 'x2' separate the two classes"):
        asked(X, y, "logistic", ["x0", "x1", "x2"])


def test_counts_of_0_that_a_column_sets_apart() -> None:
    X, y = rows()
    X[:, 1] = (y == 0.0) & (np.arange(80) % 3 == 0)
    with pytest.raises(
        BadInput, match="^adjust: on all rows, column 'x1' separates the rows of count 0 from the others"
    ):
        asked(X, y, "poisson", ["x0", "x1"])


def test_nearly_so_is_taken_where_it_can_be_proved() -> None:
    X, y = rows()
    X[:, 1] = np.where(y > 0.0, 1.0, -1.0) + 0.2 * X[:, 1]
    one = int(np.argmin(np.where(y > 0.0, X[:, 1], np.inf)))
    X[one, 1] = -1.0  # one row on the other side
    asked(X, y, "logistic", ["x1"], None)
    X[one, 1] = 1.0
    with pytest.raises(BadInput, match="separates the two classes"):
        asked(X, y, "logistic", ["x1"], None)


def test_rows_without_weight_tell_nothing() -> None:
    X, y = rows()
    X[:, 1] = (y > 0.0) & (np.arange(80) % 3 == 0)
    X[np.flatnonzero(y == 0.0)[0], 1] = 1.0
    data = sc.Dataset.from_arrays(X, y)
    without = weighted_rows(data, np.where((X[:, 1] > 0.0) & (y == 0.0), 1e-12, 1.0), "w")
    for made in (data, without):  # a small weight is a weight
        check_optimum_exists(standardize(made, "length", "fold", Restrictions(adjust=("x1",)), Loss.LOGISTIC))

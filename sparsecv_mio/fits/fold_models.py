"""Models of the folds of a record, fitted again, and prediction intervals by them: CV+ (Barber and others 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import Record, columns_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds, folds_of
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.refit import refit_moments
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.search.api import check_of_record, used_columns

AT_ONCE = 1 << 22  # numbers of a block of rows to predict, one for each row of the data
WHOLE = 1e-9  # what a product of level and rows may miss a whole number by


def with_fold_models(record: Any) -> Record:
    """Return a record; `BadInput` for one without models of folds, or whose predictions are not of their kind."""
    why = ""
    if not isinstance(record, Record):
        why = "this record has no model for each fold: give one of `solve` (criterion folds)"
    elif record.data.weights is not None:
        why = "the guarantee is for rows that count alike, and these have weights"
    elif record.average is not None:
        why = "the averaged model is not fitted without each fold: use the model of the pair (model pair)"
    if why:
        raise BadInput(f"interval: {why}")
    return cast(Record, record)


@dataclass(frozen=True, eq=False)
class FoldModels:
    """A linear model for each fold, fitted without it, and how far each row is from the prediction of its own.

    Attributes
    ----------
    record : Record
    names : tuple of q str
        Columns that some of the models have.
    coefficients, intercepts : (K, q) array, (K,) array
        In units of the data.
    fold : (n,) int array
        Which of the folds holds out each row.
    missed : (n,) array
        `|y_i - prediction of row i without its fold|`.
    """

    record: Record
    names: tuple[str, ...]
    coefficients: FloatArray
    intercepts: FloatArray
    fold: IntArray
    missed: FloatArray

    @classmethod
    def of(cls, record: Record, dataset: Dataset, folds: FoldPlan) -> FoldModels:
        """Fit the supports of the record again.

        Parameters
        ----------
        record : Record
        dataset : Dataset
            Its data.
        folds : FoldPlan
            Its folds.

        Raises
        ------
        BadInput
            For a record that `with_fold_models` refuses, other data or folds than its own, and folds that do not hold
            out every row once.
        """
        with_fold_models(record)
        check_of_record(record, dataset, folds)
        if not folds.is_partition or folds.scored < folds.n:
            raise BadInput(f"interval: folds {folds.spec!r} do not hold out every row once: solve with K folds, or loo")
        data, supports = used_columns(record, standardize(dataset, record.data.scale, record.data.intercept))
        place = {name: j for j, name in enumerate(data.names)}
        coefficients, intercepts, missed = np.zeros((folds.k, data.q)), np.zeros(folds.k), np.zeros(folds.n)
        X = dataset.X[:, data.columns]
        for fold, moments in training_moments(data, folds):
            problem, support = moments.problem(data, record.gamma), supports[record.chosen_folds.which[fold]]
            beta = refit_moments(problem, support).beta
            found, intercepts[fold] = data.coefficients(sorted(support), beta, problem.v_mean, problem.r_mean)
            for name, value in found.items():
                coefficients[fold, place[name]] = value
            rows = folds.scored_rows(fold)
            missed[rows] = np.abs(dataset.y[rows] - X[rows] @ coefficients[fold] - intercepts[fold])
        return cls(record, tuple(data.names), coefficients, intercepts, folds.labels, missed)

    def interval(self, X: Any, level: float) -> FloatArray:
        """(m, 2) ends of the prediction intervals of new rows.

        Of the n numbers `prediction of x without the fold of row i -+ missed_i` the lower end is the
        `floor(alpha (n + 1))`-th smallest with minus, the upper one the `ceil((1 - alpha) (n + 1))`-th with plus,
        `alpha = 1 - level`.

        Parameters
        ----------
        X : frame, Dataset or (m, p) array_like
            As for the `predict` of a record.
        level : float
            Between 0 and 1.

        Notes
        -----
        O(m (K q + n)).
        """
        n = len(self.missed)
        low = check_level(level, n)
        rows = columns_of(self.record.data, X, list(self.names))
        ends = np.empty((len(rows), 2))
        step = max(1, AT_ONCE // n)
        for block in (slice(i, i + step) for i in range(0, len(rows), step)):
            predicted = (rows[block] @ self.coefficients.T + self.intercepts)[:, self.fold]
            ends[block, 0] = np.partition(predicted - self.missed, low - 1, axis=1)[:, low - 1]
            ends[block, 1] = np.partition(predicted + self.missed, n - low, axis=1)[:, n - low]
        return ends


def check_level(level: float, n: int) -> int:
    """Return which of n sorted numbers is the lower end of an interval; the upper one is as far from their end.

    Parameters
    ----------
    level : float
    n : int
        Rows of the data.

    Raises
    ------
    BadInput
        For a level that is none, or is too large for so few rows.
    """
    if not (isinstance(level, Real) and 0.0 < level < 1.0):
        raise BadInput(f"interval: {level} is out of range, give a level between 0 and 1, 0.9 say")
    rank = math.floor((1.0 - level) * (n + 1) + WHOLE)
    if rank < 1:
        least = math.ceil(1.0 / (1.0 - level) - 1.0 - WHOLE)
        raise BadInput(f"interval: a level of {level:g} takes {least:,} rows, and the model was fitted to {n:,}")
    return rank


def predict_interval(record: Record, X: Any, data: Dataset, level: float, folds: AnyFolds | None) -> FloatArray:
    """Return prediction intervals of new rows: the method of a record.

    Parameters
    ----------
    record : Record
    X, data, level, folds
        Those of the method.
    """
    with_fold_models(record)
    if not isinstance(data, Dataset):
        how = "Dataset.from_frame makes one of a frame, read_dataset of a file"
        raise BadInput(f"interval: the rows of the record are {type(data).__name__}, and not a Dataset: {how}")
    plan = folds_of(record.folds.spec if folds is None else folds, data, record.folds.seed or 0)
    return FoldModels.of(record, data, plan).interval(X, level)

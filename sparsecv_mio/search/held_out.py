"""The prediction of every row by the model that was fitted without it: what the CV error of a record is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import AnyFolds, FoldPlan, folds_of
from sparsecv_mio.data.standard import Intercept, StandardData, standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.accumulate import training_moments
from sparsecv_mio.problem.moment_refit import refit_moments

FEW_FOLDS, FEW_NUMBERS = 1_000, 40_000_000  # fitted again for the mean absolute error, and what they train on
AGREE_RTOL = 1e-8


def held_out_predictions(record: Record, dataset: Dataset, folds: AnyFolds) -> FloatArray:
    """Predict every row by the model of the reported pair that was fitted without the row's fold.

    Parameters
    ----------
    record : Record
    dataset : Dataset
        The data of the record, with its weights (:func:`sparsecv_mio.data.weights.weighted_rows`).
    folds : FoldPlan, or what `folds_of` makes one of
        The folds of the record.

    Returns
    -------
    (n,) array
        In units of the target: of rows that several folds score the mean; NaN for rows that none does.

    Raises
    ------
    BadInput
        If data or folds are not those of the record.

    Examples
    --------
    >>> from sparsecv_mio.search.solve import solve
    >>> data = Dataset.from_arrays(np.eye(6)[:, :2] * 3.0, [3.0, 1.0, 0.5, 0.0, -0.5, 0.0])
    >>> record = solve(data, folds="loo", gammas=0.1, taus=1)
    >>> error = data.y - held_out_predictions(record, data, "loo")
    >>> bool(np.isclose(np.mean(error**2), record.cv_error))
    True
    """
    return mean_predictions(*predictions_by_fold(record, dataset, folds), dataset.n)[0]


def with_mae(record: Record, data: StandardData | None, plan: FoldPlan) -> Record:
    """Return the record with the mean absolute error of held-out rows, where it is soon found.

    Parameters
    ----------
    record : Record
    data : StandardData or None
        The data of the record, as its search had them; None where it ended before.
    plan : FoldPlan
        The folds of the record.
    """
    if data is None or record.data.weights is not None or not np.isfinite(record.cv_error):
        return record
    errors = record.chosen_folds.error
    if (plan.sizes == 1).all():
        return replace(record, mae=float(np.mean(np.sqrt(errors))))
    if plan.k > FEW_FOLDS or plan.k * data.dataset.X.size > FEW_NUMBERS:
        return record
    rows, predicted = _quick_predictions(record, data, plan)
    missed = data.dataset.y[rows] - predicted
    mean = float(errors.sum()) / len(rows)
    exact = abs(float(np.mean(missed**2)) - mean) <= AGREE_RTOL * mean  # not where floats lose a residual's digits
    return replace(record, mae=float(np.mean(np.abs(missed)))) if exact else record


def mean_predictions(rows: IntArray, predicted: FloatArray, n: int) -> tuple[FloatArray, IntArray]:
    """Return the (n,) mean prediction of every row, NaN where there is none, and how many there are.

    Parameters
    ----------
    rows : (m,) int array
    predicted : (m,) array
        Of these rows.
    n : int
        Number of rows in all.

    Examples
    --------
    >>> mean_predictions(np.array([0, 0, 2]), np.array([1.0, 2.0, 5.0]), 3)
    (array([1.5, nan, 5. ]), array([2, 0, 1]))
    """
    times = np.bincount(rows, minlength=n)
    return np.divide(np.bincount(rows, predicted, n), times, out=np.full(n, np.nan), where=times > 0), times


def predictions_by_fold(record: Record, dataset: Dataset, folds: AnyFolds) -> tuple[IntArray, FloatArray]:
    """Predict the rows that each fold scores by its model: what :func:`held_out_predictions` takes the means of.

    Parameters
    ----------
    record : Record
    dataset : Dataset
    folds : FoldPlan, or what `folds_of` makes one of

    Returns
    -------
    rows : (m,) int array
        Ascending, each as often as a fold scores it.
    predicted : (m,) array
    """
    plan = folds_of(folds, dataset, record.folds.seed or 0)
    if dataset.fingerprint != record.data.fingerprint:
        raise BadInput("these are not the data of the record: their fingerprints differ")
    if plan.digest != record.folds.digest:
        raise BadInput("these are not the folds of the record: their digests differ")
    return _predictions(record, standardize(dataset, record.data.scale, record.data.intercept), plan)


def _used(record: Record, everything: StandardData) -> tuple[StandardData, list[tuple[int, ...]]]:
    """Return the data in the columns of the models of the folds alone, and these models' supports in them."""
    used = {name for support in record.chosen_folds.supports for name in support}
    data = everything.only(np.flatnonzero([name in used for name in everything.names]))
    place = {name: j for j, name in enumerate(data.names)}
    return data, [tuple(place[name] for name in names) for names in record.chosen_folds.supports]


def _predictions(record: Record, everything: StandardData, plan: FoldPlan) -> tuple[IntArray, FloatArray]:
    """Of :func:`predictions_by_fold`."""
    data, supports = _used(record, everything)
    predicted = np.empty(plan.scored)
    for fold, moments in training_moments(data, plan):
        problem, support = moments.problem(data, record.gamma), supports[record.chosen_folds.which[fold]]
        rows = plan.scored_rows(fold)
        V, root = data.about(rows, problem.v_mean, problem.r_mean)[0][:, list(support)], data.root_of(rows)
        fitted = V @ refit_moments(problem, support).beta
        predicted[plan.starts[fold] : plan.starts[fold + 1]] = data.y_center + data.y_unit * (
            data.r_rest + problem.r_mean + (fitted if root is None else fitted / root)
        )
    order = np.argsort(plan.order[: plan.scored], kind="stable")
    return plan.all_scored, predicted[order]


def _quick_predictions(record: Record, everything: StandardData, plan: FoldPlan) -> tuple[IntArray, FloatArray]:
    """As `_predictions`, of rows without weights, by normal equations: where errors are there to compare with."""
    data, supports = _used(record, everything)
    V, r = data.rows(slice(0, data.n))
    predicted = np.empty(plan.scored)
    for fold in range(plan.k):
        support, train = list(supports[record.chosen_folds.which[fold]]), plan.train_rows(fold)
        A, b, mean, r_mean = V[train][:, support], r[train], np.zeros(len(support)), 0.0
        if data.intercept is Intercept.FOLD:
            mean, r_mean = A.mean(axis=0), float(b.mean())
            A, b = A - mean, b - r_mean
        M = A.T @ A + np.diag(record.gamma / 2.0 * data.weight[support])
        try:
            beta = np.linalg.solve(M, A.T @ b)
        except np.linalg.LinAlgError:
            beta = np.full(len(support), np.nan)
        fitted = r_mean + (V[plan.scored_rows(fold)][:, support] - mean) @ beta
        predicted[plan.starts[fold] : plan.starts[fold + 1]] = data.y_center + data.y_unit * (data.r_rest + fitted)
    order = np.argsort(plan.order[: plan.scored], kind="stable")
    return plan.all_scored, predicted[order]

"""Criteria for comparing full-data models, such as R^2, adjusted R^2, Cp, BIC, deviance and AIC.

With squared-error loss, the criteria R^2, adjusted R^2, Cp and BIC are defined as in R's package leaps. With logistic
and Poisson loss, the criteria are the deviance, the share of the deviance explained, AIC and BIC. The degrees of
freedom of a model are the rank of its columns and the intercept: with an intercept, a factor with all its k levels
counts as k - 1. The criteria are meant for a small gamma, because a ridge penalty reduces the effective degrees of
freedom. The choice of the best among many subsets increases the effective degrees of freedom. The criteria correct for
neither of these two effects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.accuracy import Scatter, scatter_of_counts, scatter_of_successes
from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.predicting import expand_coefficients
from sparsecv_mio.certificate.read_back import adapt_to_record_loss
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.data.dataset import MULTIPLICITY, Dataset
from sparsecv_mio.problem.cox import partial_loss
from sparsecv_mio.problem.glm_objective import null_loss
from sparsecv_mio.problem.row_losses import encode_dataset_targets, row_loss
from sparsecv_mio.units import ACCURATE_RTOL, ROUNDING

Fitted = PathRow | FitRecord | Record
CP_WORK = 2e10  # maximum n p^2 for which all columns are fitted for Cp
RESIDUAL_RTOL = 4 * ROUNDING  # rounding error of a residual, as a share of the size of its terms


class Criteria(NamedTuple):
    """Criteria of the fit of a subset; NaN if a criterion is undefined.

    `adjusted` and `cp` are undefined if there are too few rows. `bic` is undefined if RSS is rounding error, and `cp`
    if the RSS of all columns is. An RSS that is rounding error counts as 0 in `r_squared` and `adjusted`.

    Let RSS be the residual sum of squares, TSS the sum of squares about the mean, d the degrees of freedom, n the
    number of rows, and s2 the residual variance of the model with all columns. Then `r_squared = 1 - RSS / TSS`,
    `adjusted = 1 - (RSS / (n - d - 1)) / (TSS / (n - 1))`, `cp = RSS / s2 - n + 2 (d + 1)` and
    `bic = n log(RSS / TSS) + (d + 1) log n`. Without an intercept, the mean and the 1 that counts the intercept are
    omitted.
    """

    r_squared: float
    adjusted: float
    cp: float
    bic: float


class GlmCriteria(NamedTuple):
    """Criteria of the fit of a subset to two classes or counts, with d degrees of freedom.

    With `deviance = 2 sum of losses` and D0 the deviance of the class frequencies, or of the mean rate, alone:
    `mcfadden = 1 - deviance / D0`, `aic = deviance + 2 d`, `bic = deviance + d log n`, where n is the number of rows or
    trials. With trials, both deviances are those of the binomial distribution: the deviance of the outcomes, minus the
    deviance of the shares of successes in the rows of the file. `scatter` is given for counts, and for trials without
    class weights.
    """

    deviance: float
    mcfadden: float
    aic: float
    bic: float
    scatter: Scatter | None = None


def glm_criteria(
    models: Sequence[Fitted], data: Dataset, intercept: bool, record: Record | FitRecord | PathRecord
) -> list[GlmCriteria]:
    """Return the criteria of models for two classes or counts; O(n p) for each model.

    Parameters
    ----------
    models : sequence of PathRow, FitRecord or Record
        Models.
    data : Dataset
        Data set of their record.
    intercept : bool
        True if the models have an intercept.
    record : Record, FitRecord or PathRecord
        Record of the models.
    """
    data = adapt_to_record_loss(record, data)
    if data.survival is not None:
        return _cox_criteria(models, data)
    loss = row_loss(record.loss)
    y, v = encode_dataset_targets(loss, data, slice(0, data.n))
    n = float(data.aux[MULTIPLICITY].sum()) if data.trials is not None else data.n
    signs, made, saturated = loss.signs(y), [], 2.0 * _saturated_loss(data, v)
    null = 2.0 * data.weight_of(slice(0, data.n)) * null_loss(data, record.loss, np.arange(data.n)) - saturated
    X = _centre_values(data.X, np.ones(data.n)) if intercept else data.X
    for model, rank in zip(models, _ranks(models, X, data.names), strict=True):
        predictors = data.X @ expand_coefficients(model.coefficients, data.names) + model.intercept
        deviance = max(2.0 * float(v @ loss.losses(signs * predictors, y)) - saturated, 0.0)
        used = rank + int(intercept)
        share = 1.0 - deviance / null if null > ACCURATE_RTOL * saturated else math.nan
        around = _scatter(data, predictors + data.row_offsets(slice(0, data.n)), used)
        made.append(GlmCriteria(deviance, share, deviance + 2.0 * used, deviance + used * math.log(n), around))
    return made


def _cox_criteria(models: Sequence[Fitted], data: Dataset) -> list[GlmCriteria]:
    """Return the criteria of Cox models: a deviance is twice a negative log partial likelihood, BIC counts events."""
    n_events, made = data.weight_of(slice(0, data.n)), []
    null = 2.0 * partial_loss(data, np.zeros(data.n))
    for model, rank in zip(models, _ranks(models, _centre_values(data.X, np.ones(data.n)), data.names), strict=True):
        deviance = 2.0 * partial_loss(data, data.X @ expand_coefficients(model.coefficients, data.names))
        bic = deviance + rank * math.log(n_events)
        share = 1.0 - deviance / null if null > 0.0 else math.nan
        made.append(GlmCriteria(deviance, share, deviance + 2.0 * rank, bic))
    return made


def _saturated_loss(data: Dataset, v: FloatArray) -> float:
    """Return the total log loss of the shares of successes of the rows of the file; 0 for data without trials."""
    if data.trials is None:
        return 0.0
    successes, total = (np.add.reduceat(of, data.first_outcomes) for of in (v * data.y, v))
    return float(total @ (entr(successes / total) + entr(1.0 - successes / total)))


def _scatter(data: Dataset, predictors: FloatArray, used: int) -> Scatter | None:
    """Return the dispersion about predictors that include the offsets; None for classes of single rows."""
    if data.counts:
        return scatter_of_counts(data.y, np.exp(np.minimum(predictors, 700.0)), used, data.row_weights)
    if data.trials is None or data.class_weight is not None:
        return None
    first, trials = data.first_outcomes, data.aux[MULTIPLICITY]
    successes, sizes = (np.add.reduceat(trials * of, first) for of in (data.y, np.ones(data.n)))
    weights = None if data.row_weights is None else data.row_weights[first] / trials[first]
    return scatter_of_successes(successes, sizes, predictors[first], used, weights)


def _ranks(models: Sequence[Fitted], X: FloatArray, names: Sequence[str]) -> list[int]:
    """Return the rank of the columns of each model; their number, if the ranks take very long."""
    places = [[names.index(name) for name in model.coefficients] for model in models]
    columns = sorted(set().union(*places))
    sizes = [len(place) for place in places]
    if not columns or len(X) * len(columns) ** 2 > CP_WORK or _rank(X[:, columns]) == len(columns):
        return sizes
    return [_rank(X[:, place]) if len(X) * len(place) ** 2 <= CP_WORK else len(place) for place in places]


def _rank(X: FloatArray) -> int:
    """Return the rank of some columns, which does not depend on their units."""
    length = np.linalg.norm(X, axis=0)
    return int(np.linalg.matrix_rank(X / np.where(length > 0.0, length, 1.0))) if X.size else 0


def criteria(
    rows: Sequence[PathRow], data: Dataset, intercept: bool, record: PathRecord | None = None
) -> list[Criteria] | list[GlmCriteria]:
    """Return the criteria of models; O(n p) for each model, and O(n p^2) once.

    Parameters
    ----------
    rows : sequence of PathRow
        Models.
    data : Dataset
        Data set of their record.
    intercept : bool
        True if the models have an intercept.
    record : PathRecord, optional
        Record of the models, required for logistic and Poisson loss.

    Examples
    --------
    >>> import sparsecv_mio as sc
    >>> data = sc.read_dataset("instances/prostate.csv", target="lpsa")
    >>> [round(one.r_squared, 3) for one in criteria(sc.best_subsets(data, gammas=0).path, data, True)][:3]
    [0.539, 0.586, 0.626]
    """
    if record is not None and not record.loss.is_quadratic:
        return glm_criteria(rows, data, intercept, record)
    weights = np.ones(data.n) if data.row_weights is None else data.row_weights
    free = int(intercept)
    X, y = (_centre_values(values, weights) if intercept else values for values in (data.X, data.y))
    total, variance = float(weights @ y**2), _residual_variance(X, y, data, weights, intercept)
    made = []
    for row, rank in zip(rows, _ranks(rows, X, data.names), strict=True):
        beta = expand_coefficients(row.coefficients, data.names)
        rss = _residual_sum(X, y, beta, data, weights)
        share, used = rss / total, rank + free
        freedom = data.n - used
        adjusted = 1.0 - share * (data.n - free) / freedom if freedom > 0 else math.nan
        bic = data.n * math.log(share) + used * math.log(data.n) if share > 0.0 else math.nan
        made.append(Criteria(1.0 - share, adjusted, rss / variance - data.n + 2 * used if variance else math.nan, bic))
    return made


def _centre_values(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return values minus their mean, with all digits of their differences."""
    near = values - np.sort(values, axis=0)[len(values) // 2]
    return np.asarray(near - np.average(near, axis=0, weights=weights))


def _residual_sum(X: FloatArray, y: FloatArray, beta: FloatArray, data: Dataset, weights: FloatArray) -> float:
    """Return the weighted residual sum of squares; 0 if rounding of the entries of X and y can explain all of it.

    X and y are about their means: an intercept of 1e12 would leave four decimals.
    """
    rss = float(weights @ (y - X @ beta) ** 2)
    rounding = RESIDUAL_RTOL * (np.abs(data.y) + np.abs(data.X) @ np.abs(beta))
    return rss if rss > float(weights @ rounding**2) else 0.0


def _residual_variance(
    X: FloatArray, y: FloatArray, data: Dataset, weights: FloatArray, intercept: bool
) -> float:  # fmt: skip
    """Return the residual variance of least squares on all columns; 0 if it is undefined or expensive."""
    n, p = X.shape
    if n <= p + intercept or n * p**2 > CP_WORK:
        return 0.0
    root = np.sqrt(weights)
    length = np.linalg.norm(X * root[:, None], axis=0)
    unit = np.divide(1.0, length, out=np.zeros(p), where=length > 0.0)
    beta, _, rank, _ = np.linalg.lstsq(X * root[:, None] * unit, y * root, rcond=None)
    return _residual_sum(X, y, beta * unit, data, weights) / (n - int(rank) - intercept)

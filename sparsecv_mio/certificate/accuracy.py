"""Measures of prediction accuracy for numeric targets, counts and class probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sparsecv_mio.arrays import FloatArray

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class FitQuality:
    """How good predictions are: root of the mean squared error, mean absolute error, share of variance explained."""

    rmse: float
    mae: float
    r_squared: float


def accuracy(y: ArrayLike, predicted: ArrayLike, weights: FloatArray | None = None) -> FitQuality:
    """Compare predictions with what came true.

    Parameters
    ----------
    y, predicted : (n,) array_like
    weights : (n,) array_like, optional
        Of the rows; 1 by default.

    Returns
    -------
    FitQuality
        `r_squared` is NaN where all of y is the same.

    Examples
    --------
    >>> accuracy([1.0, 2.0, 3.0], [1.0, 2.0, 5.0])
    FitQuality(rmse=1.1547005383792515, mae=0.6666666666666666, r_squared=-1.0)
    """
    truth = np.asarray(y, dtype=np.float64)
    error = truth - np.asarray(predicted, dtype=np.float64)
    middle = float(np.average(truth, weights=weights))
    spread = float(np.average((truth - middle) ** 2, weights=weights))
    mse = float(np.average(error**2, weights=weights))
    explained = 1.0 - mse / spread if spread > 0.0 else float("nan")
    return FitQuality(float(np.sqrt(mse)), float(np.average(np.abs(error), weights=weights)), explained)


@dataclass(frozen=True)
class CountQuality:
    """How good expected counts are: half the deviance per row, mean absolute error, share of the deviance explained."""

    half_deviance: float
    mae: float
    explained: float


def count_quality(y: ArrayLike, expected: ArrayLike, exposure: FloatArray | None = None) -> CountQuality:
    """Compare expected counts with what came true.

    Parameters
    ----------
    y, expected : (n,) array_like
    exposure : (n,) array, optional
        1 by default.

    Examples
    --------
    >>> found = count_quality([0.0, 2.0], [1.0, 1.0])
    >>> round(found.half_deviance, 4), found.mae, found.explained
    (0.6931, 1.0, 0.0)
    """
    truth, means = np.asarray(y, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    e = np.ones(len(truth)) if exposure is None else exposure

    def half_deviance(mu: FloatArray) -> float:
        log = np.log(np.where(truth > 0.0, truth / np.maximum(mu, np.finfo(float).tiny), 1.0))
        return float(np.mean(np.maximum(mu - truth + truth * log, 0.0)))

    own, null = half_deviance(means), half_deviance(e * (truth.sum() / e.sum()))
    return CountQuality(own, float(np.mean(np.abs(truth - means))), 1.0 - own / null if null > 0.0 else float("nan"))


OVER = 1.2  # from which on standard errors by the Poisson law are a tenth too small


@dataclass(frozen=True)
class Scatter:
    """How far counts are from their expected values, beside the Poisson law, of which it is 1.

    `ratio` is Pearson's `sum w (y - mu)^2 / mu` over its degrees of freedom, NaN where there are none;
    `standard_error` that of the law: of one row it has the variance `2 + 1 / mu`.
    """

    ratio: float
    standard_error: float

    @property
    def is_wide(self) -> bool:
        """Whether it is well above 1: more than chance would have it, and enough to matter."""
        return self.ratio > max(OVER, 1.0 + 3.0 * self.standard_error)


def scatter_of_counts(y: ArrayLike, expected: ArrayLike, used: int, weights: FloatArray | None = None) -> Scatter:
    """Return Pearson's chi-square of counts over its degrees of freedom.

    Parameters
    ----------
    y, expected : (n,) array_like
    used : int
        Degrees of freedom of the model: features, and the intercept.
    weights : (n,) array, optional
        Of the rows; a row of weight 2 is two rows.

    Examples
    --------
    >>> scatter_of_counts([0.0, 2.0, 4.0, 2.0], [2.0, 2.0, 2.0, 2.0], 2).ratio
    2.0
    """
    truth, means = np.asarray(y, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    w = np.ones(len(truth)) if weights is None else weights
    freedom = float(w.sum()) - used
    if not freedom > 0.0 or not means.min() > 0.0:
        return Scatter(float("nan"), float("nan"))
    chi_square = float(w @ ((truth - means) ** 2 / means))
    return Scatter(chi_square / freedom, float(np.sqrt(w @ (2.0 + 1.0 / means))) / freedom)


@dataclass(frozen=True)
class ClassQuality:
    """How good predicted probabilities are: log loss per row, share of right classes, AUC, Brier score."""

    log_loss: float
    accuracy: float
    auc: float
    brier: float


def class_quality(y: ArrayLike, probability: ArrayLike, weights: FloatArray | None = None) -> ClassQuality:
    """Compare predicted probabilities with what came true.

    Parameters
    ----------
    y : (n,) array_like
        Classes 0 and 1.
    probability : (n,) array_like
        Of class 1.
    weights : (n,) array_like, optional
        Of the rows; 1 by default.

    Returns
    -------
    ClassQuality
        `auc` is NaN where all rows are of one class; `log_loss` infinite where a row's class had the probability 0.

    Examples
    --------
    >>> found = class_quality([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    >>> found.accuracy, found.auc, round(found.brier, 3), round(found.log_loss, 4)
    (0.5, 0.75, 0.185, 0.5108)
    """
    truth, chance = np.asarray(y, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    w = np.ones(len(truth)) if weights is None else np.asarray(weights, dtype=np.float64)
    right = np.where(truth > 0.0, chance, 1.0 - chance)
    with np.errstate(divide="ignore"):
        loss = float(np.average(-np.log(right), weights=w))
    accuracy = float(np.average((chance > 0.5) == (truth > 0.0), weights=w))
    return ClassQuality(loss, accuracy, _auc(truth, chance, w), float(np.average((chance - truth) ** 2, weights=w)))


def _auc(truth: FloatArray, chance: FloatArray, w: FloatArray) -> float:
    """Area under the ROC curve: how often a positive row has the larger probability, ties counting half."""
    _, place = np.unique(chance, return_inverse=True)
    ones = np.bincount(place, w * (truth > 0.0))
    zeros = np.bincount(place, w * (truth <= 0.0))
    pairs = float(ones.sum() * zeros.sum())
    return float(ones @ (np.cumsum(zeros) - 0.5 * zeros)) / pairs if pairs > 0.0 else float("nan")

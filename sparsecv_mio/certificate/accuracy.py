"""Measures of prediction accuracy for numeric targets, counts and class probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.concordance import TimeQuality, assess_times
from sparsecv_mio.units import ROUNDING

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.targets import Loss


@dataclass(frozen=True)
class FitQuality:
    """Quality of predictions: root mean squared error, mean absolute error, share of explained variance."""

    rmse: float
    mae: float
    r_squared: float


def accuracy(y: ArrayLike, predicted: ArrayLike, weights: FloatArray | None = None) -> FitQuality:
    """Return the quality of predictions of a numeric target.

    Parameters
    ----------
    y, predicted : (n,) array_like
        Targets, and predictions.
    weights : (n,) array_like, optional
        Row weights; 1 by default.

    Returns
    -------
    FitQuality
        The quality; `r_squared` is NaN if y is constant.

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
    """Quality of expected counts: half deviance per row, mean absolute error, share of explained deviance."""

    half_deviance: float
    mae: float
    explained: float


def count_quality(y: ArrayLike, expected: ArrayLike, exposure: FloatArray | None = None) -> CountQuality:
    """Return the quality of expected counts.

    Parameters
    ----------
    y, expected : (n,) array_like
        Counts, and expected counts.
    exposure : (n,) array, optional
        Exposures; 1 by default.

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


OVER = 1.2  # dispersion from which standard errors of the Poisson model are 10% too small


@dataclass(frozen=True)
class Scatter:
    """The dispersion of counts, or of successes of trials, about their expected values.

    `ratio` is Pearson's `sum w (y - mu)^2 / V` divided by its degrees of freedom; NaN if there are none. V is the
    variance under the Poisson or the binomial distribution, for which the ratio is about 1. `standard_error` is that of
    the ratio under this distribution. The term of one row has the variance `2 + 1 / mu` for counts, and
    `2 + 1 / V - 6 / n` for successes of n trials.
    """

    ratio: float
    standard_error: float

    @property
    def is_wide(self) -> bool:
        """True if the dispersion is significantly above 1 and large enough to matter."""
        return self.ratio > max(OVER, 1.0 + 3.0 * self.standard_error)


def scatter_of_counts(y: ArrayLike, expected: ArrayLike, used: int, weights: FloatArray | None = None) -> Scatter:
    """Return Pearson's chi-square of counts over its degrees of freedom.

    Parameters
    ----------
    y, expected : (n,) array_like
        Counts, and expected counts.
    used : int
        Degrees of freedom of the model: the rank of its columns and the intercept.
    weights : (n,) array, optional
        Row weights; a row of weight 2 counts as two rows.

    Examples
    --------
    >>> scatter_of_counts([0.0, 2.0, 4.0, 2.0], [2.0, 2.0, 2.0, 2.0], 2).ratio
    2.0
    """
    truth, means = np.asarray(y, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    return _compare_squares(truth - means, means, 0.0, used, weights)


def scatter_of_successes(
    successes: FloatArray, trials: FloatArray, log_odds: FloatArray, used: int, weights: FloatArray | None = None
) -> Scatter:
    """Return Pearson's chi-square of successes of trials over its degrees of freedom.

    Parameters
    ----------
    successes, trials : (n,) arrays
        Successes of each row, and its trials.
    log_odds : (n,) array
        Predicted log odds of a success.
    used : int
        Degrees of freedom of the model.
    weights : (n,) array, optional
        Row weights; a row of weight 2 counts as two rows.

    Examples
    --------
    >>> found = scatter_of_successes(np.array([1.0, 3.0]), np.array([4.0, 4.0]), np.zeros(2), 0)
    >>> found.ratio, round(found.standard_error, 6)
    (1.0, 0.866025)
    """
    from scipy.special import expit  # a search does not need this import

    chance, other = expit(log_odds), expit(-log_odds)
    errors = other * successes - chance * (trials - successes)
    return _compare_squares(errors, trials * chance * other, 6.0 / trials, used, weights)


def _compare_squares(
    errors: FloatArray, variances: FloatArray, flatter: FloatArray | float, used: int, weights: FloatArray | None
) -> Scatter:
    """Return the dispersion of errors with given variances; the variance of a term is `2 + 1 / V - flatter`."""
    w = np.ones(len(errors)) if weights is None else weights
    freedom = float(w.sum()) - used
    if not freedom > 0.0 or not variances.min() > 0.0:
        return Scatter(float("nan"), float("nan"))
    chi_square = float(w @ (errors**2 / variances))
    return Scatter(chi_square / freedom, float(np.sqrt(w @ (2.0 + 1.0 / variances - flatter))) / freedom)


@dataclass(frozen=True)
class ClassQuality:
    """Quality of predicted probabilities: log loss per row, accuracy, AUC, Brier score.

    The accuracy is that of classes at the probability `threshold`; None is above 0.5.
    """

    log_loss: float
    accuracy: float
    auc: float
    brier: float
    threshold: float | None = None


def class_quality(
    y: ArrayLike, probability: ArrayLike, weights: FloatArray | None = None, threshold: float | None = None
) -> ClassQuality:
    """Return the quality of predicted probabilities.

    Parameters
    ----------
    y : (n,) array_like
        Classes 0 and 1.
    probability : (n,) array_like
        Probabilities of class 1.
    weights : (n,) array_like, optional
        Row weights; 1 by default.
    threshold : float, optional
        Probability from which on class 1 is predicted; above 0.5 by default.

    Returns
    -------
    ClassQuality
        The quality; `auc` is NaN if all rows have one class, and `log_loss` is infinite if the class of a row has
        probability 0.

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
    is_positive = predict_positive(chance, threshold)
    accuracy, brier = (float(np.average(x, weights=w)) for x in (is_positive == (truth > 0.0), (chance - truth) ** 2))
    return ClassQuality(loss, accuracy, _auc(truth, chance, w), brier, threshold)


Quality = FitQuality | ClassQuality | CountQuality | TimeQuality


def assess_predictions(
    loss: Loss, rows: Dataset, predicted: FloatArray, weights: FloatArray | None, threshold: float | None = None
) -> Quality:
    """Return the quality of predictions in the measures of a loss.

    Parameters
    ----------
    loss : Loss
        Loss of the fits.
    rows : Dataset
        Rows in the form of the loss.
    predicted : (n,) array
        Predictions.
    weights : (n,) array or None
        Row weights, which the measures of counts do not use; None if each row counts once.
    threshold : float, optional
        Probability from which on class 1 is predicted; above 0.5 by default.
    """
    if loss.target.has_times:
        return assess_times(rows, predicted)
    if loss.target.has_classes:
        return class_quality(rows.y, predicted, weights, threshold)
    if loss.target.has_counts:
        return count_quality(rows.y, predicted, rows.row_exposure)
    return accuracy(rows.y, predicted, weights)


TIED_LOG_ODDS = 1e-10  # difference of log odds up to which rounding may separate equal predictions


def tie_width(chance: FloatArray) -> FloatArray:
    """Return the difference of probabilities that corresponds to `TIED_LOG_ODDS`, or to rounding near 1."""
    return TIED_LOG_ODDS * chance * (1.0 - chance) + 4.0 * ROUNDING * chance


def predict_positive(chance: FloatArray, threshold: float | None = None) -> BoolArray:
    """Return True for rows whose predicted class is 1.

    Parameters
    ----------
    chance : array
        Probabilities of class 1.
    threshold : float, optional
        Probability from which on class 1 is predicted; above 0.5 by default, where rounding does not count.

    Examples
    --------
    >>> predict_positive(np.array([0.4, 0.5, 0.5 + 1e-16, 0.6])).tolist()
    [False, False, False, True]
    """
    half = np.array(0.5)
    return np.asarray(chance > half + tie_width(half) if threshold is None else chance >= threshold)


def rank_probabilities(chance: FloatArray) -> IntArray:
    """Return the rank of each probability, from 0; probabilities that differ by rounding have the same rank.

    Parameters
    ----------
    chance : (n,) array
        Probabilities.

    Examples
    --------
    >>> rank_probabilities(np.array([0.5, 0.2, 0.5 + 1e-15, 1e-20, 1e-18])).tolist()
    [3, 2, 3, 0, 1]
    """
    order = np.argsort(chance, kind="stable")
    ascending = chance[order]
    is_larger = np.diff(ascending) > tie_width(ascending[1:])
    ranks = np.zeros(len(chance), dtype=np.int64)
    ranks[order[1:]] = np.cumsum(is_larger)
    return ranks


def _auc(truth: FloatArray, chance: FloatArray, w: FloatArray) -> float:
    """Return the area under the ROC curve: how often a positive row has the larger probability; ties count half."""
    place = rank_probabilities(chance)
    ones = np.bincount(place, w * (truth > 0.0))
    zeros = np.bincount(place, w * (truth <= 0.0))
    pairs = float(ones.sum() * zeros.sum())
    return float(ones @ (np.cumsum(zeros) - 0.5 * zeros)) / pairs if pairs > 0.0 else float("nan")

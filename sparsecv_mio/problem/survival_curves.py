"""Curves and residuals of survival times: Kaplan-Meier, Breslow's baseline hazard, and Schoenfeld residuals.

Reports show these curves and residuals. They are not certified, and neither the search nor `verify` uses them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.cox_objective import Terms
from sparsecv_mio.units import ROUNDING


class Curve(NamedTuple):
    """An estimated survival function: values from each event time on, with bounds of pointwise 95% intervals."""

    time: FloatArray
    survival: FloatArray
    low: FloatArray
    high: FloatArray

    def find_values(self, moment: float) -> tuple[float, float, float]:
        """Return the value at a time and the bounds of its interval; before the first event all are 1."""
        place = int(np.searchsorted(self.time, moment, side="right")) - 1
        if place < 0:
            return 1.0, 1.0, 1.0
        return float(self.survival[place]), float(self.low[place]), float(self.high[place])


def kaplan_meier(
    time: FloatArray, is_event: BoolArray, entry: FloatArray | None = None, weights: FloatArray | None = None
) -> Curve:
    """Return the Kaplan-Meier curve of some rows, with intervals by Greenwood's variance of log(-log S).

    Parameters
    ----------
    time : (n,) array
        Times of events or of censoring.
    is_event : (n,) bool array
        True for events.
    entry : (n,) array, optional
        Times after which rows are at risk.
    weights : (n,) array, optional
        Row weights, which count as numbers of rows.

    Examples
    --------
    >>> curve = kaplan_meier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, False]))
    >>> curve.time.tolist(), curve.survival.tolist(), curve.find_values(2.5)[0]
    ([1.0, 3.0], [0.75, 0.375], 0.75)
    """
    from scipy.special import ndtri  # a search does not need this import

    w = np.ones(len(time)) if weights is None else weights
    times, which = np.unique(time[is_event], return_inverse=True)
    died, at_risk = np.bincount(which, w[is_event], len(times)), sum_at_risk(times, time, entry, w)
    share = died / at_risk
    share[share > 1.0 - 1e-12] = 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        survival = np.asarray(np.cumprod(1.0 - share), dtype=np.float64)
        spread = np.sqrt(np.cumsum(share / (at_risk * (1.0 - share)))) / -np.log(survival)
        low, high = (survival ** np.exp(sign * ndtri(0.975) * spread) for sign in (1.0, -1.0))
    return Curve(times, survival, low, high)


def find_median_follow_up(dataset: Dataset) -> float:
    """Return the median of the times of censoring by the reverse Kaplan-Meier curve; NaN if it is not reached.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    """
    survival = dataset.survival
    assert survival is not None
    curve = kaplan_meier(dataset.y, ~survival.is_event, survival.entry, dataset.row_weights)
    reached = np.flatnonzero(curve.survival <= 0.5 + ROUNDING)
    return float(curve.time[reached[0]]) if reached.size else math.nan


def sum_at_risk(times: FloatArray, time: FloatArray, entry: FloatArray | None, amounts: FloatArray) -> FloatArray:
    """Return the sum of some amounts over the rows at risk at each of some times.

    Parameters
    ----------
    times : (m,) array
        Times at which rows are counted.
    time : (n,) array
        Times of events or of censoring of the rows.
    entry : (n,) array or None
        Times after which rows are at risk.
    amounts : (n,) array
        Amounts of the rows, such as weights.
    """

    def sum_later(ends: FloatArray) -> FloatArray:
        order = np.argsort(ends, kind="stable")
        sums = np.append(np.cumsum(amounts[order][::-1])[::-1], 0.0)
        return np.asarray(sums[np.searchsorted(ends[order], times, side="left")])

    return sum_later(time) if entry is None else sum_later(time) - sum_later(entry)


class BaselineHazard(NamedTuple):
    """Breslow's estimate of a cumulative baseline hazard: event times, values from each time on, and the last time."""

    time: FloatArray
    hazard: FloatArray
    last: float

    def find_survival(self, moment: float) -> float:
        """Return the probability to survive a time; NaN beyond the last time of the rows, where nothing is observed."""
        if moment > self.last:
            return math.nan
        place = int(np.searchsorted(self.time, moment, side="right")) - 1
        return 1.0 if place < 0 else float(np.exp(-self.hazard[place]))


def baseline_hazards(dataset: Dataset, rows: IntArray, log_hazards: FloatArray) -> dict[int, BaselineHazard]:
    """Return Breslow's estimate of the baseline hazard of each stratum.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    rows : int array
        Training rows.
    log_hazards : (n,) array
        Log hazard ratios of all rows; the baseline is that of the ratio 1.
    """
    survival, baselines = dataset.survival, dict[int, BaselineHazard]()
    assert survival is not None
    strata = np.zeros(dataset.n, dtype=np.int64) if survival.stratum is None else survival.stratum
    w = np.ones(dataset.n) if dataset.row_weights is None else dataset.row_weights
    for stratum in np.unique(strata[rows]).tolist():
        own = rows[strata[rows] == stratum]
        events = own[survival.is_event[own]]
        times, which = np.unique(dataset.y[events], return_inverse=True)
        entry = None if survival.entry is None else survival.entry[own]
        at_risk = sum_at_risk(times, dataset.y[own], entry, w[own] * np.exp(log_hazards[own]))
        hazard = np.cumsum(np.bincount(which, w[events], len(times)) / at_risk)
        baselines[stratum] = BaselineHazard(times, hazard, float(dataset.y[own].max()))
    return baselines


class HazardCheck(NamedTuple):
    """A check of proportional hazards: a trend of scaled Schoenfeld residuals over the ranks of the event times.

    Attributes
    ----------
    time : (E,) array
        Ascending event times.
    effects : (E, k) array
        Scaled residuals plus coefficients: estimates of the coefficients at these times, each with a large variance.
    correlation, statistic, p_value : (k,) arrays
        Correlation of the residuals with the ranks, chi-square statistic with one degree of freedom, and its p value.
    """

    time: FloatArray
    effects: FloatArray
    correlation: FloatArray
    statistic: FloatArray
    p_value: FloatArray


def check_proportional_hazards(dataset: Dataset, Z: FloatArray, beta: FloatArray) -> HazardCheck:
    """Return the check of Grambsch and Therneau (1994, Biometrika 81), with the same variance at all event times.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    Z : (n, k) array
        Columns of the model.
    beta : (k,) array
        Coefficients.
    """
    from scipy.special import chdtrc  # a search does not need this import

    events, residuals = find_schoenfeld_residuals(dataset, Z, beta)
    terms, times = Terms(dataset, np.arange(dataset.n)), dataset.y[events]
    w = terms.event_weights[events]
    inverse = np.linalg.pinv(terms.derivatives(Z @ beta, Z)[1], hermitian=True)
    scaled = w.sum() * residuals @ inverse
    _, which = np.unique(times, return_inverse=True)
    sums = np.bincount(which, w)
    rank = (np.cumsum(sums) - 0.5 * sums)[which]
    rank = rank - np.average(rank, weights=w)
    slope, size = (w * rank) @ scaled, float(w @ rank**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = slope**2 / (w.sum() * np.diag(inverse) * size)
        centred = scaled - np.average(scaled, axis=0, weights=w)
        correlation = slope / np.sqrt(size * (w @ centred**2))
    order = np.argsort(times, kind="stable")
    return HazardCheck(times[order], (beta + scaled)[order], correlation, statistic, chdtrc(1.0, statistic))


def find_schoenfeld_residuals(dataset: Dataset, Z: FloatArray, beta: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the rows of the events, and the columns of each minus their mean over the risk set.

    The mean for tied events by Efron's method is that of their terms.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    Z : (n, k) array
        Columns of the model.
    beta : (k,) array
        Coefficients.
    """
    terms, survival = Terms(dataset, np.arange(dataset.n)), dataset.survival
    assert survival is not None
    stratum = np.zeros(dataset.n) if survival.stratum is None else survival.stratum
    events = np.flatnonzero(survival.is_event)
    events = events[np.lexsort((dataset.y[events], stratum[events]))]  # as the terms
    _, group = np.unique(np.column_stack([stratum[events], dataset.y[events]]), axis=0, return_inverse=True)
    of_term = terms.means(Z @ beta, Z)
    term_group = group if len(of_term) == len(events) else np.arange(len(of_term))
    counts = np.bincount(term_group)
    sums = np.zeros((len(counts), Z.shape[1]))
    np.add.at(sums, term_group, of_term)
    return events, Z[events] - (sums / counts[:, None])[group]

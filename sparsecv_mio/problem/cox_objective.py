"""The partial likelihood of Cox regression and its fits by definition, for tests and `verify`.

This module shares no code with the search, which uses sums along a forest (`problem/risk_sets`). Here every term of the
partial likelihood has a row of weights over all rows of the data: the weights of its risk set, with the shares of
Efron's method for tied events. The terms are processed by blocks, so that memory stays small. O(events n k^2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.problem.row_losses import HALVINGS, NEWTON_STEPS
from sparsecv_mio.targets import Ties
from sparsecv_mio.units import ROUNDING, WRITTEN

FINAL_DECREMENT = 1e-28  # squared decrement of a fit, as a share of the objective
NEAR_DECREMENT = 1e-11  # squared decrement of a point near the minimum, as a share of the objective
MAX_COMMON_RANGE = 600.0  # range of exponents within which exponentials relative to the largest one do not underflow
VALUE_ROUNDING = 1e-13  # rounding error of a partial likelihood, relative to the sizes of its terms


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of the partial likelihood of some rows.

    Attributes
    ----------
    dataset : Dataset
        Data with survival times.
    rows : int array
        Rows that count.
    """

    dataset: Dataset
    rows: IntArray
    _stored: list[tuple[FloatArray, FloatArray, float]] = field(default_factory=list, repr=False)

    @cached_property
    def weights(self) -> FloatArray:
        """(n,) row weights; 0 for rows that do not count."""
        weights = np.zeros(self.dataset.n)
        own = self.dataset.row_weights
        weights[self.rows] = 1.0 if own is None else own[self.rows]
        return weights

    @cached_property
    def event_weights(self) -> FloatArray:
        """(n,) weights of the events."""
        survival = self.dataset.survival
        assert survival is not None
        return np.asarray(self.weights * survival.is_event)

    def blocks(self) -> Iterable[tuple[FloatArray, FloatArray, float]]:
        """Return (m, n) weights of some terms, (m,) weights of the terms, and the sum over their events of w log(unit).

        The blocks are stored if there is one.
        """
        if self._stored:
            return self._stored
        made = self._make_blocks()
        if self.dataset.n * len(self.rows) <= CHUNK_ELEMENTS:
            self._stored.extend(made)
            return self._stored
        return made

    def _make_blocks(self) -> Iterator[tuple[FloatArray, FloatArray, float]]:
        """Yield the blocks.

        An event of weight w has the unit w with Breslow's method, and the mean weight of its tied events with Efron's.
        """
        survival, time, w = self.dataset.survival, self.dataset.y, self.weights
        assert survival is not None
        is_efron = survival.ties is Ties.EFRON
        n, at_once = self.dataset.n, max(CHUNK_ELEMENTS // self.dataset.n, 1)
        stratum = np.zeros(n, dtype=np.int64) if survival.stratum is None else survival.stratum
        entry = np.full(n, -np.inf) if survival.entry is None else survival.entry
        events = np.flatnonzero((w > 0.0) & survival.is_event)
        events = events[np.lexsort((time[events], stratum[events]))]
        first = np.append(True, np.diff(time[events]) > 0.0) | np.append(True, np.diff(stratum[events]) > 0)
        group = np.cumsum(first[: len(events)]) - 1
        size, total = np.bincount(group), np.bincount(group, w[events])
        starts = np.flatnonzero(first[: len(events)])
        omega = total[group] / size[group] if is_efron else total[group]
        rank = np.arange(len(events)) - starts[group] if len(events) else np.zeros(0, dtype=np.int64)
        constant = w[events] * np.log(omega if is_efron else w[events])
        if not is_efron:
            constant = np.bincount(group, constant)[group]
        chosen = np.arange(len(events)) if is_efron else starts
        for begin in range(0, len(chosen), at_once):
            some = chosen[begin : begin + at_once]
            e = events[some]
            at_risk = (stratum == stratum[e, None]) & (time >= time[e, None]) & (entry < time[e, None])
            tied = at_risk & (time == time[e, None]) & survival.is_event
            share = (rank[some] / size[group[some]] if is_efron else np.zeros(len(some)))[:, None]
            yield np.where(tied, 1.0 - share, at_risk * 1.0) * w, omega[some], float(constant[some].sum())

    def loss(self, eta: FloatArray) -> tuple[float, float]:
        """Return the negative log partial likelihood at exponents, and the size of the numbers added up."""
        value, size = -float(self.event_weights @ eta), float(self.event_weights @ np.abs(eta))
        for weights, omega, constant in self.blocks():
            log_sums = _log_sums(weights, eta)
            value += float(omega @ log_sums) - constant
            size += float(omega @ np.abs(log_sums)) + abs(constant)
        return value, size

    def derivatives(self, eta: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the Hessian with respect to the coefficients of columns Z (n, k)."""
        g, H = -self.event_weights @ Z, np.zeros((Z.shape[1], Z.shape[1]))
        for weights, omega, _ in self.blocks():
            P = _softmax(weights, eta)[0]
            means, own = P @ Z, omega @ P
            g = g + omega @ means
            H += (Z * own[:, None]).T @ Z - (means * omega[:, None]).T @ means
        return g, H


STORED_TERMS: WeakKeyDictionary[Dataset, dict[bytes, Terms]] = WeakKeyDictionary()
MAX_STORED_TERMS = 64  # sets of rows of a data set whose terms are stored


def terms_of(dataset: Dataset, rows: IntArray) -> Terms:
    """Return the terms of some rows, which are stored for the next fit."""
    stored, name = STORED_TERMS.setdefault(dataset, {}), np.ascontiguousarray(rows).tobytes()
    if name not in stored:
        if len(stored) >= MAX_STORED_TERMS:
            stored.clear()
        stored[name] = Terms(dataset, rows)
    return stored[name]


def _invert(H: FloatArray) -> FloatArray:
    """Return the inverse of a Hessian with unit diagonal; a generalised one if it is singular up to rounding."""
    try:
        back = np.linalg.inv(np.linalg.cholesky(H))
        return np.asarray(back.T @ back)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(H, hermitian=True))


def _log_sums(weights: FloatArray, eta: FloatArray) -> FloatArray:
    """Return the logarithms of the sums of the weights of terms times exponentials."""
    high = float(eta.max(initial=-np.inf))
    if high - float(eta.min(initial=np.inf)) <= MAX_COMMON_RANGE:  # no risk set underflows
        return np.asarray(np.log(weights @ np.exp(eta - high)) + high)
    return _softmax(weights, eta)[1]


def _softmax(weights: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares of rows in terms, and the logarithms of the sums of their weights times exponentials."""
    high = float(eta.max(initial=-np.inf))
    most = np.full(len(weights), high)
    if high - float(eta.min(initial=np.inf)) > MAX_COMMON_RANGE:  # a risk set may underflow
        most = np.where(weights > 0.0, eta, -np.inf).max(axis=1)
    relative = weights * np.exp(np.minimum(eta - most[:, None], 0.0))
    total = relative.sum(axis=1)
    return relative / total[:, None], np.log(total) + most


@dataclass(frozen=True, eq=False)
class CoxModel:
    """The fit of one support to some rows, as a model of a row loss: without an intercept, `center` is subtracted.

    Attributes
    ----------
    support : tuple of int
        Columns in `Dataset.names`.
    beta : (s,) array
        Coefficients in units of the file.
    objective : float
        Minimum of the negative log partial likelihood and the penalty.
    center, unit : (s,) arrays
        Columns are `(x - center) / unit` in the coordinates of `theta`.
    theta, inverse, penalty : (s,), (s, s), (s,) arrays
        Fit, inverse Hessian and ridge in these coordinates.
    decrement : float
        Length of the last gradient in the norm of the inverse Hessian.
    rows : int array
        Training rows.
    """

    support: tuple[int, ...]
    beta: FloatArray
    objective: float
    center: FloatArray
    unit: FloatArray
    theta: FloatArray
    decrement: float
    inverse: FloatArray
    penalty: FloatArray
    rows: IntArray
    intercept: float = 0.0

    def columns(self, X: FloatArray) -> FloatArray:
        """Return (m, s) rows in the coordinates of theta."""
        return np.asarray((X[:, list(self.support)] - self.center) / self.unit)

    def predictors(self, X: FloatArray) -> FloatArray:
        """Return the (m,) log hazard ratios of rows (m, p)."""
        return np.asarray(X[:, list(self.support)] @ self.beta)

    def held_out(self, dataset: Dataset, rows: IntArray, predictors_off: float = 0.0) -> tuple[float, float]:
        """Return `l_all - l_train` with the given scored rows, and an estimate of its error.

        Parameters
        ----------
        dataset : Dataset
            Data set of the training rows.
        rows : (m,) int array
            Scored rows.
        predictors_off : float
            Error of the exponents.
        """
        eta, every, train = self.columns(dataset.X) @ self.theta, np.union1d(self.rows, rows), self.rows
        (whole, size), (part, trained) = (terms_of(dataset, some).loss(eta) for some in (every, train))
        Z = self.columns(dataset.X[every])
        far = float(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", Z, self.inverse, Z), 0.0)).max(initial=0.0))
        events = float(terms_of(dataset, every).event_weights.sum())
        doubt = 8.0 * self.decrement * far + 64.0 * ROUNDING
        return whole - part, VALUE_ROUNDING * (size + trained) + events * doubt


def fit_cox(
    dataset: Dataset, support: Sequence[int], ridge: float | FloatArray, rows: IntArray | None = None,
    near: bool = False, start: CoxModel | None = None,
) -> CoxModel:  # fmt: skip
    """Return the fit of one support to some rows by Newton's method with step halving.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    support : sequence of int
        Columns of the support.
    ridge : float or (s,) array
        Ridge weights of the columns in units of the file: the penalty is `sum_j ridge_j b_j^2`.
    rows : int array, optional
        Training rows; all by default.
    near : bool
        True for a point near the minimum, whose objective exceeds it by at most the square of its decrement.
    start : CoxModel, optional
        Model of the same rows from which to start.
    """
    columns, train = np.array(list(support), dtype=np.int64), np.arange(dataset.n) if rows is None else np.asarray(rows)
    terms, X = terms_of(dataset, train), dataset.X[:, columns]
    center = X[train].mean(axis=0) if len(train) else np.zeros(len(columns))
    about = X - center
    about[:, np.ptp(X[train], axis=0) <= WRITTEN * np.abs(X[train]).max(axis=0, initial=0.0)] = 0.0
    unit = np.abs(about[train]).max(axis=0, initial=0.0)
    unit[unit == 0.0] = 1.0
    Z = about / unit
    Z[np.setdiff1d(np.arange(dataset.n), train)] = 0.0
    penalty = np.broadcast_to(np.asarray(ridge, dtype=np.float64), columns.shape) / unit**2
    theta = np.zeros(len(columns))
    if start is not None:
        slopes = dict(zip(start.support, start.beta.tolist(), strict=True))
        theta = np.array([slopes.get(int(j), 0.0) for j in columns]) * unit

    def value(at: FloatArray) -> float:
        return terms.loss(Z @ at)[0] + float(penalty @ at**2)

    objective, decrement, inverse = value(theta), 0.0, np.zeros((len(theta), len(theta)))
    if not np.isfinite(objective):
        theta, objective = np.zeros(len(columns)), value(np.zeros(len(columns)))
    before = np.inf
    for _ in range(NEWTON_STEPS if len(theta) else 0):
        g, H = terms.derivatives(Z @ theta, Z)
        g, H = g + 2.0 * penalty * theta, H + np.diag(2.0 * penalty)
        size = np.sqrt(np.maximum(np.diag(H), 1e-300))
        inverse = _invert(H / size / size[:, None]) / size / size[:, None]
        step = -inverse @ g
        decrement = float(np.sqrt(max(-g @ step, 0.0)))
        square = decrement**2
        if square <= FINAL_DECREMENT * objective or (near and square <= NEAR_DECREMENT * objective and before < np.inf):
            break
        share = 1.0
        for _ in range(HALVINGS):
            there = value(theta + share * step)
            if there < objective or (there <= objective * (1.0 + 1e-14) and share == 1.0 and square < 1e-8 * objective):
                break
            share /= 2.0
        else:
            break
        stalled = before / 2.0 <= square < 1e-16 * objective
        theta, objective, before = theta + share * step, there, square
        if stalled:
            break
    return CoxModel(
        tuple(columns.tolist()), theta / unit, objective, center, unit, theta, decrement, inverse, penalty, train
    )


def null_loss_of_times(dataset: Dataset, plan: FoldPlan | None) -> float:
    """Return the CV error of the model without features: the sum of `l_all - l_train` at 0 over the scored events.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    plan : FoldPlan or None
        Folds; with None, the result is the loss of all rows per event.
    """
    every, total = np.arange(dataset.n), 0.0
    whole = null_partial_likelihood(dataset, every)
    if plan is None:
        return whole / dataset.weight_of(every)
    for fold in range(plan.k):
        train = plan.train_rows(fold)
        both = np.union1d(train, plan.scored_rows(fold))
        total += whole if len(both) == dataset.n else null_partial_likelihood(dataset, both)
        total -= null_partial_likelihood(dataset, train)
    return total / dataset.weight_of(plan.all_scored)


def null_partial_likelihood(dataset: Dataset, rows: IntArray) -> float:
    """Return the negative log partial likelihood of some rows without features, from sums of sorted weights.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    rows : int array
        Rows.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sparsecv_mio.data.survival import Survival
    >>> data = Dataset.from_arrays([[0.0]] * 3, [1.0, 2.0, 3.0])
    >>> data = replace(data, survival=Survival(np.array([True, True, False])))
    >>> round(null_partial_likelihood(data, np.arange(3)), 6), round(float(np.log(6.0)), 6)
    (1.791759, 1.791759)
    """
    survival, value = dataset.survival, 0.0
    assert survival is not None
    strata = np.zeros(dataset.n) if survival.stratum is None else survival.stratum
    own = np.ones(dataset.n) if dataset.row_weights is None else dataset.row_weights
    for stratum in np.unique(strata[rows]):
        here = rows[strata[rows] == stratum]
        time, w, is_event = dataset.y[here], own[here], survival.is_event[here] & (own[here] > 0.0)
        times, tied = np.unique(time[is_event], return_inverse=True)
        at_risk = _sum_from(time, w, times)
        if survival.entry is not None:
            at_risk -= _sum_from(survival.entry[here], w, times)
        count, total = np.bincount(tied, minlength=len(times)), np.bincount(tied, w[is_event], len(times))
        if survival.ties is Ties.BRESLOW:
            logs = np.bincount(tied, w[is_event] * np.log(w[is_event]), len(times))
            value += float(total @ np.log(at_risk) - logs.sum())
            continue
        rank = np.concatenate([np.arange(each) for each in count.tolist()]) if len(times) else np.zeros(0)
        block = np.repeat(np.arange(len(times)), count)
        mean = (total / np.maximum(count, 1))[block]
        value += float(mean @ (np.log(at_risk[block] - rank / count[block] * total[block]) - np.log(mean)))
    return value


def _sum_from(starts: FloatArray, w: FloatArray, times: FloatArray) -> FloatArray:
    """Return the sums of the weights of rows whose start is at least each time."""
    order = np.argsort(starts)
    sums = np.append(np.cumsum(w[order][::-1])[::-1], 0.0)
    return np.asarray(sums[np.searchsorted(starts[order], times)])

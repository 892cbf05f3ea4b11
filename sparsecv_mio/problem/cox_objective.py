"""The partial likelihood of Cox regression and its fits, computed directly from the definition, for tests and `verify`.

This module shares no code with the search, which uses sums along a forest (`problem/risk_sets`). Here every term of the
partial likelihood has a row of weights over all rows of the data: the weights of its risk set, with the shares of
Efron's method for tied events. The terms are processed in blocks, so that memory stays small. With n rows and k
columns, a Newton step takes O(events n k^2) operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.problem.row_losses import HALVINGS, NEWTON_STEPS
from sparsecv_mio.targets import Ties
from sparsecv_mio.units import TINY, WRITTEN

FINAL_DECREMENT = 1e-28  # squared decrement of a fit, as a share of the objective
CLOSE_DECREMENT = 1e-8  # squared decrement, as a share of the objective, from which Newton steps fall quadratically
NEAR_DECREMENT = 1e-11  # squared decrement of a point near the minimum, as a share of the objective
MAX_COMMON_RANGE = 600.0  # range of exponents within which exponentials relative to the largest one do not underflow
VALUE_ROUNDING = 1e-13  # rounding error of a partial likelihood, relative to the sizes of its terms


class Block(NamedTuple):
    """Some terms of a partial likelihood.

    Attributes
    ----------
    others : (m, n) array
        Weights of the rows of each term, without the event of the term if it has no tied events.
    omega, log_unit : (m,) arrays
        Weights of the terms, and mean logarithms of the units of their events.
    group : (m,) int array
        Tied events of each term, by `Tied`.
    is_alone : (m,) bool array
        True for terms of one event.
    """

    others: FloatArray
    omega: FloatArray
    log_unit: FloatArray
    group: IntArray
    is_alone: BoolArray

    def bound(self, logs: FloatArray, mean_eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (m,) values of the terms per weight, and their derivatives by the exponents of the other rows.

        A term of one event is `log(1 + sum of the others / event)`, which is accurate however small it is.
        """
        x = logs - mean_eta[self.group] - self.log_unit
        values = np.where(self.is_alone, np.logaddexp(0.0, x), x)
        return values, np.exp(x - values)


class Tied(NamedTuple):
    """Events by stratum and time: (E,) rows, groups and shares of the weights of their groups; first of each group."""

    rows: IntArray
    group: IntArray
    share: FloatArray
    starts: IntArray

    def means(self, values: FloatArray) -> FloatArray:
        """Return the weighted means of quantities of rows over the events of each group."""
        if not len(self.rows):
            return np.zeros((0, *values.shape[1:]))
        parts = values[self.rows] * self.share.reshape(-1, *(1,) * (values.ndim - 1))
        return np.asarray(np.add.reduceat(parts, self.starts, axis=0))


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
    _stored: list[Block] = field(default_factory=list, repr=False)

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

    @cached_property
    def tied(self) -> Tied:
        """The events."""
        survival, time, w = self.dataset.survival, self.dataset.y, self.weights
        assert survival is not None
        stratum = np.zeros(self.dataset.n, dtype=np.int64) if survival.stratum is None else survival.stratum
        events = np.flatnonzero((w > 0.0) & survival.is_event)
        events = events[np.lexsort((time[events], stratum[events]))]
        first = np.append(True, np.diff(time[events]) > 0.0) | np.append(True, np.diff(stratum[events]) > 0)
        group = np.cumsum(first[: len(events)]) - 1
        return Tied(
            events, group, w[events] / np.bincount(group, w[events])[group], np.flatnonzero(first[: len(events)])
        )

    def blocks(self) -> Iterable[Block]:
        """Return the terms by blocks, which are stored if there is one."""
        if self._stored:
            return self._stored
        made = self._make_blocks()
        if self.dataset.n * len(self.rows) <= CHUNK_ELEMENTS:
            self._stored.extend(made)
            return self._stored
        return made

    def _make_blocks(self) -> Iterator[Block]:
        """Yield the blocks.

        An event of weight w has the unit w with Breslow's method, and the mean weight of its tied events with Efron's.
        """
        survival, time, w, (events, group, share, starts) = (
            self.dataset.survival,
            self.dataset.y,
            self.weights,
            self.tied,
        )
        assert survival is not None
        is_efron = survival.ties is Ties.EFRON
        n, at_once = self.dataset.n, max(CHUNK_ELEMENTS // self.dataset.n, 1)
        stratum = np.zeros(n, dtype=np.int64) if survival.stratum is None else survival.stratum
        entry = np.full(n, -np.inf) if survival.entry is None else survival.entry
        size, total = np.bincount(group), np.bincount(group, w[events])
        omega = np.asarray(total / size if is_efron else total, dtype=np.float64)
        log_unit = np.asarray(np.log(omega) if is_efron else np.bincount(group, share * np.log(w[events])), np.float64)
        chosen = np.arange(len(events)) if is_efron else starts
        rank = chosen - starts[group[chosen]]
        for begin in range(0, len(chosen), at_once):
            some = chosen[begin : begin + at_once]
            e, own = events[some], group[some]
            at_risk = (stratum == stratum[e, None]) & (time >= time[e, None]) & (entry < time[e, None])
            is_tied = at_risk & (time == time[e, None]) & survival.is_event
            factor = (1.0 - rank[begin : begin + at_once] / size[own])[:, None] if is_efron else np.ones((len(e), 1))
            others, is_alone = np.where(is_tied, factor, at_risk * 1.0) * w, size[own] == 1
            others[np.flatnonzero(is_alone), e[is_alone]] = 0.0
            yield Block(others, omega[own], log_unit[own], own, is_alone)

    def loss(self, eta: FloatArray, blurred: float = 0.0) -> tuple[float, float]:
        """Return the negative log partial likelihood at exponents, and the size of the numbers that cancel or add up.

        Parameters
        ----------
        eta : (n,) array
            Exponents.
        blurred : float
            Largest size of the numbers that add up to an exponent.
        """
        value, size, means = 0.0, 0.0, self.tied.means(eta)
        for block in self.blocks():
            logs = _log_sums(block.others, eta)
            values, shares = block.bound(logs, means)
            numbers = np.abs(logs) + np.abs(means[block.group]) + np.abs(block.log_unit) + 2.0 * blurred
            value += float(block.omega @ values)
            size += float(block.omega @ (np.abs(values) + shares * np.where(shares > 0.0, numbers, 0.0)))
        return value, size

    def moved(self, eta: FloatArray) -> float:
        """Return the sum of the weights of the terms, those of one event times the share of the other rows."""
        means = self.tied.means(eta)
        return float(sum(each.omega @ each.bound(_log_sums(each.others, eta), means)[1] for each in self.blocks()))

    def means(self, eta: FloatArray, Z: FloatArray) -> FloatArray:
        """Return the means of columns Z (n, k) over the rows of each term, by their weights at exponents."""
        means, tied, found = self.tied.means(eta), self.tied.means(Z), [np.zeros((0, Z.shape[1]))]
        for block in self.blocks():
            P, logs = _softmax(block.others, eta)
            shares, own = block.bound(logs, means)[1][:, None], tied[block.group]
            found.append(own + shares * (P @ Z - own))
        return np.concatenate(found)

    def derivatives(self, eta: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the Hessian with respect to the coefficients of columns Z (n, k).

        Both are sums over the rows other than a lone event, of differences from it.
        """
        g, H = np.zeros(Z.shape[1]), np.zeros((Z.shape[1], Z.shape[1]))
        means, tied = self.tied.means(eta), self.tied.means(Z)
        for block in self.blocks():
            P, logs = _softmax(block.others, eta)
            shares = block.bound(logs, means)[1]
            centres, pulls = P @ Z, block.omega * shares
            about = centres - tied[block.group]
            g = g + pulls @ about
            H += (Z * (pulls @ P)[:, None]).T @ Z - (centres * pulls[:, None]).T @ centres
            H += (about * np.where(block.is_alone, pulls * (1.0 - shares), 0.0)[:, None]).T @ about
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
    """Return the logarithms of the sums of the weights of terms times exponentials; -inf without weights."""
    high = float(eta.max(initial=-np.inf))
    if high - float(eta.min(initial=np.inf)) <= MAX_COMMON_RANGE:  # no risk set underflows
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights @ np.exp(eta - high)) + high)
    return _softmax(weights, eta)[1]


def _softmax(weights: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares of rows in terms, and the logarithms of the sums of their weights times exponentials."""
    high = float(eta.max(initial=-np.inf))
    most = np.full(len(weights), high)
    if high - float(eta.min(initial=np.inf)) > MAX_COMMON_RANGE:  # a risk set may underflow
        most = np.where(weights > 0.0, eta, -np.inf).max(axis=1)
        most[most == -np.inf] = high
    relative = weights * np.exp(np.minimum(eta - most[:, None], 0.0))
    total = relative.sum(axis=1)
    with np.errstate(divide="ignore"):
        return relative / np.maximum(total, TINY)[:, None], np.log(total) + most


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
    rounding : float
        Bound on the rounding error of the objective, where numbers cancel.
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
    rounding: float = 0.0
    intercept: float = 0.0

    def columns(self, X: FloatArray) -> FloatArray:
        """Return (m, s) rows in the coordinates of theta."""
        return np.asarray((X[:, list(self.support)] - self.center) / self.unit)

    def predictors(self, X: FloatArray) -> FloatArray:
        """Return the (m,) log hazard ratios of rows (m, p)."""
        return np.asarray(X[:, list(self.support)] @ self.beta)

    def moved(self, dataset: Dataset) -> float:
        """Return the weights of the terms of the training rows; see `Terms.moved`."""
        return terms_of(dataset, self.rows).moved(self.columns(dataset.X) @ self.theta)

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
        Z, every, train = self.columns(dataset.X), np.union1d(self.rows, rows), self.rows
        eta, blurred = Z @ self.theta, float((np.abs(Z[every]) @ np.abs(self.theta)).max(initial=0.0))
        (whole, size), (part, trained) = (terms_of(dataset, some).loss(eta, blurred) for some in (every, train))
        Z = Z[every]
        far = float(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", Z, self.inverse, Z), 0.0)).max(initial=0.0))
        events = float(terms_of(dataset, every).event_weights.sum())
        return whole - part, VALUE_ROUNDING * (size + trained) + 8.0 * events * self.decrement * far


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

    def value(at: FloatArray) -> tuple[float, float]:
        """Return F and the size of the numbers in it."""
        loss, size = terms.loss(Z @ at, float((np.abs(Z) @ np.abs(at)).max(initial=0.0)))
        ridge_loss = float(penalty @ at**2)
        return loss + ridge_loss, size + ridge_loss

    (objective, size), decrement, inverse = value(theta), 0.0, np.zeros((len(theta), len(theta)))
    if start is not None and not objective <= value(np.zeros(len(theta)))[0]:  # far away, curvatures vanish
        theta = np.zeros(len(columns))
        objective, size = value(theta)
    before = np.inf
    for _ in range(NEWTON_STEPS if len(theta) else 0):
        g, H = terms.derivatives(Z @ theta, Z)
        g, H = g + 2.0 * penalty * theta, H + np.diag(2.0 * penalty)
        length = np.sqrt(np.maximum(np.diag(H), TINY))
        inverse = _invert(H / length / length[:, None]) / length / length[:, None]
        step = -inverse @ g
        square = max(float(-g @ step), 0.0)
        decrement = float(np.sqrt(square))
        if square <= FINAL_DECREMENT * objective or (near and square <= NEAR_DECREMENT * objective and before < np.inf):
            break
        is_close = square < CLOSE_DECREMENT * objective or square < VALUE_ROUNDING * size  # full steps converge
        if is_close and square >= before / 4.0:
            break
        there, share = _halve_step(value, theta, step, objective, is_close)
        if share == 0.0:
            break
        theta, (objective, size), before = theta + share * step, there, square
    return CoxModel(
        tuple(columns.tolist()), theta / unit, objective, center, unit, theta, decrement, inverse, penalty, train,
        VALUE_ROUNDING * size,
    )  # fmt: skip


def _halve_step(
    value: Callable[[FloatArray], tuple[float, float]], theta: FloatArray, step: FloatArray, objective: float,
    is_close: bool,
) -> tuple[tuple[float, float], float]:  # fmt: skip
    """Return the values after the longest of the halved steps that lowers F, and its share; share 0 if none does.

    A step close to the minimum need not lower F by more than the rounding errors of F.
    """
    share = 1.0
    for _ in range(HALVINGS):
        there = value(theta + share * step)
        if there[0] < objective or (is_close and there[0] <= objective + VALUE_ROUNDING * there[1]):
            return there, share
        share /= 2.0
    return (objective, 0.0), 0.0


def null_loss_of_times(dataset: Dataset, plan: FoldPlan | None) -> float:
    """Return the CV error of the model without features: the sum of `l_all - l_train` at 0 over the scored events.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    plan : FoldPlan or None
        Folds; with None, the result is the loss of all rows per event.
    """
    if plan is None:
        every = np.arange(dataset.n)
        return null_partial_likelihood(dataset, every) / dataset.weight_of(every)
    return float(find_null_losses(dataset, plan, range(plan.k)).sum()) / dataset.weight_of(plan.all_scored)


def find_null_losses(dataset: Dataset, plan: FoldPlan, folds: Sequence[int]) -> FloatArray:
    """Return the held-out losses `l_all - l_train` of the model without features in some folds.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    plan : FoldPlan
        Folds.
    folds : sequence of int
        Indices of the folds.
    """
    whole, losses = null_partial_likelihood(dataset, np.arange(dataset.n)), np.zeros(len(folds))
    for place, fold in enumerate(folds):
        train = plan.train_rows(fold)
        both = np.union1d(train, plan.scored_rows(fold))
        loss = whole if len(both) == dataset.n else null_partial_likelihood(dataset, both)
        losses[place] = loss - null_partial_likelihood(dataset, train)
    return losses


def loss_of_times(dataset: Dataset, log_hazards: FloatArray) -> float:
    """Return the negative log partial likelihood of all rows per event at given log hazard ratios.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    log_hazards : (n,) array
        Log hazard ratios.
    """
    every = np.arange(dataset.n)
    return Terms(dataset, every).loss(log_hazards)[0] / dataset.weight_of(every)


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

"""Cox regression: the partial likelihood in numpy, and the fit of one support with certified bounds on its errors.

    F(b) = sum_t omega_t log(sum_{j in R_t} f_tj w_j exp(x_j'b) / unit_t) - sum_events w_e x_e'b + sum_a r_a b_a^2

R_t is the risk set of term t (`problem/risk_sets`). A term belongs to an event (Efron's method; f_tj is its share of
tied events) or to all tied events of a time (Breslow's method). unit_t is the mean weight of the tied events, or the
weight of a single event. Let l be F without the penalty. If all weights are 1, l is the usual negative log partial
likelihood. With other weights, l differs from the value of R's coxph by a constant. Because of this constant, l is
proportional to the weights and at least 0.

The held-out loss of a fold is `l_all(b) - l_train(b)` at the fit b of the training rows (Verweij and van Houwelingen
1993). Here l_train is l on the training rows, and l_all is l on the training and the scored rows together. The held-out
loss is at least 0 for every b (docs/theory/cox.md). It is not a sum over the scored rows, because a scored row also
enlarges the risk sets of events in training.

Sums are computed in long precision, relative to the largest exponent of each stratum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import FINE, LONG, BoolArray, FloatArray, IntArray, LongArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.data.survival_columns import find_ordering_columns
from sparsecv_mio.digits import abbreviate_list
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.risk_sets import RiskSets, make_risk_sets, sum_blocks, sum_paths
from sparsecv_mio.problem.row_losses import HALVINGS, NEWTON_STEPS, RADII_TRIED, worst_ratio
from sparsecv_mio.targets import Loss, Ties
from sparsecv_mio.units import ROUNDING, TIE_RTOL

MAX_DOUBT = 0.1  # maximum relative rounding error of the Hessian for any proof
FIT_DECREMENT = 1e-32  # squared decrement, as a share of F, at which steps end
ROUNDED_DECREMENT = 1e-18  # squared decrement, as a share of F, below which it may be rounding


def risk_sets_of(dataset: Dataset, rows: IntArray | slice) -> RiskSets:
    """Return the risk sets of some rows of survival data.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    rows : int array or slice
        Rows.
    """
    survival = dataset.survival
    assert survival is not None
    chosen = np.arange(dataset.n)[rows]
    return make_risk_sets(
        dataset.y, survival.is_event, survival.entry, survival.stratum, dataset.row_weights, chosen,
        survival.ties is Ties.EFRON,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PartialLikelihood:
    """The negative log partial likelihood l of some rows at exponents, in long precision.

    Attributes
    ----------
    sets : RiskSets
        Risk sets.
    eta : (n,) array
        Exponents of all rows.
    """

    sets: RiskSets
    eta: LongArray

    @cached_property
    def _shift(self) -> LongArray:
        """(n,) largest exponent of the stratum of each row."""
        at_risk = self.sets.weight > 0.0
        most = np.full(int(self.sets.stratum.max(initial=0)) + 1, -np.inf, dtype=LONG)
        np.maximum.at(most, self.sets.stratum[at_risk], self.eta[at_risk])
        return most[self.sets.stratum]

    @cached_property
    def _relative(self) -> LongArray:
        """(n,) weights times exponentials, relative to the largest of the stratum; 0 for rows in no risk set."""
        is_in = self.sets.weight > 0.0
        return np.where(is_in, self.sets.weight * np.exp(np.where(is_in, self.eta - self._shift, 0.0)), LONG(0))

    @cached_property
    def block(self) -> IntArray:
        """(T,) block of each term."""
        return np.repeat(np.arange(len(self.sets.node)), self.sets.n_terms)

    @cached_property
    def omega(self) -> FloatArray:
        """(T,) weights of the terms."""
        return self.sets.omega[self.block]

    @cached_property
    def share(self) -> LongArray:
        """(T,) shares of the tied events in the terms."""
        first = np.cumsum(self.sets.n_terms) - self.sets.n_terms
        return 1.0 - (np.arange(len(self.block)) - first[self.block]).astype(LONG) / self.sets.n_terms[self.block]

    def sum_terms(self, values: LongArray) -> LongArray:
        """Return the sums of quantities of rows over the risk sets of all terms."""
        before, own = sum_paths(self.sets, values)[self.sets.node], sum_blocks(self.sets, values)
        share = self.share.reshape(-1, *(1,) * (values.ndim - 1))
        return np.asarray(before[self.block] + share * own[self.block])

    @cached_property
    def totals(self) -> LongArray:
        """(T,) sums of the relative weights of the terms."""
        return self.sum_terms(self._relative)

    @cached_property
    def is_alone(self) -> BoolArray:
        """(B,) mask of the blocks of one event."""
        return np.diff(self.sets.block_start) == 1

    @cached_property
    def others(self) -> LongArray:
        """(B,) sums of the relative weights of the risk sets without the events of the blocks."""
        return np.asarray(sum_paths(self.sets, self._relative)[self.sets.node])

    @cached_property
    def moved(self) -> LongArray:
        """(B,) weights of the blocks; of a block of one event, times the share of the other rows."""
        weight = self.sets.omega * self.sets.n_terms
        if not len(weight):
            return weight.astype(LONG)
        with np.errstate(over="ignore"):
            share = 1.0 / (1.0 + np.exp(-self._log_ratio))
        return np.where(self.is_alone, weight * share, weight.astype(LONG))

    @cached_property
    def _log_ratio(self) -> LongArray:
        """(B,) logarithms of the sums of the other rows, relative to the first events; -inf without other rows."""
        events = self.sets.block_rows[self.sets.block_start[:-1]]
        with np.errstate(divide="ignore"):
            return np.asarray(
                np.log(self.others) - np.log(self.sets.weight[events].astype(LONG))
                + (self._shift[events] - self.eta[events])
            )  # fmt: skip

    @cached_property
    def value_and_size(self) -> tuple[np.longdouble, float]:
        """The value l, and the size of the numbers added up or cancelled.

        The value of a block of one event is `log(1 + others / event)`, which is accurate however small it is.
        """
        sets, alone = self.sets, self.is_alone
        if not len(sets.node):
            return LONG(0), 0.0
        events, x, log_sums = sets.block_rows[sets.block_start[:-1]], self._log_ratio, np.log(self.totals)
        one = np.where(alone, np.logaddexp(LONG(0), np.where(alone, x, LONG(0))), LONG(0))
        several = np.repeat(~alone, np.diff(sets.block_start))
        rows, sizes = sets.block_rows, np.diff(sets.block_start)
        own = sets.weight[rows].astype(LONG)
        unit = np.where(np.repeat(sets.n_terms == sizes, sizes), np.repeat(sets.omega, sizes), sets.weight[rows])
        away, logs = self._shift[rows] - self.eta[rows], np.log(unit.astype(LONG))
        tied = ~alone[self.block]
        value = sets.omega @ one + (self.omega * tied) @ log_sums + (own * several) @ (away - logs)
        numbers = np.abs(np.where(np.isfinite(x), x, LONG(0))) + np.abs(self._shift[events]) + np.abs(self.eta[events])
        size = sets.omega @ one + (self.moved * alone) @ numbers + (self.omega * tied) @ np.abs(log_sums)
        size += (own * several) @ (np.abs(self._shift[rows]) + np.abs(self.eta[rows]) + np.abs(logs))
        return (LONG(value), float(size)) if np.isfinite(value) else (LONG(np.inf), np.inf)

    @property
    def value(self) -> float:
        """The value l."""
        return float(self.value_and_size[0])

    def means(self, X: LongArray) -> LongArray:
        """Return (T, k) means of columns X (n, k) under the weights of the terms."""
        return np.asarray(self.sum_terms(self._relative[:, None] * X) / self.totals[:, None])

    def pulls(self) -> tuple[LongArray, LongArray]:
        """Return (n,) weights of rows and of events, whose difference is the gradient by the exponents.

        Weights of rows are sums over the terms of omega times the share of each row in the term. The share of an event
        in a term of its own is left out of both.
        """
        sets, each, sizes = self.sets, (self.omega / self.totals).astype(LONG), np.diff(self.sets.block_start)
        others, own = np.zeros(len(sets.parent), dtype=LONG), np.zeros(len(sets.node), dtype=LONG)
        np.add.at(others, sets.node[self.block], each)
        np.add.at(own, self.block, self.share * each)
        ahead = sets.parent.copy()
        while np.any(has := ahead >= 0):
            more = others.copy()
            np.add.at(more, ahead[has], others[has])
            others, ahead[has] = more, ahead[ahead[has]]
        weights, falls = np.zeros((2, len(sets.weight)), dtype=LONG)
        np.add.at(weights, sets.rows, np.repeat(others, np.diff(sets.start)))
        weights[sets.block_rows] += np.repeat(np.where(self.is_alone, LONG(0), own), sizes)
        alone = np.repeat(self.is_alone, sizes)
        falls[sets.block_rows] = np.where(alone, np.repeat(self.moved, sizes), sets.weight[sets.block_rows])
        return np.asarray(weights * self._relative), falls

    def row_weights(self) -> LongArray:
        """Return the (n,) sums over the terms of omega times the weight of each row in the term."""
        pulls, falls = self.pulls()
        return np.asarray(pulls + (self.sets.event_weight - falls))

    def gradient(self, X: LongArray) -> LongArray:
        """Return the (k,) gradient of l with respect to the coefficients of columns X (n, k)."""
        pulls, falls = self.pulls()
        return np.asarray((pulls - falls) @ X)

    def hessian(self, X: LongArray) -> tuple[LongArray, FloatArray]:
        """Return the (k, k) Hessian of l, and the (k,) second moments of the columns about 0."""
        means, weights = self.means(X), self.row_weights()
        second = (X * weights[:, None]).T @ X
        return second - (means * self.omega[:, None]).T @ means, np.diag(second).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CoxRowFit:
    """A fit in standard coordinates: the log hazard ratio of a row v is `v_S'beta`, up to a constant.

    `spread` bounds the error of each coefficient, `objective_error` that of the objective; both are infinite if the
    rows do not determine the fit.
    """

    support: IntArray
    beta: FloatArray
    spread: FloatArray
    objective: float
    objective_error: float
    v_mean: FloatArray
    sets: RiskSets
    rows: IntArray
    inverse: FloatArray  # (k, k): the error of `z'beta` is at most `||inverse z||` times the radius
    radius: float
    dataset: Dataset  # data of the training rows
    first: int = 0
    r_mean: float = 0.0

    @property
    def theta(self) -> FloatArray:
        """(s,) coefficients."""
        return self.beta

    def predictors(self, data: StandardData, rows: IntArray | slice) -> FloatArray:
        """Return the (m,) log hazard ratios of some rows."""
        return np.asarray(data.of_columns(np.arange(data.n)[rows], self.support) @ self.beta)

    def held_out(self, data: StandardData, rows: IntArray) -> tuple[float, float]:
        """Return `l_all - l_train` with the given scored rows, and a bound on its error."""
        if data.dataset is not self.dataset:  # rows outside of the data of the fit
            both = self.dataset.join_rows(data.dataset.take(rows))
            joined = replace(self, dataset=both, sets=risk_sets_of(both, self.rows))
            return joined.held_out(replace(data, dataset=both), np.arange(self.dataset.n, both.n))
        every = risk_sets_of(data.dataset, np.union1d(self.rows, rows))
        X = _centred_rows(data, every, self.support)
        blurred = _bound_exponents(X, self.beta)
        eta = X @ self.beta.astype(LONG)
        here, there = PartialLikelihood(every, eta), PartialLikelihood(self.sets, eta)
        total = float(here.value_and_size[0] - there.value_and_size[0])
        error = _bound_rounding(here, blurred) + _bound_rounding(there, blurred) + 2.0 * ROUNDING * abs(total)
        if not len(self.beta):
            return total, error
        if not (np.isfinite(self.radius) and np.isfinite(total)):
            return total, np.inf
        slope = (here.gradient(X) - there.gradient(X)).astype(np.float64)
        noise = _bound_gradient_rounding(here, X, blurred) + _bound_gradient_rounding(there, X, blurred)
        steepest = float(np.linalg.norm(self.inverse @ slope) + np.linalg.norm(self.inverse, axis=0) @ noise)
        reach = self.radius * float(np.linalg.norm(X.astype(np.float64) @ self.inverse.T, axis=1).max(initial=0.0))
        error += self.radius * steepest + 0.5 * (every.total + self.sets.total) * reach * reach
        return total, error * (1.0 + TIE_RTOL)


def _centred_rows(data: StandardData, sets: RiskSets, support: IntArray) -> LongArray:
    """Return (n, s) columns of a support about their means over the rows at risk; 0 in rows that are in no risk set.

    Only differences of rows count, so any centre is valid.
    """
    V = np.zeros((data.n, len(support)), dtype=LONG)
    inside = np.flatnonzero(sets.weight > 0.0)
    columns = data.dataset.X[np.ix_(inside, data.columns[support])].astype(LONG)
    if len(inside):
        columns -= columns.mean(axis=0).astype(np.float64)
    V[inside] = columns / data.divisor[support].astype(LONG)
    return V


def _bound_exponents(X: LongArray, beta: FloatArray) -> FloatArray:
    """Return (n,) bounds on the rounding errors of exponents, those of the columns included."""
    return np.asarray((X.shape[1] + 3) * FINE * (np.abs(X).astype(np.float64) @ np.abs(beta)))


def _bound_relative(at: PartialLikelihood) -> float:
    """Return a bound on the relative rounding error of the sums over risk sets."""
    eta = at.eta[at.sets.weight > 0.0]
    return FINE * (at.sets.depth + (float(np.ptp(eta)) if len(eta) else 0.0) + 8.0)


def _bound_rounding(at: PartialLikelihood, blurred: FloatArray) -> float:
    """Return a bound on the rounding error of l, given errors of the exponents."""
    value, size = at.value_and_size
    error = 2.02 * float(blurred.max(initial=0.0)) + _bound_relative(at)
    terms = FINE * (len(at.block) + len(at.eta)) * size + 2.0 * ROUNDING * size  # means of weights are in double
    return float(at.moved.sum()) * error + terms + ROUNDING * abs(float(value))


def _bound_gradient_rounding(at: PartialLikelihood, X: LongArray, blurred: FloatArray) -> FloatArray:
    """Return (k,) bounds on the rounding errors of the gradient of l, given errors of the exponents."""
    relative = 4.0 * _bound_relative(at) + 2.2 * float(blurred.max(initial=0.0)) + FINE * (len(X) + 8)
    relative += 2.0 * ROUNDING  # means of weights are in double precision
    pulls = sum(at.pulls()).astype(np.float64)  # type: ignore[union-attr]
    return np.asarray(relative * (np.abs(X).astype(np.float64).T @ pulls))


def refit_cox(data: StandardData, rows: IntArray | slice, support: IntArray, gamma: float) -> CoxRowFit:
    """Return the fit of a support to training rows, with certified errors.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    rows : int array or slice
        Training rows.
    support : (s,) int array
        Columns of the support.
    gamma : float
        Ridge weight.

    Notes
    -----
    Some six steps of O(n s^2) in long precision.
    """
    support, every = np.asarray(support, dtype=np.int64), np.arange(data.n)[rows]
    sets = risk_sets_of(data.dataset, every)
    X = _centred_rows(data, sets, support)
    penalty = 0.5 * gamma * data.weight_of(rows)[support]
    beta, at = minimise(sets, X, penalty)
    finite = np.isfinite(at.radius)
    spread = at.radius * np.linalg.norm(at.inverse, axis=0) if finite else np.full(len(beta), np.inf)
    return CoxRowFit(
        support=support, beta=beta, spread=spread, objective=at.value, objective_error=at.value_off + at.drop,
        v_mean=np.zeros(len(support)), sets=sets, rows=every, inverse=at.inverse, radius=at.radius,
        dataset=data.dataset,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ProvedPoint:
    """F at a point: its value with a bound on the rounding, and a ball about the point that contains the minimum.

    Attributes
    ----------
    value, value_off : float
        Value, and a bound on its rounding error.
    inverse : (k, k) array
        Inverse of the lower Cholesky factor of the Hessian.
    step : (k,) array
        Newton step.
    decrement : float
        Length of the gradient in the norm of the inverse Hessian.
    radius, drop : float
        Radius of the ball in the norm of the Hessian, and a bound on the fall from the value to the minimum.
    """

    value: float
    value_off: float
    inverse: FloatArray
    step: FloatArray
    decrement: float
    radius: float
    drop: float


def look_at_point(sets: RiskSets, X: LongArray, penalty: FloatArray, beta: FloatArray) -> ProvedPoint:
    """Return F about a point, with bounds on all rounding errors.

    Parameters
    ----------
    sets : RiskSets
        Risk sets.
    X : (n, k) array
        Columns, with a relative error of one rounding.
    penalty, beta : (k,) arrays
        Ridge, and the point.
    """
    k, fine = len(beta), beta.astype(LONG)
    at, blurred = PartialLikelihood(sets, X @ fine), _bound_exponents(X, beta)
    value = float(at.value_and_size[0] + penalty @ fine**2)
    value_off = _bound_rounding(at, blurred) + 2.0 * ROUNDING * abs(value)
    reach = np.inf if k else 0.0
    unknown = ProvedPoint(value, value_off, np.zeros((k, k)), np.zeros(k), reach, reach, value if k else 0.0)
    if not k or not np.isfinite(value):
        return unknown
    H, moments = at.hessian(X)
    H[np.diag_indices(k)] += 2.0 * penalty
    unit = np.sqrt(np.maximum(np.diag(H), 0).astype(np.float64))
    try:
        inverse = np.linalg.inv(np.linalg.cholesky((H / unit[:, None] / unit).astype(np.float64))) / unit
    except np.linalg.LinAlgError:
        return unknown
    if not np.isfinite(inverse).all():
        return unknown
    g = (at.gradient(X) + 2.0 * penalty * fine).astype(np.float64)
    noise = _bound_gradient_rounding(at, X, blurred) + 8.0 * FINE * penalty * np.abs(beta) + ROUNDING * np.abs(g)
    trace = float(((moments + 2.0 * penalty) / unit**2) @ np.square(inverse * unit).sum(axis=0))
    relative = 4.0 * _bound_relative(at) + 4.4 * float(blurred.max(initial=0.0)) + FINE * (len(X) + 8)
    doubt = k * (5.0 * relative + (2 * k + 40) * ROUNDING) * trace
    along = inverse @ g
    decrement, rounded = float(np.linalg.norm(along)), float(np.linalg.norm(inverse, axis=0) @ noise)
    turned = np.linalg.norm(X[sets.weight > 0.0].astype(np.float64) @ inverse.T, axis=1)
    longest, delta = float(turned.max(initial=0.0)) * (1.0 + doubt), (decrement + rounded) * (1.0 + doubt) ** 2
    radius, drop = bound_distance(delta, longest, doubt)
    return ProvedPoint(
        value, value_off, inverse, -inverse.T @ along, decrement, radius, drop if drop < np.inf else value
    )


def bound_distance(delta: float, longest: float, doubt: float) -> tuple[float, float]:
    """Return the radius of a ball that contains the minimum, and a bound on the fall to it; inf if none is proved.

    Parameters
    ----------
    delta : float
        Length of the gradient in the norm of the inverse Hessian.
    longest : float
        Largest length of a row in that norm.
    doubt : float
        Relative rounding error of the Hessian.
    """
    rho = 2.0 * delta
    for _ in range(RADII_TRIED if doubt <= MAX_DOUBT else 0):
        kappa = float(worst_ratio(np.array([2.0 * rho * longest]))[0]) * (1.0 - 2.0 * doubt)
        if rho * kappa >= 2.0 * delta:
            return rho, delta * delta / (2.0 * kappa) * (1.0 + TIE_RTOL)
        rho *= 1.2
    return np.inf, np.inf


def minimise(sets: RiskSets, X: LongArray, penalty: FloatArray) -> tuple[FloatArray, ProvedPoint]:
    """Return the minimiser of F by Newton's method with step halving, and F about it.

    Parameters
    ----------
    sets, X, penalty
        Arguments as for `look_at_point`.
    """
    beta = np.zeros(len(penalty))
    at, last = look_at_point(sets, X, penalty, beta), np.inf
    for _ in range(NEWTON_STEPS if len(beta) else 0):
        square, size = at.decrement**2, 1.0
        if (
            not np.isfinite(square)
            or square <= FIT_DECREMENT * at.value
            or last / 2.0 < square < ROUNDED_DECREMENT * at.value
        ):
            break
        for _ in range(HALVINGS):
            ahead = beta + size * at.step
            value = float(_value(sets, X, penalty, ahead))
            settled = square < 1e-9 * at.value and value <= at.value * (1.0 + 1e-13) + at.value_off
            if settled or value <= at.value - 1e-4 * size * square:
                break
            size /= 2.0
        else:
            break
        there = look_at_point(sets, X, penalty, ahead)
        if not np.isfinite(there.decrement):
            break
        beta, at, last = ahead, there, square
    return beta, at


def _value(sets: RiskSets, X: LongArray, penalty: FloatArray, beta: FloatArray) -> np.longdouble:
    fine = beta.astype(LONG)
    return LONG(PartialLikelihood(sets, X @ fine).value_and_size[0] + penalty @ fine**2)


def check_cox_optimum_exists(data: StandardData, folds: FoldPlan | None = None) -> None:
    """Raise `BadInput` if the coefficients of adjustment columns have no optimum, as when a column orders all events.

    Parameters
    ----------
    data : StandardData
        Data with adjustment columns.
    folds : FoldPlan, optional
        Folds whose training rows are checked too; None checks all rows only.
    """
    parts: list[tuple[IntArray | slice, str]] = [(slice(0, data.n), "all rows")]
    for fold in range(0 if folds is None else folds.k):
        assert folds is not None
        parts.append((folds.train_rows(fold), f"the training rows of fold {fold + 1} of {folds.k}"))
    for rows, where in parts:
        with np.errstate(over="ignore", invalid="ignore"):  # of coefficients that diverge
            fit = refit_cox(data, rows, data.adjusting, 1.0)
        if not np.isfinite(fit.radius):
            names = abbreviate_list([repr(data.names[j]) for j in data.adjusting.tolist()])
            raise BadInput(
                f"adjust: on {where}, the coefficients of {names} have no finite fit, as when a column orders all "
                "events; leave a column out, or force it in instead (with a penalty)"
            )


def explain_infinite_fits(dataset: Dataset, loss: Loss) -> str:
    """Return why fits without a ridge penalty may have no finite coefficients.

    Parameters
    ----------
    dataset : Dataset
        Data in the form of the loss.
    loss : Loss
        Logistic, Poisson or Cox loss.
    """
    if not loss.target.has_times:
        return f"the likelihood has no maximum if columns separate {loss.target.separated}"
    assert dataset.survival is not None
    names = find_ordering_columns(dataset.survival, dataset.y, dict(zip(dataset.names, dataset.X.T, strict=True)))
    which = f", as {abbreviate_list(list(map(repr, names)))}" if names else ""
    return f"the partial likelihood has no maximum if a combination of columns orders all events{which}"


def partial_loss(dataset: Dataset, predictors: FloatArray, rows: IntArray | slice = slice(None)) -> float:
    """Return the negative log partial likelihood of some rows at log hazard ratios of all rows.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    predictors : (n,) array
        Log hazard ratios.
    rows : int array or slice
        Rows; all by default.
    """
    return PartialLikelihood(risk_sets_of(dataset, rows), predictors.astype(LONG)).value


def score_statistics(data: StandardData, rows: IntArray | slice) -> FloatArray:
    """Return the (q,) score statistics of single columns at the model without features, without bounds on rounding.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    rows : int array or slice
        Rows.
    """
    sets = risk_sets_of(data.dataset, rows)
    X = _centred_rows(data, sets, np.arange(data.q)).astype(np.float64)
    at = PartialLikelihood(sets, np.zeros(data.n, dtype=LONG))
    weights = at.row_weights().astype(np.float64)
    means = at.means(X.astype(np.float64))
    spread = weights @ X**2 - at.omega @ means**2
    slope = (weights - sets.event_weight) @ X
    return np.asarray(slope**2 / np.maximum(spread, np.finfo(float).tiny), dtype=np.float64)

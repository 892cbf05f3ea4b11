"""Fits with logistic or Poisson loss for `verify`, and proofs by branch and bound that a support is optimal.

All computations use `problem.glm_objective`, which defines the objective of these fits. A support is optimal if no
other support of its size has a smaller objective. The proof uses one rule: additional columns never raise the minimum
objective. Therefore no subset of a set of columns has a smaller minimum objective than the whole set. Branching starts
from all columns and removes or includes one column at a time. Branching ends when the objective of every remaining set
is above the objective of the support. The number of fits is limited (`MOST_FITS`), so the proof succeeds for few
features only.

With bounds on coefficients, fits are within the bounds. The rule then holds if the intervals of the columns that
branching may still remove are extended to 0. In the fit on a set of columns, many coefficients may be at a bound of 0.
If the other columns of the set form a support S, no support in the set has a smaller objective than S, and all supports
in the set that contain S have the same fit. Branching continues with the sets that lack a column of S.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS
from sparsecv_mio.certificate.design import Design, FoldOptima, HeldOut, Pair, RowLosses, Support, Tell
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem import glm_objective
from sparsecv_mio.problem.glm_objective import GlmModel, encode_all_targets
from sparsecv_mio.units import (
    CROSSING_RTOL,
    FOLLOWS_RTOL,
    LOSS_ROUNDING,
    LOSS_SLACK,
    MARGINS_OFF,
    NEWTON_RTOL,
    ROUNDING,
    TINY,
)

NARROW = 1e-6  # relative width of a loss interval, above which another step is taken
MAX_NEWTON_STEPS_OF_ROW, MOST_MOVED = 8, 1.0  # maximum number of steps, and maximum move of a predictor
SLOPE_ROUNDING = 64.0 * ROUNDING  # rounding of a gradient, relative to the terms of its sum
SAME_OBJECTIVE = 4.0 * ROUNDING  # relative difference below which objectives are equal
MANY_ALONE = 200  # single-row folds; fewer folds are fitted one by one, a few ms each
UNEVEN = 2  # multiple of its share of fits that the first fold may use
EXACT_DEVIANCE = 1e-26  # half deviance of a fit through all counts, per row and count: rates are right to 1e-13
FitKey = tuple[Support, float, bytes, Support]  # support, gamma, a digest of the rows, columns extended to 0


class SingleRows(NamedTuple):
    """Held-out results of (m,) single rows: bounds on weighted losses, approximate losses, and predictors.

    If nothing is known, the bounds are 0 and inf and the other values nan.
    """

    lower: FloatArray
    upper: FloatArray
    losses: FloatArray
    predictors: FloatArray

    def wide(self) -> BoolArray:
        """Return an (m,) mask of intervals wider than NARROW or unknown."""
        return ~(np.isfinite(self.upper) & (self.upper - self.lower <= NARROW * self.upper))


class LeftOutAlone:
    """Fits without one row each, by Newton steps from the full-data fit.

    Parameters
    ----------
    model : GlmModel
        Full-data fit.
    dataset : Dataset
        Data set.
    """

    def __init__(self, model: GlmModel, dataset: Dataset) -> None:
        self.loss, self.theta, self.penalty = model.loss, model.theta, model.penalty
        self.y, self.w = encode_all_targets(dataset, self.loss)
        self.Z, self.signs = model.rows(dataset.X), self.loss.signs(self.y)
        margins = self.signs * (self.Z @ self.theta)
        self.curved = self.loss.curvatures(margins, self.y, self.w)
        H = (self.Z * self.curved[:, None]).T @ self.Z + 2.0 * np.diag(self.penalty)
        unit = np.sqrt(np.diag(H))
        factor = np.linalg.cholesky(H / unit[:, None] / unit)
        self.back = np.linalg.solve(factor, np.diag(1.0 / unit))  # L^{-1}
        self.T = self.Z @ self.back.T
        self.length = np.linalg.norm(self.T, axis=1)
        self.longest = float(self.length.max(initial=0.0))
        self.gradient = self._gradient(margins[:, None], self.theta[:, None])[:, 0]
        self.falls = self.signs * self.loss.negative_gradient(margins, self.y, self.w)

    def _gradient(self, margins: FloatArray, points: FloatArray) -> FloatArray:
        """(k, B) gradients of all rows at points, with their (n, B) margins, in the coordinates of L."""
        falls = self.loss.negative_gradient(margins, self.y[:, None], (self.w * self.signs)[:, None])
        return np.asarray(self.back @ (2.0 * self.penalty[:, None] * points - self.Z.T @ falls))

    @np.errstate(over="ignore", invalid="ignore")  # for rows without a result
    def held_out(self, rows: IntArray, tell: Callable[[int], None] = lambda done: None) -> SingleRows:
        """Return the held-out results of some rows.

        Parameters
        ----------
        rows : (m,) int array
            Rows.
        tell : callable
            Function that is called with the number of finished rows.
        """
        first, step, done = self._take_first_step(rows), max(CHUNK_ELEMENTS // max(len(self.y), 1), 1), len(rows)
        wide = np.flatnonzero(first.wide() & np.isfinite(self._smallest_eigenvalues(rows)))
        for begin in range(0, len(wide), step):
            here = wide[begin : begin + step]
            tell(done - len(wide) + begin)
            for values, more in zip(first, self._further(rows[here]), strict=True):
                values[here] = more
        return first

    def rises(self, rows: IntArray, found: SingleRows, off: float) -> FloatArray:
        """Return (m,) errors of losses due to an error `off` of the predictors."""
        y = self.y[rows]
        return self.w[rows] * self.loss.rises(self.loss.signs(y) * found.predictors, y, np.full(len(y), off))

    def _solve_without_rows(self, rows: IntArray, u: FloatArray) -> FloatArray:
        """Return (m, k) `(I - c t t')^{-1} u` of every row."""
        t, eigenvalue = self.T[rows], self._smallest_eigenvalues(rows)
        return np.asarray(u + (self.curved[rows] * (t * u).sum(axis=1) / eigenvalue)[:, None] * t)

    def _smallest_eigenvalues(self, rows: IntArray) -> FloatArray:
        """Return (m,) smallest eigenvalues of the Hessians without rows; nan if rounding hides them."""
        eigenvalue = 1.0 - self.curved[rows] * self.length[rows] ** 2
        return np.where(eigenvalue > 1e-6, eigenvalue, np.nan)

    def _take_first_step(self, rows: IntArray) -> SingleRows:
        d = -self._solve_without_rows(rows, self.gradient + self.falls[rows, None] * self.T[rows])
        size = np.linalg.norm(d, axis=1)
        moved = self.longest * size
        delta = 0.5 * np.exp(moved) * self.longest * size**2 / np.sqrt(self._smallest_eigenvalues(rows))
        return self._ends(rows, d, delta, moved)

    def _further(self, rows: IntArray) -> SingleRows:
        """Return results after further steps, whose gradients are computed from all rows."""
        own = np.arange(len(rows))
        d = -self._solve_without_rows(rows, self.gradient + self.falls[rows, None] * self.T[rows])
        for _ in range(MAX_NEWTON_STEPS_OF_ROW):
            points = self.theta[:, None] + self.back.T @ d.T
            margins = self.signs[:, None] * (self.Z @ points)
            falls = self.signs[rows] * self.loss.negative_gradient(margins[rows, own], self.y[rows], self.w[rows])
            u = self._gradient(margins, points).T + falls[:, None] * self.T[rows]
            step = self._solve_without_rows(rows, u)
            delta = np.sqrt(np.maximum((step * u).sum(axis=1), 0.0))
            results = self._ends(rows, d, delta, self.longest * np.linalg.norm(d, axis=1))
            if not results.wide().any():
                break
            d = d - step
        return results

    def _ends(self, rows: IntArray, d: FloatArray, delta: FloatArray, moved: FloatArray) -> SingleRows:
        """Return bounds on the losses of rows whose gradient is at most delta in the norm of the inverse Hessian."""
        grown = 1.0 / np.sqrt(self._smallest_eigenvalues(rows))
        rho = delta * np.exp(moved)
        for _ in range(60):
            rho = delta * np.exp(moved + rho * self.longest * grown) * (1.0 + 1e-6)
        is_known = (moved + rho * self.longest * grown <= MOST_MOVED) & (
            delta * np.exp(moved + rho * self.longest * grown) <= rho
        )
        half = rho * self.length[rows] * grown
        predictors, y, w = self.Z[rows] @ self.theta + (self.T[rows] * d).sum(axis=1), self.y[rows], self.w[rows]
        predictors = np.where(is_known, predictors, np.nan)
        low, high = self.loss.bound_losses(predictors - half, predictors + half, y)
        near = w * self.loss.losses(self.loss.signs(y) * predictors, y)
        return SingleRows(np.where(is_known, w * low, 0.0), np.where(is_known, w * high, np.inf), near, predictors)


class TooManyFits(Exception):
    """The comparison of supports takes more fits than allowed."""


@dataclass(eq=False)
class FitStore:
    """Fits made so far, exact ones and those near the minimum, and the results that follow from them.

    Attributes
    ----------
    count : int
        Number of different fits.
    optima : dict
        Optima of the folds of pairs.
    doubt : float
        Largest rounding error of the sum of the losses of all rows under one fit.
    tell : callable
        Function that branching calls with the numbers of its fits and of the fits allowed.
    """

    exact: dict[FitKey, GlmModel] = field(default_factory=dict)
    rough: dict[FitKey, GlmModel] = field(default_factory=dict)
    count: int = 0
    optima: dict[Pair, FoldOptima] = field(default_factory=dict)
    doubt: float = 0.0
    tell: Tell = lambda done, total: None


@dataclass(frozen=True, eq=False)
class GlmDesign(Design):
    """Columns of a data set, and fits with logistic or Poisson loss.

    Attributes
    ----------
    advice : str
        Alternatives to a verification that takes too many fits.
    store : FitStore
        Fits made so far.
    """

    advice: str = ""
    store: FitStore = field(default_factory=FitStore, repr=False)

    how = "branching over"
    proved_rtol = 2.0 * LOSS_SLACK
    tie_rtol = 0.0
    bounds_ties = False

    @property
    def error_name(self) -> str:
        """Name of a held-out loss."""
        return self.loss.target.row_loss

    @property
    def n_fits(self) -> int:
        """Number of fits that branching has made."""
        return self.store.count

    @property
    def limit_words(self) -> str:
        """Reason that verifying optimality takes too many fits."""
        return f"the verification takes more than {MOST_FITS:,} fits; {self.advice}"

    @property
    def has_rough_fits(self) -> bool:
        """True if a fit near the minimum takes less time: only with an intercept do quick steps end there."""
        return self.intercept != "none"

    # -- fits of one support ----------------------------------------------------------------------------------------

    def refit(
        self, support: Sequence[int] | IntArray, gamma: float, rows: IntArray | None = None, near: bool = False,
        start: GlmModel | None = None, extended: Sequence[int] = (),
    ) -> GlmModel:  # fmt: skip
        """Return the fit of a support to some rows or to all rows; `store.count` counts each fit once.

        With `near`, a point near the minimum is enough, from which `_lower_bound` gives a bound. `start` is a
        model of these rows. The intervals of the columns `extended` are extended to 0.
        """
        digest = b"" if rows is None else blake2b(rows.tobytes()).digest()
        key = tuple(map(int, support)), gamma, digest, tuple(extended)
        exact_models, rough = self.store.exact, self.store.rough
        if key in exact_models or (near and key in rough):
            return exact_models.get(key) or rough[key]
        self.store.count += key not in rough
        models = rough if near and self.has_rough_fits else exact_models
        if len(models) == MOST_FITS:  # a few kilobytes for each fit
            models.clear()
        columns = self.columns[list(key[0])].tolist()
        models[key] = glm_objective.fit_of_data(
            self.dataset, self.loss, columns, self.ridge_weights(columns, gamma, rows), scale=self.scale,
            intercept=self.intercept, rows=rows, near=near, start=rough.get(key, start),
            ends=self._ends(key[0], extended),
        )  # fmt: skip
        return models[key]

    @property
    def has_bounds(self) -> bool:
        """True if coefficients have bounds, or signs."""
        return self.allowed is not None and bool(self.allowed.asked.bounds)

    def _ends(self, support: Sequence[int], extended: Sequence[int]) -> FloatArray | None:
        """Return the (2, s) bounds on the coefficients of a support; None if there are none."""
        if self.allowed is None or not self.has_bounds:
            return None
        low, high = self.allowed.ends[:, list(support)]
        is_open = np.isin(support, extended)
        return np.array([np.where(is_open, np.minimum(low, 0.0), low), np.where(is_open, np.maximum(high, 0.0), high)])

    def _excludes_zero(self, j: int) -> bool:
        """Return True if the bounds of a column exclude 0."""
        return self.allowed is not None and not self.allowed.ends[0, j] <= 0.0 <= self.allowed.ends[1, j]

    @cached_property
    def _terms(self) -> dict[int, frozenset[int]]:
        """Columns that enter with each column, itself included."""
        terms = () if self.allowed is None else self.allowed.terms
        own = {j: frozenset([j]) for j in range(self.q)}
        return own | {j: frozenset(term.columns) for term in terms for j in term.columns}

    def held_out(self, model: GlmModel, rows: IntArray, dataset: Dataset | None = None) -> tuple[float, float]:
        """Return the loss of some rows, and a bound on its rounding error; see `Design`."""
        loss, doubt = model.held_out(dataset or self.dataset, rows, MARGINS_OFF)
        return loss, CROSSING_RTOL * loss + doubt + TINY

    def coefficient_rooms(self, support: Support, gamma: float, model: GlmModel) -> FloatArray:
        """Return (s,) tolerances for coefficients: some may be 0, and differ by the rounding of gradients. O(n s)."""
        y, v = glm_objective.encode_all_targets(self.dataset, model.loss)
        margins = model.loss.signs(y) * model.predictors(self.dataset.X)
        slope = SLOPE_ROUNDING * float(np.sum(model.loss.gradient_scale(margins, y, v)))
        rounding = slope * np.abs(model.inverse).sum(axis=1)[len(model.theta) - len(model.support) :]
        return np.asarray((FOLLOWS_RTOL * self._largest_effect(model) + rounding) / model.unit)

    def _largest_effect(self, model: GlmModel) -> float:
        return float(np.abs(model.beta * model.unit).max(initial=0.0))

    def expected_intercept(self, model: GlmModel, beta: FloatArray, rooms: FloatArray) -> tuple[float, float]:
        """Return the intercept of a full-data fit, and its tolerance."""
        offset = float(np.abs(model.center) @ np.abs(model.beta))
        return model.intercept, FOLLOWS_RTOL * (1.0 + abs(model.intercept) + offset + self._largest_effect(model))

    # -- rounding ---------------------------------------------------------------------------------------------------

    def rounding(self, model: GlmModel) -> float:
        """Return the rounding error of an objective; it is larger for columns far from 0 relative to their spread."""
        level = np.abs(self.dataset.X[:, list(model.support)].mean(axis=0))
        offset = float(level @ np.abs(model.beta))
        return NEWTON_RTOL * model.objective + LOSS_ROUNDING * self.total_weight * offset + TINY

    def cancelled(self, model: GlmModel) -> float:
        """Return the rounding error of an objective that is due to numbers that cancel: none in sums of losses."""
        return 0.0

    def _lower_bound(self, model: GlmModel) -> float:
        """Return a lower bound on the minimum objective of a support, from a nearby model and its decrement."""
        return model.objective - model.decrement**2 - self.cancelled(model)

    def objective_slack(self, objective: float) -> float:
        """Return a bound on the rounding error of the objective of a listed support."""
        return CROSSING_RTOL * objective

    def slack(self, h: float, gamma: float, tau: int, relative: float) -> float:
        """Return a bound on the rounding error of a mean held-out loss of a search."""
        return relative * h

    def refit_slack(self, h: float) -> float:
        """Return a bound on the rounding error of a mean held-out loss of refits."""
        return CROSSING_RTOL * h

    # -- branching --------------------------------------------------------------------------------------------------

    def best(self, gamma: float, tau: int, rows: IntArray | None, start: Support, most: int) -> list[Support] | None:
        """Return all optimal supports of at most tau features; None if this takes too many fits."""
        if most <= 0:
            return None
        if self.allowed is None:
            start = start[: self.most_columns(tau)]
        elif not self.allowed.allows(start) or self.count(start) > tau:
            start = self.forced
        tried = [self.refit(tuple(sorted(start)), gamma, rows, near=True)]

        def tie_threshold(models: list[GlmModel] = tried) -> float:
            least = min(models, key=lambda model: model.objective)
            return least.objective * (1.0 + NEWTON_RTOL) + self.cancelled(least) + TINY

        try:
            for leaf in self.leaves(gamma, tau, rows, tie_threshold, most):
                tried.append(leaf)
        except TooManyFits:
            return None
        few = {self.places(model) for model in tried if self._lower_bound(model) <= tie_threshold()}
        exact = [self.refit(support, gamma, rows) for support in few]
        level = tie_threshold(exact)
        return sorted(self.places(model) for model in exact if model.objective - self.cancelled(model) <= level)

    def leaves(
        self, gamma: float, tau: int, rows: IntArray | None, level: Callable[[], float], most: int
    ) -> Iterator[GlmModel]:
        """Yield models near the minimum objective of their supports, of tau features or all available ones.

        All supports with an objective up to a level are among them.

        Raises
        ------
        TooManyFits
            If more than `most` fits are needed.
        """
        enough, size = self.store.count + most, min(tau, self.terms)
        waiting: list[tuple[frozenset[int], frozenset[int], GlmModel | None]] = [
            (frozenset(self.forced), frozenset(), None)
        ]
        while waiting:
            if self.store.count > enough:
                raise TooManyFits
            self.store.tell(self.store.count - enough + most, most)
            inside, outside, above = waiting.pop()
            available = tuple(j for j in range(self.q) if j not in outside)
            is_full = self.count(tuple(inside)) >= size
            support = tuple(sorted(inside)) if is_full else available
            apart = [j for j in support if j not in inside and self._excludes_zero(j)]
            whole = self.refit(support, gamma, rows, near=True, start=above, extended=apart)
            if self._lower_bound(whole) > level():
                continue
            if is_full or (self.count(available) <= size and not apart):
                yield whole
                continue
            effect = dict(zip(available, np.abs(whole.beta * whole.unit).tolist(), strict=True))
            active = self._active_columns(inside, effect)
            if not apart and self.count(tuple(active)) <= size:
                yield self.refit(tuple(sorted(active)), gamma, rows, near=True, start=whole)
                while more := sorted(active - inside):
                    waiting.append((inside, outside | self._terms[more[0]], whole))
                    inside = inside | self._terms[more[0]]
                continue
            free = apart if self.count(available) <= size else [j for j in available if j not in inside]
            term = self._terms[max(free, key=effect.__getitem__)]
            waiting += [(inside | term, outside, whole), (inside, outside | term, whole)]

    def _active_columns(self, inside: frozenset[int], effect: Mapping[int, float]) -> frozenset[int]:
        """Return the columns of a fit that no bound of 0 holds at 0, and those that are included."""
        return inside.union(*(self._terms[j] for j, size in effect.items() if size > 0.0 or not self.has_bounds))

    def full_data_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return no reason, since the number of fits is not known in advance."""
        return ""

    def best_fit(self, gamma: float, tau: int, start: Support = (), most: int | None = None) -> GlmModel | None:
        """Return the full-data fit with the minimum objective; see `Design`."""
        best = self.best(gamma, tau, None, start, MOST_FITS if most is None else most)
        return None if best is None else self.refit(best[0], gamma, None)

    def optima_obstacle(
        self, pairs: Sequence[Pair], reported: Mapping[Pair, list[Support]], start: Support, tell: Tell,
        of_grid: bool = False,
    ) -> str:  # fmt: skip
        """Compute the optima of some pairs, fold by fold; return a reason if this takes too many fits.

        The limit for the first fold is low, because the number of its fits predicts the numbers of the other folds.
        """
        begun, k = self.store.count, self.folds.k
        optima: dict[Pair, list[list[Support]]] = {pair: [] for pair in pairs if pair not in self.store.optima}
        for fold in range(k if optima else 0):
            tell(fold, k)
            most = MOST_FITS if fold else min(UNEVEN * MOST_FITS // k, MOST_FITS)
            for (gamma, tau), of_folds in optima.items():
                reported_loss = reported.get((gamma, tau))
                first = start if reported_loss is None else reported_loss[fold]
                fits_left = most - (self.store.count - begun)
                best = self.best(gamma, tau, self.folds.train_rows(fold), first, fits_left)
                if best is None:
                    return self.limit_words
                of_folds.append(best)
        for pair, of_folds in optima.items():
            self.store.optima[pair] = self._describe_optima(pair[0], of_folds)
        return ""

    def fold_optima(self, gamma: float, tau: int) -> FoldOptima:
        """Return the optima of a pair, which `optima_obstacle` has computed."""
        return self.store.optima[gamma, tau]

    def _describe_optima(self, gamma: float, best: list[list[Support]]) -> FoldOptima:
        low, high = np.zeros((2, self.folds.k))
        for fold, supports in enumerate(best):
            train, scored = self.folds.train_rows(fold), self.folds.scored_rows(fold)
            losses = [self.held_out(self.refit(support, gamma, train), scored) for support in supports]
            ends = [(loss - off, loss + off) if np.isfinite(loss + off) else (0.0, np.inf) for loss, off in losses]
            low[fold], high[fold] = min(lower for lower, _ in ends), max(upper for _, upper in ends)
        return FoldOptima(high, low, low, high, best)

    def refit_rounding(self, objective: float, train: IntArray | None = None) -> float:
        """Return a bound on the rounding error of the objective of a refit; see `Design`."""
        rows, noise = slice(0, self.dataset.n) if train is None else train, TINY
        if self.dataset.counts:
            noise = EXACT_DEVIANCE * self.dataset.weight_of(rows) * float(self.dataset.y[rows].max())
        return 2.0 * NEWTON_RTOL * objective + noise

    # -- held-out losses --------------------------------------------------------------------------------------------

    def held_out_losses(self, supports: Sequence[Support], gamma: float, tau: int, tell: Tell) -> HeldOut:
        """Fit the support of every fold, or use Newton steps for many single-row folds; see `Design`.

        Rows whose loss these steps do not determine are fitted like others.
        """
        plan = self.folds
        losses, room, wide = np.full(plan.k, np.nan), np.zeros(plan.k), np.zeros(plan.k)
        predictors = np.full(plan.scored, np.nan)
        has_single_rows = plan.k >= MANY_ALONE and np.all(plan.sizes == 1) and np.all(plan.left_sizes == 1)
        alone = bool(has_single_rows) and not self.has_bounds
        for support in sorted(set(supports)) if alone else ():
            folds = np.array([fold for fold, fold_support in enumerate(supports) if fold_support == support])
            rows, begun = plan.order[folds], plan.k - int(np.isnan(losses).sum())
            single, off = self._hold_out_singly(support, gamma, rows, partial(_tell_after, tell, plan.k, begun))
            narrow = single.upper - single.lower <= NARROW * single.upper
            losses[folds], predictors[folds] = np.where(narrow, single.losses, np.nan), single.predictors
            wide[folds] = np.maximum(single.upper - single.losses, single.losses - single.lower)
            room[folds] = wide[folds] + off
        for fold in np.flatnonzero(np.isnan(losses)).tolist():
            tell(fold, plan.k)
            model, scored = self.refit(supports[fold], gamma, plan.train_rows(fold)), plan.scored_rows(fold)
            losses[fold], room[fold] = self.held_out(model, scored)
            predictors[plan.starts[fold] : plan.starts[fold + 1]] = model.predictors(self.dataset.X[scored])
            wide[fold] = 0.0
        mean_room = (2.0 * CROSSING_RTOL * float(losses.sum()) + float(wide.sum())) / self.scored.total + TINY
        return HeldOut(losses, losses - room, losses + room, mean_room, predictors=predictors)

    def _hold_out_singly(
        self, support: Support, gamma: float, rows: IntArray, tell: Callable[[int], None]
    ) -> tuple[SingleRows, FloatArray]:  # fmt: skip
        """Return the held-out results of a support for single rows, and the rounding errors of the losses.

        Values are nan if the Newton steps do not converge.
        """
        try:
            alone = LeftOutAlone(self.refit(support, gamma, None), self.dataset)
        except np.linalg.LinAlgError:
            return SingleRows(*np.full((4, len(rows)), np.nan)), np.zeros(len(rows))
        results = alone.held_out(rows, tell)
        return results, CROSSING_RTOL * results.losses + alone.rises(rows, results, MARGINS_OFF) + TINY

    def held_out_rows(self, supports: Sequence[Support], gamma: float, tau: int) -> RowLosses:
        """Return the held-out losses of rows; see `Design`."""
        total, off, weights = np.zeros(self.dataset.n), 0.0, self.dataset.row_weights
        for fold, support in enumerate(supports):
            rows, model = self.folds.scored_rows(fold), self.refit(support, gamma, self.folds.train_rows(fold))
            losses, doubt = model.compute_row_losses(self.dataset, rows, MARGINS_OFF)
            total[rows] += losses if weights is None else losses / weights[rows]
            off += float(doubt.sum())
        return RowLosses(total / np.maximum(self.times, 1), off / self.scored.total)

    # -- losses of all rows, for the instability --------------------------------------------------------------------

    def row_losses(self, support: Support, gamma: float, train: IntArray | None) -> FloatArray:
        """Return (n,) weighted losses; see `Design`."""
        model = self.refit(support, gamma, train)
        losses, doubt = model.compute_row_losses(self.dataset, slice(0, self.dataset.n))
        self.store.doubt = max(self.store.doubt, float(doubt.sum()))
        return losses

    def change_noise(self, losses: FloatArray, level: float) -> float:
        """Return a bound on the rounding of a mean change, from the errors of the fits of both models."""
        return 2.0 * self.store.doubt / self.total_weight + 1e-12 * float(losses.sum()) / self.total_weight

    def change_room(self, pair: Pair, largest: float) -> float:
        """Return a bound on the rounding allowed in an interval; see `Design`."""
        return 8.0 * self.store.doubt / self.total_weight + FOLLOWS_RTOL * largest

    def optimal_losses(
        self, fold: int | None, pair: Pair, start: Support
    ) -> tuple[list[FloatArray], list[FloatArray]] | None:
        """Return the losses of the optima; a search distinguishes fits that differ by more than its rounding."""
        train = None if fold is None else self.folds.train_rows(fold)
        best = self.best(*pair, train, start, MOST_FITS // (self.folds.k + 1))
        if best is None:
            return None
        values = [self.refit(support, pair[0], train).objective for support in best]
        losses = [self.row_losses(support, pair[0], train) for support in best]
        least = min(values) * (1.0 + SAME_OBJECTIVE)
        return [model for value, model in zip(values, losses, strict=True) if value <= least], losses


def _tell_after(tell: Tell, total: int, begun: int, done: int) -> None:
    tell(begun + done, total)

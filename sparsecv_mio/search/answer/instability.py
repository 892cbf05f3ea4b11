"""Bounds on the instability of every pair (tau, gamma), and the choice of a pair by CV error and instability.

If a fold is held out, the model changes, and so does the loss of every row (squared error or log loss). For each fold,
the absolute change of the loss is averaged over all rows. The instability of a pair is the largest of these means
(:mod:`sparsecv_mio.bounds.model_changes`). If the full-data model and the model of every fold are known, the
instability is known up to ties and rounding. Otherwise the module computes bounds on the instability. For a given
weight, the chosen pair has the smallest sum of the CV error and the weight times the instability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING
from sparsecv_mio.bounds.model_changes import (
    LossesOfRows,
    OpenFolds,
    Residuals,
    needs_own_centres,
    residual_distances,
)
from sparsecv_mio.certificate.parts import InstabilityRow, Stability, StableChoice, WeighedModel
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.problem.problem import gamma_to_lam
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.answer.answer_fits import make_answer_fits
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Pair, PairBounds, simplest
from sparsecv_mio.thresholds import QUICK_WORK
from sparsecv_mio.trees.subsets import MOST_REFITTED, BestSubset, BestSubsets
from sparsecv_mio.units import KEEP_RTOL, OUTWARD, TIE_RTOL
from sparsecv_mio.words import Intercept


@dataclass(frozen=True, eq=False)
class PairInstability:
    """Instability of one pair: `lower <= sum over rows of the worst change <= upper`, in standard units.

    Attributes
    ----------
    lower, upper : float
        Bounds over all optima, tied ones included.
    nominal : float
        Value at the known supports; inf if a fold has none.
    known : bool
        True if the best models are known in every fold and on the full data.
    fold : int
        Index of the fold with the largest change at the known supports.
    """

    lower: float
    upper: float
    nominal: float
    known: bool
    fold: int = 0


Known = dict[Pair, tuple[bytes, PairInstability]]
UNKNOWN = PairInstability(0.0, np.inf, np.inf, known=False)


def instability_cost(context: Context, tau: int) -> float:
    """Return the approximate number of floats that are read for the instability of one pair."""
    each = make_answer_fits(context.data).cost_without_rows
    return float(context.data.n) * context.folds.k * (context.data.choice.n_columns(tau) + 8.0) * each


class Instabilities:
    """Instabilities of the pairs of one search; each is computed again only after its subproblems have changed.

    Parameters
    ----------
    context : Context
        Data, grid and folds of the search.
    cells : CellTable
        Table of subproblems.
    known : dict, optional
        Instabilities that were computed before for the same search; new ones are added.
    """

    def __init__(self, context: Context, cells: CellTable, known: Known | None = None) -> None:
        self.context, self.cells, self.fits = context, cells, make_answer_fits(context.data)
        folds = context.folds
        self.left_out = [folds.left_out(fold) for fold in range(folds.k)]
        self._known: Known = {} if known is None else known
        self._tied: dict[tuple[int, bytes], list[IntArray]] = {}

    @property
    def mean_factor(self) -> float:
        """Factor from sums in standard units to weighted means over all rows in units of the file."""
        data = self.context.data
        return data.loss_unit / data.dataset.weight_of(slice(0, data.n))

    def pair_instability(self, g: int, t: int, subset: BestSubset) -> PairInstability:
        """Return the instability of a pair.

        Parameters
        ----------
        g, t : int
            Indices of gamma and tau.
        subset : BestSubset
            Best subset of the full data at the pair.
        """
        cells = self.cells
        key = b"".join(
            array[g, t].tobytes() for array in (cells.support, cells.decided, cells.lower, cells.upper, cells.value)
        ) + np.sort(subset.support).tobytes() + bytes([subset.complete])  # fmt: skip
        if self._known.get((g, t), (b"",))[0] != key:
            self._known[g, t] = key, self._compute(g, t, subset)
        return self._known[g, t][1]

    def _compute(self, g: int, t: int, subset: BestSubset) -> PairInstability:
        if not np.isfinite(self.cells.nominal[g, t]).all():
            return UNKNOWN
        context, cells = self.context, self.cells
        gamma = float(context.grid.gammas[g])
        tied = self._best_models(gamma, subset)
        complete = subset.complete and len(tied) <= MOST_REFITTED
        nothing = [np.zeros(0, dtype=np.int64)]
        full = [self.fits.fit_without_rows(support, gamma, nothing) for support in (tied if complete else tied[:1])]
        changes, doubt = self._changes(gamma, cells.support[g, t], full)
        worst = int(np.argmax(changes[0]))
        shown = float(changes[0, worst])
        ends = [(0.0, self._whatever(g, t, subset))]
        if complete:
            ends = [self._interval(g, t, *values) for values in zip(full, changes, doubt, strict=True)]
        complete_folds = complete and bool(cells.decided[g, t].all())
        complete_folds &= all(len(others) <= MOST_REFITTED for _, others in self._tied_folds(g, t))
        return PairInstability(min(low for low, _ in ends), max(high for _, high in ends), shown, complete_folds, worst)

    def _changes(self, gamma: float, numbers: IntArray, full: Sequence[LossesOfRows]) -> tuple[FloatArray, FloatArray]:
        """Return the (F, K) changes relative to each full-data model, and bounds on their rounding errors."""
        step = max(1, CHUNK_ELEMENTS // self.context.data.n)
        changes, doubt = np.empty((len(full), len(numbers))), np.empty((len(full), len(numbers)))
        for number in np.unique(numbers).tolist():
            folds, support = np.flatnonzero(numbers == number), self.cells.pool.supports[number]
            for which in (folds[at : at + step] for at in range(0, len(folds), step)):
                refitted = self.fits.fit_without_rows(support, gamma, [self.left_out[fold] for fold in which])
                for place, residuals in enumerate(full):
                    changes[place, which], doubt[place, which] = refitted.changes(residuals)
        return changes, doubt

    def _best_models(self, gamma: float, subset: BestSubset) -> list[IntArray]:
        """Return the full-data supports that are tied for the optimum, the reported one first."""
        listed = list(subset.candidates) if subset.complete else []
        if len(listed) < 2:
            return listed or [subset.support]
        key = (subset.tau, np.float64(gamma).tobytes())
        if key not in self._tied:
            data = self.context.data
            fits = [refit_rows(data, slice(0, data.n), support, gamma) for support in listed]
            best = min(fits, key=lambda fit: fit.objective)
            top = best.objective * (1.0 + TIE_RTOL) + best.objective_error
            tied = [fit for fit in fits if fit.objective - fit.objective_error <= top]
            self._tied[key] = [fit.support for fit in sorted(tied, key=lambda fit: fit.objective)]
        reported = np.sort(subset.support).tolist()
        return sorted(self._tied[key], key=lambda support: np.sort(support).tolist() != reported)

    def _interval(
        self, g: int, t: int, full: LossesOfRows, found: FloatArray, doubt: FloatArray
    ) -> tuple[float, float]:
        """Return bounds on the largest change: the computed changes of solved folds, and bounds of the others."""
        decided = self.cells.decided[g, t].copy()
        is_known, low, high = np.isfinite(doubt), np.zeros(len(found)), found + doubt
        low[is_known] = np.maximum(found[is_known] - doubt[is_known], 0.0)
        for fold, others in self._tied_folds(g, t):
            if len(others) > MOST_REFITTED:
                decided[fold] = False
                continue
            for number in others:
                gamma, rows = float(self.context.grid.gammas[g]), [self.left_out[fold]]
                rival = self.fits.fit_without_rows(self.cells.pool.supports[number], gamma, rows)
                change, rounding = (float(value[0]) for value in rival.changes(full))
                low[fold] = min(low[fold], max(change - rounding, 0.0))
                high[fold] = max(high[fold], change + rounding)
        open_folds = np.flatnonzero(~decided)
        if len(open_folds):
            below, above = self._open(g, t, full, open_folds).changes()
            low[open_folds], high[open_folds] = np.maximum(below - full.slip, 0.0), above + full.slip
        return float(low.max(initial=0.0)), float(high.max(initial=0.0))

    def _tied_folds(self, g: int, t: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return the solved folds of a pair with several optima, and the numbers of the optima that are not shown."""
        return [(where[2], others) for where, others in self.cells.others.items() if where[:2] == (g, t)]

    def _open(self, g: int, t: int, full: LossesOfRows, which: IntArray) -> OpenFolds:
        """Return the quantities that bound the changes of folds whose best model is not known."""
        cells, folds = self.cells, self.context.folds
        losses = full.losses
        training = np.array([losses.sum() - losses[self.left_out[fold]].sum() for fold in which])
        held_out = np.array([losses[folds.scored_rows(fold)].sum() for fold in which])
        value = self._values(g, t)[which]
        distances = self._distances(g, t, full, which, value) if isinstance(full, Residuals) else np.inf * value
        return OpenFolds(
            training, held_out, value, cells.lower[g, t, which], cells.upper[g, t, which], folds.sizes[which] == 1,
            folds.scores_all_left_out[which], distances,
        )  # fmt: skip

    def _values(self, g: int, t: int) -> FloatArray:
        """(K,): upper bounds on the training objective of every optimum of a fold, tied ones included."""
        return np.asarray(self.cells.value[g, t] * (1.0 + KEEP_RTOL) + ROWS_ROUNDING * self.fits.rounding_scale)

    def _distances(self, g: int, t: int, full: Residuals, which: IntArray, value: FloatArray) -> FloatArray:
        """Bound the distances between the residuals of the models with and without a fold, on its training rows."""
        data = self.context.data
        most = constraints_of(data).columns(int(self.context.grid.taus[t]))
        if float(data.n) * data.q * len(which) > QUICK_WORK or len(data.adjusting):
            return np.full(len(which), np.inf)
        V, r = data.rows(slice(0, data.n))
        trained = np.ones((data.n, len(which)))
        for place, fold in enumerate(which.tolist()):
            trained[self.left_out[fold], place] = 0.0
        residual, target = full.values * trained, r[:, None] * trained
        if data.intercept is Intercept.FOLD:
            constant = trained if data.root is None else trained * data.root[:, None]
            along = np.einsum("ij,ij->j", constant, constant)
            # the mean part is not of the ball: residuals of a fit with an intercept have none
            mean = np.einsum("ij,ij->j", constant, residual) / along
            residual = residual - constant * mean
            target = target - constant * (np.einsum("ij,ij->j", constant, target) / along)
        else:
            mean, along = np.zeros(len(which)), np.ones(len(which))
        lam = gamma_to_lam(float(self.context.grid.gammas[g])) * data.weight
        with np.errstate(over="ignore", divide="ignore"):
            scores = (V.T @ residual) ** 2 / lam[:, None]
        distance = residual_distances(residual, target, scores, most, value)
        distance = np.hypot(distance, np.abs(mean) * np.sqrt(along)) + full.doubt.max() * np.sqrt(data.n)
        return np.where(needs_own_centres(data, [self.left_out[fold] for fold in which]), np.inf, distance)

    def _whatever(self, g: int, t: int, subset: BestSubset) -> float:
        """Bound the largest change if the best full-data model is not known either."""
        top = subset.upper * (1.0 + KEEP_RTOL) + ROWS_ROUNDING * self.fits.rounding_scale
        high = self._values(g, t) + self.cells.upper[g, t] + top
        return float(np.where(self.context.folds.scores_all_left_out, high, np.inf).max())


@dataclass(frozen=True, eq=False)
class StabilityTable:
    """CV error h and instability of every pair, per row and in units of the file.

    Attributes
    ----------
    now : PairBounds
        Bounds of the pairs.
    h_lower, h_upper, h : (G, T) arrays
        Bounds on the CV error, and its estimate.
    lower, upper, nominal : (G, T) arrays
        Bounds on the instability, and its value at the known supports; 0, inf and inf if it was not computed.
    known : (G, T) bool array
        True for pairs whose best models are all known.
    """

    now: PairBounds
    h_lower: FloatArray
    h_upper: FloatArray
    h: FloatArray
    lower: FloatArray
    upper: FloatArray
    nominal: FloatArray
    known: BoolArray

    def criterion(self, weight: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(G, T) lower and upper bounds on `h + weight instability`, and its value at the known supports."""
        if weight == 0.0:
            return self.h_lower, self.h_upper, self.h
        lower, upper = self.h_lower + weight * self.lower, self.h_upper + weight * self.upper
        return lower * (1.0 - OUTWARD), upper * (1.0 + OUTWARD), np.clip(self.h + weight * self.nominal, lower, upper)

    def choose(self, weight: float, gap: float, gammas: FloatArray, taus: IntArray) -> ChoiceByWeight:
        """Return the pair with the smallest criterion, with bounds on the minimum over the grid.

        Parameters
        ----------
        weight : float
            Weight of the instability.
        gap : float
            Relative gap of a certified choice.
        gammas, taus : arrays
            Grid.
        """
        lower, upper, nominal = self.criterion(weight)
        lowest = np.unravel_index(int(np.argmin(lower)), lower.shape)
        allowance = float(upper[lowest] - lower[lowest]) if self.known[lowest] else 0.0
        pair, least = self._simplest(upper, gammas, taus), float(lower.min())
        proved = bool(np.isfinite(upper[pair])) and float(upper[pair]) - least <= gap * float(upper[pair]) + allowance
        if not proved:
            pair = self._simplest(np.where(np.isfinite(self.nominal), nominal, np.inf), gammas, taus)
        stated = StableChoice(weight, least, float(upper[pair]), allowance, proved, ())
        return ChoiceByWeight(pair, float(nominal[pair]), stated)

    def missing(self, weight: float, gap: float) -> BoolArray:
        """(G, T): pairs whose bounds have to be narrower before the choice is certified."""
        lower, upper, _ = self.criterion(weight)
        least = float(upper.min())
        open_pairs = ~self.known & (lower < least * (1.0 - gap))
        if open_pairs.any() and np.isfinite(least):
            open_pairs |= ~self.known & (upper <= least)
        return np.asarray(open_pairs)

    @staticmethod
    def _simplest(value: FloatArray, gammas: FloatArray, taus: IntArray) -> Pair:
        return simplest(value <= value.min() * (1.0 + TIE_RTOL), gammas, taus)


def stability_table(
    instabilities: Instabilities,
    now: PairBounds,
    best: Sequence[BestSubsets],
    weights: tuple[float, ...],
    is_expired: Callable[[], bool] = lambda: False,
) -> StabilityTable:
    """Compute instabilities of pairs by ascending lower bound, as long as a pair may be the best for some weight.

    Parameters
    ----------
    instabilities : Instabilities
        Instabilities of the search.
    now : PairBounds
        Bounds of the pairs.
    best : sequence of BestSubsets
        Best subsets of the full data, by gamma.
    weights : tuple of float
        Weights of the instability.
    is_expired : callable
        Function that returns True to leave the other instabilities unknown.
    """
    context, shape = instabilities.context, now.lower.shape
    taus, unit = context.grid.taus.tolist(), context.cv_error_factor
    table = StabilityTable(
        now, now.lower * unit, now.upper * unit, now.clipped_estimates * unit, np.zeros(shape), np.full(shape, np.inf),
        np.full(shape, np.inf), np.zeros(shape, dtype=bool),
    )  # fmt: skip
    least = np.full(len(weights), np.inf)
    for place in np.argsort(table.h_lower, axis=None, kind="stable"):
        g, t = (int(i) for i in np.unravel_index(int(place), shape))
        if table.h_lower[g, t] >= least.max() or is_expired():
            break
        interval, factor = instabilities.pair_instability(g, t, best[g].by_size[taus[t]]), instabilities.mean_factor
        table.lower[g, t], table.upper[g, t] = interval.lower * factor, interval.upper * factor
        table.nominal[g, t], table.known[g, t] = interval.nominal * factor, interval.known
        ends = [table.h_upper[g, t] + weight * (table.upper[g, t] if weight else 0.0) for weight in weights]
        least = np.minimum(least, ends)
    return table


@dataclass(frozen=True, eq=False)
class ChoiceByWeight:
    """The pair that a weight of the instability chooses.

    Attributes
    ----------
    pair : tuple of (int, int)
        Indices of gamma and tau.
    nominal : float
        Criterion of the pair at the known supports.
    stated : StableChoice
        Choice in the form of the record.
    by_weight : tuple of ChoiceByWeight
        Choices of all weights, if there are several.
    """

    pair: Pair
    nominal: float
    stated: StableChoice
    by_weight: tuple[ChoiceByWeight, ...] = ()

    def with_models(self, supports: Sequence[tuple[str, ...]], gammas: FloatArray, taus: IntArray) -> ChoiceByWeight:
        """Return the choice with the models of all weights.

        Parameters
        ----------
        supports : sequence of tuple of str
            Best subsets of all rows, by weight.
        gammas, taus : arrays
            The grid.
        """
        pairs, choices = [made.pair for made in self.by_weight], [made.stated for made in self.by_weight]
        models = tuple(
            WeighedModel(stated.weight, float(gammas[g]), int(taus[t]), support, stated.proved)
            for (g, t), stated, support in zip(pairs, choices, supports, strict=True)
        )
        return replace(self, stated=replace(self.stated, models=models))


def choose_by_weight(
    context: Context, cells: CellTable, now: PairBounds, best: Sequence[BestSubsets], known: Known
) -> ChoiceByWeight | None:
    """Return the pair with the smallest `h + weight * instability`; None without a weight, time or a pair.

    Parameters
    ----------
    context : Context
        Data, grid, folds and weights of the instability.
    cells : CellTable
        Table of subproblems.
    now : PairBounds
        Bounds of all pairs.
    best : sequence of BestSubsets
        Best subsets of all rows, by gamma.
    known : dict
        Instabilities that were computed before.
    """
    if not context.stability or not best or context.deadline.abandoned.is_set():
        return None
    # past the limit a part of a second is left
    most = QUICK_WORK if context.deadline.has_expired() else float("inf")
    spent = 0.0

    def has_expired() -> bool:
        nonlocal spent
        spent += instability_cost(context, int(context.grid.taus[-1]))
        return spent > most

    table = stability_table(Instabilities(context, cells, known), now, best, context.stability, has_expired)
    grid = context.grid
    choices = tuple(table.choose(weight, context.gap, grid.gammas, grid.taus) for weight in context.stability)
    chosen = choices[0]
    if not np.isfinite(chosen.nominal) or not np.isfinite(now.nominal[chosen.pair]):  # no models to report
        return None
    intervals = map(InstabilityRow, table.lower.ravel().tolist(), table.upper.ravel().tolist())
    stated = replace(chosen.stated, intervals=tuple(intervals))
    return replace(chosen, stated=stated, by_weight=choices if len(choices) > 1 else ())


def stability_of_model(
    context: Context,
    cells: CellTable,
    pair: Pair,
    subset: BestSubset,
    is_proved: bool,
    choice: ChoiceByWeight | None,
    known: Known,
) -> Stability | None:
    """Return the stability of the model of a pair; None if it would take long, or if a fold has no support yet.

    Parameters
    ----------
    context : Context
        Data, grid and folds of the search.
    cells : CellTable
        Table of subproblems.
    pair : tuple of (int, int)
        Indices of gamma and tau.
    subset : BestSubset
        Best subset of the full data at the pair.
    is_proved : bool
        True if the objective of this subset is proved to be the smallest; otherwise the instability is an estimate.
    choice : ChoiceByWeight or None
        Choice by a weight of the instability, if one was requested.
    known : dict
        Instabilities that were computed before.
    """
    quick = instability_cost(context, subset.tau) <= QUICK_WORK
    if choice is None and (context.deadline.abandoned.is_set() or not quick):
        return None
    instabilities = Instabilities(context, cells, known)
    interval, unit = instabilities.pair_instability(*pair, subset), instabilities.mean_factor
    if not interval.nominal < float("inf"):
        return None
    return Stability(
        instability=unit * min(max(interval.nominal, interval.lower), interval.upper),
        instability_lower=unit * interval.lower,
        instability_upper=unit * interval.upper,
        fold=interval.fold,
        estimate=not (interval.known and is_proved),
        chosen=None if choice is None else choice.stated,
    )


class StablePair:
    """The goal of a search (:mod:`sparsecv_mio.search.goals`) to find the chosen pair of every weight."""

    needs_full_data: ClassVar[bool] = True

    def __init__(self, state: GridState) -> None:
        self.instabilities = Instabilities(state.context, state.cells, state.changes)

    def is_settled(self, state: GridState) -> bool:
        """Return True if no pair is left to solve."""
        return not self.pairs(state).any()

    def pairs(self, state: GridState) -> BoolArray:
        """(G, T): open pairs that may have the smallest sum, the leading ones first; full-data fits count as open."""
        context, grid = state.context, state.context.grid
        table = stability_table(
            self.instabilities, state.bounds(), state.all_rows.best, context.stability, context.deadline.has_expired
        )  # fmt: skip
        missing = np.any([table.missing(weight, context.gap) for weight in context.stability], axis=0)
        leading = np.zeros(missing.shape, dtype=bool)
        for weight in context.stability:
            leading[table.choose(weight, context.gap, grid.gammas, grid.taus).pair] = True
        workable = missing & ((state.tried.lowest_tries < DONE) | state.needs_full_tree())
        return leading & workable if (leading & workable).any() else workable

"""The averaged model: an average over near-optimal pairs, approximated by one best subset (docs/theory/average.md).

The pair (tau, gamma) with the minimum of many CV errors is chosen in part by the noise of these errors. The average
over all pairs whose CV errors hardly differ from the minimum predicts more accurately than the model of this pair, but
it has many features. Therefore the best subset of every size is fitted to the predictions of the average. The averaged
model is the smallest of these subsets whose predictions differ little from the average.

To estimate the error of the averaged model, averaging and fitting can be repeated within every fold. The weights of the
pairs are not computed again; they come from all rows. This procedure is much cheaper than a search with each fold held
out. The estimated error is too small, because the weights depend on the held-out rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, FloatArray, IntArray
from sparsecv_mio.certificate.predicting import expand_coefficients
from sparsecv_mio.certificate.records import Average, AveragedPair, PathRow, Record, WithinFolds
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.problem.glm_objective import approximate_by_squares, weighted_losses
from sparsecv_mio.problem.objective import distances_of_pairs, weights_of_pairs
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.problem.training_moments import (
    row_moments,
)
from sparsecv_mio.search.answer.average_fits import Pairs, make_average_fits
from sparsecv_mio.search.answer.result import fitted_row
from sparsecv_mio.search.problems.all_rows import solve_all_rows
from sparsecv_mio.search.problems.fold_local_search import LocalSearchOfFold, make_seed_table
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import Context, Snapshot
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.thresholds import has_large_matrices
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.subsets import FIRST_LOOK, ROUND_GROWTH, BestSubset
from sparsecv_mio.units import AVERAGE_GAMMA, AVERAGE_GAP, MISSED_SHARE, MOMENTS_RTOL
from sparsecv_mio.words import Intercept

MOST_STORED = 50_000  # number of folds of pairs up to which the record stores supports of pairs without a weight


def held_out_losses(
    context: Context, cells: CellTable, pairs: Pairs, over: Callable[[], bool] = lambda: False
) -> FloatArray:
    """(P, n) held-out losses of rows, such as squared errors, in standard units; the mean over folds that score a row.

    Each pair is scored at the supports of its subproblems; rows that no fold scores have 0.

    Parameters
    ----------
    context : Context
        Data, grid, folds and request of the search.
    cells : CellTable
        Table with a support in every fold of the pairs.
    pairs : two (P,) int arrays
        Indices of gamma and tau.
    over : callable
        Function that returns True to stop, with `OutOfTime`, while many folds are fitted.
    """
    data, folds, fits = context.data, context.folds, make_average_fits(context)
    errors = np.zeros((len(pairs[0]), data.n))
    weights, single = data.dataset.row_weights, folds.sizes == 1
    first = folds.order[folds.starts[:-1]]
    heft = np.ones(data.n) if weights is None else weights
    alone = fits.losses_of_single_rows(cells, pairs, np.flatnonzero(single), over)
    np.add.at(errors.T, first[single], (alone / heft[first[single]]).T)
    several = np.flatnonzero(~single)
    for fold, losses in fits.losses_of_folds(cells, pairs, several) if len(several) else ():
        errors[:, folds.scored_rows(fold)] += losses / heft[folds.scored_rows(fold)]
    return np.asarray(errors / np.maximum(np.bincount(folds.all_scored, minlength=data.n), 1))


def uses_all_columns(data: StandardData, grid: Grid) -> bool:
    """Return True if fits of all columns enter the average: no tau is that large, and restrictions allow them."""
    return data.choice.max_tau > int(grid.taus[-1]) and not data.restrictions.side_constraints


def compute_distances(
    snapshot: Snapshot, best: tuple[int, int], is_expired: Callable[[], bool], over: Callable[[], bool] = lambda: False
) -> FloatArray:
    """Return the distance of every pair from the best one, in standard errors; inf if a fold has no support yet.

    The pairs are those of the grid, gamma after gamma. If fits of all columns enter the average, they follow by gamma.

    Parameters
    ----------
    snapshot : Snapshot
        State of the search.
    best : tuple of int
        Indices of the pair with the minimum CV error.
    is_expired : callable
        Function that returns True to omit fits of all columns.
    over : callable
        Parameter of `held_out_losses`.
    """
    context, cells = snapshot.context, snapshot.cells
    data, folds = context.data, context.folds
    scored = np.flatnonzero(cells.scored_pairs().ravel())
    distances = np.full(cells.nominal.shape[0] * cells.nominal.shape[1], np.inf)
    counted = np.bincount(folds.all_scored, minlength=data.n), data.dataset.row_weights

    def errors(which: IntArray) -> FloatArray:
        pairs = np.unravel_index(which, cells.nominal.shape[:2])
        return held_out_losses(context, cells, pairs, over)  # type: ignore[arg-type]

    least = errors(np.array([np.ravel_multi_index(best, cells.nominal.shape[:2])]))[0]
    step = max(1, BLOCK_NUMBERS // data.n)
    for places in (scored[i : i + step] for i in range(0, len(scored), step)):
        distances[places] = distances_of_pairs(errors(places), least, *counted)
    if not uses_all_columns(data, context.grid):
        return distances
    whole = make_average_fits(context).losses_of_all_columns(is_expired)
    more = np.full(len(context.grid.gammas), np.inf)
    if whole is not None:
        sound = np.isfinite(whole).all(axis=1)
        more[sound] = distances_of_pairs(whole[sound], least, *counted)
    return np.append(distances, more)


@dataclass(frozen=True, eq=False)
class PairFit:
    """The full-data fit of a pair in units of the file, and whether it is certified optimal for its size."""

    support: tuple[str, ...]
    coefficients: Mapping[str, float]
    intercept: float
    proved: bool


def fits_of_pairs(snapshot: Snapshot, wanted: IntArray) -> dict[int, PairFit]:
    """Fit pairs on all rows, and return the fits by the place of each pair among the distances.

    Parameters
    ----------
    snapshot : Snapshot
        State of the search.
    wanted : int array
        Places of the pairs among the distances.
    """
    context, fits_made = snapshot.context, {}
    fits = make_average_fits(context)
    data, gammas, taus = context.data, context.grid.gammas, context.grid.taus
    for i in wanted[wanted < len(gammas) * len(taus)].tolist():
        g, t = divmod(i, len(taus))
        subset, gamma = snapshot.best[g].by_size[int(taus[t])], float(gammas[g])
        alone = replace(subset, candidates=())
        quick = fits.is_double_enough(int(taus[t]))
        row = fitted_row(data, gamma, None, alone, context.gap, quick)
        fits_made[i] = PairFit(row.support, row.coefficients, row.intercept, subset.complete or row.proved)
    whole = wanted[wanted >= len(gammas) * len(taus)]
    features = data.features_of(np.arange(data.q))
    models = fits.fits_of_all_columns(gammas[whole - len(gammas) * len(taus)])
    for i, (coefficients, level) in zip(whole.tolist(), models, strict=True):
        fits_made[i] = PairFit(features, coefficients, level, proved=True)
    return fits_made


@dataclass(frozen=True, eq=False)
class MeanModel:
    """A weighted mean of fits: `intercept + X coefficients`, in units of the file; the supports of these fits."""

    coefficients: FloatArray
    intercept: float
    supports: tuple[tuple[str, ...], ...]

    def predictions(self, dataset: Dataset) -> FloatArray:
        """Return the (n,) predictions of the rows of a data set; columns without a coefficient are not read."""
        used = np.flatnonzero(self.coefficients)  # large offsets of columns cancel: the sum is made in long precision
        moved = dataset.X[:, used].astype(np.longdouble) @ self.coefficients[used].astype(np.longdouble)
        return np.asarray(moved + np.longdouble(self.intercept), dtype=np.float64)


def mean_model(dataset: Dataset, fits: Mapping[int, PairFit], weights: FloatArray) -> MeanModel:
    """Return the weighted mean of fits of pairs.

    Parameters
    ----------
    dataset : Dataset
        Data that name the features.
    fits : mapping of places to fits
        Fits by the place of their pair.
    weights : array
        Weights by place.
    """
    total, intercept = np.zeros(dataset.p), 0.0
    for i, fit in fits.items():
        total += weights[i] * expand_coefficients(fit.coefficients, dataset.names)
        intercept += float(weights[i]) * fit.intercept
    return MeanModel(total, intercept, tuple(fit.support for fit in fits.values()))


class Projection:
    """Best subsets of the full data with the predictions of a mean model as the target.

    With a loss other than the squared-error loss, the targets are linear predictors, and rows are weighted by the
    curvature of the loss at these.

    Parameters
    ----------
    data : StandardData
        Data of the search: rows, units and restrictions.
    mean : MeanModel
        Mean model, whose supports are tried first.
    allowed : float
        Largest allowed loss per row of the difference from the mean model; a mean square for squared-error loss.
    most : int
        Maximum number of features.
    """

    def __init__(self, data: StandardData, mean: MeanModel, allowed: float, most: int) -> None:
        place = {name: j for j, name in enumerate(data.names)}
        aim = approximate_by_squares(data.dataset, data.loss, mean.predictions(data.dataset))
        self.allowed, self.subsets, total = allowed, dict[int, BestSubset](), data.dataset.weight_of(slice(0, data.n))
        self.intercept = None if len(data.forced) else _intercept_alone(aim, data.intercept, allowed * total)
        if self.intercept is not None:
            return
        together = () if data.restrictions.side_constraints else np.flatnonzero(mean.coefficients).tolist()
        whole = tuple(data.dataset.names[j] for j in together)  # empty if restrictions may not allow this support
        tried = dict.fromkeys((*mean.supports, whole))
        supports = ([place[name] for name in names if name in place] for names in tried)  # a constant has no column
        self.seeds = [np.union1d(support, data.adjusting).astype(np.int64) for support in supports if support]
        self.data = standardize(aim, str(data.scale), str(data.intercept), data.restrictions)
        self.per_row = self.data.loss_unit / total
        choice = self.data.choice
        least = choice.tau_of(len(choice.forced))
        self.sizes = list(range(least, max(min(most, choice.max_tau), least) + 1))
        self.problem: SparseProblem | None = None
        self._refitted = dict[tuple[int, ...], float]()

    @property
    def is_near_enough(self) -> bool:
        """True if a known model differs from the mean model by at most the allowed loss."""
        return self.intercept is not None or self._projection_error(self.size()) <= self.allowed

    def size(self) -> int:
        """Return the smallest size found whose subset has at most the allowed loss; the largest size if none has."""
        near = [size for size in self.sizes if self._projection_error(size) <= self.allowed]
        return near[0] if near else self.sizes[-1]

    def _projection_error(self, size: int) -> float:
        if size not in self.subsets:
            return np.inf
        subset = self.subsets[size]
        if self.problem is None or subset.upper > MOMENTS_RTOL * self.problem.yy:
            return subset.upper * self.per_row
        key = tuple(subset.support.tolist())  # the moments have lost all digits, so the rows give the loss
        if key not in self._refitted:
            made = refit_squares(self.data, slice(0, self.data.n), subset.support, AVERAGE_GAMMA)
            self._refitted[key] = made.objective + made.objective_error
        return self._refitted[key] * self.per_row

    def find(self, is_expired: Callable[[], bool]) -> None:
        """Find a support of every size."""
        if self.intercept is not None:
            return
        if not has_large_matrices(self.data, 1):
            self.problem = row_moments(self.data, slice(0, self.data.n)).problem(self.data, AVERAGE_GAMMA)
        if self.problem is not None and not self.data.restrictions.side_constraints:
            self._search(self.problem, is_expired)
        else:
            for size in self.sizes:
                self._solve([size], FIRST_LOOK, is_expired)
                if self.is_near_enough:
                    break

    def prove(self, is_expired: Callable[[], bool], node_limit: int) -> None:
        """Prove the model, and that no smaller model is near enough, with at most `node_limit` nodes a size."""
        tried: set[int] = set()
        while self.intercept is None and (wanted := sorted({self.size(), max(self.size() - 1, self.sizes[0])} - tried)):
            self._solve(wanted, node_limit, is_expired)
            tried.update(wanted)

    def _search(self, problem: SparseProblem, is_expired: Callable[[], bool]) -> None:
        """Exchange columns of supports of all sizes as long as that lowers objectives."""
        forced, top = self.data.forced, self.data.choice.size(self.sizes[-1])
        search = LocalSearchOfFold(0, problem, np.array([problem.lam]), top)
        seeds = make_seed_table([np.setdiff1d(support, forced) for support in self.seeds], top)
        search.learn(seeds, np.full(len(seeds), -1))
        search.sweep([0, 0], is_expired)
        for size in self.sizes:
            more = self.data.choice.size(size)
            if search.has_support(0, more):
                self._offer(problem, size, np.sort(np.append(forced, search.best_supports()[0, more, :more])))

    def _offer(self, problem: SparseProblem, size: int, support: IntArray) -> None:
        """Store a support with its objective from the moments, since the objective of a search may have lost digits."""
        fit = fit_from_moments(problem, [support])
        upper = float(fit.value[0] + fit.value_error[0])
        if np.isfinite(upper):
            self.subsets[size] = BestSubset.from_bounds(size, support, upper)

    def _solve(self, sizes: list[int], node_limit: int, is_expired: Callable[[], bool]) -> None:
        """Store the bounds of the trees of some sizes; sizes that are solved are not repeated."""
        unsolved = [size for size in sizes if size not in self.subsets or not self.subsets[size].complete]
        if not unsolved:
            return
        starts = [*self.seeds, *(subset.support for subset in self.subsets.values())]
        solved = solve_all_rows(self.data, AVERAGE_GAMMA, self.problem, unsolved, starts, node_limit, is_expired)
        for size, subset in solved.by_size.items():
            old = self.subsets.get(size)
            if old is not None and not subset.complete:
                better = subset if subset.upper <= old.upper else old
                subset = replace(better, lower=max(old.lower, subset.lower))
            self.subsets[size] = subset

    def model(self) -> tuple[PathRow, float | None]:
        """Return the model, and a lower bound on the objective of every smaller model."""
        if self.intercept is not None:
            return self.intercept, None
        size, unit = self.size(), self.data.loss_unit
        row = fitted_row(self.data, AVERAGE_GAMMA, self.problem, self.subsets[size], AVERAGE_GAP)
        return row, self.subsets[size - 1].lower * unit if size > self.sizes[0] else None


def _intercept_alone(aim: Dataset, intercept: Intercept, allowed: float) -> PathRow | None:
    """Return the model without features if its objective is at most `allowed`; None otherwise."""
    heft = np.ones(aim.n) if aim.row_weights is None else aim.row_weights
    level = 0.0 if intercept is Intercept.NONE else float(np.average(aim.y, weights=heft))
    alone = float(heft @ (aim.y - level) ** 2)
    return PathRow(AVERAGE_GAMMA, 0, (), {}, level, alone, alone, alone, proved=True) if alone <= allowed else None


def project_mean_model(
    data: StandardData, mean: MeanModel, allowed: float, most: int, node_limit: int, is_expired: Callable[[], bool]
) -> tuple[PathRow, float | None]:
    """Return the smallest best subset that is near a mean model, and a lower bound for every smaller subset.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    mean : MeanModel
        Mean model.
    allowed : float
        Largest allowed loss per row of the difference from the mean model.
    most : int
        Maximum number of features.
    node_limit : int
        Node limit of the proof of a size.
    is_expired : callable
        Function that returns True to end trees with their present bounds.
    """
    aim = Projection(data, mean, allowed, most)
    aim.find(is_expired)
    aim.prove(is_expired, node_limit)
    return aim.model()


class _Pairs:
    """The averaged pairs in the form of the record, and their supports, each stored once."""

    def __init__(self, snapshot: Snapshot, fits: Mapping[int, PairFit]) -> None:
        self.cells, self.data, self.grid = snapshot.cells, snapshot.context.data, snapshot.context.grid
        self.fits, self.named = fits, dict[int, int]()
        self.supports = {names: i for i, names in enumerate(dict.fromkeys(fit.support for fit in fits.values()))}
        self.store = self.cells.nominal.size <= MOST_STORED

    def place(self, names: tuple[str, ...]) -> int:
        """Return the index of a support in the record."""
        return self.supports.setdefault(names, len(self.supports))

    def _support_place(self, number: int) -> int:
        if number not in self.named:
            self.named[number] = self.place(self.data.features_of(self.cells.pool.supports[number]))
        return self.named[number]

    def pair(self, i: int, distance: float, weight: float) -> AveragedPair:
        """Return the pair at a place among the distances."""
        taus, fit = len(self.grid.taus), self.fits.get(i)
        keep = math.isfinite(distance) if self.store else fit is not None
        g, t = divmod(i, taus)
        if g < len(self.grid.gammas):
            tau, decided = int(self.grid.taus[t]), bool(self.cells.decided[g, t].all())
            folds = tuple(map(self._support_place, self.cells.support[g, t].tolist())) if keep else ()
        else:
            g, tau, decided = i - len(self.grid.gammas) * taus, self.data.choice.max_tau, True
            every = (self.place(self.data.features_of(np.arange(self.data.q))),) if keep else ()
            folds = every * self.cells.nominal.shape[2]
        at = None if fit is None else self.place(fit.support)
        estimate = not (decided and (fit is None or fit.proved))
        return AveragedPair(float(self.grid.gammas[g]), tau, distance, weight, at, folds, estimate)


def with_average(
    record: Record, snapshot: Snapshot, is_expired: Callable[[], bool], over: Callable[[], bool] = lambda: False
) -> Record:
    """Return the record with the averaged model.

    Parameters
    ----------
    record : Record
        Record of the search.
    snapshot : Snapshot
        Snapshot from which the record was built.
    is_expired : callable
        Function that returns True to end trees with their present bounds.
    over : callable
        Parameter of `held_out_losses`.
    """
    context, grid = snapshot.context, snapshot.context.grid
    best = int(np.searchsorted(grid.gammas, record.gamma)), int(np.searchsorted(grid.taus, record.tau))
    distances = compute_distances(snapshot, best, is_expired, over)
    fits = fits_of_pairs(snapshot, np.flatnonzero(weights_of_pairs(distances)))
    own = PairFit(record.support, record.coefficients, record.intercept, record.refit.proved)
    fits[best[0] * len(grid.taus) + best[1]] = own
    allowed, first = MISSED_SHARE * record.cv_error, len(grid.gammas) * len(grid.taus)
    while True:
        all_pairs = _Pairs(snapshot, fits)
        said = [all_pairs.pair(i, distance, 0.0) for i, distance in enumerate(distances.tolist())]
        weights = weights_of_pairs(distances, [pair.model(i) for i, pair in enumerate(said)])
        mean = mean_model(context.data.dataset, fits, weights)
        aim = Projection(context.data, mean, allowed, int(grid.taus[-1]))
        aim.find(is_expired)
        if aim.is_near_enough or max(fits) < first:
            break
        distances[first:] = np.inf  # no size of the grid is near an average that includes fits of all columns
        fits = {i: fit for i, fit in fits.items() if i < first}
    aim.prove(is_expired, FIRST_LOOK * ROUND_GROWTH)
    model, fewer = aim.model()
    pairs = tuple(replace(pair, weight=weight) for pair, weight in zip(said, weights.tolist(), strict=True))
    missed = model.objective / context.data.dataset.weight_of(slice(0, context.data.n))
    return replace(record, average=Average(tuple(all_pairs.supports), pairs, allowed, missed, model, fewer))


def with_own_error(record: Record, snapshot: Snapshot, is_expired: Callable[[], bool]) -> Record:
    """Return a record with the error of its averaged model within folds; unchanged if the time runs out.

    Parameters
    ----------
    record : Record
        Record with an averaged model.
    snapshot : Snapshot
        Snapshot from which the record was built.
    is_expired : callable
        Function that returns True once the time is over.
    """
    average = record.average
    assert average is not None
    pairs, supports = average.used, average.supports
    context = snapshot.context
    data, folds, most = context.data.dataset, context.folds, int(context.grid.taus[-1])
    means = make_average_fits(context).averages_of_folds(pairs, supports, is_expired)
    fold_supports, total, heft = list[tuple[str, ...]](), 0.0, 0.0
    if means is None:
        return record
    for fold, (coefficients, intercept) in enumerate(zip(*means, strict=True)):
        if is_expired():
            return record
        here = data.take(folds.train_rows(fold))
        training = standardize(
            here, str(context.data.scale), str(context.data.intercept), context.data.restrictions, context.data.loss
        )  # fmt: skip
        mean = MeanModel(coefficients, intercept, tuple(supports[pair.folds[fold]] for pair in pairs))
        model, _ = project_mean_model(training, mean, average.allowed, most, FIRST_LOOK, is_expired)
        rows = data.take(folds.scored_rows(fold))
        predictors = rows.X @ expand_coefficients(model.coefficients, rows.names) + model.intercept
        total += float(weighted_losses(rows, context.data.loss, predictors).sum())
        heft += rows.weight_of(slice(0, rows.n))
        fold_supports.append(model.support)
    place_of = {names: place for place, names in enumerate(dict.fromkeys((*supports, *fold_supports)))}
    within = WithinFolds(tuple(place_of[names] for names in fold_supports), total / heft)
    return replace(record, average=replace(average, supports=tuple(place_of), within_folds=within))

"""Functions that construct a record from the state of a search: pair, full-data refit, certificate, advice."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING
from sparsecv_mio.certificate import parts, records
from sparsecv_mio.certificate.records import (
    SCHEMA,
    Advice,
    BoundedPair,
    CertifiedSoFar,
    Classes,
    Counts,
    Least,
    OneSe,
    PathRow,
    Record,
    Refit,
    Region,
    TableRow,
    find_loosest_pair,
)
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import Inconsistent
from sparsecv_mio.model_space import text_of_gammas, text_of_taus
from sparsecv_mio.problem.constraints import SideConstraints, constraints_of
from sparsecv_mio.problem.glm_objective import compare_with_null_model, explained_share, null_error_of_folds
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.answer.answer_fits import (
    LITTLE_WORK,
    MAX_OVERFLOW_FITS,
    AllRowsFit,
    describe_overflow,
    is_overflown,
    make_answer_fits,
)
from sparsecv_mio.search.answer.instability import ChoiceByWeight, choose_by_weight, stability_of_model
from sparsecv_mio.search.deadline import GRACE
from sparsecv_mio.search.state import pairs as one_standard_error
from sparsecv_mio.search.state.cells import CellTable, fill_support
from sparsecv_mio.search.state.context import Snapshot
from sparsecv_mio.search.state.pairs import Grid, PairBounds, pair_bounds, proved_part, statuses
from sparsecv_mio.thresholds import QUICK_WORK
from sparsecv_mio.trees.allowed_supports import Family, columns_in_mask
from sparsecv_mio.trees.subsets import MOST_REFITTED, BestSubset
from sparsecv_mio.units import PROVED_RTOL, ROUNDING, SO_FAR_GAP, TIE_RTOL
from sparsecv_mio.words import Method

FEWEST = 3  # minimum number of sizes proved one after the other from which the growth of costs is estimated
LONGEST = 1e6  # largest limit to advise, in seconds


def advice(
    request: parts.SearchRequest,
    limit: float | None,
    region: Region | None,
    gamma: float,
    tau: int,
    reached: Mapping[int, float],
) -> Advice:
    """Return options with which the proof may be completed.

    Parameters
    ----------
    request : SearchRequest
        Request, with the grid.
    limit : float or None
        Time limit of the search in seconds.
    region : Region or None
        Part of the grid in which the best pair is certified.
    gamma, tau : float, int
        Reported pair, which a smaller grid must contain.
    reached : mapping of int to float
        Seconds after which all pairs up to a size were certified, by size.

    Examples
    --------
    >>> request = parts.SearchRequest((0.1, 1.0, 10.0), tuple(range(1, 13)), 1e-4)
    >>> region = Region(8, 1.0, 1.0, 3, 2.0, 2.0, 2.0, 0.0, 0.0)
    >>> found = advice(request, 20.0, region, 1.0, 3, {6: 2.0, 7: 4.0, 8: 8.0})
    >>> found.tau, found.gamma
    ('1:8', '1,10')
    """
    taus = gammas = None
    # a proof that uses a pair outside of a part of the grid is no proof for this part
    if region is not None and region.up_to_tau is not None and max(tau, region.tau) <= region.up_to_tau:
        taus = text_of_taus(size for size in request.taus if size <= region.up_to_tau)
    if region is not None and region.from_gamma is not None and min(gamma, region.gamma) >= region.from_gamma:
        gammas = text_of_gammas(value for value in request.gammas if value >= region.from_gamma)
    return Advice(taus, gammas, longer_limit(limit, max(request.taus), reached))


def longer_limit(limit: float | None, largest: int, reached: Mapping[int, float]) -> float | None:
    """Return a time limit within which the whole grid may be certified, to one digit; None if no forecast is possible.

    The forecast extrapolates the logarithm of the seconds from the larger half of the certified sizes.

    Parameters
    ----------
    limit : float or None
        Time limit of the search in seconds.
    largest : int
        Largest tau of the grid.
    reached : mapping of int to float
        Seconds by size, see `advice`.

    Examples
    --------
    >>> longer_limit(10.0, 10, {1: 1.0, 2: 2.0}), longer_limit(10.0, 10, {tau: 2.0**tau / 8 for tau in range(1, 7)})
    (None, 200.0)
    """
    taus = sorted(reached)
    if limit is None or len(taus) < FEWEST:
        return None
    later = taus[min(len(taus) // 2, len(taus) - FEWEST) :]
    slope = float(np.polyfit(later, np.log([max(reached[tau], 1e-3) for tau in later]), 1)[0])
    growth = max(slope, 0.0) * (largest - taus[-1])
    if growth > math.log(LONGEST):
        return None
    seconds = limit * math.exp(growth)
    digit = 10.0 ** math.floor(math.log10(seconds))
    rounded = math.ceil(max(seconds, 1.5 * limit) / digit - 1e-9) * digit
    return rounded if rounded <= LONGEST else None


DOUBTFUL = "a refit disagrees with the search, so the bounds of the fold concerned are removed; please report this"
UNWEIGHED = (
    "the time limit ended before stability was computed; the model of the pair with the minimum CV error is used"
)
FIT_RTOL = 4.0 * ROUNDING  # outward rounding of the bounds of a fit, for the operations after its error bound
MAX_FOLD_SUPPORTS = 16  # supports of folds that are tried on all rows if the best subset there is unknown
LATEST = 0.5, 1.5  # seconds after `GRACE` in which fits that steps do not reach may end; the second for little work


def fitted_row(
    data: StandardData, gamma: float, problem: SparseProblem | None, cell: BestSubset, gap: float, quick: bool = False
) -> PathRow:
    """Return the fit of the best known support of a size on all rows, in units of the file.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    gamma : float
        Ridge weight.
    problem : SparseProblem or None
        Problem of all rows at gamma, if their moments are stored.
    cell : BestSubset
        Supports of one size, with their bounds.
    gap : float
        Relative gap at which the support counts as optimal.
    quick : bool
        True for a single fit in double precision, after a time limit.
    """
    unit = data.loss_unit
    supports = _supports_to_fit(data, cell)
    made = make_answer_fits(data)
    fit_of = partial(made.fit_without_bounds, gamma) if quick else partial(made.fit_support, gamma, problem)
    if data.restrictions.bounds:
        fit_of = partial(_fit_within_bounds, data, gamma, fit_of)
    fits = [fit_of(support) for support in (supports[:1] if quick else supports)]
    best = min(fits, key=lambda tried: tried.objective)
    first = _first_copies(data, best.support)
    if not np.array_equal(first, best.support):
        same = fit_of(first)
        if same.objective <= best.objective * (1.0 + TIE_RTOL):
            fits.append(same)
            best = same
    objective, coefficients, intercept = best.convert_to_file_units(data, gamma)
    upper = best.objective + best.error
    all_known = cell.complete and len(cell.candidates) <= MOST_REFITTED
    all_known &= data.loss.is_quadratic or data.coefficient_bounds is None  # columns at 0 have left the supports
    lower = min(tried.objective - tried.error for tried in fits) if all_known and not quick else cell.lower
    lower = min(max(lower, 0.0), best.objective)
    # a complete list of candidates proves nothing if one of them has no value
    allowance = 2.0 * min(best.error, made.bound_rounding(best.objective)) if all_known else 0.0
    proved = np.isfinite(upper) and upper - lower <= max(gap, PROVED_RTOL) * upper + allowance
    lower, upper = float(lower * unit * (1.0 - FIT_RTOL)), float(upper * unit * (1.0 + FIT_RTOL))
    objective, features = min(max(objective, lower), upper), data.features_of(best.support)
    return PathRow(gamma, cell.tau, features, coefficients, intercept, objective, lower, upper, bool(proved))


def _supports_to_fit(data: StandardData, cell: BestSubset) -> list[IntArray]:
    """Return the supports of a cell, each once and ascending; the first is the best one known."""
    best = np.asarray(cell.support, dtype=np.int64)
    if not (cell.complete or data.restrictions.side_constraints):  # after a limit the support may have fewer columns
        best = fill_support(best, min(data.choice.n_columns(cell.tau), data.q), np.arange(data.q))
    supports = [best, *(cell.candidates[:MOST_REFITTED] if cell.complete else ())]
    distinct = dict.fromkeys(tuple(sorted(int(j) for j in support)) for support in supports)
    return [np.array(support, dtype=np.int64) for support in distinct]


def _first_copies(data: StandardData, support: IntArray) -> IntArray:
    """Return a support in which a duplicate column is replaced by the first equal column, as in the folds."""
    if data.restrictions.side_constraints or len(data.forced):
        return support
    chosen = set(support.tolist())
    for j in sorted(chosen):
        i = int(data.copy_of[j])
        if i >= 0 and i not in chosen:
            chosen = (chosen - {j}) | {i}
    return np.array(sorted(chosen), dtype=np.int64)


def take_best_known_support(
    data: StandardData, gamma: float, cell: BestSubset, supports: Sequence[IntArray], counts: Sequence[int]
) -> BestSubset:
    """Return the best subset of a size on all rows; if it is not certified, take the best known support.

    The candidates are the support of the cell, the columns that most folds choose, and the supports of the folds.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    gamma : float
        Ridge weight.
    cell : BestSubset
        Known supports of the size on all rows, with bounds.
    supports : sequence of int arrays
        Distinct supports of the folds at the pair.
    counts : sequence of int
        Number of folds that choose each of them.

    Notes
    -----
    O(n tau^2) a support. At most `MAX_FOLD_SUPPORTS` are fitted within `LITTLE_WORK`, so no time limit is checked.
    """
    if cell.complete:
        return cell
    constraints, own = constraints_of(data), _supports_to_fit(data, cell)[0]
    suggested = _suggest_supports(data, constraints, cell.tau, supports, counts)
    made = make_answer_fits(data)
    n_numbers = made.count_numbers(data.choice.n_columns(cell.tau))
    suggested = suggested[: min(max(LITTLE_WORK // n_numbers, 1), MAX_FOLD_SUPPORTS)]
    quick = partial(made.fit_without_bounds, gamma)
    fits = [_fit_within_bounds(data, gamma, quick, support) for support in (own, *suggested)]
    return replace(cell, support=min(fits, key=lambda fit: fit.objective).support)


def _fit_within_bounds(
    data: StandardData, gamma: float, fit_of: Callable[[IntArray], AllRowsFit], support: IntArray
) -> AllRowsFit:
    """Return the fit of a support from which columns leave while their stated coefficient has a wrong sign.

    With a smooth loss, supports may contain columns that bounds of 0 hold at 0, which leave, too.
    """
    while True:
        fit = fit_of(support)
        columns = fit.support[np.argsort(data.columns[fit.support])]
        beta = np.array([*fit.convert_to_file_units(data, gamma)[1].values()])
        low, high = data.ends_in_file(data.restrictions)[:, columns]
        stays = (low <= beta) & (beta <= high)
        if not data.loss.is_quadratic:
            stays &= (beta != 0.0) | ((low != 0.0) & (high != 0.0)) | np.isin(columns, data.forced)
        if stays.all():
            return fit
        support = np.sort(columns[stays])


def _suggest_supports(
    data: StandardData, constraints: SideConstraints, tau: int, supports: Sequence[IntArray], counts: Sequence[int]
) -> list[IntArray]:
    """Return allowed supports of at most tau features: those that most folds choose, then those of single folds."""
    by_column = np.zeros(data.q, dtype=np.int64)
    for support, count in zip(supports, counts, strict=True):
        by_column[support] += count
    order = np.argsort(-by_column, kind="stable")[: np.count_nonzero(by_column)]
    chosen = order[: data.choice.n_columns(tau)].tolist()
    if data.restrictions.side_constraints:
        chosen = list(
            columns_in_mask(Family.require_support(data.q, tau, constraints)[0].greedily(order.tolist()) or 0)
        )
    frequent = [supports[i] for i in np.argsort(-np.asarray(counts), kind="stable")]
    suggested = [np.sort(np.array(support, dtype=np.int64)) for support in (chosen, *frequent)]
    return [support for support in suggested if constraints.allows(support.tolist(), tau)]


def data_info(data: StandardData) -> parts.DataInfo:
    """Describe the data for the record."""
    source = data.dataset
    has_weight = source.weights is not None or source.trials is not None or source.survival is not None
    return parts.DataInfo(
        n=source.n,
        p=source.p,
        target=source.target,
        fingerprint=source.fingerprint,
        scale=str(data.scale),
        intercept=str(data.intercept),
        names=tuple(source.names),
        loss=data.loss,
        total_weight=float(source.weight_of(slice(0, source.n))) if has_weight else None,
        reading=parts.reading_info(source.reading),
        **{name: getattr(source, name) for name in parts.NAMED_BY_DATASET},
    )


def fold_info(plan: FoldPlan) -> parts.FoldInfo:
    """Describe folds for the record."""
    return parts.FoldInfo(plan.spec, plan.seed, plan.k, plan.digest, plan.repeats)


class _Reported:
    """The reported pair, and the numbers of every pair in units of the file."""

    def __init__(self, snapshot: Snapshot) -> None:
        context = snapshot.context
        self.data, self.folds, self.grid = context.data, context.folds, context.grid
        self.cells: CellTable = snapshot.cells
        self.unit = self.data.loss_unit
        self.fits = make_answer_fits(self.data)
        self.per_row, self.scored = context.cv_error_factor, context.scored_weights
        self.gap = context.gap
        self.deadline, self.until = context.deadline, time.monotonic() + GRACE
        self.by_rows: set[tuple[int, int]] = set()
        self.looked_at = 0  # numbers, to score the folds of pairs
        self._sum()
        check_cells(self.cells)

    def _sum(self) -> None:
        """Compute the sums over folds and the pair to report."""
        self.bounds: PairBounds = pair_bounds(self.cells, self.grid.gammas, self.grid.taus)
        self.pair = self.bounds.reported_pair(self.gap, self.grid.gammas, self.grid.taus)
        self.proved = self.bounds.is_certified(self.gap)
        self.decided = self.bounds.n_solved_folds
        undefined = is_overflown(self.bounds.lower) & (self.decided < self.folds.k)
        self.shown = np.where(undefined, np.inf, self.bounds.clipped_estimates * self.per_row)
        self.lower, self.upper = self._round_down(self.bounds.lower), self._round_up(self.bounds.upper)

    @property
    def _sum_rtol(self) -> float:
        """Relative rounding error of a sum over folds, which numpy forms in pairs, times the factor of a row."""
        return (8 + self.folds.k.bit_length()) * ROUNDING

    def _round_down(self, sums: FloatArray) -> FloatArray:
        """Return lower bounds on CV errors from lower bounds on sums over folds."""
        return np.asarray(sums * self.per_row * (1.0 - self._sum_rtol))

    def _round_up(self, sums: FloatArray) -> FloatArray:
        """Return upper bounds on CV errors from upper bounds on sums over folds."""
        return np.asarray(sums * self.per_row * (1.0 + self._sum_rtol))

    def score(self, pair: tuple[int, int]) -> bool:
        """Compute the held-out losses of a pair from the rows in folds that are not solved; return True if any changed.

        Losses from moments or from normal equations may lack digits. Another pair may have to be reported afterwards.
        The fits of all pairs together end after `GRACE` seconds, but not before `LITTLE_WORK`.
        """
        if pair in self.by_rows:
            return False
        self.by_rows.add(pair)
        cells, gamma = self.cells, float(self.grid.gammas[pair[0]])
        losses, values = np.full(self.folds.k, np.nan), np.array(cells.value[pair])
        folds = np.flatnonzero(~cells.decided[pair] & np.isfinite(cells.nominal[pair]))
        if self.fits.has_steps and not (self.data.dataset.has_scales_of_folds or self.data.coefficient_bounds):
            self._score_from_all_rows(pair, folds, losses)
        for fold in folds[np.isnan(losses[folds])].tolist():
            support = cells.pool.supports[cells.support[(*pair, fold)]]
            if self._fits_long(len(support)):
                break
            made = refit_rows(self.data, self.folds.train_rows(fold), support, gamma)
            loss, slip = made.held_out(self.data, self.folds.scored_rows(fold))
            if np.isfinite(slip):
                losses[fold], values[fold] = loss, made.objective
        scored = np.flatnonzero(np.isfinite(losses))
        if len(scored):  # all folds together, because a stored sum is replaced by their values
            cells.rescore((*pair, scored), losses[scored], values[scored])
            self._sum()
        return bool(len(scored))

    def _has_taken_long(self, columns: int = 0) -> bool:
        """Return True if scores of folds took longer than `GRACE`, and `columns` more numbers a row are much work."""
        self.looked_at += self.data.n * columns
        return self.looked_at > LITTLE_WORK and time.monotonic() > self.until

    def _fits_long(self, size: int) -> bool:
        """Return `_has_taken_long` with one more fit by rows: 1 to 6 milliseconds for at most 2,000 rows."""
        self.looked_at += self.fits.count_numbers(size)
        return self._has_taken_long()

    def _is_grace_over(self) -> bool:
        """Return True if the limit has passed and the work after the limit has used its time."""
        return self.deadline.is_over() and self._has_taken_long()

    def _is_too_late(self) -> bool:
        """Return True if the work after the limit has taken the longer time `LATEST`."""
        latest = LATEST[0] if self._has_taken_long() else LATEST[1]
        return self.deadline.is_over() and time.monotonic() > self.until + latest

    def _score_from_all_rows(self, pair: tuple[int, int], folds: IntArray, losses: FloatArray) -> None:
        """Compute held-out losses of folds by a few Newton steps from the full-data fits of their supports.

        The supports of most folds come first. The work ends when the time after the limit is over.
        """
        from sparsecv_mio.trees.glm_subsets import (  # squared-error loss does not need this import
            fit_rows_in_place,
            held_out_losses_at_fits,
        )

        cells, numbers = self.cells, self.cells.support[pair][folds]
        values, counts = np.unique(numbers, return_counts=True)
        gamma = float(self.grid.gammas[pair[0]])
        every = fit_rows_in_place(self.data, gamma) if len(folds) else None
        for done, number in enumerate(values[np.argsort(-counts, kind="stable")].tolist()):
            here, support = folds[numbers == number], cells.pool.supports[number]
            if self._has_taken_long(len(here) * (len(support) + 1)) and self.deadline.is_over() and done:
                break
            late = self._is_grace_over, self._is_too_late
            losses[here] = held_out_losses_at_fits(self.data, self.folds, support, gamma, here, *late, every)

    def numbers(self, g: int, t: int) -> dict[str, Any]:
        """Return gamma, tau, CV error and interval of a pair, as the parts of a record name them."""
        gamma, tau = float(self.grid.gammas[g]), int(self.grid.taus[t])
        interval = {"lower": float(self.lower[g, t]), "upper": float(self.upper[g, t])}
        return {"gamma": gamma, "tau": tau, "cv_error": float(self.shown[g, t]), **interval}

    def is_estimated(self, g: int, t: int) -> bool:
        """Return True if some fold of a pair is not solved, so that its CV error is an estimate."""
        return bool(self.decided[g, t] < self.folds.k)

    def standard_error(self, g: int, t: int) -> float | None:
        """Return the standard error of h over folds; None if it is undefined or not yet known."""
        errors, scored = self._errors_of_folds(g, t), self.scored
        has_error = scored.has_standard_error and bool(np.isfinite(errors).all())
        return standard_error(errors * self.unit, scored.by_fold, scored.times) if has_error else None

    def one_se(self) -> tuple[OneSe, tuple[int, int]]:
        """Return the pair of the one-standard-error rule."""
        grid = self.grid
        rule = one_standard_error.one_se_rule(self.bounds, self.pair, grid.gammas, grid.taus, self.scored, self.unit)
        return OneSe(rule.standard_error, bool(rule.missing.any())), rule.pair

    def table(self, proved: bool) -> tuple[TableRow, ...]:
        """Return a row for each pair; `proved` is True if the choice is certified, so that other pairs are excluded."""
        words = statuses(self.lower, self.upper, self.decided == self.folds.k, self.gap, proved).tolist()
        return tuple(
            TableRow(
                **self.numbers(g, t),
                folds_decided=int(self.decided[g, t]),
                folds=self.folds.k,
                estimate=self.is_estimated(g, t),
                status=words[g][t],
                standard_error=self.standard_error(g, t),
            )
            for g, t in np.ndindex(self.decided.shape)
        )

    def region(self, gap: float) -> Region | None:
        """Return the part of the grid in which the best pair is certified to a relative gap."""
        grid = self.grid
        proved = proved_part(self.bounds, gap, grid.gammas, grid.taus)
        if proved is None:
            return None
        return Region(
            up_to_tau=int(grid.taus[proved.taus - 1]) if proved.taus else None,
            from_gamma=float(grid.gammas[-proved.gammas]) if proved.gammas else None,
            **self.certificate(proved.bounds, proved.bounds.best),
        )

    def certificate(self, bounds: PairBounds, pair: tuple[int, int]) -> dict[str, Any]:
        """Return the numbers of the best pair of (a part of) the grid, bounded from below by all pairs there."""
        tie, allowance = bounds.allowances
        lower = float(self._round_down(np.array(bounds.floor)))
        allowance = allowance * self.per_row + 2.0 * self._sum_rtol * lower
        return self.numbers(*pair) | {"lower": lower, "tie_width": tie * self.per_row, "allowance": allowance}

    def grid_numbers(self, table: Sequence[TableRow]) -> dict[str, Any]:
        """Return the numbers of the pair with the smallest CV error found, with the certified bounds on the minimum."""
        upper = records.least_upper(table[int(np.ravel_multi_index(self.pair, self.decided.shape))], table)
        return self._with_gap(self.certificate(self.bounds, self.pair) | {"upper": upper}, self.pair)

    def pair_numbers(self, g: int, t: int) -> dict[str, Any]:
        """Return the numbers of one pair with the certified bounds on its CV error."""
        alone = np.zeros(self.decided.shape, dtype=np.bool_)
        alone[g, t] = True
        bounds = self.bounds.restrict(alone, self.grid.gammas, self.grid.taus)
        return self._with_gap(self.certificate(bounds, (g, t)), (g, t))

    def _with_gap(self, answer: dict[str, Any], pair: tuple[int, int]) -> dict[str, Any]:
        gap = parts.relative_gap(answer["lower"], answer["upper"])
        return answer | {"gap": gap, "estimate": self.is_estimated(*pair)}

    def training_gap(self, g: int, t: int, on_all_rows: float) -> float | None:
        """Return a bound on the relative excess of the training objectives of a pair over their minima, over all folds.

        The bound is None if every fold is solved, if a fold has no lower bound, or if fits of the rows would take long.

        Parameters
        ----------
        g, t : int
            Indices of gamma and tau.
        on_all_rows : float
            Lower bound on the objective of the pair on all rows.
        """
        cells, worst, until = self.cells, 0.0, time.monotonic() + GRACE
        size = self.data.choice.n_columns(int(self.grid.taus[t]))
        undecided, squares = np.flatnonzero(~cells.decided[g, t]), size**2
        if not len(undecided) or self.data.n * squares > QUICK_WORK:
            return None
        floors = self._floors(g, t, on_all_rows)
        squares += 0 if (floors[undecided] > 0.0).all() else self.data.q**2
        if self.data.n * squares > QUICK_WORK:
            return None
        for fold in undecided.tolist():
            rows, gamma, floor = self.folds.train_rows(fold), float(self.grid.gammas[g]), float(floors[fold])
            if not floor > 0.0:
                floor = self.fits.bound_objective(rows, gamma)
            late = time.monotonic() > until or (self.deadline.is_over() and self._fits_long(size))
            if not floor > 0.0 or not np.isfinite(cells.nominal[g, t, fold]) or late:
                return None
            made = refit_rows(self.data, rows, cells.pool.supports[cells.support[g, t, fold]], gamma)
            worst = max(worst, (made.objective + made.objective_error) / floor - 1.0)
        return worst if math.isfinite(worst) else None

    def _floors(self, g: int, t: int, on_all_rows: float) -> FloatArray:
        """(K,) lower bounds on the training objectives of a pair; 0 or less if none is known.

        A bound at a smaller gamma or a larger size is valid here too. So is the full-data bound, less the largest
        held-out loss of the fold.
        """
        data = self.data
        spread = np.average((data.dataset.y - data.y_center) ** 2, weights=data.dataset.row_weights) / self.unit
        loss = on_all_rows - self.cells.upper[g, t] - ROWS_ROUNDING * float(spread) * self.scored.total
        pairs = ((h, s) for h in range(g + 1) for s in range(t, len(self.grid.taus)))
        floors = reduce(np.maximum, (self.cells.floor[pair] for pair in pairs))
        return np.where(self.folds.scores_all_left_out, np.maximum(floors, loss), floors)

    def describe_overflow(self, g: int, t: int, support: IntArray) -> str:
        """Return a line on a held-out loss of a pair that exceeds the largest number; empty if there is none."""
        errors, decided = self._errors_of_folds(g, t), self.cells.decided[g, t]
        if np.isfinite(errors).all() or self.deadline.is_over():
            return ""
        size = self.data.choice.n_columns(int(self.grid.taus[t]))
        others = [known for known in self.cells.pool.supports if len(known) == size]
        supports = [support, *others[:MAX_OVERFLOW_FITS]]
        return describe_overflow(self.data, self.folds, float(self.grid.gammas[g]), errors, decided, supports)

    def chosen_folds(self, g: int, t: int) -> parts.ChosenFolds:
        """Return the support and the held-out loss of every fold of a pair."""
        numbers = self.cells.support[g, t]
        distinct = np.unique(numbers)
        supports = tuple(self.data.features_of(self.cells.pool.supports[number]) for number in distinct.tolist())
        return parts.ChosenFolds(
            supports,
            np.searchsorted(distinct, numbers),
            self._errors_of_folds(g, t) * self.unit,
            self.cells.decided[g, t].copy(),
        )

    def _errors_of_folds(self, g: int, t: int) -> FloatArray:
        """(K,) held-out losses of a pair; inf in unsolved folds whose loss exceeds the largest number."""
        cells = self.cells
        undefined = is_overflown(cells.lower[g, t]) & ~cells.decided[g, t]
        return np.where(undefined, np.inf, cells.nominal[g, t])


def _choose_pair(known: _Reported, snapshot: Snapshot) -> tuple[OneSe | None, ChoiceByWeight | None, tuple[int, int]]:
    """Return the choices of the one-standard-error rule and of a weight, and the pair to report, scored by the rows."""
    while True:
        while known.score(known.pair):
            pass
        rule, at = known.one_se() if snapshot.context.request.one_se else (None, known.pair)
        weighed = choose_by_weight(snapshot.context, known.cells, known.bounds, snapshot.best, snapshot.changes)
        at = at if weighed is None else weighed.pair
        if not known.score(at):
            return rule, weighed, at


def build_record(snapshot: Snapshot) -> Record:
    """Build the record of a search from its present state.

    Parameters
    ----------
    snapshot : Snapshot
        State of the search.

    Raises
    ------
    Inconsistent
        If a number of the record lies outside of its interval.
    """
    reported, context = _Reported(snapshot), snapshot.context
    grid, data, deadline = reported.grid, reported.data, context.deadline
    request = replace(context.request, gammas=tuple(grid.gammas.tolist()), taus=tuple(grid.taus.tolist()))
    rule, weighed, at = _choose_pair(reported, snapshot)
    fitted_at = partial(_fit_best_subset, snapshot)
    cell, fit = fitted_at(*at)
    weighed = None if weighed is None else _with_models(weighed, fitted_at, grid)
    untimely = (UNWEIGHED,) if context.stability and weighed is None else ()
    overflow = reported.describe_overflow(*at, np.asarray(cell.support, dtype=np.int64))
    closed = reported.proved and snapshot.complete
    table = reported.table(closed)
    proved = closed and not snapshot.doubts
    of_grid = reported.grid_numbers(table)
    answer = of_grid if at == reported.pair else reported.pair_numbers(*at)
    error, chosen, question = answer["cv_error"], reported.chosen_folds(*at), (data.dataset, data.loss, reported.folds)
    null, gain_error = compare_with_null_model(*question, chosen.error)
    null = null_error_of_folds(*question) if null is None else null
    whole = proved or request.method_used == Method.DESCENT  # a descent states nothing about parts of a grid
    region = None if request.method_used == Method.DESCENT else reported.region(reported.gap)
    fitted = replace(cell, support=data.support_of(fit.support))
    stability = stability_of_model(context, reported.cells, at, fitted, fit.proved, weighed, snapshot.changes)
    notes = [*data.warnings, *untimely, overflow, *(f"{DOUBTFUL} ({x})" for x in snapshot.doubts[:1])]
    more: dict[str, Any] = {}
    if at != reported.pair:
        more |= {"least": Least(**of_grid), "least_folds": reported.chosen_folds(*reported.pair)}
    if not whole:
        options = advice(request, deadline.limit, region, of_grid["gamma"], of_grid["tau"], snapshot.reached)
        more |= {"advice": options, "loosest": find_loosest_pair(table), "so_far": _certified_so_far(reported, table)}
    record = Record(
        schema=SCHEMA,
        status="doubtful" if snapshot.doubts else deadline.status(proved and not untimely),
        **answer,
        r_squared=explained_share(data.dataset, reported.folds, error, null) if np.isfinite(error) else None,
        support=fit.support,
        coefficients=fit.coefficients,
        intercept=fit.intercept,
        one_se=rule,
        refit=Refit(fit.gamma, fit.tau, fit.objective, fit.lower, fit.upper, fit.proved),
        table=table,
        chosen_folds=chosen,
        gain_error=gain_error,
        work=replace(snapshot.work, seconds=deadline.seconds),
        folds=fold_info(reported.folds),
        request=request,
        warnings=tuple(filter(None, notes)),
        versions=parts.versions(),
        descent=snapshot.steps,
        stability=stability,
        region=region,
        training_gap=reported.training_gap(*at, float(snapshot.best[at[0]].by_size[int(grid.taus[at[1]])].lower)),
        **more,
        **describe_data(data, null),
    )
    check_intervals(record)
    return record


def _with_models(
    weighed: ChoiceByWeight, fitted_at: Callable[[int, int], tuple[BestSubset, PathRow]], grid: Grid
) -> ChoiceByWeight:
    """Return the choices by weights with their models, if several weights were requested."""
    if not weighed.by_weight:
        return weighed
    models = [fitted_at(*choice.pair)[1].support for choice in weighed.by_weight]
    return weighed.with_models(models, grid.gammas, grid.taus)


def _certified_so_far(reported: _Reported, table: Sequence[TableRow]) -> CertifiedSoFar:
    """Return the results that are certified where a run ended before the proof of the whole grid."""
    counts = Counter(row.status for row in table)
    region = reported.region(max(reported.gap, SO_FAR_GAP))
    return CertifiedSoFar(counts["decided"], counts["excluded"], counts["open"], region)


def _fit_best_subset(snapshot: Snapshot, g: int, t: int) -> tuple[BestSubset, PathRow]:
    """Return the best subset of all rows at a pair, and its fit."""
    context, data, grid = snapshot.context, snapshot.context.data, snapshot.context.grid
    gamma, tau = float(grid.gammas[g]), int(grid.taus[t])
    cell, all_rows = snapshot.best[g].by_size[tau], snapshot.all_rows
    at_gamma = all_rows.problem(g) if all_rows is not None and all_rows.has_moments else None
    quick = context.deadline.abandoned.is_set() and make_answer_fits(data).takes_long(data.choice.n_columns(cell.tau))
    numbers, counts = np.unique(snapshot.cells.support[g, t], return_counts=True)
    supports = [snapshot.cells.pool.supports[number] for number in numbers.tolist()]
    cell = take_best_known_support(data, gamma, cell, supports, counts.tolist())
    return cell, fitted_row(data, gamma, at_gamma, cell, context.gap, quick)


def describe_data(data: StandardData, null: float | None) -> dict[str, Any]:
    """Return the fields of a record on its data, and on its two classes or counts with the error of the null model.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    null : float or None
        Error of the null model; None with squared-error loss.
    """
    target, dataset, info = data.loss.target, data.dataset, data_info(data)
    info, null = replace(info, null_error=null) if target.has_times else info, null or 0.0
    return {
        "data": info,
        "classes": Classes(*dataset.classes, null) if target.has_classes and dataset.classes is not None else None,
        "counts": Counts(null) if target.has_counts else None,
    }


def check_cells(cells: CellTable) -> None:
    """Raise `Inconsistent` if the number of a solved subproblem lies outside of its interval."""
    for g, t in np.argwhere(cells.decided.any(axis=2)).tolist():  # one pair at a time: there may be millions of folds
        nominal = cells.nominal[g, t]
        wrong = cells.decided[g, t] & ~((cells.lower[g, t] <= nominal) & (nominal <= cells.upper[g, t]))
        if not wrong.any():
            continue
        where = g, t, int(np.argmax(wrong))
        lower, error, upper = (float(array[where]) for array in (cells.lower, cells.nominal, cells.upper))
        raise Inconsistent(
            f"gamma {where[0]}, tau {where[1]}, fold {where[2]}: held-out error {error!r} lies outside of "
            f"[{lower!r}, {upper!r}]; please report this"
        )


def check_intervals(record: Record) -> None:
    """Raise `Inconsistent` if a number of the record lies outside of its interval."""
    bounded: dict[str, BoundedPair | Record] = {"cv_error": record}
    bounded |= {
        f"{name}.cv_error": pair for name, pair in (("least", record.least), ("refined", record.refined)) if pair
    }
    bounded |= {f"table[{i}].cv_error": row for i, row in enumerate(record.table)}
    named = [(name, pair.lower, pair.cv_error, pair.upper) for name, pair in bounded.items()]
    refit = record.refit
    for name, lower, value, upper in [*named, ("refit.objective", refit.lower, refit.objective, refit.upper)]:
        if not lower <= value <= upper:
            raise Inconsistent(f"{name}: {value!r} lies outside of [{lower!r}, {upper!r}]; please report this")

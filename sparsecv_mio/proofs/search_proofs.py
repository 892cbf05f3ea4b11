"""Functions that write proof files for the lower bounds of a cross-validation with squared-error loss.

The search has found the best support of every subproblem, and a proof must show that these supports are the best. For
each gamma, one tree on the full data proves a threshold for each size. The first threshold that is tried is the
smallest number for which the training-loss bounds of all folds of a pair (:mod:`sparsecv_mio.bounds.closed_form`) add
up to the lower bound of the record. If its tree exceeds the limits on its size, smaller thresholds are tried.

The proof solves all folds of the reported pair. If each fold holds out one row, a list of near-optimal supports of the
full data is sufficient to solve all folds of this pair (theory section 5). Otherwise, or if a threshold would list too
many supports, trees on the training rows of each fold solve the folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.own_rows import fold_preprocessing
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.rows_of_folds import Measures, OfTrainingRows, fills_of_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput, ProofImpossible
from sparsecv_mio.files import Place
from sparsecv_mio.model_space import NONE, abbreviate_names
from sparsecv_mio.problem.moment_fits import coefficients_of_sets, rows_left_out
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns
from sparsecv_mio.problem.refit import refit_squares
from sparsecv_mio.problem.training_moments import moments_of_training, row_moments, training_moments
from sparsecv_mio.proofs import threshold_trees
from sparsecv_mio.proofs.proof_lines import PROOF_ADVICE, PairProof, PairStatements, proof_head
from sparsecv_mio.proofs.threshold_trees import ChosenTerms, Support, prove_term_thresholds
from sparsecv_mio.search.problems.left_out_folds import objective_threshold
from sparsecv_mio.search.state.context import Snapshot
from sparsecv_mio.trees.subsets import BestSubset
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, KEEP_RTOL, ROUNDING, TIE_RTOL, TINY
from sparsecv_mio.words import Intercept, Within


class FoldScores:
    """Rows and moments of all folds, and the objectives and errors of supports there, for one gamma after another."""

    def __init__(self, data: StandardData, plan: FoldPlan, within: OfTrainingRows) -> None:
        self.data, self.plan, self.chosen, self.within = data, plan, ChosenTerms.from_data(data), within
        self.fills = fills_of_folds(data.dataset, plan) if within.na is Within.FOLDS else None
        self.whole = row_moments(data, slice(0, data.n)).problem(data, 1.0)
        self.single = bool(np.all(plan.left_sizes == 1) and plan.scores_all_left_out.all() and not within)
        self._problems: dict[int, SparseProblem] = {}
        self._held: dict[int, tuple[FloatArray, FloatArray]] = {}

    def training(self, fold: int) -> SparseProblem:
        """Return the problem of a fold's training rows at gamma 1, with adjustment columns."""
        if self.single:  # there are as many folds as rows, and few are requested
            return moments_of_training(self.data, self.plan.train_rows(fold)).problem(self.data, 1.0)
        if self.within:
            return self._fold_specific_problem(fold)
        if not self._problems:
            self._problems = {k: m.problem(self.data, 1.0) for k, m in training_moments(self.data, self.plan)}
        return self._problems[fold]

    def filled_data(self, fold: int) -> StandardData:
        """Return the data with missing values filled as in a fold."""
        dataset = self.data.dataset
        if self.fills is None or dataset.holes is None:
            return self.data
        filled = replace(dataset, X=np.where(dataset.holes, self.fills[fold], dataset.X))
        return replace(self.data, dataset=filled, keeps_rows=False)

    def _fold_specific_problem(self, fold: int) -> SparseProblem:
        """Return `training` of a fold with fold-specific preprocessing: filled missing values or scales of columns."""
        if fold not in self._problems:
            data, rows = self.filled_data(fold), self.plan.train_rows(fold)
            problem = moments_of_training(data, rows).problem(data, 1.0)
            if self.within.scale is Within.FOLDS:
                own = Measures.from_rows(data.dataset, data.dataset.X, data.scale, rows)
                ratio = np.where(own.varies, own.scale, 0.0)[data.columns] / data.divisor
                problem = replace(problem, weight=problem.weight * np.where(ratio > 0.0, ratio, 1.0) ** 2)
            self._problems[fold] = problem
        return self._problems[fold]

    def problem(self, fold: int) -> SparseProblem:
        """Return the problem of a fold's training rows in the columns that are chosen from."""
        return eliminate_forced_columns(self.training(fold)).problem

    def centre_rows(
        self, problem: SparseProblem, rows: slice | IntArray, fold: int = -1
    ) -> tuple[FloatArray, FloatArray]:
        """Return rows about the centre of a problem's rows, minus their projection on the adjustment columns."""
        return eliminate_forced_columns(problem).reduce_rows(
            *problem.centre_rows(self.data if fold < 0 else self.filled_data(fold), rows)
        )

    def centred_scored_rows(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """Return the rows that a fold scores, about the centre of its training rows."""
        if fold not in self._held:
            self._held[fold] = self.centre_rows(self.training(fold), self.plan.scored_rows(fold), fold)
        return self._held[fold]

    def with_gamma(self, gamma: float) -> ScoresAt:
        """Return objectives and errors at one gamma."""
        return ScoresAt(self, gamma)


@dataclass(frozen=True, eq=False)
class ScoresAt:
    """Objectives and errors at one gamma, in the units of the problems, not of the file."""

    folds: FoldScores
    gamma: float

    @cached_property
    def full_data_problem(self) -> SparseProblem:
        """Problem of all rows."""
        return eliminate_forced_columns(self.folds.whole).problem.with_gamma(self.gamma)

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows and targets as in the problem of all rows, and the part of unpenalised columns in their leverages."""
        data, whole, every = self.folds.data, self.folds.whole, slice(0, self.folds.data.n)
        share = 1.0 / data.n if data.intercept is Intercept.FOLD else 0.0
        return *self.folds.centre_rows(whole, every), share + eliminate_forced_columns(whole).leverage(
            whole.centre_rows(data, every)[0]
        )

    def problem(self, fold: int) -> SparseProblem:
        """Return the problem of a fold's training rows."""
        return self.folds.problem(fold).with_gamma(self.gamma)

    def _evaluate_single_rows(self, sets: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return f of L supports (L, a) on all rows, and residuals and leverages (L, K) of the row of every fold."""
        base, (V, r, share) = self.full_data_problem, self._rows
        order = self.folds.plan.order[: self.folds.plan.scored]
        fall, residual, leverage = rows_left_out(base.M, base.c, sets, (V[order], r[order]), share[order])
        return base.yy - fall, residual, np.minimum(leverage, 1.0 - 1e-12)

    @cached_property
    def all_columns(self) -> tuple[float, FloatArray, FloatArray]:
        """Fit of all columns: f on all rows; for folds of one row, residuals and leverages plus their rounding."""
        value, residuals, leverages = self._evaluate_single_rows(np.arange(self.full_data_problem.q)[None, :])
        unit = np.sqrt(np.maximum(np.diag(self.full_data_problem.M), TINY))
        least = float(np.linalg.eigvalsh(self.full_data_problem.M / unit[:, None] / unit)[0])
        off = self.folds.data.n * self.full_data_problem.q * ROUNDING / max(least, ROUNDING)
        return float(value[0]), residuals[0], leverages[0] + ACCURATE_RTOL + off

    def score(
        self, supports: Sequence[Support], folds: IntArray, within: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return training objectives and held-out errors of L supports in K folds: arrays (L, K).

        Parameters
        ----------
        supports : sequence of tuples of int
            Supports.
        folds : (K,) int array
            Indices of the folds.
        within : (K,) array, optional
            Training objectives above which an error may be inf instead.
        """
        objective, error = np.empty((len(supports), len(folds))), np.empty((len(supports), len(folds)))
        for which, every in self.folds.chosen.columns(supports):
            many = self.folds.plan.scored if self.folds.single else every.shape[1] * len(folds)
            step = max(1, CHUNK_ELEMENTS // (max(1, every.shape[1]) * max(1, many)))
            for lo in range(0, len(every), step):
                here, sets = which[lo : lo + step], every[lo : lo + step]
                if self.folds.single:
                    f, e, h = self._evaluate_single_rows(sets)
                    e, h = e[:, folds], h[:, folds]
                    objective[here], error[here] = f[:, None] - e**2 / (1.0 - h), (e / (1.0 - h)) ** 2
                else:
                    objective[here], error[here] = self._refit_sets(sets, folds.tolist(), within)
        return objective, error

    def refit(self, supports: Sequence[Support], fold: int) -> tuple[FloatArray, FloatArray, float]:
        """Return objectives and errors of L supports in a fold, arrays (L, 1), from the rows, and their rounding."""
        data, plan = self.folds.data, self.folds.plan
        objective, error, lost = np.empty((len(supports), 1)), np.empty((len(supports), 1)), 0.0
        for which, sets in self.folds.chosen.columns(supports):
            for here, columns in zip(which.tolist(), sets, strict=True):
                support = self.folds.chosen.choice.make_support(columns)
                row_fit = refit_squares(data, plan.train_rows(fold), support, self.gamma)
                objective[here], error[here] = row_fit.objective, row_fit.held_out(data, plan.scored_rows(fold))[0]
                lost = max(lost, row_fit.objective_error)
        return objective, error, lost

    def _refit_sets(self, sets: IntArray, folds: list[int], within: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        objective = np.empty((len(sets), len(folds)))
        error = np.full(objective.shape, np.inf)
        for k, fold in enumerate(folds):
            problem, (V, r) = self.folds.problem(fold), self.folds.centred_scored_rows(fold)
            beta = coefficients_of_sets(problem, sets, problem.with_gamma(self.gamma).penalty[sets])
            objective[:, k] = problem.yy - (problem.c[sets] * beta).sum(axis=1)
            near = np.flatnonzero(objective[:, k] <= (np.inf if within is None else within[k]))
            residuals = r - (beta[near][:, None, :] @ V.T[sets[near]])[:, 0, :]
            error[near, k] = (residuals**2).sum(axis=1)
        return objective, error


COVERED = (1.0, 0.97, 0.9, 0.7)  # shares of folds that a list must solve, tried in turn
FURTHER = (1.0, 0.5, 0.25, 0.0)  # shares of the way from the best objective to the threshold of a pair, tried in turn
THRESHOLD_ACCURACY = 1e-7  # relative accuracy of a threshold
NO_THRESHOLD = -1.0  # a threshold that every objective exceeds
# maximum supports of a tree with thresholds above the best objectives, if one fit serves all folds or not; its nodes
LISTED_TOGETHER, FEW_LISTED, LIST_NODES = 1_000, 300, 1 << 15


@dataclass(eq=False, kw_only=True)
class SearchedPair(PairStatements):
    """Statements about one pair, with the results of the search.

    Attributes
    ----------
    value, error : (K,) arrays
        Training objective and held-out error of the best support that the search found in each fold.
    support : (K,) int array
        Number of this support in the search's pool.
    """

    value: FloatArray
    error: FloatArray
    support: IntArray


class SearchProof(PairProof):
    """The lines of the proof of one record with squared-error loss, from the final state of its search."""

    excluded_rtol = 1e-5

    def __init__(self, record: Record, plan: FoldPlan, found: Snapshot, place: Place, dataset: Dataset) -> None:
        self.found, self.within = found, fold_preprocessing(record)
        self.data = found.context.data
        if self.within:
            restrictions = record.request.restrictions or NONE
            self.data = standardize(dataset, record.data.scale, record.data.intercept, restrictions)
            if self.data.names != found.context.data.names:
                named = abbreviate_names(sorted({*self.data.names} ^ {*found.context.data.names}))
                raise BadInput(
                    f"--proof: not supported with columns that vary only in the held-out rows of a fold; drop {named}"
                )
        self.folds = FoldScores(self.data, plan, self.within)
        self.chosen = self.folds.chosen
        self.columns = self.data.only(self.chosen.choice.others)
        self.units = threshold_trees.Units.from_data(self.columns)
        grid = record.request.gammas, record.request.taus
        head = proof_head(self.columns, *grid, plan, self.units.exponent, self.chosen, self.within)
        super().__init__(record, plan, head, place, self.units.square)

    def _gamma(self, g: int) -> Iterator[dict[str, Any]]:
        at = self.folds.with_gamma(self.gammas[g])
        lost = threshold_trees.rounding(at.full_data_problem, self.columns.divisor)
        pairs = [self._pair(g, t, at) for t in range(len(self.taus))]
        trees = [] if self.within else self._on_all_rows(g, at, pairs, lost)
        numbered: dict[int, tuple[int, threshold_trees.ProofTree]] = {}
        for tree in trees:
            numbered.update(dict.fromkeys(tree.above, (self.trees, tree)))
            yield self._tree(tree, -1, g)
        for pair in pairs:
            if self.within:
                continue  # with fold-specific rows, no tree on all rows bounds a fold
            if not self._is_reported(pair):
                self._bound_by_loss(pair, at, *numbered[pair.size], lost)
            elif self.folds.single:
                self._solve_by_list(pair, at, *numbered[pair.size], lost)
        yield from self._own_trees(g, at, pairs, lost)
        for pair in pairs:
            yield self._line(pair)

    def _pair(self, g: int, t: int, at: ScoresAt) -> SearchedPair:
        """Return the results of the search for a pair; a fold without a result has the best support of all rows."""
        cells, k = self.found.cells, self.plan.k
        value, error, support = cells.value[g, t].copy(), cells.nominal[g, t].copy(), cells.support[g, t].astype(int)
        missing = np.flatnonzero(~np.isfinite(value + error) | bool(self.within))
        if len(missing):
            support[~np.isfinite(error)] = cells.pool.number(self._best(g, t).support)
        for number in np.unique(support[missing]).tolist():
            here, columns = missing[support[missing] == number], self._support(number)
            value[here], error[here] = (row[0] for row in at.score([columns], here))
        size = min(self.taus[t], self.chosen.q)
        return SearchedPair(g, t, size, np.zeros(k), np.full(k, np.inf), value=value, error=error, support=support)

    def _best(self, g: int, t: int) -> BestSubset:
        """Return the best subset of all rows for a pair."""
        return self.found.best[g].by_size[self.taus[t]]

    def _support(self, number: int) -> Support:
        """Return a support of the search's pool."""
        return self.chosen.support_terms(self.found.cells.pool.supports[number])

    def _wants(self, pair: SearchedPair) -> bool:
        """Return True if a pair needs further statements."""
        return not pair.has_upper_bound if self._is_reported(pair) else bool(pair.low.sum() < self.goal)

    # -- trees on all rows -------------------------------------------------------------------------------------------

    def _on_all_rows(
        self, g: int, at: ScoresAt, pairs: list[SearchedPair], lost: float
    ) -> list[threshold_trees.ProofTree]:
        """Return trees whose thresholds raise as many pairs to the bound as their limits allow."""
        tries: dict[int, list[float]] = {}  # thresholds by size; the last one is used without limits
        for pair in pairs:
            mine = self._tries(at, pair, lost)
            if pair.size not in tries or mine[0] > tries[pair.size][0]:
                tries[pair.size] = mine
        together = self.chosen.q <= threshold_trees.RIDGE_FIRST_COLUMNS  # otherwise each size has a separate tree
        groups = [list(tries)] if together else [[size] for size in tries]
        chosen = [{size: tries[size] for size in sizes} for sizes in groups]
        return [tree for mine in chosen for tree in self._affordable(g, at, mine, lost)]

    def _tries(self, at: ScoresAt, pair: SearchedPair, lost: float) -> list[float]:
        """Return thresholds for the size of a pair, in falling order."""
        if self._is_reported(pair) and not self.folds.single:
            return [NO_THRESHOLD]  # its folds have separate trees
        best = self._best(pair.g, pair.t).upper
        best = (best if np.isfinite(best) else float(at.full_data_problem.yy)) * (1.0 + KEEP_RTOL) + 2.0 * lost
        if self._is_reported(pair):
            return self._covering(at, pair, best, lost)
        wanted = self._least_threshold(pair, lost)
        steps = FURTHER if self.chosen.q <= threshold_trees.RIDGE_FIRST_COLUMNS else FURTHER[::3]
        return [best + step * (wanted - best) for step in steps] if wanted > best else [wanted]

    def _affordable(
        self, g: int, at: ScoresAt, tries: Mapping[int, list[float]], lost: float
    ) -> list[threshold_trees.ProofTree]:
        most = LISTED_TOGETHER if self.folds.single else FEW_LISTED, LIST_NODES
        for i in range(max(map(len, tries.values())) - 1):
            above = {size: mine[min(i, len(mine) - 1)] for size, mine in tries.items()}
            with suppress(threshold_trees.TooLarge):
                return self._prove(at.full_data_problem, -1, g, above, lost, most)
        return self._prove(at.full_data_problem, -1, g, {size: mine[-1] for size, mine in tries.items()}, lost)

    def _least_threshold(self, pair: SearchedPair, lost: float) -> float:
        """Return the smallest T on all rows for which the training-loss bounds sum to the bound; inf if none does."""
        usable = self.plan.scores_all_left_out
        value, error = pair.value[usable] * (1.0 + 4.0 * TIE_RTOL) + 4.0 * lost, pair.error[usable]
        if not len(value):
            return NO_THRESHOLD
        goal = self.goal * (1.0 + CROSSING_RTOL)
        above = float(((goal + np.cumsum(np.sort(value))) / np.arange(1, len(value) + 1)).min())
        if float(np.clip(above - value, 0.0, error).sum()) >= goal * (1.0 - 1e-12):
            return above
        most = max(above, float((value + error).max()))
        return _crossing(lambda T: float(np.minimum(np.maximum(T - value, 0.0), error).sum()), above, most, goal)

    def _covering(self, at: ScoresAt, pair: SearchedPair, best: float, lost: float) -> list[float]:
        """Return thresholds that solve a share of the folds, for folds that hold out one row each."""
        limit = self._limits(at, pair.value, lost)
        finite = np.sort(limit[np.isfinite(limit)])
        places = [max(int(np.ceil(share * len(finite))) - 1, 0) for share in COVERED]
        return [max(best, float(finite[i])) for i in places] + [best] if len(finite) else [best]

    def _limits(self, at: ScoresAt, value: FloatArray, lost: float) -> FloatArray:
        """Return, by fold, the threshold on all rows above which no support wins the fold; inf if there is none."""
        base, e, h = at.all_columns
        excess = value * (1.0 + KEEP_RTOL) + 4.0 * lost - base
        return base + objective_threshold(excess, np.abs(e), h) + 4.0 * lost

    def _prove(
        self, problem: SparseProblem, rows: int, g: int, above: Mapping[int, float], lost: float,
        most: tuple[int, int] = threshold_trees.TREE_MOST,
    ) -> list[threshold_trees.ProofTree]:  # fmt: skip
        def prove(in_units: Mapping[int, float]) -> Iterator[threshold_trees.ProofTree]:
            return prove_term_thresholds(problem, self.chosen, in_units, self.units, lost, most)

        return self.kept.prove(rows, g, {size: value * self.unit for size, value in above.items()}, prove)

    # -- statements --------------------------------------------------------------------------------------------------

    def _solve_by_list(
        self, pair: SearchedPair, at: ScoresAt, number: int, tree: threshold_trees.ProofTree, lost: float
    ) -> None:
        """Solve the folds whose thresholds the list reaches."""
        supports = tree.listed.get(pair.size, [])
        if not supports:
            return
        objective, error = at.score(supports, np.arange(self.plan.k))
        reached = self._limits(at, objective.min(axis=0), lost) <= tree.above[pair.size] / self.unit
        covered = np.flatnonzero(reached)
        if len(covered):
            low, high = _ends(objective[:, covered], error[:, covered], lost)
            pair.tighten(covered, low, high)
            pair.parts.append({"by": "list", "tree": number, "folds": covered.tolist()})

    def _bound_by_loss(
        self, pair: SearchedPair, at: ScoresAt, number: int, tree: threshold_trees.ProofTree, lost: float
    ) -> None:
        """Bound the unsolved folds by their training loss."""
        above, listed = tree.above[pair.size] / self.unit, tree.listed.get(pair.size, [])
        reach = (above - pair.value * (1.0 + 2.0 * TIE_RTOL)) * (1.0 - TIE_RTOL) - 2.0 * lost
        usable = self.plan.scores_all_left_out & (reach > 0.0)
        if not usable.any():
            return
        # naming a few folds without a bound costs less than a list of the other folds
        folds = np.arange(self.plan.k) if usable.mean() > 0.5 else np.flatnonzero(usable)
        low, numbers = np.where(usable, reach, 0.0)[folds], pair.support[folds]
        if listed:
            within = pair.value[folds] * (1.0 + 2.0 * TIE_RTOL) + 4.0 * lost
            objective, error = at.score(listed, folds, within)
            possible = objective <= within
            low = np.minimum(low, np.where(possible, error * (1.0 - TIE_RTOL), np.inf).min(axis=0))
        pair.tighten(folds, low, np.inf)
        alike = bool((numbers == numbers[0]).all())
        used, which = (numbers[:1], numbers) if alike else np.unique(numbers, return_inverse=True)
        supports = [list(self._support(number_in_pool)) for number_in_pool in used.tolist()]
        statement = pair.state_loss(number, folds.tolist() if len(folds) < self.plan.k else None, supports)
        if len(used) > 1:
            statement["which"] = which.reshape(-1).tolist()

    def _rounding_error_bound(self, problem: SparseProblem, all_rows: float) -> float:
        """Return the amount that floats may lose in a fold: at least that on all rows, whose units the checker uses."""
        by_ridge = problem.q <= threshold_trees.MOST_PATH_COLUMNS
        return max(4.0 * all_rows, threshold_trees.rounding(problem, self.columns.divisor) if by_ridge else 0.0)

    def _own_trees(self, g: int, at: ScoresAt, pairs: list[SearchedPair], all_rows: float) -> Iterator[dict[str, Any]]:
        """Solve the folds that are still needed by trees on their training rows, those with the largest gain first."""
        open_pairs = [pair for pair in pairs if self._wants(pair)]
        if not open_pairs:
            return
        chosen: dict[int, tuple[list[int], list[int]]] = {pair.t: ([], []) for pair in open_pairs}
        gain = np.sum([pair.error - pair.low for pair in open_pairs], axis=0)
        for fold in np.argsort(-gain, kind="stable").tolist():
            wanted = [pair for pair in open_pairs if not np.isfinite(pair.high[fold]) and self._wants(pair)]
            if not wanted:
                continue
            problem = at.problem(fold)
            lost = self._rounding_error_bound(problem, all_rows)
            above = {pair.size: float(pair.value[fold]) * (1.0 + KEEP_RTOL) + 2.0 * lost for pair in wanted}
            for tree in self._prove(problem, fold, g, above, lost):
                for pair in wanted:
                    if pair.size in tree.above:
                        self._solve_by_fold_tree(pair, at, fold, tree, lost)
                        chosen[pair.t][0].append(fold)
                        chosen[pair.t][1].append(self.trees)
                yield self._tree(tree, fold, g)
        for pair in open_pairs:
            folds, trees = chosen[pair.t]
            if folds:
                pair.state_own(folds, trees)

    def _solve_by_fold_tree(
        self, pair: SearchedPair, at: ScoresAt, fold: int, tree: threshold_trees.ProofTree, lost: float
    ) -> None:
        if pair.size not in tree.listed:
            raise ProofImpossible(
                f"--proof: no proof is written, because the best supports of fold {fold + 1} differ by less than the "
                f"rounding error; {PROOF_ADVICE}"
            )
        listed = tree.listed[pair.size]
        if len(listed) == 1:  # the support that the search found
            pair.tighten(np.array([fold]), pair.error[fold], pair.error[fold])
            return
        if self.fits_exactly and not self.within:  # the moments lose the digits in which the supports differ
            pair.tighten(np.array([fold]), *_ends(*at.refit(listed, fold)))
            return
        within = pair.value[[fold]] * (1.0 + 2.0 * TIE_RTOL) + 4.0 * lost
        pair.tighten(np.array([fold]), *_ends(*at.score(listed, np.array([fold]), within), lost))


def _crossing(total: Callable[[float], float], low: float, high: float, goal: float) -> float:
    """Return the point where a nondecreasing function reaches a target, from above; `high` if it does not before."""
    while high - low > THRESHOLD_ACCURACY * high and low < (middle := 0.5 * (low + high)) < high:
        if total(middle) >= goal:
            high = middle
        else:
            low = middle
    return high


def _ends(objective: FloatArray, error: FloatArray, lost: float) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest held-out error of the supports that may be best in each fold."""
    tied: BoolArray = objective <= objective.min(axis=0) * (1.0 + TIE_RTOL) + 4.0 * lost
    return np.where(tied, error, np.inf).min(axis=0), np.where(tied, error, -np.inf).max(axis=0)

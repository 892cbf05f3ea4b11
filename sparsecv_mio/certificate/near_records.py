"""Functions that check a record of `near` (lists of near-optimal models), or of the subset that all folds share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS, SAME, Checks
from sparsecv_mio.certificate.design import Design, Support
from sparsecv_mio.certificate.fit_records import CommonRecord, NearRecord, NearSize
from sparsecv_mio.certificate.glm_design import GlmDesign, TooManyFits
from sparsecv_mio.certificate.refits import check_allowed, check_fit, checked_support
from sparsecv_mio.certificate.ridge_design import (
    CANDIDATE_RTOL,
    CANDIDATE_SHARE,
    IDENTITY_ROWS,
    NO_ROWS,
    RidgeDesign,
    gram_fits,
    moments,
)
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.units import CROSSING_RTOL

FITS_OF_FOLDS = MOST_FITS // 4  # fits in the verification of a common subset, about 5 ms each
LEAST_RIDGE = 1e-3  # share of gamma, for fits of all columns that bound the losses of supports
Listed = dict[Support, float]  # values of the listed models of one size
LISTED_REFITS = 200  # listed models of a size that are refitted, the best and the last ones


class CloseValues(NamedTuple):
    """Values of supports of one size, these supports, and a lower bound on the value of every other support."""

    values: FloatArray
    supports: list[Support]
    above: float


class SupportValues(ABC):
    """The value of any support at one gamma: its training objective, or its CV error with one support for all folds.

    Parameters
    ----------
    design : Design
        Columns, folds and fits.
    gamma : float
        Ridge weight.
    plan : FoldPlan or None
        Folds; None for the training objective.
    """

    def __init__(self, design: Design, gamma: float, plan: FoldPlan | None) -> None:
        self.design, self.gamma, self.plan = design, gamma, plan
        self.total = 1.0 if plan is None else float(design.scored.total)

    def exact(self, support: Sequence[int]) -> float:
        """Return the value of a support from fits of the rows.

        Parameters
        ----------
        support : sequence of int
            Positions in `design.columns`.
        """
        if self.plan is None:
            return float(self.design.refit(support, self.gamma, None).objective)
        return self._sum_held_out(tuple(support)) / self.total

    @abstractmethod
    def _sum_held_out(self, support: Support) -> float:
        """Return the sum of the held-out losses of a support over all folds."""

    def evaluate_support(self, support: Sequence[int], exact: bool) -> float:
        """Return the value of a support, from fits of the rows if requested or if these are few.

        Parameters
        ----------
        support : sequence of int
            Positions in `design.columns`.
        """
        if exact or self.plan is None:
            return self.exact(support)
        return float(self.evaluate_all(np.array([support], dtype=np.int64).reshape(1, len(support)))[0])

    def slack(self, value: float, tau: int) -> float:
        """Return a bound on the rounding error of a value of the search."""
        if self.plan is None:
            return self.design.objective_slack(value)
        return self.design.slack(value, self.gamma, tau, CROSSING_RTOL)

    @abstractmethod
    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are."""

    @abstractmethod
    def evaluate_all(self, supports: IntArray) -> FloatArray:
        """Return the values of all supports of one size."""

    def close_values(self, size: NearSize, listed: Listed) -> CloseValues | None:
        """Return the values that may belong to the list of a size, by enumeration of all supports.

        Parameters
        ----------
        size : NearSize
            Claims about the size.
        listed : dict
            Values of the listed models, by support.
        """
        tables = self.design.exactly(size.tau)
        supports = [tuple(row) for table in tables for row in table.tolist()]
        return CloseValues(np.concatenate([self.evaluate_all(table) for table in tables]), supports, math.inf)

    @property
    def can_branch(self) -> bool:
        """True if `lowest` needs few supports even if there are many."""
        return False

    def lowest(self, tau: int, level: float) -> float | None:
        """Return the minimum value of a size, or `level` if none is below it; None if this would take long.

        Parameters
        ----------
        tau : int
            Maximum number of features.
        level : float
            Level of the objective.
        """
        return min(float(self.evaluate_all(table).min()) for table in self.design.exactly(tau))


class EnumeratedValues(SupportValues):
    """Values with squared-error loss, by closed forms for many supports.

    Parameters
    ----------
    design : RidgeDesign
        Columns, folds and fits.
    """

    design: RidgeDesign

    def _sum_held_out(self, support: Support) -> float:
        errors, *_ = self.design.held_out_errors([support] * self.design.folds.k, self.gamma)
        return float(errors.sum())

    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are."""
        return self.design.enumeration_obstacle(taus, gammas, 1 if self.plan is None else self.plan.k)

    def close_values(self, size: NearSize, listed: Listed) -> CloseValues | None:
        """Return the values that may belong to the list of a size; see `SupportValues`."""
        close = super().close_values(size, listed)
        if close is not None and self.plan is None:
            self._refit_contradictions(close.values, close.supports, size, listed)
        return close

    def _refit_contradictions(
        self, truth: FloatArray, supports: Sequence[Support], size: NearSize, listed: Listed
    ) -> None:
        """Refit rows if objectives from moments contradict a record, since moments lose digits in nearly perfect fits.

        The check stops at the first support that still contradicts the record.
        """
        is_listed = np.array([support in listed for support in supports], dtype=bool)
        best, least = min(listed, key=listed.__getitem__, default=()), max(size.lower, 0.0) * (1.0 - CROSSING_RTOL)
        first = np.array([support == best for support in supports], dtype=bool)
        rounding = CANDIDATE_SHARE * float(moments(self.design.unit, NO_ROWS).moment[-1]) * self.design.unit.y_unit**2
        below = truth < size.complete_to * (1.0 + CANDIDATE_RTOL) + rounding
        for i in np.flatnonzero((truth < least) | first | (~is_listed & below)).tolist():
            claimed = least if is_listed[i] else max(least, size.complete_to * (1.0 - CROSSING_RTOL))
            truth[i] = self.exact(supports[i])
            if truth[i] < claimed - 2.0 * self.slack(claimed, size.tau):
                return

    def evaluate_all(self, supports: IntArray) -> FloatArray:
        """Return the values of all supports of one size, by closed forms if these are accurate enough."""
        unit = self.design.unit.y_unit**2
        if self.plan is None:
            train = moments(self.design.unit, NO_ROWS)
            fits = list(gram_fits(train, self.gamma, supports))
            values = np.concatenate([chunk.objective for chunk in fits]) * unit
            for a in np.flatnonzero(np.concatenate([chunk.by_rows for chunk in fits])).tolist():
                values[a] = self.exact(supports[a].tolist())
            return np.asarray(values)
        totals, doubt = np.zeros(len(supports)), np.full(len(supports), not self.plan.scores_all_left_out.all())
        if int(self.plan.left_sizes.max()) > IDENTITY_ROWS:
            for fold in range(self.plan.k):
                self._add_gram_errors(supports, fold, totals, doubt)
        else:
            for _, _, error, sure in self.design.all_objectives(self.gamma, supports):
                totals += error
                doubt |= ~sure
        values = totals * unit / self.total
        for a in np.flatnonzero(doubt).tolist():
            values[a] = self.exact(supports[a].tolist())
        return np.asarray(values)

    def _add_gram_errors(self, supports: IntArray, fold: int, totals: FloatArray, doubt: BoolArray) -> None:
        assert self.plan is not None
        unit, test, train = self.design.unit, self.plan.scored_rows(fold), self.plan.train_rows(fold)
        Z, t, root = unit.Z[test], unit.t[test], unit.root[test]
        if unit.intercept == "fold":
            heft = unit.root[train]
            share = heft / float(heft @ heft)
            Z, t = Z - np.outer(root, share @ unit.Z[train]), t - root * float(share @ unit.t[train])
        at = 0
        for value, beta, _, by_rows in gram_fits(moments(unit, test), self.gamma, supports):
            some = slice(at, at + len(value))
            residual = t - np.einsum("ics,cs->ci", Z[:, supports[some]], beta)
            totals[some] += np.einsum("ci,ci->c", residual, residual)
            doubt[some] |= by_rows
            at = some.stop


class BranchedValues(SupportValues):
    """Values with logistic or Poisson loss, by a fit for each support and fold.

    Parameters
    ----------
    design : GlmDesign
        Columns, folds and fits.
    """

    design: GlmDesign

    def _sum_held_out(self, support: Support) -> float:
        design, plan = self.design, self.design.folds
        models = (design.refit(support, self.gamma, plan.train_rows(fold)) for fold in range(plan.k))
        return sum(design.held_out(model, plan.scored_rows(fold))[0] for fold, model in enumerate(models))

    def evaluate_all(self, supports: IntArray) -> FloatArray:
        """Return the values of all supports of one size."""
        return np.array([self.exact(support) for support in supports.tolist()])

    @property
    def can_branch(self) -> bool:
        """True if branching can exclude supports by full-data fits: one fold holds out every row."""
        plan = self.plan
        return plan is not None and plan.is_partition and plan.scored == plan.n

    def lowest(self, tau: int, level: float) -> float | None:
        """Return the minimum CV error of a size, or `level` if none is below it; None if this takes too many fits.

        The held-out rows of a fold lose at least as much as under the full-data fit. With F the full-data objective and
        G that without these rows, `F(b) = G(b) + l(b)`; let b be the full-data fit and c the fit of the fold. Then
        `G(c) + l(c) >= F(b) >= G(c) + l(b)`. H(S) is therefore at least the loss L_S of the full-data fit. For a set A
        of columns that contains S and a ridge weight `r gamma`, the minimum objective is at most `L_S + r (F_0 - L_S)`,
        with F_0 the objective without columns, for every S.
        """
        if not self.can_branch:
            return super().lowest(tau, level)
        share, design, total = LEAST_RIDGE, self.design, self.total
        of_none, least, most = design.refit((), self.gamma).objective, level, FITS_OF_FOLDS - design.store.count
        below = (1.0 - share) * level * total + share * of_none
        try:
            for model in design.leaves(share * self.gamma, tau, None, lambda: below, most):
                least = min(least, self._evaluate_until_level(design.places(model), least))
        except TooManyFits:
            return None
        return least

    def _evaluate_until_level(self, support: Support, level: float) -> float:
        """Return the value of a support, or a lower bound at or above a level; folds with large losses come first."""
        assert self.plan is not None
        design, plan = self.design, self.plan
        losses, _ = design.refit(support, self.gamma).compute_row_losses(design.dataset, slice(0, plan.n))
        at_least = np.array([float(losses[plan.scored_rows(fold)].sum()) for fold in range(plan.k)])
        for fold in np.argsort(-at_least, kind="stable").tolist():
            if at_least.sum() >= level * self.total:
                break
            model = design.refit(support, self.gamma, plan.train_rows(fold))
            at_least[fold] = design.held_out(model, plan.scored_rows(fold))[0]
        return float(at_least.sum()) / self.total

    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are, or branching applies."""
        if self.plan is None:
            return ""
        forced = len(self.design.forced)
        sizes = (max(self.design.most_columns(tau) - forced, 0) for tau in taus)
        fits = gammas * self.plan.k * sum(math.comb(self.design.q - forced, size) for size in sizes)
        return f"the verification takes more than {MOST_FITS:,} fits" if fits > MOST_FITS else ""

    def close_values(self, size: NearSize, listed: Listed) -> CloseValues | None:
        """Return the values that may belong to the list of a size, by branching; None if this takes too many fits."""
        if self.plan is not None:
            return super().close_values(size, listed)
        design, best = self.design, size.best if math.isfinite(size.best) else 0.0
        level = max(size.complete_to, best) * (1.0 + CROSSING_RTOL)
        try:
            supports = list(map(design.places, design.leaves(self.gamma, size.tau, None, lambda: level, MOST_FITS)))
        except TooManyFits:
            return None
        return CloseValues(np.array([self.exact(support) for support in supports]), supports, level)


def make_values(design: Design, gamma: float, plan: FoldPlan | None) -> SupportValues:
    """Return the values of supports at one gamma; see `SupportValues`."""
    if isinstance(design, GlmDesign):
        return BranchedValues(design, gamma, plan)
    assert isinstance(design, RidgeDesign)
    return EnumeratedValues(design, gamma, plan)


def _can_enumerate(checks: Checks, values: SupportValues, taus: Sequence[int], gammas: int) -> bool:
    """Return True if the supports of some sizes can be enumerated; otherwise the caveat gives the reason."""
    reason = values.enumeration_obstacle(taus, gammas)
    checks.caveat = f"optimality not verified ({reason})" if reason else ""
    return not reason


def _check_request(checks: Checks, record: NearRecord, values: SupportValues) -> None:
    """Check the sizes, gamma and status of a list against the request."""
    taus = [size.tau for size in record.sizes]
    wanted_sizes = sorted({min(tau, values.design.terms) for tau in record.request.taus})
    checks.require(taus == wanted_sizes, "sizes", f"is {taus}, but {wanted_sizes} were requested")
    words = f"is {record.gamma!r}, but {record.request.gammas} was requested"
    checks.require(record.request.gammas == (record.gamma,), "gamma", words)
    checks.require(0.0 <= record.request.gap < 1.0, "request.gap", f"{record.request.gap!r} is not in [0, 1)")
    limited = (size for size in record.sizes if record.most is None or size.models < record.most)
    open_size = next((size.tau for size in limited if not size.complete), None)
    words = f"is proved, but the list of size {open_size} is incomplete: it ends before its threshold"
    checks.require(open_size is None or record.status != "proved", "status", words)
    checks.mark_bounded_fields("sizes[].tau", "request.gammas", "request.taus")
    checks.leaves("checked only for its range, at least 0 and below 1", "request.gap")
    checks.leaves("checked only against the lengths of the lists", "most")
    if record.status != "proved":
        checks.leaves("not checked: whether a limit ended the run", "status")
    checks.end_part("sizes, gamma and status")


def check_near_list(checks: Checks, record: NearRecord, design: Design) -> bool:
    """Check the listed models, the claims about each size and, by enumeration, the completeness of the list.

    The result is False if the folds of a list by CV error are missing.
    """
    checks.require(record.by in ("cv", "objective"), "by", "must be cv or objective")
    by_folds = record.by == "cv"
    words = "must be given, because the list is by CV error"
    if not checks.require(not by_folds or design.plan is not None, "folds", words):
        return False
    values = make_values(design, record.gamma, design.plan if by_folds else None)
    _check_request(checks, record, values)
    every = _can_enumerate(checks, values, [size.tau for size in record.sizes], 1)
    for i, size in enumerate(record.sizes):
        checks.tell(i, len(record.sizes))
        path = f"sizes[{i}]."
        listed = _find_listed_models(checks, record, size.tau, values)
        if listed is None:
            return True
        _check_size(checks, record, size, path, values, listed)
        every = every and _check_completeness(checks, record, size, path, values, listed)
    checks.mark_bounded_fields("by", "within", "most", "models[].tau")
    if not every:
        checks.leaves("not checked: whether the list omits a model", "sizes[].complete_to")
    if any(size.models > LISTED_REFITS for size in record.sizes):
        checks.leaves(f"not checked: models after the {LISTED_REFITS} best of each size", "models[].value")
    checks.end_part(f"values of the {LISTED_REFITS} best models of each size, and the summary of each size")
    if every:
        checks.end_part(f"completeness of the lists, by {values.design.how} all supports")
    return True


def _check_completeness(
    checks: Checks, record: NearRecord, size: NearSize, path: str, values: SupportValues, listed: Listed
) -> bool:
    """Check the minimum of a size, and that its list is complete; return True if this was possible."""
    close = values.close_values(size, listed)
    if close is None:
        checks.caveat = f"optimality not verified ({values.design.limit_words})"
        return False
    least = float(close.values.min(initial=close.above))
    room, words = CROSSING_RTOL * least + 2.0 * values.slack(least, size.tau), f"the recomputed minimum {least!r}"
    checks.require_at_most(f"{path}lower", size.lower, least, words, room)
    below = np.flatnonzero(close.values < size.complete_to * (1.0 - CROSSING_RTOL)).tolist()
    unlisted = min((i for i in below if close.supports[i] not in listed), key=close.values.__getitem__, default=None)
    if unlisted is None:
        return True
    name = values.design.join_names(close.supports[unlisted])
    is_missing = close.values[unlisted] < size.complete_to - (1.0 + record.within) * room
    if checks.require(not is_missing, "models", f"the model {name} is missing"):
        checks.caveat = f"optimality not verified (up to rounding errors, the model {name} may be missing)"
    return False


def _find_listed_models(checks: Checks, record: NearRecord, tau: int, values: SupportValues) -> Listed | None:
    """Return the models of a size as column positions, with their values; None if one is not a valid support."""
    design, listed = values.design, Listed()
    for i, model in enumerate(record.models):
        if model.tau != tau:
            continue
        support, place = design.positions(model.support), f"models[{i}]."
        right = support is not None and design.count(support) == tau
        if not checks.require(right, f"{place}support", f"is not a set of {tau} features of the data"):
            return None
        if support is None or not check_allowed(checks, design, support, tau, place):
            return None
        checks.require(support not in listed, f"models[{i}].support", "is also the support of an earlier model")
        last = max(listed.values(), default=-math.inf)
        checks.require(model.value >= last, f"models[{i}].value", "is smaller than the value of the previous model")
        listed[support] = model.value
        if len(listed) <= LISTED_REFITS:
            truth = values.evaluate_support(support, exact=len(listed) == 1)
            checks.close(f"models[{i}].value", model.value, truth, values.slack(truth, tau))
    return listed


def _check_size(
    checks: Checks, record: NearRecord, size: NearSize, path: str, values: SupportValues, listed: Listed
) -> None:
    """Check the claims about a size against its listed models."""
    design = values.design
    adjusted = set(design.adjusted_names)  # columns in no listed support
    checks.require_equal(f"{path}models", size.models, len(listed))
    if not listed:
        nothing = math.isinf(size.best) and not size.never and adjusted.issuperset(size.always)
        checks.require(nothing, f"{path}best", "must be null, because the list of this size is empty")
        return
    least, most = min(listed.values()), max(listed.values())
    room = CROSSING_RTOL * least + 2.0 * values.slack(least, size.tau)
    checks.close(f"{path}best", size.best, least, room)
    checks.require_at_most(f"{path}lower", size.lower, size.best, f"the best value {size.best!r}", room)
    checks.close(f"{path}threshold", size.threshold, (1.0 + record.within) * least, 2.0 * (1.0 + record.within) * room)
    wide = (1.0 + record.within) * room
    words = f"the list has the value {most!r}, which exceeds the threshold {size.threshold!r}"
    checks.require(most <= size.threshold + 2.0 * wide, f"{path}models", words)
    checks.require_at_most(f"{path}complete_to", size.complete_to, size.threshold, words.partition("exceeds ")[2], wide)
    few = record.most is None or size.models <= record.most
    checks.require(few, f"{path}models", f"is {size.models}, but at most {record.most} were requested")
    certain = [s for s, value in listed.items() if size.complete or value < size.complete_to]
    names = design.index
    for field, wanted in (("always", True), ("never", False)):
        right = {n for n, j in names.items() if certain and all((j in s) is wanted for s in certain)} - adjusted
        said = [name for name in getattr(size, field) if name not in adjusted]
        which = "every" if wanted else "no"
        words = f"must have the {len(right)} features that {which} listed model up to `complete_to` contains"
        checks.require(set(said) == right and len(said) == len(right), path + field, words)
    terms = () if design.allowed is None else design.allowed.terms
    first_of = {j: term.columns[0] for term in terms for j in term.columns}
    _replacements(checks, size, path, names, (listed, first_of))


def _replacements(
    checks: Checks, size: NearSize, path: str, names: Mapping[str, int], given: tuple[Listed, Mapping[int, int]]
) -> None:
    """Check the counts of replacements, and that no more frequent pair is missing.

    Parameters
    ----------
    given : pair
        Listed models, and the first column of the term of each column.
    """
    listed, first_of = given
    joined: dict[Support, list[int]] = {}
    for support in {tuple(sorted({first_of.get(j, j) for j in columns})) for columns in listed}:
        for j in support:
            joined.setdefault(tuple(i for i in support if i != j), []).append(j)
    swaps = Counter(tuple(sorted(pair)) for inside in joined.values() for pair in combinations(inside, 2))
    pairs = [tuple(sorted((names.get(swap.feature, -1), names.get(swap.other, -1)))) for swap in size.replacements]
    fewest = min((swap.pairs for swap in size.replacements), default=0)
    complete = len(set(pairs)) == len(pairs) and all(n <= fewest for pair, n in swaps.items() if pair not in pairs)
    checks.require(complete, f"{path}replacements", "omits features that replace each other in the models")
    for swap_said, pair in zip(size.replacements, pairs, strict=True):
        checks.require_equal(f"{path}replacements.{swap_said.feature}", swap_said.pairs, swaps[pair])
    checks.mark_recomputed_fields(f"{path}replacements")


def check_common(checks: Checks, record: CommonRecord, design: Design) -> None:
    """Check the model of a subset that all folds share, its CV errors, the table and, if possible, all bounds."""
    check_fit(checks, design, record, record)
    checks.end_part("coefficients and intercept of the full-data fit")
    own = make_values(design, record.gamma, design.plan)
    taus = sorted({min(tau, own.design.terms) for tau in record.request.taus})
    _check_bounds_of_common(checks, record, own, taus)
    every = own.can_branch or _can_enumerate(checks, own, taus, len(record.request.gammas))
    for i, row in enumerate(record.table):
        checks.tell(i, len(record.table))
        if math.isfinite(row.cv_error):
            _check_common_row(checks, record, i, make_values(design, row.gamma, design.plan))
    grid = [(row.gamma, row.tau) for row in record.table]
    checks.require((record.gamma, record.tau) in grid, "tau", "the reported pair is not in the table")
    checks.end_part("CV errors of the table and of the answer, by refits of every fold")
    for i, row in enumerate(record.table if every else ()):
        checks.tell(i, len(record.table))
        values = make_values(design, row.gamma, design.plan)
        least = values.lowest(row.tau, max(row.lower, record.lower))
        if least is None:
            checks.caveat, every = "optimality not verified (the verification needs too many fits in every fold)", False
            break
        room = CROSSING_RTOL * least + values.slack(least, row.tau)
        checks.require(row.lower <= least + room, f"table[{i}].lower", f"exceeds the recomputed minimum {least!r}")
        checks.require_at_most("lower", record.lower, least, f"{least!r}, the minimum of table row {i}", room)
    if every:
        checks.end_part(f"lower bounds of every pair, by {own.design.how} all supports")


def _check_bounds_of_common(checks: Checks, record: CommonRecord, values: SupportValues, taus: list[int]) -> None:
    """Check that the grid is the requested one, and that bounds, gap and status follow from the table."""
    grid = [(row.gamma, row.tau) for row in record.table]
    wanted_grid = [(gamma, tau) for gamma in record.request.gammas for tau in taus]
    words = "must contain each (tau, gamma) pair of the requested grid once"
    checks.require(grid == wanted_grid or record.status != "proved", "table", words)
    lower = min((row.lower for row in record.table), default=0.0) if grid == wanted_grid else 0.0
    words = f"the smallest lower bound of the table, {lower!r}"
    checks.require_at_most("lower", record.lower, lower * (1.0 + SAME), words)
    checks.require_between("cv_error", record.cv_error, record.lower, record.upper)
    width = max(record.request.gap, CROSSING_RTOL) * record.upper
    if math.isfinite(record.upper):
        width += 2.0 * values.slack(record.upper, record.tau)
    is_right = record.upper - record.lower <= width or record.status != "proved"
    checks.require(is_right, "status", "is proved, but upper - lower exceeds the requested gap")
    gap = (record.upper - record.lower) / record.upper if 0.0 < record.upper < math.inf else 0.0
    checks.close("gap", record.gap, gap, 1e-12)
    checks.mark_bounded_fields("gamma", "table[].gamma", "table[].tau", "request.gammas", "request.taus", "request.gap")
    checks.leaves("checked only for its range, at least 0 and below 1", "request.gap")
    if record.status != "proved":
        checks.leaves("not checked: whether a limit ended the run", "status")
    checks.end_part("the requested grid, bounds and status agree with each other")


def _check_common_row(checks: Checks, record: CommonRecord, i: int, values: SupportValues) -> None:
    """Check the CV error of a row of the table, and of the answer if it is that row."""
    row, design = record.table[i], values.design
    support = checked_support(checks, design, row.support, row.tau, f"table[{i}].support")
    if support is None:
        return
    if design.count(support) != row.tau:
        checks.require(False, f"table[{i}].support", f"is not a set of {row.tau} features of the data")
        return
    check_allowed(checks, design, support, row.tau, f"table[{i}].")
    best = (row.gamma, row.tau) == (record.gamma, record.tau)
    truth = values.evaluate_support(support, exact=best)
    slack = values.slack(truth, row.tau)
    checks.close(f"table[{i}].cv_error", row.cv_error, truth, slack)
    if best:
        checks.require(set(row.support) == set(record.support), "support", f"differs from table[{i}].support")
        checks.close("cv_error", record.cv_error, row.cv_error, slack)
        checks.close("upper", record.upper, truth, CROSSING_RTOL * truth + 2.0 * slack)

"""Checks of near-optimal lists, common subsets and single fits under side constraints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate import enumeration
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, NearRecord, NearSize
from sparsecv_mio.certificate.parts import Side
from sparsecv_mio.certificate.refits import check_allowed, checked_support
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.model_space import NONE
from sparsecv_mio.problem.coordinates import objective_slack, size_of_target
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL


def check_side(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> bool:
    """Check side constraints: they concern features of the data, and the model satisfies them; return the result.

    Parameters
    ----------
    record : FitRecord
        Record whose support has features of the data.
    side : Side
        Side constraints of the record.
    """
    features = set(dataset.names)
    right = [checks.require(name in features, f"side.{place}", f"{name!r} is not a feature")
             for place, name in _features(side)]  # fmt: skip
    if not all(right):
        return False
    names = tuple(dataset.names[j] for j in varying_columns(dataset.X).tolist())
    allowed = enumeration.AllowedSupports(names, side.restrictions or NONE, side.together or ())
    keeps = features.issuperset(record.support) and set(names).issuperset(record.support)
    places = [*(names.index(name) for name in record.support), *allowed.adjusted_columns] if keeps else []
    keeps = keeps and allowed.allows(places) and allowed.count(places) <= record.tau
    checks.require(keeps, "support", "does not keep to the side constraints")
    ends = _coefficient_ends(side)
    X, y = dataset.X, size_of_target(dataset, record.data.intercept)
    for name, value in record.coefficients.items():
        if name in ends and name in features:
            column = X[:, dataset.names.index(name)]
            reach = float(np.abs(column).max() if record.data.intercept == "none" else np.ptp(column))
            low, high = ends[name]
            slack = enumeration.NO_EFFECT * y / reach if reach > 0.0 else 0.0
            inside = (
                low - slack - ACCURATE_RTOL * _size_of_end(low)
                <= value
                <= high + slack + ACCURATE_RTOL * _size_of_end(high)
            )
            checks.require(
                inside, f"coefficients.{name}", f"is {value!r}, not in [{low:g}, {high:g}] of the constraints"
            )
    checks.mark_bounded_fields("side.")
    return checks.end_part("side constraints: features of the data, kept to by the model")


def check_least(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> None:
    """Compare the lower bound with all models allowed by the side constraints, if these are few.

    With boxes no constrained fit is made here: only supports whose ridge fit lies within the boxes are compared.

    Parameters
    ----------
    side : Side
        Side constraints of the record, which passed `check_side`.
    """
    restrictions = side.restrictions or NONE
    design = enumeration.UnitColumns.from_restricted_dataset(
        dataset, record.data.scale, record.data.intercept, restrictions
    )
    design = replace(design, allowed=enumeration.AllowedSupports(design.names, restrictions, side.together or ()))
    if reason := design.enumeration_obstacle([record.tau], 1, 1):
        checks.caveat = f"optimality not verified ({reason})"
        return
    if side.box:
        checks.caveat = "optimality not verified (coefficients are held in boxes)"
        least, compared = _least_in_boxes(design, record, side), "supports whose coefficients are within the boxes"
    else:
        checks.caveat = ""
        least = enumeration.least_objective(design, record.gamma, record.tau)
        compared = "supports within the side constraints"
    slack = objective_slack(least, dataset, record.data.intercept) if math.isfinite(least) else 0.0
    checks.require_at_most("lower", record.lower, least, f"the objective {least!r} of a model", slack)
    checks.end_part(f"lower, by enumeration of all {compared}")


def check_within_box(checks: Checks, record: FitRecord, end: float, dataset: Dataset) -> None:
    """Compare the lower bound with all models of the size with coefficients in [-end, end], if these are few.

    Parameters
    ----------
    end : float
        Bound of the assumed box of the record.
    """
    beyond = [name for name, value in record.coefficients.items() if not abs(value) <= end]
    checks.require(not beyond, "assumed_box", f"is {end!r}, less than the coefficient of {', '.join(beyond)}")
    design = enumeration.UnitColumns.from_restricted_dataset(dataset, record.data.scale, record.data.intercept, None)
    checks.caveat = f"the lower bound is conditional: it holds for coefficients within {end:g} of zero"
    if design.enumeration_obstacle([record.tau], 1, 1):
        checks.caveat += "; that it does is not verified (too many supports to try)"
        return
    for support in design.supports(record.tau):
        model = design.refit(support, record.gamma, None)
        if np.all(np.abs(model.beta) <= end * (1.0 - ACCURATE_RTOL)):
            slack = objective_slack(model.objective, dataset, record.data.intercept)
            words = f"{model.objective!r}, reached within the box by {design.join_names(support)}"
            if not checks.require_at_most("lower", record.lower, model.objective, words, slack):
                break
    checks.end_part("lower, by enumeration of all supports whose coefficients are within the assumed box")


def _least_in_boxes(design: enumeration.UnitColumns, record: FitRecord, side: Side) -> float:
    """Return the minimum objective of ridge fits with coefficients within the boxes; inf without such fits."""
    allowed, least = design.allowed, math.inf
    assert allowed is not None
    ends = _coefficient_ends(side)
    low, high = (np.array([ends.get(name, (-math.inf, math.inf))[i] for name in allowed.names]) for i in (0, 1))
    for supports in allowed.support_tables(record.tau).values():
        for support in map(tuple, supports.tolist()):
            if allowed.allows(support):
                model, at = design.refit(support, record.gamma, None), list(support)
                if _is_well_inside(model.beta, low[at], high[at]):
                    least = min(least, model.objective)
    return least


def _is_well_inside(beta: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    room = ACCURATE_RTOL * np.abs(beta)
    return bool(np.all((beta - room >= low) & (beta + room <= high)))


def _size_of_end(end: float) -> float:
    return abs(end) if math.isfinite(end) else 0.0


def _coefficient_ends(side: Side) -> Mapping[str, tuple[float, float]]:
    """Return the bounds of bounded coefficients, including signs."""
    restrictions = side.restrictions or NONE
    intervals = [(name, 0.0, math.inf) for name in restrictions.nonnegative]
    intervals += [(name, -math.inf, 0.0) for name in restrictions.nonpositive]
    for bounds in side.box or ():
        low, high = bounds.low, bounds.high
        intervals.append((bounds.feature, -math.inf if low is None else low, math.inf if high is None else high))
    ends: dict[str, tuple[float, float]] = {}
    for name, low, high in intervals:
        before = ends.get(name, (-math.inf, math.inf))
        ends[name] = max(before[0], low), min(before[1], high)
    return ends


def _features(side: Side) -> Iterator[tuple[str, str]]:
    """Yield every named feature, with the name of its field."""
    restrictions = side.restrictions or NONE
    yield from ((f"restrictions.{field}", name) for field, name in restrictions.named_columns())
    yield from (("together", name) for group in side.together or () for name in group)
    yield from (("box", bounds.feature) for bounds in side.box or ())


LISTED_REFITS = 200  # listed models of a size that are refitted, the best and the last ones
Listed = dict[tuple[int, ...], float]


class SupportValues:
    """The value of any support at one gamma: its training objective, or its CV error with one support for all folds.

    Parameters
    ----------
    plan : FoldPlan or None
        Folds; None for the training objective.
    """

    how = "enumeration of"

    def __init__(self, design: enumeration.UnitColumns, gamma: float, plan: FoldPlan | None) -> None:
        self.design, self.gamma, self.plan = design, gamma, plan
        self.total = 1.0 if plan is None else float(Scored.of(design.dataset, plan).total)

    def exact(self, support: Sequence[int]) -> float:
        """Return the value of a support from fits of the rows.

        Parameters
        ----------
        support : sequence of int
            Positions in `design.columns`.
        """
        design = self.design
        if self.plan is None:
            return design.refit(tuple(support), self.gamma, None).objective
        errors, *_ = enumeration.held_out_errors(design, self.plan, [tuple(support)] * self.plan.k, self.gamma)
        return float(errors.sum()) / self.total

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
        design = self.design
        if self.plan is None:
            return objective_slack(value, design.dataset, design.intercept)
        return design.slack(value, self.gamma, tau, CROSSING_RTOL)

    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are."""
        return self.design.enumeration_obstacle(list(taus), gammas, 1 if self.plan is None else self.plan.k)

    def check_completeness(self, checks: Checks, record: NearRecord, size: NearSize, path: str, listed: Listed) -> bool:
        """Check by enumeration that the list of a size is complete; return True if this was possible."""
        supports, truths = [], []
        for table in self.design.exactly(size.tau):
            truths.append(self.evaluate_all(table))
            supports += list(map(tuple, table.tolist()))
        truth = np.concatenate(truths)
        if self.plan is None:
            _fit_anew(truth, supports, size, self, listed)
        least = float(truth.min())
        room = self.check_minimum(checks, size, path, least)
        for i in np.flatnonzero(truth < size.complete_to - (1.0 + record.within) * room).tolist():
            if supports[i] not in listed:
                checks.require(False, "models", f"{self.design.join_names(supports[i])} is missing")
                break
        return True

    def check_minimum(self, checks: Checks, size: NearSize, path: str, least: float) -> float:
        """Check the minimum value of a size against the true one; return the allowance for rounding."""
        room = CROSSING_RTOL * least + 2.0 * self.slack(least, size.tau)
        checks.require_at_most(f"{path}lower", size.lower, least, f"the true minimum {least!r}", room)
        checks.require_at_least(f"{path}best", size.best, least, f"the true minimum {least!r}", room)
        return room

    def evaluate_all(self, supports: IntArray) -> FloatArray:
        """Return the values of all supports of one size, by closed forms if these are accurate enough."""
        design, unit = self.design, self.design.y_unit**2
        if self.plan is None:
            train = enumeration.moments(design, np.zeros(0, dtype=np.int64))
            fits = list(enumeration.gram_fits(design, train, self.gamma, supports))
            values = np.concatenate([chunk.objective for chunk in fits]) * unit
            for a in np.flatnonzero(np.concatenate([chunk.by_rows for chunk in fits])).tolist():
                values[a] = self.exact(supports[a].tolist())
            return np.asarray(values)
        totals, doubt = np.zeros(len(supports)), np.full(len(supports), not self.plan.scores_all_left_out.all())
        if int(self.plan.left_sizes.max()) > enumeration.IDENTITY_ROWS:
            for fold in range(self.plan.k):
                self._add_gram_errors(supports, fold, totals, doubt)
        else:
            for _, _, error, sure in enumeration.all_objectives(design, self.plan, self.gamma, supports):
                totals += error
                doubt |= ~sure
        values = totals * unit / self.total
        for a in np.flatnonzero(doubt).tolist():
            values[a] = self.exact(supports[a].tolist())
        return np.asarray(values)

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

    def _add_gram_errors(self, supports: IntArray, fold: int, totals: FloatArray, doubt: np.ndarray) -> None:
        assert self.plan is not None
        design, test, train = self.design, self.plan.scored_rows(fold), self.plan.train_rows(fold)
        Z, t, root = design.Z[test], design.t[test], design.root[test]
        if design.intercept == "fold":
            heft = design.root[train]
            share = heft / float(heft @ heft)
            Z, t = Z - np.outer(root, share @ design.Z[train]), t - root * float(share @ design.t[train])
        at = 0
        moments = enumeration.moments(design, test)
        for value, beta, _, by_rows in enumeration.gram_fits(design, moments, self.gamma, supports):
            some = slice(at, at + len(value))
            residual = t - np.einsum("ics,cs->ci", Z[:, supports[some]], beta)
            totals[some] += np.einsum("ci,ci->c", residual, residual)
            doubt[some] |= by_rows
            at = some.stop


def _can_enumerate(checks: Checks, values: SupportValues, taus: Sequence[int], gammas: int) -> bool:
    """Return True if the supports of some sizes can be enumerated; otherwise the caveat gives the reason."""
    reason = values.enumeration_obstacle(taus, gammas)
    checks.caveat = f"optimality not verified ({reason})" if reason else ""
    return not reason


def check_near_list(checks: Checks, record: NearRecord, values: SupportValues) -> None:
    """Check the listed models, the claims about each size and, by enumeration, the completeness of the list.

    Parameters
    ----------
    values : SupportValues
        Values of models at the gamma of the record.
    """
    taus = [size.tau for size in record.sizes]
    wanted_sizes = sorted({min(tau, values.design.terms) for tau in record.request.taus})
    checks.require(taus == wanted_sizes, "sizes", f"are {taus}, {wanted_sizes} were asked for")
    checks.require(record.request.gammas == (record.gamma,), "gamma", "is not the one that was asked for")
    checks.require(0.0 <= record.request.gap < 1.0, "request.gap", f"{record.request.gap!r} is not in [0, 1)")
    done = all(size.complete or (record.most is not None and size.models >= record.most) for size in record.sizes)
    checks.require(done or record.status != "proved", "status", "is proved, and a list ends before its threshold")
    checks.mark_bounded_fields("sizes[].tau", "request.gammas", "request.taus")
    checks.leaves("within that it is read", "request.gap", "most")
    if record.status != "proved":
        checks.leaves("that a limit came is read", "status")
    checks.end_part("sizes, gamma and status")
    every = _can_enumerate(checks, values, taus, 1)
    for i, size in enumerate(record.sizes):
        checks.tell(i, len(record.sizes))
        path = f"sizes[{i}]."
        listed = _find_listed_models(checks, record, size.tau, values)
        if listed is None:
            return
        _check_size(checks, record, size, path, values, listed)
        if every and not values.check_completeness(checks, record, size, path, listed):
            every = False
    checks.mark_bounded_fields("by", "within", "most", "models[].tau")
    if not every:
        checks.leaves("that no model is missing is read", "sizes[].complete_to")
    if any(size.models > LISTED_REFITS for size in record.sizes):
        checks.leaves("that of other models is read", "models[].value")
    checks.end_part(f"values of the {LISTED_REFITS} best models of a size, what is said of each size")
    if every:
        checks.end_part(f"that no model is missing, by {values.how} all supports")


def _find_listed_models(checks: Checks, record: NearRecord, tau: int, values: SupportValues) -> Listed | None:
    """Return the models of a size as column positions, with their values; None if one is not a valid support."""
    design, listed = values.design, Listed()
    for i, model in enumerate(record.models):
        if model.tau != tau:
            continue
        support = design.positions(model.support)
        if (
            support is None
            or design.count(support) != tau
            or not check_allowed(checks, design, support, tau, f"models[{i}].")
        ):
            checks.require(False, f"models[{i}].support", f"is not a set of {tau} features of the data")
            return None
        checks.require(support not in listed, f"models[{i}].support", "is there twice")
        last = max(listed.values(), default=-math.inf)
        checks.require(model.value >= last, f"models[{i}].value", "is below that of the model before")
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
    adjusted = {design.dataset.names[j] for j in design.free}  # columns in no listed support
    checks.require_equal(f"{path}models", size.models, len(listed))
    if not listed:
        nothing = math.isinf(size.best) and not size.never and adjusted.issuperset(size.always)
        checks.require(nothing, f"{path}best", "has no model")
        return
    least, most = min(listed.values()), max(listed.values())
    room = CROSSING_RTOL * least + 2.0 * values.slack(least, size.tau)
    checks.close(f"{path}best", size.best, least, room)
    checks.require(size.lower <= size.best + room, f"{path}lower", "exceeds best")
    checks.close(f"{path}threshold", size.threshold, (1.0 + record.within) * least, 2.0 * (1.0 + record.within) * room)
    wide = (1.0 + record.within) * room
    checks.require(most <= size.threshold + 2.0 * wide, f"{path}models", "one of them is above the threshold")
    checks.require(size.complete_to <= size.threshold + wide, f"{path}complete_to", "exceeds the threshold")
    few = record.most is None or size.models <= record.most
    checks.require(few, f"{path}models", f"are {size.models}, more than {record.most}")
    certain = [s for s, value in listed.items() if size.complete or value < size.complete_to]
    names = design.index
    for field, wanted in (("always", True), ("never", False)):
        right = {n for n, j in names.items() if certain and all((j in s) is wanted for s in certain)} - adjusted
        said = [name for name in getattr(size, field) if name not in adjusted]
        checks.require(set(said) == right and len(said) == len(right), path + field, "does not agree with the models")
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
    joined: dict[tuple[int, ...], list[int]] = {}
    for support in {tuple(sorted({first_of.get(j, j) for j in columns})) for columns in listed}:
        for j in support:
            joined.setdefault(tuple(i for i in support if i != j), []).append(j)
    swaps = Counter(tuple(sorted(pair)) for inside in joined.values() for pair in combinations(inside, 2))
    pairs = [tuple(sorted((names.get(swap.feature, -1), names.get(swap.other, -1)))) for swap in size.replacements]
    fewest = min((swap.pairs for swap in size.replacements), default=0)
    complete = len(set(pairs)) == len(pairs) and all(n <= fewest for pair, n in swaps.items() if pair not in pairs)
    checks.require(complete, f"{path}replacements", "leaves out features that stand in each other's place")
    for swap_said, pair in zip(size.replacements, pairs, strict=True):
        checks.require_equal(f"{path}replacements.{swap_said.feature}", swap_said.pairs, swaps[pair])
    checks.mark_recomputed_fields(f"{path}replacements")


def _fit_anew(
    truth: FloatArray, supports: Sequence[tuple[int, ...]], size: NearSize, values: SupportValues, listed: Listed
) -> None:
    """Refit rows if objectives from moments contradict a record, since moments lose digits in nearly perfect fits.

    The check stops at the first support that still contradicts the record.
    """
    is_listed = np.array([support in listed for support in supports], dtype=bool)
    best, least = min(listed, key=listed.__getitem__, default=()), max(size.lower, 0.0) * (1.0 - CROSSING_RTOL)
    first = np.array([support == best for support in supports], dtype=bool)
    for i in np.flatnonzero((truth < least) | first | (~is_listed & (truth < size.complete_to))).tolist():
        claimed = least if is_listed[i] else max(least, size.complete_to * (1.0 - CROSSING_RTOL))
        truth[i] = values.exact(supports[i])
        if truth[i] < claimed - 2.0 * values.slack(claimed, size.tau):
            return


def check_common(checks: Checks, record: CommonRecord, values_at: Callable[[float], SupportValues]) -> None:
    """Check the CV errors and bounds of a common subset and of the table, by enumeration if supports are few.

    Parameters
    ----------
    values_at : callable
        Function that returns the CV errors of supports at a gamma.
    """
    own = values_at(record.gamma)
    taus = sorted({min(tau, own.design.terms) for tau in record.request.taus})
    _check_bounds_of_common(checks, record, own, taus)
    every = own.can_branch or _can_enumerate(checks, own, taus, len(record.request.gammas))
    for i, row in enumerate(record.table):
        checks.tell(i, len(record.table))
        if math.isfinite(row.cv_error):
            _check_common_row(checks, record, i, values_at(row.gamma))
    grid = [(row.gamma, row.tau) for row in record.table]
    checks.require((record.gamma, record.tau) in grid, "tau", "is not in the table")
    checks.end_part("CV errors of the table, that of the answer by a refit of every fold")
    for i, row in enumerate(record.table if every else ()):
        checks.tell(i, len(record.table))
        values = values_at(row.gamma)
        least = values.lowest(row.tau, max(row.lower, record.lower))
        if least is None:
            checks.caveat, every = "optimality not verified (it takes many fits of every fold)", False
            break
        room = CROSSING_RTOL * least + values.slack(least, row.tau)
        checks.require(row.lower <= least + room, f"table[{i}].lower", f"exceeds the true minimum {least!r}")
        checks.require(record.lower <= least + room, "lower", f"{record.lower!r} exceeds {least!r}")
    if every:
        checks.end_part(f"lower of every pair, by {own.how} all supports")


def _check_bounds_of_common(checks: Checks, record: CommonRecord, values: SupportValues, taus: list[int]) -> None:
    """Check that the grid is the requested one, and that bounds, gap and status follow from the table."""
    grid = [(row.gamma, row.tau) for row in record.table]
    wanted_grid = [(gamma, tau) for gamma in record.request.gammas for tau in taus]
    checks.require(grid == wanted_grid or record.status != "proved", "table", "is not the requested grid, once")
    lower = min((row.lower for row in record.table), default=0.0) if grid == wanted_grid else 0.0
    checks.require(record.lower <= lower * (1.0 + 1e-12), "lower", f"{record.lower!r} exceeds the least of the table")
    checks.require(record.lower <= record.cv_error <= record.upper, "cv_error", "is not between lower and upper")
    width = max(record.request.gap, CROSSING_RTOL) * record.upper
    if math.isfinite(record.upper):
        width += 2.0 * values.slack(record.upper, record.tau)
    closed = record.upper - record.lower <= width
    checks.require(closed or record.status != "proved", "status", "is proved, and upper - lower exceeds the gap")
    gap = (record.upper - record.lower) / record.upper if 0.0 < record.upper < math.inf else 0.0
    checks.close("gap", record.gap, gap, 1e-12)
    checks.mark_bounded_fields("gamma", "table[].gamma", "table[].tau", "request.gammas", "request.taus", "request.gap")
    checks.leaves("within that it is read", "request.gap")
    if record.status != "proved":
        checks.leaves("that a limit came is read", "status")
    checks.end_part("the requested grid, bounds and status agree with each other")


def _check_common_row(checks: Checks, record: CommonRecord, i: int, values: SupportValues) -> None:
    """Check the CV error of a row of the table, and of the answer if it is that row."""
    row, design = record.table[i], values.design
    most, adjusted = design.most_columns(row.tau), [design.dataset.names[j] for j in design.free]
    support = checked_support(checks, row.support, design.index, most, f"table[{i}].support", adjusted=adjusted)
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
        checks.require(set(row.support) == set(record.support), "support", "is not that of the table")
        checks.close("cv_error", record.cv_error, row.cv_error, slack)
        checks.close("upper", record.upper, truth, CROSSING_RTOL * truth + 2.0 * slack)

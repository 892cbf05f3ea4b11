"""`verify`: check a record against the data by plain linear algebra.

Nothing here comes from the search: folds are rebuilt from their spec, supports refitted by `problem.objective`, errors
summed again, and with at most 15 varying features the optimality of the supports is proved afresh by enumeration.
What cannot be recomputed at that price is only re-read, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from sparsecv_mio.certificate.checks import Checks, VerifyReport
from sparsecv_mio.certificate.enumeration import (
    Design,
    enumeration_cost,
    fold_optima,
    full_optimum,
    held_out_errors,
)
from sparsecv_mio.certificate.record import (
    DataInfo,
    PathRecord,
    PathRow,
    Record,
    TableRow,
    relative_gap,
)
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.problem.objective import RidgeFit, fit, r_squared, scored_rows, standard_error, varying_columns

F_RTOL = 1e-9
H_RTOL = 1e-7
COEFFICIENT_RTOL = 1e-6
NOISE = 1e-13  # rounding of a residual against the largest target
ENUMERATE_PAIR = 15  # varying features up to which the reported pair is enumerated
ENUMERATE_GRID = 12  # and the whole grid
COST_LIMIT = 5e10


def verify(record: Record, dataset: Dataset, folds: FoldPlan | None = None) -> VerifyReport:
    """Check a cross-validation record.

    Parameters
    ----------
    record : Record
    dataset : Dataset
        With the record's target and features, and the columns its folds need.
    folds : FoldPlan, optional
        By default rebuilt from the record's spec and seed; needed for folds that came from labels or a splitter.

    Returns
    -------
    VerifyReport
        With every disagreement found; a wrong data set or wrong folds end the check at once.

    Raises
    ------
    BadInput
        The folds cannot be rebuilt from their spec.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sparsecv_mio import cross_validate
    >>> data = Dataset.from_arrays(np.eye(6)[:, :2] * 3.0, [3.0, 1.0, 0.5, 0.0, -0.5, 0.0])
    >>> record = cross_validate(data, make_folds("loo", data), gammas=[0.1], taus=[1, 2])
    >>> verify(record, data).ok
    True
    >>> verify(replace(record, intercept=record.intercept + 1.0), data).failures[0].field
    'intercept'
    """
    checks = Checks()
    if not _data(checks, record.data, dataset):
        return checks.report()
    plan = make_folds(record.folds.spec, dataset, record.folds.seed or 0) if folds is None else folds
    if not _folds(checks, record, plan):
        return checks.report()
    _claims(checks, record, dataset)
    supports = _fold_supports(checks, record, dataset)
    if supports is None:
        return checks.report()
    _errors(checks, record, dataset, plan, supports)
    if record.one_se is not None:
        _one_se(checks, record, plan)
    _refit(checks, record, dataset)
    _optimality(checks, record, dataset, plan, supports)
    checks.reread.append("work, versions, warnings")
    return checks.report()


def _data(checks: Checks, data: DataInfo, dataset: Dataset) -> bool:
    before = len(checks.failures)
    checks.equal("data.n", data.n, dataset.n)
    checks.equal("data.p", data.p, dataset.p)
    checks.equal("data.target", data.target, dataset.target)
    checks.equal("data.names", data.names, dataset.names)
    checks.equal("data.fingerprint", data.fingerprint, dataset.fingerprint)
    words = {"scale": ("length", "variance", "none"), "intercept": ("fold", "global", "none")}
    for name, allowed in words.items():
        checks.that(getattr(data, name) in allowed, f"data.{name}", f"must be one of {', '.join(allowed)}")
    checks.part("data: size, names, fingerprint", before)
    return len(checks.failures) == before


def _folds(checks: Checks, record: Record, plan: FoldPlan) -> bool:
    before = len(checks.failures)
    checks.equal("folds.k", record.folds.k, plan.k)
    checks.equal("folds.digest", record.folds.digest, plan.digest)
    checks.that(
        len(record.chosen_folds) == plan.k, "chosen_folds", f"{len(record.chosen_folds)} entries for {plan.k} folds"
    )
    checks.part(f"folds: {plan.k}, rebuilt from {record.folds.spec!r}, same digest", before)
    return len(checks.failures) == before


def _claims(checks: Checks, record: Record, dataset: Dataset) -> None:
    """The record's own arithmetic: bounds in order, gap, status, and the table behind them."""
    before, slack = len(checks.failures), record.allowance
    size = float(np.abs(dataset.y).max() if record.data.intercept == "none" else np.ptp(dataset.y))
    checks.that(
        0.0 <= slack <= max(1e-6 * size * size, 1e-3 * record.cv_error), "allowance", f"{slack!r} is no rounding error"
    )
    checks.that(record.tie_width >= 0.0, "tie_width", "is negative")
    checks.that(record.lower <= record.cv_error + slack, "lower", f"{record.lower!r} exceeds cv_error")
    checks.that(record.cv_error <= record.upper + slack, "upper", f"{record.upper!r} is below cv_error")
    gap = relative_gap(record.lower, record.upper)
    checks.that(gap == record.gap or abs(gap - record.gap) <= 1e-12, "gap", f"lower and upper give {gap!r}")
    width = record.request.gap * record.upper + record.tie_width + record.allowance
    proved = record.upper - record.lower <= width * (1.0 + 1e-12)
    checks.that(proved or record.status != "proved", "status", "upper - lower exceeds the requested gap")
    rows = {(row.gamma, row.tau): row for row in record.table}
    grid = {(gamma, tau) for gamma in record.request.gammas for tau in record.request.taus}
    checks.that(set(rows) == grid and len(rows) == len(record.table), "table", "does not hold the requested grid once")
    for i, row in enumerate(record.table):
        checks.that(row.lower <= row.upper + slack, f"table[{i}].lower", "exceeds upper")
        checks.that(0 <= row.folds_decided <= row.folds == record.folds.k, f"table[{i}].folds_decided", "out of range")
    own = rows.get((record.gamma, record.tau))
    if checks.that(own is not None, "gamma", "the reported pair is not in the table") and own is not None:
        checks.close("upper", record.upper, own.upper, slack)
        checks.close("cv_error", record.cv_error, own.cv_error, slack)
    least = min((row.lower for row in record.table), default=math.inf)
    checks.that(
        record.lower <= least + slack, "lower", f"{record.lower!r} exceeds the lower bound of a pair, {least!r}"
    )
    checks.part("bounds, gap and status agree with each other and with the table", before)


def _positions(names: Iterable[str], index: dict[str, int]) -> tuple[int, ...] | None:
    found = [index.get(name) for name in names]
    return None if None in found or len(set(found)) < len(found) else tuple(sorted(f for f in found if f is not None))


def _fold_supports(checks: Checks, record: Record, dataset: Dataset) -> list[tuple[int, ...]] | None:
    index = {dataset.names[j]: j for j in varying_columns(dataset.X).tolist()}
    size = min(record.tau, len(index))
    translated = [_positions(names, index) for names in record.chosen_folds.supports]
    supports: list[tuple[int, ...]] = []
    for fold, which in enumerate(record.chosen_folds.which.tolist()):
        support = translated[which]
        if support is None or len(support) > size:
            checks.that(False, f"chosen_folds[{fold}].support", f"is not a set of up to {size} features of the data")
            return None
        supports.append(support)
    return supports


def _errors(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan, supports: list[tuple[int, ...]]) -> None:
    before = len(checks.failures)
    found, how = held_out_errors(dataset, plan, supports, record.gamma, record.data.scale, record.data.intercept)
    said = record.chosen_folds.error
    # a residual is a difference of numbers of the target's size: near 0 it is exact only against that size
    reach = H_RTOL * np.sqrt(found) + 1e-8 * float(np.ptp(dataset.y)) * np.sqrt(plan.sizes)
    wrong = np.flatnonzero(~(np.abs(np.sqrt(np.maximum(said, 0.0)) - np.sqrt(found)) <= reach) | (said < 0.0))
    for fold in wrong[:3].tolist():
        checks.close(f"chosen_folds[{fold}].error", float(said[fold]), float(found[fold]), 0.0)
    checks.part(f"held-out error of every fold ({how})", before)
    rows, before = scored_rows(plan.labels), len(checks.failures)
    mean = float(found.sum()) / rows
    low, high = 0.0, math.inf
    if record.estimate:  # moved into the interval of its pair
        low, high = next(
            ((r.lower, r.upper) for r in record.table if (r.gamma, r.tau) == (record.gamma, record.tau)), (low, high)
        )
    for found_mean, tolerance in ((mean, H_RTOL * mean), (float(said.sum()) / rows, 1e-9 * mean)):
        checks.close("cv_error", record.cv_error, min(max(found_mean, low), high), tolerance + record.allowance)
    mean = record.cv_error if record.estimate else mean
    if record.r_squared is not None:
        checks.close("r_squared", record.r_squared, r_squared(dataset.y, plan.labels, mean), 1e-6)
    checks.part("cv_error and r_squared", before)


def _one_se(checks: Checks, record: Record, plan: FoldPlan) -> None:
    one, before = record.one_se, len(checks.failures)
    assert one is not None
    if not checks.that(plan.k > 1, "one_se", "a single fold has no standard error"):
        return
    error = standard_error(record.chosen_folds.error, plan.sizes)
    checks.close("one_se.standard_error", one.standard_error, error, H_RTOL * error)
    within = record.cv_error + error
    row = next((r for r in record.table if (r.gamma, r.tau) == (one.gamma, one.tau)), None)
    if checks.that(row is not None, "one_se.gamma", "the pair is not in the table") and row is not None:
        for name in ("cv_error", "lower", "upper"):
            said, tabled = getattr(one, name), getattr(row, name)
            checks.that(
                said == tabled or abs(said - tabled) <= record.allowance, f"one_se.{name}", "not as in the table"
            )
    tolerance = H_RTOL * within
    checks.that(one.cv_error <= within + tolerance, "one_se.cv_error", "is more than one standard error above the best")
    for r in record.table:
        simpler = r.tau < one.tau or (r.tau == one.tau and r.gamma > one.gamma)
        if simpler and not checks.that(
            r.upper > within - tolerance, "one_se.tau", f"gamma {r.gamma}, tau {r.tau} is simpler and within one SE"
        ):
            break
    checks.part("one-standard-error pair", before)


def _coefficients(
    checks: Checks, row: Record | PathRow, gamma: float, tau: int, info: DataInfo, dataset: Dataset, path: str = ""
) -> RidgeFit | None:
    """Refit a support on all rows and compare names, coefficients and intercept."""
    index = {dataset.names[j]: j for j in varying_columns(dataset.X).tolist()}
    support = _positions(row.support, index)
    size = min(tau, len(index))
    if support is None or len(support) != size:
        checks.that(False, f"{path}support", f"is not a set of {size} features of the data")
        return None
    model = fit(dataset.X, dataset.y, support, gamma, scale=info.scale, intercept=info.intercept)
    names = [dataset.names[j] for j in support]
    if not checks.that(set(row.coefficients) == set(names), f"{path}coefficients", "are not those of the support"):
        return model
    spread = np.abs(dataset.X[:, support] - model.x_center).max(axis=0, initial=0.0)
    slack = float(np.max(np.abs(model.beta) * spread, initial=0.0)) * COEFFICIENT_RTOL
    slack += 10.0 * NOISE * float(np.abs(dataset.y).max())
    for name, value, reach in zip(names, model.beta.tolist(), spread.tolist(), strict=True):
        checks.close(f"{path}coefficients.{name}", row.coefficients[name], value, slack / reach)
    offset = float(np.abs(model.x_center) @ np.abs(model.beta)) + abs(model.y_center)
    checks.close(f"{path}intercept", row.intercept, model.intercept, COEFFICIENT_RTOL * offset + slack)
    return model


def _refit(checks: Checks, record: Record, dataset: Dataset) -> None:
    before, refit = len(checks.failures), record.refit
    pair = (record.gamma, record.tau) if record.one_se is None else (record.one_se.gamma, record.one_se.tau)
    checks.that((refit.gamma, refit.tau) == pair, "refit", f"is not at gamma, tau = {pair}")
    model = _coefficients(checks, record, refit.gamma, refit.tau, record.data, dataset)
    if model is None:
        return
    slack = _objective_slack(model.objective, dataset)
    checks.close("refit.objective", refit.objective, model.objective, slack)
    checks.that(refit.lower <= model.objective + slack, "refit.lower", "exceeds the objective")
    checks.that(model.objective <= refit.upper + slack, "refit.upper", "is below the objective")
    checks.part("coefficients, intercept and objective of the fit on all rows", before)


def _optimality(
    checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan, supports: list[tuple[int, ...]]
) -> None:
    q = len(varying_columns(dataset.X))
    if q > ENUMERATE_PAIR:
        checks.reread.append(f"optimality of the supports, lower bounds ({q} > {ENUMERATE_PAIR} features)")
        return
    if enumeration_cost(dataset.n, q, [record.tau], 1, plan.k) > COST_LIMIT:
        checks.reread.append("optimality of the supports, lower bounds (too many rows to enumerate)")
        return
    design = Design.of(dataset, record.data.scale, record.data.intercept)
    _full_bounds(checks, design, record.refit.gamma, record.refit.tau, record.refit, "refit.")
    taus, gammas = list(record.request.taus), len(record.request.gammas)
    whole = q <= ENUMERATE_GRID and enumeration_cost(dataset.n, q, taus, gammas, plan.k) <= COST_LIMIT
    own = [(i, r) for i, r in enumerate(record.table) if (r.gamma, r.tau) == (record.gamma, record.tau)]
    place = {int(j): i for i, j in enumerate(design.columns)}
    chosen = [tuple(place[j] for j in support) for support in supports]
    before = len(checks.failures)
    for i, row in enumerate(record.table) if whole else own:
        _pair(checks, record, design, plan, (i, row), chosen if (i, row) in own else None)
    if whole:
        checks.part(f"lower and upper of all {len(record.table)} pairs, by enumeration of all supports", before)
    else:
        checks.part("the reported pair, by enumeration of all supports", before)
        checks.reread.append("lower and upper of the other pairs")


def _pair(
    checks: Checks,
    record: Record,
    design: Design,
    plan: FoldPlan,
    place: tuple[int, TableRow],
    reported: list[tuple[int, ...]] | None,
) -> None:
    i, row = place
    optima = fold_optima(design, plan, row.gamma, row.tau, reported)
    rows = scored_rows(plan.labels)
    low, high = float(optima.low.sum()) / rows, float(optima.high.sum()) / rows
    tolerance = H_RTOL * high + record.allowance
    checks.that(row.lower <= low + tolerance, f"table[{i}].lower", f"{row.lower!r} exceeds the true {low!r}")
    checks.that(high <= row.upper + tolerance, f"table[{i}].upper", f"{row.upper!r} is below the true {high!r}")
    checks.that(record.lower <= low + tolerance, "lower", f"gamma {row.gamma}, tau {row.tau} has h = {low!r}")
    if reported is None:
        return
    checks.that(high <= record.upper + tolerance, "upper", f"{record.upper!r} is below the true {high!r}")
    if row.folds_decided < row.folds:
        checks.reread.append("optimality of the supports of undecided folds (the record does not claim it)")
        return
    before = len(checks.failures)
    for fold in np.flatnonzero(~optima.reported_optimal)[:3].tolist():
        checks.that(False, f"chosen_folds[{fold}].support", "another support of the same size fits the fold better")
    checks.part("optimality of the support of every fold, by enumeration", before)


def _objective_slack(objective: float, dataset: Dataset) -> float:
    """Rounding of a refitted objective: relative, and for a fit that is nearly perfect that of the residuals."""
    residual = NOISE * float(np.abs(dataset.y).max()) * math.sqrt(dataset.n)
    return F_RTOL * objective + residual * (2.0 * math.sqrt(objective) + residual)


def _full_bounds(checks: Checks, design: Design, gamma: float, tau: int, row: object, path: str) -> None:
    """Bounds of a fit on all rows against the enumerated minimum."""
    least = full_optimum(design, gamma, tau)
    lower, upper, objective = (float(getattr(row, name)) for name in ("lower", "upper", "objective"))
    slack = _objective_slack(least, design.dataset)
    checks.that(lower <= least + slack, f"{path}lower", f"{lower!r} exceeds the true minimum {least!r}")
    checks.that(least <= upper + slack, f"{path}upper", f"{upper!r} is below the true minimum {least!r}")
    if getattr(row, "proved"):  # noqa: B009
        checks.that(objective <= least + 2 * slack, f"{path}proved", f"a support reaches {least!r}")


def verify_path(record: PathRecord, dataset: Dataset) -> VerifyReport:
    """Check a path record: data, the refit of every row and, with at most 15 varying features, its optimality.

    Parameters
    ----------
    record : PathRecord
    dataset : Dataset
    """
    checks = Checks()
    if not _data(checks, record.data, dataset):
        return checks.report()
    q = len(varying_columns(dataset.X))
    cost = enumeration_cost(dataset.n, q, list(record.request.taus), len(record.request.gammas), 1)
    enumerated = q <= ENUMERATE_PAIR and cost <= COST_LIMIT
    design = Design.of(dataset, record.data.scale, record.data.intercept) if enumerated else None
    before = len(checks.failures)
    for i, row in enumerate(record.path):
        path = f"path[{i}]."
        model = _coefficients(checks, row, row.gamma, row.tau, record.data, dataset, path)
        if model is not None:
            slack = _objective_slack(model.objective, dataset)
            checks.close(f"{path}objective", row.objective, model.objective, slack)
        if design is not None:
            _full_bounds(checks, design, row.gamma, row.tau, row, path)
    checks.part(f"coefficients, intercept and objective of {len(record.path)} fits on all rows", before)
    if enumerated:
        checks.part("lower and upper of every fit, by enumeration of all supports", before)
    else:
        checks.reread.append("optimality of the supports, lower and upper")
    checks.reread.append("work, versions, warnings")
    return checks.report()

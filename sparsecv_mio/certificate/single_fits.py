"""Functions that check a record of `fit`: the model, bounds, gap, status and side constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.claims import check_gap, check_target
from sparsecv_mio.certificate.design import Support
from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.certificate.parts import Side
from sparsecv_mio.certificate.records import Refit
from sparsecv_mio.certificate.refits import check_fit, check_optimum, checked_support, make_design
from sparsecv_mio.certificate.restrictions import NO_EFFECT, AllowedSupports, restrictions_of
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.problem.beyond_floats import size_of_target
from sparsecv_mio.problem.objective import evaluate_objective, ridge_weights, varying_columns
from sparsecv_mio.units import ACCURATE_RTOL


def verify_fit(checks: Checks, record: FitRecord, dataset: Dataset) -> bool:
    """Check the record of one MIO: its model, bounds, gap and status; return True if every check could be completed.

    The model must satisfy the side constraints of the record. If there are few supports, the lower bound is compared
    with every model that satisfies them, or with every model within an assumed box. Older records lack the side
    constraints; neither the optimality of the support nor the lower bound can be proved again for them.
    """
    words = f"{record.tau} is out of range; the data have {dataset.p} features"
    checks.require(0 <= record.tau <= dataset.p, "tau", words)
    side, design = record.side, make_design(record, dataset, tell=checks.tell)
    support = checked_support(checks, design, record.support, record.tau, "support")
    if support is None or (side is not None and not _check_side(checks, record, side, dataset)):
        return False
    if not check_target(checks, record, dataset, np.arange(dataset.n)):
        return False
    if isinstance(design, RidgeDesign):
        _check_coefficients(checks, record, design, support)
        slack = 100.0 * design.objective_slack(record.objective)
        checks.mark_recomputed_fields("coefficients")
        title = "objective and intercept at the coefficients; bounds, gap and status agree with each other"
    else:
        model = check_fit(checks, design, record, _claim(record))
        if model is None:
            return False
        slack = design.rounding(model)
        checks.close("objective", record.objective, model.objective, slack)
        checks.end_part("coefficients, intercept and objective of the fit on all rows")
        title = "bounds, gap and status agree with each other"
    _check_claims(checks, record, slack, design.refit((), record.gamma, None).objective)
    checks.mark_bounded_fields("gamma", "support")
    checks.end_part(title)
    if isinstance(design, RidgeDesign):
        _compare_with_supports(checks, record, design)
    elif side is None or side.together or side.box or replace(restrictions_of(record), count=()).side_constraints:
        checks.caveat = "optimality not verified (the side constraints are not only forced features and factors)"
    elif check_optimum(checks, design, _claim(record), "", support):
        checks.end_part("lower and objective, by branching over all supports")
    else:
        checks.caveat = f"optimality not verified ({design.limit_words})"
    if "optimality not verified" in checks.caveat:
        checks.leaves("not verified: that no other subset has a smaller objective", "support")
    return True


def _claim(record: FitRecord) -> Refit:
    """Return the claims about the objective of a fit, whose status depends on the allowance of a solver too."""
    return Refit(record.gamma, record.tau, record.objective, record.lower, record.upper, record.status == "proved")


def _compare_with_supports(checks: Checks, record: FitRecord, design: RidgeDesign) -> None:
    """Compare the lower bound with models allowed by the side constraints, or within an assumed box, if these are few.

    With an assumed box, only supports whose ridge fit lies within the box are compared.
    """
    side, end = record.side, record.assumed_box
    if side is not None:
        together = AllowedSupports(design.names, _merge_box(side), side.together or ())
        design = replace(design, allowed=together)
    reason = design.full_data_obstacle([record.tau], 1)
    checks.caveat, compared = _describe_comparison(record, reason)
    if end is not None:
        beyond = [name for name, value in record.coefficients.items() if not abs(value) <= end]
        words = f"is {end!r}, but the absolute value of the coefficient of {', '.join(beyond)} is larger"
        checks.require(not beyond, "assumed_box", words)
    if reason or not compared:
        return
    if end is None:
        least = design.best_fit(record.gamma, record.tau).objective
    else:
        least = _least_in_box(design, record, end * (1.0 - ACCURATE_RTOL))
    slack = design.objective_slack(least) if math.isfinite(least) else 0.0
    words = f"the objective {least!r} of a model that satisfies the side constraints"
    checks.require_at_most("lower", record.lower, least, words, slack)
    checks.end_part(f"lower, by enumeration of all {compared}")


def _describe_comparison(record: FitRecord, reason: str) -> tuple[str, str]:
    """Return the caveat of a comparison, and the supports that are compared; empty without side constraints.

    Parameters
    ----------
    reason : str
        Reason why supports are not compared; empty if they are.
    """
    side, end = record.side, record.assumed_box
    if end is not None:
        caveat = f"the lower bound is conditional: it holds for coefficients within {end:g} of zero"
        if reason:
            caveat += "; whether all coefficients satisfy this bound is not verified (too many supports to try)"
        return caveat, "supports whose coefficients are within the assumed box"
    if side is None:
        return "optimality not verified (the record does not contain the side constraints)", ""
    if reason:
        return f"optimality not verified ({reason})", "supports"
    return "", "supports within the side constraints"


def _least_in_box(design: RidgeDesign, record: FitRecord, end: float) -> float:
    """Return the minimum objective of ridge fits with coefficients within [-end, end]; inf if there are none."""
    least = math.inf
    for support in (tuple(row) for table in design.sets(record.tau) for row in table.tolist()):
        if design.allowed is None or design.allowed.allows(support):
            model = design.refit(support, record.gamma, None)
            if np.all(np.abs(model.beta) * (1.0 + ACCURATE_RTOL) <= end):
                least = min(least, model.objective)
    return least


def _check_coefficients(checks: Checks, record: FitRecord, design: RidgeDesign, support: Support) -> None:
    """Check objective and intercept at the stored coefficients, which side constraints may have moved."""
    dataset, columns = design.dataset, design.columns[list(support)].tolist()
    names, words = [dataset.names[j] for j in columns], "do not belong to the features of the support"
    if not checks.require(set(record.coefficients) == set(names), "coefficients", words):
        return
    beta = np.array([record.coefficients[name] for name in names])
    ridge = ridge_weights(columns, design.free, record.gamma)
    objective, center = evaluate_objective(
        dataset.X, dataset.y, columns, beta, ridge, scale=record.data.scale, intercept=record.data.intercept,
        weights=dataset.row_weights,
    )  # fmt: skip
    slack = 100.0 * design.objective_slack(objective)
    checks.close("objective", record.objective, objective, slack)
    level = float(np.abs(dataset.X[:, columns]).max(axis=0, initial=0.0) @ np.abs(beta)) + np.abs(dataset.y).max()
    checks.close("intercept", record.intercept, center, 1e-12 * level)


def _check_claims(checks: Checks, record: FitRecord, slack: float, nothing: float) -> None:
    """Check bounds, gap and status against each other.

    Parameters
    ----------
    slack : float
        Rounding error of the objective.
    nothing : float
        Objective without columns.
    """
    check_gap(checks, record)
    checks.require(0.0 <= record.requested_gap < 1.0, "requested_gap", f"{record.requested_gap!r} is not in [0, 1)")
    checks.require(record.lower <= record.objective + slack, "lower", f"{record.lower!r} exceeds the objective")
    right = abs(record.objective - record.upper) <= slack + 1e-3 * record.upper
    checks.require(right, "upper", f"{record.upper!r} differs from the objective {record.objective!r}")
    room = min(1e-3 * record.upper, 4e-6 * max(nothing, record.upper)) + slack  # bounds may exclude the null model
    words = f"{record.allowance!r} exceeds the bound on the rounding error"
    checks.require(0.0 <= record.allowance <= room, "allowance", words)
    checks.leaves("checked only for its range", "requested_gap", "allowance")
    if record.status == "proved":
        width = record.requested_gap * record.upper + record.allowance
        closed = record.upper - record.lower <= width * (1.0 + 1e-12)
        checks.require(closed, "status", "upper - lower exceeds the requested gap")


def _check_side(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> bool:
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
    allowed = AllowedSupports(names, side.restrictions or NONE, side.together or ())
    keeps = features.issuperset(record.support) and set(names).issuperset(record.support)
    places = [*(names.index(name) for name in record.support), *allowed.adjusted_columns] if keeps else []
    keeps = keeps and allowed.allows(places) and allowed.count(places) <= record.tau
    checks.require(keeps, "support", "does not satisfy the side constraints")
    _check_coefficient_ends(checks, record, side, dataset)
    checks.mark_bounded_fields("side.")
    return checks.end_part("side constraints: name features of the data; the model satisfies them")


def _check_coefficient_ends(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> None:
    """Check that bounded coefficients lie between their ends."""
    ends = _merge_box(side).bounds
    X, y = dataset.X, size_of_target(dataset, record.data.intercept)
    for name, value in record.coefficients.items():
        if name in ends and name in dataset.names:
            column = X[:, dataset.names.index(name)]
            reach = float(np.abs(column).max() if record.data.intercept == "none" else np.ptp(column))
            low, high = ends[name]
            slack = NO_EFFECT * y / reach if reach > 0.0 else 0.0
            below, above = (slack + ACCURATE_RTOL * abs(end) if math.isfinite(end) else 0.0 for end in (low, high))
            words = f"is {value!r}, outside [{low:g}, {high:g}] of the constraints"
            checks.require(low - below <= value <= high + above, f"coefficients.{name}", words)


def _merge_box(side: Side) -> Restrictions:
    """Return the restrictions of a fit with the bounds that older records have in `box`."""
    restrictions = side.restrictions or NONE
    return replace(restrictions, coef_bounds=(*restrictions.coef_bounds, *(side.box or ())))


def _features(side: Side) -> Iterator[tuple[str, str]]:
    """Yield every named feature, with the name of its field."""
    restrictions = side.restrictions or NONE
    yield from ((f"restrictions.{field}", name) for field, name in restrictions.named_columns())
    yield from (("together", name) for group in side.together or () for name in group)
    yield from (("box", bounds.feature) for bounds in side.box or ())

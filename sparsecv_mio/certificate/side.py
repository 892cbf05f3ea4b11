"""Side constraints of one fit: whether the model keeps to them, and its lower bound against all models that do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checks import Checks
from sparsecv_mio.certificate.enumeration import UnitColumns
from sparsecv_mio.certificate.optimality import COST_LIMIT
from sparsecv_mio.certificate.parts import Side
from sparsecv_mio.certificate.record import FitRecord
from sparsecv_mio.certificate.restricted import NOTHING, AllowedSupports
from sparsecv_mio.certificate.restricted_optima import restricted_cost, restricted_least
from sparsecv_mio.certificate.treatment import ENUMERATE_PAIR, Level
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.problem.rounding import objective_slack, size_of_target
from sparsecv_mio.restrictions import NONE

BOX_RTOL = 1e-9  # closer to the end of a box a coefficient may lie on either side


def check_side(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> bool:
    """Whether side constraints are of features of the data, and the model keeps to them.

    Parameters
    ----------
    checks : Checks
    record : FitRecord
        Its support is of features of the data.
    side : Side
        Of the record.
    dataset : Dataset
    """
    before, known = len(checks.failures), set(dataset.names)
    for place, name in _features(side):
        checks.that(name in known, f"side.{place}", f"there is no feature {name!r}")
    if len(checks.failures) > before:
        return False
    allowed = AllowedSupports(tuple(dataset.names), side.restrictions or NONE, side.together or ())
    right = allowed.allows(dataset.names.index(name) for name in record.support)
    checks.that(right, "support", "does not keep to the side constraints")
    ends = _ends(side)
    X, y = dataset.X, size_of_target(dataset, record.data.intercept)
    for name, value in record.coefficients.items():
        if name in ends and name in known:
            column = X[:, dataset.names.index(name)]
            reach = float(np.abs(column).max() if record.data.intercept == "none" else np.ptp(column))
            low, high = ends[name]
            slack = NOTHING * y / reach if reach > 0.0 else 0.0
            inside = low - slack - BOX_RTOL * _size(low) <= value <= high + slack + BOX_RTOL * _size(high)
            checks.that(inside, f"coefficients.{name}", f"is {value!r}, not in [{low:g}, {high:g}] of the constraints")
    checks.part("side constraints: features of the data, kept to by the model", before)
    return len(checks.failures) == before


def check_least(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> Level:
    """Compare the lower bound with all models within the side constraints, if these are few.

    Under boxes the fit of a support is not made here: only supports whose ridge fit lies in them are compared.

    Parameters
    ----------
    checks : Checks
    record : FitRecord
    side : Side
        Of the record, `check_side` passed.
    dataset : Dataset
    """
    asked = side.restrictions or NONE
    names = [dataset.names[j] for j in varying_columns(dataset.X).tolist()]
    q = len(names) - len(set(names).intersection(asked.force_out))
    if q > ENUMERATE_PAIR or restricted_cost(dataset.n, q, [record.tau], 1, 1) > COST_LIMIT:
        reason = f"p > {ENUMERATE_PAIR}" if q > ENUMERATE_PAIR else "too many rows to try all supports"
        checks.caveat = f"optimality not verified ({reason})"
        return Level.NEIGHBOURS
    before = len(checks.failures)
    design = UnitColumns.within(dataset, record.data.scale, record.data.intercept, asked)
    names = [dataset.names[j] for j in design.columns.tolist()]
    design = replace(design, allowed=AllowedSupports(tuple(names), asked, side.together or ()))
    if side.box:
        checks.caveat = "optimality not verified (coefficients are held in boxes)"
        least, what = _least_in_boxes(design, record, side), "supports whose coefficients are within the boxes"
    else:
        checks.caveat = ""
        least, what = restricted_least(design, record.gamma, record.tau), "supports within the side constraints"
    slack = objective_slack(least, dataset, record.data.intercept) if math.isfinite(least) else 0.0
    checks.that(record.lower <= least + slack, "lower", f"{record.lower!r} exceeds the objective {least!r} of a model")
    checks.part(f"lower, by enumeration of all {what}", before)
    return Level.PAIR


def _least_in_boxes(design: UnitColumns, record: FitRecord, side: Side) -> float:
    """Return the least objective of the ridge fits with their coefficients in the boxes; inf where there is none."""
    allowed, least = design.allowed, math.inf
    assert allowed is not None
    ends = _ends(side)
    low, high = (np.array([ends.get(name, (-math.inf, math.inf))[i] for name in allowed.names]) for i in (0, 1))
    for supports in allowed.up_to(record.tau).values():
        for support in map(tuple, supports.tolist()):
            if allowed.allows(support):
                model, at = design.refit(support, record.gamma, None), list(support)
                if _well_inside(model.beta, low[at], high[at]):
                    least = min(least, model.objective)
    return least


def _well_inside(beta: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    room = BOX_RTOL * np.abs(beta)
    return bool(np.all((beta - room >= low) & (beta + room <= high)))


def _size(end: float) -> float:
    return abs(end) if math.isfinite(end) else 0.0


def _ends(side: Side) -> Mapping[str, tuple[float, float]]:
    """Return the ends of the coefficients that are bounded, signs among them."""
    asked = side.restrictions or NONE
    given = [(name, 0.0, math.inf) for name in asked.nonnegative]
    given += [(name, -math.inf, 0.0) for name in asked.nonpositive]
    for one in side.box or ():
        low, high = one.low, one.high
        given.append((one.feature, -math.inf if low is None else low, math.inf if high is None else high))
    ends: dict[str, tuple[float, float]] = {}
    for name, low, high in given:
        before = ends.get(name, (-math.inf, math.inf))
        ends[name] = max(before[0], low), min(before[1], high)
    return ends


def _features(side: Side) -> Iterator[tuple[str, str]]:
    """Every feature that is named, and in which field."""
    asked = side.restrictions or NONE
    for field in ("force_in", "force_out", "nonnegative", "nonpositive"):
        yield from ((f"restrictions.{field}", name) for name in getattr(asked, field))
    yield from (("restrictions.at_most", name) for group in asked.at_most for name in group.features)
    for one in asked.hierarchy:
        yield from (("restrictions.hierarchy", name) for name in (one.feature, *one.parents))
    yield from (("together", name) for group in side.together or () for name in group)
    yield from (("box", one.feature) for one in side.box or ())

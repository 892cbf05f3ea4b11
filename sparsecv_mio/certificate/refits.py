"""Fits on all rows: coefficients, intercept, objective and bounds of a record against a refit and an enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from sparsecv_mio.certificate.checks import Checks
from sparsecv_mio.certificate.enumeration import UnitColumns, full_optimum
from sparsecv_mio.certificate.exchange import Exchanges
from sparsecv_mio.certificate.near_records import CommonRecord
from sparsecv_mio.certificate.record import PathRow, Record, Refit
from sparsecv_mio.certificate.restricted_optima import effects, restricted_least
from sparsecv_mio.problem.objective import RidgeFit
from sparsecv_mio.problem.rounding import objective_slack, size_of_target
from sparsecv_mio.units import PROVED_RTOL

COEFFICIENT_RTOL = 1e-7


def positions(names: Iterable[str], index: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the sorted positions of distinct names; None if one is unknown or there twice."""
    found = [index.get(name) for name in names]
    return None if None in found or len(set(found)) < len(found) else tuple(sorted(f for f in found if f is not None))


def check_allowed(checks: Checks, design: UnitColumns, support: tuple[int, ...], tau: int, path: str) -> bool:
    """Whether a support has every column that is forced in, and keeps to the other restrictions.

    Parameters
    ----------
    checks : Checks
    design : UnitColumns
        All columns that may be in a support.
    support : tuple of int
        Positions in the data set.
    tau : int
    path : str
        What stands before `support` in messages.
    """
    if design.allowed is not None:
        right = design.allowed.holds(tuple(np.searchsorted(design.columns, support).tolist()), tau)
        return checks.that(right, f"{path}support", "does not keep to the restrictions")
    lacking = [j for j in design.columns[list(design.forced)].tolist() if j not in support]
    names = ", ".join(design.dataset.names[j] for j in lacking)
    return checks.that(not lacking, f"{path}support", f"lacks {names}, forced in")


def check_signs(checks: Checks, design: UnitColumns, support: tuple[int, ...], model: RidgeFit, path: str) -> bool:
    """Whether the coefficients of a fit have the signs that are held.

    Parameters
    ----------
    checks : Checks
    design : UnitColumns
    support : tuple of int
        Positions in the data set.
    model : RidgeFit
        Its fit.
    path : str
        What stands before `support` in messages.
    """
    if design.allowed is None:
        return True
    at = tuple(np.searchsorted(design.columns, support).tolist())
    right = design.allowed.signed_right(at, effects(design, at, model))
    return checks.that(right, f"{path}support", "its fit has a coefficient of the wrong sign")


def check_fit(
    checks: Checks,
    design: UnitColumns,
    said: Record | PathRow | CommonRecord,
    row: Refit | PathRow | CommonRecord,
    path: str = "",
) -> RidgeFit | None:
    """Refit a support on all rows and compare names, coefficients and intercept.

    Parameters
    ----------
    checks : Checks
    design : UnitColumns
        All columns that vary.
    said : Record, PathRow or CommonRecord
        What the record says; an objective stands in `row`.
    row : Refit, PathRow or CommonRecord
        At which gamma and tau.
    path : str
        What stands before the names of the fields in messages.

    Returns
    -------
    RidgeFit or None
        None where the support is none.
    """
    dataset, index = design.dataset, design.index
    support = positions(said.support, index)
    size = min(row.tau, len(index))
    exact = design.allowed is None  # under other restrictions a smaller one may be the best
    if support is None or len(support) > size or (exact and len(support) < size):
        checks.that(False, f"{path}support", f"is not a set of {'' if exact else 'up to '}{size} features of the data")
        return None
    if not check_allowed(checks, design, support, row.tau, path):
        return None
    place = {int(j): i for i, j in enumerate(design.columns)}
    model = design.refit(tuple(place[j] for j in support), row.gamma, None)
    check_signs(checks, design, support, model, path)
    names = [dataset.names[j] for j in support]
    if not checks.that(set(said.coefficients) == set(names), f"{path}coefficients", "are not those of the support"):
        return model
    target = size_of_target(dataset, design.intercept)
    spread = np.abs(dataset.X[:, support] - model.x_center).max(axis=0, initial=0.0)
    slack = float(np.max(np.abs(model.beta) * spread, initial=0.0)) * COEFFICIENT_RTOL + 1e-12 * target
    for name, value, reach in zip(names, model.beta.tolist(), spread.tolist(), strict=True):
        checks.close(f"{path}coefficients.{name}", said.coefficients[name], value, slack / reach)
    beta = np.array([said.coefficients[name] for name in names])
    # by the record's own coefficients: what they are off is tolerated above, not once more times the centre
    expected = float(model.y_center - model.x_center @ beta)
    offset = float(np.abs(model.x_center) @ np.abs(beta)) + abs(model.y_center)
    # means that are 0 but for the rounding of their sums
    rounded = 1e-15 * (target + float(spread @ np.abs(beta)))
    checks.close(f"{path}intercept", said.intercept, expected, 1e-13 * offset + 1e-12 * slack + rounded)
    return model


def check_objective(
    checks: Checks, design: UnitColumns, row: Refit | PathRow, model: RidgeFit, gap: float, path: str
) -> None:
    """Compare the objective with its refit, the bounds around it, and `proved` with their width.

    Parameters
    ----------
    checks : Checks
    design : UnitColumns
    row : Refit or PathRow
    model : RidgeFit
        The refit of its support.
    gap : float
        The relative gap that was asked for.
    path : str
        What stands before the names of the fields in messages.
    """
    slack = objective_slack(model.objective, design.dataset, design.intercept)
    checks.close(f"{path}objective", row.objective, model.objective, slack)
    checks.that(row.lower <= model.objective + slack, f"{path}lower", f"{row.lower!r} exceeds the objective")
    checks.that(model.objective <= row.upper + slack, f"{path}upper", f"{row.upper!r} is below the objective")
    width = max(gap, PROVED_RTOL) * row.upper + 2.0 * slack
    closed = math.isfinite(row.upper) and row.upper - row.lower <= width
    checks.that(closed or not row.proved, f"{path}proved", "upper - lower is wider than a proof leaves it")


def check_neighbours(checks: Checks, design: UnitColumns, row: Refit | PathRow, model: RidgeFit, path: str) -> None:
    """Compare the lower bound of a fit on all rows with the best support one column away.

    Parameters
    ----------
    checks : Checks
    design : UnitColumns
        All columns that vary.
    row : Refit or PathRow
    model : RidgeFit
        The refit of its support.
    path : str
        What stands before the names of the fields in messages.
    """
    if design.allowed is not None:  # a neighbour may not be allowed
        return
    place = {int(j): i for i, j in enumerate(design.columns)}
    none = np.zeros(0, dtype=np.int64)
    found = Exchanges(design, row.gamma).best(none, tuple(place[j] for j in model.support))
    if found is None:
        return
    value = design.refit(found, row.gamma, None).objective
    slack = objective_slack(value, design.dataset, design.intercept)
    names = ", ".join(design.dataset.names[design.columns[j]] for j in found)
    checks.that(row.lower <= value + slack, f"{path}lower", f"{row.lower!r} exceeds {value!r}, reached by {names}")


def check_optimum(checks: Checks, design: UnitColumns, row: Refit | PathRow, path: str) -> None:
    """Compare the bounds of a fit on all rows with the enumerated minimum.

    Parameters
    ----------
    checks : Checks
    design : UnitColumns
        All columns that vary.
    row : Refit or PathRow
    path : str
        What stands before the names of the fields in messages.
    """
    optimum = full_optimum if design.allowed is None else restricted_least
    least = optimum(design, row.gamma, row.tau)
    slack = objective_slack(least, design.dataset, design.intercept)
    checks.that(row.lower <= least + slack, f"{path}lower", f"{row.lower!r} exceeds the true minimum {least!r}")
    checks.that(least <= row.upper + slack, f"{path}upper", f"{row.upper!r} is below the true minimum {least!r}")

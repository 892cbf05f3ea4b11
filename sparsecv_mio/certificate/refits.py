"""Fits on all rows: coefficients, intercept, objective and bounds of a record against a refit and an enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from sparsecv_mio.certificate.checks import Checks
from sparsecv_mio.certificate.enumeration import Design, full_optimum
from sparsecv_mio.certificate.exchange import Exchanges
from sparsecv_mio.certificate.parts import DataInfo
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.objective import RidgeFit, fit, varying_columns

COEFFICIENT_RTOL = 1e-7
F_RTOL = 1e-9
PROVED_RTOL = 1e-9  # relative width at which a fit counts as proved whatever was asked for


class Fitted(Protocol):
    """A support with its coefficients."""

    @property
    def support(self) -> tuple[str, ...]: ...
    @property
    def coefficients(self) -> Mapping[str, float]: ...
    @property
    def intercept(self) -> float: ...


class Bounded(Protocol):
    """An objective between its bounds."""

    @property
    def objective(self) -> float: ...
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


def positions(names: Iterable[str], index: Mapping[str, int]) -> tuple[int, ...] | None:
    """Sorted positions of distinct names; None if one is unknown or twice there."""
    found = [index.get(name) for name in names]
    return None if None in found or len(set(found)) < len(found) else tuple(sorted(f for f in found if f is not None))


def size_of_target(dataset: Dataset, intercept: str) -> float:
    """Largest target about its mean, about zero without an intercept."""
    y = dataset.y
    return float(np.abs(y).max() if intercept == "none" else np.ptp(y))


def objective_slack(objective: float, dataset: Dataset, intercept: str) -> float:
    """Rounding of an objective of the search: relative, and of a fit that is nearly perfect that of its residuals."""
    noise = 1e-15 * size_of_target(dataset, intercept) * math.sqrt(dataset.n)
    return F_RTOL * objective + noise * (2.0 * math.sqrt(objective) + noise)


def check_fit(
    checks: Checks, row: Fitted, gamma: float, tau: int, info: DataInfo, dataset: Dataset, path: str = ""
) -> RidgeFit | None:
    """Refit a support on all rows and compare names, coefficients and intercept."""
    index = {dataset.names[j]: j for j in varying_columns(dataset.X).tolist()}
    support = positions(row.support, index)
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
    slack += 1e-12 * size_of_target(dataset, info.intercept)
    for name, value, reach in zip(names, model.beta.tolist(), spread.tolist(), strict=True):
        checks.close(f"{path}coefficients.{name}", row.coefficients[name], value, slack / reach)
    said = np.array([row.coefficients[name] for name in names])
    # by the record's own coefficients: what they are off is tolerated above, not once more times the centre
    expected = float(model.y_center - model.x_center @ said)
    offset = float(np.abs(model.x_center) @ np.abs(said)) + abs(model.y_center)
    # means that are 0 but for the rounding of their sums
    rounded = 1e-15 * (size_of_target(dataset, info.intercept) + float(spread @ np.abs(said)))
    checks.close(f"{path}intercept", row.intercept, expected, 1e-13 * offset + 1e-12 * slack + rounded)
    return model


def check_objective(
    checks: Checks, row: Bounded, model: RidgeFit, dataset: Dataset, info: DataInfo, proved: bool, gap: float, path: str
) -> None:
    """The objective against its refit, the bounds around it, and `proved` against their width."""
    slack = objective_slack(model.objective, dataset, info.intercept)
    checks.close(f"{path}objective", row.objective, model.objective, slack)
    checks.that(row.lower <= model.objective + slack, f"{path}lower", f"{row.lower!r} exceeds the objective")
    checks.that(model.objective <= row.upper + slack, f"{path}upper", f"{row.upper!r} is below the objective")
    width = max(gap, PROVED_RTOL) * row.upper + 2.0 * slack
    closed = math.isfinite(row.upper) and row.upper - row.lower <= width
    checks.that(closed or not proved, f"{path}proved", "upper - lower is wider than a proof leaves it")


def check_neighbours(
    checks: Checks, design: Design, gamma: float, model: RidgeFit, row: Bounded, path: str
) -> None:
    """The lower bound of a fit on all rows against the best support one column away."""
    place = {int(j): i for i, j in enumerate(design.columns)}
    none = np.zeros(0, dtype=np.int64)
    found = Exchanges(design, gamma).best(none, tuple(place[j] for j in model.support))
    if found is None:
        return
    value = design.refit(found, gamma, None).objective
    slack = objective_slack(value, design.dataset, design.intercept)
    names = ", ".join(design.dataset.names[design.columns[j]] for j in found)
    checks.that(row.lower <= value + slack, f"{path}lower", f"{row.lower!r} exceeds {value!r}, reached by {names}")


def check_optimum(checks: Checks, design: Design, gamma: float, tau: int, row: Bounded, path: str) -> None:
    """Bounds of a fit on all rows against the enumerated minimum."""
    least = full_optimum(design, gamma, tau)
    slack = objective_slack(least, design.dataset, design.intercept)
    checks.that(row.lower <= least + slack, f"{path}lower", f"{row.lower!r} exceeds the true minimum {least!r}")
    checks.that(least <= row.upper + slack, f"{path}upper", f"{row.upper!r} is below the true minimum {least!r}")

"""One MIO on all rows, by any backend: what `sparsecv fit` and `sparsecv export` call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sparsecv_mio.certificate.fit_record import FIT_SCHEMA, FitRecord
from sparsecv_mio.certificate.parts import relative_gap, versions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.constraints import SideConstraints, side_constraints
from sparsecv_mio.formulation.outcome import Limits, Outcome, Start, Stop
from sparsecv_mio.problem.accumulate import full_problem
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.result import data_info, names_of

STATUS = {Stop.OPTIMAL: "proved", Stop.INTERRUPTED: "interrupted"}


@dataclass(frozen=True)
class SideOptions:
    """Side constraints by feature names, coefficients in the units of the file."""

    force_in: Sequence[str] = ()
    force_out: Sequence[str] = ()
    together: Sequence[Sequence[str]] = ()
    at_most: Sequence[tuple[int, Sequence[str]]] = ()
    box: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def on(self, data: StandardData) -> SideConstraints:
        """Return the constraints in standard coordinates."""
        return side_constraints(
            data,
            force_in=self.force_in,
            force_out=self.force_out,
            together=self.together,
            at_most=self.at_most,
            box=self.box,
        )


def one_problem(
    dataset: Dataset, tau: int, gamma: float, scale: str, intercept: str
) -> tuple[StandardData, SparseProblem]:
    """Return the data in standard coordinates and the inner problem of all rows; raises `BadInput` out of range."""
    if not 0 <= tau <= dataset.p:
        raise BadInput(f"tau {tau} is out of range: use 0 to {dataset.p}, the number of features")
    if not (np.isfinite(gamma) and gamma > 0.0):
        raise BadInput(f"gamma {gamma:g} is out of range: it must be positive and finite")
    data = standardize(dataset, scale, intercept)
    return data, full_problem(data, gamma)


def fit_one(
    dataset: Dataset,
    *,
    tau: int,
    gamma: float,
    backend: str = "native",
    formulation: str | None = None,
    scale: str = "length",
    intercept: str = "fold",
    limits: Limits | None = None,
    side: SideOptions | None = None,
    start: Sequence[str] | None = None,
) -> FitRecord:
    """Find the best subset of at most tau features on all rows.

    Parameters
    ----------
    dataset : Dataset
    tau : int
    gamma : float
    backend, formulation : str
        See `sparsecv backends`.
    scale, intercept : str
        As for `cross_validate`.
    limits : Limits, optional
    side : SideOptions, optional
    start : sequence of str, optional
        Names of a support to start from.

    Returns
    -------
    FitRecord

    Raises
    ------
    BadInput
        For a value out of range, an unknown name, or side constraints that exclude every support.
    BackendUnavailable, BackendFailed
        See :mod:`sparsecv_mio.formulation.backends.base`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> fit_one(data, tau=1, gamma=0.1).support
    ('x0',)
    """
    limits = limits or Limits()
    data, problem = one_problem(dataset, tau, gamma, scale, intercept)
    constraints = (side or SideOptions()).on(data)
    solver = get_backend(backend)
    outcome = solver.solve(
        problem,
        min(tau, problem.q),
        limits=limits,
        constraints=constraints,
        formulation=formulation,
        start=None if start is None else _start(data, start),
    )
    if outcome.incumbent is None:
        raise BadInput(f"no support of at most {tau} features meets the side constraints")
    record = _record(data, problem, outcome, constraints, (backend, solver.available().version, tau, gamma, limits))
    if limits.threads > 1 and "threads" not in solver.capabilities.limits:
        ignored = f"backend {backend} uses one thread, not {limits.threads}"
        record = replace(record, warnings=(*record.warnings, ignored))
    return record


def _start(data: StandardData, names: Sequence[str]) -> Start:
    position = {name: j for j, name in enumerate(data.names)}
    unknown = [name for name in names if name not in data.dataset.names]
    if unknown:
        raise BadInput(f"start: there is no feature {unknown[0]!r}")
    return Start(tuple(sorted(position[name] for name in names if name in position)), "user")


def _record(
    data: StandardData,
    problem: SparseProblem,
    outcome: Outcome,
    constraints: SideConstraints,
    asked: tuple[str, str, int, float, Limits],
) -> FitRecord:
    backend, version, tau, gamma, limits = asked
    unit = data.y_unit**2
    support = np.asarray(outcome.incumbent, dtype=np.int64)
    objective, beta, r_mean = outcome.upper, np.asarray(outcome.beta), problem.r_mean
    v_mean = problem.v_mean
    if not constraints.on_coefficients:
        fit = refit_rows(data, slice(0, data.n), support, gamma)
        objective, beta, r_mean = fit.objective, fit.beta, fit.r_mean
        v_mean = np.zeros(data.q)
        v_mean[support] = fit.v_mean
    coefficients, intercept = data.coefficients(support, beta, v_mean, r_mean)
    lower, upper = min(outcome.lower, objective) * unit, max(outcome.upper, objective) * unit
    return FitRecord(
        schema=FIT_SCHEMA,
        backend=backend,
        formulation=outcome.formulation,
        status=STATUS.get(outcome.stop, "limit"),
        tau=tau,
        gamma=gamma,
        support=names_of(data, support),
        coefficients=coefficients,
        intercept=intercept,
        objective=objective * unit,
        lower=lower,
        upper=upper,
        gap=relative_gap(lower, upper),
        requested_gap=limits.gap,
        allowance=outcome.allowance * unit,
        nodes=outcome.nodes,
        cuts=outcome.cuts,
        seconds=outcome.seconds,
        setup_seconds=outcome.setup_seconds,
        stop=str(outcome.stop),
        raw_status=outcome.raw_status,
        data=data_info(data),
        warnings=data.warnings,
        versions={**versions(), backend: version},
    )


def export_one(
    dataset: Dataset,
    path: str,
    *,
    tau: int,
    gamma: float,
    scale: str = "length",
    intercept: str = "fold",
    side: SideOptions | None = None,
) -> tuple[float, float]:
    """Write the model of one MIO to a file; return `(offset, factor)` from its objective to that of `fit_one`."""
    from sparsecv_mio.formulation.export import export_model

    data, problem = one_problem(dataset, tau, gamma, scale, intercept)
    constraints = (side or SideOptions()).on(data)
    offset, factor = export_model(problem, min(tau, problem.q), path, labels=data.names, constraints=constraints)
    unit = data.y_unit**2
    return offset * unit, factor * unit

"""One mixed-integer problem on the full data, solved by a backend (`sparsecv fit`) or exported to a file."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.fit_records import FIT_SCHEMA, FitRecord
from sparsecv_mio.certificate.parts import Side, relative_gap, versions
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.reading_options import drop_fold_wording
from sparsecv_mio.data.standard import ForcedColumns, StandardData, standardize
from sparsecv_mio.declared_options import check_whole, keywords_are
from sparsecv_mio.errors import BackendUnavailable, BadInput
from sparsecv_mio.files import replacing
from sparsecv_mio.fits.fit_options import FitOptions, SideOptions
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.contract import LARGEST_ALLOWANCE, import_pyomo, proof_allowance
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Outcome, Solver, Start, Stop
from sparsecv_mio.formulation.task import ModelTask, feasible_start, make_task, require_finite
from sparsecv_mio.model_space import MAX_COUNT, NONE, Restrictions, size_out_of_range
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.problem.beyond_floats import objective_slack
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.glm_objective import null_error_of_folds
from sparsecv_mio.problem.objective import evaluate_objective, ridge_weights
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search.answer.result import describe_data
from sparsecv_mio.search.options import with_keywords
from sparsecv_mio.targets import Loss
from sparsecv_mio.thresholds import has_large_matrices
from sparsecv_mio.trees.subsets import UNLIMITED
from sparsecv_mio.trees.without_ridge import check_independent, most_columns
from sparsecv_mio.units import TINY
from sparsecv_mio.words import NATIVE, Intercept

if TYPE_CHECKING:
    from sparsecv_mio.search.deadline import Deadline
    from sparsecv_mio.trees.subsets import BestSubsets


STATUS = {Stop.OPTIMAL: "proved", Stop.INTERRUPTED: "interrupted"}
STOPPED = {
    Stop.GAP: "no tree was searched, because too many columns or too many ties remain",
    Stop.TIME: "time",
    Stop.NODES: "nodes",
}


@keywords_are(FitOptions)
@blas_on_one_thread()
def fit_one(
    dataset: Dataset, *, tau: int, gamma: float, options: FitOptions | None = None, **keywords: Any
) -> FitRecord:
    """Return the best subset of at most tau features on all rows.

    Parameters
    ----------
    dataset : Dataset
        Rows, target and names.
    tau : int
        Maximum number of features, 0 to p.
    gamma : float
        Ridge weight, positive, or 0 if the columns of every model are linearly independent.
    options : FitOptions, optional
        Backend, scale, limits, side constraints.
    **keywords
        Fields of `FitOptions` by keyword, which override those of `options`: `fit_one(..., backend="highs")`.

    Returns
    -------
    FitRecord
        Support, coefficients and the certified interval of the objective.

    Raises
    ------
    BadInput
        If a value is out of range, a name is unknown, or side constraints exclude every support.
    BackendUnavailable, BackendFailed
        See :mod:`sparsecv_mio.formulation.backends.contract`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> fit_one(data, tau=1, gamma=0.1).support
    ('x0',)
    """
    begin = time.monotonic()
    options = with_keywords(options or FitOptions(), keywords, "fit_one")
    limits, box = options.limits or Limits(), options.assume_box
    dataset = options.in_classes(dataset)
    model = _Model.from_pair(dataset, (tau, gamma), options)
    backend = get_backend(options.backend)
    if backend.name != NATIVE:
        _check_adjusting(model.data, f"backend {backend.name}", f"give backend {NATIVE}")
    outcome = _solve_model(model, backend, options, limits, begin)
    if outcome is None or outcome.incumbent is None:
        raise _infeasible(tau)
    record = _record(model, outcome, backend, (tau, gamma), limits)
    record = replace(record, solver_option=options.solver_option or None)
    if box is None:
        return record
    beyond = max(map(abs, record.coefficients.values()), default=0.0)
    if beyond <= box:
        return replace(record, assumed_box=box)
    # the best model is outside of the box, so the bound does not hold for it
    remaining = replace(limits, seconds=max(limits.seconds - outcome.seconds, 0.0))
    plain = replace(options, assume_box=None, start=record.support, limits=remaining)
    again = fit_one(dataset, tau=tau, gamma=gamma, options=plain)
    word = f"assume_box: {box:g} was ignored, because the best support found has a coefficient of {beyond:.3g}"
    return replace(again, warnings=(*again.warnings, word))


def _solve_model(model: _Model, backend: Solver, options: FitOptions, limits: Limits, begin: float) -> Outcome | None:
    """Return the outcome of a model: by rows if columns are many, in an assumed box, or directly; else None."""
    start, forced = None if options.start is None else _start(model.data, options.start), model.constraints
    squared = model.data.loss.is_quadratic
    box, is_wide = options.assume_box, squared and has_large_matrices(model.data, 1)
    if is_wide and backend.name == NATIVE and forced.needs <= {"force"}:
        if box is not None:
            raise BadInput(
                f"assume_box: not supported with {model.data.q} columns, because their Gram matrix does not fit in "
                "memory; drop some columns"
            )
        possible = {*forced.forced_in}.isdisjoint(forced.forced_out) and forced.count(forced.forced_in) <= model.tau
        return _solve_by_trees(model, start, limits, None) if possible else None
    if box is not None:
        return _solve_by_trees(model, start, limits, box)
    if model.data.loss.target.has_times:
        return _solve_by_subsets(model, backend, start, limits)
    problem = model.problem
    seconds = limits.seconds - (time.monotonic() - begin if backend.name == NATIVE else 0.0)
    limits = replace(limits, seconds=max(seconds, 0.0), options=options.solver_option)
    outcome = backend.solve(
        problem, model.tau, limits=limits, constraints=forced, formulation=options.formulation, start=start
    )
    as_path = backend.name == NATIVE and squared and not (model.asked.together or model.asked.box)
    return _compare_from_rows(model, outcome, limits) if as_path and outcome.stop is Stop.GAP else outcome


@keywords_are(FitOptions)
def export_one(
    dataset: Dataset,
    path: str,
    *,
    tau: int,
    gamma: float,
    options: FitOptions | None = None,
    piecewise: int | None = None,
    **keywords: Any,
) -> tuple[float, float, float]:
    """Write the perspective model, or a linear model, of one MIO on all rows to a file.

    Parameters
    ----------
    dataset : Dataset
        Rows, target and names.
    path : str
        File whose suffix gives the format: .mps, .lp, .nl (quadratic), .cbf or .ptf (conic). Log losses are in .nl,
        .cbf and .ptf.
    tau : int
        Maximum number of features, 0 to p.
    gamma : float
        Ridge weight, positive, or 0 if the columns of every model are linearly independent.
    options : FitOptions, optional
        Scale, intercept, loss, side constraints; options about solving are ignored.
    piecewise : int, optional
        Number of tangents for each square or log loss in a linear model, which every MIP solver reads. For .mps and
        .lp.
    **keywords
        Fields of `FitOptions` by keyword, which override those of `options`: `export_one(..., scale="none")`.

    Returns
    -------
    offset, factor, missed : float
        The objective of `fit_one` is `offset + factor * objective of the model`, and at most `missed` more.

    Raises
    ------
    BadInput
        If a value is out of range, a name is unknown, or the format is unknown.
    """
    options = with_keywords(options or FitOptions(), keywords, "export_one")
    if not (options.loss.is_quadratic or options.loss.target.has_classes):
        raise BadInput(f"export: loss {options.loss} is not supported; use loss squared or logistic")
    model = _Model.from_pair(options.in_classes(dataset), (tau, gamma), options)
    if model.data.dataset.row_exposure is not None:
        raise BadInput("export: not supported with offset, because models of solvers have none; leave this option out")
    _check_adjusting(model.data, "export", "give loss squared")
    if model.constraints.has_coefficient_bounds and not options.loss.is_quadratic:
        raise BadInput(f"export: bounds on coefficients are not supported with loss {options.loss}; give loss squared")
    labels, constraints = model.data.names, model.constraints
    exported = export_model(model.problem, model.tau, path, labels=labels, constraints=constraints, piecewise=piecewise)
    offset, factor, missed = (number * model.unit for number in exported)
    return offset, factor, missed


def _infeasible(tau: int) -> BadInput:
    """Return the error for side constraints that exclude every support."""
    words = f"no support of at most {tau} features meets the side constraints"
    return BadInput(f"tau {tau}: {words}; give a larger tau, or relax a constraint")


def _check_adjusting(data: StandardData, what: str, remedy: str) -> None:
    """Raise an error for solver models with losses of rows, in which every coefficient is bounded by its penalty."""
    if len(data.adjusting) and not data.loss.is_quadratic:
        raise BadInput(
            f"adjust: not supported with loss {data.loss} and {what}, because models of solvers need a penalty on "
            f"every column; {remedy}"
        )


@dataclass(frozen=True, eq=False)
class _Model:
    """The inner problem of all rows, its size and its side constraints, in standard coordinates."""

    data: StandardData
    tau: int
    gamma: float
    constraints: SideConstraints
    asked: Side

    @cached_property
    def squares(self) -> SparseProblem:
        """The problem by its moments."""
        problem = full_problem(self.data, self.gamma)
        weight = np.where(problem.weight > 0.0, problem.weight, TINY / problem.lam)  # dual values divide by penalties
        return replace(problem, weight=weight, forced=np.zeros(0, dtype=np.int64))  # the constraints force columns

    @property
    def problem(self) -> SparseProblem | GlmProblem:
        """The problem in the form that backends take."""
        if self.data.loss.is_quadratic:
            return self.squares
        from sparsecv_mio.trees.glm_subsets import make_glm_problem

        return make_glm_problem(self.data, np.arange(self.data.n), self.gamma)

    @classmethod
    def from_pair(cls, dataset: Dataset, pair: tuple[int, float], how: FitOptions) -> _Model:
        """Return the model of a pair (tau, gamma) and side constraints, after checking them against the data."""
        tau, gamma = pair
        options, constant = how.side or SideOptions(), how.intercept is not Intercept.NONE
        side = options.resolve_names(dataset.names, constant)
        adjusted = Restrictions(adjust=options.adjust).resolve_names(dataset.names, constant)
        most = replace(adjusted, count=side.count).n_selectable_features(dataset.p)
        if not 0 <= tau <= most:
            raise size_out_of_range(f"tau {tau}", most)
        if not (np.isfinite(gamma) and gamma >= 0.0):
            raise BadInput(f"gamma {gamma:g} is out of range; give a finite number of at least 0")
        excluded = replace(  # columns that are forced out would make the moments singular
            adjusted, force_out=side.force_out, nonnegative=side.nonnegative, nonpositive=side.nonpositive,
            coef_bounds=side.coef_bounds,
        )  # fmt: skip
        data = standardize(dataset, how.scale, how.intercept, excluded, how.loss)
        constraints = side.on(data)
        if gamma == 0.0 and not how.loss.is_quadratic:
            from sparsecv_mio.problem.cox import explain_infinite_fits  # other fits do not need this import

            why = explain_infinite_fits(dataset, how.loss)
            raise BadInput(f"gamma 0: requires loss squared, not {how.loss}, because {why}; give a positive value")
        request = side.recorded()
        inside = data.only(np.setdiff1d(np.arange(data.q), constraints.forced_out))
        inside = replace(inside, restrictions=request.restrictions or NONE)
        check_independent(inside, [gamma], most_columns(inside, tau))
        return cls(data, min(tau, data.choice.max_tau), gamma, constraints, request)

    @property
    def unit(self) -> float:
        """Factor from objectives in standard units to those in units of the file."""
        return self.data.loss_unit

    def refit(self, outcome: Outcome, gamma: float) -> _FittedTask:
        """Return the model, refitted from the rows unless it has boxes."""
        support, data = np.asarray(outcome.incumbent, dtype=np.int64), self.data
        if self.constraints.has_coefficient_bounds and data.loss.is_quadratic:
            beta, source, columns = np.asarray(outcome.beta), data.dataset, data.columns[support]
            # fitted from the rows: if the fit is nearly perfect, moments have lost the digits of the objective
            ridge = ridge_weights(columns.tolist(), data.free, gamma)
            objective, _ = evaluate_objective(
                source.X, source.y, columns.tolist(), beta * data.y_unit / data.divisor[support], ridge,
                scale=data.scale, intercept=data.intercept, weights=source.row_weights,
            )  # fmt: skip
            return _FittedTask(objective / self.unit, support, beta, self.squares.v_mean, self.squares.r_mean, None)
        fit = refit_rows(self.data, slice(0, self.data.n), support, gamma)
        v_mean = np.zeros(self.data.q)
        v_mean[support] = fit.v_mean
        doubt = None if data.loss.is_quadratic else fit.objective_error
        return _FittedTask(fit.objective, support, fit.beta, v_mean, fit.r_mean, doubt)


class _FittedTask(NamedTuple):
    """A model in standard coordinates; `doubt` is a bound on the rounding of its objective, if known."""

    objective: float
    support: IntArray
    beta: FloatArray
    v_mean: FloatArray
    r_mean: float
    doubt: float | None


def _solve_by_trees(model: _Model, start: Start | None, limits: Limits, box: float | None) -> Outcome:
    """Solve by the trees of this package: for coefficients in [-box, box], in units of the file, or on the rows."""
    from sparsecv_mio.search.deadline import Deadline
    from sparsecv_mio.search.problems.all_rows import WideTraining
    from sparsecv_mio.trees.every_size import solve_path

    data, tau, gamma, clock = model.data, model.tau, model.gamma, Deadline(limits.seconds, None)

    def has_expired() -> bool:
        return limits.is_cancelled or clock.has_expired()

    starts = [] if start is None else [np.asarray(start.support, dtype=np.int64)]
    node_limit = int(limits.nodes) if np.isfinite(limits.nodes) else UNLIMITED
    if box is not None:
        problem, ends = model.squares, box / data.y_unit * data.divisor
        built = clock.seconds
        solved = solve_path(
            problem, [tau], warm_starts=starts, node_limit=node_limit, is_expired=has_expired, ends=ends
        )
        return _outcome(model, solved, limits, clock, built)
    choice = ForcedColumns.from_positions(data.q, np.array(model.constraints.forced_out, dtype=np.int64))
    if model.constraints.needs:
        data = replace(data.only(choice.others), restrictions=model.asked.restrictions or NONE)
    whole = WideTraining.from_full_data(data, gamma, has_expired)
    built = clock.seconds
    whole.wide.search([tau])
    whole.wide.try_supports([choice.inside(support) for support in starts])
    solved = whole.solve_size(tau, node_limit).map_to_columns(choice.others)
    return _outcome(model, solved, limits, clock, built)


def _solve_by_subsets(model: _Model, backend: Solver, start: Start | None, limits: Limits) -> Outcome:
    """Solve by the best subsets of the full data, as `path` does."""
    if backend.name != NATIVE or not model.constraints.needs <= {"force"}:
        raise BadInput(
            f"loss {model.data.loss}: supports only backend native, force_in and force_out; leave others out"
        )
    from sparsecv_mio.search.answer.answer_fits import make_answer_fits
    from sparsecv_mio.search.deadline import Deadline

    data, clock = model.data, Deadline(limits.seconds, None)
    choice = ForcedColumns.from_positions(data.q, np.array(model.constraints.forced_out, dtype=np.int64))
    others = replace(data.only(choice.others), restrictions=model.asked.restrictions or data.restrictions)
    starts = [] if start is None else [choice.inside(np.asarray(start.support, dtype=np.int64))]
    node_limit = int(limits.nodes) if np.isfinite(limits.nodes) else UNLIMITED
    found = make_answer_fits(others).solve(
        model.gamma, [model.tau], starts, node_limit, lambda: limits.is_cancelled or clock.has_expired()
    )
    return _outcome(model, found.map_to_columns(choice.others), limits, clock, 0.0)


def _compare_from_rows(model: _Model, outcome: Outcome, limits: Limits) -> Outcome:
    """Compare near ties by fits from the rows, as `path` does, where rounding errors of the moments leave a gap."""
    from sparsecv_mio.search.answer.answer_fits import make_answer_fits
    from sparsecv_mio.search.answer.result import fitted_row
    from sparsecv_mio.search.deadline import Deadline

    data, tau, gamma, clock = model.data, model.tau, model.gamma, Deadline(limits.seconds - outcome.seconds, None)
    choice = ForcedColumns.from_positions(data.q, np.array(model.constraints.forced_out, dtype=np.int64))
    others = replace(data.only(choice.others), restrictions=model.asked.restrictions or NONE)
    starts = [choice.inside(np.asarray(outcome.incumbent, dtype=np.int64))]
    node_limit = int(limits.nodes - outcome.nodes) if np.isfinite(limits.nodes) else UNLIMITED
    found = make_answer_fits(others).solve(
        gamma, [tau], starts, node_limit, lambda: limits.is_cancelled or clock.has_expired()
    )
    row = fitted_row(others, gamma, None, found.by_size[tau], limits.gap)
    if not row.proved:
        return outcome
    support = data.support_of(row.support)
    lower, upper = row.lower / data.loss_unit, row.upper / data.loss_unit
    return replace(
        outcome, stop=Stop.OPTIMAL, incumbent=tuple(support.tolist()), lower=lower, upper=upper,
        beta=tuple(refit_rows(data, slice(0, data.n), support, gamma).beta.tolist()),
        nodes=outcome.nodes + found.nodes, seconds=outcome.seconds + clock.seconds,
        raw_status="complete; nearly tied supports compared by refits",
        allowance=max(upper - lower - limits.gap * upper, 0.0),
    )  # fmt: skip


def _outcome(model: _Model, found: BestSubsets, limits: Limits, clock: Deadline, built: float) -> Outcome:
    """Return the outcome of the trees: their support refitted, and the reason for stopping."""
    data, tau = model.data, model.tau
    cell = found.by_size[tau]
    fit = refit_rows(data, slice(0, data.n), cell.support, model.gamma)
    upper = fit.objective + fit.objective_error
    lower = min(cell.lower, upper)
    stop = Stop.INTERRUPTED if limits.is_cancelled else Stop.TIME if clock.has_expired() else Stop.NODES
    if stop is Stop.NODES and found.nodes < limits.nodes:
        stop = Stop.GAP
    yy = refit_rows(data, slice(0, data.n), np.zeros(0, dtype=np.int64), model.gamma).objective
    allowance = proof_allowance(cell.margin, yy, upper)
    if upper - lower <= limits.gap * upper + allowance:
        stop = Stop.OPTIMAL
    return Outcome(
        stop=stop,
        incumbent=tuple(cell.support.tolist()),
        lower=lower,
        upper=upper,
        nodes=found.nodes,
        seconds=clock.seconds - built,
        raw_status="complete" if cell.complete else STOPPED.get(stop, "stopped"),
        beta=tuple(fit.beta.tolist()),
        allowance=allowance,
        formulation="tree",
        setup_seconds=built,
    )


def _start(data: StandardData, names: Sequence[str]) -> Start:
    position = {name: j for j, name in enumerate(data.names)}
    unknown = [name for name in names if name not in data.dataset.names]
    if unknown:
        raise BadInput(f"start: {unknown[0]!r} is not a feature of the data; check its name")
    support = {*(position[name] for name in names if name in position), *data.adjusting.tolist()}
    return Start(tuple(sorted(support)), "user")


def _record(model: _Model, outcome: Outcome, backend: Solver, pair: tuple[int, float], limits: Limits) -> FitRecord:
    data, unit, (tau, gamma) = model.data, model.unit, pair
    objective, support, beta, v_mean, r_mean, doubt = model.refit(outcome, gamma)
    coefficients, intercept = data.coefficients(support, beta, v_mean, r_mean)
    slack = objective_slack(objective * unit, data.dataset, str(data.intercept)) / unit if doubt is None else doubt
    upper = min(max(outcome.upper, objective), objective + slack)
    lower, upper, allowance = (x * unit for x in (min(outcome.lower, objective), upper, outcome.allowance))
    allowance, stop = min(allowance, LARGEST_ALLOWANCE * upper), outcome.stop
    if stop is Stop.OPTIMAL and upper - lower > limits.gap * upper + allowance:
        stop = Stop.GAP
    ignored = limits.threads > 1 and "threads" not in backend.capabilities.limits
    notes = (f"backend {backend.name} uses one thread, not {limits.threads}",) if ignored else ()
    return FitRecord(
        schema=FIT_SCHEMA,
        backend=backend.name,
        formulation=outcome.formulation,
        status=STATUS.get(stop, "limit"),
        tau=tau,
        gamma=gamma,
        support=data.features_of(support),
        coefficients=coefficients,
        intercept=intercept,
        objective=objective * unit,
        lower=lower,
        upper=upper,
        gap=relative_gap(lower, upper),
        requested_gap=limits.gap,
        allowance=allowance,
        nodes=outcome.nodes,
        cuts=outcome.cuts,
        seconds=outcome.seconds,
        setup_seconds=outcome.setup_seconds,
        stop=str(stop),
        raw_status=outcome.raw_status,
        warnings=(*drop_fold_wording(data.warnings), *notes),
        versions={**versions(), backend.name: backend.available().version},
        side=model.asked,
        **describe_data(data, null_error_of_folds(data.dataset, data.loss, None)),
    )


BY_PYOMO = {".mps": "mps", ".lp": "lp", ".nl": "nl"}
BY_MOSEK = (".cbf", ".ptf")
LINEAR = (".mps", ".lp")
READ_BY = {
    ".mps": "Gurobi and SCIP read it", ".lp": "Gurobi reads it", ".nl": "SCIP reads it", ".cbf": "Mosek reads it",
    ".ptf": "Mosek reads it",
}  # fmt: skip


def describe_export(path: str, piecewise: int | None, missed: float, loss: Loss) -> str:
    """Return a sentence that states which model a file contains and which solvers read it."""
    suffix = Path(path).suffix.lower()
    if piecewise is not None:
        each = "square" if loss.is_quadratic else f"{loss.target.row_loss} and square"
        model = f"piecewise linear model, {piecewise} tangents for each {each} and big-M rows"
        least = f"its minimum objective is at most {missed:.2g} below that of `sparsecv fit`"
        return f"{model}: HiGHS, Gurobi, SCIP and other MIP solvers read it; {least}"
    kind = "rotated quadratic cones" if suffix in BY_MOSEK else "quadratic rows"
    if not loss.is_quadratic:
        kind = "exponential and quadratic cones" if suffix in BY_MOSEK else "constraints with exponentials and squares"
    return (
        f"perspective model with {kind}: {READ_BY[suffix]}; HiGHS reads linear models only, which --piecewise 64 writes"
    )


def export_model(
    problem: SparseProblem | GlmProblem,
    tau: int,
    path: str,
    *,
    labels: Sequence[str] | None = None,
    constraints: SideConstraints = FREE,
    piecewise: int | None = None,
) -> tuple[float, float, float]:
    """Write the perspective MISOCP, or a linear model instead, to a file; return how to read its objective.

    Parameters
    ----------
    problem : SparseProblem or GlmProblem
        Problem in standard coordinates; with two classes in any columns.
    tau : int
        Maximum support size.
    path : str
        File with the suffix .mps, .lp, .nl (quadratic, by Pyomo) or .cbf, .ptf (conic, by Mosek, no licence needed).
        Log losses are written as .nl, .cbf, .ptf, or piecewise linear.
    labels : sequence of str, optional
        Names of the columns; they appear in the names of the variables if the format has names.
    constraints : SideConstraints, optional
        Side constraints.
    piecewise : int, optional
        Number of tangents for each square of a linear model.

    Returns
    -------
    offset, factor, missed : float
        Numbers with `f = offset + factor * (objective of the file)`, `f` in standard coordinates; for a linear model
        the minimum f is up to `missed` more.

    Raises
    ------
    BadInput
        If the suffix is unknown, the file cannot be written, or the side constraints exclude every support.
    BackendUnavailable
        If pyomo, or mosek for a conic format, is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in BY_PYOMO and suffix not in BY_MOSEK:
        raise BadInput(f"--to: unknown file ending {suffix!r}; use {', '.join([*BY_PYOMO, *BY_MOSEK])}")
    if piecewise is not None and suffix not in LINEAR:
        raise BadInput(f"piecewise: {suffix} files have no linear model; write {' or '.join(LINEAR)}")
    classes = isinstance(problem, GlmProblem)
    if classes and piecewise is None and suffix in LINEAR:
        raise BadInput(
            f"--to: {suffix} files cannot represent the log loss; write .nl, .cbf or .ptf, or a linear model with "
            "--piecewise 64"
        )
    task, missed = _make_task(problem, tau, constraints), 0.0
    if piecewise is not None:
        check_whole("piecewise", piecewise, least=2, most=MAX_COUNT)
        require_finite(task.lo, task.hi, "a linear model")
    try:
        import_pyomo()
    except BackendUnavailable as error:
        raise BackendUnavailable(f"export: {error}") from error
    from sparsecv_mio.formulation import models

    with replacing(path, "model") as temporary:
        if suffix in BY_PYOMO:
            logging.getLogger("pyomo").setLevel(logging.ERROR)
            model: models.PerspectiveModel
            if piecewise is None:
                model = (models.FactorModel if classes else models.PerspectiveModel)(task, labels)
            else:
                model = models.PiecewiseModel(task, labels, piecewise)
                missed = model.missed
            model.pyomo.write(
                str(temporary), format=BY_PYOMO[suffix], io_options={"symbolic_solver_labels": labels is not None}
            )
        else:
            from sparsecv_mio.formulation.backends.mosek import write_conic

            write_conic(str(temporary), models.lower_model(models.FactorModel(task)))
    return task.scaled.objective(0.0), task.scaled.unit**2, missed * task.scaled.unit**2


def _make_task(problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints) -> ModelTask:
    """Return a task with its start; raise `BadInput` if the side constraints exclude every support."""
    if isinstance(problem, GlmProblem):
        problem = problem.centre_columns()[0]
    start = feasible_start(problem, tau, constraints)
    if start is None:
        raise _infeasible(tau)
    return make_task(problem, tau, constraints, start, KnownBounds())

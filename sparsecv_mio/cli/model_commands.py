"""The commands `path`, `near`, `bounds`, `inspect`, `backends`, `warmup`; `fit` and `export` for a single problem."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sparsecv_mio import declared_options as options
from sparsecv_mio import model_space
from sparsecv_mio.cli import Began, ending, parse, session
from sparsecv_mio.cli.command_options import ID, REFERENCE, DataFile, Given, group, option, with_declared_options
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import RESTRICTIONS
from sparsecv_mio.parallel import call_in_thread
from sparsecv_mio.targets import Loss, TargetColumns

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.data.table_facts import Inspection
    from sparsecv_mio.fits.fit_options import FitOptions, NearOptions, PathOptions, SideOptions
    from sparsecv_mio.formulation.outcome import StopRequest
    from sparsecv_mio.model_space import Restrictions


PATH_CODES = (
    "Exit codes: 0 proved within --gap and rounding errors, 2 bad input, 3 limit reached (answer printed, bounds "
    "valid), 130 interrupted (answer and record written)."
)
TOGETHER = option(None, "A,B", "Select either all of these features or none of them. May be repeated. [none]")
BOX = option(None, "A:LO:HI", "Deprecated, will be removed in 0.4; use --coef-bounds A=LO..HI. [none]")
NEAR_CODES = (
    """\b
Examples:
  sparsecv near diabetes.csv --target y --within 1%
  sparsecv near diabetes.csv --target y --folds loo --gamma 0.1 --tau 4:6
  sparsecv near housing.csv --target medv --by objective --gamma 0.1 --most 20
  sparsecv near patients.csv --target outcome --loss logistic

"""
    "Exit codes: 0 no list was cut short by a limit, 2 bad input, 3 limit reached (lists printed, bounds valid), 130 "
    "interrupted (lists and record written)."
)
AS_PRINTED = "as-printed"
BOUNDS_WORDS = ("safe", AS_PRINTED)
BOUNDS_CODES = (
    "Exit codes: 0 done, 2 bad input, 3 limit reached, 130 interrupted. With codes 3 and 130, the bounds found so far "
    "are printed and are valid. A fold without a bound is printed with the interval [0, ?]."
)
FIT_CODES = (
    "Exit codes: 0 proved within --gap and the tolerances of the solver, 2 bad input or no support meets the side "
    "constraints, 3 limit reached (answer printed, bounds valid), 4 backend unavailable, 130 interrupted."
)


@with_declared_options(node_limit=options.EFFORT)
def path(
    data: DataFile,
    *,
    table: Given,
    id: str | None = ID,
    losses: Given,
    weights: str | None = None,
    gamma: str | None = None,
    tau: str | None = None,
    restrictions: Given,
    units: Given,
    node_limit: Given,
    reference: str | None = REFERENCE,
    full: bool = False,
    proof: str | None = None,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Find the best subset of every size.

    The command fits all rows, without cross-validation. For every tau it prints the support, the coefficients and
    certified bounds on the objective.
    """
    session.check_outputs({"--json": json, "--proof": proof}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.fits.fit_options import PathOptions

        chosen = session.on_cores(units | node_limit | losses)
        how = PathOptions.of(**chosen, restrictions=parse.restrictions(**restrictions))
        shown_against = parse.reference(reference, how)

        refuse_early(proof, how.restrictions, weights, how)
        read = partial(session.read_weighted, data, table, weights, how, id)
        dataset = how.in_classes(session.run_preparation(read, stop, how))
        if restrictions["count"] is None:
            how = replace(how, restrictions=_count_as_solve(dataset, gamma, tau, how, quiet))

        from sparsecv_mio.cli import live
        from sparsecv_mio.fits.best_subsets import best_subsets
        from sparsecv_mio.report.coefficients import make_printer, with_reference
        from sparsecv_mio.report.fit_tables import print_path  # after a limit there is no time to load it

        gammas = None if gamma is None or model_space.interval(gamma) is not None else model_space.gammas(gamma)
        how, levels = session.find_reference_levels(shown_against, dataset, how, gammas, quiet)
        with parse.advice_with_reference(levels), live.progress_view(quiet, stop) as progress:
            record = best_subsets(
                dataset, gammas=gamma, taus=tau, options=how, progress=progress, stop=stop, began=Began.moment
            )
            record = with_reference(record, levels)

    printer = make_printer(lambda screen, one: print_path(screen, one, dataset, brief=quiet, full=full), record)
    files = proof_files(record, dataset, proof, data=data, json=json, quiet=quiet)
    return session.deliver_record(record, printer, json, quiet, files=files)


def _note_single_levels(dataset: Dataset, adjusted: Sequence[str]) -> None:
    """Print a note if each level of a text column counts as a feature, other than in `solve`."""
    from sparsecv_mio.report.record_tables import describe_single_levels

    if levels := describe_single_levels(name for name in dataset.names if name not in adjusted):
        ending.tell(f"note: {levels}; `solve`, `near` and `path` may count all levels of a column as one feature")


def _count_as_solve(
    dataset: Dataset, gamma: str | None, tau: str | None, how: PathOptions, quiet: bool,
    plan: FoldPlan | None = None,
) -> Restrictions:  # fmt: skip
    """Return the restrictions with the default of `count` that `solve` has for these data and folds, by default ten."""
    from sparsecv_mio.data.folds import make_folds
    from sparsecv_mio.search.options import SearchOptions
    from sparsecv_mio.search.question import Question

    folds = plan or make_folds("10" if dataset.n >= 10 else "loo", dataset)
    gammas = gamma and (model_space.interval(gamma) or gamma)
    same_models = SearchOptions.of(loss=how.loss, restrictions=how.restrictions)
    question = Question(dataset, folds, gammas, tau, same_models)
    return session.count_factors_together(question, quiet).restrictions


@with_declared_options(forced=options.LISTING, node_limit=options.LIMITS)
def near(
    data: DataFile,
    *,
    table: Given,
    id: str | None = ID,
    rows: Given,
    losses: Given,
    within: str = option("1%", "SHARE", "List the models whose value exceeds the best value of their size by at "
                                        "most this share, such as 1% or 0.01. With --by objective and logistic or "
                                        "Poisson loss, the screen also states the excess as a difference in "
                                        "deviance plus penalty."),
    most: str = option("1000", "N", "Maximum number of models for each size, or all."),
    by: str | None = None,
    gamma: str | None = option(None, "G", "Ridge weight. [chosen by cross-validation]"),
    tau: str | None = option(None, "LIST", "Model sizes, as in `solve`. [chosen by cross-validation; with --by "
                                           "objective and --gamma: all sizes, as in `path`]"),
    forced: Given,
    units: Given,
    node_limit: Given,
    full: bool = option(False, "", "Print every model instead of the ten best of each size."),
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """List all near-optimal models.

    For each size tau, the list contains every set of tau features whose value exceeds the minimum by at most --within;
    it is certified that no such set is missing. The command also prints the features that all models or no model
    contain, and the pairs of features by which two listed models differ.
    """
    ridge_weight = None if gamma is None else one_gamma(gamma)
    session.check_outputs({"--json": json}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.fits.fit_options import NearOptions

        how = NearOptions.of(
            within=within, most=parse.count_or_all(most, "--most"), by=by,
            restrictions=parse.restrictions(**forced), **session.on_cores(units | node_limit | losses),
        )  # fmt: skip

        def read() -> tuple[Dataset, FoldPlan, NearOptions]:
            dataset, plan = session.read_with_folds(data, table, rows, quiet, id, how)
            if forced["count"] is not None:
                return dataset, plan, how
            return dataset, plan, replace(how, restrictions=_count_as_solve(dataset, gamma, tau, how, quiet, plan))

        dataset, plan, how = session.run_preparation(read, stop, how)
        how, _ = session.find_reference_levels((), dataset, how, None if gamma is None else [ridge_weight], quiet)

        from sparsecv_mio.cli.live import compilation_lines
        from sparsecv_mio.near.near_optimal import near_optimal
        from sparsecv_mio.report.record_tables import print_near_optimal  # after a limit there is no time to load it

        with compilation_lines(quiet):
            record = near_optimal(
                dataset, plan, gamma=ridge_weight, taus=tau, options=how, stop=stop, began=Began.moment
            )

    return session.deliver_record(
        record, lambda screen: print_near_optimal(screen, record, brief=quiet, full=full), json, quiet,
        warnings=session.describe_separated_rows(dataset, plan, id),
    )  # fmt: skip


@with_declared_options(forced=options.FORCING, node_limit=options.LIMITS)
def bounds(
    data: DataFile,
    *,
    table: Given,
    id: str | None = ID,
    rows: Given,
    losses: Given,
    gamma: str | None = None,
    tau: str | None = None,
    forced: Given,
    units: Given,
    bounds: str = option("safe", "WORD", "safe: certified bounds; as-printed: numbers by the formula printed in the "
                                         "paper, which are estimates, not valid bounds.", BOUNDS_WORDS),
    node_limit: Given,
    full: bool = False,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Bound the CV error of every (tau, gamma) pair by convex relaxations, without branching.

    Each interval is certified to contain the CV error of the exact best subsets. The column `estimate` is the CV error
    at the solutions of the relaxations, and is not certified.
    """
    limits = parse.restrictions(**forced)
    session.check_outputs({"--json": json}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.fits.cv_bounds import bound_cv_errors, check_formula
        from sparsecv_mio.fits.fit_options import PathOptions
        from sparsecv_mio.report.before_search import print_bounds

        how = PathOptions.of(**session.on_cores(losses | units | node_limit), restrictions=limits)
        check_formula(bounds == AS_PRINTED, how.loss)
        read = partial(session.read_with_folds, data, table, rows, quiet, id, how)
        dataset, plan = session.run_preparation(read, stop, how)
        from sparsecv_mio.cli.live import compilation_lines, counting_bar
        from sparsecv_mio.search.options import Hooks

        if not quiet:
            _note_single_levels(dataset, how.by_names(dataset).restrictions.adjust)

        with counting_bar(quiet, "folds bounded") as progress, compilation_lines(quiet):
            bounded = bound_cv_errors(
                dataset, plan, gammas=gamma, taus=tau, as_printed=bounds == AS_PRINTED, options=how, progress=progress,
                hooks=Hooks(stop=stop, began=Began.moment),
            )  # fmt: skip
    estimated = {} if how.loss.is_quadratic else {"estimated_at": "the supports of a local search"}
    notes = [*session.reading_notes(dataset, quiet), *session.describe_separated_rows(dataset, plan, id)]
    if bounded.status == "limit":
        limit = f"--time-limit: the command stopped after {how.time_limit:g} seconds"
        notes.append(f"{limit}; the printed bounds are valid")
    chosen = _options_of_bounds(bounded.options, plan, rows, losses, units)
    numbers = bounded.table.to_dict() | {"data": session.describe_data(dataset), "options": chosen}
    numbers["wall_seconds"] = bounded.seconds
    return ending.deliver(
        session.EXIT_CODE[bounded.status],
        lambda screen: print_bounds(screen, bounded.table, quiet, full, bounded.seconds, **estimated),
        json=json, record=ending.make_json_writer(numbers), warnings=notes,
    )  # fmt: skip


def _options_of_bounds(how: PathOptions, plan: FoldPlan, rows: Given, losses: Given, units: Given) -> dict[str, object]:
    """Return the options that a record of `bounds` stores."""
    chosen = {"folds": rows["folds"], "seed": plan.seed, **units, "fold_digest": plan.digest}
    if not how.loss.is_quadratic:
        chosen |= {name: value for name, value in losses.items() if value is not None}
    if rows["weights"] is not None:
        chosen["weights"] = rows["weights"]
    chosen |= {name: value for name in RESTRICTIONS if (value := getattr(how.restrictions, name))}
    return chosen if how.time_limit is None else chosen | {"time_limit": how.time_limit}


def one_gamma(text: str) -> float:
    """Return a single ridge weight."""
    gammas = model_space.gammas(text)
    if len(gammas) != 1:
        raise BadInput(f"--gamma: {text!r} has {len(gammas)} values, but this command needs one; give one value")
    return gammas[0]


def side_options(restrictions: Given, together: Sequence[str] | None, box: Sequence[str] | None) -> SideOptions:
    """Return the side constraints that the options describe.

    Parameters
    ----------
    restrictions : dict
        Options of `RESTRICTING`, by name.
    together : sequence of str, optional
        Groups of features that enter together.
    box : sequence of str, optional
        Boxes `FEATURE:LO:HI`, the deprecated form of bounds on coefficients.

    Returns
    -------
    SideOptions
        The side constraints.

    Raises
    ------
    BadInput
        If a text cannot be parsed; the message names its option.
    """
    from sparsecv_mio.fits.fit_options import SideOptions

    asked = parse.restrictions(**restrictions)
    bounds = (*asked.coef_bounds, *model_space.parse_coef_bounds(list(map(_parse_box, box or ()))))
    if box:
        ending.tell("warning: --box is deprecated and will be removed in 0.4; use --coef-bounds A=LO..HI")
    groups = tuple(tuple(parse.names(text, "--together") or ()) for text in together or ())
    return SideOptions(**vars(replace(asked, coef_bounds=bounds)), together=groups)


def _parse_box(text: str) -> tuple[str, tuple[float, float]]:
    # split from the right, since a name may contain a colon
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise BadInput(f"--box: {text!r} is not of the form FEATURE:LO:HI; write for example age:0:5")
    low = model_space.finite_number(parts[1], "--box") if parts[1].strip() else -math.inf
    high = model_space.finite_number(parts[2], "--box") if parts[2].strip() else math.inf
    return model_space.unquoted_name(parts[0]), (low, high)


@dataclass(frozen=True)
class FitRequest:
    """The options of the command `fit`, in the order of its help."""

    tau: int = option(..., "K", "Maximum number of features.", least=0)
    gamma: str = option(..., "G", "Ridge weight, such as 0.1.")
    table: Given = group(options.TABLE)
    id: str | None = ID
    losses: Given = group(options.LOSSES)
    weights: str | None = None
    backend: str = option("native", "B", "Solver; `sparsecv backends` lists them.")
    formulation: str | None = option(None, "F", "MIO formulation. [the first one of the backend]")
    solver_option: list[str] | None = None
    units: Given = group(options.UNITS)
    stopping: Given = group(options.STOPPING | {"gap": 1e-7})
    threads: int | None = None
    start: str | None = option(None, "A,B", "Features of the initial support of the search. [none]")
    restrictions: Given = group(options.RESTRICTING)
    together: list[str] | None = TOGETHER
    box: list[str] | None = BOX
    assume_box: float | None = option(
        None, "M",
        "Assume that coefficients are in [-M, M]; the proof then covers only such models. [no assumption]",
    )  # fmt: skip
    reference: str | None = REFERENCE
    log: str | None = option(None, "FILE", "Write the log of the solver to this file. [none]")
    proof: str | None = None
    json: str | None = None
    quiet: bool = False

    def make_options(self, side: SideOptions, cancel: StopRequest) -> FitOptions:
        """Return the checked options of the fit; raise `BadInput` for options that the backend does not support.

        Parameters
        ----------
        side : SideOptions
            Side constraints.
        cancel : StopRequest
            Signal that ends the solver.
        """
        from sparsecv_mio.fits.fit_options import FitOptions
        from sparsecv_mio.formulation.backends import get_backend
        from sparsecv_mio.search.options import limits_of_mio

        how = FitOptions.of(
            backend=self.backend, formulation=self.formulation, solver_option=self.solver_option, **self.units,
            **self.losses, side=side, start=parse.names(self.start, "--start"), assume_box=self.assume_box,
        )  # fmt: skip
        honoured = get_backend(how.backend).capabilities.limits
        if self.log is not None and "log" not in honoured:
            raise BadInput(f"--log: backend {how.backend} does not write a log; leave this option out")
        threads = session.cores() if "threads" in honoured else 1
        if self.threads is not None:
            threads = self.threads
        return replace(how, limits=limits_of_mio(self.stopping, threads=threads, log=self.log, cancel=cancel))


@with_declared_options(request=FitRequest)
def fit(data: DataFile, *, request: FitRequest) -> int:
    """Find the best subset of at most K features on all rows with one solver.

    The objective of the answer comes from an exact refit. The lower bound is that of the solver, reduced by the
    tolerances of the solver.
    """
    weights, quiet, json, proof = request.weights, request.quiet, request.json, request.proof
    ridge = one_gamma(request.gamma)
    session.check_outputs({"--json": json, "--log": request.log, "--proof": proof}, [data])
    side = side_options(request.restrictions, request.together, request.box)

    with session.stop_on_interrupt() as stop:
        how = request.make_options(side, stop)
        obstacle = None if request.assume_box is None else "--assume-box"
        refuse_early(proof, side, weights, how, obstacle)
        dataset = how.in_classes(session.read_weighted(data, request.table, weights, how, request.id))
        from sparsecv_mio.certificate.restrictions import reference_levels
        from sparsecv_mio.fits.one import fit_one
        from sparsecv_mio.report.coefficients import make_printer, with_reference

        if not (quiet or request.restrictions["count"] or request.together):
            _note_single_levels(dataset, side.resolve_names(dataset.names).adjust)
        levels = reference_levels(parse.names(request.reference, "--reference") or (), dataset, side)
        session.raise_if_interrupted(stop)
        with parse.advice_with_reference(levels):
            record = call_in_thread(lambda: fit_one(dataset, tau=request.tau, gamma=ridge, options=how))
        record = with_reference(record, levels)

    from sparsecv_mio.report.fit_tables import print_fit

    printer = make_printer(lambda screen, one: print_fit(screen, one, quiet, dataset), record)
    files = proof_files(record, dataset, proof, data=data, json=json, quiet=quiet)
    return session.deliver_record(record, printer, json, quiet, files=files)


@with_declared_options()
def export(
    data: DataFile,
    *,
    tau: int = option(..., "K", "Maximum number of features.", least=0),
    gamma: str = option(..., "G", "Ridge weight, such as 0.1 (for columns of length 1)."),
    to: str = option(..., "FILE", "Output file: .mps, .lp, .nl (quadratic), .cbf or .ptf (conic)."),
    table: Given,
    id: str | None = ID,
    losses: Given,
    weights: str | None = None,
    units: Given,
    restrictions: Given,
    together: list[str] | None = TOGETHER,
    box: list[str] | None = BOX,
    piecewise: int | None = option(None, "N", "Write a linear model instead of the quadratic model, for example for "
                                              "HiGHS: N tangents for each square, and big-M rows. Only for .mps and "
                                              ".lp. [quadratic]"),
) -> int:  # fmt: skip
    """Write the perspective formulation of one full-data MIO problem to a file that other solvers read.

    Gurobi reads .mps and .lp files, SCIP .mps and .nl, Mosek .cbf and .ptf, and HiGHS .mps and .lp written with
    --piecewise. With --loss logistic, the formats are .nl, .cbf and .ptf, and with --piecewise .mps and .lp.
    """
    ridge = one_gamma(gamma)
    session.check_outputs({"--to": to}, [data])
    side = side_options(restrictions, together, box)
    from sparsecv_mio.fits.fit_options import FitOptions

    how = FitOptions.of(**units, **losses, side=side)
    dataset, loss = session.read_weighted(data, table, weights, how, id), how.loss

    from sparsecv_mio.fits.one import describe_export, export_one

    offset, factor, missed = export_one(dataset, to, tau=tau, gamma=ridge, options=how, piecewise=piecewise)
    total = loss.target.total
    total += " (weighted by row)" if weights is not None else ""
    meaning = f"{to}: {total} + (gamma/2) ||b||^2 = {offset!r} + {factor!r} * (objective of the exported model)"
    lines = (
        f"{meaning}, where b are coefficients of scaled columns\n{describe_export(to, piecewise, missed, loss)}\n"
        "the objective that a solver returns may be below or above the minimum, by the tolerances of the solver\n"
        "the variables u are not in the units of the file: for coefficients, refit the columns with nonzero u by "
        "`sparsecv fit --force-in COLUMNS` with the same options"
    )
    return ending.deliver(0, lambda screen: screen.print(lines, markup=False, soft_wrap=True))


INSPECT_CODES = "Exit codes: 0 done, 2 the file is not a table (the message names the option that may help)."


@with_declared_options()
def inspect(
    data: DataFile,
    *,
    table: Given,
    id: str | None = ID,
    weights: str | None = None,
    loss: str | None = None,
    exposure: str | None = None,
    offset: str | None = None,
    trials: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    strata: str | None = None,
    full: bool = option(False, "", "List all columns."),
    json: str | None = option(None, "FILE", "Write the findings to this file; - is standard output. [none]"),
) -> int:  # fmt: skip
    """Inspect a file before fitting a model.

    The command prints the type, the number of missing values and the range of every column. It reports columns that
    are constant, duplicate another column or number the rows. Finally it proposes a `solve` command with the options
    that the file needs, and prints the size of the problem.
    """
    session.check_outputs({"--json": json}, [data])
    from sparsecv_mio.data.reading_options import Reading
    from sparsecv_mio.data.table_facts import inspect_file

    target, drop, features = table.pop("target"), table.pop("drop"), table.pop("features")
    columns = parse.names(drop, "--drop"), parse.names(features, "--features")
    how = Reading.from_keywords(**table)
    of_target = TargetColumns(exposure, offset, trials, event, entry, strata)
    roles = {"id": id, "weights": weights}
    facts = inspect_file(data, target, how, *columns, None if loss is None else Loss(loss), of_target, roles)
    inspection = _with_dashes(facts)

    def show(screen: Console) -> None:
        from sparsecv_mio.report.before_search import print_inspection

        print_inspection(screen, inspection, data, full=full)

    return ending.deliver(
        0, show, json=json, record=ending.make_json_writer({"command": "inspect", **asdict(inspection)})
    )


def _with_dashes(inspection: Inspection) -> Inspection:
    """Return the inspection with options in command-line form."""
    said = partial(
        parse.with_dashes, options=[declared.flag for declared in options.OPTIONS.values()]
    )  # options of `solve`
    columns = [replace(column, notes=tuple(map(said, column.notes))) for column in inspection.columns]
    doubts = {name: said(doubt) for name, doubt in inspection.doubts.items()}
    return replace(inspection, columns=tuple(columns), doubts=doubts, refused=said(inspection.refused))


@with_declared_options()
def backends(
    json: str | None = option(None, "FILE", "Write the tables to this file as JSON; - is standard output. [none]"),
    verbose: bool = option(
        False, "", "Also show the folder of compiled kernels, and whether the compiled kernels of the package are used."
    ),
) -> int:
    """List the solvers that can be used here, and the packages to install for the other solvers.

    The tables show versions, licence limits, formulations, side constraints and supported limits.
    """
    session.check_outputs({"--json": json})
    from sparsecv_mio.report.fit_tables import describe_backends, print_backends

    rows = describe_backends()
    if verbose:
        from sparsecv_mio.warmup import where_kernels_are

        for line in where_kernels_are():
            ending.tell(line)
    record = ending.make_json_writer({"schema": "sparsecv-backends/1", "backends": rows})
    return ending.deliver(0, lambda screen: print_backends(screen, rows), json=json, record=record)


@with_declared_options()
def warmup() -> int:
    """Compile all numerical code now and store it in the cache, so that later commands start at once.

    Without this command, each command compiles the code that it needs at its first use. Compiling all code takes a
    few minutes. The cache is a folder of the user (in a clone, a folder in the package); the variable
    NUMBA_CACHE_DIR names another folder.
    """
    begun = time.monotonic()

    def show(what: str, number: int, count: int) -> None:
        ending.tell(f"{time.monotonic() - begun:.0f} s; compiling kernels, {number} of {count}: {what}")

    from sparsecv_mio.warmup import warm_up

    warm_up(show)
    ending.tell(f"{time.monotonic() - begun:.0f} s; all kernels are compiled")
    return 0

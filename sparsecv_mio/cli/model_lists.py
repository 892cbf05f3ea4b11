"""The commands `sparsecv path` (best subset of each size), `near` (near-optimal models) and `bounds` (CV errors)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sparsecv_mio import model_space
from sparsecv_mio.cli import Began, ending, parse, session
from sparsecv_mio.cli.command_options import REFERENCE, DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.declared_options import DEALING, EFFORT, FORCING, LIMITS, LISTING, LOSSES, RESTRICTING, TABLE, UNITS
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import RESTRICTIONS

if TYPE_CHECKING:
    pass


PATH_CODES = (
    "Exit codes: 0 proved within --gap, 2 bad input, 3 limit reached (answer printed, bounds valid), "
    "130 interrupted (answer and record written)."
)


@with_declared_options(table=TABLE, losses=LOSSES, restrictions=RESTRICTING, units=UNITS, effort=EFFORT)
def path(
    data: DataFile,
    *,
    table: Given,
    losses: Given,
    weights: str | None = None,
    gamma: str | None = None,
    tau: str | None = None,
    restrictions: Given,
    units: Given,
    effort: Given,
    reference: str | None = REFERENCE,
    full: bool = False,
    proof: str | None = None,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Find the best subset of every size.

    The same engine on all rows, without cross-validation: supports, coefficients and certified bounds of every tau.
    """
    session.check_outputs({"--json": json, "--proof": proof}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.fits.fit_options import PathOptions

        chosen = session.on_cores(units | effort | losses)
        how = PathOptions.of(**chosen, restrictions=parse.restrictions(**restrictions))
        shown_against = parse.reference(reference, how)

        refuse_early(proof, how.restrictions, weights, how.loss, how.class_weight)
        read = partial(session.read_weighted, data, table, weights, how.loss, how.exposure)
        dataset = how.in_classes(session.run_preparation(read, stop, how))

        from sparsecv_mio.certificate.factor_levels import reference_levels
        from sparsecv_mio.cli import live
        from sparsecv_mio.fits.best_subsets import best_subsets
        from sparsecv_mio.report.path_tables import print_path  # after a limit there is no time to load it
        from sparsecv_mio.report.reference_levels import make_printer, with_reference

        levels = reference_levels(shown_against, dataset, how.restrictions)

        with live.progress_view(quiet, stop) as progress:
            record = best_subsets(
                dataset, gammas=gamma, taus=tau, options=how, progress=progress, stop=stop, began=Began.moment
            )
            record = with_reference(record, levels)

    return ending.deliver(
        session.EXIT_CODE[record.status],
        make_printer(lambda screen, one: print_path(screen, one, dataset, brief=quiet, full=full), record),
        json=json, record=record.pieces,
        files=proof_files(record, dataset, proof, data=data, json=json, quiet=quiet),
        warnings=() if quiet else record.warnings,
    )  # fmt: skip


NEAR_CODES = (
    """\b
Examples:
  sparsecv near diabetes.csv --target y --within 1%
  sparsecv near diabetes.csv --target y --folds loo --gamma 0.1 --tau 4:6
  sparsecv near housing.csv --target medv --by objective --gamma 0.1 --most 20
  sparsecv near patients.csv --target outcome --loss logistic

"""
    "Exit codes: 0 no list was cut by a limit, 2 bad input, 3 limit reached (lists printed, claims valid), 130 "
    "interrupted (lists and record written)."
)


@with_declared_options(table=TABLE, rows=DEALING, losses=LOSSES, forced=LISTING, units=UNITS, effort=LIMITS)
def near(
    data: DataFile,
    *,
    table: Given,
    rows: Given,
    losses: Given,
    within: str = option("1%", "SHARE", "Largest excess over the best value of each size: 1% or 0.01."),
    most: str = option("1000", "N", "Maximum number of models for each size; or all."),
    by: str | None = None,
    gamma: str | None = option(None, "G", "Ridge weight. [chosen by cross-validation]"),
    tau: str | None = option(None, "LIST", "Model sizes, as in `solve`. [chosen by cross-validation; with --by "
                                           "objective "
                             "and --gamma: all sizes, as in `path`]"),
    forced: Given,
    units: Given,
    effort: Given,
    full: bool = option(False, "", "Print every model instead of the ten best of each size."),
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """List every model near the best one.

    All sets of tau features whose value exceeds the least one by at most --within, with a proof that none is missing;
    which features all, or none, of them have; and which features stand in for each other.
    """
    gammas = None if gamma is None else model_space.gammas(gamma)
    if gammas is not None and len(gammas) > 1:
        raise BadInput(
            f"--gamma: {len(gammas)} ridge weights are given, but near needs one; give one, or leave it out for the "
            "best one"
        )
    session.check_outputs({"--json": json}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.fits.fit_options import NearOptions

        how = NearOptions.of(
            within=parse.parse_share(within, "--within"), most=parse.count_or_all(most, "--most"), by=by,
            restrictions=parse.restrictions(**forced), **session.on_cores(units | effort | losses),
        )  # fmt: skip
        read = partial(session.read_with_folds, data, table, rows, quiet, None, how)
        dataset, plan = session.run_preparation(read, stop, how)

        from sparsecv_mio.cli.live import compilation_lines
        from sparsecv_mio.near.near_optimal import near_optimal
        from sparsecv_mio.report.record_tables import print_near_optimal  # after a limit there is no time to load it

        with compilation_lines(quiet):
            record = near_optimal(
                dataset, plan, gamma=None if gammas is None else gammas[0], taus=tau, options=how, stop=stop,
                began=Began.moment,
            )  # fmt: skip

    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_near_optimal(screen, record, brief=quiet, full=full),
        json=json, record=record.pieces, warnings=() if quiet else record.warnings,
    )  # fmt: skip


AS_PRINTED = "as-printed"
BOUNDS_WORDS = ("safe", AS_PRINTED)

BOUNDS_CODES = (
    "Exit codes: 0 done, 2 bad input, 3 limit reached (bounds so far printed, and valid), 130 interrupted (the same); "
    "folds not reached keep [0, ?]."
)


@with_declared_options(table=TABLE, rows=DEALING, losses=LOSSES, forced=FORCING, units=UNITS, effort=LIMITS)
def bounds(
    data: DataFile,
    *,
    table: Given,
    rows: Given,
    losses: Given,
    gamma: str | None = None,
    tau: str | None = None,
    forced: Given,
    units: Given,
    bounds: str = option("safe", "WORD", "safe (all valid bounds) or as-printed (the formula of the paper, which gives "
                         "estimates, not valid bounds).", BOUNDS_WORDS),
    effort: Given,
    full: bool = False,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Bound the CV error of every (tau, gamma) by convex relaxations, without branching.

    Each interval is proved to contain the CV error of the exact best subsets; `estimate` is the CV error of the
    relaxations' own solutions and proves nothing.
    """
    limits = parse.restrictions(**forced)
    session.check_outputs({"--json": json}, [data])
    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.fits.cv_bounds import bound_cv_errors, check_formula
        from sparsecv_mio.fits.fit_options import PathOptions
        from sparsecv_mio.report.before_search import print_bounds

        how = PathOptions.of(**session.on_cores(losses | units | effort), restrictions=limits)
        check_formula(bounds == AS_PRINTED, how.loss)
        dataset, plan = session.run_preparation(
            partial(session.read_with_folds, data, table, rows, quiet, None, how), stop, how
        )
        from sparsecv_mio.cli.live import compilation_lines, counting_bar
        from sparsecv_mio.search.options import Hooks

        with counting_bar(quiet, "folds bounded") as progress, compilation_lines(quiet):
            bounded = bound_cv_errors(
                dataset, plan, gammas=gamma, taus=tau, as_printed=bounds == AS_PRINTED, options=how, progress=progress,
                hooks=Hooks(stop=stop, began=Began.moment),
            )  # fmt: skip
    has_estimated_supports = not how.loss.is_quadratic
    chosen = {"folds": rows["folds"], "seed": plan.seed, **units, "fold_digest": plan.digest}
    chosen |= {name: value for name, value in losses.items() if value is not None} if has_estimated_supports else {}
    if rows["weights"] is not None:
        chosen["weights"] = rows["weights"]
    restrictions = bounded.options.restrictions
    chosen |= {name: getattr(restrictions, name) for name in RESTRICTIONS if getattr(restrictions, name)}
    estimated = {"estimated_at": "supports of a local search"} if has_estimated_supports else {}
    if how.time_limit is not None:
        chosen["time_limit"] = how.time_limit
    cut = (
        [f"--time-limit: stopped after {how.time_limit:g} seconds; the bounds found so far are printed"]
        if bounded.status == "limit" and not quiet
        else []
    )
    numbers = bounded.table.to_dict() | {"data": session.describe_data(dataset), "options": chosen}
    numbers["wall_seconds"] = bounded.seconds
    return ending.deliver(
        session.EXIT_CODE[bounded.status],
        lambda screen: print_bounds(screen, bounded.table, quiet, full, bounded.seconds, **estimated),
        json=json, record=ending.make_json_writer(numbers), warnings=[*session.reading_notes(dataset, quiet), *cut],
    )  # fmt: skip

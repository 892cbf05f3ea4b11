"""`sparsecv path`, `near`, `bounds`: best subsets of every size, models near the best, an interval of every pair."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sparsecv_mio import model_space
from sparsecv_mio.cli import Began, ending, options, oracles, parse, session
from sparsecv_mio.cli.options import reads_tables
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.data.reading_options import ReadingWords
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import RESTRICTIONS
from sparsecv_mio.words import By

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan


PATH_CODES = (
    "Exit codes: 0 proved within --gap, 2 bad input, 3 limit reached (answer printed, bounds valid), "
    "130 interrupted (answer and record written)."
)


@reads_tables
def path(
    data: options.DataFile,
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    weights: options.Weights = None,
    gamma: options.Gamma = None,
    tau: options.Tau = None,
    force_in: options.ForceIn = None,
    force_out: options.ForceOut = None,
    at_most: options.AtMost = None,
    hierarchy: options.Hierarchy = None,
    nonnegative: options.Nonnegative = None,
    nonpositive: options.Nonpositive = None,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    gap: options.Gap = 1e-4,
    time_limit: options.TimeLimit = None,
    threads: options.Threads = None,
    full: options.Full = False,
    proof: options.Proof = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> int:
    """Find the best subset of every size.

    The same engine on all rows, without cross-validation: supports, coefficients and certified bounds of every tau.
    """
    every = None if gamma is None else model_space.interval(gamma)
    given = every if every is not None or gamma is None else model_space.gammas(gamma)
    session.check_outputs({"--json": json, "--proof": proof}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.fits.fit_options import PathOptions

        how = PathOptions.of(
            scale=scale, intercept=intercept, gap=gap, time_limit=time_limit,
            threads=session.cores() if threads is None else threads,
            restrictions=parse.restrictions(
                force_in=force_in, force_out=force_out, at_most=at_most, hierarchy=hierarchy, nonnegative=nonnegative,
                nonpositive=nonpositive,
            ),
        )  # fmt: skip

        refuse_early(proof, how.restrictions, weights)

        def ready() -> tuple[Dataset, tuple[float, ...] | model_space.GammaInterval, tuple[int, ...]]:
            from sparsecv_mio.data.weights import least_rows

            dataset = session.read_weighted(data, target, features, drop, weights, reading=reading)
            within = how.restrictions.within(dataset.names)
            shape = within.left(dataset.p), least_rows(dataset)
            return (
                dataset,
                given or model_space.default_gammas(*shape),
                model_space.taus_of(tau, *shape, "--tau", within),
            )

        dataset, grid, sizes = session.in_time(ready, stop, how.time_limit)

        from sparsecv_mio.cli import live
        from sparsecv_mio.fits.best_subsets import best_subsets
        from sparsecv_mio.report.record_tables import print_path  # after a limit there is no time to load it

        with live.progress_view(quiet, stop) as progress:
            record = best_subsets(
                dataset, gammas=grid, taus=sizes, options=how, progress=progress, stop=stop, began=Began.moment
            )

    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_path(screen, record, brief=quiet, full=full),
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

"""
    "Exit codes: 0 no list was cut by a limit, 2 bad input, 3 limit reached (lists printed, claims valid), 130 "
    "interrupted (lists and record written)."
)


@reads_tables
def near(
    data: options.DataFile,
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    weights: options.Weights = None,
    folds: options.Folds = "10",
    seed: options.Seed = None,
    within: Annotated[
        str, typer.Option("--within", metavar="SHARE", help="How far above the best of its size: 1% or 0.01.")
    ] = "1%",
    most: Annotated[
        str, typer.Option("--most", metavar="N", help="Of every size list the N best models at most; or all.")
    ] = "1000",
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="|".join(By),
            callback=parse.word(By, "--by"),
            help="cv: the CV error of the features, the same in every fold; objective: the training objective on all "
            "rows.",
        ),
    ] = "cv",
    gamma: Annotated[
        str | None,
        typer.Option("--gamma", metavar="G", help="Ridge weight. [the one that cross-validation chooses]"),
    ] = None,
    tau: Annotated[
        str | None,
        typer.Option(
            "--tau",
            metavar="LIST",
            help="Support sizes, as of solve: a list each. [the one that cross-validation chooses; --by objective with "
            "--gamma: as of path]",
        ),
    ] = None,
    force_in: options.ForceIn = None,
    force_out: options.ForceOut = None,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    time_limit: options.TimeLimit = None,
    threads: options.Threads = None,
    full: Annotated[bool, typer.Option("--full", help="Print every model, not the ten best of a size.")] = False,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> int:
    """List every model near the best one.

    All sets of tau features whose value exceeds the least one by at most --within, with a proof that none is missing;
    which features all, or none, of them have; and which features stand in for each other.
    """
    given = None if gamma is None else model_space.gammas(gamma)
    if given is not None and len(given) > 1:
        raise BadInput(f"--gamma: {len(given)} ridge weights, near takes one: give one, or none for the best one")
    session.check_outputs({"--json": json}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.near.near_options import NearOptions

        how = NearOptions.of(
            within=parse.share(within, "--within"), most=parse.count_or_all(most, "--most"), by=by, scale=scale,
            intercept=intercept, time_limit=time_limit, threads=session.cores() if threads is None else threads,
            restrictions=parse.restrictions(force_in=force_in, force_out=force_out),
        )  # fmt: skip

        def ready() -> tuple[Dataset, FoldPlan]:
            return session.read_dealt(
                data, target, features, drop, weights=weights, folds=folds, seed=seed, quiet=quiet, reading=reading
            )

        dataset, plan = session.in_time(ready, stop, how.time_limit)

        from sparsecv_mio.near.near_optimal import near_optimal
        from sparsecv_mio.report.record_tables import print_near  # after a limit there is no time to load it

        record = near_optimal(
            dataset, plan, gamma=None if given is None else given[0], taus=tau, options=how, stop=stop,
            began=Began.moment,
        )  # fmt: skip

    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_near(screen, record, brief=quiet, full=full),
        json=json, record=record.pieces, warnings=() if quiet else record.warnings,
    )  # fmt: skip


BOUNDS_WORDS = ("safe", "as-printed")

BOUNDS_CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (folds not reached keep [0, ?])."


@reads_tables
def bounds(
    data: options.DataFile,
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    weights: options.Weights = None,
    reading: ReadingWords | None = None,
    folds: options.Folds = "10",
    seed: options.Seed = None,
    gamma: options.Gamma = None,
    tau: options.Tau = None,
    force_in: options.ForceIn = None,
    force_out: options.ForceOut = None,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    bounds: Annotated[
        str,
        typer.Option(
            "--bounds",
            metavar="WORD",
            callback=parse.word(BOUNDS_WORDS, "--bounds"),
            help="safe (everything valid), or as-printed (the paper's formula, which is not valid: estimates only).",
        ),
    ] = "safe",
    threads: options.Threads = None,
    full: options.Full = False,
    json: options.Json = None,
    plot: options.Plot = None,
    quiet: options.Quiet = False,
) -> int:
    """Bound the CV error of every (tau, gamma) by convex relaxations, without branching.

    Each interval is proved to contain the CV error of the exact best subsets; `estimate` is the CV error of the
    relaxations' own solutions and proves nothing.
    """
    given = None if gamma is None else model_space.gammas(gamma)
    asked = parse.restrictions(force_in=force_in, force_out=force_out)
    workers = parse.threads(threads, session.cores())
    session.check_outputs({"--json": json, "--plot": plot}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.data.weights import least_rows
        from sparsecv_mio.report.before_search import plot_bounds, print_bounds

        dataset, plan = session.read_dealt(
            data, target, features, drop, weights=weights, folds=folds, seed=seed, quiet=quiet, reading=reading
        )
        restrictions = asked.within(dataset.names)
        shape = restrictions.left(dataset.p), least_rows(dataset, plan)
        grid, sizes = (
            given or model_space.default_gammas(*shape),
            model_space.taus_of(tau, *shape, "--tau", restrictions),
        )
        restrictions.check_sizes(sizes, dataset.p)

        from sparsecv_mio.bounds.cv_error import SAFE, BoundsHooks, compute_bounds, printed_bounds
        from sparsecv_mio.data.standard import standardize

        session.raise_if_interrupted(stop)
        begin = time.perf_counter()
        with oracles.counting_bar(quiet, "folds") as progress:
            make = compute_bounds if bounds == SAFE else printed_bounds
            standard, hooks = standardize(dataset, scale, intercept, restrictions), BoundsHooks(progress, stop.is_set)
            table = make(standard, plan, grid, sizes, threads=workers, hooks=hooks)
        seconds = time.perf_counter() - begin
        interrupted = stop.is_set()
    chosen = {"folds": folds, "seed": plan.seed, "scale": scale, "intercept": intercept, "fold_digest": plan.digest}
    if weights is not None:
        chosen["weights"] = weights
    chosen |= {name: getattr(restrictions, name) for name in RESTRICTIONS if getattr(restrictions, name)}
    numbers = table.to_dict() | {"data": oracles.describe(dataset), "options": chosen, "wall_seconds": seconds}
    return ending.deliver(
        130 if interrupted else 0, lambda screen: print_bounds(screen, table, brief=quiet, full=full, seconds=seconds),
        json=json, record=oracles.text_of(numbers), warnings=oracles.notes(dataset, quiet),
        files=[] if plot is None else [lambda: plot_bounds(table, plot)],
    )  # fmt: skip

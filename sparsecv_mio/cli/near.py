"""`sparsecv near`: every model near the best one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sparsecv_mio import grids
from sparsecv_mio.cli import Began, ending, options, parse, session
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords
from sparsecv_mio.errors import BadInput
from sparsecv_mio.words import By

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.folds import FoldPlan

CODES = (
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
    given = None if gamma is None else grids.gammas(gamma)
    if given is not None and len(given) > 1:
        raise BadInput(f"--gamma: {len(given)} ridge weights, near takes one: give one, or none for the best one")
    session.check_outputs({"--json": json}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.near.options import NearOptions

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
        from sparsecv_mio.report.near_tables import print_near  # after a limit there is no time to load it

        record = near_optimal(
            dataset, plan, gamma=None if given is None else given[0], taus=tau, options=how, stop=stop,
            began=Began.moment,
        )  # fmt: skip

    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_near(screen, record, brief=quiet, full=full),
        json=json, record=record.pieces, warnings=() if quiet else record.warnings,
    )  # fmt: skip

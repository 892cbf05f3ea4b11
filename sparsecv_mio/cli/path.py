"""`sparsecv path`: best subsets on all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsecv_mio import grids
from sparsecv_mio.cli import Began, ending, options, parse, session
from sparsecv_mio.cli.proof import proof_files, refuse_early
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset

CODES = (
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
    every = None if gamma is None else grids.interval(gamma)
    given = every if every is not None or gamma is None else grids.gammas(gamma)
    session.check_outputs({"--json": json, "--proof": proof}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.fits.options import PathOptions

        how = PathOptions.of(
            scale=scale, intercept=intercept, gap=gap, time_limit=time_limit,
            threads=session.cores() if threads is None else threads,
            restrictions=parse.restrictions(
                force_in=force_in, force_out=force_out, at_most=at_most, hierarchy=hierarchy, nonnegative=nonnegative,
                nonpositive=nonpositive,
            ),
        )  # fmt: skip

        refuse_early(proof, how.restrictions, weights)

        def ready() -> tuple[Dataset, tuple[float, ...] | grids.GammaInterval, tuple[int, ...]]:
            from sparsecv_mio.data.weights import least_rows

            dataset = session.read_weighted(data, target, features, drop, weights, reading=reading)
            within = how.restrictions.within(dataset.names)
            shape = within.left(dataset.p), least_rows(dataset)
            return dataset, given or grids.default_gammas(*shape), grids.taus_of(tau, *shape, "--tau", within)

        dataset, grid, sizes = session.in_time(ready, stop, how.time_limit)

        from sparsecv_mio.cli import live
        from sparsecv_mio.fits.best_subsets import best_subsets
        from sparsecv_mio.report.tables import print_path  # after a limit there is no time to load it

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

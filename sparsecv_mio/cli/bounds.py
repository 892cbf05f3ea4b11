"""`sparsecv bounds`: the CV error bracketed without solving a single MIO."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sparsecv_mio import grids
from sparsecv_mio.cli import ending, options, oracles, parse, session
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords
from sparsecv_mio.restrictions import RESTRICTIONS

WORDS = ("safe", "conic", "aggregated", "as-printed")

CODES = "Exit codes: 0 done, 2 bad input, 130 interrupted (folds not reached keep [0, ?])."


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
            callback=parse.word(WORDS, "--bounds"),
            help="safe (everything valid), conic (row by row), aggregated (a fold's rows together), or as-printed (the "
            "paper's formula, which is not valid: estimates only).",
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
    given = None if gamma is None else grids.gammas(gamma)
    asked = parse.restrictions(force_in=force_in, force_out=force_out)
    workers = parse.threads(threads, session.cores())
    session.check_outputs({"--json": json, "--plot": plot}, [data])
    with session.interruptible() as stop:
        from sparsecv_mio.data.weights import least_rows
        from sparsecv_mio.report.bounds_tables import plot_bounds, print_bounds

        dataset, plan = session.read_dealt(
            data, target, features, drop, weights=weights, folds=folds, seed=seed, quiet=quiet, reading=reading
        )
        restrictions = asked.within(dataset.names)
        shape = restrictions.left(dataset.p), least_rows(dataset, plan)
        grid, sizes = given or grids.default_gammas(*shape), grids.taus_of(tau, *shape, "--tau", restrictions)
        restrictions.check_sizes(sizes, dataset.p)

        from sparsecv_mio.bounds.all_folds import BoundsHooks
        from sparsecv_mio.bounds.cv_error import compute_bounds
        from sparsecv_mio.data.standard import standardize

        session.raise_if_interrupted(stop)
        begin = time.perf_counter()
        with oracles.counting_bar(quiet, "folds") as progress:
            table = compute_bounds(
                standardize(dataset, scale, intercept, restrictions), plan, grid, sizes,
                bounds,  # type: ignore[call-overload]
                threads=workers, hooks=BoundsHooks(progress, stop.is_set),
            )  # fmt: skip
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

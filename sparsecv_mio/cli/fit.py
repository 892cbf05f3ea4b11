"""`sparsecv fit`: one MIO on all rows, by any backend."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, options, parse, session
from sparsecv_mio.cli import side as extra
from sparsecv_mio.cli.proof import proof_files, refuse_early
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords
from sparsecv_mio.errors import BadInput

CODES = (
    "Exit codes: 0 proved within --gap, 2 bad input or no support meets the side constraints, 3 limit "
    "reached (answer printed, bounds valid), 4 backend unavailable, 130 interrupted."
)


@reads_tables
def fit(
    data: options.DataFile,
    tau: Annotated[int, typer.Option("--tau", metavar="K", help="Largest number of features.")],
    gamma: Annotated[str, typer.Option("--gamma", metavar="G", help="Ridge weight.")],
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    weights: options.Weights = None,
    reading: ReadingWords | None = None,
    backend: Annotated[str, typer.Option("--backend", metavar="B", help="See `sparsecv backends`.")] = "native",
    formulation: Annotated[
        str | None, typer.Option("--formulation", metavar="F", help="Model to solve. [the backend's first]")
    ] = None,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    gap: options.Gap = 1e-7,
    time_limit: options.TimeLimit = None,
    node_limit: Annotated[
        int | None, typer.Option("--node-limit", metavar="N", help="Stop after N nodes with valid bounds. [none]")
    ] = None,
    threads: options.Threads = None,
    start: Annotated[str | None, typer.Option("--start", metavar="A,B", help="Features to start from.")] = None,
    force_in: options.ForceIn = None,
    force_out: options.ForceOut = None,
    together: extra.Together = None,
    at_most: extra.AtMost = None,
    box: extra.Box = None,
    assume_box: Annotated[
        float | None,
        typer.Option("--assume-box", metavar="M", help="Assume coefficients in [-M, M]; the proof is then of these."),
    ] = None,
    hierarchy: options.Hierarchy = None,
    nonnegative: options.Nonnegative = None,
    nonpositive: options.Nonpositive = None,
    log: Annotated[str | None, typer.Option("--log", metavar="FILE", help="The solver's log.")] = None,
    proof: options.Proof = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> int:
    """Find the best subset of at most K features on all rows, by one solver.

    The objective of the answer is an exact refit; the bound is the solver's, less what it is not trusted for.
    """
    ridge = extra.one_gamma(gamma)
    parse.count(tau, "--tau", least=0)
    session.check_outputs({"--json": json, "--log": log, "--proof": proof}, [data])
    side = extra.side_options(
        force_in, force_out, together, at_most, box, hierarchy=hierarchy,
        signs=parse.restrictions(nonnegative=nonnegative, nonpositive=nonpositive),
    )  # fmt: skip

    with session.interruptible() as stop:
        from sparsecv_mio.fits.one import fit_one
        from sparsecv_mio.fits.options import FitOptions, SideOptions
        from sparsecv_mio.formulation.backends import get_backend
        from sparsecv_mio.formulation.outcome import Limits

        how = FitOptions.of(
            backend=backend, formulation=formulation, scale=scale, intercept=intercept, side=side,
            start=parse.names(start, "--start"), assume_box=assume_box,
        )  # fmt: skip
        honoured = get_backend(how.backend).capabilities.limits
        if log is not None and "log" not in honoured:
            raise BadInput(f"--log: backend {how.backend} writes no log")
        workers = session.cores() if "threads" in honoured else 1
        limits = Limits(
            gap=gap, seconds=math.inf if time_limit is None else time_limit,
            nodes=math.inf if node_limit is None else node_limit, threads=workers if threads is None else threads,
            log=log, cancel=stop,
        )  # fmt: skip
        how = replace(how, limits=limits)
        other = "side constraints" if side != SideOptions() else "--assume-box" if assume_box is not None else None
        refuse_early(proof, None, weights, other)
        dataset = session.read_weighted(data, target, features, drop, weights, reading=reading)
        session.raise_if_interrupted(stop)
        record = extra.in_own_thread(lambda: fit_one(dataset, tau=tau, gamma=ridge, options=how))

    from sparsecv_mio.report.backends import print_fit

    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_fit(screen, record, brief=quiet),
        json=json, record=record.pieces,
        files=proof_files(record, dataset, proof, data=data, json=json, quiet=quiet),
        warnings=() if quiet else record.warnings,
    )  # fmt: skip

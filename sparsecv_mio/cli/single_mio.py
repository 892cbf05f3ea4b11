"""`sparsecv fit`, `export`, `compare`: one MIO with side constraints, solved, written, or given to several solvers."""

from __future__ import annotations

import math
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sparsecv_mio import model_space
from sparsecv_mio.cli import ending, options, parse, session
from sparsecv_mio.cli.options import reads_tables
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.data.reading_options import ReadingWords
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import reason
from sparsecv_mio.model_space import NONE, Restrictions, parents_of

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.fits.fit_options import SideOptions


T = TypeVar("T")

Together = Annotated[
    list[str] | None, typer.Option("--together", metavar="A,B", help="Chosen all or none; may be repeated.")
]
AtMost = Annotated[
    list[str] | None, typer.Option("--at-most", metavar="K:A,B,...", help="At most K of these; may be repeated.")
]
Box = Annotated[
    list[str] | None,
    typer.Option(
        "--box", metavar="A:LO:HI", help="Bounds of a chosen feature's coefficient, in units of the file; an end may "
        "be empty (A:0: is a sign). May be repeated.",
    ),
]  # fmt: skip


def one_gamma(text: str) -> float:
    """Read a single ridge weight."""
    found = model_space.gammas(text)
    if len(found) != 1:
        raise BadInput(f"--gamma: {text!r}: one MIO has one gamma")
    return found[0]


def side_options(
    force_in: str | None,
    force_out: str | None,
    together: Sequence[str] | None,
    at_most: Sequence[str] | None,
    box: Sequence[str] | None,
    hierarchy: Sequence[str] | None = None,
    signs: Restrictions = NONE,
) -> SideOptions:
    """Read the side constraints that the options describe.

    Parameters
    ----------
    force_in, force_out : str, optional
        Names of features, separated by commas.
    together : sequence of str, optional
        Groups of names that are chosen all or none.
    at_most : sequence of str, optional
        `K:A,B,...` each.
    box : sequence of str, optional
        `FEATURE:LO:HI` each.
    hierarchy : sequence of str, optional
        As :func:`~sparsecv_mio.model_space.parents_of` reads them.
    signs : Restrictions, optional
        Whose signs are taken over.

    Returns
    -------
    SideOptions

    Raises
    ------
    BadInput
        A text cannot be read; the message names its option.
    """
    from sparsecv_mio.fits.fit_options import SideOptions

    return SideOptions(
        force_in=tuple(parse.names(force_in, "--force-in") or ()),
        force_out=tuple(parse.names(force_out, "--force-out") or ()),
        together=tuple(tuple(parse.names(text, "--together") or ()) for text in together or ()),
        at_most=tuple(_at_most(text) for text in at_most or ()),
        box=dict(_box(text) for text in box or ()),
        hierarchy=parents_of(hierarchy or ()),
        nonnegative=signs.nonnegative,
        nonpositive=signs.nonpositive,
    )


def _at_most(text: str) -> tuple[int, tuple[str, ...]]:
    count, colon, features = text.partition(":")
    if not colon:
        raise BadInput(f"--at-most: {text!r} is not K:A,B,...")
    k = model_space.whole(count, "--at-most")
    if k < 0:
        raise BadInput(f"--at-most: {k} is out of range, a count is at least 0")
    return k, tuple(parse.names(features, "--at-most") or ())


def _box(text: str) -> tuple[str, tuple[float, float]]:
    # split from the right: a name may hold a colon
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise BadInput(f"--box: {text!r} is not FEATURE:LO:HI")
    low = model_space.number(parts[1], "--box") if parts[1].strip() else -math.inf
    high = model_space.number(parts[2], "--box") if parts[2].strip() else math.inf
    if low > high:
        raise BadInput(f"--box: {text!r} is reversed")
    return parts[0].strip(), (low, high)


def in_own_thread(work: Callable[[], T]) -> T:
    """Run work in a separate thread and wait: Ctrl-C then reaches the main thread while a solver runs in C."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed over to the caller's thread below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    if errors:
        raise errors[0]
    return results[0]


FIT_CODES = (
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
    together: Together = None,
    at_most: AtMost = None,
    box: Box = None,
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
    ridge = one_gamma(gamma)
    parse.count(tau, "--tau", least=0)
    session.check_outputs({"--json": json, "--log": log, "--proof": proof}, [data])
    side = side_options(
        force_in, force_out, together, at_most, box, hierarchy=hierarchy,
        signs=parse.restrictions(nonnegative=nonnegative, nonpositive=nonpositive),
    )  # fmt: skip

    with session.interruptible() as stop:
        from sparsecv_mio.fits.fit_options import FitOptions, SideOptions
        from sparsecv_mio.fits.one import fit_one
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
        record = in_own_thread(lambda: fit_one(dataset, tau=tau, gamma=ridge, options=how))

    from sparsecv_mio.report.backend_tables import print_fit

    return ending.deliver(
        session.EXIT_CODE[record.status], lambda screen: print_fit(screen, record, brief=quiet),
        json=json, record=record.pieces,
        files=proof_files(record, dataset, proof, data=data, json=json, quiet=quiet),
        warnings=() if quiet else record.warnings,
    )  # fmt: skip


@reads_tables
def export(
    data: options.DataFile,
    tau: Annotated[int, typer.Option("--tau", metavar="K", help="Largest number of features.")],
    gamma: Annotated[str, typer.Option("--gamma", metavar="G", help="Ridge weight.")],
    to: Annotated[
        str, typer.Option("--to", metavar="FILE", help="Ends with .mps, .lp, .nl (quadratic), .cbf or .ptf (conic).")
    ],
    target: options.Target = None,
    features: options.Features = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    force_in: options.ForceIn = None,
    force_out: options.ForceOut = None,
    together: Together = None,
    at_most: AtMost = None,
    box: Box = None,
    hierarchy: options.Hierarchy = None,
    nonnegative: options.Nonnegative = None,
    nonpositive: options.Nonpositive = None,
) -> int:
    """Write the perspective model of one MIO on all rows to a file that other solvers read."""
    weight = one_gamma(gamma)
    parse.count(tau, "--tau", least=0)
    session.check_outputs({"--to": to}, [data])
    side = side_options(
        force_in, force_out, together, at_most, box, hierarchy=hierarchy,
        signs=parse.restrictions(nonnegative=nonnegative, nonpositive=nonpositive),
    )  # fmt: skip
    dataset = session.read_data(data, target, features, drop, (), reading=reading)

    from sparsecv_mio.fits.one import export_one

    offset, factor = export_one(dataset, to, tau=tau, gamma=weight, scale=scale, intercept=intercept, side=side)
    meaning = f"{to}: ||y - Xb||^2 + (gamma/2) ||b||^2 in the scaled columns = {offset!r} + {factor!r} * objective"
    return ending.deliver(0, lambda screen: screen.print(meaning, markup=False, soft_wrap=True))


OUTPUTS = ("compare.csv", "compare.md", "compare.png")

COMPARE_CODES = (
    "Exit codes: 0 done (the table says where a backend met a limit), 2 bad input, 4 no backend could "
    "solve anything, 130 interrupted (what was measured is written)."
)


@reads_tables
def compare(
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="One or more data files.", show_default=False)],
    tau: Annotated[str, typer.Option("--tau", metavar="LIST", help="Support sizes: 2,5,8 or LO:HI.")],
    gamma: Annotated[str, typer.Option("--gamma", metavar="LIST", help="Ridge weights.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where compare.csv, .md and .png go.")],
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="T", help="Column to predict; one for all files or a list, one each."),
    ] = None,
    reading: ReadingWords | None = None,
    backends: Annotated[
        str, typer.Option("--backends", metavar="LIST", help="Names, or name:formulation.")
    ] = "native,gurobi,scip,highs",
    folds: Annotated[
        str | None, typer.Option("--folds", metavar="SPEC", help="Every fold's training rows. [all rows at once]")
    ] = None,
    seed: options.Seed = None,
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", help="Runs of each; medians are shown.")] = 3,
    scale: options.Scale = "length",
    intercept: options.Intercept = "fold",
    gap: options.Gap = 1e-7,
    time_limit: options.TimeLimit = None,
    threads: Annotated[int, typer.Option("--threads", metavar="N", help="Threads of each solver.")] = 1,
    warm: Annotated[
        bool, typer.Option("--warm", help="From the second repeat on, every backend starts from the best support.")
    ] = False,
    quiet: options.Quiet = False,
) -> int:
    """Solve the same MIOs by several backends and compare time, work, bounds and answers.

    Runs are interleaved; compilation and licence start-up stay outside of the clock; objectives are exact refits.
    """
    weights = model_space.gammas(gamma)
    parse.count(repeats, "--repeats", most=10**6)
    folder = _folder(out)
    session.check_outputs({f"--out {name}": str(folder / name) for name in OUTPUTS}, data)
    targets = _targets(target, len(data))

    with session.interruptible() as stop:
        from sparsecv_mio.batch.mio_comparison import Contender, cells_of
        from sparsecv_mio.batch.mio_comparison import compare as run
        from sparsecv_mio.data.folds import fold_columns
        from sparsecv_mio.formulation.outcome import Limits
        from sparsecv_mio.search.options import check_limits

        seconds = math.inf if time_limit is None else time_limit
        limits = Limits(gap=gap, seconds=seconds, threads=threads, cancel=stop)
        check_limits(limits)
        contenders = [Contender.of(label.strip()) for label in backends.split(",")]
        cells = []
        for path, column in zip(data, targets, strict=True):
            dataset = session.read_data(path, column, None, None, fold_columns(folds) if folds else (), reading=reading)
            plan = session.make_plan(folds, dataset, seed, quiet) if folds else None
            sizes = model_space.taus(tau, dataset.p)
            name = Path(path).stem
            cells += list(cells_of(name, dataset, plan, taus=sizes, gammas=weights, scale=scale, intercept=intercept))
        session.raise_if_interrupted(stop)
        rows = in_own_thread(lambda: run(cells, contenders, repeats=repeats, limits=limits, warm=warm))

    from sparsecv_mio.files import write_text
    from sparsecv_mio.report.backend_tables import markdown, plot_compare, print_compare, write_csv

    command = shlex.join(["sparsecv", *sys.argv[1:]])
    table, page, figure = (folder / name for name in OUTPUTS)

    def print_rows(screen: Console) -> None:
        if not quiet:
            print_compare(screen, rows)
        screen.print(f"{table}, {page}, {figure}", markup=False)

    ran = any(row.seconds == row.seconds for row in rows)
    return ending.deliver(
        130 if stop.is_set() else 0 if ran else 4, print_rows,
        files=[
            lambda: write_csv(rows, table), lambda: write_text(page, [markdown(rows, command)]),
            lambda: plot_compare(rows, figure),
        ],
    )  # fmt: skip


def _folder(out: str) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise BadInput(f"--out: cannot make folder {out}: {reason(error)}") from None
    return folder


def _targets(text: str | None, count: int) -> list[str | None]:
    if text is None:
        return [None] * count
    found: list[str | None] = list(parse.names(text, "--target") or [])
    if len(found) == 1:
        return found * count
    if len(found) != count:
        raise BadInput(f"--target: {len(found)} names for {count} files, give one or one each")
    return found

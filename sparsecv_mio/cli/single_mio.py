"""The commands `sparsecv fit`, `export` and `compare`: one MIO with side constraints, solved, written or compared."""

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
from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import REFERENCE, DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.record_commands import proof_files, refuse_early
from sparsecv_mio.declared_options import LOSSES, OF_TABLES, RESTRICTING, STOPPING, TABLE, UNITS
from sparsecv_mio.errors import BadInput, parse_keyword
from sparsecv_mio.files import reason, write_text
from sparsecv_mio.words import LOSS_WORDS, Loss

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.fold_plan import FoldPlan
    from sparsecv_mio.fits.fit_options import FitOptions, SideOptions


T = TypeVar("T")

TOGETHER = option(None, "A,B", "Select all of these features or none. May be repeated. [none]")
BOX = option(
    None,
    "A:LO:HI",
    "Bounds on the coefficient of feature A, in units of the file; a bound may be empty (A:0: forces a sign). May be "
    "repeated. [none]",
)


def one_gamma(text: str) -> float:
    """Return a single ridge weight."""
    gammas = model_space.gammas(text)
    if len(gammas) != 1:
        raise BadInput(f"--gamma: {text!r}: one MIO has one gamma")
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
        Boxes `FEATURE:LO:HI`.

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

    return SideOptions(
        **vars(parse.restrictions(**restrictions)),
        together=tuple(tuple(parse.names(text, "--together") or ()) for text in together or ()),
        box=dict(_parse_box(text) for text in box or ()),
    )


def _parse_box(text: str) -> tuple[str, tuple[float, float]]:
    # split from the right, since a name may contain a colon
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise BadInput(f"--box: {text!r} is not FEATURE:LO:HI")
    low = model_space.finite_number(parts[1], "--box") if parts[1].strip() else -math.inf
    high = model_space.finite_number(parts[2], "--box") if parts[2].strip() else math.inf
    if low > high:
        raise BadInput(f"--box: {text!r} is reversed")
    return model_space.unquoted_name(parts[0]), (low, high)


def call_in_thread(work: Callable[[], T]) -> T:
    """Run work in a separate thread and wait: Ctrl-C then reaches the main thread while a solver runs in C."""
    results: list[T] = []
    errors: list[BaseException] = []

    def store_outcome() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again in the thread of the caller below
            errors.append(error)

    thread = threading.Thread(target=store_outcome, daemon=True)
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


@with_declared_options(
    table=TABLE, losses=LOSSES, units=UNITS, stopping=STOPPING | {"gap": 1e-7}, restrictions=RESTRICTING
)
def fit(
    data: DataFile,
    *,
    tau: int = option(..., "K", "Maximum number of features.", least=0),
    gamma: str = option(..., "G", "Ridge weight, such as 0.1."),
    table: Given,
    losses: Given,
    weights: str | None = None,
    backend: str = option("native", "B", "Solver; `sparsecv backends` lists them."),
    formulation: str | None = option(None, "F", "MIO formulation. [the first one of the backend]"),
    solver_option: list[str] | None = None,
    units: Given,
    stopping: Given,
    threads: int | None = None,
    start: str | None = option(None, "A,B", "Initial support: features to start from. [none]"),
    restrictions: Given,
    together: list[str] | None = TOGETHER,
    box: list[str] | None = BOX,
    assume_box: float | None = option(None, "M", "Assume that coefficients are in [-M, M]; the proof then covers only "
                                                 "such models. [no assumption]"),
    reference: str | None = REFERENCE,
    log: str | None = option(None, "FILE", "Write the log of the solver to this file. [none]"),
    proof: str | None = None,
    json: str | None = None,
    quiet: bool = False,
) -> int:  # fmt: skip
    """Find the best subset of at most K features on all rows, by one solver.

    The objective of the answer is an exact refit; the bound is the solver's, less what it is not trusted for.
    """
    ridge = one_gamma(gamma)
    session.check_outputs({"--json": json, "--log": log, "--proof": proof}, [data])
    side = side_options(restrictions, together, box)

    with session.interruptible() as stop:
        from sparsecv_mio.fits.fit_options import FitOptions
        from sparsecv_mio.fits.one import fit_one
        from sparsecv_mio.formulation.backends import get_backend
        from sparsecv_mio.search.options import limits_of_mio

        how = FitOptions.of(
            backend=backend, formulation=formulation, solver_option=solver_option, **units, **losses, side=side,
            start=parse.names(start, "--start"), assume_box=assume_box,
        )  # fmt: skip
        honoured = get_backend(how.backend).capabilities.limits
        if log is not None and "log" not in honoured:
            raise BadInput(f"--log: backend {how.backend} writes no log")
        workers = session.cores() if "threads" in honoured else 1
        limits = limits_of_mio(
            stopping, threads=workers if threads is None else threads, log=log, cancel=stop,
        )  # fmt: skip
        how = replace(how, limits=limits)
        obstacle = None if assume_box is None else "--assume-box"
        refuse_early(proof, side, weights, how.loss, how.class_weight, obstacle)
        dataset = session.read_weighted(data, table, weights, how.loss, how.exposure)
        from sparsecv_mio.certificate.factor_levels import reference_levels
        from sparsecv_mio.report.reference_levels import make_printer, with_reference

        levels = reference_levels(parse.names(reference, "--reference") or (), dataset, side)
        session.raise_if_interrupted(stop)
        record = call_in_thread(lambda: fit_one(dataset, tau=tau, gamma=ridge, options=how))
        record = with_reference(record, levels)

    from sparsecv_mio.report.backend_tables import print_fit

    return ending.deliver(
        session.EXIT_CODE[record.status],
        make_printer(lambda screen, one: print_fit(screen, one, quiet, dataset), record),
        json=json, record=record.pieces,
        files=proof_files(record, dataset, proof, data=data, json=json, quiet=quiet),
        warnings=() if quiet else record.warnings,
    )  # fmt: skip


@with_declared_options(table=TABLE, losses=LOSSES, units=UNITS, restrictions=RESTRICTING)
def export(
    data: DataFile,
    *,
    tau: int = option(..., "K", "Maximum number of features.", least=0),
    gamma: str = option(..., "G", "Ridge weight, such as 0.1 (for columns of length 1)."),
    to: str = option(..., "FILE", "Output file: .mps, .lp, .nl (quadratic), .cbf or .ptf (conic)."),
    table: Given,
    losses: Given,
    weights: str | None = None,
    units: Given,
    restrictions: Given,
    together: list[str] | None = TOGETHER,
    box: list[str] | None = BOX,
    piecewise: int | None = option(None, "N", "Write a linear model instead of the quadratic one, as for HiGHS: N "
                                   "tangents for each square, and big-M rows. Only for .mps and .lp. "
                                   "[quadratic]"),
) -> int:  # fmt: skip
    """Write the perspective formulation of one full-data MIO problem to a file that other solvers read.

    Gurobi reads .mps and .lp, SCIP .mps and .nl, Mosek .cbf and .ptf, HiGHS .mps and .lp with --piecewise. Of --loss
    logistic there are .nl, .cbf and .ptf, and .mps and .lp with --piecewise.
    """
    ridge = one_gamma(gamma)
    session.check_outputs({"--to": to}, [data])
    side = side_options(restrictions, together, box)
    loss = parse_keyword(Loss, losses["loss"], "loss")
    dataset = session.read_weighted(data, table, weights, loss)

    from sparsecv_mio.fits.one import describe_export, export_one

    options = {**units, **losses, "side": side, "piecewise": piecewise}
    offset, factor, missed = export_one(dataset, to, tau=tau, gamma=ridge, **options)
    total = LOSS_WORDS[loss].total
    total += ", rows by their weights," if weights is not None else ""
    meaning = f"{to}: {total} + (gamma/2) ||b||^2 in the scaled columns = {offset!r} + {factor!r} * objective"
    lines = f"{meaning}\n{describe_export(to, piecewise, missed, loss)}"
    return ending.deliver(0, lambda screen: screen.print(lines, markup=False, soft_wrap=True))


OUTPUTS = ("compare.csv", "compare.md")

COMPARE_CODES = (
    "Exit codes: 0 done (the table says where a backend met a limit), 2 bad input, 4 no backend could "
    "solve anything, 130 interrupted (what was measured is written)."
)


@with_declared_options(reading=OF_TABLES, losses=LOSSES, units=UNITS, stopping=STOPPING | {"gap": 1e-7})
def compare(
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="One or more data files.", show_default=False)],
    *,
    tau: str = option(..., "LIST", "Model sizes: 2,5,8 or LO:HI."),
    gamma: str = option(..., "LIST", "Ridge weights, such as 0.01,0.1,1."),
    out: str = option(..., "DIR", "Output folder for compare.csv and compare.md."),
    target: str | None = option(None, "T", "Column to predict: one for all files, or one for each file.", also="-t"),
    reading: Given,
    losses: Given,
    weights: str | None = None,
    backends: str = option("native,gurobi,scip,highs", "LIST", "Backends, as name or name:formulation."),
    folds: str | None = option(None, "SPEC", "Solve for the training rows of each of these folds. [all rows]"),
    seed: int | None = None,
    repeats: int = option(3, "N", "Number of runs of each problem; medians are shown.", least=1, most=10**6),
    units: Given,
    stopping: Given,
    threads: int = option(1, "N", "Number of threads of each solver."),
    quiet: bool = False,
) -> int:  # fmt: skip
    """Solve the same MIO problems with several backends and compare time, work, bounds and answers.

    Runs are interleaved; compilation and licence start-up stay outside of the clock; objectives are exact refits.
    """
    gammas = model_space.gammas(gamma)
    folder = _folder(out)
    session.check_outputs({f"--out {name}": str(folder / name) for name in OUTPUTS}, data)
    targets = _targets(target, len(data))

    with session.interruptible() as stop:
        from sparsecv_mio.batch.mio_comparison import Contender, cells_of
        from sparsecv_mio.batch.mio_comparison import compare as run
        from sparsecv_mio.fits.fit_options import FitOptions
        from sparsecv_mio.search.options import check_limits, limits_of_mio

        limits = limits_of_mio(stopping, threads=threads, cancel=stop)
        check_limits(limits)
        how = FitOptions.of(**units, **losses)
        contenders = [Contender.of(label.strip(), how.loss) for label in backends.split(",")]
        cells, rows_as_said = [], {"weights": weights, "folds": folds, "seed": seed}
        for path, column in zip(data, targets, strict=True):
            try:
                dataset, plan = _read_to_compare(path, {"target": column, **reading}, rows_as_said, how, quiet)
            except BadInput as error:
                each = "; --target takes one for each file: A,B,..." if len(set(targets)) < len(data) else ""
                raise BadInput(f"{path}: {error}{each}" if len(data) > 1 else str(error)) from None
            sizes = model_space.taus(tau, dataset.p)
            name = Path(path).stem
            cells += list(cells_of(name, dataset, plan, taus=sizes, gammas=gammas, **units, loss=how.loss))
        session.raise_if_interrupted(stop)
        rows = call_in_thread(lambda: run(cells, contenders, repeats=repeats, limits=limits))

    from sparsecv_mio.report.backend_tables import markdown, print_compare, write_csv

    command = shlex.join(["sparsecv", *sys.argv[1:]])
    table, page = (folder / name for name in OUTPUTS)

    def print_rows(screen: Console) -> None:
        if not quiet:
            print_compare(screen, rows)
        screen.print(f"{table}, {page}", markup=False)

    ran = any(row.seconds == row.seconds for row in rows)
    return ending.deliver(
        130 if stop.is_set() else 0 if ran else 4, print_rows,
        files=[lambda: write_csv(rows, table), lambda: write_text(page, [markdown(rows, command)])],
    )  # fmt: skip


def _read_to_compare(
    path: str, table: Given, rows: Given, how: FitOptions, quiet: bool
) -> tuple[Dataset, FoldPlan | None]:  # fmt: skip
    """Return the data of one file to compare on, with its folds if they are requested."""
    if rows["folds"]:
        return session.read_with_folds(path, table, rows, quiet, how=how)
    return how.in_classes(session.read_weighted(path, table, rows["weights"], how.loss, how.exposure)), None


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
    targets: list[str | None] = list(parse.names(text, "--target") or [])
    if len(targets) == 1:
        return targets * count
    if len(targets) != count:
        raise BadInput(f"--target: {len(targets)} names for {count} files, give one or one each")
    return targets

"""`sparsecv compare`: the same MIOs through several backends."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsecv_mio import grids
from sparsecv_mio.cli import ending, options, parse, session
from sparsecv_mio.cli import side as extra
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import reason

if TYPE_CHECKING:
    from rich.console import Console

OUTPUTS = ("compare.csv", "compare.md", "compare.png")

CODES = (
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
    weights = grids.gammas(gamma)
    parse.count(repeats, "--repeats", most=10**6)
    folder = _folder(out)
    session.check_outputs({f"--out {name}": str(folder / name) for name in OUTPUTS}, data)
    targets = _targets(target, len(data))

    with session.interruptible() as stop:
        from sparsecv_mio.comparison.compare import Contender, cells_of
        from sparsecv_mio.comparison.compare import compare as run
        from sparsecv_mio.data.folds import fold_columns
        from sparsecv_mio.formulation.outcome import Limits
        from sparsecv_mio.search.checks import check_limits

        seconds = math.inf if time_limit is None else time_limit
        limits = Limits(gap=gap, seconds=seconds, threads=threads, cancel=stop)
        check_limits(limits)
        contenders = [Contender.of(label.strip()) for label in backends.split(",")]
        cells = []
        for path, column in zip(data, targets, strict=True):
            dataset = session.read_data(path, column, None, None, fold_columns(folds) if folds else (), reading=reading)
            plan = session.make_plan(folds, dataset, seed, quiet) if folds else None
            sizes = grids.taus(tau, dataset.p)
            name = Path(path).stem
            cells += list(
                cells_of(name, dataset, plan, taus=sizes, gammas=weights, scale=scale, intercept=intercept)
            )
        session.raise_if_interrupted(stop)
        rows = extra.in_own_thread(lambda: run(cells, contenders, repeats=repeats, limits=limits, warm=warm))

    from sparsecv_mio.files import write_text
    from sparsecv_mio.report.compare import markdown, plot_compare, print_compare, write_csv

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

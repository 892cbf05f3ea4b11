"""The command `sparsecv compare`, which compares several backends on the same mixed-integer (MIO) problems."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparsecv_mio import model_space
from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import ID, Given, Place, group, option, with_declared_options
from sparsecv_mio.declared_options import LOSSES, OF_TABLES, STOPPING, UNITS
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import reason, write_text
from sparsecv_mio.parallel import call_in_thread

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.batch.mio_comparison import Cell
    from sparsecv_mio.fits.fit_options import FitOptions


OUTPUTS = ("compare.csv", "compare.md")

COMPARE_CODES = (
    "Exit codes: 0 done (the table shows where a backend reached a limit), 2 bad input, 4 no backend could solve a "
    "problem, 130 interrupted (partial results are written)."
)


@dataclass(frozen=True)
class CompareRequest:
    """The options of the command `compare`, in the order of its help."""

    tau: str = option(..., "LIST", "Model sizes: 2,5,8 or LO:HI.")
    gamma: str = option(..., "LIST", "Ridge weights, such as 0.01,0.1,1.")
    out: str = option(..., "DIR", "Output folder for compare.csv and compare.md.")
    target: str | None = option(
        None, "T", "Columns to predict: one name for all files, or one name for each file (A,B,...).", also="-t"
    )
    reading: Given = group(OF_TABLES)
    id: str | None = ID
    losses: Given = group(LOSSES)
    weights: str | None = None
    backends: str = option("native,gurobi,scip,highs", "LIST", "Backends, as name or name:formulation.")
    folds: str | None = option(None, "SPEC", "Solve each problem on the training rows of each fold. [on all rows]")
    seed: int | None = None
    repeats: int = option(3, "N", "Number of runs of each problem; the table shows medians.", least=1, most=10**6)
    units: Given = group(UNITS)
    stopping: Given = group(STOPPING | {"gap": 1e-7})
    threads: int = option(1, "N", "Number of threads of each solver.")
    quiet: bool = False


@with_declared_options(request=CompareRequest)
def compare(
    data: Annotated[list[str], Place("DATA...", "One or more data files.")],
    *,
    request: CompareRequest,
) -> int:
    """Solve the same MIO problems with several backends and compare time, work, bounds and answers.

    Runs of different backends are interleaved. The times exclude compilation and the start of licences. Objectives are
    computed by exact refits.
    """
    gammas = model_space.gammas(request.gamma)
    folder = Path(request.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise BadInput(f"--out: cannot make folder {request.out}: {reason(error)}; name another folder") from None
    session.check_outputs({f"--out {name}": str(folder / name) for name in OUTPUTS}, data)
    targets = _targets(request.target, len(data))

    with session.stop_on_interrupt() as stop:
        from sparsecv_mio.batch import mio_comparison
        from sparsecv_mio.fits.fit_options import FitOptions
        from sparsecv_mio.search.options import check_limits, limits_of_mio

        limits = limits_of_mio(request.stopping, threads=request.threads, cancel=stop)
        check_limits(limits)
        how = FitOptions.of(**request.units, **request.losses)
        contenders = [mio_comparison.Contender.of(label.strip(), how.loss) for label in request.backends.split(",")]
        cells = _read_problems(data, targets, gammas, request, how)
        session.raise_if_interrupted(stop)
        rows = call_in_thread(lambda: mio_comparison.compare(cells, contenders, repeats=request.repeats, limits=limits))

    command = shlex.join(["sparsecv", *sys.argv[1:]])
    table, page = (folder / name for name in OUTPUTS)

    def print_rows(screen: Console) -> None:
        if not request.quiet:
            mio_comparison.print_compare(screen, rows)
        screen.print(f"{table}, {page}", markup=False)

    ran = any(row.seconds == row.seconds for row in rows)
    return ending.deliver(
        130 if stop.is_set() else 0 if ran else 4, print_rows,
        files=[
            lambda: mio_comparison.write_csv(rows, table),
            lambda: write_text(page, [mio_comparison.format_comparison(rows, command)]),
        ],
    )  # fmt: skip


def _read_problems(
    data: list[str], targets: list[str | None], gammas: Sequence[float], request: CompareRequest, how: FitOptions
) -> list[Cell]:
    """Return the problems of all files."""
    from sparsecv_mio.batch.mio_comparison import cells_of

    cells: list[Cell] = []
    rows = {"weights": request.weights, "folds": request.folds, "seed": request.seed}
    for path, column in zip(data, targets, strict=True):
        try:
            table, plan = {"target": column, **request.reading}, None
            if request.folds:
                dataset, plan = session.read_with_folds(path, table, rows, request.quiet, request.id, how)
                for note in session.describe_separated_rows(dataset, plan, request.id):
                    ending.tell(f"warning: {note}")
            else:
                dataset = how.in_classes(session.read_weighted(path, table, request.weights, how, request.id))
        except BadInput as error:
            each = "; --target takes one for each file: A,B,..." if len(set(targets)) < len(data) else ""
            raise BadInput(f"{path}: {error}{each}" if len(data) > 1 else str(error)) from None
        sizes = model_space.taus(request.tau, dataset.p)
        cells += cells_of(
            Path(path).stem, dataset, plan, taus=sizes, gammas=gammas, **request.units, loss=how.loss
        )  # fmt: skip
    return cells


def _targets(text: str | None, count: int) -> list[str | None]:
    targets: Sequence[str | None] = parse.names(text, "--target") or (None,)
    if len(targets) not in (1, count):
        raise BadInput(f"--target: {len(targets)} names for {count} files; give one name, or one for each file")
    return [*targets] * count if len(targets) == 1 else [*targets]

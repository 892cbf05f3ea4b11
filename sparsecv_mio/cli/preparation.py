"""The commands that prepare a search: `sparsecv inspect`, `backends` and `warmup`."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

from sparsecv_mio.cli import ending, parse, session
from sparsecv_mio.cli.command_options import DataFile, Given, option, with_declared_options
from sparsecv_mio.cli.parse import with_dashes
from sparsecv_mio.declared_options import OPTIONS, TABLE
from sparsecv_mio.targets import Loss, TargetColumns

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.data.table_facts import Inspection


INSPECT_CODES = "Exit codes: 0 done, 2 the file is not a table (the message names the option that may help)."


@with_declared_options(table=TABLE)
def inspect(
    data: DataFile,
    *,
    table: Given,
    loss: str | None = None,
    exposure: str | None = None,
    offset: str | None = None,
    trials: str | None = None,
    full: bool = option(False, "", "List all columns."),
    json: str | None = option(None, "FILE", "Write the findings to this file; - is standard output. [none]"),
) -> int:  # fmt: skip
    """Inspect a file before fitting a model.

    The command prints the type, the number of missing values and the range of every column. It reports columns that
    are constant, duplicate another column or number the rows. Finally it proposes a `solve` command with the options
    that the file needs, and prints the size of the problem.
    """
    session.check_outputs({"--json": json}, [data])
    from sparsecv_mio.data.reading_options import Reading
    from sparsecv_mio.data.table_facts import inspect_file

    target, drop, features = table.pop("target"), table.pop("drop"), table.pop("features")
    columns = parse.names(drop, "--drop"), parse.names(features, "--features")
    how = Reading.from_keywords(**table)
    of_target = TargetColumns(exposure, offset, trials)
    facts = inspect_file(data, target, how, *columns, None if loss is None else Loss(loss), of_target)
    inspection = _with_dashes(facts)

    def show(screen: Console) -> None:
        from sparsecv_mio.report.before_search import print_inspection

        print_inspection(screen, inspection, data, full=full)

    return ending.deliver(
        0, show, json=json, record=ending.make_json_writer({"command": "inspect", **asdict(inspection)})
    )


def _with_dashes(inspection: Inspection) -> Inspection:
    """Return the inspection with options in command-line form."""
    said = partial(with_dashes, options=[declared.flag for declared in OPTIONS.values()])  # options of `solve`
    columns = [replace(column, notes=tuple(map(said, column.notes))) for column in inspection.columns]
    doubts = {name: said(doubt) for name, doubt in inspection.doubts.items()}
    return replace(inspection, columns=tuple(columns), doubts=doubts, refused=said(inspection.refused))


@with_declared_options()
def backends(
    json: str | None = None,
    verbose: bool = option(
        False, "", "Also show the folder of compiled kernels, and whether the compiled kernels of the package are used."
    ),
) -> int:
    """List the solvers that can be used here, and the packages to install for the other solvers.

    The tables show versions, licence limits, formulations, side constraints and supported limits.
    """
    session.check_outputs({"--json": json})
    from sparsecv_mio.report.fit_tables import describe_backends, print_backends, text_of_backends

    rows = describe_backends()
    if verbose:
        from sparsecv_mio.warmup import where_kernels_are

        for line in where_kernels_are():
            ending.tell(line)
    return ending.deliver(
        0, lambda screen: print_backends(screen, rows), json=json, record=lambda: [text_of_backends(rows)]
    )


def warmup() -> int:
    """Compile all numerical code now and store it in the cache, so that later commands start at once.

    Without this command, each command compiles the code that it needs at its first use. Compiling all code takes a
    minute or two. The cache is a folder of the user (in a clone, a folder in the package); the variable
    NUMBA_CACHE_DIR names another folder.
    """
    begun = time.monotonic()

    def show(what: str, number: int, count: int) -> None:
        ending.tell(f"{time.monotonic() - begun:.0f} s; compiling kernels, {number} of {count}: {what}")

    from sparsecv_mio.warmup import warm_up

    warm_up(show)
    ending.tell(f"{time.monotonic() - begun:.0f} s; all kernels are compiled")
    return 0

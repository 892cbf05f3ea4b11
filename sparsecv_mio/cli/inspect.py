"""`sparsecv inspect`: what a file holds, and what `solve` would do with it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from sparsecv_mio.cli import ending, options, oracles, parse, session
from sparsecv_mio.cli.naming import with_dashes
from sparsecv_mio.cli.reading import reads_tables
from sparsecv_mio.data.reading import ReadingWords

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.data.inspection import Inspection

CODES = "Exit codes: 0 done, 2 the file is no table (the message says which option might help)."


@reads_tables
def inspect(
    data: options.DataFile,
    target: options.Target = None,
    drop: options.Drop = None,
    reading: ReadingWords | None = None,
    full: Annotated[bool, typer.Option("--full", help="List every column, however many there are.")] = False,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write what was found here; - is standard output.")
    ] = None,
) -> int:
    """Look at a file before anything is fitted.

    Of every column its kind, empty cells and range; columns that are constant, repeat another one or number the rows;
    then the command that would solve it, with the options that its cells need, and how large that problem is.
    """
    session.check_outputs({"--json": json}, [data])
    from sparsecv_mio.data.inspection import inspect_file
    from sparsecv_mio.data.reading import Reading

    found = _with_dashes(inspect_file(data, target, Reading.of(**(reading or {})), parse.names(drop, "--drop")))

    def show(screen: Console) -> None:
        from sparsecv_mio.report.inspection import print_inspection

        print_inspection(screen, found, data, full=full)

    return ending.deliver(0, show, json=json, record=oracles.text_of(_numbers(found)))


def _with_dashes(found: Inspection) -> Inspection:
    """Return what was found, with options as they are given on the command line."""
    columns = [replace(one, notes=tuple(with_dashes(note, ["--sep"]) for note in one.notes)) for one in found.columns]
    doubts = {name: with_dashes(said, ["--sep"]) for name, said in found.doubts.items()}
    return replace(found, columns=tuple(columns), doubts=doubts, refused=with_dashes(found.refused, ["--sep"]))


def _numbers(found: Inspection) -> dict[str, object]:
    return {"command": "inspect", **asdict(found)}

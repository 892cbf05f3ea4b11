"""`sparsecv collect`: the results of a batch as one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, options, session
from sparsecv_mio.errors import BadInput

CODES = "Exit codes: 0 written, 1 a record did not verify (its row says so), 2 bad input."


def collect(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of a batch.")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Table, .parquet or .csv.")],
    level: Annotated[
        str, typer.Option("--level", metavar="tasks|pairs|folds", help="What a row is: a task, a pair (gamma, tau) of "
                          "its grid, or a fold of its reported pair.")
    ] = "tasks",
    verify: Annotated[
        bool, typer.Option(" /--no-verify", help="Do not check the records against their data.", show_default=False)
    ] = True,
    every: Annotated[
        bool, typer.Option("--all", help="Results of earlier plans in the folder too, not of the present one alone.")
    ] = False,
    quiet: options.Quiet = False,
) -> int:
    """Make one tidy table of the results of a batch: settings, numbers and where they come from in columns."""
    if not (Path(folder) / "tasks").is_dir():
        raise BadInput(f"{folder!r} is no folder of a batch")
    session.check_outputs({"--out": out})
    from sparsecv_mio.batch.collect import collect as make
    from sparsecv_mio.batch.collect import write_table
    from sparsecv_mio.batch.folder import BatchFolder
    from sparsecv_mio.batch.results import FORMATS

    if Path(out).suffix.lower() not in FORMATS:
        raise BadInput(f"--out: {out!r} must end with {' or '.join(FORMATS)}")
    place = BatchFolder(folder)
    frame = make(place, level, verify, every=every)
    write_table(frame, out)
    wrong = 0 if "verified" not in frame else int((frame["verified"] == False).sum())  # noqa: E712
    checked = 0 if "verified" not in frame else int(frame["verified"].notna().sum())
    failed = int((frame["state"] == "failed").sum())
    words = f"{len(frame):,} row{'' if len(frame) == 1 else 's'} in {out}; {checked - wrong:,} verified, {wrong:,} not"
    if verify:
        words += f", {len(frame) - checked - failed:,} with nothing to verify, {failed:,} of failed tasks"
    if not every and (stale := len(place.stale())):
        words += f"; {stale:,} results of earlier plans left out (--all takes them in)"
    return ending.deliver(1 if wrong else 0, lambda screen: None if quiet else screen.print(words, markup=False))

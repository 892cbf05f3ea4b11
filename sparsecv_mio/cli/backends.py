"""`sparsecv backends`: which solvers can be used here."""

from __future__ import annotations

import typer

from sparsecv_mio.cli import options, session

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def backends(json: options.Json = None) -> int:
    """Say of every solver whether it can be used here, or why not and what to do.

    Versions, licence limits, formulations, side constraints and limits honoured.
    """
    session.check_output(json)
    from sparsecv_mio.report.backends import describe_backends, print_backends, write_backends

    rows = describe_backends()
    if json is not None:
        write_backends(rows, json)
    print_backends(session.console(json), rows)
    return 0

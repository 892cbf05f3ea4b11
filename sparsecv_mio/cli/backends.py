"""`sparsecv backends`: which solvers can be used here."""

from __future__ import annotations

from sparsecv_mio.cli import ending, options, session


def backends(json: options.Json = None) -> int:
    """Say of every solver whether it can be used here, or why not and what to do.

    Versions, licence limits, formulations, side constraints and limits honoured.
    """
    session.check_outputs({"--json": json})
    from sparsecv_mio.report.backends import describe_backends, print_backends, text_of_backends

    rows = describe_backends()
    return ending.deliver(
        0, lambda screen: print_backends(screen, rows), json=json, record=lambda: [text_of_backends(rows)]
    )

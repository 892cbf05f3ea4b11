"""`sparsecv predict`: the target of new rows, by the model of a record."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, options, session
from sparsecv_mio.cli.reading import reads_like_a_record
from sparsecv_mio.data.reading import ReadingWords
from sparsecv_mio.errors import BadInput

CODES = "Exit codes: 0 predicted, 2 bad input (a column that is missing is named)."


@reads_like_a_record
def predict(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="JSON record of `solve` or `fit`.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="New rows, a file with the columns of the model by name.")
    ],
    reading: ReadingWords | None = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the predictions here, as CSV. [standard output]"),
    ] = None,
    quiet: options.Quiet = False,
) -> int:
    """Predict new rows by the model that a record holds.

    The file needs the columns of the model alone, in any order. Where it has the target of every row too, the errors
    of the predictions are printed beside the cross-validation error.
    """
    from sparsecv_mio.certificate.model import accuracy
    from sparsecv_mio.certificate.near_records import NearRecord
    from sparsecv_mio.certificate.reading import read_record
    from sparsecv_mio.certificate.record import PathRecord
    from sparsecv_mio.certificate.source import applied_reading, in_format
    from sparsecv_mio.data.readers import read_rows
    from sparsecv_mio.files import write_text
    from sparsecv_mio.report.tables import error_lines

    session.check_outputs({"--out": out}, [record, data])
    stored = read_record(record)
    if isinstance(stored, PathRecord | NearRecord):
        many = "a model for every size" if isinstance(stored, PathRecord) else "many models"
        raise BadInput(f"record {record} holds {many}: name a record of `solve` or `fit`")
    learnt = in_format(applied_reading(stored.data.reading), stored.data.names, reading)
    needed = tuple(stored.coefficients) or stored.data.names
    rows, known, doubt = read_rows(data, needed, stored.data.target, learnt)
    predicted = stored.predict(rows)
    found = accuracy(rows.y, predicted) if known else None
    many = f"{rows.n:,} row{'' if rows.n == 1 else 's'}"
    notes = [f"{many} predicted", *([] if found is None else error_lines(stored, found))]
    notes += [f"errors are not known: {doubt}"] if doubt else []
    notes = [] if quiet else notes
    lines = ("prediction\n", *(f"{value!r}\n" for value in predicted.tolist()))
    if out is None:
        failure = ending.put(sys.stdout, lines)
        for note in notes:
            ending.tell(note)
        if failure is not None:
            raise failure
        return 0
    return ending.deliver(
        0, lambda screen: screen.print("\n".join(notes), end="" if quiet else "\n"),
        files=[lambda: write_text(out, lines, "predictions", through=True)],
    )  # fmt: skip

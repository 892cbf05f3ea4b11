"""`sparsecv verify`: check a record against the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecv_mio.cli import ending, options, session
from sparsecv_mio.cli.reading import reads_like_a_record
from sparsecv_mio.data.reading import ReadingWords
from sparsecv_mio.errors import CorruptStore

GZIP = b"\x1f\x8b"  # the first bytes of a proof
CODES = "Exit codes: 0 verified, 1 verification failed (the field is named), 2 bad input."


@reads_like_a_record
def verify(
    record: Annotated[str, typer.Argument(metavar="RECORD", help="JSON record of `solve`, `path` or `fit`.")],
    data: options.DataFile,
    reading: ReadingWords | None = None,
    full: Annotated[bool, typer.Option("--full", help="List every field that is bounded, with its bound.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only what disagrees or could not be proved.")
    ] = False,
) -> int:
    """Check a record against the data.

    By plain linear algebra, apart from the search that made the record: rebuilds the folds, refits every support, sums
    the errors and, with at most 12 features that vary (15: of the reported pair), proves the optimality again by
    enumeration. Says of every field whether it was recomputed, bounded or only read, and first of all what it could
    not prove.
    """
    from sparsecv_mio.certificate.reading import read_record
    from sparsecv_mio.certificate.verify import verify as check
    from sparsecv_mio.cli.oracles import counting_bar
    from sparsecv_mio.report.tables import print_verification

    try:
        stored = read_record(record)
    except CorruptStore as error:
        raise CorruptStore(f"{error}{'; for a proof use `sparsecv check`' if _gzipped(record) else ''}") from None
    dataset = session.read_again(data, stored, reading)
    with counting_bar(quiet, "parts of the certificate") as progress:
        report = check(stored, dataset, progress=progress)
    failure = None
    if not quiet or not report.ok or report.caveat:
        failure = ending.show(lambda screen: print_verification(screen, report, brief=quiet, full=full))
    report.raise_if_failed()
    if failure is not None:
        raise failure
    return 0


def _gzipped(path: str) -> bool:
    """Whether a file begins as a proof does."""
    if not Path(path).is_file():
        return False
    with open(path, "rb") as stream:
        return stream.read(len(GZIP)) == GZIP

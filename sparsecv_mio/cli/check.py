"""`sparsecv check`: check a proof against the data."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sparsecv_mio.cli import ending
from sparsecv_mio.errors import BadInput, SparseCVError

CODES = "Exit codes: 0 proved, 1 not proved (the line of the proof and the reason are named), 2 bad input."


class NotProved(SparseCVError):
    """A proof does not prove what it claims, or is of other data."""

    exit_code = 1


def check(
    proof: Annotated[str, typer.Argument(metavar="PROOF", help="What --proof of `solve`, `path` or `fit` wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="CSV or TSV with a header, perhaps gzipped.")],
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="fast|exact",
            help="fast: floats, with a bound on every rounding error; exact: fractions, nothing is rounded. [fast]",
            show_default=False,
        ),
    ] = "fast",
) -> int:
    """Check a proof, by code that shares nothing with what made it.

    Reads the data by itself and compares digests; checks that the leaves of every tree cover all supports and that
    every leaf's bound holds, fits every listed support again, and sums over the folds. Nothing of the proof is
    believed. Prints what is proved and what it rests on. docs/proof-format.md says why that suffices.
    """
    from sparsecv_mio.check.main import MODES, check_file
    from sparsecv_mio.check.reading import Refused, Unreadable
    from sparsecv_mio.files import check_readable

    if mode not in MODES:
        raise BadInput(f"--mode: {mode!r} is neither fast nor exact")
    for path, what in ((proof, "proof"), (data, "data")):
        check_readable(path, what)
    try:
        found = check_file(proof, data, mode)
    except Unreadable as error:
        with open(proof, "rb") as stream:
            record = stream.read(1) == b"{"
        raise BadInput(f"{error}{'; for a record use `sparsecv verify`' if record else ''}") from None
    except Refused as error:
        raise NotProved(f"not proved: {error}") from None
    failure = ending.put(sys.stdout, [f"{line}\n" for line in (f"checked ({mode})", *found.words)])
    if failure is not None:
        raise failure
    return 0

"""The command `sparsecv check`, and the check of a proof that has just been written.

Among the modules of this folder, only this one imports other modules of the package.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from sparsecv_mio.cli import ending
from sparsecv_mio.cli.command_options import Place, option, with_declared_options
from sparsecv_mio.errors import BadInput, ProofImpossible, SparseCVError
from sparsecv_mio.files import check_readable

if TYPE_CHECKING:
    from sparsecv_mio.arrays import FloatArray
    from sparsecv_mio.data.dataset import Dataset

CHECK_CODES = (
    "Exit codes: 0 proved, 1 not proved (the message names the line of the proof and the reason), 2 bad input."
)


class NotProved(SparseCVError):
    """A proof that does not prove its claim, or belongs to other data."""

    exit_code = 1


@with_declared_options()
def check(
    proof: Annotated[str, Place("PROOF", "Proof that `solve`, `path` or `fit` wrote (--proof).")],
    data: Annotated[str, Place("DATA", "The data: a CSV or TSV file with a header, optionally "
                                                             "gzipped. If the data have text columns, give the file "
                                                             "PROOF.tsv instead.")],
    mode: str = option("fast", "fast|exact", "Arithmetic. fast: floats with bounds on rounding errors; exact: "
                       "fractions, without rounding. [fast]"),
) -> int:  # fmt: skip
    """Check a proof with a separate program that shares no code with the search.

    The checker reads the data and compares digests. It checks that the leaves of every tree cover all supports and that
    the bound of every leaf is valid, refits every listed support, and sums over the folds. No number of the proof is
    used without a check. The command prints the proved statements and their assumptions. docs/proof-format.md explains
    why these checks suffice.
    """
    from sparsecv_mio.check.main import MODES, check_file
    from sparsecv_mio.check.proof_file import Refused, Unreadable

    if mode not in MODES:
        raise BadInput(f"--mode: {mode!r} is unknown; use fast or exact")
    for path, kind in ((proof, "proof"), (data, "data")):
        check_readable(path, kind)
    try:
        claim = check_file(proof, data, mode)
    except Unreadable as error:
        with open(proof, "rb") as stream:
            record = stream.read(1) == b"{"
        raise BadInput(f"{error}{'; for a record use `sparsecv verify`' if record else ''}") from None
    except Refused as error:
        raise NotProved(f"not proved: {error}") from None
    failure = ending.write_stream(sys.stdout, [f"{line}\n" for line in (f"checked ({mode})", *claim.words)])
    if failure is not None:
        raise failure
    return 0


def is_read_alike(data: str, dataset: Dataset, holes: bool) -> bool:
    """Return True if `sparsecv check`, which has no reading options, reads the same numbers from the file."""
    from sparsecv_mio.check.proof_file import Unreadable, compute_digest, table

    names = list(dataset.names)
    try:
        return compute_digest(*table(data, names, dataset.target, holes), names, dataset.target) == dataset.fingerprint
    except Unreadable:
        return False


def find_check_mode(place: str, X: FloatArray, y: FloatArray) -> str:
    """Run `sparsecv check` on a proof before it is put in its place; return the mode that accepts it.

    If rounding errors are too large for `fast`, the function tries `exact`, which takes up to forty times as long.
    """
    from sparsecv_mio.check.main import check as check_arrays
    from sparsecv_mio.check.proof_file import Refused, Unreadable

    try:
        check_arrays(place, X, y)
        return "fast"
    except (Refused, Unreadable):
        pass
    try:
        check_arrays(place, X, y, "exact")
        return "exact"
    except (Refused, Unreadable) as error:
        why = str(error).replace(place, "it")
        raise ProofImpossible(
            f"--proof: no proof is written, because `sparsecv check` rejected the proof of this run ({why})"
        ) from None

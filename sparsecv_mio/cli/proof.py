"""`--proof`: what is refused before the work, and what writes the proof of a record at the end of a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    from sparsecv_mio.certificate.record import FitRecord, PathRecord, Record
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.folds import FoldPlan
    from sparsecv_mio.restrictions import Restrictions
    from sparsecv_mio.search.state.state import Snapshot


def refuse_early(
    path: str | None, restrictions: Restrictions | None, weights: str | None, other: str | None = None
) -> None:
    """Refuse options that proofs do not cover, where one is asked for.

    Parameters
    ----------
    path : str or None
        `--proof`, as given.
    restrictions : Restrictions or None
    weights : str or None
        `--weights`, as given.
    other : str, optional
        Another option that stands in the way.
    """
    if path is not None:
        from sparsecv_mio.proofs.claims import refuse_options

        refuse_options(restrictions, weights, other)


def proof_files(
    record: Record | PathRecord | FitRecord, dataset: Dataset, path: str | None, plan: FoldPlan | None = None,
    found: Snapshot | None = None, *, data: str, json: str | None = None, quiet: bool = False,
) -> list[Callable[[], None]]:  # fmt: skip
    """Return what writes the proof and says so, for `ending.deliver`; nothing where none is asked for.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
    dataset : Dataset
    path : str or None
        `--proof`, as given.
    plan : FoldPlan, optional
        The folds of a cross-validation.
    found : Snapshot, optional
        What its search knew at the end.
    data : str
        The file of the data, for the line that says how the proof is checked.
    json : str, optional
        `--json`, as given: with `-` the line goes to standard error.
    quiet : bool
        Whether there is no such line.
    """
    if path is None:
        return []
    from sparsecv_mio.cli import Interrupted, ending
    from sparsecv_mio.proofs.kept_trees import part_of
    from sparsecv_mio.proofs.writing import write_proof

    def write() -> None:
        modes: list[str] = []
        try:
            write_proof(record, dataset, path, plan, found, lambda place: modes.append(_mode_of(place, dataset)))
        except KeyboardInterrupt:
            rest = f"the same command goes on from {part_of(path)}" if part_of(path).exists() else "nothing is kept"
            raise Interrupted(f"--proof: interrupted, {path} is not written, the answer stands; {rest}") from None
        if quiet:
            return
        failure = ending.show(lambda screen: screen.print(_written(path, data, modes[0]), soft_wrap=True), json)
        if failure is not None:
            raise failure

    return [write]


def _mode_of(place: str, dataset: Dataset) -> str:
    """Run what `sparsecv check` does on a proof that is about to be put in its place; return the mode that accepts it.

    `exact`, which takes up to forty times as long, is tried where rounding is too wide for `fast`.
    """
    from sparsecv_mio.check.main import check
    from sparsecv_mio.check.reading import Refused, Unreadable

    try:
        check(place, dataset.X, dataset.y)
        return "fast"
    except (Refused, Unreadable):
        pass
    try:
        check(place, dataset.X, dataset.y, "exact")
        return "exact"
    except (Refused, Unreadable) as error:
        why = str(error).replace(place, "it")
        raise BadInput(f"--proof: no proof is written, the answer stands: its own check refuses it ({why})") from None


def _written(path: str, data: str, mode: str) -> str:
    """Return the line that says where a proof is, how large, and how it is checked: by the mode that accepts it."""
    from rich.filesize import decimal

    size = decimal(os.path.getsize(path), precision=0)
    words = ["sparsecv", "check", path, data, *(["--mode", mode] if mode == "exact" else [])]
    return f"proof: {path} ({size}); check it: {shlex.join(words)}"

"""`--proof`: what is refused before the work, and what writes the proof of a record at the end of a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

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
    found: Snapshot | None = None,
) -> list[Callable[[], None]]:  # fmt: skip
    """Return what writes the proof, for `ending.deliver`; nothing where none is asked for.

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
    """
    if path is None:
        return []
    from sparsecv_mio.cli import Interrupted
    from sparsecv_mio.proofs.kept_trees import part_of
    from sparsecv_mio.proofs.writing import write_proof

    def write() -> None:
        try:
            write_proof(record, dataset, path, plan, found)
        except KeyboardInterrupt:
            rest = f"the same command goes on from {part_of(path)}" if part_of(path).exists() else "nothing is kept"
            raise Interrupted(f"--proof: interrupted, {path} is not written, the answer stands; {rest}") from None

    return [write]

"""`--proof`: what writes the proof of a record at the end of a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparsecv_mio.certificate.record import FitRecord, PathRecord
    from sparsecv_mio.data.dataset import Dataset


def proof_files(record: PathRecord | FitRecord, dataset: Dataset, path: str | None) -> list[Callable[[], None]]:
    """Return what writes the proof, for `ending.deliver`; nothing where none is asked for.

    Parameters
    ----------
    record : PathRecord or FitRecord
    dataset : Dataset
    path : str or None
        `--proof`, as given.
    """
    if path is None:
        return []
    from sparsecv_mio.proofs.best import write_best_proof

    return [lambda: write_best_proof(record, dataset, path)]

"""The proof of a record of any kind."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.certificate.record import FitRecord, PathRecord, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import Place
from sparsecv_mio.proofs.best import best_proof
from sparsecv_mio.proofs.claims import refuse_unproved
from sparsecv_mio.proofs.lines import write_lines
from sparsecv_mio.proofs.pairs import SearchProof


def write_proof(
    record: Record | PathRecord | FitRecord, dataset: Dataset, path: Place, plan: FoldPlan | None = None
) -> None:
    """Write a proof of the bounds of a record, for `sparsecv check`.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
    dataset : Dataset
        The rows it is of.
    path : path
    plan : FoldPlan, optional
        The folds of a cross-validation: by default rebuilt from the record's spec and seed.

    Raises
    ------
    BadInput
        The record holds something that proofs do not cover, or the file cannot be written.
    """
    refuse_unproved(record, dataset)
    try:
        if isinstance(record, Record):
            folds = make_folds(record.folds.spec, dataset, record.folds.seed or 0) if plan is None else plan
            write_lines(path, SearchProof(record, dataset, folds).lines())
        else:
            write_lines(path, best_proof(record, dataset))
    except np.linalg.LinAlgError:
        raise BadInput("--proof: columns are too nearly dependent for so small a gamma: drop some of them") from None

"""The proof of a record of any kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.certificate.record import FitRecord, PathRecord, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import Place, replacing
from sparsecv_mio.proofs.best import BestProof
from sparsecv_mio.proofs.claims import refuse_unproved
from sparsecv_mio.proofs.lines import packed
from sparsecv_mio.proofs.pairs import SearchProof
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.state import Snapshot


def write_proof(
    record: Record | PathRecord | FitRecord, dataset: Dataset, path: Place, plan: FoldPlan | None = None,
    found: Snapshot | None = None, check: Callable[[str], None] | None = None,
) -> None:  # fmt: skip
    """Write a proof of the bounds of a record, for `sparsecv check`.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
    dataset : Dataset
        The rows it is of.
    path : path
    plan : FoldPlan, optional
        The folds of a cross-validation: by default rebuilt from the record's spec and seed.
    found : Snapshot, optional
        What its search knew at the end (`Hooks.found`); without it the search is run again.
    check : callable, optional
        Called with the file before it is put in its place; an error that it raises leaves that as it was.

    Raises
    ------
    BadInput
        The record holds something that proofs do not cover, or the file cannot be written.

    Notes
    -----
    Until the proof is complete its trees are kept in `FILE.part`, which the next proof of the same data, folds and grid
    takes over.
    """
    refuse_unproved(record, dataset)
    if isinstance(record, Record):
        folds = make_folds(record.folds.spec, dataset, record.folds.seed or 0) if plan is None else plan
        if found is None or found.context.folds is not folds:
            found = _searched(record, dataset, folds)
        proof: SearchProof | BestProof = SearchProof(record, folds, found, path)
    else:
        proof = BestProof(record, dataset, path)
    try:
        whole = list(packed(proof.lines()))  # nothing stands beside its place until it is complete
        with replacing(path, "proof") as place:
            with open(place, "xb") as stream:
                stream.writelines(whole)
            if check is not None:
                check(str(place))
    except np.linalg.LinAlgError:
        proof.kept.remove()
        raise BadInput("--proof: columns are too nearly dependent for so small a gamma: drop some of them") from None
    except BadInput:
        proof.kept.remove()
        raise
    except KeyboardInterrupt:
        proof.kept.write()
        raise
    proof.kept.remove()


def _searched(record: Record, dataset: Dataset, plan: FoldPlan) -> Snapshot:
    """Search the grid of a record again, for what the search knows at its end."""
    known: list[Snapshot] = []
    request, data = record.request, record.data
    cross_validate(
        dataset, plan, gammas=request.gammas, taus=request.taus, scale=data.scale, intercept=data.intercept,
        gap=request.gap, found=known.append,
    )  # fmt: skip
    return known[-1]

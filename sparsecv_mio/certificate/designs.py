"""Functions that construct the `Design` of a record from its loss, columns, restrictions and folds."""

from __future__ import annotations

from sparsecv_mio.certificate.design import Design, Tell
from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.glm_design import FitStore, GlmDesign
from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.model_space import NONE

WRITE_PROOF = "run the command of the record again with --proof FILE, and check the proof with `sparsecv check`"
TRY_LESS = "use fewer features, sizes or gammas"


def make_design(
    record: StoredRecord, dataset: Dataset, plan: FoldPlan | None = None, tell: Tell | None = None
) -> Design:
    """Return the design of a record for its data in the form of its loss, and its folds.

    Parameters
    ----------
    tell : callable, optional
        Function that long enumerations call with the numbers of fits made and allowed.
    """
    how = dataset, record.data.scale, record.data.intercept, restrictions_of(record)
    if record.loss.is_quadratic:
        return RidgeDesign.from_restrictions(*how, plan=plan)
    advice = WRITE_PROOF if has_proof(record) else TRY_LESS
    store = FitStore() if tell is None else FitStore(tell=tell)
    return GlmDesign.from_restrictions(*how, plan=plan, loss=record.loss, advice=advice, store=store)


def has_proof(record: StoredRecord) -> bool:
    """Return True if `--proof` covers the command of a record without restrictions."""
    if record.loss.target.proof_restrictions is None or not isinstance(record, Record | PathRecord | FitRecord):
        return False
    if isinstance(record, Record) and (
        record.request.na_within or record.request.scale_within or record.status != "proved"
    ):
        return False
    data = record.data
    weighted = any(column is not None for column in (data.weights, data.class_weight, data.trials))
    return not weighted and restrictions_of(record) == NONE

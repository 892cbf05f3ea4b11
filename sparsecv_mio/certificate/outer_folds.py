"""The claims of a nested cross-validation: every outer model refitted on its training rows and scored on the others."""

from __future__ import annotations

import math

import numpy as np

from sparsecv_mio.certificate.checks import Checks
from sparsecv_mio.certificate.parts import STATUSES, FoldInfo
from sparsecv_mio.certificate.record import Nested, NestedFold, Record
from sparsecv_mio.certificate.refits import positions
from sparsecv_mio.certificate.stability import OuterModel
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.nested_folds import outer_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.objective import fit, held_out_error, standard_error, varying_columns

SAME = 1e-12  # relative: numbers of the record that were once one number
ERROR_RTOL = 1e-7


def check_nested(checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan) -> None:
    """Check what a record says of its outer folds; nothing where it has none.

    Parameters
    ----------
    checks : Checks
    record : Record
    dataset : Dataset
    plan : FoldPlan
        Folds of the record.
    """
    nested, before = record.nested, len(checks.failures)
    if nested is None:
        return
    outer = outer_of(checks, nested.outer, dataset, plan, "nested.outer.")
    numbers = [one.fold for one in nested.folds]
    right = len(numbers) > 0 and numbers == sorted(set(numbers)) and numbers[-1] < nested.outer.k
    if outer is None or not checks.that(right, "nested.folds", "are not outer folds in their order, each once"):
        return
    for i, one in enumerate(nested.folds):
        path = f"nested.folds[{i}]."
        checks.that(one.status in STATUSES, f"{path}status", f"must be one of {', '.join(STATUSES)}")
        check_outer_model(checks, record, (dataset, outer), one, path)
    weights = np.array([dataset.weight_of(outer.scored_rows(fold)) for fold in numbers])
    errors = np.array([one.error for one in nested.folds])
    error = float(np.average(errors, weights=weights))
    checks.close("nested.error", nested.error, error, SAME * error)
    spread = standard_error(errors * weights, weights) if len(numbers) > 1 else None
    if checks.that((spread is None) == (nested.standard_error is None), "nested.standard_error", "is null or not"):
        checks.close("nested.standard_error", nested.standard_error or 0.0, spread or 0.0, SAME * error)
    _optimism(checks, record, nested, error)
    checks.part(f"error of the {len(numbers)} models that were chosen without an outer fold", before)


def outer_of(checks: Checks, said: FoldInfo, dataset: Dataset, plan: FoldPlan, path: str) -> FoldPlan | None:
    """Deal the outer folds again; None where they are not those of the record.

    Parameters
    ----------
    checks : Checks
    said : FoldInfo
        What the record says of them.
    dataset : Dataset
    plan : FoldPlan
        Folds of the record.
    path : str
        What stands before the names of the fields in messages.
    """
    try:
        outer = outer_folds(said.k, plan, dataset)
    except BadInput as error:
        checks.that(False, path.rstrip("."), str(error))
        return None
    before = len(checks.failures)
    for name in ("spec", "seed", "k", "repeats", "digest"):
        checks.equal(f"{path}{name}", getattr(said, name), getattr(outer, name))
    return outer if len(checks.failures) == before else None


def check_outer_model(
    checks: Checks, record: Record, rows: tuple[Dataset, FoldPlan], one: NestedFold | OuterModel, path: str
) -> None:
    """Fit the support of an outer model on its training rows, and score it on the rows left out.

    Parameters
    ----------
    checks : Checks
    record : Record
    rows : Dataset, FoldPlan
        All rows, and the outer folds.
    one : NestedFold or OuterModel
    path : str
        What stands before the names of the fields in messages.
    """
    (dataset, outer), request = rows, record.request
    train, test = outer.train_rows(one.fold), outer.scored_rows(one.fold)
    X, y = dataset.X[train], dataset.y[train]
    vary = varying_columns(X).tolist()
    support = positions(one.support, {dataset.names[j]: j for j in vary})
    if support is None or len(support) > one.tau:
        checks.that(False, f"{path}support", f"is not a set of up to {one.tau} features that vary on the training rows")
        return
    limits = request.restrictions
    if limits is not None:
        # a sign may hold the coefficient of a feature that is forced in at zero
        forced = set(limits.force_in) - {*limits.nonnegative, *limits.nonpositive}
        kept = forced <= set(one.support) and not set(limits.force_out) & set(one.support)
        checks.that(kept, f"{path}support", "does not keep to the restrictions")
    if not record.descent:
        checks.that(one.gamma in request.gammas, f"{path}gamma", "is not one that was asked for")
    weights = dataset.row_weights
    model = fit(
        X, y, support, one.gamma, scale=record.data.scale, intercept=record.data.intercept,
        weights=None if weights is None else weights[train],
    )  # fmt: skip
    found = held_out_error(model, dataset.X, dataset.y, test, weights) / dataset.weight_of(test)
    noise = 1e-12 * float(np.ptp(dataset.y)) + 1e-15 * float(np.abs(dataset.y).max())
    slack = ERROR_RTOL * found + noise * (2.0 * math.sqrt(found) + noise)
    checks.close(f"{path}error", one.error, found, slack)


def _optimism(checks: Checks, record: Record, nested: Nested, error: float) -> None:
    chosen = record.cv_error
    known = 0.0 < chosen < math.inf
    if checks.that(known == (nested.optimism is not None), "nested.optimism", "is null or not") and known:
        found = 100.0 * (error / chosen - 1.0)
        checks.close("nested.optimism", nested.optimism or 0.0, found, 1e-10 * (abs(found) + 100.0))

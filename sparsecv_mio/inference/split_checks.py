"""Verification of inference by splits: the halves, the tests on the other half, and their combination are recomputed.

The choice of a model by half of the rows is only read, because it takes as long as the run of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import EXTRAS, BadInput
from sparsecv_mio.inference.draws import half_draws
from sparsecv_mio.inference.splits import SplitTester
from sparsecv_mio.model_space import NONE
from sparsecv_mio.thresholds import MAX_DRAWS
from sparsecv_mio.words import Intercept

REFIT_RTOL = 1e-7  # relative difference of numbers of two fits that converged separately
SURE = 1e-30  # p-values below this number count as equal


def check_inference(checks: Checks, record: Record, dataset: Dataset, folds: FoldPlan) -> None:
    """Check the claims of a record about inference by splits, if it has them.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record of `solve`.
    dataset : Dataset
        Data of the record, with weights.
    folds : FoldPlan
        Folds of the record.
    """
    inference = record.inference
    if inference is None:
        return
    checks.read_numbers.append("models that halves of the rows chose")
    if any(find_spec(package) is None for package in EXTRAS["inference"]):
        checks.only_read("inference", "its tests require the extra `inference`")
        return
    splits = inference.splits
    numbers = [split.split for split in splits]
    is_ordered = numbers == sorted(set(numbers)) and len(numbers) > 0 and numbers[-1] < inference.plan.requested
    is_ordered = is_ordered and inference.plan.requested <= MAX_DRAWS
    right = checks.require(is_ordered, "inference.splits", "must be requested splits in ascending order")
    if not checks.require(0.0 < inference.level < 1.0, "inference.level", "must be between 0 and 1") or not right:
        return
    restrictions, has_intercept = record.request.restrictions or NONE, record.data.intercept != Intercept.NONE
    tester = SplitTester(dataset, folds, restrictions, record.loss, has_intercept)
    try:
        draws = {draw.number: draw for draw in half_draws(dataset, folds, numbers[-1] + 1, inference.plan.seed)}
    except BadInput as error:
        checks.require(False, "folds", str(error))
        return
    again = [tester.test_split(split, draws[split.split]) for split in splits]
    for i, (said, tested) in enumerate(zip(splits, again, strict=True)):
        for name in ("n_test", "df", "note"):
            checks.require_equal(f"inference.splits[{i}].{name}", getattr(said, name), getattr(tested, name))
        _compare_parts(checks, f"inference.splits[{i}].tests", said.tests, tested.tests)
    units = tester.units
    plan = replace(inference.plan, units=units.name, n_units=len(units.stratum), by_class=units.is_stratified)
    combined = tester.summarise_splits(splits, plan, inference.level)
    _compare_parts(checks, "inference.terms", inference.terms, combined.terms)
    for name in ("units", "n_units", "by_class"):
        checks.require_equal(f"inference.plan.{name}", getattr(inference.plan, name), getattr(plan, name))
    checks.require_equal("inference.covariance", inference.covariance, combined.covariance)
    checks.mark_bounded_fields("inference.plan.requested", "inference.plan.seed", "inference.splits[].split")
    checks.end_part(f"tests of {len(splits)} models on the rows that did not choose them, and their combination")


def _compare_parts(checks: Checks, path: str, said: Sequence[Any], found: Sequence[Any]) -> None:
    """Check tests of a split, or combined results of terms, against recomputed ones."""
    if not checks.require(len(said) == len(found), path, f"has {len(said)} entries, but the data give {len(found)}"):
        return
    for i, (part, other) in enumerate(zip(said, found, strict=True)):
        spread = getattr(other, "standard_error", None) or 0.0
        for name, value in vars(part).items():
            own = getattr(other, name)
            if isinstance(value, float) and isinstance(own, float):
                slack = SURE if name == "p_value" else spread * REFIT_RTOL if name == "estimate" else 0.0
                checks.close(f"{path}[{i}].{name}", value, own, REFIT_RTOL * abs(own) + slack)
            else:
                checks.require_equal(f"{path}[{i}].{name}", value, own)

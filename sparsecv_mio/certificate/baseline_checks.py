"""Checks of the baselines of a record: their held-out errors, and the comparison with the reported pair."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checked_fields import SAME, Checks
from sparsecv_mio.certificate.design import Design
from sparsecv_mio.certificate.inference_parts import Baseline
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.problem.glm_objective import weighted_losses
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.units import ACCURATE_RTOL, LOSS_ROUNDING

COMPARED = ("cv_error", "difference", "standard_error", "possible_gain")


def check_baselines(checks: Checks, record: Record, design: Design) -> None:
    """Check the baselines of a record; that the stored fold models are those of their methods is only read.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record of a search.
    design : Design
        Rows and folds of the record.
    """
    methods = () if record.baselines is None else record.baselines.methods
    is_stored = True
    for i, one in enumerate(methods):
        path, shape = f"baselines.methods[{i}].", (design.folds.k, 1 + design.dataset.p)
        if not checks.require(len(one.fold_errors) == shape[0], f"{path}fold_errors", "must have one value per fold"):
            continue
        if one.fold_models:
            right = {len(model) for model in one.fold_models} == {shape[1]} and len(one.fold_models) == shape[0]
            words = "must have the intercept and every coefficient of every fold"
            if checks.require(right, f"{path}fold_models", words):
                _check_fold_errors(checks, record, design, one, f"{path}fold_errors")
        else:
            is_stored = False
            checks.only_read("baselines.methods[].fold_errors", f"{one.method}: the fold models are too many to store")
        _check_comparison(checks, record, design, one, path)
        adjusted = {*one.coefficients} - {*one.support}
        nonzero = all(one.coefficients.get(name, 0.0) != 0.0 for name in one.support)
        checks.require(nonzero and not adjusted & {*one.support}, f"{path}support", "has a coefficient of zero")
    if methods:
        errors = "held-out errors of the stored fold models of baselines, " if is_stored else ""
        checks.end_part(f"{errors}CV errors of baselines, their differences to the pair, and the certified gain")


def _check_fold_errors(checks: Checks, record: Record, design: Design, one: Baseline, path: str) -> None:
    """Compare the held-out losses of the stored models of the folds with the record."""
    checks.mark_recomputed_fields(path)
    for fold, (said, model) in enumerate(zip(one.fold_errors, np.array(one.fold_models), strict=True)):
        rows = design.dataset.take(design.folds.scored_rows(fold))
        predictors = model[0] + rows.X @ model[1:]
        rounding = LOSS_ROUNDING * (abs(model[0]) + np.abs(rows.X) @ np.abs(model[1:]))
        losses = weighted_losses(rows, record.loss, predictors)
        moved = [weighted_losses(rows, record.loss, predictors + side) for side in (-rounding, rounding)]
        room = float(np.max([np.abs(other - losses) for other in moved], axis=0).sum())
        error = float(losses.sum())
        if not abs(said - error) <= room + ACCURATE_RTOL * error:
            checks.close(f"{path}[{fold}]", said, error, room)
            return


def _check_comparison(checks: Checks, record: Record, design: Design, one: Baseline, path: str) -> None:
    """Compute the numbers of the comparison again, from the held-out errors of the folds."""
    scored, lower = design.scored, record.certificate.lower
    errors: FloatArray = np.array(one.fold_errors)
    differences = errors - record.chosen_folds.error
    is_known = bool(np.isfinite(differences).all())
    error, scale = float(errors.sum()) / scored.total, float(np.abs(errors).sum()) / scored.total + record.cv_error
    again = {
        "cv_error": error,
        "difference": float(differences.sum()) / scored.total if is_known else None,
        "standard_error": standard_error(differences, scored.by_fold, scored.times)
        if is_known and scored.has_standard_error
        else None,
        "possible_gain": 100.0 * (1.0 - lower / error) if lower > 0.0 and error > 0.0 else None,
    }
    for name in COMPARED:
        said, found, place = getattr(one, name), again[name], f"{path}{name}"
        checks.mark_recomputed_fields(place)
        if said is None or found is None:
            checks.require(said is found, place, f"is {said!r}, but the recomputed value is {found!r}")
        else:
            unit = 100.0 * (1.0 + lower / error) if name == "possible_gain" else scale
            checks.close(place, said, found, 10.0 * SAME * unit * np.sqrt(len(errors)))

"""Checks of the baselines of a record: their held-out errors, and the comparison with the reported pair."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checked_fields import SAME, Checks
from sparsecv_mio.certificate.design import Design
from sparsecv_mio.certificate.inference_parts import Baseline
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.problem.glm_objective import weighted_losses
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.units import ACCURATE_RTOL, LOSS_ROUNDING


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
    shape = design.folds.k, 1 + design.dataset.p
    for i, entry in enumerate(methods):
        path = f"baselines.methods[{i}]."
        if not checks.require(len(entry.fold_errors) == shape[0], f"{path}fold_errors", "must have one value per fold"):
            continue
        if not entry.fold_models:
            checks.only_read(
                "baselines.methods[].fold_errors", f"{entry.method}: the fold models are too many to store"
            )
        elif checks.require(
            [len(model) for model in entry.fold_models] == [shape[1]] * shape[0], f"{path}fold_models",
            "must have the intercept and every coefficient of every fold",
        ):  # fmt: skip
            _check_fold_errors(checks, record, design, entry, f"{path}fold_errors")
        _check_comparison(checks, record, design, entry, path)
        is_nonzero = all(entry.coefficients.get(name) for name in entry.support)
        checks.require(is_nonzero, f"{path}support", "has a feature without a coefficient")
    if methods:
        is_stored = all(entry.fold_models for entry in methods)
        errors = "held-out errors of the stored fold models of baselines, " if is_stored else ""
        checks.end_part(f"{errors}CV errors of baselines, differences from the reported pair, certified percentages")


def _check_fold_errors(checks: Checks, record: Record, design: Design, entry: Baseline, path: str) -> None:
    """Compare the held-out losses of the stored models of the folds with the record."""
    checks.mark_recomputed_fields(path)
    for fold, (said, model) in enumerate(zip(entry.fold_errors, np.array(entry.fold_models), strict=True)):
        rows = design.dataset.take(design.folds.scored_rows(fold))
        predictors = model[0] + rows.X @ model[1:]
        rounding = LOSS_ROUNDING * (abs(model[0]) + np.abs(rows.X) @ np.abs(model[1:]))
        losses = weighted_losses(rows, record.loss, predictors)
        moved = [weighted_losses(rows, record.loss, predictors + side) for side in (-rounding, rounding)]
        room = float(np.max([np.abs(shifted - losses) for shifted in moved], axis=0).sum())
        error = float(losses.sum())
        if not checks.close(f"{path}[{fold}]", said, error, room + ACCURATE_RTOL * error):
            return


def compare_with_pair(record: Record, scored: Scored, errors: FloatArray) -> dict[str, float | None]:
    """Return the CV error of a baseline, and its comparison with the reported pair, as fields of `Baseline`.

    Parameters
    ----------
    record : Record
        Record of a search.
    scored : Scored
        Weights of the rows that the folds score.
    errors : (k,) array
        Sums of the held-out losses of the baseline.
    """
    differences, lower = errors - record.chosen_folds.error, record.certificate.lower
    error, is_known = float(errors.sum()) / scored.total, bool(np.isfinite(differences).all())
    has_spread = is_known and scored.has_standard_error
    return {
        "cv_error": error,
        "difference": float(differences.sum()) / scored.total if is_known else None,
        "standard_error": standard_error(differences, scored.by_fold, scored.times) if has_spread else None,
        "possible_gain": 100.0 * (1.0 - lower / error) if lower > 0.0 and error > 0.0 else None,
    }


def _check_comparison(checks: Checks, record: Record, design: Design, entry: Baseline, path: str) -> None:
    """Compute the numbers of the comparison again, from the held-out errors of the folds."""
    errors = np.array(entry.fold_errors)
    again = compare_with_pair(record, design.scored, errors)
    scale = float(np.abs(errors).sum()) / design.scored.total + record.cv_error
    for name, value in again.items():
        said, place = getattr(entry, name), f"{path}{name}"
        checks.mark_recomputed_fields(place)
        if said is None or value is None:
            checks.require(said is value, place, f"is {said!r}, but the recomputed value is {value!r}")
        else:
            unit = 100.0 + abs(value) if name == "possible_gain" else scale
            checks.close(place, said, value, 10.0 * SAME * unit * np.sqrt(len(errors)))

"""Functions that check the fields that depend on the target: class names, error of a constant model, accuracy."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.accuracy import class_quality, tie_width
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.records import Classes, NestedClasses, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import resolve_class
from sparsecv_mio.problem.glm_objective import null_loss
from sparsecv_mio.units import FOLLOWS_RTOL, TINY

CERTAIN_TIE = 0.25  # share of the width of ties within which rounding separates no predictions


def check_target(checks: Checks, record: StoredRecord, dataset: Dataset, rows: IntArray) -> bool:
    """Check the names of two classes, and the loss of the best constant in some rows; False if the record lacks them.

    Parameters
    ----------
    rows : (m,) int array
        Scored rows.
    """
    target, classes, counts = record.loss.target, record.classes, record.counts
    for name, quality, needed in (("classes", classes, target.has_classes), ("counts", counts, target.has_counts)):
        if not checks.require(
            (quality is not None) == needed, name, f"must {'not be' if needed else 'be'} null with loss {record.loss}"
        ):
            return False
    if classes is None and counts is None:
        return True
    null_error = null_loss(dataset, record.loss, rows)
    if counts is not None:
        checks.require_equal("counts.certified", counts.certified, "half_deviance")
        checks.close("counts.null_error", counts.null_error, null_error, 1e-10 * (1.0 + null_error))
        checks.end_part(f"the {record.null_name}")
    if classes is not None:
        checks.require_equal("classes.certified", classes.certified, "log_loss")
        for name, class_name in zip(("negative", "positive"), dataset.classes or (None, None), strict=True):
            checks.require_equal(f"classes.{name}", getattr(classes, name), class_name)
        checks.close("classes.null_error", classes.null_error, null_error, 1e-12)
        for name in () if isinstance(record, Record) else ("accuracy", "auc", "brier"):
            words = "must be null, because this record has no held-out predictions"
            checks.require(getattr(classes, name) is None, f"classes.{name}", words)
        word = record.request.positive if isinstance(record, Record) else None
        right = word is None or resolve_class(word, (classes.negative, classes.positive)) == classes.positive
        checks.require(right, "request.positive", f"is {word!r}, but the positive class is {classes.positive!r}")
        checks.end_part(f"the classes, and the {record.null_name}")
    return True


def check_quality(
    checks: Checks, said: Classes | NestedClasses, y: FloatArray, chances: FloatArray, weights: FloatArray | None,
    path: str,
) -> None:  # fmt: skip
    """Check accuracy, AUC and Brier score of some rows against their probabilities.

    Parameters
    ----------
    said : Classes or NestedClasses
        Part of the record with the measures.
    y, chances : (m,) arrays
        Classes 0 and 1, and probabilities of class 1.
    weights : (m,) array or None
        Row weights; None if each row counts once.
    path : str
        Prefix of the fields in messages.
    """
    quality, w = class_quality(y, chances, weights), np.ones(len(y)) if weights is None else weights
    open_to_rounding = {"accuracy": _uncertain_class_share(chances, w), "auc": _uncertain_order_share(y, chances, w)}
    for name in ("accuracy", "auc", "brier"):
        number = getattr(said, name)
        if number is not None:
            room = FOLLOWS_RTOL + open_to_rounding.get(name, 0.0)
            checks.close(f"{path}{name}", number, getattr(quality, name), room)


def _uncertain_class_share(chance: FloatArray, w: FloatArray) -> float:
    """Return the share of rows whose predicted class depends on rounding; probabilities of 1/2 are certainly below."""
    distance = np.abs(chance - 0.5)
    return float(np.average((distance > CERTAIN_TIE * tie_width(chance)) & (distance <= FOLLOWS_RTOL), weights=w))


def _uncertain_order_share(y: FloatArray, chance: FloatArray, w: FloatArray) -> float:
    """Return the share of pairs of a row of each class whose order of probabilities depends on rounding.

    Rows with the same features, and all rows of a fold without features, are certainly tied.
    """
    is_positive, order = y > 0.0, np.argsort(chance, kind="stable")
    zeros = order[~is_positive[order]]
    before, ones = np.concatenate([[0.0], np.cumsum(w[zeros])]), chance[is_positive]

    def weight_within(width: FloatArray) -> float:
        first = before[np.searchsorted(chance[zeros], ones - width, "left")]
        last = before[np.searchsorted(chance[zeros], ones + width, "right")]
        return float(w[is_positive] @ (last - first))

    close = weight_within(np.full(len(ones), FOLLOWS_RTOL)) - weight_within(CERTAIN_TIE * tie_width(ones))
    return close / max(float(w[is_positive].sum() * before[-1]), TINY)

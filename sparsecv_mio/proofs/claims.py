"""What a proof claims of a record, and which records have none."""

from __future__ import annotations

from sparsecv_mio.certificate.record import FitRecord, PathRecord, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.restrictions import Restrictions

OUTWARD = 1e-9  # of a number, by which a proof claims less than the record says


def ends(lower: float, upper: float, rounding: float) -> tuple[float, float]:
    """Return the ends of an interval a little further apart, so that the checker's floats suffice.

    Parameters
    ----------
    lower, upper : float
    rounding : float
        What the checker's floats may lose.
    """
    return lower - OUTWARD * abs(lower) - rounding, upper + OUTWARD * abs(upper) + rounding


def refuse_options(restrictions: Restrictions | None, weights: str | None, other: str | None = None) -> None:
    """Refuse, before the work, what proofs do not cover.

    Parameters
    ----------
    restrictions : Restrictions or None
    weights : str or None
        The column of weights.
    other : str, optional
        Another option that stands in the way.

    Raises
    ------
    BadInput
        The message names the option.
    """
    what = other or ("--weights" if weights is not None else "restrictions of the models" if restrictions else None)
    if what is not None:
        raise BadInput(f"--proof: proofs do not cover {what}: leave out one or the other")


def refuse_unproved(record: Record | PathRecord | FitRecord, dataset: Dataset) -> None:
    """Refuse the record of a run that proofs do not cover."""
    if isinstance(record, FitRecord):
        side, box = record.side, record.assumed_box
        other = "side constraints" if side and side.words() else "--assume-box" if box is not None else None
        refuse_options(None, dataset.weights, other)
    else:
        other = "--method descent" if isinstance(record, Record) and record.descent else None
        other = "every gamma of an interval" if isinstance(record, Record) and record.continuous else other
        refuse_options(record.request.restrictions, dataset.weights, other)
        if isinstance(record, Record) and record.status != "proved":
            raise BadInput("--proof: a limit came before the pair was proved: give the run more time")

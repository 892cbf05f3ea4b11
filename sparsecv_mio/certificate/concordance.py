"""Concordance of log hazard ratios with survival times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from sparsecv_mio.data.dataset import Dataset


@dataclass(frozen=True)
class TimeQuality:
    """Quality of log hazard ratios: Harrell's concordance, the number of pairs of rows that it compares, and the loss.

    `loss` is the negative log partial likelihood per event, and `null_loss` that of the model without features; NaN if
    they are not computed.
    """

    concordance: float
    pairs: float
    loss: float = math.nan
    null_loss: float = math.nan


def assess_times(dataset: Dataset, predicted: ArrayLike) -> TimeQuality:
    """Return Harrell's concordance of log hazard ratios.

    A pair of rows of a stratum is compared if one has an event at which the other is at risk, and the other one has no
    event at this time. It counts 1 if the row of the event has the larger prediction, and 1/2 for equal predictions.

    Parameters
    ----------
    dataset : Dataset
        Data with survival times.
    predicted : (n,) array_like
        Log hazard ratios.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.survival import Survival
    >>> data = Dataset.from_arrays([[0.0]] * 3, [1.0, 2.0, 3.0])
    >>> assess_times(replace(data, survival=Survival(np.array([True, True, False]))), [2.0, 0.0, 1.0])
    TimeQuality(concordance=0.6666666666666666, pairs=3.0, loss=nan, null_loss=nan)
    """
    survival, time, risk = dataset.survival, dataset.y, np.asarray(predicted, dtype=np.float64)
    assert survival is not None
    is_event = survival.is_event
    stratum = np.zeros(len(time)) if survival.stratum is None else survival.stratum
    entry = np.full(len(time), -np.inf) if survival.entry is None else survival.entry
    right, pairs = 0.0, 0.0
    for i in np.flatnonzero(is_event).tolist():
        later = (time > time[i]) | ((time == time[i]) & ~is_event)
        others = risk[later & (entry < time[i]) & (stratum == stratum[i])]
        right += np.count_nonzero(others < risk[i]) + 0.5 * np.count_nonzero(others == risk[i])
        pairs += len(others)
    return TimeQuality(float(right / pairs) if pairs else float("nan"), float(pairs))

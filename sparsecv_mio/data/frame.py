"""pandas frames."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.select import Wanted

if TYPE_CHECKING:
    import pandas as pd


def frame_columns(
    frame: pd.DataFrame, wanted: Wanted
) -> tuple[FloatArray, FloatArray, tuple[str, ...], str, dict[str, NDArray[Any]]]:
    """Copy a frame's columns one by one: features (n, p), target (n,), their names, and others by name."""
    chosen = wanted.within([str(name) for name in frame.columns])
    X = np.empty((len(frame), len(chosen.features)))
    for k, j in enumerate(chosen.features):
        X[:, k] = series_numbers(frame.iloc[:, j], chosen.header[j])
    y = series_numbers(frame.iloc[:, chosen.header.index(chosen.goal)], chosen.goal)
    return X, y, chosen.names, chosen.goal, {chosen.header[j]: _series_ids(frame.iloc[:, j]) for j in chosen.aux}


def frame_numbers(frame: Any) -> FloatArray:
    """Return all columns of a frame as numbers; `BadInput` names the first cell that is none."""
    X = np.empty(frame.shape)
    for j, name in enumerate(frame.columns):
        X[:, j] = series_numbers(frame.iloc[:, j], str(name))
    return X


def series_numbers(series: pd.Series[Any], name: str) -> FloatArray:
    """Return a column of a frame as numbers; `BadInput` names the first cell that is none."""
    if series.dtype.kind in "biuf":
        missing = series.isna().to_numpy()
        if missing.any():
            raise bad_cell(name, int(np.argmax(missing)) + 1, None)
        return series.to_numpy(dtype=np.float64).copy()
    for row, value in enumerate(series.tolist(), start=1):
        if not isinstance(value, numbers.Real | Decimal | np.bool_):
            raise bad_cell(name, row, None if series.isna().iloc[row - 1] else str(value))
    return np.array([float(value) for value in series.tolist()])


def _series_ids(series: pd.Series[Any]) -> NDArray[Any]:
    if series.dtype.kind in "biuf" and not series.isna().any():
        return series.to_numpy(dtype=None).copy()
    return series.to_numpy(dtype=object).copy()

"""pandas frames."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.select import select_columns

if TYPE_CHECKING:
    import pandas as pd


class FrameColumns(NamedTuple):
    """Columns of a frame in fresh arrays: features (n, p), target (n,), their names, and others by name."""

    X: FloatArray
    y: FloatArray
    names: tuple[str, ...]
    target: str
    aux: dict[str, NDArray[Any]]


def frame_columns(
    frame: pd.DataFrame,
    target: str | int,
    features: Sequence[str] | None,
    drop: Sequence[str] | None,
    aux: Sequence[str],
) -> FrameColumns:
    """Copy a frame's columns one by one into fresh arrays.

    Parameters
    ----------
    frame : pandas.DataFrame
    target : str or int
    features, drop : sequence of str or None
    aux : sequence of str
        All as in :meth:`sparsecv_mio.data.dataset.Dataset.from_frame`.
    """
    chosen = select_columns([str(name) for name in frame.columns], target, features, drop, aux)
    X = np.empty((len(frame), len(chosen.features)))
    for k, j in enumerate(chosen.features):
        X[:, k] = _series_numbers(frame.iloc[:, j], chosen.header[j])
    y = _series_numbers(frame.iloc[:, chosen.header.index(chosen.goal)], chosen.goal)
    extra = {chosen.header[j]: _series_ids(frame.iloc[:, j]) for j in chosen.aux}
    return FrameColumns(X, y, chosen.names, chosen.goal, extra)


def _series_numbers(series: pd.Series[Any], name: str) -> FloatArray:
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

"""pandas frames."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.cure import Made, RawTable, cured, raw_table
from sparsecv_mio.data.marks import POINT, reads
from sparsecv_mio.data.reading import Reading
from sparsecv_mio.data.select import Selection, Wanted
from sparsecv_mio.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd


def read_frame(frame: pd.DataFrame, wanted: Wanted, how: Reading) -> Made:
    """Copy a frame's columns one by one; see :meth:`sparsecv_mio.data.dataset.Dataset.from_frame`.

    Parameters
    ----------
    frame : pandas.DataFrame
    wanted : Wanted
    how : Reading
    """
    chosen = wanted.within([str(name) for name in frame.columns])
    aux = {chosen.header[j]: _series_ids(frame.iloc[:, j]) for j in chosen.aux}
    cures = how.cures or how.decimal != "."
    try:
        if cures:
            return cured(_raw_frame(frame, chosen, aux, how), how, wanted)
        X = np.empty((len(frame), len(chosen.features)))
        for k, j in enumerate(chosen.features):
            X[:, k] = series_numbers(frame.iloc[:, j], chosen.header[j])
        y = series_numbers(frame.iloc[:, chosen.header.index(chosen.goal)], chosen.goal)
        return Made(X, y, chosen.names, chosen.goal, aux, None)
    except BadInput:
        if not cures:
            cured(_raw_frame(frame, chosen, aux, how), how, wanted)  # names all bad columns
        raise


def _raw_frame(frame: pd.DataFrame, chosen: Selection, aux: dict[str, NDArray[Any]], how: Reading) -> RawTable:
    place = {name: j for j, name in enumerate(chosen.header)}
    return raw_table(chosen.names, chosen.goal, lambda name: frame.iloc[:, place[name]].tolist(), aux, how)


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
        if isinstance(value, str) and reads(value, POINT):
            more = "turn the column into numbers, by pandas.to_numeric say"
            raise BadInput(f"column {name!r} holds text {value!r} in row {row}, which is a number: {more}")
        if not isinstance(value, numbers.Real | Decimal | np.bool_):
            raise bad_cell(name, row, None if series.isna().iloc[row - 1] else str(value))
    return np.array([float(value) for value in series.tolist()])


def _series_ids(series: pd.Series[Any]) -> NDArray[Any]:
    if series.dtype.kind in "biuf" and not series.isna().any():
        return series.to_numpy(dtype=None).copy()
    return series.to_numpy(dtype=object).copy()

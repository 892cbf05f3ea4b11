"""Exposures and offsets that are given to estimators as arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import with_offsets
from sparsecv_mio.errors import BadInput
from sparsecv_mio.targets import TargetColumns


def check_row_values(option: str, given: Any, n: int) -> FloatArray:
    """Return (n,) exposures above 0, or finite offsets.

    Parameters
    ----------
    option : {"exposure", "offset"}
        Name of the argument.
    given : array_like
        Values of the rows, or one value for all rows.
    n : int
        Number of rows.

    Raises
    ------
    BadInput
        If the shape or a value is wrong.

    Examples
    --------
    >>> check_row_values("offset", 1.5, 2)
    array([1.5, 1.5])
    """
    values, kind = np.asarray(given, dtype=np.float64), "number above 0" if option == "exposure" else "finite number"
    if values.ndim > 1 or values.size not in (1, n):
        raise BadInput(f"{option} has the shape {values.shape}; give a {kind} for each of {n} rows")
    values = np.broadcast_to(values, (n,)).copy()
    wrong = np.flatnonzero(~(((values > 0.0) | (option != "exposure")) & np.isfinite(values)))
    if wrong.size:
        raise BadInput(f"{option} is {values[wrong[0]]:g} in row {wrong[0] + 1}; give a {kind} for each row")
    return values


def sum_offsets(n: int, **given: Any) -> FloatArray | float:
    """Return the offsets of new rows from given exposures and offsets; 0 if none is given.

    Examples
    --------
    >>> sum_offsets(2, exposure=1.0, offset=[0.5, 1.0]).tolist()
    [0.5, 1.0]
    """
    total: FloatArray | float = 0.0
    for option, values in given.items():
        if values is not None:
            checked = check_row_values(option, values, n)
            total = total + (np.log(checked) if option == "exposure" else checked)
    return total


def attach_offsets(data: Dataset, **given: Any) -> Dataset:
    """Return the data of a fit with given exposures and offsets, each as a column with the name of its argument.

    Parameters
    ----------
    data : Dataset
        Data in the form of their loss.
    **given
        Arrays `exposure` and `offset`, or None.
    """
    names = dict[str, str]()
    for option, values in given.items():
        if values is None:
            continue
        names[option] = option
        while names[option] in (*data.names, data.target, *data.aux):
            names[option] += "_"
        aux = {**data.aux, names[option]: check_row_values(option, values, data.n)}
        data = replace(data, aux=aux)
    return with_offsets(data, TargetColumns(**names))

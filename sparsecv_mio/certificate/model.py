"""What can be done with the model of a record: predictions for new rows, and how good they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.parts import DataInfo
from sparsecv_mio.errors import BadInput


class HasModel(Protocol):
    """A record with the coefficients of one model, by the names of the columns."""

    @property
    def coefficients(self) -> Mapping[str, float]:
        """In units of the file."""
        ...

    @property
    def intercept(self) -> float:
        """In units of the target."""
        ...

    @property
    def data(self) -> DataInfo:
        """Which columns there were."""
        ...


@runtime_checkable
class HasRows(Protocol):
    """Data with the names of their columns."""

    X: FloatArray
    names: tuple[str, ...]
    aux: Mapping[str, NDArray[Any]]


class LinearModel:
    """A record that predicts."""

    def predict(self: HasModel, X: Any) -> FloatArray:
        """Predict the target of new rows.

        Parameters
        ----------
        X : pandas.DataFrame, Dataset or (n, p) array_like
            A frame or a `Dataset` needs the columns of the model, by name and in any order; an array all columns that
            were read, in their order.

        Returns
        -------
        (n,) array
            In units of the target.

        Raises
        ------
        BadInput
            The message names the columns that are missing, or what is wrong with the array.
        """
        wanted = list(self.coefficients)
        table = X.X if isinstance(X, HasRows) else X
        header = X.names if isinstance(X, HasRows) else getattr(X, "columns", self.data.names)
        numbers = _chosen(np.asarray(table), [str(name) for name in header], wanted)
        return numbers @ np.array([self.coefficients[name] for name in wanted]) + self.intercept


def _chosen(table: NDArray[Any], header: list[str], wanted: list[str]) -> FloatArray:
    """Return the wanted columns of a table as finite numbers."""
    if table.ndim != 2 or table.shape[1] != len(header):
        raise BadInput(f"X has the shape {table.shape}: give rows of {len(header)} columns, as they were fitted")
    missing = [repr(name) for name in wanted if name not in header]
    if missing:
        raise BadInput(f"the model needs the column{'s'[: len(missing) > 1]} {', '.join(missing)}: add what is missing")
    try:
        numbers = table[:, [header.index(name) for name in wanted]].astype(np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"X must hold numbers only: {error}".splitlines()[0]) from None
    rows, columns = np.nonzero(~np.isfinite(numbers))
    if rows.size:
        raise BadInput(f"column {wanted[columns[0]]!r} holds no finite number in row {rows[0] + 1}: fill in or drop it")
    return numbers


@dataclass(frozen=True)
class Accuracy:
    """How good predictions are: root of the mean squared error, mean absolute error, share of variance explained."""

    rmse: float
    mae: float
    r_squared: float


def accuracy(y: ArrayLike, predicted: ArrayLike, weights: FloatArray | None = None) -> Accuracy:
    """Compare predictions with what came true.

    Parameters
    ----------
    y, predicted : (n,) array_like
    weights : (n,) array_like, optional
        Of the rows; 1 by default.

    Returns
    -------
    Accuracy
        `r_squared` is NaN where all of y is the same.

    Examples
    --------
    >>> accuracy([1.0, 2.0, 3.0], [1.0, 2.0, 5.0])
    Accuracy(rmse=1.1547005383792515, mae=0.6666666666666666, r_squared=-1.0)
    """
    truth = np.asarray(y, dtype=np.float64)
    error = truth - np.asarray(predicted, dtype=np.float64)
    middle = float(np.average(truth, weights=weights))
    spread = float(np.average((truth - middle) ** 2, weights=weights))
    mse = float(np.average(error**2, weights=weights))
    explained = 1.0 - mse / spread if spread > 0.0 else float("nan")
    return Accuracy(float(np.sqrt(mse)), float(np.average(np.abs(error), weights=weights)), explained)
